//! The walk behind listing, tree and search: one thread, in an order that is always the same (depth first, names by their
//! bytes), so that a page can start where the last one ended. It follows no link, and its memory is bounded whatever the
//! tree is like.

use std::ffi::{CStr, CString};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};

use globset::GlobSet;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::fault::{Code, Fault};
use super::identity::{Identity, Kind};
use super::ignores::Ignores;
use super::path::{self, DEPTH_MAX, RelPath};
use super::root::Root;
use super::sys;
use super::watch::{Progress, Watch};

/// Names of one folder that are held at a time; a longer folder is read again for the next ones.
const NAMES_HELD: usize = 65_536;
/// Entries between two words about the progress.
const TELL_EVERY: u64 = 4_096;

/// Which entries a walk visits.
pub(super) struct Choice {
    /// Levels of folders: 1 for the folder's own entries.
    pub(super) depth: usize,
    /// Also names that begin with a dot.
    pub(super) hidden: bool,
    /// Also what ignore files leave out.
    pub(super) ignored: bool,
    /// Only entries that match; folders are walked into all the same.
    pub(super) include: Option<GlobSet>,
}

/// An entry on the way, and the open folder that it is in.
pub(super) struct Visit<'a> {
    pub(super) path: &'a str,
    pub(super) identity: Identity,
    pub(super) folder: BorrowedFd<'a>,
    pub(super) name: &'a CStr,
    /// What could not be shown before it.
    pub(super) gaps: Gaps,
}

/// What a walk could not show.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gaps {
    pub(super) unnamed: u64,
    pub(super) unreadable: u64,
    pub(super) too_deep: u64,
}

impl Gaps {
    /// All together.
    pub(super) fn count(self) -> u64 {
        self.unnamed + self.unreadable + self.too_deep
    }
}

type Flow = ControlFlow<Stop>;

enum Stop {
    Enough,
    Fault(Fault),
}

struct Walk<'a> {
    root: &'a Root,
    choice: &'a Choice,
    watch: &'a Watch<'a>,
    visit: &'a mut dyn FnMut(Visit<'_>) -> ControlFlow<()>,
    ignores: Ignores,
    gaps: Gaps,
    progress: Progress,
}

