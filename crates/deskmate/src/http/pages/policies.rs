//! Policies: what is in force, how it came about, what a draft of it would do, and why an act got its answer.

mod diff;
mod draft;
mod one;
mod rules;
mod text;
mod why;

use axum::Router;
use axum::extract::Query;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::Shared;
use super::shell::{self, Page, Place};
use super::ui::{self, empty, more, part, plain, said, spaced, time};
use super::visit::{Fault, People, Visit};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/policies", get(serve))
        .route("/policies/edit", get(draft::serve))
        .route("/policies/draft", post(draft::judge))
        .route("/policies/why", get(why::serve))
        .route("/policies/{id}", get(one::serve))
}

/// How many rules of a policy are shown at most where it is not the page's own subject.
const RULES_MAX: usize = 100;

/// The pages beside those of single policies: a policy that has the name of one of them is found in another way.
const TAKEN: [&str; 3] = ["edit", "draft", "why"];

/// What differs between two texts, line by line.
pub(super) fn difference(old: &str, new: &str) -> Markup {
    diff::lines(old, new)
}

/// The rules of a policy in words.
pub(super) fn in_words(policy: &Value) -> Markup {
    rules::of(policy, RULES_MAX)
}

/// Where a policy is shown.
pub(super) fn address(id: &str) -> String {
    with(id, &[])
}

/// Where a rule of a version of a policy is shown.
pub(super) fn at_rule(id: &str, version: i64, rule: &str) -> String {
    format!("{}#{}", with(id, &[("version", &version.to_string())]), rules::anchor(rule))
}

/// Where something of a policy is shown.
fn with(id: &str, query: &[(&str, &str)]) -> String {
    if TAKEN.contains(&id) { ui::address("/policies", &[&[("policy", id)], query].concat()) } else { ui::address(&format!("/policies/{id}"), query) }
}

/// What `desk_policy_list` answers.
#[derive(Deserialize)]
struct List {
    policies: Vec<Line>,
    policy_mode: String,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    policy: String,
    version: i64,
    description: String,
    rules: usize,
    mappings: usize,
    accepted_by: String,
    accepted_at: String,
}

/// Everything in force as one document, as `desk_policy_get` answers it without a name.
#[derive(Deserialize)]
struct Whole {
    body: Value,
    digest: String,
}

