//! Who calls: a connection says it once, an HTTP request says it itself.

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use deskmate_core::call::Credential;
use rmcp::RoleServer;
use rmcp::model::Extensions;
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::telemetry::{Parent, TRACEPARENT};

/// The header by which an agent names itself in open mode.
pub(crate) const AGENT_HEADER: &str = "x-deskmate-agent";

/// Where the credential of a call comes from.
#[derive(Clone)]
pub(crate) enum Caller {
    /// The connection was opened with it.
    Connection(Credential),
    /// Each HTTP request brings its own.
    Request,
}

impl Caller {
    /// The credential of one request.
    pub(super) fn credential(&self, context: &RequestContext<RoleServer>) -> Credential {
        match self {
            Self::Connection(credential) => credential.clone(),
            Self::Request => of_request(&context.extensions),
        }
    }
}

fn of_request(extensions: &Extensions) -> Credential {
    extensions.get::<Parts>().map_or(Credential::Nobody, of_parts)
}

/// The credential that an HTTP request brings.
pub(super) fn of_parts(parts: &Parts) -> Credential {
    // A header that is there but cannot be read must not turn its sender into somebody who only needs a name.
    if let Some(header) = parts.headers.get(AUTHORIZATION) {
        let secret = header.to_str().ok().and_then(bearer).unwrap_or_default();
        return Credential::Secret { secret: secret.to_owned(), proved: false };
    }
    let header = parts.headers.get(AGENT_HEADER).and_then(|name| name.to_str().ok()).map(str::to_owned);
    Credential::Named(header.or_else(|| query(parts, "agent")))
}

/// The trace that a request belongs to: by its HTTP header, or by the metadata that MCP has for it.
pub(super) fn parent(context: &RequestContext<RoleServer>) -> Option<Parent> {
    let by_header = context.extensions.get::<Parts>().and_then(|parts| Parent::of(&parts.headers));
    by_header.or_else(|| context.meta.get(TRACEPARENT).and_then(Value::as_str).and_then(Parent::parse))
}

/// The secret of an Authorization header.
pub(crate) fn bearer(header: &str) -> Option<&str> {
    let (scheme, secret) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

/// A value of the query that needs no decoding: names of agents are plain, and anything else is not one.
pub(super) fn query(parts: &Parts, key: &str) -> Option<String> {
    let pairs = parts.uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| *name == key).map(|(_, value)| value.to_owned()).next()
}
