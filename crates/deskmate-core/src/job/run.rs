//! While a job runs and when it ends: signs of life, the outcome, and what becomes of jobs whose worker is lost.
//!
//! Whoever reports shows the fence of the lease; after the lease was lost, nothing of that worker is written.

use std::time::Duration;

use deskmate_db::args;

use super::events::{FINISHED, RESCUED, RETRIED, tell};
use super::model::{Beat, Hold, IfLost, Outcome, Progress, Rescued, State};
use super::queue::micros;
use super::rows::{self, JobRow, close_attempt, error_text, find, to_text};
use crate::call::Cx;
use crate::gateway;
use crate::limits::{INPUT_BYTES_MAX, JOB_BACKOFF_MAX, JOB_BACKOFF_MIN, JOB_PUT_OFF_MAX, JOB_SLICE_MAX, JOB_STEP_BYTES_MAX, TITLE_CHARS_MAX};
use crate::workspace::plan;
use crate::{Error, Result, agents, check_text, lease, notify, record};

/// Gives a sign of life: the lease starts anew, and progress and step are kept where they are given. It answers whether
/// somebody wants the job to stop. The record is not told: that a job runs is no news.
pub fn heartbeat(cx: &mut Cx<'_, '_>, job: &str, worker: &str, fence: i64, progress: Option<Progress>, step: Option<serde_json::Value>) -> Result<Beat> {
    let progress = progress.map(|progress| progress_text(&progress)).transpose()?;
    let step = step.map(|step| to_text("step", &step, JOB_STEP_BYTES_MAX)).transpose()?;
    let now = cx.now();
    let lease = lease::renew(cx.tx, &rows::subject(job), worker, fence, None, now)?;
    if progress.is_some() || step.is_some() {
        cx.tx.execute(
            "update job set progress = coalesce($2, progress), step = coalesce($3, step), updated_at = $4 where id = $1 and state = 'running'",
            args![job, progress, step, now],
        )?;
    }
    let row = running(cx, job)?;
    Ok(Beat { cancel_requested: row.cancel_requested, expires_at: lease.expires_at })
}

fn progress_text(progress: &Progress) -> Result<String> {
    if progress.percent.is_some_and(|percent| percent > 100) {
        return Err(Error::invalid("percent", "must be between 0 and 100"));
    }
    if let Some(text) = &progress.text {
        check_text("text", text, TITLE_CHARS_MAX)?;
    }
    Ok(serde_json::json!(progress).to_string())
}

/// Refuses whoever does not hold a job any more: what a worker writes down besides its reports, it writes in one transaction with
/// this.
pub fn held(cx: &mut Cx<'_, '_>, hold: &Hold) -> Result<()> {
    let now = cx.now();
    lease::check(cx.tx, &rows::subject(&hold.job), &hold.worker, Some(hold.fence), now)?;
    Ok(())
}

/// The job that a lease is on. A lease without a running job cannot be, unless somebody wrote around the queue.
fn running(cx: &mut Cx<'_, '_>, job: &str) -> Result<JobRow> {
    find(cx, job)?.filter(|row| row.state == State::Running).ok_or_else(|| Error::conflict("the job does not run any more"))
}

/// Ends an attempt, and the job with it unless it is to be tried again. Answers the state that the job is in now:
/// `waiting` if there will be another attempt. Refused after the lease ran out, even if nobody has taken the job yet:
/// from then on it may be given to somebody else at any moment.
///
/// A result that is too large is `invalid` and changes nothing: the worker then reports a failure that says so.
pub fn finish(cx: &mut Cx<'_, '_>, job: &str, worker: &str, fence: i64, outcome: Outcome) -> Result<State> {
    let now = cx.now();
    lease::check(cx.tx, &rows::subject(job), worker, Some(fence), now)?;
    let row = running(cx, job)?;
    match outcome {
        Outcome::Done(result) => {
            let result = to_text("result", &result, INPUT_BYTES_MAX)?;
            close_attempt(cx, &row, "done", None)?;
            end(cx, &row, State::Done, Some(&result), None)
        }
        Outcome::Failed { error, retry } => failed(cx, &row, &error, retry, Duration::ZERO),
        Outcome::PutOff { error, by } => failed(cx, &row, &error, true, by.min(JOB_PUT_OFF_MAX)),
        Outcome::Cancelled => {
            close_attempt(cx, &row, "cancelled", None)?;
            end(cx, &row, State::Cancelled, None, None)
        }
        Outcome::Ambiguous { what } => {
            let what = error_text(&what);
            close_attempt(cx, &row, "ambiguous", Some(&what))?;
            end(cx, &row, State::Ambiguous, None, Some(&what))
        }
    }
}

/// Ends an attempt that failed. The next one, if there is any, comes after `least` at the earliest.
fn failed(cx: &mut Cx<'_, '_>, row: &JobRow, error: &str, retry: bool, least: Duration) -> Result<State> {
    let error = error_text(error);
    close_attempt(cx, row, "failed", Some(&error))?;
    if !retry || row.attempt >= row.attempts_max {
        end(cx, row, State::Failed, None, Some(&error))
    } else if row.cancel_requested {
        end(cx, row, State::Cancelled, None, Some(&error))
    } else {
        wait_again(cx, row, &error, least)
    }
}

