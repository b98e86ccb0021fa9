//! Starting the server.

use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

use clap::Args;
use deskmate_core::call::{Actor, Mode, Registry, Surface};
use deskmate_core::policy::{self, Document};
use deskmate_core::{Code, identity, workspace};
use rustix::process::{Resource, Rlimit};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use super::output::say;
use super::{Failure, Global};
use crate::activity::{self, Activity, Standing};
use crate::app::App;
use crate::clean_log::Clean;
use crate::config::{self, Given, LogFormat, Settings};
use crate::effects::Effects;
use crate::effects::notify::{self, Outlets};
use crate::home::{Home, Lock};
use crate::http::{self, Allowed, Bound, Bounds};
use crate::telemetry::Telemetry;
use crate::{background, frameworks, keep, mcp, secrets, socket, templates};

#[derive(Args)]
pub(super) struct UpArgs {
    /// Where to listen; 127.0.0.1:7373 if not given
    #[arg(long, env = "DESKMATE_LISTEN", value_name = "ADDRESS")]
    listen: Option<String>,
    /// postgres://… for a team; SQLite in the data directory if not given
    #[arg(long, env = "DESKMATE_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
    /// What is logged: error, warn, info, debug or trace
    #[arg(long, env = "DESKMATE_LOG", value_name = "LEVEL")]
    log: Option<String>,
    /// Offer this server for runs of agents, under this name; PostgreSQL only
    #[arg(long, env = "DESKMATE_NODE", value_name = "NAME")]
    node: Option<String>,
    /// What this node has, as agents ask for it, with commas between: gpu,region=eu
    #[arg(long, env = "DESKMATE_NODE_LABELS", value_name = "LABELS")]
    node_labels: Option<String>,
    /// Started by a program: print no link and nothing else on standard output
    #[arg(long)]
    background: bool,
    /// With --background: end after this time without a connection, or never (off); 10m if not given
    #[arg(long, value_name = "TIME", requires = "background")]
    linger: Option<String>,
    /// The server has its own account: the system service says so
    #[arg(long, hide = true)]
    separate_user: bool,
}

/// Every connection is an open file, and the usual soft limit of 1,024 is for programs of another time.
fn raise_file_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = rustix::process::setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, soft = ?limit.current, "the limit of open files could not be raised; half as many connections are possible");
    }
}

