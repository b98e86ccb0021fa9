//! TOML, changed in place.

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value as TomlValue};

use super::document::Outcome;

pub(super) struct TomlText {
    document: DocumentMut,
}

impl TomlText {
    pub(super) fn parse(text: &str) -> Outcome<Self> {
        let document = text.parse().map_err(|error: toml_edit::TomlError| format!("is not valid TOML: {}", error.to_string().trim_end()))?;
        Ok(Self { document })
    }

    pub(super) fn text(&self) -> String {
        self.document.to_string()
    }

    pub(super) fn get(&self, path: &[&str]) -> Outcome<Option<Value>> {
        let mut item: &Item = self.document.as_item();
        for (depth, key) in path.iter().enumerate() {
            let table = item.as_table_like().ok_or_else(|| no_table(path, depth))?;
            item = match table.get(key) {
                Some(found) if !found.is_none() => found,
                _ => return Ok(None),
            };
        }
        Ok(Some(of_item(item)))
    }

    /// The first two levels become tables with a heading, what is below them stands on one line.
    pub(super) fn set(&mut self, path: &[&str], value: &Value) -> Outcome<()> {
        let Some((last, before)) = path.split_last() else { return Ok(()) };
        let mut item: &mut Item = self.document.as_item_mut();
        for (depth, key) in before.iter().enumerate() {
            let inline = depth > 1 || item.is_inline_table();
            let table = item.as_table_like_mut().ok_or_else(|| no_table(path, depth))?;
            if table.get(key).is_none_or(Item::is_none) {
                table.insert(key, new_table(inline, depth == 0));
            }
            item = table.get_mut(key).ok_or_else(|| no_table(path, depth))?;
        }
        let table = item.as_table_like_mut().ok_or_else(|| no_table(path, before.len()))?;
        put(table, last, of_json(value)?);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &[&str]) -> Outcome<()> {
        if self.get(path)?.is_none() {
            return Ok(());
        }
        let Some((last, before)) = path.split_last() else { return Ok(()) };
        let mut item: &mut Item = self.document.as_item_mut();
        for (depth, key) in before.iter().enumerate() {
            let table = item.as_table_like_mut().ok_or_else(|| no_table(path, depth))?;
            item = table.get_mut(key).ok_or_else(|| no_table(path, depth))?;
        }
        drop(item.as_table_like_mut().and_then(|table| table.remove(last)));
        Ok(())
    }
}

fn no_table(path: &[&str], depth: usize) -> String {
    format!("{} is no table", path.iter().take(depth.max(1)).copied().collect::<Vec<_>>().join("."))
}

fn new_table(inline: bool, implicit: bool) -> Item {
    if inline {
        return Item::Value(TomlValue::InlineTable(InlineTable::new()));
    }
    let mut table = Table::new();
    table.set_implicit(implicit);
    Item::Table(table)
}

/// Puts a value in the place of another, whose comments stay.
fn put(table: &mut dyn TableLike, key: &str, mut value: TomlValue) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

fn of_json(value: &Value) -> Outcome<TomlValue> {
    Ok(match value {
        Value::Null => return Err("TOML has no null".to_owned()),
        Value::Bool(yes) => (*yes).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            let mut array = Array::new();
            for item in items {
                array.push(of_json(item)?);
            }
            TomlValue::Array(array)
        }
        Value::Object(fields) => {
            let mut table = InlineTable::new();
            for (name, value) in fields {
                table.insert(name, of_json(value)?);
            }
            TomlValue::InlineTable(table)
        }
    })
}

fn of_item(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => of_toml(value),
        Item::Table(table) => table.iter().map(|(name, item)| (name.to_owned(), of_item(item))).collect::<Map<_, _>>().into(),
        Item::ArrayOfTables(tables) => {
            tables.iter().map(|table| Value::Object(table.iter().map(|(name, item)| (name.to_owned(), of_item(item))).collect())).collect()
        }
    }
}

