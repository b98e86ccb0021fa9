//! Messages and tasks.
use crate::Result;
use crate::call::Op;
use crate::record::{EventRow, Kind};
pub const EVENTS: &[Kind] = &[];
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
pub(crate) fn erase(_tx: &mut deskmate_db::Tx<'_>, _event: &EventRow) -> Result<()> {
    Ok(())
}