#[derive(Deserialize)]
struct Mapping {
    #[serde(alias = "agent_id")]
    agent: String,
    domain: String,
    #[serde(alias = "policy_id")]
    policy: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Address {
    policy: String,
    #[serde(flatten)]
    shown: one::Shown,
}

/// How many rows of each list a page begins with.
const ROWS: usize = 100;

/// How many rows an address asks for.
fn rows(asked: &str) -> usize {
    asked.parse().unwrap_or(ROWS).clamp(ROWS, 100 * ROWS)
}

async fn serve(visit: Visit, Query(address): Query<Address>) -> Result<Response, Fault> {
    if !address.policy.is_empty() {
        return one::show(&visit, &address.policy, &address.shown).await;
    }
    let people = visit.people().await?;
    let (mut list, mut cursor) = (visit.ask::<List>("desk_policy_list", json!({ "limit": 200 })).await?, None);
    std::mem::swap(&mut cursor, &mut list.next_cursor);
    while let Some(from) = cursor {
        let next: List = visit.ask("desk_policy_list", json!({ "limit": 200, "cursor": from })).await?;
        list.policies.extend(next.policies);
        cursor = next.next_cursor;
    }
    let whole: Whole = visit.ask("desk_policy_get", json!({})).await?;
    let rows = rows(&address.shown.rows);
    let mapped: Vec<Mapping> = whole.body.get("mappings").and_then(|list| serde_json::from_value(list.clone()).ok()).unwrap_or_default();
    let body = html! {
        div.wide {
            header.head {
                h1 { "Policies" }
                a.button href="/policies/edit" { "Edit" }
                a href="/policies/why" { "Why this answer?" }
            }
            @if list.policies.is_empty() {
                (empty("No policy is in force", html! {
                    p { "What is built in holds: trust, the caps on volume, and the fields of high risk. Say in a policy what agents may change, and map it to them." }
                    p { a href="/policies/edit" { "Write the first one" } }
                }))
            } @else {
                ol.rows.card id="policies" { @for policy in list.policies.iter().take(rows) { (line(&people, policy)) } }
            }
            (mappings(&mapped, rows, &list.policy_mode))
            @if list.policies.len().max(mapped.len()) > rows { (more(&format!("/policies?rows={}", rows + 5 * ROWS))) }
            (settings(&whole.body))
            p.hint { "Everything in force has the digest " code.digest { (whole.digest) } ", which each decision names." }
        }
    };
    shell::show(&visit, Page { title: "Policies", place: Place::Policies, topics: "policy mapping setting rulebook", body }).await
}

fn line(people: &People, policy: &Line) -> Markup {
    html! {
        li id={ "policy-" (policy.policy) } {
            a href=(address(&policy.policy)) data-row {
                span.title { (said(&policy.policy)) }
                @if !policy.description.is_empty() { span.meta.note { (said(&policy.description)) } }
                span.badges {
                    span.badge { "version " (policy.version) }
                    span.badge { (counted(policy.rules, "rule")) }
                    @if policy.policy == "global" { span.badge.good { "for everybody" } }
                    @else if policy.mappings == 0 { span.badge.warning { "mapped to nobody" } }
                    @else { span.badge { (counted(policy.mappings, "mapping")) } }
                }
                span.meta { (accepted(people, &policy.accepted_by, &policy.accepted_at)) }
            }
        }
    }
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Who accepted something. The desk itself does where a change only tightened.
fn accepted(people: &People, by: &str, at: &str) -> Markup {
    html! {
        @if by == "desk" { "in force since " (time(at)) ", because it only tightened" }
        @else { "accepted by " (said(people.name(by))) " " (time(at)) }
    }
}

/// Which policy holds for whom and where.
fn mappings(list: &[Mapping], rows: usize, mode: &str) -> Markup {
    part(
        "Who gets which policy",
        html! {
            @if list.is_empty() {
                p.hint { "Nothing is mapped: the policy " code { "default" } " holds for everybody, which has no rules of its own until you write one of that name." }
            } @else {
                table.stack {
                    thead { tr { th scope="col" { "Agent" } th scope="col" { "Domain" } th scope="col" { "Policy" } } }
                    tbody {
                        @for mapping in list.iter().take(rows) {
                            tr {
                                th scope="row" { (pattern(&mapping.agent)) }
                                td data-label="Domain" { (pattern(&mapping.domain)) }
                                td data-label="Policy" { a href=(address(&mapping.policy)) { (said(&mapping.policy)) } }
                            }
                        }
                    }
                }
                p.hint {
                    @if mode == "permissive" { "What no mapping names gets the policy " code { "default" } "." }
                    @else { "What no mapping names is held for a person." }
                }
            }
        },
    )
}

fn pattern(text: &str) -> Markup {
    if text == "*" {
        html! { "all" }
    } else {
        said(text)
    }
}

/// What somebody set, for the whole desk and for single domains.
fn settings(document: &Value) -> Markup {
    const SECTIONS: [&str; 5] = ["trust", "authority", "feedback", "handoff", "governance"];
    let own = |of: &Map<String, Value>| -> Vec<(&str, Map<String, Value>)> {
        SECTIONS.into_iter().filter_map(|section| Some((section, of.get(section)?.as_object()?.clone()))).filter(|(_, keys)| !keys.is_empty()).collect()
    };
    let none = Map::new();
    let desk = own(document.as_object().unwrap_or(&none));
    let domains = document.get("domains").and_then(Value::as_object).unwrap_or(&none);
    part(
        "Settings",
        html! {
            @if desk.is_empty() && domains.is_empty() { p.hint { "Nobody set anything: the defaults hold." } }
            @else {
                table.stack {
                    thead { tr { th scope="col" { "Where" } th scope="col" { "Setting" } th scope="col" { "Value" } } }
                    tbody {
                        (set(&html! { "the whole desk" }, &desk))
                        @for (domain, sections) in domains { (set(&said(domain), &own(sections.as_object().unwrap_or(&none)))) }
                    }
                }
                p.hint { "What is not listed has its default." }
            }
        },
    )
}

fn set(place: &Markup, sections: &[(&str, Map<String, Value>)]) -> Markup {
    html! {
        @for (section, keys) in sections {
            @for (key, value) in keys {
                tr { th scope="row" { (place) } td data-label="Setting" { (section) ": " (spaced(key)) } td data-label="Value" { (said(&short_value(value))) } }
            }
        }
    }
}

/// A value in a line: a list as its entries.
fn short_value(value: &Value) -> String {
    match value {
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => plain(other),
    }
}
