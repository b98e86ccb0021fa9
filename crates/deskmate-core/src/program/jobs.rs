//! Putting jobs into the queue, and looking at them. A program sees the jobs of its own pairing, and no others.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::work::Asked;
use super::{JOB, kinds, roots};
use crate::call::{Cx, Key, PageIn, Wait};
use crate::job::{self, Entry, NewJob, Priority, State};
use crate::limits::{IDEMPOTENCY_KEY_CHARS_MAX, INPUT_BYTES_MAX, PROGRAM_ATTEMPTS_MAX, PROGRAM_JOBS_MAX, WAIT_MAX};
use crate::workspace::plan;
use crate::{Code, Error, Result, check_text, request};

/// Put a job into the queue, as a program that is paired with a person. The same `dedupe_key` and type again, within 7 days and
/// with the same content, is the same job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Submit {
    /// A key of the program's choice for this job.
    dedupe_key: String,
    /// The number of the kind of job.
    #[serde(rename = "type")]
    kind: i32,
    /// Narrows the job to these folders. They must be open here; nothing named is no narrowing.
    #[serde(default)]
    allowed_roots: Vec<String>,
    /// The parameters, all as texts.
    #[serde(default)]
    params: BTreeMap<String, String>,
}

/// A job in the queue.
#[derive(Serialize, JsonSchema)]
pub(super) struct Submitted {
    /// Whether it is new.
    created_new: bool,
    /// Its id.
    job_id: String,
    /// How it stands: 1 queued, 2 running, 3 succeeded, 4 failed, 5 cancelled.
    status: i32,
    /// When it was taken, in milliseconds since 1970.
    accepted_at_ms: i64,
}

/// The pairing that calls.
fn session(cx: &Cx<'_, '_>) -> Result<String> {
    let token = cx.actor.credential.clone().filter(|_| cx.actor.scopes.is_some());
    token.ok_or_else(|| Error::forbidden("these jobs are for paired programs").hint("pair the program: it sends the token that it gets"))
}

pub(super) fn submit(cx: &mut Cx<'_, '_>, input: Submit) -> Result<Submitted> {
    let session = session(cx)?;
    let kind = kinds::find(input.kind)?;
    check_text("dedupe_key", &input.dedupe_key, IDEMPOTENCY_KEY_CHARS_MAX)?;
    if input.dedupe_key.is_empty() {
        return Err(Error::invalid("dedupe_key", "must not be empty"));
    }
    let asked = Asked { session, number: input.kind, dedupe_key: input.dedupe_key, allowed_roots: input.allowed_roots, params: input.params };
    for (name, text) in &asked.params {
        check_text(&format!("params.{name}"), text, INPUT_BYTES_MAX)?;
    }
    let unique = asked.unique_key();
    let key = Key::new(unique.clone(), &json!(asked))?;
    let known = key.answered(cx, JOB).map_err(|error| match error.code {
        Code::Conflict => Error::conflict("this dedupe_key was used for another job of this type").hint("take a new key for a new job"),
        _ => error,
    })?;
    if let Some(id) = known.as_ref().and_then(|known| known.as_str())
        && let Some(entry) = job::entry(cx, JOB, id)?
    {
        return Ok(Submitted { created_new: false, job_id: entry.id, status: status(entry.state), accepted_at_ms: entry.created_at / 1_000 });
    }
    roots::narrowed(cx, kind, &asked.allowed_roots, &asked.params)?;
    if job::count_open(cx, JOB, &asked.prefix(), PROGRAM_JOBS_MAX)? >= PROGRAM_JOBS_MAX {
        return Err(Error::limited(format!("{PROGRAM_JOBS_MAX} jobs of this program wait or run already"), 5_000).hint("wait for them, or cancel some"));
    }
    let new = NewJob { priority: Priority::Urgent, unique_key: Some(unique), attempts_max: PROGRAM_ATTEMPTS_MAX, ..NewJob::new(JOB, json!(asked)) };
    let job = job::enqueue(cx, new)?.job;
    key.keep(cx, JOB, &json!(job))?;
    Ok(Submitted { created_new: true, job_id: job, status: status(State::Waiting), accepted_at_ms: cx.now() / 1_000 })
}

