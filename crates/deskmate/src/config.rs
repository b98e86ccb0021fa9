//! Settings: flags, then environment, then `deskmate.yaml` in the data directory. This is the only reader of the
//! environment and of that file. A setting that cannot be understood stops the start; nothing is guessed.

mod agentos;
mod coworker;
mod node;
mod notifications;
mod outlets;
mod telemetry;

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use deskmate_core::policy::{self, Document, FILE_KEYS, settings as judgement};
use deskmate_core::redact::Redactor;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use serde_saphyr::{Location, Spanned};
use url::Url;

pub(crate) use agentos::{unread, without_effect};
pub(crate) use node::Node;
pub(crate) use notifications::{Endpoint, Key, Notifications, Outlet, Way, address};
pub(crate) use outlets::{MailServer, MailTls, Service};
pub(crate) use telemetry::{Collector, Telemetry};

/// Where the desk listens unless told otherwise.
pub(crate) const LISTEN: &str = "127.0.0.1:7373";
/// The name of the configuration file in the data directory.
pub(crate) const FILE: &str = "deskmate.yaml";
const DATABASE_URL: &str = "DESKMATE_DATABASE_URL";

/// What flags and environment say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) home: Option<PathBuf>,
    pub(crate) listen: Option<String>,
    pub(crate) database_url: Option<String>,
    pub(crate) log: Option<String>,
    pub(crate) node: Option<String>,
    pub(crate) node_labels: Option<String>,
}

/// The settings in force.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) home: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) database_url: String,
    pub(crate) log_level: LogLevel,
    pub(crate) log_format: LogFormat,
    /// The policy sections: a draft, which the store compares with what is in force. `None` where there is no file.
    pub(crate) draft: Option<Document>,
    pub(crate) tls: Option<Tls>,
    pub(crate) proxy: Option<String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) retention: Retention,
    pub(crate) bridge_file: BridgeFile,
    pub(crate) checkpoint_copy: Option<PathBuf>,
    pub(crate) checkpoint_webhook: Option<Endpoint>,
    pub(crate) notifications: Notifications,
    pub(crate) telemetry: Telemetry,
    /// Where the jobs API is served alone.
    pub(crate) coworker: Option<SocketAddr>,
    /// Whether this server offers itself for runs of agents.
    pub(crate) node: Option<Node>,
    /// The folders in which files are made that the file names, each with where it does.
    folders: Vec<(PathBuf, String)>,
}

impl Settings {
    /// Refuses to start where a folder is not there. A file is made where none is, and a folder is not: under a name that was mistyped
    /// everything would be kept somewhere else.
    pub(crate) fn check_folders(&self) -> Result<()> {
        match self.folders.iter().find(|(folder, _)| !folder.is_dir()) {
            Some((folder, at)) => Err(ConfigError(format!("{at}: the folder {} does not exist: make it, or name another", folder.display()))),
            None => Ok(()),
        }
    }

    /// How the server stands, as the record tells it when it starts: no names, no addresses.
    pub(crate) fn standing(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        facts.insert("listen_loopback".to_owned(), self.listen.ip().is_loopback().into());
        facts.insert("listen_tls".to_owned(), self.tls.is_some().into());
        facts.insert("listen_proxy".to_owned(), self.proxy.is_some().into());
        facts.insert("checkpoints_copied".to_owned(), (self.checkpoint_copy.is_some() || self.checkpoint_webhook.is_some()).into());
        for (name, kept) in [("retention_messages_days", self.retention.messages), ("retention_tasks_days", self.retention.tasks)] {
            facts.extend(kept.map(|kept| (name.to_owned(), (kept / 86_400_000_000).into())));
        }
        facts
    }
}

