//! General rules, mappings, approvals and what they ask for.

use deskmate_core::policy::{Act, Counters, Decision, Effect, Mode, Standing, decide, run_cases};
use deskmate_core::trust::Points;
use serde_json::json;

use super::support::{NOW, answer, ids, propose, rulebook, trusted};

fn act(kind: &str, tool: &str, domain: &str, environment: &str) -> Act {
    Act { kind: kind.to_owned(), tool: tool.to_owned(), environment: environment.to_owned(), ..propose(domain, json!({})) }
}

#[test]
fn a_rule_is_about_the_acts_that_its_match_names() {
    let book = rulebook(
        "rules:
  - { name: by_kind, match: { kind: file.* }, effect: log }
  - { name: by_tool, match: { tool: [shell, '*_exec'] }, effect: log }
  - { name: by_domain, match: { domain: 'crm.{deals,leads}' }, effect: log }
  - { name: by_agent, match: { agent: bot-?? }, effect: log }
  - { name: by_environment, match: { environment: production }, effect: log }
  - { name: by_two, match: { kind: propose, environment: [production, staging] }, effect: log }
  - { name: always, effect: log }
",
    );
    let fired = |agent: &str, act: &Act| ids(&answer(&book, agent, act)).iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(fired("x", &act("file.write", "edit", "files", "")), ["by_kind", "always"]);
    assert_eq!(fired("x", &act("tool.call", "shell", "d", "")), ["by_tool", "always"]);
    assert_eq!(fired("x", &act("tool.call", "run_exec", "d", "")), ["by_tool", "always"]);
    assert_eq!(fired("x", &act("propose", "t", "crm.leads", "")), ["by_domain", "always"]);
    assert_eq!(fired("bot-07", &act("propose", "t", "crm.other", "")), ["by_agent", "always"]);
    assert_eq!(fired("x", &act("propose", "t", "d", "production")), ["by_environment", "by_two", "always"]);
    assert_eq!(fired("x", &act("other", "t", "d", "staging")), ["always"]);
    let decision = answer(&book, "x", &act("file.write", "edit", "files", ""));
    assert_eq!((decision.mode, decision.rules_checked), (Mode::Act, 2), "a note holds nobody");
}

const MAPPINGS: &str = "
policies:
  - { id: exact, rules: [{ name: exact, effect: log }] }
  - { id: exact-too, rules: [{ name: exact-too, effect: log }] }
  - { id: agent-long, rules: [{ name: agent-long, effect: log }] }
  - { id: agent-short, rules: [{ name: agent-short, effect: log }] }
  - { id: domain, rules: [{ name: domain, effect: log }] }
  - { id: wild, rules: [{ name: wild, effect: log }] }
mappings:
  - { agent: sales, domain: crm.deals, policy: exact }
  - { agent: sales, domain: crm.deals, policy: exact-too }
  - { agent: sales, domain: 'crm.*', policy: agent-long }
  - { agent: sales, domain: '*', policy: agent-short }
  - { agent: '*', domain: crm.deals, policy: domain }
  - { agent: '*', domain: '*', policy: wild }
";

#[test]
fn the_most_specific_mapping_holds_and_all_of_the_same_level() {
    let book = rulebook(MAPPINGS);
    let mapped = |agent: &str, domain: &str| book.mapped(agent, domain).unwrap_or_default().join(" ");
    assert_eq!(mapped("sales", "crm.deals"), "exact exact-too");
    assert_eq!(mapped("sales", "crm.leads"), "agent-long");
    assert_eq!(mapped("sales", "files"), "agent-short");
    assert_eq!(mapped("other", "crm.deals"), "domain");
    assert_eq!(mapped("other", "files"), "wild");
    assert_eq!(ids(&answer(&book, "sales", &propose("crm.deals", json!({})))), ["exact", "exact-too"]);
}

