//! Looking through the record: by who, what, to what, when, and by words.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::read::{EventRow, Search, fill, place_at, search, search_heads};
use crate::call::{Actor, Cx};
use crate::limits::{PAGE_DEFAULT, PAGE_MAX, TITLE_CHARS_MAX};
use crate::{Error, Result, check_text, parse_time};

/// List events of the record, newest first. An agent sees its own acts and what concerns it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Only what happened to this subject, for example `task:ID`.
    subject: Option<String>,
    /// Only what this actor did.
    actor: Option<String>,
    /// Only this kind, for example `message.sent`.
    kind: Option<String>,
    /// Only what happened at this moment or later, for example `2026-11-15T09:30:00Z`.
    since: Option<String>,
    /// Only what happened before this moment.
    until: Option<String>,
    /// Only events with this text in their kind, subject, facts or payload, in capitals or not.
    search: Option<String>,
    /// How many events; at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of events.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Events {
    /// The events, newest first.
    events: Vec<EventRow>,
    /// Give this as `cursor` for the next page. Absent at the end. A page may be short, even empty, before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// How many rows one call looks at while it seeks those that fit.
const SCAN_MAX: usize = 5_000;
/// The same of a search for words, which reads what was written.
const WORDS_SCAN_MAX: usize = 2_000;
/// How many rows of a search for words are in memory at once: each comes with what was written.
const WORDS_SLICE: u32 = 40;
/// How far the clocks of the servers of one desk may be apart, in microseconds.
const CLOCKS_APART: i64 = 3_600_000_000;

