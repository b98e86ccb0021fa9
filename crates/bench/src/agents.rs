//! Agents that the desk runs, measured as AgentOS was: over standard streams, with the toolset `agents` alone, one client, one call at a
//! time. What durability costs is taken out in two ways: against an append with fdatasync in turns, and by a data directory in memory.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use deskmate_core::call::{Call, Credential, Desk, Surface};
use deskmate_core::parse_time;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::fill;
use crate::floor::micros;
use crate::http::Connection;
use crate::inbox::{call, claim};
use crate::large::quantiles;
use crate::load::{ms, times};
use crate::server::{Server, binary, rss_kb};

/// How much to do.
#[derive(clap::Args, Clone)]
pub struct Args {
    /// Starts of the client's program
    #[arg(long, default_value_t = 30)]
    pub starts: u32,
    /// Calls of each kind
    #[arg(long, default_value_t = 1_000)]
    pub rounds: u32,
    /// Events of the record on which `audit_log` is called; 0 leaves it out
    #[arg(long, default_value_t = 1_000_000)]
    pub events: u64,
    /// Agents with a schedule that is not due; 0 leaves it out
    #[arg(long, default_value_t = 10_000)]
    pub scheduled: u64,
    /// For how long they are watched
    #[arg(long, default_value_t = 60)]
    pub idle_seconds: u64,
    /// Agents that are due in the same second; 0 leaves it out
    #[arg(long, default_value_t = 200)]
    pub due: u64,
    /// A folder in memory, where fsync costs nothing
    #[arg(long, default_value = "/dev/shm")]
    pub memory: PathBuf,
}

/// Prints each figure as it is found.
pub fn run(program: Option<&Path>, args: &Args) {
    let program = binary(program);
    cold(&program, args.starts);
    starts(&program, args.starts);
    durable(&program, args.rounds);
    mixed(&program, args.rounds, &args.memory);
    if args.events > 0 {
        audit(&program, args.events, args.rounds.min(500));
    }
    if args.scheduled > 0 {
        idle(&program, args.scheduled, args.idle_seconds);
    }
    if args.due > 0 {
        due(&program, args.due);
    }
}

/// A client of the shim, as an MCP client starts it.
struct Shim {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Shim {
    fn start(program: &Path, home: &Path) -> Self {
        Self::of("bench", program, home)
    }

    fn of(agent: &str, program: &Path, home: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(["mcp", "--toolset", "agents", "--agent", agent, "--home"]).arg(home).env("HOME", home).env("DESKMATE_LISTEN", "127.0.0.1:0");
        for name in ["DESKMATE_TOKEN", "DESKMATE_DATABASE_URL"] {
            command.env_remove(name);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the shim starts");
        let (input, output) = (child.stdin.take().expect("a pipe"), BufReader::new(child.stdout.take().expect("a pipe")));
        Self { child, input, output, next: 0 }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        writeln!(self.input, "{line}").expect("the shim reads");
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("the shim answers") > 0, "the shim ended");
            let message: Value = serde_json::from_str(&line).expect("standard output carries JSON alone");
            if message["id"] == self.next {
                return message;
            }
        }
    }

    fn initialize(&mut self) {
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } });
        let answer = self.ask("initialize", &hello);
        assert!(answer["result"]["serverInfo"].is_object(), "{answer}");
        writeln!(self.input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).expect("the shim reads");
    }

    fn tool(&mut self, name: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": name, "arguments": arguments }));
        assert_eq!(answer["result"]["isError"], false, "{name}: {answer}");
        answer["result"]["structuredContent"].clone()
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn print(what: &str, found: &Histogram<u64>) {
    let (p50, p99) = quantiles(found);
    println!("{what}: p50 {p50:.2} ms, p99 {p99:.2} ms");
}

/// From starting the program to its first answer where there is no desk yet: the shim starts the server, which makes its store.
fn cold(program: &Path, rounds: u32) {
    let mut found = times();
    for _ in 0..rounds {
        let home = tempfile::tempdir().expect("a temporary directory");
        let started = Instant::now();
        let mut client = Shim::start(program, home.path());
        client.initialize();
        found.saturating_record(micros(started.elapsed()));
        drop(client);
        let stopped = Command::new(program).args(["stop", "--home"]).arg(home.path()).env("HOME", home.path()).stdout(Stdio::null()).status();
        assert!(stopped.is_ok_and(|stopped| stopped.success()), "the server that the shim started is stopped");
    }
    print("cold spawn (the shim starts the server) to first answer", &found);
}

/// From starting the program to its first answer, with a server that runs, and the memory of both.
fn starts(program: &Path, rounds: u32) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(program, home.path(), None);
    let (mut found, mut shim) = (times(), 0);
    for _ in 0..rounds {
        let started = Instant::now();
        let mut client = Shim::start(program, home.path());
        client.initialize();
        found.saturating_record(micros(started.elapsed()));
        shim = shim.max(rss_kb(client.child.id()));
    }
    print("spawn to first answer over stdio", &found);
    println!("resident memory after it: shim {shim} kB, server {} kB", server.rss_kb());
}

