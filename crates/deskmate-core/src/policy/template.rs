//! A policy with gaps: a text whose rules have `${budget}` where a value belongs, with what may stand there and what does if
//! nobody says. Filling happens in the tree that was read, and in a condition as a value that is written out, so nothing that is
//! filled in can become a part of the language.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::yaml::{self, Node, Reader, Table, Yaml, below, short};
use super::{Policy, Problem, rules};
use crate::limits::{NAME_CHARS_MAX, POLICY_TEXT_BYTES_MAX, TITLE_CHARS_MAX};

/// Gaps of one template.
const PARAMETERS_MAX: usize = 50;
/// Entries of a list that is filled in.
const LIST_MAX: usize = 100;
/// A text that is filled in.
const TEXT_BYTES_MAX: usize = 200;

/// What fills a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterKind {
    /// A number.
    Number,
    /// A whole number.
    Count,
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// Yes or no.
    Flag,
}

const KINDS: [(&str, ParameterKind); 5] = [
    ("number", ParameterKind::Number),
    ("count", ParameterKind::Count),
    ("text", ParameterKind::Text),
    ("texts", ParameterKind::Texts),
    ("flag", ParameterKind::Flag),
];

/// A gap.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What fills it.
    pub kind: ParameterKind,
    /// What stands there if nobody says.
    pub default: Value,
    /// The least number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The greatest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// What it is for.
    pub about: String,
}

/// A policy with gaps.
#[derive(Clone, Debug)]
pub struct Template {
    /// Its name.
    pub id: String,
    /// Its title for people.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// Such as `security`, `privacy`, `compliance`, `operational` or `governance`.
    pub category: String,
    /// The framework that it helps with.
    pub framework: Option<String>,
    /// Words under which it is found.
    pub tags: Vec<String>,
    /// What can be filled in.
    pub parameters: Vec<Parameter>,
    rules: Node,
    tests: Option<Node>,
    text: String,
    /// The policy with what stands in its gaps if nobody says, once it was asked for.
    usual: OnceLock<Policy>,
}

impl Template {
    /// Reads a template: a table `template`, `rules` and `tests`. It has to be right with what stands in its gaps if nobody
    /// says.
    pub fn read(text: &str) -> Result<Self, Vec<Problem>> {
        if text.len() > POLICY_TEXT_BYTES_MAX {
            let message = format!("the text is {} bytes long: write at most {POLICY_TEXT_BYTES_MAX}", text.len());
            return Err(vec![Problem { line: 1, column: 1, path: String::new(), message }]);
        }
        let root = yaml::parse(text).map_err(|problem| vec![problem])?;
        let mut reader = Reader::new(text);
        let template = reader.template(&root);
        let mut problems = reader.problems;
        if let Some(template) = template.filter(|_| problems.is_empty()) {
            match template.fill(&template.id, &Map::new()) {
                Ok(_) => return Ok(template),
                Err(more) => problems.extend(more),
            }
        }
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Err(problems)
    }

    /// Its text, as it would stand in a file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The policy with values in its gaps; where none is given stands what stands there if nobody says. Its cases come with it
    /// unless another value was given, because they were written for those.
    pub fn fill(&self, id: &str, values: &Map<String, Value>) -> Result<Policy, Vec<Problem>> {
        let filled = self.values(values)?;
        let is_usual = self.parameters.iter().all(|parameter| filled.get(&parameter.name) == Some(&parameter.default));
        if is_usual && let Some(usual) = self.usual.get() {
            return Ok(Policy { id: id.to_owned(), ..usual.clone() });
        }
        let policy = self.filled(id, &filled, is_usual)?;
        if is_usual {
            drop(self.usual.set(policy.clone()));
        }
        Ok(policy)
    }

