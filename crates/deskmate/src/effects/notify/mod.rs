//! Notifications: a follower of the record that makes them, and the two ways in which they leave the desk. The jobs that
//! deliver them are in the worker; nobody who decides ever waits for one.

pub(crate) mod desktop;
pub(crate) mod webhook;

use std::sync::Arc;
use std::time::Duration;

use deskmate_core::Result;
use deskmate_core::call::Surface;
use deskmate_core::notify::{self, Channel, Look};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::config::{Outlet, Way};

/// How many events one look takes.
const LOOK: u32 = 1_000;
/// A follower is in no hurry: events that come one after the other are looked at together.
const PACE: Duration = Duration::from_millis(200);
/// After so many events without anything to tell, the place in the record is written down all the same.
const KEEP_AFTER: u64 = 20_000;

/// The channels of the configuration, with what it takes to use them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlets(Arc<Vec<Outlet>>);

impl Outlets {
    pub(crate) fn new(outlets: Vec<Outlet>) -> Self {
        Self(Arc::new(outlets))
    }

    /// A channel by its name.
    pub(crate) fn find(&self, name: &str) -> Option<&Outlet> {
        self.0.iter().find(|outlet| outlet.channel.name == name)
    }

    fn channels(&self) -> Vec<Channel> {
        self.0.iter().map(|outlet| outlet.channel.clone()).collect()
    }
}

/// Writes down which channels there are, and finds the place in the record to go on from. This is done before anybody can
/// call: what the first caller does is told like everything after it.
pub(crate) async fn begin(app: &App, outlets: &Outlets) -> Result<u64> {
    for outlet in outlets.0.iter() {
        if let Way::Desktop(command) = &outlet.way {
            let is_away = !desktop::is_there(command);
            app.desk.away.set("desktop", is_away);
            if is_away {
                tracing::warn!(command = ?command.first(), "desktop notifications are configured, but the program that shows them is not there");
            }
        }
    }
    let channels = outlets.channels();
    let begun = app.desk.act(Surface::System, move |cx| {
        notify::register(cx, &channels)?;
        if channels.is_empty() { Ok(0) } else { notify::begin(cx) }
    });
    begun.await
}

/// Follows the record from a place on until the server stops, where there is anybody to tell.
pub(super) async fn run(app: App, outlets: Outlets, begun: u64, stop: CancellationToken) {
    let channels = outlets.channels();
    if !channels.is_empty() {
        follow(app, channels, begun, stop).await;
    }
}

async fn follow(app: App, channels: Vec<Channel>, begun: u64, stop: CancellationToken) {
    let mut grown = app.live.size();
    let (mut next, mut kept) = (begun, begun);
    loop {
        grown.mark_unchanged();
        match step(&app, &channels, next, kept).await {
            Ok(done) => {
                let more = done.next - next >= u64::from(LOOK);
                next = done.next;
                if done.told {
                    kept = next;
                }
                if more {
                    continue;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "following the record for notifications failed; it is tried again");
                grown.mark_changed();
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PACE) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = grown.changed() => if changed.is_err() { return },
        }
    }
}

struct Step {
    next: u64,
    told: bool,
}

/// Looks on; only what may be worth a message costs a write.
async fn step(app: &App, channels: &[Channel], from: u64, kept: u64) -> Result<Step> {
    let look: Look = app.desk.db.read(move |tx| notify::look(tx, from, LOOK)).await?;
    if !look.rings() && look.next - kept < KEEP_AFTER {
        return Ok(Step { next: look.next, told: false });
    }
    let channels = channels.to_vec();
    let next = app.desk.act(Surface::System, move |cx| notify::follow(cx, &channels, &look)).await?;
    Ok(Step { next, told: true })
}
