//! The life of a task: which state may follow which.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Code, Error, Result};

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// It waits for somebody to claim it.
    Pending,
    /// Somebody works on it under a lease.
    InProgress,
    /// Its worker asked something; the question is in `result`.
    InputNeeded,
    /// Done; what came out is in `result`.
    Completed,
    /// Tried in vain; why is in `result`.
    Failed,
    /// The recipient does not take it; why is in `result`.
    Rejected,
    /// The sender or a person called it off.
    Cancelled,
}

impl State {
    /// All states.
    pub(super) const ALL: [Self; 7] = [Self::Pending, Self::InProgress, Self::InputNeeded, Self::Completed, Self::Failed, Self::Rejected, Self::Cancelled];

    /// The stable name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::InputNeeded => "input_needed",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of a stored name.
    pub(super) fn from_name(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|state| state.name() == name);
        found.ok_or_else(|| Error::new(Code::Internal, format!("a task is stored in the unknown state {name:?}")))
    }

    /// The states that may follow.
    pub(super) fn next(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::InProgress, Self::Rejected, Self::Cancelled],
            Self::InProgress => &[Self::Completed, Self::Failed, Self::InputNeeded, Self::Pending, Self::Cancelled],
            Self::InputNeeded => &[Self::InProgress, Self::Pending, Self::Cancelled],
            Self::Completed | Self::Failed | Self::Rejected | Self::Cancelled => &[],
        }
    }

    /// Whether nothing may follow.
    pub(super) fn is_final(self) -> bool {
        self.next().is_empty()
    }

    /// Refuses a state that may not follow, and names those that may.
    pub(super) fn check_next(self, to: Self) -> Result<()> {
        if self.next().contains(&to) {
            return Ok(());
        }
        if self.is_final() {
            let refusal = Error::conflict(format!("the task is {}, which is final; no state may follow", self.name()));
            return Err(refusal.hint("create a new task for what is left to do"));
        }
        let legal: Vec<&str> = self.next().iter().map(|state| state.name()).collect();
        Err(Error::conflict(format!("the task is {} and cannot become {}; legal next states: {}", self.name(), to.name(), legal.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::State;

    #[test]
    fn final_states_stay() {
        for state in State::ALL.into_iter().filter(|state| state.is_final()) {
            assert!(State::ALL.into_iter().all(|next| state.check_next(next).is_err()), "{state:?}");
        }
    }

    #[test]
    fn every_open_state_can_be_cancelled_and_reach_completed() {
        for state in State::ALL.into_iter().filter(|state| !state.is_final()) {
            assert!(state.check_next(State::Cancelled).is_ok(), "{state:?}");
            let mut reached = std::collections::HashSet::from([state.name()]);
            for _ in State::ALL {
                let next = State::ALL.iter().filter(|state| reached.contains(state.name())).flat_map(|state| state.next());
                reached = next.map(|state| state.name()).chain(reached.iter().copied()).collect();
            }
            assert!(reached.contains("completed"), "{state:?}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for state in State::ALL {
            assert_eq!(State::from_name(state.name()).ok(), Some(state));
        }
    }
}
