//! Finding the server, or starting one, and saying hello to it.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ShimArgs, line, note};
use crate::config;

/// How long a server may take to start.
const START_TIME: Duration = Duration::from_secs(10);
/// How long to go on waiting when the server that was started here has ended: another one may be on its way.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// How long a server may take to answer the hello.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// The longest answer to it.
const WELCOME_BYTES_MAX: u64 = 64 * 1024;
/// How often to look whether the server is there.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// A log that is larger begins anew.
const LOG_BYTES_MAX: u64 = 8 * 1024 * 1024;
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
    home: PathBuf,
    hello: Result<Vec<u8>, Fault>,
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
        Self { home: args.home, hello }
    }

    /// Connects, starting a server if none is there.
    pub(super) fn connect(&self) -> Result<Connected, Fault> {
        let mut deadline = Instant::now() + START_TIME;
        let mut starting: Option<Starting> = None;
        loop {
            if let Some(found) = self.look() {
                return found;
            }
            match &mut starting {
                None => starting = self.start()?,
                Some(started) => {
                    if started.ended() {
                        deadline = deadline.min(started.since + AFTER_FAILURE);
                    }
                }
            }
            if Instant::now() >= deadline {
                let log = self.home.join("server.log");
                return Err(Fault::unavailable("the desk's server does not start").hint(format!("{} tells why", log.display())));
            }
            thread::sleep(LOOK_EVERY);
        }
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
        let path = self.home.join("desk.sock");
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

    /// Starts a server, unless another shim is at it. The server itself makes sure that there is only one.
    fn start(&self) -> Result<Option<Starting>, Fault> {
        let cannot = |error: io::Error| Fault::unavailable(format!("the desk's server cannot be started: {error}"));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.home).map_err(cannot)?;
        let lock = File::create(self.home.join("start.lock")).map_err(cannot)?;
        if lock.try_lock().is_err() {
            return Ok(None);
        }
        // A process group of its own: a client that ends this shim with its group must not end everybody's server.
        let child = Command::new(std::env::current_exe().map_err(cannot)?)
            .args(["up", "--background", "--home"])
            .arg(&self.home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.log().map_err(cannot)?)
            .env_remove("DESKMATE_TOKEN")
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        Ok(Some(Starting { child: Some(child), since: Instant::now(), _lock: lock }))
    }
}

impl Target {
    /// Where a server that was started here writes: at the end of its log, which begins anew when it has grown large.
    fn log(&self) -> io::Result<File> {
        let path = self.home.join("server.log");
        let large = fs::metadata(&path).is_ok_and(|file| file.len() > LOG_BYTES_MAX);
        let mut options = OpenOptions::new();
        options.create(true).mode(0o600);
        if large {
            options.write(true).truncate(true)
        } else {
            options.append(true)
        };
        options.open(&path)
    }
}

/// A server that was started here. While this lives, other shims start none.
struct Starting {
    child: Option<Child>,
    since: Instant,
    _lock: File,
}

impl Starting {
    fn ended(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Whenever it ends, somebody must take note of it, or it stays in the process table.
            thread::spawn(move || drop(child.wait()));
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
