//! The whole change of an act, as field rules see it: every path that would be different afterwards, with its value.
//!
//! Agents write changes in several forms, and a rule must not depend on which: `{amount: 5}`, `{deal: {amount: 5}}`,
//! `{/deal/amount: 5}`, `{value: 5}` with the field declared beside it, `{field: amount, value: 5}` anywhere, `{op: replace,
//! path: /amount, value: 5}`, and JSON kept in a text. Lists are transparent: what is in them has the path of the list.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Act;
use super::opaque::{is_about_the_change, tells};
use crate::call::parse_strict;
use crate::limits::CHANGED_PATHS_MAX;

/// How deep a change is looked into. Input nests at most as deep, and JSON in texts once more.
pub(super) const DEPTH_MAX: usize = 96;
/// How many bytes all paths have together.
pub(super) const PATH_BYTES_MAX: usize = 1 << 20;
/// Keys that name the field which the value beside them is for.
pub(super) const NAMING: [&str; 7] = ["field", "path", "property", "column", "attribute", "key", "name"];
/// Of these the last are common words: they name a field only beside a key that surely holds a value.
pub(super) const COMMON: [&str; 2] = ["key", "name"];
/// Keys that hold the value for a field named beside them.
pub(super) const HOLDING: [&str; 3] = ["value", "new_value", "newValue"];
/// Keys that do so where there is none of these.
pub(super) const PERHAPS_HOLDING: [&str; 2] = ["new", "to"];

/// The value at a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Held<'a> {
    /// The field is named, but no value for it is there.
    Missing,
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
    /// A table or an empty list: something, but no single value.
    Many,
}

impl Held<'_> {
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Null => "null",
            Self::Bool(_) => "a yes or no",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::Many => "not a single value",
        }
    }
}

/// One changed path.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    /// Where the last part of the path begins.
    last: usize,
    end: usize,
}

/// Every changed path of an act.
#[derive(Debug, Default)]
pub(super) struct Change<'a> {
    /// All paths one after another.
    names: String,
    spans: Vec<Span>,
    held: Vec<Held<'a>>,
    /// Whether there is more than was looked at.
    pub(super) over: bool,
    /// Whether the change, or a part of it, is a mere text that rules cannot look into.
    pub(super) opaque: bool,
}

impl<'a> Change<'a> {
    /// Takes an act's change apart.
    pub(super) fn of(act: &'a Act) -> Self {
        let mut change = Self { opaque: tells(&act.arguments), ..Self::default() };
        change.walk("", &act.arguments, 0);
        if let Some(field) = act.field.as_deref().filter(|field| !field.is_empty()) {
            change.declared(field, &act.arguments);
        }
        if change.spans.is_empty() {
            // A rule about every field is about an act without any as well.
            change.push("", Held::Missing);
        }
        change
    }

    /// The field that the agent names: its value is beside it, or somewhere in the change, or missing.
    fn declared(&mut self, field: &str, arguments: &'a Value) {
        let (surely, perhaps) = match arguments {
            Value::Object(table) => (held_under(table, &HOLDING), held_under(table, &PERHAPS_HOLDING)),
            Value::Null => (None, None),
            other => (Some(other), None),
        };
        let is_there = self.entries().any(|(path, last, _)| path == field || last == field);
        match surely.or(perhaps.filter(|_| !is_there)) {
            Some(value) => self.named(field, value, 0),
            None if is_there => {}
            None => self.push(field, Held::Missing),
        }
    }

    /// A field by its name or path, and what is below it.
    fn named(&mut self, field: &str, value: &'a Value, depth: usize) {
        self.value(field, value);
        self.walk(field, value, depth + 1);
    }

    fn push(&mut self, path: &str, held: Held<'a>) {
        if self.spans.len() == CHANGED_PATHS_MAX || self.names.len() + path.len() > PATH_BYTES_MAX {
            self.over = true;
            return;
        }
        let start = self.names.len();
        self.names.push_str(path);
        let last = start + path.rfind('.').map_or(0, |dot| dot + 1);
        self.spans.push(Span { start, last, end: self.names.len() });
        self.held.push(held);
    }

