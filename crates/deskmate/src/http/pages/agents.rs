//! Agents: who they are, how far they are trusted, and the switch that stops one; those that the desk runs, and how one is made.

mod acts;
mod change;
mod held;
mod made;
mod make;
mod nodes;
mod one;
mod read;
mod run;
mod sketch;
mod templates;

use std::collections::BTreeSet;

use axum::Router;
use axum::extract::Query;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::super::Shared;
use super::shell::{self, Page, Place};
use super::trust::{self, Trust};
use super::ui::{self, Tone, badge, empty, field, said, time};
use super::visit::{Fault, Visit};

/// How many who are paused are looked for.
const PAUSES_MAX: usize = 2_000;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/agents", get(serve))
        .route("/agents/{name}", get(one::serve))
        .route("/make", get(make::serve))
        .route("/make/sketch", post(make::sketch))
        .route("/templates", get(templates::serve))
        .route("/runs/{id}", get(run::serve))
}

/// The pages of this place. Those that are not of one agent have addresses of their own, because an agent may have any name.
const TABS: [(&str, &str); 3] = [("/agents", "Agents"), ("/make", "Make one"), ("/templates", "Templates")];

/// Where an agent is shown.
fn address_of(agent: &str) -> String {
    format!("/agents/{}", ui::segment(agent))
}

/// What the address of the page says: how many agents that connect and from where on, and the same of those that the desk runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Address {
    rows: String,
    cursor: String,
    made: String,
    made_cursor: String,
}

impl Address {
    fn address(&self) -> String {
        let pairs = [("rows", &self.rows), ("cursor", &self.cursor), ("made", &self.made), ("made_cursor", &self.made_cursor)];
        ui::address("/agents", &pairs.map(|(name, value)| (name, value.as_str())))
    }

    /// The same with so many agents that connect. From a cursor on, they are alone on the page.
    fn from(&self, rows: String, cursor: Option<&str>) -> String {
        match cursor {
            Some(cursor) => Self { rows, cursor: cursor.to_owned(), ..Self::default() }.address(),
            None => Self { rows, ..self.clone() }.address(),
        }
    }

    /// The same of those that the desk runs.
    fn made_from(&self, made: String, cursor: Option<&str>) -> String {
        match cursor {
            Some(cursor) => Self { made, made_cursor: cursor.to_owned(), ..Self::default() }.address(),
            None => Self { made, ..self.clone() }.address(),
        }
    }
}

#[derive(Deserialize)]
struct Agent {
    agent: String,
    state: String,
    note: String,
    created_at: String,
    last_active_at: Option<String>,
    token_expires_at: Option<String>,
    #[serde(default)]
    set_by_people: Vec<String>,
    #[serde(default)]
    made_here: bool,
}

#[derive(Deserialize)]
struct Pause {
    agent: String,
}

#[derive(Deserialize)]
struct Status {
    mode: String,
}

async fn serve(visit: Visit, Query(address): Query<Address>) -> Result<Response, Fault> {
    let status: Status = visit.ask("desk_status", json!({})).await?;
    let (paused, nodes) = (paused(&visit).await?, nodes::ask(&visit).await?);
    let made = if address.cursor.is_empty() { made(&visit, &address, &paused).await? } else { Markup::default() };
    let is_alone = made.0.is_empty() && nodes.is_empty();
    let connected = if address.made_cursor.is_empty() { connected(&visit, &address, &paused, is_alone).await? } else { Markup::default() };
    let body = html! {
        (token())
        (ui::tabs(&TABS, "/agents"))
        div.wide {
            header.head {
                h1 { "Agents" }
                (badge(if status.mode == "open" { Tone::Warning } else { Tone::Good }, &format!("the desk is {}", status.mode)))
                a href="/trust" { "Trust, everywhere" }
                a href="/compliance" { "Compliance" }
            }
            @if status.mode == "open" {
                p.hint { "No agent is registered: a name is enough, and what agents do is marked as unverified. From the first one that you register, every agent needs its token." }
            }
            (made)
            @if address.cursor.is_empty() && address.made_cursor.is_empty() { (nodes::all(&nodes)) }
            (connected)
        }
    };
    shell::show(&visit, Page { title: "Agents", place: Place::Agents, topics: "record", body }).await
}

/// The agents that the desk runs; nothing where there are none.
async fn made(visit: &Visit, address: &Address, paused: &BTreeSet<String>) -> Result<Markup, Fault> {
    let wanted = ui::rows(&address.made);
    let (made, next) = visit.gather_from::<deskmate_core::agents::AgentOut>("agents_list_agents", "agents", json!({}), wanted, &address.made_cursor).await?;
    if made.is_empty() && address.made_cursor.is_empty() {
        return Ok(Markup::default());
    }
    Ok(html! {
        h2 { "That the desk runs" }
        @if !address.made_cursor.is_empty() { (ui::back_to_first(&Address::default().address())) }
        ol.rows.card id="made" { @for agent in &made { (made::line(agent, paused.contains(&agent.name))) } }
        (ui::onward(wanted, next.as_deref(), |rows, cursor| address.made_from(rows, cursor)))
    })
}

