//! People's answers in the form of existing clients: approve, override, resolve a handoff. Whose trust moves, and where,
//! comes from the stored proposal, never from an argument.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::correction::{self, Overridden, overrode};
use super::instruction::{Said, instruct};
use super::standing::mode_of;
use super::words::{self, check_domain, check_said};
use crate::call::Cx;
use crate::identity::check_name;
use crate::limits::REASONING_BYTES_MAX;
use crate::policy::{self, Mode};
use crate::request::{self, Correction, Further, Request, RequestKind, Requester, State};
use crate::trust::{self, Of, Points, Severity};
use crate::{Error, Result};

/// Answers that changed nothing: what was decided before, or is not there.
pub(super) fn is_untold(answer: &Value) -> bool {
    answer.get("error") == Some(&Value::Bool(true)) || answer.get("repeated") == Some(&Value::Bool(true))
}

/// Approve a proposal of an agent. For people: agents are refused. The agent and the domain are those of the proposal.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Approve {
    /// The proposal.
    proposal_id: String,
    /// Taken from existing clients, without effect: the agent is the proposal's.
    agent_id: Option<String>,
    /// Taken from existing clients, without effect: the domain is the proposal's.
    domain: Option<String>,
    /// What you want to say to the agent.
    feedback: Option<String>,
    /// The digest of what you saw, so that nothing else is approved.
    expected_digest: Option<String>,
}

/// What an approval did, or why there is none.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Approved {
    /// True when nothing was approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<bool>,
    /// The proposal.
    proposal_id: String,
    /// Whether it is approved now; it may need more people.
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<bool>,
    /// The agent whose proposal it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    /// Its domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    /// What it did to trust, such as `+0.02`.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust_impact: Option<String>,
    /// The score before.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_trust: Option<f64>,
    /// The score after.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_trust: Option<f64>,
    /// What the agent's next proposal would be answered if nothing else is against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_mode: Option<Mode>,
    /// What you said to the agent, or null.
    feedback: Option<String>,
    /// In words.
    message: String,
}

/// A request of a kind that is answered with yes or no; none if it is not there.
fn find_act(cx: &mut Cx<'_, '_>, field: &str, given: &str) -> Result<std::result::Result<Request, String>> {
    let id = words::id(field, given)?;
    let found = request::find(cx, &id)?.filter(|request| request.kind.is_act());
    Ok(found.ok_or(id))
}

/// A change of a score with its sign, such as `+0.02`.
fn signed(points: Points) -> String {
    let text = format!("{:+.9}", points.to_f64());
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "+" || short == "-" || short.is_empty() { "0".to_owned() } else { short.to_owned() }
}

pub(super) fn approve(cx: &mut Cx<'_, '_>, input: Approve) -> Result<Approved> {
    words::check_optional("feedback", input.feedback.as_deref(), REASONING_BYTES_MAX)?;
    check_ignored(input.agent_id.as_deref(), input.domain.as_deref())?;
    let refused = |id: String, message: String| Approved { error: Some(true), proposal_id: id, message, ..Approved::default() };
    let found = match find_act(cx, "proposal_id", &input.proposal_id)? {
        Ok(found) => found,
        Err(id) => return Ok(refused(id.clone(), format!("there is no proposal {id}"))),
    };
    request::check_decider(cx, &found)?;
    let state = found.state_at(cx.now());
    if state != State::Pending {
        let by = found.decided_by.as_deref().map_or_else(String::new, |by| format!(" by {by}"));
        return Ok(refused(found.id, format!("this proposal is {} already{by}; nothing was changed", state.name())));
    }
    let (agent, domain) = (found.requester.clone(), found.domain.clone());
    let before = trust::look(cx, &agent.id, &domain, agent.verified)?.score;
    let settled = request::approve(cx, &found.id, None, input.expected_digest.as_deref(), input.feedback.clone())?;
    let after = trust::look(cx, &agent.id, &domain, agent.verified)?.score;
    let (new_mode, _) = mode_of(cx, &agent, &domain, None)?;
    let approved = settled.state == State::Approved;
    let message = if approved {
        format!("Approved. {} has {:.2} in {domain} now.", agent.id, after.to_f64())
    } else {
        format!("Your approval counts; {} people are needed in all.", settled.quorum)
    };
    Ok(Approved {
        error: None,
        proposal_id: settled.id,
        approved: Some(approved),
        agent_id: Some(agent.id),
        domain: Some(domain),
        trust_impact: Some(signed(Points(after.0 - before.0))),
        previous_trust: Some(before.to_f64()),
        new_trust: Some(after.to_f64()),
        new_mode: Some(new_mode),
        feedback: input.feedback,
        message,
    })
}

