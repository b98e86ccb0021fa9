//! The roots of MCP clients: they narrow what the tools for files reach, and never widen it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::desk::{Client, Desk};
use crate::workspace::{ask, desk_of, open};

/// A desk with two roots: `notes`, and `more`, which lies beside it.
fn two_roots() -> (Desk, tempfile::TempDir, tempfile::TempDir, String) {
    let (desk, folder, token) = desk_of(Desk::new());
    let more = tempfile::tempdir().unwrap();
    fs::write(more.path().join("m.txt"), "more").unwrap();
    fs::write(folder.path().join("sub/deep.txt"), "deep").unwrap();
    symlink("../a.txt", folder.path().join("sub/up")).unwrap();
    symlink("..", folder.path().join("sub/above")).unwrap();
    open(&desk, &settings(folder.path(), more.path(), ""));
    (desk, folder, more, token)
}

fn settings(notes: &Path, more: &Path, rest: &str) -> String {
    format!(
        "workspace: {{ roots: [{{ name: notes, path: {}, access: write, deny: ['*.env'] }}, {{ name: more, path: {} }}]{rest} }}\n",
        notes.display(),
        more.display()
    )
}

fn client(desk: &Desk, token: &str) -> Client {
    let mut command = desk.command(&["mcp", "--toolset", "workspace"]);
    command.env("DESKMATE_TOKEN", token);
    Client::of(desk, command)
}

fn roots(folders: &[&Path]) -> Value {
    json!({ "roots": folders.iter().map(|folder| json!({ "uri": format!("file://{}", folder.display()), "name": "a folder" })).collect::<Vec<_>>() })
}

/// Answers what the server asks a client of the older era.
fn name_roots(client: &mut Client, answer: &Value) {
    let asked = client.expect("the question for roots", |message| message.get("method") == Some(&json!("roots/list")));
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
}

/// What every tool makes of roots that leave only `notes/sub`.
fn only_sub_is_reached(mut tool: impl FnMut(&str, Value) -> Value) {
    let listed = tool("list_roots", json!({}));
    assert_eq!(listed["roots"], json!([{ "name": "notes/sub", "access": "write", "deny": ["*.env"] }]));
    let files = tool("list_files", json!({}));
    let paths: Vec<&str> = files["items"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["notes/sub/above", "notes/sub/d.txt", "notes/sub/deep.txt", "notes/sub/up"]);
    assert_eq!(tool("read_file", json!({ "path": "notes/sub/deep.txt" }))["text"], "deep");
    let beyond = [
        ("list_files", json!({ "root": "notes" })),
        ("list_files", json!({ "root": "more" })),
        ("list_files", json!({ "root": "notes/sub/above" })),
        ("read_file", json!({ "path": "notes/a.txt" })),
        ("read_file", json!({ "path": "notes/sub/up" })),
        ("read_file", json!({ "path": "more/m.txt" })),
        ("file_info", json!({ "path": "notes/sub/above/a.txt" })),
        ("search_files", json!({ "root": "notes", "text": "one" })),
        ("list_trash", json!({ "root": "notes" })),
        ("list_trash", json!({ "root": "notes/sub" })),
        ("scan_index", json!({ "root": "notes" })),
        ("organize_plan", json!({ "root": "notes" })),
        ("change_plan", json!({ "root": "notes", "steps": [{ "action": "trash", "from": "a.txt" }] })),
        ("soft_delete", json!({ "path": "notes/a.txt" })),
        ("restore", json!({ "root": "notes/sub", "trash_id": "x" })),
        ("create_word", json!({ "path": "notes/x.docx", "content": "x" })),
        ("execute_python", json!({ "code": "print(1)", "root": "notes", "read": ["txt"] })),
    ];
    for (name, input) in beyond {
        let refused = tool(name, input.clone());
        assert_eq!(refused["isError"], true, "{name} {input}: {refused}");
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("not_found") || text.contains("roots that your client names") || text.contains("confine"), "{name}: {text}");
    }
    // A look by a job goes through no link either.
    let scanned = tool("scan_index", json!({ "root": "notes/sub/above" }));
    assert_eq!(scanned["state"], "failed", "{scanned}");
    assert_eq!(tool("scan_index", json!({ "root": "notes/sub" }))["result"]["total"]["files"], 2);
    let planned = tool("soft_delete", json!({ "path": "notes/sub/d.txt" }));
    assert_eq!(planned["state"], "ready", "{planned}");
}

