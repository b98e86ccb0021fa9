//! Everything that waits for a person: one table, one inbox, one state machine. What was approved is bound by a digest
//! to a single-use grant, and what was done is compared with it.
//!
//! Tables: `request`, `request_count`, `vote`, `request_note`, `act_grant`, `standing_approval`.

use crate::call::Op;
use crate::record::Kind;

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
