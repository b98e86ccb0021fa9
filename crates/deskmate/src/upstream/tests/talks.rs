//! Callers of the newer era before an upstream of the older one.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResponse, ClientCapabilities, InputRequiredResult, InputResponses};
use serde_json::json;

use super::peer::{Kind, call, peer, text, until};
use crate::upstream::talks::Talks;
use crate::upstream::{CallContext, Error, Pool, Upstream};

fn able() -> CallContext {
    let can: ClientCapabilities = serde_json::from_value(json!({ "elicitation": { "form": {} } })).unwrap();
    CallContext { capabilities: Some(can), ..CallContext::default() }
}

async fn asked(talks: &Talks, upstream: &Arc<Upstream>, params: CallToolRequestParams) -> InputRequiredResult {
    match talks.call_tool(upstream, "ada", params, &able()).await.unwrap() {
        CallToolResponse::InputRequired(wanted) => wanted,
        other => panic!("no question: {other:?}"),
    }
}

fn again(wanted: &InputRequiredResult, answers: &[(&str, &str)]) -> CallToolRequestParams {
    let mut params = call("ask");
    params.request_state.clone_from(&wanted.request_state);
    let answers = answers.iter().map(|(key, name)| ((*key).to_owned(), json!({ "action": "accept", "content": { "name": name } })));
    params.input_responses = Some(answers.collect::<InputResponses>());
    params
}

#[tokio::test]
async fn a_question_becomes_a_round_of_the_same_call() {
    let (spec, seen) = peer(Kind::Legacy);
    let (pool, talks) = (Pool::new(), Talks::default());
    let upstream = pool.get(&spec, "ada").await.unwrap();
    let wanted = asked(&talks, &upstream, call("ask")).await;
    let question = json!(wanted.input_requests)["question-1"].clone();
    assert_eq!((&question["method"], &question["params"]["message"]), (&json!("elicitation/create"), &json!("Who?")));
    let unanswered = asked(&talks, &upstream, again(&wanted, &[("another", "x")])).await;
    assert_eq!(unanswered.input_requests, wanted.input_requests, "what was not answered is asked again");
    let stale = talks.call_tool(&upstream, "ada", again(&wanted, &[("question-1", "x")]), &able()).await.unwrap_err();
    assert!(matches!(stale, Error::Refused(_)), "a state is used once: {stale}");
    let answer = talks.call_tool(&upstream, "ada", again(&unanswered, &[("question-1", "Grace")]), &able()).await.unwrap();
    assert!(text(&answer).contains("Grace"), "{}", text(&answer));
    assert_eq!(seen.count("tools/call"), 1, "it was called once");
}

#[tokio::test]
async fn nobody_else_goes_on_with_a_call_and_nobody_with_another() {
    let (spec, seen) = peer(Kind::Legacy);
    let (pool, talks) = (Pool::new(), Talks::default());
    let upstream = pool.get(&spec, "ada").await.unwrap();
    let wanted = asked(&talks, &upstream, call("ask")).await;
    let stranger = talks.call_tool(&upstream, "eve", again(&wanted, &[("question-1", "Eve")]), &able()).await.unwrap_err();
    assert!(matches!(stranger, Error::Refused(_)), "{stranger}");
    let mut other = again(&wanted, &[("question-1", "Ada")]);
    other.arguments = json!({ "n": 2 }).as_object().cloned();
    let other = talks.call_tool(&upstream, "ada", other, &able()).await.unwrap_err();
    assert!(matches!(other, Error::Refused(_)), "{other}");
    until("the call is cancelled", || seen.count("notifications/cancelled") == 1).await;
}

#[tokio::test]
async fn a_caller_that_cannot_be_asked_declines_and_one_that_stays_away_cancels() {
    let (spec, seen) = peer(Kind::Legacy);
    let (pool, talks) = (Pool::new(), Talks::with_wait(Duration::from_millis(100)));
    let upstream = pool.get(&spec, "ada").await.unwrap();
    let answer = talks.call_tool(&upstream, "ada", call("ask"), &CallContext::default()).await.unwrap();
    assert!(text(&answer).contains("decline"));
    let wanted = asked(&talks, &upstream, call("ask")).await;
    until("the call is cancelled", || seen.count("notifications/cancelled") == 1).await;
    assert!(talks.call_tool(&upstream, "ada", again(&wanted, &[("question-1", "late")]), &able()).await.is_err());
}

#[tokio::test]
async fn an_upstream_of_the_newer_era_has_its_own_rounds() {
    let (spec, _) = peer(Kind::Modern);
    let (pool, talks) = (Pool::new(), Talks::default());
    let upstream = pool.get(&spec, "ada").await.unwrap();
    let wanted = asked(&talks, &upstream, call("round")).await;
    assert_eq!(wanted.request_state.as_deref(), Some("s1"));
    let mut params = again(&wanted, &[("who", "Ada")]);
    params.name = "round".into();
    assert!(text(&talks.call_tool(&upstream, "ada", params, &able()).await.unwrap()).contains("Ada"));
}
