//! What can be asked of an upstream. Every answer is bounded in size and time, and every failure says whether the call can
//! have been carried out.

#![expect(deprecated, reason = "upstreams of the older era are subscribed to in the older way")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CancelledNotificationParam, ClientRequest, CompleteRequest, CompleteRequestParams,
    CompleteResult, DiscoverRequest, DiscoverRequestParams, ErrorCode, GetExtensions, GetPromptRequest, GetPromptRequestParams, GetPromptResponse,
    ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest, PaginatedRequestParams, PingRequest, ProgressToken, Prompt,
    ReadResourceRequest, ReadResourceRequestParams, ReadResourceResponse, RequestId, RequestMetaObject, Resource, ResourceTemplate, ResultType, ServerResult,
    SubscribeRequest, SubscribeRequestParams, Tool, UnsubscribeRequest, UnsubscribeRequestParams,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde::Serialize;
use tokio::time::Instant;

use super::error::{Error, Result};
use super::http::Fault;
use super::lines::{TOO_LARGE, UNREADABLE};
use super::link::{Link, told_by_transport};
use super::relay::{Call, CallContext, Ledger, Mark};
use super::slot::Upstream;

/// How many items of a list are taken, on how many pages, and of what size in all.
const ITEMS_MAX: usize = 5_000;
const PAGES_MAX: usize = 500;
const LIST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long a question whether it is there may take.
const PROBE: Duration = Duration::from_secs(10);
/// How many resources of one upstream may be followed.
const FOLLOWED_MAX: usize = 512;

/// What rmcp answers in place of a server whose session was lost.
const SESSION_LOST: &str = "streamable HTTP session was re-initialized before the response arrived";

/// A request that waits for its answer. Dropped before that, the upstream is told that nobody wants it.
struct Waiting<'w> {
    peer: &'w Peer<RoleClient>,
    ledger: &'w Ledger,
    id: RequestId,
    token: ProgressToken,
    why: Option<&'static str>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.ledger.leave(&self.id, &self.token);
        if let Some(why) = self.why.filter(|_| !self.peer.is_transport_closed()) {
            let (peer, id) = (self.peer.clone(), self.id.clone());
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { drop(peer.notify_cancelled(CancelledNotificationParam::new(Some(id), Some(why.to_owned()))).await) });
            }
        }
    }
}

/// A page of a list.
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

impl Upstream {
    /// Sends a request and waits for its answer.
    async fn ask(self: &Arc<Self>, request: ClientRequest, context: &CallContext) -> Result<ServerResult> {
        let begun = Instant::now();
        let answer = self.ask_on(request, context).await;
        match &answer {
            Ok(_) | Err(Error::Refused(_)) => {
                self.figures.took(begun.elapsed());
                self.worked();
            }
            Err(_) => drop(self.figures.errors.fetch_add(1, Ordering::Relaxed)),
        }
        answer
    }

