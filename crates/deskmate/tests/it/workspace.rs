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
fn steps_that_get_in_each_others_way_are_told_while_the_plan_is_made() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    let fifo = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(fifo.is_ok_and(|status| status.success()));
    let step = |action: &str, from: &str, to: &str| match (action, from, to) {
        ("write" | "replace", _, to) => json!({ "action": action, "to": to, "text": "new" }),
        (_, "", to) => json!({ "action": action, "to": to }),
        (_, from, "") => json!({ "action": action, "from": from }),
        (_, from, to) => json!({ "action": action, "from": from, "to": to }),
    };
    for (steps, says) in [
        (vec![("copy", "sub", "other")], "only files and links can be copied"),
        (vec![("copy", "pipe", "other")], "only files and links can be copied"),
        (vec![("move", "sub", "sub/in")], "a folder can't be moved into itself"),
        (vec![("move", "a.txt", "x"), ("move", "a.txt", "y")], "a.txt is moved, changed or deleted by step 1 already"),
        (vec![("trash", "a.txt", ""), ("copy", "a.txt", "y")], "a.txt is moved, changed or deleted by step 1 already"),
        (vec![("replace", "", "a.txt"), ("trash", "a.txt", "")], "a.txt is moved, changed or deleted by step 1 already"),
        (vec![("move", "sub", "e"), ("move", "sub/d.txt", "f")], "sub/d.txt lies in sub, which is moved, changed or deleted by step 1 already"),
        (vec![("write", "", "n"), ("write", "", "n")], "n is the target of another step already"),
        (vec![("write", "", "n"), ("write", "", "n/x")], "n/x cannot lie in n, which is a file after step 1"),
        (vec![("write", "", "n/x"), ("write", "", "n")], "n is a folder by then: step 1 makes n/x"),
        (vec![("write", "", "plain/x")], "plain"),
        (vec![("move", "sub", "e"), ("write", "", "e/d.txt")], "e/d.txt is there by then: it comes with e"),
    ] {
        let asked: Vec<Value> = steps.iter().map(|(action, from, to)| step(action, from, to)).collect();
        let told = ask(&mut client, "change_plan", json!({ "root": "notes", "steps": asked }));
        assert_eq!(told["state"], "failed", "{steps:?}: {told}");
        let note = told["note"].as_str().unwrap();
        assert!(note.starts_with(&format!("steps: step {}: ", steps.len())) || note.starts_with(&format!("step {}: ", steps.len())), "{note}");
        assert!(note.contains(says), "{steps:?}: {note}");
    }
    // What fits together is planned and done as it stands there.
    let fits = [
        step("copy", "a.txt", "k/x"),
        step("move", "a.txt", "k/y"),
        step("make_folder", "", "n"),
        step("write", "", "n/x"),
        step("move", "sub/d.txt", "d"),
        step("move", "sub", "e"),
        step("write", "", "e/new"),
        step("write", "", "e/d.txt"),
        step("move", "plain", "old"),
        step("write", "", "plain/x"),
    ];
    let plan = ask(&mut client, "change_plan", json!({ "root": "notes", "steps": fits }));
    assert_eq!((&plan["state"], &plan["count"]), (&json!("ready"), &json!(10)), "{plan}");
    approve(&desk, &plan);
    let done = ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }));
    assert_eq!((&done["state"], &done["applied"]), (&json!("done"), &json!(10)), "{done}");
}

