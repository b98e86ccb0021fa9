//! Looks at whole trees through the built binary: what they find, what they pass over, stopping them, a server that is killed.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::http::{get, post};
use crate::desk::{Client, modern, until};
use crate::workspace::{agent, ask, desk, person};

/// What a look found.
fn found(client: &mut Client, tool: &str, input: Value) -> Value {
    let scan = ask(client, tool, input);
    assert_eq!((&scan["state"], &scan["ended"]), (&json!("done"), &json!(true)), "{tool}: {scan}");
    scan["result"].clone()
}

fn paths(files: &Value) -> Vec<&str> {
    files.as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect()
}

#[test]
fn the_page_shows_what_waits_for_its_turn_too() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    // Two trees are looked at at a time, and each of these takes for ever.
    let scan = |client: &mut Client, name: &str| {
        fs::create_dir(folder.path().join(name)).unwrap();
        File::create(folder.path().join(name).join("endless")).unwrap().set_len(1 << 40).unwrap();
        ask(client, "scan_index", json!({ "root": format!("notes/{name}"), "hash_files": true, "timeout_seconds": 0 }))["job"].as_str().unwrap().to_owned()
    };
    let jobs: Vec<String> = ["one", "two", "three"].into_iter().map(|name| scan(&mut client, name)).collect();
    let url = desk.url();
    let session = post(&url, "/api/desk_sign_in", &[], &json!({ "name": "Ada", "passphrase": "correct horse" }).to_string()).json();
    let cookie = format!("deskmate_session={}", session["session"].as_str().unwrap());
    until("the page shows all of them", || {
        let page = get(&url, "/workspace", &[("Cookie", &cookie)]).body;
        let all = jobs.iter().all(|job| page.contains(&format!("id=\"job-{job}\"")));
        (all && page.matches("It waits for its turn.").count() == 1).then_some(())
    });
    for job in &jobs {
        person(&desk, &["call", "desk_job_cancel", &format!("job={job}"), "--passphrase-stdin", "--json"]);
    }
}

