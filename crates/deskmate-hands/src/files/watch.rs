//! How a caller follows and stops what takes long.

use std::sync::atomic::{AtomicBool, Ordering};

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Entries seen.
    pub entries: u64,
    /// Bytes of content read.
    pub bytes: u64,
}

/// What the caller wants to hear and say meanwhile; `Watch::default()` for nothing.
#[derive(Clone, Copy, Default)]
pub struct Watch<'a> {
    /// Set it, and the work stops with `cancelled` at the next entry or block.
    pub cancel: Option<&'a AtomicBool>,
    /// Called now and then, from any of the threads that work.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl Watch<'_> {
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    pub(super) fn tell(&self, progress: Progress) {
        if let Some(listener) = self.progress {
            listener(progress);
        }
    }
}
