//! Bringing in what an AgentOS server kept, on both engines.

use std::time::Duration;

use deskmate_core::Code;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

const AGENT: &str = "6b29fc40-ca47-4067-b31d-00dd010662da";
const APPROVAL: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
const OLD: &str = "2026-02-01T10:00:00.000Z";
const FAR: &str = "2099-01-01T00:00:00.000Z";

fn import(desk: &TestDesk, owner: &Caller, rows: &[Value], dry: bool) -> Value {
    desk.call(owner, "desk_import_agentos", json!({ "dry_run": dry, "rows": rows })).unwrap()
}

fn agent(id: &str, config: Value) -> Value {
    let mut all = json!({ "id": id, "name": "mailer", "task": "Read notes.csv, classify it and forward negative cases to a person, as ada@example.org wants it", "language": "python", "status": "deployed",
        "policies": ["human-review", "custom-1a2b3c4d"], "approvalRequired": true, "schedule": "0 9 * * *", "createdAt": OLD, "updatedAt": OLD });
    all.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    json!({ "folder": "agents", "file": format!("agents/{id}.json"), "row": { "config": all, "workflow": { "steps": [{ "name": "connect_email" }] }, "integrations": [] } })
}

fn approval(id: &str, more: Value) -> Value {
    let mut row = json!({ "id": id, "agentId": AGENT, "action": "delete_rows", "description": "clean the customers table of 4111 1111 1111 1111",
        "riskLevel": "critical", "requestedBy": "system", "requestedAt": OLD, "expiresAt": FAR, "status": "pending",
        "approvers": [{ "email": "admin@example.com" }], "approvals": [] });
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "folder": "approvals", "file": format!("approvals/{id}.json"), "row": row })
}

fn line(number: u32, more: Value) -> Value {
    let mut row = json!({ "id": format!("aaaaaaaa-0000-4000-8000-0000000000{number:02}"), "timestamp": OLD, "agentId": AGENT, "action": "tool:create_agent",
        "outcome": "SUCCESS", "metadata": { "args": { "description": "password: hunter2secret, token ghp_0123456789abcdefghijABCDEFGHIJ012345" }, "result": "made" } });
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "folder": "audit", "file": format!("audit/2026-02-01.jsonl:{number}"), "row": row })
}

fn why(report: &Value, what: &str) -> (String, String) {
    let entries = report["entries"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["what"].as_str().unwrap().starts_with(what)).unwrap_or_else(|| panic!("{what} is not in {report:#}"));
    (entry["outcome"].as_str().unwrap().to_owned(), entry["why"].as_str().unwrap_or_default().to_owned())
}

