//! A person's word for acts like one that they saw, for a while. It stands in for trust, and for nothing else.

use std::collections::BTreeSet;

use deskmate_db::{Row, args};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::events::{STANDING, STANDING_ENDED};
use super::model::Request;
use super::rows;

use crate::call::{Cx, PageIn};
use crate::limits::{CONDITION_BYTES_MAX, STANDING_HOURS_MAX};
use crate::policy::{Act, changed_paths};
use crate::record::{self, Event};
use crate::{Error, Result, hex};

/// What makes an act like another one: the same verb, tool, action and place, and no other changed paths than that one had,
/// in whatever form either says them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pattern {
    kind: String,
    tool: String,
    environment: String,
    action: String,
    changed: BTreeSet<String>,
}

impl Pattern {
    /// Acts like this one; `None` where what it changes cannot be told path by path.
    pub(super) fn of(act: &Act) -> Option<Self> {
        let changed = changed_paths(act).filter(|paths| paths.iter().map(String::len).sum::<usize>() <= CONDITION_BYTES_MAX)?;
        Some(Self { kind: act.kind.clone(), tool: act.tool.clone(), environment: act.environment.clone(), action: act.action.clone(), changed })
    }

    /// Whether an act is like it. What came from outside, unlike the act that the person saw, is never like it.
    pub(super) fn covers(&self, act: &Act) -> bool {
        act.taint.is_empty()
            && self.kind == act.kind
            && self.tool == act.tool
            && self.environment == act.environment
            && self.action == act.action
            && changed_paths(act).is_some_and(|changed| changed.is_subset(&self.changed))
    }
}

/// A stored standing approval.
#[derive(Clone, Debug)]
pub(super) struct StandingRow {
    pub(super) id: String,
    pub(super) request: String,
    pub(super) agent: String,
    pub(super) domain: String,
    pub(super) pattern: String,
    pub(super) person: String,
    pub(super) created_at: i64,
    pub(super) expires_at: i64,
    pub(super) revoked_at: Option<i64>,
}

impl StandingRow {
    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            request: row.get(1)?,
            agent: row.get(2)?,
            domain: row.get(3)?,
            pattern: row.get(4)?,
            person: row.get(5)?,
            created_at: row.get(6)?,
            expires_at: row.get(7)?,
            revoked_at: row.get(8)?,
        })
    }

    pub(super) fn subject(&self) -> String {
        format!("standing_approval:{}", self.id)
    }

    /// What the record says of it.
    pub(super) fn facts(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("standing_approval", Value::from(self.id.as_str())),
            ("request", Value::from(self.request.as_str())),
            ("agent", Value::from(self.agent.as_str())),
            ("domain", Value::from(self.domain.as_str())),
            ("person", Value::from(self.person.as_str())),
            ("created_at", Value::from(self.created_at)),
            ("expires_at", Value::from(self.expires_at)),
        ]
    }

    /// A digest of the pattern, salted with the unguessable id of the row.
    pub(super) fn pattern_digest(&self) -> String {
        hex(&Sha256::new().chain_update(&self.id).chain_update(&self.pattern).finalize())
    }
}

pub(super) const OF_AGENT: &str = "select id, request, agent, domain, pattern, person, created_at, expires_at, revoked_at from standing_approval \
     where agent = $1 and domain = $2 and expires_at > $3 and revoked_at is null order by expires_at, id limit 50";

/// The request whose standing approval stands in for trust in an act of an agent, if there is one that a person who may
/// still decide gave.
pub fn waived_by(cx: &mut Cx<'_, '_>, agent: &str, act: &Act) -> Result<Option<String>> {
    let now = cx.now();
    let rows = cx.tx.query(OF_AGENT, args![agent, act.domain, now])?;
    for row in &rows {
        let row = StandingRow::read(row)?;
        // One of an earlier version, which kept the names of fields alone, cannot be read, and covers nothing.
        let covers = serde_json::from_str::<Pattern>(&row.pattern).is_ok_and(|pattern| pattern.covers(act));
        if covers && is_told(cx, &row)? && super::access::may_decide_in(cx, &row.person, &row.domain)? {
            return Ok(Some(row.request));
        }
    }
    Ok(None)
}

