//! What durability costs at least, and what a durable call costs beyond it: both measured in turns in one run, so that
//! they meet the same disk.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use crate::http::Connection;
use crate::load::{ms, proposal, times};
use crate::server::{Server, binary};

/// The p50 of both in milliseconds.
pub struct Floor {
    /// A 4 kB append and its fdatasync.
    pub disk: f64,
    /// A durable call over HTTP.
    pub call: f64,
}

impl Floor {
    /// What the call costs beyond the disk.
    pub fn beyond(&self) -> f64 {
        self.call - self.disk
    }
}

/// Measures `rounds` of each: a send, or with `propose` a proposal.
pub fn run(program: Option<&Path>, rounds: u32, propose: bool) -> Floor {
    let home = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(&binary(program), home.path(), None);
    let mut file = OpenOptions::new().create(true).append(true).open(home.path().join("floor")).expect("a file");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut connection = Connection::open(&server.url).await.expect("the server answers");
        let (mut disk, mut call) = (times(), times());
        let body = format!(r#"{{"to":"cowork","content":"{}"}}"#, "x".repeat(200));
        for round in 0..rounds + 50 {
            let started = Instant::now();
            file.write_all(&[7; 4096]).and_then(|()| file.sync_data()).expect("the disk takes it");
            let (agent, proposed) = proposal(0, round as usize);
            let synced = Instant::now();
            let answered =
                if propose { connection.call("cowork_propose", &agent, &proposed).await } else { connection.call("bridge_send_message", "code", &body).await };
            let (status, _) = answered.expect("the server answers");
            let answered = Instant::now();
            assert_eq!(status, 200, "{}", connection.json());
            if round >= 50 {
                disk.saturating_record(micros(synced - started));
                call.saturating_record(micros(answered - synced));
            }
        }
        Floor { disk: ms(disk.value_at_quantile(0.5)), call: ms(call.value_at_quantile(0.5)) }
    })
}

/// A duration in whole microseconds.
pub fn micros(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
