//! An upstream as its callers hold it: it stays while connections come and go. It is connected when somebody needs it, left
//! alone for a while when it fails, and given up when it goes on failing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::ServerPeerInfo;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::error::{Error, Result};
use super::handler::Change;
use super::link::{Link, Making};
use super::log::Log;
use super::spec::Spec;
use super::state::{Figures, State, Status};
use crate::world;

/// From how long a connection has lasted on its end is no longer counted together with the failures before.
const STEADY: Duration = Duration::from_secs(30);
/// The longest pause between two attempts.
const BACKOFF_MAX: Duration = Duration::from_mins(1);
/// A caller waits for an attempt that is this close, instead of being sent away.
const WORTH_WAITING: Duration = Duration::from_secs(1);
/// How long an upstream that was given up is left alone before somebody who needs it may try once more.
const ONCE_MORE: Duration = Duration::from_mins(5);
/// How many changes may wait for a follower.
const CHANGES_MAX: usize = 256;

/// An upstream.
pub(crate) struct Upstream {
    pub(super) spec: Arc<Spec>,
    pub(super) agent: Option<String>,
    pub(super) log: Arc<Log>,
    pub(super) figures: Figures,
    pub(super) places: Semaphore,
    changes: broadcast::Sender<Change>,
    /// The resources that somebody follows, and how many do.
    pub(super) followed: watch::Sender<BTreeMap<String, usize>>,
    /// How many need it to be connected, whether they call or not.
    held: AtomicUsize,
    /// Cancelled when it is not used any more, for good.
    stopped: CancellationToken,
    inner: Mutex<Inner>,
    making: tokio::sync::Mutex<()>,
    pub(super) subscribing: tokio::sync::Mutex<()>,
}

struct Inner {
    link: Option<Arc<Link>>,
    state: State,
    failures: u32,
    /// No attempt before this.
    not_before: Option<Instant>,
    connected: Instant,
    used: Instant,
    probed: Instant,
    /// Whether it must be spoken to in the older era from the start.
    legacy: bool,
    follower: Option<AbortOnDropHandle<()>>,
}

impl Upstream {
    pub(super) fn new(spec: Spec, agent: Option<String>) -> Arc<Self> {
        let now = Instant::now();
        let inner =
            Inner { link: None, state: State::Resting, failures: 0, not_before: None, connected: now, used: now, probed: now, legacy: false, follower: None };
        Arc::new(Self {
            places: Semaphore::new(spec.bounds.in_flight),
            spec: Arc::new(spec),
            agent,
            log: Arc::default(),
            figures: Figures::default(),
            changes: broadcast::channel(CHANGES_MAX).0,
            followed: watch::channel(BTreeMap::new()).0,
            held: AtomicUsize::new(0),
            stopped: CancellationToken::new(),
            inner: Mutex::new(inner),
            making: tokio::sync::Mutex::default(),
            subscribing: tokio::sync::Mutex::default(),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn name(&self) -> String {
        self.spec.name.clone()
    }

    /// The mount that it belongs to.
    pub(crate) fn mount(&self) -> &str {
        &self.spec.name
    }

    /// Whether it is reached exactly so.
    pub(crate) fn is_of(&self, spec: &Spec) -> bool {
        *self.spec == *spec
    }

    /// The last lines of its standard error.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lines()
    }

    /// A text of its own without the values that must not be seen.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.spec.hide(text)
    }

    /// What it told about itself, while it is connected.
    pub(crate) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.inner().link.as_ref().map(|link| Arc::clone(&link.info))
    }

