//! Trust over time: what moved it, how well an agent knows itself, and whether the record gives the same numbers again.

mod chart;

use axum::Router;
use axum::extract::Query;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Shared;
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, empty, fact, more, part, percent, said, share, short, spaced, time};
use super::visit::{Fault, People, Visit};

/// How many changes a page begins with, and how many it shows at most.
const ROWS: usize = 100;
const ROWS_MAX: usize = 1_000;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/trust", get(serve))
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Address {
    agent: String,
    domain: String,
    rows: String,
    cursor: String,
}

/// How far an agent is trusted in a domain, as `desk_trust_list` and `desk_trust_get` answer it.
#[derive(Deserialize)]
pub(super) struct Trust {
    pub(super) agent: String,
    pub(super) domain: String,
    pub(super) verified: bool,
    pub(super) score: f64,
    pub(super) mode: String,
    pub(super) promotion_pending: bool,
    accuracy: f64,
    accuracy_low: f64,
    accuracy_high: f64,
    sample_size: i64,
    proposals: i64,
    approved: i64,
    overridden: i64,
    streak: i64,
    mean_confidence: Option<f64>,
    brier: Option<f64>,
    score_before_decay: f64,
    updated_at: String,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Trust>,
}

/// What `desk_trust_get` answers.
#[derive(Deserialize)]
struct Shown {
    rows: Vec<Trust>,
    suggest_from: f64,
    act_from: f64,
    calibration: Vec<Bucket>,
    history: Vec<Change>,
    next_cursor: Option<String>,
}

/// The newest of them.
#[derive(Deserialize)]
struct Lately {
    history: Vec<Change>,
}

#[derive(Deserialize)]
struct Bucket {
    from: f64,
    mean_confidence: f64,
    approved: f64,
    count: i64,
}

/// A change of a score.
#[derive(Deserialize)]
struct Change {
    seq: u64,
    at: String,
    by: String,
    cause: String,
    verified: bool,
    request: Option<String>,
    previous: f64,
    impact: f64,
    new: f64,
    demoted: bool,
}

/// Where an agent stands in each of its domains.
pub(super) async fn of_agent(visit: &Visit, agent: &str) -> Result<Vec<Trust>, Fault> {
    let list: List = visit.ask("desk_trust_list", json!({ "agent": agent, "limit": 200 })).await?;
    Ok(list.items)
}

/// What moved trust in an agent lately, for whoever decides about it now.
pub(super) async fn lately(visit: &Visit, people: &People, agent: &str, domain: &str) -> Markup {
    // Of whom nothing was decided yet there is nothing to tell.
    let Ok(Lately { history }) = visit.ask("desk_trust_get", json!({ "agent": agent, "domain": domain, "limit": 5 })).await else {
        return Markup::default();
    };
    html! {
        details id="trust-lately" {
            summary { "How trust moved lately" }
            ul {
                @for change in &history {
                    li { (time(&change.at)) ": " (spaced(&change.cause)) " by " (said(people.name(&change.by))) ", " (format!("{:+.2}", change.impact)) " to " (format!("{:.2}", change.new)) }
                }
            }
        }
    }
}

/// The page of an agent in a domain.
pub(super) fn address(agent: &str, domain: &str) -> String {
    ui::address("/trust", &[("agent", agent), ("domain", domain)])
}

/// The share that was approved, with the size of its sample and what it stands for.
pub(super) fn sample(row: &Trust) -> Markup {
    html! {
        @if row.sample_size == 0 { "nothing decided yet" } @else {
            (percent(row.accuracy)) " of " (row.sample_size)
            span.meta { " (95 %: " (percent(row.accuracy_low)) " to " (percent(row.accuracy_high)) ")" }
        }
    }
}

