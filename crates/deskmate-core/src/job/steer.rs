//! Stopping a job, and sending one round again.

use deskmate_db::args;

use super::events::{CANCEL_REQUESTED, FINISHED, RETRIED, tell};
use super::model::State;
use super::rows::{JobRow, find, find_unique};
use crate::call::Cx;
use crate::gateway;
use crate::limits::JOB_RUNS_MAX;
use crate::workspace::plan;
use crate::{Error, Result, agents, notify};

pub(super) fn need(cx: &mut Cx<'_, '_>, job: &str) -> Result<JobRow> {
    find(cx, job)?.ok_or_else(|| missing(job))
}

pub(super) fn missing(job: &str) -> Error {
    Error::not_found(format!("there is no job {job} for you")).hint("jobs that ended are deleted after a while")
}

/// Stops a job: one that waits at once, one that runs as soon as it gives its next sign of life. Who may ask for it is
/// for the caller to check. Answers the state that the job is in now.
pub fn cancel(cx: &mut Cx<'_, '_>, job: &str) -> Result<State> {
    let (row, now) = (need(cx, job)?, cx.now());
    match row.state {
        State::Waiting => {
            cx.tx.execute(
                "update job set state = 'cancelled', cancel_requested = true, finished_at = $2, updated_at = $2 where id = $1 and state = 'waiting'",
                args![job, now],
            )?;
            tell(cx, FINISHED, &row, State::Cancelled, |event| event)?;
            plan::job_ended(cx, &row.kind, &row.id)?;
            gateway::job_ended(cx, &row.kind, &row.id)?;
            agents::job_ended(cx, &row.kind, row.unique_key.as_deref(), State::Cancelled, None)?;
            notify::job_ended(cx, &row.kind, &row.id, row.unique_key.as_deref(), "it was cancelled before it was sent")?;
            Ok(State::Cancelled)
        }
        State::Running if row.cancel_requested => Ok(State::Running),
        State::Running => {
            cx.tx.execute("update job set cancel_requested = true, updated_at = $2 where id = $1 and state = 'running'", args![job, now])?;
            tell(cx, CANCEL_REQUESTED, &row, State::Running, |event| event)?;
            Ok(State::Running)
        }
        State::Cancelled => Ok(State::Cancelled),
        ended => Err(Error::conflict(format!("the job has ended already: it is {}", ended.name()))),
    }
}

/// Stops a job whose work nobody wants any more, if it has not ended.
pub(crate) fn drop(cx: &mut Cx<'_, '_>, job: &str) -> Result<()> {
    if find(cx, job)?.is_some_and(|row| !row.state.is_end()) {
        cancel(cx, job)?;
    }
    Ok(())
}

/// Sends a job round again that failed, or whose outcome nobody knew until somebody looked. Where its attempts are used
/// up it gets one more.
pub fn retry(cx: &mut Cx<'_, '_>, job: &str) -> Result<()> {
    let (row, now) = (need(cx, job)?, cx.now());
    if !matches!(row.state, State::Failed | State::Ambiguous) {
        return Err(Error::conflict(format!("the job is {}; only one that failed or is ambiguous can be tried again", row.state.name())));
    }
    if row.attempt >= JOB_RUNS_MAX {
        return Err(Error::conflict(format!("the job ran {} times; no job runs more often", row.attempt)).hint("have its work enqueued anew"));
    }
    if let Some(key) = &row.unique_key
        && let Some(other) = find_unique(cx, &row.kind, key)?
    {
        return Err(Error::conflict(format!("the job {other} does the same work and has not ended")));
    }
    cx.tx.execute(
        "update job set state = 'waiting', run_at = $2, attempts_max = $3, cancel_requested = false, finished_at = null, updated_at = $2 where id = $1",
        args![job, now, row.attempts_max.max(row.attempt + 1)],
    )?;
    tell(cx, RETRIED, &row, State::Waiting, |event| event.fact("run_at", now))
}
