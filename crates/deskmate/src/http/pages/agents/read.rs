//! What an agent has read that nobody vouches for, as far as it still counts, and the way to clear it.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::super::ui::{choice, field, part, said, time};
use super::super::visit::{Fault, Visit};

/// What `desk_taint_list` answers.
#[derive(Deserialize)]
pub(super) struct Read {
    items: Vec<Origin>,
}

#[derive(Deserialize)]
struct Origin {
    origin: String,
    session: Option<String>,
    at: String,
}

pub(super) async fn learn(visit: &Visit, agent: &str) -> Result<Read, Fault> {
    visit.ask("desk_taint_list", json!({ "agent": agent })).await
}

pub(super) fn show(visit: &Visit, agent: &str, read: &Read) -> Markup {
    if read.items.is_empty() {
        return Markup::default();
    }
    let mut origins: Vec<(&str, &str)> = read.items.iter().map(|one| (one.origin.as_str(), one.origin.as_str())).collect();
    origins.sort_unstable();
    origins.dedup();
    origins.insert(0, ("", "all of it"));
    part(
        "Read before",
        html! {
            p.hint { "What nobody vouches for goes with what the agent does afterwards, and rules can ask for it." }
            ul.similar {
                @for one in &read.items {
                    li { code { (said(&one.origin)) } span.meta { " " (time(&one.at)) @if let Some(session) = &one.session { " in the session " (said(session)) } } }
                }
            }
            @if visit.decides() {
                details id="taint" {
                    summary { "Clear it" }
                    p.hint { "What the agent does from then on does not carry it any more. Requests stay as they were asked." }
                    form data-call="desk_taint_clear" data-done="It does not count any more" {
                        input type="hidden" name="agent" value=(agent);
                        (field("taint-origin", "What", choice("taint-origin", "origin", &origins, "")))
                        (field("taint-reason", "Why it does not count", html! { input id="taint-reason" name="reason" required; }))
                        button { "Clear" }
                    }
                }
            }
        },
    )
}
