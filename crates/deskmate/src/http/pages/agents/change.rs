//! Changing what an agent is while it is not deployed: its words, steps, schedule, parameters and budget.

use std::collections::{BTreeMap, BTreeSet};

use deskmate_core::agents::{AgentOut, Definition, IfInterrupted, Runner};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::super::ui::{self, badge, field, part, plain, said};
use super::super::visit::Visit;

/// The forms that change an agent. Whoever changed it meanwhile is not overwritten.
pub(super) fn forms(made: &AgentOut, id: &Markup) -> Markup {
    let definition = &made.definition;
    let seen = html! { (id) input type="hidden" name="expectedVersion" value=(made.version) data-as="json"; };
    let (cron, zone) = definition.schedule.as_ref().map_or(("", ""), |timing| (timing.cron.as_str(), timing.time_zone.as_str()));
    let steps = definition.runner.steps();
    html! {
        details id="change" {
            summary data-key="c" { "Change " kbd { "c" } }
            form data-call="agents_update_agent" data-done="Changed" data-changed {
                (seen)
                (field("change-task", "What it is for", html! { textarea id="change-task" name="description" data-as="text" rows="3" { "\n" (definition.task) } }))
                (field("change-schedule", "When it runs, as cron; empty for when somebody starts it", html! { input id="change-schedule" name="schedule" data-as="text" value=(cron) maxlength="200" autocomplete="off" spellcheck="false" placeholder="0 9 * * mon-fri"; }))
                (field("change-zone", "In the time zone", html! { input id="change-zone" name="timeZone" value=(zone) maxlength="64" autocomplete="off" placeholder="Europe/Berlin"; }))
                @if definition.runner.is_program() {
                    (field("change-runner", "What it runs, as JSON", html! { textarea id="change-runner" name="runner" data-as="json" rows="12" spellcheck="false" { "\n" (plain(&json!(definition.runner))) } }))
                } @else {
                    (field("change-steps", "Its steps, as JSON", html! { textarea id="change-steps" name="steps" data-as="json" rows="12" spellcheck="false" { "\n" (plain(&json!(steps))) } }))
                }
                (field("change-interrupted", "If its server is lost in the middle of a run", ui::choice("change-interrupted", "ifInterrupted", interrupted(definition), name_of(definition.when_interrupted()))))
                label.check { input type="checkbox" name="approvalRequired" value="true" data-as="json" checked[definition.approval_required]; " An agent that deploys it waits for a person" }
                button { "Keep the change" }
            }
        }
        (budget(definition, &seen))
    }
}

/// What can become of a run that is left in the middle: only steps know where they were.
fn interrupted(definition: &Definition) -> &'static [(&'static str, &'static str)] {
    const ALL: &[(&str, &str)] =
        &[("resume", "it goes on after the last step that was done"), ("again", "it begins anew"), ("end", "it ends, and is told as interrupted")];
    if definition.runner.is_program() { ALL.get(1..).unwrap_or(ALL) } else { ALL }
}

fn name_of(interrupted: IfInterrupted) -> &'static str {
    match interrupted {
        IfInterrupted::Resume => "resume",
        IfInterrupted::Again => "again",
        IfInterrupted::End => "end",
    }
}

/// What the cost in a budget is of.
pub(super) fn cost_of(runner: &Runner) -> &'static str {
    if runner.is_program() { "US dollars that a model may cost" } else { "What its calls may cost" }
}

/// The budget is given whole, so nothing of it is lost by a change of one figure.
fn budget(definition: &Definition, seen: &Markup) -> Markup {
    let budget = &definition.budget;
    let number = |id: &str, name: &str, label: &str, value: Option<String>| {
        field(id, label, html! { input id=(id) name={ "budget." (name) } type="number" min="1" value=[value] data-as="json"; })
    };
    html! {
        details id="change-budget" {
            summary { "Change the budget" }
            form data-call="agents_update_agent" data-done="Changed" {
                (seen)
                (number("budget-seconds", "seconds", "Seconds", Some(budget.seconds.to_string())))
                (number("budget-calls", "calls", "Calls of operations", Some(budget.calls.to_string())))
                (number("budget-log", "log_bytes", "Bytes of log", Some(budget.log_bytes.to_string())))
                @if definition.runner.is_program() {
                    (number("budget-disk", "disk_bytes", "Bytes on disk", budget.disk_bytes.map(|bytes| bytes.to_string())))
                    (number("budget-memory", "memory_bytes", "Bytes of memory", budget.memory_bytes.map(|bytes| bytes.to_string())))
                    (number("budget-processes", "processes", "Processes", budget.processes.map(|count| count.to_string())))
                }
                (field("budget-cost", cost_of(&definition.runner), html! { input id="budget-cost" name="budget.cost" type="number" min="0" step="any" value=[budget.cost] data-as="json"; }))
                button { "Keep the budget" }
            }
        }
    }
}

/// What it needs before it can be deployed, with places for the parameters. They are given whole.
pub(super) fn needs(visit: &Visit, made: &AgentOut) -> Markup {
    let definition = &made.definition;
    let open: Vec<_> = definition.open_needs().collect();
    let may = visit.you.role != "viewer" && !made.is_fixed();
    if open.is_empty() && (definition.params.is_empty() || !may) {
        return Markup::default();
    }
    let form = html! {
        form id="fill-in" data-call="agents_update_agent" data-done="Filled in" {
            input type="hidden" name="agentId" value=(made.name);
            input type="hidden" name="expectedVersion" value=(made.version) data-as="json";
            (params(definition, None))
            button { "Keep the parameters" }
        }
    };
    let has_fields = !definition.params.is_empty() || open.iter().any(|need| need.param.is_some());
    if open.is_empty() {
        return html! { details.card.fold id="parameters" { summary { "Its parameters" } (form) } };
    }
    part(
        "What it needs first",
        html! {
            p { (badge(ui::Tone::Warning, "not yet")) " It is deployed when this is filled in." }
            ul id="needs" { @for need in &open { li { (said(&need.what)) } } }
            @if may && has_fields { (form) }
        },
    )
}

/// A place for each parameter: those that are there, then those that are needed. Of a sketch those are marked as read that somebody
/// did not give themselves.
pub(super) fn params(definition: &Definition, given: Option<&[&str]>) -> Markup {
    let is_read = |name: &str| given.is_some_and(|given| !given.contains(&name));
    let asked: BTreeMap<&str, &str> = definition.needs.iter().filter_map(|need| Some((need.param.as_deref()?, need.what.as_str()))).collect();
    // In one order, so that a field stays where it is when it is filled in.
    let names: BTreeSet<&str> = definition.params.keys().map(String::as_str).chain(asked.keys().copied()).collect();
    html! { @for name in names { (param(name, asked.get(name).copied(), definition.params.get(name), is_read(name))) } }
}

fn param(name: &str, what: Option<&str>, value: Option<&Value>, read: bool) -> Markup {
    let id = format!("param-{name}");
    // A need names its parameter first.
    let label = what.map_or_else(|| name.to_owned(), |what| what.trim_start_matches("params.").to_owned());
    let kind = match value {
        Some(Value::String(_)) => "text",
        Some(_) => "json",
        None => "any",
    };
    let text = value.map(plain).unwrap_or_default();
    let rows = if text.lines().count() > 1 { "6" } else { "1" };
    field(&id, &label, html! { textarea id=(id) name={ "params." (name) } data-as=(kind) rows=(rows) spellcheck="false" data-read[read] { "\n" (text) } })
}
