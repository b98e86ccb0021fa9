//! What can go wrong with a file, as a stable code and words. The words name the root and the path beneath it, never where
//! the root lies on the host.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// What kind of fault it is; stable, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The input itself is wrong: a path, a pattern, a number.
    Invalid,
    /// Not there, or withheld by the root: the two are not told apart.
    NotFound,
    /// The operating system does not allow it.
    Denied,
    /// A link leads out of the root.
    Escapes,
    /// A change would go through a symbolic link, or links lead in a circle.
    ThroughLink,
    /// A regular file was needed.
    NotAFile,
    /// A folder was needed.
    NotAFolder,
    /// More than the bound allows.
    TooLarge,
    /// Folders nested deeper than the bound allows.
    TooDeep,
    /// Something is at the target already.
    Exists,
    /// It is not what it was when the step was planned.
    Changed,
    /// The two places are on different devices, and this can't be done across them.
    CrossDevice,
    /// The root, or the file system, is read-only.
    ReadOnly,
    /// The name belongs to the desk: the trash, an audit file, a temporary file.
    Reserved,
    /// The folder is not empty.
    NotEmpty,
    /// The device or a quota is full.
    Full,
    /// The caller cancelled it.
    Cancelled,
    /// The file system can't do it.
    Unsupported,
    /// There is no way back from this step.
    Irreversible,
    /// Anything else that the operating system reports.
    Io,
}

/// A fault: its code, where, and what to tell people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The kind of fault.
    pub code: Code,
    /// The root's name.
    pub root: String,
    /// The path beneath the root; empty for the root itself.
    pub path: String,
    /// For people: root, path and reason.
    pub message: String,
}

/// Paths are shown up to here: a refused one may be of any length.
const SHOWN_MAX: usize = 300;

impl Fault {
    pub(super) fn new(code: Code, root: &str, path: &str, why: &str) -> Self {
        let path: String = path.chars().take(SHOWN_MAX).collect();
        let place = if path.is_empty() { root.to_owned() } else { format!("{root}: {path}") };
        Self { code, root: root.to_owned(), path, message: format!("{place}: {why}") }
    }

    pub(super) fn errno(root: &str, path: &str, errno: Errno) -> Self {
        let (code, why) = read_errno(errno);
        Self::new(code, root, path, &why)
    }
}

fn read_errno(errno: Errno) -> (Code, String) {
    let told = |code, why: &str| (code, why.to_owned());
    match errno {
        Errno::NOENT => told(Code::NotFound, "not found"),
        Errno::NOTDIR => told(Code::NotAFolder, "not a folder"),
        Errno::ISDIR => told(Code::NotAFile, "is a folder"),
        Errno::ACCESS | Errno::PERM => told(Code::Denied, "the operating system does not allow it"),
        Errno::LOOP => told(Code::ThroughLink, "goes through a symbolic link"),
        Errno::XDEV => told(Code::CrossDevice, "lies on another device"),
        Errno::EXIST => told(Code::Exists, "something is there already"),
        Errno::NOTEMPTY => told(Code::NotEmpty, "the folder is not empty"),
        Errno::NOSPC | Errno::DQUOT => told(Code::Full, "no space is left"),
        Errno::ROFS => told(Code::ReadOnly, "the file system is read-only"),
        Errno::NAMETOOLONG => told(Code::Invalid, "the name is too long"),
        Errno::FBIG => told(Code::TooLarge, "the file is too large"),
        Errno::OPNOTSUPP | Errno::NOSYS => told(Code::Unsupported, "the file system can't do this"),
        // Only the number's own words: they hold no path.
        other => (Code::Io, std::io::Error::from(other).to_string()),
    }
}
