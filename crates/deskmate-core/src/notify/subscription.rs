//! Subscriptions: in which ways a person is told, about what, and when. A row becomes a channel of that person's own.
//!
//! The address is in the row alone. The record keeps a salted digest of the row: one that somebody changed behind the desk's back
//! is found by verification, and sends no link to decide by.

use std::collections::{BTreeMap, BTreeSet};

use deskmate_db::{Row, Tx, args};
use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::channel::{self, Channel, Details, LeastRisk, OutletRow, Quiet, Whose};
use super::digest::Digest;
use super::message::Message;
use super::topic::Topic;
use crate::call::{Cx, Role};
use crate::record::{Body, Event, Finding, Kind, Projection, differences, told_of};
use crate::request::{self, RequestKind};
use crate::{Error, Result, canonical, hex};

/// A person said how they are told.
pub(super) const SET: Kind =
    Kind { name: "subscription.set", says: "A person said how they are told, or an owner said it for them. Addresses are not in the record." };
/// A person is no longer told in a way.
pub(super) const REMOVED: Kind = Kind { name: "subscription.removed", says: "A person is no longer told in one of their ways." };
/// A way was turned off because its receiver is gone.
pub(super) const DISABLED: Kind = Kind { name: "subscription.disabled", says: "A receiver answered that it is gone; this way of telling a person is off." };
/// It was turned on again.
pub(super) const ENABLED: Kind = Kind { name: "subscription.enabled", says: "A way of telling a person that was off is on again." };

/// How the channels of people's own begin.
pub const PREFIX: &str = "person/";
/// How often a message to a person is tried: about two hours.
const ATTEMPTS: i64 = 13;
const SECOND: i64 = 1_000_000;

/// Hours in which nothing is told. What happens then is told afterwards, together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QuietHours {
    /// When they begin, for example `22:00`.
    pub(super) from: String,
    /// When they end, for example `07:30`. They may go over midnight.
    pub(super) to: String,
}

/// How often all is told together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Every {
    /// Each day.
    Day,
    /// Each week.
    Week,
}

/// The day of a weekly digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnDay {
    /// The first day of the week.
    Monday,
    /// The second.
    Tuesday,
    /// The third.
    Wednesday,
    /// The fourth.
    Thursday,
    /// The fifth.
    Friday,
    /// The sixth.
    Saturday,
    /// The seventh.
    Sunday,
}

impl OnDay {
    fn weekday(self) -> Weekday {
        match self {
            Self::Monday => Weekday::Monday,
            Self::Tuesday => Weekday::Tuesday,
            Self::Wednesday => Weekday::Wednesday,
            Self::Thursday => Weekday::Thursday,
            Self::Friday => Weekday::Friday,
            Self::Saturday => Weekday::Saturday,
            Self::Sunday => Weekday::Sunday,
        }
    }
}

/// All told together at a time, in place of each at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DigestHours {
    /// Each day, or each week.
    pub(super) every: Every,
    /// At what time, for example `08:00`.
    pub(super) at: String,
    /// For a weekly one: on which day; Monday if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) on: Option<OnDay>,
}

/// What a person is told, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Settings {
    /// What it tells about; empty is everything.
    pub(super) events: BTreeSet<Topic>,
    /// Which kinds of requests; empty is all.
    pub(super) kinds: Vec<RequestKind>,
    /// Which domains, with a trailing `*` as a wildcard; empty is all.
    pub(super) domains: Vec<String>,
    /// How risky a request has to be; absent if all are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) least_risk: Option<LeastRisk>,
    /// Whether it also tells what this person cannot decide.
    pub(super) others: bool,
    /// Whether what nobody decided is told again.
    pub(super) reminders: bool,
    /// Whose clock counts.
    pub(super) zone: String,
    /// When it is quiet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quiet_hours: Option<QuietHours>,
    /// When all is told together; absent if each is told at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<DigestHours>,
    /// Whether what is urgent comes through in quiet hours and before the next digest.
    pub(super) urgent_passes: bool,
    /// How much of what somebody wrote it shows.
    pub(super) details: Details,
    /// The shortest time between two messages.
    pub(super) batch_seconds: u32,
}

