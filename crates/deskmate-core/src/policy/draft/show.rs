//! Differences as people read them.

use serde_json::{Map, Value};

use super::compare::{Classified, Direction};
use super::items::{Change, Key};

/// Values longer than this are cut in a line.
const VALUE_CHARS: usize = 200;

/// A change in one line.
pub fn line(change: &Change) -> String {
    let sign = match (&change.from, &change.to) {
        (None, _) => '+',
        (_, None) => '-',
        _ => '~',
    };
    format!("{sign} {}", change.key)
}

/// Changes in lines: each piece with what it does, and below it what differs inside.
pub fn lines(classified: &[Classified]) -> Vec<String> {
    let mut text = Vec::new();
    for one in classified {
        let direction = match one.direction {
            Direction::Neutral => "changes nothing yet",
            Direction::Tightens => "tightens",
            Direction::Loosens => "loosens, or may",
        };
        text.push(format!("{}   ({direction}: {})", line(&one.change), one.why));
        text.extend(inside(&one.change).into_iter().map(|line| format!("    {line}")));
    }
    text
}

fn inside(change: &Change) -> Vec<String> {
    let empty = Map::new();
    let object = |side: &Option<Value>| side.as_ref().and_then(Value::as_object).unwrap_or(&empty).clone();
    match &change.key {
        Key::Mapping { .. } => Vec::new(),
        Key::Setting { .. } if [&change.from, &change.to].into_iter().flatten().any(|side| !side.is_object()) => {
            let word = |side: &Option<Value>| side.as_ref().map_or_else(|| "built in".to_owned(), short);
            vec![format!("{} → {}", word(&change.from), word(&change.to))]
        }
        Key::Setting { .. } => fields(&object(&change.from), &object(&change.to)),
        Key::Policy { .. } => {
            let (from, to) = (object(&change.from), object(&change.to));
            let rules = |policy: &Map<String, Value>| policy.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
            let (was, is) = (rules(&from), rules(&to));
            let gone = was.iter().filter(|rule| !is.contains(rule)).map(|rule| format!("- rule {}", short(rule)));
            let new = is.iter().filter(|rule| !was.contains(rule)).map(|rule| format!("+ rule {}", short(rule)));
            let mut text: Vec<String> = gone.chain(new).collect();
            let rest = |policy: &Map<String, Value>| -> Map<String, Value> {
                policy.iter().filter(|(name, _)| !matches!(name.as_str(), "rules" | "id")).map(|(name, value)| (name.clone(), value.clone())).collect()
            };
            text.extend(fields(&rest(&from), &rest(&to)));
            text
        }
    }
}

fn fields(was: &Map<String, Value>, is: &Map<String, Value>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let word = |value: Option<&Value>| value.map_or_else(|| "not set".to_owned(), short);
    let differs = names.into_iter().filter(|name| was.get(*name) != is.get(*name));
    differs.map(|name| format!("{name}: {} → {}", word(was.get(name)), word(is.get(name)))).collect()
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= VALUE_CHARS {
        text
    } else {
        format!("{}… ({} characters)", text.chars().take(VALUE_CHARS).collect::<String>(), text.chars().count())
    }
}
