//! Whether a step happened whose outcome is not known, because the process ended between doing it and saying so.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::super::fault::{Code, Fault};
use super::super::identity::{Digest, Identity, Kind};
use super::super::path;
use super::super::root::Root;
use super::away::Mounts;
use super::copy::look_closely;
use super::spot::Spot;
use super::step::{Done, Step, tag_of};
use super::trash::Trash;

/// What can be said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "probe", content = "told", rename_all = "snake_case")]
pub enum Probe {
    /// It did not happen; it can be done again.
    NotDone,
    /// It happened. Folders on the way that are not older than this was begun were made for it; where the file system does not
    /// keep that, they are not known any more, and undoing leaves them.
    Done(Done),
    /// It can't be told, and why.
    Unclear(String),
}

/// Looks whether a step happened, without changing anything. For what keeps its inode (moves, trash, restore and replace on
/// one device) the answer is exact. What is new is told by its content and by its age, where the file system keeps that: it
/// was not there when it was planned, and came to be after `since_ns`, when this was begun. So is what went to another
/// device, where it has another inode: a file by its content, a link or folder by its time and age. Where that can't be told
/// either, the answer says so.
pub fn probe(root: &Root, step: &Step, since_ns: Option<i64>) -> Result<Probe, Fault> {
    probe_after(root, step, since_ns, None)
}

/// The same, where it may be known already what has arrived at the target.
pub(super) fn probe_after(root: &Root, step: &Step, since_ns: Option<i64>, arrived: Option<Identity>) -> Result<Probe, Fault> {
    match step {
        Step::Move { from, to, identity } => {
            let moved = |identity| Done::Moved { from: from.clone(), to: to.clone(), identity, made: made_for(root, to, since_ns) };
            let places = (place(root, from)?, place(root, to)?);
            between(root, step, places, identity, (since_ns, arrived), moved)
        }
        Step::Trash { from, id, at_us, identity } | Step::RemoveEmptyFolder { path: from, id, at_us, identity } => {
            let trashed = |identity| Done::Trashed { from: from.clone(), id: id.clone(), at_us: *at_us, identity };
            let places = (place(root, from)?, place_in_trash(root, id));
            between(root, step, places, identity, (since_ns, arrived), trashed)
        }
        Step::Restore { id, to, identity } => {
            let info = Trash::open(root).ok().and_then(|trash| trash.info(id));
            let (from, at_us) = info.map_or((None, None), |info| (Some(info.from), info.at_us));
            let restored = |identity| Done::Restored { id: id.clone(), to: to.clone(), identity, from, at_us, made: made_for(root, to, since_ns) };
            let places = (place_in_trash(root, id), place(root, to)?);
            between(root, step, places, identity, (since_ns, arrived), restored)
        }
        Step::Replace { path, identity, content, kept, .. } => replaced(root, step, path, identity, &content.digest(), kept),
        Step::Copy { from, to, identity } if identity.kind == Kind::Link => copied_link(root, from, to, identity, since_ns),
        Step::Copy { to, identity, .. } => {
            let copied = |identity| Done::Copied { to: to.clone(), identity, made: made_for(root, to, since_ns) };
            written(root, to, identity.sha256.as_ref(), since_ns, copied)
        }
        Step::Write { to, content, .. } => {
            let written_to = |identity| Done::Written { to: to.clone(), identity, made: made_for(root, to, since_ns) };
            written(root, to, Some(&content.digest()), since_ns, written_to)
        }
        Step::MakeFolder { path } => Ok(match at(root, path)? {
            None => Probe::NotDone,
            Some(found) if found.kind == Kind::Folder && is_since(&found, since_ns) => {
                let made = made_for(root, path, since_ns).into_iter().chain([path.clone()]).collect();
                Probe::Done(Done::FolderMade { path: path.clone(), made })
            }
            Some(_) => others(),
        }),
        Step::Purge { id, identity } => Ok(match in_trash(root, id) {
            Some(found) if found.is_same_thing(identity) => Probe::NotDone,
            Some(_) => Probe::Unclear("something else is in the trash under this id".to_owned()),
            None if aside_in_trash(root, step).is_some_and(|found| found.is_same_thing(identity)) => Probe::Unclear("it is being deleted".to_owned()),
            None => Probe::Unclear("it is not in the trash any more, which others may have done".to_owned()),
        }),
    }
}

