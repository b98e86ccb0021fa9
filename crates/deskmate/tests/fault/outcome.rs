//! What came of a call that was handed on: it is told soon, its caller does not wait for that, and a desk that is killed in
//! between says that nobody knows.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::behind::{self, answered, call, called};
use super::support::{Desk, eventually, verify};

/// What is promised, in microseconds.
const SOON: i64 = 100_000;
/// How many calls are looked at.
const ROUNDS: usize = 21;

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock");
    i64::try_from(since.as_micros()).expect("a time")
}

fn calls(desk: &Desk, session: &str) -> Vec<Value> {
    desk.with(session, "gateway_list_calls", &json!({ "limit": 200 })).good()["items"].as_array().expect("a list").clone()
}

fn state(desk: &Desk, session: &str, call: &Value) -> String {
    let all = calls(desk, session);
    let found = all.iter().find(|one| one["call_id"] == call["call_id"]).unwrap_or_else(|| panic!("{call} is not among {all:?}"));
    found["state"].as_str().expect("a text").to_owned()
}

/// The outcome's own moment is taken within its transaction. Whatever delays one call on a busy machine delays few of so many; what
/// the desk itself waits, it waits for each.
#[test]
fn what_came_of_a_call_is_on_the_record_within_a_tenth_of_a_second() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let (mut desk, session, token) = behind::desk(&home);
    let (mut told, mut seen) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let answer = desk.with(&token, "gateway_call", &call("read", &format!("page-{round}"))).good();
        let answered = answered(&answer);
        let begun = Instant::now();
        while state(&desk, &session, &answer) == "passed" {
            assert!(begun.elapsed() < Duration::from_secs(30), "what came of a call is never told");
        }
        seen.push(now() - answered);
        let subject = format!("call:{}", answer["call_id"].as_str().expect("a text"));
        let events = desk.with(&session, "desk_record_list", &json!({ "kind": "call.ended", "subject": subject })).good();
        let at = events["events"][0]["at"].as_str().unwrap_or_else(|| panic!("{events}"));
        told.push(deskmate_core::parse_time("at", at).expect("a time") - answered);
    }
    told.sort_unstable();
    seen.sort_unstable();
    println!("after the server's answer, in microseconds: told {told:?}, seen by others {seen:?}");
    assert!(told[0] >= 0, "nothing is told before it is there");
    assert!(told[ROUNDS / 2] <= SOON, "most are told within a tenth of a second: {told:?}");
    assert!(seen[0] <= SOON, "and committed: {seen:?}");
    desk.stop();
    verify(&home);
}

/// Somebody who keeps everybody else from writing to the desk's store.
struct Lock {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Lock {
    fn take(home: &Path) -> Self {
        let mut child = Command::new("sqlite3").arg(home.join("desk.db")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sqlite3 runs");
        let (stdin, lines) = (child.stdin.take().expect("a pipe"), BufReader::new(child.stdout.take().expect("a pipe")));
        let mut lock = Self { child, stdin, lines };
        assert_eq!(lock.ask(".timeout 20000\nbegin immediate; select 'taken';"), "taken");
        lock
    }

    fn ask(&mut self, question: &str) -> String {
        self.stdin.write_all(question.as_bytes()).and_then(|()| self.stdin.write_all(b"\n")).and_then(|()| self.stdin.flush()).expect("sqlite3 reads");
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("sqlite3 answers");
        line.trim_end().to_owned()
    }

    /// How a call stands in what is committed: while this is held nobody can change it.
    fn committed(&mut self, call: &Value) -> String {
        self.ask(&format!("select state from gateway_call where id = '{}';", call["call_id"].as_str().expect("a text")))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Makes a call, lets nobody write from when it was handed on, and then lets its server answer. Answers what the caller got.
fn answered_without_a_commit(desk: &Desk, home: &Path, token: &str, page: &str) -> (Value, Lock) {
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| desk.with(token, "gateway_call", &call("wait", page)).good());
        let line = format!("wait {page}");
        eventually("it is handed on", Duration::from_secs(30), || called(home).contains(&line));
        let lock = Lock::take(home);
        std::fs::write(home.with_file_name(page), "").expect("written");
        let answer = caller.join().expect("the caller is answered");
        answered(&answer);
        (answer, lock)
    })
}

#[test]
fn an_answer_does_not_wait_for_its_outcome_to_be_committed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let (mut desk, session, token) = behind::desk(&home);
    let (answer, mut lock) = answered_without_a_commit(&desk, &home, &token, "one");
    assert_eq!(lock.committed(&answer), "passed", "its caller has the answer, and nothing of it could be written");
    // Longer than the store is waited for at once: the outcome is tried again.
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(lock.committed(&answer), "passed");
    drop(lock);
    eventually("it is told after all", Duration::from_secs(30), || state(&desk, &session, &answer) == "done");
    desk.stop();
    verify(&home);
}

#[test]
fn a_desk_that_is_killed_between_an_answer_and_its_outcome_says_that_nobody_knows() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let (mut desk, session, token) = behind::desk(&home);
    let (answer, mut lock) = answered_without_a_commit(&desk, &home, &token, "one");
    desk.signal("KILL");
    desk.ended();
    assert_eq!(lock.committed(&answer), "passed");
    drop(lock);
    let mut desk = Desk::start(&home);
    eventually("it is known that nobody knows", Duration::from_secs(30), || state(&desk, &session, &answer) == "ambiguous");
    let subject = format!("call:{}", answer["call_id"].as_str().expect("a text"));
    let ended = desk.with(&session, "desk_record_list", &json!({ "kind": "call.ended", "subject": subject })).good();
    assert_eq!((ended["events"].as_array().map(Vec::len), &ended["events"][0]["facts"]["outcome"]), (Some(1), &json!("ambiguous")), "{ended}");
    assert_eq!(called(&home), ["wait one"], "and nothing is done again");
    desk.stop();
    verify(&home);
}
