//! Notifications on the surfaces: people look what was sent, try a channel, and turn one on again.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::channel::{self, is_on, unknown};
use super::follow::read_items;
use super::message::{Data, Item, Message};
use super::topic::Topic;
use super::{dead, subscription};
use crate::call::{Cx, Page, PageIn, Role};
use crate::job::{self, NewJob, Owner, Priority};
use crate::limits::{NAME_CHARS_MAX, NOTIFICATION_CHANNELS_MAX, NOTIFICATION_ITEMS_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, check_text, format_time};

/// Somebody tried a channel.
pub(super) const TESTED: Kind = Kind { name: "notification.tested", says: "A person sent a test through a channel of notifications." };

/// How often a test is tried: who waits for it looks soon.
const TEST_ATTEMPTS: i64 = 3;

/// List the channels of notifications with how they do, and the notifications, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// How many notifications; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
    /// Only notifications in this state.
    state: Option<StateFilter>,
}

/// Which notifications are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StateFilter {
    /// Those that were given up: dead letters.
    Failed,
}

/// A channel.
#[derive(Serialize, JsonSchema)]
struct ChannelOut {
    /// Its name.
    channel: String,
    /// How it reaches people, such as `desktop`, `webhook` or `email`.
    kind: String,
    /// Where to, without what could be a secret.
    target: String,
    /// Whether the configuration still has it.
    configured: bool,
    /// Whether it tells whoever reads there, and is not only an outlet for people's own subscriptions.
    tells: bool,
    /// Since when it is off because its receiver said that it is gone. Absent while it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_at: Option<String>,
    /// When a notification last arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered_at: Option<String>,
    /// When one last failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<String>,
    /// Why; absent since one arrived again.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A notification.
#[derive(Serialize, JsonSchema)]
struct NotificationOut {
    /// Its id.
    notification: String,
    /// Its channel; `person/ID/NAME` is a person's own subscription.
    channel: String,
    /// For whom it is, if for one person.
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<String>,
    /// Whether it is urgent.
    urgent: bool,
    /// `open` while it takes events in, `sending`, `delivered`, `failed` when it was given up, `dismissed` when a person needed it no
    /// more, or `dropped` when everything was decided before.
    state: String,
    /// How many events it tells of.
    count: i64,
    /// The first of them.
    items: Vec<Item>,
    /// The job that delivers it.
    job: String,
    /// How often that was tried. Absent when the job is no longer kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<i64>,
    /// When the first event came.
    opened_at: String,
    /// When it is or was due: later in quiet hours, and while the channel has just told something.
    due_at: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Whether trying again could not help as things were.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    permanent: bool,
    /// The id that the receiver gave it, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
}

/// Channels and notifications.
#[derive(Serialize, JsonSchema)]
pub(super) struct Notifications {
    /// How many notifications that you may see were given up and wait to be sent round again or dismissed; counted up to 1,000.
    dead: i64,
    /// The channels.
    channels: Vec<ChannelOut>,
    /// The notifications, newest first.
    notifications: Vec<NotificationOut>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<Notifications> {
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let bound = i64::try_from(10 * NOTIFICATION_CHANNELS_MAX).unwrap_or(i64::MAX);
    let rows = cx.tx.query(
        "select name, kind, target, configured, disabled_at, delivered_at, failed_at, error, tells from notification_channel order by name limit $1",
        args![bound],
    )?;
    let mut channels = Vec::with_capacity(rows.len());
    for row in &rows {
        let time = |column: usize| Ok::<_, Error>(row.get::<Option<i64>>(column)?.map(format_time));
        channels.push(ChannelOut {
            channel: row.get(0)?,
            kind: row.get(1)?,
            target: row.get(2)?,
            configured: row.get(3)?,
            disabled_at: time(4)?,
            delivered_at: time(5)?,
            failed_at: time(6)?,
            error: row.get(7)?,
            tells: row.get(8)?,
        });
    }
    let (opened_at, id) = page.after.clone().unwrap_or((i64::MAX, String::new()));
    // An owner sees everybody's; others see those of channels and their own.
    let (person, all) = (cx.actor.id.clone(), cx.actor.role == Some(Role::Owner) || cx.actor.is_system());
    let sql = if input.state.is_some() { DEAD } else { ALL };
    let rows = cx.tx.query(sql, args![opened_at, id, page.look_ahead(), person, all])?;
    let mut notifications = Vec::with_capacity(rows.len());
    for row in &rows {
        let opened_at: i64 = row.get(8)?;
        let mut items = read_items(&row.get::<String>(5)?)?;
        items.truncate(NOTIFICATION_ITEMS_MAX);
        let out = NotificationOut {
            notification: row.get(0)?,
            channel: row.get(1)?,
            urgent: row.get(2)?,
            state: row.get(3)?,
            count: row.get(4)?,
            items,
            job: row.get(6)?,
            attempt: row.get(7)?,
            opened_at: format_time(opened_at),
            due_at: format_time(row.get(9)?),
            finished_at: row.get::<Option<i64>>(10)?.map(format_time),
            error: row.get(11)?,
            person: row.get(12)?,
            permanent: row.get(13)?,
            receipt: row.get(14)?,
        };
        notifications.push((opened_at, out));
    }
    let page = Page::cut(notifications, &page, |(opened_at, out)| (*opened_at, out.notification.clone()));
    let dead = dead::count(cx, &person, all)?;
    Ok(Notifications { dead, channels, notifications: page.items.into_iter().map(|(_, out)| out).collect(), next_cursor: page.next_cursor })
}

macro_rules! select_notifications {
    ($which:literal) => {
        concat!(
            "select n.id, n.channel, n.urgent, n.state, n.count, n.items, n.job, j.attempt, n.opened_at, n.due_at, n.finished_at, n.error, n.person, \
             n.permanent, n.receipt from notification n left join job j on j.id = n.job where ",
            $which,
            "(n.opened_at, n.id) < ($1, $2) and (n.person is null or n.person = $4 or $5) order by n.opened_at desc, n.id desc limit $3"
        )
    };
}

const ALL: &str = select_notifications!("");
pub(super) const DEAD: &str = select_notifications!("n.state = 'failed' and ");

/// Send a test through a channel of notifications, at once and also in quiet hours. `desk_notification_list` shows what
/// became of it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Test {
    /// The channel: `desktop`, or the name of a webhook or an outlet. For your own subscriptions there is `desk_subscription_test`.
    channel: String,
}

/// A test on its way.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tested {
    /// The notification.
    notification: String,
    /// The job that delivers it: `desk_job_wait` waits for its end.
    job: String,
}

