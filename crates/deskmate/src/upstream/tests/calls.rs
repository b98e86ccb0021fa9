//! Calls, in both eras.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rmcp::model::{CallToolResponse, ErrorCode, RequestMetaObject};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::peer::{Caller, Kind, call, peer, text, until};
use crate::upstream::{CallContext, Change, Error, Pool, Questions, Relay};

fn with(relay: &Arc<Caller>) -> CallContext {
    let relay: Arc<dyn Relay> = Arc::<Caller>::clone(relay);
    CallContext { relay: Some(relay), ..CallContext::default() }
}

#[tokio::test]
async fn both_eras_are_called_alike() {
    for kind in [Kind::Legacy, Kind::Modern, Kind::Touchy, Kind::Vague] {
        let (spec, seen) = peer(kind);
        let pool = Pool::new();
        let upstream = pool.get(&spec, "code").await.unwrap();
        assert_eq!(upstream.ready().await.unwrap().protocol_version.has_initialize(), kind != Kind::Modern);
        let tools = upstream.list_tools().await.unwrap();
        assert_eq!((tools.len(), seen.count("tools/list")), (9, 3), "all pages");
        let answer = upstream.call_tool_once(call("echo"), &CallContext::default()).await.unwrap();
        assert_eq!(text(&answer), "{\"n\":1}");
        assert_eq!(text(&upstream.call_tool(call("twice"), &CallContext::default()).await.unwrap()), "once");
        let refused = upstream.call_tool_once(call("error"), &CallContext::default()).await.unwrap_err();
        assert!(matches!(&refused, Error::Refused(error) if error.code == ErrorCode::INVALID_PARAMS), "{refused}");
        let wrong = upstream.call_tool_once(call("wrong"), &CallContext::default()).await.unwrap_err();
        assert!(matches!(wrong, Error::Unreadable { .. }), "{wrong}");
        let status = upstream.status();
        assert_eq!((status.calls, status.errors, status.in_flight), (7, 0, 0), "{status:?}");
        assert!(status.latency_us.is_some());
    }
}

#[tokio::test]
async fn nothing_of_the_callers_metadata_is_passed_on() {
    for kind in [Kind::Legacy, Kind::Modern] {
        let (spec, _) = peer(kind);
        let pool = Pool::new();
        let upstream = pool.get(&spec, "code").await.unwrap();
        let mut meta = RequestMetaObject::new();
        meta.set_progress_token(rmcp::model::ProgressToken(rmcp::model::NumberOrString::String("theirs".into())));
        meta.insert("com.example/secret".to_owned(), json!("x"));
        let mut params = call("meta");
        params.meta = Some(meta);
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = CallContext { traceparent: Some(trace.to_owned()), ..CallContext::default() };
        let got: Value = serde_json::from_str(&text(&upstream.call_tool_once(params, &context).await.unwrap())).unwrap();
        assert_eq!(got["traceparent"], trace);
        assert!(got["progressToken"].is_number() && got.get("com.example/secret").is_none(), "{got}");
        assert_eq!(got.get("io.modelcontextprotocol/clientInfo").is_some(), kind == Kind::Modern);
    }
}

#[tokio::test]
async fn progress_comes_in_order_and_gives_more_time() {
    let (mut spec, _) = peer(Kind::Legacy);
    spec.bounds.call = Duration::from_millis(200);
    let pool = Pool::new();
    let upstream = pool.get(&spec, "code").await.unwrap();
    let caller = Arc::new(Caller::default());
    let answer = upstream.call_tool_once(call("steps"), &with(&caller)).await.unwrap();
    assert_eq!(text(&answer), "done");
    assert_eq!(*caller.progress.lock().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0]);
    spec.bounds.call_total = Duration::from_millis(150);
    let upstream = pool.get(&spec, "code").await.unwrap();
    let late = upstream.call_tool_once(call("steps"), &with(&caller)).await.unwrap_err();
    assert!(matches!(late, Error::TimedOut { .. }), "progress does not give time without end: {late}");
}