impl Settings {
    /// Refuses what cannot be understood.
    pub(super) fn check(&self) -> Result<()> {
        self.quiet()?;
        self.every().map(drop)
    }

    fn zone(&self) -> Result<TimeZone> {
        TimeZone::get(&self.zone).map_err(|_| Error::invalid("zone", "is not a time zone here: write for example Europe/Berlin, or UTC"))
    }

    fn quiet(&self) -> Result<Option<Quiet>> {
        let zone = self.zone()?;
        let Some(hours) = &self.quiet_hours else { return Ok(None) };
        let (from, to) = (time("quiet_hours", &hours.from)?, time("quiet_hours", &hours.to)?);
        if from == to {
            return Err(Error::invalid("quiet_hours", "from and to are the same; remove the subscription instead of making it quiet for ever"));
        }
        Ok(Some(Quiet { from, to, zone, urgent_passes: self.urgent_passes }))
    }

    fn every(&self) -> Result<Option<Digest>> {
        let Some(digest) = &self.digest else { return Ok(None) };
        let weekday = match (digest.every, digest.on) {
            (Every::Day, Some(_)) => return Err(Error::invalid("digest", "a daily digest has no day of the week")),
            (Every::Day, None) => None,
            (Every::Week, on) => Some(on.unwrap_or(OnDay::Monday).weekday()),
        };
        Ok(Some(Digest { weekday, at: time("digest", &digest.at)?, zone: self.zone()?, urgent_passes: self.urgent_passes }))
    }
}

fn time(field: &str, text: &str) -> Result<Time> {
    text.parse().map_err(|_| Error::invalid(field, "needs times of the day, for example 22:00"))
}

/// A stored subscription.
pub(super) struct SubscriptionRow {
    pub(super) person: String,
    pub(super) name: String,
    pub(super) outlet: String,
    pub(super) address: Option<String>,
    pub(super) settings: Settings,
    /// The settings as they are stored: what the record keeps is over these very bytes, whatever a later version adds.
    pub(super) text: String,
    pub(super) decide_links: bool,
    pub(super) salt: Vec<u8>,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    pub(super) tested_at: Option<i64>,
    pub(super) disabled_at: Option<i64>,
    pub(super) delivered_at: Option<i64>,
    pub(super) failed_at: Option<i64>,
    pub(super) error: Option<String>,
}

macro_rules! select_subscription {
    ($rest:literal) => {
        concat!(
            "select s.person, s.name, s.outlet, s.address, s.settings, s.decide_links, s.salt, s.created_at, s.updated_at, s.tested_at, s.disabled_at, \
             s.delivered_at, s.failed_at, s.error from subscription s ",
            $rest
        )
    };
}

const ONE: &str = select_subscription!("where s.person = $1 and s.name = $2");
const OF_PERSON: &str = select_subscription!("where s.person = $1 order by s.person, s.name limit 1000");
const PAGE: &str = select_subscription!("where (s.person, s.name) > ($1, $2) order by s.person, s.name limit $3");
/// How many are read at once.
const SLICE: u32 = 1_000;

impl SubscriptionRow {
    fn read(row: &Row) -> Result<Self> {
        let text: String = row.get(4)?;
        Ok(Self {
            person: row.get(0)?,
            name: row.get(1)?,
            outlet: row.get(2)?,
            address: row.get(3)?,
            settings: serde_json::from_str(&text).map_err(|_| Error::conflict("a stored subscription is unreadable"))?,
            text,
            decide_links: row.get(5)?,
            salt: row.get(6)?,
            created_at: row.get(7)?,
            updated_at: row.get(8)?,
            tested_at: row.get(9)?,
            disabled_at: row.get(10)?,
            delivered_at: row.get(11)?,
            failed_at: row.get(12)?,
            error: row.get(13)?,
        })
    }

    /// The name of its channel.
    pub(super) fn channel_name(&self) -> String {
        format!("{PREFIX}{}/{}", self.person, self.name)
    }

    /// What the record keeps of the row.
    pub(super) fn mark(&self) -> Result<String> {
        let said = json!([self.person, self.name, self.outlet, self.address, self.text, self.decide_links]);
        Ok(hex(&Sha256::new().chain_update(&self.salt).chain_update(canonical("subscription", &said)?).finalize()))
    }

