//! Random plans on random trees, with the server killed at random moments while they are done and while they are taken back:
//! the tree is byte for byte what the plan says, and afterwards what it was. `DESKMATE_ROUNDS` runs it for longer.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{Client, Desk, until};
use crate::workspace::{agent, approve, ask, desk, tree};

const STEPS: usize = 300;

/// Numbers that look like chance and come again for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// Files with a content of their own, some in folders.
fn plant(folder: &Path, chance: &mut Chance) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for number in 0..STEPS {
        let name = format!("wild/{}/{number}.txt", ["a", "b/c", "b", "d e"][chance.below(4)]);
        let text = format!("{number} {}\n", "x".repeat(chance.below(2_000)));
        let path = folder.join(&name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &text).unwrap();
        files.insert(name, text);
    }
    files
}

/// A step for each file, and what the files are afterwards.
fn steps(files: &BTreeMap<String, String>, chance: &mut Chance) -> (Vec<Value>, BTreeMap<String, String>) {
    let mut after = files.clone();
    let mut steps = Vec::new();
    for (number, (name, text)) in files.iter().enumerate() {
        match chance.below(5) {
            0 => {
                let to = format!("wild/moved {}/{number}.txt", chance.below(5));
                steps.push(json!({ "action": "move", "from": name, "to": to }));
                after.remove(name);
                after.insert(to, text.clone());
            }
            1 => {
                let to = format!("wild/copied/{number}.txt");
                steps.push(json!({ "action": "copy", "from": name, "to": to }));
                after.insert(to, text.clone());
            }
            2 => {
                steps.push(json!({ "action": "replace", "to": name, "text": format!("other {number}") }));
                after.insert(name.clone(), format!("other {number}"));
            }
            3 => {
                steps.push(json!({ "action": "trash", "from": name }));
                after.remove(name);
            }
            _ => {
                let to = format!("wild/new/{number}.txt");
                steps.push(json!({ "action": "write", "to": to, "text": format!("new {number}") }));
                after.insert(to, format!("new {number}"));
            }
        }
    }
    (steps, after)
}

/// Does a plan while the server is killed now and then, and answers how it ended.
fn done(desk: &Desk, token: &str, plan: &Value, chance: &mut Chance) -> Value {
    approve(desk, plan);
    let mut client = agent(desk, token);
    ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"], "timeout_seconds": 0 }));
    // A client that is still there would start a server of its own.
    drop(client);
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(chance.below(250) as u64));
        desk.kill_server();
        desk.up();
    }
    let mut client = agent(desk, token);
    ended(&mut client, plan)
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
#[expect(clippy::disallowed_methods, reason = "a test is told by its environment how long to run")]
fn whatever_is_planned_and_whenever_the_server_dies_the_files_are_what_the_record_says() {
    let rounds: u64 = std::env::var("DESKMATE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(2);
    let (desk, folder, token) = desk();
    for seed in 0..rounds {
        let mut chance = Chance(seed.wrapping_mul(7_919) + 17);
        let wild = folder.path().join("wild");
        drop(std::fs::remove_dir_all(&wild));
        let files = plant(folder.path(), &mut chance);
        let before = tree(folder.path());
        let (steps, after) = steps(&files, &mut chance);
        let mut client = agent(&desk, &token);
        let plan = ask(&mut client, "change_plan", json!({ "root": "notes", "steps": steps }));
        assert_eq!(plan["state"], "ready", "seed {seed}: {plan}");
        drop(client);
        let end = done(&desk, &token, &plan, &mut chance);
        let mut client = agent(&desk, &token);
        assert_eq!((&end["state"], &end["applied"]), (&json!("done"), &plan["count"]), "seed {seed}: {:?}", others(&mut client, &plan));
        let found: BTreeMap<String, String> =
            tree(&wild).into_iter().map(|(name, (bytes, ..))| (format!("wild/{name}"), String::from_utf8(bytes).unwrap())).collect();
        assert!(found == after, "seed {seed}: the files are not what the plan says");
        let undo = ask(&mut client, "undo_plan", json!({ "plan_id": plan["plan_id"] }));
        drop(client);
        let end = done(&desk, &token, &undo, &mut chance);
        let mut client = agent(&desk, &token);
        assert_eq!((&end["state"], &end["applied"]), (&json!("done"), &undo["count"]), "seed {seed}: {:?}", others(&mut client, &undo));
        assert!(tree(folder.path()) == before, "seed {seed}: bytes, modes and times are not what they were");
    }
}
