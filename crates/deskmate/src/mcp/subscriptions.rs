//! Telling clients that something they follow has changed. What changed is found by reading it again with the
//! follower's own credential, so nobody is told about what they may not read, and a revoked credential ends it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deskmate_core::call::{Call, Credential, Surface};
use deskmate_core::{Error, digest};
use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSink};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use super::resources::Found;
use crate::app::App;

/// Changes that come this close together are told once.
const GATHER: Duration = Duration::from_millis(20);
/// What grows with every event is told at most this often.
const GATHER_GROWTH: Duration = Duration::from_secs(1);
/// How many addresses one client may follow at a time.
pub(super) const FOLLOWED_MAX: usize = 64;

/// Where updates go: the two eras differ only in this.
#[derive(Clone)]
pub(super) enum Sink {
    /// `resources/subscribe`: notifications of the connection.
    Connection(Peer<RoleServer>),
    /// `subscriptions/listen`: notifications of that request.
    Listen(SubscriptionSink),
}

impl Sink {
    async fn updated(&self, uri: &str) -> bool {
        match self {
            Self::Connection(peer) => peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok(),
            Self::Listen(sink) => sink.notify_resource_updated(uri).await.is_ok(),
        }
    }
}

/// Follows one resource until the client is gone or may no longer read it.
pub(super) async fn follow(app: App, credential: Credential, found: Found, sink: Sink) {
    if let Err(error) = follow_on(&app, &credential, &found, &sink).await {
        tracing::info!(uri = found.uri(), %error, "a subscription ended");
    }
}

async fn follow_on(app: &App, credential: &Credential, found: &Found, sink: &Sink) -> Result<(), Error> {
    let mut size = app.live.size();
    let mut known: Option<[u8; 32]> = None;
    loop {
        let topic = topic(app, credential, found).await?;
        // Registered before the look, so that nothing between the look and the wait is missed.
        let mut woken = Box::pin(topic.notified());
        woken.as_mut().enable();
        size.mark_unchanged();
        let now = digest(&found.value(app, credential).await?.0)?;
        if known.is_some_and(|known| known != now) && !sink.updated(found.uri()).await {
            return Ok(());
        }
        known = Some(now);
        if found.grows() {
            if size.changed().await.is_err() {
                return Ok(());
            }
            tokio::time::sleep(GATHER_GROWTH).await;
        } else {
            woken.await;
            tokio::time::sleep(GATHER).await;
        }
    }
}

/// What wakes a follower: the subject itself, or the reader, asked anew each time so that a revoked credential shows.
async fn topic(app: &App, credential: &Credential, found: &Found) -> Result<Arc<Notify>, Error> {
    if let Some(subject) = found.topic() {
        return Ok(app.live.topic(&subject));
    }
    let call = Call { credential: credential.clone(), surface: Surface::Mcp, operation: "desk_whoami".to_owned(), input: json!({}) };
    Ok(app.live.topic(&app.call(call).await?.actor.id))
}

/// What one connection of the older era follows.
#[derive(Clone, Default)]
pub(super) struct Followed {
    by_uri: Arc<Mutex<HashMap<String, AbortOnDropHandle<()>>>>,
}

impl Followed {
    /// Starts to follow. `false` when the connection follows too much already.
    pub(super) fn start(&self, app: App, credential: Credential, found: Found, peer: Peer<RoleServer>) -> bool {
        let mut followed = self.by_uri.lock().unwrap_or_else(PoisonError::into_inner);
        let uri = found.uri().to_owned();
        if followed.len() >= FOLLOWED_MAX && !followed.contains_key(&uri) {
            return false;
        }
        let task = tokio::spawn(follow(app, credential, found, Sink::Connection(peer)));
        followed.insert(uri, AbortOnDropHandle::new(task));
        true
    }

    /// Stops.
    pub(super) fn stop(&self, uri: &str) {
        self.by_uri.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }
}
