//! Who gets in: hosts and origins, tokens that are no longer good, crowds, a second server, and the end of a server.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use deskmate_core::limits::SOCKET_CALLERS_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use super::support::{BINARY, Desk, eventually, up, verify, waiting};

#[test]
fn other_hosts_and_origins_are_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let desk = Desk::start(&directory.path().join("home"));
    let body: &[u8] = br#"{"to":"cowork","content":"x"}"#;
    let port = desk.address.rsplit(':').next().expect("a port").to_owned();
    let own = format!("http://127.0.0.1:{port}");
    let other_port = "http://127.0.0.1:1".to_owned();
    for (host, origin, passes) in [
        ("localhost", None, true),
        ("localhost", Some(own.as_str()), true),
        ("evil.example", None, false),
        ("localhost.evil.example", None, false),
        ("", None, false),
        ("localhost", Some("http://evil.example"), false),
        ("localhost", Some(other_port.as_str()), false),
        ("localhost", Some("null"), false),
    ] {
        let mut headers = vec![("host", host), ("x-deskmate-agent", "code")];
        headers.extend(origin.map(|origin| ("origin", origin)));
        for path in ["/api/bridge_send_message", "/mcp"] {
            let listing = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
            let mut headers = headers.clone();
            headers.push(("accept", "application/json, text/event-stream"));
            let answer = desk.http().post(path, &headers, if path == "/mcp" { listing } else { body }).expect("the server answers");
            assert_eq!(answer.status, if passes { 200 } else { 403 }, "{path} {host} {origin:?}: {}", answer.text());
        }
    }
    assert_eq!(waiting(&mut desk.http(), "cowork").len(), 2, "a refused call had an effect");
}

#[test]
fn revoked_mistyped_and_used_secrets_are_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let (desk, session) = Desk::owned(&home);
    let token = desk.with(&session, "desk_agent_add", &json!({ "agent": "code" })).good()["token"].as_str().expect("a token").to_owned();
    let send = json!({ "to": "code", "content": "x" });
    desk.with(&token, "bridge_send_message", &send).good();
    let named = desk.call("code", "bridge_send_message", send.clone());
    assert_eq!(named.status, 401, "a registered agent's name without its token: {}", named.text());
    let mut mistyped = token.clone();
    mistyped.pop();
    for secret in [mistyped.as_str(), &token.to_uppercase(), "dma_", "", &token.replace("dma_", "dms_")] {
        let answer = desk.with(secret, "bridge_send_message", &send);
        assert_eq!(answer.status, 401, "{secret:?}: {}", answer.text());
    }
    let decides = desk.with(&token, "desk_agent_add", &json!({ "agent": "more" }));
    assert_eq!(decides.status, 403, "an agent configured: {}", decides.text());
    desk.with(&session, "desk_agent_revoke", &json!({ "agent": "code" })).good();
    for _ in 0..2 {
        let replayed = desk.with(&token, "bridge_send_message", &send);
        assert_eq!(replayed.status, 401, "a revoked token: {}", replayed.text());
    }
    desk.with(&session, "desk_sign_out", &json!({})).good();
    let replayed = desk.with(&session, "desk_agent_add", &json!({ "agent": "again" }));
    assert_eq!(replayed.status, 401, "a session that was ended: {}", replayed.text());
    drop(desk);
    verify(&home);
}

#[test]
fn a_claim_link_is_good_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let (desk, _) = Desk::owned(&home);
    let code = desk.claim_code();
    let again = json!({ "code": code, "name": "Eve", "passphrase": "battery staple" });
    let answer = desk.http().post("/api/desk_claim", &[], again.to_string().as_bytes()).expect("the server answers");
    assert!((400..500).contains(&answer.status), "the link was good twice: {}", answer.text());
}

