//! Every rule of every template fires on a case and stays silent on another; what is wrong with somebody's own is said.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{Library, POLICIES, policies, policy};
use crate::policy::{CaseResult, Parts, Policy, Rule, Rulebook, Template, run_cases};

fn run(policy: &Policy) -> Vec<CaseResult> {
    let parts = Parts { policies: [(policy.id.clone(), policy.clone())].into(), ..Parts::default() };
    run_cases(&Rulebook::compile(parts, BTreeMap::new()).unwrap(), None)
}

fn fill(id: &str, values: Value) -> Result<Policy, String> {
    let values = values.as_object().cloned().unwrap_or_default();
    policy(id).unwrap().fill("mine", &values).map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

#[test]
fn all_can_be_read() {
    for text in POLICIES {
        if let Err(problems) = Template::read(text) {
            panic!("{}\n{problems:#?}", text.lines().nth(1).unwrap_or_default());
        }
    }
    assert_eq!(policies().len(), 19);
    assert_eq!(Library::default().all().count(), 12);
    assert!(policy("rate-limiting").unwrap().text().contains("id: rate-limiting"));
    for agent in Library::default().all() {
        assert!(!agent.policies.is_empty() && agent.policies.iter().all(|id| policy(id).is_some()), "{}", agent.id);
    }
}

#[test]
fn every_rule_has_a_case_that_fires_it_and_one_that_does_not() {
    let mut rules_of_all = 0;
    for template in policies() {
        let policy = template.fill(&template.id, &Map::new()).unwrap();
        let results = run(&policy);
        for result in &results {
            assert!(result.passed, "{}: {}: {}", template.id, result.name, result.difference.as_deref().unwrap_or_default());
        }
        for rule in &policy.rules {
            let Rule::General(rule) = rule else { panic!("{} has a rule about a field", template.id) };
            rules_of_all += 1;
            assert!(results.iter().any(|result| result.hits.contains(&rule.name)), "{}: no case fires {}", template.id, rule.name);
            assert!(results.iter().any(|result| !result.hits.contains(&rule.name)), "{}: every case fires {}", template.id, rule.name);
            assert!(!rule.message.is_empty(), "{}: {} tells nothing", template.id, rule.name);
        }
        assert!(policy.tests.iter().all(|case| case.hits.is_some()), "{}: a case does not say which rules fire", template.id);
    }
    assert_eq!(rules_of_all, 15 + 21 + 19 + 6);
}

#[test]
fn the_rules_that_users_know_are_there() {
    for (id, framework, rules) in [
        ("pii-protection", Some("GDPR"), 3),
        ("rate-limiting", None, 2),
        ("cost-control", None, 2),
        ("data-deletion", None, 3),
        ("secrets-protection", None, 2),
        ("human-review", None, 3),
        ("gdpr-compliance", Some("GDPR"), 4),
        ("soc2-security", Some("SOC2"), 4),
        ("hipaa-healthcare", Some("HIPAA"), 3),
        ("pci-dss-payments", Some("PCI_DSS"), 3),
        ("read-only-access", None, 4),
        ("production-safety", None, 3),
    ] {
        let template = policy(id).unwrap_or_else(|| panic!("{id}"));
        assert_eq!(template.framework.as_deref(), framework, "{id}");
        assert_eq!(template.fill("x", &Map::new()).unwrap().rules.len(), rules, "{id}");
    }
    let frameworks: BTreeSet<&str> = policies().iter().filter_map(|template| template.framework.as_deref()).collect();
    assert_eq!(frameworks, ["CCPA", "FEDRAMP", "GDPR", "HIPAA", "ISO27001", "NIST", "PCI_DSS", "SOC2"].into());
}

#[test]
fn values_are_filled_in_and_checked() {
    let filled = fill("rate-limiting", json!({ "calls_per_minute": 5 })).unwrap();
    let Rule::General(rule) = &filled.rules[0] else { panic!() };
    assert_eq!(rule.when.as_deref(), Some("(does('call') || does('fetch')) && counters.calls_minute >= 5"));
    assert_eq!(rule.message, "5 calls in a minute are enough");
    assert!(filled.tests.is_empty(), "the cases were written for other values");
    assert_eq!(fill("rate-limiting", json!({ "calls_per_minute": 100 })).unwrap().tests.len(), 5);
    let filled = fill("production-safety", json!({ "approvers": 3, "environments": ["live"] })).unwrap();
    let Rule::General(rule) = &filled.rules[0] else { panic!() };
    assert_eq!((rule.quorum, rule.matches.environment.as_slice()), (Some(3), ["live".to_owned()].as_slice()));
    for (id, values, said) in [
        ("rate-limiting", json!({ "calls_per_minute": 0 }), "values.calls_per_minute: 0 is out of bounds: write a number from 1 to 1000000"),
        ("rate-limiting", json!({ "calls_per_minute": 1.5 }), "write a whole number"),
        ("rate-limiting", json!({ "calls_per_minute": "5" }), "write a whole number"),
        ("rate-limiting", json!({ "calls_per_minut": 5 }), "did you mean `calls_per_minute`?"),
        ("secrets-protection", json!({ "x": 5 }), "this template has none"),
        ("pii-protection", json!({ "forbidden_fields": [] }), "with at least one"),
        ("pii-protection", json!({ "forbidden_fields": ["a\nb"] }), "no control characters"),
        ("pii-protection", json!({ "forbidden_fields": vec!["x".repeat(50); 50] }), "the condition is"),
    ] {
        let problems = fill(id, values.clone()).unwrap_err();
        assert!(problems.contains(said), "{id} {values}: {problems}");
    }
}

#[test]
fn what_is_filled_in_stays_a_value() {
    for hostile in ["x'] || true || name in ['y", "\\", "x\\' || true || '", "${forbidden_fields}", "' + act.kind + '"] {
        let filled = fill("pii-protection", json!({ "forbidden_fields": [hostile] })).unwrap();
        let parts = Parts { policies: [("mine".to_owned(), filled)].into(), ..Parts::default() };
        let mut case = policy("pii-protection").unwrap().fill("mine", &Map::new()).unwrap().tests.pop().unwrap();
        case.name = hostile.to_owned();
        let result = crate::policy::run_case(&Rulebook::compile(parts, BTreeMap::new()).unwrap(), "mine", &case);
        assert!(result.passed, "{hostile}: {:?}", result.difference);
    }
}

#[test]
fn what_is_wrong_with_a_template_of_ones_own_is_said() {
    let head = "template: { id: mine, title: Mine, description: What it is for, category: custom, parameters: [{ name: n, kind: count, default: 5, about: How many }] }\n";
    let good = format!("{head}rules:\n  - {{ name: a, when: 'counters.calls_day > ${{n}}', effect: deny }}\n");
    assert_eq!(Template::read(&good).unwrap().fill("x", &Map::new()).unwrap().rules.len(), 1);
    for (text, line, said) in [
        ("rules: []".to_owned(), 1, "`template` is missing"),
        (format!("{head}rules:\n  - {{ name: a, when: 'counters.calls_day > ${{m}}', effect: deny }}\n"), 3, "`${m}` is no parameter"),
        (format!("{head}rules:\n  - {{ name: a, effect: deny }}\n"), 3, "no rule has `${n}`"),
        (format!("{head}rules:\n  - {{ name: a, when: 'counters.calls_dy > ${{n}}', effect: deny }}\n"), 3, "did you mean `counters.calls_day`?"),
        (format!("{head}rules:\n  - {{ name: a, when: 'counters.calls_day > ${{n', effect: deny }}\n"), 3, "a gap has no end"),
        (good.replace("kind: count", "kind: number of things"), 1, "is not known here"),
        (good.replace("default: 5", "default: many"), 1, "write a whole number"),
        (good.replace("category: custom", "categry: custom"), 1, "`category` is missing"),
        (good.replace("name: n,", "name: N-1,"), 1, "is no name"),
        (format!("{good}test: []\n"), 4, "did you mean `tests`?"),
    ] {
        let problems = Template::read(&text).unwrap_err();
        let found = problems.iter().find(|problem| problem.message.contains(said)).unwrap_or_else(|| panic!("{text}\n{problems:#?}"));
        assert_eq!(found.line, line, "{text}\n{problems:#?}");
    }
}
