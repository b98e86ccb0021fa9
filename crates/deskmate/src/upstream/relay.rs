//! Whom a call is made for: where an upstream's questions, progress and messages go while the call is under way.

#![expect(deprecated, reason = "upstreams of the older era still ask for samples and roots, and send log messages")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::future::{BoxFuture, ready};
use rmcp::model::{
    ClientCapabilities, ClientJsonRpcMessage, CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorData, GetExtensions, GetMeta, JsonRpcNotification, ListRootsRequestMethod, ListRootsResult, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The caller's side of a call. What is not overridden is declined, as a caller would that cannot do it.
pub(crate) trait Relay: Send + Sync + 'static {
    /// The upstream asks the caller's person something.
    fn elicit(&self, _: ElicitRequestParams) -> BoxFuture<'_, Result<ElicitResult, ErrorData>> {
        Box::pin(ready(Ok(ElicitResult::new(ElicitationAction::Decline))))
    }

    /// The upstream wants a completion of the caller's model.
    fn sample(&self, _: CreateMessageRequestParams) -> BoxFuture<'_, Result<CreateMessageResult, ErrorData>> {
        Box::pin(ready(Err(ErrorData::method_not_found::<CreateMessageRequestMethod>())))
    }

    /// The upstream asks in which directories the caller works.
    fn roots(&self) -> BoxFuture<'_, Result<ListRootsResult, ErrorData>> {
        Box::pin(ready(Err(ErrorData::method_not_found::<ListRootsRequestMethod>())))
    }

    /// How far the call is. The token is ours: the caller has one of its own. Must not wait.
    fn progress(&self, _: ProgressNotificationParam) {}

    /// A message of the upstream's log. Must not wait.
    fn log(&self, _: LoggingMessageNotificationParam) {}
}

/// What goes with a call besides its parameters. Nothing of the caller's own metadata does.
#[derive(Clone, Default)]
pub(crate) struct CallContext {
    /// Where questions and progress go; without one, questions are declined.
    pub(crate) relay: Option<Arc<dyn Relay>>,
    /// Cancelled when the caller no longer wants the answer. Dropping the call does the same.
    pub(crate) cancel: CancellationToken,
    /// The trace that the call belongs to.
    pub(crate) traceparent: Option<String>,
    /// What the caller can do, for an upstream of the newer era, which learns it with each request.
    pub(crate) capabilities: Option<ClientCapabilities>,
    /// Which log messages the caller wants, for an upstream of the newer era.
    pub(crate) log_level: Option<LoggingLevel>,
}

/// Where a call is. Only one of "it leaves" and "it was never sent" can become true, whoever comes first.
const HERE: u8 = 0;
const LEFT: u8 = 1;
const STAYS: u8 = 2;

/// One call that is under way.
pub(super) struct Call {
    pub(super) relay: Option<Arc<dyn Relay>>,
    /// Whether a byte of it may have left this process, or never will: [`HERE`], [`LEFT`] or [`STAYS`].
    place: AtomicU8,
    /// How many questions about it wait for the caller.
    asking: AtomicUsize,
    /// Told at every progress.
    pub(super) progressed: Notify,
}

impl Call {
    pub(super) fn new(relay: Option<Arc<dyn Relay>>) -> Arc<Self> {
        Arc::new(Self { relay, place: AtomicU8::new(HERE), asking: AtomicUsize::new(0), progressed: Notify::new() })
    }

    /// Lets it leave. Not if it was given up: whoever waited for it was told that it was never sent.
    pub(super) fn leave(&self) -> bool {
        self.place.compare_exchange(HERE, LEFT, Ordering::AcqRel, Ordering::Acquire).map_or_else(|now| now == LEFT, |_| true)
    }

    /// Nothing of it has left after all.
    pub(super) fn is_back(&self) {
        let _ = self.place.compare_exchange(LEFT, HERE, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Keeps it from leaving, if it has not left yet. Answers whether it may have.
    pub(super) fn give_up(&self) -> bool {
        self.place.compare_exchange(HERE, STAYS, Ordering::AcqRel, Ordering::Acquire).is_err_and(|now| now == LEFT)
    }

    pub(super) fn waits_for_caller(&self) -> bool {
        self.asking.load(Ordering::Acquire) > 0
    }
}

/// A question to the caller. While it is open the upstream waits for us, and not we for it.
pub(super) struct Asked(Arc<Call>);

impl Asked {
    pub(super) fn of(call: &Arc<Call>) -> Self {
        call.asking.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(call))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::AcqRel);
        self.0.progressed.notify_one();
    }
}

