//! The cases that existing clients were tested with, as far as they concern tools: numbers 8 to 12 and 30 to 49. The
//! cases of trust (1 to 7) and policy (13 to 29) are where those rules are tested; here they are met through the tools.

use deskmate_core::Code;
use serde_json::json;
use testkit::{Caller, assert_code, both};

use super::{SALES, approve, in_force, is, kept_nowhere, no, ok, propose, proposed, text};

const MODES: [&str; 3] = ["act", "suggest", "escalate"];

const POLICIES: &str = "
policies:
  - id: crm-write
    description: Writes to the CRM
    rules:
      - { field: commission, constraint: value_range, min: 0, max: 50, reason: commission must be between 0 and 50 }
      - { field: deal_stage, constraint: enum, values: [new, qualified, proposal, won, lost], reason: unknown stage }
      - { field: owner, constraint: readonly, reason: owners are set by people }
      - { field: 'billing_*', constraint: high_risk, reason: billing needs a look }
  - id: support-write
    rules:
      - { field: priority, constraint: enum, values: [low, medium, high, critical] }
      - { field: escalation_reason, constraint: regex, pattern: '.{10,}' }
mappings:
  - { agent_id: crm-agent, domain: crm.deals, policy_id: crm-write }
  - { agent_id: crm-agent, domain: support.tickets, policy_id: support-write }
  - { agent_id: support-agent, domain: support.tickets, policy_id: support-write }
";

