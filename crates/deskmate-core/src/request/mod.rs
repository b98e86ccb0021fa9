//! Everything that waits for a person: one table, one inbox, one state machine. What was approved is bound by a digest
//! to a single-use grant, and what was done is compared with it.
//!
//! - [`judge`] is the one way in which every capability asks what an intended act may do.
//! - [`submit`] makes a request of it, [`begin`] uses its grant up, [`finish`] says what came of it.
//! - People decide with the operations of this folder, in the toolset `desk`; agents see their own through `cowork`.
//!
//! Tables: `request`, `request_count`, `vote`, `request_note`, `act_grant`, `standing_approval`.

mod digest;
mod flow;
mod model;

use crate::call::Op;
use crate::record::Kind;

pub use digest::Bound;
pub use flow::{
    answer, approve, ask, begin, cancel, denied, escalate_due, expire_due, find, finish, for_people, judge, of_requester, reject, submit, supersede, withdraw,
};
pub use model::{Begun, New, OWNERS, Outcome, Packet, Permit, Priority, Request, RequestKind, Requester, State, Stop, StopReason};

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
