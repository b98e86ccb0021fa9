//! Grants: used once, for exactly what was approved, while they are good.

use deskmate_core::Code;
use deskmate_core::call::{Actor, Surface};
use deskmate_core::policy::Mode;
use deskmate_core::request::{self, Begun, New, State, StopReason};
use serde_json::json;
use testkit::{TestDesk, assert_code, both};

use super::support::{approve, as_agent, begin, code, decision, find, get, go, kinds, pass, pending, proposal, sound, stopped, submit};

both! {
    fn w25_a_grant_is_used_once(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        go(desk, &made.id);
        assert_code(&begin(desk, &made.id).unwrap_err(), Code::Conflict);
        assert!(get(desk, &owner, &made.id)["grant"]["used_at"].is_string());
    }

    fn w25_of_many_threads_one_uses_the_grant(desk: &TestDesk) {
        let owner = desk.claim();
        for _ in 0..3 {
            let made = pending(desk);
            approve(desk, &owner, &made.id).unwrap();
            let went: usize = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| {
                    let (own, id) = (desk.desk.clone(), made.id.clone());
                    let begun = desk.desk.db.write_blocking(move |tx| request::begin(&mut own.cx(tx, Actor::agent("code", false), Surface::Mcp), &id, None));
                    matches!(begun, Ok(Begun::Go(_)))
                })).collect();
                threads.into_iter().filter(|_| true).map(|thread| usize::from(thread.join().unwrap())).sum()
            });
            desk.seal();
            assert_eq!(went, 1);
        }
        sound(desk);
    }

    fn a_grant_is_for_its_agent_only(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        let id = made.id.clone();
        assert_code(&code(as_agent(desk, "other", move |cx| request::begin(cx, &id, None))), Code::NotFound);
        go(desk, &made.id);
    }

    fn a_grant_expires(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        pass(desk, 15 * 60 + 1);
        let error = begin(desk, &made.id).unwrap_err();
        assert_code(&error, Code::Conflict);
        assert!(error.message.contains("expired"), "{error}");
        let mut short = decision(Mode::Act);
        short.needs.grant_seconds = 30;
        let made = submit(desk, "code", &New { decision: short, ..proposal() });
        pass(desk, 31);
        assert_code(&begin(desk, &made.id).unwrap_err(), Code::Conflict);
    }

    fn a_pause_suspends_a_grant(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        desk.tamper("insert into pause (agent, paused_by, paused_at) values ('code', 'x', 1)");
        assert_code(&begin(desk, &made.id).unwrap_err(), Code::Forbidden);
        desk.tamper("delete from pause");
        go(desk, &made.id);
    }

    fn a_changed_target_sends_it_back_to_people(desk: &TestDesk) {
        let owner = desk.claim();
        let made = submit(desk, "code", &New { target: Some(json!({ "etag": 1 })), ..proposal() });
        approve(desk, &owner, &made.id).unwrap();
        let id = made.id.clone();
        let begun = as_agent(desk, "code", move |cx| request::begin(cx, &id, Some(&json!({ "etag": 2 })))).unwrap();
        assert!(matches!(begun, Begun::Stopped(stop) if stop.why == StopReason::TargetChanged));
        assert_eq!(find(desk, &made.id).state, State::Pending);
        approve(desk, &owner, &made.id).unwrap();
        let id = made.id.clone();
        let begun = as_agent(desk, "code", move |cx| request::begin(cx, &id, Some(&json!({ "etag": 1 })))).unwrap();
        assert!(matches!(begun, Begun::Go(_)));
        sound(desk);
    }

    fn a_tampered_grant_is_refused_and_told(desk: &TestDesk) {
        let owner = desk.claim();
        for sql in [
            "update act_grant set expires_at = expires_at + 1000000000000",
            "update act_grant set granted_at = granted_at - 1",
            "update act_grant set digest = (select r.digest from request r where r.id <> act_grant.request limit 1)",
        ] {
            pending(desk);
            let made = pending(desk);
            approve(desk, &owner, &made.id).unwrap();
            desk.tamper(sql);
            assert_eq!(stopped(desk, &made.id).why, StopReason::Tampered, "{sql}");
            assert_eq!(kinds(desk, &owner, 1), ["grant.refused"]);
            assert_eq!(find(desk, &made.id).state, State::Approved, "nothing is written over what somebody changed");
            assert_code(&begin(desk, &made.id).unwrap_err(), Code::Conflict);
            assert_ne!(kinds(desk, &owner, 1), ["grant.used"]);
            assert!(!desk.verify().sound);
            desk.tamper("delete from act_grant");
        }
    }

    fn a_used_grant_cannot_be_made_new(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        go(desk, &made.id);
        desk.tamper("update act_grant set used_at = null");
        desk.tamper("update request set state = 'approved', version = version - 1");
        assert_eq!(stopped(desk, &made.id).why, StopReason::Tampered);
        assert!(!desk.verify().sound);
    }

    fn a_forged_approval_lets_nothing_pass(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        desk.tamper("update request set state = 'approved', decided_by = 'p', decided_at = 5");
        desk.tamper("insert into act_grant (id, request, agent, digest, granted_at, expires_at) select 'g', id, requester, digest, 5, 9000000000000000 from request");
        assert_eq!(stopped(desk, &made.id).why, StopReason::Tampered);
        assert_eq!(kinds(desk, &owner, 1), ["grant.refused"]);
        assert!(!desk.verify().sound);
    }

    fn a_changed_act_does_not_run(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        desk.tamper("update request set sealed = sealed_key");
        assert_eq!(stopped(desk, &made.id).why, StopReason::Tampered);
    }

    fn a_request_that_was_changed_behind_the_desk_is_not_decided(desk: &TestDesk) {
        let owner = desk.claim();
        for sql in [
            "update request set quorum = 0",
            "update request set requester = 'other'",
            "update request set risk = 'low'",
            "update request set expires_at = expires_at + 1",
            "update request set decision = replace(decision, 'suggest', 'act')",
            "update request set title = 'Harmless'",
            "update request set sealed = sealed_key",
            "update request set sealed_key = sealed",
            "update request set kept = null",
        ] {
            let made = pending(desk);
            desk.tamper(sql);
            let refused = code(approve(desk, &owner, &made.id));
            assert_code(&refused, Code::Conflict);
            assert!(refused.message.contains("record"), "{sql}: {refused}");
            assert!(!desk.verify().sound, "{sql}");
            desk.tamper("delete from request");
        }
    }

    fn an_event_that_was_rewritten_with_its_grant_is_noticed(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        desk.tamper("update act_grant set expires_at = 9000000000000000");
        rewrite(desk, "grant.issued", |body| {
            let mut facts: serde_json::Value = serde_json::from_str(body).unwrap();
            facts["facts"]["expires_at"] = json!(9_000_000_000_000_000_i64);
            facts.to_string()
        });
        assert_eq!(stopped(desk, &made.id).why, StopReason::Tampered);
    }
}

/// Changes the sealed text of an event's row, as somebody with the file in hand could.
fn rewrite(desk: &TestDesk, kind: &'static str, change: fn(&str) -> String) {
    let done: deskmate_core::Result<()> = desk.desk.db.write_blocking(move |tx| {
        let row = tx.one("select seq, body from event where kind = $1 order by seq desc limit 1", deskmate_db::args![kind])?;
        let body = change(&row.get::<String>(1)?);
        tx.execute("update event set body = $2 where seq = $1", deskmate_db::args![row.get::<i64>(0)?, body])?;
        Ok(())
    });
    done.unwrap();
}
