//! The rows of hooks.

use deskmate_db::{Tx, args};

use crate::Result;

/// A call that may run.
pub(super) struct CallRow {
    pub(super) session: String,
    pub(super) tool: String,
    pub(super) verb: String,
    pub(super) domain: String,
    pub(super) key: Vec<u8>,
    pub(super) request: Option<String>,
    pub(super) begun_at: i64,
    pub(super) ended_at: Option<i64>,
}

/// Writes a call that may run now. An id that came before belongs to the newest call.
pub(super) fn begin(tx: &mut Tx<'_>, agent: &str, call: &str, row: &CallRow) -> Result<()> {
    tx.execute(
        "insert into hook_call (agent, call, session, tool, verb, domain, key, request, begun_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         on conflict (agent, call) do update set session = excluded.session, tool = excluded.tool, verb = excluded.verb, domain = excluded.domain, \
         key = excluded.key, request = excluded.request, begun_at = excluded.begun_at, ended_at = null, outcome = null",
        args![agent, call, row.session, row.tool, row.verb, row.domain, row.key, row.request, row.begun_at],
    )?;
    Ok(())
}

/// A call by its id.
pub(super) fn call(tx: &mut Tx<'_>, agent: &str, call: &str) -> Result<Option<CallRow>> {
    let sql = "select session, tool, verb, domain, key, request, begun_at, ended_at from hook_call where agent = $1 and call = $2";
    let row = tx.optional(sql, args![agent, call])?;
    row.map(|row| {
        Ok(CallRow {
            session: row.get(0)?,
            tool: row.get(1)?,
            verb: row.get(2)?,
            domain: row.get(3)?,
            key: row.get(4)?,
            request: row.get(5)?,
            begun_at: row.get(6)?,
            ended_at: row.get(7)?,
        })
    })
    .transpose()
}

/// Notes what came of a call. `false`: it was noted before.
pub(super) fn end(tx: &mut Tx<'_>, agent: &str, call: &str, outcome: &str, now: i64) -> Result<bool> {
    let sql = "update hook_call set ended_at = $3, outcome = $4 where agent = $1 and call = $2 and ended_at is null";
    Ok(tx.execute(sql, args![agent, call, now, outcome])? == 1)
}

/// Calls that began before a moment and of which nobody told the end.
pub(super) fn open(tx: &mut Tx<'_>, before: i64, limit: u32) -> Result<Vec<(String, String, Option<String>)>> {
    let sql = "select agent, call, request from hook_call where ended_at is null and begun_at < $1 order by begun_at, agent, call limit $2";
    let rows = tx.query(sql, args![before, limit])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).collect()
}

/// Notes which request stands for a call.
pub(super) fn hold(tx: &mut Tx<'_>, request: &str, agent: &str, key: &[u8], now: i64) -> Result<()> {
    tx.execute("insert into hook_request (request, agent, key, created_at) values ($1, $2, $3, $4)", args![request, agent, key, now])?;
    Ok(())
}

/// How many requests for the same call are looked at.
const HELD_MAX: u32 = 10;

/// The requests for a call, the newest first.
pub(super) fn held(tx: &mut Tx<'_>, agent: &str, key: &[u8]) -> Result<Vec<String>> {
    let sql = "select request from hook_request where agent = $1 and key = $2 order by created_at desc, request desc limit $3";
    let rows = tx.query(sql, args![agent, key, HELD_MAX])?;
    rows.iter().map(|row| Ok(row.get(0)?)).collect()
}

/// Notes that an agent was told something. `false`: it was told before.
pub(super) fn tell(tx: &mut Tx<'_>, agent: &str, session: &str, subject: &str, now: i64) -> Result<bool> {
    let sql = "insert into hook_told (agent, session, subject, told_at) values ($1, $2, $3, $4) on conflict do nothing";
    Ok(tx.execute(sql, args![agent, session, subject, now])? == 1)
}

/// Deletes what is older than a moment. Answers how many rows went.
pub(super) fn prune(tx: &mut Tx<'_>, before: i64, limit: u32) -> Result<u64> {
    let calls = "delete from hook_call where (agent, call) in (select agent, call from hook_call where begun_at < $1 and ended_at is not null \
                 order by begun_at, agent, call limit $2)";
    let requests = "delete from hook_request where request in (select request from hook_request where created_at < $1 order by created_at, request limit $2)";
    let told = "delete from hook_told where (agent, session, subject) in (select agent, session, subject from hook_told where told_at < $1 \
                order by told_at, agent, session, subject limit $2)";
    let mut gone = 0;
    for sql in [calls, requests, told] {
        gone += tx.execute(sql, args![before, limit])?;
    }
    Ok(gone)
}
