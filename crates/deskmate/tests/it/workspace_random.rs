//! Random plans on random trees, with the server killed at random moments while they are done and while they are taken back:
//! the tree is byte for byte what the plan and the record say, with kinds, modes and times, and afterwards what it was; once more with another
//! file system mounted beneath the root, between which things are copied. `DESKMATE_ROUNDS` runs it for longer.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::desk::{Client, Desk, until};
use crate::workspace::{agent, approve, ask, desk, person};

const STEPS: usize = 600;
/// A mode that is not said beforehand.
const ANY: u32 = u32::MAX;

/// Numbers that look like chance and come again for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// What lies in a folder: kind, mode, time, and content or where a link leads. The times of folders change with what is done in
/// them.
type Picture = BTreeMap<String, (&'static str, u32, Option<SystemTime>, Vec<u8>)>;

fn picture(folder: &Path) -> Picture {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(place) = open.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if path.file_name().is_some_and(|name| name == ".trash" || name == ".deskmate-audit.jsonl") {
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            let mode = meta.permissions().mode() & 0o7777;
            let seen = if meta.is_dir() {
                open.push(path);
                ("folder", mode, None, Vec::new())
            } else if meta.is_symlink() {
                ("link", mode, meta.modified().ok(), std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes())
            } else {
                ("file", mode, meta.modified().ok(), std::fs::read(&path).unwrap())
            };
            found.insert(name, seen);
        }
    }
    found
}

