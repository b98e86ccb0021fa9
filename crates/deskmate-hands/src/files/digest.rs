//! SHA-256 of whole files: never of a part, and never of two states of a file taken for one.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Advice, Mode};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::fault::{Code, Fault};
use super::identity::{Digest, Identity, Kind};
use super::root::Root;
use super::sys;
use super::watch::Watch;

/// Read at a time: large enough that the calls cost nothing, small enough to stay in the cache.
pub(super) const BLOCK: usize = 256 * 1024;

/// The SHA-256 of bytes in memory.
pub fn digest_of(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// What stopped a digest.
pub(super) enum Stopped {
    Errno(Errno),
    Cancelled,
    /// The file was written to while it was read.
    Changed,
}

/// The digest of an open file from its first byte to its last, however long it is by now.
fn digest_file(file: BorrowedFd<'_>, size: u64, buffer: &mut Vec<u8>, watch: &Watch<'_>) -> Result<(Digest, u64), Stopped> {
    // One byte more than a short file has, so that its end is seen at once.
    let wanted = usize::try_from(size.saturating_add(1)).unwrap_or(BLOCK).clamp(4_096, BLOCK);
    if buffer.len() < wanted {
        buffer.resize(wanted, 0);
    }
    let mut hash = Sha256::new();
    let mut at = 0_u64;
    loop {
        if watch.is_cancelled() {
            return Err(Stopped::Cancelled);
        }
        match rustix::io::pread(file, buffer.as_mut_slice(), at) {
            Ok(0) => return Ok((Digest(hash.finalize().into()), at)),
            Ok(read) => {
                hash.update(buffer.get(..read).unwrap_or_default());
                at += read as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Stopped::Errno(errno)),
        }
    }
}

/// Opens a name in a folder if it is a regular file, and takes its digest; its identity is the same before and after.
pub(super) fn digest_name<P: rustix::path::Arg>(folder: BorrowedFd<'_>, name: P, buffer: &mut Vec<u8>, watch: &Watch<'_>) -> Result<Identity, Stopped> {
    let file = rustix::fs::openat(folder, name, sys::FILE, Mode::empty()).map_err(Stopped::Errno)?;
    let before = sys::look_at(file.as_fd()).map_err(Stopped::Errno)?;
    if before.kind != Kind::File {
        return Err(Stopped::Changed);
    }
    if before.size > BLOCK as u64 {
        let _ = rustix::fs::fadvise(file.as_fd(), 0, None, Advice::Sequential);
    }
    let (digest, read) = digest_file(file.as_fd(), before.size, buffer, watch)?;
    let after = sys::look_at(file.as_fd()).map_err(Stopped::Errno)?;
    if !before.is_unchanged(&after) || read != after.size {
        return Err(Stopped::Changed);
    }
    Ok(Identity { sha256: Some(digest), ..after })
}

/// The identity of a name with its digest, as a fault if that can't be had.
pub(super) fn identify(root: &Root, folder: BorrowedFd<'_>, name: &str, path: &str) -> Result<Identity, Fault> {
    digest_name(folder, name, &mut Vec::new(), &Watch::default()).map_err(|stopped| match stopped {
        Stopped::Errno(errno) => root.errno(path, errno),
        Stopped::Cancelled => root.fault(Code::Cancelled, path, "cancelled"),
        Stopped::Changed => root.fault(Code::Changed, path, "was written to while it was read"),
    })
}
