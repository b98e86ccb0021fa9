//! A root: a folder that was opened once, what may be done beneath it and what it withholds.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::fault::{Code, Fault};
use super::path::{self, RelPath};
use super::sys;
use super::withheld::{self, Withheld};

/// What may be done beneath a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Looking only.
    Read,
    /// Looking and changing.
    Write,
}

/// A root as the operator writes it down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootSpec {
    /// What it is called; the only thing about its place that users learn.
    pub name: String,
    /// The folder on the host, absolute.
    pub path: PathBuf,
    /// What may be done.
    pub access: Access,
    /// What is withheld: globs, read like lines of an ignore file, in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// What belongs to whoever opens the root, by paths on the host: where it lies beneath the root it is withheld, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<PathBuf>,
}

/// Folders in which the operating system keeps itself, with all beneath.
const SYSTEM: [&str; 12] = ["/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr/bin", "/usr/lib"];

/// Whether a folder, by its real path, is one of the system's, or holds one: `/usr`, but not `/usr/local`.
fn is_system(real: &Path) -> bool {
    // Where files are kept in memory, which is nobody's system.
    let memory = Path::new("/dev/shm");
    !real.starts_with(memory) && SYSTEM.iter().map(Path::new).any(|system| real.starts_with(system) || system.starts_with(real))
}

#[derive(Debug)]
struct Inner {
    name: String,
    folder: OwnedFd,
    /// Where that was when it was opened, through no link.
    real: PathBuf,
    access: Access,
    withheld: Withheld,
}

/// An open root; cheap to clone, and usable from any thread.
#[derive(Debug, Clone)]
pub struct Root {
    inner: Arc<Inner>,
    syncs: bool,
    /// Only what lies in these folders is looked at; all of it if there is none.
    reach: Arc<[String]>,
}

impl Root {
    /// Opens the folder that the operator's path leads to. From here on that path is not used any more.
    pub fn open(spec: &RootSpec) -> Result<Self, Fault> {
        Self::with(spec, || sys::open_root(&spec.path))
    }

    /// Opens what is by now where the folder was when it was opened first, with other words of the operator about it. No link is followed
    /// there: the operator's path was, once, and whoever may rename something on the way could have put one there since.
    pub fn reopen(&self, spec: &RootSpec) -> Result<Self, Fault> {
        Self::with(spec, || sys::open_plainly(&self.inner.real))
    }

    fn with(spec: &RootSpec, open: impl FnOnce() -> rustix::io::Result<OwnedFd>) -> Result<Self, Fault> {
        let wrong = |why: &str| Fault::new(Code::Invalid, &spec.name, "", why);
        if spec.name.is_empty() || spec.name.len() > path::NAME_MAX || spec.name.contains(['/', '\0']) {
            return Err(wrong("a root needs a name of up to 255 bytes without `/`"));
        }
        if spec.path.as_os_str().is_empty() {
            return Err(wrong("the root has no path"));
        }
        if !spec.path.is_absolute() {
            return Err(wrong("the root's path must be absolute"));
        }
        if spec.path.components().all(|part| matches!(part, Component::RootDir | Component::CurDir | Component::ParentDir)) {
            return Err(wrong("the whole file system can't be a root; name the folders that are meant"));
        }
        // It is opened first and looked at then: a path may lead elsewhere from one moment to the next.
        let errno = |errno| Fault::errno(&spec.name, "", errno);
        let folder = open().map_err(errno)?;
        let real = sys::path_of(folder.as_fd(), &spec.path).map_err(errno)?;
        if spec.access == Access::Write && is_system(&real) {
            return Err(wrong("a folder of the operating system is opened for looking only"));
        }
        let own = withheld::beneath(&real, &spec.own).map_err(wrong)?;
        let withheld = Withheld::new(&spec.deny, own).map_err(|why| wrong(&why))?;
        let inner = Inner { name: spec.name.clone(), folder, real, access: spec.access, withheld };
        Ok(Self { inner: Arc::new(inner), syncs: true, reach: Arc::default() })
    }

