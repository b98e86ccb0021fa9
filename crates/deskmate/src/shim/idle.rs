//! Leaving when nobody asks for anything. Some hosts start a new child per request and never end it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::config;

/// The name under which children of an existing host are told the same in milliseconds.
const ENVIRONMENT: &str = "COS_MCP_IDLE_EXIT_MS";

/// Since when nothing is under way. It begins to count at the start, so a child that is never asked leaves as well.
pub(super) struct Idle {
    after: Duration,
    quiet_since: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Idle {
    pub(super) fn new(after: Duration) -> Self {
        Self { after, quiet_since: Mutex::new(Some(Instant::now())), changed: Condvar::new() }
    }

    /// Whether a request is under way.
    pub(super) fn note(&self, busy: bool) {
        let mut quiet_since = self.quiet_since.lock().unwrap_or_else(PoisonError::into_inner);
        if busy != quiet_since.is_none() {
            *quiet_since = (!busy).then(Instant::now);
            self.changed.notify_all();
        }
    }

    /// Returns when nothing was under way for long enough.
    pub(super) fn wait_until_over(&self) {
        let mut quiet_since = self.quiet_since.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = quiet_since.map(|since| self.after.saturating_sub(since.elapsed()));
            quiet_since = match left {
                Some(Duration::ZERO) => return,
                Some(left) => self.changed.wait_timeout(quiet_since, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(quiet_since).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// The environment's wish; anything that is not a finite number above zero is none.
pub(super) fn from_environment() -> Option<Duration> {
    let milliseconds: f64 = config::env(ENVIRONMENT)?.trim().parse().ok()?;
    Duration::try_from_secs_f64(milliseconds / 1_000.0).ok().filter(|after| !after.is_zero())
}
