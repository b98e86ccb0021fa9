//! The first pages: claiming the desk, joining it, signing in, and one request to decide. They are plain HTML with
//! scripts of our own, which make the browser's key and sign with it.

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use deskmate_core::call::{Call, Credential, Outcome, Surface, parse_strict};
use deskmate_core::{Code, Error, Result};
use serde_json::Value;

use super::Shared;
use super::credential::COOKIE_NAME;
use super::rest::Failure;

const POLICY: &str =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/", get(async || page(include_str!("pages/home.html"))))
        .route("/claim", get(async || page(include_str!("pages/claim.html"))))
        .route("/join", get(async || page(include_str!("pages/join.html"))))
        .route("/sign-in", get(async || page(include_str!("pages/sign-in.html"))))
        .route("/requests/{id}", get(async || page(include_str!("pages/request.html"))))
        .route("/assets/request.js", get(async || asset("text/javascript; charset=utf-8", include_str!("pages/request.js"))))
        .route("/assets/desk.css", get(async || asset("text/css; charset=utf-8", include_str!("pages/desk.css"))))
        .route("/assets/desk.svg", get(async || asset("image/svg+xml", include_str!("pages/desk.svg"))))
        .route("/assets/sign-in.js", get(async || asset("text/javascript; charset=utf-8", include_str!("pages/sign-in.js"))))
        .route("/session/claim", post(|state, body| open(state, "desk_claim", body)))
        .route("/session/join", post(|state, body| open(state, "desk_accept_invitation", body)))
        .route("/session/sign-in", post(|state, body| open(state, "desk_sign_in", body)))
}

fn page(html: &'static str) -> Response {
    let mut response = Html(html).into_response();
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind)], text).into_response()
}

/// Opens a session and hands it to the browser as a cookie that no script can read.
async fn open(State(shared): State<Shared>, operation: &str, body: Bytes) -> Response {
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
