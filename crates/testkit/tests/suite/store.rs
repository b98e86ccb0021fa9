//! The store's promises, on both engines: one text of SQL, one commit, nothing half done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use deskmate_db::{Committed, Db, Engine, Error, Kind, Migration, Options, Result, Seal, Staged, Tx, args};
use testkit::{Backend, PgSchema, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "one",
        sql: "create table item (n KEY, name text not null, data BYTES, flag boolean not null);\ncreate unique index item_by_name on item (name);",
    },
    Migration { version: 2, name: "two", sql: "create table total (id KEY, sum bigint not null);\ninsert into total (id, sum) values (1, 0);" },
];

/// The schema before the step that gave meters their new table.
const CORE_BEFORE: &[Migration] = deskmate_core::MIGRATIONS.split_at(7).0;

struct NoSeal;
impl Seal for NoSeal {
    fn before_commit(&mut self, _: &mut Tx<'_>, _: Vec<Staged>) -> Result<()> {
        Ok(())
    }
    fn after_commit(&mut self, _: Committed) {}
}

/// A store that is thrown away with this value.
struct Store {
    db: Db,
    url: String,
    _schema: Option<PgSchema>,
    _directory: Option<tempfile::TempDir>,
}

fn open(url: &str, migrations: &'static [Migration]) -> Result<Db> {
    Db::open(&Options::new(url, migrations), &mut |_| Ok(Box::new(NoSeal)))
}

/// A place for a store: its URL, and what it is thrown away with.
fn place(backend: Backend) -> (String, Option<PgSchema>, Option<tempfile::TempDir>) {
    match backend {
        Backend::Sqlite => {
            let directory = tempfile::tempdir().unwrap();
            (format!("sqlite:{}", directory.path().join("s.db").display()), None, Some(directory))
        }
        Backend::Postgres(server) => {
            let schema = PgSchema::new(&server);
            (schema.url(), Some(schema), None)
        }
    }
}

fn store(backend: Backend) -> Store {
    let (url, schema, directory) = place(backend);
    Store { db: open(&url, MIGRATIONS).unwrap(), url, _schema: schema, _directory: directory }
}

