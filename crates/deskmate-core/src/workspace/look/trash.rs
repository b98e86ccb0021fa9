//! What is in the trash.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::place::{self, Place, join};
use super::model::{TrashAsk, TrashEntry};
use super::paged::{End, Page, Paged};
use super::{bounded, numbered};
use crate::call::Cx;
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
    #[serde(flatten)]
    end: End,
}

impl Page for Trash {
    type Entry = TrashEntry;

    fn new(root: &str, entries: Vec<TrashEntry>, end: End) -> Self {
        let out = |one: TrashEntry| TrashOut {
            trash_id: one.id,
            path: join(root, &one.path),
            deleted_at: format_time(one.deleted_at),
            kind: one.kind,
            size: one.size,
        };
        Self { items: entries.into_iter().map(out).collect(), end }
    }

    fn cursor(last: &TrashEntry) -> String {
        format!("{}:{}", last.deleted_at, last.id)
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

impl Paged for ListTrash {
    const OPERATION: &'static str = "list_trash";
    type Ask = TrashAsk;
    type Page = Trash;

    fn place(&self, cx: &mut Cx<'_, '_>) -> Result<Place> {
        place::whole(cx, "root", self.root.as_deref())
    }

    fn ask(&self) -> Result<TrashAsk> {
        let limit = bounded("limit", self.limit, TRASH_PAGE_MAX, TRASH_PAGE_MAX)?;
        let after = self.cursor.as_deref().map(numbered).transpose()?.map(|(at, id)| (at, id.to_owned()));
        Ok(TrashAsk { limit, after })
    }
}
