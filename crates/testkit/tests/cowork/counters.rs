//! Rules about what an agent used up: every counter that the page of policies names really counts what it says.

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
}

/// The page of policies names these counters, and no others.
#[test]
fn every_counter_of_the_page_is_tested() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policy.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `counters.")).filter_map(|row| row.split('|').next());
    let named: Vec<&str> = rows.flat_map(|row| row.split(',')).map(|name| name.trim_matches(['`', ' ', '.'])).collect();
    assert_eq!(named, COUNTERS.map(|(counter, ..)| counter));
}
