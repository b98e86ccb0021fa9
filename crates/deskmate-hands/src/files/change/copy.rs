//! Copying with mode, times and a check of what arrived; comparing; removing what is ours to remove. Extended
//! attributes and access lists are not copied, and neither is that two names are one file or that a file has holes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Gid, Mode, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::super::digest::{self, BLOCK};
use super::super::fault::{Code, Fault};
use super::super::identity::{Digest, Identity, Kind};
use super::super::path::DEPTH_MAX;
use super::super::root::Root;
use super::super::sys;
use super::spot::{Spot, sync};
use super::step::ONLY_FILES;

/// Copies a file or link to a free name, checks it, and answers what it is now. Mode and time are kept.
pub(super) fn copy_one(root: &Root, from: &Spot, to: &Spot, meant: &Identity) -> Result<Identity, Fault> {
    match meant.kind {
        Kind::File => copy_file(root, from, to, meant, false),
        Kind::Link => copy_link(root, from, to, meant),
        Kind::Folder | Kind::Other => Err(root.fault(Code::NotAFile, &from.path, ONLY_FILES)),
    }
}

/// A new file with this content, brought to the disk.
pub(super) fn write_file(root: &Root, to: &Spot, content: &[u8], mode: Option<u32>) -> Result<OwnedFd, Fault> {
    let told = |errno| root.errno(&to.path, errno);
    let file = rustix::fs::openat(to.folder(), to.name.as_str(), sys::NEW_FILE, Mode::from_raw_mode(0o666)).map_err(told)?;
    let written = write_all(file.as_fd(), content).and_then(|()| match mode {
        // Nobody becomes somebody else by a file that an agent wrote.
        Some(mode) => rustix::fs::fchmod(file.as_fd(), Mode::from_raw_mode(mode & 0o777)),
        None => Ok(()),
    });
    written.map_err(told).and_then(|()| sync(root, file.as_fd(), &to.path)).inspect_err(|_| {
        let _ = to.unlink(root);
    })?;
    Ok(file)
}

fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn copy_file(root: &Root, from: &Spot, to: &Spot, meant: &Identity, keep_owner: bool) -> Result<Identity, Fault> {
    let changed = || root.fault(Code::Changed, &from.path, "is not what it was when this was planned");
    let told = |errno| root.errno(&from.path, errno);
    let source = rustix::fs::openat(from.folder(), from.name.as_str(), sys::FILE, Mode::empty()).map_err(told)?;
    if !sys::look_at(source.as_fd()).map_err(told)?.is_unchanged(meant) {
        return Err(changed());
    }
    let target = rustix::fs::openat(to.folder(), to.name.as_str(), sys::NEW_FILE, Mode::RUSR | Mode::WUSR).map_err(|errno| root.errno(&to.path, errno))?;
    let copied = copy_content(source.as_fd(), target.as_fd()).map_err(|errno| root.errno(&to.path, errno)).and_then(|read| {
        let after = sys::look_at(source.as_fd()).map_err(told)?;
        if !after.is_unchanged(meant) || meant.sha256.is_some_and(|meant| meant != read) {
            return Err(changed());
        }
        keep(source.as_fd(), target.as_fd(), meant, keep_owner).map_err(|errno| root.errno(&to.path, errno))?;
        sync(root, target.as_fd(), &to.path)?;
        // What is there now is read again, not what was meant to be written.
        let arrived = digest::identify(root, to.folder(), &to.name, &to.path)?;
        if arrived.sha256 == Some(read) { Ok(arrived) } else { Err(root.fault(Code::Io, &to.path, "the copy is not like its source")) }
    });
    copied.inspect_err(|_| {
        let _ = to.unlink(root);
    })
}

