//! Reading the record.

use deskmate_db::{Engine, Row, Tx, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tlog_tiles::record_hash;

use super::entry::{Body, Entry};
use super::tree::signed;
use crate::call::{Actor, Signed};
use crate::limits::PAGE_BYTES_MAX;
use crate::{Code, Error, Result, format_time, hex};

/// An event as it is shown.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventRow {
    /// Its place in the record, counted from 0.
    pub seq: u64,
    /// Its id.
    pub id: String,
    /// When it happened.
    pub at: String,
    /// Who acted: `person`, `agent` or `system`.
    pub actor_kind: String,
    /// The actor's id.
    pub actor: String,
    /// Whether a credential proved who acted.
    pub verified: bool,
    /// Over which surface.
    pub surface: String,
    /// What happened.
    pub kind: String,
    /// To what.
    pub subject: String,
    /// Who is concerned besides the actor.
    pub audience: Vec<String>,
    /// Ids, kinds and numbers; never erased.
    pub facts: Map<String, Value>,
    /// What somebody wrote; absent when there is none, when it was erased, or when the caller may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// Whether what somebody wrote was erased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
    /// What the browser of the person who acted signed, so that others can check it; absent where no browser did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
    /// Whether the sealed body commits to a payload, which may be gone.
    #[serde(skip)]
    pub(super) commits: bool,
}

impl EventRow {
    fn read(row: &Row) -> Result<Self> {
        let mut event = Self::read_head(row)?;
        event.take_payload(row.get::<Option<String>>(2)?.as_deref());
        Ok(event)
    }

    fn take_payload(&mut self, text: Option<&str>) {
        self.payload = text.and_then(|text| serde_json::from_str(text).ok());
        self.erased = self.commits && text.is_none();
    }

    /// Without what somebody wrote.
    fn read_head(row: &Row) -> Result<Self> {
        let body: String = row.get(1)?;
        let body: Body = serde_json::from_str(&body).map_err(|error| Error::new(Code::Internal, format!("an event is unreadable: {error}")))?;
        Ok(Self {
            seq: u64::try_from(row.get::<i64>(0)?).unwrap_or(0),
            id: body.id,
            at: format_time(body.at),
            actor_kind: body.actor.kind,
            actor: body.actor.id,
            verified: body.actor.verified,
            surface: body.surface,
            kind: body.kind,
            subject: body.subject,
            audience: body.audience,
            facts: body.facts.into_iter().collect(),
            payload: None,
            erased: false,
            signed: body.signed,
            commits: body.payload.is_some(),
        })
    }

    /// Whether an actor may see this event. People see all; an agent sees its own acts and what concerns it.
    pub fn visible_to(&self, actor: &Actor) -> bool {
        actor.is_person() || actor.is_system() || (self.actor == actor.id && self.actor_kind == "agent") || self.audience.contains(&actor.id)
    }
}

/// How many events there are.
pub fn size(tx: &mut Tx<'_>) -> Result<u64> {
    let row = tx.optional("select seq from event order by seq desc limit 1", &[])?;
    let last: Option<i64> = row.map(|row| row.get(0)).transpose()?;
    Ok(last.map_or(0, |last| u64::try_from(last).unwrap_or(0) + 1))
}

/// The newest signed checkpoint, if any event was ever sealed.
pub fn newest_checkpoint(tx: &mut Tx<'_>) -> Result<Option<String>> {
    let row = tx.optional("select value from desk where key = 'checkpoint'", &[])?;
    Ok(row.map(|row| row.get(0)).transpose()?)
}

/// What happened to what, without a look into the event.
pub struct Named {
    /// Its place in the record.
    pub seq: u64,
    /// What happened.
    pub kind: String,
    /// To what.
    pub subject: String,
}

/// What happened from a sequence number on, oldest first.
pub fn named_after(tx: &mut Tx<'_>, from: u64, limit: u32) -> Result<Vec<Named>> {
    let rows = tx.query("select seq, kind, subject from event where seq >= $1 order by seq limit $2", args![signed(from), limit])?;
    rows.iter().map(|row| Ok(Named { seq: u64::try_from(row.get::<i64>(0)?).unwrap_or(0), kind: row.get(1)?, subject: row.get(2)? })).collect()
}

/// Events from a sequence number on, oldest first, without their payloads: enough to see whom they concern.
pub fn heads_after(tx: &mut Tx<'_>, from: u64, limit: u32) -> Result<Vec<EventRow>> {
    let rows = tx.query("select seq, body from event where seq >= $1 order by seq limit $2", args![signed(from), limit])?;
    rows.iter().map(EventRow::read_head).collect()
}

/// One event by its place.
pub fn find_event(tx: &mut Tx<'_>, seq: u64) -> Result<Option<EventRow>> {
    let rows = tx.query("select e.seq, e.body, p.payload from event e left join event_payload p on p.seq = e.seq where e.seq = $1", args![signed(seq)])?;
    rows.first().map(EventRow::read).transpose()
}

