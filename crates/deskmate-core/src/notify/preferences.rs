//! Subscriptions on the surfaces: people say how they are told, and try whether it arrives.

use std::collections::BTreeSet;

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::channel::{self, Addressed, Channel, ChannelKind, Details, LeastRisk, OutletRow};
use super::follow;
use super::letter::Letter;
use super::operations::TESTED;
use super::subscription::{self, DigestHours, QuietHours, REMOVED, SET, Settings, SubscriptionRow, find, of_person, recipient, subject};
use super::topic::Topic;
use crate::call::{Cx, Errand, Role};
use crate::limits::{DECISION_LINK, NAME_CHARS_MAX, SUBSCRIPTION_DOMAINS_MAX, SUBSCRIPTION_TEST_EVERY, SUBSCRIPTIONS_MAX};
use crate::record::Event;
use crate::request::{RequestKind, check_fresh};
use crate::{Code, Error, Result, check_text, format_time, job};

/// Whose subscriptions a call is about: one's own, or for owners anybody's.
fn whose(cx: &mut Cx<'_, '_>, person: Option<&str>) -> Result<String> {
    if !cx.actor.is_person() {
        let person = person.ok_or_else(|| Error::invalid("person", "is needed: you are no person of this desk"))?;
        return Ok(person.to_owned());
    }
    match person.filter(|person| *person != cx.actor.id) {
        None => Ok(cx.actor.id.clone()),
        Some(_) if cx.actor.role != Some(Role::Owner) => Err(Error::forbidden("how somebody else is told is theirs, and the owners'")),
        Some(person) => {
            if recipient(cx.tx, person)?.is_none() {
                return Err(Error::not_found("there is no such active person"));
            }
            Ok(person.to_owned())
        }
    }
}

/// List the ways in which you are told, and the outlets that you can choose.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// For owners: whose, by the person's id.
    person: Option<String>,
}

/// An outlet that people can choose.
#[derive(Serialize, JsonSchema)]
struct OutletOut {
    /// Its name.
    outlet: String,
    /// How it reaches people.
    kind: ChannelKind,
    /// Where to, without what could be a secret.
    target: String,
    /// Whether you have to say where to.
    address: Addressed,
    /// Which addresses may be chosen, with a leading or trailing `*` as a wildcard; empty is all.
    addresses: Vec<String>,
    /// Whether messages through it may carry links to decide by.
    decide_links: bool,
}

/// A way in which a person is told.
#[derive(Serialize, JsonSchema)]
pub(super) struct SubscriptionOut {
    /// Its name.
    name: String,
    /// The person's id.
    person: String,
    /// The outlet.
    outlet: String,
    /// Where to.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(flatten)]
    settings: Settings,
    /// Whether messages carry links to decide by.
    decide_links: bool,
    /// Whether it tells now; otherwise the configuration has no such outlet, or its receiver is gone.
    on: bool,
    /// Since when it is off because its receiver said that it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_at: Option<String>,
    /// Since when there is this way.
    created_at: String,
    /// When it was last changed.
    updated_at: String,
    /// When a message last arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered_at: Option<String>,
    /// When one last failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<String>,
    /// Why; absent since one arrived again.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl SubscriptionOut {
    fn new(row: SubscriptionRow, configured: bool) -> Self {
        Self {
            on: configured && row.disabled_at.is_none(),
            name: row.name,
            person: row.person,
            outlet: row.outlet,
            address: row.address,
            settings: row.settings,
            decide_links: row.decide_links,
            disabled_at: row.disabled_at.map(format_time),
            created_at: format_time(row.created_at),
            updated_at: format_time(row.updated_at),
            delivered_at: row.delivered_at.map(format_time),
            failed_at: row.failed_at.map(format_time),
            error: row.error,
        }
    }
}

