//! Messages, groups, tasks and reservations between actors, on both engines.

mod gaps;
mod groups;
mod messages;
mod names;
mod reservations;
mod tasks;
mod threads;

use serde_json::{Value, json};
use testkit::{Caller, TestDesk};

pub const CODE: Caller = Caller::Agent("code");
pub const COWORK: Caller = Caller::Agent("cowork");
pub const EVE: Caller = Caller::Agent("eve");

/// Calls an operation of the bridge that must be answered.
pub fn ok(desk: &TestDesk, caller: &Caller, operation: &str, input: Value) -> Value {
    let answer = desk.call(caller, &format!("bridge_{operation}"), input);
    answer.unwrap_or_else(|error| panic!("{operation}: {error}"))
}

/// Calls an operation of the bridge that must be refused.
pub fn no(desk: &TestDesk, caller: &Caller, operation: &str, input: Value) -> deskmate_core::Error {
    desk.refused(caller, &format!("bridge_{operation}"), input)
}

/// A text field of an answer.
pub fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no text {field} in {value}")).to_owned()
}

/// Sends a message and answers its id.
pub fn send(desk: &TestDesk, from: &Caller, to: &str, content: &str) -> String {
    text(&ok(desk, from, "send_message", json!({ "to": to, "content": content })), "message_id")
}

/// Gives a task and answers its id.
pub fn give(desk: &TestDesk, from: &Caller, to: &str, title: &str) -> String {
    text(&ok(desk, from, "create_task", json!({ "to": to, "title": title, "description": "do it" })), "task_id")
}

/// One field of each item of a list.
pub fn each(answer: &Value, list: &str, field: &str) -> Vec<String> {
    let items = answer[list].as_array().unwrap_or_else(|| panic!("no list {list} in {answer}"));
    items.iter().map(|item| text(item, field)).collect()
}

/// How many events the record has.
pub fn events(desk: &TestDesk) -> u64 {
    desk.desk.db.read_blocking(deskmate_core::record::size).expect("the record can be read")
}

/// The whole record stands.
pub fn sound(desk: &TestDesk) {
    let report = desk.verify();
    assert!(report.sound, "{:?}", report.findings);
}

#[test]
fn every_operation_and_field_is_described() {
    let registry = deskmate_core::call::Registry::new();
    let mut found = Vec::new();
    let mut names = Vec::new();
    for op in registry.of_toolsets(&[deskmate_core::call::Toolset::Bridge]) {
        names.push(op.name);
        if op.description().is_empty() {
            found.push(op.name.to_owned());
        }
        assert_eq!(op.input()["additionalProperties"], json!(false), "{}", op.name);
        testkit::undescribed(op.input(), op.name, &mut found);
        testkit::undescribed(&op.output(), &format!("{} answers", op.name), &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
    for old in ["send_message", "read_messages", "create_task", "get_tasks", "update_task"] {
        assert!(names.contains(&old), "{old}");
    }
}
