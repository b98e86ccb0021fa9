//! Which connections are open, whose turn it is on each, and which one goes when there is no room for a new one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deskmate_core::limits::{BODY_TIME_MAX, CONNECTIONS_MAX, HEAD_TIME_MAX, IDLE_TIME_MAX, LOCAL_CONNECTIONS_MAX, UNREAD_TIME_MAX};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many connections a door takes, and how long each may keep it waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(super) connections: usize,
    pub(super) head: Duration,
    pub(super) body: Duration,
    pub(super) unread: Duration,
    pub(super) idle: Duration,
}

impl Bounds {
    /// The bounds of the network's door. Every connection is an open file: half of them are left for the rest.
    pub(crate) fn network(files: u64) -> Self {
        Self::of(CONNECTIONS_MAX, files / 2)
    }

    /// The bounds of the local socket. It has places of its own, so that a crowd on the network leaves it usable.
    pub(crate) fn local(files: u64) -> Self {
        Self::of(LOCAL_CONNECTIONS_MAX, files / 8)
    }

    fn of(most: usize, files: u64) -> Self {
        let connections = usize::try_from(files).map_or(most, |files| files.clamp(1, most));
        Self { connections, head: HEAD_TIME_MAX, body: BODY_TIME_MAX, unread: UNREAD_TIME_MAX, idle: IDLE_TIME_MAX }
    }
}

/// Whose turn it is on a connection, in the order in which connections go to make room. Who is being answered stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// Nothing of a request has come.
    Idle,
    /// A part of a request's head has come.
    Head,
    /// The head has come, the body not yet.
    Body,
    /// The request is there; the desk works or answers.
    Answer,
}

/// One connection.
pub(super) struct Line {
    state: Mutex<State>,
    /// Cancelled when the connection has to make room.
    pub(super) gone: CancellationToken,
}

struct State {
    turn: Turn,
    since: Instant,
    /// Since when the other side takes nothing of what is to be sent.
    unread: Option<Instant>,
}

impl Line {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { turn: Turn::Idle, since: Instant::now(), unread: None }), gone: CancellationToken::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is another's turn.
    pub(super) fn turn(&self, turn: Turn) {
        let mut state = self.state();
        (state.turn, state.since) = (turn, Instant::now());
    }

    /// Bytes came.
    pub(super) fn came(&self) {
        if self.state().turn == Turn::Idle {
            self.turn(Turn::Head);
        }
    }

    /// The whole request is there, or nobody reads the rest of it.
    pub(super) fn received(&self) {
        if self.state().turn == Turn::Body {
            self.turn(Turn::Answer);
        }
    }

    /// Bytes were sent, or could not be.
    pub(super) fn sent(&self, some: bool) {
        let mut state = self.state();
        match (some, state.unread) {
            (true, unread) => {
                if unread.is_some() {
                    state.unread = None;
                }
                // The end of an answer is still on its way when its turn is over.
                if state.turn == Turn::Idle {
                    state.since = Instant::now();
                }
            }
            (false, None) => state.unread = Some(Instant::now()),
            (false, Some(_)) => {}
        }
    }

    /// When the other side will have kept this connection waiting for too long. A body has its own alarm, which answers.
    pub(super) fn deadline(&self, bounds: &Bounds) -> Option<Instant> {
        let state = self.state();
        let turn = match state.turn {
            Turn::Idle => Some(state.since + bounds.idle),
            Turn::Head => Some(state.since + bounds.head),
            Turn::Body | Turn::Answer => None,
        };
        let unread = state.unread.map(|since| since + bounds.unread);
        turn.into_iter().chain(unread).min()
    }

    /// Its place among those that may go: idle ones first, then the one that has kept the desk waiting for longest.
    fn order(&self) -> Option<(bool, Instant)> {
        let state = self.state();
        (state.turn < Turn::Answer).then_some((state.turn == Turn::Body, state.since))
    }
}

/// The connections of one door.
pub(super) struct Connections {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    lines: HashMap<u64, Arc<Line>>,
}

impl Connections {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection. Where all are taken, the one that has been idle for longest makes room; where all are
    /// at work there is none.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Place> {
        let mut open = self.open();
        if open.lines.len() >= self.most {
            let (_, last) = open.lines.iter().filter_map(|(id, line)| Some((line.order()?, *id))).min()?;
            if let Some(line) = open.lines.remove(&last) {
                line.gone.cancel();
            }
        }
        let (id, line) = (open.next, Arc::new(Line::new()));
        open.next += 1;
        open.lines.insert(id, Arc::clone(&line));
        Some(Place { connections: Arc::clone(self), id, line })
    }
}

/// A connection's place, given back with this value.
pub(super) struct Place {
    connections: Arc<Connections>,
    id: u64,
    pub(super) line: Arc<Line>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().lines.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_idle_goes_first_and_who_is_answered_stays() {
        let connections = Connections::new(3);
        let [idle, sending, answered] = [(); 3].map(|()| connections.admit().expect("room"));
        sending.line.turn(Turn::Body);
        answered.line.turn(Turn::Answer);
        idle.line.turn(Turn::Idle);
        let fourth = connections.admit().expect("an idle one makes room");
        assert!(idle.line.gone.is_cancelled(), "although another has kept the desk waiting for longer");
        fourth.line.turn(Turn::Answer);
        let fifth = connections.admit().expect("a slow sender makes room");
        assert!(sending.line.gone.is_cancelled());
        fifth.line.turn(Turn::Answer);
        assert!(connections.admit().is_none(), "everybody is at work");
        assert!(!answered.line.gone.is_cancelled() && !fourth.line.gone.is_cancelled());
        drop(fourth);
        // One that had to go gave its place back already.
        drop(idle);
        assert!(connections.admit().is_some_and(|place| !place.line.gone.is_cancelled()));
        assert_eq!(connections.open().lines.len(), 2);
    }

    #[test]
    fn few_files_leave_few_places() {
        assert_eq!((Bounds::network(1 << 20).connections, Bounds::local(1 << 20).connections), (CONNECTIONS_MAX, LOCAL_CONNECTIONS_MAX));
        assert_eq!((Bounds::network(256).connections, Bounds::local(256).connections), (128, 32));
        assert_eq!(Bounds::local(0).connections, 1);
    }
}
