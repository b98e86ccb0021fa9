//! The record: the timeline of everything that happened, verifying it, and taking it along.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::super::Shared;
use super::event::{self, Event};
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, empty, filter, said, short, time};
use super::visit::{Fault, People, Visit};

/// How many rows a page begins with, and how many more it shows at once.
pub(super) const ROWS: usize = 50;
pub(super) const ROWS_MAX: usize = 500;
/// How often one page goes on looking for what fits before it asks the reader whether to.
const LOOKS_MAX: usize = 8;
/// The same where words are sought, which takes longer.
const WORDS_LOOKS_MAX: usize = 3;
/// Pages of a download that wait for a slow reader.
const WAITING_MAX: usize = 2;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/record", get(serve)).route("/record/events.jsonl", get(download)).route("/record/{seq}", get(event::serve))
}

/// What the address of the page says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filters {
    actor: String,
    kind: String,
    subject: String,
    since: String,
    until: String,
    search: String,
    rows: String,
    cursor: String,
}

impl Filters {
    /// What narrows the list, by the names of the operation's input.
    fn narrowing(&self) -> [(&'static str, &str); 6] {
        [("search", &self.search), ("kind", &self.kind), ("actor", &self.actor), ("subject", &self.subject), ("since", &self.since), ("until", &self.until)]
    }

    fn address(&self, path: &str) -> String {
        let place = [("rows", self.rows.as_str()), ("cursor", &self.cursor)];
        ui::address(path, &[self.narrowing().as_slice(), &place].concat())
    }

    fn rows(&self) -> usize {
        rows(&self.rows)
    }

    fn are_set(&self) -> bool {
        self.narrowing().iter().any(|(_, value)| !value.is_empty())
    }

    /// Whether more is set than the bar shows without being opened.
    fn are_deep(&self) -> bool {
        [&self.actor, &self.subject, &self.since, &self.until].into_iter().any(|filter| !filter.is_empty())
    }

    /// The input of `desk_record_list`. People are asked for by name and known by id.
    fn input(&self, people: &People) -> Map<String, Value> {
        let known = |name: &str| people.people.iter().find(|person| person.name == name).map_or_else(|| name.to_owned(), |person| person.person.clone());
        let given = self.narrowing().into_iter().filter(|(_, value)| !value.is_empty());
        given.map(|(name, value)| (name.to_owned(), Value::from(if name == "actor" { known(value) } else { value.to_owned() }))).collect()
    }
}

/// How many rows an address asks for.
pub(super) fn rows(text: &str) -> usize {
    text.parse().unwrap_or(ROWS).clamp(ROWS, ROWS_MAX)
}

/// Events that were found, and where looking would go on.
pub(super) struct Found {
    pub(super) events: Vec<Event>,
    pub(super) next: Option<String>,
}

#[derive(Deserialize)]
struct List<T> {
    events: Vec<T>,
    next_cursor: Option<String>,
}

/// As many events as a page shows, from as many pages of the operation as that takes within reason.
pub(super) async fn seek(visit: &Visit, narrowing: &Map<String, Value>, rows: usize, cursor: &str) -> Result<Found, Fault> {
    let (mut events, mut next) = (Vec::new(), Some(cursor.to_owned()).filter(|cursor| !cursor.is_empty()));
    let looks = if narrowing.contains_key("search") { WORDS_LOOKS_MAX } else { LOOKS_MAX };
    for _ in 0..looks {
        let list: List<Event> = visit.ask("desk_record_list", page_of(narrowing, (rows - events.len()).min(200), next.as_deref())).await?;
        events.extend(list.events);
        next = list.next_cursor;
        if next.is_none() || events.len() >= rows {
            break;
        }
    }
    Ok(Found { events, next })
}

fn page_of(narrowing: &Map<String, Value>, limit: usize, cursor: Option<&str>) -> Value {
    let mut input = narrowing.clone();
    input.insert("limit".to_owned(), Value::from(limit));
    if let Some(cursor) = cursor {
        input.insert("cursor".to_owned(), Value::from(cursor));
    }
    Value::Object(input)
}

/// The newest event of a subject.
pub(super) async fn newest_of(visit: &Visit, subject: &str) -> Result<Option<Event>, Fault> {
    let list: List<Event> = visit.ask("desk_record_list", json!({ "subject": subject, "limit": 1 })).await?;
    Ok(list.events.into_iter().next())
}

async fn serve(visit: Visit, Query(filters): Query<Filters>) -> Result<Response, Fault> {
    let people = visit.people().await?;
    let found = seek(&visit, &filters.input(&people), filters.rows(), &filters.cursor).await?;
    let verification = verification(&visit).await?;
    let body = html! {
        div.card.record {
            header.lead {
                h1 { "Record" }
                p.meta { "Everything that happened at this desk, newest first. Facts stay for ever and every event can be proved; what somebody wrote can be erased." }
            }
            (verified(verification.as_ref()))
            (bar(&visit, &people, &filters).await?)
            (listed(&people, &filters, &found))
            (onward(&filters, &found))
            (take_along(&filters))
        }
    };
    // Nothing is added to what is old.
    let topics = if filters.cursor.is_empty() { "record" } else { "desk" };
    shell::show(&visit, Page { title: "Record", place: Place::Record, topics, body }).await
}

#[derive(Deserialize)]
struct Agents {
    agents: Vec<Agent>,
}

#[derive(Deserialize)]
struct Agent {
    agent: String,
}

/// Search and filters, sent by the address.
async fn bar(visit: &Visit, people: &People, filters: &Filters) -> Result<Markup, Fault> {
    let agents: Agents = visit.ask("desk_agent_list", json!({ "limit": 200 })).await?;
    let kinds: Vec<(&str, &str)> = std::iter::once(("", "Any kind")).chain(event::kinds().map(|kind| (kind, kind))).collect();
    Ok(html! {
        form.filters data-filters role="search" {
            input type="search" name="search" value=(filters.search) placeholder="Search" aria-label="Search kinds, subjects, facts and what was written" data-key="/";
            (filter("Kind", "kind", &kinds, &filters.kind))
            details id="narrow" open[filters.are_deep()] {
                summary { "Filter" }
                div.grid {
                    label { "Who" input name="actor" value=(filters.actor) list="actors" placeholder="Ada, code, …"; }
                    label { "To what" input name="subject" value=(filters.subject) placeholder="task:ID, agent:code, …"; }
                    label { "From" input type="datetime-local" data-moment="since"; }
                    label { "Until" input type="datetime-local" data-moment="until"; }
                }
                input type="hidden" name="since" value=(filters.since);
                input type="hidden" name="until" value=(filters.until);
                datalist id="actors" {
                    @for person in &people.people { option value=(person.name) {} }
                    @for agent in &agents.agents { option value=(agent.agent) {} }
                    option value="desk" {}
                }
                div.row { button { "Filter" } }
            }
            @if filters.are_set() || !filters.cursor.is_empty() { a.clear href="/record" data-in-place { "Show everything" } }
        }
    })
}

fn listed(people: &People, filters: &Filters, found: &Found) -> Markup {
    if !found.events.is_empty() {
        return html! { ol.rows id="rows" { @for event in &found.events { (event::line(people, event)) } } };
    }
    if found.next.is_some() {
        return empty("Nothing fits so far", html! { p { "The newest events were looked through; there are older ones." } });
    }
    if filters.are_set() {
        return empty("Nothing fits", html! { p { a href="/record" data-in-place { "Show everything" } } });
    }
    empty("Nothing happened yet", html! { p { "Whatever people and agents do at this desk is told here." } })
}

/// The link to what is older: more rows as long as that is easy to read, then from where this page ends.
fn onward(filters: &Filters, found: &Found) -> Markup {
    let Some(next) = &found.next else { return Markup::default() };
    let is_full = found.events.len() >= filters.rows();
    let onward = if is_full && filters.rows() < ROWS_MAX {
        Filters { rows: (filters.rows() + ROWS).to_string(), ..filters.clone() }
    } else {
        Filters { cursor: next.clone(), rows: String::new(), ..filters.clone() }
    };
    let says = if is_full { "Show more" } else { "Look further back" };
    html! { p.more { a href=(onward.address("/record")) data-in-place { (says) } } }
}

fn take_along(filters: &Filters) -> Markup {
    let file = Filters { rows: String::new(), cursor: String::new(), ..filters.clone() }.address("/record/events.jsonl");
    html! {
        footer.lead.meta {
            a href=(file) download="events.jsonl" { @if filters.are_set() { "Download what fits" } @else { "Download all events" } }
            " as JSON, one event in a line. The bundle that can be verified on any other machine is written by " code { "deskmate audit export record.jsonl" } "."
        }
    }
}

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<JobId>,
}

