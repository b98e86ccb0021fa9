//! Texts that somebody made to get through, or to break what they stand in.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::Code;
use crate::limits::INPUT_DEPTH_MAX;
use crate::redact::{self, Kind, Known, Redactor};

#[test]
fn json_is_looked_into_under_its_keys() {
    let given = json!({
        "user": "jane", "password": "correct horse", "pin": 12, "user_pin": 1234, "api_key": "abcDEF123456", "token_count": 99, "max_tokens": 4096, "tokens": ["the", "cat"],
        "next_page_token": "CAUQAA1b2c3d4e5f", "author": "x1y2z3a4b5", "phone": "030 1234567", "mobile": 4_915_112_345_678_i64, "ssn": 219_099_999, "order": 219_099_998,
        "card": 4_111_111_111_111_111_i64, "enabled": true, "secret": null, "access_tokens": ["a1b2c3d4e5f6", "word"], "nested": { "clientSecret": "Zx9Yw8Vu7Ts6" },
        "password_policy": { "min_length": 12 }, "cookie": "sid=abcdef123", "note": "mail jane@example.org"
    });
    let clean = redact::value(&given).value;
    let gone = ["password", "user_pin", "api_key", "phone", "mobile", "ssn", "card", "cookie"];
    for key in gone {
        assert!(clean[key].as_str().is_some_and(|text| text.starts_with("[redacted:")), "{key}: {}", clean[key]);
    }
    assert_eq!(clean["access_tokens"], json!(["[redacted:secret_field]", "word"]));
    assert_eq!(clean["nested"]["clientSecret"], "[redacted:secret_field]");
    assert_eq!(clean["note"], "mail [redacted:email]");
    for key in ["user", "pin", "token_count", "max_tokens", "tokens", "next_page_token", "author", "order", "enabled", "secret", "password_policy"] {
        assert_eq!(clean[key], given[key], "{key}");
    }
}

#[test]
fn keys_are_looked_at_too_and_stay_apart() {
    let clean = redact::value(&json!({ "a@example.org": 1, "b@example.org": 2, "c@example.org": 3, "[redacted:email]": 0 })).value;
    let mut keys: Vec<&String> = clean.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["[redacted:email]", "[redacted:email] 2", "[redacted:email] 3", "[redacted:email] 4"]);
}

#[test]
fn what_is_too_deep_is_taken_out_unseen() {
    let nested =
        |depth: usize| (0..depth).fold(json!("hunter2 is at the bottom"), |inner, at| if at % 2 == 0 { json!([inner]) } else { json!({ "x": inner }) });
    let within = redact::value(&nested(INPUT_DEPTH_MAX));
    assert!(within.found.is_empty() && within.value.to_string().contains("hunter2"));
    let beyond = redact::value(&nested(INPUT_DEPTH_MAX + 1));
    assert_eq!((beyond.found.of(Kind::TooDeep), beyond.value.to_string().contains("hunter2")), (1, false));
    // Far beyond, nothing overflows either. Such a value cannot be dropped in the usual way.
    let mut deep = Value::Null;
    for _ in 0..200_000 {
        deep = Value::Array(vec![deep]);
    }
    assert_eq!(redact::value(&deep).found.of(Kind::TooDeep), 1);
    while let Value::Array(mut items) = deep {
        deep = items.pop().unwrap_or_default();
    }
}

#[test]
fn a_forged_mark_hides_nothing() {
    let known = Redactor::secrets().knowing(Arc::new(Known::new(["hunterpass"]).unwrap()));
    assert_eq!(known.text("[redacted:hunterpass]").text, "[redacted:[redacted:known]]");
    assert_eq!(known.text("[redacted:email]hunterpass").text, "[redacted:email][redacted:known]");
    let under = redact::value(&json!({ "password": "[redacted:email] hunter2" }));
    assert_eq!(under.value, json!({ "password": "[redacted:secret_field]" }));
}

