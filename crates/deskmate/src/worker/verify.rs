//! Verifying the record of a running desk, with progress.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deskmate_core::job::{Outcome, Progress};
use deskmate_core::record::{self, Verifier};
use deskmate_core::{Error, Result};
use serde_json::json;

use super::{Running, hopeless};

/// How often progress is told.
const TELL: Duration = Duration::from_millis(500);

pub(super) async fn run(job: &Running) -> Result<Outcome> {
    let db = job.app.desk.db.clone();
    let keys = Arc::clone(&job.app.desk.keys);
    let size = db.read(record::size).await?;
    let verifier = Arc::new(Mutex::new(Some(Verifier::of_store(size, &keys, &[]))));
    let mut told = Instant::now();
    loop {
        if job.is_cancelled() {
            return Ok(Outcome::Cancelled);
        }
        let step = Arc::clone(&verifier);
        let (more, done) = db
            .read(move |tx| {
                let mut verifier = step.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(verifier) = verifier.as_mut() else { return Ok::<_, Error>((false, 0)) };
                Ok((verifier.step(tx)?, verifier.done()))
            })
            .await?;
        if !more {
            break;
        }
        if told.elapsed() >= TELL {
            told = Instant::now();
            let percent = done.saturating_mul(100).checked_div(size).unwrap_or(100);
            job.beat(Some(Progress { percent: u8::try_from(percent).ok(), text: Some(format!("{done} of {size} events")) })).await?;
        }
    }
    let report = db
        .read(move |tx| {
            let verifier = verifier.lock().unwrap_or_else(PoisonError::into_inner).take();
            verifier.map(|verifier| verifier.finish(tx, &keys)).transpose()
        })
        .await?;
    Ok(report.map_or_else(|| hopeless(&Error::conflict("verification did not finish")), |report| Outcome::Done(json!(report))))
}
