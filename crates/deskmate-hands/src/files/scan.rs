//! The fast walk over a whole tree: several threads, each entry looked at once relative to its open folder, memory that does
//! not grow with the tree. Entries come in no particular order.
//!
//! A thread goes down the tree by itself and holds one handle a level; only when another one has nothing to do does it hand
//! over a folder, or a handful of names of a long one. So there is never a list of what is still to be done.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::fs::{Mode, RawDir};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::digest::{Stopped, digest_name};
use super::fault::{Code, Fault};
use super::identity::{Identity, Kind};
use super::path::{self, DEPTH_MAX};
use super::root::Root;
use super::sys;
use super::watch::{Progress, Watch};

/// Threads at most.
const THREADS_MAX: usize = 16;
/// Entries that a thread gathers before it hands them to the caller.
const GATHERED: usize = 512;
/// Names of a long folder that are handed over at once.
const HANDFUL: usize = 256;

/// What to scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScanSpec {
    /// The folder; empty for the root.
    pub path: String,
    /// Levels of folders.
    pub depth: usize,
    /// Also names that begin with a dot, and what lies in them.
    pub hidden: bool,
    /// Takes the SHA-256 of every file.
    pub digest: bool,
    /// Threads; 0 for as many as there are cores.
    pub threads: usize,
}

impl Default for ScanSpec {
    fn default() -> Self {
        Self { path: String::new(), depth: DEPTH_MAX, hidden: true, digest: false, threads: 0 }
    }
}

/// One entry of a scan.
#[derive(Debug, Clone, Copy)]
pub struct Scanned<'a> {
    /// The path beneath the root.
    pub path: &'a str,
    /// What it is; of a file with its digest if that was asked for and could be had.
    pub identity: Identity,
}

/// What a scan saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Entries of any kind.
    pub entries: u64,
    /// Regular files.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Length of all files together.
    pub bytes: u64,
    /// Names that are not UTF-8.
    pub unnamed: u64,
    /// Folders and files that could not be read.
    pub unreadable: u64,
    /// Folders that lie too deep to be walked into.
    pub too_deep: u64,
    /// Files that were written to while they were read: they have no digest.
    pub unsettled: u64,
}

/// What is called for each entry.
type Each<'a> = &'a mut (dyn FnMut(Scanned<'_>) -> ControlFlow<()> + Send);

/// Calls back for every entry beneath a folder: from one thread at a time, in no particular order. `Break` ends the scan.
pub fn scan(root: &Root, spec: &ScanSpec, watch: &Watch<'_>, each: Each<'_>) -> Result<Summary, Fault> {
    let (folder, place) = root.look_into(root.path(&spec.path)?)?;
    let threads = if spec.threads == 0 { thread::available_parallelism().map_or(2, Into::into) } else { spec.threads }.clamp(1, THREADS_MAX);
    let shared = Shared {
        root,
        spec,
        watch,
        work: Mutex::new(Work { jobs: vec![Job::Folder(Level { folder: Arc::new(folder), place: place.as_str().to_owned(), depth: 1 })], ..Work::default() }),
        more: Condvar::new(),
        hungry: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        each: Mutex::new(each),
        entries: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    let summary = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| Worker::new(&shared).run())).collect();
        let mut summary = Worker::new(&shared).run();
        for other in others {
            match other.join() {
                Ok(part) => summary.add(&part),
                // Only the caller's own function can have done this: it is the caller's to hear.
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        summary
    });
    if watch.is_cancelled() {
        return Err(root.fault(Code::Cancelled, place.as_str(), "cancelled"));
    }
    watch.tell(Progress { entries: summary.entries, bytes: summary.bytes });
    Ok(summary)
}

impl Summary {
    fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.files += other.files;
        self.folders += other.folders;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.unnamed += other.unnamed;
        self.unreadable += other.unreadable;
        self.too_deep += other.too_deep;
        self.unsettled += other.unsettled;
    }
}

/// An open folder, where it is and how deep.
struct Level {
    folder: Arc<OwnedFd>,
    place: String,
    depth: usize,
}

