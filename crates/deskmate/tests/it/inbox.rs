//! The inbox on the terminal, and how a held call reaches an agent's client.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Backend, PgSchema};

use super::desk::{Client, Desk, modern, until};
use super::workspace;

const PASSPHRASE: &[u8] = b"correct horse\n";

fn inbox(desk: &Desk, args: &[&str]) -> Output {
    let args = [&["inbox", "--passphrase-stdin"], args].concat();
    let mut child = desk.command(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(PASSPHRASE).unwrap();
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn as_agent(desk: &Desk, token: &str, operation: &str, input: &Value) -> Value {
    let output = desk.command(&["call", operation, "--input", &input.to_string(), "--json"]).env("DESKMATE_TOKEN", token).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)))
}

fn propose(desk: &Desk, token: &str, title: &str) -> String {
    propose_as(desk, token, title, "normal")
}

fn propose_as(desk: &Desk, token: &str, title: &str, priority: &str) -> String {
    let input = json!({
        "agent_id": "code", "domain": "crm.deals", "action": "update", "target": title, "proposed_change": "{\"amount\": 7}",
        "confidence": 0.9, "reasoning": "the contract says so", "priority": priority,
    });
    as_agent(desk, token, "cowork_propose", &input)["proposal_id"].as_str().expect("a proposal").to_owned()
}

/// The end of an id, as the list shows it.
fn end(id: &str) -> &str {
    id.get(id.len() - 8..).expect("an id")
}

fn state(desk: &Desk, token: &str, request: &str) -> String {
    as_agent(desk, token, "cowork_get_request", &json!({ "request_id": request }))["request"]["state"].as_str().unwrap().to_owned()
}

