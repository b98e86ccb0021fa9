//! What agents and policies are often made of: a gallery to search, with ways to make one.

use std::collections::BTreeSet;

use axum::extract::Query;
use axum::response::Response;
use deskmate_core::agents::AgentOut;
use deskmate_core::agents::template::AgentTemplate;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::shell::{self, Page, Place};
use super::super::ui::{self, Tone, badge, empty, field, filter, spaced};
use super::super::visit::{Fault, Visit};
use super::TABS;

/// How many agents a policy can be attached to from here.
const AGENTS_MAX: usize = 200;

const KINDS: [(&str, &str); 3] = [("", "Agents and policies"), ("agent", "Of agents"), ("policy", "Of policies")];

/// What the address of the page says.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Filters {
    search: String,
    category: String,
    kind: String,
    /// The agent to which a policy is to be attached.
    agent: String,
}

/// What `agents_list_templates` answers.
#[derive(Deserialize)]
struct Templates {
    agents: Vec<AgentTemplate>,
    policies: Vec<PolicyTemplate>,
}

#[derive(Deserialize)]
struct PolicyTemplate {
    id: String,
    title: String,
    description: String,
    category: String,
    framework: Option<String>,
    parameters: Vec<Parameter>,
    text: String,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    kind: String,
    default: Value,
    min: Option<f64>,
    max: Option<f64>,
    about: String,
}

pub(super) async fn serve(visit: Visit, Query(filters): Query<Filters>) -> Result<Response, Fault> {
    let all: Templates = visit.ask("agents_list_templates", json!({})).await?;
    let given = [("type", &filters.kind), ("category", &filters.category), ("search", &filters.search)];
    let input: Map<String, Value> =
        given.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name.to_owned(), Value::from(value.as_str()))).collect();
    let found: Templates = visit.ask("agents_list_templates", Value::Object(input)).await?;
    let (agents, _) = visit.gather::<AgentOut>("agents_list_agents", "agents", json!({}), AGENTS_MAX).await?;
    let categories: BTreeSet<&str> = all.agents.iter().map(|one| one.category.as_str()).chain(all.policies.iter().map(|one| one.category.as_str())).collect();
    let body = html! {
        h1.unseen { "Templates" }
        (ui::tabs(&TABS, "/templates"))
        div.wide {
            (bar(&filters, &categories))
            @if found.agents.is_empty() && found.policies.is_empty() {
                (empty("No template fits", html! { p { "Search for something else, or " a href="/make" { "make an agent of a sentence" } "." } }))
            }
            @if !found.agents.is_empty() {
                h2 { "Of agents" }
                ul.cards.gallery id="agent-templates" { @for template in &found.agents { (agent(template)) } }
            }
            @if !found.policies.is_empty() {
                h2 { "Of policies" }
                p.hint { "A template helps with a framework; it makes nobody compliant." }
                ul.cards.gallery id="policy-templates" { @for template in &found.policies { (policy(&visit, template, &agents, &filters.agent)) } }
            }
        }
    };
    shell::show(&visit, Page { title: "Templates", place: Place::Agents, topics: "agent", body }).await
}

fn bar(filters: &Filters, categories: &BTreeSet<&str>) -> Markup {
    let named: Vec<(&str, &str)> = std::iter::once(("", "Every category")).chain(categories.iter().map(|category| (*category, *category))).collect();
    html! {
        form.bar data-filters role="search" {
            input name="search" type="search" maxlength="100" value=(filters.search) placeholder="Search templates" aria-label="Search templates" data-key="/";
            (filter("Kind", "kind", &KINDS, &filters.kind))
            (filter("Category", "category", &named, &filters.category))
            @if !filters.agent.is_empty() { input type="hidden" name="agent" value=(filters.agent); }
            button.quiet { "Search" }
        }
    }
}

fn agent(template: &AgentTemplate) -> Markup {
    html! {
        li.card id={ "template-" (template.id) } {
            h3 { (template.title) }
            p { (template.description) }
            p.badges {
                (badge(Tone::Quiet, &template.category)) (badge(Tone::Quiet, &template.difficulty))
                @if template.approval { (badge(Tone::Warning, "a person looks first")) }
                @for policy in &template.policies { (badge(Tone::Good, policy)) }
            }
            p.meta { "For example: " a href=(ui::address("/make", &[("description", &template.example)])) { (template.example) } }
            p { a.button href=(ui::address("/make", &[("template", &template.id)])) data-row { "Make one" span.unseen { " of " span.title { (template.title) } } } }
        }
    }
}

fn policy(visit: &Visit, template: &PolicyTemplate, agents: &[AgentOut], chosen: &str) -> Markup {
    html! {
        li.card id={ "policy-template-" (template.id) } {
            h3 { (template.title) }
            p { (template.description) }
            p.badges {
                (badge(Tone::Quiet, &template.category))
                @if let Some(framework) = &template.framework { (badge(Tone::Quiet, framework)) }
                code { (template.id) }
            }
            details id={ "text-" (template.id) } { summary { "Its rules and cases" } (ui::block(&template.text)) }
            @if visit.you.role != "viewer" && !agents.is_empty() {
                details id={ "attach-" (template.id) } {
                    summary { "Attach to an agent" }
                    form data-call="agents_attach_policy" data-answer={ "attached-" (template.id) } {
                        input type="hidden" name="policyId" value=(template.id);
                        (field(&format!("agent-{}", template.id), "To which agent", html! {
                            select id={ "agent-" (template.id) } name="agentId" { @for one in agents { option value=(one.name) selected[one.name == chosen] { (one.name) } } }
                        }))
                        @for parameter in &template.parameters { (gap(&template.id, parameter)) }
                        label.check { input type="checkbox" name="force" value="true" data-as="json"; " Also if it contradicts what holds already" }
                        button { "Attach it" }
                    }
                }
                div.answer.pad id={ "attached-" (template.id) } role="status" data-keep {}
            }
        }
    }
}

/// A place for the value of a gap, with what stands there if nobody says.
fn gap(template: &str, parameter: &Parameter) -> Markup {
    let id = format!("{template}-{}", parameter.name);
    let name = format!("values.{}", parameter.name);
    let label = if parameter.about.is_empty() { spaced(&parameter.name) } else { parameter.about.clone() };
    let original = parameter.default.to_string();
    field(
        &id,
        &label,
        match parameter.kind.as_str() {
            "number" | "count" => {
                html! { input id=(id) name=(name) type="number" step=(if parameter.kind == "count" { "1" } else { "any" }) min=[parameter.min] max=[parameter.max] value=(ui::plain(&parameter.default)) data-as="json" data-original=(original); }
            }
            "flag" => {
                html! { select id=(id) name=(name) data-as="json" { option value="true" selected[parameter.default == Value::Bool(true)] { "yes" } option value="false" selected[parameter.default == Value::Bool(false)] { "no" } } }
            }
            "texts" => {
                let items: Vec<&str> = parameter.default.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                html! { input id=(id) name=(name) data-as="list" value=(items.join(", ")) autocomplete="off"; span.hint { "with commas between" } }
            }
            _ => html! { input id=(id) name=(name) data-as="text" maxlength="200" value=(ui::plain(&parameter.default)) autocomplete="off"; },
        },
    )
}
