//! Scores and history of another server. Each row becomes an event that is marked as imported; what was still open there
//! is open here.

use deskmate_db::args;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::report::{Outcome, Report};
use super::rows::{HandoffRow, ProposalRow, Table, TrustRow, text, unpacked};
use super::{ROW, is_known, keep};
use crate::call::Cx;
use crate::cowork::check_domain;
use crate::identity::check_name;
use crate::limits::{CONTENT_BYTES_MAX, NAME_CHARS_MAX, TITLE_CHARS_MAX};
use crate::policy::{self, Act};
use crate::record::Event;
use crate::request::{self, New, Packet, RequestKind, Requester};
use crate::trust::{self, Known, Of, Points};
use crate::{Code, Result, parse_time};

/// Where these rows come from.
const SOURCE: &str = "cowork";

/// Brings in one row. A row that cannot be read is refused alone.
pub(super) fn bring_in(cx: &mut Cx<'_, '_>, table: Table, row: Map<String, Value>, report: &mut Report) -> Result<()> {
    if table == Table::TrustScores {
        return score(cx, row, report);
    }
    let id = match checked(&row) {
        Ok(id) => id,
        Err(why) => {
            let what = format!("{} {}", table.name(), text(&row, "id").unwrap_or("without an id"));
            report.note(table.name(), what, Outcome::Refused, Some(why));
            return Ok(());
        }
    };
    if is_known(cx, SOURCE, table.name(), &id)? {
        report.count(table.name(), Outcome::Known);
        return Ok(());
    }
    let done = match table {
        Table::Proposals => proposal(cx, &row, report)?,
        Table::Handoffs => handoff(cx, &row, report)?,
        _ => Done::Event,
    };
    let local = match done {
        Done::Refused(why) => {
            report.note(table.name(), format!("{} {id}", table.name()), Outcome::Refused, Some(why));
            return Ok(());
        }
        Done::Event => {
            report.count(table.name(), Outcome::Taken);
            None
        }
        Done::Request(local, why) => {
            report.note(table.name(), format!("{} {id}", table.name()), Outcome::Taken, Some(why));
            local
        }
    };
    if report.dry_run {
        return Ok(());
    }
    keep(cx, SOURCE, table.name(), &id, local.as_deref())?;
    tell(cx, table, &id, row, local)
}

/// What a row became.
enum Done {
    /// An event, and nothing else.
    Event,
    /// Something that is open here as well, with what that is. On a dry run it has no id.
    Request(Option<String>, String),
    /// Nothing.
    Refused(String),
}

/// The id of a row that can be taken: bounded, with a time that can be read.
fn checked(row: &Map<String, Value>) -> Result<String, String> {
    let id = text(row, "id").ok_or("it has no id")?;
    if id.is_empty() || id.len() > NAME_CHARS_MAX || id.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("its id cannot be used".to_owned());
    }
    let at = text(row, "created_at").ok_or("it has no created_at")?;
    parse_time("created_at", at).map_err(|error| error.to_string())?;
    let size: usize = row.values().map(|value| value.as_str().map_or_else(|| value.to_string().len(), str::len)).sum();
    if size > CONTENT_BYTES_MAX {
        return Err(format!("it is {size} bytes long; at most {CONTENT_BYTES_MAX} are taken"));
    }
    if row.values().any(|value| value.as_str().is_some_and(|text| text.contains('\0'))) {
        return Err("it contains the NUL character".to_owned());
    }
    Ok(id.to_owned())
}

/// Words of the other server that are kinds and not what somebody wrote.
const WORDS: [&str; 24] = [
    "propose",
    "escalate",
    "log",
    "bulk_approve",
    "bulk_reject",
    "approve",
    "override",
    "proposed",
    "executed",
    "approved",
    "rejected",
    "overridden",
    "agent",
    "human",
    "collaborative",
    "proposal",
    "handoff",
    "action",
    "agent_wrong",
    "human_preference",
    "missing_context",
    "policy_change",
    "edge_case",
    "system",
];

/// Tells the record what stood in the row: kinds, ids and numbers as facts, everything else as payload.
fn tell(cx: &mut Cx<'_, '_>, table: Table, id: &str, row: Map<String, Value>, local: Option<String>) -> Result<()> {
    let at = text(&row, "created_at").map(|at| parse_time("created_at", at)).transpose()?;
    let mut event = Event::new(ROW, format!("imported:{}:{id}", table.name()))
        .fact("imported", true)
        .fact("source", SOURCE)
        .fact("table", table.name())
        .fact("id", id)
        .fact("at", at)
        .fact("request", local);
    for name in ["action_type", "status", "actor", "event_type", "human_decision", "override_type"] {
        if let Some(word) = text(&row, name).filter(|word| WORDS.contains(word)) {
            event = event.fact(name, word);
        }
    }
    if let Some(agent) = text(&row, "agent_id").filter(|agent| check_name("agent", agent).is_ok()) {
        event = event.fact("agent", agent);
    }
    if let Some(domain) = text(&row, "domain").filter(|domain| check_domain("domain", domain).is_ok()) {
        event = event.fact("domain", domain);
    }
    for name in ["confidence", "trust_at_proposal", "threshold_required", "trust_impact", "confidence_at_handoff"] {
        if let Some(number) = row.get(name).and_then(Value::as_f64) {
            event = event.fact(name, Points::of(number).0);
        }
    }
    cx.emit(event.payload(Value::Object(row)))
}