#[test]
fn rules_for_everybody_hold_beside_every_policy_and_without_one() {
    let text = format!("rules: [{{ name: no_shell, match: {{ tool: shell }}, effect: deny, message: Never }}]\n{MAPPINGS}");
    let book = rulebook(&text);
    for (agent, domain) in [("sales", "crm.deals"), ("other", "files")] {
        let decision = answer(&book, agent, &act("tool.call", "shell", domain, ""));
        assert_eq!(decision.mode, Mode::Deny);
        assert_eq!(decision.hits.last().map(|hit| (hit.policy.as_str(), hit.reason.as_str())), Some(("global", "Never")));
    }
}

const APPROVALS: &str = "
rules:
  - { name: two, match: { kind: pay }, effect: require_approval, quorum: 2, approvers: [ann, bob, cid], grant_seconds: 600, severity: critical }
  - { name: short, match: { kind: pay }, effect: require_approval, expires_seconds: 3600, grant_seconds: 60 }
  - { name: legal, match: { kind: pay, environment: eu }, effect: require_approval, approvers: [bob, cid, dan] }
  - { name: alone, match: { kind: pay, environment: mars }, effect: require_approval, approvers: [dan] }
";

#[test]
fn several_rules_ask_for_the_strictest_of_each() {
    let book = rulebook(APPROVALS);
    let decision = answer(&book, "a", &act("pay", "t", "d", ""));
    assert_eq!((decision.mode, decision.risk.as_str()), (Mode::Suggest, "critical"));
    assert_eq!((decision.needs.quorum, decision.needs.grant_seconds, decision.needs.expires_seconds), (2, 60, 3_600));
    assert_eq!(decision.needs.approvers, ["ann", "bob", "cid"]);
    assert_eq!(answer(&book, "a", &act("pay", "t", "d", "eu")).needs.approvers, ["bob", "cid"], "who is on every list");
    let other = answer(&book, "a", &act("read", "t", "d", ""));
    assert_eq!((other.mode, other.needs.quorum, other.needs.grant_seconds, other.needs.expires_seconds), (Mode::Act, 1, 900, 7 * 24 * 3_600));
}

#[test]
fn what_nobody_could_approve_is_denied_and_says_why() {
    let decision = answer(&rulebook(APPROVALS), "a", &act("pay", "t", "d", "mars"));
    assert_eq!(decision.mode, Mode::Deny);
    assert!(decision.reasons[0].text.contains("global/two") && decision.reasons[0].text.contains("global/alone"), "{:?}", decision.reasons);
}

#[test]
fn redact_names_the_places_that_are_hidden() {
    let book = rulebook(
        "rules:
  - { name: cards, effect: redact, paths: [card_number, /customer/ssn, 'secret_*'], when: args.customer.name == 'x' }
",
    );
    let arguments =
        json!({ "customer": { "ssn": "1", "name": "x" }, "payments": [{ "card_number": "4" }, { "card_number": "5" }], "secret_a/b": 1, "open": 2 });
    let decision = answer(&book, "a", &propose("d", arguments));
    assert_eq!(decision.redact, ["/customer/ssn", "/payments/0/card_number", "/payments/1/card_number", "/secret_a~1b"]);
    assert_eq!(decision.mode, Mode::Act);
    assert!(answer(&book, "a", &propose("d", json!({ "card_number": "4" }))).redact == ["/card_number"], "a condition that fails hides as well");
}

fn with(score: f64, change: impl FnOnce(&mut Standing)) -> Standing {
    let mut standing = Standing { score: Points::of(score), ..trusted("a") };
    change(&mut standing);
    standing
}

fn under(text: &str, standing: &Standing, act: &Act) -> Decision {
    decide(&rulebook(text), act, standing, &Counters::default(), NOW)
}

