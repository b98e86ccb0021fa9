//! How refusals name people: by name to people, and to agents only as a person.

use serde_json::{Value, json};
use testkit::both;

use super::{CODE, no, ok, text};

both! {
    fn a_refusal_names_no_person_to_an_agent(desk: &TestDesk) {
        let owner = desk.claim();
        let id = text(&desk.call(&owner, "desk_whoami", json!({})).unwrap(), "id");
        let task = |to: &str| text(&ok(desk, &CODE, "create_task", json!({ "to": to, "title": "t" })), "task_id");
        ok(desk, &owner, "set_group", json!({ "name": "team", "members": [id, "code"] }));
        let (given, shared) = (task("Owner"), task("group:team"));
        ok(desk, &owner, "claim_task", json!({ "task_id": shared }));
        let reserved = text(&ok(desk, &owner, "reserve_paths", json!({ "paths": ["src/**"] })), "reservation_id");
        let full = json!({ "to": "Owner", "content": "one more" });
        ok(desk, &CODE, "send_message", full.clone());
        desk.tamper("update mailbox set unread = 100000");
        let refusals: [(&str, Value, &str); 8] = [
            ("claim_task", json!({ "task_id": given }), "this task was given to a person"),
            ("update_task", json!({ "task_id": given, "status": "completed" }), "this task was given to a person"),
            ("claim_task", json!({ "task_id": shared }), "a person holds this task"),
            ("update_task", json!({ "task_id": shared, "to": "cowork" }), "a person works on this task"),
            ("set_group", json!({ "name": "team", "members": ["code"] }), "was made by a person"),
            ("reserve_paths", json!({ "paths": ["src/a.rs"] }), "a person holds src/"),
            ("release_paths", json!({ "reservation_id": reserved }), "a person holds this reservation"),
            ("send_message", full, "a person has 100000 messages"),
        ];
        for (operation, input, says) in refusals {
            let refusal = no(desk, &CODE, operation, input).to_string();
            assert!(refusal.contains(says), "{operation}: {refusal}");
            assert!(!refusal.contains(&id) && !refusal.contains("Owner"), "{operation}: {refusal}");
        }
        let own = no(desk, &owner, "claim_task", json!({ "task_id": shared })).to_string();
        assert!(own.contains("Owner holds this task") && !own.contains(&id), "people read names: {own}");
        let agent = task("cowork");
        assert!(no(desk, &CODE, "claim_task", json!({ "task_id": agent })).to_string().contains("given to cowork"), "an agent's id is its name");
    }
}
