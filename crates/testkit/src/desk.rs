//! A desk in a temporary directory or schema, and the callers that tests speak as.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use deskmate_core::call::{Actor, Away, Call, Credential, Desk, Errand, Fetched, Hands, NoHands, Outcome, Registry, Surface, Tried};
use deskmate_core::record::{self, Keyring, Report, Sealer, Sealing, SigningKey, Stager, Verifier};
use deskmate_core::secret::{Key, Safe};
use deskmate_core::{Code, Error, MIGRATIONS, Result, World};
use deskmate_db::{Db, Engine, Options};
use serde_json::{Value, json};

use crate::pg::PgSchema;
use crate::world::TestWorld;

/// Where a test's desk keeps its rows.
pub enum Backend {
    /// A file in a temporary directory.
    Sqlite,
    /// A schema of its own on this server.
    Postgres(String),
}

impl Backend {
    /// The server of `DESKMATE_TEST_PG`, or `None` when it says `skip`.
    ///
    /// # Panics
    /// If the variable is missing: a test that silently did not run would prove nothing.
    #[expect(clippy::disallowed_methods, reason = "the test command hands the server over in the environment")]
    pub fn postgres() -> Option<Self> {
        match std::env::var("DESKMATE_TEST_PG").as_deref() {
            Ok("skip") => None,
            Ok(url) => Some(Self::Postgres(url.to_owned())),
            Err(error) => panic!("DESKMATE_TEST_PG: {error}: run ./test, or set it to a postgres:// URL or to skip"),
        }
    }
}

/// Who a test speaks as.
#[derive(Clone)]
pub enum Caller {
    /// An agent in open mode.
    Agent(&'static str),
    /// Whoever holds this secret; a session counts as proved.
    Secret(String),
    /// A run of an agent, by its id.
    Run(String),
    /// Nobody.
    Nobody,
    /// The desk itself.
    System,
}

/// The hands that a test lends to its desk; none until then.
#[derive(Default)]
struct Lent(RwLock<Option<Arc<dyn Hands>>>);

impl Hands for Lent {
    fn run(&self, errand: Errand) -> Fetched<'_> {
        let hands = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            match hands {
                Some(hands) => hands.run(errand).await,
                None => NoHands.run(errand).await,
            }
        })
    }

    fn quickly(&self, errand: Errand) -> Tried<'_> {
        let hands = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            match hands {
                Some(hands) => hands.quickly(errand).await,
                None => NoHands.quickly(errand).await,
            }
        })
    }
}

/// A desk for one test.
pub struct TestDesk {
    /// The desk.
    pub desk: Desk,
    /// Its clock and chance.
    pub world: Arc<TestWorld>,
    key: Arc<SigningKey>,
    hands: Arc<Lent>,
    // Dropped last: first the desk lets go of its files.
    _schema: Option<PgSchema>,
    _directory: Option<tempfile::TempDir>,
}

impl TestDesk {
    /// An empty desk with every operation.
    pub fn new(backend: Backend) -> Self {
        Self::with(backend, Registry::new())
    }

    /// An empty desk with chosen operations.
    ///
    /// # Panics
    /// If the store cannot be opened.
    pub fn with(backend: Backend, registry: Registry) -> Self {
        let world = Arc::new(TestWorld::new(7));
        let key = Arc::new(SigningKey::parse(&SigningKey::generate("deskmate/test", &[7; 32])).expect("a key"));
        let (url, schema, directory) = match backend {
            Backend::Sqlite => {
                let directory = tempfile::tempdir().expect("a temporary directory");
                (format!("sqlite:{}", directory.path().join("desk.db").display()), None, Some(directory))
            }
            Backend::Postgres(server) => {
                let schema = PgSchema::new(&server);
                (schema.url(), Some(schema), None)
            }
        };
        let mut options = Options::new(url, MIGRATIONS);
        options.threads = 2;
        let db = open(&options, &key);
        let keys = Arc::new(Keyring::of(Arc::clone(&key)));
        let hands: Arc<Lent> = Arc::default();
        let desk = Desk {
            db,
            registry: Arc::new(registry),
            world: world.clone() as Arc<dyn World>,
            keys,
            safe: Safe::new(Key::parse(&Key::generate(&[8; 32])).expect("a key")),
            away: Away::default(),
            open_allowed: true,
            rulebooks: deskmate_core::policy::Cache::default(),
            frameworks: deskmate_core::compliance::Library::default(),
            templates: deskmate_core::agents::template::Library::default(),
            server: Arc::default(),
            hands: Arc::clone(&hands) as Arc<dyn Hands>,
            within: None,
            session: None,
        };
        Self { desk, world, key, hands, _schema: schema, _directory: directory }
    }

