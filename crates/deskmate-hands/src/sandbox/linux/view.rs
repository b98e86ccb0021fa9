//! A view of the file system that holds only what was granted: an empty root into which the granted paths are mounted at
//! their own places.

use super::{Done, files, namespaces, told};
use crate::sandbox::wire::Job;
use rustix::fs::{Mode, OFlags, StatVfsMountFlags, statvfs};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind_recursive, mount_remount, unmount};
use rustix::process::pivot_root;
use rustix::thread::UnshareFlags;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Builds the view and moves into it. What was outside cannot be named afterwards.
pub(super) fn move_in(job: &Job, root: &Path) -> Done {
    // Whoever shares these mounts would be moved too, and the supervisor must go on seeing its own.
    namespaces::unshare(UnshareFlags::NEWNS).map_err(told("parting from the supervisor's mounts"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", root, "tmpfs", flags, Some(c"mode=0755,size=1m")).map_err(told("mounting an empty root"))?;
    let mut granted: Vec<(PathBuf, bool)> = Vec::new();
    granted.extend(job.spec.read_only.iter().map(|path| (path.clone(), false)));
    granted.extend(job.spec.read_write.iter().map(|path| (path.clone(), true)));
    granted.extend(files::DEVICES.iter().map(PathBuf::from).filter(|path| path.exists()).map(|path| (path, true)));
    granted.push((job.private.clone(), true));
    if job.spec.own_proc {
        granted.push((files::OWN_PROC.into(), false));
    }
    // What contains comes before what is contained.
    granted.sort();
    for (path, writable) in &granted {
        let place = beneath(root, path);
        graft(path, &place, *writable).map_err(|error| format!("{}: {error}", path.display()))?;
        let held = rustix::fs::open(&place, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).map_err(told("looking at what is given"))?;
        job.spec.is_meant(path, held)?;
    }
    for (link, target) in &job.links {
        let place = beneath(root, link);
        // A link within something granted is there already.
        if place.symlink_metadata().is_err() {
            place.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| symlink(target, &place)).map_err(told("making a link"))?;
        }
    }
    enter(root)
}

/// Tries what a view needs, and says `ok`.
pub(super) fn probe(root: &Path) -> Done {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", root, "tmpfs", flags, Some(c"mode=0755,size=1m")).map_err(told("mounting an empty root"))?;
    graft(Path::new("/usr"), &beneath(root, Path::new("/usr")), false)?;
    enter(root)?;
    std::io::stdout().write_all(b"ok").map_err(told("answer"))
}

fn beneath(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn graft(path: &Path, place: &Path, writable: bool) -> Done {
    if path.is_dir() {
        fs::create_dir_all(place).map_err(told("making its place"))?;
    } else if !place.exists() {
        place.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(place, "")).map_err(told("making its place"))?;
    }
    mount_bind_recursive(path, place).map_err(told("mounting it"))?;
    // Whatever is mounted beneath came along, and needs its own bounds.
    for mounted in mounted_beneath(place)? {
        restrict(&mounted, writable).map_err(|error| format!("restricting {}: {error}", mounted.display()))?;
    }
    Ok(())
}

/// Adds to the flags of a mount; those that it has already cannot be taken away here.
fn restrict(place: &Path, writable: bool) -> Done {
    let has = statvfs(place).map_err(told("reading its flags"))?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::NOSUID;
    if !writable || has.contains(StatVfsMountFlags::RDONLY) {
        flags |= MountFlags::RDONLY;
    }
    for (had, keep) in [
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        if has.contains(had) {
            flags |= keep;
        }
    }
    mount_remount(place, flags, c"").map_err(told("remounting it"))
}

/// The mounts at this place and beneath it, as the kernel lists them.
fn mounted_beneath(place: &Path) -> Done<Vec<PathBuf>> {
    let list = fs::read_to_string("/proc/self/mountinfo").map_err(told("listing mounts"))?;
    let mut found: Vec<PathBuf> = list.lines().filter_map(|line| line.split(' ').nth(4)).map(unescape).filter(|path| path.starts_with(place)).collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// The kernel writes spaces and the like as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if let ([b'\\'], Some(digits)) = ([*first], after.get(..3))
            && let Some(value) = std::str::from_utf8(digits).ok().and_then(|digits| u8::from_str_radix(digits, 8).ok())
        {
            bytes.push(value);
            rest = after.get(3..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

fn enter(root: &Path) -> Done {
    mount_remount(root, MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY, c"").map_err(told("closing the root"))?;
    std::env::set_current_dir(root).map_err(told("entering the view"))?;
    // The old root is put over the new one and taken off: it needs no place of its own.
    pivot_root(".", ".").map_err(told("changing the root"))?;
    unmount(".", UnmountFlags::DETACH).map_err(told("leaving the old root"))?;
    std::env::set_current_dir("/").map_err(told("entering the view"))
}

#[cfg(test)]
mod tests {
    use super::unescape;
    use std::path::Path;

    #[test]
    fn a_mount_point_with_a_space_is_read_back() {
        assert_eq!(unescape("/a\\040b/\\134c"), Path::new("/a b/\\c"));
        assert_eq!(unescape("/plain\\04"), Path::new("/plain\\04"));
    }
}
