//! Data protection on both engines: what lies in the store while a request waits and after it has ended, what the record keeps
//! of traces, who reads what, and what a server without its key does.

use std::collections::BTreeSet;
use std::time::Duration;

use deskmate_core::Code;
use deskmate_core::gateway;
use deskmate_core::policy::{self, Document};
use deskmate_core::secret::{Key, Safe};
use deskmate_core::workspace::plan::{self, PLAN_JOB, PlanState, Step, StepState};
use deskmate_db::{Engine, Row};
use serde_json::{Value, json};
use testkit::{Backend, Caller, TestDesk, assert_code, both};

use crate::workspace;

const AGENT: Caller = Caller::Agent("sales");
const MAIL: &str = "jane.doe@example.org";
const PASSWORD: &str = "hunter2-and-more";
const SSN: &str = "536-90-4399";
/// A description with a password, a key, an address and a number of a person in it.
const SAID: &str = "Read notes.csv every day as jane.doe@example.org with password: hunter2-and-more and API_KEY=sk-ant-api03-Zt4mQ9xV2bN7cL5pR8wK1yH6sD3fG0jA, customer SSN 536-90-4399";

fn in_force(desk: &TestDesk, yaml: &'static str) {
    let stored = desk.act(move |cx| {
        let document = Document::parse(yaml).unwrap_or_else(|problems| panic!("{problems:?}"));
        let parts = document.over(policy::current(cx)?.parts());
        policy::store(cx, &parts, "owner")
    });
    stored.unwrap();
}

fn change() -> Value {
    json!({ "to": MAIL, "password": PASSWORD, "amount": 500 })
}

fn proposed(desk: &TestDesk) -> String {
    let input = json!({
        "domain": "crm", "action": "update_field", "target": "deal/1", "proposed_change": change().to_string(), "confidence": 0.9,
        "reasoning": format!("{MAIL} asked for it"), "target_state": json!({ "to": MAIL, "amount": 100 }).to_string(),
    });
    desk.call(&AGENT, "cowork_propose", input).unwrap()["proposal_id"].as_str().unwrap().to_owned()
}

fn get(desk: &TestDesk, person: &Caller, id: &str) -> Value {
    desk.call(person, "desk_request_get", json!({ "request": id })).unwrap()
}

fn approve(desk: &TestDesk, person: &Caller, id: &str) {
    desk.call(person, "desk_request_approve", json!({ "request": id })).unwrap();
}

fn done(desk: &TestDesk, id: &str) -> Value {
    let input = json!({ "domain": "crm", "action": "did it", "actor": "agent", "proposal_id": id, "executed_change": change().to_string() });
    desk.call(&AGENT, "cowork_log", input).unwrap()
}

/// Adds a person with a role, and answers their session.
fn person(desk: &TestDesk, owner: &Caller, name: &str, role: &str) -> Caller {
    let invited = desk.call(owner, "desk_person_invite", json!({ "name": name, "role": role, "domains": ["*"] })).unwrap();
    let input = json!({ "code": invited["code"], "passphrase": "battery staple" });
    Caller::Secret(desk.call(&Caller::Nobody, "desk_accept_invitation", input).unwrap()["session"].as_str().unwrap().to_owned())
}

/// The tables in which a text lies open, in whatever column. People's own tables are not looked at.
fn lies_in(desk: &TestDesk, what: &str) -> Vec<String> {
    const PLACES: [(&str, &str); 8] = [
        ("request", "select coalesce(title, '') || coalesce(act, '') || coalesce(packet, '') || coalesce(decision, '') from request order by id"),
        ("event", "select body from event order by seq"),
        ("event_payload", "select coalesce(payload, '') from event_payload order by seq"),
        ("gateway_call", "select coalesce(arguments, '') || coalesce(intent, '') || coalesce(note, '') || coalesce(result, '') from gateway_call order by id"),
        ("execution", "select coalesce(action, '') || coalesce(reasoning, '') || coalesce(body, '') from execution order by id"),
        ("idempotency", "select answer from idempotency order by key"),
        ("job", "select input || coalesce(result, '') || coalesce(error, '') from job order by id"),
        ("standing_approval", "select pattern from standing_approval order by id"),
    ];
    let mut found = Vec::new();
    for (name, sql) in PLACES {
        let rows: Vec<Row> = desk.desk.db.read_blocking(move |tx| Ok::<_, deskmate_core::Error>(tx.query(sql, &[])?)).unwrap();
        found.extend(rows.iter().filter(|row| row.get::<String>(0).unwrap().contains(what)).map(|_| name.to_owned()));
    }
    found
}

