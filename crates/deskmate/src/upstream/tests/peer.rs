//! The peer, and what the tests know of it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, ProgressNotificationParam};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use crate::upstream::{Relay, Spec, Transport};

/// Opens a stream to a peer in the same process.
type Open = dyn Fn() -> Result<DuplexStream, String> + Send + Sync;

/// A peer in the same process.
#[derive(Clone)]
pub(crate) struct Within(Arc<Open>);

impl Within {
    pub(crate) fn open(&self) -> Result<DuplexStream, String> {
        (self.0)()
    }
}

impl PartialEq for Within {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Within {}

/// What a test knows of its peer.
#[derive(Clone, Default)]
pub(super) struct Seen {
    lines: Arc<Mutex<Vec<Value>>>,
    opened: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
}

impl Seen {
    pub(super) fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    pub(super) fn open(&self) -> usize {
        self.opened() - self.closed.load(Ordering::SeqCst)
    }

    /// How often a method was called.
    pub(super) fn count(&self, method: &str) -> usize {
        self.lines.lock().unwrap().iter().filter(|line| line["method"] == method).count()
    }

    pub(super) fn last(&self, method: &str) -> Value {
        self.lines.lock().unwrap().iter().rev().find(|line| line["method"] == method).cloned().unwrap_or_default()
    }
}

/// Waits until something holds.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("not in time: {what}");
}

/// How a peer behaves before anything is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Legacy,
    Modern,
    /// Ends when it is spoken to in the newer era.
    Touchy,
    /// Answers everything that it does not know with nothing.
    Vague,
    /// Ends at once.
    Gone,
    /// Never says anything.
    Mute,
    /// Says something else.
    Babbling,
}

/// A spec of a peer, and what is seen of it.
pub(super) fn peer(kind: Kind) -> (Spec, Seen) {
    let seen = Seen::default();
    let shared = seen.clone();
    let open = move || {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        shared.opened.fetch_add(1, Ordering::SeqCst);
        let seen = shared.clone();
        tokio::spawn(async move {
            serve(kind, theirs, &seen).await;
            seen.closed.fetch_add(1, Ordering::SeqCst);
        });
        Ok(ours)
    };
    let mut spec = Spec::new("peer", Transport::Within(Within(Arc::new(open))));
    spec.bounds.answer_bytes = 20_000;
    (spec, seen)
}

async fn serve(kind: Kind, stream: DuplexStream, seen: &Seen) {
    let (read, write) = tokio::io::split(stream);
    let mut peer = Peer { lines: BufReader::new(read), write, kind, calls: 0 };
    match kind {
        Kind::Gone => return,
        Kind::Babbling => {
            for _ in 0..100 {
                if peer.write.write_all(b"Hello, I am no server.\n").await.is_err() {
                    return;
                }
            }
        }
        _ => {}
    }
    while let Some(line) = peer.read(seen).await {
        if !peer.answer(line, seen).await {
            return;
        }
    }
}

struct Peer {
    lines: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
    kind: Kind,
    calls: u32,
}

impl Peer {
    async fn read(&mut self, seen: &Seen) -> Option<Value> {
        let mut line = String::new();
        self.lines.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
        let line: Value = serde_json::from_str(&line).expect("JSON");
        seen.lines.lock().unwrap().push(line.clone());
        Some(line)
    }

    async fn say(&mut self, message: Value) {
        drop(self.write.write_all(format!("{message}\n").as_bytes()).await);
    }

    async fn result(&mut self, id: &Value, mut result: Value) {
        if self.kind == Kind::Modern && result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        // As servers in TypeScript write it.
        self.say(json!({ "result": result, "jsonrpc": "2.0", "id": id })).await;
    }

    async fn text(&mut self, id: &Value, text: &str) {
        self.result(id, json!({ "content": [{ "type": "text", "text": text }] })).await;
    }

