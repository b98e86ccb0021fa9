//! The audit file in a root: what the record says was done there, added after each plan. What could not be written then is
//! written after the next one; the record has it all the same.

use std::time::Duration;

use deskmate_core::Result;
use deskmate_core::call::Surface;
use deskmate_core::record;
use deskmate_core::workspace::{self, AuditNext, Root, plan};
use deskmate_hands::files::{self, AuditEnd};

use super::Running;
use super::trash::blocking;
use crate::hands::fault;

/// How often, and how long each time, the end of a plan is waited for to get its place in the record.
const SEALED_LOOKS: u32 = 40;
const SEALED_LOOK: Duration = Duration::from_millis(50);

/// Brings the audit file of a plan's root up to date, if there shall be one.
pub(super) async fn write(running: &Running, id: &str) {
    let (desk, asked) = (&running.app.desk, id.to_owned());
    let written = async {
        let Some(root) = desk.act(Surface::System, move |cx| plan::audited(cx, &asked)).await? else { return Ok(()) };
        until_sealed(running, id).await?;
        add(running, &root).await
    };
    if let Err(error) = written.await {
        tracing::warn!(plan = %id, %error, "the audit file could not be written; it is tried again after the next plan");
    }
}

/// With PostgreSQL events get their places a moment later.
async fn until_sealed(running: &Running, id: &str) -> Result<()> {
    for _ in 0..SEALED_LOOKS {
        let subject = format!("plan:{id}");
        let told = running.app.desk.db.read(move |tx| record::told_of(tx, &subject, 1)).await?;
        if told.first().is_none_or(|told| told.seq.is_some()) {
            break;
        }
        tokio::time::sleep(SEALED_LOOK).await;
    }
    Ok(())
}

async fn add(running: &Running, root: &Root) -> Result<()> {
    loop {
        let (hands, named) = (running.app.hands.clone(), root.clone());
        let (folder, end) = blocking(move || {
            let folder = hands.root(&named)?;
            let end = files::audit_end(&folder).map_err(fault)?;
            Ok((folder, end))
        })
        .await?;
        let next = match end {
            AuditEnd::Unreadable => AuditNext::NotOurs,
            AuditEnd::Nothing => behind(running, root, None).await?,
            AuditEnd::Line(line) => behind(running, root, Some(line)).await?,
        };
        let now = running.app.desk.world.now();
        match next {
            AuditNext::Lines(lines) if lines.is_empty() => return Ok(()),
            AuditNext::Lines(lines) => blocking(move || files::add_to_audit(&folder, &lines).map_err(fault)).await?,
            AuditNext::NotOurs => {
                tracing::warn!(root = %root.name, "the audit file ends with what the record does not say: it is set aside, and written anew");
                blocking(move || files::set_audit_aside(&folder, now).map_err(fault)).await?;
            }
        }
    }
}

async fn behind(running: &Running, root: &Root, line: Option<String>) -> Result<AuditNext> {
    let name = root.name.clone();
    running.app.desk.act(Surface::System, move |cx| workspace::audit_next(cx, &name, line.as_deref())).await
}