/// A desk with an owner, so that somebody can be asked.
pub(crate) fn claimed(home: &Path) -> (Desk, Credential, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let desk = fill::open(home);
    let owner = runtime.block_on(claim(&desk));
    (desk, owner, runtime)
}

pub(crate) fn description(number: u32) -> Value {
    json!({ "description": format!("Read notes-{number}.csv every day, count the rows and log the number"), "name": format!("counter-{number}") })
}

/// What one agent asks for within an hour is bounded, so another one asks after so many.
const ASKED_EACH: u32 = 40;

pub(crate) fn approval(number: u32) -> Value {
    let agent = format!("counter-{}", number / ASKED_EACH);
    json!({ "agentId": agent, "action": "send_letter", "description": format!("letter {number} to the printer"), "approvers": ["Owner"] })
}

fn ask(client: &mut Shim, number: u32) {
    let asked = client.tool("request_approval", &approval(number));
    assert!(asked["approvalId"].is_string(), "nothing waits for people: {asked}");
}

/// `create_agent` and `request_approval` against an append of 4 kB with fdatasync, in turns.
fn durable(program: &Path, rounds: u32) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (desk, ..) = claimed(home.path());
    desk.db.close();
    let server = Server::start(program, home.path(), None);
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(home.path().join("floor")).expect("a file");
    let mut client = Shim::start(program, home.path());
    client.initialize();
    let (mut disk, mut creates, mut asks) = (times(), times(), times());
    let warm = 20;
    for round in 0..rounds + warm {
        let started = Instant::now();
        file.write_all(&[7; 4096]).and_then(|()| file.sync_data()).expect("the disk takes it");
        let synced = Instant::now();
        client.tool("create_agent", &description(round));
        let made = Instant::now();
        ask(&mut client, round);
        let asked = Instant::now();
        if round >= warm {
            disk.saturating_record(micros(synced - started));
            creates.saturating_record(micros(made - synced));
            asks.saturating_record(micros(asked - made));
        }
    }
    print("append 4 kB and fdatasync", &disk);
    let floor = ms(disk.value_at_quantile(0.5));
    for (what, found) in [("create_agent", &creates), ("request_approval", &asks)] {
        print(what, found);
        println!("{what} beyond one append, p50: {:.3} ms", ms(found.value_at_quantile(0.5)) - floor);
    }
    println!("resident memory after {} calls: shim {} kB, server {} kB", 2 * rounds, rss_kb(client.child.id()), server.rss_kb());
}

/// Create, ask, look, test and check in turn: on the disk, and where fsync costs nothing.
fn mixed(program: &Path, calls: u32, memory: &Path) {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let found = mixed_in(program, disk.path(), calls);
    println!("mixed sequential calls, on the disk: {:.0}/s", found.per_second);
    println!("resident memory after {} mixed calls: shim {} kB, server {} kB", found.calls, found.shim_kb, found.server_kb);
    if !is_in_memory(memory) {
        println!("mixed sequential calls without fsync: not measured, {} is not a tmpfs; name one with --memory", memory.display());
        return;
    }
    let memory = tempfile::tempdir_in(memory).expect("a temporary directory");
    println!("mixed sequential calls, in memory, where fsync costs nothing: {:.0}/s", mixed_in(program, memory.path(), calls).per_second);
}

/// Whether a folder is the root of a tmpfs.
fn is_in_memory(folder: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1).zip(line.split(' ').nth(2)))
        .any(|(at, kind)| kind == "tmpfs" && folder.starts_with(at) && at != "/")
}

/// What mixed calls came to.
struct Mixed {
    per_second: f64,
    /// All that were made, those before the measuring as well.
    calls: u32,
    shim_kb: u64,
    server_kb: u64,
}

fn mixed_in(program: &Path, home: &Path, calls: u32) -> Mixed {
    let (desk, ..) = claimed(home);
    desk.db.close();
    let server = Server::start(program, home, None);
    let mut client = Shim::start(program, home);
    client.initialize();
    let mut begun = Instant::now();
    let (turns, warm) = (calls.div_ceil(5), 4);
    for turn in 0..turns + warm {
        if turn == warm {
            begun = Instant::now();
        }
        client.tool("create_agent", &description(turn));
        ask(&mut client, turn);
        let agent = format!("counter-{turn}");
        client.tool("audit_log", &json!({ "agentId": agent }));
        client.tool("test_agent", &json!({ "agentId": agent, "scenario": "An ordinary day" }));
        client.tool("check_compliance", &json!({ "agentId": agent, "framework": "SOC2" }));
    }
    Mixed {
        per_second: f64::from(turns * 5) / begun.elapsed().as_secs_f64(),
        calls: (turns + warm) * 5,
        shim_kb: rss_kb(client.child.id()),
        server_kb: server.rss_kb(),
    }
}