both! {
    fn agents_become_drafts_with_their_ids_and_run_nothing(desk: &TestDesk) {
        let owner = desk.claim();
        let report = import(desk, &owner, &[agent(AGENT, json!({}))], false);
        let (outcome, told) = why(&report, "agents/");
        assert_eq!(outcome, "changed", "{report:#}");
        for said in ["custom-1a2b3c4d", "is a draft here", "taken out: ", "needs"] {
            assert!(told.contains(said), "{said}: {told}");
        }
        let made = desk.call(&owner, "agents_get_agent_status", json!({ "agentId": AGENT })).unwrap();
        assert_eq!((&made["status"], &made["name"], &made["definition"]["imported"]), (&json!("draft"), &json!("mailer"), &json!("agentos")), "{made:#}");
        assert_eq!(made["definition"]["approval_required"], true);
        assert_eq!(made["definition"]["schedule"]["cron"], "0 9 * * *");
        assert!(made["definition"]["policies"].to_string().contains("human-review"), "{made:#}");
        assert!(!made.to_string().contains("ada@example.org") && made["definition"]["task"].as_str().unwrap().contains("[redacted:"), "{made:#}");
        assert!(made.get("nextRuns").is_none(), "a draft is due at no time: {made:#}");
        // A policy that is missing here does not go missing silently.
        let refused = desk.refused(&owner, "agents_deploy_agent", json!({ "agentId": AGENT }));
        assert_code(&refused, Code::Conflict);
        assert!(refused.message.contains("custom-1a2b3c4d"), "{refused}");
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn a_dry_run_writes_nothing_and_a_repeated_import_changes_nothing(desk: &TestDesk) {
        let owner = desk.claim();
        let rows = [agent(AGENT, json!({})), approval(APPROVAL, json!({})), line(1, json!({}))];
        let size = || desk.call(&owner, "desk_record_list", json!({ "limit": 1 })).unwrap()["events"][0]["seq"].clone();
        let before = size();
        let dry = import(desk, &owner, &rows, true);
        assert_eq!(size(), before, "a dry run wrote something");
        let real = import(desk, &owner, &rows, false);
        assert_eq!(dry["counts"], real["counts"], "{dry:#} {real:#}");
        let after = size();
        let again = import(desk, &owner, &rows, false);
        assert_eq!(again["counts"], json!({ "agents": { "known": 1 }, "approvals": { "known": 1 }, "audit": { "known": 1 } }), "{again:#}");
        assert_eq!(size(), after, "a repeated import wrote something");
        // What was deleted here stays deleted.
        desk.call(&owner, "agents_delete_agent", json!({ "agentId": AGENT })).unwrap();
        import(desk, &owner, &rows, false);
        assert_code(&desk.refused(&owner, "agents_get_agent_status", json!({ "agentId": AGENT })), Code::NotFound);
    }

    fn open_approvals_wait_here_and_ended_ones_are_history(desk: &TestDesk) {
        let owner = desk.claim();
        let ended = "11111111-d9cb-469f-a165-70867728950e";
        let late = "22222222-d9cb-469f-a165-70867728950e";
        let orphan = "33333333-d9cb-469f-a165-70867728950e";
        let rows = [
            agent(AGENT, json!({})),
            approval(APPROVAL, json!({})),
            approval(ended, json!({ "status": "approved" })),
            approval(late, json!({ "expiresAt": "2020-01-01T00:00:00Z" })),
            approval(orphan, json!({ "agentId": "99999999-d9cb-469f-a165-70867728950e" })),
        ];
        let report = import(desk, &owner, &rows, false);
        assert!(why(&report, &format!("approvals/{APPROVAL}")).1.contains("everybody decides who may"), "{report:#}");
        assert!(why(&report, &format!("approvals/{late}")).1.contains("expired"), "{report:#}");
        assert_eq!(why(&report, &format!("approvals/{orphan}")).0, "refused");
        let waits = desk.call(&owner, "desk_request_get", json!({ "request": APPROVAL })).unwrap();
        assert_eq!((&waits["state"], &waits["kind"], &waits["requester"]), (&json!("pending"), &json!("approval"), &json!("mailer")), "{waits:#}");
        assert!(!waits.to_string().contains("4111"), "{waits:#}");
        for none in [ended, late, orphan] {
            assert_code(&desk.refused(&owner, "desk_request_get", json!({ "request": none })), Code::NotFound);
        }
        desk.world.pass(Duration::from_mins(1));
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn audit_lines_become_history_without_secrets(desk: &TestDesk) {
        let owner = desk.claim();
        let report = import(desk, &owner, &[line(1, json!({})), line(2, json!({ "timestamp": "yesterday" })), line(3, json!({ "id": null }))], false);
        assert_eq!(report["counts"]["audit"], json!({ "changed": 1, "refused": 2 }), "{report:#}");
        assert_eq!(why(&report, "audit/2026-02-01.jsonl:2").0, "refused");
        let events = desk.call(&owner, "desk_record_list", json!({ "kind": "import.row" })).unwrap();
        let event = &events["events"][0];
        assert_eq!((&event["facts"]["imported"], &event["facts"]["source"], &event["facts"]["outcome"]), (&json!(true), &json!("agentos"), &json!("SUCCESS")));
        let all = events.to_string();
        assert!(all.contains("[redacted:") && !all.contains("hunter2secret") && !all.contains("ghp_0123"), "{all}");
    }

    fn odd_rows_are_refused_alone_and_ids_that_are_no_uuids_are_replaced(desk: &TestDesk) {
        let owner = desk.claim();
        let rows = [
            agent("../../etc/passwd", json!({ "name": "odd" })),
            agent("44444444-d9cb-469f-a165-70867728950e", json!({ "task": "", "description": null })),
            agent("55555555-d9cb-469f-a165-70867728950e", json!({ "policies": "all" })),
            agent("66666666-d9cb-469f-a165-70867728950e", json!({ "name": "second", "schedule": "whenever", "policies": [], "approvalRequired": "maybe" })),
            agent("77777777-d9cb-469f-a165-70867728950e", json!({ "name": "second", "policies": [], "task": "x".repeat(20_000) })),
            json!({ "folder": "agents", "file": "agents/none.json", "row": {} }),
        ];
        let report = import(desk, &owner, &rows, false);
        assert_eq!(report["counts"]["agents"], json!({ "changed": 3, "refused": 3 }), "{report:#}");
        let odd = desk.call(&owner, "agents_get_agent_status", json!({ "agentId": "odd" })).unwrap();
        assert_ne!(odd["agentId"], "../../etc/passwd");
        let second = desk.call(&owner, "agents_get_agent_status", json!({ "agentId": "66666666-d9cb-469f-a165-70867728950e" })).unwrap();
        assert_eq!((&second["name"], &second["definition"]["approval_required"]), (&json!("second"), &json!(true)), "{second:#}");
        assert!(second["definition"].get("schedule").is_none(), "{second:#}");
        let third = desk.call(&owner, "agents_get_agent_status", json!({ "agentId": "77777777-d9cb-469f-a165-70867728950e" })).unwrap();
        assert_eq!(third["name"], "second-2", "{third:#}");
        assert_code(&desk.refused(&owner, "desk_import_agentos", json!({ "rows": vec![line(1, json!({})); 501] })), Code::Invalid);
    }

    fn only_an_owner_who_is_there_brings_anything_in(desk: &TestDesk) {
        desk.claim();
        let input = json!({ "rows": [agent(AGENT, json!({}))] });
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_import_agentos", input), Code::Forbidden);
    }
}
