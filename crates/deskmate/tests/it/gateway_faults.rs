//! Servers behind the desk that hang, flood, talk nonsense and come back different, and desks that are killed while a call is
//! held: nothing is done twice, and what nobody knows is told as that.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desk::{Desk, until};
use crate::gateway::{agent, calls, client, desk, done, first, mount, restart};
use crate::workspace::person;

/// A call that is not waited for.
fn hold(desk: &Desk, token: &str, tool: &str, arguments: Value) -> Value {
    let input = json!({ "mount": "notes", "tool": tool, "arguments": arguments, "timeout_seconds": 0 }).to_string();
    let output = desk.command(&["call", "gateway_call", "--json", "--input", &input]).env("DESKMATE_TOKEN", token).output().unwrap();
    let held: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(held["state"], "held", "{held}");
    held
}

fn approve(desk: &Desk, held: &Value) {
    person(desk, &["inbox", "approve", held["request_id"].as_str().unwrap(), "--passphrase-stdin", "--json"]);
}

/// How a call stands.
fn state(desk: &Desk, call: &Value) -> String {
    let all = calls(desk);
    let found = all.iter().find(|one| one["call_id"] == call["call_id"]).unwrap_or_else(|| panic!("{call} is not among {all:?}"));
    found["state"].as_str().unwrap().to_owned()
}

/// How a call ended.
fn ended(desk: &Desk, call: &Value) -> String {
    until("it has ended", || Some(state(desk, call)).filter(|state| !["held", "passed"].contains(&state.as_str())))
}

fn sound(desk: &Desk) {
    assert_eq!(desk.run(&["audit", "verify", "--json"]).status.code(), Some(0));
}

/// How much memory the server holds, in bytes.
fn resident(desk: &Desk) -> u64 {
    let pid = desk.holder().unwrap()["pid"].as_u64().unwrap();
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok()).unwrap() << 10
}

#[test]
fn a_server_that_hangs_is_given_up_in_time_and_others_work_on() {
    let (desk, folder, token) = desk();
    mount(&desk, &folder, "stuck", &["--timeout", "2"]);
    let mut stuck = client(&desk, &token, "stuck", "2025-11-25");
    assert!(first(&stuck.tool("read", json!({}))).starts_with("read"));
    let begun = Instant::now();
    let call = stuck.ask("tools/call", json!({ "name": "slow", "arguments": { "seconds": 60 } }));
    // A server that says nothing from the start is added meanwhile.
    let mut mute = desk.command(&["gateway", "add", "mute", "--passphrase-stdin", "--", "sleep", "1000"]);
    let mut mute = mute.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut mute.stdin.take().unwrap(), b"correct horse\n").unwrap();
    let mut other = agent(&desk, &token);
    assert!(first(&other.tool("read", json!({}))).starts_with("read"));
    let answer = stuck.answer(call)["result"].clone();
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    let says = first(&answer);
    assert!(answer["isError"] == json!(true) && says.contains("did not answer within 2 s") && says.contains("not known"), "{answer}");
    until("it is told", || (calls(&desk)[0]["state"] == "ambiguous" || calls(&desk)[1]["state"] == "ambiguous").then_some(()));
    until("the silent one is there", || person(&desk, &["gateway", "list", "--passphrase-stdin", "--json"]).to_string().contains("\"mute\"").then_some(()));
    let mut all = client(&desk, &token, "gateway", "2025-11-25");
    let names = all.call("tools/list", json!({})).to_string();
    assert!(names.contains("notes_read") && names.contains("stuck_read"), "who is away takes nothing of the others along: {names}");
    assert!(first(&all.tool("notes_read", json!({}))).starts_with("read"));
    drop(mute.kill());
    drop(mute.wait());
    // Whoever has had enough of it starts it anew.
    restart(&desk, "stuck");
    assert!(first(&stuck.tool("read", json!({}))).starts_with("read"));
    sound(&desk);
}

