//! One policy: its rules in words, who has it, and what changed from version to version.

use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::shell::{self, Page, Place};
use super::super::ui::{Tone, badge, block, field, more, part, said, words};
use super::super::visit::{Fault, People, Visit};
use super::{Mapping, ROWS, TAKEN, accepted, diff, pattern, rows, rules, text, with};

/// What the address names: the version to show, two to compare, and how many rules.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Shown {
    pub(super) rows: String,
    version: String,
    from: String,
    to: String,
}

/// What `desk_policy_get` answers.
#[derive(Deserialize)]
struct Policy {
    policy: String,
    version: i64,
    state: String,
    body: Value,
    digest: String,
    mappings: Vec<Mapping>,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: i64,
    state: String,
    accepted_by: String,
    accepted_at: String,
}

pub(super) async fn serve(visit: Visit, Path(id): Path<String>, Query(shown): Query<Shown>) -> Result<Response, Fault> {
    show(&visit, &id, &shown).await
}

pub(super) async fn show(visit: &Visit, id: &str, wanted: &Shown) -> Result<Response, Fault> {
    let policy = get(visit, id, wanted.version.parse().ok()).await?;
    let people = visit.people().await?;
    let rows = rows(&wanted.rows);
    let about = |name: &str| policy.body.get(name).and_then(Value::as_str).unwrap_or_default();
    let body = html! {
        div.wide {
            p { a href="/policies" data-in-place data-key="Escape" { "All policies" } }
            header.head {
                h1 { (said(&policy.policy)) }
                (badge(if policy.state == "in_force" { Tone::Good } else { Tone::Quiet }, &policy.state))
                span.meta { "version " (policy.version) }
                a.button href="/policies/edit" { "Edit" }
            }
            @if !about("description").is_empty() { (words(about("description"))) }
            @for name in ["category", "framework"] { @if !about(name).is_empty() { p.meta { (name) ": " (said(about(name))) } } }
            @if let Some(version) = policy.versions.iter().find(|one| one.version == policy.version) {
                p.meta { "This version was " (accepted(&people, &version.accepted_by, &version.accepted_at)) }
            }
            (part("Rules", rules::of(&policy.body, rows)))
            @if policy.body.get("rules").and_then(Value::as_array).is_some_and(|rules| rules.len() > rows) {
                (more(&with(id, &[("version", &wanted.version), ("rows", &(rows + 5 * ROWS).to_string())])))
            }
            (part("Who has it", holders(&policy)))
            (part("Versions", versions(visit, &people, &policy, wanted).await?))
            details.part id="body" { summary { "As it is written" } (block(&text::yaml(&policy.body))) p.hint { "SHA-256 " code.digest { (policy.digest) } } }
        }
    };
    shell::show(visit, Page { title: &policy.policy, place: Place::Policies, topics: "policy mapping rulebook", body }).await
}

async fn get(visit: &Visit, id: &str, version: Option<i64>) -> Result<Policy, Fault> {
    visit.ask("desk_policy_get", version.map_or_else(|| json!({ "policy": id }), |version| json!({ "policy": id, "version": version }))).await
}

fn holders(policy: &Policy) -> Markup {
    html! {
        @if policy.policy == "global" { p { "Its rules hold for every agent in every domain, whatever is mapped." } }
        @else if policy.mappings.is_empty() { p.hint { "No mapping in force names it." } }
        @else { ul { @for mapping in &policy.mappings { li { (pattern(&mapping.agent)) " in " (pattern(&mapping.domain)) } } } }
    }
}

/// The versions, and what differs between two of them.
async fn versions(visit: &Visit, people: &People, policy: &Policy, wanted: &Shown) -> Result<Markup, Fault> {
    let newest = policy.versions.first().map_or(policy.version, |one| one.version);
    let to = wanted.to.parse().unwrap_or(newest);
    let from = wanted.from.parse().unwrap_or_else(|_| policy.versions.iter().map(|one| one.version).find(|one| *one < to).unwrap_or(to));
    let compared = if policy.versions.len() > 1 {
        let (old, new) = (get(visit, &policy.policy, Some(from)).await?, get(visit, &policy.policy, Some(to)).await?);
        Some(diff::lines(&text::yaml(&old.body), &text::yaml(&new.body)))
    } else {
        None
    };
    let choose = |id: &str, name: &str, chosen: i64| {
        html! {
            select id=(id) name=(name) {
                @for one in &policy.versions { option value=(one.version) selected[one.version == chosen] { "version " (one.version) } }
            }
        }
    };
    Ok(html! {
        ol.similar {
            @for one in &policy.versions {
                li id={ "version-" (one.version) } {
                    a href=(with(&policy.policy, &[("version", &one.version.to_string())])) data-in-place { "Version " (one.version) } " "
                    (badge(if one.state == "in_force" { Tone::Good } else { Tone::Quiet }, &one.state)) " "
                    span.meta { (accepted(people, &one.accepted_by, &one.accepted_at)) }
                }
            }
        }
        @if policy.versions.len() >= 50 { p.hint { "Only the newest 50 versions are listed." } }
        @if let Some(compared) = compared {
            form.compare data-filters {
                @if TAKEN.contains(&policy.policy.as_str()) { input type="hidden" name="policy" value=(policy.policy); }
                (field("from", "What changed from", choose("from", "from", from)))
                (field("to", "to", choose("to", "to", to)))
                button.quiet { "Compare" }
            }
            (compared)
        }
    })
}