    /// What changes from now on. A follower that falls behind must look at everything anew. It keeps nothing connected: what
    /// changed while nobody needed the connection is told when there is one again.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Keeps it connected for somebody who waits for its changes, until what is answered is dropped.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        self.held.fetch_add(1, Ordering::AcqRel);
        Hold(Arc::clone(self))
    }

    /// Answers when it is not used any more, for good.
    pub(crate) async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    /// What an error means that came before a call was sent: whatever was lost, it was not the call. One that came because this
    /// is not used any more says so, and the call may go over what took its place.
    pub(crate) fn before_a_call(&self, error: Error) -> Error {
        if self.stopped.is_cancelled() { Error::Stopped { name: self.name() } } else { error.before_a_call() }
    }

    fn is_needed(&self) -> bool {
        self.held.load(Ordering::Acquire) > 0 || !self.followed.borrow().is_empty()
    }

    /// How it stands.
    pub(crate) fn status(&self) -> Status {
        let inner = self.inner();
        let program = inner.link.as_ref().and_then(|link| link.program.as_ref());
        Status {
            name: self.name(),
            agent: self.agent.clone(),
            state: inner.state.clone(),
            pid: program.and_then(super::child::Program::pid),
            memory_bytes: program.and_then(super::child::Program::memory),
            latency_us: self.figures.latency(),
            calls: self.figures.calls.load(Ordering::Relaxed),
            errors: self.figures.errors.load(Ordering::Relaxed),
            in_flight: self.in_flight(),
            starts: self.figures.starts.load(Ordering::Relaxed),
            failures: inner.failures,
        }
    }

    fn in_flight(&self) -> usize {
        self.spec.bounds.in_flight.saturating_sub(self.places.available_permits())
    }

    /// The live connection, if there is one.
    fn live(&self) -> Result<Option<Arc<Link>>> {
        let mut inner = self.inner();
        if inner.state == State::Stopped {
            return Err(Error::Stopped { name: self.name() });
        }
        inner.used = Instant::now();
        let Some(link) = &inner.link else { return Ok(None) };
        if link.is_closed() {
            // Whoever watches it finds out why.
            link.closed.cancel();
            return Ok(None);
        }
        Ok(Some(Arc::clone(link)))
    }

    /// The live connection, made if need be. It goes on being made if this is dropped.
    pub(super) async fn link(self: &Arc<Self>) -> Result<Arc<Link>> {
        if let Some(link) = self.live()? {
            return Ok(link);
        }
        let made = tokio::spawn(Arc::clone(self).make());
        made.await.map_err(|error| Error::NotStarted { name: self.name(), why: error.to_string() })?
    }

    /// Whether an attempt may be made now, or how long it is until then.
    fn wait(&self) -> Result<Duration> {
        let inner = self.inner();
        let left = inner.not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        let name = self.name();
        match &inner.state {
            State::Stopped => Err(Error::Stopped { name }),
            State::GivenUp { why } if !left.is_zero() => Err(Error::GivenUp { name, why: why.clone(), failures: inner.failures }),
            State::Backoff { why, .. } if left > WORTH_WAITING => Err(Error::Backoff { name, why: why.clone(), again: left }),
            _ => Ok(left),
        }
    }

    async fn make(self: Arc<Self>) -> Result<Arc<Link>> {
        let _alone = self.making.lock().await;
        // A connection that has just broken is taken leave of first, so that its end counts.
        let broken = self.inner().link.clone().filter(|link| link.is_closed());
        if let Some(link) = broken {
            self.take_leave(&link).await;
        }
        if let Some(link) = self.live()? {
            return Ok(link);
        }
        tokio::time::sleep(self.wait()?).await;
        let legacy = {
            let mut inner = self.inner();
            if inner.state == State::Stopped {
                return Err(Error::Stopped { name: self.name() });
            }
            inner.state = State::Starting;
            inner.legacy
        };
        let making = |legacy| Making { spec: &self.spec, log: &self.log, changes: &self.changes, legacy };
        self.figures.starts.fetch_add(1, Ordering::Relaxed);
        let mut made = making(legacy).make().await;
        let mut is_legacy = legacy;
        if made.as_ref().is_err_and(|unmade| unmade.try_older) {
            is_legacy = true;
            made = making(true).make().await;
        }
        match made {
            Ok(link) => self.made(Arc::new(link), is_legacy).await,
            Err(unmade) => {
                self.failed(&unmade.why, true);
                Err(Error::NotStarted { name: self.name(), why: unmade.why })
            }
        }
    }

    async fn made(self: &Arc<Self>, link: Arc<Link>, legacy: bool) -> Result<Arc<Link>> {
        let stopped = {
            let mut inner = self.inner();
            let now = Instant::now();
            if inner.state == State::Stopped {
                true
            } else {
                inner.state = State::Ready {
                    since: world::wall(),
                    version: link.info.protocol_version.to_string(),
                    modern: link.is_modern(),
                    server: link.info.server_info.as_ref().map(|server| format!("{} {}", server.name, server.version)),
                };
                (inner.not_before, inner.connected, inner.used, inner.probed) = (None, now, now, now);
                (inner.legacy, inner.link) = (legacy, Some(Arc::clone(&link)));
                inner.follower = Some(AbortOnDropHandle::new(tokio::spawn(super::follow::follow(Arc::downgrade(self), Arc::clone(&link)))));
                false
            }
        };
        if stopped {
            link.end().await;
            return Err(Error::Stopped { name: self.name() });
        }
        let (upstream, watched) = (Arc::downgrade(self), Arc::clone(&link));
        tokio::spawn(async move {
            watched.closed.cancelled().await;
            match upstream.upgrade() {
                Some(upstream) => upstream.take_leave(&watched).await,
                None => watched.end().await,
            }
        });
        // What was known before may be out of date.
        if self.figures.starts.load(Ordering::Relaxed) > 1 {
            self.tell([Change::Tools, Change::Prompts, Change::Resources]);
        }
        Ok(link)
    }

    pub(super) fn tell(&self, changes: impl IntoIterator<Item = Change>) {
        for change in changes {
            // Nobody may be following.
            let _ = self.changes.send(change);
        }
    }

    /// A connection has ended.
    async fn take_leave(&self, link: &Arc<Link>) {
        let why = link.ending(&self.spec, &self.log).await;
        let was_mine = {
            let mut inner = self.inner();
            let mine = inner.link.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, link));
            if mine {
                inner.link = None;
                inner.follower = None;
            }
            mine
        };
        if was_mine {
            let left_by_itself = self.in_flight() == 0 && link.program.as_ref().and_then(super::child::Program::exit).is_some_and(super::child::Exit::is_clean);
            if left_by_itself {
                self.rest();
            } else {
                let steady = self.inner().connected.elapsed() >= STEADY;
                self.failed(&why, !steady);
            }
        }
        link.end().await;
    }

    fn rest(&self) {
        let mut inner = self.inner();
        if inner.state != State::Stopped {
            (inner.state, inner.failures, inner.not_before) = (State::Resting, 0, None);
        }
    }

    /// Counts a failure, and says when to try again.
    fn failed(&self, why: &str, again: bool) {
        tracing::warn!(mount = self.spec.name, agent = self.agent, why, "a mounted server failed");
        let mut inner = self.inner();
        if inner.state == State::Stopped {
            return;
        }
        inner.failures = if again { inner.failures.saturating_add(1) } else { 1 };
        let bounds = &self.spec.bounds;
        if inner.failures >= bounds.failures {
            inner.state = State::GivenUp { why: why.to_owned() };
            inner.not_before = Some(Instant::now() + ONCE_MORE);
            return;
        }
        let pause = bounds.backoff.saturating_mul(1 << (inner.failures - 1).min(16)).min(BACKOFF_MAX);
        let until = world::wall().saturating_add(i64::try_from(pause.as_micros()).unwrap_or(i64::MAX));
        inner.state = State::Backoff { until, why: why.to_owned() };
        inner.not_before = Some(Instant::now() + pause);
    }

    /// Forgets its failures, so that the next call tries at once.
    pub(crate) fn retry(&self) {
        let mut inner = self.inner();
        inner.not_before = None;
        if matches!(inner.state, State::Backoff { .. } | State::GivenUp { .. }) {
            (inner.state, inner.failures) = (State::Resting, 0);
        }
    }

    /// A call was answered: whatever failed before is over.
    pub(super) fn worked(&self) {
        let mut inner = self.inner();
        inner.probed = Instant::now();
        if inner.connected.elapsed() >= STEADY {
            inner.failures = 0;
        }
    }

    /// Whether nobody needs it, and since when.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.in_flight() == 0 && !self.is_needed()).then(|| self.inner().used)
    }

    /// Looks after the connection: ends one that nobody uses, asks one that is quiet, brings back one that is followed.
    pub(super) async fn tend(self: &Arc<Self>) {
        let link = self.inner().link.clone();
        let Some(link) = link else {
            let due = { self.inner().not_before.is_some_and(|at| at <= Instant::now()) };
            if self.is_needed() && due {
                drop(self.link().await);
            }
            return;
        };
        if self.idle_since().is_some_and(|since| since.elapsed() >= self.spec.bounds.idle) {
            self.close(State::Resting).await;
            return;
        }
        let quiet = self.inner().probed.elapsed() >= self.spec.bounds.probe;
        if quiet && self.in_flight() == 0 && !self.probe(&link).await {
            self.log.add("(it did not answer when it was asked whether it is there)");
            link.closed.cancel();
        }
    }

    /// Ends the connection.
    async fn close(&self, state: State) {
        let link = {
            let mut inner = self.inner();
            // A call takes its place before it takes the connection: one that came since somebody looked keeps it.
            if state == State::Resting && self.in_flight() > 0 {
                return;
            }
            if inner.state != State::Stopped {
                inner.state = state;
            }
            inner.follower = None;
            inner.link.take()
        };
        if let Some(link) = link {
            link.end().await;
        }
    }

    /// How many calls the connection knows of.
    #[cfg(test)]
    pub(super) fn ledger_len(&self) -> usize {
        self.inner().link.as_ref().map_or(0, |link| link.ledger.len())
    }

    /// Whether the upstream has answered to a question for what it says unasked.
    #[cfg(feature = "conformance")]
    pub(crate) fn is_listened_to(&self) -> bool {
        self.inner().link.as_ref().is_some_and(|link| link.ledger.listened.load(std::sync::atomic::Ordering::Relaxed))
    }

    /// Lets nobody begin anything any more. What is under way goes on.
    pub(super) fn retire(&self) {
        self.inner().state = State::Stopped;
        self.stopped.cancel();
    }

    /// Ends it for good, once what is under way has ended.
    pub(super) async fn leave(&self) {
        self.retire();
        let most = u32::try_from(self.spec.bounds.in_flight).unwrap_or(u32::MAX);
        drop(tokio::time::timeout(self.spec.bounds.call_total, self.places.acquire_many(most)).await);
        self.close(State::Stopped).await;
    }

    /// Ends it for good, and at once.
    pub(super) async fn stop(&self) {
        self.retire();
        self.close(State::Stopped).await;
    }
}

/// Somebody needs an upstream to be connected.
pub(crate) struct Hold(Arc<Upstream>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::AcqRel);
    }
}
