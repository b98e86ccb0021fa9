//! Retention: runs that ended long ago go with what they said, and old tests with what came of them, a bounded slice at a time.
//! The newest of each agent stay: how it fared last is still known, what its next run remembers, and what its deployment asks for.
//! The record tells of all of them for ever.

use deskmate_db::args;

use super::PRUNED;
use crate::Result;
use crate::call::Cx;
use crate::record::Event;

/// Runs of one transaction at most: each may have said thousands of lines.
const AT_ONCE: u32 = 20;

/// Runs that have ended, unless there is no later one of the same agent that has. Of those that were done the newest stays as well: it
/// is what the next one remembers by, however many failed since.
pub(super) const RUNS: &str = "select id from agent_run where created_at < $1 and finished_at is not null and finished_at < $1 and exists (select 1 \
     from agent_run later where later.definition = agent_run.definition and later.created_at > agent_run.created_at and later.finished_at is not null) \
     and (state <> 'done' or cause = 'test' or exists (select 1 from agent_run later where later.definition = agent_run.definition \
     and later.created_at > agent_run.created_at and later.state = 'done' and later.cause <> 'test')) order by created_at, id limit $2";
/// Tests of what was tested again since in the same way.
const TESTS: &str = "select id from agent_test where at < $1 and exists (select 1 from agent_test later where later.definition = agent_test.definition \
     and later.digest = agent_test.digest and later.strict = agent_test.strict and later.at > agent_test.at) order by at, id limit $2";

/// Deletes runs that ended and tests that were made before a moment, the oldest first. Answers whether there may be more.
pub fn prune(cx: &mut Cx<'_, '_>, before: i64, limit: u32) -> Result<bool> {
    let limit = limit.min(AT_ONCE);
    let mut ids =
        |sql: &'static str| -> Result<Vec<String>> { Ok(cx.tx.query(sql, args![before, limit])?.iter().map(|row| row.get(0)).collect::<Result<_, _>>()?) };
    let (runs, tests) = (ids(RUNS)?, ids(TESTS)?);
    for run in &runs {
        cx.tx.execute("delete from agent_log where run = $1", args![run])?;
        cx.tx.execute("delete from agent_hold where run = $1", args![run])?;
        cx.tx.execute("delete from agent_run where id = $1", args![run])?;
    }
    for test in &tests {
        cx.tx.execute("delete from agent_test where id = $1", args![test])?;
    }
    if !runs.is_empty() || !tests.is_empty() {
        cx.emit(Event::new(PRUNED, "runs").fact("runs", runs.len()).fact("tests", tests.len()).fact("ended_before", before))?;
    }
    Ok(limit > 0 && runs.len().max(tests.len()) >= limit as usize)
}
