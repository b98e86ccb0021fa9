//! Deciding many proposals at once.

use deskmate_core::Code;
use deskmate_core::call::Surface;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::{SALES, SUPPORT, in_force, is, no, ok, pass, proposal, proposed, sound, text, told};

fn sure(desk: &TestDesk, confidence: f64) -> String {
    let mut input = proposal("crm", json!({ "name": "x" }));
    input["confidence"] = json!(confidence);
    text(&ok(desk, &SALES, "propose", input), "proposal_id")
}

fn ids(answer: &Value) -> Vec<String> {
    answer["proposals"].as_array().into_iter().flatten().map(|proposal| text(proposal, "proposal_id")).collect()
}

both! {
    fn the_settings_of_each_domain_say_what_a_rejection_needs(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "domains: { free: { feedback: { override_requires_reason: false } }, own: { feedback: { reason_types: [agent_wrong] } } }");
        let (free, asked, own) = (proposed(desk, &SALES, "free"), proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "own"));
        let state = |id: &str| ok(desk, &owner, "get_request", json!({ "request_id": id }))["request"]["state"].clone();
        let batch = ok(desk, &owner, "bulk_reject", json!({ "override_type": "edge_case", "description": "" }));
        assert_eq!((&batch["rejected"], &batch["error_count"]), (&json!(1), &json!(2)), "{batch}");
        assert_eq!((state(&free), state(&asked), state(&own)), (json!("rejected"), json!("pending"), json!("pending")));
        assert!(batch["errors"].to_string().contains("override_requires_reason"), "{batch}");
        let batch = ok(desk, &owner, "bulk_reject", json!({ "override_type": "edge_case", "description": "not now" }));
        assert_eq!((&batch["rejected"], &batch["error_count"], &batch["errors"][0]["proposal_id"]), (&json!(1), &json!(1), &json!(own)), "{batch}");
        assert!(batch["errors"].to_string().contains("must be one of agent_wrong"), "{batch}");
        let batch = ok(desk, &owner, "bulk_reject", json!({ "override_type": "agent_wrong", "description": "wrong" }));
        assert_eq!((&batch["rejected"], state(&own)), (&json!(1), json!("rejected")), "{batch}");
    }

    fn a_preview_lists_exactly_the_set_and_holds_the_deciding_call_to_it(desk: &TestDesk) {
        let owner = desk.claim();
        let (low, high) = (sure(desk, 0.4), sure(desk, 0.8));
        let other = proposed(desk, &SUPPORT, "crm");
        let preview = |input: Value| {
            let mut input = input;
            input["preview"] = json!(true);
            input["feedback"] = json!("f");
            ok(desk, &owner, "bulk_approve", input)
        };
        assert_eq!(ids(&preview(json!({}))), [low.clone(), high.clone(), other.clone()]);
        assert_eq!(ids(&preview(json!({ "filter_agent_id": "support" }))), std::slice::from_ref(&other));
        assert_eq!(ids(&preview(json!({ "filter_min_confidence": 0.8 }))), [high.clone(), other.clone()]);
        assert_eq!(ids(&preview(json!({ "filter_min_trust_score": 0.31 }))), Vec::<String>::new());
        assert_eq!(ids(&preview(json!({ "filter_domain": "elsewhere" }))), Vec::<String>::new());
        let seen = preview(json!({ "filter_min_confidence": 0.8 }));
        assert!(seen.get("batch_id").is_none() && seen["preview"] == true && seen["count"] == 2, "{seen}");
        // One more came: what was seen is not what would be decided.
        let newer = sure(desk, 0.9);
        let decide = |digest: &Value| json!({ "filter_min_confidence": 0.8, "feedback": "f", "expected_set": digest });
        assert_code(&no(desk, &owner, "bulk_approve", decide(&seen["set_digest"])), Code::Conflict);
        let seen = preview(json!({ "filter_min_confidence": 0.8 }));
        assert_eq!(ids(&seen), [high.clone(), other, newer]);
        let batch = ok(desk, &owner, "bulk_approve", decide(&seen["set_digest"]));
        assert_eq!((&batch["approved"], &batch["count"]), (&json!(3), &json!(3)));
        assert_eq!(ok(desk, &owner, "get_request", json!({ "request_id": low }))["request"]["state"], "pending");
        assert!(is(&ok(desk, &SALES, "check_trust", json!({ "domain": "crm" }))["trust_score"], 0.34));
        assert!(is(&ok(desk, &SUPPORT, "check_trust", json!({ "domain": "crm" }))["trust_score"], 0.32));
        assert_eq!(ok(desk, &owner, "get_request", json!({ "request_id": high }))["request"]["batch_id"], batch["batch_id"]);
        // Nothing fits: nothing happened.
        let none = ok(desk, &owner, "bulk_approve", json!({ "filter_domain": "elsewhere", "feedback": "f" }));
        assert_eq!((&none["count"], none.get("batch_id")), (&json!(0), None));
        assert_eq!(told(desk, &owner, "batch.decided").len(), 1);
        sound(desk);
    }

    fn all_or_nothing_and_errors_one_by_one(desk: &TestDesk) {
        let owner = desk.claim();
        let (a, b) = (proposed(desk, &SALES, "crm"), text(&super::propose(desk, &SALES, "crm", json!({ "owner": "me" })), "proposal_id"));
        in_force(desk, "
policies:
  - id: closed
    rules: [{ field: owner, constraint: readonly, reason: owners are set by people }]
mappings: [{ agent_id: '*', domain: '*', policy_id: closed }]
");
        let refusal = no(desk, &owner, "bulk_approve", json!({ "feedback": "f", "all_or_nothing": true }));
        assert!(refusal.code == Code::Conflict && refusal.message.contains(&b), "{refusal}");
        let state = |id: &str| ok(desk, &owner, "get_request", json!({ "request_id": id }))["request"]["state"].clone();
        assert_eq!((state(&a), state(&b)), (json!("pending"), json!("pending")));
        assert!(is(&ok(desk, &SALES, "check_trust", json!({ "domain": "crm" }))["trust_score"], 0.3));
        let batch = ok(desk, &owner, "bulk_approve", json!({ "feedback": "f" }));
        assert_eq!((&batch["approved"], &batch["error_count"], &batch["errors"][0]["proposal_id"]), (&json!(1), &json!(1), &json!(b)), "{batch}");
        assert_eq!((state(&a), state(&b)), (json!("approved"), json!("pending")));
        let rejected = ok(desk, &owner, "bulk_reject", json!({ "filter_agent_id": "sales", "override_type": "policy_change", "description": "the rule is new" }));
        assert_eq!((&rejected["rejected"], &rejected["error_count"]), (&json!(1), &json!(0)), "{rejected}");
        assert_eq!(state(&b), json!("rejected"));
        assert!(is(&ok(desk, &SALES, "check_trust", json!({ "domain": "crm" }))["trust_score"], 0.32));
        sound(desk);
    }

    fn a_batch_is_within_the_persons_own_domains(desk: &TestDesk) {
        let owner = desk.claim();
        let invitation = desk.call(&owner, "desk_person_invite", json!({ "name": "Ann", "role": "approver", "domains": ["crm"] })).unwrap();
        let accepted = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": invitation["code"], "passphrase": "battery staple" })).unwrap();
        let ann = Caller::Secret(text(&accepted, "session"));
        let (mine, others) = (proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "tickets"));
        let preview = ok(desk, &ann, "bulk_approve", json!({ "feedback": "f", "preview": true }));
        assert_eq!(ids(&preview), [mine]);
        let batch = ok(desk, &ann, "bulk_approve", json!({ "feedback": "f" }));
        assert_eq!(batch["approved"], 1);
        assert_eq!(ok(desk, &owner, "get_request", json!({ "request_id": others }))["request"]["state"], "pending");
        assert_code(&no(desk, &ann, "approve", json!({ "proposal_id": others })), Code::Forbidden);
    }

    fn one_that_a_person_must_not_decide_holds_up_no_others(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        let invitation = desk.call(&owner, "desk_person_invite", json!({ "name": "Ann", "role": "approver", "domains": ["*"] })).unwrap();
        desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": invitation["code"], "passphrase": "battery staple" })).unwrap();
        let asked = json!({ "agentId": "sales", "action": "delete_customer", "description": "x", "approvers": ["Ann"] });
        let own = desk.call_on(Surface::Rest, &owner, "agents_request_approval", asked).unwrap();
        let preview = |caller: &Caller| desk.call_on(Surface::Rest, caller, "cowork_bulk_approve", json!({ "feedback": "f", "preview": true }));
        let alone = preview(&owner).unwrap_err();
        assert!(alone.code == Code::Forbidden && alone.message.contains("you ask for it"), "with nothing else it says why: {alone}");
        let (mine, elsewhere) = (proposed(desk, &sales, "crm"), proposed(desk, &sales, "tickets"));
        assert_eq!(ids(&preview(&owner).unwrap()), [mine.clone(), elsewhere.clone()]);
        // A token decides where policy names its owner, and nowhere else.
        let token = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["cowork"] })).unwrap();
        let token = Caller::Secret(text(&token, "token"));
        assert_code(&preview(&token).unwrap_err(), Code::Forbidden);
        in_force(desk, "domains: { tickets: { authority: { token_deciders: [Owner] } } }");
        assert_eq!(ids(&preview(&token).unwrap()), std::slice::from_ref(&elsewhere));
        let batch = ok(desk, &owner, "bulk_approve", json!({ "feedback": "f", "all_or_nothing": true }));
        assert_eq!((&batch["approved"], &batch["error_count"]), (&json!(2), &json!(0)), "{batch}");
        let state = desk.call(&owner, "desk_request_get", json!({ "request": own["approvalId"] })).unwrap()["state"].clone();
        assert_eq!(state, "pending");
        sound(desk);
    }

    fn a_batch_with_something_of_high_risk_asks_for_the_passphrase_first(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "authority: { token_deciders: [Owner] }");
        let token = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["cowork"] })).unwrap();
        let token = Caller::Secret(text(&token, "token"));
        let (plain, grave) = (proposed(desk, &SALES, "crm"), text(&super::propose(desk, &SALES, "crm", json!({ "deal_stage": "won" })), "proposal_id"));
        let state = |id: &str| ok(desk, &owner, "get_request", json!({ "request_id": id }))["request"]["state"].clone();
        pass(desk, 120);
        for all_or_nothing in [true, false] {
            let refused = no(desk, &owner, "bulk_approve", json!({ "feedback": "f", "all_or_nothing": all_or_nothing }));
            assert!(refused.needs_presence && refused.code == Code::Forbidden, "{refused:?}");
            assert_eq!((state(&plain), state(&grave)), (json!("pending"), json!("pending")));
        }
        // A token has no passphrase to give: what it may decide it decides, and the rest it is told.
        let batch = ok(desk, &token, "bulk_approve", json!({ "feedback": "f" }));
        assert_eq!((&batch["approved"], &batch["error_count"], &batch["errors"][0]["proposal_id"]), (&json!(1), &json!(1), &json!(grave)), "{batch}");
        desk.call(&owner, "desk_show_presence", json!({ "passphrase": "correct horse" })).unwrap();
        let batch = ok(desk, &owner, "bulk_approve", json!({ "feedback": "f", "all_or_nothing": true }));
        assert_eq!((&batch["approved"], state(&grave)), (&json!(1), json!("approved")), "{batch}");
        sound(desk);
    }
}
