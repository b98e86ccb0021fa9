//! Moving across devices, and what is left of that when the process ends in the middle.
//!
//! The copy is made under a temporary name, the source is set aside under another one, the copy gets its name, the two are
//! compared, and only then the source goes. So what lies aside tells how far it came: with the copy still under its temporary
//! name nothing has happened yet that anybody could see; with the copy in its place, all that is left is to compare and remove.

use rustix::io::Errno;

use super::super::fault::{Code, Fault};
use super::super::identity::Identity;
use super::super::path;
use super::super::root::Root;
use super::super::sys;
use super::copy::{copy_all, is_same_all, look_closely, remove_all};
use super::spot::Spot;

/// Names of their own: what is moved may itself stand under a temporary name with this tag.
fn arriving_name(tag: &str) -> String {
    path::temporary(&format!("{tag}-in"))
}

/// Moves a thing to a device where nothing is yet in its place. The source is on another disk and can be gone there at once,
/// so in bulk, too, nothing of the copy is left for later.
pub(super) fn across(root: &Root, from: &Spot, to: &Spot, meant: &Identity, tag: &str) -> Result<Identity, Fault> {
    let (bulk, root) = (!root.syncs(), &root.one_by_one());
    let leaving = from.beside(root, &path::set_aside(tag))?;
    // What an earlier attempt set aside may be all that is left of it.
    if leaving.look().is_ok() {
        return Err(root.fault(Code::Exists, &from.path, "an earlier attempt left something of it beside it"));
    }
    if to.look().is_ok() {
        return Err(root.errno(&to.path, Errno::EXIST));
    }
    let arriving = to.temporary(root, &format!("{tag}-in"))?;
    let copied = copy_all(root, from, &arriving, 0).and_then(|()| arriving.look().map_err(|errno| root.errno(&to.path, errno)));
    let aside = copied.and_then(|copied| rename(root, from, &leaving, &from.path).map(|()| copied));
    let copied = aside.inspect_err(|_| {
        let _ = remove_all(root, &arriving);
    })?;
    if let Err(fault) = arrive(root, &arriving, to, &copied, bulk).and_then(|()| compare(root, from, &leaving, to, meant)) {
        return Err(withdraw(root, (from, &leaving), (&arriving, to), (meant, &copied), fault));
    }
    remove_source(root, from, &leaving)?;
    // It has another inode now, so the digest is what it can be known by.
    look_closely(root, to)
}

fn rename(root: &Root, from: &Spot, to: &Spot, told: &str) -> Result<(), Fault> {
    sys::rename_new(from.folder(), &from.name, to.folder(), &to.name).map_err(|errno| root.errno(told, errno))
}

fn is_there(spot: &Spot, meant: &Identity) -> bool {
    spot.look().is_ok_and(|found| found.is_same_thing(meant))
}

/// Gives the copy its name, and brings that to the disk with the folders that were made on the way.
fn arrive(root: &Root, arriving: &Spot, to: &Spot, copied: &Identity, bulk: bool) -> Result<(), Fault> {
    rename(root, arriving, to, &to.path)?;
    if !is_there(to, copied) {
        return Err(root.fault(Code::Changed, &to.path, "was swapped for something else in this moment"));
    }
    to.sync(root)?;
    if bulk { to.settle(root) } else { Ok(()) }
}

fn compare(root: &Root, from: &Spot, leaving: &Spot, to: &Spot, meant: &Identity) -> Result<(), Fault> {
    let same = is_there(leaving, meant) && is_same_all(root, leaving, to, false, 0)?;
    if same { Ok(()) } else { Err(root.fault(Code::Changed, &from.path, "was changed while it was copied to another device")) }
}

/// Everything as it was: the copy leaves its place if it is ours, the source goes back to its own, and the copy is removed where the
/// source is there for certain.
fn withdraw(root: &Root, (from, leaving): (&Spot, &Spot), (arriving, to): (&Spot, &Spot), (meant, copied): (&Identity, &Identity), fault: Fault) -> Fault {
    if is_there(to, copied) && rename(root, to, arriving, &to.path).is_ok() && !is_there(arriving, copied) {
        let _ = rename(root, arriving, to, &to.path);
    }
    let back = rename(root, leaving, from, &from.path).is_ok();
    if is_there(arriving, copied) {
        let _ = if back || is_there(from, meant) || is_there(leaving, meant) { remove_all(root, arriving) } else { rename(root, arriving, to, &to.path) };
    }
    if back || leaving.look().is_err() { fault } else { kept_aside(root, from, leaving) }
}

/// The source can go neither way: something else is in its place by now, say.
fn kept_aside(root: &Root, from: &Spot, leaving: &Spot) -> Fault {
    let why = format!("it could neither go to another device nor back to its place: it lies beside that, as {}", leaving.name);
    root.fault(Code::Exists, &from.path, &why)
}

/// Removes what was set aside. What cannot be removed is not left under a name that nobody sees.
fn remove_source(root: &Root, from: &Spot, leaving: &Spot) -> Result<(), Fault> {
    if let Err(fault) = remove_all(root, leaving) {
        let _ = rename(root, leaving, from, &from.path);
        let why = "it is at its new place, on another device, but not all of what it was here could be removed; what is left is in its old place";
        return Err(root.fault(fault.code, &from.path, why));
    }
    from.sync(root)
}

/// Ends what an attempt left half done that was cut short, or takes it back. Answers what is at the target if all of it is there
/// now; otherwise what was set aside is in its place again.
pub(super) fn finish(root: &Root, from: &Spot, to: Option<&Spot>, meant: &Identity, tag: &str) -> Result<Option<Identity>, Fault> {
    let root = &root.one_by_one();
    let leaving = from.beside(root, &path::set_aside(tag))?;
    let arriving = to.map(|to| to.beside(root, &arriving_name(tag))).transpose()?;
    let begun = arriving.as_ref().filter(|arriving| arriving.look().is_ok());
    match leaving.look() {
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(root.errno(&from.path, errno)),
        Ok(found) => {
            if let Some(to) = to.filter(|to| begun.is_none() && found.is_same_thing(meant) && to.look().is_ok()) {
                if is_same_all(root, &leaving, to, true, 0)? {
                    to.sync(root)?;
                    to.settle(root)?;
                    remove_source(root, from, &leaving)?;
                    return look_closely(root, to).map(Some);
                }
                rename(root, &leaving, from, &from.path).map_err(|_| kept_aside(root, from, &leaving))?;
                let why = "was on its way to another device, and is not like its copy there any more; it is in its place again, and the copy is left";
                return Err(root.fault(Code::Changed, &from.path, why));
            }
            rename(root, &leaving, from, &from.path).map_err(|_| kept_aside(root, from, &leaving))?;
        }
    }
    // What was copied so far is not needed as long as the source is there.
    if let Some(begun) = begun.filter(|_| is_there(from, meant)) {
        remove_all(root, begun)?;
    }
    Ok(None)
}
