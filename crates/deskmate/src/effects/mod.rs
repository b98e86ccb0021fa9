//! Effects: what the server does by itself, beside answering calls. Each follows the record or the clock, acts through
//! the core's operations, and holds no rule of its own.
//!
//! - `bridge_file`: the file that people write with `sqlite3`, kept in step with the desk.
//! - `notify`: telling people outside that something waits.
//! - `node`: telling the desk that this server is there.
//! - `spans`: sending spans to an OpenTelemetry collector.
//! - `schedule`: beginning runs of agents that are due.
//! - `upkeep`: leases that ended, data whose time to be kept is over, copies of checkpoints.
//!
//! `outbound` is how they speak to other programs.

mod bridge_file;
mod node;
pub(crate) mod notify;
pub(crate) mod outbound;
mod schedule;
mod spans;
mod upkeep;

use std::time::Duration;

use deskmate_db::Engine;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::config::{BridgeFile, Settings};
use crate::effects::notify::Outlets;
use crate::telemetry::Span;

/// How long telling the desk that this server ends may take.
const LEAVING_MAX: Duration = Duration::from_secs(5);

/// The effects of a running server.
pub(crate) struct Effects {
    bridge_file: Option<bridge_file::Edge>,
    exporter: Option<spans::Exporter>,
    node: Option<JoinHandle<()>>,
}

impl Effects {
    /// Starts them all. Notifications go on where they have `begun`; spans come out of their queue, if they are on.
    pub(crate) fn start(app: &App, settings: &Settings, outlets: Outlets, begun: u64, queue: Option<Receiver<Span>>, stop: &CancellationToken) -> Self {
        let copies = upkeep::Copies { file: settings.checkpoint_copy.clone(), webhook: settings.checkpoint_webhook.clone() };
        tokio::spawn(upkeep::run(app.clone(), settings.retention, copies, stop.clone()));
        tokio::spawn(upkeep::claims(app.clone(), stop.clone()));
        tokio::spawn(notify::run(app.clone(), outlets, begun, stop.clone()));
        tokio::spawn(schedule::run(app.clone(), stop.clone()));
        let bridge_file = match &settings.bridge_file {
            BridgeFile::Off => None,
            BridgeFile::At(path) => bridge_file::Edge::start(app.clone(), path.clone(), &settings.home),
        };
        let exporter = match (&settings.telemetry.collector, queue, &app.telemetry.spans) {
            (Some(collector), Some(queue), Some(spans)) => Some(spans::Exporter::start(collector, queue, spans.clone(), app.desk.world.opaque_id())),
            _ => None,
        };
        // A desk on SQLite has one server, and nobody to tell.
        let node = (app.desk.db.engine() == Engine::Postgres).then(|| tokio::spawn(node::run(app.clone(), stop.clone())));
        Self { bridge_file, exporter, node }
    }

    /// Lets what is under way come to its end.
    pub(crate) async fn finish(self) {
        if let Some(edge) = self.bridge_file {
            drop(tokio::task::spawn_blocking(move || edge.stop()).await);
        }
        if let Some(exporter) = self.exporter {
            exporter.finish().await;
        }
        if let Some(node) = self.node {
            drop(tokio::time::timeout(LEAVING_MAX, node).await);
        }
    }
}
