//! Servers behind the desk, as MCP clients see them: the tools that are there for a caller, and calls that the desk decides
//! before they are handed on. One server alone is served with everything that it offers; what is read there is on the record.

use std::borrow::Cow;
use std::sync::Arc;

use deskmate_core::call::{Call, Credential, Outcome, Surface};
use deskmate_core::{Code, Error, gateway};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CreateTaskResult, GetPromptRequestParams, GetPromptResponse,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    Task, TaskStatus, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use super::handler::Server;
use super::held;
use super::mount::Servers;
use super::resources::fault;
use super::standin::{self, refused, respond};
use super::tasks::ASK_AGAIN_MS;
use crate::front::{Client, Following};
use crate::gateway::{By, within};
use crate::upstream::Upstream;

const CALL: &str = "gateway_call";
const RESULT: &str = "gateway_result";
/// In this part of a request's metadata a caller names the proposal that was approved.
const PROPOSAL: &str = "deskmate/proposal_id";

async fn ask(server: &Server, credential: Credential, operation: &str, input: Value) -> Result<Value, Error> {
    let call = Call { credential, surface: Surface::Mcp, operation: operation.to_owned(), input };
    let (Outcome::Done(value) | Outcome::NotYet(value)) = server.endpoint.app.call(call).await?.outcome;
    Ok(value)
}

/// The tools that are there for the caller, in a stable order.
pub(super) async fn list_tools(server: &Server, context: &RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
    let credential = server.caller.credential(context);
    let input = match &server.endpoint.servers {
        Servers::One(name) => json!({ "mount": name }),
        _ => json!({}),
    };
    // Whoever does not say who they are sees what is there for everybody.
    let listed = match ask(server, credential, "gateway_list_tools", input).await {
        Err(error) if error.code == Code::Unauthenticated => Value::Null,
        listed => listed.map_err(|error| fault(&error))?,
    };
    let mut tools: Vec<Tool> = server.endpoint.tools.list().to_vec();
    for entry in listed.get("tools").and_then(Value::as_array).into_iter().flatten() {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let prefix = match &server.endpoint.servers {
            Servers::One(_) => None,
            Servers::Named(names) if !names.iter().any(|name| name == text("mount")) => continue,
            _ => Some(text("mount")),
        };
        let Some(Ok(mut tool)) = entry.get("definition").map(|definition| serde_json::from_value::<Tool>(definition.clone())) else { continue };
        tool.output_schema = tool.output_schema.as_deref().and_then(standin::schema).map(Arc::new);
        if let Some(prefix) = prefix {
            tool.name = Cow::Owned(format!("{prefix}_{}", text("name")));
        }
        tools.push(tool);
    }
    if matches!(server.endpoint.servers, Servers::One(_) | Servers::Named(_)) && !server.endpoint.tools.has(RESULT) {
        tools.push(ask_again(server));
    }
    Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

/// The tool with which a caller asks for a call that was held.
fn ask_again(server: &Server) -> Tool {
    let op = server.endpoint.app.desk.registry.get(RESULT);
    let (description, schema) = op.map_or((String::new(), json!({})), |op| (op.description().to_owned(), op.input().clone()));
    Tool::new(RESULT, description, Arc::new(schema.as_object().cloned().unwrap_or_default()))
}

/// Which tool of which server a name means.
async fn find(server: &Server, name: &str) -> Result<(String, String), ErrorData> {
    if let Servers::One(mount) = &server.endpoint.servers {
        return Ok((mount.clone(), name.to_owned()));
    }
    let (desk, full) = (server.endpoint.app.desk.clone(), name.to_owned());
    let found = server.endpoint.app.desk.db.read(move |tx| gateway::named(&mut desk.cx(tx, deskmate_core::call::Actor::system(), Surface::System), &full));
    let found = found.await.map_err(|error: Error| fault(&error))?;
    let offers = |mount: &String| match &server.endpoint.servers {
        Servers::Named(names) => names.contains(mount),
        _ => true,
    };
    found.filter(|(mount, _)| offers(mount)).ok_or_else(|| ErrorData::invalid_params(format!("there is no tool {name}"), None))
}

/// A call of a tool behind the desk.
pub(super) async fn call_tool(server: &Server, request: CallToolRequestParams, context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let credential = server.caller.credential(context);
    if request.name == RESULT {
        let answer = ask(server, credential, RESULT, Value::Object(request.arguments.unwrap_or_default())).await;
        return answer.map_or_else(|error| Ok(refused(&error)), respond);
    }
    let (mount, tool) = find(server, &request.name).await?;
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    let client = Client::new(context, server.lasting);
    let by = By { context: client.context().clone(), modern: client.is_modern(), answers: request.input_responses, state: request.request_state };
    let app = &server.endpoint.app;
    // A caller that was asked something goes on with its call; nobody is asked about it again.
    if by.state.is_some() {
        let who = app.admit(&credential, "gateway_list_tools").await.map_err(|error| fault(&error))?;
        if let Some(answer) = app.gateway.go_on(app, &who.id, &mount, &tool, &arguments, by.clone()).await {
            client.finish().await;
            return respond(answer);
        }
    }
    let proposal = context.meta.get(PROPOSAL).and_then(Value::as_str);
    let tasks = context.client_capabilities().unwrap_or_default().supports_tasks();
    let mut input = json!({ "mount": mount, "tool": tool, "arguments": arguments });
    if let Some(fields) = input.as_object_mut() {
        if let Some(proposal) = proposal {
            fields.insert("proposal_id".to_owned(), json!(proposal));
        }
        if let Some(session) = &server.session {
            fields.insert("session".to_owned(), json!(session.as_ref()));
        }
        // Whoever can follow a task need not be held.
        if tasks {
            fields.insert("timeout_seconds".to_owned(), json!(0));
        }
    }
    let by = By { state: None, answers: None, ..by };
    let answer = within(by, ask(server, credential, CALL, input)).await;
    client.finish().await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if matches!(error.code, Code::NotFound | Code::Invalid) => return Err(fault(&error)),
        Err(error) => return Ok(refused(&error)),
    };
    if tasks && answer.get("state") == Some(&json!("held")) {
        let text = |field: &str| answer.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let now = deskmate_core::format_time(app.desk.world.now());
        let says = held::says(app, &text("request_id"));
        let task = Task::new(text("call_id"), TaskStatus::Working, now.clone(), now).with_status_message(says).with_poll_interval_ms(ASK_AGAIN_MS);
        return Ok(CallToolResponse::Task(CreateTaskResult::new(task)));
    }
    respond(answer)
}

