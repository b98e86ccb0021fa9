//! Policies: what is in force, its versions, a draft with its errors in place, and what it would have changed.

use axum::Router;

use super::super::Shared;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
}
