//! What people said and what agents reported, rebuilt from the record: a row that somebody edited, added or deleted
//! behind the desk's back is found.

use std::collections::BTreeMap;

use deskmate_db::Tx;
use serde_json::{Map, Value, json};

use super::{correction, execution, instruction};
use crate::Result;
use crate::record::{Body, Finding, Projection, differences};

/// Reports, corrections and instructions as the record tells them.
#[derive(Default)]
pub struct CoworkProjection {
    told: BTreeMap<(&'static str, String), Value>,
}

const EXECUTION: [&str; 15] = [
    "execution",
    "request",
    "grant",
    "agent",
    "domain",
    "claimed_actor",
    "derived_actor",
    "outcome",
    "matches",
    "cost",
    "quality",
    "unknown",
    "silent",
    "started_at",
    "created_at",
];
const OVERRIDE: [&str; 9] = ["override", "request", "agent", "domain", "type", "severity", "impact", "person", "created_at"];
const INSTRUCTION: [&str; 11] =
    ["instruction", "request", "about", "kind", "agent", "domain", "number", "hand_back", "created_at", "acknowledged_at", "person"];

/// The facts of an event that a row repeats; what is not there is left out.
fn facts(body: &Body, names: &[&str]) -> Value {
    let mut facts: Map<String, Value> =
        names.iter().filter_map(|name| Some(((*name).to_owned(), body.facts.get(*name).filter(|value| !value.is_null())?.clone()))).collect();
    facts.insert("created_at".to_owned(), json!(body.at));
    Value::Object(facts)
}

impl Projection for CoworkProjection {
    fn apply(&mut self, _seq: u64, body: &Body) {
        let text = |name: &str| body.facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if body.kind == execution::LOGGED.name {
            self.told.insert(("execution", text("execution")), facts(body, &EXECUTION));
        } else if body.kind == correction::OVERRIDDEN.name {
            self.told.insert(("override", text("override")), facts(body, &OVERRIDE));
        } else if body.kind == instruction::INSTRUCTED.name {
            self.told.insert(("instruction", text("instruction")), facts(body, &INSTRUCTION));
        } else if body.kind == instruction::ACKNOWLEDGED.name
            && let Some(Value::Object(row)) = self.told.get_mut(&("instruction", text("instruction")))
        {
            row.insert("acknowledged_at".to_owned(), json!(body.at));
        }
    }

    fn compare(&self, tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        differences(&self.told, &stored(tx)?, |(what, id)| format!("{what} {id}"), &mut findings);
        Ok(findings)
    }
}

/// A row as facts; what is null is left out.
macro_rules! row {
    ($row:expr, $names:expr, $($place:literal: $type:ty),+) => {{
        let values = [$(json!($row.get::<$type>($place)?)),+];
        Value::Object($names.into_iter().map(str::to_owned).zip(values).filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
    }};
}

fn stored(tx: &mut Tx<'_>) -> Result<BTreeMap<(&'static str, String), Value>> {
    let mut stored = BTreeMap::new();
    let executions = "select id, request, grant_id, agent, domain, claimed_actor, derived_actor, outcome, matches, cost, quality, unknown, silent, started_at, \
                      created_at from execution order by id";
    for row in tx.query(executions, &[])? {
        let facts = row!(row, EXECUTION, 0: String, 1: Option<String>, 2: Option<String>, 3: String, 4: String, 5: String, 6: String, 7: String,
            8: String, 9: i64, 10: Option<i64>, 11: bool, 12: bool, 13: Option<i64>, 14: i64);
        stored.insert(("execution", row.get(0)?), facts);
    }
    for row in tx.query("select id, request, agent, domain, type, severity, impact, person, created_at from override order by id", &[])? {
        let facts = row!(row, OVERRIDE, 0: String, 1: Option<String>, 2: String, 3: String, 4: String, 5: String, 6: i64, 7: String, 8: i64);
        stored.insert(("override", row.get(0)?), facts);
    }
    let instructions = "select id, request, about, kind, agent, domain, number, hand_back, created_at, acknowledged_at, person from instruction order by id";
    for row in tx.query(instructions, &[])? {
        let facts = row!(row, INSTRUCTION, 0: String, 1: String, 2: Option<String>, 3: String, 4: String, 5: String, 6: i64, 7: bool, 8: i64, 9: Option<i64>,
            10: Option<String>);
        stored.insert(("instruction", row.get(0)?), facts);
    }
    Ok(stored)
}
