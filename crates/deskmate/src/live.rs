//! What happens as the record grows: waiting calls are woken, streams go on. Everything is read from the record, so a
//! missed wake-up costs time and nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use deskmate_core::call::Desk;
use deskmate_core::record::{self, EventRow};
use tokio::sync::{Notify, broadcast, watch};

/// How many events one look takes.
const LOOK: u32 = 500;
/// How many events a slow follower may be behind before it is told only that it missed some.
const NEWS_MAX: usize = 1_024;

/// The size of the record, and who waits for news about what.
#[derive(Clone)]
pub(crate) struct Live {
    size: Arc<watch::Sender<u64>>,
    topics: Arc<Mutex<HashMap<String, Arc<Notify>>>>,
    news: broadcast::Sender<Arc<EventRow>>,
}

impl Live {
    pub(crate) fn new() -> Self {
        Self { size: Arc::new(watch::Sender::new(0)), topics: Arc::default(), news: broadcast::Sender::new(NEWS_MAX) }
    }

    /// The record has at least this size.
    pub(crate) fn grown(&self, size: u64) {
        self.size.send_if_modified(|known| {
            let grown = size > *known;
            *known = size.max(*known);
            grown
        });
    }

    /// The size as it changes.
    pub(crate) fn size(&self) -> watch::Receiver<u64> {
        self.size.subscribe()
    }

    /// Something that is notified when an event concerns one of these topics: an actor's id or a subject.
    pub(crate) fn topic(&self, name: &str) -> Arc<Notify> {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.retain(|_, notify| Arc::strong_count(notify) > 1);
        Arc::clone(topics.entry(name.to_owned()).or_default())
    }

    /// Every event from now on, without its payload. Whoever reads them decides by itself what concerns it.
    pub(crate) fn news(&self) -> broadcast::Receiver<Arc<EventRow>> {
        self.news.subscribe()
    }

    fn wake(&self, events: Vec<EventRow>) {
        let topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            for name in event.audience.iter().chain([&event.actor, &event.subject]) {
                if let Some(notify) = topics.get(name) {
                    notify.notify_waiters();
                }
            }
            // Nobody may be following.
            drop(self.news.send(Arc::new(event)));
        }
    }

    fn nobody_waits(&self) -> bool {
        self.news.receiver_count() == 0 && self.topics.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Wakes whoever waits, for ever.
    pub(crate) async fn follow(self, desk: Desk) {
        let mut grown = self.size();
        let mut next = *grown.borrow_and_update();
        while grown.changed().await.is_ok() {
            let size = *grown.borrow_and_update();
            while next < size {
                if self.nobody_waits() {
                    next = size;
                    break;
                }
                let from = next;
                match desk.db.read(move |tx| record::heads_after(tx, from, LOOK)).await {
                    Ok(events) => {
                        next = events.last().map_or(size, |event| event.seq + 1);
                        self.wake(events);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "following the record failed; it is tried again");
                        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                    }
                }
            }
        }
    }
}
