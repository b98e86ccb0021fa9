//! The one way in which every capability asks what an intended act may do.

use std::sync::Arc;

use super::model::{Request, RequestKind, Requester};
use super::{rows, standing};
use crate::call::{ActorKind, Cx};
use crate::gateway::TOOL_CALL;
use crate::limits::HITS_MAX;
use crate::meter::{self, Gauge};
use crate::policy::{self, Act, Attached, Counters, Decision, Effect, HIGH_RISK_LIST, Hit, Match, Mode, Needs, Outlook, Reason, Rule, Rulebook, Standing};
use crate::trust::{self, Points, Trust};
use crate::workspace::plan;
use crate::{Result, agents};

/// The verb of handoffs.
pub(crate) const HANDOFF: &str = "handoff";

/// An answer, and what it was weighed with: whoever goes on need not look again.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The answer.
    pub decision: Decision,
    /// How much the agent is trusted; `None` for people.
    pub trust: Option<Trust>,
    /// What the agent used up; `None` for people.
    pub gauge: Option<Gauge>,
    /// Whether a rule that may hold for the agent looks at how often it acted.
    pub counts: bool,
}

/// How often an agent acted in the last minute: what takes reads of its own.
const MINUTE: &str = "counters.calls_minute";
/// How often an agent acted, as rules ask for it.
const RATES: [&str; 5] = [MINUTE, "counters.calls_hour", "counters.calls_day", "counters.calls_hour_all", "counters.calls_day_all"];

impl Judged {
    /// Why everything is denied to the agent, if it is: too much was lately, or a person paused it. What it tries meanwhile is no news.
    pub(crate) fn stopped(&self) -> Option<String> {
        let gauge = self.gauge.as_ref()?;
        let held = gauge.held.as_ref().map(|held| format!("{}; ask again in {} seconds", held.message(), held.retry_after_ms.div_ceil(1_000)));
        held.or_else(|| gauge.paused.then(|| "you are paused until a person lets you go on".to_owned()))
    }

    /// Counts an act that is done and that no cap bounds. Where no rule looks at how many there were, that costs nothing.
    pub(crate) fn count(&mut self, cx: &mut Cx<'_, '_>, cost: i64) -> Result<()> {
        match self.gauge.take() {
            Some(gauge) if self.counts => meter::count(cx, gauge, cost),
            _ => Ok(()),
        }
    }
}

/// What the desk answers to an intended act. `over_a_persons_edit` says whether the act would overwrite what a person
/// set.
pub fn judge(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester, over_a_persons_edit: bool) -> Result<Decision> {
    Ok(weigh(cx, act, who, over_a_persons_edit)?.decision)
}

/// Like [`judge`], with what was gathered for it. Who was denied too much lately is denied everything for a while, on every path.
pub fn weigh(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester, over_a_persons_edit: bool) -> Result<Judged> {
    let mut judged = weigh_as(cx, act, who, over_a_persons_edit, Use::New)?;
    if let Some(held) = judged.gauge.as_ref().and_then(|gauge| gauge.held.as_ref()) {
        judged.decision.mode = Mode::Deny;
        let would_change = Some("waiting".to_owned());
        judged.decision.reasons.insert(0, Reason { source: "limit".to_owned(), mode: Mode::Deny, text: held.message(), would_change });
    }
    Ok(judged)
}

/// Like [`weigh`], for an act that has begun: what it used up itself, at a moment, does not count against it.
pub(crate) fn weigh_begun(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester, at: i64) -> Result<Judged> {
    weigh_as(cx, act, who, false, Use::Taken(at))
}

/// Whether an act's own use is in the meters: still to be taken, or taken at a moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    New,
    Taken(i64),
}

impl Use {
    /// That of a request's act. Only what was proposed here took any: what came from another server did not.
    pub(super) fn of(request: &Request, act: &Act) -> Self {
        if act.criteria.is_some() { Self::Taken(request.created_at) } else { Self::New }
    }
}

