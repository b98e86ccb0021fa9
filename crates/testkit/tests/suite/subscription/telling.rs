//! What reaches a person, and when.

use deskmate_core::call::{Actor, ActorKind};
use deskmate_core::notify::{INDEXED, Reminders};
use deskmate_core::request::{self, New, Priority, RequestKind, Requester};
use deskmate_db::{Engine, Param};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, both};

use super::support::{ask, at, begin, claim, events, follow, follow_with, invite, listed, pass, person_id, proposal, remind, run, set, show_presence, take};

/// Whose notifications tell of something, by the names that people have at the desk.
fn told(desk: &TestDesk, owner: &Caller) -> Vec<String> {
    let people = desk.call(owner, "desk_person_list", json!({})).unwrap();
    let name = |id: &Value| {
        people["people"].as_array().unwrap().iter().find(|person| person["person"] == *id).map(|person| person["name"].as_str().unwrap().to_owned())
    };
    let mut names: Vec<String> = listed(desk, owner).iter().filter_map(|one| name(&one["person"])).collect();
    names.sort();
    names.dedup();
    names
}

const HOUR: i64 = 3_600_000_000;

fn reminders() -> Reminders {
    Reminders { after: [None, Some(4 * HOUR), Some(HOUR), Some(HOUR / 4)], before_expiry: Some(HOUR) }
}

