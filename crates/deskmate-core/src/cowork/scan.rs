//! Requests and reports of a stretch of time, read in bounded slices: what the governance report and the quality
//! figures are made of.

use std::collections::{BTreeMap, BTreeSet};

use deskmate_db::{Row, args};

use super::execution::{self, ExecutionRow};
use crate::Result;
use crate::call::Cx;
use crate::request::RequestKind;

/// How many requests, and how many reports, one call looks at.
pub(super) const ROWS_MAX: usize = 20_000;
const SLICE: u32 = 1_000;
/// How many requests from before that still wait, how many that were decided or expired, and how many in each state whose
/// outcome is open.
const WAITING_MAX: u32 = 20_000;
const SETTLED_MAX: u32 = 20_000;
const OPEN_MAX: u32 = 1_000;

/// A request as far as its fate goes, without its texts.
pub(super) struct Fate {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) state: String,
    pub(super) agent: String,
    pub(super) domain: String,
    pub(super) mode: String,
    pub(super) quorum: i64,
    pub(super) expires_at: i64,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    pub(super) decided_at: Option<i64>,
    pub(super) decided_by: Option<String>,
    pub(super) round: i64,
    pub(super) supersedes: Option<String>,
    pub(super) batch: Option<String>,
    pub(super) confidence: Option<i64>,
}

impl Fate {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            kind: row.get(1)?,
            state: row.get(2)?,
            agent: row.get(3)?,
            domain: row.get(4)?,
            mode: row.get(5)?,
            quorum: row.get(6)?,
            expires_at: row.get(7)?,
            created_at: row.get(8)?,
            updated_at: row.get(9)?,
            decided_at: row.get(10)?,
            decided_by: row.get(11)?,
            round: row.get(12)?,
            supersedes: row.get(13)?,
            batch: row.get(14)?,
            confidence: row.get(15)?,
        })
    }

    /// Whether an approval of it leads to something that is done.
    pub(super) fn is_act(&self) -> bool {
        matches!(self.kind.as_str(), "proposal" | "approval")
    }

    /// Whether only a report tells that it was done.
    pub(super) fn needs_report(&self) -> bool {
        RequestKind::from_name(&self.kind).is_ok_and(RequestKind::needs_report)
    }

    /// Whether it was approved at some time, and not taken back.
    pub(super) fn was_approved(&self) -> bool {
        matches!(self.state.as_str(), "approved" | "executing" | "done" | "failed" | "ambiguous")
    }

    /// The person who decided; policy is none.
    pub(super) fn person(&self) -> Option<&str> {
        self.decided_by.as_deref().filter(|who| *who != "desk")
    }
}

const ALL: &str = "select id, kind, state, requester, domain, mode, quorum, expires_at, created_at, updated_at, decided_at, decided_by, round, supersedes, batch, \
     confidence from request where (created_at, id) > ($1, $2) and created_at <= $3 order by created_at, id limit $4";
const OF_AGENT: &str = "select id, kind, state, requester, domain, mode, quorum, expires_at, created_at, updated_at, decided_at, decided_by, round, supersedes, \
     batch, confidence from request where requester = $5 and (created_at, id) > ($1, $2) and created_at <= $3 order by created_at, id limit $4";

const OPEN: &str = "select id, kind, state, requester, domain, mode, quorum, expires_at, created_at, updated_at, decided_at, decided_by, round, supersedes, \
     batch, confidence from request where state = $1 and state <> 'pending' and created_at < $2 and ($3 = '' or requester = $3) \
     and ($4 = '' or domain = $4) order by created_at, id limit $5";

const WAITING: &str = "select id, kind, state, requester, domain, mode, quorum, expires_at, created_at, updated_at, decided_at, decided_by, round, supersedes, \
     batch, confidence from request where state = 'pending' and expires_at > $1 and created_at < $2 and ($3 = '' or requester = $3) \
     and ($4 = '' or domain = $4) order by expires_at, id limit $5";
const DECIDED: &str = "select id, kind, state, requester, domain, mode, quorum, expires_at, created_at, updated_at, decided_at, decided_by, round, supersedes, \
     batch, confidence from request where decided_at > created_at and decided_at >= $1 and decided_at <= $2 and created_at < $1 \
     and ($3 = '' or requester = $3) and ($4 = '' or domain = $4) order by decided_at, id limit $5";
const EXPIRED: &str = "select id, kind, state, requester, domain, mode, quorum, expires_at, created_at, updated_at, decided_at, decided_by, round, supersedes, \
     batch, confidence from request where state = 'expired' and expires_at >= $1 and expires_at <= $2 and created_at < $1 \
     and ($3 = '' or requester = $3) and ($4 = '' or domain = $4) order by expires_at, id limit $5";
const DUE: &str = "select id, kind, state, requester, domain, mode, quorum, expires_at, created_at, updated_at, decided_at, decided_by, round, supersedes, \
     batch, confidence from request where state = 'pending' and expires_at >= $1 and expires_at <= $2 and created_at < $1 \
     and ($3 = '' or requester = $3) and ($4 = '' or domain = $4) order by expires_at, id limit $5";

/// The statements for what was settled, and the index that each goes through.
pub const INDEXED: &[(&str, &str)] = &[(DECIDED, "request_by_decision"), (EXPIRED, "request_expired"), (DUE, "request_due")];
const BY_ID: &str = "select id, kind, state, requester, domain, mode, quorum, expires_at, created_at, updated_at, decided_at, decided_by, round, supersedes, \
     batch, confidence from request where id = $1";

