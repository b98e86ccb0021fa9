//! What is asked of a server behind the desk besides calls of its tools, through the built binary with a real child: resources, prompts
//! and completions are decided, marked and on the record like calls.

use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{Client, Desk, modern, until};
use crate::gateway::{RULES, agent, desk, done};
use crate::workspace::{open, person};

const UPDATED: &str = "notifications/resources/updated";

fn told(desk: &Desk, kind: &str) -> Vec<Value> {
    let input = json!({ "kind": kind, "limit": 200 }).to_string();
    person(desk, &["call", "desk_record_list", "--input", &input, "--passphrase-stdin", "--json"])["events"].as_array().unwrap().clone()
}

/// What the child was asked for.
fn asked(folder: &tempfile::TempDir) -> Vec<String> {
    std::fs::read_to_string(folder.path().join("notes.asked")).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn complete(topic: &str) -> Value {
    json!({ "ref": { "type": "ref/prompt", "name": "it" }, "argument": { "name": "topic", "value": topic }, "context": { "arguments": { "password": "hunter2hunter2" } } })
}

#[test]
fn resources_prompts_and_completions_are_decided_marked_and_on_the_record() {
    let (desk, folder, token) = desk();
    let mut agent = agent(&desk, &token);
    let origin = json!({ "mount": "notes", "untrusted": true });
    let prompt = |topic: &str| json!({ "name": "it", "arguments": { "topic": topic, "password": "hunter2hunter2" } });
    assert_eq!(agent.call("prompts/get", prompt("news"))["_meta"]["deskmate/origin"], origin);
    let completed = agent.call("completion/complete", complete("new"));
    assert!(completed["completion"]["values"][0] == "news" && completed["_meta"]["deskmate/origin"] == origin, "{completed}");
    assert!(!completed.to_string().contains("0123456789abcdef"), "{completed}");
    agent.call("resources/read", json!({ "uri": "x://one" }));
    agent.call("resources/subscribe", json!({ "uri": "x://one" }));
    let mut command = desk.command(&["mcp", "--toolset", "notes"]);
    command.env("DESKMATE_TOKEN", &token);
    let mut new = Client::of(&desk, command);
    let listen = |uri: &str| modern(json!({ "notifications": { "resourceSubscriptions": [uri] } }));
    new.ask("subscriptions/listen", listen("x://two"));
    new.notification("notifications/subscriptions/acknowledged");
    let events = until("each is told", || Some(told(&desk, "mount.read")).filter(|events| events.len() == 5));
    for (verb, field, value) in [
        ("prompt.get", "/payload/arguments/topic", "news"),
        ("completion.complete", "/payload/arguments/topic", "new"),
        ("resource.read", "/payload/name", "x://one"),
        ("resource.subscribe", "/payload/name", "x://one"),
        ("resource.subscribe", "/payload/name", "x://two"),
    ] {
        let found = events.iter().any(|event| event["facts"]["kind"] == verb && event.pointer(field) == Some(&json!(value)));
        assert!(found, "{verb}: {events:?}");
    }
    assert!(!json!(events).to_string().contains("hunter2"), "{events:?}");
    until("it was asked", || (asked(&folder).len() == 5).then_some(()));

    // What a rule forbids, or would ask a person about, is refused with why, and its server hears nothing of it.
    let all = "resource.read, resource.subscribe, prompt.get, completion.complete";
    for effect in ["deny", "require_approval"] {
        open(&desk, &format!("{RULES}  - {{ name: closed, match: {{ kind: [{all}] }}, effect: {effect}, message: not for agents }}\n"));
        for (method, params) in [
            ("prompts/get", prompt("news")),
            ("completion/complete", complete("new")),
            ("resources/read", json!({ "uri": "x://one" })),
            ("resources/subscribe", json!({ "uri": "x://three" })),
        ] {
            let refused = agent.fail(method, params);
            assert!(refused["message"].as_str().unwrap().contains("not for agents"), "{method}: {refused}");
        }
        let listening = new.ask("subscriptions/listen", listen("x://three"));
        let refused = new.answer(listening);
        assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains("not for agents")), "{refused}");
    }
    assert_eq!(told(&desk, "act.denied").len(), 5);
    assert_eq!((asked(&folder).len(), told(&desk, "mount.read").len()), (5, 5));
    let refusals = told(&desk, "call.refused");
    let named = |event: &&Value| event["facts"]["operation"] == "gateway_read" && event["payload"]["kind"] == "prompt.get" && event["payload"]["name"] == "it";
    assert_eq!(refusals.iter().filter(named).count(), 2, "{refusals:?}");
}

#[test]
fn who_is_paused_gets_nothing_and_cannot_fill_the_record() {
    let (desk, folder, token) = desk();
    let (mut old, mut other) = (agent(&desk, &token), agent(&desk, &token));
    old.call("resources/subscribe", json!({ "uri": "x://one" }));
    other.ask("tools/call", json!({ "name": "slow", "arguments": { "seconds": 3, "then": ["x://one", "x://one"] } }));
    until("it is handed on", || done(&folder).iter().any(|call| call["tool"] == "slow").then_some(()));
    person(&desk, &["pause", "code", "--passphrase-stdin", "--json"]);
    for _ in 0..60 {
        let refused = old.fail("prompts/get", json!({ "name": "it" }));
        assert!(refused["message"].as_str().unwrap().contains("paused"), "{refused}");
    }
    assert_eq!(asked(&folder), ["resources/subscribe"]);
    let refusals = told(&desk, "call.refused").into_iter().filter(|event| event["facts"]["operation"] == "gateway_read").count();
    assert!((1..=40).contains(&refusals), "many within a minute are counted: {refusals}");
    // It is told once more that something changed, so that it reads and learns why, and then no longer.
    let mut updates = old.aside.iter().filter(|message| message["method"] == UPDATED).count();
    while let Some(message) = old.receive(Duration::from_secs(4)) {
        updates += usize::from(message["method"] == UPDATED);
    }
    assert_eq!(updates, 1);
}
