//! The words of agents that the desk runs: what one is made of, how it stands, and a run of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::step::Step;
use crate::{Code, Error, Result};

/// How an agent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It was made and does nothing yet.
    Draft,
    /// It runs when it is due, and when somebody starts it.
    Deployed,
    /// It was deployed, and waits until somebody lets it go on.
    Paused,
    /// It was deployed, and is not any more.
    Stopped,
}

impl Status {
    const ALL: [Self; 4] = [Self::Draft, Self::Deployed, Self::Paused, Self::Stopped];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Deployed => "deployed",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
        }
    }

    pub(super) fn from_name(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name).ok_or_else(|| unknown("status", name))
    }
}

fn unknown(what: &str, value: &str) -> Error {
    Error::new(Code::Internal, format!("an agent has the {what} {value}, which this version does not know"))
}

/// What an agent does when it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Runner {
    /// Steps, one after another: operations of the desk, and what passes values between them. No model is needed.
    Steps {
        /// The steps.
        steps: Vec<Step>,
    },
}

impl Default for Runner {
    fn default() -> Self {
        Self::Steps { steps: Vec::new() }
    }
}

/// When an agent runs by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Five fields, or six with seconds first.
    pub cron: String,
    /// An IANA time zone; UTC if not given.
    #[serde(default = "utc")]
    pub time_zone: String,
    /// Each run is put off by up to so many seconds, always the same ones for the same agent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_seconds: u32,
    /// What happens to moments that went by while the desk was away.
    #[serde(default)]
    pub missed: IfMissed,
    /// Whether a run may begin while the one before is still under way.
    #[serde(default)]
    pub overlap: bool,
}

fn utc() -> String {
    "UTC".to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// What happens to moments that went by while the desk was away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfMissed {
    /// Nothing: the next moment counts.
    #[default]
    Skip,
    /// One run makes up for all of them.
    CatchUp,
}

/// What a run may use up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Seconds from its begin to its end; waiting for people does not count.
    pub seconds: u32,
    /// Calls of operations.
    pub calls: u32,
    /// Bytes that it may log.
    pub log_bytes: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { seconds: 600, calls: 1_000, log_bytes: 1_000_000 }
    }
}

/// What an agent is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What it is for, in the words of whoever asked for it.
    pub task: String,
    /// What it does when it runs.
    #[serde(default)]
    pub runner: Runner,
    /// When it runs by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Timing>,
    /// Whether deploying it waits for people whatever the trust.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval_required: bool,
    /// What a run may use up.
    #[serde(default)]
    pub budget: Budget,
    /// The template that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Values that its steps can use as `params.NAME`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// Whether its runs may start other agents.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_start: bool,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It waits for a worker.
    Queued,
    /// It is under way.
    Running,
    /// It did all that it was for.
    Done,
    /// It did not.
    Failed,
    /// Somebody stopped it.
    Stopped,
    /// Nobody knows whether its last step was done.
    Ambiguous,
    /// It was due while the one before was still under way, and was left out.
    Skipped,
}

impl RunState {
    const ALL: [Self; 7] = [Self::Queued, Self::Running, Self::Done, Self::Failed, Self::Stopped, Self::Ambiguous, Self::Skipped];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Ambiguous => "ambiguous",
            Self::Skipped => "skipped",
        }
    }

    pub(super) fn from_name(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name).ok_or_else(|| unknown("run in the state", name))
    }

    /// Whether nothing more happens.
    pub fn is_end(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// Why a run was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    /// Its moment had come.
    Schedule,
    /// Somebody started it.
    Started,
    /// It was deployed, and began at once.
    Deployed,
}

impl Cause {
    /// The stable name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Started => "started",
            Self::Deployed => "deployed",
        }
    }

    pub(super) fn from_name(name: &str) -> Result<Self> {
        let all = [Self::Schedule, Self::Started, Self::Deployed];
        all.into_iter().find(|cause| cause.name() == name).ok_or_else(|| unknown("run with the cause", name))
    }
}