/// `deskmate.yaml`. Every key is optional.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    /// Where to listen, for example `127.0.0.1:7373`.
    #[schemars(with = "Option<String>")]
    listen: Option<Spanned<String>>,
    /// `postgres://…` for a team; without it SQLite in the data directory.
    #[schemars(with = "Option<String>")]
    database_url: Option<Spanned<String>>,
    /// What is logged, and how.
    log: Log,
    /// Named sets of rules. This and the sections below are a draft: what they loosen waits for an owner.
    #[schemars(with = "Vec<policy::Policy>")]
    policies: Option<IgnoredAny>,
    /// Rules for every agent in every domain.
    #[schemars(with = "Vec<policy::Rule>")]
    rules: Option<IgnoredAny>,
    /// Cases of the rules for every agent: acts with the answer that must come out. `deskmate policy test` runs them.
    #[schemars(with = "Vec<policy::Case>")]
    tests: Option<IgnoredAny>,
    /// Which policy holds for which agent in which domain.
    #[schemars(with = "Vec<MappingEntry>")]
    mappings: Option<IgnoredAny>,
    /// How trust is earned and lost.
    #[schemars(with = "judgement::TrustSettings")]
    trust: Option<IgnoredAny>,
    /// What agents may do at most, and how often.
    #[schemars(with = "judgement::AuthoritySettings")]
    authority: Option<IgnoredAny>,
    /// What people's answers do.
    #[schemars(with = "judgement::FeedbackSettings")]
    feedback: Option<IgnoredAny>,
    /// How work is handed to people.
    #[schemars(with = "judgement::HandoffSettings")]
    handoff: Option<IgnoredAny>,
    /// When the governance report speaks up.
    #[schemars(with = "judgement::GovernanceSettings")]
    governance: Option<IgnoredAny>,
    /// The folders in which agents look around, and which plans change.
    #[schemars(with = "judgement::WorkspaceSettings")]
    workspace: Option<IgnoredAny>,
    /// What the desk does when clients' hooks ask about agents' own tools.
    #[schemars(with = "judgement::HookSettings")]
    hooks: Option<IgnoredAny>,
    /// What is taken out before it is kept.
    #[schemars(with = "judgement::ProtectionSettings")]
    protection: Option<IgnoredAny>,
    /// The same sections for single domains; a trailing `*` stands for any ending.
    #[schemars(with = "std::collections::BTreeMap<String, policy::Settings>")]
    domains: Option<IgnoredAny>,
    /// Whether an agent and domain that no mapping names is held (`strict`) or gets the default policy (`permissive`).
    #[schemars(with = "policy::PolicyMode")]
    policy_mode: Option<IgnoredAny>,
    /// Certificate files, needed for listening beyond this machine unless a proxy does it.
    #[schemars(with = "Option<Tls>")]
    tls: Option<Spanned<Tls>>,
    /// The https address under which a reverse proxy, which you run, serves this desk.
    #[schemars(with = "Option<String>")]
    proxy: Option<Spanned<String>>,
    /// Further host names under which this desk may be called.
    #[schemars(with = "Vec<String>")]
    hosts: Vec<Spanned<String>>,
    /// How long each kind of data is kept.
    retention: RetentionFile,
    /// The file that people write with `sqlite3`.
    bridge: BridgeSection,
    /// Where signed checkpoints are copied to.
    checkpoints: Checkpoints,
    /// Whom the desk tells that something waits.
    notifications: notifications::Section,
    /// What the desk tells the machines that watch it.
    telemetry: telemetry::TelemetrySection,
    /// A door of its own for programs that were written for the file coworker.
    coworker: coworker::CoworkerSection,
    /// Whether this server offers itself for runs of agents (PostgreSQL).
    node: node::NodeSection,
}

