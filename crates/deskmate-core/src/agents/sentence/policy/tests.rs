//! Sentences about policies against acts: a rule counts as right only if it catches what it should and lets the rest pass.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{DraftedPolicy, POLICY_DESCRIPTION_BYTES_MAX, draft_policy};
use crate::policy::{Case, Effect, Mode, Parts, Policy, Rule, Rulebook, run_case};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Labelled {
    text: String,
    #[serde(default)]
    effect: Option<Effect>,
    #[serde(default)]
    fires: Vec<Map<String, Value>>,
    #[serde(default)]
    passes: Vec<Map<String, Value>>,
    #[serde(default)]
    quorum: Option<u32>,
    #[serde(default)]
    approvers: Vec<String>,
    #[serde(default)]
    refused: bool,
}

fn draft(text: &str) -> DraftedPolicy {
    draft_policy("mine", text).unwrap()
}

/// The rules with an effect that fire on an act.
fn fired(policy: &Policy, effect: Effect, act: &Map<String, Value>) -> Vec<String> {
    let mut act = act.clone();
    let now = act.remove("at").and_then(|at| at.as_str().map(str::to_owned));
    let counters = act.remove("counters").and_then(|counters| counters.as_object().cloned()).unwrap_or_default();
    if let Some(ids) = act.get_mut("arguments").and_then(|arguments| arguments.get_mut("ids")).filter(|ids| **ids == "LIST101") {
        *ids = json!((0..101).collect::<Vec<_>>());
    }
    let parts = Parts { policies: [(policy.id.clone(), policy.clone())].into(), ..Parts::default() };
    let rulebook = Rulebook::compile(parts, BTreeMap::new()).unwrap();
    let case = Case { name: String::new(), act, agent: None, trust: None, counters, now, mode: None, hits: None };
    let result = run_case(&rulebook, &policy.id, &case);
    assert!(result.passed, "{result:?}");
    let has = |name: &String| policy.rules.iter().any(|rule| matches!(rule, Rule::General(rule) if rule.name == *name && rule.effect == effect));
    result.hits.into_iter().filter(has).collect()
}

