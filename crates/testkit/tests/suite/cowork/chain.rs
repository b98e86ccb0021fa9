//! The chain from proposal to outcome, what was done compared with what was approved, and that it survives restarts.

use deskmate_core::record::{Keyring, Proof, check_proof};
use serde_json::json;
use testkit::{Caller, both};

use super::{SALES, approve, log, ok, pass, proposed, sound, told};

both! {
    fn proofs_of_a_chain_can_be_checked_by_anybody(desk: &TestDesk) {
        let owner = desk.claim();
        let id = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &id);
        log(desk, &SALES, &id, json!({ "name": "x" }));
        let trail = ok(desk, &SALES, "audit_trail", json!({ "proposal_id": id }));
        let checkpoint = desk.call(&owner, "desk_record_checkpoint", json!({})).unwrap();
        let keys = Keyring::new(vec![checkpoint["keys"][0].as_str().unwrap().to_owned()]);
        let proofs: Vec<Proof> = serde_json::from_value(trail["proofs"].clone()).unwrap();
        assert!(proofs.len() >= 6);
        for proof in &proofs {
            check_proof(proof, &keys).unwrap();
            let forged = Proof { body: proof.body.replace(&id, "another"), ..proof.clone() };
            assert!(forged.body == proof.body || check_proof(&forged, &keys).is_err());
        }
        assert_eq!(ok(desk, &SALES, "audit_trail", json!({ "proposal_id": id, "without_proofs": true }))["proofs"], json!([]));
    }

    fn what_was_done_is_compared_with_what_was_approved(desk: &TestDesk) {
        let owner = desk.claim();
        let id = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &id);
        let beyond = log(desk, &SALES, &id, json!({ "name": "x", "owner": "me" }));
        assert_eq!((&beyond["matches"], &beyond["findings"]), (&json!("differs"), &json!(["execution_beyond_approval"])));
        let trail = ok(desk, &owner, "audit_trail", json!({ "proposal_id": id }));
        assert!(trail["verified"] == false && trail["problems"].to_string().contains("something else"), "{trail}");
        let id = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &id);
        let untold = ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "a", "actor": "agent", "proposal_id": id }));
        assert_eq!(untold["matches"], "not_told");
        assert_eq!(ok(desk, &owner, "audit_trail", json!({ "proposal_id": id }))["verified"], false);
        // The order of keys and the spelling of numbers are no difference.
        let id = super::text(&super::propose(desk, &SALES, "crm", json!({ "a": 1, "b": [1, 2] })), "proposal_id");
        approve(desk, &owner, &id);
        let same = ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "a", "actor": "agent", "proposal_id": id, "executed_change": "{\"b\": [1, 2], \"a\": 1}" }));
        assert_eq!(same["matches"], "exact");
    }

    fn what_is_said_beside_a_whole_chain_does_not_break_it(desk: &TestDesk) {
        let owner = desk.claim();
        let [commented, settled, beyond] = [(); 3].map(|()| {
            let id = proposed(desk, &SALES, "crm");
            approve(desk, &owner, &id);
            id
        });
        let say = |caller: &Caller, id: &str, more: serde_json::Value| {
            let mut input = json!({ "domain": "crm", "action": "checked with the customer", "actor": "human", "proposal_id": id });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            ok(desk, caller, "log", input)
        };
        let trail = |id: &str| ok(desk, &owner, "audit_trail", json!({ "proposal_id": id, "without_proofs": true }));
        log(desk, &SALES, &commented, json!({ "name": "x" }));
        let before = trail(&commented)["trail"].clone();
        pass(desk, 60);
        say(&owner, &commented, json!({}));
        let after = trail(&commented);
        assert_eq!((&after["verified"], &after["problems"], &after["trail"]), (&json!(true), &json!([]), &before), "{after:#}");
        assert_eq!((&before["matches"], after["reports"].as_array().unwrap().len()), (&json!("exact"), 2), "what was said is kept");
        // Who does not know at first says what was done once it is known, or somebody does who looked.
        say(&SALES, &settled, json!({ "outcome": "ambiguous" }));
        log(desk, &SALES, &settled, json!({ "name": "x" }));
        assert_eq!((&trail(&settled)["verified"], &trail(&settled)["trail"]["matches"]), (&json!(true), &json!("exact")), "{:#}", trail(&settled));
        let chains = || ok(desk, &owner, "governance_report", json!({}))["audit_report"]["verified_chains"].clone();
        assert_eq!(chains(), 2);
        say(&SALES, &beyond, json!({ "outcome": "ambiguous" }));
        say(&owner, &beyond, json!({ "outcome": "done", "executed_change": { "name": "y" } }));
        let told = trail(&beyond);
        assert!(told["verified"] == false && told["problems"].to_string().contains("something else"), "{told:#}");
        // A report that no approval covers breaks it all the same.
        say(&SALES, &commented, json!({}));
        assert!(trail(&commented)["verified"] == false && trail(&commented)["trail"]["matches"] == "exact", "{:#}", trail(&commented));
        assert_eq!(chains(), 1);
    }

    fn a_tampered_row_breaks_the_chain(desk: &TestDesk) {
        let owner = desk.claim();
        let id = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &id);
        log(desk, &SALES, &id, json!({ "name": "x" }));
        assert_eq!(ok(desk, &owner, "audit_trail", json!({ "proposal_id": id }))["verified"], true);
        desk.tamper("update request set state = 'failed' where state = 'done'");
        let trail = ok(desk, &owner, "audit_trail", json!({ "proposal_id": id }));
        assert!(trail["verified"] == false && trail["problems"].to_string().contains("differs from what the record tells"), "{trail}");
        assert!(!desk.verify().sound);
        desk.tamper("update request set state = 'done' where state = 'failed'");
        // The sealed text itself.
        desk.tamper("update event set body = replace(body, 'request.created', 'request.krated') where kind = 'request.created'");
        assert!(desk.call(&owner, "cowork_audit_trail", json!({ "proposal_id": id })).map_or(true, |trail| trail["verified"] == false));
    }

    fn what_was_erased_is_gone_everywhere_and_the_chain_still_proves(desk: &TestDesk) {
        let owner = desk.claim();
        let id = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &id);
        ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "secret action", "actor": "agent", "reasoning": "secret reason", "proposal_id": id, "executed_change": { "name": "x" } }));
        let handed = ok(desk, &SALES, "handoff", json!({ "domain": "crm", "reason": "secret handoff", "confidence": 0.1, "attempted_actions": "[]", "context": "{}" }));
        ok(desk, &owner, "resolve_handoff", json!({ "handoff_id": handed["handoff_id"], "resolution": "secret resolution", "instructions": "secret instructions", "hand_back": true }));
        ok(desk, &owner, "override", json!({ "agent_id": "sales", "domain": "crm", "action_description": "secret act", "override_type": "edge_case", "description": "secret correction" }));
        for kind in ["action.logged", "handoff.resolved", "agent.overridden", "request.created", "request.approved"] {
            for event in told(desk, &owner, kind) {
                desk.call(&owner, "desk_record_erase", json!({ "seq": event["seq"], "reason": "asked to" })).unwrap();
            }
        }
        for (tool, input) in [
            ("audit_trail", json!({ "proposal_id": id, "without_proofs": true })),
            ("status", json!({})),
            ("check_handoff", json!({})),
            ("list_requests", json!({})),
            ("get_request", json!({ "request_id": handed["handoff_id"] })),
        ] {
            let answer = ok(desk, &SALES, tool, input);
            assert!(!answer.to_string().contains("secret"), "{tool}: {answer}");
        }
        for event in told(desk, &owner, "agent.overridden") {
            assert!(!event.to_string().contains("secret"), "{event}");
        }
        sound(desk);
    }

    fn people_see_what_was_really_changed(desk: &TestDesk) {
        let owner = desk.claim();
        let id = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &id);
        log(desk, &SALES, &id, json!({ "name": "y" }));
        ok(desk, &owner, "log", json!({ "domain": "crm", "action": "a", "actor": "human", "proposal_id": id }));
        let reports = |caller| ok(desk, caller, "audit_trail", json!({ "proposal_id": id, "without_proofs": true }))["reports"].clone();
        let seen = reports(&owner);
        assert_eq!((&seen[0]["executed_change"], &seen[0]["matches"]), (&json!({ "name": "y" }), &json!("differs")), "{seen}");
        assert_eq!(seen[1].get("executed_change"), None, "{seen}");
        assert_eq!(reports(&SALES)[0].get("executed_change"), None);
        let first = told(desk, &owner, "action.logged").pop().unwrap();
        // One answer holds so much of it.
        for _ in 0..3 {
            log(desk, &SALES, &id, json!({ "name": "z".repeat(200_000) }));
        }
        let seen: Vec<bool> = reports(&owner).as_array().unwrap().iter().map(|report| report["executed_change"].is_object()).collect();
        assert_eq!(seen, [true, false, true, true, false]);
        desk.call(&owner, "desk_record_erase", json!({ "seq": first["seq"], "reason": "asked to" })).unwrap();
        assert_eq!(reports(&owner)[0].get("executed_change"), None);
        sound(desk);
    }

    fn an_override_keeps_what_the_agent_did_in_the_persons_words(desk: &TestDesk) {
        let owner = desk.claim();
        let (pending, granted, done) = (proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "crm"));
        approve(desk, &owner, &granted);
        approve(desk, &owner, &done);
        log(desk, &SALES, &done, json!({ "name": "x" }));
        let correct = |which: serde_json::Value, what: &str| {
            let mut input = json!({ "action_description": what, "override_type": "edge_case", "description": "why" });
            input.as_object_mut().unwrap().extend(which.as_object().unwrap().clone());
            ok(desk, &owner, "override", input);
        };
        correct(json!({ "proposal_id": pending }), "wanted to");
        correct(json!({ "proposal_id": granted }), "was about to");
        correct(json!({ "proposal_id": done }), "did");
        correct(json!({ "agent_id": "sales", "domain": "crm" }), "did unasked");
        correct(json!({ "agent_id": "sales", "domain": "crm" }), " ");
        let payloads: Vec<_> = told(desk, &owner, "agent.overridden").iter().rev().map(|event| event["payload"].clone()).collect();
        let words = |what: &str| json!({ "description": "why", "action_description": what });
        assert_eq!(payloads, [words("wanted to"), words("was about to"), words("did"), words("did unasked"), json!({ "description": "why" })]);
    }
}
