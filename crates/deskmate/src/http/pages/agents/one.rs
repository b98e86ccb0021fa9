//! One agent: what it may do where, what it used up, what it did last, and what can be done about it.

use axum::extract::{Path, Query};
use axum::response::Response;
use deskmate_core::Error;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::super::shell::{self, Page, Place};
use super::super::trust::{self, Trust};
use super::super::ui::{self, Tone, badge, fact, field, part, said, share, short, spaced, time, words};
use super::super::visit::{Fault, Visit};
use super::{Agent, activity, made, read, state, token};

/// How many of its newest requests and events are shown.
const NEWEST: usize = 12;

/// What `desk_meter_get` answers.
#[derive(Deserialize)]
struct Used {
    paused: bool,
    acts_hour: i64,
    #[serde(default)]
    calls_hour: i64,
    acts_day: i64,
    cost_day: f64,
    denied_day: i64,
    held_for_ms: Option<u64>,
    domains: Vec<UsedIn>,
}

#[derive(Deserialize)]
struct UsedIn {
    domain: String,
    acts_hour: i64,
    acts_hour_max: i64,
    #[serde(default)]
    calls_hour: i64,
    calls_hour_max: Option<i64>,
    acts_day: i64,
    acts_hour_all_max: Option<i64>,
    acts_day_all_max: Option<i64>,
    cost_day_all_max: Option<f64>,
}

#[derive(Deserialize)]
struct Requests {
    requests: Vec<Request>,
}

#[derive(Deserialize)]
struct Request {
    request: String,
    title: Option<String>,
    kind: String,
    state: String,
    domain: String,
    created_at: String,
}

/// What `desk_agent_list` answers.
#[derive(Deserialize)]
struct Agents {
    agents: Vec<Agent>,
}

#[derive(Deserialize)]
struct Events {
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    seq: u64,
    at: String,
    kind: String,
    subject: String,
}

pub(super) async fn serve(visit: Visit, Path(name): Path<String>, Query(shown): Query<made::Shown>) -> Result<Response, Fault> {
    match visit.ask("agents_get_agent_status", json!({ "agentId": name, "includeConflicts": true })).await {
        Ok(standing) => return made::show(visit, standing, &shown).await,
        Err(fault) if fault.is_missing() => {}
        Err(fault) => return Err(fault),
    }
    let found: Agents = visit.ask("desk_agent_list", json!({ "agent": name, "unregistered": true })).await?;
    let Some(agent) = found.agents.into_iter().next() else {
        return Err(Error::not_found(format!("no agent {name} is known here")).into());
    };
    // Who is paused with all of them is let go with all of them.
    let paused = super::paused(&visit).await?.contains(&name);
    let known = learn(&visit, &name).await?;
    let body = html! {
        (token())
        div.wide {
            p { a href="/agents" data-in-place data-key="Escape" { "All agents" } }
            header.head { h1 { (said(&agent.agent)) } (state(&agent)) @if known.used.paused { (badge(Tone::Alarm, "paused")) } }
            @if agent.note.is_empty() { p.hint { "Nobody said what it is for." } } @else { (words(&agent.note)) }
            p.meta { "Known since " (time(&agent.created_at)) " · " (activity(&agent)) }
            (acts(&visit, &agent, paused))
            (record_of(&visit, &agent.agent, &known))
        }
    };
    let topics = "record";
    shell::show(&visit, Page { title: &name, place: Place::Agents, topics, body }).await
}

/// What the desk knows of an agent, however it came to it.
pub(super) struct Known {
    trusted: Vec<Trust>,
    used: Used,
    requests: Requests,
    events: Events,
    read: read::Read,
}

pub(super) async fn learn(visit: &Visit, name: &str) -> Result<Known, Fault> {
    Ok(Known {
        trusted: trust::of_agent(visit, name).await?,
        used: visit.ask("desk_meter_get", json!({ "agent": name, "limit": 200 })).await?,
        requests: visit.ask("desk_request_list", json!({ "requester": name, "view": "all", "limit": NEWEST })).await?,
        events: visit.ask("desk_record_list", json!({ "actor": name, "limit": NEWEST })).await?,
        read: read::learn(visit, name).await?,
    })
}

