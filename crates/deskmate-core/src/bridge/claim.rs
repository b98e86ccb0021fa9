//! Claiming tasks and keeping the claim: one holder at a time, for as long as it gives signs of life.

use std::collections::BTreeSet;

use deskmate_db::{Tx, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::messages::ELSEWHERE_MAX;
use super::party::{self, addresses_of, called, check_timeout, lease_time, me};
use super::rows::{self, TaskRow};
use super::state::State;
use super::task_out::{TaskOut, find_visible, is_recipient, parties};
use crate::call::{Cx, Wait};
use crate::record::{Event, Kind};
use crate::{Error, Result, format_time, lease};

/// A task was claimed.
pub(super) const CLAIMED: Kind = Kind { name: "task.claimed", says: "An actor claimed a task and holds it under a lease." };
/// A worker gave no sign of life.
pub(super) const LEASE_EXPIRED: Kind =
    Kind { name: "task.lease_expired", says: "The worker of a task gave no sign of life in time; the task is pending again." };

/// Claim a task, so that nobody else works on it. Without `task_id` you get the most urgent one that is ready for you or
/// a group of yours. Give signs of life with heartbeat_task before the lease ends; after that others may claim it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimTask {
    /// The task's id; the next ready one if not given.
    task_id: Option<String>,
    /// Where to look for the next ready one; `default` if not given.
    project: Option<String>,
    /// How long the claim stands without a sign of life: 5 to 86400, 600 if not given.
    lease_seconds: Option<u32>,
}

pub(super) fn claim(cx: &mut Cx<'_, '_>, input: ClaimTask) -> Result<TaskOut> {
    let (me, now) = (me(cx)?, cx.now());
    let ttl = lease_time(input.lease_seconds)?;
    let project = party::project(input.project)?;
    let task = match &input.task_id {
        Some(id) => find_visible(cx, "task_id", id, &me)?,
        None => match next_ready(cx, &me, &project)? {
            Some(task) => task,
            None => return Err(none_ready(&project, &projects_ready(cx, &me, &project)?)),
        },
    };
    Ok(TaskOut::new(take(cx, task, &me, ttl)?, now))
}

/// The refusal of who finds nothing to claim: there may be something in another project.
fn none_ready(project: &str, elsewhere: &[String]) -> Error {
    let error = Error::not_found(format!("no task is ready for you in the project {project}"));
    if elsewhere.is_empty() {
        return error.hint("wait_for_task without task_id waits for one");
    }
    error.hint(format!("tasks are ready for you in {}: name one of these as project", elsewhere.join(", ")))
}

/// Takes the lease on a task and tells the record.
pub(super) fn take(cx: &mut Cx<'_, '_>, mut task: TaskRow, me: &str, ttl: i64) -> Result<TaskRow> {
    let now = cx.now();
    if !is_recipient(cx, &task, me)? {
        let recipient = called(cx, &task.recipient)?;
        return Err(Error::forbidden(format!("this task was given to {recipient}, and only its recipient may claim it")));
    }
    if let Some((holder, _, expires_at)) = task.held(now) {
        return Err(held_by(cx, holder, *expires_at)?);
    }
    task.state(now).check_next(State::InProgress)?;
    if task.open_blockers > 0 {
        return Err(Error::conflict(format!("the task waits for {} others", task.open_blockers)).hint("get_task shows which"));
    }
    let Some(held) = lease::acquire(cx.tx, &task.subject(), me, ttl, now)? else {
        return Err(Error::conflict("somebody else claimed the task just now").hint("get_task shows who"));
    };
    let lost_by = task.worker.take().filter(|_| task.stored == State::InProgress);
    task.stored = State::InProgress;
    task.attempt += 1;
    task.worker = Some(me.to_owned());
    task.lease = Some((held.holder, held.fence, held.expires_at));
    rows::update_task(cx.tx, &mut task, now)?;
    let audience = parties(cx, &task)?.into_iter().chain(lost_by.clone());
    let mut event = Event::new(CLAIMED, task.subject())
        .fact("task", task.id.as_str())
        .fact("holder", me)
        .fact("fence", held.fence)
        .fact("attempt", task.attempt)
        .fact("expires_at", held.expires_at)
        .fact("version", task.version)
        .audience(audience.collect::<BTreeSet<_>>());
    if let Some(lost_by) = lost_by {
        event = event.fact("lost_by", lost_by);
    }
    cx.emit(event)?;
    Ok(task)
}