#[test]
fn each_longer_line_of_a_known_value_goes_by_itself() {
    let key = "-----BEGIN KEY-----\r\n  quoo5Ahl2Ahb\r\nab\r\n-----END KEY-----\r\n";
    let redactor = Redactor::secrets().knowing(Arc::new(Known::new([key]).unwrap()));
    let encoded = data_encoding::BASE64.encode(b"quoo5Ahl2Ahb");
    for line in ["quoo5Ahl2Ahb", "it is quoo5Ahl2Ahb", &encoded, "-----END KEY-----"] {
        let clean = redactor.text(line);
        assert!(clean.found.of(Kind::Known) == 1 && !clean.text.contains("quoo") && !clean.text.contains(&encoded), "{line}: {}", clean.text);
    }
    assert_eq!(redactor.text("a tab is short").text, "a tab is short");
    assert_eq!(redactor.text(&format!("x{key}y")).text, "x[redacted:known]y");
}

#[test]
fn known_values_go_in_every_form() {
    let secret = "p\u{e4}ss/w+rd&\"7";
    let redactor = Redactor::secrets().knowing(Arc::new(Known::new([secret, ""]).unwrap()));
    let forms = [
        secret.to_owned(),
        serde_json::Value::from(secret).to_string(),
        url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
        "p%C3%A4ss%2Fw%2Brd%26%227".to_owned(),
        "p%c3%a4ss%2fw%2brd%26%227".to_owned(),
        "p\u{e4}ss/w+rd&amp;&quot;7".to_owned(),
        data_encoding::HEXLOWER.encode(secret.as_bytes()),
        data_encoding::HEXUPPER.encode(secret.as_bytes()),
        data_encoding::BASE64.encode(secret.as_bytes()),
        data_encoding::BASE64URL_NOPAD.encode(secret.as_bytes()),
        data_encoding::BASE64.encode(format!("u:{secret}").as_bytes()),
        data_encoding::BASE64.encode(format!("us:{secret}!").as_bytes()),
        data_encoding::BASE64URL.encode(format!("use:{secret}!!").as_bytes()),
    ];
    for form in forms {
        let clean = redactor.text(&format!("it says {form} there"));
        assert!(clean.found.of(Kind::Known) >= 1, "{form}: {}", clean.text);
        assert!(clean.text.len() < "it says  there".len() + 30, "{form}: {}", clean.text);
    }
    let number = Redactor::secrets().knowing(Arc::new(Known::new(["271828"]).unwrap()));
    assert_eq!(number.value(&json!({ "x": [271_828, 3] })).value, json!({ "x": ["[redacted:known]", 3] }));
}

#[test]
fn personal_data_can_be_switched_by_name_and_secrets_cannot() {
    let text = "jane@example.org 4111111111111111 password=hunter2";
    assert_eq!(Redactor::secrets().text(text).text, "jane@example.org 4111111111111111 password=[redacted:secret_assignment]");
    assert_eq!(Redactor::named(["email"]).unwrap().text(text).text, "[redacted:email] 4111111111111111 password=[redacted:secret_assignment]");
    assert_eq!(Redactor::named(["card"]).unwrap().text(text).text, "jane@example.org [redacted:card] password=[redacted:secret_assignment]");
    for name in ["jwt", "mail", ""] {
        let error = Redactor::named([name]).err().unwrap();
        assert_eq!(error.code, Code::Invalid);
        assert!(error.message.contains("email, phone"), "{error}");
    }
    let phone_key = json!({ "phone": "030 1234567" });
    assert_eq!(Redactor::secrets().value(&phone_key).value, phone_key);
}

#[test]
fn counts_are_told_by_name() {
    let found = redact::text("a@example.org b@example.org password=hunter2").found;
    assert_eq!((found.of(Kind::Email), found.total()), (2, 3));
    assert_eq!(serde_json::to_value(&found).unwrap(), json!({ "email": 2, "secret_assignment": 1 }));
}

#[test]
fn a_value_that_is_longer_than_what_is_looked_at_goes_whole() {
    let long = "aB3xQ7mZk9Lw".repeat(2_000);
    for text in [
        format!("password={long}"),
        format!("token: \"{long}\""),
        format!("Bearer {long}"),
        format!("x Authorization: Bearer {long}"),
        format!("ghp_{long}"),
        format!("Authorization: Token {long}"),
        format!("Authorization: Digest a=b, c={long}"),
    ] {
        let clean = redact::text(&text).text;
        assert!(clean.len() < 80 && !clean.contains("aB3x"), "{} became {}", text.get(..20).unwrap(), clean.len());
    }
}
