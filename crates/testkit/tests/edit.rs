//! People's edits win: what a person set, an agent only asks to change. One case for each kind of record, on both engines.

use deskmate_core::Code;
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

both! {
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
