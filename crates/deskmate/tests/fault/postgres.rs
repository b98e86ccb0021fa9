//! A database that goes away, comes back, and loses its wire; and two nodes on one database.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cluster::{Cluster, Cut, Way, Wire, desk_on};
use super::stream::follow;
use super::support::{Desk, Http, eventually, verify_on as verify, waiting};

#[test]
fn a_database_that_cannot_be_reached_is_named_at_start() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let started = Instant::now();
    let Err(ended) = desk_on(&directory.path().join("home"), "postgres://desk:secret@127.0.0.1:9/none") else { panic!("it started without a database") };
    assert!(started.elapsed() < Duration::from_secs(15));
    assert!(ended.code.is_some_and(|code| code != 0 && code != 101), "{:?}", ended.code);
    assert!(ended.stderr.contains("cannot be reached") && ended.stderr.contains("PostgreSQL"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("secret"), "the password is shown: {}", ended.stderr);
}

/// Sends until told to stop; what was acknowledged. Every refusal must say that the store is away.
fn write_until(address: &str, writer: usize, stop: &std::sync::atomic::AtomicBool) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let mut http = Http::open(address).expect("the server answers");
    let mut number = 0;
    while !stop.load(std::sync::atomic::Ordering::SeqCst) {
        let content = format!("{writer}/{number}");
        number += 1;
        let answer = http.send("code", &format!("reader-{writer}"), &content).expect("the server goes on answering");
        match answer.status {
            200 => acknowledged.push(content),
            503 => assert_eq!(answer.code(), "unavailable", "{}", answer.text()),
            other => panic!("{other}: {}", answer.text()),
        }
    }
    acknowledged
}

#[test]
fn a_restart_under_load_loses_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let desk = cluster.desk(&home);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let acknowledged: Vec<Vec<String>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                scope.spawn({
                    let (address, stop) = (&desk.address, &stop);
                    move || write_until(address, writer, stop)
                })
            })
            .collect();
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(700));
            cluster.control("restart");
        }
        std::thread::sleep(Duration::from_millis(1_500));
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        writers.into_iter().map(|writer| writer.join().expect("the writer ends")).collect()
    });
    let mut total = 0;
    for (writer, contents) in acknowledged.iter().enumerate() {
        let found = waiting(&mut desk.http(), &format!("reader-{writer}"));
        let there: BTreeSet<_> = found.iter().map(|(_, content)| content.clone()).collect();
        assert_eq!(there.len(), found.len(), "something is there twice");
        assert!(contents.iter().all(|content| there.contains(content)), "something that was acknowledged is gone");
        total += contents.len();
    }
    assert!(total > 20, "hardly anything was written: {total}");
    std::thread::sleep(Duration::from_millis(700));
    verify(&home, &cluster.url);
}

#[test]
fn the_record_is_sound_at_every_moment_of_writing() {
    let Some(cluster) = Cluster::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let desk = cluster.desk(&home);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers = [0, 1].map(|writer| {
            scope.spawn({
                let (address, stop) = (&desk.address, &stop);
                move || write_until(address, writer, stop)
            })
        });
        let mut sizes = Vec::new();
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(200));
            sizes.push(verify(&home, &cluster.url));
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(sizes.is_sorted_by(|before, after| before < after), "nothing was written meanwhile: {sizes:?}");
        assert!(writers.into_iter().all(|writer| !writer.join().expect("the writer ends").is_empty()));
    });
}

