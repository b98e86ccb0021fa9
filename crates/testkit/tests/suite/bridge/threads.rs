//! Conversations and projects as people look at them.

use deskmate_core::Code;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::{CODE, COWORK, each, ok, send, text};

fn list(desk: &TestDesk, who: &Caller, input: Value) -> Value {
    desk.call(who, "desk_thread_list", input).unwrap()
}

both! {
    fn people_see_every_conversation_the_newest_first(desk: &TestDesk) {
        let owner = desk.claim();
        let first = send(desk, &CODE, "cowork", "first");
        let second = send(desk, &COWORK, "code", &"é".repeat(500));
        assert_eq!(each(&list(desk, &owner, json!({})), "threads", "thread"), [second.as_str(), first.as_str()]);
        ok(desk, &COWORK, "send_message", json!({ "to": "code", "content": "an answer", "reply_to": first }));
        let threads = list(desk, &owner, json!({}));
        assert_eq!(each(&threads, "threads", "thread"), [first.as_str(), second.as_str()]);
        let [one, other] = [&threads["threads"][0], &threads["threads"][1]];
        assert_eq!((one["opening"]["text"].as_str(), one["latest"]["text"].as_str()), (Some("first"), Some("an answer")));
        assert_eq!((&one["opening"]["trust"], &one["latest"]["to"]), (&json!("unverified, claims to be code"), &json!("code")));
        assert_eq!(text(&other["opening"], "text").chars().count(), 280);
        // Page by page it is the same, and what comes meanwhile changes nothing behind the cursor.
        let page = list(desk, &owner, json!({ "limit": 1 }));
        send(desk, &CODE, "cowork", "third");
        let rest = list(desk, &owner, json!({ "cursor": page["next_cursor"] }));
        assert_eq!((each(&rest, "threads", "thread"), rest.get("next_cursor")), (vec![second], None));
        for agent in [&CODE, &COWORK] {
            assert_code(&desk.refused(agent, "desk_thread_list", json!({})), Code::Forbidden);
            assert_code(&desk.refused(agent, "desk_thread_get", json!({ "thread": first })), Code::Forbidden);
            assert_code(&desk.refused(agent, "desk_project_list", json!({})), Code::Forbidden);
        }
    }

    fn conversations_in_which_something_waits_can_be_picked(desk: &TestDesk) {
        let owner = desk.claim();
        send(desk, &CODE, "cowork", "not for people");
        let asked = send(desk, &CODE, "Owner", "a question");
        ok(desk, &COWORK, "send_message", json!({ "to": "Owner", "content": "me too", "reply_to": null, "thread": asked, "project": "web" }));
        let other = send(desk, &COWORK, "Owner", "another one");
        let waiting = list(desk, &owner, json!({ "waiting": true }));
        assert_eq!(each(&waiting, "threads", "thread"), [other.as_str(), asked.as_str()]);
        assert_eq!((&waiting["threads"][0]["waiting"], &waiting["threads"][1]["waiting"]), (&json!(1), &json!(2)));
        let page = list(desk, &owner, json!({ "waiting": true, "limit": 1 }));
        let rest = list(desk, &owner, json!({ "waiting": true, "cursor": page["next_cursor"] }));
        assert_eq!(each(&rest, "threads", "thread"), [asked.as_str()]);
        ok(desk, &owner, "acknowledge_messages", json!({ "message_ids": [other] }));
        assert_eq!(each(&list(desk, &owner, json!({ "waiting": true })), "threads", "thread"), [asked]);
        assert_eq!(list(desk, &owner, json!({}))["threads"].as_array().unwrap().len(), 3);
    }

    fn a_conversation_of_thousands_hides_no_other(desk: &TestDesk) {
        let owner = desk.claim();
        let quiet = send(desk, &CODE, "cowork", "long ago");
        ok(desk, &CODE, "send_message", json!({ "to": "cowork", "content": "begins", "thread": "main" }));
        desk.tamper(
            "insert into message (id, project, sender_kind, sender, verified, origin, to_name, thread, rank, content, created_at) \
             with recursive n(i) as (select 1 union all select i + 1 from n where i < 4500) \
             select 'f' || i, 'default', 'agent', 'x', false, 'mcp', 'y', 'main', 2, 'more', (select max(created_at) from message) + i from n",
        );
        let (mut seen, mut input, mut pages) = (Vec::new(), json!({}), 0);
        loop {
            let page = list(desk, &owner, input.clone());
            seen.extend(each(&page, "threads", "thread"));
            pages += 1;
            match page.get("next_cursor") {
                Some(cursor) => input["cursor"] = cursor.clone(),
                None => break,
            }
        }
        assert_eq!((seen, pages), (vec!["main".to_owned(), quiet], 3));
    }

    fn a_whole_conversation_comes_with_its_receipts(desk: &TestDesk) {
        let owner = desk.claim();
        let first = send(desk, &CODE, "cowork", "hello");
        ok(desk, &COWORK, "send_message", json!({ "to": "code", "content": "hello yourself", "reply_to": first }));
        ok(desk, &COWORK, "acknowledge_messages", json!({ "message_ids": [first] }));
        let thread = desk.call(&owner, "desk_thread_get", json!({ "thread": first })).unwrap();
        assert_eq!(each(&thread, "messages", "content"), ["hello yourself", "hello"]);
        let [answer, question] = [&thread["messages"][0]["receipts"][0], &thread["messages"][1]["receipts"][0]];
        assert_eq!((answer["recipient"].as_str(), answer.get("acknowledged_at")), (Some("code"), None));
        assert_eq!((question["recipient"].as_str(), question.get("acknowledged_at").is_some()), (Some("cowork"), true));
        let page = desk.call(&owner, "desk_thread_get", json!({ "thread": first, "limit": 1 })).unwrap();
        let rest = desk.call(&owner, "desk_thread_get", json!({ "thread": first, "cursor": page["next_cursor"] })).unwrap();
        assert_eq!((each(&rest, "messages", "content"), rest.get("next_cursor")), (vec!["hello".to_owned()], None));
        assert_code(&desk.refused(&owner, "desk_thread_get", json!({ "thread": "nowhere" })), Code::NotFound);
    }

    fn projects_are_found_by_the_work_in_them(desk: &TestDesk) {
        let owner = desk.claim();
        assert_eq!(desk.call(&owner, "desk_project_list", json!({})).unwrap(), json!({ "projects": [], "more": false }));
        for project in ["web", "app", "web"] {
            ok(desk, &CODE, "create_task", json!({ "to": "cowork", "title": "do it", "project": project }));
        }
        ok(desk, &CODE, "reserve_paths", json!({ "paths": ["a"], "project": "zoo" }));
        assert_eq!(desk.call(&owner, "desk_project_list", json!({})).unwrap()["projects"], json!(["app", "web", "zoo"]));
    }
}
