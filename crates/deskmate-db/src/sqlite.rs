//! SQLite: one writer with group commit, a few reader threads, and a thread that looks after the log.
//!
//! The writer takes whatever waits, runs it in one transaction, seals, commits once with a full fsync, and only then
//! answers. A closure that refuses after it wrote makes the batch begin anew, with a savepoint for each. A full disk can
//! drop the whole transaction without an error of its own, so after every closure the writer looks whether it stands.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use tokio::runtime::Handle;

use crate::here::{Here, own_runtime};
use crate::tx::Connection as TxConnection;
use crate::value::{Param, Row, Value};
use crate::work::{Committed, Seal, Verdict, Work};
use crate::{Error, Kind, Result, Tx};

/// How many writes may share one commit, and for how long the first of them may wait for others to run.
const BATCH_WRITES_MAX: usize = 256;
const BATCH_TIME_MAX: Duration = Duration::from_millis(16);
/// A closure that holds the only writer longer than this is worth a line in the log.
const SLOW_WRITE: Duration = Duration::from_millis(20);
const STATEMENT_CACHE: usize = 256;
/// The write-ahead log is copied back in the background whenever it grew by so many pages (64 MiB), in passes, until no
/// more than a tail is left. The writer copies that itself between two batches, so that the log begins anew in the same
/// place of the disk; in a crowd only at so many pages (128 MiB), because everybody waits for it.
const COPY_PAGES: u64 = 16_384;
const ANEW_PAGES: u64 = 32_768;
const TAIL_PAGES: u64 = 512;
const COPY_PASSES: u32 = 6;
/// So many batches of so few writes one after the other are no crowd: a caller may then do its write itself. After so many
/// it is quiet, and the log is copied and begins anew at so many pages (8 MiB).
const SMALL_WRITES: usize = 4;
const CALM_BATCHES: u32 = 8;
const QUIET_BATCHES: u32 = 64;
const QUIET_PAGES: u64 = 2_048;
/// So much of the log (16 MiB) is written ahead and stays: what is written over needs no new place on the disk, which
/// would cost every commit two more waits for it.
const AHEAD_BYTES: i64 = 16 << 20;
/// Where less than this is free, the room is left to others: even for a moment it may be what somebody needs.
const ROOM_BYTES: u64 = 64 << 20;
/// In a crowd the log keeps its place up to this length.
const KEPT_BYTES: i64 = 512 << 20;
/// Where readers keep the log from beginning anew, the writer waits for them at so many pages (512 MiB).
const LOG_PAGES_MAX: u64 = 131_072;
/// How long the writer waits for readers then, and how long anybody waits for a lock.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(50);
/// How long an attempt to empty the log that readers kept from it rests.
const EMPTY_AGAIN: Duration = Duration::from_secs(2);
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) type Queue = SyncSender<Box<dyn Work>>;

