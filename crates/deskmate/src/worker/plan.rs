//! Making a plan: files are looked at on a thread of their own, and the steps go into the store some hundred at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deskmate_core::call::{Cx, Surface};
use deskmate_core::job::{Outcome, Progress};
use deskmate_core::workspace::Root;
use deskmate_core::workspace::plan::{self, Ask, Making, Part, Step, StepOutcome};
use deskmate_core::{Code, Error, Result};
use deskmate_hands::files::{self, Back};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Running;
use crate::hands::make::{self, Now, Parts};
use crate::hands::python;

/// Parts that may wait for the store.
const PARTS_AHEAD: usize = 4;
/// How often progress is told, and it is learned whether to stop.
const TELL: Duration = Duration::from_millis(500);

pub(super) async fn run(running: &Running) -> Result<Outcome> {
    let (app, hold) = (&running.app, running.hold());
    let Some(making) = app.desk.act(Surface::System, move |cx| plan::making(cx, &hold)).await? else {
        return Ok(Outcome::Done(json!({ "made": false })));
    };
    let id = making.plan.clone();
    let made = match &making.ask {
        Ask::Undo { plan } => undo(running, &id, plan, making.root.as_ref()).await,
        _ => look(running, making).await,
    };
    let (end, hold) = (id.clone(), running.hold());
    match made {
        Ok(()) => app.desk.act(Surface::System, move |cx| plan::made(cx, &hold, &end)).await?,
        // The store being away passes; the rest will not become better.
        Err(error) if error.code == Code::Internal => return Err(error),
        Err(error) => {
            let why = error.message.clone();
            app.desk.act(Surface::System, move |cx| plan::not_made(cx, &hold, &end, &why)).await?;
        }
    }
    Ok(Outcome::Done(json!({ "plan": id })))
}

/// Looks at the files on a thread, takes the steps as they come, and tells how far it has come.
async fn look(running: &Running, making: Making) -> Result<()> {
    let (send, mut parts) = mpsc::channel::<Part>(PARTS_AHEAD);
    let (hands, stop, at_us) = (running.app.hands.clone(), Arc::clone(&running.cancelled), running.app.desk.world.now());
    let plan = making.plan.clone();
    let seen: Arc<AtomicU64> = Arc::default();
    let counted = Arc::clone(&seen);
    let looking = tokio::task::spawn_blocking(move || {
        let mut give = |steps: Vec<Step>| send.blocking_send(Part::of(&steps)?).map_err(|_| Error::conflict("the making was given up"));
        let mut parts = Parts::new(&mut give);
        let tell = |progress: files::Progress| counted.store(progress.entries, Ordering::Relaxed);
        match (&making.ask, &making.root) {
            (Ask::Python { program }, root) => parts.push(python::step(&hands, root.as_ref(), program)?)?,
            (ask, Some(root)) => make::make(&hands.root(root)?, ask, &Now { at_us, stop: &stop, tell: &tell }, &mut parts)?,
            (_, None) => return Err(Error::conflict("this plan has no root")),
        }
        parts.end()
    });
    let (mut number, mut steps) = (0, 0);
    let mut ready = Vec::new();
    let mut told = Instant::now();
    loop {
        // What has come meanwhile shares a transaction.
        tokio::select! {
            came = parts.recv_many(&mut ready, PARTS_AHEAD) => {
                if came == 0 {
                    break;
                }
                steps += ready.iter().map(Part::steps).sum::<i64>();
                number = keep(running, &plan, number, std::mem::take(&mut ready)).await?;
            }
            () = tokio::time::sleep_until(told + TELL) => {}
        }
        if told.elapsed() >= TELL {
            told = Instant::now();
            let entries = seen.load(Ordering::Relaxed);
            let text = if steps == 0 { format!("looked at {entries} entries") } else { format!("looked at {entries} entries, {steps} steps so far") };
            running.beat(Some(Progress { percent: None, text: Some(text) })).await.inspect_err(|_| running.cancelled.store(true, Ordering::Relaxed))?;
        }
    }
    looking.await.map_err(|_| Error::new(Code::Internal, "looking at files ended unexpectedly"))?
}

/// Keeps parts from a number on, and answers with the next one.
async fn keep(running: &Running, plan: &str, first: i64, parts: Vec<Part>) -> Result<i64> {
    let (plan, parts, hold) = (plan.to_owned(), Arc::new(parts), running.hold());
    let next = first + i64::try_from(parts.len()).unwrap_or(0);
    let add = move |cx: &mut Cx<'_, '_>| (first..).zip(parts.iter()).try_for_each(|(number, part)| plan::add_part(cx, &hold, &plan, number, part));
    running.app.desk.act(Surface::System, add).await?;
    Ok(next)
}

/// What takes back a part, in parts.
fn reversed(root: &files::Root, back: &mut Back, steps: &[Step], outcomes: &[StepOutcome]) -> Result<Vec<Part>> {
    let mut made = Vec::new();
    let mut give = |steps: Vec<Step>| {
        made.push(Part::of(&steps)?);
        Ok(())
    };
    let mut parts = Parts::new(&mut give);
    make::undo(root, back, steps, outcomes, &mut parts)?;
    parts.end()?;
    Ok(made)
}

/// Takes what was done, the last part first, and looks on a thread what of it can be taken back.
async fn undo(running: &Running, plan: &str, of: &str, root: Option<&Root>) -> Result<()> {
    let desk = &running.app.desk;
    let root = running.app.hands.root(root.ok_or_else(|| Error::conflict("this plan has no root"))?)?;
    let counted = of.to_owned();
    let all = desk.act(Surface::System, move |cx| plan::parts(cx, &counted)).await?;
    let (mut left, mut number, mut back) = (all, 0, Back::default());
    let mut told = Instant::now();
    while left > 0 {
        left -= 1;
        let (from, at) = (of.to_owned(), left);
        let Some((steps, outcomes)) = desk.act(Surface::System, move |cx| plan::executed(cx, &from, at)).await? else { continue };
        let (beneath, mut known) = (root.clone(), back);
        let looking = tokio::task::spawn_blocking(move || reversed(&beneath, &mut known, &steps, &outcomes).map(|made| (known, made)));
        let (known, made) = looking.await.map_err(|_| Error::new(Code::Internal, "looking at files ended unexpectedly"))??;
        back = known;
        number = keep(running, plan, number, made).await?;
        if told.elapsed() > TELL {
            told = Instant::now();
            let percent = u8::try_from((all - left).saturating_mul(100) / all.max(1)).ok();
            running.beat(Some(Progress { percent, text: Some("looking at what can be taken back".to_owned()) })).await?;
        }
        if running.is_cancelled() {
            return Err(Error::conflict("somebody stopped it"));
        }
    }
    Ok(())
}
