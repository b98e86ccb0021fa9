//! Disks that are full, read-only or damaged; and what is no longer on one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::support::{BINARY, Chance, Desk, deskmate, eventually, sound, up, verify, waiting};

/// A server whose data directory is a small file system of its own; `None` where mounting is refused.
fn on_small_disk(directory: &Path) -> Option<(Desk, PathBuf)> {
    let home = directory.join("small");
    std::fs::create_dir(&home).expect("a directory");
    let refused = Command::new("unshare").args(["-m", "sh", "-c", "mount -t tmpfs -o size=1m tmpfs \"$0\""]).arg(&home).output();
    if !refused.is_ok_and(|done| done.status.success()) {
        testkit::skipped("this account may not mount a tmpfs, so the full disk was not tested; run as root");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", "mount -t tmpfs -o size=12m tmpfs \"$0\" && exec \"$@\""]).arg(&home).arg(BINARY).args(up(&home).get_args());
    command.env("HOME", &home);
    // Its log lies outside the small disk.
    let desk = Desk::launch(command, &directory.join("beside"), &home).unwrap_or_else(|ended| panic!("{}", ended.stderr));
    let seen = PathBuf::from(format!("/proc/{}/root{}", desk.child.id(), home.display()));
    Some((desk, seen))
}

fn fill(path: &Path, leave: u64) {
    let mut file = std::fs::File::create(path).expect("a file");
    let chunk = [1_u8; 16 * 1024];
    let mut size = 0;
    while file.write_all(&chunk).is_ok() {
        size += chunk.len() as u64;
    }
    file.set_len(size.saturating_sub(leave)).expect("the file can be cut");
}

#[test]
fn a_full_disk_fails_the_batch_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some((desk, home)) = on_small_disk(directory.path()) else { return };
    let mut http = desk.http();
    let kept: Vec<_> = (0..20).map(|n| http.send("code", "cowork", &format!("before {n}")).expect("answers").good()["message_id"].clone()).collect();
    let ballast = home.join("ballast");
    fill(&ballast, 24 * 1024);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..64)
            .map(|n| {
                scope.spawn({
                    let desk = &desk;
                    move || desk.http().send("code", "cowork", &format!("full {n} {}", "x".repeat(8_000))).expect("answers")
                })
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().expect("the sender ends")).collect()
    });
    let good: Vec<_> = answers.iter().filter(|answer| answer.status == 200).map(|answer| answer.json()["message_id"].clone()).collect();
    let bad: Vec<_> = answers.iter().filter(|answer| answer.status != 200).collect();
    assert!(bad.len() > 32, "only {} of 64 met the full disk", bad.len());
    for answer in &bad {
        assert_eq!((answer.status, answer.code().as_str()), (503, "unavailable"), "{}", answer.text());
    }
    assert!(bad.iter().any(|answer| answer.text().contains("the disk is full")), "{}", bad[0].text());
    let there = |http: &mut _| waiting(http, "cowork").into_iter().map(|(id, _)| json!(id)).collect::<Vec<_>>();
    let found = there(&mut http);
    assert!(kept.iter().chain(&good).all(|id| found.contains(id)), "something that was acknowledged is gone");
    assert_eq!(found.len(), kept.len() + good.len(), "something is there that was refused");
    std::fs::remove_file(&ballast).expect("space can be freed");
    let after = http.send("code", "cowork", "after").expect("answers").good()["message_id"].clone();
    assert!(there(&mut http).contains(&after), "the desk does not go on");
    let mut inside = Command::new("nsenter");
    inside.args(["-t", &desk.child.id().to_string(), "-m", BINARY, "audit", "verify", "--json", "--home"]).arg(directory.path().join("small"));
    sound(&inside.output().expect("nsenter runs"));
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    std::fs::create_dir(&home).expect("a directory");
    let done = Command::new("unshare")
        .args(["-m", "sh", "-c", "mount -t tmpfs -o ro tmpfs \"$0\" || exit 99; exec \"$@\""])
        .arg(&home)
        .arg(BINARY)
        .args(up(&home).get_args())
        .output();
    let Some(done) = done.ok().filter(|done| done.status.code() != Some(99) && !String::from_utf8_lossy(&done.stderr).contains("Operation not permitted"))
    else {
        testkit::skipped("this account may not mount, so the read-only directory was not tested; run as root");
        return;
    };
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success(), "it started on a read-only directory");
    assert!(said.contains(&*home.to_string_lossy()) && said.contains("Read-only"), "{said}");
}

