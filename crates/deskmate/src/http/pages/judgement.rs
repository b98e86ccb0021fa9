//! What policy and trust said about an act: the rules that fired, and what had a say.

use deskmate_core::policy::HIGH_RISK_LIST;
use maud::{Markup, html};
use serde::Deserialize;

use super::policies::at_rule;
use super::ui::{Tone, badge, said, spaced};

/// A rule that fired.
#[derive(Deserialize)]
pub(super) struct Hit {
    rule_id: String,
    policy: String,
    version: i64,
    effect: String,
    severity: String,
    reason: String,
    field: Option<String>,
    alternative: Option<String>,
    failed: bool,
}

/// Something that had a say.
#[derive(Deserialize)]
pub(super) struct Reason {
    source: String,
    mode: String,
    text: String,
    would_change: Option<String>,
}

/// What had a say, the most restrictive first.
pub(super) fn reasons(reasons: &[Reason]) -> Markup {
    html! {
        ol.reasons {
            @for reason in reasons {
                li {
                    (badge(Tone::of_state(&reason.mode), &reason.mode)) " " strong { (spaced(&reason.source)) } " " (said(&reason.text))
                    @if let Some(change) = &reason.would_change { br; span.meta { (said(change)) } }
                }
            }
        }
    }
}

/// The rules that fired.
pub(super) fn hits(hits: &[Hit]) -> Markup {
    html! {
        ul.hits {
            @for hit in hits {
                li {
                    (badge(Tone::of_effect(&hit.effect), &hit.effect)) " " (said(&hit.reason))
                    @if let Some(field) = &hit.field { " on " code { (said(field)) } }
                    @if hit.failed { " " (badge(Tone::Alarm, "could not be evaluated")) }
                    " " span.meta { "rule " (said(&hit.rule_id)) " of " (source(hit)) ", " (spaced(&hit.severity)) }
                    @if let Some(other) = &hit.alternative { br; "Instead: " (said(other)) }
                }
            }
        }
    }
}

/// Where a rule stands, with the way to it as it was when it fired. What is built in has no version, and no page that shows it.
fn source(hit: &Hit) -> Markup {
    html! {
        @if hit.policy == HIGH_RISK_LIST { "the setting " a href="/policies" { (said(&hit.policy)) } }
        @else if hit.version == 0 { (said(&hit.policy)) ", built in" }
        @else { a href=(at_rule(&hit.policy, hit.version, &hit.rule_id)) { (said(&hit.policy)) } " v" (hit.version) }
    }
}
