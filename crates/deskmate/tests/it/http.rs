//! MCP over HTTP, byte by byte.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::desk::{Desk, LONG, modern};

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{}: {error}", self.body))
    }
}

/// One request on one connection. Headers replace the usual ones of the same name.
pub(crate) fn get(url: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    request("GET", url, path, headers, b"")
}

pub(crate) fn post(url: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    request("POST", url, path, headers, body.as_bytes())
}

pub(crate) fn request(method: &str, url: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let host = url.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(host).expect("the server listens");
    stream.set_read_timeout(Some(LONG)).expect("a timeout");
    let given = |name: &str| headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in [("Host", host), ("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")] {
        if !given(name) {
            request.extend([name, ": ", value, "\r\n"]);
        }
    }
    for (name, value) in headers {
        request.extend([name, ": ", value, "\r\n"]);
    }
    request.push_str("\r\n");
    // A server that refuses a large body answers and closes before it has read all of it.
    drop(stream.write_all(&[request.as_bytes(), body].concat()));
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    let bytes = answer.windows(4).position(|end| end == b"\r\n\r\n").map_or_else(Vec::new, |at| answer.split_off(at + 4));
    let text = format!("{}{}", String::from_utf8_lossy(&answer), String::from_utf8_lossy(&bytes));
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text.as_str(), ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no status in {text:?}"));
    Answer { status, head: head.to_owned(), body: body.to_owned(), bytes }
}

fn modern_post(url: &str, path: &str, method: &str, name: Option<&str>, more: &[(&str, &str)], params: Value) -> Answer {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern(params) }).to_string();
    let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
    headers.extend(name.map(|name| ("Mcp-Name", name)));
    headers.extend(more);
    post(url, path, &headers, &body)
}

fn legacy_post(url: &str, path: &str, method: &str, params: &Value) -> Answer {
    post(url, path, &[], &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
}

#[test]
fn both_eras_share_an_endpoint_without_sessions() {
    let desk = Desk::new();
    let url = desk.up();
    let client = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    let answer = legacy_post(&url, "/mcp", "initialize", &client);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!answer.head.to_lowercase().contains("mcp-session-id"), "{}", answer.head);
    let result = answer.json();
    assert_eq!(result.pointer("/result/protocolVersion"), Some(&json!("2025-06-18")));
    // Without a session nothing could be told later, so subscribing is not offered.
    assert_eq!(result.pointer("/result/capabilities/resources"), Some(&json!({})));
    let old = legacy_post(&url, "/mcp/bridge", "tools/list", &json!({})).json();
    let new = modern_post(&url, "/mcp/bridge", "tools/list", None, &[], json!({})).json();
    assert_eq!(old.pointer("/result/tools"), new.pointer("/result/tools"));
    assert_eq!(new.pointer("/result/resultType"), Some(&json!("complete")));
}

#[test]
fn names_and_tokens_come_with_each_request() {
    let desk = Desk::new();
    let url = desk.up();
    let list = |path: &str, headers: &[(&str, &str)]| {
        modern_post(&url, path, "tools/call", Some("get_tasks"), headers, json!({ "name": "get_tasks", "arguments": {} })).json()
    };
    let by_query = list("/mcp/bridge?agent=code", &[]);
    assert_eq!(by_query.pointer("/result/isError"), Some(&json!(false)), "{by_query}");
    assert_eq!(by_query.pointer("/result/_meta/deskmate~1unverified"), Some(&json!(true)));
    let by_header = list("/mcp/bridge", &[("X-Deskmate-Agent", "code")]);
    assert_eq!(by_header.pointer("/result/isError"), Some(&json!(false)));
    let nameless = list("/mcp/bridge", &[]);
    assert_eq!(nameless.pointer("/result/isError"), Some(&json!(true)));
    for bad in ["Bearer nonsense", "Basic Y29kZTo=", "dma_x"] {
        let answer = list("/mcp/bridge?agent=code", &[("Authorization", bad)]);
        assert_eq!(answer.pointer("/result/isError"), Some(&json!(true)), "{bad}: {answer}");
    }
}

#[test]
fn closed_desks_take_tokens_only() {
    let desk = Desk::new();
    let token = desk.register("code");
    let url = desk.url();
    let list =
        |headers: &[(&str, &str)]| modern_post(&url, "/mcp/bridge?agent=code", "tools/call", Some("get_tasks"), headers, json!({ "name": "get_tasks" })).json();
    let bearer = format!("Bearer {token}");
    let known = list(&[("Authorization", &bearer)]);
    assert_eq!(known.pointer("/result/isError"), Some(&json!(false)), "{known}");
    assert_eq!(known.pointer("/result/_meta/deskmate~1unverified"), None);
    let unknown = list(&[]);
    assert_eq!(unknown.pointer("/result/_meta/deskmate~1error/code"), Some(&json!("unauthenticated")), "{unknown}");
}

