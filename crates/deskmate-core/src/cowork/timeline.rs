//! What happened lately, read from the record: the newest first, each once, in the order of the record.

use deskmate_db::{Tx, args};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::call::{Actor, Cx};
use crate::record::{self, EventRow, Search};
use crate::{Result, parse_time};

/// How many events one call looks at while it seeks those that fit.
const SCAN_MAX: u32 = 5_000;
const SLICE: u32 = 200;

/// Something that happened.
#[derive(Serialize, JsonSchema)]
pub(super) struct Moment {
    /// The event's id.
    id: String,
    /// Its place in the record.
    seq: u64,
    /// The run of the server in which it happened.
    session_id: String,
    /// `agent`, `human`, `collaborative` or `system`.
    actor: String,
    /// Who acted.
    actor_id: String,
    /// `proposal`, `override`, `handoff`, `action` or `bulk`.
    event_type: &'static str,
    /// What it is about: a proposal, a handoff, a report, a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference_id: Option<String>,
    /// What happened, in words.
    pub(super) summary: String,
    /// When.
    pub(super) created_at: String,
}

/// A page of what happened.
pub(super) struct Page {
    pub(super) moments: Vec<Moment>,
    pub(super) next: Option<String>,
}

/// Moments before a place, the newest first. `agent` narrows to what concerns one agent.
pub(super) fn page(cx: &mut Cx<'_, '_>, before: Option<u64>, limit: usize, agent: Option<&str>) -> Result<Page> {
    let mut search = Search { before, limit: SLICE, ..Search::default() };
    let (mut moments, mut looked, mut sessions) = (Vec::new(), 0, Sessions::default());
    loop {
        let events = record::search(cx.tx, &search)?;
        let read = u32::try_from(events.len()).unwrap_or(u32::MAX);
        looked += read;
        for event in events {
            if moments.len() == limit {
                return Ok(Page { moments, next: search.before.map(|seq| seq.to_string()) });
            }
            search.before = Some(event.seq);
            if !concerns(&event, &cx.actor, agent) {
                continue;
            }
            if let Some(event_type) = type_of(&event) {
                let session_id = sessions.of(cx.tx, event.seq)?;
                moments.push(moment(event, event_type, session_id));
            }
        }
        if read < SLICE {
            return Ok(Page { moments, next: None });
        }
        if looked >= SCAN_MAX {
            return Ok(Page { moments, next: search.before.map(|seq| seq.to_string()) });
        }
    }
}

fn text<'e>(event: &'e EventRow, fact: &str) -> Option<&'e str> {
    event.facts.get(fact).and_then(Value::as_str)
}

/// Whether an event may be shown to the caller, and is about the agent that is asked for.
fn concerns(event: &EventRow, caller: &Actor, agent: Option<&str>) -> bool {
    let about = |agent: &str| event.actor == agent || text(event, "requester") == Some(agent) || text(event, "agent") == Some(agent);
    event.visible_to(caller) && agent.is_none_or(about)
}

fn type_of(event: &EventRow) -> Option<&'static str> {
    match event.kind.as_str() {
        kind if kind.starts_with("request.") => Some(if text(event, "request_kind") == Some("handoff") { "handoff" } else { "proposal" }),
        "act.denied" => Some("proposal"),
        "action.logged" => Some("action"),
        "agent.overridden" => Some("override"),
        "handoff.resolved" | "instructions.acknowledged" => Some("handoff"),
        "batch.decided" => Some("bulk"),
        _ => None,
    }
}

fn moment(event: EventRow, event_type: &'static str, session_id: String) -> Moment {
    let actor = match event.actor_kind.as_str() {
        "person" => "human",
        "agent" => text(&event, "derived_actor").unwrap_or("agent"),
        other => other,
    };
    let reference = ["request", "execution", "override", "batch"].iter().find_map(|fact| text(&event, fact));
    Moment {
        actor: actor.to_owned(),
        reference_id: reference.map(str::to_owned),
        summary: summary(&event),
        id: event.id,
        seq: event.seq,
        session_id,
        actor_id: event.actor,
        event_type,
        created_at: event.at,
    }
}

/// What happened, from the facts alone: nothing in it was written by an agent.
fn summary(event: &EventRow) -> String {
    let fact = |name: &str| text(event, name).unwrap_or("?");
    let (who, domain) = (event.actor.as_str(), fact("domain"));
    let what = fact("request_kind");
    match event.kind.as_str() {
        "request.created" => format!("{} made a {what} in {domain}: {}", fact("requester"), fact("mode")),
        "act.denied" => format!("{} was denied an act in {domain}", fact("requester")),
        "action.logged" => format!("{who} reported an act in {domain}: {}", fact("outcome")),
        "agent.overridden" => format!("{who} overrode {} in {domain}: {}, {}", fact("agent"), fact("type"), fact("severity")),
        "handoff.resolved" if event.actor_kind == "system" => format!("nobody answered what {} handed over in {domain}", fact("agent")),
        "handoff.resolved" => format!("{who} answered what {} handed over in {domain}", fact("agent")),
        "instructions.acknowledged" => format!("{} acknowledged its instructions", fact("agent")),
        "batch.decided" => format!("{who} decided many requests at once: {}", fact("verb")),
        kind => {
            let step = kind.strip_prefix("request.").unwrap_or(kind);
            format!("{what} of {} in {domain}: {step} by {who}", fact("requester"))
        }
    }
}

/// Which run of the server an event belongs to: the last start before it.
#[derive(Default)]
struct Sessions {
    known: Option<(u64, String)>,
}

impl Sessions {
    fn of(&mut self, tx: &mut Tx<'_>, seq: u64) -> Result<String> {
        if let Some((since, name)) = &self.known
            && seq >= *since
        {
            return Ok(name.clone());
        }
        let found = session_before(tx, Some(seq))?;
        self.known = Some(found.clone());
        Ok(found.1)
    }
}

/// The run of the server at a place of the record, or now: its first event and its name.
pub(super) fn session_before(tx: &mut Tx<'_>, seq: Option<u64>) -> Result<(u64, String)> {
    let search = Search { kinds: vec!["desk.started".to_owned()], before: seq.map(|seq| seq.saturating_add(1)), limit: 1, ..Search::default() };
    let started = match record::search(tx, &search)?.pop() {
        Some(event) => Some(event),
        // Before the first start there was one run too: since the record begins.
        None => record::find_event(tx, 0)?,
    };
    let Some(event) = started else { return Ok((0, "session_0".to_owned())) };
    let millis = parse_time("at", &event.at)? / 1_000;
    Ok((event.seq, format!("session_{millis}")))
}

/// How many overrides there are of each type.
pub(super) fn override_reasons(cx: &mut Cx<'_, '_>, agent: Option<&str>) -> Result<std::collections::BTreeMap<String, i64>> {
    let rows = match agent {
        None => cx.tx.query("select type, count(*) from override group by type order by type limit 100", &[])?,
        Some(agent) => cx.tx.query("select type, count(*) from override where agent = $1 group by type order by type limit 100", args![agent])?,
    };
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}
