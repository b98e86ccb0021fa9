//! The text that people write.

use deskmate_core::policy::{Document, Parts, PolicyMode, Rule, Section, draft, run_cases};

use super::support::{REFERENCE, compile, problems};

fn one(text: &str) -> String {
    let all = problems(text);
    assert_eq!(all.len(), 1, "{all:#?}");
    all[0].clone()
}

#[test]
fn a_text_of_the_earlier_server_is_understood() {
    let document = Document::parse(REFERENCE).unwrap();
    assert_eq!(document.policies.as_ref().unwrap().len(), 2);
    assert_eq!(document.mappings.as_ref().unwrap().len(), 3);
    assert_eq!((document.mode, document.desk.len(), document.domains), (None, 0, None));
    let all = "policy_mode: permissive\ntrust: { default_level: 0.4, promotion: auto }\nauthority: { default_mode: escalate, volume_cap: 9 }\n\
               feedback: { reason_types: [agent_wrong] }\nhandoff: { include_reasoning: false }\ngovernance: { rubber_stamp_count: 9 }\n\
               domains: { crm.deals: { trust: { default_level: 0.5 } } }\n";
    let document = Document::parse(all).unwrap();
    assert_eq!((document.mode, document.desk.len()), (Some(PolicyMode::Permissive), 5));
    assert_eq!(document.domains.unwrap()["crm.deals"][&Section::Trust]["default_level"], 0.5);
}

#[test]
fn an_empty_text_says_nothing() {
    assert_eq!(Document::parse("").unwrap(), Document::default());
    assert_eq!(Document::parse("# only a remark\n").unwrap(), Document::default());
    assert_eq!(Document::parse("policies:\n").unwrap(), Document::default());
}

