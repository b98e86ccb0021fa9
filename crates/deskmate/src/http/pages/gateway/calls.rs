//! The calls of tools behind the desk, as they happen, each with why it got its answer.

use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::case;
use super::super::event::Event;
use super::super::shell::{self, Page, Place};
use super::super::ui::{self, Tone, badge, block, empty, filter, more, part, plain, said, spaced, tabs, time};
use super::super::visit::{Fault, Visit};
use super::{Mounts, TABS};

const STATES: [(&str, &str); 7] = [
    ("", "in every state"),
    ("held", "held"),
    ("passed", "under way"),
    ("done", "done"),
    ("failed", "failed"),
    ("ambiguous", "ambiguous"),
    ("denied", "denied"),
];

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Sought {
    state: String,
    mount: String,
    agent: String,
    cursor: String,
}

#[derive(Deserialize)]
struct Calls {
    items: Vec<Called>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Called {
    call_id: String,
    actor: String,
    verified: bool,
    mount: String,
    tool: String,
    kind: String,
    mode: String,
    state: String,
    message: String,
    #[serde(default)]
    why: Vec<String>,
    request_id: Option<String>,
    intent: Option<String>,
    arguments: Option<Value>,
    milliseconds: Option<f64>,
    created_at: String,
}

pub(super) async fn serve(visit: Visit, Query(sought): Query<Sought>) -> Result<Response, Fault> {
    let given = |text: &String| (!text.is_empty()).then(|| text.clone());
    let input =
        json!({ "state": given(&sought.state), "mount": given(&sought.mount), "agent": given(&sought.agent), "cursor": given(&sought.cursor), "limit": 50 });
    let found: Calls = visit.ask("gateway_list_calls", input).await?;
    let Mounts { mounts } = visit.ask("desk_mount_list", json!({})).await?;
    let mut servers: Vec<(&str, &str)> =
        [("", "of every server")].into_iter().chain(mounts.iter().map(|mount| (mount.name.as_str(), mount.name.as_str()))).collect();
    // One that is gone has calls still.
    if !servers.iter().any(|(name, _)| *name == sought.mount) {
        servers.push((&sought.mount, &sought.mount));
    }
    let others = if sought.cursor.is_empty() { others(&visit, &sought).await? } else { Vec::new() };
    let body = html! {
        h1.unseen { "Calls" }
        (tabs(&TABS, "/gateway/calls"))
        form.bar data-filters { (filter("Server", "mount", &servers, &sought.mount)) (filter("State", "state", &STATES, &sought.state)) }
        section.card aria-label="Calls" {
            @if found.items.is_empty() { (empty("No call was made", html! { p { "Calls of tools behind the desk are shown here as they happen, with what was decided and why." } })) }
            ol.rows.mounts id="calls" { @for call in &found.items { (called(call)) } }
            @if let Some(cursor) = &found.next_cursor { (more(&ui::address("/gateway/calls", &[("state", &sought.state), ("mount", &sought.mount), ("agent", &sought.agent), ("cursor", cursor)]))) }
        }
        @if !others.is_empty() {
            section.card aria-label="Refused, and read" {
                h2 { "Refused, and read" }
                p.meta { "What never became a call, with the reason, and what was read besides calls. Of many refusals within a minute only the number is kept." }
                ol.rows.mounts id="others" { @for event in &others { (other(event)) } }
            }
        }
    };
    shell::show(&visit, Page { title: "Calls", place: Place::Gateway, topics: "call mount request", body }).await
}

#[derive(Deserialize)]
struct Events {
    events: Vec<Event>,
}

/// How many of them are looked through, and shown.
const OTHERS_SOUGHT: usize = 200;
const OTHERS_SHOWN: usize = 20;

/// What was refused before anything was decided about it, and what was read of servers: neither is a call.
async fn others(visit: &Visit, sought: &Sought) -> Result<Vec<Event>, Fault> {
    let mut found = Vec::new();
    for kind in ["call.refused", "mount.read"] {
        let Events { events } = visit.ask("desk_record_list", json!({ "kind": kind, "limit": OTHERS_SOUGHT })).await?;
        found.extend(events.into_iter().filter(|event| {
            let is_passage =
                event.kind == "mount.read" || text(event.facts.get("operation")).starts_with("gateway_") || text(event.facts.get("operation")) == "tools_call";
            let by = if event.kind == "mount.read" { event.actor.as_str() } else { event.subject.trim_start_matches("caller:") };
            is_passage && (sought.mount.is_empty() || mount(event) == sought.mount) && (sought.agent.is_empty() || by == sought.agent)
        }));
    }
    found.sort_by_key(|event| std::cmp::Reverse(event.seq));
    found.truncate(OTHERS_SHOWN);
    Ok(found)
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn of(event: &Event, field: &str) -> String {
    text(event.payload.as_ref().and_then(|payload| payload.get(field))).to_owned()
}

fn mount(event: &Event) -> String {
    if event.kind == "mount.read" { event.subject.trim_start_matches("mount:").to_owned() } else { of(event, "mount") }
}

fn other(event: &Event) -> Markup {
    let is_read = event.kind == "mount.read";
    let named = [of(event, "tool"), of(event, "name"), text(event.facts.get("kind")).to_owned()].into_iter().find(|name| !name.is_empty());
    let by = if is_read { event.actor.clone() } else { event.subject.trim_start_matches("caller:").to_owned() };
    html! {
        li id={ "event-" (event.seq) } {
            div.pad {
                p.row {
                    strong { (said(&mount(event))) ": " (said(&named.unwrap_or_default())) }
                    (badge(Tone::of_state(if is_read { "done" } else { "denied" }), if is_read { "read" } else { "refused" }))
                }
                @if !is_read { p { (said(&of(event, "why"))) } }
                p.meta { (said(&by)) " · " (time(&event.at)) " · " a href={ "/record/" (event.seq) } { "Its entry in the record" } }
            }
        }
    }
}

#[derive(Deserialize)]
struct Tools {
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    definition: Value,
}

/// The call that a request is about, where it is one of a server behind the desk: what the server says of the tool, and how the call
/// stands.
pub(in super::super) async fn of_request(visit: &Visit, request: &str) -> Markup {
    let found: Result<Calls, Fault> = visit.ask("gateway_list_calls", json!({ "request": request })).await;
    let Some(call) = found.ok().and_then(|found| found.items.into_iter().next()) else { return Markup::default() };
    let tools: Result<Tools, Fault> = visit.ask("desk_mount_tools", json!({ "name": call.mount })).await;
    let tool = tools.ok().and_then(|found| found.tools.into_iter().find(|tool| tool.name == call.tool));
    let says = tool.as_ref().and_then(|tool| tool.definition.get("description")).and_then(Value::as_str);
    part(
        "The call",
        html! {
            p id="call" {
                "The tool " strong { (said(&call.tool)) } " of the server " a href={ "/gateway/servers/" (ui::segment(&call.mount)) } { (said(&call.mount)) } ", which behind the desk is "
                code { (said(&call.kind)) } ". " (badge(Tone::of_state(&call.state), &call.state))
            }
            @if let Some(says) = says { p.meta { "Its server says of it: " (said(says)) } }
            @if call.state != "held" {
                p { (said(&call.message)) @if let Some(milliseconds) = call.milliseconds { span.meta { " · " (format!("{milliseconds:.1} ms")) } } }
            }
            p.meta { a href=(case::address("call", &call.call_id)) { "Everything that happened to it" } }
        },
    )
}

fn called(call: &Called) -> Markup {
    html! {
        li id={ "call-" (call.call_id) } {
            div.pad {
                p.row {
                    strong { (said(&call.mount)) ": " (said(&call.tool)) }
                    (badge(Tone::of_state(&call.state), &call.state))
                    @if call.state != "denied" { (badge(Tone::of_state(&call.mode), &call.mode)) }
                }
                p { (said(&call.message)) }
                @if !call.why.is_empty() { p.meta { "Answered with " (spaced(&call.mode)) ", because " @for (at, text) in call.why.iter().enumerate() { @if at > 0 { "; " } (said(text)) } } }
                @if let Some(intent) = &call.intent { p.meta { "It said why: " (said(intent)) } }
                p.meta {
                    (said(&call.actor)) @if !call.verified { " (unproved)" }
                    " · " (spaced(&call.kind)) " · " (time(&call.created_at))
                    @if let Some(milliseconds) = call.milliseconds { " · " (format!("{milliseconds:.1} ms")) }
                    @if let Some(request) = &call.request_id { " · " a href={ "/requests/" (ui::segment(request)) } { "Its request" } }
                    " · " a href=(case::address("call", &call.call_id)) { "Everything that happened to it" }
                }
                @if let Some(arguments) = &call.arguments { details { summary { "Arguments, without secrets" } (block(&plain(arguments))) } }
            }
        }
    }
}
