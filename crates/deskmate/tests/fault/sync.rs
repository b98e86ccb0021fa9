//! Durability comes before the answer, as the kernel saw it: the bytes of the write-ahead log are synchronised after
//! the last of them was written and before the first byte of the answer. The same holds for what is handed on to a server
//! behind the desk.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::behind::{self, call};
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

impl Seen<'_> {
    fn sends(&self) -> bool {
        matches!(self.name, "write" | "writev" | "sendto" | "sendmsg")
    }

    fn writes_to(&self, file: &str) -> bool {
        matches!(self.name, "pwrite64" | "pwritev") && self.line.contains(file)
    }
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
    let calls = calls(trace);
    let asked = calls.iter().find(|call| matches!(call.name, "read" | "recvfrom") && call.line.contains(marker)).ok_or("the request was not seen")?.ended;
    let answers = |call: &&Seen<'_>| call.sends() && call.line.contains("HTTP/1.1 200");
    let answered = calls.iter().filter(answers).map(|call| call.begun).find(|begun| *begun > asked).ok_or("no answer was seen")?;
    let writes: Vec<_> = calls.iter().filter(|call| call.writes_to(log)).filter(|call| call.begun > asked && call.begun < answered).collect();
    // The next batch may begin before this answer is sent, so the write that counts is the one that holds the marker.
    let written = writes.iter().find(|call| call.line.contains(marker)).or(writes.last()).map(|call| call.ended);
    let written = written.ok_or("nothing was written to the log before the answer")?;
    synced_between(&calls, log, written, answered)
}

/// Checks that events, each told by its kind and subject, were synchronised before the call with this marker was written to the
/// server behind the desk.
fn durable_before_handing_on(trace: &str, log: &str, marker: &str, events: &[String]) -> Result<(), String> {
    let calls = calls(trace);
    let is_call = |call: &&Seen<'_>| call.sends() && call.line.contains("tools/call") && call.line.contains(marker);
    let handed_on = calls.iter().find(is_call).ok_or("the call was not handed on")?.begun;
    for event in events {
        let written = calls.iter().find(|call| call.writes_to(log) && call.line.contains(event)).ok_or_else(|| format!("{event} was not written"))?.ended;
        synced_between(&calls, log, written, handed_on).map_err(|why| format!("{event}: {why}"))?;
    }
    Ok(())
}

fn synced_between(calls: &[Seen<'_>], log: &str, written: usize, answered: usize) -> Result<(), String> {
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

/// How a call comes to be handed on.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// A rule lets it pass.
    Allowed,
    /// It is held, and a person approves it.
    Held,
    /// It is what a proposal said that a person approved.
    Proposed,
}

const WAYS: [(Way, &str); 4] = [(Way::Allowed, "page-0-here"), (Way::Held, "page-1-here"), (Way::Proposed, "page-2-here"), (Way::Allowed, "page-3-here")];

/// The events that have to be on disk before a call is handed on, as the record's table holds them: the kind and then the subject.
fn make_call(desk: &Desk, session: &str, token: &str, (way, page): (Way, &str)) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
    let approve = |request: &str| drop(desk.with(session, "desk_request_approve", &json!({ "request": request })).good());
    let (answer, mut events) = match way {
        Way::Allowed => (desk.with(token, "gateway_call", &call("read", page)).good(), Vec::new()),
        Way::Held => {
            let mut input = call("write", page);
            input["timeout_seconds"] = json!(0);
            let held = desk.with(token, "gateway_call", &input).good();
            let (id, request) = (text(&held["call_id"]), text(&held["request_id"]));
            approve(&request);
            let answer = desk.with(token, "gateway_result", &json!({ "call_id": id })).good();
            (answer, vec![format!("call.heldcall:{id}"), format!("request.approvedrequest:{request}")])
        }
        Way::Proposed => {
            let proposal = json!({
                "domain": "gateway.notes", "action": "write", "target": "notes", "proposed_change": { "page": page }, "confidence": 0.9, "reasoning": "it was asked for",
            });
            let request = text(&desk.with(token, "cowork_propose", &proposal).good()["proposal_id"]);
            approve(&request);
            let mut input = call("write", page);
            input["proposal_id"] = json!(request);
            (desk.with(token, "gateway_call", &input).good(), vec![format!("request.approvedrequest:{request}")])
        }
    };
    assert_eq!(answer["state"], "done", "{way:?}: {answer}");
    events.push(format!("call.passedcall:{}", text(&answer["call_id"])));
    events
}

/// Calls tools behind a desk in every way. Answers what the kernel saw, and for each call what has to be there before it.
fn handed_on(home: &Path, more: &[&str]) -> (String, Vec<Vec<String>>) {
    let (mut desk, session, token) = behind::desk(home);
    desk.stop();
    let trace = home.with_file_name("trace");
    let mut desk = traced(home, &trace, more);
    let events = WAYS.iter().map(|way| make_call(&desk, &session, &token, *way)).collect();
    desk.stop();
    (std::fs::read_to_string(&trace).expect("a trace"), events)
}

#[test]
fn fsync_precedes_what_is_handed_on_to_a_server_behind_the_desk() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (trace, events) = handed_on(&directory.path().join("home"), &[]);
    for ((way, marker), events) in WAYS.into_iter().zip(events) {
        if let Err(why) = durable_before_handing_on(&trace, "desk.db-wal", marker, &events) {
            panic!("{way:?}: {why}\n{}", shown(&trace, marker));
        }
    }
}

#[test]
fn what_is_handed_on_before_it_is_durable_is_found_out() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // The kernel is never asked: durability is off, and nobody says so.
    let (trace, events) = handed_on(&directory.path().join("home"), &["-e", "inject=fsync,fdatasync:retval=0"]);
    for ((way, marker), events) in WAYS.into_iter().zip(events) {
        for event in events {
            let why = durable_before_handing_on(&trace, "desk.db-wal", marker, &[event]).expect_err("nothing was synchronised");
            assert!(why.contains("before the log was synchronised"), "{way:?}: {why}");
        }
    }
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
