//! The client that upstreams see: what they ask goes to whoever the call is made for, what they tell goes to whoever
//! follows.

#![expect(deprecated, reason = "upstreams of the older era still ask for samples and roots, and send log messages")]

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorData, Extensions, FormElicitationCapability, Implementation, ListRootsRequestMethod, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam, RootsCapabilities, SamplingCapability,
    UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext};
use tokio::sync::{Semaphore, broadcast};

use super::relay::{Asked, Call, Ledger, Relay};
use super::spec::Questions;

/// How many questions of one upstream may be open.
const ASKED_MAX: usize = 16;

/// What of an upstream has changed, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The list of its tools.
    Tools,
    /// The list of its prompts.
    Prompts,
    /// The list of its resources.
    Resources,
    /// One resource that is followed.
    Resource(String),
}

/// What an upstream sees of the desk.
pub(super) struct Handler {
    ledger: Arc<Ledger>,
    questions: Questions,
    changes: broadcast::Sender<Change>,
    asked: Semaphore,
}

impl Handler {
    pub(super) fn new(ledger: Arc<Ledger>, questions: Questions, changes: broadcast::Sender<Change>) -> Self {
        Self { ledger, questions, changes, asked: Semaphore::new(ASKED_MAX) }
    }

    /// Whom a question is for. A shared connection has nobody: the question names no caller, and the wrong one must not be
    /// asked.
    fn asks(&self, extensions: &Extensions) -> Option<(Arc<dyn Relay>, Asked)> {
        let call: Option<Arc<Call>> = match (self.questions, extensions.get::<InboundStreamOrigin>()) {
            (Questions::Declined, _) => None,
            (_, Some(InboundStreamOrigin::OutboundRequest(id))) => self.ledger.by_id(id),
            (questions, _) => self.likely(questions),
        };
        call.and_then(|call| Some((call.relay.clone()?, Asked::of(&call))))
    }

    /// The call that a message without a name belongs to.
    fn likely(&self, questions: Questions) -> Option<Arc<Call>> {
        match questions {
            Questions::Declined => None,
            Questions::OfTheOnlyCall => self.ledger.only(),
            Questions::OfTheNewestCall => self.ledger.newest(),
        }
    }

    fn changed(&self, change: Change) {
        // Nobody may be following.
        let _ = self.changes.send(change);
    }
}

/// What is declared to an upstream: whatever the protocol knows, because it is declared before anybody calls. A caller that
/// cannot do it declines then. Where all would be declined nothing is.
pub(super) fn capabilities(questions: Questions) -> ClientCapabilities {
    let mut all = ClientCapabilities::default();
    if questions != Questions::Declined {
        let mut modes = ElicitationCapability::default();
        (modes.form, modes.url) = (Some(FormElicitationCapability::default()), Some(UrlElicitationCapability::default()));
        (all.elicitation, all.sampling, all.roots) = (Some(modes), Some(SamplingCapability::default()), Some(RootsCapabilities::default()));
    }
    all
}

fn crowded() -> ErrorData {
    ErrorData::internal_error(format!("{ASKED_MAX} questions are open already"), None)
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let about = Implementation::new("deskmate", env!("CARGO_PKG_VERSION")).with_title("Deskmate");
        ClientConfig::new(capabilities(self.questions), about).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(&self, request: ElicitRequestParams, context: RequestContext<RoleClient>) -> Result<ElicitResult, ErrorData> {
        let Some((relay, _asked)) = self.asks(&context.extensions) else { return Ok(ElicitResult::new(ElicitationAction::Decline)) };
        let _place = self.asked.try_acquire().map_err(|_| crowded())?;
        tokio::select! {
            answer = relay.elicit(request) => answer,
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn create_message(&self, request: CreateMessageRequestParams, context: RequestContext<RoleClient>) -> Result<CreateMessageResult, ErrorData> {
        let Some((relay, _asked)) = self.asks(&context.extensions) else { return Err(ErrorData::method_not_found::<CreateMessageRequestMethod>()) };
        let _place = self.asked.try_acquire().map_err(|_| crowded())?;
        tokio::select! {
            answer = relay.sample(request) => answer,
            () = context.ct.cancelled() => Err(ErrorData::internal_error("no longer wanted", None)),
        }
    }

    async fn list_roots(&self, context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let Some((relay, _asked)) = self.asks(&context.extensions) else { return Err(ErrorData::method_not_found::<ListRootsRequestMethod>()) };
        let _place = self.asked.try_acquire().map_err(|_| crowded())?;
        relay.roots().await
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.ledger.progress(progress);
    }

    async fn on_logging_message(&self, message: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(relay) = self.likely(self.questions).and_then(|call| call.relay.clone()) {
            relay.log(message);
        }
    }

    async fn on_resource_updated(&self, resource: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.changed(Change::Resource(resource.uri));
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed(Change::Resources);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed(Change::Tools);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed(Change::Prompts);
    }
}
