//! What becomes of a row that the file has: it is as the desk has it, it is new, it is a step that somebody took by
//! hand, or it is to be put right.

use deskmate_db::{Tx, args};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::import::{self, by_hand_ttl, claiming, may_act_by_hand, state};
use super::known::{self, Known};
use super::mirror::{Shown, shown};
use super::{Columns, FileRow, FileTask, REVERTED, SKIPPED, Table};
use crate::bridge::claim::take;
use crate::bridge::edits::{Edits, edit_task};
use crate::bridge::messages::acknowledge_one;
use crate::bridge::party::GROUP_PREFIX;
use crate::bridge::rows::{self, TaskRow};
use crate::bridge::state::State;
use crate::bridge::update::{change, check_may, keep_persons_result, tell_updated};
use crate::call::Cx;
use crate::limits::{CONTENT_BYTES_MAX, NAME_CHARS_MAX};
use crate::record::{Event, Kind};
use crate::{Code, Error, Result, check_text, hex};

/// A row that nobody has looked at as it is now.
#[derive(Clone, Debug)]
pub struct Differing {
    /// The row.
    pub row: FileRow,
    /// Whether it was otherwise when it was last seen or written, so that somebody changed it since. Without this it may
    /// only be old.
    pub by_hand: bool,
}

/// What the file should have in place of a row.
#[derive(Clone, Debug)]
pub enum Settled {
    /// The row as it is.
    Keep,
    /// This.
    Put(Box<FileRow>),
    /// Nothing: the desk no longer keeps it.
    Remove,
    /// The row as it is; the desk did not take it. `later`: it may when it is asked again.
    Skipped {
        /// Whether asking again makes sense.
        later: bool,
    },
}

/// An id, with room for a recipient's name behind it.
const ID_BYTES_MAX: usize = 2 * NAME_CHARS_MAX;
/// How many rows one event names; further ones are counted.
const NAMED_MAX: usize = 20;

/// Whether each row is as the desk has it. Only reads.
pub fn same(tx: &mut Tx<'_>, rows: &[FileRow]) -> Result<Vec<bool>> {
    rows.iter()
        .map(|row| {
            if check_text("id", &row.id, ID_BYTES_MAX).is_err() {
                return Ok(false);
            }
            let Some(known) = known::find(tx, row.table(), &row.id)? else { return Ok(false) };
            Ok(known.spelled == row.id && find_shown(tx, row.table(), &known)?.is_some_and(|shown| fits(row, &shown)))
        })
        .collect()
}

/// Deals with rows that differ from what the desk has, or that it does not know. `mirrored` is the first event that the
/// file does not show yet: where there is one about a row, the desk is right, and what somebody changed is reported.
pub fn settle(cx: &mut Cx<'_, '_>, rows: &[Differing], mirrored: u64) -> Result<Vec<Settled>> {
    let mut reports = Reports::default();
    let mut settled = Vec::with_capacity(rows.len());
    for row in rows {
        settled.push(settle_one(cx, row, mirrored, &mut reports)?);
    }
    reports.tell(cx)?;
    Ok(settled)
}

#[derive(Default)]
struct Reports {
    skipped: Vec<Value>,
    reverted: Vec<Value>,
}

impl Reports {
    fn tell(self, cx: &mut Cx<'_, '_>) -> Result<()> {
        for (kind, mut rows) in [(SKIPPED, self.skipped), (REVERTED, self.reverted)] {
            let count = rows.len();
            rows.truncate(NAMED_MAX);
            if count > 0 {
                tell(cx, kind, count, rows)?;
            }
        }
        Ok(())
    }
}

fn tell(cx: &mut Cx<'_, '_>, kind: Kind, count: usize, rows: Vec<Value>) -> Result<()> {
    cx.emit(Event::new(kind, "bridge_file").fact("rows", count).payload(json!({ "rows": rows })))
}

/// A row in a report.
fn named(row: &FileRow, why: &str) -> Value {
    let id: String = row.id.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
    json!({ "table": row.table().name(), "id": id, "why": why })
}

