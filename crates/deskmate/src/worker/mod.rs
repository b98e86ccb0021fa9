//! The worker: takes due jobs under a lease, does them, and reports what became of them. One loop for each server;
//! on PostgreSQL the servers share the queue.

mod audit;
mod call;
mod execute;
mod notification;
mod plan;
mod process;
mod program;
mod run;
mod scan;
mod trash;
mod verify;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deskmate_core::agents::{RUN_JOB, node};
use deskmate_core::call::{Actor, Cx, Surface};
use deskmate_core::gateway::CALL_JOB;
use deskmate_core::job::{self, ANYWHERE, Claimed, Hold, Outcome, Progress};
use deskmate_core::record::VERIFY_JOB;
use deskmate_core::workspace::plan::{EXECUTE_JOB, PLAN_JOB};
use deskmate_core::workspace::scan::SCAN_JOB;
use deskmate_core::workspace::{AUDIT_JOB, TRASH_JOB};
use deskmate_core::{Code, Error, Result, meter, notify, program as programs};
use deskmate_db::{Engine, Tx};
use futures_util::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::effects::notify::Outlets;

/// How long a job stands without a sign of life, and how often one is given.
const LEASE: Duration = Duration::from_secs(30);
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How often an idle worker looks. The look is one read through an index.
const LOOK: Duration = Duration::from_millis(250);
/// How many jobs of a server before this one are taken in one transaction.
const RESCUED_AT_ONCE: u32 = 100;
/// What this version can do, and how many of each a server does beside each other. Notifications have places of their own:
/// a receiver that hangs keeps nothing else waiting. So have looks at whole trees, which take long, and programs, whose jobs
/// wait for plans.
const LANES: &[(&[&str], u32)] = &[
    (&[VERIFY_JOB], 4),
    (&[notify::JOB], 8),
    (&[PLAN_JOB, EXECUTE_JOB], 4),
    (&[SCAN_JOB], 2),
    (&[TRASH_JOB], 1),
    (&[AUDIT_JOB], 1),
    (&[programs::JOB], 4),
    (&[CALL_JOB], 16),
    (&[RUN_JOB], 64),
];

/// Does jobs until the server stops. Jobs under way then are given up and taken again later.
pub(crate) async fn run(app: App, outlets: Outlets, stop: CancellationToken) {
    if let Err(error) = rescue_left_behind(&app).await {
        tracing::warn!(%error, "jobs that a server before this one left behind wait until their leases run out");
    }
    let lanes = LANES.iter().map(|(kinds, at_once)| lane(app.clone(), outlets.clone(), kinds, *at_once, stop.clone()));
    futures_util::future::join_all(lanes).await;
}

/// A file has one server at a time, so what was under way when it opened is nobody's any more.
async fn rescue_left_behind(app: &App) -> Result<()> {
    if app.desk.db.engine() == Engine::Sqlite {
        while app.desk.act(Surface::System, |cx| job::rescue_all(cx, RESCUED_AT_ONCE)).await?.len() >= RESCUED_AT_ONCE as usize {}
    }
    Ok(())
}

async fn lane(app: App, outlets: Outlets, kinds: &'static [&'static str], at_once: u32, stop: CancellationToken) {
    let name = format!("worker-{}-{}", std::process::id(), app.desk.world.opaque_id());
    let slots = Arc::new(Semaphore::new(at_once as usize));
    let mut queued = app.queued.subscribe();
    while !stop.is_cancelled() {
        let (mut places, asked) = (free(&slots), Instant::now());
        let claimed = match places.as_ref().map(OwnedSemaphorePermit::num_permits) {
            Some(most) => claim(&app, &name, kinds, u32::try_from(most).unwrap_or(0)).await,
            None => Vec::new(),
        };
        for claimed in claimed {
            let Some(own) = places.as_mut().and_then(|places| places.split(1)) else { break };
            let task = Running {
                app: app.clone(),
                outlets: outlets.clone(),
                worker: name.clone(),
                claimed: Arc::new(claimed),
                asked,
                cancelled: Arc::default(),
                given_up: Arc::default(),
                slot: Arc::new(Slot { all: Arc::clone(&slots), own: Mutex::new(Some(own)) }),
            };
            let held = app.activity.hold();
            tokio::spawn(async move {
                let slot = Arc::clone(&task.slot);
                task.finish_it().await;
                drop(held);
                slot.lend();
            });
        }
        // What no job needs is free while nothing is looked for.
        drop(places);
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(LOOK) => {}
            _ = queued.changed() => {}
        }
    }
}

/// All places that are free now. They are taken before jobs are claimed for them: a job that waited could take one back meanwhile, and a job
/// that was claimed and finds none would lie until its lease runs out.
fn free(slots: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    let free = u32::try_from(slots.available_permits()).ok().filter(|free| *free > 0)?;
    Arc::clone(slots).try_acquire_many_owned(free).ok()
}

