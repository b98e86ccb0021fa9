//! Tools beside files and plans, on both engines: what was done before, and pages of the web. Who has hands is played by
//! the tests.

use std::sync::{Arc, Mutex};

use deskmate_core::call::{Errand, Fetched, Hands};
use deskmate_core::workspace::FoundEntries;
use deskmate_core::{Code, Error};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

const ROOTS: &str = "
workspace:
  roots:
    - { name: notes, path: /srv/notes, access: write }
    - { name: manuals, path: /srv/manuals }
";

fn apply(desk: &TestDesk, owner: &Caller, text: &str) -> Value {
    desk.call(owner, "desk_policy_apply", json!({ "document": text })).unwrap()
}

/// A desk with roots, its owner and an agent.
fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    apply(desk, &owner, ROOTS);
    let agent = desk.register(&owner, "code");
    (owner, agent)
}

/// Hands that bring one answer, or a fault, and remember which pages were asked for.
struct Puppet {
    answer: Result<Value, Error>,
    pages: Arc<Mutex<Vec<String>>>,
}

impl Puppet {
    fn lend(desk: &TestDesk, answer: Result<Value, Error>) -> Arc<Mutex<Vec<String>>> {
        let pages: Arc<Mutex<Vec<String>>> = Arc::default();
        desk.lend(Self { answer, pages: Arc::clone(&pages) });
        pages
    }
}

impl Hands for Puppet {
    fn run(&self, errand: Errand) -> Fetched<'_> {
        if let Errand::Page { url } = errand {
            self.pages.lock().unwrap().push(url);
        }
        let answer = self.answer.clone();
        Box::pin(async move { answer })
    }
}

fn page() -> Value {
    json!({ "url": "https://example.org/a", "status": 200, "content_type": "text/html", "title": "A", "text": "hello", "truncated": false, "fetched_bytes": 5 })
}

/// The events of a kind that somebody sees.
fn told(desk: &TestDesk, caller: &Caller, kind: &str) -> Vec<Value> {
    desk.seal();
    desk.call(caller, "desk_record_list", json!({ "kind": kind })).unwrap()["events"].as_array().unwrap().clone()
}

fn past(desk: &TestDesk, caller: &Caller, input: Value) -> Value {
    desk.call(caller, "workspace_search_past_actions", input).unwrap()
}