/// A call's mark on its request. It travels beside the message to the transport and is never written.
#[derive(Clone)]
pub(super) struct Mark(pub(super) Arc<Call>);

/// The calls that are under way on one connection, as the upstream names them.
#[derive(Default)]
pub(super) struct Ledger {
    calls: Mutex<Calls>,
    /// Whether the upstream was asked for a stream of what it says unasked, and answered.
    #[cfg(feature = "conformance")]
    pub(super) listened: std::sync::atomic::AtomicBool,
}

#[derive(Default)]
struct Calls {
    by_id: HashMap<RequestId, (u64, Weak<Call>)>,
    by_token: HashMap<ProgressToken, RequestId>,
    entered: u64,
}

/// From how many entries on those are looked for whose calls are over.
const CROWDED: usize = 1024;

impl Ledger {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters the call of a message that is about to be written: from now on the upstream may refer to it.
    pub(super) fn enter(&self, message: &ClientJsonRpcMessage) -> Option<Arc<Call>> {
        let ClientJsonRpcMessage::Request(request) = message else { return None };
        let Mark(call) = request.request.extensions().get::<Mark>()?.clone();
        let token = request.request.get_meta().get_progress_token();
        let mut calls = self.calls();
        if calls.by_id.len() >= CROWDED {
            calls.by_id.retain(|_, (_, call)| call.strong_count() > 0);
            let Calls { by_id, by_token, .. } = &mut *calls;
            by_token.retain(|_, id| by_id.contains_key(id));
        }
        calls.entered += 1;
        let order = calls.entered;
        calls.by_id.insert(request.id.clone(), (order, Arc::downgrade(&call)));
        if let Some(token) = token {
            calls.by_token.insert(token, request.id.clone());
        }
        Some(call)
    }

    /// The call with this id has its answer, or nobody waits for it.
    pub(super) fn leave(&self, id: &RequestId, token: &ProgressToken) {
        let mut calls = self.calls();
        calls.by_id.remove(id);
        calls.by_token.remove(token);
    }

    pub(super) fn by_id(&self, id: &RequestId) -> Option<Arc<Call>> {
        self.calls().by_id.get(id).and_then(|(_, call)| call.upgrade())
    }

    pub(super) fn by_token(&self, token: &ProgressToken) -> Option<Arc<Call>> {
        let calls = self.calls();
        calls.by_token.get(token).and_then(|id| calls.by_id.get(id)).and_then(|(_, call)| call.upgrade())
    }

    /// Takes progress out of what comes, at once and in its order; everything else goes on its way.
    pub(super) fn aside(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            ServerJsonRpcMessage::Notification(JsonRpcNotification { notification: ServerNotification::ProgressNotification(progress), .. }) => {
                self.progress(progress.params);
                None
            }
            other => Some(other),
        }
    }

    /// Tells whoever made a call how far it is.
    pub(super) fn progress(&self, progress: ProgressNotificationParam) {
        if let Some(call) = self.by_token(&progress.progress_token) {
            call.progressed.notify_one();
            if let Some(relay) = &call.relay {
                relay.progress(progress);
            }
        }
    }

    /// The only call that somebody can be asked for, if there is just one.
    pub(super) fn only(&self) -> Option<Arc<Call>> {
        let calls = self.calls();
        let mut asked = calls.by_id.values().filter_map(|(_, call)| call.upgrade()).filter(|call| call.relay.is_some());
        asked.next().filter(|_| asked.next().is_none())
    }

    /// The newest call that somebody can be asked for. Over standard streams an upstream's question names no call; on a
    /// connection of one agent all of them are that agent's.
    pub(super) fn newest(&self) -> Option<Arc<Call>> {
        let calls = self.calls();
        let asked = calls.by_id.values().filter_map(|(order, call)| Some((order, call.upgrade()?))).filter(|(_, call)| call.relay.is_some());
        asked.max_by_key(|(order, _)| **order).map(|(_, call)| call)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let calls = self.calls();
        calls.by_id.len() + calls.by_token.len()
    }
}
