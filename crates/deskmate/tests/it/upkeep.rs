//! Upkeep by the clock: what was kept long enough goes, leases that ended are told, checkpoints are copied out.

use serde_json::{Value, json};

use super::desk::{Desk, until};
use super::{agents, gateway, policy, workspace};

fn call(desk: &Desk, agent: &str, args: &[&str]) -> Value {
    let output = desk.run(&[&["call"], args, &["--agent", agent, "--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn data_goes_after_its_time_and_checkpoints_are_copied_out() {
    let desk = Desk::new();
    desk.up();
    call(&desk, "code", &["bridge_send_message", "to=cowork", "content=read and done with"]);
    call(&desk, "code", &["bridge_send_message", "to=other", "content=still waits"]);
    call(&desk, "cowork", &["bridge_read_messages", "mark_read=true"]);
    let task = call(&desk, "code", &["bridge_create_task", "to=cowork", "title=over"]);
    let id = format!("task_id={}", task["task_id"].as_str().unwrap());
    call(&desk, "code", &["bridge_update_task", &id, "status=cancelled"]);
    assert_eq!(call(&desk, "code", &["bridge_list_sent_messages"])["messages"].as_array().unwrap().len(), 2);
    assert!(desk.run(&["stop"]).status.success());

    let copies = desk.path().join("elsewhere.jsonl");
    let settings = format!("retention:\n  messages: 1ms\n  tasks: 1ms\ncheckpoints:\n  copy_to: {}\n", copies.display());
    std::fs::write(desk.path().join("deskmate.yaml"), settings).unwrap();
    assert!(!desk.path().join("desk.db-wal").exists(), "a stopped desk is one file");
    let early = desk.path().join("early.db");
    std::fs::copy(desk.path().join("desk.db"), &early).unwrap();
    desk.up();
    let left = until("what was acknowledged goes", || {
        let sent = call(&desk, "code", &["bridge_list_sent_messages"])["messages"].as_array().unwrap().clone();
        (sent.len() == 1).then_some(sent)
    });
    assert_eq!(left[0]["content"], "still waits");
    until("the ended task goes", || call(&desk, "code", &["bridge_get_tasks", "view=created"])["tasks"].as_array().unwrap().is_empty().then_some(()));
    until("a checkpoint is copied", || std::fs::read_to_string(&copies).ok().filter(|text| text.ends_with('\n')));
    assert!(desk.run(&["stop"]).status.success());
    assert!(desk.run(&["audit", "verify"]).status.success(), "the copied checkpoints fit");

    // The older copy is sound in itself; only the checkpoint elsewhere shows that something is missing.
    std::fs::copy(&early, desk.path().join("desk.db")).unwrap();
    let verified = desk.run(&["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(7), "{}", String::from_utf8_lossy(&verified.stdout));
    assert!(String::from_utf8_lossy(&verified.stdout).contains("older copy"));

    // Whoever asks a running desk is told the same.
    desk.claim();
    let url = desk.url();
    let person = super::http::post(&url, "/api/desk_sign_in", &[], "{\"passphrase\":\"correct horse\"}").json();
    let person = format!("Bearer {}", person["session"].as_str().unwrap());
    let ask = |path: &str, body: &Value| super::http::post(&url, path, &[("Authorization", &person)], &body.to_string()).json();
    let job = ask("/api/desk_record_verify", &json!({}))["job"].clone();
    let done = ask("/api/desk_job_wait", &json!({ "job": job }));
    assert_eq!((done["result"]["sound"].clone(), done["result"]["checkpoints_elsewhere"].clone()), (json!(false), json!("compared")), "{done}");
    assert!(desk.run(&["stop"]).status.success());

    // Without the file it cannot be found, and that is said.
    std::fs::remove_file(&copies).unwrap();
    let verified = desk.run(&["audit", "verify"]);
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(verified.status.success() && said.contains("No checkpoint was found at") && said.contains("elsewhere.jsonl"), "{said}");
    let told: Value = serde_json::from_slice(&desk.run(&["audit", "verify", "--json"]).stdout).unwrap();
    assert_eq!((told["sound"].clone(), told["checkpoints_elsewhere"].clone()), (json!(true), json!("not_found")));
}

#[test]
fn every_kind_goes_after_its_time() {
    let (desk, _folder, token) = gateway::desk();
    let mut notes = gateway::agent(&desk, &token);
    gateway::first(&notes.tool("read", json!({ "page": 1 })));
    until("the call has ended", || gateway::calls(&desk).iter().any(|call| call["state"] == "done").then_some(()));
    drop(notes);
    let steps = json!([{ "id": "note", "do": "log", "with": { "text": "said" } }]);
    let made = agents::owner(&desk, "agents_create_agent", &json!({ "description": "Says it", "steps": steps, "policies": [] }));
    let agent = made["agentId"].as_str().unwrap_or_else(|| panic!("{made}"));
    agents::owner(&desk, "agents_deploy_agent", &json!({ "agentId": agent }));
    let runs = || {
        let listed = agents::owner(&desk, "agents_list_runs", &json!({ "agentId": agent }));
        listed["runs"].as_array().unwrap_or_else(|| panic!("{listed}")).clone()
    };
    for number in 1..=2 {
        agents::owner(&desk, "agents_run_agent", &json!({ "agentId": agent }));
        until("the run is done", || (runs().iter().filter(|run| run["state"] == "done").count() == number).then_some(()));
    }
    let newest = runs()[0]["runId"].clone();
    let verifying = agents::owner(&desk, "desk_record_verify", &json!({}));
    let job = json!({ "job": verifying["job"] });
    until("the job is done", || (agents::owner(&desk, "desk_job_get", &job)["state"] == "done").then_some(()));
    let note = desk.run(&["audit", "checkpoint"]).stdout;
    assert!(desk.run(&["stop"]).status.success());
    // One is kept each minute: this one a minute after the first.
    let note = String::from_utf8(note).unwrap();
    let size: i64 = note.lines().nth(1).unwrap().parse().unwrap();
    let kept = || {
        let store = rusqlite::Connection::open(desk.path().join("desk.db")).unwrap();
        let mut sizes = store.prepare("select size from checkpoint order by size").unwrap();
        sizes.query_map([], |row| row.get(0)).unwrap().collect::<Result<Vec<i64>, _>>().unwrap()
    };
    let first = kept();
    let store = rusqlite::Connection::open(desk.path().join("desk.db")).unwrap();
    store.execute("insert into checkpoint (size, at, note) select ?1, max(at) + 1, ?2 from checkpoint", rusqlite::params![size, note]).unwrap();
    drop(store);
    assert!(!first.is_empty() && first.iter().all(|older| *older < size), "{first:?} {size}");

    std::fs::write(desk.path().join("deskmate.yaml"), "retention:\n  jobs: 1ms\n  runs: 1ms\n  calls: 1ms\n  checkpoints: 1ms\n").unwrap();
    desk.up();
    until("the call is gone", || gateway::calls(&desk).is_empty().then_some(()));
    let left = until("the older run is gone", || Some(runs()).filter(|runs| runs.len() < 2));
    assert_eq!((left.len(), &left[0]["runId"]), (1, &newest), "the newest of an agent stays");
    let asked = policy::as_owner(&desk, &["call", "desk_job_get", "--input", &job.to_string(), "--json"]);
    assert_eq!(asked.status.code(), Some(4), "{}", String::from_utf8_lossy(&asked.stderr));
    assert!(desk.run(&["stop"]).status.success());
    let after = kept();
    assert!(!after.is_empty() && !after.iter().any(|size| first.contains(size)), "{first:?} went, {after:?} stayed");
    assert!(desk.run(&["audit", "verify"]).status.success(), "and the record is sound");
}

#[test]
fn plans_go_with_their_contents_after_their_time_and_what_waits_stays() {
    let (desk, _folder, token) = workspace::desk();
    let mut client = workspace::agent(&desk, &token);
    let write = |name: &str| json!({ "root": "notes", "steps": [{ "action": "write", "to": name, "text": format!("content of {name}") }] });
    let done = workspace::ask(&mut client, "change_plan", write("done.md"));
    workspace::approve(&desk, &done);
    assert_eq!(workspace::ask(&mut client, "execute_plan", json!({ "plan_id": done["plan_id"] }))["state"], "done");
    let waits = workspace::ask(&mut client, "change_plan", write("waits.md"));
    let refused = workspace::ask(&mut client, "change_plan", write("refused.md"));
    let request = refused["request_id"].as_str().unwrap();
    workspace::person(&desk, &["inbox", "--passphrase-stdin", "reject", request, "--reason", "no", "--json"]);
    drop(client);
    assert!(desk.run(&["stop"]).status.success());
    std::fs::write(desk.path().join("deskmate.yaml"), "retention:\n  plans: 1ms\n").unwrap();
    desk.up();
    let mut client = workspace::agent(&desk, &token);
    until("what ended is gone", || {
        let plans = workspace::ask(&mut client, "list_plans", json!({}))["plans"].as_array().unwrap().clone();
        (plans.len() == 1 && plans[0]["plan_id"] == waits["plan_id"]).then_some(())
    });
    let whole = workspace::ask(&mut client, "get_plan", json!({ "plan_id": waits["plan_id"] }));
    assert!(whole["steps"][0]["diff"].as_str().unwrap().contains("content of waits.md"), "{whole}");
    assert_eq!(workspace::ask(&mut client, "undo_plan", json!({ "plan_id": done["plan_id"] }))["_meta"]["deskmate/error"]["code"], "not_found");
    drop(client);
    // Their requests are shown all the same.
    let shown = workspace::person(&desk, &["inbox", "--passphrase-stdin", "show", request, "--json"]);
    assert_eq!((&shown["state"], &shown["plan"]["gone"]), (&json!("rejected"), &json!(true)), "{shown}");
    let told = workspace::person(&desk, &["call", "desk_record_list", "kind=plan.pruned", "--passphrase-stdin", "--json"]);
    assert!(told.to_string().contains("\"plans\":2"), "{told}");
    let report = workspace::person(&desk, &["audit", "verify", "--json"]);
    assert_eq!(report["sound"], true, "{report}");
}

#[test]
fn a_claim_without_a_sign_of_life_is_told_and_given_back() {
    let desk = Desk::new();
    desk.up();
    call(&desk, "code", &["bridge_create_task", "to=cowork", "title=Write"]);
    let claimed = call(&desk, "cowork", &["bridge_claim_task", "lease_seconds=5"]);
    assert_eq!(claimed["status"], "in_progress", "{claimed}");
    until("the lease ends and the record tells", || {
        let told = call(&desk, "code", &["desk_record_list", "kind=task.lease_expired"]);
        (!told["events"].as_array().unwrap().is_empty()).then_some(())
    });
    assert_eq!(call(&desk, "cowork", &["bridge_get_tasks", "status=pending"])["tasks"].as_array().unwrap().len(), 1);
}
