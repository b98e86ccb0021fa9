//! What a command line would do: a line in the shell's own grammar becomes acts, each with a verb and what it is done to.
//! Nothing is run and nothing is looked up, so what only shows when it runs is `unknown`.
//!
//! - [`parse`], [`words`] and [`redirects`]: the grammar; [`syntax`]: what they make.
//! - [`walk`]: commands in commands, pipes, directories, redirections.
//! - [`programs`], [`scripts`], [`git`]: what single programs do with their arguments; [`tables`]: which are known.
//! - [`looking`]: which only look, and with which [`options`].

mod git;
mod looking;
mod options;
mod parse;
mod programs;
mod redirects;
mod scripts;
mod syntax;
mod tables;
mod walk;
mod words;

use serde::Serialize;

/// The longest line that is looked at, and how much the lines inside it may have together.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// What an act does, the least first. Of a line the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Looks at files, or at nothing.
    FileRead,
    /// Looks at the history of a project.
    VcsRead,
    /// Runs a program with what that program does.
    ProcessRun,
    /// Speaks to another machine.
    NetFetch,
    /// Makes or changes files.
    FileWrite,
    /// Changes the history of a project, or brings it elsewhere.
    VcsWrite,
    /// Brings in software that others wrote.
    PackageInstall,
    /// Deletes files.
    FileDelete,
    /// Changes the machine: rights, services, processes of others.
    SystemChange,
    /// Only shows when it runs.
    Unknown,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::FileRead,
        Self::VcsRead,
        Self::ProcessRun,
        Self::NetFetch,
        Self::FileWrite,
        Self::VcsWrite,
        Self::PackageInstall,
        Self::FileDelete,
        Self::SystemChange,
        Self::Unknown,
    ];

    /// The name that rules match.
    pub fn name(self) -> &'static str {
        match self {
            Self::FileRead => "file.read",
            Self::VcsRead => "vcs.read",
            Self::ProcessRun => "process.run",
            Self::NetFetch => "net.fetch",
            Self::FileWrite => "file.write",
            Self::VcsWrite => "vcs.write",
            Self::PackageInstall => "package.install",
            Self::FileDelete => "file.delete",
            Self::SystemChange => "system.change",
            Self::Unknown => "unknown",
        }
    }

    /// Whether it only looks.
    pub fn only_reads(self) -> bool {
        matches!(self, Self::FileRead | Self::VcsRead)
    }
}

impl Serialize for Verb {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What an act is done to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// As it is written.
    pub shown: String,
    /// Every place that it may be, if that is known: absolute, without `.` and `..`, patterns as they are written.
    pub places: Option<Vec<String>>,
}

/// One thing that a line would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellAct {
    /// What it does.
    pub verb: Verb,
    /// The program that does it, if it is known.
    pub program: String,
    /// To what.
    pub targets: Vec<Target>,
    /// Whether it goes into folders.
    pub is_recursive: bool,
    /// Whether it runs with more rights than the caller has.
    pub is_raised: bool,
    /// Whether it shows what may hold secrets, such as the environment.
    pub is_secret: bool,
    /// Why it is not known, where that is so.
    pub why: Option<&'static str>,
}

impl ShellAct {
    /// An act without any target.
    fn new(verb: Verb, program: &str) -> Self {
        Self { verb, program: program.to_owned(), targets: Vec::new(), is_recursive: false, is_raised: false, is_secret: false, why: None }
    }

    /// A look at one thing.
    pub fn look(target: Target) -> Self {
        Self { targets: vec![target], ..Self::new(Verb::FileRead, "") }
    }

    /// An act of which nobody knows what it does.
    pub fn unknown(program: &str, why: &'static str) -> Self {
        Self { why: Some(why), ..Self::new(Verb::Unknown, program) }
    }
}

/// Everything that a line would do when it is run in a folder; `None` where nobody knows in which.
pub fn acts(line: &str, folder: Option<&str>) -> Vec<ShellAct> {
    if line.len() > LINE_BYTES_MAX {
        return vec![ShellAct::unknown("", "the line is too long to be looked at")];
    }
    let mut walk = walk::Walk::new(folder);
    walk.line(line, 0, parse::Grammar::Extended);
    walk.done()
}

/// Puts a path beneath a folder, without `.` and `..`. A path that climbs above the root stays there, as it does when used.
pub fn joined(folder: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
