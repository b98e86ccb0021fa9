//! JSON, with the comments that some clients allow in it, changed in place.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::document::Outcome;
use super::hosts::Leniency;

/// What some editors write before the first character.
const BOM: char = '\u{feff}';

pub(super) struct JsonText {
    root: CstRootNode,
    has_bom: bool,
}

impl JsonText {
    pub(super) fn parse(text: &str, leniency: Leniency) -> Outcome<Self> {
        let bare = text.strip_prefix(BOM);
        let (text, has_bom) = (bare.unwrap_or(text), bare.is_some());
        let text = if text.trim().is_empty() { "{}\n" } else { text };
        let options = ParseOptions {
            allow_comments: leniency.comments,
            allow_trailing_commas: leniency.trailing_commas,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let root = CstRootNode::parse(text, &options).map_err(|error| format!("is not valid JSON: {error}"))?;
        if !leniency.comments && !leniency.trailing_commas {
            // The parser takes comments whatever it is told; a client that wants plain JSON does not.
            serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|error| format!("is not valid JSON: {error}"))?;
        }
        if root.object_value().is_none() {
            return Err("holds no JSON object".to_owned());
        }
        Ok(Self { root, has_bom })
    }

    pub(super) fn text(&self) -> String {
        let text = self.root.to_string();
        if self.has_bom { format!("{BOM}{text}") } else { text }
    }

    pub(super) fn get(&self, path: &[&str]) -> Outcome<Option<Value>> {
        Ok(self.property(path)?.and_then(|found| found.to_serde_value()))
    }

    pub(super) fn set(&self, path: &[&str], value: &Value) -> Outcome<()> {
        let Some((last, before)) = path.split_last() else { return Ok(()) };
        let holder = self.object_or_new(before)?;
        match only(&holder, last)? {
            Some(property) => property.set_value(input(value)),
            None => drop(holder.append(last, input(value))),
        }
        Ok(())
    }

    pub(super) fn remove(&self, path: &[&str]) -> Outcome<()> {
        if let Some(property) = self.property(path)? {
            property.remove();
        }
        Ok(())
    }

    pub(super) fn push(&self, path: &[&str], value: &Value) -> Outcome<()> {
        match self.array(path)? {
            Some(array) => drop(array.append(input(value))),
            None => self.set(path, &Value::Array(vec![value.clone()]))?,
        }
        Ok(())
    }

    pub(super) fn replace_at(&self, path: &[&str], index: usize, value: Option<&Value>) -> Outcome<()> {
        let Some(array) = self.array(path)? else { return Ok(()) };
        let Some(old) = array.elements().into_iter().nth(index) else { return Ok(()) };
        if let Some(value) = value {
            array.insert(index, input(value));
        }
        old.remove();
        Ok(())
    }

    /// The property at a path, if everything that leads there is an object.
    fn property(&self, path: &[&str]) -> Outcome<Option<CstObjectProp>> {
        let Some((last, before)) = path.split_last() else { return Ok(None) };
        let mut holder = self.root.object_value();
        for (depth, key) in before.iter().enumerate() {
            let Some(object) = holder else { return Ok(None) };
            holder = match only(&object, key)? {
                None => return Ok(None),
                Some(property) => Some(property.object_value().ok_or_else(|| no_object(path, depth))?),
            };
        }
        holder.map_or(Ok(None), |object| only(&object, last))
    }

    fn object_or_new(&self, path: &[&str]) -> Outcome<CstObject> {
        let mut object = self.root.object_value().ok_or_else(|| "holds no JSON object".to_owned())?;
        for (depth, key) in path.iter().enumerate() {
            let property = match only(&object, key)? {
                Some(property) => property,
                None => object.append(key, CstInputValue::Object(Vec::new())),
            };
            object = property.object_value().ok_or_else(|| no_object(path, depth))?;
        }
        Ok(object)
    }

    fn array(&self, path: &[&str]) -> Outcome<Option<CstArray>> {
        let Some(property) = self.property(path)? else { return Ok(None) };
        property.array_value().map(Some).ok_or_else(|| format!("{} is no list", path.join(".")))
    }
}

fn no_object(path: &[&str], depth: usize) -> String {
    format!("{} is no object", path.iter().take(depth + 1).copied().collect::<Vec<_>>().join("."))
}

/// The property of that name. Readers differ on which of two they take, so a file with two is left alone.
fn only(object: &CstObject, name: &str) -> Outcome<Option<CstObjectProp>> {
    let mut found = object.properties().into_iter().filter(|property| property.decoded_name().as_deref() == Some(name));
    let first = found.next();
    if found.next().is_some() {
        return Err(format!("has {name:?} twice in one object"));
    }
    Ok(first)
}

/// A value to be written.
fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(yes) => CstInputValue::Bool(*yes),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => {
            let mut fields: Vec<(String, CstInputValue)> = fields.iter().map(|(name, value)| (name.clone(), input(value))).collect();
            fields.sort_by_key(|(name, _)| rank(name));
            CstInputValue::Object(fields)
        }
    }
}

