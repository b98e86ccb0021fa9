//! The rules of the bridge file on both engines: what becomes of its rows, and how the desk is shown in it.

use std::time::Duration;

use deskmate_core::bridge::file::{self, Columns, Differing, FileMessage, FileRow, FileTask, Settled, Shown, Table};
use deskmate_core::bridge::{prune_messages, prune_tasks};
use deskmate_core::record;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, both};

fn message(id: &str, sender: &str, recipient: &str, content: &str) -> FileRow {
    let columns =
        FileMessage { sender: sender.into(), recipient: recipient.into(), content: content.into(), read: false, created_at: "2025-12-31 23:00:00".into() };
    FileRow { id: id.into(), columns: Columns::Message(columns), has_result: true }
}

fn task(id: &str, sender: &str, recipient: &str, status: &str, result: Option<&str>) -> FileRow {
    let columns = FileTask {
        sender: sender.into(),
        recipient: recipient.into(),
        title: "a task".into(),
        description: "do it".into(),
        status: status.into(),
        result: result.map(str::to_owned),
        created_at: "2025-12-31T23:00:00Z".into(),
        updated_at: None,
    };
    FileRow { id: id.into(), columns: Columns::Task(columns), has_result: true }
}

/// Settles rows with a file that shows all of the record.
fn settle(desk: &TestDesk, rows: &[FileRow]) -> Vec<Settled> {
    settle_behind(desk, rows, size(desk), true)
}

/// Settles rows with a file that shows the record up to an event.
fn settle_behind(desk: &TestDesk, rows: &[FileRow], mirrored: u64, by_hand: bool) -> Vec<Settled> {
    let rows: Vec<Differing> = rows.iter().map(|row| Differing { row: row.clone(), by_hand }).collect();
    desk.act(move |cx| {
        cx.surface = deskmate_core::call::Surface::File;
        file::settle(cx, &rows, mirrored)
    })
    .unwrap()
}

fn size(desk: &TestDesk) -> u64 {
    desk.desk.db.read_blocking(record::size).unwrap()
}

fn kept(settled: &[Settled]) -> bool {
    settled.iter().all(|settled| matches!(settled, Settled::Keep))
}

/// What the file should have instead of a single row.
fn put(settled: &[Settled]) -> &FileRow {
    match settled {
        [Settled::Put(row)] => row,
        other => panic!("{other:?}"),
    }
}

fn events(desk: &TestDesk, kind: &str) -> Vec<Value> {
    let answer = desk.call(&Caller::System, "desk_record_list", json!({ "kind": kind, "limit": 200 })).unwrap();
    answer["events"].as_array().unwrap().clone()
}

fn page(desk: &TestDesk, table: Table) -> Vec<FileRow> {
    let (rows, next) = desk.desk.db.read_blocking(move |tx| file::page(tx, table, "", 100)).unwrap();
    assert!(next.is_none());
    let rows: Vec<Shown> = desk.act(move |cx| file::name(cx, rows.clone())).unwrap();
    rows.into_iter().map(|shown| shown.row).collect()
}

const ID: &str = "6B29FC40-CA47-1067-B31D-00DD010662DA";

