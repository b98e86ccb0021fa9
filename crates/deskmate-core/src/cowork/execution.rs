//! What was done, as it was reported: the rows, and the event that tells of each.

use deskmate_db::{Row, args};
use serde_json::{Value, json};

use crate::call::Cx;
use crate::record::{Event, Kind};
use crate::{Result, protection};

/// Something was done.
pub(super) const LOGGED: Kind = Kind { name: "action.logged", says: "An actor reported what it did, with the request it belongs to or without one." };

/// The action of a report that the desk itself makes of a call that it handed on, and where its body names the call.
pub(super) const HANDED_ON: &str = "gateway_call";
pub(super) const CALL: &str = "call";

/// How what was done compares with what was approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matches {
    /// It is the same.
    Exact,
    /// It is something else.
    Differs,
    /// Nobody said.
    NotTold,
    /// There is nothing to compare with.
    Nothing,
}

impl Matches {
    /// The stable name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Differs => "differs",
            Self::NotTold => "not_told",
            Self::Nothing => "nothing",
        }
    }
}

/// A report to be kept.
pub(super) struct Execution {
    pub(super) id: String,
    pub(super) request: Option<String>,
    /// A proposal that was named and is not there for the reporter.
    pub(super) unknown: bool,
    pub(super) grant: Option<String>,
    pub(super) agent: String,
    pub(super) domain: String,
    pub(super) claimed: String,
    pub(super) derived: &'static str,
    pub(super) outcome: &'static str,
    pub(super) matches: &'static str,
    pub(super) cost: i64,
    pub(super) quality: Option<i64>,
    pub(super) started_at: Option<i64>,
    pub(super) action: String,
    pub(super) reasoning: String,
    pub(super) body: Value,
}

/// Keeps a report and tells the record.
pub(super) fn keep(cx: &mut Cx<'_, '_>, report: &Execution) -> Result<()> {
    let (now, kind) = (cx.now(), cx.actor.kind.name());
    // A report is a trace: what it repeats of secrets and people is not kept in its row either.
    let redactor = protection::redactor(cx);
    let (action, reasoning) = (redactor.text(&report.action).text, redactor.text(&report.reasoning).text);
    let body = redactor.value(&report.body).value.to_string();
    cx.tx.execute(
        "insert into execution (id, request, grant_id, actor_kind, agent, domain, claimed_actor, derived_actor, outcome, matches, cost, quality, unknown, \
         silent, started_at, created_at, action, reasoning, body) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
        args![
            report.id,
            report.request,
            report.grant,
            kind,
            report.agent,
            report.domain,
            report.claimed,
            report.derived,
            report.outcome,
            report.matches,
            report.cost,
            report.quality,
            report.unknown,
            report.reasoning.trim().is_empty(),
            report.started_at,
            now,
            action,
            reasoning,
            body
        ],
    )?;
    let subject = report.request.as_ref().map_or_else(|| format!("execution:{}", report.id), |request| format!("request:{request}"));
    let mut event = Event::new(LOGGED, subject)
        .fact("execution", report.id.as_str())
        .fact("agent", report.agent.as_str())
        .fact("domain", report.domain.as_str())
        .fact("claimed_actor", report.claimed.as_str())
        .fact("derived_actor", report.derived)
        .fact("outcome", report.outcome)
        .fact("matches", report.matches)
        .fact("cost", report.cost)
        .fact("unknown", report.unknown)
        .fact("silent", report.reasoning.trim().is_empty())
        .payload(json!({ "action": report.action, "reasoning": report.reasoning, "body": report.body }));
    let optional = [("request", report.request.as_deref().map(Value::from)), ("grant", report.grant.as_deref().map(Value::from))];
    let numbers = [("quality", report.quality.map(Value::from)), ("started_at", report.started_at.map(Value::from))];
    for (name, value) in optional.into_iter().chain(numbers) {
        if let Some(value) = value {
            event = event.fact(name, value);
        }
    }
    cx.emit(event)
}

