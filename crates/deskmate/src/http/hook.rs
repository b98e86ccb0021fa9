//! `POST /hook`: what a client's HTTP hook sends, answered in its own words. Who calls is known as over MCP: by a token, or in
//! open mode by a name. What fails is a failure here as well, so that a client that blocks on failures does.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use deskmate_core::call::{Call, Credential, Outcome, Surface, parse_strict};
use deskmate_core::{Code, Error, Result};
use serde::Deserialize;
use serde_json::Value;

use super::rest::{Failure, is_json};
use super::{Shared, credential};
use crate::hook::Client;

/// What the address says.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    client: Option<String>,
    agent: Option<String>,
    /// How long a call waits for a person, in seconds.
    hold: Option<u64>,
    /// The name of the desk's own MCP server at the client.
    server: Option<String>,
    /// Whether a file of the project names it.
    project_server: bool,
}

pub(super) async fn serve(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    match answer(&shared, &method, &uri, &headers, &body).await {
        Ok(value) => Json(value).into_response(),
        Err(error) => Failure(error).into_response(),
    }
}

async fn answer(shared: &Shared, method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Result<Value> {
    if !is_json(headers) {
        return Err(Error::invalid("content-type", "must be application/json"));
    }
    let asked: Asked = serde_urlencoded::from_str(uri.query().unwrap_or_default()).map_err(|error| Error::invalid("query", error.to_string()))?;
    let name = asked.client.as_deref().unwrap_or(Client::default().name());
    let client = Client::of(name).ok_or_else(|| Error::invalid("client", "must be claude-code, codex, gemini or cursor"))?;
    let payload = parse_strict(body)?;
    if !payload.is_object() {
        return Err(Error::invalid("body", "must be a JSON object"));
    }
    let credential = match credential::of(shared, method, uri, headers, body).await? {
        Credential::Named(None) => Credential::Named(asked.agent),
        other => other,
    };
    let mut input = client.incoming(&payload);
    if let Some(fields) = input.as_object_mut() {
        if let Some(hold) = asked.hold {
            fields.insert("timeout_seconds".to_owned(), Value::from(hold));
        }
        if let Some(server) = asked.server {
            fields.insert("desk_server".to_owned(), Value::from(server));
        }
        fields.insert("desk_in_project".to_owned(), Value::from(asked.project_server));
    }
    let call = Call { credential, surface: Surface::Rest, operation: "hook_event".to_owned(), input };
    let (Outcome::Done(value) | Outcome::NotYet(value)) = shared.app.call(call).await?.outcome;
    let out = serde_json::from_value(value).map_err(|error| Error::new(Code::Internal, format!("an answer is unreadable: {error}")))?;
    Ok(client.outgoing(&payload, &out))
}
