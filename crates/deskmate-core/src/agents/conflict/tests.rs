//! What is called a conflict is one: rules in the shadow and rules that cannot fire never change an answer, whatever the act.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Conflict, ConflictKind, RULES_COMPARED_MAX, conflicts};
use crate::agents::template;
use crate::policy::{Act, Counters, Decision, Document, Parts, Policy, Rulebook, Standing, decide};
use crate::policy::{Mapping, PolicyMode};
use crate::trust::Points;

fn policies(text: &str) -> Vec<Policy> {
    Document::parse(text).unwrap_or_else(|problems| panic!("{problems:#?}")).policies.unwrap().into_values().collect()
}

fn shown(found: &[Conflict]) -> Vec<String> {
    found
        .iter()
        .map(|conflict| {
            let other = conflict.other.as_ref().map(|other| format!(" {}/{}", other.policy, other.rule)).unwrap_or_default();
            format!("{:?} {}/{}{other}", conflict.kind, conflict.rule.policy, conflict.rule.rule)
        })
        .collect()
}

#[test]
fn what_one_allows_and_another_refuses() {
    let found = conflicts(&policies(
        "policies:
  - id: a
    rules:
      - { name: mail, match: { kind: [mail.*] }, effect: allow, waive_trust: true }
      - { name: small, match: { kind: [payment.create] }, when: args.amount < 100, effect: allow }
  - id: b
    rules:
      - { name: no_mail, match: { kind: [mail.send] }, effect: deny }
      - { name: dear, match: { kind: [payment.*] }, when: args.amount >= 100, effect: deny }
      - { name: late, match: { kind: [payment.*] }, when: time.hour > 20, effect: deny }
      - { name: elsewhere, match: { kind: [file.*] }, effect: deny }
",
    ))
    .unwrap();
    assert_eq!(shown(&found.found), ["Contradicting a/mail b/no_mail", "Contradicting a/small b/late"]);
    assert!(found.found.iter().all(|conflict| conflict.example.is_some()), "{:?}", found.found);
    assert_eq!(found.untold.len(), 1, "small and dear never hold together, but that is not proved: {:?}", found.untold);
}

#[test]
fn what_leaves_nothing() {
    let found = conflicts(&policies(
        "policies:
  - { id: a, rules: [{ field: amount, constraint: value_range, min: 100 }, { field: stage, constraint: enum, values: [x, y] }, { name: ada, effect: require_approval, approvers: [Ada] }] }
  - { id: b, rules: [{ field: amount, constraint: value_range, max: 50 }, { field: stage, constraint: enum, values: [y] }, { name: bo, effect: require_approval, approvers: [Bo] }] }
",
    ))
    .unwrap();
    assert_eq!(shown(&found.found), ["Contradicting a/ada b/bo", "Contradicting a/value_range_amount b/value_range_amount"]);
}

#[test]
fn what_is_in_the_shadow() {
    let found = conflicts(&policies(
        "policies:
  - id: a
    rules:
      - { name: all_deletes, match: { kind: ['*.delete'] }, effect: deny, severity: high }
      - { name: much, match: { kind: [pay] }, when: args.amount > 500, effect: require_approval }
      - { name: twice, match: { kind: [pay] }, when: args.amount > 500, effect: require_approval }
  - id: b
    rules:
      - { name: prod_deletes, match: { kind: ['*.delete'], environment: [production] }, effect: require_approval }
      - { name: more, match: { kind: [pay] }, when: args.amount > 1000 && act.domain == 'x', effect: require_approval }
      - { name: less, match: { kind: [pay] }, when: args.amount > 400, effect: require_approval }
      - { name: more_people, match: { kind: [pay] }, when: args.amount > 1000, effect: require_approval, quorum: 2 }
      - { name: noted, match: { kind: [file.delete] }, effect: log }
      - { name: worse, match: { kind: [file.delete] }, effect: deny, severity: critical }
      - { field: amount, constraint: value_range, max: 10 }
      - { field: amount, constraint: value_range, max: 20 }
      - { field: 'am*', constraint: high_risk }
      - { field: amount, constraint: high_risk }
",
    ))
    .unwrap();
    let shadowed: Vec<String> = shown(&found.found).into_iter().filter(|line| line.starts_with("Shadowed")).collect();
    assert_eq!(
        shadowed,
        [
            "Shadowed a/much b/less",
            "Shadowed a/twice a/much",
            "Shadowed b/high_risk_amount b/high_risk_am*",
            "Shadowed b/more a/much",
            "Shadowed b/prod_deletes a/all_deletes",
            "Shadowed b/value_range_amount b/value_range_amount"
        ]
    );
}

