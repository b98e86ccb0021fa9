//! What the desk and the stages of a sandbox tell each other, over the pipes that they have anyway: a length, then JSON or
//! bytes.

use super::{Ended, Spec, Stream};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// From the desk to the supervisor, and on to the program's own process. The input of the program follows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// What is given; its paths are resolved.
    pub(super) spec: Spec,
    /// The private directory.
    pub(super) private: PathBuf,
    /// Where the view of the file system is built; none without namespaces.
    pub(super) view: Option<PathBuf>,
    /// Symbolic links that the view has, and where they point: what was granted by the name of a link.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// Processes of this account that are there already: the kernel counts them too.
    pub(super) others: u64,
    /// Whether the desk is told what it writes while it runs.
    pub(super) followed: bool,
}

/// From the supervisor to the desk, when all has ended. The kept output and errors follow: of a program that is followed, only
/// their ends.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It goes on, and has written the bytes that follow; only of programs that are followed.
    Said { stream: Stream },
    /// The program ran.
    Ran { ended: Ended, wall_ms: u64, cpu_ms: u64, peak_memory: u64, stdout_total: u64, stderr_total: u64 },
    /// It was not run.
    NotRun { why: String },
}

/// More than this in one piece is a mistake or an attack.
const LONGEST: u64 = 256 << 20;

pub(super) fn send_bytes(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)
}

pub(super) fn send<T: Serialize>(to: &mut impl Write, what: &T) -> io::Result<()> {
    send_bytes(to, &serde_json::to_vec(what).map_err(io::Error::other)?)
}

pub(super) fn receive_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::Error::other("a piece that is too long"));
    }
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    serde_json::from_slice(&receive_bytes(from)?).map_err(io::Error::other)
}
