//! Callers that keep the desk waiting, and crowds: who is slow is let go, who waits for the desk is not, and the owner
//! always gets in over the local socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::support::{BINARY, Desk, Http, deskmate, eventually, up};

/// What the documents promise; a wait of 25 seconds may be a little shorter.
const HEAD: Duration = Duration::from_secs(10);
const BODY: Duration = Duration::from_secs(30);
const WAIT: Duration = Duration::from_secs(24);

fn open(desk: &Desk, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&desk.address).expect("the server answers");
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a time-out");
    stream.write_all(bytes.as_bytes()).expect("the server reads");
    stream
}

/// All that comes until the connection is closed, and when that was.
fn rest(mut stream: TcpStream, begun: Instant) -> (String, Duration) {
    let mut seen = Vec::new();
    drop(stream.read_to_end(&mut seen));
    (String::from_utf8_lossy(&seen).into_owned(), begun.elapsed())
}

fn hold(body: &str) -> String {
    let head = "POST /api/bridge_wait_for_messages HTTP/1.1\r\nhost: localhost\r\nx-deskmate-agent: cowork\r\ncontent-type: application/json\r\n";
    format!("{head}content-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn who_sends_slowly_is_let_go_and_who_waits_is_not() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let desk = Desk::start(&directory.path().join("home"));
    let begun = Instant::now();
    let mut idle = desk.http();
    let (head, whole) = (open(&desk, "POST /api/bridge_send_mess"), hold("{}"));
    let body = open(&desk, whole.strip_suffix('}').expect("a body"));
    let wait = open(&desk, &hold("{\"timeout_seconds\":25}"));
    let mut follower = BufReader::new(open(&desk, "GET /api/stream HTTP/1.1\r\nhost: localhost\r\nx-deskmate-agent: code\r\n\r\n"));
    // A byte now and then does not make it faster.
    let drips = head.try_clone().expect("the same connection");
    let dripping = std::thread::spawn(move || {
        while (&drips).write_all(b"a").is_ok() && begun.elapsed() < BODY {
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    let head = std::thread::spawn(move || rest(head, begun));
    let body = std::thread::spawn(move || rest(body, begun));
    let waited = Http::over(wait).read().expect("the wait is answered");
    assert_eq!(waited.status, 200, "{}", waited.text());
    assert!(begun.elapsed() >= WAIT, "the wait was cut short");
    let (said, after) = head.join().expect("a head");
    assert!(said.is_empty() && after >= HEAD && after < HEAD + Duration::from_secs(8), "{said:?} after {after:?}");
    let (said, after) = body.join().expect("a body");
    assert!(said.starts_with("HTTP/1.1 408") && after >= BODY && after < BODY + Duration::from_secs(8), "{said:?} after {after:?}");
    idle.send("cowork", "code", "still there").expect("an idle connection is no slow one").good();
    let mut line = String::new();
    while !line.contains("still there") {
        line.clear();
        assert!(follower.read_line(&mut line).expect("the stream goes on") > 0, "the stream was cut");
    }
    dripping.join().expect("the drips end");
}

/// A desk that may open few files, so that few connections are a crowd.
fn narrow(home: &Path) -> Desk {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256; exec \"$0\" \"$@\""]).arg(BINARY).args(up(home).get_args()).env("HOME", home);
    Desk::launch(command, home, home).unwrap_or_else(|ended| panic!("{}", ended.stderr))
}

#[test]
fn a_crowd_is_refused_and_the_owner_gets_in() {
    const PLACES: usize = 128;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let desk = narrow(&home);
    // Idle ones go to make room, as many as come.
    let idle: Vec<_> = (0..PLACES * 2).map(|_| open(&desk, "")).collect();
    desk.http().send("code", "cowork", "through a crowd").expect("there is room").good();
    drop(idle);
    // Who is at work stays, and is told apart from who only sits there.
    let wait = || open(&desk, &hold("{\"timeout_seconds\":25}").replace("cowork", "other"));
    let mut waiting: Vec<_> = (0..PLACES).map(|_| wait()).collect();
    let mut refused = None;
    eventually("new connections are refused", Duration::from_secs(20), || {
        let answer = Http::open(&desk.address).and_then(|mut http| http.send("code", "cowork", "one too many"));
        refused = answer.ok().filter(|answer| answer.status == 429);
        // One that came in before the last wait was read took its place.
        waiting.push(wait());
        refused.is_some()
    });
    let refused = refused.expect("a refusal");
    assert_eq!(refused.code(), "limited", "{}", refused.text());
    let status = deskmate(&home, &["status"]);
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    drop(waiting);
    eventually("there is room again", Duration::from_secs(20), || {
        Http::open(&desk.address).and_then(|mut http| http.send("code", "cowork", "after the crowd")).is_ok_and(|answer| answer.status == 200)
    });
    let log = std::fs::read_to_string(home.join("server.log")).expect("a log");
    assert!(log.contains("new ones are refused"), "{log}");
}
