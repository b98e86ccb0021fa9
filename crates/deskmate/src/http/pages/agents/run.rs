//! One run: how it stands, how far it is, what it says while it says it, what came of it, and what it used.

use axum::extract::{Path, Query};
use axum::response::Response;
use deskmate_core::agents::Budget;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::event::{self, Event};
use super::super::record;
use super::super::shell::{self, Page, Place};
use super::super::ui::{self, badge, fact, part, said, short, time};
use super::super::visit::{Fault, People, Visit};
use super::address_of;
use super::made::{cause, tone};

/// How many lines of the log a page shows.
const LINES: i64 = 200;
/// How many events of it, and how many of what its agent did meanwhile.
const EVENTS: usize = 50;

/// What the address of the page says.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Shown {
    /// The first line of the log; the newest ones if it is empty.
    from: String,
}

/// What `agents_get_run` answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    run_id: String,
    agent: String,
    state: String,
    cause: String,
    ended: bool,
    stopping: bool,
    parent: Option<String>,
    node: Option<String>,
    waits_for: Option<String>,
    due_at: Option<String>,
    created_at: String,
    started_at: Option<String>,
    finished_at: Option<String>,
    input: Option<Value>,
    progress: Option<Progress>,
    result: Option<Value>,
    error: Option<String>,
    budget: Budget,
    used: Used,
    last_line: i64,
}

