//! The status in words and numbers.

use serde_json::json;
use testkit::both;

use crate::{SALES, SUPPORT, approve, ok, proposed, text};

both! {
    fn the_status_tells_people_how_things_stand(desk: &TestDesk) {
        let owner = desk.claim();
        let empty = ok(desk, &owner, "status", json!({}));
        assert_eq!((&empty["stats"]["override_rate"], &empty["stats"]["total_actions"], &empty["timeline"]), (&json!("0%"), &json!(0), &json!([])));
        let id = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &id);
        proposed(desk, &SALES, "crm");
        let no_thanks = proposed(desk, &SUPPORT, "tickets");
        ok(desk, &owner, "override", json!({ "proposal_id": no_thanks, "action_description": "a", "override_type": "agent_wrong", "description": "d" }));
        let status = ok(desk, &owner, "status", json!({}));
        let stats = &status["stats"];
        assert_eq!((&stats["total_actions"], &stats["approved_actions"], &stats["overrides"], &stats["override_rate"]), (&json!(3), &json!(1), &json!(1), &json!("33.3%")));
        assert_eq!((&status["pending_proposals"], &status["open_handoffs"]), (&json!(1), &json!(0)));
        assert_eq!(stats["trust_scores"], json!([
            { "agent": "sales", "domain": "crm", "score": "0.32", "accuracy": "100.0%", "sample_size": 1 },
            { "agent": "support", "domain": "tickets", "score": "0.22", "accuracy": "0.0%", "sample_size": 1 },
        ]));
        let words = text(&status, "text");
        assert!(words.contains("3 proposals, 1 approved by people, 1 overridden (33.3%)") && words.contains("sales in crm: 0.32, escalate"), "{words}");
        let types: Vec<&str> = status["timeline"].as_array().unwrap().iter().map(|moment| moment["event_type"].as_str().unwrap()).collect();
        assert_eq!(types, ["override", "proposal", "proposal", "proposal", "proposal", "proposal"]);
        assert!(status["session_id"].as_str().unwrap().starts_with("session_"));
        assert_eq!((&status["config"]["volume_cap"], &status["config"]["default_mode"]), (&json!(50), &json!("suggest")));
    }

    fn a_restart_is_another_session(desk: &TestDesk) {
        let before = ok(desk, &SALES, "status", json!({}));
        proposed(desk, &SALES, "crm");
        crate::pass(desk, 60);
        desk.act(|cx| cx.emit(deskmate_core::record::Event::new(deskmate_core::desk::STARTED, "desk"))).unwrap();
        proposed(desk, &SALES, "crm");
        let after = ok(desk, &SALES, "status", json!({}));
        assert_ne!(before["session_id"], after["session_id"]);
        assert_eq!(after["timeline"][0]["session_id"], after["session_id"]);
        assert_ne!(after["timeline"][1]["session_id"], after["session_id"]);
    }
}
