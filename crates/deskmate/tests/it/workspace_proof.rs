//! What the workspace promises, tried on the built binary where it is hardest: a very large tree, and somebody else who swaps
//! folders and links while agents look and plans are made and done. `DESKMATE_TREE=1000000` makes the tree larger, and
//! `DESKMATE_ROUNDS=100000` swaps for longer.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desk::{Desk, until};
use crate::workspace::{agent, approve, ask, desk};

#[expect(clippy::disallowed_methods, reason = "a test is told by its environment how long to run")]
fn told(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Kilobytes of memory that the server holds for itself now.
fn held(desk: &Desk) -> u64 {
    let pid = desk.holder().and_then(|holder| holder["pid"].as_u64()).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_very_large_tree_is_scanned_in_memory_that_does_not_grow_with_it() {
    let (desk, folder, token) = desk();
    let (files, each) = (told("DESKMATE_TREE", 200_000), 1_000);
    let mut made = 0;
    while made < files {
        // Some folders lie deep, and names are long enough that a list of them would be seen.
        let place = folder.path().join(format!("large/{}/{}/a folder with a rather long name {made}", made % 7, made % 11));
        std::fs::create_dir_all(&place).unwrap();
        for number in 0..each.min(files - made) {
            std::fs::File::create(place.join(format!("a file with a name that takes some room {number}.dat"))).unwrap();
        }
        made += each;
    }
    let mut client = agent(&desk, &token);
    // What a first look needs is there before it is counted.
    ask(&mut client, "scan_index", json!({ "root": "notes/sub" }));
    let before = held(&desk);
    let scan = ask(&mut client, "scan_index", json!({ "root": "notes/large", "timeout_seconds": 0 }));
    let (mut most, mut progress, mut running) = (0, false, None);
    let done = loop {
        most = most.max(held(&desk));
        let scan = ask(&mut client, "wait_for_scan", json!({ "job": scan["job"], "timeout_seconds": 0 }));
        progress |= scan["progress"]["text"].as_str().is_some_and(|text| text.contains("entries"));
        if scan["state"] == "running" {
            running.get_or_insert_with(Instant::now);
        }
        if scan["ended"] == true {
            break scan;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((&done["state"], &done["result"]["total"]["files"]), (&json!("done"), &json!(files)), "{}", done["error"]);
    // Twice a second, so what is quicker than that may have told nothing.
    assert!(progress || running.is_none_or(|since| since.elapsed() < Duration::from_secs(2)), "it told how far it was");
    // A list of all paths alone would take more than this.
    let grown = most.saturating_sub(before);
    assert!(grown < 24 * 1024, "{grown} kB more than before, for {files} files");
}

/// Another process that swaps a folder for a link to the outside and back, and a file for a link, until it is ended.
struct Swapper(Child);

impl Swapper {
    fn start(inside: &Path, outside: &Path) -> Self {
        let code = r"
import os, sys
inside, outside = sys.argv[1], sys.argv[2]
at = lambda name: os.path.join(inside, name)
os.symlink(outside, at('.way')); os.symlink(os.path.join(outside, 'secret.txt'), at('.door'))
rounds = 0
def swap(one, other):
    for a, b in ((one, '.aside'), (other, one), (one, other), ('.aside', one)):
        try: os.rename(at(a), at(b))
        except OSError: pass
while True:
    swap('deep', '.way')
    swap('deep/er', '.way')
    swap('deep/f.txt', '.door')
    rounds += 1
    if rounds % 50 == 0:
        with open(sys.argv[3], 'w') as count: count.write(str(rounds))
";
        let count = outside.parent().unwrap().join("rounds");
        let mut command = Command::new("python3");
        command.args(["-I", "-c", code]).args([inside, outside]).arg(count).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn nothing_outside_is_read_written_or_named_while_another_process_swaps_folders_and_links() {
    let (desk, folder, token) = desk();
    let beside = tempfile::tempdir().unwrap();
    let (outside, wild) = (beside.path().join("outside"), folder.path().join("wild"));
    for (path, text) in [
        (outside.join("secret.txt"), "OUTSIDE"),
        (outside.join("er/secret-name.txt"), "OUTSIDE"),
        (wild.join("deep/er/g.txt"), "in"),
        (wild.join("deep/f.txt"), "in"),
    ] {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::create_dir(folder.path().join("copies")).unwrap();
    let picture = crate::workspace::tree(&outside);
    let wanted = told("DESKMATE_ROUNDS", 10_000);
    let rounds = || std::fs::read_to_string(beside.path().join("rounds")).ok().and_then(|text| text.parse().ok()).unwrap_or(0_usize);
    let mut client = agent(&desk, &token);
    let swapper = Swapper::start(&wild, &outside);
    let (mut looks, mut plans) = (0, 0);
    while rounds() < wanted || looks < 200 {
        let path = ["notes/wild/deep/f.txt", "notes/wild/deep/er/g.txt", "notes/wild/deep/secret.txt", "notes/wild/deep/er/secret.txt"][looks % 4];
        let answers: Vec<Value> = vec![
            ask(&mut client, "read_file", json!({ "path": path })),
            ask(&mut client, "list_files", json!({ "root": "notes/wild", "hidden": true, "ignored": true })),
            ask(&mut client, "list_files", json!({ "root": "notes/wild/deep" })),
            ask(&mut client, "search_files", json!({ "root": "notes/wild", "text": "OUT", "hidden": true })),
            ask(&mut client, "scan_index", json!({ "root": "notes/wild", "hash_files": true })),
        ];
        for answer in &answers {
            let text = answer.to_string();
            assert!(!text.contains("OUTSIDE") && !text.contains("secret-name"), "{path}: {text}");
            assert!(!text.contains(beside.path().to_str().unwrap()), "{path}: {text}");
        }
        if looks % 20 == 0 {
            let steps = json!([
                { "action": "copy", "from": "wild/deep/f.txt", "to": format!("copies/{looks}.txt") },
                { "action": "write", "to": format!("wild/deep/new-{looks}.txt"), "text": "new" },
                { "action": "write", "to": format!("wild/deep/er/new-{looks}.txt"), "text": "new" },
            ]);
            for step in steps.as_array().unwrap() {
                let plan = ask(&mut client, "change_plan", json!({ "root": "notes", "steps": [step] }));
                if plan["state"] == "ready" {
                    approve(&desk, &plan);
                    ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }));
                    plans += 1;
                }
            }
        }
        looks += 1;
    }
    drop(swapper);
    assert!(plans > 5, "{plans} plans were done in {} rounds", rounds());
    assert!(crate::workspace::tree(&outside) == picture, "what is outside is as it was");
    let copies = crate::workspace::tree(&folder.path().join("copies"));
    assert!(copies.values().all(|(bytes, ..)| bytes == b"in"), "nothing from outside was copied in");
    until("the server lives", || desk.holder());
}
