//! The cowork toolset: agents say what they intend, learn what they may do, hand work over, and report what they did.
//! Names, parameters and fields are those of existing cowork clients.
//!
//! This folder decides nothing: what an act may do comes from `request::judge`, trust moves in `trust`, limits are in
//! `meter`. Tables: `execution`, `override`, `instruction`.

mod bulk;
mod correction;
mod criteria;
mod decide;
mod erase;
mod execution;
mod governance;
mod handoff;
mod instruction;
mod log;
mod projection;
mod propose;
mod quality;
mod requests;
mod scan;
mod show;
mod standing;
mod status;
mod timeline;
mod trail;
mod words;

use crate::call::{Access, Op, Role, Toolset};
use crate::record::Kind;

pub(crate) use correction::{Overridden, overrode};
pub(crate) use decide::{resolved, unresolved};
pub(crate) use erase::erase;
pub(crate) use log::observed;
pub use projection::CoworkProjection;
pub(crate) use propose::foresee;
pub use scan::INDEXED;
pub(crate) use words::check_domain;

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[bulk::DECIDED, correction::OVERRIDDEN, execution::LOGGED, instruction::INSTRUCTED, instruction::ACKNOWLEDGED];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let (cowork, decides) = (Toolset::Cowork, Access::Decides(Role::Approver));
    let operations = vec![
        Op::write(cowork, "cowork_propose", propose::propose).untold_when(propose::is_untold),
        Op::read(cowork, "cowork_check_trust", standing::check_trust),
        Op::write(cowork, "cowork_validate_policy", standing::validate).untold_when(standing::is_untold),
        Op::write(cowork, "cowork_handoff", handoff::hand_off),
        Op::write(cowork, "cowork_log", log::log),
        Op::write(cowork, "cowork_override", decide::override_act).access(decides).destructive().untold_when(decide::is_untold),
        Op::write(cowork, "cowork_approve", decide::approve).access(decides).untold_when(decide::is_untold),
        Op::write(cowork, "cowork_resolve_handoff", decide::resolve).access(decides).untold_when(decide::is_untold),
        Op::write(cowork, "cowork_bulk_approve", bulk::approve).access(decides).writes_when(bulk::decides).untold_when(bulk::is_untold),
        Op::write(cowork, "cowork_bulk_reject", bulk::reject).access(decides).destructive().writes_when(bulk::decides).untold_when(bulk::is_untold),
        Op::read(cowork, "cowork_status", status::status),
        Op::read(cowork, "cowork_audit_trail", trail::trail),
        Op::read(cowork, "cowork_governance_report", governance::report),
        Op::read(cowork, "cowork_check_handoff", handoff::check),
        Op::write(cowork, "cowork_acknowledge_instructions", instruction::acknowledge).idempotent(),
        Op::read(cowork, "cowork_list_requests", requests::list),
        Op::read(cowork, "cowork_get_request", requests::get),
        Op::wait(cowork, "cowork_wait_for_decision", requests::wait),
        Op::write(cowork, "cowork_answer_question", requests::answer),
        Op::write(cowork, "cowork_cancel_request", requests::cancel),
        Op::write(cowork, "cowork_begin", requests::begin),
    ];
    operations.into_iter().map(Op::names_caller).collect()
}
