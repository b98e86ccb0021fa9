//! What is in force as text that people edit and compare: YAML, with the keys in the order in which they are read.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

/// The keys that come first, in this order; then come the others by name, and the cases at last.
const FIRST: [&str; 22] = [
    "id",
    "name",
    "field",
    "constraint",
    "agent_id",
    "domain",
    "policy_id",
    "description",
    "category",
    "framework",
    "match",
    "when",
    "effect",
    "policies",
    "rules",
    "mappings",
    "policy_mode",
    "trust",
    "authority",
    "feedback",
    "handoff",
    "governance",
];
const LAST: [&str; 2] = ["domains", "tests"];

fn rank(key: &str) -> usize {
    let place = |keys: &[&str]| keys.iter().position(|one| *one == key);
    place(&FIRST).or_else(|| place(&LAST).map(|at| FIRST.len() + 1 + at)).unwrap_or(FIRST.len())
}

struct InOrder<'v>(&'v Value);

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_by_key(|(key, _)| (rank(key), key.as_str()));
                let mut map = serializer.serialize_map(Some(sorted.len()))?;
                for (key, value) in sorted {
                    map.serialize_entry(key, &InOrder(value))?;
                }
                map.end()
            }
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&InOrder(item))?;
                }
                list.end()
            }
            other => other.serialize(serializer),
        }
    }
}

/// A value as YAML. Where that would not be read as the same again it is JSON, which the desk reads as well.
pub(super) fn yaml(value: &Value) -> String {
    let json = || serde_json::to_string_pretty(value).unwrap_or_default();
    match serde_saphyr::to_string(&InOrder(value)) {
        Ok(text) if serde_saphyr::from_str::<Value>(&text).is_ok_and(|read| read == *value) => text,
        _ => json(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_come_in_the_order_in_which_they_are_read() {
        let policy = json!({ "tests": [], "rules": [{ "reason": "no", "constraint": "readonly", "field": "owner" }], "description": "d", "id": "a" });
        let text = yaml(&policy);
        let places: Vec<_> = ["id:", "description:", "rules:", "field:", "constraint:", "reason:", "tests:"].map(|key| text.find(key)).to_vec();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
    }

    #[test]
    fn what_yaml_would_take_for_something_else_comes_back_the_same() {
        for text in [
            "yes",
            "no",
            "1.0",
            "2026-01-01",
            "~",
            "null",
            "- a",
            "a: b",
            "#c",
            "\u{202e}x",
            "a\nb\n",
            " lead",
            "*",
            "&a",
            "!t",
            "'",
            "\"",
            "<b>",
            "0x1f",
            "1_000",
            "",
        ] {
            let value = json!({ "policies": [{ "id": "a", "description": text, text: 1.5 }] });
            let written = yaml(&value);
            assert_eq!(serde_saphyr::from_str::<Value>(&written).unwrap(), value, "{written}");
        }
    }
}
