//! What did not arrive: seen, sent round again, or dismissed.

use deskmate_core::notify::{self, Failure};
use deskmate_core::{Code, job};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::support::{ask, begin, claim, events, follow, invite, listed, pass, person_id, proposal, set, sound, take, text};

/// A notification fails for good, and its job with it, as the worker reports it.
fn fail(desk: &TestDesk, one: &Value, failure: Failure) {
    let id = text(one, "notification");
    desk.act(move |cx| notify::failed(cx, &id, 1, &failure)).unwrap();
    pass(desk, 60);
    for claimed in claim(desk) {
        desk.act(move |cx| job::finish(cx, &claimed.job, "worker", claimed.fence, job::Outcome::Failed { error: "no".to_owned(), retry: false })).unwrap();
    }
}

fn dead(desk: &TestDesk, person: &Caller) -> (i64, Vec<Value>) {
    let answer = desk.call(person, "desk_notification_list", json!({ "state": "failed" })).unwrap();
    (answer["dead"].as_i64().unwrap(), answer["notifications"].as_array().unwrap().clone())
}

fn permanent(error: &str) -> Failure {
    Failure { error: error.to_owned(), permanent: true, ..Failure::default() }
}

both! {
    fn what_failed_for_good_stays_until_a_person_deals_with_it(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "approver", &["*"]);
        let eve = invite(desk, &owner, "Eve", "viewer", &[]);
        let from = begin(desk);
        set(desk, &ada, json!({ "outlet": "mail", "address": "ada@example.org" })).unwrap();
        let made = ask(desk, &proposal("crm.deals", "medium"));
        let next = follow(desk, from);
        let one = listed(desk, &ada).remove(0);
        take(desk, &one).unwrap();
        fail(desk, &one, permanent("the mail server answered 550"));
        let (count, letters) = dead(desk, &ada);
        assert_eq!((count, letters.len(), &letters[0]["permanent"], &letters[0]["error"]), (1, 1, &json!(true), &json!("the mail server answered 550")));
        assert_eq!(events(desk, "notification.given_up")[0]["facts"]["permanent"], true);
        // Others neither see nor touch it.
        let id = json!({ "notification": one["notification"] });
        assert_eq!(dead(desk, &eve), (0, Vec::new()));
        for operation in ["desk_notification_retry", "desk_notification_dismiss"] {
            assert_code(&desk.refused(&eve, operation, id.clone()), Code::NotFound);
            assert_code(&desk.refused(&Caller::Agent("code"), operation, id.clone()), Code::Forbidden);
        }
        let again = desk.call(&ada, "desk_notification_retry", id.clone()).unwrap();
        assert_ne!(again["job"], one["job"]);
        assert_code(&desk.refused(&ada, "desk_notification_retry", id.clone()), Code::Conflict);
        // It is the same message, put together anew.
        let letter = take(desk, &one).unwrap();
        assert_eq!((letter.id.as_str(), letter.lines.len()), (one["notification"].as_str().unwrap(), 1));
        fail(desk, &one, permanent("the mail server answered 550"));
        desk.call(&owner, "desk_notification_dismiss", id.clone()).unwrap();
        assert_eq!((dead(desk, &ada).0, &listed(desk, &ada)[0]["state"]), (0, &json!("dismissed")));
        assert_code(&desk.refused(&ada, "desk_notification_dismiss", id), Code::Conflict);
        // What was decided meanwhile is not told when it is sent round again.
        ask(desk, &proposal("crm.leads", "medium"));
        follow(desk, next);
        let second = listed(desk, &ada).into_iter().find(|one| one["state"] == "open").unwrap();
        take(desk, &second).unwrap();
        fail(desk, &second, permanent("no"));
        for request in [made.id.clone(), second["items"][0]["subject"].as_str().unwrap().trim_start_matches("request:").to_owned()] {
            desk.call(&owner, "desk_request_reject", json!({ "request": request, "reason": "no" })).unwrap();
        }
        desk.call(&ada, "desk_notification_retry", json!({ "notification": second["notification"] })).unwrap();
        assert!(take(desk, &second).is_none());
        assert_eq!(listed(desk, &ada)[0]["state"], "dropped");
        sound(desk);
    }

    fn a_receiver_that_is_gone_turns_that_way_off(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "approver", &["*"]);
        let from = begin(desk);
        set(desk, &ada, json!({ "outlet": "bot", "address": "4711" })).unwrap();
        ask(desk, &proposal("crm.deals", "medium"));
        let next = follow(desk, from);
        let one = listed(desk, &ada).remove(0);
        take(desk, &one).unwrap();
        fail(desk, &one, Failure { error: "blocked".to_owned(), gone: true, ..Failure::default() });
        let subscription = |desk: &TestDesk| desk.call(&ada, "desk_subscription_list", json!({})).unwrap()["subscriptions"][0].clone();
        assert_eq!((&subscription(desk)["on"], events(desk, "subscription.disabled").len()), (&json!(false), 1));
        ask(desk, &proposal("crm.leads", "medium"));
        let next = follow(desk, next);
        assert_eq!(listed(desk, &ada).len(), 1, "nothing more goes there");
        let channel = json!({ "channel": format!("person/{}/bot", person_id(desk, &ada)) });
        let eve = invite(desk, &owner, "Eve", "member", &[]);
        assert_code(&desk.refused(&eve, "desk_notification_enable", channel.clone()), Code::NotFound);
        desk.call(&ada, "desk_notification_enable", channel.clone()).unwrap();
        assert_code(&desk.refused(&ada, "desk_notification_enable", channel), Code::Conflict);
        ask(desk, &proposal("crm.notes", "medium"));
        follow(desk, next);
        assert_eq!(listed(desk, &ada).len(), 2);
        sound(desk);
    }

    fn a_job_that_somebody_cancels_leaves_a_dead_letter_and_no_silence(desk: &TestDesk) {
        let owner = desk.claim();
        let from = begin(desk);
        set(desk, &owner, json!({ "outlet": "mail", "address": "ada@example.org" })).unwrap();
        ask(desk, &proposal("crm.deals", "medium"));
        let next = follow(desk, from);
        let one = listed(desk, &owner).remove(0);
        desk.call(&owner, "desk_job_cancel", json!({ "job": one["job"] })).unwrap();
        assert_eq!((dead(desk, &owner).0, &listed(desk, &owner)[0]["state"]), (1, &json!("failed")));
        // What comes next is told again, and not added to what nobody will send.
        ask(desk, &proposal("crm.leads", "medium"));
        follow(desk, next);
        assert_eq!((listed(desk, &owner).len(), &listed(desk, &owner)[0]["state"]), (2, &json!("open")));
    }

    fn a_worker_that_is_lost_for_the_last_time_leaves_a_dead_letter(desk: &TestDesk) {
        let owner = desk.claim();
        let from = begin(desk);
        set(desk, &owner, json!({ "outlet": "mail", "address": "ada@example.org" })).unwrap();
        ask(desk, &proposal("crm.deals", "medium"));
        follow(desk, from);
        let one = listed(desk, &owner).remove(0);
        for round in 0..20 {
            pass(desk, 2 * 3_600);
            if claim(desk).is_empty() {
                assert!(round > 10, "it was tried {round} times");
                break;
            }
            take(desk, &one).unwrap();
            pass(desk, 60);
            assert_eq!(desk.act(|cx| job::rescue(cx, 10)).unwrap().len(), 1);
        }
        let (count, letters) = dead(desk, &owner);
        assert_eq!((count, &letters[0]["state"]), (1, &json!("failed")));
        assert!(letters[0]["error"].as_str().unwrap().contains("worker lost"), "{}", letters[0]);
    }
}
