//! What an agent used up, and whether there is room for one act more.

use std::collections::VecDeque;
use std::sync::LazyLock;

use deskmate_db::{Row, ToParam, args};

use super::window::{CALLS, Meter, RUN, Time, until_tomorrow};
use crate::call::Cx;
use crate::policy::settings::AuthoritySettings;
use crate::policy::{self, Counters, StillIn};
use crate::{Error, Result};

/// Every so many uses of an agent, uses that count no longer are deleted ...
const PRUNE_EVERY: i64 = 32;
/// ... at most so many at once, so that deleting catches up and is never long.
const PRUNE_MAX: i64 = 64;
/// A minute in microseconds.
const MINUTE: i64 = 60_000_000;

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
    /// How many further acts fit, in this domain: into its window, the agent's for all domains, and the day, whichever is nearest.
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
    /// The limit: a number of acts or attempts, or millionths of a cost unit.
    pub cap: i64,
    /// What is used up of it.
    pub used: i64,
    /// When asking again makes sense.
    pub retry_after_ms: u64,
}

impl Full {
    /// In words, for the agent.
    pub fn message(&self) -> String {
        let Self { cap, used, .. } = self;
        match self.why {
            Why::Domain => format!("{used} of {cap} acts in this domain are used up within the last hour"),
            Why::Agent => format!("{used} of {cap} acts in all domains are used up within the last hour"),
            Why::Calls => format!("{used} of {cap} acts of this day are used up"),
            Why::Cost => format!("this would exceed the cost that is allowed on one day: {} of {} are used up", units(*used), units(*cap)),
            Why::Probing => format!("{used} attempts were denied within ten minutes, so further ones are put off"),
        }
    }

    /// As a refusal. It may be returned as an error: nothing was written.
    pub fn error(&self) -> Error {
        Error::limited(self.message(), self.retry_after_ms).hint("wait, or ask a person to raise the limit")
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
    /// What it used up before this act. `calls_minute` is filled in by [`Gauge::count_minute`], `pending` by requests.
    pub counters: Counters,
    /// Whether what would be taken is a call of a tool.
    call: bool,
    meters: Meters,
    time: Time,
}

impl Gauge {
    /// Fills in how often it acted in the last minute. It takes a few more reads, so it is done only where a rule asks.
    pub fn count_minute(&mut self, cx: &mut Cx<'_, '_>) -> Result<()> {
        let cut = self.time.at.saturating_sub(MINUTE);
        self.counters.calls_minute = self.meters.one.used_after(cx, &self.agent, cut)? + self.meters.calls_one.used_after(cx, &self.agent, cut)?;
        Ok(())
    }

