//! People's edits win: each mutable field of a shared record keeps who set it last, and what a person set an agent does
//! not overwrite. Its write becomes a request that shows both values.
//!
//! Table: `field_edit`.

use crate::call::Op;
use crate::record::Kind;

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