pub(crate) fn open_connection(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    // One plan for a statement whatever is bound to it: otherwise many are planned anew at every call.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Opens the connection that writes, and makes the file what we rely on.
pub(crate) fn open_writer(path: &Path) -> Result<Connection> {
    let connection = open_connection(path, OpenFlags::default())?;
    connection.execute_batch(
        "pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on; pragma wal_autocheckpoint = 0; \
         pragma cache_size = -4000; pragma temp_store = memory; pragma secure_delete = on; pragma cell_size_check = on;",
    )?;
    Ok(connection)
}

pub(crate) fn open_reader(path: &Path) -> Result<Connection> {
    let connection = open_connection(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.execute_batch("pragma query_only = on; pragma cache_size = -1000; pragma cell_size_check = on;")?;
    Ok(connection)
}

/// Starts the writer thread and the checkpoint thread.
pub(crate) fn start_writer(
    mut connection: Connection,
    path: &Path,
    queue_max: usize,
    seal: Box<dyn Seal>,
    here: Here,
) -> Result<(OneWriter, Queue, Vec<JoinHandle<()>>)> {
    let (queue, jobs) = sync_channel::<Box<dyn Work>>(queue_max);
    let (wake, due) = sync_channel::<Errand>(2);
    let log = Arc::new(Log::default());
    let (counted, shared) = (Arc::clone(&log), Arc::clone(&log));
    connection.wal_hook(Some(move |_: &mut Wal, pages| {
        counted.pages.store(u64::try_from(pages).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }))?;
    let copier = open_connection(path, OpenFlags::default())?;
    let mut file = path.as_os_str().to_owned();
    file.push("-wal");
    let checkpointer = spawn("desk-checkpoint", move || run_errands(&copier, Path::new(&file), &due, &shared))?;
    let counts = Arc::new(Counts::default());
    let writer = Writer { connection, seal, log, wake, copying: false, copied_at: 0, empty_at: None, small_batches: 0, counts: Arc::clone(&counts) };
    drop(writer.wake.try_send(Errand::WriteAhead));
    let one = OneWriter { writer: Arc::new(Mutex::new(Some(writer))), calm: Arc::default(), counts, callers: Arc::default(), here };
    let own = one.clone();
    let writer = spawn("desk-writer", move || own.run(&jobs))?;
    Ok((one, queue, vec![writer, checkpointer]))
}

/// Starts reader threads on one shared queue.
pub(crate) fn start_readers(path: &Path, count: usize, queue_max: usize) -> Result<(Queue, Vec<JoinHandle<()>>)> {
    let (queue, jobs) = sync_channel::<Box<dyn Work>>(queue_max);
    let jobs = Arc::new(Mutex::new(jobs));
    let mut threads = Vec::new();
    for number in 0..count {
        let connection = open_reader(path)?;
        let jobs = Arc::clone(&jobs);
        threads.push(spawn(&format!("desk-reader-{number}"), move || {
            while let Some(work) = crate::db::next(&jobs) {
                read_one(&connection, work);
            }
        })?);
    }
    Ok((queue, threads))
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map_err(|error| Error::new(Kind::Unavailable, format!("cannot start thread {name}: {error}")))
}

pub(crate) fn read_one(connection: &Connection, mut work: Box<dyn Work>) {
    if let Err(error) = connection.execute_batch("begin") {
        work.answer(Err(error.into()));
        return;
    }
    work.run(&mut Tx::new(TxConnection::Sqlite(connection)));
    // A read has nothing to lose: ending the snapshot cannot fail in a way that matters to its answer.
    drop(connection.execute_batch("rollback"));
    work.answer(Ok(()));
}

/// What the writer asks of the thread that looks after the write-ahead log.
enum Errand {
    /// Copy it back.
    Copy,
    /// Write ahead of it.
    WriteAhead,
}

/// What the writer and that thread tell each other.
#[derive(Default)]
struct Log {
    /// How many pages the log had after the last commit.
    pages: AtomicU64,
    /// Set when the other thread has done its part.
    tail_is_left: AtomicBool,
}

struct Writer {
    connection: Connection,
    seal: Box<dyn Seal>,
    log: Arc<Log>,
    wake: SyncSender<Errand>,
    /// Whether the other thread was asked to copy.
    copying: bool,
    /// How long the log was when it was last copied.
    copied_at: u64,
    /// When to empty the log, which may hold what somebody erased.
    empty_at: Option<Instant>,
    /// How many batches one after the other were small.
    small_batches: u32,
    counts: Arc<Counts>,
}

/// Whether a write of a batch can be undone alone. A savepoint keeps a copy of every page that changes, and hardly any
/// write is undone after it changed something, so a batch begins without.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    None,
    Savepoint,
}

/// What became of one write of a batch.
enum Ran {
    /// It stands, or it refused without having changed anything.
    Done(Vec<crate::Staged>),
    /// It changed something and then refused, and there is no savepoint to go back to.
    Spoiled,
}

/// The one writer. A thread of its own does what waits in the queue; a caller that is alone does its write itself, which
/// spares it the way to that thread and back.
#[derive(Clone)]
pub(crate) struct OneWriter {
    /// Nothing once the store is closed.
    writer: Arc<Mutex<Option<Writer>>>,
    /// Whether there was no crowd lately.
    calm: Arc<AtomicBool>,
    counts: Arc<Counts>,
    /// Where the callers are at home, once one of them was seen.
    callers: Arc<OnceLock<Handle>>,
    here: Here,
}

/// How many commits there were, and how many writes were in them.
#[derive(Default)]
struct Counts {
    commits: AtomicU64,
    writes: AtomicU64,
}

impl OneWriter {
    fn run(&self, jobs: &Receiver<Box<dyn Work>>) {
        while let Ok(first) = jobs.recv() {
            let Ok(mut writer) = self.writer.lock() else { return };
            let Some(writer) = writer.as_mut() else { return };
            writer.commit(first, || jobs.try_recv().ok(), |answers| self.answer(answers));
            self.calm.store(writer.small_batches >= CALM_BATCHES, Ordering::Relaxed);
        }
        drop(self.writer.lock().map(|mut writer| writer.take()));
    }

    /// How many commits there were, and how many writes were in them.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counts.commits.load(Ordering::Relaxed), self.counts.writes.load(Ordering::Relaxed))
    }

    /// Tells everybody of a batch how it ended. Waking a caller of the runtime from outside costs as much as a small write, so in a
    /// crowd they are woken from within it, while the writer goes on.
    fn answer(&self, answers: Answers) {
        match self.callers.get().filter(|_| answers.batch.len() > SMALL_WRITES) {
            Some(callers) => drop(callers.spawn(async move { drop(answers) })),
            None => drop(answers),
        }
    }

    /// Does a write on this thread if nobody else writes; gives it back otherwise.
    pub(crate) fn at_once(&self, work: Box<dyn Work>) -> Option<Box<dyn Work>> {
        if self.callers.get().is_none()
            && let Some(runtime) = own_runtime()
        {
            drop(self.callers.set(runtime));
        }
        if !self.calm.load(Ordering::Relaxed) {
            return Some(work);
        }
        let Some(taken) = self.here.take() else { return Some(work) };
        let Ok(mut writer) = self.writer.try_lock() else { return Some(work) };
        let Some(writer) = writer.as_mut().filter(|writer| !writer.log.tail_is_left.load(Ordering::Relaxed)) else { return Some(work) };
        taken.let_others_go_on();
        writer.commit(work, || None, drop);
        None
    }
}

/// What the callers of a batch are told. It is told when this is dropped, so also where a runtime ends before it comes to it.
struct Answers {
    batch: Vec<Box<dyn Work>>,
    outcome: Result<()>,
}

impl Drop for Answers {
    fn drop(&mut self) {
        for work in self.batch.drain(..) {
            work.answer(self.outcome.clone());
        }
    }
}

impl Writer {
    /// Commits a write and what waits behind it, and lets them be answered.
    fn commit(&mut self, first: Box<dyn Work>, next: impl FnMut() -> Option<Box<dyn Work>>, answer: impl FnOnce(Answers)) {
        let mut batch = Vec::new();
        let outcome = self.run_batch(first, next, &mut batch);
        if outcome.is_err() && !self.connection.is_autocommit() {
            drop(self.connection.execute_batch("rollback"));
        }
        if let Err(error) = &outcome {
            tracing::error!(writes = batch.len(), %error, "a batch of writes was lost; each caller is told");
        }
        self.small_batches = if batch.len() <= SMALL_WRITES { self.small_batches.saturating_add(1) } else { 0 };
        let committed = if outcome.is_ok() { Committed::Yes } else { Committed::No };
        if committed == Committed::Yes {
            self.counts.commits.fetch_add(1, Ordering::Relaxed);
            self.counts.writes.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
        answer(Answers { batch, outcome });
        self.seal.after_commit(committed);
        self.after_batch();
    }

    /// Runs the first write and whatever waits behind it, and commits them together.
    fn run_batch(&mut self, first: Box<dyn Work>, mut others: impl FnMut() -> Option<Box<dyn Work>>, batch: &mut Vec<Box<dyn Work>>) -> Result<()> {
        let started = Instant::now();
        let mut staged = Vec::new();
        let mut next = Some(first);
        if let Err(error) = self.connection.execute_batch("begin immediate") {
            batch.extend(next);
            return Err(error.into());
        }
        let mut guard = Guard::None;
        while let Some(mut work) = next {
            let ran = self.run_one(&mut work, guard, &staged);
            batch.push(work);
            match ran? {
                Ran::Done(more) => staged.extend(more),
                Ran::Spoiled => {
                    guard = Guard::Savepoint;
                    staged = self.run_again(batch)?;
                }
            }
            let room = batch.len() < BATCH_WRITES_MAX && started.elapsed() < BATCH_TIME_MAX;
            next = if room { others() } else { None };
        }
        let mut tx = Tx::new(TxConnection::Sqlite(&self.connection));
        self.seal.before_commit(&mut tx, staged)?;
        self.still_open()?;
        self.connection.execute_batch("commit")?;
        Ok(())
    }

    /// Begins the batch anew, this time so that each write can be undone alone. Closures have no effects outside the
    /// transaction, so running them a second time is not noticed.
    fn run_again(&mut self, batch: &mut [Box<dyn Work>]) -> Result<Vec<crate::Staged>> {
        self.connection.execute_batch("rollback; begin immediate")?;
        let mut staged = Vec::new();
        for work in batch {
            if let Ran::Done(more) = self.run_one(work, Guard::Savepoint, &staged)? {
                staged.extend(more);
            }
        }
        Ok(staged)
    }

    fn run_one(&mut self, work: &mut Box<dyn Work>, guard: Guard, earlier: &[crate::Staged]) -> Result<Ran> {
        let started = Instant::now();
        if guard == Guard::Savepoint {
            self.connection.prepare_cached("savepoint work")?.execute([])?;
        }
        let mut tx = Tx::after(TxConnection::Sqlite(&self.connection), earlier);
        let verdict = work.run(&mut tx);
        let (staged, wrote) = (tx.take_staged(), tx.wrote());
        if tx.has_erased() {
            self.empty_at = Some(Instant::now());
        }
        self.still_open()?;
        let ran = match verdict {
            Verdict::Keep => Ran::Done(staged),
            Verdict::Undo(failure) => {
                // A failing disk spoils the batch, not only this write.
                if let Some(error) = failure.filter(|error| !matches!(error.kind(), Kind::Constraint | Kind::Other)) {
                    return Err(error);
                }
                match guard {
                    Guard::None if wrote => return Ok(Ran::Spoiled),
                    Guard::None => {}
                    Guard::Savepoint => {
                        self.connection.prepare_cached("rollback to work")?.execute([])?;
                    }
                }
                Ran::Done(Vec::new())
            }
        };
        if guard == Guard::Savepoint {
            self.connection.prepare_cached("release work")?.execute([])?;
        }
        let took = started.elapsed();
        if took > SLOW_WRITE {
            tracing::warn!(milliseconds = took.as_millis(), "a write held the only writer for long");
        }
        Ok(ran)
    }

    fn still_open(&self) -> Result<()> {
        if self.connection.is_autocommit() {
            return Err(Error::new(Kind::Full, "the database dropped the transaction (the disk may be full); nothing of the batch was written"));
        }
        Ok(())
    }

    /// Keeps the write-ahead log short without making callers wait for it.
    fn after_batch(&mut self) {
        let pages = self.log.pages.load(Ordering::Relaxed);
        if pages < self.copied_at {
            self.copied_at = 0;
        }
        if self.empty_at.is_some_and(|at| at <= Instant::now()) {
            let emptied = self.begin_log_anew("pragma wal_checkpoint(truncate)", AHEAD_BYTES);
            self.empty_at = if emptied { None } else { Some(Instant::now() + EMPTY_AGAIN) };
            if emptied {
                drop(self.wake.try_send(Errand::WriteAhead));
            }
        }
        let (copy_at, anew_at, kept) =
            if self.small_batches >= QUIET_BATCHES { (QUIET_PAGES, QUIET_PAGES, AHEAD_BYTES) } else { (COPY_PAGES, ANEW_PAGES, KEPT_BYTES) };
        if self.log.tail_is_left.swap(false, Ordering::Relaxed) {
            (self.copying, self.copied_at) = (false, pages);
            if pages >= LOG_PAGES_MAX {
                self.begin_log_anew("pragma wal_checkpoint(restart)", kept);
            } else if pages >= anew_at {
                self.begin_log_anew("pragma wal_checkpoint(passive)", kept);
            }
        } else if !self.copying && pages >= self.copied_at + copy_at {
            self.copying = self.wake.try_send(Errand::Copy).is_ok();
        }
    }

    /// Copies what is left of the log; whether nothing kept it from that. A reader of long breath, such as a backup, must
    /// not hold up writers: the log then grows until it is done.
    fn begin_log_anew(&self, pragma: &str, kept: i64) -> bool {
        drop(self.connection.pragma_update(None, "journal_size_limit", kept));
        drop(self.connection.busy_timeout(CHECKPOINT_WAIT));
        let done = self.connection.query_row(pragma, [], |row| row.get::<_, bool>(0)).is_ok_and(|busy| !busy);
        drop(self.connection.busy_timeout(BUSY_TIMEOUT));
        done
    }
}

/// Copies the write-ahead log back, and answers how many of its pages are copied by now.
fn checkpoint(connection: &Connection, pragma: &str) -> rusqlite::Result<u64> {
    connection.query_row(pragma, [], |row| row.get::<_, i64>(2)).map(|pages| u64::try_from(pages).unwrap_or(0))
}

fn run_errands(connection: &Connection, file: &Path, due: &Receiver<Errand>, log: &Log) {
    while let Ok(errand) = due.recv() {
        match errand {
            Errand::Copy => {
                copy(connection, log);
                log.tail_is_left.store(true, Ordering::Relaxed);
            }
            Errand::WriteAhead => {
                if let Err(error) = write_ahead(connection, file) {
                    tracing::debug!(%error, "nothing could be written ahead of the log; commits take a little longer");
                }
            }
        }
    }
}

fn copy(connection: &Connection, log: &Log) {
    for _ in 0..COPY_PASSES {
        match checkpoint(connection, "pragma wal_checkpoint(passive)") {
            Ok(copied) if log.pages.load(Ordering::Relaxed).saturating_sub(copied) > TAIL_PAGES => {}
            Ok(_) => break,
            Err(error) => {
                tracing::warn!(%error, "copying the write-ahead log back failed; it is tried again");
                break;
            }
        }
    }
}

#[cfg(unix)]
fn has_room(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) >= ROOM_BYTES)
}

