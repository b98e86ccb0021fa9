//! Work on files through the built binary: looking, planning, approving, doing, a server killed in the middle, undoing.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::desk::{Client, Desk, until};

/// A desk whose root `notes` is a folder with files, and the token of its agent.
pub(crate) fn desk() -> (Desk, tempfile::TempDir, String) {
    desk_of(Desk::new())
}

/// The same of a desk that is there.
pub(crate) fn desk_of(desk: Desk) -> (Desk, tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in
        [("a.txt", "one"), ("b.TXT", "two"), ("c.pdf", "three"), ("plain", "four"), ("sub/d.txt", "five"), (".hidden", "six"), ("secret.env", "seven")]
    {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let token = desk.register("code");
    open(&desk, &format!("workspace: {{ roots: [{{ name: notes, path: {}, access: write, deny: ['*.env'] }}] }}\n", folder.path().display()));
    (desk, folder, token)
}

/// Puts settings in force.
pub(crate) fn open(desk: &Desk, document: &str) {
    let file = desk.path().join("draft.yaml");
    std::fs::write(&file, document).unwrap();
    let done = person(desk, &["policy", "apply", file.to_str().unwrap(), "--passphrase-stdin", "--json"]);
    assert!(!done.is_null());
}

/// A command of the owner, who gives the passphrase.
pub(crate) fn person(desk: &Desk, args: &[&str]) -> Value {
    let mut child = desk.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

pub(crate) fn agent(desk: &Desk, token: &str) -> Client {
    let mut command = desk.command(&["mcp", "--toolset", "workspace"]);
    command.env("DESKMATE_TOKEN", token);
    let mut client = Client::of(desk, command);
    client.initialize("2025-11-25");
    client
}

/// What a tool answers: its fields, or what is wrong.
pub(crate) fn ask(client: &mut Client, tool: &str, input: Value) -> Value {
    let answer = client.tool(tool, input);
    answer.get("structuredContent").cloned().unwrap_or(answer)
}

pub(crate) fn approve(desk: &Desk, plan: &Value) {
    person(desk, &["inbox", "--passphrase-stdin", "approve", plan["request_id"].as_str().unwrap(), "--json"]);
}

/// Everything in a folder but what is the desk's own: names, bytes, modes and times.
pub(crate) fn tree(folder: &Path) -> BTreeMap<String, (Vec<u8>, u32, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(place) = open.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let (path, meta) = {
                let entry = entry.unwrap();
                (entry.path(), entry.metadata().unwrap())
            };
            if path.file_name().is_some_and(|name| name == ".trash" || name == ".deskmate-audit.jsonl") {
                continue;
            }
            if meta.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, (std::fs::read(&path).unwrap(), meta.permissions().mode(), meta.modified().unwrap()));
            }
        }
    }
    found
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    tree(folder).into_keys().collect()
}

#[test]
fn agents_look_around_beneath_roots_only() {
    let (desk, folder, token) = desk();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("out")).unwrap();
    let mut client = agent(&desk, &token);
    let listed = ask(&mut client, "list_files", json!({ "root": "notes" }));
    let paths: Vec<&str> = listed["items"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["notes/a.txt", "notes/b.TXT", "notes/c.pdf", "notes/out", "notes/plain", "notes/sub", "notes/sub/d.txt"]);
    let first = ask(&mut client, "list_files", json!({ "root": "notes", "limit": 2 }));
    assert_eq!(first["truncated"], true);
    let second = ask(&mut client, "list_files", json!({ "root": "notes", "limit": 2, "cursor": first["next_cursor"] }));
    assert_eq!(second["items"][0]["path"], "notes/c.pdf", "{second}");
    assert_eq!(ask(&mut client, "read_file", json!({ "path": "notes/sub/d.txt" }))["text"], "five");
    // The path of an earlier server's client leads to the same file.
    assert_eq!(ask(&mut client, "read_file", json!({ "path": folder.path().join("a.txt") }))["text"], "one");
    assert_eq!(ask(&mut client, "search_files", json!({ "text": "f[io]" }))["matches"].as_array().unwrap().len(), 2);
    assert_eq!(ask(&mut client, "search_files", json!({ "name": "*.pdf" }))["matches"][0]["path"], "notes/c.pdf");
    for bad in ["notes/secret.env", "notes/out", "notes/../x", "/etc/passwd", "notes/sub"] {
        let refused = ask(&mut client, "read_file", json!({ "path": bad })).to_string();
        assert!(!refused.contains("root:") && !refused.contains(folder.path().to_str().unwrap()), "{bad}: {refused}");
        assert!(refused.contains("error") || refused.contains("code"), "{bad}: {refused}");
    }
}

