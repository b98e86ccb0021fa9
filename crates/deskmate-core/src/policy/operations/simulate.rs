//! A draft replayed over the record: which past answers would differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::draft::refused;
use super::super::{Act, COUNTERS, Counters, Decision, Mode, Rulebook, Standing, current, decide};
use super::apply::read;
use crate::call::Cx;
use crate::limits::{PAGE_DEFAULT, PAGE_MAX};
use crate::record::{self, EventRow, Search};
use crate::request::{self, RequestKind};
use crate::trust::{self, Points};
use crate::{Error, Result, agents, parse_time};

/// Replay a draft over what agents asked for, proposals, held calls, plans and approvals, and over what they were denied, as the record tells
/// it, and show which answers would differ. Policies that are attached to an agent hold as they are now. The act, the score, a person's word that stood in for it and the moment are those of then, and so is what the agent had used up,
/// where a rule asked for that then; `without_counters` says of how many it is not known. A limit that held then holds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Simulate {
    /// The draft, as it would stand in `deskmate.yaml`; what is in force if not given.
    document: Option<String>,
    /// Only from this time on, RFC 3339.
    since: Option<String>,
    /// Only this agent.
    agent: Option<String>,
    /// Only this domain.
    domain: Option<String>,
    /// How many past acts one call looks at; at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// Which past answers would differ.