#[test]
fn a_server_that_floods_or_talks_nonsense_loses_its_connection_and_nothing_else() {
    let (desk, folder, token) = desk();
    let mut agent = agent(&desk, &token);
    agent.tool("read", json!({}));
    let before = resident(&desk);
    for (tool, says) in [("flood", "without the end of a line"), ("garbage", "something else than JSON-RPC"), ("huge", "larger than 4194304 bytes")] {
        let answer = agent.tool(tool, json!({}));
        assert!(answer["isError"] == json!(true) && first(&answer).contains(says), "{tool}: {answer}");
        let newest = || calls(&desk).swap_remove(0);
        until(&format!("nobody knows what came of {tool}: {}", newest()), || (newest()["state"] == "ambiguous").then_some(()));
        let begun = Instant::now();
        until(&format!("it is there again after {tool}"), || Some(agent.tool("read", json!({}))).filter(|answer| answer["isError"] != json!(true)));
        println!("{tool}: it was there again after {:?}", begun.elapsed());
    }
    let grown = resident(&desk).saturating_sub(before);
    assert!(grown < 128 << 20, "what is dropped is not kept: {grown} bytes");
    for tool in ["flood", "garbage", "huge"] {
        assert_eq!(done(&folder).iter().filter(|call| call["tool"] == tool).count(), 1, "{tool} is not tried again");
    }
    sound(&desk);
}

#[test]
fn a_server_that_goes_away_while_it_is_looked_at_was_not_called() {
    let (desk, folder, token) = desk();
    // The agent's own connection is new, and the server dies when it is asked what it offers: the call itself was never sent.
    std::fs::write(folder.path().join("notes.shy"), "").unwrap();
    let call = || {
        let input = json!({ "mount": "notes", "tool": "read" }).to_string();
        let output = desk.command(&["call", "gateway_call", "--json", "--input", &input]).env("DESKMATE_TOKEN", &token).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    };
    let answer = call();
    let says = first(&answer["result"]);
    assert!(answer["state"] == "failed" && says.contains("the call was not sent") && !says.contains("not known"), "{answer}");
    assert_eq!(ended(&desk, &answer), "failed", "it is known that nothing was done");
    assert!(done(&folder).is_empty());
    std::fs::remove_file(folder.path().join("notes.shy")).unwrap();
    until("it is there again", || (call()["state"] == "done").then_some(()));
    sound(&desk);
}

#[test]
fn a_server_that_comes_back_during_a_held_call_does_it_once_if_it_is_the_same() {
    let (desk, folder, token) = desk();
    let mut agent = agent(&desk, &token);
    let held = hold(&desk, &token, "write", json!({ "text": "one" }));
    assert_eq!(agent.tool("die", json!({}))["isError"], json!(true));
    approve(&desk, &held);
    assert_eq!(ended(&desk, &held), "done");
    let result = agent.tool("gateway_result", json!({ "call_id": held["call_id"] }));
    assert!(first(&result).contains("one"), "{result}");
    assert_eq!(done(&folder).iter().filter(|call| call["tool"] == "write").count(), 1);
    // It comes back as something else: what was approved is not there any more.
    let held = hold(&desk, &token, "write", json!({ "text": "two" }));
    std::fs::write(folder.path().join("notes.says"), " and everything else too").unwrap();
    assert_eq!(agent.tool("die", json!({}))["isError"], json!(true));
    approve(&desk, &held);
    assert_eq!(ended(&desk, &held), "failed");
    let result = agent.tool("gateway_result", json!({ "call_id": held["call_id"] }));
    assert!(result["isError"] == json!(true) && first(&result).contains("not any more what it was"), "{result}");
    assert_eq!(done(&folder).iter().filter(|call| call["tool"] == "write").count(), 1, "it was not handed on");
    sound(&desk);
}

#[test]
fn the_same_call_while_an_approved_one_is_under_way_gets_what_comes_of_it() {
    let (desk, folder, token) = desk();
    let held = hold(&desk, &token, "work", json!({ "seconds": 2 }));
    approve(&desk, &held);
    until("it is under way", || (!done(&folder).is_empty()).then_some(()));
    let mut agent = agent(&desk, &token);
    let answer = agent.tool("work", json!({ "seconds": 2 }));
    assert_eq!(first(&answer), "at last", "{answer}");
    assert_eq!(done(&folder).len(), 1, "it is not handed on twice");
    assert_eq!(ended(&desk, &held), "done");
    sound(&desk);
}

#[test]
fn a_desk_that_is_killed_while_a_call_is_held_does_it_after_the_approval() {
    let (desk, folder, token) = desk();
    let held = hold(&desk, &token, "write", json!({ "text": "one" }));
    desk.kill_server();
    desk.up();
    assert_eq!(state(&desk, &held), "held");
    approve(&desk, &held);
    assert_eq!(ended(&desk, &held), "done");
    let mut agent = agent(&desk, &token);
    assert!(first(&agent.tool("gateway_result", json!({ "call_id": held["call_id"] }))).contains("one"));
    assert_eq!(done(&folder).len(), 1);
    sound(&desk);
}

