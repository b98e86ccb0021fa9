//! What an operation says happened, and the bytes that are sealed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::call::{Actor, Signed, Surface};
use crate::redact::{Found, RedactedValue};
use crate::{Result, World, canonical_value, hex};

/// A kind of event, declared once with the sentence that the catalogue shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its stable name, such as `message.sent`.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
}

/// The fact that counts what was taken out, by kind.
pub(crate) const REDACTED: &str = "redacted";

/// An event as an operation tells it.
#[derive(Clone, Debug)]
pub struct Event {
    kind: Kind,
    subject: String,
    facts: Map<String, Value>,
    payload: Option<Value>,
    audience: Vec<String>,
    /// What the browser of who acted signed. It is no fact, because rows are compared with those.
    pub(crate) signed: Option<Signed>,
}

impl Event {
    /// Something of a kind happened to a subject such as `message:ID`.
    pub fn new(kind: Kind, subject: impl Into<String>) -> Self {
        Self { kind, subject: subject.into(), facts: Map::new(), payload: None, audience: Vec::new(), signed: None }
    }

    /// Adds a fact: an id, a kind or a number. Facts are never erased, so they hold no text that somebody wrote.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// Takes all facts at once.
    #[must_use]
    pub fn facts(mut self, facts: Map<String, Value>) -> Self {
        self.facts = facts;
        self
    }

    /// Adds what somebody wrote. It is committed to, kept beside the event, and can be erased.
    #[must_use]
    pub fn payload(mut self, payload: Value) -> Self {
        self.payload = Some(payload);
        self
    }

    /// Adds how much of each kind was taken out of what is kept, as a fact; nothing, where nothing was.
    #[must_use]
    pub(crate) fn taken_out(mut self, found: &Found) -> Self {
        if !found.is_empty() {
            let mut all = Found::of_fact(self.facts.get(REDACTED));
            all.extend(found);
            self.facts.insert(REDACTED.to_owned(), serde_json::json!(all));
        }
        self
    }

    /// Its kind's name.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind.name
    }

    /// The words that go with it.
    pub(crate) fn written(&self) -> Option<&Value> {
        self.payload.as_ref()
    }

    /// The same with its payload cleaned, and how much was taken out as a fact.
    #[must_use]
    pub(crate) fn cleaned(mut self, clean: impl FnOnce(Value) -> RedactedValue) -> Self {
        let Some(clean) = self.payload.take().map(clean) else { return self };
        self.payload = Some(clean.value);
        self.taken_out(&clean.found)
    }

    /// Names the actors, besides the one who acts, who may read this event and are woken by it.
    #[must_use]
    pub fn audience<I: IntoIterator<Item = S>, S: Into<String>>(mut self, actors: I) -> Self {
        self.audience.extend(actors.into_iter().map(Into::into));
        self
    }

    /// Turns it into the bytes that are sealed.
    pub(crate) fn entry(self, actor: &Actor, surface: Surface, now: i64, world: &dyn World) -> Result<Entry> {
        let id = world.new_id();
        let (salt, payload) = match &self.payload {
            None => (None, None),
            Some(payload) => (Some(world.secret()), Some(canonical_value("payload", payload)?)),
        };
        let committed = match (&salt, &payload) {
            (Some(salt), Some(payload)) => Value::from(hex(&commitment(salt, payload))),
            _ => Value::Null,
        };
        // The form of [`Body`], without a copy of the facts.
        let mut body = object([
            ("v", Value::from(1)),
            ("id", Value::from(id.as_str())),
            ("at", Value::from(now)),
            ("actor", object([("kind", Value::from(actor.kind.name())), ("id", Value::from(actor.id.as_str())), ("verified", Value::from(actor.verified))])),
            ("surface", Value::from(surface.name())),
            ("kind", Value::from(self.kind.name)),
            ("subject", Value::from(self.subject.as_str())),
            ("audience", Value::from(self.audience)),
            ("facts", Value::Object(self.facts)),
            ("payload", committed),
        ]);
        if let (Some(signed), Some(body)) = (&self.signed, body.as_object_mut()) {
            body.insert("signed".to_owned(), serde_json::json!(signed));
        }
        let body = canonical_value("event", &body)?;
        let (actor_kind, actor, kind) = (actor.kind.name().to_owned(), actor.id.clone(), self.kind.name.to_owned());
        Ok(Entry { id, at: now, actor_kind, actor, kind, subject: self.subject, body, salt: salt.map(|salt| salt.to_vec()), payload })
    }
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// An event ready to be sealed.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) id: String,
    pub(crate) at: i64,
    pub(crate) actor_kind: String,
    pub(crate) actor: String,
    pub(crate) kind: String,
    pub(crate) subject: String,
    pub(crate) body: String,
    pub(crate) salt: Option<Vec<u8>>,
    pub(crate) payload: Option<String>,
}

/// The sealed part of an event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// The version of this form.
    pub v: u32,
    /// The event's id.
    pub id: String,
    /// Microseconds since 1970 in UTC.
    pub at: i64,
    /// Who acted.
    pub actor: BodyActor,
    /// Over which surface.
    pub surface: String,
    /// What happened.
    pub kind: String,
    /// To what.
    pub subject: String,
    /// Who may read it besides the actor.
    pub audience: Vec<String>,
    /// Ids, kinds and numbers.
    pub facts: BTreeMap<String, Value>,
    /// The commitment to the payload, if there is one.
    pub payload: Option<String>,
    /// What the browser of who acted signed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
}

/// Who acted, as sealed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyActor {
    /// `person`, `agent` or `system`.
    pub kind: String,
    /// The id within that kind.
    pub id: String,
    /// Whether a credential proved it.
    pub verified: bool,
}

/// The commitment to a payload: SHA-256 over a salt of 32 bytes and the canonical text.
pub(crate) fn commitment(salt: &[u8], payload: &str) -> [u8; 32] {
    Sha256::new().chain_update(salt).chain_update(payload).finalize().into()
}
