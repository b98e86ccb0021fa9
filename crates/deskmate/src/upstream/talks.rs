//! Calls that wait for their caller between two of its requests. An upstream of the older era asks while a call is under
//! way; a caller of the newer era is asked by an answer, and calls again with what it knows. In between the call waits here,
//! at most for a while, and goes on where it was: it is made once, whatever number of rounds it takes.

#![expect(deprecated, reason = "upstreams of the older era still ask for samples and roots, and send log messages")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deskmate_core::World;
use futures_util::future::{BoxFuture, ready};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, CreateMessageRequest, CreateMessageRequestMethod, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, ListRootsRequest, ListRootsRequestMethod, ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::error::{Error, Result};
use super::relay::{CallContext, Relay};
use super::slot::Upstream;
use crate::world::Machine;

/// How many calls may wait, and for how long.
const TALKS_MAX: usize = 64;
const WAIT: Duration = Duration::from_mins(5);
/// Questions that come this close together are asked together.
const GATHER: Duration = Duration::from_millis(10);

/// A question of an upstream, and where its answer goes.
struct Question {
    request: InputRequest,
    answer: oneshot::Sender<std::result::Result<Value, ErrorData>>,
}

/// The caller's side of a call, while the caller may be away.
struct Asking {
    questions: mpsc::Sender<Question>,
    /// What the caller can do.
    can: ClientCapabilities,
    /// Where progress goes: to the request that is there now.
    present: Mutex<Option<Arc<dyn Relay>>>,
}

impl Asking {
    fn present(&self) -> Option<Arc<dyn Relay>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_present(&self, relay: Option<Arc<dyn Relay>>) {
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = relay;
    }

    async fn ask<T: DeserializeOwned>(&self, request: InputRequest) -> std::result::Result<T, ErrorData> {
        let (answer, answered) = oneshot::channel();
        let gone = || ErrorData::internal_error("the caller is gone", None);
        self.questions.send(Question { request, answer }).await.map_err(|_| gone())?;
        let value = answered.await.map_err(|_| gone())??;
        serde_json::from_value(value).map_err(|error| ErrorData::invalid_params(format!("the caller's answer cannot be read: {error}"), None))
    }
}

impl Relay for Asking {
    fn elicit(&self, params: ElicitRequestParams) -> BoxFuture<'_, std::result::Result<ElicitResult, ErrorData>> {
        let modes = self.can.elicitation.as_ref();
        let can = match &params {
            ElicitRequestParams::UrlElicitationParams { .. } => modes.is_some_and(|modes| modes.url.is_some()),
            _ => modes.is_some_and(|modes| modes.form.is_some() || modes.url.is_none()),
        };
        if !can {
            return Box::pin(ready(Ok(ElicitResult::new(ElicitationAction::Decline))));
        }
        Box::pin(self.ask(InputRequest::Elicitation(ElicitRequest::new(params))))
    }

    fn sample(&self, params: CreateMessageRequestParams) -> BoxFuture<'_, std::result::Result<CreateMessageResult, ErrorData>> {
        if self.can.sampling.is_none() {
            return Box::pin(ready(Err(ErrorData::method_not_found::<CreateMessageRequestMethod>())));
        }
        Box::pin(self.ask(InputRequest::CreateMessage(CreateMessageRequest::new(params))))
    }

    fn roots(&self) -> BoxFuture<'_, std::result::Result<ListRootsResult, ErrorData>> {
        if self.can.roots.is_none() {
            return Box::pin(ready(Err(ErrorData::method_not_found::<ListRootsRequestMethod>())));
        }
        Box::pin(self.ask(InputRequest::ListRoots(ListRootsRequest::default())))
    }

    fn progress(&self, progress: ProgressNotificationParam) {
        if let Some(relay) = self.present() {
            relay.progress(progress);
        }
    }

    fn log(&self, message: LoggingMessageNotificationParam) {
        if let Some(relay) = self.present() {
            relay.log(message);
        }
    }
}

/// A call that is under way. Dropped, the upstream is told that nobody wants it.
struct Talk {
    owner: String,
    /// What was called, so that nobody goes on with something else.
    called: (String, Option<rmcp::model::JsonObject>),
    asking: Arc<Asking>,
    questions: mpsc::Receiver<Question>,
    open: BTreeMap<String, Question>,
    asked: u32,
    cancel: CancellationToken,
    call: AbortOnDropHandle<Result<CallToolResponse>>,
}

/// The calls that wait.
pub(crate) struct Talks {
    waiting: Arc<Mutex<HashMap<String, Talk>>>,
    world: Machine,
    wait: Duration,
}

impl Default for Talks {
    fn default() -> Self {
        Self { waiting: Arc::default(), world: Machine::new(0), wait: WAIT }
    }
}

