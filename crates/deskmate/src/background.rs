//! Servers in the background: starting one, replacing one of an older version, and what they log to.
//!
//! Only a server that a program started, and that ends by itself, is ever stopped for a newer one. One in the
//! foreground or under a service manager belongs to somebody who will restart it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use deskmate_core::{Code, Error, Result, World, format_time};
use rustix::process::{Pid, Signal, kill_process};

use crate::config;
use crate::home::{Holder, Home};
use crate::world::Machine;

/// This program's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How long a server may take to start, and to finish what it is doing.
const START_WITHIN: Duration = Duration::from_secs(10);
const STOP_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);
const STOP_LOOK_EVERY: Duration = Duration::from_millis(20);
/// How many servers one caller starts before it gives up.
const STARTS_MAX: u32 = 2;
/// A log that is larger is put aside, in the place of the one put aside before.
const LOG_BYTES_MAX: u64 = 10 << 20;
/// How much of the log an error quotes.
const QUOTE_BYTES_MAX: u64 = 4_096;

/// What was found out about the running server's version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Older {
    /// None runs, or it is not older.
    No,
    /// It was, and it has ended.
    Stopped,
    /// It is, and it is not ours to stop.
    Kept(String),
}

/// Makes sure that a server of at least this version answers, starting one in the background if none does.
pub(crate) fn ensure_running(home: &Home) -> Result<()> {
    if replace_older(home)? != Older::Stopped && reachable(home) {
        return Ok(());
    }
    start(home)
}

/// Puts a server of this version in the place of an older one in the background; starts none where none runs. Answers whether it
/// started one.
pub(crate) fn renew(home: &Home) -> Result<bool> {
    if replace_older(home)? != Older::Stopped {
        return Ok(false);
    }
    start(home).map(|()| true)
}

/// Stops a server in the background that is older than this program. One that is not ours to stop gets a note on
/// standard error.
pub(crate) fn replace_older(home: &Home) -> Result<Older> {
    let Some(holder) = running_older(home) else { return Ok(Older::No) };
    if holder.background {
        stop(home, &holder)?;
        return Ok(Older::Stopped);
    }
    let note = format!("deskmate: the running server is version {}, this program is {VERSION}: restart the server when it suits you", holder.version);
    drop(writeln!(io::stderr(), "{note}"));
    Ok(Older::Kept(holder.version))
}

fn running_older(home: &Home) -> Option<Holder> {
    home.running().filter(|holder| is_older(&holder.version, VERSION))
}

/// The version of the running server, if it is older than this program.
pub(crate) fn older(home: &Home) -> Option<String> {
    running_older(home).map(|holder| holder.version)
}

/// Asks the holder of a data directory to end, and waits until it has.
pub(crate) fn stop(home: &Home, holder: &Holder) -> Result<()> {
    let nameless = || Error::new(Code::Internal, "the lock file names no process");
    let pid = i32::try_from(holder.pid).ok().and_then(Pid::from_raw).ok_or_else(nameless)?;
    kill_process(pid, Signal::TERM).map_err(|error| Error::new(Code::Unavailable, format!("process {}: {error}", holder.pid)))?;
    let started = Instant::now();
    while home.running().is_some_and(|now| now.pid == holder.pid) {
        if started.elapsed() > STOP_WITHIN {
            return Err(Error::new(Code::Unavailable, format!("process {} has not ended within {} s", holder.pid, STOP_WITHIN.as_secs())));
        }
        std::thread::sleep(STOP_LOOK_EVERY);
    }
    Ok(())
}

fn is_older(theirs: &str, ours: &str) -> bool {
    let numbers =
        |version: &str| -> Vec<u64> { version.split(['-', '+']).next().unwrap_or_default().split('.').map(|part| part.parse().unwrap_or(0)).collect() };
    numbers(theirs) < numbers(ours)
}

/// Whether both of the server's sockets take callers.
fn reachable(home: &Home) -> bool {
    [home.socket(), home.http_socket()].iter().all(|socket| UnixStream::connect(socket).is_ok())
}

