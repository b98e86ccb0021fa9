//! Limits on both engines: windows that hold to the last act, days, probers, and the kill switch. Each test says in its
//! first line which guard it fails without.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use deskmate_core::call::{Cx, Surface};
use deskmate_core::meter::{self, Denial, Full, Room, Taken, Why};
use deskmate_core::policy::Settings;
use deskmate_core::policy::settings::AuthoritySettings;
use deskmate_core::{Code, Result};
use deskmate_db::args;
use proptest::prelude::*;
use serde_json::json;
use testkit::{Caller, TestDesk, assert_code, both, wait};

const DOMAIN: &str = "crm.deals";
const HOUR: Duration = Duration::from_hours(1);

fn caps(change: impl FnOnce(&mut AuthoritySettings)) -> AuthoritySettings {
    let mut authority = Settings::default().authority;
    change(&mut authority);
    authority
}

fn take_in(cx: &mut Cx<'_, '_>, agent: &str, domain: &str, authority: &AuthoritySettings, cost: i64) -> Result<Taken> {
    let gauge = meter::gauge(cx, agent, domain)?;
    meter::take_from(cx, gauge, authority, cost)
}

fn take(desk: &TestDesk, agent: &'static str, domain: &'static str, authority: &AuthoritySettings) -> Taken {
    let authority = authority.clone();
    desk.act(move |cx| take_in(cx, agent, domain, &authority, 0)).unwrap()
}

fn full(taken: Taken) -> Full {
    match taken {
        Taken::Full(full) => full,
        Taken::Room(room) => panic!("there was room: {room:?}"),
    }
}

/// How many uses are kept, in their table and in the meter itself: as many in the domain as in all together.
fn uses(desk: &TestDesk) -> i64 {
    const RECENT: &str = "select coalesce(sum(length(recent)) / 8, 0) from meter where scope = $1";
    uses_by(desk, RECENT) + uses_in_table(desk)
}

fn uses_in_table(desk: &TestDesk) -> i64 {
    uses_by(desk, "select count(*) from meter_use where scope = $1")
}

fn uses_by(desk: &TestDesk, sql: &'static str) -> i64 {
    let count = |scope: &'static str| desk.act(move |cx| Ok(cx.tx.one(sql, args![scope])?.get::<i64>(0)?)).unwrap();
    assert_eq!(count(""), count(DOMAIN));
    count(DOMAIN)
}

