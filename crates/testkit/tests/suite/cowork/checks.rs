//! What must hold from outside, met through the tools: caps, whole changes, unmapped pairs.

use std::sync::Barrier;

use deskmate_core::call::{Call, Credential, Outcome, Surface};
use serde_json::{Value, json};
use testkit::{both, wait};

use super::{SALES, approve, in_force, is, ok, pass, proposal, propose, proposed, sound, told, trusted};

const CRM: &str = "
policies:
  - id: crm
    rules: [{ field: amount, constraint: value_range, min: 0, max: 500000, reason: at most half a million }]
mappings: [{ agent_id: sales, domain: crm, policy_id: crm }]
";

const FIELDS: &str = "
policies:
  - id: crm
    rules:
      - { field: discount, constraint: high_risk }
      - { field: id, constraint: readonly }
      - { field: amount, constraint: value_range, min: 0, max: 500000 }
      - { name: no-large-sums, when: args.amount > 1000, effect: deny, message: ask first }
      - { name: no-cards, when: holds('card'), effect: deny, message: no cards }
      - { name: with-a-ticket, when: '!has(args.ticket)', effect: deny, message: name the ticket }
      - { name: not-the-boss, when: \"'boss' in changed\", effect: deny, message: the boss stays }
      - { name: no-sums, when: \"largest('sum') > 5.0 || texts.exists(text, text == 'x') || recipients.size() > 3\", effect: deny, message: too much }
mappings: [{ agent_id: sales, domain: crm, policy_id: crm }]
";

both! {
    fn a_value_is_judged_as_it_would_be_in_a_proposal(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "
policies:
  - id: crm
    rules:
      - { field: level, constraint: enum, values: [1, 2, 3] }
      - { field: open, constraint: enum, values: [true] }
      - { field: stage, constraint: enum, values: [won, lost] }
mappings: [{ agent_id: sales, domain: crm, policy_id: crm }]
");
        let asks = |field: &str, given: Value| {
            let mut input = json!({ "agent_id": "sales", "domain": "crm", "field": field });
            input.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
            ok(desk, &owner, "validate_policy", input)
        };
        let judged = [("level", json!(3), true), ("level", json!("3"), false), ("open", json!(true), true), ("open", json!("true"), false), ("stage", json!(null), false)];
        for (field, value, passes) in judged {
            let (told, made) = (asks(field, json!({ "proposed_value": value })), propose(desk, &SALES, "crm", json!({ field: value })));
            assert_eq!((&told["valid"], made["error"] != true), (&json!(passes), passes), "{field} {value}: {told} {made}");
            assert_eq!(told["violations"].as_array().unwrap().is_empty(), passes, "{told}");
        }
        let reason = |given: Value| asks("stage", given)["violations"][0]["reason"].clone();
        assert_eq!(reason(json!({ "proposed_value": null })), "the value of stage is null");
        assert_eq!(reason(json!({})), "the value of stage is missing");
    }

    fn trust_is_shown_with_the_rules_about_a_field(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        trusted(desk, &owner, &sales, "crm");
        in_force(desk, FIELDS);
        let of = |field: Option<&str>| {
            let trust = ok(desk, &sales, "check_trust", json!({ "domain": "crm", "field": field }));
            (trust["mode"].as_str().unwrap().to_owned(), trust["high_risk"].as_bool().unwrap())
        };
        let is = |mode: &str, high_risk: bool| (mode.to_owned(), high_risk);
        // What asks for values is asked with them.
        assert_eq!(of(None), is("act", false));
        assert_eq!(of(Some("name")), is("act", false));
        assert_eq!(of(Some("amount")), is("act", false));
        assert_eq!(of(Some("discount")), is("suggest", true), "a policy's own high-risk field");
        assert_eq!(of(Some("id")), is("deny", false), "a policy's own field that stays as it is");
        assert_eq!(of(Some("boss")), is("deny", false), "which field is changed is known");
        assert_eq!(of(Some("billing_address")), is("suggest", true), "the desk's own list");
        // The status says the same, and so does the answer to an approval.
        let status = ok(desk, &owner, "status", json!({}));
        assert_eq!(status["trust_scores"][0]["mode"], "act", "{status}");
        let waits = propose(desk, &sales, "crm", json!({ "discount": 5, "ticket": 7, "amount": 5 }));
        assert_eq!(waits["mode"], "suggest", "{waits}");
        assert_eq!(approve(desk, &owner, waits["proposal_id"].as_str().unwrap())["new_mode"], "act");
        assert_eq!(propose(desk, &sales, "crm", json!({ "name": "x", "amount": 5 }))["error"], true, "without a ticket it is denied all the same");
    }

    fn fifty_proposals_pass_and_the_next_is_refused(desk: &TestDesk) {
        let owner = desk.claim();
        for left in (0..50).rev() {
            assert_eq!(propose(desk, &SALES, "crm", json!({ "name": "x" }))["volume_remaining"], left);
        }
        let full = propose(desk, &SALES, "crm", json!({ "name": "x" }));
        assert_eq!((&full["error"], &full["volume_cap_error"], &full["volume_cap"], &full["proposals_this_hour"]), (&json!(true), &json!(true), &json!(50), &json!(50)));
        assert!(full.get("proposal_id").is_none() && !full["message"].as_str().unwrap().is_empty());
        // Neither another domain nor a correction has to do with it.
        assert_eq!(propose(desk, &SALES, "tickets", json!({ "name": "x" }))["volume_remaining"], 49);
        ok(desk, &owner, "override", json!({ "agent_id": "sales", "domain": "tickets", "action_description": "a", "override_type": "edge_case", "description": "d" }));
        assert_eq!(propose(desk, &SALES, "tickets", json!({ "name": "x" }))["volume_remaining"], 48);
        pass(desk, 61 * 60);
        assert_eq!(propose(desk, &SALES, "crm", json!({ "name": "x" }))["volume_remaining"], 49);
    }

    fn what_remains_is_what_the_nearest_limit_leaves(desk: &TestDesk) {
        in_force(desk, "authority: { volume_cap: 5, volume_cap_per_agent: 3 }");
        let left = |domain: &str| propose(desk, &SALES, domain, json!({ "name": "x" }))["volume_remaining"].clone();
        assert_eq!([left("crm"), left("tickets"), left("crm")], [2, 1, 0]);
        assert_eq!(propose(desk, &SALES, "other", json!({ "name": "x" }))["volume_cap_error"], true);
        in_force(desk, "authority: { volume_cap: 5, volume_cap_per_agent: 50, calls_per_day: 5 }");
        assert_eq!([left("other"), left("crm")], [1, 0]);
        in_force(desk, "authority: { volume_cap: 5, volume_cap_per_agent: 50, calls_per_day: 100 }");
        assert_eq!(left("tickets"), 3);
    }

    fn clients_at_once_never_exceed_the_cap_together(desk: &TestDesk) {
        in_force(desk, "authority: { volume_cap: 10 }");
        let barrier = Barrier::new(4);
        let passed: usize = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        let one = || {
                            let call = Call {
                                credential: Credential::Named(Some("sales".to_owned())),
                                surface: Surface::Mcp,
                                operation: "cowork_propose".to_owned(),
                                input: proposal("crm", json!({ "name": "x" })),
                            };
                            match wait(desk.desk.call(call)).unwrap().outcome {
                                Outcome::Done(answer) | Outcome::NotYet(answer) => answer["proposal_id"].is_string(),
                            }
                        };
                        (0..5).filter(|_| one()).count()
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        assert_eq!(passed, 10);
        desk.seal();
        assert_eq!(ok(desk, &SALES, "status", json!({}))["pending_proposals"], 10);
        sound(desk);
    }

    fn a_change_is_looked_at_whole_however_it_is_written(desk: &TestDesk) {
        in_force(desk, CRM);
        let with_field = |change: Value, field: Option<&str>| {
            let mut input = proposal("crm", change);
            if let Some(field) = field {
                input["field"] = json!(field);
            }
            ok(desk, &SALES, "propose", input)
        };
        for (change, field) in [
            (json!({ "amount": 750_000 }), None),
            (json!({ "amount": 750_000 }), Some("amount")),
            (json!({ "amount": "750000" }), None),
            (json!({ "amount": 750_000 }), Some("name")),
            (json!({ "value": 750_000 }), Some("amount")),
            (json!({ "deal": { "amount": 750_000 } }), None),
        ] {
            let answer = with_field(change.clone(), field);
            assert_eq!((&answer["error"], &answer["policy_error"]), (&json!(true), &json!(true)), "{change} {field:?}: {answer}");
            assert_eq!(answer["violations"][0]["reason"], "at most half a million", "{answer}");
        }
        assert_eq!(with_field(json!({ "amount": 500_000 }), None)["mapping_found"], true);
    }

    fn an_unmapped_pair_is_held_and_recorded(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        super::trusted(desk, &owner, &sales, "tickets");
        assert_eq!(propose(desk, &sales, "tickets", json!({ "name": "x" }))["mode"], "act");
        in_force(desk, CRM);
        let held = propose(desk, &sales, "tickets", json!({ "name": "x" }));
        assert_eq!((&held["mode"], &held["mapping_found"], held.get("policy_id")), (&json!("escalate"), &json!(false), None), "{held}");
        let created = told(desk, &owner, "request.created");
        assert_eq!((&created[0]["facts"]["request"], &created[0]["facts"]["mode"]), (&held["proposal_id"], &json!("escalate")));
        assert_eq!(ok(desk, &owner, "list_requests", json!({ "state": "pending" }))["requests"][0]["request_id"], held["proposal_id"]);
    }

    fn an_approval_between_two_corrections_ends_the_streak(desk: &TestDesk) {
        let owner = desk.claim();
        let correct = |kind: &str| {
            let id = proposed(desk, &SALES, "crm");
            ok(desk, &owner, "override", json!({ "proposal_id": id, "action_description": "a", "override_type": kind, "description": "d" }))
        };
        correct("agent_wrong");
        let id = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &id);
        assert_eq!(correct("agent_wrong")["demoted"], false);
        assert_eq!(ok(desk, &SALES, "check_trust", json!({ "domain": "crm" }))["consecutive_overrides"], 1);
        // The rules changed three times: no demotion, no loss.
        for _ in 0..3 {
            let answer = correct("policy_change");
            assert!(answer["demoted"] == false && is(&answer["trust_impact"], 0.0), "{answer}");
        }
        correct("agent_wrong");
        let third = correct("agent_wrong");
        assert!(third["demoted"] == true && is(&third["trust_impact"], -0.18), "{third}");
    }
}
