//! JSON: every string, key and number, as deep as any input may be. What lies deeper is taken out unseen.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::keys::{Class, class_of, is_placeholder, looks_random};
use super::kind::{Found, Kind};
use super::personal;
use super::{MARK, Redactor};
use crate::limits::INPUT_DEPTH_MAX;

/// What the key above a value says about it.
#[derive(Clone, Copy, Default)]
struct Above {
    classes: [Option<Class>; 2],
    personal: [Option<Kind>; 2],
}

impl Above {
    /// What a key says, and what is left of it: looking again at what came out must find nothing new.
    fn of(redactor: &Redactor, key: &str, clean: &str) -> Self {
        let says = |key: &str| {
            let key = without_marks(key);
            (class_of(&key), personal::announced(&key).filter(|kind| redactor.has(*kind)))
        };
        let (class, personal) = says(key);
        // Hardly any key has something in it.
        let (class_left, personal_left) = if key == clean { (None, None) } else { says(clean) };
        Self { classes: [class, class_left], personal: [personal, personal_left] }
    }

    fn is_secret(self, text: &str) -> bool {
        self.classes.into_iter().flatten().any(|class| match class {
            Class::Password => !is_placeholder(text),
            Class::Token => looks_random(text) || (text.len() >= 16 && text.bytes().all(|byte| byte.is_ascii_digit())),
            Class::Cookie => text.len() >= 8 && text.contains('='),
        })
    }
}

/// The name of a kind in a key says nothing about what stands under it.
fn without_marks(key: &str) -> Cow<'_, str> {
    if !key.contains(MARK) {
        return Cow::Borrowed(key);
    }
    Kind::ALL.iter().fold(Cow::Borrowed(key), |key, kind| Cow::Owned(key.replace(&kind.mark(), " ")))
}

pub(super) fn clean(redactor: &Redactor, value: &Value, found: &mut Found) -> Value {
    walk(redactor, value, Above::default(), 0, found)
}

fn walk(redactor: &Redactor, value: &Value, above: Above, depth: usize, found: &mut Found) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::String(text) => Value::String(leaf(redactor, text, above, found)),
        Value::Number(number) => {
            let text = number.to_string();
            let clean = leaf(redactor, &text, above, found);
            if clean == text { value.clone() } else { Value::String(clean) }
        }
        Value::Array(_) | Value::Object(_) if depth >= INPUT_DEPTH_MAX => {
            found.add(Kind::TooDeep);
            Value::String(Kind::TooDeep.mark())
        }
        Value::Array(items) => items.iter().map(|item| walk(redactor, item, above, depth + 1, found)).collect(),
        Value::Object(fields) => {
            let (mut clean, mut taken) = (Map::new(), BTreeMap::new());
            for (name, value) in fields {
                let key = redactor.clean(name, found);
                let above = Above::of(redactor, name, &key);
                let value = walk(redactor, value, above, depth + 1, found);
                let key = unused(key, &clean, &mut taken);
                clean.insert(key, value);
            }
            Value::Object(clean)
        }
    }
}

/// Two keys that read alike without what was taken out of them stay two.
fn unused(key: String, clean: &Map<String, Value>, taken: &mut BTreeMap<String, u64>) -> String {
    if !clean.contains_key(&key) {
        return key;
    }
    let number = taken.entry(key.clone()).or_insert(1);
    loop {
        *number += 1;
        let numbered = format!("{key} {number}");
        if !clean.contains_key(&numbered) {
            return numbered;
        }
    }
}

fn leaf(redactor: &Redactor, text: &str, above: Above, found: &mut Found) -> String {
    let mut within = Found::default();
    let clean = redactor.clean(text, &mut within);
    let is_mark = || Kind::ALL.iter().any(|kind| clean == kind.mark());
    let kind = if above.is_secret(text) { Some(Kind::SecretField) } else { above.personal.into_iter().flatten().find(|kind| personal::fits(*kind, text)) };
    match kind {
        // What its form tells says more than its key.
        Some(kind) if !is_mark() => {
            found.add(kind);
            kind.mark()
        }
        _ => {
            found.extend(&within);
            clean
        }
    }
}
