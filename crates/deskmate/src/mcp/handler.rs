//! The MCP server of one connection or request: every method, handed on to where it is done.

use std::borrow::Cow;
use std::sync::Arc;

use deskmate_core::call::{Call, Credential, Surface, Toolset};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestMethod, CompleteRequestParams, CompleteResult, DiscoverResult,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;

use super::caller::Caller;
use super::changes;
use super::following::{self, Follower};
use super::mount::{Mount, Servers};
use super::passage;
use super::prompts::Prompts;
use super::resources::{Resources, fault};
use super::roots::{self, Reach};
use super::subscriptions::{FOLLOWED_MAX, Followed, follow};
use super::tasks;
use super::tools::{Tools, refused};
use crate::app::App;
use crate::front::Sink;
use crate::places::Place;
use crate::runs::Runs;
use crate::telemetry;

/// How long a client may keep a list. Lists change only with the version of the server.
pub(super) const LIST_FRESH_MS: u64 = 300_000;

/// What everybody may ask whom the desk knows.
const WHOAMI: &str = "desk_whoami";

const INSTRUCTIONS: &str = include_str!("instructions.md");

/// What all connections to the same choice of toolsets share.
pub(crate) struct Endpoint {
    pub(super) app: App,
    pub(super) tools: Tools,
    pub(super) resources: Resources,
    pub(super) prompts: Prompts,
    info: ServerConfig,
    pub(super) servers: Servers,
    read_only: bool,
}

impl Endpoint {
    /// Whether everything that changes something is left out.
    fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Works out the lists once.
    pub(crate) fn new(app: App, mount: Mount) -> Self {
        let registry = Arc::clone(&app.desk.registry);
        let mut capabilities = ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources().enable_resources_subscribe();
        if tasks::served(&registry) {
            capabilities = capabilities.enable_tasks();
        }
        let server = Implementation::new("deskmate", env!("CARGO_PKG_VERSION"))
            .with_title("Deskmate")
            .with_description("One desk for people and their AI agents: proposals, decisions, messages and tasks, with a record that can be proved.");
        let mut capabilities = capabilities.build();
        if mount.servers != Servers::None
            && let Some(tools) = capabilities.tools.as_mut()
        {
            // Whoever listens is told only of what stands here; what each client is promised is said to it.
            tools.list_changed = Some(true);
        }
        if let Servers::One(_) = mount.servers {
            // The same for what one server says of its other lists.
            if let Some(prompts) = capabilities.prompts.as_mut() {
                prompts.list_changed = Some(true);
            }
            if let Some(resources) = capabilities.resources.as_mut() {
                resources.list_changed = Some(true);
            }
        }
        let info = ServerConfig::new(capabilities).with_server_info(server).with_instructions(INSTRUCTIONS);
        let tools = Tools::new(&registry, &mount);
        let (resources, prompts) = (Resources::new(&registry, &mount.toolsets), Prompts::new(&tools));
        Self { app, tools, resources, prompts, info, servers: mount.servers, read_only: mount.read_only }
    }
}

/// One connection, or one HTTP request where there is no session.
#[derive(Clone)]
pub(crate) struct Server {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) caller: Caller,
    pub(super) followed: Followed,
    /// Whether later messages of this client reach the same `Server`. Without that, the older era cannot subscribe.
    pub(super) lasting: bool,
    /// What the calls of one connection have in common.
    pub(super) session: Option<Arc<str>>,
    /// The folders that its client narrows itself to.
    pub(super) roots: roots::Known,
}

impl Server {
    pub(crate) fn new(endpoint: Arc<Endpoint>, caller: Caller, lasting: bool) -> Self {
        let session = lasting.then(|| endpoint.app.desk.world.opaque_id().into());
        Self { endpoint, caller, followed: Followed::default(), lasting, session, roots: roots::Known::default() }
    }

    /// The desk for the calls of this connection.
    pub(super) fn app(&self) -> Cow<'_, App> {
        let app = &self.endpoint.app;
        self.session.as_ref().map_or(Cow::Borrowed(app), |session| Cow::Owned(app.in_session(Arc::clone(session))))
    }

    /// Whether the caller is anybody to this desk. Following waits quietly, so a bad credential must show at the start.
    async fn check_caller(&self, context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let credential = self.caller.credential(context);
        let call = Call { credential, surface: Surface::Mcp, operation: WHOAMI.to_owned(), input: json!({}) };
        self.endpoint.app.call(call).await.map(drop).map_err(|error| fault(&error))
    }

    /// A place for one more stream of this caller. Lists may be followed by anybody, so it need not be known.
    pub(super) async fn place(&self, credential: &Credential) -> Result<Place, ErrorData> {
        let app = &self.endpoint.app;
        let (credential, desk) = (credential.clone(), app.desk.clone());
        let actor = app.desk.db.read(move |tx| desk.admit(tx, &credential, WHOAMI)).await.ok();
        app.streams.take(actor.as_ref()).map_err(|error| fault(&error))
    }
}