#[test]
fn a_waiver_lifts_trust_and_nothing_else() {
    const WAIVE: &str = "rules: [{ name: reads, match: { kind: read }, effect: allow, waive_trust: true }]";
    let (read, propose_it) = (act("read", "t", "d", ""), propose("d", json!({})));
    let low = with(0.1, |_| {});
    assert_eq!((under(WAIVE, &low, &read).mode, under(WAIVE, &low, &propose_it).mode), (Mode::Act, Mode::Escalate));
    assert_eq!(under(WAIVE, &with(0.1, |standing| standing.decided = 0), &read).mode, Mode::Act, "experience is a part of trust");
    assert_eq!(under(WAIVE, &with(0.1, |standing| standing.verified = false), &read).mode, Mode::Suggest);
    assert_eq!(under(WAIVE, &with(0.1, |standing| standing.paused = true), &read).mode, Mode::Deny);
    assert_eq!(under(WAIVE, &with(0.1, |standing| standing.over_a_persons_edit = true), &read).mode, Mode::Suggest);
    let high_risk = Act { kind: "read".to_owned(), ..propose("d", json!({ "owner": "x" })) };
    assert_eq!(under(WAIVE, &low, &high_risk).mode, Mode::Suggest);
    let said = with(0.1, |standing| standing.waived_by = Some("request 7".to_owned()));
    let decision = under("", &said, &propose_it);
    assert_eq!(decision.mode, Mode::Act);
    assert!(decision.reasons.iter().any(|reason| reason.text.contains("request 7")));
    let denies = "rules: [{ name: no, effect: deny }, { name: yes, effect: allow, waive_trust: true }]";
    assert_eq!(under(denies, &said, &propose_it).mode, Mode::Deny, "an allow takes no deny away");
    let nothing = "authority: { default_mode: deny }\nrules: [{ name: yes, effect: allow, waive_trust: true }]";
    assert_eq!(under(nothing, &with(0.1, |standing| standing.decided = 0), &read).mode, Mode::Deny);
}

#[test]
fn a_condition_that_fails_never_loosens() {
    for (effect, more, mode) in
        [("deny", "", Mode::Deny), ("require_approval", "", Mode::Suggest), ("allow", ", waive_trust: true", Mode::Escalate), ("log", "", Mode::Escalate)]
    {
        let text = format!("rules: [{{ name: r, when: 'args.missing > 5', effect: {effect}{more} }}]");
        let standing = with(if effect == "deny" || effect == "require_approval" { 1.0 } else { 0.1 }, |_| {});
        let decision = under(&text, &standing, &propose("d", json!({ "present": 1 })));
        assert_eq!(decision.mode, mode, "{effect}");
        assert!(decision.hits[0].failed, "{effect}");
        assert!(decision.hits[0].reason.contains("could not be evaluated"));
    }
}

#[test]
fn everything_that_is_not_a_rule_has_its_say() {
    let plain = propose("d", json!({ "x": 1 }));
    for (standing, source, mode) in [
        (with(1.0, |standing| standing.paused = true), "pause", Mode::Deny),
        (with(1.0, |standing| standing.verified = false), "unverified", Mode::Suggest),
        (with(1.0, |standing| standing.over_a_persons_edit = true), "edit", Mode::Suggest),
        (with(1.0, |standing| standing.decided = 0), "default_mode", Mode::Suggest),
        (with(0.79, |_| {}), "trust", Mode::Suggest),
        (with(0.49, |_| {}), "trust", Mode::Escalate),
    ] {
        let decision = under("", &standing, &plain);
        assert_eq!((decision.mode, decision.reasons[0].source.as_str()), (mode, source));
        assert!(decision.reasons[0].would_change.is_some(), "{source} says what would change it");
    }
    assert_eq!(under("", &with(1.0, |_| {}), &plain).mode, Mode::Act);
    assert_eq!(under("trust: { autonomous_threshold: 0.9 }", &with(0.85, |_| {}), &plain).mode, Mode::Suggest);
    assert_eq!(under("trust: { autonomous_threshold: 0.6 }", &with(0.7, |_| {}), &plain).mode, Mode::Suggest, "0.8 is the least");
    let trust = under("", &with(0.7, |_| {}), &plain).reasons[0].clone();
    assert!(trust.would_change.unwrap().contains("5 approvals"), "from 0.7 to 0.8 by 0.02");
}

