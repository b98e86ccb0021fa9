//! Upkeep by the clock: leases that ended are told, requests expire, data goes after its time, and checkpoints are
//! copied out.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deskmate_core::agents::{self, node};
use deskmate_core::bridge::{self, Slice};
use deskmate_core::call::{Actor, Cx, Surface, prune_keys};
use deskmate_core::record::{newest_checkpoint, prune_checkpoints};
use deskmate_core::{Result, format_time, hex, hook, identity, job, meter, notify, request, workspace};
use serde_json::json;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::config::{Endpoint, Retention};
use crate::effects::notify::webhook::{self, Post, Refused};

const SWEEP: Duration = Duration::from_secs(5);
const CLAIMS: Duration = Duration::from_millis(500);
/// Every so many sweeps, which is each minute, data is deleted and a checkpoint copied.
const SWEEPS_PER_ROUND: u32 = 12;
/// How long the rows of credentials and reservations that have ended are kept, in microseconds: 90 days. The record
/// tells of them for ever.
const ENDED_KEPT: i64 = 90 * 86_400_000_000;
/// Every so many sweeps, which is each hour, what idle agents used up is forgotten, old trash is looked for, and the daily
/// look at audit files is put into the queue.
const SWEEPS_PER_HOUR: u32 = 60 * SWEEPS_PER_ROUND;
/// Rows of one transaction, and how many of those one round takes: what is left waits for the next minute.
const SLICE: u32 = 200;
const SLICES_MAX: u32 = 500;

/// Where checkpoints are copied to.
pub(super) struct Copies {
    pub(super) file: Option<PathBuf>,
    pub(super) webhook: Option<Endpoint>,
}

/// Keeps the desk tidy until the server stops.
pub(super) async fn run(app: App, retention: Retention, to: Copies, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut count = 0_u32;
    let (mut copied, mut sent) = (String::new(), Sent::default());
    let mut rounds = Rounds::default();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        told("leases", sweep(&app).await);
        told("requests", sweep_requests(&app).await);
        if count.is_multiple_of(SWEEPS_PER_ROUND) {
            told("clock", app.check_clock().await);
            app.sweep_refusals().await;
            told("retention", prune(&app, retention, &mut rounds, &stop).await);
            if let Some(path) = &to.file {
                copied = copy_checkpoint(&app, path, copied).await;
            }
            if let Some(endpoint) = &to.webhook {
                send_checkpoint(&app, endpoint, &mut sent).await;
            }
        }
        if count.is_multiple_of(SWEEPS_PER_HOUR) {
            told("hooks", prune_hooks(&app).await);
            told("meters", prune_meters(&app, &stop).await);
            told("calls", crate::gateway::prune(&app, retention.calls).await);
            told("runs", prune_runs(&app, retention.runs, &stop).await);
            told("trash", act(&app, workspace::schedule_trash).await);
            told("audit files", act(&app, workspace::schedule_audit).await);
        }
        count = count.wrapping_add(1);
    }
}

fn told(what: &str, done: Result<()>) {
    if let Err(error) = done {
        tracing::warn!(what, %error, "upkeep failed; it is tried again");
    }
}

/// Gives tasks back whose workers gave no sign of life, within a second: so soon the bridge file shows what the desk knows.
pub(super) async fn claims(app: App, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(CLAIMS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => told("claims", sweep_claims(&app).await),
        }
    }
}

async fn sweep_claims(app: &App) -> Result<()> {
    // A look is a read; only a claim that was lost costs a write.
    while app
        .desk
        .db
        .read({
            let world = app.desk.world.clone();
            move |tx| bridge::are_claims_lost(tx, world.now())
        })
        .await?
    {
        act(app, |cx| bridge::sweep_tasks(cx, SLICE)).await?;
    }
    Ok(())
}

/// Tells of other leases that ended without a sign of life, and gives what was held to others.
async fn sweep(app: &App) -> Result<()> {
    while act(app, |cx| bridge::sweep_reservations(cx, SLICE)).await? >= SLICE {}
    while act(app, |cx| job::rescue(cx, SLICE)).await?.len() >= SLICE as usize {}
    while act(app, |cx| hook::sweep(cx, SLICE)).await? >= SLICE {}
    let desk = app.desk.clone();
    // A look is a read; only a server that is gone costs a write.
    if app.desk.db.read(move |tx| node::is_due(&mut desk.cx(tx, Actor::system(), Surface::System))).await? {
        act(app, node::sweep).await?;
    }
    Ok(())
}

