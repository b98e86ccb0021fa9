//! The cowork toolset: agents say what they intend, learn what they may do, hand work over, and report what they did.
//! Names, parameters and fields are those of existing cowork clients.
//!
//! Tables: `execution`, `override`, `instruction`.

use crate::call::Op;
use crate::record::Kind;

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