/// Which policy holds for which agent in which domain, as it is written; a trailing `*` stands for any ending.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used; the reader of policies reads it")]
struct MappingEntry {
    /// The agent; `agent` is understood as well.
    agent_id: Option<String>,
    /// The same.
    agent: Option<String>,
    /// The domain.
    domain: String,
    /// The policy's id; `policy` is understood as well.
    policy_id: Option<String>,
    /// The same.
    policy: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Log {
    /// `error`, `warn`, `info`, `debug` or `trace`.
    level: LogLevel,
    /// `text` or `json`.
    format: LogFormat,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// The name that the logger takes.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// How a log line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

/// Certificate files.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// The certificate chain, PEM.
    pub(crate) certificate: PathBuf,
    /// The private key, PEM.
    pub(crate) key: PathBuf,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RetentionFile {
    /// Acknowledged messages; kept for ever if not given.
    #[schemars(with = "Option<String>")]
    messages: Option<Spanned<String>>,
    /// Ended tasks; kept for ever if not given.
    #[schemars(with = "Option<String>")]
    tasks: Option<Spanned<String>>,
    /// Ended jobs; 7d if not given.
    #[schemars(with = "Option<String>")]
    jobs: Option<Spanned<String>>,
    /// Plans that were done, or will not be done, with their steps and contents; 90d if not given. Without them nothing is taken back.
    #[schemars(with = "Option<String>")]
    plans: Option<Spanned<String>>,
    /// Ended runs of agents, with what they said, and tests of agents, besides the newest of each agent; 90d if not given.
    #[schemars(with = "Option<String>")]
    runs: Option<Spanned<String>>,
    /// Calls of mounted tools, with the results of those that were held; 30d if not given.
    #[schemars(with = "Option<String>")]
    calls: Option<Spanned<String>>,
    /// Kept checkpoints besides the newest; 365d if not given.
    #[schemars(with = "Option<String>")]
    checkpoints: Option<Spanned<String>>,
}

/// How long each kind of data is kept, in microseconds; `None` is for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    pub(crate) messages: Option<i64>,
    pub(crate) tasks: Option<i64>,
    pub(crate) jobs: Option<i64>,
    pub(crate) plans: Option<i64>,
    pub(crate) runs: Option<i64>,
    pub(crate) calls: Option<i64>,
    pub(crate) checkpoints: Option<i64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct BridgeSection {
    /// A path, or `off`. Without it an existing `~/.cowork-code-mcp/messages.db`, else `messages.db` in the data directory.
    #[schemars(with = "Option<String>")]
    file: Option<Spanned<String>>,
}

/// Where the bridge file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BridgeFile {
    /// Nowhere.
    Off,
    /// Here.
    At(PathBuf),
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Checkpoints {
    /// A file outside the data directory to which each minute's checkpoint is appended.
    #[schemars(with = "Option<String>")]
    copy_to: Option<Spanned<PathBuf>>,
    /// A receiver (Standard Webhooks) to which each minute's checkpoint is sent.
    #[schemars(with = "Option<notifications::CheckpointWebhook>")]
    webhook: Option<Spanned<notifications::CheckpointWebhook>>,
}

/// A setting that stops the start.
#[derive(Debug)]
pub(crate) struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

type Result<T> = std::result::Result<T, ConfigError>;

/// Reads one environment variable; an empty one counts as not set.
pub(crate) fn env(name: &str) -> Option<String> {
    env_os(name).and_then(|value| value.into_string().ok())
}

/// The store that the environment names, for a server that is started in another folder.
pub(crate) fn store_from_here() -> Option<(&'static str, String)> {
    let url = env(DATABASE_URL)?;
    let path = std::path::absolute(url.strip_prefix("sqlite:").filter(|path| !path.is_empty())?).ok()?;
    Some((DATABASE_URL, format!("sqlite:{}", path.display())))
}

/// The same where the value may be no text, as paths may be none.
#[expect(clippy::disallowed_methods, reason = "this is the one reader of the environment")]
pub(crate) fn env_os(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The data directory: flag, environment, or `~/.deskmate`.
pub(crate) fn home(given: Option<PathBuf>) -> Result<PathBuf> {
    let home = given.or_else(|| env("DESKMATE_HOME").map(PathBuf::from));
    let home = match home {
        Some(home) => home,
        None => user_home().ok_or_else(|| ConfigError("there is no home directory: set DESKMATE_HOME or give --home".to_owned()))?.join(".deskmate"),
    };
    std::path::absolute(&home).map_err(|error| ConfigError(format!("{}: {error}", home.display())))
}

/// The user's home directory.
pub(crate) fn user_home() -> Option<PathBuf> {
    env("HOME").or_else(|| env("USERPROFILE")).map(PathBuf::from)
}

/// Puts flags, environment and file together.
pub(crate) fn load(given: &Given) -> Result<Settings> {
    let home = home(given.home.clone())?;
    let path = home.join(FILE);
    let (file, draft) = match std::fs::read_to_string(&path) {
        Ok(text) => (parse(&path, &text)?, Some(draft(&path, &text)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (File::default(), None),
        Err(error) => return Err(ConfigError(format!("{}: {error}", path.display()))),
    };
    Ok(Settings { draft: agentos::policy_mode(draft)?, ..settle(given, home, &path, file)? })
}

/// Checks a file's text as a start would, without its policy sections.
pub(crate) fn check_file(path: &Path, text: &str) -> Result<()> {
    let home = path.parent().unwrap_or(Path::new("/")).to_owned();
    settle(&Given::default(), home, path, parse(path, text)?).map(drop)
}

/// Reads the policy sections of a file's text. Every problem is told, each with its line and column.
pub(crate) fn draft(path: &Path, text: &str) -> Result<Document> {
    let told = |problem: &policy::Problem| format!("{}:{problem}", path.display());
    Document::parse_within(text, FILE_KEYS).map_err(|problems| ConfigError(problems.iter().map(told).collect::<Vec<_>>().join("\n")))
}

/// Reads the file's text. An error names file, line and what was expected.
fn parse(path: &Path, text: &str) -> Result<File> {
    if text.trim().is_empty() {
        return Ok(File::default());
    }
    // An error shows the lines around it, and one of them may hold a secret.
    let told = |error: serde_saphyr::Error| Redactor::secrets().text(&notifications::without_secrets(&error.to_string())).text;
    serde_saphyr::from_str(text).map_err(|error| ConfigError(format!("{}: {}", path.display(), told(error))))
}

/// The database that a file's text names, if it names one.
pub(crate) fn database_url(path: &Path, text: &str) -> Result<Option<String>> {
    Ok(parse(path, text)?.database_url.map(|url| url.value))
}

fn settle(given: &Given, home: PathBuf, path: &Path, file: File) -> Result<Settings> {
    let at = |location: Location| format!("{}:{}:{}", path.display(), location.line(), location.column());
    let from_file = |setting: Option<Spanned<String>>| setting.map(|setting| (setting.value, at(setting.referenced)));
    let listen = source(given.listen.clone(), "--listen", "DESKMATE_LISTEN", from_file(file.listen), LISTEN);
    let listen_at: SocketAddr =
        listen.0.parse().map_err(|_| ConfigError(format!("{}: {:?} is not an address: write for example {LISTEN}", listen.1, listen.0)))?;
    let default_url = format!("sqlite:{}", home.join("desk.db").display());
    let in_file = from_file(file.database_url).map(|(url, at)| (placed_store(&home, url), at));
    let database = source(given.database_url.clone(), "--database-url", DATABASE_URL, in_file, &default_url);
    if !["sqlite:", "postgres://", "postgresql://"].iter().any(|scheme| database.0.starts_with(scheme)) {
        return Err(ConfigError(format!("{}: the database URL must begin with postgres:// or sqlite:", database.1)));
    }
    let log_level = match given.log.clone().or_else(|| env("DESKMATE_LOG")) {
        None => agentos::log_level()?.unwrap_or(file.log.level),
        Some(name) => parse_level(&name)?,
    };
    let tls = match file.tls {
        None => None,
        Some(tls) => {
            let placed = Tls { certificate: placed(&home, &tls.value.certificate), key: placed(&home, &tls.value.key) };
            if let Some(file) = [&placed.certificate, &placed.key].into_iter().find(|file| !file.is_file()) {
                return Err(ConfigError(format!("{}: {} does not exist: name a PEM file", at(tls.referenced), file.display())));
            }
            Some(placed)
        }
    };
    let mut folders = Vec::new();
    let mut made_in_its_folder = |named: &Path, location: Location| {
        let path = placed(&home, named);
        folders.extend(path.parent().map(|folder| (folder.to_owned(), at(location))));
        path
    };
    let proxy = file
        .proxy
        .map(|proxy| {
            served_at(&proxy.value).ok_or_else(|| {
                let wanted = "write the https:// address that your proxy serves, without a path: https://desk.example.org";
                ConfigError(format!("{}: {:?} is not where a proxy serves this desk: {wanted}", at(proxy.referenced), proxy.value))
            })
        })
        .transpose()?;
    let mut hosts = Vec::new();
    for host in file.hosts {
        if host.value.is_empty() || host.value.contains(['/', ':', '*', ' ']) {
            return Err(ConfigError(format!("{}: {:?} is not a host name: write for example desk.example.org", at(host.referenced), host.value)));
        }
        hosts.push(host.value.to_ascii_lowercase());
    }
    hosts.extend(proxy.as_ref().and_then(Url::host_str).map(str::to_owned));
    let proxy = proxy.map(|url| url.origin().ascii_serialization());
    let kept = |setting: Option<Spanned<String>>, default: Option<i64>| match setting {
        None => Ok(default),
        Some(text) => parse_duration(&text.value)
            .map(Some)
            .ok_or_else(|| ConfigError(format!("{}: {:?} is not a time: write for example 90d or 12h", at(text.referenced), text.value))),
    };
    let retention = Retention {
        messages: kept(file.retention.messages, None)?,
        tasks: kept(file.retention.tasks, None)?,
        jobs: kept(file.retention.jobs, Some(7 * DAY))?,
        plans: kept(file.retention.plans, Some(90 * DAY))?,
        runs: kept(file.retention.runs, Some(90 * DAY))?,
        calls: kept(file.retention.calls, Some(30 * DAY))?,
        checkpoints: kept(file.retention.checkpoints, Some(365 * DAY))?,
    };
    let bridge_file = match file.bridge.file {
        Some(named) if named.value == "off" => BridgeFile::Off,
        Some(named) => BridgeFile::At(made_in_its_folder(Path::new(&named.value), named.referenced)),
        None => BridgeFile::At(usual_bridge_file(&home)),
    };
    let checkpoint_copy = file.checkpoints.copy_to.map(|named| made_in_its_folder(&named.value, named.referenced));
    let notifications = notifications::settle(file.notifications, &home, &hosts, &at)?;
    let telemetry = telemetry::settle(file.telemetry, &home, &at)?;
    let coworker = coworker::settle(file.coworker, &at)?;
    let node = node::settle(given, file.node, &database.0, &at)?;
    let checkpoint_webhook = file.checkpoints.webhook.map(|webhook| notifications::settle_checkpoints(webhook, &home, &at)).transpose()?;
    Ok(Settings {
        listen: listen_at,
        database_url: database.0,
        log_level,
        log_format: file.log.format,
        draft: None,
        tls,
        proxy,
        hosts,
        retention,
        bridge_file,
        checkpoint_copy,
        checkpoint_webhook,
        notifications,
        telemetry,
        coworker,
        node,
        folders,
        home,
    })
}

const DAY: i64 = 86_400_000_000;

/// A value and where it came from, for messages.
fn source(flag: Option<String>, flag_name: &str, env_name: &str, file: Option<(String, String)>, default: &str) -> (String, String) {
    flag.map(|value| (value, flag_name.to_owned()))
        .or_else(|| env(env_name).map(|value| (value, env_name.to_owned())))
        .or(file)
        .unwrap_or_else(|| (default.to_owned(), "the default".to_owned()))
}

fn parse_level(name: &str) -> Result<LogLevel> {
    let levels = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];
    levels
        .into_iter()
        .find(|level| level.name() == name)
        .ok_or_else(|| ConfigError(format!("the log level {name:?} is not known: write error, warn, info, debug or trace")))
}

/// A time such as `90d`, `12h` or `1d 12h`, in microseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let span: jiff::Span = text.parse().ok()?;
    let duration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?;
    i64::try_from(duration.as_micros()).ok().filter(|micros| *micros > 0)
}

fn usual_bridge_file(home: &Path) -> PathBuf {
    let existing = user_home().map(|user| user.join(".cowork-code-mcp").join("messages.db")).filter(|path| path.is_file());
    existing.unwrap_or_else(|| home.join("messages.db"))
}

/// A file that the settings name. It is the same one whoever starts the server from wherever: `~` stands for the account's home
/// directory, and what is relative lies in the data directory, beside the settings.
fn placed(home: &Path, named: &Path) -> PathBuf {
    match (named.strip_prefix("~"), user_home()) {
        (Ok(rest), Some(user)) => user.join(rest),
        _ => home.join(named),
    }
}

/// The same for the file of a store.
fn placed_store(home: &Path, url: String) -> String {
    match url.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() => format!("sqlite:{}", placed(home, Path::new(path)).display()),
        _ => url,
    }
}

impl Settings {
    /// The files that the configuration names and without which the desk does not start.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let tls = self.tls.iter().flat_map(|tls| [tls.certificate.clone(), tls.key.clone()]);
        let outlets = self.notifications.outlets.iter().flat_map(|outlet| outlet.way.files());
        let receivers = outlets.chain(self.checkpoint_webhook.iter().flat_map(|endpoint| endpoint.files.clone()));
        let collector = self.telemetry.collector.iter().flat_map(|collector| collector.files.clone());
        tls.chain(receivers).chain(collector).collect()
    }

    /// What is the desk's own on this machine: its data directory, and the files that are kept outside of it.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        let store = self.database_url.strip_prefix("sqlite:").map(|path| path.split('?').next().unwrap_or_default());
        let store = store.into_iter().flat_map(|path| ["", "-wal", "-shm", "-journal", ".lock"].map(|end| PathBuf::from(format!("{path}{end}"))));
        let bridge = match &self.bridge_file {
            BridgeFile::At(path) => Some(path.clone()),
            BridgeFile::Off => None,
        };
        [self.home.clone()].into_iter().chain(store).chain(bridge).chain(self.files()).map(|path| std::path::absolute(&path).unwrap_or(path)).collect()
    }

