//! One agent with hooks and servers behind the desk, on both engines: what it is told of calls that the desk did for it, and how what
//! it has read goes from its sessions to its connections and back.

use std::time::Duration;

use deskmate_core::call::{Errand, Fetched, Hands};
use deskmate_core::gateway::{self, Ended};
use deskmate_core::request::Outcome;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, both};

const MOUNTS: &str = "
gateway:
  mounts:
    - { name: mail, command: mail-server, verbs: { read_*: email.read, send: email.send } }
    - { name: notes, command: notes-server, verbs: { '*': email.read } }
rules:
  - { name: reading, match: { kind: email.read }, effect: allow, waive_trust: true, message: reading is fine }
";

struct Offers;

impl Hands for Offers {
    fn run(&self, errand: Errand) -> Fetched<'_> {
        assert!(matches!(errand, Errand::Mount(_)), "not a look at a mount");
        let tools = ["read_mail", "send"].map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
        let found = json!({ "server": { "name": "x" }, "protocol": "2026-07-28", "tools": tools, "micros": 1500 });
        Box::pin(async move { Ok(found) })
    }
}

/// A desk with two servers, its owner and an agent.
fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    desk.call(&owner, "desk_policy_apply", json!({ "document": MOUNTS })).unwrap();
    desk.lend(Offers);
    for name in ["mail", "notes"] {
        desk.call(&owner, "desk_mount_test", json!({ "name": name })).unwrap();
    }
    (owner.clone(), desk.register(&owner, "code"))
}

fn before(desk: &TestDesk, agent: &Caller, session: &str, tool: &str, input: Value) -> Value {
    let said = json!({ "hook_event_name": "PreToolUse", "session_id": session, "cwd": "/srv/p", "tool_name": tool, "tool_input": input });
    desk.call(agent, "hook_event", said).unwrap()
}

/// What the agent is told between two steps.
fn told(desk: &TestDesk, agent: &Caller) -> String {
    let said = json!({ "hook_event_name": "PostToolUse", "session_id": "s1", "tool_name": "Bash", "tool_use_id": "t0", "tool_response": {} });
    desk.call(agent, "hook_event", said).unwrap()["context"].as_str().unwrap_or_default().to_owned()
}

fn approve(desk: &TestDesk, owner: &Caller, request: &Value) {
    desk.call(owner, "desk_request_approve", json!({ "request": request })).unwrap();
}

/// What a held act carries with it.
fn taint(desk: &TestDesk, owner: &Caller, held: &Value) -> Vec<String> {
    assert_eq!(held["state"], "held", "{held}");
    let act = desk.call(owner, "desk_request_get", json!({ "request": held["request_id"] })).unwrap()["act"].clone();
    act["taint"].as_array().into_iter().flatten().map(|origin| origin.as_str().unwrap().to_owned()).collect()
}

/// Writing a file, which is held: what it carries.
fn write(desk: &TestDesk, owner: &Caller, agent: &Caller, session: &str, name: &str) -> Vec<String> {
    taint(desk, owner, &before(desk, agent, session, "Write", json!({ "file_path": format!("/srv/p/{name}"), "content": "x" })))
}

/// A call over a connection, which is held: what it carries.
fn send(desk: &TestDesk, owner: &Caller, agent: &Caller, to: &str) -> Vec<String> {
    let input = json!({ "mount": "mail", "tool": "send", "arguments": { "to": to } });
    taint(desk, owner, &desk.call_in("connection", agent, "gateway_call", input).unwrap())
}

