//! What waits for an actor in all projects, for those who tell it so.

use super::messages::{projects_waiting, waiting};
use super::party::trust;
use crate::Result;
use crate::call::{Cx, PageIn};

/// A message that waits.
pub(crate) struct Unread {
    pub(crate) id: String,
    pub(crate) project: String,
    pub(crate) sender: String,
    /// What a reader may make of the sender.
    pub(crate) trust: String,
    /// `None` when a person erased it.
    pub(crate) content: Option<String>,
    pub(crate) created_at: i64,
}

/// The messages that wait for somebody, in each project the most urgent first. Reading them this way changes nothing.
pub(crate) fn unread(cx: &mut Cx<'_, '_>, me: &str, limit: usize) -> Result<Vec<Unread>> {
    let mut found = Vec::new();
    for project in projects_waiting(cx.tx, me, "")? {
        let left = limit.saturating_sub(found.len());
        if left == 0 {
            break;
        }
        let page = waiting(cx, me, &project, &PageIn { limit: u32::try_from(left).unwrap_or(1), after: None })?;
        found.extend(page.items.into_iter().map(|row| Unread {
            trust: trust(&row.sender_kind, &row.sender, row.verified),
            id: row.id,
            project: row.project,
            // How a person is called says more than an id.
            sender: row.sender_name.unwrap_or(row.sender),
            content: row.content,
            created_at: row.created_at,
        }));
    }
    Ok(found)
}
