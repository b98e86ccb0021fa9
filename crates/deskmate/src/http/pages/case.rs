//! The case of one thing: everything that ever happened to it in order, what it is connected with, and its proof. The
//! address of the page is the case's name: whoever may look at the desk sees the same under it.

use std::collections::{BTreeMap, BTreeSet};

use axum::Router;
use axum::extract::{Path, Query};
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::Shared;
use super::event::{self, Event};
use super::record::{self, Found};
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, empty, part, said, segment, short, spaced, time};
use super::visit::{Fault, People, Visit};

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/case/{kind}/{*id}", get(serve))
}

/// Where the case of a thing is.
pub(super) fn address(kind: &str, id: &str) -> String {
    format!("/case/{}/{}", segment(kind), segment(id))
}

/// The subject of an event, with a link to its case.
pub(super) fn subject(subject: &str) -> Markup {
    let address = match subject.split_once(':') {
        Some(("event", seq)) => format!("/record/{}", segment(seq)),
        Some((kind, id)) if !id.is_empty() => address(kind, id),
        _ => ui::address("/record", &[("subject", subject)]),
    };
    html! { a href=(address) { (said(subject)) } }
}

/// Facts that name a thing, and the kind of thing that they name.
const NAMES: [(&str, &str); 20] = [
    ("agent", "agent"),
    ("assignee", "person"),
    ("batch", "batch"),
    ("blocker", "task"),
    ("credential", "credential"),
    ("decided_by", "person"),
    ("edited_by", "person"),
    ("grant", "grant"),
    ("job", "job"),
    ("message", "message"),
    ("notification", "notification"),
    ("parent", "run"),
    ("person", "person"),
    ("policy", "policy"),
    ("reply_to", "message"),
    ("request", "request"),
    ("run", "run"),
    ("standing_approval", "standing_approval"),
    ("supersedes", "request"),
    ("task", "task"),
];

/// The thing that a fact names: its kind and its id.
pub(super) fn named<'f>(name: &str, facts: &'f Map<String, Value>) -> Option<(&'f str, &'f str)> {
    let id = facts.get(name)?.as_str().filter(|id| !id.is_empty())?;
    match name {
        "requester" => Some((facts.get("requester_kind")?.as_str()?, id)),
        // The desk itself has no case, and neither has a role.
        "decided_by" | "assignee" if id == "desk" || id.contains(':') => None,
        _ => NAMES.iter().find(|(fact, _)| *fact == name).map(|(_, kind)| (*kind, id)),
    }
}

/// What the address of the page says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shown {
    rows: String,
    cursor: String,
}

async fn serve(visit: Visit, Path((kind, id)): Path<(String, String)>, Query(shown): Query<Shown>) -> Result<Response, Fault> {
    let people = visit.people().await?;
    let mut found = events(&visit, &kind, &id, &shown).await?;
    let trail = if kind == "request" { trail(&visit, &id).await } else { None };
    if let Some(trail) = trail.as_ref().filter(|_| shown.cursor.is_empty()) {
        add_links(&mut found, trail);
    }
    let title = match title(&visit, &people, &kind, &id).await {
        Some(title) => crate::visible::visible(&title),
        None => id.clone(),
    };
    let body = html! {
        div.alone {
            header {
                p.meta { "Case of " (with_article(&kind)) }
                h1 { (said(&title)) }
                p.row {
                    @if let Some((page, says)) = own_page(&kind, &id) { a href=(page) { (says) } }
                    a href=(ui::address("/record", &[("subject", &format!("{kind}:{id}"))])) { "In the record" }
                    span.meta { "id " code title=(id) { (said(&short(&id))) } }
                }
                p.hint { "Everything that ever happened to it, oldest first. Share it by the address of this page: everybody who may look at the desk sees the same." }
            }
            @if let Some(trail) = &trail { (proof(trail)) }
            (connected(&people, &kind, &id, &found.events))
            section.part {
                h2 { "What happened" }
                (earlier(&kind, &id, &shown, &found))
                @if found.events.is_empty() {
                    (empty("The record tells nothing of it", html! { p { "Look at the address: it is " code { "/case/KIND/ID" } ", for example " code { "/case/agent/code" } "." } }))
                }
                ol.story { @for event in &found.events { (told(&people, event, trail.as_ref(), &kind, &id)) } }
            }
        }
    };
    let topics = if kind == "agent" || kind == "person" { "record".to_owned() } else { format!("{kind}:{id}") };
    shell::show(&visit, Page { title: &format!("Case: {title}"), place: Place::Record, topics: &topics, body }).await
}

