//! Erasing what somebody wrote. The event stays, its proof stays, the text goes.

use deskmate_db::{Tx, args};

use super::entry::{Body, Event, Kind, commitment};
use super::tree::signed;
use crate::call::Cx;
use crate::{Error, Result, hex, redact};

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

/// Whether a row still has the text of which an event told, less what was taken out of it. The query finds it by an id.
pub(crate) fn still_has(tx: &mut Tx<'_>, sql: &'static str, id: &str, told: Option<&str>) -> Result<bool> {
    let Some(told) = told else { return Ok(false) };
    let text: Option<String> = tx.optional(sql, args![id])?.map(|row| row.get(0)).transpose()?.flatten();
    Ok(text.is_some_and(|text| redact::is_left_of(told, &text)))
}

/// Whether what is sealed of an event is a commitment to its payload, so that the payload can go.
pub(crate) fn is_committed(tx: &mut Tx<'_>, seq: u64) -> Result<bool> {
    let row = tx.optional("select e.body, p.salt, p.payload from event e join event_payload p on p.seq = e.seq where e.seq = $1", args![signed(seq)])?;
    let Some(row) = row else { return Ok(false) };
    let (body, salt, payload): (String, Option<Vec<u8>>, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let sealed = serde_json::from_str::<Body>(&body).ok().and_then(|body| body.payload);
    Ok(match (sealed, salt, payload) {
        (Some(sealed), Some(salt), Some(payload)) => sealed == hex(&commitment(&salt, &payload)) && !body.contains(&payload),
        _ => false,
    })
}
