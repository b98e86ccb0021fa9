//! Refused calls are told to the record: each one at first, and beyond a rate only their number, so that nobody can
//! fill the disk by being refused.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use deskmate_core::call::{Call, Credential, Desk, Surface};
use deskmate_core::desk::REFUSED;
use deskmate_core::limits::{NAME_CHARS_MAX, REFUSALS_PER_MINUTE};
use deskmate_core::record::Event;
use deskmate_core::{Code, Error, digest, hex};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// What is asked of a mounted server besides calls of its tools, as refusals name it.
pub(crate) const READ: &str = "gateway_read";

const MINUTE: i64 = 60_000_000;
/// Callers that are told apart; beyond that they share one count.
const CALLERS_MAX: usize = 1_000;

/// How often each caller was refused lately.
#[derive(Default)]
pub(crate) struct Refusals {
    windows: Mutex<HashMap<String, Window>>,
}

#[derive(Clone, Copy)]
struct Window {
    since: i64,
    told: u32,
    untold: u32,
}

impl Refusals {
    /// Notes a refusal and tells the record if it is still worth an event of its own.
    pub(crate) async fn note(&self, desk: &Desk, call: &Call, error: &Error) {
        // What is asked of another server is always traced, also where nothing was decided about it.
        let is_passage = ["gateway_call", READ].contains(&call.operation.as_str()) && error.code != Code::Internal;
        if !is_passage && !matches!(error.code, Code::Forbidden | Code::Unauthenticated) {
            return;
        }
        let Some(untold) = self.count(&window(&call.credential, error.code), desk.world.now()) else { return };
        let mut facts = json!({ "operation": plain(&call.operation), "code": error.code });
        let mut payload = Value::Null;
        if let (true, Some(facts)) = (is_passage, facts.as_object_mut()) {
            let named = |field: &str| call.input.get(field).and_then(Value::as_str).map(|name| name.chars().take(NAME_CHARS_MAX).collect::<String>());
            facts.insert("digest".to_owned(), json!(digest(&call.input).ok().map(|digest| hex(&digest))));
            let mut said: Map<String, Value> =
                ["mount", "tool", "kind", "name"].iter().filter_map(|field| Some(((*field).to_owned(), named(field)?.into()))).collect();
            said.insert("why".to_owned(), error.message.clone().into());
            payload = Value::Object(said);
        }
        tell(desk, caller(&call.credential), facts, payload, untold).await;
    }

    /// Notes a call that could not be read, by the digest of what came. `known` says that the caller's credential was accepted.
    pub(crate) async fn malformed(&self, desk: &Desk, credential: &Credential, digest: &[u8], known: bool) {
        let code = if known { Code::Forbidden } else { Code::Unauthenticated };
        let Some(untold) = self.count(&window(credential, code), desk.world.now()) else { return };
        let facts = json!({ "operation": "tools_call", "code": Code::Invalid, "digest": hex(digest) });
        let why = "it is no call that can be read: in a batch, without an id, or with arguments that are no object";
        tell(desk, caller(credential), facts, json!({ "why": why }), untold).await;
    }

    /// Tells how many refusals of minutes that are over were not told, and forgets those minutes.
    pub(crate) async fn sweep(&self, desk: &Desk) {
        for (name, untold) in self.over(desk.world.now()) {
            tell(desk, name, json!({}), Value::Null, untold).await;
        }
    }

    fn over(&self, now: i64) -> Vec<(String, u32)> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let over = windows.extract_if(|_, window| now - window.since >= MINUTE);
        over.filter(|(_, window)| window.untold > 0).map(|(name, window)| (name, window.untold)).collect()
    }

    /// How many refusals went untold before this one, or `None` if this one is only counted.
    fn count(&self, name: &str, now: i64) -> Option<u32> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let name = if windows.len() < CALLERS_MAX || windows.contains_key(name) { name } else { "others" };
        let window = windows.entry(name.to_owned()).or_insert(Window { since: now, told: 0, untold: 0 });
        if now - window.since >= MINUTE {
            (window.since, window.told) = (now, 0);
        }
        if window.told >= REFUSALS_PER_MINUTE {
            window.untold += 1;
            return None;
        }
        window.told += 1;
        Some(std::mem::take(&mut window.untold))
    }
}