#[test]
fn an_outage_is_told_and_ends_by_itself() {
    let Some(cluster) = Cluster::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let (desk, owner) = Desk::owned_on(&home, Some(&cluster.url));
    let folder = directory.path().join("notes");
    std::fs::create_dir(&folder).expect("a folder");
    desk.with(&owner, "workspace_open_root", &json!({ "name": "notes", "path": folder })).good();
    // A job that a worker takes, and how it stands.
    let scan = || desk.with(&owner, "workspace_sizes", &json!({ "root": "notes" })).good()["job"].as_str().expect("a job").to_owned();
    let ended = |job: &str| {
        let waited = desk.with(&owner, "workspace_wait_for_scan", &json!({ "job": job, "timeout_seconds": 0 }));
        waited.status == 200 && waited.json()["state"] == "done"
    };
    let first = scan();
    eventually("a look at files ends", Duration::from_secs(20), || ended(&first));
    desk.http().send("code", "cowork", "before").expect("the server answers").good();
    cluster.control("stop");
    for (operation, input) in [("bridge_send_message", json!({ "to": "cowork", "content": "during" })), ("bridge_read_messages", json!({}))] {
        let started = Instant::now();
        let answer = desk.call("cowork", operation, input);
        assert_eq!((answer.status, answer.code().as_str()), (503, "unavailable"), "{operation}: {}", answer.text());
        assert!(started.elapsed() < Duration::from_secs(15), "{operation} was refused after {:?}", started.elapsed());
    }
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..80 {
            scope.spawn(|| assert_eq!(desk.call("cowork", "bridge_send_message", json!({ "to": "code", "content": "one of many" })).status, 503));
        }
    });
    assert!(started.elapsed() < Duration::from_secs(15), "many calls at once were refused after {:?}", started.elapsed());
    assert_eq!(desk.http().get("/readyz", &[]).expect("the server answers").status, 503);
    assert_eq!(desk.http().get("/healthz", &[]).expect("the server answers").status, 200);
    cluster.start_again();
    eventually("the desk goes on", Duration::from_secs(20), || desk.http().send("code", "cowork", "after").is_ok_and(|answer| answer.status == 200));
    let found = waiting(&mut desk.http(), "cowork");
    assert!(found.iter().any(|(_, content)| content == "before"));
    let second = scan();
    assert_ne!(second, first);
    eventually("workers go on, too", Duration::from_secs(30), || ended(&second));
    eventually("everything is sealed", Duration::from_secs(10), || {
        desk.http().get("/readyz", &[]).is_ok_and(|answer| answer.json()["events"].as_u64() >= Some(3))
    });
    verify(&home, &cluster.url);
}

#[test]
fn a_wire_cut_in_mid_commit_is_told_and_the_same_key_does_it_once() {
    let Some(cluster) = Cluster::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let wire = Wire::new(&cluster);
    let desk = desk_on(&home, &cluster.through(wire.port)).unwrap_or_else(|ended| panic!("{}", ended.stderr));
    for (round, cut) in [Cut::Before, Cut::After, Cut::Before, Cut::After].into_iter().enumerate() {
        let reader = format!("reader-{round}");
        let content = format!("marked in round {round}");
        let input = json!({ "to": reader, "content": content, "idempotency_key": format!("key-{round}") });
        wire.arm(cut, &content);
        let first = desk.call("code", "bridge_send_message", input.clone());
        assert!(!wire.is_armed(), "{cut:?}: the commit was not seen on the wire");
        assert_eq!((first.status, first.code().as_str()), (503, "unavailable"), "{cut:?}: {}", first.text());
        assert!(first.text().contains("not known") && first.text().contains("idempotency_key"), "{cut:?}: {}", first.text());
        let again = desk.call("code", "bridge_send_message", input.clone()).good();
        let found = waiting(&mut desk.http(), &reader);
        assert_eq!(found.len(), 1, "{cut:?}: {found:?}");
        assert_eq!(again["message_id"], json!(found[0].0), "{cut:?}");
    }
    // All wires at once, at rest: the next calls do not notice.
    wire.cut_all();
    desk.http().send("code", "cowork", "after the cut").expect("the server answers").good();
    std::thread::sleep(Duration::from_millis(700));
    verify(&home, &cluster.url);
}

/// Two nodes; the second has the first one's key, so that both sign in the desk's name.
fn two_nodes(cluster: &Cluster, directory: &Path) -> (Desk, Desk) {
    let (one, two) = (directory.join("one"), directory.join("two"));
    let first = cluster.desk(&one);
    std::fs::create_dir_all(&two).expect("a directory");
    std::fs::copy(one.join("record.key"), two.join("record.key")).expect("a copy");
    (first, cluster.desk(&two))
}

