//! Steps in words, for people who do not read JSON.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::step::{Comparison, Condition, OnError, Step};
use crate::call::Registry;

/// What each operation does, in the first sentence of its description.
static OPERATIONS: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| Registry::new().all().map(|op| (op.full_name(), first_sentence(op.description()))).collect());

fn first_sentence(text: &str) -> String {
    let line = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    line.split_once(". ").map_or(line.as_str(), |(first, _)| first).trim_end_matches(['.', ':']).to_owned()
}

/// Steps in words, in their order.
pub(super) fn of(steps: &[Step]) -> Vec<String> {
    steps.iter().map(one).collect()
}

fn one(step: &Step) -> String {
    let mut words = match step.does.as_str() {
        "set" => "Keep values for later".to_owned(),
        "text" => "Put a text together".to_owned(),
        "filter" => format!("Keep only the items of {} that fit", given(step, "items")),
        "classify" => format!("Sort {} into classes, by words that each is known by", given(step, "items")),
        "count" => format!("Count {}", given(step, "items")),
        "sort" => format!("Put {} in order", given(step, "items")),
        "first" => format!("Take no more than {} of {}", given(step, "most"), given(step, "items")),
        "lines" => format!("Take {} apart into lines", given(step, "text")),
        "parse" => format!("Read {} as data", given(step, "text")),
        "map" => format!("Make something else of each of {}", given(step, "items")),
        "format" => format!("Write {} as {}", given(step, "items"), given(step, "as")),
        "check" => {
            let that = step.with.get("that").and_then(|that| serde_json::from_value::<Condition>(that.clone()).ok());
            format!("Go on only if {}", that.as_ref().map_or_else(|| "something holds".to_owned(), condition))
        }
        "log" => "Write something into the log".to_owned(),
        operation => of_operation(operation, step),
    };
    if let Some(each) = &step.for_each {
        words = format!("{words}, for each of {}", shown(each));
    }
    if let Some(when) = &step.when {
        words = format!("{words}, if {}", condition(when));
    }
    if let Some(retry) = step.retry.filter(|retry| retry.times > 0) {
        words = format!("{words}; tried again up to {} times", retry.times);
    }
    if step.on_error == OnError::GoOn {
        words = format!("{words}; if it fails, the run goes on");
    }
    words
}

/// Operations that agents are mostly made of, as people would say it; the others in the words of their descriptions.
fn of_operation(operation: &str, step: &Step) -> String {
    match operation {
        "workspace_read_file" => format!("Read the file {}", given(step, "path")),
        "workspace_browse_web" => format!("Read the page {}", given(step, "url")),
        "workspace_organize_plan" => format!("Plan how the files of {} go into folders", given(step, "root")),
        "workspace_change_plan" => "Plan changes of files, for a person to approve".to_owned(),
        "workspace_soft_delete" => format!("Plan to put {} into the trash", given(step, "path")),
        "workspace_execute_plan" => "Carry out the plan, as it was approved".to_owned(),
        "cowork_propose" => format!("Propose to {} {}", given(step, "action"), given(step, "target")),
        "cowork_wait_for_decision" => "Wait until a person has decided".to_owned(),
        "cowork_handoff" => "Hand the work to a person".to_owned(),
        "bridge_send_message" => format!("Send a message to {}", given(step, "to")),
        "gateway_call" => format!("Call {} of the server {}", given(step, "tool"), given(step, "mount")),
        "agents_run_agent" => format!("Start the agent {}", given(step, "agentId")),
        other => OPERATIONS.get(other).cloned().unwrap_or_else(|| other.to_owned()),
    }
}

fn given(step: &Step, name: &str) -> String {
    step.with.get(name).map_or_else(|| "what came before".to_owned(), shown)
}

/// A value in a few words: what stands for one by its name, the rest as it is written.
fn shown(value: &Value) -> String {
    const MOST: usize = 60;
    let text = match value {
        Value::String(text) => text.replace("{{", "").replace("}}", "").trim().to_owned(),
        Value::Array(items) if items.len() != 1 => format!("{} items", items.len()),
        other => other.to_string(),
    };
    if text.chars().count() > MOST { format!("{}…", text.chars().take(MOST).collect::<String>()) } else { text }
}

fn condition(when: &Condition) -> String {
    let (value, than) = (shown(&when.value), shown(&when.than));
    match when.is {
        Comparison::Equal => format!("{value} is {than}"),
        Comparison::NotEqual => format!("{value} is not {than}"),
        Comparison::Less => format!("{value} is less than {than}"),
        Comparison::AtMost => format!("{value} is at most {than}"),
        Comparison::More => format!("{value} is more than {than}"),
        Comparison::AtLeast => format!("{value} is at least {than}"),
        Comparison::Contains => format!("{value} has {than} in it"),
        Comparison::Empty => format!("{value} is empty"),
        Comparison::NotEmpty => format!("{value} is not empty"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is said of an operation in particular is said of one that is there, by a field that it has.
    #[test]
    fn the_operations_with_words_of_their_own_are_there() {
        let source = include_str!("words.rs");
        let (_, table) = source.split_once("match operation {").unwrap();
        let (table, _) = table.split_once("other =>").unwrap();
        for line in table.lines().filter(|line| line.contains("=>")) {
            let name = line.split('"').nth(1).unwrap();
            let op = Registry::new().all().find(|op| op.full_name() == name).map_or_else(|| panic!("no {name}"), |op| op.input().clone());
            for field in line.split("given(step, \"").skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(op["properties"].get(field).is_some(), "{name} has no {field}");
            }
        }
    }

    #[test]
    fn a_step_says_what_it_does_and_when() {
        let step = |text: Value| one(&serde_json::from_value(text).unwrap());
        assert_eq!(step(json!({ "id": "a", "do": "count", "with": { "items": "{{steps.rows.items}}" } })), "Count steps.rows.items");
        assert_eq!(
            step(
                json!({ "id": "a", "do": "log", "when": { "value": "{{steps.a.count}}", "is": "more", "than": 3 }, "retry": { "times": 2, "wait_seconds": 1 } })
            ),
            "Write something into the log, if steps.a.count is more than 3; tried again up to 2 times"
        );
        let whole = json!({ "that": { "value": "{{steps.file.truncated}}", "is": "not_equal", "than": true }, "message": "too long" });
        assert_eq!(step(json!({ "id": "a", "do": "check", "with": whole })), "Go on only if steps.file.truncated is not true");
        assert_eq!(step(json!({ "id": "a", "do": "bridge_send_message", "with": { "to": "{{params.to}}" } })), "Send a message to params.to");
        let told = step(json!({ "id": "a", "do": "bridge_create_task", "for_each": "{{input.items}}", "on_error": "go_on" }));
        assert!(told.len() > 30 && !told.starts_with("bridge_") && told.contains("for each of input.items") && told.ends_with("the run goes on"), "{told}");
        assert_eq!(shown(&Value::from("x".repeat(100))).chars().count(), 61);
    }
}
