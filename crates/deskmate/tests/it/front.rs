//! `deskmate front` with real children, good and bad.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::desk::modern;
use crate::http::{Answer, get, post};
use crate::running::until;

/// A server of the older era that does what the name of the tool says.
const CHILD: &str = r#"
import json, os, signal, subprocess, sys
def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n"); sys.stdout.flush()
def text(id, text):
    say(id=id, result={"content": [{"type": "text", "text": text}]})
print("ready to be bad", file=sys.stderr, flush=True)
if "at-once" in sys.argv:
    print("no configuration found", file=sys.stderr, flush=True); sys.exit(3)
for line in sys.stdin:
    message = json.loads(line); id, method = message.get("id"), message.get("method")
    if method == "initialize":
        say(id=id, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "bad", "version": "1"}})
    elif method == "tools/list":
        say(id=id, result={"tools": [{"name": "pid", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        name = message["params"]["name"]
        if name == "pid": text(id, str(os.getpid()))
        elif name == "env": text(id, json.dumps(sorted(os.environ)))
        elif name == "umask": text(id, oct(os.umask(0)))
        elif name == "die": os.kill(os.getpid(), signal.SIGKILL)
        elif name == "hang": pass
        elif name == "garbage":
            for _ in range(1000): print("I am no message")
            sys.stdout.flush()
        elif name == "flood":
            for n in range(5000): say(method="notifications/message", params={"level": "info", "data": "x" * 200})
            text(id, "dry")
        elif name == "large": text(id, "x" * (5 << 20))
        elif name == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            inner = subprocess.Popen(["sleep", "300"])
            outer = subprocess.Popen(["sleep", "300"], start_new_session=True)
            text(id, json.dumps([os.getpid(), inner.pid, outer.pid]))
        elif name == "ask":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            say(id=7, method="elicitation/create", params={"message": "Who?", "requestedSchema": schema})
            while True:
                answer = json.loads(sys.stdin.readline())
                if answer.get("id") == 7 and "method" not in answer: break
            text(id, json.dumps(answer.get("result")))
    elif id is not None:
        say(id=id, error={"code": -32601, "message": "Method not found"})
# Closed streams are no reason to leave.
if signal.getsignal(signal.SIGTERM) == signal.SIG_IGN:
    import time; time.sleep(300)
"#;

/// A front that ends with the test.
struct Front {
    process: Child,
    url: String,
    token: Option<String>,
    _home: TempDir,
}

fn command(home: &TempDir, options: &[&str], server: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deskmate"));
    command.env("HOME", home.path()).env("DESKMATE_TOKEN", "a-secret-of-the-desk").env("DESKMATE_HOME", home.path().join("none"));
    command.args(["front", "--json", "--listen", "127.0.0.1:0"]).args(options);
    command.arg("--").args(server).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

impl Front {
    fn start(options: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut process = command(&home, options, &["python3", "-c", CHILD]).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        let url = said["url"].as_str().and_then(|url| url.strip_suffix("/mcp")).expect("an address").to_owned();
        Self { process, url, token: said["token"].as_str().map(str::to_owned), _home: home }
    }

    fn send(&self, more: &[(&str, &str)], body: &Value) -> Answer {
        let authorization = format!("Bearer {}", self.token.clone().unwrap_or_default());
        let mut headers = vec![("Authorization", authorization.as_str())];
        headers.extend(more);
        post(&self.url, "/mcp", &headers, &body.to_string())
    }

    /// A call in the older era; the result or the error.
    fn call(&self, tool: &str) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": {} } });
        said(&self.send(&[("MCP-Protocol-Version", "2025-11-25")], &body))
    }

    /// The same in the newer one.
    fn modern(&self, tool: &str, more: Value) -> Value {
        let mut params = modern(json!({ "name": tool, "arguments": {} }));
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": { "form": {} } });
        for (key, value) in more.as_object().cloned().unwrap_or_default() {
            params[key] = value;
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        said(&self.send(&[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)], &body))
    }

    fn text(&self, tool: &str) -> String {
        let answer = self.call(tool);
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{tool}: {answer}")).to_owned()
    }

    fn status(&self) -> Value {
        let authorization = format!("Bearer {}", self.token.clone().unwrap_or_default());
        get(&self.url, "/status", &[("Authorization", &authorization)]).json()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it can be told");
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A message, as JSON or as the last event of a stream.
fn said(answer: &Answer) -> Value {
    let mut events = answer.body.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
    let text = events.next_back().unwrap_or(&answer.body);
    serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{}: {error}", answer.body))
}

fn alive(pid: i64) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

#[test]
fn one_child_serves_many_requests_in_both_eras() {
    let front = Front::start(&[]);
    let pid = front.text("pid");
    assert_eq!(front.text("pid"), pid, "one child for all");
    let modern = front.modern("pid", json!({}));
    assert_eq!((&modern["result"]["resultType"], &modern["result"]["content"][0]["text"]), (&json!("complete"), &json!(pid)), "{modern}");
    assert_eq!(front.call("pid")["result"].get("resultType"), None, "the older era does not know it");
    let names: Vec<String> = serde_json::from_str(&front.text("env")).expect("names");
    assert!(names.contains(&"PATH".to_owned()) && names.contains(&"HOME".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("DESKMATE") || name.starts_with("CARGO")), "{names:?}");
    let status = front.status();
    assert_eq!((&status["status"]["state"], &status["status"]["pid"]), (&json!("ready"), &json!(pid.parse::<u32>().expect("a number"))), "{status}");
    assert!(status["status"]["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20) && status["log"][0] == "ready to be bad", "{status}");
}

#[test]
fn only_the_token_and_only_this_machine() {
    let front = Front::start(&[]);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    for headers in [&[][..], &[("Authorization", "Bearer dmf_wrong")], &[("Authorization", "Basic eDp5")]] {
        let answer = post(&front.url, "/mcp", headers, &body);
        assert!(answer.status == 401 && answer.head.to_lowercase().contains("www-authenticate: bearer"), "{}", answer.head);
        assert_eq!(get(&front.url, "/status", headers).status, 401);
    }
    for foreign in [("Host", "evil.example"), ("Origin", "http://evil.example")] {
        assert_eq!(front.send(&[foreign], &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).status, 403, "{foreign:?}");
    }
    assert_eq!((get(&front.url, "/healthz", &[]).status, get(&front.url, "/", &[]).status), (200, 404));
    let open = Front::start(&["--no-auth"]);
    assert!(open.token.is_none() && post(&open.url, "/mcp", &[("MCP-Protocol-Version", "2025-11-25")], &body).status == 200);
    let wide = Command::new(env!("CARGO_BIN_EXE_deskmate")).args(["front", "--listen", "0.0.0.0:8000", "--", "true"]).output().expect("it runs");
    assert!(!wide.status.success() && String::from_utf8_lossy(&wide.stderr).contains("this machine"), "{}", String::from_utf8_lossy(&wide.stderr));
}

#[test]
fn a_token_file_is_made_and_used() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("token");
    let mut front = Front::start(&["--token-file", &file.to_string_lossy()]);
    assert_eq!(front.token, None, "what is in a file is not printed");
    let token = std::fs::read_to_string(&file).expect("a token").trim().to_owned();
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    front.token = Some(token);
    front.text("pid");
}

#[test]
fn a_child_that_is_killed_in_mid_call_leaves_doubt_and_comes_back() {
    let front = Front::start(&[]);
    let pid = front.text("pid");
    let begun = Instant::now();
    let lost = front.call("die");
    let told = lost["error"]["message"].as_str().unwrap_or_default();
    assert!(told.contains("not known") && told.contains("signal 9"), "{lost}");
    assert_eq!((&lost["error"]["data"]["ambiguous"], &lost["error"]["data"]["never_sent"]), (&json!(true), &json!(false)), "{lost}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_ne!(front.text("pid"), pid, "another one took its place");
}

#[test]
fn garbage_floods_and_large_answers_harm_nobody_else() {
    let front = Front::start(&[]);
    let garbage = front.call("garbage");
    assert!(garbage["error"]["message"].as_str().is_some_and(|told| told.contains("I am no message")), "{garbage}");
    assert_eq!(front.text("flood"), "dry", "a flood is slowed down and waited for");
    let large = front.call("large");
    assert!(large["error"]["message"].as_str().is_some_and(|told| told.contains("4194304 bytes") && told.contains("carried out")), "{large}");
    assert_eq!(large["error"]["data"]["ambiguous"], false);
    front.text("pid");
}

#[test]
fn a_child_that_hangs_is_waited_for_no_longer_than_said() {
    let front = Front::start(&["--timeout", "300ms"]);
    let begun = Instant::now();
    let late = front.call("hang");
    assert!(late["error"]["message"].as_str().is_some_and(|told| told.contains("not known")) && begun.elapsed() < Duration::from_secs(5), "{late}");
    front.text("pid");
}

#[test]
fn a_question_of_the_child_is_a_round_for_a_client_of_the_newer_era() {
    let front = Front::start(&[]);
    let asked = front.modern("ask", json!({}));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(asked["result"]["inputRequests"]["question-1"]["params"]["message"], "Who?");
    let answers = json!({ "question-1": { "action": "accept", "content": { "name": "Ada" } } });
    let done = front.modern("ask", json!({ "inputResponses": answers, "requestState": asked["result"]["requestState"] }));
    assert!(done["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("Ada")), "{done}");
    // A client of the older era has no stream to be asked over.
    assert!(front.text("ask").contains("decline"));
}

#[test]
fn nothing_outlives_the_front_however_it_ends() {
    for signal in [Signal::TERM, Signal::KILL] {
        let mut front = Front::start(&[]);
        let all: Vec<i64> = serde_json::from_str(&front.text("stubborn")).expect("numbers");
        assert!(all.len() == 3 && all.iter().all(|pid| alive(*pid)), "{all:?}");
        let begun = Instant::now();
        front.signal(signal);
        front.process.wait().expect("it ends");
        until("the child, its child, and the one that left its group are gone", || !all.iter().any(|pid| alive(*pid)));
        assert!(begun.elapsed() < Duration::from_secs(12), "{signal:?}: {:?}", begun.elapsed());
    }
}

#[test]
fn what_cannot_start_is_told_with_its_reason() {
    let home = tempfile::tempdir().expect("a directory");
    let fails = |server: &[&str]| {
        let output = command(&home, &[], server).stderr(Stdio::piped()).output().expect("it runs");
        assert!(!output.status.success() && output.stdout.is_empty(), "{server:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let missing = fails(&["no-such-program-anywhere"]);
    assert!(missing.contains("no such program") && missing.contains("no-such-program-anywhere"), "{missing}");
    let left = fails(&["python3", "-c", CHILD, "at-once"]);
    assert!(left.contains("exit code 3") && left.contains("no configuration found"), "{left}");
}

#[test]
fn a_child_makes_files_with_the_rights_that_its_person_gives() {
    let home = tempfile::tempdir().expect("a directory");
    let binary = env!("CARGO_BIN_EXE_deskmate");
    let script = format!("umask 027; exec {binary} front --json --no-auth --listen 127.0.0.1:0 -- python3 -c \"$CHILD\"");
    let mut process = Command::new("sh").args(["-c", &script]).env("CHILD", CHILD).env("HOME", home.path()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let url = serde_json::from_str::<Value>(&line).expect("JSON")["url"].as_str().expect("an address").trim_end_matches("/mcp").to_owned();
    let front = Front { process, url, token: None, _home: home };
    assert_eq!(front.text("umask"), "0o27");
}