async fn serve(visit: Visit, Query(address): Query<Address>) -> Result<Response, Fault> {
    if address.agent.is_empty() || address.domain.is_empty() {
        return all(&visit, &address).await;
    }
    let people = visit.people().await?;
    let shown = shown(&visit, &address).await?;
    let more_rows = ui::address("/trust", &[("agent", &address.agent), ("domain", &address.domain), ("rows", &(rows(&address) + 2 * ROWS).to_string())]);
    let body = html! {
        div.wide {
            p { a href={ "/agents/" (address.agent) } data-in-place data-key="Escape" { "The agent " (said(&address.agent)) } }
            h1 { "Trust in " (said(&address.agent)) " in " (said(&address.domain)) }
            @for row in &shown.rows { (now(row)) }
            (part("The score over time", html! {
                (chart::over_time(&shown, visit.now()))
                @if shown.next_cursor.is_some() { p.hint { "Only the newest " (shown.history.len()) " changes are drawn." } }
            }))
            (part("How well it knows itself", calibration(&shown)))
            (part("What moved it", html! {
                (table(&people, &shown.history))
                @if shown.next_cursor.is_some() && rows(&address) < ROWS_MAX { (more(&more_rows)) }
            }))
            (part("Does the record give the same?", replay(&address)))
        }
    };
    let title = format!("Trust in {}", address.agent);
    shell::show(&visit, Page { title: &title, place: Place::Agents, topics: "trust setting", body }).await
}

fn rows(address: &Address) -> usize {
    address.rows.parse().unwrap_or(ROWS).clamp(ROWS, ROWS_MAX)
}

/// Trust with as many changes as the page shows.
async fn shown(visit: &Visit, address: &Address) -> Result<Shown, Fault> {
    let ask = |cursor: Option<String>, limit: usize| {
        let mut input = json!({ "agent": address.agent, "domain": address.domain, "limit": limit });
        if let (Some(cursor), Some(fields)) = (cursor, input.as_object_mut()) {
            fields.insert("cursor".to_owned(), Value::from(cursor));
        }
        visit.ask::<Shown>("desk_trust_get", input)
    };
    let wanted = rows(address);
    let mut shown = ask(None, wanted.min(200)).await?;
    while let Some(cursor) = shown.next_cursor.take_if(|_| shown.history.len() < wanted) {
        let next = ask(Some(cursor), (wanted - shown.history.len()).min(200)).await?;
        shown.history.extend(next.history);
        shown.next_cursor = next.next_cursor;
    }
    Ok(shown)
}

/// Every agent in every domain, where the address names none.
async fn all(visit: &Visit, address: &Address) -> Result<Response, Fault> {
    let input = if address.agent.is_empty() { json!({}) } else { json!({ "agent": address.agent }) };
    let wanted = ui::rows(&address.rows);
    let (items, next) = visit.gather_from::<Trust>("desk_trust_list", "items", input, wanted, &address.cursor).await?;
    let from = |rows: &str, cursor: &str| ui::address("/trust", &[("agent", &address.agent), ("rows", rows), ("cursor", cursor)]);
    let body = html! {
        div.wide {
            h1 { "Trust" }
            @if !address.cursor.is_empty() { (ui::back_to_first(&from("", ""))) }
            @if items.is_empty() {
                (empty("Nothing is known of any agent yet", html! { p { "Each agent begins with little trust in each domain, and earns more by proposals that people approve." } p { a href="/agents" { "Agents" } } }))
            } @else {
                ol.rows.card id="trusted" {
                    @for row in &items {
                        li id={ "trust-" (row.agent) "-" (row.domain) "-" (row.verified) } {
                            a href=(self::address(&row.agent, &row.domain)) data-row {
                                span.title { (said(&row.agent)) " in " (said(&row.domain)) }
                                span.badges { (badge(Tone::of_state(&row.mode), &row.mode)) (share("Score", row.score)) @if !row.verified { (badge(Tone::Warning, "unverified")) } }
                                span.meta { (sample(row)) " · " (time(&row.updated_at)) }
                            }
                        }
                    }
                }
            }
            (ui::onward(wanted, next.as_deref(), |rows, cursor| from(&rows, cursor.unwrap_or(&address.cursor))))
        }
    };
    shell::show(visit, Page { title: "Trust", place: Place::Agents, topics: "trust", body }).await
}