macro_rules! both_stores {
    ($(fn $name:ident($store:ident: &Store) $body:block)+) => {
        $(fn $name($store: &Store) $body)+
        mod sqlite { $(#[test] fn $name() { super::$name(&super::store(testkit::Backend::Sqlite)); })+ }
        mod postgres { $(#[test] fn $name() { if let Some(backend) = testkit::Backend::postgres() { super::$name(&super::store(backend)); } })+ }
    };
}

/// A write that is begun by nobody: polled once, so that it is queued, and dropped.
fn queue_and_give_up(db: &Db, n: i64) {
    let mut given_up = Box::pin(db.write(move |tx| -> Result<u64> { tx.execute("insert into item (n, name, flag) values ($1, 'given up', true)", args![n]) }));
    let polled = given_up.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    assert!(polled.is_pending());
}

#[test]
fn a_write_whose_caller_gave_up_before_it_began_is_not_done() {
    let Some(Backend::Postgres(server)) = Backend::postgres() else { return };
    let schema = PgSchema::new(&server);
    let mut options = Options::new(schema.url(), MIGRATIONS);
    options.threads = 1;
    let db = Db::open(&options, &mut |_| Ok(Box::new(NoSeal))).unwrap();
    let (busy, started) = (db.clone(), Arc::new(std::sync::Barrier::new(2)));
    let there = Arc::clone(&started);
    let slow = std::thread::spawn(move || {
        busy.write_blocking(move |_| -> Result<()> {
            there.wait();
            std::thread::sleep(Duration::from_millis(200));
            Ok(())
        })
    });
    started.wait();
    queue_and_give_up(&db, 1);
    slow.join().unwrap().unwrap();
    insert(&db, 2, "kept").unwrap();
    let count: i64 = db.read_blocking(|tx| -> Result<i64> { tx.one("select count(*) from item", &[])?.get(0) }).unwrap();
    assert_eq!(count, 1);
}

#[test]
fn a_store_is_closed_only_on_purpose() {
    let store = store(Backend::Sqlite);
    let failed: Result<u64> = store.db.read_blocking(|tx| tx.execute("select * from nowhere", &[]));
    assert!(failed.is_err() && !store.db.is_closed());
    store.db.close();
    assert!(store.db.is_closed());
}

fn insert(db: &Db, n: i64, name: &'static str) -> Result<u64> {
    db.write_blocking(move |tx| tx.execute("insert into item (n, name, flag) values ($1, $2, false)", args![n, name]))
}

fn count(db: &Db) -> i64 {
    db.read_blocking(|tx| tx.one("select count(*) from item", &[])?.get::<i64>(0)).unwrap()
}

both_stores! {
    fn parameters_are_bound_by_their_number(store: &Store) {
        let row = store.db.write_blocking(|tx| {
            tx.execute("insert into item (n, name, flag) values ($3, $2, $1)", args![true, "x", 7_i64])?;
            tx.one("select n, name, flag from item where name = $2 and n = $1", args![7_i64, "x"])
        }).unwrap();
        assert_eq!((row.get::<i64>(0).unwrap(), row.get::<String>(1).unwrap(), row.get::<bool>(2).unwrap()), (7, "x".to_owned(), true));
    }

    fn every_kind_of_value_comes_back(store: &Store) {
        let bytes = vec![0_u8, 1, 255];
        let row = store.db.write_blocking(move |tx| {
            tx.execute("insert into item (n, name, data, flag) values ($1, $2, $3, $4)", args![i64::MAX, "ä\n😀", bytes, false])?;
            tx.execute("insert into item (n, name, data, flag) values ($1, $2, $3, $4)", args![-1_i64, "", None::<Vec<u8>>, true])?;
            tx.query("select n, name, data, flag from item order by n", &[])
        }).unwrap();
        assert_eq!(row[0].get::<Option<Vec<u8>>>(2).unwrap(), None);
        assert_eq!(row[1].get::<i64>(0).unwrap(), i64::MAX);
        assert_eq!(row[1].get::<String>(1).unwrap(), "ä\n😀");
        assert_eq!(row[1].get::<Vec<u8>>(2).unwrap(), vec![0, 1, 255]);
        assert!(row[0].get::<String>(0).is_err(), "a column is not read as another type");
    }

    fn text_is_ordered_by_its_bytes(store: &Store) {
        for (n, name) in [(1, "a"), (2, "B"), (3, "ä"), (4, "_")] { insert(&store.db, n, name).unwrap(); }
        let names = store.db.read_blocking(|tx| tx.query("select name from item order by name", &[])).unwrap();
        let names: Vec<String> = names.iter().map(|row| row.get(0).unwrap()).collect();
        assert_eq!(names, ["B", "_", "a", "ä"]);
    }

    fn a_refused_write_leaves_nothing_and_its_neighbours_stand(store: &Store) {
        let calls: Vec<_> = (0..64_i64).map(|n| {
            let db = store.db.clone();
            std::thread::spawn(move || db.write_blocking(move |tx| -> Result<()> {
                tx.execute("insert into item (n, name, flag) values ($1, $2, false)", args![n, format!("item {n}")])?;
                if n % 2 == 0 { Ok(()) } else { Err(Error::new(Kind::Other, "refused")) }
            }))
        }).collect();
        let kept = calls.into_iter().map(|call| call.join().unwrap()).filter(Result::is_ok).count();
        assert_eq!((kept, count(&store.db)), (32, 32));
    }

    fn a_panic_fails_its_own_write_only(store: &Store) {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let done = store.db.write_blocking(|tx| -> Result<()> {
            tx.execute("insert into item (n, name, flag) values (1, 'x', false)", &[])?;
            panic!("on purpose")
        });
        std::panic::set_hook(hook);
        assert_eq!(done.unwrap_err().kind(), Kind::Panicked);
        insert(&store.db, 2, "y").unwrap();
        assert_eq!(count(&store.db), 1);
    }

    fn a_violated_rule_is_told(store: &Store) {
        insert(&store.db, 1, "x").unwrap();
        assert_eq!(insert(&store.db, 2, "x").unwrap_err().kind(), Kind::Constraint);
        assert_eq!(count(&store.db), 1);
    }

    fn a_failure_that_is_passed_over_is_no_success(store: &Store) {
        insert(&store.db, 1, "one").unwrap();
        let kept: Result<()> = store.db.write_blocking(|tx| {
            tx.execute("insert into item (n, name, flag) values ($1, $2, $3)", args![2_i64, "two", true])?;
            drop(tx.execute("insert into item (n, name, flag) values ($1, $2, $3)", args![3_i64, "one", true]));
            Ok(())
        });
        assert_eq!(kept.unwrap_err().kind(), Kind::Constraint);
        assert_eq!(count(&store.db), 1);
    }

    fn a_conflict_is_tried_again_also_when_it_was_passed_over(store: &Store) {
        if store.db.engine() == Engine::Sqlite {
            return;
        }
        let mut turns = 0;
        let done: Result<i64> = store.db.write_blocking(move |tx| {
            turns += 1;
            if turns == 1 {
                drop(tx.batch("do $$ begin raise exception 'another one was faster' using errcode = '40001'; end $$"));
            }
            tx.one("select count(*) from item", &[])?.get(0)
        });
        assert_eq!(done.unwrap(), 0);
    }

    fn concurrent_counting_loses_nothing(store: &Store) {
        let tries = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..8).map(|_| {
            let (db, tries) = (store.db.clone(), Arc::clone(&tries));
            std::thread::spawn(move || for _ in 0..25 {
                let tries = Arc::clone(&tries);
                db.write_blocking(move |tx| -> Result<()> {
                    tries.fetch_add(1, Ordering::SeqCst);
                    let sum: i64 = tx.one("select sum from total where id = 1", &[])?.get(0)?;
                    tx.execute("update total set sum = $1 where id = 1", args![sum + 1])?;
                    Ok(())
                }).unwrap();
            })
        }).collect();
        for thread in threads { thread.join().unwrap(); }
        let sum = store.db.read_blocking(|tx| tx.one("select sum from total where id = 1", &[])?.get::<i64>(0)).unwrap();
        assert_eq!(sum, 200);
    }

    fn a_read_sees_one_moment(store: &Store) {
        insert(&store.db, 1, "x").unwrap();
        let db = store.db.clone();
        let (first, second) = store.db.read_blocking(move |tx| -> Result<(i64, i64)> {
            let first = tx.one("select count(*) from item", &[])?.get(0)?;
            insert(&db, 2, "y")?;
            Ok((first, tx.one("select count(*) from item", &[])?.get(0)?))
        }).unwrap();
        assert_eq!((first, second), (1, 1));
        assert_eq!(count(&store.db), 2);
    }

    fn a_read_cannot_write(store: &Store) {
        let done = store.db.read_blocking(|tx| tx.execute("insert into item (n, name, flag) values (1, 'x', false)", &[]));
        assert_eq!(done.unwrap_err().kind(), Kind::ReadOnly);
    }

    fn a_newer_store_is_refused_and_left_alone(store: &Store) {
        store.db.write_blocking(|tx| tx.execute("insert into schema_version (version, name, sql) values (99, 'later', '')", &[])).unwrap();
        store.db.close();
        let file = store.url.strip_prefix("sqlite:");
        let before = file.map(|file| std::fs::read(file).unwrap());
        let error = open(&store.url, MIGRATIONS).err().unwrap();
        assert_eq!(error.kind(), Kind::Newer, "{error}");
        assert!(error.to_string().contains("99"), "{error}");
        assert_eq!(Db::open_reader(&Options::new(&store.url, MIGRATIONS)).err().map(|error| error.kind()), Some(Kind::Newer), "nor is it read");
        assert_eq!(before, file.map(|file| std::fs::read(file).unwrap()));
    }

    fn where_a_store_must_be_none_is_made(store: &Store) {
        let existing = || Db::open(&Options { existing: true, ..Options::new(&store.url, MIGRATIONS) }, &mut |_| Ok(Box::new(NoSeal)));
        assert!(existing().is_ok());
        for table in ["schema_version", "item"] {
            store.db.write_blocking(move |tx| tx.batch(&format!("drop table {table}"))).unwrap();
        }
        store.db.close();
        let file = store.url.strip_prefix("sqlite:");
        let before = file.map(|file| std::fs::read(file).unwrap());
        // The first try has not made one for the second.
        for _ in 0..2 {
            assert_eq!(existing().err().map(|error| error.kind()), Some(Kind::Missing));
        }
        assert_eq!(before, file.map(|file| std::fs::read(file).unwrap()));
    }

    fn a_store_of_an_older_version_is_brought_up_to_date(store: &Store) {
        const LATER: &[Migration] = &[MIGRATIONS[0], MIGRATIONS[1], Migration { version: 3, name: "three", sql: "alter table item add column more text;" }];
        insert(&store.db, 1, "x").unwrap();
        let later = open(&store.url, LATER).unwrap();
        assert_eq!(count(&later), 1);
        later.write_blocking(|tx| tx.execute("update item set more = 'm' where n = 1", &[])).unwrap();
    }

    fn a_step_that_was_changed_after_its_release_is_refused(store: &Store) {
        const CHANGED: &[Migration] = &[MIGRATIONS[0], Migration { version: 2, name: "two", sql: "create table other (id KEY);" }];
        assert_eq!(open(&store.url, CHANGED).err().unwrap().kind(), Kind::Newer);
    }

    fn a_closed_store_says_so(store: &Store) {
        store.db.close();
        assert_eq!(insert(&store.db, 1, "x").unwrap_err().kind(), Kind::Closed);
        assert_eq!(wait(store.db.read(|tx| tx.query("select 1", &[]))).unwrap_err().kind(), Kind::Closed);
    }
}

#[test]
fn writes_that_wait_together_share_one_commit() {
    struct Counting(Arc<AtomicU32>);
    impl Seal for Counting {
        fn before_commit(&mut self, _: &mut Tx<'_>, _: Vec<Staged>) -> Result<()> {
            Ok(())
        }
        fn after_commit(&mut self, _: Committed) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let commits = Arc::new(AtomicU32::new(0));
    let options = Options::new(format!("sqlite:{}", directory.path().join("s.db").display()), MIGRATIONS);
    let db = Db::open(&options, &mut |_| Ok(Box::new(Counting(Arc::clone(&commits))))).unwrap();
    let threads: Vec<_> = (0..400_i64)
        .map(|n| {
            let db = db.clone();
            std::thread::spawn(move || {
                db.write_blocking(move |tx| tx.execute("insert into item (n, name, flag) values ($1, $2, false)", args![n, n.to_string()])).unwrap()
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(count(&db), 400);
    let commits = commits.load(Ordering::SeqCst);
    assert!(commits < 400, "{commits} commits for 400 writes");
}

#[test]
fn a_full_disk_loses_the_batch_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let url = format!("sqlite:{}", path.display());
    let db = open(&url, MIGRATIONS).unwrap();
    insert(&db, -1, "before").unwrap();
    // The engine's own bound on the file stands for the disk's.
    db.write_blocking(|tx| tx.query_text("pragma max_page_count = 30", &[])).unwrap();
    let threads: Vec<_> = (0..64_i64)
        .map(|n| {
            let db = db.clone();
            std::thread::spawn(move || {
                let data = vec![7_u8; 8_000];
                let done =
                    db.write_blocking(move |tx| tx.execute("insert into item (n, name, data, flag) values ($1, $2, $3, false)", args![n, n.to_string(), data]));
                done.map_err(|error| assert_eq!(error.kind(), Kind::Full, "{error}")).is_ok()
            })
        })
        .collect();
    let kept = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|kept| *kept).count();
    assert!(kept < 64);
    assert_eq!(count(&db), i64::try_from(kept).unwrap() + 1, "exactly what was answered is there");
    db.write_blocking(|tx| tx.query_text("pragma max_page_count = 100000", &[])).unwrap();
    insert(&db, 1_000, "after").unwrap();
}

#[test]
fn a_damaged_page_is_an_error_and_not_an_answer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let url = format!("sqlite:{}", path.display());
    let db = open(&url, MIGRATIONS).unwrap();
    for n in 0..500 {
        db.write_blocking(move |tx| tx.execute("insert into item (n, name, data, flag) values ($1, $2, $3, false)", args![n, n.to_string(), vec![1_u8; 500]]))
            .unwrap();
    }
    db.close();
    drop(std::fs::remove_file(directory.path().join("s.db-wal")));
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let found = open(&url, MIGRATIONS).and_then(|db| db.read_blocking(|tx| tx.query("select n, name, data, flag from item order by n", &[])));
    assert_eq!(found.unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn the_log_is_short_again_when_it_is_quiet() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&format!("sqlite:{}", directory.path().join("s.db").display()), MIGRATIONS).unwrap();
    let write = |rows: std::ops::Range<i64>| {
        let data = vec![7; 64 * 1_024];
        let sql = "insert into item (n, name, data, flag) values ($1, $2, $3, true)";
        let one = move |tx: &mut Tx<'_>, n: i64| tx.execute(sql, args![n, format!("row {n}"), data]).map(drop);
        db.write_blocking(move |tx| rows.clone().try_for_each(|n| one(tx, n))).unwrap();
    };
    write(0..1_200);
    let log = || std::fs::metadata(directory.path().join("s.db-wal")).unwrap().len();
    assert!(log() > 64 << 20, "the log has {} bytes", log());
    let mut next = 1_200;
    while log() > 16 << 20 {
        assert!(next < 3_000, "it stays at {} bytes", log());
        write(next..next + 1);
        next += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(count(&db), next);
    db.close();
}

#[test]
fn the_log_is_written_ahead_and_keeps_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("s.db").display());
    let db = open(&url, MIGRATIONS).unwrap();
    let log = || std::fs::metadata(directory.path().join("s.db-wal")).unwrap().len();
    let started = Instant::now();
    while log() != 16 << 20 {
        assert!(started.elapsed() < Duration::from_secs(20), "it has {} bytes", log());
        std::thread::sleep(Duration::from_millis(5));
    }
    // The first salt of the log's header changes whenever it begins anew.
    let salt = || std::fs::read(directory.path().join("s.db-wal")).unwrap()[16..20].to_vec();
    let write = |n: i64, bytes: usize| {
        let data = vec![7; bytes];
        let sql = "insert into item (n, name, data, flag) values ($1, $2, $3, true)";
        db.write_blocking(move |tx| tx.execute(sql, args![n, format!("row {n}"), data])).unwrap();
        assert_eq!(log(), 16 << 20, "after {n} writes");
    };
    let mut n = 0;
    for _ in 0..3 {
        let before = salt();
        for _ in 0..300 {
            write(n, 24 * 1_024);
            n += 1;
        }
        // It is copied beside the writer, and the next write after that begins anew.
        let started = Instant::now();
        while salt() == before {
            assert!(started.elapsed() < Duration::from_secs(20), "it goes on growing");
            std::thread::sleep(Duration::from_millis(50));
            write(n, 1);
            n += 1;
        }
    }
    assert_eq!(count(&db), n);
    db.close();
}

/// Which thread a write ran on.
async fn writer_of(db: &Db) -> String {
    let name = |_: &mut Tx<'_>| Ok::<_, Error>(std::thread::current().name().unwrap_or_default().to_owned());
    db.write(name).await.unwrap()
}

#[test]
fn a_caller_that_is_alone_writes_on_its_own_thread_and_holds_up_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&format!("sqlite:{}", directory.path().join("s.db").display()), MIGRATIONS).unwrap();
    let one_thread =
        [tokio::runtime::Builder::new_current_thread().build().unwrap(), tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap()];
    for (runtime, own) in one_thread.iter().zip([db.clone(), db.clone()]) {
        for _ in 0..20 {
            assert_eq!(runtime.block_on(writer_of(&own)), "desk-writer", "a runtime with one thread cannot spare it");
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name("a-caller").build().unwrap();
    let own = db.clone();
    let alone = runtime.block_on(runtime.spawn(async move {
        for _ in 0..1_000 {
            if writer_of(&own).await == "a-caller" {
                return true;
            }
        }
        false
    }));
    assert!(alone.unwrap(), "nobody else wrote for a while");
    let (slow, quick) = (db.clone(), db.clone());
    let slow = runtime.spawn(async move {
        let sleep = |_: &mut Tx<'_>| -> Result<()> {
            std::thread::sleep(Duration::from_secs(2));
            Ok(())
        };
        slow.write(sleep).await.unwrap();
        Instant::now()
    });
    std::thread::sleep(Duration::from_millis(200));
    let read = runtime.spawn(async move {
        quick.read(|tx| tx.query("select n from item", &[])).await.unwrap();
        Instant::now()
    });
    let own = db.clone();
    let behind = runtime.spawn(async move { writer_of(&own).await });
    let (slow, read, behind) = runtime.block_on(async { (slow.await.unwrap(), read.await.unwrap(), behind.await.unwrap()) });
    assert!(read < slow, "a read waited for the write of another caller");
    assert_eq!(behind, "desk-writer", "who is not alone waits in the queue");
    db.close();
    let refused = runtime.block_on(runtime.spawn(async move { db.write(|_| Ok::<_, Error>(())).await })).unwrap();
    assert_eq!(refused.unwrap_err().kind(), Kind::Closed);
}

/// Writes of a crowd that all wait at once: the first one holds the writer until they are there.
async fn crowd(db: &Db) -> usize {
    let first = db.clone();
    let first = tokio::spawn(async move {
        let sleep = |_: &mut Tx<'_>| -> Result<()> {
            std::thread::sleep(Duration::from_millis(100));
            Ok(())
        };
        first.write(sleep).await
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let all: Vec<_> = (0..50)
        .map(|_| {
            let own = db.clone();
            tokio::spawn(async move { own.write(|_| Ok::<_, Error>(())).await })
        })
        .collect();
    let mut answered = usize::from(first.await.unwrap().is_ok());
    for one in all {
        answered += usize::from(one.await.unwrap().is_ok());
    }
    answered
}

#[test]
fn a_crowd_is_answered_also_when_the_runtime_that_was_known_first_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&format!("sqlite:{}", directory.path().join("s.db").display()), MIGRATIONS).unwrap();
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let own = db.clone();
        assert_eq!(runtime.block_on(runtime.spawn(async move { crowd(&own).await })).unwrap(), 51);
    }
    db.close();
}

#[test]
fn a_log_that_readers_keep_from_being_emptied_holds_up_no_writer() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&format!("sqlite:{}", directory.path().join("s.db").display()), MIGRATIONS).unwrap();
    insert(&db, 0, "the first").unwrap();
    let long = db.clone();
    let reader = std::thread::spawn(move || {
        let breath = |tx: &mut Tx<'_>| -> Result<()> {
            tx.query("select n from item", &[])?;
            std::thread::sleep(Duration::from_secs(3));
            Ok(())
        };
        long.read_blocking(breath).unwrap();
    });
    std::thread::sleep(Duration::from_millis(300));
    db.write_blocking(|tx| {
        tx.erases();
        tx.execute("update item set name = 'gone' where n = 0", &[])
    })
    .unwrap();
    let write = |n: i64| {
        let sql = "insert into item (n, name, data, flag) values ($1, $2, null, true)";
        db.write_blocking(move |tx| tx.execute(sql, args![n, n.to_string()])).unwrap();
    };
    let mut waits: Vec<_> = (1..=20)
        .map(|n| {
            let started = Instant::now();
            write(n);
            started.elapsed()
        })
        .collect();
    waits.sort();
    assert!(waits[10] < Duration::from_millis(40), "most writers waited for the reader: {waits:?}");
    reader.join().unwrap();
    // Once the reader is done, the log is emptied by one of the next writes.
    let held = || std::fs::read(directory.path().join("s.db-wal")).unwrap().windows(9).any(|part| part == b"the first");
    let started = Instant::now();
    for n in 100.. {
        write(n);
        if !held() {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "the log still holds what was erased");
        std::thread::sleep(Duration::from_millis(100));
    }
    db.close();
}

