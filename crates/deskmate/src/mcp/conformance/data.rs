//! What the fixtures say, read from `fixtures.json`. A mistake there shows as a missing fixture in the suite.

use rmcp::model::{
    CallToolResult, ElicitRequestParams, InputRequests, JsonObject, Prompt, PromptMessage, Resource, ResourceContents, ResourceTemplate, ResultType, Tool,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const TEMPLATE: (&str, &str) = ("test://template/", "/data");

pub(super) struct Data {
    all: Value,
    pub(super) tools: Vec<Tool>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
    pub(super) prompts: Vec<Prompt>,
}

fn read<T: DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    value.and_then(|value| serde_json::from_value(value.clone()).map_err(|error| tracing::error!(%error, "a fixture is unreadable")).ok())
}

impl Data {
    pub(super) fn new() -> Self {
        let all: Value = serde_json::from_str(include_str!("fixtures.json")).unwrap_or_default();
        let template = ResourceTemplate::new(format!("{}{{id}}{}", TEMPLATE.0, TEMPLATE.1), "template")
            .with_description("Data of an id")
            .with_mime_type("application/json");
        Self {
            tools: read(all.get("tools")).unwrap_or_default(),
            resources: read(all.get("resources")).unwrap_or_default(),
            prompts: read(all.get("prompts")).unwrap_or_default(),
            templates: vec![template],
            all,
        }
    }

    fn at(&self, group: &str, name: &str) -> Option<&Value> {
        self.all.get(group)?.get(name)
    }

    /// The fixed answer of a tool.
    pub(super) fn answer(&self, tool: &str) -> Option<CallToolResult> {
        let mut answer: CallToolResult = read(self.at("answers", tool))?;
        answer.result_type = Some(ResultType::COMPLETE);
        Some(answer)
    }

    /// The form that a tool shows.
    pub(super) fn form(&self, tool: &str) -> Option<ElicitRequestParams> {
        read(self.at("forms", tool))
    }

    /// What a task asks for on its way.
    pub(super) fn inputs(&self, tool: &str) -> Option<InputRequests> {
        read(self.at("inputs", tool))
    }

    /// The rounds of questions of a tool or prompt, and whether it keeps state between them.
    pub(super) fn asks(&self, name: &str) -> Option<(&Vec<Value>, bool)> {
        let asks = self.at("rounds", name)?;
        Some((asks.get("rounds")?.as_array()?, asks.get("state").is_some()))
    }

    /// What a resource holds.
    pub(super) fn contents(&self, uri: &str) -> Option<ResourceContents> {
        if let Some(id) = uri.strip_prefix(TEMPLATE.0).and_then(|rest| rest.strip_suffix(TEMPLATE.1)) {
            let text = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }).to_string();
            return Some(ResourceContents::text(text, uri).with_mime_type("application/json"));
        }
        read(self.at("contents", uri))
    }

    /// The messages of a prompt with its arguments filled in.
    pub(super) fn messages(&self, prompt: &str, arguments: Option<&JsonObject>) -> Option<Vec<PromptMessage>> {
        let mut text = self.at("messages", prompt)?.to_string();
        for (name, value) in arguments.into_iter().flatten() {
            let quoted = Value::from(value.as_str().unwrap_or_default()).to_string();
            text = text.replace(&format!("{{{name}}}"), quoted.trim_matches('"'));
        }
        serde_json::from_str(&text).ok()
    }
}
