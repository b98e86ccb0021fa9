//! A place for something: an open folder and a name in it. Going from one to another without replacing anything, across
//! devices too; making the folders on the way.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::super::fault::{Code, Fault};
use super::super::identity::{Identity, Kind};
use super::super::path::{self, RelPath};
use super::super::root::Root;
use super::super::sys;
use super::{across, copy};

/// An open folder and a name in it; the path is for telling people.
pub(super) struct Spot {
    folder: OwnedFd,
    pub(super) name: String,
    pub(super) path: String,
}

impl Spot {
    pub(super) fn new(folder: OwnedFd, name: &str, path: &str) -> Self {
        Self { folder, name: name.to_owned(), path: path.to_owned() }
    }

    /// The place of something in a folder that is there.
    pub(super) fn find(root: &Root, path: &RelPath) -> Result<Self, Fault> {
        let (folder, name) = parts(root, path)?;
        Ok(Self::new(root.open_folder(folder)?, name, path.as_str()))
    }

    /// The place for something new: folders that are missing are made, one after the other, and told.
    pub(super) fn make(root: &Root, path: &RelPath) -> Result<(Self, Made), Fault> {
        let (folder, name) = parts(root, path)?;
        let mut made = Made::default();
        match make_folders(root, folder, &mut made) {
            Ok(handle) => Ok((Self::new(handle, name, path.as_str()), made)),
            Err(fault) => {
                made.take_back(root);
                Err(fault)
            }
        }
    }

    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    pub(super) fn look(&self) -> Result<Identity, Errno> {
        sys::look(self.folder(), self.name.as_str())
    }

    /// Another name in the same folder.
    pub(super) fn beside(&self, root: &Root, name: &str) -> Result<Self, Fault> {
        let folder = self.folder.try_clone().map_err(|_| root.fault(Code::Io, &self.path, "too many open files"))?;
        Ok(Self::new(folder, name, &self.path))
    }

    /// A free temporary name in the same folder; what an earlier attempt left there is removed.
    pub(super) fn temporary(&self, root: &Root, tag: &str) -> Result<Self, Fault> {
        let spot = self.beside(root, &path::temporary(tag))?;
        if spot.look().is_ok() {
            copy::remove_all(root, &spot)?;
        }
        Ok(spot)
    }

    /// Removes the name of a file or link.
    pub(super) fn unlink(&self, root: &Root) -> Result<(), Fault> {
        rustix::fs::unlinkat(self.folder(), self.name.as_str(), AtFlags::empty()).map_err(|errno| root.errno(&self.path, errno))
    }

    /// Brings the names of the folder to the disk.
    pub(super) fn sync(&self, root: &Root) -> Result<(), Fault> {
        sync(root, self.folder(), &self.path)
    }

    /// Brings all that was changed on the folder's file system to the disk: folders that were made on the way, and the
    /// trash's note, which are left for later in bulk.
    pub(super) fn settle(&self, root: &Root) -> Result<(), Fault> {
        rustix::fs::syncfs(self.folder()).map_err(|errno| root.errno(&self.path, errno))
    }
}

/// Brings a file or folder to the disk, unless that is done for many steps at once.
pub(super) fn sync(root: &Root, handle: BorrowedFd<'_>, path: &str) -> Result<(), Fault> {
    let device = |handle| sys::look_at(handle).map(|found| found.dev);
    if root.syncs() || device(handle) != device(root.folder()) {
        rustix::fs::fsync(handle).map_err(|errno| root.errno(path, errno))?;
    }
    Ok(())
}

fn parts<'a>(root: &Root, path: &'a RelPath) -> Result<(&'a str, &'a str), Fault> {
    path.split().ok_or_else(|| root.fault(Code::Invalid, "", "the root itself can't be changed"))
}

/// Folders that were made on the way, the outermost first.
#[derive(Default)]
pub(super) struct Made(pub(super) Vec<String>);

impl Made {
    /// Removes them again if they are empty; what others put there meanwhile stays.
    pub(super) fn take_back(&self, root: &Root) {
        for folder in self.0.iter().rev() {
            let Some((above, name)) = path::split(folder) else { continue };
            let Ok(above) = root.open_folder(above) else { continue };
            let _ = rustix::fs::unlinkat(above.as_fd(), name, AtFlags::REMOVEDIR);
        }
    }
}

