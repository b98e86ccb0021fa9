//! Trust on both engines: the exact numbers, what moves them and what does not, and that the record alone gives them
//! again. Each test says in its first line which guard it fails without.

use std::collections::BTreeMap;
use std::time::Duration;

use deskmate_core::call::Cx;
use deskmate_core::policy::{self, Act, Counters, Mode, Parts, Rulebook, Settings, Standing};
use deskmate_core::record::{Event, Kind};
use deskmate_core::trust::{self, Change, Known, Of, Points, Rates, Severity, State, Step, Verdict, override_impact};
use deskmate_core::{Code, Result};
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

const DAY: Duration = Duration::from_hours(24);
const DOMAIN: &str = "crm.deals";
const TYPES: [&str; 5] = ["agent_wrong", "missing_context", "edge_case", "human_preference", "policy_change"];
const SEVERITIES: [Severity; 4] = [Severity::Low, Severity::Medium, Severity::High, Severity::Critical];
/// Stands for the event that tells of a proposal.
const SUBMITTED: Kind = Kind { name: "test.submitted", says: "Something was proposed." };

fn of<'a>(agent: &'a str, request: Option<&'a str>) -> Of<'a> {
    Of { agent, domain: DOMAIN, verified: true, request, confidence: None }
}

fn look(desk: &TestDesk, agent: &'static str) -> trust::Trust {
    desk.act(move |cx| trust::look(cx, agent, DOMAIN, true)).unwrap()
}

fn propose(desk: &TestDesk, agent: &'static str) {
    desk.act(move |cx| propose_in(cx, agent)).unwrap();
}

fn propose_in(cx: &mut Cx<'_, '_>, agent: &str) -> Result<()> {
    let trust = trust::look(cx, agent, DOMAIN, true)?;
    let event = trust::proposed(cx, &trust, Event::new(SUBMITTED, "request:x"))?;
    cx.emit(event)
}

fn approve(desk: &TestDesk, agent: &'static str, request: &str) -> Result<Change> {
    let request = request.to_owned();
    desk.act(move |cx| trust::approved(cx, of(agent, Some(&request))))
}

fn correct(desk: &TestDesk, agent: &'static str, request: Option<&str>, kind: &'static str, severity: Severity) -> Result<Change> {
    let request = request.map(str::to_owned);
    desk.act(move |cx| trust::overridden(cx, of(agent, request.as_deref()), kind, severity))
}

fn take_back(desk: &TestDesk, agent: &'static str, request: &'static str) -> Result<Change> {
    desk.act(move |cx| trust::taken_back(cx, of(agent, Some(request))))
}

/// Sets a score by the only door that can: what another system knew.
fn start_at(desk: &TestDesk, agent: &'static str, score: f64) {
    let known = move |cx: &Cx<'_, '_>| Known { score: Points::of(score), proposals: 0, approved: 0, overridden: 0, streak: 0, updated_at: cx.now() };
    let _ = desk.act(move |cx| trust::imported(cx, of(agent, None), &known(cx))).unwrap();
}

fn replay(desk: &TestDesk) -> Value {
    desk.call(&Caller::System, "desk_trust_replay", json!({})).unwrap()
}

fn assert_replays(desk: &TestDesk) {
    let replayed = replay(desk);
    assert_eq!((&replayed["agrees"], &replayed["complete"]), (&json!(true), &json!(true)), "{replayed:#}");
    let report = desk.verify();
    assert!(report.sound, "{:?}", report.findings);
}

#[test]
fn all_twenty_override_cells_are_exact() {
    // Guard: the table in `override_impact`.
    let rates = Rates::of(&Settings::default());
    let expected = [
        [-40_000_000, -80_000_000, -120_000_000, -200_000_000],
        [-15_000_000, -30_000_000, -45_000_000, -75_000_000],
        [-10_000_000, -20_000_000, -30_000_000, -50_000_000],
        [-5_000_000, -10_000_000, -15_000_000, -25_000_000],
        [0, 0, 0, 0],
    ];
    for (kind, row) in TYPES.iter().zip(expected) {
        for (severity, cell) in SEVERITIES.iter().zip(row) {
            assert_eq!(override_impact(kind, *severity, &rates), Points(cell), "{kind} {severity:?}");
        }
    }
    let mut settings = Settings::default();
    settings.feedback.override_trust_impact = -0.07;
    assert_eq!(override_impact("too_late", Severity::High, &Rates::of(&settings)), Points::of(-0.105), "a type of one's own takes the setting");
    settings.feedback.override_trust_impact = 0.07;
    assert_eq!(override_impact("too_late", Severity::High, &Rates::of(&settings)), Points::ZERO, "and never gains anything");
}

/// The answer to a change of one field, at a score.
fn mode(score: f64, field: &str) -> Mode {
    let rulebook = Rulebook::compile(Parts::default(), BTreeMap::new()).expect("nothing is wrong with nothing");
    let act = Act { kind: "propose".to_owned(), domain: DOMAIN.to_owned(), field: Some(field.to_owned()), arguments: json!({ field: "x" }), ..Act::default() };
    let standing = Standing {
        agent: "code".to_owned(),
        verified: true,
        paused: false,
        score: Points::of(score),
        decided: 1,
        over_a_persons_edit: false,
        waived_by: None,
        attached: None,
    };
    policy::decide(&rulebook, &act, &standing, &Counters::default(), 0).mode
}