/// Starts a server that outlives this program, and waits until it answers. Of several who want one at once, one starts
/// it, and all who wait are served by it.
fn start(home: &Home) -> Result<()> {
    let before = std::fs::metadata(home.log_file()).map_or(0, |found| found.len());
    let since = Instant::now();
    let mut starts = 0;
    let mut starting: Option<Starting> = None;
    while !reachable(home) {
        let held = home.running().is_some();
        let ended = starting.as_mut().is_some_and(Starting::ended);
        // One that ended may have met a server that was just going away; a second one meets nobody.
        if (ended && !held && starts >= STARTS_MAX) || since.elapsed() > START_WITHIN {
            let said = quote(home, before).unwrap_or_default();
            let why = if said.is_empty() { "it does not answer" } else { said.trim_end() };
            return Err(cannot(&why).hint(format!("{} tells more", home.log_file().display())));
        }
        if !held && (starting.is_none() || ended) {
            drop(starting.take());
            starting = spawn(home)?;
            starts += u32::from(starting.is_some());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn cannot(error: &dyn std::fmt::Display) -> Error {
    Error::new(Code::Unavailable, format!("the desk's server cannot be started: {error}"))
}

/// A server that was started here. While this lives, nobody else starts one.
struct Starting {
    child: Option<Child>,
    _lock: File,
}

impl Starting {
    fn ended(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Whenever it ends, somebody must take note of it, or it stays in the process table.
            std::thread::spawn(move || drop(child.wait()));
        }
    }
}

/// Starts a server, unless somebody else is at it. The server itself makes sure that there is only one.
fn spawn(home: &Home) -> Result<Option<Starting>> {
    home.create().map_err(|error| cannot(&error))?;
    let lock = File::create(home.path().join("start.lock")).map_err(|error| cannot(&error))?;
    if lock.try_lock().is_err() {
        return Ok(None);
    }
    let child = Command::new(program().map_err(|error| cannot(&error))?)
        .args(["up", "--background", "--home"])
        .arg(home.path())
        // Whoever starts it, in whatever folder: no folder of a project is held by it.
        .current_dir(home.path())
        .envs(config::store_from_here())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env_remove("DESKMATE_TOKEN")
        .spawn()
        .map_err(|error| cannot(&error))?;
    Ok(Some(Starting { child: Some(child), _lock: lock }))
}

/// This program's file. One that was replaced while it runs is named by the system with a note behind it; the new file
/// under the old name is the one to start.
pub(crate) fn program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let replaced = path.to_str().and_then(|text| text.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.filter(|_| !path.exists()).unwrap_or(path))
}

/// What the log says from a place on.
fn quote(home: &Home, from: u64) -> io::Result<String> {
    let mut file = File::open(home.log_file())?;
    let length = file.metadata()?.len();
    // A log that was put aside meanwhile begins anew.
    let from = if length < from { 0 } else { from };
    file.seek(SeekFrom::Start(from.max(length.saturating_sub(QUOTE_BYTES_MAX))))?;
    let mut bytes = Vec::new();
    file.take(QUOTE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Leaves the session of whoever started this process, so that closing a terminal does not end it.
pub(crate) fn detach() {
    // The first of its process group cannot leave, and need not: it is on its own already.
    let _left = rustix::process::setsid();
}

/// The log of a server in the background. One that has grown large is put aside, and only the newest of those is kept: however
/// much is logged, it takes twice the bound and a line.
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    size: u64,
    size_max: u64,
}

impl Log {
    pub(crate) fn open(home: &Home) -> io::Result<Self> {
        Self::with_bound(home.log_file(), LOG_BYTES_MAX)
    }

    fn with_bound(path: PathBuf, size_max: u64) -> io::Result<Self> {
        if std::fs::metadata(&path).is_ok_and(|found| found.len() > size_max) {
            put_aside(&path)?;
        }
        let file = log_file(&path)?;
        let size = file.metadata()?.len();
        Ok(Self { path, file, size, size_max })
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.size > self.size_max {
            // What cannot be put aside is written on: a log that is too long is better than none. It is tried again after as much more.
            self.size = 0;
            if let Ok(fresh) = put_aside(&self.path).and_then(|()| log_file(&self.path)) {
                self.file = fresh;
            }
        }
        let written = self.file.write(line)?;
        self.size += u64::try_from(written).unwrap_or(0);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn put_aside(path: &Path) -> io::Result<()> {
    std::fs::rename(path, path.with_extension("log.1"))
}

fn log_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Tells the log why a server did not start: nobody reads its standard error.
pub(crate) fn log_failure(home: &Home, text: &str) {
    let now = format_time(Machine::new(0).now());
    // Where even the log cannot be written there is nobody left to tell.
    drop(Log::open(home).and_then(|mut log| writeln!(log, "{now} ERROR {text}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (theirs, ours, older) in [("0.1.0", "0.2.0", true), ("0.9.9", "0.10.0", true), ("0.1.0", "0.1.0", false), ("1.0.0", "0.9.0", false)] {
            assert_eq!(is_older(theirs, ours), older, "{theirs} {ours}");
        }
        assert!(!is_older("0.2.0-rc.1", "0.2.0"));
    }

    #[test]
    fn a_log_has_a_bound_however_much_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.log");
        let mut log = Log::with_bound(path.clone(), 10_000).unwrap();
        for number in 0..5_000 {
            // As the logger does it: each line in one piece.
            log.write_all(format!("{number:05} refused\n").as_bytes()).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        let (older, newer) = (read("server.log.1"), read("server.log"));
        assert!(older.len() < 10_020 && newer.len() < 10_020, "{} {}", older.len(), newer.len());
        assert!(newer.ends_with("04999 refused\n"), "the newest lines are there");
        let both = older + &newer;
        let first: usize = both.get(..5).unwrap().parse().unwrap();
        assert!(both.lines().zip(first..5_000).all(|(line, number)| line == format!("{number:05} refused")), "and none is missing between");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
