//! `deskmate connector`: the desk's own small MCP servers, as a mount starts them. What they reach stands in their arguments, which an
//! owner put in force; passwords come from the environment, where the mount puts secrets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use url::Url;
use zeroize::Zeroizing;

use super::output::print;
use super::{Failure, Global};
use crate::config::{self, MailServer, MailTls};
use crate::connector::{self, Access, Connector, Database, Http, Mail, Place, Reach, Storage, Webhook};

#[derive(Subcommand)]
pub(super) enum ConnectorCommand {
    /// Watch and read addresses
    Http(HttpArgs),
    /// Post to one channel; its address is in the variable WEBHOOK_URL
    Webhook(WebhookArgs),
    /// Read a mailbox, draft and send; passwords are in IMAP_PASSWORD and SMTP_PASSWORD
    Mail(MailArgs),
    /// Ask a database, only reading; the address of PostgreSQL is in DATABASE_URL
    Database(DatabaseArgs),
    /// Back up a folder, check and try it; WEBDAV_PASSWORD, S3_KEY and S3_SECRET are in the environment
    Storage(StorageArgs),
}

#[derive(Args)]
pub(super) struct HttpArgs {
    /// An address that may be reached, with all beneath its path; may be given several times
    #[arg(long, value_name = "URL", required = true)]
    allow: Vec<String>,
    /// Send a header whose value is in a variable of the environment, as HEADER=VARIABLE
    #[arg(long, value_name = "HEADER=VARIABLE")]
    header_env: Vec<String>,
    #[command(flatten)]
    reach: ReachArgs,
}

#[derive(Args)]
pub(super) struct ReachArgs {
    /// Let names stand for addresses that are not public
    #[arg(long)]
    private_names: bool,
    /// The certificates that are believed, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

impl ReachArgs {
    fn reach(&self) -> Result<Reach, String> {
        Reach::new(self.ca_file.as_deref(), self.private_names)
    }
}

#[derive(Args)]
pub(super) struct WebhookArgs {
    /// The field that holds the text: `text` for Slack and Mattermost, `content` for Discord
    #[arg(long, default_value = "text", value_name = "NAME")]
    field: String,
    #[command(flatten)]
    reach: ReachArgs,
}

#[derive(Args)]
pub(super) struct MailArgs {
    /// The mailbox: imaps://imap.example.org, or imap://127.0.0.1:1143 on this machine
    #[arg(long, value_name = "URL")]
    imap: String,
    /// Who signs in to it
    #[arg(long, value_name = "NAME")]
    user: String,
    /// The folder that is read
    #[arg(long, default_value = "INBOX", value_name = "FOLDER")]
    folder: String,
    /// The folder for drafts
    #[arg(long, default_value = "Drafts", value_name = "FOLDER")]
    drafts: String,
    /// Who mail comes from, such as "Support <support@example.org>"
    #[arg(long, value_name = "ADDRESS")]
    from: String,
    /// The server that takes mail: smtps://smtp.example.org, smtp+starttls://smtp.example.org, or smtp://127.0.0.1:1025 on this
    /// machine; without it mail is only drafted
    #[arg(long, value_name = "URL")]
    smtp: Option<String>,
    /// Who signs in to that; nobody if not given
    #[arg(long, value_name = "NAME", requires = "smtp")]
    smtp_user: Option<String>,
    /// To whom mail may go that is no answer: an address or a domain; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    allow_to: Vec<String>,
    /// The certificates that are believed, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct DatabaseArgs {
    /// The file of an SQLite database; PostgreSQL if not given
    #[arg(long, value_name = "FILE")]
    sqlite: Option<PathBuf>,
    /// How many rows an answer has at most
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rows: u32,
    /// How many seconds a question may take
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=300))]
    seconds: u32,
}

#[derive(Args)]
pub(super) struct StorageArgs {
    /// The folder that is copied
    #[arg(long, value_name = "DIR")]
    read: Option<PathBuf>,
    /// What of it is never copied, as a glob; may be given several times
    #[arg(long, value_name = "GLOB")]
    deny: Vec<String>,
    /// Where copies go: a folder, or the address of a WebDAV server or of S3
    #[arg(long, value_name = "DIR|URL")]
    to: String,
    /// The address is one of S3, and this the bucket
    #[arg(long, value_name = "NAME")]
    bucket: Option<String>,
    /// The region of the bucket
    #[arg(long, default_value = "us-east-1", requires = "bucket")]
    region: String,
    /// What the names in the bucket begin with
    #[arg(long, default_value = "", requires = "bucket")]
    prefix: String,
    /// Who signs in to WebDAV
    #[arg(long, value_name = "NAME", conflicts_with = "bucket")]
    user: Option<String>,
    /// Bring a backup back into --into, instead of serving
    #[arg(long, value_name = "NAME", requires = "into")]
    restore: Option<String>,
    /// The empty folder that it is brought back into
    #[arg(long, value_name = "DIR", requires = "restore")]
    into: Option<PathBuf>,
    #[command(flatten)]
    reach: ReachArgs,
}

/// A secret of the environment.
fn secret(name: &str) -> Result<Zeroizing<String>, String> {
    config::env(name).map(Zeroizing::new).ok_or_else(|| format!("{name} is not in the environment: the mount gives it as {name}=secret:NAME"))
}

