//! What holds for every rulebook and every act.

use deskmate_core::policy::{
    Act, Counters, Decision, Document, Effect, GeneralRule, Mapping, Match, Mode, Parts, Policy, PolicyMode, Rule, Severity, Standing, decide,
};
use deskmate_core::trust::Points;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{NOW, compile};

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "crm.deals", "crm.leads", "shell", "owner", "amount", "billing_x"]).prop_map(str::to_owned)
}

fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![word(), Just("*".to_owned()), Just("crm.*".to_owned()), Just("*e*".to_owned()), Just("[ab]".to_owned())]
}

fn condition() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "true",
        "false",
        "args.amount > 10",
        "act.domain == 'crm.deals'",
        "has(args.owner) && args.owner == 'x'",
        "args.missing.deep == 1",
        "counters.calls_hour > 2",
        "trust.score < 0.6",
        "changed.exists(p, p.startsWith('bill'))",
        "args.list.all(x, x < 5)",
        "int(args.amount) / 0 == 1",
    ])
    .prop_map(str::to_owned)
}

fn rule() -> impl Strategy<Value = Rule> {
    let effect = prop::sample::select(vec![Effect::Allow, Effect::Deny, Effect::RequireApproval, Effect::Log]);
    let general =
        (vec(pattern(), 0..2), vec(pattern(), 0..2), option::of(condition()), effect, any::<bool>()).prop_map(|(domain, agent, when, effect, waive)| {
            Rule::General(Box::new(GeneralRule {
                name: "r".to_owned(),
                matches: Match { domain, agent, ..Match::default() },
                when,
                effect,
                approvers: Vec::new(),
                quorum: None,
                grant_seconds: None,
                expires_seconds: None,
                paths: Vec::new(),
                severity: Severity::Warning,
                message: String::new(),
                alternative: None,
                waive_trust: waive && effect == Effect::Allow,
            }))
        });
    let field = prop::sample::select(vec![
        json!({ "field": "amount", "constraint": "value_range", "max": 100 }),
        json!({ "field": "owner", "constraint": "readonly" }),
        json!({ "field": "billing_*", "constraint": "high_risk" }),
        json!({ "field": "*", "constraint": "regex", "pattern": "^[a-z]" }),
        json!({ "field": "amount", "constraint": "enum", "values": [1, "x"] }),
    ])
    .prop_map(|json| serde_json::from_value(json).unwrap());
    prop_oneof![general, field]
}

fn policy(id: &'static str) -> impl Strategy<Value = Policy> {
    vec(rule(), 0..5).prop_map(move |mut rules| {
        for (number, rule) in rules.iter_mut().enumerate() {
            if let Rule::General(general) = rule {
                general.name = format!("r{number}");
            }
        }
        Policy { id: id.to_owned(), rules, ..Policy::default() }
    })
}

fn parts() -> impl Strategy<Value = Parts> {
    let mappings = vec((word(), prop_oneof![word(), Just("*".to_owned()), Just("crm.*".to_owned())], any::<bool>()), 0..4);
    (policy("one"), policy("two"), policy("global"), mappings, any::<bool>()).prop_map(|(one, two, global, mappings, permissive)| {
        let policies = [one, two, global].into_iter().map(|policy| (policy.id.clone(), policy)).collect();
        let mapping = |(agent, domain, first): (String, String, bool)| Mapping { agent, domain, policy: if first { "one" } else { "two" }.to_owned() };
        let mode = if permissive { PolicyMode::Permissive } else { PolicyMode::Strict };
        Parts { policies, mappings: mappings.into_iter().map(mapping).collect(), settings: std::collections::BTreeMap::new(), mode }
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-200..200_i64).prop_map(Value::from),
        (-200.0..200.0_f64).prop_map(Value::from),
        "[a-z0-9{}\"]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop::sample::select(vec!["amount", "owner", "billing_x", "list", "field", "value", "path", "name", "missing", "raw"]);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((key, inner), 0..4).prop_map(|entries| Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())),
        ]
    })
}

fn act() -> impl Strategy<Value = Act> {
    (word(), option::of(word()), arguments()).prop_map(|(domain, field, arguments)| Act {
        kind: "propose".to_owned(),
        tool: "cowork_propose".to_owned(),
        domain,
        field,
        arguments,
        ..Act::default()
    })
}

fn standing() -> impl Strategy<Value = Standing> {
    (word(), any::<bool>(), 0..=10_i64, 0..3_i64, any::<bool>()).prop_map(|(agent, verified, score, decided, waived)| Standing {
        agent,
        verified,
        paused: false,
        score: Points(score * 100_000_000),
        decided,
        over_a_persons_edit: false,
        waived_by: waived.then(|| "request 1".to_owned()),
        attached: None,
    })
}

fn answer(parts: &Parts, act: &Act, standing: &Standing, calls: i64) -> Decision {
    decide(&compile(parts.clone()), act, standing, &Counters { calls_hour: calls, ..Counters::default() }, NOW)
}