    fn filled(&self, id: &str, values: &BTreeMap<String, Value>, is_usual: bool) -> Result<Policy, Vec<Problem>> {
        let mut used = BTreeSet::new();
        let mut reader = Reader::new(&self.text);
        let mut gaps = Gaps { values, used: &mut used };
        let rules = gaps.fill(&mut reader, &self.rules, "rules", false);
        let tests = self.tests.as_ref().map(|tests| gaps.fill(&mut reader, tests, "tests", false));
        for parameter in self.parameters.iter().filter(|parameter| !used.contains(&parameter.name)) {
            reader.problem(self.rules.at, "rules", format!("no rule has `${{{}}}`: use this parameter or leave it out", parameter.name));
        }
        let rules = rules.map(|rules| reader.rules(&rules, "rules")).unwrap_or_default();
        let tests = tests.flatten().map(|tests| reader.cases(&tests, "tests")).filter(|_| is_usual).unwrap_or_default();
        let policy = Policy {
            id: id.to_owned(),
            description: self.description.clone(),
            category: Some(self.category.clone()),
            framework: self.framework.clone(),
            rules,
            tests,
        };
        let mut problems = reader.problems;
        if problems.is_empty() {
            problems.extend(rules::policy(id, &policy, "policy"));
        }
        if problems.is_empty() { Ok(policy) } else { Err(problems) }
    }

