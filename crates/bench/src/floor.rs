//! What durability costs at least, and what a durable call costs beyond it: both measured in turns in one run, so that
//! they meet the same disk.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use crate::http::Connection;
use crate::load::{ms, times};
use crate::server::{Server, binary};

/// The p50 of both in milliseconds.
pub struct Floor {
    /// A 4 kB append and its fdatasync.
    pub disk: f64,
    /// A durable send over HTTP.
    pub send: f64,
}

impl Floor {
    /// What the send costs beyond the disk.
    pub fn beyond(&self) -> f64 {
        self.send - self.disk
    }
}

/// Measures `rounds` of each.
pub fn run(program: Option<&Path>, rounds: u32) -> Floor {
    let home = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(&binary(program), home.path(), None);
    let mut file = OpenOptions::new().create(true).append(true).open(home.path().join("floor")).expect("a file");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut connection = Connection::open(&server.url).await.expect("the server answers");
        let (mut disk, mut send) = (times(), times());
        let body = format!(r#"{{"to":"cowork","content":"{}"}}"#, "x".repeat(200));
        for round in 0..rounds + 50 {
            let started = Instant::now();
            file.write_all(&[7; 4096]).and_then(|()| file.sync_data()).expect("the disk takes it");
            let synced = Instant::now();
            let (status, _) = connection.call("bridge_send_message", "code", &body).await.expect("the server answers");
            let answered = Instant::now();
            assert_eq!(status, 200, "{}", connection.json());
            if round >= 50 {
                disk.saturating_record(micros(synced - started));
                send.saturating_record(micros(answered - synced));
            }
        }
        Floor { disk: ms(disk.value_at_quantile(0.5)), send: ms(send.value_at_quantile(0.5)) }
    })
}

/// A duration in whole microseconds.
pub fn micros(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