#[derive(Deserialize)]
struct Progress {
    percent: Option<u8>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Used {
    seconds: f64,
    calls: i64,
    log_characters: i64,
    cost: f64,
}

#[derive(Deserialize)]
struct Log {
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    number: i64,
    at: String,
    source: String,
    text: String,
}

#[derive(Deserialize)]
struct Waiting {
    request: String,
    title: Option<String>,
}

pub(super) async fn serve(visit: Visit, Path(id): Path<String>, Query(shown): Query<Shown>) -> Result<Response, Fault> {
    let run: Run = visit.ask("agents_get_run", json!({ "runId": id })).await?;
    let newest = (run.last_line - LINES).max(0);
    // Lines are counted from 1, and what is asked for begins behind a line.
    let after = shown.from.parse::<i64>().map_or(newest, |from| (from - 1).clamp(0, newest));
    let log: Log = visit.ask("agents_run_log", json!({ "runId": id, "after": after, "limit": LINES })).await?;
    let people = visit.people().await?;
    let own = narrowed(&visit, &[("subject", &format!("run:{}", run.run_id))]).await?;
    let did = match &run.started_at {
        Some(begun) => {
            let until = run.finished_at.as_deref().map(|until| ("until", until));
            let mut by: Vec<(&str, &str)> = vec![("actor", run.agent.as_str()), ("since", begun.as_str())];
            by.extend(until);
            narrowed(&visit, &by).await?
        }
        None => Vec::new(),
    };
    let (waiting, _) = if run.ended {
        (Vec::new(), false)
    } else {
        visit.gather::<Waiting>("desk_request_list", "requests", json!({ "requester": run.agent, "state": "pending" }), 10).await?
    };
    let body = html! {
        div.wide {
            p { a href=(address_of(&run.agent)) data-in-place data-key="Escape" { "The agent " (said(&run.agent)) } }
            header.head {
                h1 { "Run " (short(&run.run_id)) " of " (said(&run.agent)) }
                (badge(tone(&run.state), &run.state))
                @if run.stopping { (badge(ui::Tone::Warning, "is stopping")) }
            }
            (standing(&run))
            @for one in &waiting { p.banner { "Its agent waits for a person: " a href={ "/requests/" (one.request) } { (said(one.title.as_deref().unwrap_or("a request"))) } } }
            @if !run.ended && visit.you.role != "viewer" { (stop(&run)) }
            @if let Some(error) = &run.error { section.part role="status" { h3 { "Why it ended so" } (ui::words(error)) } }
            (used(&run))
            (said_so(&run, &log, after, newest))
            @if let Some(result) = run.result.as_ref().filter(|result| !result.is_null()) { section.part id="result" { h3 { "What came of it" } (ui::value(result)) } }
            @if let Some(input) = run.input.as_ref().filter(|input| !input.is_null()) { (part("What it was started with", ui::value(input))) }
            (events(&people, &run, &own, &did))
        }
    };
    let topics = format!("run:{} request", run.run_id);
    let title = format!("Run of {}", run.agent);
    shell::show(&visit, Page { title: &title, place: Place::Agents, topics: &topics, body }).await
}

async fn narrowed(visit: &Visit, by: &[(&str, &str)]) -> Result<Vec<Event>, Fault> {
    let by: Map<String, Value> = by.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
    Ok(record::seek(visit, &by, EVENTS, "").await?.events)
}

/// How it stands. While it is under way the page is read again: how far it is is no event.
fn standing(run: &Run) -> Markup {
    html! {
        p.meta data-again[!run.ended] {
            "Made because " (cause(&run.cause)) " · " (time(&run.created_at))
            @if let Some(due) = &run.due_at { " · due " (time(due)) }
            @if let Some(begun) = &run.started_at { " · began " (time(begun)) }
            @if let Some(ended) = &run.finished_at { " · ended " (time(ended)) }
            @if let Some(node) = &run.node { " · on the node " (said(node)) }
            @if let Some(parent) = &run.parent { " · started by " a href={ "/runs/" (parent) } { "run " (short(parent)) } }
        }
        @if let Some(what) = &run.waits_for { p.banner id="waits-for" { "It waits for " (said(what)) } }
        @if let Some(progress) = &run.progress {
            p.row id="progress" {
                @if let Some(percent) = progress.percent { progress max="100" value=(percent) aria-label="How much of it is done" {} (percent) " %" }
                @if let Some(text) = &progress.text { span.meta { "done last: " (said(text)) } }
            }
        }
    }
}

fn stop(run: &Run) -> Markup {
    html! {
        div.acts {
            form id="stop-run" data-call="agents_stop_run" data-done="It is asked to stop" data-confirm="Stop this run? A step that is under way is finished, and none begins after it; a program is ended." {
                input type="hidden" name="runId" value=(run.run_id);
                button.alarm disabled[run.stopping] { "Stop this run" }
            }
        }
    }
}

fn used(run: &Run) -> Markup {
    part(
        "What it used of its budget",
        html! {
            dl.facts {
                (fact("Seconds", html! { (format!("{:.1}", run.used.seconds)) " of " (run.budget.seconds) }))
                (fact("Calls", html! { (run.used.calls) " of " (run.budget.calls) }))
                (fact("Characters of log", html! { (run.used.log_characters) " of " (run.budget.log_bytes) " bytes" }))
                @if run.used.cost > 0.0 { (fact("Cost of its calls", html! { (run.used.cost) })) }
            }
            p.hint { "Waiting for people is among the seconds; steps are not charged for it." }
        },
    )
}

/// What it said: the newest lines, at whose end the page stays unless somebody scrolls up, or those from a line on.
fn said_so(run: &Run, log: &Log, after: i64, newest: i64) -> Markup {
    let page = format!("/runs/{}", run.run_id);
    let is_newest = after >= newest;
    html! {
        section.part id="log" {
            h3 { "What it said" }
            @if log.lines.is_empty() { p.hint { @if run.ended { "It said nothing." } @else { "Nothing yet. What it says is shown here while it runs." } } }
            @else {
                @if after > 0 { p.meta { (after) " lines came before. " a href=(ui::address(&page, &[("from", &(after - LINES + 1).max(1).to_string())])) data-in-place { "Earlier lines" } } }
                ol.log id={ "lines-" (if is_newest { "newest" } else { "earlier" }) } tabindex="0" aria-label="What it said" data-follow[is_newest] {
                    @for line in &log.lines {
                        li id={ "line-" (line.number) } { span.meta { (time(&line.at)) " " (said(&line.source)) " " } span.text { (crate::visible::visible(&line.text)) } }
                    }
                }
                @if !is_newest { p.meta { a href=(ui::address(&page, &[("from", &(after + LINES + 1).to_string())])) data-in-place { "Later lines" } " · " a href=(page) data-in-place { "The newest" } } }
            }
        }
    }
}

fn events(people: &People, run: &Run, own: &[Event], did: &[Event]) -> Markup {
    let begun = run.started_at.as_deref().unwrap_or_default();
    let of_agent = ui::address("/record", &[("actor", &run.agent), ("since", begun), ("until", run.finished_at.as_deref().unwrap_or_default())]);
    html! {
        section.part id="events" {
            h3 { "In the record" }
            ol.rows.card { @for event in own { (event::line(people, event)) } }
            @if !did.is_empty() {
                h3 { "What the agent did meanwhile" }
                ol.rows.card { @for event in did { (event::line(people, event)) } }
                @if did.len() >= EVENTS { p { a href=(of_agent) { "All of it" } } }
            }
            p.hint { a href={ "/case/run/" (run.run_id) } { "Everything about this run" } }
        }
    }
}
