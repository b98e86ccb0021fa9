//! Other MCP servers behind the desk: how they stand, which of their tools wait for somebody to look, and what was called.
//!
//! - this file: the servers, and the way to put another one behind the desk.
//! - `one`: one server: its tools, what they would get, and its connections; `told`: what was said of it, and changing that.
//! - `calls`: the calls that were made, each with why it got its answer.

mod calls;
mod one;
mod told;

use std::collections::BTreeMap;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::super::Shared;
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, empty, field, said, tabs};
use super::visit::{Fault, Visit};

pub(super) use calls::of_request;

const TABS: [(&str, &str); 2] = [("/gateway", "Servers"), ("/gateway/calls", "Calls")];

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/gateway", get(serve)).route("/gateway/calls", get(calls::serve)).route("/gateway/servers/{name}", get(one::serve))
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
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    cwd: Option<String>,
    enabled: bool,
    shared: bool,
    domain: Option<String>,
    #[serde(default)]
    verbs: BTreeMap<String, String>,
    #[serde(default)]
    hide: Vec<String>,
    #[serde(default)]
    redact: Vec<String>,
    intent: String,
    scan: String,
    cost: Option<f64>,
    environment: Option<String>,
    timeout_seconds: u32,
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
                ol.rows.mounts id="mounts" { @for mount in &mounts { (row(&visit, mount, &connections)) } }
            }
        }
        @if visit.you.role == "owner" { (add_form(mounts.is_empty())) }
        p.hint { "Which servers there are is a setting in force, like the " a href="/policies" { "policies" } ". Secrets are named, and kept in the secret store." }
    };
    shell::show(&visit, Page { title: "Gateway", place: Place::Gateway, topics: "mount tool call setting rulebook", body }).await
}

fn row(visit: &Visit, mount: &Mount, connections: &[Connection]) -> Markup {
    let own: Vec<&Connection> = connections.iter().filter(|connection| connection.name == mount.name).collect();
    html! {
        li id={ "mount-" (mount.name) } {
            a href={ "/gateway/servers/" (ui::segment(&mount.name)) } data-row {
                span.title { (said(&mount.name)) }
                span.badges {
                    (health(mount, &own))
                    @if !mount.waiting.is_empty() { (badge(Tone::Alarm, &format!("{} to look at", mount.waiting.len()))) }
                }
                span.meta { code { (said(&mount.reached())) } }
                span.meta { (mount.tools) @if mount.tools == 1 { " tool" } @else { " tools" } @if let Some(figures) = figures(&own) { " · " (figures) } }
            }
            (acts(visit, mount))
        }
    }
}

/// What can be done with a server.
fn acts(visit: &Visit, mount: &Mount) -> Markup {
    let name = html! { input type="hidden" name="name" value=(mount.name); };
    html! {
        div.acts {
            @if mount.enabled { form data-call="desk_mount_test" data-done="It answers" { (name) button.quiet { "Look at it now" } } }
            @if visit.you.role == "owner" {
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
        Some(state @ "given_up") => badge(tone(state), "given up"),
        Some(state @ "backoff") => badge(tone(state), "tried again soon"),
        Some(state @ "starting") => badge(tone(state), "starting"),
        Some(state) => badge(tone(state), "answers"),
        None => badge(Tone::Quiet, "resting"),
    }
}

/// The tone of a connection's state.
fn tone(state: &str) -> Tone {
    match state {
        "given_up" => Tone::Alarm,
        "backoff" => Tone::Warning,
        "ready" => Tone::Good,
        _ => Tone::Quiet,
    }
}

/// How much was asked over some connections since the desk started, and how fast the slowest answers.
#[expect(clippy::cast_precision_loss, reason = "a time of an answer")]
fn figures(own: &[&Connection]) -> Option<String> {
    let (calls, errors): (u64, u64) = own.iter().fold((0, 0), |(calls, errors), one| (calls + one.calls, errors + one.errors));
    let count = |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let latency = own.iter().filter_map(|one| one.latency_us).max().map(|latency| format!(" · answers in {:.1} ms", latency as f64 / 1e3));
    (calls > 0).then(|| format!("asked {} since the desk started, {}{}", count(calls, "time"), count(errors, "error"), latency.unwrap_or_default()))
}

/// The way to put a program or an address behind the desk.
fn add_form(is_first: bool) -> Markup {
    let (pattern, rule) = ("[a-z0-9][a-z0-9_\\-]*", "small letters, digits, - and _");
    html! {
        details.card.create id="add-mount" open[is_first] {
            summary { "Put a server behind the desk" }
            div.beside {
                form data-call="desk_mount_add" data-done="It is added; the desk looks at what it offers" {
                    h3 { "A program" }
                    (field("program-name", "Name", html! { input #program-name name="mount.name" required maxlength="32" pattern=(pattern) title=(rule) placeholder="files" autocomplete="off"; }))
                    (field("program-command", "Program", html! { input #program-command name="mount.command" required placeholder="npx" autocomplete="off"; }))
                    (field("program-args", "What it is given, a word a line", html! { textarea #program-args name="mount.args" rows="2" data-as="lines" placeholder="-y\nsome-server" {} }))
                    (field("program-env", "Its environment, NAME=VALUE a line", html! { textarea #program-env name="mount.env" rows="2" data-as="pairs" placeholder="TOKEN=secret:github" {} }))
                    (verbs("program"))
                    button { "Add the program" }
                }
                form data-call="desk_mount_add" data-done="It is added; the desk looks at what it offers" {
                    h3 { "An address" }
                    (field("address-name", "Name", html! { input #address-name name="mount.name" required maxlength="32" pattern=(pattern) title=(rule) placeholder="crm" autocomplete="off"; }))
                    (field("address-url", "Address", html! { input #address-url name="mount.url" type="url" required placeholder="https://crm.example.org/mcp" autocomplete="off"; }))
                    (field("address-headers", "Headers, NAME=VALUE a line", html! { textarea #address-headers name="mount.headers" rows="2" data-as="pairs" placeholder="Authorization=Bearer secret:crm" {} }))
                    (verbs("address"))
                    button { "Add the address" }
                }
            }
            p.hint { "A value " code { "secret:NAME" } " is taken from the secret store when it is used. Agents reach the server at " code { "/mcp/NAME" } ". What is said of one that is there is changed on its own page, and how it is reached with " code { "deskmate gateway add --replace" } ", which keeps what else was set." }
        }
    }
}

fn verbs(prefix: &str) -> Markup {
    let id = format!("{prefix}-verbs");
    field(
        &id,
        "What its tools do, for rules, TOOL=VERB a line",
        html! { textarea id=(id) name="mount.verbs" rows="2" data-as="pairs" placeholder="get_*=repo.read" {} },
    )
}
