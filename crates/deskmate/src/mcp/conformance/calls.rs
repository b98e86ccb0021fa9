//! The tools of the suite that do more than answer.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ElicitRequestParams, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, SamplingCapability,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use super::rounds::Step;
use super::{Fixtures, Shared, broken, jobs};

const PAUSE: Duration = Duration::from_millis(50);
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

type Context = RequestContext<RoleServer>;

pub(super) async fn call(fixtures: &Fixtures, request: CallToolRequestParams, context: &Context) -> Result<CallToolResponse, ErrorData> {
    let shared = &*fixtures.shared;
    let name = request.name.to_string();
    let modern = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    if shared.data.asks(&name).is_some() && modern {
        return rounds(fixtures, &name, request, context).await;
    }
    let argument = |key: &str| request.arguments.as_ref().and_then(|given| given.get(key)).and_then(Value::as_str).unwrap_or_default().to_owned();
    let result = match name.as_str() {
        "test_tool_with_logging" => log(context).await,
        "test_logging_tool" => {
            if context.meta.contains_key(LOG_LEVEL) {
                log(context).await
            } else {
                text("Nothing was logged.")
            }
        }
        "test_tool_with_progress" => progress(context).await,
        "test_sampling" => sample(context, &argument("prompt")).await?,
        "test_elicitation" => elicit(shared, context, &name, Some(argument("message"))).await?,
        "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums" => elicit(shared, context, &name, None).await?,
        "greet" => text(format!("Hello, {}!", argument("name"))),
        "slow_compute" => {
            let seconds = request.arguments.as_ref().and_then(|given| given.get("seconds")?.as_f64()).unwrap_or_default().clamp(0.0, 100.0);
            if context.client_capabilities().is_some_and(|client| client.supports_tasks()) {
                return start(fixtures, context, json!({ "seconds": seconds, "answer": "computed" })).await;
            }
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            text("computed")
        }
        "confirm_delete" | "multi_input" => return start(fixtures, context, json!({ "asks": name, "answer": "confirmed" })).await,
        "protocol_error_job" => return start(fixtures, context, json!({ "lost": true })).await,
        "failing_job" => return start(fixtures, context, json!({ "seconds": 1, "error": "this job always fails" })).await,
        "test_missing_capability" => needs_sampling(context)?,
        "test_trigger_tool_change" => {
            shared.tools_changed.notify_waiters();
            drop(context.peer.notify_tool_list_changed().await);
            text("The tools changed.")
        }
        "test_trigger_prompt_change" => {
            shared.prompts_changed.notify_waiters();
            drop(context.peer.notify_prompt_list_changed().await);
            text("The prompts changed.")
        }
        _ => shared.data.answer(&name).ok_or_else(|| broken(&name))?,
    };
    Ok(CallToolResponse::Complete(result))
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn failed(error: impl std::fmt::Display) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.to_string())])
}

async fn rounds(fixtures: &Fixtures, name: &str, request: CallToolRequestParams, context: &Context) -> Result<CallToolResponse, ErrorData> {
    let shared = &fixtures.shared;
    let client = context.client_capabilities().unwrap_or_default();
    let limited = (name == "test_input_required_result_capabilities").then_some(&client);
    match shared.rounds.go(&shared.data, name, request.input_responses, request.request_state, limited)? {
        Step::Ask(required) => Ok(CallToolResponse::InputRequired(required)),
        Step::Done(said) if name == "test_tool_with_task" => start(fixtures, context, json!({ "answer": said })).await,
        Step::Done(said) => Ok(CallToolResponse::Complete(text(said))),
    }
}

/// Goes on as a task of the caller.
async fn start(fixtures: &Fixtures, context: &Context, work: Value) -> Result<CallToolResponse, ErrorData> {
    let (real, needed) = (&fixtures.real, ClientCapabilities::builder().enable_tasks().build());
    if !context.client_capabilities().is_some_and(|client| client.supports_tasks()) {
        return Err(ErrorData::missing_required_client_capability(needed));
    }
    jobs::start(&real.endpoint.app, real.caller.credential(context), work).await
}

async fn log(context: &Context) -> CallToolResult {
    for said in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(said)).with_logger("conformance");
        drop(context.peer.notify_logging_message(message).await);
        tokio::time::sleep(PAUSE).await;
    }
    text("Three messages were logged.")
}

async fn progress(context: &Context) -> CallToolResult {
    for percent in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            drop(context.peer.notify_progress(ProgressNotificationParam::new(token, percent).with_total(100.0)).await);
        }
        tokio::time::sleep(PAUSE).await;
    }
    text("Progress was reported.")
}

async fn sample(context: &Context, prompt: &str) -> Result<CallToolResult, ErrorData> {
    let request = serde_json::from_value(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }], "maxTokens": 100 }));
    let request = request.map_err(|error| broken(&error.to_string()))?;
    Ok(match context.peer.create_message(request).await {
        Ok(answer) => {
            let said = answer.message.content.first().and_then(|content| content.as_text()).map(|content| content.text.clone());
            text(format!("LLM response: {}", said.unwrap_or_default()))
        }
        Err(error) => failed(error),
    })
}

async fn elicit(shared: &Shared, context: &Context, tool: &str, message: Option<String>) -> Result<CallToolResult, ErrorData> {
    let mut form = shared.data.form(tool).ok_or_else(|| broken(tool))?;
    if let (ElicitRequestParams::FormElicitationParams { message: shown, .. }, Some(message)) = (&mut form, message) {
        *shown = message;
    }
    Ok(match context.peer.create_elicitation(form).await {
        Ok(answer) => {
            let begin = if tool == "test_elicitation" { "User response" } else { "Elicitation completed" };
            text(format!("{begin}: action={}, content={}", json!(answer.action).as_str().unwrap_or_default(), json!(answer.content)))
        }
        Err(error) => failed(error),
    })
}

fn needs_sampling(context: &Context) -> Result<CallToolResult, ErrorData> {
    if context.client_capabilities().is_some_and(|client| client.sampling.is_some()) {
        return Ok(text("The client can sample."));
    }
    let mut needed = ClientCapabilities::default();
    needed.sampling = Some(SamplingCapability::default());
    Err(ErrorData::missing_required_client_capability(needed))
}
