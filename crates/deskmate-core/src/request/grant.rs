//! Grants: a single-use permission for exactly what was approved, checked against the record before it is used.

use deskmate_db::{Row, args};
use serde_json::{Map, Value};

use super::events::{GRANTED, REFUSED, REVOKED, USED};
use super::model::Request;
use crate::call::Cx;
use crate::record::{self, Event};
use crate::{Result, hex};

/// A stored grant.
#[derive(Clone, Debug)]
pub(super) struct GrantRow {
    pub(super) id: String,
    pub(super) request: String,
    pub(super) agent: String,
    pub(super) digest: Vec<u8>,
    pub(super) granted_at: i64,
    pub(super) expires_at: i64,
    pub(super) used_at: Option<i64>,
    pub(super) revoked_at: Option<i64>,
}

impl GrantRow {
    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            request: row.get(1)?,
            agent: row.get(2)?,
            digest: row.get(3)?,
            granted_at: row.get(4)?,
            expires_at: row.get(5)?,
            used_at: row.get(6)?,
            revoked_at: row.get(7)?,
        })
    }

    fn subject(&self) -> String {
        format!("grant:{}", self.id)
    }

    /// What never changes about it.
    pub(super) fn facts(&self) -> Map<String, Value> {
        let facts = [
            ("grant", Value::from(self.id.as_str())),
            ("request", Value::from(self.request.as_str())),
            ("agent", Value::from(self.agent.as_str())),
            ("digest", Value::from(hex(&self.digest))),
            ("granted_at", Value::from(self.granted_at)),
            ("expires_at", Value::from(self.expires_at)),
        ];
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Whether it could be used at a moment.
    pub(super) fn is_open(&self) -> bool {
        self.used_at.is_none() && self.revoked_at.is_none()
    }
}

pub(super) const NEWEST: &str = "select id, request, agent, digest, granted_at, expires_at, used_at, revoked_at from act_grant \
     where request = $1 order by granted_at desc, id desc limit 1";
pub(super) const OPEN: &str = "select id, request, agent, digest, granted_at, expires_at, used_at, revoked_at from act_grant \
     where request = $1 and used_at is null and revoked_at is null order by granted_at desc, id desc limit 1";

/// The grant of a request that is open, or else the newest: the clock may have stepped back between two of them.
pub(super) fn newest(cx: &mut Cx<'_, '_>, request: &str) -> Result<Option<GrantRow>> {
    let row = match cx.tx.optional(OPEN, args![request])? {
        Some(row) => Some(row),
        None => cx.tx.optional(NEWEST, args![request])?,
    };
    row.map(|row| GrantRow::read(&row)).transpose()
}

/// Gives the requester its permission.
pub(super) fn issue(cx: &mut Cx<'_, '_>, request: &Request, seconds: i64) -> Result<GrantRow> {
    let now = cx.now();
    let grant = GrantRow {
        id: cx.new_id(),
        request: request.id.clone(),
        agent: request.requester.id.clone(),
        digest: request.digest.clone(),
        granted_at: now,
        expires_at: now.saturating_add(seconds.saturating_mul(1_000_000)),
        used_at: None,
        revoked_at: None,
    };
    cx.tx.execute(
        "insert into act_grant (id, request, agent, digest, granted_at, expires_at) values ($1, $2, $3, $4, $5, $6)",
        args![grant.id, grant.request, grant.agent, grant.digest, grant.granted_at, grant.expires_at],
    )?;
    tell(cx, &grant, GRANTED, None)?;
    Ok(grant)
}

fn tell(cx: &mut Cx<'_, '_>, grant: &GrantRow, kind: record::Kind, more: Option<(&str, Value)>) -> Result<()> {
    let mut event = Event::new(kind, grant.subject()).facts(grant.facts());
    if let Some((name, value)) = more {
        event = event.fact(name, value);
    }
    cx.emit(event.audience([grant.agent.as_str()]))
}

/// Uses a grant up. `false` if it was used or revoked before.
pub(super) fn consume(cx: &mut Cx<'_, '_>, grant: &GrantRow) -> Result<bool> {
    let now = cx.now();
    let used = cx.tx.execute("update act_grant set used_at = $2 where id = $1 and used_at is null and revoked_at is null", args![grant.id, now])?;
    if used == 1 {
        tell(cx, grant, USED, Some(("used_at", Value::from(now))))?;
    }
    Ok(used == 1)
}

/// Revokes the grant of a request if it is unused. Answers whether there was one.
pub(super) fn revoke(cx: &mut Cx<'_, '_>, request: &str) -> Result<bool> {
    let Some(grant) = newest(cx, request)?.filter(GrantRow::is_open) else { return Ok(false) };
    let now = cx.now();
    cx.tx.execute("update act_grant set revoked_at = $2 where id = $1", args![grant.id, now])?;
    tell(cx, &grant, REVOKED, Some(("revoked_at", Value::from(now))))?;
    Ok(true)
}

/// What the record says about a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// The row is what the record tells.
    Fits,
    /// It is not.
    Differs,
    /// It is not, and that was told before.
    Refused,
}

/// Compares a grant with its events, and those with the signed tree.
pub(super) fn check(cx: &mut Cx<'_, '_>, grant: &GrantRow) -> Result<Checked> {
    let told = record::told_of(cx.tx, &grant.subject(), 10)?;
    if told.iter().any(|told| told.body.kind == REFUSED.name) {
        return Ok(Checked::Refused);
    }
    let Some(issued) = told.iter().find(|told| told.body.kind == GRANTED.name) else { return Ok(Checked::Differs) };
    let same = grant.facts().iter().all(|(name, value)| issued.body.facts.get(name) == Some(value));
    let ended = told.iter().any(|told| told.body.kind == USED.name || told.body.kind == REVOKED.name);
    if !same || ended == grant.is_open() {
        return Ok(Checked::Differs);
    }
    // Somebody who rewrites the row may rewrite the event's row too, but not the tree up to the signed checkpoint.
    let proved = match issued.seq {
        None => true,
        Some(seq) => {
            let keys = cx.keys.clone();
            record::prove(cx.tx, seq, &keys).and_then(|proof| record::check_proof(&proof, &keys)).is_ok()
        }
    };
    Ok(if proved { Checked::Fits } else { Checked::Differs })
}

/// Tells the record that a grant was not what the record tells.
pub(super) fn refuse(cx: &mut Cx<'_, '_>, grant: &GrantRow) -> Result<()> {
    tell(cx, grant, REFUSED, None)
}
