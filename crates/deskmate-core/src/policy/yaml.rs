//! A YAML text as a tree that remembers where everything was written, and a reader that collects every problem instead
//! of stopping at the first.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};

use super::Problem;

/// More problems than this only repeat each other.
pub(super) const PROBLEMS_MAX: usize = 100;

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Yaml,
    pub(super) at: Location,
}

/// A key of a table and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) at: Location,
}

/// What was written.
#[derive(Clone, Debug)]
pub(super) enum Yaml {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<(Key, Node)>),
}

impl Yaml {
    fn what(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a yes or no",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Yaml>::deserialize(deserializer)?;
        Ok(Self { value, at: referenced })
    }
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Yaml;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Yaml, E> {
                Ok(Yaml::Null)
            }

            fn visit_none<E>(self) -> Result<Yaml, E> {
                Ok(Yaml::Null)
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Yaml, D::Error> {
                Yaml::deserialize(deserializer)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
                Ok(Yaml::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Yaml, E> {
                Ok(Yaml::Int(value))
            }

            #[expect(clippy::cast_precision_loss, reason = "so large a number is refused wherever one is read")]
            fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
                Ok(i64::try_from(value).map_or(Yaml::Float(value as f64), Yaml::Int))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Yaml, E> {
                Ok(Yaml::Float(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
                Ok(Yaml::Text(value.to_owned()))
            }

            fn visit_string<E>(self, value: String) -> Result<Yaml, E> {
                Ok(Yaml::Text(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Yaml, A::Error> {
                let mut list = Vec::new();
                while let Some(node) = access.next_element()? {
                    list.push(node);
                }
                Ok(Yaml::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Yaml, A::Error> {
                let mut table = Vec::new();
                while let Some((key, node)) = access.next_entry::<Spanned<String>, Node>()? {
                    table.push((Key { name: key.value, at: key.referenced }, node));
                }
                Ok(Yaml::Table(table))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Reads a text into a tree. An empty text is an empty table.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    match serde_saphyr::from_str_with_options::<Node>(text, options) {
        Ok(Node { value: Yaml::Null, at }) => Ok(Node { value: Yaml::Table(Vec::new()), at }),
        Ok(node) => Ok(node),
        Err(error) => {
            let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
            Err(Problem { line, column, path: String::new(), message: format!("this is not YAML as it is read here: {}", error.without_snippet()) })
        }
    }
}

/// Collects problems while a tree is read.
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) problems: Vec<Problem>,
}

/// A table under reading: what nobody asked for is unknown.
pub(super) struct Table<'n> {
    pub(super) path: String,
    pub(super) at: Location,
    entries: &'n [(Key, Node)],
    asked: BTreeSet<&'static str>,
}

impl<'n> Table<'n> {
    /// The value of a key, if it is there and not empty.
    pub(super) fn get(&mut self, key: &'static str) -> Option<&'n Node> {
        self.asked.insert(key);
        self.entries.iter().find(|(name, _)| name.name == key).map(|(_, node)| node).filter(|node| !matches!(node.value, Yaml::Null))
    }

    /// Whether a key was written at all.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, _)| name.name == key)
    }

    /// The keys and values as they were written.
    pub(super) fn entries(&self) -> &'n [(Key, Node)] {
        self.entries
    }

    /// The path of a key.
    pub(super) fn at(&self, key: &str) -> String {
        below(&self.path, key)
    }
}

/// The path of a key below another.
pub(super) fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, problems: Vec::new() }
    }

    /// Notes a problem.
    pub(super) fn problem(&mut self, at: Location, path: &str, message: impl Into<String>) {
        self.problem_at(at.line(), at.column(), path, message);
    }

    /// Notes a problem at a line and column.
    pub(super) fn problem_at(&mut self, line: u64, column: u64, path: &str, message: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { line, column, path: path.to_owned(), message: message.into() });
        }
    }

    fn mismatch<T>(&mut self, node: &Node, path: &str, want: &str) -> Option<T> {
        self.problem(node.at, path, format!("this is {}: write {want}", node.value.what()));
        None
    }

    /// A table.
    pub(super) fn table<'n>(&mut self, node: &'n Node, path: &str) -> Option<Table<'n>> {
        match &node.value {
            Yaml::Table(entries) => Some(Table { path: path.to_owned(), at: node.at, entries, asked: BTreeSet::new() }),
            _ => self.mismatch(node, path, "keys with their values"),
        }
    }

