//! Everything that waits for a person: one table, one inbox, one state machine. What was approved is bound by a digest
//! to a single-use grant, and what was done is compared with it.
//!
//! - [`judge`] is the one way in which every capability asks what an intended act may do; [`weigh`] answers the same with
//!   what was gathered for it.
//! - [`submit`] makes a request of it, [`begin`] uses its grant up, [`finish`] says what came of it.
//! - People decide with the operations of this folder, in the toolset `desk`; agents see their own through `cowork`.
//! - In an emergency one person decides alone (`break_glass.rs`); others decide in the place of who is away (`stand_in.rs`).
//! - A link that a person wanted sent to themself decides one request, once, if it is not of high risk (`link.rs`).
//! - Every step tells the whole row, and begins from what was told last: a row that somebody changed behind the desk's
//!   back goes nowhere.
//!
//! Tables: `request`, `request_count`, `vote`, `request_note`, `act_grant`, `standing_approval`, `stand_in`, `kept_filter`.

mod access;
mod break_glass;
mod decide;
mod digest;
mod due;
mod erase;
mod events;
mod execute;
mod filter;
mod grant;
mod hidden;
mod judge;
mod keep;
mod link;
mod list;
mod model;
mod operations;
mod outcome;
mod projection;
mod remember;
mod rows;
mod stand_in;
mod standing;
mod submit;
mod talk;
mod view;

use crate::call::{Access, Op, Role, Toolset};
use crate::record::Kind;

pub use access::{FRESH, WAYS, check_decider, check_decider_in, check_fresh, covers_domain};
pub(crate) use access::{may_decide_in, role_decides};
pub(crate) use break_glass::broken_between;
pub use decide::{Correction, Further, approve, approve_with, reject, reject_with, undo};
pub(crate) use decide::{asks_anew, check_seen};
pub use digest::Bound;
pub use due::{escalate_due, expire_due, wake_due};
pub(crate) use erase::erase;
pub use execute::{begin, finish};
pub(crate) use execute::{begin_seen, seconds_left};
pub(crate) use hidden::{hide, shown_act, shown_executed, shown_packet};
pub(crate) use judge::{HANDOFF, forbids, hold_as_then, hold_unless_named, judge_again, judge_handoff, judge_intended, outlook, weigh_begun};
pub use judge::{Judged, for_people, judge, weigh};
pub(crate) use keep::whole;
pub(crate) use link::issue_link;
pub use list::of_requester;
pub(crate) use model::grade;
pub use model::{Begun, New, OWNERS, Outcome, Packet, Permit, Priority, Request, RequestKind, Requester, State, Stop, StopReason};
pub(crate) use outcome::{ask_for_promotion, moves_trust};
pub use projection::RequestProjection;
pub use standing::waived_by;
pub use submit::{DeniedAct, cancel, denied, find, questioned, submit, supersede, withdraw, withdraw_if_open};
pub(crate) use submit::{check_room, find_whole, load, refused};
pub use talk::{answer, ask, delegate, snooze, take_back, unask};
pub(crate) use view::{NoteOut, notes_of};

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[
    events::CREATED,
    events::VOTED,
    events::EDITED,
    events::APPROVED,
    events::REJECTED,
    events::EXPIRED,
    events::CANCELLED,
    events::SUPERSEDED,
    events::ASKED,
    events::ANSWERED,
    events::UNASKED,
    events::DELEGATED,
    events::RETURNED,
    events::SNOOZED,
    events::ESCALATED,
    events::UNDONE,
    events::STOPPED,
    events::STARTED,
    events::FINISHED,
    events::DENIED,
    events::QUESTIONED,
    events::GRANTED,
    events::USED,
    events::REVOKED,
    events::REFUSED,
    events::STANDING,
    events::STANDING_ENDED,
    break_glass::USED,
    stand_in::NAMED,
    stand_in::ENDED,
    link::OPENED,
    link::USED,
    link::REFUSED,
    filter::KEPT,
    filter::FORGOTTEN,
];

