//! Who may call: whoever has the token, from this machine, by one of its own names.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use data_encoding::HEXLOWER;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::server::Fronted;
use crate::http::Allowed;
use crate::mcp::bearer;
use crate::upstream::State as Standing;

/// The largest body of a request.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How short a token may be that somebody chose.
const TOKEN_BYTES_MIN: usize = 16;

/// What callers must know. Only its digest is kept, and digests are compared, so that nothing can be learnt from the time
/// that a comparison takes.
#[derive(Clone)]
pub(crate) struct Token([u8; 32]);

impl Token {
    /// A new token, and its text.
    pub(crate) fn new() -> Result<(Self, String), String> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no randomness: {error}"))?;
        let text = format!("dmf_{}", HEXLOWER.encode(&bytes));
        Ok((Self::of(&text), text))
    }

    /// A token that somebody chose.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < TOKEN_BYTES_MIN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("a token has at least {TOKEN_BYTES_MIN} letters, digits or signs, on one line"));
        }
        Ok(Self::of(text))
    }

    fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }

    fn admits(&self, request: &Request) -> bool {
        let header = request.headers().get(AUTHORIZATION).and_then(|header| header.to_str().ok());
        header.and_then(bearer).is_some_and(|secret| Self::of(secret).0 == self.0)
    }
}

#[derive(Clone)]
struct Door {
    fronted: Arc<Fronted>,
    token: Option<Token>,
}

/// The routes.
pub(super) fn router(fronted: Fronted, token: Option<Token>, address: SocketAddr, stop: &CancellationToken) -> Router {
    let fronted = Arc::new(fronted);
    let allowed = Allowed::new(&[], address.port(), false);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(allowed.hosts().to_vec())
        .with_allowed_origins(allowed.origins())
        .enforce_origin_validation()
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_cancellation_token(stop.clone());
    let made = Arc::clone(&fronted);
    let service = StreamableHttpService::new(move || Ok(Fronted::clone(&made)), Arc::new(NeverSessionManager::default()), config);
    let mcp = any(move |request: Request| {
        let service = service.clone();
        async move { crate::mcp::respond(service.handle(request).await) }
    });
    let door = Door { fronted, token };
    Router::new()
        .route("/mcp", mcp)
        .route("/status", get(status))
        .layer(middleware::from_fn_with_state(door.clone(), check))
        .route("/healthz", get(health))
        .with_state(door)
        .fallback(|| async { (StatusCode::NOT_FOUND, "MCP is served at /mcp\n") })
}

async fn check(State(door): State<Door>, request: Request, next: Next) -> Response {
    if door.token.as_ref().is_some_and(|token| !token.admits(&request)) {
        let why =
            json!({ "error": { "code": "unauthenticated", "message": "this server wants a token", "hint": "send the header `Authorization: Bearer …`" } });
        let mut refusal = (StatusCode::UNAUTHORIZED, axum::Json(why)).into_response();
        refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return refusal;
    }
    next.run(request).await
}

/// Whether the child is there, for whoever watches this process. It needs no token and says nothing else.
async fn health(State(door): State<Door>) -> Response {
    let up = matches!(door.fronted.upstream().status().state, Standing::Ready { .. } | Standing::Resting | Standing::Starting);
    let status = if up { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, axum::Json(json!({ "ok": up }))).into_response()
}

/// How the child stands, with its last lines.
async fn status(State(door): State<Door>) -> Response {
    let upstream = door.fronted.upstream();
    axum::Json(json!({ "status": upstream.status(), "log": upstream.log() })).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(header: Option<&str>) -> Request {
        let mut request = Request::new(axum::body::Body::empty());
        if let Some(header) = header {
            request.headers_mut().insert(AUTHORIZATION, HeaderValue::try_from(header).unwrap());
        }
        request
    }

    #[test]
    fn only_the_token_opens() {
        let (token, text) = Token::new().unwrap();
        assert!(token.admits(&request(Some(&format!("Bearer {text}")))) && token.admits(&request(Some(&format!("bearer  {text}")))));
        for wrong in [None, Some("Bearer "), Some("Bearer dmf_0"), Some("Basic x"), Some(text.as_str())] {
            assert!(!token.admits(&request(wrong)), "{wrong:?}");
        }
        assert!(Token::parse("short").is_err() && Token::parse("two words that are long").is_err());
        assert!(Token::parse("0123456789abcdef\n").unwrap().admits(&request(Some("Bearer 0123456789abcdef"))));
    }
}
