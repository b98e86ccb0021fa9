//! Taking a step back.

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::super::fault::{Code, Fault};
use super::super::identity::Identity;
use super::super::path;
use super::super::root::Root;
use super::super::sys;
use super::copy::look_closely;
use super::spot::{Made, Spot, carries_nothing_withheld, relocate};
use super::step::{Done, tag_of};
use super::trash::{Info, Trash};

/// Undoes what was done, as far as nobody built on it since: something that was moved goes back even if it was changed
/// meanwhile (with the change), something that was written goes only if it is as it was written.
pub fn undo(root: &Root, done: &Done) -> Result<(), Fault> {
    root.for_writing()?;
    let tag = tag_of(&serde_json::to_vec(done).unwrap_or_default());
    match done {
        Done::Moved { from, to, identity, made } => {
            let (from, to) = (root.changeable(from)?, root.changeable(to)?);
            let source = Spot::find(root, &to)?;
            let found = is_still(root, &source, identity)?;
            carries_nothing_withheld(root, &source, found.kind, &source.path)?;
            let (target, remade) = Spot::make(root, &from)?;
            relocate(root, &source, &target, &found, &tag).inspect_err(|_| remade.take_back(root))?;
            Made(made.clone()).take_back(root);
            Ok(())
        }
        Done::Copied { to, identity, made } | Done::Written { to, identity, made } => remove_written(root, to, identity, made, &tag),
        Done::Replaced { path, kept, old, new } => put_back(root, path, kept, old, new, &tag),
        Done::FolderMade { path, made } => remove_made(root, path, made),
        Done::Trashed { from, id, identity, .. } => {
            let from = root.changeable(from)?;
            let trash = Trash::open(root)?;
            let source = trash.spot(root, id)?;
            let found = is_still(root, &source, identity)?;
            let (target, remade) = Spot::make(root, &from)?;
            relocate(root, &source, &target, &found, &tag).inspect_err(|_| remade.take_back(root))?;
            trash.forget(id);
            Ok(())
        }
        Done::Restored { id, to, identity, from, at_us, made } => {
            let to = root.changeable(to)?;
            let source = Spot::find(root, &to)?;
            let found = is_still(root, &source, identity)?;
            carries_nothing_withheld(root, &source, found.kind, &source.path)?;
            let trash = Trash::make(root)?;
            let target = trash.spot(root, id)?;
            let info = Info { from: from.clone().unwrap_or_else(|| source.path.clone()), at_us: *at_us };
            trash.note(root, id, &info)?;
            relocate(root, &source, &target, &found, &tag).inspect_err(|_| trash.forget(id))?;
            Made(made.clone()).take_back(root);
            Ok(())
        }
        Done::Purged { .. } => Err(root.fault(Code::Irreversible, "", "what was purged is gone for good")),
    }
}

/// Ends an undoing that was cut short after the thing itself was back: what had been set aside goes, if it is what the step wrote,
/// and so do empty folders that the step had made.
pub fn settle(root: &Root, done: &Done) -> Result<(), Fault> {
    let tag = tag_of(&serde_json::to_vec(done).unwrap_or_default());
    let drop_if = |left: &Spot, written: &Identity| match look_closely(root, left) {
        Ok(found) if written.is_unchanged(&found) => left.unlink(root),
        _ => Ok(()),
    };
    match done {
        Done::Copied { to, identity, made } | Done::Written { to, identity, made } => {
            if let Ok(spot) = Spot::find(root, &root.changeable(to)?) {
                for attempt in 0..ASIDE_MAX {
                    let aside = spot.beside(root, &path::temporary(&format!("{tag}-{attempt}")))?;
                    if aside.look().is_err() {
                        break;
                    }
                    drop_if(&aside, identity)?;
                }
                spot.sync(root)?;
            }
            Made(made.clone()).take_back(root);
        }
        Done::Replaced { path, kept, new, .. } => {
            let place = Spot::find(root, &root.changeable(path)?)?;
            drop_if(&place.beside(root, &path::temporary(&tag_of(kept.as_bytes())))?, new)?;
            if let Ok(trash) = Trash::open(root) {
                let in_trash = trash.spot(root, kept)?;
                drop_if(&in_trash, new)?;
                if in_trash.look().is_err() {
                    trash.forget(kept);
                }
            }
        }
        Done::Trashed { id, .. } => {
            if let Ok(trash) = Trash::open(root)
                && trash.spot(root, id)?.look().is_err()
            {
                trash.forget(id);
            }
        }
        Done::Moved { made, .. } | Done::Restored { made, .. } | Done::FolderMade { made, .. } => Made(made.clone()).take_back(root),
        Done::Purged { .. } => {}
    }
    Ok(())
}

fn changed(root: &Root, path: &str) -> Fault {
    root.fault(Code::Changed, path, "was changed since, and is left as it is")
}

