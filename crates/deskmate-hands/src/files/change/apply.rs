//! Doing a step.

use std::os::fd::AsFd;

use rustix::io::Errno;

use super::super::fault::{Code, Fault};
use super::super::identity::{Identity, Kind};
use super::super::root::Root;
use super::super::sys;
use super::copy;
use super::spot::{Made, Spot, carries_nothing_withheld, make_folders, relocate};
use super::step::{Blob, Done, Step, bounded, check, into_itself};
use super::trash::{Info, Trash};
use super::undo::undo;

/// Does a step. When it fails, everything is as it was; when it answers, what was done is on the disk (but see
/// [`Root::in_bulk`]).
pub fn apply(root: &Root, step: &Step) -> Result<Done, Fault> {
    root.for_writing()?;
    let tag = step.tag();
    match step {
        Step::Move { from, to, identity } => move_to(root, from, to, identity, &tag),
        Step::Copy { from, to, identity } => copy_to(root, from, to, identity, &tag),
        Step::Write { to, content, mode } => write_new(root, to, content, *mode, &tag),
        Step::Replace { path, identity, content, kept, at_us } => replace(root, path, identity, content, (kept, *at_us), &tag),
        Step::MakeFolder { path } => make_folder(root, path),
        Step::RemoveEmptyFolder { path, id, at_us, identity } => remove_empty_folder(root, path, identity, (id, *at_us), &tag),
        Step::Trash { from, id, at_us, identity } => trash(root, from, identity, (id, *at_us), &tag),
        Step::Restore { id, to, identity } => restore(root, id, to, identity, &tag),
        Step::Purge { id, identity } => purge(root, id, identity, &tag),
    }
}

fn move_to(root: &Root, from: &str, to: &str, identity: &Identity, tag: &str) -> Result<Done, Fault> {
    let (from, to) = (root.changeable(from)?, root.changeable(to)?);
    into_itself(root, from.as_str(), to.as_str(), identity.kind)?;
    let source = Spot::find(root, &from)?;
    let found = check(root, &source, identity)?;
    carries_nothing_withheld(root, &source, found.kind, &source.path)?;
    let (target, made) = Spot::make(root, &to)?;
    // Making folders takes a moment: the last look is right before the effect.
    let moved = check(root, &source, &Identity { sha256: None, ..*identity }).and_then(|_| relocate(root, &source, &target, identity, tag));
    let moved = moved.inspect_err(|_| made.take_back(root))?;
    let identity = Identity { sha256: identity.sha256.or(moved.sha256), ..moved };
    Ok(Done::Moved { from: source.path, to: target.path, identity, made: made.0 })
}

fn copy_to(root: &Root, from: &str, to: &str, identity: &Identity, tag: &str) -> Result<Done, Fault> {
    let (from, to) = (root.changeable(from)?, root.changeable(to)?);
    let source = Spot::find(root, &from)?;
    check(root, &source, identity)?;
    let (target, made) = Spot::make(root, &to)?;
    let placed = target.temporary(root, tag).and_then(|arriving| {
        let copied = copy::copy_one(root, &source, &arriving, identity)?;
        place(root, &arriving, &target)?;
        Ok(copied)
    });
    let identity = placed.inspect_err(|_| made.take_back(root))?;
    Ok(Done::Copied { to: target.path, identity, made: made.0 })
}

/// Gives a finished temporary file its name.
fn place(root: &Root, arriving: &Spot, target: &Spot) -> Result<(), Fault> {
    let placed = sys::rename_new(arriving.folder(), &arriving.name, target.folder(), &target.name);
    placed.map_err(|errno| root.errno(&target.path, errno)).inspect_err(|_| {
        let _ = arriving.unlink(root);
    })?;
    target.sync(root)
}