/// The newest events of a thing, oldest first. Who acts has also done things to others.
async fn events(visit: &Visit, kind: &str, id: &str, shown: &Shown) -> Result<Found, Fault> {
    let rows = record::rows(&shown.rows);
    let by = |name: &str, value: String| Map::from_iter([(name.to_owned(), Value::from(value))]);
    let mut found = record::seek(visit, &by("subject", format!("{kind}:{id}")), rows, &shown.cursor).await?;
    if kind == "agent" || kind == "person" {
        let acted = record::seek(visit, &by("actor", id.to_owned()), rows, &shown.cursor).await?;
        found = together(found, acted, kind);
    }
    found.events.sort_by_key(|event| event.seq);
    Ok(found)
}

/// Two lists as one. Where one of them ends early, nothing is shown from before: it would look as if there was nothing.
fn together(one: Found, other: Found, kind: &str) -> Found {
    let place = |next: &Option<String>| next.as_ref().and_then(|next| next.parse::<u64>().ok());
    let whole_from = place(&one.next).max(place(&other.next));
    let acted = other.events.into_iter().filter(|event| event.actor_kind == kind);
    let events: BTreeMap<u64, Event> = one.events.into_iter().chain(acted).map(|event| (event.seq, event)).collect();
    let events = events.into_values().filter(|event| whole_from.is_none_or(|from| event.seq >= from)).collect();
    Found { events, next: whole_from.map(|from| from.to_string()) }
}

/// What `cowork_audit_trail` tells of a request.
#[derive(Deserialize)]
struct Trail {
    found: bool,
    verified: bool,
    problems: Vec<String>,
    chain: Vec<Link>,
    proofs: Vec<Value>,
}

#[derive(Deserialize)]
struct Link {
    stage: String,
    #[serde(flatten)]
    event: Event,
}

async fn trail(visit: &Visit, request: &str) -> Option<Trail> {
    visit.ask::<Trail>("cowork_audit_trail", json!({ "proposal_id": request })).await.ok().filter(|trail| trail.found)
}

/// Adds what the chain knows and the subject's own events do not tell, such as those of its grants.
fn add_links(found: &mut Found, trail: &Trail) {
    let known: BTreeSet<u64> = found.events.iter().map(|event| event.seq).collect();
    let mut added = BTreeMap::new();
    for link in trail.chain.iter().filter(|link| !known.contains(&link.event.seq)) {
        added.entry(link.event.seq).or_insert_with(|| link.event.clone());
    }
    found.events.extend(added.into_values());
    found.events.sort_by_key(|event| event.seq);
}

#[derive(Deserialize)]
struct Titled {
    title: Option<String>,
}

#[derive(Deserialize)]
struct TitledTask {
    task: Titled,
}

/// What people call the thing, where it still is there.
async fn title(visit: &Visit, people: &People, kind: &str, id: &str) -> Option<String> {
    match kind {
        "request" => visit.ask::<Titled>("desk_request_get", json!({ "request": id })).await.ok()?.title,
        "task" => visit.ask::<TitledTask>("bridge_get_task", json!({ "task_id": id })).await.ok()?.task.title,
        "person" => Some(people.name(id).to_owned()),
        _ => None,
    }
}

/// The page where the thing itself is shown.
fn own_page(kind: &str, id: &str) -> Option<(String, &'static str)> {
    match kind {
        "request" => Some((format!("/requests/{}", segment(id)), "The request")),
        "agent" => Some((format!("/agents/{}", segment(id)), "The agent")),
        "run" => Some((format!("/runs/{}", segment(id)), "The run")),
        "task" => Some((format!("/tasks/{}", segment(id)), "The task")),
        "policy" => Some((format!("/policies/{}", segment(id)), "The policy")),
        "person" => Some(("/people".to_owned(), "People")),
        _ => None,
    }
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {}", crate::visible::visible(&spaced(kind)))
}

