//! From an open notification to one that has arrived, or was given up.

use deskmate_db::{Tx, args};
use serde_json::json;

use super::channel::{self, Channel};
use super::follow::read_items;
use super::message::{Data, Item, Message, plain};
use crate::call::Cx;
use crate::limits::JOB_ERROR_BYTES_MAX;
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
    /// Send this; it is the same at every attempt.
    Send {
        /// The text to sign and send.
        body: String,
        /// The same, to show.
        message: Box<Message>,
    },
    /// There is nothing to send any more.
    Nothing,
}

/// How sending failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What went wrong, in our words.
    pub error: String,
    /// Whether this was the last attempt.
    pub last: bool,
    /// Whether the receiver said that it is gone for good.
    pub gone: bool,
}

struct Row {
    channel: String,
    urgent: bool,
    state: String,
    count: i64,
    items: String,
    body: Option<String>,
}

fn find(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Row>> {
    let row = cx.tx.optional("select channel, urgent, state, count, items, body from notification where id = $1", args![id])?;
    row.map(|row| Ok(Row { channel: row.get(0)?, urgent: row.get(1)?, state: row.get(2)?, count: row.get(3)?, items: row.get(4)?, body: row.get(5)? }))
        .transpose()
}

/// Closes a notification and puts together what is sent. What was decided meanwhile is left out, and where nothing is
/// left nothing is sent. A later attempt gets the same text.
pub fn take(cx: &mut Cx<'_, '_>, id: &str, channel: &Channel) -> Result<Taken> {
    let Some(row) = find(cx, id)? else { return Ok(Taken::Nothing) };
    let body = match (row.state.as_str(), row.body) {
        ("sending", Some(body)) => body,
        ("sending" | "open", _) => {
            let now = cx.now();
            let (items, gone) = still(cx, read_items(&row.items)?, channel)?;
            // Beyond those that are kept, nobody knows which were decided: then the number is told.
            if row.count <= gone {
                cx.tx.execute("update notification set state = 'dropped', finished_at = $2 where id = $1", args![id, now])?;
                return Ok(Taken::Nothing);
            }
            let data = Data { notification: id.to_owned(), channel: row.channel, urgent: row.urgent, count: row.count - gone, items };
            let body = json!(Message { r#type: "desk.attention".to_owned(), timestamp: format_time(now), data }).to_string();
            cx.tx.execute("update notification set state = 'sending', body = $2 where id = $1", args![id, body])?;
            body
        }
        _ => return Ok(Taken::Nothing),
    };
    let message = serde_json::from_str(&body).map_err(|error| Error::new(Code::Internal, format!("a notification is unreadable: {error}")))?;
    Ok(Taken::Send { body, message: Box::new(message) })
}

/// The items that still hold, with their titles where the channel shows texts; and how many do not.
fn still(cx: &mut Cx<'_, '_>, items: Vec<Item>, channel: &Channel) -> Result<(Vec<Item>, i64)> {
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
            item.title = title.filter(|_| channel.text).map(|title| plain(&title)).filter(|title| !title.is_empty());
        }
        left.push(item);
    }
    Ok((left, gone))
}

/// A notification arrived.
pub fn arrived(cx: &mut Cx<'_, '_>, id: &str, attempt: i64) -> Result<()> {
    let Some(row) = find(cx, id)? else { return Ok(()) };
    let now = cx.now();
    cx.tx.execute("update notification set state = 'delivered', finished_at = $2, error = null, body = null where id = $1", args![id, now])?;
    cx.tx.execute("update notification_channel set delivered_at = $2, error = null where name = $1", args![row.channel, now])?;
    let event = Event::new(DELIVERED, format!("notification:{id}")).fact("notification", id).fact("channel", row.channel);
    cx.emit(event.fact("count", row.count).fact("attempt", attempt))
}

/// A notification did not arrive. After the last attempt, and where the receiver is gone, that is the end of it.
pub fn failed(cx: &mut Cx<'_, '_>, id: &str, attempt: i64, failure: &Failure) -> Result<()> {
    let Some(row) = find(cx, id)? else { return Ok(()) };
    let now = cx.now();
    let error: String = failure.error.chars().take(JOB_ERROR_BYTES_MAX / 4).filter(|c| *c != '\0').collect();
    cx.tx.execute("update notification set error = $2 where id = $1", args![id, error])?;
    cx.tx.execute("update notification_channel set failed_at = $2, error = $3 where name = $1", args![row.channel, now, error])?;
    if failure.gone {
        channel::disable(cx, &row.channel)?;
    }
    if failure.gone || failure.last {
        cx.tx.execute("update notification set state = 'failed', finished_at = $2, body = null where id = $1", args![id, now])?;
        let event = Event::new(GIVEN_UP, format!("notification:{id}")).fact("notification", id).fact("channel", row.channel);
        cx.emit(event.fact("count", row.count).fact("attempt", attempt).payload(json!({ "error": error })))?;
    }
    Ok(())
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
