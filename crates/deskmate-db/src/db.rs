//! The two doors, and opening and closing behind them.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::here::Here;
use crate::migrate::{self, Migration};
use crate::postgres::{self, Mode};
use crate::sqlite::{self, OneWriter, Queue};
use crate::work::{Call, NoSeal, Seal, Work};
use crate::{Error, Kind, Result, Tx};

/// Which engine a store runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// One file, one process.
    Sqlite,
    /// A server, any number of processes.
    Postgres,
}

/// The channel is named after the schema, so that several desks can live in one database.
const LISTEN: &str = "do $$ begin execute 'listen ' || quote_ident('deskmate_' || current_schema()); end $$";

/// How many reads that work hard may wait.
const SLOW_MAX: usize = 32;

/// How a store is opened.
pub struct Options {
    /// `sqlite:PATH` or `postgres://…`.
    pub url: String,
    /// The schema, oldest first.
    pub migrations: &'static [Migration],
    /// How many calls may wait for a thread before further ones are refused.
    pub queue_max: usize,
    /// Threads for reading, and on PostgreSQL as many again for writing.
    pub threads: usize,
    /// Whether there must be a store already: then none is made.
    pub existing: bool,
}

impl Options {
    /// The usual sizes.
    pub fn new(url: impl Into<String>, migrations: &'static [Migration]) -> Self {
        let url = url.into();
        let threads = if url.starts_with("sqlite:") { 2 } else { 8 };
        Self { url, migrations, queue_max: 4_096, threads, existing: false }
    }
}

