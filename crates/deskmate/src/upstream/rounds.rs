//! Input rounds, driven for a caller that can be asked while its call is under way: an upstream of the newer era says what
//! it needs, the caller is asked, and the call is made again with the answers.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse, InputRequest, InputRequiredResult, InputResponses,
    ReadResourceRequestParams, ReadResourceResponse,
};
use serde_json::Value;

use super::error::{Error, Result};
use super::relay::{CallContext, Relay};
use super::slot::Upstream;

/// How many rounds one call may take, and how many questions one round may hold.
const ROUNDS_MAX: u32 = 10;
const QUESTIONS_MAX: usize = 16;
/// How long to wait where an upstream only wants to be asked again.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// Asks the caller what an upstream wants to know.
async fn answers(name: &str, wanted: InputRequiredResult, relay: Option<&Arc<dyn Relay>>) -> Result<(Option<InputResponses>, Option<String>)> {
    let questions = wanted.input_requests.unwrap_or_default();
    if questions.len() > QUESTIONS_MAX {
        return Err(Error::Unreadable { name: name.to_owned(), why: format!("it asks more than {QUESTIONS_MAX} questions at once") });
    }
    let Some(relay) = relay else {
        let why = "it asks for input, and this caller cannot be asked";
        return Err(Error::Refused(ErrorData::invalid_request(format!("{name}: {why}"), None)));
    };
    if questions.is_empty() {
        tokio::time::sleep(ASK_AGAIN).await;
        return Ok((None, wanted.request_state));
    }
    let mut all = InputResponses::new();
    for (key, question) in questions {
        let answer = match question {
            InputRequest::Elicitation(request) => relay.elicit(request.params).await.map(value),
            InputRequest::CreateMessage(request) => relay.sample(request.params).await.map(value),
            InputRequest::ListRoots(_) => relay.roots().await.map(value),
            _ => Err(ErrorData::invalid_request("this kind of question is not known", None)),
        };
        all.insert(key, answer.map_err(Error::Refused)?);
    }
    Ok((Some(all), wanted.request_state))
}

fn value(answer: impl serde::Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}

impl Upstream {
    fn too_many_rounds(&self) -> Error {
        Error::Unreadable { name: self.name(), why: format!("it still asks for input after {ROUNDS_MAX} rounds") }
    }

    /// Calls a tool, through as many rounds as it takes.
    pub(crate) async fn call_tool(self: &Arc<Self>, mut params: CallToolRequestParams, context: &CallContext) -> Result<CallToolResponse> {
        for _ in 0..=ROUNDS_MAX {
            match self.call_tool_once(params.clone(), context).await? {
                CallToolResponse::InputRequired(wanted) => {
                    (params.input_responses, params.request_state) = answers(&self.spec.name, wanted, context.relay.as_ref()).await?;
                }
                done => return Ok(done),
            }
        }
        Err(self.too_many_rounds())
    }

    /// Reads a resource, through as many rounds as it takes.
    pub(crate) async fn read_resource(self: &Arc<Self>, mut params: ReadResourceRequestParams, context: &CallContext) -> Result<ReadResourceResponse> {
        for _ in 0..=ROUNDS_MAX {
            match self.read_resource_once(params.clone(), context).await? {
                ReadResourceResponse::InputRequired(wanted) => {
                    (params.input_responses, params.request_state) = answers(&self.spec.name, wanted, context.relay.as_ref()).await?;
                }
                done => return Ok(done),
            }
        }
        Err(self.too_many_rounds())
    }

    /// Gets a prompt, through as many rounds as it takes.
    pub(crate) async fn get_prompt(self: &Arc<Self>, mut params: GetPromptRequestParams, context: &CallContext) -> Result<GetPromptResponse> {
        for _ in 0..=ROUNDS_MAX {
            match self.get_prompt_once(params.clone(), context).await? {
                GetPromptResponse::InputRequired(wanted) => {
                    (params.input_responses, params.request_state) = answers(&self.spec.name, wanted, context.relay.as_ref()).await?;
                }
                done => return Ok(done),
            }
        }
        Err(self.too_many_rounds())
    }
}
