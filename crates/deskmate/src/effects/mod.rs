//! Effects: what the server does by itself, beside answering calls. Each follows the record or the clock, acts through
//! the core's operations, and holds no rule of its own.
//!
//! - `bridge_file`: the file that people write with `sqlite3`, kept in step with the desk.
//! - `notify`: telling people outside that something waits.
//! - `upkeep`: leases that ended, data whose time to be kept is over, copies of checkpoints.
//!
//! `outbound` is how they speak to other programs.

mod bridge_file;
pub(crate) mod notify;
mod outbound;
mod upkeep;

use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::config::{BridgeFile, Settings};
use crate::effects::notify::Outlets;

/// The effects of a running server.
pub(crate) struct Effects {
    bridge_file: Option<bridge_file::Edge>,
}

impl Effects {
    /// Starts them all. Notifications go on where they have `begun`.
    pub(crate) fn start(app: &App, settings: &Settings, outlets: Outlets, begun: u64, stop: &CancellationToken) -> Self {
        let copies = upkeep::Copies { file: settings.checkpoint_copy.clone(), webhook: settings.checkpoint_webhook.clone() };
        tokio::spawn(upkeep::run(app.clone(), settings.retention, copies, stop.clone()));
        tokio::spawn(notify::run(app.clone(), outlets, begun, stop.clone()));
        let bridge_file = match &settings.bridge_file {
            BridgeFile::Off => None,
            BridgeFile::At(path) => bridge_file::Edge::start(app.clone(), path.clone(), &settings.home),
        };
        Self { bridge_file }
    }

    /// Lets what is under way come to its end.
    pub(crate) async fn finish(self) {
        if let Some(edge) = self.bridge_file {
            drop(tokio::task::spawn_blocking(move || edge.stop()).await);
        }
    }
}
