//! Editing what is in force. The page holds the text; each time it rests, this judges the draft: what is wrong with it,
//! what it would change, how its cases come out, and which past answers would have been others.

use axum::extract::Query;
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::shell::{self, Page, Place};
use super::super::ui::{Tone, badge, part, said, time};
use super::super::visit::{Fault, Visit};
use super::{Whole, counted, text};

/// How many past acts a draft is tried on at first, and when somebody asks for more.
const ACTS: usize = 200;
const ACTS_MAX: usize = 5_000;
/// How many differing answers are listed.
const LISTED: usize = 100;

const EXAMPLE: &str = r#"policies:
  - id: crm-write
    description: What agents may change in the CRM
    rules:
      - { field: amount, constraint: value_range, min: 0, max: 500000, reason: "Deals above 500,000 are made by people" }
      - { name: no_mail_at_night, when: time.hour < 6, effect: require_approval, message: Mails at night are looked at first }
    tests:
      - { name: a large one is denied, act: { arguments: { amount: 750000 } }, mode: deny }
mappings:
  - { agent_id: "*", domain: crm.*, policy_id: crm-write }
"#;

pub(super) async fn serve(visit: Visit) -> Result<Response, Fault> {
    let whole: Whole = visit.ask("desk_policy_get", json!({})).await?;
    let document = text::yaml(&whole.body);
    let is_owner = visit.you.role == "owner";
    let body = html! {
        div.wide {
            p { a href="/policies" { "All policies" } }
            h1 { "Edit what is in force" }
            p.hint { "A section that you leave out stays as it is; write " code { "mappings: []" } " to empty one. The file " code { "deskmate.yaml" } " is not touched by this, and comments are not kept." }
            div.editing {
                form id="edit" data-call="desk_policy_apply" data-done="In force" data-draft="/policies/draft" data-rulebook=(whole.digest) {
                    input type="hidden" name="expected_rulebook" value=(whole.digest);
                    label for="document" { "The policies, mappings and settings" }
                    textarea id="document" name="document" data-as="text" rows="26" spellcheck="false" autocapitalize="off" wrap="off" aria-describedby="draft" { "\n" (document) }
                    div.row {
                        @if is_owner { button id="apply" disabled { "Put in force" } }
                        button.quiet type="button" data-reset-draft { "Back to what is in force" }
                    }
                    @if is_owner { p.hint { "You put it in force as an owner who shows presence, also where it loosens something. What the file says at the start is judged apart: what loosens there becomes a request." } }
                    @else { p.hint { "Only an owner puts it in force; you can try what it would do." } }
                }
                section.card.judged id="draft" aria-live="polite" aria-label="What the draft would do" data-keep { p.hint { "The draft is being read." } }
            }
            details.card.fold id="example" { summary { "An example to begin with" } pre.block tabindex="0" { (EXAMPLE) } }
        }
    };
    shell::show(&visit, Page { title: "Edit policies", place: Place::Policies, topics: "policy mapping setting rulebook", body }).await
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Address {
    acts: String,
}

/// What `desk_policy_check` answers.
#[derive(Deserialize)]
struct Checked {
    ok: bool,
    problems: Vec<Problem>,
    difference: Vec<String>,
    loosens: bool,
}

#[derive(Deserialize)]
struct Problem {
    line: u64,
    column: u64,
    path: String,
    message: String,
}

/// What `desk_policy_test` answers.
#[derive(Deserialize)]
struct Tested {
    passed: usize,
    failed: usize,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    policy: String,
    name: String,
    passed: bool,
    difference: Option<String>,
}

/// What `desk_policy_simulate` answers.
#[derive(Default, Deserialize)]
struct Simulated {
    looked_at: usize,
    same: usize,
    stricter: usize,
    looser: usize,
    erased: usize,
    without_counters: usize,
    differing: Vec<Differing>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Differing {
    request: Option<String>,
    at: String,
    agent: String,
    domain: String,
    then: String,
    now: String,
    hits: Vec<String>,
    why: String,
}

/// Judges a draft. The answer is a part of the page; `data-state` tells the script whether it can be put in force.
pub(super) async fn judge(visit: Visit, Query(address): Query<Address>, document: String) -> Response {
    let acts = address.acts.parse().unwrap_or(ACTS).clamp(1, ACTS_MAX);
    let judged = match judged(&visit, &document, acts).await {
        Ok(judged) => judged,
        Err(fault) => html! { div data-state="wrong" { p role="alert" { (said(fault.message())) } } },
    };
    Html(judged.into_string()).into_response()
}

async fn judged(visit: &Visit, document: &str, acts: usize) -> Result<Markup, Fault> {
    let checked: Checked = visit.ask("desk_policy_check", json!({ "document": document })).await?;
    if !checked.ok {
        return Ok(html! { div data-state="wrong" { (problems(&checked.problems)) } });
    }
    let tested: Tested = visit.ask("desk_policy_test", json!({ "document": document })).await?;
    if checked.difference.is_empty() {
        return Ok(html! { div data-state="same" { p { (badge(Tone::Quiet, "the same")) " This is what is in force." } (cases(&tested)) } });
    }
    let simulated = simulate(visit, document, acts).await?;
    let state = if checked.loosens { "loosens" } else { "tightens" };
    Ok(html! {
        div data-state=(state) {
            p {
                @if checked.loosens { (badge(Tone::Warning, "loosens")) " Some of this loosens, or may loosen, what agents may do." }
                @else { (badge(Tone::Good, "only tightens")) " Nothing of this gives agents more than they have." }
            }
            (part("What changes", difference(&checked.difference)))
            (cases(&tested))
            (part("On past decisions", past(&simulated)))
        }
    })
}

/// Every problem leads to its place in the text.
fn problems(problems: &[Problem]) -> Markup {
    html! {
        p { (badge(Tone::Alarm, &counted(problems.len(), "problem"))) " It cannot be put in force like this." }
        ol.problems {
            @for problem in problems {
                li {
                    @if problem.line > 0 { button.quiet type="button" data-line=(problem.line) data-column=(problem.column) { "Line " (problem.line) ", column " (problem.column) } " " }
                    (said(&problem.message))
                    @if !problem.path.is_empty() { span.meta { " " (said(&problem.path)) } }
                }
            }
        }
    }
}

/// Lines that begin with a sign are pieces; those below them, further in, say what differs inside.
fn difference(lines: &[String]) -> Markup {
    html! {
        pre.block.lines tabindex="0" {
            @for line in lines {
                @let text = crate::visible::visible(line);
                @match line.trim_start().chars().next() {
                    Some('+') => { ins { (text) "\n" } }
                    Some('-') => { del { (text) "\n" } }
                    _ => { span { (text) "\n" } }
                }
            }
        }
    }
}

fn cases(tested: &Tested) -> Markup {
    if tested.cases.is_empty() {
        return Markup::default();
    }
    part(
        "Cases kept beside it",
        html! {
            p {
                @if tested.failed > 0 { (badge(Tone::Alarm, &format!("{} failed", tested.failed))) " " }
                (badge(Tone::Good, &format!("{} passed", tested.passed)))
            }
            @if tested.failed > 0 {
                ul { @for case in tested.cases.iter().filter(|case| !case.passed) { li { strong { (said(&case.name)) } " of " (said(&case.policy)) ": " (said(case.difference.as_deref().unwrap_or_default())) } } }
            }
        },
    )
}

/// Replays the draft over as many past acts as are wanted, from as many pages of the operation as that takes.
async fn simulate(visit: &Visit, document: &str, acts: usize) -> Result<Simulated, Fault> {
    let mut all = Simulated::default();
    let mut looked = 0;
    loop {
        let mut input = json!({ "document": document, "limit": (acts - looked).min(200) });
        if let (Some(cursor), Some(fields)) = (all.next_cursor.take(), input.as_object_mut()) {
            fields.insert("cursor".to_owned(), Value::from(cursor));
        }
        let page: Simulated = visit.ask("desk_policy_simulate", input).await?;
        looked += 200;
        all.looked_at += page.looked_at;
        all.same += page.same;
        all.stricter += page.stricter;
        all.looser += page.looser;
        all.erased += page.erased;
        all.without_counters += page.without_counters;
        all.differing.extend(page.differing);
        all.next_cursor = page.next_cursor;
        if all.next_cursor.is_none() || looked >= acts {
            return Ok(all);
        }
    }
}

fn past(simulated: &Simulated) -> Markup {
    let changed = simulated.differing.len();
    html! {
        p id="simulated" {
            @if simulated.looked_at == 0 { "There is no past decision to try it on." }
            @else {
                "Of " (counted(simulated.looked_at, "past act")) ", "
                (badge(Tone::Good, &format!("{} stricter", simulated.stricter))) " "
                (badge(if simulated.looser > 0 { Tone::Warning } else { Tone::Quiet }, &format!("{} looser", simulated.looser))) " "
                (badge(Tone::Quiet, &format!("{} the same", simulated.same)))
                @if simulated.erased > 0 { " " (badge(Tone::Quiet, &format!("{} erased", simulated.erased))) }
            }
        }
        @if changed > 0 {
            table.stack {
                thead { tr { th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "Then" } th scope="col" { "With the draft" } th scope="col" { "Why" } } }
                tbody {
                    @for one in simulated.differing.iter().take(LISTED) {
                        tr {
                            th scope="row" { @match &one.request { Some(id) => { a href={ "/requests/" (id) } { (time(&one.at)) } } None => { (time(&one.at)) } } }
                            td data-label="Who" { (said(&one.agent)) " in " (said(&one.domain)) }
                            td data-label="Then" { (badge(Tone::of_state(&one.then), &one.then)) }
                            td data-label="With the draft" { (badge(Tone::of_state(&one.now), &one.now)) }
                            td data-label="Why" { (said(&one.why)) @if !one.hits.is_empty() { span.meta { " " (said(&one.hits.join(", "))) } } }
                        }
                    }
                }
            }
        }
        @if simulated.without_counters > 0 {
            p.hint { (simulated.without_counters) " were tried as if nothing had been used up: the draft asks how much was, and no rule asked for it then." }
        }
        @if changed > LISTED { p.hint { "and " (changed - LISTED) " more" } }
        @if simulated.next_cursor.is_some() { button.quiet type="button" data-acts=(ACTS_MAX) { "Look further back" } }
    }
}
