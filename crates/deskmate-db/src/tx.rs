//! An open transaction on either engine.

use crate::postgres::Session;
use crate::value::{Param, Row};
use crate::work::Staged;
use crate::{Engine, Error, Kind, Result, sqlite};

/// An open transaction. Statements are constants, so that they can be cached, read and checked.
pub struct Tx<'c> {
    connection: Connection<'c>,
    earlier: &'c [Staged],
    staged: Vec<Staged>,
    failure: Option<Error>,
    wrote: bool,
    erases: bool,
}

pub(crate) enum Connection<'c> {
    Sqlite(&'c rusqlite::Connection),
    Postgres(&'c mut Session),
}

impl<'c> Tx<'c> {
    pub(crate) fn new(connection: Connection<'c>) -> Self {
        Self::after(connection, &[])
    }

    /// A transaction that commits together with others which ran before it and staged these.
    pub(crate) fn after(connection: Connection<'c>, earlier: &'c [Staged]) -> Self {
        Self { connection, earlier, staged: Vec::new(), failure: None, wrote: false, erases: false }
    }

    /// Which engine this is: only for the few statements that need two texts.
    pub fn engine(&self) -> Engine {
        match self.connection {
            Connection::Sqlite(_) => Engine::Sqlite,
            Connection::Postgres(_) => Engine::Postgres,
        }
    }

    /// Runs a statement and tells how many rows it changed.
    pub fn execute(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<u64> {
        self.wrote = true;
        let outcome = match &mut self.connection {
            Connection::Sqlite(connection) => sqlite::execute(connection, sql, params),
            Connection::Postgres(session) => session.execute(sql, params),
        };
        self.note(outcome)
    }

    /// All rows of a query. The statement bounds their number.
    pub fn query(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        self.wrote |= !sql.starts_with("select");
        let outcome = match &mut self.connection {
            Connection::Sqlite(connection) => sqlite::query(connection, sql, params),
            Connection::Postgres(session) => session.query(sql, params),
        };
        self.note(outcome)
    }

    /// The first row of a query, if there is one.
    pub fn optional(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<Option<Row>> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// The first row of a query that always has one.
    pub fn one(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<Row> {
        self.optional(sql, params)?.ok_or_else(|| Error::new(Kind::Other, format!("no row for: {sql}")))
    }

    /// Runs several statements that were made at run time: only for moving and checking whole stores.
    pub fn batch(&mut self, sql: &str) -> Result<()> {
        self.wrote = true;
        let outcome = match &mut self.connection {
            Connection::Sqlite(connection) => connection.execute_batch(sql).map_err(Error::from),
            Connection::Postgres(session) => session.batch(sql),
        };
        self.note(outcome)
    }

    /// A query whose text was made at run time: only for moving and checking whole stores.
    pub fn query_text(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        self.wrote |= !sql.starts_with("select");
        let outcome = match &mut self.connection {
            Connection::Sqlite(connection) => sqlite::query_text(connection, sql, params),
            Connection::Postgres(session) => session.query_text(sql, params),
        };
        self.note(outcome)
    }

    /// Runs one statement, made at run time, for each of the rows: only for moving whole stores.
    pub fn execute_rows(&mut self, sql: &str, rows: &[Row]) -> Result<()> {
        self.wrote = true;
        let outcome = match &mut self.connection {
            Connection::Sqlite(connection) => rows.iter().try_for_each(|row| sqlite::execute_text(connection, sql, &row.params()).map(drop)),
            Connection::Postgres(session) => session.execute_rows(sql, rows),
        };
        self.note(outcome)
    }

    /// Keeps something for the moment of the commit; it is dropped if the transaction is undone.
    pub fn stage(&mut self, item: Staged) {
        self.staged.push(item);
    }

    /// How many things are staged so far.
    pub fn staged(&self) -> usize {
        self.staged.len()
    }

    /// What waits for the commit, the newest first: of this transaction, and of those that are committed together with it.
    pub fn waiting(&self) -> impl Iterator<Item = &Staged> {
        self.staged.iter().rev().chain(self.earlier.iter().rev())
    }

    /// Says that what this transaction overwrites or deletes must not stay readable in the store's own log either.
    pub fn erases(&mut self) {
        self.erases = true;
    }

    pub(crate) fn has_erased(&self) -> bool {
        self.erases
    }

    pub(crate) fn take_staged(&mut self) -> Vec<Staged> {
        std::mem::take(&mut self.staged)
    }

    pub(crate) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// Whether anything that may change rows was run.
    pub(crate) fn wrote(&self) -> bool {
        self.wrote
    }

    fn note<T>(&mut self, outcome: Result<T>) -> Result<T> {
        // What ends a transaction comes first, and what follows it only says that the transaction has ended.
        if let Err(error) = &outcome
            && !self.failure.as_ref().is_some_and(|first| matches!(first.kind(), Kind::Busy | Kind::Unavailable))
        {
            self.failure = Some(error.clone());
        }
        outcome
    }
}
