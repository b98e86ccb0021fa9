//! What a person can do about an agent that the desk runs. Each is an operation; the desk's answer is told beside the buttons.

use deskmate_core::agents::{AgentOut, Runner, Status};
use maud::{Markup, html};

use super::super::ui::field;
use super::super::visit::Visit;
use super::change;
use super::nodes::{self, Node};

/// Everything that can be done with it as it stands.
pub(super) fn of(visit: &Visit, made: &AgentOut, denied: bool, nodes: &[Node]) -> Markup {
    if !visit.writes() {
        return html! { p.hint { "Your role looks on; from member on people make, test and deploy agents." } };
    }
    let id = html! { input type="hidden" name="agentId" value=(made.name); };
    html! {
        div.acts {
            @if made.status == Status::Deployed { (run(&id)) }
            @if !made.is_fixed() { (deploy(made, &id, nodes)) }
            (test(made, &id))
            @if made.status == Status::Deployed { form id="pause" data-call="agents_pause_agent" data-done="Paused: no run begins" { (id) button.quiet data-key="p" { "Pause " kbd { "p" } } } }
            @if made.status == Status::Paused { form id="resume" data-call="agents_resume_agent" data-done="It goes on" { (id) button data-key="p" { "Let it go on " kbd { "p" } } } }
            @if made.is_fixed() {
                form id="stop" data-call="agents_stop_agent" data-done="Stopped" data-confirm={ "Stop " (made.name) "? It is not deployed any more, and its runs under way are stopped. To run again it has to be deployed again." } {
                    (id) button.alarm { "Stop" }
                }
            } @else {
                (change::forms(made, &id))
                form id="delete" data-call="agents_delete_agent" data-then="/agents" data-confirm={ "Delete " (made.name) "? What the record tells of it stays; its name is not used again." } { (id) button.alarm { "Delete" } }
            }
            (kill(visit, made, denied))
        }
        @if made.is_fixed() { p.hint { "What runs is what was deployed: to change it, stop it first." } }
    }
}

fn run(id: &Markup) -> Markup {
    html! {
        details id="run-now" {
            summary data-key="r" { "Run now " kbd { "r" } }
            form data-call="agents_run_agent" data-then="/runs/{runId}" {
                (id)
                (field("run-input", "What it is started with, as JSON; nothing if empty", html! { textarea id="run-input" name="input" data-as="json" rows="3" placeholder="{ \"items\": [] }" spellcheck="false" {} }))
                button { "Run it" }
            }
        }
    }
}

fn deploy(made: &AgentOut, id: &Markup, nodes: &[Node]) -> Markup {
    let is_open = made.definition.open_needs().next().is_some();
    html! {
        details id="deploy" {
            summary data-key="d" { "Deploy " kbd { "d" } }
            form data-call="agents_deploy_agent" data-answer="said" {
                (id)
                @if is_open { p.hint { "It still needs something, so the desk refuses this for now." } }
                (nodes::choice(nodes))
                (field("deploy-way-back", "The way back, for rules that ask for one and for whoever decides; may be left empty", html! { input id="deploy-way-back" name="rollbackPlan" maxlength="4000" autocomplete="off"; }))
                label.check { input type="checkbox" name="autoStart" value="true" data-as="json"; " Begin its first run at once" }
                button { "Deploy it" }
            }
        }
    }
}

/// A test without effects; of a program, its own test.
fn test(made: &AgentOut, id: &Markup) -> Markup {
    match &made.definition.runner {
        Runner::Steps { .. } => html! {
            details id="test" {
                summary data-key="t" { "Test " kbd { "t" } }
                form data-call="agents_test_agent" data-answer="said" {
                    (id)
                    (field("test-scenario", "What is tried, in words", html! { textarea id="test-scenario" name="scenario" required rows="2" maxlength="4000" { (made.definition.task.chars().take(1_000).collect::<String>()) } }))
                    (field("test-mocks", "What its steps would be answered, as JSON: by the name of a step or of its operation", html! { textarea id="test-mocks" name="mockData" data-as="json" rows="4" spellcheck="false" placeholder="{ \"file\": { \"text\": \"…\" } }" {} }))
                    label.check { input type="checkbox" name="strict" value="true" data-as="json" checked; " Whatever a rule forbids fails it" }
                    p.hint { "Nothing has an effect: its real steps are gone through, and each act is decided without counting." }
                    button { "Test it" }
                }
            }
        },
        Runner::Command { test, .. } if !test.is_empty() => html! {
            form id="test" data-call="agents_run_agent" data-then="/runs/{runId}" { (id) input type="hidden" name="test" value="true" data-as="json"; button.quiet data-key="t" { "Run its test " kbd { "t" } } }
        },
        _ => Markup::default(),
    }
}

/// The switch that every agent has.
fn kill(visit: &Visit, made: &AgentOut, denied: bool) -> Markup {
    if !matches!(visit.you.role.as_str(), "owner" | "approver") {
        return Markup::default();
    }
    let agent = html! { input type="hidden" name="agent" value=(made.name); };
    html! {
        @if denied {
            form id="allow" data-call="desk_resume" data-done="It may act again" data-confirm={ "Let " (made.name) " act again?" } { (agent) button.warning { "Let it act again" } }
        } @else {
            form id="deny" data-call="desk_pause" data-done="All its acts are denied" data-confirm={ "Deny every act of " (made.name) " at once, also what was approved and not yet begun, until you let it act again?" } { (agent) button.alarm { "Deny all its acts" } }
        }
    }
}