fn parsed<T: DeserializeOwned>(row: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(row.clone())).map_err(|error| error.to_string())
}

/// A score. It is taken as it was; its counts are not, because that server counted each proposal twice and let agents
/// approve themselves: until people here have decided something, the default mode holds the agent back.
fn score(cx: &mut Cx<'_, '_>, row: Map<String, Value>, report: &mut Report) -> Result<()> {
    let kind = Table::TrustScores.name();
    let row: TrustRow = match parsed(&row) {
        Ok(row) => row,
        Err(why) => {
            report.note(kind, "a score", Outcome::Refused, Some(why));
            return Ok(());
        }
    };
    let what = format!("trust of {} in {}", row.agent_id, row.domain);
    let refusal = check_name("agent_id", &row.agent_id).and_then(|()| check_domain("domain", &row.domain)).err().map(|error| error.to_string());
    let refusal = refusal.or_else(|| (!(0.0..=1.0).contains(&row.score)).then(|| format!("its score {} is not between 0 and 1", row.score)));
    let updated_at = match (refusal, parse_time("last_updated", &row.last_updated)) {
        (Some(why), _) => {
            report.note(kind, what, Outcome::Refused, Some(why));
            return Ok(());
        }
        (None, Err(error)) => {
            report.note(kind, what, Outcome::Refused, Some(error.to_string()));
            return Ok(());
        }
        (None, Ok(at)) => at,
    };
    let registered = is_registered(cx, &row.agent_id)? || report.so_far.agents.contains(&row.agent_id);
    if trust::look(cx, &row.agent_id, &row.domain, registered)?.stored.is_some() {
        report.note(kind, what, Outcome::Known, Some("this desk knows the agent in this domain already".to_owned()));
        return Ok(());
    }
    let mut why = format!(
        "the score is {}; its counts ({} acts, {} approved, {} overridden) are kept as history only",
        row.score, row.total_actions, row.approved_actions, row.overridden_actions
    );
    if !registered {
        why.push_str("; nobody proved who this agent is, so the score answers with suggest at best");
    }
    report.note(kind, what, Outcome::Changed, Some(why));
    if report.dry_run {
        return Ok(());
    }
    let known =
        Known { score: Points::of(row.score).clamped(), proposals: 0, approved: 0, overridden: 0, streak: row.consecutive_overrides.max(0), updated_at };
    let of = Of { agent: &row.agent_id, domain: &row.domain, verified: registered, request: None, confidence: None };
    drop(trust::imported(cx, of, &known)?);
    let event = Event::new(ROW, format!("trust:{}:{}", row.agent_id, row.domain))
        .fact("imported", true)
        .fact("source", SOURCE)
        .fact("table", kind)
        .fact("agent", row.agent_id.as_str())
        .fact("domain", row.domain.as_str())
        .fact("score", known.score.0)
        .fact("accuracy", Points::of(row.accuracy).0)
        .fact("total_actions", row.total_actions)
        .fact("approved_actions", row.approved_actions)
        .fact("overridden_actions", row.overridden_actions)
        .fact("consecutive_overrides", row.consecutive_overrides)
        .fact("at", updated_at);
    cx.emit(event)
}

/// Who asked there, if that is somebody who can ask here.
fn requester(cx: &mut Cx<'_, '_>, agent: &str, domain: &str) -> Result<Result<Requester, String>> {
    if let Err(error) = check_name("agent_id", agent).and_then(|()| check_domain("domain", domain)) {
        return Ok(Err(error.to_string()));
    }
    let registered = is_registered(cx, agent)?;
    Ok(Ok(Requester::agent(agent, registered)))
}

fn is_registered(cx: &mut Cx<'_, '_>, agent: &str) -> Result<bool> {
    Ok(cx.tx.optional("select id from agent where id = $1 and state = 'active'", args![agent])?.is_some())
}

/// Makes a request of what was open there. One beyond the agent's flood cap is refused alone.
fn open(cx: &mut Cx<'_, '_>, who: Requester, new: New, report: &mut Report, why: &str) -> Result<Done> {
    let done = if report.dry_run {
        let opened = report.so_far.opened.entry(who.id.clone()).or_default();
        request::check_room(cx, &who, &new.act.domain, *opened).map(|()| {
            *opened += 1;
            Done::Request(None, why.to_owned())
        })
    } else {
        let made = request::submit(cx, New { requester: Some(who), ..new });
        made.map(|made| Done::Request(Some(made.id.clone()), format!("{why}: request {}", made.id)))
    };
    match done {
        Ok(done) => Ok(done),
        Err(error) if error.code == Code::Limited => Ok(Done::Refused(error.message)),
        Err(error) => Err(error),
    }
}