/// What is sought in the record.
#[derive(Default)]
pub(crate) struct Sought {
    /// Only what happened to this subject.
    pub(crate) subject: Option<String>,
    /// Only what this actor did.
    pub(crate) actor: Option<String>,
    /// Only these kinds; any if there are none.
    pub(crate) kinds: Vec<String>,
    /// Only events with this fact.
    pub(crate) fact: Option<(&'static str, String)>,
    /// Of those that have this fact, only events with one of these.
    pub(crate) among: Option<(&'static str, BTreeSet<String>)>,
    /// Only events with this text in them; the field that it was given in, and the text.
    pub(crate) words: Option<(&'static str, String)>,
    /// Only from this moment on, in microseconds.
    pub(crate) since: Option<i64>,
    /// Only before this moment.
    pub(crate) until: Option<i64>,
    /// How many.
    pub(crate) limit: Option<u32>,
    /// Where the previous page ended.
    pub(crate) cursor: Option<String>,
}

/// What an event has to be, beyond what the statement finds.
struct Wanted {
    actor: Option<String>,
    kinds: Vec<String>,
    fact: Option<(&'static str, String)>,
    among: Option<(&'static str, BTreeSet<String>)>,
    since: Option<i64>,
    until: Option<i64>,
    /// In small letters.
    words: Option<String>,
}

impl Wanted {
    fn fits(&self, event: &EventRow, caller: &Actor) -> bool {
        let fact = |name: &str| event.facts.get(name).and_then(Value::as_str);
        self.actor.as_ref().is_none_or(|actor| *actor == event.actor)
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.fact.as_ref().is_none_or(|(name, value)| fact(name) == Some(value))
            && self.among.as_ref().is_none_or(|(name, values)| fact(name).is_none_or(|value| values.contains(value)))
            && event.visible_to(caller)
            && self.is_in_time(event)
            && self.words.as_ref().is_none_or(|words| says(event, words))
    }

    fn is_in_time(&self, event: &EventRow) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        parse_time("at", &event.at).is_ok_and(|at| self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until))
    }
}

/// Whether an event has these words in it, given in small letters.
fn says(event: &EventRow, words: &str) -> bool {
    let in_fact = |(name, value): (&String, &Value)| contains(name, words) || value_says(value, words);
    contains(&event.kind, words)
        || contains(&event.subject, words)
        || event.facts.iter().any(in_fact)
        || event.payload.as_ref().is_some_and(|payload| value_says(payload, words))
}

fn value_says(value: &Value, words: &str) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => contains(&value.to_string(), words),
        Value::String(text) => contains(text, words),
        Value::Array(items) => items.iter().any(|item| value_says(item, words)),
        Value::Object(fields) => fields.iter().any(|(name, value)| contains(name, words) || value_says(value, words)),
    }
}

fn contains(text: &str, words: &str) -> bool {
    text.to_lowercase().contains(words)
}

pub(crate) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<Events> {
    let sought = Sought {
        subject: input.subject,
        actor: input.actor,
        kinds: input.kind.into_iter().collect(),
        words: input.search.map(|words| ("search", words)),
        since: input.since.as_deref().map(|since| parse_time("since", since)).transpose()?,
        until: input.until.as_deref().map(|until| parse_time("until", until)).transpose()?,
        limit: input.limit,
        cursor: input.cursor,
        ..Sought::default()
    };
    find(cx, sought)
}

/// Finds events, newest first, of those that the caller may see. Payloads are read only for what is shown, unless words are
/// sought in them. Whoever wants little of much looks through the rest; after so many events the page ends, short or empty,
/// with a cursor for going on.
pub(crate) fn find(cx: &mut Cx<'_, '_>, sought: Sought) -> Result<Events> {
    let Sought { subject, actor, kinds, fact, among, words, since, until, limit, cursor } = sought;
    let limit = limit.unwrap_or(PAGE_DEFAULT);
    if limit == 0 || limit > PAGE_MAX {
        return Err(Error::invalid("limit", format!("must be between 1 and {PAGE_MAX}")));
    }
    if let Some((field, words)) = &words {
        check_text(field, words, TITLE_CHARS_MAX)?;
    }
    let cursor = cursor.map(|cursor| cursor.parse::<u64>().map_err(|_| Error::invalid("cursor", "is not a cursor that this operation gave out")));
    let first = since.map(|since| place_at(cx.tx, since.saturating_sub(CLOCKS_APART))).transpose()?.unwrap_or(0);
    let end = until.map(|until| place_at(cx.tx, until.saturating_add(CLOCKS_APART))).transpose()?;
    let before = cursor.transpose()?.into_iter().chain(end).min();
    let words = words.map(|(_, words)| words.to_lowercase());
    let (slice, scan_max) = if words.is_some() { (WORDS_SLICE, WORDS_SCAN_MAX) } else { (PAGE_MAX, SCAN_MAX) };
    let mut walk = Search { subject, actor, kinds, before, limit: slice };
    let wanted = Wanted { actor: walk.actor.clone(), kinds: walk.kinds.clone(), fact, among, since, until, words };
    let (mut events, mut looked) = (Vec::new(), 0);
    loop {
        let page = if wanted.words.is_some() { search(cx.tx, &walk)? } else { search_heads(cx.tx, &walk)? };
        let is_last = page.len() < slice as usize || page.last().is_some_and(|event| event.seq <= first);
        looked += page.len();
        walk.before = page.last().map(|event| event.seq);
        for event in page.into_iter().filter(|event| event.seq >= first && wanted.fits(event, &cx.actor)) {
            if events.len() == limit as usize {
                let next = events.last().map(|event: &EventRow| event.seq);
                return shown(cx, events, next);
            }
            events.push(EventRow { payload: None, ..event });
        }
        if is_last {
            return shown(cx, events, None);
        }
        if looked >= scan_max {
            return shown(cx, events, walk.before);
        }
    }
}

/// The events with what was written, as many as one answer holds.
fn shown(cx: &mut Cx<'_, '_>, events: Vec<EventRow>, next: Option<u64>) -> Result<Events> {
    let found = events.len();
    let events = fill(cx.tx, events)?;
    let next = if events.len() < found { events.last().map(|event| event.seq) } else { next };
    Ok(Events { events, next_cursor: next.map(|seq| seq.to_string()) })
}
