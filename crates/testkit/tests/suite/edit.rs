//! People's edits win: what a person set, an agent only asks to change. One case for each kind of record, on both engines.

use deskmate_core::Code;
use deskmate_core::bridge::file::{self, Columns, FileRow, FileTask, Settled, Table};
use deskmate_core::call::Effect;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

const CODE: Caller = Caller::Agent("code");

fn ok(desk: &TestDesk, caller: &Caller, operation: &str, input: Value) -> Value {
    desk.call(caller, operation, input).unwrap_or_else(|error| panic!("{operation}: {error}"))
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no text {field} in {value}")).to_owned()
}

/// A task from `code` to `cowork`.
fn give(desk: &TestDesk, caller: &Caller) -> String {
    text(&ok(desk, caller, "bridge_create_task", json!({ "to": "cowork", "title": "first", "description": "do it" })), "task_id")
}

fn task(desk: &TestDesk, caller: &Caller, id: &str) -> Value {
    ok(desk, caller, "bridge_get_task", json!({ "task_id": id }))
}

fn sound(desk: &TestDesk) {
    let report = desk.verify();
    assert!(report.sound, "{:?}", report.findings);
}

/// What waits for people, newest last.
fn waiting(desk: &TestDesk, owner: &Caller) -> Vec<Value> {
    ok(desk, owner, "desk_request_list", json!({}))["requests"].as_array().unwrap().clone()
}

fn request(desk: &TestDesk, owner: &Caller, id: &Value) -> Value {
    ok(desk, owner, "desk_request_get", json!({ "request": id }))
}

fn approve(desk: &TestDesk, owner: &Caller, id: &Value) -> Value {
    let digest = request(desk, owner, id)["digest"].clone();
    ok(desk, owner, "desk_request_approve", json!({ "request": id, "expected_digest": digest }))
}

fn held(answer: &Value) -> Value {
    let id = answer["held"]["request_id"].clone();
    assert!(id.is_string() && answer["held"]["outcome"] == "held", "{answer}");
    id
}

