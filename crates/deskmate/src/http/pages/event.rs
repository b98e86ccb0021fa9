//! One event of the record: in a line of a list, and on a page of its own with its proof.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::Response;
use deskmate_core::call::event_catalogue;
use deskmate_core::{format_time, meter};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::case;
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, block, fact, field, part, said, spaced, time};
use super::visit::{Fault, People, Visit};

/// How much of what somebody wrote a line shows.
const GIST_CHARS: usize = 160;

/// What `desk_record_get` and `desk_record_list` tell of an event.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Event {
    pub(super) seq: u64,
    pub(super) at: String,
    pub(super) actor_kind: String,
    pub(super) actor: String,
    pub(super) verified: bool,
    #[serde(default)]
    pub(super) surface: String,
    pub(super) kind: String,
    #[serde(default)]
    pub(super) subject: String,
    pub(super) facts: Map<String, Value>,
    pub(super) payload: Option<Value>,
    #[serde(default)]
    pub(super) erased: bool,
    pub(super) signed: Option<Signed>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Signed {
    text: String,
    signature: String,
    key: String,
}

#[derive(Deserialize)]
struct Proof {
    body: String,
    hashes: Vec<String>,
    checkpoint: String,
    key: String,
}

static MEANINGS: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| event_catalogue().into_iter().map(|kind| (kind.name, kind.says)).collect());

/// The names of all kinds, in their order.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    MEANINGS.keys().copied()
}

/// What a kind of event means, in a sentence.
pub(super) fn meaning(kind: &str) -> &'static str {
    MEANINGS.get(kind).copied().unwrap_or("Something that this version of the desk has no sentence for.")
}

/// The fields in which people and agents mostly write what matters.
const TELLING: [&str; 12] = ["title", "content", "text", "note", "name", "reason", "reasoning", "action", "question", "answer", "goal", "summary"];

/// The beginning of what somebody wrote, for a line.
pub(super) fn gist(payload: Option<&Value>) -> Option<String> {
    let first = match payload? {
        Value::String(text) => text,
        Value::Object(fields) => {
            let telling = TELLING.iter().find_map(|name| fields.get(*name)?.as_str().filter(|text| !text.trim().is_empty()));
            telling.or_else(|| fields.values().find_map(Value::as_str))?
        }
        _ => return None,
    };
    let cut: String = first.chars().take(GIST_CHARS).collect();
    Some(if cut.len() < first.len() { format!("{cut}…") } else { cut })
}

/// Marks that say how far an event can be believed, and what is left of it.
pub(super) fn marks(event: &Event) -> Markup {
    html! {
        @if !event.verified { " " (badge(Tone::Warning, "unverified")) }
        @if event.signed.is_some() { " " (badge(Tone::Good, "signed")) }
        @if event.erased { " " (badge(Tone::Alarm, "erased")) }
    }
}

/// An event in a list.
pub(super) fn line(people: &People, event: &Event) -> Markup {
    html! {
        li id={ "event-" (event.seq) } {
            a href={ "/record/" (event.seq) } data-row {
                span.title { (meaning(&event.kind)) }
                @if let Some(gist) = gist(event.payload.as_ref()) { span.gist { (said(&gist)) } }
                span.meta { (said(people.name(&event.actor))) " · " (said(&event.subject)) " · " (time(&event.at)) }
                span.badges { code { (event.kind) } (marks(event)) span.deadline { "no. " (event.seq) } }
            }
        }
    }
}

/// Who acted, with a link to everything about them.
pub(super) fn who(people: &People, event: &Event) -> Markup {
    html! {
        @match event.actor_kind.as_str() {
            kind @ ("agent" | "person") => { a href=(case::address(kind, &event.actor)) { (said(people.name(&event.actor))) } }
            _ => { "the desk itself" }
        }
    }
}

/// Facts, with links to the things that they name.
pub(super) fn facts(facts: &Map<String, Value>) -> Markup {
    html! {
        @if !facts.is_empty() {
            dl.facts {
                @for (name, value) in facts {
                    @let text = ui::plain(value);
                    (fact(&spaced(name), match (case::named(name, facts), moment(name, value)) {
                        (Some((kind, id)), _) => html! { a href=(case::address(kind, id)) { (said(&text)) } },
                        (None, Some(at)) => time(&at),
                        (None, None) => said(&text),
                    }))
                }
            }
        }
    }
}

/// A fact that is a moment: the record counts microseconds.
fn moment(name: &str, value: &Value) -> Option<String> {
    let is_one = name.ends_with("_at") || name.ends_with("until") || name == "deadline";
    value.as_i64().filter(|micros| is_one && *micros > 1_000_000_000_000_000).map(format_time)
}

