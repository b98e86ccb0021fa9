//! One server behind the desk: its tools with what they would get and by which rule, what is different about those that wait, and
//! its connections.

use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::policies;
use super::super::shell::{self, Page, Place};
use super::super::ui::{self, Tone, badge, block, empty, fact, filter, plain, said, tabs, time};
use super::super::visit::{Fault, People, Visit};
use super::{Connection, Mounts, TABS, acts, connections, figures, health, told};

/// How many agents can be chosen from.
const AGENTS_MAX: u32 = 200;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    agent: String,
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
    alone: Option<String>,
    changed_at: String,
    accepted_by: Option<String>,
}

#[derive(Deserialize)]
struct Agents {
    agents: Vec<Agent>,
}

#[derive(Deserialize)]
struct Agent {
    agent: String,
}

/// What `desk_mount_policy` answers.
#[derive(Default, Deserialize)]
struct Answers {
    rulebook: String,
    tools: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    name: String,
    listed: bool,
    mode: String,
    why: Vec<String>,
    hits: Vec<Hit>,
    open: Vec<Open>,
    #[serde(default)]
    set: String,
}

/// A rule that fires.
#[derive(Deserialize)]
struct Hit {
    rule_id: String,
    policy: String,
    version: i64,
    effect: String,
    reason: String,
}

/// A rule that may fire.
#[derive(Deserialize)]
struct Open {
    rule_id: String,
    policy: String,
    effect: String,
    when: String,
    message: String,
}

pub(super) async fn serve(visit: Visit, Path(name): Path<String>, Query(asked): Query<Asked>) -> Result<Response, Fault> {
    let Mounts { mounts } = visit.ask("desk_mount_list", json!({})).await?;
    let Tools { tools } = visit.ask("desk_mount_tools", json!({ "name": name })).await?;
    let Agents { agents } = visit.ask("desk_agent_list", json!({ "unregistered": true, "limit": AGENTS_MAX })).await?;
    let agent = if asked.agent.is_empty() { agents.first().map_or("", |agent| agent.agent.as_str()) } else { asked.agent.as_str() };
    let answers = match agent {
        "" => Answers::default(),
        agent => visit.ask("desk_mount_policy", json!({ "name": name, "agent": agent })).await?,
    };
    let connections = connections(&visit).await;
    let own: Vec<&Connection> = connections.iter().filter(|connection| connection.name == name).collect();
    let (waiting, known): (Vec<&Tool>, Vec<&Tool>) = tools.iter().partition(|tool| tool.offered_digest.is_some());
    let people = visit.people().await?;
    let body = html! {
        h1 { (said(&name)) }
        (tabs(&TABS, ""))
        @if let Some(mount) = mounts.iter().find(|mount| mount.name == name) {
            section.card.pad aria-label="The server" {
                dl.facts.broad {
                    (fact("Reached by", html! { code { (said(&mount.reached())) } }))
                    (fact("State", html! { (health(mount, &own)) @if let Some(figures) = figures(&own) { span.meta { " · " (figures) } } }))
                    (fact("Judged in", said(mount.domain.as_deref().unwrap_or(&format!("gateway.{}", mount.name)))))
                    (fact("Agents reach it at", html! { code { "/mcp/" (mount.name) } }))
                    @if !mount.secrets.is_empty() { (fact("Is given the secrets", said(&mount.secrets.join(", ")))) }
                    (told::facts(mount))
                    (fact("Its calls", html! { a href=(ui::address("/gateway/calls", &[("mount", &name)])) { "Show them" } }))
                }
                (acts(&visit, mount))
                @if visit.you.role == "owner" { (told::form(mount)) }
            }
        }
        @if !waiting.is_empty() {
            section.card.pad aria-label="Tools to look at" {
                h2 { "Look at these before agents get them" }
                @for tool in waiting { (difference(&visit, &name, tool)) }
            }
        }
        section.card aria-label="Tools" {
            header.head.pad {
                h2 { "Tools" }
                @if !agents.is_empty() {
                    form.bar data-filters {
                        label for="agent" { "What they would get for" }
                        (choose(&agents, agent))
                    }
                }
            }
            @if known.is_empty() { (empty("None yet", html! { p { "Look at the server, and what it offers then is known from now on." } })) }
            @if agents.is_empty() && !known.is_empty() { p.hint.pad { "When an agent is there, each tool says what that agent would get, and by which rule." } }
            @if !agents.is_empty() && visit.you.role == "owner" {
                p.hint.pad { "What you set for a tool holds for every agent. It is a rule like those under " a href="/policies" { "policies" } ", with versions that are kept, and the most restrictive rule wins." }
            }
            ol.rows.mounts id="tools" { @for tool in known { (row(&visit, &people, (&name, tool), &answers)) } }
        }
        @for connection in &own { (connected(connection)) }
    };
    let topics = "mount tool call setting rulebook policy mapping trust pause agent";
    shell::show(&visit, Page { title: &name, place: Place::Gateway, topics, body }).await
}

fn choose(agents: &[Agent], chosen: &str) -> Markup {
    let mut options: Vec<(&str, &str)> = agents.iter().map(|agent| (agent.agent.as_str(), agent.agent.as_str())).collect();
    if !options.iter().any(|(agent, _)| *agent == chosen) {
        options.push((chosen, chosen));
    }
    filter("Agent", "agent", &options, chosen)
}