#[derive(Serialize, JsonSchema)]
pub(super) struct Simulated {
    /// How many past acts this page looked at.
    looked_at: usize,
    /// How many would get the same answer.
    same: usize,
    /// How many would get a more restrictive one.
    stricter: usize,
    /// How many would get a less restrictive one.
    looser: usize,
    /// How many could not be replayed, because what was proposed was erased.
    erased: usize,
    /// How many were replayed as if nothing had been used up: the draft asks for what was, and no rule asked for it then.
    without_counters: usize,
    /// Those that differ, newest first.
    differing: Vec<Differing>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Differing {
    /// The event that tells of it.
    seq: u64,
    /// The request that it became; absent if it was denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    /// When.
    at: String,
    /// Who asked.
    agent: String,
    /// In which domain.
    domain: String,
    /// What was answered.
    then: Mode,
    /// What the draft answers.
    now: Mode,
    /// The rules of the draft that fire.
    hits: Vec<String>,
    /// Why, in words.
    why: String,
}

/// An act of then: who, what, and what was answered.
struct Past {
    request: Option<String>,
    kind: Option<RequestKind>,
    agent: String,
    domain: String,
    verified: bool,
    act: Act,
    then: Mode,
    decision: Option<Decision>,
    score: Option<Points>,
    /// The person's word that stood in for trust.
    waived_by: Option<String>,
}

const CREATED: &str = "request.created";
const DENIED: &str = "act.denied";

pub(super) fn simulate(cx: &mut Cx<'_, '_>, input: Simulate) -> Result<Simulated> {
    let rulebook = draft_of(cx, input.document.as_deref())?;
    let since = input.since.as_deref().map(|text| parse_time("since", text)).transpose()?.unwrap_or(i64::MIN);
    let (events, next) = page(cx, input.limit, input.cursor.as_deref())?;
    let mut out = Simulated { looked_at: 0, same: 0, stricter: 0, looser: 0, erased: 0, without_counters: 0, differing: Vec::new(), next_cursor: next };
    for event in events {
        let at = parse_time("at", &event.at)?;
        if at < since {
            out.next_cursor = None;
            break;
        }
        let fact = |name: &str| event.facts.get(name).and_then(Value::as_str);
        let wanted = |filter: &Option<String>, name: &str| filter.as_deref().is_none_or(|value| fact(name) == Some(value));
        if !is_act(&event) || fact("requester_kind") != Some("agent") || !wanted(&input.agent, "requester") || !wanted(&input.domain, "domain") {
            continue;
        }
        out.looked_at += 1;
        let Some(past) = past(cx, &event)? else {
            out.erased += 1;
            continue;
        };
        let standing = standing(cx, &past, &rulebook)?;
        let (counters, is_known) = counters(&event, &standing, &rulebook);
        out.without_counters += usize::from(!is_known);
        let mut now = decide(&rulebook, &past.act, &standing, &counters, at);
        let limits = past.decision.iter().flat_map(|decision| &decision.reasons).filter(|reason| reason.source == "limit");
        if let Some(limit) = limits.map(|reason| reason.mode).min() {
            now.mode = now.mode.min(limit);
        }
        if let Some(then) = &past.decision {
            request::hold_as_then(&rulebook, past.kind, &past.act, then, &mut now);
        }
        match now.mode.cmp(&past.then) {
            std::cmp::Ordering::Equal => out.same += 1,
            std::cmp::Ordering::Less => out.stricter += 1,
            std::cmp::Ordering::Greater => out.looser += 1,
        }
        if now.mode != past.then {
            out.differing.push(Differing {
                seq: event.seq,
                request: past.request,
                at: event.at,
                agent: past.agent,
                domain: past.domain,
                then: past.then,
                now: now.mode,
                hits: now.hits.iter().map(|hit| hit.rule_id.clone()).collect(),
                why: now.reasons.first().map(|reason| reason.text.clone()).unwrap_or_default(),
            });
        }
    }
    Ok(out)
}

/// Whether an event tells of an act that an agent intended.
fn is_act(event: &EventRow) -> bool {
    let kind = event.facts.get("request_kind").and_then(Value::as_str);
    event.kind == DENIED || kind.and_then(|kind| RequestKind::from_name(kind).ok()).is_some_and(RequestKind::is_act)
}

fn draft_of(cx: &mut Cx<'_, '_>, document: Option<&str>) -> Result<Arc<Rulebook>> {
    let in_force = current(cx)?;
    let Some(text) = document else { return Ok(in_force) };
    let parts = read(text)?.over(in_force.parts());
    Rulebook::compile(parts, BTreeMap::new()).map(Arc::new).map_err(|problems| refused(&problems))
}

/// The newest events before a place that tell of a request or of a denial, and where the next page begins.
fn page(cx: &mut Cx<'_, '_>, limit: Option<u32>, cursor: Option<&str>) -> Result<(Vec<EventRow>, Option<String>)> {
    let limit = limit.unwrap_or(PAGE_DEFAULT);
    if limit == 0 || limit > PAGE_MAX {
        return Err(Error::invalid("limit", format!("must be between 1 and {PAGE_MAX}")));
    }
    let wrong = |_| Error::invalid("cursor", "is not a cursor that this operation gave out");
    let before = cursor.map(|cursor| cursor.parse::<u64>().map_err(wrong)).transpose()?;
    let mut events = Vec::new();
    for kind in [CREATED, DENIED] {
        events.extend(record::search(cx.tx, &Search { kinds: vec![kind.to_owned()], before, limit: limit + 1, ..Search::default() })?);
    }
    events.sort_by_key(|event| std::cmp::Reverse(event.seq));
    let more = events.len() > limit as usize;
    events.truncate(limit as usize);
    let next = if more { events.last().map(|event| event.seq.to_string()) } else { None };
    Ok((events, next))
}

/// What an event tells of an act, with the exact act from its request where there is one. `None` once it was erased.
fn past(cx: &mut Cx<'_, '_>, event: &EventRow) -> Result<Option<Past>> {
    let text = |name: &str| event.facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let told = event.payload.as_ref().and_then(|payload| payload.get("act")).and_then(|act| serde_json::from_value::<Act>(act.clone()).ok());
    let score = event.facts.get("trust").and_then(|trust| trust.get("score")).and_then(Value::as_i64).map(Points);
    let waived_by = event.payload.as_ref().and_then(|payload| payload.get("waived_by")).and_then(Value::as_str).map(str::to_owned);
    let (agent, domain) = (text("requester"), text("domain"));
    if event.kind == DENIED {
        let past = |act| Past { request: None, kind: None, agent, domain, verified: event.verified, act, then: Mode::Deny, decision: None, score, waived_by };
        return Ok(told.map(past));
    }
    let verified = event.facts.get("verified").and_then(Value::as_bool).unwrap_or(false);
    let Some(then) = serde_json::from_value::<Mode>(Value::from(text("mode"))).ok() else { return Ok(None) };
    let request = request::find(cx, &text("request"))?;
    let decision = request.as_ref().map(request::Request::decided).transpose()?.flatten();
    // What a person edited is another act than the one that was answered then.
    let exact = request.filter(|request| request.edited_by.is_none()).and_then(|request| request.act().ok());
    let kind = RequestKind::from_name(&text("request_kind")).ok();
    let past = |act| Past { request: Some(text("request")), kind, agent, domain, verified, act, then, decision, score, waived_by };
    Ok(exact.or(told).map(past))
}

/// How the agent stood then, as far as it was kept: what the answer of then rested on tells the rest.
fn standing(cx: &mut Cx<'_, '_>, past: &Past, rulebook: &Rulebook) -> Result<Standing> {
    let rested_on = |source: &str| past.decision.iter().flat_map(|decision| &decision.reasons).any(|reason| reason.source == source);
    let score = match past.score {
        Some(score) => score,
        None => trust::look(cx, &past.agent, &past.domain, past.verified)?.score,
    };
    Ok(Standing {
        agent: past.agent.clone(),
        verified: past.verified,
        paused: rested_on("pause"),
        score,
        decided: i64::from(!rested_on("default_mode")),
        over_a_persons_edit: rested_on("edit"),
        waived_by: past.waived_by.clone(),
        attached: agents::attached(cx, &past.agent, rulebook)?,
    })
}

/// What the agent had used up then, and whether that is known of everything that is asked for.
fn counters(event: &EventRow, standing: &Standing, rulebook: &Rulebook) -> (Counters, bool) {
    let kept = event.facts.get("counters");
    let asked = |variable: &str| rulebook.asks_for(variable) || standing.attached.as_ref().is_some_and(|attached| attached.asks_for(variable));
    let names = json!(Counters::default());
    let is_known =
        names.as_object().into_iter().flat_map(Map::keys).all(|name| kept.and_then(|kept| kept.get(name)).is_some() || !asked(&format!("{COUNTERS}{name}")));
    (kept.and_then(|kept| serde_json::from_value(kept.clone()).ok()).unwrap_or_default(), is_known)
}

/// A past act that a policy would have caught.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct CaughtAct {
    /// When.
    pub(crate) at: String,
    /// Who asked.
    pub(crate) agent: String,
    /// In which domain.
    pub(crate) domain: String,
    /// What it was, in a few words.
    pub(crate) act: String,
    /// The rules that fire.
    pub(crate) rules: Vec<String>,
    /// What was answered then.
    pub(crate) then: Mode,
    /// What this policy answers, at best.
    pub(crate) now: Mode,
}