    /// What stands in each gap, checked.
    pub fn values(&self, given: &Map<String, Value>) -> Result<BTreeMap<String, Value>, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut problem = |name: &str, message: String| problems.push(Problem { line: 0, column: 0, path: below("values", name), message });
        let known: Vec<&str> = self.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        for name in given.keys().filter(|name| !known.contains(&name.as_str())) {
            let hint = yaml::nearest(name, &known).map_or_else(|| format!("there are {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
            let hint = if known.is_empty() { "this template has none".to_owned() } else { hint };
            problem(&short(name), format!("`{}` is no parameter of {}: {hint}", short(name), self.id));
        }
        let mut values = BTreeMap::new();
        for parameter in &self.parameters {
            match given.get(&parameter.name).filter(|value| !value.is_null()) {
                None => {
                    values.insert(parameter.name.clone(), parameter.default.clone());
                }
                Some(value) => match parameter.takes(value) {
                    Ok(value) => {
                        values.insert(parameter.name.clone(), value);
                    }
                    Err(message) => problem(&parameter.name, message),
                },
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }
}

impl Parameter {
    /// A value in one form, or what is wrong with it.
    fn takes(&self, value: &Value) -> Result<Value, String> {
        match (self.kind, value) {
            (ParameterKind::Number, Value::Number(number)) => {
                let number = number.as_f64().filter(|number| number.is_finite()).ok_or("write a number")?;
                self.within(number)?;
                Ok(Value::from(number))
            }
            (ParameterKind::Count, Value::Number(number)) => {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and far below 2^63")]
                let of_float = |number: f64| (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64);
                let whole = number.as_i64().or_else(|| number.as_f64().and_then(of_float));
                let whole = whole.ok_or("write a whole number")?;
                #[expect(clippy::cast_precision_loss, reason = "bounds are far below 2^53")]
                self.within(whole as f64)?;
                Ok(Value::from(whole))
            }
            (ParameterKind::Text, Value::String(text)) => text_problem(text).map_or_else(|| Ok(value.clone()), Err),
            (ParameterKind::Texts, Value::Array(list)) if list.len() > LIST_MAX => {
                Err(format!("{} entries are too many: write at most {LIST_MAX}", list.len()))
            }
            (ParameterKind::Texts, Value::Array(list)) if !list.is_empty() => {
                for entry in list {
                    let text = entry.as_str().ok_or("write a list of texts")?;
                    text_problem(text).map_or(Ok(()), Err)?;
                }
                Ok(value.clone())
            }
            (ParameterKind::Flag, Value::Bool(_)) => Ok(value.clone()),
            (kind, _) => Err(format!(
                "write {}",
                match kind {
                    ParameterKind::Number => "a number",
                    ParameterKind::Count => "a whole number",
                    ParameterKind::Text => "a text",
                    ParameterKind::Texts => "a list of texts, with at least one",
                    ParameterKind::Flag => "true or false",
                }
            )),
        }
    }

    fn within(&self, number: f64) -> Result<(), String> {
        let (min, max) = (self.min.unwrap_or(-1e15), self.max.unwrap_or(1e15));
        if (min..=max).contains(&number) { Ok(()) } else { Err(format!("{number} is out of bounds: write a number from {min} to {max}")) }
    }
}

fn text_problem(text: &str) -> Option<String> {
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        return Some(format!("a text has 1 to {TEXT_BYTES_MAX} bytes"));
    }
    text.contains(char::is_control).then(|| "a text has no control characters".to_owned())
}

impl Reader<'_> {
    fn template(&mut self, root: &Node) -> Option<Template> {
        let mut table = self.table(root, "")?;
        let head = table.get("template");
        let (rules, tests) = (table.get("rules"), table.get("tests"));
        for (key, node, example) in [("template", head, "{ id: my-policy, title: My policy, … }"), ("rules", rules, "[…]")] {
            if node.is_none() {
                self.missing(&table, key, example);
            }
        }
        self.finish(&table);
        let mut table = self.table(head?, "template")?;
        let id = self.need_text(&mut table, "id", NAME_CHARS_MAX, "rate-limiting").map(str::to_owned);
        if let Some(problem) = id.as_deref().and_then(rules::name_problem) {
            self.problem(table.at, &table.at("id"), problem);
        }
        let title = self.need_text(&mut table, "title", TITLE_CHARS_MAX, "Rate limits").map(str::to_owned);
        let description = self.need_text(&mut table, "description", 4 * TITLE_CHARS_MAX, "What it is for").map(str::to_owned);
        let category = self.need_text(&mut table, "category", NAME_CHARS_MAX, "security").map(str::to_owned);
        let framework = self.text(&mut table, "framework", NAME_CHARS_MAX).map(str::to_owned);
        let tags = table.get("tags").map(|node| self.texts(node, "template.tags", NAME_CHARS_MAX, 50)).unwrap_or_default();
        let parameters = table.get("parameters").map(|node| self.parameters(node)).unwrap_or_default();
        self.finish(&table);
        Some(Template {
            id: id?,
            title: title?,
            description: description?,
            category: category?,
            framework,
            tags: tags.into_iter().map(|(tag, _)| tag).collect(),
            parameters,
            rules: rules?.clone(),
            tests: tests.cloned(),
            text: self.text.to_owned(),
            usual: OnceLock::new(),
        })
    }

    fn parameters(&mut self, node: &Node) -> Vec<Parameter> {
        let path = "template.parameters";
        let Some(list) = self.list(node, path) else { return Vec::new() };
        if list.len() > PARAMETERS_MAX {
            self.problem(node.at, path, format!("{} parameters are too many: write at most {PARAMETERS_MAX}", list.len()));
            return Vec::new();
        }
        let mut parameters: Vec<Parameter> = Vec::new();
        for (number, entry) in list.iter().enumerate() {
            let path = format!("{path}[{number}]");
            let Some(table) = self.table(entry, &path) else { continue };
            let Some(parameter) = self.parameter(table) else { continue };
            if parameters.iter().any(|known| known.name == parameter.name) {
                self.problem(entry.at, &path, format!("the name `{}` is taken by another parameter", short(&parameter.name)));
            }
            parameters.push(parameter);
        }
        parameters
    }

    fn parameter(&mut self, mut table: Table<'_>) -> Option<Parameter> {
        let name = self.need_text(&mut table, "name", NAME_CHARS_MAX, "calls_per_minute").map(str::to_owned);
        if let Some(name) = name.as_deref().filter(|name| !is_name(name)) {
            self.problem(table.at, &table.at("name"), format!("`{}` is no name: write small letters, digits and `_`", short(name)));
        }
        let kind = if let Some(node) = table.get("kind") {
            self.word(node, &table.at("kind"), &KINDS)
        } else {
            self.missing(&table, "kind", "count");
            None
        };
        let bound = |reader: &mut Self, table: &mut Table<'_>, key| {
            let path = table.at(key);
            table.get(key).and_then(|node| reader.number(node, &path, -1e15, 1e15))
        };
        let (min, max) = (bound(self, &mut table, "min"), bound(self, &mut table, "max"));
        let about = self.need_text(&mut table, "about", TITLE_CHARS_MAX, "What it is for").map(str::to_owned);
        let default = if let Some(node) = table.get("default") {
            self.json(node, &table.at("default"))
        } else {
            self.missing(&table, "default", "100");
            None
        };
        self.finish(&table);
        let mut parameter = Parameter { name: name?, kind: kind?, default: default?, min, max, about: about? };
        match parameter.takes(&parameter.default) {
            Ok(value) => parameter.default = value,
            Err(problem) => self.problem(table.at, &table.at("default"), problem),
        }
        Some(parameter)
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Gaps under filling.
struct Gaps<'v> {
    values: &'v BTreeMap<String, Value>,
    used: &'v mut BTreeSet<String>,
}

impl Gaps<'_> {
    /// A part of the tree with its gaps filled. In a condition every value is written out as CEL.
    fn fill(&mut self, reader: &mut Reader<'_>, node: &Node, path: &str, is_condition: bool) -> Option<Node> {
        let value = match &node.value {
            Yaml::Text(text) if text.contains("${") => return self.text(reader, node, text, path, is_condition),
            Yaml::List(list) => {
                let mut filled = Vec::new();
                for (number, entry) in list.iter().enumerate() {
                    let entry_path = format!("{path}[{number}]");
                    let node = self.fill(reader, entry, &entry_path, is_condition)?;
                    match (&entry.value, node.value) {
                        // A gap in a list takes a list's entries.
                        (Yaml::Text(_), Yaml::List(entries)) => filled.extend(entries),
                        (_, value) => filled.push(Node { value, at: node.at }),
                    }
                }
                Yaml::List(filled)
            }
            Yaml::Table(entries) => {
                let mut filled = Vec::new();
                for (key, entry) in entries {
                    filled.push((key.clone(), self.fill(reader, entry, &below(path, &key.name), key.name == "when")?));
                }
                Yaml::Table(filled)
            }
            other => other.clone(),
        };
        Some(Node { value, at: node.at })
    }