    /// Whether the folder that was opened is still where it was: it may have been made anew, or another file system mounted there.
    pub fn is_in_place(&self) -> bool {
        sys::is_at(self.folder(), &self.inner.real)
    }

    /// Where the folder was when it was opened, through no link.
    pub fn real(&self) -> &Path {
        &self.inner.real
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// What may be done beneath it.
    pub fn access(&self) -> Access {
        self.inner.access
    }

    /// The same root for many steps at once: they are not brought to the disk one by one, but all together by
    /// [`Root::settle`], and count as done only after it.
    pub fn in_bulk(&self) -> Self {
        Self { syncs: false, ..self.clone() }
    }

    /// The same root for one step at a time, also where it is used in bulk.
    pub(super) fn one_by_one(&self) -> Self {
        Self { syncs: true, ..self.clone() }
    }

    /// The same root for whoever may look only at what lies in some folders beneath it, also where a link leads elsewhere.
    #[must_use]
    pub fn within(&self, folders: &[String]) -> Self {
        Self { reach: folders.into(), ..self.clone() }
    }

    /// Whether a place, which holds no link any more, may be looked at.
    pub(super) fn reaches(&self, place: &str) -> bool {
        self.reach.is_empty() || self.reach.iter().any(|folder| path::lies_in(place, folder))
    }

    /// Brings to the disk what was changed in bulk. A file system mounted beneath the root is not covered: steps there are
    /// brought to the disk one by one in any case.
    pub fn settle(&self) -> Result<(), Fault> {
        rustix::fs::syncfs(self.folder()).map_err(|errno| self.errno("", errno))
    }

    pub(super) fn syncs(&self) -> bool {
        self.syncs
    }

    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.inner.folder.as_fd()
    }

    pub(super) fn withheld(&self) -> &Withheld {
        &self.inner.withheld
    }

    pub(super) fn fault(&self, code: Code, path: &str, why: &str) -> Fault {
        Fault::new(code, self.name(), path, why)
    }

    pub(super) fn errno(&self, path: &str, errno: Errno) -> Fault {
        Fault::errno(self.name(), path, errno)
    }

    pub(super) fn not_found(&self, path: &str) -> Fault {
        self.errno(path, Errno::NOENT)
    }

    /// Reads a path; what is withheld or ours is not found, before anything is looked at.
    pub(super) fn path(&self, text: &str) -> Result<RelPath, Fault> {
        let path = RelPath::parse(text).map_err(|why| self.fault(Code::Invalid, text, why))?;
        if path::is_ours(path.as_str()) || self.withheld().covers(path.as_str()) || !self.reaches(path.as_str()) {
            return Err(self.not_found(path.as_str()));
        }
        Ok(path)
    }

    /// Reads the path of something that a step changes.
    pub(super) fn changeable(&self, text: &str) -> Result<RelPath, Fault> {
        let path = RelPath::parse(text).map_err(|why| self.fault(Code::Invalid, text, why))?;
        if path.is_root() {
            return Err(self.fault(Code::Invalid, "", "the root itself can't be changed"));
        }
        if path::is_reserved(path.as_str()) {
            return Err(self.fault(Code::Reserved, path.as_str(), "the name belongs to the desk"));
        }
        if let Some(why) = path::keeper_of(path.as_str()) {
            return Err(self.fault(Code::Reserved, path.as_str(), why));
        }
        if self.withheld().covers(path.as_str()) {
            return Err(self.not_found(path.as_str()));
        }
        Ok(path)
    }

    pub(super) fn for_writing(&self) -> Result<(), Fault> {
        match self.access() {
            Access::Write => Ok(()),
            Access::Read => Err(self.fault(Code::ReadOnly, "", "the root is read-only")),
        }
    }
}