    /// Which counters the use that was taken at a moment of the clock is still in. Where no use has exactly that time, as
    /// when the clock was set back since, nothing is let off that may be another act's.
    pub fn still_in(&self, cx: &mut Cx<'_, '_>, taken_at: i64) -> Result<StillIn> {
        let at = taken_at.saturating_add(self.time.ahead);
        let one = self.meters.of(self.call).1;
        let hour = one.has_use_at(cx, &self.agent, at)?;
        Ok(StillIn { minute: hour && at > self.time.at.saturating_sub(MINUTE), hour, day: one.is_day_of(taken_at) })
    }
}

/// The settings that hold in a domain.
pub(super) fn authority(cx: &mut Cx<'_, '_>, domain: &str) -> Result<AuthoritySettings> {
    Ok(policy::current(cx)?.settings(domain).authority.clone())
}

/// Whether an agent, or everybody, is paused.
pub fn paused(cx: &mut Cx<'_, '_>, agent: &str) -> Result<bool> {
    Ok(cx.tx.optional("select agent from pause where agent = $1 union all select agent from pause where agent = '*' limit 1", args![agent])?.is_some())
}

/// Where an agent stands in a domain, for an act that is no call of a tool. It only looks.
pub fn gauge(cx: &mut Cx<'_, '_>, agent: &str, domain: &str) -> Result<Gauge> {
    gauge_of(cx, agent, domain, false)
}

/// The same for an act that may be a call of a tool: calls use up nothing of what proposals may, and have caps of their own.
pub fn gauge_of(cx: &mut Cx<'_, '_>, agent: &str, domain: &str, call: bool) -> Result<Gauge> {
    let paused = paused(cx, agent)?;
    let mut meters = meters(cx, agent, domain)?;
    let (now, time) = (cx.now(), meters.time(cx.now()));
    for meter in [&mut meters.all, &mut meters.one, &mut meters.calls, &mut meters.calls_one] {
        meter.turn(now);
        meter.slide(cx, agent, time.at)?;
    }
    let Meters { all, one, calls, calls_one } = &meters;
    let counters = Counters {
        calls_minute: 0,
        calls_hour: one.used() + calls_one.used(),
        calls_day: one.calls + calls_one.calls,
        calls_hour_all: all.used() + calls.used(),
        calls_day_all: meters.calls_day(),
        called_hour: calls_one.used(),
        called_hour_all: calls.used(),
        cost_day: meters.cost_day(),
        denied_day: all.denied,
        pending: 0,
    };
    let held = if all.held_until > time.at {
        let cap = i64::from(authority(cx, domain)?.probe_limit);
        Some(Full { why: Why::Probing, cap, used: all.denied, retry_after_ms: milliseconds(all.held_until - time.at) })
    } else {
        None
    };
    Ok(Gauge { agent: agent.to_owned(), domain: domain.to_owned(), paused, held, counters, call, meters, time })
}

/// What an agent used up. It only looks.
pub fn counters(cx: &mut Cx<'_, '_>, agent: &str, domain: &str) -> Result<Counters> {
    let mut gauge = gauge(cx, agent, domain)?;
    gauge.count_minute(cx)?;
    Ok(gauge.counters)
}

/// Uses up room for one act, if there is any. `cost` is in millionths of a unit.
pub fn take(cx: &mut Cx<'_, '_>, agent: &str, domain: &str, cost: i64) -> Result<Taken> {
    let gauge = gauge(cx, agent, domain)?;
    let authority = authority(cx, domain)?;
    take_from(cx, gauge, &authority, cost)
}

/// Uses up room for one act, with a gauge that was read in the same transaction and the settings of its domain.
pub fn take_from(cx: &mut Cx<'_, '_>, gauge: Gauge, authority: &AuthoritySettings, cost: i64) -> Result<Taken> {
    let cost = cost.max(0);
    if let Some(full) = full(cx, &gauge, authority, cost)? {
        return Ok(Taken::Full(full));
    }
    let calls_day = gauge.meters.calls_day() + 1;
    let (used_all, used) = add(cx, gauge, cost)?;
    let cap = i64::from(authority.volume_cap);
    let of_all = authority.volume_cap_per_agent.map(|cap| i64::from(cap) - used_all);
    let of_day = authority.calls_per_day.map(|cap| i64::from(cap) - calls_day);
    let remaining = [of_all, of_day].into_iter().flatten().fold(cap - used, i64::min);
    Ok(Taken::Room(Room { remaining, cap }))
}

/// Counts one act more, whatever the limits: for acts that no cap bounds, where a rule looks at how many there were. It is counted
/// with calls, so that it uses up nothing of what proposals may.
pub fn count(cx: &mut Cx<'_, '_>, gauge: Gauge, cost: i64) -> Result<()> {
    add(cx, Gauge { call: true, ..gauge }, cost.max(0)).map(drop)
}

/// Writes one act more down. Answers how many are in the windows now: of all domains, and of its own.
fn add(cx: &mut Cx<'_, '_>, gauge: Gauge, cost: i64) -> Result<(i64, i64)> {
    let Gauge { agent, call, meters, time, .. } = gauge;
    let Meters { all, one, calls, calls_one } = meters;
    let (mut all, mut one) = if call { (calls, calls_one) } else { (all, one) };
    for meter in [&mut all, &mut one] {
        if meter.add(time, cost) % PRUNE_EVERY == 0 {
            prune(cx, &agent, meter, PRUNE_MAX)?;
        }
        let run = meter.take_run(&agent);
        // The meter first: where two calls meet, it is here, and one of them is done again.
        write(cx, &agent, meter)?;
        if let Some((first, times)) = run {
            let mut values = args![agent, meter.scope, first].to_vec();
            values.extend(times.iter().map(ToParam::to_param));
            cx.tx.execute(KEEP_RUN.as_str(), &values)?;
        }
    }
    Ok((all.used(), one.used()))
}

/// Adds to what an agent spent on this day, beyond what it took room for. What is spent is spent: no limit holds it up.
pub fn charge(cx: &mut Cx<'_, '_>, agent: &str, domain: &str, cost: i64) -> Result<()> {
    if cost <= 0 {
        return Ok(());
    }
    let Meters { mut all, mut one, .. } = meters(cx, agent, domain)?;
    let now = cx.now();
    for meter in [&mut all, &mut one] {
        meter.turn(now);
        meter.cost = meter.cost.saturating_add(cost);
        write(cx, agent, meter)?;
    }
    Ok(())
}

/// The limit that one act more would exceed, if there is one.
fn full(cx: &mut Cx<'_, '_>, gauge: &Gauge, authority: &AuthoritySettings, cost: i64) -> Result<Option<Full>> {
    if let Some(held) = &gauge.held {
        return Ok(Some(held.clone()));
    }
    let (calls_day, cost_day) = (gauge.meters.calls_day(), gauge.meters.cost_day());
    let tomorrow = milliseconds(until_tomorrow(cx.now()));
    if let Some(cap) = authority.calls_per_day.map(i64::from).filter(|cap| calls_day >= *cap) {
        return Ok(Some(Full { why: Why::Calls, cap, used: calls_day, retry_after_ms: tomorrow }));
    }
    if let Some(cap) = authority.cost_per_day.map(millionths).filter(|cap| cost_day.saturating_add(cost) > *cap) {
        return Ok(Some(Full { why: Why::Cost, cap, used: cost_day, retry_after_ms: tomorrow }));
    }
    let (all, one) = gauge.meters.of(gauge.call);
    let windows = [(Why::Domain, one, Some(authority.volume_cap)), (Why::Agent, all, authority.volume_cap_per_agent)];
    for (why, meter, cap) in windows {
        if let Some(cap) = cap.map(i64::from).filter(|cap| meter.used() >= *cap) {
            let room_at = meter.room_at(cx, &gauge.agent, gauge.time.at, cap)?;
            return Ok(Some(Full { why, cap, used: meter.used(), retry_after_ms: milliseconds(room_at - gauge.time.at) }));
        }
    }
    Ok(None)
}

/// Deletes some uses that have left a meter's window.
fn prune(cx: &mut Cx<'_, '_>, agent: &str, meter: &mut Meter, most: i64) -> Result<()> {
    let until = meter.first.min(meter.pruned + most);
    if until > meter.pruned {
        let sql = "delete from meter_use where agent = $1 and scope = $2 and number >= $3 and number < $4";
        cx.tx.execute(sql, args![agent, meter.scope, meter.pruned, until])?;
        meter.pruned = until;
    }
    Ok(())
}

/// Deletes uses of agents that have long been idle, in slices: at most `limit` meters behind one, an agent's and its
/// scope's name, and of each at most as many uses. Where the clock was set back, the window's own time goes on from
/// here. Answers where to go on.
pub fn prune_idle(cx: &mut Cx<'_, '_>, (agent, scope): (&str, &str), limit: u32) -> Result<Option<(String, String)>> {
    let sql = "select agent, scope from meter where (agent, scope) > ($1, $2) order by agent, scope limit $3";
    let rows = cx.tx.query(sql, args![agent, scope, limit])?;
    let mut last = None;
    for row in &rows {
        let (agent, scope): (String, String) = (row.get(0)?, row.get(1)?);
        let time = meters(cx, &agent, "")?.time(cx.now());
        let mut meter = read(&cx.tx.one(METER, args![agent, scope])?)?;
        let before = (meter.first, meter.pruned, meter.ahead);
        if scope.is_empty() || scope == CALLS {
            meter.ahead = time.ahead;
        }
        meter.slide(cx, &agent, time.at)?;
        prune(cx, &agent, &mut meter, i64::from(limit))?;
        if before != (meter.first, meter.pruned, meter.ahead) {
            write(cx, &agent, &meter)?;
        }
        last = Some((agent, scope));
    }
    Ok(last.filter(|_| rows.len() >= limit as usize))
}

/// Writes as many uses as go to their table at once.
static KEEP_RUN: LazyLock<String> = LazyLock::new(|| {
    let rows: Vec<String> = (0..RUN).map(|place| format!("($1, $2, cast($3 as bigint) + {place}, ${})", place + 4)).collect();
    format!("insert into meter_use (agent, scope, number, at) values {}", rows.join(", "))
});

macro_rules! select_meter {
    ($rest:literal) => {
        concat!(
            "select scope, next, first, first_at, last_at, ahead, pruned, day, calls, cost, denied, held_until, recent from meter where agent = $1 and ",
            $rest
        )
    };
}

const METER: &str = select_meter!("scope = $2");
/// Looks at the index: a list of scopes would be made a table of its own at every call.
const METERS: &str = concat!(
    select_meter!("scope = ''"),
    " union all ",
    select_meter!("scope = $2 and scope <> ''"),
    " union all ",
    select_meter!("scope = 'call '"),
    " union all ",
    select_meter!("scope = $3 and scope <> 'call '"),
);

/// An agent's meters: of everything but calls of tools, and of these, each for all domains together and for one domain. What was
/// counted before calls had meters of their own is with the first, until it leaves the window.
#[derive(Clone, Debug)]
pub(super) struct Meters {
    pub(super) all: Meter,
    pub(super) one: Meter,
    pub(super) calls: Meter,
    pub(super) calls_one: Meter,
}

impl Meters {
    /// Those that an act is taken from: for all domains together, and for its own.
    fn of(&self, call: bool) -> (&Meter, &Meter) {
        if call { (&self.calls, &self.calls_one) } else { (&self.all, &self.one) }
    }

