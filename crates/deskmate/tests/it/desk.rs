//! A data directory with its server, and a client of the stdio shim. What a test starts ends with it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take on a busy machine.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// Tells the logs of clients apart.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// A desk of its own. Its server is stopped at the end, whoever started it.
pub(crate) struct Desk {
    home: TempDir,
    /// What starts the binary.
    program: Vec<String>,
}

/// The account that has nothing, on every Linux.
const NOBODY: u32 = 65534;

/// Whether the tests run as root, who may do what a desk's own account may not.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Makes a path an ordinary account's own, where the tests run as root.
pub(crate) fn give(path: &Path) {
    if is_root() {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("given away");
    }
}

impl Desk {
    pub(crate) fn new() -> Self {
        let home = tempfile::Builder::new().prefix("desk").tempdir().expect("a directory");
        Self { home, program: vec![env!("CARGO_BIN_EXE_deskmate").to_owned()] }
    }

    /// A desk whose data directory lies in this folder.
    pub(crate) fn within(folder: &Path) -> Self {
        let home = tempfile::Builder::new().prefix("desk").tempdir_in(folder).expect("a directory");
        Self { home, program: vec![env!("CARGO_BIN_EXE_deskmate").to_owned()] }
    }

    /// A desk that runs under an ordinary account, with a secret in its environment.
    pub(crate) fn ordinary() -> Self {
        let mut desk = Self::new();
        give(desk.path());
        if is_root() {
            let id = NOBODY.to_string();
            let account = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups", "--"].map(str::to_owned);
            let reaches = |path: &str| Command::new(&account[0]).args(&account[1..]).args(["test", "-x", path]).status().is_ok_and(|done| done.success());
            // The build may lie where that account cannot look.
            if let Some(binary) = desk.program.first_mut().filter(|binary| !reaches(binary)) {
                let copy = desk.home.path().join("deskmate");
                assert!(Command::new("cp").arg(&binary).arg(&copy).status().is_ok_and(|done| done.success()));
                *binary = copy.to_str().expect("a path").to_owned();
            }
            desk.program.splice(0..0, account);
        }
        desk.program.splice(0..0, ["env", "A_SECRET=of-the-desk"].map(str::to_owned));
        desk
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    /// The binary with this desk's settings and none of the machine's.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut words = self.program.iter();
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).args(args).env("DESKMATE_HOME", self.path()).env("DESKMATE_LISTEN", "127.0.0.1:0").env("HOME", self.path());
        for name in ["DESKMATE_TOKEN", "COS_MCP_IDLE_EXIT_MS", "DESKMATE_DATABASE_URL", "DESKMATE_LOG"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> std::process::Output {
        self.command(args).output().expect("the binary runs")
    }

    /// Starts a server and waits until it listens.
    pub(crate) fn up(&self) -> String {
        let child = self.command(&["up", "--background"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the server starts");
        reap(child);
        self.url()
    }

    /// What the lock file says about the server.
    pub(crate) fn holder(&self) -> Option<Value> {
        serde_json::from_str(&std::fs::read_to_string(self.path().join("desk.lock")).ok()?).ok()
    }

    /// Where the server listens, once it does. What a killed one wrote still stands in the file, and its socket may answer
    /// for as long as the last of its threads takes to end: only a server that lives counts.
    pub(crate) fn url(&self) -> String {
        let socket = self.path().join("desk.sock");
        let living = |holder: &Value| holder.get("pid").and_then(Value::as_u64).is_some_and(|pid| !is_gone(pid));
        let url = until("the server listens", || self.holder().filter(living)?.get("url")?.as_str().map(str::to_owned).filter(|_| socket.exists()));
        until("the socket answers", || std::os::unix::net::UnixStream::connect(&socket).ok());
        url
    }

    /// Ends the server without a chance to say good-bye.
    pub(crate) fn kill_server(&self) {
        let pid = self.holder().and_then(|holder| holder.get("pid")?.as_u64()).expect("a server runs");
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill runs");
        assert!(killed.success());
        until("the server is gone", || is_gone(pid).then_some(()));
    }

    /// Starts a server and claims the desk with the passphrase `correct horse`.
    pub(crate) fn claim(&self) {
        let mut server = self.command(&["up"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the server starts");
        let lines = BufReader::new(server.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let link = lines.into_iter().find_map(|line| line.split_once("/claim?code=").map(|(_, code)| code.trim().to_owned())).expect("a link");
        reap(server);
        let claim = json!({ "code": link, "name": "Ada", "passphrase": "correct horse" });
        let answer = super::http::post(&self.url(), "/api/desk_claim", &[], &claim.to_string());
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// Claims the desk, registers an agent and answers its token: from then on the desk is closed.
    pub(crate) fn register(&self, agent: &str) -> String {
        self.claim();
        let mut add =
            self.command(&["agent", "add", agent, "--json", "--passphrase-stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("runs");
        add.stdin.take().expect("piped").write_all(b"correct horse\n").expect("written");
        let output = add.wait_with_output().expect("ends");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        answer.get("token").and_then(Value::as_str).expect("a token").to_owned()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        drop(self.command(&["stop"]).stdout(Stdio::null()).stderr(Stdio::null()).status());
    }
}

/// Takes note of a child's end, so that it does not stay in the process table.
fn reap(mut child: Child) {
    std::thread::spawn(move || drop(child.wait()));
}

/// Whether a process has ended, though nobody may have taken note of it yet.
fn is_gone(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

/// Asks again until there is an answer.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An MCP client over the shim's stdin and stdout, one JSON line at a time.
pub(crate) struct Client {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    pub(crate) stderr: PathBuf,
    next_id: u64,
    /// What came while something else was awaited.
    pub(crate) aside: Vec<Value>,
}

impl Client {
    pub(crate) fn start(desk: &Desk, args: &[&str]) -> Self {
        Self::of(desk, desk.command(&[&["mcp"], args].concat()))
    }

    pub(crate) fn of(desk: &Desk, mut command: Command) -> Self {
        let stderr = desk.path().join(format!("stderr-{}", STARTED.fetch_add(1, Ordering::Relaxed)));
        let log = std::fs::File::create(&stderr).expect("a file");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().expect("the shim starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let stdin = child.stdin.take();
        Self { child, stdin, lines, stderr, next_id: 0, aside: Vec::new() }
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).and_then(|()| stdin.flush()).expect("the shim reads");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends a request and answers its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params }));
        self.next_id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The next line, or nothing within a time. Whatever is on stdout must be JSON-RPC.
    pub(crate) fn receive(&mut self, within: Duration) -> Option<Value> {
        match self.lines.recv_timeout(within) {
            Ok(line) => {
                let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("stdout carries {line:?}: {error}"));
                assert_eq!(message.get("jsonrpc"), Some(&json!("2.0")), "{line}");
                Some(message)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// The next message that fits; others are put aside.
    pub(crate) fn expect(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.aside.iter().position(&fits) {
            return self.aside.remove(at);
        }
        let deadline = Instant::now() + LONG;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(message) = self.receive(left) else { panic!("{what} did not come; aside: {:?}; stderr: {}", self.aside, self.log()) };
            if fits(&message) {
                return message;
            }
            self.aside.push(message);
        }
    }

    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.expect(&format!("the answer to {id}"), |message| message.get("id") == Some(&json!(id)) && message.get("method").is_none())
    }

    pub(crate) fn notification(&mut self, method: &str) -> Value {
        self.expect(method, |message| message.get("method") == Some(&json!(method)))
    }

    /// A request and its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer(id);
        answer.get("result").cloned().unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    /// A request and its error.
    pub(crate) fn fail(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer(id);
        answer.get("error").cloned().unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    /// The handshake of the older era.
    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let client = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let answer = self.call("initialize", client);
        self.notify("notifications/initialized", json!({}));
        answer
    }

    /// A tool call of the older era.
    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.call("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// How the shim ended, if it did within a time.
    pub(crate) fn ended(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `params` of the newer era: what every request carries, and the rest.
pub(crate) fn modern(mut params: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let fields = params.as_object_mut().expect("an object");
    match fields.get_mut("_meta").and_then(Value::as_object_mut) {
        Some(given) => given.extend(meta.as_object().expect("an object").clone()),
        None => drop(fields.insert("_meta".to_owned(), meta)),
    }
    params
}