/// What a policy would have done to past acts.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Caught {
    /// How many past acts were looked at: the newest.
    pub(crate) looked_at: usize,
    /// How many could not be, because what was asked was erased.
    pub(crate) erased: usize,
    /// How many it would have caught.
    pub(crate) caught: usize,
    /// The newest of these.
    pub(crate) examples: Vec<CaughtAct>,
}

/// Which of the newest past acts a policy would have caught, if it had held for everybody. Of others' acts an agent is told nothing.
pub(crate) fn would_catch(cx: &mut Cx<'_, '_>, policy: &super::super::Policy, limit: u32, shown: usize) -> Result<Caught> {
    let in_force = current(cx)?;
    let mut parts = in_force.parts().clone();
    parts.policies.insert(policy.id.clone(), policy.clone());
    let rulebook = Rulebook::compile(parts, BTreeMap::new()).map_err(|problems| refused(&problems))?;
    let (events, _) = page(cx, Some(limit), None)?;
    let mut out = Caught::default();
    for event in events {
        let fact = |name: &str| event.facts.get(name).and_then(Value::as_str);
        let is_own = !cx.actor.is_agent() || fact("requester") == Some(cx.actor.id.as_str());
        if !is_act(&event) || !is_own || fact("requester_kind") != Some("agent") {
            continue;
        }
        out.looked_at += 1;
        let Some(past) = past(cx, &event)? else {
            out.erased += 1;
            continue;
        };
        let standing = standing(cx, &past, &rulebook)?;
        let at = parse_time("at", &event.at)?;
        let decision = super::super::decide_under(&rulebook, &policy.id, &past.act, &standing, &counters(&event, &standing, &rulebook).0, at);
        let own: Vec<&super::super::Hit> = decision.hits.iter().filter(|hit| hit.policy == policy.id).collect();
        let Some(now) = own
            .iter()
            .map(|hit| match hit.effect {
                super::super::Effect::Deny => Mode::Deny,
                super::super::Effect::RequireApproval => Mode::Suggest,
                _ => Mode::Act,
            })
            .min()
        else {
            continue;
        };
        out.caught += 1;
        if out.examples.len() < shown {
            let words: Vec<&str> =
                [past.act.kind.as_str(), past.act.action.as_str(), past.act.target.as_str()].into_iter().filter(|word| !word.is_empty()).collect();
            let act: String = words.join(" ").chars().take(200).collect();
            let rules = own.iter().map(|hit| hit.rule_id.clone()).collect();
            out.examples.push(CaughtAct { at: event.at.clone(), agent: past.agent.clone(), domain: past.domain.clone(), act, rules, then: past.then, now });
        }
    }
    Ok(out)
}