/// Forgets what hooks asked long ago.
async fn prune_hooks(app: &App) -> Result<()> {
    while act(app, |cx| hook::prune(cx, SLICE)).await? >= u64::from(SLICE) {}
    Ok(())
}

/// Where each round goes on: what has to stay, such as mail that nobody reads, is passed over once and not in each round.
#[derive(Default)]
struct Rounds {
    messages: Place,
    tasks: Place,
}

/// A place in a list that is gone through again and again.
struct Place(i64, String);

impl Default for Place {
    fn default() -> Self {
        Self(i64::MIN, String::new())
    }
}

impl Place {
    /// Goes on, or back to the beginning. Answers whether there is more in this turn.
    fn advance(&mut self, next: Option<(i64, String)>) -> bool {
        let more = next.is_some();
        *self = next.map_or_else(Self::default, |(time, id)| Self(time, id));
        more
    }
}

/// Expires requests that nobody decided in time, sends what waited too long to the owners, takes up again what was put off, and has
/// people told again.
async fn sweep_requests(app: &App) -> Result<()> {
    while act(app, |cx| request::escalate_due(cx, SLICE)).await? >= SLICE {}
    while act(app, |cx| request::expire_due(cx, SLICE)).await? >= SLICE {}
    while act(app, |cx| request::wake_due(cx, SLICE)).await? >= SLICE {}
    while act(app, |cx| notify::remind_due(cx, SLICE)).await? >= SLICE {}
    crate::gateway::sweep(app).await
}

/// Deletes what was kept long enough.
async fn prune(app: &App, retention: Retention, rounds: &mut Rounds, stop: &CancellationToken) -> Result<()> {
    let now = app.desk.world.now();
    if let Some(kept) = retention.jobs {
        while act(app, move |cx| job::prune(cx, now - kept, SLICE)).await?.more && !stop.is_cancelled() {}
        while act(app, move |cx| notify::prune(cx, now - kept, SLICE)).await? >= u64::from(SLICE) && !stop.is_cancelled() {}
    }
    if let Some(kept) = retention.plans {
        while act(app, move |cx| workspace::plan::prune(cx, now - kept, SLICE)).await? && !stop.is_cancelled() {}
    }
    while act(app, move |cx| identity::prune_credentials(cx, now - ENDED_KEPT, SLICE)).await? >= u64::from(SLICE) && !stop.is_cancelled() {}
    while act(app, move |cx| bridge::prune_reservations(cx, now - ENDED_KEPT, SLICE)).await? >= u64::from(SLICE) && !stop.is_cancelled() {}
    while act(app, |cx| prune_keys(cx, SLICE)).await? >= u64::from(SLICE) && !stop.is_cancelled() {}
    if let Some(kept) = retention.checkpoints {
        while act(app, move |cx| prune_checkpoints(cx, now - kept, SLICE)).await? >= u64::from(SLICE) && !stop.is_cancelled() {}
    }
    if let Some(kept) = retention.messages {
        slices(app, &mut rounds.messages, stop, move |cx, from| bridge::prune_messages(cx, now - kept, from, SLICE)).await?;
    }
    if let Some(kept) = retention.tasks {
        slices(app, &mut rounds.tasks, stop, move |cx, from| bridge::prune_tasks(cx, now - kept, from, SLICE)).await?;
    }
    Ok(())
}

/// Deletes runs and tests of agents that were kept long enough.
async fn prune_runs(app: &App, kept: Option<i64>, stop: &CancellationToken) -> Result<()> {
    let Some(kept) = kept else { return Ok(()) };
    while act(app, move |cx| agents::prune(cx, cx.now() - kept, SLICE)).await? && !stop.is_cancelled() {}
    Ok(())
}

/// Deletes uses of idle agents that count no longer; those of others go as they act.
async fn prune_meters(app: &App, stop: &CancellationToken) -> Result<()> {
    let mut from = Some((String::new(), String::new()));
    while let (Some((agent, scope)), false) = (from.take(), stop.is_cancelled()) {
        from = act(app, move |cx| meter::prune_idle(cx, (&agent, &scope), SLICE)).await?;
    }
    Ok(())
}

/// Takes slice after slice, each in its own transaction, until the end of the list or of this round's share.
async fn slices(
    app: &App,
    place: &mut Place,
    stop: &CancellationToken,
    slice: impl Fn(&mut Cx<'_, '_>, &(i64, String)) -> Result<Slice> + Clone + Send + 'static,
) -> Result<()> {
    for _ in 0..SLICES_MAX {
        if stop.is_cancelled() {
            return Ok(());
        }
        let (slice, from) = (slice.clone(), (place.0, place.1.clone()));
        if !place.advance(act(app, move |cx| slice(cx, &from)).await?.next) {
            return Ok(());
        }
    }
    Ok(())
}

