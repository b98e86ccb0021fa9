//! The bridge file at work: a thread that holds the file, notices what others write into it, and shows the desk in it.
//!
//! The desk is the truth and the file is an edge: whatever is wrong with the file, the desk goes on without it, and the
//! thread tries again. One process holds the file, by a lock beside it; on PostgreSQL one node does, by a lease.

mod file;
mod marks;
mod rows;
mod sync;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use deskmate_core::call::{Actor, Cx, Surface};
use deskmate_core::{Code, Error, lease};
use deskmate_db::{Engine, Tx};

use crate::app::App;
use sync::Sync;

/// How often the thread looks: one pragma on the file, and one number in memory.
const LOOK: Duration = Duration::from_millis(100);
/// How long it waits after a trouble; each further time twice as long.
const BACKOFF_MIN: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_mins(1);
/// How often it looks whether the file is still the one that was opened, and gives a sign of life.
const CHECK: Duration = Duration::from_secs(1);
/// On PostgreSQL: how long a node that holds the file stands without a sign of life.
const LEASE: Duration = Duration::from_secs(15);
const SUBJECT: &str = "bridge_file";
/// The scratch file in the data directory.
const MARKS: &str = "bridge-file.marks";
/// A long comparison leaves most of the time to those who wait for answers: it rests so many times as long as it worked.
const LEISURE: u32 = 2;

/// Why the file cannot be kept in step now.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the desk: {0}")]
    Desk(#[from] Error),
    #[error("{0}")]
    Shape(String),
    #[error("another desk holds it; this one stands by")]
    Held,
    #[error("another file is there now")]
    Replaced,
}

impl Trouble {
    /// Whether the next look may go better with everything as it is.
    fn passes(&self) -> bool {
        match self {
            Self::Sqlite(error) => {
                matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked))
            }
            Self::Desk(error) => matches!(error.code, Code::Limited | Code::Unavailable),
            _ => false,
        }
    }
}

/// The thread that keeps the file in step.
pub(super) struct Edge {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Edge {
    /// Starts it. What goes wrong is told in the log.
    pub(super) fn start(app: App, path: PathBuf, home: &Path) -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let keeper = Keeper { node: app.desk.world.opaque_id(), app, path, marks: home.join(MARKS), stop: Arc::clone(&stop) };
        let spawned = std::thread::Builder::new().name("bridge-file".to_owned()).spawn(move || keeper.run());
        match spawned {
            Ok(thread) => Some(Self { stop, thread }),
            Err(error) => {
                tracing::error!(%error, "the bridge file has no thread; the desk goes on without it");
                None
            }
        }
    }

    /// Ends it after the batch that is under way.
    pub(super) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        drop(self.thread.join());
    }
}

struct Keeper {
    app: App,
    path: PathBuf,
    marks: PathBuf,
    node: String,
    stop: Arc<AtomicBool>,
}

impl Keeper {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn rest(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.stopped() {
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else { return };
            std::thread::park_timeout(left);
        }
    }

    fn run(self) {
        let mut backoff = BACKOFF_MIN;
        let mut told = String::new();
        while !self.stopped() {
            let begun = Instant::now();
            let Err(trouble) = self.keep() else { return };
            if begun.elapsed() > BACKOFF_MAX {
                (backoff, told) = (BACKOFF_MIN, String::new());
            }
            let text = trouble.to_string();
            if text != told {
                tracing::warn!(file = %self.path.display(), trouble = %text, "the bridge file is not kept in step; the desk goes on, and it is tried again");
                told = text;
            }
            // Whoever stands by looks steadily: the place may become free at any time.
            let wait = if matches!(trouble, Trouble::Held | Trouble::Replaced) { BACKOFF_MIN } else { backoff };
            backoff = (backoff * 2).min(BACKOFF_MAX);
            self.rest(wait);
        }
    }

