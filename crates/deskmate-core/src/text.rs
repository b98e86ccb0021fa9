//! Texts as they cross the desk's border: checked on the way in, one spelling on the way out.

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// Refuses what no text field may hold: NUL, and more than its bound.
pub fn check_text(field: &str, text: &str, bytes_max: usize) -> Result<()> {
    if text.contains('\0') {
        return Err(Error::invalid(field, "must not contain the NUL character"));
    }
    if text.len() > bytes_max {
        return Err(Error::invalid(field, format!("is {} bytes long; at most {bytes_max} are allowed", text.len())));
    }
    Ok(())
}

/// Microseconds since 1970 as RFC 3339 in UTC.
pub fn format_time(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |time| format!("{time:.6}"))
}

/// RFC 3339 as microseconds since 1970.
pub fn parse_time(field: &str, text: &str) -> Result<i64> {
    text.parse::<Timestamp>().map(Timestamp::as_microsecond).map_err(|_| Error::invalid(field, "must be a time such as 2026-11-15T09:30:00Z"))
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// SHA-256 over the canonical JSON (RFC 8785) of a value.
pub fn digest<T: Serialize>(value: &T) -> Result<[u8; 32]> {
    Ok(Sha256::digest(canonical("", value)?).into())
}

/// A cell of a CSV table that no table program takes for a formula.
pub(crate) fn csv_cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// A value as canonical JSON (RFC 8785); `field` names it where it has none.
pub(crate) fn canonical<T: Serialize>(field: &str, value: &T) -> Result<String> {
    let value = serde_json::to_value(value).map_err(|error| not_canonical(field, &error))?;
    canonical_value(field, &value)
}

/// Like [`canonical`], of what is JSON already.
pub(crate) fn canonical_value(field: &str, value: &Value) -> Result<String> {
    let text = if is_written_canonically(value) { serde_json::to_string(value) } else { serde_json_canonicalizer::to_string(value) };
    text.map_err(|error| not_canonical(field, &error))
}

fn not_canonical(field: &str, error: &serde_json::Error) -> Error {
    Error::invalid(field, format!("has no canonical form: {error}"))
}

/// Whether plain writing gives the canonical form, which is so for nearly everything and several times faster: numbers
/// are small integers, and the order of keys, by bytes here and by UTF-16 there, is the same for ASCII.
fn is_written_canonically(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.as_i64().is_some_and(|number| number.unsigned_abs() < 1 << 53),
        Value::Array(items) => items.iter().all(is_written_canonically),
        Value::Object(fields) => fields.iter().all(|(name, value)| name.is_ascii() && is_written_canonically(value)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::canonical_value;

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(|number| Value::from(number >> 12)),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner.clone()), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
                prop::collection::vec(("[ -~]{0,6}", inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_short_way_writes_what_the_long_one_does(value in json_value()) {
            prop_assert_eq!(canonical_value("", &value).unwrap(), serde_json_canonicalizer::to_string(&value).unwrap());
        }
    }

    #[test]
    fn keys_and_numbers_are_as_the_standard_says() {
        let value = json!({ "\u{e000}": 1, "\u{1f600}": 2, "z": 1e30, "a": -0.0, "n": 9_007_199_254_740_993_i64 });
        assert_eq!(canonical_value("", &value).unwrap(), "{\"a\":0,\"n\":9007199254740992,\"z\":1e+30,\"\u{1f600}\":2,\"\u{e000}\":1}");
    }
}
