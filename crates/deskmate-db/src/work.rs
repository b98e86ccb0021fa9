//! A unit of work on its way to a database thread and back.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::{Error, Kind, Result, Tx};

/// Something that a write staged for the moment of its commit, such as an event of the record.
pub type Staged = Box<dyn Any + Send>;

/// What happens to staged things when a transaction commits. SQLite calls it once for a whole batch.
pub trait Seal: Send {
    /// Writes what was staged, inside the transaction that is about to commit.
    fn before_commit(&mut self, tx: &mut Tx<'_>, staged: Vec<Staged>) -> Result<()>;
    /// Learns how the commit went, so that nothing in memory runs ahead of the disk.
    fn after_commit(&mut self, committed: Committed);
}

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// It is on disk.
    Yes,
    /// Nothing of it is.
    No,
}

/// A seal for stores that stage nothing.
pub(crate) struct NoSeal;

impl Seal for NoSeal {
    fn before_commit(&mut self, _: &mut Tx<'_>, _: Vec<Staged>) -> Result<()> {
        Ok(())
    }
    fn after_commit(&mut self, _: Committed) {}
}

/// What a database thread does with the changes of a closure.
pub(crate) enum Verdict {
    /// The closure answered: commit.
    Keep,
    /// The closure refused or failed: undo. An engine's error comes along, because the thread may try again.
    Undo(Option<Error>),
}

/// What a database thread sees of a queued closure.
pub(crate) trait Work: Send {
    /// Runs the closure and keeps its answer.
    fn run(&mut self, tx: &mut Tx<'_>) -> Verdict;
    /// For how long it has waited, from the moment when it was queued.
    fn age(&self) -> Duration;
    /// Whether nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
    /// Gives the caller the kept answer, or the reason why the changes were lost.
    fn answer(self: Box<Self>, outcome: Result<()>);
}

pub(crate) struct Call<F, T, E> {
    closure: F,
    kept: Option<Result<T, E>>,
    queued: Instant,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Call<F, T, E> {
    pub(crate) fn new(closure: F) -> (Self, oneshot::Receiver<Result<T, E>>) {
        let (reply, answer) = oneshot::channel();
        (Self { closure, kept: None, queued: Instant::now(), reply }, answer)
    }
}

impl<F, T, E> Work for Call<F, T, E>
where
    F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> Verdict {
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.closure)(tx)))
            .unwrap_or_else(|_| Err(E::from(Error::new(Kind::Panicked, "the operation panicked; its changes were rolled back"))));
        // A statement that failed ends the transaction, whatever the operation made of it: PostgreSQL would take a commit
        // for a rollback and say nothing.
        let (outcome, verdict) = match (outcome, tx.take_failure()) {
            (Ok(answer), None) => (Ok(answer), Verdict::Keep),
            (Ok(_), Some(failure)) => (Err(E::from(failure.clone())), Verdict::Undo(Some(failure))),
            (Err(error), failure) => (Err(error), Verdict::Undo(failure)),
        };
        self.kept = Some(outcome);
        verdict
    }

    fn age(&self) -> Duration {
        self.queued.elapsed()
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let answer = match (outcome, self.kept) {
            (Ok(()), Some(kept)) => kept,
            (Ok(()), None) => Err(E::from(Error::new(Kind::Closed, "the database is closed"))),
            (Err(error), _) => Err(E::from(error)),
        };
        // Whoever asked may have gone; the work stands all the same.
        drop(self.reply.send(answer));
    }
}
