//! The case of one thing: everything that ever happened to it, and its proof.

use axum::Router;

use super::super::Shared;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
}
