//! Upstreams over HTTP that misbehave, byte by byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use super::peer::{call, text};
use crate::upstream::{CallContext, Error, Pool, Spec, Transport};

/// What a server does with a call: an answer, byte by byte, and whether the connection stays.
type Reply = fn(&str, &Value) -> (String, bool);

fn json_answer(body: &Value) -> String {
    let body = body.to_string();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn status(line: &str) -> String {
    format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n")
}

/// A server of the newer era whose calls are answered as the tool's name says.
fn reply(tool: &str, id: &Value) -> (String, bool) {
    let done = json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "complete", "content": [{ "type": "text", "text": "done" }] } });
    let events = |body: String| format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}");
    match tool {
        "plain" => (json_answer(&done), true),
        // Says that it stays for less than a second longer.
        "short" => (json_answer(&done).replacen("\r\n", "\r\nkeep-alive: timeout=1\r\n", 1), true),
        // Says that it stays, and does not.
        "leaves" => (json_answer(&done), false),
        "stream" => (events(format!(": hello\n\ndata: {done}\n\n")), false),
        "cut" => (events(": hello\n\n".to_owned()), false),
        "broken" => ("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{".to_owned(), false),
        "nothing" => (String::new(), false),
        "large" => (json_answer(&json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": "x".repeat(30_000) }] } })), true),
        "large-event" => (events(format!("data: {}\n\n", "x".repeat(30_000))), false),
        "nonsense" => (json_answer(&json!(["nonsense"])), true),
        "html" => ("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 5\r\n\r\n<a/>\n".to_owned(), true),
        "401" => ("HTTP/1.1 401 No\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n".to_owned(), true),
        "429" => (status("429 Slower"), true),
        "404" => (status("404 Gone"), true),
        "502" => (status("502 Bad Gateway"), true),
        other => panic!("the server has no tool {other}"),
    }
}

/// What a server of the newer era says about itself.
fn discovered(id: &Value) -> String {
    let about = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "serverInfo": { "name": "web", "version": "1" },
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
    json_answer(&json!({ "jsonrpc": "2.0", "id": id, "result": about }))
}

/// Starts a server; counts its connections.
async fn server(reply: Reply) -> (Spec, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                while let Some(message) = request(&mut stream).await {
                    let id = message["id"].clone();
                    let (answer, stays) = match message["method"].as_str().unwrap_or_default() {
                        "server/discover" => (discovered(&id), true),
                        "tools/call" => reply(message["params"]["name"].as_str().unwrap_or_default(), &id),
                        _ => (status("202 Accepted"), true),
                    };
                    if stream.get_mut().write_all(answer.as_bytes()).await.is_err() || !stays {
                        return;
                    }
                }
            });
        }
    });
    let mut spec = Spec::new("web", Transport::Http { url, headers: [("x-key".to_owned(), "k".to_owned())].into() });
    spec.bounds.answer_bytes = 20_000;
    (spec, connections)
}

