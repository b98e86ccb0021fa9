//! Doing a program's job: the operation of its kind is called as the program's token would call it, and what that begins is
//! awaited.

use data_encoding::BASE64;
use deskmate_core::call::{Call, Credential, Op, Outcome as Answered, Surface};
use deskmate_core::job::{Outcome, Progress};
use deskmate_core::limits::PAGE_MAX;
use deskmate_core::program::{self, Work};
use deskmate_core::{Code, Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Running, hopeless};

/// How long one look at a plan that is under way may take, before the job tells how far it has come.
const LOOK_SECONDS: u64 = 2;
/// Of steps that could not be done: how many are told, and how many bytes of them.
const ERRORS_MAX: usize = 1_000;
const ERRORS_BYTES_MAX: usize = 256 * 1024;
/// How much is told of what a program said last before it failed.
const LAST_WORDS_MAX: usize = 1_000;

pub(super) async fn run(running: &Running) -> Result<Outcome> {
    match work(running).await {
        Err(error) if matches!(error.code, Code::Internal | Code::Unavailable | Code::Limited) => Err(error),
        Err(error) => Ok(hopeless(&error)),
        done => done,
    }
}

/// What is left to do when somebody stopped the job.
pub(super) async fn stopped(running: &Running) -> Result<()> {
    let input = running.claimed.input.clone();
    running.app.desk.act(Surface::System, move |cx| program::stop(cx, &input)).await
}

async fn work(running: &Running) -> Result<Outcome> {
    let (desk, input) = (&running.app.desk, running.claimed.input.clone());
    let work = desk.act(Surface::System, move |cx| program::begin(cx, &input)).await?;
    let (kind, fields) = program::input(&desk.registry, work.number, &work.params)?;
    let Some(op) = desk.registry.get(kind.operation) else { return Err(Error::not_found("the operation of this kind is not there")) };
    let mut answer = call(running, &work, op.full_name(), with_own(running, &work, op, fields)).await?;
    while !text(&answer, "job").is_empty() && answer.get("ended") != Some(&Value::Bool(true)) {
        let look = json!({ "job": text(&answer, "job"), "timeout_seconds": LOOK_SECONDS });
        answer = call(running, &work, "workspace_wait_for_scan".to_owned(), look).await?;
        running.beat(answer.get("progress").and_then(|progress| Progress::deserialize(progress).ok())).await?;
    }
    answer = found(answer)?;
    while matches!(text(&answer, "state"), "planning" | "running") {
        let look = json!({ "plan_id": text(&answer, "plan_id"), "timeout_seconds": LOOK_SECONDS });
        answer = call(running, &work, "workspace_wait_for_plan".to_owned(), look).await?;
        running.beat(Some(progress(&answer))).await?;
    }
    outcome(running, &work, answer).await
}

/// What a look that was awaited has found, in the words of the operation itself.
fn found(mut answer: Value) -> Result<Value> {
    if text(&answer, "job").is_empty() {
        return Ok(answer);
    }
    match answer.get_mut("result").map(Value::take) {
        Some(result) if !result.is_null() => Ok(result),
        _ => Err(Error::conflict(match text(&answer, "error") {
            "" => "the look was stopped",
            error => error,
        })),
    }
}

/// The input with what the job itself adds: its id, so that a second attempt begins nothing anew, and the plan to do.
fn with_own(running: &Running, work: &Work, op: &Op, mut fields: Value) -> Value {
    if let Some(fields) = fields.as_object_mut() {
        if op.input().pointer("/properties/idempotency_key").is_some() {
            fields.insert("idempotency_key".to_owned(), Value::from(running.claimed.job.as_str()));
        }
        if let Some(plan) = &work.plan {
            fields.insert("plan_id".to_owned(), Value::from(plan.as_str()));
            fields.insert("timeout_seconds".to_owned(), Value::from(LOOK_SECONDS));
        }
    }
    fields
}

async fn call(running: &Running, work: &Work, operation: String, input: Value) -> Result<Value> {
    let call = Call { credential: Credential::Kept(work.credential.clone()), surface: Surface::Rest, operation, input };
    // What it is narrowed to holds for what is found behind a link, too.
    let answer = match work.within.as_slice() {
        [] => running.app.call(call).await?,
        folders => running.app.within(folders.into()).call(call).await?,
    };
    Ok(match answer.outcome {
        Answered::Done(value) | Answered::NotYet(value) => value,
    })
}

fn text<'a>(answer: &'a Value, field: &str) -> &'a str {
    answer.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn number(answer: &Value, field: &str) -> u64 {
    answer.get(field).and_then(Value::as_u64).unwrap_or(0)
}

fn progress(plan: &Value) -> Progress {
    let done: u64 = ["applied", "skipped", "failed", "unclear"].into_iter().map(|field| number(plan, field)).sum();
    let all = number(plan, "count");
    let percent = (all > 0).then(|| u8::try_from(done.saturating_mul(100) / all).unwrap_or(100).min(100));
    Progress { percent, text: Some(if all > 0 { format!("{done} of {all} steps") } else { "looking at the files".to_owned() }) }
}