/// An open store. Cheap to clone; the threads end when the last clone is gone.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    url: String,
    reads: Mutex<Option<Queue>>,
    writes: Mutex<Option<Queue>>,
    one_writer: Option<OneWriter>,
    here: Option<Here>,
    slow: Mutex<Option<Queue>>,
    read_threads: Mutex<Vec<JoinHandle<()>>>,
    write_threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Db {
    /// Opens the store and brings its schema up to date. `seal` is called at every commit, on PostgreSQL one for each thread.
    pub fn open(options: &Options, seal: &mut dyn FnMut(&mut Tx<'_>) -> Result<Box<dyn Seal>>) -> Result<Self> {
        let (engine, mut reads, writes, one_writer, here, slow) = if let Some(path) = options.url.strip_prefix("sqlite:") {
            let path = PathBuf::from(path);
            migrate::check_file(&path, options.migrations, options.existing)?;
            let connection = sqlite::open_writer(&path)?;
            let mut tx = Tx::new(crate::tx::Connection::Sqlite(&connection));
            migrate::run(&mut tx, options.migrations, options.existing)?;
            let seal = seal(&mut tx)?;
            let here = Here::open(&path)?;
            let (one_writer, queue, threads) = sqlite::start_writer(connection, &path, options.queue_max, seal, here.clone())?;
            let reads = sqlite::start_readers(&path, options.threads, options.queue_max)?;
            let slow = sqlite::start_readers(&path, 1, SLOW_MAX)?;
            (Engine::Sqlite, reads, (queue, threads), Some(one_writer), Some(here), slow)
        } else if options.url.starts_with("postgres://") || options.url.starts_with("postgresql://") {
            let config = options.url.parse().map_err(Error::from)?;
            let mut session = postgres::Session::connect(&config)?;
            let mut tx = Tx::new(crate::tx::Connection::Postgres(&mut session));
            migrate::run(&mut tx, options.migrations, options.existing)?;
            let mut seals = Vec::new();
            for _ in 0..options.threads {
                seals.push(seal(&mut tx)?);
            }
            let seals = Mutex::new(seals);
            let next_seal = || seals.lock().ok().and_then(|mut seals| seals.pop()).unwrap_or_else(|| Box::new(NoSeal));
            let writes = postgres::start(&config, Mode::Write, options.threads, options.queue_max, &next_seal)?;
            let reads = postgres::start(&config, Mode::Read, options.threads, options.queue_max, &|| Box::new(NoSeal))?;
            let slow = postgres::start(&config, Mode::Read, 1, SLOW_MAX, &|| Box::new(NoSeal))?;
            (Engine::Postgres, reads, writes, None, None, slow)
        } else {
            return Err(Error::new(Kind::Other, "the database URL must begin with sqlite: or postgres://"));
        };
        reads.1.extend(slow.1);
        let inner = Inner {
            engine,
            url: options.url.clone(),
            reads: Mutex::new(Some(reads.0)),
            writes: Mutex::new(Some(writes.0)),
            one_writer,
            here,
            slow: Mutex::new(Some(slow.0)),
            read_threads: Mutex::new(reads.1),
            write_threads: Mutex::new(writes.1),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Opens an existing store for reading only. Its schema must be the one that this binary knows.
    pub fn open_reader(options: &Options) -> Result<Self> {
        let (engine, reads) = if let Some(path) = options.url.strip_prefix("sqlite:") {
            let path = PathBuf::from(path);
            if !path.is_file() {
                return Err(Error::new(Kind::Unavailable, format!("there is no store at {}", path.display())));
            }
            migrate::check_file(&path, options.migrations, false)?;
            (Engine::Sqlite, sqlite::start_readers(&path, 1, options.queue_max)?)
        } else {
            let config = options.url.parse().map_err(Error::from)?;
            let mut session = postgres::Session::connect(&config)?;
            migrate::check_store(&mut Tx::new(crate::tx::Connection::Postgres(&mut session)), options.migrations, false)?;
            (Engine::Postgres, postgres::start(&config, Mode::Read, 1, options.queue_max, &|| Box::new(NoSeal))?)
        };
        let inner = Inner {
            engine,
            url: options.url.clone(),
            reads: Mutex::new(Some(reads.0)),
            writes: Mutex::new(None),
            one_writer: None,
            here: None,
            slow: Mutex::new(None),
            read_threads: Mutex::new(reads.1),
            write_threads: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Which engine this is.
    pub fn engine(&self) -> Engine {
        self.inner.engine
    }

    /// The URL that the store was opened with; it may hold a password.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// How many commits there were since the store was opened, and how many writes were in them: what group commit
    /// brings. `None` on PostgreSQL, where each write is a commit of its own.
    pub fn commits(&self) -> Option<(u64, u64)> {
        self.inner.one_writer.as_ref().map(OneWriter::counts)
    }

    /// Runs a closure over one consistent state of the store.
    pub async fn read<T, E, F>(&self, closure: F) -> Result<T, E>
    where
        F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (call, answer) = Call::new(closure);
        let mut call: Option<Box<dyn Work>> = Some(Box::new(call));
        if let Some(here) = &self.inner.here {
            call = call.and_then(|call| here.read(call));
        }
        if let Some(call) = call {
            enqueue(&self.inner.reads, call).map_err(E::from)?;
        }
        received(answer.await)
    }

    /// [`Db::read`] for a closure that works hard, such as checking a passphrase. One at a time, on a thread of its own,
    /// so that however many are asked for, other reads do not wait; beyond a few that wait, further ones are refused.
    pub async fn read_slowly<T, E, F>(&self, closure: F) -> Result<T, E>
    where
        F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        received(send(&self.inner.slow, closure)?.await)
    }

    /// Runs a closure in a transaction and answers after the commit is on disk. It may run more than once.
    pub async fn write<T, E, F>(&self, closure: F) -> Result<T, E>
    where
        F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (call, answer) = Call::new(closure);
        let mut call: Option<Box<dyn Work>> = Some(Box::new(call));
        if let Some(writer) = &self.inner.one_writer {
            call = call.and_then(|call| writer.at_once(call));
        }
        if let Some(call) = call {
            enqueue(&self.inner.writes, call).map_err(E::from)?;
        }
        received(answer.await)
    }

    /// [`Db::read`] for threads that may block.
    pub fn read_blocking<T, E, F>(&self, closure: F) -> Result<T, E>
    where
        F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        received(send(&self.inner.reads, closure)?.blocking_recv())
    }

    /// [`Db::write`] for threads that may block.
    pub fn write_blocking<T, E, F>(&self, closure: F) -> Result<T, E>
    where
        F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        received(send(&self.inner.writes, closure)?.blocking_recv())
    }

    /// Calls `told` whenever another node may have written (PostgreSQL), until it answers `false`. On SQLite there is
    /// no other node, and nothing is called.
    pub fn listen(&self, told: impl FnMut() -> bool + Send + 'static) -> Result<()> {
        if self.inner.engine == Engine::Sqlite {
            return Ok(());
        }
        let config: ::postgres::Config = self.inner.url.parse().map_err(Error::from)?;
        let spawned = std::thread::Builder::new().name("desk-listen".to_owned()).spawn(move || postgres::listen(&config, LISTEN, told));
        spawned.map(drop).map_err(|error| Error::new(Kind::Unavailable, format!("cannot start a thread: {error}")))
    }

    /// Whether the store was closed on purpose: an error alone says nothing about that.
    pub fn is_closed(&self) -> bool {
        self.inner.reads.lock().map_or(true, |queue| queue.is_none())
    }

    /// Finishes what waits, then closes the connections. Later calls are refused.
    pub fn close(&self) {
        // Readers first: SQLite folds its log into the file when the last connection that may write closes.
        if let Ok(mut slow) = self.inner.slow.lock() {
            *slow = None;
        }
        if let Some(here) = &self.inner.here {
            here.close();
        }
        for (queue, threads) in [(&self.inner.reads, &self.inner.read_threads), (&self.inner.writes, &self.inner.write_threads)] {
            if let Ok(mut queue) = queue.lock() {
                *queue = None;
            }
            let threads = threads.lock().map(|mut threads| std::mem::take(&mut *threads)).unwrap_or_default();
            for thread in threads {
                drop(thread.join());
            }
        }
    }
}

fn send<T, E, F>(queue: &Mutex<Option<Queue>>, closure: F) -> Result<oneshot::Receiver<Result<T, E>>, E>
where
    F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let (call, answer) = Call::new(closure);
    enqueue(queue, Box::new(call)).map_err(E::from)?;
    Ok(answer)
}

fn enqueue(queue: &Mutex<Option<Queue>>, work: Box<dyn Work>) -> Result<()> {
    let queue = queue.lock().ok().and_then(|queue| queue.clone()).ok_or_else(closed)?;
    queue.try_send(work).map_err(|error| match error {
        TrySendError::Full(_) => Error::new(Kind::Busy, "too many calls wait for the database"),
        TrySendError::Disconnected(_) => closed(),
    })
}

fn closed() -> Error {
    Error::new(Kind::Closed, "the database is closed")
}

fn received<T, E: From<Error>>(answer: std::result::Result<Result<T, E>, oneshot::error::RecvError>) -> Result<T, E> {
    answer.unwrap_or_else(|_| Err(E::from(closed())))
}

/// The next work of a shared queue; `None` when the store is closed.
pub(crate) fn next(jobs: &Mutex<Receiver<Box<dyn Work>>>) -> Option<Box<dyn Work>> {
    jobs.lock().ok()?.recv().ok()
}
