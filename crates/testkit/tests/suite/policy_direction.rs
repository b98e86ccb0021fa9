//! What is called tightening never lets anything through: random drafts over random policies in force, and every answer
//! compared before and after what applies at once.

use std::collections::BTreeMap;

use deskmate_core::policy::draft::{self, Direction, Set};
use deskmate_core::policy::{Act, Counters, Document, Parts, Rulebook, Standing, decide};
use deskmate_core::trust::Points;
use proptest::prelude::*;
use serde_json::json;

fn rule() -> impl Strategy<Value = String> {
    let bound = prop_oneof![Just(0), Just(10), Just(100), Just(1000)];
    prop_oneof![
        (bound.clone(), bound.clone()).prop_map(|(a, b)| format!("{{ field: amount, constraint: value_range, min: {}, max: {} }}", a.min(b), a.max(b))),
        bound.clone().prop_map(|max| format!("{{ field: amount, constraint: value_range, max: {max} }}")),
        proptest::sample::subsequence(vec!["open", "closed", "won"], 1..=3)
            .prop_map(|values| format!("{{ field: status, constraint: enum, values: [{}] }}", values.join(", "))),
        Just("{ field: owner, constraint: readonly }".to_owned()),
        Just("{ field: owner, constraint: high_risk }".to_owned()),
        Just("{ field: own*, constraint: high_risk, reason: look }".to_owned()),
        (1..4_u32).prop_map(|quorum| format!("{{ name: ask, effect: require_approval, quorum: {quorum} }}")),
        (1..4_u32).prop_map(|quorum| format!("{{ name: ask, effect: require_approval, quorum: {quorum}, approvers: [a, b, c, d], grant_seconds: 60 }}")),
        bound.clone().prop_map(|than| format!("{{ name: much, effect: deny, when: 'args.amount > {than}' }}")),
        Just("{ name: much, effect: log, when: 'args.amount > 10' }".to_owned()),
        Just("{ name: ask, effect: deny }".to_owned()),
        Just("{ name: go, effect: allow, waive_trust: true }".to_owned()),
        Just("{ name: go, effect: allow, waive_trust: true, match: { domain: [crm.*] } }".to_owned()),
        Just("{ name: no, effect: deny, match: { domain: [crm.*], agent: [sales] } }".to_owned()),
        Just("{ name: no, effect: deny, match: { domain: [crm.deals] }, message: no }".to_owned()),
        Just("{ name: hide, effect: redact, paths: [amount] }".to_owned()),
    ]
}

/// A list of rules without a name twice.
fn rules() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(rule(), 0..4).prop_map(|rules| {
        let name = |rule: &String| rule.split("name: ").nth(1).and_then(|rest| rest.split(',').next()).map(str::to_owned);
        let mut kept: Vec<String> = Vec::new();
        for rule in rules {
            if name(&rule).is_none() || kept.iter().all(|own| name(own) != name(&rule)) {
                kept.push(rule);
            }
        }
        kept
    })
}

