//! Retention: messages that everybody acknowledged and tasks that ended go after their time, a bounded slice at a time.
//! What the record says of them stays.

use deskmate_db::args;

use crate::Result;
use crate::call::Cx;
use crate::record::{Event, Kind};

/// Messages or tasks were deleted after their time.
pub(super) const PRUNED: Kind =
    Kind { name: "bridge.pruned", says: "Messages, tasks or reservations whose time to be kept is over were deleted; the record keeps its events." };

/// What one slice did.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// How many were deleted.
    pub deleted: u64,
    /// Where the next slice begins; `None` at the end.
    pub next: Option<(i64, String)>,
}

/// With `coalesce`, so that no planner walks the index of what waits to find this message's few rows.
pub(super) const OLD_MESSAGES: &str = "select m.created_at, m.id, \
     (select count(*) from delivery d where d.message = m.id and coalesce(d.acknowledged_at, 0) = 0) from message m \
     where m.created_at < $1 and (m.created_at, m.id) > ($2, $3) order by m.created_at, m.id limit $4";
pub(super) const OLD_TASKS: &str = "select t.finished_at, t.id, \
     (select count(*) from task_blocker b join task o on o.id = b.task where b.blocker = t.id and o.finished_at is null) from task t \
     where t.finished_at is not null and t.finished_at < $1 and (t.finished_at, t.id) > ($2, $3) order by t.finished_at, t.id limit $4";

/// Looks at a slice of messages that are older than a moment, and deletes those that nobody has yet to acknowledge.
pub fn prune_messages(cx: &mut Cx<'_, '_>, before: i64, from: &(i64, String), limit: u32) -> Result<Slice> {
    let rows = cx.tx.query(OLD_MESSAGES, args![before, from.0, from.1, limit])?;
    let mut slice = Slice::default();
    for row in &rows {
        let (created_at, id, waiting): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if waiting == 0 {
            cx.tx.execute("delete from delivery where message = $1", args![id])?;
            slice.deleted += cx.tx.execute("delete from message where id = $1", args![id])?;
        }
        slice.next = Some((created_at, id));
    }
    finish(cx, slice, "messages", rows.len() >= limit as usize)
}

/// Looks at a slice of tasks that ended before a moment, and deletes those that no open task waits for.
pub fn prune_tasks(cx: &mut Cx<'_, '_>, before: i64, from: &(i64, String), limit: u32) -> Result<Slice> {
    let rows = cx.tx.query(OLD_TASKS, args![before, from.0, from.1, limit])?;
    let mut slice = Slice::default();
    for row in &rows {
        let (finished_at, id, waiting): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if waiting == 0 {
            cx.tx.execute("delete from task_note where task = $1", args![id])?;
            cx.tx.execute("delete from task_blocker where task = $1", args![id])?;
            cx.tx.execute("delete from task_blocker where blocker = $1", args![id])?;
            crate::edit::forget(cx.tx, &super::rows::subject(&id))?;
            slice.deleted += cx.tx.execute("delete from task where id = $1", args![id])?;
        }
        slice.next = Some((finished_at, id));
    }
    finish(cx, slice, "tasks", rows.len() >= limit as usize)
}

/// Deletes a slice of reservations that were released before a moment, and tells how many there were.
pub fn prune_reservations(cx: &mut Cx<'_, '_>, before: i64, limit: u32) -> Result<u64> {
    let deleted = cx.tx.execute(
        "delete from reservation where id in (select id from reservation where released_at is not null and released_at < $1 order by released_at, id limit $2)",
        args![before, limit],
    )?;
    if deleted > 0 {
        cx.emit(Event::new(PRUNED, "bridge").fact("reservations", deleted))?;
    }
    Ok(deleted)
}

fn finish(cx: &mut Cx<'_, '_>, mut slice: Slice, what: &str, more: bool) -> Result<Slice> {
    if slice.deleted > 0 {
        cx.emit(Event::new(PRUNED, "bridge").fact(what, slice.deleted))?;
    }
    slice.next = slice.next.filter(|_| more);
    Ok(slice)
}
