//! What an agent did, and what was done to it, newest first: the record, read by its indexes.

use std::collections::{BTreeMap, BTreeSet};

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::subject::subject;
use crate::call::Cx;
use crate::limits::{AUDIT_LOG_MAX, AUDIT_SCAN_MAX, AUDIT_SUMMARY_MAX, TITLE_CHARS_MAX};
use crate::record::{self, EventRow, Search};
use crate::request::State;
use crate::{Error, Result, check_text, format_time, parse_time};

/// What the record tells of an agent, newest first: what it did, and what was done to it. Each line says what came of it; what waits for people says
/// how that stands. A summary of the last 30 days comes with it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AuditLog {
    /// The agent's id or name.
    pub(super) agent_id: String,
    /// Only what happened at this moment or later, for example `2026-11-15T09:30:00Z`.
    pub(super) start_time: Option<String>,
    /// Only what happened before this moment.
    pub(super) end_time: Option<String>,
    /// Only actions with this text in their name, tool, verb or domain, in capitals or not.
    pub(super) action_filter: Option<String>,
    /// How many; between 1 and 1,000, and 100 if not given.
    pub(super) limit: Option<i64>,
    /// Where the previous page ended.
    pub(super) cursor: Option<String>,
}

/// A part of an agent's log.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Log {
    /// The summary and the newest of it in words, for people.
    message: String,
    /// The agent's name.
    agent: String,
    /// The last 30 days.
    summary: Summary,
    /// What happened, newest first.
    entries: Vec<Entry>,
    /// Give this as `cursor` for the next page. Absent at the end. A page may be short, even empty, before the end.
    #[serde(rename = "next_cursor", skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// The last 30 days.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Summary {
    /// How many events were counted.
    total: usize,
    /// Whether these are all; otherwise only the newest were counted.
    complete: bool,
    /// Acts that were denied.
    blocked: usize,
    /// Requests that it made.
    requests: usize,
    /// How often each kind of event came, the most frequent first.
    top_actions: Vec<Counted>,
}

/// How often something came.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// The kind of event.
    pub action: String,
    /// How often.
    pub count: usize,
}

/// What came of something.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Outcome {
    Success,
    Failure,
    Blocked,
    Pending,
}

impl Outcome {
    /// The stable name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::Failure => "FAILURE",
            Self::Blocked => "BLOCKED",
            Self::Pending => "PENDING",
        }
    }
}

/// One event.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    /// Its place in the record; desk_record_prove proves it.
    pub(super) seq: u64,
    /// Its id.
    pub(super) id: String,
    /// When it happened.
    pub(super) timestamp: String,
    /// Who did it.
    pub(super) actor: String,
    /// `agent`, `person` or `system`.
    pub(super) actor_kind: String,
    /// What happened.
    pub(super) action: String,
    /// To what.
    pub(super) target: String,
    /// What came of it, as far as is known now.
    pub(super) outcome: Outcome,
    /// The request that it is about, as it stands now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<RequestNow>,
    /// Ids, kinds and numbers.
    pub(super) facts: Map<String, Value>,
}

/// A request as it stands now.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestNow {
    pub(super) request_id: String,
    pub(super) state: State,
    /// The person who decided, or `desk`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decided_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decided_at: Option<String>,
}

/// How far the clocks of the servers of one desk may be apart, in microseconds.
const CLOCKS_APART: i64 = 3_600_000_000;
/// How many events are read at once where not all of them fit.
const PAGE_LEAST: usize = 200;
const SUMMARY_DAYS: i64 = 30 * 86_400_000_000;

pub(super) const OWN: &str = "select seq, kind from event where actor = $1 and seq >= $2 order by seq desc limit $3";
pub(super) const ABOUT: &str = "select seq, kind from event where subject = $1 and seq >= $2 order by seq desc limit $3";
// The kind as an expression, so that no planner takes the index of kinds and reads through everybody's denials.
pub(super) const DENIALS: &str = "select body from event where subject = $1 and kind || '' = 'act.denied' and seq >= $2 order by seq desc limit $3";
/// How many denials are looked into for the rules that forbade them.
const DENIALS_MAX: i64 = 200;
const STANDS: &str = "select state, decided_by, decided_at, expires_at from request where id = $1";

pub(super) fn log(cx: &mut Cx<'_, '_>, input: AuditLog) -> Result<Log> {
    let Found { agent, events, next } = find(cx, input)?;
    let summary = summary(cx, &agent)?;
    let entries = events.into_iter().map(|event| entry(cx, event)).collect::<Result<Vec<_>>>()?;
    Ok(Log { message: in_words(&agent, &summary, &entries), agent, summary, entries, next_cursor: next.map(|seq| seq.to_string()) })
}

/// How many lines are told in words.
const WORDS: usize = 20;