/// The refusal of who comes second.
pub(super) fn held_by(cx: &mut Cx<'_, '_>, holder: &str, expires_at: i64) -> Result<Error> {
    let refusal = format!("{} holds this task until {}", called(cx, holder)?, format_time(expires_at));
    Ok(Error::conflict(refusal).hint("take another one, or wait with wait_for_task"))
}

/// The most urgent task that can be claimed now under any of the caller's addresses.
fn next_ready(cx: &mut Cx<'_, '_>, me: &str, project: &str) -> Result<Option<TaskRow>> {
    let now = cx.now();
    let mut first: Option<(i64, i64, String)> = None;
    for address in addresses_of(cx, me)? {
        for sql in [NEXT_PENDING, NEXT_LOST] {
            let row = cx.tx.optional(sql, args![address, project, now])?;
            let found = row.map(|row| Ok::<_, Error>((row.get(0)?, row.get(1)?, row.get(2)?))).transpose()?;
            first = match (first, found) {
                (Some(first), Some(found)) => Some(first.min(found)),
                (first, found) => first.or(found),
            };
        }
    }
    match first {
        Some((_, _, id)) => rows::find_task(cx.tx, &id),
        None => Ok(None),
    }
}

pub(super) const NEXT_PENDING: &str = "select t.rank, t.created_at, t.id from task t where t.recipient = $1 and t.project = $2 \
     and t.state = 'pending' and t.open_blockers = 0 order by t.rank, t.created_at, t.id limit 1";
pub(super) const NEXT_LOST: &str = "select t.rank, t.created_at, t.id from task t left join lease l on l.subject = 'task:' || t.id \
     where t.recipient = $1 and t.project = $2 and t.state = 'in_progress' and t.open_blockers = 0 and coalesce(l.expires_at, 0) <= $3 \
     order by t.rank, t.created_at, t.id limit 1";

pub(super) const NEXT_PROJECT_READY: &str = "select t.project from task t where t.recipient = $1 and t.project > $2 \
     and t.state = 'pending' and t.open_blockers = 0 order by t.project, t.rank, t.created_at, t.id limit 1";

/// The other projects in which a task can be claimed under any of the caller's addresses: one step of the index for each, however
/// many tasks they hold. What was lost counts once upkeep has written it back, which takes seconds.
pub(super) fn projects_ready(cx: &mut Cx<'_, '_>, me: &str, except: &str) -> Result<Vec<String>> {
    let mut projects = BTreeSet::new();
    for address in addresses_of(cx, me)? {
        let mut last = String::new();
        for _ in 0..=ELSEWHERE_MAX {
            let Some(row) = cx.tx.optional(NEXT_PROJECT_READY, args![address, last])? else { break };
            last = row.get(0)?;
            projects.insert(last.clone());
        }
    }
    projects.remove(except);
    Ok(projects.into_iter().take(ELSEWHERE_MAX).collect())
}

/// Whether a task can be claimed under any of the caller's addresses.
pub(super) fn is_ready(cx: &mut Cx<'_, '_>, me: &str, project: &str) -> Result<bool> {
    Ok(next_ready(cx, me, project)?.is_some())
}

/// Give a sign of life for a task that you hold, so that its lease goes on. Refused when the lease was lost or the task
/// was called off: then stop working on it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HeartbeatTask {
    /// The task's id.
    task_id: String,
    /// The fence that the claim gave you.
    fence: i64,
    /// How long the claim stands from now on; as long as before if not given.
    lease_seconds: Option<u32>,
}

/// A lease that goes on.
#[derive(Serialize, JsonSchema)]
pub(super) struct Renewed {
    /// The task's id.
    task_id: String,
    /// The fence; it stays the same.
    fence: i64,
    /// When the lease ends without another sign of life.
    expires_at: String,
}

pub(super) fn heartbeat(cx: &mut Cx<'_, '_>, input: HeartbeatTask) -> Result<Renewed> {
    let (me, now) = (me(cx)?, cx.now());
    let ttl = input.lease_seconds.map(|seconds| lease_time(Some(seconds))).transpose()?;
    let task = find_visible(cx, "task_id", &input.task_id, &me)?;
    if task.stored.is_final() {
        return Err(Error::conflict(format!("the task is {}; stop working on it", task.stored.name())));
    }
    let held = lease::renew(cx.tx, &task.subject(), &me, input.fence, ttl, now)?;
    Ok(Renewed { task_id: task.id, fence: held.fence, expires_at: format_time(held.expires_at) })
}

