//! Verifying the record of a running desk, with progress.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deskmate_core::job::{Outcome, Progress};
use deskmate_core::record::{self, Verifier};
use deskmate_core::{Error, Result};

use super::{Running, hopeless};
use crate::keep::{self, Elsewhere};

/// How often progress is told.
const TELL: Duration = Duration::from_millis(500);

pub(super) async fn run(job: &Running) -> Result<Outcome> {
    let db = job.app.desk.db.clone();
    let keys = Arc::clone(&job.app.desk.keys);
    // Read before the record: what grows meanwhile must not look like something that was cut off.
    let (kept, elsewhere) = kept(job.app.checkpoint_copy.clone()).await;
    let size = db.read(record::size).await?;
    let verifier = Arc::new(Mutex::new(Some(Verifier::of_store(size, &keys, &kept))));
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
    Ok(report.map_or_else(|| hopeless(&Error::conflict("verification did not finish")), |report| Outcome::Done(elsewhere.beside(&report))))
}

/// The checkpoints that were copied elsewhere.
async fn kept(copy: Option<Arc<Path>>) -> (Vec<String>, Elsewhere) {
    let read = tokio::task::spawn_blocking(move || {
        let copied = keep::copied_checkpoints(copy.as_deref());
        let error = match &copied {
            Ok((_, Elsewhere::NotFound)) => "there are none".to_owned(),
            Ok(_) => return copied.ok(),
            Err(error) => error.to_string(),
        };
        let file = copy.as_deref().map(Path::display);
        tracing::warn!(file = file.map(tracing::field::display), error, "the checkpoints that were copied cannot be read: what was cut off does not show");
        copied.ok()
    });
    read.await.ok().flatten().unwrap_or((Vec::new(), Elsewhere::NotFound))
}