#[test]
fn whole_trees_are_looked_at_and_what_must_not_be_opened_is_not() {
    let (desk, folder, token) = desk();
    let at = |name: &str| folder.path().join(name);
    // Longer than what earlier servers took a digest of: the digest is of all of it.
    let large: Vec<u8> = (0..26 << 20).map(|at: u32| u8::try_from(at % 251).unwrap()).collect();
    fs::write(at("sub/large.bin"), &large).unwrap();
    fs::copy(at("a.txt"), at("sub/copy.txt")).unwrap();
    fs::write(at("sub/odd\nname"), "x").unwrap();
    // A link to a file outside, a link to a folder outside, a pipe and a socket: opening any of them would tell or hang.
    symlink("/etc/passwd", at("out")).unwrap();
    symlink("/etc", at("outside")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(at("socket")).unwrap();
    // A device that never ends, where these tests may make one.
    drop(Command::new("mknod").arg(at("zero")).args(["c", "1", "5"]).stderr(std::process::Stdio::null()).status());
    let mut client = agent(&desk, &token);
    let index = found(&mut client, "scan_index", json!({ "root": "notes", "hash_files": true }));
    // a.txt, b.TXT, c.pdf, plain, .hidden, sub/d.txt, sub/copy.txt, sub/large.bin and the odd one; secret.env is withheld.
    assert_eq!((&index["total"]["files"], &index["hashed"], &index["total"]["folders"]), (&json!(9), &json!(9), &json!(1)), "{index}");
    let digest = deskmate_core::hex(&Sha256::digest(&large));
    assert_eq!((&index["largest"][0]["path"], &index["largest"][0]["sha256"]), (&json!("notes/sub/large.bin"), &json!(digest)));
    assert_eq!((&index["extensions"][0]["ext"], &index["files"][1]["path"]), (&json!("bin"), &json!("notes/a.txt")), "{index}");
    assert!(!index.to_string().contains("secret.env") && !index.to_string().contains("passwd"), "{index}");
    let plain = found(&mut client, "scan_index", json!({ "root": "notes" }));
    assert_eq!((&plain["hashed"], &plain["files"][0]["sha256"]), (&json!(0), &Value::Null));
    let tree = found(&mut client, "tree", json!({ "root": "notes", "depth": 2 }));
    let text = tree["tree"].as_str().unwrap();
    assert!(text.contains("\nsub/\n  copy.txt  3\n") && text.contains("\nout@\n") && text.contains("\npipe?\n") && text.contains("odd\\nname"), "{text}");
    assert!(!text.contains("hostname") && !text.contains(".hidden"), "{text}");
    let sizes = found(&mut client, "sizes", json!({ "root": "notes" }));
    assert_eq!((&sizes["folders"][0]["path"], &sizes["folders"][0]["count"]), (&json!("notes/sub"), &json!(4)), "{sizes}");
    assert_eq!(sizes["largest"][0]["path"], "notes/sub/large.bin");
    let same = found(&mut client, "duplicates", json!({ "root": "notes" }));
    assert_eq!((&same["groups"][0]["paths"], &same["wasted"]), (&json!(["notes/a.txt", "notes/sub/copy.txt"]), &json!(3)), "{same}");
    assert_eq!(paths(&found(&mut client, "scan_index", json!({ "root": "notes/sub" }))["newest"]).len(), 4);
    for bad in ["notes/a.txt", "notes/out", "notes/outside", "notes/pipe", "notes/nowhere"] {
        let scan = ask(&mut client, "scan_index", json!({ "root": bad }));
        assert_eq!(scan["state"], "failed", "{bad}: {scan}");
    }
    let past = ask(&mut client, "search_past_actions", json!({ "query": "scan_index", "workspace_root": "notes" }));
    assert!(past["events"].as_array().unwrap().len() >= 3, "{past}");
}

/// All pages of a look, each with so many.
fn pages(client: &mut Client, tool: &str, limit: u32, cursor: Option<&Value>) -> Vec<Value> {
    let mut pages: Vec<Value> = Vec::new();
    let mut cursor = cursor.cloned();
    loop {
        let mut input = json!({ "root": "notes", "limit": limit, "cursor": cursor });
        if tool != "duplicates" {
            input["depth"] = json!(9);
        }
        let page = found(client, tool, input);
        assert_eq!(page["truncated"], page["next_cursor"].is_string(), "{page}");
        cursor = page.get("next_cursor").cloned();
        pages.push(page);
        if cursor.is_none() {
            return pages;
        }
    }
}

/// The lists of all pages, one behind the other.
fn joined(pages: &[Value], list: &str) -> Vec<Value> {
    pages.iter().flat_map(|page| page[list].as_array().unwrap().clone()).collect()
}

#[test]
fn whoever_wants_everything_gets_it_page_by_page() {
    let (desk, folder, token) = desk();
    for number in 0..30 {
        let place = folder.path().join(format!("deep/{}in", "er/".repeat(number % 5)));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(format!("f{number:02}\n")), "x".repeat(number / 2)).unwrap();
        fs::write(place.join(format!("s{number:02}")), "the same").unwrap();
    }
    fs::write(folder.path().join(".gitignore"), "s2*\n").unwrap();
    let mut client = agent(&desk, &token);
    let whole = pages(&mut client, "tree", 5_000, None);
    let text = whole[0]["tree"].as_str().unwrap();
    assert!(whole.len() == 1 && text.contains("s19") && !text.contains("s20") && !text.contains("secret"), "{text}");
    let parts = pages(&mut client, "tree", 7, None);
    assert_eq!(parts.iter().map(|page| page["tree"].as_str().unwrap()).collect::<String>(), text);
    assert!(parts[0]["begins_in"].is_null() && parts[1..].iter().any(|page| page["begins_in"] == "notes/deep/er/er/in"), "{parts:?}");
    let whole = pages(&mut client, "sizes", 1_000, None);
    let parts = pages(&mut client, "sizes", 2, None);
    assert!(whole.len() == 1 && parts.len() > 4);
    assert_eq!(joined(&parts, "folders"), joined(&whole, "folders"));
    assert!(parts[0]["largest"] == whole[0]["largest"] && parts[1]["largest"] == json!([]) && parts[1]["total"] == whole[0]["total"], "{parts:?}");
    let whole = pages(&mut client, "duplicates", 1_000, None);
    let parts = pages(&mut client, "duplicates", 3, None);
    assert!(whole.len() == 1 && parts.len() > 4 && parts.iter().all(|page| page["wasted"] == whole[0]["wasted"]));
    assert_eq!(joined(&parts, "groups"), joined(&whole, "groups"));
    // What is told of one content are the first paths; its own cursor brings the others.
    let group = &whole[0]["groups"][0];
    assert_eq!((&group["count"], group["paths"].as_array().unwrap().len()), (&json!(30), 20), "{group}");
    let rest = pages(&mut client, "duplicates", 4, Some(&group["next_cursor"]));
    let rest: Vec<Value> = joined(&rest, "groups");
    assert!(rest.iter().all(|part| part["count"] == 30 && part["sha256"] == group["sha256"]), "{rest:?}");
    let mut all: Vec<Value> = group["paths"].as_array().unwrap().clone();
    all.extend(joined(&rest, "paths"));
    let names: std::collections::BTreeSet<&str> = all.iter().map(|path| path.as_str().unwrap()).collect();
    assert_eq!((all.len(), names.len(), whole[0]["groups"][1]["next_cursor"].is_null()), (30, 30, true));
    // A listing ends a page at names that nobody would write, too.
    let (mut cursor, mut listed) = (Value::Null, 0);
    loop {
        let page = ask(&mut client, "list_files", json!({ "root": "notes/deep", "limit": 1, "cursor": cursor }));
        listed += page["items"].as_array().unwrap().len();
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(listed, 30 + 20 + 5 + 4);
}

#[test]
fn a_client_that_knows_tasks_gets_a_look_that_takes_long_as_one() {
    let (desk, folder, token) = desk();
    let mut command = desk.command(&["mcp", "--toolset", "workspace"]);
    command.env("DESKMATE_TOKEN", &token);
    let mut client = Client::of(&desk, command);
    let mut call = |method: &str, params: Value| {
        let mut params = modern(params);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        client.call(method, params)
    };
    let quick = call("tools/call", json!({ "name": "scan_index", "arguments": { "root": "notes/sub", "timeout_seconds": 25 } }));
    assert_eq!(quick["structuredContent"]["ended"], true, "what has ended needs no task: {quick}");
    let endless = folder.path().join("endless");
    File::create(&endless).unwrap().set_len(1 << 40).unwrap();
    let begun = Instant::now();
    let long = json!({ "name": "scan_index", "arguments": { "root": "notes", "hash_files": true } });
    let task = call("tools/call", long.clone());
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    assert!(begun.elapsed() < Duration::from_secs(20), "whoever can follow a task is not held");
    let id = json!({ "taskId": task["taskId"] });
    assert_eq!(call("tasks/get", id.clone())["status"], "working");
    // A file that is shorter by now ends the look.
    File::options().write(true).open(&endless).unwrap().set_len(7).unwrap();
    let done = until("it has ended", || Some(call("tasks/get", id.clone())).filter(|task| task["status"] != "working"));
    assert_eq!(done["status"], "completed", "{done}");
    let answer = &done["result"]["structuredContent"];
    assert_eq!(
        (&answer["job"], &answer["state"], &answer["ended"]),
        (&task["taskId"], &json!("done"), &json!(true)),
        "as the call would have answered: {done}"
    );
    assert_eq!(answer["result"]["total"]["files"], 7, "{done}");
    File::options().write(true).open(&endless).unwrap().set_len(1 << 40).unwrap();
    let id = json!({ "taskId": call("tools/call", long)["taskId"] });
    call("tasks/cancel", id.clone());
    until("it stops", || (call("tasks/get", id.clone())["status"] == "cancelled").then_some(()));
}

#[test]
fn a_long_look_tells_how_far_it_is_is_stopped_and_is_taken_up_again() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    // A file without any blocks: taking its digest takes long and no space.
    let endless = folder.path().join("endless");
    File::create(&endless).unwrap().set_len(1 << 40).unwrap();
    let start = |client: &mut Client| {
        let scan = ask(client, "scan_index", json!({ "root": "notes", "hash_files": true, "timeout_seconds": 0 }));
        assert_eq!(scan["ended"], false, "{scan}");
        scan["job"].as_str().unwrap().to_owned()
    };
    let look = |client: &mut Client, job: &str| ask(client, "wait_for_scan", json!({ "job": job, "timeout_seconds": 0 }));
    let job = start(&mut client);
    until("it tells how far it is", || look(&mut client, &job)["progress"]["text"].is_string().then_some(()));
    assert_eq!(start(&mut client), job, "the same look is not begun twice");
    person(&desk, &["call", "desk_job_cancel", &format!("job={job}"), "--passphrase-stdin", "--json"]);
    until("it stops", || (look(&mut client, &job)["state"] == "cancelled").then_some(()));
    let job = start(&mut client);
    until("it runs", || (look(&mut client, &job)["state"] == "running").then_some(()));
    desk.kill_server();
    File::options().write(true).open(&endless).unwrap().set_len(7).unwrap();
    desk.up();
    let mut client = agent(&desk, &token);
    // The lease of the worker that is gone has to run out first.
    let deadline = Instant::now() + Duration::from_mins(2);
    let done = loop {
        let scan = ask(&mut client, "wait_for_scan", json!({ "job": job, "timeout_seconds": 10 }));
        if scan["ended"] == true {
            break scan;
        }
        assert!(Instant::now() < deadline, "{scan}");
    };
    assert_eq!((&done["state"], &done["result"]["hashed"]), (&json!("done"), &json!(7)), "{done}");
    let other = person(&desk, &["agent", "add", "other", "--json", "--passphrase-stdin"]);
    let mut other = agent(&desk, other["token"].as_str().unwrap());
    let refused = other.tool("wait_for_scan", json!({ "job": job }));
    assert_eq!(refused["isError"], true, "{refused}");
}