/// Ends a running job.
fn end(cx: &mut Cx<'_, '_>, job: &JobRow, state: State, result: Option<&str>, error: Option<&str>) -> Result<State> {
    let now = cx.now();
    lease::release(cx.tx, &job.subject(), now)?;
    cx.tx.execute(
        "update job set state = $2, result = $3, error = $4, finished_at = $5, updated_at = $5 where id = $1 and state = 'running'",
        args![job.id, state.name(), result, error, now],
    )?;
    tell(cx, FINISHED, job, state, |event| event)?;
    plan::job_ended(cx, &job.kind, &job.id)?;
    gateway::job_ended(cx, &job.kind, &job.id)?;
    record::job_ended(cx, &job.kind, result)?;
    agents::job_ended(cx, &job.kind, job.unique_key.as_deref(), state, error)?;
    if state != State::Done {
        notify::job_ended(cx, &job.kind, &job.id, job.unique_key.as_deref(), error.unwrap_or("it was stopped"))?;
    }
    Ok(state)
}

/// Puts a running job back after a failure, to be tried again later.
fn wait_again(cx: &mut Cx<'_, '_>, job: &JobRow, error: &str, least: Duration) -> Result<State> {
    let run_at = put_back(cx, job, error, least)?;
    tell(cx, RETRIED, job, State::Waiting, |event| event.fact("run_at", run_at))?;
    Ok(State::Waiting)
}

fn put_back(cx: &mut Cx<'_, '_>, job: &JobRow, error: &str, least: Duration) -> Result<i64> {
    let now = cx.now();
    let run_at = now.saturating_add(backoff(job.attempt, chance(cx)).max(micros(least)));
    lease::release(cx.tx, &job.subject(), now)?;
    cx.tx.execute(
        "update job set state = 'waiting', run_at = $2, error = $3, updated_at = $4 where id = $1 and state = 'running'",
        args![job.id, run_at, error, now],
    )?;
    Ok(run_at)
}

fn chance(cx: &Cx<'_, '_>) -> u8 {
    let [first, ..] = cx.secret();
    first
}

/// How long the next attempt waits: twice as long each time, up to a bound, and up to a quarter more by chance, so that
/// jobs that failed together do not come back together.
fn backoff(attempt: i64, chance: u8) -> i64 {
    let doublings = attempt.saturating_sub(1).clamp(0, 30);
    let wait = micros(JOB_BACKOFF_MIN).saturating_mul(1 << doublings).min(micros(JOB_BACKOFF_MAX));
    wait.saturating_add(wait / 4 / 255 * i64::from(chance))
}

pub(super) const RUNNING: &str = "select id, (select expires_at from lease where subject = 'job:' || job.id) from job \
     where state = 'running' and id > $1 order by id limit $2";

/// Takes jobs from workers that gave no sign of life, at most `limit` of them. The lost attempt is closed; the job waits
/// for another one, or ends where there is none left, where it was to be stopped, or where it must not run twice.
pub fn rescue(cx: &mut Cx<'_, '_>, limit: u32) -> Result<Vec<Rescued>> {
    let now = cx.now();
    take_from_lost(cx, now, limit)
}

/// The same for jobs of every worker there was. Only for a server that has just started and is the only one: nobody else
/// can still be at them, and their leases need not run out first.
pub fn rescue_all(cx: &mut Cx<'_, '_>, limit: u32) -> Result<Vec<Rescued>> {
    take_from_lost(cx, i64::MAX, limit)
}

/// Takes the jobs whose leases end until then.
fn take_from_lost(cx: &mut Cx<'_, '_>, until: i64, limit: u32) -> Result<Vec<Rescued>> {
    let limit = limit.min(JOB_SLICE_MAX) as usize;
    let mut rescued = Vec::new();
    let mut after = String::new();
    // The running jobs are as many as the workers can hold, so looking at each of them is cheap. The other way round,
    // by the leases that ran out, would read through all that were ever released.
    loop {
        let slice = cx.tx.query(RUNNING, args![after, JOB_SLICE_MAX])?;
        for row in &slice {
            if rescued.len() >= limit {
                return Ok(rescued);
            }
            after = row.get(0)?;
            if row.get::<Option<i64>>(1)?.is_none_or(|expires_at| expires_at <= until) {
                rescued.push(give_up(cx, &after)?);
            }
        }
        if slice.len() < JOB_SLICE_MAX as usize {
            return Ok(rescued);
        }
    }
}

const LOST: &str = "worker lost: it gave no sign of life";

fn give_up(cx: &mut Cx<'_, '_>, job: &str) -> Result<Rescued> {
    let row = running(cx, job)?;
    close_attempt(cx, &row, "lost", Some(LOST))?;
    let state = if row.if_lost == IfLost::Ambiguous {
        State::Ambiguous
    } else if row.cancel_requested {
        State::Cancelled
    } else if row.attempt >= row.attempts_max {
        State::Failed
    } else {
        State::Waiting
    };
    if state == State::Waiting {
        let run_at = put_back(cx, &row, LOST, Duration::ZERO)?;
        tell(cx, RESCUED, &row, state, |event| event.fact("run_at", run_at))?;
    } else {
        tell(cx, RESCUED, &row, state, |event| event)?;
        end(cx, &row, state, None, Some(LOST))?;
    }
    Ok(Rescued { job: row.id, attempt: row.attempt, state })
}

#[cfg(test)]
mod tests {
    use super::backoff;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn backoff_doubles_up_to_its_bound() {
        let waits: Vec<i64> = [1, 2, 3, 11, 12, 25, i64::MAX].into_iter().map(|attempt| backoff(attempt, 0) / SECOND).collect();
        assert_eq!(waits, [2, 4, 8, 2_048, 3_600, 3_600, 3_600]);
    }

    #[test]
    fn chance_adds_at_most_a_quarter() {
        for attempt in 1..=25 {
            let (least, most) = (backoff(attempt, 0), backoff(attempt, u8::MAX));
            assert!(most > least && most <= least + least / 4, "attempt {attempt}: {least} to {most}");
        }
    }
}
