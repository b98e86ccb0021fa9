//! Ignore files (`.gitignore`, `.ignore`), read through the handle of the folder that they lie in.

use std::os::fd::{AsFd, BorrowedFd};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::Mode;

use super::identity::Kind;
use super::path::{self, VERSION_CONTROL};
use super::sys;

/// What is read of one ignore file; what comes after is not looked at.
const FILE_MAX: usize = 256 * 1024;
const LINES_MAX: usize = 5_000;

/// The ignore files from the root down to the folder at hand, each with the depth of its folder.
#[derive(Default)]
pub(super) struct Ignores {
    files: Vec<(String, Gitignore)>,
}

impl Ignores {
    /// Reads the ignore files of a folder that is entered; answers how many there were, for leaving it.
    pub(super) fn enter(&mut self, folder: BorrowedFd<'_>, place: &str) -> usize {
        let before = self.files.len();
        // The last one asked is the first that counts, so `.ignore` wins over `.gitignore`.
        for name in [c".gitignore", c".ignore"] {
            if let Some(rules) = read(folder, name).and_then(|text| parse(&text)) {
                self.files.push((place.to_owned(), rules));
            }
        }
        self.files.len() - before
    }

    pub(super) fn leave(&mut self, count: usize) {
        self.files.truncate(self.files.len().saturating_sub(count));
    }

    /// Whether an entry is to be left out.
    pub(super) fn leaves_out(&self, entry: &str, name: &str, kind: Kind) -> bool {
        if kind == Kind::Folder && VERSION_CONTROL.contains(&name) {
            return true;
        }
        for (place, rules) in self.files.iter().rev() {
            let beneath = if place.is_empty() { Some(entry) } else { entry.strip_prefix(place.as_str()).and_then(|rest| rest.strip_prefix('/')) };
            match beneath.filter(|rest| path::lies_in(entry, place) && !rest.is_empty()).map(|rest| rules.matched(rest, kind == Kind::Folder)) {
                Some(Match::Ignore(_)) => return true,
                Some(Match::Whitelist(_)) => return false,
                Some(Match::None) | None => {}
            }
        }
        false
    }
}

fn read(folder: BorrowedFd<'_>, name: &std::ffi::CStr) -> Option<String> {
    if sys::look(folder, name).ok()?.kind != Kind::File {
        return None;
    }
    let file = rustix::fs::openat(folder, name, sys::FILE, Mode::empty()).ok()?;
    if sys::look_at(file.as_fd()).ok()?.kind != Kind::File {
        return None;
    }
    let mut text = vec![0; FILE_MAX];
    let mut filled = 0;
    while let Some(space) = text.get_mut(filled..).filter(|space| !space.is_empty()) {
        match rustix::io::read(file.as_fd(), space) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    text.truncate(filled);
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn parse(text: &str) -> Option<Gitignore> {
    // The rules are matched against what lies beneath their folder, so they need no place of their own.
    let mut rules = GitignoreBuilder::new(".");
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines().take(LINES_MAX) {
        // A line that is wrong is passed over, as git does.
        let _ = rules.add_line(None, line);
    }
    rules.build().ok().filter(|rules| !rules.is_empty())
}
