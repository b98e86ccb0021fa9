//! Every step from one state to another, and every one that must not be.

use deskmate_core::Code;
use deskmate_core::policy::Mode;
use deskmate_core::request::{self, New, Outcome, State};
use serde_json::json;
use testkit::{assert_code, both};

use super::support::{
    approve, as_agent, begin, code, decision, find, finish, get, go, kinds, pass, pending, person_id, proposal, reject, score, show_presence, sound, submit,
};

/// The whole table: what is not named here must not happen.
#[test]
fn only_these_steps_exist() {
    use State::{Ambiguous, Approved, Cancelled, Done, Executing, Expired, Failed, Pending, Rejected, Superseded};
    let steps: [(State, &[State]); 10] = [
        (Pending, &[Approved, Rejected, Expired, Cancelled, Superseded]),
        (Approved, &[Executing, Pending, Rejected, Cancelled, Superseded]),
        (Executing, &[Done, Failed, Ambiguous]),
        (Ambiguous, &[Done, Failed]),
        (Rejected, &[]),
        (Expired, &[]),
        (Cancelled, &[]),
        (Superseded, &[]),
        (Done, &[]),
        (Failed, &[]),
    ];
    for (from, allowed) in steps {
        for to in State::ALL {
            assert_eq!(from.may_become(to), allowed.contains(&to), "{} to {}", from.name(), to.name());
        }
    }
}

