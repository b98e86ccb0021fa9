//! Rules in words.

use deskmate_core::policy::{Constraint, Effect, FieldRule, GeneralRule, Match, Policy, Rule, rule_id};
use maud::{Markup, html};
use serde_json::Value;

use super::super::ui::{Tone, badge, block, said, segment};
use super::short_value;

/// So many rules of a policy; the body itself where it cannot be read.
pub(super) fn of(body: &Value, rows: usize) -> Markup {
    let Ok(policy) = serde_json::from_value::<Policy>(body.clone()) else { return super::super::ui::value(body) };
    html! {
        @if policy.rules.is_empty() { p.hint { "It has no rules: trust and limits alone decide." } }
        ol.rules {
            @for rule in policy.rules.iter().take(rows) {
                li { div id=(anchor(&rule_id(rule))) { @match rule { Rule::Field(rule) => { (field(rule)) } Rule::General(rule) => { (general(rule)) } } } }
            }
        }
        @if !policy.tests.is_empty() {
            details id="cases" {
                summary { "Cases that it must answer (" (policy.tests.len()) ")" }
                ul { @for case in &policy.tests { li { (said(&case.name)) @if let Some(mode) = case.mode { ": " (mode.name()) } } } }
            }
        }
    }
}

/// What a rule is called within its page.
pub(super) fn anchor(rule: &str) -> String {
    format!("rule-{}", segment(rule).replace('%', "-"))
}

fn field(rule: &FieldRule) -> Markup {
    let number = |number: Option<f64>| number.map(|number| number.to_string());
    let (tone, does) = if rule.constraint == Constraint::HighRisk { (Tone::Warning, "a person decides") } else { (Tone::Alarm, "deny") };
    html! {
        p {
            (badge(tone, does)) " "
            @match rule.constraint {
                Constraint::HighRisk => { "whoever touches " code { (said(&rule.field)) } }
                Constraint::Readonly => { code { (said(&rule.field)) } " is not changed" }
                Constraint::ValueRange => {
                    code { (said(&rule.field)) } " must be a number"
                    @if let Some(least) = number(rule.min) { " from " (least) }
                    @if let Some(most) = number(rule.max) { " up to " (most) }
                }
                Constraint::Enum => { code { (said(&rule.field)) } " must be one of " (said(&short_value(&Value::from(rule.values.clone().unwrap_or_default())))) }
                Constraint::Regex => { code { (said(&rule.field)) } " must be a text that fits " code { (said(rule.pattern.as_deref().unwrap_or_default())) } }
            }
        }
        @if !rule.reason.is_empty() { p.meta { (said(&rule.reason)) } }
    }
}

fn general(rule: &GeneralRule) -> Markup {
    let (tone, does) = effect(rule);
    html! {
        p {
            (badge(tone, does)) " " strong { (said(&rule.name)) }
            @if let Some(about) = about(&rule.matches) { " for " (said(&about)) }
            span.meta { " severity " (rule.severity.name()) }
        }
        @if let Some(when) = &rule.when { (block(when)) }
        @if !rule.message.is_empty() { p.meta { (said(&rule.message)) @if let Some(other) = &rule.alternative { " Instead: " (said(other)) } } }
        @if let Some(needs) = needs(rule) { p.meta { (said(&needs)) } }
    }
}

fn effect(rule: &GeneralRule) -> (Tone, &'static str) {
    match rule.effect {
        Effect::Deny => (Tone::Alarm, "deny"),
        Effect::RequireApproval => (Tone::Warning, "people approve"),
        Effect::Log => (Tone::Quiet, "note"),
        Effect::Redact => (Tone::Quiet, "hide"),
        Effect::Allow if rule.waive_trust => (Tone::Good, "allow, whatever the trust"),
        Effect::Allow => (Tone::Good, "allow"),
    }
}

/// The acts that a rule is about, if not about all.
fn about(matches: &Match) -> Option<String> {
    let lists =
        [("kind", &matches.kind), ("tool", &matches.tool), ("domain", &matches.domain), ("agent", &matches.agent), ("environment", &matches.environment)];
    let named: Vec<String> = lists.into_iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| format!("{name} {}", list.join(" or "))).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// What approving takes, and what is hidden.
fn needs(rule: &GeneralRule) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(rule.quorum.map(|quorum| format!("{quorum} people have to approve")));
    if !rule.approvers.is_empty() {
        parts.push(format!("only {} may approve", rule.approvers.join(", ")));
    }
    parts.extend(rule.expires_seconds.map(|seconds| format!("it waits {seconds} s")));
    parts.extend(rule.grant_seconds.map(|seconds| format!("the grant is good for {seconds} s")));
    if !rule.paths.is_empty() {
        parts.push(format!("hides {}", rule.paths.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
