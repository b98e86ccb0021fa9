//! Tools whose answer is a task: a job of the desk's own queue, done by a worker of the fixtures.

use std::sync::Arc;
use std::time::Duration;

use deskmate_core::Error;
use deskmate_core::call::{Call, Credential, Surface};
use deskmate_core::job::{self, Claimed, NewJob, Outcome, Owner};
use deskmate_core::limits::LEASE_MIN;
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CreateTaskResult, Task, TaskStatus};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::resources::fault;
use super::Shared;
use crate::app::App;

const KIND: &str = "conformance.work";
/// Work whose worker gives no sign of life, so that the desk gives it up.
const LOST: &str = "conformance.lost";
const WORKER: &str = "conformance";
const LOOK: Duration = Duration::from_millis(50);
const LEASE_US: i64 = 120_000_000;
/// How long a task waits for what it asked for.
const ASKED_SECONDS_MAX: f64 = 100.0;
/// Long enough for any scenario.
const KEPT_MS: u64 = 600_000;

/// Puts work into the queue for the caller and answers its task.
pub(super) async fn start(app: &App, credential: Credential, work: Value) -> Result<CallToolResponse, ErrorData> {
    let call = Call { credential, surface: Surface::Mcp, operation: "desk_whoami".to_owned(), input: json!({}) };
    let owner = Owner::from(&app.call(call).await.map_err(|error| fault(&error))?.actor);
    let queued = app.desk.act(Surface::Mcp, move |cx| {
        let kind = if work.get("lost").is_some() { LOST } else { KIND };
        let job = job::enqueue(cx, NewJob { owner: Some(owner.clone()), attempts_max: 1, ..NewJob::new(kind, work.clone()) })?.job;
        Ok((job, deskmate_core::format_time(cx.now())))
    });
    let (job, now) = queued.await.map_err(|error| fault(&error))?;
    let task = Task::new(job, TaskStatus::Working, now.clone(), now).with_ttl_ms(KEPT_MS).with_poll_interval_ms(200);
    Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
}

/// Does the work of the fixtures until the server stops.
pub(super) async fn work(app: App, shared: Arc<Shared>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let lost = app.desk.act(Surface::System, |cx| job::claim(cx, WORKER, &[LOST], micros(LEASE_MIN), 16)).await.unwrap_or_default();
        if !lost.is_empty() {
            tokio::spawn(give_up(app.clone()));
        }
        let claimed = app.desk.act(Surface::System, |cx| job::claim(cx, WORKER, &[KIND], LEASE_US, 16)).await.unwrap_or_default();
        for claimed in claimed {
            let (app, shared) = (app.clone(), Arc::clone(&shared));
            tokio::spawn(async move {
                let job = claimed.job.clone();
                if let Err(error) = finish(&app, &shared, claimed).await {
                    tracing::warn!(%error, "a fixture did not finish");
                }
                shared.asking.forget(&job);
            });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What the desk does with jobs whose lease ran out, as soon as it has; the suite does not wait for the next look.
async fn give_up(app: App) {
    tokio::time::sleep(LEASE_MIN + LOOK).await;
    if let Err(error) = app.desk.act(Surface::System, |cx| job::rescue(cx, 16)).await {
        tracing::warn!(%error, "a lost fixture was not given up");
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

async fn finish(app: &App, shared: &Shared, claimed: Claimed) -> Result<(), Error> {
    let asks = claimed.input.get("asks").and_then(Value::as_str).and_then(|tool| shared.data.inputs(tool));
    let seconds = if asks.is_some() { ASKED_SECONDS_MAX } else { claimed.input.get("seconds").and_then(Value::as_f64).unwrap_or_default().clamp(0.0, 100.0) };
    if let Some(asks) = &asks {
        shared.asking.ask(&claimed.job, asks.clone());
    }
    let until = tokio::time::Instant::now() + Duration::from_secs_f64(seconds);
    let mut outcome = match claimed.input.get("error").and_then(Value::as_str) {
        Some(error) => Outcome::Failed { error: error.to_owned(), retry: false },
        None => Outcome::Done(claimed.input.get("answer").cloned().unwrap_or_default()),
    };
    while tokio::time::Instant::now() < until && (asks.is_none() || shared.asking.pending(&claimed.job).is_some()) {
        let (id, fence) = (claimed.job.clone(), claimed.fence);
        let beat = app.desk.act(Surface::System, move |cx| job::heartbeat(cx, &id, WORKER, fence, None, None)).await?;
        if beat.cancel_requested {
            outcome = Outcome::Cancelled;
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    let (id, fence) = (claimed.job, claimed.fence);
    app.desk.act(Surface::System, move |cx| job::finish(cx, &id, WORKER, fence, outcome.clone())).await.map(drop)
}
