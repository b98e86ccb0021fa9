//! How connections begin and end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::peer::{Kind, call, peer, until};
use crate::upstream::{CallContext, Error, Pool, State};

#[tokio::test]
async fn what_never_starts_is_given_up_with_a_reason() {
    for (kind, says) in [(Kind::Gone, "closed"), (Kind::Mute, "within"), (Kind::Babbling, "I am no server")] {
        let (mut spec, seen) = peer(kind);
        (spec.bounds.backoff, spec.bounds.failures, spec.bounds.start) = (Duration::from_millis(1), 3, Duration::from_millis(100));
        let pool = Pool::new();
        for _ in 0..3 {
            let Err(error) = pool.get(&spec, "code").await else { panic!("it started") };
            assert!(matches!(error, Error::NotStarted { .. }) && error.was_never_sent() && error.to_string().contains(says), "{error}");
        }
        let opened = seen.opened();
        let Err(error) = pool.get(&spec, "code").await else { panic!("it started") };
        assert!(matches!(error, Error::GivenUp { failures: 3, .. }) && error.to_string().contains(says) && error.hint().is_some(), "{error}");
        assert_eq!(seen.opened(), opened, "it is left alone");
        let upstream = pool.slot(&spec, "code").unwrap();
        assert!(matches!(upstream.status().state, State::GivenUp { .. }));
        upstream.retry();
        assert!(matches!(pool.get(&spec, "code").await, Err(Error::NotStarted { .. })), "until somebody says so");
    }
}

#[tokio::test]
async fn failures_are_followed_by_longer_pauses() {
    let (mut spec, seen) = peer(Kind::Gone);
    spec.bounds.backoff = Duration::from_secs(2);
    let pool = Pool::new();
    assert!(matches!(pool.get(&spec, "code").await, Err(Error::NotStarted { .. })));
    let opened = seen.opened();
    let Err(Error::Backoff { again, .. }) = pool.get(&spec, "code").await else { panic!("no pause") };
    assert!(again > Duration::from_secs(1) && again <= Duration::from_secs(2), "{again:?}");
    assert_eq!(seen.opened(), opened);
    assert!(matches!(pool.statuses()[0].state, State::Backoff { .. }));
}

#[tokio::test]
async fn each_agent_has_its_own_connection_unless_it_is_shared() {
    let (mut spec, seen) = peer(Kind::Legacy);
    let pool = Pool::new();
    let one = pool.get(&spec, "one").await.unwrap();
    let again = pool.get(&spec, "one").await.unwrap();
    let two = pool.get(&spec, "two").await.unwrap();
    assert!(Arc::ptr_eq(&one, &again) && !Arc::ptr_eq(&one, &two));
    assert_eq!(seen.open(), 2);
    spec.shared = true;
    let (three, four) = (pool.get(&spec, "one").await.unwrap(), pool.get(&spec, "two").await.unwrap());
    assert!(Arc::ptr_eq(&three, &four));
    assert_eq!(seen.opened(), 3);
    let context = CallContext::default();
    let many = futures_util::future::join_all((0..20).map(|_| three.call_tool_once(call("echo"), &context))).await;
    assert!(many.into_iter().all(|done| done.is_ok()), "at the same time");
}

#[tokio::test]
async fn a_connection_is_made_once_for_all_who_wait_for_it() {
    let (spec, seen) = peer(Kind::Modern);
    let pool = Pool::new();
    let all = futures_util::future::join_all((0..10).map(|_| pool.get(&spec, "code"))).await;
    assert!(all.into_iter().all(|got| got.is_ok()) && seen.opened() == 1);
}

/// No mount is back.
fn nobody() -> std::future::Ready<BTreeSet<String>> {
    std::future::ready(BTreeSet::new())
}

#[tokio::test]
async fn what_is_under_way_at_a_mount_that_is_back_already_ends_first() {
    let (spec, seen) = peer(Kind::Legacy);
    let pool = Pool::new();
    for (number, is_back) in [true, false].into_iter().enumerate() {
        let gone = pool.get(&spec, "code").await.unwrap();
        // It is found that the mount was taken away. By now it is back, and somebody calls over what it had before.
        let called = Arc::clone(&gone);
        let under_way = tokio::spawn(async move { called.call_tool_once(call("steps"), &CallContext::default()).await });
        until("it is under way", || seen.count("tools/call") == number + 1).await;
        let back = async {
            assert!(pool.find("peer", "code").is_none(), "nobody begins anything over it any more");
            if is_back { [spec.name.clone()].into() } else { BTreeSet::new() }
        };
        pool.remove(&[Arc::clone(&gone)], back).await;
        let ended = under_way.await.unwrap();
        assert_eq!(ended.is_ok(), is_back, "{ended:?}");
        until("it ends", || seen.open() == 0).await;
        assert!(matches!(gone.status().state, State::Stopped));
    }
}

