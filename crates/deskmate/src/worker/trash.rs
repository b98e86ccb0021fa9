//! What lay in the trash longer than the setting says goes for ever.

use deskmate_core::call::Surface;
use deskmate_core::job::Outcome;
use deskmate_core::workspace::{self, Expiring, Root};
use deskmate_core::{Code, Error, Result};
use deskmate_hands::files::{self, Step};
use serde_json::json;

use super::Running;
use crate::hands::fault;

/// Things that go together.
const AT_ONCE: usize = 100;
/// How long what is half deleted may be somebody's who is still at it, in microseconds.
const HALF_DONE_MAX: i64 = 24 * 3_600 * 1_000_000;

pub(super) async fn run(running: &Running) -> Result<Outcome> {
    let roots = running.app.desk.act(Surface::System, workspace::expiring).await?;
    let mut deleted = 0;
    for (root, before) in roots {
        // A folder that is not there today is no reason to leave the others full.
        match one(running, &root, before).await {
            Ok(count) => deleted += count,
            Err(error) => tracing::warn!(root = %root.name, %error, "the trash of a folder could not be emptied of what is old; it is tried again"),
        }
    }
    Ok(Outcome::Done(json!({ "deleted": deleted })))
}

async fn one(running: &Running, root: &Root, before: i64) -> Result<usize> {
    let (hands, named, begun) = (running.app.hands.clone(), root.clone(), running.app.desk.world.now().saturating_sub(HALF_DONE_MAX));
    blocking(move || files::sweep_trash(&hands.root(&named)?, begun.saturating_mul(1_000)).map_err(fault)).await?;
    let (mut after, mut deleted) = (None, 0);
    loop {
        let (hands, named, from) = (running.app.hands.clone(), root.clone(), after.clone());
        let page = blocking(move || files::list_trash(&hands.root(&named)?, from.as_deref(), AT_ONCE).map_err(fault)).await?;
        let old: Vec<Expiring> = page
            .entries
            .into_iter()
            .filter(|entry| entry.at_us.is_some_and(|at| at < before))
            .map(|entry| Expiring { id: entry.id, path: entry.from.unwrap_or_default() })
            .collect();
        if !old.is_empty() {
            deleted += delete(running, root, old).await?;
        }
        match page.next {
            Some(next) if !running.is_cancelled() => after = Some(next),
            _ => return Ok(deleted),
        }
    }
}

/// Deletes some, with what is about to go on the record before, and what went afterwards.
async fn delete(running: &Running, root: &Root, old: Vec<Expiring>) -> Result<usize> {
    let desk = &running.app.desk;
    let old = std::sync::Arc::new(old);
    let (told, name) = (std::sync::Arc::clone(&old), root.name.clone());
    desk.act(Surface::System, move |cx| workspace::expire(cx, &name, &told)).await?;
    let (hands, named) = (running.app.hands.clone(), root.clone());
    let (deleted, failed) = blocking(move || {
        let root = hands.root(&named)?;
        let (mut deleted, mut failed) = (Vec::new(), Vec::new());
        for item in old.iter() {
            match Step::purge(&root, &item.id).and_then(|step| files::apply(&root, &step)) {
                Ok(_) => deleted.push(item.id.clone()),
                Err(why) => failed.push((item.id.clone(), why.message)),
            }
        }
        Ok((deleted, failed))
    })
    .await?;
    let (name, count) = (root.name.clone(), deleted.len());
    desk.act(Surface::System, move |cx| workspace::expired(cx, &name, &deleted, &failed)).await?;
    Ok(count)
}

pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::new(Code::Internal, "work on files ended unexpectedly"))?
}