/// What no look can show: a name that is none, and what a search for a text does not read: a file that is too long, and one that is
/// no text.
fn unseen(folder: &std::path::Path) {
    fs::write(folder.join(std::ffi::OsStr::from_bytes(b"b\xff")), "one").unwrap();
    File::create(folder.join("huge.txt")).unwrap().set_len(65 << 20).unwrap();
    fs::write(folder.join("binary"), "\0one").unwrap();
}

#[test]
fn what_a_look_leaves_out_is_counted() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    let looks = [
        ("list_files", json!({ "root": "notes" }), 1),
        ("search_files", json!({ "name": "a.txt" }), 1),
        ("search_files", json!({ "text": "one" }), 3),
        ("search_files", json!({ "text": "one", "name": "*.txt" }), 2),
    ];
    let counts = |client: &mut Client| looks.clone().map(|(tool, input, _)| ask(client, tool, input)["left_out"].as_u64().unwrap());
    assert_eq!(counts(&mut client), [0; 4]);
    unseen(folder.path());
    assert_eq!(counts(&mut client), looks.clone().map(|(_, _, left_out)| left_out));
    fs::create_dir_all(folder.path().join(".trash/files")).unwrap();
    fs::create_dir_all(folder.path().join(".trash/info")).unwrap();
    fs::write(folder.path().join(".trash/files").join(std::ffi::OsStr::from_bytes(b"b\xff")), "").unwrap();
    assert_eq!(ask(&mut client, "list_trash", json!({ "root": "notes" }))["left_out"], 1);
}

