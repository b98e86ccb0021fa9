//! Messages in and out: JSON, or protobuf where the caller says so.

use axum::Json;
use axum::http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use deskmate_core::call::parse_strict;
use deskmate_core::{Code, Error};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::rest::{is_json, status_of};
use super::wire::{ErrorDetail, ErrorResponse};

const PROTOBUF: &str = "application/x-protobuf";

/// An error with the status that clients of this API know for it.
pub(super) struct Refusal {
    status: StatusCode,
    // An error is large, and most answers are none.
    error: Box<Error>,
}

impl Refusal {
    /// Nothing was given that could show who calls.
    pub(super) fn missing(error: Error) -> Self {
        Self { status: StatusCode::UNAUTHORIZED, error: Box::new(error) }
    }
}

impl From<Error> for Refusal {
    /// What was given and is not known is forbidden here.
    fn from(error: Error) -> Self {
        let status = if error.code == Code::Unauthenticated { StatusCode::FORBIDDEN } else { status_of(error.code) };
        Self { status, error: Box::new(error) }
    }
}

fn names(headers: &HeaderMap, header: HeaderName) -> bool {
    let given = headers.get_all(header).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    given.filter_map(|kind| kind.split(';').next()).any(|kind| kind.trim().eq_ignore_ascii_case(PROTOBUF))
}

/// Reads a message. One that has not the form of its kind is answered with 422, as clients of this API know it.
pub(super) fn read<M: Message + Default + DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<M, Refusal> {
    let misshapen = |error: Error| Refusal { status: StatusCode::UNPROCESSABLE_ENTITY, error: Box::new(error) };
    if names(headers, CONTENT_TYPE) {
        return M::decode(body).map_err(|error| misshapen(Error::invalid("body", format!("is not the message that belongs here: {error}"))));
    }
    // Forms of other pages can send text without asking; JSON needs a question that our answer refuses.
    if !body.is_empty() && !is_json(headers) {
        return Err(Error::invalid("content-type", format!("must be application/json or {PROTOBUF}")).into());
    }
    let value = parse_strict(if body.is_empty() { b"{}" } else { body })?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let field = error.path().to_string();
        misshapen(Error::invalid(&field, error.into_inner().to_string()))
    })
}

/// The answer in the form that the caller asks for.
pub(super) fn answered<M: Message + Serialize>(headers: &HeaderMap, answer: Result<M, Refusal>) -> Response {
    let protobuf = names(headers, ACCEPT);
    match answer {
        Ok(message) => render(protobuf, StatusCode::OK, &message),
        Err(Refusal { status, error }) => {
            let retry = error.retry_after_ms;
            let mut response = render(protobuf, status, &told(*error));
            if let Some(wait) = retry {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.div_ceil(1_000)));
            }
            response
        }
    }
}

fn told(error: Error) -> ErrorResponse {
    let Error { code, message, hint, field, retry_after_ms, needs_presence, incident, of_the_store: _, used_up: _, denied: _ } = error;
    ErrorResponse {
        error: Some(ErrorDetail { code: code.name().to_owned(), message, hint, field, retry_after_ms, needs_presence, incident: incident.map(Into::into) }),
    }
}

fn render<M: Message + Serialize>(protobuf: bool, status: StatusCode, message: &M) -> Response {
    if protobuf {
        return (status, [(CONTENT_TYPE, PROTOBUF)], message.encode_to_vec()).into_response();
    }
    (status, Json(message)).into_response()
}