fn copy_content(source: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<Digest, Errno> {
    let mut block = vec![0; BLOCK];
    let mut hash = Sha256::new();
    loop {
        match rustix::io::read(source, block.as_mut_slice()) {
            Ok(0) => return Ok(Digest(hash.finalize().into())),
            Ok(read) => {
                let bytes = block.get(..read).unwrap_or_default();
                hash.update(bytes);
                write_all(target, bytes)?;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Gives a copy the mode and time of its source, and for a move across devices its owner, as far as that is allowed.
fn keep(source: BorrowedFd<'_>, target: BorrowedFd<'_>, meant: &Identity, keep_owner: bool) -> Result<(), Errno> {
    let mut mode = meant.mode & 0o777;
    if keep_owner {
        let owner = rustix::fs::fstat(source)?;
        let kept = rustix::fs::fchown(target, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)));
        // Bits that make somebody somebody else stay only with their owner.
        mode = if kept.is_ok() { meant.mode } else { mode };
    }
    rustix::fs::fchmod(target, Mode::from_raw_mode(mode))?;
    rustix::fs::futimens(target, &times(meant))
}

/// Gives a new file the owner of the one whose place it takes, as far as that is allowed.
pub(super) fn keep_owner(place: &Spot, file: BorrowedFd<'_>) {
    if let Ok(owner) = rustix::fs::statat(place.folder(), place.name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
        let _ = rustix::fs::fchown(file, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)));
    }
}

/// The time of last change as it was; that of last access is left to the system.
fn times(meant: &Identity) -> Timestamps {
    let changed = Timespec { tv_sec: meant.mtime_ns.div_euclid(1_000_000_000), tv_nsec: meant.mtime_ns.rem_euclid(1_000_000_000) };
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT }, last_modification: changed }
}

fn copy_link(root: &Root, from: &Spot, to: &Spot, meant: &Identity) -> Result<Identity, Fault> {
    let told = |errno| root.errno(&to.path, errno);
    let changed = || root.fault(Code::Changed, &from.path, "is not what it was when this was planned");
    let text = rustix::fs::readlinkat(from.folder(), from.name.as_str(), Vec::new()).map_err(|errno| match errno {
        // Something else than a link by now.
        Errno::INVAL => changed(),
        errno => root.errno(&from.path, errno),
    })?;
    if !from.look().is_ok_and(|found| found.is_unchanged(meant)) {
        return Err(changed());
    }
    rustix::fs::symlinkat(text.as_c_str(), to.folder(), to.name.as_str()).map_err(told)?;
    rustix::fs::utimensat(to.folder(), to.name.as_str(), &times(meant), AtFlags::SYMLINK_NOFOLLOW).map_err(told)?;
    to.look().map_err(told)
}

/// What is at a place, with the digest if it is a file.
pub(super) fn look_closely(root: &Root, spot: &Spot) -> Result<Identity, Fault> {
    let found = spot.look().map_err(|errno| root.errno(&spot.path, errno))?;
    if found.kind == Kind::File { digest::identify(root, spot.folder(), &spot.name, &spot.path) } else { Ok(found) }
}

/// The entries of a folder as places, in bounded portions.
fn each_inside(root: &Root, folder: &Spot, mut visit: impl FnMut(Spot) -> Result<(), Fault>) -> Result<(), Fault> {
    let told = |errno| root.errno(&folder.path, errno);
    let handle = sys::open_beneath(folder.folder(), &folder.name, sys::FOLDER).map_err(told)?;
    let mut last = None;
    loop {
        let (names, more) = sys::names_after(handle.as_fd(), last.as_deref(), 4_096).map_err(told)?;
        for name in &names {
            let name = name.to_str().map_err(|_| root.fault(Code::Invalid, &folder.path, "holds a name that is not UTF-8, and can't be copied"))?;
            let inner = handle.try_clone().map_err(|_| root.fault(Code::Io, &folder.path, "too many open files"))?;
            visit(Spot::new(inner, name, &folder.path))?;
        }
        match names.into_iter().next_back() {
            Some(name) if more => last = Some(name),
            _ => return Ok(()),
        }
    }
}

fn within_depth(root: &Root, spot: &Spot, depth: usize) -> Result<(), Fault> {
    if depth > DEPTH_MAX { Err(root.fault(Code::TooDeep, &spot.path, "folders are nested too deep")) } else { Ok(()) }
}

