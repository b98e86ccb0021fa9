//! Retention of the trash: what lay there longer than a person's setting says is deleted for ever, on the record before and
//! after. Without that setting nothing goes by itself.

use serde_json::json;

use super::root::{self, Root, RootAccess};
use super::{EXPIRED, EXPIRING};
use crate::call::Cx;
use crate::job::{self, NewJob, Priority};
use crate::record::Event;
use crate::{Result, policy};

/// The kind of the job that does it.
pub const TRASH_JOB: &str = "workspace.trash";

const DAY: i64 = 86_400_000_000;

/// Puts the job into the queue if a setting asks for it and none is there.
pub fn schedule_trash(cx: &mut Cx<'_, '_>) -> Result<()> {
    if !expiring(cx)?.is_empty() {
        let new = NewJob { priority: Priority::Background, unique_key: Some("all".to_owned()), ..NewJob::new(TRASH_JOB, json!({})) };
        job::enqueue(cx, new)?;
    }
    Ok(())
}

/// The roots where things go out of the trash, and which: those that were put there before this moment.
pub fn expiring(cx: &mut Cx<'_, '_>) -> Result<Vec<(Root, i64)>> {
    let Some(days) = policy::current(cx)?.settings("").workspace.trash_days else { return Ok(Vec::new()) };
    let before = cx.now().saturating_sub(i64::from(days).saturating_mul(DAY));
    Ok(root::all(cx)?.into_iter().filter(|root| root.access == RootAccess::Write).map(|root| (root, before)).collect())
}

/// Something that is about to go, or went.
pub struct Expiring {
    /// Its id in the trash.
    pub id: String,
    /// Where it was.
    pub path: String,
}

/// Tells what is about to be deleted.
pub fn expire(cx: &mut Cx<'_, '_>, root: &str, items: &[Expiring]) -> Result<()> {
    let told: Vec<_> = items.iter().map(|item| json!({ "id": item.id, "path": item.path })).collect();
    cx.emit(Event::new(EXPIRING, format!("root:{root}")).fact("root", root).fact("items", items.len()).payload(json!({ "items": told })))
}

/// Tells what came of it: what went, by its id in the trash, and what did not, and why.
pub fn expired(cx: &mut Cx<'_, '_>, root: &str, deleted: &[String], failed: &[(String, String)]) -> Result<()> {
    let event = Event::new(EXPIRED, format!("root:{root}")).fact("root", root).fact("deleted", deleted.len()).fact("failed", failed.len());
    let failed: Vec<_> = failed.iter().map(|(id, why)| json!({ "id": id, "why": why })).collect();
    cx.emit(event.payload(json!({ "deleted": deleted, "failed": failed })))
}