#[test]
fn what_lies_encrypted_is_decided_after_a_move_to_another_engine_and_back() {
    let Some(Backend::Postgres(server)) = Backend::postgres() else { return };
    let schema = PgSchema::new(&server);
    let desk = Desk::new();
    let token = desk.register("code");
    let (first, second) = (propose(&desk, &token, "one"), propose(&desk, &token, "two"));
    let moved = |to: &str| {
        assert!(desk.run(&["stop"]).status.success());
        let moved = desk.run(&["move", "--to", to, "--switch"]);
        assert!(moved.status.success(), "{}", said(&moved));
        desk.up();
    };
    let decided = |request: &str| {
        let shown = said(&inbox(&desk, &["show", end(request)]));
        assert!(shown.contains("+ /amount: 7") && shown.contains("the contract says so"), "{shown}");
        let approved = inbox(&desk, &["approve", request]);
        assert!(approved.status.success(), "{}", said(&approved));
        let begun = as_agent(&desk, &token, "cowork_begin", &json!({ "proposal_id": request }));
        assert_eq!((&begun["go"], &begun["change"]["amount"]), (&json!(true), &json!(7)), "what was approved is handed out: {begun}");
    };
    let sealed = {
        let store = rusqlite::Connection::open(desk.path().join("desk.db")).unwrap();
        store.query_row("select count(*) from request where sealed is not null and sealed_key is not null", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(sealed, 2, "both wait encrypted");
    moved(&schema.url());
    decided(&first);
    let third = propose(&desk, &token, "three");
    moved(&format!("sqlite:{}", desk.path().join("back.db").display()));
    decided(&second);
    decided(&third);
    assert_eq!(desk.run(&["audit", "verify", "--json"]).status.code(), Some(0));
}

#[test]
fn people_decide_one_command_at_a_time() {
    let desk = Desk::new();
    let token = desk.register("code");
    assert!(said(&inbox(&desk, &["list"])).contains("Nothing waits"));
    let (first, second, third) = (propose(&desk, &token, "one"), propose(&desk, &token, "two"), propose(&desk, &token, "three"));
    let list = said(&inbox(&desk, &["list"]));
    assert!(list.contains("crm.deals") && list.contains(end(&first)), "{list}");
    let shown = said(&inbox(&desk, &["show", end(&first)]));
    for expected in ["+ /amount: 7", "the contract says so", "90 % sure", "trust 0.30"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let approved = inbox(&desk, &["approve", &first]);
    assert!(approved.status.success() && said(&approved).contains("approved"), "{}", said(&approved));
    assert_eq!(state(&desk, &token, &first), "approved");
    assert!(inbox(&desk, &["undo", &first]).status.success());
    assert_eq!(state(&desk, &token, &first), "pending");
    assert_eq!(inbox(&desk, &["approve", &first, "--digest", &"0".repeat(64)]).status.code(), Some(5), "what was seen is not what is there");
    for other in [&["reject", &second, "--reason", "too much"][..], &["ask", &second, "why?"], &["delegate", &second, "Owner"]] {
        let done = inbox(&desk, &[other, &["--digest", &"0".repeat(64)]].concat());
        assert_eq!(done.status.code(), Some(5), "{other:?}: {}", said(&done));
    }
    assert_ne!(inbox(&desk, &["reject", &second]).status.code(), Some(0), "a rejection needs a reason");
    assert!(inbox(&desk, &["reject", &second, "--reason", "too much", "--type", "agent_wrong", "--severity", "low"]).status.success());
    assert_eq!(state(&desk, &token, &second), "rejected");
    assert!(inbox(&desk, &["ask", &third, "which contract?"]).status.success());
    assert!(said(&inbox(&desk, &["--view", "asked", "list"])).contains(end(&third)));
    assert!(inbox(&desk, &["snooze", &first, "2h"]).status.success());
    assert!(said(&inbox(&desk, &["list"])).contains("Nothing waits"));
    let wrong = desk.command(&["inbox", "list", "--passphrase-stdin"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(wrong.status.code(), Some(3), "{}", said(&wrong));
    // An agent's token reads no inbox and decides nothing.
    let own = desk.command(&["inbox", "list"]).env("DESKMATE_TOKEN", &token).output().unwrap();
    assert_eq!(own.status.code(), Some(3), "{}", said(&own));
}

/// A command on a terminal of its own, made by `script`, and what a person would see on it.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<Screen>>,
}

struct Screen {
    parser: vt100::Parser,
    rang: bool,
}

impl Terminal {
    fn start(desk: &Desk, args: &str) -> Self {
        let line = format!("stty rows 30 cols 120; {} {args}", env!("CARGO_BIN_EXE_deskmate"));
        let mut command = Command::new("script");
        command.args(["-q", "-e", "-c", &line, "/dev/null"]).env("DESKMATE_HOME", desk.path()).env("HOME", desk.path()).env("TERM", "xterm");
        command.env_remove("DESKMATE_TOKEN");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("script runs");
        let (keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = Arc::new(Mutex::new(Screen { parser: vt100::Parser::new(30, 120, 0), rang: false }));
        let painted = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0_u8; 4096];
            while let Ok(count) = output.read(&mut bytes) {
                if count == 0 {
                    break;
                }
                let mut screen = painted.lock().unwrap();
                screen.parser.process(&bytes[..count]);
                screen.rang |= bytes[..count].contains(&7);
            }
        });
        Self { child, keys, screen }
    }

    fn sees(&self, text: &str) {
        until(&format!("the screen shows {text:?}"), || self.screen.lock().unwrap().parser.screen().contents().contains(text).then_some(()));
    }

    fn type_in(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn people_decide_on_the_full_screen() {
    let desk = Desk::new();
    let token = desk.register("code");
    let (older, newer) = (propose(&desk, &token, "one"), propose(&desk, &token, "two"));
    let mut terminal = Terminal::start(&desk, "inbox --watch");
    terminal.sees("Passphrase:");
    terminal.type_in("correct horse\r");
    terminal.sees("inbox: 2");
    terminal.sees("the contract says so");
    terminal.type_in("a");
    terminal.sees("Approve exactly this?");
    terminal.type_in("y");
    until("the newer one is approved", || (state(&desk, &token, &newer) == "approved").then_some(()));
    terminal.type_in("rtoo much\r");
    terminal.sees("What was wrong?");
    terminal.type_in("1");
    terminal.sees("How bad?");
    terminal.type_in("\r");
    until("the older one is rejected", || (state(&desk, &token, &older) == "rejected").then_some(()));
    terminal.sees("Nothing waits for you");
    assert!(!terminal.screen.lock().unwrap().rang, "deciding brings nothing new");
    propose(&desk, &token, "three");
    until("the bell rings", || terminal.screen.lock().unwrap().rang.then_some(()));
    terminal.sees("inbox: 1");
    terminal.type_in("q");
    until("the screen is left", || terminal.child.try_wait().unwrap());
}

#[test]
fn the_bell_rings_for_what_came_in_and_not_for_what_moves_up() {
    let desk = Desk::new();
    let token = desk.register("code");
    let (lower, upper) = (propose_as(&desk, &token, "lower", "high"), propose_as(&desk, &token, "upper", "high"));
    let mut terminal = Terminal::start(&desk, "inbox --watch --limit 1");
    terminal.sees("Passphrase:");
    terminal.type_in("correct horse\r");
    terminal.sees("upper");
    // What does not fit on the first page of the list is read on.
    terminal.sees("inbox: 2");
    terminal.type_in("a");
    terminal.sees("Approve exactly this?");
    terminal.type_in("y");
    until("the upper one is approved", || (state(&desk, &token, &upper) == "approved").then_some(()));
    terminal.sees("lower");
    // Another view shows others, which are not new either.
    for _ in 0..5 {
        terminal.type_in("v");
    }
    terminal.sees("lower");
    std::thread::sleep(Duration::from_secs(4));
    assert!(!terminal.screen.lock().unwrap().rang, "what moves up, or is seen in another view, is not new");
    // What stands behind the first page rings all the same.
    propose_as(&desk, &token, "new", "low");
    until("the bell rings", || terminal.screen.lock().unwrap().rang.then_some(()));
    assert_eq!(state(&desk, &token, &lower), "pending");
    terminal.type_in("q");
    until("the screen is left", || terminal.child.try_wait().unwrap());
}

#[test]
fn a_line_is_printed_for_what_came_in_wherever_it_stands() {
    let desk = Desk::new();
    let token = desk.register("code");
    let upper = propose_as(&desk, &token, "upper", "high");
    propose_as(&desk, &token, "lower", "high");
    let mut command = desk.command(&["inbox", "--passphrase-stdin", "--watch", "--limit", "1"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(PASSPHRASE).unwrap();
    let (mut output, printed) = (child.stdout.take().unwrap(), Arc::new(Mutex::new(String::new())));
    let written = Arc::clone(&printed);
    std::thread::spawn(move || {
        let mut bytes = [0_u8; 4096];
        while let Ok(count @ 1..) = output.read(&mut bytes) {
            written.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    });
    // What it finds at first is not new; what comes in afterwards is, also behind the first page.
    until("a line is printed", || {
        propose_as(&desk, &token, "came in", "low");
        std::thread::sleep(Duration::from_secs(3));
        (!printed.lock().unwrap().is_empty()).then_some(())
    });
    assert!(inbox(&desk, &["approve", &upper]).status.success());
    std::thread::sleep(Duration::from_secs(5));
    let lines = printed.lock().unwrap().clone();
    assert!(lines.starts_with('\u{7}') && lines.lines().all(|line| line.contains("came in")), "{lines}");
    // What came in together stands on several pages, and each has its line.
    for (title, priority) in [("came in first", "urgent"), ("came in between", "normal"), ("came in last", "low")] {
        propose_as(&desk, &token, title, priority);
    }
    until("each has its line", || {
        let lines = printed.lock().unwrap();
        ["first", "between", "last"].iter().all(|word| lines.contains(&format!("came in {word}"))).then_some(())
    });
    drop(child.kill());
    drop(child.wait());
}

#[test]
fn nobody_approves_a_plan_unseen_on_the_terminal() {
    let (desk, folder, token) = workspace::desk();
    std::fs::write(folder.path().join("list.md"), "milk\nbread\n").unwrap();
    let mut client = workspace::agent(&desk, &token);
    let change = json!({ "root": "notes", "steps": [{ "action": "replace", "to": "list.md", "text": "milk\nbeer\n" }, { "action": "move", "from": "a.txt", "to": "sub/a.txt" }] });
    let plan = workspace::ask(&mut client, "change_plan", change);
    let request = plan["request_id"].as_str().unwrap();
    let shown = said(&inbox(&desk, &["show", request]));
    for expected in ["All 2 steps", "-bread", "+beer", "2. move  notes/a.txt → notes/sub/a.txt"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let mut terminal = Terminal::start(&desk, "inbox");
    terminal.sees("Passphrase:");
    terminal.type_in("correct horse\r");
    terminal.sees("-bread");
    terminal.sees("+beer");
    terminal.type_in("q");
    until("the screen is left", || terminal.child.try_wait().unwrap());
    let approved = said(&inbox(&desk, &["approve", request]));
    assert!(approved.contains("+beer") && approved.contains("approved"), "{approved}");
}

#[test]
fn the_bell_rings_in_an_inbox_that_was_empty_and_a_handoff_is_answered() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut terminal = Terminal::start(&desk, "inbox --watch");
    terminal.sees("Passphrase:");
    terminal.type_in("correct horse\r");
    terminal.sees("Nothing waits for you");
    let mut agent = connect(&desk, &token);
    agent.initialize("2025-11-25");
    let handoff = json!({ "domain": "crm.deals", "reason": "the customer is angry", "confidence": 0.2, "attempted_actions": "[]", "context": "{}" });
    let handed = agent.tool("cowork_handoff", handoff);
    until("the bell rings", || terminal.screen.lock().unwrap().rang.then_some(()));
    terminal.sees("inbox: 1");
    terminal.sees("the customer is angry");
    terminal.type_in("a");
    terminal.sees("What should the agent do now?");
    terminal.type_in("offer a refund\r");
    until(&format!("the agent is told: {handed}"), || agent.tool("cowork_check_handoff", json!({})).to_string().contains("offer a refund").then_some(()));
    terminal.type_in("q");
    until("the screen is left", || terminal.child.try_wait().unwrap());
}

/// The agent's client.
fn connect(desk: &Desk, token: &str) -> Client {
    let mut command = desk.command(&["mcp", "--toolset", "cowork"]);
    command.env("DESKMATE_TOKEN", token);
    Client::of(desk, command)
}

/// `params` of the newer era, from a client with these capabilities.
fn from_client(capabilities: Value, params: Value) -> Value {
    let mut params = modern(params);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params
}

#[test]
fn a_held_call_is_a_task_for_clients_that_know_tasks() {
    let desk = Desk::new();
    let token = desk.register("code");
    let request = propose(&desk, &token, "one");
    let mut client = connect(&desk, &token);
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let wait = json!({ "name": "cowork_wait_for_decision", "arguments": { "request_id": request } });
    let held = client.call("tools/call", from_client(tasks.clone(), wait.clone()));
    assert_eq!((held["resultType"].as_str(), held["taskId"].as_str().or(held["task"]["taskId"].as_str())), (Some("task"), Some(request.as_str())), "{held}");
    let get = |client: &mut Client| client.call("tasks/get", from_client(tasks.clone(), json!({ "taskId": request })));
    let working = get(&mut client).to_string();
    assert!(working.contains("working") && working.contains(&format!("/requests/{request}")), "{working}");
    assert!(inbox(&desk, &["approve", &request]).status.success());
    let done = get(&mut client).to_string();
    assert!(done.contains("completed") && done.contains("It is approved."), "{done}");
    let answered = client.call("tools/call", from_client(tasks.clone(), wait));
    assert_eq!(answered["structuredContent"]["approved"], true, "what is decided needs no task: {answered}");
    let other = propose(&desk, &token, "two");
    client.call("tasks/cancel", from_client(tasks, json!({ "taskId": other })));
    assert_eq!(state(&desk, &token, &other), "cancelled");
}

#[test]
fn a_held_call_shows_a_link_to_clients_that_can_open_one() {
    let desk = Desk::new();
    let token = desk.register("code");
    let request = propose(&desk, &token, "one");
    let mut client = connect(&desk, &token);
    let links = json!({ "elicitation": { "url": {} } });
    let arguments = json!({ "request_id": request, "show_link": true, "timeout_seconds": 0 });
    let asked = client.call("tools/call", from_client(links.clone(), json!({ "name": "cowork_wait_for_decision", "arguments": arguments })));
    let asked_for = asked.pointer("/inputRequests/inbox/params").cloned().unwrap_or_default();
    assert!(asked_for["url"].as_str().is_some_and(|url| url.ends_with(&format!("/requests/{request}"))), "{asked}");
    // The client's answer ends the showing, and decides nothing.
    let accepted = json!({ "name": "cowork_wait_for_decision", "arguments": arguments, "inputResponses": { "inbox": { "action": "accept" } } });
    let waited = client.call("tools/call", from_client(links, accepted));
    assert_eq!(waited["structuredContent"]["decided"], false, "{waited}");
    assert_eq!(state(&desk, &token, &request), "pending");
    let started = std::time::Instant::now();
    let plain = client.call("tools/call", from_client(json!({}), json!({ "name": "cowork_wait_for_decision", "arguments": arguments })));
    assert_eq!(plain["structuredContent"]["decided"], false);
    assert!(started.elapsed() < Duration::from_secs(20));
}
