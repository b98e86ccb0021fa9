//! PostgreSQL: a few threads, each with one connection of the synchronous client.
//!
//! Writes run SERIALIZABLE and are run again when they lose against another one, which is safe because closures have
//! no effects outside the transaction. A connection that breaks before the commit is opened again and the write is
//! repeated; one that breaks during the commit leaves its outcome unknown, and the caller is told so.

use std::collections::HashMap;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use postgres::types::ToSql;
use postgres::{Client, Config, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::sqlite::Queue;
use crate::tx::Connection;
use crate::value::{Param, Row, Value};
use crate::work::{Committed, Seal, Verdict, Work};
use crate::{Error, Kind, Result, Tx};

/// How long a call may wait and keep trying, from the moment when it was queued: against other writers, and against a
/// server that is away.
const RETRY_TIME_MAX: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const VERSION_MIN: i64 = 140_000;

/// One connection with its prepared statements.
pub(crate) struct Session {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Session {
    pub(crate) fn connect(config: &Config) -> Result<Self> {
        let mut config = config.clone();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.tcp_user_timeout(Duration::from_secs(10)).application_name("deskmate");
        let mut client = config.connect(tls()?)?;
        let version: i32 = client.query_one("select current_setting('server_version_num')::int", &[])?.get(0);
        if i64::from(version) < VERSION_MIN {
            return Err(Error::new(Kind::Other, format!("PostgreSQL 14 or newer is needed, this server reports {version}")));
        }
        // A scan of a small table takes a lock on all of it and conflicts with every writer, so indexes are preferred.
        client.batch_execute(
            "set enable_seqscan = off; set enable_bitmapscan = off; set client_min_messages = warning; set statement_timeout = '30s'; \
             set idle_in_transaction_session_timeout = '60s'; set lock_timeout = '10s'; set jit = off;",
        )?;
        Ok(Self { client, statements: HashMap::new() })
    }

    fn prepared(&mut self, sql: &'static str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql)?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    pub(crate) fn execute(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<u64> {
        let statement = self.prepared(sql)?;
        let params: Vec<&(dyn ToSql + Sync)> = used(&statement, params)?.iter().map(|param| param as _).collect();
        Ok(self.client.execute(&statement, &params)?)
    }

    pub(crate) fn query(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let statement = self.prepared(sql)?;
        self.run_query(&statement, params)
    }

    pub(crate) fn query_text(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let statement = self.client.prepare(sql)?;
        self.run_query(&statement, params)
    }

    pub(crate) fn execute_rows(&mut self, sql: &str, rows: &[Row]) -> Result<()> {
        let statement = self.client.prepare(sql)?;
        for row in rows {
            let params = row.params();
            let params: Vec<&(dyn ToSql + Sync)> = used(&statement, &params)?.iter().map(|param| param as _).collect();
            self.client.execute(&statement, &params)?;
        }
        Ok(())
    }

    pub(crate) fn batch(&mut self, sql: &str) -> Result<()> {
        Ok(self.client.batch_execute(sql)?)
    }

    fn run_query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>> {
        use postgres::fallible_iterator::FallibleIterator;
        let mut rows = self.client.query_raw(statement, used(statement, params)?)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read_row(&row)?);
        }
        Ok(found)
    }
}

/// Statements may name fewer parameters than the caller has; SQLite allows it, so this engine does too.
fn used<'p>(statement: &Statement, params: &'p [Param<'p>]) -> Result<&'p [Param<'p>]> {
    params.get(..statement.params().len()).ok_or_else(|| Error::new(Kind::Other, "the statement names more parameters than were given"))
}

fn read_row(row: &postgres::Row) -> Result<Row> {
    use postgres::types::Type;
    let mut values = Vec::with_capacity(row.len());
    for (index, column) in row.columns().iter().enumerate() {
        let value = match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(index)?.map(Value::Int),
            Type::INT4 => row.try_get::<_, Option<i32>>(index)?.map(|v| Value::Int(i64::from(v))),
            Type::BOOL => row.try_get::<_, Option<bool>>(index)?.map(|v| Value::Int(i64::from(v))),
            Type::TEXT | Type::VARCHAR | Type::NAME => row.try_get::<_, Option<String>>(index)?.map(Value::Text),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(index)?.map(Value::Bytes),
            ref other => return Err(Error::new(Kind::Other, format!("column {} has the type {other}", column.name()))),
        };
        values.push(value.unwrap_or(Value::Null));
    }
    Ok(Row::new(values))
}

/// Reading all certificates of the system takes longer than a connection does: they are read once.
static TLS: OnceLock<MakeRustlsConnect> = OnceLock::new();

