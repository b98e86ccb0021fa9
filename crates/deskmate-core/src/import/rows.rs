//! The rows of another server's tables.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A table of a cowork server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Table {
    TrustScores,
    Actions,
    Proposals,
    Overrides,
    Handoffs,
    Timeline,
}

impl Table {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TrustScores => "trust_scores",
            Self::Actions => "actions",
            Self::Proposals => "proposals",
            Self::Overrides => "overrides",
            Self::Handoffs => "handoffs",
            Self::Timeline => "timeline",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrustRow {
    pub(super) agent_id: String,
    pub(super) domain: String,
    pub(super) score: f64,
    #[serde(default)]
    pub(super) accuracy: f64,
    #[serde(default)]
    pub(super) total_actions: i64,
    #[serde(default)]
    pub(super) approved_actions: i64,
    #[serde(default)]
    pub(super) overridden_actions: i64,
    #[serde(default)]
    pub(super) consecutive_overrides: i64,
    pub(super) last_updated: String,
}

/// A proposal, with what its action says of who proposed what.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProposalRow {
    pub(super) id: String,
    #[serde(default)]
    pub(super) action_id: Option<String>,
    /// From the action; absent where that is missing.
    #[serde(default)]
    pub(super) agent_id: Option<String>,
    #[serde(default)]
    pub(super) domain: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) reasoning: Option<String>,
    #[serde(default)]
    pub(super) confidence: Option<f64>,
    pub(super) proposed_change: Value,
    #[serde(default)]
    pub(super) trust_at_proposal: Option<f64>,
    #[serde(default)]
    pub(super) threshold_required: Option<f64>,
    #[serde(default, deserialize_with = "flag")]
    pub(super) auto_approved: bool,
    #[serde(default)]
    pub(super) human_decision: Option<String>,
    #[serde(default)]
    pub(super) human_reason: Option<String>,
    #[serde(default)]
    pub(super) decided_at: Option<String>,
    pub(super) created_at: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HandoffRow {
    pub(super) id: String,
    pub(super) agent_id: String,
    pub(super) domain: String,
    pub(super) reason: String,
    #[serde(default)]
    pub(super) confidence_at_handoff: Option<f64>,
    #[serde(default)]
    pub(super) context_packet: Value,
    #[serde(default)]
    pub(super) attempted_actions: Value,
    #[serde(default)]
    pub(super) resolution: Option<String>,
    #[serde(default)]
    pub(super) resolved_at: Option<String>,
    #[serde(default)]
    pub(super) instructions: Option<String>,
    #[serde(default, deserialize_with = "flag")]
    pub(super) hand_back: bool,
    #[serde(default, deserialize_with = "flag")]
    pub(super) instructions_read: bool,
    pub(super) created_at: String,
}

/// SQLite keeps truth as 0 or 1.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Bool(value) => value,
        Value::Number(number) => number.as_i64() != Some(0),
        _ => false,
    })
}

/// A text that holds JSON is read as what it means; any other text stays a text.
pub(super) fn unpacked(value: Value) -> Value {
    match value {
        Value::String(text) => crate::call::parse_strict(text.as_bytes()).unwrap_or(Value::String(text)),
        value => value,
    }
}

/// A column that holds a text.
pub(super) fn text<'r>(row: &'r Map<String, Value>, name: &str) -> Option<&'r str> {
    row.get(name).and_then(Value::as_str)
}
