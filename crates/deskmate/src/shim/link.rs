//! Finding the server, or starting one, and saying hello to it.

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::sync::Once;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ShimArgs, line, note};
use crate::home::Home;
use crate::{background, config};

/// How often a server that goes away during the hello is looked for again.
const ATTEMPTS: u32 = 5;
/// How long a server may take to answer the hello.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// The longest answer to it.
const WELCOME_BYTES_MAX: u64 = 64 * 1024;
/// What is mounted when nothing is named.
const USUAL_TOOLSETS: &[&str] = &["cowork", "bridge"];

/// Why there is no connection.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Fault {
    code: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Fault {
    fn unavailable(message: impl Into<String>) -> Self {
        Self { code: "unavailable".to_owned(), message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// This fault as the answer to a request.
    pub(super) fn answer(&self, id: &str) -> Vec<u8> {
        let mut data = json!(self);
        if let Some(data) = data.as_object_mut() {
            data.insert("retryable".to_owned(), Value::Bool(self.code == "unavailable" || self.code == "limited"));
        }
        line::error(Some(id), -32000, &self.to_string(), &data)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl From<deskmate_core::Error> for Fault {
    fn from(error: deskmate_core::Error) -> Self {
        Self { hint: error.hint, ..Self::unavailable(error.message) }
    }
}

/// A connection after its hello.
pub(super) struct Connected {
    pub(super) read: BufReader<UnixStream>,
    pub(super) write: UnixStream,
}

#[derive(Deserialize)]
struct Welcome {
    ok: bool,
    #[serde(default)]
    notes: Vec<String>,
    error: Option<Fault>,
}

/// Where the server is and what it is told.
pub(super) struct Target {
    home: Home,
    hello: Result<Vec<u8>, Fault>,
    /// Whether it was told which variables of the client's environment do nothing.
    told: Once,
}

enum Miss {
    /// Nobody answers at the socket.
    NotThere,
    /// Somebody answered, and it will not do.
    Fault(Fault),
}

impl Target {
    pub(super) fn new(args: ShimArgs) -> Self {
        let hello = token(&args).map(|token| {
            let toolsets: Vec<String> = if args.toolsets.is_empty() { USUAL_TOOLSETS.iter().map(|name| (*name).to_owned()).collect() } else { args.toolsets };
            let hello = json!({ "v": 1, "agent": args.agent, "token": token, "toolsets": toolsets, "read_only": args.read_only });
            let mut line = hello.to_string().into_bytes();
            line.push(b'\n');
            line
        });
        Self { home: Home::new(args.home), hello, told: Once::new() }
    }

    /// Connects, starting a server if none is there, and one of this version in the place of an older one.
    pub(super) fn connect(&self) -> Result<Connected, Fault> {
        let mut started = background::renew(&self.home)?;
        for _ in 0..ATTEMPTS {
            if let Some(found) = self.look() {
                self.told.call_once(|| config::unread(!started).iter().for_each(|text| note(text)));
                return found;
            }
            background::ensure_running(&self.home)?;
            started = true;
        }
        Err(Fault::unavailable("the desk's server goes away as soon as it is there").hint(format!("{} tells why", self.home.log_file().display())))
    }

    /// A connection to a server that is there, or why it will not do; `None` when there is none.
    pub(super) fn look(&self) -> Option<Result<Connected, Fault>> {
        let hello = match &self.hello {
            Ok(hello) => hello,
            Err(fault) => return Some(Err(fault.clone())),
        };
        match self.greet(hello) {
            Ok(connected) => Some(Ok(connected)),
            Err(Miss::Fault(fault)) => Some(Err(fault)),
            Err(Miss::NotThere) => None,
        }
    }

    /// Says hello to a server that is there.
    fn greet(&self, hello: &[u8]) -> Result<Connected, Miss> {
        let path = self.home.socket();
        let stream = UnixStream::connect(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Miss::NotThere,
            _ => Miss::Fault(Fault::unavailable(format!("{} cannot be opened: {error}", path.display()))),
        })?;
        let mut answer = Vec::new();
        let greeted = stream.set_read_timeout(Some(HELLO_TIME)).and_then(|()| stream.try_clone()).and_then(|mut write| {
            write.write_all(hello)?;
            let mut read = BufReader::with_capacity(16 * 1024, stream);
            (&mut read).take(WELCOME_BYTES_MAX).read_until(b'\n', &mut answer)?;
            write.set_read_timeout(None)?;
            Ok(Connected { read, write })
        });
        match greeted {
            Ok(connected) if answer.ends_with(b"\n") => welcome(&answer).map(|()| connected).map_err(Miss::Fault),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(Miss::Fault(Fault::unavailable("the desk's server does not answer")))
            }
            // It is just going away.
            Ok(_) | Err(_) => Err(Miss::NotThere),
        }
    }
}

fn welcome(answer: &[u8]) -> Result<(), Fault> {
    let welcome: Welcome =
        serde_json::from_slice(answer).map_err(|error| Fault::unavailable(format!("the desk's server answered what cannot be read: {error}")))?;
    for said in &welcome.notes {
        note(said);
    }
    match (welcome.ok, welcome.error) {
        (true, _) => Ok(()),
        (false, Some(fault)) => Err(fault),
        (false, None) => Err(Fault::unavailable("the desk's server refused without a reason")),
    }
}

/// The agent's token: from the environment, else from its file. A file that was named and cannot be read is a fault;
/// going on without it would be another caller.
fn token(args: &ShimArgs) -> Result<Option<String>, Fault> {
    if let Some(token) = config::env("DESKMATE_TOKEN") {
        return Ok(Some(token));
    }
    let Some(path) = &args.token_file else { return Ok(None) };
    let cannot = |why: &dyn fmt::Display| Fault { code: "unauthenticated".to_owned(), message: format!("no token in {}: {why}", path.display()), hint: None };
    let text = fs::read_to_string(path).map_err(|error| cannot(&error))?;
    let token = text.trim();
    if token.is_empty() { Err(cannot(&"it is empty")) } else { Ok(Some(token.to_owned())) }
}
