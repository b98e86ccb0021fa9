//! Durable work.
use crate::call::Op;
use crate::record::Kind;
pub const EVENTS: &[Kind] = &[];
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
