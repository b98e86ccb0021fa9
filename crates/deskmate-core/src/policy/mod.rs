//! What an agent may do alone: named, versioned policies, the mapping agent × domain × policy, settings, and the one
//! function that answers every intended act.
//!
//! - [`document`]: the text that people write, read strictly, with line and column in every complaint.
//! - [`rulebook`]: everything in force, compiled once for each content and shared.
//! - [`decide`]: act, suggest, escalate or deny. Pure: no row, no clock, no chance. The most restrictive answer wins,
//!   and whatever cannot be evaluated is more restrictive, never less.
//!
//! Tables: `policy`, `mapping`, `setting`, and the key `rulebook` of `desk`.

mod act;
mod decide;
mod document;
mod model;
mod problem;
mod rulebook;
pub mod settings;
mod store;

use crate::call::Op;
use crate::record::Kind;

pub use act::{Act, Counters, Decision, Effect, Hit, Mode, Needs, PolicyRef, Reason, Standing};
pub use decide::{decide, mode_of_trust};
pub use document::Document;
pub use model::{
    Case, Constraint, DEFAULT_POLICY, FieldRule, GLOBAL_POLICY, GeneralRule, Mapping, Match, Parts, Patch, Policy, PolicyMode, Rule, Section, Severity,
};
pub use problem::Problem;
pub use rulebook::{Cache, Rulebook};
pub use settings::Settings;
pub use store::{Stored, current, store};

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
