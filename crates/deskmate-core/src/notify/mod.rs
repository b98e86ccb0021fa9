//! Telling people that something waits: a job for each message to the outside, tried again until it is delivered, and
//! never in the way of a decision.

use crate::call::Op;
use crate::record::Kind;

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
