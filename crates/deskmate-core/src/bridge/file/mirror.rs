//! The desk's messages and tasks as the file should show them, and which of them the record has news about.

use std::collections::BTreeSet;

use deskmate_db::{Tx, args};
use serde_json::Value;

use super::known::{self, Known};
use super::{Columns, FileMessage, FileRow, FileTask, Table};
use crate::bridge::party::GROUP_PREFIX;
use crate::bridge::retention::PRUNED;
use crate::bridge::rows;
use crate::call::Cx;
use crate::limits::RECIPIENTS_MAX;
use crate::record::{ERASED, find_event, named_after};
use crate::{Result, format_time};

/// A row as the file should show it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The row. Its id is a proposal until [`name`] has seen it.
    pub row: FileRow,
    /// Other ways in which the file may name who sent it and who got it.
    pub(super) senders: Vec<String>,
    pub(super) recipients: Vec<String>,
    /// The message or task.
    pub(super) id: String,
    /// The member of a group whose copy it is; empty otherwise.
    pub(super) copy_of: String,
    named: bool,
}

/// Everything that the file should show of one message or task. Nothing where the desk no longer keeps it.
pub fn shown(tx: &mut Tx<'_>, table: Table, id: &str) -> Result<Vec<Shown>> {
    match table {
        Table::Messages => messages(tx, id),
        Table::Tasks => Ok(task(tx, id)?.into_iter().collect()),
    }
}

struct Delivery {
    recipient: String,
    name: Option<String>,
    read: bool,
}

pub(super) const DELIVERIES: &str = "select d.recipient, p.name, d.acknowledged_at from delivery d left join person p on p.id = d.recipient \
     where d.message = $1 order by d.recipient limit $2";

fn deliveries(tx: &mut Tx<'_>, message: &str) -> Result<Vec<Delivery>> {
    let bound = i64::try_from(RECIPIENTS_MAX).unwrap_or(i64::MAX);
    let rows = tx.query(DELIVERIES, args![message, bound])?;
    rows.iter().map(|row| Ok(Delivery { recipient: row.get(0)?, name: row.get(1)?, read: row.get::<Option<i64>>(2)?.is_some() })).collect()
}

fn messages(tx: &mut Tx<'_>, id: &str) -> Result<Vec<Shown>> {
    let Some(message) = rows::find_message(tx, id, "")? else { return Ok(Vec::new()) };
    let sender = message.sender_name.clone().unwrap_or_else(|| message.sender.clone());
    let make = |recipient: &str, read: bool| FileMessage {
        sender: sender.clone(),
        recipient: recipient.to_owned(),
        content: message.content.clone().unwrap_or_default(),
        read,
        created_at: format_time(message.created_at),
    };
    let deliveries = deliveries(tx, id)?;
    let group = message.to_name.strip_prefix(GROUP_PREFIX);
    let mut all = Vec::with_capacity(deliveries.len());
    for delivery in &deliveries {
        let recipient = delivery.name.as_deref().unwrap_or(&delivery.recipient);
        let copy_of = if group.is_some() { delivery.recipient.as_str() } else { "" };
        let row = Columns::Message(make(recipient, delivery.read));
        all.push(Shown {
            recipients: vec![recipient.to_owned(), delivery.recipient.clone()],
            senders: vec![sender.clone(), message.sender.clone()],
            ..named(tx, Table::Messages, id, copy_of, row)?
        });
    }
    // Who wrote a row to a whole group finds it again as it was, beside the members' copies.
    if let Some(group) = group
        && let Some(spelled) = known::spelled(tx, Table::Messages, id, "")?
    {
        let row = Columns::Message(make(&message.to_name, deliveries.iter().all(|delivery| delivery.read)));
        let row = FileRow { id: spelled, columns: row, has_result: true };
        let recipients = vec![message.to_name.clone(), group.to_owned()];
        all.push(Shown { row, senders: vec![sender.clone(), message.sender.clone()], recipients, id: id.to_owned(), copy_of: String::new(), named: true });
    }
    Ok(all)
}

fn task(tx: &mut Tx<'_>, id: &str) -> Result<Option<Shown>> {
    let Some(task) = rows::find_task(tx, id)? else { return Ok(None) };
    let person: Option<String> = tx.optional("select name from person where id = $1", args![task.recipient])?.map(|row| row.get(0)).transpose()?;
    let sender = task.sender_name.clone().unwrap_or_else(|| task.sender.clone());
    let recipient = person.unwrap_or_else(|| task.recipient.clone());
    let group = task.recipient.strip_prefix(GROUP_PREFIX).map(str::to_owned);
    let columns = Columns::Task(FileTask {
        sender: sender.clone(),
        recipient: recipient.clone(),
        title: task.title.clone().unwrap_or_default(),
        description: task.description.clone().unwrap_or_default(),
        status: task.stored.name().to_owned(),
        result: task.result.clone(),
        created_at: format_time(task.created_at),
        updated_at: Some(format_time(task.updated_at)),
    });
    let recipients = [Some(recipient), Some(task.recipient), group].into_iter().flatten().collect();
    Ok(Some(Shown { senders: vec![sender, task.sender], recipients, ..named(tx, Table::Tasks, id, "", columns)? }))
}

