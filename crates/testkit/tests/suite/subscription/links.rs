//! Links that decide: once, shortly, one request as it was sent, and never what is of high risk.

use deskmate_core::Code;
use deskmate_core::call::Surface;
use deskmate_core::request::{New, RequestKind, State};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::support::{ask, begin, events, every_row, follow, invite, listed, pass, person_id, proposal, set, show_presence, sound, state, take};

/// An owner who wants links, and what is followed from.
fn wanting(desk: &TestDesk) -> (Caller, u64) {
    let owner = desk.claim();
    let from = begin(desk);
    set(desk, &owner, json!({ "outlet": "mail", "address": "ada@example.org", "decide_links": true, "batch_seconds": 0 })).unwrap();
    (owner, from)
}

/// The link that is sent for the newest request, if there is one.
fn sent(desk: &TestDesk, owner: &Caller, from: &mut u64) -> Option<String> {
    *from = follow(desk, *from);
    let newest = listed(desk, owner).into_iter().find(|one| one["state"] == "open").expect("a notification");
    let letter = take(desk, &newest).expect("a letter");
    let decide = letter.lines.last().unwrap().decide.clone()?;
    Some(decide.strip_prefix("https://desk.example/decide?link=").unwrap().to_owned())
}

fn open(desk: &TestDesk, link: &str) -> Value {
    desk.call_on(Surface::Web, &Caller::Nobody, "desk_decision_link_open", json!({ "link": link })).unwrap()
}

fn decide(desk: &TestDesk, link: &str, answer: &str) -> Value {
    desk.call_on(Surface::Web, &Caller::Nobody, "desk_decision_link_decide", json!({ "link": link, "answer": answer, "reason": "as said" })).unwrap()
}

