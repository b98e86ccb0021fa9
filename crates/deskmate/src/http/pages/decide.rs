//! Deciding by a link that was sent to a person. Opening it only shows what would be decided; the button decides, once.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use deskmate_core::call::{Call, Credential, Outcome, Surface, parse_strict};
use deskmate_core::{Error, Result};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Shared;
use super::super::rest::{Failure, status_of};
use super::shell::{self, sheet};
use super::ui::{self, Tone, badge, fact, field, said, segment, time, unproved, words};

#[derive(Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    link: String,
}

#[derive(Deserialize)]
struct Opened {
    state: String,
    message: String,
    request: String,
    person_name: String,
    expires_at: String,
    shown: Option<Shown>,
}

#[derive(Deserialize)]
struct Shown {
    kind: String,
    title: Option<String>,
    requester_kind: String,
    requester: String,
    verified: bool,
    domain: String,
    risk: String,
    act: Value,
    old: Option<Value>,
    #[serde(default)]
    context: Value,
    reasoning: Option<String>,
    expires_at: String,
}

async fn ask(shared: &Shared, operation: &str, input: Value) -> Result<Value> {
    let call = Call { credential: Credential::Nobody, surface: Surface::Web, operation: operation.to_owned(), input };
    let (Outcome::Done(answer) | Outcome::NotYet(answer)) = shared.app.call(call).await?.outcome;
    Ok(answer)
}

/// What a link would decide, or why it decides nothing any more.
pub(super) async fn serve(State(shared): State<Shared>, Query(asked): Query<Asked>) -> Response {
    let opened = ask(&shared, "desk_decision_link_open", json!({ "link": asked.link })).await;
    let opened: Opened = match opened.and_then(|answer| serde_json::from_value(answer).map_err(|error| Error::invalid("link", error.to_string()))) {
        Ok(opened) => opened,
        Err(error) => return (status_of(error.code), shell::fault(&error)).into_response(),
    };
    let Some(shown) = &opened.shown else { return (status(&opened.state), refused(&opened)).into_response() };
    sheet("Decide", "decide.js", page(&opened, shown))
}

fn status(state: &str) -> StatusCode {
    match state {
        "sign_in" => StatusCode::FORBIDDEN,
        "changed" | "decided" => StatusCode::CONFLICT,
        _ => StatusCode::GONE,
    }
}

/// A page that says why a link decides nothing, and where to go instead.
fn refused(opened: &Opened) -> Response {
    let content = html! {
        h1 { "This link decides nothing" }
        p id="outcome" data-state=(opened.state) { (opened.message) }
        p { a href={ "/requests/" (segment(&opened.request)) } { "Sign in and look at the request" } }
    };
    sheet("This link decides nothing", "decide.js", content)
}

fn page(opened: &Opened, shown: &Shown) -> Markup {
    html! {
        h1 { (said(shown.title.as_deref().unwrap_or("A request without words"))) }
        p.badges {
            (badge(Tone::of_risk(&shown.risk), &format!("{} risk", shown.risk)))
            (badge(Tone::Quiet, &shown.kind))
        }
        p id="outcome" { "For " (said(&opened.person_name)) ". Nothing is decided yet: the buttons below decide, once, until " (time(&opened.expires_at)) "." }
        dl.facts {
            (fact("Who asks", html! { (said(&shown.requester)) @if !shown.verified { " (" (unproved(&shown.requester_kind)) ")" } }))
            (fact("Where", html! { (said(&shown.domain)) }))
            (fact("Expires", time(&shown.expires_at)))
        }
        h2 { "Exactly what would be done" }
        (ui::value(&shown.act))
        @if let Some(old) = &shown.old { h2 { "What is there now" } (ui::value(old)) }
        @if !shown.context.is_null() { h2 { "What goes with it" } (ui::value(&shown.context)) }
        @if let Some(reasoning) = &shown.reasoning { h2 { "Why, in their words" } (words(reasoning)) }
        form data-decide {
            (field("reason", "A word to the requester; a rejection may need one", html! { textarea id="reason" name="reason" rows="3" maxlength="2000" {} }))
            div.row {
                button name="answer" value="approve" { "Approve" }
                button.alarm name="answer" value="reject" { "Reject" }
            }
            div role="alert" {}
        }
        p { a href={ "/requests/" (segment(&opened.request)) } { "Or sign in and look at it there" } }
        p.hint { "Whoever has this link can use it until then. What is of high risk always needs you to sign in." }
    }
}

/// The button.
pub(super) async fn answer(State(shared): State<Shared>, body: Bytes) -> Response {
    let decided = async { ask(&shared, "desk_decision_link_decide", parse_strict(&body)?).await };
    match decided.await {
        Err(error) => Failure(error).into_response(),
        Ok(answer) if answer.get("decided") == Some(&Value::Bool(true)) => Json(answer).into_response(),
        Ok(answer) => {
            let state = answer.get("state").and_then(Value::as_str).unwrap_or_default();
            (status(state), Json(answer.clone())).into_response()
        }
    }
}
