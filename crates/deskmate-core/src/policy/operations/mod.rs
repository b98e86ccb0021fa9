//! What people do with policies: check a draft, apply it, look at what is in force, run the cases kept beside it, replay
//! it over the record, and ask why an act got its answer. Agents get none of this: they are told a rule's message and
//! alternative, and not where the thresholds are.

mod apply;
pub(super) mod cases;
mod explain;
mod read;
mod simulate;

pub(crate) use read::{Get, get, list};
pub(crate) use simulate::{Caught, would_catch};

use crate::call::{Access, Op, Role, Toolset};

pub(super) fn all() -> Vec<Op> {
    vec![
        Op::read(Toolset::Desk, "policy_check", apply::check),
        Op::write(Toolset::Desk, "policy_apply", apply::apply).access(Access::Present(Role::Owner)).destructive().idempotent(),
        Op::read(Toolset::Desk, "policy_list", read::list),
        Op::read(Toolset::Desk, "policy_get", read::get),
        Op::read(Toolset::Desk, "policy_test", cases::test),
        Op::read(Toolset::Desk, "policy_simulate", simulate::simulate),
        Op::read(Toolset::Desk, "policy_explain", explain::explain),
    ]
}