both! {
    fn a_call_that_the_desk_did_is_told_with_how_to_fetch_what_came_of_it(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let call = |to: &str| desk.call(&agent, "gateway_call", json!({ "mount": "mail", "tool": "send", "arguments": { "to": to } })).unwrap();
        let end = |id: &str, outcome: Outcome| {
            let ended = Ended { call: id.to_owned(), outcome, micros: 1, bytes: 2, note: None, result: Some("{}".into()), digest: None };
            desk.act(move |cx| gateway::end(cx, std::slice::from_ref(&ended))).unwrap();
        };
        let begin = |id: &str| {
            let id = id.to_owned();
            assert!(desk.act(move |cx| gateway::begin(cx, &id)).unwrap().is_some());
        };
        for (to, outcome, says) in [("a", Outcome::Done, "it was done"), ("b", Outcome::Failed, "it did not work"), ("c", Outcome::Ambiguous, "nobody knows")] {
            let held = call(to);
            assert_eq!(told(desk, &agent), "", "nobody has decided yet");
            approve(desk, &owner, &held["request_id"]);
            let id = held["call_id"].as_str().unwrap();
            begin(id);
            let under_way = told(desk, &agent);
            assert!(under_way.contains("is being done") && under_way.contains(&format!("gateway_result with call_id {id}")), "{under_way}");
            end(id, outcome);
            let over = told(desk, &agent);
            assert!(over.contains(says) && over.contains(&format!("gateway_result with call_id {id}")) && !over.contains("again: it may run once"), "{over}");
            assert_eq!(told(desk, &agent), "", "once");
        }
        // Whoever has what came of a call is not told of it.
        let held = call("d");
        approve(desk, &owner, &held["request_id"]);
        let id = held["call_id"].as_str().unwrap().to_owned();
        begin(&id);
        end(&id, Outcome::Done);
        assert_eq!(call("d")["state"], "done");
        assert_eq!(told(desk, &agent), "");
        // What people say no to is told as ever.
        let held = call("e");
        desk.call(&owner, "desk_request_reject", json!({ "request": held["request_id"], "reason": "not today" })).unwrap();
        let rejected = told(desk, &agent);
        assert!(rejected.contains("do not do it") && rejected.contains("not today"), "{rejected}");
        assert!(desk.verify().findings.is_empty());
    }

    fn what_a_session_of_hooks_has_read_goes_with_what_its_connection_does(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let page = json!({ "url": "https://example.org", "prompt": "read it" });
        let fetch = before(desk, &agent, "s1", "WebFetch", page.clone());
        assert!(send(desk, &owner, &agent, "a").is_empty(), "nothing was read yet");
        approve(desk, &owner, &fetch["request_id"]);
        assert_eq!(before(desk, &agent, "s1", "WebFetch", page)["state"], "redeemed");
        assert_eq!(send(desk, &owner, &agent, "b"), ["web"]);
        assert!(write(desk, &owner, &agent, "s2", "c").is_empty(), "another session has not read it");
        let listed = desk.call(&owner, "desk_taint_list", json!({})).unwrap();
        assert_eq!(listed["items"][0]["session"], "s1", "{listed}");
        desk.world.pass(Duration::from_hours(25));
        assert!(send(desk, &owner, &agent, "d").is_empty(), "a day has passed");
        assert_eq!(write(desk, &owner, &agent, "s1", "e"), ["web"], "the session goes on");
    }

    fn what_a_connection_brings_goes_with_the_session_that_called(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        for (session, tool, input) in [
            ("s1", "mcp__desk__mail_read_mail", json!({})),
            ("s2", "mcp__plugin_deskmate_desk__gateway_call", json!({ "mount": "notes", "tool": "read_mail" })),
            ("s3", "mcp_desk_mail_read_mail", json!({})),
            ("s4", "mcp__desk__bridge_read_messages", json!({})),
            ("s5", "mcp__desk__gateway_call", json!({ "mount": "nothing" })),
        ] {
            assert_eq!(before(desk, &agent, session, tool, input)["state"], "passed", "{tool}");
        }
        assert_eq!(write(desk, &owner, &agent, "s1", "a"), ["mount:mail"]);
        assert_eq!(write(desk, &owner, &agent, "s2", "b"), ["mount:notes"]);
        assert_eq!(write(desk, &owner, &agent, "s3", "c"), ["mount:mail"], "as Gemini CLI writes it");
        for session in ["s4", "s5", "s6"] {
            assert!(write(desk, &owner, &agent, session, session).is_empty(), "{session} has read nothing");
        }
    }
}