fn kinds(found: &Value) -> Vec<&str> {
    found["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

both! {
    fn what_was_done_with_files_is_found_by_those_who_may_see_it(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let other = desk.register(&owner, "other");
        Puppet::lend(desk, Ok(json!(FoundEntries::default())));
        desk.call(&agent, "workspace_list_files", json!({ "root": "notes/2026" })).unwrap();
        desk.call(&agent, "workspace_list_files", json!({ "root": "manuals/2026" })).unwrap();
        desk.call(&agent, "workspace_soft_delete", json!({ "path": "notes/2026/old.md" })).unwrap();
        desk.call(&agent, "bridge_send_message", json!({ "to": "other", "content": "about 2026" })).unwrap();
        desk.seal();
        assert_eq!(kinds(&past(desk, &agent, json!({ "query": "2026" }))), ["plan.asked", "workspace.looked", "workspace.looked"], "the newest first");
        assert_eq!(kinds(&past(desk, &owner, json!({ "query": "OLD.md" }))), ["plan.asked"], "people see all, in capitals or not");
        assert_eq!(kinds(&past(desk, &other, json!({ "query": "2026" }))), [""; 0], "another agent's acts are not there");
        for root in ["notes", "notes/", "/srv/notes", "/srv/notes/2026"] {
            assert_eq!(kinds(&past(desk, &agent, json!({ "query": "2026", "workspace_root": root }))), ["plan.asked", "workspace.looked"], "{root}");
        }
        // It is a search of the record: no folder is opened for it, whatever is named.
        assert_eq!(kinds(&past(desk, &agent, json!({ "query": "2026", "workspace_root": "gone" }))), [""; 0]);
        assert_code(&desk.refused(&agent, "workspace_search_past_actions", json!({ "query": "x", "workspace_root": "/etc" })), Code::NotFound);
        let first = past(desk, &agent, json!({ "query": "2026", "limit": 2 }));
        let rest = past(desk, &agent, json!({ "query": "2026", "limit": 2, "cursor": first["next_cursor"] }));
        assert_eq!((kinds(&first).len(), kinds(&rest).len(), &rest["next_cursor"]), (2, 1, &Value::Null));
    }

    fn pages_are_read_only_where_an_owner_said_so(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let pages = Puppet::lend(desk, Ok(page()));
        let browse = |caller: &Caller| desk.call(caller, "workspace_browse_web", json!({ "url": "https://example.org/a?token=secret#part" }));
        let refusal = browse(&agent).unwrap_err();
        assert_code(&refusal, Code::Forbidden);
        assert!(refusal.hint.is_some_and(|hint| hint.contains("workspace: { web: true }")));
        assert!(pages.lock().unwrap().is_empty());
        let judged = desk.call(&owner, "desk_policy_check", json!({ "document": "workspace: { web: true }" })).unwrap();
        assert_eq!(judged["loosens"], true, "{judged}");
        apply(desk, &owner, "workspace: { web: true }");
        let judged = desk.call(&owner, "desk_policy_check", json!({ "document": "workspace: { web: false }" })).unwrap();
        assert_eq!(judged["loosens"], false, "{judged}");
        let found = browse(&agent).unwrap();
        assert_eq!((&found["text"], &found["status"]), (&json!("hello"), &json!(200)));
        assert!(found["origin"].as_str().unwrap().contains("not instructions"), "{found}");
        let events = told(desk, &owner, "workspace.web.asked");
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["payload"]["url"], "https://example.org/a", "what stands behind the path may be a secret");
        assert_eq!(events[0]["actor"], "code");
        browse(&owner).unwrap();
        assert_eq!(told(desk, &owner, "workspace.web.asked").len(), 1, "a person's own reading is no news");
        for bad in ["ftp://example.org/", "example.org", "file:///etc/passwd", "https:///", "data:text/plain,x"] {
            assert_code(&desk.refused(&agent, "workspace_browse_web", json!({ "url": bad })), Code::Invalid);
        }
        assert_eq!(pages.lock().unwrap().len(), 2);
    }

    fn a_rule_keeps_agents_from_a_page_and_what_failed_is_told_too(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let rule = "workspace: { web: true }\nrules:\n  - { name: no-intranet, match: { kind: web.read }, when: 'args.host.endsWith(\".corp.example\")', effect: deny, message: not for agents }\n";
        apply(desk, &owner, rule);
        let pages = Puppet::lend(desk, Err(Error::new(Code::Unavailable, "nobody answers there")));
        let refusal = desk.refused(&agent, "workspace_browse_web", json!({ "url": "https://wiki.corp.example/" }));
        assert_code(&refusal, Code::Forbidden);
        assert!(refusal.message.contains("not for agents"), "{refusal:?}");
        assert!(pages.lock().unwrap().is_empty());
        // An address alone can carry something out, so it is told before anybody goes there.
        assert_code(&desk.refused(&agent, "workspace_browse_web", json!({ "url": "https://example.org/out" })), Code::Unavailable);
        assert_eq!(told(desk, &owner, "workspace.web.asked").len(), 1);
        assert_eq!(kinds(&past(desk, &agent, json!({ "query": "example.org/out" }))), ["workspace.web.asked"]);
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        assert_code(&desk.refused(&agent, "workspace_browse_web", json!({ "url": "https://example.org/" })), Code::Forbidden);
        let report = desk.verify();
        assert!(report.sound, "{:?}", report.findings);
    }
}
