//! Every operation as a form, for people who want to learn what agents can do.

use axum::Router;
use axum::extract::{Path, Query};
use axum::response::Response;
use axum::routing::get;
use deskmate_core::call::{Access, Effect, Op, Toolset};
use deskmate_core::{Error, Result};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::Shared;
use super::shell::{self, Page, Place};
use super::ui::{Tone, badge, empty, said, spaced};
use super::visit::{Fault, Visit};

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/tools", get(serve)).route("/tools/{operation}", get(serve_one))
}

/// A desk that starts again may know other tools.
const TOPICS: &str = "desk";

/// What the address of the list says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Filters {
    search: String,
}

/// Whether agents may.
fn is_for_agents(op: &Op) -> bool {
    matches!(op.access, Access::Anyone | Access::Public) && op.toolset != Toolset::Desk
}

const TOOLSETS: [(Toolset, &str, &str); 8] = [
    (Toolset::Cowork, "Cowork", "How agents ask before they act: proposals, decisions, reports, handoffs, trust."),
    (Toolset::Bridge, "Bridge", "How agents and people work together: messages, tasks, reserved paths."),
    (Toolset::Workspace, "Workspace", "How agents work on files: looking around, and plans that change something."),
    (Toolset::Hook, "Hook", "What clients' hooks ask before and after an agent's own tool calls."),
    (Toolset::Agents, "Agents", "How agents make agents that the desk runs, and follow their runs."),
    (Toolset::Gateway, "Gateway", "How agents call the tools of other servers behind the desk."),
    (Toolset::Desk, "Desk", "The desk itself: people, agents, policies, requests, the record. For people and their programs."),
    (Toolset::Conformance, "Conformance", "Fixtures of protocol tests; no released desk has them."),
];

async fn serve(visit: Visit, Query(filters): Query<Filters>) -> Result<Response, Fault> {
    let wanted = filters.search.to_lowercase();
    let fits = |op: &Op| op.full_name().contains(&wanted.replace(' ', "_")) || op.description().to_lowercase().contains(&wanted);
    let ops: Vec<&Op> = visit.registry().all().map(AsRef::as_ref).filter(|op| visit.may_call(op) && fits(op)).collect();
    let body = html! {
        div.card.listing {
            header.lead {
                h1 { "Tools" }
                p {
                    "This is what agents can do here. Each tool is one operation of the desk: agents call it over MCP, programs over REST, people with "
                    code { "deskmate call" } " or with the form on its page, as themselves and by their own right. Try some: "
                    a href="/tools/bridge_send_message" { "send an agent a message" } ", " a href="/tools/bridge_create_task" { "give it a task" } ", or "
                    a href="/tools/desk_policy_explain" { "ask what the desk would answer" } " if an agent wanted to do something."
                }
            }
            form.filters data-filters role="search" {
                input type="search" name="search" value=(filters.search) placeholder="Search" aria-label="Search names and descriptions" data-key="/";
                button { "Search" }
            }
            @if ops.is_empty() { (empty("No tool fits", html! { p { a href="/tools" data-in-place { "Show all tools" } } })) }
            @for (toolset, name, says) in TOOLSETS {
                @let own: Vec<&&Op> = ops.iter().filter(|op| op.toolset == toolset).collect();
                @if !own.is_empty() {
                    section id={ "toolset-" (toolset.name()) } {
                        header.lead { h2 { (name) } p.meta { (says) } }
                        ul.rows { @for op in own { (line(op)) } }
                    }
                }
            }
        }
    };
    shell::show(&visit, Page { title: "Tools", place: Place::Tools, topics: TOPICS, body }).await
}

fn line(op: &Op) -> Markup {
    let name = op.full_name();
    html! {
        li id={ "tool-" (name) } {
            a href={ "/tools/" (name) } data-row {
                span.title { (title(op)) }
                span.meta { (first_sentence(op.description()).replace('`', "")) }
                span.badges { code { (name) } (marks(op)) }
            }
        }
    }
}

