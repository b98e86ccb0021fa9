//! Erasing what a call holds of what somebody wrote: arguments, reasons, results. That it was made, and what became of it, stays.

use deskmate_db::{Tx, args};

use crate::Result;
use crate::record::{EventRow, repeating};

/// Events of one call.
const EVENTS_MAX: u32 = 100;

/// Erases the call that an event tells of, and answers with the other events whose payloads repeat it.
pub(crate) fn erase(tx: &mut Tx<'_>, event: &EventRow) -> Result<Vec<u64>> {
    let Some(id) = event.subject.strip_prefix("call:") else { return Ok(Vec::new()) };
    tx.execute("update gateway_call set intent = null, arguments = null, note = null, result = null, why = null where id = $1", args![id])?;
    repeating(tx, event, EVENTS_MAX)
}
