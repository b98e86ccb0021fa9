//! Conversations as people look at them: which there are, and all of one with who has read it. Agents see only what they
//! sent or got, through the messages themselves.

use std::collections::BTreeMap;

use deskmate_db::{Row, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::messages::{Listing, fetch, listing};
use super::party::{Priority, me, trust};
use super::rows::message_columns;
use super::sent::{SentMessages, with_receipts};
use crate::call::{Cx, Page, PageIn};
use crate::identity::check_name;
use crate::{Error, Result, format_time};

/// How many messages one call looks through for the newest of each conversation, and for those that wait for its caller.
const LOOK: u32 = 2_000;
/// How many characters of a message a list shows.
const EXCERPT_CHARS: i64 = 280;

/// List conversations, the one with the newest message first, whoever takes part. In a desk with long conversations a
/// page may be short or empty and still have a next one: go on while there is a `next_cursor`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListThreads {
    /// Only those in which a message waits for you.
    #[serde(default)]
    waiting: bool,
    /// How many; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// The beginning of a message.
#[derive(Serialize, JsonSchema)]
struct Excerpt {
    /// The message's id.
    message_id: String,
    /// Who sent it, from the sender's credential.
    sender: String,
    /// How a person who sent it is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_name: Option<String>,
    /// Whether a credential proved who sent it.
    verified: bool,
    /// What a reader may make of who sent it, for example `unverified, claims to be code`.
    trust: String,
    /// Whom it was sent to: an actor, or `group:NAME`.
    to: String,
    /// How urgent the sender says it is.
    priority: Priority,
    /// How it begins. Absent when it was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// When it was sent.
    created_at: String,
}

/// A conversation.
#[derive(Serialize, JsonSchema)]
struct ThreadOut {
    /// Its name.
    thread: String,
    /// The project of its newest message.
    project: String,
    /// The message that it began with.
    opening: Excerpt,
    /// Its newest message.
    latest: Excerpt,
    /// How many of its messages wait for you.
    waiting: u32,
}

/// A page of conversations.
#[derive(Serialize, JsonSchema)]
pub(super) struct Threads {
    /// The conversations.
    threads: Vec<ThreadOut>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// The newest message of a conversation.
struct Newest {
    thread: String,
    message: String,
    at: i64,
}

impl Newest {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self { thread: row.get(0)?, message: row.get(1)?, at: row.get(2)? })
    }
}

/// A message is its conversation's newest if no other one of it is newer; asked so, no engine sorts anything for it.
pub(super) const NEWEST: &str = "select m.thread, m.id, m.created_at from message m where (m.created_at, m.id) < ($1, $2) and (m.created_at, m.id) >= ($3, $4) \
     and m.id = (select n.id from message n where n.thread = m.thread order by n.created_at desc, n.id desc limit 1) \
     order by m.created_at desc, m.id desc limit $5";
pub(super) const LOOKED_AT: &str = "select created_at, id from message where (created_at, id) < ($1, $2) order by created_at desc, id desc limit 1 offset $3";
pub(super) const WAITING_IN: &str = "select m.thread from delivery d join message m on m.id = d.message where d.recipient = $1 and d.acknowledged_at is null \
     order by d.project, d.rank, d.created_at, d.message limit $2";
const NEWEST_OF: &str = "select thread, id, created_at from message where thread = $1 order by created_at desc, id desc limit 1";

/// The columns of the beginning of a message, with its project.
macro_rules! excerpt {
    ($tail:literal) => {
        concat!(
            "select m.id, m.sender, p.name, m.sender_kind, m.verified, m.to_name, m.rank, substr(m.content, 1, $2), m.created_at, m.project \
             from message m left join person p on p.id = m.sender ",
            $tail
        )
    };
}
pub(super) const OPENING: &str = excerpt!("where m.thread = $1 order by m.created_at, m.id limit 1");
const LATEST: &str = excerpt!("where m.id = $1");

