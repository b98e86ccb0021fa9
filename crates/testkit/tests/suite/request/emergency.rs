//! When those who should decide are away: stand-ins, policy that sends on what nobody answered, and breaking the glass.

use deskmate_core::Code;
use deskmate_core::call::Surface;
use deskmate_core::policy::Mode;
use deskmate_core::request::{New, Request, State};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::support::{approve, code, decision, find, get, go, invite, kinds, of_person, pass, person_id, proposal, reject, show_presence, sound, submit};

/// Puts settings in force, as an owner who is there.
fn settings(desk: &TestDesk, owner: &Caller, document: &str) {
    show_presence(desk, owner);
    desk.call(owner, "desk_policy_apply", json!({ "document": document })).unwrap();
}

fn asking_for(quorum: u32, approvers: &[&str]) -> New {
    let mut needs = decision(Mode::Suggest);
    needs.needs.quorum = quorum;
    needs.needs.approvers = approvers.iter().map(|name| (*name).to_owned()).collect();
    New { decision: needs, ..proposal() }
}

fn stand_in(desk: &TestDesk, person: &Caller, name: &str, until: &str) -> deskmate_core::Result<Value> {
    show_presence(desk, person);
    desk.call(person, "desk_stand_in_name", json!({ "stand_in": name, "until": until }))
}

/// Two hours from the beginning of the tests' time.
fn later(desk: &TestDesk, seconds: i64) -> String {
    deskmate_core::format_time(deskmate_core::World::now(&*desk.world) + seconds * 1_000_000)
}

fn broken(desk: &TestDesk, person: &Caller, made: &Request, reason: &str) -> deskmate_core::Result<Value> {
    let digest = find(desk, &made.id).digest_hex();
    desk.call(person, "desk_request_break_glass", json!({ "request": made.id, "expected_digest": digest, "reason": reason }))
}

