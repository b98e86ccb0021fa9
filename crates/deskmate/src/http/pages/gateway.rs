//! Other MCP servers behind the desk: how they stand, which of their tools wait for somebody to look, and what was called.

use axum::Router;
use axum::extract::{Path, Query};
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use similar::TextDiff;

use super::super::Shared;
use super::case;
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, block, empty, fact, field, filter, more, plain, said, spaced, tabs, time};
use super::visit::{Fault, Visit};

const TABS: [(&str, &str); 2] = [("/gateway", "Servers"), ("/gateway/calls", "Calls")];
const STATES: [(&str, &str); 7] =
    [("", "all"), ("held", "held"), ("passed", "under way"), ("done", "done"), ("failed", "failed"), ("ambiguous", "ambiguous"), ("denied", "denied")];

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/gateway", get(serve)).route("/gateway/calls", get(calls)).route("/gateway/servers/{name}", get(server))
}

#[derive(Deserialize)]
struct Mounts {
    mounts: Vec<Mount>,
}

#[derive(Deserialize)]
struct Mount {
    name: String,
    #[serde(default)]
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    url: String,
    enabled: bool,
    #[serde(default)]
    domain: Option<String>,
    tools: usize,
    waiting: Vec<String>,
    #[serde(default)]
    secrets: Vec<String>,
}