/// Subscriptions and outlets.
#[derive(Serialize, JsonSchema)]
pub(super) struct Subscriptions {
    /// The ways in which the person is told.
    subscriptions: Vec<SubscriptionOut>,
    /// The outlets that can be chosen.
    outlets: Vec<OutletOut>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<Subscriptions> {
    let person = whose(cx, input.person.as_deref())?;
    let outlets = channel::outlets(cx.tx)?;
    let known = |name: &str| outlets.iter().any(|outlet| outlet.name == name);
    let subscriptions = of_person(cx.tx, &person)?.into_iter().map(|row| {
        let configured = known(&row.outlet);
        SubscriptionOut::new(row, configured)
    });
    let subscriptions = subscriptions.collect();
    let shown = outlets.into_iter().map(|outlet| OutletOut {
        address: outlet.kind.addressed(),
        decide_links: outlet.links && matches!(outlet.kind, ChannelKind::Email | ChannelKind::Ntfy | ChannelKind::Telegram),
        outlet: outlet.name,
        kind: outlet.kind,
        target: outlet.target,
        addresses: outlet.addresses,
    });
    Ok(Subscriptions { subscriptions, outlets: shown.collect() })
}

/// Say how you are told: by which outlet and where to, about what, and when. It takes the place of what this name stood for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Set {
    /// For owners: whose, by the person's id. Links to decide by are only turned on by the person.
    person: Option<String>,
    /// Its name: letters, digits, dashes, dots or underscores; the outlet's if not given.
    name: Option<String>,
    /// The outlet.
    outlet: String,
    /// Where to, where the outlet wants to know: an e-mail address, a topic, the number of a chat.
    address: Option<String>,
    /// What it tells about; everything if not given.
    #[serde(default)]
    events: BTreeSet<Topic>,
    /// Which kinds of requests; all if not given.
    #[serde(default)]
    kinds: Vec<RequestKind>,
    /// Which domains, with a trailing `*` as a wildcard; all if not given.
    #[serde(default)]
    domains: Vec<String>,
    /// How risky a request has to be; all are told if not given.
    least_risk: Option<LeastRisk>,
    /// Whether it also tells what you cannot decide; false if not given.
    #[serde(default)]
    others: bool,
    /// Whether what nobody decided is told again; true if not given.
    reminders: Option<bool>,
    /// Whose clock counts, for example `Europe/Berlin`; `UTC` if not given.
    zone: Option<String>,
    /// Hours in which nothing is told; what happens then is told afterwards, together.
    quiet_hours: Option<QuietHours>,
    /// All told together at a time; each at once if not given.
    digest: Option<DigestHours>,
    /// Whether what is urgent comes through in quiet hours and before the next digest. An agent can call a request urgent.
    #[serde(default)]
    urgent_passes: bool,
    /// How much of what somebody wrote it shows; `none` if not given.
    #[serde(default)]
    details: Details,
    /// The shortest time between two messages; 60 if not given, at most a day.
    batch_seconds: Option<u32>,
    /// Whether messages carry links by which you decide without signing in: each good once, for half an hour, for one request that
    /// is not of high risk. Whoever reads your messages can use them. False if not given.
    #[serde(default)]
    decide_links: bool,
}

pub(super) fn set(cx: &mut Cx<'_, '_>, input: Set) -> Result<SubscriptionOut> {
    let person = whose(cx, input.person.as_deref())?;
    let outlet = channel::outlet(cx.tx, &input.outlet)?.filter(|outlet| outlet.kind.is_for_people()).ok_or_else(|| unknown_outlet(&input.outlet))?;
    let name = input.name.clone().unwrap_or_else(|| outlet.name.clone());
    check_name(&name)?;
    let address = checked_address(&outlet, input.address.clone())?;
    let before = find(cx.tx, &person, &name)?;
    if before.is_none() && i64::try_from(of_person(cx.tx, &person)?.len()).unwrap_or(i64::MAX) >= SUBSCRIPTIONS_MAX {
        return Err(Error::new(Code::Limited, format!("there are {SUBSCRIPTIONS_MAX} ways already")).hint("remove one"));
    }
    let decide_links = input.decide_links;
    if decide_links {
        check_links(cx, &person, &outlet, address.as_deref())?;
    }
    let settings = checked_settings(input)?;
    let now = cx.now();
    let text = json!(settings).to_string();
    let row = SubscriptionRow {
        person,
        name,
        outlet: outlet.name.clone(),
        address,
        settings,
        text,
        decide_links,
        salt: cx.secret().to_vec(),
        created_at: before.as_ref().map_or(now, |before| before.created_at),
        updated_at: now,
        tested_at: before.as_ref().and_then(|before| before.tested_at),
        disabled_at: None,
        delivered_at: before.as_ref().and_then(|before| before.delivered_at),
        failed_at: before.as_ref().and_then(|before| before.failed_at),
        error: None,
    };
    cx.tx.execute(
        "insert into subscription (person, name, outlet, address, settings, decide_links, salt, created_at, updated_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (person, name) do update set outlet = excluded.outlet, address = excluded.address, \
         settings = excluded.settings, decide_links = excluded.decide_links, salt = excluded.salt, updated_at = excluded.updated_at, \
         disabled_at = null, error = null",
        args![row.person, row.name, row.outlet, row.address, row.text, row.decide_links, row.salt, row.created_at, row.updated_at],
    )?;
    // An address that was there before may be somebody's data.
    cx.tx.erases();
    let event = Event::new(SET, subject(&row.person, &row.name))
        .fact("person", row.person.as_str())
        .fact("subscription", row.name.as_str())
        .fact("outlet", row.outlet.as_str())
        .fact("decide_links", row.decide_links)
        .fact("row", row.mark()?);
    cx.emit(event)?;
    if let Some((role, domains)) = recipient(cx.tx, &row.person)? {
        let channel = row.channel(&outlet, role, domains)?;
        follow::reschedule(cx, &channel)?;
    }
    Ok(SubscriptionOut::new(row, true))
}

