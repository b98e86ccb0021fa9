//! Tasks: giving, claiming, changing, waiting for each other.

use std::sync::Barrier;
use std::time::Duration;

use deskmate_core::call::{Call, Credential, Outcome, Surface};
use deskmate_core::{Code, World, bridge};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both, wait};

use super::{CODE, COWORK, EVE, each, events, give, no, ok, sound, text};

fn call(desk: &TestDesk, name: &str, operation: &str, input: Value) -> deskmate_core::Result<Outcome> {
    let call = Call { credential: Credential::Named(Some(name.to_owned())), surface: Surface::Mcp, operation: operation.to_owned(), input };
    wait(desk.desk.call(call)).map(|answer| answer.outcome)
}

fn ready(desk: &TestDesk, name: &str, input: Value) -> bool {
    matches!(call(desk, name, "bridge_wait_for_task", input).expect("the wait is answered"), Outcome::Done(_))
}

fn set(desk: &TestDesk, caller: &Caller, task: &str, status: &str) -> Value {
    ok(desk, caller, "update_task", json!({ "task_id": task, "status": status }))
}

fn refused(desk: &TestDesk, caller: &Caller, task: &str, status: &str) -> deskmate_core::Error {
    no(desk, caller, "update_task", json!({ "task_id": task, "status": status }))
}

fn lost(desk: &TestDesk) -> bool {
    let now = desk.world.now();
    wait(desk.desk.db.read(move |tx| bridge::are_claims_lost(tx, now))).expect("it is looked for")
}

fn status(desk: &TestDesk, task: &str) -> String {
    text(&ok(desk, &CODE, "get_task", json!({ "task_id": task }))["task"], "status")
}

