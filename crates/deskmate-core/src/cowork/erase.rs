//! Erasing texts from the rows of this capability, when a person erases the event that brought them.

use deskmate_db::{Tx, args};
use serde_json::Value;

use super::{correction, execution, instruction};
use crate::Result;
use crate::record::EventRow;

/// Erases what an event's payload repeats in rows, and the kept answers of those who may have read it.
pub(crate) fn erase(tx: &mut Tx<'_>, event: &EventRow) -> Result<()> {
    let fact = |name: &str| event.facts.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = event.kind.as_str();
    if kind == execution::LOGGED.name {
        tx.execute("update execution set action = null, reasoning = null, body = null where id = $1", args![fact("execution")])?;
    } else if kind == correction::OVERRIDDEN.name {
        tx.execute("update override set description = null where id = $1", args![fact("override")])?;
    } else if kind == instruction::INSTRUCTED.name {
        tx.execute("update instruction set resolution = null, instructions = null where id = $1", args![fact("instruction")])?;
    } else {
        return Ok(());
    }
    for reader in event.audience.iter().map(String::as_str).chain([event.actor.as_str(), fact("agent")]) {
        for kind in ["agent", "person"] {
            tx.execute("delete from idempotency where actor = $1", args![format!("{kind}:{reader}")])?;
        }
    }
    Ok(())
}