both! {
    fn case_8_to_12_proposals_and_trust(desk: &TestDesk) {
        let owner = desk.claim();
        let first = propose(desk, &SALES, "crm", json!({ "name": "x" }));
        assert_eq!(first["mode"], "escalate");
        let id = text(&first, "proposal_id");
        assert!(!text(&first, "action_id").is_empty());
        let approved = approve(desk, &owner, &id);
        assert!(is(&approved["previous_trust"], 0.3) && is(&approved["new_trust"], 0.32), "{approved}");
        assert_eq!(approved["trust_impact"], "+0.02");
        for streak in 1..=3 {
            let id = proposed(desk, &SALES, "crm");
            let input = json!({ "proposal_id": id, "action_description": "a", "override_type": "agent_wrong", "description": "wrong" });
            let overridden = ok(desk, &owner, "override", input);
            assert!(overridden["new_trust"].as_f64() < overridden["previous_trust"].as_f64(), "{overridden}");
            assert_eq!(ok(desk, &SALES, "check_trust", json!({ "domain": "crm" }))["consecutive_overrides"], streak);
        }
        in_force(desk, "authority: { volume_cap: 2 }");
        proposed(desk, &SALES, "other");
        proposed(desk, &SALES, "other");
        let full = propose(desk, &SALES, "other", json!({}));
        assert_eq!((&full["error"], &full["volume_cap_error"], &full["volume_cap"], &full["proposals_this_hour"]), (&json!(true), &json!(true), &json!(2), &json!(2)));
    }

    fn case_13_to_29_policies_met_through_the_tools(desk: &TestDesk) {
        in_force(desk, POLICIES);
        let crm = Caller::Agent("crm-agent");
        let support = Caller::Agent("support-agent");
        let validate = |caller: &Caller, domain: &str, field: &str, value: serde_json::Value| {
            ok(desk, caller, "validate_policy", json!({ "domain": domain, "field": field, "proposed_value": value }))
        };
        for (caller, domain, policy) in [(&crm, "crm.deals", "crm-write"), (&crm, "support.tickets", "support-write"), (&support, "support.tickets", "support-write")] {
            let answer = validate(caller, domain, "contact_name", json!("x"));
            assert_eq!((&answer["policy_id"], &answer["mapping_found"]), (&json!(policy), &json!(true)), "{answer}");
        }
        for (caller, domain) in [(support, "crm.deals"), (Caller::Agent("unknown-agent"), "crm.deals")] {
            let answer = validate(&caller, domain, "contact_name", json!("x"));
            assert_eq!(answer["mapping_found"], false, "{answer}");
        }
        let billing = validate(&crm, "crm.deals", "billing_address", json!("x"));
        assert!(!billing["violations"].as_array().unwrap().is_empty() && billing["hard_stop"] == false, "{billing}");
        assert_eq!(billing["violations"][0]["field"], "billing_address");
        assert_eq!(validate(&crm, "crm.deals", "owner", json!("x"))["hard_stop"], true);
        assert_eq!(validate(&crm, "crm.deals", "commission", json!(25))["hard_stop"], false);
        let beyond = validate(&crm, "crm.deals", "commission", json!(75));
        assert_eq!((&beyond["hard_stop"], &beyond["violations"][0]["severity"]), (&json!(true), &json!("hard_stop")), "{beyond}");
        assert_eq!(validate(&crm, "crm.deals", "deal_stage", json!("qualified"))["hard_stop"], false);
        assert_eq!(validate(&crm, "crm.deals", "deal_stage", json!("invalid_stage"))["hard_stop"], true);
        for value in [json!("x"), json!(7), json!(true), json!([1]), json!({ "first": "x" }), json!(null)] {
            assert_eq!(validate(&crm, "crm.deals", "contact_name", value)["valid"], true, "any JSON is taken");
        }
        assert_eq!(validate(&crm, "support.tickets", "escalation_reason", json!("short"))["hard_stop"], true);
    }

    fn case_30_to_33_in_open_mode_anybody_passes_unverified(desk: &TestDesk) {
        let status = ok(desk, &SALES, "status", json!({}));
        assert_eq!((&status["auth_mode"], &status["verified"]), (&json!("open"), &json!(false)));
        assert_eq!(desk.call(&Caller::Nobody, "desk_status", json!({})).unwrap()["agents"], 0);
        let mut input = proposal("crm");
        assert_eq!(ok(desk, &Caller::Agent("anybody"), "propose", input.clone())["verified"], false);
        // A name as the argument is enough where nobody says it otherwise.
        let unnamed = |input: serde_json::Value| {
            use deskmate_core::call::{Call, Credential, Outcome, Surface};
            let call = Call { credential: Credential::Named(None), surface: Surface::Mcp, operation: "cowork_propose".to_owned(), input };
            let (Outcome::Done(value) | Outcome::NotYet(value)) = testkit::wait(desk.desk.call(call)).unwrap().outcome;
            value
        };
        input["agent_id"] = json!("by-argument");
        assert_eq!(unnamed(input.clone())["verified"], false);
        // Whatever token goes along, nothing is proved by it; a blank one is none.
        let owner = desk.claim();
        let foreign = format!("sk-cowork-{}", "5e".repeat(24));
        let tokens = ["any-token-at-all", "", "  ", foreign.as_str()];
        for token in tokens {
            input["agent_token"] = json!(token);
            assert_eq!(unnamed(input.clone())["verified"], false, "{token:?}");
            assert_eq!(ok(desk, &Caller::Agent("by-argument"), "propose", input.clone())["verified"], false, "{token:?}");
        }
        kept_nowhere(desk, "any-token-at-all");
        kept_nowhere(desk, &foreign);
        // What has the form of a desk's own token is one or is refused, and whoever gave nothing stays nobody.
        input["agent_token"] = json!("dma_wrong");
        assert_code(&no(desk, &Caller::Agent("by-argument"), "propose", input.clone()), Code::Unauthenticated);
        input["agent_token"] = json!("any-token-at-all");
        assert_code(&no(desk, &Caller::Nobody, "propose", input.clone()), Code::Unauthenticated);
        desk.register(&owner, "registered");
        for token in tokens {
            input["agent_token"] = json!(token);
            assert_code(&no(desk, &Caller::Agent("by-argument"), "propose", input.clone()), Code::Unauthenticated);
        }
    }

    fn case_34_to_41_in_closed_mode_tokens_are_checked(desk: &TestDesk) {
        let owner = desk.claim();
        let crm = desk.register(&owner, "crm-agent");
        let support = desk.register(&owner, "support-agent");
        let status = ok(desk, &owner, "status", json!({}));
        assert_eq!(status["auth_mode"], "closed");
        assert_eq!(desk.call(&owner, "desk_status", json!({})).unwrap()["agents"], 2);
        let mut input = proposal("crm");
        input["agent_id"] = json!("crm-agent");
        assert_eq!(ok(desk, &crm, "propose", input.clone())["verified"], true);
        assert_eq!(ok(desk, &support, "propose", proposal("crm"))["verified"], true);
        // The token as an argument, as existing clients send it.
        let Caller::Secret(token) = &crm else { panic!("no token") };
        let mut with_token = input.clone();
        with_token["agent_token"] = json!(token);
        assert_eq!(ok(desk, &Caller::Agent("crm-agent"), "propose", with_token)["verified"], true);
        let mut wrong = input.clone();
        wrong["agent_token"] = json!("dma_wrong");
        assert_code(&no(desk, &Caller::Agent("crm-agent"), "propose", wrong), Code::Unauthenticated);
        assert_code(&no(desk, &Caller::Agent("crm-agent"), "propose", input.clone()), Code::Unauthenticated);
        assert_code(&no(desk, &Caller::Nobody, "propose", input.clone()), Code::Unauthenticated);
        // Another's id with a good token.
        input["agent_id"] = json!("nobody-known");
        assert_code(&no(desk, &crm, "propose", input), Code::Forbidden);
    }

    fn case_42_to_46_proposing_without_any_policy(desk: &TestDesk) {
        let plain = propose(desk, &SALES, "crm", json!({ "name": "x" }));
        assert!(plain.get("auth_error").is_none());
        assert_eq!(plain["mode"], "escalate");
        assert!(!text(&plain, "proposal_id").is_empty());
        // Case 44 changed by W14: a high-risk field only ever lowers the mode.
        let risky = propose(desk, &SALES, "crm", json!({ "deal_stage": "won" }));
        assert_eq!((&risky["mode"], &risky["high_risk_field"]), (&json!("escalate"), &json!(true)), "{risky}");
        assert!(plain["volume_cap"].as_i64() == Some(50) && plain["volume_remaining"].as_i64() == Some(49), "{plain}");
        assert_eq!((&plain["mapping_found"], &plain["policy_id"]), (&json!(false), &json!("default")), "{plain}");
    }

    fn case_47_check_trust(desk: &TestDesk) {
        let trust = ok(desk, &SALES, "check_trust", json!({ "domain": "crm", "field": "name" }));
        assert!(is(&trust["trust_score"], 0.3) && MODES.contains(&trust["mode"].as_str().unwrap()), "{trust}");
        assert_eq!((&trust["agent_id"], &trust["total_actions"], &trust["high_risk"]), (&json!("sales"), &json!(0), &json!(false)));
        assert_eq!(ok(desk, &SALES, "check_trust", json!({ "domain": "crm", "field": "billing_address" }))["high_risk"], true);
    }

    fn case_48_and_49_handoffs_there_and_back(desk: &TestDesk) {
        let owner = desk.claim();
        let start = ok(desk, &SALES, "check_handoff", json!({}));
        assert_eq!((&start["count"], &start["pending_instructions"]), (&json!(0), &json!([])));
        let handed = ok(desk, &SALES, "handoff", json!({
            "domain": "crm", "reason": "stuck", "confidence": 0.2, "attempted_actions": "[\"a\"]", "context": "{\"deal\": 1}", "handoff_mode": "escalate",
        }));
        let id = text(&handed, "handoff_id");
        let resolved = ok(desk, &owner, "resolve_handoff", json!({ "handoff_id": id, "resolution": "go on", "hand_back": true, "instructions": "call them" }));
        assert_eq!((&resolved["resolved"], &resolved["hand_back"], &resolved["instructions"]), (&json!(true), &json!(true), &json!("call them")));
        let back = ok(desk, &SALES, "check_handoff", json!({}));
        assert_eq!(back["count"], 1);
        let said = &back["pending_instructions"][0];
        assert_eq!((&said["handoff_id"], &said["instructions"], &said["hand_back"], &said["original_reason"]), (&json!(id), &json!("call them"), &json!(true), &json!("stuck")));
        super::sound(desk);
    }
}

fn proposal(domain: &str) -> serde_json::Value {
    super::proposal(domain, json!({ "name": "x" }))
}
