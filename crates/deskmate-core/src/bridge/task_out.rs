//! A task as it is shown, and who may see it.

use schemars::JsonSchema;
use serde::Serialize;

use super::party::{self, GROUP_PREFIX, Priority, is_member, members_of, sees_all, trust};
use super::rows::{self, TaskRow};
use super::state::State;
use crate::call::Cx;
use crate::edit::Held;
use crate::{Error, Result, format_time};

/// Who works on a task, and until when without a sign of life.
#[derive(Serialize, JsonSchema)]
pub(super) struct LeaseOut {
    /// Who holds it.
    holder: String,
    /// Which holding this is. Give it with heartbeat_task and update_task: after the lease was lost it no longer fits.
    fence: i64,
    /// When it ends without a sign of life.
    expires_at: String,
}

/// A task.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskOut {
    /// The fields that a person set. They come before what agents say, and an agent's change of them waits for a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set_by_people: Vec<String>,
    /// The part of your change that waits for a person, because it concerns what a person set.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Held>,
    /// The task's id.
    task_id: String,
    /// The project it belongs to.
    project: String,
    /// Who gave it, from the sender's credential.
    sender: String,
    /// How a person who gave it is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_name: Option<String>,
    /// `person`, `agent` or `system`.
    sender_kind: String,
    /// Whether a credential proved who gave it.
    verified: bool,
    /// Over which surface it came.
    origin: String,
    /// What the three fields before say together, for example `unverified, claims to be code`.
    trust: String,
    /// Whom it was given to: an actor, or `group:NAME`.
    recipient: String,
    /// What it is about, in a line. Absent when it was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// What is to be done, in the sender's words. Absent when it was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Where it stands.
    status: State,
    /// How urgent it is.
    priority: Priority,
    /// How many tasks it still waits for.
    open_blockers: i64,
    /// True when it can be claimed now.
    ready: bool,
    /// Until when it should be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
    /// True when it is open and its deadline has passed.
    overdue: bool,
    /// The conversation it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    /// The result, the error, the question or the reason, in the words of who set the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// Who wrote the result, from the writer's credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_by: Option<String>,
    /// What a reader may make of who wrote the result, for example `verified agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_trust: Option<String>,
    /// Who claimed it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    /// Who works on it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<LeaseOut>,
    /// How often it was claimed.
    attempt: i64,
    /// Grows with every change.
    version: i64,
    /// True when a person erased some of its texts.
    erased: bool,
    /// When it was given.
    created_at: String,
    /// When it last changed.
    updated_at: String,
    /// When it reached a final state.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
}

impl TaskOut {
    pub(super) fn new(row: TaskRow, now: i64) -> Self {
        let status = row.state(now);
        let lease = row.held(now).map(|(holder, fence, expires_at)| LeaseOut { holder: holder.clone(), fence: *fence, expires_at: format_time(*expires_at) });
        Self {
            trust: trust(&row.sender_kind, &row.sender, row.verified),
            task_id: row.id,
            project: row.project,
            sender: row.sender,
            sender_name: row.sender_name,
            sender_kind: row.sender_kind,
            verified: row.verified,
            origin: row.origin,
            recipient: row.recipient,
            title: row.title,
            description: row.description,
            status,
            priority: Priority::from_rank(row.rank),
            open_blockers: row.open_blockers,
            ready: status == State::Pending && row.open_blockers == 0,
            deadline: row.deadline.map(format_time),
            overdue: !status.is_final() && row.deadline.is_some_and(|deadline| deadline < now),
            thread: row.thread,
            result: row.result,
            result_trust: row.result_by.as_ref().map(|(kind, by, verified)| trust(kind, by, *verified)),
            result_by: row.result_by.map(|(_, by, _)| by),
            worker: row.worker,
            lease,
            attempt: row.attempt,
            version: row.version,
            erased: row.erased,
            created_at: format_time(row.created_at),
            updated_at: format_time(row.updated_at),
            finished_at: row.finished_at.map(format_time),
            set_by_people: row.set_by_people,
            held: None,
        }
    }

    /// Says what of a change waits for a person.
    pub(super) fn with_held(self, held: Option<Held>) -> Self {
        Self { held, ..self }
    }
}

/// Whether a task was given to an actor, directly or through a group.
pub(super) fn is_recipient(cx: &mut Cx<'_, '_>, task: &TaskRow, actor: &str) -> Result<bool> {
    match task.recipient.strip_prefix(GROUP_PREFIX) {
        Some(group) => is_member(cx, group, actor),
        None => Ok(task.recipient == actor),
    }
}

/// A task that the caller may see: it gave it, got it, worked on it, or sees all.
pub(super) fn find_visible(cx: &mut Cx<'_, '_>, field: &str, id: &str, me: &str) -> Result<TaskRow> {
    let id = party::id(field, id)?;
    if let Some(task) = rows::find_task(cx.tx, &id)? {
        let visible = sees_all(cx) || task.sender == me || task.worker.as_deref() == Some(me) || is_recipient(cx, &task, me)?;
        if visible {
            return Ok(task);
        }
    }
    Err(Error { field: Some(field.to_owned()), ..Error::not_found(format!("there is no task {id} for you")) })
}

/// Everybody whom a task concerns.
pub(super) fn parties(cx: &mut Cx<'_, '_>, task: &TaskRow) -> Result<Vec<String>> {
    concerned(cx, &task.recipient, [Some(task.sender.clone()), task.worker.clone()])
}

/// A recipient, or all members where it is a group, and others.
pub(super) fn concerned(cx: &mut Cx<'_, '_>, recipient: &str, others: [Option<String>; 2]) -> Result<Vec<String>> {
    let mut actors = match recipient.strip_prefix(GROUP_PREFIX) {
        Some(group) => members_of(cx, group)?,
        None => vec![recipient.to_owned()],
    };
    actors.extend(others.into_iter().flatten());
    actors.sort();
    actors.dedup();
    Ok(actors)
}
