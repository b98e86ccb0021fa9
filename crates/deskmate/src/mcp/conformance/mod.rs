//! Fixtures for the official MCP conformance suite. They stand on top of the real server: what they do not know goes
//! to it, so the suite also runs through the code that clients use. Compiled with the feature `conformance` only.
#![expect(deprecated, reason = "the suite still tests what the newest protocol has given up")]

mod asking;
mod calls;
mod data;
mod jobs;
mod rounds;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult, CompletionInfo, DetailedTask, DiscoverResult,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, TaskPayload, TaskStatus, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::caller::Caller;
use super::handler::Server;
use super::http::{Allowed, respond};
use super::mount::{Mount, Shelf};
use asking::Asking;
use data::Data;
use rounds::Rounds;

/// What all connections share.
struct Shared {
    data: Data,
    rounds: Rounds,
    asking: Asking,
    tools_changed: Notify,
    prompts_changed: Notify,
}

/// The real server with the fixtures before it.
#[derive(Clone)]
struct Fixtures {
    real: Server,
    shared: Arc<Shared>,
}

#[derive(Clone)]
struct Services {
    /// The configuration of the real endpoint.
    stateless: StreamableHttpService<Fixtures, NeverSessionManager>,
    /// Asking the client over HTTP in the older era needs a session.
    sessions: StreamableHttpService<Fixtures, LocalSessionManager>,
}

/// The route of the fixtures.
pub(super) fn router<S: Clone + Send + Sync + 'static>(shelf: &Shelf, allowed: &Allowed, stop: CancellationToken) -> Router<S> {
    let endpoint = shelf.endpoint(&Mount::all(false));
    let shared =
        Arc::new(Shared { data: Data::new(), rounds: Rounds::new(), asking: Asking::default(), tools_changed: Notify::new(), prompts_changed: Notify::new() });
    tokio::spawn(jobs::work(shelf.app().clone(), Arc::clone(&shared), stop.clone()));
    let make = move |lasting: bool| Fixtures { real: Server::new(Arc::clone(&endpoint), Caller::Request, lasting), shared: Arc::clone(&shared) };
    let config = allowed.config(stop);
    let alone = make.clone();
    let services = Services {
        stateless: StreamableHttpService::new(move || Ok(alone(false)), Arc::new(NeverSessionManager::default()), config.clone()),
        sessions: StreamableHttpService::new(
            move || Ok(make(true)),
            Arc::new(LocalSessionManager::default()),
            config.with_legacy_session_mode(true).with_json_response(false),
        ),
    };
    Router::new().route("/mcp/conformance", any(serve)).with_state(services)
}