#[test]
fn a_plan_is_approved_done_and_taken_back() {
    let (desk, folder, token) = desk();
    let before = tree(folder.path());
    let mut client = agent(&desk, &token);
    let plan = ask(&mut client, "organize_plan", json!({ "root": "notes", "reasoning": "tidy up" }));
    assert_eq!((&plan["state"], &plan["count"], &plan["decision"]), (&json!("ready"), &json!(4), &json!("pending")), "{plan}");
    assert_eq!(tree(folder.path()), before, "planning changes nothing");
    let waits = ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }));
    assert_eq!(waits["begun"], false);
    assert_eq!(tree(folder.path()), before, "nor does asking before anybody approved");
    approve(&desk, &plan);
    let done = ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }));
    assert_eq!((&done["state"], &done["applied"]), (&json!("done"), &json!(4)), "{done}");
    assert_eq!(names(folder.path()), [".hidden", "no_ext/plain", "pdf/c.pdf", "secret.env", "sub/d.txt", "txt/a.txt", "txt/b.TXT"]);
    let undo = ask(&mut client, "undo_plan", json!({ "plan_id": plan["plan_id"] }));
    approve(&desk, &undo);
    let undone = ask(&mut client, "execute_plan", json!({ "plan_id": undo["plan_id"] }));
    assert_eq!((&undone["state"], &undone["applied"]), (&json!("done"), &json!(4)), "{undone}");
    assert_eq!(tree(folder.path()), before, "bytes, modes and times are as they were");
    assert!(!folder.path().join("txt").exists(), "folders that were made on the way are gone");
    let report = person(&desk, &["audit", "verify", "--json"]);
    assert_eq!(report["sound"], true, "{report}");
}

#[test]
fn files_are_written_changed_trashed_and_restored_by_plan() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    let steps = json!([
        { "action": "write", "to": "new/hello.md", "text": "hello\n" },
        { "action": "replace", "to": "a.txt", "edits": [{ "old": "one", "new": "uno" }] },
        { "action": "copy", "from": "c.pdf", "to": "copies/c.pdf" },
        { "action": "trash", "from": "plain" }
    ]);
    let plan = ask(&mut client, "change_plan", json!({ "root": "notes", "steps": steps }));
    assert_eq!(plan["state"], "ready", "{plan}");
    let whole = ask(&mut client, "get_plan", json!({ "plan_id": plan["plan_id"] }));
    assert!(whole["steps"][1]["diff"].as_str().unwrap().contains("-one\n") && whole["steps"][1]["diff"].as_str().unwrap().contains("+uno"), "{whole}");
    approve(&desk, &plan);
    let done = ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }));
    assert_eq!(done["applied"], 4, "{done}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "uno");
    assert_eq!(std::fs::read_to_string(folder.path().join("new/hello.md")).unwrap(), "hello\n");
    assert!(!folder.path().join("plain").exists());
    let trash = ask(&mut client, "list_trash", json!({ "root": "notes" }));
    let item = trash["items"].as_array().unwrap().iter().find(|item| item["path"] == "notes/plain").expect("in the trash").clone();
    let back = ask(&mut client, "restore", json!({ "root": "notes", "trash_id": item["trash_id"] }));
    approve(&desk, &back);
    ask(&mut client, "execute_plan", json!({ "plan_id": back["plan_id"] }));
    assert_eq!(std::fs::read_to_string(folder.path().join("plain")).unwrap(), "four");
    // What is there already, or not there, is told while the plan is made.
    let bad = ask(
        &mut client,
        "change_plan",
        json!({ "root": "notes", "steps": [{ "action": "move", "from": "nothing", "to": "x" }, { "action": "write", "to": "a.txt", "text": "" }] }),
    );
    assert_eq!(bad["state"], "failed");
    assert!(bad["note"].as_str().unwrap().contains("step 1") && bad["note"].as_str().unwrap().contains("a.txt is there already"), "{bad}");
}

