//! Digests, erasure, and rows that the record rebuilds.

use deskmate_core::request::{Bound, New, Requester};
use deskmate_core::{Code, hex};
use serde_json::json;
use testkit::{assert_code, both};

use super::support::{act, approve, begin, code, find, get, go, pending, proposal, reject, sound, submit};

/// What was worked out by hand over RFC 8785, so that nobody changes the form by accident.
#[test]
fn digests_have_a_form_that_stays() {
    let bound = Bound::new(act(json!({ "b": 2, "a": 1.0, "ü": "€" })), &Requester::agent("code", true), "00".to_owned(), None, None);
    let (text, digest) = bound.seal().unwrap();
    assert_eq!(
        text,
        r#"{"act":{"action":"update","arguments":{"a":1,"b":2,"ü":"€"},"cost":0,"domain":"crm.deals","kind":"propose","target":"deal-7","tool":"cowork_propose"},"actor":{"id":"code","kind":"agent"},"nonce":"00"}"#
    );
    assert_eq!(hex(&digest), DIGEST);
    let differs = |bound: Bound| assert_ne!(bound.seal().unwrap().1, digest);
    differs(Bound { nonce: "01".to_owned(), ..bound.clone() });
    differs(Bound { schema: Some("s".to_owned()), ..bound.clone() });
    differs(Bound { target: Some(json!({})), ..bound.clone() });
    differs(Bound::new(bound.act.clone(), &Requester::agent("other", true), "00".to_owned(), None, None));
    let mut other = bound.act.clone();
    other.target = "deal-8".to_owned();
    differs(Bound { act: other, ..bound });
}

const DIGEST: &str = "524307658a51fbfcb574acd273d566070b53f7ad0b361ead55dcf104a1d69b38";

#[test]
fn integers_that_readers_disagree_on_are_refused() {
    for number in [json!(9_007_199_254_740_993_i64), json!(-9_007_199_254_740_993_i64), json!(u64::MAX)] {
        let bound = Bound::new(act(json!({ "amount": number })), &Requester::agent("code", true), "00".to_owned(), None, None);
        assert_code(&bound.seal().unwrap_err(), Code::Invalid);
    }
    assert!(Bound::new(act(json!({ "amount": 9_007_199_254_740_992_i64 })), &Requester::agent("code", true), "00".to_owned(), None, None).seal().is_ok());
}

both! {
    fn two_equal_acts_have_two_digests(desk: &TestDesk) {
        desk.claim();
        assert_ne!(pending(desk).digest, pending(desk).digest);
    }

    fn every_row_is_rebuilt_from_the_record(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "session" })).unwrap();
        go(desk, &made.id);
        reject(desk, &owner, &pending(desk).id).unwrap();
        pending(desk);
        sound(desk);
        for (change, back) in [
            ("update request set domain = 'x' where state = 'pending'", "update request set domain = 'crm.deals' where state = 'pending'"),
            ("update request_count set pending = pending + 1", "update request_count set pending = pending - 1"),
            ("update vote set at = at + 1", "update vote set at = at - 1"),
            ("update act_grant set expires_at = expires_at + 1", "update act_grant set expires_at = expires_at - 1"),
            ("update standing_approval set expires_at = expires_at + 1", "update standing_approval set expires_at = expires_at - 1"),
            ("update standing_approval set agent = 'x'", "update standing_approval set agent = 'code'"),
        ] {
            desk.tamper(change);
            assert!(!desk.verify().sound, "{change}");
            desk.tamper(back);
            sound(desk);
        }
        for gone in ["delete from standing_approval", "delete from vote where vote = 'reject'", "delete from act_grant", "delete from request where state = 'pending'"] {
            desk.tamper(gone);
            assert!(!desk.verify().sound, "{gone}");
        }
    }

    fn a_forged_standing_approval_lets_nothing_pass(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "session", "hours": 1 })).unwrap();
        let waived = |agent: &'static str| super::support::as_agent(desk, agent, |cx| {
            let who = Requester::of(&cx.actor.clone());
            let new = proposal();
            Ok(deskmate_core::request::waived_by(cx, &who.id, &new.act)?.is_some())
        }).unwrap();
        assert!(waived("code"));
        assert!(!waived("other"));
        desk.tamper("update standing_approval set agent = 'other'");
        assert!(!waived("other"), "the record says otherwise");
    }

    fn erasing_takes_the_texts_and_leaves_the_proof(desk: &TestDesk) {
        let owner = desk.claim();
        let made = submit(desk, "code", &New { title: "Secret deal".to_owned(), ..proposal() });
        desk.call(&owner, "desk_request_ask", json!({ "request": made.id, "question": "secret question" })).unwrap();
        let seq = |kind: &str| desk.call(&owner, "desk_record_list", json!({ "kind": kind, "limit": 1 })).unwrap()["events"][0]["seq"].clone();
        for kind in ["request.created", "request.asked"] {
            desk.call(&owner, "desk_record_erase", json!({ "seq": seq(kind), "reason": "asked to" })).unwrap();
        }
        let seen = get(desk, &owner, &made.id);
        let text = seen.to_string();
        assert!(!text.contains("Secret") && !text.contains("secret") && !text.contains("500"), "{text}");
        sound(desk);
        assert_code(&code(approve(desk, &owner, &made.id)), Code::Conflict);
        reject(desk, &owner, &made.id).unwrap();
        sound(desk);
        let row = find(desk, &made.id);
        assert!(row.bound.is_none() && row.packet.is_none() && row.title.is_none());
        desk.call(&owner, "desk_record_erase", json!({ "seq": seq("request.rejected"), "reason": "asked to" })).unwrap();
        assert!(find(desk, &made.id).reason.is_none());
        sound(desk);
    }

    fn what_was_erased_is_not_done(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        let seq = desk.call(&owner, "desk_record_list", json!({ "kind": "request.created" })).unwrap()["events"][0]["seq"].clone();
        desk.call(&owner, "desk_record_erase", json!({ "seq": seq, "reason": "asked to" })).unwrap();
        assert_code(&begin(desk, &made.id).unwrap_err(), Code::Conflict);
    }
}
