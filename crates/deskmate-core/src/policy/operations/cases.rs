//! Running the cases that are kept beside policies.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::model::{Case, Parts};
use super::super::{Act, Counters, Mode, Problem, Rulebook, Standing, current, decide_under};
use super::apply::read;
use crate::call::Cx;
use crate::trust::Points;
use crate::{Result, parse_time};

/// Run the cases that are kept beside the policies in force, or beside those of a draft.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Test {
    /// A draft, as it would stand in `deskmate.yaml`; what is in force if not given.
    document: Option<String>,
    /// Only the cases of this policy.
    policy: Option<String>,
}

/// How the cases came out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tested {
    /// Whether every case came out as it must.
    pub ok: bool,
    /// How many did.
    pub passed: usize,
    /// How many did not.
    pub failed: usize,
    /// Each case.
    pub cases: Vec<CaseOut>,
}

/// How a case came out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CaseOut {
    /// The policy.
    pub policy: String,
    /// The case's name.
    pub case: String,
    /// Whether it came out as it must.
    pub ok: bool,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The rules that fired.
    pub hits: Vec<String>,
    /// What is different from what it must be.
    pub problems: Vec<String>,
}

pub(super) fn test(cx: &mut Cx<'_, '_>, input: Test) -> Result<Tested> {
    let rulebook = current(cx)?;
    let parts = match &input.document {
        Some(text) => super::super::draft::over(&read(text)?, rulebook.parts()),
        None => rulebook.parts().clone(),
    };
    run(&parts, input.policy.as_deref(), cx.now()).map_err(|problems| super::super::draft::refused(&problems))
}

/// Runs the cases of every policy, or of one. Each policy is looked at alone, as if a mapping named it for the case's
/// agent and domain, with the settings and the rules for everybody that hold beside it.
pub fn run(parts: &Parts, only: Option<&str>, now: i64) -> Result<Tested, Vec<Problem>> {
    let rulebook = Rulebook::compile(parts.clone(), BTreeMap::new())?;
    let wanted = parts.policies.iter().filter(|(name, _)| only.is_none_or(|only| only == name.as_str()));
    let cases: Vec<CaseOut> = wanted.flat_map(|(name, policy)| policy.tests.iter().map(|case| one(&rulebook, name, case, now))).collect();
    let failed = cases.iter().filter(|case| !case.ok).count();
    Ok(Tested { ok: failed == 0, passed: cases.len() - failed, failed, cases })
}

/// Who acts in a case that does not say.
const AGENT: &str = "case-agent";
/// Where an act of a case happens that does not say.
const DOMAIN: &str = "case.domain";

fn agent(case: &Case) -> &str {
    case.agent.as_deref().unwrap_or(AGENT)
}

fn one(rulebook: &Rulebook, policy: &str, case: &Case, now: i64) -> CaseOut {
    let mut out = CaseOut { policy: policy.to_owned(), case: case.name.clone(), ok: false, mode: None, hits: Vec::new(), problems: Vec::new() };
    let now = match case.now.as_deref().map(|text| parse_time("now", text)).transpose() {
        Ok(given) => given.unwrap_or(now),
        Err(error) => {
            out.problems.push(error.to_string());
            return out;
        }
    };
    let (act, counters) = match (act_of(&case.act), counters_of(&case.counters)) {
        (Ok(act), Ok(counters)) => (act, counters),
        (act, counters) => {
            out.problems.extend([act.err(), counters.err()].into_iter().flatten());
            return out;
        }
    };
    let standing = Standing {
        agent: agent(case).to_owned(),
        verified: true,
        paused: false,
        score: Points::of(case.trust.unwrap_or(1.0)).clamped(),
        decided: 1,
        over_a_persons_edit: false,
        waived_by: None,
    };
    let decision = decide_under(rulebook, policy, &act, &standing, &counters, now);
    out.mode = Some(decision.mode);
    out.hits = decision.hits.iter().map(|hit| hit.rule_id.clone()).collect();
    if let Some(must) = case.mode.filter(|must| *must != decision.mode) {
        out.problems.push(format!("the answer is {}, it must be {}", decision.mode.name(), must.name()));
    }
    if let Some(must) = &case.hits {
        let sorted = |ids: &[String]| {
            let mut ids = ids.to_vec();
            ids.sort();
            ids
        };
        if sorted(must) != sorted(&out.hits) {
            let list = |ids: &[String]| if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            out.problems.push(format!("these rules fired: {}; these must: {}", list(&out.hits), list(must)));
        }
    }
    if case.mode.is_none() && case.hits.is_none() {
        out.problems.push("it says neither which mode nor which hits must come out".to_owned());
    }
    out.ok = out.problems.is_empty();
    out
}

/// An act of which only what matters was written.
pub(super) fn act_of(given: &Map<String, Value>) -> Result<Act, String> {
    let mut whole = Map::new();
    for (name, usual) in [("kind", "propose"), ("tool", "cowork_propose"), ("domain", DOMAIN), ("action", ""), ("target", "")] {
        whole.insert(name.to_owned(), Value::from(usual));
    }
    whole.insert("arguments".to_owned(), Value::Object(Map::new()));
    whole.extend(given.clone());
    serde_json::from_value(Value::Object(whole)).map_err(|error| format!("act: {error}"))
}

fn counters_of(given: &Map<String, Value>) -> Result<Counters, String> {
    let mut counters = Counters::default();
    for (name, value) in given {
        let number = value.as_i64().ok_or_else(|| format!("counters: {name} must be a whole number"))?;
        let slot = match name.as_str() {
            "calls_minute" => &mut counters.calls_minute,
            "calls_hour" => &mut counters.calls_hour,
            "calls_day" => &mut counters.calls_day,
            "calls_hour_all" => &mut counters.calls_hour_all,
            "cost_day" => &mut counters.cost_day,
            "denied_day" => &mut counters.denied_day,
            "pending" => &mut counters.pending,
            _ => return Err(format!("counters: there is no counter {name}")),
        };
        *slot = number;
    }
    Ok(counters)
}