#[test]
fn a_thousand_idle_connections_hinder_nobody() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    // As many systems start a program: with room for fewer files than that.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -Sn 256; exec \"$0\" \"$@\""]).arg(BINARY).args(up(&home).get_args()).env("HOME", &home);
    let desk = Desk::launch(command, &home, &home).unwrap_or_else(|ended| panic!("{}", ended.stderr));
    // This process needs a file for each as well, and the server leaves half of its own for the rest.
    let (soft, hard) = file_limits();
    let wanted = usize::try_from(1_000_u64.min(soft - 100).min(hard / 2)).expect("a number");
    if wanted < 1_000 {
        testkit::skipped(&format!("the limit of open files allows {wanted} connections, not 1,000"));
    }
    let idle: Vec<_> = (0..wanted).map_while(|_| TcpStream::connect(&desk.address).ok()).collect();
    assert_eq!(idle.len(), wanted, "so many connections were accepted");
    let started = Instant::now();
    let mut http = desk.http();
    for n in 0..20 {
        http.send("code", "cowork", &format!("{n}")).expect("the server answers").good();
    }
    assert!(started.elapsed() < Duration::from_secs(5), "20 calls took {:?}", started.elapsed());
    let is_open = |stream: &&TcpStream| {
        stream.set_nonblocking(true).expect("a stream");
        stream.peek(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    assert_eq!(idle.iter().filter(is_open).count(), wanted, "nobody had to make room");
}

/// How many files this process may open now, and at most.
fn file_limits() -> (u64, u64) {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("Linux tells them");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
    let mut numbers = line.split_whitespace().map(|number| number.parse().unwrap_or(u64::MAX));
    (numbers.next().expect("the soft one"), numbers.next().expect("the hard one"))
}

#[test]
fn clients_of_the_local_socket_have_places_and_the_next_one_is_refused() {
    // This process holds the other ends, beside what other tests hold.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("the soft limit can be raised");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let desk = Desk::start(&home);
    let socket = home.join("desk.sock");
    eventually("the socket answers", Duration::from_secs(5), || UnixStream::connect(&socket).is_ok());
    let hello_after = |pause: Duration| -> (UnixStream, Value) {
        let mut stream = UnixStream::connect(&socket).expect("the socket takes callers");
        std::thread::sleep(pause);
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
        stream.write_all(b"{\"v\":1,\"toolsets\":[\"bridge\"],\"agent\":\"code\"}\n").expect("it can be written to");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("an answer");
        (stream, serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}")))
    };
    let hello = || hello_after(Duration::ZERO);
    let mut clients = Vec::new();
    for number in 1..=SOCKET_CALLERS_MAX {
        let (stream, answer) = hello();
        assert_eq!(answer["ok"], true, "client {number}: {answer}");
        clients.push(stream);
    }
    // However slow a client is to say who it is, it learns why it is refused.
    for pause in [Duration::ZERO, Duration::from_millis(100)] {
        let (_, refused) = hello_after(pause);
        assert_eq!((&refused["ok"], &refused["error"]["code"]), (&json!(false), &json!("limited")), "{refused}");
    }
    desk.http().send("code", "cowork", "the network has places of its own").expect("answers").good();
    drop(clients.pop());
    eventually("a place that is given back is taken again", Duration::from_secs(5), || hello().1["ok"] == true);
}

#[test]
fn a_second_server_on_the_same_directory_names_the_first() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let desk = Desk::start(&home);
    let done = up(&home).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains(&desk.child.id().to_string()), "{said}");
    desk.http().send("code", "cowork", "the first one goes on").expect("the server answers").good();
}

#[test]
fn sigterm_finishes_the_requests_under_way() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let mut desk = Desk::start(&home);
    let mut half = desk.http();
    let body = r#"{"to":"cowork","content":"in two parts"}"#;
    let head = format!(
        "POST /api/bridge_send_message HTTP/1.1\r\nhost: localhost\r\nx-deskmate-agent: code\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    half.write(head.as_bytes()).expect("the server reads");
    half.write(&body.as_bytes()[..10]).expect("the server reads");
    std::thread::sleep(Duration::from_millis(100));
    desk.signal("TERM");
    std::thread::sleep(Duration::from_millis(200));
    half.write(&body.as_bytes()[10..]).expect("the server still reads");
    half.read().expect("the request is finished").good();
    desk.ended();
    let desk = Desk::start(&home);
    assert_eq!(waiting(&mut desk.http(), "cowork").len(), 1);
}
