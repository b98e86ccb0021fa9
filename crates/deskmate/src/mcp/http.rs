//! MCP over Streamable HTTP: `/mcp` with every toolset that agents use, `/mcp/{toolset}` with those that are named.
//! No sessions: every request stands alone and brings its own credential.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use deskmate_core::Error;
use deskmate_core::limits::MCP_BODY_BYTES_MAX;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::handler::Server;
use super::malformed::is_malformed_call;
use super::mount::{Kept, Mount, Shelf};
use crate::app::App;

/// From where requests may come. A request without an `Origin` comes from no browser and passes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowed {
    /// Names in `Host`, with or without a port.
    pub(crate) hosts: Vec<String>,
    /// Values of `Origin`, with scheme and port.
    pub(crate) origins: Vec<String>,
}

impl Allowed {
    pub(super) fn config(&self, stop: CancellationToken) -> StreamableHttpServerConfig {
        StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_allowed_hosts(self.hosts.clone())
            .with_allowed_origins(self.origins.clone())
            .enforce_origin_validation()
            .with_max_request_body_bytes(MCP_BODY_BYTES_MAX)
            .with_cancellation_token(stop)
    }
}

type Service = StreamableHttpService<Server, NeverSessionManager>;

#[derive(Clone)]
struct Http {
    shelf: Shelf,
    allowed: Arc<Allowed>,
    stop: CancellationToken,
    services: Kept<Service>,
}

/// The routes. Open streams end when `stop` is cancelled.
pub(crate) fn router(app: App, allowed: Allowed, stop: CancellationToken) -> Router {
    let http = Http { shelf: Shelf::new(app), allowed: Arc::new(allowed), stop, services: Kept::default() };
    let routes = Router::new();
    #[cfg(feature = "conformance")]
    let routes = routes.merge(super::conformance::router(&http.shelf, &http.allowed, http.stop.clone()));
    routes.route("/mcp", any(all)).route("/mcp/{toolsets}", any(named)).with_state(http)
}

async fn all(State(http): State<Http>, request: Request) -> Response {
    http.serve("", request).await
}

async fn named(State(http): State<Http>, Path(toolsets): Path<String>, request: Request) -> Response {
    http.serve(&toolsets, request).await
}

impl Http {
    async fn serve(&self, toolsets: &str, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        // The address and the query only narrow what is there.
        let read_only = super::caller::query(&parts, "read_only").is_some_and(|value| matches!(value.as_str(), "1" | "true"));
        let mount = match self.shelf.choose(toolsets.split(',').map(str::to_owned).collect(), read_only).await {
            Ok((mount, _)) => mount,
            Err(error) => return not_found(&error),
        };
        let service = self.service(&mount);
        if parts.method != Method::POST {
            return respond(service.handle(Request::from_parts(parts, body)).await);
        }
        let Ok(body) = to_bytes(body, MCP_BODY_BYTES_MAX).await else {
            return (StatusCode::PAYLOAD_TOO_LARGE, format!("Payload Too Large: request body exceeds {MCP_BODY_BYTES_MAX} bytes")).into_response();
        };
        let malformed = is_malformed_call(&body).then(|| (super::caller::of_parts(&parts), body.clone()));
        let is_json = parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        let mut response = respond(service.handle(Request::from_parts(parts, Body::from(body.clone()))).await);
        // rmcp says the same of a body that it cannot read as of one of another kind, and in words alone.
        if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            response = unreadable(&body);
        }
        // What a page of another site sends is refused before it is read, and is nobody's call.
        if let Some((credential, body)) = malformed.filter(|_| response.status() != StatusCode::FORBIDDEN) {
            self.shelf.app().malformed(&credential, &body, false);
        }
        response
    }

    fn service(&self, mount: &Mount) -> Service {
        self.services.get(mount, || {
            let endpoint = self.shelf.endpoint(mount);
            let factory = move || Ok(Server::new(Arc::clone(&endpoint), Caller::Request, false));
            Service::new(factory, Arc::new(NeverSessionManager::default()), self.allowed.config(self.stop.clone()))
        })
    }
}

/// What is answered to a body that is no message of MCP: the words of JSON-RPC, under the id that it has.
fn unreadable(body: &[u8]) -> Response {
    let (code, message) = match serde_json::from_slice::<IgnoredAny>(body) {
        Ok(_) => (-32600, "this is not one request, notification or answer of JSON-RPC 2.0, or it is nested too deeply"),
        Err(_) => (-32700, "this is not JSON"),
    };
    let id = serde_json::from_slice::<Named>(body).ok().and_then(|named| named.id).filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    let said = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
    (StatusCode::BAD_REQUEST, Json(said)).into_response()
}

/// The id of what is otherwise no message.
#[derive(Deserialize)]
struct Named {
    id: Option<Value>,
}

fn not_found(error: &Error) -> Response {
    (StatusCode::NOT_FOUND, Json(json!({ "error": error }))).into_response()
}

/// A response of rmcp as one of axum. Proxies must not hold back what is streamed.
pub(crate) fn respond<B>(response: axum::http::Response<B>) -> Response
where
    B: axum::body::HttpBody<Data = axum::body::Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    let mut response = response.map(Body::new);
    let streamed = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if streamed {
        response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    }
    response
}
