//! Channels, and the outlets of the configuration that they go through: what they tell, when they are quiet, and whether their
//! receiver is gone.

use std::collections::BTreeSet;

use deskmate_db::{Row, Tx, args};
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::digest::Digest;
use super::remind::REMINDED;
use super::topic::{News, Topic};
use crate::call::{Cx, Role};
use crate::limits::{ADDRESS_CHARS_MAX, DIGEST_ITEMS_MAX, NOTIFICATION_ITEMS_MAX};
use crate::record::{Event, Kind};
use crate::redact::Redactor;
use crate::request::{RequestKind, grade, role_decides};
use crate::{Error, Result, check_text};

/// A channel was turned off because its receiver is gone.
pub(super) const DISABLED: Kind =
    Kind { name: "notification.channel_disabled", says: "A receiver of notifications answered that it is gone; its channel is off." };
/// A channel was turned on again.
pub(super) const ENABLED: Kind = Kind { name: "notification.channel_enabled", says: "A channel of notifications that was off is on again." };

/// How an outlet reaches people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    /// A message on the desktop of the machine that the server runs on.
    Desktop,
    /// A signed request to another program.
    Webhook,
    /// E-mail.
    Email,
    /// An incoming webhook of Slack.
    Slack,
    /// An incoming webhook of Microsoft Teams.
    Teams,
    /// A webhook of Discord.
    Discord,
    /// An incoming webhook of Mattermost.
    Mattermost,
    /// A topic of ntfy.
    Ntfy,
    /// A chat with a bot of Telegram.
    Telegram,
}

/// Whether an outlet has to be told where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Addressed {
    /// It leads to one place.
    No,
    /// It leads to one place unless it is told another.
    Optional,
    /// Yes.
    Needed,
}

impl ChannelKind {
    /// All kinds.
    pub const ALL: [Self; 9] =
        [Self::Desktop, Self::Webhook, Self::Email, Self::Slack, Self::Teams, Self::Discord, Self::Mattermost, Self::Ntfy, Self::Telegram];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Webhook => "webhook",
            Self::Email => "email",
            Self::Slack => "slack",
            Self::Teams => "teams",
            Self::Discord => "discord",
            Self::Mattermost => "mattermost",
            Self::Ntfy => "ntfy",
            Self::Telegram => "telegram",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it has to be told where to.
    pub fn addressed(self) -> Addressed {
        match self {
            Self::Desktop | Self::Webhook | Self::Slack | Self::Teams | Self::Discord => Addressed::No,
            Self::Mattermost => Addressed::Optional,
            Self::Email | Self::Ntfy | Self::Telegram => Addressed::Needed,
        }
    }

    /// Whether people can choose it for themselves: the others tell whoever reads there.
    pub fn is_for_people(self) -> bool {
        !matches!(self, Self::Desktop | Self::Webhook)
    }

    /// Refuses what is no address of this kind. What was given is not repeated.
    pub fn check_address(self, field: &str, address: &str) -> Result<()> {
        let wrong = |what: &str| Err(Error::invalid(field, what));
        check_text(field, address, ADDRESS_CHARS_MAX)?;
        if address.is_empty() || address.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return wrong("must be one word");
        }
        let word = |text: &str, more: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c));
        match self {
            Self::Email => match address.rsplit_once('@') {
                Some((local, host)) if is_local_part(local) && is_host(host) => Ok(()),
                _ => wrong("must be an e-mail address, such as ada@example.org"),
            },
            Self::Ntfy if word(address, "-_") && address.len() <= 64 => Ok(()),
            Self::Ntfy => wrong("must be a topic: up to 64 letters, digits, dashes or underscores"),
            Self::Telegram if is_chat(address) => Ok(()),
            Self::Telegram => wrong("must be the number of a chat, or @ and the name of a channel"),
            Self::Mattermost if word(address.strip_prefix('@').unwrap_or(address), "-_.") => Ok(()),
            Self::Mattermost => wrong("must be the name of a channel, or @ and the name of a person"),
            Self::Desktop | Self::Webhook | Self::Slack | Self::Teams | Self::Discord => wrong("is not for this outlet: it leads to one place"),
        }
    }

    /// Whether only one person reads what goes to an address.
    pub(super) fn is_personal(self, address: &str) -> bool {
        match self {
            Self::Email | Self::Ntfy => true,
            // Groups have negative numbers, and channels names.
            Self::Telegram => address.bytes().all(|byte| byte.is_ascii_digit()),
            _ => false,
        }
    }
}

fn is_local_part(local: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
    !local.is_empty() && local.chars().all(plain) && !local.starts_with('.') && !local.ends_with('.') && !local.contains("..")
}

fn is_host(host: &str) -> bool {
    let label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-') && !label.starts_with('-') && !label.ends_with('-');
    !host.is_empty() && host.split('.').all(label)
}