    /// A list.
    pub(super) fn list<'n>(&mut self, node: &'n Node, path: &str) -> Option<&'n [Node]> {
        match &node.value {
            Yaml::List(list) => Some(list),
            _ => self.mismatch(node, path, "a list, each entry after a `-`"),
        }
    }

    /// A text of at most `max` bytes; never NUL.
    pub(super) fn text_of<'n>(&mut self, node: &'n Node, path: &str, max: usize) -> Option<&'n str> {
        match &node.value {
            Yaml::Text(text) if text.contains('\0') => {
                self.problem(node.at, path, "this has a NUL character: leave it out");
                None
            }
            Yaml::Text(text) if text.len() > max => {
                self.problem(node.at, path, format!("this is {} bytes long: write at most {max}", text.len()));
                None
            }
            Yaml::Text(text) => Some(text),
            Yaml::Bool(_) | Yaml::Int(_) | Yaml::Float(_) => self.mismatch(node, path, "a text, in quotes"),
            _ => self.mismatch(node, path, "a text"),
        }
    }

    /// The text of a key.
    pub(super) fn text<'n>(&mut self, table: &mut Table<'n>, key: &'static str, max: usize) -> Option<&'n str> {
        let path = table.at(key);
        table.get(key).and_then(|node| self.text_of(node, &path, max))
    }

    /// The text of a key that has to be there.
    pub(super) fn need_text<'n>(&mut self, table: &mut Table<'n>, key: &'static str, max: usize, example: &str) -> Option<&'n str> {
        if table.get(key).is_none() {
            self.missing(table, key, example);
            return None;
        }
        let path = table.at(key);
        let text = self.text(table, key, max)?;
        if text.trim().is_empty() {
            let at = table.get(key).map_or(table.at, |node| node.at);
            self.problem(at, &path, format!("this is empty: write for example {example}"));
            return None;
        }
        Some(text)
    }

    /// Says that a key is missing.
    pub(super) fn missing(&mut self, table: &Table<'_>, key: &str, example: &str) {
        self.problem(table.at, &table.path, format!("`{key}` is missing: write for example `{key}: {example}`"));
    }

    /// One of several words.
    pub(super) fn word<T: Copy>(&mut self, node: &Node, path: &str, words: &[(&str, T)]) -> Option<T> {
        let found = match &node.value {
            Yaml::Text(text) => words.iter().find(|(word, _)| word == text).map(|(_, value)| *value),
            _ => None,
        };
        if found.is_none() {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let nearest = match &node.value {
                Yaml::Text(text) => nearest(text, &all).map(|word| format!("; did you mean `{word}`?")).unwrap_or_default(),
                _ => String::new(),
            };
            let shown = match &node.value {
                Yaml::Text(text) => format!("`{}` is not known here", short(text)),
                other => format!("this is {}", other.what()),
            };
            self.problem(node.at, path, format!("{shown}: write {}{nearest}", or(&all)));
        }
        found
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, node: &Node, path: &str) -> Option<bool> {
        match node.value {
            Yaml::Bool(value) => Some(value),
            _ => self.mismatch(node, path, "true or false"),
        }
    }

    /// A number within bounds.
    #[expect(clippy::cast_precision_loss, reason = "numbers beyond 2^53 are refused")]
    pub(super) fn number(&mut self, node: &Node, path: &str, min: f64, max: f64) -> Option<f64> {
        let value = match node.value {
            Yaml::Int(value) => value as f64,
            Yaml::Float(value) => value,
            _ => return self.mismatch(node, path, "a number"),
        };
        if !value.is_finite() || value < min || value > max {
            self.problem(node.at, path, format!("{value} is out of bounds: write a number from {min} to {max}"));
            return None;
        }
        Some(value)
    }

    /// A whole number within bounds.
    pub(super) fn count(&mut self, node: &Node, path: &str, min: u32, max: u32) -> Option<u32> {
        match node.value {
            Yaml::Int(value) if i64::from(min) <= value && value <= i64::from(max) => u32::try_from(value).ok(),
            Yaml::Int(value) => {
                self.problem(node.at, path, format!("{value} is out of bounds: write a whole number from {min} to {max}"));
                None
            }
            _ => self.mismatch(node, path, "a whole number"),
        }
    }

    /// A list of texts, or one text alone.
    pub(super) fn texts(&mut self, node: &Node, path: &str, max: usize, count_max: usize) -> Vec<(String, Location)> {
        let list = match &node.value {
            Yaml::List(list) => list.as_slice(),
            _ => std::slice::from_ref(node),
        };
        if list.len() > count_max {
            self.problem(node.at, path, format!("{} entries are too many: write at most {count_max}", list.len()));
            return Vec::new();
        }
        let mut texts = Vec::new();
        for (number, entry) in list.iter().enumerate() {
            let path = if matches!(node.value, Yaml::List(_)) { format!("{path}[{number}]") } else { path.to_owned() };
            match self.text_of(entry, &path, max) {
                Some("") => self.problem(entry.at, &path, "this is empty: write a text or leave it out"),
                Some(text) => texts.push((text.to_owned(), entry.at)),
                None => {}
            }
        }
        texts
    }

    /// Any value as JSON. Numbers that JSON cannot hold exactly are problems.
    pub(super) fn json(&mut self, node: &Node, path: &str) -> Option<Value> {
        Some(match &node.value {
            Yaml::Null => Value::Null,
            Yaml::Bool(value) => Value::Bool(*value),
            Yaml::Int(value) if value.unsigned_abs() <= 1 << 53 => Value::from(*value),
            Yaml::Int(value) => {
                self.problem(node.at, path, format!("{value} is beyond 2^53, where numbers are no longer exact: write it as a text"));
                return None;
            }
            Yaml::Float(value) => match Number::from_f64(*value) {
                Some(number) => Value::Number(number),
                None => return self.mismatch(node, path, "a finite number"),
            },
            Yaml::Text(_) => Value::from(self.text_of(node, path, crate::limits::CONTENT_BYTES_MAX)?),
            Yaml::List(list) => {
                Value::Array(list.iter().enumerate().map(|(number, entry)| self.json(entry, &format!("{path}[{number}]"))).collect::<Option<_>>()?)
            }
            Yaml::Table(_) => Value::Object(self.json_table(node, path)?),
        })
    }

    /// A table as JSON.
    pub(super) fn json_table(&mut self, node: &Node, path: &str) -> Option<Map<String, Value>> {
        let table = self.table(node, path)?;
        let mut map = Map::new();
        for (key, value) in table.entries() {
            map.insert(key.name.clone(), self.json(value, &below(path, &key.name))?);
        }
        Some(map)
    }

    /// Names every key of a table that nobody asked for.
    pub(super) fn finish(&mut self, table: &Table<'_>) {
        self.finish_but(table, &[]);
    }

    /// The same, where some keys belong to somebody else.
    pub(super) fn finish_but(&mut self, table: &Table<'_>, others: &[&str]) {
        let known: Vec<&str> = table.asked.iter().copied().collect();
        for (key, _) in table.entries.iter().filter(|(key, _)| !table.asked.contains(key.name.as_str()) && !others.contains(&key.name.as_str())) {
            self.unknown(key, &table.path, &known);
        }
    }

    /// Says that a key is not known.
    pub(super) fn unknown(&mut self, key: &Key, path: &str, known: &[&str]) {
        let hint = nearest(&key.name, known).map_or_else(|| format!("write one of {}", known.join(", ")), |word| format!("did you mean `{word}`?"));
        self.problem(key.at, &below(path, &short(&key.name)), format!("the key `{}` is not known: {hint}", short(&key.name)));
    }
}

/// A text for a message.
pub(super) fn short(text: &str) -> String {
    if text.chars().count() <= 60 { text.to_owned() } else { text.chars().take(60).chain(['…']).collect() }
}

/// `a`, `b` or `c`.
pub(super) fn or(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [rest @ .., last] => format!("{} or `{last}`", rest.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")),
    }
}

/// The word that was probably meant.
pub(crate) fn nearest<'w>(text: &str, words: &[&'w str]) -> Option<&'w str> {
    if text.len() > 64 {
        return None;
    }
    let near = words.iter().map(|word| (distance(text, word), *word)).min()?;
    (near.0 <= text.chars().count().max(3) / 3).then_some(near.1)
}

/// How many letters differ.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, letter) in left.chars().enumerate() {
        let mut next = vec![line + 1];
        for (column, other) in right.iter().enumerate() {
            let diagonal = row.get(column).copied().unwrap_or(0) + usize::from(letter != *other);
            let above = row.get(column + 1).copied().unwrap_or(0) + 1;
            let before = next.last().copied().unwrap_or(0) + 1;
            next.push(diagonal.min(above).min(before));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