/// Lists are short and come whole: a cursor can only be one that was never given out.
pub(super) fn whole(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(_) => Err(ErrorData::invalid_params("this cursor was not given out by this server", None)),
        None => Ok(()),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        self.endpoint.info.clone()
    }

    async fn initialize(&self, request: InitializeRequestParams, context: RequestContext<RoleServer>) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut answer = self.negotiate_initialize(&request)?;
        if let Servers::One(server) = &self.endpoint.servers {
            let (capabilities, instructions) = passage::about(self, server, &context).await;
            (answer.capabilities, answer.instructions) = (capabilities, Some(instructions));
            return Ok(answer);
        }
        if self.endpoint.servers != Servers::None {
            answer.capabilities.tools = Some(passage::changing_tools(self, &context));
        }
        if !self.lasting
            && let Some(resources) = answer.capabilities.resources.as_mut()
        {
            resources.subscribe = None;
        }
        Ok(answer)
    }

    /// A client over a connection that lasts is told when the tools behind the desk change that are there for it, and what else
    /// one server alone says of its lists.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let (Caller::Connection(credential), true) = (&self.caller, self.lasting && self.endpoint.servers != Servers::None) {
            self.followed.leave_lists();
            let sink = Sink::Connection(context.peer.clone());
            self.followed.follow_list(changes::follow(Arc::clone(&self.endpoint), credential.clone(), sink.clone()));
            if let Servers::One(server) = &self.endpoint.servers {
                self.followed.follow_list(Follower::new(self, server, credential.clone(), sink).follow_lists());
            }
        }
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        if let Servers::One(server) = &self.endpoint.servers {
            let mut info = self.get_info();
            let (capabilities, instructions) = passage::about(self, server, &context).await;
            (info.capabilities, info.instructions) = (capabilities, Some(instructions));
            return Ok(DiscoverResult::from_server_info(versions, info).with_ttl_ms(0).with_cache_scope(CacheScope::Private));
        }
        let mut info = self.get_info();
        if self.endpoint.servers != Servers::None {
            info.capabilities.tools = Some(passage::changing_tools(self, &context));
        }
        Ok(DiscoverResult::from_server_info(versions, info).with_ttl_ms(LIST_FRESH_MS).with_cache_scope(CacheScope::Public))
    }

    async fn list_tools(&self, request: Option<PaginatedRequestParams>, context: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        whole(request)?;
        if self.endpoint.servers != Servers::None {
            return passage::list_tools(self, &context).await;
        }
        let tools = self.endpoint.tools.list().to_vec();
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(LIST_FRESH_MS).with_cache_scope(CacheScope::Public))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.endpoint.tools.list().iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        if self.endpoint.servers != Servers::None && !self.endpoint.tools.is_named(&request.name) {
            return passage::call_tool(self, request, &context).await;
        }
        let credential = self.caller.credential(&context);
        let mut app = self.app();
        // Where a run's own client starts is the desk's choice, and says nothing of what it is for.
        if self.endpoint.tools.works_on_files(&request.name) && !Runs::are_of(&credential) {
            match roots::reach(self, &request, &context).await {
                Ok(Reach::All) => {}
                Ok(Reach::Within(folders)) => app = Cow::Owned(app.within(folders)),
                Ok(Reach::Ask(question)) => return Ok(CallToolResponse::InputRequired(*question)),
                Err(error) => return Ok(CallToolResponse::Complete(refused(Toolset::Workspace, &error, matches!(credential, Credential::Named(_))))),
            }
        }
        let call = self.endpoint.tools.call(&app, credential, request, &context);
        let parent = self.endpoint.app.telemetry.spans.as_ref().and_then(|_| super::caller::parent(&context));
        telemetry::within(parent, call).await
    }

    async fn list_resources(&self, request: Option<PaginatedRequestParams>, context: RequestContext<RoleServer>) -> Result<ListResourcesResult, ErrorData> {
        whole(request)?;
        if let Servers::One(server) = &self.endpoint.servers {
            return passage::list_resources(self, server, &context).await;
        }
        Ok(self.endpoint.resources.list())
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        whole(request)?;
        if let Servers::One(server) = &self.endpoint.servers {
            return passage::list_templates(self, server, &context).await;
        }
        Ok(self.endpoint.resources.templates())
    }

    async fn read_resource(&self, request: ReadResourceRequestParams, context: RequestContext<RoleServer>) -> Result<ReadResourceResponse, ErrorData> {
        if let Servers::One(server) = &self.endpoint.servers {
            return passage::read_resource(self, server, request, &context).await;
        }
        let found = self.endpoint.resources.find(&request.uri).ok_or_else(|| no_resource(&request.uri))?;
        let credential = self.caller.credential(&context);
        found.read(&self.endpoint.app, &credential).await.map(ReadResourceResponse::Complete)
    }

    async fn list_prompts(&self, request: Option<PaginatedRequestParams>, context: RequestContext<RoleServer>) -> Result<ListPromptsResult, ErrorData> {
        whole(request)?;
        if let Servers::One(server) = &self.endpoint.servers {
            return passage::list_prompts(self, server, &context).await;
        }
        Ok(self.endpoint.prompts.list())
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, context: RequestContext<RoleServer>) -> Result<GetPromptResponse, ErrorData> {
        if let Servers::One(server) = &self.endpoint.servers {
            return passage::get_prompt(self, server, request, &context).await;
        }
        self.endpoint.prompts.get(&request, &self.endpoint.tools).map(GetPromptResponse::Complete)
    }

    async fn complete(&self, request: CompleteRequestParams, context: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        match &self.endpoint.servers {
            Servers::One(server) => passage::complete(self, server, request, &context).await,
            // Not declared, so it must not be answered either.
            _ => Err(ErrorData::method_not_found::<CompleteRequestMethod>()),
        }
    }

    async fn subscribe(&self, request: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let found = self.endpoint.resources.find(&request.uri);
        let server = match &self.endpoint.servers {
            Servers::One(server) => Some(server),
            _ if found.is_none() => return Err(no_resource(&request.uri)),
            _ => None,
        };
        if !self.lasting {
            return Err(ErrorData::invalid_request("this endpoint keeps no sessions: subscribe over stdio, or with subscriptions/listen", None));
        }
        self.check_caller(&context).await?;
        let credential = self.caller.credential(&context);
        // One place for all that a connection follows: it is one stream.
        if !self.followed.has_place() {
            self.followed.take_place(self.place(&credential).await?);
        }
        let started = match (server, found) {
            (Some(server), _) => {
                let started = following::subscribe(self, server, request.uri, &context).await;
                self.followed.settle();
                started?
            }
            (None, Some(found)) => {
                let (app, sink) = (self.endpoint.app.clone(), Sink::Connection(context.peer.clone()));
                self.followed.start(request.uri, follow(app, credential, found, sink))
            }
            (None, None) => return Err(no_resource(&request.uri)),
        };
        if started {
            return Ok(());
        }
        Err(ErrorData::invalid_params(format!("one connection follows at most {FOLLOWED_MAX} resources"), None))
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.followed.stop(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let asked = requested.resource_subscriptions.iter().flatten();
        let behind = matches!(self.endpoint.servers, Servers::One(_));
        let known = asked.filter(|uri| behind || self.endpoint.resources.find(uri).is_some()).take(FOLLOWED_MAX).cloned();
        let mut accepted = requested.clone();
        accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(|_| known.collect());
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        if let Servers::One(server) = &self.endpoint.servers {
            return following::listen(self, server, context).await;
        }
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        if !uris.is_empty() {
            self.check_caller(context.request_context()).await?;
        }
        let credential = self.caller.credential(context.request_context());
        let _place = self.place(&credential).await?;
        let followers = uris.iter().filter_map(|uri| self.endpoint.resources.find(uri)).map(|found| {
            let follower = follow(self.endpoint.app.clone(), credential.clone(), found, Sink::Listen(context.sink().clone()));
            tokio_util::task::AbortOnDropHandle::new(tokio::spawn(follower))
        });
        let followers: Vec<_> = followers.chain(passage::tools_follower(self, &credential, &context)).collect();
        if followers.is_empty() {
            context.cancelled().await;
            return Ok(());
        }
        // A stream of which nothing is followed any more ends, so that the client does not wait for nothing.
        tokio::select! {
            () = context.cancelled() => {}
            _ = futures_util::future::join_all(followers) => {}
        }
        Ok(())
    }

    async fn get_task(&self, request: GetTaskParams, context: RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        tasks::get(&self.endpoint.app, self.caller.credential(&context), &request.task_id).await
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Err(ErrorData::invalid_params(format!("the task {} asks for no input", request.task_id), None))
    }

    async fn cancel_task(&self, request: CancelTaskParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if self.endpoint.is_read_only() {
            return Err(ErrorData::invalid_request("this mount only reads: it cancels nothing", None));
        }
        tasks::cancel(&self.endpoint.app, self.caller.credential(&context), &request.task_id).await
    }
}

fn no_resource(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("there is no resource {uri}"), Some(json!({ "uri": uri })))
}
