//! Steps that turn lists into others, and into texts: cleaning, choosing fields, adding up, comparing with what was there before.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::step::{as_number, is_empty};
use super::value::{self, Scope};
use crate::csv_cell;
use crate::limits::AGENT_ITEMS_MAX;

/// Does one of these steps with what it is given. The error is for people.
pub(super) fn compute(does: &str, with: &Map<String, Value>, scope: &Scope) -> Result<Value, String> {
    let list = |name: &str| listed(with.get(name), name);
    let text = |name: &str| with.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    match does {
        "clean" => Ok(clean(list("items")?)),
        "first" => first(list("items")?, with.get("most")),
        "map" => map(list("items")?, with.get("to").unwrap_or(&Value::Null), scope),
        "unique" => Ok(unique(list("items")?, &names(with.get("by"))?)),
        "flat" => flat(list("items")?, text("of").unwrap_or_default()),
        "sum" => sum(list("items")?, text("of").ok_or("of must be the field that is added up")?, text("by")),
        "changes" => changes(list("before")?, list("after")?, &names(with.get("by"))?),
        "format" => format(list("items")?, text("as").unwrap_or("json"), &names(with.get("columns"))?),
        other => Err(format!("there is no step {other}")),
    }
}

/// A list; what is not there is an empty one, because a file that is not there yet has no items.
fn listed<'v>(value: Option<&'v Value>, name: &str) -> Result<&'v [Value], String> {
    match value {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) if items.len() <= AGENT_ITEMS_MAX => Ok(items),
        Some(Value::Array(_)) => Err(format!("{name} has more than {AGENT_ITEMS_MAX} items")),
        Some(_) => Err(format!("{name} must be a list")),
    }
}

/// One name of a field, or several.
fn names(value: Option<&Value>) -> Result<Vec<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(name)) if name.is_empty() => Ok(Vec::new()),
        Some(Value::String(name)) => Ok(vec![name.clone()]),
        Some(Value::Array(names)) => {
            let read = names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
            read.ok_or_else(|| "names of fields must be texts".to_owned())
        }
        Some(other) => Err(format!("{other} is no name of a field")),
    }
}

/// No more than so many, in their order.
fn first(items: &[Value], most: Option<&Value>) -> Result<Value, String> {
    let most = most.and_then(as_number).filter(|most| *most >= 0.0).ok_or("most must be how many are taken")?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is not negative, and what is too large for a list takes all of it")]
    let taken = items.get(..most as usize).unwrap_or(items);
    Ok(json!({ "count": taken.len(), "left_out": items.len() - taken.len(), "items": taken }))
}

/// Texts without spaces around them and with single ones within, and no items of which nothing is left.
fn clean(items: &[Value]) -> Value {
    fn tidy(value: &Value) -> Value {
        match value {
            Value::String(text) => Value::from(text.split_whitespace().collect::<Vec<_>>().join(" ")),
            Value::Object(fields) => Value::Object(fields.iter().map(|(name, inner)| (name.trim().to_owned(), tidy(inner))).collect()),
            other => other.clone(),
        }
    }
    let bare = |value: &Value| match value {
        Value::Object(fields) => fields.values().all(is_empty),
        other => is_empty(other),
    };
    let kept: Vec<Value> = items.iter().map(tidy).filter(|item| !bare(item)).collect();
    json!({ "count": kept.len(), "left_out": items.len() - kept.len(), "items": kept })
}

fn map(items: &[Value], form: &Value, scope: &Scope) -> Result<Value, String> {
    let items = match form {
        // Without a form they stay as they are.
        Value::Null => items.to_vec(),
        _ => items.iter().enumerate().map(|(index, item)| value::render(form, &scope.with_numbered(item, index))).collect::<Result<Vec<_>, _>>()?,
    };
    Ok(json!({ "count": items.len(), "items": items }))
}