both! {
    fn w26_fifty_pass_and_the_next_is_refused(desk: &TestDesk) {
        // Guard: the cap in `full`, counted after this call: 49 to 0, not 50 to 1.
        for remaining in (0..50).rev() {
            let taken = desk.act(|cx| meter::take(cx, "code", DOMAIN, 0)).unwrap();
            assert_eq!(taken, Taken::Room(Room { remaining, cap: 50 }));
        }
        let refused = full(desk.act(|cx| meter::take(cx, "code", DOMAIN, 0)).unwrap());
        assert_eq!((refused.why, refused.cap, refused.used), (Why::Domain, 50, 50));
        assert!(refused.retry_after_ms > 3_590_000 && refused.retry_after_ms <= 3_600_000, "{refused:?}");
        assert_code(&refused.error(), Code::Limited);
        let other = desk.act(|cx| meter::take(cx, "code", "other", 0)).unwrap();
        assert_eq!(other, Taken::Room(Room { remaining: 49, cap: 50 }), "another domain has its own room");
        let other = desk.act(|cx| meter::take(cx, "another", DOMAIN, 0)).unwrap();
        assert_eq!(other, Taken::Room(Room { remaining: 49, cap: 50 }), "so has another agent");
        desk.world.pass(Duration::from_mins(61));
        let again = desk.act(|cx| meter::take(cx, "code", DOMAIN, 0)).unwrap();
        assert_eq!(again, Taken::Room(Room { remaining: 49, cap: 50 }));
    }

    fn w26_refused_calls_take_nothing_and_the_time_that_is_told_is_true(desk: &TestDesk) {
        // Guard: nothing is written where there is no room, and `room_at` names the use that leaves first.
        let three = caps(|caps| caps.volume_cap = 3);
        for _ in 0..3 {
            take(desk, "code", DOMAIN, &three);
            desk.world.pass(Duration::from_mins(10));
        }
        for _ in 0..20 {
            full(take(desk, "code", DOMAIN, &three));
        }
        assert_eq!(uses(desk), 3);
        let refused = full(take(desk, "code", DOMAIN, &three));
        assert!(refused.retry_after_ms <= 1_800_000 && refused.retry_after_ms > 1_799_000, "{refused:?}");
        desk.world.pass(Duration::from_millis(refused.retry_after_ms) - Duration::from_millis(2));
        full(take(desk, "code", DOMAIN, &three));
        desk.world.pass(Duration::from_millis(3));
        assert_eq!(take(desk, "code", DOMAIN, &three), Taken::Room(Room { remaining: 0, cap: 3 }));
        full(take(desk, "code", DOMAIN, &three));
    }

    fn the_window_rolls(desk: &TestDesk) {
        // Guard: single uses leave the window, it does not empty at once.
        let caps = caps(|caps| caps.volume_cap = 6);
        for _ in 0..6 {
            take(desk, "code", DOMAIN, &caps);
            desk.world.pass(Duration::from_mins(10));
        }
        // The first use is an hour old now, and every ten minutes one more is.
        for _ in 0..30 {
            assert_eq!(take(desk, "code", DOMAIN, &caps), Taken::Room(Room { remaining: 0, cap: 6 }));
            full(take(desk, "code", DOMAIN, &caps));
            desk.world.pass(Duration::from_mins(10));
        }
        desk.world.pass(Duration::from_mins(25));
        assert_eq!(take(desk, "code", DOMAIN, &caps), Taken::Room(Room { remaining: 2, cap: 6 }));
    }

    fn any_cap_is_exact_whenever_it_changes(desk: &TestDesk) {
        // Guard: every use within the window is known, so that a cap can be lowered and raised.
        let (low, high) = (caps(|caps| caps.volume_cap = 5), caps(|caps| caps.volume_cap = 200));
        for _ in 0..100 {
            take(desk, "code", DOMAIN, &high);
            desk.world.pass(Duration::from_secs(10));
        }
        let refused = full(take(desk, "code", DOMAIN, &low));
        assert_eq!((refused.cap, refused.used), (5, 100));
        // The fifth of the newest was about 50 seconds ago and must leave.
        assert!((3_540_000..3_560_000).contains(&refused.retry_after_ms), "{refused:?}");
        assert_eq!(take(desk, "code", DOMAIN, &high), Taken::Room(Room { remaining: 99, cap: 200 }));
        let none = caps(|caps| caps.volume_cap = 0);
        assert_eq!(full(take(desk, "code", DOMAIN, &none)).cap, 0);
    }

    fn one_cap_covers_all_domains(desk: &TestDesk) {
        // Guard: the meter of all domains; a new name gives no fresh room (part of W13).
        let caps = caps(|caps| caps.volume_cap_per_agent = Some(3));
        for (domain, remaining) in [("a", 2), ("b", 1), ("c", 0)] {
            assert_eq!(take(desk, "code", domain, &caps), Taken::Room(Room { remaining, cap: 50 }), "what is left is what all domains leave");
        }
        let refused = full(take(desk, "code", "d", &caps));
        assert_eq!((refused.why, refused.cap, refused.used), (Why::Agent, 3, 3));
        desk.world.pass(HOUR);
        assert!(matches!(take(desk, "code", "d", &caps), Taken::Room(_)));
    }

    fn a_day_has_its_budget_of_calls_and_cost(desk: &TestDesk) {
        // Guard: the day's counters in the meter of all domains.
        let calls = caps(|caps| caps.calls_per_day = Some(4));
        for remaining in (0..4).rev() {
            desk.world.pass(HOUR);
            assert_eq!(take(desk, "code", DOMAIN, &calls), Taken::Room(Room { remaining, cap: 50 }), "what is left is what the day leaves");
        }
        desk.world.pass(HOUR);
        let refused = full(take(desk, "code", "other", &calls));
        assert_eq!((refused.why, refused.used), (Why::Calls, 4));
        assert!(refused.retry_after_ms <= 19 * 3_600_000, "until midnight: {refused:?}");
        desk.world.pass(Duration::from_millis(refused.retry_after_ms));
        assert!(matches!(take(desk, "code", DOMAIN, &calls), Taken::Room(_)), "a new day");

        let cost = caps(|caps| caps.cost_per_day = Some(1.5));
        let pay = move |desk: &TestDesk, millionths: i64| {
            let cost = cost.clone();
            desk.act(move |cx| take_in(cx, "payer", DOMAIN, &cost, millionths)).unwrap()
        };
        assert!(matches!(pay(desk, 1_000_000), Taken::Room(_)));
        assert_eq!(full(pay(desk, 500_001)).why, Why::Cost, "what would exceed it is refused");
        assert!(matches!(pay(desk, 500_000), Taken::Room(_)), "what fits passes");
        assert_eq!(full(pay(desk, 1)).used, 1_500_000);
        assert!(matches!(pay(desk, -5), Taken::Room(_)), "nothing costs less than nothing");
        assert_eq!(full(pay(desk, 1)).used, 1_500_000, "so that nothing is given back");
    }

    fn a_clock_that_steps_back_gives_no_room(desk: &TestDesk) {
        // Guard: the window's own time never goes back, and a day that was is not begun again.
        let caps = caps(|caps| (caps.volume_cap, caps.calls_per_day) = (3, Some(5)));
        desk.world.pass(Duration::from_hours(30));
        for _ in 0..3 {
            take(desk, "code", DOMAIN, &caps);
        }
        for back in [Duration::from_secs(1), Duration::from_mins(4), Duration::from_hours(2), Duration::from_hours(5)] {
            desk.world.step_back(back);
            assert_eq!(full(take(desk, "code", DOMAIN, &caps)).why, Why::Domain, "{back:?} back");
        }
        // The window goes on in its own time, so that nobody waits for the hours that come again.
        desk.act(|cx| meter::prune_idle(cx, ("", ""), 200)).unwrap();
        desk.world.pass(Duration::from_mins(61));
        for _ in 0..2 {
            assert!(matches!(take(desk, "code", DOMAIN, &caps), Taken::Room(_)));
        }
        assert_eq!(full(take(desk, "code", DOMAIN, &caps)).why, Why::Calls, "the calls of the day were not forgotten");
        desk.world.step_back(Duration::from_hours(24 * 400));
        assert_eq!(full(take(desk, "code", "other", &caps)).why, Why::Calls);
        let free = self::caps(|_| {});
        assert!(matches!(take(desk, "code", "other", &free), Taken::Room(_)));
        desk.world.pass(Duration::from_hours(25));
        assert!(matches!(take(desk, "code", "other", &caps), Taken::Room(_)), "and a clock that was years ahead holds nobody for years");
    }

    fn counters_tell_what_was_used(desk: &TestDesk) {
        // Guard: `gauge` and `counters` count before this act.
        let caps = caps(|caps| caps.volume_cap = 1_000);
        for _ in 0..20 {
            desk.world.pass(Duration::from_secs(9));
            let caps = caps.clone();
            desk.act(move |cx| take_in(cx, "code", DOMAIN, &caps, 7)).unwrap();
        }
        take(desk, "code", "other", &caps);
        desk.act(|cx| meter::denied(cx, "code", DOMAIN)).unwrap();
        let counters = desk.act(|cx| meter::counters(cx, "code", DOMAIN)).unwrap();
        assert_eq!((counters.calls_minute, counters.calls_hour, counters.calls_day), (7, 20, 20));
        assert_eq!((counters.calls_hour_all, counters.calls_day_all, counters.cost_day, counters.denied_day), (21, 21, 140, 1));
        desk.world.pass(Duration::from_mins(2));
        assert_eq!(desk.act(|cx| meter::counters(cx, "code", DOMAIN)).unwrap().calls_minute, 0);
        desk.world.pass(Duration::from_hours(24));
        let counters = desk.act(|cx| meter::counters(cx, "code", DOMAIN)).unwrap();
        assert_eq!((counters.calls_hour, counters.calls_day, counters.cost_day, counters.denied_day), (0, 0, 0, 0));
    }

    fn what_has_left_the_window_is_deleted_in_small_steps(desk: &TestDesk) {
        // Guard: `prune`. Without it every use would stay for ever.
        let caps = caps(|caps| caps.volume_cap = 10_000);
        let fill = |count: i64| {
            let caps = caps.clone();
            desk.act(move |cx| (0..count).try_for_each(|_| take_in(cx, "code", DOMAIN, &caps, 0).map(drop))).unwrap();
        };
        fill(300);
        let before = uses_in_table(desk);
        assert!((300 - 64..=300 - 32).contains(&before), "the last ones lie in the meter: {before}");
        assert_eq!(uses(desk), 300);
        desk.world.pass(HOUR * 2);
        fill(32);
        assert!((before - 64..before).contains(&uses_in_table(desk)), "at most 64 at once: {}", uses_in_table(desk));
        fill(300);
        assert!(uses(desk) <= 332, "it catches up: {}", uses(desk));
        assert_eq!(desk.act(|cx| meter::counters(cx, "code", DOMAIN)).unwrap().calls_hour, 332);
        desk.world.pass(HOUR * 2);
        let before = uses_in_table(desk);
        desk.act(|cx| meter::prune_idle(cx, ("", ""), 200)).unwrap();
        assert_eq!(uses(desk), before - 200, "those of an idle agent go by the clock, a slice at a time");
        desk.act(|cx| meter::prune_idle(cx, ("", ""), 200)).unwrap();
        assert_eq!(uses(desk), 0);
        assert!(matches!(take(desk, "code", DOMAIN, &caps), Taken::Room(Room { remaining: 9_999, .. })));
    }

    fn w15_denied_attempts_count_and_slow_the_prober_down(desk: &TestDesk) {
        // Guard: `denied` and `held_until`. Without them probing would be free and unlimited.
        let deny = |desk: &TestDesk| desk.act(|cx| meter::denied(cx, "prober", DOMAIN)).unwrap().hold;
        for _ in 0..9 {
            assert_eq!(deny(desk), None);
        }
        let first = deny(desk).expect("the tenth attempt within ten minutes");
        assert_eq!((first.why, first.cap, first.used, first.retry_after_ms), (Why::Probing, 10, 10, 60_000));
        let held = desk.act(|cx| meter::gauge(cx, "prober", "another.domain")).unwrap().held.expect("in every domain");
        assert!(held.retry_after_ms <= 60_000);
        assert_eq!(full(desk.act(|cx| meter::take(cx, "prober", DOMAIN, 0)).unwrap()).why, Why::Probing, "and good acts wait too");
        assert!(desk.act(|cx| meter::gauge(cx, "honest", DOMAIN)).unwrap().held.is_none());
        assert_eq!(desk.act(|cx| meter::counters(cx, "prober", DOMAIN)).unwrap().denied_day, 10);
        desk.world.pass(Duration::from_secs(61));
        assert!(matches!(desk.act(|cx| meter::take(cx, "prober", DOMAIN, 0)).unwrap(), Taken::Room(_)), "after that it may try again");
        let mut waits = Vec::new();
        for _ in 0..6 {
            let held = deny(desk).expect("one more and it waits longer");
            waits.push(held.retry_after_ms / 60_000);
            // Ten denied attempts are needed again once the earlier ones are ten minutes old.
            desk.world.pass(Duration::from_millis(held.retry_after_ms));
            for _ in 0..9 {
                desk.act(|cx| meter::denied(cx, "prober", DOMAIN)).unwrap();
                if desk.act(|cx| meter::gauge(cx, "prober", DOMAIN)).unwrap().held.is_some() {
                    break;
                }
            }
            desk.world.pass(HOUR);
            for _ in 0..9 {
                deny(desk);
            }
        }
        assert!(waits.is_sorted() && waits.last() == Some(&60), "{waits:?}");
        desk.world.pass(Duration::from_hours(25));
        for _ in 0..9 {
            assert_eq!(deny(desk), None);
        }
        assert_eq!(deny(desk).unwrap().retry_after_ms, 60_000, "a day without one is a new beginning");
    }

    fn nine_denied_attempts_in_ten_minutes_are_forgiven_for_ever(desk: &TestDesk) {
        // Guard: times older than ten minutes do not count.
        for _ in 0..10 {
            for _ in 0..9 {
                assert_eq!(desk.act(|cx| meter::denied(cx, "clumsy", DOMAIN)).unwrap(), Denial { is_news: true, hold: None });
            }
            desk.world.pass(Duration::from_mins(10));
        }
    }

    fn who_is_paused_does_not_probe(desk: &TestDesk) {
        // Guard: a paused agent's attempts count, and do not hold it beyond its pause.
        let owner = desk.claim();
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        for _ in 0..30 {
            assert_eq!(desk.act(|cx| meter::denied(cx, "code", DOMAIN)).unwrap(), Denial { is_news: false, hold: None });
        }
        desk.call(&owner, "desk_resume", json!({ "agent": "code" })).unwrap();
        let gauge = desk.act(|cx| meter::gauge(cx, "code", DOMAIN)).unwrap();
        assert_eq!((gauge.held, gauge.counters.denied_day), (None, 30));
    }

    fn what_a_paused_agent_tries_is_counted_and_fills_nothing(desk: &TestDesk) {
        // Guard: `is_news` in `request::denied`, and the plain refusal of handoffs.
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        let propose = json!({ "domain": DOMAIN, "action": "update", "target": "deal/7", "proposed_change": "{\"a\":1}", "confidence": 0.9, "reasoning": "r", "idempotency_key": "once" });
        let handoff = json!({ "domain": DOMAIN, "reason": "r", "confidence": 0.5, "attempted_actions": "[]", "context": "c" });
        let approval = json!({ "agentId": "code", "action": "deploy", "description": "d", "approvers": ["Owner"] });
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        let events = || desk.act(|cx| Ok(cx.tx.optional("select count(*) from event", args![])?.map(|row| row.get::<i64>(0)).transpose()?)).unwrap();
        let before = events();
        for _ in 0..20 {
            let denied = desk.call(&code, "cowork_propose", propose.clone()).unwrap();
            assert!(denied["mode"] == "deny" && denied.to_string().contains("paused"), "{denied}");
            assert_code(&desk.refused(&code, "cowork_handoff", handoff.clone()), Code::Forbidden);
            let denied = desk.call(&code, "agents_request_approval", approval.clone()).unwrap();
            assert!(denied.to_string().contains("paused"), "{denied}");
        }
        assert_eq!(events(), before, "nothing of it is told");
        assert_eq!(desk.act(|cx| meter::gauge(cx, "code", DOMAIN)).unwrap().counters.denied_day, 40);
        desk.call(&owner, "desk_resume", json!({ "agent": "code" })).unwrap();
        let made = desk.call(&code, "cowork_propose", propose).unwrap();
        assert!(made["proposal_id"].is_string(), "an answer that only counted is not kept under its key: {made}");
    }

    fn w26_many_clients_never_exceed_a_cap_together(desk: &TestDesk) {
        // Guard: the count and the use are in one serialised transaction.
        for (per_agent, cap) in [(None, 40_u32), (Some(25_u32), 1_000)] {
            let authority = caps(|caps| (caps.volume_cap, caps.volume_cap_per_agent) = (cap, per_agent));
            let passed = AtomicI64::new(0);
            let remaining = std::sync::Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for thread in 0..8 {
                    let (desk, authority, passed, remaining) = (desk.desk.clone(), &authority, &passed, &remaining);
                    scope.spawn(move || {
                        for number in 0..10 {
                            let authority = authority.clone();
                            let domain = if authority.volume_cap_per_agent.is_some() { ["a", "b", "c"][(thread + number) % 3] } else { DOMAIN };
                            let taken = wait(desk.act(Surface::System, move |cx| take_in(cx, "code", domain, &authority, 0))).unwrap();
                            if let Taken::Room(room) = taken {
                                passed.fetch_add(1, Ordering::SeqCst);
                                remaining.lock().unwrap().push(room.remaining);
                            }
                        }
                    });
                }
            });
            let expected = per_agent.map_or(i64::from(cap), i64::from);
            assert_eq!(passed.load(Ordering::SeqCst), expected);
            if per_agent.is_none() {
                let mut remaining = remaining.into_inner().unwrap();
                remaining.sort_unstable();
                assert_eq!(remaining, (0..expected).collect::<Vec<_>>(), "each was told another number");
            }
            desk.world.pass(HOUR * 2);
        }
    }

    fn a_pause_denies_at_once_and_needs_people(desk: &TestDesk) {
        // Guard: the authorisation rows of pausing and resuming, and the query of `paused`.
        let paused = |desk: &TestDesk, agent: &'static str| desk.act(move |cx| meter::paused(cx, agent)).unwrap();
        let owner = desk.claim();
        let agent = desk.register(&owner, "code");
        assert_code(&desk.refused(&agent, "desk_pause", json!({ "agent": "other" })), Code::Forbidden);
        assert!(!paused(desk, "code"));
        let answer = desk.call(&owner, "desk_pause", json!({ "agent": "code", "reason": "it runs wild" })).unwrap();
        assert_eq!(answer, json!({ "agent": "code", "paused": true, "changed": true }));
        assert!(paused(desk, "code") && !paused(desk, "other"));
        assert_code(&desk.refused(&agent, "desk_resume", json!({ "agent": "code" })), Code::Forbidden);
        assert_eq!(desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap()["changed"], false);
        desk.call(&owner, "desk_pause", json!({ "all": true })).unwrap();
        assert!(paused(desk, "other"));
        let listed = desk.call(&owner, "desk_pause_list", json!({})).unwrap();
        let agents: Vec<_> = listed["items"].as_array().unwrap().iter().map(|row| row["agent"].as_str().unwrap()).collect();
        assert_eq!(agents, ["*", "code"]);
        let answer = desk.call(&owner, "desk_resume", json!({ "agent": "code" })).unwrap();
        assert_eq!(answer, json!({ "agent": "code", "paused": true, "changed": true }), "all are still paused");
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        desk.call(&owner, "desk_resume", json!({ "all": true })).unwrap();
        assert!(paused(desk, "code") && !paused(desk, "other"), "what was paused by name stays");
        for wrong in [json!({}), json!({ "agent": "a", "all": true }), json!({ "agent": "*" }), json!({ "agent": "" })] {
            assert_code(&desk.refused(&owner, "desk_pause", wrong), Code::Invalid);
        }
        assert!(desk.verify().sound);
        let told = desk.call(&agent, "desk_record_list", json!({ "kind": "pause.set" })).unwrap();
        assert_eq!(told["events"].as_array().unwrap().len(), 2, "the agent can read why, and that all were paused is not its own");
    }

    fn people_see_what_an_agent_used_up(desk: &TestDesk) {
        // Guard: the operation that shows meters, and that it is for people.
        let owner = desk.claim();
        let document = "authority: { volume_cap_per_agent: 9, cost_per_day: 4 }\ndomains: { b: { authority: { volume_cap: 7, calls_per_day: 20 } } }";
        desk.call(&owner, "desk_policy_apply", json!({ "document": document })).unwrap();
        for domain in ["b", "a", "b"] {
            let taken = desk.act(move |cx| meter::take(cx, "code", domain, 500_000)).unwrap();
            assert!(matches!(taken, Taken::Room(_)), "{taken:?}");
        }
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        let used = desk.call(&owner, "desk_meter_get", json!({ "agent": "code" })).unwrap();
        assert_eq!((&used["paused"], &used["acts_hour"], &used["acts_day"], &used["cost_day"]), (&json!(true), &json!(3), &json!(3), &json!(1.5)));
        let a = json!({ "domain": "a", "acts_hour": 1, "acts_hour_max": 50, "acts_day": 1, "acts_hour_all_max": 9, "cost_day_all_max": 4.0 });
        let b = json!({ "domain": "b", "acts_hour": 2, "acts_hour_max": 7, "acts_day": 2, "acts_hour_all_max": 9, "acts_day_all_max": 20, "cost_day_all_max": 4.0 });
        assert_eq!(used["domains"], json!([a, b]));
        let first = desk.call(&owner, "desk_meter_get", json!({ "agent": "code", "limit": 1 })).unwrap();
        let second = desk.call(&owner, "desk_meter_get", json!({ "agent": "code", "limit": 1, "cursor": first["next_cursor"] })).unwrap();
        assert_eq!((&first["domains"][0]["domain"], &second["domains"][0]["domain"], second.get("next_cursor")), (&json!("a"), &json!("b"), None));
        desk.world.pass(HOUR);
        assert_eq!(desk.call(&owner, "desk_meter_get", json!({ "agent": "code" })).unwrap()["acts_hour"], 0);
        assert_eq!(desk.call(&owner, "desk_meter_get", json!({ "agent": "nobody" })).unwrap()["domains"], json!([]));
    }

    fn pausing_takes_a_token_and_resuming_takes_the_person(desk: &TestDesk) {
        // Guard: Access::Person for pausing, Access::Present for lifting.
        let owner = desk.claim();
        let token = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["desk"] })).unwrap();
        let script = Caller::Secret(token["token"].as_str().unwrap().to_owned());
        desk.call(&script, "desk_pause", json!({ "all": true })).unwrap();
        assert_code(&desk.refused(&script, "desk_resume", json!({ "all": true })), Code::Forbidden);
        desk.call(&owner, "desk_resume", json!({ "all": true })).unwrap();
        assert!(!desk.act(|cx| meter::paused(cx, "code")).unwrap());
    }

    fn a_pause_that_was_lifted_behind_the_desk_is_found(desk: &TestDesk) {
        // Guard: the projection of pauses in the verification.
        let owner = desk.claim();
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        assert!(desk.verify().sound);
        desk.tamper("delete from pause where agent = 'code'");
        assert!(!desk.verify().sound);
    }
}

