//! A job, or a request that waits for people, as an MCP task, for clients that declare the tasks extension. The row in
//! the store is the task: nothing is kept here, so a task outlives the connection and the server.

use deskmate_core::call::{Answer, Call, Credential, Outcome, Registry, Surface};
use deskmate_core::workspace::AUDIT_JOB;
use deskmate_core::workspace::scan::SCAN_JOB;
use deskmate_core::{Code, Error, format_time};
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus};
use serde_json::{Value, json};

use super::held;
use super::resources::fault;
use super::standin::respond;
use crate::app::App;

const GET: &str = "desk_job_get";
const CANCEL: &str = "desk_job_cancel";
const CANCEL_REQUEST: &str = "cowork_cancel_request";
const CALL_RESULT: &str = "gateway_result";
/// How often a client should ask while a job runs.
pub(super) const ASK_AGAIN_MS: u64 = 1_000;

/// Whether this desk has jobs to show.
pub(super) fn served(registry: &Registry) -> bool {
    registry.get(GET).is_some() && registry.get(CANCEL).is_some()
}

/// What a call began and has not ended, as a task, if it is a job.
pub(super) fn begun(app: &App, answer: &Answer) -> Option<CreateTaskResult> {
    let Outcome::NotYet(said) = &answer.outcome else { return None };
    let id = said.get("job").and_then(Value::as_str)?;
    let says = said.pointer("/progress/text").or_else(|| said.get("state")).and_then(Value::as_str).unwrap_or("waiting");
    let now = format_time(app.desk.world.now());
    Some(CreateTaskResult::new(Task::new(id, TaskStatus::Working, now.clone(), now).with_status_message(says).with_poll_interval_ms(ASK_AGAIN_MS)))
}

/// The state of a job as a task.
pub(super) async fn get(app: &App, credential: Credential, id: &str) -> Result<GetTaskResult, ErrorData> {
    match ask(app, credential.clone(), GET, "job", id).await {
        Ok(job) => Ok(GetTaskResult::new(task_of(id, &job))),
        Err(error) => match held::look(app, &credential, id).await.filter(|_| error.code == Code::NotFound) {
            Some(waited) => Ok(GetTaskResult::new(task_of_request(app, id, &waited))),
            None => match held_call(app, credential, id).await.filter(|_| error.code == Code::NotFound) {
                Some(call) => Ok(GetTaskResult::new(task_of_call(app, id, call)?)),
                None => Err(unknown_is_a_bad_parameter(&error)),
            },
        },
    }
}

/// Asks for a job to stop; the answer of `tasks/get` tells when it has. One that has ended already needs no stopping.
pub(super) async fn cancel(app: &App, credential: Credential, id: &str) -> Result<(), ErrorData> {
    let done = match ask(app, credential.clone(), CANCEL, "job", id).await {
        Err(error) if error.code == Code::NotFound => {
            let call = held_call(app, credential.clone(), id).await;
            let request = call.as_ref().and_then(|call| call.get("request_id")?.as_str()).unwrap_or(id).to_owned();
            ask(app, credential, CANCEL_REQUEST, "request_id", &request).await
        }
        done => done,
    };
    match done {
        Ok(_) => Ok(()),
        Err(error) if error.code == Code::Conflict => Ok(()),
        Err(error) => Err(unknown_is_a_bad_parameter(&error)),
    }
}

async fn ask(app: &App, credential: Credential, operation: &str, field: &str, id: &str) -> Result<Value, Error> {
    let call = Call { credential, surface: Surface::Mcp, operation: operation.to_owned(), input: json!({ field: id }) };
    let (Outcome::Done(value) | Outcome::NotYet(value)) = app.call(call).await?.outcome;
    Ok(value)
}

/// How a held call of a mounted tool stands, as whoever made it may know it.
async fn held_call(app: &App, credential: Credential, id: &str) -> Option<Value> {
    let input = json!({ "call_id": id, "timeout_seconds": 0 });
    let call = Call { credential, surface: Surface::Mcp, operation: CALL_RESULT.to_owned(), input };
    let (Outcome::Done(value) | Outcome::NotYet(value)) = app.call(call).await.ok()?.outcome;
    Some(value)
}

/// The same as a task: its result is what the tool answered.
fn task_of_call(app: &App, id: &str, call: Value) -> Result<DetailedTask, ErrorData> {
    let text = |field: &str| call.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let task = Task::new(id, TaskStatus::Working, text("created_at"), text("created_at"));
    if matches!(text("state").as_str(), "held" | "passed") {
        let says = held::says(app, &text("request_id"));
        return Ok(DetailedTask::new(task.with_status_message(says).with_poll_interval_ms(ASK_AGAIN_MS), TaskPayload::Working));
    }
    let result = match respond(call)? {
        CallToolResponse::Complete(result) => serde_json::to_value(result).unwrap_or_default(),
        _ => Value::Null,
    };
    Ok(DetailedTask::new(task, TaskPayload::Completed { result: object(result) }))
}

/// The extension wants -32602 for a task that is not there.
fn unknown_is_a_bad_parameter(error: &Error) -> ErrorData {
    match error.code {
        Code::NotFound => ErrorData::invalid_params(error.to_string(), Some(json!(error))),
        _ => fault(error),
    }
}