impl Talks {
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Talk>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a tool for a caller of the newer era, or goes on with a call that waits for it. Nobody but the owner can.
    pub(crate) async fn call_tool(
        &self,
        upstream: &Arc<Upstream>,
        owner: &str,
        mut params: CallToolRequestParams,
        context: &CallContext,
    ) -> Result<CallToolResponse> {
        let known = params.request_state.as_ref().and_then(|state| {
            let mut waiting = self.waiting();
            let is_owners = waiting.get(state).is_some_and(|talk| talk.owner == owner);
            is_owners.then(|| waiting.remove(state)).flatten()
        });
        let talk = match known {
            Some(mut talk) => {
                if talk.called != (params.name.to_string(), params.arguments.clone()) {
                    let message = "this is not the call that was asked about; it was cancelled";
                    return Err(Error::Refused(ErrorData::invalid_params(message, None)));
                }
                talk.answer(params.input_responses.take().unwrap_or_default());
                talk
            }
            // An upstream of the newer era has its own state, which is the caller's to keep.
            None if !upstream.ready().await?.protocol_version.has_initialize() => return upstream.call_tool_once(params, context).await,
            None if params.request_state.is_some() => {
                let message = "nothing waits under this state any more: it was answered, given up or never given out";
                return Err(Error::Refused(ErrorData::invalid_params(message, None)));
            }
            None => Talk::begin(upstream, owner, params, context),
        };
        self.go_on(talk, context).await
    }

    /// Gives a call of an owner up that waits: its upstream is told that nobody wants it.
    pub(crate) fn leave(&self, owner: &str, state: Option<&str>) {
        let mut waiting = self.waiting();
        if let Some(state) = state.filter(|state| waiting.get(*state).is_some_and(|talk| talk.owner == owner)) {
            waiting.remove(state);
        }
    }

    /// Waits for the call's end or its next question.
    async fn go_on(&self, mut talk: Talk, context: &CallContext) -> Result<CallToolResponse> {
        talk.asking.is_present(context.relay.clone());
        // Questions that were not answered are asked again.
        if talk.open.is_empty() {
            tokio::select! {
                biased;
                done = &mut talk.call => return done.unwrap_or_else(|error| Err(Error::NotSent { name: talk.owner.clone(), why: error.to_string() })),
                () = context.cancel.cancelled() => {
                    talk.cancel.cancel();
                    return talk.call.await.unwrap_or_else(|error| Err(Error::NotSent { name: talk.owner.clone(), why: error.to_string() }));
                }
                Some(question) = talk.questions.recv() => talk.note(question),
            }
            tokio::time::sleep(GATHER).await;
            while let Ok(question) = talk.questions.try_recv() {
                talk.note(question);
            }
        }
        talk.asking.is_present(None);
        let requests: InputRequests = talk.open.iter().map(|(key, question)| (key.clone(), question.request.clone())).collect();
        let state = self.keep(talk)?;
        Ok(CallToolResponse::InputRequired(InputRequiredResult::new(Some(requests), Some(state))))
    }

    /// Keeps a call until its caller comes back, or does not.
    fn keep(&self, talk: Talk) -> Result<String> {
        let world: &dyn World = &self.world;
        let state = world.opaque_id();
        {
            let mut waiting = self.waiting();
            if waiting.len() >= TALKS_MAX {
                return Err(Error::Busy { name: "the gateway".to_owned(), most: TALKS_MAX });
            }
            waiting.insert(state.clone(), talk);
        }
        let (waiting, key, wait) = (Arc::downgrade(&self.waiting), state.clone(), self.wait);
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            if let Some(waiting) = waiting.upgrade() {
                waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            }
        });
        Ok(state)
    }

    #[cfg(test)]
    pub(super) fn with_wait(wait: Duration) -> Self {
        Self { wait, ..Self::default() }
    }
}

impl Talk {
    fn begin(upstream: &Arc<Upstream>, owner: &str, params: CallToolRequestParams, context: &CallContext) -> Self {
        let (sender, questions) = mpsc::channel(1);
        let can = context.capabilities.clone().unwrap_or_default();
        let asking = Arc::new(Asking { questions: sender, can, present: Mutex::default() });
        asking.is_present(context.relay.clone());
        let called = (params.name.to_string(), params.arguments.clone());
        let cancel = CancellationToken::new();
        let relay: Arc<dyn Relay> = Arc::<Asking>::clone(&asking);
        let context = CallContext { relay: Some(relay), cancel: cancel.clone(), ..context.clone() };
        let upstream = Arc::clone(upstream);
        let call = tokio::spawn(async move { upstream.call_tool_once(params, &context).await });
        Self { owner: owner.to_owned(), called, asking, questions, open: BTreeMap::new(), asked: 0, cancel, call: AbortOnDropHandle::new(call) }
    }

    fn note(&mut self, question: Question) {
        self.asked += 1;
        self.open.insert(format!("question-{}", self.asked), question);
    }

    /// Hands the caller's answers to the upstream.
    fn answer(&mut self, answers: InputResponses) {
        for (key, value) in answers {
            if let Some(question) = self.open.remove(&key) {
                // The upstream may have given up meanwhile; then the call says so.
                let _ = question.answer.send(Ok(value));
            }
        }
    }
}