/// Arguments of existing clients that say nothing here are still checked as texts.
fn check_ignored(agent: Option<&str>, domain: Option<&str>) -> Result<()> {
    words::check_optional("agent_id", agent, crate::limits::NAME_CHARS_MAX)?;
    words::check_optional("domain", domain, crate::limits::NAME_CHARS_MAX)
}

/// Correct an agent: say no to a proposal, or to what it did. For people: agents are refused. With `proposal_id` the
/// agent and the domain are those of the proposal. Saying it twice counts once.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Override {
    /// The agent that is corrected, where there is no proposal.
    agent_id: Option<String>,
    /// The scope of work, where there is no proposal.
    domain: Option<String>,
    /// What the agent did or wanted to do.
    action_description: String,
    /// What was wrong: `agent_wrong`: the agent erred; `human_preference`: a person wants it otherwise; `missing_context`: the agent could
    /// not know; `policy_change`: the rules changed, it costs no trust; `edge_case`: it was unusual; or what the domain's setting
    /// `feedback.reason_types` names in their place.
    #[schemars(extend("examples" = ["agent_wrong", "human_preference", "missing_context", "policy_change", "edge_case"]))]
    override_type: String,
    /// How bad it was; `medium` if not given.
    severity: Option<Severity>,
    /// Why, for the agent to learn from.
    description: String,
    /// The proposal.
    proposal_id: Option<String>,
}

/// What a correction did, or why there is none.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct OverrideOut {
    /// True when nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<bool>,
    /// The correction's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    override_id: Option<String>,
    /// What was wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    override_type: Option<String>,
    /// The proposal that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal_id: Option<String>,
    /// The agent that was corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    /// The domain in which it was corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    /// What it does to trust: type, severity and a demotion, and an approval that it takes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust_impact: Option<f64>,
    /// The score before.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_trust: Option<f64>,
    /// The score after.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_trust: Option<f64>,
    /// Whether it demoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    demoted: Option<bool>,
    /// True when the same correction was made before; nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<bool>,
    /// In words.
    message: String,
}

pub(super) fn override_act(cx: &mut Cx<'_, '_>, input: Override) -> Result<OverrideOut> {
    words::check_optional("action_description", Some(&input.action_description), REASONING_BYTES_MAX)?;
    words::check_optional("description", Some(&input.description), REASONING_BYTES_MAX)?;
    let severity = input.severity.unwrap_or(Severity::Medium);
    match &input.proposal_id {
        Some(id) => match find_act(cx, "proposal_id", id)? {
            Ok(found) => override_proposal(cx, &found, &input, severity),
            Err(id) => Ok(OverrideOut { error: Some(true), message: format!("there is no proposal {id}; nothing was changed"), ..OverrideOut::default() }),
        },
        None => override_agent(cx, &input, severity),
    }
}

/// Text for the record: why it was wrong.
fn why(input: &Override) -> Option<String> {
    Some(input.description.clone()).filter(|text| !text.trim().is_empty())
}

/// Text for the record: what the agent did.
fn what(input: &Override) -> Option<String> {
    Some(input.action_description.clone()).filter(|text| !text.trim().is_empty())
}

fn override_proposal(cx: &mut Cx<'_, '_>, found: &Request, input: &Override, severity: Severity) -> Result<OverrideOut> {
    request::check_decider(cx, found)?;
    let (agent, domain) = (found.requester.clone(), found.domain.clone());
    let before = trust::look(cx, &agent.id, &domain, agent.verified)?;
    let kind = &input.override_type;
    if let Some(row) = correction::of_request(cx, &found.id)? {
        return Ok(OverrideOut {
            override_id: Some(row.id),
            override_type: Some(kind).filter(|kind| **kind == row.kind).cloned(),
            proposal_id: Some(found.id.clone()),
            agent_id: Some(agent.id),
            domain: Some(domain),
            trust_impact: Some(Points(row.impact).to_f64()),
            previous_trust: Some(before.score.to_f64()),
            new_trust: Some(before.score.to_f64()),
            demoted: Some(false),
            repeated: Some(true),
            message: "This proposal was overridden before; nothing was changed.".to_owned(),
            ..OverrideOut::default()
        });
    }
    policy::current(cx)?.settings(&domain).feedback.check_type("override_type", kind)?;
    let correction = Correction { reason: why(input), kind: Some(kind.clone()), severity: Some(severity), action: what(input) };
    let of = Of { agent: &agent.id, domain: &domain, verified: agent.verified, request: Some(&found.id), confidence: found.confidence.map(Points) };
    let moves_trust = request::moves_trust(found);
    match found.state_at(cx.now()) {
        State::Pending => drop(request::reject(cx, &found.id, None, correction)?),
        State::Approved if super::propose::has_unused_grant(cx, &found.id)? => {
            // What nobody has done yet is taken back, and then refused.
            request::undo(cx, &found.id, why(input))?;
            request::reject(cx, &found.id, None, correction)?;
        }
        State::Approved | State::Executing | State::Done | State::Failed | State::Ambiguous => {
            correct(cx, of, input, severity, moves_trust)?;
        }
        state => {
            let message = format!("this proposal is {} already; nothing was changed", state.name());
            return Ok(OverrideOut { error: Some(true), proposal_id: Some(found.id.clone()), message, ..OverrideOut::default() });
        }
    }
    if !moves_trust && correction::of_request(cx, &found.id)?.is_none() {
        // A rejection keeps a correction only where it moves trust.
        correct(cx, of, input, severity, moves_trust)?;
    }
    let row = correction::of_request(cx, &found.id)?;
    let impact = row.as_ref().map(|row| Points(row.impact).to_f64());
    let mut out = told(cx, &agent, &domain, &before, kind)?;
    if !moves_trust {
        out.message =
            format!("Corrected. Answers to such a {} move no trust: {} has {:.2} in {domain} as before.", found.kind.name(), agent.id, before.score.to_f64());
    }
    Ok(OverrideOut { override_id: row.map(|row| row.id), proposal_id: Some(found.id.clone()), trust_impact: impact, ..out })
}