fn in_words(agent: &str, summary: &Summary, entries: &[Entry]) -> String {
    let Summary { total, blocked, requests, complete, .. } = summary;
    let at_least = if *complete { "" } else { "at least " };
    let mut lines = vec![format!("{agent}, last 30 days: {at_least}{total} events, {blocked} acts denied, {requests} requests.")];
    lines.extend(entries.iter().take(WORDS).map(|entry| format!("{} {} by {} ({})", entry.timestamp, entry.action, entry.actor, entry.outcome.name())));
    if entries.len() > WORDS {
        lines.push(format!("… and {} more on this page.", entries.len() - WORDS));
    }
    lines.join("\n")
}

/// Events of an agent's log.
pub(super) struct Found {
    pub(super) agent: String,
    pub(super) events: Vec<EventRow>,
    /// Where to go on.
    pub(super) next: Option<u64>,
}

/// The events that fit, newest first.
pub(super) fn find(cx: &mut Cx<'_, '_>, input: AuditLog) -> Result<Found> {
    let limit = input.limit.unwrap_or(100);
    if !(1..=AUDIT_LOG_MAX).contains(&limit) {
        return Err(Error::invalid("limit", format!("must be between 1 and {AUDIT_LOG_MAX}")));
    }
    let filter = input.action_filter.unwrap_or_default().to_lowercase();
    check_text("actionFilter", &filter, TITLE_CHARS_MAX)?;
    let moment = |field: &str, text: Option<&String>| text.map(|text| parse_time(field, text)).transpose();
    let (since, until) = (moment("startTime", input.start_time.as_ref())?, moment("endTime", input.end_time.as_ref())?);
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        return Err(Error::invalid("endTime", "must be after startTime"));
    }
    let cursor = input.cursor.map(|cursor| cursor.parse::<u64>().map_err(|_| Error::invalid("cursor", "is not a cursor that this operation gave out")));
    let agent = subject(cx, &input.agent_id)?.agent;
    let first = since.map(|since| record::place_at(cx.tx, since.saturating_sub(CLOCKS_APART))).transpose()?.unwrap_or(0);
    let end = until.map(|until| record::place_at(cx.tx, until.saturating_add(CLOCKS_APART))).transpose()?;
    let mut before = cursor.transpose()?.into_iter().chain(end).min();
    let actor = cx.actor.clone();
    let fits = |event: &EventRow| {
        let in_time = || parse_time("at", &event.at).is_ok_and(|at| since.is_none_or(|since| at >= since) && until.is_none_or(|until| at < until));
        event.seq >= first && is_of(event, &agent) && event.visible_to(&actor) && in_time() && says(event, &filter)
    };
    let (limit, mut found, mut looked) = (usize::try_from(limit).unwrap_or(1), Vec::new(), 0);
    // Where most of it may not fit, many small pages would cost more than a few large ones.
    let mut wanted = if filter.is_empty() { limit + 1 } else { PAGE_LEAST.max(limit + 1) };
    let next = loop {
        let (page, is_last) = page(cx, &agent, before, wanted)?;
        wanted = wanted.max(PAGE_LEAST);
        looked += page.len();
        before = page.last().map(|event| event.seq).or(before);
        let is_last = is_last || page.last().is_some_and(|event| event.seq <= first);
        found.extend(page.into_iter().filter(&fits));
        if found.len() > limit {
            found.truncate(limit);
            break found.last().map(|event: &EventRow| event.seq);
        }
        if is_last {
            break None;
        }
        if looked >= AUDIT_SCAN_MAX {
            break before;
        }
    };
    Ok(Found { agent, events: found, next })
}

/// The next events below a place of what an agent did and of what was done to it, merged, and whether there are no more.
fn page(cx: &mut Cx<'_, '_>, agent: &str, before: Option<u64>, wanted: usize) -> Result<(Vec<EventRow>, bool)> {
    let limit = u32::try_from(wanted.min(AUDIT_SCAN_MAX)).unwrap_or(u32::MAX);
    let own = Search { actor: Some(agent.to_owned()), before, limit, ..Search::default() };
    let about = Search { subject: Some(format!("agent:{agent}")), before, limit, ..Search::default() };
    let (mut merged, mut floor, mut is_last) = (BTreeMap::new(), 0, true);
    for search in [own, about] {
        let page = record::search_heads(cx.tx, &search)?;
        // Of a full page nothing is known below its end, so what the other has there comes with the next one.
        if page.len() >= limit as usize {
            is_last = false;
            floor = floor.max(page.last().map_or(0, |event| event.seq));
        }
        merged.extend(page.into_iter().map(|event| (event.seq, event)));
    }
    Ok((merged.into_values().rev().filter(|event| event.seq >= floor).collect(), is_last))
}

/// People may be called like agents: what they did is not the agent's.
fn is_of(event: &EventRow, agent: &str) -> bool {
    (event.actor == agent && event.actor_kind == "agent") || event.subject.strip_prefix("agent:") == Some(agent)
}

