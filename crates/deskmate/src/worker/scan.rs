//! Looking at a tree on threads of its own, with signs of how far it has come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deskmate_core::call::Surface;
use deskmate_core::job::{Outcome, Progress};
use deskmate_core::workspace::scan;
use deskmate_core::{Code, Error, Result};
use deskmate_hands::files::{self, Watch};

use super::{Running, hopeless};
use crate::hands::survey;

/// How often progress is told, and it is learned whether to stop.
const TELL: Duration = Duration::from_millis(500);

pub(super) async fn run(running: &Running) -> Result<Outcome> {
    let input = running.claimed.input.clone();
    let (root, survey) = match running.app.desk.act(Surface::System, move |cx| scan::surveyed(cx, &input)).await {
        Ok(found) => found,
        Err(error) if error.code == Code::Internal => return Err(error),
        Err(error) => return Ok(hopeless(&error)),
    };
    let (hands, stop) = (running.app.hands.clone(), Arc::clone(&running.cancelled));
    let seen: Arc<(AtomicU64, AtomicU64)> = Arc::default();
    let counted = Arc::clone(&seen);
    let mut looking = tokio::task::spawn_blocking(move || {
        let tell = |progress: files::Progress| {
            counted.0.store(progress.entries, Ordering::Relaxed);
            counted.1.store(progress.bytes, Ordering::Relaxed);
        };
        survey::run(&hands.root(&root)?.within(&survey.within), &survey, &Watch { cancel: Some(&*stop), progress: Some(&tell) })
    });
    loop {
        tokio::select! {
            done = &mut looking => {
                let done = done.map_err(|_| Error::new(Code::Internal, "looking at a tree ended unexpectedly"))?;
                return Ok(match done {
                    _ if running.is_cancelled() => Outcome::Cancelled,
                    Ok(found) => Outcome::Done(found),
                    Err(error) => hopeless(&error),
                });
            }
            () = tokio::time::sleep(TELL) => {
                let (entries, bytes) = (seen.0.load(Ordering::Relaxed), seen.1.load(Ordering::Relaxed));
                let progress = Progress { percent: None, text: Some(format!("{entries} entries, {bytes} bytes")) };
                // Whoever lost the lease stops: somebody else looks by now.
                running.beat(Some(progress)).await.inspect_err(|_| running.cancelled.store(true, Ordering::Relaxed))?;
            }
        }
    }
}