#[test]
fn whoever_decides_about_the_way_back_learns_what_was_changed_since() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    let plan = organize(&desk, &mut client, "notes");
    std::fs::write(folder.path().join("txt/a.txt"), "edited since").unwrap();
    let undo = ask(&mut client, "undo_plan", json!({ "plan_id": plan["plan_id"] }));
    let steps = ask(&mut client, "get_plan", json!({ "plan_id": undo["plan_id"] }))["steps"].clone();
    let warned: Vec<&Value> = steps.as_array().unwrap().iter().filter(|step| step["warning"].is_string()).collect();
    assert_eq!((warned.len(), &warned[0]["from"]), (1, &json!("notes/txt/a.txt")), "{steps}");
    assert!(warned[0]["warning"].as_str().unwrap().contains("changed since, and goes back as it is now"), "{steps}");
    let request = person(&desk, &["call", "desk_request_get", &format!("request={}", undo["request_id"].as_str().unwrap()), "--passphrase-stdin", "--json"]);
    let told = request["reversibility"].as_str().unwrap();
    assert!(told.contains("1 of 4 steps carry a warning") && told.contains("folders that it changes get the time"), "{told}");
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
        ("create_excel", "notes/sales.xlsx", json!({ "data": [{ "name": "Ada", "sum": 3 }, { "name": "=1+1", "sum": 4 }], "columns": ["sum", "name"] })),
        ("create_word", "notes/letter.docx", json!({ "content": "# Title\n\nЗдравствуйте\n\n- one\n- two" })),
        ("create_pdf", "notes/letter.pdf", json!({ "content": "# Title\n\nΚαλημέρα 東京 \u{378}" })),
    ] {
        let mut asked = input;
        asked["path"] = json!(path);
        let plan = ask(&mut client, tool, asked);
        assert_eq!(plan["count"], 1, "{plan}");
        let step = ask(&mut client, "get_plan", json!({ "plan_id": plan["plan_id"] }))["steps"][0].clone();
        let diff = step["diff"].as_str().unwrap();
        assert!(!diff.lines().skip(3).any(|line| line.starts_with(['-', ' '])), "all of it is new: {diff}");
        assert_eq!(diff.contains("+columns: sum, name\n"), tool == "create_excel", "{diff}");
        let warned = step["warning"].as_str().unwrap_or_default();
        assert_eq!(warned.contains("U+0378"), tool == "create_pdf", "whoever decides is told what cannot be shown: {step}");
        approve(&desk, &plan);
        assert_eq!(ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }))["applied"], 1);
    }
    let magic = |name: &str| std::fs::read(folder.path().join(name)).unwrap()[..4].to_vec();
    assert_eq!((magic("sales.xlsx"), magic("letter.docx"), magic("letter.pdf")), (b"PK\x03\x04".to_vec(), b"PK\x03\x04".to_vec(), b"%PDF".to_vec()));
}

