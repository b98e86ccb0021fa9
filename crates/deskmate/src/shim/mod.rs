//! `deskmate mcp`: what an MCP client starts. It connects its stdin and stdout with the running server and copies
//! lines both ways; it knows of MCP only what it needs to survive a restart of the server without the client noticing
//! more than a few failed calls.
//!
//! Plain threads and blocking reads: a client may start dozens of these, so each must start at once and stay small.
//! stdout carries JSON-RPC only; everything else goes to stderr.

mod idle;
mod line;
mod link;
mod session;

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use idle::Idle;
use line::{Head, Lines, Read as LineRead};
use link::{Connected, Fault, Target};
use session::Session;

/// How long the last answers may take once the client has closed stdin.
const LAST_ANSWERS: Duration = Duration::from_millis(1_500);
/// How long a first connection that is being made may take once the client has closed stdin: how that ends is told.
const FIRST_WORD: Duration = Duration::from_secs(10);
/// Connections follow each other no faster than this, whatever is wrong with them.
const BREATHER: Duration = Duration::from_millis(200);
/// How long a server that went away may take to return before a request starts another one.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often to look for it, while a request waits and while none does.
const LOOK_WANTED: Duration = Duration::from_millis(10);
const LOOK_AWAY: Duration = Duration::from_millis(100);

/// What `deskmate mcp` was told.
pub(crate) struct ShimArgs {
    /// The data directory.
    pub(crate) home: PathBuf,
    /// The toolsets to mount; none means the usual ones.
    pub(crate) toolsets: Vec<String>,
    /// The name of the agent.
    pub(crate) agent: Option<String>,
    /// Whether everything that changes something is left out.
    pub(crate) read_only: bool,
    /// After how long without a request it exits; never when absent.
    pub(crate) idle_exit: Option<Duration>,
    /// A file that holds the agent's token.
    pub(crate) token_file: Option<PathBuf>,
}

/// How things stand with the server.
enum Link {
    /// A connection is being made.
    Connecting,
    /// Lines can be written.
    Up(std::os::unix::net::UnixStream),
    /// The server went away. It is taken back when it returns, and started when a request needs it.
    Away,
    /// The server refused or cannot be reached; the next request tries again.
    Down(Fault),
    /// As before, and a request wants another attempt.
    Wanted,
}

struct Shim {
    target: Target,
    link: Mutex<Link>,
    changed: Condvar,
    session: Mutex<Session>,
    answered: Condvar,
    idle: Option<Idle>,
    /// Whether the client was told anything.
    said: AtomicBool,
    /// Whether there was a connection at all.
    was_up: AtomicBool,
    over: Sender<bool>,
}

/// Runs until stdin closes, or until nothing was asked for as long as it was told. Answers whether it could serve: a client that
/// left without asking anything heard of no refusal, and whoever started it by hand has to.
pub(crate) fn run(args: ShimArgs) -> bool {
    let idle = args.idle_exit.or_else(idle::from_environment).map(Idle::new);
    let (over, is_over) = channel();
    let shim = Arc::new(Shim {
        target: Target::new(args),
        link: Mutex::new(Link::Connecting),
        changed: Condvar::new(),
        session: Mutex::default(),
        answered: Condvar::new(),
        idle,
        said: AtomicBool::new(false),
        was_up: AtomicBool::new(false),
        over,
    });
    for work in [Shim::follow_client as fn(&Shim), Shim::follow_server, Shim::follow_idle] {
        let shim = Arc::clone(&shim);
        thread::spawn(move || work(&shim));
    }
    // The first that is done ends all: the process goes, and with it the other threads.
    is_over.recv().unwrap_or(true)
}

impl Shim {
    /// Takes lines from the client until it closes its end.
    fn follow_client(&self) {
        let mut lines = Lines::new(io::stdin().lock());
        loop {
            match lines.next() {
                LineRead::Line(line) => self.send(line),
                LineRead::TooLong(start) => {
                    let message = format!("a message of more than {} bytes was dropped", line::LINE_BYTES_MAX);
                    self.say(&line::error(line::id_in_prefix(start).as_deref(), -32600, &message, &serde_json::Value::Null));
                }
                LineRead::End => break,
            }
        }
        self.wait_for_last_answers();
        let _ = self.over.send(self.could_serve());
    }

