//! What a report says: of each control how it stands, why, and what shows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::framework::Framework;
use crate::record::EventRow;

/// How a control stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Everything that can be shown of it is shown.
    Met,
    /// Some of it is shown, or not all of the record was looked at.
    Partly,
    /// Something shows that it does not hold.
    NotMet,
    /// Nothing here shows it, one way or the other.
    CannotBeShown,
}

impl Status {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Partly => "partly",
            Self::NotMet => "not_met",
            Self::CannotBeShown => "cannot_be_shown",
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Partly => "partly",
            Self::NotMet => "not met",
            Self::CannotBeShown => "cannot be shown from here",
        }
    }
}

/// What a framework comes to, of what can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All controls that can be shown are met.
    Shown,
    /// Some are not, or only partly.
    Gaps,
    /// None can be shown.
    NothingShown,
}

/// How many controls stand how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Met.
    pub met: usize,
    /// Partly.
    pub partly: usize,
    /// Not met.
    pub not_met: usize,
    /// Those that cannot be shown, which count neither for nor against.
    pub cannot_be_shown: usize,
}

/// An event that shows something. `desk_record_prove` proves that it is in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventRef {
    /// Its place in the record.
    pub seq: u64,
    /// What happened.
    pub kind: String,
    /// When.
    pub at: String,
    /// Who did it.
    pub actor: String,
    /// To what.
    pub subject: String,
    /// Whether it speaks against the control.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub against: bool,
}

impl EventRef {
    pub(super) fn of(event: &EventRow) -> Self {
        Self { seq: event.seq, kind: event.kind.clone(), at: event.at.clone(), actor: event.actor.clone(), subject: event.subject.clone(), against: false }
    }
}

/// A setting that shows something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingRef {
    /// Its name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Its value; absent where it cannot be seen from here, or the caller may not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What it has to be, in words.
    pub wanted: String,
}

/// What the desk would answer to an act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRef {
    /// The act, in words.
    pub act: String,
    /// Where.
    pub domain: String,
    /// The answer.
    pub answer: String,
    /// The rules that fired, each with its policy and version.
    pub rules: Vec<String>,
    /// Whether that is good.
    pub good: bool,
}

/// What came of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// What it shows where it holds.
    pub shows: String,
    /// What came of it.
    pub status: Status,
    /// Why, in words.
    pub why: String,
    /// Whether its lack alone makes the control only partly met.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub also: bool,
    /// How many events fit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub found: usize,
    /// How many events were looked at for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub looked_at: usize,
    /// Whether there were more than that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Events that show it; of many, those that speak against it and the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRef>,
    /// Settings that show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<SettingRef>,
    /// What the desk would answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeRef>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

/// One control as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlOut {
    /// Its name in the framework.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it asks, in our words.
    pub asks: String,
    /// How it stands.
    pub status: Status,
    /// What of it cannot be shown from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot: Option<String>,
    /// What to do about it, where it is not met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// What came of each check.
    pub checks: Vec<Checked>,
}

/// Where the record stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordOut {
    /// How many events it had.
    pub size: u64,
    /// The signed checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// The desk's public keys.
    pub keys: Vec<String>,
}

/// A report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The agent that it is about.
    pub agent: String,
    /// The framework.
    pub framework: String,
    /// Its title.
    pub title: String,
    /// Which edition of it.
    pub edition: String,
    /// When the report was made.
    pub at: String,
    /// From when on events were looked at.
    pub since: String,
    /// What it comes to, of what can be shown.
    pub verdict: Verdict,
    /// Of the controls that can be shown, the share that is met, in percent; those partly met count half. Absent where none can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<u8>,
    /// How many controls stand how.
    pub counts: Counts,
    /// The controls.
    pub controls: Vec<ControlOut>,
    /// How many events were looked at.
    pub looked_at: usize,
    /// What no program can attest.
    pub cannot: Vec<String>,
    /// Where the record stood.
    pub record: RecordOut,
    /// How to read it.
    pub notice: String,
}

/// How to read a report.
pub(super) const NOTICE: &str = "This says what the record and the settings of this desk show about one agent. It makes nobody compliant: people, contracts, premises and other systems are not seen from here.";

impl Report {
    /// Counts, score and verdict of some controls: only what can be shown counts.
    pub(super) fn weigh(controls: &[ControlOut]) -> (Counts, Option<u8>, Verdict) {
        let mut counts = Counts::default();
        for control in controls {
            match control.status {
                Status::Met => counts.met += 1,
                Status::Partly => counts.partly += 1,
                Status::NotMet => counts.not_met += 1,
                Status::CannotBeShown => counts.cannot_be_shown += 1,
            }
        }
        let shown = counts.met + counts.partly + counts.not_met;
        // Downwards: nothing is rounded up to all.
        let score = (100 * (2 * counts.met + counts.partly)).checked_div(2 * shown).and_then(|score| u8::try_from(score).ok());
        let verdict = match shown {
            0 => Verdict::NothingShown,
            shown if shown == counts.met => Verdict::Shown,
            _ => Verdict::Gaps,
        };
        (counts, score, verdict)
    }

    /// The places of all events that it names, in their order.
    pub fn events(&self) -> Vec<u64> {
        let mut events: Vec<u64> = self.controls.iter().flat_map(|control| &control.checks).flat_map(|check| &check.events).map(|event| event.seq).collect();
        events.sort_unstable();
        events.dedup();
        events
    }

    pub(super) fn titled(framework: &Framework) -> (String, String, String) {
        (framework.id.clone(), framework.title.clone(), framework.edition.clone())
    }
}
