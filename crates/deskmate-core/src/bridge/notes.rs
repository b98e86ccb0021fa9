//! Notes on tasks: progress, answers, remarks.

use deskmate_db::{Row, Tx, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::party::{me, trust};
use super::rows::{TaskRow, fitting};
use super::task_out::{find_visible, parties};
use crate::call::{Actor, Cx, Page, PageIn};
use crate::limits::NOTE_BYTES_MAX;
use crate::record::{Event, Kind};
use crate::{Error, Result, check_text, format_time};

/// A note was added.
pub(super) const NOTED: Kind = Kind { name: "task.noted", says: "An actor added a note or its progress to a task." };

/// Add a note to a task that you gave, got or work on: how far it is, an answer, a remark.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddTaskNote {
    /// The task's id.
    task_id: String,
    /// The text; it may be left out where only `percent` is told.
    #[serde(default)]
    note: String,
    /// How much is done, from 0 to 100.
    percent: Option<u32>,
}

/// A note.
#[derive(Serialize, JsonSchema)]
pub(super) struct NoteOut {
    /// The note's id.
    note_id: String,
    /// Who wrote it, from the writer's credential.
    actor: String,
    /// `person`, `agent` or `system`.
    actor_kind: String,
    /// What a reader may make of the writer, for example `unverified, claims to be code`.
    trust: String,
    /// What was written. Absent when it was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// True when a person erased the text.
    erased: bool,
    /// How much is done, from 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<i64>,
    /// When.
    created_at: String,
}

/// A note that was added.
#[derive(Serialize, JsonSchema)]
pub(super) struct NoteAdded {
    /// The note's id.
    note_id: String,
    /// The task's id.
    task_id: String,
    /// When.
    created_at: String,
}

pub(super) fn add(cx: &mut Cx<'_, '_>, input: AddTaskNote) -> Result<NoteAdded> {
    let (me, now) = (me(cx)?, cx.now());
    check_text("note", &input.note, NOTE_BYTES_MAX)?;
    if input.note.trim().is_empty() && input.percent.is_none() {
        return Err(Error::invalid("note", "must not be empty where percent is not given"));
    }
    if input.percent.is_some_and(|percent| percent > 100) {
        return Err(Error::invalid("percent", "must be between 0 and 100"));
    }
    let task = find_visible(cx, "task_id", &input.task_id, &me)?;
    let (id, kind, verified) = (cx.new_id(), cx.actor.kind.name(), cx.actor.verified);
    cx.tx.execute(
        "insert into task_note (id, task, actor_kind, actor, verified, note, percent, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8)",
        args![id, task.id, kind, me, verified, input.note, input.percent, now],
    )?;
    let audience = parties(cx, &task)?;
    let mut event = Event::new(NOTED, task.subject()).fact("task", task.id.as_str()).fact("note", id.as_str());
    if let Some(percent) = input.percent {
        event = event.fact("percent", percent);
    }
    cx.emit(event.payload(json!({ "note": input.note })).audience(audience))?;
    Ok(NoteAdded { note_id: id, task_id: task.id, created_at: format_time(now) })
}

/// Keeps what somebody wrote elsewhere on a task as their note, because it is about to be replaced there.
pub(super) fn keep(cx: &mut Cx<'_, '_>, task: &TaskRow, writer: &Actor, text: &str) -> Result<()> {
    let (id, now) = (cx.new_id(), cx.now());
    cx.tx.execute(
        "insert into task_note (id, task, actor_kind, actor, verified, note, percent, created_at) values ($1, $2, $3, $4, $5, $6, null, $7)",
        args![id, task.id, writer.kind.name(), writer.id, writer.verified, text, now],
    )?;
    let audience = parties(cx, task)?;
    let event = Event::new(NOTED, task.subject()).fact("task", task.id.as_str()).fact("note", id.as_str()).fact("kept_of", writer.id.as_str());
    cx.emit(event.payload(json!({ "note": text })).audience(audience))
}

pub(super) const OF_TASK: &str = "select id, actor, actor_kind, verified, note, percent, created_at from task_note \
     where task = $1 and (created_at, id) < ($2, $3) order by created_at desc, id desc limit $4";

/// The notes on a task, newest first.
pub(super) fn notes_of(tx: &mut Tx<'_>, task: &str, page: &PageIn) -> Result<Page<NoteOut>> {
    let (created_at, id) = page.after.clone().unwrap_or((i64::MAX, String::new()));
    let rows = tx.query(OF_TASK, args![task, created_at, id, page.look_ahead()])?;
    let notes = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
    let sizes: Vec<i64> = notes.iter().map(|(_, note)| note.note.as_ref().map_or(0, |text| i64::try_from(text.len()).unwrap_or(i64::MAX)) + 256).collect();
    let limit = fitting(&sizes).min(page.limit);
    let page = Page::cut(notes, &PageIn { limit, after: None }, |(created_at, note)| (*created_at, note.note_id.clone()));
    Ok(Page { items: page.items.into_iter().map(|(_, note)| note).collect(), next_cursor: page.next_cursor })
}

fn read(row: &Row) -> Result<(i64, NoteOut)> {
    let (actor, actor_kind, note): (String, String, Option<String>) = (row.get(1)?, row.get(2)?, row.get(4)?);
    let created_at = row.get(6)?;
    let trust = trust(&actor_kind, &actor, row.get(3)?);
    let note =
        NoteOut { note_id: row.get(0)?, actor, actor_kind, trust, erased: note.is_none(), note, percent: row.get(5)?, created_at: format_time(created_at) };
    Ok((created_at, note))
}
