//! Steps: a small workflow that a person can read. Each does one thing, with values of those before it. What only turns values
//! into others is done here; everything else is an operation of the desk, called as the agent.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::items;
use super::value::{self, Scope};
use crate::limits::{AGENT_ITEMS_MAX, AGENT_STEPS_MAX, NAME_CHARS_MAX};
use crate::{Error, Result};

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name, once among the steps: later ones use what came of it as `{{steps.NAME}}`.
    pub id: String,
    /// What it does: an operation by its full name, or one of `set`, `text`, `filter`, `classify`, `count`, `sort`, `lines`, `parse`,
    /// `check`, `log`, `choose`, `stop`, `clean`, `map`, `unique`, `flat`, `sum`, `changes`, `format` and `first`.
    #[serde(rename = "do")]
    pub does: String,
    /// What it is given. `{{params.NAME}}`, `{{steps.NAME.FIELD}}`, `{{input.NAME}}`, `{{run.date}}`, `{{last.FIELD}}` (what came of the
    /// run before that was done) and, in a loop, `{{item}}` stand for values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub with: Map<String, Value>,
    /// It is left out unless this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
    /// It is done for each of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Value>,
    /// How often it is tried again when it fails for a passing cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// What happens when it fails.
    #[serde(default)]
    pub on_error: OnError,
}

/// What happens when a step fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The run fails.
    #[default]
    Stop,
    /// The next step begins; what came of this one is `{"error": …}`.
    GoOn,
}

/// Trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How often, at most 10.
    pub times: u32,
    /// How long to wait before it, at most an hour; twice as long each time.
    pub wait_seconds: u32,
}

/// A comparison of two values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The value that is looked at.
    pub value: Value,
    /// How.
    pub is: Comparison,
    /// With what; not for `empty` and `not_empty`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub than: Value,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// They are the same.
    Equal,
    /// They are not.
    NotEqual,
    /// The first number is smaller.
    Less,
    /// The first number is smaller or the same.
    AtMost,
    /// The first number is greater.
    More,
    /// The first number is greater or the same.
    AtLeast,
    /// The first, a text or a list, has the second in it; letters of either case are the same in texts.
    Contains,
    /// Nothing, no text, an empty list.
    Empty,
    /// Something.
    NotEmpty,
}

/// Steps that only turn values into others.
pub const BUILT_IN: [&str; 20] = [
    "set", "text", "filter", "classify", "count", "sort", "lines", "parse", "check", "log", "choose", STOP, "clean", "map", "unique", "flat", "sum", "changes",
    "format", "first",
];

/// The step that ends a run, which is done then.
pub const STOP: &str = "stop";

/// Whether a step needs nothing but values.
pub fn is_built_in(does: &str) -> bool {
    BUILT_IN.contains(&does)
}

