//! Every parser that meets bytes from outside, given whatever chance comes up with: no panic, and what was written is
//! read back. `PROPTEST_CASES=100000 cargo test -p testkit --test suite fuzz::` makes a longer run.

use deskmate_core::call::{Page, PageIn, parse_strict};
use deskmate_core::identity::{Secret, SecretKind};
use deskmate_core::record::{BundleHeader, BundleLine, Keyring, SigningKey, verify_bundle};
use deskmate_core::{Code, parse_time};
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::{Backend, TestDesk};

/// JSON of any shape that the strict reader takes.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1_i64 << 53)..=1 << 53).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A text with a few bytes changed.
fn damaged(text: String) -> impl Strategy<Value = Vec<u8>> {
    let length = text.len();
    prop::collection::vec((0..length, any::<u8>()), 1..6).prop_map(move |changes| {
        let mut bytes = text.clone().into_bytes();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes
    })
}

fn key() -> SigningKey {
    SigningKey::parse(&SigningKey::generate("deskmate/fuzz", &[9; 32])).expect("a key")
}

fn checkpoint() -> String {
    key().checkpoint(0, tlog_root()).expect("a checkpoint")
}

fn tlog_root() -> tlog_tiles::Hash {
    tlog_tiles::EMPTY_HASH
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn strict_json_takes_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        drop(parse_strict(&bytes));
    }

    #[test]
    fn strict_json_reads_back_what_was_written(value in any_json()) {
        prop_assert_eq!(parse_strict(value.to_string().as_bytes()).expect("it is JSON"), value);
    }

    #[test]
    fn secrets_take_any_text(text in ".{0,100}", prefix in "(dma_|dmp_|dms_|dmi_|dmc_)?") {
        let text = [prefix, text].concat();
        prop_assert!(Secret::parse(&text).is_err());
    }

    #[test]
    fn secrets_are_read_back_and_a_changed_letter_is_noticed(bits in any::<[u8; 32]>(), at in 4_usize..55) {
        let secret = Secret::new(SecretKind::Agent, &bits);
        let text = secret.reveal().to_owned();
        prop_assert_eq!(Secret::parse(&text).expect("its own text").hash(), secret.hash());
        let mut changed = text.clone().into_bytes();
        let at = at.min(changed.len() - 1);
        changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
        prop_assert!(Secret::parse(&String::from_utf8(changed).expect("text")).is_err());
    }

    #[test]
    fn notes_take_any_text(text in "(?s).{0,300}") {
        let keys = Keyring::new(vec![key().public().to_owned()]);
        prop_assert!(keys.open(&text).is_err());
    }

    #[test]
    fn a_damaged_note_is_never_believed_for_another_tree(bytes in damaged(checkpoint())) {
        let keys = Keyring::new(vec![key().public().to_owned()]);
        if let Ok(text) = String::from_utf8(bytes)
            && let Ok(opened) = keys.open(&text)
        {
            prop_assert_eq!((opened.size(), *opened.hash()), (0, tlog_root()));
        }
    }

    #[test]
    fn keys_take_any_text(text in "(?s).{0,200}") {
        drop(SigningKey::parse(&text));
        drop(Keyring::new(vec![text]).open(&checkpoint()));
    }

    #[test]
    fn bundles_take_any_lines(lines in prop::collection::vec("(?s).{0,200}", 0..6), body in any_json(), salt in ".{0,20}") {
        drop(verify_bundle(lines.clone().into_iter().map(Ok), None, &[]));
        let header = BundleHeader::new(1, vec![key().public().to_owned()], checkpoint());
        let line = BundleLine { body: body.to_string(), salt: Some(salt), payload: lines.first().cloned() };
        let actor = json!({ "kind": "agent", "id": "code", "verified": true });
        let event = json!({
            "v": 1, "id": "x", "at": 1, "actor": actor, "surface": "mcp", "kind": "x", "subject": "x", "audience": [], "facts": { "x": body }, "payload": null
        });
        let readable = BundleLine { body: event.to_string(), salt: None, payload: None };
        for line in [line, readable] {
            let bundle = [json!(header).to_string(), json!(line).to_string()];
            if let Ok(report) = verify_bundle(bundle.into_iter().map(Ok), None, &[]) {
                prop_assert!(!report.sound, "a made-up bundle was found sound");
            }
        }
    }

    #[test]
    fn cursors_take_any_text(text in ".{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        drop(PageIn::new(None, Some(&text)));
        drop(PageIn::new(None, Some(&data_encoding::BASE64URL_NOPAD.encode(&bytes))));
    }

    #[test]
    fn cursors_are_read_back(time in any::<i64>(), id in "[^\0]{0,40}") {
        let page = PageIn { limit: 1, after: None };
        let cursor = Page::cut(vec![0, 1], &page, |_| (time, id.clone())).next_cursor.expect("there is more");
        prop_assert_eq!(PageIn::new(None, Some(&cursor)).expect("its own cursor").after, Some((time, id)));
    }

    #[test]
    fn times_take_any_text(text in ".{0,40}") {
        drop(parse_time("time", &text));
    }
}

/// A third of the usual number in the ordinary suite.
#[expect(clippy::disallowed_methods, reason = "a longer run is asked for in the environment")]
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(96)
}

#[test]
fn paths_and_globs_take_any_text() {
    let desk = TestDesk::new(Backend::Sqlite);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() });
    let path = prop_oneof!["(?s).{0,60}", r"[\[\]{}*?!,/\\.a-c-]{0,30}", "(\\*\\*/|\\{a,|\\[!){1,40}"];
    let ran = runner.run(&(prop::collection::vec(path, 1..4), any::<bool>()), |(paths, list)| {
        let (operation, input) = if list {
            ("bridge_list_reservations", json!({ "path": paths[0] }))
        } else {
            ("bridge_reserve_paths", json!({ "paths": paths, "mode": "shared" }))
        };
        if let Err(error) = desk.agent("code", operation, input) {
            prop_assert!(matches!(error.code, Code::Invalid | Code::Conflict | Code::Limited), "{error:?}");
        }
        Ok(())
    });
    ran.expect("no path breaks anything");
}
