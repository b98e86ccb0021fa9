//! The hot functions, in process: `cargo bench -p bench`.

use std::sync::atomic::{AtomicU64, Ordering};

use deskmate_core::record;
use serde_json::json;
use testkit::{Backend, TestDesk};

fn main() {
    divan::main();
}

/// A desk with some history.
fn desk(messages: u64) -> TestDesk {
    let desk = TestDesk::new(Backend::Sqlite);
    for number in 0..messages {
        desk.agent("code", "bridge_send_message", json!({ "to": format!("reader-{}", number % 10), "content": "x".repeat(200) })).expect("it is sent");
    }
    desk
}

/// Authenticate, authorise, send, append, seal and commit, one call at a time.
#[divan::bench]
fn send(bencher: divan::Bencher) {
    let desk = desk(0);
    let next = AtomicU64::new(0);
    bencher.bench_local(|| {
        let to = format!("reader-{}", next.fetch_add(1, Ordering::Relaxed) % 100);
        desk.agent("code", "bridge_send_message", json!({ "to": to, "content": "hello" })).expect("it is sent")
    });
}

/// Authenticate, authorise and read a page of 50.
#[divan::bench]
fn read(bencher: divan::Bencher) {
    let desk = desk(600);
    bencher.bench_local(|| desk.agent("reader-1", "bridge_read_messages", json!({})).expect("it is read"));
}

/// An inclusion proof, with the checkpoint opened.
#[divan::bench]
fn prove(bencher: divan::Bencher) {
    let desk = desk(1_000);
    let next = AtomicU64::new(0);
    bencher.bench_local(|| {
        let (seq, keys) = (next.fetch_add(379, Ordering::Relaxed) % 1_000, desk.desk.keys.clone());
        desk.desk.db.read_blocking(move |tx| record::prove(tx, seq, &keys)).expect("it is proved")
    });
}

/// Deriving a record of a thousand events again.
#[divan::bench]
fn verify_1000(bencher: divan::Bencher) {
    let desk = desk(1_000);
    bencher.bench_local(|| assert!(desk.verify().sound));
}