#[tokio::test]
async fn a_call_that_hangs_ends_and_the_upstream_is_told() {
    let (mut spec, seen) = peer(Kind::Legacy);
    spec.bounds.call = Duration::from_millis(100);
    let pool = Pool::new();
    let upstream = pool.get(&spec, "code").await.unwrap();
    let late = upstream.call_tool_once(call("hang"), &CallContext::default()).await.unwrap_err();
    assert!(matches!(late, Error::TimedOut { .. }) && late.is_ambiguous(), "{late}");
    until("it is told", || seen.count("notifications/cancelled") == 1).await;
    assert_eq!(seen.last("notifications/cancelled")["params"]["requestId"], seen.last("tools/call")["id"]);
    // Others go on, and nothing is left behind.
    assert_eq!(text(&upstream.call_tool_once(call("echo"), &CallContext::default()).await.unwrap()), "{\"n\":1}");
    assert_eq!(upstream.ledger_len(), 0);
    assert_eq!(seen.opened(), 1);
}

#[tokio::test]
async fn whoever_goes_away_cancels() {
    let (spec, seen) = peer(Kind::Legacy);
    let pool = Pool::new();
    let upstream = pool.get(&spec, "code").await.unwrap();
    let cancel = CancellationToken::new();
    let context = CallContext { cancel: cancel.clone(), ..CallContext::default() };
    let under_way = tokio::spawn({
        let upstream = Arc::clone(&upstream);
        async move { upstream.call_tool_once(call("hang"), &context).await }
    });
    until("it is called", || seen.count("tools/call") == 1).await;
    cancel.cancel();
    let cancelled = under_way.await.unwrap().unwrap_err();
    assert!(matches!(cancelled, Error::Cancelled { sent: true, .. }), "{cancelled}");
    until("it is told", || seen.count("notifications/cancelled") == 1).await;
    let dropped = tokio::time::timeout(Duration::from_millis(50), upstream.call_tool_once(call("hang"), &CallContext::default())).await;
    assert!(dropped.is_err());
    until("it is told again", || seen.count("notifications/cancelled") == 2).await;
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let context = CallContext { cancel: cancelled, ..CallContext::default() };
    let never = upstream.call_tool_once(call("echo"), &context).await.unwrap_err();
    assert!(never.was_never_sent() && seen.count("tools/call") == 2, "{never}");
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_told_as_what_it_is() {
    let (spec, _) = peer(Kind::Legacy);
    let pool = Pool::new();
    let upstream = pool.get(&spec, "code").await.unwrap();
    let large = upstream.call_tool_once(call("big"), &CallContext::default()).await.unwrap_err();
    assert!(matches!(large, Error::TooLarge { most: 20_000, .. }) && !large.is_ambiguous() && !large.was_never_sent(), "{large}");
    assert!(upstream.call_tool_once(call("echo"), &CallContext::default()).await.is_ok(), "the connection goes on");
}

#[tokio::test]
async fn questions_go_to_the_caller_and_to_nobody_on_a_shared_connection() {
    let (mut spec, seen) = peer(Kind::Legacy);
    let pool = Pool::new();
    let caller = Arc::new(Caller::default());
    let upstream = pool.get(&spec, "code").await.unwrap();
    let answer = text(&upstream.call_tool_once(call("ask"), &with(&caller)).await.unwrap());
    assert!(answer.contains("Ada"), "{answer}");
    assert!(seen.last("initialize")["params"]["capabilities"]["elicitation"].is_object());
    let nobody = text(&upstream.call_tool_once(call("ask"), &CallContext::default()).await.unwrap());
    assert!(nobody.contains("decline"), "{nobody}");
    spec.shared = true;
    let shared = pool.get(&spec, "code").await.unwrap();
    let answer = text(&shared.call_tool_once(call("ask"), &with(&caller)).await.unwrap());
    assert!(answer.contains("decline") && caller.asked.load(Ordering::SeqCst) == 1, "{answer}");
    assert_eq!(seen.last("initialize")["params"]["capabilities"], json!({}));
}

#[tokio::test]
async fn a_question_under_the_id_of_a_call_that_is_open_ends_no_call() {
    let (spec, seen) = peer(Kind::Legacy);
    let pool = Pool::new();
    let caller = Arc::new(Caller::default());
    let upstream = pool.get(&spec, "code").await.unwrap();
    let answer = text(&upstream.call_tool_once(call("ask_under_its_id"), &with(&caller)).await.unwrap());
    assert!(answer.contains("Ada") && caller.asked.load(Ordering::SeqCst) == 1, "the call ends by its own answer: {answer}");
    let answer = text(&upstream.call_tool_once(call("echo"), &with(&caller)).await.unwrap());
    assert!(answer.contains("\"n\":1") && seen.count("notifications/cancelled") == 0, "{answer}");
}

#[tokio::test]
async fn with_several_callers_a_question_that_names_none_goes_to_nobody() {
    let (mut spec, seen) = peer(Kind::Legacy);
    spec.questions = Questions::OfTheOnlyCall;
    let pool = Pool::new();
    let upstream = pool.get(&spec, "front").await.unwrap();
    let caller = Arc::new(Caller::default());
    let other = tokio::spawn({
        let (upstream, context) = (Arc::clone(&upstream), with(&Arc::new(Caller::default())));
        async move { upstream.call_tool_once(call("hang"), &context).await }
    });
    until("the other one is there", || seen.count("tools/call") == 1).await;
    let answer = text(&upstream.call_tool_once(call("ask"), &with(&caller)).await.unwrap());
    assert!(answer.contains("decline"), "{answer}");
    other.abort();
    until("the other one is gone", || seen.count("notifications/cancelled") == 1).await;
    let answer = text(&upstream.call_tool_once(call("ask"), &with(&caller)).await.unwrap());
    assert!(answer.contains("Ada"), "{answer}");
}

#[tokio::test]
async fn input_rounds_are_handed_over_or_driven() {
    let (spec, seen) = peer(Kind::Modern);
    let pool = Pool::new();
    let upstream = pool.get(&spec, "code").await.unwrap();
    let CallToolResponse::InputRequired(wanted) = upstream.call_tool_once(call("round"), &CallContext::default()).await.unwrap() else { panic!("no round") };
    assert_eq!(wanted.request_state.as_deref(), Some("s1"));
    let caller = Arc::new(Caller::default());
    let answer = text(&upstream.call_tool(call("round"), &with(&caller)).await.unwrap());
    assert!(answer.contains("Ada"), "{answer}");
    assert_eq!((caller.asked.load(Ordering::SeqCst), seen.count("tools/call")), (1, 3));
    let nobody = upstream.call_tool(call("round"), &CallContext::default()).await.unwrap_err();
    assert!(matches!(nobody, Error::Refused(_)), "{nobody}");
}

#[tokio::test]
async fn changes_are_told_in_both_eras() {
    let (spec, seen) = peer(Kind::Legacy);
    let pool = Pool::new();
    let upstream = pool.get(&spec, "code").await.unwrap();
    let mut changes = upstream.changes();
    upstream.subscribe("a://b").await.unwrap();
    upstream.subscribe("a://b").await.unwrap();
    upstream.call_tool_once(call("changes"), &CallContext::default()).await.unwrap();
    let mut told = vec![changes.recv().await.unwrap(), changes.recv().await.unwrap()];
    told.sort_by_key(|change| format!("{change:?}"));
    assert_eq!(told, [Change::Resource("a://b".into()), Change::Tools]);
    upstream.unsubscribe("a://b").await.unwrap();
    assert_eq!((seen.count("resources/subscribe"), seen.count("resources/unsubscribe")), (1, 0), "one more follows it");
    upstream.unsubscribe("a://b").await.unwrap();
    assert_eq!(seen.count("resources/unsubscribe"), 1);

    let (spec, seen) = peer(Kind::Modern);
    let upstream = pool.get(&spec, "other").await.unwrap();
    until("lists are followed", || seen.count("subscriptions/listen") == 1).await;
    let mut changes = upstream.changes();
    upstream.subscribe("a://b").await.unwrap();
    assert_eq!(changes.recv().await.unwrap(), Change::Resource("a://b".into()));
    assert_eq!(seen.last("subscriptions/listen")["params"]["notifications"]["toolsListChanged"], true);
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_no_doubt_about_doubt() {
    let (spec, seen) = peer(Kind::Legacy);
    let pool = Pool::new();
    let upstream = pool.get(&spec, "code").await.unwrap();
    let begun = Instant::now();
    let lost = upstream.call_tool_once(call("die"), &CallContext::default()).await.unwrap_err();
    assert!(matches!(lost, Error::Ambiguous { .. }) && lost.is_ambiguous() && !lost.was_never_sent(), "{lost}");
    assert!(begun.elapsed() < Duration::from_secs(1), "at once: {:?}", begun.elapsed());
    let mut changes = upstream.changes();
    assert!(upstream.call_tool_once(call("echo"), &CallContext::default()).await.is_ok(), "it is connected again");
    assert_eq!((seen.opened(), seen.open()), (2, 1));
    assert_eq!(changes.recv().await.unwrap(), Change::Tools, "what was known may be out of date");
}