#[cfg(not(unix))]
fn has_room(_: &Path) -> bool {
    true
}

/// Makes the file of the log long enough, with zeros behind what is in it: they are no frames to whoever reads it.
fn write_ahead(connection: &Connection, path: &Path) -> Result<()> {
    if !has_room(path) {
        return Ok(());
    }
    // Nobody else adds to the log meanwhile.
    connection.execute_batch("begin immediate")?;
    let written = lengthen(path);
    connection.execute_batch("rollback")?;
    let file = written.and_then(|file| file.sync_data());
    file.map_err(|error| Error::new(Kind::Other, error.to_string()))
}

/// What the log is made longer with, in few large writes.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

fn lengthen(path: &Path) -> std::io::Result<File> {
    let mut file = File::options().append(true).open(path)?;
    let length = file.metadata()?.len();
    let mut missing = AHEAD_BYTES.unsigned_abs().saturating_sub(length);
    let mut written = Ok(());
    while missing > 0 && written.is_ok() {
        let part = ZEROS.get(..usize::try_from(missing).unwrap_or(usize::MAX)).unwrap_or(&ZEROS);
        written = file.write_all(part);
        missing -= part.len() as u64;
    }
    // On a full disk the room is better left to others.
    written.inspect_err(|_| drop(file.set_len(length)))?;
    Ok(file)
}

