//! Compliance: how an agent stands against each framework, and for each control what shows it, with ways to the events and to the reports.

use axum::Router;
use axum::extract::{Path, Query};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use data_encoding::BASE64;
use deskmate_core::compliance::{Checked, ControlOut, Counts, Report, Status, Verdict};
use deskmate_core::{Code, Error};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::super::Shared;
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, empty, part, plain, said, segment, time, words};
use super::visit::{Fault, People, Visit};

/// What makes these pages out of date: another look costs, so not everything that happens does.
const TOPICS: &str = "rulebook agent person desk";
/// The forms of a report, with what they are called.
const FORMS: [(&str, &str); 7] =
    [("html", "HTML"), ("pdf", "PDF"), ("csv", "CSV"), ("json", "JSON"), ("oscal", "OSCAL"), ("markdown", "Markdown"), ("bundle", "Bundle with proofs")];

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/compliance", get(serve)).route("/compliance/report", get(download)).route("/compliance/{framework}", get(one))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Address {
    agent: String,
}

#[derive(Deserialize)]
struct Agents {
    agents: Vec<Agent>,
}

#[derive(Deserialize)]
struct Agent {
    agent: String,
}

#[derive(Deserialize)]
struct MadeAgents {
    agents: Vec<MadeAgent>,
}

#[derive(Deserialize)]
struct MadeAgent {
    name: String,
}

#[derive(Deserialize)]
struct Frameworks {
    frameworks: Vec<Named>,
    #[serde(default)]
    problems: Vec<String>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
    title: String,
    edition: String,
}

/// What `agents_check_compliance` answers.
#[derive(Deserialize)]
struct Compliance {
    verdict: Verdict,
    score: Option<u8>,
    counts: Counts,
    report: Option<Report>,
}

async fn serve(visit: Visit, Query(address): Query<Address>) -> Result<Response, Fault> {
    if address.agent.is_empty() {
        return agents(&visit).await;
    }
    let known: Frameworks = visit.ask("agents_list_frameworks", json!({})).await?;
    let mut rows = Vec::new();
    for framework in &known.frameworks {
        let stands: Compliance =
            visit.ask("agents_check_compliance", json!({ "agentId": address.agent, "framework": framework.id, "generateReport": false })).await?;
        rows.push((framework, stands));
    }
    let body = html! {
        div.wide {
            p { a href="/compliance" data-in-place data-key="Escape" { "All agents" } " · " a href={ "/agents/" (segment(&address.agent)) } { "The agent " (said(&address.agent)) } }
            h1 { "Compliance of " (said(&address.agent)) }
            (notice())
            @for problem in &known.problems { p.banner { "A framework was not taken in: " (said(problem)) } }
            ol.rows.card id="frameworks" {
                @for (framework, stands) in &rows {
                    li id={ "framework-" (framework.id) } {
                        a href=(page(&framework.id, &address.agent)) data-row {
                            span.title { (said(&framework.title)) }
                            span.badges { (verdict(stands.verdict)) @if let Some(score) = stands.score { span.badge { (score) " %" } } }
                            span.meta { (counts(stands.counts)) " · " (said(&framework.edition)) }
                        }
                    }
                }
            }
        }
    };
    shell::show(&visit, Page { title: "Compliance", place: Place::Agents, topics: TOPICS, body }).await
}

/// Whom to look at.
async fn agents(visit: &Visit) -> Result<Response, Fault> {
    let registered: Agents = visit.ask("desk_agent_list", json!({ "unregistered": true, "limit": 200 })).await?;
    let made: MadeAgents = visit.ask("agents_list_agents", json!({ "limit": 200 })).await?;
    let mut names: Vec<String> = registered.agents.into_iter().map(|agent| agent.agent).chain(made.agents.into_iter().map(|agent| agent.name)).collect();
    names.sort_unstable();
    names.dedup();
    let body = html! {
        div.wide {
            h1 { "Compliance" }
            (notice())
            @if names.is_empty() {
                (empty("No agent yet", html! { p { "What can be shown is shown of an agent. " a href="/agents" { "Agents" } } }))
            } @else {
                ol.rows.card id="agents" {
                    @for name in &names { li { a href=(ui::address("/compliance", &[("agent", name)])) data-row { span.title { (said(name)) } } } }
                }
            }
        }
    };
    shell::show(visit, Page { title: "Compliance", place: Place::Agents, topics: "agent", body }).await
}

