//! The hot functions, in process: `cargo bench -p bench`.

use std::sync::atomic::{AtomicU64, Ordering};

use deskmate_core::record;
use deskmate_core::redact::Redactor;
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

/// A page of a tool's answer, with a little of everything.
fn answer() -> String {
    "Order 4500123456 of 2026-11-17 went to jane.doe@example.org, tel. +49 30 1234567; IBAN DE89 3704 0044 0532 0130 00.\n\
     The build 1.14.2 took 12.7 s, commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b, see https://example.org/builds/8812 for more.\n"
        .repeat(40)
}

/// Taking secrets alone out of a tool's answer, as for a mount that names no personal data.
#[divan::bench]
fn redact_secrets(bencher: divan::Bencher) {
    let (redactor, text) = (Redactor::secrets(), answer());
    bencher.bench_local(|| redactor.text(&text));
}

/// The same with every kind of personal data, as for a trace.
#[divan::bench]
fn redact_all(bencher: divan::Bencher) {
    let (redactor, text) = (Redactor::all(), answer());
    bencher.bench_local(|| redactor.text(&text));
}