#[test]
fn cases_1_to_7_modes_and_high_risk_fields() {
    // Guard: the thresholds, and the most restrictive of trust and the high-risk list. Case 2 is changed: there a field of
    // high risk lifted escalate to suggest (W14).
    let cases = [(0.3, "contact_name"), (0.3, "deal_stage"), (0.6, "contact_name"), (0.85, "contact_name"), (0.85, "commission")];
    let modes = cases.map(|(score, field)| mode(score, field));
    assert_eq!(modes, [Mode::Escalate, Mode::Escalate, Mode::Suggest, Mode::Act, Mode::Suggest]);
    for (field, high) in [("billing_address", true), ("billing_email", true), ("shipping_address", false), ("utm_source", true), ("utm_campaign", true)] {
        assert_eq!(mode(0.9, field) == Mode::Suggest, high, "{field}");
    }
    // The thresholds themselves belong to the better side.
    assert_eq!([0.499_999_999, 0.5, 0.799_999_999, 0.8].map(|score| mode(score, "name")), [Mode::Escalate, Mode::Suggest, Mode::Suggest, Mode::Act]);
}

#[test]
fn the_interval_is_wilsons() {
    // Guard: `interval`. The values are those of the published formula for 8 of 10 and 0 of 5.
    let (low, high) = trust::interval(8, 10);
    assert!((low - 0.490_16).abs() < 1e-4 && (high - 0.943_31).abs() < 1e-4, "{low} {high}");
    let (low, high) = trust::interval(0, 5);
    assert!(low == 0.0 && (high - 0.434_48).abs() < 1e-4, "{low} {high}");
    assert_eq!(trust::interval(0, 0), (0.0, 1.0));
}

