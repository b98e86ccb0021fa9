//! Every number of a change, as facts of an event, and back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Points;
use super::rows::{Of, Trust};
use super::rules::{Known, Moved, Rates, Severity, State};
use crate::record::Event;

/// Which row is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub(super) enum Cause {
    Approved,
    Overridden {
        #[serde(rename = "type")]
        kind: String,
        severity: Severity,
    },
    TakenBack,
    Promoted {
        target: Points,
    },
    NotPromoted,
    Imported,
}

/// The facts of a proposal: enough to recompute the row, and no more, because proposals are many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Proposed {
    #[serde(flatten)]
    pub(super) key: Key,
    pub(super) start: Points,
    pub(super) decay_per_day: Points,
    pub(super) score: Points,
    pub(super) proposals: i64,
}

/// The facts of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Changed {
    #[serde(flatten)]
    pub(super) key: Key,
    #[serde(flatten)]
    pub(super) cause: Cause,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) confidence: Option<Points>,
    #[serde(flatten)]
    pub(super) numbers: Numbers,
    pub(super) rates: ToldRates,
}

/// What a change did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Numbers {
    pub(super) previous: Points,
    pub(super) impact: Points,
    pub(super) new: Points,
    pub(super) demoted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) promotion_due: Option<Points>,
    pub(super) after: Counted,
}

/// The counters after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counted {
    proposals: i64,
    approved: i64,
    overridden: i64,
    streak: i64,
    demoted: bool,
    changes: i64,
    decided_since: i64,
    approved_since: i64,
    promoting: bool,
    confidence_sum: i64,
    confidence_count: i64,
    brier_sum: i64,
    updated_at: i64,
}

/// The rates that a change was made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ToldRates {
    start: Points,
    decay_per_day: Points,
    approval: Points,
    custom_override: Points,
    demote_after: i64,
    promote_after: i64,
    promote_accuracy: Points,
}

impl Numbers {
    pub(super) fn of(moved: &Moved) -> Self {
        let state = &moved.state;
        let after = Counted {
            proposals: state.proposals,
            approved: state.approved,
            overridden: state.overridden,
            streak: state.streak,
            demoted: state.demoted,
            changes: state.changes,
            decided_since: state.decided_since,
            approved_since: state.approved_since,
            promoting: state.promoting,
            confidence_sum: state.confidence_sum,
            confidence_count: state.confidence_count,
            brier_sum: state.brier_sum,
            updated_at: state.updated_at,
        };
        let Moved { previous, impact, demoted, promotion_due, .. } = *moved;
        Self { previous, impact, new: state.score, demoted, promotion_due, after }
    }

    /// What an import brought: its numbers are facts of their own, nothing they could be recomputed from.
    pub(super) fn known(&self) -> Known {
        let Counted { proposals, approved, overridden, streak, updated_at, .. } = self.after;
        Known { score: self.new, proposals, approved, overridden, streak, updated_at }
    }
}

impl ToldRates {
    fn of(rates: &Rates) -> Self {
        let Rates { start, decay_per_day, approval, custom_override, demote_after, promote_after, promote_accuracy, .. } = *rates;
        Self { start, decay_per_day, approval, custom_override, demote_after, promote_after, promote_accuracy }
    }

    pub(super) fn rates(&self) -> Rates {
        let Self { start, decay_per_day, approval, custom_override, demote_after, promote_after, promote_accuracy } = *self;
        Rates { start, decay_per_day, approval, custom_override, demote_after, promote_after, promote_accuracy, promote_alone: false, act_from: Points::ACT }
    }
}

impl Proposed {
    /// The rates that fading needs; a proposal moves nothing else.
    pub(super) fn rates(&self) -> Rates {
        let told = ToldRates {
            start: self.start,
            decay_per_day: self.decay_per_day,
            approval: Points::ZERO,
            custom_override: Points::ZERO,
            demote_after: i64::MAX,
            promote_after: i64::MAX,
            promote_accuracy: Points::ONE,
        };
        told.rates()
    }

    pub(super) fn fits(&self, state: &State) -> bool {
        self.score == state.score && self.proposals == state.proposals
    }
}

/// What the event of a proposal says of trust.
pub(super) fn proposed(key: &Key, moved: &Moved, rates: &Rates) -> Value {
    let Rates { start, decay_per_day, .. } = *rates;
    let told = Proposed { key: key.clone(), start, decay_per_day, score: moved.state.score, proposals: moved.state.proposals };
    json!(told)
}

/// Adds what the event of a change says.
pub(super) fn changed(mut event: Event, key: &Key, cause: &Cause, of: Of<'_>, moved: &Moved, rates: &Rates) -> Event {
    let told = Changed {
        key: key.clone(),
        cause: cause.clone(),
        request: of.request.map(str::to_owned),
        confidence: of.confidence,
        numbers: Numbers::of(moved),
        rates: ToldRates::of(rates),
    };
    if let Value::Object(facts) = json!(told) {
        for (name, value) in facts {
            event = event.fact(&name, value);
        }
    }
    event
}

/// Reads facts back.
pub(super) fn read<T: for<'de> Deserialize<'de>>(facts: impl IntoIterator<Item = (String, Value)>) -> Option<T> {
    serde_json::from_value(Value::Object(facts.into_iter().collect::<Map<_, _>>())).ok()
}
