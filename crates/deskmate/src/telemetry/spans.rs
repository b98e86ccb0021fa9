//! Spans: one for each call, put into a bounded queue that an effect empties. Where the queue is full a span is dropped
//! and counted; a call never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deskmate_core::World;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::{Fate, Parent};

/// How many spans may wait for the collector.
pub(crate) const QUEUE_MAX: usize = 4_096;

/// A call as a span.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(super) trace: [u8; 16],
    pub(super) id: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) operation: String,
    pub(super) surface: &'static str,
    pub(super) fate: Fate,
    /// When it ended, in microseconds since 1970, and how long it took.
    pub(super) ended: i64,
    pub(super) took: Duration,
}

impl Span {
    /// A span that ends now, in the trace of its parent or in one of its own.
    pub(super) fn new(world: &dyn World, parent: Option<Parent>, operation: &str, surface: &'static str, fate: Fate, took: Duration) -> Self {
        let (mut trace, mut id) = ([0; 16], [0; 8]);
        match parent {
            Some(parent) => trace = parent.trace,
            None => world.fill(&mut trace),
        }
        world.fill(&mut id);
        Self { trace, id, parent: parent.map(|parent| parent.span), operation: operation.to_owned(), surface, fate, ended: world.now(), took }
    }
}

/// Where spans go. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Spans {
    queue: Sender<Span>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl Spans {
    pub(super) fn new() -> (Self, Receiver<Span>) {
        let (queue, spans) = channel(QUEUE_MAX);
        (Self { queue, counts: Arc::default() }, spans)
    }

    /// Puts a span into the queue, if there is room.
    pub(super) fn tell(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.dropped(1);
        }
    }

    /// The collector took so many.
    pub(crate) fn sent(&self, spans: usize) {
        self.counts.sent.fetch_add(spans as u64, Ordering::Relaxed);
    }

    /// So many will never get there.
    pub(crate) fn dropped(&self, spans: usize) {
        self.counts.dropped.fetch_add(spans as u64, Ordering::Relaxed);
    }

    /// How many were taken, and how many never got there.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counts.sent.load(Ordering::Relaxed), self.counts.dropped.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Machine;

    #[test]
    fn a_full_queue_drops_and_counts() {
        let (spans, mut queue) = Spans::new();
        let fate = Fate { outcome: "done", actor: "agent", decision: None, fault: false };
        let span = Span::new(&Machine::new(0), None, "desk_status", "rest", fate, Duration::ZERO);
        for _ in 0..QUEUE_MAX + 3 {
            spans.tell(span.clone());
        }
        assert_eq!(spans.counts(), (0, 3));
        assert!(queue.try_recv().is_ok());
        spans.tell(span);
        assert_eq!(spans.counts(), (0, 3), "there is room again");
    }
}
