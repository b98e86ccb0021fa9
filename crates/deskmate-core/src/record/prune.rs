//! Retention of checkpoints. Any of them proves the record up to its size, and the newest proves all of it.

use deskmate_db::args;

use crate::Result;
use crate::call::Cx;

/// Deletes a slice of checkpoints from before a moment, but never the newest, and tells how many there were.
pub fn prune_checkpoints(cx: &mut Cx<'_, '_>, before: i64, limit: u32) -> Result<u64> {
    let deleted = cx.tx.execute(
        "delete from checkpoint where size in (select size from checkpoint where at < $1 and size < (select max(size) from checkpoint) \
         order by size limit $2)",
        args![before, limit],
    )?;
    Ok(deleted)
}
