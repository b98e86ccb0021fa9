//! What is in the trash.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::judge;
use super::super::place::{self, Place, join};
use super::super::scan::Surveyed;
use super::later::{self, Page};
use super::model::{FoundTrash, TrashAsk, TrashEntry, What};
use super::{bounded, errand, numbered, told};
use crate::call::{Cx, Errand};
use crate::job::Progress;
use crate::{Result, format_time};

/// Things in the trash that one page shows.
const TRASH_PAGE_MAX: u32 = 1_000;

/// List what is in the trash of a root, the newest first, in pages. A look that takes long goes on as a job: the call holds until
/// it is done, up to 25 seconds, and then names the job to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct ListTrash {
    /// The root; the only one if not given.
    root: Option<String>,
    /// How many; 1000 if not given, which is also the most.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
    /// How long to wait if it takes long, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

/// What is in the trash.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(in crate::workspace) struct Trash {
    /// The things, the newest first.
    items: Vec<TrashOut>,
    /// Whether there are more; then `next_cursor` leads on.
    truncated: bool,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Given while a job still looks, which has the things when it is done: wait with wait_for_scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// How far that job has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

impl Trash {
    pub(super) fn of(root: &str, found: FoundTrash) -> Self {
        let next_cursor = found.entries.last().filter(|_| found.more).map(|last| format!("{}:{}", last.deleted_at, last.id));
        let out = |one: TrashEntry| TrashOut {
            trash_id: one.id,
            path: join(root, &one.path),
            deleted_at: format_time(one.deleted_at),
            kind: one.kind,
            size: one.size,
        };
        Self { items: found.entries.into_iter().map(out).collect(), truncated: found.more, next_cursor, job: None, progress: None }
    }
}

impl Page for Trash {
    fn later(job: String, progress: Option<Progress>) -> Self {
        Self { items: Vec::new(), truncated: true, next_cursor: None, job: Some(job), progress }
    }
}

/// Something in the trash.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(in crate::workspace) struct TrashOut {
    /// Give this to restore.
    trash_id: String,
    /// Where it was.
    path: String,
    /// When it was put there.
    deleted_at: String,
    /// `file`, `folder`, `link` or `other`.
    kind: String,
    /// Bytes.
    size: u64,
}

fn trash_ask(cx: &mut Cx<'_, '_>, input: &ListTrash) -> Result<(Place, TrashAsk)> {
    let place = place::whole(cx, "root", input.root.as_deref())?;
    judge::may_look(cx, "list_trash", &place)?;
    let limit = bounded("limit", input.limit, TRASH_PAGE_MAX, TRASH_PAGE_MAX)?;
    let after = input.cursor.as_deref().map(numbered).transpose()?.map(|(at, id)| (at, id.to_owned()));
    Ok((Place { path: String::new(), ..place }, TrashAsk { limit, after }))
}

pub(in crate::workspace) fn wants_trash(cx: &mut Cx<'_, '_>, input: &ListTrash) -> Result<Errand> {
    let (place, what) = trash_ask(cx, input)?;
    Ok(errand(&place, What::Trash(what)))
}

pub(in crate::workspace) fn queue_trash(cx: &mut Cx<'_, '_>, input: ListTrash) -> Result<Trash> {
    let (place, what) = trash_ask(cx, &input)?;
    later::queue(cx, "list_trash", &place, Surveyed::Trash(what))
}

pub(in crate::workspace) fn list_trash(cx: &mut Cx<'_, '_>, input: ListTrash, found: FoundTrash) -> Result<Trash> {
    let place = place::find(cx, "root", input.root.as_deref())?;
    told(cx, "list_trash", &place, found.entries.len() as u64)?;
    Ok(Trash::of(&place.root.name, found))
}
