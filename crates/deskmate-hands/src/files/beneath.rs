//! Opening beneath a root. Without links the kernel does it in one step. Where a link is in the way of *reading*, its text
//! is read and the path worked out here, part by part, so that what is withheld stays withheld behind a link; the outcome,
//! which holds no link any more, is opened like any other path.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::fault::{Code, Fault};
use super::identity::{Identity, Kind};
use super::path::{self, RelPath};
use super::root::Root;
use super::sys;

/// As many links as the kernel follows.
const LINKS_MAX: usize = 40;
/// How often a path is worked out again because a link was put in its way meanwhile.
const ATTEMPTS: usize = 8;

impl Root {
    /// Opens a folder for changing something in it: no links.
    pub(super) fn open_folder(&self, path: &str) -> Result<OwnedFd, Fault> {
        sys::open_beneath(self.folder(), path, sys::FOLDER).map_err(|errno| self.errno(path, errno))
    }

    /// Opens a folder for looking; also where it really lies.
    pub(super) fn look_into(&self, path: RelPath) -> Result<(OwnedFd, RelPath), Fault> {
        let (handle, place) = self.follow(path, sys::FOLDER)?;
        if self.reaches(place.as_str()) { Ok((handle, place)) } else { Err(self.not_found(place.as_str())) }
    }

    /// Opens the file for reading; also where it really lies, and what it is. Nothing but a regular file is opened.
    pub(super) fn look_at_file(&self, mut path: RelPath) -> Result<(OwnedFd, RelPath, Identity), Fault> {
        for _ in 0..ATTEMPTS {
            let (handle, place) = self.follow(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
            let seen = sys::look_at(handle.as_fd()).map_err(|errno| self.errno(place.as_str(), errno))?;
            // A handle of this sort may be one of a link.
            if seen.kind == Kind::Link {
                path = self.resolve(&place)?;
                continue;
            }
            if !self.reaches(place.as_str()) {
                return Err(self.not_found(place.as_str()));
            }
            self.must_be_file(place.as_str(), seen.kind)?;
            match sys::open_beneath(self.folder(), place.as_str(), sys::FILE) {
                Ok(file) => {
                    let opened = sys::look_at(file.as_fd()).map_err(|errno| self.errno(place.as_str(), errno))?;
                    self.must_be_file(place.as_str(), opened.kind)?;
                    return Ok((file, place, opened));
                }
                Err(Errno::LOOP) => path = place,
                Err(errno) => return Err(self.errno(place.as_str(), errno)),
            }
        }
        Err(self.errno(path.as_str(), Errno::LOOP))
    }

    fn must_be_file(&self, path: &str, kind: Kind) -> Result<(), Fault> {
        match kind {
            Kind::File => Ok(()),
            Kind::Folder => Err(self.errno(path, Errno::ISDIR)),
            Kind::Link | Kind::Other => Err(self.fault(Code::NotAFile, path, "not a regular file")),
        }
    }

    fn follow(&self, mut path: RelPath, flags: OFlags) -> Result<(OwnedFd, RelPath), Fault> {
        for _ in 0..ATTEMPTS {
            match sys::open_beneath(self.folder(), path.as_str(), flags) {
                Ok(handle) => return Ok((handle, path)),
                Err(Errno::LOOP) => path = self.resolve(&path)?,
                Err(Errno::NOTDIR) if !flags.contains(OFlags::DIRECTORY) => return Err(self.not_found(path.as_str())),
                Err(errno) => return Err(self.errno(path.as_str(), errno)),
            }
        }
        Err(self.errno(path.as_str(), Errno::LOOP))
    }

    /// Works out where a path leads through links, without opening anything behind it.
    fn resolve(&self, asked: &RelPath) -> Result<RelPath, Fault> {
        let mut left: VecDeque<String> = asked.as_str().split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let mut done = String::new();
        let mut links = 0;
        while let Some(part) = left.pop_front() {
            if part == ".." {
                let Some((folder, _)) = path::split(&done) else {
                    return Err(self.fault(Code::Escapes, asked.as_str(), "leads out of the root"));
                };
                done = folder.to_owned();
                continue;
            }
            let next = path::join(&done, &part);
            if path::is_ours(&next) || self.withheld().covers(&next) {
                return Err(self.not_found(asked.as_str()));
            }
            let Some(text) = self.link_text(&done, &part).map_err(|errno| self.errno(asked.as_str(), errno))? else {
                done = next;
                continue;
            };
            links += 1;
            if links > LINKS_MAX {
                return Err(self.errno(asked.as_str(), Errno::LOOP));
            }
            if text.starts_with('/') {
                return Err(self.fault(Code::Escapes, asked.as_str(), "leads out of the root"));
            }
            for part in text.split('/').rev().filter(|part| !part.is_empty() && *part != ".") {
                left.push_front(part.to_owned());
            }
        }
        RelPath::parse(&done).map_err(|why| self.fault(Code::Invalid, asked.as_str(), why))
    }

    /// The text of a link; none if it is not one.
    fn link_text(&self, folder: &str, name: &str) -> Result<Option<String>, Errno> {
        let folder = sys::open_beneath(self.folder(), folder, sys::FOLDER | OFlags::PATH)?;
        match rustix::fs::readlinkat(folder.as_fd(), name, Vec::new()) {
            // A text that is no path for us leads nowhere.
            Ok(text) => text.into_string().map(Some).map_err(|_| Errno::NOENT),
            Err(Errno::INVAL) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// What a path stands for now; a link for itself. Folders on the way may be links, as for reading.
    pub fn stat(&self, path: &str) -> Result<Identity, Fault> {
        let path = self.path(path)?;
        let Some((folder, name)) = path.split() else {
            return sys::look_at(self.folder()).map_err(|errno| self.errno("", errno));
        };
        let (handle, folder) = self.follow(RelPath::parse(folder).map_err(|why| self.fault(Code::Invalid, folder, why))?, sys::FOLDER)?;
        let real = path::join(folder.as_str(), name);
        if path::is_ours(&real) || self.withheld().covers(&real) || !self.reaches(&real) {
            return Err(self.not_found(path.as_str()));
        }
        sys::look(handle.as_fd(), name).map_err(|errno| self.errno(path.as_str(), errno))
    }

    /// What a path stands for, with the digest of its content if it is a file: what a step names as its source. No link on
    /// the way is followed, as none is when the step is applied.
    pub fn identify(&self, path: &str, with_digest: bool) -> Result<Identity, Fault> {
        let path = self.path(path)?;
        let Some((folder, name)) = path.split() else { return self.stat("") };
        let folder = self.open_folder(folder)?;
        let seen = sys::look(folder.as_fd(), name).map_err(|errno| self.errno(path.as_str(), errno))?;
        if !with_digest || seen.kind != Kind::File {
            return Ok(seen);
        }
        super::digest::identify(self, folder.as_fd(), name, path.as_str())
    }
}
