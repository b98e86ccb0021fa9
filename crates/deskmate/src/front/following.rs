//! What changes at an upstream, passed on to a client that wants to know. The eras differ in where it goes: over the connection
//! in the older one, over a stream that the client opened in the newer one.

use std::collections::VecDeque;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, SubscriptionSink};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::upstream::{Change, Result, Upstream};

/// Where a client is told of changes.
#[derive(Clone)]
pub(crate) enum Sink {
    /// Notifications of the connection.
    Connection(Peer<RoleServer>),
    /// Notifications of a `subscriptions/listen`.
    Listen(SubscriptionSink),
}

impl Sink {
    /// Tells of a change. `false` when the client is gone.
    pub(crate) async fn tell(&self, change: &Change) -> bool {
        match (self, change) {
            (Self::Connection(peer), Change::Tools) => peer.notify_tool_list_changed().await.is_ok(),
            (Self::Connection(peer), Change::Prompts) => peer.notify_prompt_list_changed().await.is_ok(),
            (Self::Connection(peer), Change::Resources) => peer.notify_resource_list_changed().await.is_ok(),
            (Self::Connection(peer), Change::Resource(uri)) => peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok(),
            (Self::Listen(sink), Change::Tools) => sink.notify_tool_list_changed().await.is_ok(),
            (Self::Listen(sink), Change::Prompts) => sink.notify_prompt_list_changed().await.is_ok(),
            (Self::Listen(sink), Change::Resources) => sink.notify_resource_list_changed().await.is_ok(),
            (Self::Listen(sink), Change::Resource(uri)) => sink.notify_resource_updated(uri).await.is_ok(),
        }
    }
}

/// Whether a client that listens wants to be told of a change.
pub(crate) fn wants(filter: &SubscriptionFilter, change: &Change) -> bool {
    match change {
        Change::Tools => filter.tools_list_changed == Some(true),
        Change::Prompts => filter.prompts_list_changed == Some(true),
        Change::Resources => filter.resources_list_changed == Some(true),
        Change::Resource(uri) => filter.resource_subscriptions.iter().flatten().any(|own| own == uri),
    }
}

/// A client follows an upstream: its lists, and some of its resources. Dropped, it follows those no longer.
pub(crate) struct Following {
    upstream: Arc<Upstream>,
    uris: Vec<String>,
    changes: Receiver<Change>,
    /// What is still to be told.
    due: VecDeque<Change>,
}

impl Following {
    /// Begins, with resources that the upstream tells of from now on.
    pub(crate) async fn begin(upstream: &Arc<Upstream>, uris: Vec<String>) -> Result<Self> {
        // Opened first, so that nothing that comes meanwhile is missed.
        let mut following = Self { upstream: Arc::clone(upstream), uris: Vec::new(), changes: upstream.changes(), due: VecDeque::new() };
        for uri in uris {
            upstream.subscribe(&uri).await?;
            following.uris.push(uri);
        }
        Ok(following)
    }

    /// The next change of its lists or of these resources; `None` when the upstream is not used any more.
    pub(crate) async fn next(&mut self) -> Option<Change> {
        loop {
            if let Some(change) = self.due.pop_front() {
                return Some(change);
            }
            let change = tokio::select! {
                change = self.changes.recv() => change,
                () = self.upstream.stopped() => return None,
            };
            match change {
                Ok(Change::Resource(uri)) if !self.uris.contains(&uri) => {}
                Ok(change) => return Some(change),
                // Whoever fell behind looks at everything anew.
                Err(RecvError::Lagged(_)) => self.due.extend(self.everything()),
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// The upstream.
    pub(crate) fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }

    /// The resources.
    pub(crate) fn uris(&self) -> &[String] {
        &self.uris
    }

    /// All that it follows, for a client that cannot know what it missed.
    pub(crate) fn everything(&self) -> impl Iterator<Item = Change> + use<> {
        let lists = [Change::Tools, Change::Prompts, Change::Resources];
        lists.into_iter().chain(self.uris.clone().into_iter().map(Change::Resource))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let (upstream, uris) = (Arc::clone(&self.upstream), std::mem::take(&mut self.uris));
        if uris.is_empty() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                for uri in uris {
                    drop(upstream.unsubscribe(&uri).await);
                }
            });
        }
    }
}