#[test]
fn what_can_never_fire() {
    for (rule, expected) in [
        ("when: 'false'", true),
        ("when: time.hour > 20 && time.hour < 5", true),
        ("when: time.hour > 20 || time.hour < 5", false),
        ("when: time.hour == 24", true),
        ("when: time.weekday > 7", true),
        ("when: trust.score > 1.0", true),
        ("when: trust.score < 0.3 && trust.score > 0.3", true),
        ("when: counters.calls_day < 0", true),
        ("when: act.kind == 'a' && act.kind == 'b'", true),
        ("when: \"act.kind in ['a', 'b'] && act.kind in ['c']\"", true),
        ("when: act.kind == 'a' && act.kind != 'a'", true),
        ("when: agent.verified && !agent.verified", true),
        ("when: \"!(act.kind == 'a' || act.kind != 'a')\"", true),
        ("match: { kind: [mail.*] }, when: act.kind == 'file.read'", true),
        ("match: { kind: [mail.*] }, when: act.kind == 'mail.read'", false),
        ("match: { environment: [production] }, when: act.environment != 'production'", false),
        // What an act need not have can be impossible to tell, and then the rule fires.
        ("when: args.x > 5 && args.x < 3", false),
        ("when: args.x && !args.x", false),
        ("when: has(args.x) && time.hour > 24", true),
        ("when: args.x > 5 && time.hour > 24", true),
        ("when: does('mail')", false),
    ] {
        let found = conflicts(&policies(&format!("policies:\n  - {{ id: a, rules: [{{ name: r, {rule}, effect: deny }}] }}\n"))).unwrap();
        assert_eq!(shown(&found.found), if expected { vec!["Unreachable a/r"] } else { vec![] }, "{rule}");
    }
}

#[test]
fn templates_do_not_contradict_each_other() {
    let all: Vec<Policy> = template::policies().iter().map(|template| template.fill(&template.id, &serde_json::Map::new()).unwrap()).collect();
    let found = conflicts(&all).unwrap();
    let wrong: Vec<&Conflict> = found.found.iter().filter(|conflict| conflict.kind != ConflictKind::Shadowed).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let of =
        |id: &str| found.found.iter().filter(|conflict| conflict.rule.policy == id && conflict.other.as_ref().is_some_and(|other| other.policy == id)).count();
    assert!(all.iter().all(|policy| of(&policy.id) == 0), "no template has a rule that another of its own makes useless");
}

#[test]
fn too_many_rules_are_refused() {
    let rules: Vec<Value> = (0..=RULES_COMPARED_MAX).map(|number| json!({ "name": format!("r{number}"), "effect": "log" })).collect();
    let policy: Policy = serde_json::from_value(json!({ "id": "a", "rules": rules })).unwrap();
    assert!(conflicts(&[policy]).unwrap_err()[0].message.contains("too many"));
}

fn pattern() -> impl Strategy<Value = Vec<String>> {
    let one = prop::sample::select(vec!["a", "b", "a.x", "a.y", "a.*", "*", "b.*", "?", "*.x"]).prop_map(str::to_owned);
    prop_oneof![3 => Just(Vec::new()), 2 => prop::collection::vec(one, 1..3)]
}