/// The number of a state. What nobody knows the outcome of did not succeed.
fn status(state: State) -> i32 {
    match state {
        State::Waiting => 1,
        State::Running => 2,
        State::Done => 3,
        State::Failed | State::Ambiguous => 4,
        State::Cancelled => 5,
    }
}

/// A job of a program.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProgramJob {
    /// Its id.
    job_id: String,
    /// The program's key for it.
    dedupe_key: String,
    /// The number of its kind.
    #[serde(rename = "type")]
    kind: i32,
    /// How it stands: 1 queued, 2 running, 3 succeeded, 4 failed, 5 cancelled.
    status: i32,
    /// When it was taken, in milliseconds since 1970.
    created_at_ms: i64,
    /// When it was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at_ms: Option<i64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at_ms: Option<i64>,
    /// Why it failed, or last failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
    /// How much of it is done, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress_percent: Option<u32>,
    /// What it does right now.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress_text: Option<String>,
    /// Whether it was asked to stop.
    cancel_requested: bool,
}

impl ProgramJob {
    fn of(entry: Entry) -> Self {
        let (number, dedupe_key) = Asked::read_key(entry.unique_key.as_deref().unwrap_or_default());
        let progress = entry.progress.unwrap_or_default();
        Self {
            job_id: entry.id,
            dedupe_key,
            kind: number,
            status: status(entry.state),
            created_at_ms: entry.created_at / 1_000,
            started_at_ms: entry.started_at.map(|at| at / 1_000),
            finished_at_ms: entry.finished_at.map(|at| at / 1_000),
            error_message: entry.error,
            progress_percent: progress.percent.map(u32::from),
            progress_text: progress.text,
            cancel_requested: entry.cancel_requested,
        }
    }
}

/// A job of the calling program.
fn own(cx: &mut Cx<'_, '_>, id: &str) -> Result<Entry> {
    let prefix = Asked::prefix_of(&session(cx)?);
    let found = job::entry(cx, JOB, id)?.filter(|entry| entry.unique_key.as_deref().is_some_and(|key| key.starts_with(&prefix)));
    found.ok_or_else(|| Error::not_found("there is no such job of this program").hint("jobs that ended are deleted after a while"))
}

/// List the jobs of the calling program, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// How many; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of jobs.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProgramJobs {
    /// The jobs.
    jobs: Vec<ProgramJob>,
    /// Give this as `cursor` for the next page. Absent at the end. A page may be short, even empty, before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<ProgramJobs> {
    let prefix = Asked::prefix_of(&session(cx)?);
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let found = job::entries(cx, JOB, &prefix, &page)?;
    Ok(ProgramJobs { jobs: found.items.into_iter().map(ProgramJob::of).collect(), next_cursor: found.next_cursor })
}

/// Read how a job of the calling program stands, and what it was given.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Get {
    /// The job's id.
    job: String,
}

/// A job with what it was given.
#[derive(Serialize, JsonSchema)]
pub(super) struct Details {
    #[serde(flatten)]
    job: ProgramJob,
    /// What it is narrowed to.
    allowed_roots: Vec<String>,
    /// Its parameters.
    params: BTreeMap<String, String>,
}

fn details(cx: &mut Cx<'_, '_>, entry: Entry) -> Result<Details> {
    let asked = Asked::read(&job::contents(cx, &entry.id)?.0)?;
    Ok(Details { job: ProgramJob::of(entry), allowed_roots: asked.allowed_roots, params: asked.params })
}

pub(super) fn get(cx: &mut Cx<'_, '_>, input: Get) -> Result<Details> {
    let entry = own(cx, &input.job)?;
    details(cx, entry)
}

/// Wait until a job of the calling program has ended, for at most 25 seconds. If it has not by then, the answer says so: ask
/// again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitFor {
    /// The job's id.
    job: String,
    /// How long to wait, at most 25 seconds; 25 if not given.
    timeout_seconds: Option<u64>,
}

