//! Agents: who they are, what they may do, and the switch that stops one.

use axum::Router;

use super::super::Shared;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
}