/// How many files this process may have open.
fn file_limit() -> u64 {
    rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How long a server in the background stays when nobody needs it.
const LINGER: Duration = Duration::from_mins(10);

impl UpArgs {
    fn linger(&self) -> Result<Option<Duration>, Failure> {
        let Some(text) = self.linger.as_deref() else { return Ok(self.background.then_some(LINGER)) };
        if text == "off" {
            return Ok(None);
        }
        let micros = config::parse_duration(text).and_then(|micros| u64::try_from(micros).ok());
        let time = micros.map(Duration::from_micros);
        time.map(Some).ok_or_else(|| Failure::Other(format!("--linger: {text:?} is not a time: write for example 10m, or off")))
    }
}

pub(super) fn run(global: &Global, args: &UpArgs) -> Result<(), Failure> {
    if !args.background {
        return start(global, args);
    }
    background::detach();
    let home = Home::new(config::home(global.home.clone())?);
    home.create()?;
    start(global, args).inspect_err(|failure| background::log_failure(&home, &failure.text()))
}

fn start(global: &Global, args: &UpArgs) -> Result<(), Failure> {
    let given = Given {
        listen: args.listen.clone(),
        database_url: args.database_url.clone(),
        log: args.log.clone(),
        node: args.node.clone(),
        node_labels: args.node_labels.clone(),
        ..global.given()
    };
    let settings = config::load(&given)?;
    settings.check_folders()?;
    let linger = args.linger()?;
    let home = Home::new(settings.home.clone());
    home.create()?;
    // A server that never ends by itself belongs to a service manager, and no newer program replaces it.
    let mut lock = home.lock(linger.is_some())?;
    lock.hold_store(&settings.database_url)?;
    start_log(&settings, args.background.then(|| background::Log::open(&home)).transpose()?);
    for told in config::without_effect() {
        tracing::warn!("{told}");
    }
    let (key, fresh) = home.key_or_new()?;
    // This refuses a record that another key signed, so a lost key is not replaced by a new one. A key is kept only after its
    // store was made: one that is there without a store has lost it, and does not begin a second record.
    let begun = fresh.is_none();
    let mut app = App::open(&settings.database_url, key, begun, Registry::new(), !settings.is_reachable()).map_err(|error| match error.code {
        Code::NotFound if begun => Failure::from(home.without_store()),
        _ => Failure::from(error),
    })?;
    app.hands.keeps(settings.own());
    app.checkpoint_copy = settings.checkpoint_copy.as_deref().map(Into::into);
    keep::refuse_unfinished(&app.desk.db)?;
    home.keep_key(fresh.as_deref())?;
    app.desk.safe = secrets::open(&home, &app.desk.db)?;
    app.desk.frameworks = frameworks::library(&home);
    for problem in app.desk.frameworks.problems() {
        tracing::error!("a framework was not taken in: {problem}");
    }
    app.serves_as(settings.node.as_ref())?;
    app.desk.templates = templates::library(&home);
    for problem in app.desk.templates.problems() {
        tracing::error!("a template was not taken in: {problem}");
    }
    let standing = Standing { activity: app.activity.clone(), set_up: activity::set_up(args.separate_user, home.path()), background: args.background };
    if args.separate_user && standing.set_up != "separate user" {
        tracing::warn!(home = %home.path().display(), "the data directory is not this account's alone (0700), so this counts as a shared user");
    }
    raise_file_limit();
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let db = app.desk.db.clone();
    let done = runtime.block_on(serve(app, settings, home, &mut lock, standing, linger, global.json));
    runtime.shutdown_timeout(Duration::from_secs(2));
    db.close();
    // Held until the store is closed: whoever gets the directory next finds it whole.
    drop(lock);
    done
}

async fn serve(app: App, settings: Settings, home: Home, lock: &mut Lock, standing: Standing, linger: Option<Duration>, json: bool) -> Result<(), Failure> {
    let watching = &settings.telemetry;
    let (telemetry, queue) =
        Telemetry::new(&app.desk, watching.prometheus, watching.collector.is_some()).map_err(|error| Failure::Other(format!("telemetry: {error}")))?;
    let app = app.watched(telemetry);
    let activity = standing.activity.clone();
    let background = standing.background;
    let (mode, agents, claimed) =
        app.desk.db.read(|tx| Ok::<_, deskmate_core::Error>((identity::mode(tx)?, identity::agent_count(tx)?, identity::is_claimed(tx)?))).await?;
    settings.check_exposure(mode == Mode::Closed)?;
    let bound = Bound::new(settings.listen, settings.tls.as_ref())
        .await
        .map_err(|error| Failure::Other(format!("cannot listen on {}: {error}; give another address with --listen", settings.listen)))?;
    let address = bound.address()?;
    let url = bound.url()?;
    let programs = match settings.coworker {
        None => None,
        Some(at) => {
            let wrong = |error| Failure::Other(format!("cannot listen on {at}: {error}; give another address under `coworker` in {}", config::FILE));
            Some(Bound::new(at, None).await.map_err(wrong)?)
        }
    };
    // Whoever learns where it listens may ask it to stop, so it listens for that first.
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // All doors are bound before anybody is told that they are there.
    let (desk_socket, http_socket) = (http::bind_private(&home.socket())?, http::bind_private(&home.http_socket())?);
    app.listens_itself(url.trim_end_matches('/'));
    app.listens(settings.proxy.as_deref().unwrap_or(&url).trim_end_matches('/'));
    app.start(settings.standing()).await?;
    if let Some(draft) = settings.draft.clone() {
        submit(&app, draft).await?;
    }
    let outlets = Outlets::new(settings.notifications.clone());
    app.hands.tells(&outlets);
    let desk = app.desk.clone();
    app.hands.open_all(app.desk.db.read(move |tx| workspace::roots(&mut desk.cx(tx, Actor::system(), Surface::System))).await?).await;
    if settings.listen.ip().is_unspecified() && settings.proxy.is_none() && settings.notifications.base_url.is_none() && !outlets.is_empty() {
        tracing::warn!("messages lead to {url}, which nobody else can open: set notifications.base_url in {}", config::FILE);
    }
    let begun = notify::begin(&app, &outlets).await?;
    let allowed = Allowed::new(&settings.hosts, address.port(), settings.tls.is_some()).behind_proxy(settings.proxy.is_some()).opened_at(settings.opened_at());
    let stop = app.stop.clone();
    let mcp = mcp::router(app.clone(), mcp::Allowed { hosts: allowed.hosts().to_vec(), origins: allowed.origins() }, stop.clone());
    let (router, for_programs) = http::routers(app.clone(), allowed, standing, mcp);
    let mut doors = JoinSet::new();
    doors.spawn(socket::serve(app.clone(), desk_socket.open()?, home.socket(), stop.clone()));
    doors.spawn(http::serve_unix(http_socket.open()?, router.clone(), Bounds::local(file_limit()), stop.clone()));
    doors.spawn(http::serve_tcp(bound, router, Bounds::network(file_limit()), stop.clone()));
    if let Some(programs) = programs {
        doors.spawn(http::serve_tcp(programs, for_programs, Bounds::local(file_limit()), stop.clone()));
    }
    crate::gateway::abandon_left_behind(&app).await?;
    let behind = tokio::spawn(crate::gateway::follow(app.clone(), stop.clone()));
    tokio::spawn(crate::worker::run(app.clone(), outlets.clone(), stop.clone()));
    let effects = Effects::start(&app, &settings, outlets, begun, queue, &stop);
    lock.listening(&url)?;
    if background {
        tracing::info!(%url, "listening, started by a program");
    } else {
        greet(&app, &url, &settings, (mode, agents), claimed, json).await?;
    }
    let mut shut = None;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = unused(&activity, linger) => tracing::info!("nobody needs this server any more"),
        ended = doors.join_next() => shut = Some(ended),
    }
    tracing::info!("stopping: requests under way are finished");
    stop.cancel();
    let finished = tokio::time::timeout(Duration::from_secs(5), async { while doors.join_next().await.is_some() {} }).await;
    effects.finish().await;
    drop(tokio::time::timeout(Duration::from_secs(5), behind).await);
    if finished.is_err() {
        tracing::warn!("some connections were still open and are closed");
    }
    drop(std::fs::remove_file(home.http_socket()));
    match shut {
        None => Ok(()),
        Some(ended) => Err(Failure::Other(format!("the server no longer listens and stops: {ended:?}"))),
    }
}