    async fn answer(&mut self, line: Value, seen: &Seen) -> bool {
        let (id, params) = (line["id"].clone(), line["params"].clone());
        let can = json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true, "listChanged": true }, "prompts": {}, "completions": {} });
        let about = json!({ "name": "peer", "version": "1" });
        match (line["method"].as_str().unwrap_or_default(), self.kind) {
            (_, Kind::Mute) => {}
            ("server/discover", Kind::Modern) => {
                let versions = json!(["2026-07-28"]);
                self.result(&id, json!({ "supportedVersions": versions, "capabilities": can, "serverInfo": about, "ttlMs": 0, "cacheScope": "private" })).await;
            }
            ("server/discover", Kind::Touchy) => return false,
            ("initialize", Kind::Legacy | Kind::Touchy | Kind::Vague) => {
                self.result(&id, json!({ "protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": about })).await;
            }
            ("tools/list", _) => {
                let at: usize = params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
                let tools: Vec<Value> = (at..at + 3).map(|n| json!({ "name": format!("t{n}"), "inputSchema": { "type": "object" } })).collect();
                let mut page = json!({ "tools": tools, "ttlMs": 0, "cacheScope": "private" });
                if at < 6 {
                    page["nextCursor"] = json!((at + 3).to_string());
                }
                self.result(&id, page).await;
            }
            ("server/discover", Kind::Vague) | ("ping" | "resources/subscribe" | "resources/unsubscribe", _) => self.result(&id, json!({})).await,
            ("subscriptions/listen", Kind::Modern) => {
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
                let wanted = params["notifications"].clone();
                self.say(
                    json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": { "notifications": wanted, "_meta": meta } }),
                )
                .await;
                if let Some(uri) = wanted["resourceSubscriptions"][0].as_str() {
                    self.say(json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri, "_meta": meta } })).await;
                }
            }
            ("tools/call", _) => return self.call(&id, &params, seen).await,
            (method, _) if line.get("id").is_some() && !method.is_empty() => {
                self.say(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" } })).await;
            }
            _ => {}
        }
        true
    }

    async fn call(&mut self, id: &Value, params: &Value, seen: &Seen) -> bool {
        self.calls += 1;
        let token = &params["_meta"]["progressToken"];
        match params["name"].as_str().unwrap_or_default() {
            "echo" => self.text(id, &params["arguments"].to_string()).await,
            "meta" => self.text(id, &params["_meta"].to_string()).await,
            "die" => return false,
            "hang" => {}
            "big" => self.text(id, &"x".repeat(30_000)).await,
            "error" => self.say(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "no such thing" } })).await,
            "wrong" => self.result(id, json!({ "tools": [], "ttlMs": 0, "cacheScope": "private" })).await,
            "twice" => {
                // An answer to nobody, a request under the same id, and the answer twice.
                self.say(json!({ "jsonrpc": "2.0", "id": 99_999, "result": {} })).await;
                self.say(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).await;
                self.text(id, "once").await;
                self.text(id, "again").await;
            }
            "steps" => {
                for step in 1..=5 {
                    self.say(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": step } })).await;
                    tokio::time::sleep(Duration::from_millis(60)).await;
                }
                self.text(id, "done").await;
            }
            "changes" => {
                self.say(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })).await;
                self.say(json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "a://b" } })).await;
                self.text(id, "done").await;
            }
            tool @ ("ask" | "ask_under_its_id") => {
                // Both sides choose their ids for themselves, and may choose the same.
                let own = if tool == "ask" { json!(900) } else { id.clone() };
                let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
                let asked = json!({ "message": "Who?", "requestedSchema": schema });
                self.say(json!({ "jsonrpc": "2.0", "id": own, "method": "elicitation/create", "params": asked })).await;
                loop {
                    let Some(line) = self.read(seen).await else { return false };
                    if line["id"] == own && line.get("method").is_none() {
                        self.text(id, &line["result"].to_string()).await;
                        return true;
                    }
                    if line["method"] == "notifications/cancelled" {
                        return true;
                    }
                }
            }
            "round" if params["requestState"] == "s1" => self.text(id, &params["inputResponses"].to_string()).await,
            "round" => {
                let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
                let asked = json!({ "who": { "method": "elicitation/create", "params": { "message": "Who?", "requestedSchema": schema } } });
                self.result(id, json!({ "resultType": "input_required", "inputRequests": asked, "requestState": "s1" })).await;
            }
            other => panic!("the peer has no tool {other}"),
        }
        true
    }
}

pub(super) fn call(name: &str) -> CallToolRequestParams {
    let arguments = json!({ "n": 1 }).as_object().cloned().unwrap();
    CallToolRequestParams::new(name.to_owned()).with_arguments(arguments)
}

/// The text of an answer.
pub(super) fn text(answer: &CallToolResponse) -> String {
    let CallToolResponse::Complete(result) = answer else { panic!("not complete: {answer:?}") };
    assert_eq!(serde_json::to_value(result).unwrap()["resultType"], "complete", "stamped for clients of the newer era");
    serde_json::to_value(result).unwrap()["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// A caller that answers, and remembers.
#[derive(Default)]
pub(super) struct Caller {
    pub(super) asked: AtomicUsize,
    pub(super) progress: Mutex<Vec<f64>>,
}

impl Relay for Caller {
    fn elicit(&self, _: ElicitRequestParams) -> BoxFuture<'_, Result<ElicitResult, ErrorData>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "name": "Ada" }));
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn progress(&self, progress: ProgressNotificationParam) {
        self.progress.lock().unwrap().push(progress.progress);
    }
}
