//! The whole chain of one proposal, propose → policy → decision → grant → execution → outcome, read from the record with
//! the places of its events and a proof for each.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::execution::{self, ExecutionRow};
use super::words;
use crate::call::Cx;
use crate::limits::{PAGE_BYTES_MAX, PAGE_MAX};
use crate::policy::{PolicyRef, Reason};
use crate::record::{self, EventRow, Proof, Search};
use crate::request::{self, Request, RequestKind, State};
use crate::trust::Points;
use crate::workspace::plan;
use crate::{Result, format_time, parse_time};

/// How many events of one chain are shown.
const CHAIN_MAX: usize = 300;

/// See the whole chain of a proposal: what was proposed, what policy said, who decided, the grant, what was done and what
/// came of it, with the places of the events in the sealed record and a proof for each. An agent sees its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditTrail {
    /// The proposal.
    proposal_id: String,
    /// Whether to leave the proofs out, which are long.
    #[serde(default)]
    without_proofs: bool,
}

/// One link of the chain.
#[derive(Serialize, JsonSchema)]
pub(super) struct Link {
    /// `propose`, `policy`, `decision`, `grant`, `execution`, `outcome` or `note`.
    stage: &'static str,
    /// Its place in the record.
    seq: u64,
    /// The kind of event.
    kind: String,
    /// When.
    at: String,
    /// Who acted: `person`, `agent` or `system`.
    actor_kind: String,
    /// The actor's id.
    actor: String,
    /// Whether a credential proved who acted.
    verified: bool,
    /// What happened, in ids, kinds and numbers.
    facts: Map<String, Value>,
}

/// What policy said.
#[derive(Serialize, JsonSchema)]
pub(super) struct Attribution {
    /// The answer.
    mode: String,
    /// The policies that were applied, with their versions.
    policies: Vec<PolicyRef>,
    /// The digest of everything that was in force.
    rulebook: String,
    /// The rules that fired.
    rules: Vec<String>,
    /// What the answer came from; what would change it is for people only.
    reasons: Vec<Reason>,
}

/// The trail in the form of earlier cowork servers.
#[derive(Serialize, JsonSchema)]
pub(super) struct TrailOut {
    /// The proposal.
    id: String,
    /// The agent.
    agent_id: String,
    /// The domain.
    domain: String,
    /// What was proposed.
    action: Option<String>,
    /// `proposed`, `approved`, `rejected`, `expired`, `cancelled`, `superseded`, `executed` or `verified`.
    status: String,
    /// How the request stands.
    state: State,
    /// When it was proposed.
    proposal_timestamp: String,
    /// When it was approved, or null.
    approved_timestamp: Option<String>,
    /// When it was done, or null.
    executed_timestamp: Option<String>,
    /// The trace of a proxy that saw it being done, or null.
    sentry_trace_id: Option<String>,
    /// Who decided: a person's id, or `desk` when policy let it pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    /// The batch that it was decided in.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_id: Option<String>,
    /// How what was done compares with what was approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<String>,
    /// What policy said; absent once it was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Attribution>,
    /// In words.
    notes: String,
}

/// A report of what was done.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReportOut {
    /// Its id.
    action_id: String,
    /// What was done; absent once it was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    /// Who acted, as the desk knows it: `agent`, `human` or `collaborative`.
    actor: String,
    /// Who acted, as the reporter said.
    claimed_actor: String,
    /// `done`, `failed` or `ambiguous`.
    outcome: String,
    /// How it compares with what was approved.
    matches: String,
    /// What was really changed, as it was reported. For people; absent where it was not told, was erased, or where the
    /// answer is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    executed_change: Option<Value>,
    /// The grant that covered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant_id: Option<String>,
    /// What it cost, in cost units.
    cost: f64,
    /// When it was reported.
    at: String,
}

impl ReportOut {
    fn of(row: &ExecutionRow, executed_change: Option<Value>) -> Self {
        Self {
            executed_change,
            action_id: row.id.clone(),
            action: row.action.clone(),
            actor: row.derived.clone(),
            claimed_actor: row.claimed.clone(),
            outcome: row.outcome.clone(),
            matches: row.matches.clone(),
            grant_id: row.grant.clone(),
            cost: Points(row.cost.saturating_mul(1_000)).to_f64(),
            at: format_time(row.created_at),
        }
    }
}

/// A chain, or that there is none.
#[derive(Serialize, JsonSchema)]
pub(super) struct Trail {
    /// The proposal.
    proposal_id: String,
    /// Whether there is such a proposal for you.
    found: bool,
    /// Whether the chain is whole and proved: proposed, allowed, granted, done exactly as approved and reported, in that
    /// order, each event in the signed record, and the rows as the record tells. What the desk carries out itself needs no
    /// report, and a plan is done when each of its steps is.
    verified: bool,
    /// The trail, or null.
    trail: Option<TrailOut>,
    /// The links, oldest first.
    chain: Vec<Link>,
    /// What was reported, oldest first.
    reports: Vec<ReportOut>,
    /// What keeps the chain from being verified.
    problems: Vec<String>,
    /// A proof for each link, in the same order without repeats; for anyone who has the desk's public key.
    proofs: Vec<Proof>,
}

