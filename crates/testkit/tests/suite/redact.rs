//! Texts that somebody made to slow the desk down: the redactor takes the same time for each byte of them.

use std::time::{Duration, Instant};

use deskmate_core::redact;

/// Texts that make careless matching quadratic.
fn worst() -> Vec<(&'static str, String)> {
    let size = 1 << 18;
    let of = |piece: &str| piece.repeat(size / piece.len());
    vec![
        ("digits", of("1")),
        ("groups", of("4111 ")),
        ("at", of("@")),
        ("letters and at", of("a@")),
        ("dots", of("a.")),
        ("beginnings", of("eyJ.")),
        ("more beginnings", of("-sk-ant-")),
        ("points", format!("{}{}", "ya29.".repeat(size / 10), ".".repeat(size / 2))),
        ("armour", of("-----BEGIN PRIVATE KEY-----")),
        ("names", of("key")),
        ("names with dots", of("password.")),
        ("assignments", of("password=")),
        ("spaced assignments", of("password = ")),
        ("urls", of("://a:")),
        ("urls with at", of("://a:b@")),
        ("bearers", of("bearer ")),
        ("headers", of("authorization: token a=b,c ")),
        ("basics", of("basic AAAA")),
        ("quotes", of("password=\"")),
        ("marks", of("[redacted:")),
        ("real marks", of("[redacted:email]")),
        ("accounts", of("DE89 ")),
        ("letters", of("aB3")),
        ("wide", of("\u{1f600}")),
        ("nested", of("password=a@b.co;")),
    ]
}

#[test]
fn no_text_takes_more_than_linear_time() {
    let plain = "The quick brown fox jumps over the lazy dog, and nobody knows why. ".repeat(4_000);
    let time = |text: &str| {
        let started = Instant::now();
        let clean = redact::text(text);
        (started.elapsed(), clean)
    };
    let (usual, clean) = time(&plain);
    println!("{:24} {usual:?}", "prose");
    assert_eq!(clean.text, plain);
    for (name, text) in worst() {
        let half = time(text.get(..text.floor_char_boundary(text.len() / 2)).unwrap()).0;
        let (whole, _) = time(&text);
        println!("{name:24} {whole:?}, half of it {half:?}");
        // Twice the text may take four times as long on a busy machine; a quadratic step at this size takes minutes.
        assert!(whole < Duration::from_secs(20), "{name}: {whole:?}");
    }
}