fn settle_one(cx: &mut Cx<'_, '_>, differing: &Differing, mirrored: u64, reports: &mut Reports) -> Result<Settled> {
    let row = &differing.row;
    let known = match known_row(cx, row) {
        Ok(known) => known,
        Err(error) => return skip(cx, row, &error, reports),
    };
    let Some(known) = known else {
        return match import(cx, row) {
            Ok(()) => imported(cx, row),
            Err(error) => skip(cx, row, &error, reports),
        };
    };
    let Some(before) = find_shown(cx.tx, row.table(), &known)? else { return Ok(Settled::Remove) };
    if fits(row, &before) {
        return Ok(Settled::Keep);
    }
    let refused = apply(cx, differing, &known, &before, mirrored)?;
    let Some(after) = find_shown(cx.tx, row.table(), &known)? else { return Ok(Settled::Remove) };
    if fits(row, &after) {
        return Ok(Settled::Keep);
    }
    if let Some(why) = refused {
        reports.reverted.push(named(row, &why));
    }
    Ok(Settled::Put(Box::new(spelled_like(after, row))))
}

/// What is known of a row, or why it cannot be a row of ours.
fn known_row(cx: &mut Cx<'_, '_>, row: &FileRow) -> Result<Option<Known>> {
    check_text("id", &row.id, ID_BYTES_MAX)?;
    if row.id.is_empty() {
        return Err(Error::invalid("id", "must not be empty"));
    }
    let known = known::find(cx.tx, row.table(), &row.id)?;
    if known.as_ref().is_some_and(|known| known.spelled != row.id) {
        return Err(Error::invalid("id", "is the id of another row, spelled in another way"));
    }
    Ok(known)
}

fn import(cx: &mut Cx<'_, '_>, row: &FileRow) -> Result<()> {
    match &row.columns {
        Columns::Message(message) => import::message(cx, row, message),
        Columns::Task(task) => import::task(cx, row, task),
        Columns::Unreadable(_) => Err(Error::invalid("row", "holds something that is no text, or more of it than a message may have")),
    }
}

/// A row that was taken in may say more than the desk took over.
fn imported(cx: &mut Cx<'_, '_>, row: &FileRow) -> Result<Settled> {
    let Some(known) = known::find(cx.tx, row.table(), &row.id)? else { return Ok(Settled::Keep) };
    Ok(match find_shown(cx.tx, row.table(), &known)? {
        Some(shown) if !fits(row, &shown) => Settled::Put(Box::new(spelled_like(shown, row))),
        _ => Settled::Keep,
    })
}

/// A row that the desk does not take. A fault of the store is no fault of the row.
fn skip(cx: &mut Cx<'_, '_>, row: &FileRow, error: &Error, reports: &mut Reports) -> Result<Settled> {
    if matches!(error.code, Code::Internal | Code::Unavailable) {
        return Err(error.clone());
    }
    let later = error.code == Code::Limited;
    let seen = print(row);
    if !later && known::refuse(cx.tx, &seen)? {
        reports.skipped.push(named(row, &error.to_string()));
    }
    Ok(Settled::Skipped { later })
}

/// A row by all that it says.
fn print(row: &FileRow) -> String {
    let texts: Vec<&str> = match &row.columns {
        Columns::Message(message) => vec![&message.sender, &message.recipient, &message.content],
        Columns::Task(task) => {
            vec![&task.sender, &task.recipient, &task.title, &task.description, &task.status, task.result.as_deref().unwrap_or_default()]
        }
        Columns::Unreadable(_) => Vec::new(),
    };
    let mut hash = Sha256::new().chain_update(row.table().name()).chain_update(row.id.len().to_le_bytes()).chain_update(&row.id);
    for text in texts {
        hash = hash.chain_update(text.len().to_le_bytes()).chain_update(text);
    }
    hex(&hash.finalize())
}

fn find_shown(tx: &mut Tx<'_>, table: Table, known: &Known) -> Result<Option<Shown>> {
    Ok(shown(tx, table, &known.id)?.into_iter().find(|shown| shown.copy_of == known.recipient))
}

