//! A large store, made by the operations themselves in this process: every row and every event is a real one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use deskmate_core::call::{Call, Credential, Desk, Outcome, Registry, Surface};
use deskmate_core::record::{Keyring, Sealer, SigningKey};
use deskmate_core::secret::{Key, Safe};
use deskmate_core::{MIGRATIONS, World};
use deskmate_db::{Db, Error, Kind, Options, Seal, Tx};
use serde_json::{Value, json};

/// How many calls are under way at once; one commit takes what waits.
const CLIENTS: u64 = 256;

struct Machine;

impl World for Machine {
    #[expect(clippy::disallowed_methods, reason = "this is the world that the rule sends everybody to")]
    fn now(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system gives randomness");
    }
}

/// Opens a desk in a data directory, with the files that the server expects there.
pub fn open(home: &Path) -> Desk {
    std::fs::create_dir_all(home).expect("the directory can be made");
    let key_file = home.join("record.key");
    let text = std::fs::read_to_string(&key_file).unwrap_or_else(|_| {
        let mut seed = [0_u8; 32];
        Machine.fill(&mut seed);
        let text = SigningKey::generate("deskmate/bench", &seed);
        std::fs::write(&key_file, &text).expect("the key can be written");
        text
    });
    let key = Arc::new(SigningKey::parse(&text).expect("the key is sound"));
    let options = Options::new(format!("sqlite:{}", home.join("desk.db").display()), MIGRATIONS);
    let mut seal = |tx: &mut Tx<'_>| -> deskmate_db::Result<Box<dyn Seal>> {
        let sealer = Sealer::new(tx, Arc::clone(&key), Box::new(|_| {})).map_err(|error| Error::new(Kind::Other, error.to_string()))?;
        Ok(Box::new(sealer))
    };
    let db = Db::open(&options, &mut seal).expect("the store opens");
    let keys = Arc::new(Keyring::of(Arc::clone(&key)));
    Desk {
        db,
        registry: Arc::new(Registry::new()),
        world: Arc::new(Machine),
        keys,
        safe: Safe::new(Key::parse(&Key::generate(&[8; 32])).expect("a key")),
        away: deskmate_core::call::Away::default(),
        open_allowed: true,
        rulebooks: deskmate_core::policy::Cache::default(),
        frameworks: deskmate_core::compliance::Library::default(),
        templates: deskmate_core::agents::template::Library::default(),
        server: Arc::default(),
        hands: Arc::new(deskmate_core::call::NoHands),
        within: None,
        session: None,
    }
}

/// A message from one agent to another, as a call.
pub fn message(number: u64, recipients: u64) -> Call {
    Call {
        credential: Credential::Named(Some("code".to_owned())),
        surface: Surface::Rest,
        operation: "bridge_send_message".to_owned(),
        input: json!({ "to": recipient(number % recipients), "content": format!("message {number}: {}", "x".repeat(120)) }),
    }
}

/// The agent whose mailbox has a number.
pub fn recipient(number: u64) -> String {
    format!("reader-{number}")
}

/// Makes so many calls, many at once, and keeps of each answer what `keep` takes from it.
pub async fn calls<T: Send + 'static>(desk: &Desk, count: u64, call: impl Fn(u64) -> Call + Send + Sync + 'static, keep: fn(&Value) -> Option<T>) -> Vec<T> {
    let (next, call) = (Arc::new(AtomicU64::new(0)), Arc::new(call));
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let (desk, next, call) = (desk.clone(), Arc::clone(&next), Arc::clone(&call));
        clients.push(tokio::spawn(async move {
            let mut kept = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return kept;
                }
                let (Outcome::Done(answer) | Outcome::NotYet(answer)) = desk.call(call(number)).await.expect("the call is answered").outcome;
                kept.extend(keep(&answer));
            }
        }));
    }
    let mut all = Vec::new();
    for client in clients {
        all.extend(client.await.expect("no client panicked"));
    }
    all
}

/// Sends so many messages to so many recipients and answers how many in a second.
pub fn run(home: &Path, messages: u64, recipients: u64) -> f64 {
    let desk = open(home);
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(calls(&desk, messages, move |number| message(number, recipients), |_| None::<()>));
    desk.db.close();
    #[expect(clippy::cast_precision_loss, reason = "a count of messages")]
    let rate = messages as f64 / started.elapsed().as_secs_f64();
    rate
}
