//! Trust in one agent in one domain: how it moved, and how well the agent knows itself.

use axum::Router;

use super::super::Shared;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
}