/// Opens a folder, and makes what is missing of it.
pub(super) fn make_folders(root: &Root, folder: &str, made: &mut Made) -> Result<OwnedFd, Fault> {
    let mut here = root.open_folder("")?;
    let mut place = String::new();
    for part in folder.split('/').filter(|part| !part.is_empty()) {
        path::push(&mut place, part);
        here = match sys::open_beneath(here.as_fd(), part, sys::FOLDER) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(here.as_fd(), part, Mode::from_raw_mode(0o777)) {
                    Ok(()) => made.0.push(place.clone()),
                    // Somebody else made it in this moment.
                    Err(Errno::EXIST) => {}
                    Err(errno) => return Err(root.errno(&place, errno)),
                }
                sync(root, here.as_fd(), &place)?;
                sys::open_beneath(here.as_fd(), part, sys::FOLDER)
            }
            opened => opened,
        }
        .map_err(|errno| root.errno(&place, errno))?;
    }
    Ok(here)
}

/// Moves a thing to a place where nothing is yet. If it turns out afterwards that something else was moved, because it was
/// put there in the last moment, that goes back.
pub(super) fn relocate(root: &Root, from: &Spot, to: &Spot, meant: &Identity, tag: &str) -> Result<Identity, Fault> {
    match sys::rename_new(from.folder(), &from.name, to.folder(), &to.name) {
        Ok(()) => {}
        Err(Errno::XDEV) => return across::across(root, from, to, meant, tag),
        Err(Errno::NOENT) if from.look().is_err() => return Err(root.errno(&from.path, Errno::NOENT)),
        Err(errno) => return Err(root.errno(&to.path, errno)),
    }
    let found = to.look();
    if !found.is_ok_and(|found| found.is_same_thing(meant)) {
        let _ = sys::rename_new(to.folder(), &to.name, from.folder(), &from.name);
        return Err(root.fault(Code::Changed, &from.path, "was swapped for something else in this moment"));
    }
    to.sync(root)?;
    from.sync(root)?;
    found.map_err(|errno| root.errno(&to.path, errno))
}

/// Refuses to take a folder away that holds something withheld: in another place the same globs might not cover it. That
/// something is there is all that can be learned. `place` is where the globs see the folder: of one in the trash, where it
/// came from.
pub(super) fn carries_nothing_withheld(root: &Root, spot: &Spot, kind: Kind, place: &str) -> Result<(), Fault> {
    if kind != Kind::Folder || root.withheld().is_empty() {
        return Ok(());
    }
    let folder = sys::open_beneath(spot.folder(), &spot.name, sys::FOLDER).map_err(|errno| root.errno(&spot.path, errno))?;
    let mut place = place.to_owned();
    if holds_withheld(root, folder.as_fd(), &mut place, 0)? {
        return Err(root.fault(Code::Denied, &spot.path, "the folder holds something that this root withholds"));
    }
    Ok(())
}

fn holds_withheld(root: &Root, folder: BorrowedFd<'_>, place: &mut String, depth: usize) -> Result<bool, Fault> {
    if depth > path::DEPTH_MAX {
        return Err(root.fault(Code::TooDeep, place, "folders are nested too deep"));
    }
    let mut last = None;
    loop {
        let (names, more) = sys::names_after(folder, last.as_deref(), 4_096).map_err(|errno| root.errno(place, errno))?;
        for name in &names {
            let length = place.len();
            path::push(place, &name.to_string_lossy());
            let held = root.withheld().matches(place)
                || match rustix::fs::openat(folder, name.as_c_str(), sys::FOLDER, Mode::empty()) {
                    Ok(inner) => holds_withheld(root, inner.as_fd(), place, depth + 1)?,
                    Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => false,
                    Err(errno) => return Err(root.errno(place, errno)),
                };
            place.truncate(length);
            if held {
                return Ok(true);
            }
        }
        match names.into_iter().next_back() {
            Some(name) if more => last = Some(name),
            _ => return Ok(false),
        }
    }
}