both! {
    fn people_are_told_what_they_may_decide(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "approver", &["crm.*"]);
        let bob = invite(desk, &owner, "Bob", "approver", &["billing"]);
        let eve = invite(desk, &owner, "Eve", "viewer", &[]);
        let ida = invite(desk, &owner, "Ida", "viewer", &[]);
        let from = begin(desk);
        for person in [&owner, &ada, &bob, &eve] {
            set(desk, person, json!({ "outlet": "chat" })).unwrap();
        }
        set(desk, &ida, json!({ "outlet": "chat", "others": true })).unwrap();
        ask(desk, &proposal("crm.deals", "medium"));
        follow(desk, from);
        assert_eq!(told(desk, &owner), ["Ada", "Ida", "Owner"]);
        // Others see their own, and those of channels; not what somebody else is told.
        assert_eq!((listed(desk, &ada).len(), listed(desk, &eve).len(), listed(desk, &owner).len()), (1, 0, 3));
        // Who was shut out is told nothing more.
        desk.call(&owner, "desk_person_change", json!({ "person": person_id(desk, &ada), "active": false })).unwrap();
        let next = follow(desk, from);
        ask(desk, &proposal("crm.leads", "medium"));
        follow(desk, next);
        let counts: Vec<i64> = listed(desk, &owner).iter().map(|one| one["count"].as_i64().unwrap()).collect();
        assert_eq!(counts.iter().sum::<i64>(), 5, "{counts:?}");
    }

    fn whoever_was_passed_over_is_told_whatever_else_they_want_to_hear_of(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "approver", &["crm.*"]);
        let bob = invite(desk, &owner, "Bob", "approver", &["billing"]);
        desk.call(&owner, "desk_policy_apply", json!({ "document": "authority: { break_glass: owner }\n" })).unwrap();
        let from = begin(desk);
        for person in [&ada, &bob] {
            set(desk, person, json!({ "outlet": "chat", "events": ["policies"] })).unwrap();
        }
        let mut needs_two = proposal("crm.deals", "medium");
        needs_two.decision.needs.quorum = 2;
        let made = ask(desk, &needs_two);
        let next = follow(desk, from);
        assert_eq!(told(desk, &owner), Vec::<String>::new());
        show_presence(desk, &owner);
        let input = json!({ "request": made.id, "expected_digest": made.digest_hex(), "reason": "the site is down" });
        desk.call(&owner, "desk_request_break_glass", input).unwrap();
        follow(desk, next);
        assert_eq!(told(desk, &owner), ["Ada"]);
        let letter = take(desk, &listed(desk, &ada)[0]).expect("it is not left out because it was decided");
        assert!(format!("{letter:?}").contains("alone"), "{letter:?}");
    }

    fn nobody_is_told_of_their_own_request(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "owner", &[]);
        let from = begin(desk);
        for person in [&owner, &ada] {
            set(desk, person, json!({ "outlet": "chat" })).unwrap();
        }
        let id = person_id(desk, &ada);
        let own = New { requester: Some(Requester { kind: ActorKind::Person, id: id.clone(), verified: true }), ..proposal("crm.deals", "medium") };
        run(desk, &Actor::person(id), &own);
        follow(desk, from);
        assert_eq!(told(desk, &owner), ["Owner"]);
    }

    fn what_was_given_to_somebody_is_news_for_them(desk: &TestDesk) {
        let owner = desk.claim();
        let ada = invite(desk, &owner, "Ada", "approver", &["crm.*"]);
        let from = begin(desk);
        let made = ask(desk, &proposal("crm.deals", "medium"));
        let next = follow(desk, from);
        for person in [&owner, &ada] {
            set(desk, person, json!({ "outlet": "chat" })).unwrap();
        }
        desk.call(&owner, "desk_request_delegate", json!({ "request": made.id, "to": "Ada" })).unwrap();
        follow(desk, next);
        assert_eq!(told(desk, &owner), ["Ada"]);
        let letter = take(desk, &listed(desk, &ada)[0]).unwrap();
        assert_eq!(letter.lines[0].text, "[medium risk] code asks for a proposal; it was given to you in crm.deals");
    }

    fn kinds_domains_and_risks_are_chosen(desk: &TestDesk) {
        let owner = desk.claim();
        let from = begin(desk);
        set(desk, &owner, json!({ "outlet": "chat", "name": "risky", "least_risk": "high" })).unwrap();
        set(desk, &owner, json!({ "outlet": "chat", "name": "billing", "domains": ["billing.*"] })).unwrap();
        set(desk, &owner, json!({ "outlet": "chat", "name": "approvals", "kinds": ["approval"] })).unwrap();
        set(desk, &owner, json!({ "outlet": "chat", "name": "security", "events": ["security"] })).unwrap();
        ask(desk, &proposal("crm.deals", "critical"));
        ask(desk, &proposal("billing.invoices", "low"));
        ask(desk, &New { kind: RequestKind::Approval, ..proposal("crm.leads", "medium") });
        follow(desk, from);
        let mut found: Vec<(String, String)> = listed(desk, &owner)
            .iter()
            .map(|one| (one["channel"].as_str().unwrap().rsplit('/').next().unwrap().to_owned(), one["items"][0]["domain"].as_str().unwrap().to_owned()))
            .collect();
        found.sort();
        let expected = [("approvals", "crm.leads"), ("billing", "billing.invoices"), ("risky", "crm.deals")];
        assert_eq!(found, expected.map(|(name, domain)| (name.to_owned(), domain.to_owned())));
    }

    fn a_message_says_who_asks_for_what_and_how_risky_and_no_more_unless_wanted(desk: &TestDesk) {
        let owner = desk.claim();
        let from = begin(desk);
        for details in ["none", "redacted", "full"] {
            set(desk, &owner, json!({ "outlet": "chat", "name": details, "details": details })).unwrap();
        }
        let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let made = ask(desk, &New { title: format!("Mail {secret} to ada@example.com"), ..proposal("crm.deals", "medium") });
        follow(desk, from);
        for one in listed(desk, &owner) {
            let letter = take(desk, &one).unwrap();
            let line = &letter.lines[0];
            assert_eq!(line.page.as_deref(), Some(format!("https://desk.example/requests/{}", made.id).as_str()));
            assert_eq!((letter.inbox.as_deref(), line.decide.as_deref()), (Some("https://desk.example/"), None));
            let beginning = "[medium risk] code asks for a proposal in crm.deals";
            let rest = line.text.strip_prefix(beginning).unwrap_or_else(|| panic!("{}", line.text));
            match one["channel"].as_str().unwrap().rsplit('/').next().unwrap() {
                "none" => assert_eq!(rest, ""),
                "redacted" => assert_eq!(rest, ": Mail [redacted:github_token] to [redacted:email]"),
                _ => assert_eq!(rest, ": Mail [redacted:github_token] to ada@example.com"),
            }
            assert!(!super::support::every_row(desk).lines().any(|line| line.contains("desk.attention") && line.contains(secret)));
        }
    }

    fn a_digest_tells_all_of_the_day_and_leaves_out_what_was_decided(desk: &TestDesk) {
        let owner = desk.claim();
        let from = begin(desk);
        set(desk, &owner, json!({ "outlet": "mail", "address": "ada@example.org", "zone": "Europe/Berlin", "digest": { "every": "day", "at": "18:00" } })).unwrap();
        let first = ask(desk, &proposal("crm.deals", "medium"));
        let mut next = follow(desk, from);
        for number in 0..30 {
            ask(desk, &New { title: format!("Deal {number}"), ..proposal("crm.deals", "low") });
            if number % 10 == 0 {
                next = follow(desk, next);
                pass(desk, 600);
            }
        }
        follow(desk, next);
        let one = listed(desk, &owner).remove(0);
        assert_eq!((&one["count"], &one["due_at"]), (&json!(31), &json!("2026-01-01T17:00:00.000000Z")));
        assert_eq!(one["items"].as_array().unwrap().len(), 20, "a list shows the first");
        assert!(claim(desk).is_empty());
        show_presence(desk, &owner);
        desk.call(&owner, "desk_request_reject", json!({ "request": first.id, "reason": "no" })).unwrap();
        pass(desk, 17 * 3_600);
        assert_eq!(claim(desk).len(), 1);
        let letter = take(desk, &one).unwrap();
        assert_eq!((letter.lines.len(), letter.more, letter.title.as_str()), (20, 10, "Deskmate: 30 things need you"));
    }

    fn what_is_urgent_comes_through_only_where_the_person_says_so(desk: &TestDesk) {
        let owner = desk.claim();
        let from = begin(desk);
        // The clock of the test begins at midnight in UTC.
        let quiet = json!({ "from": "22:00", "to": "07:00" });
        set(desk, &owner, json!({ "outlet": "chat", "name": "open", "quiet_hours": quiet, "urgent_passes": true })).unwrap();
        set(desk, &owner, json!({ "outlet": "chat", "name": "shut", "quiet_hours": quiet })).unwrap();
        set(desk, &owner, json!({ "outlet": "chat", "name": "late", "digest": { "every": "day", "at": "18:00" }, "urgent_passes": true })).unwrap();
        ask(desk, &New { priority: Priority::Urgent, ..proposal("crm.deals", "medium") });
        ask(desk, &proposal("crm.leads", "medium"));
        follow(desk, from);
        let due = |name: &str, urgent: bool| {
            let all = listed(desk, &owner);
            let one = all.iter().find(|one| one["channel"].as_str().unwrap().ends_with(name) && one["urgent"] == urgent).unwrap();
            at(one["due_at"].as_str().unwrap())
        };
        let (morning, evening, soon) = (at("2026-01-01T07:00:00Z"), at("2026-01-01T18:00:00Z"), at("2026-01-01T00:01:00Z"));
        assert_eq!((due("open", false), due("shut", false), due("shut", true), due("late", false)), (morning, morning, morning, evening));
        assert!(due("open", true) < soon && due("late", true) < soon);
    }

    fn what_nobody_decides_is_told_again_by_its_risk(desk: &TestDesk) {
        let owner = desk.claim();
        let from = begin(desk);
        set(desk, &owner, json!({ "outlet": "chat" })).unwrap();
        set(desk, &owner, json!({ "outlet": "chat", "name": "once", "reminders": false })).unwrap();
        for (domain, risk) in [("a", "low"), ("b", "medium"), ("c", "high"), ("d", "critical")] {
            ask(desk, &proposal(domain, risk));
        }
        let mut next = follow_with(desk, from, &reminders());
        assert_eq!(remind(desk), 0);
        for _ in 0..20 {
            pass(desk, 900);
            remind(desk);
            next = follow_with(desk, next, &reminders());
        }
        let told: Vec<String> = events(desk, "notification.reminded").iter().rev().map(|event| event["facts"]["domain"].as_str().unwrap().to_owned()).collect();
        assert_eq!(told, ["d", "c", "b"], "what is of low risk is not told again");
        let channels: Vec<String> = listed(desk, &owner)
            .iter()
            .filter(|one| one["items"].as_array().unwrap().iter().any(|item| item["event"] == "notification.reminded"))
            .map(|one| one["channel"].as_str().unwrap().rsplit('/').next().unwrap().to_owned())
            .collect();
        assert!(!channels.is_empty() && channels.iter().all(|name| name == "chat"), "{channels:?}");
    }

    fn a_reminder_comes_before_a_request_expires_and_not_for_what_was_decided(desk: &TestDesk) {
        let owner = desk.claim();
        let from = begin(desk);
        set(desk, &owner, json!({ "outlet": "chat" })).unwrap();
        let expiring = ask(desk, &proposal("crm.deals", "low"));
        let decided = ask(desk, &proposal("crm.leads", "low"));
        // One that lives so shortly that it was told only just now is not told again.
        let mut short = proposal("crm.notes", "low");
        short.decision.needs.expires_seconds = 90 * 60;
        ask(desk, &short);
        let next = follow_with(desk, from, &reminders());
        take(desk, &listed(desk, &owner)[0]).unwrap();
        desk.call(&owner, "desk_request_reject", json!({ "request": decided.id, "reason": "no" })).unwrap();
        pass(desk, 7 * 86_400 - 2 * 3_600);
        assert_eq!(remind(desk), 0);
        pass(desk, 3_700);
        assert_eq!(remind(desk), 2, "both are looked at");
        let told = events(desk, "notification.reminded");
        assert_eq!((told.len(), &told[0]["facts"]["request"], &told[0]["facts"]["why"]), (1, &json!(expiring.id), &json!("expires")));
        follow_with(desk, next, &reminders());
        let again = listed(desk, &owner).into_iter().find(|one| one["items"][0]["event"] == "notification.reminded").unwrap();
        let line = take(desk, &again).unwrap().lines.remove(0).text;
        assert!(line.starts_with("[low risk] code still waits for a proposal in crm.deals; it expires 2026-01-08 00:00 UTC"), "{line}");
        assert_eq!(remind(desk), 0, "once");
    }

    fn what_was_put_off_is_told_when_that_is_over(desk: &TestDesk) {
        let owner = desk.claim();
        let from = begin(desk);
        set(desk, &owner, json!({ "outlet": "chat" })).unwrap();
        let made = ask(desk, &proposal("crm.deals", "medium"));
        let asked = ask(desk, &proposal("crm.leads", "medium"));
        follow_with(desk, from, &reminders());
        desk.call(&owner, "desk_request_snooze", json!({ "request": made.id, "until": "2026-01-01T10:00:00Z" })).unwrap();
        desk.call(&owner, "desk_request_ask", json!({ "request": asked.id, "question": "which?" })).unwrap();
        pass(desk, 5 * 3_600);
        remind(desk);
        assert!(events(desk, "notification.reminded").is_empty());
        pass(desk, 5 * 3_600 + 60);
        assert_eq!(desk.act(|cx| request::wake_due(cx, 10)).unwrap(), 1);
        remind(desk);
        let told = events(desk, "notification.reminded");
        assert_eq!((told.len(), &told[0]["facts"]["request"]), (1, &json!(made.id)), "what waits for its requester does not wait for people");
    }

    fn statements_go_through_their_index(desk: &TestDesk) {
        let engine = desk.desk.db.engine();
        let plans: deskmate_core::Result<Vec<String>> = desk.desk.db.write_blocking(move |tx| {
            for number in 0..2_000 {
                tx.batch(&format!(
                    "insert into reminder (request, why, due_at) values ('r{number}', 'waits', {number}); \
                     insert into notification (id, channel, urgent, state, count, test, job, opened_at, due_at, items) \
                     values ('n{number}', 'c{number}', false, '{}', 1, false, '', {number}, 0, '[]')",
                    if number % 100 == 0 { "failed" } else { "delivered" }
                ))?;
            }
            if engine == Engine::Postgres {
                tx.batch("analyze reminder; analyze notification")?;
            }
            let params = |sql: &str| {
                if sql.starts_with("select count") {
                    return vec![Param::Text("p"), Param::Bool(false)];
                }
                let all = if sql.contains("$4") { vec![Param::Int(i64::MAX), Param::Text(""), Param::Int(50), Param::Text("p"), Param::Bool(false)] } else { vec![Param::Int(10), Param::Int(50)] };
                let count = (1..=5).take_while(|number| sql.contains(&format!("${number}"))).count();
                all.into_iter().take(count).collect::<Vec<_>>()
            };
            Ok(INDEXED.iter().map(|(sql, _)| testkit::plan(tx, sql, &params(sql))).collect::<deskmate_db::Result<_>>()?)
        });
        for ((sql, index), plan) in INDEXED.iter().zip(plans.unwrap()) {
            assert!(plan.contains(index), "{sql}\ndoes not use {index}:\n{plan}");
        }
    }
}