impl HttpArgs {
    fn connector(&self) -> Result<Connector, String> {
        let header = |word: &String| {
            let (name, variable) = word.split_once('=').ok_or_else(|| format!("--header-env {word}: write HEADER=VARIABLE"))?;
            Ok((name.to_owned(), secret(variable)?.to_string()))
        };
        let headers = self.header_env.iter().map(header).collect::<Result<Vec<_>, String>>()?;
        Http::new(self.reach.reach()?, &self.allow, headers).map(Connector::Http)
    }
}

impl MailArgs {
    fn connector(&self) -> Result<Connector, String> {
        let imap = Url::parse(&self.imap).map_err(|error| format!("--imap: {error}"))?;
        let (tls, usual) = match imap.scheme() {
            "imaps" => (true, 993),
            "imap" => (false, 143),
            other => return Err(format!("--imap: {other} is neither imaps nor imap")),
        };
        let access = Access {
            host: imap.host_str().ok_or("--imap: the address has no host")?.to_owned(),
            port: imap.port().unwrap_or(usual),
            tls,
            ca_file: self.ca_file.clone(),
            user: self.user.clone(),
            password: secret("IMAP_PASSWORD")?,
            folder: self.folder.clone(),
        };
        let server = self.smtp.as_deref().map(|smtp| self.server(smtp)).transpose()?;
        Ok(Connector::Mail(Mail { access, drafts: self.drafts.clone(), from: self.from.clone(), server, to: self.allow_to.clone() }))
    }

    fn server(&self, smtp: &str) -> Result<(MailServer, Option<Zeroizing<String>>), String> {
        let url = Url::parse(smtp).map_err(|error| format!("--smtp: {error}"))?;
        let (tls, usual) = match url.scheme() {
            "smtps" => (MailTls::Implicit, 465),
            "smtp+starttls" => (MailTls::Starttls, 587),
            "smtp" => (MailTls::None, 25),
            other => return Err(format!("--smtp: {other} is none of smtps, smtp+starttls and smtp")),
        };
        let host = url.host_str().ok_or("--smtp: the address has no host")?.to_owned();
        let password = self.smtp_user.as_ref().map(|_| secret("SMTP_PASSWORD")).transpose()?;
        let login = self.smtp_user.clone().map(|user| (user, String::new()));
        Ok((MailServer { host, port: url.port().unwrap_or(usual), tls, from: self.from.clone(), login, ca_file: self.ca_file.clone() }, password))
    }
}

impl DatabaseArgs {
    fn connector(&self) -> Result<Connector, String> {
        let source = match &self.sqlite {
            Some(path) => connector::Source::Sqlite(path.clone()),
            None => connector::Source::Postgres(secret("DATABASE_URL")?),
        };
        let rows = usize::try_from(self.rows).unwrap_or(usize::MAX);
        Ok(Connector::Database(Database { source: Arc::new(source), rows, time: Duration::from_secs(u64::from(self.seconds)) }))
    }
}

impl StorageArgs {
    fn storage(&self) -> Result<Storage, String> {
        let place = match (&self.bucket, self.to.contains("://")) {
            (Some(bucket), true) => {
                let credentials = connector::credentials(&secret("S3_KEY")?, &secret("S3_SECRET")?);
                Place::S3(connector::S3::new(self.reach.reach()?, &self.to, (bucket, &self.region), &self.prefix, credentials)?)
            }
            (Some(_), false) => return Err("--to must be the address of S3 where --bucket names a bucket".to_owned()),
            (None, true) => {
                let password = self.user.as_ref().map(|_| secret("WEBDAV_PASSWORD")).transpose()?;
                Place::Webdav(connector::Webdav::new(self.reach.reach()?, &self.to, self.user.as_deref(), password.as_ref().map(|password| password.as_str()))?)
            }
            (None, false) => Place::Folder(connector::Folder::new(self.to.as_ref())?),
        };
        if let Some(source) = self.read.as_ref().filter(|source| !source.is_absolute() || !source.is_dir()) {
            return Err(format!("{} is no folder by its whole path", source.display()));
        }
        Ok(Storage { place, source: self.read.clone(), deny: self.deny.clone() })
    }
}

pub(super) fn run(global: &Global, command: &ConnectorCommand) -> Result<(), Failure> {
    let made = match command {
        ConnectorCommand::Http(args) => args.connector(),
        ConnectorCommand::Webhook(args) => {
            args.reach.reach().and_then(|reach| Webhook::new(reach, &secret("WEBHOOK_URL")?, args.field.clone())).map(Connector::Webhook)
        }
        ConnectorCommand::Mail(args) => args.connector(),
        ConnectorCommand::Database(args) => args.connector(),
        ConnectorCommand::Storage(args) => match (&args.restore, &args.into) {
            (Some(name), Some(into)) => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let storage = args.storage().map_err(Failure::Other)?;
                let done = runtime.block_on(storage.restore(name, into)).map_err(Failure::Other)?;
                return print(&done, global.json);
            }
            _ => args.storage().map(Connector::Storage),
        },
    };
    made.and_then(connector::serve).map_err(Failure::Other)
}
