//! What jobs tell the record: ids, kinds and numbers. Inputs, results and errors stay in the job's own rows, where
//! retention ends them.

use super::model::{Owner, State};
use super::rows::JobRow;
use crate::Result;
use crate::call::Cx;
use crate::record::{Event, Kind};

/// A job was enqueued.
pub(super) const ENQUEUED: Kind = Kind { name: "job.enqueued", says: "A job was put into the queue." };
/// A worker took a job.
pub(super) const STARTED: Kind = Kind { name: "job.started", says: "A worker took a job and runs it under a lease." };
/// A job will be tried again.
pub(super) const RETRIED: Kind = Kind { name: "job.retried", says: "A job waits for another attempt, after a failure or because somebody asked for it." };
/// A job was taken from a worker that gave no sign of life.
pub(super) const RESCUED: Kind = Kind { name: "job.rescued", says: "A job's worker gave no sign of life; the job waits again or has ended." };
/// A job ended.
pub(super) const FINISHED: Kind = Kind { name: "job.finished", says: "A job ended: done, failed, ambiguous or cancelled." };
/// Somebody wants a running job to stop.
pub(super) const CANCEL_REQUESTED: Kind =
    Kind { name: "job.cancel_requested", says: "A running job was asked to stop; it learns of it with its next sign of life." };
/// Old jobs were deleted.
pub(super) const PRUNED: Kind = Kind { name: "jobs.pruned", says: "Jobs that ended long ago were deleted, with their attempts and leases." };

/// Tells what happened to a job and the state that it is in now; `more` adds facts.
pub(super) fn tell(cx: &mut Cx<'_, '_>, kind: Kind, job: &JobRow, state: State, more: impl FnOnce(Event) -> Event) -> Result<()> {
    let event = about(kind, &job.id, &job.kind, &job.owner).fact("attempt", job.attempt).fact("state", state.name());
    cx.emit(more(event))
}

/// An event about a job, for its owner to see.
pub(super) fn about(kind: Kind, id: &str, job_kind: &str, owner: &Owner) -> Event {
    let event = Event::new(kind, format!("job:{id}")).fact("job", id).fact("kind", job_kind);
    if owner.is_desk() { event } else { event.audience([owner.id.as_str()]) }
}