enum Job {
    Folder(Level),
    Names(Level, Vec<CString>),
}

#[derive(Default)]
struct Work {
    jobs: Vec<Job>,
    /// Threads that do a job, and threads that wait for one.
    busy: usize,
    waiting: usize,
}

struct Shared<'a> {
    root: &'a Root,
    spec: &'a ScanSpec,
    watch: &'a Watch<'a>,
    work: Mutex<Work>,
    more: Condvar,
    /// Threads that wait and for which no job lies ready.
    hungry: AtomicUsize,
    stop: AtomicBool,
    each: Mutex<Each<'a>>,
    entries: AtomicU64,
    bytes: AtomicU64,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared<'_> {
    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.watch.is_cancelled()
    }

    fn is_hungry(&self) -> bool {
        self.hungry.load(Ordering::Relaxed) > 0
    }

    /// Hands a job to a thread that waits for one.
    fn give(&self, job: Job) {
        let mut work = lock(&self.work);
        work.jobs.push(job);
        self.count(&work);
        self.more.notify_one();
    }

    /// The next job; none when all are done, which is when nobody is left who could give one.
    fn take(&self) -> Option<(Job, Turn<'_>)> {
        let mut work = lock(&self.work);
        loop {
            if let Some(job) = work.jobs.pop() {
                work.busy += 1;
                return Some((job, Turn { work: &self.work, more: &self.more }));
            }
            if work.busy == 0 {
                self.more.notify_all();
                return None;
            }
            work.waiting += 1;
            self.count(&work);
            work = self.more.wait(work).unwrap_or_else(PoisonError::into_inner);
            work.waiting -= 1;
            self.count(&work);
        }
    }

    fn count(&self, work: &Work) {
        self.hungry.store(work.waiting.saturating_sub(work.jobs.len()), Ordering::Relaxed);
    }
}

/// A job that is being done. It ends also when the caller's function panics, so that nobody waits for it for ever.
struct Turn<'a> {
    work: &'a Mutex<Work>,
    more: &'a Condvar,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut work = lock(self.work);
        work.busy -= 1;
        if work.busy == 0 {
            self.more.notify_all();
        }
    }
}