#[test]
fn uses_of_meters_outlive_their_new_table() {
    for backend in [Some(Backend::Sqlite), Backend::postgres()].into_iter().flatten() {
        let (url, _schema, _directory) = place(backend);
        let db = open(&url, CORE_BEFORE).unwrap();
        let old = "insert into meter_use (agent, number, domain, domain_number, at) values ('code', 4, 'crm', 0, 1004), ('code', 5, 'crm', 1, 1005)";
        db.write_blocking(move |tx| tx.execute(old, &[])).unwrap();
        db.close();
        let db = open(&url, deskmate_core::MIGRATIONS).unwrap();
        let found = db.read_blocking(|tx| tx.query("select scope, number, at from meter_use where agent = 'code' order by scope, number", &[])).unwrap();
        let found: Vec<(String, i64, i64)> = found.iter().map(|row| (row.get(0).unwrap(), row.get(1).unwrap(), row.get(2).unwrap())).collect();
        let row = |scope: &str, number: i64, at: i64| (scope.to_owned(), number, at);
        assert_eq!(found, [row("", 4, 1_004), row("", 5, 1_005), row("crm", 0, 1_004), row("crm", 1, 1_005)]);
        db.close();
    }
}

/// Answers every byte, and works hard in the store before it answers `r` or `w`.
async fn answer(db: Db, mut stream: tokio::net::TcpStream) {
    while let Ok(asked) = stream.read_u8().await {
        let work = |tx: &mut Tx<'_>| {
            std::thread::sleep(Duration::from_millis(300));
            tx.query("select 1", &[])?;
            Ok::<_, Error>(std::thread::current().name().unwrap_or_default().starts_with("tokio"))
        };
        let is_here = match asked {
            b'r' => db.read(work).await.unwrap(),
            b'w' => db.write(work).await.unwrap(),
            _ => true,
        };
        assert!(is_here, "{asked} was not done on the caller's thread");
        stream.write_u8(asked).await.unwrap();
    }
}

