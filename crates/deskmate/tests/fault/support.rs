//! A desk as a process, a plain HTTP client, and chance with a seed.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_deskmate");
const START_MAX: Duration = Duration::from_secs(30);

/// A running server. It is killed with this value.
pub(crate) struct Desk {
    pub(crate) child: Child,
    pub(crate) address: String,
    stderr: PathBuf,
    /// Where a server in the background logs to.
    log: PathBuf,
}

/// What ended a server that was to start.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

/// `deskmate up` on a data directory and a free port. Nothing of the caller's own environment reaches it.
pub(crate) fn up(home: &Path) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["up", "--background", "--log", "warn", "--listen", "127.0.0.1:0", "--home"]).arg(home);
    command.env("HOME", home);
    clean(&mut command);
    command
}

fn clean(command: &mut Command) {
    for name in ["DESKMATE_HOME", "DESKMATE_LISTEN", "DESKMATE_DATABASE_URL", "DESKMATE_TOKEN", "DESKMATE_LOG", "DESKMATE_NODE", "DESKMATE_NODE_LABELS"] {
        command.env_remove(name);
    }
}

/// Another command of the binary on a data directory.
pub(crate) fn deskmate(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(args).arg("--home").arg(home).env("HOME", home).stdin(Stdio::null());
    clean(&mut command);
    command.output().expect("the binary runs")
}

/// Derives the whole record again; the events if it is sound.
pub(crate) fn verify(home: &Path) -> u64 {
    let done = deskmate(home, &["audit", "verify", "--json"]);
    sound(&done)
}

/// The same for a desk on a database.
pub(crate) fn verify_on(home: &Path, url: &str) -> u64 {
    let mut command = Command::new(BINARY);
    command.args(["audit", "verify", "--json", "--home"]).arg(home).env("HOME", home).env("DESKMATE_DATABASE_URL", url);
    sound(&command.output().expect("the binary runs"))
}

