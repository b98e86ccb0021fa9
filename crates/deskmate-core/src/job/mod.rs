//! Durable work: what an operation wants done outside its transaction is a job, and a worker does it under a lease.
//!
//! - A job is `waiting`, `running`, or has ended as `done`, `failed`, `ambiguous` or `cancelled`. It runs only under a
//!   lease on `job:ID`, taken in the transaction that makes it `running`; whoever reports on it shows the lease's fence,
//!   so a worker that was given up cannot overwrite what its successor does.
//! - Result, state and the end of the attempt are written together, with the event that tells of them.
//! - A worker that gives no sign of life loses its job: [`rescue`] gives it to another one, or ends it.
//! - Every list, claim, rescue and deletion is bounded, and reads through an index, not through history.
//!
//! The worker loop is in the binary; here are the steps that it takes, each in one transaction.
//!
//! Tables: `job`, `job_attempt`, and `lease` for subjects `job:ID`.

mod entry;
mod events;
mod model;
mod operations;
mod prune;
mod queue;
mod rows;
mod run;
mod steer;

use crate::call::{Access, Op, Role, Toolset};
use crate::record::Kind;

pub(crate) use entry::{Entry, contents, count_open, entries, entry};
pub use model::{Beat, Claimed, Enqueued, Hold, IfLost, NewJob, Outcome, Owner, Priority, Progress, Pruned, Rescued, State};
pub(crate) use operations::{how, seen, under_way};
pub use prune::prune;
pub use queue::{ANYWHERE, claim, claim_at, enqueue, ensure_scheduled, next_due, waiting_places};
pub(crate) use rows::input;
pub use run::{finish, heartbeat, held, rescue, rescue_all};
pub(crate) use steer::drop;
pub use steer::{cancel, retry};

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[events::ENQUEUED, events::STARTED, events::RETRIED, events::RESCUED, events::FINISHED, events::CANCEL_REQUESTED, events::PRUNED];

/// The statements whose cost must not grow with what the tables hold, each with the index that it has to go through: a
/// test reads their plans on both engines.
#[doc(hidden)]
pub const INDEXED: &[(&str, &str)] = &[
    (queue::NEXT_DUE, "job_waiting"),
    (queue::DUE_SQLITE, "job_waiting"),
    (queue::NEXT_PLACE, "job_waiting"),
    (rows::UNIQUE, "job_unique"),
    (entry::OPEN, "job_unique"),
    (run::RUNNING, "job_running"),
    (operations::OF_OWNER, "job_by_owner"),
    (operations::IN_STATE, "job_by_state"),
    (operations::OF_KIND, "job_by_kind"),
    (operations::ALL, "job_by_age"),
    (prune::JOBS, "job_finished"),
    (prune::ATTEMPTS, "job_finished"),
    (prune::LEASES, "job_finished"),
];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    vec![
        Op::read(Toolset::Desk, "job_list", operations::list).access(Access::Anyone),
        Op::read(Toolset::Desk, "job_get", operations::get).access(Access::Anyone),
        Op::wait(Toolset::Desk, "job_wait", operations::wait).access(Access::Anyone),
        // Asking again for what was asked for changes nothing, and then there is nothing to tell.
        Op::write(Toolset::Desk, "job_cancel", operations::cancel_job).access(Access::Anyone).destructive().idempotent(),
        Op::write(Toolset::Desk, "job_retry", operations::retry_job).access(Access::Person(Role::Member)),
    ]
}