/// Files, folders and links with a content, a mode and a time of their own; answers the names of those that steps are about.
fn plant(folder: &Path, places: &[&str], chance: &mut Chance) -> Vec<String> {
    let mut names = Vec::new();
    for number in 0..STEPS {
        let name = format!("{}/{}/{number}", places[chance.below(places.len())], ["a", "b/c", "b", "d e"][chance.below(4)]);
        let path = folder.join(&name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match chance.below(6) {
            0 => {
                for inner in 0..chance.below(3) {
                    std::fs::create_dir_all(path.join("in ner")).unwrap();
                    std::fs::write(path.join(format!("in ner/{inner}")), format!("{number} {inner}")).unwrap();
                }
                std::fs::create_dir_all(&path).unwrap();
                std::fs::set_permissions(&path, Permissions::from_mode([0o755, 0o700, 0o750][chance.below(3)])).unwrap();
            }
            1 => std::os::unix::fs::symlink(["../a", "nowhere", "/etc/passwd"][chance.below(3)], &path).unwrap(),
            _ => {
                std::fs::write(&path, format!("{number} {}\n", "x".repeat(chance.below(2_000)))).unwrap();
                let at = SystemTime::UNIX_EPOCH + Duration::new(chance.below(1_700_000_000) as u64, u32::try_from(chance.below(1_000_000_000)).unwrap());
                File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
                std::fs::set_permissions(&path, Permissions::from_mode([0o644, 0o600, 0o755, 0o640, 0o444][chance.below(5)])).unwrap();
            }
        }
        names.push(name);
    }
    names
}

/// A step for each of them, and what is there afterwards: kinds, modes, times and contents. What is new has the mode and time
/// that it is given, which only the copy of something else tells beforehand.
fn steps(names: &[String], places: &[&str], before: &Picture, chance: &mut Chance) -> (Vec<Value>, Picture) {
    let mut after = before.clone();
    let mut steps = Vec::new();
    let parents = |after: &mut Picture, path: &str| {
        for (at, _) in path.match_indices('/') {
            after.entry(path.get(..at).unwrap().to_owned()).or_insert(("folder", ANY, None, Vec::new()));
        }
    };
    for (number, name) in names.iter().enumerate() {
        let (kind, place) = (before[name].0, places[chance.below(places.len())]);
        match chance.below(6) {
            0 => {
                let to = format!("{place}/moved {}/{number}", chance.below(5));
                steps.push(json!({ "action": "move", "from": name, "to": to }));
                let inside: Vec<String> = after.keys().filter(|path| *path == name || path.starts_with(&format!("{name}/"))).cloned().collect();
                for path in inside {
                    let seen = after.remove(&path).unwrap();
                    after.insert(format!("{to}{}", path.get(name.len()..).unwrap()), seen);
                }
                parents(&mut after, &to);
            }
            1 if kind != "folder" => {
                let to = format!("{place}/copied/{number}");
                steps.push(json!({ "action": "copy", "from": name, "to": to }));
                after.insert(to.clone(), before[name].clone());
                parents(&mut after, &to);
            }
            2 if kind == "file" => {
                steps.push(json!({ "action": "replace", "to": name, "text": format!("other {number}") }));
                after.insert(name.clone(), ("file", before[name].1, None, format!("other {number}").into_bytes()));
            }
            3 => {
                steps.push(json!({ "action": "trash", "from": name }));
                after.retain(|path, _| path != name && !path.starts_with(&format!("{name}/")));
            }
            4 => {
                let to = format!("{place}/made/{}/{number}", chance.below(3));
                steps.push(json!({ "action": "make_folder", "to": to }));
                after.insert(to.clone(), ("folder", ANY, None, Vec::new()));
                parents(&mut after, &to);
            }
            _ => {
                let to = format!("{place}/new/{number}");
                steps.push(json!({ "action": "write", "to": to, "text": format!("new {number}") }));
                after.insert(to.clone(), ("file", ANY, None, format!("new {number}").into_bytes()));
                parents(&mut after, &to);
            }
        }
    }
    (steps, after)
}

/// Whether the tree is what is expected; a time only where one is.
fn is_like(found: &Picture, expected: &Picture) -> Result<(), String> {
    for (path, (kind, mode, at, content)) in expected {
        let Some(seen) = found.get(path) else { return Err(format!("{path} is missing")) };
        if (seen.0, &seen.3) != (*kind, content) || (*mode != ANY && seen.1 != *mode) || at.is_some_and(|at| seen.2 != Some(at)) {
            return Err(format!("{path} is {seen:?}, not {:?}", (kind, mode, at)));
        }
    }
    found.keys().find(|path| !expected.contains_key(*path)).map_or(Ok(()), |path| Err(format!("{path} is too much")))
}

/// How many of these steps have been done, as the files show.
fn effects(folder: &Path, steps: &[Value]) -> usize {
    let there = |path: &Value| std::fs::symlink_metadata(folder.join(path.as_str().unwrap())).is_ok();
    let done = |step: &&Value| match step["action"].as_str().unwrap() {
        "trash" => !there(&step["from"]),
        "replace" => std::fs::read(folder.join(step["to"].as_str().unwrap())).is_ok_and(|text| text.starts_with(b"other")),
        _ => there(&step["to"]),
    };
    steps.iter().filter(done).count()
}

/// Does a plan while the server is killed, and answers how it ended, and whether the kill hit in the middle: some effects were
/// there, and some were not.
fn done(desk: &Desk, token: &str, plan: &Value, count: &dyn Fn() -> usize, chance: &mut Chance) -> (Value, bool) {
    approve(desk, plan);
    let before = count();
    let mut client = agent(desk, token);
    ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"], "timeout_seconds": 0 }));
    // A client that is still there would start a server of its own.
    drop(client);
    let deadline = Instant::now() + Duration::from_secs(20);
    while count() == before && Instant::now() < deadline {}
    desk.kill_server();
    let hit = count();
    desk.up();
    std::thread::sleep(Duration::from_millis(chance.below(250) as u64));
    desk.kill_server();
    desk.up();
    let mut client = agent(desk, token);
    let end = ended(&mut client, plan);
    (end, hit != before && hit != count())
}

/// What the record says came of a plan's steps.
fn recorded(desk: &Desk, plan: &Value) -> u64 {
    let told = person(desk, &["call", "desk_record_list", "kind=plan.steps.ended", "limit=200", "--passphrase-stdin", "--json"]);
    let subject = format!("plan:{}", plan["plan_id"].as_str().unwrap());
    let of_it = |event: &&Value| event["subject"] == subject.as_str();
    told["events"].as_array().unwrap().iter().filter(of_it).map(|event| event["facts"]["done"].as_u64().unwrap()).sum()
}

/// The steps that did not end as done, with why.
fn others(client: &mut Client, plan: &Value) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = ask(client, "get_plan", json!({ "plan_id": plan["plan_id"], "limit": 200, "cursor": cursor }));
        let other = |step: &&Value| step["outcome"] != "done";
        let told = |step: &Value| json!([step["action"], step["from"], step["to"], step["outcome"], step["note"]]);
        found.extend(page["steps"].as_array().unwrap().iter().filter(other).map(told));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            return found;
        }
    }
}

fn ended(client: &mut Client, plan: &Value) -> Value {
    until("the plan has ended", || {
        let found = ask(client, "wait_for_plan", json!({ "plan_id": plan["plan_id"], "timeout_seconds": 5 }));
        (found["state"] != "running").then_some(found)
    })
}

#[test]
fn whatever_is_planned_and_whenever_the_server_dies_the_files_are_what_the_record_says() {
    let (desk, folder, token) = desk();
    random(&desk, &folder, &token, &["wild"]);
}

/// Where the test runs again in a mount namespace of its own.
const MOUNTED: &str = "DESKMATE_RANDOM_MOUNTED";

