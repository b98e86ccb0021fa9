//! Following the record: events become notifications, at least once and never twice.

use deskmate_db::{Tx, args};
use serde_json::json;

use super::channel::{Channel, is_on};
use super::deliver::JOB;
use super::message::Item;
use super::remind::{self, Reminders};
use super::subscription;
use super::topic::{News, RINGING, classify};
use crate::call::Cx;
use crate::job::{self, NewJob, Owner, Priority};
use crate::record::{self, find_event};
use crate::{Code, Error, Result};

/// The name of this follower's cursor.
const FOLLOWER: &str = "notify";
/// How long the first event waits for others that come with it, in microseconds.
const SETTLE: i64 = 500_000;

/// What a look at the record found.
#[derive(Clone, Debug)]
pub struct Look {
    /// The next event that was not looked at.
    pub next: u64,
    /// What is worth a message.
    news: Vec<News>,
}

impl Look {
    /// Whether there is anything to tell.
    pub fn rings(&self) -> bool {
        !self.news.is_empty()
    }
}

/// Where to go on: where the last [`follow`] ended. Who follows for the first time begins with what happens from now on,
/// and that place is written down, so that nothing is missed after a restart.
pub fn begin(cx: &mut Cx<'_, '_>) -> Result<u64> {
    if let Some(next) = cursor(cx.tx)? {
        return Ok(next);
    }
    let size = record::size(cx.tx)?;
    set_cursor(cx, size)?;
    Ok(size)
}

/// Looks at events from a place on, and finds what is worth a message. Only reads: writers wait for none of it.
pub fn look(tx: &mut Tx<'_>, from: u64, limit: u32) -> Result<Look> {
    let mut look = Look { next: from, news: Vec::new() };
    for row in tx.query("select seq, kind from event where seq >= $1 order by seq limit $2", args![signed(from), limit])? {
        let seq = unsigned(row.get(0)?);
        look.next = seq + 1;
        if RINGING.contains(&row.get::<String>(1)?.as_str()) {
            look.news.extend(find_event(tx, seq)?.as_ref().and_then(classify));
        }
    }
    Ok(look)
}

fn cursor(tx: &mut Tx<'_>) -> Result<Option<u64>> {
    let row = tx.optional("select seq from cursor where name = $1", args![FOLLOWER])?;
    Ok(row.map(|row| row.get::<i64>(0)).transpose()?.map(unsigned))
}