#[test]
fn two_nodes_on_one_database_are_one_desk() {
    let Some(cluster) = Cluster::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (one, two) = two_nodes(&cluster, directory.path());
    a_message_wakes_the_other_node(&one, &two);
    tasks_are_claimed_once(&one, &two);
    both_streams_are_equal(&one, &two);
    verify(&directory.path().join("one"), &cluster.url);
    verify(&directory.path().join("two"), &cluster.url);
}

fn a_message_wakes_the_other_node(one: &Desk, two: &Desk) {
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let started = Instant::now();
            (two.call("cowork", "bridge_wait_for_messages", json!({ "timeout_seconds": 20 })).good(), started.elapsed())
        });
        std::thread::sleep(Duration::from_millis(500));
        one.http().send("code", "cowork", "across").expect("the server answers").good();
        let (answer, took) = waiter.join().expect("the waiter ends");
        assert_eq!(answer["messages"][0]["content"], "across");
        assert!(took < Duration::from_secs(5), "the wait took {took:?}");
    });
}

fn tasks_are_claimed_once(one: &Desk, two: &Desk) {
    const TASKS: usize = 24;
    let mut http = one.http();
    for n in 0..TASKS {
        http.call("code", "bridge_create_task", &json!({ "to": "worker", "title": format!("task {n}") })).expect("the server answers").good();
    }
    let claimed: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = [one, two, one, two].map(|desk| scope.spawn(|| claim_all(desk))).into();
        workers.into_iter().flat_map(|worker| worker.join().expect("the worker ends")).collect()
    });
    let different: BTreeSet<_> = claimed.iter().collect();
    assert_eq!((claimed.len(), different.len()), (TASKS, TASKS), "{claimed:?}");
}

fn claim_all(desk: &Desk) -> Vec<String> {
    let mut http = desk.http();
    let mut claimed = Vec::new();
    loop {
        let answer = http.call("worker", "bridge_claim_task", &json!({})).expect("the server answers");
        match (answer.status, answer.json()["task_id"].as_str()) {
            (200, Some(id)) => claimed.push(id.to_owned()),
            // Others got in the way for too long: that is told, and asking again is right.
            (429, _) => {}
            (404 | 200, _) => return claimed,
            (status, _) => panic!("{status}: {}", answer.text()),
        }
    }
}

fn both_streams_are_equal(one: &Desk, two: &Desk) {
    one.http().send("code", "cowork", "the end").expect("the server answers").good();
    let read = |desk: &Desk| {
        let ends = |found: &[(u64, Value)]| found.last().is_some_and(|(_, event)| event["payload"]["content"] == "the end");
        follow(&desk.address, "x-deskmate-agent: code", "?from=0", None, ends)
    };
    let (first, second) = (read(one), read(two));
    assert!(first.len() > 24, "{} events", first.len());
    assert_eq!(first, second);
}

#[test]
fn when_the_node_with_the_bridge_file_dies_another_takes_it() {
    let Some(cluster) = Cluster::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("messages.db");
    for node in ["one", "two"] {
        let home = directory.path().join(node);
        std::fs::create_dir(&home).expect("a home");
        std::fs::write(home.join("deskmate.yaml"), format!("bridge:\n  file: {}\n", file.display())).expect("settings");
    }
    let (mut one, two) = two_nodes(&cluster, directory.path());
    let shown = |content: &str| {
        let sql = format!("select count(*) from messages where content = '{content}'");
        let output = Command::new("sqlite3").arg(&file).arg(sql).output().expect("sqlite3 runs");
        String::from_utf8_lossy(&output.stdout).trim() == "1"
    };
    two.http().send("code", "cowork", "before").expect("the server answers").good();
    eventually("one of the nodes shows it", Duration::from_secs(20), || shown("before"));
    one.signal("KILL");
    one.ended();
    two.http().send("code", "cowork", "after").expect("the server answers").good();
    eventually("the other node shows it", Duration::from_secs(40), || shown("after"));
    let inserted = "insert into messages (id, sender, recipient, content, read, created_at) values ('A1', 'code', 'late', 'by hand', 0, datetime('now'))";
    let done = Command::new("sqlite3").arg("-cmd").arg(".timeout 5000").arg(&file).arg(inserted).status().expect("sqlite3 runs");
    assert!(done.success());
    eventually("a row by hand reaches the desk", Duration::from_secs(20), || !waiting(&mut two.http(), "late").is_empty());
}

