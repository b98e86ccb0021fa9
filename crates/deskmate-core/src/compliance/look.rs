//! Finding events for checks: through the indexes of the record, a bounded number of them, each walk once for a report.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::framework::Whose;
use crate::Result;
use crate::call::Cx;
use crate::limits::{COMPLIANCE_LOOK_MAX, COMPLIANCE_WALK_MAX, PAGE_MAX};
use crate::record::{self, EventRow, Search};

/// Events of one walk, newest first.
#[derive(Default)]
struct Walk {
    events: Vec<EventRow>,
    looked: usize,
    cut: bool,
}

/// Events that fit, newest first.
pub(super) struct Events {
    pub(super) events: Vec<EventRow>,
    pub(super) looked: usize,
    /// Whether there were more than were looked at.
    pub(super) cut: bool,
}

/// The looks of one report.
pub(super) struct Looker {
    agent: String,
    /// The place from which on events count.
    first: u64,
    since: i64,
    /// How many events were looked at so far.
    pub(super) looked: usize,
    walks: BTreeMap<String, Rc<Walk>>,
}

impl Looker {
    pub(super) fn new(cx: &mut Cx<'_, '_>, agent: &str, since: i64) -> Result<Self> {
        // Clocks of the servers of one desk may be apart, so the look begins earlier and times are compared.
        let first = record::place_at(cx.tx, since.saturating_sub(3_600_000_000))?;
        Ok(Self { agent: agent.to_owned(), first, since, looked: 0, walks: BTreeMap::new() })
    }

    /// Events of some kinds with some facts.
    pub(super) fn find(&mut self, cx: &mut Cx<'_, '_>, kinds: &[String], of: Whose, facts: &BTreeMap<String, Vec<Value>>) -> Result<Events> {
        let (mut found, mut looked, mut cut): (BTreeMap<u64, EventRow>, usize, bool) = (BTreeMap::new(), 0, false);
        let own = |event: &EventRow| of == Whose::Desk || concerns(event, &self.agent);
        let fits = |event: &EventRow| facts.iter().all(|(name, values)| event.facts.get(name).is_some_and(|value| values.contains(value)));
        let mut walks = Vec::new();
        for kind in kinds {
            let search = Search { kinds: vec![kind.clone()], ..Search::default() };
            walks.push((format!("kind {kind}"), search));
        }
        let mut at = 0;
        while let Some((name, search)) = walks.get(at).cloned() {
            let walk = if let Some(walk) = self.walks.get(&name) {
                Rc::clone(walk)
            } else {
                let walk = Rc::new(walk(cx, search, self.first, COMPLIANCE_LOOK_MAX.saturating_sub(self.looked))?);
                self.looked += walk.looked;
                self.walks.insert(name, Rc::clone(&walk));
                walk
            };
            looked += walk.looked;
            if walk.cut {
                cut = true;
                // What others do fills the kind: the agent's own are found by what it did, and what was done to it.
                if of == Whose::Agent && walks.len() == kinds.len() {
                    walks.push(("actor".to_owned(), Search { actor: Some(self.agent.clone()), ..Search::default() }));
                    walks.push(("subject".to_owned(), Search { subject: Some(format!("agent:{}", self.agent)), ..Search::default() }));
                }
            }
            let good = |event: &&EventRow| kinds.contains(&event.kind) && own(event) && fits(event) && self.is_in_time(event);
            found.extend(walk.events.iter().filter(good).map(|event| (event.seq, event.clone())));
            at += 1;
        }
        Ok(Events { events: found.into_values().rev().collect(), looked, cut })
    }

    fn is_in_time(&self, event: &EventRow) -> bool {
        crate::parse_time("at", &event.at).is_ok_and(|at| at >= self.since)
    }
}

/// Whether an event is of an agent: it did it, it is what it happened to, or the event names it.
fn concerns(event: &EventRow, agent: &str) -> bool {
    let names = |fact: &str| event.facts.get(fact).and_then(Value::as_str) == Some(agent);
    (event.actor == agent && event.actor_kind == "agent")
        || event.subject.strip_prefix("agent:") == Some(agent)
        || names("requester")
        || names("agent")
        || event.audience.iter().any(|reader| reader == agent)
}

fn walk(cx: &mut Cx<'_, '_>, mut search: Search, first: u64, most: usize) -> Result<Walk> {
    let mut walk = Walk::default();
    let most = most.min(COMPLIANCE_WALK_MAX);
    search.limit = PAGE_MAX;
    loop {
        if walk.looked >= most {
            // One more shows whether there is one more.
            search.limit = 1;
            walk.cut = record::search_heads(cx.tx, &search)?.last().is_some_and(|event| event.seq >= first);
            return Ok(walk);
        }
        let page = record::search_heads(cx.tx, &search)?;
        let is_last = page.len() < PAGE_MAX as usize || page.last().is_some_and(|event| event.seq < first);
        search.before = page.last().map(|event| event.seq);
        let page = page.into_iter().filter(|event| event.seq >= first);
        let before = walk.events.len();
        walk.events.extend(page);
        walk.looked += walk.events.len() - before;
        if is_last {
            return Ok(walk);
        }
    }
}