/// Whether the record tells the same of it.
fn is_told(cx: &mut Cx<'_, '_>, row: &StandingRow) -> Result<bool> {
    let told = record::told_of(cx.tx, &row.subject(), 2)?;
    let ended = told.iter().any(|told| told.body.kind == STANDING_ENDED.name);
    let given = told.iter().find(|told| told.body.kind == STANDING.name);
    let same = given.is_some_and(|told| {
        row.facts().iter().all(|(name, value)| told.body.facts.get(*name) == Some(value))
            && told.body.facts.get("pattern") == Some(&Value::from(row.pattern_digest()))
    });
    Ok(same && !ended)
}

/// Lets acts like this one pass without trust for some hours.
pub(super) fn give(cx: &mut Cx<'_, '_>, request: &Request, hours: u32) -> Result<StandingRow> {
    if hours == 0 || hours > STANDING_HOURS_MAX {
        return Err(Error::invalid("hours", format!("must be between 1 and {STANDING_HOURS_MAX}")));
    }
    let pattern = Pattern::of(&request.act()?).ok_or_else(super::remember::unclear)?;
    let row = StandingRow {
        id: cx.new_id(),
        request: request.id.clone(),
        agent: request.requester.id.clone(),
        domain: request.domain.clone(),
        pattern: rows::text("pattern", &pattern)?,
        person: cx.actor.id.clone(),
        created_at: cx.now(),
        expires_at: cx.now() + i64::from(hours) * 3_600_000_000,
        revoked_at: None,
    };
    cx.tx.execute(
        "insert into standing_approval (id, request, agent, domain, pattern, person, created_at, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8)",
        args![row.id, row.request, row.agent, row.domain, row.pattern, row.person, row.created_at, row.expires_at],
    )?;
    let mut event = Event::new(STANDING, row.subject()).fact("pattern", row.pattern_digest());
    for (name, value) in row.facts() {
        event = event.fact(name, value);
    }
    cx.emit(event.payload(json!({ "pattern": pattern })).audience([row.agent.as_str()]))?;
    Ok(row)
}

pub(super) const OF_REQUEST: &str = "select id, request, agent, domain, pattern, person, created_at, expires_at, revoked_at from standing_approval \
     where request = $1 and revoked_at is null order by id limit 50";

/// Ends what was given with an approval.
pub(super) fn end_of_request(cx: &mut Cx<'_, '_>, request: &str) -> Result<()> {
    let rows = cx.tx.query(OF_REQUEST, args![request])?;
    for row in &rows {
        end(cx, &StandingRow::read(row)?)?;
    }
    Ok(())
}

pub(super) fn end(cx: &mut Cx<'_, '_>, row: &StandingRow) -> Result<()> {
    let now = cx.now();
    cx.tx.execute("update standing_approval set revoked_at = $2 where id = $1 and revoked_at is null", args![row.id, now])?;
    let event = Event::new(STANDING_ENDED, row.subject()).fact("standing_approval", row.id.as_str()).fact("revoked_at", now);
    cx.emit(event.audience([row.agent.as_str()]))
}

pub(super) const PAGE: &str = "select id, request, agent, domain, pattern, person, created_at, expires_at, revoked_at from standing_approval \
     where (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3";

/// Standing approvals, newest first, with one more than the page.
pub(super) fn page(cx: &mut Cx<'_, '_>, page: &PageIn) -> Result<Vec<StandingRow>> {
    let (time, id) = page.after.clone().unwrap_or((i64::MAX, String::new()));
    cx.tx.query(PAGE, args![time, id, page.look_ahead()])?.iter().map(StandingRow::read).collect()
}

/// A person ends a standing approval. Whoever may decide in its domain may: it only makes the desk stricter.
pub(super) fn revoke(cx: &mut Cx<'_, '_>, id: &str) -> Result<StandingRow> {
    let row = cx
        .tx
        .optional("select id, request, agent, domain, pattern, person, created_at, expires_at, revoked_at from standing_approval where id = $1", args![id])?;
    let mut row = row.map(|row| StandingRow::read(&row)).transpose()?.ok_or_else(|| Error::not_found(format!("there is no standing approval {id}")))?;
    let person = cx.actor.id.clone();
    if !cx.actor.is_person() || !super::access::may_decide_in(cx, &person, &row.domain)? {
        return Err(Error::forbidden(format!("your role does not cover the domain {}", row.domain)));
    }
    if row.revoked_at.is_some() {
        return Err(Error::conflict("it was ended before"));
    }
    end(cx, &row)?;
    row.revoked_at = Some(cx.now());
    Ok(row)
}