both! {
    fn a_stand_in_decides_in_a_persons_place_for_a_while_and_once(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "approver", &["crm.*"]);
        let bob = invite(desk, &owner, "Bob", "approver", &["crm.*"]);
        invite(desk, &owner, "Eve", "approver", &["billing"]);
        invite(desk, &owner, "Vera", "viewer", &[]);
        let made = submit(desk, "code", &asking_for(1, &["Ada"]));
        assert_code(&code(approve(desk, &bob, &made.id)), Code::Forbidden);
        for (name, until) in [("Ada", later(desk, 60)), ("Vera", later(desk, 60)), ("nobody", later(desk, 60)), ("Bob", later(desk, -1)), ("Bob", later(desk, 91 * 86_400))] {
            assert_code(&code(stand_in(desk, &ada, name, &until)), Code::Invalid);
        }
        stand_in(desk, &ada, "Bob", &later(desk, 3_600)).unwrap();
        assert_eq!(desk.call(&owner, "desk_stand_in_list", json!({})).unwrap()["stand_ins"][0]["person"], json!(person_id(desk, &ada)));
        assert_eq!(approve(desk, &bob, &made.id).unwrap()["approved"], true);
        // With Ada and the owner named and two needed, Bob takes Ada's place, and that place is taken once.
        let two = submit(desk, "code", &asking_for(2, &["Ada", "Owner"]));
        assert_eq!(approve(desk, &bob, &two.id).unwrap()["approved"], false);
        assert_eq!(approve(desk, &ada, &two.id).unwrap()["approved"], false, "the place was taken by Bob, and is Ada's own now");
        assert_eq!(approve(desk, &owner, &two.id).unwrap()["approved"], true);
        // A role is not handed on: Eve covers another domain.
        stand_in(desk, &ada, "Eve", &later(desk, 3_600)).unwrap();
        let third = submit(desk, "code", &asking_for(1, &["Ada"]));
        assert_code(&code(approve(desk, &bob, &third.id)), Code::Forbidden);
        stand_in(desk, &ada, "Bob", &later(desk, 3_600)).unwrap();
        pass(desk, 3_601);
        show_presence(desk, &bob);
        assert_code(&code(approve(desk, &bob, &third.id)), Code::Forbidden);
        stand_in(desk, &ada, "Bob", &later(desk, 3_600)).unwrap();
        assert_code(&code(desk.call(&bob, "desk_stand_in_end", json!({ "person": "Ada" }))), Code::Forbidden);
        show_presence(desk, &owner);
        desk.call(&owner, "desk_stand_in_end", json!({ "person": "Ada" })).unwrap();
        assert_code(&code(approve(desk, &bob, &third.id)), Code::Forbidden);
        sound(desk);
        desk.tamper("insert into stand_in (person, stand_in, until_at, named_at) select p.id, b.id, 9000000000000000, 1 from person p, person b where p.name = 'Ada' and b.name = 'Bob'");
        assert!(!desk.verify().sound, "a stand-in of whom the record does not tell");
    }

    fn nobody_stands_in_for_who_asked(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "approver", &["crm.*"]);
        let bob = invite(desk, &owner, "Bob", "approver", &["crm.*"]);
        stand_in(desk, &ada, "Bob", &later(desk, 3_600)).unwrap();
        let own = New { requester: Some(of_person(&person_id(desk, &ada))), ..asking_for(1, &["Ada", "Owner"]) };
        let made = submit(desk, "code", &own);
        assert_code(&code(approve(desk, &ada, &made.id)), Code::Forbidden);
        assert_code(&code(approve(desk, &bob, &made.id)), Code::Forbidden);
        approve(desk, &owner, &made.id).unwrap();
    }

    fn what_nobody_answers_also_goes_to_whom_policy_names(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "approver", &["crm.*"]);
        let bob = invite(desk, &owner, "Bob", "approver", &["crm.*"]);
        settings(desk, &owner, "authority: { escalate_seconds: 600, escalate_to: [Bob] }\n");
        let made = submit(desk, "code", &asking_for(1, &["Ada"]));
        assert_code(&code(approve(desk, &bob, &made.id)), Code::Forbidden);
        assert_eq!(desk.act(|cx| deskmate_core::request::escalate_due(cx, 10)).unwrap(), 0);
        pass(desk, 601);
        assert_eq!(desk.act(|cx| deskmate_core::request::escalate_due(cx, 10)).unwrap(), 1);
        let now = find(desk, &made.id);
        assert_eq!((now.state, now.assignee), (State::Pending, Some(person_id(desk, &bob))));
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "request.escalated" })).unwrap();
        assert_eq!(told["events"][0]["facts"]["told"], json!([person_id(desk, &bob)]));
        show_presence(desk, &bob);
        assert_eq!(approve(desk, &bob, &made.id).unwrap()["approved"], true);
        // Ada decides as before.
        let other = submit(desk, "code", &asking_for(1, &["Ada"]));
        show_presence(desk, &ada);
        approve(desk, &ada, &other.id).unwrap();
        // Without a name it goes to the owners; without the setting nothing does.
        settings(desk, &owner, "authority: { escalate_seconds: 600 }\n");
        let third = submit(desk, "code", &proposal());
        pass(desk, 601);
        desk.act(|cx| deskmate_core::request::escalate_due(cx, 10)).unwrap();
        assert_eq!(find(desk, &third.id).assignee.as_deref(), Some("role:owner"));
        settings(desk, &owner, "authority: { volume_cap: 49 }\n");
        assert_eq!(submit(desk, "code", &proposal()).escalate_at, None);
        sound(desk);
    }

    fn breaking_the_glass_is_off_and_then_loud(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "approver", &["crm.*"]);
        let bob = invite(desk, &owner, "Bob", "approver", &["crm.*"]);
        invite(desk, &owner, "Eve", "approver", &["billing"]);
        let made = submit(desk, "code", &asking_for(3, &[]));
        show_presence(desk, &owner);
        let refused = code(broken(desk, &owner, &made, "the site is down"));
        assert_code(&refused, Code::Forbidden);
        assert!(refused.message.contains("policy lets nobody"), "{refused}");
        settings(desk, &owner, "authority: { break_glass: owner }\n");
        assert_eq!(get(desk, &owner, &made.id)["may_break_glass"], true);
        assert_eq!(get(desk, &ada, &made.id)["may_break_glass"], false);
        show_presence(desk, &ada);
        assert_code(&code(broken(desk, &ada, &made, "the site is down")), Code::Forbidden);
        assert_code(&code(broken(desk, &owner, &made, "  ")), Code::Invalid);
        assert_code(&code(desk.call(&owner, "desk_request_break_glass", json!({ "request": made.id, "expected_digest": "00", "reason": "x" }))), Code::Conflict);
        // A passphrase that was given a while ago is not enough, whatever the risk.
        pass(desk, 61);
        let stale = code(broken(desk, &owner, &made, "the site is down"));
        assert!(stale.needs_presence, "{stale}");
        show_presence(desk, &ada);
        approve(desk, &ada, &made.id).unwrap();
        show_presence(desk, &owner);
        let done = broken(desk, &owner, &made, "the site is down").unwrap();
        assert_eq!((&done["state"], &done["passed_over"]), (&json!("approved"), &json!([person_id(desk, &bob)])), "Ada had approved, Eve decides elsewhere: {done}");
        let seen = get(desk, &bob, &made.id);
        assert_eq!((&seen["break_glass"]["by"], &seen["reason"]), (&json!(person_id(desk, &owner)), &json!("the site is down")), "{seen}");
        assert_eq!(seen["may_break_glass"], false);
        assert!(kinds(desk, &owner, 8).contains(&"break_glass.used".to_owned()));
        let report = desk.call(&owner, "cowork_governance_report", json!({})).unwrap();
        let of = |kind: &str| report["governance_issues"].as_array().unwrap().iter().filter(|issue| issue["type"] == kind).count();
        assert_eq!((of("break_glass"), of("missing_approval")), (1, 0), "{report}");
        assert_eq!(go(desk, &made.id).action, "update", "what was approved so is done like anything else");
        sound(desk);
    }

    fn no_agent_token_link_or_batch_breaks_the_glass(desk: &TestDesk) {
        let owner = desk.claim();
        invite(desk, &owner, "Ada", "approver", &["crm.*"]);
        settings(desk, &owner, "authority: { break_glass: approver, token_deciders: [Owner] }\n");
        let agent = desk.register(&owner, "code");
        let made = submit(desk, "code", &asking_for(2, &[]));
        let input = json!({ "request": made.id, "expected_digest": made.digest_hex(), "reason": "now" });
        show_presence(desk, &owner);
        let token = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["*"] })).unwrap();
        let token = Caller::Secret(token["token"].as_str().unwrap().to_owned());
        for surface in [Surface::Mcp, Surface::Rest, Surface::Cli, Surface::Web] {
            for caller in [&agent, &token, &Caller::System] {
                assert_code(&desk.call_on(surface, caller, "desk_request_break_glass", input.clone()).unwrap_err(), Code::Forbidden);
            }
        }
        assert_code(&desk.call_on(Surface::Mcp, &owner, "desk_request_break_glass", input.clone()).unwrap_err(), Code::Forbidden);
        // Many at once only vote, and a link is not handed out for what needs several people.
        let page = desk.call(&owner, "cowork_bulk_approve", json!({ "feedback": "all of it" }));
        assert_ne!(find(desk, &made.id).state, State::Approved, "{page:?}");
        // The one who asked does not decide it, by this way either.
        let own = submit(desk, "code", &New { requester: Some(of_person(&person_id(desk, &owner))), ..asking_for(2, &[]) });
        show_presence(desk, &owner);
        assert_code(&code(broken(desk, &owner, &own, "now")), Code::Forbidden);
        // What needs nobody else is approved as usual.
        let plain = submit(desk, "code", &asking_for(1, &[]));
        let refused = code(broken(desk, &owner, &plain, "now"));
        assert_code(&refused, Code::Conflict);
        assert!(refused.hint.unwrap().contains("approve it"));
        reject(desk, &owner, &plain.id).unwrap();
        sound(desk);
    }

    fn named_approvers_are_passed_over_and_told(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "approver", &["crm.*"]);
        settings(desk, &owner, "authority: { break_glass: owner }\n");
        let made = submit(desk, "code", &asking_for(1, &["Ada"]));
        show_presence(desk, &owner);
        assert_code(&code(approve(desk, &owner, &made.id)), Code::Forbidden);
        let done = broken(desk, &owner, &made, "Ada cannot be reached").unwrap();
        assert_eq!(done["passed_over"], json!([person_id(desk, &ada)]));
        // Taken back, it waits anew, and is marked no more.
        desk.call(&owner, "desk_request_undo", json!({ "request": made.id })).unwrap();
        assert_eq!(get(desk, &ada, &made.id).get("break_glass"), None);
        sound(desk);
    }
}
