//! Where the fields that rules hide stand in a value, in every form that [`super::change`] understands: as keys, named
//! beside their values, declared beside the whole, and in JSON that is kept in a text. `holds(email)` in the place of a field
//! hides whatever holds that kind of data, wherever it stands.

use serde_json::{Map, Value};

use super::ask::{held_kind, holds_any};
use super::change::{COMMON, DEPTH_MAX, HOLDING, NAMING, PATH_BYTES_MAX, PERHAPS_HOLDING, dotted, pointed};
use super::index::Patterns;
use super::{Act, Decision};

/// Keys that hold what a field named beside them was before.
const HOLDING_OLD: [&str; 4] = ["old", "old_value", "oldValue", "from"];

/// The places in a value that patterns of fields hide, as JSON pointers. `field` is the one that the value is said to be
/// for. What is too large to be looked through is hidden whole, and so is a text with hidden fields in it.
pub fn hidden_in(value: &Value, field: Option<&str>, patterns: &[String]) -> Vec<String> {
    if patterns.is_empty() {
        return Vec::new();
    }
    let mut hides = Patterns::default();
    let mut kinds = Vec::new();
    for pattern in patterns {
        match held_kind(pattern) {
            Some(kind) => kinds.push(kind),
            None => hides.add(pattern, 0),
        }
    }
    let mut search = Search { hides: &hides, kinds: &kinds, found: Vec::new(), room: 16 * PATH_BYTES_MAX };
    if !(search.walk(value, "", "", 0) && field.is_none_or(|field| search.declared(value, field))) {
        return vec![String::new()];
    }
    search.found.sort_unstable();
    search.found.dedup();
    search.found
}

impl Decision {
    /// Hides further fields of the act that this is about.
    pub fn hide(&mut self, act: &Act, patterns: &[String]) {
        self.hides.extend_from_slice(patterns);
        self.hides.sort_unstable();
        self.hides.dedup();
        self.redact = hidden_in(&act.arguments, act.field.as_deref(), &self.hides);
    }
}

struct Search<'h> {
    hides: &'h Patterns,
    /// Kinds of data that are hidden wherever they stand.
    kinds: &'h [&'h str],
    found: Vec<String>,
    /// How many more bytes of paths may be looked at.
    room: usize,
}

impl Search<'_> {
    fn hides(&self, path: &str) -> bool {
        self.hides.fits(path) || path.rfind('.').is_some_and(|dot| path.get(dot + 1..).is_some_and(|last| self.hides.fits(last)))
    }

    /// Whether everything below was looked at.
    fn walk(&mut self, value: &Value, path: &str, pointer: &str, depth: usize) -> bool {
        let cost = path.len() + pointer.len() + 1;
        if depth > DEPTH_MAX || cost > self.room {
            return false;
        }
        self.room -= cost;
        match value {
            Value::Object(table) => {
                if table.keys().any(|key| self.holds("", &Value::String(key.clone()))) {
                    self.found.push(pointer.to_owned());
                    return true;
                }
                let keys = table.iter().all(|(key, entry)| {
                    let below = super::yaml::below(path, key);
                    let meant = pointed(path, key);
                    let pointer = at(pointer, key);
                    if self.hides(&below) || self.hides.fits(key) || meant.as_deref().is_some_and(|meant| self.hides(meant)) {
                        self.found.push(pointer);
                        true
                    } else {
                        self.walk(entry, meant.as_deref().unwrap_or(&below), &pointer, depth + 1)
                    }
                });
                keys && self.naming(table, pointer, depth)
            }
            Value::Array(list) => list.iter().enumerate().all(|(number, entry)| self.walk(entry, path, &format!("{pointer}/{number}"), depth + 1)),
            Value::String(_) | Value::Number(_) if self.holds(path, value) => {
                self.found.push(pointer.to_owned());
                true
            }
            Value::String(text) => self.inside(path, text, pointer, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
    }

    /// Whether a text or a number holds a kind of data that is hidden.
    fn holds(&self, path: &str, value: &Value) -> bool {
        !self.kinds.is_empty() && holds_any(self.kinds, path.rsplit('.').next().unwrap_or(path), value)
    }

    /// A table that names a field and holds a value for it.
    fn naming(&mut self, table: &Map<String, Value>, pointer: &str, depth: usize) -> bool {
        let surely = HOLDING.iter().any(|key| table.contains_key(*key));
        let is_known = surely || PERHAPS_HOLDING.iter().any(|key| table.contains_key(*key));
        NAMING.iter().all(|key| match (table.get(*key), COMMON.contains(key)) {
            // Nobody knows under which key the value stands, so whatever stands beside the name is hidden.
            (Some(Value::String(name)), false) if !is_known && *key != "path" && self.hides(&dotted(name)) => {
                self.found.extend(table.keys().filter(|other| !NAMING.contains(&other.as_str())).map(|other| at(pointer, other)));
                true
            }
            (Some(Value::String(name)), false) => self.held(table, &dotted(name), pointer, &[&HOLDING, &PERHAPS_HOLDING], depth),
            (Some(Value::String(name)), true) if surely => self.held(table, &dotted(name), pointer, &[&HOLDING], depth),
            _ => true,
        })
    }

    /// The values for a field that a table holds under some keys, and what it was before.
    fn held(&mut self, table: &Map<String, Value>, field: &str, pointer: &str, keys: &[&[&str]], depth: usize) -> bool {
        let hidden = self.hides(field);
        let held = keys.iter().copied().chain([HOLDING_OLD.as_slice()]).flatten().filter_map(|key| Some((*key, table.get(*key)?)));
        for (key, value) in held {
            let pointer = at(pointer, key);
            if hidden {
                self.found.push(pointer);
            } else if !self.walk(value, field, &pointer, depth + 1) {
                return false;
            }
        }
        true
    }

    /// The field that a value is said to be for.
    fn declared(&mut self, value: &Value, field: &str) -> bool {
        match value {
            Value::Null => true,
            Value::Object(table) => {
                let last = field.rsplit('.').next().unwrap_or(field);
                let is_there = table.contains_key(field) || table.contains_key(last);
                let keys: &[&[&str]] = if is_there { &[&HOLDING] } else { &[&HOLDING, &PERHAPS_HOLDING] };
                self.held(table, field, "", keys, 0)
            }
            _ if self.hides(field) => {
                self.found.push(String::new());
                true
            }
            other => self.walk(other, field, "", 0),
        }
    }

    /// JSON in a text is looked into, and hidden together with its text.
    fn inside(&mut self, path: &str, text: &str, pointer: &str, depth: usize) -> bool {
        if !text.trim_start().starts_with(['{', '[']) {
            return true;
        }
        let Ok(parsed) = serde_json::from_str::<Value>(text) else { return true };
        let before = self.found.len();
        if !self.walk(&parsed, path, pointer, depth + 1) {
            return false;
        }
        if self.found.len() > before {
            self.found.truncate(before);
            self.found.push(pointer.to_owned());
        }
        true
    }
}

fn at(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}