fn nowhere(desk: &TestDesk, when: &str) {
    for what in [MAIL, PASSWORD] {
        assert!(lies_in(desk, what).is_empty(), "{when}: {what} lies in {:?}", lies_in(desk, what));
    }
    assert!(desk.verify().findings.is_empty(), "{when}: {:?}", desk.verify().findings);
}

fn told(desk: &TestDesk, owner: &Caller, kind: &str) -> Vec<Value> {
    desk.seal();
    desk.call(owner, "desk_record_list", json!({ "kind": kind })).unwrap()["events"].as_array().unwrap().clone()
}

both! {
    fn a_request_lies_encrypted_until_it_ends_and_then_without_what_is_personal(desk: &TestDesk) {
        let owner = desk.claim();
        let id = proposed(desk);
        nowhere(desk, "pending");
        let seen = get(desk, &owner, &id);
        assert_eq!(seen["act"]["arguments"], change(), "whoever decides sees exactly what");
        assert!(seen["reasoning"].as_str().unwrap().contains(MAIL));
        let digest = seen["digest"].clone();
        approve(desk, &owner, &id);
        nowhere(desk, "approved");
        let begun = desk.call(&AGENT, "cowork_begin", json!({ "proposal_id": id })).unwrap();
        assert_eq!(begun["change"], change(), "whoever does it gets exactly what");
        nowhere(desk, "begun");
        assert_eq!(done(desk, &id)["matches"], "exact");
        nowhere(desk, "done");
        let seen = get(desk, &owner, &id);
        assert_eq!(seen["act"]["arguments"], json!({ "to": "[redacted:email]", "password": "[redacted:secret_field]", "amount": 500 }));
        assert_eq!((&seen["digest"], &seen["reasoning"]), (&digest, &json!("[redacted:email] asked for it")));
        // Reported once more, what is left of both still fits; anything else does not.
        assert_eq!(done(desk, &id)["matches"], "exact");
        let other = json!({ "domain": "crm", "action": "did it", "actor": "agent", "proposal_id": id, "executed_change": "{\"amount\": 900}" });
        assert_eq!(desk.call(&AGENT, "cowork_log", other).unwrap()["matches"], "differs");
        nowhere(desk, "reported again");
    }

    fn however_a_request_ends_its_key_is_thrown_away(desk: &TestDesk) {
        let owner = desk.claim();
        let (rejected, cancelled, expired) = (proposed(desk), proposed(desk), proposed(desk));
        desk.call(&owner, "desk_request_reject", json!({ "request": rejected, "reason": "no" })).unwrap();
        desk.call(&AGENT, "cowork_cancel_request", json!({ "request_id": cancelled, "idempotency_key": "k" })).unwrap();
        desk.world.pass(Duration::from_secs(8 * 86_400));
        desk.act(|cx| deskmate_core::request::expire_due(cx, 100)).unwrap();
        for id in [rejected, cancelled, expired] {
            assert_eq!(get(desk, &owner, &id)["act"]["arguments"]["to"], "[redacted:email]", "{id}");
        }
        let left = desk.desk.db.read_blocking(|tx| Ok::<_, deskmate_core::Error>(tx.query("select id from request where sealed is not null or sealed_key is not null", &[])?.len()));
        assert_eq!(left.unwrap(), 0);
        nowhere(desk, "ended");
    }

    fn who_does_not_decide_sees_what_is_left(desk: &TestDesk) {
        let owner = desk.claim();
        let viewer = person(desk, &owner, "Vera", "viewer");
        let id = proposed(desk);
        let seen = get(desk, &viewer, &id).to_string();
        assert!(!seen.contains(MAIL) && !seen.contains(PASSWORD) && seen.contains("[redacted:email]"), "{seen}");
        for input in [json!({}), json!({ "agent_id": "sales" })] {
            let listed = desk.call(&viewer, "cowork_list_requests", input).unwrap().to_string();
            assert!(!listed.contains(MAIL) && !listed.contains(PASSWORD) && listed.contains(&id), "{listed}");
        }
        let own = desk.call(&AGENT, "cowork_get_request", json!({ "request_id": id })).unwrap().to_string();
        assert!(own.contains(MAIL), "the requester wrote it: {own}");
    }

    fn what_somebody_exchanges_in_the_store_is_found(desk: &TestDesk) {
        let owner = desk.claim();
        let first = proposed(desk);
        proposed(desk);
        // The whole of another request: neither the record nor the encryption takes it.
        desk.tamper(
            "update request set sealed = (select other.sealed from request other where other.id > request.id), sealed_key = (select other.sealed_key from \
             request other where other.id > request.id) where id = (select min(id) from request)",
        );
        assert!(!desk.verify().findings.is_empty());
        assert_code(&desk.refused(&owner, "desk_request_approve", json!({ "request": first })), Code::Conflict);
        assert!(get(desk, &owner, &first)["act"].is_null());
    }

    fn traces_are_counted_by_kind_for_each_agent_and_day(desk: &TestDesk) {
        let owner = desk.claim();
        let id = proposed(desk);
        approve(desk, &owner, &id);
        desk.call(&AGENT, "cowork_begin", json!({ "proposal_id": id })).unwrap();
        done(desk, &id);
        let created = &told(desk, &owner, "request.created")[0];
        assert_eq!(created["facts"]["redacted"]["secret_field"], 1, "{created}");
        assert!(created["payload"]["act"]["arguments"]["to"] == "[redacted:email]", "{created}");
        assert!(told(desk, &owner, "action.logged")[0]["facts"]["redacted"]["email"].as_u64().is_some());
        let report = desk.call(&owner, "desk_protection_report", json!({})).unwrap();
        let days = report["days"].as_array().unwrap();
        assert_eq!(days.len(), 1, "{report}");
        assert_eq!((&days[0]["agent"], &days[0]["counts"]), (&json!("sales"), &report["totals"]));
        assert!(report["totals"]["email"].as_u64().unwrap() >= 3 && report["totals"]["secret_field"].as_u64().unwrap() >= 2, "{report}");
        assert!(!report.to_string().contains(MAIL));
        let none = desk.call(&owner, "desk_protection_report", json!({ "agent": "other" })).unwrap();
        assert_eq!(none["totals"], json!({}));
        assert_code(&desk.refused(&AGENT, "desk_protection_report", json!({})), Code::Forbidden);
    }

    fn what_people_and_agents_write_each_other_stays_as_it_is_in_its_own_table(desk: &TestDesk) {
        let owner = desk.claim();
        let support = Caller::Agent("support");
        desk.call(&AGENT, "bridge_send_message", json!({ "to": "support", "content": SAID })).unwrap();
        let task = desk.call(&AGENT, "bridge_create_task", json!({ "to": "support", "title": format!("Call {MAIL}"), "description": SAID })).unwrap();
        desk.call(&AGENT, "bridge_add_task_note", json!({ "task_id": task["task_id"], "note": SAID })).unwrap();
        desk.call(&AGENT, "bridge_reserve_paths", json!({ "paths": [format!("mail/{MAIL}")], "reason": SAID })).unwrap();
        assert_eq!(desk.call(&support, "bridge_read_messages", json!({})).unwrap()["messages"][0]["content"], SAID);
        let seen = desk.call(&support, "bridge_get_task", json!({ "task_id": task["task_id"] })).unwrap();
        let task = &seen["task"];
        assert_eq!((&task["title"], &task["description"], &seen["notes"][0]["note"]), (&json!(format!("Call {MAIL}")), &json!(SAID), &json!(SAID)), "{seen}");
        let held = desk.call(&support, "bridge_list_reservations", json!({})).unwrap();
        assert_eq!((&held["reservations"][0]["paths"][0], &held["reservations"][0]["reason"]), (&json!(format!("mail/{MAIL}")), &json!(SAID)), "{held}");
        let told = &told(desk, &owner, "message.sent")[0];
        assert_eq!(told["facts"]["redacted"], json!({ "anthropic_key": 1, "email": 1, "secret_assignment": 1, "ssn": 1 }), "{told}");
    }

    fn whatever_anybody_writes_the_record_repeats_without_what_is_secret_or_personal(desk: &TestDesk) {
        let (owner, code) = workspace::people(desk);
        let ann = person(desk, &owner, "Ann", "approver");
        let done = |caller: &Caller, operation: &str, input: Value| desk.call(caller, operation, input).unwrap_or_else(|error| panic!("{operation}: {error:?}"));
        done(&code, "bridge_send_message", json!({ "to": "code", "content": SAID }));
        let task = done(&code, "bridge_create_task", json!({ "to": "code", "title": SAID, "description": SAID }))["task_id"].clone();
        done(&owner, "bridge_update_task", json!({ "task_id": task, "title": format!("again: {SAID}"), "description": "once more" }));
        done(&code, "bridge_add_task_note", json!({ "task_id": task, "note": SAID }));
        done(&code, "bridge_claim_task", json!({ "task_id": task }));
        done(&code, "bridge_update_task", json!({ "task_id": task, "status": "completed", "result": SAID }));
        let held = done(&code, "bridge_reserve_paths", json!({ "paths": [format!("mail/{MAIL}")], "reason": SAID }));
        done(&code, "bridge_release_paths", json!({ "reservation_id": held["reservation_id"] }));
        done(&owner, "desk_agent_change", json!({ "agent": "code", "note": SAID }));
        done(&owner, "desk_pause", json!({ "agent": "code", "reason": SAID }));
        done(&owner, "desk_resume", json!({ "agent": "code", "reason": SAID }));
        let asked = || {
            let input = json!({ "domain": "crm", "action": "a", "target": "b", "proposed_change": { "x": 1 }, "confidence": 0.9, "reasoning": SAID });
            done(&code, "cowork_propose", input)["proposal_id"].clone()
        };
        let (first, second, third) = (asked(), asked(), asked());
        done(&owner, "desk_request_ask", json!({ "request": first, "question": SAID }));
        done(&code, "cowork_answer_question", json!({ "request_id": first, "answer": SAID }));
        done(&owner, "desk_request_delegate", json!({ "request": first, "to": "Ann", "note": SAID }));
        done(&ann, "desk_request_approve", json!({ "request": first, "reason": SAID }));
        done(&ann, "desk_request_undo", json!({ "request": first, "reason": SAID }));
        done(&owner, "desk_request_reject", json!({ "request": second, "reason": SAID }));
        done(&code, "cowork_cancel_request", json!({ "request_id": third, "reason": SAID }));
        let handed = done(&code, "cowork_handoff", json!({ "domain": "crm", "reason": SAID, "confidence": 0.1, "attempted_actions": "[]", "context": SAID }));
        done(&owner, "cowork_resolve_handoff", json!({ "handoff_id": handed["handoff_id"], "resolution": SAID, "instructions": SAID }));
        done(&owner, "cowork_override", json!({ "agent_id": "code", "domain": "crm", "action_description": SAID, "override_type": "edge_case", "description": SAID }));
        // Plans, their steps, and why one could not be made.
        let ask = || done(&code, "workspace_organize_plan", json!({ "root": "notes", "reasoning": SAID }));
        let plan = ask();
        let from = format!("password: {PASSWORD} of {MAIL}");
        let step = Step { from: Some(from.clone()), to: Some(format!("x/{from}")), ..workspace::step(1) };
        workspace::make(desk, &plan, vec![step]);
        workspace::approve(desk, &owner, &workspace::get(desk, &code, &plan));
        workspace::execute(desk, &code, &plan);
        assert_eq!(workspace::run(desk, &plan, |_| StepState::Done), PlanState::Done);
        let job = ask()["plan_job_id"].as_str().unwrap().to_owned();
        desk.act(move |cx| {
            let hold = workspace::take(cx, "worker", PLAN_JOB, &job)?;
            let making = plan::making(cx, &hold)?.unwrap();
            plan::not_made(cx, &hold, &making.plan, SAID)
        })
        .unwrap();
        desk.seal();
        for what in [MAIL, PASSWORD, "sk-ant-api03", SSN] {
            let lies = lies_in(desk, what);
            assert!(!lies.iter().any(|table| table.starts_with("event")), "{what} lies in {lies:?}");
        }
        let told = desk.call(&owner, "desk_record_list", json!({ "limit": 200 })).unwrap();
        let cleaned: BTreeSet<&str> = told["events"].as_array().unwrap().iter().filter(|event| event["facts"]["redacted"].is_object()).map(|event| event["kind"].as_str().unwrap()).collect();
        for kind in [
            "message.sent", "task.created", "task.edited", "task.noted", "task.updated", "paths.reserved", "paths.released", "agent.described", "pause.set",
            "request.created", "request.asked", "request.answered", "request.delegated", "request.approved", "request.undone", "request.rejected",
            "request.cancelled", "handoff.resolved", "agent.overridden", "plan.asked", "plan.steps.intended", "plan.failed",
        ] {
            assert!(cleaned.contains(kind), "nothing was taken out of {kind}: {cleaned:?}");
        }
        // What is done is what was written, and the way back of it as well.
        assert!(workspace::get(desk, &code, &plan).to_string().contains(&from));
        assert!(desk.verify().findings.is_empty(), "{:?}", desk.verify().findings);
    }

    fn erasing_finds_the_words_of_which_the_record_has_what_is_left(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        let erase = |kind: &str, newest: usize| {
            let seq = told(desk, &owner, kind)[newest]["seq"].clone();
            desk.call(&owner, "desk_record_erase", json!({ "seq": seq, "reason": "asked to" })).unwrap();
        };
        let task = desk.call(&code, "bridge_create_task", json!({ "to": "code", "title": format!("Call {MAIL}"), "description": SAID })).unwrap()["task_id"].clone();
        let seen = || desk.call(&code, "bridge_get_task", json!({ "task_id": task })).unwrap();
        desk.call(&owner, "bridge_update_task", json!({ "task_id": task, "title": format!("Write to {MAIL}") })).unwrap();
        erase("task.created", 0);
        assert_eq!((&seen()["task"]["title"], &seen()["task"]["description"]), (&json!(format!("Write to {MAIL}")), &Value::Null), "what was written later stays");
        erase("task.edited", 0);
        assert!(!seen().to_string().contains(MAIL), "{}", seen());
        desk.call(&code, "bridge_claim_task", json!({ "task_id": task })).unwrap();
        desk.call(&code, "bridge_update_task", json!({ "task_id": task, "status": "completed", "result": SAID })).unwrap();
        // Also where the settings have changed since then.
        in_force(desk, "protection: { record: [] }");
        erase("task.updated", 0);
        assert!(!seen().to_string().contains(PASSWORD), "{}", seen());
        desk.call(&owner, "desk_agent_change", json!({ "agent": "code", "note": SAID })).unwrap();
        erase("agent.described", 0);
        assert!(!desk.call(&owner, "desk_agent_list", json!({})).unwrap().to_string().contains(PASSWORD));
        let input = json!({ "domain": "crm", "action": "a", "target": "b", "proposed_change": { "x": 1 }, "confidence": 0.9, "reasoning": "they asked" });
        let id = desk.call(&code, "cowork_propose", input).unwrap()["proposal_id"].as_str().unwrap().to_owned();
        desk.call(&owner, "desk_request_reject", json!({ "request": id, "reason": SAID })).unwrap();
        erase("request.rejected", 0);
        assert!(!get(desk, &owner, &id).to_string().contains("customer SSN"), "{}", get(desk, &owner, &id));
        assert!(desk.verify().findings.is_empty());
    }

    fn the_record_repeats_a_message_without_its_secrets_and_who_gets_it_reads_them(desk: &TestDesk) {
        let owner = desk.claim();
        let said = format!("log in with password: {PASSWORD} and call {MAIL}");
        let sent = desk.call(&AGENT, "bridge_send_message", json!({ "to": "support", "content": said })).unwrap();
        let event = &told(desk, &owner, "message.sent")[0];
        assert_eq!(event["payload"]["content"], "log in with password: [redacted:secret_assignment] and call [redacted:email]", "{event}");
        assert_eq!(event["facts"]["redacted"], json!({ "email": 1, "secret_assignment": 1 }));
        assert!(!lies_in(desk, PASSWORD).iter().any(|table| table.starts_with("event")), "{:?}", lies_in(desk, PASSWORD));
        let read = desk.call(&Caller::Agent("support"), "bridge_read_messages", json!({})).unwrap();
        assert_eq!(read["messages"][0]["content"], said, "it is the work itself");
        // Erasing the event takes the words away where they are.
        desk.call(&owner, "desk_record_erase", json!({ "seq": event["seq"], "reason": "asked to" })).unwrap();
        let read = desk.call(&Caller::Agent("support"), "bridge_get_thread", json!({ "thread": sent["thread"] }));
        assert!(!format!("{read:?}").contains(PASSWORD), "{read:?}");
        assert!(desk.verify().findings.is_empty());
    }

    fn what_agents_are_made_into_is_told_without_what_is_secret_or_personal(desk: &TestDesk) {
        let owner = desk.claim();
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": SAID, "name": "reader" })).unwrap();
        assert_eq!(made["definition"]["task"], SAID, "what acts is as it was written");
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "support", "content": SAID } }]);
        desk.call(&owner, "agents_update_agent", json!({ "agentId": "reader", "steps": steps })).unwrap();
        let rules = json!([{ "name": "mine", "condition": "true", "action": "log", "message": SAID }]);
        desk.call(&owner, "agents_attach_policy", json!({ "agentId": "reader", "policyId": "cost-control", "customRules": rules })).unwrap();
        desk.call(&owner, "agents_test_agent", json!({ "agentId": "reader", "scenario": SAID })).unwrap();
        desk.call(&owner, "agents_detach_policy", json!({ "agentId": "reader", "policyId": "cost-control" })).unwrap();
        for kind in ["agent.made", "agent.changed", "agent.policy_attached", "agent.tested", "agent.policy_detached"] {
            let event = &told(desk, &owner, kind)[0];
            assert!(event["facts"]["redacted"]["email"].as_u64().is_some_and(|count| count > 0), "{kind}: {event}");
        }
        for what in [MAIL, PASSWORD, "sk-ant-api03", SSN] {
            assert!(lies_in(desk, what).is_empty(), "{what} lies in {:?}", lies_in(desk, what));
        }
        let seen = desk.call(&owner, "agents_get_agent_status", json!({ "agentId": "reader" })).unwrap();
        assert_eq!(seen["definition"]["runner"]["steps"][0]["with"]["content"], SAID);
        assert!(desk.verify().findings.is_empty());
    }

    fn the_switch_says_which_kinds_are_taken_out(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "protection: { record: [], requests: [card] }");
        let id = proposed(desk);
        let created = told(desk, &owner, "request.created")[0]["payload"].to_string();
        assert!(created.contains(MAIL) && !created.contains(PASSWORD), "secrets always are: {created}");
        desk.call(&owner, "desk_request_reject", json!({ "request": id, "reason": "no" })).unwrap();
        let seen = get(desk, &owner, &id).to_string();
        assert!(seen.contains(MAIL) && !seen.contains(PASSWORD), "{seen}");
        for wrong in ["protection: { record: [emial] }", "protection: { keep: maybe }", "protection: { also: [] }", "domains: { crm: { protection: { record: [] } } }"] {
            assert!(Document::parse(wrong).is_err(), "{wrong}");
        }
    }

    fn taking_less_out_waits_for_an_owner(desk: &TestDesk) {
        let owner = desk.claim();
        let submit = |yaml: &'static str| desk.act(move |cx| policy::draft::submit(cx, &Document::parse(yaml).unwrap())).unwrap();
        let keeps = |desk: &TestDesk| desk.act(|cx| Ok(policy::current(cx)?.settings("").protection.keep)).unwrap();
        let done = submit("protection: { keep: encrypted }");
        assert_eq!((done.applied.len(), done.waiting.len(), keeps(desk)), (0, 1, policy::Keep::None));
        approve(desk, &owner, &done.request.unwrap());
        assert_eq!(keeps(desk), policy::Keep::Encrypted);
        assert_eq!(submit("protection: { keep: encrypted, record: [email] }").waiting.len(), 1, "fewer kinds");
        let done = submit("protection: { keep: none }");
        assert_eq!((done.applied.len(), done.waiting.len(), keeps(desk)), (1, 0, policy::Keep::None), "what protects more applies at once");
        assert!(desk.verify().findings.is_empty());
    }

    fn what_is_kept_is_read_back_by_owners_alone_and_told(desk: &TestDesk) {
        let owner = desk.claim();
        let approver = person(desk, &owner, "Ann", "approver");
        let ended = |desk: &TestDesk| {
            let id = proposed(desk);
            desk.call(&owner, "desk_request_reject", json!({ "request": id, "reason": "no" })).unwrap();
            id
        };
        let ask = |id: &str| json!({ "request": id, "reason": "a customer complains" });
        // Off unless somebody switches it on, and not for what ended before.
        let before = ended(desk);
        assert_code(&desk.refused(&owner, "desk_protection_read", ask(&before)), Code::Forbidden);
        in_force(desk, "protection: { keep: encrypted }");
        assert_code(&desk.refused(&owner, "desk_protection_read", ask(&before)), Code::NotFound);
        let id = ended(desk);
        nowhere(desk, "kept");
        assert_eq!(get(desk, &owner, &id)["act"]["arguments"]["to"], "[redacted:email]");
        for other in [&approver, &AGENT] {
            assert_code(&desk.refused(other, "desk_protection_read", ask(&id)), Code::Forbidden);
        }
        assert_code(&desk.refused(&owner, "desk_protection_read", json!({ "request": id, "reason": " " })), Code::Invalid);
        let mut keyed = ask(&id);
        keyed["idempotency_key"] = json!("once");
        let read = desk.call(&owner, "desk_protection_read", keyed).unwrap();
        assert_eq!(read["act"]["arguments"], change());
        let events = told(desk, &owner, "protection.read");
        assert_eq!((events.len(), &events[0]["payload"]["reason"]), (1, &json!("a customer complains")));
        nowhere(desk, "read, and no kept answer has it");
        // Erasing takes it away for good.
        let seq = told(desk, &owner, "request.created")[0]["seq"].clone();
        desk.call(&owner, "desk_record_erase", json!({ "seq": seq, "reason": "asked to" })).unwrap();
        assert_code(&desk.refused(&owner, "desk_protection_read", ask(&id)), Code::NotFound);
        assert!(desk.verify().findings.is_empty());
    }

    fn a_held_call_lies_nowhere_and_is_done_exactly(desk: &TestDesk) {
        let owner = desk.claim();
        let document = "gateway: { mounts: [{ name: mail, command: mail-server, verbs: { send: email.send } }] }";
        desk.call(&owner, "desk_policy_apply", json!({ "document": document })).unwrap();
        desk.lend(Offers);
        desk.call(&owner, "desk_mount_test", json!({ "name": "mail" })).unwrap();
        let agent = desk.register(&owner, "code");
        let held = desk.call(&agent, "gateway_call", json!({ "mount": "mail", "tool": "send", "arguments": change() })).unwrap();
        assert_eq!(held["state"], "held", "{held}");
        nowhere(desk, "held");
        let request = held["request_id"].as_str().unwrap().to_owned();
        assert_eq!(get(desk, &owner, &request)["act"]["arguments"], change());
        approve(desk, &owner, &request);
        let call = held["call_id"].as_str().unwrap().to_owned();
        let handed = desk.act(move |cx| gateway::begin(cx, &call)).unwrap().unwrap();
        assert_eq!(handed.arguments, change());
        nowhere(desk, "begun");
        let facts = &told(desk, &owner, "call.held")[0]["facts"];
        assert_eq!(facts["redacted"], json!({ "email": 1, "secret_field": 1 }), "{facts}");
    }
}