#[test]
fn a_call_that_holds_says_how_far_its_look_is() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    let endless = folder.path().join("endless");
    let long = |bytes| File::options().create(true).truncate(false).write(true).open(&endless).unwrap().set_len(bytes).unwrap();
    let input = json!({ "root": "notes", "hash_files": true });
    for waits in [false, true] {
        long(1 << 40);
        let (tool, input) = if waits {
            let mut input = input.clone();
            input["timeout_seconds"] = json!(0);
            ("wait_for_scan", json!({ "job": ask(&mut client, "scan_index", input)["job"] }))
        } else {
            ("scan_index", input.clone())
        };
        let call = client.ask("tools/call", json!({ "name": tool, "arguments": input, "_meta": { "progressToken": tool } }));
        let told = client.notification("notifications/progress");
        assert_eq!(told["params"]["progressToken"], tool, "{told}");
        let said = told["params"]["message"].as_str().unwrap();
        assert!(said.contains(" entries, ") && said.contains(" bytes"), "{told}");
        long(7);
        let answer = client.answer(call);
        assert_eq!(answer["result"]["structuredContent"]["ended"], true, "{answer}");
        client.aside.clear();
    }
}

/// Files that take long to be searched and no space: text at their beginning, and then no blocks.
fn slow_files(folder: &std::path::Path, count: usize) {
    fs::create_dir(folder.join("slow")).unwrap();
    for number in 0..count {
        let path = folder.join(format!("slow/{number:04}.txt"));
        fs::write(&path, "a line\n".repeat(2_000)).unwrap();
        File::options().write(true).open(path).unwrap().set_len(60 << 20).unwrap();
    }
}