async fn claim(app: &App, worker: &str, kinds: &'static [&'static str], limit: u32) -> Vec<Claimed> {
    // Whether runs are for a node is a question of their place; anything else is done by any server.
    let for_nodes = kinds == [RUN_JOB] && app.desk.server.name().is_some();
    let fence = app.holding.get();
    if for_nodes && fence.is_none() {
        return Vec::new();
    }
    // A look is a read; only something due costs a write.
    let (look, now) = (app.desk.clone(), app.desk.world.now());
    let due = move |tx: &mut Tx<'_>| {
        let mut cx = look.cx(tx, Actor::system(), Surface::System);
        let places = if for_nodes { node::places(&mut cx)? } else { vec![ANYWHERE.to_owned()] };
        Ok::<_, Error>((job::next_due(&mut cx, kinds, &places)?, places))
    };
    let places = match app.desk.db.read(due).await {
        Ok((Some(at), places)) if at <= now => places,
        _ => return Vec::new(),
    };
    let worker = worker.to_owned();
    let ttl = i64::try_from(LEASE.as_micros()).unwrap_or(i64::MAX);
    let claimed = app.desk.act(Surface::System, move |cx| match fence {
        Some(fence) if for_nodes => node::claim_runs(cx, fence, &worker, &places, ttl, limit),
        _ => job::claim_at(cx, &worker, kinds, &places, ttl, limit),
    });
    claimed.await.unwrap_or_else(|error| {
        tracing::warn!(%error, "taking jobs failed; it is tried again");
        Vec::new()
    })
}

/// A job under way.
#[derive(Clone)]
struct Running {
    app: App,
    outlets: Outlets,
    worker: String,
    claimed: Arc<Claimed>,
    /// When the store was asked for the job: its lease lasts from then on at least.
    asked: Instant,
    cancelled: Arc<AtomicBool>,
    /// The lease was lost: somebody else may have the job by now.
    given_up: Arc<AtomicBool>,
    slot: Arc<Slot>,
}

