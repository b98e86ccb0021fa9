//! Trust and the kill switch on the command line, over restarts and against whoever holds the file.

use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::Value;

use super::desk::Desk;

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("not JSON: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

fn as_person(desk: &Desk, args: &[&str]) -> Output {
    let mut child =
        desk.command(&[args, &["--json", "--passphrase-stdin"]].concat()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    child.wait_with_output().unwrap()
}

fn as_agent(desk: &Desk, token: &str, args: &[&str]) -> Output {
    desk.command(&[args, &["--json"]].concat()).env("DESKMATE_TOKEN", token).output().unwrap()
}

const PROPOSAL: [&str; 8] = [
    "call",
    "cowork_propose",
    "domain=crm.deals",
    "action=update",
    "target=deal/1",
    "proposed_change={\"amount\":5}",
    "confidence=0.9",
    "reasoning=it was agreed",
];

#[test]
fn a_pause_holds_over_a_restart_until_a_person_lifts_it() {
    let desk = Desk::new();
    let token = desk.register("code");
    assert_eq!(json(&as_agent(&desk, &token, &PROPOSAL))["mode"], "escalate");
    assert_eq!(as_agent(&desk, &token, &["pause", "other"]).status.code(), Some(3), "an agent pauses nobody");
    assert_eq!(json(&as_person(&desk, &["pause", "--all", "--reason", "we look at it"]))["changed"], true);
    assert_eq!(json(&as_agent(&desk, &token, &PROPOSAL))["mode"], "deny");
    assert!(desk.run(&["stop"]).status.success());
    desk.up();
    assert_eq!(json(&as_agent(&desk, &token, &PROPOSAL))["mode"], "deny");
    let refused = desk.command(&["resume", "--all", "--passphrase-stdin"]).stdin(Stdio::null()).output().unwrap();
    assert!(!refused.status.success(), "nothing is lifted without the person");
    assert_eq!(json(&as_person(&desk, &["resume", "--all"]))["paused"], false);
    assert_eq!(json(&as_agent(&desk, &token, &PROPOSAL))["mode"], "escalate");
    assert_eq!(desk.run(&["pause"]).status.code(), Some(2), "somebody must be named");
    assert_eq!(desk.run(&["pause", "code", "--all"]).status.code(), Some(2));
}

#[test]
fn trust_is_listed_shown_and_recomputed() {
    let desk = Desk::new();
    let token = desk.register("code");
    assert!(as_agent(&desk, &token, &PROPOSAL).status.success());
    let listed = json(&as_agent(&desk, &token, &["trust", "list"]));
    assert_eq!((listed["items"][0]["score"].as_f64(), listed["items"][0]["proposals"].as_i64()), (Some(0.3), Some(1)));
    let shown = json(&as_person(&desk, &["trust", "show", "code", "crm.deals"]));
    assert_eq!(shown["rows"][0]["sample_size"], 0);
    assert!(as_person(&desk, &["trust", "replay"]).status.success());
    assert!(desk.run(&["stop"]).status.success());

    let database = rusqlite::Connection::open(desk.path().join("desk.db")).unwrap();
    database.execute("update trust set score = 900000000", []).unwrap();
    drop(database);
    desk.up();
    let replayed = as_person(&desk, &["trust", "replay", "--agent", "code"]);
    assert_eq!(replayed.status.code(), Some(7));
    let row = &json(&replayed)["rows"][0];
    assert_eq!((row["stored"].as_f64(), row["recomputed"].as_f64()), (Some(0.9), Some(0.3)));
}
