//! Changing the state of a task: who may, to which, and what follows for the tasks that wait for it.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::claim::{held_by, take};
use super::edits::{Edits, edit_task};
use super::notes::keep;
use super::party::{self, GROUP_PREFIX, Priority, called, lease_time, me, sees_all};
use super::rows::{self, TaskRow, subject};
use super::state::State;
use super::task_out::{TaskOut, concerned, find_visible, is_recipient, parties};
use crate::call::{Actor, ActorKind, Cx};
use crate::limits::{CONTENT_BYTES_MAX, DEPENDENTS_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, check_text, lease};

/// A task's state changed.
pub(super) const UPDATED: Kind = Kind { name: "task.updated", says: "The state of a task changed." };
/// A task waits for less.
pub(super) const UNBLOCKED: Kind = Kind { name: "task.unblocked", says: "A task no longer waits for another one." };

/// Change the state of a task, or what it says. Claim it first (or set `in_progress`, which claims it); then `completed`,
/// `failed` or `input_needed` with a `result`, or `pending` to give it back. Its recipient may set `rejected` instead of
/// claiming; its sender may set `cancelled`. Final states stay: a refusal names the states that may follow. Its sender and
/// people may also change `title`, `description`, `priority`, `deadline` and `to`. What a person set, an agent does not
/// overwrite: that part waits for a person, and the answer says so in `held`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateTask {
    /// The task's id.
    task_id: String,
    /// The new state; it may be left out where only what the task says is changed.
    status: Option<State>,
    /// The result, the error, the question or the reason.
    result: Option<String>,
    /// The fence that the claim gave you: the change is refused if the lease was lost meanwhile.
    fence: Option<i64>,
    /// With `in_progress`: how long the claim stands without a sign of life; 600 if not given.
    lease_seconds: Option<u32>,
    /// A new title.
    title: Option<String>,
    /// A new description.
    description: Option<String>,
    /// A new priority.
    priority: Option<Priority>,
    /// A new deadline, for example `2026-11-15T09:30:00Z`; an empty text takes it away.
    deadline: Option<String>,
    /// Somebody else whom it is given to: an agent, a person, or `group:NAME`. Not while somebody works on it.
    to: Option<String>,
}

pub(super) fn update(cx: &mut Cx<'_, '_>, input: UpdateTask) -> Result<TaskOut> {
    let (me, now) = (me(cx)?, cx.now());
    if let Some(result) = &input.result {
        check_text("result", result, CONTENT_BYTES_MAX)?;
    }
    let ttl = lease_time(input.lease_seconds)?;
    let edits = Edits { title: input.title, description: input.description, priority: input.priority, deadline: input.deadline, recipient: input.to };
    let mut task = find_visible(cx, "task_id", &input.task_id, &me)?;
    if input.status == Some(State::InProgress) && input.result.is_some() {
        return Err(Error::invalid("result", "does not fit in_progress").hint("add_task_note tells how far it is"));
    }
    let mut held = None;
    if !edits.is_empty() {
        held = edit_task(cx, &mut task, &me, edits)?;
    } else if input.status.is_none() {
        return Err(Error::invalid("status", "say what changes: the status, or one of title, description, priority, deadline and to"));
    }
    match input.status {
        None if input.result.is_some() => return Err(Error::invalid("status", "a result comes with the status that it belongs to")),
        None => {}
        Some(State::InProgress) => task = take(cx, task, &me, ttl)?,
        Some(status) => {
            check_may(cx, &task, &me, status, input.fence)?;
            if status.is_final() && input.result.is_none() {
                set_aside(cx, &mut task)?;
            }
            change(cx, &mut task, status, input.result)?;
        }
    }
    Ok(TaskOut::new(task, now).with_held(held))
}

/// Brings a task into another state, with the result where there is one, and tells the record.
pub(super) fn change(cx: &mut Cx<'_, '_>, task: &mut TaskRow, to: State, result: Option<String>) -> Result<()> {
    let now = cx.now();
    let from = task.state(now);
    task.stored = to;
    if result.is_some() {
        keep_persons_result(cx, task)?;
        task.result.clone_from(&result);
        task.result_by = Some((cx.actor.kind.name().to_owned(), cx.actor.id.clone(), cx.actor.verified));
    }
    if task.stored.is_final() {
        lease::forget(cx.tx, &task.subject())?;
    } else {
        lease::release(cx.tx, &task.subject(), now)?;
    }
    rows::update_task(cx.tx, task, now)?;
    tell_updated(cx, task, from, result)?;
    if task.stored == State::Completed {
        release_dependents(cx, &task.id)?;
    }
    Ok(())
}

/// What was written with an earlier state, such as a question or its answer, is not the result of a task that ends without one: it
/// stays as a note of whoever wrote it.
fn set_aside(cx: &mut Cx<'_, '_>, task: &mut TaskRow) -> Result<()> {
    let (Some(text), Some((kind, id, verified))) = (task.result.clone(), task.result_by.clone()) else { return Ok(()) };
    let writer = if kind == ActorKind::Person.name() { Actor { verified, ..Actor::person(id) } } else { Actor::agent(id, verified) };
    keep(cx, task, &writer, &text)?;
    (task.result, task.result_by) = (None, None);
    Ok(())
}

/// What a person wrote as a result, such as an answer to a question, stays as their note when an agent writes its own.
pub(super) fn keep_persons_result(cx: &mut Cx<'_, '_>, task: &TaskRow) -> Result<()> {
    match (&task.result, &task.result_by) {
        (Some(result), Some((kind, person, verified))) if kind == ActorKind::Person.name() && cx.actor.is_agent() => {
            keep(cx, task, &Actor { verified: *verified, ..Actor::person(person.as_str()) }, result)
        }
        _ => Ok(()),
    }
}

