//! Reporting what was done. With a proposal this closes the loop: the grant is used up, the outcome is kept, and what
//! was done is compared with what was approved.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::execution::{self, Execution, Matches};
use super::instruction;
use super::propose::{VERB, grant_of, millionths};
use super::words::{self, check_domain, check_said, check_share};
use crate::call::Cx;
use crate::limits::{CHANGE_BYTES_MAX, REASONING_BYTES_MAX, TITLE_CHARS_MAX};
use crate::policy::{self, Act};
use crate::redact::Redactor;
use crate::request::{self, Begun, Outcome, Request, State};
use crate::trust::Points;
use crate::{Error, Result, check_text, digest, meter};

/// Who an existing client says acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClaimedActor {
    /// The agent.
    Agent,
    /// A person.
    Human,
    /// Both.
    Collaborative,
}

impl ClaimedActor {
    fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Human => "human",
            Self::Collaborative => "collaborative",
        }
    }
}

/// Report what you did. With `proposal_id` this says what came of an approved proposal: `outcome` done, failed, or
/// ambiguous if you do not know. Give `executed_change`, so that it can be compared with what was approved.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogAction {
    /// The scope of work, such as `crm.deals`.
    domain: String,
    /// What was done, in a line.
    action: String,
    /// Who did it, as you say. It is kept as your claim; what the desk knows itself stands beside it.
    actor: ClaimedActor,
    /// How sure you are, between 0 and 1; 0 if not given.
    #[serde(default)]
    confidence: f64,
    /// Why, or what it was meant for.
    #[serde(default)]
    reasoning: String,
    /// The proposal that this was.
    proposal_id: Option<String>,
    /// What came of it; `done` if not given. A person who gives it settles what the agent left open.
    outcome: Option<Outcome>,
    /// What was really changed, as JSON text.
    #[schemars(with = "Option<String>")]
    executed_change: Option<Value>,
    /// What it cost, in the units of the desk's budgets. What is more than you proposed is charged to your day.
    cost: Option<f64>,
    /// How good the result is, between 0 and 1, as you see it.
    quality: Option<f64>,
    /// What is there now, as JSON, where you told it when you proposed and did not call cowork_begin.
    #[schemars(with = "Option<String>")]
    target_state: Option<Value>,
}

/// What was kept.
#[derive(Serialize, JsonSchema)]
pub(super) struct Logged {
    /// The report's id.
    action_id: String,
    /// The proposal it belongs to, or null.
    proposal_id: Option<String>,
    /// Always true: a report is kept, whatever it says.
    logged: bool,
    /// How the proposal stands now.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    /// How what was done compares with what was approved: `exact`, `differs`, `not_told`, or `nothing` to compare with.
    matches: String,
    /// Whether this was covered by a grant.
    approved: bool,
    /// Who acted, as the desk knows it.
    actor: String,
    /// Who acted, as you said.
    claimed_actor: String,
    /// What people will see about this report in the governance report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<&'static str>,
    /// In words.
    message: String,
}

/// How a report fits its request.
struct Fit {
    grant: Option<String>,
    started_at: Option<i64>,
    state: Option<State>,
    approved: bool,
    why_not: Option<String>,
}

