//! The trash of a root, laid out as FreeDesktop says: `.trash/files/ID` is the thing, `.trash/info/ID.trashinfo` tells where
//! it came from and when. The date is in UTC: the clock's zone is not ours to know.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::super::fault::{Code, Fault};
use super::super::identity::{Identity, Kind};
use super::super::path::{self, NAME_MAX, RelPath, TRASH};
use super::super::read::fill;
use super::super::root::Root;
use super::super::sys;
use super::super::watch::Watch;
use super::copy::{remove_all, write_file};
use super::spot::Spot;

pub(super) const INFO_END: &str = ".trashinfo";
const INFO_MAX: usize = 16 * 1024;
const PAGE_MAX: usize = 10_000;
/// Notes that are read at a time: each time all names are gone through.
const PORTION: usize = 10_000;

/// The open folders of the trash.
pub(super) struct Trash {
    files: OwnedFd,
    info: OwnedFd,
}

/// Where something in the trash came from, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Info {
    pub(super) from: String,
    pub(super) at_us: Option<i64>,
}

/// Something in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trashed {
    /// What `restore` and `purge` call it.
    pub id: String,
    /// Where it came from, if its note is there and makes sense.
    pub from: Option<String>,
    /// When it was put there, in microseconds since 1970, to the second.
    pub at_us: Option<i64>,
    /// What it is.
    pub identity: Identity,
}

/// A page of the trash, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashListing {
    /// What is there.
    pub entries: Vec<Trashed>,
    /// Set if more follow: the `after` of the next page.
    pub next: Option<String>,
    /// Names that are not UTF-8.
    pub unnamed: u64,
}

/// Lists the trash.
pub fn list_trash(root: &Root, after: Option<&str>, limit: usize) -> Result<TrashListing, Fault> {
    let trash = match Trash::open(root) {
        Ok(trash) => trash,
        Err(fault) if fault.code == Code::NotFound => return Ok(TrashListing::default()),
        Err(fault) => return Err(fault),
    };
    let limit = limit.clamp(1, PAGE_MAX);
    let mut listing = TrashListing::default();
    let mut last = after.and_then(|after| std::ffi::CString::new(after).ok());
    loop {
        let (names, more) = sys::names_after(trash.files(), last.as_deref(), limit + 1).map_err(|errno| root.errno(TRASH, errno))?;
        for name in &names {
            let Ok(id) = name.to_str() else {
                listing.unnamed += 1;
                continue;
            };
            let Some(entry) = trash.entry(root, id) else { continue };
            if listing.entries.len() == limit {
                listing.next = listing.entries.last().map(|entry| entry.id.clone());
                return Ok(listing);
            }
            listing.entries.push(entry);
        }
        match names.into_iter().next_back() {
            Some(name) if more => last = Some(name),
            _ => return Ok(listing),
        }
    }
}

/// Where something in the trash was, if the trash says so and the root does not withhold it.
pub fn was_at(root: &Root, id: &str) -> Option<String> {
    let info = Trash::open(root).ok()?.info(id)?;
    (!root.withheld().covers(&info.from)).then_some(info.from)
}

/// A page of the trash, the newest first, whether more follow, and how many names in all of it are not UTF-8; of the same time, by id. All
/// notes are read for each page, a portion at a time, and no more than the page is held.
pub fn newest_trash(root: &Root, after: Option<(i64, &str)>, limit: usize, watch: &Watch<'_>) -> Result<(Vec<Trashed>, bool, u64), Fault> {
    let key = |entry: &Trashed| (Reverse(entry.at_us.unwrap_or(0)), entry.id.clone());
    let after = after.map(|(at, id)| (Reverse(at), id.to_owned()));
    let limit = limit.clamp(1, PAGE_MAX);
    let (mut newest, mut more, mut unnamed, mut from) = (BTreeMap::new(), false, 0, None::<String>);
    loop {
        if watch.is_cancelled() {
            return Err(root.fault(Code::Cancelled, TRASH, "cancelled"));
        }
        let portion = list_trash(root, from.as_deref(), PORTION)?;
        unnamed += portion.unnamed;
        for entry in portion.entries {
            let key = key(&entry);
            if after.as_ref().is_some_and(|after| key <= *after) {
                continue;
            }
            newest.insert(key, entry);
            if newest.len() > limit {
                newest.pop_last();
                more = true;
            }
        }
        match portion.next {
            Some(next) => from = Some(next),
            None => return Ok((newest.into_values().collect(), more, unnamed)),
        }
    }
}