/// The thing is at one of two places, or that is not clear. What is known of it by its inode comes first; a step that goes
/// across devices leaves a copy in the one place and nothing in the other, whichever way it went.
fn between(
    root: &Root,
    step: &Step,
    (from, to): (Option<Spot>, Option<Spot>),
    meant: &Identity,
    (since_ns, arrived): (Option<i64>, Option<Identity>),
    done: impl FnOnce(Identity) -> Done,
) -> Result<Probe, Fault> {
    if let Some(arrived) = arrived {
        return Ok(Probe::Done(done(arrived)));
    }
    let found = |spot: &Option<Spot>| spot.as_ref().map_or(Ok(None), |spot| there(root, spot));
    let is_it = |found: &Option<Identity>| found.as_ref().is_some_and(|found| found.is_same_thing(meant));
    let copy = |spot: Option<&Spot>| spot.map_or(Ok(None), |spot| copy_of(root, spot, meant, since_ns));
    let (at_from, at_to) = (found(&from)?, found(&to)?);
    Ok(match (is_it(&at_from), is_it(&at_to)) {
        (true, false) => Probe::NotDone,
        (false, true) => Probe::Done(done(Identity { sha256: meant.sha256, ..at_to.unwrap_or(*meant) })),
        (true, true) => Probe::Unclear("it is at both places: two links to one file".to_owned()),
        (false, false) if at_from.is_none() != at_to.is_none() && Mounts::default().parts(root, step) => match (copy(from.as_ref())?, copy(to.as_ref())?) {
            (Some(_), _) => Probe::NotDone,
            (None, Some(arrived)) => Probe::Done(done(arrived)),
            (None, None) => Probe::Unclear("it went to another file system or came from there, and what is there now may be another one".to_owned()),
        },
        (false, false) => Probe::Unclear("it is at neither place".to_owned()),
    })
}

/// What is at a place, if it is a copy of what was meant as going to another device leaves it: a file with its content, and its time
/// unless it is new; a link or folder with its time that is new.
fn copy_of(root: &Root, spot: &Spot, meant: &Identity, since_ns: Option<i64>) -> Result<Option<Identity>, Fault> {
    let Some(found) = there(root, spot)? else { return Ok(None) };
    let is_as_old = found.mtime_ns == meant.mtime_ns;
    let is_new = is_since(&found, since_ns);
    Ok(match (found.kind == meant.kind, meant.kind) {
        (true, Kind::File) if meant.sha256.is_some() && found.size == meant.size && (is_as_old || is_new) => {
            Some(look_closely(root, spot)?).filter(|found| found.sha256 == meant.sha256)
        }
        (true, Kind::Link) if found.size == meant.size && is_as_old && is_new => Some(found),
        (true, Kind::Folder) if is_as_old && is_new => Some(found),
        _ => None,
    })
}

/// A new file is there with the content that was meant, and not from before.
fn written(root: &Root, to: &str, meant: Option<&Digest>, since_ns: Option<i64>, done: impl FnOnce(Identity) -> Done) -> Result<Probe, Fault> {
    let Some(found) = at(root, to)? else { return Ok(Probe::NotDone) };
    if !is_since(&found, since_ns) {
        return Ok(others());
    }
    let found = look_closely(root, &Spot::find(root, &root.changeable(to)?)?)?;
    Ok(if found.sha256.is_some() && found.sha256.as_ref() == meant { Probe::Done(done(found)) } else { others() })
}

/// A new link is there that leads where the one that was copied does, with its time, and not from before.
fn copied_link(root: &Root, from: &str, to: &str, meant: &Identity, since_ns: Option<i64>) -> Result<Probe, Fault> {
    let Some(found) = at(root, to)? else { return Ok(Probe::NotDone) };
    let text = |path: &str| {
        let spot = Spot::find(root, &root.changeable(path)?)?;
        rustix::fs::readlinkat(spot.folder(), spot.name.as_str(), Vec::new()).map_err(|errno| root.errno(path, errno))
    };
    let like = found.kind == Kind::Link && (found.size, found.mtime_ns) == (meant.size, meant.mtime_ns) && is_since(&found, since_ns);
    let same = like && text(to).is_ok_and(|copy| text(from).is_ok_and(|source| source == copy));
    Ok(if same { Probe::Done(Done::Copied { to: to.to_owned(), identity: found, made: made_for(root, to, since_ns) }) } else { others() })
}

fn others() -> Probe {
    Probe::Unclear("it is there, which others may have done".to_owned())
}

/// The clock of file systems goes in steps of some milliseconds.
const CLOCK_STEP_NS: i64 = 20_000_000;

fn is_since(found: &Identity, since_ns: Option<i64>) -> bool {
    found.born_ns.zip(since_ns).is_some_and(|(born, since)| born >= since.saturating_sub(CLOCK_STEP_NS))
}

