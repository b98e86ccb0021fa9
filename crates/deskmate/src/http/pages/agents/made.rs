//! An agent that the desk runs: how it stands, what it is, what holds it, when it runs, what its runs used, and what waits for people.

use axum::response::Response;
use deskmate_core::agents::{AgentOut, Metrics, Runner, Status};
use deskmate_core::parse_time;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::shell::{self, Page, Place};
use super::super::ui::{self, Tone, badge, fact, more, part, said, spaced, time, words};
use super::super::visit::{Fault, People, Visit};
use super::{acts, address_of, change, held, nodes, one, token};

/// How many runs a page begins with, how many more it shows at once, and how many it shows at most.
const RUNS: usize = 10;
const RUNS_MAX: usize = 200;
/// How many requests that wait are looked at.
const WAITING: usize = 20;

/// What makes the page out of date.
const TOPICS: &str = "agent run node request rulebook policy trust pause";

/// What the address of the page says.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Shown {
    runs: String,
}

fn status(made: &AgentOut) -> Markup {
    let tone = match made.status {
        Status::Deployed => Tone::Good,
        Status::Paused => Tone::Warning,
        Status::Draft | Status::Stopped => Tone::Quiet,
    };
    badge(tone, made.status.name())
}

/// What `agents_get_agent_status` answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Standing {
    #[serde(flatten)]
    pub(super) made: AgentOut,
    metrics: Option<Metrics>,
    last_test: Option<Tested>,
    pub(super) conflicts: Option<Vec<held::Conflict>>,
}

#[derive(Deserialize)]
struct Tested {
    passed: bool,
    strict: bool,
    current: bool,
    at: String,
}

/// A run, as lists tell it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    run_id: String,
    state: String,
    cause: String,
    calls: i64,
    created_at: String,
    started_at: Option<String>,
    finished_at: Option<String>,
    node: Option<String>,
    waits_for: Option<String>,
    error: Option<String>,
}

/// A request that waits, with how many have approved it.
#[derive(Deserialize)]
struct Waiting {
    request: String,
    title: Option<String>,
    kind: String,
    risk: String,
    state: String,
    quorum: i64,
    #[serde(default)]
    approvals: i64,
    expires_at: String,
}

pub(super) async fn show(visit: Visit, standing: Standing, shown: &Shown) -> Result<Response, Fault> {
    let made = &standing.made;
    let rows = shown.runs.parse().unwrap_or(RUNS).clamp(1, RUNS_MAX);
    let (runs, more_runs) = visit.gather::<Run>("agents_list_runs", "runs", json!({ "agentId": made.name }), rows).await?;
    let waiting = waiting(&visit, made).await?;
    let policies = held::policies(&visit, &standing).await?;
    let nodes = nodes::ask(&visit).await?;
    let denied = super::paused(&visit).await?.contains(&made.name);
    let (people, known) = (visit.people().await?, one::learn(&visit, &made.name).await?);
    let body = html! {
        (token())
        div.wide {
            p { a href="/agents" data-in-place data-key="Escape" { "All agents" } }
            header.head {
                h1 { (said(&made.name)) }
                (status(made))
                @if denied { (badge(Tone::Alarm, "all its acts are denied")) }
                @if made.definition.runner.is_program() { (badge(Tone::Warning, "runs a program")) }
            }
            (words(&made.definition.task))
            (about(&people, made))
            (acts::of(&visit, made, denied, &nodes))
            div.answer.pad id="said" role="status" data-keep {}
            (change::needs(&visit, made))
            (waits(&waiting))
            (what(made))
            (policies)
            (when(made))
            (nodes::of(made, &nodes))
            (used(&standing, &runs))
            (past(made, &runs, rows, more_runs))
            (one::record_of(&visit, &made.name, &known))
        }
    };
    shell::show(&visit, Page { title: &made.name, place: Place::Agents, topics: TOPICS, body }).await
}

/// It in the list of agents.
pub(super) fn line(made: &AgentOut, denied: bool) -> Markup {
    let needs = made.definition.open_needs().count();
    html! {
        li id={ "made-" (made.name) } {
            a href=(address_of(&made.name)) data-row {
                span.title { (said(&made.name)) }
                span.meta.note { (said(&made.definition.task)) }
                span.badges {
                    (status(made))
                    @if needs > 0 { (badge(Tone::Warning, "needs something")) }
                    @if denied { (badge(Tone::Alarm, "all its acts are denied")) }
                    @if made.definition.runner.is_program() { (badge(Tone::Warning, "runs a program")) }
                }
                span.meta {
                    @match &made.schedule_words { Some(words) => { (said(words)) } None => { "runs when somebody starts it" } }
                    @if let Some(next) = made.next_runs.first() { " · next " (time(next)) }
                }
            }
        }
    }
}