both! {
    fn the_old_tools_work_as_they_did(desk: &TestDesk) {
        let task = give(desk, &CODE, "cowork", "write the report");
        let got = ok(desk, &COWORK, "get_tasks", json!({ "status": "pending" }));
        assert_eq!((each(&got, "tasks", "task_id"), each(&got, "tasks", "description")), (vec![task.clone()], vec!["do it".to_owned()]));
        set(desk, &COWORK, &task, "in_progress");
        let done = ok(desk, &COWORK, "update_task", json!({ "task_id": task.to_uppercase(), "status": "completed", "result": "report.md" }));
        assert_eq!((done["status"].as_str(), done["result"].as_str()), (Some("completed"), Some("report.md")));
        assert_eq!(each(&ok(desk, &CODE, "get_tasks", json!({ "view": "created" })), "tasks", "result"), ["report.md"]);
        assert_eq!(ok(desk, &COWORK, "get_tasks", json!({ "status": "pending" }))["tasks"], json!([]));
        sound(desk);
    }

    fn only_legal_transitions_pass(desk: &TestDesk) {
        let task = give(desk, &CODE, "cowork", "t");
        let refusal = refused(desk, &COWORK, &task, "completed");
        assert_code(&refusal, Code::Conflict);
        assert!(refusal.message.contains("in_progress, rejected, cancelled"), "{refusal}");
        assert_code(&refused(desk, &COWORK, &task, "input_needed"), Code::Conflict);
        assert_code(&refused(desk, &COWORK, &task, "pending"), Code::Conflict);
        set(desk, &COWORK, &task, "in_progress");
        assert_code(&refused(desk, &COWORK, &task, "rejected"), Code::Conflict);
        let asked = ok(desk, &COWORK, "update_task", json!({ "task_id": task, "status": "input_needed", "result": "which one?" }));
        assert_eq!(asked.get("lease"), None);
        assert_code(&refused(desk, &COWORK, &task, "completed"), Code::Conflict);
        // Whoever gave it answers and gives it back.
        set(desk, &CODE, &task, "pending");
        let claimed = set(desk, &COWORK, &task, "in_progress");
        assert_eq!(claimed["lease"]["fence"], 2);
        set(desk, &COWORK, &task, "pending");
        set(desk, &COWORK, &task, "in_progress");
        set(desk, &COWORK, &task, "failed");
        for next in ["pending", "in_progress", "completed", "failed", "input_needed", "rejected", "cancelled"] {
            let caller = if next == "cancelled" { &CODE } else { &COWORK };
            let refusal = refused(desk, caller, &task, next);
            assert_code(&refusal, Code::Conflict);
            assert!(refusal.message.contains("final"), "{refusal}");
        }
        assert_eq!(ok(desk, &CODE, "get_task", json!({ "task_id": task }))["task"]["version"], 8);
        sound(desk);
    }

    fn cancelling_and_rejecting(desk: &TestDesk) {
        let task = give(desk, &CODE, "cowork", "t");
        assert_code(&refused(desk, &COWORK, &task, "cancelled"), Code::Forbidden);
        assert_code(&refused(desk, &CODE, &task, "rejected"), Code::Forbidden);
        let rejected = ok(desk, &COWORK, "update_task", json!({ "task_id": task, "status": "rejected", "result": "not mine" }));
        assert_eq!(rejected["status"], "rejected");
        // Calling work off takes the lease away from its worker.
        let task = give(desk, &CODE, "cowork", "t");
        let fence = ok(desk, &COWORK, "claim_task", json!({ "task_id": task }))["lease"]["fence"].clone();
        set(desk, &CODE, &task, "cancelled");
        let refusal = no(desk, &COWORK, "heartbeat_task", json!({ "task_id": task, "fence": fence }));
        assert!(refusal.code == Code::Conflict && refusal.message.contains("cancelled"), "{refusal}");
        assert_code(&no(desk, &COWORK, "update_task", json!({ "task_id": task, "status": "completed", "fence": fence })), Code::Conflict);
        // Who worked on it before it was given to somebody else has no say in it any more.
        for given_back in ["pending", "input_needed"] {
            let task = give(desk, &CODE, "cowork", "t");
            ok(desk, &COWORK, "claim_task", json!({ "task_id": task }));
            set(desk, &COWORK, &task, given_back);
            ok(desk, &CODE, "update_task", json!({ "task_id": task, "to": "eve" }));
            for status in ["rejected", "pending", "in_progress"] {
                assert_code(&refused(desk, &COWORK, &task, status), Code::Forbidden);
            }
        }
        // A person may call off anybody's task, and nothing else.
        let task = give(desk, &CODE, "cowork", "t");
        let owner = desk.claim();
        assert_code(&refused(desk, &owner, &task, "completed"), Code::Forbidden);
        assert_code(&refused(desk, &owner, &task, "in_progress"), Code::Forbidden);
        set(desk, &owner, &task, "cancelled");
        sound(desk);
    }

    fn a_question_is_not_the_result_of_what_is_done(desk: &TestDesk) {
        let task = give(desk, &CODE, "cowork", "t");
        set(desk, &COWORK, &task, "in_progress");
        ok(desk, &COWORK, "update_task", json!({ "task_id": task, "status": "input_needed", "result": "which one?" }));
        let back = set(desk, &CODE, &task, "pending");
        assert_eq!(back["result"], "which one?", "whoever takes it sees what was asked");
        set(desk, &COWORK, &task, "in_progress");
        let done = set(desk, &COWORK, &task, "completed");
        assert_eq!((done.get("result"), done.get("result_by")), (None, None), "{done}");
        let shown = ok(desk, &CODE, "get_task", json!({ "task_id": task }));
        assert_eq!((each(&shown, "notes", "note"), each(&shown, "notes", "actor")), (vec!["which one?".to_owned()], vec!["cowork".to_owned()]));
        sound(desk);
    }

    fn tasks_in_other_projects_are_named_and_waited_for(desk: &TestDesk) {
        ok(desk, &CODE, "set_group", json!({ "name": "team", "members": ["cowork"] }));
        let blocker = give(desk, &CODE, "code", "first");
        for (to, project) in [("cowork", "web"), ("group:team", "app"), ("code", "other")] {
            ok(desk, &CODE, "create_task", json!({ "to": to, "title": project, "project": project }));
        }
        ok(desk, &CODE, "create_task", json!({ "to": "cowork", "title": "later", "project": "blocked", "depends_on": [blocker] }));
        let refusal = no(desk, &COWORK, "claim_task", json!({}));
        assert!(refusal.hint.as_ref().is_some_and(|hint| hint.contains("app, web")), "{refusal:?}");
        assert!(!ready(desk, "cowork", json!({})) && ready(desk, "cowork", json!({ "any_project": true })) && !ready(desk, "eve", json!({ "any_project": true })));
        let told = ok(desk, &COWORK, "wait_for_task", json!({ "any_project": true }));
        assert_eq!((told["changed"].clone(), told["elsewhere"].clone(), told.get("task")), (json!(true), json!(["app", "web"]), None));
        assert_code(&no(desk, &CODE, "wait_for_task", json!({ "any_project": true, "task_id": blocker })), Code::Invalid);
        // One wait for mail and work.
        let wakes = |input: Value| matches!(call(desk, "cowork", "bridge_wait_for_messages", input).expect("the wait is answered"), Outcome::Done(_));
        assert!(!wakes(json!({ "any_project": true })) && !wakes(json!({ "or_tasks": true })) && wakes(json!({ "or_tasks": true, "project": "web" })));
        let told = ok(desk, &COWORK, "wait_for_messages", json!({ "or_tasks": true, "any_project": true }));
        assert_eq!((told["messages"].clone(), told["tasks_ready_in"].clone()), (json!([]), json!(["app", "web"])));
        for project in ["web", "app"] {
            ok(desk, &COWORK, "claim_task", json!({ "project": project }));
        }
        assert_eq!(ok(desk, &COWORK, "get_tasks", json!({})).get("elsewhere"), None, "what is worked on waits for nobody");
        assert!(!wakes(json!({ "or_tasks": true, "any_project": true })) && !ready(desk, "cowork", json!({ "any_project": true })));
    }

    fn claiming_takes_the_most_urgent_ready_task(desk: &TestDesk) {
        let refusal = no(desk, &COWORK, "claim_task", json!({}));
        assert_code(&refusal, Code::NotFound);
        assert!(!ready(desk, "cowork", json!({})));
        ok(desk, &CODE, "set_group", json!({ "name": "team", "members": ["cowork", "eve"] }));
        give(desk, &CODE, "cowork", "normal");
        ok(desk, &CODE, "create_task", json!({ "to": "group:team", "title": "urgent", "priority": "urgent" }));
        ok(desk, &CODE, "create_task", json!({ "to": "cowork", "title": "elsewhere", "priority": "urgent", "project": "web" }));
        give(desk, &CODE, "cowork", "later");
        assert!(ready(desk, "cowork", json!({})) && ready(desk, "eve", json!({})) && !ready(desk, "code", json!({})));
        let titles: Vec<String> = (0..3).map(|_| text(&ok(desk, &COWORK, "claim_task", json!({})), "title")).collect();
        assert_eq!(titles, ["urgent", "normal", "later"]);
        assert_code(&no(desk, &COWORK, "claim_task", json!({})), Code::NotFound);
        assert_eq!(text(&ok(desk, &COWORK, "claim_task", json!({ "project": "web" })), "title"), "elsewhere");
        let group_task = &ok(desk, &EVE, "get_tasks", json!({}))["tasks"][0];
        assert_eq!((group_task["worker"].as_str(), group_task["status"].as_str()), (Some("cowork"), Some("in_progress")));
        assert_code(&no(desk, &EVE, "claim_task", json!({ "task_id": group_task["task_id"] })), Code::Conflict);
        assert_code(&no(desk, &COWORK, "claim_task", json!({ "lease_seconds": 4 })), Code::Invalid);
        assert_code(&no(desk, &COWORK, "claim_task", json!({ "lease_seconds": 86401 })), Code::Invalid);
    }

    fn a_member_cannot_reject_for_its_group(desk: &TestDesk) {
        ok(desk, &CODE, "set_group", json!({ "name": "team", "members": ["cowork", "eve"] }));
        let task = give(desk, &CODE, "team", "t");
        assert_code(&refused(desk, &EVE, &task, "rejected"), Code::Forbidden);
        set(desk, &EVE, &task, "in_progress");
        assert_code(&refused(desk, &COWORK, &task, "completed"), Code::Conflict);
        set(desk, &EVE, &task, "completed");
    }

    fn two_claimers_at_once_and_one_wins(desk: &TestDesk) {
        for _ in 0..5 {
            let task = give(desk, &CODE, "cowork", "t");
            let start = Barrier::new(4);
            let won: usize = std::thread::scope(|scope| {
                let claimers: Vec<_> = (0..4)
                    .map(|_| scope.spawn(|| {
                        start.wait();
                        usize::from(call(desk, "cowork", "bridge_claim_task", json!({ "task_id": task })).is_ok())
                    }))
                    .collect();
                claimers.into_iter().map(|claimer| claimer.join().expect("the claimer ends")).sum()
            });
            assert_eq!(won, 1);
            desk.seal();
        }
        sound(desk);
    }

    fn many_claimers_share_many_tasks(desk: &TestDesk) {
        for n in 0..12 {
            give(desk, &CODE, "cowork", &n.to_string());
        }
        let mut claimed: Vec<String> = std::thread::scope(|scope| {
            let claimers: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| {
                    let mut claimed = Vec::new();
                    while let Ok(Outcome::Done(task)) = call(desk, "cowork", "bridge_claim_task", json!({})) {
                        claimed.push(text(&task, "task_id"));
                    }
                    claimed
                }))
                .collect();
            claimers.into_iter().flat_map(|claimer| claimer.join().expect("the claimer ends")).collect()
        });
        claimed.sort();
        claimed.dedup();
        assert_eq!(claimed.len(), 12);
        desk.seal();
        sound(desk);
    }

    fn a_lost_lease_gives_the_task_back_at_once(desk: &TestDesk) {
        let task = give(desk, &CODE, "cowork", "t");
        let first = ok(desk, &COWORK, "claim_task", json!({ "task_id": task, "lease_seconds": 60 }))["lease"]["fence"].clone();
        desk.world.pass(Duration::from_secs(50));
        let before = events(desk);
        ok(desk, &COWORK, "heartbeat_task", json!({ "task_id": task, "fence": first }));
        assert_eq!(events(desk), before, "a heartbeat fills no record");
        desk.world.pass(Duration::from_secs(50));
        assert_eq!(status(desk, &task), "in_progress");
        assert_eq!(ok(desk, &COWORK, "get_tasks", json!({ "status": "pending" }))["tasks"], json!([]));
        desk.world.pass(Duration::from_secs(11));
        assert_eq!(status(desk, &task), "pending");
        assert_eq!(each(&ok(desk, &COWORK, "get_tasks", json!({ "ready": true })), "tasks", "task_id"), [task.as_str()]);
        assert_eq!(ok(desk, &COWORK, "get_tasks", json!({ "status": "in_progress" }))["tasks"], json!([]));
        assert!(ready(desk, "cowork", json!({})));
        // The worker who comes back too late is told so, and told again after somebody else claimed it.
        assert_code(&no(desk, &COWORK, "heartbeat_task", json!({ "task_id": task, "fence": first })), Code::Conflict);
        assert_code(&no(desk, &COWORK, "update_task", json!({ "task_id": task, "status": "completed", "fence": first })), Code::Conflict);
        assert_code(&refused(desk, &COWORK, &task, "completed"), Code::Conflict);
        let second = ok(desk, &COWORK, "claim_task", json!({}))["lease"]["fence"].clone();
        assert!(second.as_i64() > first.as_i64());
        assert_code(&no(desk, &COWORK, "update_task", json!({ "task_id": task, "status": "completed", "fence": first })), Code::Conflict);
        let done = ok(desk, &COWORK, "update_task", json!({ "task_id": task, "status": "completed", "fence": second }));
        assert_eq!(done["attempt"], 2);
        sound(desk);
    }

    fn the_sweep_tells_the_record_once(desk: &TestDesk) {
        let task = give(desk, &CODE, "cowork", "t");
        ok(desk, &COWORK, "claim_task", json!({ "task_id": task, "lease_seconds": 60 }));
        assert_eq!(desk.act(|cx| bridge::sweep_tasks(cx, 10)).unwrap(), 0);
        desk.world.pass(Duration::from_secs(61));
        assert!(lost(desk));
        assert_eq!(desk.act(|cx| bridge::sweep_tasks(cx, 10)).unwrap(), 1);
        assert!(!lost(desk));
        assert_eq!(desk.act(|cx| bridge::sweep_tasks(cx, 10)).unwrap(), 0);
        let told = desk.agent("code", "desk_record_list", json!({ "subject": format!("task:{task}") })).unwrap();
        assert_eq!(each(&told, "events", "kind"), ["task.lease_expired", "task.claimed", "task.created"]);
        assert_eq!(ok(desk, &COWORK, "claim_task", json!({}))["lease"]["fence"], 2);
        sound(desk);
    }

    fn a_task_waits_for_its_blockers(desk: &TestDesk) {
        let (a, b) = (give(desk, &CODE, "cowork", "a"), give(desk, &CODE, "cowork", "b"));
        let c = ok(desk, &CODE, "create_task", json!({ "to": "eve", "title": "c", "depends_on": [a, b, a] }));
        assert_eq!((c["open_blockers"].clone(), c["ready"].clone()), (json!(2), json!(false)));
        let c = text(&c, "task_id");
        assert_code(&no(desk, &EVE, "claim_task", json!({})), Code::NotFound);
        assert_code(&no(desk, &EVE, "claim_task", json!({ "task_id": c })), Code::Conflict);
        set(desk, &COWORK, &a, "in_progress");
        set(desk, &COWORK, &a, "completed");
        assert_eq!(ok(desk, &EVE, "get_tasks", json!({ "ready": true }))["tasks"], json!([]));
        // What fails keeps others waiting, and says so; who gave the task decides.
        set(desk, &COWORK, &b, "in_progress");
        set(desk, &COWORK, &b, "failed");
        let blockers = ok(desk, &EVE, "get_task", json!({ "task_id": c }))["blockers"].clone();
        let b_shown = blockers.as_array().unwrap().iter().find(|shown| shown["task_id"] == json!(b)).unwrap();
        assert!(b_shown["open"] == true && b_shown["why"].as_str().unwrap().contains("unblock_task"), "{blockers}");
        assert_code(&no(desk, &EVE, "unblock_task", json!({ "task_id": c, "blocker": b })), Code::Forbidden);
        assert_code(&no(desk, &CODE, "unblock_task", json!({ "task_id": c, "blocker": a })), Code::Conflict);
        assert_code(&no(desk, &CODE, "unblock_task", json!({ "task_id": c, "blocker": c })), Code::NotFound);
        assert_eq!(ok(desk, &CODE, "unblock_task", json!({ "task_id": c, "blocker": b }))["ready"], true);
        assert!(ready(desk, "eve", json!({})));
        ok(desk, &EVE, "claim_task", json!({}));
        // Only what exists and can be seen is waited for, so that no circle can arise.
        let hidden = give(desk, &COWORK, "cowork", "hidden");
        for id in [hidden.as_str(), "nonsense"] {
            let refusal = no(desk, &CODE, "create_task", json!({ "to": "eve", "title": "d", "depends_on": [id] }));
            assert!(refusal.code == Code::NotFound && refusal.field.as_deref() == Some("depends_on"), "{refusal}");
        }
        assert_code(&no(desk, &CODE, "create_task", json!({ "to": "eve", "title": "d", "depends_on": vec![a; 101] })), Code::Invalid);
        sound(desk);
    }

    fn notes_tell_how_far_it_is(desk: &TestDesk) {
        let task = give(desk, &CODE, "cowork", "t");
        ok(desk, &COWORK, "add_task_note", json!({ "task_id": task, "note": "half", "percent": 50 }));
        ok(desk, &CODE, "add_task_note", json!({ "task_id": task, "note": "thanks" }));
        ok(desk, &COWORK, "add_task_note", json!({ "task_id": task, "percent": 60 }));
        let shown = ok(desk, &CODE, "get_task", json!({ "task_id": task, "limit": 2 }));
        assert_eq!((each(&shown, "notes", "note"), shown["notes"][0]["percent"].clone()), (vec![String::new(), "thanks".to_owned()], json!(60)));
        assert_eq!(shown["notes"][0]["trust"], "unverified, claims to be cowork");
        let older = ok(desk, &CODE, "get_task", json!({ "task_id": task, "cursor": shown["next_cursor"] }));
        assert_eq!(each(&older, "notes", "note"), ["half"]);
        assert_code(&no(desk, &EVE, "add_task_note", json!({ "task_id": task, "note": "x" })), Code::NotFound);
        assert_code(&no(desk, &COWORK, "add_task_note", json!({ "task_id": task, "note": " " })), Code::Invalid);
        assert_code(&no(desk, &COWORK, "add_task_note", json!({ "task_id": task, "percent": 101 })), Code::Invalid);
    }

    fn tasks_are_listed_in_pages(desk: &TestDesk) {
        ok(desk, &CODE, "set_group", json!({ "name": "team", "members": ["cowork"] }));
        let mut given: Vec<String> = (0..7).map(|n| give(desk, &CODE, if n % 2 == 0 { "cowork" } else { "group:team" }, "t")).collect();
        set(desk, &COWORK, &given[3], "in_progress");
        set(desk, &COWORK, &given[3], "completed");
        given.reverse();
        let mut seen = Vec::new();
        let mut input = json!({ "limit": 3 });
        loop {
            let page = ok(desk, &COWORK, "get_tasks", input.clone());
            seen.extend(each(&page, "tasks", "task_id"));
            let Some(next) = page["next_cursor"].as_str() else { break };
            input["cursor"] = json!(next);
        }
        assert_eq!(seen, given);
        assert_code(&no(desk, &COWORK, "get_tasks", json!({ "view": "all" })), Code::Forbidden);
        assert_code(&no(desk, &COWORK, "get_tasks", json!({ "status": "done" })), Code::Invalid);
        assert_code(&no(desk, &COWORK, "get_tasks", json!({ "status": "failed", "ready": true })), Code::Invalid);
        let owner = desk.claim();
        assert_eq!(each(&ok(desk, &owner, "get_tasks", json!({ "view": "all" })), "tasks", "task_id"), given);
        assert_eq!(each(&ok(desk, &owner, "get_tasks", json!({ "view": "all", "status": "completed" })), "tasks", "worker"), ["cowork"]);
    }

    fn a_wait_ends_when_the_state_changes(desk: &TestDesk) {
        let task = give(desk, &CODE, "cowork", "t");
        assert!(!ready(desk, "code", json!({ "task_id": task, "status": "pending" })));
        assert!(!ready(desk, "code", json!({ "task_id": task })));
        set(desk, &COWORK, &task, "in_progress");
        assert!(ready(desk, "code", json!({ "task_id": task, "status": "pending" })));
        assert!(!ready(desk, "code", json!({ "task_id": task })));
        set(desk, &COWORK, &task, "completed");
        assert!(ready(desk, "code", json!({ "task_id": task, "timeout_seconds": 25 })));
        assert_eq!(ok(desk, &CODE, "wait_for_task", json!({ "task_id": task }))["task"]["status"], "completed");
        assert_code(&no(desk, &EVE, "wait_for_task", json!({ "task_id": task })), Code::NotFound);
        assert_code(&no(desk, &CODE, "wait_for_task", json!({ "task_id": task, "timeout_seconds": 26 })), Code::Invalid);
    }

    fn deadlines_pass_visibly(desk: &TestDesk) {
        let task = ok(desk, &CODE, "create_task", json!({ "to": "cowork", "title": "t", "deadline": "2026-01-01T02:00:00+01:00" }));
        assert_eq!((task["deadline"].as_str(), task["overdue"].as_bool()), (Some("2026-01-01T01:00:00.000000Z"), Some(false)));
        desk.world.pass(Duration::from_secs(3601));
        assert_eq!(ok(desk, &COWORK, "get_tasks", json!({}))["tasks"][0]["overdue"], true);
        let refusal = no(desk, &CODE, "create_task", json!({ "to": "cowork", "title": "t", "deadline": "tomorrow" }));
        assert_eq!(refusal.field.as_deref(), Some("deadline"));
    }

    fn erased_texts_are_gone_and_say_so(desk: &TestDesk) {
        let owner = desk.claim();
        let task = give(desk, &CODE, "cowork", "secret title");
        ok(desk, &COWORK, "claim_task", json!({ "task_id": task, "idempotency_key": "k" }));
        ok(desk, &COWORK, "add_task_note", json!({ "task_id": task, "note": "secret note" }));
        ok(desk, &COWORK, "update_task", json!({ "task_id": task, "status": "completed", "result": "secret result" }));
        for kind in ["task.created", "task.noted", "task.updated"] {
            let told = desk.call(&owner, "desk_record_list", json!({ "kind": kind })).unwrap();
            desk.call(&owner, "desk_record_erase", json!({ "seq": told["events"][0]["seq"], "reason": "asked to" })).unwrap();
        }
        let shown = ok(desk, &CODE, "get_task", json!({ "task_id": task }));
        assert!(!shown.to_string().contains("secret"), "{shown}");
        assert_eq!((shown["task"]["erased"].as_bool(), shown["notes"][0]["erased"].as_bool()), (Some(true), Some(true)));
        assert_eq!(ok(desk, &CODE, "get_tasks", json!({ "view": "created" }))["tasks"][0]["erased"], true);
        sound(desk);
    }
}