fn condition() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        (
            prop::sample::select(vec!["time.hour", "time.weekday", "counters.calls_day", "args.n", "largest('n')", "count('list')", "trust.score", "act.cost"]),
            prop::sample::select(vec![">", "<", ">=", "<=", "==", "!="]),
            prop::sample::select(vec!["0", "1", "5", "6", "12", "23", "24", "0.5", "5.5", "-1"])
        )
            .prop_map(|(left, sign, right)| format!("{left} {sign} {right}")),
        (
            prop::sample::select(vec!["act.kind", "act.domain", "act.environment", "args.t"]),
            prop::sample::select(vec!["==", "!="]),
            prop::sample::select(vec!["a", "b", "a.x"])
        )
            .prop_map(|(left, sign, right)| format!("{left} {sign} '{right}'")),
        (prop::sample::select(vec!["act.kind", "args.t"]), prop::sample::select(vec!["['a']", "['a', 'b']", "['b', 'a.x']"]))
            .prop_map(|(left, list)| format!("{left} in {list}")),
        prop::sample::select(vec!["true", "false", "agent.verified", "has(args.n)", "args.flag", "does('delete')", "holds('email')", "says('flag')"])
            .prop_map(str::to_owned),
    ];
    atom.prop_recursive(3, 10, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} && {right})")),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} || {right})")),
            inner.prop_map(|inner| format!("!({inner})")),
        ]
    })
}

fn rule(number: usize) -> impl Strategy<Value = Value> {
    let general = (
        pattern(),
        pattern(),
        prop::option::of(condition()),
        prop::sample::select(vec!["deny", "require_approval", "allow", "log"]),
        prop::sample::select(vec!["info", "warning", "high"]),
        prop::option::of(1_u32..4),
        any::<bool>(),
    )
        .prop_map(move |(kind, domain, when, effect, severity, quorum, waive)| {
            let mut rule = json!({ "name": format!("r{number}"), "match": { "kind": kind, "domain": domain }, "effect": effect, "severity": severity });
            if let Some(when) = when {
                rule["when"] = json!(when);
            }
            if effect == "require_approval" {
                if let Some(quorum) = quorum {
                    rule["quorum"] = json!(quorum);
                }
                if waive {
                    rule["grant_seconds"] = json!(60);
                }
            }
            if effect == "allow" {
                rule["waive_trust"] = json!(waive);
            }
            rule
        });
    let field =
        (prop::sample::select(vec!["n", "n*", "t", "deep.n", "deep.*"]), prop::sample::select(vec!["high_risk", "readonly", "value_range", "enum"]), 0..4_i32)
            .prop_map(|(field, constraint, number)| match constraint {
                "value_range" => json!({ "field": field, "constraint": constraint, "min": number, "max": number + 3 }),
                "enum" => json!({ "field": field, "constraint": constraint, "values": [number, "a"] }),
                _ => json!({ "field": field, "constraint": constraint }),
            });
    prop_oneof![3 => general, 1 => field]
}

fn set() -> impl Strategy<Value = Vec<Policy>> {
    let policy = |id: &'static str| {
        (rule(0), rule(1), rule(2), rule(3)).prop_map(move |(a, b, c, d)| serde_json::from_value::<Policy>(json!({ "id": id, "rules": [a, b, c, d] })).unwrap())
    };
    (policy("p"), policy("q")).prop_map(|(p, q)| vec![p, q])
}

#[derive(Clone, Debug)]
struct Situation {
    act: Act,
    standing: Standing,
    counters: Counters,
    now: i64,
}

