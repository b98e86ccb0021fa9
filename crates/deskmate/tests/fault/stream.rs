//! The live stream across reconnects: nothing lost, nothing told twice, nothing that is not for the reader.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Chance, Desk};

/// Reads events of `/api/stream` until `enough` says so; ids and data.
pub(crate) fn follow(address: &str, credential: &str, query: &str, last: Option<u64>, mut enough: impl FnMut(&[(u64, Value)]) -> bool) -> Vec<(u64, Value)> {
    let mut stream = TcpStream::connect(address).expect("the server answers");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    let last = last.map_or(String::new(), |last| format!("last-event-id: {last}\r\n"));
    write!(stream, "GET /api/stream{query} HTTP/1.1\r\nhost: localhost\r\n{credential}\r\n{last}\r\n").expect("the server reads");
    let mut found = Vec::new();
    let mut id = None;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        if let Some(number) = line.strip_prefix("id:") {
            id = number.trim().parse().ok();
        } else if let Some(data) = line.strip_prefix("data:") {
            if let (Some(id), Ok(data)) = (id.take(), serde_json::from_str(data.trim())) {
                found.push((id, data));
            }
            if enough(&found) {
                break;
            }
        }
    }
    found
}

#[test]
fn reconnects_lose_and_repeat_nothing() {
    const MESSAGES: usize = 120;
    let mut chance = Chance::new("stream");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let desk = Desk::start(&directory.path().join("home"));
    let address = desk.address.clone();
    let reader = std::thread::spawn(move || {
        let mut all: Vec<(u64, Value)> = Vec::new();
        while all.len() < MESSAGES {
            let take = 1 + usize::try_from(chance.below(15)).expect("small");
            let last = all.last().map(|(seq, _)| *seq);
            let left = MESSAGES - all.len();
            all.extend(follow(&address, "x-deskmate-agent: cowork", "?from=0", last, |found| found.len() >= take.min(left)));
        }
        all
    });
    let mut http = desk.http();
    for n in 0..MESSAGES {
        http.send("code", "cowork", &format!("message {n}")).expect("the server answers").good();
    }
    let all = reader.join().expect("the reader ends");
    let contents: Vec<_> = all.iter().map(|(_, event)| event["payload"]["content"].as_str().unwrap_or_default().to_owned()).collect();
    let expected: Vec<_> = (0..MESSAGES).map(|n| format!("message {n}")).collect();
    assert_eq!(contents, expected);
    assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0), "the order is not that of the record");
}

#[test]
fn the_stream_shows_an_agent_only_what_concerns_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (desk, session) = Desk::owned(&directory.path().join("home"));
    let token = |agent: &str| desk.with(&session, "desk_agent_add", &json!({ "agent": agent })).good()["token"].as_str().expect("a token").to_owned();
    let (code, cowork, other) = (token("code"), token("cowork"), token("other"));
    for n in 0..5 {
        desk.with(&code, "bridge_send_message", &json!({ "to": "cowork", "content": format!("secret {n}") })).good();
    }
    desk.with(&code, "bridge_send_message", &json!({ "to": "other", "content": "the end" })).good();
    let read = |secret: &str, last: &str| {
        let ends = |found: &[(u64, Value)]| found.last().is_some_and(|(_, event)| event["payload"]["content"] == last);
        follow(&desk.address, &format!("authorization: Bearer {secret}"), "?from=0", None, ends)
    };
    let sent = |seen: &[(u64, Value)]| seen.iter().filter(|(_, event)| event["kind"] == "message.sent").count();
    let seen = read(&other, "the end");
    assert_eq!(sent(&seen), 1, "{seen:?}");
    assert!(!format!("{seen:?}").contains("secret"), "{seen:?}");
    assert_eq!(sent(&read(&cowork, "secret 4")), 5);
    let bad = desk.http().get("/api/stream?from=0", &[("authorization", "Bearer dma_wrong")]).expect("the server answers");
    assert_eq!(bad.status, 401);
}

#[test]
fn a_reconnect_before_the_first_event_loses_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let desk = Desk::start(&directory.path().join("home"));
    // Opened without a place, and cut before anything came: all it got is where it stands.
    let mut stream = TcpStream::connect(&desk.address).expect("the server answers");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    write!(stream, "GET /api/stream HTTP/1.1\r\nhost: localhost\r\nx-deskmate-agent: cowork\r\n\r\n").expect("the server reads");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let last = lines.find_map(|line| line.strip_prefix("id:").and_then(|id| id.trim().parse::<u64>().ok())).expect("a place");
    drop(lines);
    desk.http().send("code", "cowork", "in between").expect("the server answers").good();
    let seen = follow(&desk.address, "x-deskmate-agent: cowork", "", Some(last), |found| !found.is_empty());
    assert_eq!(seen[0].1["payload"]["content"], "in between");
}

#[test]
fn the_stream_keeps_to_the_scopes_of_a_token() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (desk, session) = Desk::owned(&directory.path().join("home"));
    let make = |scope: &str| {
        let made = desk.with(&session, "desk_token_create", &json!({ "note": "script", "scopes": [scope] })).good();
        format!("Bearer {}", made["token"].as_str().expect("a token"))
    };
    let narrow = make("bridge_send_message:write");
    let answer = desk.http().get("/api/stream?from=0", &[("authorization", &narrow)]).expect("the server answers");
    assert_eq!((answer.status, answer.code()), (403, "forbidden".to_owned()), "{}", answer.text());
    let wide = make("desk_record_list:read");
    let seen = follow(&desk.address, &format!("authorization: {wide}"), "?from=0", None, |found| found.len() > 2);
    assert!(seen.len() > 2);
}

#[test]
fn extreme_places_in_the_record_are_answered() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let desk = Desk::start(&directory.path().join("home"));
    for last in [u64::MAX, u64::MAX - 1, 1 << 63] {
        let mut stream = TcpStream::connect(&desk.address).expect("the server answers");
        write!(stream, "GET /api/stream HTTP/1.1\r\nhost: localhost\r\nx-deskmate-agent: code\r\nlast-event-id: {last}\r\n\r\n").expect("the server reads");
        let mut first = String::new();
        BufReader::new(stream).read_line(&mut first).expect("an answer");
        assert!(first.contains("200"), "{last}: {first}");
    }
    desk.http().send("code", "cowork", "still here").expect("the server answers").good();
    assert!(!desk.log().contains("panicked"), "{}", desk.log());
}

#[test]
fn a_silent_desk_gives_a_sign_of_life() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let desk = Desk::start(&directory.path().join("home"));
    let mut stream = TcpStream::connect(&desk.address).expect("the server answers");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
    write!(stream, "GET /api/stream HTTP/1.1\r\nhost: localhost\r\nx-deskmate-agent: cowork\r\n\r\n").expect("the server reads");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with(": alive")), "the stream ended without a sign of life");
}
