//! What came of calls, on its way to the record: nobody waits for it, and many are told in one transaction.

use std::time::Duration;

use deskmate_core::call::Surface;
use deskmate_core::gateway::{self, Ended};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::Gateway;
use crate::app::App;

/// How long outcomes are gathered, and how many are told together. Each telling is a commit that calls would wait behind, so it is
/// as seldom as what is promised allows: within a tenth of a second.
const GATHER: Duration = Duration::from_millis(50);
const TOGETHER: usize = 200;
/// How long to wait when the store is away.
const RETRY: Duration = Duration::from_millis(500);

impl Gateway {
    /// Takes what came of a call.
    pub(super) fn ended(&self, app: &App, ended: Ended) {
        let sender = self.0.ended.get_or_init(|| {
            let (sender, receiver) = unbounded_channel();
            tokio::spawn(tell(app.clone(), receiver));
            sender
        });
        // Whoever tells them goes with the process.
        drop(sender.send(ended));
    }
}

async fn tell(app: App, mut waiting: UnboundedReceiver<Ended>) {
    let mut together = Vec::new();
    while waiting.recv_many(&mut together, TOGETHER).await > 0 {
        tokio::time::sleep(GATHER).await;
        while together.len() < TOGETHER
            && let Ok(ended) = waiting.try_recv()
        {
            together.push(ended);
        }
        let calls = std::sync::Arc::new(std::mem::take(&mut together));
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
