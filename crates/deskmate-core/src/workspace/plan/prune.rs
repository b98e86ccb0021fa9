//! Retention: plans that ended long ago go with their steps and all contents, a bounded slice at a time, and so do those that
//! nobody will do any more. The record tells of them for ever.

use deskmate_db::args;

use super::PRUNED;
use crate::Result;
use crate::call::Cx;
use crate::record::Event;

/// Plans of one transaction at most: each may have a thousand parts.
const AT_ONCE: u32 = 20;

pub(super) const ENDED: &str = "select id from plan where finished_at is not null and finished_at < $1 order by finished_at, id limit $2";
/// Made, and neither waiting for people nor approved: whatever happened to the request, it will not be done.
pub(super) const DEAD: &str = "select id from plan where finished_at is null and updated_at < $1 and state = 'ready' and not exists (select 1 from request \
     where request.id = plan.request and request.state in ('pending', 'approved', 'executing')) order by updated_at, id limit $2";

/// Deletes plans that came to their end before a moment, the oldest first. Answers whether there may be more.
pub fn prune(cx: &mut Cx<'_, '_>, ended_before: i64, limit: u32) -> Result<bool> {
    let limit = limit.min(AT_ONCE);
    let mut gone = Vec::new();
    for slice in [ENDED, DEAD] {
        for row in cx.tx.query(slice, args![ended_before, limit])? {
            gone.push(row.get::<String>(0)?);
        }
    }
    for plan in &gone {
        cx.tx.execute("delete from plan_part where plan = $1", args![plan])?;
        cx.tx.execute("delete from plan where id = $1", args![plan])?;
    }
    if !gone.is_empty() {
        cx.emit(Event::new(PRUNED, "plans").fact("plans", gone.len()).fact("ended_before", ended_before))?;
    }
    Ok(limit > 0 && gone.len() >= limit as usize)
}
