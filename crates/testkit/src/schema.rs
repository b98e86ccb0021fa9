//! Looking at the schemas of operations.

use serde_json::Value;

/// Names the fields of a schema that nothing is said about.
pub fn undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if field["description"].as_str().unwrap_or_default().is_empty() {
            found.push(path.clone());
        }
        undescribed(field, &path, found);
        undescribed(&field["items"], &path, found);
    }
}