type Orders = HashMap<(usize, usize), Arc<[usize]>>;

thread_local! {
    /// Which parameter stands at which place of a statement, by the place of its text.
    static ORDERS: RefCell<Orders> = RefCell::default();
}

/// SQLite numbers `$3` by its first appearance, not by its number, so parameters are bound by the number in the name. A
/// statement that is part of the program always has the same text at the same place, so that is worked out once.
fn order(statement: &rusqlite::Statement<'_>, sql: &'static str) -> Result<Arc<[usize]>> {
    let place = (sql.as_ptr().addr(), sql.len());
    if let Some(order) = ORDERS.with_borrow(|orders| orders.get(&place).cloned()) {
        return Ok(order);
    }
    let order: Arc<[usize]> = work_out_order(statement)?.into();
    ORDERS.with_borrow_mut(|orders| orders.insert(place, Arc::clone(&order)));
    Ok(order)
}

fn work_out_order(statement: &rusqlite::Statement<'_>) -> Result<Vec<usize>> {
    let number = |index| {
        let name = statement.parameter_name(index)?;
        name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
    };
    let missing = |index| Error::new(Kind::Other, format!("parameter {index} has no number"));
    (1..=statement.parameter_count()).map(|index| number(index).ok_or_else(|| missing(index))).collect()
}