pub(super) fn copy_all(root: &Root, from: &Spot, to: &Spot, depth: usize) -> Result<(), Fault> {
    within_depth(root, from, depth)?;
    let told = |errno| root.errno(&to.path, errno);
    let source = from.look().map_err(|errno| root.errno(&from.path, errno))?;
    match source.kind {
        Kind::File => copy_file(root, from, to, &source, true).map(drop),
        Kind::Link => copy_link(root, from, to, &source).map(drop),
        Kind::Other => Err(root.fault(Code::Unsupported, &from.path, "holds a device, FIFO or socket, and can't go to another device")),
        Kind::Folder => {
            rustix::fs::mkdirat(to.folder(), to.name.as_str(), Mode::RWXU).map_err(told)?;
            let handle = sys::open_beneath(to.folder(), &to.name, sys::FOLDER).map_err(told)?;
            each_inside(root, from, |inner| {
                let target = Spot::new(handle.try_clone().map_err(|_| root.fault(Code::Io, &to.path, "too many open files"))?, &inner.name, &to.path);
                copy_all(root, &inner, &target, depth + 1)
            })?;
            let opened = sys::open_beneath(from.folder(), &from.name, sys::FOLDER).map_err(told)?;
            keep(opened.as_fd(), handle.as_fd(), &source, true).map_err(told)?;
            sync(root, handle.as_fd(), &to.path)
        }
    }
}

/// Whether two trees hold the same names, kinds, texts and contents. The other one may hold more where the first is only
/// what is `left` of a tree that is being removed.
pub(super) fn is_same_all(root: &Root, one: &Spot, other: &Spot, left: bool, depth: usize) -> Result<bool, Fault> {
    within_depth(root, one, depth)?;
    let told = |errno| root.errno(&one.path, errno);
    let (a, b) = (one.look().map_err(told)?, other.look().map_err(told)?);
    match (a.kind, b.kind) {
        (Kind::File, Kind::File) => {
            let digest = |spot: &Spot| digest::identify(root, spot.folder(), &spot.name, &spot.path).map(|found| found.sha256);
            Ok(a.size == b.size && digest(one)? == digest(other)?)
        }
        (Kind::Link, Kind::Link) => {
            let text = |spot: &Spot| rustix::fs::readlinkat(spot.folder(), spot.name.as_str(), Vec::new()).map_err(told);
            Ok(text(one)? == text(other)?)
        }
        (Kind::Folder, Kind::Folder) => {
            let mut same = true;
            let (mut here, mut there) = (0_u64, 0_u64);
            let handle = sys::open_beneath(other.folder(), &other.name, sys::FOLDER).map_err(told)?;
            each_inside(root, other, |_| {
                there += 1;
                Ok(())
            })?;
            each_inside(root, one, |inner| {
                here += 1;
                let twin = Spot::new(handle.try_clone().map_err(|_| root.fault(Code::Io, &one.path, "too many open files"))?, &inner.name, &other.path);
                same = same && twin.look().is_ok() && is_same_all(root, &inner, &twin, left, depth + 1)?;
                Ok(())
            })?;
            Ok(same && (left || here == there))
        }
        _ => Ok(false),
    }
}

/// Removes a thing with all that lies in it; only for what is ours: temporary files, copies that were checked, and what a
/// person purges. It stays on one device.
pub(super) fn remove_all(root: &Root, spot: &Spot) -> Result<(), Fault> {
    let told = |errno| root.errno(&spot.path, errno);
    let found = spot.look().map_err(told)?;
    remove_inside(spot.folder(), spot.name.as_str(), &found, 0).map_err(told)
}

fn remove_inside<P: rustix::path::Arg + Copy>(folder: BorrowedFd<'_>, name: P, found: &Identity, depth: usize) -> Result<(), Errno> {
    if found.kind != Kind::Folder {
        return rustix::fs::unlinkat(folder, name, AtFlags::empty());
    }
    // Deeper than any walk of ours goes: by then something is wrong.
    if depth > 4 * DEPTH_MAX {
        return Err(Errno::LOOP);
    }
    let inner = rustix::fs::openat(folder, name, sys::FOLDER, Mode::empty())?;
    loop {
        let (names, _) = sys::names_after(inner.as_fd(), None, 4_096)?;
        if names.is_empty() {
            break;
        }
        for name in &names {
            let next = match sys::look(inner.as_fd(), name.as_c_str()) {
                Ok(next) if next.dev != found.dev => return Err(Errno::XDEV),
                Ok(next) => next,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            };
            remove_inside(inner.as_fd(), name.as_c_str(), &next, depth + 1)?;
        }
    }
    rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
}