/// Removes what was to be deleted for good, and was left half deleted under a temporary name for longer than this moment. What was
/// on its way to another device is copied there anew, and goes as well; what was set aside on its way back from the trash
/// may be all that is left of it, and stays. Answers how many things went.
pub fn sweep_trash(root: &Root, before_ns: i64) -> Result<usize, Fault> {
    root.for_writing()?;
    let trash = match Trash::open(root) {
        Ok(trash) => trash,
        Err(fault) if fault.code == Code::NotFound => return Ok(0),
        Err(fault) => return Err(fault),
    };
    let (mut last, mut gone) = (None, 0);
    loop {
        let (names, more) = sys::names_after(trash.files(), last.as_deref(), PORTION).map_err(|errno| root.errno(TRASH, errno))?;
        for name in names.iter().filter_map(|name| name.to_str().ok()).filter(|name| path::is_temporary(name) && !path::is_set_aside(name)) {
            let handle = trash.files.try_clone().map_err(|_| root.fault(Code::Io, TRASH, "too many open files"))?;
            // Its names and place were changed then; the time of what it holds may be years ago.
            let touched = rustix::fs::statat(trash.files(), name, AtFlags::SYMLINK_NOFOLLOW);
            let moment = touched.map(|found| i64::try_from(found.st_ctime_nsec).unwrap_or(0).saturating_add(found.st_ctime.saturating_mul(1_000_000_000)));
            if moment.is_ok_and(|moment| moment < before_ns) && remove_all(root, &Spot::new(handle, name, TRASH)).is_ok() {
                gone += 1;
            }
        }
        match names.into_iter().next_back() {
            Some(name) if more => last = Some(name),
            _ => return Ok(gone),
        }
    }
}

impl Trash {
    /// Opens the trash if there is one.
    pub(super) fn open(root: &Root) -> Result<Self, Fault> {
        let part = |name: &str| {
            sys::open_beneath(root.folder(), &path::join(TRASH, name), sys::FOLDER).map_err(|errno| match errno {
                Errno::NOENT => root.fault(Code::NotFound, "", "not in the trash"),
                errno => root.errno(TRASH, errno),
            })
        };
        Ok(Self { files: part("files")?, info: part("info")? })
    }

    /// Opens the trash, and makes it if there is none; nobody else may look into it.
    pub(super) fn make(root: &Root) -> Result<Self, Fault> {
        for folder in ["", "files", "info"] {
            let path = path::join(TRASH, folder);
            let path = path.trim_end_matches('/');
            let (above, name) = path::split(path).unwrap_or_default();
            let above = sys::open_beneath(root.folder(), above, sys::FOLDER).map_err(|errno| root.errno(TRASH, errno))?;
            match rustix::fs::mkdirat(above.as_fd(), name, Mode::RWXU) {
                Ok(()) => super::spot::sync(root, above.as_fd(), TRASH)?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(root.errno(TRASH, errno)),
            }
        }
        Self::open(root)
    }