#[derive(Deserialize)]
struct JobId {
    job: String,
}

/// The newest verification, as `desk_job_get` tells of it.
#[derive(Deserialize)]
struct Verification {
    job: String,
    state: String,
    created_at: String,
    finished_at: Option<String>,
    progress: Option<Progress>,
    error: Option<String>,
    result: Option<Report>,
}

#[derive(Deserialize)]
struct Progress {
    percent: Option<u8>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Report {
    sound: bool,
    events: u64,
    root: String,
    findings: Vec<Finding>,
    /// Whether checkpoints that were kept elsewhere were there to compare with.
    checkpoints_elsewhere: Option<String>,
}

#[derive(Deserialize)]
struct Finding {
    seq: Option<u64>,
    what: String,
}

async fn verification(visit: &Visit) -> Result<Option<Verification>, Fault> {
    let Jobs { jobs } = visit.ask("desk_job_list", json!({ "kind": "record.verify", "limit": 1 })).await?;
    let Some(newest) = jobs.first() else { return Ok(None) };
    Ok(Some(visit.ask("desk_job_get", json!({ "job": newest.job })).await?))
}

/// How the record stands, and the button that has it derived again.
fn verified(verification: Option<&Verification>) -> Markup {
    let is_under_way = verification.is_some_and(|job| matches!(job.state.as_str(), "waiting" | "running"));
    html! {
        section.verify.lead id="verification" aria-label="Verification" aria-live="polite" data-again[is_under_way] {
            @match verification {
                None => { p { "Nobody has verified this record lately." } }
                Some(job) if is_under_way => { (under_way(job)) }
                Some(Verification { result: Some(report), finished_at, job, .. }) => { (reported(report, finished_at.as_deref().unwrap_or_default(), job)) }
                Some(job) => { p { (badge(Tone::of_state(&job.state), &job.state)) " The verification of " (time(&job.created_at)) " has no result" @if let Some(error) = &job.error { ": " (said(error)) } "." } }
            }
            @if !is_under_way { form data-call="desk_record_verify" data-done="Verifying the record" { button.quiet { "Verify now" } } }
        }
    }
}

fn under_way(job: &Verification) -> Markup {
    let percent = job.progress.as_ref().and_then(|progress| progress.percent);
    let text = job.progress.as_ref().and_then(|progress| progress.text.as_deref()).unwrap_or("It begins in a moment.");
    html! {
        p { label for="verify-progress" { "Verifying" } progress id="verify-progress" max="100" value=(percent.unwrap_or(0)) {} " " (said(text)) }
    }
}

fn reported(report: &Report, at: &str, job: &str) -> Markup {
    html! {
        p {
            @if report.sound { (badge(Tone::Good, "sound")) " Every event fits." } @else { (badge(Tone::Alarm, "not sound")) " Something was changed behind the desk's back." }
            " " (report.events) " events verified " (time(at)) ", root " code title=(report.root) { (short(&report.root)) } " · "
            a href=(super::case::address("job", job)) { "the run" }
        }
        @if report.checkpoints_elsewhere.as_deref() == Some("not_found") {
            p { (badge(Tone::Warning, "checkpoints not found")) " The file to which checkpoints are copied cannot be read here, so what was cut off and an older copy do not show." }
        }
        @if !report.findings.is_empty() {
            ul.findings {
                @for finding in &report.findings {
                    li { @if let Some(seq) = finding.seq { a href={ "/record/" (seq) } { "event " (seq) } ": " } (said(&finding.what)) }
                }
            }
        }
    }
}

/// The events that fit as a file, page by page: a long record takes time and no memory. A failure on the way breaks the
/// download off, so that half a file is not taken for a whole one.
async fn download(visit: Visit, Query(filters): Query<Filters>) -> Result<Response, Fault> {
    let narrowing = filters.input(&visit.people().await?);
    let mut page: List<Value> = visit.ask("desk_record_list", page_of(&narrowing, 200, None)).await?;
    let (sender, pages) = mpsc::channel::<Result<Bytes, String>>(WAITING_MAX);
    tokio::spawn(async move {
        loop {
            let lines: Vec<String> = page.events.iter().map(Value::to_string).chain([String::new()]).collect();
            if sender.send(Ok(Bytes::from(lines.join("\n")))).await.is_err() {
                return;
            }
            let Some(next) = page.next_cursor else { return };
            match visit.ask("desk_record_list", page_of(&narrowing, 200, Some(&next))).await {
                Ok(further) => page = further,
                Err(fault) => return drop(sender.send(Err(fault.message().to_owned())).await),
            }
        }
    });
    let headers = [(CONTENT_TYPE, "application/jsonl; charset=utf-8"), (CONTENT_DISPOSITION, "attachment; filename=\"events.jsonl\"")];
    Ok((headers, Body::from_stream(ReceiverStream::new(pages))).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(state: &str, progress: Value) -> Verification {
        serde_json::from_value(json!({ "job": "j1", "state": state, "created_at": "2026-11-16T09:30:00Z", "progress": progress })).unwrap()
    }

    #[test]
    fn a_verification_that_goes_on_shows_how_far_it_is() {
        let html = verified(Some(&job("running", json!({ "percent": 40, "text": "event 400 of 1000" })))).into_string();
        assert!(html.contains("max=\"100\" value=\"40\"") && html.contains("event 400 of 1000"), "{html}");
        assert!(html.contains("data-again") && !html.contains("Verify now"), "it is looked at again until it ends: {html}");
        let html = verified(Some(&job("waiting", Value::Null))).into_string();
        assert!(html.contains("value=\"0\"") && html.contains("It begins in a moment."), "{html}");
        let html = verified(Some(&job("failed", Value::Null))).into_string();
        assert!(!html.contains("<progress") && !html.contains("data-again") && html.contains("Verify now"), "{html}");
    }
}
