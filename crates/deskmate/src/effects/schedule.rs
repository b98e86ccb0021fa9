//! Beginning runs of agents when their moment has come. A look is one read through an index, however many agents there are; on
//! PostgreSQL all servers look, and a moment has one run.

use std::time::Duration;

use deskmate_core::Result;
use deskmate_core::agents;
use deskmate_core::call::Surface;
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// How often it is looked whether anything is due. An agent that is deployed meanwhile is found by the next look.
const LOOK: Duration = Duration::from_millis(250);
/// How many agents are looked at in one transaction.
const AT_ONCE: u32 = 100;

pub(super) async fn run(app: App, stop: CancellationToken) {
    while !stop.is_cancelled() {
        if let Err(error) = start_due(&app).await {
            tracing::warn!(%error, "beginning what is due failed; it is tried again");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

async fn start_due(app: &App) -> Result<()> {
    let now = app.desk.world.now();
    if !matches!(app.desk.db.read(agents::next_due).await?, Some(at) if at <= now) {
        return Ok(());
    }
    while app.desk.act(Surface::System, |cx| agents::start_due(cx, AT_ONCE)).await? >= AT_ONCE as usize {
        app.queued.send_modify(|calls| *calls += 1);
    }
    app.queued.send_modify(|calls| *calls += 1);
    Ok(())
}
