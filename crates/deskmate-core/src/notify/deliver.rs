//! From an open notification to one that has arrived, or was given up.

use deskmate_db::{Tx, args};
use serde_json::json;

use super::channel::{self, Channel, Details};
use super::follow::read_items;
use super::letter::Letter;
use super::message::{Data, Item, Message, plain};
use super::subscription;
use crate::call::Cx;
use crate::limits::{JOB_ERROR_BYTES_MAX, NOTIFICATION_ITEMS_MAX, TITLE_CHARS_MAX};
use crate::record::{Event, Kind};
use crate::{Code, Error, Result, format_time};

/// The kind of job that delivers a notification.
pub const JOB: &str = "notification.deliver";

/// A notification arrived.
pub(super) const DELIVERED: Kind = Kind { name: "notification.delivered", says: "A notification arrived at its channel." };
/// A notification was given up.
pub(super) const GIVEN_UP: Kind = Kind { name: "notification.given_up", says: "A notification did not arrive, and is not tried again." };

/// What a job that delivers has to do.
#[derive(Clone, Debug)]
pub enum Taken {
    /// Send this; it is the same at every attempt, but for links to decide by.
    Send {
        /// The text to sign and send.
        body: String,
        /// The same, to show.
        message: Box<Message>,
        /// The same, for people who are not at the desk.
        letter: Box<Letter>,
    },
    /// There is nothing to send any more.
    Nothing,
}

/// How sending failed.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// What went wrong, in our words.
    pub error: String,
    /// Whether this was the last attempt.
    pub last: bool,
    /// Whether the receiver said that it is gone for good.
    pub gone: bool,
    /// Whether trying again cannot help as things are.
    pub permanent: bool,
}

pub(super) struct Row {
    pub(super) channel: String,
    pub(super) urgent: bool,
    pub(super) state: String,
    pub(super) count: i64,
    items: String,
    body: Option<String>,
    pub(super) job: String,
    pub(super) person: Option<String>,
    pub(super) test: bool,
}

