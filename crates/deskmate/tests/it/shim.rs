//! How the stdio shim lives: when it leaves, and what it survives.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{Client, Desk, modern, until};

const BRIDGE: &[&str] = &["--toolset", "bridge", "--agent", "code"];

fn with(args: &[&'static str]) -> Vec<&'static str> {
    [BRIDGE, args].concat()
}

#[test]
fn it_stays_unless_told_otherwise() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, BRIDGE);
    client.initialize("2025-06-18");
    assert_eq!(client.ended(Duration::from_secs(3)), None);
    client.call("ping", json!({}));
}

#[test]
fn it_ends_with_stdin() {
    let desk = Desk::new();
    desk.up();
    let mut quiet = Client::start(&desk, BRIDGE);
    quiet.close();
    assert_eq!(quiet.ended(Duration::from_secs(2)).and_then(|status| status.code()), Some(0));
    let mut used = Client::start(&desk, BRIDGE);
    used.initialize("2025-06-18");
    // What was asked before the end is still answered.
    let last = used.ask("tools/list", json!({}));
    used.close();
    used.answer(last);
    assert_eq!(used.ended(Duration::from_secs(2)).and_then(|status| status.code()), Some(0));
    // A call that holds does not hold up the end.
    let mut holding = Client::start(&desk, BRIDGE);
    holding.initialize("2025-06-18");
    holding.ask("tools/call", json!({ "name": "wait_for_messages", "arguments": {} }));
    holding.close();
    assert_eq!(holding.ended(Duration::from_secs(4)).and_then(|status| status.code()), Some(0));
}

#[test]
fn it_leaves_when_idle_even_if_never_asked() {
    let desk = Desk::new();
    desk.up();
    let mut flag = Client::start(&desk, &with(&["--idle-exit", "1000ms"]));
    let mut command = desk.command(&[&["mcp"], BRIDGE].concat());
    command.env("COS_MCP_IDLE_EXIT_MS", "1000");
    let mut environment = Client::of(&desk, command);
    assert_eq!(flag.ended(Duration::from_millis(700)), None);
    for client in [&mut flag, &mut environment] {
        assert_eq!(client.ended(Duration::from_millis(2_800)).and_then(|status| status.code()), Some(0));
    }
}

#[test]
fn traffic_keeps_it_and_silence_ends_it() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, &with(&["--idle-exit", "1s"]));
    client.initialize("2025-06-18");
    for _ in 0..6 {
        std::thread::sleep(Duration::from_millis(500));
        client.call("tools/list", json!({}));
    }
    assert_eq!(client.ended(Duration::from_millis(300)), None);
    assert_eq!(client.ended(Duration::from_millis(3_200)).and_then(|status| status.code()), Some(0));
}

#[test]
fn a_call_under_way_keeps_it_and_a_cancelled_one_does_not() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, &with(&["--idle-exit", "700ms"]));
    client.initialize("2025-06-18");
    let waiting = client.ask("tools/call", json!({ "name": "wait_for_messages", "arguments": { "timeout_seconds": 25 } }));
    assert_eq!(client.ended(Duration::from_millis(2_500)), None);
    client.notify("notifications/cancelled", json!({ "requestId": waiting }));
    assert_eq!(client.ended(Duration::from_millis(3_200)).and_then(|status| status.code()), Some(0));
}

#[test]
fn many_at_once_start_one_server() {
    let desk = Desk::new();
    let mut clients: Vec<Client> = (0..6).map(|_| Client::start(&desk, BRIDGE)).collect();
    for client in &mut clients {
        client.initialize("2025-11-25");
    }
    // It answers before it says so.
    let told = || std::fs::read_to_string(desk.path().join("server.log")).ok().filter(|log| log.contains("listening"));
    let log = until("no server says that it listens", told);
    assert_eq!(log.matches("listening").count(), 1, "{log}");
}

#[test]
fn a_new_server_takes_over_under_it() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, &["--toolset", "bridge", "--agent", "cowork"]);
    client.initialize("2025-11-25");
    client.call("resources/subscribe", json!({ "uri": "deskmate://messages" }));
    let waiting = client.ask("tools/call", json!({ "name": "wait_for_messages", "arguments": { "timeout_seconds": 25 } }));
    client.call("tools/list", json!({}));
    let before = desk.holder();
    desk.kill_server();
    let failed = client.answer(waiting);
    assert_eq!(failed.pointer("/error/data/retryable"), Some(&json!(true)), "{failed}");
    let list = client.call("tools/list", json!({}));
    assert!(list.get("tools").is_some());
    assert_ne!(desk.holder().and_then(|holder| holder.get("pid").cloned()), before.and_then(|holder| holder.get("pid").cloned()));
    // The client is not told what it knows already, and hears of news again.
    assert!(client.aside.iter().all(|message| message.get("id").is_none()), "{:?}", client.aside);
    client.call("resources/read", json!({ "uri": "deskmate://messages" }));
    std::thread::sleep(Duration::from_millis(200));
    let mut code = Client::start(&desk, BRIDGE);
    code.initialize("2025-11-25");
    code.tool("send_message", json!({ "to": "cowork", "content": "after the restart" }));
    client.notification("notifications/resources/updated");
}

