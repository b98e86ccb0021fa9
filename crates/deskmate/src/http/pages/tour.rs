//! The first steps: connect an agent, see its first proposal arrive, decide it. Each is ticked off by what really happened.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::ui::block;
use super::visit::{Fault, Visit};

/// How many of the newest requests are looked at.
const LOOK: usize = 5;
/// After so many decisions the steps are known.
const ENOUGH: usize = 2;

#[derive(Deserialize)]
struct Requests {
    requests: Vec<Request>,
}

#[derive(Deserialize)]
struct Request {
    decided_at: Option<String>,
}

#[derive(Deserialize)]
struct Agents {
    agents: Vec<serde_json::Value>,
}

/// How far somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Steps {
    connected: bool,
    proposed: bool,
    decided: bool,
}

impl Steps {
    async fn of(visit: &Visit) -> Result<Option<Self>, Fault> {
        let Requests { requests } = visit.ask("desk_request_list", json!({ "view": "all", "limit": LOOK })).await?;
        let mut decided = requests.iter().filter(|request| request.decided_at.is_some()).count();
        if decided < ENOUGH && requests.len() >= LOOK {
            decided = decided_ever(visit).await?;
        }
        // Who has decided a second time knows how it goes.
        if decided >= ENOUGH {
            return Ok(None);
        }
        let Agents { agents } = visit.ask("desk_agent_list", json!({ "unregistered": true, "limit": 1 })).await?;
        let proposed = !requests.is_empty();
        Ok(Some(Self { connected: proposed || !agents.is_empty(), proposed, decided: decided > 0 }))
    }
}

/// How much was decided, as far as that matters here: what waits may all be newer.
async fn decided_ever(visit: &Visit) -> Result<usize, Fault> {
    let mut decided = 0;
    for state in ["done", "rejected", "approved"] {
        let Requests { requests } = visit.ask("desk_request_list", json!({ "state": state, "limit": ENOUGH })).await?;
        decided += requests.len();
        if decided >= ENOUGH {
            break;
        }
    }
    Ok(decided)
}

/// The steps, until they are known, and the topic that makes them out of date: whatever an agent does first shows that it is connected.
pub(super) async fn show(visit: &Visit) -> Result<(Markup, &'static str), Fault> {
    let Some(Steps { connected, proposed, decided }) = Steps::of(visit).await? else { return Ok((Markup::default(), "")) };
    let body = html! {
        section.card.tour id="tour" aria-labelledby="tour-title" {
            h2 id="tour-title" { "First steps" }
            ol {
                (step(connected, "Connect an agent", html! {
                    p { "Claude Code, for example; claude-desktop, codex, cursor, gemini and vscode are connected alike. It says who it is by name, until you register it." }
                    (block("deskmate connect claude-code"))
                }))
                (step(proposed, "See its first proposal arrive", html! {
                    p { "Ask the agent to propose something, or stand in for it:" }
                    (block("deskmate call cowork_propose --agent code domain=crm.deals action=update target=deal/7 \\\n  proposed_change='{\"next_step\":\"call back\"}' confidence=0.9 reasoning='They asked for it.'"))
                }))
                (step(decided, "Decide it", html! { p { "Open it in the list, look at what exactly would be done, and press " kbd { "a" } " to approve or " kbd { "r" } " to reject." } }))
            }
            @if decided {
                p { "That is all. What you decide moves the agent's trust; " a href="/policies" { "policies" } " say what it may do alone, and " a href="/record" { "the record" } " proves what happened." }
            }
            button.quiet type="button" data-dismiss="tour" { "Hide this" }
        }
    };
    Ok((body, if connected { "" } else { "record" }))
}

fn step(done: bool, title: &str, how: Markup) -> Markup {
    html! {
        li data-done[done] {
            strong { (title) } @if done { " " span.badge.good { "done" } }
            @if !done { (how) }
        }
    }
}