pub(super) fn find(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Row>> {
    let row = cx.tx.optional("select channel, urgent, state, count, items, body, job, person, test from notification where id = $1", args![id])?;
    row.map(|row| {
        Ok(Row {
            channel: row.get(0)?,
            urgent: row.get(1)?,
            state: row.get(2)?,
            count: row.get(3)?,
            items: row.get(4)?,
            body: row.get(5)?,
            job: row.get(6)?,
            person: row.get(7)?,
            test: row.get(8)?,
        })
    })
    .transpose()
}

/// Closes a notification and puts together what is sent. What was decided meanwhile is left out, and where nothing is
/// left nothing is sent. A later attempt gets the same text; links to decide by are made anew, because they are kept nowhere.
/// `base` is where people reach the desk's pages.
pub fn take(cx: &mut Cx<'_, '_>, id: &str, channel: &Channel, base: Option<&str>) -> Result<Taken> {
    let Some(row) = find(cx, id)? else { return Ok(Taken::Nothing) };
    let body = match (row.state.as_str(), row.body) {
        ("sending", Some(body)) => body,
        ("sending" | "open", _) => {
            let now = cx.now();
            let (mut items, gone) = still(cx, read_items(&row.items)?, channel, base)?;
            // Beyond those that are kept, nobody knows which were decided: then the number is told.
            if row.count <= gone {
                cx.tx.execute("update notification set state = 'dropped', finished_at = $2 where id = $1", args![id, now])?;
                return Ok(Taken::Nothing);
            }
            items.truncate(NOTIFICATION_ITEMS_MAX);
            let data = Data { notification: id.to_owned(), channel: row.channel, urgent: row.urgent, count: row.count - gone, items };
            let body = json!(Message { r#type: "desk.attention".to_owned(), timestamp: format_time(now), data }).to_string();
            cx.tx.execute("update notification set state = 'sending', body = $2 where id = $1", args![id, body])?;
            body
        }
        _ => return Ok(Taken::Nothing),
    };
    let message: Message = serde_json::from_str(&body).map_err(|error| Error::new(Code::Internal, format!("a notification is unreadable: {error}")))?;
    let links = subscription::links(cx, channel, &message)?;
    let letter = Letter::new(&message, channel.details, &links, base);
    Ok(Taken::Send { body, message: Box::new(message), letter: Box::new(letter) })
}

/// The items that still hold, with their titles where the channel shows texts; and how many do not.
fn still(cx: &mut Cx<'_, '_>, items: Vec<Item>, channel: &Channel, base: Option<&str>) -> Result<(Vec<Item>, i64)> {
    let redactor = channel.details.redactor();
    let mut left = Vec::with_capacity(items.len());
    let mut gone = 0;
    for mut item in items {
        if let Some(request) = item.request() {
            let row = cx.tx.optional("select state, title from request where id = $1", args![request])?;
            let (state, title): (Option<String>, Option<String>) = match row {
                Some(row) => (Some(row.get(0)?), row.get(1)?),
                None => (None, None),
            };
            if item.waits() && state.as_deref() != Some("pending") {
                gone += 1;
                continue;
            }
            let title = title.filter(|_| channel.details != Details::None).map(|title| plain(&redactor.text(&title).text));
            item.link = base.map(|base| format!("{base}/requests/{request}"));
            item.title = title.filter(|title| !title.is_empty());
        }
        left.push(item);
    }
    Ok((left, gone))
}

/// A notification arrived. `receipt` is the id that the receiver gave it, if it did.
pub fn arrived(cx: &mut Cx<'_, '_>, id: &str, attempt: i64, receipt: Option<&str>) -> Result<()> {
    let Some(row) = find(cx, id)? else { return Ok(()) };
    let now = cx.now();
    let receipt: Option<String> = receipt.map(|receipt| plain(receipt).chars().take(TITLE_CHARS_MAX).collect());
    cx.tx.execute(
        "update notification set state = 'delivered', finished_at = $2, error = null, body = null, receipt = $3, permanent = false where id = $1",
        args![id, now, receipt],
    )?;
    if row.person.is_some() {
        subscription::note_arrived(cx, &row.channel)?;
    } else {
        cx.tx.execute("update notification_channel set delivered_at = $2, error = null where name = $1", args![row.channel, now])?;
    }
    let event = Event::new(DELIVERED, format!("notification:{id}")).fact("notification", id).fact("channel", row.channel);
    cx.emit(event.fact("count", row.count).fact("attempt", attempt))
}

/// A notification did not arrive. After the last attempt, where trying again cannot help, and where the receiver is gone, that is
/// the end of it: it stays as a dead letter until a person sends it round again or dismisses it.
pub fn failed(cx: &mut Cx<'_, '_>, id: &str, attempt: i64, failure: &Failure) -> Result<()> {
    let Some(row) = find(cx, id)?.filter(|row| matches!(row.state.as_str(), "open" | "sending")) else { return Ok(()) };
    let now = cx.now();
    let error: String = failure.error.chars().take(JOB_ERROR_BYTES_MAX / 4).filter(|c| *c != '\0').collect();
    cx.tx.execute("update notification set error = $2 where id = $1", args![id, error])?;
    if row.person.is_some() {
        subscription::note_failed(cx, &row.channel, &error)?;
    } else {
        cx.tx.execute("update notification_channel set failed_at = $2, error = $3 where name = $1", args![row.channel, now, error])?;
    }
    if failure.gone && row.person.is_some() {
        subscription::disable(cx, &row.channel)?;
    } else if failure.gone {
        channel::disable(cx, &row.channel)?;
    }
    if failure.gone || failure.last || failure.permanent {
        let permanent = failure.gone || failure.permanent;
        cx.tx.execute("update notification set state = 'failed', finished_at = $2, body = null, permanent = $3 where id = $1", args![id, now, permanent])?;
        let event = Event::new(GIVEN_UP, format!("notification:{id}")).fact("notification", id).fact("channel", row.channel).fact("permanent", permanent);
        cx.emit(event.fact("count", row.count).fact("attempt", attempt).payload(json!({ "error": error })))?;
    }
    Ok(())
}

/// A job has ended without having sent its notification, and nobody reported on it: somebody cancelled it, or its worker was lost
/// for the last time. What nobody will send must not look as if it were on its way.
pub(crate) fn job_ended(cx: &mut Cx<'_, '_>, kind: &str, job: &str, key: Option<&str>, error: &str) -> Result<()> {
    let Some(id) = key.filter(|_| kind == JOB) else { return Ok(()) };
    match find(cx, id)? {
        Some(row) if row.job == job => failed(cx, id, 0, &Failure { error: error.to_owned(), last: true, ..Failure::default() }),
        _ => Ok(()),
    }
}

/// Forgets what was put together for messages that are still on their way: it may repeat a text that a person erases.
/// The next attempt puts it together anew.
pub(crate) fn erase(tx: &mut Tx<'_>) -> Result<()> {
    tx.execute("update notification set body = null where state = 'sending' and not test", &[])?;
    Ok(())
}

/// Deletes notifications that ended before a moment; answers how many.
pub fn prune(cx: &mut Cx<'_, '_>, before: i64, limit: u32) -> Result<u64> {
    let deleted = cx.tx.execute(
        "delete from notification where id in (select id from notification where finished_at is not null and finished_at < $1 order by finished_at, id limit $2)",
        args![before, limit],
    )?;
    Ok(deleted)
}