pub(super) fn weigh_as(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester, over_a_persons_edit: bool, uses: Use) -> Result<Judged> {
    let rulebook = policy::current(cx)?;
    let now = cx.now();
    if who.kind != ActorKind::Agent {
        let standing = Standing {
            agent: who.id.clone(),
            verified: true,
            paused: false,
            score: Points::ONE,
            decided: i64::MAX,
            over_a_persons_edit: false,
            waived_by: None,
            attached: own_policies(cx, act, who, &rulebook)?,
        };
        let decision = policy::decide(&rulebook, act, &standing, &policy::Counters::default(), now);
        return Ok(Judged { decision: of_person(decision, who), trust: None, gauge: None, counts: false });
    }
    let (standing, counters, trust, gauge) = stand(cx, act, who, &rulebook, over_a_persons_edit, uses)?;
    let mut decision = policy::decide(&rulebook, act, &standing, &counters, now);
    let own = standing.attached.as_deref();
    let asks_for = |variable: &str| rulebook.asks_for(variable) || own.is_some_and(|own| own.asks_for(variable));
    if rulebook.asks_for_counters() || own.is_some_and(Attached::asks_for_counters) {
        decision.counters = Some(counters.told(asks_for(MINUTE)));
    }
    let counts = RATES.iter().any(|rate| asks_for(rate));
    Ok(Judged { decision, trust: Some(trust), gauge: Some(gauge), counts })
}

/// What an agent's acts like this one would get, whatever they are called with.
pub(crate) fn outlook(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester) -> Result<Outlook> {
    let rulebook = policy::current(cx)?;
    let (standing, counters, ..) = stand(cx, act, who, &rulebook, false, Use::New)?;
    Ok(policy::outlook(&rulebook, act, &standing, &counters, cx.now()))
}

/// The policies of one agent alone that an act is asked with: those of the agent that acts, and to a deployment those of the agent
/// that is deployed, whoever deploys it.
fn own_policies(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester, rulebook: &Rulebook) -> Result<Option<Arc<Attached>>> {
    let own = if who.is_agent() { agents::attached(cx, &who.id, rulebook)? } else { None };
    match own {
        None if act.kind == agents::DEPLOY => agents::attached(cx, &act.target, rulebook),
        own => Ok(own),
    }
}

/// How an agent stands, and what it has used up.
fn stand(
    cx: &mut Cx<'_, '_>,
    act: &Act,
    who: &Requester,
    rulebook: &Rulebook,
    over_a_persons_edit: bool,
    uses: Use,
) -> Result<(Standing, Counters, Trust, Gauge)> {
    let trust = trust::look(cx, &who.id, &act.domain, who.verified)?;
    let mut gauge = meter::gauge_of(cx, &who.id, &act.domain, act.call)?;
    let attached = own_policies(cx, act, who, rulebook)?;
    let asks_for = |variable: &str| rulebook.asks_for(variable) || attached.as_ref().is_some_and(|attached| attached.asks_for(variable));
    if asks_for(MINUTE) {
        gauge.count_minute(cx)?;
    }
    let mut counters = gauge.counters;
    counters.pending = rows::pending_of(cx.tx, &who.id)?;
    if let Use::Taken(at) = uses {
        counters = counters.without(gauge.still_in(cx, at)?, act.cost);
    }
    let standing = Standing {
        agent: who.id.clone(),
        verified: who.verified,
        paused: gauge.paused,
        score: trust.score,
        decided: trust.decided(),
        over_a_persons_edit,
        waived_by: standing::waived_by(cx, &who.id, act)?,
        attached,
    };
    Ok((standing, counters, trust, gauge))
}

/// Makes a decision wait for a person whatever the trust, unless a rule that names the verb or the tool lets the act pass: one
/// that allows all kinds of acts was not written with this in mind.
pub(crate) fn hold_unless_named(cx: &mut Cx<'_, '_>, decision: &mut Decision, act: &Act, who: &Requester) -> Result<()> {
    if decision.mode != Mode::Act || !(who.is_agent() || who.is_token()) {
        return Ok(());
    }
    hold_unless_named_in(&*policy::current(cx)?, decision, act);
    Ok(())
}

/// What is said of an act that waits for a person whatever the trust.
const ANYWAY: &str = "this waits for a person, whatever the trust";

/// Whether an act waited for a person because no rule named it.
pub(crate) fn was_held_anyway(decision: &Decision) -> bool {
    decision.reasons.iter().any(|reason| reason.source == "policy" && reason.text == ANYWAY)
}

