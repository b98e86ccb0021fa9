//! The desk's side of a sandbox: finds out what the machine can enforce, starts the stages and waits for the answer.

use super::report::Report;
use super::scratch::Scratch;
use super::spec::OTHER;
use super::wire::{self, Answer, Job};
use super::{Captured, Error, Network, Outcome, SUB_COMMAND, SUPPORTED, Spec, Stop, Stream};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

/// How long the supervisor may take beyond the time of the program, to set up and to clear up.
const GRACE: Duration = Duration::from_secs(20);
/// How long a question about the machine may take.
const PROBE: Duration = Duration::from_secs(10);

/// Whether programs run in namespaces of their own: a view of the file system that holds only what was granted, processes
/// that see only each other, a network without anything in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespaces {
    /// Where the machine has them. Without, a program still cannot reach what it was not given, but it can find out
    /// whether a path exists, and cannot change modes, owners and times of files or start sessions of its own.
    #[default]
    WhereAvailable,
    /// Refuse to run without them.
    Required,
    /// Not even where the machine has them.
    Never,
}

/// What is told of what a program writes, piece by piece.
pub type Said = Box<dyn FnMut(Stream, &[u8]) + Send>;

/// Runs programs in sandboxes.
#[derive(Debug)]
pub struct Runner {
    executable: PathBuf,
    scratch: PathBuf,
    namespaces: Namespaces,
    report: OnceLock<Report>,
}

impl Default for Runner {
    fn default() -> Self {
        // The running binary itself, also when a newer one has taken its place on disk.
        Self { executable: "/proc/self/exe".into(), scratch: std::env::temp_dir(), namespaces: Namespaces::default(), report: OnceLock::new() }
    }
}

impl Runner {
    /// Starts the running binary again, which must call [`super::enter`] first in `main`; private directories are made
    /// where the system keeps temporary files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts another binary that calls [`super::enter`].
    pub fn with_executable(mut self, path: impl Into<PathBuf>) -> Self {
        self.executable = path.into();
        self
    }

    /// Makes private directories here.
    pub fn with_scratch(mut self, path: impl Into<PathBuf>) -> Self {
        self.scratch = path.into();
        self
    }

    /// Whether to use namespaces.
    pub fn with_namespaces(mut self, namespaces: Namespaces) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// What this machine can enforce. It is tried out once and kept.
    pub fn capabilities(&self) -> Result<Report, Error> {
        if let Some(report) = self.report.get() {
            return Ok(report.clone());
        }
        let report = self.probe()?;
        Ok(self.report.get_or_init(|| report).clone())
    }

    /// What a run would lack on this machine, in words; nothing when programs can be confined.
    pub fn missing(&self, network: Network) -> Result<Vec<String>, Error> {
        Ok(self.capabilities()?.missing(self.namespaces, network))
    }

    /// Runs a program with this input and waits for its end. Everything that it started has ended too when this returns,
    /// and its private directory is gone. Blocks; to end it earlier, keep a clone of `stop`.
    pub fn run(&self, spec: &Spec, input: &[u8], stop: &Stop) -> Result<Outcome, Error> {
        self.start_and_wait(spec, input, stop, None)
    }

    /// The same for a program that takes long: what it writes is handed on while it runs, up to the bound of its output, and
    /// the outcome holds the ends of both streams. `said` must be quick, because the program waits for it.
    pub fn follow(&self, spec: &Spec, input: &[u8], stop: &Stop, said: Said) -> Result<Outcome, Error> {
        self.start_and_wait(spec, input, stop, Some(said))
    }

    fn start_and_wait(&self, spec: &Spec, input: &[u8], stop: &Stop, said: Option<Said>) -> Result<Outcome, Error> {
        spec.check(input)?;
        let report = self.capabilities()?;
        let missing = report.missing(self.namespaces, spec.network);
        if !missing.is_empty() {
            return Err(Error::Refused { missing });
        }
        let namespaces = report.uses_namespaces(self.namespaces);
        let (spec, links) = resolve(spec)?;
        spec.check(input)?;
        let scratch = Scratch::make(&self.scratch, &spec.files)?;
        let wait = Duration::from_millis(spec.limits.wall_ms.saturating_add(spec.limits.grace_ms)).saturating_add(GRACE);
        let stage = match (namespaces, spec.network) {
            (true, Network::None) => &["outer", "none", "supervise"][..],
            (true, Network::Port(_) | Network::Allowed) => &["outer", "allowed", "supervise"],
            (false, _) => &["supervise"],
        };
        let job = Job {
            spec: Spec { files: Vec::new(), ..spec },
            private: scratch.private.clone(),
            view: namespaces.then(|| scratch.view.clone()),
            links,
            others: others(),
            followed: said.is_some(),
        };
        let mut started = self.start(stage)?;
        let (answers, answer) = mpsc::channel();
        if let Some(mut from) = started.stdout.take() {
            thread::spawn(move || answers.send(receive(&mut from, said)));
        }
        let said = tail(started.stderr.take());
        if let Some(mut to) = started.stdin.take() {
            let (stop, input) = (stop.clone(), input.to_vec());
            thread::spawn(move || {
                // A stage that has ended already says why by itself.
                if wire::send(&mut to, &job).and_then(|()| wire::send_bytes(&mut to, &input)).is_ok() {
                    stop.hold(to);
                }
            });
        }
        let answer = answer.recv_timeout(wait);
        stop.let_go();
        if answer.is_err() {
            // The lifeline is cut: the supervisor has a while to end what it started before it is ended itself.
            for _ in 0..50 {
                if started.try_wait()?.is_some() {
                    break;
                }
                thread::sleep(Duration::from_millis(100));
            }
            drop(started.kill());
        }
        started.wait()?;
        let why = || said.recv_timeout(Duration::from_secs(1)).unwrap_or_default().trim().to_owned();
        match answer {
            Ok(Ok((Answer::Ran { ended, wall_ms, cpu_ms, peak_memory, stdout_total, stderr_total }, stdout, stderr))) => {
                Ok(Outcome { ended, stdout: captured(stdout, stdout_total), stderr: captured(stderr, stderr_total), wall_ms, cpu_ms, peak_memory, namespaces })
            }
            Ok(Ok((Answer::NotRun { why }, ..))) => Err(Error::Setup { why }),
            Ok(Ok((Answer::Said { .. }, ..))) => Err(Error::Lost { why: why() }),
            Ok(Err(error)) => Err(Error::Lost { why: format!("{error}; {}", why()) }),
            Err(_) => Err(Error::Lost { why: format!("no answer within {} s; {}", wait.as_secs(), why()) }),
        }
    }

