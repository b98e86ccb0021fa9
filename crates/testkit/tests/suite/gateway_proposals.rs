//! Calls of servers behind the desk that name the proposal which they carry out, on both engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use deskmate_core::call::{Answer, Call, Credential, Cx, Surface};
use deskmate_core::request::Outcome;
use deskmate_core::{Code, Error};
use deskmate_db::Engine;
use serde_json::json;
use testkit::{Caller, assert_code, both};

use super::gateway::{MOUNTS, end, people, propose, propose_in, text, told};

both! {
    fn a_call_that_is_what_was_approved_uses_that_grant(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let arguments = json!({ "to": "a@example.org" });
        let id = propose(desk, &owner, &agent, arguments.clone());
        let other = desk.call(&agent, "gateway_call", json!({ "mount": "mail", "tool": "send_email", "arguments": { "to": "b@example.org" }, "proposal_id": id })).unwrap();
        assert_eq!(other["state"], json!("held"), "what differs is decided as new: {other}");
        assert_eq!(told(desk, &owner, "call.mismatched").len(), 1);
        let input = json!({ "mount": "mail", "tool": "send_email", "arguments": arguments, "proposal_id": id });
        let passed = desk.call(&agent, "gateway_call", input.clone()).unwrap();
        assert_eq!(passed["state"], json!("passed"), "{passed}");
        end(desk, &text(&passed, "call_id"), Outcome::Done, None);
        let closed = desk.call(&owner, "desk_request_get", json!({ "request": id })).unwrap();
        assert_eq!(closed["state"], json!("done"), "{closed}");
        assert_eq!(desk.call(&agent, "gateway_call", input).unwrap()["state"], json!("held"), "a grant works once");
        assert!(desk.verify().findings.is_empty());
    }

    fn a_call_that_names_its_proposal_costs_what_its_mount_says(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let dear = MOUNTS.replace("hide: [debug] }", "hide: [debug], cost: 2 }");
        desk.call(&owner, "desk_policy_apply", json!({ "document": format!("{dear}authority: {{ cost_per_day: 5 }}\n") })).unwrap();
        let spent = || desk.call(&owner, "desk_meter_get", json!({ "agent": "code" })).unwrap()["cost_day"].clone();
        let named = |number: u32| {
            let arguments = json!({ "to": format!("a{number}@example.org") });
            let id = propose(desk, &owner, &agent, arguments.clone());
            (json!({ "mount": "mail", "tool": "send_email", "arguments": arguments, "proposal_id": id }), id)
        };
        for number in 1..=2 {
            assert_eq!(desk.call(&agent, "gateway_call", named(number).0).unwrap()["state"], json!("passed"));
            assert_eq!(spent(), json!(2.0 * f64::from(number)), "the proposal said nothing of it");
        }
        let (third, id) = named(3);
        let denied = desk.call(&agent, "gateway_call", third).unwrap();
        assert!(denied["state"] == "denied" && text(&denied, "message").contains("cost of this day"), "{denied}");
        let kept = desk.call(&owner, "desk_request_get", json!({ "request": id })).unwrap();
        assert_eq!((spent(), &kept["state"]), (json!(4.0), &json!("approved")), "its grant is not used up");
        // What the proposal said was counted with it.
        let arguments = json!({ "to": "b@example.org" });
        let proposal = json!({ "domain": "gateway.mail", "action": "send_email", "target": "mail", "proposed_change": arguments, "confidence": 0.9, "reasoning": "they asked", "cost": 1 });
        desk.call(&owner, "desk_policy_apply", json!({ "document": "authority: { cost_per_day: 50 }\n" })).unwrap();
        let id = text(&desk.call(&agent, "cowork_propose", proposal).unwrap(), "proposal_id");
        desk.call(&owner, "desk_request_approve", json!({ "request": id })).unwrap();
        assert_eq!(spent(), json!(5.0));
        desk.call(&agent, "gateway_call", json!({ "mount": "mail", "tool": "send_email", "arguments": arguments, "proposal_id": id })).unwrap();
        assert_eq!(spent(), json!(6.0));
        assert!(desk.verify().findings.is_empty());
    }

    fn a_second_look_that_fails_takes_its_call_back_and_is_tried_again(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let Caller::Secret(secret) = &agent else { panic!("an agent with a token") };
        let call = || Call {
            credential: Credential::Secret { secret: secret.clone(), proved: true },
            surface: Surface::Mcp,
            operation: "gateway_call".to_owned(),
            input: json!({ "mount": "mail", "tool": "read_mail", "arguments": {} }),
        };
        let fails = |_: &mut Cx<'_, '_>, _: &Answer| Err::<(), Error>(Error::new(Code::Unavailable, "away"));
        assert_code(&testkit::wait(desk.desk.call_and(call(), fails)).unwrap_err(), Code::Unavailable);
        assert!(told(desk, &owner, "call.passed").is_empty(), "nothing is kept of it");
        if desk.desk.db.engine() != Engine::Postgres {
            return;
        }
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        let conflicts = move |cx: &mut Cx<'_, '_>, _: &Answer| {
            if counted.fetch_add(1, Ordering::Relaxed) == 0 {
                cx.tx.execute("do $$ begin raise exception using errcode = '40001'; end $$", &[])?;
            }
            Ok(())
        };
        testkit::wait(desk.desk.call_and(call(), conflicts)).unwrap();
        assert_eq!((tries.load(Ordering::Relaxed), told(desk, &owner, "call.passed").len()), (2, 1));
    }

    fn an_approval_answers_the_rules_under_which_it_was_given_and_no_others(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let with = |rules: &str| desk.call(&owner, "desk_policy_apply", json!({ "document": format!("{MOUNTS}{rules}") })).unwrap();
        let asks = |name: &str, over: &str| format!("  - {{ name: {name}, match: {{ {over} }}, effect: require_approval, message: people see it }}\n");
        let outward = asks("outward", "domain: gateway.mail");
        with(&outward);
        let arguments = json!({ "to": "a@example.org" });
        let named = |id: &str| desk.call(&agent, "gateway_call", json!({ "mount": "mail", "tool": "send_email", "arguments": arguments, "proposal_id": id })).unwrap();
        let passed = named(&propose(desk, &owner, &agent, arguments.clone()));
        assert_eq!(passed["state"], json!("passed"), "people were asked because of this rule: {passed}");
        assert!(told(desk, &owner, "call.mismatched").is_empty());
        end(desk, &text(&passed, "call_id"), Outcome::Done, None);
        // A rule that is newer than the approval, and is about the call alone, is answered by nobody yet.
        let id = propose(desk, &owner, &agent, arguments.clone());
        with(&format!("{outward}{}", asks("sending", "kind: email.send")));
        assert_eq!(named(&id)["state"], json!("held"));
        let why = told(desk, &owner, "call.mismatched");
        assert!(why.len() == 1 && why[0].to_string().contains("the rule sending asks for a person"), "{why:?}");
        assert_eq!(desk.call(&owner, "desk_request_get", json!({ "request": id })).unwrap()["state"], json!("approved"), "the approval stays");
        // Nor does an approval help where the call is forbidden.
        with(&format!("{outward}  - {{ name: quiet, match: {{ kind: email.send }}, effect: deny, message: no mail today }}\n"));
        let other = json!({ "to": "c@example.org" });
        let id = propose(desk, &owner, &agent, other.clone());
        let denied = desk.call(&agent, "gateway_call", json!({ "mount": "mail", "tool": "send_email", "arguments": other, "proposal_id": id })).unwrap();
        assert_eq!(denied["state"], json!("denied"), "{denied}");
        assert_eq!(told(desk, &owner, "call.mismatched").len(), 2);
        assert!(desk.verify().findings.is_empty());
    }

    fn an_approval_in_another_domain_is_none_for_a_call(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let arguments = json!({ "to": "a@example.org" });
        let id = propose_in("harmless", desk, &owner, &agent, arguments.clone());
        let input = json!({ "mount": "mail", "tool": "send_email", "arguments": arguments, "proposal_id": id });
        assert_eq!(desk.call(&agent, "gateway_call", input).unwrap()["state"], json!("held"), "who may approve goes by the domain");
        assert_eq!(told(desk, &owner, "call.mismatched").len(), 1);
    }
}