both! {
    fn a_link_decides_once_and_every_use_is_told(desk: &TestDesk) {
        let (owner, mut from) = wanting(desk);
        let made = ask(desk, &proposal("crm.deals", "medium"));
        let link = sent(desk, &owner, &mut from).unwrap();
        assert!(link.starts_with("dml_") && !every_row(desk).contains(&link), "it is kept nowhere");
        // Long after presence ran out.
        pass(desk, 20 * 60);
        let shown = open(desk, &link);
        assert_eq!((&shown["state"], &shown["request"], &shown["person_name"]), (&json!("good"), &json!(made.id), &json!("Owner")));
        assert_eq!((&shown["shown"]["act"]["arguments"], &shown["shown"]["requester"], &shown["shown"]["risk"]), (&json!({ "amount": 500 }), &json!("code"), &json!("medium")));
        open(desk, &link);
        assert_eq!((state(desk, &made.id), events(desk, "decision_link.opened").len()), (State::Pending, 1), "looking decides nothing");
        let done = decide(desk, &link, "approve");
        assert_eq!((&done["decided"], &done["state"]), (&json!(true), &json!("approved")));
        assert_eq!(state(desk, &made.id), State::Approved);
        let used = events(desk, "decision_link.used");
        assert_eq!((used.len(), &used[0]["actor"], &used[0]["facts"]["answer"]), (1, &json!(person_id(desk, &owner)), &json!("approve")));
        let approved = events(desk, "request.approved");
        assert_eq!((&approved[0]["actor"], &approved[0]["facts"]["decided_by"]), (&used[0]["actor"], &used[0]["actor"]));
        // A replay changes nothing, and is told.
        for _ in 0..15 {
            let again = decide(desk, &link, "reject");
            assert_eq!((&again["decided"], &again["state"]), (&json!(false), &json!("ended")));
        }
        assert_eq!(state(desk, &made.id), State::Approved);
        assert_eq!(events(desk, "decision_link.refused").len(), 10, "further tries fill nothing");
        assert!(open(desk, &link).get("shown").is_none());
        sound(desk);
    }

    fn a_link_rejects_too(desk: &TestDesk) {
        let (owner, mut from) = wanting(desk);
        let made = ask(desk, &proposal("crm.deals", "low"));
        let link = sent(desk, &owner, &mut from).unwrap();
        assert_eq!(decide(desk, &link, "reject")["state"], "rejected");
        assert_eq!(state(desk, &made.id), State::Rejected);
    }

    fn a_link_is_good_for_half_an_hour(desk: &TestDesk) {
        let (owner, mut from) = wanting(desk);
        let made = ask(desk, &proposal("crm.deals", "medium"));
        let link = sent(desk, &owner, &mut from).unwrap();
        pass(desk, 30 * 60 + 1);
        assert_eq!((&open(desk, &link)["state"], &decide(desk, &link, "approve")["state"]), (&json!("expired"), &json!("expired")));
        assert_eq!((state(desk, &made.id), events(desk, "decision_link.refused").len()), (State::Pending, 1));
    }

    fn what_is_grave_hidden_or_needs_more_gets_no_link(desk: &TestDesk) {
        let (owner, mut from) = wanting(desk);
        let mut several = proposal("crm.c", "medium");
        several.decision.needs.quorum = 2;
        let mut hidden = proposal("crm.d", "medium");
        hidden.decision.redact = vec!["/amount".to_owned()];
        let mut secret = proposal("crm.e", "medium");
        secret.act.arguments = json!({ "note": "the key is ghp_0123456789abcdefghijABCDEFGHIJ012345" });
        for new in [
            proposal("crm.a", "high"),
            proposal("crm.b", "critical"),
            several,
            hidden,
            secret,
            New { kind: RequestKind::Handoff, ..proposal("crm.f", "low") },
            New { kind: RequestKind::Plan, ..proposal("crm.g", "low") },
            New { kind: RequestKind::Policy, ..proposal("crm.h", "low") },
            New { kind: RequestKind::Promotion, ..proposal("crm.i", "low") },
        ] {
            let made = ask(desk, &new);
            assert_eq!(sent(desk, &owner, &mut from), None, "{} {}", made.domain, made.kind.name());
        }
        assert!(events(desk, "decision_link.opened").is_empty());
    }

    fn what_became_grave_after_the_link_was_sent_needs_the_person(desk: &TestDesk) {
        let (owner, mut from) = wanting(desk);
        ask(desk, &proposal("crm.deals", "medium"));
        let link = sent(desk, &owner, &mut from).unwrap();
        // The row says another risk than the record: whatever it says, nothing is decided.
        desk.tamper("update request set risk = 'high'");
        assert_eq!((&open(desk, &link)["state"], &decide(desk, &link, "approve")["state"]), (&json!("sign_in"), &json!("sign_in")));
        desk.tamper("update request set risk = 'low'");
        let refused = desk.call_on(Surface::Web, &Caller::Nobody, "desk_decision_link_decide", json!({ "link": link, "answer": "approve" })).unwrap_err();
        assert_code(&refused, Code::Conflict);
    }

    fn a_link_decides_what_it_was_sent_for_and_nothing_else(desk: &TestDesk) {
        let (owner, mut from) = wanting(desk);
        let bob = invite(desk, &owner, "Bob", "owner", &[]);
        let mut two = proposal("crm.deals", "medium");
        two.decision.needs.quorum = 1;
        let made = ask(desk, &two);
        let link = sent(desk, &owner, &mut from).unwrap();
        // Somebody edits it, so that it waits for one more: the link was for something else.
        desk.tamper("update request set quorum = 1");
        let digest = |desk: &TestDesk| desk.call(&bob, "desk_request_get", json!({ "request": made.id })).unwrap()["digest"].as_str().unwrap().to_owned();
        let before = digest(desk);
        desk.call(&bob, "desk_request_approve", json!({ "request": made.id, "edits": { "amount": 400 } })).unwrap();
        assert_ne!(digest(desk), before);
        let late = decide(desk, &link, "approve");
        assert_eq!((&late["decided"], &late["state"]), (&json!(false), &json!("decided")));
        // Taken back, it waits again, as something else than the link was sent for.
        desk.call(&bob, "desk_request_undo", json!({ "request": made.id })).unwrap();
        assert_eq!(decide(desk, &link, "approve")["state"], "changed");
        assert_eq!(state(desk, &made.id), State::Pending);
    }

    fn a_link_is_no_credential(desk: &TestDesk) {
        let (owner, mut from) = wanting(desk);
        let made = ask(desk, &proposal("crm.deals", "medium"));
        let link = sent(desk, &owner, &mut from).unwrap();
        let caller = Caller::Secret(link.clone());
        for (operation, input) in [
            ("desk_whoami", json!({})),
            ("desk_request_get", json!({ "request": made.id })),
            ("desk_request_approve", json!({ "request": made.id })),
            ("desk_subscription_set", json!({ "outlet": "chat" })),
        ] {
            for surface in [Surface::Rest, Surface::Mcp, Surface::Web] {
                assert_code(&desk.call_on(surface, &caller, operation, input.clone()).unwrap_err(), Code::Unauthenticated);
            }
        }
        // Over MCP, which a model drives, nothing is decided by it either.
        let refused = desk.call_on(Surface::Mcp, &Caller::Nobody, "desk_decision_link_decide", json!({ "link": link, "answer": "approve" })).unwrap_err();
        assert_code(&refused, Code::Forbidden);
        for wrong in ["", "dml_x", "dms_x", &link.replace("dml_", "dmi_")] {
            assert_code(&desk.call_on(Surface::Web, &Caller::Nobody, "desk_decision_link_open", json!({ "link": wrong })).unwrap_err(), Code::Unauthenticated);
        }
        assert_eq!(state(desk, &made.id), State::Pending);
    }

    fn a_link_ends_with_what_its_person_may_do(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "approver", &["crm.*"]);
        let mut from = begin(desk);
        set(desk, &ada, json!({ "outlet": "mail", "address": "ada@example.org", "decide_links": true })).unwrap();
        ask(desk, &proposal("crm.deals", "medium"));
        let link = sent(desk, &ada, &mut from).unwrap();
        let id = person_id(desk, &ada);
        desk.call(&owner, "desk_person_change", json!({ "person": id, "domains": ["billing"] })).unwrap();
        assert_eq!(decide(desk, &link, "approve")["state"], "sign_in");
        desk.call(&owner, "desk_person_change", json!({ "person": id, "active": false })).unwrap();
        assert_code(&desk.call_on(Surface::Web, &Caller::Nobody, "desk_decision_link_open", json!({ "link": link })).unwrap_err(), Code::Unauthenticated);
    }

    fn a_newer_link_by_the_same_way_ends_the_older_one(desk: &TestDesk) {
        let (owner, from) = wanting(desk);
        set(desk, &owner, json!({ "outlet": "bot", "address": "4711", "decide_links": true })).unwrap();
        ask(desk, &proposal("crm.deals", "medium"));
        follow(desk, from);
        let all = listed(desk, &owner);
        let link = |one: &Value| take(desk, one).unwrap().lines[0].decide.clone().unwrap().rsplit('=').next().unwrap().to_owned();
        let links: Vec<String> = all.iter().map(link).collect();
        // A further attempt brings another one; what went the other way is still good.
        let again = link(&all[0]);
        assert_ne!(again, links[0]);
        assert_eq!((&open(desk, &links[0])["state"], &open(desk, &links[1])["state"], &open(desk, &again)["state"]), (&json!("ended"), &json!("good"), &json!("good")));
        assert_eq!(decide(desk, &again, "approve")["decided"], true);
        assert_eq!(decide(desk, &links[1], "reject")["state"], "decided");
    }

    fn only_who_wanted_links_gets_them_and_a_changed_row_sends_none(desk: &TestDesk) {
        let owner = desk.claim();
        let mut from = begin(desk);
        set(desk, &owner, json!({ "outlet": "mail", "address": "ada@example.org" })).unwrap();
        ask(desk, &proposal("crm.deals", "medium"));
        assert_eq!(sent(desk, &owner, &mut from), None);
        // Somebody with the database in hand turns them on, and leads them elsewhere.
        desk.tamper("update subscription set decide_links = true, address = 'eve@example.org'");
        pass(desk, 120);
        ask(desk, &proposal("crm.leads", "medium"));
        assert_eq!(sent(desk, &owner, &mut from), None);
        assert!(events(desk, "credential.issued").iter().all(|event| event["facts"]["kind"] != "decision"));
        // Digests are read late, and carry none.
        show_presence(desk, &owner);
        desk.call(&owner, "desk_subscription_remove", json!({ "name": "mail" })).unwrap();
        set(desk, &owner, json!({ "outlet": "mail", "address": "ada@example.org", "decide_links": true, "digest": { "every": "day", "at": "09:00" } })).unwrap();
        ask(desk, &proposal("crm.notes", "medium"));
        assert_eq!(sent(desk, &owner, &mut from), None);
    }

    fn two_who_use_one_link_at_once_decide_once(desk: &TestDesk) {
        let (owner, mut from) = wanting(desk);
        ask(desk, &proposal("crm.deals", "medium"));
        let link = sent(desk, &owner, &mut from).unwrap();
        let decided = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..4).map(|_| scope.spawn(|| {
                let input = json!({ "link": link, "answer": "approve" });
                desk.call_on(Surface::Web, &Caller::Nobody, "desk_decision_link_decide", input).is_ok_and(|answer| answer["decided"] == true)
            })).collect();
            tries.into_iter().map(|one| one.join().unwrap()).filter(|decided| *decided).count()
        });
        assert_eq!((decided, events(desk, "decision_link.used").len(), events(desk, "grant.issued").len()), (1, 1, 1));
    }
}