/// A tool as it is known, with what it would get.
fn row(visit: &Visit, people: &People, (mount, tool): (&str, &Tool), answers: &Answers) -> Markup {
    let served = tool.state == "known" && !tool.hidden;
    let answer = answers.tools.iter().find(|answer| answer.name == tool.name);
    html! {
        li id={ "tool-" (tool.name) } {
            div.pad {
                p.row {
                    strong { (said(&tool.name)) }
                    @if let Some(answer) = answer.filter(|_| served) { (badge(Tone::of_state(&answer.mode), &answer.mode)) }
                    @if let Some(answer) = answer.filter(|answer| served && !answer.listed) { (badge(Tone::Quiet, if answer.mode == "deny" { "not listed" } else { "not there" })) }
                    (badge(Tone::Quiet, &tool.verb))
                    @if tool.hidden { (badge(Tone::Warning, "left out for everybody")) }
                    @if tool.state == "gone" { (badge(Tone::Warning, "not offered any more")) }
                    (flag(tool))
                }
                @if let Some(answer) = answer.filter(|_| served) { (why(answer)) }
                @if let Some(text) = tool.definition.get("description").and_then(Value::as_str) { p.meta.note { (said(text)) } }
                @if let Some(answer) = answer.filter(|_| visit.you.role == "owner") { (setting((mount, tool), answer, &answers.rulebook)) }
                @if let Some(by) = &tool.accepted_by { p.meta { "accepted by " (said(people.name(by))) " " (time(&tool.changed_at)) } }
            }
        }
    }
}

/// What can be set for a tool alone.
const SETTINGS: [(&str, &str); 4] = [("policies", "as the policies say"), ("pass", "pass"), ("ask", "ask a person"), ("forbid", "forbid")];

/// The way to set what a tool gets.
fn setting((mount, tool): (&str, &Tool), answer: &Answer, rulebook: &str) -> Markup {
    let id = format!("answer-{}", tool.name);
    let chosen = if answer.set.is_empty() { "policies" } else { answer.set.as_str() };
    html! {
        form.bar data-call="desk_mount_answer" data-done="It is in force" {
            input type="hidden" name="mount" value=(mount);
            input type="hidden" name="tool" value=(tool.name);
            input type="hidden" name="expected_rulebook" value=(rulebook);
            label for=(id) { "For every agent" }
            (ui::choice(&id, "answer", &SETTINGS, chosen))
            button.quiet { "Set" }
        }
    }
}

/// What an answer comes from, and what may change it.
fn why(answer: &Answer) -> Markup {
    html! {
        @if !answer.why.is_empty() { p { @for (at, text) in answer.why.iter().enumerate() { @if at > 0 { "; " } (said(text)) } } }
        @for rule in &answer.hits {
            p.meta {
                (badge(Tone::of_effect(&rule.effect), &rule.effect)) " by rule " (said(&rule.rule_id)) " of "
                @if rule.version == 0 { (said(&rule.policy)) } @else { a href=(policies::address(&rule.policy)) { (said(&rule.policy)) } " version " (rule.version) }
                @if !answer.why.iter().any(|text| text.contains(&rule.reason)) { ": " (said(&rule.reason)) }
            }
        }
        @for rule in &answer.open {
            p.meta {
                "But " (badge(Tone::of_effect(&rule.effect), &rule.effect)) " when " code { (said(&rule.when)) }
                @if !rule.message.is_empty() { ": " (said(&rule.message)) }
                " (rule " (said(&rule.rule_id)) " of " a href=(policies::address(&rule.policy)) { (said(&rule.policy)) } ")"
            }
        }
    }
}

fn flag(tool: &Tool) -> Markup {
    html! {
        @if let Some(other) = &tool.looks_like { (badge(Tone::Alarm, "looks like another")) " " (said(other)) }
        @if let Some(why) = &tool.alone { (badge(Tone::Warning, "not beside others")) " " (said(why)) }
    }
}

/// What a tool was and is, line by line, and the way to accept it.
fn difference(visit: &Visit, mount: &str, tool: &Tool) -> Markup {
    let was = if tool.state == "new" { String::new() } else { plain(&tool.definition) };
    let is = tool.offered.as_ref().map(plain).unwrap_or_default();
    html! {
        article.part id={ "tool-" (tool.name) } {
            h3.row { (said(&tool.name)) (badge(Tone::Warning, &tool.state)) (flag(tool)) }
            p.meta { @if tool.state == "new" { "It came after the others, " } @else { "It is not any more what it was, since " } (time(&tool.changed_at)) ". What it says of itself is the server's word, for agents to read." }
            (policies::difference(&was, &is))
            @if visit.you.role == "owner" {
                form.acts data-call="desk_mount_accept" data-done="It is served from now on" {
                    input type="hidden" name="mount" value=(mount);
                    input type="hidden" name="tool" value=(tool.name);
                    input type="hidden" name="digest" value=(tool.offered_digest.clone().unwrap_or_default());
                    button { "I have seen it; serve it" }
                }
            } @else { p.hint { "An owner decides whether it is served." } }
        }
    }
}

fn connected(connection: &Connection) -> Markup {
    let whose = match connection.agent.as_deref() {
        Some("desk") => "The desk's own connection".to_owned(),
        Some(agent) => format!("Connection of {}", crate::visible::visible(agent)),
        None => "Connection of all agents".to_owned(),
    };
    html! {
        section.card.pad aria-label=(whose) {
            h2.row { (whose) " " (badge(super::tone(&connection.state), &connection.state)) }
            @if !connection.why.is_empty() { p { (said(&connection.why)) } }
            @if let Some(figures) = figures(&[connection]) { p.meta { (figures) } }
            @if !connection.log.is_empty() { details { summary { "What it wrote last" } (block(&connection.log.join("\n"))) } }
        }
    }
}