/// A proposal that nobody had decided waits here as well, and always for a person.
fn proposal(cx: &mut Cx<'_, '_>, row: &Map<String, Value>, report: &mut Report) -> Result<Done> {
    let row: ProposalRow = match parsed(row) {
        Ok(row) => row,
        Err(why) => return Ok(Done::Refused(why)),
    };
    if row.human_decision.is_some() || row.auto_approved {
        return Ok(Done::Event);
    }
    let (Some(agent), Some(domain)) = (&row.agent_id, &row.domain) else {
        return Ok(Done::Refused("nobody decided it, and its action is missing, so nobody knows who proposed it".to_owned()));
    };
    let who = match requester(cx, agent, domain)? {
        Ok(who) => who,
        Err(why) => return Ok(Done::Refused(why)),
    };
    let action = row.description.clone().unwrap_or_else(|| "proposed elsewhere".to_owned());
    let arguments = match unpacked(row.proposed_change.clone()) {
        Value::Object(change) => Value::Object(change),
        other => json!({ "raw": other }),
    };
    let act =
        Act { kind: "propose".to_owned(), tool: "cowork_propose".to_owned(), domain: domain.clone(), action: one_line(&action), arguments, ..Act::default() };
    let decision = request::for_people(cx, domain, "medium", "it was proposed to another server, and nobody had decided it there")?;
    let packet = Packet { reasoning: row.reasoning.clone().filter(|text| !text.is_empty()), more: json!({ "imported": facts_of(&row) }), ..Packet::default() };
    let new = New { packet, confidence: row.confidence, ..New::new(RequestKind::Proposal, one_line(&action), act, decision) };
    open(cx, who, new, report, "nobody had decided it; it waits for a person here")
}

/// What the other server said of a proposal, for whoever decides it here.
fn facts_of(row: &ProposalRow) -> Value {
    json!({
        "source": SOURCE,
        "proposal_id": row.id,
        "action_id": row.action_id,
        "trust_at_proposal": row.trust_at_proposal,
        "threshold_required": row.threshold_required,
        "human_reason": row.human_reason,
        "decided_at": row.decided_at,
        "created_at": row.created_at,
    })
}

/// A handoff that nobody had resolved is open here as well, and so is one whose instructions the agent had not fetched:
/// that server took instructions from anybody, so a person here gives them.
fn handoff(cx: &mut Cx<'_, '_>, row: &Map<String, Value>, report: &mut Report) -> Result<Done> {
    let row: HandoffRow = match parsed(row) {
        Ok(row) => row,
        Err(why) => return Ok(Done::Refused(why)),
    };
    let who = match requester(cx, &row.agent_id, &row.domain)? {
        Ok(who) => who,
        Err(why) => return Ok(Done::Refused(why)),
    };
    let unheard = row.resolved_at.is_some() && row.hand_back && !row.instructions_read;
    if row.resolved_at.is_some() && !unheard {
        return Ok(Done::Event);
    }
    let mut packet = unpacked(row.context_packet.clone());
    let mode =
        packet.get("mode").and_then(Value::as_str).filter(|mode| matches!(*mode, "escalate" | "review" | "collaborate")).unwrap_or("escalate").to_owned();
    let context = packet.get_mut("context").map(Value::take).unwrap_or_default();
    let packet = json!({
        "mode": mode,
        "tried": unpacked(row.attempted_actions.clone()),
        "confidence": row.confidence_at_handoff,
        "reasoning": row.reason,
        "context": context,
        "imported": {
            "source": SOURCE,
            "handoff_id": row.id,
            "created_at": row.created_at,
            "resolution": row.resolution,
            "instructions": row.instructions,
            "resolved_at": row.resolved_at,
        },
    });
    let act = Act {
        kind: "handoff".to_owned(),
        tool: "cowork_handoff".to_owned(),
        domain: row.domain.clone(),
        action: mode,
        arguments: packet.clone(),
        ..Act::default()
    };
    let timeout = policy::current(cx)?.settings(&row.domain).handoff.timeout_seconds;
    let decision = request::for_people(cx, &row.domain, "low", "the agent handed this over on another server, and nobody had resolved it")?;
    let told = Packet { reasoning: Some(row.reason.clone()), more: packet, ..Packet::default() };
    let new =
        New { packet: told, confidence: row.confidence_at_handoff, ..New::new(RequestKind::Handoff, one_line(&row.reason), act, decision).escalating(timeout) };
    let why = if unheard {
        "the agent had not fetched its instructions, and who gave them is not known; it is open here, so that a person gives them again"
    } else {
        "nobody had resolved it; it is open here"
    };
    open(cx, who, new, report, why)
}

/// A title: one line, bounded.
pub(super) fn one_line(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut bytes = 0;
    let cut: String = line.trim().chars().take_while(|c| (bytes += c.len_utf8(), bytes <= TITLE_CHARS_MAX).1).collect();
    if cut.is_empty() { "without a description".to_owned() } else { cut }
}