    /// The channel that it makes with an outlet and a person.
    pub(super) fn channel(&self, outlet: &OutletRow, role: Role, domains: Vec<String>) -> Result<Channel> {
        let settings = &self.settings;
        let personal = self.address.as_deref().is_some_and(|address| outlet.kind.is_personal(address));
        Ok(Channel {
            outlet: self.outlet.clone(),
            target: outlet.target.clone(),
            to: self.address.clone(),
            topics: settings.events.clone(),
            kinds: settings.kinds.clone(),
            domains: settings.domains.clone(),
            least_risk: settings.least_risk,
            reminders: settings.reminders,
            quiet: settings.quiet()?,
            every: settings.every()?,
            window: i64::from(settings.batch_seconds) * SECOND,
            attempts: ATTEMPTS,
            details: settings.details,
            whose: Some(Whose { id: self.person.clone(), role, domains, others: settings.others, links: self.decide_links && outlet.links && personal }),
            ..Channel::new(self.channel_name(), outlet.kind)
        })
    }
}

pub(super) fn subject(person: &str, name: &str) -> String {
    format!("subscription:{person}/{name}")
}

/// Person and name of a channel of a person's own.
pub(super) fn parts(channel: &str) -> Option<(&str, &str)> {
    channel.strip_prefix(PREFIX)?.split_once('/')
}

pub(super) fn find(tx: &mut Tx<'_>, person: &str, name: &str) -> Result<Option<SubscriptionRow>> {
    tx.optional(ONE, args![person, name])?.map(|row| SubscriptionRow::read(&row)).transpose()
}

pub(super) fn of_person(tx: &mut Tx<'_>, person: &str) -> Result<Vec<SubscriptionRow>> {
    tx.query(OF_PERSON, args![person])?.iter().map(SubscriptionRow::read).collect()
}

/// Somebody who can be told: an active person, with what they may decide.
pub(super) fn recipient(tx: &mut Tx<'_>, person: &str) -> Result<Option<(Role, Vec<String>)>> {
    let row = tx.optional("select role, domains from person where id = $1 and state = 'active'", args![person])?;
    row.map(|row| Ok((Role::from_name(&row.get::<String>(0)?), serde_json::from_str(&row.get::<String>(1)?).unwrap_or_default()))).transpose()
}

/// The channels of people's own that are on now.
pub(super) fn channels(cx: &mut Cx<'_, '_>) -> Result<Vec<Channel>> {
    let outlets: BTreeMap<String, OutletRow> = channel::outlets(cx.tx)?.into_iter().map(|outlet| (outlet.name.clone(), outlet)).collect();
    let (mut channels, mut after) = (Vec::new(), (String::new(), String::new()));
    if outlets.is_empty() {
        return Ok(channels);
    }
    loop {
        let rows = cx.tx.query(PAGE, args![after.0, after.1, SLICE])?;
        for row in &rows {
            let row = SubscriptionRow::read(row)?;
            after = (row.person.clone(), row.name.clone());
            let Some(outlet) = outlets.get(&row.outlet).filter(|_| row.disabled_at.is_none()) else { continue };
            let Some((role, domains)) = recipient(cx.tx, &row.person)? else { continue };
            channels.push(row.channel(outlet, role, domains)?);
        }
        if rows.len() < SLICE as usize {
            return Ok(channels);
        }
    }
}

/// A channel of a person's own by its name, as it is now. `None`: it was removed, or its person, or its outlet is gone.
pub fn channel_of(cx: &mut Cx<'_, '_>, name: &str) -> Result<Option<Channel>> {
    let Some((person, own)) = parts(name) else { return Ok(None) };
    let Some(row) = find(cx.tx, person, own)? else { return Ok(None) };
    let (Some(outlet), Some((role, domains))) = (channel::outlet(cx.tx, &row.outlet)?, recipient(cx.tx, person)?) else { return Ok(None) };
    row.channel(&outlet, role, domains).map(Some)
}

