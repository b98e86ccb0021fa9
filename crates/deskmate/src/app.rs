//! A running desk: the store, the operations, and the loops behind them.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deskmate_core::agents::Server;
use deskmate_core::call::{Actor, Answer, Away, Call, Credential, Cx, Desk, Outcome, Registry, Surface};
use deskmate_core::desk::STARTED;
use deskmate_core::gateway::Reading;
use deskmate_core::limits::WAIT_MAX;
use deskmate_core::policy::Mode;
use deskmate_core::record::{self, Event, Keyring, Sealer, Sealing, SigningKey, Stager};
use deskmate_core::secret::Safe;
use deskmate_core::{Code, Error, MIGRATIONS, Result, World, format_time, lease};
use deskmate_db::{Db, Engine, Options, Seal, Tx};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::config::Node;
use crate::gateway::{self, Gateway};
use crate::hands;
use crate::live::Live;
use crate::places::Places;
use crate::refusals::{self, Refusals};
use crate::runs::Runs;
use crate::telemetry::Telemetry;
use crate::world::{AHEAD_TOLD, Machine, wall};

/// How long the sealer waits when another node is at it.
const SEAL_RETRY: Duration = Duration::from_millis(20);
/// How often it looks for what another node may have left behind.
const SEAL_SWEEP: Duration = Duration::from_millis(500);

/// Calls of mounted tools, and asking what came of them.
const GATEWAY_CALL: &str = "gateway_call";
const GATEWAY_RESULT: &str = "gateway_result";

/// How often a call that is held looks how far that has come for which it waits, where somebody listens.
const HEARD_EVERY: Duration = Duration::from_secs(1);

/// Who listens while a call is held: how far that has come for which it waits, in words, as far as that says so.
pub(crate) type Heard = watch::Sender<Option<String>>;

/// A running desk. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) desk: Desk,
    pub(crate) live: Live,
    pub(crate) activity: Activity,
    pub(crate) streams: Places,
    waits: Places,
    pub(crate) telemetry: Telemetry,
    staged: Arc<Notify>,
    key: Arc<SigningKey>,
    refusals: Arc<Refusals>,
    url: Arc<OnceLock<String>>,
    own_url: Arc<OnceLock<String>>,
    pub(crate) runs: Runs,
    pub(crate) hands: hands::Machine,
    pub(crate) gateway: Gateway,
    /// Counts calls that put work into the queue, for the worker to look at once.
    pub(crate) queued: Arc<watch::Sender<u64>>,
    /// The lease by which this server is there for the others.
    pub(crate) holding: Holding,
    /// Cancelled when the server stops: whoever waits is answered at once then.
    pub(crate) stop: CancellationToken,
    /// The file to which checkpoints are copied.
    pub(crate) checkpoint_copy: Option<Arc<Path>>,
}

/// The fence of the lease by which a server is there, while it has it. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Holding(Arc<AtomicI64>);

impl Holding {
    /// Fences are counted from 1.
    pub(crate) fn get(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|fence| *fence > 0)
    }

    pub(crate) fn set(&self, fence: Option<i64>) {
        self.0.store(fence.unwrap_or(0), Ordering::Relaxed);
    }
}