#[test]
fn what_changed_since_it_was_approved_is_left_alone() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    let plan = ask(&mut client, "organize_plan", json!({ "root": "notes" }));
    approve(&desk, &plan);
    std::fs::write(folder.path().join("a.txt"), "something else").unwrap();
    std::fs::create_dir(folder.path().join("pdf")).unwrap();
    std::fs::write(folder.path().join("pdf/c.pdf"), "mine").unwrap();
    let done = ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }));
    assert_eq!((&done["state"], &done["applied"], &done["skipped"]), (&json!("partly"), &json!(2), &json!(2)), "{done}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "something else");
    assert_eq!(std::fs::read_to_string(folder.path().join("pdf/c.pdf")).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(folder.path().join("c.pdf")).unwrap(), "three");
}

#[test]
fn a_server_that_is_killed_in_the_middle_goes_on_and_says_what_happened() {
    let (desk, folder, token) = desk();
    let many = folder.path().join("many");
    std::fs::create_dir(&many).unwrap();
    for number in 0..3_000 {
        std::fs::write(many.join(format!("{number}.dat")), number.to_string()).unwrap();
    }
    let before = tree(folder.path());
    let mut client = agent(&desk, &token);
    let plan = ask(&mut client, "organize_plan", json!({ "root": "notes/many" }));
    assert_eq!(plan["count"], 3_000, "{plan}");
    approve(&desk, &plan);
    ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"], "timeout_seconds": 0 }));
    until("some are moved", || many.join("dat").exists().then_some(()));
    // A client that is still there would start a server of its own.
    drop(client);
    desk.kill_server();
    desk.up();
    let mut client = agent(&desk, &token);
    // Nobody waits for the lease of the worker that is gone.
    let started = std::time::Instant::now();
    let done = until("the plan goes on", || {
        let found = ask(&mut client, "wait_for_plan", json!({ "plan_id": plan["plan_id"], "timeout_seconds": 5 }));
        (found["state"] != "running").then_some(found)
    });
    assert!(started.elapsed() < std::time::Duration::from_secs(25), "it was not taken up at once");
    assert_eq!((&done["state"], &done["applied"]), (&json!("done"), &json!(3_000)), "{done}");
    assert_eq!(std::fs::read_dir(many.join("dat")).unwrap().count(), 3_000);
    let undo = ask(&mut client, "undo_plan", json!({ "plan_id": plan["plan_id"] }));
    approve(&desk, &undo);
    let undone = ask(&mut client, "execute_plan", json!({ "plan_id": undo["plan_id"] }));
    assert_eq!(undone["applied"], 3_000, "{undone}");
    assert!(tree(folder.path()) == before, "bytes, modes and times are as they were");
}

#[test]
fn documents_are_written_by_plan() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    for (tool, path, input) in [
        ("create_excel", "notes/sales.xlsx", json!({ "data": [{ "name": "Ada", "sum": 3 }, { "name": "=1+1", "sum": 4 }] })),
        ("create_word", "notes/letter.docx", json!({ "content": "# Title\n\nЗдравствуйте" })),
        ("create_pdf", "notes/letter.pdf", json!({ "content": "# Title\n\nΚαλημέρα" })),
    ] {
        let mut asked = input;
        asked["path"] = json!(path);
        let plan = ask(&mut client, tool, asked);
        assert_eq!(plan["count"], 1, "{plan}");
        approve(&desk, &plan);
        assert_eq!(ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }))["applied"], 1);
    }
    let magic = |name: &str| std::fs::read(folder.path().join(name)).unwrap()[..4].to_vec();
    assert_eq!((magic("sales.xlsx"), magic("letter.docx"), magic("letter.pdf")), (b"PK\x03\x04".to_vec(), b"PK\x03\x04".to_vec(), b"%PDF".to_vec()));
}

