//! How much an agent may do: rolling windows that are exact under concurrency, budgets for a day, and the kill switch.
//!
//! [`gauge`] reads all that a decision needs in two small queries; [`take`] uses up room in the transaction of the act;
//! [`count`] does so whatever the limits, [`charge`] adds what it cost beyond that; [`denied`] counts what was not allowed, and [`asked`] the questions about such
//! acts. An agent's meters are rows of its own, so that only its own calls wait for each other.
//!
//! Tables: `meter`, `meter_use`, `probe`, `pause`.

mod limit;
mod pause;
mod probe;
mod show;
mod window;

use crate::call::{Access, Op, Role, Toolset};
use crate::record::Kind;

pub use limit::{Full, Gauge, Room, Taken, Why, charge, count, counters, gauge, gauge_of, millionths, paused, prune_idle, take, take_from, units};
pub use pause::PauseProjection;
pub use probe::{Denial, asked, denied};

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[pause::SET, pause::LIFTED];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    vec![
        Op::write(Toolset::Desk, "pause", pause::pause).access(Access::Person(Role::Approver)).idempotent(),
        Op::write(Toolset::Desk, "resume", pause::resume).access(Access::Present(Role::Approver)).idempotent(),
        Op::read(Toolset::Desk, "pause_list", pause::list),
        Op::read(Toolset::Desk, "meter_get", show::get),
    ]
}
