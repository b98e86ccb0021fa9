//! Telling people that something waits: a job for each message to the outside, tried again until it is delivered, and
//! never in the way of a decision.
//!
//! - A follower of the record ([`follow`]) turns events into notifications, one open at a time for each channel: whatever
//!   happens until it is due is told together, and the next one is due a while after it.
//! - [`take`] closes a notification when its job runs, leaves out what was decided meanwhile, and keeps what is sent, so
//!   that every attempt sends the same. [`arrived`] and [`failed`] say what became of it.
//! - What agents wrote is cleaned of everything that could steer a terminal, a desktop or a reader's eye ([`plain`]).
//!
//! Nothing here speaks to the world; the binary does, and holds the secrets. Tables: `notification`,
//! `notification_channel`, `cursor`.

mod channel;
mod deliver;
mod follow;
mod message;
mod operations;
mod topic;

use crate::call::{Access, Op, Role, Toolset, Without};
use crate::record::Kind;

pub use channel::{Channel, ChannelKind, Quiet, register};
pub(crate) use deliver::erase;
pub use deliver::{Failure, JOB, Taken, arrived, failed, prune, take};
pub use follow::{Look, begin, follow, look};
pub use message::{Item, Message, plain};
pub use topic::{RINGING, Topic};

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[deliver::DELIVERED, deliver::GIVEN_UP, channel::DISABLED, channel::ENABLED, operations::TESTED];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let desktop = Without::Open { missing: "desktop notifications: the program that shows them is not there" };
    vec![
        Op::read(Toolset::Desk, "notification_list", operations::list),
        Op::write(Toolset::Desk, "notification_test", operations::test).access(Access::Person(Role::Member)).needs("desktop", desktop),
        Op::write(Toolset::Desk, "notification_enable", operations::enable).access(Access::Person(Role::Member)),
    ]
}
