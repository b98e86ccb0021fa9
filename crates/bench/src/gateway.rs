//! What the gateway costs: the same server called directly, through another gateway, and through the desk, in turns in one run,
//! so that all meet the same machine; then many clients at once, and the desk's memory over many calls.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::fill;
use crate::floor::micros;
use crate::http::Connection;
use crate::inbox::{call, claim};
use crate::load::{Figures, ms, times};
use crate::server::{Server, binary};

/// Calls before anything is counted.
const WARM: u32 = 200;
/// Whatever is called, it is let pass; nothing asks a person.
const RULES: &str = "rules:\n  - { name: pass, match: { kind: note.read }, effect: allow, waive_trust: true, message: measured }\n";

/// How much to do.
#[derive(clap::Args, Clone)]
pub struct Args {
    /// Calls of one client, on each way
    #[arg(long, default_value_t = 2_000)]
    pub rounds: u32,
    /// Clients at once
    #[arg(long, default_value_t = 32)]
    pub clients: usize,
    /// For how long they call
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Over how many agents they are spread; each has a child of its own
    #[arg(long, default_value_t = 1)]
    pub agents: usize,
    /// Calls over which the memory is watched
    #[arg(long, default_value_t = 200_000)]
    pub calls: u64,
    /// supergateway's program, to measure it beside the desk: `scripts/side-by-side` installs and names it
    #[arg(long)]
    pub supergateway: Option<String>,
}

/// What was found.
pub struct Found {
    /// A 4 kB append and its fdatasync, p50 in milliseconds.
    pub disk: f64,
    /// One client's calls by each way: p50 and p99 in milliseconds.
    pub ways: Vec<(&'static str, (f64, f64))>,
    /// Many clients by each way that takes them.
    pub many: Vec<(&'static str, Figures)>,
    /// The desk's resident memory in kilobytes: before, after a quarter of the calls, and after all.
    pub memory: (u64, u64, u64),
}

/// The server that is called, as a child over its stdin and stdout: it does as little as a server can.
pub fn serve() {
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else { continue };
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "echo", "version": "1" } }),
            "tools/list" => json!({ "tools": [{ "name": "echo", "description": "Says it again.", "inputSchema": schema }] }),
            "tools/call" => json!({ "content": [{ "type": "text", "text": message["params"]["arguments"]["text"] }] }),
            "ping" => json!({}),
            _ => {
                let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" } });
                writeln!(output, "{error}").and_then(|()| output.flush()).expect("the caller reads");
                continue;
            }
        };
        writeln!(output, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result })).and_then(|()| output.flush()).expect("the caller reads");
    }
}

fn request(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{}"}}}}}}"#, "x".repeat(200))
}

fn initialize() -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server over its stdin and stdout.
struct Piped {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Piped {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), BufReader::new(child.stdout.take().expect("piped")));
        let mut piped = Self { child, stdin, stdout };
        piped.ask(&initialize());
        piped.say(INITIALIZED);
        piped
    }

    fn say(&mut self, message: &str) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).expect("the server reads");
    }

    /// Answers with the line that holds a result; what is told beside it is passed over.
    fn ask(&mut self, message: &str) -> String {
        self.say(message);
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).expect("the server answers") > 0, "the server ended");
            if line.contains("\"id\":") {
                return line;
            }
        }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// An MCP session over one kept-open connection.
struct Session {
    connection: Connection,
    path: &'static str,
    headers: String,
}