    async fn ask_on(self: &Arc<Self>, request: ClientRequest, context: &CallContext) -> Result<ServerResult> {
        let most = self.spec.bounds.in_flight;
        let _place = self.places.try_acquire().map_err(|_| Error::Busy { name: self.name(), most })?;
        let link = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(Error::Cancelled { name: self.name(), sent: false }),
            link = self.link() => link?,
        };
        self.figures.calls.fetch_add(1, Ordering::Relaxed);
        self.ask_over(&link, request, context).await
    }

    async fn ask_over(&self, link: &Link, mut request: ClientRequest, context: &CallContext) -> Result<ServerResult> {
        let call = Call::new(context.relay.clone());
        request.extensions_mut().insert(Mark(Arc::clone(&call)));
        let options = PeerRequestOptions::no_options().with_meta(meta(context, link.is_modern()));
        let sent = link.peer.send_request_with_option(request, options).await;
        let mut handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Err(self.broken(&error, &call, link).await),
        };
        let waiting = Waiting {
            peer: &link.peer,
            ledger: &link.ledger,
            id: handle.id.clone(),
            token: handle.progress_token.clone(),
            why: Some("the caller no longer waits for it"),
        };
        let mut waiting = waiting;
        let last = Instant::now() + self.spec.bounds.call_total;
        let mut until = (Instant::now() + self.spec.bounds.call).min(last);
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break answer.unwrap_or(Err(ServiceError::TransportClosed)),
                () = context.cancel.cancelled() => {
                    waiting.why = Some("the caller cancelled it");
                    return Err(Error::Cancelled { name: self.name(), sent: call.give_up() });
                }
                () = link.closed.cancelled() => break Err(ServiceError::TransportClosed),
                () = call.progressed.notified() => until = (Instant::now() + self.spec.bounds.call).min(last),
                () = tokio::time::sleep_until(until) => {
                    if call.waits_for_caller() && until < last {
                        until = (Instant::now() + self.spec.bounds.call).min(last);
                        continue;
                    }
                    waiting.why = Some("it took too long");
                    if !call.give_up() {
                        return Err(Error::NotSent { name: self.name(), why: "it does not read what is sent to it".to_owned() });
                    }
                    return Err(Error::TimedOut { name: self.name(), after: if until == last { self.spec.bounds.call_total } else { self.spec.bounds.call } });
                }
            }
        };
        waiting.why = None;
        drop(waiting);
        match answer {
            Ok(result) => Ok(result),
            Err(error) => Err(self.broken(&error, &call, link).await),
        }
    }

    /// What a failure of the protocol's library means for the call.
    async fn broken(&self, error: &ServiceError, call: &Call, link: &Link) -> Error {
        let name = self.name();
        let sent = call.give_up();
        let lost = |why: String| {
            let name = self.name();
            if sent { Error::Ambiguous { name, why } } else { Error::NotSent { name, why } }
        };
        match error {
            ServiceError::McpError(error) if error.code == TOO_LARGE => Error::TooLarge { name, most: self.spec.bounds.answer_bytes },
            ServiceError::McpError(error) if error.code == UNREADABLE => Error::Unreadable { name, why: self.spec.hide(&error.message) },
            ServiceError::McpError(error) if error.code == ErrorCode::INTERNAL_ERROR && error.message == SESSION_LOST => {
                lost("its session was lost".to_owned())
            }
            ServiceError::McpError(error) => Error::Refused(error.clone()),
            ServiceError::UnexpectedResponse => Error::Unreadable { name, why: "it is no answer to this kind of question".to_owned() },
            ServiceError::TransportSend(error) => {
                let why = self.spec.hide(&told_by_transport(error.error.as_ref()));
                if was_turned_away(error.error.as_ref()) { Error::NotSent { name, why } } else { lost(why) }
            }
            ServiceError::Cancelled { .. } => Error::Cancelled { name, sent },
            _ => lost(link.ending(&self.spec, &self.log).await),
        }
    }

    /// Whether it still answers.
    pub(super) async fn probe(self: &Arc<Self>, link: &Link) -> bool {
        let question = if link.is_modern() {
            ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {}))
        } else {
            ClientRequest::PingRequest(PingRequest { method: rmcp::model::PingRequestMethod, extensions: rmcp::model::Extensions::new() })
        };
        let context = CallContext::default();
        let answer = tokio::time::timeout(PROBE, self.ask_over(link, question, &context)).await;
        let is_there = matches!(answer, Ok(Ok(_) | Err(Error::Refused(_) | Error::Unreadable { .. } | Error::TooLarge { .. })));
        if is_there {
            self.worked();
        }
        is_there
    }

    /// Connects if need be, and says what it is.
    pub(crate) async fn ready(self: &Arc<Self>) -> Result<Arc<rmcp::model::ServerPeerInfo>> {
        Ok(Arc::clone(&self.link().await?.info))
    }

    /// Reads all pages of a list.
    async fn list<T: Serialize>(
        self: &Arc<Self>,
        request: impl Fn(Option<PaginatedRequestParams>) -> ClientRequest,
        page: impl Fn(ServerResult) -> Option<Page<T>>,
    ) -> Result<Vec<T>> {
        let (context, mut all, mut bytes, mut cursor) = (CallContext::default(), Vec::new(), 0, None::<String>);
        for _ in 0..PAGES_MAX {
            let params = cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let answer = self.ask(request(params), &context).await?;
            let wrong = || Error::Unreadable { name: self.name(), why: "it is no list of what was asked for".to_owned() };
            let page = page(answer).ok_or_else(wrong)?;
            for item in page.items {
                bytes += serde_json::to_vec(&item).map_or(0, |text| text.len());
                if all.len() >= ITEMS_MAX || bytes > LIST_BYTES_MAX {
                    return Err(Error::TooLarge { name: self.name(), most: LIST_BYTES_MAX });
                }
                all.push(item);
            }
            cursor = page.next.filter(|next| !next.is_empty());
            if cursor.is_none() {
                return Ok(all);
            }
        }
        Err(Error::Unreadable { name: self.name(), why: format!("its list has more than {PAGES_MAX} pages") })
    }

    /// Its tools. One that offers none has none.
    pub(crate) async fn list_tools(self: &Arc<Self>) -> Result<Vec<Tool>> {
        if self.ready().await?.capabilities.tools.is_none() {
            return Ok(Vec::new());
        }
        let request = |params| ClientRequest::ListToolsRequest(ListToolsRequest { params, ..ListToolsRequest::default() });
        self.list(request, |answer| match answer {
            ServerResult::ListToolsResult(list) => Some(Page { items: list.tools, next: list.next_cursor }),
            _ => None,
        })
        .await
    }

    /// Its resources.
    pub(crate) async fn list_resources(self: &Arc<Self>) -> Result<Vec<Resource>> {
        if self.ready().await?.capabilities.resources.is_none() {
            return Ok(Vec::new());
        }
        let request = |params| ClientRequest::ListResourcesRequest(ListResourcesRequest { params, ..ListResourcesRequest::default() });
        self.list(request, |answer| match answer {
            ServerResult::ListResourcesResult(list) => Some(Page { items: list.resources, next: list.next_cursor }),
            _ => None,
        })
        .await
    }

    /// Its kinds of resources.
    pub(crate) async fn list_templates(self: &Arc<Self>) -> Result<Vec<ResourceTemplate>> {
        if self.ready().await?.capabilities.resources.is_none() {
            return Ok(Vec::new());
        }
        let request = |params| ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest { params, ..ListResourceTemplatesRequest::default() });
        let listed = self.list(request, |answer| match answer {
            ServerResult::ListResourceTemplatesResult(list) => Some(Page { items: list.resource_templates, next: list.next_cursor }),
            _ => None,
        });
        match listed.await {
            // Not every server with resources has kinds of them.
            Err(Error::Refused(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// Its prompts.
    pub(crate) async fn list_prompts(self: &Arc<Self>) -> Result<Vec<Prompt>> {
        if self.ready().await?.capabilities.prompts.is_none() {
            return Ok(Vec::new());
        }
        let request = |params| ClientRequest::ListPromptsRequest(ListPromptsRequest { params, ..ListPromptsRequest::default() });
        self.list(request, |answer| match answer {
            ServerResult::ListPromptsResult(list) => Some(Page { items: list.prompts, next: list.next_cursor }),
            _ => None,
        })
        .await
    }

    /// Calls a tool once: an upstream of the newer era may answer that it needs input first.
    pub(crate) async fn call_tool_once(self: &Arc<Self>, mut params: CallToolRequestParams, context: &CallContext) -> Result<CallToolResponse> {
        params.meta = None;
        let request = CallToolRequest::new(params);
        match self.ask(ClientRequest::CallToolRequest(request), context).await? {
            ServerResult::CallToolResult(mut result) => {
                // Upstreams of the older era do not write it, and clients of the newer one need it.
                result.result_type.get_or_insert(ResultType::COMPLETE);
                Ok(CallToolResponse::Complete(result))
            }
            ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result)),
            ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
            _ => Err(self.no_answer()),
        }
    }

    /// Reads a resource once.
    pub(crate) async fn read_resource_once(self: &Arc<Self>, mut params: ReadResourceRequestParams, context: &CallContext) -> Result<ReadResourceResponse> {
        params.meta = None;
        let request = ReadResourceRequest::new(params);
        match self.ask(ClientRequest::ReadResourceRequest(request), context).await? {
            ServerResult::ReadResourceResult(mut result) => {
                result.result_type.get_or_insert(ResultType::COMPLETE);
                Ok(ReadResourceResponse::Complete(result))
            }
            ServerResult::InputRequiredResult(result) => Ok(ReadResourceResponse::InputRequired(result)),
            _ => Err(self.no_answer()),
        }
    }

    /// Gets a prompt once.
    pub(crate) async fn get_prompt_once(self: &Arc<Self>, mut params: GetPromptRequestParams, context: &CallContext) -> Result<GetPromptResponse> {
        params.meta = None;
        let request = GetPromptRequest::new(params);
        match self.ask(ClientRequest::GetPromptRequest(request), context).await? {
            ServerResult::GetPromptResult(mut result) => {
                result.result_type.get_or_insert(ResultType::COMPLETE);
                Ok(GetPromptResponse::Complete(result))
            }
            ServerResult::InputRequiredResult(result) => Ok(GetPromptResponse::InputRequired(result)),
            _ => Err(self.no_answer()),
        }
    }

    /// Completes an argument.
    pub(crate) async fn complete(self: &Arc<Self>, mut params: CompleteRequestParams, context: &CallContext) -> Result<CompleteResult> {
        params.meta = None;
        let request = CompleteRequest::new(params);
        match self.ask(ClientRequest::CompleteRequest(request), context).await? {
            ServerResult::CompleteResult(mut result) => {
                result.result_type.get_or_insert(ResultType::COMPLETE);
                Ok(result)
            }
            _ => Err(self.no_answer()),
        }
    }

    fn no_answer(&self) -> Error {
        Error::Unreadable { name: self.name(), why: "it is no answer to this kind of question".to_owned() }
    }

    /// Follows a resource: its changes come with all others, also after the connection was made anew. Everybody who follows
    /// one lets go of it again.
    pub(crate) async fn subscribe(self: &Arc<Self>, uri: &str) -> Result<()> {
        // One after the other: what one client follows no longer another may just begin to.
        let _alone = self.subscribing.lock().await;
        let link = self.link().await?;
        let known = self.followed.borrow().contains_key(uri);
        if !known && self.followed.borrow().len() >= FOLLOWED_MAX {
            return Err(Error::Busy { name: self.name(), most: FOLLOWED_MAX });
        }
        if !known && !link.is_modern() {
            let request = SubscribeRequest::new(SubscribeRequestParams::new(uri));
            self.ask(ClientRequest::SubscribeRequest(request), &CallContext::default()).await?;
        }
        self.followed.send_if_modified(|all| {
            let count = all.entry(uri.to_owned()).or_insert(0);
            *count += 1;
            *count == 1
        });
        Ok(())
    }

    /// Follows a resource no longer.
    pub(crate) async fn unsubscribe(self: &Arc<Self>, uri: &str) -> Result<()> {
        let _alone = self.subscribing.lock().await;
        let was_last = self.followed.send_if_modified(|all| {
            let left = all.get_mut(uri).map(|count| {
                *count = count.saturating_sub(1);
                *count
            });
            if left == Some(0) {
                all.remove(uri);
            }
            left == Some(0)
        });
        let modern = self.info().is_none_or(|info| !info.protocol_version.has_initialize());
        if was_last && !modern {
            let request = UnsubscribeRequest::new(UnsubscribeRequestParams::new(uri));
            self.ask(ClientRequest::UnsubscribeRequest(request), &CallContext::default()).await?;
        }
        Ok(())
    }

    /// Subscribes again, on a connection that is new to an upstream of the older era.
    pub(super) async fn resubscribe(self: &Arc<Self>, link: &Link) {
        let followed = self.followed.borrow().clone();
        for uri in followed.into_keys() {
            let params = SubscribeRequestParams::new(uri.as_str());
            let request = SubscribeRequest::new(params);
            if self.ask_over(link, ClientRequest::SubscribeRequest(request), &CallContext::default()).await.is_ok() {
                self.tell([super::handler::Change::Resource(uri)]);
            }
        }
    }
}

/// The metadata of a request: what the desk knows of the caller, and never what the caller wrote.
fn meta(context: &CallContext, modern: bool) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    if let Some(trace) = &context.traceparent {
        meta.set_traceparent(trace.as_str());
    }
    if modern {
        if let Some(capabilities) = &context.capabilities {
            meta.set_client_capabilities(capabilities.clone());
        }
        if let Some(level) = context.log_level {
            meta.set_log_level(level);
        }
    }
    meta
}

/// Whether a server over HTTP refused a request before it looked at it, or was never reached.
fn was_turned_away(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<StreamableHttpError<Fault>>() {
            return match error {
                StreamableHttpError::Client(Fault::Connect(_))
                | StreamableHttpError::AuthRequired(_)
                | StreamableHttpError::InsufficientScope(_)
                | StreamableHttpError::SessionExpired
                | StreamableHttpError::ReservedHeaderConflict(_) => true,
                StreamableHttpError::HttpStatus(status) => status.status < 500,
                StreamableHttpError::UnexpectedServerResponse(why) => why.starts_with("HTTP 4"),
                _ => false,
            };
        }
        next = error.source();
    }
    false
}
