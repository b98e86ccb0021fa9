//! Telling clients that something they follow has changed. What changed is found by reading it again with the
//! follower's own credential, so nobody is told about what they may not read, and a revoked credential ends it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deskmate_core::call::Credential;
use deskmate_core::record::EventRow;
use deskmate_core::{Code, Error, digest};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio_util::task::AbortOnDropHandle;

use super::resources::Found;
use crate::app::App;
use crate::front::Sink;
use crate::places::Place;
use crate::upstream::Change;

/// Changes that come this close together are told once.
const GATHER: Duration = Duration::from_millis(20);
/// What grows with every event is told at most this often.
const GATHER_GROWTH: Duration = Duration::from_secs(1);
/// How long a follower waits when the store is away.
const RETRY: Duration = Duration::from_secs(1);
/// How many addresses one client may follow at a time.
pub(super) const FOLLOWED_MAX: usize = 64;

/// Follows one resource until the client is gone or may no longer read it. A client that may not is told once more, so
/// that it reads and learns why.
pub(super) async fn follow(app: App, credential: Credential, found: Found, sink: Sink) {
    if let Err(error) = follow_on(&app, &credential, &found, &sink).await {
        tracing::info!(uri = found.uri(), %error, "a subscription ended");
        sink.tell(&Change::Resource(found.uri().to_owned())).await;
    }
}

async fn follow_on(app: &App, credential: &Credential, found: &Found, sink: &Sink) -> Result<(), Error> {
    // Opened before the first look, so that nothing between a look and the wait is missed.
    let mut news = app.live.news();
    let mut known: Option<[u8; 32]> = None;
    let mut told = true;
    loop {
        // Read with the follower's own credential each time, so that a revoked one shows.
        let reader = match found.value(app, credential).await {
            Ok((value, reader)) => {
                let now = digest(&value)?;
                told &= known == Some(now) || known.is_none();
                known = Some(now);
                reader.id
            }
            // The store is away or busy: the client follows on, and is told to look when it is back.
            Err(error) if matches!(error.code, Code::Unavailable | Code::Limited | Code::Internal) => {
                told = false;
                tokio::time::sleep(RETRY).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        if !told && !sink.tell(&Change::Resource(found.uri().to_owned())).await {
            return Ok(());
        }
        loop {
            match news.recv().await {
                Ok(event) if found.is_changed_by(&event, &reader) => break,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return Ok(()),
            }
        }
        tokio::time::sleep(if found.grows() { GATHER_GROWTH } else { GATHER }).await;
        // What came meanwhile is in the next look, unless that look does not show all there is.
        told = found.is_whole();
        drain(&mut news);
    }
}

/// Passes over what has come already.
fn drain(news: &mut Receiver<Arc<EventRow>>) {
    while !matches!(news.try_recv(), Err(TryRecvError::Empty | TryRecvError::Closed)) {}
}

/// What one connection of the older era follows.
#[derive(Clone, Default)]
pub(super) struct Followed {
    inner: Arc<Mutex<Following>>,
}

#[derive(Default)]
struct Following {
    by_uri: HashMap<String, AbortOnDropHandle<()>>,
    /// Held as long as anything is followed.
    place: Option<Place>,
    /// Follow lists that can change.
    lists: Vec<AbortOnDropHandle<()>>,
}

impl Followed {
    fn following(&self) -> MutexGuard<'_, Following> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this connection has its place among the streams.
    pub(super) fn has_place(&self) -> bool {
        self.following().place.is_some()
    }

    /// Keeps the place until nothing is followed any more.
    pub(super) fn take_place(&self, place: Place) {
        self.following().place = Some(place);
    }

    /// Starts to follow a resource. `false` when the connection follows too much already.
    pub(super) fn start(&self, uri: String, follower: impl Future<Output = ()> + Send + 'static) -> bool {
        let by_uri = &mut self.following().by_uri;
        by_uri.retain(|_, task| !task.is_finished());
        if by_uri.len() >= FOLLOWED_MAX && !by_uri.contains_key(&uri) {
            return false;
        }
        by_uri.insert(uri, AbortOnDropHandle::new(tokio::spawn(follower)));
        true
    }

    /// Follows a list as long as the connection lasts.
    pub(super) fn follow_list(&self, follower: impl Future<Output = ()> + Send + 'static) {
        self.following().lists.push(AbortOnDropHandle::new(tokio::spawn(follower)));
    }

    /// Follows no lists any more.
    pub(super) fn leave_lists(&self) {
        self.following().lists.clear();
    }

    /// Stops.
    pub(super) fn stop(&self, uri: &str) {
        self.following().by_uri.remove(uri);
        self.settle();
    }

    /// Gives the place back if nothing is followed.
    pub(super) fn settle(&self) {
        let mut following = self.following();
        if following.by_uri.is_empty() {
            following.place = None;
        }
    }
}