fn of_toml(value: &TomlValue) -> Value {
    match value {
        TomlValue::String(text) => Value::String(text.value().clone()),
        TomlValue::Integer(whole) => (*whole.value()).into(),
        TomlValue::Float(float) => (*float.value()).into(),
        TomlValue::Boolean(yes) => (*yes.value()).into(),
        TomlValue::Datetime(time) => Value::String(time.value().to_string()),
        TomlValue::Array(items) => items.iter().map(of_toml).collect(),
        TomlValue::InlineTable(table) => table.iter().map(|(name, value)| (name.to_owned(), of_toml(value))).collect::<Map<_, _>>().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_touched_stays_as_it_is() {
        let text = "# mine\nmodel = \"x\" # keep\n\n[mcp_servers.other]\ncommand = 'y'\n";
        let mut document = TomlText::parse(text).unwrap();
        document.set(&["mcp_servers", "desk", "command"], &json!("deskmate")).unwrap();
        document.set(&["mcp_servers", "desk", "args"], &json!(["mcp", "--agent", "codex"])).unwrap();
        document.set(&["mcp_servers", "desk", "env", "DESKMATE_TOKEN"], &json!("t")).unwrap();
        let added = "\n[mcp_servers.desk]\ncommand = \"deskmate\"\nargs = [\"mcp\", \"--agent\", \"codex\"]\nenv = { DESKMATE_TOKEN = \"t\" }\n";
        assert_eq!(document.text(), format!("{text}{added}"));
        assert_eq!(document.get(&["mcp_servers", "desk", "env"]).unwrap(), Some(json!({ "DESKMATE_TOKEN": "t" })));
        document.remove(&["mcp_servers", "desk"]).unwrap();
        assert_eq!(document.text(), text);
    }

    #[test]
    fn tables_on_one_line_and_new_files() {
        let mut inline = TomlText::parse("mcp_servers = { a = { command = \"x\" } } # all\n").unwrap();
        inline.set(&["mcp_servers", "desk", "command"], &json!("d")).unwrap();
        assert_eq!(inline.get(&["mcp_servers"]).unwrap(), Some(json!({ "a": { "command": "x" }, "desk": { "command": "d" } })));
        assert!(inline.text().contains("# all"));
        let mut fresh = TomlText::parse("").unwrap();
        fresh.set(&["mcp_servers", "desk", "command"], &json!("d")).unwrap();
        assert_eq!(fresh.text(), "[mcp_servers.desk]\ncommand = \"d\"\n");
        fresh.set(&["mcp_servers", "desk", "command"], &json!("e")).unwrap();
        assert_eq!(fresh.text(), "[mcp_servers.desk]\ncommand = \"e\"\n");
    }

    #[test]
    fn broken_files_are_refused() {
        for broken in ["a = ", "[x", "a = 1\na = 2\n", "[a]\n[a]\n"] {
            assert!(TomlText::parse(broken).is_err(), "{broken}");
        }
        let mut number = TomlText::parse("mcp_servers = 1\n").unwrap();
        assert_eq!(number.set(&["mcp_servers", "desk", "command"], &json!("d")).unwrap_err(), "mcp_servers is no table");
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Whatever is in a file: it is refused, or an entry comes and goes and what was there can still be read.
        #[test]
        fn any_bytes_are_read_or_refused(text in "(?s)[\\[\\]{}=.,\"'# a1\n-]{0,60}", inner in "([a-c] = [0-9]\n){0,3}(\\[[a-c]\\]\n)?") {
            for text in [text, inner] {
                let Ok(mut document) = TomlText::parse(&text) else { continue };
                if document.get(&["new"]).is_ok_and(|found| found.is_none()) && document.set(&["new", "x"], &json!(["y"])).is_ok() {
                    let mut again = TomlText::parse(&document.text()).expect("what was written can be read");
                    assert_eq!(again.get(&["new", "x"]).expect("reads"), Some(json!(["y"])));
                    again.remove(&["new"]).expect("removed");
                    assert_eq!(again.get(&["new"]).expect("reads"), None);
                }
            }
        }
    }
}
