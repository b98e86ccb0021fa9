//! The first stage: namespaces of one's own, which an ordinary account makes by making a user namespace first.

use super::{Done, told};
use crate::sandbox::SUB_COMMAND;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Signal, getegid, geteuid, set_parent_process_death_signal};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities, configure_capability_in_ambient_set, set_capabilities};
use std::fs;
use std::process::Command;

/// Makes the namespaces, starts the next stage as the first process in them and waits for it.
pub(super) fn outer(no_network: bool, next: &[&str]) -> Done {
    // What the desk had open by oversight goes no further.
    close_fds::set_fds_cloexec(3, &[]);
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWPID | UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    if no_network {
        flags |= UnshareFlags::NEWNET;
    }
    unshare(flags).map_err(told("making namespaces"))?;
    // Nobody becomes another: the account keeps its number, and no other number exists inside.
    fs::write("/proc/self/setgroups", "deny").map_err(told("closing the list of groups"))?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(told("naming the account"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(told("naming the group"))?;
    // The next stages mount, which a new process may only with a capability that outlives its start.
    let mut sets = capabilities(None).map_err(told("reading capabilities"))?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    set_capabilities(None, sets).map_err(told("keeping the right to mount"))?;
    configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true).map_err(told("keeping the right to mount"))?;

    let inside = next.iter().map(|word| if *word == "supervise" { "supervise-inside" } else { word });
    let status = Command::new("/proc/self/exe").arg(SUB_COMMAND).args(inside).env_clear().status().map_err(told("starting the next stage"))?;
    if status.success() { Ok(()) } else { Err(format!("the next stage ended with {status}")) }
}

/// What the first process inside does first: it dies with the outer stage, and sees only the processes inside.
pub(super) fn arrive() -> Done {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(told("binding to the outer stage"))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).map_err(told("parting from the mounts outside"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(told("mounting /proc"))
}

#[expect(deprecated, reason = "the replacement is unsafe for the sake of FILES, which is not among these flags")]
pub(super) fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}