struct Worker<'a> {
    shared: &'a Shared<'a>,
    /// What was gathered: all paths in one text, and for each where it ends.
    paths: String,
    found: Vec<(usize, Identity)>,
    /// Space for names, one for each level.
    spaces: Vec<Vec<MaybeUninit<u8>>>,
    block: Vec<u8>,
    summary: Summary,
    told: Summary,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared<'a>) -> Self {
        Self { shared, paths: String::new(), found: Vec::new(), spaces: Vec::new(), block: Vec::new(), summary: Summary::default(), told: Summary::default() }
    }

    fn run(mut self) -> Summary {
        while let Some((job, turn)) = self.shared.take() {
            match job {
                Job::Folder(mut level) => self.folder(&mut level),
                Job::Names(mut level, names) => {
                    for name in &names {
                        if self.shared.stops() {
                            break;
                        }
                        self.entry(&mut level, name);
                    }
                }
            }
            self.hand_over();
            drop(turn);
        }
        self.summary
    }

    fn folder(&mut self, level: &mut Level) {
        let mut space = self.spaces.pop().unwrap_or_else(|| vec![MaybeUninit::uninit(); sys::NAMES_BUFFER]);
        let folder = Arc::clone(&level.folder);
        let mut names = RawDir::new(folder.as_fd(), &mut space);
        let mut handful: Vec<CString> = Vec::new();
        // With digests every file is work worth handing over, without them only a long folder's names are.
        let (most, from) = if self.shared.spec.digest { (1, 0) } else { (HANDFUL, HANDFUL) };
        let mut count = 0_usize;
        while let Some(name) = names.next() {
            if self.shared.stops() {
                break;
            }
            match name {
                Ok(name) if sys::is_dots(name.file_name()) => {}
                Ok(name) => {
                    count += 1;
                    if count > from && (!handful.is_empty() || self.shared.is_hungry()) {
                        handful.push(name.file_name().to_owned());
                        if handful.len() >= most {
                            let next = Level { folder: Arc::clone(&folder), place: level.place.clone(), depth: level.depth };
                            self.shared.give(Job::Names(next, std::mem::take(&mut handful)));
                        }
                    } else {
                        self.entry(level, name.file_name());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::NOENT) => break,
                Err(_) => {
                    self.summary.unreadable += 1;
                    break;
                }
            }
        }
        for name in &handful {
            self.entry(level, name);
        }
        self.spaces.push(space);
    }

    fn entry(&mut self, level: &mut Level, name: &CStr) {
        let Ok(text) = name.to_str() else {
            self.summary.unnamed += 1;
            return;
        };
        let shared = self.shared;
        let is_hidden = text.starts_with('.');
        if is_hidden && !shared.spec.hidden {
            return;
        }
        let length = level.place.len();
        path::push(&mut level.place, text);
        let is_ours = is_hidden && (path::is_temporary(text) || path::in_trash(&level.place));
        if !is_ours && !shared.root.withheld().matches(&level.place) {
            self.look(level, name);
        }
        level.place.truncate(length);
    }

    fn look(&mut self, level: &mut Level, name: &CStr) {
        // Gone since its name was read.
        let Ok(mut identity) = sys::look(level.folder.as_fd(), name) else { return };
        self.summary.entries += 1;
        match identity.kind {
            Kind::File => {
                self.summary.files += 1;
                self.summary.bytes = self.summary.bytes.saturating_add(identity.size);
                if self.shared.spec.digest {
                    match digest_name(level.folder.as_fd(), name, &mut self.block, self.shared.watch) {
                        Ok(whole) => identity = whole,
                        Err(Stopped::Cancelled) => return,
                        Err(Stopped::Changed) => self.summary.unsettled += 1,
                        Err(Stopped::Errno(_)) => self.summary.unreadable += 1,
                    }
                }
            }
            Kind::Folder => self.summary.folders += 1,
            Kind::Link | Kind::Other => {}
        }
        self.paths.push_str(&level.place);
        self.found.push((self.paths.len(), identity));
        if self.found.len() >= GATHERED {
            self.hand_over();
        }
        if identity.kind == Kind::Folder && level.depth < self.shared.spec.depth {
            self.go_into(level, name);
        }
    }

    fn go_into(&mut self, level: &mut Level, name: &CStr) {
        if level.depth >= DEPTH_MAX {
            self.summary.too_deep += 1;
            return;
        }
        match rustix::fs::openat(level.folder.as_fd(), name, sys::FOLDER, Mode::empty()) {
            Ok(folder) => {
                let folder = Arc::new(folder);
                if self.shared.is_hungry() {
                    self.shared.give(Job::Folder(Level { folder, place: level.place.clone(), depth: level.depth + 1 }));
                    return;
                }
                let mut inner = Level { folder, place: std::mem::take(&mut level.place), depth: level.depth + 1 };
                self.folder(&mut inner);
                level.place = inner.place;
            }
            // Something else stands there by now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(_) => self.summary.unreadable += 1,
        }
    }

    /// Hands what was gathered to the caller.
    fn hand_over(&mut self) {
        if self.found.is_empty() {
            return;
        }
        let mut each = lock(&self.shared.each);
        let mut start = 0;
        for (end, identity) in self.found.drain(..) {
            // Asked again for each: another thread may have been told to stop meanwhile.
            if self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            let path = self.paths.get(start..end).unwrap_or_default();
            if each(Scanned { path, identity }).is_break() {
                self.shared.stop.store(true, Ordering::Relaxed);
            }
            start = end;
        }
        drop(each);
        self.found.clear();
        self.paths.clear();
        let (entries, bytes) = (self.summary.entries - self.told.entries, self.summary.bytes - self.told.bytes);
        self.told = self.summary;
        let entries = self.shared.entries.fetch_add(entries, Ordering::Relaxed) + entries;
        let bytes = self.shared.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.shared.watch.tell(Progress { entries, bytes });
    }
}