/// Checks steps without doing any: names, what they do, and that each uses only what comes before it. `known` says whether an
/// operation is one that an agent can call.
pub(super) fn check(steps: &[Step], known: impl Fn(&str) -> bool) -> Result<()> {
    if steps.len() > AGENT_STEPS_MAX {
        return Err(Error::invalid("steps", format!("must be at most {AGENT_STEPS_MAX}")));
    }
    let mut before = BTreeSet::new();
    for (number, step) in steps.iter().enumerate() {
        let field = format!("steps[{number}]");
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if step.id.is_empty() || step.id.len() > NAME_CHARS_MAX || !step.id.chars().all(plain) {
            return Err(Error::invalid(&field, format!("the id {:?} must be small letters, digits and '_'", step.id)));
        }
        if !is_built_in(&step.does) && !known(&step.does) {
            let hint = format!("an operation that agents can call, by its full name, or one of {}", BUILT_IN.join(", "));
            return Err(Error::invalid(&field, format!("there is no {:?} to do", step.does)).hint(hint));
        }
        if step.retry.is_some_and(|retry| retry.times > 10 || retry.wait_seconds > 3_600) {
            return Err(Error::invalid(&field, "retry must be at most 10 times, an hour apart"));
        }
        let item = step.for_each.is_some();
        for given in
            [Some(&json!(step.with_but_form())), step.for_each.as_ref(), step.when.as_ref().map(|when| &when.value), step.when.as_ref().map(|when| &when.than)]
        {
            let uses = given.map(value::paths).transpose().map_err(|why| Error::invalid(&field, why))?;
            for path in uses.into_iter().flatten() {
                let mut parts = path.split('.');
                let (root, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                if !is_there(root, name, &before, item) {
                    return Err(Error::invalid(&field, format!("{{{{{path}}}}} stands for nothing that is there before this step")));
                }
            }
        }
        step.check_form(&before).map_err(|why| Error::invalid(&field, why))?;
        if !before.insert(step.id.clone()) {
            return Err(Error::invalid(&field, format!("there are two steps {:?}", step.id)));
        }
    }
    Ok(())
}

/// Whether a path can stand for something, before a step begins.
fn is_there(root: &str, name: &str, before: &BTreeSet<String>, item: bool) -> bool {
    match root {
        "steps" => before.contains(name),
        "item" | "index" => item,
        "params" | "run" | "input" | "last" => true,
        _ => false,
    }
}

/// The steps whose values are named by others behind this number: what nobody names any more need not be kept.
pub fn used_behind(steps: &[Step], number: usize) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for step in steps.iter().skip(number) {
        let paths = serde_json::to_value(step).ok().and_then(|step| value::paths(&step).ok()).unwrap_or_default();
        used.extend(paths.iter().filter_map(|path| path.strip_prefix("steps.")).filter_map(|rest| rest.split('.').next()).map(str::to_owned));
    }
    used
}

impl Step {
    /// What of it is filled in later, and whether for each item: it stays as it was written, so it comes from whoever made the agent.
    fn form(&self) -> Option<(&'static str, bool)> {
        match self.does.as_str() {
            "map" => Some(("to", true)),
            "filter" => Some(("keep", true)),
            "check" => Some(("that", false)),
            "choose" => Some(("if", false)),
            _ => None,
        }
    }

    fn with_but_form(&self) -> Map<String, Value> {
        let mut with = self.with.clone();
        if let Some((form, _)) = self.form() {
            with.remove(form);
        }
        with
    }

    fn check_form(&self, before: &BTreeSet<String>) -> Result<(), String> {
        let Some((name, of_items)) = self.form() else { return Ok(()) };
        let form = self.with.get(name).ok_or_else(|| format!("{} needs `{name}`", self.does))?;
        for path in value::paths(form)? {
            let (root, rest) = path.split_once('.').unwrap_or((&path, ""));
            if !is_there(root, rest.split('.').next().unwrap_or_default(), before, of_items || self.for_each.is_some()) {
                return Err(format!("{{{{{path}}}}} stands for nothing that is there before this step"));
            }
        }
        Ok(())
    }

    /// What it is given, filled in. What is filled in later stays as it was written, or is a whole parameter: what steps brought is
    /// never looked at for paths.
    pub fn given(&self, scope: &Scope) -> Result<Map<String, Value>, String> {
        let mut with = match value::render(&Value::Object(self.with_but_form()), scope)? {
            Value::Object(with) => with,
            _ => Map::new(),
        };
        if let Some((name, form)) = self.form().and_then(|(name, _)| Some((name, self.with.get(name)?))) {
            let is_param = form.as_str().is_some_and(|form| {
                let inner = form.strip_prefix("{{").and_then(|form| form.strip_suffix("}}"));
                inner.is_some_and(|path| path.trim().starts_with("params.") && !path.contains('{'))
            });
            with.insert(name.to_owned(), if is_param { value::render(form, scope)? } else { form.clone() });
        }
        Ok(with)
    }
}