/// Whether the chain is whole and proved, and what is missing.
fn proof(trail: &Trail) -> Markup {
    part(
        "Proof",
        html! {
            p {
                @if trail.verified { (badge(Tone::Good, "verified")) " Proposed, allowed, granted, done exactly as approved, and its outcome told: each step is in the signed record." }
                @else { (badge(Tone::Warning, "not whole")) " The chain from proposal to outcome is not whole, or not yet:" }
            }
            @if !trail.problems.is_empty() { ul { @for problem in &trail.problems { li { (said(problem)) } } } }
            @if !trail.proofs.is_empty() {
                details id="proofs" {
                    summary { "Proofs of " (trail.proofs.len()) " events" }
                    p.hint { "Each can be checked offline by whoever has the desk's public key; " code { "deskmate audit verify" } " checks them all." }
                    @for proof in &trail.proofs {
                        @let seq = proof.get("seq").and_then(Value::as_u64).unwrap_or_default();
                        details id={ "proof-" (seq) } { summary { "Event " (seq) } (ui::value(proof)) }
                    }
                }
            }
        },
    )
}

/// The other things that its events name, each with a link to its own case.
fn connected(people: &People, kind: &str, id: &str, events: &[Event]) -> Markup {
    let mut things: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in events {
        let facts = event.facts.keys().filter_map(|name| named(name, &event.facts));
        let about = event.subject.split_once(':').filter(|(kind, _)| *kind != "event");
        let actor = Some((event.actor_kind.as_str(), event.actor.as_str())).filter(|(kind, _)| *kind != "system");
        for (other, named) in facts.chain(about).chain(actor).filter(|other| *other != (kind, id)) {
            things.entry(other).or_default().insert(named);
        }
    }
    if things.is_empty() {
        return Markup::default();
    }
    part(
        "Connected with",
        html! {
            dl.facts {
                @for (kind, ids) in &things {
                    (ui::fact(&spaced(kind), html! {
                        @for (at, id) in ids.iter().take(CONNECTED_MAX).enumerate() {
                            @if at > 0 { ", " }
                            a href=(address(kind, id)) title=(id) { (said(&called(people, kind, id))) }
                        }
                        @if ids.len() > CONNECTED_MAX { " and " (ids.len() - CONNECTED_MAX) " more" }
                    }))
                }
            }
        },
    )
}

/// How many things of one kind are named.
const CONNECTED_MAX: usize = 12;

fn called(people: &People, kind: &str, id: &str) -> String {
    match kind {
        "agent" | "policy" | "trust" | "pause" => id.to_owned(),
        "person" => people.name(id).to_owned(),
        _ => short(id),
    }
}

/// The link to what happened before the first event that is shown.
fn earlier(kind: &str, id: &str, shown: &Shown, found: &Found) -> Markup {
    let Some(next) = &found.next else {
        return html! { @if !shown.cursor.is_empty() { p.more { a href=(address(kind, id)) data-in-place { "Show the newest" } } } };
    };
    let rows = record::rows(&shown.rows);
    let query = if shown.cursor.is_empty() && rows < record::ROWS_MAX { ("rows", (rows + record::ROWS).to_string()) } else { ("cursor", next.clone()) };
    html! { p.more { a href=(ui::address(&address(kind, id), &[(query.0, &query.1)])) data-in-place { "Show what was before" } } }
}

/// One thing that happened.
fn told(people: &People, event: &Event, trail: Option<&Trail>, kind: &str, id: &str) -> Markup {
    let stage = trail.and_then(|trail| trail.chain.iter().find(|link| link.event.seq == event.seq)).map(|link| link.stage.as_str());
    let is_own = event.subject.is_empty() || event.subject.split_once(':') == Some((kind, id));
    html! {
        li id={ "event-" (event.seq) } {
            p {
                a href={ "/record/" (event.seq) } data-row { strong { (event::meaning(&event.kind)) } }
                @if let Some(stage) = stage.filter(|stage| *stage != "note") { " " (badge(Tone::Quiet, stage)) }
                (event::marks(event))
            }
            p.meta {
                (time(&event.at)) " · " (event::who(people, event)) " · " code { (event.kind) }
                @if !is_own { " · " (subject(&event.subject)) }
            }
            @if let Some(gist) = event::gist(event.payload.as_ref()) { (ui::words(&gist)) }
            details id={ "facts-" (event.seq) } {
                summary.meta { "Facts" @if event.payload.is_some() { " and what was written" } }
                (event::facts(&event.facts))
                @if let Some(payload) = &event.payload { (ui::value(payload)) }
            }
        }
    }
}
