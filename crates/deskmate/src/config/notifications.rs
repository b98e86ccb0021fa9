//! The section `notifications`: whom the desk tells that something waits, and when it is quiet. Secrets are read here and
//! never shown, logged or stored.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use deskmate_core::limits::{JOB_ATTEMPTS_MAX, NAME_CHARS_MAX, NOTIFICATION_CHANNELS_MAX};
use deskmate_core::notify::{Channel, ChannelKind, Details, OutletRow, Quiet, Reminders, Topic};
use deskmate_core::{digest, hex};
use jiff::civil::Time;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::outlets::{self, MailServer, OutletSection, Service};
use super::{ConfigError, Result, parse_duration};

/// The section as it is written.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Section {
    /// Messages on the desktop of the machine that the server runs on; off unless this is given.
    #[schemars(with = "Option<DesktopSection>")]
    desktop: Option<Spanned<DesktopSection>>,
    /// Signed requests (Standard Webhooks) to other programs.
    #[schemars(with = "Vec<WebhookSection>")]
    webhooks: Vec<Spanned<WebhookSection>>,
    /// Mail, chats and phones, by which people choose to be told.
    #[schemars(with = "Vec<OutletSection>")]
    outlets: Vec<Spanned<OutletSection>>,
    /// The address under which people open this desk, for the links in messages; that of the proxy, or else where it listens, if
    /// not given.
    #[schemars(with = "Option<String>")]
    base_url: Option<Spanned<String>>,
    /// Whether people may turn on links that decide; true if not given.
    decide_links: Option<bool>,
    /// When a request that nobody decided is told again.
    #[schemars(with = "RemindersSection")]
    reminders: Option<Spanned<RemindersSection>>,
}

/// When a request that nobody decided is told again. Times are for example `30m` or `4h`; `off` is never.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RemindersSection {
    /// After this time, if it is of low risk; `off` if not given.
    low: Option<String>,
    /// After this time, if it is of medium risk; `4h` if not given.
    medium: Option<String>,
    /// After this time, if it is of high risk; `1h` if not given.
    high: Option<String>,
    /// After this time, if it is critical; `15m` if not given.
    critical: Option<String>,
    /// So long before it expires; `1h` if not given.
    before_expiry: Option<String>,
}

/// The section as it is used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notifications {
    pub(crate) outlets: Vec<Outlet>,
    pub(crate) reminders: Reminders,
    /// Where people open this desk, if the file says so.
    pub(crate) base_url: Option<String>,
}

/// Messages on the desktop.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct DesktopSection {
    /// The program that shows a message, with its first arguments; heading and text are added as two more. No shell is
    /// involved. `notify-send` or `osascript` if not given.
    command: Vec<String>,
    /// What it tells about; everything if not given.
    events: BTreeSet<Topic>,
    /// Which domains it tells about, with a trailing `*` as a wildcard; all if not given.
    domains: Vec<String>,
    /// When it is quiet.
    quiet_hours: Option<QuietSection>,
    /// The shortest time between two messages; 60 if not given.
    batch_seconds: Option<u32>,
    /// How often a message is tried; 3 if not given.
    attempts: Option<i64>,
    /// Whether it shows what agents wrote; true if not given.
    text: Option<bool>,
}

/// A program that is told.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebhookSection {
    /// The channel's name.
    name: String,
    /// Where it is sent: https, or http to this machine.
    url: String,
    /// The signing secret, `whsec_` and base64. Better in a file of its own: see `secret_file`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    secret: Option<Secret>,
    /// A file with the signing secret. With several lines each signs, so that a secret can be replaced without a gap.
    #[serde(default)]
    secret_file: Option<PathBuf>,
    /// Certificates (PEM) that are believed instead of the system's, for a receiver with a certificate of its own.
    #[serde(default)]
    ca_file: Option<PathBuf>,
    /// What it tells about; everything if not given.
    #[serde(default)]
    events: BTreeSet<Topic>,
    /// Which domains it tells about, with a trailing `*` as a wildcard; all if not given.
    #[serde(default)]
    domains: Vec<String>,
    /// When it is quiet.
    #[serde(default)]
    quiet_hours: Option<QuietSection>,
    /// The shortest time between two messages; 60 if not given.
    #[serde(default)]
    batch_seconds: Option<u32>,
    /// How often a message is tried; 12 if not given, which is about an hour.
    #[serde(default)]
    attempts: Option<i64>,
    /// Whether it carries what agents wrote; false if not given.
    #[serde(default)]
    text: Option<bool>,
}

