//! How much an agent may do: rolling windows that are exact under concurrency, budgets for a day, and the kill switch.
//!
//! Tables: `meter`, `meter_use`, `budget_day`, `pause`.

use crate::call::Op;
use crate::record::Kind;

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