fn is_chat(address: &str) -> bool {
    let number = address.strip_prefix('-').unwrap_or(address);
    let name = address.strip_prefix('@').unwrap_or_default();
    let is_number = !number.is_empty() && number.len() <= 20 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number || (!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// How much of what somebody wrote a message shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Details {
    /// Only who asks for what kind of act, where, and how risky it is.
    #[default]
    None,
    /// Also titles, without secrets and personal data.
    Redacted,
    /// Also titles, with personal data; secrets are always taken out.
    Full,
}

impl Details {
    /// What takes out of a text what must not be shown.
    pub(super) fn redactor(self) -> Redactor {
        match self {
            Self::None | Self::Redacted => Redactor::all(),
            Self::Full => Redactor::secrets(),
        }
    }
}

/// How risky something has to be to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeastRisk {
    /// Everything.
    Low,
    /// From medium on.
    Medium,
    /// From high on.
    High,
    /// Only what is critical.
    Critical,
}

impl LeastRisk {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// For whom a channel is, if it is for one person: what they may decide they are told.
#[derive(Clone, Debug)]
pub struct Whose {
    /// The person's id.
    pub id: String,
    /// What they may do.
    pub role: Role,
    /// The domains that an approver decides.
    pub domains: Vec<String>,
    /// Whether they are also told what others decide.
    pub others: bool,
    /// Whether messages carry links to decide by.
    pub links: bool,
}

impl Whose {
    /// Whether something concerns this person.
    fn takes(&self, news: &News) -> bool {
        let Some(domain) = news.item.domain.as_deref().filter(|_| news.item.request().is_some()) else { return true };
        let given = news.assignee.as_deref();
        if news.told.contains(&self.id) {
            return true;
        }
        if news.requester.as_deref() == Some(self.id.as_str()) {
            return self.others;
        }
        // What was given to somebody is news for them.
        if news.item.event == "request.delegated" && given != Some(self.id.as_str()) {
            return self.others;
        }
        self.others || given == Some(self.id.as_str()) || role_decides(self.role, &self.domains, domain)
    }
}

/// A channel: an outlet of the configuration that tells whoever reads there, or a person's own way of being told. It holds no
/// secrets.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its name; that of a person's own begins with `person/`.
    pub name: String,
    /// The outlet that it goes through.
    pub outlet: String,
    /// How it reaches people.
    pub kind: ChannelKind,
    /// Where to, as far as it may be shown.
    pub target: String,
    /// A digest over the whole address.
    pub digest: String,
    /// Where to beyond the outlet: an e-mail address, a topic, a chat.
    pub to: Option<String>,
    /// What it tells about; empty is everything.
    pub topics: BTreeSet<Topic>,
    /// Which kinds of requests it tells about; empty is all. What is no request is told anyway.
    pub kinds: Vec<RequestKind>,
    /// Which domains it tells about, with a trailing `*` as a wildcard; empty is all. What has no domain is told anyway.
    pub domains: Vec<String>,
    /// How risky it has to be; what has no risk is told anyway.
    pub least_risk: Option<LeastRisk>,
    /// Whether it tells again what nobody decided.
    pub reminders: bool,
    /// When it is quiet.
    pub quiet: Option<Quiet>,
    /// When it tells all together, where it does not tell at once.
    pub every: Option<Digest>,
    /// The shortest time between two messages, in microseconds.
    pub window: i64,
    /// How often a message is tried.
    pub attempts: i64,
    /// How much of what somebody wrote it shows.
    pub details: Details,
    /// For whom it is, if for one person.
    pub whose: Option<Whose>,
}

impl Channel {
    /// A channel that tells everybody everything at once.
    pub fn new(name: impl Into<String>, kind: ChannelKind) -> Self {
        let name = name.into();
        Self {
            outlet: name.clone(),
            name,
            kind,
            target: String::new(),
            digest: String::new(),
            to: None,
            topics: BTreeSet::new(),
            kinds: Vec::new(),
            domains: Vec::new(),
            least_risk: None,
            reminders: true,
            quiet: None,
            every: None,
            window: 60_000_000,
            attempts: 12,
            details: Details::default(),
            whose: None,
        }
    }

    /// Whether this channel tells about something.
    pub(super) fn wants(&self, news: &News) -> bool {
        if self.whose.as_ref().is_some_and(|whose| news.is_alarm_for(&whose.id)) {
            return true;
        }
        let covers = |pattern: &String, domain: &str| match pattern.strip_suffix('*') {
            Some(beginning) => domain.starts_with(beginning),
            None => pattern == domain,
        };
        let item = &news.item;
        let domain = item.domain.as_deref();
        let kind = item.request_kind.as_deref();
        (self.topics.is_empty() || self.topics.contains(&item.topic))
            && (self.domains.is_empty() || domain.is_none_or(|domain| self.domains.iter().any(|pattern| covers(pattern, domain))))
            && (self.kinds.is_empty() || kind.is_none_or(|kind| self.kinds.iter().any(|own| own.name() == kind)))
            && self.least_risk.is_none_or(|least| item.risk.as_deref().is_none_or(|risk| grade(risk) >= grade(least.name())))
            && (self.reminders || item.event != REMINDED.name)
            && self.whose.as_ref().is_none_or(|whose| whose.takes(news))
    }

