//! The channels that the configuration names: what they tell, when they are quiet, and whether their receiver is gone.

use std::collections::BTreeSet;

use deskmate_db::{Tx, args};
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::message::Item;
use super::topic::Topic;
use crate::call::Cx;
use crate::record::{Event, Kind};
use crate::{Error, Result};

/// A channel was turned off because its receiver is gone.
pub(super) const DISABLED: Kind =
    Kind { name: "notification.channel_disabled", says: "A receiver of notifications answered that it is gone; its channel is off." };
/// A channel was turned on again.
pub(super) const ENABLED: Kind = Kind { name: "notification.channel_enabled", says: "A channel of notifications that was off is on again." };

/// How a channel reaches people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// A message on the desktop of the machine that the server runs on.
    Desktop,
    /// A signed request to another program.
    Webhook,
}

impl ChannelKind {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Webhook => "webhook",
        }
    }
}

/// A channel as the configuration has it, without its secrets.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// How it reaches people.
    pub kind: ChannelKind,
    /// Where to, as far as it may be shown.
    pub target: String,
    /// A digest over the whole address.
    pub digest: String,
    /// What it tells about; empty is everything.
    pub topics: BTreeSet<Topic>,
    /// Which domains it tells about, with a trailing `*` as a wildcard; empty is all. What has no domain is told anyway.
    pub domains: Vec<String>,
    /// When it is quiet.
    pub quiet: Option<Quiet>,
    /// The shortest time between two messages, in microseconds.
    pub window: i64,
    /// How often a message is tried.
    pub attempts: i64,
    /// Whether it shows what agents wrote, or only who and where.
    pub text: bool,
}

impl Channel {
    /// Whether this channel tells about something.
    pub(super) fn wants(&self, topic: Topic, item: &Item) -> bool {
        let covers = |pattern: &String, domain: &str| match pattern.strip_suffix('*') {
            Some(beginning) => domain.starts_with(beginning),
            None => pattern == domain,
        };
        let domain = item.domain.as_deref();
        (self.topics.is_empty() || self.topics.contains(&topic))
            && (self.domains.is_empty() || domain.is_none_or(|domain| self.domains.iter().any(|pattern| covers(pattern, domain))))
    }

    /// When a message that could go out at a moment does go out: not in quiet hours, unless it is urgent and may.
    pub(super) fn due(&self, at: i64, urgent: bool) -> i64 {
        match &self.quiet {
            Some(quiet) if !(urgent && quiet.urgent_passes) => quiet.until(at).unwrap_or(at),
            _ => at,
        }
    }
}

/// The hours in which a channel is quiet, on each day of its time zone. They may go over midnight.
#[derive(Clone, Debug)]
pub struct Quiet {
    /// When it becomes quiet.
    pub from: Time,
    /// When it no longer is.
    pub to: Time,
    /// Whose clock counts.
    pub zone: TimeZone,
    /// Whether what is urgent comes through.
    pub urgent_passes: bool,
}

impl Quiet {
    /// The end of the quiet hours that a moment lies in; `None` outside of them.
    pub fn until(&self, now: i64) -> Option<i64> {
        let here = Timestamp::from_microsecond(now).ok()?.to_zoned(self.zone.clone());
        let (time, date) = (here.time(), here.date());
        let over_midnight = self.from > self.to;
        let end = match (over_midnight, time >= self.from, time < self.to) {
            (false, true, true) | (true, _, true) => date,
            (true, true, _) => date.checked_add(1.day()).ok()?,
            _ => return None,
        };
        // A time that the clocks jump over or show twice is the later moment, or the first of both.
        let end = end.to_datetime(self.to).to_zoned(self.zone.clone()).ok()?;
        Some(end.timestamp().as_microsecond()).filter(|end| *end > now)
    }
}

/// Writes down which channels there are now. An address that changed turns a channel on again.
pub fn register(cx: &mut Cx<'_, '_>, channels: &[Channel]) -> Result<()> {
    let names: BTreeSet<&str> = channels.iter().map(|channel| channel.name.as_str()).collect();
    for row in cx.tx.query("select name from notification_channel where configured order by name limit 1000", &[])? {
        let name: String = row.get(0)?;
        if !names.contains(name.as_str()) {
            cx.tx.execute("update notification_channel set configured = false where name = $1", args![name])?;
        }
    }
    for channel in channels {
        cx.tx.execute(
            "insert into notification_channel (name, kind, target, digest, configured) values ($1, $2, $3, $4, true) \
             on conflict (name) do update set kind = excluded.kind, target = excluded.target, configured = true, \
             disabled_at = case when notification_channel.digest = excluded.digest then notification_channel.disabled_at else null end, \
             digest = excluded.digest",
            args![channel.name, channel.kind.name(), channel.target, channel.digest],
        )?;
    }
    Ok(())
}

/// Whether a channel is on. `None`: the configuration has no such channel.
pub(super) fn is_on(tx: &mut Tx<'_>, name: &str) -> Result<Option<bool>> {
    let row = tx.optional("select disabled_at from notification_channel where name = $1 and configured", args![name])?;
    Ok(row.map(|row| row.get::<Option<i64>>(0)).transpose()?.map(|disabled_at| disabled_at.is_none()))
}

/// Turns a channel off, because its receiver said that it is gone.
pub(super) fn disable(cx: &mut Cx<'_, '_>, name: &str) -> Result<()> {
    let now = cx.now();
    if cx.tx.execute("update notification_channel set disabled_at = $2 where name = $1 and disabled_at is null", args![name, now])? > 0 {
        cx.emit(Event::new(DISABLED, format!("notification_channel:{name}")).fact("channel", name))?;
    }
    Ok(())
}

/// Turns a channel on again.
pub(super) fn enable(cx: &mut Cx<'_, '_>, name: &str) -> Result<()> {
    match is_on(cx.tx, name)? {
        None => Err(unknown(name)),
        Some(true) => Err(Error::conflict(format!("the channel {name} is on"))),
        Some(false) => {
            cx.tx.execute("update notification_channel set disabled_at = null where name = $1", args![name])?;
            cx.emit(Event::new(ENABLED, format!("notification_channel:{name}")).fact("channel", name))
        }
    }
}

pub(super) fn unknown(name: &str) -> Error {
    let error = Error::not_found(format!("the configuration has no channel {name}"))
        .hint("desk_notification_list shows the channels; `notifications` in deskmate.yaml makes them");
    Error { field: Some("channel".to_owned()), ..error }
}