#[test]
fn what_a_way_back_does_is_shown_without_contents() {
    let (desk, folder, token) = desk();
    std::fs::write(folder.path().join("list.md"), "milk\nbread\n").unwrap();
    let mut client = agent(&desk, &token);
    let do_it = |client: &mut Client, plan: &Value| {
        approve(&desk, plan);
        ask(client, "execute_plan", json!({ "plan_id": plan["plan_id"] }))
    };
    let long = "word ".repeat(40_000);
    let steps = json!([
        { "action": "replace", "to": "list.md", "text": "milk\nbeer\n" },
        { "action": "copy", "from": "a.txt", "to": "copy.txt" },
        { "action": "write", "to": "long.txt", "text": long },
        { "action": "trash", "from": "plain" },
    ]);
    let plan = ask(&mut client, "change_plan", json!({ "root": "notes", "steps": steps }));
    assert_eq!(do_it(&mut client, &plan)["applied"], 4);
    // Somebody changes the copy: it is not taken back, and said so.
    std::fs::write(folder.path().join("copy.txt"), "other").unwrap();
    let undo = ask(&mut client, "undo_plan", json!({ "plan_id": plan["plan_id"] }));
    let shown = ask(&mut client, "get_plan", json!({ "plan_id": undo["plan_id"] }));
    assert!(shown.to_string().len() < 20_000, "contents of files are not handed out: {} bytes", shown.to_string().len());
    let steps = shown["steps"].as_array().unwrap();
    let told: Vec<_> = steps.iter().map(|step| (step["undoes"].as_str().unwrap(), step["from"].as_str(), step["to"].as_str())).collect();
    let expected = [
        ("trash", None, Some("notes/plain")),
        ("write", Some("notes/long.txt"), None),
        ("copy", Some("notes/copy.txt"), None),
        ("replace", None, Some("notes/list.md")),
    ];
    assert_eq!(told, expected, "{shown}");
    let diff = steps[3]["diff"].as_str().unwrap();
    assert!(diff.contains("\n-beer\n+bread\n"), "what comes back is new: {diff}");
    let trashed = ask(&mut client, "list_trash", json!({ "root": "notes" }))["items"].as_array().unwrap().clone();
    let id = trashed.iter().find(|item| item.to_string().contains("notes/plain")).unwrap()["trash_id"].clone();
    let restore = ask(&mut client, "restore", json!({ "root": "notes", "trash_id": id, "restore_to": "notes/back" }));
    let step = ask(&mut client, "get_plan", json!({ "plan_id": restore["plan_id"] }))["steps"][0].clone();
    assert_eq!((&step["from"], &step["was"], &step["to"]), (&id, &json!("notes/plain"), &json!("notes/back")), "{step}");
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
    // A line in the middle that was changed is found by verifying the whole file, which is then as the record says again.
    let verify = || {
        let verified = person(&desk, &["call", "workspace_verify_audit_file", "root=notes", "--passphrase-stdin", "--json"]);
        assert_eq!(verified["state"], "done", "{verified}");
        verified["result"].clone()
    };
    assert_eq!(verify(), json!({ "root": "notes", "sound": true, "lines": 5, "missing": 0 }));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("b.TXT", "x.TXT", 1)).unwrap();
    let found = verify();
    assert_eq!((&found["sound"], &found["first_bad"], &found["lines"]), (&json!(false), &json!(2), &json!(1)), "{found}");
    let kept = std::fs::read_to_string(folder.path().join(found["set_aside"].as_str().unwrap())).unwrap();
    assert!(kept.contains("x.TXT") && std::fs::read_to_string(&path).unwrap() == text, "{kept}");
    assert_eq!(verify()["sound"], true);
    let told = person(&desk, &["call", "desk_record_list", "kind=workspace.audit.mended", "--passphrase-stdin", "--json"]);
    assert!(told.to_string().contains("\"first_bad\":2"), "{told}");
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
    assert!(told.to_string().contains("\"deleted\":1") && told.to_string().contains("\"deleted\":[\"old.txt\"]"), "{told}");
}

#[test]
fn a_folder_that_was_made_anew_is_looked_at_where_it_is() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    let names = |client: &mut Client| ask(client, "list_files", json!({ "root": "notes" }))["items"].as_array().map(Vec::len);
    assert_eq!(names(&mut client), Some(6));
    std::fs::remove_dir_all(folder.path()).unwrap();
    let gone = ask(&mut client, "list_files", json!({ "root": "notes" }));
    assert_eq!(gone["isError"], true, "it is said that it is not there: {gone}");
    std::fs::create_dir(folder.path()).unwrap();
    std::fs::write(folder.path().join("anew.txt"), "new").unwrap();
    assert_eq!(names(&mut client), Some(1));
    organize(&desk, &mut client, "notes");
    assert!(folder.path().join("txt/anew.txt").exists());
    // Somebody who may rename it puts a link in its place, before anybody looked at it since the server started.
    drop(client);
    desk.kill_server();
    desk.up();
    let (outside, away) = (tempfile::tempdir().unwrap(), folder.path().with_extension("away"));
    std::fs::write(outside.path().join("id_rsa"), "key").unwrap();
    std::fs::rename(folder.path(), &away).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path()).unwrap();
    let mut client = agent(&desk, &token);
    for (tool, input) in
        [("list_files", json!({ "root": "notes" })), ("read_file", json!({ "path": "notes/id_rsa" })), ("scan_index", json!({ "root": "notes" }))]
    {
        let refused = ask(&mut client, tool, input);
        assert!(refused["isError"] == true || refused["state"] == "failed", "{tool}: {refused}");
        assert!(refused.to_string().contains("symbolic link"), "{tool}: {refused}");
    }
    std::fs::remove_file(folder.path()).unwrap();
    std::fs::rename(&away, folder.path()).unwrap();
    assert_eq!(names(&mut client), Some(2));
}

