//! Running the cases that are kept beside policies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::draft::compile;
use super::super::{Act, CaseResult, current, run_cases};
use super::apply::read;
use crate::Result;
use crate::call::Cx;

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
    pub cases: Vec<CaseResult>,
}

impl Tested {
    /// Counts what became of cases.
    pub fn of(cases: Vec<CaseResult>) -> Self {
        let passed = cases.iter().filter(|case| case.passed).count();
        Self { ok: passed == cases.len(), passed, failed: cases.len() - passed, cases }
    }
}

pub(super) fn test(cx: &mut Cx<'_, '_>, input: Test) -> Result<Tested> {
    let in_force = current(cx)?;
    let only = input.policy.as_deref();
    Ok(Tested::of(match &input.document {
        Some(text) => run_cases(&compile(&read(text)?.over(in_force.parts()))?, only),
        None => run_cases(&in_force, only),
    }))
}

/// An act of which only what matters was written.
pub(super) fn act_of(given: &Map<String, Value>) -> Result<Act, String> {
    let mut whole = Map::new();
    for (name, usual) in [("kind", "propose"), ("tool", "cowork_propose"), ("domain", "general"), ("action", ""), ("target", "")] {
        whole.insert(name.to_owned(), Value::from(usual));
    }
    whole.insert("arguments".to_owned(), Value::Object(Map::new()));
    whole.extend(given.clone());
    serde_json::from_value(Value::Object(whole)).map_err(|error| format!("this is not an act: {error}"))
}
