//! Telling the desk that this server is there, and whether it offers itself for runs (PostgreSQL). A server that cannot tell it for
//! the time of its lease counts as gone.

use std::time::Duration;

use deskmate_core::agents::node;
use deskmate_core::call::Surface;
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// How often a sign of life is given.
const BEAT: Duration = Duration::from_secs(5);

pub(super) async fn run(app: App, stop: CancellationToken) {
    let mut refused = false;
    loop {
        let fence = app.holding.get();
        match app.desk.act(Surface::System, move |cx| node::beat(cx, fence)).await {
            Ok(held) => {
                app.holding.set(held);
                if held.is_none() && !refused {
                    tracing::warn!(
                        node = app.desk.server.name(),
                        "another server has this name, or had it until a moment ago: this one takes no runs until its lease is over"
                    );
                }
                refused = held.is_none();
                if held != fence {
                    app.queued.send_modify(|calls| *calls += 1);
                }
            }
            Err(error) => tracing::warn!(%error, "the desk could not be told that this server is there; it is tried again"),
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(BEAT) => {}
        }
    }
    if let Some(fence) = app.holding.get()
        && let Err(error) = app.desk.act(Surface::System, move |cx| node::leave(cx, fence)).await
    {
        tracing::warn!(%error, "the desk could not be told that this server ends; it counts as gone when its lease is over");
    }
}