#[test]
fn a_damaged_page_is_refused_or_told_and_never_wrong_data() {
    let mut chance = Chance::new("damage");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let whole = directory.path().join("whole");
    let mut desk = Desk::start(&whole);
    let mut http = desk.http();
    let sent: Vec<_> = (0..300).map(|n| format!("message {n} {}", "y".repeat(300))).collect();
    for content in &sent {
        http.send("code", "cowork", content).expect("answers").good();
    }
    desk.stop();
    let pages = std::fs::metadata(whole.join("desk.db")).expect("a store").len() / 4096;
    let mut told = 0;
    // The first page says that this is a database at all; of the others, every eighth.
    for page in std::iter::once(0).chain((1 + chance.below(8)..pages).step_by(8)) {
        let home = directory.path().join(format!("damaged-{page}"));
        std::fs::create_dir(&home).expect("a directory");
        for file in ["desk.db", "record.key"] {
            std::fs::copy(whole.join(file), home.join(file)).expect("a copy");
        }
        damage(&home.join("desk.db"), page);
        told += u32::from(look(&home, &sent, page));
    }
    assert!(told > 0, "no damage was ever noticed");
}

fn damage(database: &Path, page: u64) {
    use std::io::{Seek, SeekFrom};
    let mut file = std::fs::OpenOptions::new().write(true).open(database).expect("the store opens");
    file.seek(SeekFrom::Start(page * 4096)).expect("it has that page");
    file.write_all(&[0xa5; 4096]).expect("it can be damaged");
}

/// Whether the damage was noticed at all; wrong data fails the test.
fn look(home: &Path, sent: &[String], page: u64) -> bool {
    let desk = match Desk::launch(up(home), home, home) {
        Ok(desk) => desk,
        Err(ended) => {
            assert!(ended.code.is_some_and(|code| code != 0 && code != 101), "page {page}: {}", ended.stderr);
            assert!(ended.stderr.contains("damaged") || ended.stderr.contains("record"), "page {page}: {}", ended.stderr);
            return true;
        }
    };
    let answer = desk.call("cowork", "bridge_read_messages", json!({ "limit": 200 }));
    let refused = answer.status != 200;
    if refused {
        assert_eq!(answer.code(), "internal", "page {page}: {}", answer.text());
        assert!(answer.text().contains("audit verify"), "page {page}: {}", answer.text());
        let said = answer.json();
        let incident = said["error"]["incident"].as_str().unwrap_or_else(|| panic!("page {page}: no incident in {said}"));
        let line = desk.log().lines().find(|line| line.contains(incident)).map(str::to_owned);
        assert!(line.is_some_and(|line| line.contains("ERROR")), "page {page}: {incident} is not in the log: {}", desk.log());
    } else {
        for (message, content) in answer.json()["messages"].as_array().expect("a list").iter().zip(sent) {
            assert_eq!(message["content"].as_str(), Some(content.as_str()), "page {page}: wrong data");
        }
    }
    let log = desk.log();
    assert!(!log.contains("panicked"), "page {page}: {log}");
    drop(desk);
    refused || !deskmate(home, &["audit", "verify"]).status.success()
}

#[test]
fn a_torn_end_of_the_log_costs_only_what_was_never_acknowledged() {
    let mut chance = Chance::new("torn");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    for round in 0..10_usize {
        let mut desk = Desk::start(&home);
        let mut http = desk.http();
        let found = waiting(&mut http, "cowork").len();
        assert_eq!(found, round * 3);
        for n in 0..3 {
            http.send("code", "cowork", &format!("{round}/{n}")).expect("answers").good();
        }
        desk.child.kill().expect("the server can be killed");
        desk.ended();
        // As a crash in the middle of the next write leaves it: half a frame behind the last commit.
        let mut log = std::fs::OpenOptions::new().append(true).open(home.join("desk.db-wal")).expect("a log");
        let length = usize::try_from(chance.below(6_000)).expect("small");
        log.write_all(&vec![0x5a; length]).expect("it can be torn");
        verify(&home);
    }
}

#[test]
fn what_was_erased_is_in_no_file_of_a_running_desk() {
    const SECRET: &str = "the-word-that-nobody-may-read";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let (desk, session) = Desk::owned(&home);
    let holders = || {
        let files = std::fs::read_dir(&home).expect("a directory").filter_map(Result::ok);
        let holds = |path: &PathBuf| std::fs::read(path).is_ok_and(|bytes| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
        files.map(|file| file.path()).filter(holds).collect::<Vec<_>>()
    };
    // Long enough for pages of its own, which are free afterwards.
    let content = format!("{SECRET} {}", "x".repeat(20_000));
    for _ in 0..3 {
        desk.http().send("code", "cowork", &content).expect("the server answers").good();
    }
    eventually("the bridge file shows it too", Duration::from_secs(20), || holders().iter().any(|path| path.to_string_lossy().contains("messages.db")));
    let events = desk.with(&session, "desk_record_list", &json!({ "kind": "message.sent" })).good();
    for event in events["events"].as_array().expect("a list") {
        desk.with(&session, "desk_record_erase", &json!({ "seq": event["seq"], "reason": "it was a secret" })).good();
    }
    eventually("no file holds it any more", Duration::from_secs(20), || holders().is_empty());
    drop(desk);
    verify(&home);
}