#[test]
fn settings_hold_in_their_domain() {
    let book = rulebook(
        "trust: { default_level: 0.4 }
authority: { volume_cap: 10 }
domains:
  'crm.*': { authority: { volume_cap: 20, high_risk_fields: [stage] } }
  crm.deals: { authority: { volume_cap: 30 }, trust: { promotion: auto } }
",
    );
    let caps = ["other", "crm.leads", "crm.deals"].map(|domain| book.settings(domain).authority.volume_cap);
    assert_eq!(caps, [10, 20, 30]);
    assert_eq!(book.settings("crm.deals").authority.high_risk_fields, ["stage"], "what a wider domain says holds below it");
    assert_eq!(book.settings("crm.deals").trust.default_level, 0.4);
    assert!(book.is_high_risk("crm.deals", "deal.stage") && !book.is_high_risk("crm.deals", "owner") && book.is_high_risk("other", "owner"));
}

#[test]
fn cases_beside_a_policy_are_run() {
    let book = rulebook(
        "policies:
  - id: pay
    rules:
      - { field: amount, constraint: value_range, max: 100 }
      - { name: night, when: 'time.hour >= 22', effect: require_approval }
      - { name: often, when: 'counters.calls_hour > 3', effect: deny }
    tests:
      - { name: small passes, act: { arguments: { amount: 5 } }, mode: act, hits: [] }
      - { name: large is stopped, act: { arguments: { amount: 500 } }, mode: deny, hits: [value_range_amount] }
      - { name: at night, act: { arguments: { amount: 5 } }, now: '2026-01-01T23:00:00Z', mode: suggest, hits: [night] }
      - { name: too often, act: { arguments: {} }, counters: { calls_hour: 4 }, hits: [often] }
      - { name: little trust, act: { arguments: {} }, trust: 0.2, mode: escalate }
      - { name: wrong, act: { arguments: { amount: 500 } }, mode: act, hits: [night] }
",
    );
    let results = run_cases(&book, None);
    let passed: Vec<bool> = results.iter().map(|result| result.passed).collect();
    assert_eq!(passed, [true, true, true, true, true, false], "{results:#?}");
    let said = results[5].difference.clone().unwrap();
    assert!(said.contains("expected act, but it is deny") && said.contains("night did not fire") && said.contains("value_range_amount fired"), "{said}");
    assert_eq!(run_cases(&book, Some("other")).len(), 0);
}

#[test]
fn reasons_come_with_the_most_restrictive_first_and_effects_are_told() {
    let book = rulebook("rules: [{ name: a, effect: log }, { name: b, effect: require_approval }, { name: c, effect: deny, alternative: Ask Ann }]");
    let decision = decide(&book, &propose("d", json!({ "owner": 1 })), &with(0.1, |standing| standing.verified = false), &Counters::default(), NOW);
    let modes: Vec<Mode> = decision.reasons.iter().map(|reason| reason.mode).collect();
    assert!(modes.is_sorted(), "{modes:?}");
    assert_eq!(decision.hits.iter().map(|hit| hit.effect).collect::<Vec<_>>(), [Effect::Log, Effect::RequireApproval, Effect::Deny, Effect::RequireApproval]);
    assert_eq!(decision.hits[2].alternative.as_deref(), Some("Ask Ann"));
}

/// What is forbidden is forbidden, however bad it is said to be and whatever holds for pairs that nobody mapped.
#[test]
fn neither_severity_nor_mode_softens_a_rule() {
    for mode in ["strict", "permissive"] {
        for severity in ["info", "warning", "high", "critical"] {
            let book = rulebook(&format!("policy_mode: {mode}\nrules: [{{ name: never, effect: deny, severity: {severity} }}]"));
            assert_eq!(answer(&book, "a", &propose("d", json!({ "name": "x" }))).mode, Mode::Deny, "{mode} {severity}");
        }
    }
}
