//! Reservations of paths.

use std::time::Duration;

use deskmate_core::call::{Call, Credential, Surface};
use deskmate_core::{Code, bridge};
use serde_json::json;
use testkit::{assert_code, both, wait};

use super::{CODE, COWORK, each, events, no, ok, sound, text};

both! {
    fn released_reservations_go_after_their_time(desk: &TestDesk) {
        for path in ["a", "b"] {
            desk.agent("code", "bridge_reserve_paths", json!({ "paths": [path], "reason": "why" })).unwrap();
        }
        desk.agent("code", "bridge_release_paths", json!({ "paths": ["a"] })).unwrap();
        desk.world.pass(std::time::Duration::from_secs(1));
        let now = desk.desk.world.now();
        assert_eq!(desk.act(move |cx| deskmate_core::bridge::prune_reservations(cx, now, 10)).unwrap(), 1);
        assert_eq!(desk.act(move |cx| deskmate_core::bridge::prune_reservations(cx, now, 10)).unwrap(), 0, "what is held stays");
    }

    fn an_exclusive_reservation_keeps_others_off(desk: &TestDesk) {
        let held = ok(desk, &CODE, "reserve_paths", json!({ "paths": ["./src//main.rs", "docs/"], "reason": "refactoring" }));
        assert_eq!(held["paths"], json!(["docs/**", "src/main.rs"]));
        for path in ["src/main.rs", "src/*.rs", "docs/a/b.md", "**", "src"] {
            for mode in ["exclusive", "shared"] {
                let refusal = no(desk, &COWORK, "reserve_paths", json!({ "paths": [path], "mode": mode }));
                assert_code(&refusal, Code::Conflict);
                assert!(refusal.message.contains("code holds") && refusal.message.contains("until 2026-01-01T"), "{refusal}");
            }
        }
        ok(desk, &COWORK, "reserve_paths", json!({ "paths": ["src/other.rs"] }));
        ok(desk, &COWORK, "reserve_paths", json!({ "paths": ["src/main.rs"], "project": "another" }));
        // One's own reservations never stand in one's way.
        ok(desk, &CODE, "reserve_paths", json!({ "paths": ["src/main.rs"] }));
        sound(desk);
    }

    fn shared_ones_share(desk: &TestDesk) {
        ok(desk, &CODE, "reserve_paths", json!({ "paths": ["src/**"], "mode": "shared" }));
        ok(desk, &COWORK, "reserve_paths", json!({ "paths": ["src/**"], "mode": "shared" }));
        assert_code(&no(desk, &COWORK, "reserve_paths", json!({ "paths": ["src/a"] })), Code::Conflict);
    }

    fn a_reservation_ends_by_itself_unless_renewed(desk: &TestDesk) {
        let held = ok(desk, &CODE, "reserve_paths", json!({ "paths": ["a"], "lease_seconds": 60 }));
        let id = text(&held, "reservation_id");
        desk.world.pass(Duration::from_secs(50));
        let before = events(desk);
        ok(desk, &CODE, "renew_paths", json!({ "reservation_id": id }));
        assert_eq!(events(desk), before, "a renewal fills no record");
        desk.world.pass(Duration::from_secs(50));
        assert_code(&no(desk, &COWORK, "reserve_paths", json!({ "paths": ["a"] })), Code::Conflict);
        assert_code(&no(desk, &COWORK, "renew_paths", json!({ "reservation_id": id })), Code::Forbidden);
        desk.world.pass(Duration::from_secs(11));
        assert_eq!(ok(desk, &COWORK, "list_reservations", json!({}))["reservations"], json!([]));
        assert_code(&no(desk, &CODE, "renew_paths", json!({ "reservation_id": id })), Code::NotFound);
        ok(desk, &COWORK, "reserve_paths", json!({ "paths": ["a"] }));
        assert_eq!(desk.act(|cx| bridge::sweep_reservations(cx, 100)).unwrap(), 1);
        assert_eq!(desk.act(|cx| bridge::sweep_reservations(cx, 100)).unwrap(), 0);
        sound(desk);
    }

    fn paths_are_released_by_id_and_one_by_one(desk: &TestDesk) {
        let held = ok(desk, &CODE, "reserve_paths", json!({ "paths": ["a", "b", "c"] }));
        let id = text(&held, "reservation_id");
        assert_eq!(ok(desk, &CODE, "release_paths", json!({ "paths": ["./b", "nothing"] })), json!({ "ended": [], "paths": ["b"] }));
        ok(desk, &COWORK, "reserve_paths", json!({ "paths": ["b"] }));
        assert_code(&no(desk, &COWORK, "release_paths", json!({ "reservation_id": id })), Code::Forbidden);
        assert_code(&no(desk, &COWORK, "release_paths", json!({ "paths": ["a"] })), Code::NotFound);
        assert_code(&no(desk, &CODE, "release_paths", json!({})), Code::Invalid);
        assert_eq!(ok(desk, &CODE, "release_paths", json!({ "reservation_id": id }))["ended"], json!([id]));
        assert_code(&no(desk, &CODE, "release_paths", json!({ "reservation_id": id })), Code::NotFound);
        ok(desk, &COWORK, "reserve_paths", json!({ "paths": ["a", "c"] }));
        // A person may clear the way.
        let owner = desk.claim();
        let standing = ok(desk, &owner, "list_reservations", json!({ "path": "b" }));
        assert_eq!(each(&standing, "reservations", "holder"), ["cowork"]);
        ok(desk, &owner, "release_paths", json!({ "reservation_id": standing["reservations"][0]["reservation_id"] }));
        sound(desk);
    }

    fn reservations_are_listed_in_pages(desk: &TestDesk) {
        for path in ["a", "b", "c"] {
            ok(desk, &CODE, "reserve_paths", json!({ "paths": [path] }));
        }
        let page = ok(desk, &COWORK, "list_reservations", json!({ "limit": 2 }));
        assert_eq!(page["reservations"].as_array().unwrap().len(), 2);
        let rest = ok(desk, &COWORK, "list_reservations", json!({ "cursor": page["next_cursor"] }));
        assert_eq!((rest["reservations"][0]["paths"].clone(), rest.get("next_cursor")), (json!(["c"]), None));
    }

    fn tricky_paths_are_refused(desk: &TestDesk) {
        for path in ["", "/etc/passwd", "../up", "a/../../b", "a\\b", "~/x", "C:/x", "a[", "x\ny"] {
            let refusal = no(desk, &CODE, "reserve_paths", json!({ "paths": [path] }));
            assert_code(&refusal, Code::Invalid);
            assert_eq!(refusal.field.as_deref(), Some("paths"), "{path:?}");
        }
        assert_code(&no(desk, &CODE, "reserve_paths", json!({ "paths": [] })), Code::Invalid);
        assert_code(&no(desk, &CODE, "reserve_paths", json!({ "paths": ["a"], "lease_seconds": 4 })), Code::Invalid);
        assert_code(&no(desk, &CODE, "reserve_paths", json!({ "paths": vec!["a"; 101] })), Code::Invalid);
    }

    fn a_project_holds_a_bounded_number_of_paths(desk: &TestDesk) {
        for n in 0..20 {
            let paths: Vec<String> = (0..100).map(|m| format!("d{n}/f{m}.*")).collect();
            ok(desk, &CODE, "reserve_paths", json!({ "paths": paths }));
        }
        assert_code(&no(desk, &COWORK, "reserve_paths", json!({ "paths": ["free"] })), Code::Limited);
        ok(desk, &COWORK, "reserve_paths", json!({ "paths": ["free"], "project": "another" }));
    }

    fn two_at_once_and_one_gets_the_paths(desk: &TestDesk) {
        for round in 0..5 {
            let start = std::sync::Barrier::new(2);
            let won: usize = std::thread::scope(|scope| {
                let callers = ["code", "cowork"].map(|name| {
                    let start = &start;
                    scope.spawn(move || {
                        let (credential, input) = (Credential::Named(Some(name.to_owned())), json!({ "paths": [format!("f{round}")] }));
                        start.wait();
                        let call = Call { credential, surface: Surface::Mcp, operation: "bridge_reserve_paths".to_owned(), input };
                        usize::from(wait(desk.desk.call(call)).is_ok())
                    })
                });
                callers.into_iter().map(|caller| caller.join().expect("the caller ends")).sum()
            });
            assert_eq!(won, 1);
        }
        desk.seal();
        sound(desk);
    }

    fn an_erased_reservation_holds_nothing(desk: &TestDesk) {
        let owner = desk.claim();
        ok(desk, &CODE, "reserve_paths", json!({ "paths": ["secret/plan"], "reason": "private" }));
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "paths.reserved" })).unwrap();
        desk.call(&owner, "desk_record_erase", json!({ "seq": told["events"][0]["seq"], "reason": "asked to" })).unwrap();
        assert_eq!(ok(desk, &COWORK, "list_reservations", json!({}))["reservations"], json!([]));
        ok(desk, &COWORK, "reserve_paths", json!({ "paths": ["secret/plan"] }));
        sound(desk);
    }
}
