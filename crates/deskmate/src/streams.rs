//! How many live streams are open with each credential. A stream holds a connection and reads the record whenever it
//! grows, so nobody may open any number of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use deskmate_core::call::Actor;
use deskmate_core::limits::{STREAMS_MAX, UNVERIFIED_STREAMS_MAX};
use deskmate_core::{Error, Result};

/// When it is worth trying again.
const RETRY_MS: u64 = 5_000;
/// What all share who only say who they are.
const UNVERIFIED: &str = "unverified";

/// The streams that are open. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Streams {
    open: Arc<Mutex<HashMap<String, usize>>>,
}

impl Streams {
    /// A place for one more stream; without an actor, of somebody whom the desk does not know.
    pub(crate) fn take(&self, actor: Option<&Actor>) -> Result<Place> {
        let counted = match actor {
            Some(actor) if actor.verified => vec![(format!("credential {}", actor.credential.as_ref().unwrap_or(&actor.id)), STREAMS_MAX)],
            Some(actor) => vec![(format!("name {}", actor.id), STREAMS_MAX), (UNVERIFIED.to_owned(), UNVERIFIED_STREAMS_MAX)],
            None => vec![(UNVERIFIED.to_owned(), UNVERIFIED_STREAMS_MAX)],
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((who, most)) = counted.iter().find(|(who, most)| open.get(who).is_some_and(|count| count >= most)) {
            let whose = if who == UNVERIFIED { "callers whom no credential proves" } else { "this caller" };
            let error = Error::limited(format!("{whose} already follow{} the desk in {most} streams", if who == UNVERIFIED { "" } else { "s" }), RETRY_MS);
            return Err(error.hint("one stream tells of everything: read one in several places, and close those that nobody reads"));
        }
        let counted: Vec<String> = counted.into_iter().map(|(who, _)| who).collect();
        for who in &counted {
            *open.entry(who.clone()).or_default() += 1;
        }
        Ok(Place { streams: self.clone(), counted })
    }
}

/// A stream's place, given back with this value.
pub(crate) struct Place {
    streams: Streams,
    counted: Vec<String>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        for who in &self.counted {
            if let Some(count) = open.get_mut(who) {
                *count -= 1;
                if *count == 0 {
                    open.remove(who);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(streams: &Streams, actor: Option<&Actor>) -> Option<deskmate_core::Code> {
        streams.take(actor).err().map(|error| error.code)
    }

    #[test]
    fn every_credential_has_places_of_its_own_and_gets_them_back() {
        let streams = Streams::default();
        let with = |credential: &str| Actor { credential: Some(credential.to_owned()), ..Actor::agent("code", true) };
        let mut held: Vec<_> = (0..STREAMS_MAX).map(|_| streams.take(Some(&with("one"))).expect("a place")).collect();
        assert_eq!(code(&streams, Some(&with("one"))), Some(deskmate_core::Code::Limited));
        assert_eq!(code(&streams, Some(&with("two"))), None, "another token of the same agent");
        held.pop();
        assert_eq!(code(&streams, Some(&with("one"))), None);
        drop(held);
        assert!(streams.open.lock().unwrap().is_empty(), "nothing is kept of who is gone");
    }

    #[test]
    fn made_up_names_share_a_bound() {
        let streams = Streams::default();
        let held: Vec<_> = (0..UNVERIFIED_STREAMS_MAX).map(|n| streams.take(Some(&Actor::agent(format!("a{n}"), false))).expect("a place")).collect();
        assert_eq!(code(&streams, Some(&Actor::agent("another", false))), Some(deskmate_core::Code::Limited));
        assert_eq!(code(&streams, None), Some(deskmate_core::Code::Limited));
        assert_eq!(code(&streams, Some(&Actor::agent("known", true))), None, "who is known does not share it");
        drop(held);
        let held: Vec<_> = (0..STREAMS_MAX).map(|_| streams.take(Some(&Actor::agent("a", false))).expect("a place")).collect();
        assert_eq!(code(&streams, Some(&Actor::agent("a", false))), Some(deskmate_core::Code::Limited), "a name has no more than a credential");
        assert_eq!(code(&streams, Some(&Actor::agent("b", false))), None);
        drop(held);
    }
}
