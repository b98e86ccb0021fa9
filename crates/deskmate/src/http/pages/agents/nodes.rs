//! The nodes of the desk: servers that offer themselves for runs, and where an agent's are done.

use deskmate_core::agents::{AgentOut, Environment, IfInterrupted};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::super::ui::{self, Tone, badge, field, part, said, time};
use super::super::visit::{Fault, Visit};

/// How many nodes are shown.
const NODES_MAX: usize = 200;

/// What `agents_list_nodes` answers of one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    name: String,
    here: bool,
    labels: Vec<String>,
    runs: i64,
    since: String,
    last_seen: String,
}

pub(super) async fn ask(visit: &Visit) -> Result<Vec<Node>, Fault> {
    Ok(visit.gather::<Node>("agents_list_nodes", "nodes", json!({}), NODES_MAX).await?.0)
}

/// All of them, there or gone. A desk without nodes shows nothing of them.
pub(super) fn all(nodes: &[Node]) -> Markup {
    if nodes.is_empty() {
        return Markup::default();
    }
    html! {
        h2 id="nodes" { "Nodes that do runs" }
        table.stack {
            thead { tr { th scope="col" { "Node" } th scope="col" { "Labels" } th scope="col" { "Runs under way" } th scope="col" { "Last sign of life" } } }
            tbody {
                @for node in nodes {
                    tr id={ "node-" (node.name) } {
                        th scope="row" { (said(&node.name)) " " (standing(node)) }
                        td data-label="Labels" { (said(&node.labels.join(", "))) }
                        td data-label="Runs under way" { (node.runs) }
                        td data-label="Last sign of life" { (time(&node.last_seen)) @if node.here { span.meta { " · there since " (time(&node.since)) } } }
                    }
                }
            }
        }
    }
}

fn standing(node: &Node) -> Markup {
    if node.here { badge(Tone::Good, "there") } else { badge(Tone::Alarm, "gone") }
}

/// Where a deployed agent runs, and what becomes of a run that is left in the middle.
pub(super) fn of(made: &AgentOut, nodes: &[Node]) -> Markup {
    let fits = |node: &&Node| match &made.node {
        Some(name) => node.name == *name,
        None => made.labels.iter().all(|label| node.labels.contains(label)),
    };
    let fitting: Vec<&Node> = nodes.iter().filter(fits).collect();
    part(
        "Where it runs",
        html! {
            @match (made.environment, &made.node) {
                (Some(Environment::Cloud), _) => {
                    p {
                        "On any node that offers itself"
                        @if !made.labels.is_empty() { " and has " @for label in &made.labels { (badge(Tone::Quiet, label)) " " } }
                        ": " @for node in &fitting { (said(&node.name)) " " (standing(node)) " " }
                        @if !fitting.iter().any(|node| node.here) { (badge(Tone::Warning, "none is there")) " Its runs wait until one is." }
                    }
                }
                (Some(_), Some(name)) => { p { "On the node " (said(name)) ", where it was deployed. " @for node in &fitting { (standing(node)) } } }
                (Some(_), None) => { p { "On the server where it was deployed." } }
                (None, _) => { p.hint { "That is said when it is deployed." } }
            }
            p.meta {
                "If its server is lost in the middle of a run, "
                (match made.definition.when_interrupted() {
                    IfInterrupted::Resume => "it goes on after the last step that was done.",
                    IfInterrupted::Again => "the run begins anew.",
                    IfInterrupted::End => "the run ends, and is told as one of which nobody knows how far it came.",
                })
            }
        },
    )
}

/// The choice of where to deploy it, where there is one.
pub(super) fn choice(nodes: &[Node]) -> Markup {
    if nodes.is_empty() {
        return Markup::default();
    }
    html! {
        (field("deploy-environment", "Where it runs", ui::choice("deploy-environment", "environment", &[("local", "on this server"), ("cloud", "on any node that offers itself")], "local")))
        (field("deploy-labels", "What a node must have, with commas between; only for nodes", html! { input id="deploy-labels" name="labels" data-as="list" autocomplete="off" placeholder="gpu, region=eu"; }))
    }
}
