//! Calls of mounted tools, once the desk has decided: they are handed on to the server behind, and what came of them is told.
//!
//! - `spec`: what a mount is, as its client needs it, with its secrets.
//! - `pass`: handing a call on; `back`: what comes back, as callers may have it; `clean`: without secrets.
//! - `ended`: what came of calls, on its way to the record, beside the callers.
//! - `meet`: what a server offers is compared with what people know, before anything is called over a new connection.
//! - `keep`: connections follow the settings in force.

mod back;
mod clean;
mod ended;
mod keep;
mod meet;
mod pass;
mod spec;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::upstream::{Pool, Talks};

pub(crate) use keep::{abandon_left_behind, follow, prune, sweep};
pub(crate) use meet::Behind;
pub(crate) use pass::{By, passes, within};
pub(crate) use spec::read as way;

/// What a desk holds of the servers behind it. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Gateway(Arc<Inner>);

/// A mount, and the agent whose connection it is; none where all share it.
type Key = (String, Option<String>);

#[derive(Default)]
struct Inner {
    pool: OnceLock<Pool>,
    talks: Talks,
    /// The connections over which what is offered was looked at, by mount and agent.
    met: Mutex<HashMap<Key, meet::Met>>,
    /// What takes secrets out of what each mount says.
    cleaners: Mutex<HashMap<String, Arc<clean::Cleaner>>>,
    /// The calls that wait for an answer of their caller, by the state that it was given.
    rounds: Mutex<HashMap<String, pass::Round>>,
    ended: OnceLock<mpsc::UnboundedSender<ended::Came>>,
    /// Counts the changes of mounts that were seen.
    state: AtomicU64,
}

impl Gateway {
    /// The connections. They are made within the runtime, and so is this.
    pub(crate) fn pool(&self) -> &Pool {
        self.0.pool.get_or_init(Pool::new)
    }

    /// A number that is another one whenever mounts were seen to have changed.
    pub(crate) fn state(&self) -> u64 {
        self.0.state.load(Ordering::Relaxed)
    }

    /// How all connections stand, with what their servers wrote last.
    pub(crate) fn connections(&self) -> Value {
        let Some(pool) = self.0.pool.get() else { return json!([]) };
        let all = pool.statuses().into_iter().map(|status| {
            let own = pool.of_mount(&status.name).into_iter().find(|upstream| upstream.status().agent == status.agent);
            let mut shown = json!(status);
            if let (Some(fields), Some(upstream)) = (shown.as_object_mut(), own) {
                let log = upstream.log();
                fields.insert("log".to_owned(), json!(log.iter().rev().take(20).rev().collect::<Vec<_>>()));
            }
            shown
        });
        Value::Array(all.collect())
    }

    /// Ends all connections, for good.
    pub(crate) async fn shut_down(&self) {
        if let Some(pool) = self.0.pool.get() {
            pool.shut_down().await;
        }
    }
}
