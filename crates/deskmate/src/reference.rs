//! The generated documents: the operations and the events, as data and as a page.

use std::sync::Arc;

use deskmate_core::call::{Op, Registry, event_catalogue};
use serde_json::{Value, json};

/// Every operation with its authorisation row, hints and schemas.
pub(crate) fn operations(registry: &Registry) -> Value {
    let operation = |op: &Arc<Op>| {
        json!({
            "name": op.full_name(),
            "toolset": op.toolset,
            "effect": op.effect,
            "waits": op.waits,
            "access": op.access.describe(),
            "hints": op.hints,
            "needs": op.need(),
            "description": op.description(),
            "input": op.input(),
            "output": op.output(),
        })
    };
    Value::Array(registry.all().map(operation).collect())
}

/// Every kind of event with what it says.
pub(crate) fn events() -> Value {
    Value::Array(event_catalogue().into_iter().map(|kind| json!({ "kind": kind.name, "says": kind.says })).collect())
}

/// The reference page of all operations.
#[cfg(test)]
fn page(registry: &Registry) -> String {
    let mut page = "# Operations\n\nMade from the registry by a test; edit the declarations, not this page.\n".to_owned();
    for op in registry.all() {
        page.push_str(&format!("\n## `{}`\n\n{}\n\n", op.full_name(), op.description().replace('\n', " ")));
        let effect = if op.effect == deskmate_core::call::Effect::Read { "only looks" } else { "changes something" };
        let waits = if op.waits { ", may hold up to 25 seconds" } else { "" };
        page.push_str(&format!("For {}; {effect}{waits}.\n\n", op.access.describe()));
        let required: Vec<&str> = op.input()["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, schema) in op.input()["properties"].as_object().into_iter().flatten().filter(|(name, _)| *name != "idempotency_key") {
            let kind = schema["type"].as_str().unwrap_or("value");
            let needed = if required.contains(&name.as_str()) { ", required" } else { "" };
            let says = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
            page.push_str(&format!("- `{name}` ({kind}{needed}): {says}\n"));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot;

    #[test]
    fn the_reference_page_is_current() {
        snapshot::check_at("../../docs/reference/operations.md", &page(&Registry::new()));
    }

    #[test]
    fn the_surfaces_are_what_they_were() {
        let registry = Registry::new();
        snapshot::check_json("operations.json", &operations(&registry));
        snapshot::check_json("openapi.json", &crate::http::openapi_document(&registry));
        snapshot::check_json("events.json", &events());
        snapshot::check_json("config-schema.json", &crate::config::schema());
    }

    #[test]
    fn every_operation_and_field_is_described() {
        for op in Registry::new().all() {
            assert!(op.description().len() > 20, "{} has no description", op.full_name());
            assert!(op.description().len() < 4_096, "{} is cut by clients", op.full_name());
            assert!(op.full_name().len() <= 60, "{} is too long for clients that prefix names", op.full_name());
            for (field, schema) in op.input()["properties"].as_object().unwrap() {
                assert!(schema["description"].is_string(), "{}.{field} has no description", op.full_name());
                let is_plain = schema["type"].is_string() || schema["enum"].is_array();
                // A value of any type has none in its schema: several clients refuse a list of types.
                let is_any = field == "proposed_value" && schema.as_object().is_some_and(|schema| schema.keys().eq(["description"]));
                assert!(is_plain || is_any, "{}.{field} has no plain type: {schema}", op.full_name());
            }
            assert_eq!(op.input()["additionalProperties"], false, "{} takes unknown fields", op.full_name());
        }
    }
}