/// An event with the hash by which it is a leaf of the record.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// What happened, without what somebody wrote.
    pub event: EventRow,
    /// The hash, as hex.
    pub hash: String,
}

impl Leaf {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self { event: EventRow::read_head(row)?, hash: hex(&record_hash(row.get::<String>(1)?.as_bytes()).0) })
    }
}

const LEAVES: &str = "select seq, body from event where kind = $1 and seq > $2 order by seq limit $3";

/// Events of a kind behind a place, oldest first.
pub fn leaves_after(tx: &mut Tx<'_>, kind: &str, after: Option<u64>, limit: u32) -> Result<Vec<Leaf>> {
    tx.query(LEAVES, args![kind, after.map_or(-1, signed), limit])?.iter().map(Leaf::read).collect()
}

/// The event of a kind at a place.
pub fn leaf(tx: &mut Tx<'_>, kind: &str, seq: u64) -> Result<Option<Leaf>> {
    tx.query("select seq, body from event where seq = $1 and kind = $2", args![signed(seq), kind])?.first().map(Leaf::read).transpose()
}

/// Which events a search wants, newest first, below a sequence number.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Only what happened to this subject.
    pub subject: Option<String>,
    /// Only what this actor did.
    pub actor: Option<String>,
    /// Only these kinds; any if there are none.
    pub kinds: Vec<String>,
    /// Only events before this place.
    pub before: Option<u64>,
    /// How many rows to look at.
    pub limit: u32,
}

const PAGE_ALL: &str = "select seq, body from event where seq < $1 order by seq desc limit $2";
const PAGE_SUBJECT: &str = "select seq, body from event where subject = $3 and seq < $1 order by seq desc limit $2";
const PAGE_ACTOR: &str = "select seq, body from event where actor = $3 and seq < $1 order by seq desc limit $2";
const PAGE_KIND: &str = "select seq, body from event where kind = $3 and seq < $1 order by seq desc limit $2";

/// A page of a search, without payloads. The most selective condition uses its index, the others are checked row by row.
pub fn search_heads(tx: &mut Tx<'_>, search: &Search) -> Result<Vec<EventRow>> {
    page(tx, search, [PAGE_SUBJECT, PAGE_ACTOR, PAGE_KIND, PAGE_ALL])?.iter().map(EventRow::read_head).collect()
}

const WHOLE_ALL: &str = "select e.seq, e.body, p.payload from event e left join event_payload p on p.seq = e.seq where e.seq < $1 order by e.seq desc limit $2";
const WHOLE_SUBJECT: &str =
    "select e.seq, e.body, p.payload from event e left join event_payload p on p.seq = e.seq where e.subject = $3 and e.seq < $1 order by e.seq desc limit $2";
const WHOLE_ACTOR: &str =
    "select e.seq, e.body, p.payload from event e left join event_payload p on p.seq = e.seq where e.actor = $3 and e.seq < $1 order by e.seq desc limit $2";
const WHOLE_KIND: &str =
    "select e.seq, e.body, p.payload from event e left join event_payload p on p.seq = e.seq where e.kind = $3 and e.seq < $1 order by e.seq desc limit $2";

/// [`search_heads`] with payloads.
pub fn search(tx: &mut Tx<'_>, search: &Search) -> Result<Vec<EventRow>> {
    page(tx, search, [WHOLE_SUBJECT, WHOLE_ACTOR, WHOLE_KIND, WHOLE_ALL])?.iter().map(EventRow::read).collect()
}

/// The rows of a page, by the statement whose condition is the most selective.
fn page(tx: &mut Tx<'_>, search: &Search, [by_subject, by_actor, by_kind, all]: [&'static str; 4]) -> Result<Vec<Row>> {
    let (before, limit) = (search.before.map_or(i64::MAX, signed), search.limit);
    Ok(match (&search.subject, &search.actor, search.kinds.as_slice()) {
        (Some(subject), _, _) => tx.query(by_subject, args![before, limit, subject])?,
        (None, Some(actor), _) => tx.query(by_actor, args![before, limit, actor])?,
        (None, None, []) => tx.query(all, args![before, limit])?,
        (None, None, kinds) => {
            // Each kind through its index: the newest of all are among the newest of each.
            let mut rows = Vec::new();
            for kind in kinds {
                rows.extend(tx.query(by_kind, args![before, limit, kind])?);
            }
            rows.sort_by_cached_key(|row| std::cmp::Reverse(row.get::<i64>(0).unwrap_or(0)));
            rows.truncate(limit as usize);
            rows
        }
    })
}