#[test]
fn the_desks_own_data_is_not_there_even_beneath_a_root() {
    let around = tempfile::tempdir().unwrap();
    std::fs::write(around.path().join("note"), "mine").unwrap();
    let desk = Desk::within(around.path());
    let token = desk.register("code");
    open(&desk, &format!("workspace: {{ roots: [{{ name: all, path: {}, access: write }}] }}\n", around.path().display()));
    let home = desk.path().file_name().unwrap().to_str().unwrap();
    assert!(desk.path().join("record.key").exists() && desk.path().parent() == Some(around.path()));
    let mut client = agent(&desk, &token);
    let listed = ask(&mut client, "list_files", json!({ "root": "all", "hidden": true, "ignored": true }));
    assert_eq!(listed["items"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect::<Vec<_>>(), ["all/note"]);
    for path in [format!("all/{home}/record.key"), desk.path().join("desk.db").display().to_string()] {
        let refused = ask(&mut client, "read_file", json!({ "path": path }));
        assert_eq!(refused["_meta"]["deskmate/error"]["code"], "not_found", "{refused}");
    }
    let found = ask(&mut client, "search_files", json!({ "name": "desk.db", "hidden": true, "ignored": true }));
    assert_eq!(found["matches"], json!([]));
    let scan = ask(&mut client, "scan_index", json!({ "root": "all" }));
    assert_eq!(scan["result"]["total"]["files"], 1, "{scan}");
    for step in
        [json!({ "action": "copy", "from": format!("{home}/record.key"), "to": "key" }), json!({ "action": "write", "to": format!("{home}/x"), "text": "" })]
    {
        let plan = ask(&mut client, "change_plan", json!({ "root": "all", "steps": [step] }));
        assert_eq!(plan["state"], "failed", "{plan}");
    }
    let plan = ask(&mut client, "organize_plan", json!({ "root": "all", "recursive": true }));
    assert_eq!((&plan["count"], &plan["moves"][0]["from"]), (&json!(1), &json!("all/note")), "{plan}");
}

#[test]
fn what_cannot_be_taken_back_is_told_before_anybody_approves() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    let steps = json!([
        { "action": "move", "from": "a.txt", "to": "moved/a.txt" },
        { "action": "trash", "from": "plain" },
        { "action": "write", "to": "new.md", "text": "new" },
        { "action": "replace", "to": "c.pdf", "text": "other" }
    ]);
    let plan = ask(&mut client, "change_plan", json!({ "root": "notes", "steps": steps }));
    approve(&desk, &plan);
    assert_eq!(ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }))["applied"], 4);
    std::fs::write(folder.path().join("new.md"), "edited since").unwrap();
    std::fs::write(folder.path().join("a.txt"), "another").unwrap();
    let kept = std::fs::read_dir(folder.path().join(".trash/files")).unwrap().map(|entry| entry.unwrap().path());
    std::fs::remove_file(kept.into_iter().find(|path| path.to_string_lossy().contains("plain")).unwrap()).unwrap();
    let undo = ask(&mut client, "undo_plan", json!({ "plan_id": plan["plan_id"] }));
    assert_eq!((&undo["state"], &undo["count"]), (&json!("ready"), &json!(4)), "{undo}");
    let whole = ask(&mut client, "get_plan", json!({ "plan_id": undo["plan_id"] }));
    let blocked: Vec<&Value> = whole["steps"].as_array().unwrap().iter().map(|step| &step["blocked"]).collect();
    let says = ["", "it was changed since", "it is not in the trash any more", "something else is at a.txt by now"];
    assert_eq!(blocked.iter().map(|why| why.as_str().unwrap_or_default()).collect::<Vec<_>>(), says, "{whole}");
    let waits = person(&desk, &["inbox", "--passphrase-stdin", "show", undo["request_id"].as_str().unwrap(), "--json"]);
    assert!(waits.to_string().contains("3 of 4 steps cannot be done as things are"), "{waits}");
    approve(&desk, &undo);
    let undone = ask(&mut client, "execute_plan", json!({ "plan_id": undo["plan_id"] }));
    assert_eq!((&undone["state"], &undone["applied"], &undone["skipped"]), (&json!("partly"), &json!(1), &json!(3)), "{undone}");
    assert_eq!(std::fs::read_to_string(folder.path().join("c.pdf")).unwrap(), "three");
    assert_eq!(std::fs::read_to_string(folder.path().join("new.md")).unwrap(), "edited since");
    // The way back is not offered twice, and refused in so many words.
    assert!(!undone["next"].as_str().unwrap().contains("undo_plan"), "{undone}");
    let again = ask(&mut client, "undo_plan", json!({ "plan_id": undo["plan_id"] }));
    assert!(again.to_string().contains("not taken back itself"), "{again}");
    // Nothing is left that could come back.
    let hopeless = ask(&mut client, "undo_plan", json!({ "plan_id": plan["plan_id"] }));
    assert_eq!(hopeless["state"], "failed", "{hopeless}");
    assert!(hopeless["note"].as_str().unwrap().contains("nothing of this can be done as things are"), "{hopeless}");
}

