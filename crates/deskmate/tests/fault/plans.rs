//! Plans under way: a server that sleeps, as a laptop does, for longer than its leases stand, and agents that are paused.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Desk, eventually, verify};

/// More than there are in a part, so that it is the middle in which something happens.
const FILES: usize = 5_000;
/// Longer than a lease stands without a sign of life.
const ASLEEP: Duration = Duration::from_secs(32);

fn fill(folder: &Path, files: usize) {
    std::fs::create_dir_all(folder).expect("a folder");
    for number in 0..files {
        std::fs::write(folder.join(format!("{number}.dat")), number.to_string()).expect("written");
    }
}

#[test]
fn a_plan_that_slept_past_its_lease_goes_on_under_a_new_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (home, folder) = (directory.path().join("home"), directory.path().join("notes"));
    fill(&folder, FILES);
    let (desk, owner) = Desk::owned(&home);
    let ask = |operation: &str, input: Value| desk.with(&owner, operation, &input).good();
    ask("workspace_open_root", json!({ "name": "notes", "path": folder, "access": "write" }));
    let plan = ask("workspace_organize_plan", json!({ "root": "notes" }));
    assert_eq!((&plan["count"], &plan["decision"]), (&json!(FILES), &json!("approved")), "{plan}");
    let begun = ask("workspace_execute_plan", json!({ "plan_id": plan["plan_id"], "timeout_seconds": 0 }));
    eventually("some are moved", Duration::from_secs(30), || folder.join("dat").exists());
    desk.signal("STOP");
    let left = std::fs::read_dir(&folder).expect("a folder").count();
    assert!(left > 1, "it was done before it fell asleep");
    std::thread::sleep(ASLEEP);
    let awake = now();
    desk.signal("CONT");
    let get = || ask("workspace_get_plan", json!({ "plan_id": plan["plan_id"], "limit": 1 }));
    eventually("the plan goes on", Duration::from_mins(2), || get()["state"] != "running");
    let done = get();
    assert_eq!((&done["state"], &done["applied"]), (&json!("done"), &json!(FILES)), "{done}");
    assert_eq!(std::fs::read_dir(folder.join("dat")).expect("a folder").count(), FILES);
    // Whoever woke up told nothing of the plan before somebody had its job again.
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let events = |subject: String| ask("desk_record_list", json!({ "subject": subject, "limit": 200 }))["events"].as_array().expect("a list").clone();
    let seq = |event: &Value| event["seq"].as_u64().expect("a number");
    let job = events(format!("job:{}", text(&begun["job_id"])));
    let started: Vec<u64> = job.iter().filter(|event| event["kind"] == "job.started").map(seq).collect();
    assert_eq!(started.len(), 2, "{job:#?}");
    let again = started.into_iter().max().expect("a second attempt");
    let steps = events(format!("plan:{}", text(&plan["plan_id"])));
    let late = |event: &&Value| text(&event["kind"]).starts_with("plan.steps.") && text(&event["at"]) >= awake && seq(event) < again;
    let told: Vec<&Value> = steps.iter().filter(late).collect();
    assert!(told.is_empty(), "{told:#?}");
    drop(desk);
    verify(&home);
}

/// This moment as the record writes it.
fn now() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S.%6NZ"]).output().expect("date runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn plans_of_a_paused_agent_keep_nobody_else_waiting() {
    // As many as a server does beside each other.
    const PLANS: usize = 4;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (home, folder) = (directory.path().join("home"), directory.path().join("notes"));
    (0..PLANS).for_each(|number| fill(&folder.join(number.to_string()), FILES));
    fill(&folder.join("own"), 1);
    let (desk, owner) = Desk::owned(&home);
    let token = desk.with(&owner, "desk_agent_add", &json!({ "agent": "code" })).good()["token"].as_str().expect("a token").to_owned();
    desk.with(&owner, "workspace_open_root", &json!({ "name": "notes", "path": folder, "access": "write" })).good();
    let rules = "policies:\n  - id: tidy\n    rules: [{ name: tidy, match: { kind: file.change }, effect: allow, waive_trust: true }]\nmappings:\n  - { agent_id: code, domain: files.notes, policy_id: tidy }\n";
    desk.with(&owner, "desk_policy_apply", &json!({ "document": rules })).good();
    let organize = |who: &str, folder: &str| desk.with(who, "workspace_organize_plan", &json!({ "root": format!("notes/{folder}") })).good();
    let plans: Vec<Value> = (0..PLANS).map(|number| organize(&token, &number.to_string())).collect();
    for plan in &plans {
        assert_eq!((&plan["state"], &plan["decision"]), (&json!("ready"), &json!("approved")), "{plan}");
        desk.with(&token, "workspace_execute_plan", &json!({ "plan_id": plan["plan_id"], "timeout_seconds": 0 })).good();
    }
    desk.with(&owner, "desk_pause", &json!({ "agent": "code" })).good();
    // By now each has come to the end of the part that it was at.
    std::thread::sleep(Duration::from_secs(5));
    let state = |plan: &Value| desk.with(&owner, "workspace_get_plan", &json!({ "plan_id": plan["plan_id"], "limit": 1 })).good()["state"].clone();
    assert!(plans.iter().all(|plan| state(plan) == "running"), "{:?}", plans.iter().map(state).collect::<Vec<_>>());
    let own = organize(&owner, "own");
    assert_eq!(own["state"], "ready", "the place of who is paused is free for others: {own}");
    let done = desk.with(&owner, "workspace_execute_plan", &json!({ "plan_id": own["plan_id"] })).good();
    assert_eq!(done["state"], "done", "{done}");
    desk.with(&owner, "desk_resume", &json!({ "agent": "code" })).good();
    eventually("they go on", Duration::from_mins(2), || plans.iter().all(|plan| state(plan) == "done"));
    drop(desk);
    verify(&home);
}
