//! The HTTP surface: REST and OpenAPI made from the registry, the live stream, health, figures, the pages, and MCP.
//! It parses, finds the credential, calls, and renders; it holds no rules.

mod connections;
mod coworker;
mod credential;
mod guard;
mod hook;
mod listen;
mod openapi;
mod pages;
mod receive;
mod rest;
mod serve;
mod stream;
mod telemetry;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{get, post};
use deskmate_core::limits::{HOOK_BYTES_MAX, INPUT_BYTES_MAX};

use crate::activity::{self, Standing};
use crate::app::App;

pub(crate) use connections::Bounds;
pub(crate) use guard::Allowed;
pub(crate) use listen::{Bound, bind_private, serve_tcp, serve_unix};
pub(crate) use openapi::document as openapi_document;
pub(crate) use rest::UNVERIFIED;

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) app: App,
    pub(crate) allowed: std::sync::Arc<Allowed>,
    pub(crate) signatures: credential::Seen,
    pub(crate) standing: Standing,
}

/// All routes, with `mcp` mounted beside them; and those of the door that serves the jobs API alone.
pub(crate) fn routers(app: App, allowed: Allowed, standing: Standing, mcp: Router) -> (Router, Router) {
    let shared = Shared { app, allowed: std::sync::Arc::new(allowed), signatures: credential::Seen::default(), standing };
    let activity = shared.standing.activity.clone();
    let watching = shared.app.telemetry.clone();
    let router = Router::new()
        .route("/healthz", get(rest::healthz))
        .route("/readyz", get(rest::readyz))
        .route("/metrics", get(telemetry::serve))
        .route("/api/openapi.json", get(openapi::serve))
        .route("/api/stream", get(stream::serve))
        .route("/api/{operation}", get(rest::call_get).post(rest::call_post))
        .route("/hook", post(hook::serve).layer(DefaultBodyLimit::max(HOOK_BYTES_MAX)))
        .nest("/api/coworker", coworker::routes())
        .merge(pages::routes(&shared))
        .fallback(pages::missing);
    let programs = coworker::routes().nest("/api/coworker", coworker::routes()).fallback(rest::not_found);
    let guarded = |routes: Router<Shared>, beside: Router| {
        let router = routes
            .with_state(shared.clone())
            .layer(DefaultBodyLimit::max(INPUT_BYTES_MAX))
            .merge(beside)
            .layer(middleware::from_fn_with_state(shared.clone(), guard::check));
        telemetry::watched(router, &watching).layer(middleware::from_fn_with_state(activity.clone(), activity::watch))
    };
    (guarded(router, mcp), guarded(programs, Router::new()))
}