fn asked(stream: &mut std::net::TcpStream, byte: u8) {
    std::io::Write::write_all(stream, &[byte]).unwrap();
}

fn answered(stream: &mut std::net::TcpStream) -> u8 {
    let mut byte = [0];
    std::io::Read::read_exact(stream, &mut byte).unwrap();
    byte[0]
}

#[test]
fn a_caller_that_does_its_work_itself_keeps_no_other_from_the_network() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&format!("sqlite:{}", directory.path().join("s.db").display()), MIGRATIONS).unwrap();
    for n in 0..20 {
        insert(&db, n, format!("{n}").leak()).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let own = db.clone();
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(own.clone(), stream));
        }
    });
    let (mut busy, mut other) = (std::net::TcpStream::connect(address).unwrap(), std::net::TcpStream::connect(address).unwrap());
    for work in [b'r', b'w', b'r', b'w', b'r', b'w'] {
        asked(&mut other, b'x');
        answered(&mut other);
        asked(&mut busy, work);
        std::thread::sleep(Duration::from_millis(50));
        let started = Instant::now();
        asked(&mut other, b'x');
        assert_eq!(answered(&mut other), b'x');
        assert!(started.elapsed() < Duration::from_millis(150), "another caller waited {:?} for somebody's {}", started.elapsed(), work as char);
        assert_eq!(answered(&mut busy), work);
    }
    db.close();
    let read = runtime.block_on(runtime.spawn(async move { db.read(|tx| tx.query("select 1", &[])).await })).unwrap();
    assert_eq!(read.unwrap_err().kind(), Kind::Closed);
}
