//! People's corrections of agents, with a proposal or without one: the rows, and the event that tells of each.

use deskmate_db::{Row, args};
use serde_json::json;

use super::words::without_nulls;
use crate::Result;
use crate::call::Cx;
use crate::record::{Event, Kind};
use crate::trust::{Of, Points, Severity};

/// A person corrected an agent.
pub(super) const OVERRIDDEN: Kind = Kind { name: "agent.overridden", says: "A person corrected an agent: said no to a proposal, or to what it did." };

/// A correction to be kept.
pub(crate) struct Overridden<'a> {
    /// Whose act, in which domain, under which request.
    pub(crate) of: Of<'a>,
    /// The type.
    pub(crate) kind: &'a str,
    /// How bad it was.
    pub(crate) severity: Severity,
    /// What it did to trust.
    pub(crate) impact: Points,
    /// Why, in the person's words.
    pub(crate) description: Option<&'a str>,
    /// What the agent did or wanted to do, in the person's words.
    pub(crate) action: Option<&'a str>,
}

/// Keeps a correction and tells the record. Answers its id.
pub(crate) fn overrode(cx: &mut Cx<'_, '_>, said: &Overridden<'_>) -> Result<String> {
    let (id, person, now) = (cx.new_id(), cx.actor.id.clone(), cx.now());
    let severity = said.severity.name();
    cx.tx.execute(
        "insert into override (id, request, agent, domain, type, severity, impact, person, created_at, description) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        args![id, said.of.request, said.of.agent, said.of.domain, said.kind, severity, said.impact.0, person, now, said.description],
    )?;
    let subject = said.of.request.map_or_else(|| format!("agent:{}", said.of.agent), |request| format!("request:{request}"));
    let event = Event::new(OVERRIDDEN, subject)
        .fact("override", id.as_str())
        .fact("request", said.of.request)
        .fact("agent", said.of.agent)
        .fact("domain", said.of.domain)
        .fact("type", said.kind)
        .fact("severity", severity)
        .fact("impact", said.impact.0)
        .fact("person", person)
        .payload(without_nulls(json!({ "description": said.description, "action_description": said.action })))
        .audience([said.of.agent]);
    cx.emit(event)?;
    Ok(id)
}

/// A stored correction.
pub(super) struct OverrideRow {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) impact: i64,
}

impl OverrideRow {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self { id: row.get(0)?, kind: row.get(1)?, impact: row.get(2)? })
    }
}

/// The correction of a request; there is at most one.
pub(super) fn of_request(cx: &mut Cx<'_, '_>, request: &str) -> Result<Option<OverrideRow>> {
    cx.tx.optional("select id, type, impact from override where request = $1", args![request])?.map(|row| OverrideRow::read(&row)).transpose()
}
