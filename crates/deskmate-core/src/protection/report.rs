//! How much was taken out, from the record: by day, by agent, by kind. What it was is nowhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::Cx;
use crate::limits::{NAME_CHARS_MAX, PAGE_MAX};
use crate::record::{self, EventRow, REDACTED};
use crate::redact::Found;
use crate::{Error, Result, check_text, parse_time};

/// How many events one call looks at.
const LOOKED_MAX: usize = 10_000;

/// Count what was taken out before it was kept: secrets and personal data by kind, for each day and agent, from the record. The
/// texts themselves are not in it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Report {
    /// Only what this agent did, or what was done for it.
    agent: Option<String>,
    /// From this moment on; from the beginning of the record if not given.
    since: Option<String>,
    /// Before this moment.
    until: Option<String>,
    /// Where the previous answer ended.
    cursor: Option<String>,
}

/// What was taken out.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reported {
    /// For each day in UTC and each agent, oldest day first.
    days: Vec<DayOut>,
    /// The same together.
    totals: BTreeMap<String, u64>,
    /// How many events were looked at.
    looked_at: usize,
    /// Give this as `cursor` to go on; the counts of both answers add up. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A day of an agent.
#[derive(Serialize, JsonSchema)]
struct DayOut {
    /// The day, such as `2026-11-17`.
    day: String,
    /// The agent, or whoever else acted.
    agent: String,
    /// How often each kind was taken out.
    counts: BTreeMap<String, u64>,
    /// Events that tell so.
    events: u64,
}

pub(super) fn report(cx: &mut Cx<'_, '_>, input: Report) -> Result<Reported> {
    if let Some(agent) = &input.agent {
        check_text("agent", agent, NAME_CHARS_MAX)?;
    }
    let since = input.since.as_deref().map(|since| parse_time("since", since)).transpose()?;
    let until = input.until.as_deref().map(|until| parse_time("until", until)).transpose()?;
    let cursor =
        input.cursor.as_deref().map(|cursor| cursor.parse::<u64>().map_err(|_| Error::invalid("cursor", "is not a cursor that this operation gave out")));
    let first = since.map(|since| record::place_at(cx.tx, since)).transpose()?.unwrap_or(0);
    let mut from = cursor.transpose()?.unwrap_or(0).max(first);
    let (mut days, mut totals, mut looked) = (BTreeMap::<(String, String), DayOut>::new(), BTreeMap::new(), 0);
    let next = loop {
        let events = record::heads_after(cx.tx, from, PAGE_MAX)?;
        looked += events.len();
        let is_last = events.len() < PAGE_MAX as usize;
        for event in &events {
            from = event.seq + 1;
            let at = parse_time("at", &event.at)?;
            let agent = agent_of(event);
            let is_wanted =
                since.is_none_or(|since| at >= since) && until.is_none_or(|until| at < until) && input.agent.as_ref().is_none_or(|wanted| *wanted == agent);
            let found = Found::of_fact(event.facts.get(REDACTED));
            if !is_wanted || found.is_empty() {
                continue;
            }
            let day = event.at.split('T').next().unwrap_or_default().to_owned();
            let out = days.entry((day.clone(), agent.clone())).or_insert_with(|| DayOut { day, agent, counts: BTreeMap::new(), events: 0 });
            out.events += 1;
            for (kind, count) in found.iter() {
                *out.counts.entry(kind.name().to_owned()).or_default() += count;
                *totals.entry(kind.name().to_owned()).or_default() += count;
            }
        }
        if is_last {
            break None;
        }
        if looked >= LOOKED_MAX {
            break Some(from.to_string());
        }
    };
    Ok(Reported { days: days.into_values().collect(), totals, looked_at: looked, next_cursor: next })
}

/// Whose data it was about to be: what the desk or a person does with an agent's request is counted to the agent.
fn agent_of(event: &EventRow) -> String {
    let fact = |name: &str| event.facts.get(name).and_then(Value::as_str).map(str::to_owned);
    fact("agent").or_else(|| fact("requester")).unwrap_or_else(|| event.actor.clone())
}