#[test]
fn every_problem_is_named_with_its_place_and_what_to_write() {
    for (text, said) in [
        ("policis: []\n", "1:1: policis: the key `policis` is not known: did you mean `policies`?"),
        ("policies: 5\n", "1:11: policies: this is a number: write a list, each entry after a `-`"),
        ("policies:\n  - rules: []\n", "2:5: policies[0]: `id` is missing: write for example `id: crm-write`"),
        ("policies:\n  - id: 5\n", "2:9: policies[0].id: this is a number: write a text, in quotes"),
        ("policies:\n  - id: ''\n", "2:9: policies[0].id: this is empty: write for example crm-write"),
        ("policies:\n  - id: a b\n", "2:9: policies[0].id: a name has 1 to 128 letters, digits, `-`, `_`, `.` or `:`"),
        ("policies:\n  - id: a\n  - id: a\n", "3:9: policies[1].id: the id `a` is taken by another policy: choose another one"),
        ("policies:\n  - id: global\n", "2:9: policies[0].id: rules for everybody are not a policy of their own: write them under `rules` at the top"),
        (
            "rules:\n  - { field: a, constraint: readony }\n",
            "2:29: rules[0].constraint: `readony` is not known here: write `high_risk`, `readonly`, `value_range`, `enum` or `regex`; did you mean `readonly`?",
        ),
        (
            "rules:\n  - { field: a*b, constraint: readonly }\n",
            "2:14: rules[0].field: `*` stands only at the end of a field, for any ending: write for example `billing_*`",
        ),
        ("rules:\n  - { field: a, constraint: value_range }\n", "2:29: rules[0].constraint: a value_range needs `min`, `max` or both"),
        ("rules:\n  - { field: a, constraint: value_range, min: 5, max: 1 }\n", "2:47: rules[0].min: no number is at least 5 and at most 1: swap them"),
        ("rules:\n  - { field: a, constraint: value_range, min: low }\n", "2:47: rules[0].min: this is a text: write a number"),
        ("rules:\n  - { field: a, constraint: readonly, min: 5 }\n", "2:44: rules[0].min: `min` goes with `constraint: value_range`: leave it out"),
        (
            "rules:\n  - { field: a, constraint: enum, values: [] }\n",
            "2:29: rules[0].constraint: an enum needs `values`: write for example `values: [low, high]`",
        ),
        (
            "rules:\n  - { field: a, constraint: regex, pattern: '(' }\n",
            "2:45: rules[0].pattern: the pattern cannot be read: unclosed group; look-around and back references do not exist here",
        ),
        (
            "rules:\n  - { name: a, effect: forbid }\n",
            "2:24: rules[0].effect: `forbid` is not known here: write `allow`, `deny`, `require_approval`, `log` or `redact`",
        ),
        ("rules:\n  - { name: a }\n", "2:5: rules[0]: `effect` is missing: write for example `effect: require_approval`"),
        (
            "rules:\n  - { name: a, effect: deny, quorum: 2 }\n",
            "2:38: rules[0].quorum: `quorum` goes with `effect: require_approval`: leave it out, or change the effect",
        ),
        (
            "rules:\n  - { name: a, effect: require_approval, quorum: 3, approvers: [x, y] }\n",
            "2:50: rules[0].quorum: 3 people have to approve, but only 2 may: name more, or ask for fewer",
        ),
        (
            "rules:\n  - { name: a, effect: deny, waive_trust: true }\n",
            "2:43: rules[0].waive_trust: `waive_trust` goes with `effect: allow`: leave it out, or change the effect",
        ),
        ("rules:\n  - { name: a, effect: redact }\n", "2:24: rules[0].effect: redact needs `paths`: write for example `paths: [card_number]`"),
        ("rules:\n  - { name: a, effect: log, match: { tol: x } }\n", "2:38: rules[0].match.tol: the key `tol` is not known: did you mean `tool`?"),
        ("rules:\n  - { name: a, effect: log, match: { tool: 'a[' } }\n", "2:36: rules[0].match: `a[` cannot be read: unclosed character class; missing ']'"),
        (
            "rules:\n  - { name: a, effect: log }\n  - { name: a, effect: log }\n",
            "3:5: rules[1].name: the name `a` is taken by another rule here: choose another one",
        ),
        (
            "rules:\n  - { name: a, effect: log, severity: hihg }\n",
            "2:39: rules[0].severity: `hihg` is not known here: write `info`, `warning`, `high` or `critical`",
        ),
        (
            "mappings:\n  - { agent_id: a, domain: d, policy_id: p }\npolicies: []\n",
            "2:42: mappings[0].policy: there is no policy `p`: add it under `policies`, or name one that is there",
        ),
        (
            "mappings:\n  - { agent_id: 'a*b', domain: d, policy_id: default }\n",
            "2:17: mappings[0].agent: `*` stands only at the end, for any ending: write for example `crm.*`",
        ),
        (
            "mappings:\n  - { agent_id: a, agent: b, domain: d, policy_id: default }\n",
            "2:27: mappings[0].agent: `agent_id` and `agent` say the same: leave one out",
        ),
        (
            "mappings:\n  - { agent: a, domain: d, policy: default }\n  - { agent: a, domain: d, policy: default }\n",
            "3:5: mappings[1]: this mapping is there already: leave it out",
        ),
        ("trust: { default_level: 3 }\n", "1:25: trust.default_level: 3 is not a number from 0 to 1: write one"),
        (
            "trust: { auto_promote_threshold: 3 }\n",
            "1:10: trust.auto_promote_threshold: the key `auto_promote_threshold` is not known in `trust`: write auto_promote_after and auto_promote_accuracy",
        ),
        ("authority: { default_mode: maybe }\n", "1:28: authority.default_mode: \"maybe\" is not known here: write `deny`, `escalate`, `suggest` or `act`"),
        (
            "domains: { d: { policies: [] } }\n",
            "1:17: domains.d.policies: the key `policies` is not known: write one of authority, feedback, governance, handoff, trust",
        ),
        ("policy_mode: lax\n", "1:14: policy_mode: `lax` is not known here: write `strict` or `permissive`"),
    ] {
        assert_eq!(one(text), said, "{text}");
    }
}

#[test]
fn all_problems_come_at_once_in_the_order_of_the_text() {
    let text = "policies:\n  - id: p\n    colour: red\n    rules:\n      - { field: a, constraint: nope }\n      - { name: b, effect: deny, when: act.knd == 'x' && foo() }\nmappings:\n  - { agent: a, domain: d, policy: q }\ntrust: { decay: 1 }\n";
    let all = problems(text);
    let lines: Vec<&str> = all.iter().map(|problem| problem.split(':').next().unwrap()).collect();
    assert_eq!(lines, ["3", "5", "6", "6", "8", "9"], "{all:#?}");
}

#[test]
fn what_is_not_yaml_or_says_a_thing_twice_is_refused_with_its_place() {
    assert!(one("policies: [\n").contains("not YAML"));
    assert!(one("trust: { default_level: 0.1 }\ntrust: { default_level: 0.2 }\n").starts_with("2:"));
    assert!(one("- a\n").contains("keys with their values"));
    assert!(one(&"#".repeat(5 * 1024 * 1024)).contains("at most"));
}

#[test]
fn keys_of_others_are_left_to_them() {
    let text = "listen: 127.0.0.1:1\ntrust: { default_level: 0.1 }\n";
    assert!(Document::parse(text).is_err());
    assert_eq!(Document::parse_within(text, &["listen"]).unwrap().desk.len(), 1);
}