/// Whether a row says what it should. Times may be spelled as they are.
fn fits(row: &FileRow, shown: &Shown) -> bool {
    match (&row.columns, &shown.row.columns) {
        (Columns::Message(has), Columns::Message(wanted)) => {
            has.read == wanted.read && has.content == wanted.content && shown.senders.contains(&has.sender) && shown.recipients.contains(&has.recipient)
        }
        (Columns::Task(has), Columns::Task(wanted)) => {
            has.status == wanted.status
                && same_result(row, has, wanted)
                && has.title == wanted.title
                && has.description == wanted.description
                && shown.senders.contains(&has.sender)
                && shown.recipients.contains(&has.recipient)
        }
        _ => false,
    }
}

/// A row as it should be, with the names for sender and recipient that the file uses where they mean the same.
fn spelled_like(shown: Shown, row: &FileRow) -> FileRow {
    let Shown { row: mut wanted, senders, recipients, .. } = shown;
    let (sender, recipient, has) = match (&mut wanted.columns, &row.columns) {
        (Columns::Message(wanted), Columns::Message(has)) => (&mut wanted.sender, &mut wanted.recipient, (&has.sender, &has.recipient)),
        (Columns::Task(wanted), Columns::Task(has)) => (&mut wanted.sender, &mut wanted.recipient, (&has.sender, &has.recipient)),
        _ => return wanted,
    };
    if senders.contains(has.0) {
        sender.clone_from(has.0);
    }
    if recipients.contains(has.1) {
        recipient.clone_from(has.1);
    }
    wanted
}

fn same_result(row: &FileRow, has: &FileTask, wanted: &FileTask) -> bool {
    !row.has_result || has.result.as_deref().unwrap_or_default() == wanted.result.as_deref().unwrap_or_default()
}

/// Takes over what somebody changed by hand where that is a step they may take. Answers why it is not.
fn apply(cx: &mut Cx<'_, '_>, differing: &Differing, known: &Known, before: &Shown, mirrored: u64) -> Result<Option<String>> {
    let row = &differing.row;
    let behind = has_news(cx.tx, row.table(), &known.id, mirrored)?;
    let too_late = || differing.by_hand.then(|| "the desk had changed it meanwhile, which the file did not show yet".to_owned());
    let done = match (&row.columns, &before.row.columns) {
        (Columns::Message(has), Columns::Message(wanted)) if has.read && !wanted.read => acknowledge(cx, known),
        (Columns::Task(has), Columns::Task(wanted)) if has.status != wanted.status || !same_result(row, has, wanted) => {
            if behind {
                return Ok(too_late());
            }
            step(cx, &known.id, has)
        }
        _ if behind => return Ok(too_late()),
        (Columns::Task(has), Columns::Task(wanted)) if has.title != wanted.title || has.description != wanted.description => {
            return edit(cx, &known.id, has, wanted);
        }
        _ => return Ok(Some("this cannot be changed by hand".to_owned())),
    };
    match done {
        Ok(()) => Ok(Some("only its state was taken over; the rest cannot be changed by hand".to_owned())),
        Err(error) if matches!(error.code, Code::Internal | Code::Unavailable) => Err(error),
        Err(error) => Ok(Some(error.to_string())),
    }
}

pub(super) const NEWS: &str = "select seq from event where subject = $1 order by seq desc limit 1";

/// Whether the record knows something about a message or task that the file does not show yet.
fn has_news(tx: &mut Tx<'_>, table: Table, id: &str, mirrored: u64) -> Result<bool> {
    let newest = tx.optional(NEWS, args![format!("{}:{id}", table.kind())])?;
    let newest: Option<i64> = newest.map(|row| row.get(0)).transpose()?;
    Ok(newest.is_some_and(|newest| u64::try_from(newest).unwrap_or(0) >= mirrored))
}

fn not_by_hand(name: &str) -> Error {
    Error::forbidden(format!("nobody acts by hand for {name}, who has a credential or is a group"))
}

