//! Tasks as a list and as a board, and the files that agents reserved.

use axum::Router;

use super::super::Shared;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
}
