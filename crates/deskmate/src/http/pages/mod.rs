//! What people see: pages made here out of what operations answer, and kept up to date by topics of the record. They hold
//! no rules. What a person does on them is a call of an operation, signed by the browser's key.

mod account;
mod agents;
mod assets;
mod case;
mod compliance;
mod decide;
mod design;
mod event;
mod gateway;
mod inbox;
mod judgement;
mod messages;
mod notifications;
mod parties;
mod passkeys;
mod people;
mod policies;
mod record;
mod request;
mod session;
mod shell;
mod task;
mod tasks;
mod tools;
mod topics;
mod tour;
mod trust;
mod ui;
mod visit;
mod workspace;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use deskmate_core::Error;
use tower_http::compression::CompressionLayer;

use super::{Shared, rest};
use visit::{Fault, in_shell};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' http://deskmate.localhost:*; manifest-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

pub(super) fn routes(shared: &Shared) -> Router<Shared> {
    Router::new()
        .route("/", get(inbox::serve))
        .route("/requests/{id}", get(request::serve))
        .merge(agents::routes())
        .merge(trust::routes())
        .merge(compliance::routes())
        .merge(policies::routes())
        .merge(record::routes())
        .merge(case::routes())
        .merge(messages::routes())
        .merge(tasks::routes())
        .merge(workspace::routes())
        .merge(gateway::routes())
        .merge(tools::routes())
        .merge(people::routes())
        .merge(passkeys::routes())
        .merge(design::routes())
        .route("/decide", get(decide::serve).post(decide::answer))
        .route("/claim", get(session::claim))
        .route("/join", get(session::join))
        .route("/sign-in", get(session::sign_in))
        .route("/session/claim", post(|state, body| session::open(state, "desk_claim", body)))
        .route("/session/join", post(|state, body| session::open(state, "desk_accept_invitation", body)))
        .route("/session/sign-in", post(|state, body| session::open(state, "desk_sign_in", body)))
        .route("/assets/{version}/{name}", get(assets::serve))
        .layer(middleware::from_fn_with_state(shared.clone(), keep_the_shell))
        .layer(CompressionLayer::new())
        .route("/live", get(topics::serve))
        .layer(middleware::from_fn(keep_to_ourselves))
}

/// No page of ours runs, shows or sends anything of others. Browsers heed this for what they show, not for what a page loads: with each
/// script and style it would be a tenth of what the first page weighs.
async fn keep_to_ourselves(request: Request, next: Next) -> Response {
    to_ourselves(next.run(request).await)
}

/// What is wrong with a page is told where the page would be.
async fn keep_the_shell(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let response = next.run(Request::from_parts(parts.clone(), body)).await;
    in_shell(&shared, parts, response).await
}

/// There is nothing at an address: a page for whoever reads pages, and for programs an error like any other.
pub(super) async fn missing(State(shared): State<Shared>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let reads_pages = parts.headers.get(ACCEPT).and_then(|kinds| kinds.to_str().ok()).is_some_and(|kinds| kinds.contains("text/html"));
    if !reads_pages {
        return rest::not_found(parts.uri).await.into_response();
    }
    let error = Error::not_found(format!("there is nothing at {}", parts.uri.path()));
    to_ourselves(in_shell(&shared, parts, Fault::from(error).into_response()).await)
}

fn to_ourselves(mut response: Response) -> Response {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if kind.is_none_or(|kind| ![assets::SCRIPT, assets::STYLE].iter().any(|part| part.as_bytes() == kind)) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    }
    response
}
