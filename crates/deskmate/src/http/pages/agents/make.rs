//! Making an agent of a sentence or of a template: what the desk would make is shown while one writes, and can be changed before it is
//! made. What was read out of the sentence is not sent; only what a person changed is, so what is made is what was shown.

use axum::extract::Query;
use axum::response::{Html, IntoResponse, Response};
use deskmate_core::agents::template::AgentTemplate;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::shell::{self, Page, Place};
use super::super::ui::{self, field, said};
use super::super::visit::{Fault, Visit};
use super::{TABS, sketch};

const EXAMPLES: [&str; 3] = [
    "Every weekday at 8:30 read support/feedback.csv, classify it and hand negative cases to a person",
    "Read notes/today.md every evening and tell me what is in it",
    "Tidy my Downloads folder every Friday at 17:00",
];

/// What the address of the page says.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Begin {
    description: String,
    template: String,
}

#[derive(Deserialize)]
struct Templates {
    agents: Vec<AgentTemplate>,
}

pub(super) async fn serve(visit: Visit, Query(begin): Query<Begin>) -> Result<Response, Fault> {
    let Templates { agents } = visit.ask("agents_list_templates", json!({ "type": "agent" })).await?;
    let given = [("description", &begin.description), ("template", &begin.template)];
    let input: Map<String, Value> =
        given.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name.to_owned(), Value::from(value.as_str()))).collect();
    let shown = shown(&visit, input).await;
    let may = visit.you.role != "viewer";
    let body = html! {
        (ui::tabs(&TABS, "/make"))
        div.alone {
            h1 { "Make an agent" }
            p.hint { "One sentence is enough. It is read by words, not by a model: what was not understood is said, and nothing is made until you say so." }
            form id="make" data-call="agents_create_agent" data-then="/agents/{name}" data-sketch="/make/sketch" {
                (field("description", "What it is for", html! {
                    textarea id="description" name="description" rows="3" maxlength="4000" placeholder=(EXAMPLES[0]) aria-describedby="sketch" data-key="n" { "\n" (begin.description) }
                }))
                (field("template", "Begin with a template", html! {
                    select id="template" name="template" {
                        option value="" selected[begin.template.is_empty()] { "None" }
                        @for template in &agents { option value=(template.id) selected[template.id == begin.template] { (template.title) } }
                    }
                }))
                section id="sketch" aria-live="polite" aria-label="What would be made" data-keep { (shown) }
                div.row {
                    @if may { button id="make-it" disabled { "Make it" } } @else { p.hint { "Your role looks on; from member on people make agents." } }
                    button.quiet type="button" data-as-read { "Back to what was read" }
                }
                @if may { p.hint { "It is a draft then: it can be tested and changed, and runs only once it is deployed." } }
            }
        }
    };
    shell::show(&visit, Page { title: "Make an agent", place: Place::Agents, topics: "rulebook mount", body }).await
}

/// What would be made of what is in the form now. `data-state` tells the script whether it can be.
pub(super) async fn sketch(visit: Visit, input: String) -> Response {
    let shown = match serde_json::from_str(&input) {
        Ok(input) => shown(&visit, input).await,
        Err(_) => problem("The form was not understood."),
    };
    Html(shown.into_string()).into_response()
}

async fn shown(visit: &Visit, input: Map<String, Value>) -> Markup {
    if !input.contains_key("description") && !input.contains_key("template") {
        return teach();
    }
    match visit.ask("agents_sketch_agent", Value::Object(input.clone())).await {
        Ok(sketched) => sketch::fields(visit, &sketched, &input).await,
        Err(fault) => problem(fault.message()),
    }
}

fn problem(text: &str) -> Markup {
    html! { div data-state="wrong" { p role="alert" { (said(text)) } } }
}

fn teach() -> Markup {
    html! {
        div data-state="empty" {
            p.hint { "What would be made is shown here while you write. For example:" }
            ul { @for example in EXAMPLES { li { a href=(ui::address("/make", &[("description", example)])) { (example) } } } }
        }
    }
}