/// `read` was set by hand: the recipient acknowledges.
fn acknowledge(cx: &mut Cx<'_, '_>, known: &Known) -> Result<()> {
    let message = rows::find_message(cx.tx, &known.id, "")?.ok_or_else(|| Error::not_found("there is no such message"))?;
    let recipient = if known.recipient.is_empty() { message.to_name } else { known.recipient.clone() };
    if !may_act_by_hand(cx, &recipient)? {
        return Err(not_by_hand(&recipient));
    }
    claiming(cx, &recipient, |cx| acknowledge_one(cx, &known.id, &message.sender, &recipient)).map(drop)
}

/// `status` or `result` was set by hand: whoever may take that step takes it.
fn step(cx: &mut Cx<'_, '_>, id: &str, has: &FileTask) -> Result<()> {
    let task = rows::find_task(cx.tx, id)?.ok_or_else(|| Error::not_found("there is no such task"))?;
    let to = state(&has.status)?;
    let result = has.result.clone().filter(|result| Some(result) != task.result.as_ref());
    if let Some(result) = &result {
        check_text("result", result, CONTENT_BYTES_MAX)?;
    }
    if task.stored.is_final() {
        return Err(Error::conflict(format!("the task is {}, which is final", task.stored.name())));
    }
    let actor = acting(&task, to);
    if !may_act_by_hand(cx, &actor)? {
        return Err(not_by_hand(&actor));
    }
    claiming(cx, &actor, |cx| walk(cx, task, &actor, to, result))
}

/// `title` or `description` was set by hand: whoever gave the task changes what it says. What a person set stays, and the
/// change becomes a request of somebody who only claims to be the sender.
fn edit(cx: &mut Cx<'_, '_>, id: &str, has: &FileTask, wanted: &FileTask) -> Result<Option<String>> {
    let mut task = rows::find_task(cx.tx, id)?.ok_or_else(|| Error::not_found("there is no such task"))?;
    let sender = task.sender.clone();
    if !may_act_by_hand(cx, &sender)? {
        return Ok(Some(not_by_hand(&sender).to_string()));
    }
    let given = |has: &String, wanted: &String| (has != wanted).then(|| has.clone());
    let edits = Edits { title: given(&has.title, &wanted.title), description: given(&has.description, &wanted.description), ..Edits::default() };
    match claiming(cx, &sender, |cx| edit_task(cx, &mut task, &sender, edits)) {
        Ok(None) => Ok(None),
        Ok(Some(held)) => Ok(Some(held.message)),
        Err(error) if matches!(error.code, Code::Internal | Code::Unavailable) => Err(error),
        Err(error) => Ok(Some(error.to_string())),
    }
}

/// Whose step it is.
fn acting(task: &TaskRow, to: State) -> String {
    match (&task.worker, to) {
        (_, State::Cancelled) => task.sender.clone(),
        (Some(worker), _) if task.stored == State::InProgress || task.recipient.starts_with(GROUP_PREFIX) => worker.clone(),
        _ => task.recipient.clone(),
    }
}

/// Goes to a state, over `in_progress` where the way leads there: two changes by hand may be seen as one.
fn walk(cx: &mut Cx<'_, '_>, mut task: TaskRow, actor: &str, to: State, result: Option<String>) -> Result<()> {
    if task.stored == to {
        return set_result(cx, &mut task, result);
    }
    let waits = matches!(task.stored, State::Pending | State::InputNeeded);
    if waits && matches!(to, State::InProgress | State::Completed | State::Failed | State::InputNeeded) {
        task = take(cx, task, actor, by_hand_ttl())?;
        if to == State::InProgress {
            return set_result(cx, &mut task, result);
        }
    }
    check_may(cx, &task, actor, to, None)?;
    change(cx, &mut task, to, result)
}

/// A result before the end, from somebody who writes it first and sets the state afterwards.
fn set_result(cx: &mut Cx<'_, '_>, task: &mut TaskRow, result: Option<String>) -> Result<()> {
    let Some(result) = result else { return Ok(()) };
    keep_persons_result(cx, task)?;
    task.result = Some(result.clone());
    task.result_by = Some((cx.actor.kind.name().to_owned(), cx.actor.id.clone(), cx.actor.verified));
    let now = cx.now();
    rows::update_task(cx.tx, task, now)?;
    tell_updated(cx, task, task.stored, Some(result))
}
