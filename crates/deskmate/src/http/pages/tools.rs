//! Every operation as a form, for people who want to learn what agents can do.

use axum::Router;

use super::super::Shared;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
}