/// TLS with the system's certificates; whether it is used is the URL's `sslmode`.
pub(crate) fn tls() -> Result<MakeRustlsConnect> {
    if let Some(known) = TLS.get() {
        return Ok(known.clone());
    }
    let mut roots = rustls::RootCertStore::empty();
    for certificate in rustls_native_certs::load_native_certs().certs {
        // A certificate that rustls cannot read is of no use to the connection either.
        drop(roots.add(certificate));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(Kind::Other, format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TLS.get_or_init(|| MakeRustlsConnect::new(config)).clone())
}

/// Calls `told` for every notification on a channel, and once after each new connection, because some may be missed
/// in between. Ends when `told` answers `false`.
pub(crate) fn listen(config: &Config, channel: &str, mut told: impl FnMut() -> bool) {
    use postgres::fallible_iterator::FallibleIterator;
    loop {
        let heard = Session::connect(config).and_then(|mut session| {
            session.batch(channel)?;
            let mut open = told();
            while open && !session.client.is_closed() {
                let mut waiting = session.client.notifications();
                // The time-out makes a lost wake-up a matter of a second.
                drop(waiting.timeout_iter(Duration::from_secs(1)).next()?);
                open = told();
            }
            Ok(open)
        });
        match heard {
            Ok(false) => return,
            Ok(true) => {}
            Err(error) => tracing::debug!(%error, "listening for news of the record failed; it is tried again"),
        }
        if !told() {
            return;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Whether a thread's transactions change anything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
}

impl Mode {
    fn begin(self) -> &'static str {
        match self {
            Mode::Read => "begin isolation level repeatable read read only",
            Mode::Write => "begin isolation level serializable",
        }
    }
}

/// Starts `count` threads on one shared queue. `seal` makes one seal for each.
pub(crate) fn start(config: &Config, mode: Mode, count: usize, queue_max: usize, seal: &dyn Fn() -> Box<dyn Seal>) -> Result<(Queue, Vec<JoinHandle<()>>)> {
    let (queue, jobs) = sync_channel::<Box<dyn Work>>(queue_max);
    let jobs = Arc::new(Mutex::new(jobs));
    let mut threads = Vec::new();
    for number in 0..count {
        let mut worker = Worker { config: config.clone(), session: None, mode, seal: seal() };
        let jobs = Arc::clone(&jobs);
        let name = format!("desk-pg-{}{number}", if mode == Mode::Read { "r" } else { "w" });
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || {
                while let Some(work) = crate::db::next(&jobs) {
                    worker.run(work);
                }
            })
            .map_err(|error| Error::new(Kind::Unavailable, format!("cannot start a database thread: {error}")))?;
        threads.push(thread);
    }
    Ok((queue, threads))
}

struct Worker {
    config: Config,
    session: Option<Session>,
    mode: Mode,
    seal: Box<dyn Seal>,
}

impl Worker {
    fn run(&mut self, mut work: Box<dyn Work>) {
        if work.is_abandoned() {
            // Its caller gave up and was told nothing: what was never begun is not done behind its back.
            return;
        }
        if work.age() > RETRY_TIME_MAX {
            return work.answer(Err(Error::new(Kind::Unavailable, "the call waited too long for a connection")));
        }
        let started = Instant::now();
        let mut attempt: u32 = 0;
        let outcome = loop {
            let outcome = self.attempt(&mut work);
            let again = matches!(&outcome, Err(error) if matches!(error.kind(), Kind::Busy | Kind::Unavailable));
            if !again || work.age() > RETRY_TIME_MAX {
                break outcome;
            }
            attempt += 1;
            // The wait differs from thread to thread, so that two losers do not meet again at once.
            let jitter = u64::from(started.elapsed().subsec_nanos() % 1_000);
            std::thread::sleep(Duration::from_micros(jitter + (200 << attempt.min(9))));
        };
        let committed = if outcome.is_ok() { Committed::Yes } else { Committed::No };
        self.seal.after_commit(committed);
        work.answer(outcome);
    }

    fn attempt(&mut self, work: &mut Box<dyn Work>) -> Result<()> {
        let mut session = match self.session.take() {
            Some(session) if !session.client.is_closed() => session,
            _ => Session::connect(&self.config)?,
        };
        let outcome = self.transact(&mut session, work);
        // A session whose connection broke, or whose transaction cannot be ended, is dropped.
        if !session.client.is_closed() && (outcome.is_ok() || session.batch("rollback").is_ok()) {
            self.session = Some(session);
        }
        outcome
    }

    fn transact(&mut self, session: &mut Session, work: &mut Box<dyn Work>) -> Result<()> {
        session.batch(self.mode.begin())?;
        let mut tx = Tx::new(Connection::Postgres(session));
        match work.run(&mut tx) {
            Verdict::Undo(Some(error)) if matches!(error.kind(), Kind::Busy | Kind::Unavailable) => return Err(error),
            Verdict::Undo(_) => return session.batch("rollback"),
            Verdict::Keep => {}
        }
        let staged = tx.take_staged();
        self.seal.before_commit(&mut tx, staged)?;
        session.batch("commit").map_err(|error| match error.kind() {
            Kind::Unavailable if self.mode == Mode::Write => Error::new(
                Kind::Unknown,
                format!("the connection broke during the commit, so its outcome is not known ({error}); ask again with the same idempotency_key"),
            ),
            _ => error,
        })
    }
}
