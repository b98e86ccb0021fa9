//! A wait for people's decision, as the client can show it best: as a task where it knows tasks, with a link to the
//! request's page where it can open one, and otherwise as a call that holds for a while.
//!
//! Whatever a client answers to the link decides nothing: it only ends the showing. People decide on the page.

use std::time::Duration;

use deskmate_core::call::{Call, Credential, Outcome, Surface};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CreateTaskResult, InputRequests, InputRequiredResult, ProtocolVersion, Task, TaskStatus};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use super::tasks::ASK_AGAIN_MS;
use crate::app::App;

/// The operation whose calls wait for people.
pub(super) const WAIT: &str = "cowork_wait_for_decision";
/// How long an older client may show the link before the call goes on.
const SHOW: Duration = Duration::from_secs(10);

/// The answer that stands in for holding the call, if this client can take one.
pub(super) async fn instead(
    app: &App,
    credential: &Credential,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Option<CallToolResponse>, ErrorData> {
    let client = context.client_capabilities().unwrap_or_default();
    let argument = |name: &str| request.arguments.as_ref().and_then(|arguments| arguments.get(name));
    let shows = argument("show_link").and_then(Value::as_bool) == Some(true) && can_show(context);
    let Some(id) = argument("request_id").and_then(Value::as_str).filter(|_| client.supports_tasks() || shows) else { return Ok(None) };
    // What cannot be read or is decided already is answered as ever.
    let Some(found) = look(app, credential, id).await.filter(|found| !is_settled(found)) else { return Ok(None) };
    if client.supports_tasks() {
        let text = |field: &str| found.pointer(&format!("/request/{field}")).and_then(Value::as_str).unwrap_or_default().to_owned();
        let task =
            Task::new(id, TaskStatus::Working, text("created_at"), text("updated_at")).with_status_message(says(app, id)).with_poll_interval_ms(ASK_AGAIN_MS);
        return Ok(Some(CallToolResponse::Task(CreateTaskResult::new(task))));
    }
    show(app, id, request.input_responses.is_some(), context)
}

/// Whether a client can open a page for its person.
pub(super) fn can_show(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().unwrap_or_default().elicitation.is_some_and(|modes| modes.url.is_some())
}

/// Shows where people decide, to a client that can open a page: as an answer to a newer one, which calls again then, and
/// beside the call to an older one. Nothing stands in for the call of one that has shown it.
pub(super) fn show(app: &App, id: &str, was_shown: bool, context: &RequestContext<RoleServer>) -> Result<Option<CallToolResponse>, ErrorData> {
    let Some(url) = page(app, id) else { return Ok(None) };
    let message = "An agent waits for your decision. Decide on this page:";
    if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
        if was_shown {
            return Ok(None);
        }
        let asked = json!({ "inbox": { "method": "elicitation/create", "params": { "mode": "url", "message": message, "url": url, "elicitationId": id } } });
        let asked: InputRequests = serde_json::from_value(asked).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        return Ok(Some(CallToolResponse::InputRequired(InputRequiredResult::from_input_requests(asked))));
    }
    if let Ok(url) = url.parse::<url::Url>() {
        // Beside the call, which holds as long as ever: a client that cannot show it after all loses nothing.
        let (peer, id) = (context.peer.clone(), id.to_owned());
        tokio::spawn(async move { drop(peer.elicit_url_with_timeout(message, url, id, Some(SHOW)).await) });
    }
    Ok(None)
}

/// How a request stands, as whoever waits for it may know it; `None` where it is not theirs.
pub(super) async fn look(app: &App, credential: &Credential, id: &str) -> Option<Value> {
    let input = json!({ "request_id": id, "timeout_seconds": 0 });
    let call = Call { credential: credential.clone(), surface: Surface::Mcp, operation: WAIT.to_owned(), input };
    match app.call(call).await.ok()?.outcome {
        Outcome::Done(value) | Outcome::NotYet(value) => Some(value),
    }
}

/// Whether there is something to tell: a decision, or a question to the agent.
pub(super) fn is_settled(waited: &Value) -> bool {
    waited.get("decided") == Some(&Value::Bool(true)) || waited.pointer("/request/asked_back") == Some(&Value::Bool(true))
}

/// Where people decide on a request, once the server listens.
fn page(app: &App, id: &str) -> Option<String> {
    app.url().map(|url| format!("{url}/requests/{id}"))
}

/// What a waiting task says.
pub(super) fn says(app: &App, id: &str) -> String {
    match page(app, id) {
        Some(page) => format!("a person decides: {page}, or `deskmate inbox`"),
        None => "a person decides with `deskmate inbox`".to_owned(),
    }
}
