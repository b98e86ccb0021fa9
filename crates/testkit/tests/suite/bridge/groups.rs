//! Groups and broadcasts.

use deskmate_core::Code;
use serde_json::json;
use testkit::{assert_code, both};

use super::{CODE, COWORK, EVE, each, no, ok, send, sound, text};

both! {
    fn a_broadcast_reaches_every_member_but_the_sender(desk: &TestDesk) {
        ok(desk, &CODE, "set_group", json!({ "name": "team", "members": ["code", "cowork", "eve", "eve"] }));
        for to in ["group:team", "team"] {
            let sent = ok(desk, &CODE, "send_message", json!({ "to": to, "content": to }));
            assert_eq!(sent["recipients"], json!(["cowork", "eve"]));
        }
        for reader in [&COWORK, &EVE] {
            let read = ok(desk, reader, "read_messages", json!({}));
            assert_eq!(each(&read, "messages", "to"), ["group:team", "group:team"]);
        }
        let first = text(&ok(desk, &COWORK, "read_messages", json!({}))["messages"][0], "message_id");
        ok(desk, &COWORK, "acknowledge_messages", json!({ "message_ids": [first] }));
        let receipts = ok(desk, &CODE, "get_receipts", json!({ "message_id": first }));
        assert_eq!((receipts["acknowledged"].clone(), receipts["waiting"].clone()), (json!(1), json!(1)));
        assert_eq!(ok(desk, &EVE, "read_messages", json!({}))["messages"].as_array().unwrap().len(), 2);
        sound(desk);
    }

    fn only_its_maker_or_a_person_changes_a_group(desk: &TestDesk) {
        ok(desk, &CODE, "set_group", json!({ "name": "team", "members": ["cowork"] }));
        assert_code(&no(desk, &EVE, "set_group", json!({ "name": "team", "members": ["eve"] })), Code::Forbidden);
        ok(desk, &CODE, "set_group", json!({ "name": "team", "members": ["eve"] }));
        let owner = desk.claim();
        let set = ok(desk, &owner, "set_group", json!({ "name": "team", "members": ["cowork", "Owner"] }));
        assert_eq!((set["owner"].as_str(), set["members"].as_array().map(Vec::len)), (Some("code"), Some(2)));
        ok(desk, &owner, "set_group", json!({ "name": "alpha", "members": [] }));
        assert_eq!(each(&ok(desk, &EVE, "list_groups", json!({})), "groups", "name"), ["alpha", "team"]);
        let page = ok(desk, &EVE, "list_groups", json!({ "limit": 1 }));
        assert_eq!(each(&ok(desk, &EVE, "list_groups", json!({ "cursor": page["next_cursor"] })), "groups", "name"), ["team"]);
        assert_code(&no(desk, &CODE, "send_message", json!({ "to": "group:alpha", "content": "x" })), Code::Invalid);
        assert_code(&no(desk, &CODE, "send_message", json!({ "to": "group:none", "content": "x" })), Code::NotFound);
        assert_code(&no(desk, &CODE, "set_group", json!({ "name": "not a name", "members": [] })), Code::Invalid);
        let many: Vec<String> = (0..201).map(|n| format!("a{n}")).collect();
        assert_code(&no(desk, &CODE, "set_group", json!({ "name": "many", "members": many })), Code::Invalid);
    }

    fn a_group_takes_nobodys_mail(desk: &TestDesk) {
        send(desk, &CODE, "cowork", "x");
        for name in ["code", "cowork"] {
            assert_code(&no(desk, &EVE, "set_group", json!({ "name": name, "members": ["eve"] })), Code::Conflict);
        }
        ok(desk, &EVE, "set_group", json!({ "name": "later", "members": ["eve"] }));
        let owner = desk.claim();
        assert_code(&no(desk, &EVE, "set_group", json!({ "name": "Owner", "members": ["eve"] })), Code::Conflict);
        desk.register(&owner, "later");
        let sent = ok(desk, &owner, "send_message", json!({ "to": "later", "content": "x" }));
        assert_eq!(sent["recipients"], json!(["later"]));
    }
}
