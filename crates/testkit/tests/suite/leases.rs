//! Leases on both engines: one holder at a time, a fence that grows, and an end without a sign of life.

use std::time::Duration;

use deskmate_core::lease::{self, Lease};
use deskmate_core::{Code, Result};
use testkit::{TestDesk, assert_code, both, wait};

const TTL: i64 = 60_000_000;
const SUBJECT: &str = "job:one";

fn acquire(desk: &TestDesk, holder: &'static str) -> Option<Lease> {
    desk.act(move |cx| lease::acquire(cx.tx, SUBJECT, holder, TTL, cx.now())).unwrap()
}

fn renew(desk: &TestDesk, holder: &'static str, fence: i64) -> Result<Lease> {
    desk.act(move |cx| lease::renew(cx.tx, SUBJECT, holder, fence, None, cx.now()))
}

fn check(desk: &TestDesk, holder: &'static str, fence: Option<i64>) -> Result<Lease> {
    desk.act(move |cx| lease::check(cx.tx, SUBJECT, holder, fence, cx.now()))
}

fn current(desk: &TestDesk) -> Option<Lease> {
    desk.act(|cx| lease::current(cx.tx, SUBJECT, cx.now())).unwrap()
}

both! {
    fn one_holds_and_the_others_do_not(desk: &TestDesk) {
        assert_eq!(current(desk), None);
        let held = acquire(desk, "a").unwrap();
        assert_eq!((held.subject.as_str(), held.holder.as_str(), held.fence), (SUBJECT, "a", 1));
        assert_eq!(acquire(desk, "b"), None, "somebody else holds it");
        assert_eq!(acquire(desk, "a"), None, "holding is not holding twice");
        assert_eq!(current(desk), Some(held));
        assert!(desk.act(|cx| lease::acquire(cx.tx, "job:two", "b", TTL, cx.now())).unwrap().is_some(), "another subject is free");
    }

    fn of_many_at_once_one_wins(desk: &TestDesk) {
        for round in 1..=5_i64 {
            let won: Vec<Lease> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|number| {
                        let desk = desk.desk.clone();
                        scope.spawn(move || {
                            let take = move |cx: &mut deskmate_core::call::Cx<'_, '_>| lease::acquire(cx.tx, SUBJECT, &format!("w{number}"), TTL, cx.now());
                            wait(desk.act(deskmate_core::call::Surface::System, take)).unwrap()
                        })
                    })
                    .collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(won.len(), 1, "{won:?}");
            assert_eq!(won[0].fence, round, "each holding has its own fence");
            assert_eq!(current(desk).as_ref(), won.first());
            desk.world.pass(Duration::from_secs(61));
        }
    }

    fn a_sign_of_life_keeps_it(desk: &TestDesk) {
        let held = acquire(desk, "a").unwrap();
        for _ in 0..3 {
            desk.world.pass(Duration::from_secs(50));
            let renewed = renew(desk, "a", held.fence).unwrap();
            assert_eq!(renewed.fence, held.fence);
            assert!(renewed.expires_at > held.expires_at);
            assert_eq!(acquire(desk, "b"), None);
        }
        let longer = desk.act(move |cx| lease::renew(cx.tx, SUBJECT, "a", 1, Some(10 * TTL), cx.now())).unwrap();
        desk.world.pass(Duration::from_secs(500));
        assert_eq!(current(desk), Some(longer), "a longer time can be asked for");
        let again = renew(desk, "a", 1).unwrap();
        desk.world.pass(Duration::from_secs(500));
        assert_eq!(current(desk), Some(again), "and stays the lease's own");
    }

    fn without_a_sign_of_life_it_ends(desk: &TestDesk) {
        let old = acquire(desk, "a").unwrap();
        desk.world.pass(Duration::from_secs(61));
        assert_eq!(current(desk), None);
        assert_code(&renew(desk, "a", old.fence).unwrap_err(), Code::Conflict);
        assert_code(&check(desk, "a", Some(old.fence)).unwrap_err(), Code::Conflict);
        let new = acquire(desk, "b").unwrap();
        assert_eq!(new.fence, old.fence + 1);
        assert_code(&renew(desk, "a", old.fence).unwrap_err(), Code::Conflict);
        assert_code(&renew(desk, "a", new.fence).unwrap_err(), Code::Conflict);
        assert_eq!(renew(desk, "b", new.fence).unwrap().holder, "b");
    }

    fn the_same_holder_has_a_new_fence_each_time(desk: &TestDesk) {
        let old = acquire(desk, "a").unwrap();
        desk.world.pass(Duration::from_secs(61));
        let new = acquire(desk, "a").unwrap();
        assert_eq!(new.fence, old.fence + 1);
        assert_code(&renew(desk, "a", old.fence).unwrap_err(), Code::Conflict);
        assert_code(&check(desk, "a", Some(old.fence)).unwrap_err(), Code::Conflict);
        assert_eq!(check(desk, "a", Some(new.fence)).unwrap(), new);
    }

    fn only_the_holder_passes_the_check(desk: &TestDesk) {
        assert_code(&check(desk, "a", None).unwrap_err(), Code::Conflict);
        let held = acquire(desk, "a").unwrap();
        assert_eq!(check(desk, "a", None).unwrap(), held);
        assert_eq!(check(desk, "a", Some(1)).unwrap(), held);
        for (holder, fence) in [("b", None), ("b", Some(1)), ("a", Some(0)), ("a", Some(2))] {
            assert_code(&check(desk, holder, fence).unwrap_err(), Code::Conflict);
        }
    }

    fn released_it_is_free_and_the_fence_still_grows(desk: &TestDesk) {
        let held = acquire(desk, "a").unwrap();
        desk.act(|cx| lease::release(cx.tx, SUBJECT, cx.now())).unwrap();
        assert_eq!(current(desk), None);
        assert_code(&renew(desk, "a", held.fence).unwrap_err(), Code::Conflict);
        // In one transaction there is one moment: letting go and taking it again is possible within it.
        let next = desk.act(|cx| {
            assert_eq!(lease::acquire(cx.tx, SUBJECT, "b", TTL, cx.now())?.map(|lease| lease.fence), Some(2));
            lease::release(cx.tx, SUBJECT, cx.now())?;
            lease::acquire(cx.tx, SUBJECT, "c", TTL, cx.now())
        });
        assert_eq!(next.unwrap().map(|lease| (lease.holder, lease.fence)), Some(("c".to_owned(), 3)));
        desk.act(|cx| lease::release(cx.tx, "job:never", cx.now())).unwrap();
    }

    fn what_is_forgotten_begins_anew(desk: &TestDesk) {
        acquire(desk, "a").unwrap();
        desk.act(|cx| lease::forget(cx.tx, SUBJECT)).unwrap();
        assert_eq!(current(desk), None);
        assert_eq!(acquire(desk, "b").unwrap().fence, 1);
    }

    fn a_clock_far_from_the_databases_is_refused(desk: &TestDesk) {
        let check = |ahead: i64| {
            let now = jiff::Timestamp::now().as_microsecond() + ahead;
            desk.desk.db.read_blocking(move |tx| lease::check_clock(tx, now))
        };
        assert!(check(0).is_ok() && check(5_000_000).is_ok());
        for ahead in [60_000_000, -60_000_000] {
            let refused = check(ahead);
            // With one server there is one clock.
            assert_eq!(refused.is_err(), desk.desk.db.engine() == deskmate_db::Engine::Postgres, "{refused:?}");
        }
    }
}