    /// Holds the file and keeps it in step until the server stops.
    fn keep(&self) -> Result<(), Trouble> {
        let lock = hold(&self.path)?;
        let Some(leased) = self.lease()? else { return Err(Trouble::Held) };
        let done = self.serve(&leased);
        drop(lock);
        self.unlease(&leased);
        done
    }

    fn serve(&self, leased: &Leased) -> Result<(), Trouble> {
        let mut sync = Sync::open(&self.app, &self.path, &self.marks)?;
        let mut checked = Instant::now();
        let mut troubled = false;
        while !self.stopped() {
            let begun = Instant::now();
            match sync.look() {
                Ok(()) => troubled = false,
                Err(trouble) if trouble.passes() => {
                    if !troubled {
                        tracing::info!(file = %self.path.display(), %trouble, "the bridge file has to wait");
                    }
                    troubled = true;
                }
                Err(trouble) => return Err(trouble),
            }
            if checked.elapsed() >= CHECK {
                checked = Instant::now();
                sync.keep_cursor()?;
                if !sync.is_same_file(&self.path) {
                    return Err(Trouble::Replaced);
                }
                self.renew(leased)?;
            }
            self.rest(if troubled || !sync.is_busy() { LOOK } else { (begun.elapsed() * LEISURE).min(LOOK) });
        }
        sync.finish()
    }

    fn lease(&self) -> Result<Option<Leased>, Trouble> {
        if self.app.desk.db.engine() == Engine::Sqlite {
            return Ok(Some(Leased { fence: None }));
        }
        let (node, ttl) = (self.node.clone(), i64::try_from(LEASE.as_micros()).unwrap_or(i64::MAX));
        let taken = act(&self.app, move |cx| lease::acquire(cx.tx, SUBJECT, &node, ttl, cx.now()))?;
        Ok(taken.map(|lease| Leased { fence: Some(lease.fence) }))
    }

    fn renew(&self, leased: &Leased) -> Result<(), Trouble> {
        let Some(fence) = leased.fence else { return Ok(()) };
        let node = self.node.clone();
        match act(&self.app, move |cx| lease::renew(cx.tx, SUBJECT, &node, fence, None, cx.now())) {
            Err(Trouble::Desk(error)) if error.code == Code::Conflict => Err(Trouble::Held),
            done => done.map(drop),
        }
    }

    fn unlease(&self, leased: &Leased) {
        let Some(fence) = leased.fence else { return };
        let node = self.node.clone();
        let released = act(&self.app, move |cx| {
            if lease::check(cx.tx, SUBJECT, &node, Some(fence), cx.now()).is_ok() {
                lease::release(cx.tx, SUBJECT, cx.now())?;
            }
            Ok(())
        });
        if let Err(trouble) = released {
            tracing::debug!(%trouble, "the lease on the bridge file ends by itself");
        }
    }
}

/// The right to hold the file; on SQLite the data directory's lock gives it.
struct Leased {
    fence: Option<i64>,
}

/// Locks the file for this desk, by a file beside it: SQLite's own locks are for everybody.
fn hold(path: &Path) -> Result<File, Trouble> {
    let mut name = path.file_name().map(std::ffi::OsStr::to_owned).unwrap_or_default();
    name.push(".deskmate-lock");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path.with_file_name(name))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(Trouble::Held),
        Err(std::fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Runs something of the desk's own in a transaction, as the edge that brings in the file's rows.
fn act<T: Send + 'static>(app: &App, mut act: impl FnMut(&mut Cx<'_, '_>) -> deskmate_core::Result<T> + Send + 'static) -> Result<T, Trouble> {
    let desk = app.desk.clone();
    Ok(app.desk.db.write_blocking(move |tx| act(&mut desk.cx(tx, Actor::system(), Surface::File)))?)
}

/// Reads from the desk.
fn read<T: Send + 'static>(app: &App, read: impl FnMut(&mut Tx<'_>) -> deskmate_core::Result<T> + Send + 'static) -> Result<T, Trouble> {
    Ok(app.desk.db.read_blocking(read)?)
}