both! {
    fn w28_a_proposal_goes_from_pending_to_done(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        assert_eq!(made.state, State::Pending);
        assert_eq!(begin(desk, &made.id).unwrap_err().code, Code::Conflict, "people have not decided");
        let approved = approve(desk, &owner, &made.id).unwrap();
        assert_eq!((approved["state"].as_str(), approved["approved"].as_bool()), (Some("approved"), Some(true)));
        assert_eq!(finish(desk, &made.id, Outcome::Done).unwrap_err().code, Code::Conflict, "it was not begun");
        assert_eq!(go(desk, &made.id).arguments, json!({ "amount": 500 }));
        assert_eq!(find(desk, &made.id).state, State::Executing);
        assert_eq!(finish(desk, &made.id, Outcome::Done).unwrap().state, State::Done);
        assert_code(&code(finish(desk, &made.id, Outcome::Failed)), Code::Conflict);
        let kinds = kinds(desk, &owner, 8);
        for kind in ["request.created", "request.approved", "grant.issued", "grant.used", "request.started", "request.finished", "trust.changed"] {
            assert!(kinds.contains(&kind.to_owned()), "{kind} is missing in {kinds:?}");
        }
        sound(desk);
    }

    fn what_policy_lets_pass_has_its_grant_at_once(desk: &TestDesk) {
        let owner = desk.claim();
        let made = submit(desk, "code", &New { decision: decision(Mode::Act), ..proposal() });
        assert_eq!((made.state, made.decided_by.as_deref()), (State::Approved, Some("desk")), "no person is said to have acted");
        let shown = get(desk, &owner, &made.id);
        assert!(shown["grant"]["grant"].is_string());
        assert_eq!(shown["votes"], json!([]));
        sound(desk);
    }

    fn a_denied_act_is_no_request_but_told(desk: &TestDesk) {
        let owner = desk.claim();
        let new = New { decision: decision(Mode::Deny), ..proposal() };
        let made = as_agent(desk, "code", move |cx| request::submit(cx, new.clone()));
        assert_code(&code(made), Code::Forbidden);
        as_agent(desk, "code", |cx| {
            let new = proposal();
            request::denied(cx, &request::Requester::of(&cx.actor.clone()), &new.act, &decision(Mode::Deny))
        }).unwrap();
        assert!(kinds(desk, &owner, 3).contains(&"act.denied".to_owned()));
    }

    fn an_ambiguous_outcome_may_become_known(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        go(desk, &made.id);
        assert_eq!(finish(desk, &made.id, Outcome::Ambiguous).unwrap().state, State::Ambiguous);
        assert_code(&code(finish(desk, &made.id, Outcome::Ambiguous)), Code::Conflict);
        assert_eq!(finish(desk, &made.id, Outcome::Done).unwrap().state, State::Done);
        sound(desk);
    }

    fn what_ended_stays_ended(desk: &TestDesk) {
        let owner = desk.claim();
        let rejected = pending(desk);
        reject(desk, &owner, &rejected.id).unwrap();
        let cancelled = pending(desk);
        let id = cancelled.id.clone();
        as_agent(desk, "code", move |cx| request::cancel(cx, &id, Some("no longer needed".to_owned()))).unwrap();
        let old = pending(desk);
        let new = submit(desk, "code", &New { supersedes: Some(old.id.clone()), ..proposal() });
        assert_eq!(new.supersedes.as_deref(), Some(old.id.as_str()));
        for (id, state) in [(&rejected.id, State::Rejected), (&cancelled.id, State::Cancelled), (&old.id, State::Superseded)] {
            assert_eq!(find(desk, id).state, state);
            assert_code(&code(approve(desk, &owner, id)), Code::Conflict);
            assert_code(&code(reject(desk, &owner, id)), Code::Conflict);
            assert_code(&code(desk.call(&owner, "desk_request_undo", json!({ "request": id }))), Code::Conflict);
            assert_code(&code(desk.call(&owner, "desk_request_ask", json!({ "request": id, "question": "why?" }))), Code::Conflict);
            assert_code(&code(desk.call(&owner, "desk_request_snooze", json!({ "request": id }))), Code::Conflict);
            assert_code(&begin(desk, id).unwrap_err(), Code::Conflict);
            let again = id.clone();
            assert_code(&code(as_agent(desk, "code", move |cx| request::cancel(cx, &again, None))), Code::Conflict);
        }
        sound(desk);
    }

    fn only_the_requester_takes_back_or_supersedes(desk: &TestDesk) {
        desk.claim();
        let made = pending(desk);
        let id = made.id.clone();
        assert_code(&code(as_agent(desk, "other", move |cx| request::cancel(cx, &id, None))), Code::NotFound);
        let new = New { supersedes: Some(made.id.clone()), ..proposal() };
        assert_code(&code(as_agent(desk, "other", move |cx| request::submit(cx, new.clone()))), Code::Invalid);
        assert_eq!(find(desk, &made.id).state, State::Pending);
    }

    fn cancelling_an_approved_act_revokes_its_grant(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        let id = made.id.clone();
        as_agent(desk, "code", move |cx| request::cancel(cx, &id, None)).unwrap();
        assert!(get(desk, &owner, &made.id)["grant"]["revoked_at"].is_string());
        assert_code(&begin(desk, &made.id).unwrap_err(), Code::Conflict);
        sound(desk);
    }

    fn w22_what_nobody_decides_expires_visibly(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        pass(desk, 7 * 86_400 + 1);
        super::support::show_presence(desk, &owner);
        assert_eq!(get(desk, &owner, &made.id)["state"], "expired", "also before the desk has told so");
        assert_code(&code(approve(desk, &owner, &made.id)), Code::Conflict);
        assert_eq!(desk.act(|cx| request::expire_due(cx, 10)).unwrap(), 1);
        assert_eq!(desk.act(|cx| request::expire_due(cx, 10)).unwrap(), 0);
        assert_eq!(find(desk, &made.id).state, State::Expired);
        assert_eq!(kinds(desk, &owner, 1), ["request.expired"]);
        assert!((score(desk) - 0.23).abs() < 0.01, "silence is neither yes nor no: only idle days count");
        let listed = desk.call(&owner, "desk_request_list", json!({ "state": "expired" })).unwrap();
        assert_eq!(listed["requests"][0]["request"], made.id.as_str());
        sound(desk);
    }

    fn expiry_takes_bounded_slices(desk: &TestDesk) {
        desk.claim();
        for _ in 0..5 {
            pending(desk);
        }
        pass(desk, 8 * 86_400);
        let counts: Vec<u32> = (0..4).map(|_| desk.act(|cx| request::expire_due(cx, 2)).unwrap()).collect();
        assert_eq!(counts, [2, 2, 1, 0]);
        sound(desk);
    }

    fn an_overdue_handoff_goes_to_the_owners(desk: &TestDesk) {
        let owner = desk.claim();
        let made = submit(desk, "code", &New { kind: request::RequestKind::Handoff, escalate_seconds: Some(3_600), ..proposal() });
        assert_eq!(desk.act(|cx| request::escalate_due(cx, 10)).unwrap(), 0);
        pass(desk, 3_601);
        assert_eq!(desk.act(|cx| request::escalate_due(cx, 10)).unwrap(), 1);
        assert_eq!(desk.act(|cx| request::escalate_due(cx, 10)).unwrap(), 0, "once");
        let row = find(desk, &made.id);
        assert_eq!((row.state, row.priority.name(), row.assignee.as_deref()), (State::Pending, "high", Some(request::OWNERS)));
        let mine = desk.call(&owner, "desk_request_list", json!({ "mine": true })).unwrap();
        assert_eq!(mine["requests"][0]["request"], made.id.as_str());
        let fresh = pending(desk);
        let theirs = desk.call(&owner, "desk_request_list", json!({ "assignee": "role:owner" })).unwrap()["requests"].clone();
        assert_eq!((theirs.as_array().unwrap().len(), &theirs[0]["request"]), (1, &json!(made.id)), "what went to the owners is found by that");
        assert_eq!(kinds(desk, &owner, 2), ["request.created", "request.escalated"]);
        assert_eq!((&mine["requests"][0]["overdue"], &get(desk, &owner, &fresh.id)["overdue"]), (&json!(true), &json!(false)));
        show_presence(desk, &owner);
        desk.call(&owner, "desk_request_delegate", json!({ "request": made.id, "to": person_id(desk, &owner) })).unwrap();
        assert_eq!(get(desk, &owner, &made.id)["overdue"], true, "it stays overdue, to whomever it is given");
        sound(desk);
    }

    fn a_flood_of_requests_is_stopped_exactly(desk: &TestDesk) {
        let owner = desk.claim();
        let first = pending(desk);
        for _ in 0..199 {
            pending(desk);
        }
        let refused = as_agent(desk, "code", |cx| request::submit(cx, proposal()));
        let error = code(refused);
        assert_code(&error, Code::Limited);
        assert!(error.retry_after_ms.is_some());
        submit(desk, "other", &proposal());
        submit(desk, "code", &New { decision: decision(Mode::Act), ..proposal() });
        reject(desk, &owner, &first.id).unwrap();
        pending(desk);
        assert_code(&code(as_agent(desk, "code", |cx| request::submit(cx, proposal()))), Code::Limited);
        sound(desk);
    }

    fn a_flood_from_many_threads_stops_at_the_same_place(desk: &TestDesk) {
        desk.claim();
        for _ in 0..190 {
            pending(desk);
        }
        let made: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..6).filter(|_| {
                let desk = desk.desk.clone();
                let own = desk.clone();
                desk.db.write_blocking(move |tx| request::submit(&mut own.cx(tx, deskmate_core::call::Actor::agent("code", false), deskmate_core::call::Surface::Mcp), proposal())).is_ok()
            }).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(made, 10);
    }
}