fn about(people: &People, made: &AgentOut) -> Markup {
    html! {
        p.meta {
            "Made by " (said(people.name(&made.created_by))) " " (time(&made.created_at)) " · version " (made.version)
            @if let Some(template) = &made.definition.template { " · of the template " (said(template)) }
            @if let Some(at) = &made.deployed_at { " · last deployed " (time(at)) }
        }
    }
}

/// What waits for people: its own acts, and its deployment.
async fn waiting(visit: &Visit, made: &AgentOut) -> Result<Vec<Waiting>, Fault> {
    let (own, _) = visit.gather::<Waiting>("desk_request_list", "requests", json!({ "requester": made.name, "state": "pending" }), WAITING).await?;
    let mut found = Vec::new();
    let deployment = made.request.iter().filter(|_| !made.is_fixed()).cloned();
    for id in deployment.chain(own.into_iter().map(|own| own.request)) {
        // Only the request itself says how many have approved.
        let one: Waiting = visit.ask("desk_request_get", json!({ "request": id })).await?;
        if one.state == "pending" && found.iter().all(|known: &Waiting| known.request != one.request) {
            found.push(one);
        }
    }
    Ok(found)
}

fn waits(waiting: &[Waiting]) -> Markup {
    if waiting.is_empty() {
        return Markup::default();
    }
    part(
        "What waits for people",
        html! {
            ul.similar id="waiting" {
                @for one in waiting {
                    li id={ "waits-" (one.request) } {
                        (badge(Tone::of_risk(&one.risk), &format!("risk {}", one.risk))) " "
                        a href={ "/requests/" (one.request) } { (said(one.title.as_deref().unwrap_or("erased"))) }
                        span.meta { " " (spaced(&one.kind)) ", " (quorum(one.approvals, one.quorum)) ", until " (time(&one.expires_at)) }
                    }
                }
            }
        },
    )
}

/// How many have approved, and how many are missing.
pub(super) fn quorum(approvals: i64, quorum: i64) -> String {
    let missing = quorum.saturating_sub(approvals).max(0);
    if quorum <= 1 { "one person approves it".to_owned() } else { format!("{approvals} of {quorum} have approved, {missing} missing") }
}

/// What it does when it runs.
fn what(made: &AgentOut) -> Markup {
    let definition = &made.definition;
    part(
        "What it does",
        html! {
            @match &definition.runner {
                Runner::Steps { steps } => {
                    @if steps.is_empty() { p.hint { "It has no steps yet, so there is nothing to run. Give it some with “Change”." } }
                    @else { (in_words(&made.step_words, steps.iter().map(|step| step.id.as_str()))) }
                    @if !steps.is_empty() { details id="steps-json" { summary { "The steps themselves" } (ui::value(&json!(steps))) } }
                }
                Runner::Command { command, files, given, test, .. } => {
                    p { "A program of the machine, confined: " code { (said(&command.join(" "))) } }
                    @if !test.is_empty() { p.meta { "Its test: " code { (said(&test.join(" "))) } } }
                    (program(&json!(given), files.iter()))
                }
                Runner::Cli { client, prompt, model, files, given, .. } => {
                    p { "A client of a model, without a terminal: " code { (client.program()) } @if let Some(model) = model { " with " code { (said(model)) } } "." }
                    (words(prompt))
                    (program(&json!(given), files.iter()))
                }
            }
            @if !definition.params.is_empty() { details id="params-json" { summary { "Its parameters" } (ui::value(&Value::Object(definition.params.clone()))) } }
            @if definition.may_start { p.hint { "Its runs may start other agents." } }
            @if definition.approval_required { p.hint { "An agent that deploys it waits for a person, whatever the trust." } }
        },
    )
}

/// Steps in words, each with its name.
pub(super) fn in_words<'s>(words: &[String], ids: impl Iterator<Item = &'s str>) -> Markup {
    html! { ol.steps { @for (said_so, id) in words.iter().zip(ids) { li { (said(said_so)) " " code { (said(id)) } } } } }
}

fn program<'f>(given: &Value, files: impl Iterator<Item = (&'f String, &'f String)>) -> Markup {
    let files: Vec<_> = files.collect();
    html! {
        @if given.as_object().is_some_and(|given| !given.is_empty()) { details id="given" { summary { "What it is given" } (ui::value(given)) } }
        @for (number, (name, text)) in files.iter().enumerate() { details id={ "file-" (number) } { summary { "File " (said(name)) } (ui::block(text)) } }
    }
}

fn when(made: &AgentOut) -> Markup {
    part(
        "When it runs",
        html! {
            @match &made.schedule_words {
                None => { p { "When somebody starts it." } }
                Some(words) => {
                    p { (said(words)) }
                    @if made.next_runs.is_empty() { p.hint { "It runs by itself once it is deployed." } }
                    @else { p.meta { "Next, in your time:" } ul.plain id="next" { @for at in &made.next_runs { li { (time(at)) } } } }
                }
            }
        },
    )
}