pub(super) fn log(cx: &mut Cx<'_, '_>, input: LogAction) -> Result<Logged> {
    check_domain("domain", &input.domain)?;
    check_said("action", &input.action, TITLE_CHARS_MAX)?;
    check_share("confidence", input.confidence)?;
    check_text("reasoning", &input.reasoning, REASONING_BYTES_MAX)?;
    let quality = input.quality.map(|quality| check_share("quality", quality).map(|()| Points::of(quality).0)).transpose()?;
    let cost = millionths("cost", input.cost)?;
    let executed = input.executed_change.map(|change| words::said("executed_change", change, CHANGE_BYTES_MAX)).transpose()?;
    let target_state = input.target_state.map(|state| words::said("target_state", state, CHANGE_BYTES_MAX)).transpose()?;
    let outcome = input.outcome.unwrap_or(Outcome::Done);
    let named = input.proposal_id.as_deref().map(|id| words::id("proposal_id", id)).transpose()?;
    let found = match &named {
        Some(id) => request::find_whole(cx, id)?.filter(|request| request.kind.is_reported()),
        None => None,
    };
    let redactor = policy::current(cx)?.settings("").protection.of_requests();
    let matches = compare(found.as_ref(), executed.as_ref(), &redactor)?;
    let fit = match &found {
        Some(request) if cx.actor.is_agent() => close(cx, request, outcome, target_state.as_ref())?,
        Some(request) => settle(cx, request, input.outcome)?,
        None => Fit { grant: None, started_at: None, state: None, approved: false, why_not: None },
    };
    let derived = derived_actor(cx, found.as_ref())?;
    let as_proposed =
        Act { kind: VERB.to_owned(), tool: "cowork_propose".to_owned(), domain: input.domain.clone(), action: input.action.clone(), ..Act::default() };
    let executed = executed.map(|executed| request::shown_executed(cx, found.as_ref(), as_proposed, executed)).transpose()?;
    let report = Execution {
        id: cx.new_id(),
        request: found.as_ref().map(|request| request.id.clone()),
        unknown: named.is_some() && found.is_none(),
        grant: fit.grant.clone(),
        agent: found.as_ref().map_or_else(|| cx.actor.id.clone(), |request| request.requester.id.clone()),
        domain: found.as_ref().map_or(input.domain, |request| request.domain.clone()),
        claimed: input.actor.name().to_owned(),
        derived,
        outcome: outcome.state().name(),
        matches: matches.name(),
        cost,
        quality,
        started_at: fit.started_at,
        action: input.action,
        reasoning: input.reasoning,
        body: words::without_nulls(json!({
            "executed_change": executed,
            "confidence": input.confidence,
            "named_proposal": named.as_ref().filter(|_| found.is_none()),
        })),
    };
    // Where a person settles it, the agent spent it all the same.
    if cx.actor.is_agent() || fit.grant.is_some() {
        let beyond = beyond_declared(cx, found.as_ref(), cost)?;
        meter::charge(cx, &report.agent, &report.domain, beyond)?;
    }
    execution::keep(cx, &report)?;
    let findings = findings(&report, &fit, matches, found.as_ref());
    let message = match (&fit.why_not, findings.is_empty()) {
        (Some(why), _) => format!("It is kept that you did this, and that it was not covered by an approval: {why}"),
        (None, false) => "It is kept, and people will see what does not fit.".to_owned(),
        (None, true) => "It is kept.".to_owned(),
    };
    Ok(Logged {
        action_id: report.id,
        proposal_id: report.request,
        logged: true,
        state: fit.state,
        matches: matches.name().to_owned(),
        approved: fit.approved,
        actor: derived.to_owned(),
        claimed_actor: report.claimed,
        findings,
        message,
    })
}

/// The desk itself saw what came of a proposal, because it handed the call on: exactly what was approved.
pub(crate) fn observed(cx: &mut Cx<'_, '_>, id: &str, call: &str, outcome: Outcome) -> Result<()> {
    let Some(request) = request::find(cx, id)? else { return Ok(()) };
    let (grant, started_at) = used_grant(cx, &request.id)?;
    let derived = derived_actor(cx, Some(&request))?;
    let report = Execution {
        id: cx.new_id(),
        request: Some(request.id.clone()),
        unknown: false,
        grant,
        agent: request.requester.id.clone(),
        domain: request.domain.clone(),
        claimed: "agent".to_owned(),
        derived,
        outcome: outcome.state().name(),
        matches: Matches::Exact.name(),
        cost: 0,
        quality: None,
        started_at,
        action: execution::HANDED_ON.to_owned(),
        reasoning: "the desk handed the call on and saw what came of it".to_owned(),
        body: json!({ execution::CALL: call }),
    };
    execution::keep(cx, &report)
}

/// Compares what was done with the change that was approved.
fn compare(request: Option<&Request>, executed: Option<&Value>, redactor: &Redactor) -> Result<Matches> {
    let Some(request) = request else { return Ok(Matches::Nothing) };
    let Some(executed) = executed else { return Ok(Matches::NotTold) };
    let Ok(act) = request.act() else { return Ok(Matches::Nothing) };
    if request.is_redacted() {
        // It has ended before: what is left of both is compared.
        let mut left = executed.clone();
        if let Some(decision) = request.decided()? {
            request::hide(&mut left, &decision.redact);
        }
        let left = redactor.value(&left).value;
        return Ok(if left == act.arguments { Matches::Exact } else { Matches::Differs });
    }
    Ok(if digest(executed)? == digest(&act.arguments)? { Matches::Exact } else { Matches::Differs })
}

/// What a report's cost adds to what was taken for the proposal when it was made: what was declared is paid once, by
/// the first reports.
fn beyond_declared(cx: &mut Cx<'_, '_>, request: Option<&Request>, cost: i64) -> Result<i64> {
    let Some(request) = request.filter(|_| cost > 0) else { return Ok(cost) };
    let declared = request.act().map_or(0, |act| act.cost.max(0));
    let before = execution::of_request(cx, &request.id)?.iter().fold(0_i64, |sum, row| sum.saturating_add(row.cost));
    Ok(cost.saturating_sub(declared.saturating_sub(before).max(0)).max(0))
}

