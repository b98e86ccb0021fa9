//! Erasing texts from the rows of this capability, when a person erases the event that brought them.

use deskmate_db::{Tx, args};
use serde_json::Value;

use super::{edits, notes, reservations, send, tasks, update};
use crate::Result;
use crate::record::{EventRow, find_event, still_has};

/// Erases what an event's payload repeats in rows, and the kept answers of those who may have read it. Answers with the
/// later events whose payloads repeat it.
pub(crate) fn erase(tx: &mut Tx<'_>, event: &EventRow) -> Result<Vec<u64>> {
    let fact = |name: &str| event.facts.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = event.kind.as_str();
    if kind == send::SENT.name {
        tx.execute("update message set content = null where id = $1", args![fact("message")])?;
    } else if kind == tasks::CREATED.name || kind == edits::TASK_EDITED.name {
        // What was written in its place later is another event's to erase.
        let said = |field: &str| event.payload.as_ref().and_then(|payload| payload.get(field)).and_then(Value::as_str);
        if still_has(tx, "select title from task where id = $1", fact("task"), said("title"))? {
            tx.execute("update task set title = null, erased = true where id = $1", args![fact("task")])?;
        }
        if still_has(tx, "select description from task where id = $1", fact("task"), said("description"))? {
            tx.execute("update task set description = null, erased = true where id = $1", args![fact("task")])?;
        }
    } else if kind == update::UPDATED.name {
        // A later result stands in its place, and is another event's to erase.
        let result = event.payload.as_ref().and_then(|payload| payload.get("result")).and_then(Value::as_str);
        if let Some(result) = result {
            if still_has(tx, "select result from task where id = $1", fact("task"), Some(result))? {
                tx.execute("update task set result = null, erased = true where id = $1", args![fact("task")])?;
            }
            forget_answers(tx, event)?;
            return kept_as_notes(tx, &event.subject, result);
        }
    } else if kind == notes::NOTED.name {
        tx.execute("update task_note set note = null where id = $1", args![fact("note")])?;
    } else if kind == reservations::RESERVED.name {
        tx.execute("update reservation set paths = null, reason = null where id = $1", args![fact("reservation")])?;
        forget_answers(tx, event)?;
        return released(tx, &event.subject);
    } else {
        return Ok(Vec::new());
    }
    forget_answers(tx, event)?;
    Ok(Vec::new())
}

/// Erases the notes as which a person's result was kept when an agent wrote its own. Answers with their events.
fn kept_as_notes(tx: &mut Tx<'_>, subject: &str, result: &str) -> Result<Vec<u64>> {
    let rows = tx.query(
        "select e.seq from event e join event_payload p on p.seq = e.seq where e.subject = $1 and e.kind = $2 and p.payload is not null order by e.seq",
        args![subject, notes::NOTED.name],
    )?;
    let mut kept = Vec::new();
    for row in &rows {
        let seq = u64::try_from(row.get::<i64>(0)?).unwrap_or(0);
        let Some(event) = find_event(tx, seq)? else { continue };
        let note = event.facts.get("note").and_then(Value::as_str).filter(|_| event.facts.contains_key("kept_of"));
        if let Some(note) = note
            && still_has(tx, "select note from task_note where id = $1", note, Some(result))?
        {
            tx.execute("update task_note set note = null where id = $1", args![note])?;
            kept.push(seq);
        }
    }
    Ok(kept)
}

/// The events that tell of the release of a reservation: they name its paths again.
fn released(tx: &mut Tx<'_>, subject: &str) -> Result<Vec<u64>> {
    let rows = tx.query(
        "select e.seq from event e join event_payload p on p.seq = e.seq where e.subject = $1 and e.kind = $2 and p.payload is not null order by e.seq",
        args![subject, reservations::RELEASED.name],
    )?;
    rows.iter().map(|row| Ok(u64::try_from(row.get::<i64>(0)?).unwrap_or(0))).collect()
}

/// Answers are kept for retries, and some repeat what was read.
fn forget_answers(tx: &mut Tx<'_>, event: &EventRow) -> Result<()> {
    let worker = match event.facts.get("task").and_then(Value::as_str) {
        Some(task) => tx.optional("select worker from task where id = $1", args![task])?.map(|row| row.get::<Option<String>>(0)).transpose()?.flatten(),
        None => None,
    };
    for reader in event.audience.iter().chain(worker.iter()) {
        for kind in ["agent", "person"] {
            tx.execute("delete from idempotency where actor = $1", args![format!("{kind}:{reader}")])?;
        }
    }
    Ok(())
}