/// Walks the tree beneath a folder, from behind `after` on if that is given (a path that an earlier walk ended with).
pub(super) fn walk(
    root: &Root,
    start: &str,
    after: Option<&str>,
    choice: &Choice,
    watch: &Watch<'_>,
    visit: &mut dyn FnMut(Visit<'_>) -> ControlFlow<()>,
) -> Result<Gaps, Fault> {
    let (folder, place) = root.look_into(root.path(start)?)?;
    let mut walk = Walk { root, choice, watch, visit, ignores: Ignores::default(), gaps: Gaps::default(), progress: Progress::default() };
    let after = after.map(|after| cursor(root, &place, after)).transpose()?;
    if !choice.ignored {
        walk.enter_above(&place);
    }
    let mut place = place.as_str().to_owned();
    match walk.folder(folder.as_fd(), &mut place, 1, after.as_deref().unwrap_or_default()) {
        ControlFlow::Break(Stop::Fault(fault)) => Err(fault),
        ControlFlow::Break(Stop::Enough) | ControlFlow::Continue(()) => Ok(walk.gaps),
    }
}

/// The names from the folder down to where the last page ended.
fn cursor(root: &Root, place: &RelPath, after: &str) -> Result<Vec<CString>, Fault> {
    let wrong = || root.fault(Code::Invalid, after, "the cursor does not belong to this folder");
    if !path::lies_in(after, place.as_str()) {
        return Err(wrong());
    }
    // A walk by handles comes deeper than a path may be long, so only what would lead elsewhere is refused.
    let parts = after.get(place.as_str().len()..).unwrap_or_default().split('/').filter(|part| !matches!(*part, "" | "."));
    parts.map(|part| if part == ".." { Err(wrong()) } else { CString::new(part).map_err(|_| wrong()) }).collect()
}

impl Walk<'_> {
    /// The ignore files of the folders above the one where the walk begins.
    fn enter_above(&mut self, place: &RelPath) {
        let mut folder = String::new();
        for part in place.as_str().split('/').filter(|part| !part.is_empty()) {
            if let Ok(handle) = self.root.open_folder(&folder) {
                self.ignores.enter(handle.as_fd(), &folder);
            }
            path::push(&mut folder, part);
        }
    }

    fn folder(&mut self, folder: BorrowedFd<'_>, place: &mut String, depth: usize, after: &[CString]) -> Flow {
        let entered = if self.choice.ignored { 0 } else { self.ignores.enter(folder, place) };
        let flow = self.names(folder, place, depth, after);
        self.ignores.leave(entered);
        flow
    }

    fn names(&mut self, folder: BorrowedFd<'_>, place: &mut String, depth: usize, after: &[CString]) -> Flow {
        // The entry where the last page ended was shown; what lies in it was perhaps not.
        let mut last = after.first().cloned();
        if let Some((name, rest)) = after.split_first() {
            self.entry(folder, place, name, depth, Some(rest))?;
        }
        loop {
            let (names, more) = match sys::names_after(folder, last.as_deref(), NAMES_HELD) {
                Ok(found) => found,
                Err(errno) if depth == 1 => return ControlFlow::Break(Stop::Fault(self.root.errno(place, errno))),
                Err(_) => {
                    self.gaps.unreadable += 1;
                    return ControlFlow::Continue(());
                }
            };
            for name in &names {
                self.entry(folder, place, name, depth, None)?;
            }
            match names.into_iter().next_back() {
                Some(name) if more => last = Some(name),
                _ => return ControlFlow::Continue(()),
            }
        }
    }

    /// One name: shows it, and what lies in it; `within` is given if it was shown before.
    fn entry(&mut self, folder: BorrowedFd<'_>, place: &mut String, name: &CStr, depth: usize, within: Option<&[CString]>) -> Flow {
        if self.watch.is_cancelled() {
            return ControlFlow::Break(Stop::Fault(self.root.fault(Code::Cancelled, place, "cancelled")));
        }
        let Ok(text) = name.to_str() else {
            self.gaps.unnamed += 1;
            return ControlFlow::Continue(());
        };
        if !self.choice.hidden && text.starts_with('.') {
            return ControlFlow::Continue(());
        }
        let length = place.len();
        path::push(place, text);
        let flow = self.visible(folder, place, name, depth, within);
        place.truncate(length);
        flow
    }

    fn visible(&mut self, folder: BorrowedFd<'_>, place: &mut String, name: &CStr, depth: usize, within: Option<&[CString]>) -> Flow {
        let text = name.to_str().unwrap_or_default();
        if path::in_trash(place) || path::is_temporary(text) || self.root.withheld().matches(place) {
            return ControlFlow::Continue(());
        }
        // Gone since its name was read.
        let Ok(identity) = sys::look(folder, name) else { return ControlFlow::Continue(()) };
        if !self.choice.ignored && self.ignores.leaves_out(place, text, identity.kind) {
            return ControlFlow::Continue(());
        }
        self.progress.entries += 1;
        if self.progress.entries.is_multiple_of(TELL_EVERY) {
            self.watch.tell(self.progress);
        }
        let chosen = self.choice.include.as_ref().is_none_or(|include| include.is_match(place.as_str()));
        if within.is_none() && chosen && (self.visit)(Visit { path: place, identity, folder, name, gaps: self.gaps }).is_break() {
            return ControlFlow::Break(Stop::Enough);
        }
        if identity.kind != Kind::Folder || depth >= self.choice.depth {
            return ControlFlow::Continue(());
        }
        if depth >= DEPTH_MAX {
            self.gaps.too_deep += 1;
            return ControlFlow::Continue(());
        }
        match rustix::fs::openat(folder, name, sys::FOLDER, Mode::empty()) {
            Ok(inner) => self.folder(inner.as_fd(), place, depth + 1, within.unwrap_or_default()),
            // Something else stands there by now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => ControlFlow::Continue(()),
            Err(_) => {
                self.gaps.unreadable += 1;
                ControlFlow::Continue(())
            }
        }
    }
}