/// A server with one tool.
struct Offers;

impl deskmate_core::call::Hands for Offers {
    fn run(&self, _: deskmate_core::call::Errand) -> deskmate_core::call::Fetched<'_> {
        let tools = json!([{ "name": "send", "description": "sends", "inputSchema": { "type": "object" } }]);
        Box::pin(async move { Ok(json!({ "server": { "name": "x" }, "protocol": "2026-07-28", "tools": tools, "micros": 1 })) })
    }
}

#[test]
fn a_server_without_its_key_says_so_and_refuses() {
    let mut desk = TestDesk::new(Backend::Sqlite);
    assert_eq!(desk.desk.db.engine(), Engine::Sqlite);
    let owner = desk.claim();
    let (first, second) = (proposed(&desk), proposed(&desk));
    let key = desk.desk.safe.clone();
    for safe in [Safe::closed("secret.key is missing"), Safe::new(Key::parse(&Key::generate(&[9; 32])).unwrap())] {
        desk.desk.safe = safe;
        let refused = desk.refused(&owner, "desk_request_approve", json!({ "request": first }));
        assert_code(&refused, Code::Unavailable);
        assert!(refused.message.contains("secret.key"), "{refused}");
        let asked = desk.refused(
            &AGENT,
            "cowork_propose",
            json!({ "domain": "crm", "action": "a", "target": "t", "proposed_change": "{}", "confidence": 0.9, "reasoning": "r" }),
        );
        assert_code(&asked, Code::Unavailable);
        assert!(get(&desk, &owner, &first)["act"].is_null() && desk.verify().findings.is_empty(), "the record is whole without the key");
    }
    // Saying no needs no key; what nobody could read is gone then.
    desk.call(&owner, "desk_request_reject", json!({ "request": second, "reason": "no" })).unwrap();
    assert!(desk.verify().findings.is_empty());
    desk.desk.safe = key;
    assert!(get(&desk, &owner, &second)["act"].is_null());
    approve(&desk, &owner, &first);
    // Once nothing is left that the lost key encrypted, another one begins anew.
    desk.call(&AGENT, "cowork_begin", json!({ "proposal_id": first })).unwrap();
    done(&desk, &first);
    desk.desk.safe = Safe::new(Key::parse(&Key::generate(&[9; 32])).unwrap());
    let third = proposed(&desk);
    assert_eq!(get(&desk, &owner, &third)["act"]["arguments"], change());
    assert!(desk.verify().findings.is_empty());
}
