//! How many live streams are open, and how many calls wait, with each credential. Both hold a connection, and a stream reads the
//! record whenever it grows, so nobody may have any number of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use deskmate_core::call::Actor;
use deskmate_core::limits::{STREAMS_MAX, UNVERIFIED_STREAMS_MAX, UNVERIFIED_WAITS_MAX, WAITS_MAX};
use deskmate_core::{Error, Result};

/// When it is worth trying again.
const RETRY_MS: u64 = 5_000;
/// What all share who only say who they are.
const UNVERIFIED: &str = "unverified";

/// What places are for.
#[derive(Debug)]
struct Use {
    /// How many there are for one credential, and for all together whom none proves.
    each: usize,
    unverified: usize,
    /// What whoever has taken them all does, and what to do about it.
    says: &'static str,
    hint: &'static str,
}

const STREAMS: Use = Use {
    each: STREAMS_MAX,
    unverified: UNVERIFIED_STREAMS_MAX,
    says: "streams are open already",
    hint: "one stream tells of everything: read one in several places, and close those that nobody reads",
};

const WAITS: Use = Use {
    each: WAITS_MAX,
    unverified: UNVERIFIED_WAITS_MAX,
    says: "calls wait already",
    hint: "let some of them end, or ask with timeout_seconds 0, which never waits",
};

/// The places that are taken. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Places {
    of: &'static Use,
    taken: Arc<Mutex<HashMap<String, usize>>>,
}

impl Places {
    /// Of live streams and subscriptions.
    pub(crate) fn of_streams() -> Self {
        Self { of: &STREAMS, taken: Arc::default() }
    }

    /// Of calls that wait until something happens.
    pub(crate) fn of_waits() -> Self {
        Self { of: &WAITS, taken: Arc::default() }
    }

    /// One more place; without an actor, of somebody whom the desk does not know.
    pub(crate) fn take(&self, actor: Option<&Actor>) -> Result<Place> {
        let Use { each, unverified, says, hint } = *self.of;
        let counted = match actor {
            Some(actor) if actor.verified => vec![(format!("credential {}", actor.credential.as_ref().unwrap_or(&actor.id)), each)],
            Some(actor) => vec![(format!("name {}", actor.id), each), (UNVERIFIED.to_owned(), unverified)],
            None => vec![(UNVERIFIED.to_owned(), unverified)],
        };
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((who, most)) = counted.iter().find(|(who, most)| taken.get(who).is_some_and(|count| count >= most)) {
            let whose = if who == UNVERIFIED { "callers whom no credential proves" } else { "this caller" };
            return Err(Error::limited(format!("{most} {says} of {whose}"), RETRY_MS).hint(hint));
        }
        let counted: Vec<String> = counted.into_iter().map(|(who, _)| who).collect();
        for who in &counted {
            *taken.entry(who.clone()).or_default() += 1;
        }
        Ok(Place { places: self.clone(), counted })
    }
}

/// A place, given back with this value.
pub(crate) struct Place {
    places: Places,
    counted: Vec<String>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for who in &self.counted {
            if let Some(count) = taken.get_mut(who) {
                *count -= 1;
                if *count == 0 {
                    taken.remove(who);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(streams: &Places, actor: Option<&Actor>) -> Option<deskmate_core::Code> {
        streams.take(actor).err().map(|error| error.code)
    }

    #[test]
    fn every_credential_has_places_of_its_own_and_gets_them_back() {
        let streams = Places::of_streams();
        let with = |credential: &str| Actor { credential: Some(credential.to_owned()), ..Actor::agent("code", true) };
        let mut held: Vec<_> = (0..STREAMS_MAX).map(|_| streams.take(Some(&with("one"))).expect("a place")).collect();
        assert_eq!(code(&streams, Some(&with("one"))), Some(deskmate_core::Code::Limited));
        assert_eq!(code(&streams, Some(&with("two"))), None, "another token of the same agent");
        held.pop();
        assert_eq!(code(&streams, Some(&with("one"))), None);
        drop(held);
        assert!(streams.taken.lock().unwrap().is_empty(), "nothing is kept of who is gone");
    }

    #[test]
    fn made_up_names_share_a_bound() {
        let streams = Places::of_streams();
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
