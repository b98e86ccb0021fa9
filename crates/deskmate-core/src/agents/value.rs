//! Values that pass between steps: `{{path}}` in what a step is given stands for one. Nothing is evaluated, only looked up, and what
//! is looked up is never looked at again for further paths.

use std::sync::Arc;

use serde_json::{Map, Value};

/// How much a filled-in value may hold, as JSON.
const FILLED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What paths can name. What all items of a loop have in common is shared among them: there may be thousands.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    common: Arc<Map<String, Value>>,
    of_item: Map<String, Value>,
}

impl Scope {
    /// Puts a value under a name.
    pub fn put(&mut self, name: &str, value: Value) {
        Arc::make_mut(&mut self.common).insert(name.to_owned(), value);
    }

    /// Puts what came of a step where later ones find it.
    pub fn put_step(&mut self, id: &str, value: Value) {
        let steps = Arc::make_mut(&mut self.common).entry("steps").or_insert_with(|| Value::Object(Map::new()));
        if let Some(steps) = steps.as_object_mut() {
            steps.insert(id.to_owned(), value);
        }
    }

    /// The same for one item of a loop.
    #[must_use]
    pub fn with_item(&self, item: &Value) -> Self {
        let mut of_item = self.of_item.clone();
        of_item.insert("item".to_owned(), item.clone());
        Self { common: Arc::clone(&self.common), of_item }
    }

    /// The same for one item of a loop, with its number.
    #[must_use]
    pub fn with_numbered(&self, item: &Value, index: usize) -> Self {
        let mut own = self.with_item(item);
        own.of_item.insert("index".to_owned(), Value::from(index));
        own
    }

    fn find(&self, path: &str) -> Option<&Value> {
        let (root, rest) = path.split_once('.').unwrap_or((path, ""));
        at(self.of_item.get(root).or_else(|| self.common.get(root))?, rest)
    }
}

/// A part of a text: as it is, or a path.
enum Part<'t> {
    Plain(&'t str),
    Path(&'t str),
}

fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        let (path, behind) = after.split_once("}}").ok_or_else(|| format!("{{{{ is not closed in {text:?}"))?;
        if !before.is_empty() {
            parts.push(Part::Plain(before));
        }
        parts.push(Part::Path(path.trim()));
        rest = behind;
    }
    if !rest.is_empty() {
        parts.push(Part::Plain(rest));
    }
    Ok(parts)
}

/// All paths that a value names.
pub(super) fn paths(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::String(text) => Ok(parts(text)?.into_iter().filter_map(|part| if let Part::Path(path) = part { Some(path.to_owned()) } else { None }).collect()),
        Value::Array(items) => items.iter().map(paths).collect::<Result<Vec<_>, _>>().map(|all| all.concat()),
        Value::Object(fields) => fields.values().map(paths).collect::<Result<Vec<_>, _>>().map(|all| all.concat()),
        _ => Ok(Vec::new()),
    }
}

/// The value at a path below another: names and numbers of list items, with points between them.
pub(super) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut found = value;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        found = match found {
            Value::Object(fields) => fields.get(part)?,
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(found)
}

/// A value as it stands in a text.
pub(super) fn to_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Fills in the paths of a value. A text that is one path becomes that value, of whatever type; what is not there is nothing.
pub fn render(value: &Value, scope: &Scope) -> Result<Value, String> {
    let mut room = FILLED_BYTES_MAX;
    fill(value, scope, &mut room)
}

fn fill(value: &Value, scope: &Scope, room: &mut usize) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => {
            let found = fill_text(text, scope)?;
            let size = found.to_string().len();
            *room = room.checked_sub(size).ok_or("what it is given grows beyond 4 MiB")?;
            found
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| fill(item, scope, room)).collect::<Result<_, _>>()?),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, inner)| Ok((name.clone(), fill(inner, scope, room)?))).collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

fn fill_text(text: &str, scope: &Scope) -> Result<Value, String> {
    let parts = parts(text)?;
    if let [Part::Path(path)] = parts.as_slice() {
        return Ok(scope.find(path).cloned().unwrap_or(Value::Null));
    }
    let mut out = String::with_capacity(text.len());
    for part in parts {
        match part {
            Part::Plain(plain) => out.push_str(plain),
            Part::Path(path) => out.push_str(&scope.find(path).map(to_text).unwrap_or_default()),
        }
        if out.len() > FILLED_BYTES_MAX {
            return Err("what it is given grows beyond 4 MiB".to_owned());
        }
    }
    Ok(Value::String(out))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope() -> Scope {
        let mut scope = Scope::default();
        scope.put("params", json!({ "to": "ada", "n": 3 }));
        scope.put_step("read", json!({ "items": [{ "name": "{{params.to}}" }], "count": 1 }));
        scope
    }

    #[test]
    fn one_path_keeps_its_type_and_a_text_around_it_makes_it_text() {
        let found =
            render(&json!({ "a": "{{params.n}}", "b": "n = {{ params.n }}!", "c": "{{steps.read.items.0.name}}", "d": "{{nothing.here}}" }), &scope()).unwrap();
        assert_eq!(found, json!({ "a": 3, "b": "n = 3!", "c": "{{params.to}}", "d": null }));
    }

    #[test]
    fn what_was_filled_in_is_not_filled_in_again() {
        assert_eq!(render(&json!("x {{steps.read.items.0.name}}"), &scope()).unwrap(), json!("x {{params.to}}"));
    }

    #[test]
    fn what_does_not_close_is_refused() {
        assert!(render(&json!("{{params.n"), &scope()).is_err());
    }

    #[test]
    fn growth_is_bounded() {
        let mut scope = Scope::default();
        scope.put("params", json!({ "long": "x".repeat(1_000_000) }));
        let many: Vec<&str> = std::iter::repeat_n("{{params.long}}", 10).collect();
        assert!(render(&json!(many), &scope).unwrap_err().contains("4 MiB"));
    }
}
