//! What was said of a server behind the desk, besides how it is reached, and the way to change it.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::super::ui::{choice, fact, field, said};
use super::Mount;

const INTENTS: [(&str, &str); 3] = [("off", "nobody asks"), ("warn", "a call without it is noted"), ("strict", "a call without it is refused")];
const SCANS: [(&str, &str); 2] = [("off", "it is passed on as data"), ("require", "nothing is passed on that no scanner has seen")];

fn label<'l>(of: &[(&str, &'l str)], value: &str) -> &'l str {
    of.iter().find(|(known, _)| *known == value).map_or("", |(_, label)| *label)
}

/// What differs from what holds where nothing is said.
pub(super) fn facts(mount: &Mount) -> Markup {
    html! {
        @if let Some(cwd) = &mount.cwd { (fact("Starts in", html! { code { (said(cwd)) } })) }
        @if !mount.hide.is_empty() { (fact("Left out for everybody", said(&mount.hide.join(", ")))) }
        @if !mount.redact.is_empty() { (fact("Taken out of what comes back", said(&mount.redact.join(", ")))) }
        @if mount.intent != "off" { (fact("Why callers call", html! { (label(&INTENTS, &mount.intent)) })) }
        @if mount.scan != "off" { (fact("What comes back", html! { (label(&SCANS, &mount.scan)) })) }
        @if mount.shared { (fact("Connection", html! { "one for all agents" })) }
        @if let Some(cost) = mount.cost { (fact("One call costs", html! { (cost) })) }
        @if let Some(environment) = &mount.environment { (fact("Acts in", said(environment))) }
    }
}

/// The way to change it. How the server is reached goes along as it is.
pub(super) fn form(mount: &Mount) -> Markup {
    let stays = |name: &str, value: Value| html! { input type="hidden" name={ "mount." (name) } value=(value) data-as="json"; };
    let verbs: Vec<String> = mount.verbs.iter().map(|(tool, verb)| format!("{tool}={verb}")).collect();
    let text = |id: &str, name: &str, value: &Option<String>, example: &str| {
        html! { input id=(id) name={ "mount." (name) } value=[value.as_deref()] data-empty placeholder=(example) autocomplete="off"; }
    };
    let lines = |id: &str, name: &str, of: &[String], example: &str| {
        html! { textarea id=(id) name={ "mount." (name) } rows="2" data-as="lines" placeholder=(example) { (of.join("\n")) } }
    };
    html! {
        details id="told" {
            summary { "Change what is said of it" }
            form data-call="desk_mount_add" data-done="It is in force" {
                input type="hidden" name="replace" value="true" data-as="json";
                (stays("name", json!(mount.name)))
                @if mount.url.is_empty() {
                    (stays("command", json!(mount.command))) (stays("args", json!(mount.args))) (stays("env", json!(mount.env)))
                    @if let Some(cwd) = &mount.cwd { (stays("cwd", json!(cwd))) }
                } @else { (stays("url", json!(mount.url))) (stays("headers", json!(mount.headers))) }
                (field("told-verbs", "What its tools do, for rules, TOOL=VERB a line", html! {
                    textarea id="told-verbs" name="mount.verbs" rows="4" data-as="pairs" data-empty placeholder="get_*=repo.read" { (verbs.join("\n")) }
                }))
                (field("told-hide", "Tools that are left out for everybody, one a line", lines("told-hide", "hide", &mount.hide, "delete_*")))
                (field("told-redact", "Personal data that is taken out of what comes back, a kind a line", lines("told-redact", "redact", &mount.redact, "email")))
                (field("told-intent", "Whether callers say why they call", choice("told-intent", "mount.intent", &INTENTS, &mount.intent)))
                (field("told-scan", "What comes back", choice("told-scan", "mount.scan", &SCANS, &mount.scan)))
                (field("told-domain", "Where its calls are judged", text("told-domain", "domain", &mount.domain, &format!("gateway.{}", mount.name))))
                (field("told-environment", "Where its tools act", text("told-environment", "environment", &mount.environment, "production")))
                (field("told-cost", "What one call costs, in units", html! { input id="told-cost" name="mount.cost" type="number" min="0" step="any" value=[mount.cost] data-as="json" data-empty; }))
                (field("told-timeout", "How many seconds one call may take", html! { input id="told-timeout" name="mount.timeout_seconds" type="number" min="1" max="600" required value=(mount.timeout_seconds) data-as="json"; }))
                div.field { label { input type="checkbox" name="mount.shared" data-as="json" checked[mount.shared]; " One connection for all agents: only where it remembers nothing between two calls" } }
                button { "Change it" }
            }
            p.hint { "How it is reached is changed with " code { "deskmate gateway add " (mount.name) " --replace" } ", which keeps what is said here." }
        }
    }
}