pub(super) fn test(cx: &mut Cx<'_, '_>, input: Test) -> Result<Tested> {
    check_text("channel", &input.channel, NAME_CHARS_MAX)?;
    match is_on(cx.tx, &input.channel)? {
        None => return Err(unknown(&input.channel)),
        Some(false) => {
            return Err(Error::conflict(format!("the receiver of {} said that it is gone, so the channel is off", input.channel))
                .hint("desk_notification_enable turns it on again"));
        }
        Some(true) => {}
    }
    let (id, now) = (cx.new_id(), cx.now());
    let new = NewJob {
        priority: Priority::Urgent,
        unique_key: Some(id.clone()),
        attempts_max: TEST_ATTEMPTS,
        owner: Some(Owner::from(&cx.actor)),
        ..NewJob::new(super::JOB, json!({ "notification": id, "channel": input.channel }))
    };
    let job = job::enqueue(cx, new)?.job;
    let item = Item {
        seq: 0,
        event: TESTED.name.to_owned(),
        at: format_time(now),
        subject: format!("notification:{id}"),
        topic: Topic::Test,
        domain: None,
        request_kind: None,
        agent: None,
        risk: None,
        state: None,
        expires_at: None,
        title: None,
        link: None,
    };
    let items = json!([item]).to_string();
    let data = Data { notification: id.clone(), channel: input.channel.clone(), urgent: false, count: 1, items: vec![item] };
    let body = json!(Message { r#type: "desk.test".to_owned(), timestamp: format_time(now), data }).to_string();
    cx.tx.execute(
        "insert into notification (id, channel, urgent, state, count, test, job, opened_at, due_at, items, body) \
         values ($1, $2, false, 'sending', 1, true, $3, $4, $4, $5, $6)",
        args![id, input.channel, job, now, items, body],
    )?;
    cx.emit(Event::new(TESTED, format!("notification:{id}")).fact("notification", id.as_str()).fact("channel", input.channel))?;
    Ok(Tested { notification: id, job })
}

/// Turn a channel of notifications on again that is off because its receiver had said that it is gone.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Enable {
    /// The channel; `person/ID/NAME` for a person's own subscription.
    channel: String,
}

/// A channel that is on.
#[derive(Serialize, JsonSchema)]
pub(super) struct Enabled {
    /// The channel.
    channel: String,
}

pub(super) fn enable(cx: &mut Cx<'_, '_>, input: Enable) -> Result<Enabled> {
    check_text("channel", &input.channel, 3 * NAME_CHARS_MAX)?;
    match subscription::parts(&input.channel) {
        Some((person, _)) if !dead::is_seen(cx, Some(person)) => return Err(unknown(&input.channel)),
        Some((person, name)) => subscription::enable(cx, person, name)?,
        None => {
            dead::check_changes(cx, None)?;
            channel::enable(cx, &input.channel)?;
        }
    }
    Ok(Enabled { channel: input.channel })
}
