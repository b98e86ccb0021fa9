//! What was taken, changed or refused, and why.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was taken as it was.
    Taken,
    /// It was taken in another form.
    Changed,
    /// It was not taken.
    Refused,
    /// It was here already.
    Known,
}

/// One thing and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// What: `agent sales-agent`, `trust.default_level`, `proposal ID`.
    pub what: String,
    /// What became of it.
    pub outcome: Outcome,
    /// Why, where that is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What a dry run would have written so far, as far as later rows are judged by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoFar {
    /// The agents that it would have registered.
    #[serde(default)]
    pub agents: BTreeSet<String>,
    /// How many requests of each agent it would have opened.
    #[serde(default)]
    pub opened: BTreeMap<String, i64>,
}

impl SoFar {
    /// Whether it would have written nothing of that.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What was brought in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How many of each kind were taken, changed, refused or known.
    pub counts: BTreeMap<String, BTreeMap<String, u64>>,
    /// Each thing that is not merely a row of history, and each row that was not simply taken.
    pub entries: Vec<Entry>,
    /// What a dry run would have written so far. Give it with the next call of the same dry run.
    #[serde(default, skip_serializing_if = "SoFar::is_empty")]
    pub so_far: SoFar,
}

impl Report {
    /// An empty report.
    pub fn new(dry_run: bool) -> Self {
        Self { dry_run, ..Self::default() }
    }

    /// Counts something.
    pub fn count(&mut self, kind: &str, outcome: Outcome) {
        let name = match outcome {
            Outcome::Taken => "taken",
            Outcome::Changed => "changed",
            Outcome::Refused => "refused",
            Outcome::Known => "known",
        };
        *self.counts.entry(kind.to_owned()).or_default().entry(name.to_owned()).or_default() += 1;
    }

    /// Counts something and lists it.
    pub fn note(&mut self, kind: &str, what: impl Into<String>, outcome: Outcome, why: Option<String>) {
        self.count(kind, outcome);
        self.entries.push(Entry { what: what.into(), outcome, why });
    }

    /// Adds another report to this one.
    pub fn add(&mut self, other: Self) {
        for (kind, counts) in other.counts {
            let own = self.counts.entry(kind).or_default();
            for (outcome, count) in counts {
                *own.entry(outcome).or_default() += count;
            }
        }
        self.entries.extend(other.entries);
    }

    /// Whether anything was taken.
    pub fn did_anything(&self) -> bool {
        self.counts.values().any(|counts| counts.iter().any(|(outcome, count)| *count > 0 && matches!(outcome.as_str(), "taken" | "changed")))
    }
}