/// Looks whether it is the thing that was left here: the same inode, or, since going across devices gives another one, a
/// file with the same digest, mode and time.
fn is_still(root: &Root, spot: &Spot, meant: &Identity) -> Result<Identity, Fault> {
    let found = spot.look().map_err(|errno| root.errno(&spot.path, errno))?;
    if found.is_same_thing(meant) {
        return Ok(found);
    }
    let like = (found.kind, found.size, found.mode, found.mtime_ns) == (meant.kind, meant.size, meant.mode, meant.mtime_ns);
    if like && meant.sha256.is_some() && look_closely(root, spot)?.sha256 == meant.sha256 {
        return Ok(found);
    }
    Err(changed(root, &spot.path))
}

/// Removes a file that a step wrote: it is set aside, so that nobody else gets at it by its name, compared, and only then
/// removed.
fn remove_written(root: &Root, path: &str, identity: &Identity, made: &[String], tag: &str) -> Result<(), Fault> {
    let path = root.changeable(path)?;
    let spot = Spot::find(root, &path)?;
    if !identity.is_unchanged(&look_closely(root, &spot)?) {
        return Err(changed(root, path.as_str()));
    }
    let aside = free_name(root, &spot, tag)?;
    relocate(root, &spot, &aside, identity, tag)?;
    if !look_closely(root, &aside).is_ok_and(|found| identity.is_unchanged(&found)) {
        let _ = sys::rename_new(aside.folder(), &aside.name, spot.folder(), &spot.name);
        return Err(changed(root, path.as_str()));
    }
    aside.unlink(root)?;
    spot.sync(root)?;
    Made(made.to_vec()).take_back(root);
    Ok(())
}

/// How many names are tried for what is set aside.
const ASIDE_MAX: u32 = 100;

/// A temporary name that nothing has: what an undoing that was cut short had set aside is not ours to remove unseen.
fn free_name(root: &Root, spot: &Spot, tag: &str) -> Result<Spot, Fault> {
    for attempt in 0..ASIDE_MAX {
        let aside = spot.beside(root, &path::temporary(&format!("{tag}-{attempt}")))?;
        if aside.look() == Err(Errno::NOENT) {
            return Ok(aside);
        }
    }
    Err(root.fault(Code::Exists, &spot.path, "too many temporary files lie beside it"))
}

/// Exchanges the new content for the old file, which is the same as before with its mode and time.
fn put_back(root: &Root, path: &str, kept: &str, old: &Identity, new: &Identity, tag: &str) -> Result<(), Fault> {
    let path = root.changeable(path)?;
    let place = Spot::find(root, &path)?;
    if !new.is_unchanged(&look_closely(root, &place)?) {
        return Err(changed(root, path.as_str()));
    }
    let trash = Trash::open(root)?;
    let in_trash = trash.spot(root, kept)?;
    // A crash may have come between the exchange and the way to the trash.
    let aside = place.beside(root, &path::temporary(&tag_of(kept.as_bytes())))?;
    let source = if in_trash.look().is_ok() { &in_trash } else { &aside };
    let old = is_still(root, source, old)?;
    let exchanged = match sys::exchange(place.folder(), &place.name, source.folder(), &source.name) {
        Ok(()) => Ok(source),
        Err(Errno::XDEV) => {
            relocate(root, source, &aside, &old, tag)?;
            sys::exchange(place.folder(), &place.name, aside.folder(), &aside.name).map(|()| &aside)
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            let gone = free_name(root, &place, tag)?;
            relocate(root, &place, &gone, new, tag)?;
            relocate(root, source, &place, &old, tag)?;
            gone.unlink(root)?;
            trash.forget(kept);
            return place.sync(root);
        }
        Err(errno) => Err(errno),
    };
    let gone = exchanged.map_err(|errno| root.errno(path.as_str(), errno))?;
    if !look_closely(root, gone).is_ok_and(|found| new.is_unchanged(&found)) {
        let _ = sys::exchange(place.folder(), &place.name, gone.folder(), &gone.name);
        return Err(changed(root, path.as_str()));
    }
    gone.unlink(root)?;
    trash.forget(kept);
    place.sync(root)
}

/// Removes the folders that were made, the innermost first; it must be empty, those above may be in use by now. It may be gone
/// already: a step that put something into it goes back before, and after a crash that one does not know whose the folder was.
fn remove_made(root: &Root, path: &str, made: &[String]) -> Result<(), Fault> {
    let path = root.changeable(path)?;
    match Spot::find(root, &path) {
        Ok(spot) => match rustix::fs::unlinkat(spot.folder(), spot.name.as_str(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => spot.sync(root)?,
            Err(errno) => return Err(root.errno(path.as_str(), errno)),
        },
        // With a folder above it, or with one that is a file by now, it is gone, too.
        Err(fault) if matches!(fault.code, Code::NotFound | Code::NotAFolder) => {}
        Err(fault) => return Err(fault),
    }
    Made(made.to_vec()).take_back(root);
    Ok(())
}
