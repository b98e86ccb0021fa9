//! The record: the timeline, one event with its proof, verifying, exporting, erasing.

use axum::Router;

use super::super::Shared;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
}