pub(super) fn trail(cx: &mut Cx<'_, '_>, input: AuditTrail) -> Result<Trail> {
    let id = words::id("proposal_id", &input.proposal_id)?;
    let Some(request) = request::find(cx, &id)?.filter(|request| request.kind.is_act()) else {
        return Ok(Trail {
            proposal_id: id,
            found: false,
            verified: false,
            trail: None,
            chain: Vec::new(),
            reports: Vec::new(),
            problems: Vec::new(),
            proofs: Vec::new(),
        });
    };
    let events = events_of(cx, &request)?;
    let executions = execution::of_request(cx, &request.id)?;
    let mut problems = wanting(cx, &request, &executions, &events)?;
    let mut proofs = Vec::new();
    let keys = cx.keys.clone();
    for event in &events {
        match record::prove(cx.tx, event.seq, &keys).and_then(|proof| record::check_proof(&proof, &keys).map(|()| proof)) {
            Ok(proof) => proofs.push(proof),
            Err(error) => problems.push(format!("event {} cannot be proved: {error}", event.seq)),
        }
    }
    let verified = problems.is_empty();
    let shown = shown(cx, &request, &executions, &events, verified)?;
    let reports = reports(cx, &request, &executions)?;
    Ok(Trail {
        proposal_id: id,
        found: true,
        verified,
        trail: Some(shown),
        chain: events.into_iter().flat_map(links).collect(),
        reports,
        problems,
        proofs: if input.without_proofs { Vec::new() } else { proofs },
    })
}

/// What was reported. People also see what was changed, without what policy hides in the proposal.
fn reports(cx: &mut Cx<'_, '_>, request: &Request, executions: &[ExecutionRow]) -> Result<Vec<ReportOut>> {
    // Where it was erased what policy said, nobody knows what it hides.
    let decision = request.decided()?.filter(|_| words::sees_all(cx));
    let (mut reports, mut bytes) = (Vec::with_capacity(executions.len()), 0);
    for row in executions {
        let mut change = None;
        if let Some(decision) = decision.as_ref().filter(|_| bytes < PAGE_BYTES_MAX)
            && let Some((mut executed, size)) = execution::executed_change(cx, &row.id)?
        {
            bytes += size;
            request::hide(&mut executed, &decision.redact);
            change = Some(executed).filter(|_| bytes <= PAGE_BYTES_MAX);
        }
        reports.push(ReportOut::of(row, change));
    }
    Ok(reports)
}

/// What the record tells of a request and its grants, oldest first. What others tell of it takes no place from its own.
fn events_of(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Vec<EventRow>> {
    let of = |subject: String| Search { subject: Some(subject), limit: PAGE_MAX, ..Search::default() };
    let mut events = record::heads_of_request(cx.tx, &request.subject(), PAGE_MAX)?;
    if request.kind == RequestKind::Plan {
        events.extend(plan::told_end(cx, request)?);
    }
    let grants = cx.tx.query("select id from act_grant where request = $1 order by granted_at, id limit 20", args![request.id])?;
    for grant in grants {
        events.extend(record::search_heads(cx.tx, &of(format!("grant:{}", grant.get::<String>(0)?)))?);
    }
    events.truncate(CHAIN_MAX);
    let others = record::search_heads(cx.tx, &of(request.subject()))?.into_iter().filter(|event| !event.kind.starts_with("request."));
    events.extend(others.take(CHAIN_MAX - events.len()));
    events.sort_by_key(|event| event.seq);
    Ok(events)
}

fn stage_of(kind: &str) -> &'static str {
    match kind {
        "request.created" => "propose",
        "request.approved" | "request.rejected" | "request.voted" | "request.edited" | "request.expired" | "request.cancelled" | "request.superseded"
        | "request.undone" => "decision",
        "grant.issued" | "grant.revoked" | "grant.refused" => "grant",
        "grant.used" | "request.started" | "request.stopped" | "action.logged" => "execution",
        "request.finished" | "plan.ended" => "outcome",
        _ => "note",
    }
}

/// An event as a link; the event of a proposal also tells what policy said.
fn links(event: EventRow) -> Vec<Link> {
    let stage = stage_of(&event.kind);
    let policy = ["mode", "risk", "rulebook", "decided_by", "state"];
    let of_policy: Map<String, Value> =
        event.facts.iter().filter(|(name, _)| policy.contains(&name.as_str())).map(|(name, value)| (name.clone(), value.clone())).collect();
    let link = |stage, facts| Link {
        stage,
        seq: event.seq,
        kind: event.kind.clone(),
        at: event.at.clone(),
        actor_kind: event.actor_kind.clone(),
        actor: event.actor.clone(),
        verified: event.verified,
        facts,
    };
    let mut found = vec![link(stage, event.facts.clone())];
    if stage == "propose" {
        found.push(link("policy", of_policy));
    }
    found
}

