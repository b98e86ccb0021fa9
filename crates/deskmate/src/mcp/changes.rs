//! Telling clients that the tools behind the desk which are there for them have changed: a server offers others, a person accepted
//! one, or the rules are others. What changed is found by listing with the follower's own credential, so nobody is told about what
//! they may not see.

use std::sync::Arc;
use std::time::Duration;

use deskmate_core::call::Credential;
use deskmate_core::record::EventRow;
use deskmate_core::{Code, digest};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::handler::Endpoint;
use super::passage;
use crate::front::Sink;
use crate::upstream::Change;

/// Changes that come this close together are told once.
const GATHER: Duration = Duration::from_millis(100);
/// How long a follower waits when the store is away.
const RETRY: Duration = Duration::from_secs(1);

/// Whether something that happened may change which tools are there for somebody.
fn concerns(event: &EventRow) -> bool {
    event.kind.starts_with("tool.") || matches!(event.kind.as_str(), "rulebook.changed" | "mount.forgotten")
}

/// Follows the tools of a caller until the client is gone, or the caller may not list them any more.
pub(super) async fn follow(endpoint: Arc<Endpoint>, credential: Credential, sink: Sink) {
    // Opened before the first look, so that nothing between a look and the wait is missed.
    let mut news = endpoint.app.live.news();
    let mut known: Option<[u8; 32]> = None;
    loop {
        let now = match passage::tools(&endpoint, credential.clone()).await {
            Ok(tools) => digest(&serde_json::to_value(tools).unwrap_or_default()).ok(),
            Err(error) if matches!(error.code, Code::Unavailable | Code::Limited | Code::Internal) => {
                tokio::time::sleep(RETRY).await;
                continue;
            }
            // A mount that was taken away has no tools, and may come back.
            Err(error) if error.code == Code::NotFound => None,
            Err(_) => return,
        };
        let told = known.replace(now.unwrap_or_default()).is_none_or(|before| Some(before) == now);
        if !told && !sink.tell(&Change::Tools).await {
            return;
        }
        loop {
            match news.recv().await {
                Ok(event) if concerns(&event) => break,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return,
            }
        }
        tokio::time::sleep(GATHER).await;
        while !matches!(news.try_recv(), Err(TryRecvError::Empty | TryRecvError::Closed)) {}
    }
}
