//! Questions in conditions: what they find, what they do not, and what happens where it cannot be told.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::policy::{Case, Decision, Document, Effect, Mode, Parts, Policy, Problem, Rule, Rulebook, Standing, decide_under, run_case};
use crate::trust::Points;

fn policy(when: &str) -> Result<Policy, Vec<Problem>> {
    let text = format!("policies:\n  - id: p\n    rules:\n      - {{ name: r, effect: deny, when: {} }}\n", json!(when));
    Ok(Document::parse(&text)?.policies.unwrap().remove("p").unwrap())
}

fn rulebook(policy: Policy) -> Rulebook {
    Rulebook::compile(Parts { policies: [("p".to_owned(), policy)].into(), ..Parts::default() }, BTreeMap::new()).unwrap()
}

/// Whether a condition makes its rule fire.
fn fires(when: &str, act: Value) -> bool {
    let case = Case {
        name: String::new(),
        act: act.as_object().cloned().unwrap(),
        agent: None,
        trust: None,
        counters: serde_json::Map::new(),
        now: None,
        mode: None,
        hits: None,
    };
    let result = run_case(&rulebook(policy(when).unwrap()), "p", &case);
    assert!(!result.difference.as_deref().unwrap_or_default().contains("not an act"), "{result:?}");
    result.hits.contains(&"r".to_owned())
}

fn args(arguments: Value) -> Value {
    json!({ "arguments": arguments })
}

#[test]
fn what_an_act_does() {
    for (what, act, expected) in [
        ("delete", json!({ "kind": "file.delete" }), true),
        ("delete", json!({ "tool": "crm_removeContact" }), true),
        ("delete", json!({ "action": "list deleted" }), true),
        ("delete", json!({ "action": "update" }), false),
        ("mail", json!({ "tool": "gmail_send_message" }), true),
        ("mail", json!({ "kind": "mail.read" }), false),
        ("message", json!({ "tool": "slack.postMessage" }), true),
        ("pay", json!({ "action": "create_refund" }), true),
        ("file_write", json!({ "kind": "file.write" }), true),
        ("file_write", json!({ "kind": "note.write" }), false),
        ("file_write", json!({ "kind": "file.delete", "arguments": { "acts": [{ "verb": "file.write" }, { "verb": "file.delete" }] } }), true),
        ("query", json!({ "tool": "postgres_query" }), true),
        ("deploy", json!({ "kind": "agent.deploy" }), true),
        ("send", json!({ "action": "respond" }), false),
    ] {
        assert_eq!(fires(&format!("does('{what}')"), act.clone()), expected, "{what} {act}");
    }
}

#[test]
fn what_a_text_holds() {
    for (what, arguments, expected) in [
        ("card", json!({ "a": [{ "b": "5500 0000 0000 0004" }] }), true),
        ("card", json!({ "a": "5500 0000 0000 0005" }), false),
        ("email", json!("write to ada@example.com"), true),
        ("personal", json!({ "x": "call +49 30 901820" }), true),
        ("secret", json!({ "password": "hunter2-Sommer!" }), true),
        ("secret", json!({ "x": "[redacted:github_token]" }), true),
        ("personal", json!({ "x": "[redacted:github_token]" }), false),
        ("sql_drop", json!({ "input": "{\"sql\": \"drop table x\"}" }), true),
        ("sql_write", json!({ "q": "select 1" }), false),
    ] {
        assert_eq!(fires(&format!("holds('{what}')"), args(arguments.clone())), expected, "{what} {arguments}");
    }
}

#[test]
fn numbers_counts_and_words_of_fields_however_they_are_written() {
    for (when, arguments, expected) in [
        ("largest('amount') > 500", json!({ "amount": 501 }), true),
        ("largest('amount') > 500", json!({ "deal": { "Amount": "750.5" } }), true),
        ("largest('amount') > 500", json!({ "field": "amount", "value": 900 }), true),
        ("largest('amount') > 500", json!({ "items": [{ "amount": 3 }, { "amount": 501 }] }), true),
        ("largest('amount') > 500", json!({ "amount": 500 }), false),
        ("largest('amount') > 500", json!({ "amount": null }), false),
        ("largest('amount') > 500", json!({ "other": 900 }), false),
        ("largest(['amount', 'total']) > 500", json!({ "total": 900 }), true),
        // What is no number could be any.
        ("largest('amount') > 500", json!({ "amount": "much" }), true),
        ("largest('amount') > 500", json!({ "amount": true }), true),
        ("largest('amount') > 500", json!("pay 900"), true),
        ("count('ids') > 2", json!({ "ids": [1, 2, 3] }), true),
        ("count('ids') > 2", json!({ "ids": [1, 2] }), false),
        ("says('consent')", json!({ "consent": true }), true),
        ("says('consent')", json!({ "person": { "consent": "given" } }), true),
        ("says('consent')", json!({ "consent": "No" }), false),
        ("says('consent')", json!({ "consent": true, "more": { "consent": false } }), false),
        ("says('consent')", json!({}), false),
        ("says('level', ['high', 'secret'])", json!({ "level": " High " }), true),
        ("says('level', ['high', 'secret'])", json!({ "level": "low" }), false),
        ("says('level', '3')", json!({ "level": 3 }), true),
        ("'card_number' in fields", json!({ "pay": { "cardNumber": 1 } }), true),
        ("'card_number' in fields", json!({ "pay": 1 }), false),
        ("texts.exists(text, text.contains('falcon'))", json!({ "a": ["x", { "b": "project falcon" }] }), true),
        ("texts.exists(text, text.contains('falcon'))", json!({ "a": "x" }), false),
        ("recipients.exists(who, !who.endsWith('@example.com'))", json!({ "to": "Ada <Ada@Example.com>, bob@example.org" }), true),
        ("recipients.exists(who, !who.endsWith('@example.com'))", json!({ "to": ["Ada <Ada@Example.com>"], "cc": "x@example.com" }), false),
        ("recipients.exists(who, !who.endsWith('@example.com'))", json!({ "to": "everybody" }), true),
        ("recipients.exists(who, !who.endsWith('@example.com'))", json!({ "body": "x@example.org" }), false),
    ] {
        assert_eq!(fires(when, args(arguments.clone())), expected, "{when} {arguments}");
    }
}

