//! Keeps a program that the desk speaks with over its standard streams, and ends all of it when the desk is done with it
//! or has died.
//!
//! ```text
//! the desk ──lifeline──▶ keep ──────────────▶ the program and whatever it starts
//!    └──────── standard streams ───────────────────┘
//! ```
//!
//! `keep` is the desk's own binary, started again with a hidden sub-command ([`enter`]). It touches no byte of what is
//! spoken: it only waits for the end of the program, and for the end of the lifeline, a pipe that closes with the desk
//! however that ends. Then the program has a moment to leave by itself, as its standard input is closed too, is asked to end
//! (TERM), and is ended (KILL) with its whole group and, on Linux, with every process that descends from it.
//!
//! Unlike a [`crate::sandbox`] this confines nothing: the program has the rights of the desk's own account.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process_group, waitid};

/// The hidden sub-command by which the binary is started again.
pub const SUB_COMMAND: &str = "keep-child";
const KEEP: &str = "keep";
const BECOME: &str = "become";

/// The codes of a program that could not be started, as shells have them.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// How long a program may take to leave by itself once its standard input is closed.
const LEAVE: Duration = Duration::from_secs(1);
/// How long to go on ending what is left.
const SWEEP: Duration = Duration::from_secs(2);

/// Starts programs with a keeper.
#[derive(Clone, Debug)]
pub struct Keeper {
    executable: PathBuf,
    grace: Duration,
    umask: Option<u32>,
}

impl Keeper {
    /// Starts the running binary again, which must call [`enter`] first in `main`. A program that is asked to end has so
    /// long for it.
    pub fn new(grace: Duration) -> io::Result<Self> {
        Ok(Self { executable: own_binary()?, grace, umask: None })
    }

    /// Starts another binary that calls [`enter`].
    #[must_use]
    pub fn with_executable(self, executable: impl Into<PathBuf>) -> Self {
        Self { executable: executable.into(), ..self }
    }

    /// With which rights new files of the program are made, where that is not as the desk's own.
    #[must_use]
    pub fn with_umask(self, umask: Option<u32>) -> Self {
        Self { umask, ..self }
    }

    /// The command that starts a program. Its streams, environment and directory are the caller's to set.
    pub fn command(&self, program: &OsStr, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<(Command, Lifeline)> {
        let (theirs, ours) = io::pipe()?;
        // Only this end goes to the keeper. The other one closes with this process, whatever else it starts meanwhile.
        fcntl_setfd(&theirs, FdFlags::empty())?;
        let mut command = Command::new(&self.executable);
        command.arg(SUB_COMMAND).arg(KEEP).arg(theirs.as_raw_fd().to_string()).arg(self.grace.as_millis().to_string());
        command.arg(self.umask.map_or_else(|| "-".to_owned(), |umask| format!("{umask:o}"))).arg(program).args(args);
        // A key pressed on the desk's terminal is for the desk.
        command.process_group(0);
        Ok((command, Lifeline { ours, theirs }))
    }
}

/// What a kept program lives by, before it is started.
#[derive(Debug)]
pub struct Lifeline {
    ours: PipeWriter,
    theirs: PipeReader,
}

impl Lifeline {
    /// The command was started. The program ends when what this gives is dropped.
    pub fn started(self) -> Held {
        drop(self.theirs);
        Held { _line: self.ours }
    }
}

/// A program is kept as long as this value is.
#[derive(Debug)]
pub struct Held {
    _line: PipeWriter,
}

fn own_binary() -> io::Result<PathBuf> {
    // The running binary itself, also when a newer one has taken its place on disk.
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// To be called first in `main`, before any thread is started, with the program's own arguments. Answers `None` for an
/// ordinary start; otherwise this process was a keeper and `main` returns what is answered.
pub fn enter(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter().skip(1);
    if args.next()? != SUB_COMMAND {
        return None;
    }
    let words: Vec<OsString> = args.collect();
    let done = match words.split_first() {
        Some((stage, words)) if stage == KEEP => keep(words),
        Some((stage, words)) if stage == BECOME => become_program(words),
        _ => Err((1, "this is started by the desk only".to_owned())),
    };
    Some(done.unwrap_or_else(|(code, why)| {
        drop(writeln!(io::stderr(), "deskmate: {why}"));
        ExitCode::from(code)
    }))
}

type Failed = (u8, String);

fn told(what: &'static str) -> impl FnOnce(io::Error) -> Failed {
    move |error| (1, format!("{what}: {error}"))
}

fn number<N: std::str::FromStr>(word: Option<&OsString>) -> Result<N, Failed> {
    word.and_then(|word| word.to_str()?.parse().ok()).ok_or_else(|| (1, "this is started by the desk only".to_owned()))
}

/// What can happen to a kept program.
enum Event {
    /// It has ended; nobody has taken leave of it yet.
    Ended,
    /// The desk has died, or wants no more.
    Gone,
}

/// The stage that stays beside the program.
fn keep(words: &[OsString]) -> Result<ExitCode, Failed> {
    let line: u32 = number(words.first())?;
    let grace = Duration::from_millis(number(words.get(1))?);
    // Opened anew, because a number alone cannot safely be made a file again.
    let line = File::open(format!("/dev/fd/{line}")).map_err(told("the lifeline"))?;
    pass_nothing_on();
    adopt_orphans().map_err(told("adopting orphans"))?;
    let mut command = Command::new(own_binary().map_err(told("this binary"))?);
    command.arg(SUB_COMMAND).arg(BECOME).arg(getpid().as_raw_nonzero().to_string()).args(words.iter().skip(2));
    let mut child = command.process_group(0).spawn().map_err(told("starting"))?;
    let leader = Pid::from_child(&child);
    let (ended, events) = channel();
    let gone = ended.clone();
    thread::spawn(move || {
        // While nobody has taken leave of it, its number is nobody else's, and neither is its group's.
        while waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).is_err_and(|error| error == rustix::io::Errno::INTR) {}
        ended.send(Event::Ended)
    });
    thread::spawn(move || {
        drop((&line).read(&mut [0]));
        gone.send(Event::Gone)
    });
    if !matches!(events.recv(), Ok(Event::Ended)) && !has_ended(&events, LEAVE) {
        let _ = kill_process_group(leader, Signal::TERM);
        has_ended(&events, grace);
    }
    let _ = kill_process_group(leader, Signal::KILL);
    let status = take_leave(&mut child)?;
    sweep(leader);
    Ok(ExitCode::from(status))
}

fn has_ended(events: &Receiver<Event>, within: Duration) -> bool {
    let until = Instant::now() + within;
    loop {
        match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => return true,
            Ok(Event::Gone) => {}
            Err(RecvTimeoutError::Timeout) => return false,
        }
    }
}