/// A stored report.
pub(super) struct ExecutionRow {
    pub(super) id: String,
    pub(super) request: Option<String>,
    pub(super) grant: Option<String>,
    pub(super) agent: String,
    pub(super) domain: String,
    pub(super) claimed: String,
    pub(super) derived: String,
    pub(super) outcome: String,
    pub(super) matches: String,
    pub(super) cost: i64,
    pub(super) quality: Option<i64>,
    pub(super) unknown: bool,
    pub(super) silent: bool,
    pub(super) started_at: Option<i64>,
    pub(super) created_at: i64,
    pub(super) action: Option<String>,
}

impl ExecutionRow {
    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            request: row.get(1)?,
            grant: row.get(2)?,
            agent: row.get(3)?,
            domain: row.get(4)?,
            claimed: row.get(5)?,
            derived: row.get(6)?,
            outcome: row.get(7)?,
            matches: row.get(8)?,
            cost: row.get(9)?,
            quality: row.get(10)?,
            unknown: row.get(11)?,
            silent: row.get(12)?,
            started_at: row.get(13)?,
            created_at: row.get(14)?,
            action: row.get(15)?,
        })
    }
}

const OF_REQUEST: &str = "select id, request, grant_id, agent, domain, claimed_actor, derived_actor, outcome, matches, cost, quality, unknown, silent, \
     started_at, created_at, action from execution where request = $1 order by created_at, id limit 200";

/// Everything that was reported of a request, oldest first.
pub(super) fn of_request(cx: &mut Cx<'_, '_>, request: &str) -> Result<Vec<ExecutionRow>> {
    cx.tx.query(OF_REQUEST, args![request])?.iter().map(ExecutionRow::read).collect()
}

/// What keeps reports of a request from telling that it was done exactly as it was approved. `are_needed` says whether they alone tell that it
/// was done. What a person says of it without settling anything counts for nothing here, and who does not know yet whether it was done need
/// not say what was.
pub(super) fn wanting<'r>(reports: impl IntoIterator<Item = &'r ExecutionRow>, are_needed: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let (mut is_reported, mut is_told) = (!are_needed, !are_needed);
    for row in reports.into_iter().filter(|row| row.grant.is_some() || row.derived != "human") {
        if row.grant.is_none() {
            problems.push(format!("the report {} is covered by no grant", row.id));
        } else if row.outcome == "done" {
            is_reported = true;
            is_told |= row.matches != "not_told";
        }
        if row.matches == "differs" {
            problems.push(format!("the report {} says that something else was done than was approved", row.id));
        }
    }
    match (is_reported, is_told) {
        (false, _) => problems.push("no report of what was done".to_owned()),
        (true, false) => problems.push("no report says what was done".to_owned()),
        (true, true) => {}
    }
    problems
}

/// What a report says was really changed, unless it does not say so or that was erased; with its size in bytes.
pub(super) fn executed_change(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<(Value, usize)>> {
    let row = cx.tx.optional("select body from execution where id = $1", args![id])?;
    let Some(text) = row.map(|row| row.get::<Option<String>>(0)).transpose()?.flatten() else { return Ok(None) };
    let body: Option<Value> = serde_json::from_str(&text).ok();
    Ok(body.and_then(|mut body| body.get_mut("executed_change").map(Value::take)).map(|change| (change, text.len())))
}

/// The call that the desk handed on and saw end, of a report that the desk itself made.
pub(super) fn observed_call(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<String>> {
    let row = cx.tx.optional("select body from execution where id = $1 and action = $2", args![id, HANDED_ON])?;
    let text = row.map(|row| row.get::<Option<String>>(0)).transpose()?.flatten();
    let body: Option<Value> = text.and_then(|text| serde_json::from_str(&text).ok());
    Ok(body.and_then(|body| body.get(CALL).and_then(Value::as_str).map(str::to_owned)))
}

const SINCE: &str = "select id, request, grant_id, agent, domain, claimed_actor, derived_actor, outcome, matches, cost, quality, unknown, silent, \
     started_at, created_at, action from execution where (created_at, id) > ($1, $2) and created_at <= $3 order by created_at, id limit $4";

/// Reports between two moments, oldest first, after a place.
pub(super) fn between(cx: &mut Cx<'_, '_>, after: &(i64, String), until: i64, limit: u32) -> Result<Vec<ExecutionRow>> {
    cx.tx.query(SINCE, args![after.0, after.1, until, limit])?.iter().map(ExecutionRow::read).collect()
}
