//! The one way in which every capability asks what an intended act may do.

use super::model::{Request, Requester};
use super::{rows, standing};
use crate::call::{ActorKind, Cx};
use crate::limits::HITS_MAX;
use crate::meter::{self, Gauge};
use crate::policy::{self, Act, Counters, Decision, Effect, HIGH_RISK_LIST, Hit, Match, Mode, Needs, Outlook, Reason, Rule, Rulebook, Standing};
use crate::trust::{self, Points, Trust};
use crate::{Result, agents};

/// An answer, and what it was weighed with: whoever goes on need not look again.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The answer.
    pub decision: Decision,
    /// How much the agent is trusted; `None` for people.
    pub trust: Option<Trust>,
    /// What the agent used up; `None` for people.
    pub gauge: Option<Gauge>,
}

/// What the desk answers to an intended act. `over_a_persons_edit` says whether the act would overwrite what a person
/// set.
pub fn judge(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester, over_a_persons_edit: bool) -> Result<Decision> {
    Ok(weigh(cx, act, who, over_a_persons_edit)?.decision)
}

/// Like [`judge`], with what was gathered for it.
pub fn weigh(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester, over_a_persons_edit: bool) -> Result<Judged> {
    weigh_as(cx, act, who, over_a_persons_edit, Use::New)
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
            attached: None,
        };
        let decision = policy::decide(&rulebook, act, &standing, &policy::Counters::default(), now);
        return Ok(Judged { decision: of_person(decision, who), trust: None, gauge: None });
    }
    let (standing, counters, trust, gauge) = stand(cx, act, who, &rulebook, over_a_persons_edit, uses)?;
    let decision = policy::decide(&rulebook, act, &standing, &counters, now);
    Ok(Judged { decision, trust: Some(trust), gauge: Some(gauge) })
}

/// What an agent's acts like this one would get, whatever they are called with.
pub(crate) fn outlook(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester) -> Result<Outlook> {
    let rulebook = policy::current(cx)?;
    let (standing, counters, ..) = stand(cx, act, who, &rulebook, false, Use::New)?;
    Ok(policy::outlook(&rulebook, act, &standing, &counters, cx.now()))
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
    let mut gauge = meter::gauge(cx, &who.id, &act.domain)?;
    let attached = agents::attached(cx, &who.id, rulebook)?;
    let asks_for = |variable: &str| rulebook.asks_for(variable) || attached.as_ref().is_some_and(|attached| attached.asks_for(variable));
    if asks_for("counters.calls_minute") {
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
    let rulebook = policy::current(cx)?;
    let names = |hit: &Hit| {
        let rules = rulebook.policy(&hit.policy).map_or(&[][..], |(policy, _)| policy.rules.as_slice());
        let about = |matches: &Match| matches.kind.contains(&act.kind) || !matches.tool.is_empty();
        rules.iter().any(|rule| matches!(rule, Rule::General(rule) if rule.name == hit.rule_id && about(&rule.matches)))
    };
    if !decision.hits.iter().any(|hit| hit.effect == Effect::Allow && !hit.failed && names(hit)) {
        decision.mode = Mode::Suggest;
        let text = "this waits for a person, whatever the trust".to_owned();
        let would_change = Some(format!("a rule with the effect allow for {}", act.kind));
        decision.reasons.insert(0, Reason { source: "policy".to_owned(), mode: Mode::Suggest, text, would_change });
    }
    Ok(())
}

/// A person's own act needs no request, unless a rule forbids it or asks for a second person. A field of high risk asks for a
/// person, and one is there. A program with a person's token is none; and where there are more hits than are named, nobody knows
/// what the others ask for.
fn of_person(mut decision: Decision, who: &Requester) -> Decision {
    let is_there = !who.is_token() && decision.hits.len() < HITS_MAX;
    let is_high_risk = |hit: &Hit| hit.policy == HIGH_RISK_LIST || (hit.field.is_some() && !hit.failed);
    let asks_for_another = |hit: &Hit| hit.effect == Effect::RequireApproval && !(is_there && is_high_risk(hit));
    decision.mode = if forbids(&decision).is_some() {
        Mode::Deny
    } else if decision.hits.iter().any(asks_for_another) {
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
    })
}