/// Uses up the grant unless that was done before, and keeps the outcome. What cannot be covered any more is still kept
/// as done: it happened.
fn close(cx: &mut Cx<'_, '_>, request: &Request, outcome: Outcome, target_state: Option<&Value>) -> Result<Fit> {
    let mut fit = Fit { grant: None, started_at: None, state: Some(request.state_at(cx.now())), approved: false, why_not: None };
    match request.state_at(cx.now()) {
        State::Approved if grant_of(cx, &request.id)?.is_none() => {
            fit.why_not = Some("its grant had run out or was revoked".to_owned());
            return Ok(fit);
        }
        State::Approved if meter::paused(cx, &request.requester.id)? => {
            fit.why_not = Some("you are paused, and your grants are suspended".to_owned());
            return Ok(fit);
        }
        State::Approved => match request::begin(cx, &request.id, target_state)? {
            Begun::Go(permit) => (fit.grant, fit.started_at) = (Some(permit.grant), Some(cx.now())),
            Begun::Stopped(stop) => {
                (fit.state, fit.why_not) = (Some(stop.request.state), Some(stop.message));
                return Ok(fit);
            }
        },
        State::Executing | State::Ambiguous => (fit.grant, fit.started_at) = used_grant(cx, &request.id)?,
        state => {
            fit.why_not = Some(format!("the proposal was {}", state.name()));
            return Ok(fit);
        }
    }
    let stays_unknown = request.state == State::Ambiguous && outcome == Outcome::Ambiguous;
    if !stays_unknown {
        fit.state = Some(request::finish(cx, &request.id, outcome)?.state);
    }
    fit.approved = true;
    Ok(fit)
}

/// Keeps what a person says. They act by their own authority, and a grant that is not used stays the agent's; where the
/// agent began and left the outcome open, a person who says what came of it settles that.
fn settle(cx: &mut Cx<'_, '_>, request: &Request, outcome: Option<Outcome>) -> Result<Fit> {
    let mut fit = Fit { grant: None, started_at: None, state: Some(request.state), approved: true, why_not: None };
    let Some(outcome) = outcome.filter(|outcome| matches!(request.state, State::Executing | State::Ambiguous) && outcome.state() != request.state) else {
        fit.state = Some(request.state_at(cx.now()));
        return Ok(fit);
    };
    if !request::covers_domain(cx, &request.domain)? {
        let why = format!("your role does not cover the domain {}, so you cannot say what came of this", request.domain);
        return Err(Error::forbidden(why).hint("leave outcome out, or let somebody report it who decides in this domain"));
    }
    (fit.grant, fit.started_at) = used_grant(cx, &request.id)?;
    fit.state = Some(request::finish(cx, &request.id, outcome)?.state);
    Ok(fit)
}

/// The grant that was used up for a request, and when.
fn used_grant(cx: &mut Cx<'_, '_>, request: &str) -> Result<(Option<String>, Option<i64>)> {
    let row = cx
        .tx
        .optional("select id, used_at from act_grant where request = $1 and used_at is not null order by granted_at desc, id desc limit 1", args![request])?;
    row.map_or(Ok((None, None)), |row| Ok((Some(row.get(0)?), row.get(1)?)))
}

/// Who acted, as the desk knows it: the reporter, and a person with it who edited the act or told the agent to do it.
fn derived_actor(cx: &mut Cx<'_, '_>, request: Option<&Request>) -> Result<&'static str> {
    if !cx.actor.is_agent() {
        return Ok("human");
    }
    let Some(request) = request else { return Ok("agent") };
    if request.edited_by.is_some() {
        return Ok("collaborative");
    }
    Ok(if instruction::is_about(cx.tx, &request.id)? { "collaborative" } else { "agent" })
}

/// What people will see in the governance report.
fn findings(report: &Execution, fit: &Fit, matches: Matches, request: Option<&Request>) -> Vec<&'static str> {
    let mut findings = Vec::new();
    if report.derived == "human" {
        return findings;
    }
    if report.request.is_none() {
        findings.push("orphaned_execution");
    }
    if report.request.is_some() && !fit.approved {
        findings.push(if matches!(fit.state, Some(State::Pending)) { "execution_before_approval" } else { "execution_without_approval" });
    }
    if fit.approved && matches == Matches::Differs {
        findings.push("execution_beyond_approval");
    }
    let is_needed = request.is_some_and(|request| request.kind.needs_report());
    if fit.approved && matches == Matches::NotTold && report.outcome == Outcome::Done.state().name() && is_needed {
        findings.push("execution_not_told");
    }
    if report.request.is_none() && !report.unknown && report.reasoning.trim().is_empty() {
        findings.push("missing_intent");
    }
    findings
}