#[test]
fn a_personal_token_keeps_to_its_scopes_here_too() {
    let desk = Desk::new();
    desk.register("code");
    let url = desk.url();
    let session = post(&url, "/api/desk_sign_in", &[], "{\"passphrase\":\"correct horse\"}").json();
    let person = format!("Bearer {}", session["session"].as_str().expect("a session"));
    let made = post(&url, "/api/desk_token_create", &[("Authorization", &person)], "{\"note\":\"x\",\"scopes\":[\"bridge:read\"]}").json();
    let token = format!("Bearer {}", made["token"].as_str().expect("a token"));
    let call = |name: &str, arguments: Value| {
        modern_post(&url, "/mcp/bridge", "tools/call", Some(name), &[("Authorization", &token)], json!({ "name": name, "arguments": arguments })).json()
    };
    assert_eq!(call("get_tasks", json!({})).pointer("/result/isError"), Some(&json!(false)));
    let refused = call("send_message", json!({ "to": "code", "content": "x" }));
    assert_eq!(refused.pointer("/result/_meta/deskmate~1error/code"), Some(&json!("forbidden")), "{refused}");
}

#[test]
fn foreign_hosts_and_origins_large_bodies_and_unknown_toolsets_are_refused() {
    let desk = Desk::new();
    let url = desk.up();
    let try_with = |path: &str, headers: &[(&str, &str)]| modern_post(&url, path, "tools/list", None, headers, json!({})).status;
    assert_eq!(try_with("/mcp", &[]), 200);
    assert_eq!(try_with("/mcp", &[("Host", "evil.example")]), 403);
    assert_eq!(try_with("/mcp", &[("Origin", "http://evil.example")]), 403);
    assert_eq!(try_with("/mcp", &[("Origin", "http://localhost:1")]), 403);
    assert_eq!(try_with("/mcp", &[("Origin", &url)]), 200);
    assert_eq!(try_with("/mcp/nonsense", &[]), 404);
    assert_eq!(try_with("/mcp/desk", &[]), 404);
    let large = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "x": "y".repeat(5 << 20) } }).to_string();
    assert_eq!(post(&url, "/mcp", &[], &large).status, 413);
    assert_eq!(try_with("/mcp", &[]), 200);
}

#[test]
fn malformed_json_rpc_is_refused_and_the_endpoint_goes_on() {
    let desk = Desk::new();
    let url = desk.up();
    let nested = |levels: usize| {
        let arguments = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{{\"name\":\"get_tasks\",\"arguments\":{arguments}}}}}")
    };
    let lists = || {
        let listed = legacy_post(&url, "/mcp/bridge", "tools/list", &json!({}));
        assert!(listed.status == 200 && listed.json().pointer("/result/tools/0/name").is_some(), "{}", listed.body);
    };
    for (body, code, id) in [
        (String::new(), -32700, Value::Null),
        ("nonsense".to_owned(), -32700, Value::Null),
        ("{".to_owned(), -32700, Value::Null),
        (nested(500).replace("}}", "}"), -32700, Value::Null),
        ("[]".to_owned(), -32600, Value::Null),
        ("null".to_owned(), -32600, Value::Null),
        ("{}".to_owned(), -32600, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":7,"method":"tools/list"}]"#.to_owned(), -32600, Value::Null),
        (r#"{"jsonrpc":"1.0","id":7,"method":"tools/list"}"#.to_owned(), -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":{},"method":1}"#.to_owned(), -32600, Value::Null),
        (nested(500), -32600, json!(7)),
    ] {
        let answer = post(&url, "/mcp/bridge?agent=code", &[], &body);
        assert_eq!(answer.status, 400, "{body:.80}: {}", answer.body);
        let said = answer.json();
        assert_eq!((said.pointer("/error/code"), said.get("id")), (Some(&json!(code)), Some(&id)), "{body:.80}: {said}");
        lists();
    }
    // What is well formed and too deep for an operation is refused by the operation.
    for levels in [11, 90] {
        let answer = post(&url, "/mcp/bridge?agent=code", &[], &nested(levels));
        assert_eq!(answer.json().pointer("/result/_meta/deskmate~1error/code"), Some(&json!("invalid")), "{levels}: {}", answer.body);
        lists();
    }
    let other = post(&url, "/mcp/bridge", &[("Content-Type", "text/plain")], "{}");
    assert_eq!(other.status, 415, "{}", other.body);
}

#[test]
fn read_only_narrows() {
    let desk = Desk::new();
    let url = desk.up();
    let answer = modern_post(&url, "/mcp/bridge?read_only=true", "tools/list", None, &[], json!({})).json();
    let tools = answer.pointer("/result/tools").and_then(Value::as_array).expect("tools");
    assert!(!tools.is_empty());
    assert!(tools.iter().all(|tool| tool.pointer("/annotations/readOnlyHint") == Some(&json!(true))));
}
