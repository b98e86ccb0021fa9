//! Which row of the file is which message or task.

use deskmate_db::{Row, Tx, args};

use super::Table;
use crate::Result;
use crate::call::Cx;

/// What is known of a row of the file.
pub(super) struct Known {
    /// The message or task.
    pub(super) id: String,
    /// The member of a group whose copy it is; empty otherwise.
    pub(super) recipient: String,
    /// How the file writes the row's id.
    pub(super) spelled: String,
}

impl Known {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self { id: row.get(0)?, recipient: row.get(1)?, spelled: row.get(2)? })
    }
}

pub(super) const FIND: &str = "select id, recipient, spelled from bridge_file_row where kind = $1 and foreign_id = $2";
pub(super) const SPELLED: &str = "select spelled from bridge_file_row where kind = $1 and id = $2 and recipient = $3";

/// What a row is, by its id in whatever spelling.
pub(super) fn find(tx: &mut Tx<'_>, table: Table, id: &str) -> Result<Option<Known>> {
    let row = tx.optional(FIND, args![table.kind(), id.to_lowercase()])?;
    row.map(|row| Known::read(&row)).transpose()
}

/// Which of these ids, in whatever spelling, the desk knows.
pub fn are_known(tx: &mut Tx<'_>, table: Table, ids: &[String]) -> Result<Vec<bool>> {
    ids.iter().map(|id| Ok(!id.contains('\0') && find(tx, table, id)?.is_some())).collect()
}

/// The id under which the file has a message or task.
pub(super) fn spelled(tx: &mut Tx<'_>, table: Table, id: &str, recipient: &str) -> Result<Option<String>> {
    let row = tx.optional(SPELLED, args![table.kind(), id, recipient])?;
    Ok(row.map(|row| row.get(0)).transpose()?)
}

/// Remembers what a row is.
pub(super) fn remember(tx: &mut Tx<'_>, table: Table, known: &Known) -> Result<()> {
    tx.execute(
        "insert into bridge_file_row (kind, foreign_id, id, recipient, spelled) values ($1, $2, $3, $4, $5)",
        args![table.kind(), known.spelled.to_lowercase(), known.id, known.recipient, known.spelled],
    )?;
    Ok(())
}

/// Remembers that a row was refused, by the digest of all that it says. `false`: it was reported before.
pub(super) fn refuse(tx: &mut Tx<'_>, digest: &str) -> Result<bool> {
    let changed = tx.execute(
        "insert into bridge_file_row (kind, foreign_id, id, recipient, spelled) values ('refused', $1, $1, '', '') on conflict (kind, foreign_id) do nothing",
        args![digest],
    )?;
    Ok(changed > 0)
}

/// A row whose message or task the desk no longer keeps.
#[derive(Clone, Debug)]
pub struct Gone {
    /// The lower-cased id.
    pub foreign_id: String,
    /// How the file writes it.
    pub spelled: String,
}

pub(super) const GONE_MESSAGES: &str = "select b.foreign_id, b.spelled, (select m.id from message m where m.id = b.id) from bridge_file_row b \
     where b.kind = 'message' and b.foreign_id > $1 order by b.foreign_id limit $2";
pub(super) const GONE_TASKS: &str = "select b.foreign_id, b.spelled, (select t.id from task t where t.id = b.id) from bridge_file_row b \
     where b.kind = 'task' and b.foreign_id > $1 order by b.foreign_id limit $2";

/// Looks through known rows for those whose message or task was deleted after its time. Answers them, and where to go on.
pub fn gone(tx: &mut Tx<'_>, table: Table, after: &str, limit: u32) -> Result<(Vec<Gone>, Option<String>)> {
    let sql = if table == Table::Messages { GONE_MESSAGES } else { GONE_TASKS };
    let rows = tx.query(sql, args![after, limit])?;
    let mut gone = Vec::new();
    let mut last = None;
    for row in &rows {
        let foreign_id: String = row.get(0)?;
        if row.get::<Option<String>>(2)?.is_none() {
            gone.push(Gone { foreign_id: foreign_id.clone(), spelled: row.get(1)? });
        }
        last = Some(foreign_id);
    }
    Ok((gone, last.filter(|_| rows.len() >= limit as usize)))
}

/// Forgets rows that the file has no longer.
pub fn forget(cx: &mut Cx<'_, '_>, table: Table, gone: &[Gone]) -> Result<()> {
    for row in gone {
        cx.tx.execute("delete from bridge_file_row where kind = $1 and foreign_id = $2", args![table.kind(), row.foreign_id])?;
    }
    Ok(())
}