impl Condition {
    /// Whether it holds.
    pub fn holds(&self, scope: &Scope) -> Result<bool, String> {
        let (value, than) = (value::render(&self.value, scope)?, value::render(&self.than, scope)?);
        let numbers = || match (as_number(&value), as_number(&than)) {
            (Some(one), Some(other)) => Ok((one, other)),
            _ => Err(format!("{value} and {than} are not both numbers")),
        };
        Ok(match self.is {
            Comparison::Equal => value == than,
            Comparison::NotEqual => value != than,
            Comparison::Less => numbers().map(|(one, other)| one < other)?,
            Comparison::AtMost => numbers().map(|(one, other)| one <= other)?,
            Comparison::More => numbers().map(|(one, other)| one > other)?,
            Comparison::AtLeast => numbers().map(|(one, other)| one >= other)?,
            Comparison::Contains => contains(&value, &than)?,
            Comparison::Empty => is_empty(&value),
            Comparison::NotEmpty => !is_empty(&value),
        })
    }
}

pub(super) fn as_number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn contains(value: &Value, than: &Value) -> Result<bool, String> {
    match (value, than) {
        (Value::String(text), Value::String(part)) => Ok(text.to_lowercase().contains(&part.to_lowercase())),
        (Value::Array(items), part) => Ok(items.contains(part)),
        _ => Err(format!("{value} is neither a text nor a list that could contain {than}")),
    }
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Does a built-in step with what it is given, already filled in. The error is for people.
pub fn compute(does: &str, with: &Map<String, Value>, scope: &Scope) -> Result<Value, String> {
    let get = |name: &str| with.get(name);
    let list = |name: &str| -> Result<&Vec<Value>, String> {
        let items = get(name).and_then(Value::as_array).ok_or_else(|| format!("{name} must be a list"))?;
        if items.len() > AGENT_ITEMS_MAX { Err(format!("{name} has more than {AGENT_ITEMS_MAX} items")) } else { Ok(items) }
    };
    let text = |name: &str| get(name).and_then(Value::as_str).ok_or_else(|| format!("{name} must be a text"));
    match does {
        "set" => Ok(Value::Object(with.clone())),
        "text" => Ok(json!({ "text": text("text")? })),
        "log" => Ok(json!({ "text": get("text").map(value::to_text).unwrap_or_default() })),
        // What it is given is what the next run finds as `last`.
        STOP => {
            let mut ended = with.clone();
            ended.insert("stopped".to_owned(), Value::Bool(true));
            Ok(Value::Object(ended))
        }
        "choose" => {
            let holds = read_condition(get("if").ok_or("if must be a condition")?)?.holds(scope)?;
            Ok(json!({ "value": get(if holds { "then" } else { "otherwise" }) }))
        }
        "lines" => lines(text("text")?, get("keep").and_then(Value::as_str).unwrap_or_default(), get("beside").and_then(Value::as_object)),
        "parse" => parse(text("text")?, get("as").and_then(Value::as_str).unwrap_or("json")),
        "filter" => {
            let condition = get("keep").ok_or("keep must be a condition on {{item}}")?;
            let items = list("items")?;
            let mut kept = Vec::new();
            for item in items {
                if read_condition(condition)?.holds(&scope.with_item(item))? {
                    kept.push(item.clone());
                }
            }
            Ok(json!({ "count": kept.len(), "left_out": items.len() - kept.len(), "items": kept }))
        }
        "classify" => classify(list("items")?, get("field").and_then(Value::as_str), get("classes").and_then(Value::as_object), get("otherwise")),
        "count" => {
            let items = list("items")?;
            let by = get("by").and_then(Value::as_str);
            let mut groups: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
            for item in items {
                let key = by.map_or(Value::Null, |path| value::at(item, path).cloned().unwrap_or(Value::Null));
                *groups.entry(value::to_text(&key)).or_default() += 1;
            }
            Ok(json!({ "count": items.len(), "groups": if by.is_some() { json!(groups) } else { Value::Null } }))
        }
        "sort" => {
            let mut items = list("items")?.clone();
            let by = get("by").and_then(Value::as_str).unwrap_or_default();
            items.sort_by(|one, other| compare(value::at(one, by), value::at(other, by)));
            if get("descending") == Some(&Value::Bool(true)) {
                items.reverse();
            }
            let most = get("most").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
            items.truncate(most);
            Ok(json!({ "count": items.len(), "items": items }))
        }
        "check" => {
            let condition = get("that").ok_or("that must be a condition")?;
            if read_condition(condition)?.holds(scope)? {
                Ok(json!({ "holds": true }))
            } else {
                Err(get("message").map_or_else(|| "what was checked does not hold".to_owned(), value::to_text))
            }
        }
        other => items::compute(other, with, scope),
    }
}

/// The lines of a text that have something in them, and these words if any are given. With something to stand beside them they become
/// objects.
fn lines(text: &str, keep: &str, beside: Option<&Map<String, Value>>) -> Result<Value, String> {
    let keep = keep.to_lowercase();
    let fits = |line: &&str| !line.is_empty() && (keep.is_empty() || line.to_lowercase().contains(&keep));
    let lines: Vec<&str> = text.lines().map(str::trim).filter(fits).collect();
    check_count(lines.len(), "lines")?;
    let items: Vec<Value> = match beside {
        None => lines.into_iter().map(Value::from).collect(),
        Some(beside) => lines
            .into_iter()
            .map(|line| {
                let mut fields = beside.clone();
                fields.insert("line".to_owned(), Value::from(line));
                Value::Object(fields)
            })
            .collect(),
    };
    Ok(json!({ "count": items.len(), "items": items }))
}

/// Refuses more than a step takes: what is left out without a word is missed by nobody.
fn check_count(count: usize, what: &str) -> Result<(), String> {
    if count > AGENT_ITEMS_MAX { Err(format!("{count} {what} are more than the {AGENT_ITEMS_MAX} that a step takes")) } else { Ok(()) }
}

fn read_condition(value: &Value) -> Result<Condition, String> {
    serde_json::from_value(value.clone()).map_err(|error| format!("the condition cannot be read: {error}"))
}

/// What is not there comes first, then numbers, then texts. Numbers among texts are not compared as such: "10" would come before "1a", that
/// before "2", and "2" before "10", which is no order.
fn compare(one: Option<&Value>, other: Option<&Value>) -> Ordering {
    let is_there = |value: &&Value| !value.is_null();
    match (one.filter(is_there), other.filter(is_there)) {
        (Some(one), Some(other)) => match (as_number(one), as_number(other)) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => value::to_text(one).cmp(&value::to_text(other)),
        },
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

/// By word lists, and nothing else: the first class of which a word stands in the text. It does not understand what it reads.
fn classify(items: &[Value], field: Option<&str>, classes: Option<&Map<String, Value>>, otherwise: Option<&Value>) -> Result<Value, String> {
    let classes = classes.filter(|classes| !classes.is_empty()).ok_or("classes must be lists of words by class")?;
    let mut lists = Vec::new();
    for (class, words) in classes {
        let words = words.as_array().ok_or_else(|| format!("the words of {class} must be a list"))?;
        let words: Vec<String> = words.iter().filter_map(Value::as_str).map(str::to_lowercase).filter(|word| !word.is_empty()).collect();
        lists.push((class, words));
    }
    let rest = otherwise.and_then(Value::as_str).unwrap_or("other");
    let mut groups: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    let mut found = Vec::new();
    for item in items {
        let text = words_of(field.map_or(item, |path| value::at(item, path).unwrap_or(&Value::Null))).to_lowercase();
        let hit = lists.iter().find_map(|(class, words)| words.iter().find(|word| has_word(&text, word)).map(|word| ((*class).clone(), Some(word.clone()))));
        let (class, word) = hit.unwrap_or_else(|| (rest.to_owned(), None));
        *groups.entry(class.clone()).or_default() += 1;
        found.push(json!({ "item": item, "class": class, "because": word }));
    }
    Ok(json!({ "count": found.len(), "groups": groups, "items": found }))
}

/// What a value says: of an object what its fields hold, and not how they are called, which is the same for all rows of a table.
fn words_of(value: &Value) -> String {
    match value {
        Value::Object(fields) => fields.values().map(words_of).collect::<Vec<_>>().join("\n"),
        Value::Array(items) => items.iter().map(words_of).collect::<Vec<_>>().join("\n"),
        other => value::to_text(other),
    }
}

/// Whether a word or phrase stands in a text by itself, not within another word.
fn has_word(text: &str, word: &str) -> bool {
    let outside = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + word.len()..).unwrap_or_default());
        outside(before.chars().next_back()) && outside(after.chars().next())
    })
}

