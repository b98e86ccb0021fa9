//! What an agent has earned in a domain: a score that people's answers move, and that fades when nothing happens.
//!
//! Scores are whole billionths ([`Points`]), so that ten approvals from 0.3 are 0.5 and not a hair less. `rules` is the
//! arithmetic and touches no row; `rows` does a step, and tells every number of it to the record, so that `replay` can
//! recompute each score from the record alone.
//!
//! Other capabilities use [`look`], [`proposed`], [`approved`], [`overridden`], [`taken_back`], [`promoted`] and
//! [`not_promoted`]. Tables: `trust`, `trust_verdict`.

mod facts;
mod points;
mod replay;
mod rows;
mod rules;
mod show;

use crate::call::{Access, Op, Toolset};
use crate::record::Kind;

pub use points::Points;
pub use replay::TrustProjection;
pub use rows::{Change, Of, Trust, approved, imported, look, look_by, not_promoted, overridden, promoted, proposed, taken_back};
pub use rules::{Known, Moved, POLICY_CHANGE, Rates, Severity, State, Step, Verdict, interval, override_impact};

/// A score or a counter of trust changed.
pub const CHANGED: Kind = Kind { name: "trust.changed", says: "A person's answer changed how much an agent is trusted in a domain." };

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[CHANGED];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    vec![
        Op::read(Toolset::Desk, "trust_list", show::list).access(Access::Anyone),
        Op::read(Toolset::Desk, "trust_get", show::get).access(Access::Anyone),
        Op::read(Toolset::Desk, "trust_replay", replay::replay).access(Access::Anyone),
    ]
}