impl App {
    /// Opens the store and makes it ready for calls; `begun` says that the key has signed before, so that there must be one.
    /// Blocks; call it before the async world or on a thread.
    pub(crate) fn open(url: &str, key: SigningKey, begun: bool, registry: Registry, open_allowed: bool) -> Result<Self> {
        let key = Arc::new(key);
        let live = Live::new();
        let staged = Arc::new(Notify::new());
        let options = Options { existing: begun, ..Options::new(url, MIGRATIONS) };
        let sqlite = url.starts_with("sqlite:");
        let mut newest = None;
        let mut seal = |tx: &mut Tx<'_>| -> deskmate_db::Result<Box<dyn Seal>> {
            let fail = |error: deskmate_core::Error| deskmate_db::Error::new(deskmate_db::Kind::Other, error.to_string());
            live.grown(record::size(tx).map_err(fail)?);
            newest = newest_event(tx)?;
            if sqlite {
                let live = live.clone();
                return Ok(Box::new(Sealer::new(tx, Arc::clone(&key), Box::new(move |size| live.grown(size))).map_err(fail)?));
            }
            let staged = Arc::clone(&staged);
            Ok(Box::new(Stager::new(Box::new(move || staged.notify_one()))))
        };
        let db = Db::open(&options, &mut seal)?;
        if let Some(warning) = newest.and_then(|(seq, at)| ahead_of_clock(seq, at, wall())) {
            tracing::warn!("{warning}");
        }
        let world: Arc<dyn World> = Arc::new(Machine::new(newest.map_or(0, |(_, at)| at)));
        let keys = Arc::new(Keyring::of(Arc::clone(&key)));
        let own = Arc::clone(&key);
        db.read_blocking(move |tx| record::check_end(tx, &own))?;
        let hands = hands::Machine::new();
        let desk = Desk {
            db,
            registry: Arc::new(registry),
            world,
            keys,
            safe: Safe::default(),
            away: Away::default(),
            open_allowed,
            rulebooks: deskmate_core::policy::Cache::default(),
            frameworks: deskmate_core::compliance::Library::default(),
            templates: deskmate_core::agents::template::Library::default(),
            server: Arc::default(),
            hands: Arc::new(hands.clone()),
            within: None,
            session: None,
        };
        Ok(Self {
            desk,
            live,
            activity: Activity::new(),
            streams: Places::of_streams(),
            waits: Places::of_waits(),
            telemetry: Telemetry::default(),
            staged,
            key,
            refusals: Arc::default(),
            url: Arc::default(),
            own_url: Arc::default(),
            runs: Runs::default(),
            hands,
            gateway: Gateway::default(),
            queued: Arc::default(),
            holding: Holding::default(),
            stop: CancellationToken::new(),
            checkpoint_copy: None,
        })
    }

    /// Says which server of the desk this is, and whether it offers itself for runs.
    pub(crate) fn serves_as(&mut self, node: Option<&Node>) -> Result<()> {
        let id = format!("server-{}-{}", std::process::id(), self.desk.world.opaque_id());
        let server = Server::new(&id, node.map(|node| node.name.as_str()), node.map_or(&[], |node| &node.labels))?;
        self.desk.server = Arc::new(server);
        Ok(())
    }

    /// The same desk, watched.
    pub(crate) fn watched(self, telemetry: Telemetry) -> Self {
        Self { telemetry, ..self }
    }

    /// The same desk for a client that narrows its calls to folders.
    pub(crate) fn within(&self, folders: Arc<[String]>) -> Self {
        Self { desk: self.desk.within(folders), ..self.clone() }
    }

    /// The same for the calls of one connection.
    pub(crate) fn in_session(&self, session: Arc<str>) -> Self {
        Self { desk: self.desk.in_session(session), ..self.clone() }
    }

    /// Says where people reach this desk's pages.
    pub(crate) fn listens(&self, url: &str) {
        self.url.get_or_init(|| url.to_owned());
    }

    /// Where people reach this desk's pages, once it listens.
    pub(crate) fn url(&self) -> Option<&str> {
        self.url.get().map(String::as_str)
    }

    /// Says where this server itself listens, for what runs on its machine.
    pub(crate) fn listens_itself(&self, url: &str) {
        self.own_url.get_or_init(|| url.to_owned());
    }

    /// Where this server itself listens, once it does.
    pub(crate) fn own_url(&self) -> Option<&str> {
        self.own_url.get().map(String::as_str)
    }

    /// The whole address of a page, as far as it is known.
    pub(crate) fn page(&self, path: &str) -> String {
        format!("{}{path}", self.url().unwrap_or_default())
    }

    /// Where people decide a request.
    pub(crate) fn page_of_request(&self, request: &str) -> String {
        self.page(&format!("/requests/{request}"))
    }

    /// Starts the loops that belong to a server. `facts` say how it stands: the record tells them.
    pub(crate) async fn start(&self, facts: Map<String, Value>) -> Result<()> {
        self.hands.visits(self);
        tokio::spawn(self.live.clone().follow(self.desk.clone()));
        if self.desk.db.engine() == Engine::Postgres {
            let live = self.live.clone();
            let db = self.desk.db.clone();
            // Another node's news: look how far the record has come.
            self.desk.db.listen(move || {
                match db.read_blocking(record::size) {
                    Ok(size) => live.grown(size),
                    Err(error) => tracing::debug!(%error, "news of the record could not be read; it is tried again"),
                }
                !db.is_closed()
            })?;
            tokio::spawn(self.clone().seal_loop());
        }
        self.check_clock().await?;
        let version = env!("CARGO_PKG_VERSION");
        self.desk.act(Surface::System, move |cx| cx.emit(Event::new(STARTED, "desk").facts(facts.clone()).fact("version", version))).await
    }

    /// Whether this machine's clock can be trusted with leases that other servers hold.
    pub(crate) async fn check_clock(&self) -> Result<()> {
        let world = Arc::clone(&self.desk.world);
        self.desk.db.read(move |tx| lease::check_clock(tx, world.now())).await
    }

    /// Does what a call asks. An operation that waits is asked again whenever something that concerns it happens,
    /// until it has an answer or its time is over.
    pub(crate) async fn call(&self, call: Call) -> Result<Answer> {
        self.call_heard(call, None).await
    }

    /// The same for somebody who listens while the call is held.
    pub(crate) async fn call_heard(&self, call: Call, heard: Option<&Heard>) -> Result<Answer> {
        let started = Instant::now();
        let watch = self.telemetry.begin(&self.desk, &call);
        let answer = match self.runs.count(&call.credential) {
            Ok(()) => self.hold(&call, heard).await.inspect(|answer| self.delivered(&call, answer)),
            Err(error) => Err(error),
        };
        let micros = micros(started);
        if let Some(watch) = watch {
            watch.end(&answer);
        }
        let (operation, surface) = (call.operation.as_str(), call.surface.name());
        match &answer {
            Ok(answer) => {
                let decision = answer.decision.map(Mode::name);
                tracing::debug!(actor = %answer.actor.id, verified = answer.actor.verified, operation, surface, decision, micros, "done");
            }
            Err(error) => {
                self.runs.refused(&call.credential, error);
                self.refused(&call, error, micros).await;
            }
        }
        answer.map_err(|error| self.disclose(error))
    }

    async fn refused(&self, call: &Call, error: &Error, micros: u64) {
        // What is wrong with an input is told by its field: the message may repeat what was given.
        let message = if error.code == Code::Invalid { error.field.as_deref().unwrap_or_default() } else { &error.message };
        let (caller, operation, surface) = (refusals::caller(&call.credential), call.operation.as_str(), call.surface.name());
        tracing::info!(caller, operation, surface, code = ?error.code, message, micros, "refused");
        self.refusals.note(&self.desk, call, error).await;
    }

    /// Lets somebody ask something of a server behind the desk that is no call of a tool, unless that is forbidden. What is refused is
    /// told like a call that is.
    pub(crate) async fn read_of_mount(&self, credential: Credential, mount: &str, reading: Reading, session: Option<Arc<str>>) -> Result<Actor> {
        let started = Instant::now();
        let input = json!({ "mount": mount, "kind": reading.kind.verb(), "name": reading.name, "arguments": reading.arguments });
        let call = Call { credential: credential.clone(), surface: Surface::Mcp, operation: refusals::READ.to_owned(), input };
        let read = match self.runs.count(&credential) {
            Ok(()) => self.desk.read_of_mount(credential, mount.to_owned(), reading, session).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &read {
            self.refused(&call, error, micros(started)).await;
        }
        read.map_err(|error| self.disclose(error))
    }

    /// Who a credential is, for a surface that asks before it calls. A refusal is told like that of any call.
    pub(crate) async fn admit(&self, credential: &Credential, operation: &str) -> Result<Actor> {
        let (desk, own, named) = (self.desk.clone(), credential.clone(), operation.to_owned());
        let admitted = self.desk.db.read(move |tx| desk.admit(tx, &own, &named)).await;
        if let Err(error) = &admitted {
            let call = Call { credential: credential.clone(), surface: Surface::Rest, operation: operation.to_owned(), input: Value::Null };
            self.refusals.note(&self.desk, &call, error).await;
        }
        admitted
    }

    /// Tells the record of a call that could not be read, beside whatever it is answered. `known` says that its caller's credential was
    /// accepted before.
    pub(crate) fn malformed(&self, credential: &Credential, text: &[u8], known: bool) {
        let digest = Sha256::digest(text.trim_ascii());
        let (desk, refusals, credential) = (self.desk.clone(), Arc::clone(&self.refusals), credential.clone());
        tokio::spawn(async move { refusals.malformed(&desk, &credential, &digest, known).await });
    }

    /// Tells what was only counted in minutes that are over.
    pub(crate) async fn sweep_refusals(&self) {
        self.refusals.sweep(&self.desk).await;
    }

    /// A fault of ours is told by a number that is also in the log, not by its text.
    fn disclose(&self, error: Error) -> Error {
        if error.code != Code::Internal || error.incident.is_some() {
            return error;
        }
        let incident = self.desk.world.opaque_id();
        tracing::error!(%incident, %error, "a call failed by a fault of the desk");
        Error { incident: Some(incident.into()), hint: error.hint, ..Error::new(Code::Internal, "something went wrong inside the desk; nothing was changed") }
    }

    /// A call of a mounted tool that was let pass, with what came of it.
    async fn hand_on(&self, call: &Call) -> Result<Answer> {
        let way = |cx: &mut Cx<'_, '_>, answer: &Answer| match gateway::passes(answer).map(|mount| gateway::way(cx, mount)) {
            Some(Err(error)) if error.of_the_store => Err(error),
            // A mount that is gone, or whose secret is, is told as what came of the call.
            way => Ok(way),
        };
        Ok(match self.desk.call_and(call.clone(), way).await? {
            (Answer { outcome: Outcome::Done(said), actor, decision, again }, Some(way)) => {
                let arguments = call.input.get("arguments").cloned().unwrap_or_default();
                let done = self.gateway.go(self, &actor.id, said, &arguments, way).await;
                Answer { outcome: Outcome::Done(done), actor, decision, again }
            }
            (answer, _) => answer,
        })
    }

    /// What came of a held call is out: the same call is a new one from now on.
    fn delivered(&self, call: &Call, answer: &Answer) {
        let over = |said: &Value| !matches!(said.get("state").and_then(Value::as_str), Some("held" | "passed"));
        if let (GATEWAY_CALL | GATEWAY_RESULT, Outcome::Done(said)) = (call.operation.as_str(), &answer.outcome)
            && said.get("request_id").is_some()
            && over(said)
            && let Some(id) = said.get("call_id").and_then(Value::as_str).map(str::to_owned)
        {
            let desk = self.desk.clone();
            tokio::spawn(async move { desk.act(Surface::System, move |cx| deskmate_core::gateway::deliver(cx, &id)).await });
        }
    }

    async fn hold(&self, call: &Call, heard: Option<&Heard>) -> Result<Answer> {
        let op = self.desk.registry.get(&call.operation);
        let (waits, followed) = (op.is_some_and(|op| op.waits), op.is_some_and(|op| op.is_followed()));
        let first = match call.operation.as_str() {
            GATEWAY_CALL => self.hand_on(call).await?,
            _ => self.desk.call(call.clone()).await?,
        };
        if let (GATEWAY_CALL, Outcome::Done(said)) = (call.operation.as_str(), &first.outcome)
            && said.get("state") != Some(&Value::from("held"))
            && !(first.again && said.get("state") == Some(&Value::from("passed")))
            && !deskmate_core::gateway::is_under_way(said)
        {
            return Ok(first);
        }
        // Of some operations only some answers are followed, and of some of these the call is made again when what was waited
        // for has happened.
        let goes_on = match (&first.outcome, op) {
            (Outcome::Done(said), Some(op)) => op.goes_on(said),
            _ => None,
        };
        let (followed, again) = (followed && goes_on != Some(false), goes_on == Some(true) && op.is_some_and(|op| op.is_asked_again()));
        if !followed && (!waits || matches!(first.outcome, Outcome::Done(_))) {
            return Ok(first);
        }
        if followed && !again {
            self.queued.send_modify(|calls| *calls += 1);
        }
        let asked =
            ["timeout_seconds", "timeoutSeconds"].iter().find_map(|field| call.input.get(*field)).and_then(Value::as_u64).map_or(WAIT_MAX, Duration::from_secs);
        let deadline = Instant::now() + asked.min(WAIT_MAX);
        // Who waits in too many places already is not held. A call that has begun something is told how that stands; one that only
        // waits is refused.
        let place = match self.waits.take(Some(&first.actor)) {
            Err(error) if !asked.is_zero() && waits => return Err(error),
            place => place.ok(),
        };
        let mut topics = vec![self.live.topic(&first.actor.id)];
        let said = match &first.outcome {
            Outcome::Done(said) if followed => said,
            _ => &call.input,
        };
        for (field, kind) in
            [("job", "job"), ("task_id", "task"), ("request", "request"), ("request_id", "request"), ("plan_id", "plan"), ("call_id", "call"), ("runId", "run")]
        {
            if let Some(id) = said.get(field).and_then(Value::as_str) {
                topics.push(self.live.topic(&format!("{kind}:{id}")));
            }
        }
        loop {
            // Registered before the look, so that nothing between the look and the wait is missed.
            let mut woken: Vec<_> = topics.iter().map(|topic| Box::pin(topic.notified())).collect();
            for notified in &mut woken {
                notified.as_mut().enable();
            }
            // What a call began is looked at; what only waits is asked again.
            let answer = match self.desk.follow(call, &first).await? {
                Some(outcome) => Answer { outcome, actor: first.actor.clone(), decision: first.decision, again: first.again },
                None => self.desk.call(call.clone()).await?,
            };
            if matches!(answer.outcome, Outcome::Done(_)) {
                return if again { self.desk.call(call.clone()).await } else { Ok(answer) };
            }
            // How far it is has only what goes on by itself: whoever just waits is not looked at each second.
            let until = heard.filter(|_| topics.len() > 1).map_or(deadline, |heard| {
                heard.send_replace(how_far(&answer));
                deadline.min(Instant::now() + HEARD_EVERY)
            });
            if place.is_none() {
                return Ok(answer);
            }
            let news = timeout_at(until, futures_util::future::select_all(woken));
            // A server that stops says that it is not there yet; whoever waits asks again, and then finds the next server. What the
            // desk itself does, also for those whose credential it keeps, is stopped by those who do it.
            let is_own = call.surface == Surface::System || matches!(call.credential, Credential::Kept(_));
            let waited = if is_own { Some(news.await) } else { self.stop.run_until_cancelled(news).await };
            match waited {
                None => return Ok(answer),
                Some(Err(_)) if until == deadline => return Ok(answer),
                Some(_) => {}
            }
        }
    }

    /// Seals what operations staged, for ever (PostgreSQL).
    async fn seal_loop(self) {
        loop {
            let key = Arc::clone(&self.key);
            let turn = self.desk.db.write(move |tx| record::seal_staged(tx, &key)).await;
            match turn {
                Ok(Sealing::Grown(size)) => {
                    self.live.grown(size);
                    continue;
                }
                Ok(Sealing::Nothing) => {}
                Ok(Sealing::Elsewhere) => {
                    sleep_until(Instant::now() + SEAL_RETRY).await;
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, "sealing failed; it is tried again");
                    sleep_until(Instant::now() + SEAL_SWEEP).await;
                }
            }
            drop(tokio::time::timeout(SEAL_SWEEP, self.staged.notified()).await);
        }
    }
}

