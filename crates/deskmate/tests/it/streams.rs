//! How many streams one credential may have open, over every way in which something can be followed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{Client, Desk, LONG, modern, until};
use crate::http::post;

/// What the documents promise.
const STREAMS_MAX: usize = 32;
const WAITS_MAX: usize = 128;

/// Opens a request that stays open and reads how it begins.
fn open(url: &str, request: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).expect("the server listens");
    stream.set_read_timeout(Some(LONG)).expect("a timeout");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut seen = Vec::new();
    while !seen.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).expect("an answer");
        assert!(count > 0, "it was closed: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&chunk[..count]);
    }
    (stream, String::from_utf8_lossy(&seen).into_owned())
}

fn follow(url: &str, path: &str, secret: &str) -> (TcpStream, String) {
    open(url, &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {secret}\r\n\r\n"))
}

/// `subscriptions/listen` over HTTP; the whole answer if it is refused.
fn listen(url: &str, secret: &str) -> (TcpStream, String) {
    let params = modern(json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["deskmate://messages"] } }));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params }).to_string();
    let head = "POST /mcp/bridge HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n";
    let era = "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n";
    let (mut stream, mut said) = open(url, &format!("{head}{era}authorization: Bearer {secret}\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
    stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut chunk) {
        said.push_str(&String::from_utf8_lossy(&chunk[..count]));
    }
    (stream, said)
}

/// An agent's token and a person's session on a closed desk.
fn closed(desk: &Desk) -> (String, String, String) {
    let token = desk.register("code");
    let url = desk.url();
    let signed_in: Value = serde_json::from_str(&post(&url, "/api/desk_sign_in", &[], "{\"passphrase\":\"correct horse\"}").body).expect("JSON");
    (url, token, signed_in["session"].as_str().expect("a session").to_owned())
}

#[test]
fn a_stream_for_a_name_that_nothing_proves_is_marked() {
    let desk = Desk::new();
    let url = desk.up();
    let (_stream, head) = open(&url, "GET /api/stream HTTP/1.1\r\nhost: localhost\r\nx-deskmate-agent: code\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("deskmate-unverified: true\r\n"), "{head}");
}

#[test]
fn one_credential_opens_only_so_many_streams() {
    let desk = Desk::new();
    let (url, token, session) = closed(&desk);
    let mut held: Vec<_> = (0..STREAMS_MAX).map(|_| follow(&url, "/api/stream", &token)).collect();
    assert!(held.iter().all(|(_, head)| head.contains(" 200 ")), "{held:?}");
    let (_, refused) = follow(&url, "/api/stream", &token);
    assert!(refused.contains(" 429 ") && refused.contains("retry-after") && refused.contains("\"limited\"") && refused.contains("\"hint\""), "{refused}");
    // By whatever way it comes.
    assert!(follow(&url, "/live", &token).1.contains(" 429 "));
    let (_, refused) = listen(&url, &token);
    assert!(refused.contains("\"limited\""), "{refused}");
    let mut client = Client::of(&desk, {
        let mut command = desk.command(&["mcp", "--toolset", "bridge"]);
        command.env("DESKMATE_TOKEN", &token);
        command
    });
    client.initialize("2025-11-25");
    let refused = client.fail("resources/subscribe", json!({ "uri": "deskmate://messages" }));
    assert_eq!(refused.pointer("/data/code"), Some(&json!("limited")), "{refused}");
    // Somebody else is not concerned: ten tabs work also where each has its own stream.
    let tabs: Vec<_> = (0..10).flat_map(|_| [follow(&url, "/live", &session), follow(&url, "/api/stream", &session)]).collect();
    assert!(tabs.iter().all(|(_, head)| head.contains(" 200 ")), "{tabs:?}");
    // Who just goes away, without a word, gives the place back.
    held.pop();
    let again = until("a place is free", || Some(follow(&url, "/api/stream", &token)).filter(|(_, head)| head.contains(" 200 ")));
    drop(again);
    until("the same for a subscription", || {
        let id = client.ask("resources/subscribe", json!({ "uri": "deskmate://messages" }));
        client.answer(id).get("result").cloned()
    });
    // All that a connection follows is one stream, and it ends with the last.
    client.call("resources/subscribe", json!({ "uri": "deskmate://tasks" }));
    assert!(follow(&url, "/api/stream", &token).1.contains(" 429 "));
    client.call("resources/unsubscribe", json!({ "uri": "deskmate://messages" }));
    assert!(follow(&url, "/api/stream", &token).1.contains(" 429 "));
    client.call("resources/unsubscribe", json!({ "uri": "deskmate://tasks" }));
    until("its place is free", || Some(follow(&url, "/api/stream", &token)).filter(|(_, head)| head.contains(" 200 ")));
}

#[test]
fn subscriptions_over_http_count_and_end_with_their_client() {
    let desk = Desk::new();
    let (url, token, _) = closed(&desk);
    let held: Vec<_> = (0..STREAMS_MAX - 1).map(|_| follow(&url, "/api/stream", &token)).collect();
    let (listening, said) = listen(&url, &token);
    assert!(said.contains("acknowledged") && !said.contains("limited"), "{said}");
    assert!(follow(&url, "/api/stream", &token).1.contains(" 429 "));
    drop(listening);
    until("its place is free", || Some(follow(&url, "/api/stream", &token)).filter(|(_, head)| head.contains(" 200 ")));
    drop(held);
}

/// Begins a call and leaves it.
fn begin(url: &str, operation: &str, secret: &str, input: &Value) -> TcpStream {
    let body = input.to_string();
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).expect("the server listens");
    let head = format!("POST /api/{operation} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer {secret}\r\n");
    stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).expect("the server reads");
    stream
}

