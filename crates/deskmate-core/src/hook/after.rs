//! What came of calls, and what is forgotten.

use serde_json::json;

use super::{ENDED, rows};
use crate::Result;
use crate::call::Cx;
use crate::record::Event;
use crate::request::{self, Outcome, State};

/// After this time without a word nobody knows what came of a call, in microseconds.
const SILENT_FOR: i64 = 60 * 60 * 1_000_000;
/// How long rows of what has ended are kept, in microseconds: 30 days. The record tells of them for ever.
const KEPT: i64 = 30 * 86_400_000_000;

/// Tells what came of a call, and closes its request.
pub(super) fn ended(cx: &mut Cx<'_, '_>, session: &str, tool: &str, call: Option<&str>, failed: bool) -> Result<()> {
    let (agent, now) = (cx.actor.id.clone(), cx.now());
    let row = call.map(|call| rows::call(cx.tx, &agent, call)).transpose()?.flatten();
    let outcome = if failed { Outcome::Failed } else { Outcome::Done };
    let mut event = Event::new(ENDED, format!("agent:{agent}")).fact("outcome", outcome.state().name()).fact("asked", row.is_some());
    if let (Some(row), Some(call)) = (row, call) {
        if !rows::end(cx.tx, &agent, call, outcome.state().name(), now)? {
            return Ok(());
        }
        event = event.fact("verb", row.verb.as_str()).fact("domain", row.domain.as_str()).fact("micros", now.saturating_sub(row.begun_at));
        if let Some(id) = &row.request {
            event = event.fact("request", id.as_str());
            close(cx, id, outcome)?;
        }
        return cx.emit(event.payload(json!({ "tool": row.tool, "session": row.session, "tool_use_id": call })));
    }
    cx.emit(event.payload(json!({ "tool": tool, "session": session, "tool_use_id": call })))
}

fn close(cx: &mut Cx<'_, '_>, id: &str, outcome: Outcome) -> Result<()> {
    let is_open = request::find(cx, id)?.is_some_and(|request| matches!(request.state, State::Executing | State::Ambiguous));
    if is_open {
        request::finish(cx, id, outcome)?;
    }
    Ok(())
}

/// Notes of calls of which nobody told the end that it is not known. Answers how many.
pub fn sweep(cx: &mut Cx<'_, '_>, limit: u32) -> Result<u32> {
    let now = cx.now();
    let open = rows::open(cx.tx, now.saturating_sub(SILENT_FOR), limit)?;
    for (agent, call, request) in &open {
        rows::end(cx.tx, agent, call, State::Ambiguous.name(), now)?;
        if let Some(id) = request {
            let executing = request::find(cx, id)?.is_some_and(|request| request.state == State::Executing);
            if executing {
                request::finish(cx, id, Outcome::Ambiguous)?;
            }
        }
    }
    Ok(u32::try_from(open.len()).unwrap_or(limit))
}

/// Forgets what was kept long enough. Answers how many rows went.
pub fn prune(cx: &mut Cx<'_, '_>, limit: u32) -> Result<u64> {
    let before = cx.now().saturating_sub(KEPT);
    rows::prune(cx.tx, before, limit)
}