    /// When a message that could go out at a moment does go out: with the next digest, and not in quiet hours, unless it is
    /// urgent and may.
    pub(super) fn due(&self, at: i64, urgent: bool) -> i64 {
        let at = match &self.every {
            Some(digest) if !(urgent && digest.urgent_passes) => digest.next(at).unwrap_or(at),
            _ => at,
        };
        match &self.quiet {
            Some(quiet) if !(urgent && quiet.urgent_passes) => quiet.until(at).unwrap_or(at),
            _ => at,
        }
    }

    /// How many events its notifications keep one by one.
    pub(super) fn keeps(&self) -> usize {
        if self.every.is_some() { DIGEST_ITEMS_MAX } else { NOTIFICATION_ITEMS_MAX }
    }
}

/// An outlet that the configuration names, as far as the desk's rules know it.
#[derive(Clone, Debug)]
pub struct OutletRow {
    /// Its name.
    pub name: String,
    /// How it reaches people.
    pub kind: ChannelKind,
    /// Where to, as far as it may be shown.
    pub target: String,
    /// A digest over the whole address.
    pub digest: String,
    /// Whether it is a channel by itself, and not only for people's own subscriptions.
    pub tells: bool,
    /// Whether messages through it may carry links to decide by.
    pub links: bool,
    /// Which addresses people may choose, with a leading or trailing `*` as a wildcard; empty is all.
    pub addresses: Vec<String>,
}

impl OutletRow {
    /// Whether people may choose an address.
    pub(super) fn allows(&self, address: &str) -> bool {
        let address = address.to_lowercase();
        let fits = |pattern: &String| {
            let pattern = pattern.to_lowercase();
            match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
                (Some(end), _) => address.ends_with(end),
                (None, Some(beginning)) => address.starts_with(beginning),
                (None, None) => address == pattern,
            }
        };
        self.addresses.is_empty() || self.addresses.iter().any(fits)
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

/// Writes down which outlets there are now. An address that changed turns a channel on again.
pub fn register(cx: &mut Cx<'_, '_>, outlets: &[OutletRow]) -> Result<()> {
    let names: BTreeSet<&str> = outlets.iter().map(|outlet| outlet.name.as_str()).collect();
    for row in cx.tx.query("select name from notification_channel where configured order by name limit 1000", &[])? {
        let name: String = row.get(0)?;
        if !names.contains(name.as_str()) {
            cx.tx.execute("update notification_channel set configured = false where name = $1", args![name])?;
        }
    }
    for outlet in outlets {
        cx.tx.execute(
            "insert into notification_channel (name, kind, target, digest, configured, tells, links, addresses) values ($1, $2, $3, $4, true, $5, $6, $7) \
             on conflict (name) do update set kind = excluded.kind, target = excluded.target, configured = true, tells = excluded.tells, \
             links = excluded.links, addresses = excluded.addresses, \
             disabled_at = case when notification_channel.digest = excluded.digest then notification_channel.disabled_at else null end, \
             digest = excluded.digest",
            args![outlet.name, outlet.kind.name(), outlet.target, outlet.digest, outlet.tells, outlet.links, json!(outlet.addresses).to_string()],
        )?;
    }
    Ok(())
}

/// An outlet that the configuration names now.
pub(super) fn outlet(tx: &mut Tx<'_>, name: &str) -> Result<Option<OutletRow>> {
    let row =
        tx.optional("select name, kind, target, digest, tells, links, addresses from notification_channel where name = $1 and configured", args![name])?;
    row.map(|row| read_outlet(&row)).transpose().map(Option::flatten)
}

/// The outlets that people can choose for themselves.
pub(super) fn outlets(tx: &mut Tx<'_>) -> Result<Vec<OutletRow>> {
    let rows =
        tx.query("select name, kind, target, digest, tells, links, addresses from notification_channel where configured order by name limit 1000", &[])?;
    let mut outlets = Vec::with_capacity(rows.len());
    for row in &rows {
        outlets.extend(read_outlet(row)?.filter(|outlet| outlet.kind.is_for_people()));
    }
    Ok(outlets)
}

/// `None`: a newer version wrote a kind that this one does not know.
fn read_outlet(row: &Row) -> Result<Option<OutletRow>> {
    let Some(kind) = ChannelKind::from_name(&row.get::<String>(1)?) else { return Ok(None) };
    Ok(Some(OutletRow {
        name: row.get(0)?,
        kind,
        target: row.get(2)?,
        digest: row.get(3)?,
        tells: row.get(4)?,
        links: row.get(5)?,
        addresses: serde_json::from_str(&row.get::<String>(6)?).unwrap_or_default(),
    }))
}

/// Whether a channel is on. `None`: the configuration has no such channel.
pub(super) fn is_on(tx: &mut Tx<'_>, name: &str) -> Result<Option<bool>> {
    let row = tx.optional("select disabled_at from notification_channel where name = $1 and configured and tells", args![name])?;
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