#[test]
fn words_such_as_no_and_off_stay_words() {
    let document = Document::parse("rules:\n  - { field: a, constraint: enum, values: [no, off, y, true, 1, 1.5, null] }\n").unwrap();
    let Rule::Field(rule) = &document.global.unwrap().rules[0] else { panic!("a rule about a field") };
    assert_eq!(serde_json::to_string(&rule.values).unwrap(), r#"["no","off","y",true,1,1.5,null]"#);
}

/// Cases of the rules for everybody are read as strictly as those of a policy, each problem with its place.
#[test]
fn cases_stand_beside_the_rules_for_everybody() {
    let text = "
rules:
  - { name: no_night, when: time.hour < 6, effect: deny }
tests:
  - { name: by day, act: { arguments: { a: 1 } }, mode: act, hits: [] }
  - { name: at night, act: {}, now: '2026-01-01T03:00:00Z', mode: deny, hits: [no_night] }
  - { name: wrong, act: {}, mode: deny }
";
    let document = Document::parse(text).unwrap();
    let parts = document.over(&Parts::default());
    let cases = run_cases(&compile(parts.clone()), None);
    let came: Vec<(&str, &str, bool)> = cases.iter().map(|case| (case.policy.as_str(), case.name.as_str(), case.passed)).collect();
    assert_eq!(came, [("global", "by day", true), ("global", "at night", true), ("global", "wrong", false)]);
    assert_eq!(run_cases(&compile(parts.clone()), Some("other")), []);
    let written = draft::to_document(&parts).unwrap().to_string();
    assert_eq!(Document::parse(&written).unwrap().over(&Parts::default()), parts, "what is in force can be written down and applied again");
    let with = |tests: &str| one(&format!("rules: [{{ name: a, effect: log }}]\ntests:\n  - {tests}\n"));
    for (wrong, place, says) in [
        ("{ name: a, act: {}, mode: perhaps }", "3:31: tests[0].mode", "perhaps"),
        ("{ name: a, act: {}, mode: act, frob: 1 }", "3:36: tests[0].frob", "frob"),
        ("{ name: a, act: { frob: 1 }, mode: act }", "3:5: tests[0].act", "frob"),
        ("{ name: a, act: {} }", "3:5: tests[0]", "expects nothing"),
        ("{ act: {}, mode: act }", "3:5: tests[0]", "name"),
    ] {
        let problem = with(wrong);
        assert!(problem.starts_with(place) && problem.contains(says), "{wrong}: {problem}");
    }
    for alone in ["tests: [{ name: a, act: {}, mode: act }]", "rules: []\ntests: [{ name: a, act: {}, mode: act }]"] {
        assert!(one(alone).contains("write those under `rules`"), "{alone}");
    }
}

#[test]
fn what_was_not_written_stays() {
    let current =
        Document::parse(&format!("trust: {{ default_level: 0.4 }}\nrules: [{{ name: g, effect: log }}]\n{REFERENCE}")).unwrap().over(&Parts::default());
    assert_eq!(current.policies.len(), 3);
    assert_eq!(Document::default().over(&current), current);
    let rules = Document::parse("rules: [{ name: h, effect: deny }]").unwrap().over(&current);
    assert_eq!(rules.policies.keys().collect::<Vec<_>>(), ["crm-write", "global", "support-write"]);
    let policies = Document::parse("policies: [{ id: p }]\nmappings: []").unwrap().over(&current);
    assert_eq!(policies.policies.keys().collect::<Vec<_>>(), ["global", "p"], "rules for everybody are a section of their own");
    assert!(policies.mappings.is_empty());
    let none = Document::parse("rules: []\ntrust: {}").unwrap().over(&current);
    assert!(!none.policies.contains_key("global") && none.settings.is_empty());
}

#[test]
fn a_policy_survives_its_json() {
    let text = "policies:\n  - id: p\n    description: d\n    category: security\n    framework: SOC2\n    rules:\n      - { field: a, constraint: enum, values: [x, 1], reason: why }\n      - { name: b, match: { tool: [x, 'y*'] }, when: act.cost > 5, effect: require_approval, approvers: ann, quorum: 1, grant_seconds: 5, expires_seconds: 6, severity: high, message: m, alternative: n }\n      - { name: c, effect: redact, paths: [/a/b] }\n    tests:\n      - { name: t, act: { arguments: { a: 1 } }, mode: act }\n";
    let policies = Document::parse(text).unwrap().policies.unwrap();
    let json = serde_json::to_string(&policies["p"]).unwrap();
    assert_eq!(serde_json::from_str::<deskmate_core::policy::Policy>(&json).unwrap(), policies["p"], "{json}");
}
