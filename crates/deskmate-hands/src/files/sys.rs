//! The kernel's calls that the rest is made of: open beneath a handle without following links, look at a name, read the
//! names of a folder, rename without replacing, exchange two names.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, SeekFrom, StatxFlags};
use rustix::io::{Errno, Result};

use super::identity::{Identity, Kind};

/// To look into a folder.
pub(super) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// To read a file. Should a FIFO be there by now, opening it does not wait.
pub(super) const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// To make a file that is not there yet.
pub(super) const NEW_FILE: OFlags = OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Names read from the kernel at a time, in bytes.
pub(super) const NAMES_BUFFER: usize = 32 * 1024;

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
const LOOK: StatxFlags =
    StatxFlags::TYPE.union(StatxFlags::MODE).union(StatxFlags::INO).union(StatxFlags::SIZE).union(StatxFlags::MTIME).union(StatxFlags::BTIME);
const RETRIES: usize = 16;

/// Opens a clean path beneath a folder in one step, without following any link; the folder itself for an empty path.
pub(super) fn open_beneath(folder: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd> {
    let target = if path.is_empty() { "." } else { path };
    // No link is followed anyway; said twice, the kernel calls a link at the end "not a folder".
    let once = if flags.contains(OFlags::DIRECTORY) { flags.difference(OFlags::NOFOLLOW) } else { flags };
    for _ in 0..RETRIES {
        match rustix::fs::openat2(folder, target, once, Mode::empty(), BENEATH) {
            // A rename elsewhere got in the way.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS) => return open_by_steps(folder, path, flags),
            done => return done,
        }
    }
    Err(Errno::AGAIN)
}

/// The same for kernels without `openat2`: as no part is `..` and no link is followed, each folder lies in the one before.
pub(super) fn open_by_steps(folder: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd> {
    let Some((folders, name)) = super::path::split(path) else {
        return rustix::fs::openat(folder, c".", flags, Mode::empty());
    };
    let mut at: Option<OwnedFd> = None;
    for part in folders.split('/').filter(|part| !part.is_empty()) {
        let here = at.as_ref().map_or(folder, AsFd::as_fd);
        let next = rustix::fs::openat(here, part, OFlags::PATH | FOLDER, Mode::empty());
        at = Some(next.map_err(|errno| link_or(here, part, errno))?);
    }
    let here = at.as_ref().map_or(folder, AsFd::as_fd);
    rustix::fs::openat(here, name, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(|errno| link_or(here, name, errno))
}

/// The kernel says "not a folder" of a link when a folder was asked for; `openat2` says "loop", and so do we.
fn link_or(folder: BorrowedFd<'_>, name: &str, errno: Errno) -> Errno {
    let is_link = errno == Errno::NOTDIR && look(folder, name).is_ok_and(|found| found.kind == Kind::Link);
    if is_link { Errno::LOOP } else { errno }
}

/// What a name in a folder stands for; a link for itself.
pub(super) fn look<P: rustix::path::Arg>(folder: BorrowedFd<'_>, name: P) -> Result<Identity> {
    statx(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// What an open handle stands for.
pub(super) fn look_at(handle: BorrowedFd<'_>) -> Result<Identity> {
    statx(handle, c"", AtFlags::EMPTY_PATH)
}

fn statx<P: rustix::path::Arg>(folder: BorrowedFd<'_>, name: P, flags: AtFlags) -> Result<Identity> {
    let found = rustix::fs::statx(folder, name, flags | AtFlags::NO_AUTOMOUNT, LOOK)?;
    let kind = match FileType::from_raw_mode(found.stx_mode.into()) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        _ => Kind::Other,
    };
    let born = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    Ok(Identity {
        dev: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        ino: found.stx_ino,
        kind,
        mode: u32::from(found.stx_mode) & 0o7777,
        size: found.stx_size,
        mtime_ns: nanoseconds(found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec),
        born_ns: born.then(|| nanoseconds(found.stx_btime.tv_sec, found.stx_btime.tv_nsec)),
        sha256: None,
    })
}

/// A number of the mount that an open folder is in: within one of them things are renamed, between two they are copied. The
/// device where the kernel does not say.
pub(super) fn mount_of(folder: BorrowedFd<'_>) -> Result<u64> {
    let found = rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT, StatxFlags::MNT_ID)?;
    if StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID) {
        return Ok(found.stx_mnt_id);
    }
    Ok(rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor))
}

fn nanoseconds(seconds: i64, fraction: u32) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(fraction.into())
}