    /// Whether the client could be served, or knows why not.
    fn could_serve(&self) -> bool {
        if self.was_up.load(Ordering::Acquire) || self.said.load(Ordering::Acquire) {
            return true;
        }
        let waited = self.changed.wait_timeout_while(self.lock_link(), FIRST_WORD, |link| matches!(link, Link::Connecting | Link::Wanted));
        let (link, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !matches!(*link, Link::Down(_))
    }

    fn follow_idle(&self) {
        if let Some(idle) = &self.idle {
            idle.wait_until_over();
            let _ = self.over.send(true);
        }
    }

    /// Hands one line of the client to the server.
    fn send(&self, message: &[u8]) {
        let head = Head::of(message);
        if line::too_deep(message) {
            let refusal = format!("a message that nests more than {} deep was dropped", line::DEPTH_MAX);
            return self.say(&line::error(head.request_id(), -32600, &refusal, &serde_json::Value::Null));
        }
        if head == Head::Unreadable {
            return self.say(&line::error(None, -32700, "this line is not JSON", &serde_json::Value::Null));
        }
        let mut link = self.lock_link();
        let stream = loop {
            match &*link {
                Link::Up(stream) => break stream,
                Link::Connecting | Link::Wanted => link = self.changed.wait(link).unwrap_or_else(PoisonError::into_inner),
                // What is no request was meant for the server that is gone.
                Link::Away if head.request_id().is_none() => return,
                Link::Away => {
                    *link = Link::Wanted;
                    self.changed.notify_all();
                }
                Link::Down(fault) => {
                    // Only a request can be told, and only a request is worth another attempt.
                    if let Some(id) = head.request_id() {
                        self.say(&fault.answer(id));
                        *link = Link::Wanted;
                        self.changed.notify_all();
                    }
                    return;
                }
            }
        };
        // Noted while the connection is held, so that a connection that breaks now answers this request as well.
        self.with_session(|session| session.note(&head, message));
        if write_line(stream, message).is_err() {
            // The other thread sees the end of this stream and does the rest.
            drop(stream.shutdown(std::net::Shutdown::Both));
        }
    }

    /// Keeps a connection to the server and takes its lines.
    fn follow_server(&self) {
        let (mut next, mut before) = (self.target.connect(), false);
        loop {
            next = match next {
                Ok(connected) => {
                    let since = Instant::now();
                    self.serve(connected);
                    before = true;
                    thread::sleep(BREATHER.saturating_sub(since.elapsed()));
                    self.come_back()
                }
                Err(fault) => {
                    note(&fault);
                    for line in &self.with_session(|session| session.given_up(&fault, before)) {
                        self.say(line);
                    }
                    self.set_link(Link::Down(fault));
                    self.wait_until_wanted();
                    self.target.connect()
                }
            };
        }
    }

    /// Goes on with the conversation over a new connection until that ends.
    fn serve(&self, connected: Connected) {
        let replay = self.with_session(Session::replay);
        if replay.iter().all(|line| write_line(&connected.write, line).is_ok()) {
            self.was_up.store(true, Ordering::Release);
            self.set_link(Link::Up(connected.write));
            self.take_lines(connected.read);
        }
        self.set_link(Link::Connecting);
        note(&"the server went away");
        for line in &self.with_session(Session::lost) {
            self.say(line);
        }
    }

    /// Waits for the server to return, and starts one when a request needs it. Whoever stops a server on purpose, to
    /// start another one, must not find one of ours in its place.
    fn come_back(&self) -> Result<Connected, Fault> {
        let since = Instant::now();
        let asked = self.with_session(|session| session.busy());
        self.set_link(if asked { Link::Wanted } else { Link::Away });
        loop {
            if let Some(found) = self.target.look() {
                return found;
            }
            let link = self.lock_link();
            let wanted = matches!(*link, Link::Wanted);
            if wanted && since.elapsed() >= PATIENCE {
                drop(link);
                return self.target.connect();
            }
            if wanted {
                drop(link);
                thread::sleep(LOOK_WANTED);
            } else {
                drop(self.changed.wait_timeout_while(link, LOOK_AWAY, |link| matches!(link, Link::Away)));
            }
        }
    }

    fn take_lines(&self, server: impl Read) {
        let mut lines = Lines::new(server);
        loop {
            match lines.next() {
                LineRead::Line(line) => {
                    let head = Head::of(line);
                    if self.with_session(|session| session.passes(&head)) {
                        self.say(line);
                    }
                    self.with_session(|session| session.passed(&head));
                }
                LineRead::TooLong(_) => note(&format!("an answer of more than {} bytes was dropped", line::LINE_BYTES_MAX)),
                LineRead::End => return,
            }
        }
    }

    /// Gives a line to the client. When the client no longer listens there is nothing left to do.
    fn say(&self, line: &[u8]) {
        self.said.store(true, Ordering::Release);
        let mut stdout = io::stdout().lock();
        if stdout.write_all(line).and_then(|()| stdout.flush()).is_err() {
            let _ = self.over.send(true);
        }
    }

    fn wait_until_wanted(&self) {
        let mut link = self.lock_link();
        while !matches!(*link, Link::Wanted) {
            link = self.changed.wait(link).unwrap_or_else(PoisonError::into_inner);
        }
        *link = Link::Connecting;
    }

    fn wait_for_last_answers(&self) {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.answered.wait_timeout_while(session, LAST_ANSWERS, |session| session.busy()));
    }

    fn lock_link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_link(&self, to: Link) {
        *self.lock_link() = to;
        self.changed.notify_all();
    }

    /// Changes the session and tells whoever waits for it to be quiet.
    fn with_session<T>(&self, change: impl FnOnce(&mut Session) -> T) -> T {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut session);
        let busy = session.busy();
        if let Some(idle) = &self.idle {
            idle.note(busy);
        }
        if !busy {
            self.answered.notify_all();
        }
        result
    }
}

fn write_line(mut stream: &std::os::unix::net::UnixStream, line: &[u8]) -> io::Result<()> {
    stream.write_all(line)
}

/// Tells whoever reads the client's log.
fn note(text: &dyn std::fmt::Display) {
    drop(writeln!(io::stderr(), "deskmate: {text}"));
}
