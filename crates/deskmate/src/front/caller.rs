//! The client of one request, as an upstream's call is made for it: progress and messages go to it in their order.

#![expect(deprecated, reason = "clients may still ask for the log messages of a call")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{Peer, RequestContext, ServiceError};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::telemetry::TRACEPARENT;
use crate::upstream::{CallContext, Relay};

/// How much may wait for a client that reads slowly; what is more is left out.
const WAITING_MAX: usize = 64;
/// How long the last of it may take once the call is done.
const LAST: Duration = Duration::from_secs(1);

/// What goes to a client beside its answer.
enum Note {
    Progress(ProgressNotificationParam),
    Log(LoggingMessageNotificationParam),
}

/// A client that waits for an answer.
pub(crate) struct Client {
    relay: Arc<ToClient>,
    notes: JoinHandle<()>,
    context: CallContext,
    is_modern: bool,
}

impl Client {
    /// The client of a request. It can be asked while its call is under way only over a connection that lasts.
    pub(crate) fn new(request: &RequestContext<RoleServer>, lasting: bool) -> Self {
        let is_modern = request.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let (sender, mut notes) = mpsc::channel(WAITING_MAX);
        let peer = request.peer.clone();
        let sending = tokio::spawn(async move {
            while let Some(note) = notes.recv().await {
                let sent = match note {
                    Note::Progress(progress) => peer.notify_progress(progress).await,
                    Note::Log(message) => peer.notify_logging_message(message).await,
                };
                if sent.is_err() {
                    return;
                }
            }
        });
        let relay = Arc::new(ToClient {
            notes: sender,
            token: request.meta.get_progress_token(),
            peer: request.peer.clone(),
            can_be_asked: lasting && !is_modern,
            wants_log: request.meta.log_level().is_some(),
        });
        let context = CallContext {
            relay: Some(Arc::<ToClient>::clone(&relay)),
            cancel: request.ct.clone(),
            traceparent: request.meta.get(TRACEPARENT).and_then(Value::as_str).map(str::to_owned),
            capabilities: is_modern.then(|| request.client_capabilities().unwrap_or_default()),
            log_level: request.meta.log_level(),
        };
        Self { relay, notes: sending, context, is_modern }
    }

    /// What goes with its call.
    pub(crate) fn context(&self) -> &CallContext {
        &self.context
    }

    /// Whether it speaks the newer era, and is asked by answers.
    pub(crate) fn is_modern(&self) -> bool {
        self.is_modern
    }

    /// Sends what is left to send, before the answer.
    pub(crate) async fn finish(self) {
        drop((self.relay, self.context));
        drop(tokio::time::timeout(LAST, self.notes).await);
    }
}

/// The way to a client.
struct ToClient {
    notes: mpsc::Sender<Note>,
    token: Option<ProgressToken>,
    peer: Peer<RoleServer>,
    can_be_asked: bool,
    wants_log: bool,
}

fn failed(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}

impl Relay for ToClient {
    fn elicit(&self, params: ElicitRequestParams) -> BoxFuture<'_, Result<ElicitResult, ErrorData>> {
        Box::pin(async move {
            let modes = self.peer.peer_info().and_then(|info| info.capabilities.elicitation.clone());
            if !self.can_be_asked || modes.is_none() {
                return Ok(ElicitResult::new(ElicitationAction::Decline));
            }
            self.peer.create_elicitation(params).await.map_err(failed)
        })
    }

    fn sample(&self, params: CreateMessageRequestParams) -> BoxFuture<'_, Result<CreateMessageResult, ErrorData>> {
        Box::pin(async move {
            if !self.can_be_asked {
                return Err(ErrorData::invalid_request("this client cannot be asked", None));
            }
            self.peer.create_message(params).await.map_err(failed)
        })
    }

    fn roots(&self) -> BoxFuture<'_, Result<ListRootsResult, ErrorData>> {
        Box::pin(async move {
            if !self.can_be_asked {
                return Err(ErrorData::invalid_request("this client cannot be asked", None));
            }
            self.peer.list_roots().await.map_err(failed)
        })
    }

    fn progress(&self, mut progress: ProgressNotificationParam) {
        if let Some(token) = &self.token {
            progress.progress_token = token.clone();
            let _ = self.notes.try_send(Note::Progress(progress));
        }
    }

    fn log(&self, message: LoggingMessageNotificationParam) {
        if self.wants_log {
            let _ = self.notes.try_send(Note::Log(message));
        }
    }
}