fn unknown_outlet(name: &str) -> Error {
    let error = Error::not_found(format!("the configuration has no outlet {name} for people"))
        .hint("desk_subscription_list shows them; an owner names them under `notifications.outlets` in deskmate.yaml");
    Error { field: Some("outlet".to_owned()), ..error }
}

fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) {
        return Err(Error::invalid("name", format!("must be 1 to {NAME_CHARS_MAX} letters, digits, dashes, dots or underscores")));
    }
    Ok(())
}

fn checked_address(outlet: &OutletRow, address: Option<String>) -> Result<Option<String>> {
    let address = address.map(|address| address.trim().to_owned()).filter(|address| !address.is_empty());
    match (&address, outlet.kind.addressed()) {
        (None, Addressed::Needed) => Err(Error::invalid("address", "is needed: say where this outlet reaches you")),
        (None, _) => Ok(None),
        (Some(given), _) => {
            outlet.kind.check_address("address", given)?;
            if !outlet.allows(given) {
                return Err(Error::invalid("address", format!("is not one that this outlet may be used for: {}", outlet.addresses.join(", "))));
            }
            Ok(address)
        }
    }
}

fn checked_settings(input: Set) -> Result<Settings> {
    if input.events.contains(&Topic::Test) {
        return Err(Error::invalid("events", "a test is always sent where somebody asks for it"));
    }
    if input.domains.len() > SUBSCRIPTION_DOMAINS_MAX {
        return Err(Error::invalid("domains", format!("at most {SUBSCRIPTION_DOMAINS_MAX} are possible")));
    }
    for domain in &input.domains {
        check_text("domains", domain, NAME_CHARS_MAX)?;
    }
    let batch_seconds = input.batch_seconds.unwrap_or(60);
    if batch_seconds > 24 * 3_600 {
        return Err(Error::invalid("batch_seconds", "must be at most 86400"));
    }
    let settings = Settings {
        events: input.events,
        kinds: input.kinds,
        domains: input.domains,
        least_risk: input.least_risk,
        others: input.others,
        reminders: input.reminders.unwrap_or(true),
        zone: input.zone.unwrap_or_else(|| "UTC".to_owned()),
        quiet_hours: input.quiet_hours,
        digest: input.digest,
        urgent_passes: input.urgent_passes,
        details: input.details,
        batch_seconds,
    };
    settings.check()?;
    Ok(settings)
}

/// Links to decide by loosen a limit: the person turns them on, and shows just now that it is them.
fn check_links(cx: &mut Cx<'_, '_>, person: &str, outlet: &OutletRow, address: Option<&str>) -> Result<()> {
    let minutes = DECISION_LINK.as_secs() / 60;
    if cx.actor.id != person {
        return Err(Error::forbidden("links to decide by are turned on by the person who would decide, and by nobody else"));
    }
    if !address.is_some_and(|address| outlet.kind.is_personal(address)) {
        return Err(Error::invalid("decide_links", "is for what only you read: an e-mail address, a topic of yours, or your own chat with a bot"));
    }
    if !outlet.links {
        return Err(Error::invalid(
            "decide_links",
            "is not possible through this outlet: deskmate.yaml turns it off, or a topic of ntfy has no token that protects it",
        ));
    }
    check_fresh(cx, &format!("turning on links that decide for {minutes} minutes without you signing in"))
}

