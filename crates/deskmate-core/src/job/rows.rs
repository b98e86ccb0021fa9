//! The rows of jobs and attempts.

use deskmate_db::{Row, args};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::model::{IfLost, Owner, Priority, Progress, State};
use crate::call::{ActorKind, Cx};
use crate::limits::{JOB_ERROR_BYTES_MAX, JOB_RUNS_MAX};
use crate::{Code, Error, Result};

/// A query for [`JobRow`]s; the long texts are not among its columns.
macro_rules! select_job {
    ($rest:literal) => {
        concat!(
            "select id, kind, state, priority, run_at, unique_key, owner_kind, owner, if_lost, attempt, attempts_max, cancel_requested, \
             created_at, updated_at, finished_at, progress from job ",
            $rest
        )
    };
}
pub(super) use select_job;

/// A stored job without its long texts.
#[derive(Clone, Debug)]
pub(super) struct JobRow {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) state: State,
    pub(super) priority: Priority,
    pub(super) run_at: i64,
    pub(super) unique_key: Option<String>,
    pub(super) owner: Owner,
    pub(super) if_lost: IfLost,
    pub(super) attempt: i64,
    pub(super) attempts_max: i64,
    pub(super) cancel_requested: bool,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    pub(super) finished_at: Option<i64>,
    pub(super) progress: Option<Progress>,
}

impl JobRow {
    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            kind: row.get(1)?,
            state: State::from_name(&row.get::<String>(2)?)?,
            priority: Priority::from_rank(row.get(3)?)?,
            run_at: row.get(4)?,
            unique_key: row.get(5)?,
            owner: Owner { kind: ActorKind::from_name(&row.get::<String>(6)?), id: row.get(7)? },
            if_lost: IfLost::from_name(&row.get::<String>(8)?),
            attempt: row.get(9)?,
            attempts_max: row.get(10)?,
            cancel_requested: row.get(11)?,
            created_at: row.get(12)?,
            updated_at: row.get(13)?,
            finished_at: row.get(14)?,
            progress: row.get::<Option<String>>(15)?.map(|text| from_text(&text)).transpose()?,
        })
    }

    /// The subject of the job's lease and of its events.
    pub(super) fn subject(&self) -> String {
        subject(&self.id)
    }
}

/// The subject of a job's lease and of its events.
pub(super) fn subject(job: &str) -> String {
    format!("job:{job}")
}

/// A job by its id.
pub(super) fn find(cx: &mut Cx<'_, '_>, job: &str) -> Result<Option<JobRow>> {
    cx.tx.optional(select_job!("where id = $1"), args![job])?.map(|row| JobRow::read(&row)).transpose()
}

pub(super) const UNIQUE: &str =
    "select id from job where kind = $1 and unique_key = $2 and unique_key is not null and (state = 'waiting' or state = 'running') limit 1";

/// The job that holds a unique key: there is at most one.
pub(super) fn find_unique(cx: &mut Cx<'_, '_>, kind: &str, key: &str) -> Result<Option<String>> {
    let row = cx.tx.optional(UNIQUE, args![kind, key])?;
    Ok(row.map(|row| row.get(0)).transpose()?)
}

/// The long texts of a job.
pub(super) struct Texts {
    pub(super) input: Value,
    pub(super) step: Option<Value>,
    pub(super) result: Option<Value>,
    pub(super) error: Option<String>,
}

pub(super) fn texts(cx: &mut Cx<'_, '_>, job: &str) -> Result<Texts> {
    let row = cx.tx.one("select input, step, result, error from job where id = $1", args![job])?;
    Ok(Texts {
        input: from_text(&row.get::<String>(0)?)?,
        step: row.get::<Option<String>>(1)?.map(|text| from_text(&text)).transpose()?,
        result: row.get::<Option<String>>(2)?.map(|text| from_text(&text)).transpose()?,
        error: row.get(3)?,
    })
}

/// What a job was given.
pub(crate) fn input(cx: &mut Cx<'_, '_>, job: &str) -> Result<Value> {
    from_text(&cx.tx.one("select input from job where id = $1", args![job])?.get::<String>(0)?)
}

/// A stored attempt.
pub(super) struct AttemptRow {
    pub(super) number: i64,
    pub(super) worker: String,
    pub(super) started_at: i64,
    pub(super) ended_at: Option<i64>,
    pub(super) outcome: Option<String>,
    pub(super) error: Option<String>,
}

/// All attempts of a job, oldest first; a job cannot run more often than the limit.
pub(super) fn attempts(cx: &mut Cx<'_, '_>, job: &str) -> Result<Vec<AttemptRow>> {
    let rows = cx.tx.query(
        "select number, worker, started_at, ended_at, outcome, error from job_attempt where job = $1 order by job, number limit $2",
        args![job, JOB_RUNS_MAX],
    )?;
    let read = |row: &Row| -> Result<AttemptRow> {
        Ok(AttemptRow { number: row.get(0)?, worker: row.get(1)?, started_at: row.get(2)?, ended_at: row.get(3)?, outcome: row.get(4)?, error: row.get(5)? })
    };
    rows.iter().map(read).collect()
}

/// Closes the attempt that a job is in.
pub(super) fn close_attempt(cx: &mut Cx<'_, '_>, job: &JobRow, outcome: &str, error: Option<&str>) -> Result<()> {
    let now = cx.now();
    cx.tx.execute(
        "update job_attempt set ended_at = $3, outcome = $4, error = $5 where job = $1 and number = $2 and ended_at is null",
        args![job.id, job.attempt, now, outcome, error],
    )?;
    Ok(())
}

/// A value as it is stored: bounded, and sure to be readable again.
pub(super) fn to_text(field: &str, value: &Value, bytes_max: usize) -> Result<String> {
    let text = value.to_string();
    if text.len() > bytes_max {
        return Err(Error::invalid(field, format!("is {} bytes long as JSON; at most {bytes_max} are allowed", text.len())));
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Error::invalid(field, format!("could not be read again: {error}"))),
    }
}

pub(super) fn from_text<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::new(Code::Internal, format!("a job's stored text is unreadable: {error}")))
}

/// An error as it is stored. It comes from anywhere, and a report of a failure must not fail for its wording: what does
/// not fit is cut, and says so.
pub(super) fn error_text(error: &str) -> String {
    const CUT: &str = " … (cut)";
    let text = error.replace('\0', "\u{fffd}");
    if text.len() <= JOB_ERROR_BYTES_MAX {
        return text;
    }
    let end = text.floor_char_boundary(JOB_ERROR_BYTES_MAX - CUT.len());
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}{CUT}")
}