/// What the answer is for the job. A plan that waits for a person, could not be made, or of which nothing was done, is no success of
/// doing it.
async fn outcome(running: &Running, work: &Work, mut answer: Value) -> Result<Outcome> {
    let failed = |error: String| Ok(Outcome::Failed { error, retry: false });
    let state = text(&answer, "state").to_owned();
    if !text(&answer, "plan_id").is_empty() && state == "failed" {
        return failed(text(&answer, "note").to_owned());
    }
    if work.plan.is_some() {
        if answer.get("begun") != Some(&Value::Bool(true)) {
            return failed(not_begun(running, &answer));
        }
        if state == "ambiguous" {
            return Ok(Outcome::Ambiguous { what: format!("some steps of plan {} may or may not have been done", text(&answer, "plan_id")) });
        }
        if text(&answer, "decision") == "failed" {
            return failed(came_to_nothing(&answer));
        }
        let (errors, all) = errors(running, work, &answer).await?;
        if let Some(fields) = answer.as_object_mut() {
            fields.insert("errors".to_owned(), Value::Array(errors));
            fields.insert("errors_truncated".to_owned(), Value::from(!all));
        }
    }
    with_truth(&mut answer);
    with_bytes(&mut answer);
    Ok(Outcome::Done(answer))
}

/// Whether the steps that a plan's answer shows are all.
fn with_truth(answer: &mut Value) {
    let shown = moves(answer).count() as u64;
    let all = number(answer, "count") <= shown;
    if let Some(fields) = answer.as_object_mut().filter(|fields| fields.contains_key("plan_id")) {
        fields.insert("moves_truncated".to_owned(), Value::from(!all));
    }
}

/// Clients of earlier servers read what a file holds in base64 only.
fn with_bytes(answer: &mut Value) {
    let Some(fields) = answer.as_object_mut().filter(|fields| fields.contains_key("read_bytes")) else { return };
    if let Some(text) = fields.get("text").and_then(Value::as_str) {
        let bytes = BASE64.encode(text.as_bytes());
        fields.insert("data_base64".to_owned(), Value::from(bytes));
    }
}

fn not_begun(running: &Running, plan: &Value) -> String {
    match text(plan, "decision") {
        "pending" => format!("this plan waits for a person, who decides at {}", running.app.page_of_request(text(plan, "request_id"))),
        _ => text(plan, "next").to_owned(),
    }
}

fn moves(plan: &Value) -> impl Iterator<Item = &Value> {
    plan.get("moves").and_then(Value::as_array).into_iter().flatten()
}

/// The first step of a plan that says what came of it.
fn noted(plan: &Value) -> Option<&Value> {
    moves(plan).find(|step| !text(step, "note").is_empty())
}

/// Why a plan came to nothing: why it stopped, or what its first step says, with the last that a program said.
fn came_to_nothing(plan: &Value) -> String {
    let first = noted(plan);
    let said = first.and_then(|step| step.pointer("/ran/stderr")).and_then(Value::as_str).unwrap_or_default();
    let place = first.map_or("", |step| if text(step, "from").is_empty() { text(step, "to") } else { text(step, "from") });
    let said = said.trim();
    let said = said.get(said.floor_char_boundary(said.len().saturating_sub(LAST_WORDS_MAX))..).unwrap_or_default();
    let why = match text(plan, "note") {
        "" => first.map_or("", |step| text(step, "note")),
        note => note,
    };
    // What a program did before it failed is not taken back.
    let (plan, is_program) = (text(plan, "plan_id"), first.is_some_and(|step| step.get("ran").is_some()));
    let what = if is_program { format!("the program of plan {plan} failed") } else { format!("nothing of plan {plan} was done") };
    [what, place.to_owned(), why.to_owned(), said.to_owned()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

/// The steps that could not be done, as clients of earlier servers read them, and whether these are all.
async fn errors(running: &Running, work: &Work, plan: &Value) -> Result<(Vec<Value>, bool)> {
    let failed = number(plan, "failed");
    let (mut told, mut bytes, mut cursor) = (Vec::new(), 0, Value::Null);
    while (told.len() as u64) < failed {
        let look = json!({ "plan_id": text(plan, "plan_id"), "outcome": "failed", "limit": PAGE_MAX, "cursor": cursor });
        let page = call(running, work, "workspace_get_plan".to_owned(), look).await?;
        let steps = page.get("steps").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for step in steps {
            let error = json!({ "from": step.get("from"), "to": step.get("to"), "error": step.get("note") });
            bytes += error.to_string().len();
            if told.len() >= ERRORS_MAX || bytes > ERRORS_BYTES_MAX {
                return Ok((told, false));
            }
            told.push(error);
        }
        match page.get("next_cursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    let all = told.len() as u64 >= failed;
    Ok((told, all))
}
