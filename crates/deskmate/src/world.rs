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

    /// The time when this long has passed since the start and the wall clock shows that.
    fn at(&self, elapsed: i64, wall: i64) -> i64 {
        let steady = self.base.saturating_add(elapsed);
        // A wall clock that was set forward (or a laptop that slept) is followed; one that was set back is not.
        let lead = wall.saturating_sub(steady).max(0);
        let lead = self.ahead.fetch_max(lead, Ordering::Relaxed).max(lead);
        steady.saturating_add(lead)
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one reader of the wall clock")]
pub(crate) fn wall() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl World for Machine {
    fn now(&self) -> i64 {
        self.at(i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX), wall())
    }

    fn fill(&self, bytes: &mut [u8]) {
        // Without the system's randomness no secret could be made, so nothing must go on.
        if let Err(error) = getrandom::fill(bytes) {
            tracing::error!(%error, "the system gives no randomness");
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn a_wall_clock_that_is_set_back_does_not_take_time_with_it() {
        let machine = Machine { started: Instant::now(), base: 1_000 * SECOND, ahead: AtomicI64::new(0) };
        assert_eq!(machine.at(SECOND, 1_001 * SECOND), 1_001 * SECOND);
        assert_eq!(machine.at(2 * SECOND, 5 * SECOND), 1_002 * SECOND, "set back: time goes on by itself");
        assert_eq!(machine.at(3 * SECOND, 2_000 * SECOND), 2_000 * SECOND, "set forward: it is followed");
        assert_eq!(machine.at(4 * SECOND, 1_004 * SECOND), 2_001 * SECOND, "and back again: it is not");
        assert_eq!(machine.at(5 * SECOND, i64::MIN), 2_002 * SECOND, "a clock that is out of its mind");
    }

    #[test]
    fn time_begins_at_the_newest_event_when_the_wall_clock_is_behind_it() {
        let floor = wall() + 3_600 * SECOND;
        let machine = Machine::new(floor);
        let (first, second) = (machine.now(), machine.now());
        assert!(first >= floor && second >= first, "{floor} {first} {second}");
    }
}