/// What came of a call is known, or it is known that nobody does; and its request says the same.
fn once_at_most(desk: &Desk, folder: &tempfile::TempDir, round: u64, held: &Value) -> String {
    let outcome = ended(desk, held);
    let times = done(folder).iter().filter(|call| call["arguments"]["round"] == json!(round)).count();
    match outcome.as_str() {
        "done" => assert_eq!(times, 1, "round {round}"),
        "ambiguous" => assert!(times <= 1, "round {round}: {times} times"),
        other => panic!("round {round}: {other}, done {times} times"),
    }
    assert_eq!(request(desk, held), outcome);
    outcome
}

fn request(desk: &Desk, held: &Value) -> String {
    let request = person(desk, &["inbox", "show", held["request_id"].as_str().unwrap(), "--passphrase-stdin", "--json"]);
    request["state"].as_str().unwrap_or_else(|| panic!("{request}")).to_owned()
}

#[test]
fn a_desk_that_is_killed_after_an_approval_does_it_at_most_once_and_knows_or_says_so() {
    let (desk, folder, token) = desk();
    // Its server takes a while to start, so that some kills meet a call that was begun and not handed on.
    std::fs::write(folder.path().join("notes.late"), "").unwrap();
    let mut outcomes = Vec::new();
    for round in 0..6_u64 {
        let held = hold(&desk, &token, "write", json!({ "round": round }));
        approve(&desk, &held);
        match round {
            5 => drop(ended(&desk, &held)),
            round => std::thread::sleep(Duration::from_millis(round * 90)),
        }
        desk.kill_server();
        desk.up();
        outcomes.push(once_at_most(&desk, &folder, round, &held));
    }
    println!("killed after an approval: {outcomes:?}");
    assert_eq!(outcomes.last().map(String::as_str), Some("done"), "{outcomes:?}");
    sound(&desk);
}

#[test]
fn a_desk_that_is_killed_during_an_approval_took_it_or_did_not() {
    let (desk, folder, token) = desk();
    let mut outcomes = Vec::new();
    for round in 0..6_u64 {
        let held = hold(&desk, &token, "write", json!({ "round": round }));
        let mut approval = desk.command(&["inbox", "approve", held["request_id"].as_str().unwrap(), "--passphrase-stdin", "--json"]);
        let mut approval = approval.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::io::Write::write_all(&mut approval.stdin.take().unwrap(), b"correct horse\n").unwrap();
        std::thread::sleep(Duration::from_millis(40 + round * 40));
        desk.kill_server();
        drop(approval.kill());
        drop(approval.wait());
        desk.up();
        // What was not taken is approved again.
        let was = request(&desk, &held);
        if was == "pending" {
            assert_eq!(state(&desk, &held), "held");
            approve(&desk, &held);
        }
        outcomes.push((was, once_at_most(&desk, &folder, round, &held)));
    }
    println!("killed during an approval: {outcomes:?}");
    sound(&desk);
}

#[test]
fn a_desk_that_is_killed_in_the_middle_of_an_approved_call_does_not_begin_it_again() {
    let (desk, folder, token) = desk();
    let held = hold(&desk, &token, "work", json!({ "seconds": 3 }));
    approve(&desk, &held);
    until("it is handed on", || (!done(&folder).is_empty()).then_some(()));
    desk.kill_server();
    desk.up();
    assert_eq!(ended(&desk, &held), "ambiguous");
    let mut agent = agent(&desk, &token);
    let result = agent.tool("gateway_result", json!({ "call_id": held["call_id"] }));
    assert!(result["isError"] == json!(true) && first(&result).contains("nobody knows"), "{result}");
    // Its caller has been told; the same again is a new call, which people see first.
    until("the outcome is out", || (hold_again(&desk, &token) != held["call_id"]).then_some(()));
    assert_eq!(done(&folder).len(), 1);
    sound(&desk);
}

fn hold_again(desk: &Desk, token: &str) -> Value {
    let input = json!({ "mount": "notes", "tool": "work", "arguments": { "seconds": 3 }, "timeout_seconds": 0 }).to_string();
    let output = desk.command(&["call", "gateway_call", "--json", "--input", &input]).env("DESKMATE_TOKEN", token).output().unwrap();
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["call_id"].clone()
}