    pub(super) fn files(&self) -> BorrowedFd<'_> {
        self.files.as_fd()
    }

    /// The place of something in the trash. An id is one name, and nothing else: from here no way leads out of the trash.
    pub(super) fn spot(&self, root: &Root, id: &str) -> Result<Spot, Fault> {
        let is_name = RelPath::parse(id).is_ok_and(|path| path.split() == Some(("", id)));
        if !is_name || id.len() > NAME_MAX - INFO_END.len() || path::is_temporary(id) {
            return Err(root.fault(Code::NotFound, "", "not in the trash"));
        }
        let folder = self.files.try_clone().map_err(|_| root.fault(Code::Io, TRASH, "too many open files"))?;
        Ok(Spot::new(folder, id, &format!("{TRASH}/{id}")))
    }

    pub(super) fn look(&self, root: &Root, id: &str) -> Result<Identity, Fault> {
        self.spot(root, id)?.look().map_err(|_| root.fault(Code::NotFound, "", "not in the trash"))
    }

    /// What something in the trash is, of a file with its digest.
    pub(super) fn identify(&self, root: &Root, id: &str) -> Result<Identity, Fault> {
        let seen = self.look(root, id)?;
        if seen.kind != Kind::File {
            return Ok(seen);
        }
        let spot = self.spot(root, id)?;
        super::super::digest::identify(root, spot.folder(), &spot.name, &spot.path)
    }

    fn entry(&self, root: &Root, id: &str) -> Option<Trashed> {
        let identity = self.look(root, id).ok()?;
        let info = self.info(id);
        if info.as_ref().is_some_and(|info| root.withheld().covers(&info.from)) {
            return None;
        }
        Some(Trashed { id: id.to_owned(), at_us: info.as_ref().and_then(|info| info.at_us), from: info.map(|info| info.from), identity })
    }

    /// Writes down where something comes from. A note without a thing is what a crash left of an earlier attempt.
    pub(super) fn note(&self, root: &Root, id: &str, info: &Info) -> Result<(), Fault> {
        let spot = self.spot(root, id)?;
        if spot.look().is_ok() {
            return Err(root.fault(Code::Exists, &spot.path, "is in the trash already"));
        }
        self.forget(id);
        let handle = self.info.try_clone().map_err(|_| root.fault(Code::Io, TRASH, "too many open files"))?;
        let note = Spot::new(handle, &format!("{id}{INFO_END}"), &spot.path);
        write_file(root, &note, info.write().as_bytes(), Some(0o600))?;
        note.sync(root)
    }

    /// Removes the note about something that is not in the trash any more.
    pub(super) fn forget(&self, id: &str) {
        let _ = rustix::fs::unlinkat(self.info.as_fd(), format!("{id}{INFO_END}"), AtFlags::empty());
    }

    /// The note about something in the trash; whoever can write to the root can have written it, so it is only a text.
    pub(super) fn info(&self, id: &str) -> Option<Info> {
        let name = format!("{id}{INFO_END}");
        if sys::look(self.info.as_fd(), name.as_str()).ok()?.kind != Kind::File {
            return None;
        }
        let file = rustix::fs::openat(self.info.as_fd(), name.as_str(), sys::FILE, Mode::empty()).ok()?;
        if sys::look_at(file.as_fd()).ok()?.kind != Kind::File {
            return None;
        }
        let mut text = vec![0; INFO_MAX];
        let read = fill(file.as_fd(), &mut text, 0).ok()?;
        Info::read(std::str::from_utf8(text.get(..read)?).ok()?)
    }
}

impl Info {
    fn write(&self) -> String {
        let at = self.at_us.and_then(|at| jiff::Timestamp::from_microsecond(at).ok()).unwrap_or_default();
        let date = at.strftime("%Y-%m-%dT%H:%M:%S");
        format!("[Trash Info]\nPath={}\nDeletionDate={date}\n", percent_encode(&self.from))
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()?.trim() != "[Trash Info]" {
            return None;
        }
        let (mut from, mut at_us) = (None, None);
        for line in lines {
            match line.split_once('=') {
                Some(("Path", path)) if from.is_none() => from = Some(percent_decode(path)?),
                Some(("DeletionDate", date)) if at_us.is_none() => {
                    let date: Option<jiff::civil::DateTime> = date.trim().parse().ok();
                    at_us = date.and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC).ok()).map(|at| at.timestamp().as_microsecond());
                }
                _ => {}
            }
        }
        let from = RelPath::parse(&from?).ok().filter(|from| !from.is_root())?;
        Some(Self { from: from.as_str().to_owned(), at_us })
    }
}

fn percent_encode(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => text.push(byte.into()),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_again_what_was_written() {
        for from in ["a/b c.txt", "ä=%20\n[x]", "x"] {
            let info = Info { from: from.to_owned(), at_us: Some(1_700_000_000_000_000) };
            assert_eq!(Info::read(&info.write()), Some(info));
        }
    }

    #[test]
    fn a_forged_note_leads_nowhere() {
        for path in ["../../etc/passwd", "/etc/passwd", "%2Fetc", "a/%2E%2E/b", "%", "%zz", "a%00b", "%ff", ""] {
            assert_eq!(Info::read(&format!("[Trash Info]\nPath={path}\nDeletionDate=x\n")), None, "{path}");
        }
    }
}