/// The lines of the audit file in a folder.
fn audit(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(".deskmate-audit.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn organize(desk: &Desk, client: &mut Client, root: &str) -> Value {
    let plan = ask(client, "organize_plan", json!({ "root": root }));
    approve(desk, &plan);
    let done = ask(client, "execute_plan", json!({ "plan_id": plan["plan_id"] }));
    assert_eq!(done["state"], "done", "{done}");
    plan
}

#[test]
fn what_was_done_lies_beside_the_files_as_the_record_says_it() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    let plan = organize(&desk, &mut client, "notes");
    let lines = until("the audit file is written", || Some(audit(folder.path())).filter(|lines| lines.len() == 4));
    let first = &lines[0];
    assert_eq!((&first["action"], &first["from"], &first["to"], &first["state"]), (&json!("move"), &json!("a.txt"), &json!("txt/a.txt"), &json!("done")));
    assert_eq!((&first["plan"], &first["step"], &first["actor"]), (&plan["plan_id"], &json!(1), &json!("code")));
    let shown = person(&desk, &["audit", "prove", &first["seq"].to_string(), "--json"]);
    assert!(shown["body"].as_str().unwrap().contains(plan["plan_id"].as_str().unwrap()), "the line leads to its event: {shown}");
    // An agent's plan cannot reach it, whatever it is called.
    for name in [".deskmate-audit.jsonl", ".Coworker_Audit.jsonl"] {
        let refused = ask(&mut client, "soft_delete", json!({ "path": format!("notes/{name}") }));
        assert_eq!(refused["state"], "failed", "{refused}");
    }
    // What somebody else wrote to it is kept aside, and it begins anew with everything.
    let path = folder.path().join(".deskmate-audit.jsonl");
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"seq\":0,\"step\":1,\"leaf\":\"00\"}\n").unwrap();
    organize(&desk, &mut client, "notes/sub");
    until("it is set aside", || {
        let mut names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.any(|name| name.to_string_lossy().starts_with(".deskmate-audit.jsonl.")).then_some(())
    });
    let anew = until("it is written anew", || Some(audit(folder.path())).filter(|lines| lines.len() == 5));
    assert_eq!((&anew[..4], &anew[4]["from"]), (&lines[..], &json!("sub/d.txt")));
}

#[test]
fn the_trash_is_emptied_of_what_is_old_only_where_a_setting_says_so() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    let gone = ask(&mut client, "soft_delete", json!({ "path": "notes/plain" }));
    approve(&desk, &gone);
    ask(&mut client, "execute_plan", json!({ "plan_id": gone["plan_id"] }));
    // Something that was deleted long ago.
    let trash = folder.path().join(".trash");
    std::fs::write(trash.join("files/old.txt"), "old").unwrap();
    std::fs::write(trash.join("info/old.txt.trashinfo"), "[Trash Info]\nPath=old.txt\nDeletionDate=2020-01-01T00:00:00\n").unwrap();
    let ids = |client: &mut Client| ask(client, "list_trash", json!({ "root": "notes" }))["items"].as_array().unwrap().len();
    drop(client);
    desk.kill_server();
    desk.up();
    let mut client = agent(&desk, &token);
    assert_eq!(ids(&mut client), 2, "nothing goes by itself");
    drop(client);
    let settings = format!("workspace: {{ trash_days: 30, roots: [{{ name: notes, path: {}, access: write }}] }}\n", folder.path().display());
    open(&desk, &settings);
    desk.kill_server();
    desk.up();
    let mut client = agent(&desk, &token);
    until("what is old is gone", || (ids(&mut client) == 1).then_some(()));
    assert!(!trash.join("files/old.txt").exists());
    let told = person(&desk, &["call", "desk_record_list", "kind=trash.expired", "--passphrase-stdin", "--json"]);
    assert!(told.to_string().contains("\"deleted\":1"), "{told}");
}