/// The folders on the way to a path that are not from before, the outermost first.
fn made_for(root: &Root, path: &str, since_ns: Option<i64>) -> Vec<String> {
    let above = |path: &str| path::split(path).map(|(folder, _)| folder.to_owned()).filter(|folder| !folder.is_empty());
    let is_new = |folder: &String| at(root, folder).is_ok_and(|found| found.is_some_and(|found| found.kind == Kind::Folder && is_since(&found, since_ns)));
    let mut made: Vec<String> = std::iter::successors(above(path), |folder| above(folder)).take_while(is_new).collect();
    made.reverse();
    made
}

/// What was done in a second attempt, with the folders on the way that the first one had made before it was cut short: undoing
/// removes those too.
pub fn with_folders_since(root: &Root, mut done: Done, since_ns: i64) -> Done {
    let (found, made) = match &mut done {
        Done::Moved { to, made, .. } | Done::Copied { to, made, .. } | Done::Written { to, made, .. } | Done::Restored { to, made, .. } => {
            (made_for(root, to, Some(since_ns)), made)
        }
        Done::FolderMade { path, made } => (made_for(root, path, Some(since_ns)).into_iter().chain([path.clone()]).collect(), made),
        Done::Replaced { .. } | Done::Trashed { .. } | Done::Purged { .. } => return done,
    };
    // Where their age is not kept, those that this attempt made are all that is known.
    if found.len() > made.len() {
        *made = found;
    }
    done
}

fn replaced(root: &Root, step: &Step, path: &str, meant: &Identity, new: &Digest, kept: &str) -> Result<Probe, Fault> {
    let path = root.changeable(path)?;
    let Ok(place) = Spot::find(root, &path) else { return Ok(Probe::Unclear("its folder is gone".to_owned())) };
    // Where the trash is on another device, what lies there is a copy, and so is what came back from it.
    let parts = Mounts::default().parts(root, step);
    let old = |spot: &Spot| match there(root, spot) {
        Ok(Some(found)) if found.is_same_thing(meant) => Some(Identity { sha256: meant.sha256, ..found }),
        Ok(Some(found)) if parts && meant.sha256 != Some(*new) && found.mtime_ns == meant.mtime_ns => copy_of(root, spot, meant, None).ok().flatten(),
        _ => None,
    };
    if old(&place).is_some() {
        return Ok(Probe::NotDone);
    }
    let aside = place.beside(root, &path::temporary(&tag_of(kept.as_bytes())))?;
    let Some(old) = place_in_trash(root, kept).as_ref().and_then(old).or_else(|| old(&aside)) else {
        return Ok(Probe::Unclear("the old file is neither in its place nor kept".to_owned()));
    };
    match look_closely(root, &place) {
        Ok(found) if found.kind == Kind::File && found.sha256 == Some(*new) => {
            Ok(Probe::Done(Done::Replaced { path: place.path, kept: kept.to_owned(), old, new: found }))
        }
        Ok(_) => Ok(Probe::Unclear("the old file is kept, and something else is in its place".to_owned())),
        Err(_) => Ok(Probe::Unclear("the old file is kept, and nothing is in its place".to_owned())),
    }
}

/// What is at a path; nothing if a folder on the way is missing. What can't be looked at is not taken for missing.
fn at(root: &Root, path: &str) -> Result<Option<Identity>, Fault> {
    place(root, path)?.map_or(Ok(None), |spot| there(root, &spot))
}

fn there(root: &Root, spot: &Spot) -> Result<Option<Identity>, Fault> {
    match spot.look() {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(root.errno(&spot.path, errno)),
    }
}

/// The place of a path; none if a folder on the way is missing.
pub(super) fn place(root: &Root, path: &str) -> Result<Option<Spot>, Fault> {
    let path = root.changeable(path)?;
    match Spot::find(root, &path) {
        Ok(spot) => Ok(Some(spot)),
        Err(fault) if matches!(fault.code, Code::NotFound | Code::NotAFolder | Code::ThroughLink) => Ok(None),
        Err(fault) => Err(fault),
    }
}

pub(super) fn place_in_trash(root: &Root, id: &str) -> Option<Spot> {
    Trash::open(root).ok()?.spot(root, id).ok()
}

fn in_trash(root: &Root, id: &str) -> Option<Identity> {
    Trash::open(root).ok()?.look(root, id).ok()
}

fn aside_in_trash(root: &Root, step: &Step) -> Option<Identity> {
    let trash = Trash::open(root).ok()?;
    super::super::sys::look(trash.files(), path::temporary(&step.tag())).ok()
}
