//! What time does to requests: they expire, what waited too long goes to the owners, or to whom policy names, and what was put off
//! is taken up again.

use deskmate_db::args;

use super::events::{ESCALATED, EXPIRED, Known, SNOOZED};
use super::model::{OWNERS, Priority, RequestKind, State};
use super::outcome;
use super::stand_in::escalated_to;
use crate::call::Cx;
use crate::{Code, Result};

pub(super) const DUE: &str = "select id from request where state = 'pending' and expires_at <= $1 order by expires_at, id limit $2";
pub(super) const ESCALATES: &str =
    "select id from request where state = 'pending' and escalate_at is not null and escalate_at <= $1 order by escalate_at, id limit $2";
pub(super) const WAKES: &str =
    "select id from request where state = 'pending' and coalesce(snoozed_until, 0) > 0 and snoozed_until <= $1 order by snoozed_until, id limit $2";

fn due(cx: &mut Cx<'_, '_>, sql: &'static str, limit: u32) -> Result<Vec<String>> {
    let now = cx.now();
    let rows = cx.tx.query(sql, args![now, limit])?;
    Ok(rows.iter().map(|row| row.get(0)).collect::<deskmate_db::Result<_>>()?)
}

/// A request as the record tells it; `None` if somebody changed it behind the desk's back, for verification to name.
fn untouched(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Known>> {
    match Known::load(cx, id) {
        Err(error) if error.code == Code::Conflict => Ok(None),
        other => other,
    }
}

/// Expires what nobody decided in time, a slice at a time; answers how many.
pub fn expire_due(cx: &mut Cx<'_, '_>, limit: u32) -> Result<u32> {
    let mut count = 0;
    for id in due(cx, DUE, limit)? {
        let Some(mut known) = untouched(cx, &id)? else { continue };
        known.request.asked_at = None;
        known.request.snoozed_until = None;
        known.request.escalate_at = None;
        known.step(cx, EXPIRED, State::Expired, |event| event)?;
        outcome::ended(cx, &known.request)?;
        count += 1;
    }
    Ok(count)
}

/// Sends what waited too long on, a slice at a time; answers how many.
pub fn escalate_due(cx: &mut Cx<'_, '_>, limit: u32) -> Result<u32> {
    let mut count = 0;
    for id in due(cx, ESCALATES, limit)? {
        let Some(mut known) = untouched(cx, &id)? else { continue };
        known.request.priority = match known.request.priority {
            Priority::Low => Priority::Normal,
            Priority::Normal => Priority::High,
            Priority::High | Priority::Urgent => Priority::Urgent,
        };
        // Policy names to whom else it goes; a handoff goes to the owners, as does what policy names nobody for.
        let people = if known.request.kind == RequestKind::Handoff { Vec::new() } else { escalated_to(cx, &known.request)?.unwrap_or_default() };
        match people.as_slice() {
            [] => known.request.assignee = Some(OWNERS.to_owned()),
            [one] => known.request.assignee = Some(one.clone()),
            _ => {}
        }
        known.request.overdue_since = known.request.escalate_at.take();
        known.request.snoozed_until = None;
        known.step(cx, ESCALATED, State::Pending, |event| if people.is_empty() { event } else { event.fact("told", people.as_slice()) })?;
        count += 1;
    }
    Ok(count)
}

/// Takes up again what was put off until now, a slice at a time; answers how many. Lists show it by the time alone; this tells those
/// who have one open.
pub fn wake_due(cx: &mut Cx<'_, '_>, limit: u32) -> Result<u32> {
    let mut count = 0;
    for id in due(cx, WAKES, limit)? {
        let Some(mut known) = untouched(cx, &id)? else { continue };
        known.request.snoozed_until = None;
        known.step(cx, SNOOZED, State::Pending, |event| event)?;
        count += 1;
    }
    Ok(count)
}
