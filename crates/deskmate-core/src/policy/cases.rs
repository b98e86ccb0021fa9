//! The cases that are kept beside a policy, and what became of them.

use schemars::JsonSchema;
use serde::Serialize;

use super::model::Case;
use super::{Act, Counters, Decision, GLOBAL_POLICY, Mode, Rulebook, Standing, decide_under};
use crate::trust::Points;

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CaseResult {
    /// The policy.
    pub policy: String,
    /// The case.
    pub name: String,
    /// Whether everything came out as expected.
    pub passed: bool,
    /// The mode that came out.
    pub mode: Mode,
    /// The rules that fired.
    pub hits: Vec<String>,
    /// What differs, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// The act of a case, with what it leaves open filled in.
pub(super) fn act_of(case: &Case) -> Result<Act, String> {
    let mut act = serde_json::json!({ "kind": "propose", "tool": "cowork_propose", "domain": "test", "action": "", "target": "", "arguments": {} });
    if let Some(fields) = act.as_object_mut() {
        fields.extend(case.act.clone());
    }
    serde_json::from_value(act).map_err(|error| format!("this is not an act: {error}"))
}

/// The counters of a case.
pub(super) fn counters_of(case: &Case) -> Result<Counters, String> {
    let mut counters = serde_json::to_value(Counters::default()).map_err(|error| error.to_string())?;
    if let Some(fields) = counters.as_object_mut() {
        fields.extend(case.counters.clone());
    }
    serde_json::from_value(counters).map_err(|error| format!("these are not counters: {error}"))
}

/// Runs every case of every policy of a rulebook, or of one.
pub fn run_cases(rulebook: &Rulebook, only: Option<&str>) -> Vec<CaseResult> {
    let policies = rulebook.parts().policies.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
    policies.flat_map(|(name, policy)| policy.tests.iter().map(|case| run_case(rulebook, name, case))).collect()
}

/// Runs a case under one policy and the rules for everybody. Unless the case says otherwise a proven, fully trusted and
/// experienced agent acts, so that only rules can hold it.
pub fn run_case(rulebook: &Rulebook, policy: &str, case: &Case) -> CaseResult {
    let decided = decision(rulebook, policy, case);
    let result = |passed, mode, hits, difference| CaseResult { policy: policy.to_owned(), name: case.name.clone(), passed, mode, hits, difference };
    let decision = match decided {
        Ok(decision) => decision,
        Err(why) => return result(false, Mode::Deny, Vec::new(), Some(why)),
    };
    let mut hits: Vec<String> = decision.hits.iter().map(|hit| hit.rule_id.clone()).collect();
    hits.dedup();
    let mut differences = Vec::new();
    if let Some(mode) = case.mode.filter(|mode| *mode != decision.mode) {
        let why = decision.reasons.first().map(|reason| format!(": {}", reason.text)).unwrap_or_default();
        differences.push(format!("expected {}, but it is {}{why}", mode.name(), decision.mode.name()));
    }
    if let Some(expected) = &case.hits {
        let missing: Vec<&str> = expected.iter().filter(|id| !hits.contains(id)).map(String::as_str).collect();
        let beyond: Vec<&str> = hits.iter().filter(|id| !expected.contains(id)).map(String::as_str).collect();
        if !missing.is_empty() {
            differences.push(format!("{} did not fire", missing.join(", ")));
        }
        if !beyond.is_empty() {
            differences.push(format!("{} fired as well", beyond.join(", ")));
        }
    }
    let difference = (!differences.is_empty()).then(|| differences.join("; "));
    result(difference.is_none(), decision.mode, hits, difference)
}

fn decision(rulebook: &Rulebook, policy: &str, case: &Case) -> Result<Decision, String> {
    let (act, counters) = (act_of(case)?, counters_of(case)?);
    // A Thursday at noon, where a case does not care.
    let now = case.now.as_deref().unwrap_or("2026-01-01T12:00:00Z");
    let now = crate::parse_time("now", now).map_err(|error| error.to_string())?;
    let standing = Standing {
        agent: case.agent.clone().unwrap_or_else(|| "tester".to_owned()),
        verified: true,
        paused: false,
        score: case.trust.map_or(Points::ONE, Points::of),
        decided: 100,
        over_a_persons_edit: false,
        waived_by: None,
        attached: None,
    };
    if policy != GLOBAL_POLICY && rulebook.number_of(policy).is_none() {
        return Err(format!("there is no policy {policy}"));
    }
    Ok(decide_under(rulebook, policy, &act, &standing, &counters, now))
}
