//! What came of calls, on its way to the record: nobody waits for it, and many are told in one transaction.

use std::time::Duration;

use deskmate_core::call::Surface;
use deskmate_core::gateway::{self, Ended};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

use super::Gateway;
use crate::app::App;

/// What is promised: an outcome is on disk within this time.
const PROMISED: Duration = Duration::from_millis(100);
/// How long outcomes are gathered, and how many are told together. Each telling is a commit that calls would wait behind, so it is
/// as seldom as what is promised allows.
const GATHER: Duration = Duration::from_millis(50);
const TOGETHER: usize = 200;
// What is left of the promise is for the commit itself, and for the one before it, which may be under way.
const _: () = assert!(2 * GATHER.as_millis() <= PROMISED.as_millis());
/// How long to wait when the store is away.
const RETRY: Duration = Duration::from_millis(500);

/// What came of a call, and since when that is known.
pub(super) struct Came {
    since: Instant,
    ended: Ended,
}

impl Gateway {
    /// Takes what came of a call.
    pub(super) fn ended(&self, app: &App, ended: Ended) {
        let sender = self.0.ended.get_or_init(|| {
            let (sender, receiver) = unbounded_channel();
            tokio::spawn(tell(app.clone(), receiver));
            sender
        });
        // Whoever tells them goes with the process.
        drop(sender.send(Came { since: Instant::now(), ended }));
    }
}

/// The outcomes that are told next: those that are there once the oldest has waited long enough, or as many as go together. What
/// waited behind others has waited already.
async fn gather(waiting: &mut UnboundedReceiver<Came>) -> Vec<Ended> {
    let mut together = Vec::new();
    waiting.recv_many(&mut together, TOGETHER).await;
    if let Some(oldest) = together.first().filter(|_| together.len() < TOGETHER) {
        tokio::time::sleep_until(oldest.since + GATHER).await;
        while together.len() < TOGETHER
            && let Ok(next) = waiting.try_recv()
        {
            together.push(next);
        }
    }
    together.into_iter().map(|came| came.ended).collect()
}

async fn tell(app: App, mut waiting: UnboundedReceiver<Came>) {
    loop {
        let calls = std::sync::Arc::new(gather(&mut waiting).await);
        if calls.is_empty() {
            return;
        }
        loop {
            let told = std::sync::Arc::clone(&calls);
            match app.desk.act(Surface::System, move |cx| gateway::end(cx, &told)).await {
                Ok(()) => break,
                Err(error) if matches!(error.code, deskmate_core::Code::Unavailable | deskmate_core::Code::Limited) && !app.desk.db.is_closed() => {
                    tracing::warn!(%error, "what came of calls could not be told; it is tried again");
                    tokio::time::sleep(RETRY).await;
                }
                Err(error) => {
                    tracing::error!(%error, calls = calls.len(), "what came of calls could not be told; they will count as not known");
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use deskmate_core::request::Outcome;
    use futures_util::FutureExt;
    use tokio::sync::mpsc::UnboundedSender;

    use super::*;

    fn come(sender: &UnboundedSender<Came>, since: Instant, count: usize) {
        for number in 0..count {
            let ended = Ended { call: number.to_string(), outcome: Outcome::Done, micros: 1, bytes: 0, note: None, result: None, digest: None };
            assert!(sender.send(Came { since, ended }).is_ok());
        }
    }

    #[tokio::test]
    async fn outcomes_are_gathered_for_a_while_and_never_longer() {
        let (sender, mut waiting) = unbounded_channel();
        let now = Instant::now();
        come(&sender, now, 1);
        assert!(gather(&mut waiting).now_or_never().is_none(), "others may come, and go along");
        // That look took the one; it was dropped with it.
        let long_ago = now.checked_sub(Duration::from_secs(1)).expect("the machine has run for a second");
        come(&sender, long_ago, 3);
        come(&sender, now, 2);
        let told = gather(&mut waiting).now_or_never().expect("the oldest has waited: nobody waits any more");
        assert_eq!(told.len(), 5, "those that came since go along");
        come(&sender, now, TOGETHER + 1);
        let told = gather(&mut waiting).now_or_never().expect("so many are told at once, however new they are");
        assert_eq!(told.len(), TOGETHER);
        drop(sender);
        assert_eq!(gather(&mut waiting).await.len(), 1);
        assert!(gather(&mut waiting).await.is_empty(), "whoever sends them is gone");
    }
}