/// A place among the jobs that are done beside each other. It is free again with the job, or while that only waits.
struct Slot {
    all: Arc<Semaphore>,
    own: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Slot {
    fn own(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets others have it.
    fn lend(&self) {
        drop(self.own().take());
    }

    /// Waits until there is one again.
    async fn take_back(&self) {
        if self.own().is_none() {
            let place = Arc::clone(&self.all).acquire_owned().await.ok();
            *self.own() = place;
        }
    }
}

impl Running {
    async fn finish_it(self) {
        let work = Box::pin(self.do_it());
        let outcome = match caught(self.with_heartbeat(work)).await {
            Ok(outcome) => outcome.unwrap_or_else(|error| Outcome::Failed { error: error.to_string(), retry: true }),
            // A run would come to the same point again.
            Err(error) => Outcome::Failed { error, retry: self.claimed.kind != RUN_JOB },
        };
        let (running, kept) = (self.clone(), outcome);
        let done =
            self.app.desk.act(Surface::System, move |cx| job::finish(cx, &running.claimed.job, &running.worker, running.claimed.fence, kept.clone())).await;
        match done {
            Ok(state) => {
                tracing::info!(job = %self.claimed.job, kind = %self.claimed.kind, state = state.name(), "a job ended");
                self.app.telemetry.job_ended(state);
            }
            Err(error) => tracing::warn!(job = %self.claimed.job, %error, "the end of a job could not be reported; it will be taken again"),
        }
    }

    async fn do_it(&self) -> Result<Outcome> {
        match self.claimed.kind.as_str() {
            VERIFY_JOB => verify::run(self).await,
            notify::JOB => notification::run(self).await,
            PLAN_JOB => plan::run(self).await,
            EXECUTE_JOB => execute::run(self).await,
            SCAN_JOB => scan::run(self).await,
            TRASH_JOB => trash::run(self).await,
            AUDIT_JOB => audit::verify(self).await,
            programs::JOB => program::run(self).await,
            CALL_JOB => call::run(self).await,
            RUN_JOB => run::run(self).await,
            other => Ok(Outcome::Failed { error: format!("this version cannot do {other}"), retry: true }),
        }
    }

    /// Gives a sign of life while the work goes on. A lost lease ends the work: somebody else may have it by now. So does
    /// a person who asks for it.
    async fn with_heartbeat(&self, work: impl Future<Output = Result<Outcome>>) -> Result<Outcome> {
        tokio::pin!(work);
        // The lease lasts from when the store did what it was asked, which is not before it was asked; the answer may come late.
        let mut told = self.asked;
        loop {
            let last = told + LEASE.saturating_sub(HEARTBEAT);
            tokio::select! {
                outcome = &mut work => return outcome,
                () = tokio::time::sleep_until(last.min(Instant::now() + HEARTBEAT).into()) => {}
            }
            let asked = Instant::now();
            // A store that says nothing at all is as far away as one that refuses: the work goes on no longer than the lease.
            let beat = tokio::select! {
                outcome = &mut work => return outcome,
                beat = tokio::time::timeout_at(last.into(), self.beat(None)) => beat,
            };
            match beat.unwrap_or_else(|_| Err(Error::new(Code::Unavailable, "the store does not answer"))) {
                Ok(()) => told = asked,
                // The store cannot be asked: until the lease is over, nobody else has the job.
                Err(error) if error.code == Code::Unavailable && told.elapsed() + HEARTBEAT < LEASE => {}
                Err(error) => {
                    self.given_up.store(true, Ordering::Relaxed);
                    tracing::warn!(job = %self.claimed.job, kind = %self.claimed.kind, %error, "a job was given up: its lease could not be kept");
                    return Err(error);
                }
            }
            // A plan stops between its parts and a run between its steps, so that what came of each is known.
            if self.is_cancelled() && self.claimed.kind != EXECUTE_JOB && self.claimed.kind != RUN_JOB {
                return self.stopped().await;
            }
        }
    }

    /// What is left to do when the work was stopped.
    async fn stopped(&self) -> Result<Outcome> {
        match self.claimed.kind.as_str() {
            notify::JOB => notification::stopped(self).await?,
            programs::JOB => program::stopped(self).await?,
            _ => {}
        }
        Ok(Outcome::Cancelled)
    }

    /// Tells how far the work has come, and learns whether it should stop.
    async fn beat(&self, progress: Option<Progress>) -> Result<()> {
        self.beat_at(progress, None).await
    }

    /// The same, and where a further attempt would go on.
    async fn beat_at(&self, progress: Option<Progress>, step: Option<serde_json::Value>) -> Result<()> {
        let running = self.clone();
        let beat = self
            .app
            .desk
            .act(Surface::System, move |cx| job::heartbeat(cx, &running.claimed.job, &running.worker, running.claimed.fence, progress.clone(), step.clone()));
        if beat.await?.cancel_requested {
            self.cancelled.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Refuses to write down anything more once the lease was lost: in the same transaction.
    fn held(&self, cx: &mut Cx<'_, '_>) -> Result<()> {
        job::held(cx, &self.hold())
    }

    /// What shows that this worker has the job.
    fn hold(&self) -> Hold {
        Hold { job: self.claimed.job.clone(), worker: self.worker.clone(), fence: self.claimed.fence }
    }

    /// Whether an agent, or everybody, is paused.
    async fn is_paused(&self, agent: &str) -> Result<bool> {
        let (desk, agent) = (self.app.desk.clone(), agent.to_owned());
        self.app.desk.db.read(move |tx| meter::paused(&mut desk.cx(tx, Actor::system(), Surface::System), &agent)).await
    }

    /// Whether somebody asked to stop.
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Does something that may panic: that is a failure of what is done, and not of the worker, whose job would lie until its lease runs out. What
/// the panic says stands in the server's log alone, for it may repeat what was worked on.
async fn caught<T>(work: impl Future<Output = T>) -> std::result::Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| "the desk made a mistake of its own while it did this; the log of the server says where".to_owned())
}

/// A failure that trying again cannot mend.
fn hopeless(error: &Error) -> Outcome {
    Outcome::Failed { error: error.to_string(), retry: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(slots: &Arc<Semaphore>, own: Option<OwnedSemaphorePermit>) -> Slot {
        Slot { all: Arc::clone(slots), own: Mutex::new(own) }
    }

    #[tokio::test]
    async fn a_panic_is_a_failure_of_what_was_done() {
        let wrong =
            caught(async { assert!(std::hint::black_box(false), "user-provided comparison function does not correctly implement a total order") }).await;
        assert!(wrong.unwrap_err().contains("mistake of its own"));
        assert_eq!(caught(async { 7 }).await, Ok(7));
    }

    #[tokio::test]
    async fn who_takes_a_place_back_gets_none_that_a_claimed_job_needs() {
        let slots = Arc::new(Semaphore::new(2));
        let lent = slot(&slots, None);
        let mut places = free(&slots).expect("both are free");
        let back = lent.take_back();
        tokio::pin!(back);
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut back).await.is_err(), "they are kept for what is claimed now");
        let jobs = [places.split(1).map(|own| slot(&slots, Some(own))), places.split(1).map(|own| slot(&slots, Some(own)))];
        assert!(jobs.iter().all(Option::is_some) && places.split(1).is_none(), "each claimed job has its own");
        drop(places);
        assert!(free(&slots).is_none());
        jobs.iter().flatten().take(1).for_each(Slot::lend);
        back.await;
        assert!(free(&slots).is_none(), "and the next that is free goes to who waited");
    }
}
