//! What holds for every text and every JSON value.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::labelled::filled;
use super::positives::POSITIVES;
use crate::redact::{Kind, Known, Redactor, WORD_BYTES_MAX, is_plain_word, tokens};

/// Pieces of what is looked for, of what stands around it, and of what is put in its place.
fn piece() -> impl Strategy<Value = String> {
    let positives = (any::<prop::sample::Index>(), any::<u64>()).prop_map(|(at, seed)| filled(at.get(POSITIVES).1, seed).replace(['«', '»'], ""));
    let cut = (any::<prop::sample::Index>(), any::<u64>(), any::<prop::sample::Index>()).prop_map(|(at, seed, end)| {
        let text = filled(at.get(POSITIVES).1, seed).replace(['«', '»'], "");
        text.chars().take(end.index(text.chars().count() + 1)).collect()
    });
    let words = prop::sample::select(vec![
        "password",
        "=",
        ": ",
        "\"",
        "'",
        "\\\"",
        "token",
        " ",
        "\n",
        "@",
        "://",
        ":",
        "-",
        "_",
        ".",
        "+",
        "Bearer ",
        "basic ",
        "key",
        "[redacted:",
        "[redacted:email]",
        "[redacted:nothing]",
        "]",
        "eyJ",
        "sk-",
        "-----BEGIN ",
        "PRIVATE KEY",
        "-----END",
        "4111",
        "555-",
        "DE89",
        "\u{e4}",
        "\u{1f600}",
        "\u{301}",
        "\0",
    ]);
    prop_oneof![positives, cut, words.prop_map(str::to_owned), "\\PC{0,12}", "[a-z0-9@:/=._ -]{0,20}"]
}

fn any_text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any_text().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null)
    ];
    let key = prop_oneof![any_text(), prop::sample::select(vec!["password", "token", "phone", "ssn", "cookie", "name"]).prop_map(str::to_owned)];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        let fields = prop::collection::vec((key.clone(), inner.clone()), 0..5);
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()))
        ]
    })
}

fn knowing() -> Redactor {
    Redactor::all().knowing(Arc::new(Known::new(["a", "hunter2", "p\u{e4}ss word", "redacted", "email"]).unwrap()))
}

#[test]
fn what_is_left_of_a_value_is_looked_at_like_the_whole() {
    let value = serde_json::json!({ "the TOKEN=x": "-----BEGIN RSA PRIVATE KEY-extranjero Y-21" });
    let once = Redactor::all().value(&value);
    assert_eq!(once.value, serde_json::json!({ "the TOKEN=x": "[redacted:secret_field]" }));
    assert_eq!(Redactor::all().value(&once.value).value, once.value);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn twice_is_the_same_as_once_and_the_text_stays_within_its_bound(text in any_text()) {
        for redactor in [Redactor::all(), Redactor::secrets(), knowing()] {
            let once = redactor.text(&text);
            let twice = redactor.text(&once.text);
            prop_assert_eq!(&twice.text, &once.text);
            prop_assert!(twice.found.is_empty(), "{:?}", twice.found);
            let longest = Kind::ALL.map(|kind| kind.mark().len()).into_iter().max().unwrap();
            prop_assert!(once.text.len() <= text.len() * longest + longest, "{} became {}", text.len(), once.text.len());
            prop_assert_eq!(once.found.is_empty(), once.text == text, "{:?}", text);
        }
    }

    #[test]
    fn a_short_word_in_small_letters_needs_no_look(word in "[a-z_]{0,16}") {
        prop_assert!(is_plain_word(&word) && Redactor::all().scan(&word).is_empty());
    }

    #[test]
    fn json_that_is_given_away_becomes_the_same(value in any_value()) {
        prop_assert_eq!(Redactor::all().own_value(value.clone()), Redactor::all().value(&value));
    }

    #[test]
    fn json_keeps_its_shape_and_twice_is_the_same_as_once(value in any_value()) {
        for redactor in [Redactor::all(), knowing()] {
            let once = redactor.value(&value);
            let twice = redactor.value(&once.value);
            prop_assert_eq!(&twice.value, &once.value);
            prop_assert!(twice.found.is_empty(), "{:?}", twice.found);
            prop_assert_eq!(shape(&once.value), shape(&value));
        }
    }

    #[test]
    fn a_known_value_is_in_no_text_however_it_is_written(value in "[!-~]{6,40}", before in any_text(), after in any_text()) {
        let redactor = Redactor::secrets().knowing(Arc::new(Known::new([value.as_str()]).unwrap()));
        let whole = [before.as_str(), &value, &after].concat();
        prop_assert!(!redactor.text(&whole).text.contains(&value));
        let in_json = redactor.text(&Value::from(whole).to_string());
        prop_assert!(!in_json.text.contains(&value) && in_json.found.of(Kind::Known) > 0);
        let encoded = data_encoding::BASE64.encode(["name:", &value].concat().as_bytes());
        let clean = redactor.text(&[before.as_str(), &encoded, &after].join(" ")).text;
        // The first characters speak of the name alone.
        let part = encoded.get(8..16).unwrap_or_default();
        prop_assert!(!clean.contains(part), "{} in {}", encoded, clean);
    }
}

#[test]
fn a_word_that_needs_no_look_is_shorter_than_every_token() {
    assert!(tokens::shortest() > WORD_BYTES_MAX);
    assert!(!is_plain_word("Word") && !is_plain_word("pin 1234") && !is_plain_word(&"a".repeat(WORD_BYTES_MAX + 1)));
}

/// How many values there are, and how they nest.
fn shape(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(shape).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => format!("{{{}}}", fields.len()),
        Value::String(_) | Value::Number(_) => "x".to_owned(),
        Value::Bool(_) | Value::Null => "n".to_owned(),
    }
}
