//! Attempts that were denied: counted, and slowed down when there are many. Asking what would be denied is free up to the
//! same number; beyond it each question counts as an attempt, because it tells a prober as much.

use deskmate_db::args;

use super::limit::{Full, Why, authority, meters, milliseconds, write};
use crate::Result;
use crate::call::Cx;

/// Within this time denied attempts are counted.
const PROBE_WINDOW: i64 = 600_000_000;
/// The first time that attempts are put off for; each further time is twice as long ...
const HOLD_MIN: i64 = 60_000_000;
/// ... up to this.
const HOLD_MAX: i64 = 3_600_000_000;
/// Without a denied attempt for so long, an agent begins anew.
const FORGIVEN: i64 = 86_400_000_000;
/// How many times are kept, whatever the setting says.
const TIMES_MAX: i64 = 1_000;
/// Marks the time of a question among those of attempts.
const QUESTION: char = '?';

/// What came of counting an attempt that was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Whether the record is told of it: not where everything is denied to the agent, because it is paused or put off.
    pub is_news: bool,
    /// From this attempt on the agent is put off.
    pub hold: Option<Full>,
}

/// Counts an attempt that was denied. Many in a short time put the agent's further attempts off, each time for longer;
/// the answer says so. It uses up nothing else.
pub fn denied(cx: &mut Cx<'_, '_>, agent: &str, domain: &str) -> Result<Denial> {
    let limit = limit(cx, domain)?;
    let meters = meters(cx, agent, domain)?;
    let now = cx.now();
    let time = meters.time(now);
    let mut all = meters.all;
    all.turn(now);
    all.denied += 1;
    (all.last_at, all.ahead) = (time.at, time.ahead);
    if super::paused(cx, agent)? || all.held_until > time.at {
        // Everything is denied to who is paused or put off, so it says nothing about probing.
        write(cx, agent, &all)?;
        return Ok(Denial { is_news: false, hold: None });
    }
    let mut seen = seen(cx, agent, time.at)?;
    let count = add(&mut seen.times, time.at, limit);
    let hold = if count >= limit {
        let hold = HOLD_MIN.saturating_mul(1 << seen.level.clamp(0, 20)).min(HOLD_MAX);
        all.held_until = all.held_until.max(time.at + hold);
        seen.level += 1;
        Some(Full { why: Why::Probing, cap: limit, used: count, retry_after_ms: milliseconds(all.held_until - time.at) })
    } else {
        None
    };
    seen.last_at = time.at;
    keep(cx, agent, &seen)?;
    write(cx, agent, &all)?;
    Ok(Denial { is_news: true, hold })
}

/// Counts a question about an act that would be denied. Answers whether there were so many in a short time that it counts
/// as an attempt: then [`denied`] is called for it.
pub fn asked(cx: &mut Cx<'_, '_>, agent: &str, domain: &str) -> Result<bool> {
    let limit = limit(cx, domain)?;
    let at = meters(cx, agent, domain)?.time(cx.now()).at;
    let mut seen = seen(cx, agent, at)?;
    let often = i64::try_from(seen.questions.len()).unwrap_or(i64::MAX) >= limit;
    add(&mut seen.questions, at, limit);
    keep(cx, agent, &seen)?;
    Ok(often)
}

fn limit(cx: &mut Cx<'_, '_>, domain: &str) -> Result<i64> {
    Ok(i64::from(authority(cx, domain)?.probe_limit).clamp(1, TIMES_MAX))
}

/// What is kept of an agent that was denied something.
#[derive(Default)]
struct Seen {
    /// When it was denied something, as far as that still counts.
    times: Vec<i64>,
    /// When it asked what would be denied, likewise.
    questions: Vec<i64>,
    /// How often its attempts were put off.
    level: i64,
    /// When it was last denied something.
    last_at: i64,
}

/// Adds a time and answers how many there are, of the newest `most`.
fn add(times: &mut Vec<i64>, at: i64, most: i64) -> i64 {
    times.push(at);
    let extra = times.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
    times.drain(..extra);
    i64::try_from(times.len()).unwrap_or(i64::MAX)
}

fn keep(cx: &mut Cx<'_, '_>, agent: &str, seen: &Seen) -> Result<()> {
    let times = seen.times.iter().map(i64::to_string);
    let text = times.chain(seen.questions.iter().map(|at| format!("{QUESTION}{at}"))).collect::<Vec<_>>().join(",");
    cx.tx.execute(
        "insert into probe (agent, times, level, last_at) values ($1, $2, $3, $4) \
         on conflict (agent) do update set times = excluded.times, level = excluded.level, last_at = excluded.last_at",
        args![agent, text, seen.level, seen.last_at],
    )?;
    Ok(())
}

fn seen(cx: &mut Cx<'_, '_>, agent: &str, at: i64) -> Result<Seen> {
    let Some(row) = cx.tx.optional("select times, level, last_at from probe where agent = $1", args![agent])? else { return Ok(Seen::default()) };
    let (text, last_at): (String, i64) = (row.get(0)?, row.get(2)?);
    let mut seen = Seen { level: if last_at <= at - FORGIVEN { 0 } else { row.get(1)? }, last_at, ..Seen::default() };
    for entry in text.split(',') {
        let (times, time) = match entry.strip_prefix(QUESTION) {
            Some(time) => (&mut seen.questions, time),
            None => (&mut seen.times, entry),
        };
        times.extend(time.parse::<i64>().ok().filter(|time| *time > at - PROBE_WINDOW));
    }
    Ok(seen)
}