/// The agents that connect. Where they are alone at the desk, they need no heading, and where there are none, how to have one is said.
async fn connected(visit: &Visit, address: &Address, paused: &BTreeSet<String>, are_alone: bool) -> Result<Markup, Fault> {
    let wanted = ui::rows(&address.rows);
    let (agents, next) = visit.gather_from::<Agent>("desk_agent_list", "agents", json!({ "unregistered": true }), wanted, &address.cursor).await?;
    let mut lines = Vec::with_capacity(agents.len());
    for agent in agents.iter().filter(|agent| !agent.made_here) {
        lines.push(line(agent, &trust::of_agent(visit, &agent.agent).await?, paused.contains(&agent.agent)));
    }
    let is_first = address.cursor.is_empty();
    Ok(html! {
        @if !are_alone || !is_first { h2 { "That connect" } }
        @if visit.you.role == "owner" && is_first { (register()) }
        @if !is_first { (ui::back_to_first(&Address::default().address())) }
        @if lines.is_empty() && (next.is_some() || !is_first) {
            p.hint { "None of these." }
        } @else if lines.is_empty() && !are_alone {
            p.hint { "None yet. " code { "deskmate connect claude-code" } " connects one." }
        } @else if lines.is_empty() {
            (empty("No agent yet", html! {
                p { "Connect one by name, or register it here so that it has to prove who it is:" }
                pre.block { "deskmate connect claude-code" }
                p { "Or let the desk run one: " a href="/make" { "make one of a sentence" } ", or begin with a " a href="/templates" { "template" } "." }
            }))
        } @else {
            ol.rows.card id="agents" { @for line in &lines { (line) } }
        }
        (ui::onward(wanted, next.as_deref(), |rows, cursor| address.from(rows, cursor)))
    })
}

/// Everybody who is paused by name.
async fn paused(visit: &Visit) -> Result<BTreeSet<String>, Fault> {
    let (pauses, _) = visit.gather::<Pause>("desk_pause_list", "items", json!({}), PAUSES_MAX).await?;
    Ok(pauses.into_iter().map(|pause| pause.agent).collect())
}

fn line(agent: &Agent, trusted: &[Trust], paused: bool) -> Markup {
    html! {
        li id={ "agent-" (agent.agent) } {
            a href={ "/agents/" (agent.agent) } data-row {
                span.title { (said(&agent.agent)) }
                @if !agent.note.is_empty() { span.meta.note { (said(&agent.note)) } }
                span.badges {
                    (state(agent))
                    @if paused { (badge(Tone::Alarm, "paused")) }
                    @for row in trusted.iter().take(6) {
                        span.badge { (said(&row.domain)) " " (row.mode) " " (format!("{:.2}", row.score)) @if !row.verified { " unverified" } }
                    }
                    @if trusted.len() > 6 { span.meta { "and " (trusted.len() - 6) " domains more" } }
                }
                span.meta { (activity(agent)) }
            }
        }
    }
}

fn state(agent: &Agent) -> Markup {
    match agent.state.as_str() {
        "active" => badge(Tone::Good, "registered"),
        "unregistered" => badge(Tone::Warning, "not registered"),
        other => badge(Tone::of_state(other), other),
    }
}

/// When it last did something, and how long it still gets in.
fn activity(agent: &Agent) -> Markup {
    html! {
        @match &agent.last_active_at { Some(at) => { "last active " (time(at)) } None => { "did nothing yet" } }
        @if agent.state == "active" {
            " · "
            @match &agent.token_expires_at { Some(at) => { "token good until " (time(at)) } None => { "no token of it works any more" } }
        }
    }
}

fn register() -> Markup {
    html! {
        details.card.fold id="register" {
            summary { "Register an agent" }
            form data-call="desk_agent_add" data-done="Registered" data-token {
                (field("new-agent", "Its name", html! { input id="new-agent" name="agent" required maxlength="100" pattern="[A-Za-z0-9._@\\-]+" title="Letters, digits, - _ . and @" placeholder="code" autocomplete="off"; }))
                (field("new-note", "What it is for", html! { input id="new-note" name="note" autocomplete="off"; }))
                (field("new-days", "For how many days its token is good", html! { input id="new-days" name="expires_in_days" type="number" min="1" max="3650" value="365" data-as="json"; }))
                button { "Register" }
            }
        }
    }
}

/// Where a new token is shown, once. The script fills it from the answer and empties it when it is closed; it stands
/// first on its page, so that nothing that happens meanwhile moves it.
fn token() -> Markup {
    html! {
        dialog.token id="token" aria-labelledby="token-title" data-keep {
            h2 id="token-title" { "The token of " bdi id="token-agent" {} }
            p { "It is shown here and never again. Keep it where only the agent finds it; whoever has it acts as the agent." }
            div.copy { pre.block id="token-text" tabindex="0" aria-label="The token" {} button.quiet type="button" data-copy="token-text" { "Copy" } }
            p { "To connect Claude Code with it:" }
            div.copy { pre.block id="token-command" tabindex="0" aria-label="The command" {} button.quiet type="button" data-copy="token-command" { "Copy" } }
            p.hint { "Other clients take it from the variable " code { "DESKMATE_TOKEN" } ". It is good until " time id="token-until" {} "." }
            div.row { button type="button" data-close { "I have kept it" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_goes_on_by_itself() {
        let address = Address { rows: "100".to_owned(), made: "150".to_owned(), ..Address::default() };
        assert_eq!(address.from("150".to_owned(), None), "/agents?rows=150&made=150", "more of one leaves the other as it is");
        assert_eq!(address.made_from("200".to_owned(), None), "/agents?rows=100&made=200");
        assert_eq!(address.from(String::new(), Some("there")), "/agents?cursor=there");
        assert_eq!(address.made_from(String::new(), Some("there")), "/agents?made_cursor=there");
    }
}