/// The place from which on events happened at a moment or later. Times grow with places as far as the clocks of the
/// servers agree, so this is where to begin to look, and not where to believe.
pub fn place_at(tx: &mut Tx<'_>, at: i64) -> Result<u64> {
    let (mut low, mut high) = (0, size(tx)?);
    while low < high {
        let middle = low + (high - low) / 2;
        let row = tx.optional("select at from event where seq >= $1 order by seq limit 1", args![signed(middle)])?;
        match row.map(|row| row.get::<i64>(0)).transpose()? {
            Some(found) if found < at => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// Reads what was written with an event into it, and answers how many bytes that is.
fn add_payload(tx: &mut Tx<'_>, event: &mut EventRow) -> Result<usize> {
    let row = tx.optional("select payload from event_payload where seq = $1", args![signed(event.seq)])?;
    let text: Option<String> = row.map(|row| row.get(0)).transpose()?.flatten();
    event.take_payload(text.as_deref());
    Ok(text.map_or(0, |text| text.len()))
}

/// Adds payloads to events in their order, and leaves out those behind the one with which an answer is full.
pub fn fill(tx: &mut Tx<'_>, mut events: Vec<EventRow>) -> Result<Vec<EventRow>> {
    let mut bytes = 0;
    for at in 0..events.len() {
        let Some(event) = events.get_mut(at) else { break };
        bytes += add_payload(tx, event)? + HEAD_BYTES;
        if bytes > PAGE_BYTES_MAX {
            events.truncate(at.max(1));
            break;
        }
    }
    Ok(events)
}

/// About what an event takes besides its payload.
const HEAD_BYTES: usize = 512;

/// An event as it was told, before or after it got its place in the record.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its place, once it is sealed.
    pub seq: Option<u64>,
    /// What it says.
    pub body: Body,
}

/// The statements that find what was told of a subject, and how the kinds begin that they look for.
struct Telling {
    staged: &'static str,
    sealed: &'static str,
    kinds: &'static str,
}

const ANYTHING: Telling = Telling {
    staged: "select body from event_staged where subject = $1 order by position desc limit $2",
    sealed: "select seq, body from event where subject = $1 order by seq desc limit $2",
    kinds: "",
};
/// Only the events that repeat a request's row, whatever else is told of it.
const OF_REQUEST: Telling = Telling {
    staged: "select body from event_staged where subject = $1 and substr(kind, 1, 8) = 'request.' order by position desc limit $2",
    sealed: SEALED_OF_REQUEST,
    kinds: "request.",
};
/// Goes through the index `event_of_request`.
pub const SEALED_OF_REQUEST: &str = "select seq, body from event where (subject || '') = $1 and substr(kind, 1, 8) = 'request.' order by seq desc limit $2";

/// What was told of a subject, the newest first, also what waits to be sealed: of this transaction, of those that are
/// committed with it, and on PostgreSQL of the sealer's queue.
pub fn told_of(tx: &mut Tx<'_>, subject: &str, limit: u32) -> Result<Vec<Told>> {
    telling(tx, &ANYTHING, subject, limit)
}

/// The other events of the same subject that still have a payload: what was written may stand in each.
pub(crate) fn repeating(tx: &mut Tx<'_>, event: &EventRow, limit: u32) -> Result<Vec<u64>> {
    let mut repeating = Vec::new();
    for told in told_of(tx, &event.subject, limit)? {
        let Some(seq) = told.seq.filter(|seq| *seq != event.seq) else { continue };
        if find_event(tx, seq)?.is_some_and(|event| event.payload.is_some()) {
            repeating.push(seq);
        }
    }
    Ok(repeating)
}

/// Like [`told_of`], only the events that repeat a request's row. What others tell of the request costs nothing here.
pub fn told_of_request(tx: &mut Tx<'_>, subject: &str, limit: u32) -> Result<Vec<Told>> {
    telling(tx, &OF_REQUEST, subject, limit)
}

/// The sealed events that repeat a request's row, newest first, without payloads.
pub fn heads_of_request(tx: &mut Tx<'_>, subject: &str, limit: u32) -> Result<Vec<EventRow>> {
    tx.query(SEALED_OF_REQUEST, args![subject, limit])?.iter().map(EventRow::read_head).collect()
}

fn telling(tx: &mut Tx<'_>, telling: &Telling, subject: &str, limit: u32) -> Result<Vec<Told>> {
    let unreadable = |error: serde_json::Error| Error::new(Code::Internal, format!("an event is unreadable: {error}"));
    let meant = |entry: &&Entry| entry.subject == subject && entry.kind.starts_with(telling.kinds);
    let waiting = tx.waiting().filter_map(|item| item.downcast_ref::<Entry>()).filter(meant);
    let mut bodies: Vec<String> = waiting.take(limit as usize).map(|entry| entry.body.clone()).collect();
    if tx.engine() == Engine::Postgres && bodies.len() < limit as usize {
        for row in tx.query(telling.staged, args![subject, limit])? {
            bodies.push(row.get(0)?);
        }
    }
    let mut told = Vec::with_capacity(bodies.len());
    for body in &bodies {
        told.push(Told { seq: None, body: serde_json::from_str(body).map_err(unreadable)? });
    }
    if told.len() < limit as usize {
        for row in tx.query(telling.sealed, args![subject, limit])? {
            let body: String = row.get(1)?;
            told.push(Told { seq: u64::try_from(row.get::<i64>(0)?).ok(), body: serde_json::from_str(&body).map_err(unreadable)? });
        }
    }
    told.truncate(limit as usize);
    Ok(told)
}