/// The name within its toolset, as people would write it.
fn title(op: &Op) -> String {
    let own = op.title();
    let name = own.split_once(' ').filter(|(toolset, _)| toolset.eq_ignore_ascii_case(op.toolset.name())).map_or(own.as_str(), |(_, name)| name);
    let mut letters = name.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn marks(op: &Op) -> Markup {
    html! {
        " " (badge(Tone::Quiet, if op.effect == Effect::Read { "only looks" } else { "writes" }))
        @if is_for_agents(op) { " " (badge(Tone::Good, "agents call it")) }
        @if matches!(op.access, Access::Present(_) | Access::Decides(_)) { " " (badge(Tone::Warning, "asks for your passphrase")) }
        @if op.hints.destructive { " " (badge(Tone::Alarm, "overwrites")) }
    }
}

/// The description up to its first full stop.
fn first_sentence(text: &str) -> &str {
    text.split_once(". ").or_else(|| text.split_once(".\n")).map_or(text, |(first, _)| first)
}

async fn serve_one(visit: Visit, Path(name): Path<String>) -> Result<Response, Fault> {
    let op = visit.registry().get(&name).ok_or_else(|| Error::not_found(format!("there is no tool {name}")))?;
    let body = html! {
        div.alone {
            p { a href="/tools" data-key="Escape" { "All tools" } }
            header {
                h1 { (title(op)) }
                p.meta { code { (name) } (marks(op)) }
                (prose(op.description()))
                p.hint { "For " (op.access.describe()) "." }
            }
            @if visit.may_call(op) { (form(op, &name)) } @else { p { "Your role, " (visit.you.role) ", may not call this." } }
            (by_others(op, &name))
        }
    };
    shell::show(&visit, Page { title: &title(op), place: Place::Tools, topics: TOPICS, body }).await
}

/// Fields that callers seldom give: they are for clients that retry, or that have no credential of their own.
const SELDOM: [&str; 4] = ["idempotency_key", "agent_id", "agent_token", "cursor"];

fn form(op: &Op, name: &str) -> Markup {
    let question = op.hints.destructive.then(|| format!("Call {name}? It may undo or overwrite something."));
    let empty = Map::new();
    let fields = op.input().get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = required(op);
    let is_required = |field: &str| required.contains(&field);
    let is_seldom = |field: &str| SELDOM.contains(&field) && !is_required(field);
    html! {
        form.tool data-call=(name) data-tool data-done="Answered" data-writes[op.effect == Effect::Write] data-confirm=[question] {
            @if fields.is_empty() { p.hint { "It needs nothing." } }
            @for (field, schema) in required.iter().filter_map(|field| Some((field, fields.get(*field)?))) { (input(op, field, schema, true)) }
            @for (field, schema) in fields.iter().filter(|(field, _)| !is_required(field) && !is_seldom(field)) { (input(op, field, schema, false)) }
            @if fields.keys().any(|field| is_seldom(field)) {
                details id={ "seldom-" (name) } {
                    summary { "Seldom needed" }
                    @for (field, schema) in fields.iter().filter(|(field, _)| is_seldom(field)) { (input(op, field, schema, false)) }
                }
            }
            p role="alert" id={ "problem-" (name) } data-keep {}
            div.row {
                button { "Call it as yourself" }
                @if op.waits { span.hint { "It may wait up to 25 seconds for an answer." } }
            }
        }
        section.part.answer id={ "answer-" (name) } aria-live="polite" data-keep {}
    }
}

/// The fields that a call needs, in the order of their importance.
fn required(op: &Op) -> Vec<&str> {
    op.input().get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What the desk says of itself: what stands between backticks is code, and only empty lines break.
fn prose(text: &str) -> Markup {
    html! {
        @for paragraph in text.split("\n\n") {
            p { @for (at, piece) in paragraph.split('`').enumerate() { @if at % 2 == 1 { code { (piece) } } @else { (piece) } } }
        }
    }
}

/// Fields in which much is written.
const LONG: [&str; 16] = [
    "answer",
    "attempted_actions",
    "content",
    "context",
    "description",
    "document",
    "draft",
    "goal",
    "instructions",
    "note",
    "proposed_change",
    "question",
    "reasoning",
    "resolution",
    "result",
    "text",
];

/// A labelled input for a field, as its schema says.
fn input(op: &Op, name: &str, schema: &Value, required: bool) -> Markup {
    let id = format!("field-{name}");
    let hint = format!("hint-{name}");
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
    let number = |name: &str| schema.get(name).map(Value::to_string);
    html! {
        div.field {
            label for=(id) { (spaced(name)) @if required { " " span.hint { "needed" } } }
            @if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
                select id=(id) name=(name) required[required] aria-describedby=(hint) {
                    option value="" { "not given" }
                    @for choice in choices.iter().filter_map(Value::as_str) { option value=(choice) { (spaced(choice)) } }
                }
            } @else if kind == "boolean" {
                select id=(id) name=(name) data-as="json" required[required] aria-describedby=(hint) {
                    option value="" { "not given" } option value="true" { "yes" } option value="false" { "no" }
                }
            } @else if kind == "integer" || kind == "number" {
                input id=(id) name=(name) type="number" data-as="json" required[required] min=[number("minimum")] max=[number("maximum")]
                    step=(if kind == "integer" { "1" } else { "any" }) aria-describedby=(hint);
            } @else if kind == "string" && op.is_secret(name) {
                input id=(id) name=(name) type="password" autocomplete="off" required[required] aria-describedby=(hint);
            } @else if kind == "string" && LONG.contains(&name) {
                textarea id=(id) name=(name) rows="3" required[required] aria-describedby=(hint) {}
            } @else if kind == "string" {
                input id=(id) name=(name) autocomplete="off" required[required] aria-describedby=(hint);
            } @else if kind == "any" {
                input id=(id) name=(name) data-as="value" autocomplete="off" required[required] aria-describedby=(hint);
            } @else {
                textarea id=(id) name=(name) rows="2" data-as="json" required[required] aria-describedby=(hint) placeholder=(example(schema, kind)) {}
            }
            div.hint id=(hint) {
                (prose(schema.get("description").and_then(Value::as_str).unwrap_or_default()))
                @if kind == "array" || kind == "object" { p { "Written as JSON." } }
                @if kind == "any" { p { "What is no JSON is a text." } }
                @if let Some(default) = schema.get("default").filter(|default| !default.is_array() && **default != "") { p { "Without it: " (said(&super::ui::plain(default))) "." } }
            }
        }
    }
}

/// How JSON for a field looks.
fn example(schema: &Value, kind: &str) -> String {
    let of_texts = schema.pointer("/items/type").and_then(Value::as_str) == Some("string");
    match (kind, of_texts) {
        ("array", true) => "[\"one\", \"another\"]".to_owned(),
        ("array", false) => {
            let names = schema.pointer("/items/required").and_then(Value::as_array).cloned().unwrap_or_default();
            let fields: Map<String, Value> = names.iter().filter_map(|name| Some((name.as_str()?.to_owned(), Value::from("…")))).collect();
            Value::Array(vec![Value::Object(fields)]).to_string()
        }
        _ => "{\"name\": \"value\"}".to_owned(),
    }
}

/// How others call the same.
fn by_others(op: &Op, name: &str) -> Markup {
    let who = if is_for_agents(op) { " --agent code" } else { "" };
    let needed = required(op).join("=… ");
    let needed = if needed.is_empty() { needed } else { format!(" {needed}=…") };
    html! {
        section.part {
            h3 { "The same from elsewhere" }
            pre.block tabindex="0" { "deskmate call " (name) (who) (needed) "\n\nPOST /api/" (name) }
            @if is_for_agents(op) { p.hint { "Agents find it as the MCP tool " code { (name) } ", with the same input and the same answer." } }
        }
    }
}
