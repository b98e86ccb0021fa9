//! The gateway's client side, as the official suite drives it: connects to the address that it is given, and does whatever
//! it finds there. Only test builds have it.

#![expect(deprecated, reason = "the suite still tests what the newest protocol has given up")]

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    GetPromptRequestParams, JsonObject, ListRootsResult, ReadResourceRequestParams, SamplingMessage, Tool,
};
use serde_json::{Map, Value, json};

use crate::config;
use crate::upstream::{CallContext, Error, Pool, Relay, Spec, Transport, Upstream};

/// Runs if this is what was asked for: `deskmate conformance-client URL`.
pub(super) fn alone(mut words: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if words.next()? != "conformance-client" {
        return None;
    }
    let url = words.next()?.into_string().ok()?;
    let runtime = tokio::runtime::Runtime::new().ok()?;
    let done = runtime.block_on(drive(url));
    if let Err(error) = &done {
        drop(std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{error}\n")));
    }
    Some(if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A caller that says yes to everything, with the values that a form suggests.
struct Agreeable;

impl Relay for Agreeable {
    fn elicit(&self, params: ElicitRequestParams) -> BoxFuture<'_, Result<ElicitResult, ErrorData>> {
        let params = json!(params);
        let answer = match params.get("requestedSchema") {
            Some(schema) => ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(filled(schema))),
            None => ElicitResult::new(ElicitationAction::Accept),
        };
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn sample(&self, _: CreateMessageRequestParams) -> BoxFuture<'_, Result<CreateMessageResult, ErrorData>> {
        let answer = CreateMessageResult::new(SamplingMessage::assistant_text("A sample."), "none".to_owned());
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn roots(&self) -> BoxFuture<'_, Result<ListRootsResult, ErrorData>> {
        Box::pin(std::future::ready(Ok(ListRootsResult::default())))
    }
}

/// A value for every property of a schema.
fn filled(schema: &Value) -> JsonObject {
    let value = |property: &Value| {
        let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
        property.get("default").or_else(|| property.pointer("/enum/0")).cloned().unwrap_or_else(|| match kind {
            "number" | "integer" => json!(2),
            "boolean" => json!(true),
            "array" => json!([]),
            "object" => json!({}),
            _ => json!("text"),
        })
    };
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    properties.iter().map(|(name, property)| (name.clone(), value(property))).collect()
}

/// The calls that the suite asks for, where it names some.
fn asked_for() -> Vec<(String, JsonObject)> {
    let context: Value = config::env("MCP_CONFORMANCE_CONTEXT").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let calls = ["toolCalls", "tool_calls"].iter().find_map(|key| context.get(key)).and_then(Value::as_array).cloned().unwrap_or_default();
    let call = |call: &Value| {
        let name = call.get("name").and_then(Value::as_str)?.to_owned();
        Some((name, call.get("arguments").and_then(Value::as_object).cloned().unwrap_or_else(Map::new)))
    };
    calls.iter().filter_map(call).collect()
}

async fn drive(url: String) -> Result<(), Error> {
    let pool = Pool::new();
    let mut spec = Spec::new("suite", Transport::Http { url, headers: [].into() });
    spec.bounds.call = Duration::from_secs(20);
    let upstream = pool.get(&spec, "suite").await?;
    let relay: Arc<dyn Relay> = Arc::new(Agreeable);
    let context = CallContext { relay: Some(relay), ..CallContext::default() };
    let used = use_all(&upstream, &context).await;
    pool.shut_down().await;
    used
}

/// The suite takes the first stream that is asked for during a call for one that was broken off and is resumed. The one of
/// the session opens by itself, so calls wait for it here; not every server has one.
async fn listened(upstream: &Upstream) {
    for _ in 0..200 {
        if upstream.is_listened_to() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn use_all(upstream: &Arc<Upstream>, context: &CallContext) -> Result<(), Error> {
    let tools = upstream.list_tools().await?;
    listened(upstream).await;
    let mut calls = asked_for();
    if calls.is_empty() {
        let schema = |tool: &Tool| Value::Object(JsonObject::clone(&tool.input_schema));
        calls = tools.iter().map(|tool| (tool.name.to_string(), filled(&schema(tool)))).collect();
        // One tool wants to see what arrived of another one's schema.
        for (name, arguments) in &mut calls {
            if let (Some(seen), Some(other)) = (arguments.get_mut("schema"), tools.iter().find(|tool| tool.name != name.as_str())) {
                *seen = schema(other);
            }
        }
    }
    for (name, arguments) in calls {
        // A tool that fails is a matter of the suite's.
        drop(upstream.call_tool(CallToolRequestParams::new(name).with_arguments(arguments), context).await);
    }
    if let Some(resource) = upstream.list_resources().await?.first() {
        drop(upstream.read_resource(ReadResourceRequestParams::new(resource.uri.clone()), context).await);
    }
    if let Some(prompt) = upstream.list_prompts().await?.first() {
        let arguments = prompt.arguments.iter().flatten().map(|argument| (argument.name.clone(), json!("text"))).collect::<JsonObject>();
        drop(upstream.get_prompt(GetPromptRequestParams::new(prompt.name.clone()).with_arguments(arguments), context).await);
    }
    Ok(())
}