/// A job as a task. Work that ran and failed is a completed task with an error as its result; `failed` is for what the
/// server itself could not do. States that this version does not know are shown as still working.
fn task_of(id: &str, job: &Value) -> DetailedTask {
    let text = |field: &str| job.get(field).and_then(Value::as_str).unwrap_or_default();
    let state = text("state");
    let says = job.pointer("/progress/text").and_then(Value::as_str).unwrap_or(state);
    let lost = job.get("attempts").and_then(Value::as_array).and_then(|attempts| attempts.last()?.get("outcome")?.as_str()) == Some("lost");
    let mut task = Task::new(id, TaskStatus::Working, text("created_at"), text("updated_at")).with_status_message(says);
    let payload = match state {
        "done" => TaskPayload::Completed { result: result_of(answer_of(id, job).as_ref()) },
        "failed" if lost => TaskPayload::Failed { error: fault_of(text("error")) },
        "failed" => TaskPayload::Completed { result: failure_of(text("error")) },
        "ambiguous" => TaskPayload::Completed { result: failure_of(&format!("it is not known whether this was done: {}", text("error"))) },
        "cancelled" => TaskPayload::Cancelled,
        _ => {
            task = task.with_poll_interval_ms(ASK_AGAIN_MS);
            TaskPayload::Working
        }
    };
    DetailedTask::new(task, payload)
}

/// What the call that began a job would have answered. A look at a whole tree tells how it stands beside what was found.
fn answer_of(id: &str, job: &Value) -> Option<Value> {
    let result = job.get("result").cloned();
    let is_page = || ["list", "search", "trash"].iter().any(|what| job.pointer(&format!("/input/what/{what}")).is_some());
    let found = match job.get("kind").and_then(Value::as_str) {
        Some(SCAN_JOB) if !is_page() => result,
        Some(AUDIT_JOB) => result.and_then(|result| result.pointer("/roots/0").cloned()),
        _ => return result,
    };
    Some(json!({ "job": id, "state": job.get("state"), "ended": true, "result": found }))
}

/// A request as a task: it works until people have decided, and its result is what the wait would have answered.
fn task_of_request(app: &App, id: &str, waited: &Value) -> DetailedTask {
    let text = |field: &str| waited.pointer(&format!("/request/{field}")).and_then(Value::as_str).unwrap_or_default();
    let task = Task::new(id, TaskStatus::Working, text("created_at"), text("updated_at"));
    if held::is_settled(waited) {
        return DetailedTask::new(task.with_status_message(text("state")), TaskPayload::Completed { result: result_of(Some(waited)) });
    }
    DetailedTask::new(task.with_status_message(held::says(app, id)).with_poll_interval_ms(ASK_AGAIN_MS), TaskPayload::Working)
}

fn object(fields: Value) -> JsonObject {
    match fields {
        Value::Object(fields) => fields,
        _ => JsonObject::new(),
    }
}

/// What the call would have answered: a tool result.
fn result_of(result: Option<&Value>) -> JsonObject {
    let value = result.cloned().unwrap_or(Value::Null);
    object(json!({ "content": [{ "type": "text", "text": value.to_string() }], "structuredContent": value, "isError": false }))
}

/// The same for work that failed.
fn failure_of(error: &str) -> JsonObject {
    object(json!({ "content": [{ "type": "text", "text": error }], "isError": true }))
}

/// A JSON-RPC error.
fn fault_of(error: &str) -> JsonObject {
    object(json!({ "code": -32603, "message": error }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_of_a_job_is_a_state_of_a_task() {
        let job =
            |state: &str| json!({ "state": state, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:01Z", "result": 7, "error": "no" });
        for (state, status) in [
            ("waiting", TaskStatus::Working),
            ("running", TaskStatus::Working),
            ("done", TaskStatus::Completed),
            ("failed", TaskStatus::Completed),
            ("ambiguous", TaskStatus::Completed),
            ("cancelled", TaskStatus::Cancelled),
            ("something newer", TaskStatus::Working),
        ] {
            let task = task_of("j", &job(state));
            assert_eq!(task.status(), status, "{state}");
            assert_eq!(task.task.last_updated_at, "2026-01-01T00:00:01Z");
        }
        let mut look = job("done");
        (look["kind"], look["input"]) = (json!(SCAN_JOB), json!({ "what": { "index": { "hash_files": false } } }));
        assert_eq!(answer_of("j", &look), Some(json!({ "job": "j", "state": "done", "ended": true, "result": 7 })));
        look["input"] = json!({ "what": { "list": {} } });
        assert_eq!(answer_of("j", &look), Some(json!(7)), "a page is the answer itself");
        let wire = json!(task_of("j", &job("done")));
        assert_eq!(wire.pointer("/result/structuredContent"), Some(&json!(7)));
        assert_eq!(json!(task_of("j", &job("failed"))).pointer("/result/isError"), Some(&json!(true)));
        assert!(json!(task_of("j", &job("ambiguous"))).to_string().contains("not known"));
        let mut lost = job("failed");
        lost["attempts"] = json!([{ "outcome": "failed" }, { "outcome": "lost" }]);
        assert_eq!(task_of("j", &lost).status(), TaskStatus::Failed);
    }
}