pub(super) async fn serve(visit: Visit, Path(seq): Path<u64>) -> Result<Response, Fault> {
    let event: Event = visit.ask("desk_record_get", json!({ "seq": seq })).await?;
    let proof: Proof = visit.ask("desk_record_prove", json!({ "seq": seq })).await?;
    let people = visit.people().await?;
    let erasure = if event.erased { super::record::newest_of(&visit, &format!("event:{seq}")).await? } else { None };
    let body = html! {
        div.alone {
            nav.row aria-label="Neighbours" {
                a href="/record" data-key="Escape" { "Record" }
                @if let Some(before) = seq.checked_sub(1) { a href={ "/record/" (before) } { "Before" } }
                @if seq + 1 < visit.size { a href={ "/record/" (seq + 1) } { "After" } }
            }
            article.event id={ "event-" (seq) } {
                header {
                    h1 { (meaning(&event.kind)) }
                    p.meta { code { (event.kind) } " · no. " (seq) (marks(&event)) }
                }
                dl.facts {
                    (fact("Who", html! { (who(&people, &event)) " (" (event.actor_kind) ")" }))
                    (fact("To what", case::subject(&event.subject)))
                    (fact("When", time(&event.at)))
                    (fact("Over", html! { (surface(&event.surface)) }))
                    (fact("Identity", html! { @if event.verified { "proved by a credential" } @else { "only what they said of themselves" } }))
                }
                (part("Facts", facts(&event.facts)))
                (part("What was written", written(&people, &event, erasure.as_ref())))
                (answered_now(&event))
                (signature(event.signed.as_ref()))
                (proved(seq, &proof))
                @if event.payload.is_some() && visit.you.role == "owner" { (erase(seq)) }
            }
        }
    };
    let topics = format!("event:{seq}");
    shell::show(&visit, Page { title: &format!("Event {seq}"), place: Place::Record, topics: &topics, body }).await
}

fn surface(name: &str) -> &str {
    match name {
        "mcp" => "MCP",
        "rest" => "REST",
        "cli" => "the command line",
        "web" => "a page",
        "file" => "the bridge file",
        "system" => "the desk's own work",
        other => other,
    }
}

fn written(people: &People, event: &Event, erasure: Option<&Event>) -> Markup {
    html! {
        @if let Some(payload) = &event.payload { (ui::value(payload)) }
        @else if event.erased {
            p {
                "It was erased; the event and its proof stay."
                @if let Some(erasure) = erasure {
                    " " a href={ "/record/" (erasure.seq) } { "Erased " (time(&erasure.at)) " by " (said(people.name(&erasure.actor))) }
                    @if let Some(reason) = gist(erasure.payload.as_ref()) { ": " (said(&reason)) }
                }
            }
        }
        @else { p.hint { "Nothing: the facts say it all." } }
    }
}

/// How long what an act says may be to go into an address.
const ASKED_BYTES_MAX: usize = 4_000;

/// The way to what an act that was denied would be answered now: no request tells of it.
fn answered_now(event: &Event) -> Markup {
    let fact = |name: &str| event.facts.get(name).and_then(Value::as_str).unwrap_or_default();
    if !matches!(event.kind.as_str(), "act.denied" | "act.questioned") || fact("requester_kind") != "agent" {
        return Markup::default();
    }
    let act = event.payload.as_ref().and_then(|payload| payload.get("act"));
    let said = |name: &str| act.and_then(|act| act.get(name)).and_then(Value::as_str).unwrap_or_default();
    let change = act.and_then(|act| act.get("arguments")).map(Value::to_string).unwrap_or_default();
    let cost = act.and_then(|act| act.get("cost")).and_then(Value::as_i64).filter(|cost| *cost > 0);
    let cost = cost.map(|cost| meter::units(cost).to_string()).unwrap_or_default();
    let fits = change.len() <= ASKED_BYTES_MAX;
    let names = ["action", "target", "kind", "tool", "environment", "field"];
    let mut query = vec![("agent", fact("requester")), ("domain", fact("domain")), ("cost", cost.as_str())];
    query.extend(names.map(|name| (name, said(name))));
    query.extend(fits.then_some(("change", change.as_str())));
    html! {
        p {
            a href=(ui::address("/policies/why", &query)) { "What the desk would say now, and what would change that" }
            @if !fits { " (without what it was to change: that is too long for an address)" }
        }
    }
}

fn signature(signed: Option<&Signed>) -> Markup {
    let Some(signed) = signed else { return Markup::default() };
    part(
        "Signed by a browser",
        html! {
            p { "The person's browser signed this call with a key that never leaves it; the digest of that key is among the facts of the session." }
            details id="signature" {
                summary { "What it signed, and how" }
                h4 { "Text: method, path, digest of the body, time" } (block(&signed.text))
                h4 { "Signature (ECDSA P-256, SHA-256)" } (block(&signed.signature))
                h4 { "Public key" } (block(&signed.key))
            }
        },
    )
}

fn proved(seq: u64, proof: &Proof) -> Markup {
    part(
        "Proof",
        html! {
            p {
                "That this event is in the record can be checked without this desk: " code { "deskmate audit prove " (seq) } " prints this proof, and "
                code { "deskmate audit export record.jsonl" } " followed by " code { "deskmate audit verify record.jsonl --key KEY" }
                " derives every hash again on any machine and compares it with what the key below has signed."
            }
            details id="proof" {
                summary { "Checkpoint, hashes and key" }
                h4 { "Signed checkpoint" } (block(&proof.checkpoint))
                h4 { "Hashes from the leaf to the root" }
                @if proof.hashes.is_empty() { p.hint { "None: the event alone is the tree." } } @else { (block(&proof.hashes.join("\n"))) }
                h4 { "Public key" } (block(&proof.key))
                h4 { "The sealed bytes" } (block(&proof.body))
            }
        },
    )
}

fn erase(seq: u64) -> Markup {
    part(
        "Erase",
        html! {
            details id="erase" {
                summary { "Erase what was written" }
                form data-call="desk_record_erase" data-done="Erased; the proof stands" data-confirm="Erase what was written in this event, wherever the desk keeps it? This cannot be undone." {
                    input type="hidden" name="seq" value=(seq) data-as="json";
                    p.hint { "The text goes from here and from everything that repeats it. The event, its facts and its proof stay." }
                    (field("erase-reason", "Why, for the record", html! { input id="erase-reason" name="reason" required maxlength="500"; }))
                    button.alarm { "Erase" }
                }
            }
        },
    )
}