impl Mount {
    fn reached(&self) -> String {
        if self.url.is_empty() {
            [self.command.as_str()].into_iter().chain(self.args.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
        } else {
            self.url.clone()
        }
    }
}

#[derive(Deserialize)]
struct Connections {
    connections: Vec<Connection>,
}

#[derive(Deserialize)]
struct Connection {
    name: String,
    agent: Option<String>,
    state: String,
    #[serde(default)]
    why: String,
    latency_us: Option<u64>,
    calls: u64,
    errors: u64,
    #[serde(default)]
    log: Vec<String>,
}

async fn connections(visit: &Visit) -> Vec<Connection> {
    let found: Result<Connections, Fault> = visit.ask("desk_mount_status", json!({})).await;
    found.map(|found| found.connections).unwrap_or_default()
}

async fn serve(visit: Visit) -> Result<Response, Fault> {
    let Mounts { mounts } = visit.ask("desk_mount_list", json!({})).await?;
    let connections = connections(&visit).await;
    let body = html! {
        h1.unseen { "Gateway" }
        (tabs(&TABS, "/gateway"))
        @if mounts.is_empty() {
            (empty("No server stands behind the desk", html! {
                p { "Put another MCP server behind it, and every call of its tools is decided, recorded and, where it must be, held for you." }
                p { code { "deskmate gateway add files -- npx some-server" } }
            }))
        } @else {
            section.card aria-label="Servers" {
                ol.rows id="mounts" { @for mount in &mounts { (row(mount, &connections)) } }
            }
        }
        (add_form(mounts.is_empty()))
        p.hint { "Which servers there are is a setting in force, like the " a href="/policies" { "policies" } ". Secrets are named, and kept in the secret store." }
    };
    shell::show(&visit, Page { title: "Gateway", place: Place::Gateway, topics: "mount tool call setting rulebook", body }).await
}

fn row(mount: &Mount, connections: &[Connection]) -> Markup {
    let own: Vec<&Connection> = connections.iter().filter(|connection| connection.name == mount.name).collect();
    let name = html! { input type="hidden" name="name" value=(mount.name); };
    html! {
        li.row id={ "mount-" (mount.name) } {
            a href={ "/gateway/servers/" (ui::segment(&mount.name)) } { strong { (said(&mount.name)) } }
            " " (health(mount, &own))
            @if !mount.waiting.is_empty() { " " (badge(Tone::Alarm, &format!("{} to look at", mount.waiting.len()))) }
            p.meta { code { (said(&mount.reached())) } " · " (mount.tools) " tools" (figures(&own)) }
            div.acts {
                form data-call="desk_mount_test" data-done="It answers" { (name) button.quiet { "Look at it now" } }
                @if mount.enabled {
                    form data-call="desk_mount_switch" data-done="It is not served any more" { (name) input type="hidden" name="enabled" value="false" data-as="json"; button.quiet { "Switch off" } }
                } @else {
                    form data-call="desk_mount_switch" data-done="It is served" { (name) input type="hidden" name="enabled" value="true" data-as="json"; button.quiet { "Switch on" } }
                }
                form data-call="desk_mount_remove" data-done="It is gone" data-confirm={ "Take " (mount.name) " away? What was done with it stays on the record." } { (name) button.quiet { "Remove" } }
            }
        }
    }
}

fn health(mount: &Mount, own: &[&Connection]) -> Markup {
    if !mount.enabled {
        return badge(Tone::Quiet, "switched off");
    }
    let worst = ["given_up", "backoff", "starting", "ready"].into_iter().find(|state| own.iter().any(|connection| connection.state == *state));
    match worst {
        Some("given_up") => badge(Tone::Alarm, "given up"),
        Some("backoff") => badge(Tone::Warning, "tried again soon"),
        Some("starting") => badge(Tone::Quiet, "starting"),
        Some(_) => badge(Tone::Good, "answers"),
        None => badge(Tone::Quiet, "resting"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a time of an answer")]
fn figures(own: &[&Connection]) -> Markup {
    let (calls, errors): (u64, u64) = own.iter().fold((0, 0), |(calls, errors), one| (calls + one.calls, errors + one.errors));
    let latency = own.iter().filter_map(|one| one.latency_us).max();
    html! {
        @if calls > 0 { " · " (calls) " calls since the start, " (errors) " errors" }
        @if let Some(latency) = latency { " · " (format!("{:.1} ms", latency as f64 / 1e3)) }
    }
}

fn add_form(is_first: bool) -> Markup {
    html! {
        details.card.create id="add-mount" open[is_first] {
            summary { "Put a server behind the desk" }
            form data-call="desk_mount_add" data-done="It is added; look at it now" {
                (field("mount-json", "The mount, as JSON", html! {
                    textarea #mount-json name="mount" rows="5" required data-as="json" { "{ \"name\": \"files\", \"command\": \"npx\", \"args\": [\"some-server\"] }" }
                }))
                p.hint { "With " code { "command" } " and " code { "args" } ", or with " code { "url" } " and " code { "headers" } "; " code { "env" } " and headers may name secrets, " code { "secret:NAME" } "." }
                button { "Add it" }
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
    state: String,
    hidden: bool,
    verb: String,
    definition: Value,
    offered: Option<Value>,
    offered_digest: Option<String>,
    looks_like: Option<String>,
    changed_at: String,
}

async fn server(visit: Visit, Path(name): Path<String>) -> Result<Response, Fault> {
    let Mounts { mounts } = visit.ask("desk_mount_list", json!({})).await?;
    let Tools { tools } = visit.ask("desk_mount_tools", json!({ "name": name })).await?;
    let connections = connections(&visit).await;
    let own: Vec<&Connection> = connections.iter().filter(|connection| connection.name == name).collect();
    let mount = mounts.iter().find(|mount| mount.name == name);
    let (waiting, known): (Vec<&Tool>, Vec<&Tool>) = tools.iter().partition(|tool| tool.offered_digest.is_some());
    let body = html! {
        h1 { (said(&name)) }
        (tabs(&TABS, ""))
        @if let Some(mount) = mount {
            dl.facts {
                (fact("Reached by", html! { code { (said(&mount.reached())) } }))
                (fact("State", health(mount, &own)))
                (fact("Judged in", html! { a href=(ui::address("/policies", &[])) { (said(mount.domain.as_deref().unwrap_or(&format!("gateway.{}", mount.name)))) } }))
                @if !mount.secrets.is_empty() { (fact("Given secrets", said(&mount.secrets.join(", ")))) }
                (fact("Served at", html! { code { "/mcp/" (mount.name) } }))
            }
        }
        @if !waiting.is_empty() {
            section.card aria-label="Tools to look at" {
                h2 { "Look at these before agents get them" }
                @for tool in waiting { (difference(&name, tool)) }
            }
        }
        section.card aria-label="Tools" {
            h2 { "Tools" }
            @if known.is_empty() { (empty("None yet", html! { p { "Look at the server, and what it offers then is known from now on." } })) }
            ol.rows {
                @for tool in known {
                    li.row {
                        strong { (said(&tool.name)) } " " (badge(Tone::Quiet, &tool.verb))
                        @if tool.hidden { " " (badge(Tone::Warning, "left out")) }
                        @if tool.state == "gone" { " " (badge(Tone::Warning, "not offered any more")) }
                        (flag(tool))
                        p.meta { (said(tool.definition.get("description").and_then(Value::as_str).unwrap_or_default())) }
                    }
                }
            }
        }
        @for connection in &own {
            section.card aria-label="Connection" {
                h2 { "Connection" @if let Some(agent) = &connection.agent { " of " (said(agent)) } }
                p { (badge(ui::Tone::of_state(&connection.state), &connection.state)) " " (said(&connection.why)) }
                @if !connection.log.is_empty() { details { summary { "What it wrote last" } (block(&connection.log.join("\n"))) } }
            }
        }
    };
    shell::show(&visit, Page { title: &name, place: Place::Gateway, topics: "mount tool setting rulebook", body }).await
}

fn flag(tool: &Tool) -> Markup {
    html! { @if let Some(other) = &tool.looks_like { " " (badge(Tone::Alarm, "looks like another")) " " (said(other)) } }
}

/// What a tool was and is, side by side, and the way to accept it.
fn difference(mount: &str, tool: &Tool) -> Markup {
    let was = if tool.state == "new" { String::new() } else { plain(&tool.definition) };
    let is = tool.offered.as_ref().map(plain).unwrap_or_default();
    let diff = TextDiff::from_lines(&was, &is).unified_diff().context_radius(3).to_string();
    html! {
        article.padded id={ "tool-" (tool.name) } {
            h3 { (said(&tool.name)) " " (badge(Tone::Warning, &tool.state)) (flag(tool)) }
            p.meta { "since " (time(&tool.changed_at)) }
            (block(&diff))
            form data-call="desk_mount_accept" data-done="It is served from now on" {
                input type="hidden" name="mount" value=(mount);
                input type="hidden" name="tool" value=(tool.name);
                input type="hidden" name="digest" value=(tool.offered_digest.clone().unwrap_or_default());
                button { "I have seen it; serve it" }
            }
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sought {
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
    request_id: Option<String>,
    intent: Option<String>,
    arguments: Option<Value>,
    milliseconds: Option<f64>,
    created_at: String,
}

async fn calls(visit: Visit, Query(sought): Query<Sought>) -> Result<Response, Fault> {
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    let input =
        json!({ "state": text(&sought.state), "mount": text(&sought.mount), "agent": text(&sought.agent), "cursor": text(&sought.cursor), "limit": 50 });
    let found: Calls = visit.ask("gateway_list_calls", input).await?;
    let body = html! {
        h1.unseen { "Calls" }
        (tabs(&TABS, "/gateway/calls"))
        form.filters method="get" { (filter("State", "state", &STATES, &sought.state)) }
        section.card aria-label="Calls" {
            @if found.items.is_empty() { (empty("No call was made", html! { p { "Calls of tools behind the desk are shown here as they happen, with what was decided and why." } })) }
            ol.rows id="calls" { @for call in &found.items { (called(call)) } }
            @if let Some(cursor) = &found.next_cursor { (more(&ui::address("/gateway/calls", &[("state", &sought.state), ("mount", &sought.mount), ("agent", &sought.agent), ("cursor", cursor)]))) }
        }
    };
    shell::show(&visit, Page { title: "Calls", place: Place::Gateway, topics: "call", body }).await
}

fn called(call: &Called) -> Markup {
    html! {
        li.row id={ "call-" (call.call_id) } {
            a href=(case::address("call", &call.call_id)) { strong { (said(&call.mount)) ": " (said(&call.tool)) } }
            " " (badge(Tone::of_state(&call.state), &call.state)) " " (badge(Tone::of_state(&call.mode), &call.mode))
            p.meta {
                (said(&call.actor)) @if !call.verified { " (unproved)" }
                " · " (spaced(&call.kind)) " · " (time(&call.created_at))
                @if let Some(milliseconds) = call.milliseconds { " · " (format!("{milliseconds:.1} ms")) }
                @if let Some(request) = &call.request_id { " · " a href={ "/requests/" (ui::segment(request)) } { "its request" } }
            }
            p { (said(&call.message)) @if let Some(intent) = &call.intent { " – " (said(intent)) } }
            @if let Some(arguments) = &call.arguments { details { summary { "Arguments, without secrets" } (block(&plain(arguments))) } }
        }
    }
}
