//! Changes that are told in words instead of written field by field: rules about fields cannot see what they would do.

use serde_json::Value;

/// Keys that stand for the change itself and not for a field of it, as `raw` does for a text that is no JSON. What is
/// told under one of these changes who knows what; other fields beside it do not make it any clearer.
const ABOUT_THE_CHANGE: [&str; 12] = ["", "raw", "change", "changes", "proposed_change", "update", "updates", "edit", "edits", "patch", "diff", "operations"];

/// Whether a key stands for the change itself, however it is spelt.
pub(super) fn is_about_the_change(key: &str) -> bool {
    let key = key.trim();
    ABOUT_THE_CHANGE.iter().any(|word| key.eq_ignore_ascii_case(word))
}

/// Whether a value is told in words: a text, or a list with one in it. JSON in a text is no words; what its tables hold
/// is looked at where they are taken apart.
pub(super) fn tells(value: &Value) -> bool {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(_)) => false,
            Ok(list @ Value::Array(_)) => tells(&list),
            _ => true,
        },
        Value::Array(list) => list.iter().any(tells),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}
