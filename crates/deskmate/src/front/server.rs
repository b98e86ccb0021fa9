//! The MCP server that clients see: what the child offers, in the era of each client.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, DiscoverResult, GetPromptRequestParams, GetPromptResponse, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, ServerPeerInfo, SubscriptionFilter,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::caller::Client;
use super::following::{Following, Sink, wants};
use crate::upstream::{Error, Talks, Upstream};

/// How many resources one client may follow.
const FOLLOWED_MAX: usize = 64;

/// The child, as clients see it.
#[derive(Clone)]
pub(super) struct Fronted {
    upstream: Arc<Upstream>,
    talks: Arc<Talks>,
}

impl Fronted {
    pub(super) fn new(upstream: Arc<Upstream>) -> Self {
        Self { upstream, talks: Arc::default() }
    }

    pub(super) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// What the child says of itself, without what cannot be passed on.
    fn config(about: &ServerPeerInfo, modern: bool) -> ServerConfig {
        let mut capabilities = ServerCapabilities::default();
        (capabilities.tools, capabilities.prompts) = (about.capabilities.tools.clone(), about.capabilities.prompts.clone());
        (capabilities.resources, capabilities.completions) = (about.capabilities.resources.clone(), about.capabilities.completions.clone());
        if !modern {
            // Nothing lasts between two requests of the older era, so nothing can be told in between.
            if let Some(tools) = &mut capabilities.tools {
                tools.list_changed = None;
            }
            if let Some(prompts) = &mut capabilities.prompts {
                prompts.list_changed = None;
            }
            if let Some(resources) = &mut capabilities.resources {
                (resources.list_changed, resources.subscribe) = (None, None);
            }
        }
        let server = about.server_info.clone().unwrap_or_else(|| Implementation::new("deskmate-front", env!("CARGO_PKG_VERSION")));
        let config = ServerConfig::new(capabilities).with_server_info(server);
        match &about.instructions {
            Some(instructions) => config.with_instructions(instructions.clone()),
            None => config,
        }
    }

    async fn about(&self) -> Result<Arc<ServerPeerInfo>, ErrorData> {
        self.upstream.ready().await.map_err(told)
    }
}

fn told(error: Error) -> ErrorData {
    error.to_mcp()
}

/// Lists come whole: a cursor can only be one that was never given out.
fn whole(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(_) => Err(ErrorData::invalid_params("this cursor was not given out by this server", None)),
        None => Ok(()),
    }
}

impl ServerHandler for Fronted {
    fn get_info(&self) -> ServerConfig {
        self.upstream.info().map_or_else(|| ServerConfig::new(ServerCapabilities::default()), |about| Self::config(&about, true))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    async fn initialize(&self, request: InitializeRequestParams, context: RequestContext<RoleServer>) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let about = self.about().await?;
        let version = self.negotiate_initialize(&request)?.protocol_version;
        let mut answer = Self::config(&about, false);
        answer.protocol_version = version;
        Ok(answer)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let about = self.about().await?;
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), Self::config(&about, true)))
    }

    async fn list_tools(&self, request: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        whole(request)?;
        self.upstream.list_tools().await.map(ListToolsResult::with_all_items).map_err(told)
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let client = Client::new(&context, false);
        let answer = if client.is_modern() {
            self.talks.call_tool(&self.upstream, super::CALLER, request, client.context()).await
        } else {
            self.upstream.call_tool(request, client.context()).await
        };
        client.finish().await;
        answer.map_err(told)
    }

    async fn list_resources(&self, request: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListResourcesResult, ErrorData> {
        whole(request)?;
        self.upstream.list_resources().await.map(ListResourcesResult::with_all_items).map_err(told)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        whole(request)?;
        self.upstream.list_templates().await.map(ListResourceTemplatesResult::with_all_items).map_err(told)
    }

    async fn read_resource(&self, request: ReadResourceRequestParams, context: RequestContext<RoleServer>) -> Result<ReadResourceResponse, ErrorData> {
        let client = Client::new(&context, false);
        let answer = if client.is_modern() {
            self.upstream.read_resource_once(request, client.context()).await
        } else {
            self.upstream.read_resource(request, client.context()).await
        };
        client.finish().await;
        answer.map_err(told)
    }

    async fn list_prompts(&self, request: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListPromptsResult, ErrorData> {
        whole(request)?;
        self.upstream.list_prompts().await.map(ListPromptsResult::with_all_items).map_err(told)
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, context: RequestContext<RoleServer>) -> Result<GetPromptResponse, ErrorData> {
        let client = Client::new(&context, false);
        let answer = if client.is_modern() {
            self.upstream.get_prompt_once(request, client.context()).await
        } else {
            self.upstream.get_prompt(request, client.context()).await
        };
        client.finish().await;
        answer.map_err(told)
    }

    async fn complete(&self, request: CompleteRequestParams, context: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        let client = Client::new(&context, false);
        let answer = self.upstream.complete(request, client.context()).await;
        client.finish().await;
        answer.map_err(told)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.truncate(FOLLOWED_MAX);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        let (sink, _hold) = (Sink::Listen(context.sink().clone()), self.upstream.hold());
        let mut following = Following::begin(&self.upstream, uris).await.map_err(told)?;
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = following.next() => change,
            };
            match change {
                Some(change) if !wants(context.accepted(), &change) || sink.tell(&change).await => {}
                _ => return Ok(()),
            }
        }
    }
}