/// How it ended, as shells say it.
fn take_leave(child: &mut Child) -> Result<u8, Failed> {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait().map_err(told("waiting"))?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

/// The stage that becomes the program, in a group of its own.
fn become_program(words: &[OsString]) -> Result<ExitCode, Failed> {
    let parent: i32 = number(words.first())?;
    bind_to_parent().map_err(told("binding to the keeper"))?;
    if getppid().is_none_or(|now| now.as_raw_nonzero().get() != parent) {
        return Err((1, "the keeper is gone".to_owned()));
    }
    if let Some(umask) = words.get(1).and_then(|word| u32::from_str_radix(word.to_str()?, 8).ok()) {
        rustix::process::umask(Mode::from_bits_truncate(umask));
    }
    let program = words.get(2).ok_or_else(|| (1, "no program is named".to_owned()))?;
    let why = Command::new(program).args(words.iter().skip(3)).exec();
    let code = if why.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
    Err((code, format!("{} cannot be started: {why}", program.display())))
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod system {
    use super::{Duration, Instant, Pid, SWEEP, Signal, getpid, io, thread};
    use crate::sandbox::linux::tree;

    /// Whoever loses its parent among the program's processes becomes a child of the keeper, and is found by it.
    pub(super) fn adopt_orphans() -> io::Result<()> {
        Ok(rustix::process::set_child_subreaper(Some(getpid()))?)
    }

    /// The program ends with its keeper, also when that is killed.
    pub(super) fn bind_to_parent() -> io::Result<()> {
        Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
    }

    /// What else is open, such as files of the desk's other children, is not for the program.
    pub(super) fn pass_nothing_on() {
        close_fds::set_fds_cloexec(3, &[]);
    }

    /// Ends those that left the program's group.
    pub(super) fn sweep(leader: Pid) {
        let until = Instant::now() + SWEEP;
        while !tree::end_descendants() && Instant::now() < until {
            tree::take_leave(leader);
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod system {
    use super::{Pid, io};

    pub(super) fn adopt_orphans() -> io::Result<()> {
        Ok(())
    }

    pub(super) fn bind_to_parent() -> io::Result<()> {
        Ok(())
    }

    pub(super) fn pass_nothing_on() {}

    pub(super) fn sweep(_: Pid) {}
}

use system::{adopt_orphans, bind_to_parent, pass_nothing_on, sweep};