    fn start(&self, stage: &[&str]) -> io::Result<Child> {
        let mut command = Command::new(&self.executable);
        command.arg(SUB_COMMAND).args(stage).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A key pressed on the desk's terminal is for the desk.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn()
    }

    fn probe(&self) -> Result<Report, Error> {
        let mut report = Report { machine: format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH), ..Report::default() };
        if !SUPPORTED {
            return Ok(report);
        }
        report.root = is_root();
        let found = self.ask(&["probe"])?;
        let (landlock, refused): (u32, Option<String>) = serde_json::from_str(&found).map_err(|_| Error::Lost { why: found })?;
        report.landlock = landlock;
        report.seccomp = refused.is_none();
        report.seccomp_why = refused;
        let scratch = Scratch::make(&self.scratch, &[])?;
        match self.ask(&["outer", "none", "probe-view", &scratch.view.to_string_lossy()])?.as_str() {
            "ok" => report.namespaces = true,
            why => report.namespaces_why = Some(why.to_owned()),
        }
        Ok(report)
    }

    /// Starts a stage that only answers in words, on either of its outputs.
    fn ask(&self, stage: &[&str]) -> Result<String, Error> {
        let mut started = self.start(stage)?;
        let (out, said) = (tail(started.stdout.take()), tail(started.stderr.take()));
        let out = out.recv_timeout(PROBE);
        drop(started.kill());
        started.wait()?;
        let said = said.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        Ok(format!("{}{said}", out.unwrap_or_default()).trim().to_owned())
    }
}

fn receive(from: &mut impl Read, mut said: Option<Said>) -> io::Result<(Answer, Vec<u8>, Vec<u8>)> {
    loop {
        match wire::receive(from)? {
            Answer::Said { stream } => {
                let bytes = wire::receive_bytes(from)?;
                if let Some(said) = &mut said {
                    said(stream, &bytes);
                }
            }
            answer => return Ok((answer, wire::receive_bytes(from)?, wire::receive_bytes(from)?)),
        }
    }
}

fn captured(bytes: Vec<u8>, total: u64) -> Captured {
    Captured { truncated: (bytes.len() as u64) < total, bytes, total }
}

/// Reads what a stage says, to its end, and keeps a few lines.
fn tail(from: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (send, said) = mpsc::channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut from) = from {
            drop(from.by_ref().take(4096).read_to_end(&mut kept));
            drop(io::copy(&mut from, &mut io::sink()));
        }
        send.send(String::from_utf8_lossy(&kept).into_owned())
    });
    said
}

/// The same spec with real paths, and the links that were named: bounds that go by name could be led elsewhere.
fn resolve(spec: &Spec) -> Result<(Spec, Vec<(PathBuf, PathBuf)>), Error> {
    let mut links = Vec::new();
    let meant = spec.meant.clone();
    let mut real = |path: &PathBuf| -> Result<PathBuf, Error> {
        let target = fs::canonicalize(path).map_err(|error| Error::Invalid { what: format!("{}: {error}", path.display()) })?;
        if target != *path && meant.iter().any(|meant| meant.path == *path) {
            return Err(Error::Invalid { what: OTHER.to_owned() });
        }
        let parent = path.parent().unwrap_or(path);
        if target != *path && fs::canonicalize(parent).is_ok_and(|real| real == parent) {
            links.push((path.clone(), target.clone()));
        }
        Ok(target)
    };
    let mut spec = spec.clone();
    spec.read_only = spec.read_only.iter().map(&mut real).collect::<Result<_, _>>()?;
    spec.read_write = spec.read_write.iter().map(&mut real).collect::<Result<_, _>>()?;
    spec.program = real(&spec.program)?;
    spec.directory = spec.directory.as_ref().map(&mut real).transpose()?;
    for paths in [&mut spec.read_only, &mut spec.read_write] {
        paths.sort();
        paths.dedup();
    }
    links.sort();
    links.dedup();
    let within = |path: &Path, paths: &[PathBuf]| paths.iter().any(|granted| path.starts_with(granted));
    if !within(&spec.program, &spec.read_only) {
        return Err(Error::Invalid { what: format!("{}: a program lies in what may be read and executed", spec.program.display()) });
    }
    if let Some(directory) = &spec.directory
        && !within(directory, &spec.read_only)
        && !within(directory, &spec.read_write)
    {
        return Err(Error::Invalid { what: format!("{}: a program starts in what it was granted", directory.display()) });
    }
    Ok((spec, links))
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn is_root() -> bool {
    rustix::process::getuid().is_root() || rustix::process::geteuid().is_root()
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn is_root() -> bool {
    false
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn others() -> u64 {
    super::linux::processes_of_this_account()
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn others() -> u64 {
    0
}