    /// Notes a value at its path; of a list, its entries.
    fn value(&mut self, path: &str, value: &'a Value) {
        let held = match value {
            Value::Null => Held::Null,
            Value::Bool(value) => Held::Bool(*value),
            Value::Number(number) => Held::Number(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => Held::Text(Cow::Borrowed(text)),
            Value::Object(_) => Held::Many,
            Value::Array(list) if list.is_empty() => Held::Many,
            Value::Array(list) => {
                for entry in list {
                    self.value(path, entry);
                    if self.over {
                        return;
                    }
                }
                return;
            }
        };
        self.push(path, held);
    }

    /// Notes everything below a value.
    fn walk(&mut self, path: &str, value: &'a Value, depth: usize) {
        if depth > DEPTH_MAX {
            self.over = true;
        }
        if self.over {
            return;
        }
        match value {
            Value::Object(table) => {
                for (key, entry) in table {
                    let below = super::yaml::below(path, key);
                    self.opaque |= is_about_the_change(key) && tells(entry);
                    self.value(&below, entry);
                    let pointed = pointed(path, key);
                    if let Some(pointed) = &pointed {
                        self.value(pointed, entry);
                    }
                    self.walk(pointed.as_deref().unwrap_or(&below), entry, depth + 1);
                    if self.over {
                        return;
                    }
                }
                self.naming(table, depth);
            }
            Value::Array(list) => {
                for entry in list {
                    self.walk(path, entry, depth + 1);
                }
            }
            Value::String(text) => self.inside(path, text, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A table that names a field and holds a value for it.
    fn naming(&mut self, table: &'a Map<String, Value>, depth: usize) {
        let surely = held_under(table, &HOLDING);
        let perhaps = surely.or_else(|| held_under(table, &PERHAPS_HOLDING));
        for key in NAMING {
            let Some(Value::String(name)) = table.get(key) else { continue };
            let field = dotted(name);
            if field.is_empty() {
                continue;
            }
            match if COMMON.contains(&key) { surely } else { perhaps } {
                Some(value) => self.named(&field, value, depth),
                // A path may as well be that of a file, and so it needs more to be a field's.
                None if COMMON.contains(&key) || (key == "path" && !table.contains_key("op")) => {}
                None => self.push(&field, Held::Missing),
            }
        }
    }

    /// JSON in a text is a change like any other.
    fn inside(&mut self, path: &str, text: &str, depth: usize) {
        let text = text.trim_start();
        if !text.starts_with(['{', '[']) {
            return;
        }
        let parsed = match (parse_strict(text.as_bytes()), serde_json::from_str::<Value>(text)) {
            (Ok(parsed), _) => parsed,
            // Of a doubled key other readers take another value, and so of a large number: what is meant cannot be seen.
            (Err(_), Ok(parsed)) => {
                self.opaque = true;
                parsed
            }
            (Err(_), Err(error)) => {
                self.over |= error.to_string().starts_with("recursion limit");
                return;
            }
        };
        // Its values do not live as long as the act, so they are taken over.
        let mut inner = Change::default();
        inner.walk(path, &parsed, depth + 1);
        self.over |= inner.over;
        self.opaque |= inner.opaque;
        for (span, held) in inner.spans.iter().zip(inner.held) {
            let held = match held {
                Held::Missing => Held::Missing,
                Held::Null => Held::Null,
                Held::Bool(value) => Held::Bool(value),
                Held::Number(value) => Held::Number(value),
                Held::Text(text) => Held::Text(Cow::Owned(text.into_owned())),
                Held::Many => Held::Many,
            };
            self.push(inner.names.get(span.start..span.end).unwrap_or_default(), held);
        }
    }

    /// How many paths there are.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// A path, its last part, and the value.
    pub(super) fn entry(&self, number: usize) -> Option<(&str, &str, &Held<'a>)> {
        let span = self.spans.get(number)?;
        Some((self.names.get(span.start..span.end)?, self.names.get(span.last..span.end)?, self.held.get(number)?))
    }

    /// All of them.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &str, &Held<'a>)> {
        (0..self.len()).filter_map(|number| self.entry(number))
    }

    /// The paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries().map(|(path, ..)| path)
    }
}

/// Every changed path of an act, as field rules see it; `None` where not all of them can be seen.
pub(crate) fn changed_paths(act: &Act) -> Option<BTreeSet<String>> {
    let change = Change::of(act);
    (!change.over && !change.opaque).then(|| change.paths().map(str::to_owned).collect())
}

/// The value that a table holds under the first of some keys.
fn held_under<'a>(table: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().find_map(|key| table.get(*key))
}

/// The path that a key below another means where it is a pointer, such as `/a/b`.
pub(super) fn pointed(path: &str, key: &str) -> Option<String> {
    let below = key.starts_with('/').then(|| dotted(key))?;
    Some(if below.is_empty() { path.to_owned() } else { super::yaml::below(path, &below) })
}

/// `/a/b` or `a.b` as `a.b`, without the numbers of list entries.
pub(super) fn dotted(name: &str) -> Cow<'_, str> {
    match name.strip_prefix('/') {
        None => Cow::Borrowed(name),
        Some(pointer) => {
            let parts = pointer.split('/').filter(|part| *part != "-" && !part.bytes().all(|byte| byte.is_ascii_digit()));
            Cow::Owned(parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect::<Vec<_>>().join("."))
        }
    }
}
