//! Where an agent stands: its trust in a domain, and what policy would say to a value.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::propose::{VERB, Violation};
use super::words::{check_domain, check_said};
use crate::call::Cx;
use crate::identity::check_name;
use crate::limits::{CHANGE_BYTES_MAX, NAME_CHARS_MAX};
use crate::policy::{self, Act, Effect, Hit, Mode, Outlook};
use crate::request::{self, Judged, Requester};
use crate::trust;
use crate::{Error, Result, check_text};

/// Whose standing is asked for. An agent asks for its own; a person names the agent.
pub(super) fn agent_of(cx: &mut Cx<'_, '_>, given: Option<&str>) -> Result<Requester> {
    if cx.actor.is_agent() {
        return Ok(Requester::of(&cx.actor));
    }
    let name = given.ok_or_else(|| Error::invalid("agent_id", "name the agent"))?;
    check_name("agent_id", name)?;
    let registered = cx.tx.optional("select id from agent where id = $1 and state = 'active'", args![name])?;
    Ok(Requester::agent(name, registered.is_some()))
}

/// See how far you are trusted in a domain, and what that allows. Nothing is changed by looking.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckTrust {
    /// The agent: you, unless you are a person.
    agent_id: Option<String>,
    /// The scope of work, such as `crm.deals`.
    domain: String,
    /// A field that you would change.
    field: Option<String>,
}

/// How far an agent is trusted in a domain.
#[derive(Serialize, JsonSchema)]
pub(super) struct TrustOut {
    /// The agent.
    agent_id: String,
    /// The domain.
    domain: String,
    /// The score now, between 0 and 1.
    trust_score: f64,
    /// The share of decided proposals that people approved.
    accuracy: f64,
    /// Proposals that were made.
    total_actions: i64,
    /// Proposals that people approved.
    approved_actions: i64,
    /// Proposals and acts that people overrode.
    overridden_actions: i64,
    /// Overrides in a row.
    consecutive_overrides: i64,
    /// What a proposal with nothing else against it would be answered: `act`, `suggest`, `escalate` or `deny`.
    mode: Mode,
    /// Whether the field is one that always needs a person.
    high_risk: bool,
    /// How many decided proposals the accuracy is about.
    sample_size: i64,
    /// Between which shares the accuracy lies with 95 % certainty.
    interval: [f64; 2],
    /// The score before it faded.
    score_before_decay: f64,
    /// What fading took off.
    decay_applied: f64,
    /// Whether the score was earned by an agent that proved who it is.
    verified: bool,
    /// In words.
    message: String,
}

/// The mode of a proposal that changes nothing but `field`, whatever its value, and whether that field is high-risk. What is used
/// up of this hour's and this day's limits passes, and rules that look at values are asked with them, so neither counts here.
pub(super) fn mode_of(cx: &mut Cx<'_, '_>, who: &Requester, domain: &str, field: Option<&str>) -> Result<(Mode, bool)> {
    let act = Act {
        kind: VERB.to_owned(),
        tool: "cowork_propose".to_owned(),
        domain: domain.to_owned(),
        field: field.map(str::to_owned),
        arguments: Value::Object(Map::new()),
        ..Act::default()
    };
    let Outlook { decision, .. } = request::outlook(cx, &act, who)?;
    let is_about_it = |hit: &Hit| hit.field.is_some() && hit.field.as_deref() == field;
    let high_risk = decision.hits.iter().any(|hit| hit.effect == Effect::RequireApproval && is_about_it(hit));
    let lasting = decision.reasons.iter().filter(|reason| reason.source != "limit").map(|reason| reason.mode);
    Ok((lasting.min().unwrap_or(decision.mode), high_risk))
}

pub(super) fn check_trust(cx: &mut Cx<'_, '_>, input: CheckTrust) -> Result<TrustOut> {
    check_domain("domain", &input.domain)?;
    check_text("field", input.field.as_deref().unwrap_or_default(), NAME_CHARS_MAX)?;
    let who = agent_of(cx, input.agent_id.as_deref())?;
    let (mode, high_risk) = mode_of(cx, &who, &input.domain, input.field.as_deref())?;
    let trust = trust::look(cx, &who.id, &input.domain, who.verified)?;
    let state = trust.state();
    let (low, high) = trust.interval();
    let before = trust.score_before_decay();
    let says = match mode {
        Mode::Act => "may act alone on what no rule holds",
        Mode::Suggest => "proposes, and a person approves",
        Mode::Escalate => "proposes, and a person takes it from there",
        Mode::Deny => "must not act now",
    };
    Ok(TrustOut {
        message: format!("{} {says} in {}. Each proposal is judged with its whole change.", who.id, input.domain),
        agent_id: who.id,
        domain: input.domain,
        trust_score: trust.score.to_f64(),
        accuracy: trust.accuracy(),
        total_actions: state.proposals,
        approved_actions: state.approved,
        overridden_actions: state.overridden,
        consecutive_overrides: state.streak,
        mode,
        high_risk,
        sample_size: trust.decided(),
        interval: [low, high],
        score_before_decay: before.to_f64(),
        decay_applied: trust::Points(before.0 - trust.score.0).to_f64(),
        verified: who.verified,
    })
}