fn situation() -> impl Strategy<Value = Situation> {
    let name = || prop::sample::select(vec!["a", "b", "a.x", "a.y", "b.x", "c", ""]);
    let value = prop_oneof![
        Just(Value::Null),
        (-1..8_i64).prop_map(Value::from),
        (0..12_i32).prop_map(|half| json!(f64::from(half) / 2.0)),
        prop::sample::select(vec!["a", "b", "a.x", "5", "ada@example.org"]).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(json!([1, 2, 3]))
    ];
    let arguments = prop_oneof![
        1 => Just(json!("text")),
        1 => Just(json!({})),
        6 => prop::collection::btree_map(prop::sample::select(vec!["n", "t", "flag", "list", "deep", "x"]).prop_map(str::to_owned), value, 0..5).prop_map(|table| json!(table)),
        1 => (0..8_i64).prop_map(|n| json!({ "deep": { "n": n } })),
    ];
    (name(), name(), name(), arguments, 0..3_i64, any::<bool>(), 0..3_i32, 0..30_i64, 0..(14 * 24_i64)).prop_map(
        |(kind, domain, environment, arguments, cost, verified, score, calls, hour)| Situation {
            act: Act {
                kind: kind.to_owned(),
                tool: "t".to_owned(),
                domain: domain.to_owned(),
                environment: environment.to_owned(),
                action: if calls % 2 == 0 { "delete" } else { "look" }.to_owned(),
                target: String::new(),
                arguments,
                cost: cost * 3_000_000,
                call: true,
                ..Act::default()
            },
            standing: Standing {
                agent: "a".to_owned(),
                verified,
                paused: false,
                score: Points::of(f64::from(score) / 2.0),
                decided: 5,
                over_a_persons_edit: false,
                waived_by: None,
                attached: None,
            },
            counters: Counters { calls_day: calls, ..Counters::default() },
            now: hour * 3_600_000_000,
        },
    )
}

fn rulebook(policies: &[Policy]) -> Rulebook {
    let mut parts = Parts { mode: PolicyMode::Permissive, ..Parts::default() };
    for policy in policies {
        parts.mappings.insert(Mapping { agent: "*".to_owned(), domain: "*".to_owned(), policy: policy.id.clone() });
        parts.policies.insert(policy.id.clone(), policy.clone());
    }
    Rulebook::compile(parts, BTreeMap::new()).unwrap()
}

/// What the answer is made of, without which rules were looked at and named.
fn answer(rulebook: &Rulebook, at: &Situation) -> (Decision, Value) {
    let decision = decide(rulebook, &at.act, &at.standing, &at.counters, at.now);
    let needs = serde_json::to_value(&decision.needs).unwrap();
    let told = json!([decision.mode, needs, decision.risk, decision.redact, decision.hides, decision.high_risk_field]);
    (decision, told)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 4, ..ProptestConfig::default() })]
    #[test]
    fn what_is_reported_never_changes_an_answer(set in set(), situations in prop::collection::vec(situation(), 40)) {
        let found = conflicts(&set).unwrap();
        let whole = rulebook(&set);
        let idle: Vec<&Conflict> = found.found.iter().filter(|conflict| conflict.kind != ConflictKind::Contradicting).collect();
        let without = |leave: &dyn Fn(&str, usize) -> bool| {
            let mut set = set.clone();
            for policy in &mut set {
                let id = policy.id.clone();
                let mut place = 0;
                policy.rules.retain(|_| {
                    place += 1;
                    !leave(&id, place - 1)
                });
            }
            rulebook(&set)
        };
        let mut others: Vec<Rulebook> = idle.iter().map(|conflict| without(&|policy, place| conflict.rule.policy == policy && conflict.rule.place == place)).collect();
        others.push(without(&|policy, place| idle.iter().any(|conflict| conflict.rule.policy == policy && conflict.rule.place == place)));
        for at in &situations {
            let (decision, told) = answer(&whole, at);
            for other in &others {
                prop_assert_eq!(&answer(other, at).1, &told, "{:?}", shown(&found.found));
            }
            for conflict in idle.iter().filter(|conflict| conflict.kind == ConflictKind::Unreachable) {
                prop_assert!(!decision.hits.iter().any(|hit| hit.policy == conflict.rule.policy && hit.rule_id == conflict.rule.rule), "{:?}", conflict);
            }
        }
    }
}