/// Hours in which a channel is quiet. What happens then is told afterwards, together.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QuietSection {
    /// When they begin, for example `22:00`.
    from: String,
    /// When they end, for example `07:30`.
    to: String,
    /// Whose clock counts, for example `Europe/Berlin`; the machine's if not given.
    #[serde(default)]
    zone: Option<String>,
    /// Whether what is urgent comes through; false if not given.
    #[serde(default)]
    urgent_passes: bool,
}

/// Where signed checkpoints are sent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckpointWebhook {
    /// Where it is sent: https, or http to this machine.
    url: String,
    /// The signing secret, `whsec_` and base64.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    secret: Option<Secret>,
    /// A file with the signing secret.
    #[serde(default)]
    secret_file: Option<PathBuf>,
    /// Certificates (PEM) that are believed instead of the system's.
    #[serde(default)]
    ca_file: Option<PathBuf>,
}

/// A secret that nothing shows.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A key that signs.
#[derive(Clone)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A key of any length, for the published examples.
    #[cfg(test)]
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Reads `whsec_` and base64.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text.trim().strip_prefix(SECRET_PREFIX)?.as_bytes()).ok()?;
        (24..=64).contains(&bytes.len()).then_some(Self(bytes))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A receiver of signed requests.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) url: hyper::Uri,
    pub(crate) keys: Vec<Key>,
    pub(crate) ca_file: Option<PathBuf>,
    /// The files that the configuration names for it.
    pub(crate) files: Vec<PathBuf>,
}

/// How a channel reaches people.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// A program with its first arguments.
    Desktop(Vec<String>),
    /// A receiver.
    Webhook(Endpoint),
    /// A mail server.
    Mail(MailServer),
    /// A service over HTTP.
    Post(Service),
}

impl Way {
    /// The files that the configuration names for it.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Desktop(_) => Vec::new(),
            Self::Webhook(endpoint) => endpoint.files.clone(),
            Self::Mail(MailServer { ca_file, .. }) | Self::Post(Service { ca_file, .. }) => ca_file.iter().cloned().collect(),
        }
    }

    /// The names of the secrets that it needs.
    pub(crate) fn secrets(&self) -> Vec<String> {
        match self {
            Self::Desktop(_) | Self::Webhook(_) => Vec::new(),
            Self::Mail(server) => server.login.iter().map(|(_, secret)| secret.clone()).collect(),
            Self::Post(service) => service.secret.iter().cloned().collect(),
        }
    }
}

/// An outlet with what it takes to use it, and the channel that it is by itself, if it is one.
#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    pub(crate) row: OutletRow,
    pub(crate) channel: Option<Channel>,
    pub(crate) way: Way,
}

impl Outlet {
    fn of(channel: Channel, way: Way) -> Self {
        let row = OutletRow {
            name: channel.name.clone(),
            kind: channel.kind,
            target: channel.target.clone(),
            digest: channel.digest.clone(),
            tells: true,
            links: false,
            addresses: Vec::new(),
        };
        Self { row, channel: Some(channel), way }
    }
}

const SECOND: i64 = 1_000_000;
/// How a signing secret begins.
const SECRET_PREFIX: &str = "whsec_";

/// The outlets that a section names, and what else it says. `at` says where in the file a part stands; `hosts` are the names under
/// which the desk may be called.
pub(super) fn settle(section: Section, home: &Path, hosts: &[String], at: &dyn Fn(serde_saphyr::Location) -> String) -> Result<Notifications> {
    let mut outlets: Vec<Outlet> = Vec::new();
    let mut add = |place: &str, outlet: std::result::Result<Outlet, String>| -> Result<()> {
        let outlet = outlet.map_err(|what| ConfigError(format!("{place}: {what}")))?;
        if outlets.iter().any(|other| other.row.name == outlet.row.name) {
            return Err(ConfigError(format!("{place}: two channels are called {}", outlet.row.name)));
        }
        if outlets.len() >= NOTIFICATION_CHANNELS_MAX {
            return Err(ConfigError(format!("{place}: at most {NOTIFICATION_CHANNELS_MAX} channels are possible")));
        }
        outlets.push(outlet);
        Ok(())
    };
    if let Some(desktop) = section.desktop {
        add(&at(desktop.referenced), desktop_outlet(desktop.value))?;
    }
    for webhook in section.webhooks {
        add(&at(webhook.referenced), webhook_outlet(webhook.value, home))?;
    }
    for outlet in section.outlets {
        add(&at(outlet.referenced), outlets::settle(outlet.value, home, section.decide_links.unwrap_or(true)))?;
    }
    let reminders = match section.reminders {
        None => reminders(RemindersSection::default()),
        Some(given) => reminders(given.value).map_err(|what| format!("{}: {what}", at(given.referenced))),
    };
    let base_url = section.base_url.map(|url| base_url(&url.value, hosts).map_err(|what| ConfigError(format!("{}: {what}", at(url.referenced)))));
    Ok(Notifications { outlets, reminders: reminders.map_err(ConfigError)?, base_url: base_url.transpose()? })
}

