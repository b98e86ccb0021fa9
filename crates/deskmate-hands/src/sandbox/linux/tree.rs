//! The processes of a run: who descends from the supervisor, what they hold, and how all of them are ended.

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, getuid, kill_process_group, pidfd_open, pidfd_send_signal, waitpid};
use std::collections::{HashMap, HashSet};
use std::{fs, io};

/// A process as the kernel lists it. The time of its start tells it from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    ended: bool,
    started: u64,
}

/// Everything that descends from this process and has not ended.
fn descendants() -> io::Result<Vec<Process>> {
    let all: Vec<Process> = ids()?.filter_map(read).collect();
    let this = rustix::process::getpid().as_raw_nonzero().get();
    // Who does not see itself sees the wrong list, and would take it for an empty one.
    if !all.iter().any(|process| process.id == this) {
        return Err(io::Error::other("/proc does not list this process"));
    }
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut waiting = vec![this];
    while let Some(parent) = waiting.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            if seen.insert(child.id) {
                waiting.push(child.id);
                found.push(child);
            }
        }
    }
    found.retain(|process| !process.ended);
    Ok(found)
}

fn ids() -> io::Result<impl Iterator<Item = i32>> {
    Ok(fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

fn read(id: i32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // A name may hold anything, also a closing bracket: the last one ends it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Process { id, ended: matches!(*fields.first()?, "Z" | "X"), parent: fields.get(1)?.parse().ok()?, started: fields.get(19)?.parse().ok()? })
}

/// Bytes of memory that the descendants hold and that nobody can take from them. Pages that two of them share count twice.
pub(super) fn memory() -> io::Result<u64> {
    Ok(descendants()?.iter().map(|process| held(process.id).unwrap_or(0)).sum())
}

fn held(id: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let lines = text.lines().filter(|line| line.starts_with("RssAnon:") || line.starts_with("RssShmem:"));
    Some(lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>() << 10)
}

/// Ends the program's group at one blow that no fork escapes. Without namespaces nobody can leave it. The leader must not
/// have been taken leave of: its number could be another's by now.
pub(crate) fn end_group(leader: Pid) {
    let _ = kill_process_group(leader, Signal::KILL);
}

/// Asks the program's group to end. The leader must not have been taken leave of.
pub(crate) fn ask_group(leader: Pid) {
    let _ = kill_process_group(leader, Signal::TERM);
}

/// Ends every descendant that is on the list; answers whether there was none. With namespaces some may have left the group,
/// and the end of this process, the first inside, ends whatever could outrun the list.
pub(crate) fn end_descendants() -> bool {
    let Ok(left) = descendants() else { return false };
    for process in &left {
        let Some(id) = Pid::from_raw(process.id) else { continue };
        // The number may have been given to another since the list was made: this holds on to one, then looks again.
        if let Ok(file) = pidfd_open(id, PidfdFlags::empty())
            && read(process.id).is_some_and(|now| now.started == process.started)
        {
            let _ = pidfd_send_signal(file, Signal::KILL);
        }
    }
    left.is_empty()
}

/// Takes leave of the orphans that have ended, which the kernel counts until then.
pub(crate) fn take_leave(leader: Pid) {
    let this = rustix::process::getpid().as_raw_nonzero().get();
    for process in ids().into_iter().flatten().filter_map(read).filter(|process| process.ended && process.parent == this) {
        if let Some(id) = Pid::from_raw(process.id)
            && id != leader
        {
            let _ = waitpid(Some(id), WaitOptions::NOHANG);
        }
    }
}

/// Milliseconds of processor time of the descendants that have ended and were waited for.
pub(super) fn cpu_ms() -> u64 {
    let used = || {
        let text = fs::read_to_string("/proc/self/stat").ok()?;
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = fields.get(13)?.parse::<u64>().ok()?.saturating_add(fields.get(14)?.parse().ok()?);
        ticks.saturating_mul(1000).checked_div(rustix::param::clock_ticks_per_second())
    };
    used().unwrap_or(0)
}

/// How many processes and threads this account has now: the kernel's bound counts them all.
pub(in crate::sandbox) fn processes_of_this_account() -> u64 {
    let account = getuid().as_raw().to_string();
    let threads = |id: i32| {
        let text = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        (field("Uid:")? == account).then(|| field("Threads:")?.parse::<u64>().ok())?
    };
    ids().into_iter().flatten().filter_map(threads).sum()
}