/// A row under the id that the file has it under, or a proposal.
fn named(tx: &mut Tx<'_>, table: Table, id: &str, copy_of: &str, columns: Columns) -> Result<Shown> {
    let spelled = known::spelled(tx, table, id, copy_of)?;
    let named = spelled.is_some();
    let file_id = spelled.unwrap_or_else(|| if copy_of.is_empty() { id.to_owned() } else { format!("{id}#{copy_of}") });
    let row = FileRow { id: file_id, columns, has_result: true };
    Ok(Shown { row, senders: Vec::new(), recipients: Vec::new(), id: id.to_owned(), copy_of: copy_of.to_owned(), named })
}

/// Gives rows their ids in the file for good. It comes before the file is written, so that no row that the desk wrote
/// is ever taken for somebody else's.
pub fn name(cx: &mut Cx<'_, '_>, mut rows: Vec<Shown>) -> Result<Vec<Shown>> {
    for shown in rows.iter_mut().filter(|shown| !shown.named) {
        let table = shown.row.table();
        if let Some(spelled) = known::spelled(cx.tx, table, &shown.id, &shown.copy_of)? {
            shown.row.id = spelled;
        } else {
            if known::find(cx.tx, table, &shown.row.id)?.is_some() {
                // Somebody else's row has this id.
                shown.row.id = cx.new_id();
            }
            known::remember(cx.tx, table, &Known { id: shown.id.clone(), recipient: shown.copy_of.clone(), spelled: shown.row.id.clone() })?;
        }
        shown.named = true;
    }
    Ok(rows)
}

impl Shown {
    /// Whether the row has its id for good.
    pub fn is_named(&self) -> bool {
        self.named
    }
}

pub(super) const MESSAGES: &str = "select id from message where id > $1 order by id limit $2";
pub(super) const TASKS: &str = "select id from task where id > $1 order by id limit $2";

/// A page of everything that the file should show, and where to go on.
pub fn page(tx: &mut Tx<'_>, table: Table, after: &str, limit: u32) -> Result<(Vec<Shown>, Option<String>)> {
    let sql = if table == Table::Messages { MESSAGES } else { TASKS };
    let rows = tx.query(sql, args![after, limit])?;
    let mut all = Vec::new();
    let mut last = None;
    for row in &rows {
        let id: String = row.get(0)?;
        all.extend(shown(tx, table, &id)?);
        last = Some(id);
    }
    Ok((all, last.filter(|_| rows.len() >= limit as usize)))
}

/// What the record has news about.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    /// Messages.
    pub messages: BTreeSet<String>,
    /// Tasks.
    pub tasks: BTreeSet<String>,
    /// Whether some were deleted after their time.
    pub pruned: bool,
    /// Whether somebody's text was erased.
    pub erased: bool,
    /// The next event to look at.
    pub next: u64,
}

/// Looks through events from a sequence number on.
pub fn touched(tx: &mut Tx<'_>, from: u64, limit: u32) -> Result<Touched> {
    let mut touched = Touched { next: from, ..Touched::default() };
    for event in named_after(tx, from, limit)? {
        touched.next = event.seq + 1;
        if event.kind == PRUNED.name {
            touched.pruned = true;
        } else if event.kind == ERASED.name {
            let facts = find_event(tx, event.seq)?.map(|event| event.facts);
            let erased = facts.and_then(|facts| facts.get("seq").and_then(Value::as_u64));
            if let Some(erased) = erased.map(|seq| find_event(tx, seq)).transpose()?.flatten() {
                touched.erased = true;
                touched.note(&erased.kind, &erased.subject);
            }
        } else {
            touched.note(&event.kind, &event.subject);
        }
    }
    Ok(touched)
}

impl Touched {
    fn note(&mut self, kind: &str, subject: &str) {
        if kind.starts_with("message.") {
            self.messages.extend(subject.strip_prefix("message:").map(str::to_owned));
        } else if kind.starts_with("task.") {
            self.tasks.extend(subject.strip_prefix("task:").map(str::to_owned));
        }
    }
}