#[test]
fn streams_of_the_newer_era_go_on_over_a_new_server() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, &["--toolset", "bridge", "--agent", "cowork"]);
    let filter = json!({ "notifications": { "resourceSubscriptions": ["deskmate://messages"] } });
    let stream = client.ask("subscriptions/listen", modern(filter));
    client.notification("notifications/subscriptions/acknowledged");
    desk.kill_server();
    let mut code = Client::start(&desk, BRIDGE);
    code.initialize("2025-11-25");
    // The stream is followed again a moment after the server is back.
    std::thread::sleep(Duration::from_millis(600));
    code.tool("send_message", json!({ "to": "cowork", "content": "after the restart" }));
    let told = client.notification("notifications/resources/updated");
    assert_eq!(told.pointer("/params/_meta/io.modelcontextprotocol~1subscriptionId"), Some(&json!(stream)), "{told}");
    assert_eq!(client.aside, Vec::<Value>::new());
}

#[test]
fn a_server_that_was_stopped_stays_down_until_it_is_needed() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, BRIDGE);
    client.initialize("2025-11-25");
    assert!(desk.run(&["stop"]).status.success());
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(!desk.path().join("desk.sock").exists());
    // Somebody starts another one: it is used without more ado.
    desk.up();
    let other = desk.holder();
    assert!(client.call("tools/list", json!({})).get("tools").is_some());
    assert_eq!(desk.holder(), other);
    // Nobody does: the next request brings one.
    assert!(desk.run(&["stop"]).status.success());
    assert!(client.call("tools/list", json!({})).get("tools").is_some());
    assert_ne!(desk.holder(), other);
}

#[test]
fn a_refusal_reaches_the_client_and_the_log() {
    let desk = Desk::new();
    let token = desk.register("code");
    let opening = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    let mut without = Client::start(&desk, BRIDGE);
    let error = without.fail("initialize", opening.clone());
    assert_eq!(error.pointer("/data/code"), Some(&json!("unauthenticated")), "{error}");
    assert!(error.get("message").and_then(Value::as_str).is_some_and(|message| message.contains("token")), "{error}");
    assert!(without.log().contains("token"), "{}", without.log());
    without.close();
    assert_eq!(without.ended(Duration::from_secs(2)).and_then(|status| status.code()), Some(0));

    let file = desk.path().join("token");
    std::fs::write(&file, format!("{token}\n")).expect("written");
    let path = file.to_str().expect("text").to_owned();
    let mut known = Client::start(&desk, &["--toolset", "bridge", "--agent", "code", "--token-file", &path]);
    known.initialize("2025-06-18");
    let answer = known.tool("get_tasks", json!({}));
    assert_eq!(answer.pointer("/_meta/deskmate~1unverified"), None, "{answer}");
    assert!(!known.log().contains(&token));

    let mut other = Client::start(&desk, &["--toolset", "bridge", "--agent", "cowork", "--token-file", &path]);
    assert_eq!(other.fail("initialize", opening.clone()).pointer("/data/code"), Some(&json!("forbidden")));
    let mut lost = Client::start(&desk, &["--toolset", "bridge", "--agent", "code", "--token-file", "/nowhere"]);
    assert_eq!(lost.fail("initialize", opening).pointer("/data/code"), Some(&json!("unauthenticated")));
}

#[test]
fn toolsets_that_are_planned_get_a_note_and_unknown_ones_a_refusal() {
    let desk = Desk::new();
    let mut usual = Client::start(&desk, &["--toolset", "bridge,board", "--agent", "code"]);
    usual.initialize("2025-06-18");
    assert!(usual.log().contains("board is planned"), "{}", usual.log());
    let mut wrong = Client::start(&desk, &["--toolset", "brigde", "--agent", "code"]);
    let error = wrong.fail("initialize", json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } }));
    assert!(error.get("message").and_then(Value::as_str).is_some_and(|message| message.contains("brigde") && message.contains("known: bridge")), "{error}");
    // Whoever starts it by hand asks nothing, and is told all the same.
    for closed in [Stdio::null(), Stdio::piped()] {
        let output = desk.command(&["mcp", "--toolset", "brigde", "--agent", "code"]).stdin(closed).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
        assert!(said.contains("brigde") && said.contains("known: bridge"), "{said}");
    }
    assert_eq!(desk.command(&["mcp", "--toolset", "bridge", "--agent", "code"]).stdin(Stdio::null()).status().expect("it runs").code(), Some(0));
}

#[test]
fn the_socket_refuses_bad_hellos_and_is_for_its_owner_only() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    let desk = Desk::new();
    desk.up();
    let path = desk.path().join("desk.sock");
    assert_eq!(std::fs::metadata(&path).expect("a socket").permissions().mode() & 0o777, 0o600);
    let long = format!("{}\n", "x".repeat(100_000));
    for (hello, says) in [("nonsense\n", "hello"), ("{\"v\":2}\n", "version"), (long.as_str(), "65536"), ("{\"v\":1,\"toolsets\":[\"x\"]}\n", "no toolset")] {
        let mut stream = UnixStream::connect(&path).expect("the server listens");
        drop(stream.write_all(hello.as_bytes()));
        let mut answer = String::new();
        drop(BufReader::new(stream).read_line(&mut answer));
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{answer:?}: {error}"));
        assert_eq!(answer.get("ok"), Some(&json!(false)));
        assert!(answer.to_string().contains(says), "{answer}");
    }
    until("the server still answers", || UnixStream::connect(&path).ok());
}