    /// The origins that pages have besides those of where the server listens: what people open is what a proxy or a tunnel serves.
    pub(crate) fn opened_at(&self) -> impl Iterator<Item = &str> {
        self.proxy.as_deref().into_iter().chain(self.notifications.base_url.as_deref())
    }

    /// Whether others than this machine can reach the desk: by its address, or through a proxy in front of it.
    pub(crate) fn is_reachable(&self) -> bool {
        !self.listen.ip().is_loopback() || self.proxy.is_some()
    }

    /// Refuses to listen where others can reach the desk without protection.
    pub(crate) fn check_exposure(&self, closed: bool) -> Result<()> {
        if !self.is_reachable() {
            return Ok(());
        }
        let listen = self.proxy.clone().unwrap_or_else(|| self.listen.to_string());
        if self.tls.is_none() && self.proxy.is_none() {
            return Err(ConfigError(format!(
                "listening on {listen} is reachable from other machines, so it needs TLS: set tls.certificate and tls.key in {FILE}, \
                 or proxy: https://… if a reverse proxy serves this desk"
            )));
        }
        if !closed {
            return Err(ConfigError(format!(
                "listening on {listen} is reachable from other machines, and this desk is open (no agent is registered): \
                 start it on {LISTEN} without a proxy first and register an agent with `deskmate agent add NAME`"
            )));
        }
        Ok(())
    }
}