async fn one(visit: Visit, Path(framework): Path<String>, Query(address): Query<Address>) -> Result<Response, Fault> {
    let stands: Compliance = visit.ask("agents_check_compliance", json!({ "agentId": address.agent, "framework": framework })).await?;
    let report = stands.report.ok_or_else(|| Error::new(Code::Internal, "the report is missing"))?;
    let people = visit.people().await?;
    let body = html! {
        div.wide {
            p { a href=(ui::address("/compliance", &[("agent", &report.agent)])) data-in-place data-key="Escape" { "All frameworks" } }
            header.head { h1 { (said(&report.title)) ": " (said(&report.agent)) } (verdict(report.verdict)) @if let Some(score) = report.score { span.badge id="score" { (score) " %" } } }
            p { (counts(report.counts)) "." }
            p.hint { (said(&report.notice)) }
            p.meta { (said(&report.edition)) " · events since " (time(&report.since)) " · " (report.looked_at) " events were looked at" }
            p id="downloads" { "Get it as "
                @for (number, (form, name)) in FORMS.iter().enumerate() { @if number > 0 { ", " } a href=(ui::address("/compliance/report", &[("agent", &report.agent), ("framework", &report.framework), ("format", form)])) download { (name) } }
                "."
            }
            @for control in &report.controls { (shown(&people, control)) }
            (part("What no program can attest", html! { ul { @for cannot in &report.cannot { li { (said(cannot)) } } } }))
        }
    };
    let title = format!("{}: {}", report.title, report.agent);
    shell::show(&visit, Page { title: &title, place: Place::Agents, topics: TOPICS, body }).await
}

fn shown(people: &People, control: &ControlOut) -> Markup {
    html! {
        details.card.fold id={ "control-" (anchor(&control.id)) } open[control.status == Status::NotMet] {
            summary { strong { (said(&control.id)) } " " (said(&control.title)) " " (status(control.status)) }
            (words(&control.asks))
            ul {
                @for check in &control.checks { li { (checked(people, check)) } }
                @if let Some(cannot) = &control.cannot { li { "Cannot be shown from here: " (said(cannot)) } }
                @if let Some(advice) = &control.advice { li { "What to do: " (said(advice)) } }
            }
        }
    }
}

fn checked(people: &People, check: &Checked) -> Markup {
    html! {
        (status(check.status)) " " (said(&check.shows)) ": " (said(&check.why))
        @if check.looked_at > 0 { span.meta { " (" (check.looked_at) " events looked at" @if check.cut { ", and there are more" } ")" } }
        ul {
            @for setting in &check.settings { li { code { (setting.name) } " " (said(&setting.about)) @if let Some(value) = &setting.value { ": " code { (plain(value)) } } } }
            @for probe in &check.probes {
                li { "Asked " (said(&probe.act)) " in " (said(&probe.domain)) ": " (badge(if probe.good { Tone::Good } else { Tone::Alarm }, &probe.answer)) @for rule in &probe.rules { " " code { (rule) } } }
            }
            @for event in &check.events {
                li {
                    a href={ "/record/" (event.seq) } { "Event " (event.seq) } " " code { (event.kind) } " of " (said(&event.subject)) " by " (said(people.name(&event.actor))) ", " (time(&event.at))
                    @if event.against { " " (badge(Tone::Alarm, "against it")) }
                }
            }
        }
    }
}

fn status(status: Status) -> Markup {
    let tone = match status {
        Status::Met => Tone::Good,
        Status::Partly => Tone::Warning,
        Status::NotMet => Tone::Alarm,
        Status::CannotBeShown => Tone::Quiet,
    };
    badge(tone, status.words())
}

fn verdict(verdict: Verdict) -> Markup {
    match verdict {
        Verdict::Shown => badge(Tone::Good, "all that can be shown is met"),
        Verdict::Gaps => badge(Tone::Warning, "gaps"),
        Verdict::NothingShown => badge(Tone::Quiet, "nothing can be shown"),
    }
}

fn counts(counts: Counts) -> String {
    format!("{} met, {} partly, {} not met, {} cannot be shown from here", counts.met, counts.partly, counts.not_met, counts.cannot_be_shown)
}

fn notice() -> Markup {
    html! { p.hint { "What the record and the settings of this desk show about an agent. It makes nobody compliant: people, contracts, premises and other systems are not seen from here." } }
}

/// A control's name as part of an address within the page.
fn anchor(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
}

/// The page of a framework and an agent.
fn page(framework: &str, agent: &str) -> String {
    ui::address(&format!("/compliance/{}", segment(framework)), &[("agent", agent)])
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wanted {
    agent: String,
    framework: String,
    format: String,
}

/// What the operations for reports answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    file_name: String,
    media_type: String,
    content: Option<String>,
    base64: Option<String>,
}

async fn download(visit: Visit, Query(wanted): Query<Wanted>) -> Result<Response, Fault> {
    let file: File = if wanted.format == "pdf" {
        visit.ask("agents_compliance_pdf", json!({ "agentId": wanted.agent, "framework": wanted.framework })).await?
    } else {
        visit.ask("agents_compliance_report", json!({ "agentId": wanted.agent, "framework": wanted.framework, "format": wanted.format })).await?
    };
    let broken = || Error::new(Code::Internal, "the report cannot be sent");
    let bytes = match (file.content, file.base64) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(base64)) => BASE64.decode(base64.as_bytes()).map_err(|_| broken())?,
        (None, None) => return Err(broken().into()),
    };
    let header = |text: String| HeaderValue::from_str(&text).map_err(|_| broken());
    let headers: [(HeaderName, HeaderValue); 2] =
        [(CONTENT_TYPE, header(file.media_type)?), (CONTENT_DISPOSITION, header(format!("attachment; filename=\"{}\"", file.file_name))?)];
    Ok((headers, bytes).into_response())
}
