//! Asking for input in rounds: the answer of a call is a question until everything is there.

use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequests, InputRequiredResult, InputResponses, RequestStateCodec};
use serde_json::{Map, Value, json};

use super::broken;
use super::data::Data;

/// What comes next.
pub(super) enum Step {
    /// The client is asked.
    Ask(InputRequiredResult),
    /// Everything is there: a text that shows it.
    Done(String),
}

pub(super) struct Rounds {
    codec: Option<RequestStateCodec>,
}

impl Rounds {
    pub(super) fn new() -> Self {
        let mut key = [0_u8; 32];
        let filled = getrandom::fill(&mut key).is_ok();
        Self { codec: filled.then(|| RequestStateCodec::try_new(key.to_vec()).ok()).flatten() }
    }

    /// Goes on with the rounds of a fixture. With `client` only what that client can do is asked for.
    pub(super) fn go(
        &self,
        data: &Data,
        name: &str,
        responses: Option<InputResponses>,
        state: Option<String>,
        client: Option<&ClientCapabilities>,
    ) -> Result<Step, ErrorData> {
        let (rounds, stateful) = data.asks(name).ok_or_else(|| broken(name))?;
        let kept = state.map(|state| self.open(&state)).transpose()?;
        let round = kept.as_ref().and_then(|kept| usize::try_from(kept.get("round")?.as_u64()?).ok()).unwrap_or(0);
        let responses = responses.unwrap_or_default();
        let asked = rounds.get(round).and_then(Value::as_object).map(|asked| supported(asked, client)).ok_or_else(|| broken(name))?;
        let answered = asked.iter().all(|(key, request)| responses.get(key).is_some_and(|response| fits(request, response)));
        if !answered || (stateful && kept.is_none()) {
            return self.ask(&asked, stateful.then_some(round));
        }
        match rounds.get(round + 1).and_then(Value::as_object) {
            Some(next) => self.ask(next, stateful.then_some(round + 1)),
            None => Ok(Step::Done(summary(&responses, stateful))),
        }
    }

    fn open(&self, state: &str) -> Result<Value, ErrorData> {
        let codec = self.codec.as_ref().ok_or_else(|| broken("codec"))?;
        codec.open_json(state).map_err(|_| ErrorData::invalid_params("requestState was not made by this server", None))
    }

    fn ask(&self, asked: &Map<String, Value>, round: Option<usize>) -> Result<Step, ErrorData> {
        let requests: InputRequests = serde_json::from_value(Value::Object(asked.clone())).map_err(|error| broken(&error.to_string()))?;
        let state = match (round, &self.codec) {
            (Some(round), Some(codec)) => Some(codec.seal_json(&json!({ "round": round })).map_err(|error| broken(&error.to_string()))?),
            _ => None,
        };
        Ok(Step::Ask(InputRequiredResult::new(Some(requests), state)))
    }
}

fn supported(asked: &Map<String, Value>, client: Option<&ClientCapabilities>) -> Map<String, Value> {
    let can = |method: &str| match (client, method) {
        (None, _) => true,
        (Some(client), "elicitation/create") => client.elicitation.is_some(),
        (Some(client), "sampling/createMessage") => client.sampling.is_some(),
        (Some(client), _) => client.roots.is_some(),
    };
    asked
        .iter()
        .filter(|(_, request)| request.get("method").and_then(Value::as_str).is_some_and(can))
        .map(|(key, request)| (key.clone(), request.clone()))
        .collect()
}

/// Whether an answer has the shape that its question asks for.
fn fits(request: &Value, response: &Value) -> bool {
    match request.get("method").and_then(Value::as_str) {
        Some("elicitation/create") => {
            let required = request.pointer("/params/requestedSchema/required").and_then(Value::as_array);
            let content = response.get("content");
            let named = |name: &Value| name.as_str().and_then(|name| content?.get(name)).is_some();
            response.get("action").and_then(Value::as_str) == Some("accept") && required.is_none_or(|required| required.iter().all(named))
        }
        Some("sampling/createMessage") => response.get("content").is_some(),
        _ => response.get("roots").is_some_and(Value::is_array),
    }
}

fn summary(responses: &InputResponses, stateful: bool) -> String {
    let mut said: Vec<String> = responses
        .values()
        .map(|response| match response.pointer("/content/name").and_then(Value::as_str) {
            Some(name) => format!("Hello, {name}!"),
            None => response.to_string(),
        })
        .collect();
    if stateful {
        said.push("state-ok".to_owned());
    }
    said.join(" ")
}