/// Calls back for each name in the open folder, from its first on, in the kernel's order; stops when told `false`.
pub(super) fn each_name(folder: BorrowedFd<'_>, mut visit: impl FnMut(&CStr) -> bool) -> Result<()> {
    rustix::fs::seek(folder, SeekFrom::Start(0))?;
    let mut buffer = vec![MaybeUninit::uninit(); NAMES_BUFFER];
    let mut names = RawDir::new(folder, &mut buffer);
    while let Some(name) = names.next() {
        match name {
            Ok(name) => {
                if !is_dots(name.file_name()) && !visit(name.file_name()) {
                    break;
                }
            }
            Err(Errno::INTR) => {}
            // The folder was removed meanwhile: no more names.
            Err(Errno::NOENT) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

pub(super) fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

/// The first names of a folder in byte order that come after `after`, at most `most` of them, and whether more follow. A
/// folder of any length is read in bounded memory this way.
pub(super) fn names_after(folder: BorrowedFd<'_>, after: Option<&CStr>, most: usize) -> Result<(Vec<CString>, bool)> {
    let mut first: BinaryHeap<CString> = BinaryHeap::new();
    let mut more = false;
    each_name(folder, |name| {
        if after.is_some_and(|after| name.to_bytes().cmp(after.to_bytes()) != Ordering::Greater) {
            return true;
        }
        if first.len() < most {
            first.push(name.to_owned());
            return true;
        }
        more = true;
        if first.peek().is_some_and(|last| name.to_bytes() < last.to_bytes()) {
            first.pop();
            first.push(name.to_owned());
        }
        true
    })?;
    Ok((first.into_sorted_vec(), more))
}

/// Renames without replacing anything. Where the file system has no such call: a file is linked to its new name, which
/// fails if that exists, and then unlinked; a folder takes the place of an empty one that was made for it.
pub(super) fn rename_new(from: BorrowedFd<'_>, name: &str, to: BorrowedFd<'_>, new_name: &str) -> Result<()> {
    match rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => rename_new_by_link(from, name, to, new_name),
        done => done,
    }
}

pub(super) fn rename_new_by_link(from: BorrowedFd<'_>, name: &str, to: BorrowedFd<'_>, new_name: &str) -> Result<()> {
    if look(from, name)?.kind != Kind::Folder {
        rustix::fs::linkat(from, name, to, new_name, AtFlags::empty())?;
        return rustix::fs::unlinkat(from, name, AtFlags::empty());
    }
    rustix::fs::mkdirat(to, new_name, Mode::RWXU)?;
    rustix::fs::renameat(from, name, to, new_name).inspect_err(|_| {
        let _ = rustix::fs::unlinkat(to, new_name, AtFlags::REMOVEDIR);
    })
}

/// Exchanges two names atomically.
pub(super) fn exchange(one: BorrowedFd<'_>, name: &str, other: BorrowedFd<'_>, other_name: &str) -> Result<()> {
    rustix::fs::renameat_with(one, name, other, other_name, RenameFlags::EXCHANGE)
}

/// Opens the folder of a root, by the path that the operator gave; here links are followed, as it is the operator's word.
pub(super) fn open_root(path: &Path) -> Result<OwnedFd> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a folder by a path that no link is on, and none is followed.
pub(super) fn open_plainly(path: &Path) -> Result<OwnedFd> {
    let beneath = path.strip_prefix("/").ok().and_then(Path::to_str).ok_or(Errno::INVAL)?;
    let top = rustix::fs::open(c"/", OFlags::PATH | FOLDER, Mode::empty())?;
    open_beneath(top.as_fd(), beneath, FOLDER)
}

/// Where an open folder is by now, through no link. Where the kernel does not say, the path by which it was opened is resolved, and
/// must lead there.
pub(super) fn path_of(folder: BorrowedFd<'_>, path: &Path) -> Result<PathBuf> {
    let told = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd())).ok();
    let mut told = told.into_iter().chain(std::fs::canonicalize(path).ok());
    let is_it = |path: &PathBuf| open_plainly(path).is_ok_and(|there| place(rustix::fs::fstat(there)) == place(rustix::fs::fstat(folder)));
    told.find(is_it).ok_or(Errno::NOENT)
}

/// Whether a path on the host leads to an open folder.
pub(super) fn is_at(folder: BorrowedFd<'_>, path: &Path) -> bool {
    place(rustix::fs::stat(path)) == place(rustix::fs::fstat(folder))
}

fn place(found: Result<rustix::fs::Stat>) -> Option<(u64, u64)> {
    found.ok().map(|found| (found.st_dev, found.st_ino))
}