/// Which rows are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Only this agent's.
    pub(super) agent: Option<String>,
    /// Only this domain's.
    pub(super) domain: Option<String>,
    /// From this moment on.
    pub(super) start: i64,
    /// Up to this moment.
    pub(super) end: i64,
}

impl Wanted {
    pub(super) fn fits(&self, agent: &str, domain: &str) -> bool {
        self.agent.as_ref().is_none_or(|wanted| wanted == agent) && self.domain.as_ref().is_none_or(|wanted| wanted == domain)
    }
}

/// What a scan found.
pub(super) struct Found {
    pub(super) requests: BTreeMap<String, Fate>,
    pub(super) executions: Vec<ExecutionRow>,
    /// Requests from before that were begun and whose outcome nobody knows yet: however old, they are open.
    pub(super) open: Vec<Fate>,
    /// Requests from before that still wait for people.
    pub(super) waiting: Vec<Fate>,
    /// Requests from before that were decided, or expired, in this stretch of time.
    pub(super) settled: Vec<Fate>,
    /// Requests from before for which something was done or decided.
    named: BTreeMap<String, Fate>,
    /// Set where there was more than one call looks at: up to when it looked.
    pub(super) cut_at: Option<i64>,
    /// Whether more of those from before wait, are open or were settled.
    pub(super) older_cut: bool,
}

impl Found {
    /// Reads some of those from before, of which one more than fits was asked for.
    fn older(&mut self, rows: &[Row], most: u32) -> Result<Vec<Fate>> {
        let most = most as usize;
        self.older_cut |= rows.len() > most;
        rows.iter().take(most).map(Fate::read).collect()
    }

    /// What was asked in this stretch of time, and what was asked before and waited for people in it.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Fate> {
        self.requests.values().chain(&self.waiting).chain(&self.settled)
    }

    /// Reads some requests besides, by their ids.
    pub(super) fn learn(&mut self, cx: &mut Cx<'_, '_>, ids: BTreeSet<String>) -> Result<()> {
        for id in ids {
            if self.request(&id).is_none()
                && let Some(row) = cx.tx.optional(BY_ID, args![id])?
            {
                self.named.insert(id, Fate::read(&row)?);
            }
        }
        Ok(())
    }

    /// A request that was read.
    pub(super) fn request(&self, id: &str) -> Option<&Fate> {
        self.requests.get(id).or_else(|| self.named.get(id))
    }

    /// The request for which something was done.
    pub(super) fn request_of(&self, report: &ExecutionRow) -> Option<&Fate> {
        self.request(report.request.as_ref()?)
    }
}

/// Reads what is wanted, up to a bound.
pub(super) fn scan(cx: &mut Cx<'_, '_>, wanted: &Wanted) -> Result<Found> {
    let mut found = Found {
        requests: BTreeMap::new(),
        executions: Vec::new(),
        open: Vec::new(),
        waiting: Vec::new(),
        settled: Vec::new(),
        named: BTreeMap::new(),
        cut_at: None,
        older_cut: false,
    };
    let (mut place, mut looked) = ((wanted.start - 1, String::new()), 0);
    loop {
        let rows = match &wanted.agent {
            None => cx.tx.query(ALL, args![place.0, place.1, wanted.end, SLICE])?,
            Some(agent) => cx.tx.query(OF_AGENT, args![place.0, place.1, wanted.end, SLICE, agent])?,
        };
        looked += rows.len();
        for row in &rows {
            let fate = Fate::read(row)?;
            place = (fate.created_at, fate.id.clone());
            if wanted.fits(&fate.agent, &fate.domain) {
                found.requests.insert(fate.id.clone(), fate);
            }
        }
        if rows.len() < SLICE as usize {
            break;
        }
        if looked >= ROWS_MAX {
            found.cut_at = Some(place.0);
            break;
        }
    }
    let (mut place, mut looked) = ((wanted.start - 1, String::new()), 0);
    let end = found.cut_at.unwrap_or(wanted.end);
    loop {
        let rows = execution::between(cx, &place, end, SLICE)?;
        let read = rows.len();
        looked += read;
        for row in rows {
            place = (row.created_at, row.id.clone());
            if wanted.fits(&row.agent, &row.domain) {
                found.executions.push(row);
            }
        }
        if read < SLICE as usize {
            break;
        }
        if looked >= ROWS_MAX {
            found.cut_at = Some(place.0);
            break;
        }
    }
    let (agent, domain) = (wanted.agent.as_deref().unwrap_or_default(), wanted.domain.as_deref().unwrap_or_default());
    for state in ["ambiguous", "executing"] {
        let rows = cx.tx.query(OPEN, args![state, wanted.start, agent, domain, OPEN_MAX + 1])?;
        let open = found.older(&rows, OPEN_MAX)?;
        found.open.extend(open);
    }
    let now = cx.now();
    let rows = cx.tx.query(WAITING, args![now, wanted.start, agent, domain, WAITING_MAX + 1])?;
    found.waiting = found.older(&rows, WAITING_MAX)?;
    let until = found.cut_at.unwrap_or(wanted.end);
    for (sql, until) in [(DECIDED, until), (EXPIRED, until), (DUE, until.min(now))] {
        let rows = cx.tx.query(sql, args![wanted.start, until, agent, domain, SETTLED_MAX + 1])?;
        let settled = found.older(&rows, SETTLED_MAX)?;
        found.settled.extend(settled);
    }
    let from_before = found.executions.iter().filter_map(|row| row.request.clone()).collect();
    found.learn(cx, from_before)?;
    Ok(found)
}
