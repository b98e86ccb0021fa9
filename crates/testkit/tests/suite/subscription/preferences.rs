//! What people say about how they are told.

use deskmate_core::Code;
use deskmate_core::notify::Outcome;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::support::{
    Post, ask, at, begin, channel, events, every_row, follow, invite, listed, pass, person_id, proposal, register, set, show_presence, sound,
};

fn subscriptions(desk: &TestDesk, person: &Caller) -> Vec<Value> {
    let listed = desk.call(person, "desk_subscription_list", json!({})).unwrap();
    listed["subscriptions"].as_array().unwrap().clone()
}

both! {
    fn a_person_says_how_they_are_told_and_takes_it_back(desk: &TestDesk) {
        let ada = desk.claim();
        begin(desk);
        let offered = desk.call(&ada, "desk_subscription_list", json!({})).unwrap();
        let names: Vec<&str> = offered["outlets"].as_array().unwrap().iter().map(|outlet| outlet["outlet"].as_str().unwrap()).collect();
        assert_eq!(names, ["bot", "careful", "chat", "mail", "phone", "work"], "a webhook for programs is no outlet for people");
        let made = set(desk, &ada, json!({
            "outlet": "mail", "address": "ada@example.org", "least_risk": "medium", "zone": "Europe/Berlin",
            "quiet_hours": { "from": "22:00", "to": "07:00" }, "digest": { "every": "week", "on": "friday", "at": "09:00" },
        })).unwrap();
        assert_eq!((&made["name"], &made["address"], &made["on"], &made["reminders"], &made["details"]), (&json!("mail"), &json!("ada@example.org"), &json!(true), &json!(true), &json!("none")));
        assert_eq!(subscriptions(desk, &ada), [made]);
        // A second way by the same outlet, under a name of its own; and the first one said anew.
        set(desk, &ada, json!({ "outlet": "mail", "name": "urgent", "address": "ada@example.net", "least_risk": "high" })).unwrap();
        set(desk, &ada, json!({ "outlet": "mail", "address": "ada@example.com" })).unwrap();
        let now = subscriptions(desk, &ada);
        assert_eq!((now.len(), &now[0]["address"], now[0].get("digest")), (2, &json!("ada@example.com"), None), "what is not said is as usual");
        desk.call(&ada, "desk_subscription_remove", json!({ "name": "urgent" })).unwrap();
        assert_eq!(subscriptions(desk, &ada).len(), 1);
        assert_code(&desk.refused(&ada, "desk_subscription_remove", json!({ "name": "urgent" })), Code::NotFound);
        sound(desk);
    }

    fn what_cannot_be_understood_is_refused_and_changes_nothing(desk: &TestDesk) {
        let ada = desk.claim();
        begin(desk);
        let mail = |more: Value| {
            let mut input = json!({ "outlet": "mail", "address": "ada@example.org" });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            input
        };
        for (input, field) in [
            (json!({ "outlet": "pigeon" }), "outlet"),
            (json!({ "outlet": "hook" }), "outlet"),
            (json!({ "outlet": "mail" }), "address"),
            (json!({ "outlet": "chat", "address": "#general" }), "address"),
            (json!({ "outlet": "mail", "address": "ada" }), "address"),
            (json!({ "outlet": "mail", "address": "ada@example.org\r\nBcc: eve@example.org" }), "address"),
            (json!({ "outlet": "mail", "address": "ada@example.org, eve@example.org" }), "address"),
            (json!({ "outlet": "phone", "address": "a/b" }), "address"),
            (json!({ "outlet": "bot", "address": "not a chat" }), "address"),
            (json!({ "outlet": "work", "address": "ada@elsewhere.example" }), "address"),
            (mail(json!({ "name": "a/b" })), "name"),
            (mail(json!({ "zone": "Europe/Nowhere" })), "zone"),
            (mail(json!({ "quiet_hours": { "from": "late", "to": "07:00" } })), "quiet_hours"),
            (mail(json!({ "quiet_hours": { "from": "07:00", "to": "07:00" } })), "quiet_hours"),
            (mail(json!({ "digest": { "every": "day", "at": "8 o'clock" } })), "digest"),
            (mail(json!({ "digest": { "every": "day", "at": "08:00", "on": "monday" } })), "digest"),
            (mail(json!({ "events": ["test"] })), "events"),
            (mail(json!({ "batch_seconds": 100_000 })), "batch_seconds"),
            (mail(json!({ "least_risk": "some" })), "least_risk"),
            (mail(json!({ "everything": true })), "everything"),
        ] {
            let error = desk.refused(&ada, "desk_subscription_set", input.clone());
            assert_eq!(error.field.as_deref(), Some(field), "{input}: {error}");
            assert!(!error.message.contains("eve@"), "{error}");
        }
        assert!(subscriptions(desk, &ada).is_empty());
        for number in 0..20 {
            set(desk, &ada, mail(json!({ "name": format!("way-{number}") }))).unwrap();
        }
        assert_code(&desk.refused(&ada, "desk_subscription_set", mail(json!({ "name": "one-more" }))), Code::Limited);
    }

    fn only_the_person_and_owners_say_how_somebody_is_told(desk: &TestDesk) {
        let owner = desk.claim();
        begin(desk);
        let ada = invite(desk, &owner, "Ada", "approver", &["crm.*"]);
        let eve = invite(desk, &owner, "Eve", "member", &[]);
        let id = person_id(desk, &ada);
        let input = json!({ "person": id, "outlet": "mail", "address": "ada@example.org" });
        assert_code(&desk.refused(&eve, "desk_subscription_set", input.clone()), Code::Forbidden);
        assert_code(&desk.refused(&eve, "desk_subscription_list", json!({ "person": id })), Code::Forbidden);
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_subscription_set", input.clone()), Code::Forbidden);
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_subscription_list", json!({})), Code::Forbidden);
        // A token that lies somewhere must not lead messages elsewhere.
        let token = desk.call(&ada, "desk_token_create", json!({ "note": "all", "scopes": ["*"] })).unwrap();
        let token = Caller::Secret(token["token"].as_str().unwrap().to_owned());
        let refused = desk.refused(&token, "desk_subscription_set", json!({ "outlet": "mail", "address": "eve@example.org" }));
        assert!(refused.code == Code::Forbidden && refused.needs_presence, "{refused}");
        set(desk, &owner, input).unwrap();
        assert_eq!(subscriptions(desk, &ada)[0]["address"], "ada@example.org");
        assert!(subscriptions(desk, &owner).is_empty());
        // Links that decide are the person's own word.
        let links = json!({ "person": id, "outlet": "mail", "address": "owner@example.org", "decide_links": true });
        assert_code(&desk.refused(&owner, "desk_subscription_set", links), Code::Forbidden);
        // An owner who changes where to turns them off with it.
        set(desk, &ada, json!({ "outlet": "mail", "address": "ada@example.org", "decide_links": true })).unwrap();
        set(desk, &owner, json!({ "person": id, "outlet": "mail", "address": "new@example.org" })).unwrap();
        assert_eq!(subscriptions(desk, &ada)[0]["decide_links"], false);
    }

    fn links_that_decide_need_the_passphrase_again_and_a_place_of_ones_own(desk: &TestDesk) {
        let ada = desk.claim();
        begin(desk);
        for (input, says) in [
            (json!({ "outlet": "chat", "decide_links": true }), "only you read"),
            (json!({ "outlet": "bot", "address": "-100123", "decide_links": true }), "only you read"),
            (json!({ "outlet": "bot", "address": "@team", "decide_links": true }), "only you read"),
            (json!({ "outlet": "careful", "address": "ada@example.org", "decide_links": true }), "not possible"),
        ] {
            let error = desk.refused(&ada, "desk_subscription_set", input);
            assert!(error.message.contains(says), "{error}");
        }
        let good = json!({ "outlet": "bot", "address": "4711", "decide_links": true });
        pass(desk, 90);
        let refused = desk.refused(&ada, "desk_subscription_set", good.clone());
        assert!(refused.needs_presence, "{refused}");
        assert!(subscriptions(desk, &ada).is_empty());
        show_presence(desk, &ada);
        assert_eq!(set(desk, &ada, good).unwrap()["decide_links"], true);
    }

    fn an_address_is_in_its_row_alone(desk: &TestDesk) {
        let ada = desk.claim();
        begin(desk);
        set(desk, &ada, json!({ "outlet": "mail", "address": "ada@secret.example", "idempotency_key": "once" })).unwrap();
        assert_eq!(every_row(desk).matches("ada@secret.example").count(), 1);
        desk.call(&ada, "desk_subscription_remove", json!({ "name": "mail" })).unwrap();
        assert!(!every_row(desk).contains("ada@secret.example"));
        assert_eq!((events(desk, "subscription.set").len(), events(desk, "subscription.removed").len()), (1, 1));
        sound(desk);
    }

    fn a_changed_row_is_found(desk: &TestDesk) {
        let ada = desk.claim();
        begin(desk);
        set(desk, &ada, json!({ "outlet": "mail", "address": "ada@example.org" })).unwrap();
        sound(desk);
        desk.tamper("update subscription set address = 'eve@example.org', decide_links = true");
        let report = desk.verify();
        assert!(!report.sound && report.findings.iter().any(|finding| finding.what.contains("subscription")), "{:?}", report.findings);
    }

    fn a_test_tells_what_really_became_of_it(desk: &TestDesk) {
        let ada = desk.claim();
        begin(desk);
        let post = Post::default();
        desk.lend(post.clone());
        set(desk, &ada, json!({ "outlet": "mail", "address": "ada@example.org", "quiet_hours": { "from": "00:00", "to": "23:59" } })).unwrap();
        *post.outcome.lock().unwrap() = Outcome { arrived: true, receipt: Some("<1@example.org>".to_owned()), ..Outcome::default() };
        let done = desk.call(&ada, "desk_subscription_test", json!({ "name": "mail" })).unwrap();
        assert_eq!((&done["arrived"], &done["receipt"], done.get("why")), (&json!(true), &json!("<1@example.org>"), None), "also in quiet hours");
        assert_eq!(*post.sent.lock().unwrap(), [("mail".to_owned(), Some("ada@example.org".to_owned()))]);
        assert_code(&desk.refused(&ada, "desk_subscription_test", json!({ "name": "mail" })), Code::Limited);
        pass(desk, 6);
        *post.outcome.lock().unwrap() = Outcome { error: Some("the mail server answered 550".to_owned()), permanent: true, ..Outcome::default() };
        let failed = desk.call(&ada, "desk_subscription_test", json!({ "name": "mail" })).unwrap();
        assert_eq!((&failed["arrived"], &failed["why"], &failed["permanent"]), (&json!(false), &json!("the mail server answered 550"), &json!(true)));
        let one = subscriptions(desk, &ada).remove(0);
        assert_eq!(one["error"], "the mail server answered 550");
        assert!(one["delivered_at"].is_string() && one["failed_at"].is_string(), "{one}");
        assert_eq!(events(desk, "notification.tested").iter().map(|event| event["facts"]["arrived"].clone()).collect::<Vec<_>>(), [json!(false), json!(true)]);
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_subscription_test", json!({ "name": "mail" })), Code::Forbidden);
        // An outlet that left the configuration is said, and not tried.
        register(desk, &[]);
        pass(desk, 6);
        assert_code(&desk.refused(&ada, "desk_subscription_test", json!({ "name": "mail" })), Code::NotFound);
        assert_eq!(subscriptions(desk, &ada)[0]["on"], false);
        assert_eq!(post.sent.lock().unwrap().len(), 2);
    }

    fn a_change_of_when_holds_for_what_waits(desk: &TestDesk) {
        let ada = desk.claim();
        let from = begin(desk);
        let daily = json!({ "outlet": "mail", "address": "ada@example.org", "digest": { "every": "day", "at": "09:00" } });
        set(desk, &ada, daily).unwrap();
        ask(desk, &proposal("crm.deals", "medium"));
        follow(desk, from);
        assert_eq!(listed(desk, &ada)[0]["due_at"], "2026-01-01T09:00:00.000000Z");
        set(desk, &ada, json!({ "outlet": "mail", "address": "ada@example.org" })).unwrap();
        let one = listed(desk, &ada).remove(0);
        assert!(at(one["due_at"].as_str().unwrap()) < at("2026-01-01T00:01:00Z") && one["state"] == "open", "{one}");
        pass(desk, 60);
        let claimed = super::support::claim(desk);
        assert_eq!((claimed.len(), json!(claimed[0].job)), (1, one["job"].clone()), "the job of before is not there any more");
    }

    fn what_was_on_its_way_goes_with_the_subscription(desk: &TestDesk) {
        let ada = desk.claim();
        let from = begin(desk);
        set(desk, &ada, json!({ "outlet": "mail", "address": "ada@example.org" })).unwrap();
        ask(desk, &proposal("crm.deals", "medium"));
        follow(desk, from);
        assert_eq!(channel(desk, &ada, "mail").to.as_deref(), Some("ada@example.org"));
        desk.call(&ada, "desk_subscription_remove", json!({ "name": "mail" })).unwrap();
        assert_eq!(listed(desk, &ada)[0]["state"], "dropped");
        pass(desk, 60);
        assert!(super::support::claim(desk).is_empty());
    }
}
