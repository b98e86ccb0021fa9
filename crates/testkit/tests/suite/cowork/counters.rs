//! Rules about what an agent used up: every counter that the page of policies names really counts what it says.

use deskmate_core::policy::Act;
use deskmate_core::request::{self, New, RequestKind, Requester};
use serde_json::json;
use testkit::{Caller, both};

use super::*;

/// A counter, the agent that uses it up, what each of its acts costs, and after how many seconds it is back at nothing.
const COUNTERS: [(&str, Caller, f64, Option<u64>); 8] = [
    ("calls_minute", Caller::Agent("a"), 0.0, Some(61)),
    ("calls_hour", Caller::Agent("b"), 0.0, Some(3_601)),
    ("calls_day", Caller::Agent("c"), 0.0, Some(86_400)),
    ("calls_hour_all", Caller::Agent("d"), 0.0, Some(3_601)),
    ("calls_day_all", Caller::Agent("e"), 0.0, Some(86_400)),
    ("cost_day", Caller::Agent("f"), 1.0, Some(86_400)),
    ("denied_day", Caller::Agent("g"), 0.0, Some(86_400)),
    ("pending", Caller::Agent("h"), 0.0, None),
];

/// A counter, the seconds from the proposal until its act begins, after which its own use counts no longer.
const LATER: [(&str, u64); 6] =
    [("calls_minute", 90), ("calls_hour", 4_000), ("calls_hour_all", 4_000), ("calls_day", 90_000), ("calls_day_all", 90_000), ("cost_day", 90_000)];

const RULES: &str = "
rules:
  - { name: calls_minute, match: { domain: [calls_minute] }, when: counters.calls_minute > 1, effect: deny }
  - { name: calls_hour, match: { domain: [calls_hour] }, when: counters.calls_hour > 1, effect: deny }
  - { name: calls_day, match: { domain: [calls_day] }, when: counters.calls_day > 1, effect: deny }
  - { name: calls_hour_all, match: { domain: [calls_hour_all] }, when: counters.calls_hour_all > 1, effect: deny }
  - { name: calls_day_all, match: { domain: [calls_day_all] }, when: counters.calls_day_all > 1, effect: deny }
  - { name: cost_day, match: { domain: [cost_day] }, when: counters.cost_day > 1.0, effect: deny }
  - { name: denied_day, match: { domain: [denied_day] }, when: counters.denied_day > 1, effect: deny }
  - { name: pending, match: { domain: [pending] }, when: counters.pending > 1, effect: deny }
  - { name: never, match: { domain: [never] }, effect: deny }
";

both! {
    fn a_rule_about_any_counter_fires_when_so_much_is_used_up(desk: &TestDesk) {
        in_force(desk, RULES);
        for (counter, agent, cost, back) in COUNTERS {
            let ask = |domain: &str| {
                let mut input = proposal(domain, json!({ "name": "x" }));
                input["cost"] = json!(cost);
                ok(desk, &agent, "propose", input)
            };
            // What is counted in all domains is used up in another one; what is counted in one is used up there.
            let elsewhere = match counter {
                "calls_minute" | "calls_hour" | "calls_day" => counter,
                "denied_day" => "never",
                _ => "elsewhere",
            };
            assert_eq!(ask(elsewhere)["error"].is_null(), counter != "denied_day", "{counter}");
            let one = ask(counter);
            assert!(one["error"].is_null(), "{counter} after one: {one}");
            if counter == "denied_day" {
                ask(elsewhere);
            }
            let two = ask(counter);
            assert_eq!(two["violations"][0]["rule_id"], counter, "{counter} after two: {two}");
            // One domain's counters are not another's.
            if elsewhere == counter {
                assert!(ask("elsewhere")["error"].is_null(), "{counter}");
            }
            if let Some(seconds) = back {
                pass(desk, seconds);
                let later = ask(counter);
                assert!(later["error"].is_null(), "{counter} later: {later}");
            }
        }
        sound(desk);
    }

    fn an_act_that_passed_does_not_stand_in_its_own_way(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        trusted(desk, &owner, &sales, "crm");
        pass(desk, 61);
        in_force(desk, "rules: [{ name: slowly, when: counters.calls_minute > 0, effect: deny }]");
        let answer = propose(desk, &sales, "crm", json!({ "name": "x" }));
        assert_eq!(answer["mode"], "act", "{answer}");
        assert_eq!(ok(desk, &sales, "begin", json!({ "proposal_id": answer["proposal_id"] }))["go"], true);
        assert_eq!(propose(desk, &sales, "crm", json!({ "name": "x" }))["violations"][0]["rule_id"], "slowly");
    }

    fn an_act_that_begins_later_lets_nothing_off(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        in_force(desk, RULES);
        in_force(desk, "authority: { request_seconds: 1000000, grant_seconds: 1000000 }");
        for (counter, seconds) in LATER {
            let ask = || {
                let mut input = proposal(counter, json!({ "name": "x" }));
                input["cost"] = json!(1.0);
                text(&ok(desk, &sales, "propose", input), "proposal_id")
            };
            // Two others while its own use counts: two are too many, its own does not matter.
            let (early, late) = (ask(), ask());
            let owner = signed_in(desk);
            approve(desk, &owner, &early);
            approve(desk, &owner, &late);
            assert_eq!(ok(desk, &sales, "begin", json!({ "proposal_id": early }))["go"], true, "{counter}: itself and one more");
            pass(desk, seconds);
            ask();
            ask();
            let begun = ok(desk, &sales, "begin", json!({ "proposal_id": late }));
            assert_eq!((&begun["go"], &begun["stopped"]), (&json!(false), &json!("forbidden")), "{counter}: two others, and its own is past: {begun}");
            pass(desk, 90_000);
        }
        sound(desk);
    }

    fn an_act_that_took_no_room_lets_nothing_off(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        in_force(desk, RULES);
        let id = desk.act(|cx| {
            let act = Act { kind: "propose".to_owned(), tool: "cowork_propose".to_owned(), domain: "calls_day".to_owned(), action: "a".to_owned(), arguments: json!({ "name": "x" }), ..Act::default() };
            let decision = request::for_people(cx, "calls_day", "medium", "it came from elsewhere")?;
            let new = New { requester: Some(Requester::agent("sales", true)), ..New::new(RequestKind::Proposal, "a", act, decision) };
            Ok(request::submit(cx, new)?.id)
        }).unwrap();
        approve(desk, &owner, &id);
        for _ in 0..2 {
            propose(desk, &sales, "calls_day", json!({ "name": "x" }));
        }
        assert_eq!(ok(desk, &sales, "begin", json!({ "proposal_id": id }))["go"], false, "two others were counted");
    }
}

/// The page of policies names these counters, and no others.
#[test]
fn every_counter_of_the_page_is_tested() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policy.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `counters.")).filter_map(|row| row.split('|').next());
    let named: Vec<&str> = rows.flat_map(|row| row.split(',')).map(|name| name.trim_matches(['`', ' ', '.'])).collect();
    assert_eq!(named, COUNTERS.map(|(counter, ..)| counter));
}