/// Where it works, what it used up, and what it did last.
pub(super) fn record_of(visit: &Visit, agent: &str, known: &Known) -> Markup {
    html! {
        (domains(agent, &known.trusted, &known.used))
        p.hint { a href=(ui::address("/policies/why", &[("agent", agent)])) { "Try what it would be answered" } " · " a href=(ui::address("/compliance", &[("agent", agent)])) { "How it stands against frameworks" } }
        (whole(&known.used))
        (read::show(visit, agent, &known.read))
        (newest_requests(agent, &known.requests))
        (newest_events(agent, &known.events))
    }
}

/// What a person can do about an agent.
fn acts(visit: &Visit, agent: &Agent, paused: bool) -> Markup {
    let name = html! { input type="hidden" name="agent" value=(agent.agent); };
    let (is_owner, is_registered) = (visit.you.role == "owner", agent.state == "active");
    html! {
        div.acts {
            @if !visit.decides() {
                p.hint { "Your role looks on; approvers and owners pause agents." }
            } @else if paused {
                form id="resume" data-call="desk_resume" data-done="It may go on" data-confirm={ "Let " (agent.agent) " go on?" } { (name) button.warning { "Let it go on" } }
            } @else {
                form id="pause" data-call="desk_pause" data-done="Paused" data-confirm={ "Pause " (agent.agent) "? Every act of it is denied at once, also what was approved and not yet begun, until you let it go on." } {
                    (name) button.alarm { "Pause" }
                }
            }
            @if is_registered {
                details id="change-note" {
                    summary { "Change the note" }
                    form data-call="desk_agent_change" data-done="Changed" {
                        (name)
                        (field("note", "What it is for", html! { textarea id="note" name="note" data-as="text" rows="3" { (agent.note) } }))
                        button { "Keep" }
                    }
                }
            }
            @if is_registered && is_owner {
                details id="rotate" {
                    summary { "New token" }
                    form data-call="desk_agent_rotate" data-done="It has a new token" data-token {
                        (name)
                        (field("rotate-grace", "The old one", html! {
                            select id="rotate-grace" name="grace_minutes" data-as="json" { @for (minutes, what) in GRACE { option value=(minutes) { (what) } } }
                        }))
                        (field("rotate-days", "For how many days the new one is good", html! { input id="rotate-days" name="expires_in_days" type="number" min="1" max="3650" value="365" data-as="json"; }))
                        button { "Make a new token" }
                    }
                }
                details id="revoke" {
                    summary { "Revoke" }
                    form data-call="desk_agent_revoke" data-done="Revoked" data-confirm={ "Revoke " (agent.agent) "? Its tokens stop working at once." } {
                        (name)
                        (field("revoke-reason", "Why, for the record", html! { input id="revoke-reason" name="reason"; }))
                        button.alarm { "Revoke" }
                    }
                }
            }
            @if !is_registered && is_owner {
                details id="register" {
                    summary { @if agent.state == "revoked" { "Register again" } @else { "Register" } }
                    form data-call="desk_agent_add" data-done="Registered" data-token {
                        (name)
                        (field("register-note", "What it is for", html! { input id="register-note" name="note" value=(agent.note); }))
                        p.hint { "What it earned without a token stays apart: it begins anew, and every agent needs a token from then on." }
                        button { "Register" }
                    }
                }
            }
        }
        @if agent.set_by_people.iter().any(|field| field == "note") { p.hint { "A person wrote the note: the agent's own change of it waits for a person." } }
    }
}

const GRACE: [(&str, &str); 4] = [("", "stops working now"), ("10", "works ten minutes more"), ("60", "works an hour more"), ("1440", "works a day more")];

