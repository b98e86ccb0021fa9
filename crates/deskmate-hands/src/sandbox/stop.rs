//! Stopping a program from outside of the thread that waits for it.

use std::process::ChildStdin;
use std::sync::{Arc, Mutex, PoisonError};

/// Stops a program. Clones belong together: one is given to [`super::Runner::run`], another is kept.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    lifeline: Option<ChildStdin>,
}

impl Stop {
    /// One that has not been used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the program and everything that it started; the run then ends as [`super::Ended::Stopped`]. What has not been
    /// started yet will end at once.
    pub fn now(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.stopped = true;
        state.lifeline = None;
    }

    /// Keeps the lifeline until it is stopped or let go. Only the newest is kept: one `Stop` is for one run.
    pub(super) fn hold(&self, lifeline: ChildStdin) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.lifeline = (!state.stopped).then_some(lifeline);
    }

    /// Lets go of the lifeline of a run that has ended.
    pub(super) fn let_go(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).lifeline = None;
    }
}
