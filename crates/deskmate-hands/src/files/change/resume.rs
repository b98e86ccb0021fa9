//! After a crash: what an attempt left half done is ended, or taken back, before anybody looks how far it came.

use super::super::fault::Fault;
use super::super::identity::Identity;
use super::super::path;
use super::super::root::Root;
use super::across::finish;
use super::copy::remove_all;
use super::probe::{Probe, place, place_in_trash, probe, probe_after};
use super::spot::{Spot, relocate};
use super::step::{Done, Step, tag_of};
use super::trash::Trash;

/// Ends what an earlier attempt left of a step, and tells what [`super::probe`] does. Only whoever does the step calls this:
/// what lies aside may be in the hands of another worker.
pub fn resume(root: &Root, step: &Step, since_ns: Option<i64>) -> Result<Probe, Fault> {
    // Where nothing may be changed any more, it is only looked how far it came.
    if root.for_writing().is_err() {
        return probe(root, step, since_ns);
    }
    let tag = step.tag();
    let arrived = match step {
        Step::Move { from, to, identity } => half(root, place(root, from)?, place(root, to)?, identity, &tag)?,
        Step::Trash { from, id, identity, .. } | Step::RemoveEmptyFolder { path: from, id, identity, .. } => {
            half(root, place(root, from)?, place_in_trash(root, id), identity, &tag)?
        }
        Step::Restore { id, to, identity } => half(root, place_in_trash(root, id), place(root, to)?, identity, &tag)?,
        Step::Replace { path, identity, kept, .. } => {
            keep(root, path, kept, identity)?;
            None
        }
        Step::Purge { id, identity } => {
            if let Some(spot) = place_in_trash(root, id) {
                let leaving = spot.beside(root, &path::temporary(&tag))?;
                if leaving.look().is_ok_and(|found| found.is_same_thing(identity)) {
                    Trash::open(root)?.forget(id);
                    remove_all(root, &leaving)?;
                    spot.sync(root)?;
                    return Ok(Probe::Done(Done::Purged { id: id.clone() }));
                }
            }
            None
        }
        Step::Copy { .. } | Step::Write { .. } | Step::MakeFolder { .. } => None,
    };
    probe_after(root, step, since_ns, arrived)
}

/// Ends what an earlier attempt left of taking a step back. `true` if that is back for certain.
pub fn resume_undo(root: &Root, done: &Done) -> Result<bool, Fault> {
    if root.for_writing().is_err() {
        return Ok(false);
    }
    let tag = tag_of(&serde_json::to_vec(done).unwrap_or_default());
    let back = match done {
        Done::Moved { from, to, identity, .. } => half(root, place(root, to)?, place(root, from)?, identity, &tag)?,
        Done::Trashed { from, id, identity, .. } => half(root, place_in_trash(root, id), place(root, from)?, identity, &tag)?,
        Done::Restored { id, to, identity, .. } => half(root, place(root, to)?, place_in_trash(root, id), identity, &tag)?,
        // Once it lies beside its place, undoing finds it there.
        Done::Replaced { path, kept, old, .. } => {
            let place = place(root, path)?;
            let beside = place.map(|place| place.beside(root, &path::temporary(&tag_of(kept.as_bytes())))).transpose()?;
            half(root, place_in_trash(root, kept), beside, old, &tag)?;
            None
        }
        Done::Copied { .. } | Done::Written { .. } | Done::FolderMade { .. } | Done::Purged { .. } => None,
    };
    Ok(back.is_some())
}

fn half(root: &Root, from: Option<Spot>, to: Option<Spot>, meant: &Identity, tag: &str) -> Result<Option<Identity>, Fault> {
    from.map_or(Ok(None), |from| finish(root, &from, to.as_ref(), meant, tag))
}

/// Brings what was replaced to the trash, if it was on its way there.
fn keep(root: &Root, path: &str, kept: &str, meant: &Identity) -> Result<(), Fault> {
    let (Some(place), Some(keep)) = (place(root, path)?, place_in_trash(root, kept)) else { return Ok(()) };
    let tag = tag_of(kept.as_bytes());
    let aside = place.beside(root, &path::temporary(&tag))?;
    // Where two names cannot be exchanged, it went there from its place itself.
    let from = if place.look().is_ok() { &aside } else { &place };
    let arrived = finish(root, from, Some(&keep), meant, &tag)?;
    if arrived.is_none() && aside.look().is_ok_and(|found| found.is_same_thing(meant)) && keep.look().is_err() {
        relocate(root, &aside, &keep, meant, &tag)?;
    }
    Ok(())
}
