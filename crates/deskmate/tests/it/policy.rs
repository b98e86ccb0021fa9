//! Policies on the command line and at the start of the server.

use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use super::desk::Desk;

pub(crate) const CRM: &str = "policies:
  - id: crm-write
    rules:
      - { field: amount, constraint: value_range, min: 0, max: 500000 }
    tests:
      - { name: small, act: { domain: crm.deals, arguments: { amount: 5 } }, mode: act }
mappings:
  - { agent_id: sales, domain: crm.deals, policy_id: crm-write }
";

pub(crate) fn as_owner(desk: &Desk, args: &[&str]) -> Output {
    let mut child =
        desk.command(&[args, &["--passphrase-stdin"]].concat()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("piped").write_all(b"correct horse\n").expect("written");
    child.wait_with_output().expect("it ends")
}

pub(crate) fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{} {}", text(&output.stdout), text(&output.stderr)))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn file(desk: &Desk, name: &str, text: &str) -> String {
    let path = desk.path().join(name);
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("text").to_owned()
}

fn in_force(desk: &Desk) -> Value {
    answer(&as_owner(desk, &["policy", "list", "--json"]))["policies"].clone()
}

#[test]
fn a_file_is_checked_and_tested_without_a_server() {
    let desk = Desk::new();
    let good = file(&desk, "good.yaml", CRM);
    let output = desk.run(&["policy", "check", &good]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(desk.run(&["policy", "test", &good]).status.success());
    let bad = file(&desk, "bad.yaml", &CRM.replace("value_range", "valu_range").replace("policy_id", "plicy_id"));
    let output = desk.run(&["policy", "check", &bad]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("bad.yaml:4:") && told.contains("bad.yaml:8:"), "every problem with its place: {told}");
    let output = desk.run(&["policy", "check", &bad, "--json"]);
    assert_eq!((output.status.code(), answer(&output)["ok"].as_bool()), (Some(1), Some(false)));
    assert!(answer(&output)["problems"].as_array().unwrap().iter().all(|problem| problem["line"].is_u64() && problem["column"].is_u64()));
    let wrong = file(&desk, "wrong.yaml", &CRM.replace("mode: act", "mode: deny"));
    let output = desk.run(&["policy", "test", &good, &wrong, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!((&answer(&output)["passed"], &answer(&output)["failed"]), (&json!(1), &json!(1)));
    assert!(text(&desk.run(&["policy", "test", &wrong]).stdout).contains("expected deny"));
    assert_eq!(desk.run(&["policy", "check", "/nowhere.yaml"]).status.code(), Some(1));
    file(&desk, "deskmate.yaml", &format!("{CRM}log: {{ levle: info }}\n"));
    let output = desk.run(&["policy", "check"]);
    assert!(output.status.code() == Some(1) && text(&output.stderr).contains("levle"), "the server's own file is checked whole: {}", text(&output.stderr));
}

#[test]
fn w6_a_broken_or_partly_unknown_file_stops_the_start() {
    for (broken, says) in [
        (CRM.replace("value_range", "value_rang"), "value_rang"),
        (CRM.replace("policy_id: crm-write", "policy_id: crm-wrote"), "crm-wrote"),
        (CRM.replace("constraint: value_range, min: 0, max: 500000", "constraint: regex, pattern: '('"), "pattern"),
        (format!("{CRM}trust: {{ default_levl: 0.3 }}\n"), "default_levl"),
        (format!("{CRM}trust: {{ default_level: 3 }}\n"), "default_level"),
        (format!("{CRM}feedback: {{ implicit_approval_seconds: 86400 }}\n"), "implicit_approval_seconds"),
        (format!("{CRM}agents: []\n"), "agents"),
        (format!("{CRM}rules: [{{ name: x, effect: deny, when: 'arg.amount > 5' }}]\n"), "arg"),
        (format!("{CRM}rules: [\n"), "deskmate.yaml"),
        (format!("{CRM}policies: []\n"), "policies"),
    ] {
        let desk = Desk::new();
        file(&desk, "deskmate.yaml", &broken);
        let output = desk.run(&["up"]);
        assert_eq!(output.status.code(), Some(1), "{broken}");
        let told = text(&output.stderr);
        assert!(told.contains("deskmate.yaml") && told.contains(says), "{broken}\n{told}");
        assert!(!desk.path().join("desk.db").exists(), "nothing was made");
    }
}

#[test]
fn w6_no_file_ever_opens_what_was_closed() {
    let desk = Desk::new();
    file(&desk, "deskmate.yaml", CRM);
    let token = desk.register("sales");
    assert_eq!(in_force(&desk)[0]["version"], 1, "the first file was accepted with the desk");
    let propose = |amount: u32| {
        let input = json!({ "domain": "crm.deals", "action": "update", "target": "deal 7", "proposed_change": format!("{{\"amount\": {amount}}}"), "confidence": 0.9, "reasoning": "r" });
        desk.command(&["call", "cowork_propose", "--input", &input.to_string(), "--json"]).env("DESKMATE_TOKEN", &token).output().unwrap()
    };
    assert_eq!(answer(&propose(750_000))["policy_error"], true);
    for text in [None, Some(""), Some("log: { level: info }\n"), Some("policies: []\nmappings: []\n")] {
        assert!(desk.run(&["stop"]).status.success());
        let path = desk.path().join("deskmate.yaml");
        match text {
            None => std::fs::remove_file(&path).unwrap(),
            Some(text) => std::fs::write(&path, text).unwrap(),
        }
        desk.up();
        assert_eq!(desk.run(&["call", "desk_whoami", "--agent", "sales"]).status.code(), Some(3), "the desk stays closed: {text:?}");
        assert_eq!(answer(&propose(750_000))["policy_error"], true, "what is in force stays in force: {text:?}");
    }
    assert!(desk.run(&["stop"]).status.success());
    file(&desk, "deskmate.yaml", "policies: [\n");
    assert_eq!(desk.run(&["up"]).status.code(), Some(1));
}

#[test]
fn an_owner_applies_simulates_and_asks_why() {
    let desk = Desk::new();
    let token = desk.register("sales");
    let path = file(&desk, "crm.yaml", CRM);
    let dry = as_owner(&desk, &["policy", "apply", &path, "--dry-run"]);
    assert!(dry.status.success() && text(&dry.stdout).contains("only tightens"), "{}", text(&dry.stdout));
    assert_eq!(in_force(&desk), json!([]));
    let applied = as_owner(&desk, &["policy", "apply", &path]);
    assert!(applied.status.success() && text(&applied.stdout).contains("+ policy crm-write"), "{} {}", text(&applied.stdout), text(&applied.stderr));
    let input =
        json!({ "domain": "crm.deals", "action": "update", "target": "deal 7", "proposed_change": "{\"amount\": 600}", "confidence": 0.9, "reasoning": "r" });
    let asked = desk.command(&["call", "cowork_propose", "--input", &input.to_string(), "--json"]).env("DESKMATE_TOKEN", &token).output().unwrap();
    let request = answer(&asked)["proposal_id"].as_str().unwrap().to_owned();
    let stricter = file(&desk, "stricter.yaml", &CRM.replace("500000", "500"));
    let replayed = as_owner(&desk, &["policy", "simulate", &stricter]);
    assert!(text(&replayed.stdout).contains("1 past acts: 0 the same, 1 stricter, 0 looser"), "{} {}", text(&replayed.stdout), text(&replayed.stderr));
    assert_eq!(answer(&as_owner(&desk, &["policy", "simulate", &stricter, "--json"]))["differing"][0]["request"], request.as_str());
    let why = as_owner(&desk, &["policy", "explain", &request]);
    assert!(text(&why.stdout).contains("the answer was escalate"), "{} {}", text(&why.stdout), text(&why.stderr));
    let act = r#"{"domain": "crm.deals", "arguments": {"amount": 750000}}"#;
    let why = as_owner(&desk, &["policy", "explain", "--agent", "sales", "--act", act, "--json"]);
    assert_eq!(answer(&why)["now"]["mode"], "deny");
    let agent = desk.command(&["policy", "explain", &request]).env("DESKMATE_TOKEN", &token).output().unwrap();
    assert_eq!(agent.status.code(), Some(3), "not for agents");
    let shown = as_owner(&desk, &["policy", "show"]);
    let again = file(&desk, "shown.yaml", &text(&shown.stdout));
    assert!(text(&as_owner(&desk, &["policy", "apply", &again]).stdout).contains("nothing differs"), "what is shown can be applied");
    assert!(text(&as_owner(&desk, &["policy", "show", "crm-write"]).stdout).contains("\"max\": 500000"));
    assert!(as_owner(&desk, &["policy", "test", "--in-force"]).status.success());
}

#[test]
fn a_value_of_any_type_is_what_was_written() {
    let desk = Desk::new();
    let token = desk.register("sales");
    let rules = "policies:
  - id: crm
    rules:
      - { field: level, constraint: enum, values: [1, 2, 3] }
      - { field: open, constraint: enum, values: [true] }
      - { field: stage, constraint: enum, values: [won, 'true'] }
mappings:
  - { agent_id: sales, domain: crm, policy_id: crm }
";
    assert!(as_owner(&desk, &["policy", "apply", &file(&desk, "rules.yaml", rules)]).status.success());
    let valid = |field: &str, value: &str| {
        let (field, value) = (format!("field={field}"), format!("proposed_value={value}"));
        let args = ["call", "cowork_validate_policy", "domain=crm", &field, &value, "--json"];
        answer(&desk.command(&args).env("DESKMATE_TOKEN", &token).output().expect("it runs"))["valid"].clone()
    };
    for (field, value, passes) in [("level", "3", true), ("level", "\"3\"", false), ("open", "true", true), ("stage", "won", true), ("stage", "\"true\"", true)]
    {
        assert_eq!(valid(field, value), passes, "{field}={value}");
    }
}
