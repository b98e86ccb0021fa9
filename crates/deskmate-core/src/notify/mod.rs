//! Telling people that something waits: a job for each message to the outside, tried again until it is delivered, and
//! never in the way of a decision.
//!
//! - A follower of the record ([`follow`]) turns events into notifications, one open at a time for each channel: whatever
//!   happens until it is due is told together, and the next one is due a while after it.
//! - [`take`] closes a notification when its job runs, leaves out what was decided meanwhile, and keeps what is sent, so
//!   that every attempt sends the same. [`arrived`] and [`failed`] say what became of it.
//! - What agents wrote is cleaned of everything that could steer a terminal, a desktop or a reader's eye ([`plain`]).
//!
//! - People say with subscriptions ([`channel_of`]) how they themselves are told: each is a channel of that person's own. What
//!   goes out is a [`Letter`], and [`render`] writes it in the form of each service.
//! - What nobody decided is told again ([`remind_due`]); what was given up stays as a dead letter until a person deals with it.
//!
//! Nothing here speaks to the world; the binary does, and holds the secrets. Tables: `notification`,
//! `notification_channel`, `subscription`, `reminder`, `cursor`.

mod channel;
mod dead;
mod deliver;
mod digest;
mod follow;
mod letter;
mod message;
mod operations;
mod preferences;
mod remind;
mod render;
mod subscription;
mod topic;

use crate::call::{Access, Op, Role, Toolset, Without};
use crate::record::Kind;

pub use channel::{Addressed, Channel, ChannelKind, Details, LeastRisk, OutletRow, Quiet, Whose, register};
pub use deliver::{Failure, JOB, Taken, arrived, failed, prune, take};
pub(crate) use deliver::{erase, job_ended};
pub use digest::Digest;
pub use follow::{Look, begin, follow, follow_with, look};
pub use letter::{Letter, Line};
pub use message::{Item, Message, plain};
pub use preferences::{Outcome, Tell};
pub use remind::{Reminders, remind_due};
pub use render::{Mail, Rendered, render};
pub use subscription::{PREFIX, SubscriptionProjection, channel_of};
pub use topic::{RINGING, Topic};

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[
    deliver::DELIVERED,
    deliver::GIVEN_UP,
    channel::DISABLED,
    channel::ENABLED,
    dead::RETRIED,
    dead::DISMISSED,
    operations::TESTED,
    remind::REMINDED,
    subscription::SET,
    subscription::REMOVED,
    subscription::DISABLED,
    subscription::ENABLED,
];

/// The statements whose cost must not grow with what the tables hold, each with the index that it has to go through: a
/// test reads their plans on both engines.
#[doc(hidden)]
pub const INDEXED: &[(&str, &str)] = &[(remind::DUE, "reminder_due"), (dead::COUNT, "notification_dead"), (operations::DEAD, "notification_dead")];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let desktop = Without::Open { missing: "desktop notifications: the program that shows them is not there" };
    vec![
        Op::read(Toolset::Desk, "notification_list", operations::list),
        Op::write(Toolset::Desk, "notification_test", operations::test).access(Access::Person(Role::Member)).needs("desktop", desktop),
        Op::write(Toolset::Desk, "notification_enable", operations::enable).access(Access::Person(Role::Viewer)),
        Op::write(Toolset::Desk, "notification_retry", dead::retry).access(Access::Person(Role::Viewer)),
        Op::write(Toolset::Desk, "notification_dismiss", dead::dismiss).access(Access::Person(Role::Viewer)),
        Op::read(Toolset::Desk, "subscription_list", preferences::list),
        Op::write(Toolset::Desk, "subscription_set", preferences::set).access(Access::Present(Role::Viewer)).shows_once(&["address"]).destructive(),
        Op::write(Toolset::Desk, "subscription_remove", preferences::remove).access(Access::Present(Role::Viewer)).destructive(),
        Op::look(Toolset::Desk, "subscription_test", preferences::wants_test, preferences::test).writes().access(Access::Person(Role::Viewer)).open_world(),
    ]
}