both! {
    fn a_new_agent_starts_at_a_third_and_approvals_add_two_hundredths(desk: &TestDesk) {
        // Guard: whole billionths. Binary fractions would miss 0.5 after ten approvals and 0.8 after twenty-five.
        let new = look(desk, "code");
        assert_eq!((new.score, new.mode(), new.stored.is_none()), (Points::of(0.3), Mode::Escalate, true));
        for number in 1..=35 {
            let change = approve(desk, "code", &format!("r{number}")).unwrap();
            let expected = (300_000_000 + 20_000_000 * number).min(1_000_000_000);
            assert_eq!((change.new, change.impact), (Points(expected), Points::of(0.02)));
            let mode = if number < 10 { Mode::Escalate } else if number < 25 { Mode::Suggest } else { Mode::Act };
            assert_eq!(change.trust.mode(), mode, "after {number}");
        }
        assert_eq!(look(desk, "code").score, Points::ONE, "and no more");
        assert_replays(desk);
    }

    fn cases_8_to_12_propose_approve_correct_and_the_cap(desk: &TestDesk) {
        // Guard: the steps of trust as people and agents meet them. The cap of case 12 is two.
        let owner = desk.claim();
        let agent = desk.register(&owner, "code");
        let rules = policy::Document::parse("authority:\n  volume_cap: 2\n").expect("right settings");
        desk.act(move |cx| policy::store(cx, &rules.over(&Parts::default()), "test")).unwrap();
        let input = json!({ "domain": DOMAIN, "action": "update", "target": "deal/1", "proposed_change": "{\"name\":\"x\"}", "confidence": 0.9, "reasoning": "why" });
        let first = desk.call(&agent, "cowork_propose", input.clone()).unwrap();
        assert_eq!((first["mode"].as_str(), first["proposal_id"].is_string(), first["action_id"].is_string()), (Some("escalate"), true, true));
        let second = desk.call(&agent, "cowork_propose", input.clone()).unwrap();
        assert_eq!(second["volume_remaining"], 0);
        desk.call(&owner, "desk_request_approve", json!({ "request": first["proposal_id"] })).unwrap();
        assert_eq!(look(desk, "code").score, Points::of(0.32), "case 9: exactly the setting");
        desk.call(&owner, "desk_request_reject", json!({ "request": second["proposal_id"], "reason": "no", "type": "agent_wrong", "severity": "medium" })).unwrap();
        assert_eq!(look(desk, "code").score, Points::of(0.24), "case 10");
        let third = desk.call(&agent, "cowork_propose", input).unwrap();
        assert_eq!((third["error"].as_bool(), third["volume_cap_error"].as_bool(), third["volume_cap"].as_i64()), (Some(true), Some(true), Some(2)));
        for number in 0..2 {
            let _ = correct(desk, "code", Some(&format!("r{number}")), "agent_wrong", Severity::Medium).unwrap();
        }
        assert_eq!(look(desk, "code").state().streak, 3, "case 11");
        assert_replays(desk);
    }

    fn three_corrections_demote_once(desk: &TestDesk) {
        // Guard: the `demoted` flag of a streak. Without it the fourth override would cost another 0.10.
        start_at(desk, "code", 0.9);
        let steps = [(0.82, false), (0.74, false), (0.56, true), (0.48, false), (0.40, false)];
        for (number, (score, demoted)) in steps.into_iter().enumerate() {
            let change = correct(desk, "code", Some(&format!("r{number}")), "agent_wrong", Severity::Medium).unwrap();
            assert_eq!((change.new, change.demoted), (Points::of(score), demoted), "override {}", number + 1);
            let whole = if demoted { -0.18 } else { -0.08 };
            assert_eq!(change.impact, Points::of(whole), "the impact that is told includes the demotion");
        }
        let _ = approve(desk, "code", "ends the streak").unwrap();
        assert_eq!(look(desk, "code").state().streak, 0);
        for number in 10..13 {
            assert_eq!(correct(desk, "code", Some(&format!("r{number}")), "human_preference", Severity::Low).unwrap().demoted, number == 12);
        }
        assert_replays(desk);
    }

    fn the_score_stays_between_nought_and_one(desk: &TestDesk) {
        // Guard: the clamp in `State::after`.
        let scores: Vec<Points> = (0..3).map(|_| correct(desk, "code", None, "agent_wrong", Severity::Medium).unwrap().new).collect();
        assert_eq!(scores, [Points::of(0.22), Points::of(0.14), Points::ZERO]);
        assert_eq!(correct(desk, "code", None, "agent_wrong", Severity::Critical).unwrap().new, Points::ZERO);
        start_at(desk, "good", 0.99);
        assert_eq!(approve(desk, "good", "r").unwrap().new, Points::ONE);
        assert_replays(desk);
    }

    fn an_approval_between_two_corrections_ends_the_streak(desk: &TestDesk) {
        // Guard: an approval sets the streak to nought.
        let _ = correct(desk, "code", Some("a"), "agent_wrong", Severity::Low).unwrap();
        let _ = approve(desk, "code", "b").unwrap();
        let change = correct(desk, "code", Some("c"), "agent_wrong", Severity::Low).unwrap();
        assert_eq!((change.trust.state().streak, change.demoted), (1, false));
    }

    fn idle_trust_fades_by_the_day_and_reading_writes_nothing(desk: &TestDesk) {
        // Guard: `look` computes fading and never stores it.
        start_at(desk, "high", 0.8);
        start_at(desk, "low", 0.3);
        start_at(desk, "busy", 0.9);
        desk.world.pass(Duration::from_hours(2));
        propose(desk, "busy");
        assert_eq!(look(desk, "busy").state().score, Points::of(0.9), "two hours are not worth a change");
        desk.world.pass(DAY * 10 - Duration::from_hours(2));
        let before = desk.verify().events;
        let faded = look(desk, "high");
        assert!((faded.score.to_f64() - 0.70).abs() < 1e-9, "{}", faded.score.to_f64());
        assert_eq!((faded.score_before_decay(), faded.mode()), (Points::of(0.8), Mode::Suggest));
        let listed = desk.call(&Caller::System, "desk_trust_list", json!({ "agent": "high" })).unwrap();
        let row = &listed["items"][0];
        assert!((row["score"].as_f64().unwrap() - 0.70).abs() < 1e-9, "a list shows the same score as a look: {row}");
        assert_eq!((row["mode"].as_str(), row["score_before_decay"].as_f64()), (Some("suggest"), Some(0.8)));
        assert_eq!(desk.verify().events, before, "looking told nothing");
        assert_eq!(look(desk, "high").state().score, Points::of(0.8), "and wrote nothing");
        desk.world.pass(DAY * 15);
        assert_eq!(look(desk, "low").score, Points::of(0.1), "0.3 after 25 days");
        let change = approve(desk, "low", "r").unwrap();
        assert_eq!((change.previous, change.new), (Points::of(0.1), Points::of(0.12)), "the next change begins at the faded score");
        assert_replays(desk);
    }

    fn w18_fading_never_raises_a_score(desk: &TestDesk) {
        // Guard: the floor is the lower of 0.1 and the score itself.
        for (agent, score) in [("none", 0.0), ("little", 0.05), ("floor", 0.1)] {
            start_at(desk, agent, score);
        }
        for days in [1, 30, 4_000] {
            desk.world.pass(DAY * days);
            for (agent, score) in [("none", 0.0), ("little", 0.05), ("floor", 0.1)] {
                assert_eq!(look(desk, agent).score, Points::of(score), "{agent} after {days} days more");
            }
        }
        propose(desk, "none");
        assert_eq!(look(desk, "none").state().score, Points::ZERO);
        assert_replays(desk);
    }

    fn a_clock_that_steps_back_fades_nothing(desk: &TestDesk) {
        // Guard: idle time is never less than nought.
        start_at(desk, "code", 0.6);
        desk.world.step_back(DAY * 40);
        assert_eq!(look(desk, "code").score, Points::of(0.6));
        propose(desk, "code");
        assert_eq!(look(desk, "code").score, Points::of(0.6));
        desk.world.pass(DAY * 10);
        assert!((look(desk, "code").score.to_f64() - 0.5).abs() < 1e-9, "from there on time counts again");
        assert_replays(desk);
    }

    fn w19_a_change_of_policy_neither_moves_trust_nor_feeds_the_streak(desk: &TestDesk) {
        // Guard: `feeds_streak` is false for policy_change.
        for number in 0..5 {
            let change = correct(desk, "code", Some(&format!("r{number}")), "policy_change", Severity::Critical).unwrap();
            assert_eq!((change.new, change.impact, change.demoted), (Points::of(0.3), Points::ZERO, false));
            assert_eq!(change.trust.state().streak, 0);
        }
        let _ = correct(desk, "code", Some("a"), "agent_wrong", Severity::Low).unwrap();
        let _ = correct(desk, "code", Some("b"), "policy_change", Severity::Low).unwrap();
        let _ = correct(desk, "code", Some("c"), "agent_wrong", Severity::Low).unwrap();
        assert_eq!(look(desk, "code").state().streak, 2, "and it does not end one either");
        assert!(correct(desk, "code", Some("d"), "agent_wrong", Severity::Low).unwrap().demoted);
        assert_replays(desk);
    }

    fn w17_each_proposal_counts_once_and_a_proposal_alone_proves_nothing(desk: &TestDesk) {
        // Guard: accuracy is approved / decided. Counting the proposal too would give 0.5; counting acts would give 1.
        for number in 0..5 {
            propose(desk, "code");
            let _ = approve(desk, "code", &format!("r{number}")).unwrap();
        }
        let trust = look(desk, "code");
        assert_eq!((trust.accuracy().to_bits(), trust.decided(), trust.state().proposals), (1.0_f64.to_bits(), 5, 5));
        for _ in 0..7 {
            propose(desk, "alone");
        }
        let trust = look(desk, "alone");
        assert_eq!((trust.accuracy().to_bits(), trust.decided(), trust.state().proposals), (0.0_f64.to_bits(), 0, 7));
        assert_eq!((trust.score, trust.state().streak, trust.interval()), (Points::of(0.3), 0, (0.0, 1.0)));
        let _ = correct(desk, "code", Some("x"), "edge_case", Severity::Low).unwrap();
        assert!((look(desk, "code").accuracy() - 5.0 / 6.0).abs() < 1e-9);
        assert_replays(desk);
    }

    fn w17_twenty_decided_at_four_fifths_earn_a_promotion(desk: &TestDesk) {
        // Guard: `promotion_earned`, and the `promoting` flag that tells it once.
        let mut due = Vec::new();
        for number in 0..20 {
            let request = format!("r{number}");
            if number % 5 == 2 {
                let _ = correct(desk, "code", Some(&request), "human_preference", Severity::Low).unwrap();
            } else if let Some(target) = approve(desk, "code", &request).unwrap().promotion_due {
                due.push((number, target));
            }
        }
        assert_eq!(due, [(19, Points::ACT)], "16 of 20, and 0.60 is above 0.5 already");
        assert!(look(desk, "code").state().promoting);
        assert_eq!(approve(desk, "code", "more").unwrap().promotion_due, None, "it is told once");
        let change = desk.act(|cx| trust::promoted(cx, of("code", Some("promotion")), Points::ACT)).unwrap();
        assert_eq!((change.new, change.trust.mode()), (Points::ACT, Mode::Act));
        assert_eq!((change.trust.state().decided_since, change.trust.state().promoting), (0, false), "counting starts anew");
        for number in 20..60 {
            assert_eq!(approve(desk, "code", &format!("r{number}")).unwrap().promotion_due, None, "there is nothing above 0.8");
        }
        assert_replays(desk);
    }

    fn an_override_can_be_the_twentieth(desk: &TestDesk) {
        // Guard: a promotion is considered whatever was decided last, but not while a streak costs a demotion.
        let correct = |agent, number: i64| correct(desk, agent, Some(&format!("{agent}{number}")), "human_preference", Severity::Low).unwrap();
        for number in 0..19 {
            let due = if number % 5 == 2 && number < 15 { correct("code", number) } else { approve(desk, "code", &format!("code{number}")).unwrap() };
            assert_eq!(due.promotion_due, None);
        }
        assert_eq!(correct("code", 19).promotion_due, Some(Points::ACT), "16 of 20, and the last one was corrected");
        for number in 0..16 {
            let _ = approve(desk, "streak", &format!("streak{number}")).unwrap();
        }
        assert!((16..20).all(|number| correct("streak", number).promotion_due.is_none()), "four corrections in a row earn nothing");
        let _ = approve(desk, "streak", "streak20").unwrap().promotion_due.expect("17 of 21, and the streak is over");
        assert_replays(desk);
    }

    fn settings_of_trust_have_their_effect(desk: &TestDesk) {
        // Guard: `Rates::of` for what nobody is known of, what demotes and what promotes, what answers and days do; for the whole desk and
        // for one domain.
        let owner = desk.claim();
        let settings = "trust: { default_level: 0.2, auto_demote_after: 2, auto_promote_after: 4, auto_promote_accuracy: 0.75, decay_per_day: 0.005 }\n\
                        feedback: { approval_trust_impact: 0.03, override_trust_impact: -0.06 }\n\
                        domains:\n  own:\n    \
                        trust: { default_level: 0.1, auto_demote_after: 1, auto_promote_accuracy: 1.0, decay_per_day: 0.02 }\n    \
                        feedback: { approval_trust_impact: 0.01, override_trust_impact: -0.07 }\n";
        let apply = |text: &str| desk.call(&owner, "desk_policy_apply", json!({ "document": text })).unwrap();
        apply(settings);
        let of = |domain: &'static str, request: String, approved: bool| {
            desk.act(move |cx| {
                let of = Of { agent: "code", domain, verified: true, request: Some(&request), confidence: None };
                if approved { trust::approved(cx, of) } else { trust::overridden(cx, of, "human_preference", Severity::Medium) }
            })
        };
        for (domain, start, demotes, promotes) in [("others", 0.2, 2, true), ("own", 0.1, 1, false)] {
            let score = desk.act(move |cx| Ok(trust::look(cx, "code", domain, true)?.score)).unwrap();
            assert_eq!(score, Points::of(start), "{domain}");
            // Three of four are approved.
            let changes: Vec<Change> = (0..4).map(|number| of(domain, format!("{domain}{number}"), number != 1).unwrap()).collect();
            assert_eq!(changes[1].demoted, demotes == 1, "{domain}");
            assert_eq!(changes[3].promotion_due.is_some(), promotes, "{domain}");
            let first = of(domain, format!("{domain}4"), false).unwrap();
            assert_eq!(first.demoted, demotes == 1, "{domain}");
            let second = of(domain, format!("{domain}5"), false).unwrap();
            assert_eq!(second.demoted, demotes == 2, "{domain}: once in each streak");
        }
        // What an approval adds, what a type of one's own costs, and what a day takes; where one correction demotes, that as well.
        for (domain, after_approval, after_override, after_two_days) in [("others", 0.53, 0.47, 0.46), ("own", 0.51, 0.34, 0.3)] {
            let (approved, overridden) = desk
                .act(move |cx| {
                    let of = |request| Of { agent: "sales", domain, verified: true, request, confidence: None };
                    let known = Known { score: Points::of(0.5), proposals: 0, approved: 0, overridden: 0, streak: 0, updated_at: cx.now() };
                    let _ = trust::imported(cx, of(None), &known)?;
                    let (first, second) = (format!("{domain}-first"), format!("{domain}-second"));
                    Ok((trust::approved(cx, of(Some(&first)))?.new, trust::overridden(cx, of(Some(&second)), "too_late", Severity::Medium)?.new))
                })
                .unwrap();
            assert_eq!((approved, overridden), (Points::of(after_approval), Points::of(after_override)), "{domain}");
            desk.world.pass(DAY * 2);
            let faded = desk.act(move |cx| Ok(trust::look(cx, "sales", domain, true)?.score)).unwrap();
            assert_eq!(faded, Points::of(after_two_days), "{domain}");
        }
        assert_replays(desk);
    }

    fn w17_a_poor_share_earns_nothing_and_a_refusal_starts_anew(desk: &TestDesk) {
        // Guard: the comparison of shares, and that a refusal restarts the count.
        for number in 0..24 {
            let request = format!("r{number}");
            let promotion_due = if number % 4 == 0 {
                correct(desk, "code", Some(&request), "human_preference", Severity::Low).unwrap().promotion_due
            } else {
                approve(desk, "code", &request).unwrap().promotion_due
            };
            assert_eq!(promotion_due, None, "18 of 24 are three quarters");
        }
        start_at(desk, "low", 0.0);
        let due: Vec<_> = (0..20).map(|number| approve(desk, "low", &format!("l{number}")).unwrap().promotion_due).collect();
        assert_eq!(due.iter().flatten().collect::<Vec<_>>(), [&Points::SUGGEST]);
        let change = desk.act(|cx| trust::not_promoted(cx, of("low", Some("promotion")))).unwrap();
        assert_eq!((change.new, change.trust.state().decided_since), (Points::of(0.4), 0));
        let again = |number: i64| match number % 5 {
            0 => correct(desk, "low", Some(&format!("l{number}")), "human_preference", Severity::Low).unwrap().promotion_due,
            _ => approve(desk, "low", &format!("l{number}")).unwrap().promotion_due,
        };
        let due: Vec<_> = (20..40).map(again).collect();
        assert_eq!((due.iter().position(Option::is_some), due.last()), (Some(19), Some(&Some(Points::ACT))), "another twenty are needed");
        let wrong = desk.act(|cx| trust::promoted(cx, of("low", None), Points::ONE)).unwrap_err();
        assert_code(&wrong, Code::Invalid);
        assert_replays(desk);
    }

    fn w20_an_answer_counts_once(desk: &TestDesk) {
        // Guard: `trust_verdict` holds one answer for each request.
        let _ = approve(desk, "code", "r").unwrap();
        assert_code(&approve(desk, "code", "r").unwrap_err(), Code::Conflict);
        let _ = correct(desk, "code", Some("s"), "agent_wrong", Severity::Low).unwrap();
        assert_code(&correct(desk, "code", Some("s"), "agent_wrong", Severity::Low).unwrap_err(), Code::Conflict);
        assert_code(&approve(desk, "code", "s").unwrap_err(), Code::Conflict);
        assert_eq!(look(desk, "code").score, Points::of(0.28));
        assert_replays(desk);
    }

    fn w20_taking_an_approval_back_undoes_what_it_did(desk: &TestDesk) {
        // Guard: `taken_back` gives back what was really applied, not the nominal 0.02.
        let _ = approve(desk, "code", "r").unwrap();
        let change = take_back(desk, "code", "r").unwrap();
        assert_eq!((change.previous, change.new), (Points::of(0.32), Points::of(0.30)));
        assert_eq!((change.trust.decided(), change.trust.state().approved_since), (0, 0), "it counts no longer");
        assert_code(&take_back(desk, "code", "r").unwrap_err(), Code::Conflict);
        let _ = approve(desk, "code", "r").unwrap();
        start_at(desk, "top", 0.99);
        assert_eq!(approve(desk, "top", "t").unwrap().new, Points::ONE);
        assert_eq!(take_back(desk, "top", "t").unwrap().new, Points::of(0.99));
        // A streak that the approval ended is there again, if nothing was decided since.
        for number in 0..2 {
            let _ = correct(desk, "top", Some(&format!("w{number}")), "human_preference", Severity::Low).unwrap();
        }
        let _ = approve(desk, "top", "mistake").unwrap();
        assert_eq!(take_back(desk, "top", "mistake").unwrap().trust.state().streak, 2);
        assert!(correct(desk, "top", Some("w2"), "human_preference", Severity::Low).unwrap().demoted);
        assert_replays(desk);
    }

    fn w20_overriding_what_was_approved_takes_the_approval_back(desk: &TestDesk) {
        // Guard: `overridden` takes an earlier approval of the same request back first.
        let _ = approve(desk, "code", "r").unwrap();
        let change = correct(desk, "code", Some("r"), "agent_wrong", Severity::Medium).unwrap();
        assert_eq!((change.previous, change.new, change.impact), (Points::of(0.32), Points::of(0.22), Points::of(-0.10)));
        let state = change.trust.state();
        assert_eq!((state.approved, state.overridden, state.streak), (0, 1, 1), "one proposal, one answer");
        assert_replays(desk);
    }

    fn what_was_earned_unproved_stays_apart(desk: &TestDesk) {
        // Guard: `verified` is part of the key.
        let unproved = |request: &'static str| Of { verified: false, ..of("code", Some(request)) };
        let _ = desk.act(move |cx| trust::approved(cx, unproved("r"))).unwrap();
        assert_eq!(look(desk, "code").score, Points::of(0.3));
        assert_eq!(desk.act(|cx| trust::look(cx, "code", DOMAIN, false)).unwrap().score, Points::of(0.32));
        start_at(desk, "code", 0.9);
        let shown = desk.call(&Caller::System, "desk_trust_get", json!({ "agent": "code", "domain": DOMAIN })).unwrap();
        let modes: Vec<_> = shown["rows"].as_array().unwrap().iter().map(|row| (row["verified"].clone(), row["mode"].clone())).collect();
        assert_eq!(modes, [(json!(true), json!("act")), (json!(false), json!("escalate"))]);
        assert_eq!((shown["suggest_from"].as_f64(), shown["act_from"].as_f64()), (Some(0.5), Some(0.8)));
        assert_replays(desk);
    }

    fn confidence_is_kept_for_calibration(desk: &TestDesk) {
        // Guard: the sums in `State::decide`, and that taking back subtracts them.
        let sure = |request: &'static str, confidence: f64| Of { confidence: Some(Points::of(confidence)), ..of("code", Some(request)) };
        let _ = desk.act(move |cx| trust::approved(cx, sure("a", 0.9))).unwrap();
        let _ = desk.act(move |cx| trust::approved(cx, sure("b", 0.95))).unwrap();
        let _ = desk.act(move |cx| trust::overridden(cx, sure("c", 0.3), "edge_case", Severity::Low)).unwrap();
        let _ = desk.act(move |cx| trust::approved(cx, sure("d", 1.0))).unwrap();
        let _ = desk.act(move |cx| trust::taken_back(cx, sure("d", 1.0))).unwrap();
        let shown = desk.call(&Caller::System, "desk_trust_get", json!({ "agent": "code", "domain": DOMAIN })).unwrap();
        let row = &shown["rows"][0];
        assert!((row["mean_confidence"].as_f64().unwrap() - 2.15 / 3.0).abs() < 1e-6, "{row}");
        assert!((row["brier"].as_f64().unwrap() - (0.01 + 0.0025 + 0.09) / 3.0).abs() < 1e-6, "{row}");
        let buckets: Vec<_> = shown["calibration"].as_array().unwrap().iter().map(|bucket| (bucket["count"].as_i64(), bucket["approved"].as_f64())).collect();
        assert_eq!(buckets, [(Some(1), Some(0.0)), (Some(2), Some(1.0))]);
        assert_replays(desk);
    }

    fn history_shows_every_change_in_pages(desk: &TestDesk) {
        // Guard: every change is told, with its numbers as facts.
        for number in 0..5 {
            let _ = approve(desk, "code", &format!("r{number}")).unwrap();
        }
        let _ = correct(desk, "code", Some("r4"), "agent_wrong", Severity::High).unwrap();
        let get = |input: Value| desk.call(&Caller::System, "desk_trust_get", input).unwrap();
        let first = get(json!({ "agent": "code", "domain": DOMAIN, "limit": 3 }));
        let causes: Vec<_> = first["history"].as_array().unwrap().iter().map(|past| past["cause"].as_str().unwrap().to_owned()).collect();
        assert_eq!(causes, ["overridden", "taken_back", "approved"]);
        assert_eq!(first["history"][0]["impact"].as_f64(), Some(-0.12));
        let second = get(json!({ "agent": "code", "domain": DOMAIN, "limit": 10, "cursor": first["next_cursor"] }));
        assert_eq!(second["history"].as_array().unwrap().len(), 4);
        assert!(second.get("next_cursor").is_none());
    }

    fn an_agent_sees_only_its_own_trust(desk: &TestDesk) {
        // Guard: `whose` in the operations that show trust.
        for agent in ["one", "two"] {
            propose(desk, agent);
        }
        let own = desk.agent("one", "desk_trust_list", json!({})).unwrap();
        let agents: Vec<_> = own["items"].as_array().unwrap().iter().map(|row| row["agent"].as_str().unwrap()).collect();
        assert_eq!(agents, ["one"]);
        assert_code(&desk.refused(&Caller::Agent("one"), "desk_trust_list", json!({ "agent": "two" })), Code::Forbidden);
        assert_code(&desk.refused(&Caller::Agent("one"), "desk_trust_get", json!({ "agent": "two", "domain": DOMAIN })), Code::Forbidden);
        let replayed = desk.agent("one", "desk_trust_replay", json!({})).unwrap();
        assert_eq!((replayed["compared"].as_u64(), replayed["rows"][0]["agent"].as_str()), (Some(1), Some("one")));
        let owner = desk.claim();
        assert_eq!(desk.call(&owner, "desk_trust_list", json!({})).unwrap()["items"].as_array().unwrap().len(), 2);
    }

    fn lists_come_in_pages_without_gaps(desk: &TestDesk) {
        // Guard: the order by a unique key and the cursor over it.
        for agent in ["a", "b", "c"] {
            desk.act(move |cx| {
                for domain in ["x.y", "z/w"] {
                    for verified in [true, false] {
                        let trust = trust::look(cx, agent, domain, verified)?;
                        let event = trust::proposed(cx, &trust, Event::new(SUBMITTED, "request:x"))?;
                        cx.emit(event)?;
                    }
                }
                Ok(())
            })
            .unwrap();
        }
        let (mut seen, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let mut input = json!({ "limit": 5 });
            if !cursor.is_null() {
                input["cursor"] = cursor;
            }
            let page = desk.call(&Caller::System, "desk_trust_list", input).unwrap();
            seen.extend(page["items"].as_array().unwrap().iter().map(|row| format!("{} {} {}", row["agent"], row["domain"], row["verified"])));
            cursor = page.get("next_cursor").cloned().unwrap_or_default();
            if cursor.is_null() {
                break;
            }
        }
        let distinct: std::collections::BTreeSet<_> = seen.iter().collect();
        assert_eq!((seen.len(), distinct.len()), (12, 12), "{seen:?}");
    }

    fn what_another_system_knew_stands_only_where_nothing_is_known(desk: &TestDesk) {
        // Guard: `imported` refuses where there is a row.
        let at = desk.act(|cx| Ok(cx.now())).unwrap();
        let known = Known { score: Points::of(0.64), proposals: 9, approved: 7, overridden: 2, streak: 1, updated_at: at };
        desk.world.pass(DAY * 10);
        let _ = desk.act(move |cx| trust::imported(cx, of("old", None), &known)).unwrap();
        assert!((look(desk, "old").score.to_f64() - 0.54).abs() < 1e-9, "fading goes on from then");
        assert_code(&desk.act(move |cx| trust::imported(cx, of("old", None), &known)).unwrap_err(), Code::Conflict);
        let _ = approve(desk, "old", "r").unwrap();
        assert_replays(desk);
    }

    fn a_changed_row_is_found(desk: &TestDesk) {
        // Guard: the projection of trust in the verification, and `trust replay`.
        propose(desk, "code");
        let _ = approve(desk, "code", "r").unwrap();
        assert_replays(desk);
        desk.tamper("update trust set score = 900000000 where agent = 'code'");
        let replayed = replay(desk);
        assert_eq!(replayed["agrees"], false);
        let row = &replayed["rows"][0];
        assert_eq!((row["stored"].as_f64(), row["recomputed"].as_f64(), row["agrees"].as_bool()), (Some(0.9), Some(0.32), Some(false)));
        assert!(!desk.verify().sound);
        desk.tamper("update trust set score = 320000000, proposals = 2 where agent = 'code'");
        assert_eq!(replay(desk)["agrees"], false, "a counter counts as well");
        desk.tamper("update trust set proposals = 1 where agent = 'code'");
        assert_replays(desk);
        desk.tamper("update trust_verdict set applied = 0 where request = 'r'");
        assert_eq!(replay(desk)["agrees"], false, "so does what an answer did");
        desk.tamper("delete from trust_verdict where request = 'r'");
        assert!(!desk.verify().sound);
    }

    fn an_untrue_event_is_found(desk: &TestDesk) {
        // Guard: replay computes numbers from the rules and does not copy them from events.
        desk.act(|cx| {
            let facts = json!({ "agent": "code", "domain": DOMAIN, "verified": true, "start": 300_000_000, "decay_per_day": 10_000_000, "score": 900_000_000, "proposals": 1 });
            cx.tx.execute(
                "insert into trust (agent, domain, verified, score, proposals, approved, overridden, streak, demoted, changes, decided_since, approved_since, \
                 promoting, confidence_sum, confidence_count, brier_sum, updated_at) values ('code', 'crm.deals', $1, 900000000, 1, 0, 0, 0, $2, 0, 0, 0, $2, 0, 0, 0, $3)",
                deskmate_db::args![true, false, cx.now()],
            )?;
            cx.emit(Event::new(SUBMITTED, "request:x").fact("trust", facts))
        })
        .unwrap();
        let replayed = replay(desk);
        assert_eq!((&replayed["agrees"], &replayed["rows"][0]["misfit"]), (&json!(false), &json!(0)), "{replayed}");
        assert!(!desk.verify().sound);
    }

    fn concurrent_answers_all_count(desk: &TestDesk) {
        // Guard: the row is read and written in one serialised transaction.
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let desk = desk.desk.clone();
                scope.spawn(move || {
                    for number in 0..4 {
                        let request = format!("r{thread}-{number}");
                        let act = move |cx: &mut Cx<'_, '_>| trust::approved(cx, of("code", Some(&request)));
                        let _ = testkit::wait(desk.act(deskmate_core::call::Surface::System, act)).unwrap();
                    }
                });
            }
        });
        desk.seal();
        let trust = look(desk, "code");
        assert_eq!((trust.score, trust.decided()), (Points::of(0.94), 32));
        assert_replays(desk);
    }
}

