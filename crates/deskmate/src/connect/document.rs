//! A client's file as a text that is changed in place: what is not touched keeps its order, its comments and its form.

use serde_json::Value;

use super::hosts::Format;
use super::json::JsonText;
use super::toml::TomlText;

/// What is wrong with a file, in words that stand behind its name.
pub(super) type Outcome<T> = Result<T, String>;

/// A file's text that can be looked at and changed by paths of keys.
pub(super) enum Document {
    Json(JsonText),
    Toml(Box<TomlText>),
}

impl Document {
    /// Reads a text; one with nothing in it counts as an empty file.
    pub(super) fn parse(text: &str, format: Format) -> Outcome<Self> {
        match format {
            Format::Json(leniency) => JsonText::parse(text, leniency).map(Self::Json),
            Format::Toml => TomlText::parse(text).map(|text| Self::Toml(Box::new(text))),
        }
    }

    /// What stands at a path.
    pub(super) fn get(&self, path: &[&str]) -> Outcome<Option<Value>> {
        match self {
            Self::Json(text) => text.get(path),
            Self::Toml(text) => text.get(path),
        }
    }

    /// Puts a value at a path, and what leads there where it is missing. A value that is there already is left as it is.
    pub(super) fn set(&mut self, path: &[&str], value: &Value) -> Outcome<()> {
        if self.get(path)?.as_ref() == Some(value) {
            return Ok(());
        }
        match self {
            Self::Json(text) => text.set(path, value),
            Self::Toml(text) => text.set(path, value),
        }
    }

    /// Takes away what stands at a path.
    pub(super) fn remove(&mut self, path: &[&str]) -> Outcome<()> {
        match self {
            Self::Json(text) => text.remove(path),
            Self::Toml(text) => text.remove(path),
        }
    }

    /// The list at a path, to be changed element by element.
    pub(super) fn list(&self, path: &[&str]) -> Outcome<Vec<Value>> {
        match self.get(path)? {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(format!("{} is no list", path.join("."))),
        }
    }

    /// Adds to the list at a path.
    pub(super) fn push(&mut self, path: &[&str], value: &Value) -> Outcome<()> {
        let mut items = self.list(path)?;
        match self {
            Self::Json(text) => text.push(path, value),
            Self::Toml(text) => {
                items.push(value.clone());
                text.set(path, &Value::Array(items))
            }
        }
    }

    /// Puts another element in the place of one of the list at a path, or none.
    pub(super) fn replace_at(&mut self, path: &[&str], index: usize, value: Option<&Value>) -> Outcome<()> {
        let mut items = self.list(path)?;
        match self {
            Self::Json(text) => text.replace_at(path, index, value),
            Self::Toml(text) => {
                if index < items.len() {
                    drop(items.splice(index..=index, value.cloned()));
                }
                text.set(path, &Value::Array(items))
            }
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Json(text) => text.text(),
            Self::Toml(text) => text.text(),
        }
    }
}