fn reminders(section: RemindersSection) -> std::result::Result<Reminders, String> {
    let time = |key: &str, given: Option<String>, usual: &str| -> std::result::Result<Option<i64>, String> {
        let text = given.unwrap_or_else(|| usual.to_owned());
        if text == "off" {
            return Ok(None);
        }
        parse_duration(&text).map(Some).ok_or_else(|| format!("{key}: {text:?} is not a time: write for example 4h, or off"))
    };
    let after = [
        time("low", section.low, "off")?,
        time("medium", section.medium, "4h")?,
        time("high", section.high, "1h")?,
        time("critical", section.critical, "15m")?,
    ];
    Ok(Reminders { after, before_expiry: time("before_expiry", section.before_expiry, "1h")? })
}

/// An address at which the desk answers: one that it does not know would be refused there.
fn base_url(url: &str, hosts: &[String]) -> std::result::Result<String, String> {
    let uri: hyper::Uri = url.parse().map_err(|_| "base_url is not an address: write for example https://desk.example.org".to_owned())?;
    let host = uri.host().unwrap_or_default();
    let local = is_loopback(host) || host == "deskmate.localhost";
    if uri.scheme_str() != Some("https") && !(local && uri.scheme_str() == Some("http")) {
        return Err("base_url must be https: only on this machine the desk is opened without TLS".to_owned());
    }
    if !local && !hosts.iter().any(|own| own.eq_ignore_ascii_case(host)) {
        return Err(format!("base_url: the desk does not answer to {host}: add it to hosts"));
    }
    if !uri.path().trim_end_matches('/').is_empty() || uri.query().is_some() {
        return Err("base_url must end with the host".to_owned());
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// The receiver of checkpoints.
pub(super) fn settle_checkpoints(webhook: Spanned<CheckpointWebhook>, home: &Path, at: &dyn Fn(serde_saphyr::Location) -> String) -> Result<Endpoint> {
    let place = at(webhook.referenced);
    let CheckpointWebhook { url, secret, secret_file, ca_file } = webhook.value;
    endpoint(&url, secret, secret_file, ca_file, home).map_err(|what| ConfigError(format!("{place}: {what}")))
}

fn desktop_outlet(section: DesktopSection) -> std::result::Result<Outlet, String> {
    let command = if section.command.is_empty() { usual_command() } else { section.command };
    if command.iter().any(|part| part.contains('\0')) || command.first().is_none_or(String::is_empty) {
        return Err("command must begin with the name or path of a program".to_owned());
    }
    let channel = Channel {
        target: command.first().cloned().unwrap_or_default(),
        digest: address_digest(&command.join("\0"))?,
        topics: topics(section.events)?,
        domains: section.domains,
        quiet: section.quiet_hours.map(quiet).transpose()?,
        window: window(section.batch_seconds)?,
        attempts: attempts(section.attempts, 3)?,
        details: details(section.text.unwrap_or(true)),
        ..Channel::new("desktop", ChannelKind::Desktop)
    };
    Ok(Outlet::of(channel, Way::Desktop(command)))
}

/// What shows a message on this system.
fn usual_command() -> Vec<String> {
    let command: &[&str] = if cfg!(target_os = "macos") {
        // The texts are arguments of the script, never part of it.
        let show = "display notification (item 2 of argv) with title (item 1 of argv)";
        &["osascript", "-e", "on run argv", "-e", show, "-e", "end run", "--"]
    } else {
        &["notify-send", "--app-name=Deskmate", "--"]
    };
    command.iter().map(|part| (*part).to_owned()).collect()
}

fn webhook_outlet(section: WebhookSection, home: &Path) -> std::result::Result<Outlet, String> {
    let name = section.name;
    let fits = !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if !fits || name == "desktop" {
        return Err(format!("name {name:?} must be letters, digits, dots, dashes or underscores, and not desktop"));
    }
    let endpoint = endpoint(&section.url, section.secret, section.secret_file, section.ca_file, home)?;
    let channel = Channel {
        // A path can be a secret of its own.
        target: format!("{}://{}", endpoint.url.scheme_str().unwrap_or("https"), endpoint.url.authority().map_or("", |authority| authority.as_str())),
        digest: address_digest(&section.url)?,
        topics: topics(section.events)?,
        domains: section.domains,
        quiet: section.quiet_hours.map(quiet).transpose()?,
        window: window(section.batch_seconds)?,
        attempts: attempts(section.attempts, 12)?,
        details: details(section.text.unwrap_or(false)),
        ..Channel::new(name, ChannelKind::Webhook)
    };
    Ok(Outlet::of(channel, Way::Webhook(endpoint)))
}

/// What agents wrote is never shown with secrets or personal data in it to whoever reads there.
fn details(text: bool) -> Details {
    if text { Details::Redacted } else { Details::None }
}

pub(super) fn address_digest(address: &str) -> std::result::Result<String, String> {
    digest(&address).map(|digest| hex(&digest)).map_err(|error| error.to_string())
}

/// An address that the desk may send something to.
pub(crate) fn address(url: &str) -> std::result::Result<hyper::Uri, String> {
    let url: hyper::Uri = url.parse().map_err(|_| "url is not an address: write for example https://example.org/hooks/desk".to_owned())?;
    let authority = url.authority().map(hyper::http::uri::Authority::as_str).unwrap_or_default();
    if authority.contains('@') {
        return Err("url must not hold a name or a password".to_owned());
    }
    match url.scheme_str() {
        Some("https") => Ok(url),
        Some("http") if url.host().is_some_and(is_loopback) => Ok(url),
        Some("http") => Err("url must be https: only a receiver on this machine may be called without TLS".to_owned()),
        _ => Err("url must begin with https://".to_owned()),
    }
}

fn endpoint(url: &str, secret: Option<Secret>, secret_file: Option<PathBuf>, ca_file: Option<PathBuf>, home: &Path) -> std::result::Result<Endpoint, String> {
    let url = address(url)?;
    let files = [&secret_file, &ca_file].into_iter().flatten().map(|file| home.join(file)).collect();
    let keys = match (secret, secret_file) {
        (Some(secret), None) => vec![Key::parse(&secret.0).ok_or_else(bad_secret)?],
        (None, Some(file)) => {
            let file = home.join(file);
            let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            text.lines().filter(|line| !line.trim().is_empty()).map(|line| Key::parse(line).ok_or_else(bad_secret)).collect::<std::result::Result<_, _>>()?
        }
        _ => return Err("give either secret or secret_file".to_owned()),
    };
    if keys.is_empty() {
        return Err(bad_secret());
    }
    Ok(Endpoint { url, keys, ca_file: ca_file.map(|file| home.join(file)), files })
}

/// A text without the signing secrets that it may quote.
pub(super) fn without_secrets(text: &str) -> String {
    let mut parts = text.split(SECRET_PREFIX);
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_'));
        clean.push_str(SECRET_PREFIX);
        clean.push('…');
        clean.push_str(rest);
    }
    clean
}

fn bad_secret() -> String {
    "the secret must be whsec_ and 24 to 64 bytes in base64: `echo whsec_$(openssl rand -base64 32)` makes one".to_owned()
}

pub(super) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

pub(super) fn topics(events: BTreeSet<Topic>) -> std::result::Result<BTreeSet<Topic>, String> {
    if events.contains(&Topic::Test) {
        return Err("events: a test is always sent where somebody asks for it".to_owned());
    }
    Ok(events)
}

pub(super) fn window(seconds: Option<u32>) -> std::result::Result<i64, String> {
    let seconds = seconds.unwrap_or(60);
    if seconds > 24 * 3_600 {
        return Err("batch_seconds must be at most 86400".to_owned());
    }
    Ok(i64::from(seconds) * SECOND)
}

pub(super) fn attempts(given: Option<i64>, usual: i64) -> std::result::Result<i64, String> {
    let attempts = given.unwrap_or(usual);
    if !(1..=JOB_ATTEMPTS_MAX).contains(&attempts) {
        return Err(format!("attempts must be between 1 and {JOB_ATTEMPTS_MAX}"));
    }
    Ok(attempts)
}

pub(super) fn quiet(section: QuietSection) -> std::result::Result<Quiet, String> {
    let time = |name: &str, text: &str| text.parse::<Time>().map_err(|_| format!("quiet_hours.{name}: {text:?} is not a time: write for example 22:00"));
    let (from, to) = (time("from", &section.from)?, time("to", &section.to)?);
    if from == to {
        return Err("quiet_hours: from and to are the same; leave the channel out instead of making it quiet for ever".to_owned());
    }
    let zone = match &section.zone {
        None => TimeZone::system(),
        Some(name) => TimeZone::get(name).map_err(|_| format!("quiet_hours.zone: {name:?} is not a time zone here: write for example Europe/Berlin"))?,
    };
    Ok(Quiet { from, to, zone, urgent_passes: section.urgent_passes })
}
