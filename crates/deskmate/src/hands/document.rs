//! Documents: the bytes that a person approves are the bytes that are written.

use std::collections::HashSet;

use deskmate_core::{Error, Result};
use deskmate_hands::documents;
use serde_json::Value;

/// How many characters that cannot be shown are named one by one.
const NAMED_MAX: usize = 50;

/// A document as it is written.
pub(super) struct Document {
    pub(super) bytes: Vec<u8>,
    /// What is in it, in words.
    pub(super) text: String,
    /// What whoever decides should know.
    pub(super) warning: Option<String>,
}

/// Makes a document. Blocks.
pub(super) fn make(format: &str, content: &Value) -> Result<Document> {
    let wrong = |error: documents::DocumentError| Error::invalid("content", error.to_string());
    match (format, content) {
        ("excel", Value::Object(sheet)) => {
            let rows = sheet.get("rows").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let given: Vec<&str> = sheet.get("columns").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            let bytes = if given.is_empty() { documents::excel(rows) } else { documents::excel_in_order(&given, rows) };
            let mut columns = given;
            if columns.is_empty() {
                let mut known = HashSet::new();
                columns.extend(rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys()).map(String::as_str).filter(|name| known.insert(*name)));
            }
            let text = format!("columns: {}\n{}\n", columns.join(", "), serde_json::to_string_pretty(rows).unwrap_or_default());
            Ok(Document { bytes: bytes.map_err(wrong)?, text, warning: None })
        }
        ("word", Value::String(text)) => Ok(Document { bytes: documents::word(text).map_err(wrong)?, text: text.clone(), warning: None }),
        ("pdf", Value::String(text)) => {
            let made = documents::pdf(text, &documents::font_folders()).map_err(wrong)?;
            Ok(Document { bytes: made.bytes, text: text.clone(), warning: not_shown(&made.missing) })
        }
        _ => Err(Error::invalid("content", "does not fit the kind of document")),
    }
}

/// Which characters no font of this machine has.
fn not_shown(missing: &[char]) -> Option<String> {
    if missing.is_empty() {
        return None;
    }
    let named: Vec<String> = missing.iter().take(NAMED_MAX).map(|c| format!("{c} (U+{:04X})", u32::from(*c))).collect();
    let more = missing.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("no font of this machine has {}{more}: � stands in their place", named.join(", ")))
}