/// The events of a report that must be sound.
pub(crate) fn sound(done: &Output) -> u64 {
    let report: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
    assert!(report["sound"] == true, "{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    report["events"].as_u64().expect("a number of events")
}

impl Desk {
    pub(crate) fn start(home: &Path) -> Self {
        Self::launch(up(home), home, home).unwrap_or_else(|ended| panic!("the server ended with {:?}: {}", ended.code, ended.stderr))
    }

    /// Starts a command and waits until it listens. `seen` is where this process sees its data directory.
    pub(crate) fn launch(mut command: Command, home: &Path, seen: &Path) -> Result<Self, Ended> {
        let stderr = home.parent().unwrap_or(home).join(format!("stderr-{}", unique()));
        let log = std::fs::File::create(&stderr).expect("a file for the log");
        let out = std::fs::File::create(stderr.with_extension("out")).expect("a file for the output");
        let mut child = command.stdin(Stdio::null()).stdout(out).stderr(log).spawn().expect("the server starts");
        let started = Instant::now();
        loop {
            // In a mount name space of its own, the directory is seen through the process.
            let through = PathBuf::from(format!("/proc/{}/root{}", child.id(), seen.display()));
            if let Some(address) = listening(if seen == home { home } else { &through }, child.id()) {
                return Ok(Self { child, address, stderr, log: seen.join("server.log") });
            }
            if let Some(status) = child.try_wait().expect("the process can be asked") {
                let stderr = std::fs::read_to_string(&stderr).unwrap_or_default();
                return Err(Ended { code: status.code(), stderr });
            }
            if started.elapsed() > START_MAX {
                drop(child.kill());
                panic!("the server does not come up: {}", std::fs::read_to_string(&stderr).unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A desk that its owner has claimed, and the owner's session.
    pub(crate) fn owned(home: &Path) -> (Self, String) {
        Self::owned_on(home, None)
    }

    /// The same on a database.
    pub(crate) fn owned_on(home: &Path, database: Option<&str>) -> (Self, String) {
        let plain = up(home);
        let mut command = Command::new(BINARY);
        command.args(plain.get_args().filter(|argument| *argument != "--background")).env("HOME", home);
        clean(&mut command);
        command.envs(database.map(|url| ("DESKMATE_DATABASE_URL", url)));
        let desk = Self::launch(command, home, home).unwrap_or_else(|ended| panic!("{}", ended.stderr));
        let claim = json!({ "code": desk.claim_code(), "name": "Ada", "passphrase": "correct horse" });
        let answer = desk.http().post("/api/desk_claim", &[], claim.to_string().as_bytes()).expect("the server answers").good();
        let session = answer["session"].as_str().expect("a session").to_owned();
        (desk, session)
    }

    /// The code of the link that the server printed.
    pub(crate) fn claim_code(&self) -> String {
        let printed = self.stderr.with_extension("out");
        let link = || std::fs::read_to_string(&printed).ok()?.split_once("/claim?code=")?.1.split_whitespace().next().map(str::to_owned);
        eventually("the link is printed", Duration::from_secs(10), || link().is_some());
        link().expect("a link")
    }

    /// Calls with a token or a session.
    pub(crate) fn with(&self, secret: &str, operation: &str, input: &Value) -> Answer {
        let bearer = format!("Bearer {secret}");
        self.http().post(&format!("/api/{operation}"), &[("authorization", &bearer)], input.to_string().as_bytes()).expect("the server answers")
    }

    pub(crate) fn http(&self) -> Http {
        Http::open(&self.address).expect("the server answers")
    }

    /// The code with which a call is answered, and its body.
    pub(crate) fn call(&self, agent: &str, operation: &str, input: Value) -> Answer {
        self.http().call(agent, operation, &input).expect("the server answers")
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal could not be sent");
    }

    /// Asks it to stop and waits for that.
    pub(crate) fn stop(&mut self) {
        self.signal("TERM");
        self.ended();
    }

    /// Waits for the end.
    pub(crate) fn ended(&mut self) {
        drop(self.child.wait());
    }

    /// What it wrote to its log.
    pub(crate) fn log(&self) -> String {
        [&self.stderr, &self.log].map(|file| std::fs::read_to_string(file).unwrap_or_default()).concat()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn listening(home: &Path, pid: u32) -> Option<String> {
    let holder: Value = serde_json::from_str(&std::fs::read_to_string(home.join("desk.lock")).ok()?).ok()?;
    if holder["pid"] != pid {
        return None;
    }
    Some(holder["url"].as_str()?.trim_start_matches("http://").to_owned())
}

fn unique() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The answer of a call that must have worked.
    pub(crate) fn good(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// The code of a refusal.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// One kept-open connection.
pub(crate) struct Http {
    stream: TcpStream,
    host: String,
}

impl Http {
    pub(crate) fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(40)))?;
        Ok(Self { stream, host: address.to_owned() })
    }

    /// A connection that is open already.
    pub(crate) fn over(stream: TcpStream) -> Self {
        Self { stream, host: "localhost".to_owned() }
    }

    pub(crate) fn call(&mut self, agent: &str, operation: &str, input: &Value) -> io::Result<Answer> {
        self.post(&format!("/api/{operation}"), &[("X-Deskmate-Agent", agent)], input.to_string().as_bytes())
    }

    pub(crate) fn send(&mut self, from: &str, to: &str, content: &str) -> io::Result<Answer> {
        self.call(from, "bridge_send_message", &json!({ "to": to, "content": content }))
    }

    pub(crate) fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Answer> {
        let mut all = BTreeMap::from([("content-type", "application/json")]);
        all.extend(headers.iter().copied());
        self.request("POST", path, &all.into_iter().collect::<Vec<_>>(), body)
    }

    pub(crate) fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
        self.request("GET", path, headers, &[])
    }

    fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Answer> {
        let mut head = format!("{method} {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.extend(["host: ", &self.host, "\r\n"]);
        }
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        self.raw(&[head.as_bytes(), body].concat())
    }

    /// Sends bytes as they are and reads one answer.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<Answer> {
        self.stream.write_all(bytes)?;
        self.read()
    }

    /// Sends without waiting for the answer.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads one answer.
    pub(crate) fn read(&mut self) -> io::Result<Answer> {
        let mut seen = Vec::new();
        let start = loop {
            if let Some(at) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.more(&mut seen)?;
        };
        let head = String::from_utf8_lossy(&seen[..start]).to_ascii_lowercase();
        let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok()).unwrap_or(0);
        while seen.len() < start + length {
            self.more(&mut seen)?;
        }
        Ok(Answer { status, body: seen[start..start + length].to_vec() })
    }

    fn more(&mut self, seen: &mut Vec<u8>) -> io::Result<()> {
        let mut chunk = [0_u8; 16 * 1024];
        match self.stream.read(&mut chunk)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                seen.extend_from_slice(&chunk[..count]);
                Ok(())
            }
        }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }
}

/// Everything that waits for a reader, page by page: message id and content.
pub(crate) fn waiting(http: &mut Http, reader: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut input = json!({ "limit": 200 });
        if cursor.is_string() {
            input["cursor"] = cursor;
        }
        let page = http.call(reader, "bridge_read_messages", &input).expect("the server answers").good();
        let text = |message: &Value, field: &str| message[field].as_str().expect("a text").to_owned();
        found.extend(page["messages"].as_array().expect("a list").iter().map(|message| (text(message, "message_id"), text(message, "content"))));
        cursor = page["next_cursor"].clone();
        if !cursor.is_string() {
            return found;
        }
    }
}

/// Chance that can be repeated.
pub(crate) struct Chance(u64);

impl Chance {
    /// From the environment, or new; it is printed so that a failure can be repeated.
    pub(crate) fn new(test: &str) -> Self {
        let given = std::env::var("DESKMATE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            u64::from(since.subsec_nanos()) ^ u64::from(std::process::id()) << 32
        });
        println!("{test}: DESKMATE_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Waits until something holds.
pub(crate) fn eventually(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < within, "{what}: not within {within:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