fn override_agent(cx: &mut Cx<'_, '_>, input: &Override, severity: Severity) -> Result<OverrideOut> {
    let name = input.agent_id.as_deref().ok_or_else(|| Error::invalid("agent_id", "name the agent that is corrected, or give a proposal_id"))?;
    let domain = input.domain.as_deref().ok_or_else(|| Error::invalid("domain", "name the domain, or give a proposal_id"))?;
    check_name("agent_id", name)?;
    check_domain("domain", domain)?;
    request::check_decider_in(cx, domain)?;
    let agent = super::standing::agent_of(cx, Some(name))?;
    let before = trust::look(cx, &agent.id, domain, agent.verified)?;
    let of = Of { agent: &agent.id, domain, verified: agent.verified, request: None, confidence: None };
    let (id, impact) = correct(cx, of, input, severity, true)?;
    let out = told(cx, &agent, domain, &before, &input.override_type)?;
    Ok(OverrideOut { override_id: Some(id), trust_impact: Some(impact.to_f64()), ..out })
}

/// Keeps a correction of something that was done, or that no proposal was made of, and moves trust where answers to it do.
fn correct(cx: &mut Cx<'_, '_>, of: Of<'_>, input: &Override, severity: Severity, moves_trust: bool) -> Result<(String, Points)> {
    let rulebook = policy::current(cx)?;
    let feedback = &rulebook.settings(of.domain).feedback;
    if feedback.override_requires_reason {
        check_said("description", &input.description, REASONING_BYTES_MAX)?;
    }
    let kind = &input.override_type;
    feedback.check_type("override_type", kind)?;
    let mut impact = Points::ZERO;
    if moves_trust {
        let change = trust::overridden(cx, of, kind, severity)?;
        request::ask_for_promotion(cx, of, &change)?;
        impact = change.impact;
    }
    let (description, action) = (Some(input.description.as_str()), what(input));
    let id = overrode(cx, &Overridden { of, kind, severity, impact, description, action: action.as_deref() })?;
    Ok((id, impact))
}

fn told(cx: &mut Cx<'_, '_>, agent: &Requester, domain: &str, before: &trust::Trust, kind: &str) -> Result<OverrideOut> {
    let after = trust::look(cx, &agent.id, domain, agent.verified)?;
    let demoted = after.state().demoted && !before.state().demoted;
    Ok(OverrideOut {
        override_type: Some(kind.to_owned()),
        agent_id: Some(agent.id.clone()),
        domain: Some(domain.to_owned()),
        previous_trust: Some(before.score.to_f64()),
        new_trust: Some(after.score.to_f64()),
        demoted: Some(demoted),
        message: format!("Corrected. {} has {:.2} in {domain} now{}.", agent.id, after.score.to_f64(), if demoted { ", after a demotion" } else { "" }),
        ..OverrideOut::default()
    })
}

/// Answer what an agent handed over. For people: agents are refused. Answering again is delivered again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResolveHandoff {
    /// The handoff.
    handoff_id: String,
    /// The `digest` of what you saw; if it differs from what was handed over, the answer is a conflict.
    expected_digest: Option<String>,
    /// What you decided.
    resolution: String,
    /// Whether the work goes back to the agent; the same as `hand_back`.
    #[serde(default)]
    hand_back_to_agent: bool,
    /// What the agent is to do.
    instructions: Option<String>,
    /// Whether the work goes back to the agent.
    #[serde(default)]
    hand_back: bool,
}

