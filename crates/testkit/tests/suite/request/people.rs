//! Who decides.

use deskmate_core::Code;
use deskmate_core::call::{Access, Credential, Registry, Surface};
use deskmate_core::policy::Mode;
use deskmate_core::request::{New, State};
use serde_json::json;
use testkit::{Caller, assert_code, both, wait};

use super::support::{approve, code, decision, find, invite, of_person, pass, pending, person_id, proposal, reject, show_presence, sound, submit};

const DECIDING: [(&str, &str); 6] = [
    ("desk_request_approve", "{}"),
    ("desk_request_reject", r#"{"reason":"no"}"#),
    ("desk_request_ask", r#"{"question":"why?"}"#),
    ("desk_request_delegate", r#"{"to":"Owner"}"#),
    ("desk_request_snooze", "{}"),
    ("desk_request_undo", "{}"),
];

fn input(text: &str, request: &str) -> serde_json::Value {
    let mut input: serde_json::Value = serde_json::from_str(text).unwrap();
    input["request"] = json!(request);
    input
}

both! {
    fn w4_an_agent_never_decides(desk: &TestDesk) {
        let owner = desk.claim();
        let code_agent = desk.register(&owner, "code");
        let made = pending(desk);
        for (operation, text) in DECIDING {
            for surface in [Surface::Mcp, Surface::Rest, Surface::Cli, Surface::Web] {
                let refused = desk.call_on(surface, &code_agent, operation, input(text, &made.id)).unwrap_err();
                assert_code(&refused, Code::Forbidden);
                let hint = refused.hint.unwrap();
                assert!(hint.contains("deskmate inbox") && hint.contains("inbox page") && hint.contains("/api/"), "{hint}");
            }
        }
        assert_eq!(find(desk, &made.id).state, State::Pending);
    }

    fn every_deciding_operation_is_covered(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        let deciding: Vec<String> = Registry::new().all().filter(|op| matches!(op.access, Access::Decides(_))).map(|op| op.full_name()).collect();
        let known: Vec<&str> = DECIDING.iter().map(|(name, _)| *name).collect();
        for name in deciding.iter().filter(|name| name.starts_with("desk_request")) {
            assert!(known.contains(&name.as_str()), "{name} is missing here");
        }
        for (operation, text) in DECIDING {
            let refused = desk.call_on(Surface::Mcp, &owner, operation, input(text, &made.id)).unwrap_err();
            assert_code(&refused, Code::Forbidden);
            assert!(refused.message.contains("over MCP"), "{operation}: {refused}");
        }
    }

    fn the_desk_itself_does_not_decide(desk: &TestDesk) {
        desk.claim();
        let made = pending(desk);
        for (operation, text) in DECIDING {
            assert_code(&desk.refused(&Caller::System, operation, input(text, &made.id)), Code::Forbidden);
        }
    }

    fn a_token_decides_only_where_policy_names_it(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        let token = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["*"] })).unwrap();
        let token = Caller::Secret(token["token"].as_str().unwrap().to_owned());
        for surface in [Surface::Mcp, Surface::Rest] {
            let refused = desk.call_on(surface, &token, "desk_request_approve", json!({ "request": made.id })).unwrap_err();
            assert_code(&refused, Code::Forbidden);
            assert!(refused.message.contains("token_deciders"), "{refused}");
        }
    }

    fn deciding_needs_presence(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        pass(desk, 6 * 60);
        assert_code(&code(approve(desk, &owner, &made.id)), Code::Forbidden);
        let Caller::Secret(secret) = owner.clone() else { unreachable!() };
        show_presence(desk, &owner);
        let credential = Credential::Secret { secret, proved: false };
        let call = deskmate_core::call::Call { credential, surface: Surface::Web, operation: "desk_request_approve".to_owned(), input: json!({ "request": made.id }) };
        assert_code(&wait(desk.desk.call(call)).unwrap_err(), Code::Forbidden);
        approve(desk, &owner, &made.id).unwrap();
    }

    fn what_is_of_high_risk_asks_for_the_passphrase_again(desk: &TestDesk) {
        let owner = desk.claim();
        for risk in ["high", "critical"] {
            show_presence(desk, &owner);
            let mut grave = decision(Mode::Suggest);
            grave.risk = risk.to_owned();
            let made = submit(desk, "code", &New { decision: grave, ..proposal() });
            pass(desk, 61);
            let refused = code(approve(desk, &owner, &made.id));
            assert_code(&refused, Code::Forbidden);
            assert!(refused.needs_presence && refused.hint.unwrap().contains("desk_show_presence"));
            let other = pending(desk);
            approve(desk, &owner, &other.id).unwrap();
            let not = submit(desk, "code", &New { decision: { let mut grave = decision(Mode::Suggest); grave.risk = risk.to_owned(); grave }, ..proposal() });
            reject(desk, &owner, &not.id).unwrap();
            show_presence(desk, &owner);
            approve(desk, &owner, &made.id).unwrap();
        }
    }

    fn remembering_an_approval_loosens_so_it_asks_again(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        pass(desk, 61);
        let refused = desk.refused(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "session" }));
        assert_code(&refused, Code::Forbidden);
        assert_eq!(find(desk, &made.id).state, State::Pending, "nothing is half done");
        show_presence(desk, &owner);
        desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "session" })).unwrap();
    }

    fn roles_hold_by_domain(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "approver", &["crm.deals"]);
        let ben = invite(desk, &owner, "Ben", "approver", &["billing", "crm.leads"]);
        let cid = invite(desk, &owner, "Cid", "approver", &["crm.*"]);
        let dora = invite(desk, &owner, "Dora", "member", &[]);
        let eve = invite(desk, &owner, "Eve", "viewer", &[]);
        for (person, may) in [(&ann, true), (&ben, false), (&cid, true), (&dora, false), (&eve, false)] {
            let made = pending(desk);
            for (operation, text) in DECIDING.iter().filter(|(name, _)| may != (*name == "desk_request_undo")) {
                let done = if may && *operation != "desk_request_approve" { continue } else { desk.call(person, operation, input(text, &made.id)) };
                match done {
                    Ok(_) => assert!(may, "{operation}"),
                    Err(error) => { assert!(!may, "{operation}: {error}"); assert_code(&error, Code::Forbidden); }
                }
            }
            assert!(desk.call(person, "desk_request_get", json!({ "request": made.id })).is_ok(), "people see all");
        }
        sound(desk);
    }

    fn policy_names_who_approves(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "approver", &["*"]);
        let mut named = decision(Mode::Suggest);
        named.needs.approvers = vec!["Ann".to_owned()];
        let made = submit(desk, "code", &New { decision: named.clone(), ..proposal() });
        assert_code(&code(approve(desk, &owner, &made.id)), Code::Forbidden);
        assert_code(&code(reject(desk, &owner, &made.id)), Code::Forbidden);
        approve(desk, &ann, &made.id).unwrap();
        named.needs.approvers = vec![person_id(desk, &owner)];
        let made = submit(desk, "code", &New { decision: named, ..proposal() });
        approve(desk, &owner, &made.id).unwrap();
    }

    fn who_asks_does_not_count(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "owner", &[]);
        let id = person_id(desk, &owner);
        let new = New { requester: Some(of_person(&id)), ..proposal() };
        let made = desk.act(move |cx| deskmate_core::request::submit(cx, new.clone())).unwrap();
        assert_code(&code(approve(desk, &owner, &made.id)), Code::Forbidden);
        assert_code(&desk.refused(&ann, "desk_request_delegate", json!({ "request": made.id, "to": "Owner" })), Code::Invalid);
        approve(desk, &ann, &made.id).unwrap();
        sound(desk);
    }
}
