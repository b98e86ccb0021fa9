//! Durability comes before the answer, as the kernel saw it: the bytes of the write-ahead log are synchronised after
//! the last of them was written and before the first byte of the answer. The same holds for what is handed on to a server
//! behind the desk.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::support::{BINARY, Desk, up};

const CALLS: &str = "trace=read,recvfrom,pwrite64,pwritev,fsync,fdatasync,write,writev,sendto,sendmsg";

/// One finished system call of a trace, in the order in which they ended; writes count from their beginning.
struct Seen<'t> {
    name: &'t str,
    line: &'t str,
    begun: usize,
    ended: usize,
    /// Whether the tracer answered it in the kernel's place.
    injected: bool,
}

/// Reads a trace of `strace -f -y`, in which a call that others interrupted takes two lines.
fn calls(trace: &str) -> Vec<Seen<'_>> {
    let mut open: Vec<(&str, &str, &str, usize)> = Vec::new();
    let mut seen = Vec::new();
    for (number, line) in trace.lines().enumerate() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let name = resumed.split(' ').next().unwrap_or_default();
            if let Some(at) = open.iter().position(|(p, n, ..)| *p == pid && *n == name) {
                let (_, name, begun_line, begun) = open.remove(at);
                // What was read is told at the end, what was written at the beginning.
                let line = if matches!(name, "read" | "recvfrom") { rest } else { begun_line };
                seen.push(Seen { name, line, begun, ended: number, injected: rest.ends_with("(INJECTED)") });
            }
        } else if let Some((name, _)) = rest.split_once('(') {
            if rest.ends_with("<unfinished ...>") {
                open.push((pid, name, rest, number));
            } else {
                seen.push(Seen { name, line: rest, begun: number, ended: number, injected: rest.ends_with("(INJECTED)") });
            }
        }
    }
    seen
}

/// Checks that what a request with this marker wrote to the log was synchronised before it was answered. `log` is how
/// the trace names that log: the server also writes to the bridge file, for which nobody waits.
fn durable_before_answer(trace: &str, log: &str, marker: &str) -> Result<(), String> {
    durable_before(trace, log, marker, |call| call.contains("HTTP/1.1 200"))
}

/// The same before a call with this marker was written to the server behind the desk.
fn durable_before_handing_on(trace: &str, log: &str, marker: &str) -> Result<(), String> {
    durable_before(trace, log, marker, |call| call.contains("tools/call") && call.contains(marker))
}

/// The same before the first thing that was sent of this kind.
fn durable_before(trace: &str, log: &str, marker: &str, is_it: impl Fn(&str) -> bool) -> Result<(), String> {
    let calls = calls(trace);
    let asked = calls.iter().find(|call| matches!(call.name, "read" | "recvfrom") && call.line.contains(marker)).ok_or("the request was not seen")?.ended;
    let answers = |call: &&Seen<'_>| matches!(call.name, "write" | "writev" | "sendto" | "sendmsg") && is_it(call.line);
    let answered = calls.iter().filter(answers).map(|call| call.begun).find(|begun| *begun > asked).ok_or("no answer was seen")?;
    let to_log = |call: &&Seen<'_>| matches!(call.name, "pwrite64" | "pwritev") && call.line.contains(log);
    let writes: Vec<_> = calls.iter().filter(to_log).filter(|call| call.begun > asked && call.begun < answered).collect();
    // The next batch may begin before this answer is sent, so the write that counts is the one that holds the marker.
    let written = writes.iter().find(|call| call.line.contains(marker)).or(writes.last()).map(|call| call.ended);
    let written = written.ok_or("nothing was written to the log before the answer")?;
    let syncs = |call: &&Seen<'_>| matches!(call.name, "fsync" | "fdatasync") && call.line.contains(log) && !call.injected;
    let synced = calls.iter().filter(syncs).any(|call| call.begun > written && call.ended < answered);
    if synced { Ok(()) } else { Err("the answer was given before the log was synchronised".to_owned()) }
}

/// A server whose system calls are written down.
fn traced(home: &Path, trace: &Path, more: &[&str]) -> Desk {
    let plain = up(home);
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "4096", "-e", CALLS, "-o"]).arg(trace).args(more).arg("-D").arg(BINARY).args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Desk::launch(command, home, home).unwrap_or_else(|ended| panic!("strace or the server ended: {}", ended.stderr))
}

/// The part of a trace that shows what is wrong.
fn shown(trace: &str, marker: &str) -> String {
    let short = |line: &str| line.chars().take(200).collect::<String>();
    let part: Vec<_> = trace.lines().skip_while(|line| !line.contains(marker)).take(60).map(short).collect();
    part.join("\n")
}

#[test]
fn fsync_precedes_the_answer() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let trace = directory.path().join("trace");
    let mut desk = traced(&home, &trace, &[]);
    let mut http = desk.http();
    for round in 0..5 {
        http.send("code", "cowork", &format!("marker-{round}-here")).expect("the server answers").good();
    }
    desk.stop();
    let text = std::fs::read_to_string(&trace).expect("a trace");
    for round in 0..5 {
        let marker = format!("marker-{round}-here");
        if let Err(why) = durable_before_answer(&text, "desk.db-wal>", &marker) {
            panic!("{why}\n{}", shown(&text, &marker));
        }
    }
}

/// A server behind the desk that repeats what it is told.
const CHILD: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line); id, method = message.get("id"), message.get("method")
    about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "child", "version": "1"}}
    tools = {"tools": [{"name": "read", "description": "reads", "inputSchema": {"type": "object"}}]}
    answer = {"initialize": about, "tools/list": tools, "tools/call": {"content": [{"type": "text", "text": "read"}]}, "ping": {}}.get(method)
    said = {"result": answer} if answer is not None else {"error": {"code": -32601, "message": "Method not found"}}
    if id is not None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, **said}) + "\n"); sys.stdout.flush()
