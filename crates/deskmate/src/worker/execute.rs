//! Doing a plan, part by part: what is about to be done is on the record before, what came of it afterwards.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deskmate_core::call::Surface;
use deskmate_core::job::{Outcome, Progress};
use deskmate_core::workspace::Root;
use deskmate_core::workspace::plan::{self, Action, NextPart, PlanState, Step, StepOutcome};
use deskmate_core::{Code, Error, Result};
use deskmate_hands::files;
use deskmate_hands::sandbox::Stop;
use serde_json::json;

use super::{Running, audit};
use crate::hands::{act, fault, python};

/// How often a paused agent is looked at.
const PAUSED: Duration = Duration::from_secs(1);
/// How often it is looked whether a program has to stop.
const STOPPED: Duration = Duration::from_millis(100);
/// Signs of life while parts are short.
const TOLD_EVERY: Duration = Duration::from_millis(500);

pub(super) async fn run(running: &Running) -> Result<Outcome> {
    let desk = &running.app.desk;
    let id = running.claimed.input.get("plan").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    let (asked, hold) = (id.clone(), running.hold());
    let Some(executing) = desk.act(Surface::System, move |cx| plan::executing(cx, &hold, &asked)).await? else {
        // An earlier attempt may have ended it and got no further.
        audit::write(running, &id).await;
        return Ok(Outcome::Done(json!({ "plan": id })));
    };
    let root = executing.root.as_ref().map(|root| running.app.hands.root(root)).transpose()?.map(|root| root.in_bulk());
    let mut told = tokio::time::Instant::now();
    let (mut stopped, mut done) = (false, executing.ended);
    for (number, digest, state) in executing.parts {
        if state == "ended" {
            continue;
        }
        let Some(steps) = next(running, &id, number, digest).await? else {
            stopped = true;
            break;
        };
        done += i64::try_from(steps.len()).unwrap_or(0);
        let again = state == "begun";
        let outcomes = match (steps.as_slice(), &root) {
            ([step], _) if step.action == Action::Run => vec![program(running, executing.root.clone(), step.clone(), again).await?],
            (_, Some(root)) => part(running, root.clone(), steps, again.then_some(executing.begun_at)).await?,
            (_, None) => return Err(Error::conflict("this plan has no root")),
        };
        let (plan, hold) = (id.clone(), running.hold());
        desk.act(Surface::System, move |cx| plan::end_part(cx, &hold, &plan, number, &outcomes)).await?;
        if told.elapsed() > TOLD_EVERY {
            told = tokio::time::Instant::now();
            let percent = u8::try_from(done.saturating_mul(100) / executing.steps.max(1)).unwrap_or(100).min(100);
            running.beat(Some(Progress { percent: Some(percent), text: Some(format!("{done} of {} steps", executing.steps)) })).await?;
        }
    }
    let (end, hold) = (id.clone(), running.hold());
    let state = desk.act(Surface::System, move |cx| plan::ended(cx, &hold, &end, stopped.then_some("somebody stopped it"))).await?;
    audit::write(running, &id).await;
    Ok(match state {
        PlanState::Ambiguous => Outcome::Ambiguous { what: format!("some steps of plan {id} may or may not have been done") },
        _ if stopped => Outcome::Cancelled,
        _ => Outcome::Done(json!({ "plan": id, "state": state })),
    })
}

/// Begins the next part, after the agent is let go on; `None` if somebody stopped it.
async fn next(running: &Running, id: &str, number: i64, digest: [u8; 32]) -> Result<Option<Vec<Step>>> {
    loop {
        if running.is_cancelled() {
            return Ok(None);
        }
        let (plan, hold) = (id.to_owned(), running.hold());
        match running.app.desk.act(Surface::System, move |cx| plan::begin_part(cx, &hold, &plan, number, &digest)).await? {
            NextPart::Go(steps) => {
                running.slot.take_back().await;
                return Ok(Some(steps));
            }
            // That may take days, and others need not wait as long.
            NextPart::Paused => {
                running.slot.lend();
                tokio::time::sleep(PAUSED).await;
            }
        }
    }
}

/// Does a part on a thread, and brings it to the disk before anybody is told. A worker that lost its lease does no
/// further step: somebody else may be at it.
async fn part(running: &Running, root: files::Root, steps: Vec<Step>, again: Option<i64>) -> Result<Vec<StepOutcome>> {
    let given_up = Arc::clone(&running.given_up);
    let doing = tokio::task::spawn_blocking(move || {
        let mut outcomes = Vec::with_capacity(steps.len());
        for step in &steps {
            if given_up.load(Ordering::Relaxed) {
                return Err(Error::conflict("the lease of this work was lost"));
            }
            outcomes.push(act::act(&root, step, again));
        }
        root.settle().map_err(fault)?;
        Ok(outcomes)
    });
    doing.await.map_err(|_| Error::new(Code::Internal, "changing files ended unexpectedly"))?
}

/// Runs a program on a thread. It ends when somebody stops it, and when its lease is lost.
async fn program(running: &Running, root: Option<Root>, step: Step, again: bool) -> Result<StepOutcome> {
    let (hands, ender) = (running.app.hands.clone(), Stop::new());
    let kept = ender.clone();
    let mut doing = tokio::task::spawn_blocking(move || python::run(&hands, root.as_ref(), &step, again, &kept));
    loop {
        tokio::select! {
            done = &mut doing => {
                let outcome = done.map_err(|_| Error::new(Code::Internal, "running a program ended unexpectedly"))?;
                return if running.given_up.load(Ordering::Relaxed) { Err(Error::conflict("the lease of this work was lost")) } else { Ok(outcome) };
            }
            () = tokio::time::sleep(STOPPED) => {
                if running.is_cancelled() || running.given_up.load(Ordering::Relaxed) {
                    ender.now();
                }
            }
        }
    }
}
