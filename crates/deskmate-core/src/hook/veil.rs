//! What of a tool's input is kept and shown: long texts are cut, and secrets hidden, which `redact` knows.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::hex;
use crate::redact;

/// Texts that are longer are cut, and known by what they begin with, their length and their digest.
const TEXT_BYTES_MAX: usize = 8 * 1024;
/// How much of a longer one is shown.
const SHOWN_BYTES: usize = 2 * 1024;
/// What stands in the place of what is a secret as a whole.
pub(super) const HIDDEN: &str = "[redacted:secret_field]";

/// An input as it is kept: without secrets that show as such, and without long texts.
pub(super) fn kept(input: &Value) -> Value {
    match input {
        Value::String(text) => text_kept(text),
        Value::Array(list) => list.iter().map(kept).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), if redact::names_a_secret(name) && !value.is_object() { json!(HIDDEN) } else { kept(value) }))
            .collect(),
        other => other.clone(),
    }
}

/// A text without secrets.
pub(super) fn hidden(text: &str) -> String {
    redact::line(text)
}

fn text_kept(text: &str) -> Value {
    if text.len() <= TEXT_BYTES_MAX {
        return Value::String(hidden(text));
    }
    let mut end = SHOWN_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    json!({ "begins": hidden(text.get(..end).unwrap_or_default()), "bytes": text.len(), "sha256": hex(&Sha256::digest(text.as_bytes())) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_long_texts_are_not_kept() {
        let input = json!({
            "command": "API_TOKEN=abcdef12 curl -H 'Authorization: Bearer xyz12345' https://a:hunter22@example.org --password hunter22",
            "password": "hunter22", "author": "ada", "page_token": "efgh5678", "content": "x".repeat(9_000),
        });
        let kept = kept(&input).to_string();
        for secret in ["abcdef12", "xyz12345", "hunter22"] {
            assert!(!kept.contains(secret), "{secret}: {kept}");
        }
        assert!(kept.contains("ada") && kept.contains("efgh5678") && kept.contains("curl") && kept.contains("9000") && kept.len() < 4_000, "{kept}");
    }
}