#[test]
fn a_search_that_takes_long_goes_on_as_a_job() {
    let (desk, folder, token) = desk();
    let mut client = agent(&desk, &token);
    let quick = ask(&mut client, "search_files", json!({ "text": "one" }));
    assert_eq!((&quick["matches"][0]["path"], &quick["job"]), (&json!("notes/a.txt"), &Value::Null), "{quick}");
    slow_files(folder.path(), 600);
    unseen(folder.path());
    let late = ask(&mut client, "search_files", json!({ "text": "nowhere", "timeout_seconds": 0 }));
    assert_eq!((&late["matches"], &late["truncated"]), (&json!([]), &json!(true)), "{late}");
    let job = late["job"].as_str().unwrap().to_owned();
    let look = |client: &mut Client| ask(client, "wait_for_scan", json!({ "job": job, "timeout_seconds": 0 }));
    until("it tells how far it is", || look(&mut client)["progress"]["text"].is_string().then_some(()));
    // Less to do: what is left of the folder is soon searched, and the answer is the page that the call would have brought.
    for entry in fs::read_dir(folder.path().join("slow")).unwrap() {
        File::options().write(true).open(entry.unwrap().path()).unwrap().set_len(14_000).unwrap();
    }
    until("it ends", || (look(&mut client)["ended"] == true).then_some(()));
    let done = look(&mut client);
    // What is no text has a line that is too long, as the slow ones had before.
    let left_out = done["result"]["left_out"].as_u64().unwrap();
    assert_eq!((&done["state"], &done["result"]), (&json!("done"), &json!({ "matches": [], "truncated": false, "left_out": left_out })), "{done}");
    assert!((3..=603).contains(&left_out), "{done}");
    let found = ask(&mut client, "search_files", json!({ "text": "a line", "limit": 2 }));
    assert_eq!((&found["matches"][1]["line"], &found["job"]), (&json!(2), &Value::Null), "what is quick is answered at once: {found}");
}
