//! Telling again what nobody decided: after a while that goes by the risk, and before it expires.

use deskmate_db::args;

use super::topic::News;
use crate::call::Cx;
use crate::record::{Event, Kind};
use crate::request::{self, State, grade};
use crate::{Result, parse_time};

/// A request is told again.
pub(super) const REMINDED: Kind =
    Kind { name: "notification.reminded", says: "A request that nobody decided for a while, or that is about to expire, is told again." };

const WAITS: &str = "waits";
const EXPIRES: &str = "expires";
/// The order of `grade`.
const RISKS: usize = 4;

/// When requests are told again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reminders {
    /// How long after it was told, in microseconds, by risk: low, medium, high, critical. Never, if not given.
    pub after: [Option<i64>; RISKS],
    /// How long before it expires, in microseconds.
    pub before_expiry: Option<i64>,
}

impl Reminders {
    /// Whether there is anything to remind of.
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }

    fn after(&self, risk: &str) -> Option<i64> {
        let number = usize::try_from(grade(risk)).unwrap_or(RISKS - 1);
        self.after.get(number).copied().flatten()
    }
}

/// Notes when something that waits is to be told again. What is told once more, because somebody answered or took it up again,
/// waits anew.
pub(super) fn schedule(cx: &mut Cx<'_, '_>, reminders: &Reminders, news: &News) -> Result<()> {
    let (item, now) = (&news.item, cx.now());
    let Some(request) = item.request().filter(|_| item.waits() && item.event != REMINDED.name) else { return Ok(()) };
    let risk = item.risk.as_deref().unwrap_or_default();
    if let Some(after) = reminders.after(risk) {
        set(cx, request, WAITS, now.saturating_add(after))?;
    }
    let expires_at = item.expires_at.as_deref().map(|at| parse_time("expires_at", at)).transpose()?;
    if let (Some(before), Some(expires_at)) = (reminders.before_expiry, expires_at) {
        let due = expires_at.saturating_sub(before);
        // What is so short-lived that it was told only just now is not told again.
        if due >= now.saturating_add(before) {
            set(cx, request, EXPIRES, due)?;
        }
    }
    Ok(())
}

fn set(cx: &mut Cx<'_, '_>, request: &str, why: &str, due_at: i64) -> Result<()> {
    cx.tx.execute(
        "insert into reminder (request, why, due_at) values ($1, $2, $3) on conflict (request, why) do update set due_at = excluded.due_at",
        args![request, why, due_at],
    )?;
    Ok(())
}

pub(super) const DUE: &str = "select request, why from reminder where due_at <= $1 order by due_at, request, why limit $2";

/// Tells the record of requests that are due to be told again, a slice at a time; answers how many were looked at. The follower
/// makes messages of it like of everything else.
pub fn remind_due(cx: &mut Cx<'_, '_>, limit: u32) -> Result<u32> {
    let now = cx.now();
    let rows = cx.tx.query(DUE, args![now, limit])?;
    for row in &rows {
        let (id, why): (String, String) = (row.get(0)?, row.get(1)?);
        match request::find(cx, &id)?.filter(|request| request.state_at(now) == State::Pending) {
            // Who put it off is told when that time is over.
            Some(request) if why == WAITS && request.snoozed_until.is_some_and(|until| until > now) => {
                set(cx, &id, WAITS, request.snoozed_until.unwrap_or(now))?;
                continue;
            }
            // It waits for its requester; their answer is told.
            Some(request) if why == WAITS && request.asked_at.is_some() => {}
            Some(request) => {
                let event = Event::new(REMINDED, request.subject())
                    .fact("request", request.id.as_str())
                    .fact("request_kind", request.kind.name())
                    .fact("why", why.as_str())
                    .fact("state", State::Pending.name())
                    .fact("requester_kind", request.requester.kind.name())
                    .fact("requester", request.requester.id.as_str())
                    .fact("asked_by", request.asked_by.clone())
                    .fact("domain", request.domain.as_str())
                    .fact("risk", request.risk.as_str())
                    .fact("rank", request.priority.rank())
                    .fact("assignee", request.assignee.clone())
                    .fact("expires_at", request.expires_at);
                cx.emit(event)?;
            }
            None => {}
        }
        cx.tx.execute("delete from reminder where request = $1 and why = $2", args![id, why])?;
    }
    Ok(u32::try_from(rows.len()).unwrap_or(u32::MAX))
}
