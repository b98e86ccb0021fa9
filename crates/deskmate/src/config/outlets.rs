//! The outlets by which people are told beyond the desk: mail, chats and phones. Passwords, tokens and addresses that are secrets are
//! named here and lie in the secret store; they are looked up each time one is used.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use deskmate_core::limits::NAME_CHARS_MAX;
use deskmate_core::notify::{Addressed, Channel, ChannelKind, Details, LeastRisk, OutletRow, Topic};
use deskmate_core::request::RequestKind;
use deskmate_core::secret;
use schemars::JsonSchema;
use serde::Deserialize;

use super::notifications::{Outlet, QuietSection, Way, address, address_digest, attempts, is_loopback, quiet, topics, window};

type Settled<T> = std::result::Result<T, String>;

/// How an outlet reaches people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// E-mail over SMTP.
    Email,
    /// An incoming webhook of Slack.
    Slack,
    /// An incoming webhook of Microsoft Teams, made with a workflow.
    Teams,
    /// A webhook of Discord.
    Discord,
    /// An incoming webhook of Mattermost.
    Mattermost,
    /// A server of ntfy.
    Ntfy,
    /// The bot API of Telegram.
    Telegram,
}

impl Kind {
    fn channel(self) -> ChannelKind {
        match self {
            Self::Email => ChannelKind::Email,
            Self::Slack => ChannelKind::Slack,
            Self::Teams => ChannelKind::Teams,
            Self::Discord => ChannelKind::Discord,
            Self::Mattermost => ChannelKind::Mattermost,
            Self::Ntfy => ChannelKind::Ntfy,
            Self::Telegram => ChannelKind::Telegram,
        }
    }
}

/// How mail is protected on its way to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MailTls {
    /// TLS before a word is said; port 465 if not given.
    #[default]
    Implicit,
    /// TLS as the first thing that is asked for; port 587 if not given. A server that has none gets nothing.
    Starttls,
    /// None: only to a server on this machine; port 25 if not given.
    None,
}

/// An outlet. Which keys it needs goes by its kind.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutletSection {
    /// The outlet's name.
    name: String,
    /// How it reaches people.
    kind: Kind,
    /// Slack, Teams, Discord and Mattermost: the whole address of the incoming webhook, as `secret:NAME`. ntfy and Telegram: where
    /// their server is, `https://ntfy.sh` and `https://api.telegram.org` if not given.
    #[serde(default)]
    url: Option<String>,
    /// Mail: the server's name.
    #[serde(default)]
    host: Option<String>,
    /// Mail: the server's port.
    #[serde(default)]
    port: Option<u16>,
    /// Mail: how it is protected; `implicit` if not given.
    #[serde(default)]
    tls: Option<MailTls>,
    /// Mail: from whom it comes, for example `desk@example.org`.
    #[serde(default)]
    from: Option<String>,
    /// Mail: the name to sign in with.
    #[serde(default)]
    user: Option<String>,
    /// Mail: the password, as `secret:NAME`.
    #[serde(default)]
    password: Option<String>,
    /// ntfy: an access token, as `secret:NAME`. Telegram: the token of the bot, as `secret:NAME`.
    #[serde(default)]
    token: Option<String>,
    /// Certificates (PEM) that are believed instead of the system's.
    #[serde(default)]
    ca_file: Option<PathBuf>,
    /// Which addresses people may choose for themselves, with a leading or trailing `*` as a wildcard, for example `*@example.org`;
    /// all if not given.
    #[serde(default)]
    addresses: Vec<String>,
    /// Makes it a channel that tells whoever reads there, beside people's own subscriptions.
    #[serde(default)]
    channel: Option<ChannelSection>,
}

/// What a channel tells, and when.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ChannelSection {
    /// Where to, where the outlet wants to know: an e-mail address, a topic, a chat, a channel.
    to: Option<String>,
    /// What it tells about; everything if not given.
    events: BTreeSet<Topic>,
    /// Which kinds of requests it tells about; all if not given.
    kinds: Vec<RequestKind>,
    /// Which domains it tells about, with a trailing `*` as a wildcard; all if not given.
    domains: Vec<String>,
    /// How risky a request has to be; all are told if not given.
    least_risk: Option<LeastRisk>,
    /// Whether what nobody decided is told again; true if not given.
    reminders: Option<bool>,
    /// When it is quiet.
    quiet_hours: Option<QuietSection>,
    /// The shortest time between two messages; 60 if not given.
    batch_seconds: Option<u32>,
    /// How often a message is tried; 12 if not given, which is about an hour.
    attempts: Option<i64>,
    /// Whether it carries what agents wrote, without secrets and personal data; false if not given.
    text: bool,
}

/// A server that takes mail.
#[derive(Clone, Debug)]
pub(crate) struct MailServer {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: MailTls,
    pub(crate) from: String,
    /// The name to sign in with, and the name of the secret.
    pub(crate) login: Option<(String, String)>,
    pub(crate) ca_file: Option<PathBuf>,
}

/// A service that takes messages over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) kind: ChannelKind,
    /// Where it is, unless its whole address is a secret.
    pub(crate) base: Option<String>,
    /// The name of the secret: the whole address, or a token.
    pub(crate) secret: Option<String>,
    pub(crate) ca_file: Option<PathBuf>,
}

