//! Changing what a task says: its title, description, priority, deadline and recipient. Who gave it may, and people may;
//! what a person set, an agent only asks to change.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::party::{Addressee, GROUP_PREFIX, Priority, called, check_said, find_addressee, sees_all};
use super::rows::{self, TaskRow};
use super::task_out::parties;
use crate::call::Cx;
use crate::edit::{self, Change, EDITED, Held, Target};
use crate::limits::{CONTENT_BYTES_MAX, TITLE_CHARS_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, check_text, format_time, parse_time};

/// What a task says changed.
pub(super) const TASK_EDITED: Kind =
    Kind { name: "task.edited", says: "An actor changed what a task says: its title, description, priority, deadline or recipient." };

/// The scope of work that tasks belong to.
const DOMAIN: &str = "bridge.tasks";

/// The new values that a call gives; what it leaves out stays.
#[derive(Clone, Debug, Default)]
pub(super) struct Edits {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) priority: Option<Priority>,
    /// An empty text means: none.
    pub(super) deadline: Option<String>,
    pub(super) recipient: Option<String>,
}

impl Edits {
    /// Whether nothing is to be changed.
    pub(super) fn is_empty(&self) -> bool {
        self.title.is_none() && self.description.is_none() && self.priority.is_none() && self.deadline.is_none() && self.recipient.is_none()
    }

    /// The fields with their values as they are and as they would be.
    fn changes(self, cx: &mut Cx<'_, '_>, task: &TaskRow) -> Result<Vec<Change>> {
        let mut given: Vec<(&str, Value)> = Vec::new();
        given.extend(self.title.map(|title| ("title", Value::from(title))));
        given.extend(self.description.map(|description| ("description", Value::from(description))));
        given.extend(self.priority.map(|priority| ("priority", Value::from(priority.name()))));
        if let Some(deadline) = self.deadline {
            let deadline = if deadline.is_empty() { None } else { Some(format_time(parse_time("deadline", &deadline)?)) };
            given.push(("deadline", Value::from(deadline)));
        }
        if let Some(to) = self.recipient {
            given.push(("recipient", Value::from(resolve(cx, "to", &to)?)));
        }
        Ok(given.into_iter().map(|(field, to)| Change::new(field, value(task, field).unwrap_or_default(), to)).collect())
    }
}

/// The actor or `group:NAME` that a name means.
fn resolve(cx: &mut Cx<'_, '_>, field: &str, to: &str) -> Result<String> {
    Ok(match find_addressee(cx, field, to)? {
        Addressee::One(actor) => actor,
        Addressee::Group { name, .. } => format!("{GROUP_PREFIX}{name}"),
    })
}

/// The value of a field as it is shown; nothing where a task has no such field.
fn value(task: &TaskRow, field: &str) -> Option<Value> {
    Some(match field {
        "title" => Value::from(task.title.clone()),
        "description" => Value::from(task.description.clone()),
        "priority" => Value::from(Priority::from_rank(task.rank).name()),
        "deadline" => Value::from(task.deadline.map(format_time)),
        "recipient" => Value::from(task.recipient.clone()),
        _ => return None,
    })
}

/// Puts a checked value into its field.
fn put(cx: &mut Cx<'_, '_>, task: &mut TaskRow, change: &Change) -> Result<()> {
    let field = change.field.as_str();
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| Error::invalid(field, "must be a text"));
    match field {
        "title" => {
            let title = text(&change.to)?;
            check_said(field, &title, TITLE_CHARS_MAX)?;
            task.title = Some(title);
        }
        "description" => {
            let description = text(&change.to)?;
            check_text(field, &description, CONTENT_BYTES_MAX)?;
            task.description = Some(description);
        }
        "priority" => {
            let priority: Priority = serde_json::from_value(change.to.clone()).map_err(|error| Error::invalid(field, error.to_string()))?;
            task.rank = priority.rank();
        }
        "deadline" => task.deadline = if change.to.is_null() { None } else { Some(parse_time(field, &text(&change.to)?)?) },
        "recipient" => {
            let recipient = resolve(cx, "to", &text(&change.to)?)?;
            if let Some((holder, _, _)) = task.held(cx.now()).filter(|_| recipient != task.recipient) {
                let holder = called(cx, holder)?;
                return Err(Error::conflict(format!("{holder} works on this task; it cannot be given to somebody else now")));
            }
            task.recipient = recipient;
        }
        other => return Err(Error::invalid(other, "is no field of a task that can be changed")),
    }
    Ok(())
}