#[test]
fn roots_of_a_client_of_the_older_era_narrow_what_it_reaches() {
    let (desk, folder, more, token) = two_roots();
    let mut client = client(&desk, &token);
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": { "roots": { "listChanged": true } }, "clientInfo": { "name": "t", "version": "1" } });
    client.call("initialize", params);
    client.notify("notifications/initialized", json!({}));
    let first = client.ask("tools/call", json!({ "name": "list_roots", "arguments": {} }));
    let (sub, outside) = (folder.path().join("sub"), tempfile::tempdir().unwrap());
    name_roots(&mut client, &roots(&[&sub, outside.path()]));
    assert_eq!(client.answer(first)["result"]["structuredContent"]["roots"][0]["name"], "notes/sub");
    // From here on the client is not asked again: a question would be left aside, and nothing would come.
    only_sub_is_reached(|name, input| ask(&mut client, name, input));
    // What is named later counts from then on: a folder above opens both roots and nothing besides. No call that is sent after the word
    // of a change overtakes it, however often.
    let above = folder.path().parent().unwrap().to_owned();
    for _ in 0..100 {
        client.notify("notifications/roots/list_changed", json!({}));
        let wider = client.ask("tools/call", json!({ "name": "list_roots", "arguments": {} }));
        name_roots(&mut client, &roots(&[&above]));
        let listed = client.answer(wider)["result"]["structuredContent"].clone();
        assert_eq!(listed["roots"].as_array().unwrap().len(), 2, "{listed}");
    }
    let elsewhere = ask(&mut client, "read_file", json!({ "path": above.join("x").to_str().unwrap() }));
    assert_eq!(elsewhere["isError"], true, "nothing is opened by it: {elsewhere}");
    // Nothing named is nothing reached, and a client that does not name them reaches nothing either.
    for (answer, says) in [(roots(&[]), "outside of the roots"), (json!({ "roots": "x" }), "does not name them")] {
        client.notify("notifications/roots/list_changed", json!({}));
        let none = client.ask("tools/call", json!({ "name": "list_files", "arguments": { "root": "notes" } }));
        name_roots(&mut client, &answer);
        let text = client.answer(none)["result"].to_string();
        assert!(text.contains(says), "{text}");
    }
    // An owner can choose not to heed them.
    open(&desk, &settings(folder.path(), more.path(), ", client_roots: false"));
    assert_eq!(ask(&mut client, "read_file", json!({ "path": "more/m.txt" }))["text"], "more");
}

#[test]
fn roots_of_a_client_of_the_newer_era_narrow_what_it_reaches() {
    let (desk, folder, _more, token) = two_roots();
    let mut client = client(&desk, &token);
    let sub = folder.path().join("sub");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "roots": {} },
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
    });
    let tool = |name: &str, input: Value| {
        let params = json!({ "name": name, "arguments": input, "_meta": meta });
        let asked = client.call("tools/call", params.clone());
        assert_eq!((&asked["resultType"], &asked["inputRequests"]["roots"]["method"]), (&json!("input_required"), &json!("roots/list")), "{asked}");
        let mut again = params;
        again["inputResponses"] = json!({ "roots": roots(&[&sub]) });
        let answer = client.call("tools/call", again);
        answer.get("structuredContent").cloned().unwrap_or(answer)
    };
    only_sub_is_reached(tool);
    let refused = client.call("tools/call", json!({ "name": "list_roots", "arguments": {}, "_meta": meta, "inputResponses": { "roots": { "error": "no" } } }));
    assert!(refused.to_string().contains("does not name them"), "{refused}");
}