/// Takes webhooks: the first is left without an answer until it is let go, the others are answered at once. Tells the ids
/// of what came.
#[derive(Clone, Default)]
struct Hook {
    url: String,
    came: Arc<Mutex<Vec<String>>>,
    held: Arc<Mutex<Option<TcpStream>>>,
}

impl Hook {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let hook = Self { url, ..Self::default() };
        let own = hook.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut text = String::new();
                let mut lines = BufReader::new(stream.try_clone().expect("a stream"));
                while !text.ends_with("\r\n\r\n") && lines.read_line(&mut text).is_ok_and(|read| read > 0) {}
                let id = text.lines().find_map(|line| line.strip_prefix("webhook-id: ")).unwrap_or_default().to_owned();
                own.came.lock().expect("no thread panicked").push(id);
                if own.came().len() == 1 {
                    *own.held.lock().expect("no thread panicked") = Some(stream);
                } else {
                    drop(stream.write_all(ACCEPTED));
                }
            }
        });
        hook
    }

    fn came(&self) -> Vec<String> {
        self.came.lock().expect("no thread panicked").clone()
    }

    /// Makes a desk that starts there tell this receiver.
    fn follow(&self, home: &Path) {
        let section = format!(
            "notifications:\n  webhooks:\n    - name: team\n      url: {}\n      secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n      batch_seconds: 0\n",
            self.url
        );
        std::fs::write(home.join("deskmate.yaml"), section).expect("settings");
    }
}

fn propose(desk: &Desk) {
    let proposal = json!({ "domain": "crm.deals", "action": "update", "target": "deal/1", "proposed_change": "{}", "confidence": 0.5, "reasoning": "because" });
    desk.call("code", "cowork_propose", proposal).good();
}

const ACCEPTED: &[u8] = b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

#[test]
fn what_the_first_caller_does_is_told() {
    let Some(cluster) = Cluster::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (hook, home) = (Hook::new(), directory.path().join("home"));
    cluster.desk(&home).stop();
    hook.follow(&home);
    // Whoever writes down the place to begin at waits for this.
    let held = "begin; lock table cursor in access exclusive mode; select pg_sleep(2); commit";
    let mut held = Command::new("psql").args(["-X", "-q", "-c", held]).arg(&cluster.url).stdout(Stdio::null()).spawn().expect("psql runs");
    std::thread::sleep(Duration::from_millis(500));
    let started = Instant::now();
    let desk = cluster.desk(&home);
    assert!(started.elapsed() > Duration::from_secs(1), "it listens before it knows where to begin: after {:?}", started.elapsed());
    propose(&desk);
    held.wait().expect("psql ends");
    eventually("the receiver is told", Duration::from_secs(20), || hook.came().len() == 1);
}

