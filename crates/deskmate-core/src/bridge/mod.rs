//! How actors work together: messages with receipts, groups, tasks that are claimed under a lease, and reservations of
//! paths. The sender is always who the credential says, reading changes nothing, and whatever somebody wrote reaches
//! its reader marked as data.
//!
//! May use: the call, the record, identity, leases and edits. Tables: `message`, `delivery`, `mailbox`, `actor_group`,
//! `member`, `task`, `task_blocker`, `task_note`, `reservation`, and those of the [`file`].

mod claim;
mod edits;
mod erase;
pub mod file;
mod groups;
mod messages;
mod notes;
mod party;
mod paths;
mod plans;
mod projects;
mod reservations;
mod retention;
mod rows;
mod search;
mod send;
mod sent;
mod state;
mod task_out;
mod tasks;
mod threads;
mod unread;
mod update;

use crate::call::{Op, Toolset};
use crate::record::Kind;

pub use claim::{are_claims_lost, sweep_tasks};
pub(crate) use edits::accept_task_edit;
pub(crate) use erase::erase;
pub(crate) use groups::accept_group_edit;
#[doc(hidden)]
pub use plans::indexed;
pub use reservations::sweep_reservations;
pub use retention::{Slice, prune_messages, prune_reservations, prune_tasks};
pub(crate) use unread::unread;

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[
    send::SENT,
    messages::ACKNOWLEDGED,
    groups::SET,
    tasks::CREATED,
    claim::CLAIMED,
    claim::LEASE_EXPIRED,
    update::UPDATED,
    update::UNBLOCKED,
    edits::TASK_EDITED,
    notes::NOTED,
    reservations::RESERVED,
    reservations::RELEASED,
    reservations::EXPIRED,
    retention::PRUNED,
    file::SKIPPED,
    file::REVERTED,
    file::RESTORED,
];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let bridge = Toolset::Bridge;
    vec![
        Op::write(bridge, "send_message", send::send),
        Op::write(bridge, "read_messages", messages::read).idempotent().writes_when(messages::marks_read),
        Op::write(bridge, "acknowledge_messages", messages::acknowledge).idempotent(),
        Op::wait(bridge, "wait_for_messages", messages::wait),
        Op::read(bridge, "get_thread", messages::thread),
        Op::read(bridge, "search_messages", search::search),
        Op::read(bridge, "list_sent_messages", sent::list),
        Op::read(bridge, "get_receipts", sent::receipts),
        Op::write(bridge, "set_group", groups::set).destructive(),
        Op::read(bridge, "list_groups", groups::list),
        Op::write(bridge, "create_task", tasks::create),
        Op::read(bridge, "get_tasks", tasks::list),
        Op::read(bridge, "get_task", tasks::get),
        Op::write(bridge, "claim_task", claim::claim),
        Op::write(bridge, "heartbeat_task", claim::heartbeat).idempotent(),
        Op::wait(bridge, "wait_for_task", claim::wait),
        Op::write(bridge, "update_task", update::update),
        Op::write(bridge, "unblock_task", update::drop_blocker),
        Op::write(bridge, "add_task_note", notes::add),
        Op::write(bridge, "reserve_paths", reservations::reserve),
        Op::write(bridge, "release_paths", reservations::release),
        Op::write(bridge, "renew_paths", reservations::renew).idempotent(),
        Op::read(bridge, "list_reservations", reservations::list),
        Op::read(Toolset::Desk, "thread_list", threads::list),
        Op::read(Toolset::Desk, "thread_get", threads::get),
        Op::read(Toolset::Desk, "project_list", projects::list),
    ]
}