/// Wait until a task changes its state, or without `task_id` until a task is ready for you to claim. If nothing happens
/// in time the answer says so with `changed: false`: ask again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitForTask {
    /// The task to watch; without it, any task that becomes ready for you.
    task_id: Option<String>,
    /// Wait until the task is in another state than this; until it is in a final state if not given.
    status: Option<State>,
    /// Where to look for ready tasks; `default` if not given.
    project: Option<String>,
    /// Whether a task that is ready for you in any other project ends the waiting too; the answer then names that project in
    /// `elsewhere`. Only without `task_id`.
    #[serde(default)]
    any_project: bool,
    /// How long to wait; 25 seconds if not given, which is also the longest.
    timeout_seconds: Option<u32>,
}

/// What a wait for a task answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskWaited {
    /// Whether what was waited for is there.
    changed: bool,
    /// The task as it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskOut>,
    /// Other projects in which tasks are ready for you, where you wait for those.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    elsewhere: Vec<String>,
}

pub(super) fn wait(cx: &mut Cx<'_, '_>, input: WaitForTask) -> Result<Wait<TaskWaited>> {
    check_timeout(input.timeout_seconds)?;
    let (me, now) = (me(cx)?, cx.now());
    let project = party::project(input.project)?;
    let task = match &input.task_id {
        Some(id) => Some(find_visible(cx, "task_id", id, &me)?),
        None if input.status.is_some() => return Err(Error::invalid("status", "needs a task_id")),
        None => next_ready(cx, &me, &project)?,
    };
    let elsewhere = match &input.task_id {
        Some(_) if input.any_project => return Err(Error::invalid("any_project", "does not go with a task_id: a task is watched in whatever project it is")),
        Some(_) => Vec::new(),
        None => projects_ready(cx, &me, &project)?,
    };
    let changed = match (&task, &input.task_id, input.status) {
        (Some(task), Some(_), Some(status)) => task.state(now) != status,
        (Some(task), Some(_), None) => task.state(now).is_final(),
        (task, _, _) => task.is_some() || (input.any_project && !elsewhere.is_empty()),
    };
    let answer = TaskWaited { changed, task: task.map(|task| TaskOut::new(task, now)), elsewhere };
    Ok(if changed { Wait::Ready(answer) } else { Wait::NotYet(answer) })
}

/// Writes back tasks whose workers gave no sign of life, and tells the record. They count as pending before that; this
/// makes it seen by whoever waits. Answers how many there were.
pub fn sweep_tasks(cx: &mut Cx<'_, '_>, limit: u32) -> Result<u32> {
    let now = cx.now();
    let mut swept = 0;
    for id in lost(cx.tx, now, limit)? {
        let Some(mut task) = rows::find_task(cx.tx, &id)?.filter(|task| task.stored == State::InProgress && task.held(now).is_none()) else { continue };
        task.stored = State::Pending;
        rows::update_task(cx.tx, &mut task, now)?;
        let audience = parties(cx, &task)?;
        let mut event = Event::new(LEASE_EXPIRED, task.subject()).fact("task", task.id.as_str()).fact("version", task.version);
        if let Some((holder, fence, expires_at)) = &task.lease {
            event = event.fact("holder", holder.as_str()).fact("fence", *fence).fact("expires_at", *expires_at);
        }
        cx.emit(event.audience(audience))?;
        swept += 1;
    }
    Ok(swept)
}

pub(super) const LOST: &str = "select t.id from task t left join lease l on l.subject = 'task:' || t.id \
     where t.state = 'in_progress' and coalesce(l.expires_at, 0) <= $1 order by t.recipient, t.project, t.rank, t.created_at, t.id limit $2";

/// Whether a task is there whose worker lost its claim, and of which nobody was told yet.
pub fn are_claims_lost(tx: &mut Tx<'_>, now: i64) -> Result<bool> {
    Ok(!lost(tx, now, 1)?.is_empty())
}

fn lost(tx: &mut Tx<'_>, now: i64, limit: u32) -> Result<Vec<String>> {
    let rows = tx.query(LOST, args![now, limit])?;
    Ok(rows.iter().map(|row| row.get(0)).collect::<deskmate_db::Result<_>>()?)
}