async fn act<T: Send + 'static>(app: &App, act: impl FnMut(&mut Cx<'_, '_>) -> Result<T> + Send + 'static) -> Result<T> {
    app.desk.act(Surface::System, act).await
}

/// The newest checkpoint, unless it is the one that was copied last.
async fn newer_checkpoint(app: &App, copied: &str) -> Option<String> {
    match app.desk.db.read(newest_checkpoint).await {
        Ok(newest) => newest.filter(|newest| newest != copied),
        Err(error) => {
            tracing::warn!(%error, "the checkpoint could not be read; it is tried again");
            None
        }
    }
}

/// What became of sending checkpoints elsewhere.
#[derive(Default)]
struct Sent {
    /// The last one that arrived.
    newest: String,
    /// Until when the receiver does not want another one, in microseconds.
    not_before: i64,
}

/// The longest that a receiver can put checkpoints off: what is newer than the last copy is not protected.
const PUT_OFF_MAX: Duration = Duration::from_hours(1);

impl Sent {
    /// The receiver asks to be left alone.
    fn put_off(&mut self, now: i64, by: Duration) {
        self.not_before = now.saturating_add(i64::try_from(by.min(PUT_OFF_MAX).as_micros()).unwrap_or(i64::MAX));
    }

    fn is_put_off(&self, now: i64) -> bool {
        now < self.not_before
    }
}

/// Sends the newest checkpoint to a receiver elsewhere. This is no job: only the newest one matters, it is sent again
/// each minute until it arrived, and events about it would make a new one each time.
async fn send_checkpoint(app: &App, endpoint: &Endpoint, sent: &mut Sent) {
    let now = app.desk.world.now();
    if sent.is_put_off(now) {
        return;
    }
    let Some(newest) = newer_checkpoint(app, &sent.newest).await else { return };
    let Ok(digest) = deskmate_core::digest(&newest) else { return };
    let id = format!("checkpoint_{}", hex(&digest));
    let data = json!({ "checkpoint": newest, "keys": app.desk.keys.keys() });
    let body = json!({ "type": "record.checkpoint", "timestamp": format_time(now), "data": data }).to_string();
    match webhook::post(endpoint, Post { id: &id, at: now / 1_000_000, body: &body }).await {
        Ok(()) => sent.newest = newest,
        Err(error) => {
            if let Refused::Later { by, .. } = &error {
                sent.put_off(now, *by);
            }
            let host = endpoint.url.host().unwrap_or_default();
            tracing::error!(host, ?error, "the checkpoint could not be sent; what is newer than the last copy is not protected");
        }
    }
}

/// Appends the newest checkpoint to a file elsewhere.
async fn copy_checkpoint(app: &App, path: &Path, copied: String) -> String {
    let Some(newest) = newer_checkpoint(app, &copied).await else { return copied };
    let (target, line) = (path.to_owned(), newest.clone());
    match tokio::task::spawn_blocking(move || append(&target, &line)).await {
        Ok(Ok(())) => newest,
        Ok(Err(error)) => {
            tracing::error!(file = %path.display(), %error, "the checkpoint could not be copied; what is newer than the last copy is not protected");
            copied
        }
        Err(_) => copied,
    }
}

/// One JSON string for each line, on disk before it counts.
fn append(path: &Path, checkpoint: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path)?;
    let line = format!("{}\n", serde_json::Value::from(checkpoint));
    file.write_all(line.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_puts_checkpoints_off_for_an_hour_at_most() {
        let (now, minute) = (1_000_000_000, 60_000_000);
        let mut sent = Sent::default();
        assert!(!sent.is_put_off(now));
        sent.put_off(now, Duration::from_mins(2));
        assert!(sent.is_put_off(now + minute) && !sent.is_put_off(now + 2 * minute));
        sent.put_off(now, Duration::MAX);
        assert!(sent.is_put_off(now + 59 * minute) && !sent.is_put_off(now + 60 * minute));
    }

    #[test]
    fn a_round_goes_on_where_the_last_one_ended() {
        let mut place = Place::default();
        assert!(place.advance(Some((7, "m".to_owned()))));
        assert_eq!((place.0, place.1.as_str()), (7, "m"), "what has to stay is not looked at again at once");
        assert!(!place.advance(None));
        assert_eq!(place.0, i64::MIN, "and then from the beginning");
    }
}