#[test]
fn what_clients_of_earlier_servers_send_is_understood() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    std::fs::write(folder.path().join("long.txt"), "x".repeat(1_200_000)).unwrap();
    let read = ask(&mut client, "read_file", json!({ "path": "notes/long.txt", "max_bytes": 1_000_000 }));
    assert_eq!((&read["read_bytes"], &read["truncated"]), (&json!(400_000), &json!(true)), "{}", read.to_string().len());
    std::fs::write(folder.path().join("lines.txt"), "1\n2\n3\n4\n").unwrap();
    for (part, text, goes_on) in [
        (json!({ "head": 2 }), "1\n2\n", true),
        (json!({ "head": 4 }), "1\n2\n3\n4\n", false),
        (json!({ "tail": 2 }), "3\n4\n", false),
        (json!({ "first_line": 2, "last_line": 3 }), "2\n3\n", true),
        (json!({ "first_line": 3 }), "3\n4\n", false),
        (json!({ "offset": 2 }), "2\n3\n4\n", false),
    ] {
        let mut asked = part.clone();
        asked["path"] = json!("notes/lines.txt");
        let read = ask(&mut client, "read_file", asked);
        assert_eq!((&read["text"], &read["truncated"]), (&json!(text), &json!(goes_on)), "{part}: {read}");
    }
    let whole = folder.path().to_str().unwrap();
    let plan = ask(&mut client, "soft_delete", json!({ "path": folder.path().join("plain"), "workspace_root": whole }));
    assert_eq!(plan["state"], "ready", "{plan}");
    let elsewhere = ask(&mut client, "soft_delete", json!({ "path": "notes/plain", "workspace_root": "notes/sub" }));
    assert!(elsewhere.to_string().contains("does not lie in"), "{elsewhere}");
    approve(&desk, &plan);
    let wrong = ask(&mut client, "execute_plan", json!({ "plan_job_id": plan["plan_job_id"], "workspace_root": "other" }));
    assert_eq!(wrong["_meta"]["deskmate/error"]["code"], "not_found", "{wrong}");
    let done = ask(&mut client, "execute_plan", json!({ "plan_job_id": plan["plan_job_id"], "workspace_root": whole }));
    assert_eq!(done["applied"], 1, "{done}");
    let id = ask(&mut client, "list_trash", json!({ "root": "notes" }))["items"][0]["trash_id"].as_str().unwrap().to_owned();
    for item in [format!("{whole}/.trash/files/{id}"), format!("{whole}/.trash/{id}"), format!("notes/.trash/files/{id}"), id.clone()] {
        let back = ask(&mut client, "restore", json!({ "trash_item_path": item, "restore_to": format!("{whole}/back"), "workspace_root": whole }));
        assert_eq!((&back["state"], &back["moves"][0]["to"]), (&json!("ready"), &json!("notes/back")), "{item}: {back}");
    }
    for wrong in [
        json!({ "trash_item_path": format!("{whole}/sub/d.txt") }),
        json!({ "trash_item_path": "/etc/.trash/files/x" }),
        json!({}),
        json!({ "trash_id": id, "trash_item_path": id }),
    ] {
        let refused = client.tool("restore", wrong.clone());
        assert_eq!(refused["isError"], true, "{wrong}: {refused}");
    }
}