#[tokio::test]
async fn a_changed_spec_and_a_removed_mount_end_what_was_there() {
    let (mut spec, seen) = peer(Kind::Legacy);
    let pool = Pool::new();
    let old = pool.get(&spec, "code").await.unwrap();
    spec.hidden.push("rotated-secret".to_owned());
    let new = pool.get(&spec, "code").await.unwrap();
    assert!(!Arc::ptr_eq(&old, &new));
    until("the old one ends", || seen.open() == 1).await;
    let error = old.call_tool_once(call("echo"), &CallContext::default()).await.unwrap_err();
    assert!(matches!(error, Error::Stopped { .. }), "{error}");
    assert!(Arc::ptr_eq(&pool.find("peer", "code").unwrap(), &new));
    pool.remove(&[old], nobody()).await;
    assert_eq!((pool.of_mount("peer").len(), seen.open()), (1, 1), "what took its place stays");
    pool.remove(&[Arc::clone(&new)], nobody()).await;
    until("the new one ends", || seen.open() == 0).await;
    assert!(pool.statuses().is_empty() && matches!(new.status().state, State::Stopped));
    pool.get(&spec, "code").await.unwrap();
    pool.shut_down().await;
    until("all end", || seen.open() == 0).await;
    assert!(matches!(pool.get(&spec, "code").await, Err(Error::Stopped { .. })));
}

#[tokio::test]
async fn what_is_under_way_ends_before_the_connection_that_was_replaced_does() {
    let (mut spec, seen) = peer(Kind::Legacy);
    let pool = Pool::new();
    let old = pool.get(&spec, "code").await.unwrap();
    let under_way = {
        let old = Arc::clone(&old);
        tokio::spawn(async move { old.call_tool_once(call("steps"), &CallContext::default()).await })
    };
    until("it is under way", || seen.count("tools/call") == 1).await;
    spec.hidden.push("rotated-secret".to_owned());
    let new = pool.get(&spec, "code").await.unwrap();
    assert!(new.call_tool_once(call("echo"), &CallContext::default()).await.is_ok());
    old.stopped().await;
    assert!(under_way.await.unwrap().is_ok(), "it was not cut off");
    until("then the old one ends", || seen.open() == 1).await;
    // Of those that were replaced in turn, too, nothing is left when everything ends.
    let hanging = tokio::spawn(async move { new.call_tool_once(call("hang"), &CallContext::default()).await });
    until("another one is under way", || seen.count("tools/call") == 3).await;
    spec.hidden.push("again".to_owned());
    pool.get(&spec, "code").await.unwrap();
    pool.shut_down().await;
    until("all end", || seen.open() == 0).await;
    assert!(hanging.await.unwrap().unwrap_err().is_ambiguous());
}

#[tokio::test]
async fn an_idle_connection_ends_and_comes_back_when_it_is_needed() {
    let (mut spec, seen) = peer(Kind::Legacy);
    spec.bounds.idle = Duration::from_millis(50);
    let pool = Pool::with_bounds(8, Duration::from_millis(20));
    let upstream = pool.get(&spec, "code").await.unwrap();
    until("it ends", || seen.open() == 0).await;
    until("it rests", || upstream.status().state == State::Resting).await;
    assert!(upstream.call_tool_once(call("echo"), &CallContext::default()).await.is_ok() && seen.opened() == 2);
    let follower = upstream.hold();
    let _listens = upstream.changes();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(seen.open(), 1, "somebody needs it");
    drop(follower);
    until("nobody does any more", || seen.open() == 0).await;
}

#[tokio::test]
async fn a_quiet_connection_is_asked_and_a_dead_one_replaced() {
    let (mut spec, seen) = peer(Kind::Legacy);
    (spec.bounds.probe, spec.bounds.backoff) = (Duration::from_millis(30), Duration::from_millis(1));
    let pool = Pool::with_bounds(8, Duration::from_millis(20));
    let upstream = pool.get(&spec, "code").await.unwrap();
    until("it is asked", || seen.count("ping") >= 2).await;
    assert_eq!(seen.opened(), 1);
    let _follower = upstream.hold();
    assert!(upstream.call_tool_once(call("die"), &CallContext::default()).await.is_err());
    until("it is brought back for whoever follows it", || seen.opened() == 2 && seen.open() == 1).await;
}

#[tokio::test]
async fn there_are_only_so_many() {
    let (mut spec, seen) = peer(Kind::Legacy);
    spec.bounds.in_flight = 2;
    let pool = Pool::with_bounds(2, Duration::from_mins(1));
    let busy = pool.get(&spec, "one").await.unwrap();
    let hanging: Vec<_> = (0..2)
        .map(|_| {
            let busy = Arc::clone(&busy);
            tokio::spawn(async move { busy.call_tool_once(call("hang"), &CallContext::default()).await })
        })
        .collect();
    until("both are there", || seen.count("tools/call") == 2).await;
    let error = busy.call_tool_once(call("echo"), &CallContext::default()).await.unwrap_err();
    assert!(matches!(error, Error::Busy { most: 2, .. }), "{error}");
    pool.get(&spec, "two").await.unwrap();
    pool.get(&spec, "three").await.unwrap();
    until("an idle one made room", || seen.open() == 2).await;
    let names: Vec<_> = pool.statuses().into_iter().filter_map(|status| status.agent).collect();
    assert_eq!(names, ["one", "three"]);
    for call in hanging {
        call.abort();
    }
}
