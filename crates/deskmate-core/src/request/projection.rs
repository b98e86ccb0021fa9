//! The rows of requests that carry authority, rebuilt from the record.

use std::collections::BTreeMap;

use deskmate_db::{Tx, args};
use serde_json::Value;

use super::events::{self, GRANTED, REVOKED, STANDING, STANDING_ENDED, ToldTexts, USED};
use super::grant::GrantRow;
use super::model::{Request, State};
use super::rows::select_request;
use super::stand_in;
use super::standing::StandingRow;
use crate::record::{Body, Finding, Projection};
use crate::{Result, digest};

/// Requests, votes, grants and standing approvals as the record says they are: a digest for each row.
#[derive(Default)]
pub struct RequestProjection {
    requests: BTreeMap<String, ToldRequest>,
    votes: BTreeMap<(String, i64, String), [u8; 32]>,
    grants: BTreeMap<String, [u8; 32]>,
    grant_facts: BTreeMap<String, Ended>,
    standing: BTreeMap<String, ToldStanding>,
    stand_ins: BTreeMap<String, (String, i64, i64)>,
}

struct ToldRequest {
    row: [u8; 32],
    texts: ToldTexts,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Ended {
    used_at: Option<i64>,
    revoked_at: Option<i64>,
}

struct ToldStanding {
    facts: [u8; 32],
    pattern: String,
    revoked_at: Option<i64>,
}

/// A digest that cannot be made is one that fits nothing.
fn sum<T: serde::Serialize>(value: &T) -> [u8; 32] {
    digest(value).unwrap_or_default()
}

fn vote_sum(vote: &str, at: i64) -> [u8; 32] {
    sum(&(vote, at))
}

impl Projection for RequestProjection {
    fn apply(&mut self, _seq: u64, body: &Body) {
        let text = |name: &str| body.facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |name: &str| body.facts.get(name).and_then(Value::as_i64);
        let kind = body.kind.as_str();
        if kind.starts_with("request.") {
            let row = events::facts_of(body);
            self.requests.insert(text("request"), ToldRequest { row: sum(&row), texts: ToldTexts::of(&row) });
            if let Some(vote) = body.facts.get("vote") {
                let field = |name: &str| vote.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                let value = |name: &str| vote.get(name).and_then(Value::as_i64).unwrap_or_default();
                self.votes.insert((text("request"), value("round"), field("person")), vote_sum(&field("vote"), value("at")));
            }
        } else if kind == GRANTED.name {
            let facts: BTreeMap<&str, &Value> = body.facts.iter().map(|(name, value)| (name.as_str(), value)).collect();
            self.grants.insert(text("grant"), sum(&facts));
            self.grant_facts.insert(text("grant"), Ended::default());
        } else if kind == USED.name {
            self.grant_facts.entry(text("grant")).or_default().used_at = number("used_at");
        } else if kind == REVOKED.name {
            self.grant_facts.entry(text("grant")).or_default().revoked_at = number("revoked_at");
        } else if kind == stand_in::NAMED.name {
            self.stand_ins.insert(text("person"), (text("stand_in"), number("until_at").unwrap_or_default(), number("named_at").unwrap_or_default()));
        } else if kind == stand_in::ENDED.name {
            self.stand_ins.remove(&text("person"));
        } else if kind == STANDING.name {
            let facts: BTreeMap<&str, &Value> = body.facts.iter().map(|(name, value)| (name.as_str(), value)).filter(|(name, _)| *name != "pattern").collect();
            self.standing.insert(text("standing_approval"), ToldStanding { facts: sum(&facts), pattern: text("pattern"), revoked_at: None });
        } else if kind == STANDING_ENDED.name
            && let Some(told) = self.standing.get_mut(&text("standing_approval"))
        {
            told.revoked_at = number("revoked_at");
        }
    }

    fn compare(&self, tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        self.compare_requests(tx, &mut findings)?;
        self.compare_votes(tx, &mut findings)?;
        self.compare_grants(tx, &mut findings)?;
        self.compare_standing(tx, &mut findings)?;
        self.compare_stand_ins(tx, &mut findings)?;
        Ok(findings)
    }
}

fn find(findings: &mut Vec<Finding>, what: &str, id: &str, why: &str) {
    findings.push(Finding { seq: None, what: format!("{what} {id}: {why}") });
}

const UNTOLD: &str = "the row is there, but the record does not tell of it";
const DIFFERS: &str = "the row differs from what the record tells";
const GONE: &str = "the record tells of it, but the row is gone";

/// Rows of one step.
const STEP: u32 = 500;

impl RequestProjection {
    fn compare_requests(&self, tx: &mut Tx<'_>, findings: &mut Vec<Finding>) -> Result<()> {
        let (mut after, mut seen) = (String::new(), 0);
        let mut pending: BTreeMap<String, i64> = BTreeMap::new();
        loop {
            let rows = tx.query(select_request!("where id > $1 order by id limit $2"), args![after, STEP])?;
            for row in &rows {
                let request = Request::read(row)?;
                after.clone_from(&request.id);
                if request.state == State::Pending {
                    *pending.entry(request.requester.id.clone()).or_default() += 1;
                }
                let Some(told) = self.requests.get(&request.id) else {
                    find(findings, "request", &request.id, UNTOLD);
                    continue;
                };
                seen += 1;
                let same = events::facts(&request, &told.texts).is_ok_and(|facts| sum(&facts) == told.row);
                if !same || !super::digest::fits(&request) {
                    find(findings, "request", &request.id, DIFFERS);
                }
            }
            if rows.len() < STEP as usize {
                break;
            }
        }
        if seen < self.requests.len() {
            for id in self.requests.keys() {
                if tx.optional("select id from request where id = $1", args![id])?.is_none() {
                    find(findings, "request", id, GONE);
                }
            }
        }
        for row in tx.query("select requester, pending from request_count order by requester", &[])? {
            let (requester, counted): (String, i64) = (row.get(0)?, row.get(1)?);
            if pending.remove(&requester).unwrap_or(0) != counted {
                find(findings, "request_count", &requester, "the count differs from the pending requests");
            }
        }
        for requester in pending.keys() {
            find(findings, "request_count", requester, "the count is gone");
        }
        Ok(())
    }

