//! Plans: what changes files is asked for, made into steps by a job, bound by a digest, approved as a request, done by
//! another job part by part, and taken back by a further plan. A program that is run is a plan of one step.
//!
//! Tables: `plan`, `plan_part`.

pub(super) mod ask;
mod erase;
pub(super) mod execute;
pub(super) mod foresee;
mod make;
mod model;
mod prune;
pub(super) mod python;
mod reach;
mod rows;
pub(super) mod show;

use crate::record::Kind;

pub(crate) use erase::erase;
pub use execute::{Executing, NextPart, audited, begin_part, end_part, ended, executing, stop};
pub(super) use execute::{done, ended_before};
pub(crate) use execute::{job_ended, told_end};
pub(crate) use make::{CHANGE, RUN};
pub use make::{Making, add_part, executed, made, making, not_made, parts};
pub use model::{Action, Ask, OrganizeRule, PlanState, Program, Ran, Step, StepOutcome, StepState, TextEdit, Wanted};
pub use prune::prune;
pub use rows::Part;
pub(crate) use show::decided_with;

/// The kind of the job that makes a plan.
pub const PLAN_JOB: &str = "workspace.plan";
/// The kind of the job that does one.
pub const EXECUTE_JOB: &str = "workspace.execute";

/// The kind of a plan that takes another one back, and of one that deletes from the trash for ever: neither is taken back.
const UNDO: &str = "undo";
const PURGE: &str = "purge";

pub(super) const ASKED: Kind = Kind { name: "plan.asked", says: "Somebody asked for a plan that changes files." };
pub(super) const MADE: Kind = Kind { name: "plan.made", says: "A plan was made; its request says whether it may be done." };
pub(super) const FAILED: Kind = Kind { name: "plan.failed", says: "A plan could not be made." };
pub(super) const BEGUN: Kind = Kind { name: "plan.begun", says: "A plan's grant was used, and its steps are being done." };
pub(super) const INTENDED: Kind = Kind { name: "plan.steps.intended", says: "Steps of a plan are about to be done." };
pub(super) const OUTCOMES: Kind = Kind { name: "plan.steps.ended", says: "What came of steps of a plan." };
pub(super) const ENDED: Kind = Kind { name: "plan.ended", says: "A plan has come to its end." };
pub(super) const PRUNED: Kind = Kind { name: "plan.pruned", says: "Plans that ended long ago were deleted with their steps." };

/// The statements whose cost must not grow with what the tables hold, each with the index that it has to go through.
#[doc(hidden)]
pub const INDEXED: &[(&str, &str)] =
    &[(show::OF_OWNER, "plan_by_owner"), (show::ALL, "plan_by_age"), (prune::ENDED, "plan_by_end"), (prune::DEAD, "plan_not_done")];
