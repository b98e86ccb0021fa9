//! Jobs on the surfaces. People see all jobs, an agent sees its own; a job that a caller may not see does not exist for it.

use deskmate_db::{Row, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::model::{Priority, Progress, State};
use super::rows::{self, AttemptRow, JobRow, Texts, select_job};
use super::steer::{self, missing};
use crate::call::{ActorKind, Cx, Page, PageIn, Wait};
use crate::limits::{PAGE_MAX, WAIT_MAX};
use crate::workspace::scan;
use crate::{Error, Result, format_time};

/// A job.
#[derive(Serialize, JsonSchema)]
pub(super) struct JobOut {
    /// Its id.
    job: String,
    /// What kind of work.
    kind: String,
    /// Where it stands.
    state: State,
    /// What runs first.
    priority: Priority,
    /// The kind of actor that it runs for.
    owner_kind: ActorKind,
    /// The actor that it runs for.
    owner: String,
    /// It does not start before this moment.
    run_at: String,
    /// How often it was tried.
    attempt: i64,
    /// How often it is tried.
    attempts_max: i64,
    /// Whether it was asked to stop.
    cancel_requested: bool,
    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    /// When it was put into the queue.
    created_at: String,
    /// When it last changed.
    updated_at: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
}

impl From<JobRow> for JobOut {
    fn from(row: JobRow) -> Self {
        Self {
            job: row.id,
            kind: row.kind,
            state: row.state,
            priority: row.priority,
            owner_kind: row.owner.kind,
            owner: row.owner.id,
            run_at: format_time(row.run_at),
            attempt: row.attempt,
            attempts_max: row.attempts_max,
            cancel_requested: row.cancel_requested,
            progress: row.progress,
            created_at: format_time(row.created_at),
            updated_at: format_time(row.updated_at),
            finished_at: row.finished_at.map(format_time),
        }
    }
}

/// List jobs, newest first. An agent sees its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// Only jobs in this state.
    state: Option<State>,
    /// Only jobs of this kind.
    kind: Option<String>,
    /// How many jobs; at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of jobs.
#[derive(Serialize, JsonSchema)]
pub(super) struct Jobs {
    /// The jobs, newest first.
    jobs: Vec<JobOut>,
    /// Give this as `cursor` for the next page. Absent at the end. A page may be short, even empty, before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// How many rows one call looks at while it seeks those that fit.
const SCAN_MAX: usize = 5_000;

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<Jobs> {
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let fits = |row: &JobRow| input.state.is_none_or(|state| state == row.state) && input.kind.as_ref().is_none_or(|kind| *kind == row.kind);
    let found = scan(cx, &page, |cx, after| slice(cx, &input, after), fits)?;
    Ok(Jobs { jobs: found.items.into_iter().map(JobOut::from).collect(), next_cursor: found.next_cursor })
}

/// A page of the jobs that fit, newest first. `slice` reads the next rows behind one, by an index.
pub(super) fn scan(
    cx: &mut Cx<'_, '_>,
    page: &PageIn,
    slice: impl Fn(&mut Cx<'_, '_>, (i64, String)) -> Result<Vec<Row>>,
    fits: impl Fn(&JobRow) -> bool,
) -> Result<Page<JobRow>> {
    let (mut after, mut found, mut looked) = (page.after.clone(), Vec::new(), 0);
    loop {
        let rows = slice(cx, after.unwrap_or((i64::MAX, String::new())))?.iter().map(JobRow::read).collect::<Result<Vec<_>>>()?;
        let read = rows.len();
        looked += read;
        after = rows.last().map(key);
        let last = rows.last().cloned();
        found.extend(rows.into_iter().filter(&fits));
        if found.len() > page.limit as usize || read < PAGE_MAX as usize {
            return Ok(Page::cut(found, page, key));
        }
        if looked >= SCAN_MAX {
            return Ok(Page { items: found, next_cursor: last.map(|row| Page::<JobRow>::cursor(row.created_at, &row.id)) });
        }
    }
}

fn key(row: &JobRow) -> (i64, String) {
    (row.created_at, row.id.clone())
}

pub(super) const OF_OWNER: &str =
    select_job!("where owner_kind = $4 and owner = $5 and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");
pub(super) const IN_STATE: &str = select_job!("where state = $4 and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");
pub(super) const OF_KIND: &str = select_job!("where kind = $4 and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");
pub(super) const ALL: &str = select_job!("where (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");

/// The next rows by the index that narrows most; whether the rest fits is seen in the rows themselves.
fn slice(cx: &mut Cx<'_, '_>, input: &List, (at, id): (i64, String)) -> Result<Vec<Row>> {
    Ok(if cx.actor.is_agent() {
        cx.tx.query(OF_OWNER, args![at, id, PAGE_MAX, cx.actor.kind.name(), cx.actor.id])?
    } else if let Some(state) = input.state {
        cx.tx.query(IN_STATE, args![at, id, PAGE_MAX, state.name()])?
    } else if let Some(kind) = &input.kind {
        cx.tx.query(OF_KIND, args![at, id, PAGE_MAX, kind])?
    } else {
        cx.tx.query(ALL, args![at, id, PAGE_MAX])?
    })
}

/// A job that the caller may see.
fn visible(cx: &mut Cx<'_, '_>, job: &str) -> Result<JobRow> {
    let row = rows::find(cx, job)?;
    row.filter(|row| !cx.actor.is_agent() || row.owner.is(&cx.actor)).ok_or_else(|| missing(job))
}

/// What a job was given and what came out of it, unless that tells of files that the caller's client leaves out.
fn told(cx: &mut Cx<'_, '_>, row: &JobRow) -> Result<Texts> {
    let texts = rows::texts(cx, &row.id)?;
    if row.kind == scan::SCAN_JOB {
        scan::check_reach(cx, &texts.input)?;
    }
    Ok(texts)
}

/// How a job stands, for an operation that put it into the queue.
pub(crate) struct Seen {
    pub(crate) state: State,
    pub(crate) progress: Option<Progress>,
    /// What it was given.
    pub(crate) input: Value,
    pub(crate) result: Option<Value>,
    pub(crate) error: Option<String>,
}

/// How far the work on something is, for whoever may see that thing.
pub(crate) struct Work {
    pub(crate) state: State,
    pub(crate) progress: Option<Progress>,
    /// Whether it was asked to stop.
    pub(crate) stopping: bool,
}

/// How a job stands; `None` once it was pruned.
pub(crate) fn how(cx: &mut Cx<'_, '_>, job: &str) -> Result<Option<Work>> {
    Ok(rows::find(cx, job)?.map(|row| Work { state: row.state, progress: row.progress, stopping: row.cancel_requested }))
}

/// A job of a kind that the caller may see.
pub(crate) fn seen(cx: &mut Cx<'_, '_>, job: &str, kind: &str) -> Result<Seen> {
    let row = visible(cx, job)?;
    if row.kind != kind {
        return Err(missing(job));
    }
    let texts = rows::texts(cx, job)?;
    Ok(Seen { state: row.state, progress: row.progress, input: texts.input, result: texts.result, error: texts.error })
}

/// How many of the caller's newest jobs are of a kind and have not ended.
pub(crate) fn under_way(cx: &mut Cx<'_, '_>, kind: &str) -> Result<i64> {
    let rows = cx.tx.query(OF_OWNER, args![i64::MAX, String::new(), PAGE_MAX, cx.actor.kind.name(), cx.actor.id])?;
    let rows = rows.iter().map(JobRow::read).collect::<Result<Vec<_>>>()?;
    let count = rows.iter().filter(|row| row.kind == kind && !row.state.is_end()).count();
    Ok(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Read one job: what it was given, how far it has come, its attempts with their errors, and its result.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Get {
    /// The job's id.
    job: String,
}

/// A job with all that is known of it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Details {
    #[serde(flatten)]
    job: JobOut,
    /// What it was given.
    input: Value,
    /// Where a further attempt would go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<Value>,
    /// What came out of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// Why it failed, last failed, or what is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Its attempts, oldest first.
    attempts: Vec<AttemptOut>,
}

/// One attempt.
#[derive(Serialize, JsonSchema)]
struct AttemptOut {
    /// Which one, counted from 1.
    number: i64,
    /// Who ran it.
    worker: String,
    /// When it began.
    started_at: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    /// How it ended: `done`, `failed`, `ambiguous`, `cancelled`, or `lost` when its worker gave no sign of life.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<AttemptRow> for AttemptOut {
    fn from(row: AttemptRow) -> Self {
        Self {
            number: row.number,
            worker: row.worker,
            started_at: format_time(row.started_at),
            ended_at: row.ended_at.map(format_time),
            outcome: row.outcome,
            error: row.error,
        }
    }
}

pub(super) fn get(cx: &mut Cx<'_, '_>, input: Get) -> Result<Details> {
    let row = visible(cx, &input.job)?;
    let texts = told(cx, &row)?;
    let attempts = rows::attempts(cx, &row.id)?.into_iter().map(AttemptOut::from).collect();
    Ok(Details { job: row.into(), input: texts.input, step: texts.step, result: texts.result, error: texts.error, attempts })
}

/// Wait until a job has ended, for at most 25 seconds, and get its result. If it has not ended by then, the answer says so:
/// ask again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitFor {
    /// The job's id.
    job: String,
    /// How long to wait, at most 25 seconds; 25 if not given.
    timeout_seconds: Option<u64>,
}

/// How a job ended, or that it has not.
#[derive(Serialize, JsonSchema)]
pub(super) struct Waited {
    /// Whether it has ended; if not, ask again.
    ended: bool,
    #[serde(flatten)]
    job: JobOut,
    /// What came out of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// Why it failed, or what is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) fn wait(cx: &mut Cx<'_, '_>, input: WaitFor) -> Result<Wait<Waited>> {
    let longest = WAIT_MAX.as_secs();
    if input.timeout_seconds.is_some_and(|seconds| seconds > longest) {
        return Err(Error::invalid("timeout_seconds", format!("must be at most {longest}")).hint("ask again for longer waits"));
    }
    let row = visible(cx, &input.job)?;
    if !row.state.is_end() {
        return Ok(Wait::NotYet(Waited { ended: false, job: row.into(), result: None, error: None }));
    }
    let texts = told(cx, &row)?;
    Ok(Wait::Ready(Waited { ended: true, job: row.into(), result: texts.result, error: texts.error }))
}

/// Stop a job. One that waits is cancelled at once; one that runs is asked to stop and learns of it with its next sign of
/// life. An agent can stop its own jobs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancel {
    /// The job's id.
    job: String,
}

/// What became of the job.
#[derive(Serialize, JsonSchema)]
pub(super) struct Steered {
    /// The job's id.
    job: String,
    /// The state that it is in now; one that still runs was asked to stop.
    state: State,
}

pub(super) fn cancel_job(cx: &mut Cx<'_, '_>, input: Cancel) -> Result<Steered> {
    let row = visible(cx, &input.job)?;
    let state = steer::cancel(cx, &row.id)?;
    Ok(Steered { job: row.id, state })
}

/// Try a job again that failed or whose outcome is ambiguous. Look first what it may have done already.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Retry {
    /// The job's id.
    job: String,
}

pub(super) fn retry_job(cx: &mut Cx<'_, '_>, input: Retry) -> Result<Steered> {
    let row = visible(cx, &input.job)?;
    steer::retry(cx, &row.id)?;
    Ok(Steered { job: row.id, state: State::Waiting })
}