both! {
    fn an_approved_change_of_a_task_is_written_as_it_was_shown(desk: &TestDesk) {
        let owner = desk.claim();
        let id = give(desk, &CODE);
        ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "title": "by a person", "deadline": "2026-11-15T09:30:00Z" }));
        let asked = held(&ok(desk, &CODE, "bridge_update_task", json!({ "task_id": id, "title": "by the agent", "deadline": "", "priority": "low" })));
        // The person sees both values of each field.
        let shown = request(desk, &owner, &asked);
        assert_eq!((&shown["kind"], &shown["state"], &shown["requester"]), (&json!("edit"), &json!("pending"), &json!("code")));
        assert_eq!((&shown["editable"], &shown["undoable"]), (&json!(false), &json!(false)), "it takes effect as it is, when it is approved");
        let text = shown.to_string();
        for value in ["by a person", "by the agent", "2026-11-15T09:30:00.000000Z"] {
            assert!(text.contains(value), "{value} in {shown}");
        }
        assert!(!text.contains("\"low\"},"), "what no person set is not asked for");
        assert_code(&desk.refused(&CODE, "desk_request_approve", json!({ "request": asked })), Code::Forbidden);
        assert_eq!(approve(desk, &owner, &asked)["approved"], true);
        let read = task(desk, &CODE, &id)["task"].clone();
        assert_eq!((&read["title"], &read["priority"], read.get("deadline")), (&json!("by the agent"), &json!("low"), None));
        // What a person approved is a person's word, and the next change asks again.
        assert_eq!(read["set_by_people"], json!(["deadline", "title"]));
        held(&ok(desk, &CODE, "bridge_update_task", json!({ "task_id": id, "title": "once more" })));
        sound(desk);
    }

    fn a_change_that_no_longer_fits_is_superseded(desk: &TestDesk) {
        let owner = desk.claim();
        let id = give(desk, &CODE);
        ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "title": "by a person", "priority": "high" }));
        let asked = held(&ok(desk, &CODE, "bridge_update_task", json!({ "task_id": id, "title": "by the agent", "priority": "low" })));
        ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "title": "by a person, again" }));
        let answer = approve(desk, &owner, &asked);
        assert_eq!((&answer["approved"], &answer["state"]), (&json!(false), &json!("superseded")));
        assert!(request(desk, &owner, &asked)["reason"].as_str().unwrap().contains("title was changed"));
        let read = task(desk, &CODE, &id)["task"].clone();
        assert_eq!((&read["title"], &read["priority"]), (&json!("by a person, again"), &json!("high")), "nothing of it was written");
        // A task that ended changes no more.
        let asked = held(&ok(desk, &CODE, "bridge_update_task", json!({ "task_id": id, "title": "late" })));
        ok(desk, &CODE, "bridge_update_task", json!({ "task_id": id, "status": "cancelled" }));
        assert_eq!(approve(desk, &owner, &asked)["state"], "superseded");
        sound(desk);
    }

    fn a_rejected_change_leaves_everything_as_it_is(desk: &TestDesk) {
        let owner = desk.claim();
        let id = give(desk, &CODE);
        ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "title": "by a person" }));
        let asked = held(&ok(desk, &CODE, "bridge_update_task", json!({ "task_id": id, "title": "by the agent" })));
        ok(desk, &owner, "desk_request_reject", json!({ "request": asked, "reason": "no" }));
        assert_eq!(task(desk, &CODE, &id)["task"]["title"], "by a person");
        sound(desk);
    }

    fn asking_again_is_one_request(desk: &TestDesk) {
        let owner = desk.claim();
        let id = give(desk, &CODE);
        ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "title": "by a person" }));
        let ask = |title: &str| held(&ok(desk, &CODE, "bridge_update_task", json!({ "task_id": id, "title": title })));
        let first = ask("one");
        assert_eq!(ask("one"), first);
        assert_eq!(waiting(desk, &owner).len(), 1);
        // Something else stands in the place of what was asked before.
        let second = ask("two");
        assert!(second != first);
        assert_eq!(request(desk, &owner, &first)["state"], "superseded");
        assert_eq!(waiting(desk, &owner).len(), 1);
        // The flood cap does not come near.
        for number in 0..210 {
            ask(&number.to_string());
        }
        assert_eq!(waiting(desk, &owner).len(), 1);
        sound(desk);
    }

    fn a_paused_agent_does_not_even_ask(desk: &TestDesk) {
        let owner = desk.claim();
        let id = give(desk, &CODE);
        ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "title": "by a person" }));
        ok(desk, &owner, "desk_pause", json!({ "agent": "code" }));
        let answer = ok(desk, &CODE, "bridge_update_task", json!({ "task_id": id, "title": "by the agent" }));
        assert_eq!((&answer["held"]["outcome"], answer["held"].get("request_id")), (&json!("denied"), None));
        assert!(waiting(desk, &owner).is_empty());
        sound(desk);
    }

    fn what_a_person_set_of_an_agents_definition_its_maker_only_asks_to_change(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        let steps = |text: &str| json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "ada", "content": text }, "on_error": "stop" }]);
        ok(desk, &code, "agents_create_agent", json!({ "name": "teller", "description": "Tell ada", "steps": steps("hello") }));
        let by_person = json!({ "agentId": "teller", "approvalRequired": true, "budget": { "seconds": 60 }, "schedule": "@daily", "steps": steps("by a person"), "mayStart": false });
        ok(desk, &owner, "agents_update_agent", by_person);
        let change = json!({ "agentId": "teller", "approvalRequired": false, "budget": { "seconds": 3600 }, "timeZone": "Europe/Berlin", "steps": steps("by the agent"), "description": "by the agent", "mayStart": false });
        let answer = ok(desk, &code, "agents_update_agent", change.clone());
        let asked = held(&answer);
        assert_eq!(answer["held"]["fields"], json!(["runner", "schedule", "approvalRequired", "budget"]), "what stays the same is asked of nobody: {answer}");
        // What no person set is written; the rest is as they set it, and reads lead with that.
        let read = |caller: &Caller| ok(desk, caller, "agents_get_agent_status", json!({ "agentId": "teller" }));
        let status = read(&code);
        let definition = &status["definition"];
        assert_eq!((&definition["task"], &definition["approval_required"], &definition["budget"]["seconds"]), (&json!("by the agent"), &json!(true), &json!(60)));
        assert_eq!((&definition["schedule"]["time_zone"], &definition["runner"]["steps"]), (&json!("UTC"), &steps("by a person")), "{definition}");
        let people = json!(["approvalRequired", "budget", "mayStart", "runner", "schedule"]);
        assert_eq!((&status["setByPeople"], &ok(desk, &code, "agents_list_agents", json!({}))["agents"][0]["setByPeople"]), (&people, &people));
        // The person sees both values, and what they approve is written as it was shown.
        let shown = request(desk, &owner, &asked).to_string();
        for value in ["by a person", "Europe/Berlin", "\"new\":3600,\"old\":60"] {
            assert!(shown.contains(value), "{value} in {shown}");
        }
        assert_eq!(held(&ok(desk, &code, "agents_update_agent", change)), asked, "asking again is one request");
        approve(desk, &owner, &asked);
        let definition = read(&owner)["definition"].clone();
        assert_eq!((definition.get("approval_required"), &definition["budget"]["seconds"]), (None, &json!(3600)), "{definition}");
        assert_eq!((&definition["schedule"]["time_zone"], &definition["runner"]["steps"]), (&json!("Europe/Berlin"), &steps("by the agent")));
        // A change that no longer fits is superseded.
        let stale = held(&ok(desk, &code, "agents_update_agent", json!({ "agentId": "teller", "budget": { "seconds": 7200 } })));
        ok(desk, &owner, "agents_update_agent", json!({ "agentId": "teller", "budget": { "seconds": 30 } }));
        assert_eq!(approve(desk, &owner, &stale)["state"], "superseded");
        assert_eq!(read(&owner)["definition"]["budget"]["seconds"], 30);
        // A person may let go of a field.
        ok(desk, &owner, "desk_edit_release", json!({ "subject": "agent:teller", "fields": ["budget"] }));
        let free = ok(desk, &code, "agents_update_agent", json!({ "agentId": "teller", "budget": { "seconds": 7200 } }));
        assert_eq!((free.get("held"), &free["definition"]["budget"]["seconds"]), (None, &json!(7200)), "{free}");
        sound(desk);
    }

    fn approved_changes_of_groups_and_agents_are_written(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        desk.register(&owner, "eve");
        ok(desk, &code, "bridge_set_group", json!({ "name": "team", "members": ["code"] }));
        ok(desk, &owner, "bridge_set_group", json!({ "name": "team", "members": ["code", "eve"] }));
        let group = held(&ok(desk, &code, "bridge_set_group", json!({ "name": "team", "members": ["eve"] })));
        approve(desk, &owner, &group);
        assert_eq!(ok(desk, &code, "bridge_list_groups", json!({}))["groups"][0]["members"], json!(["eve"]));
        let stale = held(&ok(desk, &code, "bridge_set_group", json!({ "name": "team", "members": [] })));
        ok(desk, &owner, "bridge_set_group", json!({ "name": "team", "members": ["code"] }));
        assert_eq!(approve(desk, &owner, &stale)["state"], "superseded");
        ok(desk, &owner, "desk_agent_change", json!({ "agent": "code", "note": "reviews" }));
        let note = held(&ok(desk, &code, "desk_agent_change", json!({ "agent": "code", "note": "deploys" })));
        approve(desk, &owner, &note);
        assert_eq!(ok(desk, &owner, "desk_agent_list", json!({}))["agents"][0]["note"], "deploys");
        let stale = held(&ok(desk, &code, "desk_agent_change", json!({ "agent": "code", "note": "idles" })));
        ok(desk, &owner, "desk_agent_revoke", json!({ "agent": "code" }));
        assert_eq!(approve(desk, &owner, &stale)["state"], "superseded");
        sound(desk);
    }

    fn the_bridge_file_does_not_overwrite_a_person(desk: &TestDesk) {
        let owner = desk.claim();
        let id = give(desk, &CODE);
        let row = |title: &str, description: &str| {
            let columns = FileTask {
                sender: "code".into(),
                recipient: "cowork".into(),
                title: title.into(),
                description: description.into(),
                status: "pending".into(),
                result: None,
                created_at: "2025-12-31T23:00:00Z".into(),
                updated_at: None,
            };
            FileRow { id: id.clone(), columns: Columns::Task(columns), has_result: true }
        };
        let settle = |row: FileRow| {
            let size = desk.desk.db.read_blocking(deskmate_core::record::size).unwrap();
            let settled = desk.act(move |cx| {
                cx.surface = deskmate_core::call::Surface::File;
                file::settle(cx, &[file::Differing { row: row.clone(), by_hand: true }], size)
            });
            settled.unwrap().remove(0)
        };
        // The file shows the task under this id.
        let known = id.clone();
        desk.act(move |cx| { let shown = file::shown(cx.tx, Table::Tasks, &known)?; file::name(cx, shown).map(drop) }).unwrap();
        // What no person set, who claims to be its sender may change by hand.
        assert!(matches!(settle(row("second", "do it")), Settled::Keep));
        assert_eq!(task(desk, &CODE, &id)["task"]["title"], "second");
        ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "title": "by a person" }));
        let Settled::Put(put) = settle(row("by hand", "do it")) else { panic!("the file keeps what a person must not lose") };
        let Columns::Task(columns) = put.columns else { panic!() };
        assert_eq!(columns.title, "by a person");
        assert_eq!(task(desk, &CODE, &id)["task"]["title"], "by a person");
        let [asked] = waiting(desk, &owner).try_into().unwrap();
        assert_eq!((&asked["kind"], &asked["requester"], &asked["verified"]), (&json!("edit"), &json!("code"), &json!(false)));
        // Neither status nor result is a way round.
        assert!(matches!(settle(row("by hand", "do it")), Settled::Put(_)));
        assert_eq!(waiting(desk, &owner).len(), 1);
        // A task that a person gave is nobody's to change by hand.
        let own = text(&ok(desk, &owner, "bridge_create_task", json!({ "to": "cowork", "title": "a person's" })), "task_id");
        let mut foreign = row("by hand", "");
        foreign.id = own.clone();
        let known = own.clone();
        desk.act(move |cx| { let shown = file::shown(cx.tx, Table::Tasks, &known)?; file::name(cx, shown).map(drop) }).unwrap();
        assert!(matches!(settle(foreign), Settled::Put(_)));
        assert_eq!(task(desk, &owner, &own)["task"]["title"], "a person's");
        sound(desk);
    }

    fn a_task_keeps_what_a_person_set(desk: &TestDesk) {
        let owner = desk.claim();
        let id = give(desk, &CODE);
        let edited = ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "title": "by a person", "priority": "high" }));
        assert_eq!(edited["set_by_people"], json!(["priority", "title"]));
        // The other fields of the same call are written at once.
        let answer = ok(desk, &CODE, "bridge_update_task", json!({ "task_id": id, "title": "by the agent", "description": "in three steps" }));
        assert_eq!((&answer["title"], &answer["description"]), (&json!("by a person"), &json!("in three steps")));
        assert_eq!((&answer["held"]["outcome"], &answer["held"]["fields"]), (&json!("held"), &json!(["title"])));
        assert!(answer["held"]["request_id"].is_string());
        let read = task(desk, &CODE, &id);
        assert_eq!((&read["task"]["title"], &read["task"]["set_by_people"]), (&json!("by a person"), &json!(["priority", "title"])));
        assert_eq!(read["edits"].as_array().unwrap().iter().map(|edit| edit["field"].clone()).collect::<Vec<_>>(), ["priority", "title", "description"]);
        assert_eq!((&read["edits"][2]["set_by_kind"], &read["edits"][2]["set_by"]), (&json!("agent"), &json!("code")));
        let listed = ok(desk, &CODE, "bridge_get_tasks", json!({ "view": "created" }));
        assert_eq!(listed["tasks"][0]["set_by_people"], json!(["priority", "title"]));
        sound(desk);
    }

    fn what_a_person_answered_stays_when_an_agent_writes_its_result(desk: &TestDesk) {
        let owner = desk.claim();
        let id = text(&ok(desk, &owner, "bridge_create_task", json!({ "to": "cowork", "title": "t" })), "task_id");
        let cowork = Caller::Agent("cowork");
        let set = |caller: &Caller, status: &str, result: &str| ok(desk, caller, "bridge_update_task", json!({ "task_id": id, "status": status, "result": result }));
        ok(desk, &cowork, "bridge_claim_task", json!({ "task_id": id }));
        set(&cowork, "input_needed", "which one?");
        set(&owner, "pending", "the red one");
        ok(desk, &cowork, "bridge_claim_task", json!({ "task_id": id }));
        set(&cowork, "completed", "painted it red");
        let read = task(desk, &cowork, &id);
        assert_eq!(read["task"]["result"], "painted it red");
        assert_eq!((&read["notes"][0]["note"], &read["notes"][0]["actor_kind"]), (&json!("the red one"), &json!("person")));
        assert_eq!(read["notes"].as_array().unwrap().len(), 1);
        // Erasing the answer erases the note too.
        let events = ok(desk, &owner, "desk_record_list", json!({ "kind": "task.updated" }));
        let seq = events["events"].as_array().unwrap().iter().find(|event| event["payload"]["result"] == "the red one").unwrap()["seq"].clone();
        ok(desk, &owner, "desk_record_erase", json!({ "seq": seq, "reason": "asked for" }));
        assert!(!task(desk, &cowork, &id).to_string().contains("the red one"));
        assert!(!ok(desk, &owner, "desk_record_list", json!({ "limit": 200 })).to_string().contains("the red one"));
        sound(desk);
    }

    fn an_edited_text_can_be_erased(desk: &TestDesk) {
        let owner = desk.claim();
        let id = give(desk, &CODE);
        ok(desk, &CODE, "bridge_update_task", json!({ "task_id": id, "title": "a secret" }));
        let erase = |kind: &str| {
            let seq = ok(desk, &owner, "desk_record_list", json!({ "kind": kind }))["events"][0]["seq"].clone();
            ok(desk, &owner, "desk_record_erase", json!({ "seq": seq, "reason": "asked for" }));
        };
        // What was written later stands, and is erased with its own event.
        erase("task.created");
        let read = task(desk, &CODE, &id)["task"].clone();
        assert_eq!((&read["title"], read.get("description")), (&json!("a secret"), None));
        erase("task.edited");
        assert!(task(desk, &CODE, &id)["task"].get("title").is_none());
        let code = desk.register(&owner, "code");
        ok(desk, &code, "desk_agent_change", json!({ "agent": "code", "note": "a secret" }));
        erase("agent.described");
        assert_eq!(ok(desk, &owner, "desk_agent_list", json!({}))["agents"][0]["note"], "");
        sound(desk);
    }

    fn an_agent_cannot_write_policies_or_decide_its_own_edit(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        let writing = desk.desk.registry.all().filter(|op| op.effect == Effect::Write).map(|op| op.full_name());
        let names: Vec<String> = writing.filter(|name| name.starts_with("desk_policy_")).collect();
        assert!(names.contains(&"desk_policy_apply".to_owned()), "{names:?}");
        for name in names {
            assert_code(&desk.refused(&code, &name, json!({})), Code::Forbidden);
        }
        // Nor does it decide what it asked for, by any of the doors.
        desk.register(&owner, "cowork");
        let id = give(desk, &code);
        ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "title": "by a person" }));
        let asked = held(&ok(desk, &code, "bridge_update_task", json!({ "task_id": id, "title": "by the agent" })));
        let digest = request(desk, &owner, &asked)["digest"].clone();
        for (operation, input) in [
            ("desk_request_approve", json!({ "request": asked, "expected_digest": digest })),
            ("desk_request_reject", json!({ "request": asked, "reason": "mine" })),
            ("cowork_approve", json!({ "proposal_id": asked })),
            ("cowork_override", json!({ "proposal_id": asked, "action_description": "a", "override_type": "edge_case", "description": "d" })),
            ("desk_edit_release", json!({ "subject": format!("task:{id}"), "fields": ["title"] })),
        ] {
            assert_code(&desk.refused(&code, operation, input), Code::Forbidden);
        }
        assert_eq!((&request(desk, &owner, &asked)["state"], &task(desk, &code, &id)["task"]["title"]), (&json!("pending"), &json!("by a person")));
        assert_code(&desk.refused(&code, "desk_edit_list", json!({ "subject": "agent:code" })), Code::Forbidden);
    }

    fn a_task_that_goes_after_its_time_takes_its_marks_with_it(desk: &TestDesk) {
        let owner = desk.claim();
        let id = text(&ok(desk, &owner, "bridge_create_task", json!({ "to": "cowork", "title": "t" })), "task_id");
        ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "status": "cancelled" }));
        desk.act(|cx| deskmate_core::bridge::prune_tasks(cx, i64::MAX, &(i64::MIN, String::new()), 10)).unwrap();
        assert!(ok(desk, &owner, "desk_edit_list", json!({ "subject": format!("task:{id}") }))["fields"].as_array().unwrap().is_empty());
        sound(desk);
    }

    fn a_task_is_edited_by_its_sender_and_people_only(desk: &TestDesk) {
        let id = give(desk, &CODE);
        let edit = |fields: Value| {
            let mut input = json!({ "task_id": id });
            input.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            input
        };
        assert_code(&desk.refused(&Caller::Agent("cowork"), "bridge_update_task", edit(json!({ "title": "mine" }))), Code::Forbidden);
        assert_code(&desk.refused(&CODE, "bridge_update_task", edit(json!({}))), Code::Invalid);
        assert_code(&desk.refused(&CODE, "bridge_update_task", edit(json!({ "result": "r" }))), Code::Invalid);
        assert_code(&desk.refused(&CODE, "bridge_update_task", edit(json!({ "title": " " }))), Code::Invalid);
        assert_code(&desk.refused(&CODE, "bridge_update_task", edit(json!({ "deadline": "soon" }))), Code::Invalid);
        let answer = ok(desk, &CODE, "bridge_update_task", edit(json!({ "title": "second", "deadline": "2026-11-15T09:30:00Z", "priority": "urgent", "to": "eve" })));
        assert_eq!((&answer["title"], &answer["priority"], &answer["recipient"]), (&json!("second"), &json!("urgent"), &json!("eve")));
        assert_eq!(answer["deadline"], "2026-11-15T09:30:00.000000Z");
        assert!(answer.get("held").is_none() && answer.get("set_by_people").is_none());
        let answer = ok(desk, &CODE, "bridge_update_task", edit(json!({ "deadline": "" })));
        assert!(answer.get("deadline").is_none());
        // Saying the same again is no change.
        let version = answer["version"].clone();
        assert_eq!(ok(desk, &CODE, "bridge_update_task", edit(json!({ "title": "second" })))["version"], version);
        // Whom it was given to before is told, and no longer sees it.
        assert_code(&desk.refused(&Caller::Agent("cowork"), "bridge_get_task", json!({ "task_id": id })), Code::NotFound);
        ok(desk, &Caller::Agent("eve"), "bridge_claim_task", json!({ "task_id": id }));
        assert_code(&desk.refused(&CODE, "bridge_update_task", edit(json!({ "to": "cowork" }))), Code::Conflict);
        ok(desk, &Caller::Agent("eve"), "bridge_update_task", edit(json!({ "status": "completed", "result": "done" })));
        assert_code(&desk.refused(&CODE, "bridge_update_task", edit(json!({ "title": "too late" }))), Code::Conflict);
        sound(desk);
    }

    fn a_group_keeps_what_a_person_set(desk: &TestDesk) {
        let owner = desk.claim();
        ok(desk, &CODE, "bridge_set_group", json!({ "name": "team", "members": ["code", "eve"] }));
        ok(desk, &CODE, "bridge_set_group", json!({ "name": "team", "members": ["code"] }));
        let set = ok(desk, &owner, "bridge_set_group", json!({ "name": "team", "members": ["code", "cowork"] }));
        assert_eq!(set["set_by_people"], json!(["members"]));
        let answer = ok(desk, &CODE, "bridge_set_group", json!({ "name": "team", "members": ["eve"] }));
        assert_eq!((&answer["members"], &answer["held"]["outcome"]), (&json!(["code", "cowork"]), &json!("held")));
        // Giving the members that are there takes nothing over from the person.
        let same = ok(desk, &CODE, "bridge_set_group", json!({ "name": "team", "members": ["cowork", "code"] }));
        assert!(same.get("held").is_none() && same["set_by_people"] == json!(["members"]), "{same}");
        let listed = ok(desk, &CODE, "bridge_list_groups", json!({}));
        assert_eq!((&listed["groups"][0]["members"], &listed["groups"][0]["set_by_people"]), (&json!(["code", "cowork"]), &json!(["members"])));
        sound(desk);
    }

    fn an_agents_note_keeps_what_a_person_set(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        let eve = desk.register(&owner, "eve");
        let own = ok(desk, &code, "desk_agent_change", json!({ "agent": "code", "note": "writes code" }));
        assert!(own["note"] == "writes code" && own.get("held").is_none(), "{own}");
        assert_code(&desk.refused(&eve, "desk_agent_change", json!({ "agent": "code", "note": "is evil" })), Code::Forbidden);
        let set = ok(desk, &owner, "desk_agent_change", json!({ "agent": "code", "note": "reviews" }));
        assert_eq!(set["set_by_people"], json!(["note"]));
        let answer = ok(desk, &code, "desk_agent_change", json!({ "agent": "code", "note": "deploys" }));
        assert_eq!((&answer["note"], &answer["held"]["outcome"]), (&json!("reviews"), &json!("held")));
        let agents = ok(desk, &owner, "desk_agent_list", json!({}));
        assert_eq!((&agents["agents"][0]["note"], &agents["agents"][0]["set_by_people"]), (&json!("reviews"), &json!(["note"])));
        sound(desk);
    }

    fn a_person_can_let_go_of_a_field(desk: &TestDesk) {
        let owner = desk.claim();
        let id = give(desk, &CODE);
        ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "title": "by a person" }));
        let subject = format!("task:{id}");
        let fields = ok(desk, &owner, "desk_edit_list", json!({ "subject": subject }));
        assert_eq!((&fields["fields"][0]["field"], &fields["fields"][0]["set_by_kind"]), (&json!("title"), &json!("person")));
        assert_code(&desk.refused(&CODE, "desk_edit_release", json!({ "subject": subject, "fields": ["title"] })), Code::Forbidden);
        assert_code(&desk.refused(&owner, "desk_edit_release", json!({ "subject": subject, "fields": ["priority"] })), Code::NotFound);
        ok(desk, &owner, "desk_edit_release", json!({ "subject": subject, "fields": ["title"] }));
        let answer = ok(desk, &CODE, "bridge_update_task", json!({ "task_id": id, "title": "by the agent" }));
        assert!(answer["title"] == "by the agent" && answer.get("held").is_none(), "{answer}");
        sound(desk);
    }

    fn a_row_that_was_taken_away_is_found(desk: &TestDesk) {
        let owner = desk.claim();
        let id = give(desk, &CODE);
        ok(desk, &owner, "bridge_update_task", json!({ "task_id": id, "title": "by a person" }));
        sound(desk);
        desk.tamper("update field_edit set set_by_kind = 'agent'");
        assert!(desk.verify().findings[0].what.contains("who set it differs"), "{:?}", desk.verify().findings);
        desk.tamper("delete from field_edit");
        assert!(desk.verify().findings[0].what.contains("the row is gone"), "{:?}", desk.verify().findings);
    }
}