/// Something that chance lets happen.
#[derive(Clone, Debug)]
enum Move {
    Propose,
    Approve(Option<f64>),
    Override(usize, usize, bool),
    TakeBack(usize),
    Promote(bool, bool),
    Pass(i64),
    StepBack(i64),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        3 => Just(Move::Propose),
        5 => prop::option::of(0.0..=1.0).prop_map(Move::Approve),
        3 => (0..6_usize, 0..4_usize, any::<bool>()).prop_map(|(kind, severity, known)| Move::Override(kind, severity, known)),
        2 => any::<usize>().prop_map(Move::TakeBack),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(yes, high)| Move::Promote(yes, high)),
        3 => (0..40 * 86_400_i64).prop_map(Move::Pass),
        1 => (0..20 * 86_400_i64).prop_map(Move::StepBack),
    ];
    prop::collection::vec(one, 1..60)
}

fn play(desk: &TestDesk, moves: &[Move]) {
    let mut requests: Vec<String> = Vec::new();
    for (number, one) in moves.iter().enumerate() {
        let request = format!("r{number}");
        let sure = |confidence: Option<f64>| confidence.map(Points::of);
        let before = look(desk, "code").score;
        match one.clone() {
            Move::Propose => propose(desk, "code"),
            Move::Approve(confidence) => {
                let name = request.clone();
                let change = desk.act(move |cx| trust::approved(cx, Of { confidence: sure(confidence), ..of("code", Some(&name)) })).unwrap();
                assert!(change.new >= before, "an approval lowered a score");
                requests.push(request);
            }
            Move::Override(kind, severity, known) => {
                let kind = TYPES.get(kind).copied().unwrap_or("of_ones_own");
                // Every other one overrides something that was decided before, which is taken back or refused.
                let name = if known { requests.last().cloned().unwrap_or_else(|| request.clone()) } else { request.clone() };
                let severity = SEVERITIES[severity];
                let given = name.clone();
                match desk.act(move |cx| trust::overridden(cx, of("code", Some(&given)), kind, severity)) {
                    Ok(change) => assert!(change.new <= before, "an override raised a score"),
                    Err(error) => assert_code(&error, Code::Conflict),
                }
                if !requests.contains(&name) {
                    requests.push(name);
                }
            }
            Move::TakeBack(which) if !requests.is_empty() => {
                let name = requests[which % requests.len()].clone();
                if let Err(error) = desk.act(move |cx| trust::taken_back(cx, of("code", Some(&name)))) {
                    assert_code(&error, Code::Conflict);
                }
            }
            Move::TakeBack(_) => {}
            Move::Promote(true, high) => {
                let target = if high { Points::ACT } else { Points::SUGGEST };
                let change = desk.act(move |cx| trust::promoted(cx, of("code", None), target)).unwrap();
                assert!(change.new >= target && change.new >= before);
            }
            Move::Promote(false, _) => drop(desk.act(|cx| trust::not_promoted(cx, of("code", None))).unwrap()),
            Move::Pass(seconds) => {
                desk.world.pass(Duration::from_secs(seconds.unsigned_abs()));
                assert!(look(desk, "code").score <= before, "time raised a score");
            }
            Move::StepBack(seconds) => desk.world.step_back(Duration::from_secs(seconds.unsigned_abs())),
        }
        let trust = look(desk, "code");
        assert!((Points::ZERO..=Points::ONE).contains(&trust.score), "{:?}", trust.score);
        let state = trust.state();
        assert!(state.approved >= 0 && state.overridden >= 0 && state.approved_since <= state.decided_since, "{state:?}");
    }
    let replayed = replay(desk);
    assert_eq!(replayed["agrees"], true, "{replayed:#}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), failure_persistence: None, ..ProptestConfig::default() })]

    /// Guard: every input of a step is a fact, and a step is a function of the facts before it.
    #[test]
    fn any_sequence_equals_its_replay_on_sqlite(moves in moves()) {
        play(&TestDesk::new(testkit::Backend::Sqlite), &moves);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(6), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_equals_its_replay_on_postgres(moves in moves()) {
        if let Some(backend) = testkit::Backend::postgres() {
            play(&TestDesk::new(backend), &moves);
        }
    }
}

fn rates() -> impl Strategy<Value = Rates> {
    let points = |max: i64| (0..=max).prop_map(Points);
    (points(1_000_000_000), points(1_000_000_000), points(1_000_000_000), 1..6_i64, 1..30_i64, points(1_000_000_000)).prop_map(
        |(start, decay_per_day, approval, demote_after, promote_after, promote_accuracy)| Rates {
            start,
            decay_per_day,
            approval,
            custom_override: Points(-approval.0),
            demote_after,
            promote_after,
            promote_accuracy,
            promote_alone: false,
            act_from: Points::ACT,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(2_000), failure_persistence: None, ..ProptestConfig::default() })]

    /// Guard: the clamp, the floor, and that idle time below nought fades nothing, for any settings and any clock.
    #[test]
    fn the_arithmetic_holds_for_any_rates(rates in rates(), score in 0..=1_000_000_000_i64, idle in any::<i64>(), impact in -2_000_000_000..=0_i64, streak in 0..10_i64) {
        let now = 1_767_225_600_000_000_i64;
        let state = State { score: Points(score), streak, demoted: streak >= rates.demote_after, ..State::fresh(&rates, now.saturating_sub(idle)) };
        let faded = state.score_at(now, rates.decay_per_day);
        prop_assert!(faded <= state.score && faded >= Points::FLOOR.min(state.score));
        if idle <= 0 {
            prop_assert_eq!(faded, state.score);
        }
        let approved = state.after(&Step::Approved { confidence: None }, &rates, now);
        prop_assert!(approved.state.score >= faded && approved.state.score <= Points::ONE);
        prop_assert_eq!((approved.state.streak, approved.state.demoted), (0, false));
        let corrected = state.after(&Step::Overridden { impact: Points(impact), feeds_streak: true, confidence: None }, &rates, now);
        prop_assert!(corrected.state.score <= faded && corrected.state.score >= Points::ZERO);
        prop_assert_eq!(corrected.demoted, !state.demoted && streak + 1 >= rates.demote_after);
        // Taking an answer back at once leaves everything as it was, but for the time and the count of changes.
        for moved in [&approved, &corrected] {
            let verdict = Verdict {
                approved: std::ptr::eq(moved, &raw const approved),
                applied: Points(moved.state.score.0 - moved.previous.0),
                change: moved.state.changes,
                streak_before: state.streak,
                demoted_before: state.demoted,
                confidence: None,
            };
            let back = moved.state.after(&Step::TakenBack(verdict), &rates, now).state;
            prop_assert_eq!(State { changes: 0, promoting: false, ..back }, State { score: faded, updated_at: now, ..state });
        }
    }
}

fn cases(usual: u32) -> u32 {
    ProptestConfig::default().cases.max(256) / 256 * usual
}