fn general(effect: &str, when: &str) -> Rule {
    serde_json::from_value(json!({ "name": "added", "effect": effect, "when": when })).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_further_rule_that_restricts_never_loosens(parts in parts(), act in act(), standing in standing(), calls in 0..60_i64, rule in rule(), place in 0..3_usize) {
        let loosens = matches!(&rule, Rule::General(general) if general.effect == Effect::Allow);
        prop_assume!(!loosens);
        let before = answer(&parts, &act, &standing, calls);
        let mut more = parts.clone();
        let rule = match rule {
            Rule::General(mut general) => { general.name = "added".to_owned(); Rule::General(general) }
            field @ Rule::Field(_) => field,
        };
        more.policies.get_mut(["one", "two", "global"][place]).unwrap().rules.insert(0, rule);
        prop_assert!(answer(&more, &act, &standing, calls).mode <= before.mode);
    }

    #[test]
    fn a_rule_for_everybody_that_fires_holds_everybody(parts in parts(), act in act(), standing in standing()) {
        for (effect, best) in [("deny", Mode::Deny), ("require_approval", Mode::Suggest)] {
            for when in ["true", "args.no.such.thing == 1", "int('x') == 1"] {
                let mut more = parts.clone();
                more.policies.get_mut("global").unwrap().rules.push(general(effect, when));
                prop_assert!(answer(&more, &act, &standing, 0).mode <= best, "{effect} when {when}");
            }
        }
    }

    #[test]
    fn an_allow_that_cannot_be_evaluated_allows_nothing(parts in parts(), act in act(), standing in standing()) {
        let before = answer(&parts, &act, &standing, 0);
        let mut more = parts.clone();
        let rule = json!({ "name": "added", "effect": "allow", "waive_trust": true, "when": "args.no.such.thing == 1" });
        more.policies.get_mut("global").unwrap().rules.push(serde_json::from_value(rule).unwrap());
        prop_assert_eq!(answer(&more, &act, &standing, 0).mode, before.mode);
    }

    #[test]
    fn the_same_question_has_the_same_answer(parts in parts(), act in act(), standing in standing(), calls in 0..60_i64) {
        prop_assert_eq!(answer(&parts, &act, &standing, calls), answer(&parts, &act, &standing, calls));
    }

    #[test]
    fn less_trust_more_use_and_less_proof_never_loosen(parts in parts(), act in act(), standing in standing(), calls in 0..60_i64) {
        // A rule may be about trust or counters in either direction, so only what is not a rule is compared.
        let mut parts = parts;
        for policy in parts.policies.values_mut() {
            policy.rules.retain(|rule| match rule {
                Rule::General(general) => !general.when.as_deref().is_some_and(|when| when.contains("trust") || when.contains("counters")),
                Rule::Field(_) => true,
            });
        }
        let mode = answer(&parts, &act, &standing, calls).mode;
        let worse = [
            Standing { score: Points(standing.score.0 / 2), ..standing.clone() },
            Standing { verified: false, ..standing.clone() },
            Standing { over_a_persons_edit: true, ..standing.clone() },
        ];
        for standing in worse {
            prop_assert!(answer(&parts, &act, &standing, calls).mode <= mode);
        }
        prop_assert!(answer(&parts, &act, &standing, calls + 50).mode <= mode);
        let paused = Standing { paused: true, ..standing };
        prop_assert_eq!(answer(&parts, &act, &paused, calls).mode, Mode::Deny);
    }

    #[test]
    fn every_answer_says_why(parts in parts(), act in act(), standing in standing()) {
        let decision = answer(&parts, &act, &standing, 0);
        prop_assert_eq!(decision.reasons.first().map(|reason| reason.mode), Some(decision.mode));
        prop_assert!(decision.reasons.iter().filter(|reason| reason.mode < Mode::Act).all(|reason| reason.would_change.is_some()));
        prop_assert!(decision.hard_stops().next().is_none() || decision.mode == Mode::Deny);
    }

    /// Whatever people write, it is taken or refused with a place in the text.
    #[test]
    fn any_text_is_read_or_refused_with_a_place(text in "(policies|rules|mappings|trust|when|field|- |: |\\[|\\{|\\}|\\]|'|\"|id|\n|  |[a-z*]|\\||>|&a|\\*a|#|!|é|\u{0}){0,40}") {
        if let Err(problems) = Document::parse(&text) {
            let lines = u64::try_from(text.lines().count()).unwrap() + 1;
            prop_assert!(!problems.is_empty());
            for problem in problems {
                prop_assert!(problem.line >= 1 && problem.line <= lines && problem.column >= 1, "{problem}");
            }
        }
    }

    /// Whatever is written in place of a value of a right text.
    #[test]
    fn a_right_text_with_something_else_in_it(value in "[ -~]{0,20}", place in 0..8_usize) {
        let mut slots = ["p", "amount", "value_range", "5", "crm.*", "act.cost > 1", "deny", "2"].map(str::to_owned);
        slots[place] = value;
        let [id, field, constraint, max, domain, when, effect, quorum] = slots;
        let text = format!("policies:\n  - id: {id}\n    rules:\n      - {{ field: {field}, constraint: {constraint}, max: {max} }}\n      - name: r\n        match: {{ domain: {domain} }}\n        when: {when}\n        effect: {effect}\n        approvers: [a, b, c]\n        quorum: {quorum}\n");
        let _ = Document::parse(&text);
    }

    /// A condition that is taken can be evaluated on any act without a panic, and answers within its rules.
    #[test]
    fn any_condition_is_refused_or_evaluated(source in "(act\\.kind|args|args\\.amount|changed|counters\\.pending|trust\\.score|size\\(|\\)|\\(|\\.exists\\(x, |\\.map\\(x, |\\.matches\\('a'|has\\(|x| == | > | && | \\|\\| |!| in | \\+ | / |-|\\[|\\]|\\{|\\}|, |: |\\?|1|2\\.5|'a'|null|true){1,12}", act in act(), standing in standing()) {
        let text = json!({ "rules": [{ "name": "r", "effect": "deny", "when": source }] }).to_string();
        if let Ok(document) = Document::parse(&text) {
            let decision = answer(&document.over(&Parts::default()), &act, &standing, 0);
            prop_assert!(decision.rules_checked >= 1);
        }
    }
}
