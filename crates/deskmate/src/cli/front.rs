//! One MCP server over HTTP, without a desk.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{Failure, Global};
use crate::clean_log::Clean;
use crate::config;
use crate::front::{self, FrontArgs, Token};
use crate::upstream::{Questions, Spec, Transport};

#[derive(Args)]
pub(super) struct Front {
    /// Where to listen, on this machine only
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// Let everybody on this machine call, without a token
    #[arg(long)]
    no_auth: bool,
    /// Pass a variable of the environment on to the server, or set one with NAME=VALUE; may be given several times
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    env: Vec<String>,
    /// The directory to start the server in
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    cwd: Option<PathBuf>,
    /// How long a call may take; progress begins the time anew
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: String,
    /// Front a server that speaks Streamable HTTP instead of starting one
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// With --url: send a header whose value is in a variable of the environment, as HEADER=VARIABLE
    #[arg(long, value_name = "HEADER=VARIABLE", requires = "url")]
    header_env: Vec<String>,
    /// The server's command and its arguments, after --
    #[arg(last = true, required_unless_present = "url", value_name = "COMMAND")]
    command: Vec<String>,
}

impl Front {
    fn spec(&self) -> Result<Spec, Failure> {
        let transport = match (&self.url, self.command.split_first()) {
            (Some(url), _) => Transport::Http { url: url.clone(), headers: self.headers()? },
            (None, Some((command, args))) => {
                Transport::Stdio { command: command.clone(), args: args.to_vec(), env: self.environment()?, cwd: self.cwd.clone() }
            }
            (None, None) => return Err(Failure::Other("name the server's command after --".to_owned())),
        };
        let name = self.command.first().or(self.url.as_ref()).map_or("the server", String::as_str);
        let mut spec = Spec::new(name, transport);
        // Many clients share the one child, so a question is passed on only where it can be nobody else's.
        spec.questions = Questions::OfTheOnlyCall;
        // It is there as long as this command is.
        spec.bounds.idle = Duration::MAX;
        let time = config::parse_duration(&self.timeout).and_then(|micros| u64::try_from(micros).ok()).filter(|micros| *micros > 0);
        spec.bounds.call =
            time.map(Duration::from_micros).ok_or_else(|| Failure::Other(format!("--timeout: {:?} is not a time: write for example 90s", self.timeout)))?;
        spec.bounds.call_total = spec.bounds.call_total.max(spec.bounds.call);
        spec.check()?;
        Ok(spec)
    }

    fn environment(&self) -> Result<BTreeMap<String, String>, Failure> {
        let entry = |word: &String| match word.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => match config::env(word) {
                Some(value) => Ok((word.clone(), value)),
                None => Err(Failure::Other(format!("--env {word}: there is no such variable here"))),
            },
        };
        self.env.iter().map(entry).collect()
    }

    fn headers(&self) -> Result<BTreeMap<String, String>, Failure> {
        let entry = |word: &String| {
            let (header, variable) = word.split_once('=').ok_or_else(|| Failure::Other(format!("--header-env {word}: write HEADER=VARIABLE")))?;
            let value = config::env(variable).ok_or_else(|| Failure::Other(format!("--header-env {word}: there is no variable {variable} here")))?;
            Ok((header.to_owned(), value))
        };
        self.header_env.iter().map(entry).collect()
    }
}

pub(super) fn run(global: &Global, args: &Front) -> Result<(), Failure> {
    if !args.listen.ip().is_loopback() {
        let why = "only addresses of this machine, such as 127.0.0.1:8000, are listened on: put a proxy with TLS before it for others";
        return Err(Failure::Other(format!("--listen {}: {why}", args.listen)));
    }
    let spec = args.spec()?;
    let (token, shown) = match (args.no_auth, &global.token_file) {
        (true, Some(_)) => return Err(Failure::Other("--no-auth and --token-file exclude each other".to_owned())),
        (true, None) => (None, None),
        (false, Some(file)) => (Some(from_file(file)?), None),
        (false, None) => {
            let (token, text) = Token::new().map_err(Failure::Other)?;
            (Some(token), Some(text))
        }
    };
    let filter = tracing_subscriber::EnvFilter::new("error,deskmate=warn");
    tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_ansi(false).with_writer(Clean::new(std::io::stderr)).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (json, is_open) = (global.json, args.no_auth);
    let done = runtime.block_on(front::run(FrontArgs { spec, listen: args.listen, token }, |url| greet(url, shown.as_deref(), is_open, json)));
    runtime.shutdown_timeout(Duration::from_secs(1));
    done
}

/// The token of a file, which is made where there is none.
fn from_file(file: &Path) -> Result<Token, Failure> {
    let told = |error: std::io::Error| Failure::Other(format!("{}: {error}", file.display()));
    match std::fs::read_to_string(file) {
        Ok(text) => Token::parse(&text).map_err(|why| Failure::Other(format!("{}: {why}", file.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            use std::os::unix::fs::OpenOptionsExt;
            let (token, text) = Token::new().map_err(Failure::Other)?;
            let mut made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(told)?;
            writeln!(made, "{text}").and_then(|()| made.sync_all()).map_err(told)?;
            Ok(token)
        }
        Err(error) => Err(told(error)),
    }
}

fn greet(url: &str, token: Option<&str>, is_open: bool, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return super::output::say(&json!({ "url": url, "token": token }).to_string());
    }
    let mut text = format!("MCP at {url}\n");
    match token {
        Some(token) => text.push_str(&format!("  header     Authorization: Bearer {token}\n")),
        None if is_open => text.push_str("  no token   everybody on this machine may call\n"),
        None => {}
    }
    text.push_str("\nStop with Ctrl-C.\n");
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