fn settings() -> impl Strategy<Value = String> {
    let one = |name: &'static str, values: &'static [&'static str]| {
        proptest::option::of(proptest::sample::select(values)).prop_map(move |value| value.map(|value| format!("{name}: {value}")))
    };
    let trust = (one("default_level", &["0.1", "0.9"]), one("autonomous_threshold", &["0.5", "0.9"])).prop_map(|(a, b)| section("trust", [a, b]));
    let authority = (
        one("default_mode", &["deny", "escalate", "suggest", "act"]),
        one("volume_cap", &["0", "10", "50", "90"]),
        one(
            "high_risk_fields",
            &["[]", "[owner]", "[owner, deal_stage, commission, utm_*, billing_*]", "[deal_stage, owner, commission, utm_*, billing_*, amount]"],
        ),
        one("calls_per_day", &["5", "null"]),
        one("grant_seconds", &["60", "9000"]),
    );
    let authority = authority.prop_map(|(a, b, c, d, e)| section("authority", [a, b, c, d, e]));
    (trust, authority).prop_map(|(trust, authority)| [trust, authority].into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn section(name: &str, keys: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let keys: Vec<String> = keys.into_iter().flatten().collect();
    (!keys.is_empty()).then(|| format!("{name}: {{ {} }}", keys.join(", ")))
}

/// A document that can be read.
fn document() -> impl Strategy<Value = String> {
    let policy = |name: &'static str| proptest::option::of(rules()).prop_map(move |rules| rules.map(|rules| (name, rules)));
    let pairs = vec![("sales", "crm.deals"), ("sales", "crm.*"), ("sal*", "*"), ("*", "crm.deals"), ("*", "*"), ("other", "crm.deals")];
    let mappings = proptest::collection::vec((proptest::sample::select(pairs), proptest::sample::select(vec!["a", "b"])), 0..3);
    let domains = proptest::option::of((proptest::sample::select(vec!["crm.deals", "crm.*", "c*"]), settings()));
    (policy("a"), policy("b"), policy("default"), rules(), mappings, any::<bool>(), settings(), domains).prop_map(
        |(a, b, default, global, mappings, permissive, settings, domains)| {
            let policies: Vec<(&str, Vec<String>)> = [a, b, default].into_iter().flatten().collect();
            let mut text = String::from("policies:");
            for (name, rules) in &policies {
                text.push_str(&format!("\n  - {{ id: {name}, rules: [{}] }}", rules.join(", ")));
            }
            if policies.is_empty() {
                text.push_str(" []");
            }
            text.push_str(&format!("\nrules: [{}]\nmappings: [", global.join(", ")));
            let known = |policy: &str| policies.iter().any(|(name, _)| *name == policy);
            let unique: std::collections::BTreeSet<_> = mappings.into_iter().filter(|(_, policy)| known(policy)).collect();
            text.push_str(
                &unique
                    .iter()
                    .map(|((agent, domain), policy)| format!("{{ agent_id: '{agent}', domain: '{domain}', policy_id: {policy} }}"))
                    .collect::<Vec<_>>()
                    .join(", "),
            );
            text.push_str(&format!("]\npolicy_mode: {}\n", if permissive { "permissive" } else { "strict" }));
            for part in settings.split("}, ").filter(|part| !part.is_empty()) {
                text.push_str(&format!("{}\n", if part.ends_with('}') { part.to_owned() } else { format!("{part}}}") }));
            }
            if let Some((domain, settings)) = domains {
                text.push_str(&format!("domains: {{ '{domain}': {{ {settings} }} }}\n"));
            }
            text
        },
    )
}

fn parts(text: &str) -> Parts {
    Document::parse(text).unwrap_or_else(|problems| panic!("{text}\n{problems:#?}")).over(&Parts::default())
}

fn compiled(parts: &Parts) -> Rulebook {
    Rulebook::compile(parts.clone(), BTreeMap::new()).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

#[test]
fn what_gave_something_may_go_and_what_was_held_may_be_forbidden_at_once() {
    let (other, allow) = ("{ name: no, effect: deny, match: { domain: [crm.*] } }", "{ name: one, effect: allow, waive_trust: true, match: { tool: [x] } }");
    let (ask, deny) = ("{ name: one, effect: require_approval, match: { tool: [x] } }", "{ name: one, effect: deny, match: { tool: [x] } }");
    let many = "{ name: one, effect: require_approval, quorum: 2, match: { tool: [x] } }";
    let wider = "{ name: one, effect: deny, match: { tool: [y] } }";
    let direction = |from: &[&str], to: &[&str]| {
        let set = |rules: &[&str]| Set::of(&parts(&format!("rules: [{}]", rules.join(", ")))).unwrap();
        let changes = draft::classify(&set(from), draft::whole_difference(&set(from), &set(to)));
        changes.iter().map(|one| one.direction).collect::<Vec<_>>()
    };
    for (from, to) in
        [(&[other, allow][..], &[other][..]), (&[allow], &[]), (&[allow], &[ask]), (&[allow], &[deny]), (&[ask], &[deny]), (&[other], &[other, ask])]
    {
        assert_eq!(direction(from, to), [Direction::Tightens], "{from:?} to {to:?}");
    }
    for (from, to) in
        [(&[deny][..], &[ask][..]), (&[deny], &[]), (&[ask], &[]), (&[ask], &[allow]), (&[many], &[deny]), (&[ask], &[wider]), (&[other], &[other, allow])]
    {
        assert_eq!(direction(from, to), [Direction::Loosens], "{from:?} to {to:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_applies_at_once_never_lets_more_through(
        before in document(),
        after in document(),
        mask in any::<u32>(),
        acts in proptest::collection::vec((
            proptest::sample::select(vec!["sales", "salami", "other"]),
            proptest::sample::select(vec!["crm.deals", "crm.leads", "mail"]),
            proptest::sample::select(vec![json!({}), json!({ "amount": 5 }), json!({ "amount": 500 }), json!({ "amount": "5000" }), json!({ "owner": "bo" }), json!({ "status": "won", "amount": 50 }), json!("text")]),
            0..=1_000_000_000_i64,
            0..2_i64,
            0..100_i64,
        ), 12),
    ) {
        let (before, after): (Parts, Parts) = (parts(&before), parts(&after));
        let (was, mut wanted) = (Set::of(&before).unwrap(), Set::of(&after).unwrap());
        // Some pieces stay as they were, so that drafts are like what is in force.
        for (number, change) in draft::whole_difference(&was, &wanted).into_iter().enumerate() {
            if mask >> (number % 32) & 1 == 1 {
                wanted.set(&change.key, change.from.as_ref());
            }
        }
        let whole = wanted.parts().unwrap();
        prop_assume!(Rulebook::compile(whole, BTreeMap::new()).is_ok());
        let changes = draft::classify(&was, draft::whole_difference(&was, &wanted));
        let mut now = was.clone();
        for one in changes.iter().filter(|one| one.direction != Direction::Loosens) {
            now.set(&one.change.key, one.change.to.as_ref());
        }
        let (was, now) = (compiled(&before), compiled(&now.parts().unwrap()));
        for (agent, domain, change, score, decided, calls) in acts {
            let act = Act { kind: "propose".to_owned(), tool: "cowork_propose".to_owned(), domain: domain.to_owned(), arguments: change, ..Act::default() };
            let standing = Standing { agent: agent.to_owned(), verified: true, paused: false, score: Points(score), decided, over_a_persons_edit: false, waived_by: None, attached: None, };
            let counters = Counters { calls_hour: calls, calls_day: calls, calls_hour_all: calls, calls_day_all: calls, ..Counters::default() };
            let (old, new) = (decide(&was, &act, &standing, &counters, 0), decide(&now, &act, &standing, &counters, 0));
            prop_assert!(new.mode <= old.mode, "{act:?} {standing:?} {counters:?}: {:?} became {:?}\n{changes:#?}", old.mode, new.mode);
            prop_assert!(new.needs.quorum >= old.needs.quorum, "{act:?}: the quorum fell\n{changes:#?}");
            prop_assert!(new.needs.grant_seconds <= old.needs.grant_seconds, "{act:?}: grants last longer\n{changes:#?}");
            prop_assert!(new.redact == old.redact, "{act:?}: something else is hidden\n{changes:#?}");
        }
    }
}
