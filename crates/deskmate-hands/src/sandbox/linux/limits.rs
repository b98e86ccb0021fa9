//! What the kernel counts for each process.

use super::{Done, told};
use crate::sandbox::wire::Job;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Room for the supervisor's own threads, which the kernel counts too.
const SUPERVISOR: u64 = 8;

pub(super) fn set(job: &Job) -> Done {
    let limits = &job.spec.limits;
    // In a user namespace of its own only what is inside counts.
    let others = if job.view.is_some() { 0 } else { job.others };
    let processes = limits.processes.saturating_add(SUPERVISOR).saturating_add(others);
    // The first bound is a signal that can be told apart, the second ends who ignores it.
    bound(Resource::Cpu, limits.cpu_seconds, limits.cpu_seconds.saturating_add(1))?;
    bound(Resource::As, limits.address_space, limits.address_space)?;
    bound(Resource::Nproc, processes, processes)?;
    bound(Resource::Fsize, limits.file_size, limits.file_size)?;
    bound(Resource::Nofile, limits.open_files, limits.open_files)?;
    for nothing in [Resource::Core, Resource::Memlock, Resource::Msgqueue, Resource::Rtprio] {
        bound(nothing, 0, 0)?;
    }
    Ok(())
}

fn bound(resource: Resource, current: u64, maximum: u64) -> Done {
    // Whoever started the desk may have set less: a bound is never raised.
    let had = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(current.min(had)), maximum: Some(maximum.min(had)) };
    setrlimit(resource, limit).map_err(told("setting limits"))
}
