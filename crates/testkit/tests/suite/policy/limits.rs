//! Caps, budgets and bounds.

use deskmate_core::policy::{Act, Counters, Mode, StillIn, decide};
use serde_json::{Map, Value, json};

use super::support::{NOW, answer, ids, propose, rulebook, trusted};

#[test]
fn what_is_used_up_is_denied() {
    let book = rulebook("authority: { volume_cap: 5, volume_cap_per_agent: 8, calls_per_day: 20, cost_per_day: 2.5 }");
    let mode = |counters: Counters, cost: i64| {
        let act = Act { cost, ..propose("d", json!({ "x": 1 })) };
        let decision = decide(&book, &act, &trusted("a"), &counters, NOW);
        (decision.mode, decision.reasons[0].source.clone())
    };
    let used = Counters { calls_hour: 4, calls_hour_all: 7, calls_day_all: 19, cost_day: 2_000_000, ..Counters::default() };
    assert_eq!(mode(used, 500_000).0, Mode::Act);
    for full in [Counters { calls_hour: 5, ..used }, Counters { calls_hour_all: 8, ..used }, Counters { calls_day_all: 20, ..used }] {
        assert_eq!(mode(full, 0), (Mode::Deny, "limit".to_owned()));
        assert_eq!(mode(full.without(StillIn { minute: true, hour: true, day: true }, 0), 0).0, Mode::Act, "what was taken for this very act does not count");
    }
    assert_eq!(mode(used, 500_001), (Mode::Deny, "limit".to_owned()));
}

#[test]
fn too_many_waiting_requests_deny_what_would_wait_as_well() {
    let book = rulebook("authority: { pending_max: 3 }");
    let flooded = Counters { pending: 3, ..Counters::default() };
    let plain = propose("d", json!({ "x": 1 }));
    assert_eq!(decide(&book, &plain, &trusted("a"), &flooded, NOW).mode, Mode::Act, "what needs nobody waits for nobody");
    let held = deskmate_core::policy::Standing { verified: false, ..trusted("a") };
    assert_eq!(decide(&book, &plain, &held, &flooded, NOW).mode, Mode::Deny);
    assert_eq!(decide(&book, &plain, &held, &Counters { pending: 2, ..Counters::default() }, NOW).mode, Mode::Suggest);
}

fn wide(entries: usize) -> Value {
    Value::Object((0..entries).map(|number| (format!("k{number}"), json!(1))).collect::<Map<_, _>>())
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({ "n": inner }))
}

#[test]
fn arguments_beyond_the_bounds_of_conditions_make_their_rules_fire() {
    let book = rulebook("rules: [{ name: never, when: \"'x' in args\", effect: deny }, { name: other, when: act.kind == 'z', effect: deny }]");
    let fired = |arguments: Value| answer(&book, "a", &propose("d", arguments)).hits;
    assert!(fired(wide(900)).is_empty() && fired(deep(10)).is_empty());
    for arguments in [wide(1_100), deep(30), json!({ "text": "x".repeat(70_000) })] {
        let hits = fired(arguments);
        assert_eq!(hits.len(), 1, "only the rule that looks at the arguments");
        assert!(hits[0].failed);
    }
}

#[test]
fn a_change_that_is_too_large_for_rules_about_fields_is_denied() {
    let text = "rules: [{ field: amount, constraint: value_range, max: 5 }]";
    let decision = answer(&rulebook(text), "a", &propose("d", wide(2_100)));
    assert_eq!((decision.mode, decision.hits[0].rule_id.as_str()), (Mode::Deny, "change_too_large"));
    assert_eq!(answer(&rulebook(""), "a", &propose("d", wide(2_100))).mode, Mode::Suggest, "the desk's own list could be met");
    assert_eq!(answer(&rulebook(text), "a", &propose("d", wide(1_900))).mode, Mode::Act);
}

/// A long key with many small ones below it would have paths of gigabytes.
#[test]
fn long_paths_are_bounded_as_well() {
    let long = json!({ "k".repeat(200_000): wide(1_500), "owner": 1 });
    let started = std::time::Instant::now();
    let text = "rules: [{ field: amount, constraint: readonly }, { name: hide, effect: redact, paths: [owner] }]";
    let decision = answer(&rulebook(text), "a", &propose("d", long));
    assert_eq!(decision.mode, Mode::Deny);
    assert_eq!(decision.redact, [""], "what cannot be looked through is hidden whole");
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn the_same_field_said_twice_is_one_hit() {
    let act = Act { field: Some("owner".to_owned()), ..propose("d", json!({ "field": "owner", "value": "x", "owner": "y" })) };
    let decision = answer(&rulebook("rules: [{ field: owner, constraint: readonly }]"), "a", &act);
    assert_eq!(ids(&decision), ["readonly_owner", "global_high_risk_owner"]);
}

#[test]
fn an_answer_names_a_bounded_number_of_hits() {
    let decision = answer(&rulebook("rules: [{ field: 'k*', constraint: readonly }]"), "a", &propose("d", wide(1_500)));
    assert_eq!((decision.mode, decision.rules_checked), (Mode::Deny, 1));
    assert!(decision.hits.len() <= 200 && decision.reasons.len() <= 30);
    let many: String = (0..300).map(|number| format!("  - {{ name: r{number}, effect: log }}\n")).collect();
    let last = format!("rules:\n{many}  - {{ name: last, effect: deny }}\n");
    let decision = answer(&rulebook(&last), "a", &propose("d", json!({})));
    assert_eq!((decision.mode, decision.rules_checked), (Mode::Deny, 301));
    assert_eq!(decision.hard_stops().count(), 1, "the bound never leaves out what denies");
    assert_eq!(decision.reasons[0].mode, Mode::Deny);
}
