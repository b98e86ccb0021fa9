//! Every operation as a route: `POST /api/NAME` with the input as JSON, and `GET` for those that only look.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Extension, Path, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use deskmate_core::call::{Call, Credential, Effect, Op, Outcome, Surface, parse_strict};
use deskmate_core::{Code, Error, Result, format_time};
use serde_json::{Map, Value, json};

use super::listen::Peer;
use super::{Shared, credential};

/// Who opened the local socket; nothing where the request came over TCP.
pub(super) type OnSocket = Option<Extension<ConnectInfo<Peer>>>;

/// In open mode a name is enough; every answer to one has this header.
pub(crate) const UNVERIFIED: &str = "deskmate-unverified";

/// An error on its way out.
pub(super) struct Failure(pub(super) Error);

/// The status that stands for a code.
pub(super) fn status_of(code: Code) -> StatusCode {
    match code {
        Code::Invalid => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::Forbidden => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::Conflict => StatusCode::CONFLICT,
        Code::Limited => StatusCode::TOO_MANY_REQUESTS,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (status_of(self.0.code), Json(json!({ "error": self.0 }))).into_response();
        let headers = response.headers_mut();
        if self.0.code == Code::Unauthenticated {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"deskmate\""));
        }
        if let Some(wait) = self.0.retry_after_ms {
            headers.insert(RETRY_AFTER, HeaderValue::from(wait.div_ceil(1_000)));
        }
        response
    }
}

/// The process answers.
pub(super) async fn healthz(State(shared): State<Shared>) -> Json<Value> {
    let standing = &shared.standing;
    Json(json!({
        "ok": true,
        "version": env!("CARGO_PKG_VERSION"),
        "set_up": standing.set_up,
        "engine": crate::keep::engine_name(shared.app.desk.db.engine()),
        "background": standing.background,
        "time": format_time(shared.app.desk.world.now()),
        "uptime_seconds": standing.activity.uptime().as_secs(),
    }))
}

/// The store answers.
pub(super) async fn readyz(State(shared): State<Shared>) -> Response {
    let read = shared.app.desk.db.read(deskmate_core::record::size).await;
    match read {
        Ok(size) => Json(json!({ "ready": true, "events": size })).into_response(),
        Err(error) => Failure(Error { code: Code::Unavailable, ..error }).into_response(),
    }
}

pub(super) async fn not_found(uri: Uri) -> Failure {
    Failure(Error::not_found(format!("there is nothing at {}", uri.path())))
}

pub(super) async fn call_post(
    State(shared): State<Shared>,
    Path(operation): Path<String>,
    socket: OnSocket,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let answer = async {
        let op = find(&shared, &operation)?;
        // Forms of other pages can send text without asking; JSON needs a question that our answer refuses.
        if !is_json(&headers) && !body.is_empty() {
            return Err(Error::invalid("content-type", "must be application/json"));
        }
        let input = if body.is_empty() { json!({}) } else { parse_strict(&body)? };
        let credential = credential::of(&shared, &method, &uri, &headers, &body).await?;
        Ok(run(&shared, op, on_socket(credential, socket.as_ref()), surface(&headers, socket.is_some()), input).await)
    };
    answer.await.unwrap_or_else(|error| Failure(error).into_response())
}

pub(super) async fn call_get(
    State(shared): State<Shared>,
    Path(operation): Path<String>,
    socket: OnSocket,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let op = find(&shared, &operation)?;
        if op.effect == Effect::Write {
            return Err(Error::invalid("method", format!("{operation} changes something: use POST")));
        }
        let input = query(op, uri.query().unwrap_or_default())?;
        let credential = credential::of(&shared, &method, &uri, &headers, &[]).await?;
        Ok(run(&shared, op, on_socket(credential, socket.as_ref()), surface(&headers, socket.is_some()), input).await)
    };
    answer.await.unwrap_or_else(|error| Failure(error).into_response())
}

fn find<'s>(shared: &'s Shared, operation: &str) -> Result<&'s Op> {
    let found = shared.app.desk.registry.get(operation).map(Arc::as_ref);
    found.ok_or_else(|| Error::not_found(format!("there is no operation {operation}")).hint("/api/openapi.json lists all"))
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Who brought nothing else is at least known by the local socket, if it came that way.
fn on_socket(credential: Credential, socket: Option<&Extension<ConnectInfo<Peer>>>) -> Credential {
    match credential {
        Credential::Named(None) if socket.is_some_and(|Extension(ConnectInfo(peer))| peer.is_own) => Credential::Local,
        other => other,
    }
}

/// The command line says so itself, and is believed on its own socket only. It proves nothing and is told to the record.
fn surface(headers: &HeaderMap, local: bool) -> Surface {
    match headers.get("x-deskmate-surface").map(HeaderValue::as_bytes) {
        Some(b"cli") if local => Surface::Cli,
        _ if headers.contains_key("origin") => Surface::Web,
        _ => Surface::Rest,
    }
}

/// Reads a query string by the operation's own schema: numbers and booleans where it asks for them.
pub(super) fn query(op: &Op, text: &str) -> Result<Value> {
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(text).map_err(|error| Error::invalid("query", error.to_string()))?;
    let mut fields = Map::new();
    for (name, value) in pairs {
        let read = op.value_of(&name, &value)?;
        if fields.insert(name.clone(), read).is_some() {
            return Err(Error::invalid(&name, "was given twice"));
        }
    }
    Ok(Value::Object(fields))
}

async fn run(shared: &Shared, op: &Op, credential: Credential, surface: Surface, input: Value) -> Response {
    let named = is_named(&credential);
    let call = Call { credential, surface, operation: op.full_name(), input };
    match shared.app.call(call).await {
        Ok(answer) => {
            let (Outcome::Done(value) | Outcome::NotYet(value)) = answer.outcome;
            marked(Json(value).into_response(), !answer.actor.verified)
        }
        Err(error) => marked(Failure(error).into_response(), named),
    }
}

/// Whether a caller said nothing but a name.
pub(super) fn is_named(credential: &Credential) -> bool {
    matches!(credential, Credential::Named(Some(_)))
}

/// An answer that says so, where it went to somebody who only claims to be who they say they are.
pub(super) fn marked(mut response: Response, unverified: bool) -> Response {
    if unverified {
        response.headers_mut().insert(UNVERIFIED, HeaderValue::from_static("true"));
    }
    response
}
