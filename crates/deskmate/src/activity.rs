//! Whether anybody is using this server: what a server in the background goes by when it ends itself.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

/// How often a server with open connections looks again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Counts what is open and remembers when something last was. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Activity {
    inner: Arc<Inner>,
}

struct Inner {
    started: Instant,
    open: AtomicUsize,
    /// When the last thing ended, in milliseconds after the start.
    last: AtomicU64,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self { inner: Arc::new(Inner { started: Instant::now(), open: AtomicUsize::new(0), last: AtomicU64::new(0) }) }
    }

    /// Something is under way as long as this lives: a connection of a shim, a request, a job.
    #[must_use]
    pub(crate) fn hold(&self) -> Held {
        self.inner.open.fetch_add(1, Ordering::AcqRel);
        Held { inner: Arc::clone(&self.inner) }
    }

    /// How long this server has been up.
    pub(crate) fn uptime(&self) -> Duration {
        self.inner.started.elapsed()
    }

    /// For how long nothing has been under way; `None` while something is.
    fn idle(&self) -> Option<Duration> {
        if self.inner.open.load(Ordering::Acquire) > 0 {
            return None;
        }
        Some(self.uptime().saturating_sub(Duration::from_millis(self.inner.last.load(Ordering::Acquire))))
    }

    /// Waits until nothing has been under way for a time.
    pub(crate) async fn quiet(&self, linger: Duration) {
        loop {
            let left = match self.idle() {
                Some(idle) if idle >= linger => return,
                Some(idle) => linger.saturating_sub(idle),
                None => linger.min(LOOK_EVERY),
            };
            tokio::time::sleep(left.max(Duration::from_millis(1))).await;
        }
    }
}

/// Something under way.
pub(crate) struct Held {
    inner: Arc<Inner>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let now = u64::try_from(self.inner.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.inner.last.fetch_max(now, Ordering::AcqRel);
        self.inner.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Counts every request until the last byte of its answer is out, so that a live stream counts as long as it is open.
pub(crate) async fn watch(State(activity): State<Activity>, request: Request, next: Next) -> Response {
    let held = activity.hold();
    crate::until_sent::hold(next.run(request).await, held)
}

/// How this server was set up, for every status.
#[derive(Clone)]
pub(crate) struct Standing {
    pub(crate) activity: Activity,
    pub(crate) set_up: &'static str,
    pub(crate) background: bool,
}

/// The name of the set-up. The separate user is believed only where the directory bears it out: it belongs to the
/// account that the server runs as, and nobody else can enter it.
pub(crate) fn set_up(separate_user: bool, home: &Path) -> &'static str {
    use std::os::unix::fs::MetadataExt;
    let own = |found: std::fs::Metadata| found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o777 == 0o700;
    if separate_user && std::fs::metadata(home).is_ok_and(own) { "separate user" } else { "shared user" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_open_keeps_the_server_up() {
        let activity = Activity::new();
        let held = activity.hold();
        assert!(activity.idle().is_none());
        let wait = Duration::from_millis(30);
        assert!(tokio::time::timeout(wait * 3, activity.quiet(wait)).await.is_err());
        drop(held);
        let from = Instant::now();
        activity.quiet(wait).await;
        assert!(from.elapsed() >= Duration::from_millis(28));
    }
}
