//! Giving events their place in the tree.
//!
//! On SQLite one [`Sealer`] lives in the writer thread and seals each batch in the batch's own commit. On PostgreSQL
//! each connection has a [`Stager`], and [`seal_staged`] runs on whichever node holds the sealer's lock. Both end in
//! the same [`append`].

use std::sync::Arc;

use deskmate_db::{Committed, Seal, Staged, Tx, args};
use tlog_tiles::{Hash, record_hash, stored_hash_count};

use super::entry::Entry;
use super::key::{Keyring, SigningKey};
use super::tree::{Frontier, signed};
use crate::{Code, Error, Result};

/// How often a checkpoint is kept in the history, in microseconds. The newest one is always there.
const CHECKPOINT_EVERY: i64 = 60_000_000;
/// How many events one sealing transaction takes on PostgreSQL.
const SEAL_BATCH: i64 = 1_000;

/// Seals in the writer's own commit (SQLite).
pub struct Sealer {
    key: Arc<SigningKey>,
    sealed: State,
    pending: Option<State>,
    grown: Box<dyn Fn(u64) + Send>,
}

#[derive(Clone)]
struct State {
    frontier: Frontier,
    kept_at: i64,
}

impl State {
    /// Reads where the record stands. The newest checkpoint was written in the same commit as the newest entry, so it
    /// must vouch for exactly what is stored: nothing is ever added to, and signed with, what somebody put in.
    fn load(tx: &mut Tx<'_>, key: &SigningKey) -> Result<Self> {
        let size = super::size(tx)?;
        let state = Self { frontier: Frontier::load(tx, size)?, kept_at: kept_at(tx)? };
        let vouched = match super::newest_checkpoint(tx)? {
            None => size == 0,
            Some(note) => {
                let newest = Keyring::new(vec![key.public().to_owned()]).open(&note).map_err(|_| foreign())?;
                newest.size() == size && *newest.hash() == state.frontier.root()
            }
        };
        if vouched {
            return Ok(state);
        }
        Err(Error::new(Code::Unavailable, "the newest checkpoint does not vouch for the record as it is stored: entries were changed, cut off or put in")
            .hint("`deskmate audit verify` tells more; restore a backup"))
    }
}

fn foreign() -> Error {
    Error::new(Code::Unavailable, "the newest checkpoint of this record is not signed by the key in the data directory")
        .hint("give every server of one desk the same record.key; if nobody changed it, restore a backup")
}

/// Refuses a record that the key's own newest checkpoint does not vouch for: a server that went on from it would make
/// it unprovable, or sign what somebody put in.
pub fn check_end(tx: &mut Tx<'_>, key: &SigningKey) -> Result<()> {
    State::load(tx, key).map(drop)
}

impl Sealer {
    /// Goes on from what is stored. `grown` is told the size after every commit that added events.
    pub fn new(tx: &mut Tx<'_>, key: Arc<SigningKey>, grown: Box<dyn Fn(u64) + Send>) -> Result<Self> {
        let sealed = State::load(tx, &key)?;
        Ok(Self { key, sealed, pending: None, grown })
    }
}

impl Seal for Sealer {
    fn before_commit(&mut self, tx: &mut Tx<'_>, staged: Vec<Staged>) -> deskmate_db::Result<()> {
        if staged.is_empty() {
            return Ok(());
        }
        let mut state = self.sealed.clone();
        append(tx, &self.key, &mut state, &entries(staged))?;
        self.pending = Some(state);
        Ok(())
    }

    fn after_commit(&mut self, committed: Committed) {
        if let Some(state) = self.pending.take()
            && committed == Committed::Yes
        {
            self.sealed = state;
            (self.grown)(self.sealed.frontier.size());
        }
    }
}

/// Puts events where the elected sealer finds them (PostgreSQL).
pub struct Stager {
    staged: Box<dyn Fn() + Send>,
    any: bool,
}

impl Stager {
    /// `staged` is called after every commit that left something for the sealer.
    pub fn new(staged: Box<dyn Fn() + Send>) -> Self {
        Self { staged, any: false }
    }
}

impl Seal for Stager {
    fn before_commit(&mut self, tx: &mut Tx<'_>, staged: Vec<Staged>) -> deskmate_db::Result<()> {
        self.any = !staged.is_empty();
        for entry in entries(staged) {
            tx.execute(
                "insert into event_staged (id, at, actor_kind, actor, kind, subject, body, salt, payload) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                args![entry.id, entry.at, entry.actor_kind, entry.actor, entry.kind, entry.subject, entry.body, entry.salt, entry.payload],
            )?;
        }
        Ok(())
    }