#[test]
fn the_trash_and_what_is_found_come_in_pages() {
    let (desk, folder, token) = desk();
    let trash = folder.path().join(".trash");
    for part in ["files", "info"] {
        std::fs::create_dir_all(trash.join(part)).unwrap();
    }
    // The names go against the times, so that an order by name would be told.
    for number in 0..1_203 {
        let (id, at) = (format!("{:05}", 9_999 - number), format!("2026-01-{:02}T{:02}:{:02}:00", 1 + number / 1_000, number / 60 % 16, number % 60));
        std::fs::write(trash.join("files").join(&id), "x").unwrap();
        std::fs::write(trash.join("info").join(format!("{id}.trashinfo")), format!("[Trash Info]\nPath=old/{id}\nDeletionDate={at}\n")).unwrap();
    }
    let mut client = agent(&desk, &token);
    let (mut times, mut ids, mut cursor) = (Vec::new(), std::collections::BTreeSet::new(), Value::Null);
    loop {
        let page = ask(&mut client, "list_trash", json!({ "root": "notes", "limit": 500, "cursor": cursor }));
        let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}"));
        times.extend(items.iter().map(|item| item["deleted_at"].as_str().unwrap().to_owned()));
        ids.extend(items.iter().map(|item| item["trash_id"].as_str().unwrap().to_owned()));
        cursor = page["next_cursor"].clone();
        assert_eq!(page["truncated"] == true, !cursor.is_null());
        if cursor.is_null() {
            break;
        }
    }
    assert!(times.is_sorted_by(|a, b| a >= b) && times.len() == 1_203 && ids.len() == 1_203, "{} {}", times.len(), ids.len());
    for number in 0..7 {
        std::fs::write(folder.path().join(format!("sub/{number}.log")), "hit\nmiss\nhit\nhit\n").unwrap();
    }
    let pages = |client: &mut Client, asked: Value| {
        let (mut found, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let mut input = asked.clone();
            input["cursor"] = cursor;
            let page = ask(client, "search_files", input);
            found.extend(page["matches"].as_array().unwrap_or_else(|| panic!("{page}")).iter().map(|one| format!("{}:{}", one["path"], one["line"])));
            cursor = page["next_cursor"].clone();
            if cursor.is_null() {
                return found;
            }
        }
    };
    for asked in [json!({ "root": "notes", "text": "^hit" }), json!({ "root": "notes", "name": "*.log" })] {
        let mut in_pages = asked.clone();
        in_pages["limit"] = json!(2);
        let whole = pages(&mut client, asked);
        assert!(whole.len() >= 7, "{whole:?}");
        assert_eq!(pages(&mut client, in_pages), whole);
    }
}