/// The same as [`hold_unless_named`] for an agent's act under a rulebook, whoever asks.
pub(crate) fn hold_unless_named_in(rulebook: &Rulebook, decision: &mut Decision, act: &Act) {
    if decision.mode != Mode::Act {
        return;
    }
    let about = |matches: &Match| matches.kind.contains(&act.kind) || !matches.tool.is_empty();
    if !decision.hits.iter().any(|hit| hit.effect == Effect::Allow && !hit.failed && matches_of(rulebook, hit).any(about)) {
        decision.mode = Mode::Suggest;
        let would_change = Some(format!("a rule with the effect allow for {}", act.kind));
        decision.reasons.insert(0, Reason { source: "policy".to_owned(), mode: Mode::Suggest, text: ANYWAY.to_owned(), would_change });
    }
}

/// The acts that a rule that fired is about.
fn matches_of<'a>(rulebook: &'a Rulebook, hit: &'a Hit) -> impl Iterator<Item = &'a Match> {
    let rules = rulebook.policy(&hit.policy).map_or(&[][..], |(policy, _)| policy.rules.as_slice());
    rules.iter().filter_map(|rule| match rule {
        Rule::General(rule) if rule.name == hit.rule_id => Some(&rule.matches),
        _ => None,
    })
}

/// Some requests wait for a person whatever rules and trust say: those that no rule names, and those that are a question to people.
/// `then` is what was answered when it was asked.
pub(crate) fn hold_as_then(rulebook: &Rulebook, kind: Option<RequestKind>, act: &Act, then: &Decision, now: &mut Decision) {
    let is_unnamed = match kind {
        Some(RequestKind::Plan | RequestKind::Deploy) => true,
        Some(RequestKind::ToolCall) => act.call && act.kind == TOOL_CALL,
        _ => false,
    };
    if is_unnamed || was_held_anyway(then) {
        hold_unless_named_in(rulebook, now, act);
    } else if then.reasons.iter().map(|reason| reason.mode).min() > Some(then.mode) && now.mode > then.mode {
        now.mode = then.mode;
        let text = "people are asked about this, whatever the trust".to_owned();
        now.reasons.insert(0, Reason { source: "policy".to_owned(), mode: then.mode, text, would_change: None });
    }
}