    fn after_commit(&mut self, committed: Committed) {
        if std::mem::take(&mut self.any) && committed == Committed::Yes {
            (self.staged)();
        }
    }
}

fn entries(staged: Vec<Staged>) -> Vec<Entry> {
    staged.into_iter().filter_map(|item| item.downcast::<Entry>().ok()).map(|entry| *entry).collect()
}

/// What a turn of sealing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealing {
    /// Nothing waited.
    Nothing,
    /// Another node is sealing.
    Elsewhere,
    /// The record grew to this size.
    Grown(u64),
}

/// Seals what waits, if no other node does it at this moment (PostgreSQL).
pub fn seal_staged(tx: &mut Tx<'_>, key: &SigningKey) -> Result<Sealing> {
    let elected: bool = tx.one("select pg_try_advisory_xact_lock(7373, hashtext(current_schema()::text))", &[])?.get(0)?;
    if !elected {
        return Ok(Sealing::Elsewhere);
    }
    let rows = tx.query(
        "select position, id, at, actor_kind, actor, kind, subject, body, salt, payload from event_staged order by position limit $1",
        args![SEAL_BATCH],
    )?;
    if rows.is_empty() {
        return Ok(Sealing::Nothing);
    }
    let mut waiting = Vec::with_capacity(rows.len());
    for row in &rows {
        waiting.push(Entry {
            id: row.get(1)?,
            at: row.get(2)?,
            actor_kind: row.get(3)?,
            actor: row.get(4)?,
            kind: row.get(5)?,
            subject: row.get(6)?,
            body: row.get(7)?,
            salt: row.get(8)?,
            payload: row.get(9)?,
        });
        // Row by row: a transaction with a lower position may commit later and must not be swept away unsealed.
        tx.execute("delete from event_staged where position = $1", args![row.get::<i64>(0)?])?;
    }
    let mut state = State::load(tx, key)?;
    append(tx, key, &mut state, &waiting)?;
    let size = state.frontier.size();
    tx.query("select pg_notify('deskmate_' || current_schema(), $1)::text", args![size.to_string()])?;
    Ok(Sealing::Grown(size))
}

/// The error stays the store's own: a disk that fills up here must be told as that, not as a fault of the desk.
fn append(tx: &mut Tx<'_>, key: &SigningKey, state: &mut State, entries: &[Entry]) -> deskmate_db::Result<()> {
    let mut newest = 0;
    for entry in entries {
        let seq = signed(state.frontier.size());
        let first = signed(stored_hash_count(state.frontier.size()));
        tx.execute(
            "insert into event (seq, id, at, actor_kind, actor, kind, subject, body) values ($1, $2, $3, $4, $5, $6, $7, $8)",
            args![seq, entry.id, entry.at, entry.actor_kind, entry.actor, entry.kind, entry.subject, entry.body],
        )?;
        if entry.payload.is_some() {
            tx.execute("insert into event_payload (seq, salt, payload) values ($1, $2, $3)", args![seq, entry.salt, entry.payload])?;
        }
        let mut nodes: Vec<Hash> = Vec::new();
        state.frontier.append(record_hash(entry.body.as_bytes()), |node| nodes.push(node));
        for (position, node) in (first..).zip(nodes) {
            tx.execute("insert into record_hash (position, hash) values ($1, $2)", args![position, node.0])?;
        }
        newest = newest.max(entry.at);
    }
    let note = key.checkpoint(state.frontier.size(), state.frontier.root());
    let note = note.map_err(|error| deskmate_db::Error::new(deskmate_db::Kind::Other, error.to_string()))?;
    tx.execute("insert into desk (key, value) values ('checkpoint', $1) on conflict (key) do update set value = excluded.value", args![note])?;
    if newest - state.kept_at >= CHECKPOINT_EVERY {
        tx.execute("insert into checkpoint (size, at, note) values ($1, $2, $3)", args![signed(state.frontier.size()), newest, note])?;
        state.kept_at = newest;
    }
    Ok(())
}

fn kept_at(tx: &mut Tx<'_>) -> Result<i64> {
    let row = tx.optional("select at from checkpoint order by size desc limit 1", &[])?;
    row.map_or(Ok(0), |row| row.get(0)).map_err(|error| Error::new(Code::Internal, error.to_string()))
}
