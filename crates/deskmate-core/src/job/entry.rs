//! Jobs as the capability that put them into the queue looks at them: by their kind, and by the beginning of their unique key.

use deskmate_db::args;
use serde_json::Value;

use super::model::{Progress, State};
use super::operations::{OF_OWNER, scan};
use super::rows::{self, JobRow};
use crate::Result;
use crate::call::{Cx, Page, PageIn};
use crate::limits::PAGE_MAX;

/// A job without its long texts.
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) state: State,
    pub(crate) unique_key: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) finished_at: Option<i64>,
    pub(crate) progress: Option<Progress>,
    pub(crate) cancel_requested: bool,
    pub(crate) error: Option<String>,
}

impl Entry {
    fn of(cx: &mut Cx<'_, '_>, row: JobRow) -> Result<Self> {
        let more =
            cx.tx.one("select error, (select started_at from job_attempt where job = $1 order by number limit 1) from job where id = $1", args![row.id])?;
        Ok(Self {
            id: row.id,
            state: row.state,
            unique_key: row.unique_key,
            created_at: row.created_at,
            started_at: more.get(1)?,
            finished_at: row.finished_at,
            progress: row.progress,
            cancel_requested: row.cancel_requested,
            error: more.get(0)?,
        })
    }
}

/// A job of a kind.
pub(crate) fn entry(cx: &mut Cx<'_, '_>, kind: &str, job: &str) -> Result<Option<Entry>> {
    let row = rows::find(cx, job)?.filter(|row| row.kind == kind);
    row.map(|row| Entry::of(cx, row)).transpose()
}

/// What a job was given, and what came out of it.
pub(crate) fn contents(cx: &mut Cx<'_, '_>, job: &str) -> Result<(Value, Option<Value>)> {
    let texts = rows::texts(cx, job)?;
    Ok((texts.input, texts.result))
}

/// The caller's jobs of a kind whose key begins so, newest first.
pub(crate) fn entries(cx: &mut Cx<'_, '_>, kind: &str, prefix: &str, page: &PageIn) -> Result<Page<Entry>> {
    let fits = |row: &JobRow| row.kind == kind && row.unique_key.as_deref().is_some_and(|key| key.starts_with(prefix));
    let slice = |cx: &mut Cx<'_, '_>, (at, id): (i64, String)| Ok(cx.tx.query(OF_OWNER, args![at, id, PAGE_MAX, cx.actor.kind.name(), cx.actor.id])?);
    let found = scan(cx, page, slice, fits)?;
    let items = found.items.into_iter().map(|row| Entry::of(cx, row)).collect::<Result<_>>()?;
    Ok(Page { items, next_cursor: found.next_cursor })
}

pub(super) const OPEN: &str = "select count(*) from (select id from job where kind = $1 and unique_key like $2 and unique_key is not null \
     and (state = 'waiting' or state = 'running') limit $3) open";

/// How many jobs of a kind whose key begins so have not ended, counted up to a bound.
pub(crate) fn count_open(cx: &mut Cx<'_, '_>, kind: &str, prefix: &str, most: usize) -> Result<usize> {
    let count: i64 = cx.tx.one(OPEN, args![kind, format!("{prefix}%"), i64::try_from(most).unwrap_or(i64::MAX)])?.get(0)?;
    Ok(usize::try_from(count).unwrap_or(0))
}