#[test]
#[expect(clippy::disallowed_methods, reason = "a test tells itself in the environment that it may mount")]
fn so_they_are_where_things_go_to_another_file_system() {
    if std::env::var_os(MOUNTED).is_some() {
        let (desk, folder, token) = desk();
        let far = folder.path().join("far");
        std::fs::create_dir(&far).unwrap();
        assert!(Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(&far).status().unwrap().success());
        return random(&desk, &folder, &token, &["wild", "far/wild"]);
    }
    let name = "workspace_random::so_they_are_where_things_go_to_another_file_system";
    let can = Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success());
    if !can {
        return testkit::skipped("no file system can be mounted by this account, so plans between two of them were not tried; run as root");
    }
    let again = Command::new("unshare").arg("-rm").arg(std::env::current_exe().unwrap()).args(["--exact", name]).env(MOUNTED, "1").output().unwrap();
    let told = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success() && told.contains("1 passed"), "{told}{}", String::from_utf8_lossy(&again.stderr));
}

#[expect(clippy::disallowed_methods, reason = "a test is told by its environment how long to run")]
fn random(desk: &Desk, folder: &tempfile::TempDir, token: &str, places: &[&str]) {
    let rounds: u64 = std::env::var("DESKMATE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(2);
    let mut hits = 0;
    for seed in 0..rounds {
        let mut chance = Chance(seed.wrapping_mul(7_919) + 17);
        for place in places {
            drop(std::fs::remove_dir_all(folder.path().join(place)));
        }
        let names = plant(folder.path(), places, &mut chance);
        let before = picture(folder.path());
        let (steps, after) = steps(&names, places, &before, &mut chance);
        let count = || effects(folder.path(), &steps);
        let mut client = agent(desk, token);
        let plan = ask(&mut client, "change_plan", json!({ "root": "notes", "steps": steps }));
        assert_eq!(plan["state"], "ready", "seed {seed}: {plan}");
        drop(client);
        let (end, hit) = done(desk, token, &plan, &count, &mut chance);
        hits += usize::from(hit);
        let mut client = agent(desk, token);
        assert_eq!((&end["state"], &end["applied"]), (&json!("done"), &plan["count"]), "seed {seed}: {:?}", others(&mut client, &plan));
        assert_eq!(json!(recorded(desk, &plan)), plan["count"], "seed {seed}: the record tells of every step once");
        is_like(&picture(folder.path()), &after).unwrap_or_else(|why| panic!("seed {seed}: the files are not what the plan says: {why}"));
        restored(desk, &mut client, folder.path());
        is_like(&picture(folder.path()), &after).unwrap_or_else(|why| panic!("seed {seed}: a restore was not taken back: {why}"));
        let undo = ask(&mut client, "undo_plan", json!({ "plan_id": plan["plan_id"] }));
        drop(client);
        let (end, hit) = done(desk, token, &undo, &count, &mut chance);
        hits += usize::from(hit);
        let mut client = agent(desk, token);
        assert_eq!((&end["state"], &end["applied"]), (&json!("done"), &undo["count"]), "seed {seed}: {:?}", others(&mut client, &undo));
        assert_eq!(json!(recorded(desk, &undo)), undo["count"], "seed {seed}");
        let mut found = picture(folder.path());
        // Where the file system does not keep how old a folder is, nobody knows any more which ones a step that a kill cut short made on
        // the way: those stay, and are empty.
        if std::fs::metadata(folder.path()).unwrap().created().is_err() {
            found.retain(|path, seen| before.contains_key(path) || seen.0 != "folder" || !after.contains_key(path));
        }
        is_like(&found, &before).unwrap_or_else(|why| panic!("seed {seed}: not what it was: {why}"));
    }
    assert!(hits > 0, "no server was killed in the middle of its work");
}

/// Something comes out of the trash at another place, and goes back into it.
fn restored(desk: &Desk, client: &mut Client, folder: &Path) {
    let trash = |client: &mut Client| ask(client, "list_trash", json!({ "root": "notes" }))["items"].as_array().unwrap().clone();
    let before = trash(client);
    let plan = ask(client, "restore", json!({ "root": "notes", "trash_id": before[before.len() / 2]["trash_id"], "restore_to": "notes/wild/back" }));
    approve(desk, &plan);
    assert_eq!(ask(client, "execute_plan", json!({ "plan_id": plan["plan_id"] }))["applied"], 1);
    assert!(std::fs::symlink_metadata(folder.join("wild/back")).is_ok());
    let undo = ask(client, "undo_plan", json!({ "plan_id": plan["plan_id"] }));
    approve(desk, &undo);
    assert_eq!(ask(client, "execute_plan", json!({ "plan_id": undo["plan_id"] }))["applied"], 1);
    assert_eq!(trash(client), before, "it lies in the trash as it did");
}
