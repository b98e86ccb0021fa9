//! What commands print, and how they end.

use std::io::{self, Write};
use std::process::ExitCode;

use deskmate_core::{Code, Error};
use serde_json::{Value, json};

use crate::visible::visible;

/// A command that did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The desk refused or failed.
    Desk(Error),
    /// Something outside the desk.
    Other(String),
    /// The record is not sound; the report was printed.
    NotSound,
    /// Nothing happened within the time.
    TimedOut,
    /// What is wrong was printed as the answer.
    Told,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Desk(error)
    }
}

impl From<deskmate_db::Error> for Failure {
    fn from(error: deskmate_db::Error) -> Self {
        Self::Desk(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<crate::config::ConfigError> for Failure {
    fn from(error: crate::config::ConfigError) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<crate::home::HomeError> for Failure {
    fn from(error: crate::home::HomeError) -> Self {
        Self::Other(error.to_string())
    }
}

impl Failure {
    /// What happened, in one line for the log.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Desk(error) => error.to_string(),
            Self::Other(message) => message.clone(),
            Self::NotSound => "the record is not sound".to_owned(),
            Self::Told => "something is wrong; it was printed".to_owned(),
            Self::TimedOut => "nothing happened within the time".to_owned(),
        }
    }

    /// Prints the failure and answers the documented exit code.
    pub(super) fn report(self, as_json: bool) -> ExitCode {
        let (code, error) = match self {
            Self::NotSound => return ExitCode::from(7),
            Self::TimedOut => return ExitCode::from(8),
            Self::Told => return ExitCode::from(1),
            Self::Other(message) => (1, json!({ "code": "failed", "message": message })),
            Self::Desk(error) => {
                let code = match error.code {
                    Code::Unauthenticated | Code::Forbidden => 3,
                    Code::NotFound => 4,
                    Code::Conflict => 5,
                    Code::Limited | Code::Unavailable => 6,
                    Code::Invalid | Code::Internal => 1,
                };
                (code, json!(error))
            }
        };
        let text = if as_json { json!({ "error": error }).to_string() } else { human_error(&error) };
        // Where even this cannot be written there is nobody left to tell.
        drop(writeln!(io::stderr(), "{text}"));
        ExitCode::from(code)
    }
}

fn human_error(error: &Value) -> String {
    let part = |name: &str| error.get(name).and_then(Value::as_str);
    let mut text = "deskmate: ".to_owned();
    if let Some(field) = part("field").filter(|field| !field.is_empty()) {
        text.push_str(&format!("{field}: "));
    }
    text.push_str(part("message").unwrap_or("failed"));
    if let Some(hint) = part("hint") {
        text.push_str(&format!("\n  {hint}"));
    }
    text
}

/// How wide a table may be before its rows are printed one below the other.
const TABLE_WIDTH: usize = 140;

/// Prints a line for people. A reader who has seen enough, such as `head`, is no failure.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(Failure::from),
    }
}

/// Prints an answer: JSON for programs, otherwise as a table or lines for people.
pub(super) fn print(answer: &Value, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return say(&serde_json::to_string_pretty(answer).unwrap_or_default());
    }
    say(human(answer).trim_end())
}

fn human(answer: &Value) -> String {
    let Value::Object(fields) = answer else { return scalar(answer) };
    let (mut lines, mut tables) = (String::new(), String::new());
    for (name, value) in fields {
        match value {
            Value::Array(rows) if rows.iter().all(Value::is_object) => tables.push_str(&table(name, rows)),
            Value::Null => {}
            _ => lines.push_str(&line(name, value)),
        }
    }
    // What is said about a list stands above it.
    if lines.is_empty() || tables.is_empty() { lines + &tables } else { format!("{lines}\n{tables}") }
}

fn line(name: &str, value: &Value) -> String {
    format!("{}: {}\n", name.replace('_', " "), scalar(value))
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => visible(text),
        Value::Array(items) => items.iter().map(scalar).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn table(name: &str, rows: &[Value]) -> String {
    if rows.is_empty() {
        return format!("no {}\n", name.replace('_', " "));
    }
    let mut columns: Vec<&str> = Vec::new();
    for key in rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys()) {
        if !columns.contains(&key.as_str()) {
            columns.push(key);
        }
    }
    let cell = |row: &Value, column: &str| row.get(column).map(scalar).unwrap_or_default().replace('\n', "⏎");
    let width = |column: &str| rows.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0).max(column.chars().count()).min(60);
    if columns.iter().map(|column| width(column) + 2).sum::<usize>() > TABLE_WIDTH {
        return blocks(rows);
    }
    let padded = |cells: Vec<(String, usize)>| {
        let padded = cells.into_iter().map(|(text, width)| format!("{:width$}", cut(&text, width)));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = padded(columns.iter().map(|column| (column.to_uppercase(), width(column))).collect());
    for row in rows {
        text.push_str(&padded(columns.iter().map(|column| (cell(row, column), width(column))).collect()));
    }
    text
}

/// Rows that are too wide for a table, one below the other.
fn blocks(rows: &[Value]) -> String {
    let block =
        |row: &Value| row.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()).map(|(name, value)| line(name, value)).collect::<String>();
    rows.iter().map(block).collect::<Vec<_>>().join("\n")
}

pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width { text.to_owned() } else { text.chars().take(width.saturating_sub(1)).chain(['…']).collect() }
}

/// Prints one of the generated documents.
pub(super) fn print_schema(which: &str) -> Result<(), Failure> {
    let registry = deskmate_core::call::Registry::new();
    let document = match which {
        "config" => crate::config::schema(),
        "openapi" => crate::http::openapi_document(&registry),
        "events" => crate::reference::events(),
        _ => crate::reference::operations(&registry),
    };
    say(&serde_json::to_string_pretty(&document).unwrap_or_default())
}
