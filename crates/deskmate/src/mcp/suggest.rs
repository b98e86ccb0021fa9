//! Asking the client's model what it makes of the description of an agent, where the client lends it: by an input round to a newer client, by a
//! request beside the call to an older one. What comes back goes into the input as a suggestion, which the operation checks like anything
//! else from outside; without an answer the call goes on by words alone.

#![expect(deprecated, reason = "sampling is on its way out of the protocol, and clients still offer it")]

use std::time::Duration;

use deskmate_core::agents::{Question, READING, question};
use deskmate_core::call::{Call, Credential, Outcome, Surface};
use deskmate_core::limits::SUGGESTED_BYTES_MAX;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ContextInclusion, CreateMessageRequestParams, InputRequests, InputRequiredResult, ProtocolVersion, SamplingMessage,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::app::App;

/// How long a model may take. Clients give a call up after a minute.
const ANSWER: Duration = Duration::from_secs(45);
/// How much it may write.
const TOKENS: u32 = 4_096;
/// The name of the question in a round, and of the field that takes the answer.
const ASKED: &str = "suggested";

/// Puts what the client's model suggests into the arguments of a call that reads a description. Answers with what is to be asked first, where
/// that is the way of the client.
pub(super) async fn ask(
    app: &App,
    credential: &Credential,
    operation: &str,
    request: &mut CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Option<CallToolResponse>, ErrorData> {
    if !READING.contains(&operation) || context.client_capabilities().unwrap_or_default().sampling.is_none() {
        return Ok(None);
    }
    let Some(question) = asks(app, credential, request).await else { return Ok(None) };
    if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
        let Some(answers) = &request.input_responses else {
            let asked = json!({ ASKED: { "method": "sampling/createMessage", "params": message(question) } });
            let asked: InputRequests = serde_json::from_value(asked).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            return Ok(Some(CallToolResponse::InputRequired(InputRequiredResult::from_input_requests(asked))));
        };
        let answer = answers.get(ASKED).map(text).unwrap_or_default();
        put(request, answer);
        return Ok(None);
    }
    let answer = tokio::select! {
        answer = tokio::time::timeout(ANSWER, context.peer.create_message(message(question))) => answer.ok().and_then(Result::ok),
        () = context.ct.cancelled() => return Err(ErrorData::internal_error("the call was cancelled", None)),
    };
    put(request, answer.and_then(|answer| serde_json::to_value(answer).ok()).map(|answer| text(&answer)).unwrap_or_default());
    Ok(None)
}

/// What there is to ask, once the desk has read the description itself as whoever calls. What it would refuse is not asked about.
async fn asks(app: &App, credential: &Credential, request: &CallToolRequestParams) -> Option<Question> {
    let input = request.arguments.as_ref()?;
    question(input, &Value::Null)?;
    let [sketch, _] = READING;
    let call = Call { credential: credential.clone(), surface: Surface::Mcp, operation: sketch.to_owned(), input: Value::Object(input.clone()) };
    let (Outcome::Done(read) | Outcome::NotYet(read)) = app.call(call).await.ok()?.outcome;
    question(input, &read)
}

fn message(question: Question) -> CreateMessageRequestParams {
    let mut params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(question.text)], TOKENS);
    params.system_prompt = Some(question.system);
    params.include_context = Some(ContextInclusion::None);
    params.temperature = Some(0.0);
    params
}

/// The text of a model's answer, if that is what it is.
fn text(answer: &Value) -> String {
    let content = answer.get("content").unwrap_or(&Value::Null);
    let blocks = content.as_array().map_or_else(|| std::slice::from_ref(content), Vec::as_slice);
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
    let text = texts.join("\n");
    if text.len() > SUGGESTED_BYTES_MAX { String::new() } else { text.replace('\0', "") }
}

/// An empty text says that a model was asked and nothing came that can be used.
fn put(request: &mut CallToolRequestParams, answer: String) {
    request.arguments.get_or_insert_default().insert(ASKED.to_owned(), answer.into());
}