fn bind(statement: &mut rusqlite::Statement<'_>, order: &[usize], params: &[Param<'_>]) -> Result<()> {
    for (index, number) in (1..).zip(order) {
        let Some(param) = params.get(*number) else {
            return Err(Error::new(Kind::Other, format!("parameter {index} has no value")));
        };
        match param {
            Param::Null => statement.raw_bind_parameter(index, rusqlite::types::Null)?,
            Param::Int(v) => statement.raw_bind_parameter(index, v)?,
            Param::Bool(v) => statement.raw_bind_parameter(index, v)?,
            Param::Text(v) => statement.raw_bind_parameter(index, v)?,
            Param::Bytes(v) => statement.raw_bind_parameter(index, v)?,
        }
    }
    Ok(())
}

pub(crate) fn execute(connection: &Connection, sql: &'static str, params: &[Param<'_>]) -> Result<u64> {
    let mut statement = connection.prepare_cached(sql)?;
    let order = order(&statement, sql)?;
    bind(&mut statement, &order, params)?;
    Ok(statement.raw_execute()? as u64)
}

pub(crate) fn query(connection: &Connection, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>> {
    let mut statement = connection.prepare_cached(sql)?;
    let order = order(&statement, sql)?;
    bind(&mut statement, &order, params)?;
    rows(&mut statement)
}

/// Runs a statement whose text was made at run time.
pub(crate) fn execute_text(connection: &Connection, sql: &str, params: &[Param<'_>]) -> Result<u64> {
    let mut statement = connection.prepare_cached(sql)?;
    let order = work_out_order(&statement)?;
    bind(&mut statement, &order, params)?;
    Ok(statement.raw_execute()? as u64)
}

/// A query whose text was made at run time.
pub(crate) fn query_text(connection: &Connection, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
    let mut statement = connection.prepare_cached(sql)?;
    let order = work_out_order(&statement)?;
    bind(&mut statement, &order, params)?;
    rows(&mut statement)
}

fn rows(statement: &mut rusqlite::Statement<'_>) -> Result<Vec<Row>> {
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            values.push(match row.get_ref(column)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(v) => Value::Int(v),
                ValueRef::Text(v) => Value::Text(String::from_utf8_lossy(v).into_owned()),
                ValueRef::Blob(v) => Value::Bytes(v.to_vec()),
                ValueRef::Real(_) => return Err(Error::new(Kind::Other, format!("column {column} holds a real number"))),
            });
        }
        found.push(Row::new(values));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_statement_is_planned_once_whatever_is_bound() {
        let connection = open_connection(Path::new(":memory:"), OpenFlags::default()).expect("it opens");
        connection.execute_batch("create table item (a integer, b text); create index item_x on item (a) where b = 'x'").expect("a table");
        let mut statement = connection.prepare("select a from item where b = ?1 and a > ?2").expect("a statement");
        for number in 0..5 {
            let found = statement.query_map((number.to_string(), number), |row| row.get::<_, i64>(0)).expect("it runs").count();
            assert_eq!(found, 0);
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
