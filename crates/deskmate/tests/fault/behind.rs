//! A desk with a server behind it, and an agent that calls its tools: `read` passes, `wait` passes and is answered when the test
//! says so, `write` waits for a person. Each answer is the moment at which it was given.

use std::path::Path;

use serde_json::{Value, json};

use super::support::Desk;

const CHILD: &str = r#"
import json, os, sys, time
folder = sys.argv[1]
about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "child", "version": "1"}}
tools = {"tools": [{"name": name, "description": name + "s", "inputSchema": {"type": "object"}} for name in ["read", "wait", "write"]]}
for line in sys.stdin:
    message = json.loads(line); id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    answer = {"initialize": about, "tools/list": tools, "ping": {}}.get(method)
    if method == "tools/call":
        given = (params.get("arguments") or {}).get("page", "")
        with open(os.path.join(folder, "called"), "a") as file: file.write(params["name"] + " " + given + "\n")
        while params["name"] == "wait" and not os.path.exists(os.path.join(folder, given)): time.sleep(0.005)
        answer = {"content": [{"type": "text", "text": str(time.time_ns() // 1000)}]}
    said = {"result": answer} if answer is not None else {"error": {"code": -32601, "message": "Method not found"}}
    if id is not None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, **said}) + "\n"); sys.stdout.flush()
"#;

const RULES: &str = "
rules:
  - { name: reads, match: { kind: note.read }, effect: allow, waive_trust: true, message: reading is fine }
";

/// A claimed desk with the server `notes` behind it, which was looked at; the owner's session and the agent's token.
pub(crate) fn desk(home: &Path) -> (Desk, String, String) {
    let folder = home.parent().expect("a folder");
    let child = folder.join("child.py");
    std::fs::write(&child, CHILD).expect("written");
    let (desk, session) = Desk::owned(home);
    let token = desk.with(&session, "desk_agent_add", &json!({ "agent": "code" })).good()["token"].as_str().expect("a token").to_owned();
    desk.with(&session, "desk_policy_apply", &json!({ "document": RULES })).good();
    let mount = json!({ "name": "notes", "command": "python3", "args": [child, folder], "verbs": { "read": "note.read", "wait": "note.read" } });
    desk.with(&session, "desk_mount_add", &json!({ "mount": mount })).good();
    desk.with(&session, "desk_mount_test", &json!({ "name": "notes" })).good();
    (desk, session, token)
}

/// What a call of a tool is given.
pub(crate) fn call(tool: &str, page: &str) -> Value {
    json!({ "mount": "notes", "tool": tool, "arguments": { "page": page } })
}

/// What the server was asked to do, a line each.
pub(crate) fn called(home: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(home.with_file_name("called")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// When the server answered a call, in microseconds since 1970.
pub(crate) fn answered(answer: &Value) -> i64 {
    assert_eq!(answer["state"], "done", "{answer}");
    answer["result"]["content"][0]["text"].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}