/// What makes an item the same as another: the whole of it, or these fields.
fn key(item: &Value, by: &[String]) -> String {
    if by.is_empty() {
        return item.to_string();
    }
    by.iter().map(|path| value::at(item, path).map(Value::to_string).unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn unique(items: &[Value], by: &[String]) -> Value {
    let mut seen = BTreeSet::new();
    let kept: Vec<&Value> = items.iter().filter(|item| seen.insert(key(item, by))).collect();
    json!({ "count": kept.len(), "left_out": items.len() - kept.len(), "items": kept })
}

/// One list of several: each item is a list, or has one.
fn flat(items: &[Value], of: &str) -> Result<Value, String> {
    let mut all = Vec::new();
    for item in items {
        match value::at(item, of) {
            Some(Value::Array(inner)) => all.extend(inner.iter().cloned()),
            // A step that was left out, or that failed and went on, has none.
            None | Some(Value::Null) => {}
            Some(other) => all.push(other.clone()),
        }
        if all.len() > AGENT_ITEMS_MAX {
            return Err(format!("together they are more than {AGENT_ITEMS_MAX} items"));
        }
    }
    Ok(json!({ "count": all.len(), "items": all }))
}

/// Numbers that are added up.
#[derive(Default)]
struct Total {
    count: u64,
    sum: f64,
    least: Option<f64>,
    most: Option<f64>,
}

impl Total {
    fn add(&mut self, number: f64) {
        self.count += 1;
        self.sum += number;
        self.least = Some(self.least.map_or(number, |least| least.min(number)));
        self.most = Some(self.most.map_or(number, |most| most.max(number)));
    }

    fn told(&self) -> Map<String, Value> {
        #[expect(clippy::cast_precision_loss, reason = "there are at most some thousands")]
        let mean = (self.count > 0).then(|| plain(self.sum / self.count as f64));
        let mut told = Map::new();
        told.insert("count".to_owned(), json!(self.count));
        told.insert("sum".to_owned(), plain(self.sum));
        told.insert("least".to_owned(), self.least.map_or(Value::Null, plain));
        told.insert("most".to_owned(), self.most.map_or(Value::Null, plain));
        told.insert("mean".to_owned(), mean.unwrap_or(Value::Null));
        told
    }
}

/// A number as people write it: whole ones without a point, others with at most six digits behind it.
fn plain(number: f64) -> Value {
    let rounded = (number * 1e6).round() / 1e6;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough, both of which are looked at first")]
    if rounded.fract() == 0.0 && rounded.abs() < 9e15 { json!(rounded as i64) } else { json!(rounded) }
}

fn sum(items: &[Value], of: &str, by: Option<&str>) -> Result<Value, String> {
    let (mut all, mut groups, mut without) = (Total::default(), BTreeMap::<String, Total>::new(), 0_u64);
    for item in items {
        let Some(number) = value::at(item, of).and_then(as_number).filter(|number| number.is_finite()) else {
            without += 1;
            continue;
        };
        all.add(number);
        if let Some(by) = by {
            groups.entry(value::at(item, by).map(value::to_text).unwrap_or_default()).or_default().add(number);
        }
    }
    if all.count == 0 && !items.is_empty() {
        return Err(format!("none of {} items has a number in {of}", items.len()));
    }
    let groups: Vec<Value> = groups
        .into_iter()
        .map(|(group, total)| {
            let mut told = total.told();
            told.insert("group".to_owned(), Value::from(group));
            Value::Object(told)
        })
        .collect();
    let mut told = all.told();
    told.insert("without_number".to_owned(), json!(without));
    told.insert("groups".to_owned(), Value::Array(groups));
    Ok(Value::Object(told))
}

/// What came, went and is different, told apart by these fields.
fn changes(before: &[Value], after: &[Value], by: &[String]) -> Result<Value, String> {
    // Items that cannot be told apart would stand for each other.
    let unknown = |item: &&Value| !by.is_empty() && by.iter().all(|path| value::at(item, path).is_none_or(Value::is_null));
    if after.iter().any(|item| unknown(&item)) {
        return Err(format!("an item has no {} by which it is known again", by.join(", ")));
    }
    let index = |items: &[Value]| items.iter().map(|item| (key(item, by), item.clone())).collect::<BTreeMap<_, _>>();
    let (old, new) = (index(before), index(after));
    let added: Vec<&Value> = new.iter().filter(|(key, _)| !old.contains_key(*key)).map(|(_, item)| item).collect();
    let gone: Vec<&Value> = old.iter().filter(|(key, _)| !new.contains_key(*key)).map(|(_, item)| item).collect();
    let differs = |key: &String, item: &Value| old.get(key).filter(|was| *was != item).map(|was| json!({ "before": was, "after": item }));
    let changed: Vec<Value> = new.iter().filter_map(|(key, item)| differs(key, item)).collect();
    let count = added.len() + gone.len() + changed.len();
    Ok(json!({ "count": count, "added": added, "gone": gone, "changed": changed }))
}

/// The columns of a table: those that were named, or all that items have, in the order in which they come up.
fn columns(items: &[Value], named: &[String]) -> Vec<String> {
    if !named.is_empty() {
        return named.to_vec();
    }
    let mut found: Vec<String> = Vec::new();
    for name in items.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if !found.contains(name) {
            found.push(name.clone());
        }
    }
    if found.is_empty() { vec![String::new()] } else { found }
}

/// Texts, each on a line of its own.
fn lines(texts: impl Iterator<Item = String>) -> String {
    texts.flat_map(|text| [text, "\n".to_owned()]).collect()
}

fn format(items: &[Value], form: &str, named: &[String]) -> Result<Value, String> {
    let cells = |item: &Value, columns: &[String]| -> Vec<String> {
        columns.iter().map(|column| if column.is_empty() { Some(item) } else { value::at(item, column) }.map(value::to_text).unwrap_or_default()).collect()
    };
    let text = match form {
        "json" => serde_json::to_string_pretty(items).map_err(|error| error.to_string())?,
        "json_lines" => lines(items.iter().map(Value::to_string)),
        "lines" => lines(items.iter().map(value::to_text)),
        "csv" => {
            let columns = columns(items, named);
            let quoted = |cell: &String| {
                // A number is no formula, whatever its sign, and neither is a sign alone: whoever reads the table again reads the same.
                let is_none = cell.len() < 2 || cell.parse::<f64>().is_ok_and(f64::is_finite);
                let cell = if is_none && !cell.contains(['"', ',', '\n', '\r']) { cell.clone() } else { csv_cell(cell) };
                // What is in quotes already stands for itself; spaces at an end would be lost.
                let bare = !cell.starts_with('"') && (cell.starts_with(' ') || cell.ends_with(' '));
                if bare { format!("\"{cell}\"") } else { cell }
            };
            let line = |cells: &[String]| format!("{}\n", cells.iter().map(quoted).collect::<Vec<_>>().join(","));
            let rows = items.iter().map(|item| line(&cells(item, &columns))).collect::<String>();
            format!("{}{rows}", line(&columns))
        }
        "markdown" => {
            let columns = columns(items, named);
            let line = |cells: &[String]| {
                let safe: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")).collect();
                format!("| {} |\n", safe.join(" | "))
            };
            let rows = items.iter().map(|item| line(&cells(item, &columns))).collect::<String>();
            format!("{}|{}\n{rows}", line(&columns), " --- |".repeat(columns.len()))
        }
        other => return Err(format!("{other:?} is none of json, json_lines, lines, csv and markdown")),
    };
    Ok(json!({ "text": text }))
}

#[cfg(test)]
mod tests {
    use super::super::step::compute;
    use super::*;

    fn done(does: &str, with: Value) -> Result<Value, String> {
        let mut scope = Scope::default();
        scope.put("params", json!({ "unit": "EUR" }));
        compute(does, with.as_object().unwrap(), &scope)
    }

    #[test]
    fn no_more_than_so_many_are_taken() {
        let taken = done("first", json!({ "items": [3, 1, 2], "most": 2 })).unwrap();
        assert_eq!((&taken["items"], &taken["left_out"]), (&json!([3, 1]), &json!(1)), "in their order");
        assert_eq!(done("first", json!({ "items": [3], "most": "9" })).unwrap()["count"], 1);
        assert_eq!(done("first", json!({ "items": [3], "most": 0 })).unwrap()["count"], 0);
        assert!(done("first", json!({ "items": [3] })).is_err() && done("first", json!({ "items": [3], "most": -1 })).is_err());
    }

    #[test]
    fn items_are_cleaned_and_made_into_others() {
        let found = done("clean", json!({ "items": [{ " name ": "  Ada   L. ", "n": 1 }, { "name": "  ", "n": "" }] })).unwrap();
        assert_eq!((&found["items"], &found["left_out"]), (&json!([{ "name": "Ada L.", "n": 1 }]), &json!(1)));
        let form = json!({ "who": "{{item.name}}", "price": "{{item.n}} {{params.unit}}", "at": "{{index}}" });
        let found = done("map", json!({ "items": [{ "name": "{{params.unit}}", "n": 3 }], "to": form })).unwrap();
        assert_eq!(found["items"], json!([{ "who": "{{params.unit}}", "price": "3 EUR", "at": 0 }]), "what is filled in is not filled in again");
        assert_eq!(done("unique", json!({ "items": [{ "a": 1, "b": 1 }, { "a": 1, "b": 2 }], "by": "a" })).unwrap()["count"], 1);
        assert_eq!(
            done("flat", json!({ "items": [{ "items": [1, 2] }, { "error": "x" }, { "items": [3] }], "of": "items" })).unwrap()["items"],
            json!([1, 2, 3])
        );
    }

    #[test]
    fn numbers_are_added_up_in_groups() {
        let items = json!([{ "k": "x", "n": "1.5" }, { "k": "y", "n": 2 }, { "k": "x", "n": 4 }, { "k": "x", "n": "none" }]);
        let found = done("sum", json!({ "items": items, "of": "n", "by": "k" })).unwrap();
        assert_eq!((&found["sum"], &found["count"], &found["without_number"]), (&json!(7.5), &json!(3), &json!(1)));
        assert_eq!(found["groups"][0], json!({ "group": "x", "count": 2, "sum": 5.5, "least": 1.5, "most": 4, "mean": 2.75 }));
        assert!(done("sum", json!({ "items": [{ "n": "a" }], "of": "n" })).unwrap_err().contains("number"));
        assert_eq!(done("sum", json!({ "items": [], "of": "n" })).unwrap()["sum"], 0);
    }

    #[test]
    fn what_changed_is_told_apart() {
        let (before, after) = (json!([{ "id": 1, "n": 1 }, { "id": 2, "n": 1 }]), json!([{ "id": 2, "n": 5 }, { "id": 3, "n": 1 }]));
        let found = done("changes", json!({ "before": before, "after": after, "by": "id" })).unwrap();
        assert_eq!(found["count"], 3);
        assert_eq!((&found["added"][0]["id"], &found["gone"][0]["id"], &found["changed"][0]["after"]["n"]), (&json!(3), &json!(1), &json!(5)));
        assert_eq!(done("changes", json!({ "before": null, "after": [1] })).unwrap()["added"], json!([1]));
        assert!(done("changes", json!({ "after": [{ "n": 1 }, { "n": 2 }], "by": "id" })).unwrap_err().contains("known again"));
    }

    #[test]
    fn tables_are_written_so_that_they_are_read_as_the_same() {
        let items = json!([{ "a": "one, \"two\"\nthree", "b": " x" }, { "a": "|", "b": 2 }]);
        let text = done("format", json!({ "items": items, "as": "csv" })).unwrap()["text"].clone();
        let read = done("parse", json!({ "text": text, "as": "csv" })).unwrap();
        assert_eq!(read["items"], json!([{ "a": "one, \"two\"\nthree", "b": " x" }, { "a": "|", "b": "2" }]));
        let scraped = json!([{ "line": "=HYPERLINK(\"http://x\",\"here\")", "n": -5 }, { "line": "-1.5", "n": "+49 30" }, { "line": "@a", "n": " =1" }, { "line": "-", "n": "," }]);
        let text = done("format", json!({ "items": scraped, "as": "csv", "columns": ["line", "n"] })).unwrap()["text"].clone();
        let safe = "line,n\n\"'=HYPERLINK(\"\"http://x\"\",\"\"here\"\")\",-5\n-1.5,'+49 30\n'@a,\" =1\"\n-,\",\"\n";
        assert_eq!(text, safe, "no cell is a formula, and numbers stay what they are");
        let table = done("format", json!({ "items": items, "as": "markdown", "columns": ["b", "a"] })).unwrap();
        assert_eq!(table["text"], "| b | a |\n| --- | --- |\n| x | one, \"two\" three |\n| 2 | \\| |\n");
        assert_eq!(done("format", json!({ "items": ["a", "b"], "as": "lines" })).unwrap()["text"], "a\nb\n");
        assert!(done("format", json!({ "items": [], "as": "xml" })).is_err());
    }
}