#[test]
fn what_version_control_and_the_system_keep_is_left_to_them() {
    let (desk, folder, token) = desk();
    for path in ["repo/.git/config", "repo/main.rs", "lost+found/x"] {
        std::fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
        std::fs::write(folder.path().join(path), "x").unwrap();
    }
    let mut client = agent(&desk, &token);
    for (step, says) in [
        (json!({ "action": "move", "from": "repo/.git/config", "to": "config" }), "version control"),
        (json!({ "action": "move", "from": "a.txt", "to": "repo/.GIT/hooks/pre-commit" }), "version control"),
        (json!({ "action": "write", "to": "repo/.git/hooks/post-checkout", "text": "#!/bin/sh" }), "version control"),
        (json!({ "action": "trash", "from": "repo/.git" }), "version control"),
        (json!({ "action": "replace", "to": "repo/.git/config", "text": "" }), "version control"),
        (json!({ "action": "move", "from": "lost+found/x", "to": "x" }), "operating system"),
        (json!({ "action": "make_folder", "to": ".Trash-1000/files" }), "operating system"),
    ] {
        let plan = ask(&mut client, "change_plan", json!({ "root": "notes", "steps": [step] }));
        assert!(plan["state"] == "failed" && plan["note"].as_str().unwrap().contains(says), "{step}: {plan}");
    }
    let moves = ask(&mut client, "organize_plan", json!({ "root": "notes", "moves": [{ "from": "repo/.git", "to": "git" }] }));
    assert_eq!(moves["state"], "failed", "{moves}");
    // A whole repository may go elsewhere, and whoever decides is told what goes along.
    let plan = ask(&mut client, "organize_plan", json!({ "root": "notes", "moves": [{ "from": "repo", "to": "old/repo" }] }));
    assert!(plan["moves"][0]["warning"].as_str().is_some_and(|why| why.contains("repo/.git")), "{plan}");
    let waits = person(&desk, &["inbox", "--passphrase-stdin", "show", plan["request_id"].as_str().unwrap(), "--json"]);
    assert!(waits.to_string().contains("1 of 1 steps carry a warning"), "{waits}");
    let tidy = ask(&mut client, "organize_plan", json!({ "root": "notes", "recursive": true }));
    assert!(!tidy.to_string().contains("lost+found") && !tidy.to_string().contains("notes/repo"), "{tidy}");
    // What is the system's own is looked at only.
    open(&desk, "workspace: { roots: [{ name: system, path: /etc, access: write }] }\n");
    let plan = ask(&mut client, "change_plan", json!({ "root": "system", "steps": [{ "action": "write", "to": "x", "text": "" }] }));
    assert!(plan["note"].as_str().is_some_and(|note| note.contains("for looking only")), "{plan}");
}

#[test]
fn whoever_decides_can_read_all_that_changes() {
    let (desk, _folder, token) = desk();
    let mut client = agent(&desk, &token);
    let text = (0..9_000).map(|number| format!("line {number} of a long text\n")).collect::<Vec<_>>().concat();
    let plan = ask(&mut client, "change_plan", json!({ "root": "notes", "steps": [{ "action": "write", "to": "long.md", "text": text }] }));
    let whole = ask(&mut client, "get_plan", json!({ "plan_id": plan["plan_id"] }));
    let all = whole["steps"][0]["diff_bytes"].as_u64().unwrap();
    assert!(all > 200_000 && whole["steps"][0]["diff"].as_str().unwrap().len() <= 64 * 1024);
    let (mut read, mut offset) = (String::new(), json!(0));
    while !offset.is_null() {
        let page = ask(&mut client, "read_diff", json!({ "plan_id": plan["plan_id"], "number": 1, "offset": offset }));
        read.push_str(page["diff"].as_str().unwrap_or_else(|| panic!("{page}")));
        offset = page["next_offset"].clone();
    }
    assert!(read.len() as u64 == all && read.ends_with("+line 8999 of a long text\n"));
    let none = ask(&mut client, "read_diff", json!({ "plan_id": plan["plan_id"], "number": 2 }));
    assert_eq!(none["_meta"]["deskmate/error"]["code"], "not_found", "{none}");
}

#[test]
fn making_a_plan_tells_how_far_it_is() {
    let (desk, folder, token) = desk();
    for number in 0..60_000 {
        let place = folder.path().join(format!("many/{}", number / 1_000));
        if number % 1_000 == 0 {
            std::fs::create_dir_all(&place).unwrap();
        }
        std::fs::File::create(place.join(format!("{number}.dat"))).unwrap();
    }
    let mut client = agent(&desk, &token);
    let plan = ask(&mut client, "organize_plan", json!({ "root": "notes/many", "recursive": true, "timeout_seconds": 0 }));
    let job = format!("job={}", plan["plan_job_id"].as_str().unwrap());
    let text = until("it tells how far it is", || {
        let seen = person(&desk, &["call", "desk_job_get", &job, "--passphrase-stdin", "--json"]);
        seen["progress"]["text"].as_str().map(str::to_owned)
    });
    assert!(text.starts_with("looked at ") && text.contains("entries"), "{text}");
}