/// What is wrong with what came of a sentence.
fn wrong(label: &Labelled) -> Option<String> {
    let got = draft(&label.text);
    if label.refused {
        return (!got.rules.is_empty()).then(|| format!("made {:?}", got.rules.iter().map(|drafted| drafted.rule.when.clone()).collect::<Vec<_>>()));
    }
    let effect = label.effect?;
    let whens = || got.rules.iter().map(|drafted| (drafted.rule.effect, drafted.rule.when.clone())).collect::<Vec<_>>();
    if got.rules.is_empty() {
        return Some(format!("refused: {:?}", got.refused));
    }
    for act in &label.fires {
        if fired(&got.policy, effect, act).is_empty() {
            return Some(format!("does not fire on {act:?}: {:?} {:?}", whens(), got.refused));
        }
    }
    for act in &label.passes {
        let fired = fired(&got.policy, effect, act);
        if !fired.is_empty() {
            return Some(format!("fires on {act:?}: {:?}", whens()));
        }
    }
    let has_quorum = label.quorum.is_none() || got.rules.iter().any(|drafted| drafted.rule.quorum == label.quorum);
    let has_approvers = label.approvers.is_empty() || got.rules.iter().any(|drafted| drafted.rule.approvers == label.approvers);
    (!has_quorum || !has_approvers).then(|| "the approvers are others".to_owned())
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn check(name: &str, text: &str, floor: f64) {
    let labels: Vec<Labelled> = serde_saphyr::from_str(text).unwrap();
    let mut good = 0;
    for label in &labels {
        match wrong(label) {
            None => good += 1,
            Some(wrong) => println!("policy: {}: {wrong}", label.text),
        }
    }
    let percent = f64::from(good) * 100.0 / labels.len() as f64;
    println!("policies {name}: {good} of {}, {percent:.1} %", labels.len());
    assert!(percent >= floor, "{percent:.1} % are below {floor} %");
}

#[test]
fn the_sentences_with_which_the_rules_were_made() {
    check("made with", include_str!("labelled.yaml"), 100.0);
}

#[test]
fn sentences_that_were_written_after_the_rules() {
    check("written afterwards", include_str!("held_out.yaml"), 86.0);
}

#[test]
fn a_rule_says_where_it_came_from_and_what_it_takes_for_granted() {
    let got = draft("Require approval for payments above 500 euros. Be careful with strange things.");
    assert_eq!(got.rules.len(), 1);
    let drafted = &got.rules[0];
    assert_eq!(drafted.words, "Require approval for payments above 500 euros");
    assert_eq!(drafted.rule.name, "ask_before_pay_amount");
    assert_eq!(drafted.rule.message, "Moving money above 500 is decided by a person");
    assert_eq!(drafted.assumed, ["an act that names no amount counts as one with too much"]);
    assert_eq!(got.refused.len(), 1);
    assert_eq!(got.refused[0].words, "Be careful with strange things");
    let got = draft("Block deleting invoices older than seven years");
    assert!(got.policy.rules.is_empty() && got.refused[0].why.contains("years"), "{:?}", got.refused);
    let got = draft("Block suspicious payments");
    assert!(got.policy.rules.is_empty() && got.refused[0].why.contains("\"suspicious\""), "{:?}", got.refused);
    let got = draft("Allow e-mails");
    assert!(got.refused[0].why.contains("only takes away"), "{:?}", got.refused);
    let got = draft("Never e-mail customers");
    assert_eq!((got.rules[0].left_out.as_slice(), got.rules[0].rule.effect), (["customers".to_owned()].as_slice(), Effect::Deny));
}

#[test]
fn several_statements_make_several_rules() {
    let got =
        draft("Block deleting files and log it. Never mail or post credit card numbers; require approval for refunds above 50 euros and log every refund.");
    let shown: Vec<(&str, Effect)> = got.rules.iter().map(|drafted| (drafted.rule.name.as_str(), drafted.rule.effect)).collect();
    assert_eq!(
        shown,
        [
            ("no_file_delete", Effect::Deny),
            ("note_file_delete", Effect::Log),
            ("no_mail_card", Effect::Deny),
            ("no_publish_card", Effect::Deny),
            ("ask_before_pay_amount", Effect::RequireApproval),
            ("note_pay", Effect::Log)
        ],
        "{:?}",
        got.refused
    );
    let names: std::collections::BTreeSet<&str> = got.rules.iter().map(|drafted| drafted.rule.name.as_str()).collect();
    assert_eq!(names.len(), got.rules.len());
}

#[test]
fn what_is_written_stays_a_value() {
    for hostile in ["x') || true || ('", "\\", "'\\'", "a' + act.kind + 'b", "${x}"] {
        let got = draft(&format!("Deny any text that mentions \"{hostile}\""));
        for drafted in &got.rules {
            let act = json!({ "kind": "mail.send", "arguments": { "body": "hello" } });
            assert!(fired(&got.policy, drafted.rule.effect, act.as_object().unwrap()).is_empty(), "{hostile}: {:?}", drafted.rule.when);
        }
    }
    for wrong in ["", " ", "a\u{0}b"] {
        assert!(draft_policy("mine", wrong).is_err());
    }
    assert!(draft_policy("mine", &"x ".repeat(POLICY_DESCRIPTION_BYTES_MAX)).is_err());
    assert!(draft_policy("not a name", "Block deleting files").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 2, ..ProptestConfig::default() })]
    /// Whatever is written, what comes of it can be put in force, and only restricts.
    #[test]
    fn any_text_makes_rules_that_can_be_taken(text in "\\PC{0,120}|((block|never|require approval for|log|hide|only|between|9|and|17|on weekdays|deleting|payments|above|500|euros|emails|outside|example.com|\"x'y\"|mentions|in production|per minute|at night|unless|encrypted|,|\\.|files|card numbers) ?){0,20}") {
        if let Ok(got) = draft_policy("mine", &text) {
            prop_assert_eq!(got.rules.len(), got.policy.rules.len());
            let parts = Parts { policies: [("mine".to_owned(), got.policy.clone())].into(), ..Parts::default() };
            let rulebook = Rulebook::compile(parts, BTreeMap::new());
            prop_assert!(rulebook.is_ok(), "{:?}", rulebook.err());
            for drafted in &got.rules {
                prop_assert!(text.contains(&drafted.words));
                prop_assert!(drafted.rule.effect != Effect::Allow);
            }
            let case = Case { name: String::new(), act: Map::new(), agent: None, trust: None, counters: Map::new(), now: None, mode: None, hits: None };
            prop_assert!(run_case(&rulebook.unwrap(), "mine", &case).mode <= Mode::Act);
        }
    }
}
