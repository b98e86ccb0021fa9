//! What the bridge file costs a desk with a long history: how readers fare while it is copied and compared, how soon a
//! row that somebody inserts by hand is there, and how much memory its keeper needs.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::fill;
use crate::floor::micros;
use crate::http::Connection;
use crate::load::{ms, times};
use crate::server::{Server, binary};

/// Rows that are inserted by hand, one after the other.
const INSERTS: u32 = 10;
/// When a file that is not in step will never be.
const PATIENCE: Duration = Duration::from_mins(30);

/// What one part of the file's life looks like from outside.
pub struct Phase {
    /// How long the keeper was at it.
    pub took: Duration,
    /// Times of `read_messages` meanwhile.
    pub reads: Histogram<u64>,
    /// The slowest of a few rows inserted meanwhile: from the INSERT to the recipient's answer.
    pub slowest_insert: Duration,
    /// Resident memory at the end, in kilobytes.
    pub rss: u64,
}

impl Phase {
    /// One line for people.
    pub fn line(&self) -> String {
        format!(
            "{:.0} s; reads p50 {:.2} ms, p99 {:.2} ms; a row by hand within {:.2} s; {} kB resident",
            self.took.as_secs_f64(),
            ms(self.reads.value_at_quantile(0.5)),
            ms(self.reads.value_at_quantile(0.99)),
            self.slowest_insert.as_secs_f64(),
            self.rss
        )
    }
}

/// The first start, which copies the desk into a new file, and the next one, which compares both; then rows inserted
/// into a file that is in step, each of which makes the keeper read the whole file.
pub struct Life {
    pub copying: Phase,
    pub comparing: Phase,
    pub in_step: Phase,
}

/// Lives through it on a store that `fill` made and that has no file yet.
pub fn run(program: Option<&Path>, home: &Path) -> Life {
    let program = binary(program);
    for name in ["messages.db", "messages.db-wal", "messages.db-shm"] {
        drop(std::fs::remove_file(home.join(name)));
    }
    sqlite3(&home.join("desk.db"), "delete from bridge_file_row; delete from cursor");
    let server = Server::start(&program, home, None);
    let copying = phase(&server, home, "copying");
    drop(server);
    let server = Server::start(&program, home, None);
    let comparing = phase(&server, home, "comparing");
    let in_step = phase(&server, home, "in-step");
    Life { copying, comparing, in_step }
}

/// Reads and inserts until the file is in step, and for a few seconds at least.
fn phase(server: &Server, home: &Path, name: &str) -> Phase {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (file, store) = (home.join("messages.db"), home.join("desk.db"));
    let begun = Instant::now();
    let mut reads = times();
    let mut slowest_insert = Duration::ZERO;
    runtime.block_on(async {
        let mut connection = Connection::open(&server.url).await.expect("the server answers");
        let (mut number, mut inserted, mut looked) = (0_u64, 0, Instant::now());
        loop {
            number += 1;
            let started = Instant::now();
            let (status, bytes) = connection.call("bridge_read_messages", &fill::recipient(number % 10), "{}").await.expect("the server answers");
            reads.saturating_record(micros(started.elapsed()));
            assert!(status == 200 && bytes > 10_000, "a full page was expected, not {status} with {bytes} bytes");
            // A pause as long as the answer took: somebody who reads, not a load.
            tokio::time::sleep(started.elapsed()).await;
            if looked.elapsed() < Duration::from_secs(1) {
                continue;
            }
            looked = Instant::now();
            if inserted < INSERTS && exists(&file) {
                inserted += 1;
                slowest_insert = slowest_insert.max(insert(&mut connection, &file, name, inserted).await);
            } else if in_step(&store) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "the file does not come into step");
        }
    });
    Phase { took: begun.elapsed(), reads, slowest_insert, rss: server.rss_kb() }
}

/// Inserts a row as people do, and waits until its recipient can read it.
async fn insert(connection: &mut Connection, file: &Path, name: &str, number: u32) -> Duration {
    let agent = format!("{name}-{number}");
    let begun = Instant::now();
    sqlite3(
        file,
        &format!("insert into messages (id, sender, recipient, content, created_at) values ('{agent} {begun:?}', 'hand', '{agent}', 'hello', datetime('now'))"),
    );
    while begun.elapsed() < PATIENCE {
        connection.call("bridge_read_messages", &agent, "{}").await.expect("the server answers");
        if connection.json()["messages"].as_array().is_some_and(|messages| !messages.is_empty()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    begun.elapsed()
}

fn exists(file: &Path) -> bool {
    let looked = Command::new("sqlite3").arg("-readonly").arg(file).arg("select 1 from tasks").output();
    looked.is_ok_and(|looked| looked.status.success())
}

/// Whether the keeper has noted that the file shows the whole record.
fn in_step(store: &Path) -> bool {
    sqlite3(store, "select (select seq from cursor where name like 'bridge_file:%') > (select max(seq) from event)") == "1"
}

fn sqlite3(file: &Path, sql: &str) -> String {
    let done = Command::new("sqlite3").args(["-cmd", ".timeout 5000"]).arg(file).arg(sql).output().expect("sqlite3 is installed");
    assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}
