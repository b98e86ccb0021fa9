//! How an upstream stands, for whoever looks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

/// How an upstream stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub(crate) enum State {
    /// Nobody has needed it yet, or it was idle.
    Resting,
    /// A connection is being made.
    Starting,
    /// It answers.
    Ready {
        /// Since when, in microseconds of the wall clock.
        since: i64,
        /// The version of the protocol that is spoken with it.
        version: String,
        /// Whether that is of the newer era.
        modern: bool,
        /// What it calls itself.
        server: Option<String>,
    },
    /// It failed, and is left alone for a while.
    Backoff {
        /// Until when, in microseconds of the wall clock.
        until: i64,
        /// What happened.
        why: String,
    },
    /// It failed too often.
    GivenUp {
        /// What happened last.
        why: String,
    },
    /// It was removed, disabled or replaced.
    Stopped,
}

/// What an upstream's status page shows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Status {
    /// The mount's name.
    pub(crate) name: String,
    /// The agent whose connection it is; none where all share it.
    pub(crate) agent: Option<String>,
    /// How it stands.
    #[serde(flatten)]
    pub(crate) state: State,
    /// Its process, where it is a program of this machine.
    pub(crate) pid: Option<u32>,
    /// How much memory it holds.
    pub(crate) memory_bytes: Option<u64>,
    /// How long its calls take, on average, the newest counting most.
    pub(crate) latency_us: Option<u64>,
    /// How many calls were sent.
    pub(crate) calls: u64,
    /// How many of them failed, other than by an answer of the upstream.
    pub(crate) errors: u64,
    /// How many are under way.
    pub(crate) in_flight: usize,
    /// How often a connection was made.
    pub(crate) starts: u64,
    /// How often it failed since it last worked.
    pub(crate) failures: u32,
}

/// What is counted.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) calls: AtomicU64,
    pub(super) errors: AtomicU64,
    pub(super) starts: AtomicU64,
    latency: AtomicU64,
}

impl Figures {
    /// Takes a call's time into the average: each counts a fifth.
    pub(super) fn took(&self, time: Duration) {
        let new = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
        let mean = |old: u64| if old == 0 { new } else { (old.saturating_mul(4).saturating_add(new) / 5).max(1) };
        let _ = self.latency.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(mean(old)));
    }

    pub(super) fn latency(&self) -> Option<u64> {
        Some(self.latency.load(Ordering::Relaxed)).filter(|time| *time > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_follows_the_newest() {
        let figures = Figures::default();
        assert_eq!(figures.latency(), None);
        figures.took(Duration::from_millis(10));
        assert_eq!(figures.latency(), Some(10_000));
        for _ in 0..50 {
            figures.took(Duration::from_micros(100));
        }
        assert!(figures.latency().is_some_and(|time| (100..=120).contains(&time)), "{:?}", figures.latency());
    }
}
