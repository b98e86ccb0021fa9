//! Attempts that were denied: counted, and slowed down when there are many.

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

/// Counts an attempt that was denied. Many in a short time put the agent's further attempts off, each time for longer;
/// the answer says so. It uses up nothing else.
pub fn denied(cx: &mut Cx<'_, '_>, agent: &str, domain: &str) -> Result<Option<Full>> {
    let limit = i64::from(authority(cx, domain)?.probe_limit).clamp(1, TIMES_MAX);
    let mut all = meters(cx, agent, domain)?.0;
    let now = cx.now();
    let time = all.time(now);
    all.turn(now);
    all.denied += 1;
    (all.last_at, all.ahead) = (time.at, time.ahead);
    if super::paused(cx, agent)? {
        // Everything is denied to who is paused, so it says nothing about probing.
        write(cx, agent, &all)?;
        return Ok(None);
    }
    let (mut times, mut level) = seen(cx, agent, time.at)?;
    times.push(time.at);
    let extra = times.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    times.drain(..extra);
    let count = i64::try_from(times.len()).unwrap_or(i64::MAX);
    let held = if count >= limit {
        let hold = HOLD_MIN.saturating_mul(1 << level.clamp(0, 20)).min(HOLD_MAX);
        all.held_until = all.held_until.max(time.at + hold);
        level += 1;
        Some(Full { why: Why::Probing, cap: limit, used: count, retry_after_ms: milliseconds(all.held_until - time.at) })
    } else {
        None
    };
    let text = times.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    cx.tx.execute(
        "insert into probe (agent, times, level, last_at) values ($1, $2, $3, $4) \
         on conflict (agent) do update set times = excluded.times, level = excluded.level, last_at = excluded.last_at",
        args![agent, text, level, time.at],
    )?;
    write(cx, agent, &all)?;
    Ok(held)
}

/// The times of denied attempts that still count, and how often attempts were put off.
fn seen(cx: &mut Cx<'_, '_>, agent: &str, at: i64) -> Result<(Vec<i64>, i64)> {
    let Some(row) = cx.tx.optional("select times, level, last_at from probe where agent = $1", args![agent])? else { return Ok((Vec::new(), 0)) };
    let times: String = row.get(0)?;
    let times = times.split(',').filter_map(|time| time.parse().ok()).filter(|time| *time > at - PROBE_WINDOW).collect();
    let level = if row.get::<i64>(2)? <= at - FORGIVEN { 0 } else { row.get(1)? };
    Ok((times, level))
}
