//! Documents: the bytes that a person approves are the bytes that are written.

use deskmate_core::{Error, Result};
use deskmate_hands::documents;
use serde_json::Value;

/// The bytes of a document, and what is in it in words.
pub(super) fn bytes(format: &str, content: &Value) -> Result<(Vec<u8>, String)> {
    let wrong = |error: documents::DocumentError| Error::invalid("content", error.to_string());
    match (format, content) {
        ("excel", Value::Object(sheet)) => {
            let rows = sheet.get("rows").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let columns: Vec<&str> = sheet.get("columns").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            let bytes = if columns.is_empty() { documents::excel(rows) } else { documents::excel_in_order(&columns, rows) };
            Ok((bytes.map_err(wrong)?, serde_json::to_string_pretty(rows).unwrap_or_default()))
        }
        ("word", Value::String(text)) => Ok((documents::word(text).map_err(wrong)?, text.clone())),
        ("pdf", Value::String(text)) => {
            let made = documents::pdf(text).map_err(wrong)?;
            let missing: String = made.missing.iter().collect();
            let note = if missing.is_empty() { String::new() } else { format!("\n\n(the font has no {missing}; a sign stands in their place)") };
            Ok((made.bytes, format!("{text}{note}")))
        }
        _ => Err(Error::invalid("content", "does not fit the kind of document")),
    }
}