    /// Lets the desk reach outside with these hands from now on.
    pub fn lend(&self, hands: impl Hands + 'static) {
        *self.hands.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(hands));
    }

    /// Stops the desk and starts it again on what it left on disk.
    pub fn restart(&mut self) {
        let mut options = Options::new(self.desk.db.url().to_owned(), MIGRATIONS);
        options.threads = 2;
        self.desk.db.close();
        self.desk.db = open(&options, &self.key);
        self.desk.rulebooks = deskmate_core::policy::Cache::default();
    }

    /// Calls an operation and seals what it told. People's sessions come over REST, everybody else over MCP.
    pub fn call(&self, caller: &Caller, operation: &str, input: Value) -> Result<Value> {
        let is_session = matches!(caller, Caller::Secret(secret) if secret.starts_with("dms_"));
        self.call_on(if is_session { Surface::Rest } else { Surface::Mcp }, caller, operation, input)
    }

    /// Calls an operation as a client that narrows itself to these folders.
    pub fn call_within(&self, folders: &[&str], caller: &Caller, operation: &str, input: Value) -> Result<Value> {
        let folders = folders.iter().map(|folder| (*folder).to_owned()).collect();
        self.call_at(&self.desk.within(folders), Surface::Mcp, caller, operation, input)
    }

    /// Calls an operation over one of an agent's connections.
    pub fn call_in(&self, session: &str, caller: &Caller, operation: &str, input: Value) -> Result<Value> {
        self.call_at(&self.desk.in_session(session.into()), Surface::Mcp, caller, operation, input)
    }

    /// Calls an operation over a surface.
    pub fn call_on(&self, surface: Surface, caller: &Caller, operation: &str, input: Value) -> Result<Value> {
        self.call_at(&self.desk, surface, caller, operation, input)
    }

    fn call_at(&self, desk: &Desk, surface: Surface, caller: &Caller, operation: &str, input: Value) -> Result<Value> {
        let credential = match caller {
            Caller::Agent(name) => Credential::Named(Some((*name).to_owned())),
            Caller::Secret(secret) => Credential::Secret { secret: secret.clone(), proved: true },
            Caller::Run(run) => Credential::Run(run.clone()),
            Caller::Nobody => Credential::Nobody,
            Caller::System => Credential::System,
        };
        let call = Call { credential, surface, operation: operation.to_owned(), input };
        let answer = wait(desk.call(call))?;
        self.seal();
        match answer.outcome {
            Outcome::Done(value) | Outcome::NotYet(value) => Ok(value),
        }
    }

    /// Calls as an agent in open mode.
    pub fn agent(&self, name: &'static str, operation: &str, input: Value) -> Result<Value> {
        self.call(&Caller::Agent(name), operation, input)
    }

    /// The code of a call that must fail.
    ///
    /// # Panics
    /// If it does not fail.
    pub fn refused(&self, caller: &Caller, operation: &str, input: Value) -> Error {
        match self.call(caller, operation, input) {
            Err(error) => error,
            Ok(answer) => panic!("{operation} was answered with {answer}"),
        }
    }

    /// Claims the desk and answers the owner's session.
    ///
    /// # Panics
    /// If the desk cannot be claimed.
    pub fn claim(&self) -> Caller {
        let link = wait(self.desk.act(Surface::System, deskmate_core::identity::issue_claim)).expect("a link");
        let input = json!({ "code": link.code, "name": "Owner", "passphrase": "correct horse" });
        let answer = self.call(&Caller::Nobody, "desk_claim", input).expect("the desk is claimed");
        Caller::Secret(answer["session"].as_str().expect("a session").to_owned())
    }

    /// Registers an agent and answers its token as a caller.
    ///
    /// # Panics
    /// If it cannot be registered.
    pub fn register(&self, owner: &Caller, agent: &str) -> Caller {
        let answer = self.call(owner, "desk_agent_add", json!({ "agent": agent })).expect("the agent is registered");
        Caller::Secret(answer["token"].as_str().expect("a token").to_owned())
    }

    /// Seals what waits; on SQLite it is sealed already.
    ///
    /// # Panics
    /// If sealing fails.
    pub fn seal(&self) {
        if self.desk.db.engine() == Engine::Postgres {
            loop {
                let key = Arc::clone(&self.key);
                let turn = self.desk.db.write_blocking(move |tx| record::seal_staged(tx, &key)).expect("sealing works");
                if turn == Sealing::Nothing {
                    return;
                }
            }
        }
    }

    /// Verifies the whole record and the rows that carry authority.
    ///
    /// # Panics
    /// If verification cannot run.
    pub fn verify(&self) -> Report {
        let keys = Arc::clone(&self.desk.keys);
        let verify = move |tx: &mut deskmate_db::Tx<'_>| -> Result<Report> {
            let mut verifier = Verifier::of_store(record::size(tx)?, &keys, &[]);
            while verifier.step(tx)? {}
            verifier.finish(tx, &keys)
        };
        self.desk.db.read_blocking(verify).expect("verification runs")
    }

    /// Runs SQL around the operations, as somebody with the file in hand would.
    ///
    /// # Panics
    /// If the statement fails.
    pub fn tamper(&self, sql: &'static str) {
        let run = move |tx: &mut deskmate_db::Tx<'_>| tx.execute(sql, &[]);
        let changed: Result<u64, deskmate_db::Error> = self.desk.db.write_blocking(run);
        assert!(changed.expect("the statement runs") > 0, "nothing was changed by {sql}");
    }

    /// Runs something of the desk's own.
    pub fn act<T: Send + 'static>(&self, act: impl FnMut(&mut deskmate_core::call::Cx<'_, '_>) -> Result<T> + Send + 'static) -> Result<T> {
        let done = wait(self.desk.act(Surface::System, act));
        self.seal();
        done
    }

    /// Who acts under a name in open mode.
    pub fn actor(name: &str) -> Actor {
        Actor::agent(name, false)
    }
}