/// Hands the file's policy sections to the store: what tightens applies now, what loosens waits for an owner.
async fn submit(app: &App, draft: Document) -> Result<(), Failure> {
    let done = app.desk.act(Surface::System, move |cx| policy::draft::submit(cx, &draft)).await?;
    for line in policy::draft::lines(&done.applied) {
        tracing::info!("applied from {}: {line}", config::FILE);
    }
    if done.too_large {
        tracing::warn!(
            "{} loosens more than one request can hold; nothing of that is in force: an owner applies it with `deskmate policy apply`",
            config::FILE
        );
    }
    if let Some(request) = done.request {
        tracing::warn!(%request, "{} loosens what agents may do; an owner accepts or rejects it in the inbox:", config::FILE);
        for line in policy::draft::lines(&done.waiting) {
            tracing::warn!("waits: {line}");
        }
    }
    Ok(())
}

/// Tells a newcomer where things are and what comes next.
async fn greet(app: &App, url: &str, settings: &Settings, (mode, agents): (Mode, i64), claimed: bool, json: bool) -> Result<(), Failure> {
    let connect = connect(settings, mode);
    let link = if claimed { None } else { Some(app.desk.act(Surface::System, identity::issue_claim).await?) };
    let link = link.map(|link| format!("{url}/claim?code={}", link.code));
    if json {
        let said = json!({ "version": env!("CARGO_PKG_VERSION"), "url": url, "home": settings.home, "mode": mode, "agents": agents, "claim": link, "connect": connect });
        return say(&said.to_string());
    }
    let mode = match mode {
        Mode::Open => "open: no agent is registered yet, so agents on this machine may just name themselves".to_owned(),
        Mode::Closed => format!("closed: {agents} registered agent{}", if agents == 1 { "" } else { "s" }),
    };
    let mut text = format!("Deskmate {} listens on {url}\n  data       {}\n  mode       {mode}\n", env!("CARGO_PKG_VERSION"), settings.home.display());
    if let Some(link) = link {
        text.push_str(&format!("\nClaim this desk within ten minutes (`deskmate claim` gives a new link):\n  {link}\n"));
    }
    text.push_str(&format!("\nConnect an agent, for example Claude Code:\n  {connect}\n"));
    text.push_str("\nStop with Ctrl-C.\n");
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Ends when nobody has needed the server for a time; never, where there is no such time.
async fn unused(activity: &Activity, linger: Option<Duration>) {
    match linger {
        Some(linger) => activity.quiet(linger).await,
        None => std::future::pending().await,
    }
}

/// The command that connects Claude Code to this desk, so that it works as it is printed.
fn connect(settings: &Settings, mode: Mode) -> String {
    let token = if mode == Mode::Open { "" } else { "DESKMATE_TOKEN=dma_… " };
    let usual = config::user_home().is_some_and(|home| home.join(".deskmate") == settings.home);
    let home = if usual { String::new() } else { format!(" --home '{}'", settings.home.display()) };
    format!("{token}{} connect claude-code{home}", own_name())
}

/// How this program is called: by its name where the search path finds it, otherwise by its path.
fn own_name() -> String {
    let name = "deskmate".to_owned();
    let Ok(own) = std::env::current_exe().and_then(|own| own.canonicalize()) else { return name };
    let paths = config::env("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).any(|folder| folder.join(&name).canonicalize().is_ok_and(|found| found == own));
    if found { name } else { format!("'{}'", own.display()) }
}

/// Logs to standard error, or to a file where nobody reads that.
fn start_log(settings: &Settings, file: Option<background::Log>) {
    let filter = tracing_subscriber::EnvFilter::new(format!("warn,deskmate={0},deskmate_core={0},deskmate_db={0}", settings.log_level.name()));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_ansi(false);
    match (file, settings.log_format) {
        (None, LogFormat::Text) => builder.with_writer(Clean::new(std::io::stderr)).init(),
        (None, LogFormat::Json) => builder.with_writer(Clean::new(std::io::stderr)).json().init(),
        (Some(file), format) => {
            std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
            let builder = builder.with_writer(Clean::new(Mutex::new(file)));
            if format == LogFormat::Json { builder.json().init() } else { builder.init() }
        }
    }
}
