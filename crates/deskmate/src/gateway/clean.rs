//! Taking secrets out of whatever a server behind the desk says: answers, questions, progress and messages. Those that the mount
//! was given are known by their values, others by their form.

#![expect(deprecated, reason = "servers of the older era still ask for samples and roots, and send log messages")]

use std::sync::{Arc, PoisonError};

use deskmate_core::gateway::Mount;
use deskmate_core::redact::{Kind, Known, Redactor};
use futures_util::future::{BoxFuture, ready};
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ErrorData, InputRequiredResult, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Gateway;
use super::back::ORIGIN;
use crate::upstream::{CallContext, Error, Relay, Spec};

/// What takes secrets out of what one server says.
pub(crate) struct Cleaner {
    hidden: Vec<String>,
    redact: Vec<String>,
    /// `None` where what must be looked for cannot be.
    redactor: Option<Redactor>,
}

impl Cleaner {
    pub(super) fn new(mount: &Mount, spec: &Spec) -> Self {
        let redactor = Redactor::named(mount.redact.iter().map(String::as_str)).unwrap_or_else(|_| Redactor::all());
        let redactor = if spec.hidden.is_empty() {
            Some(redactor)
        } else {
            Known::new(spec.hidden.iter().map(String::as_str)).ok().map(|known| redactor.knowing(Arc::new(known)))
        };
        Self { hidden: spec.hidden.clone(), redact: mount.redact.clone(), redactor }
    }

    /// Without secrets. `None`: what cannot even be looked through cannot be passed on.
    pub(super) fn value(&self, said: Value) -> Option<Value> {
        self.redactor.as_ref().map(|redactor| redactor.own_value(said).value)
    }

    /// What a server says of itself and of its tools. Only texts that hold a secret that the mount was given are others: what people
    /// know of a tool must not change with what is taken out of answers.
    pub(super) fn offered(&self, said: Value) -> Option<Value> {
        let redactor = self.redactor.as_ref()?;
        if self.hidden.is_empty() {
            return Some(said);
        }
        let text = |said: String| {
            let cleaned = redactor.text(&said);
            let holds = cleaned.found.of(Kind::Known) > 0 || self.hidden.iter().any(|secret| said.contains(secret.as_str()));
            if holds { cleaned.text } else { said }
        };
        Some(in_texts(said, &text))
    }

    /// The same of whatever the protocol knows.
    pub(crate) fn clean<T: Serialize + DeserializeOwned>(&self, said: T) -> Result<T, ErrorData> {
        let withheld = || ErrorData::internal_error("withheld: it may hold a secret", None);
        let cleaned = serde_json::to_value(said).ok().and_then(|said| self.value(said)).ok_or_else(withheld)?;
        serde_json::from_value(cleaned).map_err(|_| withheld())
    }

    /// The same of something that was read, with where it comes from.
    pub(crate) fn read<T: Serialize + DeserializeOwned>(&self, mount: &str, said: T) -> Result<T, ErrorData> {
        let mut said = serde_json::to_value(said).unwrap_or_default();
        if let Some(meta) = said.as_object_mut().map(|fields| fields.entry("_meta").or_insert_with(|| json!({}))).and_then(Value::as_object_mut) {
            meta.insert(ORIGIN.to_owned(), json!({ "mount": mount, "untrusted": true }));
        }
        self.clean(said).and_then(|said| serde_json::from_value(said).map_err(|_| ErrorData::internal_error("it cannot be passed on", None)))
    }

    /// What a server asks for. Its state goes back to it as it is, and is nothing that people or models read.
    pub(crate) fn question(&self, mut asked: InputRequiredResult) -> Result<InputRequiredResult, ErrorData> {
        let state = asked.request_state.take();
        let mut asked = self.clean(asked)?;
        asked.request_state = state;
        Ok(asked)
    }

    /// Why something did not work.
    pub(crate) fn fault(&self, error: &Error) -> ErrorData {
        self.clean(error.to_mcp()).unwrap_or_else(|withheld| withheld)
    }

    /// A call's context in which everything that is passed on was looked through.
    pub(crate) fn context(self: &Arc<Self>, context: &CallContext) -> CallContext {
        let relay = context.relay.clone().map(|to| Arc::new(Clean { to, cleaner: Arc::clone(self) }) as Arc<dyn Relay>);
        CallContext { relay, ..context.clone() }
    }
}

/// Another text for each one in a value, names of fields included.
fn in_texts(value: Value, text: &impl Fn(String) -> String) -> Value {
    match value {
        Value::String(said) => Value::String(text(said)),
        Value::Array(list) => list.into_iter().map(|one| in_texts(one, text)).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, one)| (text(name), in_texts(one, text))).collect::<Map<_, _>>().into(),
        other => other,
    }
}

impl Gateway {
    /// What takes secrets out of what a mount says. It is made anew when its secrets or its rules are others.
    pub(super) fn cleaner(&self, mount: &Mount, spec: &Spec) -> Arc<Cleaner> {
        let mut cleaners = self.0.cleaners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cleaners.get(&mount.name).filter(|known| known.hidden == spec.hidden && known.redact == mount.redact) {
            return Arc::clone(known);
        }
        let made = Arc::new(Cleaner::new(mount, spec));
        cleaners.insert(mount.name.clone(), Arc::clone(&made));
        made
    }
}

/// The way to a caller, on which everything is looked through.
struct Clean {
    to: Arc<dyn Relay>,
    cleaner: Arc<Cleaner>,
}

impl Relay for Clean {
    fn elicit(&self, params: ElicitRequestParams) -> BoxFuture<'_, Result<ElicitResult, ErrorData>> {
        match self.cleaner.clean(params) {
            Ok(params) => self.to.elicit(params),
            Err(withheld) => Box::pin(ready(Err(withheld))),
        }
    }

    fn sample(&self, params: CreateMessageRequestParams) -> BoxFuture<'_, Result<CreateMessageResult, ErrorData>> {
        match self.cleaner.clean(params) {
            Ok(params) => self.to.sample(params),
            Err(withheld) => Box::pin(ready(Err(withheld))),
        }
    }

    fn roots(&self) -> BoxFuture<'_, Result<ListRootsResult, ErrorData>> {
        self.to.roots()
    }

    fn progress(&self, progress: ProgressNotificationParam) {
        if let Ok(progress) = self.cleaner.clean(progress) {
            self.to.progress(progress);
        }
    }

    fn log(&self, message: LoggingMessageNotificationParam) {
        if let Ok(message) = self.cleaner.clean(message) {
            self.to.log(message);
        }
    }
}
