//! One plan: what it would change, step by step, how it stands, and what can be done with it.

use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::super::shell::{self, Page, Place};
use super::super::ui::{self, Tone, badge, block, part, said, short, spaced, time, words};
use super::super::visit::{Fault, Visit};
use super::jobs::{Job, progress};
use super::tree::before_and_after;
use super::{TABS, size};

/// Steps that a page shows.
const STEPS: usize = 200;
/// Steps that a request shows of its plan.
const STEPS_IN_REQUEST: usize = 50;
/// Up to so many steps show what changes in a text without being asked.
const OPEN_DIFFS: usize = 5;

/// What `workspace_get_plan` answers.
#[derive(Deserialize)]
pub(super) struct Plan {
    pub(super) plan_id: String,
    pub(super) root: String,
    pub(super) kind: String,
    state: String,
    pub(super) owner: String,
    pub(super) count: i64,
    bytes: i64,
    plan_hash: Option<String>,
    request_id: Option<String>,
    decision: Option<String>,
    job_id: Option<String>,
    applied: i64,
    skipped: i64,
    failed: i64,
    unclear: i64,
    undo_of: Option<String>,
    note: Option<String>,
    pub(super) created_at: String,
    #[serde(default)]
    reasoning: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Step {
    number: i64,
    pub(super) action: String,
    pub(super) undoes: Option<String>,
    pub(super) from: Option<String>,
    pub(super) was: Option<String>,
    pub(super) to: Option<String>,
    given: Option<Given>,
    diff: Option<String>,
    diff_bytes: Option<u64>,
    irreversible: Option<String>,
    warning: Option<String>,
    pub(super) blocked: Option<String>,
    outcome: Option<String>,
    note: Option<String>,
    ran: Option<Ran>,
}

#[derive(Deserialize)]
struct Given {
    read: Vec<String>,
    write: Vec<String>,
    timeout_seconds: u32,
}

#[derive(Deserialize)]
struct Ran {
    stdout: String,
    stdout_truncated: bool,
    stderr: String,
    stderr_truncated: bool,
    written: Vec<String>,
    removed: Vec<String>,
    all_listed: bool,
}

impl Plan {
    /// How many of its steps have ended, while it is being done.
    pub(super) fn under_way(&self) -> Option<i64> {
        (self.state == "running").then_some(self.applied + self.skipped + self.failed + self.unclear)
    }

