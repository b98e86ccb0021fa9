//! What tasks of the fixtures still ask for on their way. It is kept here and not in the store: no task of the desk
//! itself asks for input.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::{InputRequests, InputResponses};

#[derive(Default)]
pub(super) struct Asking {
    by_task: Mutex<HashMap<String, InputRequests>>,
}

impl Asking {
    fn by_task(&self) -> MutexGuard<'_, HashMap<String, InputRequests>> {
        self.by_task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task goes on when all of this is answered.
    pub(super) fn ask(&self, task: &str, requests: InputRequests) {
        self.by_task().insert(task.to_owned(), requests);
    }

    /// What a task still asks for.
    pub(super) fn pending(&self, task: &str) -> Option<InputRequests> {
        self.by_task().get(task).cloned()
    }

    /// Takes answers; keys that were not asked for are passed over. `false` where the task asks for nothing.
    pub(super) fn answer(&self, task: &str, responses: &InputResponses) -> bool {
        let mut by_task = self.by_task();
        let Some(pending) = by_task.get_mut(task) else { return false };
        pending.retain(|key, _| !responses.contains_key(key));
        if pending.is_empty() {
            by_task.remove(task);
        }
        true
    }

    /// The task has ended.
    pub(super) fn forget(&self, task: &str) {
        self.by_task().remove(task);
    }
}