fn signed(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

fn unsigned(seq: i64) -> u64 {
    u64::try_from(seq).unwrap_or(0)
}

/// Turns what a look found into notifications and moves on, in one transaction. What another server dealt with meanwhile
/// is passed over. Answers the next event.
pub fn follow(cx: &mut Cx<'_, '_>, channels: &[Channel], look: &Look) -> Result<u64> {
    follow_with(cx, channels, &Reminders::default(), look)
}

/// Like [`follow`], and notes what is to be told again.
pub fn follow_with(cx: &mut Cx<'_, '_>, channels: &[Channel], reminders: &Reminders, look: &Look) -> Result<u64> {
    let done = cursor(cx.tx)?.unwrap_or(0);
    let next = done.max(look.next);
    let news: Vec<&News> = look.news.iter().filter(|news| news.item.seq >= done).collect();
    if !news.is_empty() {
        for channel in channels {
            if is_on(cx.tx, &channel.name)? == Some(true) {
                tell(cx, channel, &news)?;
            }
        }
        for channel in subscription::channels(cx)? {
            tell(cx, &channel, &news)?;
        }
        for news in &news {
            remind::schedule(cx, reminders, news)?;
        }
    }
    set_cursor(cx, next)?;
    Ok(next)
}

/// Adds to a channel's notifications what it tells about.
fn tell(cx: &mut Cx<'_, '_>, channel: &Channel, news: &[&News]) -> Result<()> {
    for urgent in [true, false] {
        let wanted = news.iter().filter(|news| news.urgent == urgent && channel.wants(news));
        let items: Vec<Item> = wanted.map(|news| news.item.clone()).collect();
        if !items.is_empty() {
            add(cx, channel, urgent, items)?;
        }
    }
    Ok(())
}

fn set_cursor(cx: &mut Cx<'_, '_>, next: u64) -> Result<()> {
    cx.tx.execute("insert into cursor (name, seq) values ($1, $2) on conflict (name) do update set seq = excluded.seq", args![FOLLOWER, signed(next)])?;
    Ok(())
}

/// Adds to the channel's open notification, or opens one and puts its job into the queue.
fn add(cx: &mut Cx<'_, '_>, channel: &Channel, urgent: bool, mut new: Vec<Item>) -> Result<()> {
    let more = i64::try_from(new.len()).unwrap_or(i64::MAX);
    let open =
        cx.tx.optional("select id, count, items from notification where state = 'open' and channel = $1 and urgent = $2", args![channel.name, urgent])?;
    if let Some(row) = open {
        let (id, count): (String, i64) = (row.get(0)?, row.get(1)?);
        let mut items: Vec<Item> = read_items(&row.get::<String>(2)?)?;
        items.append(&mut new);
        items.truncate(channel.keeps());
        cx.tx.execute("update notification set count = $2, items = $3 where id = $1", args![id, count.saturating_add(more), json!(items).to_string()])?;
        return Ok(());
    }
    new.truncate(channel.keeps());
    let (id, now) = (cx.new_id(), cx.now());
    let last = cx.tx.optional(
        "select due_at from notification where channel = $1 and urgent = $2 and not test order by due_at desc, id desc limit 1",
        args![channel.name, urgent],
    )?;
    let last: Option<i64> = last.map(|row| row.get(0)).transpose()?;
    // The first one goes out at once; what follows it is told together, a while later.
    let due = (now + SETTLE).max(last.map_or(0, |last| last.saturating_add(channel.window)));
    let due = channel.due(due, urgent);
    let job = enqueue(cx, channel, &id, due)?;
    cx.tx.execute(
        "insert into notification (id, channel, urgent, state, count, test, job, opened_at, due_at, items, person) \
         values ($1, $2, $3, 'open', $4, false, $5, $6, $7, $8, $9)",
        args![id, channel.name, urgent, more, job, now, due, json!(new).to_string(), channel.whose.as_ref().map(|whose| whose.id.clone())],
    )?;
    Ok(())
}

/// Whatever of a channel is open goes out when it would by what is said now: a change of when holds for what waits, too.
pub(super) fn reschedule(cx: &mut Cx<'_, '_>, channel: &Channel) -> Result<()> {
    let rows =
        cx.tx.query("select id, urgent, job from notification where state = 'open' and channel = $1 order by urgent, id limit 10", args![channel.name])?;
    for row in &rows {
        let (id, urgent, job): (String, bool, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let due = channel.due(cx.now() + SETTLE, urgent);
        // First, so that the end of the job is not the end of the notification.
        cx.tx.execute("update notification set job = '' where id = $1", args![id])?;
        job::drop(cx, &job)?;
        let job = enqueue(cx, channel, &id, due)?;
        cx.tx.execute("update notification set job = $2, due_at = $3 where id = $1", args![id, job, due])?;
    }
    Ok(())
}

/// The job that delivers a notification.
pub(super) fn enqueue(cx: &mut Cx<'_, '_>, channel: &Channel, id: &str, due: i64) -> Result<String> {
    let new = NewJob {
        priority: Priority::Urgent,
        run_at: Some(due),
        unique_key: Some(id.to_owned()),
        attempts_max: channel.attempts,
        owner: Some(Owner::from(&crate::call::Actor::system())),
        ..NewJob::new(JOB, json!({ "notification": id, "channel": channel.name }))
    };
    Ok(job::enqueue(cx, new)?.job)
}

pub(super) fn read_items(text: &str) -> Result<Vec<Item>> {
    serde_json::from_str(text).map_err(|error| Error::new(Code::Internal, format!("a notification is unreadable: {error}")))
}