/// Where a proxy serves a desk: an origin, because the desk's pages begin at the top.
fn served_at(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok().filter(|url| url.scheme() == "https" && url.path() == "/")?;
    let more = url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some();
    (!more && url.host_str().is_some()).then_some(url)
}

/// The schema of the file, for editors and for the documentation.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(File).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_text(text: &str) -> std::result::Result<Settings, String> {
        let path = Path::new("/desk/deskmate.yaml");
        let given = Given { home: Some("/desk".into()), ..Given::default() };
        let settings = parse(path, text).and_then(|file| Ok((draft(path, text)?, settle(&given, "/desk".into(), path, file)?)));
        settings.map(|(draft, settings)| Settings { draft: Some(draft), ..settings }).map_err(|error| error.to_string())
    }

    /// A key that nobody reads would be a setting without effect, and one that is read twice would have two meanings.
    #[test]
    fn every_key_of_the_file_belongs_to_somebody() {
        let sections = [
            "policies",
            "rules",
            "tests",
            "mappings",
            "trust",
            "authority",
            "feedback",
            "handoff",
            "governance",
            "workspace",
            "hooks",
            "protection",
            "domains",
            "policy_mode",
        ];
        let schema = schema();
        let keys: std::collections::BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, sections.into_iter().chain(FILE_KEYS.iter().copied()).collect());
        assert!(sections.iter().all(|name| !FILE_KEYS.contains(name)));
    }

    #[test]
    fn an_empty_file_gives_the_defaults() {
        let settings = load_text("").unwrap();
        assert_eq!(settings.listen.to_string(), LISTEN);
        assert_eq!(settings.database_url, "sqlite:/desk/desk.db");
        assert_eq!(settings.retention.jobs, Some(7 * DAY));
        assert_eq!((settings.retention.runs, settings.retention.calls), (Some(90 * DAY), Some(30 * DAY)));
    }

    #[test]
    fn a_server_with_a_name_is_a_node_with_its_labels() {
        let node = |text: &str| load_text(&format!("database_url: postgres://db/desk\n{text}")).unwrap().node;
        assert_eq!(node(""), None);
        assert_eq!(node("node: { name: east-1 }\n"), Some(Node { name: "east-1".to_owned(), labels: Vec::new() }));
        let labels = ["gpu".to_owned(), "region=eu".to_owned()].to_vec();
        assert_eq!(node("node: { name: east-1, labels: [gpu, region=eu] }\n"), Some(Node { name: "east-1".to_owned(), labels }));
    }

    #[test]
    fn every_section_of_the_policy_can_stand_in_the_file() {
        let settings = load_text("workspace: { roots: [{ name: notes, path: /srv/notes }] }\n").unwrap();
        assert!(format!("{:?}", settings.draft).contains("/srv/notes"));
    }

    #[test]
    fn mistakes_name_the_file_the_line_and_what_to_write() {
        for (text, line, says) in [
            ("listen: 127.0.0.1:7373\nlisten_on: x\n", "2", "listen_on"),
            ("log:\n  level: verbose\n", "2", "verbose"),
            ("policy_mode: strickt\n", "1", "strickt"),
            ("\n\nlisten: here\n", "3", "127.0.0.1:7373"),
            ("hosts:\n  - desk.example.org\n  - '*'\n", "3", "host name"),
            ("retention:\n  jobs: soon\n", "2", "90d"),
            ("tls:\n  certificate: /nowhere.pem\n  key: /nowhere.key\n", "2", "does not exist"),
            ("proxy: http://desk.example.org\n", "1", "https://"),
            ("proxy: https://\n", "1", "https://"),
            ("log: {}\nproxy: https://desk.example.org/desk\n", "2", "without a path"),
            ("proxy: https://desk.example.org?a\n", "1", "without a path"),
            ("proxy: https://ada@desk.example.org\n", "1", "without a path"),
            ("proxy: https://desk.example.org:99999\n", "1", "https://"),
            ("coworker:\n  listen: 0.0.0.0:8765\n", "2", "this machine alone"),
            ("listen: [\n", "", "deskmate.yaml"),
            ("node:\n  labels: [gpu]\n", "2", "needs a name"),
            ("node:\n  name: east\n", "2", "needs PostgreSQL"),
            ("database_url: postgres://db/desk\nnode: { name: 'e ast' }\n", "2", "letters"),
            ("database_url: postgres://db/desk\nnode: { name: east, labels: ['a b'] }\n", "2", "a b"),
        ] {
            let error = load_text(text).expect_err(text);
            assert!(error.contains("/desk/deskmate.yaml"), "{error}");
            let named = [format!("deskmate.yaml:{line}:"), format!("line {line} column")].iter().any(|place| error.contains(place));
            assert!(line.is_empty() || named, "{error}");
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn files_are_the_same_ones_from_wherever_the_server_is_started() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_owned();
        let path = home.join(FILE);
        let settled = |text: &str| settle(&Given { home: Some(home.clone()), ..Given::default() }, home.clone(), &path, parse(&path, text).unwrap()).unwrap();
        let settings = settled("database_url: sqlite:other.db\nbridge: { file: messages2.db }\ncheckpoints: { copy_to: kept.jsonl }\n");
        assert_eq!(settings.database_url, format!("sqlite:{}", home.join("other.db").display()));
        assert_eq!(settings.bridge_file, BridgeFile::At(home.join("messages2.db")));
        assert_eq!(settings.checkpoint_copy, Some(home.join("kept.jsonl")));
        assert_eq!(settled("database_url: sqlite:/srv/desk.db\n").database_url, "sqlite:/srv/desk.db");
        for name in ["cert.pem", "key.pem"] {
            std::fs::write(home.join(name), "").unwrap();
        }
        assert!(settings.check_folders().is_ok());
        for text in ["bridge:\n  file: none/messages.db\n", "checkpoints:\n  copy_to: none/kept.jsonl\n"] {
            let refused = settled(text).check_folders().unwrap_err().to_string();
            assert!(refused.contains("deskmate.yaml:2:") && refused.contains("none does not exist"), "{refused}");
        }
        let tls = settled("tls: { certificate: cert.pem, key: key.pem }\n").tls.unwrap();
        assert_eq!((tls.certificate, tls.key), (home.join("cert.pem"), home.join("key.pem")));
        let user = user_home().unwrap();
        assert_eq!(placed(&home, Path::new("~/kept.jsonl")), user.join("kept.jsonl"));
        assert_eq!(placed_store(&home, "sqlite:~/desk.db".to_owned()), format!("sqlite:{}", user.join("desk.db").display()));
        assert_eq!(placed_store(&home, "postgres://db/desk".to_owned()), "postgres://db/desk");
    }

    #[test]
    fn listening_beyond_this_machine_needs_tls_and_closed_mode() {
        let open = load_text("listen: 0.0.0.0:7373\n").unwrap();
        assert!(open.check_exposure(true).unwrap_err().to_string().contains("TLS"));
        let proxied = load_text("listen: 0.0.0.0:7373\nproxy: https://desk.example.org\n").unwrap();
        assert!(proxied.check_exposure(false).unwrap_err().to_string().contains("open"));
        assert!(proxied.check_exposure(true).is_ok());
        assert_eq!(proxied.hosts, ["desk.example.org"]);
        let behind = load_text("proxy: https://Desk.example.org:8443/\nnotifications: { base_url: http://localhost:9000 }\n").unwrap();
        assert_eq!(behind.hosts, ["desk.example.org"]);
        assert_eq!(behind.opened_at().collect::<Vec<_>>(), ["https://desk.example.org:8443", "http://localhost:9000"]);
        assert!(behind.is_reachable(), "whoever reaches the proxy reaches the desk");
        assert!(behind.check_exposure(false).unwrap_err().to_string().contains("open"));
        assert!(behind.check_exposure(true).is_ok());
        assert!(!load_text("").unwrap().is_reachable());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// A file that somebody broke is refused or understood; it never brings the program down.
        #[test]
        fn any_text_is_refused_or_understood(
            text in "(?s).{0,120}",
            name in "(listen|hosts|tls|proxy|log|database_url|retention)",
            value in r"[&*!|>%@{}\[\],:'\x22#a-c0-9 \n-]{0,40}",
        ) {
            drop(load_text(&text));
            drop(load_text(&format!("{name}: {value}\n")));
        }
    }
}
