//! What the desk would make of a sentence, as fields that can be changed. What was read is marked `data-read`, which the script does
//! not send; once somebody changes a field it is theirs, and counts more than the sentence.

use deskmate_core::agents::{Definition, Need};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::ui::{Tone, badge, field, part, percent, plain, said, time};
use super::super::visit::Visit;
use super::{change, made};

/// What `agents_sketch_agent` answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sketched {
    name: String,
    definition: Definition,
    step_words: Vec<String>,
    schedule: Option<WouldRun>,
    policies: Vec<Policy>,
    data: Vec<Touched>,
    templates: Vec<Match>,
    needs: Vec<Need>,
    assumed: Vec<String>,
    not_understood: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WouldRun {
    says: String,
    next_runs: Vec<String>,
}

#[derive(Deserialize)]
struct Policy {
    id: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct Touched {
    kind: String,
    words: String,
}

#[derive(Deserialize)]
struct Match {
    id: String,
    share: f64,
    why: Vec<String>,
}

#[derive(Deserialize)]
struct Templates {
    policies: Vec<Policy>,
}

/// The fields, with everything that was read beside them.
pub(super) async fn fields(visit: &Visit, sketched: &Sketched, given: &Map<String, Value>) -> Markup {
    let templates: Templates = visit.ask("agents_list_templates", json!({ "type": "policy" })).await.unwrap_or(Templates { policies: Vec::new() });
    let read = |name: &str| !given.contains_key(name);
    let definition = &sketched.definition;
    html! {
        div data-state="fine" {
            @if !sketched.not_understood.is_empty() {
                section.part id="not-understood" { h3 { (badge(Tone::Warning, "not understood")) } ul { @for unclear in &sketched.not_understood { li { (said(unclear)) } } } }
            }
            @if !sketched.assumed.is_empty() { section.part id="assumed" { h3 { "Assumed" } ul { @for assumed in &sketched.assumed { li { (said(assumed)) } } } } }
            section.part {
                h3 { "What it is" }
                (field("sketch-name", "Its name", html! { input id="sketch-name" name="name" maxlength="100" value=(sketched.name) autocomplete="off" data-read[read("name")]; }))
                p.meta { "Its task: " (said(&definition.task)) }
                @if !sketched.data.is_empty() {
                    p.meta id="touches" { "It touches " @for (at, data) in sketched.data.iter().enumerate() { @if at > 0 { ", " } (said(&data.kind)) " data (" (said(&data.words)) ")" } }
                }
                (alike(&sketched.templates, given))
            }
            (when(sketched, &read))
            (steps(sketched, &read))
            (needs(sketched, given))
            (policies(sketched, &templates.policies, read("policies")))
            section.part {
                h3 { "Who lets it run" }
                label.check for="sketch-approval" { input id="sketch-approval" type="checkbox" name="approvalRequired" value="true" data-as="json" checked[definition.approval_required] data-read[read("approvalRequired")]; " An agent that deploys it waits for a person, whatever the trust" }
                p.meta { "A run uses up to " (definition.budget.seconds) " seconds and " (definition.budget.calls) " calls." }
            }
        }
    }
}

/// Templates that are like it.
fn alike(templates: &[Match], given: &Map<String, Value>) -> Markup {
    html! {
        @if !templates.is_empty() {
            p.meta { "Like the templates" }
            ul.plain id="alike" {
                @for one in templates {
                    li {
                        (said(&one.id)) " " (badge(Tone::Quiet, &percent(one.share))) span.meta { " because of " (said(&one.why.join(", "))) }
                        @if given.get("template") != Some(&Value::from(one.id.as_str())) { " " button.quiet type="button" data-template=(one.id) { "Begin with it" } }
                    }
                }
            }
        }
    }
}

fn when(sketched: &Sketched, read: &impl Fn(&str) -> bool) -> Markup {
    let (cron, zone) = sketched.definition.schedule.as_ref().map_or(("", ""), |timing| (timing.cron.as_str(), timing.time_zone.as_str()));
    html! {
        section.part {
            h3 { "When it runs" }
            @match &sketched.schedule {
                Some(schedule) => {
                    p { (said(&schedule.says)) }
                    p.meta { "Next, in your time:" }
                    ul.plain id="next" { @for at in &schedule.next_runs { li { (time(at)) } } }
                }
                None => { p { "When somebody starts it." } }
            }
            div.beside {
                (field("sketch-schedule", "As cron; empty for none", html! { input id="sketch-schedule" name="schedule" data-as="text" maxlength="200" value=(cron) autocomplete="off" spellcheck="false" placeholder="0 9 * * mon-fri" data-read[read("schedule")]; }))
                @if !cron.is_empty() || !read("timeZone") {
                    (field("sketch-zone", "In the time zone", html! {
                        input id="sketch-zone" name="timeZone" maxlength="64" value=(zone) autocomplete="off" data-read[read("timeZone")];
                        button.quiet type="button" data-my-zone="sketch-zone" { "My own" }
                    }))
                }
            }
        }
    }
}

fn steps(sketched: &Sketched, read: &impl Fn(&str) -> bool) -> Markup {
    let steps = sketched.definition.runner.steps();
    html! {
        section.part {
            h3 { "What it does" @if !read("steps") { " " (badge(Tone::Quiet, "your steps")) } }
            @if steps.is_empty() { p.hint { "No step was read. Say what it does, or write steps below." } }
            @else { (made::in_words(&sketched.step_words, steps.iter().map(|step| step.id.as_str()))) }
            details id="sketch-steps-fold" {
                summary { "Change the steps" }
                (field("sketch-steps", "Its steps, as JSON", html! { textarea id="sketch-steps" name="steps" data-as="json" rows="12" spellcheck="false" data-read[read("steps")] { "\n" (plain(&json!(steps))) } }))
            }
        }
    }
}

/// What it still needs, with a place for each parameter.
fn needs(sketched: &Sketched, given: &Map<String, Value>) -> Markup {
    let own: Vec<&str> = given.get("params").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let others: Vec<&Need> = sketched.needs.iter().filter(|need| need.param.is_none()).collect();
    let fields = change::params(&sketched.definition, Some(&own));
    part(
        "What it is told",
        html! {
            @if !sketched.needs.is_empty() { p { (badge(Tone::Warning, "needs something")) " It can be made like this, and deployed when this is filled in." } }
            @if !others.is_empty() { ul id="needs" { @for need in others { li { (said(&need.what)) } } } }
            (fields)
        },
    )
}

/// Policies as boxes, always in one order: those that were chosen have their reasons.
fn policies(sketched: &Sketched, templates: &[Policy], read: bool) -> Markup {
    let own = sketched.policies.iter().filter(|chosen| templates.iter().all(|template| template.id != chosen.id));
    html! {
        section.part {
            h3 id="policies-title" { "Policies that hold for it" }
            fieldset.choices name="policies" aria-labelledby="policies-title" data-as="choices" data-read[read] {
                @for policy in own.chain(templates) {
                    @let chosen = sketched.policies.iter().find(|chosen| chosen.id == policy.id);
                    div id={ "policy-" (policy.id) } data-chosen[chosen.is_some()] {
                        label.check for={ "sketch-policy-" (policy.id) } {
                            input id={ "sketch-policy-" (policy.id) } type="checkbox" value=(policy.id) checked[chosen.is_some()];
                            span { strong { (said(&policy.id)) } " " (said(&policy.description)) }
                        }
                        @if let Some(chosen) = chosen.filter(|chosen| !chosen.reason.is_empty()) { p.meta { "Because " (said(&chosen.reason)) "." } }
                    }
                }
            }
        }
    }
}