    /// The windows' own time at a moment of the clock: it is one for all of an agent's windows, and never goes back.
    pub(super) fn time(&self, now: i64) -> Time {
        let (all, calls) = (self.all.time(now), self.calls.time(now));
        if calls.at > all.at { calls } else { all }
    }

    fn calls_day(&self) -> i64 {
        self.all.calls + self.calls.calls
    }

    fn cost_day(&self) -> i64 {
        self.all.cost.saturating_add(self.calls.cost)
    }
}

/// The meters of an agent that concern a domain.
pub(super) fn meters(cx: &mut Cx<'_, '_>, agent: &str, domain: &str) -> Result<Meters> {
    let of_calls = format!("{CALLS}{domain}");
    let rows = cx.tx.query(METERS, args![agent, domain, of_calls])?;
    let mut meters = Meters { all: Meter::new(""), one: Meter::new(domain), calls: Meter::new(CALLS), calls_one: Meter::new(&of_calls) };
    for row in &rows {
        let meter = read(row)?;
        let place = match meter.scope.strip_prefix(CALLS) {
            None if meter.scope.is_empty() => &mut meters.all,
            None => &mut meters.one,
            Some("") => &mut meters.calls,
            Some(_) => &mut meters.calls_one,
        };
        *place = meter;
    }
    Ok(meters)
}

fn read(row: &Row) -> Result<Meter> {
    Ok(Meter {
        scope: row.get(0)?,
        next: row.get(1)?,
        first: row.get(2)?,
        first_at: row.get(3)?,
        last_at: row.get(4)?,
        ahead: row.get(5)?,
        pruned: row.get(6)?,
        day: row.get(7)?,
        calls: row.get(8)?,
        cost: row.get(9)?,
        denied: row.get(10)?,
        held_until: row.get(11)?,
        recent: times(&row.get::<Option<Vec<u8>>>(12)?.unwrap_or_default()),
    })
}

/// Times as they lie in a meter: eight bytes each.
fn times(bytes: &[u8]) -> VecDeque<i64> {
    bytes.as_chunks().0.iter().map(|time| i64::from_le_bytes(*time)).collect()
}

pub(super) fn write(cx: &mut Cx<'_, '_>, agent: &str, meter: &Meter) -> Result<()> {
    let recent: Vec<u8> = meter.recent.iter().flat_map(|time| time.to_le_bytes()).collect();
    cx.tx.execute(
        "insert into meter (agent, scope, next, first, first_at, last_at, ahead, pruned, day, calls, cost, denied, held_until, recent) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) on conflict (agent, scope) do update set next = excluded.next, \
         first = excluded.first, first_at = excluded.first_at, last_at = excluded.last_at, ahead = excluded.ahead, pruned = excluded.pruned, \
         day = excluded.day, calls = excluded.calls, cost = excluded.cost, denied = excluded.denied, held_until = excluded.held_until, \
         recent = excluded.recent",
        args![
            agent,
            meter.scope,
            meter.next,
            meter.first,
            meter.first_at,
            meter.last_at,
            meter.ahead,
            meter.pruned,
            meter.day,
            meter.calls,
            meter.cost,
            meter.denied,
            meter.held_until,
            recent
        ],
    )?;
    Ok(())
}

/// Microseconds as milliseconds, never less.
pub(super) fn milliseconds(microseconds: i64) -> u64 {
    u64::try_from(microseconds.max(0)).unwrap_or(0).div_ceil(1_000)
}

/// A cost in millionths of a unit.
#[expect(clippy::cast_possible_truncation, reason = "settings are far below 2^52 units, and a larger one saturates")]
#[must_use]
pub fn millionths(units: f64) -> i64 {
    (units * 1e6).round() as i64
}

/// A cost in units, of its millionths.
#[expect(clippy::cast_precision_loss, reason = "only for reading")]
#[must_use]
pub fn units(millionths: i64) -> f64 {
    millionths as f64 / 1e6
}
