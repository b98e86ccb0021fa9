//! The upstreams of a desk: one for each mount and agent, or one for each mount that is shared.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::task::AbortOnDropHandle;

use super::error::{Error, Result};
use super::slot::Upstream;
use super::spec::Spec;
use super::state::Status;

/// How many upstreams there may be. Each may be a program, and an agent without a token can call itself anything.
const UPSTREAMS_MAX: usize = 128;
/// How often connections are looked after.
const TEND: Duration = Duration::from_secs(1);

type Key = (String, Option<String>);

/// Keeps upstreams.
pub(crate) struct Pool {
    slots: Arc<Slots>,
    most: usize,
    /// Looks after all of them, as long as the pool is there.
    _tending: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Slots {
    all: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_key: HashMap<Key, Arc<Upstream>>,
    /// Those that others took the place of, until what is under way there has ended.
    leaving: Vec<Weak<Upstream>>,
    stopped: bool,
}

impl Kept {
    /// Takes one out of use.
    fn replace(&mut self, key: &Key) {
        if let Some(old) = self.by_key.remove(key) {
            self.part_with(old);
        }
    }

    /// What is under way there ends first; then it is ended beside everything else.
    fn part_with(&mut self, old: Arc<Upstream>) {
        old.retire();
        self.leaving.retain(|left| left.strong_count() > 0);
        self.leaving.push(Arc::downgrade(&old));
        tokio::spawn(async move { old.leave().await });
    }

    /// Under which keys these are in use still.
    fn keys_of(&self, these: &[Arc<Upstream>]) -> Vec<Key> {
        let is_one = |upstream: &Arc<Upstream>| these.iter().any(|one| Arc::ptr_eq(one, upstream));
        self.by_key.iter().filter(|(_, upstream)| is_one(upstream)).map(|(key, _)| key.clone()).collect()
    }
}

impl Slots {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list(&self) -> Vec<Arc<Upstream>> {
        self.kept().by_key.values().cloned().collect()
    }
}

impl Pool {
    /// An empty pool. Must be made within the runtime.
    pub(crate) fn new() -> Self {
        Self::with_bounds(UPSTREAMS_MAX, TEND)
    }

    pub(super) fn with_bounds(most: usize, tend: Duration) -> Self {
        let slots = Arc::new(Slots::default());
        let tended = Arc::clone(&slots);
        let tending = tokio::spawn(async move {
            let mut tick = tokio::time::interval(tend);
            tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tick.tick().await;
                join_all(tended.list().iter().map(Upstream::tend)).await;
            }
        });
        Self { slots, most, _tending: AbortOnDropHandle::new(tending) }
    }

    /// The upstream of a mount for an agent, connected. One that was made for another spec is ended.
    pub(crate) async fn get(&self, spec: &Spec, agent: &str) -> Result<Arc<Upstream>> {
        let upstream = self.slot(spec, agent)?;
        upstream.ready().await?;
        Ok(upstream)
    }

    /// The same, not necessarily connected: every question connects it.
    pub(crate) fn slot(&self, spec: &Spec, agent: &str) -> Result<Arc<Upstream>> {
        let key: Key = (spec.name.clone(), (!spec.shared).then(|| agent.to_owned()));
        let mut kept = self.slots.kept();
        if kept.stopped {
            return Err(Error::Stopped { name: spec.name.clone() });
        }
        if let Some(upstream) = kept.by_key.get(&key) {
            if *upstream.spec == *spec {
                return Ok(Arc::clone(upstream));
            }
            kept.replace(&key);
        }
        if kept.by_key.len() >= self.most {
            // The one that nobody has needed for longest makes room.
            let idle = kept.by_key.iter().filter_map(|(key, upstream)| Some((upstream.idle_since()?, key.clone()))).min();
            let (_, oldest) = idle.ok_or_else(|| Error::Busy { name: spec.name.clone(), most: self.most })?;
            kept.replace(&oldest);
        }
        let upstream = Upstream::new(spec.clone(), key.1.clone());
        kept.by_key.insert(key, Arc::clone(&upstream));
        Ok(upstream)
    }

    /// All upstreams that are in use.
    pub(crate) fn list(&self) -> Vec<Arc<Upstream>> {
        self.slots.list()
    }

    /// The upstream of a mount that an agent uses, if it has one.
    pub(crate) fn find(&self, name: &str, agent: &str) -> Option<Arc<Upstream>> {
        let kept = self.slots.kept();
        let of = |agent: Option<String>| kept.by_key.get(&(name.to_owned(), agent)).cloned();
        of(Some(agent.to_owned())).or_else(|| of(None))
    }

    /// How all upstreams stand.
    pub(crate) fn statuses(&self) -> Vec<Status> {
        let mut all: Vec<Status> = self.slots.list().iter().map(|upstream| upstream.status()).collect();
        all.sort_by(|a, b| (&a.name, &a.agent).cmp(&(&b.name, &b.agent)));
        all
    }

    /// The upstreams of a mount.
    pub(crate) fn of_mount(&self, name: &str) -> Vec<Arc<Upstream>> {
        self.slots.list().into_iter().filter(|upstream| upstream.spec.name == name).collect()
    }

    /// Takes upstreams of mounts that were changed out of use: what is under way there ends first.
    pub(crate) fn replace(&self, gone: &[Arc<Upstream>]) {
        let mut kept = self.slots.kept();
        for key in kept.keys_of(gone) {
            kept.replace(&key);
        }
    }

    /// Ends upstreams of mounts that were removed or disabled, whatever is under way there; answers when they are ended. `back` is
    /// asked once nobody finds these any more: a mount that is there again by then may have calls under way over what it had
    /// before, and those end first.
    pub(crate) async fn remove(&self, gone: &[Arc<Upstream>], back: impl Future<Output = BTreeSet<String>>) {
        {
            let mut kept = self.slots.kept();
            for key in kept.keys_of(gone) {
                kept.by_key.remove(&key);
            }
        }
        let back = back.await;
        let (returned, gone): (Vec<_>, Vec<_>) = gone.iter().cloned().partition(|upstream| back.contains(&upstream.spec.name));
        for upstream in returned {
            self.slots.kept().part_with(upstream);
        }
        join_all(gone.iter().map(|upstream| upstream.stop())).await;
    }

    /// Ends everything, for good.
    pub(crate) async fn shut_down(&self) {
        let gone: Vec<Arc<Upstream>> = {
            let mut kept = self.slots.kept();
            kept.stopped = true;
            let leaving: Vec<_> = kept.leaving.drain(..).filter_map(|left| left.upgrade()).collect();
            kept.by_key.drain().map(|(_, upstream)| upstream).chain(leaving).collect()
        };
        join_all(gone.iter().map(|upstream| upstream.stop())).await;
    }
}