/// The numbers as they are now.
fn now(row: &Trust) -> Markup {
    html! {
        section.part id={ "now-" (row.verified) } {
            h2 { @if row.verified { "With its token" } @else { "By its name alone, unverified" } }
            dl.facts {
                (fact("Score", html! { strong { (format!("{:.3}", row.score)) } @if (row.score - row.score_before_decay).abs() > 0.0005 { span.meta { " (" (format!("{:.3}", row.score_before_decay)) " before it faded)" } } }))
                (fact("Trust allows", badge(Tone::of_state(&row.mode), &row.mode)))
                (fact("Approved", sample(row)))
                (fact("Proposals", html! { (row.proposals) ", " (row.approved) " approved, " (row.overridden) " overridden" }))
                (fact("Overridden in a row", html! { (row.streak) }))
                @if let Some(sure) = row.mean_confidence { (fact("Sure on average", html! { (percent(sure)) })) }
                @if let Some(brier) = row.brier { (fact("Brier score", html! { (format!("{brier:.3}")) })) }
                (fact("Last change", time(&row.updated_at)))
            }
            @if row.promotion_pending { p { (badge(Tone::Warning, "promotion")) " A promotion waits for a person in the inbox." } }
            @if !row.verified { p.hint { "What was earned without a token never allows more than suggest." } }
        }
    }
}

/// A drawing for the page that shows every part.
pub(super) fn example() -> Markup {
    let points = [(0.3, 0.4, 5), (0.6, 0.5, 12), (0.9, 0.95, 60)];
    chart::calibration(&points.map(|(mean_confidence, approved, count)| Bucket { from: mean_confidence, mean_confidence, approved, count }))
}

/// How sure it was against how often it was right.
fn calibration(shown: &Shown) -> Markup {
    if shown.calibration.is_empty() {
        return html! { p.hint { "None of its decided proposals came with a confidence." } };
    }
    html! {
        p { "When it says that it is 80 % sure, 8 of 10 should be approved: then its point lies on the line. Below it, it is too sure of itself." }
        div.beside {
            (chart::calibration(&shown.calibration))
            table {
                thead { tr { th scope="col" { "Sure" } th scope="col" { "Mean" } th scope="col" { "Approved" } th scope="col" { "Of" } } }
                tbody {
                    @for bucket in &shown.calibration {
                        tr {
                            th scope="row" { (percent(bucket.from)) " to " (percent(bucket.from + 0.1)) }
                            td { (percent(bucket.mean_confidence)) }
                            td { (percent(bucket.approved)) }
                            td { (bucket.count) }
                        }
                    }
                }
            }
        }
        p.hint { "The Brier score is how far off it was on average: 0 is always right, 0.25 is guessing." }
    }
}

/// Every change, newest first.
fn table(people: &People, history: &[Change]) -> Markup {
    if history.is_empty() {
        return html! { p.hint { "Nobody decided on anything of it yet." } };
    }
    html! {
        table.stack id="changes" {
            thead { tr { th scope="col" { "When" } th scope="col" { "What" } th scope="col" { "Impact" } th scope="col" { "Score" } th scope="col" { "By" } th scope="col" { "Request" } } }
            tbody {
                @for change in history {
                    tr id={ "change-" (change.seq) } {
                        th scope="row" { (time(&change.at)) }
                        td data-label="What" { (spaced(&change.cause)) @if change.demoted { " " (badge(Tone::Alarm, "demoted")) } @if !change.verified { " " (badge(Tone::Quiet, "unverified")) } }
                        td data-label="Impact" { (signed(change.impact)) }
                        td data-label="Score" { (format!("{:.3}", change.previous)) " → " (format!("{:.3}", change.new)) }
                        td data-label="By" { (said(people.name(&change.by))) }
                        td data-label="Request" { @if let Some(request) = &change.request { a href={ "/requests/" (request) } { (short(request)) } } }
                    }
                }
            }
        }
    }
}

/// A number with its sign.
fn signed(number: f64) -> String {
    if number.abs() < 0.0005 { "±0".to_owned() } else { format!("{number:+.3}") }
}

/// Recomputing reads the whole record, so it is done when somebody asks for it.
fn replay(address: &Address) -> Markup {
    html! {
        form data-call="desk_trust_replay" data-done="Recomputed from the record" data-replay {
            input type="hidden" name="agent" value=(address.agent);
            input type="hidden" name="domain" value=(address.domain);
            p { "Every change is told in the record with its numbers, so each score can be computed again from the record alone." }
            button.quiet { "Recompute from the record" }
        }
        p id="replay" role="status" data-keep {}
    }
}
