//! The status in words and numbers.

use serde_json::json;
use testkit::both;

use super::{SALES, SUPPORT, approve, in_force, ok, proposed, text};

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

    fn trust_that_does_not_fit_into_the_status_is_said(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "authority: { pending_max: 1000, volume_cap: 1000 }");
        for number in 0..200 {
            proposed(desk, &SALES, &format!("crm.{number}"));
        }
        let status = || ok(desk, &owner, "status", json!({ "include_timeline": false }));
        assert_eq!((status()["trust_scores"].as_array().unwrap().len(), &status()["trust_scores_cut"]), (200, &json!(false)));
        proposed(desk, &SUPPORT, "crm");
        assert_eq!((status()["trust_scores"].as_array().unwrap().len(), &status()["trust_scores_cut"]), (200, &json!(true)));
    }

    fn answers_stay_within_their_bounds(desk: &TestDesk) {
        let owner = desk.claim();
        let long = "x".repeat(200 * 1024);
        let made: Vec<String> = (0..5).map(|_| text(&super::propose(desk, &SALES, "crm", json!({ "name": long })), "proposal_id")).collect();
        let (mut seen, mut input, mut pages) = (Vec::new(), json!({}), 0);
        loop {
            let page = ok(desk, &owner, "list_requests", input.clone());
            assert!(page.to_string().len() < 600 * 1024, "{} bytes", page.to_string().len());
            seen.extend(page["requests"].as_array().unwrap().iter().map(|request| text(request, "request_id")));
            pages += 1;
            let Some(next) = page["next_cursor"].as_str() else { break };
            input["cursor"] = json!(next);
        }
        assert_eq!((seen, pages), (made.into_iter().rev().collect::<Vec<_>>(), 3));
        let long = "y".repeat(30 * 1024);
        for _ in 0..10 {
            let handed = ok(desk, &SALES, "handoff", json!({ "domain": "crm", "reason": "r", "confidence": 0.1, "attempted_actions": "[]", "context": "c".repeat(100 * 1024) }));
            ok(desk, &owner, "resolve_handoff", json!({ "handoff_id": handed["handoff_id"], "resolution": long, "instructions": long, "hand_back": true }));
            ok(desk, &SALES, "handoff", json!({ "domain": "crm", "reason": "r", "confidence": 0.1, "attempted_actions": "[]", "context": "c".repeat(100 * 1024) }));
        }
        assert!(ok(desk, &owner, "status", json!({})).to_string().len() < 700 * 1024);
        // What did not fit comes once the rest is acknowledged: nothing is lost.
        let mut delivered = 0;
        loop {
            let check = ok(desk, &SALES, "check_handoff", json!({}));
            let ids: Vec<String> = check["pending_instructions"].as_array().unwrap().iter().map(|said| text(said, "instruction_id")).collect();
            delivered += ids.len();
            if ids.is_empty() {
                break;
            }
            ok(desk, &SALES, "acknowledge_instructions", json!({ "instruction_ids": ids }));
        }
        assert_eq!(delivered, 10);
    }

    fn a_restart_is_another_session(desk: &TestDesk) {
        let before = ok(desk, &SALES, "status", json!({}));
        proposed(desk, &SALES, "crm");
        super::pass(desk, 60);
        desk.act(|cx| cx.emit(deskmate_core::record::Event::new(deskmate_core::desk::STARTED, "desk"))).unwrap();
        proposed(desk, &SALES, "crm");
        let after = ok(desk, &SALES, "status", json!({}));
        assert_ne!(before["session_id"], after["session_id"]);
        assert_eq!(after["timeline"][0]["session_id"], after["session_id"]);
        assert_ne!(after["timeline"][1]["session_id"], after["session_id"]);
    }
}