    fn text(&mut self, reader: &mut Reader<'_>, node: &Node, text: &str, path: &str, is_condition: bool) -> Option<Node> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                reader.problem(node.at, path, "a gap has no end: write ${name}");
                return None;
            };
            let Some(value) = self.values.get(name) else {
                let known: Vec<&str> = self.values.keys().map(String::as_str).collect();
                let hint = yaml::nearest(name, &known).map_or_else(|| "name it under `parameters`".to_owned(), |near| format!("did you mean `{near}`?"));
                reader.problem(node.at, path, format!("`${{{}}}` is no parameter: {hint}", short(name)));
                return None;
            };
            self.used.insert(name.to_owned());
            if !is_condition && before.is_empty() && after.is_empty() && filled.is_empty() {
                return Some(Node { value: tree(value, node), at: node.at });
            }
            filled.push_str(&if is_condition { literal(value) } else { said(value) });
            rest = after;
        }
        filled.push_str(rest);
        Some(Node { value: Yaml::Text(filled), at: node.at })
    }
}

/// A value as it stands in a document.
fn tree(value: &Value, at: &Node) -> Yaml {
    match value {
        Value::Null => Yaml::Null,
        Value::Bool(value) => Yaml::Bool(*value),
        Value::Number(number) => number.as_i64().map_or_else(|| Yaml::Float(number.as_f64().unwrap_or(0.0)), Yaml::Int),
        Value::String(text) => Yaml::Text(text.clone()),
        Value::Array(list) => Yaml::List(list.iter().map(|entry| Node { value: tree(entry, at), at: at.at }).collect()),
        Value::Object(_) => Yaml::Table(Vec::new()),
    }
}

/// A value as it is written out in a condition.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        Value::Array(list) => format!("[{}]", list.iter().map(literal).collect::<Vec<_>>().join(", ")),
        // A number that is not whole stays so: 10.0 and not 10.
        Value::Number(number) if number.is_f64() => format!("{:?}", number.as_f64().unwrap_or(0.0)),
        other => other.to_string(),
    }
}

/// A value in words.
fn said(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(said).collect::<Vec<_>>().join(", "),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string()),
        other => other.to_string(),
    }
}