/// When something last happened, as the record tells.
fn time_of(events: &[EventRow], kind: &str) -> Option<i64> {
    events.iter().rev().find(|event| event.kind == kind).and_then(|event| parse_time("at", &event.at).ok())
}

/// What is missing or does not fit.
fn wanting(cx: &mut Cx<'_, '_>, request: &Request, executions: &[ExecutionRow], events: &[EventRow]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let told = record::told_of(cx.tx, &request.subject(), PAGE_MAX)?;
    let newest = record::told_of_request(cx.tx, &request.subject(), 1)?.pop();
    let fact = |name: &str| newest.as_ref().and_then(|told| told.body.facts.get(name)).cloned();
    let row = [("state", Value::from(request.state.name())), ("digest", Value::from(request.digest_hex())), ("version", Value::from(request.version))];
    if row.iter().any(|(name, value)| fact(name).as_ref() != Some(value)) {
        problems.push("the request's row differs from what the record tells".to_owned());
    }
    if told.iter().any(|told| told.seq.is_none()) {
        problems.push("its newest events are not sealed yet: ask again in a moment".to_owned());
    }
    if time_of(events, "request.created").is_none() {
        problems.push("the record does not tell of the proposal".to_owned());
    }
    match request.state_at(cx.now()) {
        State::Done => {}
        State::Executing => problems.push("it was begun, and its outcome is not reported".to_owned()),
        State::Approved => problems.push("it is approved, and not done yet".to_owned()),
        State::Pending => problems.push("nobody has decided yet".to_owned()),
        state => problems.push(format!("it is {}", state.name())),
    }
    let (granted, used) = (time_of(events, "grant.issued"), time_of(events, "grant.used"));
    if request.state == State::Done && used.is_none() {
        problems.push("the record tells of no grant that was used".to_owned());
    }
    if let (Some(granted), Some(used)) = (granted, used)
        && used < granted
    {
        problems.push("it was begun before it was granted".to_owned());
    }
    // A plan of which only a part was done has a request that is done.
    let is_whole = |event: &EventRow| event.kind == "plan.ended" && event.facts.get("state").is_some_and(|state| state == "done");
    if request.state == State::Done && request.kind == RequestKind::Plan && !events.iter().any(is_whole) {
        problems.push("the record does not tell that each step of its plan was done".to_owned());
    }
    problems.extend(execution::wanting(executions, request.state == State::Done && request.kind.needs_report()));
    Ok(problems)
}

fn shown(cx: &mut Cx<'_, '_>, request: &Request, executions: &[ExecutionRow], events: &[EventRow], verified: bool) -> Result<TrailOut> {
    let state = request.state_at(cx.now());
    let status = match state {
        State::Done if verified => "verified",
        State::Done | State::Failed | State::Ambiguous | State::Executing => "executed",
        State::Pending => "proposed",
        other => other.name(),
    };
    let approved = matches!(state, State::Approved | State::Executing | State::Done | State::Failed | State::Ambiguous);
    let last = executions.iter().rev().find(|row| row.grant.is_some());
    // What the desk does itself has no report that says when.
    let begun = time_of(events, "grant.used").filter(|_| request.finished_at.is_some());
    let policy = request.decided()?.map(|decision| Attribution {
        mode: decision.mode.name().to_owned(),
        policies: decision.policies,
        rulebook: request.rulebook.clone(),
        rules: decision.hits.iter().map(|hit| hit.rule_id.clone()).collect(),
        reasons: words::reasons_for(cx, decision.reasons),
    });
    let by = request.decided_by.as_deref();
    let notes = match (approved, by) {
        (true, Some("desk")) => "policy and trust let it pass; no person decided".to_owned(),
        (true, Some(person)) => format!("approved by {person}"),
        (_, Some(person)) => format!("{} by {person}", state.name()),
        (_, None) => state.name().to_owned(),
    };
    Ok(TrailOut {
        id: request.id.clone(),
        agent_id: request.requester.id.clone(),
        domain: request.domain.clone(),
        action: request.act().ok().map(|act| act.action),
        status: status.to_owned(),
        state,
        proposal_timestamp: format_time(request.created_at),
        approved_timestamp: request.decided_at.filter(|_| approved).map(format_time),
        executed_timestamp: last.map(|row| row.started_at.unwrap_or(row.created_at)).or(begun).map(format_time),
        sentry_trace_id: last.map(|row| execution::observed_call(cx, &row.id)).transpose()?.flatten(),
        decided_by: request.decided_by.clone(),
        batch_id: request.batch.clone(),
        matches: last.map(|row| row.matches.clone()),
        policy,
        notes,
    })
}
