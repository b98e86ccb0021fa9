//! How many streams one credential may have open, over every way in which something can be followed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{Client, Desk, LONG, modern, until};
use crate::http::post;

/// What the documents promise.
const STREAMS_MAX: usize = 32;

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