/// What a reader wants to see first stands first.
fn rank(name: &str) -> usize {
    ["matcher", "type", "id", "name", "command"].iter().position(|first| *first == name).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const JSONC: Leniency = Leniency { comments: true, trailing_commas: true };
    const PLAIN: Leniency = Leniency { comments: false, trailing_commas: false };

    #[test]
    fn what_is_not_touched_stays_as_it_is() {
        let text = "{\n  // mine\n  \"z\": 1, /* here */\n  \"servers\": {\n    \"other\": { \"command\": \"x\" }, // keep\n  },\n}\n";
        let document = JsonText::parse(text, JSONC).unwrap();
        document.set(&["servers", "desk", "command"], &json!("deskmate")).unwrap();
        document.set(&["servers", "desk", "args"], &json!(["mcp"])).unwrap();
        let written = document.text();
        for line in ["  // mine", "  \"z\": 1, /* here */", "    \"other\": { \"command\": \"x\" }, // keep", "      \"command\": \"deskmate\","] {
            assert!(written.lines().any(|found| found == line), "{line} is not in\n{written}");
        }
        assert_eq!(document.get(&["servers", "desk"]).unwrap(), Some(json!({ "command": "deskmate", "args": ["mcp"] })));
        document.remove(&["servers", "desk"]).unwrap();
        assert_eq!(document.text(), text);
    }

    #[test]
    fn lists_are_changed_by_their_elements() {
        let text = "{\n  \"hooks\": [\n    { \"a\": 1 }, // first\n    { \"b\": 2 }\n  ]\n}";
        let document = JsonText::parse(text, JSONC).unwrap();
        document.push(&["hooks"], &json!({ "c": 3 })).unwrap();
        document.replace_at(&["hooks"], 1, Some(&json!({ "b": 4 }))).unwrap();
        assert_eq!(document.get(&["hooks"]).unwrap(), Some(json!([{ "a": 1 }, { "b": 4 }, { "c": 3 }])));
        assert!(document.text().contains("{ \"a\": 1 }, // first"), "{}", document.text());
        document.replace_at(&["hooks"], 0, None).unwrap();
        assert_eq!(document.get(&["hooks"]).unwrap(), Some(json!([{ "b": 4 }, { "c": 3 }])));
        document.push(&["new"], &json!(1)).unwrap();
        assert_eq!(document.get(&["new"]).unwrap(), Some(json!([1])));
    }

    #[test]
    fn an_empty_file_and_marks_of_editors_are_no_trouble() {
        for empty in ["", " \n", "\u{feff}"] {
            let document = JsonText::parse(empty, PLAIN).unwrap();
            document.set(&["a", "b"], &json!(1)).unwrap();
            assert_eq!(serde_json::from_str::<Value>(document.text().trim_start_matches(BOM)).unwrap(), json!({ "a": { "b": 1 } }), "{empty:?}");
        }
        let windows = JsonText::parse("\u{feff}{\r\n    \"a\": 1\r\n}\r\n", PLAIN).unwrap();
        windows.set(&["b"], &json!(2)).unwrap();
        assert_eq!(windows.text(), "\u{feff}{\r\n    \"a\": 1,\r\n    \"b\": 2\r\n}\r\n");
    }

    #[test]
    fn what_the_client_could_not_read_is_refused() {
        for broken in ["{", "[]", "null", "{\"a\": }", "{\"a\": 1,}", "{ // x\n}", "{'a': 1}", "{a: 1}", "{\"a\": 1} x", "{\"a\": 1 \"b\": 2}", "{\"a\": NaN}"]
        {
            assert!(JsonText::parse(broken, PLAIN).is_err(), "{broken}");
        }
        assert!(JsonText::parse(&"[".repeat(100_000), JSONC).is_err());
        let twice = JsonText::parse(r#"{"mcpServers": {}, "mcpServers": {"x": 1}}"#, PLAIN).unwrap();
        assert!(twice.set(&["mcpServers", "desk"], &json!(1)).unwrap_err().contains("twice"));
        let list = JsonText::parse(r#"{"mcpServers": []}"#, PLAIN).unwrap();
        assert_eq!(list.set(&["mcpServers", "desk"], &json!(1)).unwrap_err(), "mcpServers is no object");
        assert_eq!(list.get(&["mcpServers", "desk"]).unwrap_err(), "mcpServers is no object");
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Whatever is in a file: it is refused, or an entry comes and goes and the rest is what it was.
        #[test]
        fn an_entry_comes_and_goes(text in "[\\[\\]{}:,\"/* a1\n-]{0,60}", inner in "(\"[a-c]\": [0-9],? ?\n?){0,4}") {
            for text in [text, format!("{{{inner}}}")] {
                let Ok(document) = JsonText::parse(&text, JSONC) else { continue };
                let before = document.root.to_serde_value();
                if document.get(&["new"]).is_ok_and(|found| found.is_none()) && document.set(&["new", "x"], &json!([1])).is_ok() {
                    let again = JsonText::parse(&document.text(), JSONC).expect("what was written can be read");
                    assert_eq!(again.get(&["new", "x"]).expect("reads"), Some(json!([1])));
                    again.remove(&["new"]).expect("removed");
                    assert_eq!(again.root.to_serde_value(), before);
                }
            }
        }
    }
}