/// What a window must allow, by the list of all that passed.
struct Model {
    passed: Vec<(i64, &'static str)>,
}

impl Model {
    fn used(&self, now: i64, domain: Option<&str>) -> i64 {
        let fits = |(at, of): &&(i64, &'static str)| *at > now - 3_600_000_000 && domain.is_none_or(|domain| *of == domain);
        i64::try_from(self.passed.iter().filter(fits).count()).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Guard: the search for the oldest use in the window, for any rhythm, any change of caps and any deleting.
    #[test]
    fn the_window_is_what_a_list_of_uses_says(steps in prop::collection::vec((0..3_usize, 0..1_500_u64, 0..12_u32, prop::option::of(0..20_u32)), 1..120)) {
        let desk = TestDesk::new(testkit::Backend::Sqlite);
        let mut model = Model { passed: Vec::new() };
        for (domain, seconds, cap, per_agent) in steps {
            let domain = ["a", "b", "c"][domain];
            desk.world.pass(Duration::from_secs(seconds));
            let authority = caps(|caps| (caps.volume_cap, caps.volume_cap_per_agent) = (cap, per_agent));
            let (now, taken) = desk.act(move |cx| Ok((cx.now(), take_in(cx, "code", domain, &authority, 0)?))).unwrap();
            let (used, all) = (model.used(now, Some(domain)), model.used(now, None));
            let fits = used < i64::from(cap) && per_agent.is_none_or(|cap| all < i64::from(cap));
            match taken {
                Taken::Room(room) => {
                    prop_assert!(fits);
                    let of_all = per_agent.map_or(i64::MAX, |cap| i64::from(cap) - all - 1);
                    prop_assert_eq!(room.remaining, of_all.min(i64::from(cap) - used - 1));
                    model.passed.push((now, domain));
                }
                Taken::Full(full) => {
                    prop_assert!(!fits);
                    prop_assert_eq!(full.used, if full.why == Why::Domain { used } else { all });
                }
            }
        }
    }
}