async fn request(stream: &mut BufReader<tokio::net::TcpStream>) -> Option<Value> {
    let (mut length, mut keyed) = (0, false);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        keyed |= line == "x-key: k";
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    assert!(keyed, "its header is sent with every request");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn connections_are_kept_and_a_stale_one_costs_nothing() {
    let (spec, connections) = server(reply).await;
    let pool = Pool::new();
    let upstream = pool.get(&spec, "code").await.unwrap();
    for _ in 0..20 {
        assert_eq!(text(&upstream.call_tool_once(call("plain"), &CallContext::default()).await.unwrap()), "done");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1, "one connection for all");
    for _ in 0..3 {
        assert_eq!(text(&upstream.call_tool_once(call("short"), &CallContext::default()).await.unwrap()), "done");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 3, "a connection that is about to be closed is not used again");
    for _ in 0..10 {
        assert_eq!(text(&upstream.call_tool_once(call("leaves"), &CallContext::default()).await.unwrap()), "done");
        assert_eq!(text(&upstream.call_tool_once(call("stream"), &CallContext::default()).await.unwrap()), "done");
    }
    assert_eq!(upstream.status().errors, 0);
}

#[tokio::test]
async fn every_way_to_fail_is_told_for_what_it_is() {
    let (mut spec, _) = server(reply).await;
    spec.bounds.call = std::time::Duration::from_secs(5);
    let pool = Pool::new();
    let upstream = pool.get(&spec, "code").await.unwrap();
    for (tool, ambiguous, never_sent) in [
        ("nothing", true, false),
        ("broken", true, false),
        ("502", true, false),
        ("401", false, true),
        ("429", false, true),
        ("404", false, true),
        ("large", false, false),
        ("large-event", false, false),
        ("nonsense", false, false),
        ("cut", true, false),
    ] {
        let error = upstream.call_tool_once(call(tool), &CallContext::default()).await.unwrap_err();
        assert_eq!((error.is_ambiguous(), error.was_never_sent()), (ambiguous, never_sent), "{tool}: {error:?}");
        assert!(!matches!(error, Error::TimedOut { .. }), "{tool}: at once: {error}");
    }
    assert!(upstream.call_tool_once(call("html"), &CallContext::default()).await.is_err());
    assert_eq!(text(&upstream.call_tool_once(call("plain"), &CallContext::default()).await.unwrap()), "done", "and it goes on");
}

#[tokio::test]
async fn what_is_not_there_was_never_sent_anything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let spec = Spec::new("web", Transport::Http { url, headers: [].into() });
    let Err(error) = Pool::new().get(&spec, "code").await else { panic!("nobody is there") };
    assert!(matches!(error, Error::NotStarted { .. }) && error.was_never_sent() && error.to_string().contains("refused"), "{error}");
    let far = Spec::new("web", Transport::Http { url: "http://192.0.2.1/mcp".into(), headers: [].into() });
    let Err(error) = Pool::new().get(&far, "code").await else { panic!("plain HTTP to another machine") };
    assert!(error.was_never_sent(), "{error}");
}

/// A server whose calls are never answered: it tells what was asked of it, and when the reader of an answer went away.
async fn waiting_server() -> (Spec, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let (mut stream, mut is_called) = (BufReader::new(stream), false);
                while let Some(message) = request(&mut stream).await {
                    let method = message["method"].as_str().unwrap_or_default().to_owned();
                    let answer = match method.as_str() {
                        "server/discover" => discovered(&message["id"]),
                        "tools/call" => "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n: hello\n\n".to_owned(),
                        _ => status("202 Accepted"),
                    };
                    is_called |= method == "tools/call";
                    drop(tell.send(method));
                    stream.get_mut().write_all(answer.as_bytes()).await.unwrap();
                }
                if is_called {
                    drop(tell.send("gone".to_owned()));
                }
            });
        }
    });
    (Spec::new("web", Transport::Http { url, headers: [("x-key".to_owned(), "k".to_owned())].into() }), told)
}

#[tokio::test]
async fn a_call_that_its_caller_takes_back_is_no_longer_read() {
    let (spec, mut told) = waiting_server().await;
    let upstream = Pool::new().get(&spec, "code").await.unwrap();
    let context = CallContext::default();
    let (cancel, called) = (context.cancel.clone(), Arc::clone(&upstream));
    let under_way = tokio::spawn(async move { called.call_tool_once(call("waits"), &context).await });
    let mut next = async || tokio::time::timeout(std::time::Duration::from_secs(10), told.recv()).await.expect("the server is told").unwrap();
    while next().await != "tools/call" {}
    cancel.cancel();
    let error = under_way.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Cancelled { sent: true, .. }) && error.is_ambiguous(), "{error:?}");
    // Servers of the newer era know by the end of the stream that nobody waits.
    while next().await != "gone" {}
}
