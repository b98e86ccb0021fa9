//! A job as an MCP task, for clients that declare the tasks extension. The job in the store is the task: nothing is
//! kept here, so a task outlives the connection and the server.

use deskmate_core::Error;
use deskmate_core::call::{Call, Credential, Outcome, Registry, Surface};
use rmcp::ErrorData;
use rmcp::model::{DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus};
use serde_json::{Value, json};

use super::resources::fault;
use crate::app::App;

const GET: &str = "desk_job_get";
const CANCEL: &str = "desk_job_cancel";
/// How often a client should ask while a job runs.
const ASK_AGAIN_MS: u64 = 1_000;

/// Whether this desk has jobs to show.
pub(super) fn served(registry: &Registry) -> bool {
    registry.get(GET).is_some() && registry.get(CANCEL).is_some()
}

/// The state of a job as a task.
pub(super) async fn get(app: &App, credential: Credential, id: &str) -> Result<GetTaskResult, ErrorData> {
    let job = call(app, credential, GET, id).await?;
    Ok(GetTaskResult::new(task_of(id, &job)))
}

/// Asks for a job to stop; the answer of `tasks/get` tells when it has.
pub(super) async fn cancel(app: &App, credential: Credential, id: &str) -> Result<(), ErrorData> {
    call(app, credential, CANCEL, id).await.map(drop)
}

async fn call(app: &App, credential: Credential, operation: &str, id: &str) -> Result<Value, ErrorData> {
    let call = Call { credential, surface: Surface::Mcp, operation: operation.to_owned(), input: json!({ "job": id }) };
    let answer = app.call(call).await.map_err(|error| unknown_is_a_bad_parameter(&error))?;
    let (Outcome::Done(value) | Outcome::NotYet(value)) = answer.outcome;
    Ok(value)
}

/// The extension wants -32602 for a task that is not there.
fn unknown_is_a_bad_parameter(error: &Error) -> ErrorData {
    match error.code {
        deskmate_core::Code::NotFound => ErrorData::invalid_params(error.to_string(), Some(json!(error))),
        _ => fault(error),
    }
}

/// A job as a task. States that this version does not know are shown as still working.
fn task_of(id: &str, job: &Value) -> DetailedTask {
    let text = |field: &str| job.get(field).and_then(Value::as_str).unwrap_or_default();
    let state = text("state");
    let says = job.pointer("/progress/text").and_then(Value::as_str).unwrap_or(state);
    let mut task = Task::new(id, TaskStatus::Working, text("created_at"), text("updated_at")).with_status_message(says);
    let payload = match state {
        "done" => TaskPayload::Completed { result: result_of(job.get("result")) },
        "failed" | "ambiguous" => TaskPayload::Failed { error: failure_of(state, job.get("error").and_then(Value::as_str)) },
        "cancelled" => TaskPayload::Cancelled,
        _ => {
            task = task.with_poll_interval_ms(ASK_AGAIN_MS);
            TaskPayload::Working
        }
    };
    DetailedTask::new(task, payload)
}

/// What the call would have answered: a tool result.
fn result_of(result: Option<&Value>) -> JsonObject {
    let value = result.cloned().unwrap_or(Value::Null);
    let content = json!([{ "type": "text", "text": value.to_string() }]);
    let mut object = JsonObject::new();
    object.insert("content".to_owned(), content);
    object.insert("structuredContent".to_owned(), value);
    object.insert("isError".to_owned(), Value::Bool(false));
    object
}

/// A JSON-RPC error. An outcome that is not known is not shown as a plain failure.
fn failure_of(state: &str, error: Option<&str>) -> JsonObject {
    let message = match error {
        Some(error) if state == "ambiguous" => format!("it is not known whether this was done: {error}"),
        Some(error) => error.to_owned(),
        None => state.to_owned(),
    };
    let mut object = JsonObject::new();
    object.insert("code".to_owned(), json!(-32603));
    object.insert("message".to_owned(), Value::String(message));
    object.insert("data".to_owned(), json!({ "state": state }));
    object
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
            ("failed", TaskStatus::Failed),
            ("ambiguous", TaskStatus::Failed),
            ("cancelled", TaskStatus::Cancelled),
            ("something newer", TaskStatus::Working),
        ] {
            let task = task_of("j", &job(state));
            assert_eq!(task.status(), status, "{state}");
            assert_eq!(task.task.last_updated_at, "2026-01-01T00:00:01Z");
        }
        let wire = json!(task_of("j", &job("done")));
        assert_eq!(wire.pointer("/result/structuredContent"), Some(&json!(7)));
        assert!(json!(task_of("j", &job("ambiguous"))).pointer("/error/message").unwrap().as_str().unwrap().contains("not known"));
    }
}
