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
pub mod settings;

use crate::call::Op;
use crate::record::Kind;

pub use act::{Act, Counters, Decision, Effect, Hit, Mode, Needs, PolicyRef, Reason, Standing};
pub use settings::Settings;

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    Vec::new()
}
