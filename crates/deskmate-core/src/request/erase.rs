//! Erasing texts from the rows of this capability, when a person erases the event that brought them.

use deskmate_db::{Tx, args};
use serde_json::Value;

use super::events::{ANSWERED, ASKED, CREATED, DELEGATED, EDITED, STANDING};
use crate::Result;
use crate::record::{EventRow, still_has};

/// Erases what an event's payload repeats in rows, and the kept answers of those who may have read it.
pub(crate) fn erase(tx: &mut Tx<'_>, event: &EventRow) -> Result<()> {
    let fact = |name: &str| event.facts.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = event.kind.as_str();
    if kind == CREATED.name || kind == EDITED.name {
        // What was proposed and what a person made of it repeat each other.
        tx.execute(
            "update request set title = null, act = null, decision = null, packet = null, sealed = null, sealed_key = null where id = $1",
            args![fact("request")],
        )?;
    } else if kind == ASKED.name || kind == ANSWERED.name {
        tx.execute("update request_note set note = null where id = $1", args![fact("note")])?;
    } else if kind == DELEGATED.name {
        for row in tx.query("select id from request_note where request = $1 and kind = 'delegation' order by id", args![fact("request")])? {
            let note: String = row.get(0)?;
            if still_has(tx, "select note from request_note where id = $1", &note, text(event, "note"))? {
                tx.execute("update request_note set note = null where id = $1", args![note])?;
            }
        }
    } else if kind == STANDING.name {
        tx.execute("update standing_approval set pattern = '' where id = $1", args![fact("standing_approval")])?;
    } else if kind.starts_with("request.") {
        // A later reason stands in its place, and is another event's to erase.
        for name in ["reason", "message"] {
            if still_has(tx, "select reason from request where id = $1", fact("request"), text(event, name))? {
                tx.execute("update request set reason = null where id = $1", args![fact("request")])?;
            }
        }
    } else {
        return Ok(());
    }
    forget_answers(tx, event)
}

fn text<'e>(event: &'e EventRow, name: &str) -> Option<&'e str> {
    event.payload.as_ref().and_then(|payload| payload.get(name)).and_then(Value::as_str)
}

/// Answers are kept for retries, and some repeat what was read: those of the people who decide here, and of the requester.
fn forget_answers(tx: &mut Tx<'_>, event: &EventRow) -> Result<()> {
    for reader in &event.audience {
        for kind in ["agent", "person"] {
            tx.execute("delete from idempotency where actor = $1", args![format!("{kind}:{reader}")])?;
        }
    }
    for row in tx.query("select id from person order by created_at, id limit 1000", &[])? {
        tx.execute("delete from idempotency where actor = $1", args![format!("person:{}", row.get::<String>(0)?)])?;
    }
    Ok(())
}