/// The connection of the caller to one server.
async fn upstream(server: &Server, mount: &str, context: &RequestContext<RoleServer>) -> Result<Arc<Upstream>, ErrorData> {
    let app = &server.endpoint.app;
    let who = app.admit(&server.caller.credential(context), "gateway_list_tools").await.map_err(|error| fault(&error))?;
    app.gateway.upstream(app, mount, &who.id).await.map_err(|error| fault(&error))
}

/// What one server offers, without what cannot be passed on. One that is away has tools still: those that people know.
pub(super) async fn capabilities(server: &Server, mount: &str, context: &RequestContext<RoleServer>) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::builder().enable_tools().build();
    let Ok(upstream) = upstream(server, mount, context).await else { return capabilities };
    let Ok(about) = upstream.ready().await else { return capabilities };
    (capabilities.resources, capabilities.prompts) = (about.capabilities.resources.clone(), about.capabilities.prompts.clone());
    capabilities.completions.clone_from(&about.capabilities.completions);
    if let Some(resources) = capabilities.resources.as_mut() {
        // The older era subscribes over a connection that lasts, and is not passed on.
        resources.subscribe = context.protocol_version().filter(|version| !version.has_initialize()).and(resources.subscribe);
    }
    capabilities
}

/// Tells the record that something of a server is read, unless that is forbidden.
async fn read(server: &Server, mount: &str, kind: &'static str, name: &str, context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let app = &server.endpoint.app;
    let credential = server.caller.credential(context);
    let (desk, mount, name, session) = (app.desk.clone(), mount.to_owned(), name.to_owned(), server.session.clone());
    let told = app.desk.db.write(move |tx| {
        let actor = desk.admit(tx, &credential, "gateway_list_tools")?;
        gateway::read(&mut desk.cx(tx, actor, Surface::Mcp), &mount, kind, &name, session.as_deref())
    });
    told.await.map_err(|error: Error| fault(&error))
}

pub(super) async fn list_resources(server: &Server, mount: &str, context: &RequestContext<RoleServer>) -> Result<ListResourcesResult, ErrorData> {
    let all = upstream(server, mount, context).await?.list_resources().await.map_err(|error| error.to_mcp())?;
    Ok(ListResourcesResult::with_all_items(all).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

pub(super) async fn list_templates(server: &Server, mount: &str, context: &RequestContext<RoleServer>) -> Result<ListResourceTemplatesResult, ErrorData> {
    let all = upstream(server, mount, context).await?.list_templates().await.map_err(|error| error.to_mcp())?;
    Ok(ListResourceTemplatesResult::with_all_items(all).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

pub(super) async fn list_prompts(server: &Server, mount: &str, context: &RequestContext<RoleServer>) -> Result<ListPromptsResult, ErrorData> {
    let all = upstream(server, mount, context).await?.list_prompts().await.map_err(|error| error.to_mcp())?;
    Ok(ListPromptsResult::with_all_items(all).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

pub(super) async fn read_resource(
    server: &Server,
    mount: &str,
    request: ReadResourceRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let upstream = upstream(server, mount, context).await?;
    read(server, mount, "resource.read", &request.uri, context).await?;
    let client = Client::new(context, server.lasting);
    let answer =
        if client.is_modern() { upstream.read_resource_once(request, client.context()).await } else { upstream.read_resource(request, client.context()).await };
    client.finish().await;
    answer.map_err(|error| error.to_mcp())
}

pub(super) async fn get_prompt(
    server: &Server,
    mount: &str,
    request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let upstream = upstream(server, mount, context).await?;
    read(server, mount, "prompt.get", &request.name, context).await?;
    let client = Client::new(context, server.lasting);
    let answer =
        if client.is_modern() { upstream.get_prompt_once(request, client.context()).await } else { upstream.get_prompt(request, client.context()).await };
    client.finish().await;
    answer.map_err(|error| error.to_mcp())
}

pub(super) async fn complete(
    server: &Server,
    mount: &str,
    request: CompleteRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CompleteResult, ErrorData> {
    let upstream = upstream(server, mount, context).await?;
    let client = Client::new(context, server.lasting);
    let answer = upstream.complete(request, client.context()).await;
    client.finish().await;
    answer.map_err(|error| error.to_mcp())
}

/// Tells a client of the newer era what changes: the server's lists and resources.
pub(super) async fn listen(server: &Server, mount: &str, context: SubscriptionContext) -> Result<(), ErrorData> {
    let upstream = upstream(server, mount, context.request_context()).await?;
    let _place = server.place(&server.caller.credential(context.request_context())).await?;
    Following::of(&upstream, context).await
}
