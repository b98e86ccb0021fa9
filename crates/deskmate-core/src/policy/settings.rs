//! Settings of the desk's judgement, for the whole desk and for single domains. The names and defaults of `trust`,
//! `authority`, `handoff` and `feedback` are those that users of earlier cowork servers know.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Mode;

/// All settings as they hold in one domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How trust is earned and lost.
    pub trust: TrustSettings,
    /// What agents may do at most, and how often.
    pub authority: AuthoritySettings,
    /// What people's answers do.
    pub feedback: FeedbackSettings,
    /// How work is handed to people.
    pub handoff: HandoffSettings,
    /// When the governance report speaks up.
    pub governance: GovernanceSettings,
}

/// Whether a promotion waits for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Promotion {
    /// A person ratifies it.
    #[default]
    Ratify,
    /// It happens by itself.
    Auto,
}

/// How trust is earned and lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrustSettings {
    /// The score that an agent starts with.
    pub default_level: f64,
    /// Decided proposals after which a promotion is considered.
    pub auto_promote_after: u32,
    /// The share of them that must be approved.
    pub auto_promote_accuracy: f64,
    /// Overrides in a row that demote.
    pub auto_demote_after: u32,
    /// Points lost for each day without any act.
    pub decay_per_day: f64,
    /// The score from which an agent may act alone; it can only raise the bar of 0.8.
    pub autonomous_threshold: f64,
    /// Whether a promotion waits for a person.
    pub promotion: Promotion,
}

impl Default for TrustSettings {
    fn default() -> Self {
        Self {
            default_level: 0.3,
            auto_promote_after: 20,
            auto_promote_accuracy: 0.8,
            auto_demote_after: 3,
            decay_per_day: 0.01,
            autonomous_threshold: 0.7,
            promotion: Promotion::Ratify,
        }
    }
}

/// What agents may do at most, and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuthoritySettings {
    /// The best answer for an agent of whose proposals in the domain nobody has decided any yet.
    pub default_mode: Mode,
    /// Proposals of one agent in one domain within an hour.
    pub volume_cap: u32,
    /// Proposals of one agent in all domains within an hour; not limited if not given.
    pub volume_cap_per_agent: Option<u32>,
    /// Fields that always need a person; a trailing `*` stands for any ending.
    pub high_risk_fields: Vec<String>,
    /// Acts of one agent on one day (UTC); not limited if not given.
    pub calls_per_day: Option<u32>,
    /// Cost units of one agent on one day (UTC); not limited if not given.
    pub cost_per_day: Option<f64>,
    /// Requests of one agent that may be pending at once.
    pub pending_max: u32,
    /// How long a grant is good.
    pub grant_seconds: u32,
    /// How long a request waits before it expires.
    pub request_seconds: u32,
    /// Denied attempts within ten minutes after which the agent's further attempts are put off.
    pub probe_limit: u32,
    /// Personal tokens that may decide over MCP, by the name or id of their owner; none unless named.
    pub token_deciders: Vec<String>,
}

impl Default for AuthoritySettings {
    fn default() -> Self {
        Self {
            default_mode: Mode::Suggest,
            volume_cap: 50,
            volume_cap_per_agent: None,
            high_risk_fields: ["deal_stage", "owner", "commission", "utm_*", "billing_*"].map(str::to_owned).to_vec(),
            calls_per_day: None,
            cost_per_day: None,
            pending_max: 200,
            grant_seconds: 15 * 60,
            request_seconds: 7 * 24 * 3600,
            probe_limit: 10,
            token_deciders: Vec::new(),
        }
    }
}

/// What people's answers do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FeedbackSettings {
    /// Whether an override needs a reason in words.
    pub override_requires_reason: bool,
    /// The types that an override may have.
    pub reason_types: Vec<String>,
    /// The base impact of a type that has no number of its own.
    pub override_trust_impact: f64,
    /// What an approval adds.
    pub approval_trust_impact: f64,
}

impl Default for FeedbackSettings {
    fn default() -> Self {
        let reason_types = ["agent_wrong", "human_preference", "missing_context", "policy_change", "edge_case"].map(str::to_owned).to_vec();
        Self { override_requires_reason: true, reason_types, override_trust_impact: -0.05, approval_trust_impact: 0.02 }
    }
}

/// The form of a handoff's context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextFormat {
    /// Fields.
    #[default]
    Structured,
    /// One text.
    Text,
}

/// How work is handed to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HandoffSettings {
    /// The form of the context packet.
    pub context_format: ContextFormat,
    /// Whether the packet tells why.
    pub include_reasoning: bool,
    /// Whether the packet tells how sure the agent is.
    pub include_confidence: bool,
    /// Whether the packet tells what was tried.
    pub include_attempted: bool,
    /// How long a handoff waits before it is escalated to the owners.
    pub timeout_seconds: u32,
}

impl Default for HandoffSettings {
    fn default() -> Self {
        Self { context_format: ContextFormat::Structured, include_reasoning: true, include_confidence: true, include_attempted: true, timeout_seconds: 3_600 }
    }
}

/// When the governance report speaks up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GovernanceSettings {
    /// A pending request older than this is a slow decision.
    pub slow_decision_seconds: u32,
    /// An ambiguous or unreported execution older than this is left open.
    pub open_outcome_seconds: u32,
    /// This many approvals of one person ...
    pub rubber_stamp_count: u32,
    /// ... within this time are rubber-stamping.
    pub rubber_stamp_seconds: u32,
}

impl Default for GovernanceSettings {
    fn default() -> Self {
        Self { slow_decision_seconds: 24 * 3_600, open_outcome_seconds: 3_600, rubber_stamp_count: 5, rubber_stamp_seconds: 10 }
    }
}
