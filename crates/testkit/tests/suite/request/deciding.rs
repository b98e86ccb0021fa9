//! People's answers.

use deskmate_core::Code;
use deskmate_core::call::{Credential, Signed};
use deskmate_core::request::{self, New, State};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::support::{
    act, approve, as_agent, code, find, get, go, invite, kinds, pass, pending, person_id, proposal, reject, score, show_presence, sound, submit,
};

fn error_of(desk: &TestDesk, person: &Caller, operation: &str, input: Value) -> deskmate_core::Error {
    desk.refused(person, operation, input)
}

both! {
    fn w21_a_person_sees_everything_that_the_decision_needs(desk: &TestDesk) {
        let owner = desk.claim();
        let before = pending(desk);
        reject(desk, &owner, &before.id).unwrap();
        let made = pending(desk);
        let seen = get(desk, &owner, &made.id);
        assert_eq!(seen["requester"], "code");
        assert_eq!(seen["verified"], false);
        assert_eq!(seen["act"]["arguments"], json!({ "amount": 500 }));
        assert_eq!(seen["changes"], json!([{ "path": "/amount", "old": 100, "new": 500 }]));
        assert_eq!(seen["reasoning"], "the customer agreed");
        assert_eq!(seen["confidence"], 0.9);
        assert_eq!(seen["risk"], "medium");
        assert_eq!(seen["trust"]["sample_size"], 1);
        assert!(seen["trust"]["interval"].is_array());
        assert_eq!(seen["similar"][0]["request"], before.id.as_str());
        assert_eq!(seen["similar"][0]["state"], "rejected");
        assert_eq!(seen["similar"][0]["reason"], "not now");
        assert!(seen["expires_at"].is_string() && seen["digest"].as_str().unwrap().len() == 64);
    }

    fn w2_an_answer_counts_for_the_stored_agent_and_domain(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        assert!((score(desk) - 0.32).abs() < 1e-9);
        let other = desk.act(|cx| Ok(deskmate_core::trust::look(cx, "other", "crm.deals", false)?.score.to_f64())).unwrap();
        assert!((other - 0.3).abs() < 1e-9);
        // The input has no place for an agent or a domain at all; what existing clients send besides does not reach it.
        let refused = error_of(desk, &owner, "desk_request_approve", json!({ "request": made.id, "domain": "billing" }));
        assert_code(&refused, Code::Invalid);
    }

    fn w20_an_answer_counts_once(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        assert_code(&code(approve(desk, &owner, &made.id)), Code::Conflict);
        assert_code(&code(reject(desk, &owner, &made.id)), Code::Conflict);
        assert!((score(desk) - 0.32).abs() < 1e-9);
        let wrong = pending(desk);
        desk.call(&owner, "desk_request_reject", json!({ "request": wrong.id, "reason": "wrong deal", "type": "agent_wrong", "severity": "critical" })).unwrap();
        assert!((score(desk) - 0.12).abs() < 1e-9);
        assert_code(&code(reject(desk, &owner, &wrong.id)), Code::Conflict);
        sound(desk);
    }

    fn rejecting_needs_a_reason_and_a_known_type(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        for input in [json!({ "request": made.id }), json!({ "request": made.id, "reason": "  " })] {
            assert_eq!(error_of(desk, &owner, "desk_request_reject", input).field.as_deref(), Some("reason"));
        }
        let unknown = error_of(desk, &owner, "desk_request_reject", json!({ "request": made.id, "reason": "no", "type": "mood" }));
        assert_eq!(unknown.field.as_deref(), Some("type"));
        assert_eq!(find(desk, &made.id).state, State::Pending);
    }

    fn what_was_shown_is_what_is_approved(desk: &TestDesk) {
        let owner = desk.claim();
        let other = invite(desk, &owner, "Ann", "owner", &[]);
        let made = submit(desk, "code", &New { decision: quorum(2), ..proposal() });
        let seen = get(desk, &owner, &made.id)["digest"].clone();
        let edited = desk.call(&other, "desk_request_approve", json!({ "request": made.id, "edits": { "amount": 300 } })).unwrap();
        assert_ne!(edited["digest"], seen);
        let stale = error_of(desk, &owner, "desk_request_approve", json!({ "request": made.id, "expected_digest": seen }));
        assert_code(&stale, Code::Conflict);
        let now = desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "expected_digest": edited["digest"] })).unwrap();
        assert_eq!(now["approved"], true);
        assert_eq!(go(desk, &made.id).arguments, json!({ "amount": 300 }), "the agent gets what was approved");
        sound(desk);
    }

    fn a_domain_may_know_types_of_its_own(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        let seen = get(desk, &owner, &made.id);
        assert_eq!(seen["reason_types"], json!(["agent_wrong", "human_preference", "missing_context", "policy_change", "edge_case"]));
        assert_eq!(seen["usual_reason_type"], "human_preference");
        let own = "domains: { crm.deals: { feedback: { reason_types: [too_late, too_much], override_trust_impact: -0.07 } } }";
        desk.call(&owner, "desk_policy_apply", json!({ "document": own })).unwrap();
        let seen = get(desk, &owner, &made.id);
        assert_eq!((&seen["reason_types"], &seen["usual_reason_type"]), (&json!(["too_late", "too_much"]), &json!("too_late")));
        let refused = error_of(desk, &owner, "desk_request_reject", json!({ "request": made.id, "reason": "no", "type": "human_preference" }));
        assert!(refused.message.contains("too_late, too_much"), "{refused}");
        // A plain no is one of the first type; each has the impact that the domain gives them.
        reject(desk, &owner, &made.id).unwrap();
        assert!((score(desk) - 0.23).abs() < 1e-9, "{}", score(desk));
        let other = pending(desk);
        let input = json!({ "request": other.id, "reason": "no", "type": "too_much", "severity": "low" });
        desk.call(&owner, "desk_request_reject", input).unwrap();
        assert!((score(desk) - 0.195).abs() < 1e-9, "{}", score(desk));
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "request.rejected" })).unwrap();
        assert_eq!((&told["events"][0]["facts"]["type"], &told["events"][1]["facts"]["type"]), (&json!("too_much"), &json!("too_late")));
        // Existing clients' tools take them as well, of a proposal, of what was done, and of many.
        let of_proposal = json!({ "proposal_id": pending(desk).id, "action_description": "a", "override_type": "too_late", "severity": "low", "description": "d" });
        let corrected = desk.call(&owner, "cowork_override", of_proposal).unwrap();
        assert_eq!(corrected["override_type"], "too_late", "{corrected}");
        let mut done = json!({ "agent_id": "code", "domain": "crm.deals", "action_description": "a", "override_type": "too_much", "severity": "low", "description": "d" });
        assert_eq!(desk.call(&owner, "cowork_override", done.clone()).unwrap()["override_type"], "too_much");
        done["override_type"] = json!("agent_wrong");
        assert_eq!(error_of(desk, &owner, "cowork_override", done).field.as_deref(), Some("override_type"));
        pending(desk);
        let bulk = desk.call(&owner, "cowork_bulk_reject", json!({ "override_type": "too_late", "description": "d" })).unwrap();
        assert_eq!((&bulk["rejected"], &bulk["error_count"]), (&json!(1), &json!(0)), "{bulk}");
        sound(desk);
    }

    fn a_domain_without_types_still_takes_a_plain_no(desk: &TestDesk) {
        let owner = desk.claim();
        desk.call(&owner, "desk_policy_apply", json!({ "document": "feedback: { reason_types: [] }" })).unwrap();
        let made = pending(desk);
        reject(desk, &owner, &made.id).unwrap();
        assert!((score(desk) - 0.29).abs() < 1e-9);
    }

    fn what_was_shown_is_what_is_rejected_asked_about_and_given_away(desk: &TestDesk) {
        let owner = desk.claim();
        let other = invite(desk, &owner, "Ann", "owner", &[]);
        let made = submit(desk, "code", &New { decision: quorum(2), ..proposal() });
        let seen = get(desk, &owner, &made.id)["digest"].clone();
        let edited = desk.call(&other, "desk_request_approve", json!({ "request": made.id, "edits": { "amount": 300 } })).unwrap();
        let version = find(desk, &made.id).version;
        let answers = [
            ("desk_request_delegate", json!({ "request": made.id, "to": "Ann" })),
            ("desk_request_ask", json!({ "request": made.id, "question": "why?" })),
            ("desk_request_reject", json!({ "request": made.id, "reason": "too much" })),
        ];
        for (version, (operation, mut input)) in (version..).zip(answers) {
            input["expected_digest"] = seen.clone();
            assert_code(&error_of(desk, &owner, operation, input.clone()), Code::Conflict);
            assert_eq!(find(desk, &made.id).version, version, "{operation} did nothing");
            input["expected_digest"] = edited["digest"].clone();
            desk.call(&owner, operation, input).unwrap();
        }
        assert_eq!(find(desk, &made.id).state, State::Rejected);
        sound(desk);
    }

    fn an_edit_makes_a_new_digest_and_voids_earlier_votes(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "owner", &[]);
        let made = submit(desk, "code", &New { decision: quorum(2), ..proposal() });
        assert_eq!(approve(desk, &owner, &made.id).unwrap()["approved"], false);
        let edited = desk.call(&ann, "desk_request_approve", json!({ "request": made.id, "edits": { "amount": 300 } })).unwrap();
        assert_eq!(edited["approved"], false, "the first vote was for something else");
        let seen = get(desk, &owner, &made.id);
        assert_eq!((seen["round"].as_i64(), seen["approvals"].as_i64()), (Some(2), Some(1)));
        assert_eq!((seen["proposed"].clone(), seen["edited_by"].as_str()), (json!({ "amount": 500 }), Some(person_id(desk, &ann).as_str())));
        assert_code(&code(approve(desk, &ann, &made.id)), Code::Conflict);
        assert_eq!(approve(desk, &owner, &made.id).unwrap()["approved"], true);
        assert_eq!(go(desk, &made.id).arguments, json!({ "amount": 300 }));
        sound(desk);
    }

    fn edits_are_checked_like_what_was_proposed(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        for edits in [json!({ "amount": 500 }), json!("text"), json!({ "amount": 9_007_199_254_740_993_i64 })] {
            assert_code(&error_of(desk, &owner, "desk_request_approve", json!({ "request": made.id, "edits": edits })), Code::Invalid);
        }
        let handoff = submit(desk, "code", &New { kind: request::RequestKind::Handoff, ..proposal() });
        let refused = error_of(desk, &owner, "desk_request_approve", json!({ "request": handoff.id, "reason": "do it", "edits": {} }));
        assert_eq!(refused.field.as_deref(), Some("edits"));
    }

    fn a_quorum_needs_different_people_and_one_no_is_final(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "approver", &["crm.*"]);
        let ben = invite(desk, &owner, "Ben", "approver", &["*"]);
        let made = submit(desk, "code", &New { decision: quorum(3), ..proposal() });
        assert_eq!(approve(desk, &owner, &made.id).unwrap()["approved"], false);
        assert_code(&code(approve(desk, &owner, &made.id)), Code::Conflict);
        assert_eq!(approve(desk, &ann, &made.id).unwrap()["approved"], false);
        assert_eq!(score(desk), 0.3, "nothing is decided yet");
        assert_eq!(approve(desk, &ben, &made.id).unwrap()["approved"], true);
        assert!((score(desk) - 0.32).abs() < 1e-9, "one proposal, one step");
        let no = submit(desk, "code", &New { decision: quorum(3), ..proposal() });
        approve(desk, &owner, &no.id).unwrap();
        reject(desk, &ann, &no.id).unwrap();
        assert_code(&code(approve(desk, &ben, &no.id)), Code::Conflict);
        assert_eq!(find(desk, &no.id).state, State::Rejected);
        let changed = submit(desk, "code", &New { decision: quorum(2), ..proposal() });
        approve(desk, &owner, &changed.id).unwrap();
        assert_eq!(reject(desk, &owner, &changed.id).unwrap()["state"], "rejected", "who said yes may still say no");
        sound(desk);
    }

    fn what_an_agent_reports_hides_neither_a_request_nor_its_votes(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "approver", &["*"]);
        let report = |id: &str, times: u32| {
            for _ in 0..times {
                let input = json!({ "domain": "crm.deals", "action": "tried", "actor": "agent", "reasoning": "r", "proposal_id": id });
                desk.agent("code", "cowork_log", input).unwrap();
            }
        };
        let made = submit(desk, "code", &New { decision: quorum(2), ..proposal() });
        approve(desk, &ann, &made.id).unwrap();
        report(&made.id, 510);
        assert_eq!(approve(desk, &owner, &made.id).unwrap()["approved"], true);
        report(&made.id, 1);
        let trail = desk.call(&owner, "cowork_audit_trail", json!({ "proposal_id": made.id, "without_proofs": true })).unwrap();
        let problems = trail["problems"].to_string();
        assert!(!problems.contains("differs from what the record tells") && !problems.contains("does not tell of the proposal"), "{problems}");
        let stages: Vec<&str> = trail["chain"].as_array().unwrap().iter().filter_map(|link| link["stage"].as_str()).collect();
        assert!(["propose", "policy", "decision", "grant", "execution", "outcome"].iter().all(|stage| stages.contains(stage)), "{stages:?}");
        let forgotten = pending(desk);
        report(&forgotten.id, 250);
        pass(desk, 8 * 86_400);
        assert_eq!(desk.act(|cx| request::expire_due(cx, 10)).unwrap(), 1);
        assert_eq!(find(desk, &forgotten.id).state, State::Expired);
        sound(desk);
    }

    fn a_vote_of_somebody_who_lost_the_role_does_not_count(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "approver", &["*"]);
        let made = submit(desk, "code", &New { decision: quorum(2), ..proposal() });
        approve(desk, &ann, &made.id).unwrap();
        desk.call(&owner, "desk_person_change", json!({ "person": person_id(desk, &ann), "role": "viewer" })).unwrap();
        assert_eq!(approve(desk, &owner, &made.id).unwrap()["approved"], false);
    }

    fn a_forged_vote_does_not_count(desk: &TestDesk) {
        let owner = desk.claim();
        invite(desk, &owner, "Ann", "approver", &["*"]);
        let made = submit(desk, "code", &New { decision: quorum(2), ..proposal() });
        desk.tamper("insert into vote (request, round, person, vote, at) select r.id, 1, p.id, 'approve', 5 from request r, person p where p.name = 'Ann'");
        assert_eq!(approve(desk, &owner, &made.id).unwrap()["approved"], false);
        assert!(!desk.verify().sound);
    }

    fn undoing_an_approval_revokes_its_grant_and_its_trust(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        let undone = desk.call(&owner, "desk_request_undo", json!({ "request": made.id, "reason": "too early" })).unwrap();
        assert_eq!(undone["state"], "pending");
        assert_eq!(score(desk), 0.3);
        assert_code(&code(super::support::begin(desk, &made.id)), Code::Conflict);
        let revoked = desk.agent("code", "desk_record_list", json!({ "kind": "grant.revoked" })).unwrap();
        assert_eq!(revoked["events"][0]["facts"]["request"], made.id, "the agent is told that its grant is gone");
        assert_eq!(get(desk, &owner, &made.id)["approvals"], 0);
        approve(desk, &owner, &made.id).unwrap();
        go(desk, &made.id);
        assert_code(&code(desk.call(&owner, "desk_request_undo", json!({ "request": made.id }))), Code::Conflict);
        sound(desk);
    }

    fn asking_back_takes_a_round_trip(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        let asked = desk.call(&owner, "desk_request_ask", json!({ "request": made.id, "question": "which customer?" })).unwrap();
        assert_eq!((asked["state"].as_str(), asked["waits_for"].as_str()), (Some("pending"), Some("requester")));
        let inbox = |view: &str| desk.call(&owner, "desk_request_list", json!({ "view": view })).unwrap()["requests"].as_array().unwrap().len();
        assert_eq!((inbox("inbox"), inbox("asked"), inbox("pending")), (0, 1, 1));
        let events = desk.agent("code", "desk_record_list", json!({ "kind": "request.asked" })).unwrap();
        assert_eq!(events["events"][0]["payload"]["note"], "which customer?", "the agent is told");
        let id = made.id.clone();
        assert_code(&code(as_agent(desk, "other", move |cx| request::answer(cx, &id, "me".to_owned()))), Code::NotFound);
        let id = made.id.clone();
        as_agent(desk, "code", move |cx| request::answer(cx, &id, "ACME".to_owned())).unwrap();
        assert_eq!((inbox("inbox"), inbox("asked")), (1, 0));
        let notes = get(desk, &owner, &made.id)["notes"].clone();
        assert_eq!((notes[0]["text"].as_str(), notes[1]["text"].as_str()), (Some("which customer?"), Some("ACME")));
        let id = made.id.clone();
        assert_code(&code(as_agent(desk, "code", move |cx| request::answer(cx, &id, "again".to_owned()))), Code::Conflict);
        approve(desk, &owner, &made.id).unwrap();
        sound(desk);
    }

    fn a_question_is_taken_back(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        assert_code(&error_of(desk, &owner, "desk_request_ask", json!({ "request": made.id })), Code::Conflict);
        desk.call(&owner, "desk_request_ask", json!({ "request": made.id, "question": "which customer?" })).unwrap();
        assert_code(&error_of(desk, &owner, "desk_request_ask", json!({ "request": made.id, "expected_digest": "00" })), Code::Conflict);
        let back = desk.call(&owner, "desk_request_ask", json!({ "request": made.id, "expected_digest": made.digest_hex() })).unwrap();
        assert_eq!((back["state"].as_str(), back["waits_for"].as_str()), (Some("pending"), Some("people")));
        assert_eq!(kinds(desk, &owner, 1), ["request.unasked"]);
        let id = made.id.clone();
        assert_code(&code(as_agent(desk, "code", move |cx| request::answer(cx, &id, "ACME".to_owned()))), Code::Conflict);
        let notes = get(desk, &owner, &made.id)["notes"].clone();
        assert_eq!((notes.as_array().unwrap().len(), &notes[0]["text"]), (1, &json!("which customer?")), "what was asked stays in sight");
        approve(desk, &owner, &made.id).unwrap();
        sound(desk);
    }

    fn nobody_is_asked_who_cannot_answer(desk: &TestDesk) {
        let owner = desk.claim();
        let made = desk.act(|cx| request::submit(cx, proposal())).unwrap();
        let seen = get(desk, &owner, &made.id);
        assert_eq!((&seen["requester_kind"], &seen["answerable"]), (&json!("system"), &json!(false)));
        assert_code(&error_of(desk, &owner, "desk_request_ask", json!({ "request": made.id, "question": "why?" })), Code::Conflict);
        assert_eq!(find(desk, &made.id).asked_at, None, "it stays in the inbox");
        assert_eq!(get(desk, &owner, &pending(desk).id)["answerable"], true);
    }

    fn who_asks_in_an_agents_name_answers_for_it(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "approver", &["*"]);
        let ben = invite(desk, &owner, "Ben", "approver", &["*"]);
        let made = submit(desk, "code", &New { asked_by: Some(person_id(desk, &ann)), ..proposal() });
        desk.call(&owner, "desk_request_ask", json!({ "request": made.id, "question": "why?" })).unwrap();
        let answer = json!({ "request_id": made.id, "answer": "they asked me" });
        assert_code(&desk.refused(&ben, "cowork_answer_question", answer.clone()), Code::Forbidden);
        desk.call(&ann, "cowork_answer_question", answer).unwrap();
        let notes = get(desk, &owner, &made.id)["notes"].clone();
        assert_eq!((&notes[1]["text"], &notes[1]["by"]), (&json!("they asked me"), &json!(person_id(desk, &ann))));
        sound(desk);
    }

    fn delegating_gives_it_to_somebody_who_may_decide(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "approver", &["crm.deals"]);
        invite(desk, &owner, "Ben", "approver", &["billing"]);
        invite(desk, &owner, "Cid", "member", &[]);
        let made = pending(desk);
        let mut whom = get(desk, &owner, &made.id)["deciders"].as_array().unwrap().clone();
        whom.sort_by_key(Value::to_string);
        let mut both: Vec<Value> = [&ann, &owner].map(|person| desk.call(person, "desk_whoami", json!({})).unwrap()["id"].clone()).into();
        both.sort_by_key(Value::to_string);
        assert_eq!(whom, both, "it says to whom it can be given");
        for to in ["Ben", "Cid", "Nobody"] {
            assert_eq!(error_of(desk, &owner, "desk_request_delegate", json!({ "request": made.id, "to": to })).field.as_deref(), Some("to"));
        }
        desk.call(&owner, "desk_request_delegate", json!({ "request": made.id, "to": "Ann", "note": "yours" })).unwrap();
        let mine = |person: &Caller| desk.call(person, "desk_request_list", json!({ "mine": true })).unwrap()["requests"].as_array().unwrap().len();
        assert_eq!((mine(&ann), mine(&owner)), (1, 0));
        assert_eq!(kinds(desk, &owner, 1), ["request.delegated"]);
        sound(desk);
        assert_eq!(error_of(desk, &owner, "desk_request_delegate", json!({ "request": made.id, "note": "for whom?" })).field.as_deref(), Some("note"));
        desk.call(&owner, "desk_request_delegate", json!({ "request": made.id })).unwrap();
        assert_eq!((mine(&ann), kinds(desk, &owner, 1)), (0, vec!["request.returned".to_owned()]), "and is taken back");
        assert_eq!(find(desk, &made.id).assignee, None);
        assert_code(&error_of(desk, &owner, "desk_request_delegate", json!({ "request": made.id })), Code::Conflict);
        approve(desk, &ann, &made.id).unwrap();
        sound(desk);
    }

    fn putting_off_hides_it_for_a_while(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        for until in ["2025-12-31T00:00:00Z", "2026-02-01T00:00:00Z"] {
            assert_code(&error_of(desk, &owner, "desk_request_snooze", json!({ "request": made.id, "until": until })), Code::Invalid);
        }
        desk.call(&owner, "desk_request_snooze", json!({ "request": made.id, "until": "2026-01-01T01:00:00Z" })).unwrap();
        let inbox = |view: &str| desk.call(&owner, "desk_request_list", json!({ "view": view })).unwrap()["requests"].as_array().unwrap().len();
        assert_eq!((inbox("inbox"), inbox("snoozed")), (0, 1));
        pass(desk, 3_601);
        assert_eq!((inbox("inbox"), inbox("snoozed")), (1, 0), "it comes back by itself");
        show_presence(desk, &owner);
        desk.call(&owner, "desk_request_snooze", json!({ "request": made.id, "until": "2026-01-01T05:00:00Z" })).unwrap();
        desk.call(&owner, "desk_request_snooze", json!({ "request": made.id })).unwrap();
        assert_eq!(inbox("inbox"), 1);
        sound(desk);
    }

    fn what_was_put_off_is_told_when_it_comes_back(desk: &TestDesk) {
        let owner = desk.claim();
        let [first, later] = [pending(desk), pending(desk)];
        for (request, until) in [(&first.id, "2026-01-01T01:00:00Z"), (&later.id, "2026-01-01T05:00:00Z")] {
            desk.call(&owner, "desk_request_snooze", json!({ "request": request, "until": until })).unwrap();
        }
        let wake = || desk.act(|cx| request::wake_due(cx, 10)).unwrap();
        assert_eq!(wake(), 0, "not before its time");
        pass(desk, 3_601);
        assert_eq!((wake(), wake()), (1, 0), "once, however many servers look");
        assert_eq!((find(desk, &first.id).snoozed_until, find(desk, &later.id).snoozed_until.is_some()), (None, true));
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "request.snoozed", "limit": 1 })).unwrap()["events"][0].clone();
        assert_eq!(told["subject"], format!("request:{}", first.id), "{told}");
        sound(desk);
    }

    fn an_approval_is_remembered_for_acts_like_it(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        let approved = desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "session", "hours": 2 })).unwrap();
        let standing = approved["standing_approval"]["standing_approval"].as_str().unwrap().to_owned();
        let waived = |change: fn(&mut deskmate_core::policy::Act)| {
            let mut like = act(json!({ "amount": 7 }));
            change(&mut like);
            as_agent(desk, "code", move |cx| request::waived_by(cx, "code", &like)).unwrap()
        };
        assert_eq!(waived(|_| ()).as_deref(), Some(made.id.as_str()), "another amount of the same field");
        assert_eq!(waived(|act| act.arguments = json!({ "amount": 7, "owner": "eve" })), None, "another field");
        assert_eq!(waived(|act| act.action = "delete".to_owned()), None, "another action");
        assert_eq!(waived(|act| act.environment = "production".to_owned()), None, "another place");
        assert_eq!(waived(|act| act.taint.push("web".to_owned())), None, "from outside");
        let listed = desk.call(&owner, "desk_standing_approval_list", json!({})).unwrap();
        assert_eq!(listed["standing_approvals"][0]["agent"], "code");
        sound(desk);
        desk.call(&owner, "desk_standing_approval_revoke", json!({ "standing_approval": standing })).unwrap();
        assert_eq!(waived(|_| ()), None, "a person ended it");
        assert_code(&error_of(desk, &owner, "desk_standing_approval_revoke", json!({ "standing_approval": standing })), Code::Conflict);
        sound(desk);
    }

    fn an_approval_is_remembered_for_the_changed_paths_in_whatever_form(desk: &TestDesk) {
        let owner = desk.claim();
        let forms = |path: &str, value: Value| {
            vec![
                json!({ "field": path, "value": value }),
                json!({ "deal": { path: value } }),
                json!([{ "op": "replace", "path": format!("/{path}"), "value": value }]),
                json!({ "patch": json!([{ "op": "replace", "path": format!("/{path}"), "value": value }]).to_string() }),
            ]
        };
        for (number, (seen, other)) in forms("note", json!("x")).into_iter().zip(forms("amount", json!(9e9))).enumerate() {
            let again = forms("note", json!("y")).swap_remove(number);
            let made = submit(desk, "code", &New { act: act(seen.clone()), ..proposal() });
            show_presence(desk, &owner);
            let approved = desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "session" })).unwrap();
            let standing = approved["standing_approval"]["standing_approval"].as_str().unwrap().to_owned();
            let waived = |arguments: &Value| {
                let like = act(arguments.clone());
                as_agent(desk, "code", move |cx| request::waived_by(cx, "code", &like)).unwrap()
            };
            assert_eq!(waived(&again).as_deref(), Some(made.id.as_str()), "{again} after {seen}");
            assert_eq!(waived(&other), None, "{other} after {seen}");
            desk.call(&owner, "desk_standing_approval_revoke", json!({ "standing_approval": standing })).unwrap();
            // A drafted rule is about the same paths.
            let (like, unlike) = (submit(desk, "code", &New { act: act(again), ..proposal() }), submit(desk, "code", &New { act: act(other), ..proposal() }));
            let made = submit(desk, "code", &New { act: act(seen.clone()), ..proposal() });
            let approved = desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "rule" })).unwrap();
            let matched: Vec<&str> = approved["rule"]["would_have_matched"].as_array().unwrap().iter().map(|other| other["request"].as_str().unwrap()).collect();
            assert!(matched.contains(&like.id.as_str()) && !matched.contains(&unlike.id.as_str()), "{seen}: {approved}");
        }
        // Of a change in words nobody knows what is like it.
        let words = submit(desk, "code", &New { act: act(json!({ "change": "make it better" })), ..proposal() });
        for remember in ["session", "rule"] {
            show_presence(desk, &owner);
            let error = error_of(desk, &owner, "desk_request_approve", json!({ "request": words.id, "remember": remember }));
            assert_eq!((error.code, error.field.as_deref()), (Code::Invalid, Some("remember")), "{error:?}");
        }
        assert_eq!(find(desk, &words.id).state, State::Pending);
        // An act without any change stands for no change in words.
        let nothing = submit(desk, "code", &New { act: act(json!({})), ..proposal() });
        let approved = desk.call(&owner, "desk_request_approve", json!({ "request": nothing.id, "remember": "rule" })).unwrap();
        assert!(approved["rule"]["yaml"].as_str().unwrap().contains("size(texts) == 0"), "{approved}");
        sound(desk);
    }

    fn an_approval_remembered_by_an_earlier_version_covers_nothing(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "session" })).unwrap();
        desk.tamper("update standing_approval set pattern = replace(pattern, '\"changed\"', '\"fields\"')");
        assert_eq!(as_agent(desk, "code", |cx| request::waived_by(cx, "code", &act(json!({ "amount": 7 })))).unwrap(), None);
    }

    fn a_rule_is_drafted_with_what_it_would_have_matched(desk: &TestDesk) {
        let owner = desk.claim();
        let like = pending(desk);
        let unlike = submit(desk, "code", &New { act: act(json!({ "amount": 1, "owner": "x" })), ..proposal() });
        let made = pending(desk);
        let approved = desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "rule" })).unwrap();
        let matched: Vec<&str> = approved["rule"]["would_have_matched"].as_array().unwrap().iter().map(|other| other["request"].as_str().unwrap()).collect();
        assert_eq!(matched, [like.id.as_str()]);
        assert!(!matched.contains(&unlike.id.as_str()));
        assert_eq!(approved["rule"]["looked_at"], 3);
        assert!(approved["rule"]["yaml"].as_str().unwrap().contains("waive_trust: true"));
    }

    fn what_a_browser_signed_changes_nothing_else_in_the_record(desk: &TestDesk) {
        let owner = desk.claim();
        let Caller::Secret(secret) = &owner else { unreachable!() };
        let signed = Signed { text: "POST".to_owned(), signature: "c2lnbmVk".to_owned(), key: "a2V5".to_owned() };
        let credential = Credential::Signed { secret: secret.clone(), signed };
        let (yes, no) = (pending(desk), pending(desk));
        call_with(desk, credential.clone(), "desk_request_approve", json!({ "request": yes.id })).unwrap();
        call_with(desk, credential.clone(), "desk_request_reject", json!({ "request": no.id, "reason": "no" })).unwrap();
        call_with(desk, credential, "desk_request_undo", json!({ "request": yes.id })).unwrap();
        desk.seal();
        // The rows are still what their events tell, and so are the scores that these decisions moved.
        assert_eq!((find(desk, &yes.id).state, find(desk, &no.id).state), (State::Pending, State::Rejected));
        desk.call(&owner, "desk_request_approve", json!({ "request": yes.id })).unwrap();
        assert_eq!(desk.call(&owner, "desk_trust_replay", json!({})).unwrap()["agrees"], true);
        sound(desk);
    }

    fn of_two_people_who_decide_at_once_one_wins(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "owner", &[]);
        for turn in 0..8 {
            let made = pending(desk);
            let (yes, no) = std::thread::scope(|scope| {
                let yes = scope.spawn(|| call(desk, &owner, "desk_request_approve", json!({ "request": made.id })));
                let no = scope.spawn(|| call(desk, &ann, "desk_request_reject", json!({ "request": made.id, "reason": "no" })));
                (yes.join().unwrap(), no.join().unwrap())
            });
            desk.seal();
            let (won, lost) = if yes.is_ok() { (yes, no) } else { (no, yes) };
            assert!(won.is_ok(), "turn {turn}: {won:?}");
            assert_code(&lost.unwrap_err(), Code::Conflict);
            assert!(matches!(find(desk, &made.id).state, State::Approved | State::Rejected));
        }
        sound(desk);
    }
}

/// A call that leaves sealing to whoever counts on it: threads must not seal at once.
fn call(desk: &TestDesk, person: &Caller, operation: &str, input: Value) -> deskmate_core::Result<()> {
    let Caller::Secret(secret) = person else { unreachable!() };
    call_with(desk, Credential::Secret { secret: secret.clone(), proved: true }, operation, input)
}

fn call_with(desk: &TestDesk, credential: Credential, operation: &str, input: Value) -> deskmate_core::Result<()> {
    let call = deskmate_core::call::Call { credential, surface: deskmate_core::call::Surface::Rest, operation: operation.to_owned(), input };
    testkit::wait(desk.desk.call(call)).map(drop)
}

fn quorum(count: u32) -> deskmate_core::policy::Decision {
    let mut decision = super::support::decision(deskmate_core::policy::Mode::Suggest);
    decision.needs.quorum = count;
    decision
}
