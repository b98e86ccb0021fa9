//! Retention: jobs that ended long ago go, with their attempts and leases, a bounded slice at a time.

use deskmate_db::args;

use super::events::PRUNED;
use super::model::Pruned;
use crate::Result;
use crate::call::Cx;
use crate::limits::JOB_SLICE_MAX;
use crate::record::Event;

/// The same slice three times: leases and attempts go first, because they are found by the jobs.
macro_rules! slice {
    ($before:literal, $id:literal) => {
        concat!($before, " in (select ", $id, " from job where finished_at is not null and finished_at < $1 order by finished_at, id limit $2)")
    };
}

pub(super) const LEASES: &str = slice!("delete from lease where subject", "'job:' || id");
pub(super) const ATTEMPTS: &str = slice!("delete from job_attempt where job", "id");
pub(super) const JOBS: &str = slice!("delete from job where id", "id");

/// Deletes jobs that ended before a moment, the oldest first and at most `limit` of them.
pub fn prune(cx: &mut Cx<'_, '_>, finished_before: i64, limit: u32) -> Result<Pruned> {
    let limit = limit.min(JOB_SLICE_MAX);
    let slice = args![finished_before, limit];
    cx.tx.execute(LEASES, slice)?;
    cx.tx.execute(ATTEMPTS, slice)?;
    let jobs = cx.tx.execute(JOBS, slice)?;
    if jobs > 0 {
        cx.emit(Event::new(PRUNED, "jobs").fact("jobs", jobs).fact("finished_before", finished_before))?;
    }
    Ok(Pruned { jobs, more: limit > 0 && jobs >= u64::from(limit) })
}
