//! Why an act got its answer, and what would change it: of a request, or of an act that somebody might intend.

use axum::extract::Query;
use axum::response::Response;
use deskmate_core::meter;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::judgement::{Hit, Reason, hits, reasons};
use super::super::shell::{self, Page, Place};
use super::super::ui::{Tone, badge, fact, field, part, said, short};
use super::super::visit::{Fault, Visit};
use super::address;

/// What the address asks for.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    request: String,
    agent: String,
    domain: String,
    action: String,
    target: String,
    change: String,
    kind: String,
    tool: String,
    environment: String,
    field: String,
    cost: String,
}

impl Asked {
    /// What is rarely asked: what policies look at besides.
    fn more(&self) -> [(&'static str, &'static str, &'static str, &str); 4] {
        [
            ("kind", "What kind of act it is", "propose", &self.kind),
            ("tool", "With which tool", "cowork_propose", &self.tool),
            ("environment", "Where it would happen", "production", &self.environment),
            ("field", "Which field the agent says it changes", "amount", &self.field),
        ]
    }

    fn has_more(&self) -> bool {
        !self.cost.is_empty() || self.more().iter().any(|(_, _, _, value)| !value.is_empty())
    }
}

/// What `desk_policy_explain` answers.
#[derive(Deserialize)]
struct Explained {
    agent: String,
    then: Option<Decision>,
    now: Decision,
}

#[derive(Deserialize)]
struct Decision {
    mode: String,
    mapping_found: bool,
    policies: Vec<PolicyRef>,
    rules_checked: usize,
    hits: Vec<Hit>,
    high_risk_field: bool,
    risk: String,
    reasons: Vec<Reason>,
    needs: Needs,
    waived_by: Option<String>,
}

#[derive(Deserialize)]
struct PolicyRef {
    policy: String,
    version: i64,
}

#[derive(Deserialize)]
struct Needs {
    quorum: u64,
    approvers: Vec<String>,
}

pub(super) async fn serve(visit: Visit, Query(asked): Query<Asked>) -> Result<Response, Fault> {
    let answer = match input(&asked) {
        None => None,
        Some(Err(why)) => Some(Err(why)),
        Some(Ok(input)) => Some(visit.ask::<Explained>("desk_policy_explain", input).await.map_err(|fault| fault.message().to_owned())),
    };
    let body = html! {
        div.wide {
            p { a href="/policies" data-in-place data-key="Escape" { "All policies" } }
            h1 { "Why this answer?" }
            @match &answer {
                None => { p.hint { "Ask about a request by its id, or try an act that nobody has asked for yet. Nothing is done by asking." } }
                Some(Err(why)) => { p id="answer" role="alert" { (said(why)) } }
                Some(Ok(explained)) => { (answered(&asked, explained)) }
            }
            div.beside {
                form.card.pad data-filters {
                    h2 { "A request" }
                    (field("request", "Its id", html! { input id="request" name="request" value=(asked.request) required autocomplete="off"; }))
                    button { "Explain the request" }
                }
                form.card.pad data-filters {
                    h2 { "An act" }
                    (field("agent", "Who would act", html! { input id="agent" name="agent" value=(asked.agent) required placeholder="code" autocomplete="off"; }))
                    (field("domain", "In which domain", html! { input id="domain" name="domain" value=(asked.domain) placeholder="crm.deals" autocomplete="off"; }))
                    (field("action", "What it would do", html! { input id="action" name="action" value=(asked.action) placeholder="update" autocomplete="off"; }))
                    (field("target", "To what", html! { input id="target" name="target" value=(asked.target) placeholder="deal/7" autocomplete="off"; }))
                    (field("change", "The proposed change, as JSON", html! { textarea id="change" name="change" rows="4" spellcheck="false" placeholder="{\"amount\": 1200}" { (asked.change) } }))
                    details id="more" open[asked.has_more()] {
                        summary { "More" }
                        @for (name, label, usual, value) in asked.more() {
                            (field(name, label, html! { input id=(name) name=(name) value=(value) placeholder=(usual) autocomplete="off"; }))
                        }
                        (field("cost", "What it would cost, in units", html! { input id="cost" name="cost" type="number" min="0" step="any" value=(asked.cost) placeholder="0"; }))
                    }
                    button { "Explain the act" }
                }
            }
        }
    };
    shell::show(&visit, Page { title: "Why this answer?", place: Place::Policies, topics: "policy mapping setting rulebook trust pause", body }).await
}

/// The input of `desk_policy_explain`, if anything was asked.
fn input(asked: &Asked) -> Option<Result<Value, String>> {
    if !asked.request.is_empty() {
        return Some(Ok(json!({ "request": asked.request.trim() })));
    }
    if asked.agent.is_empty() {
        return None;
    }
    let mut act = Map::new();
    let more = asked.more().map(|(name, _, _, value)| (name, value));
    for (name, value) in [("domain", asked.domain.as_str()), ("action", &asked.action), ("target", &asked.target)].into_iter().chain(more) {
        if !value.is_empty() {
            act.insert(name.to_owned(), Value::from(value));
        }
    }
    if !asked.cost.trim().is_empty() {
        match asked.cost.trim().parse::<f64>() {
            Ok(units) if units.is_finite() && units >= 0.0 => act.insert("cost".to_owned(), Value::from(meter::millionths(units))),
            _ => return Some(Err("What it would cost is not a number of units.".to_owned())),
        };
    }
    if !asked.change.trim().is_empty() {
        match serde_json::from_str::<Value>(&asked.change) {
            Ok(change) => act.insert("arguments".to_owned(), change),
            Err(error) => return Some(Err(format!("The proposed change is not valid JSON: {error}"))),
        };
    }
    Some(Ok(json!({ "agent": asked.agent.trim(), "act": act })))
}

fn answered(asked: &Asked, explained: &Explained) -> Markup {
    let now = &explained.now;
    html! {
        section.card.pad id="answer" {
            h2 {
                (said(&explained.agent)) ": " (badge(Tone::of_state(&now.mode), &now.mode))
                @if let Some(then) = &explained.then { span.meta { " now; when it was asked, the answer was " } (badge(Tone::of_state(&then.mode), &then.mode)) }
            }
            @if !asked.request.is_empty() { p { a href={ "/requests/" (asked.request) } title=(asked.request) { "Request " (short(&asked.request)) } } }
            dl.facts {
                (fact("Risk", badge(Tone::of_risk(&now.risk), &now.risk)))
                (fact("Policies", html! {
                    @if now.policies.is_empty() { "none" }
                    @for (at, one) in now.policies.iter().enumerate() { @if at > 0 { ", " } @if one.version == 0 { (said(&one.policy)) ", built in" } @else { a href=(address(&one.policy)) { (said(&one.policy)) } " v" (one.version) } }
                }))
                (fact("Rules looked at", html! { (now.rules_checked) }))
                (fact("Mapping", html! { @if now.mapping_found { "found" } @else { "none names this agent and domain" } }))
                @if now.needs.quorum > 1 { (fact("People who have to approve", html! { (now.needs.quorum) })) }
                @if !now.needs.approvers.is_empty() { (fact("Who may approve", said(&now.needs.approvers.join(", ")))) }
                @if now.high_risk_field { (fact("Field", badge(Tone::Warning, "high risk"))) }
                @if let Some(request) = &now.waived_by { (fact("Stands in for trust", html! { a href={ "/requests/" (request) } { "request " (short(request)) } })) }
            }
            (part("What has a say, the most restrictive first", reasons(&now.reasons)))
            @if !now.hits.is_empty() { (part("Rules that fire", hits(&now.hits))) }
            @if let Some(then) = explained.then.as_ref().filter(|then| then.mode != now.mode) {
                details.part id="then" { summary { "What had a say then" } (reasons(&then.reasons)) (hits(&then.hits)) }
            }
        }
    }
}