fn says(event: &EventRow, filter: &str) -> bool {
    let fact = |name: &str| event.facts.get(name).and_then(Value::as_str).is_some_and(|text| text.to_lowercase().contains(filter));
    filter.is_empty() || event.kind.to_lowercase().contains(filter) || ["tool", "verb", "domain", "request_kind", "mount"].into_iter().any(fact)
}

pub(super) fn entry(cx: &mut Cx<'_, '_>, event: EventRow) -> Result<Entry> {
    let request = event.subject.strip_prefix("request:").or_else(|| event.facts.get("request").and_then(Value::as_str)).map(str::to_owned);
    let request = match request {
        Some(id) => stands(cx, id)?,
        None => None,
    };
    let outcome = outcome(&event, request.as_ref());
    Ok(Entry {
        seq: event.seq,
        id: event.id,
        timestamp: event.at,
        actor: event.actor,
        actor_kind: event.actor_kind,
        action: event.kind,
        target: event.subject,
        outcome,
        request,
        facts: event.facts,
    })
}

fn stands(cx: &mut Cx<'_, '_>, request_id: String) -> Result<Option<RequestNow>> {
    let Some(row) = cx.tx.optional(STANDS, args![request_id])? else { return Ok(None) };
    let state = State::from_name(&row.get::<String>(0)?)?;
    let state = if state == State::Pending && row.get::<i64>(3)? <= cx.now() { State::Expired } else { state };
    Ok(Some(RequestNow { request_id, state, decided_by: row.get(1)?, decided_at: row.get::<Option<i64>>(2)?.map(format_time) }))
}

fn outcome(event: &EventRow, request: Option<&RequestNow>) -> Outcome {
    let fact = |name: &str| event.facts.get(name).and_then(Value::as_str).unwrap_or_default();
    match (event.kind.as_str(), request.map(|request| request.state)) {
        ("act.denied" | "act.questioned" | "call.denied" | "call.refused" | "request.rejected" | "grant.refused", _)
        | ("request.created" | "call.held", Some(State::Rejected | State::Expired)) => Outcome::Blocked,
        ("request.created" | "call.held" | "agent.waits", Some(State::Pending)) => Outcome::Pending,
        ("request.created" | "call.held", Some(State::Failed | State::Ambiguous)) => Outcome::Failure,
        _ if ["outcome", "state"].into_iter().any(|name| matches!(fact(name), "failed" | "failure" | "error" | "ambiguous")) => Outcome::Failure,
        _ => Outcome::Success,
    }
}

/// What is told of an agent's acts in 30 days, for whoever asks how it stands.
pub(super) struct Told {
    pub(super) blocked: usize,
    /// How often a rule forbade one.
    pub(super) violations: usize,
    pub(super) top_actions: Vec<Counted>,
}

pub(super) fn told(cx: &mut Cx<'_, '_>, agent: &str) -> Result<Told> {
    let Summary { blocked, top_actions, .. } = summary(cx, agent)?;
    let mut violations = 0;
    if blocked > 0 {
        let first = i64::try_from(record::place_at(cx.tx, cx.now().saturating_sub(SUMMARY_DAYS))?).unwrap_or(i64::MAX);
        for row in &cx.tx.query(DENIALS, args![format!("agent:{agent}"), first, DENIALS_MAX])? {
            let body: Value = serde_json::from_str(&row.get::<String>(0)?).unwrap_or_default();
            violations += body.pointer("/facts/rules").and_then(Value::as_array).map_or(0, Vec::len);
        }
    }
    Ok(Told { blocked, violations, top_actions })
}

/// Counts the newest events of 30 days, without reading what is in them.
fn summary(cx: &mut Cx<'_, '_>, agent: &str) -> Result<Summary> {
    let first = i64::try_from(record::place_at(cx.tx, cx.now().saturating_sub(SUMMARY_DAYS))?).unwrap_or(i64::MAX);
    let own = cx.tx.query(OWN, args![agent, first, AUDIT_SUMMARY_MAX])?;
    let about = cx.tx.query(ABOUT, args![format!("agent:{agent}"), first, AUDIT_SUMMARY_MAX])?;
    let complete = [&own, &about].iter().all(|rows| rows.len() < AUDIT_SUMMARY_MAX as usize);
    let (mut seen, mut kinds): (BTreeSet<i64>, BTreeMap<String, usize>) = (BTreeSet::new(), BTreeMap::new());
    for row in own.iter().chain(&about) {
        if seen.insert(row.get(0)?) {
            *kinds.entry(row.get(1)?).or_default() += 1;
        }
    }
    let count = |names: &[&str]| names.iter().filter_map(|name| kinds.get(*name)).sum();
    let (blocked, requests) = (count(&["act.denied", "call.denied"]), count(&["request.created"]));
    let mut top: Vec<Counted> = kinds.into_iter().map(|(action, count)| Counted { action, count }).collect();
    top.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.action.cmp(&b.action)));
    top.truncate(5);
    Ok(Summary { total: seen.len(), complete, blocked, requests, top_actions: top })
}
