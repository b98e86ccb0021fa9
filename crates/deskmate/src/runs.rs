//! The programs of runs that are under way on this server, and the calls that each makes with its token.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use deskmate_core::call::Credential;
use deskmate_core::{Code, Error, Result};
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How tokens of runs begin.
const PREFIX: &str = "dmr_";

/// Programs of runs at once on one server: each may use a good part of the machine.
const AT_ONCE: usize = 16;

/// The tokens of programs that run here, by their hashes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Runs {
    tokens: Arc<Mutex<HashMap<[u8; 32], Arc<Meter>>>>,
    places: Arc<Semaphore>,
}

impl Default for Runs {
    fn default() -> Self {
        Self { tokens: Arc::default(), places: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

/// What one run has used of its calls, and whether one of them was refused because a budget is used up.
pub(crate) struct Meter {
    calls: AtomicI64,
    most: i64,
    used_up: OnceLock<String>,
}

impl Meter {
    /// How many calls were made, those that were refused for it not counted.
    pub(crate) fn calls(&self) -> i64 {
        self.calls.load(Ordering::Relaxed).min(self.most)
    }

    /// Which budget is used up, as the call was told that was refused for it.
    pub(crate) fn used_up(&self) -> Option<&str> {
        self.used_up.get().map(String::as_str)
    }

    fn end(&self, used_up: &Error) {
        // What was used up first ended it.
        drop(self.used_up.set(used_up.message.clone()));
    }
}

/// A token counts for as long as this is kept.
pub(crate) struct Counted {
    runs: Runs,
    hash: [u8; 32],
    pub(crate) meter: Arc<Meter>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.runs.tokens.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.hash);
    }
}

impl Runs {
    /// A place for one program, if one is free.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Begins to count what is called with a token.
    pub(crate) fn begin(&self, token: &str, calls: i64, most: u32) -> Counted {
        let (hash, meter) =
            (Sha256::digest(token.as_bytes()).into(), Arc::new(Meter { calls: AtomicI64::new(calls), most: i64::from(most), used_up: OnceLock::new() }));
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).insert(hash, Arc::clone(&meter));
        Counted { runs: self.clone(), hash, meter }
    }

    /// Whether a credential is that of a run's program.
    pub(crate) fn are_of(credential: &Credential) -> bool {
        secret_of(credential).is_some()
    }

    /// Counts a call, if it is of a run's program. One that runs elsewhere, or no more, is refused: nobody would count it.
    pub(crate) fn count(&self, credential: &Credential) -> Result<()> {
        let Some(secret) = secret_of(credential) else { return Ok(()) };
        let Some(meter) = self.meter(secret) else {
            return Err(Error::new(Code::Unauthenticated, "this run has ended, or is under way on another server"));
        };
        if meter.calls.fetch_add(1, Ordering::Relaxed) >= meter.most {
            let used_up = Error::used_up(format!("its budget of {} calls is used up", meter.most));
            meter.end(&used_up);
            return Err(used_up);
        }
        Ok(())
    }

    /// Notes that a call was refused because a budget of its run is used up: that ends the run.
    pub(crate) fn refused(&self, credential: &Credential, error: &Error) {
        if error.used_up
            && let Some(meter) = secret_of(credential).and_then(|secret| self.meter(secret))
        {
            meter.end(error);
        }
    }

    fn meter(&self, secret: &str) -> Option<Arc<Meter>> {
        let hash: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned()
    }
}

/// The token of a run.
fn secret_of(credential: &Credential) -> Option<&str> {
    let (Credential::Secret { secret, .. } | Credential::Signed { secret, .. }) = credential else { return None };
    Some(secret.trim()).filter(|secret| secret.starts_with(PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Credential {
        Credential::Secret { secret: text.to_owned(), proved: false }
    }

    #[test]
    fn there_are_so_many_places_and_one_that_is_left_is_free() {
        let runs = Runs::default();
        let mut taken: Vec<_> = (0..AT_ONCE).map(|_| runs.place().unwrap()).collect();
        assert!(runs.clone().place().is_none());
        taken.pop();
        assert!(runs.place().is_some());
    }

    #[test]
    fn calls_are_counted_until_they_are_used_up_and_only_while_the_run_is_here() {
        let runs = Runs::default();
        assert!(runs.count(&secret("dma_x")).is_ok(), "others are not counted");
        assert!(Runs::are_of(&secret("dmr_x")) && !Runs::are_of(&secret("dma_dmr_x")) && !Runs::are_of(&Credential::Nobody));
        assert_eq!(runs.count(&secret("dmr_x")).unwrap_err().code, Code::Unauthenticated);
        let counted = runs.begin("dmr_x", 1, 2);
        assert!(runs.count(&secret("dmr_x")).is_ok() && counted.meter.used_up().is_none());
        assert_eq!(runs.count(&secret(" dmr_x")).unwrap_err().code, Code::Forbidden);
        assert_eq!((counted.meter.used_up(), counted.meter.calls()), (Some("its budget of 2 calls is used up"), 2));
        runs.refused(&secret("dmr_x"), &Error::used_up("its budget for cost is used up"));
        assert_eq!(counted.meter.used_up(), Some("its budget of 2 calls is used up"), "what was used up first ended it");
        drop(counted);
        assert_eq!(runs.count(&secret("dmr_x")).unwrap_err().code, Code::Unauthenticated);
    }
}