/// What a request that was made would be answered now, on the path that it came by.
pub(crate) fn judge_again(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Decision> {
    let (act, who, then) = (request.act()?, &request.requester, request.decided()?);
    if request.kind == RequestKind::Handoff {
        return Ok(judge_handoff(cx, &act, who)?.decision);
    }
    if matches!(request.kind, RequestKind::Promotion | RequestKind::Policy) {
        let why = then.iter().flat_map(|then| &then.reasons).map(|reason| reason.text.as_str()).next().unwrap_or(ANYWAY);
        return for_people(cx, &act.domain, &request.risk, why);
    }
    let mut now = judge(cx, &act, who, request.kind == RequestKind::Edit)?;
    if let Some(then) = then.filter(|_| who.is_agent() || who.is_token()) {
        hold_as_then(&*policy::current(cx)?, Some(request.kind), &act, &then, &mut now);
    }
    Ok(now)
}

/// What an act that somebody might intend would be answered, on the path that its kind takes.
pub(crate) fn judge_intended(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester) -> Result<Decision> {
    if act.kind == HANDOFF {
        return Ok(judge_handoff(cx, act, who)?.decision);
    }
    let mut decision = judge(cx, act, who, false)?;
    if [TOOL_CALL, agents::DEPLOY, plan::CHANGE, plan::RUN].contains(&act.kind.as_str()) {
        hold_unless_named(cx, &mut decision, act, who)?;
    }
    Ok(decision)
}

/// What the desk answers to a handoff. It goes to people whatever rules and trust say, but not from an agent that is stopped, by a
/// pause or by too many denials; and a rule that names handoffs and denies them holds. One for all kinds of acts was not written
/// with this in mind.
pub(crate) fn judge_handoff(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester) -> Result<Judged> {
    let mut judged = weigh(cx, act, who, false)?;
    let is_held = judged.gauge.as_ref().is_some_and(|gauge| gauge.held.is_some());
    let is_stopped = is_held || judged.gauge.as_ref().is_some_and(|gauge| gauge.paused);
    let rulebook = policy::current(cx)?;
    let about = |matches: &Match| matches.kind.contains(&act.kind) || matches.tool.contains(&act.tool);
    let own = own_policies(cx, act, who, &rulebook)?;
    let is_named = |hit: &Hit| matches_of(&rulebook, hit).any(about) || own.as_ref().is_some_and(|own| own.matches_of(hit).any(about));
    let is_denied = |hit: &Hit| hit.effect == Effect::Deny && is_named(hit);
    if is_stopped || judged.decision.hits.iter().any(is_denied) {
        judged.decision.mode = Mode::Deny;
        judged.decision.hits.retain(is_denied);
        let Decision { hits, reasons, .. } = &mut judged.decision;
        let is_why = |reason: &Reason| match reason.source.as_str() {
            "pause" => true,
            "limit" => is_held,
            _ => hits.iter().any(|hit| reason.text.starts_with(&hit.reason)),
        };
        reasons.retain(|reason| reason.mode == Mode::Deny && is_why(reason));
    } else {
        judged.decision = for_people(cx, &act.domain, "low", "the agent hands this over")?;
    }
    Ok(judged)
}

/// A person's own act needs no request, unless a rule forbids it or asks for a second person. A field of high risk asks for a
/// person, and one is there. A program with a person's token is none, so what makes an agent wait does so here; and where there are more hits than are named, nobody knows
/// what the others ask for.
fn of_person(mut decision: Decision, who: &Requester) -> Decision {
    let is_there = !who.is_token() && decision.hits.len() < HITS_MAX;
    let is_high_risk = |hit: &Hit| hit.policy == HIGH_RISK_LIST || (hit.field.is_some() && !hit.failed);
    let asks_for_another = |hit: &Hit| hit.effect == Effect::RequireApproval && !(is_there && is_high_risk(hit));
    let waits = |reason: &Reason| who.is_token() && reason.source == "policy" && reason.mode == Mode::Suggest;
    decision.mode = if forbids(&decision).is_some() {
        Mode::Deny
    } else if decision.hits.iter().any(asks_for_another) || decision.reasons.iter().any(waits) {
        Mode::Suggest
    } else {
        Mode::Act
    };
    decision.reasons.retain(|reason| reason.source == "policy");
    decision
}

/// Why the rules forbid an act, if they do: a rule that denies, or rules that together leave nobody to approve. Pauses and
/// limits pass, so they are not among these.
pub(crate) fn forbids(decision: &Decision) -> Option<String> {
    let stops = decision.hard_stops().map(|hit| format!("{} ({} version {}): {}", hit.rule_id, hit.policy, hit.version, hit.reason));
    let others = decision.reasons.iter().filter(|reason| reason.source == "policy" && reason.mode == Mode::Deny).map(|reason| reason.text.clone());
    let mut all: Vec<String> = stops.collect();
    if all.is_empty() {
        all = others.collect();
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// A decision that sends something to people whatever policy says: handoffs, promotions, changes of policy, edits over a
/// person's edit. `risk` is `low`, `medium`, `high` or `critical`.
pub fn for_people(cx: &mut Cx<'_, '_>, domain: &str, risk: &str, why: &str) -> Result<Decision> {
    let rulebook = policy::current(cx)?;
    let authority = &rulebook.settings(domain).authority;
    Ok(Decision {
        mode: Mode::Suggest,
        mapping_found: false,
        policies: Vec::new(),
        rulebook: rulebook.digest().to_owned(),
        rules_checked: 0,
        hits: Vec::new(),
        high_risk_field: false,
        risk: risk.to_owned(),
        reasons: vec![Reason { source: "policy".to_owned(), mode: Mode::Suggest, text: why.to_owned(), would_change: None }],
        needs: Needs {
            quorum: 1,
            approvers: Vec::new(),
            grant_seconds: i64::from(authority.grant_seconds),
            expires_seconds: i64::from(authority.request_seconds),
        },
        redact: Vec::new(),
        hides: Vec::new(),
        waived_by: None,
        counters: None,
    })
}