#[test]
fn a_node_that_was_away_past_its_lease_finishes_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (hook, homes) = (Hook::new(), ["one", "two"].map(|node| directory.path().join(node)));
    for home in &homes {
        std::fs::create_dir(home).expect("a home");
        hook.follow(home);
    }
    let one = cluster.desk(&homes[0]);
    propose(&one);
    eventually("the first node is at work", Duration::from_secs(20), || hook.came().len() == 1);
    one.signal("STOP");
    std::fs::copy(homes[0].join("record.key"), homes[1].join("record.key")).expect("a copy");
    let two = cluster.desk(&homes[1]);
    // Others go on meanwhile, and take the work over when its lease has run out.
    two.http().send("code", "cowork", "meanwhile").expect("the server answers").good();
    eventually("the second node takes the work over", Duration::from_secs(90), || hook.came().len() == 2);
    let delivered = || {
        let sql = "select count(*) from event where kind = 'notification.delivered'";
        let output = Command::new("psql").args(["-X", "-A", "-t", "-c", sql]).arg(&cluster.url).output().expect("psql runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    eventually("the record tells that it arrived", Duration::from_mins(1), || delivered() == "1");
    one.signal("CONT");
    drop(hook.held.lock().expect("no thread panicked").take().map(|mut held| held.write_all(ACCEPTED)));
    eventually("the first node works again", Duration::from_secs(20), || {
        let sent = one.http().send("code", "cowork", "back again");
        sent.is_ok_and(|answer| answer.status == 200)
    });
    std::thread::sleep(Duration::from_secs(3));
    let came = hook.came();
    assert_eq!((came.len(), came[0].is_empty()), (2, false), "{came:?}");
    assert_eq!(came[0], came[1], "the receiver can tell that it is the same");
    assert_eq!(delivered(), "1", "who was away told it too");
    verify(&homes[0], &cluster.url);
}

#[test]
fn a_node_that_hears_nothing_of_the_database_past_its_lease_gives_its_work_up() {
    partitioned(Way::Silent);
}

#[test]
fn a_node_that_the_database_refuses_past_its_lease_gives_its_work_up() {
    partitioned(Way::Closed);
}

/// The node itself goes on all the time; only its wire to the database does not.
fn partitioned(way: Way) {
    let Some(cluster) = Cluster::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (hook, wire, homes) = (Hook::new(), Wire::new(&cluster), ["one", "two"].map(|node| directory.path().join(node)));
    for home in &homes {
        std::fs::create_dir(home).expect("a home");
        hook.follow(home);
    }
    let one = desk_on(&homes[0], &cluster.through(wire.port)).unwrap_or_else(|ended| panic!("{}", ended.stderr));
    propose(&one);
    eventually("the first node is at work", Duration::from_secs(20), || hook.came().len() == 1);
    wire.turn(way);
    let cut = Instant::now();
    std::fs::copy(homes[0].join("record.key"), homes[1].join("record.key")).expect("a copy");
    let _two = cluster.desk(&homes[1]);
    // Its lease is over, or what came of it cannot be told any more: either way the work is left to others.
    let left = ["a job was given up", "the end of a job could not be reported"];
    let given_up = || std::fs::read_to_string(homes[0].join("server.log")).is_ok_and(|log| left.iter().any(|said| log.contains(said)));
    eventually("the first node gives it up", Duration::from_secs(40), given_up);
    assert!(cut.elapsed() < Duration::from_secs(29), "only after {:?}, when its lease was over", cut.elapsed());
    eventually("the second node takes the work over", Duration::from_secs(90), || hook.came().len() == 2);
    let delivered = || cluster.ask("select count(*) from event where kind = 'notification.delivered'");
    eventually("the record tells that it arrived", Duration::from_mins(1), || delivered() == ["1"]);
    let outcome = || cluster.ask("select state, attempt, error is null from job where kind = 'notification.deliver'");
    let before = outcome();
    wire.turn(Way::Open);
    drop(hook.held.lock().expect("no thread panicked").take().map(|mut held| held.write_all(ACCEPTED)));
    eventually("the first node works again", Duration::from_mins(1), || {
        let sent = one.http().send("code", "cowork", "back again");
        sent.is_ok_and(|answer| answer.status == 200)
    });
    std::thread::sleep(Duration::from_secs(3));
    let came = hook.came();
    assert_eq!((came.len(), &came[0]), (2, &came[1]), "{came:?}");
    assert_eq!((delivered(), outcome()), (vec!["1".to_owned()], before), "who was away told it too");
    verify(&homes[0], &cluster.url);
}
