//! The audit file in a root: what the record says was done there, added after each plan, and verified from its first line on.
//! What could not be written after a plan is written after the next one; the record has it all the same.

use std::time::Duration;

use deskmate_core::Result;
use deskmate_core::call::{Actor, Cx, Surface};
use deskmate_core::job::{Outcome, Progress};
use deskmate_core::record;
use deskmate_core::workspace::{self, AuditCheck, AuditFound, AuditNext, BadLine, Root, plan};
use deskmate_db::Tx;
use deskmate_hands::files::{self, AuditEnd};
use serde_json::json;
use tokio::time::Instant;

use super::trash::blocking;
use super::{Running, hopeless};
use crate::hands::fault;

/// How often, and how long each time, the end of a plan is waited for to get its place in the record.
const SEALED_LOOKS: u32 = 40;
const SEALED_LOOK: Duration = Duration::from_millis(50);
/// Lines, and events behind the last one, that are looked at together.
const LINES_AT_ONCE: usize = 500;
const EVENTS_AT_ONCE: usize = 50;
/// How often progress is told, and it is learned whether to stop.
const TELL: Duration = Duration::from_millis(500);

/// Brings the audit file of a plan's root up to date, if there shall be one.
pub(super) async fn write(running: &Running, id: &str) {
    let (desk, asked) = (&running.app.desk, id.to_owned());
    let written = async {
        let Some(root) = desk.act(Surface::System, move |cx| plan::audited(cx, &asked)).await? else { return Ok(()) };
        until_sealed(running, id).await?;
        let _turn = running.app.hands.audits().await;
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

/// Adds what the record has behind the end of the file. Only whoever has the turn does.
async fn add(running: &Running, root: &Root) -> Result<()> {
    let mut found = AuditFound { root: root.name.clone(), ..AuditFound::default() };
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
        match next {
            AuditNext::Lines { text, .. } if text.is_empty() => break,
            AuditNext::Lines { text, late } => {
                // What is written anew was not missing.
                found.missing += if found.set_aside.is_none() { late } else { 0 };
                blocking(move || files::add_to_audit(&folder, &text).map_err(fault)).await?;
            }
            AuditNext::NotOurs => {
                let seen = look(running, root).await.unwrap_or_default();
                found = AuditFound { root: root.name.clone(), set_aside: Some(aside(running, root).await?), ..seen };
            }
        }
    }
    if found.missing > 0 || found.set_aside.is_some() { tell(running, found).await } else { Ok(()) }
}

async fn behind(running: &Running, root: &Root, line: Option<String>) -> Result<AuditNext> {
    let name = root.name.clone();
    running.app.desk.act(Surface::System, move |cx| workspace::audit_next(cx, &name, line.as_deref())).await
}

/// Sets the file aside, and answers under which name.
async fn aside(running: &Running, root: &Root) -> Result<String> {
    let (hands, named, now) = (running.app.hands.clone(), root.clone(), running.app.desk.world.now());
    blocking(move || files::set_audit_aside(&hands.root(&named)?, now).map_err(fault)).await
}

async fn tell(running: &Running, found: AuditFound) -> Result<()> {
    tracing::warn!(root = %found.root, first_bad = found.first_bad, missing = found.missing, "an audit file did not say what the record says; it was mended");
    running.app.desk.act(Surface::System, move |cx| workspace::mended(cx, &found)).await
}

/// Verifies the audit file of one root, or of all.
pub(super) async fn verify(running: &Running) -> Result<Outcome> {
    let (input, named) = (running.claimed.input.clone(), running.claimed.input.get("root").is_some());
    let roots = running.app.desk.act(Surface::System, move |cx| workspace::audited_roots(cx, &input)).await?;
    let mut all = Vec::new();
    for root in roots {
        match verified(running, &root).await {
            Ok(_) if running.is_cancelled() => return Ok(Outcome::Cancelled),
            Ok(found) => all.push(found),
            Err(error) if named => return Ok(hopeless(&error)),
            // A folder that is not there today is no reason to leave the others unlooked at.
            Err(error) => tracing::warn!(root = %root.name, %error, "the audit file of a folder could not be verified; it is tried again"),
        }
    }
    Ok(Outcome::Done(json!({ "roots": all })))
}

async fn verified(running: &Running, root: &Root) -> Result<AuditFound> {
    let found = look(running, root).await?;
    if found.sound || running.is_cancelled() {
        return Ok(found);
    }
    // Once more while nobody else writes: the first look may have met a line in the making.
    let _turn = running.app.hands.audits().await;
    let mut found = look(running, root).await?;
    if found.sound || running.is_cancelled() {
        return Ok(found);
    }
    if found.first_bad.is_some() {
        found.set_aside = Some(aside(running, root).await?);
    }
    tell(running, found.clone()).await?;
    add(running, root).await?;
    Ok(found)
}

/// Reads the file beside the record, some lines at a time.
async fn look(running: &Running, root: &Root) -> Result<AuditFound> {
    let (hands, named) = (running.app.hands.clone(), root.clone());
    let opened = blocking(move || match files::audit_lines(&hands.root(&named)?) {
        Err(why) if why.code == files::Code::Changed => Ok(Err(why.message)),
        opened => opened.map(Ok).map_err(fault),
    });
    let mut check = AuditCheck::new(&root.name);
    let mut found = AuditFound { root: root.name.clone(), ..AuditFound::default() };
    let mut file = match opened.await? {
        Ok(file) => file,
        Err(why) => return Ok(AuditFound { first_bad: Some(1), why: Some(why), ..found }),
    };
    let mut told = Instant::now();
    while let Some(mut reading) = file.take() {
        let (read, lines) = blocking(move || reading.some(LINES_AT_ONCE).map_err(fault).map(|lines| (reading, lines))).await?;
        if lines.is_empty() || running.is_cancelled() {
            break;
        }
        let bad;
        (bad, check) = beside(running, check, move |check, cx| check.check(cx, &lines)).await?;
        found.lines = check.lines();
        if let Some(BadLine { line, why }) = bad {
            (found.first_bad, found.why) = (Some(line), Some(why));
            return Ok(found);
        }
        let percent = read.percent();
        file = Some(read);
        if told.elapsed() >= TELL {
            told = Instant::now();
            running.beat(Some(Progress { percent: Some(percent), text: Some(format!("{} lines of {}", found.lines, root.name)) })).await?;
        }
    }
    let mut more = true;
    while more && !running.is_cancelled() {
        let missing;
        ((missing, more), check) = beside(running, check, |check, cx| check.missing(cx, EVENTS_AT_ONCE)).await?;
        found.missing += missing;
    }
    found.sound = found.missing == 0;
    Ok(found)
}

/// Goes on beside the record, in one look at it. A look may be repeated, so it begins each time from where it was.
async fn beside<T: Send + 'static>(
    running: &Running,
    check: AuditCheck,
    go_on: impl Fn(&mut AuditCheck, &mut Cx<'_, '_>) -> Result<T> + Send + 'static,
) -> Result<(T, AuditCheck)> {
    let desk = running.app.desk.clone();
    let look = move |tx: &mut Tx<'_>| {
        let mut check = check.clone();
        let found = go_on(&mut check, &mut desk.cx(tx, Actor::system(), Surface::System))?;
        Ok((found, check))
    };
    running.app.desk.db.read(look).await
}
