//! Every number of a change, as facts of an event.

use serde_json::{Value, json};

use super::rows::{Of, Trust};
use super::rules::{Moved, Rates, Severity};
use crate::record::Event;

/// Which row is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) agent: String,
    pub(super) domain: String,
    pub(super) verified: bool,
}

impl Key {
    pub(super) fn of(trust: &Trust) -> Self {
        Self { agent: trust.agent.clone(), domain: trust.domain.clone(), verified: trust.verified }
    }

    /// The subject of its events.
    pub(super) fn subject(&self) -> String {
        subject(&self.agent, &self.domain)
    }
}

/// The subject of the events on an agent's trust in a domain.
pub(super) fn subject(agent: &str, domain: &str) -> String {
    format!("trust:{agent}:{domain}")
}

/// Why trust changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Approved,
    Overridden { kind: String, severity: Severity },
    TakenBack,
    Promoted,
    NotPromoted,
}

impl Cause {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Overridden { .. } => "overridden",
            Self::TakenBack => "taken_back",
            Self::Promoted => "promoted",
            Self::NotPromoted => "not_promoted",
        }
    }
}

/// What the event of a proposal says of trust: enough to recompute the row, and no more, because proposals are many.
pub(super) fn proposed(trust: &Trust, moved: &Moved, rates: &Rates) -> Value {
    json!({
        "agent": trust.agent,
        "domain": trust.domain,
        "verified": trust.verified,
        "start": rates.start,
        "decay_per_day": rates.decay_per_day,
        "score": moved.state.score,
        "proposals": moved.state.proposals,
    })
}

/// What the event of a change says.
pub(super) fn changed(event: Event, trust: &Trust, cause: &Cause, of: Of<'_>, moved: &Moved, rates: &Rates) -> Event {
    let state = &moved.state;
    let event = event
        .fact("agent", trust.agent.as_str())
        .fact("domain", trust.domain.as_str())
        .fact("verified", trust.verified)
        .fact("cause", cause.name())
        .fact("previous", moved.previous.0)
        .fact("impact", moved.impact.0)
        .fact("new", state.score.0)
        .fact("demoted", moved.demoted)
        .fact("promotion_due", moved.promotion_due.map(|target| target.0))
        .fact("request", of.request)
        .fact("confidence", of.confidence.map(|confidence| confidence.0))
        .fact(
            "rates",
            json!({
                "start": rates.start,
                "decay_per_day": rates.decay_per_day,
                "approval": rates.approval,
                "demote_after": rates.demote_after,
                "promote_after": rates.promote_after,
                "promote_accuracy": rates.promote_accuracy,
            }),
        )
        .fact(
            "after",
            json!({
                "proposals": state.proposals,
                "approved": state.approved,
                "overridden": state.overridden,
                "streak": state.streak,
                "demoted": state.demoted,
                "changes": state.changes,
                "decided_since": state.decided_since,
                "approved_since": state.approved_since,
                "promoting": state.promoting,
                "confidence_sum": state.confidence_sum,
                "confidence_count": state.confidence_count,
                "brier_sum": state.brier_sum,
            }),
        );
    match cause {
        Cause::Overridden { kind, severity } => event.fact("type", kind.as_str()).fact("severity", severity.name()),
        _ => event,
    }
}