impl Excerpt {
    fn read(row: &Row) -> Result<Self> {
        let (sender, kind, verified): (String, String, bool) = (row.get(1)?, row.get(3)?, row.get(4)?);
        Ok(Self {
            message_id: row.get(0)?,
            sender_name: row.get(2)?,
            trust: trust(&kind, &sender, verified),
            sender,
            verified,
            to: row.get(5)?,
            priority: Priority::from_rank(row.get(6)?),
            text: row.get(7)?,
            created_at: format_time(row.get(8)?),
        })
    }
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: ListThreads) -> Result<Threads> {
    let me = me(cx)?;
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let waiting = waiting_for(cx, &me)?;
    let found = if input.waiting { of_waiting(cx, &waiting, &page)? } else { of_all(cx, &page)? };
    let mut threads = Vec::with_capacity(found.items.len());
    for newest in found.items {
        let opening = Excerpt::read(&cx.tx.one(OPENING, args![newest.thread, EXCERPT_CHARS])?)?;
        let row = cx.tx.one(LATEST, args![newest.message, EXCERPT_CHARS])?;
        let waiting = waiting.get(&newest.thread).copied().unwrap_or(0);
        threads.push(ThreadOut { thread: newest.thread, project: row.get(9)?, opening, latest: Excerpt::read(&row)?, waiting });
    }
    Ok(Threads { threads, next_cursor: found.next_cursor })
}

/// In which conversations messages wait for the caller, and how many.
fn waiting_for(cx: &mut Cx<'_, '_>, me: &str) -> Result<BTreeMap<String, u32>> {
    let mut threads = BTreeMap::new();
    for row in cx.tx.query(WAITING_IN, args![me, LOOK])? {
        *threads.entry(row.get(0)?).or_insert(0) += 1;
    }
    Ok(threads)
}

fn of_waiting(cx: &mut Cx<'_, '_>, waiting: &BTreeMap<String, u32>, page: &PageIn) -> Result<Page<Newest>> {
    let mut found = Vec::with_capacity(waiting.len());
    for thread in waiting.keys() {
        found.push(Newest::read(&cx.tx.one(NEWEST_OF, args![thread])?)?);
    }
    found.sort_by(|a, b| (b.at, &b.message).cmp(&(a.at, &a.message)));
    if let Some((at, message)) = &page.after {
        found.retain(|newest| (newest.at, &newest.message) < (*at, message));
    }
    Ok(Page::cut(found, page, |newest| (newest.at, newest.message.clone())))
}

fn of_all(cx: &mut Cx<'_, '_>, page: &PageIn) -> Result<Page<Newest>> {
    let (at, message) = page.after.clone().unwrap_or((i64::MAX, String::new()));
    let bound = cx.tx.optional(LOOKED_AT, args![at, message, LOOK - 1])?;
    let bound: Option<(i64, String)> = bound.map(|row| Ok::<_, Error>((row.get(0)?, row.get(1)?))).transpose()?;
    let (from, first) = bound.clone().unwrap_or((i64::MIN, String::new()));
    let rows = cx.tx.query(NEWEST, args![at, message, from, first, page.look_ahead()])?;
    let rows = rows.iter().map(Newest::read).collect::<Result<Vec<_>>>()?;
    let mut found = Page::cut(rows, page, |newest| (newest.at, newest.message.clone()));
    if found.next_cursor.is_none() {
        found.next_cursor = bound.map(|(at, message)| Page::<()>::cursor(at, &message));
    }
    Ok(found)
}

/// Read a whole conversation, newest first, with who has acknowledged each message.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetThread {
    /// The conversation, as messages name it.
    thread: String,
    /// How many messages; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

pub(super) const OF_THREAD: Listing = listing!(
    "d.acknowledged_at",
    "from message m left join person p on p.id = m.sender left join delivery d on d.message = m.id and d.recipient = $1 \
     where m.thread = $2 and (m.created_at, m.id) < ($3, $4) order by m.created_at desc, m.id desc limit $5"
);

pub(super) fn get(cx: &mut Cx<'_, '_>, input: GetThread) -> Result<SentMessages> {
    let me = me(cx)?;
    check_name("thread", &input.thread)?;
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let (created_at, id) = page.after.clone().unwrap_or((i64::MAX, String::new()));
    let found = fetch(cx.tx, &OF_THREAD, args![me, input.thread, created_at, id], &page, |row| (row.created_at, row.id.clone()))?;
    if found.items.is_empty() && page.after.is_none() {
        return Err(Error::not_found("there is no such conversation"));
    }
    with_receipts(cx, found)
}
