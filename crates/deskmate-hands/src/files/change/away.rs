//! What whoever decides about a step should know: which moves go to another file system, where a thing is copied and not all of
//! it goes along, and which take something with them that belongs to others.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::os::fd::AsFd;

use super::super::identity::Kind;
use super::super::path::{self, TRASH};
use super::super::root::Root;
use super::super::sys;
use super::super::walk::{Choice, walk};
use super::super::watch::Watch;
use super::step::Step;
use super::trash::Trash;

/// Looks on which file system folders are, each once.
#[derive(Debug, Default)]
pub struct Mounts {
    known: HashMap<String, Option<u64>>,
}

impl Mounts {
    /// Whether a step moves something from one file system to another.
    pub(super) fn parts(&mut self, root: &Root, step: &Step) -> bool {
        let kept = format!("{TRASH}/files/x");
        let (from, to) = match step {
            Step::Move { from, to, .. } => (from.as_str(), to.as_str()),
            Step::Trash { from, .. } | Step::RemoveEmptyFolder { path: from, .. } | Step::Replace { path: from, .. } => (from.as_str(), kept.as_str()),
            Step::Restore { to, .. } => (kept.as_str(), to.as_str()),
            Step::Copy { .. } | Step::Write { .. } | Step::MakeFolder { .. } | Step::Purge { .. } => return false,
        };
        let (from, to) = (self.of(root, from), self.of(root, to));
        from.is_some() && to.is_some() && from != to
    }

    /// The same, and if so the digest of a file is taken: what arrives is a copy, and all that it has in common with its source is
    /// what it holds.
    pub fn take_digest(&mut self, root: &Root, step: &mut Step) -> bool {
        let parts = self.parts(root, step);
        let (found, identity) = match step {
            Step::Move { from, identity, .. } | Step::Trash { from, identity, .. } if parts => (root.identify(from, true), identity),
            Step::Restore { id, identity, .. } if parts => (Trash::open(root).and_then(|trash| trash.identify(root, id)), identity),
            _ => return parts,
        };
        if let Ok(found) = found {
            *identity = found;
        }
        parts
    }

    /// The file system of the folder that a path is in, or of the innermost folder above it that is there.
    fn of(&mut self, root: &Root, path: &str) -> Option<u64> {
        let (folder, _) = path::split(path)?;
        if let Some(known) = self.known.get(folder) {
            return *known;
        }
        let found = match sys::open_beneath(root.folder(), folder, sys::FOLDER) {
            Ok(handle) => sys::mount_of(handle.as_fd()).ok(),
            Err(_) => self.of(root, folder),
        };
        self.known.insert(folder.to_owned(), found);
        found
    }
}

/// How many names are gone through to find out what a folder holds.
const NAMES_MAX: usize = 100_000;

/// What is known to lie in a folder that a step takes elsewhere, and belongs to version control or to the system: the path of
/// the first one that is found. Not all of a very large folder is gone through.
pub fn carries_kept(root: &Root, step: &Step) -> Option<String> {
    let (Step::Move { from, identity, .. } | Step::Trash { from, identity, .. }) = step else { return None };
    if identity.kind != Kind::Folder {
        return None;
    }
    let (mut left, mut found) = (NAMES_MAX, None);
    let choice = Choice { depth: path::DEPTH_MAX, hidden: true, ignored: true, include: None };
    let walked = walk(root, from, None, &choice, &Watch::default(), &mut |visit| {
        left -= 1;
        if visit.name.to_str().is_ok_and(|name| path::keeper(name).is_some()) {
            found = Some(visit.path.to_owned());
        }
        if found.is_some() || left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    walked.ok().and(found)
}
