//! The cowork toolset on both engines: the cases of existing clients, the weaknesses of the server that they come from,
//! and what hostile agents try.

mod bulk;
mod cases;
mod chain;
mod checks;
mod counters;
mod governance;
mod handoffs;
mod hidden;
mod hostile;
mod status;
mod tools;
mod weaknesses;

use std::time::Duration;

use deskmate_core::policy::{self, Document};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk};

pub const SALES: Caller = Caller::Agent("sales");
pub const SUPPORT: Caller = Caller::Agent("support");

/// Calls a tool that must be answered.
pub fn ok(desk: &TestDesk, caller: &Caller, tool: &str, input: Value) -> Value {
    let answer = desk.call(caller, &format!("cowork_{tool}"), input);
    answer.unwrap_or_else(|error| panic!("{tool}: {error}"))
}

/// Calls a tool that must be refused.
pub fn no(desk: &TestDesk, caller: &Caller, tool: &str, input: Value) -> deskmate_core::Error {
    desk.refused(caller, &format!("cowork_{tool}"), input)
}

/// A text field of an answer.
pub fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no text {field} in {value}")).to_owned()
}

/// A proposal as existing clients send it.
pub fn proposal(domain: &str, change: Value) -> Value {
    json!({
        "domain": domain,
        "action": "update_field",
        "target": "deal/1",
        "proposed_change": change.to_string(),
        "confidence": 0.9,
        "reasoning": "the customer asked for it",
    })
}

/// Proposes and answers the whole answer.
pub fn propose(desk: &TestDesk, caller: &Caller, domain: &str, change: Value) -> Value {
    ok(desk, caller, "propose", proposal(domain, change))
}

/// Proposes something harmless and answers its id.
pub fn proposed(desk: &TestDesk, caller: &Caller, domain: &str) -> String {
    text(&propose(desk, caller, domain, json!({ "name": "x" })), "proposal_id")
}

/// Approves a proposal.
pub fn approve(desk: &TestDesk, person: &Caller, id: &str) -> Value {
    ok(desk, person, "approve", json!({ "proposal_id": id }))
}

/// Reports that a proposal was done as it was approved.
pub fn log(desk: &TestDesk, caller: &Caller, id: &str, change: Value) -> Value {
    ok(desk, caller, "log", json!({ "domain": "d", "action": "did it", "actor": "agent", "proposal_id": id, "executed_change": change.to_string() }))
}

/// Puts policies, mappings and settings in force.
pub fn in_force(desk: &TestDesk, yaml: &'static str) {
    let stored = desk.act(move |cx| {
        let document = Document::parse(yaml).unwrap_or_else(|problems| panic!("{problems:?}"));
        let parts = document.over(policy::current(cx)?.parts());
        policy::store(cx, &parts, "owner")
    });
    stored.expect("the policy is in force");
}

/// Earns an agent enough trust to act alone in a domain.
pub fn trusted(desk: &TestDesk, owner: &Caller, agent: &Caller, domain: &str) {
    for _ in 0..25 {
        let id = proposed(desk, agent, domain);
        approve(desk, owner, &id);
    }
}

/// Lets time pass.
pub fn pass(desk: &TestDesk, seconds: u64) {
    desk.world.pass(Duration::from_secs(seconds));
}

/// Signs the owner in anew, after presence has run out.
pub fn signed_in(desk: &TestDesk) -> Caller {
    let answer = desk.call(&Caller::Nobody, "desk_sign_in", json!({ "name": "Owner", "passphrase": "correct horse" })).expect("the owner signs in");
    Caller::Secret(text(&answer, "session"))
}

/// The kinds of the newest events, newest first.
pub fn kinds(desk: &TestDesk, owner: &Caller, limit: u32) -> Vec<String> {
    let told = desk.call(owner, "desk_record_list", json!({ "limit": limit })).expect("the record can be read");
    told["events"].as_array().expect("events").iter().map(|event| text(event, "kind")).collect()
}

/// How many events there are of a kind.
pub fn told(desk: &TestDesk, owner: &Caller, kind: &str) -> Vec<Value> {
    let told = desk.call(owner, "desk_record_list", json!({ "kind": kind, "limit": 200 })).expect("the record can be read");
    told["events"].as_array().expect("events").clone()
}

/// A number of an answer, to a billionth.
pub fn is(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-9)
}

/// A text is in no row, the events' included.
pub fn kept_nowhere(desk: &TestDesk, text: &str) {
    for (table, _) in deskmate_core::TABLES {
        let sql: &'static str = Box::leak(format!("select * from {table}").into_boxed_str());
        let rows = desk.desk.db.read_blocking(move |tx| tx.query(sql, &[])).expect("the table can be read");
        assert!(!format!("{rows:?}").contains(text), "{table} holds {text}");
    }
}

/// The whole record stands.
pub fn sound(desk: &TestDesk) {
    let report = desk.verify();
    assert!(report.sound, "{:?}", report.findings);
}
