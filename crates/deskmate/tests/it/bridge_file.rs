//! The direct-database contract: people write rows with the `sqlite3` command line, as its documents say, and the desk
//! takes them and shows its own.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::desk::{Desk, until};

/// What the contract promises; the best of a few changes keeps it also while other tests use the machine.
const PROMISED: Duration = Duration::from_secs(1);
/// How long a change may take on a machine that has other things to do.
const SOON: Duration = Duration::from_secs(5);

/// As people type it: no busy timeout, no settings.
fn sqlite3(file: &Path, sql: &str) -> String {
    let output = Command::new("sqlite3").arg(file).arg(sql).output().expect("sqlite3 is installed");
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// The same for a file without a write-ahead log, where a look fails while somebody's commit is on its way to the disk.
fn sqlite3_again(file: &Path, sql: &str) -> String {
    until(sql, || {
        let output = Command::new("sqlite3").arg(file).arg(sql).output().expect("sqlite3 is installed");
        let locked = String::from_utf8_lossy(&output.stderr).contains("locked");
        assert!(output.status.success() || locked, "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    })
}

/// An id as `uuidgen` on macOS gives it.
fn uuidgen() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/uuid").expect("an id").trim().to_uppercase()
}

fn insert_message(id: &str, from: &str, to: &str, content: &str) -> String {
    format!("INSERT INTO messages (id, sender, recipient, content, read, created_at) VALUES ('{id}', '{from}', '{to}', {content}, 0, datetime('now'));")
}

fn insert_task(id: &str, from: &str, to: &str, title: &str) -> String {
    format!(
        "INSERT INTO tasks (id, sender, recipient, title, description, status, created_at) VALUES ('{id}', '{from}', '{to}', '{title}', 'do it', 'pending', datetime('now'));"
    )
}

fn file(desk: &Desk) -> PathBuf {
    let file = desk.path().join("messages.db");
    until("the file is there", || {
        (file.exists() && Command::new("sqlite3").arg(&file).arg("select 1 from tasks").output().ok()?.status.success()).then_some(())
    });
    file
}

fn call(desk: &Desk, agent: &str, operation: &str, fields: &[&str]) -> Value {
    let args = [&["call", operation, "--agent", agent, "--json"], fields].concat();
    let output = desk.run(&args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn waiting(desk: &Desk, agent: &str) -> Vec<Value> {
    call(desk, agent, "bridge_read_messages", &["limit=200"])["messages"].as_array().expect("a list").clone()
}

/// How many events of a kind the record has.
fn events(desk: &Desk, kind: &str) -> u64 {
    sqlite3(&desk.path().join("desk.db"), &format!("select count(*) from event where kind = '{kind}'")).parse().expect("a number")
}

/// What the newest event of a kind says in words.
fn said(desk: &Desk, kind: &str) -> String {
    let newest = format!("select payload from event_payload where seq = (select max(seq) from event where kind = '{kind}')");
    sqlite3(&desk.path().join("desk.db"), &newest)
}

fn stop(desk: &Desk) {
    let pid = desk.holder().and_then(|holder| holder["pid"].as_u64()).expect("a server");
    assert!(desk.run(&["stop"]).status.success());
    until("the server is gone", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
}

/// Waits for something that the contract promises, and says how long it took.
fn soon<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    let found = until(what, look);
    let took = begun.elapsed();
    println!("{what}: {took:?}");
    assert!(took < SOON, "{what}: only after {took:?}");
    found
}

#[test]
fn an_inserted_row_is_a_message_that_wakes_its_recipient() {
    let desk = Desk::new();
    desk.up();
    let file = file(&desk);
    let wait =
        desk.command(&["call", "bridge_wait_for_messages", "--agent", "code", "--json", "timeout_seconds=20"]).stdout(Stdio::piped()).spawn().expect("a call");
    std::thread::sleep(Duration::from_millis(500));
    let id = uuidgen();
    let begun = Instant::now();
    sqlite3(&file, &insert_message(&id, "cowork", "code", "'look at the tests'"));
    let answer: Value = serde_json::from_slice(&wait.wait_with_output().expect("an answer").stdout).expect("JSON");
    println!("woken after {:?}", begun.elapsed());
    assert!(begun.elapsed() < SOON, "woken only after {:?}", begun.elapsed());
    let message = &answer["messages"][0];
    assert_eq!(message["message_id"], id.to_lowercase().as_str());
    assert_eq!((&message["content"], &message["origin"]), (&"look at the tests".into(), &"file".into()));
    assert_eq!((&message["verified"], &message["trust"]), (&false.into(), &"unverified, claims to be cowork".into()));
    // Any spelling of the id means it, and the file learns of the acknowledgement.
    call(&desk, "code", "bridge_acknowledge_messages", &[&format!("message_ids=[\"{id}\"]")]);
    soon("read is set", || (sqlite3(&file, "select count(*) from messages where read=0 and recipient='code'") == "0").then_some(()));
    assert_eq!(sqlite3(&file, "select id from messages"), id, "the row keeps its spelling");
    assert_eq!(events(&desk, "message.sent"), 1);
}

#[test]
fn both_directions_take_less_than_a_second() {
    let desk = Desk::new();
    desk.up();
    let file = file(&desk);
    let (mut inward, mut outward) = (Duration::MAX, Duration::MAX);
    for number in 0..5 {
        let begun = Instant::now();
        sqlite3(&file, &insert_message(&uuidgen(), "cowork", "code", &format!("'{number}'")));
        until("it came in", || (waiting(&desk, "code").len() == number + 1).then_some(()));
        inward = inward.min(begun.elapsed());
        let begun = Instant::now();
        call(&desk, "code", "bridge_send_message", &["to=cowork", &format!("content={number}")]);
        until("it is shown", || {
            (sqlite3(&file, "select count(*) from messages where recipient='cowork' and read=0") == (number + 1).to_string()).then_some(())
        });
        outward = outward.min(begun.elapsed());
    }
    println!("in {inward:?}, out {outward:?}, with the time that the commands take");
    assert!(inward < PROMISED && outward < PROMISED, "in {inward:?}, out {outward:?}");
}

#[test]
fn a_claim_that_is_lost_is_given_back_in_the_file_within_a_second() {
    let desk = Desk::new();
    desk.up();
    let file = file(&desk);
    let status = || sqlite3(&file, "select status from tasks");
    let mut late = Duration::MAX;
    for round in 0..3 {
        if round == 0 {
            call(&desk, "code", "bridge_create_task", &["to=cowork", "title=Write"]);
        }
        let lease = call(&desk, "cowork", "bridge_claim_task", &["lease_seconds=5"]);
        let claimed = Instant::now();
        assert_eq!(lease["status"], "in_progress", "{lease}");
        until("the claim is shown", || (status() == "in_progress").then_some(()));
        until("the claim is lost", || (status() == "pending").then_some(()));
        late = late.min(claimed.elapsed().saturating_sub(Duration::from_secs(5)));
    }
    assert!(late < PROMISED, "{late:?} after the lease ended");
}

#[test]
fn a_batch_comes_once_in_its_order_also_when_no_server_runs() {
    let desk = Desk::new();
    desk.up();
    let file = file(&desk);
    let ids: Vec<String> = (0..200).map(|_| uuidgen()).collect();
    let rows: Vec<String> = ids.iter().enumerate().map(|(number, id)| insert_message(id, "cowork", "code", &format!("'number {number}'"))).collect();
    sqlite3(&file, &format!("begin; {} commit;", rows.concat()));
    soon("200 rows are there", || (events(&desk, "message.sent") == 200).then_some(()));
    let contents: Vec<String> = waiting(&desk, "code").iter().map(|message| message["content"].as_str().expect("text").to_owned()).collect();
    assert_eq!(contents, (0..200).map(|number| format!("number {number}")).collect::<Vec<_>>());
    stop(&desk);
    sqlite3(&file, &insert_message(&uuidgen(), "cowork", "code", "'while nobody was there'"));
    sqlite3(&file, &insert_task(&uuidgen(), "cowork", "code", "a task as well"));
    desk.up();
    until("both are there", || (events(&desk, "message.sent") == 201 && events(&desk, "task.created") == 1).then_some(()));
    stop(&desk);
    desk.up();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!((events(&desk, "message.sent"), events(&desk, "task.created")), (201, 1), "nothing came twice");
    assert_eq!(sqlite3(&file, "select count(*) from messages"), "201");
}

#[test]
fn the_desk_is_shown_in_the_file() {
    let desk = Desk::new();
    desk.up();
    let file = file(&desk);
    let sent = call(&desk, "code", "bridge_send_message", &["to=cowork", "content=it's \"done\""]);
    let id = sent["message_id"].as_str().expect("an id");
    soon("the message is shown", || (sqlite3(&file, "select content from messages where read=0 and recipient='cowork'") == "it's \"done\"").then_some(()));
    assert_eq!(sqlite3(&file, "select id, sender from messages"), format!("{id}|code"));
    call(&desk, "code", "bridge_set_group", &["name=team", "members=[\"cowork\",\"third\"]"]);
    let sent = call(&desk, "code", "bridge_send_message", &["to=group:team", "content=all of you"]);
    let id = sent["message_id"].as_str().expect("an id");
    soon("each member has a row", || (sqlite3(&file, "select count(*) from messages where content='all of you'") == "2").then_some(()));
    call(&desk, "third", "bridge_read_messages", &["mark_read=true"]);
    soon("one of them read it", || {
        let rows = sqlite3(&file, "select id, recipient, read from messages where content='all of you' order by id");
        (rows == format!("{id}#cowork|cowork|0\n{id}#third|third|1")).then_some(())
    });
    let task = call(&desk, "code", "bridge_create_task", &["to=cowork", "title=Review", "description=all of it"]);
    let id = task["task_id"].as_str().expect("an id");
    soon("the task is shown", || (sqlite3(&file, "select title from tasks where recipient='cowork' AND status='pending'") == "Review").then_some(()));
    call(&desk, "cowork", "bridge_claim_task", &[&format!("task_id={id}")]);
    soon("it is in progress", || (sqlite3(&file, "select status from tasks") == "in_progress").then_some(()));
    call(&desk, "cowork", "bridge_update_task", &[&format!("task_id={id}"), "status=completed", "result=fine"]);
    soon("it has a result", || (sqlite3(&file, "select status, result from tasks") == "completed|fine").then_some(()));
    assert_eq!(events(&desk, "bridge_file.reverted") + events(&desk, "bridge_file.skipped"), 0);
}

#[test]
fn steps_by_hand_count_where_they_are_legal() {
    let desk = Desk::new();
    desk.up();
    let file = file(&desk);
    let (task, message) = (uuidgen(), uuidgen());
    sqlite3(&file, &format!("{}{}", insert_task(&task, "cowork", "code", "Build"), insert_message(&message, "cowork", "code", "'please'")));
    let get = |state: &str| {
        let tasks = call(&desk, "code", "bridge_get_tasks", &[&format!("status={state}")]);
        tasks["tasks"].as_array().expect("a list").first().cloned()
    };
    let taken = soon("the task is there", || get("pending"));
    assert_eq!((&taken["origin"], &taken["trust"]), (&"file".into(), &"unverified, claims to be cowork".into()));
    sqlite3(&file, &format!("update tasks set status = 'in_progress' where id = '{task}'; update messages set read = 1"));
    let taken = soon("it is in progress", || get("in_progress"));
    assert_eq!(taken["lease"]["holder"], "code");
    soon("the message is acknowledged", || waiting(&desk, "code").is_empty().then_some(()));
    sqlite3(&file, &format!("update tasks set status = 'completed', result = 'built' where id = '{task}'"));
    let done = soon("it is completed", || get("completed"));
    assert_eq!(done["result"], "built");
    // Until the desk's own change has reached the file, it would be written over whatever is there.
    std::thread::sleep(Duration::from_secs(1));
    // What is final stays; the file is put right and the record says so.
    sqlite3(&file, &format!("update tasks set status = 'pending' where id = '{task}'"));
    soon("it is written back", || (sqlite3(&file, "select status, result from tasks") == "completed|built").then_some(()));
    assert_eq!(events(&desk, "bridge_file.reverted"), 1);
    assert!(said(&desk, "bridge_file.reverted").contains("final"), "{}", said(&desk, "bridge_file.reverted"));
    for tampered in
        ["update messages set content = 'something else'", "update messages set read = 0", "update messages set sender = 'owner'", "delete from messages"]
    {
        sqlite3(&file, tampered);
        soon(tampered, || (sqlite3(&file, "select sender, recipient, content, read from messages") == "cowork|code|please|1").then_some(()));
    }
    until("it is told", || (events(&desk, "bridge_file.restored") == 1).then_some(()));
    assert_eq!(events(&desk, "bridge_file.reverted"), 4);
}

#[test]
fn rows_that_cannot_be_taken_are_reported_and_hold_nothing_up() {
    let desk = Desk::new();
    desk.up();
    let file = file(&desk);
    let good = uuidgen();
    let bad = [
        insert_message("big", "cowork", "code", "printf('%.*c', 300000, 'x')"),
        insert_message("nul", "cowork", "code", "'a' || char(0) || 'b'"),
        insert_message("nobody", "", "code", "'who wrote this?'"),
        insert_message("nowhere", "cowork", "", "'who reads this?'"),
        insert_message("odd", "co work", "code", "'a name with a space'"),
        insert_message("blob", "cowork", "code", "x'00ff'"),
        insert_message("empty", "cowork", "code", "''"),
        insert_message(&format!("{good}\u{1}"), "desk", "code", "'I am the desk'"),
        insert_message(&good, "cowork", "code", "'good'"),
        insert_message(&good.to_lowercase(), "cowork", "code", "'the same id in another spelling'"),
    ];
    sqlite3(&file, &format!("begin; {} commit;", bad.concat()));
    soon("the good one is there", || (waiting(&desk, "code").len() == 1).then_some(()));
    soon("the others are reported", || (events(&desk, "bridge_file.skipped") >= 1).then_some(()));
    let report = said(&desk, "bridge_file.skipped");
    for id in ["big", "nul", "nobody", "nowhere", "odd", "blob", "empty"] {
        assert!(report.contains(&format!("\"{id}\"")), "{id}: {report}");
    }
    assert_eq!(sqlite3(&file, "select count(*) from messages"), "10", "nobody's rows are touched");
    stop(&desk);
    desk.up();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!((events(&desk, "bridge_file.skipped"), events(&desk, "message.sent")), (1, 1), "and reported once");
}

#[test]
fn an_existing_file_is_taken_over() {
    let desk = Desk::new();
    let folder = desk.path().join(".cowork-code-mcp");
    std::fs::create_dir(&folder).expect("a folder");
    let file = folder.join("messages.db");
    // Without `result` and `updated_at`, with a column of its own, in the journal mode that SQLite starts with.
    sqlite3(
        &file,
        "CREATE TABLE messages (id TEXT PRIMARY KEY, sender TEXT NOT NULL, recipient TEXT NOT NULL, content TEXT NOT NULL, read INTEGER NOT NULL DEFAULT 0, \
         created_at TEXT NOT NULL, mood TEXT DEFAULT 'calm');\
         CREATE TABLE tasks (id TEXT PRIMARY KEY, sender TEXT, recipient TEXT, title TEXT, description TEXT, status TEXT, created_at TEXT);",
    );
    let old = "INSERT INTO messages (id, sender, recipient, content, read, created_at) VALUES ('m1', 'cowork', 'code', 'old and read', 1, '2026-01-02 03:04:05'), \
               ('m2', 'cowork', 'code', 'old', 0, '2026-01-02T03:04:06Z');\
               INSERT INTO tasks VALUES ('t1', 'code', 'cowork', 'done', '', 'completed', '2026-01-02 03:04:05'), ('t2', 'code', 'cowork', 'open', '', 'pending', 'some day');";
    sqlite3(&file, old);
    desk.up();
    until("the old rows are there", || (events(&desk, "task.created") == 2).then_some(()));
    let messages = waiting(&desk, "code");
    assert_eq!(messages.len(), 1);
    assert_eq!((&messages[0]["content"], &messages[0]["created_at"]), (&"old".into(), &"2026-01-02T03:04:06.000000Z".into()));
    let tasks = call(&desk, "cowork", "bridge_get_tasks", &["status=pending"]);
    assert_eq!(tasks["tasks"].as_array().map(Vec::len), Some(1));
    let id = tasks["tasks"][0]["task_id"].as_str().expect("an id").to_owned();
    call(&desk, "cowork", "bridge_claim_task", &[&format!("task_id={id}")]);
    call(&desk, "cowork", "bridge_update_task", &[&format!("task_id={id}"), "status=failed", "result=why"]);
    call(&desk, "cowork", "bridge_send_message", &["to=code", "content=new"]);
    soon("the desk is shown beside them", || {
        let rows = sqlite3_again(&file, "select status from tasks order by id; select content, mood, read from messages order by rowid");
        (rows == "completed\nfailed\nold and read|calm|1\nold|calm|0\nnew|calm|0").then_some(())
    });
    assert_eq!(sqlite3_again(&file, "pragma journal_mode"), "delete", "the file stays as it was");
    assert!(!desk.path().join("messages.db").exists());
}

#[test]
fn people_can_write_while_the_desk_is_busy() {
    let desk = Desk::new();
    let url = desk.up();
    let file = file(&desk);
    let (senders, each) = (2, 200);
    std::thread::scope(|scope| {
        for sender in 0..senders {
            let url = &url;
            scope.spawn(move || {
                for number in 0..each {
                    let body = format!("{{\"to\":\"cowork\",\"content\":\"{sender} {number}\"}}");
                    let answer = crate::http::post(url, "/api/bridge_send_message", &[("X-Deskmate-Agent", "code")], &body);
                    assert_eq!(answer.status, 200, "{}", answer.body);
                }
            });
        }
        // Nothing makes two writers of one SQLite file never meet. What the desk owes is that whoever meets its lock,
        // without any patience of their own, gets through at once on the next try or the one after.
        let mut worst = 0;
        for number in 0..60 {
            let row = insert_message(&uuidgen(), "cowork", "code", &format!("'{number}'"));
            let mut refused = 0;
            while !Command::new("sqlite3").arg(&file).arg(&row).output().expect("sqlite3 is installed").status.success() {
                refused += 1;
                assert!(refused < 8, "the file stays locked");
            }
            worst = worst.max(refused);
        }
        assert!(worst <= 3, "one row was refused {worst} times in a row");
    });
    let all = (senders * each + 60).to_string();
    until("both sides have everything", || {
        (sqlite3(&file, "select count(*) from messages") == all && events(&desk, "message.sent").to_string() == all).then_some(())
    });
}

#[test]
fn both_sides_are_compared_at_the_start() {
    let desk = Desk::new();
    desk.up();
    let file = file(&desk);
    for number in 0..5 {
        call(&desk, "code", "bridge_send_message", &["to=cowork", &format!("content={number}")]);
        call(&desk, "code", "bridge_create_task", &["to=cowork", &format!("title={number}")]);
    }
    soon("all is shown", || (sqlite3(&file, "select count(*) from messages m, tasks") == "25").then_some(()));
    let before = sqlite3(&file, "select * from messages order by id; select id, status, title from tasks order by id");
    stop(&desk);
    sqlite3(
        &file,
        "delete from messages where content in ('0', '1'); update messages set content = 'forged' where content = '2'; \
         update messages set read = 1 where content = '3'; delete from tasks where title = '0'; \
         update tasks set status = 'in_progress' where title = '1'; update tasks set status = 'lost' where title = '2';",
    );
    desk.up();
    let after = before.replace("|3|0|", "|3|1|").replace("|pending|1", "|in_progress|1");
    until("both sides agree", || {
        (sqlite3(&file, "select * from messages order by id; select id, status, title from tasks order by id") == after).then_some(())
    });
    assert_eq!(events(&desk, "message.acknowledged"), 1);
    until("it is told", || (events(&desk, "bridge_file.reverted") > 0 && events(&desk, "bridge_file.restored") == 1).then_some(()));
}

#[test]
fn a_deleted_row_comes_back_also_when_another_one_has_its_place() {
    let desk = Desk::new();
    desk.up();
    let file = file(&desk);
    let (kept, deleted, new) = (uuidgen(), uuidgen(), uuidgen());
    sqlite3(&file, &format!("{}{}", insert_message(&kept, "cowork", "code", "'kept'"), insert_message(&deleted, "cowork", "code", "'deleted'")));
    soon("both are there", || (waiting(&desk, "code").len() == 2).then_some(()));
    // SQLite gives the number of the last row again.
    sqlite3(&file, &format!("begin; delete from messages where id = '{deleted}'; {} commit;", insert_message(&new, "cowork", "code", "'new'")));
    soon("the new one is there as well", || (waiting(&desk, "code").len() == 3).then_some(()));
    soon("the deleted one is back", || (sqlite3(&file, "select content from messages order by content") == "deleted\nkept\nnew").then_some(()));
    assert!(desk.path().join("bridge-file.marks").exists());
    stop(&desk);
    assert!(!desk.path().join("bridge-file.marks").exists(), "the scratch file goes with the server");
}

#[test]
fn one_desk_holds_the_file_and_the_next_stands_by() {
    let (first, second) = (Desk::new(), Desk::new());
    first.up();
    let file = file(&first);
    std::fs::write(second.path().join("deskmate.yaml"), format!("bridge:\n  file: {}\n", file.display())).expect("settings");
    second.up();
    std::thread::sleep(Duration::from_millis(500));
    sqlite3(&file, &insert_message(&uuidgen(), "cowork", "code", "'for one of them'"));
    soon("the holder has it", || (waiting(&first, "code").len() == 1).then_some(()));
    assert!(waiting(&second, "code").is_empty());
    stop(&first);
    until("the next one takes over", || (waiting(&second, "code").len() == 1).then_some(()));
}

#[test]
fn a_desk_goes_on_without_a_file_that_is_none() {
    let desk = Desk::new();
    let file = desk.path().join("messages.db");
    std::fs::write(&file, "this is no database, and it is long enough to be looked at as one: ".repeat(20)).expect("a file");
    desk.up();
    call(&desk, "code", "bridge_send_message", &["to=cowork", "content=all the same"]);
    assert_eq!(waiting(&desk, "cowork").len(), 1);
    std::fs::remove_file(&file).expect("removed");
    until("a new one is made", || {
        let shown = Command::new("sqlite3").arg("-readonly").arg(&file).arg("select content from messages").output().ok()?;
        (String::from_utf8_lossy(&shown.stdout).trim() == "all the same").then_some(())
    });
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
}