/// Changes what a task says as far as the caller may; what a person set is held where the caller is an agent.
pub(super) fn edit_task(cx: &mut Cx<'_, '_>, task: &mut TaskRow, me: &str, edits: Edits) -> Result<Option<Held>> {
    if task.sender != me && !sees_all(cx) {
        return Err(Error::forbidden("only the sender of a task or a person may change what it says").hint("add_task_note tells them what you think"));
    }
    if task.stored.is_final() {
        return Err(Error::conflict(format!("the task is {}, which is final", task.stored.name())));
    }
    let changes = edits.changes(cx, task)?;
    // What is held must be as sound as what is written: nobody should be asked about a value that cannot be.
    let mut wanted = task.clone();
    for change in &changes {
        put(cx, &mut wanted, change)?;
    }
    let split = edit::split(cx, &task.subject(), changes)?;
    if !split.free.is_empty() || split.held.is_empty() {
        write(cx, task, &split.free)?;
    }
    let target = Target { subject: task.subject(), domain: DOMAIN, tool: "bridge_update_task", noun: "task" };
    edit::hold(cx, &target, split.held)
}

/// Writes checked changes and tells the record.
fn write(cx: &mut Cx<'_, '_>, task: &mut TaskRow, changes: &[Change]) -> Result<()> {
    let mut audience: BTreeSet<String> = parties(cx, task)?.into_iter().collect();
    for change in changes {
        put(cx, task, change)?;
    }
    let fields: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
    if !fields.is_empty() {
        let now = cx.now();
        rows::update_task(cx.tx, task, now)?;
        edit::mark(cx, &task.subject(), &fields)?;
        task.set_by_people = edit::set_by_people(cx.tx, &task.subject())?;
    }
    audience.extend(parties(cx, task)?);
    let mut event = Event::new(TASK_EDITED, task.subject()).fact("task", task.id.as_str()).fact("version", task.version).fact(EDITED, fields.clone());
    let mut said = serde_json::Map::new();
    for field in fields {
        let now = value(task, field).unwrap_or_default();
        match field {
            "title" | "description" => drop(said.insert(field.to_owned(), now)),
            "deadline" => event = event.fact("deadline", task.deadline),
            "recipient" => event = event.fact("to", now),
            _ => event = event.fact(field, now),
        }
    }
    if !said.is_empty() {
        event = event.payload(json!(said));
    }
    cx.emit(event.audience(audience))
}

/// Checks that a held change still fits the task as it was shown, and writes it where a person approved it.
pub(crate) fn accept_task_edit(cx: &mut Cx<'_, '_>, id: &str, changes: &[Change], approved: bool) -> Result<()> {
    let mut task = rows::find_task(cx.tx, id)?.ok_or_else(|| Error::not_found("the task is gone"))?;
    if task.stored.is_final() {
        return Err(Error::conflict(format!("the task is {}, which is final", task.stored.name())));
    }
    edit::check_shown(changes, |field| value(&task, field))?;
    let mut wanted = task.clone();
    for change in changes {
        put(cx, &mut wanted, change)?;
    }
    if approved { write(cx, &mut task, changes) } else { Ok(()) }
}

/// The fields that a person set by giving the task.
pub(super) fn given(task: &TaskRow, priority: bool) -> Vec<&'static str> {
    let mut fields = vec!["title", "recipient"];
    if task.description.as_deref().is_some_and(|description| !description.is_empty()) {
        fields.push("description");
    }
    if priority {
        fields.push("priority");
    }
    if task.deadline.is_some() {
        fields.push("deadline");
    }
    fields.sort_unstable();
    fields
}
