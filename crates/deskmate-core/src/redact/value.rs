//! JSON: every string, key and number, as deep as any input may be. What lies deeper is taken out unseen.

use std::borrow::Cow;
use std::cell::OnceCell;
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

/// The key above a value. What it says is worked out when a text or a number stands under it.
struct Named<'k> {
    key: &'k str,
    clean: &'k str,
    says: OnceCell<Above>,
}

impl<'k> Named<'k> {
    fn new(key: &'k str, clean: &'k str) -> Self {
        Self { key, clean, says: OnceCell::new() }
    }

    fn says(&self, redactor: &Redactor) -> Above {
        *self.says.get_or_init(|| Above::of(redactor, self.key, self.clean))
    }
}

/// What is left of a value; nothing where it stays as it is, which is so of nearly all.
pub(super) fn clean(redactor: &Redactor, value: &Value, found: &mut Found) -> Option<Value> {
    walk(redactor, value, &Named::new("", ""), 0, found)
}

fn walk(redactor: &Redactor, value: &Value, above: &Named<'_>, depth: usize, found: &mut Found) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(_) => None,
        Value::String(text) => leaf(redactor, text, above, found).map(Value::String),
        Value::Number(number) => leaf(redactor, &number.to_string(), above, found).map(Value::String),
        Value::Array(_) | Value::Object(_) if depth >= INPUT_DEPTH_MAX => {
            found.add(Kind::TooDeep);
            Some(Value::String(Kind::TooDeep.mark()))
        }
        Value::Array(items) => {
            let mut clean: Option<Vec<Value>> = None;
            for (at, item) in items.iter().enumerate() {
                let left = walk(redactor, item, above, depth + 1, found);
                if left.is_some() && clean.is_none() {
                    clean = Some(items.iter().take(at).cloned().collect());
                }
                if let Some(clean) = &mut clean {
                    clean.push(left.unwrap_or_else(|| item.clone()));
                }
            }
            clean.map(Value::Array)
        }
        Value::Object(fields) => {
            let (mut clean, mut taken): (Option<Map<String, Value>>, _) = (None, BTreeMap::new());
            for (at, (name, value)) in fields.iter().enumerate() {
                let key = redactor.clean(name, found);
                let left = walk(redactor, value, &Named::new(name, &key), depth + 1, found);
                if clean.is_none() && (left.is_some() || *key != **name) {
                    clean = Some(fields.iter().take(at).map(|(name, value)| (name.clone(), value.clone())).collect());
                }
                if let Some(clean) = &mut clean {
                    let key = unused(key.into_owned(), clean, &mut taken);
                    clean.insert(key, left.unwrap_or_else(|| value.clone()));
                }
            }
            clean.map(Value::Object)
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

/// What is left of a text or a number; nothing where it stays as it is.
fn leaf(redactor: &Redactor, text: &str, above: &Named<'_>, found: &mut Found) -> Option<String> {
    let mut within = Found::default();
    let clean = redactor.clean(text, &mut within);
    let above = above.says(redactor);
    let is_mark = || Kind::ALL.iter().any(|kind| *clean == *kind.mark());
    let kind_of = |text: &str| {
        let personal = || above.personal.into_iter().flatten().find(|kind| personal::fits(*kind, text));
        if above.is_secret(text) { Some(Kind::SecretField) } else { personal() }
    };
    // What is left of a text can look like a secret where the whole does not: looking again must find nothing new.
    let kind = kind_of(text).or_else(|| (*clean != *text).then(|| kind_of(&clean)).flatten());
    match kind {
        // What its form tells says more than its key.
        Some(kind) if !is_mark() => {
            found.add(kind);
            Some(kind.mark())
        }
        _ => {
            found.extend(&within);
            (*clean != *text).then(|| clean.into_owned())
        }
    }
}