fn write_new(root: &Root, to: &str, content: &Blob, bits: Option<u32>, tag: &str) -> Result<Done, Fault> {
    let to = root.changeable(to)?;
    bounded(root, to.as_str(), &content.0)?;
    let (target, made) = Spot::make(root, &to)?;
    let placed = target.temporary(root, tag).and_then(|arriving| {
        let file = copy::write_file(root, &arriving, &content.0, bits)?;
        place(root, &arriving, &target)?;
        sys::look_at(file.as_fd()).map_err(|errno| root.errno(&target.path, errno))
    });
    let written = placed.inspect_err(|_| made.take_back(root))?;
    Ok(Done::Written { to: target.path, identity: Identity { sha256: Some(content.digest()), ..written }, made: made.0 })
}

fn replace(root: &Root, path: &str, identity: &Identity, content: &Blob, kept: (&str, i64), tag: &str) -> Result<Done, Fault> {
    let path = root.changeable(path)?;
    bounded(root, path.as_str(), &content.0)?;
    if identity.kind != Kind::File || identity.sha256.is_none() {
        return Err(root.fault(Code::Invalid, path.as_str(), "what is replaced must be a file whose digest is known"));
    }
    let place = Spot::find(root, &path)?;
    check(root, &place, identity)?;
    let trash = Trash::make(root)?;
    let keep = trash.spot(root, kept.0)?;
    trash.note(root, kept.0, &Info { from: path.as_str().to_owned(), at_us: Some(kept.1) })?;
    let done = place.temporary(root, tag).and_then(|aside| {
        let file = copy::write_file(root, &aside, &content.0, Some(identity.mode))?;
        copy::keep_owner(&place, file.as_fd());
        let old = swap(root, &place, &aside, identity, &keep, tag)?;
        let new = sys::look_at(file.as_fd()).map_err(|errno| root.errno(&place.path, errno))?;
        Ok((Identity { sha256: identity.sha256, ..old }, Identity { sha256: Some(content.digest()), ..new }))
    });
    let (old, new) = done.inspect_err(|_| {
        if keep.look().is_err() {
            trash.forget(kept.0);
        }
    })?;
    Ok(Done::Replaced { path: place.path, kept: kept.0.to_owned(), old, new })
}

/// Exchanges the new file for the old one in one call, looks whether that was the one that was meant, and keeps it; answers
/// what the kept one is now.
fn swap(root: &Root, place: &Spot, aside: &Spot, identity: &Identity, keep: &Spot, tag: &str) -> Result<Identity, Fault> {
    let exchanged = sys::exchange(place.folder(), &place.name, aside.folder(), &aside.name);
    if matches!(exchanged, Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)) {
        return swap_in_two(root, place, aside, identity, keep, tag);
    }
    exchanged.map_err(|errno| root.errno(&place.path, errno)).inspect_err(|_| {
        let _ = aside.unlink(root);
    })?;
    let kept = check(root, aside, identity).and_then(|_| relocate(root, aside, keep, identity, tag));
    if kept.is_err() && sys::exchange(place.folder(), &place.name, aside.folder(), &aside.name).is_ok() {
        let _ = aside.unlink(root);
    }
    let old = kept?;
    place.sync(root)?;
    Ok(old)
}

/// Where two names can't be exchanged: first the old one goes, then the new one comes. Nothing is lost in between, but for
/// that moment nothing is there.
fn swap_in_two(root: &Root, place: &Spot, aside: &Spot, identity: &Identity, keep: &Spot, tag: &str) -> Result<Identity, Fault> {
    let old = relocate(root, place, keep, identity, tag).inspect_err(|_| {
        let _ = aside.unlink(root);
    })?;
    let placed = check(root, keep, &Identity { sha256: identity.sha256, ..old })
        .and_then(|_| sys::rename_new(aside.folder(), &aside.name, place.folder(), &place.name).map_err(|errno| root.errno(&place.path, errno)));
    placed.inspect_err(|_| {
        let _ = relocate(root, keep, place, &old, tag);
        let _ = aside.unlink(root);
    })?;
    place.sync(root)?;
    Ok(old)
}

fn make_folder(root: &Root, path: &str) -> Result<Done, Fault> {
    let path = root.changeable(path)?;
    let mut made = Made::default();
    let opened = make_folders(root, path.as_str(), &mut made).inspect_err(|_| made.take_back(root));
    drop(opened?);
    if made.0.is_empty() {
        return Err(root.errno(path.as_str(), Errno::EXIST));
    }
    Ok(Done::FolderMade { path: path.as_str().to_owned(), made: made.0 })
}