#[test]
fn one_credential_waits_only_in_so_many_places() {
    let (desk, _folder, token) = crate::gateway::desk();
    let url = desk.url();
    let call = |operation: &str, input: &Value, secret: &str| {
        post(&url, &format!("/api/{operation}"), &[("Authorization", &format!("Bearer {secret}"))], &input.to_string())
    };
    let write = |text: &str, seconds: u64| json!({ "mount": "notes", "tool": "write", "arguments": { "text": text }, "timeout_seconds": seconds });
    let waiting: Value = serde_json::from_str(&call("gateway_call", &write("one", 0), &token).body).expect("JSON");
    let wait = |seconds: u64| json!({ "call_id": waiting["call_id"], "timeout_seconds": seconds });
    let other: Value = crate::workspace::person(&desk, &["agent", "add", "other", "--json", "--passphrase-stdin"]);
    let mut held: Vec<_> = (0..WAITS_MAX).map(|_| begin(&url, "gateway_result", &token, &wait(25))).collect();
    let refused = until("all places are taken", || {
        // Whoever still gets one keeps it, so that the next does not.
        let mut one = begin(&url, "gateway_result", &token, &wait(25));
        one.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
        let mut chunk = [0; 4096];
        if let Ok(count @ 1..) = one.read(&mut chunk) {
            return Some(String::from_utf8_lossy(&chunk[..count]).into_owned());
        }
        held.push(one);
        None
    });
    assert!(refused.contains(" 429 ") && refused.contains("\"limited\"") && refused.contains("timeout_seconds 0"), "{refused}");
    // What does not wait is answered as ever, and so is everybody else.
    assert_eq!(call("gateway_result", &wait(0), &token).status, 200);
    assert_eq!(call("bridge_wait_for_messages", &json!({ "timeout_seconds": 1 }), other["token"].as_str().expect("a token")).status, 200);
    // What was begun is not refused after the fact: it is told how it stands.
    let begun = std::time::Instant::now();
    let answer = call("gateway_call", &write("two", 25), &token);
    let answer: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert!(answer["state"] == "held" && begun.elapsed() < Duration::from_secs(15), "{answer}");
    // Who goes away gives the place back.
    drop(held);
    until("a place is free", || (call("gateway_result", &wait(1), &token).status == 200).then_some(()));
}