#[test]
fn what_is_too_large_to_be_told_fires() {
    let large = json!({ "a": vec!["x"; 3_000] });
    for when in [
        "holds('card')",
        "largest('amount') > 5",
        "count('ids') > 5",
        "says('x')",
        "'x' in fields",
        "texts.exists(t, t == 'y')",
        "recipients.exists(r, r == 'y')",
    ] {
        assert!(fires(when, args(large.clone())), "{when}");
    }
}

#[test]
fn questions_are_checked_when_they_are_read() {
    for (when, said) in [
        ("holds('crd')", "did you mean `card`?"),
        ("does('delte')", "did you mean `delete`?"),
        ("holds(act.kind)", "has to be written out"),
        ("does(['delete', 'write'])", "takes one word"),
        ("args.holds('card')", "is not called on a value"),
        ("largest()", "is not written so"),
        ("largest('')", "names of fields"),
        ("largest([]) > 5", "names of fields"),
        ("largest('amount')", "is a number, not a yes or no"),
        ("largest('amount') == 'x'", "is never equal"),
        ("says('x', [])", "is not written so"),
        ("hold('card')", "did you mean `holds`?"),
        ("says('x') > 5", "cannot be compared"),
    ] {
        let problems = policy(when).unwrap_err();
        assert!(problems.iter().any(|problem| problem.message.contains(said)), "{when}: {problems:?}");
    }
}

fn decision(paths: &[&str], arguments: Value) -> Decision {
    let text = format!("policies:\n  - id: p\n    rules:\n      - {{ name: r, effect: redact, paths: {} }}\n", json!(paths));
    let policy = Document::parse(&text).unwrap().policies.unwrap().remove("p").unwrap();
    assert!(matches!(&policy.rules[0], Rule::General(rule) if rule.effect == Effect::Redact));
    let act = serde_json::from_value(json!({ "kind": "x", "tool": "x", "domain": "x", "action": "", "target": "", "arguments": arguments })).unwrap();
    let standing = Standing {
        agent: "a".to_owned(),
        verified: true,
        paused: false,
        score: Points::ONE,
        decided: 5,
        over_a_persons_edit: false,
        waived_by: None,
        attached: None,
    };
    decide_under(&rulebook(policy), "p", &act, &standing, &crate::policy::Counters::default(), 0)
}

#[test]
fn what_holds_a_kind_of_data_is_hidden_wherever_it_stands() {
    let decided = decision(&["holds(email)", "note"], json!({ "a": { "b": ["x", "ada@example.com"] }, "note": 5, "c": "call +49 30 901820" }));
    assert_eq!((decided.mode, decided.redact), (Mode::Act, vec!["/a/b/1".to_owned(), "/note".to_owned()]));
    assert_eq!(decision(&["holds(personal)"], json!({ "phone": 4_930_901_820_i64, "x": 5 })).redact, ["/phone"]);
    assert_eq!(decision(&["holds(email)"], json!({ "by": { "ada@example.com": 5 } })).redact, ["/by"], "a key cannot be hidden alone");
    assert_eq!(decision(&["holds(email)"], json!({ "json": "{\"a\": \"ada@example.com\"}" })).redact, ["/json"]);
    let text = "policies:\n  - { id: p, rules: [{ name: r, effect: redact, paths: ['holds(emial)'] }] }\n";
    assert!(Document::parse(text).unwrap_err()[0].message.contains("is not known"));
}

proptest! {
    /// No act makes a question panic, and what it says does not depend on how deep it stands.
    #[test]
    fn any_act_is_answered(text in "\\PC{0,60}", key in "\\PC{0,12}", depth in 0_usize..20) {
        let mut arguments = json!({ key.clone(): text });
        for _ in 0..depth {
            arguments = json!({ "in": arguments });
        }
        let name = super::snake(&key);
        for when in ["does('mail')", "holds('personal')", "holds('sql_write')", "largest('amount') > 5", "says('amount')"] {
            fires(when, json!({ "kind": text, "tool": key, "action": text, "arguments": arguments }));
        }
        if !name.is_empty() && depth < 10 && !key.contains('.') {
            let is_seen = fires(&format!("'{name}' in fields"), args(arguments));
            prop_assert!(is_seen);
        }
    }
}
