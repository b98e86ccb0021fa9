//! The machine's clock and randomness, as the core is given them.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use deskmate_core::World;

/// Time that never goes back: it advances with the machine's monotonic clock and follows the wall clock only forward.
pub(crate) struct Machine {
    started: Instant,
    base: i64,
    ahead: AtomicI64,
}

impl Machine {
    /// A clock that is nowhere before `floor`, the time of the newest event: the wall clock may have been set back
    /// while no server ran.
    pub(crate) fn new(floor: i64) -> Self {
        Self { started: Instant::now(), base: wall().max(floor), ahead: AtomicI64::new(0) }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one reader of the wall clock")]
fn wall() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl World for Machine {
    fn now(&self) -> i64 {
        let elapsed = i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX);
        let steady = self.base.saturating_add(elapsed);
        // A wall clock that was set forward (or a laptop that slept) is followed; one that was set back is not.
        let lead = (wall() - steady).max(0);
        let lead = self.ahead.fetch_max(lead, Ordering::Relaxed).max(lead);
        steady.saturating_add(lead)
    }

    fn fill(&self, bytes: &mut [u8]) {
        // Without the system's randomness no secret could be made, so nothing must go on.
        if let Err(error) = getrandom::fill(bytes) {
            tracing::error!(%error, "the system gives no randomness");
            std::process::abort();
        }
    }
}