both! {
    fn a_new_row_never_acts_for_a_registered_agent(desk: &TestDesk) {
        let owner = desk.claim();
        desk.register(&owner, "code");
        let mut read = message(ID, "cowork", "code", "hello");
        if let Columns::Message(columns) = &mut read.columns {
            columns.read = true;
        }
        settle(desk, &[read, task("t1", "cowork", "code", "completed", Some("done")), message("m2", "cowork", "other", "hello")]);
        let acknowledged = events(desk, "message.acknowledged");
        assert_eq!((acknowledged.len(), acknowledged[0]["actor_kind"].as_str()), (1, Some("system")), "{acknowledged:?}");
        for kind in ["message.acknowledged", "task.updated"] {
            assert!(events(desk, kind).iter().all(|event| event["actor"] != "code"), "{kind}");
        }
        assert!(page(desk, Table::Tasks).iter().any(|row| matches!(&row.columns, Columns::Task(task) if task.status == "completed")));
    }

    fn a_row_enters_once_and_unverified(desk: &TestDesk) {
        let row = message(ID, "cowork", "code", "hello");
        assert!(kept(&settle(desk, std::slice::from_ref(&row))));
        assert!(kept(&settle(desk, std::slice::from_ref(&row))));
        let answer = desk.agent("code", "bridge_read_messages", json!({})).unwrap();
        assert_eq!(answer["messages"].as_array().unwrap().len(), 1);
        let read = &answer["messages"][0];
        assert_eq!(read["message_id"], ID.to_lowercase());
        assert_eq!((&read["trust"], &read["origin"]), (&json!("unverified, claims to be cowork"), &json!("file")));
        assert_eq!(read["created_at"], "2025-12-31T23:00:00.000000Z");
        let sent = events(desk, "message.sent");
        assert_eq!(sent.len(), 1);
        assert_eq!((&sent[0]["actor"], &sent[0]["verified"], &sent[0]["surface"]), (&json!("cowork"), &json!(false), &json!("file")));
        assert!(desk.desk.db.read_blocking(move |tx| file::same(tx, std::slice::from_ref(&row))).unwrap()[0]);
        assert!(desk.verify().findings.is_empty());
    }

    fn rows_keep_their_order_and_never_come_before_what_was_seen(desk: &TestDesk) {
        let seen = desk.agent("third", "bridge_send_message", json!({ "to": "code", "content": "first" })).unwrap();
        let rows: Vec<FileRow> = (0..20).map(|number| message(&format!("row {number}"), "cowork", "code", &number.to_string())).collect();
        assert!(kept(&settle(desk, &rows)));
        let after = desk.agent("code", "bridge_wait_for_messages", json!({ "after": seen["message_id"] })).unwrap();
        let contents: Vec<&str> = after["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
        assert_eq!(contents, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    fn what_cannot_be_taken_is_reported_once(desk: &TestDesk) {
        let rows = [
            message("", "cowork", "code", "no id"),
            message("a\0b", "cowork", "code", "NUL in the id"),
            message("1", "", "code", "no sender"),
            message("2", "desk", "code", "not the desk"),
            message("3", "cowork", "", "no recipient"),
            message("4", "cowork", "code\0", "NUL in the recipient"),
            message("5", "cowork", "group:none", "no such group"),
            message("6", "cowork", "code", "NUL \0 in the text"),
            message("7", "cowork", "code", " "),
            message("8", "cowork", "code", &"x".repeat(300_000)),
            FileRow { id: "9".into(), columns: Columns::Unreadable(Table::Messages), has_result: true },
            message(&"1".repeat(300), "cowork", "code", "a long id"),
            task("10", "cowork", "code", "half done", None),
            message("good", "cowork", "code", "good"),
            message("GOOD", "cowork", "code", "another spelling"),
        ];
        let settled = settle(desk, &rows);
        let taken: Vec<usize> = settled.iter().enumerate().filter(|(_, settled)| matches!(settled, Settled::Keep)).map(|(at, _)| at).collect();
        assert_eq!(taken, [13], "{settled:?}");
        assert!(!desk.desk.db.read_blocking({ let rows = rows.to_vec(); move |tx| file::same(tx, &rows) }).unwrap()[1]);
        settle(desk, &rows);
        let reports = events(desk, "bridge_file.skipped");
        assert_eq!(reports.len(), 1);
        assert_eq!(reports[0]["facts"]["rows"], 14);
        assert!(reports[0]["payload"].to_string().contains("group none"), "{}", reports[0]["payload"]);
    }

    fn the_file_shows_what_the_desk_has(desk: &TestDesk) {
        let one = desk.agent("code", "bridge_send_message", json!({ "to": "cowork", "content": "one" })).unwrap();
        desk.agent("code", "bridge_set_group", json!({ "name": "team", "members": ["a", "b"] })).unwrap();
        let many = desk.agent("code", "bridge_send_message", json!({ "to": "group:team", "content": "many" })).unwrap();
        desk.agent("a", "bridge_read_messages", json!({ "mark_read": true })).unwrap();
        let many = many["message_id"].as_str().unwrap();
        let rows = page(desk, Table::Messages);
        let shown: Vec<(String, String, bool)> = rows
            .iter()
            .map(|row| match &row.columns {
                Columns::Message(message) => (row.id.clone(), message.recipient.clone(), message.read),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [(one["message_id"].as_str().unwrap().to_owned(), "cowork".to_owned(), false), (format!("{many}#a"), "a".to_owned(), true), (format!("{many}#b"), "b".to_owned(), false)];
        assert_eq!(shown, expected);
        assert!(kept(&settle(desk, &rows)), "what the desk wrote is never taken for somebody else's");
        assert_eq!(events(desk, "message.sent").len(), 2);
    }

    fn read_set_by_hand_acknowledges(desk: &TestDesk) {
        desk.agent("code", "bridge_send_message", json!({ "to": "cowork", "content": "one" })).unwrap();
        let mut rows = page(desk, Table::Messages);
        let Columns::Message(message) = &mut rows[0].columns else { panic!() };
        message.read = true;
        assert!(kept(&settle(desk, &rows)));
        assert!(desk.agent("cowork", "bridge_read_messages", json!({})).unwrap()["messages"].as_array().unwrap().is_empty());
        let told = events(desk, "message.acknowledged");
        assert_eq!((&told[0]["actor"], &told[0]["verified"]), (&json!("cowork"), &json!(false)));
        let Columns::Message(message) = &mut rows[0].columns else { panic!() };
        message.read = false;
        assert!(matches!(&put(&settle(desk, &rows)).columns, Columns::Message(message) if message.read), "nobody unreads a message");
        assert_eq!(events(desk, "bridge_file.reverted").len(), 1);
    }

    fn steps_by_hand_are_checked_like_any_other(desk: &TestDesk) {
        assert!(kept(&settle(desk, &[task(ID, "cowork", "code", "pending", None)])));
        for status in ["in_progress", "pending", "in_progress"] {
            assert!(kept(&settle(desk, &[task(ID, "cowork", "code", status, None)])), "{status}");
        }
        assert!(kept(&settle(desk, &[task(ID, "cowork", "code", "in_progress", Some("half"))])), "a result may come first");
        assert!(kept(&settle(desk, &[task(ID, "cowork", "code", "completed", Some("all"))])));
        for (status, result) in [("pending", Some("all")), ("failed", Some("all")), ("completed", Some("other")), ("nonsense", None)] {
            let settled = settle(desk, &[task(ID, "cowork", "code", status, result)]);
            assert!(matches!(&put(&settled).columns, Columns::Task(task) if task.status == "completed" && task.result.as_deref() == Some("all")));
        }
        assert_eq!(events(desk, "bridge_file.reverted").len(), 4);
        let seen = desk.agent("code", "bridge_get_task", json!({ "task_id": ID })).unwrap();
        assert_eq!((&seen["task"]["status"], &seen["task"]["result"]), (&json!("completed"), &json!("all")));
        assert!(kept(&settle(desk, &[task("two", "cowork", "code", "pending", None)])));
        assert!(kept(&settle(desk, &[task("two", "cowork", "code", "failed", Some("at once"))])), "two steps may be seen as one");
        assert!(kept(&settle(desk, &[task("old", "cowork", "code", "completed", Some("long ago"))])), "history comes as it is");
    }

    fn news_of_the_desk_win_over_the_file(desk: &TestDesk) {
        assert!(kept(&settle(desk, &[task(ID, "cowork", "code", "pending", None)])));
        let mirrored = size(desk);
        desk.agent("code", "bridge_claim_task", json!({ "task_id": ID })).unwrap();
        let settled = settle_behind(desk, &[task(ID, "cowork", "code", "pending", None)], mirrored, false);
        assert!(matches!(&put(&settled).columns, Columns::Task(task) if task.status == "in_progress"), "the file is behind; nobody gave the task back");
        assert!(events(desk, "bridge_file.reverted").is_empty());
    }

    fn a_change_by_hand_that_news_of_the_desk_undo_is_reported(desk: &TestDesk) {
        let given = task(ID, "cowork", "code", "pending", None);
        assert!(kept(&settle(desk, &[given.clone(), message("m", "cowork", "code", "hello")])));
        let mirrored = size(desk);
        desk.agent("code", "bridge_claim_task", json!({ "task_id": ID })).unwrap();
        let mut renamed = given;
        if let Columns::Task(columns) = &mut renamed.columns {
            columns.title = "another task".into();
        }
        for (row, reports) in [(task(ID, "cowork", "code", "cancelled", None), 1), (renamed, 2)] {
            let settled = settle_behind(desk, std::slice::from_ref(&row), mirrored, true);
            assert!(matches!(&put(&settled).columns, Columns::Task(task) if task.status == "in_progress" && task.title == "a task"), "the desk is right");
            let told = events(desk, "bridge_file.reverted");
            assert_eq!(told.len(), reports, "and somebody's change is not lost without a word");
            assert!(told[0]["payload"]["rows"][0]["why"].as_str().unwrap().contains("meanwhile"), "{told:?}");
        }
        let read = {
            let mut row = message("m", "cowork", "code", "hello");
            if let Columns::Message(columns) = &mut row.columns {
                columns.read = true;
            }
            row
        };
        assert!(kept(&settle_behind(desk, &[read], mirrored, true)), "what counts by hand still does");
        assert_eq!(events(desk, "bridge_file.reverted").len(), 2);
    }

    fn nobody_acts_by_hand_for_who_has_a_credential(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        desk.call(&owner, "bridge_send_message", json!({ "to": "code", "content": "read this" })).unwrap();
        desk.call(&owner, "bridge_create_task", json!({ "to": "code", "title": "do this" })).unwrap();
        for table in Table::ALL {
            let mut rows = page(desk, table);
            match &mut rows[0].columns {
                Columns::Message(message) => message.read = true,
                Columns::Task(task) => task.status = "completed".into(),
                Columns::Unreadable(_) => panic!(),
            }
            put(&settle(desk, &rows));
        }
        assert_eq!(events(desk, "bridge_file.reverted").len(), 2);
        assert_eq!(desk.call(&code, "bridge_read_messages", json!({})).unwrap()["messages"].as_array().unwrap().len(), 1);
        assert!(kept(&settle(desk, &[message("m", "stranger", "code", "a row is welcome, and marked")])));
        assert!(matches!(settle(desk, &[message("n", "stranger", "unknown", "to nobody")])[0], Settled::Skipped { .. }));
    }

    fn what_was_kept_long_enough_leaves_the_desk_and_the_file(desk: &TestDesk) {
        assert!(kept(&settle(desk, &[message("old", "cowork", "code", "read"), message("open", "cowork", "third", "unread"), task("t", "cowork", "code", "completed", None)])));
        desk.agent("code", "bridge_read_messages", json!({ "mark_read": true })).unwrap();
        desk.world.pass(Duration::from_secs(90));
        let start = (i64::MIN, String::new());
        let mut from = Some(start.clone());
        let mut deleted = 0;
        while let Some(at) = from {
            let slice = desk.act(move |cx| prune_messages(cx, cx.now(), &at, 1)).unwrap();
            deleted += slice.deleted;
            from = slice.next;
        }
        assert_eq!(deleted, 1, "what nobody acknowledged stays");
        assert_eq!(desk.act(move |cx| prune_tasks(cx, cx.now(), &start, 10)).unwrap().deleted, 1);
        assert!(matches!(settle(desk, &[message("old", "cowork", "code", "read")])[0], Settled::Remove));
        let (gone, _) = desk.desk.db.read_blocking(|tx| file::gone(tx, Table::Messages, "", 10)).unwrap();
        assert_eq!(gone.iter().map(|gone| gone.spelled.as_str()).collect::<Vec<_>>(), ["old"]);
        desk.act(move |cx| file::forget(cx, Table::Messages, &gone)).unwrap();
        assert!(desk.desk.db.read_blocking(|tx| file::gone(tx, Table::Messages, "", 10)).unwrap().0.is_empty());
        assert_eq!(events(desk, "bridge.pruned").len(), 2);
        assert!(desk.verify().findings.is_empty());
    }

    fn the_record_says_what_the_file_has_to_show(desk: &TestDesk) {
        let from = size(desk);
        let sent = desk.agent("code", "bridge_send_message", json!({ "to": "cowork", "content": "secret" })).unwrap();
        let touched = desk.desk.db.read_blocking(move |tx| file::touched(tx, from, 100)).unwrap();
        assert_eq!(touched.messages.iter().collect::<Vec<_>>(), [sent["message_id"].as_str().unwrap()]);
        let from = touched.next;
        assert_eq!(from, size(desk));
        let owner = desk.claim();
        let event = events(desk, "message.sent")[0]["seq"].clone();
        desk.call(&owner, "desk_record_erase", json!({ "seq": event, "reason": "by mistake" })).unwrap();
        let touched = desk.desk.db.read_blocking(move |tx| file::touched(tx, from, 100)).unwrap();
        assert!(touched.erased && touched.messages.len() == 1);
        assert!(matches!(&page(desk, Table::Messages)[0].columns, Columns::Message(message) if message.content.is_empty()));
        desk.act(|cx| file::set_cursor(cx, "a", 7)).unwrap();
        assert_eq!(desk.desk.db.read_blocking(|tx| Ok::<_, deskmate_core::Error>((file::cursor(tx, "a")?, file::cursor(tx, "b")?))).unwrap(), (Some(7), None));
    }
}
