//! A job, or a request that waits for a person, as an MCP task, for clients that declare the tasks extension. What is in
//! the store is the task: nothing is kept here, so a task outlives the connection and the server.

use deskmate_core::call::{Call, Credential, Outcome, Registry, Surface};
use deskmate_core::{Code, Error};
use rmcp::ErrorData;
use rmcp::model::{DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus};
use serde_json::{Value, json};

use super::resources::fault;
use crate::app::App;

const GET: &str = "desk_job_get";
const CANCEL: &str = "desk_job_cancel";
/// The operation whose waiting is a task where the client has them.
pub(super) const WAIT: &str = "cowork_wait_for_decision";
const TAKE_BACK: &str = "cowork_cancel_request";
/// How often a client should ask while a job runs.
const ASK_AGAIN_MS: u64 = 1_000;

/// Whether this desk has jobs to show.
pub(super) fn served(registry: &Registry) -> bool {
    registry.get(GET).is_some() && registry.get(CANCEL).is_some()
}

/// The state of a job as a task.
pub(super) async fn get(app: &App, credential: Credential, id: &str) -> Result<GetTaskResult, ErrorData> {
    let job = match ask(app, credential.clone(), GET, id).await {
        Err(error) if error.code == Code::NotFound => return waiting(app, credential, id).await,
        job => job.map_err(|error| unknown_is_a_bad_parameter(&error))?,
    };
    Ok(GetTaskResult::new(task_of(id, &job)))
}

/// The state of a request as a task: it works while people decide, and its result is what waiting would have answered.
async fn waiting(app: &App, credential: Credential, id: &str) -> Result<GetTaskResult, ErrorData> {
    let outcome = look(app, credential, id).await.map_err(|error| unknown_is_a_bad_parameter(&error))?;
    Ok(GetTaskResult::new(task_of_request(id, &outcome)))
}

/// How a request stands, without waiting.
async fn look(app: &App, credential: Credential, id: &str) -> Result<Outcome, Error> {
    let input = json!({ "request_id": id, "timeout_seconds": 0 });
    Ok(app.call(Call { credential, surface: Surface::Mcp, operation: WAIT.to_owned(), input }).await?.outcome)
}

/// A task in the place of a call that would hold; `None` when there is nothing to wait for.
pub(super) async fn instead_of_waiting(app: &App, credential: Credential, id: &str) -> Option<Task> {
    let outcome = look(app, credential, id).await.ok()?;
    matches!(outcome, Outcome::NotYet(_)).then(|| task_of_request(id, &outcome).task)
}

fn task_of_request(id: &str, outcome: &Outcome) -> DetailedTask {
    let (Outcome::Done(value) | Outcome::NotYet(value)) = outcome;
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let task = Task::new(id, TaskStatus::Working, text("/request/created_at"), text("/request/updated_at")).with_status_message(text("/message"));
    match outcome {
        Outcome::NotYet(_) => DetailedTask::new(task.with_poll_interval_ms(ASK_AGAIN_MS), TaskPayload::Working),
        Outcome::Done(_) if text("/request/state") == "cancelled" => DetailedTask::new(task, TaskPayload::Cancelled),
        Outcome::Done(value) => DetailedTask::new(task, TaskPayload::Completed { result: result_of(Some(value)) }),
    }
}

/// Asks for a job to stop; the answer of `tasks/get` tells when it has. One that has ended already needs no stopping.
pub(super) async fn cancel(app: &App, credential: Credential, id: &str) -> Result<(), ErrorData> {
    let mut done = ask(app, credential.clone(), CANCEL, id).await;
    if done.as_ref().is_err_and(|error| error.code == Code::NotFound) {
        let call = Call { credential, surface: Surface::Mcp, operation: TAKE_BACK.to_owned(), input: json!({ "request_id": id }) };
        done = app.call(call).await.map(|_| Value::Null);
    }
    match done {
        Ok(_) => Ok(()),
        Err(error) if error.code == Code::Conflict => Ok(()),
        Err(error) => Err(unknown_is_a_bad_parameter(&error)),
    }
}

async fn ask(app: &App, credential: Credential, operation: &str, id: &str) -> Result<Value, Error> {
    let call = Call { credential, surface: Surface::Mcp, operation: operation.to_owned(), input: json!({ "job": id }) };
    let (Outcome::Done(value) | Outcome::NotYet(value)) = app.call(call).await?.outcome;
    Ok(value)
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
        "done" => TaskPayload::Completed { result: result_of(job.get("result")) },
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
    fn a_request_is_a_task_until_it_is_decided() {
        let answer = |state: &str| json!({ "message": "m", "request": { "state": state, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:01Z" } });
        assert_eq!(task_of_request("r", &Outcome::NotYet(answer("pending"))).status(), TaskStatus::Working);
        assert_eq!(task_of_request("r", &Outcome::Done(answer("cancelled"))).status(), TaskStatus::Cancelled);
        let wire = json!(task_of_request("r", &Outcome::Done(answer("approved"))));
        assert_eq!(wire.pointer("/result/structuredContent/request/state"), Some(&json!("approved")));
    }

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
        let wire = json!(task_of("j", &job("done")));
        assert_eq!(wire.pointer("/result/structuredContent"), Some(&json!(7)));
        assert_eq!(json!(task_of("j", &job("failed"))).pointer("/result/isError"), Some(&json!(true)));
        assert!(json!(task_of("j", &job("ambiguous"))).to_string().contains("not known"));
        let mut lost = job("failed");
        lost["attempts"] = json!([{ "outcome": "failed" }, { "outcome": "lost" }]);
        assert_eq!(task_of("j", &lost).status(), TaskStatus::Failed);
    }
}