fn remove_empty_folder(root: &Root, path: &str, identity: &Identity, into: (&str, i64), tag: &str) -> Result<Done, Fault> {
    let path = root.changeable(path)?;
    if identity.kind != Kind::Folder {
        return Err(root.fault(Code::NotAFolder, path.as_str(), "not a folder"));
    }
    must_be_empty(root, &Spot::find(root, &path)?)?;
    let done = trash(root, path.as_str(), identity, into, tag)?;
    // Somebody may have put something in at the last moment: then it goes back.
    let emptied = Trash::open(root).and_then(|trash| trash.spot(root, into.0)).and_then(|spot| must_be_empty(root, &spot));
    if emptied.is_err() {
        undo(root, &done)?;
        return Err(root.errno(path.as_str(), Errno::NOTEMPTY));
    }
    Ok(done)
}

fn must_be_empty(root: &Root, spot: &Spot) -> Result<(), Fault> {
    let told = |errno| root.errno(&spot.path, errno);
    let folder = sys::open_beneath(spot.folder(), &spot.name, sys::FOLDER).map_err(told)?;
    let (names, _) = sys::names_after(folder.as_fd(), None, 1).map_err(told)?;
    if names.is_empty() { Ok(()) } else { Err(told(Errno::NOTEMPTY)) }
}

fn trash(root: &Root, from: &str, identity: &Identity, into: (&str, i64), tag: &str) -> Result<Done, Fault> {
    let from = root.changeable(from)?;
    let source = Spot::find(root, &from)?;
    let found = check(root, &source, identity)?;
    carries_nothing_withheld(root, &source, found.kind, &source.path)?;
    let (id, at_us) = into;
    let trash = Trash::make(root)?;
    let target = trash.spot(root, id)?;
    trash.note(root, id, &Info { from: from.as_str().to_owned(), at_us: Some(at_us) })?;
    let moved = relocate(root, &source, &target, identity, tag).inspect_err(|_| trash.forget(id))?;
    let identity = Identity { sha256: identity.sha256.or(moved.sha256), ..moved };
    Ok(Done::Trashed { from: source.path, id: id.to_owned(), at_us, identity })
}

fn restore(root: &Root, id: &str, to: &str, identity: &Identity, tag: &str) -> Result<Done, Fault> {
    let to = root.changeable(to)?;
    let trash = Trash::open(root)?;
    let source = trash.spot(root, id)?;
    let found = check(root, &source, identity)?;
    let info = trash.info(id);
    // What was put away before the root began to withhold it does not come out at another place.
    if let Some(info) = info.as_ref().filter(|info| info.from != to.as_str()) {
        if root.withheld().covers(&info.from) {
            return Err(root.fault(Code::NotFound, "", "not in the trash"));
        }
        carries_nothing_withheld(root, &source, found.kind, &info.from)?;
    }
    let (target, made) = Spot::make(root, &to)?;
    let moved = relocate(root, &source, &target, identity, tag).inspect_err(|_| made.take_back(root))?;
    trash.forget(id);
    let (from, at_us) = info.map_or((None, None), |info| (Some(info.from), info.at_us));
    let identity = Identity { sha256: identity.sha256.or(moved.sha256), ..moved };
    Ok(Done::Restored { id: id.to_owned(), to: target.path, identity, from, at_us, made: made.0 })
}

fn purge(root: &Root, id: &str, identity: &Identity, tag: &str) -> Result<Done, Fault> {
    let trash = Trash::open(root)?;
    let spot = trash.spot(root, id)?;
    check(root, &spot, identity)?;
    let leaving = spot.temporary(root, tag)?;
    relocate(root, &spot, &leaving, identity, tag)?;
    trash.forget(id);
    copy::remove_all(root, &leaving)?;
    Ok(Done::Purged { id: id.to_owned() })
}
