//! Refused calls are told to the record: each one at first, and beyond a rate only their number, so that nobody can
//! fill the disk by being refused.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use deskmate_core::call::{Call, Credential, Desk, Surface};
use deskmate_core::desk::REFUSED;
use deskmate_core::limits::REFUSALS_PER_MINUTE;
use deskmate_core::record::Event;
use deskmate_core::{Code, Error, hex};
use sha2::{Digest, Sha256};

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
        if !matches!(error.code, Code::Forbidden | Code::Unauthenticated) {
            return;
        }
        let caller = caller(&call.credential);
        let Some(untold) = self.count(&caller, desk.world.now()) else { return };
        let (operation, code) = (call.operation.clone(), error.code);
        let told = desk
            .act(Surface::System, move |cx| {
                let event = Event::new(REFUSED, format!("caller:{caller}"));
                let known = plain(&operation);
                cx.emit(event.fact("operation", known).fact("code", serde_json::json!(code)).fact("not_told_before", untold))
            })
            .await;
        if let Err(error) = told {
            tracing::warn!(%error, "a refusal could not be told to the record");
        }
    }

    /// How many refusals went untold before this one, or `None` if this one is only counted.
    fn count(&self, caller: &str, now: i64) -> Option<u32> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let name = if windows.len() < CALLERS_MAX || windows.contains_key(caller) { caller } else { "others" };
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

/// Facts are never erased, so a name that somebody made up does not become one.
fn plain(operation: &str) -> String {
    operation.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(60).collect()
}

/// A caller by what it brought. A secret is shown by a short digest, never by itself.
fn caller(credential: &Credential) -> String {
    match credential {
        Credential::Secret { secret, .. } => {
            let digest = hex(&Sha256::digest(secret.as_bytes()));
            format!("credential-{}", digest.get(..12).unwrap_or_default())
        }
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
}