async fn serve(State(services): State<Services>, request: Request) -> Response {
    let version = request.headers().get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    if version.is_some_and(|version| version >= "2026") {
        return respond(services.stateless.handle(request).await);
    }
    respond(services.sessions.handle(request).await)
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.real.get_info();
        let capabilities = &mut info.capabilities;
        capabilities.logging = Some(JsonObject::new());
        capabilities.completions = Some(JsonObject::new());
        if let Some(tools) = capabilities.tools.as_mut() {
            tools.list_changed = Some(true);
        }
        if let Some(prompts) = capabilities.prompts.as_mut() {
            prompts.list_changed = Some(true);
        }
        info
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut answer = self.real.discover(context).await?;
        answer.capabilities = self.get_info().capabilities;
        Ok(answer)
    }

    async fn list_tools(&self, request: Option<PaginatedRequestParams>, context: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        let mut answer = self.real.list_tools(request, context).await?;
        answer.tools.extend(self.shared.data.tools.iter().cloned());
        Ok(answer)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.data.tools.iter().find(|tool| tool.name == name).cloned().or_else(|| self.real.get_tool(name))
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        if self.shared.data.tools.iter().any(|tool| tool.name == request.name) {
            return calls::call(self, request, &context).await;
        }
        self.real.call_tool(request, context).await
    }

    async fn list_resources(&self, request: Option<PaginatedRequestParams>, context: RequestContext<RoleServer>) -> Result<ListResourcesResult, ErrorData> {
        let mut answer = self.real.list_resources(request, context).await?;
        answer.resources.extend(self.shared.data.resources.iter().cloned());
        Ok(answer)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut answer = self.real.list_resource_templates(request, context).await?;
        answer.resource_templates.extend(self.shared.data.templates.iter().cloned());
        Ok(answer)
    }

    async fn read_resource(&self, request: ReadResourceRequestParams, context: RequestContext<RoleServer>) -> Result<ReadResourceResponse, ErrorData> {
        match self.shared.data.contents(&request.uri) {
            Some(contents) => Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents]).with_ttl_ms(0).with_cache_scope(CacheScope::Public))),
            None => self.real.read_resource(request, context).await,
        }
    }

    async fn list_prompts(&self, request: Option<PaginatedRequestParams>, context: RequestContext<RoleServer>) -> Result<ListPromptsResult, ErrorData> {
        let mut answer = self.real.list_prompts(request, context).await?;
        answer.prompts.extend(self.shared.data.prompts.iter().cloned());
        Ok(answer)
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, context: RequestContext<RoleServer>) -> Result<GetPromptResponse, ErrorData> {
        let Some(messages) = self.shared.data.messages(&request.name, request.arguments.as_ref()) else {
            return self.real.get_prompt(request, context).await;
        };
        if self.shared.data.asks(&request.name).is_some() {
            let asked = self.shared.rounds.go(&self.shared.data, &request.name, request.input_responses, request.request_state, None)?;
            if let rounds::Step::Ask(required) = asked {
                return Ok(GetPromptResponse::InputRequired(required));
            }
        }
        Ok(GetPromptResponse::Complete(GetPromptResult::new(messages)))
    }

    async fn complete(&self, _: CompleteRequestParams, _: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::new(CompletionInfo::default()))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if self.shared.data.contents(&request.uri).is_some() {
            return Ok(());
        }
        self.real.subscribe(request, context).await
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.real.unsubscribe(request, context).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = self.real.accepted_subscription_filter(requested)?;
        if let (Some(accepted), Some(requested)) = (accepted.resource_subscriptions.as_mut(), &requested.resource_subscriptions) {
            accepted.extend(requested.iter().filter(|uri| self.shared.data.contents(uri).is_some()).cloned());
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let (shared, sink) = (Arc::clone(&self.shared), context.sink().clone());
        let changes = AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                let told = tokio::select! {
                    () = shared.tools_changed.notified() => sink.notify_tool_list_changed().await,
                    () = shared.prompts_changed.notified() => sink.notify_prompt_list_changed().await,
                };
                tracing::debug!(?told, "a change was told");
            }
        }));
        let done = self.real.listen(context).await;
        drop(changes);
        done
    }

    async fn get_task(&self, request: GetTaskParams, context: RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        let pending = self.shared.asking.pending(&request.task_id);
        let mut answer = self.real.get_task(request, context).await?;
        if let Some(input_requests) = pending.filter(|_| answer.task.status() == TaskStatus::Working) {
            answer.task = DetailedTask::new(answer.task.task, TaskPayload::InputRequired { input_requests });
        }
        Ok(answer)
    }

    async fn update_task(&self, request: UpdateTaskParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        // Only whoever may see a task may answer for it.
        self.real.get_task(GetTaskParams::new(request.task_id.clone()), context.clone()).await?;
        if self.shared.asking.answer(&request.task_id, &request.input_responses) {
            return Ok(());
        }
        self.real.update_task(request, context).await
    }

    async fn cancel_task(&self, request: CancelTaskParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.real.cancel_task(request, context).await
    }
}

/// An error that no request of the suite should see.
fn broken(what: &str) -> ErrorData {
    ErrorData::internal_error("a fixture is broken", Some(json!({ "what": what })))
}
