//! What an agent has earned in a domain: a score that people's answers move, and that fades when nothing happens.
//!
//! Scores are whole billionths ([`Points`]), so that ten approvals from 0.3 are 0.5 and not a hair less. Every change is
//! an event from which the score can be recomputed.
//!
//! Table: `trust`.

mod points;

use crate::call::Op;
use crate::record::Kind;

pub use points::Points;

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
