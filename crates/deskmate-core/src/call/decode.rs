//! JSON from outside, read more strictly than JSON asks: no duplicate keys, no integers beyond ±2^53, bounded depth.
//! What is digested and what is sent on are then the same.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::limits::{INPUT_BYTES_MAX, INPUT_DEPTH_MAX};
use crate::{Error, Result};

/// The largest integer that every JSON reader agrees on.
const INTEGER_MAX: u64 = 1 << 53;

/// Reads a JSON text.
pub fn parse_strict(text: &[u8]) -> Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let read = Strict { depth: 0 }.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| Error::invalid("input", error.to_string()))
}

/// Checks a value that was read by somebody else: depth and integers. Duplicate keys are gone by then.
pub(crate) fn check_value(value: &Value, depth: usize) -> Result<()> {
    if depth > INPUT_DEPTH_MAX {
        return Err(Error::invalid("input", format!("is nested more than {INPUT_DEPTH_MAX} deep")));
    }
    match value {
        Value::Number(number) if !exact(number) => Err(Error::invalid("input", format!("the integer {number} is beyond ±2^53"))),
        Value::String(text) if text.contains('\0') => Err(Error::invalid("input", "a text contains the NUL character")),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, depth + 1)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, field)| {
            if key.contains('\0') {
                return Err(Error::invalid("input", "a key contains the NUL character"));
            }
            check_value(field, depth + 1)
        }),
        _ => Ok(()),
    }
}

/// Refuses an input that is larger than any surface should take.
pub(crate) fn check_size(value: &Value) -> Result<()> {
    if bytes_of(value) > INPUT_BYTES_MAX {
        return Err(Error::invalid("input", format!("is larger than {INPUT_BYTES_MAX} bytes")));
    }
    Ok(())
}

/// How long a value is as JSON, at the least.
pub(crate) fn bytes_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| bytes_of(item) + 1).sum::<usize>() + 1,
        Value::Object(fields) => fields.iter().map(|(key, field)| key.len() + bytes_of(field) + 4).sum::<usize>() + 1,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

fn exact(number: &Number) -> bool {
    number.as_u64().is_none_or(|number| number <= INTEGER_MAX) && number.as_i64().is_none_or(|number| number.unsigned_abs() <= INTEGER_MAX)
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Value, D::Error> {
        if self.depth > INPUT_DEPTH_MAX {
            return Err(D::Error::custom(format!("nested more than {INPUT_DEPTH_MAX} deep")));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, v: bool) -> std::result::Result<Value, E> {
        Ok(Value::Bool(v))
    }
    fn visit_i64<E: serde::de::Error>(self, v: i64) -> std::result::Result<Value, E> {
        if v.unsigned_abs() > INTEGER_MAX {
            return Err(E::custom(format!("the integer {v} is beyond ±2^53")));
        }
        Ok(Value::from(v))
    }
    fn visit_u64<E: serde::de::Error>(self, v: u64) -> std::result::Result<Value, E> {
        if v > INTEGER_MAX {
            return Err(E::custom(format!("the integer {v} is beyond ±2^53")));
        }
        Ok(Value::from(v))
    }
    fn visit_f64<E: serde::de::Error>(self, v: f64) -> std::result::Result<Value, E> {
        Number::from_f64(v).map(Value::Number).ok_or_else(|| E::custom("not a finite number"))
    }
    fn visit_str<E>(self, v: &str) -> std::result::Result<Value, E> {
        Ok(Value::from(v))
    }
    fn visit_string<E>(self, v: String) -> std::result::Result<Value, E> {
        Ok(Value::String(v))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Strict { depth: self.depth + 1 })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(Strict { depth: self.depth + 1 })?;
            if fields.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} appears twice")));
            }
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}