/// What a run may use up, and what the last ones did.
fn used(standing: &Standing, runs: &[Run]) -> Markup {
    let budget = &standing.made.definition.budget;
    let last = runs.iter().find(|run| run.started_at.is_some());
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| format!("{} MB", bytes.div_ceil(1_000_000)));
    part(
        "Budget of a run",
        html! {
            dl.facts {
                (fact("Seconds", html! { (budget.seconds) @if let Some(took) = last.and_then(took) { span.meta { " · last " (took) } } }))
                (fact("Calls", html! { (budget.calls) @if let Some(run) = last { span.meta { " · last " (run.calls) } } }))
                (fact("Bytes of log", html! { (budget.log_bytes) }))
                @if let Some(disk) = bytes(budget.disk_bytes) { (fact("Disk", html! { (disk) })) }
                @if let Some(memory) = bytes(budget.memory_bytes) { (fact("Memory", html! { (memory) })) }
                @if let Some(processes) = budget.processes { (fact("Processes", html! { (processes) })) }
                @if let Some(cost) = budget.cost { (fact(change::cost_of(&standing.made.definition.runner), html! { (cost) })) }
            }
            @if let Some(metrics) = &standing.metrics {
                @if metrics.runs > 0 {
                    p.meta {
                        "In the last 30 days: " (metrics.runs) " runs, " (metrics.done) " done, " (metrics.failed) " failed, " (metrics.stopped) " stopped, "
                        (metrics.ambiguous) " of which nobody knows, " (metrics.skipped) " left out; " (metrics.calls) " calls, " (metrics.blocked) " acts denied."
                    }
                }
            }
            @if let Some(test) = &standing.last_test {
                p.meta id="tested" {
                    (badge(if test.passed { Tone::Good } else { Tone::Alarm }, if test.passed { "test passed" } else { "test failed" })) " "
                    (time(&test.at)) @if !test.strict { ", not strict" } @if !test.current { ", of what it was before" }
                }
            } @else if !standing.made.definition.runner.is_program() { p.hint { "It was not tested yet. A test runs its steps without effects." } }
        },
    )
}

/// How long a run took, for people.
fn took(run: &Run) -> Option<String> {
    let begun = parse_time("started_at", run.started_at.as_deref()?).ok()?;
    let ended = parse_time("finished_at", run.finished_at.as_deref()?).ok()?;
    Some(seconds(ended.saturating_sub(begun)))
}

/// A time in microseconds, for people.
pub(super) fn seconds(micros: i64) -> String {
    let tenths = micros.max(0) / 100_000;
    if tenths < 600 { format!("{}.{} s", tenths / 10, tenths % 10) } else { format!("{} min {} s", tenths / 600, tenths % 600 / 10) }
}

/// The tone of how a run stands.
pub(super) fn tone(state: &str) -> Tone {
    match state {
        "running" => Tone::Good,
        "queued" => Tone::Warning,
        other => Tone::of_state(other),
    }
}

/// Why a run was made, for people.
pub(super) fn cause(cause: &str) -> &str {
    match cause {
        "schedule" => "its moment had come",
        "started" => "somebody started it",
        "deployed" => "it was deployed",
        "test" => "its test was tried",
        "trial" => "tried for real",
        other => other,
    }
}

fn past(made: &AgentOut, runs: &[Run], rows: usize, more_runs: bool) -> Markup {
    html! {
        section.part id="runs" {
            h3 { "Its runs" }
            @if runs.is_empty() {
                p.hint { @if made.is_fixed() { "It did not run yet. “Run now” starts one." } @else { "It did not run yet: only what is deployed runs." } }
            } @else {
                ol.rows.card {
                    @for run in runs {
                        li id={ "run-" (run.run_id) } {
                            a href={ "/runs/" (run.run_id) } data-row {
                                span.title { "Run of " (time(run.started_at.as_deref().unwrap_or(&run.created_at))) }
                                span.badges { (badge(tone(&run.state), &run.state)) span.deadline { (cause(&run.cause)) @if let Some(took) = took(run) { " · took " (took) } " · " (run.calls) " calls" @if let Some(node) = &run.node { " · on " (said(node)) } } }
                                @if let Some(what) = &run.waits_for { span.meta.note { "Waits for " (said(what)) } }
                                @if let Some(error) = &run.error { span.meta.note { (said(error)) } }
                            }
                        }
                    }
                }
                @if more_runs && rows < RUNS_MAX { (more(&ui::address(&address_of(&made.name), &[("runs", &(rows + RUNS).to_string())]))) }
                @if more_runs && rows >= RUNS_MAX { p.hint { "There are more than are shown; " code { "agents_list_runs" } " has them all." } }
            }
        }
    }
}
