//! What a program is given: this and nothing else.

use super::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// What a program is given. It always has a private directory besides, empty but for [`Spec::files`], which is removed
/// afterwards; `HOME` and `TMPDIR` point there unless the environment says otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    /// The program, by its absolute path; nothing is searched for. It must lie in what may be read.
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub args: Vec<Argument>,
    /// Where it starts; the private directory when nothing is said. It must lie in what was granted.
    pub directory: Option<PathBuf>,
    /// The whole environment besides `HOME` and `TMPDIR`: nothing is inherited.
    pub environment: BTreeMap<String, String>,
    /// Files and directories (with all beneath) that it may read and execute.
    pub read_only: Vec<PathBuf>,
    /// Files and directories (with all beneath) that it may read and change, but not execute unless it is said so.
    pub read_write: Vec<PathBuf>,
    /// What some of these paths stand for. Should one lead to something else by the time it is given, nothing runs.
    pub meant: Vec<Meant>,
    /// Whether it may execute what lies in [`Spec::read_write`]: what it wrote or built itself.
    pub execute: bool,
    /// Whether it sees its own processes in `/proc`, where it has namespaces of its own. Without them it sees none.
    pub own_proc: bool,
    /// Files that are put into the private directory before it starts.
    pub files: Vec<GivenFile>,
    /// Whether it may speak over the network.
    pub network: Network,
    /// How much it may use.
    pub limits: Limits,
}

/// An argument of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// As it is.
    Word(String),
    /// The path of one of [`Spec::files`], by its name: only the sandbox knows where the private directory is.
    Given(String),
}

impl<T: Into<String>> From<T> for Argument {
    fn from(word: T) -> Self {
        Self::Word(word.into())
    }
}

/// What a granted path stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meant {
    /// The path: absolute, and without links.
    pub path: PathBuf,
    /// The device.
    pub dev: u64,
    /// The inode.
    pub ino: u64,
}

/// A file that is put into the private directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GivenFile {
    /// Its name, without directories.
    pub name: String,
    /// What it holds.
    pub content: Vec<u8>,
}

/// Whether a program may speak over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// No sockets of any family.
    None,
    /// TCP to this port, of whatever machine, and nothing else: no other port, no UDP, nothing that listens.
    Port(u16),
    /// TCP and UDP as the desk itself could, its own loopback included. Unix sockets stay closed.
    Allowed,
}

/// How much a program may use.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Seconds of processor time, for each process.
    pub cpu_seconds: u64,
    /// Milliseconds from start to end.
    pub wall_ms: u64,
    /// Bytes of memory that all its processes hold together. Watched many times a second, not on every allocation.
    pub memory: u64,
    /// Bytes of addresses that one process may map: an allocation beyond it fails at once.
    pub address_space: u64,
    /// Processes and threads at one time.
    pub processes: u64,
    /// Files that one process has open at one time.
    pub open_files: u64,
    /// Bytes of one file that it writes.
    pub file_size: u64,
    /// Bytes that are kept of its output, and as many of its errors. The rest is counted and dropped.
    pub output: u64,
    /// Bytes that all files together hold in what it may change, and in its private directory. Looked at several times a
    /// second, not at every write.
    pub disk: u64,
    /// Files and directories there.
    pub files: u64,
    /// Milliseconds that it has to end by itself, after it was asked to, when it is stopped or takes too long; with none it is
    /// ended at once.
    pub grace_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu_seconds: 30,
            wall_ms: 30_000,
            memory: 512 << 20,
            address_space: 4 << 30,
            processes: 32,
            open_files: 256,
            file_size: 64 << 20,
            output: 256 << 10,
            disk: u64::MAX,
            files: u64::MAX,
            grace_ms: 0,
        }
    }
}

/// Said of a path that leads to something else by now; without it, as whoever asked may not know it.
pub(super) const OTHER: &str = "a folder that was to be given is not any more the one that was meant";

/// More input or more given files than this are refused.
const INPUT: usize = 64 << 20;
/// More output than this is never kept.
const OUTPUT: u64 = 64 << 20;

impl Spec {
    /// A program that is given nothing yet but the default limits.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            directory: None,
            environment: BTreeMap::new(),
            read_only: Vec::new(),
            read_write: Vec::new(),
            meant: Vec::new(),
            execute: false,
            own_proc: false,
            files: Vec::new(),
            network: Network::None,
            limits: Limits::default(),
        }
    }

    /// Refuses something else in the place of what was meant. Called with what is held already, which no name leads away.
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) fn is_meant(&self, path: &Path, handle: impl std::os::fd::AsFd) -> Result<(), String> {
        let Some(meant) = self.meant.iter().find(|meant| meant.path == path) else { return Ok(()) };
        let found = rustix::fs::fstat(handle).map_err(|errno| format!("looking at what is given: {errno}"))?;
        if (found.st_dev, found.st_ino) == (meant.dev, meant.ino) { Ok(()) } else { Err(OTHER.to_owned()) }
    }

    /// Refuses what cannot be meant, before anything is started.
    pub(super) fn check(&self, input: &[u8]) -> Result<(), Error> {
        let invalid = |what: String| Err(Error::Invalid { what });
        for path in self.read_only.iter().chain(&self.read_write).chain(&self.directory).chain([&self.program]) {
            if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
                return invalid(format!("{}: a path is absolute and without `..`", path.display()));
            }
            if path.parent().is_none() {
                return invalid("the root of the file system cannot be granted".into());
            }
        }
        // Rights add up: what lies in something that may be changed may be changed too.
        for path in &self.read_only {
            if let Some(open) = self.read_write.iter().find(|open| path.starts_with(open)) {
                return invalid(format!("{} cannot be read-only within {}, which may be changed", path.display(), open.display()));
            }
        }
        for (name, value) in &self.environment {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return invalid(format!("environment: {name:?} cannot be set"));
            }
        }
        for argument in &self.args {
            match argument {
                Argument::Word(word) if word.contains('\0') => return invalid("an argument holds a zero byte".into()),
                Argument::Given(name) if !self.files.iter().any(|file| file.name == *name) => return invalid(format!("no file {name:?} was given")),
                _ => {}
            }
        }
        for file in &self.files {
            let parts: Vec<_> = Path::new(&file.name).components().collect();
            if !matches!(parts.as_slice(), [Component::Normal(_)]) || file.name.contains('\0') || file.name.contains('/') {
                return invalid(format!("{:?} is not the name of a file", file.name));
            }
        }
        let given = self.files.iter().fold(input.len(), |sum, file| sum.saturating_add(file.content.len()));
        if given > INPUT {
            return invalid(format!("input and files hold {given} bytes; {INPUT} are allowed"));
        }
        let limits = &self.limits;
        if limits.output > OUTPUT {
            return invalid(format!("limits.output: at most {OUTPUT} bytes can be kept"));
        }
        let least = [limits.cpu_seconds, limits.wall_ms, limits.memory, limits.address_space, limits.processes];
        if least.contains(&0) {
            return invalid("limits: nothing runs in no time, no memory or no process".into());
        }
        Ok(())
    }
}