/// The statements whose cost must not grow with what the tables hold, each with the index that it has to go through: a
/// test reads their plans on both engines.
#[doc(hidden)]
pub const INDEXED: &[(&str, &str)] = &[
    (list::PAST_OF, "request_by_requester"),
    (list::PAST_IN, "request_by_domain"),
    (list::PAST_STATE, "request_by_state"),
    (list::PAST_KIND, "request_by_kind"),
    (list::PAST, "request_by_age"),
    (view::BEFORE, "request_by_requester"),
    (due::DUE, "request_due"),
    (due::ESCALATES, "request_escalates"),
    (due::WAKES, "request_wakes"),
    (grant::NEWEST, "act_grant_by_request"),
    (grant::OPEN, "act_grant_by_request"),
    (standing::OF_AGENT, "standing_approval_of"),
    (standing::OF_REQUEST, "standing_approval_by_request"),
    (standing::PAGE, "standing_approval_by_age"),
];

/// The same for what is pending: in each view along one index.
#[doc(hidden)]
pub const INDEXED_PENDING: &[([&str; 4], &str)] = &[
    (list::PENDING.rows, "request_pending"),
    (list::PENDING.keys, "request_pending"),
    (list::PENDING_IN.rows, "request_pending_by_domain"),
    (list::PENDING_IN.keys, "request_pending_by_domain"),
    (list::PENDING_KIND.rows, "request_pending_by_kind"),
    (list::PENDING_KIND.keys, "request_pending_by_kind"),
    (list::PENDING_OF.rows, "request_pending_of"),
    (list::PENDING_OF.keys, "request_pending_of"),
    (list::PENDING_FOR.rows, "request_pending_for"),
    (list::PENDING_FOR.keys, "request_pending_for"),
];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let decides = Access::Decides(Role::Approver);
    vec![
        Op::read(Toolset::Desk, "request_list", list::list),
        Op::read(Toolset::Desk, "request_get", operations::get),
        Op::wait(Toolset::Desk, "request_wait", operations::wait),
        Op::write(Toolset::Desk, "request_approve", operations::approve).access(decides),
        Op::write(Toolset::Desk, "request_reject", operations::reject).access(decides).destructive(),
        Op::write(Toolset::Desk, "request_ask", operations::ask).access(decides),
        Op::write(Toolset::Desk, "request_delegate", operations::delegate).access(decides),
        Op::write(Toolset::Desk, "request_snooze", operations::snooze).access(decides),
        Op::write(Toolset::Desk, "request_break_glass", break_glass::break_glass).access(Access::Present(Role::Approver)).destructive(),
        Op::write(Toolset::Desk, "stand_in_name", stand_in::name).access(Access::Present(Role::Approver)),
        Op::write(Toolset::Desk, "stand_in_end", stand_in::end).access(Access::Present(Role::Approver)).destructive(),
        Op::read(Toolset::Desk, "stand_in_list", stand_in::list),
        Op::write(Toolset::Desk, "request_undo", operations::undo).access(decides).destructive(),
        // They bring their own proof, and nothing that is derived from it is kept.
        Op::write(Toolset::Desk, "decision_link_open", link::open).access(Access::Public).takes_secrets(&["link"]).idempotent(),
        Op::write(Toolset::Desk, "decision_link_decide", link::decide).access(Access::Public).takes_secrets(&["link"]).destructive().idempotent(),
        Op::write(Toolset::Desk, "filter_keep", filter::keep).access(Access::Person(Role::Viewer)).idempotent(),
        Op::read(Toolset::Desk, "filter_list", filter::list).access(Access::Person(Role::Viewer)),
        Op::write(Toolset::Desk, "filter_forget", filter::forget).access(Access::Person(Role::Viewer)).destructive(),
        Op::read(Toolset::Desk, "standing_approval_list", operations::list_standing),
        Op::write(Toolset::Desk, "standing_approval_revoke", operations::revoke_standing).access(decides).destructive(),
    ]
}