/// Tells the record of a task's new state or result.
pub(super) fn tell_updated(cx: &mut Cx<'_, '_>, task: &TaskRow, from: State, result: Option<String>) -> Result<()> {
    let audience = parties(cx, task)?;
    let mut event = Event::new(UPDATED, task.subject())
        .fact("task", task.id.as_str())
        .fact("from", from.name())
        .fact("to", task.stored.name())
        .fact("version", task.version)
        .audience(audience);
    if let Some(result) = result {
        event = event.payload(json!({ "result": result }));
    }
    cx.emit(event)
}

/// Refuses whoever may not bring a task from its state to this one.
pub(super) fn check_may(cx: &mut Cx<'_, '_>, task: &TaskRow, me: &str, to: State, fence: Option<i64>) -> Result<()> {
    let from = task.state(cx.now());
    let recipient = is_recipient(cx, task, me)?;
    let gave = task.sender == me || sees_all(cx);
    match to {
        State::Cancelled if !gave => return Err(Error::forbidden("only the sender of a task or a person may cancel it").hint("its recipient may reject it")),
        State::Cancelled => return from.check_next(to),
        State::Pending if task.stored == State::InputNeeded && (gave || recipient) => return Ok(()),
        // Who worked on it last keeps a word only while that work goes on: then it may be somebody else's.
        _ if !recipient && (from != State::InProgress || task.worker.as_deref() != Some(me)) => {
            let recipient = called(cx, &task.recipient)?;
            return Err(Error::forbidden(format!("this task was given to {recipient}; you may only cancel it or add notes")));
        }
        State::Rejected if task.recipient.starts_with(GROUP_PREFIX) => {
            return Err(Error::forbidden("one member cannot reject a task for all of its group").hint("leave it to the others; its sender may cancel it"));
        }
        _ => {}
    }
    // What was in progress is its worker's to change, also when the lease has just ended: then the lease says so.
    if task.stored == State::InProgress && to != State::Rejected {
        State::InProgress.check_next(to)?;
        return check_holder(cx, task, me, fence);
    }
    from.check_next(to)
}

fn check_holder(cx: &mut Cx<'_, '_>, task: &TaskRow, me: &str, fence: Option<i64>) -> Result<()> {
    let now = cx.now();
    match task.held(now) {
        Some((holder, _, expires_at)) if holder != me && fence.is_none() => Err(held_by(cx, holder, *expires_at)?),
        _ => lease::check(cx.tx, &task.subject(), me, fence, now).map(|_| ()),
    }
}

/// Lets the tasks go on that waited for one that is completed now.
fn release_dependents(cx: &mut Cx<'_, '_>, blocker: &str) -> Result<()> {
    let bound = i64::try_from(DEPENDENTS_MAX).unwrap_or(i64::MAX);
    let rows = cx.tx.query("select task from task_blocker where blocker = $1 order by task limit $2", args![blocker, bound])?;
    for row in rows {
        let task: String = row.get(0)?;
        unblock(cx, &task, blocker)?;
    }
    Ok(())
}

/// Counts one blocker less, and tells those concerned.
fn unblock(cx: &mut Cx<'_, '_>, task: &str, blocker: &str) -> Result<()> {
    let now = cx.now();
    let row = cx.tx.optional(
        "update task set open_blockers = open_blockers - 1, version = version + 1, updated_at = $2 where id = $1 and open_blockers > 0 \
         returning open_blockers, version, recipient, sender",
        args![task, now],
    )?;
    let Some(row) = row else { return Ok(()) };
    let (open, version): (i64, i64) = (row.get(0)?, row.get(1)?);
    let audience = concerned(cx, &row.get::<String>(2)?, [Some(row.get(3)?), None])?;
    let event = Event::new(UNBLOCKED, subject(task)).fact("task", task).fact("blocker", blocker).fact("open_blockers", open).fact("version", version);
    cx.emit(event.audience(audience))
}

/// Let a task that you gave go on without another one that it waits for, for example because that one failed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UnblockTask {
    /// The task that waits.
    task_id: String,
    /// The task that it shall no longer wait for.
    blocker: String,
}

pub(super) fn drop_blocker(cx: &mut Cx<'_, '_>, input: UnblockTask) -> Result<TaskOut> {
    let (me, now) = (me(cx)?, cx.now());
    let task = find_visible(cx, "task_id", &input.task_id, &me)?;
    if task.sender != me && !sees_all(cx) {
        return Err(Error::forbidden("only the sender of a task or a person may change what it waits for"));
    }
    let blocker = party::id("blocker", &input.blocker)?;
    if task.stored.is_final() {
        return Err(Error::conflict(format!("the task is {}, which is final", task.stored.name())));
    }
    let state: Option<String> = cx
        .tx
        .optional("select t.state from task_blocker b join task t on t.id = b.blocker where b.task = $1 and b.blocker = $2", args![task.id, blocker])?
        .map(|row| row.get(0))
        .transpose()?;
    match state.as_deref() {
        None => return Err(Error { field: Some("blocker".to_owned()), ..Error::not_found(format!("the task does not wait for {blocker}")) }),
        Some("completed") => return Err(Error::conflict(format!("{blocker} is completed and holds nothing up"))),
        Some(_) => {}
    }
    cx.tx.execute("delete from task_blocker where task = $1 and blocker = $2", args![task.id, blocker])?;
    unblock(cx, &task.id, &blocker)?;
    let task = find_visible(cx, "task_id", &task.id, &me)?;
    Ok(TaskOut::new(task, now))
}
