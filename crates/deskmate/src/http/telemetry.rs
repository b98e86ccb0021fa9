//! What telemetry has to do with HTTP: the figures at `/metrics`, and two looks at every request: to which trace it belongs,
//! and whether its answer is a live stream. The looks are taken only where somebody wants to know.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use deskmate_core::backlog::Backlog;
use deskmate_core::call::{Call, Outcome, Surface};
use deskmate_core::{Code, Error, Result};
use serde_json::json;

use super::rest::Failure;
use super::{Shared, credential};
use crate::telemetry::{Figures, Parent, Telemetry, within};
use crate::until_sent;

/// The operation whose right it takes to read the figures, and which brings those that are in the store.
const OPERATION: &str = "desk_backlog";

/// The figures in Prometheus' text format.
pub(super) async fn serve(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    match text(&shared, &method, &uri, &headers).await {
        Ok((kind, text)) => ([(CONTENT_TYPE, kind)], text).into_response(),
        Err(error) => Failure(error).into_response(),
    }
}

async fn text(shared: &Shared, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(String, String)> {
    let telemetry = &shared.app.telemetry;
    let Some(figures) = &telemetry.figures else {
        let off = Error::not_found("figures for Prometheus are off");
        return Err(off.hint("write `telemetry: { prometheus: true }` into deskmate.yaml and start the desk again"));
    };
    let credential = credential::of(shared, method, uri, headers, &[]).await?;
    let call = Call { credential, surface: Surface::Rest, operation: OPERATION.to_owned(), input: json!({}) };
    let (Outcome::Done(value) | Outcome::NotYet(value)) = shared.app.call(call).await?.outcome;
    let backlog: Backlog = serde_json::from_value(value).map_err(|error| ours(&error))?;
    figures.text(&backlog, shared.app.desk.db.commits(), telemetry.spans.as_ref()).map_err(|error| ours(&error))
}

fn ours(error: &dyn std::fmt::Display) -> Error {
    tracing::error!(%error, "the figures could not be written");
    Error::new(Code::Internal, "the figures could not be written")
}

/// Adds the looks that are wanted.
pub(super) fn watched(mut router: Router, telemetry: &Telemetry) -> Router {
    if let Some(figures) = &telemetry.figures {
        router = router.layer(middleware::from_fn_with_state(Arc::clone(figures), count_streams));
    }
    if telemetry.spans.is_some() {
        router = router.layer(middleware::from_fn(join_trace));
    }
    router
}

async fn count_streams(State(figures): State<Arc<Figures>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let streamed = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if streamed { until_sent::hold(response, figures.stream()) } else { response }
}

async fn join_trace(request: Request, next: Next) -> Response {
    within(Parent::of(request.headers()), next.run(request)).await
}