pub(super) fn wait(cx: &mut Cx<'_, '_>, input: WaitFor) -> Result<Wait<Details>> {
    let longest = WAIT_MAX.as_secs();
    if input.timeout_seconds.is_some_and(|seconds| seconds > longest) {
        return Err(Error::invalid("timeout_seconds", format!("must be at most {longest}")).hint("ask again for longer waits"));
    }
    let entry = own(cx, &input.job)?;
    let ended = entry.state.is_end();
    let out = details(cx, entry)?;
    Ok(if ended { Wait::Ready(out) } else { Wait::NotYet(out) })
}

/// What came out of a job of the calling program.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetResult {
    /// The job's id.
    job: String,
}

/// A result.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProgramResult {
    /// What kind of content it is.
    content_type: &'static str,
    /// The content, in base64.
    bytes_base64: String,
}

pub(super) fn result(cx: &mut Cx<'_, '_>, input: GetResult) -> Result<ProgramResult> {
    let entry = own(cx, &input.job)?;
    let (_, result) = job::contents(cx, &entry.id)?;
    let (content_type, bytes) = match (result, entry.error.filter(|_| entry.state.is_end())) {
        (Some(result), _) => ("application/json", result.to_string()),
        (None, Some(error)) => ("text/plain", format!("Error: {error}")),
        (None, None) => return Err(Error::not_found("this job has no result").hint("wait until it has ended")),
    };
    Ok(ProgramResult { content_type, bytes_base64: BASE64.encode(bytes.as_bytes()) })
}

/// Stop a job of the calling program. One that waits is cancelled at once; one that runs is asked to stop.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancel {
    /// The job's id.
    job: String,
}

/// What became of the job.
#[derive(Serialize, JsonSchema)]
pub(super) struct Cancelled {
    /// Its id.
    job_id: String,
    /// How it stands now; one that still runs was asked to stop.
    status: i32,
}

pub(super) fn cancel(cx: &mut Cx<'_, '_>, input: Cancel) -> Result<Cancelled> {
    let entry = own(cx, &input.job)?;
    let state = job::cancel(cx, &entry.id)?;
    Ok(Cancelled { job_id: entry.id, status: status(state) })
}

/// Read whether a person has approved the plan that a job of the calling program made. The program decides nothing: with
/// `ttl_seconds` it only lets an approval that was given end sooner.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetApproval {
    /// The job that made the plan.
    plan_job_id: String,
    /// For how many seconds from now the approval is good; no longer than policy lets it be, and that long if not given.
    ttl_seconds: Option<i64>,
}

/// How the approval of a plan stands.
#[derive(Serialize, JsonSchema)]
pub(super) struct Approval {
    /// The request with which people decide.
    request_id: String,
    /// What exactly would be done, as a digest.
    plan_hash: String,
    /// For how many seconds the approval is still good. Absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_seconds: Option<i64>,
}

pub(super) fn approval(cx: &mut Cx<'_, '_>, input: GetApproval) -> Result<Approval> {
    if input.ttl_seconds.is_some_and(|seconds| seconds < 1) {
        return Err(Error::invalid("ttl_seconds", "must be at least 1"));
    }
    let entry = own(cx, &input.plan_job_id)?;
    if entry.state != State::Done {
        return Err(Error::invalid("plan_job_id", "names a job that has not succeeded"));
    }
    let made = job::contents(cx, &entry.id)?.1.unwrap_or_default();
    let plan = made.get("plan_id").and_then(Value::as_str).ok_or_else(|| Error::not_found("this job made no plan"))?;
    let (request_id, plan_hash) = plan::decided_with(cx, plan)?.ok_or_else(|| Error::not_found("there is nothing to approve in this plan"))?;
    let now = cx.now();
    let is_approved = request::find(cx, &request_id)?.is_some_and(|request| request.state_at(now) == request::State::Approved);
    let ttl_seconds = if is_approved { Some(request::seconds_left(cx, &request_id, input.ttl_seconds)?) } else { None };
    Ok(Approval { request_id, plan_hash, ttl_seconds })
}