impl Session {
    async fn open(url: &str, path: &'static str, token: Option<&str>) -> Self {
        let connection = Connection::open(url).await.expect("the server answers");
        let mut headers = "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n".to_owned();
        if let Some(token) = token {
            headers.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        let mut session = Self { connection, path, headers };
        session.ask(&initialize()).await;
        if let Some(id) = session.connection.header("mcp-session-id") {
            session.headers.push_str(&format!("Mcp-Session-Id: {id}\r\n"));
        }
        let (status, _) = session.connection.post(path, &session.headers, INITIALIZED).await.expect("the server answers");
        assert_eq!(status, 202, "{}", session.connection.text());
        session
    }

    async fn ask(&mut self, message: &str) {
        let (status, _) = self.connection.post(self.path, &self.headers, message).await.expect("the server answers");
        let said = self.connection.text();
        assert!(status == 200 && said.contains("\"result\"") && !said.contains("\"isError\":true"), "{status}: {said}");
    }
}

/// A desk with the server behind it, and a token for each agent.
async fn set_up(home: &Path, agents: usize) -> Vec<String> {
    let desk = fill::open(home);
    let owner = claim(&desk).await;
    let this = std::env::current_exe().expect("this program has a path");
    let mount = json!({ "name": "echo", "command": this, "args": ["echo"], "verbs": { "echo": "note.read" } });
    call(&desk, owner.clone(), "desk_policy_apply", json!({ "document": RULES })).await;
    call(&desk, owner.clone(), "desk_mount_add", json!({ "mount": mount })).await;
    let mut tokens = Vec::new();
    for agent in 0..agents {
        let made = call(&desk, owner.clone(), "desk_agent_add", json!({ "agent": format!("bench-{agent}") })).await;
        tokens.push(made["token"].as_str().expect("a token").to_owned());
    }
    desk.db.close();
    tokens
}

/// Another gateway before the same server, until it is dropped.
struct Other {
    child: Child,
    url: String,
}

impl Other {
    fn start(program: &str) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|found| found.local_addr()).expect("a port").port();
        let this = std::env::current_exe().expect("this program has a path");
        let mut words = program.split_whitespace();
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).args(["--stdio", &format!("{} echo", this.display()), "--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none"]);
        command.args(["--port", &port.to_string()]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("supergateway starts");
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(30), "supergateway does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, url: format!("http://127.0.0.1:{port}") }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(Command::new("kill").arg(self.child.id().to_string()).status());
        drop(self.child.wait());
    }
}

/// Measures it all.
pub fn run(program: Option<&Path>, args: &Args) -> Found {
    let home = tempfile::tempdir().expect("a temporary directory");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tokens = runtime.block_on(set_up(home.path(), args.agents));
    let program = binary(program);
    let server = Server::start(&program, home.path(), None);
    let before = server.rss_kb();
    let other = args.supergateway.as_deref().map(Other::start);
    let mut shim = Command::new(&program);
    shim.args(["mcp", "--toolset", "echo", "--home"]).arg(home.path()).env("DESKMATE_TOKEN", &tokens[0]);
    let (disk, ways) = runtime.block_on(one(&server, other.as_ref(), shim, &tokens[0], args.rounds));
    let mut many = vec![("directly", apart(args))];
    if let Some(other) = &other {
        many.push(("supergateway", runtime.block_on(crowd(&other.url, "/mcp", &[], args))));
    }
    drop(other);
    many.push(("desk", runtime.block_on(crowd(&server.url, "/mcp/echo", &tokens, args))));
    let quarter = runtime.block_on(calls(&server, &tokens, args.clients, args.calls / 4));
    let all = runtime.block_on(calls(&server, &tokens, args.clients, args.calls - args.calls / 4));
    Found { disk, ways, many, memory: (before, quarter, all) }
}

