//! How much an agent may do: rolling windows that are exact under concurrency, budgets for a day, and the kill switch.
//!
//! [`gauge`] reads all that a decision needs in two small queries; [`take`] uses up room in the transaction of the act.
//! Tables: `meter`, `meter_use`, `probe`, `pause`.

mod limit;

use crate::call::Op;
use crate::record::Kind;

pub use limit::{Full, Gauge, Room, Taken, Why, counters, denied, gauge, paused, take, take_from};

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
