//! The machine's clock and randomness, as the core is given them.

use std::cell::RefCell;
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

/// How far the desk's time may be ahead of the wall clock before somebody is told, in microseconds.
pub(crate) const AHEAD_TOLD: i64 = 10_000_000;

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
        DRAWN.with_borrow_mut(|drawn| drawn.fill(bytes));
    }
}

thread_local! {
    static DRAWN: RefCell<Drawn> = const { RefCell::new(Drawn { bytes: [0; DRAWN_BYTES], left: 0 }) };
}

/// So many bytes are drawn at once: a proposal needs some two hundred, in eight or nine pieces.
const DRAWN_BYTES: usize = 1_024;

/// Bytes of the system's randomness that nobody has used yet. What is given away is wiped here.
struct Drawn {
    bytes: [u8; DRAWN_BYTES],
    left: usize,
}

impl Drawn {
    fn fill(&mut self, bytes: &mut [u8]) {
        if bytes.len() > self.left {
            if bytes.len() > DRAWN_BYTES {
                return draw(bytes);
            }
            draw(&mut self.bytes);
            self.left = DRAWN_BYTES;
        }
        let rest = self.left - bytes.len();
        for (given, drawn) in bytes.iter_mut().zip(self.bytes.iter_mut().skip(rest)) {
            *given = std::mem::take(drawn);
        }
        self.left = rest;
    }
}

fn draw(bytes: &mut [u8]) {
    // Without the system's randomness no secret could be made, so nothing must go on.
    if let Err(error) = getrandom::fill(bytes) {
        tracing::error!(%error, "the system gives no randomness");
        std::process::abort();
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
    fn nothing_that_was_drawn_is_given_twice_or_stays() {
        let mut drawn = Drawn { bytes: [0; DRAWN_BYTES], left: 0 };
        let mut seen = std::collections::BTreeSet::new();
        for length in [16, 32, 10, 24, 32, DRAWN_BYTES, 1, 2 * DRAWN_BYTES].into_iter().cycle().take(400) {
            let mut bytes = vec![0; length];
            drawn.fill(&mut bytes);
            assert!(length < 10 || (bytes.iter().any(|byte| *byte != 0) && seen.insert(bytes)), "{length} bytes that were there before");
            assert!(drawn.bytes.iter().skip(drawn.left).all(|byte| *byte == 0), "what was given away is still here");
        }
    }

    #[test]
    fn time_begins_at_the_newest_event_when_the_wall_clock_is_behind_it() {
        let floor = wall() + 3_600 * SECOND;
        let machine = Machine::new(floor);
        let (first, second) = (machine.now(), machine.now());
        assert!(first >= floor && second >= first, "{floor} {first} {second}");
    }
}