/// Where it works: trust and volume side by side.
fn domains(agent: &str, trusted: &[Trust], used: &Used) -> Markup {
    let only_used: Vec<&UsedIn> = used.domains.iter().filter(|used| trusted.iter().all(|row| row.domain != used.domain)).collect();
    if trusted.is_empty() && only_used.is_empty() {
        return part("Domains", html! { p.hint { "It proposed nothing yet, so nothing is known of how far to trust it." } });
    }
    let volume = |domain: &str| used.domains.iter().find(|used| used.domain == domain);
    let begins: Vec<&str> = trusted.iter().map(|row| row.domain.as_str()).collect();
    let shown_before = |at: usize| begins.iter().take(at).any(|domain| Some(domain) == begins.get(at));
    part(
        "Domains",
        html! {
            table.stack {
                thead { tr { th scope="col" { "Domain" } th scope="col" { "Trust allows" } th scope="col" { "Score" } th scope="col" { "Approved" } th scope="col" { "This hour" } th scope="col" { "Today" } } }
                tbody {
                    @for (at, row) in trusted.iter().enumerate() {
                        tr id={ "domain-" (row.domain) (if row.verified { "" } else { "-unverified" }) } {
                            th scope="row" {
                                a href=(trust::address(agent, &row.domain)) { (said(&row.domain)) }
                                @if !row.verified { " " (badge(Tone::Warning, "unverified")) }
                                @if row.promotion_pending { " " (badge(Tone::Warning, "promotion waits")) }
                            }
                            td data-label="Trust allows" { (badge(Tone::of_state(&row.mode), &row.mode)) }
                            td data-label="Score" { (share("Score", row.score)) }
                            td data-label="Approved" { (trust::sample(row)) }
                            @let used = if shown_before(at) { None } else { volume(&row.domain) };
                            td data-label="This hour" { @if let Some(used) = used { (this_hour(used)) } }
                            td data-label="Today" { @if let Some(used) = used { (used.acts_day) } }
                        }
                    }
                    @for used in only_used {
                        tr id={ "domain-" (used.domain) } {
                            th scope="row" { (said(&used.domain)) }
                            td data-label="Trust allows" { "nothing known" }
                            td data-label="Score" {}
                            td data-label="Approved" {}
                            td data-label="This hour" { (this_hour(used)) }
                            td data-label="Today" { (used.acts_day) }
                        }
                    }
                }
            }
        },
    )
}

/// What it used up of an hour in a domain; calls of tools have a cap of their own, if any.
fn this_hour(used: &UsedIn) -> Markup {
    html! {
        (used.acts_hour) " of " (used.acts_hour_max)
        @if used.calls_hour > 0 { ", " (calls(used.calls_hour)) @if let Some(most) = used.calls_hour_max { " of " (most) } }
    }
}

fn calls(count: i64) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}

/// What it used up in all domains together. Of several domains' limits the lowest is shown.
fn whole(used: &Used) -> Markup {
    let least = |limit: fn(&UsedIn) -> Option<i64>| used.domains.iter().filter_map(limit).min();
    let cost = used.domains.iter().filter_map(|used| used.cost_day_all_max).reduce(f64::min);
    part(
        "Used up in all domains",
        html! {
            dl.facts {
                (fact("Acts this hour", html! { (used.acts_hour) @if let Some(most) = least(|used| used.acts_hour_all_max) { " of " (most) } @if used.calls_hour > 0 { ", " (calls(used.calls_hour)) } }))
                (fact("Acts today", html! { (used.acts_day) @if let Some(most) = least(|used| used.acts_day_all_max) { " of " (most) } }))
                (fact("Cost today", html! { (used.cost_day) @if let Some(most) = cost { " of " (most) } @else { ", not limited" } }))
                (fact("Denied today", html! { (used.denied_day) }))
            }
            @if let Some(ms) = used.held_for_ms { p { (badge(Tone::Alarm, "put off")) " Too many of its attempts were denied: further ones are refused for " (ms.div_ceil(60_000)) " minutes." } }
        },
    )
}

fn newest_requests(agent: &str, requests: &Requests) -> Markup {
    part(
        "Newest requests",
        html! {
            @if requests.requests.is_empty() { p.hint { "It asked for nothing yet." } }
            @else {
                ul.similar {
                    @for request in &requests.requests {
                        li id={ "request-" (request.request) } {
                            (badge(Tone::of_state(&request.state), &request.state)) " "
                            a href={ "/requests/" (request.request) } { (said(request.title.as_deref().unwrap_or("erased"))) }
                            span.meta { " " (spaced(&request.kind)) " in " (said(&request.domain)) " · " (time(&request.created_at)) }
                        }
                    }
                }
                p { a href=(ui::address("/", &[("requester", agent), ("view", "all")])) { "All of its requests" } }
            }
        },
    )
}

fn newest_events(agent: &str, events: &Events) -> Markup {
    part(
        "What it did last",
        html! {
            @if events.events.is_empty() { p.hint { "It did nothing yet." } }
            @else {
                ul.similar {
                    @for event in &events.events {
                        li id={ "event-" (event.seq) } {
                            (time(&event.at)) " " code { (event.kind) } " "
                            @match event.subject.strip_prefix("request:") {
                                Some(id) => { a href={ "/requests/" (id) } { "request " (short(id)) } }
                                None => { (said(&event.subject)) }
                            }
                        }
                    }
                }
                p { a href={ "/case/agent/" (agent) } { "Everything about it" } }
            }
        },
    )
}