"#;

/// Calls a tool behind a desk, and answers what the kernel saw.
fn handed_on(home: &Path, more: &[&str], markers: &[&str]) -> String {
    let child = home.with_file_name("child.py");
    std::fs::write(&child, CHILD).expect("written");
    let (mut desk, session) = Desk::owned(home);
    let token = desk.with(&session, "desk_agent_add", &json!({ "agent": "code" })).good()["token"].as_str().expect("a token").to_owned();
    let rules = "rules:\n  - { name: reads, match: { kind: note.read }, effect: allow, waive_trust: true, message: reading is fine }\n";
    desk.with(&session, "desk_policy_apply", &json!({ "document": rules })).good();
    let mount = json!({ "name": "notes", "command": "python3", "args": [child], "verbs": { "read": "note.read" } });
    desk.with(&session, "desk_mount_add", &json!({ "mount": mount })).good();
    desk.with(&session, "desk_mount_test", &json!({ "name": "notes" })).good();
    desk.stop();
    let trace = home.with_file_name("trace");
    let mut desk = traced(home, &trace, more);
    for marker in markers {
        let call = json!({ "mount": "notes", "tool": "read", "arguments": { "page": marker } });
        let answer = desk.with(&token, "gateway_call", &call).good();
        assert_eq!(answer["state"], "done", "{answer}");
    }
    desk.stop();
    std::fs::read_to_string(&trace).expect("a trace")
}

#[test]
fn fsync_precedes_what_is_handed_on_to_a_server_behind_the_desk() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let markers = ["page-0-here", "page-1-here", "page-2-here"];
    let trace = handed_on(&directory.path().join("home"), &[], &markers);
    for marker in markers {
        if let Err(why) = durable_before_handing_on(&trace, "desk.db-wal", marker) {
            panic!("{why}\n{}", shown(&trace, marker));
        }
    }
}

#[test]
fn what_is_handed_on_before_it_is_durable_is_found_out() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // The kernel is never asked: durability is off, and nobody says so.
    let trace = handed_on(&directory.path().join("home"), &["-e", "inject=fsync,fdatasync:retval=0"], &["page-0-here"]);
    let why = durable_before_handing_on(&trace, "desk.db-wal", "page-0-here").expect_err("nothing was synchronised");
    assert!(why.contains("before the log was synchronised"), "{why}");
}

/// SQLite itself under the same check: with synchronous=off it must be found out.
fn session(directory: &Path, synchronous: &str) -> String {
    let trace = directory.join(format!("trace-{synchronous}"));
    let database = directory.join(format!("{synchronous}.db"));
    let script = format!(
        "pragma journal_mode = wal; pragma synchronous = {synchronous}; create table t (x); insert into t values ('the-marker');\nselect 'HTTP/1.1 200 OK';\n"
    );
    let mut child = Command::new("strace")
        .args(["-f", "-y", "-s", "4096", "-e", CALLS, "-o"])
        .arg(&trace)
        .arg("sqlite3")
        .arg(&database)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("strace and sqlite3 run");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), script.as_bytes()).expect("sqlite3 reads");
    assert!(child.wait_with_output().expect("sqlite3 ends").status.success());
    // With one process there is no number before each line.
    std::fs::read_to_string(&trace)
        .expect("a trace")
        .lines()
        .map(|line| if line.starts_with(|c: char| c.is_ascii_digit()) { format!("{line}\n") } else { format!("1 {line}\n") })
        .collect()
}

#[test]
fn the_check_finds_a_missing_fsync() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    durable_before_answer(&session(directory.path(), "full"), "-wal>", "the-marker").expect("synchronous=full is durable");
    let why = durable_before_answer(&session(directory.path(), "off"), "-wal>", "the-marker").expect_err("synchronous=off is not durable");
    assert!(why.contains("before the log was synchronised"), "{why}");
}

#[test]
fn the_check_needs_the_right_order() {
    let trace = |lines: &[&str]| lines.join("\n");
    let (asked, wrote, synced, answered) = (
        r#"7 recvfrom(9<TCP:[1]>, "the-marker", 10) = 10"#,
        r#"8 pwrite64(5</h/desk.db-wal>, "x", 1, 0) = 1"#,
        "8 fdatasync(5</h/desk.db-wal>) = 0",
        r#"7 sendto(9<TCP:[1]>, "HTTP/1.1 200 OK", 15) = 15"#,
    );
    assert!(durable_before_answer(&trace(&[asked, wrote, synced, answered]), "-wal>", "the-marker").is_ok());
    assert!(durable_before_answer(&trace(&[asked, wrote, answered, synced]), "-wal>", "the-marker").is_err(), "answered first");
    assert!(durable_before_answer(&trace(&[asked, synced, wrote, answered]), "-wal>", "the-marker").is_err(), "synchronised too early");
    let (begun, resumed) = ("8 fdatasync(5</h/desk.db-wal> <unfinished ...>", "8 <... fdatasync resumed>) = 0");
    assert!(durable_before_answer(&trace(&[asked, wrote, begun, resumed, answered]), "-wal>", "the-marker").is_ok());
    assert!(durable_before_answer(&trace(&[asked, wrote, begun, answered, resumed]), "-wal>", "the-marker").is_err(), "still under way");
    let database = synced.replace("-wal", "");
    assert!(durable_before_answer(&trace(&[asked, wrote, &database, answered]), "-wal>", "the-marker").is_err(), "another file");
}
