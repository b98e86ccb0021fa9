//! The policies that hold for one agent: with their reasons, what of them is in conflict, and how one is attached or taken away.

use deskmate_core::agents::{AgentOut, Attachment, Source};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::super::policies;
use super::super::ui::{self, Tone, badge, field, said, spaced};
use super::super::visit::{Fault, Visit};
use super::made::Standing;

/// How many policies of the desk can be chosen from.
const POLICIES_MAX: usize = 500;

/// What `agents_get_agent_status` tells of a conflict.
#[derive(Deserialize)]
pub(super) struct Conflict {
    kind: String,
    rule: Rule,
    other: Option<Rule>,
    why: String,
}

#[derive(Deserialize)]
struct Rule {
    policy: String,
    rule: String,
}

#[derive(Deserialize)]
struct Policy {
    policy: String,
}

#[derive(Deserialize)]
struct Templates {
    policies: Vec<Template>,
}

#[derive(Deserialize)]
struct Template {
    id: String,
    title: String,
}

/// The part of the page about policies.
pub(super) async fn policies(visit: &Visit, standing: &Standing) -> Result<Markup, Fault> {
    let made = &standing.made;
    let (own, _) = visit.gather::<Policy>("desk_policy_list", "policies", json!({}), POLICIES_MAX).await?;
    let templates: Templates = visit.ask("agents_list_templates", json!({ "type": "policy" })).await?;
    let attached = &made.definition.policies;
    Ok(html! {
        section.part id="policies" {
            h3 { "Policies that hold for it alone" }
            @if attached.is_empty() { p.hint { "None is attached. What is mapped to agents by name holds for it as for any other." } }
            (conflicts(standing))
            ul.cards { @for held in attached { (card(visit, made, held)) } }
            @if visit.you.role != "viewer" { (attach(made, &own, &templates.policies)) }
            p.hint { a href="/policies" { "All policies in force" } " · " a href=(ui::address("/compliance", &[("agent", &made.name)])) { "Compliance of this agent" } }
        }
    })
}

fn conflicts(standing: &Standing) -> Markup {
    let Some(found) = &standing.conflicts else { return html! { p.hint { "There are too many rules to look for conflicts among them." } } };
    if found.is_empty() {
        return Markup::default();
    }
    html! {
        ul.hits id="conflicts" {
            @for one in found {
                li {
                    (badge(if one.kind == "contradicting" { Tone::Alarm } else { Tone::Warning }, &one.kind)) " "
                    strong { (said(&one.rule.rule)) } " of " (said(&one.rule.policy))
                    @if let Some(other) = &one.other { " and " strong { (said(&other.rule)) } " of " (said(&other.policy)) }
                    ": " (said(&one.why))
                }
            }
        }
    }
}

fn card(visit: &Visit, made: &AgentOut, held: &Attachment) -> Markup {
    let id = &held.policy.id;
    html! {
        li.card id={ "policy-" (id) } {
            h4 {
                @match held.source { Source::Desk => { a href=(policies::address(id)) { (said(id)) } } Source::Template => { (said(id)) } }
                " " (badge(Tone::Quiet, if held.source == Source::Desk { "of the desk" } else { "template" }))
                @if let Some(framework) = &held.policy.framework { " " (badge(Tone::Quiet, framework)) }
                @if !held.custom.is_empty() { " " (badge(Tone::Quiet, "with rules of its own")) }
            }
            p { (said(&held.policy.description)) }
            @if !held.why.is_empty() { p.meta { "Attached because " (said(&held.why)) "." } }
            details id={ "rules-" (id) } { summary { "Its rules (" (held.policy.rules.len()) ")" } (policies::in_words(&json!(held.policy))) }
            @if visit.you.role == "owner" && !made.is_fixed() {
                form data-call="agents_detach_policy" data-done="Taken away" data-confirm={ "Take " (id) " away from " (made.name) "? What it forbids or holds is then open to the agent, unless another rule says so." } {
                    input type="hidden" name="agentId" value=(made.name);
                    input type="hidden" name="policyId" value=(id);
                    button.alarm { "Take away" }
                }
            }
        }
    }
}

fn attach(made: &AgentOut, own: &[Policy], templates: &[Template]) -> Markup {
    html! {
        details.create id="attach" {
            summary { "Attach a policy" }
            form data-call="agents_attach_policy" data-answer="attached" {
                input type="hidden" name="agentId" value=(made.name);
                (field("attach-policy", "Which one", html! {
                    select id="attach-policy" name="policyId" required {
                        optgroup label="Of the desk" { @for policy in own.iter().filter(|policy| policy.policy != "global") { option value=(policy.policy) { (crate::visible::visible(&policy.policy)) } } }
                        optgroup label="Templates" { @for template in templates { option value=(template.id) { (template.title) " (" (spaced(&template.id)) ")" } } }
                    }
                }))
                label.check { input type="checkbox" name="force" value="true" data-as="json"; " Also if it contradicts what holds already; then the stricter rule counts" }
                p.hint { "It only takes away, and holds for the next act, also of an agent that is deployed. Values for the gaps of a template: " a href=(ui::address("/templates", &[("kind", "policy"), ("agent", &made.name)])) { "templates of policies" } "." }
                button { "Attach it" }
            }
        }
        div.answer.pad id="attached" role="status" data-keep {}
    }
}
