//! What became of a call of a mounted tool, as a tool's answer. Where nothing came back from the server, the desk itself
//! answers in its place, and the schema that the tool declares for its answers says that it may.

use deskmate_core::Error;
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult, JsonObject};
use serde_json::{Value, json};

/// Under this name the desk answers in the place of a tool.
const CALL: &str = "deskmate_call";

/// What became of a call.
pub(super) fn respond(answer: Value) -> Result<CallToolResponse, ErrorData> {
    let result = answer.get("result").filter(|result| result.is_object());
    if result.and_then(|result| result.get("resultType")) == Some(&json!("input_required")) {
        let asked: InputRequiredResult = serde_json::from_value(result.cloned().unwrap_or_default()).map_err(|error| unreadable(&error))?;
        return Ok(CallToolResponse::InputRequired(asked));
    }
    if let Some(result) = result {
        let result: CallToolResult = serde_json::from_value(result.clone()).map_err(|error| unreadable(&error))?;
        return Ok(CallToolResponse::Complete(result));
    }
    // Nothing came back: the desk itself says how it stands.
    let text = |field: &str| answer.get(field).and_then(Value::as_str).unwrap_or_default();
    let waits = matches!(text("state"), "held" | "passed");
    let mut words = vec![text("message").to_owned()];
    if !text("next").is_empty() {
        words.push(text("next").to_owned());
    }
    if waits {
        words.push(format!("call_id: {}", text("call_id")));
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(words.join("\n"))]);
    result.is_error = Some(!waits && text("state") != "done");
    result.structured_content = Some(json!({ CALL: answer }));
    let mut value = serde_json::to_value(result).map_err(|error| unreadable(&error))?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("_meta".to_owned(), json!({ "deskmate/call": answer }));
    }
    Ok(CallToolResponse::Complete(serde_json::from_value(value).map_err(|error| unreadable(&error))?))
}

fn unreadable(error: &serde_json::Error) -> ErrorData {
    ErrorData::internal_error(format!("what the server answered cannot be passed on: {error}"), None)
}

/// A call that the desk refuses.
pub(super) fn refused(error: &Error) -> CallToolResponse {
    let hint = error.hint.as_deref().map(|hint| format!("\n{hint}")).unwrap_or_default();
    let mut result = CallToolResult::success(vec![ContentBlock::text(format!("{}{hint}", error.message))]);
    result.is_error = Some(true);
    CallToolResponse::Complete(result)
}

/// The schema of a tool's answers together with that of the desk's own: clients check what they get. `None` where one cannot be
/// written within the other; then the tool promises nothing, and what it answers is passed on all the same.
pub(super) fn schema(own: &JsonObject) -> Option<JsonObject> {
    if own.get("type") != Some(&json!("object")) || !can_move(&Value::Object(own.clone())) {
        return None;
    }
    let mut own = own.clone();
    let mut whole = JsonObject::new();
    // What a schema refers to lies at its root.
    for key in ["$schema", "$defs", "definitions"] {
        if let Some(value) = own.remove(key) {
            whole.insert(key.to_owned(), value);
        }
    }
    let call = json!({ "type": "object", "description": "the call waits for a person, or its answer is not there any more: how it stands, from the desk" });
    let desk = json!({ "type": "object", "properties": { CALL: call }, "required": [CALL] });
    whole.insert("type".to_owned(), json!("object"));
    whole.insert("anyOf".to_owned(), json!([own, desk]));
    Some(whole)
}

/// Whether a schema means the same one level deeper, with its definitions left at the root.
fn can_move(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().all(can_move),
        Value::Object(fields) => fields.iter().all(|(key, value)| match (key.as_str(), value) {
            ("$ref", Value::String(to)) => ["#/$defs/", "#/definitions/", "https://", "http://"].iter().any(|start| to.starts_with(start)),
            // A property may be called so; then its schema is an object.
            ("$id" | "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveRef" | "$recursiveAnchor", value) => value.is_object(),
            (_, value) => can_move(value),
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_schema_tells_of_both_who_may_answer() {
        let own = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": { "a": { "$ref": "#/$defs/A" } }, "$defs": { "A": { "type": "array", "items": { "$ref": "#/$defs/A" } } } });
        let whole = Value::Object(schema(&object(own.clone())).unwrap());
        assert_eq!((&whole["$defs"], &whole["$schema"]), (&own["$defs"], &own["$schema"]), "what is referred to stays at the root");
        assert_eq!((&whole["anyOf"][0]["required"], &whole["anyOf"][0]["properties"]), (&own["required"], &own["properties"]));
        assert_eq!(whole["anyOf"][1]["required"], json!(["deskmate_call"]));
        assert_eq!(whole["type"], "object");
    }

    #[test]
    fn a_schema_that_cannot_be_moved_is_not_promised() {
        for own in [
            json!({ "type": "array" }),
            json!({ "type": "object", "properties": { "again": { "$ref": "#" } } }),
            json!({ "type": "object", "properties": { "again": { "$ref": "#/properties/x" } } }),
            json!({ "$id": "https://example.org/x", "type": "object" }),
        ] {
            assert_eq!(schema(&object(own.clone())), None, "{own}");
        }
        assert!(schema(&object(json!({ "type": "object", "properties": { "$id": { "type": "string" } } }))).is_some());
    }

    #[test]
    fn what_waits_is_no_error_and_fits_the_schema() {
        let Ok(CallToolResponse::Complete(held)) = respond(json!({ "state": "held", "call_id": "c1", "message": "wait" })) else { panic!("no answer") };
        assert_eq!(held.is_error, Some(false));
        assert_eq!(held.structured_content.unwrap()["deskmate_call"]["call_id"], "c1");
    }
}