/// What became of a handoff.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Resolved {
    /// True when nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<bool>,
    /// The handoff.
    handoff_id: String,
    /// Whether it is resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved: Option<bool>,
    /// What you decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: Option<String>,
    /// True when the work goes back with instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    hand_back: Option<bool>,
    /// What the agent is to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    /// How often it was answered by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<usize>,
    /// In words.
    message: String,
}

pub(super) fn resolve(cx: &mut Cx<'_, '_>, input: ResolveHandoff) -> Result<Resolved> {
    check_said("resolution", &input.resolution, REASONING_BYTES_MAX)?;
    words::check_optional("instructions", input.instructions.as_deref(), REASONING_BYTES_MAX)?;
    let id = words::id("handoff_id", &input.handoff_id)?;
    let Some(found) = request::find(cx, &id)?.filter(|request| request.kind == RequestKind::Handoff) else {
        return Ok(Resolved { error: Some(true), message: format!("there is no handoff {id}"), handoff_id: id, ..Resolved::default() });
    };
    request::check_decider(cx, &found)?;
    request::check_seen(&found, input.expected_digest.as_deref())?;
    let hand_back = input.hand_back || input.hand_back_to_agent;
    let instructions = input.instructions.filter(|text| !text.trim().is_empty());
    match found.state_at(cx.now()) {
        State::Pending => {
            let further = Further { batch: None, instructions: instructions.clone(), hand_back: Some(hand_back) };
            request::approve_with(cx, &found.id, None, None, Some(input.resolution.clone()), &further)?;
        }
        State::Approved => {
            let about = about(&found);
            let said = Said { about: about.as_deref(), resolution: &input.resolution, instructions: instructions.as_deref(), hand_back, ..said_to(&found) };
            instruct(cx, &said)?;
        }
        state => {
            let message = format!("this handoff is {}; nothing was changed", state.name());
            return Ok(Resolved { error: Some(true), handoff_id: found.id, message, ..Resolved::default() });
        }
    }
    let answers = super::instruction::of_request(cx.tx, &found.id)?.len();
    let both = hand_back && instructions.is_some();
    let message = if both { "Resolved, and handed back with instructions." } else { "Resolved." };
    Ok(Resolved {
        error: None,
        handoff_id: found.id,
        resolved: Some(true),
        resolution: Some(input.resolution),
        hand_back: both.then_some(true),
        instructions: instructions.filter(|_| both),
        answers: Some(answers),
        message: format!("{message} The agent is told until it acknowledges it."),
    })
}

/// The proposal that a handoff is about.
fn about(handoff: &Request) -> Option<String> {
    handoff.act().ok().map(|act| act.target).filter(|target| !target.is_empty())
}

fn said_to(request: &Request) -> Said<'_> {
    Said {
        request: &request.id,
        about: None,
        kind: request.kind.name(),
        agent: &request.requester.id,
        domain: &request.domain,
        hand_back: false,
        resolution: "",
        instructions: None,
    }
}

/// A person answered a handoff: the agent is told until it acknowledges it. Without instructions of their own, the words
/// of the person are what the agent is to go by.
pub(crate) fn resolved(cx: &mut Cx<'_, '_>, request: &Request, reason: Option<&str>, further: &Further) -> Result<()> {
    let resolution = reason.unwrap_or_default();
    let instructions = match further.hand_back {
        None => further.instructions.as_deref().or(reason),
        Some(_) => further.instructions.as_deref(),
    };
    let about = about(request);
    let said = Said { about: about.as_deref(), resolution, instructions, hand_back: further.hand_back.unwrap_or(true), ..said_to(request) };
    instruct(cx, &said).map(drop)
}

/// A handoff ended without an answer: the agent is told why until it acknowledges it, and the work does not come back.
pub(crate) fn unresolved(cx: &mut Cx<'_, '_>, request: &Request) -> Result<()> {
    let resolution = match request.state {
        State::Rejected => request.reason.as_deref().unwrap_or("a person rejected this, and did not say why"),
        State::Expired => "nobody answered before this expired",
        _ => return Ok(()),
    };
    let about = about(request);
    instruct(cx, &Said { about: about.as_deref(), resolution, instructions: None, hand_back: false, ..said_to(request) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impacts_are_written_as_people_write_them() {
        assert_eq!(signed(Points(20_000_000)), "+0.02");
        assert_eq!(signed(Points(-80_000_000)), "-0.08");
        assert_eq!(signed(Points(200_000_000)), "+0.2");
        assert_eq!(signed(Points(0)), "+0");
    }
}