    /// How it stands, in words at a glance.
    pub(super) fn marks(&self) -> Markup {
        html! {
            (badge(tone(&self.state), &self.state))
            @if self.state == "ready" { @if let Some(decision) = &self.decision { " " (badge(Tone::of_state(decision), decision)) } }
            @if self.state == "partly" { " " (badge(Tone::Good, &format!("{} done", self.applied))) }
            @if self.skipped > 0 { " " (badge(Tone::Warning, &format!("{} left out", self.skipped))) }
            @if self.failed > 0 { " " (badge(Tone::Alarm, &format!("{} failed", self.failed))) }
            @if self.unclear > 0 { " " (badge(Tone::Alarm, &format!("{} not known", self.unclear))) }
        }
    }
}

fn tone(state: &str) -> Tone {
    match state {
        "partly" => Tone::Warning,
        "running" => Tone::Good,
        other => Tone::of_state(other),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Shown {
    cursor: Option<String>,
}

/// A page of a plan's steps, and where the next one begins.
#[derive(Deserialize)]
struct Steps {
    steps: Vec<Step>,
    next_cursor: Option<String>,
}

impl Steps {
    /// Which of how many these are: nobody takes a part for the whole.
    fn counted(&self, all: i64) -> Markup {
        let number = |step: Option<&Step>| step.map_or(0, |step| step.number);
        let (first, last) = (number(self.steps.first()), number(self.steps.last()));
        html! {
            @if last - first + 1 < all { p.hint role="status" { "Steps " (first) " to " (last) " of " (all) "." } }
            @else { p.hint { "All " (all) @if all == 1 { " step." } @else { " steps." } } }
        }
    }
}

pub(super) async fn serve(visit: Visit, Path(id): Path<String>, Query(query): Query<Shown>) -> Result<Response, Fault> {
    let plan: Plan = visit.ask("workspace_get_plan", json!({ "plan_id": id, "limit": 1 })).await?;
    let page: Steps = visit.ask("workspace_get_plan", json!({ "plan_id": id, "limit": STEPS, "cursor": query.cursor })).await?;
    let here = format!("/workspace/plans/{}", ui::segment(&plan.plan_id));
    let people = visit.people().await?;
    let job: Option<Job> = match plan.job_id.as_ref().filter(|_| plan.state == "running") {
        Some(job) => visit.ask("desk_job_get", json!({ "job": job })).await.ok(),
        None => None,
    };
    let body = html! {
        div.alone {
            h1.unseen { "Plan" }
            (ui::tabs(&TABS, "/workspace/plans"))
            article.request id={ "plan-" (plan.plan_id) } {
                header {
                    h2 { (spaced(&plan.kind)) @if !plan.root.is_empty() { " in " (said(&plan.root)) } }
                    p.meta {
                        strong { (said(people.name(&plan.owner))) } " · " (plan.count) " steps, " (size(u64::try_from(plan.bytes).unwrap_or(0))) " · " (time(&plan.created_at))
                        " " (plan.marks())
                    }
                    @if let Some(note) = &plan.note { p.standing { (said(note)) } }
                    @if let Some(of) = &plan.undo_of { p.standing { "It takes back " a href={ "/workspace/plans/" (of) } { "another plan" } "." } }
                    @if let Some(job) = &job { (progress(job)) }
                }
                (acts(&plan))
                @if let Some(why) = &plan.reasoning { (part("Why", words(why))) }
                (part("What it changes", html! {
                    @if !page.steps.is_empty() { (page.counted(plan.count)) }
                    (steps_list(&plan.plan_id, &page.steps))
                    nav.acts aria-label="Steps" {
                        @if query.cursor.is_some() { a.button.quiet href=(here) { "The first steps" } }
                        @if let Some(cursor) = &page.next_cursor { a.button.quiet href=(ui::address(&here, &[("cursor", cursor)])) { "The next steps" } }
                    }
                }))
                (part("Before and after", before_and_after(&page.steps)))
                footer.meta {
                    a href={ "/case/plan/" (plan.plan_id) } { "Everything that happened to it" }
                    " · id " code { (short(&plan.plan_id)) }
                    @if let Some(hash) = &plan.plan_hash { " · digest " code title=(hash) { (hash.chars().take(12).collect::<String>()) } }
                }
            }
        }
    };
    let topics = format!("plan:{id} request{}", plan.job_id.as_ref().map(|job| format!(" job:{job}")).unwrap_or_default());
    shell::show(&visit, Page { title: "Plan", place: Place::Workspace, topics: &topics, body }).await
}

/// What can be done with it now.
fn acts(plan: &Plan) -> Markup {
    let hidden = html! { input type="hidden" name="plan_id" value=(plan.plan_id); };
    let decision = plan.decision.as_deref().unwrap_or_default();
    html! {
        div.acts {
            @match (plan.state.as_str(), decision) {
                ("ready", "approved") => {
                    form data-call="workspace_execute_plan" data-done="The plan is being done" data-confirm={ "Do these " (plan.count) " steps now?" } { (hidden) button { "Do it now" } }
                }
                ("ready", "pending") => {
                    @if let Some(request) = &plan.request_id { a.button href={ "/requests/" (request) } { "Decide about it" } }
                }
                ("done" | "partly" | "ambiguous", _) if !matches!(plan.kind.as_str(), "undo" | "purge" | "python") => {
                    form data-call="workspace_undo_plan" data-then="/workspace/plans/{plan_id}" { (hidden) button.quiet { "Plan to take it back" } }
                }
                ("running", _) => {
                    @if let Some(job) = &plan.job_id {
                        form data-call="desk_job_cancel" data-done="It stops after the steps under way" data-confirm="Stop after the steps that are under way? What was done stays done." { input type="hidden" name="job" value=(job); button.quiet { "Stop" } }
                    }
                }
                _ => {}
            }
        }
    }
}

impl Step {
    /// What is done, and for an undoing what of.
    fn does(&self) -> String {
        self.undoes.as_ref().map_or_else(|| self.action.clone(), |undone| format!("{} of {undone}", self.action))
    }
}

/// Where something in the trash was: an id alone says nothing.
fn was(step: &Step) -> Markup {
    html! { @if let Some(was) = &step.was { " (was " code { (said(was)) } ")" } }
}

fn steps_list(plan: &str, steps: &[Step]) -> Markup {
    html! {
        ol.steps {
            @for step in steps {
                li value=(step.number) {
                    (badge(if step.irreversible.is_some() { Tone::Alarm } else { Tone::Quiet }, &step.does())) " "
                    @if step.blocked.is_some() { (badge(Tone::Alarm, "cannot be done")) " " }
                    @if step.warning.is_some() { (badge(Tone::Warning, "warning")) " " }
                    @match (&step.from, &step.to) {
                        (Some(from), Some(to)) => { code { (said(from)) } (was(step)) " → " code { (said(to)) } }
                        (Some(path), None) | (None, Some(path)) => { code { (said(path)) } (was(step)) }
                        (None, None) => {}
                    }
                    @if let Some(outcome) = &step.outcome { " " (badge(Tone::of_state(outcome), outcome)) }
                    @if let Some(note) = &step.note { " " span.meta { (said(note)) } }
                    @for why in [&step.irreversible, &step.warning, &step.blocked].into_iter().flatten().filter(|why| step.note.as_ref() != Some(*why)) { " " span.meta { (said(why)) } }
                    @if let Some(given) = &step.given { (given_to(given)) }
                    @if let Some(diff) = &step.diff { (text_of(plan, step, diff, steps.len() <= OPEN_DIFFS)) }
                    @if let Some(ran) = &step.ran { (output(ran)) }
                }
            }
        }
    }
}

/// What a program is given: whoever approves its code approves that too.
fn given_to(given: &Given) -> Markup {
    html! {
        @for (may, folders) in [("May read", &given.read), ("May read and change", &given.write)] {
            @if !folders.is_empty() { p { (may) @for folder in folders { " " code { (said(folder)) } } } }
        }
        p {
            @if given.read.is_empty() && given.write.is_empty() { "Is given no folder. " }
            "May take " (given.timeout_seconds) @if given.timeout_seconds == 1 { " second." } @else { " seconds." }
        }
    }
}

/// The code of a program, which nobody approves without having had it before their eyes, or what changes in a text.
fn text_of(plan: &str, step: &Step, text: &str, is_open: bool) -> Markup {
    html! {
        @if let Some(all) = step.diff_bytes {
            p.hint { "The first " (size(text.len() as u64)) " of " (size(all)) " are shown here. " a href={ "/workspace/plans/" (plan) "/steps/" (step.number) } { "Read all of it" } }
        }
        @if step.action == "run" { details open { summary { "The program" } (block(text)) } } @else { details open[is_open] { summary { "What changes in it" } (text_diff(text)) } }
    }
}

/// What `workspace_read_diff` answers.
#[derive(Deserialize)]
struct DiffPage {
    diff: String,
    offset: u64,
    diff_bytes: u64,
    next_offset: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct From {
    offset: u64,
}

/// All of what one step changes in a text, page by page.
pub(super) async fn diff(visit: Visit, Path((id, number)): Path<(String, u64)>, Query(from): Query<From>) -> Result<Response, Fault> {
    let page: DiffPage = visit.ask("workspace_read_diff", json!({ "plan_id": id, "number": number, "offset": from.offset })).await?;
    let here = format!("/workspace/plans/{}/steps/{number}", ui::segment(&id));
    let end = page.offset + page.diff.len() as u64;
    let body = html! {
        div.alone {
            h1.unseen { "What a step changes" }
            (ui::tabs(&TABS, "/workspace/plans"))
            article.request {
                header {
                    h2 { "Step " (number) }
                    p.meta role="status" { "Bytes " (page.offset) " to " (end) " of " (page.diff_bytes) "." }
                }
                (lines(&page.diff, page.offset == 0))
                nav.acts aria-label="Pages" {
                    @if page.offset > 0 { a.button.quiet href=(here) { "The beginning" } }
                    @if let Some(next) = page.next_offset { a.button.quiet href=(ui::address(&here, &[("offset", &next.to_string())])) { "The next part" } }
                    a.button.quiet href={ "/workspace/plans/" (id) } { "The plan" }
                }
            }
        }
    };
    shell::show(&visit, Page { title: "What a step changes", place: Place::Workspace, topics: "", body }).await
}

/// A difference of texts, line by line.
fn text_diff(diff: &str) -> Markup {
    lines(diff, true)
}

fn lines(diff: &str, from_beginning: bool) -> Markup {
    html! {
        pre.block.changes tabindex="0" {
            // The first two lines name the file before and after.
            @for (at, line) in diff.lines().enumerate() {
                @match line.as_bytes().first().filter(|_| at > 1 || !from_beginning) {
                    Some(b'+') => ins { (said(line)) "\n" },
                    Some(b'-') => del { (said(line)) "\n" },
                    _ => { (said(line)) "\n" }
                }
            }
        }
    }
}

/// What came out of a program.
fn output(ran: &Ran) -> Markup {
    let cut = |is_cut: bool| if is_cut { ", its beginning only" } else { "" };
    html! {
        @if !ran.stdout.is_empty() { details open { summary { "What it printed" (cut(ran.stdout_truncated)) } (block(&ran.stdout)) } }
        @if !ran.stderr.is_empty() { details open { summary { "What it printed as errors" (cut(ran.stderr_truncated)) } (block(&ran.stderr)) } }
        @for (what, paths) in [("Files that it wrote", &ran.written), ("Files that it removed", &ran.removed)] {
            @if !paths.is_empty() { p.meta { (what) ": " @for path in paths { code { (said(path)) } " " } } }
        }
        @if !ran.all_listed { p.hint { "It could change more files than are compared or listed here." } }
    }
}

/// The steps of a plan, for the request that decides about it.
pub(in super::super) async fn steps_of(visit: &Visit, plan: &str) -> Markup {
    let found: Result<(Plan, Steps), Fault> = async {
        let whole: Plan = visit.ask("workspace_get_plan", json!({ "plan_id": plan, "limit": 1 })).await?;
        Ok((whole, visit.ask("workspace_get_plan", json!({ "plan_id": plan, "limit": STEPS_IN_REQUEST })).await?))
    }
    .await;
    html! {
        @match found {
            Ok((whole, page)) => {
                (page.counted(whole.count))
                (steps_list(plan, &page.steps))
                details { summary { "Before and after" } (before_and_after(&page.steps)) }
                p { a href={ "/workspace/plans/" (plan) } { @if page.next_cursor.is_some() { "All " (whole.count) " steps, and what came of them" } @else { "The plan, and what came of it" } } }
            }
            Err(fault) => { p.hint { (said(fault.message())) } }
        }
    }
}
