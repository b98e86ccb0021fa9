//! Becoming somebody: claiming the desk, joining it, signing in.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use deskmate_core::call::{Actor, Call, Credential, Outcome, Surface, parse_strict};
use deskmate_core::identity::{SecretKind, check_link};
use deskmate_core::{Code, Error, Result};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::super::Shared;
use super::super::credential::COOKIE_NAME;
use super::super::rest::{Failure, status_of};
use super::shell::sheet;
use super::ui::{field, said};

/// What a link brings along.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Link {
    code: String,
}

/// Says at once of a link that it is good for nothing any more, before anybody fills the form.
async fn check(shared: &Shared, link: Link, kind: SecretKind) -> Result<(), Response> {
    let desk = shared.app.desk.clone();
    let looked = shared.app.desk.db.read(move |tx| check_link(&mut desk.cx(tx, Actor::system(), Surface::Web), &link.code, kind)).await;
    looked.map_err(|error: Error| {
        let content = html! {
            h1 { "This link does not work" }
            p { (said(&error.message)) }
            @if let Some(hint) = &error.hint { p { (said(hint)) } }
            p { a href="/sign-in" { "Sign in" } }
        };
        (status_of(error.code), sheet("This link does not work", "sign-in.js", content)).into_response()
    })
}

pub(super) async fn claim(State(shared): State<Shared>, Query(link): Query<Link>) -> Response {
    if let Err(refused) = check(&shared, link, SecretKind::Claim).await {
        return refused;
    }
    let content = html! {
        h1 { "Claim this desk" }
        p { "You become its owner. Whenever you decide or configure something, your passphrase or a passkey shows that it is you; nothing that lies on this machine can stand in for it." }
        form data-session="/session/claim" {
            (field("name", "Your name", html! { input id="name" name="name" autocomplete="username" required maxlength="128"; }))
            (new_factor())
            button { "Claim the desk" }
            div role="alert" {}
        }
    };
    sheet("Claim", "sign-in.js", content)
}

pub(super) async fn join(State(shared): State<Shared>, Query(link): Query<Link>) -> Response {
    if let Err(refused) = check(&shared, link, SecretKind::Invitation).await {
        return refused;
    }
    let content = html! {
        h1 { "Join this desk" }
        p { "Choose what shows that you are there whenever you decide something." }
        form data-session="/session/join" {
            (new_factor())
            button { "Join" }
            div role="alert" {}
        }
    };
    sheet("Join", "sign-in.js", content)
}

pub(super) async fn sign_in() -> Response {
    let content = html! {
        h1 { "Sign in" }
        form data-session="/session/sign-in" {
            (field("name", "Your name", html! { input id="name" name="name" autocomplete="username" maxlength="128"; }))
            (field("passphrase", "Passphrase or PIN", html! { input id="passphrase" name="passphrase" type="password" autocomplete="current-password" required; }))
            button { "Sign in" }
            button.quiet type="button" data-passkey hidden { "Sign in with a passkey" }
            div role="alert" {}
        }
        p.hint { "Nobody has claimed this desk yet? " code { "deskmate claim" } " in a terminal prints the link." }
    };
    sheet("Sign in", "sign-in.js", content)
}

/// What somebody new shows presence with: a passkey where the browser can make one, or a passphrase.
fn new_factor() -> Markup {
    html! {
        div data-passkey-way hidden {
            div.row { button.quiet type="button" data-passkey { "Use a passkey" } }
            p.hint { "Your finger, your face or a key that you touch. The command line asks for a passphrase, which you can also set later." }
            p { "Or a passphrase:" }
        }
        (field("passphrase", "Passphrase or PIN", html! { input id="passphrase" name="passphrase" type="password" autocomplete="new-password" required minlength="6" aria-describedby="rule"; }))
        (field("repeated", "The same again", html! { input id="repeated" name="repeated" type="password" autocomplete="new-password" required minlength="6"; }))
        p id="rule" { "At least six characters. Nobody can tell it to you again." }
    }
}

/// Opens a session and hands it to the browser as a cookie that no script can read.
pub(super) async fn open(State(shared): State<Shared>, operation: &str, body: Bytes) -> Response {
    match signed_in(&shared, operation, &body).await {
        Err(error) => Failure(error).into_response(),
        Ok((mut answer, session)) => {
            let secure = if shared.allowed.is_tls() { "; Secure" } else { "" };
            let cookie = format!("{COOKIE_NAME}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000{secure}");
            let Ok(cookie) = HeaderValue::from_str(&cookie) else {
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            };
            if let Some(fields) = answer.as_object_mut() {
                fields.remove("session");
            }
            ([(SET_COOKIE, cookie)], Json(answer)).into_response()
        }
    }
}

async fn signed_in(shared: &Shared, operation: &str, body: &[u8]) -> Result<(Value, String)> {
    let input = parse_strict(body)?;
    let call = Call { credential: Credential::Nobody, surface: Surface::Web, operation: operation.to_owned(), input };
    let answer = match shared.app.call(call).await?.outcome {
        Outcome::Done(answer) | Outcome::NotYet(answer) => answer,
    };
    let session = answer.get("session").and_then(Value::as_str).map(str::to_owned);
    let message = answer.get("message").and_then(Value::as_str).unwrap_or("signing in failed");
    let session = session.ok_or_else(|| Error::new(Code::Unauthenticated, message))?;
    Ok((answer, session))
}