    fn compare_votes(&self, tx: &mut Tx<'_>, findings: &mut Vec<Finding>) -> Result<()> {
        let mut seen = 0;
        let mut after = (String::new(), i64::MIN, String::new());
        loop {
            let rows = tx.query(
                "select request, round, person, vote, at from vote where (request, round, person) > ($1, $2, $3) order by request, round, person limit $4",
                args![after.0, after.1, after.2, STEP],
            )?;
            for row in &rows {
                after = (row.get(0)?, row.get(1)?, row.get(2)?);
                let stored = vote_sum(&row.get::<String>(3)?, row.get(4)?);
                match self.votes.get(&after) {
                    Some(told) if *told == stored => seen += 1,
                    Some(_) => find(findings, "vote on request", &after.0, DIFFERS),
                    None => find(findings, "vote on request", &after.0, UNTOLD),
                }
            }
            if rows.len() < STEP as usize {
                break;
            }
        }
        if seen < self.votes.len() && findings.is_empty() {
            findings.push(Finding { seq: None, what: format!("vote: {GONE}") });
        }
        Ok(())
    }

    fn compare_grants(&self, tx: &mut Tx<'_>, findings: &mut Vec<Finding>) -> Result<()> {
        let (mut after, mut seen) = (String::new(), 0);
        loop {
            let rows = tx.query(
                "select id, request, agent, digest, granted_at, expires_at, used_at, revoked_at from act_grant where id > $1 order by id limit $2",
                args![after, STEP],
            )?;
            for row in &rows {
                let grant = GrantRow::read(row)?;
                after.clone_from(&grant.id);
                let Some(told) = self.grants.get(&grant.id) else {
                    find(findings, "grant", &grant.id, UNTOLD);
                    continue;
                };
                seen += 1;
                let ended = Ended { used_at: grant.used_at, revoked_at: grant.revoked_at };
                if *told != sum(&grant.facts()) || self.grant_facts.get(&grant.id) != Some(&ended) {
                    find(findings, "grant", &grant.id, DIFFERS);
                }
            }
            if rows.len() < STEP as usize {
                break;
            }
        }
        if seen < self.grants.len() {
            for id in self.grants.keys() {
                if tx.optional("select id from act_grant where id = $1", args![id])?.is_none() {
                    find(findings, "grant", id, GONE);
                }
            }
        }
        Ok(())
    }

    /// One row for each person who named somebody.
    fn compare_stand_ins(&self, tx: &mut Tx<'_>, findings: &mut Vec<Finding>) -> Result<()> {
        let mut seen = 0;
        for row in tx.query("select person, stand_in, until_at, named_at from stand_in order by person", &[])? {
            let person: String = row.get(0)?;
            match self.stand_ins.get(&person) {
                Some(told) if *told == (row.get(1)?, row.get(2)?, row.get(3)?) => seen += 1,
                Some(_) => find(findings, "stand-in of", &person, DIFFERS),
                None => find(findings, "stand-in of", &person, UNTOLD),
            }
        }
        if seen < self.stand_ins.len() && findings.is_empty() {
            findings.push(Finding { seq: None, what: format!("stand-in: {GONE}") });
        }
        Ok(())
    }

    fn compare_standing(&self, tx: &mut Tx<'_>, findings: &mut Vec<Finding>) -> Result<()> {
        let (mut after, mut seen) = (String::new(), 0);
        loop {
            let rows = tx.query(
                "select id, request, agent, domain, pattern, person, created_at, expires_at, revoked_at from standing_approval where id > $1 order by id limit $2",
                args![after, STEP],
            )?;
            for row in &rows {
                let row = StandingRow::read(row)?;
                after.clone_from(&row.id);
                let Some(told) = self.standing.get(&row.id) else {
                    find(findings, "standing approval", &row.id, UNTOLD);
                    continue;
                };
                seen += 1;
                let facts: BTreeMap<&str, Value> = row.facts().into_iter().collect();
                let erased = row.pattern.is_empty();
                if told.facts != sum(&facts) || told.revoked_at != row.revoked_at || (!erased && told.pattern != row.pattern_digest()) {
                    find(findings, "standing approval", &row.id, DIFFERS);
                }
            }
            if rows.len() < STEP as usize {
                break;
            }
        }
        if seen < self.standing.len() {
            findings.push(Finding { seq: None, what: format!("standing approval: {GONE}") });
        }
        Ok(())
    }
}