async fn tell(desk: &Desk, caller: String, facts: Value, payload: Value, untold: u32) {
    let told = desk
        .act(Surface::System, move |cx| {
            let mut event = Event::new(REFUSED, format!("caller:{caller}")).fact("not_told_before", untold);
            for (name, value) in facts.as_object().into_iter().flatten() {
                event = event.fact(name, value.clone());
            }
            if !payload.is_null() {
                event = event.payload(payload.clone());
            }
            cx.emit(event)
        })
        .await;
    if let Err(error) = told {
        tracing::warn!(%error, "a refusal could not be told to the record");
    }
}

/// With whom a caller shares its count: somebody who is known has one of their own; what somebody made up, a token or a
/// name, has not, because there is no end to those.
fn window(credential: &Credential, code: Code) -> String {
    match credential {
        Credential::Secret { .. } | Credential::Signed { .. } if code == Code::Forbidden => caller(credential),
        Credential::Kept(_) | Credential::Run(_) => caller(credential),
        Credential::Secret { .. } | Credential::Signed { .. } => "unknown-credentials".to_owned(),
        Credential::Named(_) => "names".to_owned(),
        Credential::Nobody | Credential::Local | Credential::System => "nobody".to_owned(),
    }
}

/// Facts are never erased, so a name that somebody made up does not become one.
fn plain(operation: &str) -> String {
    operation.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(60).collect()
}

/// A caller by what it brought. A secret is shown by a short digest, never by itself.
pub(crate) fn caller(credential: &Credential) -> String {
    match credential {
        Credential::Secret { secret, .. } | Credential::Signed { secret, .. } => {
            let digest = hex(&Sha256::digest(secret.as_bytes()));
            format!("credential-{}", digest.get(..12).unwrap_or_default())
        }
        Credential::Kept(id) => format!("credential-{id}"),
        Credential::Run(id) => format!("run-{id}"),
        Credential::Named(Some(name)) => format!("name-{}", plain(name)),
        Credential::Named(None) | Credential::Nobody | Credential::Local => "nobody".to_owned(),
        Credential::System => "desk".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_becomes_a_number() {
        let refusals = Refusals::default();
        let told = (0..1_000).filter(|at| refusals.count("a", *at).is_some()).count();
        assert_eq!(told, REFUSALS_PER_MINUTE as usize);
        assert_eq!(refusals.count("b", 0), Some(0), "another caller has its own count");
        assert_eq!(refusals.count("a", MINUTE), Some(1_000 - REFUSALS_PER_MINUTE), "the next minute tells how many were not told");
    }

    #[test]
    fn invented_tokens_and_names_share_a_count() {
        let secret = |n: u32| Credential::Secret { secret: format!("dma_{n}"), proved: false };
        assert_eq!(window(&secret(1), Code::Unauthenticated), window(&secret(2), Code::Unauthenticated));
        assert_ne!(window(&secret(1), Code::Forbidden), window(&secret(2), Code::Forbidden), "these are known");
        let named = |name: &str| Credential::Named(Some(name.to_owned()));
        assert_eq!(window(&named("a"), Code::Forbidden), window(&named("b"), Code::Forbidden));
    }

    #[test]
    fn minutes_that_are_over_are_told_and_forgotten() {
        let refusals = Refusals::default();
        for _ in 0..REFUSALS_PER_MINUTE + 7 {
            refusals.count("a", 0);
        }
        refusals.count("b", 0);
        assert_eq!(refusals.over(MINUTE - 1), Vec::new());
        assert_eq!(refusals.over(MINUTE), vec![("a".to_owned(), 7)]);
        assert!(refusals.windows.lock().unwrap().is_empty());
    }
}
