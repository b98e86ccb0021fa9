//! What a large store costs: reading from it, verifying it, proving from it, starting on it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use deskmate_core::record;
use hdrhistogram::Histogram;

use crate::fill;
use crate::floor::micros;
use crate::http::Connection;
use crate::load::{LoadArgs, Scenario, drive, ms, times};
use crate::server::{Server, binary};

/// How often a fast thing is measured.
pub const ROUNDS: u32 = 2_000;
const STARTS: u32 = 10;

/// Times of `read_messages` over HTTP for one reader with a full page waiting.
pub fn read(program: Option<&Path>, home: &Path) -> Histogram<u64> {
    let server = Server::start(&binary(program), home, None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut connection = Connection::open(&server.url).await.expect("the server answers");
        let mut found = times();
        for round in 0..ROUNDS + 100 {
            let agent = fill::recipient(u64::from(round % 10));
            let started = Instant::now();
            let (status, bytes) = connection.call("bridge_read_messages", &agent, "{}").await.expect("the server answers");
            let took = micros(started.elapsed());
            assert!(status == 200 && bytes > 10_000, "a full page was expected, not {status} with {bytes} bytes");
            if round >= 100 {
                found.saturating_record(took);
            }
        }
        found
    })
}

/// Seconds that `deskmate audit verify` takes, and the number of events.
pub fn verify(program: Option<&Path>, home: &Path) -> (f64, u64) {
    let started = Instant::now();
    let done = Command::new(binary(program)).args(["audit", "verify", "--json", "--home"]).arg(home).env("HOME", home).output().expect("it runs");
    let took = started.elapsed().as_secs_f64();
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
    assert_eq!(report["sound"], true, "{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    (took, report["events"].as_u64().unwrap_or(0))
}

/// Times of making one inclusion proof, its checkpoint opened and checked, in process.
pub fn prove(home: &Path) -> Histogram<u64> {
    let desk = fill::open(home);
    let size = desk.db.read_blocking(record::size).expect("the record has a size");
    let mut found = times();
    for round in 0..u64::from(ROUNDS) {
        // A stride that is no divisor of anything walks all over the tree.
        let (seq, keys) = ((round * 7_919 * 104_729) % size, desk.keys.clone());
        let started = Instant::now();
        desk.db.read_blocking(move |tx| record::prove(tx, seq, &keys)).expect("the event is proved");
        found.saturating_record(micros(started.elapsed()));
    }
    desk.db.close();
    found
}

/// Times from starting the server to the first answer of `/healthz`.
pub fn start(program: Option<&Path>, home: &Path) -> Histogram<u64> {
    let program = binary(program);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut found = times();
    for _ in 0..STARTS {
        let started = Instant::now();
        let server = Server::start(&program, home, None);
        let status = runtime.block_on(async { Connection::open(&server.url).await?.get("/healthz").await }).expect("the server answers").0;
        found.saturating_record(micros(started.elapsed()));
        assert_eq!(status, 200);
    }
    found
}

/// Resident memory in kilobytes: idle, after half of the calls, and after all of them.
pub fn memory(program: Option<&Path>, home: &Path, calls: u64) -> (u64, u64, u64) {
    let server = Server::start(&binary(program), home, None);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let idle = server.rss_kb();
    let mut seen = [0, 0];
    for slot in &mut seen {
        let mut done = 0;
        while done < calls / 2 {
            let args = LoadArgs { scenario: Scenario::Mixed, clients: 16, seconds: 2, url: Some(server.url.clone()), database_url: None };
            done += drive(&server.url, &args).times.len();
        }
        *slot = server.rss_kb();
    }
    (idle, seen[0], seen[1])
}

/// Times from starting the shim to its first answer, and its resident memory in kilobytes. `None` without a shim.
pub fn shim(program: Option<&Path>, home: &Path) -> Option<(Histogram<u64>, u64)> {
    let program = binary(program);
    let known = Command::new(&program).args(["mcp", "--help"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !known.is_ok_and(|status| status.success()) {
        return None;
    }
    let _server = Server::start(&program, home, None);
    let mut found = times();
    let mut rss = 0;
    for _ in 0..50 {
        let started = Instant::now();
        let mut command = Command::new(&program);
        command.args(["mcp", "--toolset", "bridge", "--agent", "code", "--home"]).arg(home).env("HOME", home);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the shim starts");
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let mut input = child.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut input, format!("{hello}\n").as_bytes()).expect("the shim reads");
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
        std::io::BufRead::read_line(&mut output, &mut line).expect("the shim answers");
        found.saturating_record(micros(started.elapsed()));
        assert!(line.contains("serverInfo"), "{line}");
        rss = rss.max(crate::server::rss_kb(child.id()));
        drop(input);
        drop(child.wait());
    }
    Some((found, rss))
}

/// p50 and p99 in milliseconds.
pub fn quantiles(times: &Histogram<u64>) -> (f64, f64) {
    (ms(times.value_at_quantile(0.5)), ms(times.value_at_quantile(0.99)))
}
