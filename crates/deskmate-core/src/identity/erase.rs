//! Erasing texts from the rows of this capability, when a person erases the event that brought them.

use deskmate_db::{Tx, args};
use serde_json::Value;

use super::rows::{PERSON, PersonRow};
use super::{agents, people};
use crate::record::{EventRow, still_has};
use crate::{Error, Result};

/// Erases what an event's payload repeats in rows. The name of somebody who can still sign in stays, because it is what
/// they sign in with.
pub(crate) fn erase(tx: &mut Tx<'_>, event: &EventRow) -> Result<()> {
    let fact = |name: &str| event.facts.get(name).and_then(Value::as_str).unwrap_or_default();
    if event.kind == agents::REGISTERED.name || event.kind == agents::DESCRIBED.name {
        let note = event.payload.as_ref().and_then(|payload| payload.get("note")).and_then(Value::as_str);
        // A note that was written since then is another event's.
        if still_has(tx, "select note from agent where id = $1", fact("agent"), note)? {
            tx.execute("update agent set note = '' where id = $1", args![fact("agent")])?;
        }
    } else if event.kind == people::ADDED.name {
        let id = fact("person");
        let person = tx.optional(PERSON, args![id])?.map(|row| PersonRow::read(&row)).transpose()?;
        if person.is_some_and(|person| person.state == "active") {
            return Err(Error::conflict("this is the name of somebody who signs in with it").hint("disable the person first"));
        }
        tx.execute("update person set name = $2 where id = $1", args![id, format!("erased {id}")])?;
    }
    Ok(())
}