/// An outlet as it is used.
pub(super) fn settle(section: OutletSection, home: &Path, links: bool) -> Settled<Outlet> {
    let name = section.name.clone();
    let fits = !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if !fits || name == "desktop" {
        return Err(format!("name {name:?} must be letters, digits, dots, dashes or underscores, and not desktop"));
    }
    refuse_foreign_keys(&section)?;
    let kind = section.kind.channel();
    let ca_file = section.ca_file.as_ref().map(|file| home.join(file));
    let (way, target, whole) = match section.kind {
        Kind::Email => mail(&section, ca_file)?,
        Kind::Slack | Kind::Teams | Kind::Discord | Kind::Mattermost => {
            let named = named("url", section.url.as_deref())?.ok_or("url is needed: the address of the incoming webhook, as secret:NAME")?;
            let target = format!("secret:{named}");
            (Way::Post(Service { kind, base: None, secret: Some(named), ca_file }), target.clone(), target)
        }
        Kind::Ntfy => hosted(&section, kind, "https://ntfy.sh", ca_file)?,
        Kind::Telegram => {
            named("token", section.token.as_deref())?.ok_or("token is needed: the token of the bot, as secret:NAME")?;
            hosted(&section, kind, "https://api.telegram.org", ca_file)?
        }
    };
    // A topic that nothing protects is read by whoever guesses its name.
    let protected = section.kind != Kind::Ntfy || section.token.is_some();
    let row = OutletRow {
        name: name.clone(),
        kind,
        target,
        digest: address_digest(&whole)?,
        tells: section.channel.is_some(),
        links: links && protected,
        addresses: section.addresses.clone(),
    };
    let channel = section.channel.map(|channel| channel_of(&row, channel)).transpose()?;
    Ok(Outlet { row, channel, way })
}

fn channel_of(row: &OutletRow, section: ChannelSection) -> Settled<Channel> {
    match (&section.to, row.kind.addressed()) {
        (None, Addressed::Needed) => return Err("channel.to is needed: say where this outlet leads".to_owned()),
        (Some(to), _) => row.kind.check_address("channel.to", to).map_err(|error| error.to_string())?,
        (None, _) => {}
    }
    Ok(Channel {
        target: row.target.clone(),
        digest: row.digest.clone(),
        to: section.to,
        topics: topics(section.events)?,
        kinds: section.kinds,
        domains: section.domains,
        least_risk: section.least_risk,
        reminders: section.reminders.unwrap_or(true),
        quiet: section.quiet_hours.map(quiet).transpose()?,
        window: window(section.batch_seconds)?,
        attempts: attempts(section.attempts, 12)?,
        details: if section.text { Details::Redacted } else { Details::None },
        ..Channel::new(row.name.clone(), row.kind)
    })
}

/// A key that means nothing for a kind would be a setting without effect.
fn refuse_foreign_keys(section: &OutletSection) -> Settled<()> {
    let is_mail = section.kind == Kind::Email;
    let takes_token = matches!(section.kind, Kind::Ntfy | Kind::Telegram);
    let foreign = [
        ("url", section.url.is_some() && is_mail),
        ("host", section.host.is_some() && !is_mail),
        ("port", section.port.is_some() && !is_mail),
        ("tls", section.tls.is_some() && !is_mail),
        ("from", section.from.is_some() && !is_mail),
        ("user", section.user.is_some() && !is_mail),
        ("password", section.password.is_some() && !is_mail),
        ("token", section.token.is_some() && !takes_token),
        ("addresses", !section.addresses.is_empty() && section.kind.channel().addressed() == Addressed::No),
    ];
    match foreign.into_iter().find(|(_, is_given)| *is_given) {
        Some((key, _)) => Err(format!("{key} means nothing for {}", section.kind.channel().name())),
        None => Ok(()),
    }
}

fn mail(section: &OutletSection, ca_file: Option<PathBuf>) -> Settled<(Way, String, String)> {
    let host = section.host.clone().filter(|host| !host.is_empty() && !host.contains(['/', '@', ' '])).ok_or("host is needed: the name of the mail server")?;
    let tls = section.tls.unwrap_or_default();
    if tls == MailTls::None && !is_loopback(&host) {
        return Err("tls: none is only for a mail server on this machine".to_owned());
    }
    let from = section.from.clone().ok_or("from is needed: the address from which mail comes, for example desk@example.org")?;
    if from.parse::<lettre::message::Mailbox>().is_err() {
        return Err("from must be an e-mail address, for example desk@example.org or Deskmate <desk@example.org>".to_owned());
    }
    let login = match (section.user.clone(), named("password", section.password.as_deref())?) {
        (Some(user), Some(password)) => Some((user, password)),
        (None, None) => None,
        _ => return Err("user and password belong together".to_owned()),
    };
    let usual = match tls {
        MailTls::Implicit => 465,
        MailTls::Starttls => 587,
        MailTls::None => 25,
    };
    let port = section.port.unwrap_or(usual);
    let target = format!("{host}:{port}");
    Ok((Way::Mail(MailServer { host, port, tls, from, login, ca_file }), target.clone(), target))
}

/// A service whose server can be one's own.
fn hosted(section: &OutletSection, kind: ChannelKind, usual: &str, ca_file: Option<PathBuf>) -> Settled<(Way, String, String)> {
    let base = section.url.as_deref().unwrap_or(usual).trim_end_matches('/').to_owned();
    if secret::reference(&base).is_some() {
        return Err("url is where the server is, and no secret".to_owned());
    }
    address(&base)?;
    let secret = named("token", section.token.as_deref())?;
    Ok((Way::Post(Service { kind, base: Some(base.clone()), secret, ca_file }), base.clone(), base))
}

/// The name of a secret. What stands there instead is not repeated: it may be the secret itself.
fn named(key: &str, given: Option<&str>) -> Settled<Option<String>> {
    let Some(given) = given else { return Ok(None) };
    let wrong = || format!("{key} must name a secret: put it in with `deskmate secret set NAME` and write secret:NAME");
    let name = secret::reference(given).ok_or_else(wrong)?;
    secret::check_name(key, name).map_err(|_| wrong())?;
    Ok(Some(name.to_owned()))
}
