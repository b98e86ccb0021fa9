//! OpenAPI 3.1, made from the registry.

use axum::Json;
use axum::extract::State;
use deskmate_core::call::{Effect, Op, Registry};
use serde_json::{Map, Value, json};

use super::Shared;
use super::rest::UNVERIFIED;

pub(super) async fn serve(State(shared): State<Shared>) -> Json<Value> {
    Json(document(&shared.app.desk.registry))
}

/// The whole document.
pub(crate) fn document(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for op in registry.all() {
        paths.insert(format!("/api/{}", op.full_name()), path(op));
    }
    let error = schemars::schema_for!(deskmate_core::Error).to_value();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Deskmate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Every operation of the desk. Writes accept `idempotency_key`; lists give `next_cursor` until the end.",
            "license": { "name": "Apache-2.0 OR MIT" },
        },
        "paths": paths,
        "components": {
            "headers": { "unverified": {
                "description": "`true` where the caller said nothing but a name, which is enough while no agent is registered",
                "schema": { "type": "string", "const": "true" },
            } },
            "schemas": { "Failure": { "type": "object", "properties": { "error": error }, "required": ["error"] } },
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "An agent's, a personal or a session's token" },
            },
        },
        "security": [{ "bearer": [] }, {}],
    })
}

fn path(op: &Op) -> Value {
    let answers = json!({
        "200": { "description": "The answer", "headers": { UNVERIFIED: { "$ref": "#/components/headers/unverified" } }, "content": { "application/json": { "schema": op.output() } } },
        "default": { "description": "A refusal or a failure", "headers": { UNVERIFIED: { "$ref": "#/components/headers/unverified" } }, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Failure" } } } },
    });
    let operation = |body: bool| {
        let mut operation = json!({
            "operationId": if body { op.full_name() } else { format!("{}_get", op.full_name()) },
            "tags": [op.toolset.name()],
            "summary": op.title(),
            "description": format!("{}\n\nMay be called by: {}.", op.description(), op.access.describe()),
            "responses": answers,
        });
        if let Some(fields) = operation.as_object_mut() {
            if body {
                fields.insert("requestBody".to_owned(), json!({ "content": { "application/json": { "schema": op.input() } } }));
            } else {
                fields.insert("parameters".to_owned(), parameters(op));
            }
        }
        operation
    };
    let mut methods = Map::new();
    methods.insert("post".to_owned(), operation(true));
    if op.effect == Effect::Read {
        methods.insert("get".to_owned(), operation(false));
    }
    Value::Object(methods)
}

fn parameters(op: &Op) -> Value {
    let required: Vec<&str> = op.input().get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = op.input().get("properties").and_then(Value::as_object).into_iter().flatten();
    let parameter = |(name, schema): (&String, &Value)| json!({ "name": name, "in": "query", "required": required.contains(&name.as_str()), "schema": schema });
    Value::Array(properties.map(parameter).collect())
}