fn open(options: &Options, key: &Arc<SigningKey>) -> Db {
    let sqlite = options.url.starts_with("sqlite:");
    let mut seal = |tx: &mut deskmate_db::Tx<'_>| -> deskmate_db::Result<Box<dyn deskmate_db::Seal>> {
        if sqlite {
            let sealer = Sealer::new(tx, Arc::clone(key), Box::new(|_| {}));
            return Ok(Box::new(sealer.map_err(|error| deskmate_db::Error::new(deskmate_db::Kind::Other, error.to_string()))?));
        }
        Ok(Box::new(Stager::new(Box::new(|| {}))))
    };
    Db::open(options, &mut seal).expect("the store opens")
}

/// How the engine would go about a statement.
pub fn plan(tx: &mut deskmate_db::Tx<'_>, sql: &str, params: &[deskmate_db::Param<'_>]) -> deskmate_db::Result<String> {
    let (explain, column) = match tx.engine() {
        Engine::Sqlite => ("explain query plan", 3),
        Engine::Postgres => ("explain", 0),
    };
    let rows = tx.query_text(&format!("{explain} {sql}"), params)?;
    Ok(rows.iter().map(|row| row.get::<String>(column)).collect::<deskmate_db::Result<Vec<_>>>()?.join("\n"))
}

/// Waits for a future on this thread.
pub fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Asserts the code of a refusal.
///
/// # Panics
/// If the code differs.
pub fn assert_code(error: &Error, code: Code) {
    assert_eq!(error.code, code, "{error}");
}
