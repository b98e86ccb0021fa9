//! Erasing what somebody wrote. The event stays, its proof stays, the text goes.

use deskmate_db::args;

use super::entry::{Event, Kind};
use super::tree::signed;
use crate::call::Cx;
use crate::{Error, Result};

/// A payload was erased.
pub const ERASED: Kind = Kind { name: "record.payload.erased", says: "A person erased the payload of an event, with a reason." };

/// Erases the payload of one event and says so in the record. What else holds the text is the caller's to erase.
pub(crate) fn erase(cx: &mut Cx<'_, '_>, seq: u64, reason: &str) -> Result<()> {
    let changed = cx.tx.execute("update event_payload set salt = null, payload = null where seq = $1 and payload is not null", args![signed(seq)])?;
    if changed == 0 {
        return Err(Error::not_found(format!("event {seq} has no payload, or it was erased before")));
    }
    cx.emit(Event::new(ERASED, format!("event:{seq}")).fact("seq", seq).payload(serde_json::json!({ "reason": reason })))
}