/// How far that has come which an answer says is not there yet.
fn how_far(answer: &Answer) -> Option<String> {
    let (Outcome::Done(said) | Outcome::NotYet(said)) = &answer.outcome;
    said.pointer("/progress/text").and_then(Value::as_str).map(str::to_owned)
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// The number of the newest event, and its time.
fn newest_event(tx: &mut Tx<'_>) -> deskmate_db::Result<Option<(i64, i64)>> {
    let row = tx.optional("select seq, at from event order by seq desc limit 1", &[])?;
    row.map(|row| Ok((row.get(0)?, row.get(1)?))).transpose()
}

/// What is said where an event is from the future of this machine's clock: the desk's time goes on from there.
fn ahead_of_clock(seq: i64, at: i64, wall: i64) -> Option<String> {
    let seconds = (at.saturating_sub(wall) > AHEAD_TOLD).then(|| (at - wall) / 1_000_000)?;
    Some(format!(
        "the desk's time is {seconds} s ahead of this machine's clock, because event {seq} is of {} and time never goes back: what expires, expires by the desk's time until the clock has caught up; set the clock right if it is behind",
        format_time(at)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_from_the_future_of_the_clock_is_told() {
        const HOUR: i64 = 3_600_000_000;
        let now = 1_763_000_000_000_000;
        assert_eq!((ahead_of_clock(9, now, now), ahead_of_clock(9, now - HOUR, now), ahead_of_clock(9, now + AHEAD_TOLD, now)), (None, None, None));
        let told = ahead_of_clock(9, now + HOUR, now).unwrap();
        assert!(told.contains("3600 s ahead") && told.contains("event 9"), "{told}");
    }
}