/// A link to decide by for each item of a message to a person who wants them. Digests carry none: they are read late.
pub(super) fn links(cx: &mut Cx<'_, '_>, channel: &Channel, message: &Message) -> Result<Vec<Option<String>>> {
    let Some(whose) = channel.whose.as_ref().filter(|whose| whose.links && channel.every.is_none()) else { return Ok(Vec::new()) };
    let Some((person, name)) = parts(&channel.name) else { return Ok(Vec::new()) };
    match find(cx.tx, person, name)? {
        Some(row) if is_as_told(cx.tx, &row)? => {}
        _ => return Ok(Vec::new()),
    }
    let mut links = Vec::with_capacity(message.data.items.len());
    for item in &message.data.items {
        let request = item.request().filter(|_| item.waits());
        links.push(match request {
            Some(request) => request::issue_link(cx, &whose.id, request, &channel.name)?,
            None => None,
        });
    }
    Ok(links)
}

/// Whether a row is what the record told last.
fn is_as_told(tx: &mut Tx<'_>, row: &SubscriptionRow) -> Result<bool> {
    let mark = row.mark()?;
    for told in told_of(tx, &subject(&row.person, &row.name), 50)? {
        if told.body.kind == SET.name {
            return Ok(told.body.facts.get("row").and_then(Value::as_str) == Some(mark.as_str()));
        }
        if told.body.kind == REMOVED.name {
            return Ok(false);
        }
    }
    Ok(false)
}

pub(super) fn note_arrived(cx: &mut Cx<'_, '_>, channel: &str) -> Result<()> {
    if let Some((person, name)) = parts(channel) {
        let now = cx.now();
        cx.tx.execute("update subscription set delivered_at = $3, error = null where person = $1 and name = $2", args![person, name, now])?;
    }
    Ok(())
}

pub(super) fn note_failed(cx: &mut Cx<'_, '_>, channel: &str, error: &str) -> Result<()> {
    if let Some((person, name)) = parts(channel) {
        let now = cx.now();
        cx.tx.execute("update subscription set failed_at = $3, error = $4 where person = $1 and name = $2", args![person, name, now, error])?;
    }
    Ok(())
}

/// Turns a way off, because its receiver said that it is gone.
pub(super) fn disable(cx: &mut Cx<'_, '_>, channel: &str) -> Result<()> {
    let Some((person, name)) = parts(channel) else { return Ok(()) };
    let now = cx.now();
    let changed =
        cx.tx.execute("update subscription set disabled_at = $3 where person = $1 and name = $2 and disabled_at is null", args![person, name, now])?;
    if changed > 0 {
        cx.emit(Event::new(DISABLED, subject(person, name)).fact("person", person).fact("subscription", name))?;
    }
    Ok(())
}

/// Turns a way on again.
pub(super) fn enable(cx: &mut Cx<'_, '_>, person: &str, name: &str) -> Result<()> {
    let changed =
        cx.tx.execute("update subscription set disabled_at = null where person = $1 and name = $2 and disabled_at is not null", args![person, name])?;
    if changed == 0 {
        return Err(Error::conflict("this way is on, or there is none of this name"));
    }
    cx.emit(Event::new(ENABLED, subject(person, name)).fact("person", person).fact("subscription", name))
}

/// Subscriptions, rebuilt from the record: one that was changed in the store shows.
#[derive(Default)]
pub struct SubscriptionProjection {
    marks: BTreeMap<(String, String), String>,
}

impl Projection for SubscriptionProjection {
    fn apply(&mut self, _seq: u64, body: &Body) {
        let text = |name: &str| body.facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = (text("person"), text("subscription"));
        if body.kind == SET.name {
            self.marks.insert(key, text("row"));
        } else if body.kind == REMOVED.name {
            self.marks.remove(&key);
        }
    }

    fn compare(&self, tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
        let (mut stored, mut findings) = (BTreeMap::new(), Vec::new());
        let mut after = (String::new(), String::new());
        loop {
            let rows = tx.query(PAGE, args![after.0, after.1, SLICE])?;
            for row in &rows {
                after = (row.get(0)?, row.get(1)?);
                let mark = SubscriptionRow::read(row).and_then(|row| row.mark()).unwrap_or_else(|_| "unreadable".to_owned());
                stored.insert(after.clone(), mark);
            }
            if rows.len() < SLICE as usize {
                break;
            }
        }
        differences(&self.marks, &stored, |(person, name)| format!("subscription {person}/{name}"), &mut findings);
        Ok(findings)
    }
}
