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
    let answer = app.desk.call(call).await.map_err(|error| unknown_is_a_bad_parameter(&error))?;
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

/// A job row as a task. States that this version does not know are shown as still working.
fn task_of(id: &str, job: &Value) -> DetailedTask {
    let text = |field: &str| job.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let state = text("state");
    let created = text("created_at");
    let updated = [text("ended_at"), text("updated_at"), created.clone()].into_iter().find(|time| !time.is_empty()).unwrap_or_default();
    let mut task = Task::new(id, TaskStatus::Working, created, updated).with_status_message(state.clone());
    let payload = match state.as_str() {
        "done" => TaskPayload::Completed { result: result_of(job.get("result")) },
        "failed" | "dead" | "ambiguous" => TaskPayload::Failed { error: failure_of(&state, job.get("error")) },
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

/// A JSON-RPC error.
fn failure_of(state: &str, error: Option<&Value>) -> JsonObject {
    let said = error.and_then(|error| error.as_str().or_else(|| error.get("message").and_then(Value::as_str)));
    let message = match said {
        Some(said) => format!("{state}: {said}"),
        None => state.to_owned(),
    };
    let mut object = JsonObject::new();
    object.insert("code".to_owned(), json!(-32603));
    object.insert("message".to_owned(), Value::String(message));
    object
}