/// One client, each way in its turn.
async fn one(server: &Server, other: Option<&Other>, shim: Command, token: &str, rounds: u32) -> (f64, Vec<(&'static str, (f64, f64))>) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut file = OpenOptions::new().create(true).append(true).open(folder.path().join("floor")).expect("a file");
    let mut child = Command::new(std::env::current_exe().expect("this program has a path"));
    child.arg("echo");
    let (mut direct, mut shim) = (Piped::start(child), Piped::start(shim));
    let mut desk = Session::open(&server.url, "/mcp/echo", Some(token)).await;
    let mut beside = match other {
        None => None,
        Some(other) => Some(Session::open(&other.url, "/mcp", None).await),
    };
    let mut found: [Histogram<u64>; 5] = std::array::from_fn(|_| times());
    for round in 0..rounds + WARM {
        let asked = request(u64::from(round) + 1);
        let mut took = [None; 5];
        let mut clock = Instant::now();
        let mut lap = |took: &mut Option<Duration>| {
            let now = Instant::now();
            *took = Some(now - clock);
            clock = now;
        };
        file.write_all(&[7; 4096]).and_then(|()| file.sync_data()).expect("the disk takes it");
        lap(&mut took[0]);
        direct.ask(&asked);
        lap(&mut took[1]);
        if let Some(beside) = &mut beside {
            beside.ask(&asked).await;
            lap(&mut took[2]);
        }
        desk.ask(&asked).await;
        lap(&mut took[3]);
        let said = shim.ask(&asked);
        assert!(said.contains("\"result\"") && !said.contains("\"isError\":true"), "{said}");
        lap(&mut took[4]);
        if round >= WARM {
            for (found, took) in found.iter_mut().zip(took) {
                took.into_iter().for_each(|took| found.saturating_record(micros(took)));
            }
        }
    }
    let names = ["directly", "through supergateway", "through the desk, over HTTP", "through the desk, over stdio"];
    let quantiles = |found: &Histogram<u64>| (ms(found.value_at_quantile(0.5)), ms(found.value_at_quantile(0.99)));
    let ways = names.into_iter().zip(&found[1..]).filter(|(_, found)| !found.is_empty()).map(|(name, found)| (name, quantiles(found))).collect();
    (quantiles(&found[0]).0, ways)
}

/// As many clients for as long directly: each has the server for itself, as it has without anything in between.
fn apart(args: &Args) -> Figures {
    let warm = Instant::now() + Duration::from_secs(1);
    let until = warm + Duration::from_secs(args.seconds);
    let client = move || {
        let mut child = Command::new(std::env::current_exe().expect("this program has a path"));
        child.arg("echo");
        let mut server = Piped::start(child);
        let (mut own, mut id) = (times(), 0);
        while Instant::now() < until {
            id += 1;
            let (asked, started) = (request(id), Instant::now());
            server.ask(&asked);
            if started >= warm {
                own.saturating_record(micros(started.elapsed()));
            }
        }
        own
    };
    let clients: Vec<_> = (0..args.clients).map(|_| std::thread::spawn(client)).collect();
    let mut all = times();
    for client in clients {
        all.add(client.join().expect("no client panicked")).expect("the bounds are the same");
    }
    figures(all, args)
}

fn figures(times: Histogram<u64>, args: &Args) -> Figures {
    #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
    let rate = times.len() as f64 / args.seconds as f64;
    Figures { rate, times, failed: 0 }
}

/// Many clients for a time.
async fn crowd(url: &str, path: &'static str, tokens: &[String], args: &Args) -> Figures {
    let mut clients = Vec::new();
    let warm = Instant::now() + Duration::from_secs(1);
    let until = warm + Duration::from_secs(args.seconds);
    for number in 0..args.clients {
        let (url, token) = (url.to_owned(), tokens.get(number % tokens.len().max(1)).cloned());
        clients.push(tokio::spawn(async move {
            let mut session = Session::open(&url, path, token.as_deref()).await;
            let (mut own, mut id) = (times(), 0);
            while Instant::now() < until {
                id += 1;
                let (asked, started) = (request(id), Instant::now());
                session.ask(&asked).await;
                if started >= warm {
                    own.saturating_record(micros(started.elapsed()));
                }
            }
            own
        }));
    }
    let mut all = times();
    for client in clients {
        all.add(client.await.expect("no client panicked")).expect("the bounds are the same");
    }
    figures(all, args)
}

/// So many calls in all, and the memory of the desk afterwards.
async fn calls(server: &Server, tokens: &[String], clients: usize, calls: u64) -> u64 {
    let left = Arc::new(AtomicU64::new(calls));
    let mut tasks = Vec::new();
    for number in 0..clients {
        let (url, token, left) = (server.url.clone(), tokens[number % tokens.len()].clone(), Arc::clone(&left));
        tasks.push(tokio::spawn(async move {
            let mut session = Session::open(&url, "/mcp/echo", Some(&token)).await;
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                session.ask(&request(1)).await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("no client panicked");
    }
    server.rss_kb()
}
