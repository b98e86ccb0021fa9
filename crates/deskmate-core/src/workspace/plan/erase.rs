//! Erasing what a plan holds of what somebody wrote: names, contents, reasons. That there was a plan, and what became of it, stays.

use deskmate_db::{Tx, args};

use crate::Result;
use crate::record::{EventRow, repeating};

/// Events of one plan that are looked through; each tells of some hundred steps.
const EVENTS_MAX: u32 = 20_000;

/// Erases the plan that an event tells of, and answers with the other events whose payloads repeat it. A plan that was not
/// done yet cannot be done any more.
pub(crate) fn erase(tx: &mut Tx<'_>, event: &EventRow) -> Result<Vec<u64>> {
    let Some(id) = event.subject.strip_prefix("plan:") else { return Ok(Vec::new()) };
    tx.execute("update plan set ask = null, summary = null, note = null where id = $1", args![id])?;
    tx.execute("update plan_part set body = null, outcomes = null where plan = $1", args![id])?;
    repeating(tx, event, EVENTS_MAX)
}