/// `audit_log` of an agent that did everything that a long record tells of.
fn audit(program: &Path, events: u64, rounds: u32) {
    let home = tempfile::tempdir().expect("a temporary directory");
    fill::run(home.path(), events, 100);
    let _server = Server::start(program, home.path(), None);
    // Whoever did all this is `code`, who asks as itself.
    let mut client = Shim::of("code", program, home.path());
    client.initialize();
    let (mut found, warm) = (times(), 20);
    for round in 0..rounds + warm {
        let started = Instant::now();
        let log = client.tool("audit_log", &json!({ "agentId": "code" }));
        if round >= warm {
            found.saturating_record(micros(started.elapsed()));
        }
        assert_eq!(log["entries"].as_array().map(Vec::len), Some(100), "{log}");
    }
    print(&format!("audit_log, a page of 100 and the summary, record of {events} events"), &found);
}

/// Makes and deploys agents in process, with one step that logs a line.
fn deploy(desk: &Desk, owner: &Credential, runtime: &tokio::runtime::Runtime, count: u64, cron: &str) {
    let steps = json!([{ "id": "note", "do": "log", "with": { "text": "here" } }]);
    let (who, cron) = (owner.clone(), cron.to_owned());
    let make = move |number: u64| {
        let input = json!({ "description": "Log a line", "name": format!("sleeper-{number}"), "steps": steps, "schedule": cron, "policies": [] });
        Call { credential: who.clone(), surface: Surface::Rest, operation: "agents_create_agent".to_owned(), input }
    };
    let made = runtime.block_on(fill::calls(desk, count, make, |answer| answer["agentId"].as_str().map(str::to_owned)));
    assert_eq!(made.len() as u64, count, "every agent was made");
    let who = owner.clone();
    let deploy = move |number: u64| {
        let input = json!({ "agentId": made[usize::try_from(number).expect("a small number")] });
        Call { credential: who.clone(), surface: Surface::Rest, operation: "agents_deploy_agent".to_owned(), input }
    };
    let deployed = runtime.block_on(fill::calls(desk, count, deploy, |answer| (answer["deployed"] == true).then_some(())));
    assert_eq!(deployed.len() as u64, count, "every agent was deployed");
}

/// The share of a core that a server takes while many agents wait for a moment that is far away.
fn idle(program: &Path, agents: u64, seconds: u64) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (desk, owner, runtime) = claimed(home.path());
    deploy(&desk, &owner, &runtime, agents, "0 0 1 1 *");
    desk.db.close();
    let server = Server::start(program, home.path(), None);
    std::thread::sleep(Duration::from_secs(3));
    let before = server.cpu();
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs(seconds));
    let share = (server.cpu() - before).as_secs_f64() / begun.elapsed().as_secs_f64();
    println!("{agents} scheduled agents, idle for {seconds} s: {:.2} % of a core, {} kB resident", 100.0 * share, server.rss_kb());
}

#[expect(clippy::disallowed_methods, reason = "a bench measures by the clock of the machine")]
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// How late runs begin that are due in the same second.
fn due(program: &Path, agents: u64) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (desk, owner, runtime) = claimed(home.path());
    // Far enough away for making them, with room to spare on a slow machine.
    let moment = unix_seconds() + 20 + agents / 10;
    let (second, minute, hour) = (moment % 60, moment / 60 % 60, moment / 3_600 % 24);
    deploy(&desk, &owner, &runtime, agents, &format!("{second} {minute} {hour} * * *"));
    let token = runtime.block_on(call(&desk, owner, "desk_token_create", json!({ "note": "measuring", "scopes": ["agents:read"] })));
    let token = token["token"].as_str().expect("a token").to_owned();
    desk.db.close();
    let server = Server::start(program, home.path(), None);
    assert!(unix_seconds() + 2 < moment, "making the agents took too long; ask for fewer");
    runtime.block_on(async {
        let mut connection = Connection::open(&server.url).await.expect("the server answers").with_token(token);
        tokio::time::sleep(Duration::from_secs(moment + 3 - unix_seconds().min(moment))).await;
        let moment = i64::try_from(moment).expect("a moment") * 1_000_000;
        let (mut late, mut missing) = (times(), 0);
        for number in 0..agents {
            let mut started = None;
            for _ in 0..100 {
                let body = json!({ "agentId": format!("sleeper-{number}") }).to_string();
                let (status, _) = connection.call("agents_list_runs", "", &body).await.expect("the server answers");
                let answer = connection.json();
                assert_eq!(status, 200, "{answer}");
                started = answer["runs"][0]["startedAt"].as_str().map(|at| parse_time("startedAt", at).expect("a time"));
                if started.is_some() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            match started {
                Some(at) => late.saturating_record(u64::try_from(at - moment).unwrap_or(0)),
                None => missing += 1,
            }
        }
        println!(
            "{agents} agents due in the same second, begun after it: p50 {:.0} ms, last {:.0} ms, {missing} not at all",
            ms(late.value_at_quantile(0.5)),
            ms(late.max())
        );
    });
}