fn parse(text: &str, form: &str) -> Result<Value, String> {
    match form {
        "json" => serde_json::from_str(text).map(|value: Value| json!({ "value": value })).map_err(|error| format!("it is not JSON: {error}")),
        "json_lines" => {
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            check_count(lines.len(), "lines")?;
            let items =
                lines.into_iter().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>().map_err(|error| format!("a line is not JSON: {error}"))?;
            Ok(json!({ "count": items.len(), "items": items }))
        }
        "csv" => {
            let mut rows = csv_rows(text)?.into_iter();
            let head = rows.next().unwrap_or_default();
            check_count(rows.len(), "rows")?;
            let mut items = Vec::new();
            for (number, row) in rows.enumerate() {
                if row.len() != head.len() {
                    return Err(format!("row {} has {} fields, and the head has {}", number + 2, row.len(), head.len()));
                }
                items.push(Value::Object(head.iter().cloned().zip(row.into_iter().map(Value::from)).collect()));
            }
            Ok(json!({ "count": items.len(), "items": items, "columns": head }))
        }
        other => Err(format!("{other:?} is none of json, json_lines and csv")),
    }
}

/// Rows of comma-separated values: quoted fields may hold commas, quotes (twice) and line ends.
fn csv_rows(text: &str) -> Result<Vec<Vec<String>>, String> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    let (mut quoted, mut begun) = (false, false);
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => (quoted, begun) = (true, true),
            _ if quoted => field.push(c),
            ',' => {
                row.push(std::mem::take(&mut field));
                begun = true;
            }
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => {
                if begun || !field.is_empty() {
                    row.push(std::mem::take(&mut field));
                    rows.push(std::mem::take(&mut row));
                }
                begun = false;
            }
            _ => {
                field.push(c);
                begun = true;
            }
        }
    }
    if quoted {
        return Err("a quoted field does not end".to_owned());
    }
    if begun || !field.is_empty() {
        row.push(field);
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(value: Value) -> Step {
        serde_json::from_value(value).unwrap()
    }

    fn done(does: &str, with: Value) -> Result<Value, String> {
        compute(does, with.as_object().unwrap(), &Scope::default())
    }

    #[test]
    fn steps_use_only_what_comes_before_them() {
        let known = |name: &str| name == "bridge_send_message";
        let good = [
            step(json!({ "id": "read", "do": "parse", "with": { "text": "{{params.text}}", "as": "csv" } })),
            step(json!({ "id": "tell", "do": "bridge_send_message", "for_each": "{{steps.read.items}}", "with": { "to": "ada", "content": "{{item.name}}" } })),
        ];
        check(&good, known).unwrap();
        let backwards = [good[1].clone(), good[0].clone()];
        assert!(check(&backwards, known).unwrap_err().to_string().contains("steps.read.items"));
        for (wrong, why) in [
            (json!({ "id": "A", "do": "set" }), "small letters"),
            (json!({ "id": "a", "do": "desk_claim" }), "no \"desk_claim\""),
            (json!({ "id": "a", "do": "set", "with": { "x": "{{item}}" } }), "item"),
            (json!({ "id": "a", "do": "set", "with": { "x": "{{open" } }), "not closed"),
            (json!({ "id": "a", "do": "set", "with": { "x": "{{env.HOME}}" } }), "env.HOME"),
            (json!({ "id": "a", "do": "set", "retry": { "times": 99, "wait_seconds": 1 } }), "retry"),
        ] {
            let error = check(&[step(wrong)], known).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn what_steps_brought_is_never_looked_at_for_paths() {
        let mut scope = Scope::default();
        scope.put("params", json!({ "key": "k", "form": { "a": "{{item}}" } }));
        scope.put_step("file", json!({ "text": "{{params.key}}" }));
        let check =
            step(json!({ "id": "a", "do": "check", "with": { "that": { "value": "{{steps.file.text}}", "is": "equal", "than": "k" }, "message": "no" } }));
        assert_eq!(compute("check", &check.given(&scope).unwrap(), &scope).unwrap_err(), "no");
        let map = |to: &str| {
            let map = step(json!({ "id": "a", "do": "map", "with": { "items": [1], "to": to } }));
            compute("map", &map.given(&scope).unwrap(), &scope).unwrap()["items"][0].clone()
        };
        assert_eq!((map("{{steps.file.text}}"), map("{{params.form}}")), (json!("{{params.key}}"), json!({ "a": 1 })));
        let keep = step(json!({ "id": "a", "do": "filter", "with": { "items": [1], "keep": "{{steps.file.text}}" } }));
        assert!(compute("filter", &keep.given(&scope).unwrap(), &scope).is_err(), "a condition is not made of what was read");
    }

    #[test]
    fn only_what_is_named_later_is_kept() {
        let steps = [
            step(json!({ "id": "a", "do": "set", "with": { "x": 1 } })),
            step(json!({ "id": "b", "do": "set", "with": { "x": "{{steps.a.x}}" } })),
            step(
                json!({ "id": "c", "do": "map", "when": { "value": "{{steps.b.x}}", "is": "not_empty" }, "with": { "items": [], "to": "{{item}} {{steps.a.x}}" } }),
            ),
        ];
        assert_eq!(used_behind(&steps, 1).into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(used_behind(&steps, 3).is_empty());
    }

    #[test]
    fn a_run_ends_early_and_chooses() {
        assert_eq!(done("stop", json!({ "seen": [1] })).unwrap(), json!({ "seen": [1], "stopped": true }));
        let found = done("choose", json!({ "if": { "value": [], "is": "empty" }, "then": 1, "otherwise": 2 })).unwrap();
        assert_eq!(found["value"], 1);
        let found = done("lines", json!({ "text": "Teapot: 10 EUR\n\nAbout", "keep": "eur", "beside": { "url": "x" } })).unwrap();
        assert_eq!(found["items"], json!([{ "line": "Teapot: 10 EUR", "url": "x" }]));
    }

    #[test]
    fn word_lists_find_words_and_not_parts_of_them() {
        let items = json!([{ "text": "The service was TERRIBLE." }, { "text": "terribly good" }, { "text": "no refund yet" }]);
        let with = json!({ "items": items, "field": "text", "classes": { "negative": ["terrible", "no refund"], "positive": ["good"] } });
        let found = done("classify", with).unwrap();
        assert_eq!(found["groups"], json!({ "negative": 2, "positive": 1 }));
        assert_eq!(found["items"][0]["because"], "terrible");
    }

    #[test]
    fn a_row_is_told_by_what_stands_in_it_and_not_by_its_columns() {
        let items = json!([{ "urgent": "no", "note": { "down": ["all fine"] } }, { "urgent": "no", "note": { "down": ["the shop is down"] } }]);
        let found = done("classify", json!({ "items": items, "classes": { "urgent": ["urgent", "down"] } })).unwrap();
        assert_eq!((&found["items"][0]["class"], &found["items"][1]["because"]), (&json!("other"), &json!("down")), "{found}");
    }

    #[test]
    fn more_than_a_step_takes_is_refused_and_not_cut_off() {
        let text = |count: usize, head: &str| format!("{head}{}", "1\n".repeat(count));
        for (does, more, head, what) in
            [("lines", json!({}), "", "lines"), ("parse", json!({ "as": "json_lines" }), "", "lines"), ("parse", json!({ "as": "csv" }), "n\n", "rows")]
        {
            let with = |count: usize| {
                let mut with = more.clone();
                with["text"] = json!(text(count, head));
                with
            };
            assert_eq!(done(does, with(AGENT_ITEMS_MAX)).unwrap()["count"], AGENT_ITEMS_MAX, "{more}");
            let why = done(does, with(AGENT_ITEMS_MAX + 1)).unwrap_err();
            assert_eq!(why, format!("{} {what} are more than the {AGENT_ITEMS_MAX} that a step takes", AGENT_ITEMS_MAX + 1));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_values_have_one_order(mut values in proptest::collection::vec("|null|[0-9]{1,3}|[0-9]{1,2}[a-z]|n/a|[0-9]\\.[0-9]|-[0-9]|inf|nan", 0..80)) {
            let items = |values: &[String]| -> Vec<Value> {
                values.iter().map(|text| if text == "null" { json!({ "n": null }) } else { json!({ "n": text }) }).collect()
            };
            let sorted = |values: &[String]| done("sort", json!({ "items": items(values), "by": "n" })).unwrap()["items"].clone();
            let one = sorted(&values);
            // Equal numbers keep the order in which they came, so only what they are worth is compared.
            let worth = |items: &Value| -> Vec<String> {
                let of = |item: &Value| as_number(&item["n"]).map_or_else(|| item["n"].to_string(), |number| number.to_string());
                items.as_array().unwrap().iter().map(of).collect()
            };
            values.reverse();
            proptest::prop_assert_eq!(worth(&one), worth(&sorted(&values)));
        }
    }

    #[test]
    fn numbers_come_before_texts_and_what_is_not_there_before_both() {
        let sorted = done("sort", json!({ "items": ["2", "10", "1a", null, "n/a", 7], "by": "" })).unwrap();
        assert_eq!(sorted["items"], json!([null, "2", 7, "10", "1a", "n/a"]));
    }

    #[test]
    fn tables_are_read_with_quotes_and_uneven_rows_are_refused() {
        let found = done("parse", json!({ "as": "csv", "text": "name,note\r\nAda,\"one, \"\"two\"\"\nthree\"\n" })).unwrap();
        assert_eq!(found["items"], json!([{ "name": "Ada", "note": "one, \"two\"\nthree" }]));
        assert!(done("parse", json!({ "as": "csv", "text": "a,b\n1\n" })).unwrap_err().contains("row 2"));
        assert!(done("parse", json!({ "as": "csv", "text": "a\n\"open" })).is_err());
    }

    #[test]
    fn items_are_kept_counted_and_sorted() {
        let items = json!([{ "n": 3, "k": "x" }, { "n": 10, "k": "y" }, { "n": 1, "k": "x" }]);
        let kept = done("filter", json!({ "items": items, "keep": { "value": "{{item.n}}", "is": "at_least", "than": 3 } })).unwrap();
        assert_eq!((&kept["count"], &kept["left_out"]), (&json!(2), &json!(1)));
        assert_eq!(done("count", json!({ "items": items, "by": "k" })).unwrap()["groups"], json!({ "x": 2, "y": 1 }));
        let sorted = done("sort", json!({ "items": items, "by": "n", "descending": true, "most": 2 })).unwrap();
        assert_eq!(sorted["items"], json!([{ "n": 10, "k": "y" }, { "n": 3, "k": "x" }]));
    }

    #[test]
    fn a_check_that_does_not_hold_fails_with_its_message() {
        let that = json!({ "value": 3, "is": "less", "than": 2 });
        assert_eq!(done("check", json!({ "that": that, "message": "too many" })).unwrap_err(), "too many");
    }
}