/// See whether policy would let a field have a value, without proposing anything. A proposal is judged with its whole
/// change, so this tells about one field only. Asking now and then is free; asking again and again for what policy forbids
/// counts like attempts that were denied, and puts you off.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ValidatePolicy {
    /// The agent: you, unless you are a person.
    agent_id: Option<String>,
    /// The scope of work, such as `crm.deals`.
    domain: String,
    /// The field.
    field: String,
    /// The value that it would have, as it would stand in a proposal: any JSON. `3` and `"3"` are different values, and so are
    /// `null` and none at all.
    #[serde(default, deserialize_with = "given")]
    proposed_value: Option<Value>,
    /// Taken from existing clients, without effect: rules match agents, not what they say of themselves.
    agent_role: Option<String>,
}

/// A null that is given is a value.
fn given<'de, D: Deserializer<'de>>(value: D) -> std::result::Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// What policy says to a value.
#[derive(Serialize, JsonSchema)]
pub(super) struct Validated {
    /// Whether no rule fired at all, not even one that only warns.
    valid: bool,
    /// Whether a rule forbids it.
    hard_stop: bool,
    /// The rules that fired.
    violations: Vec<Violation>,
    /// The policy that was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_id: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_description: Option<String>,
    /// Its version; 0 for what is built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_version: Option<i64>,
    /// How many rules were looked at.
    policy_rules_checked: u32,
    /// Whether a mapping names the agent and the domain.
    mapping_found: bool,
    /// The mode that a proposal of only this would get.
    mode: Mode,
    /// Whether this was counted, because you asked for what policy forbids.
    counted: bool,
}

/// Answers that changed nothing: what is not counted.
pub(super) fn is_untold(answer: &Value) -> bool {
    answer.get("counted") != Some(&Value::Bool(true))
}

pub(super) fn validate(cx: &mut Cx<'_, '_>, input: ValidatePolicy) -> Result<Validated> {
    check_domain("domain", &input.domain)?;
    check_said("field", &input.field, NAME_CHARS_MAX)?;
    check_text("agent_role", input.agent_role.as_deref().unwrap_or_default(), NAME_CHARS_MAX)?;
    let who = agent_of(cx, input.agent_id.as_deref())?;
    let mut arguments = Map::new();
    if let Some(value) = input.proposed_value {
        check_text("proposed_value", &value.to_string(), CHANGE_BYTES_MAX)?;
        arguments.insert(input.field.clone(), value);
    }
    let act = Act {
        kind: VERB.to_owned(),
        tool: "cowork_propose".to_owned(),
        domain: input.domain,
        field: Some(input.field),
        arguments: Value::Object(arguments),
        ..Act::default()
    };
    let Judged { decision, gauge, .. } = request::weigh(cx, &act, &who, false)?;
    let own = cx.actor.is_agent();
    if let Some(held) = gauge.and_then(|gauge| gauge.held).filter(|_| own) {
        return Err(held.error());
    }
    let hard_stop = decision.hard_stops().next().is_some();
    if own && hard_stop {
        request::questioned(cx, &who, &act, &decision)?;
    }
    let rulebook = policy::current(cx)?;
    let applied = decision.policies.first();
    let violations: Vec<Violation> = decision.hard_stops().chain(decision.warnings()).map(Violation::of).collect();
    Ok(Validated {
        valid: violations.is_empty(),
        hard_stop,
        violations,
        policy_id: applied.map(|applied| applied.policy.clone()),
        policy_description: applied.and_then(|applied| rulebook.policy(&applied.policy)).map(|(policy, _)| policy.description.clone()),
        policy_version: applied.map(|applied| applied.version),
        policy_rules_checked: decision.rules_checked,
        mapping_found: decision.mapping_found,
        mode: decision.mode,
        counted: own && hard_stop,
    })
}