/// No longer tell you in one of your ways. What was on its way is dropped.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Remove {
    /// For owners: whose, by the person's id.
    person: Option<String>,
    /// Its name.
    name: String,
}

/// What was removed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Removed {
    /// Its name.
    name: String,
}

pub(super) fn remove(cx: &mut Cx<'_, '_>, input: Remove) -> Result<Removed> {
    let person = whose(cx, input.person.as_deref())?;
    let row = find(cx.tx, &person, &input.name)?.ok_or_else(|| missing(&input.name))?;
    let (channel, now) = (row.channel_name(), cx.now());
    let under_way = cx
        .tx
        .query("select id, job from notification where person = $1 and channel = $2 and finished_at is null order by id limit 100", args![person, channel])?;
    for open in &under_way {
        let (id, job): (String, String) = (open.get(0)?, open.get(1)?);
        cx.tx.execute("update notification set state = 'dropped', finished_at = $2, body = null where id = $1", args![id, now])?;
        job::drop(cx, &job)?;
    }
    cx.tx.execute("delete from subscription where person = $1 and name = $2", args![person, input.name])?;
    cx.tx.erases();
    cx.emit(Event::new(REMOVED, subject(&person, &input.name)).fact("person", person.as_str()).fact("subscription", input.name.as_str()))?;
    Ok(Removed { name: input.name })
}

fn missing(name: &str) -> Error {
    Error::not_found(format!("there is no subscription {name}")).hint("desk_subscription_list shows yours")
}

/// Send yourself a test through one of your ways, now, also in quiet hours. The answer tells what became of it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Test {
    /// For owners: whose, by the person's id.
    person: Option<String>,
    /// Its name.
    name: String,
}

/// What became of a test.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tested {
    /// Its name.
    name: String,
    /// Whether the receiver took it.
    arrived: bool,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Whether trying again cannot help as things are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    permanent: bool,
    /// The id that the receiver gave it, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
}

/// What is to be sent at once, for whoever can reach outside.
#[derive(Clone, Debug)]
pub struct Tell {
    /// Where to.
    pub channel: Channel,
    /// The notification's id.
    pub id: String,
}

impl Tell {
    /// What is said. `base` is where people reach the desk's pages.
    pub fn letter(&self, base: Option<&str>) -> Letter {
        Letter::test(&self.id, base)
    }
}

/// What became of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Whether the receiver took it.
    pub arrived: bool,
    /// What went wrong, in our words.
    pub error: Option<String>,
    /// Whether trying again cannot help as things are.
    pub permanent: bool,
    /// The id that the receiver gave it, if it did.
    pub receipt: Option<String>,
}

pub(super) fn wants_test(cx: &mut Cx<'_, '_>, input: &Test) -> Result<Errand> {
    let person = whose(cx, input.person.as_deref())?;
    let row = find(cx.tx, &person, &input.name)?.ok_or_else(|| missing(&input.name))?;
    let every = i64::try_from(SUBSCRIPTION_TEST_EVERY.as_micros()).unwrap_or(i64::MAX);
    if let Some(left) = row.tested_at.map(|at| at + every - cx.now()).filter(|left| *left > 0) {
        return Err(Error::limited("a test was sent just now", u64::try_from(left / 1_000).unwrap_or(0) + 1));
    }
    let channel = subscription::channel_of(cx, &row.channel_name())?.ok_or_else(|| unknown_outlet(&row.outlet))?;
    Ok(Errand::Tell(Box::new(Tell { channel, id: cx.new_id() })))
}

pub(super) fn test(cx: &mut Cx<'_, '_>, input: Test, found: Outcome) -> Result<Tested> {
    let person = whose(cx, input.person.as_deref())?;
    let now = cx.now();
    cx.tx.execute("update subscription set tested_at = $3 where person = $1 and name = $2", args![person, input.name, now])?;
    let channel = format!("{}{person}/{}", subscription::PREFIX, input.name);
    match &found.error {
        None => subscription::note_arrived(cx, &channel)?,
        Some(error) => subscription::note_failed(cx, &channel, error)?,
    }
    let event = Event::new(TESTED, subject(&person, &input.name)).fact("person", person.as_str()).fact("subscription", input.name.as_str());
    cx.emit(event.fact("arrived", found.arrived).fact("permanent", found.permanent))?;
    Ok(Tested { name: input.name, arrived: found.arrived, why: found.error, permanent: found.permanent, receipt: found.receipt })
}
