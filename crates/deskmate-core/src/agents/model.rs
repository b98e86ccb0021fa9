//! The words of agents that the desk runs: what one is made of, how it stands, and a run of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::runner::{Cli, Given, IfInterrupted, Language};
use super::step::Step;
use crate::policy::Policy;
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

    /// Whether it is deployed, paused or not: what runs is what was deployed, and is not changed.
    pub fn is_fixed(self) -> bool {
        matches!(self, Self::Deployed | Self::Paused)
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
    /// A program of the machine, confined: it reaches the desk as this agent, and what it was given.
    Command {
        /// The program and its arguments. No shell reads them.
        command: Vec<String>,
        /// The language of its project, if one was made for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<Language>,
        /// What tries it out: a program and its arguments, in the same folder.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        test: Vec<String>,
        /// Files that each run's own folder begins with.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, String>,
        /// What else it is given.
        #[serde(default)]
        given: Given,
    },
    /// A client of a model, without a terminal. Its own tools ask the desk first, and it has no other servers.
    Cli {
        /// Which one.
        client: Cli,
        /// What it is asked to do. `{{input.NAME}}` and `{{params.NAME}}` stand for values.
        prompt: String,
        /// Where its program is, if it is not on the server's PATH.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<String>,
        /// The model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Files that each run's own folder begins with.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, String>,
        /// What else it is given.
        #[serde(default)]
        given: Given,
    },
}

impl Runner {
    /// Whether it starts a program of the machine.
    pub fn is_program(&self) -> bool {
        !matches!(self, Self::Steps { .. })
    }

    /// Its steps, if it has any.
    pub fn steps(&self) -> &[Step] {
        match self {
            Self::Steps { steps } => steps,
            _ => &[],
        }
    }
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Seconds from its begin to its end. Of steps, waiting for people does not count; of a program everything does.
    pub seconds: u32,
    /// Calls of operations.
    pub calls: u32,
    /// Bytes that it may log.
    pub log_bytes: u32,
    /// Bytes that a program may write to its folder; 256 MiB if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Bytes of memory that a program and all that it starts may hold; 1 GiB if not given, for clients of models 4 GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads that a program may have; 64 if not given, for clients of models 512.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// What its calls at the desk may cost, in the units of mounts and proposals; of claude-code also the US dollars that its model may
    /// cost, which it keeps itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { seconds: 600, calls: 1_000, log_bytes: 1_000_000, disk_bytes: None, memory_bytes: None, processes: None, cost: None }
    }
}

/// Where an attached policy came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A policy of the desk.
    Desk,
    /// A template that is built in.
    Template,
}

/// A policy that holds for an agent, as it was when it was attached. Of a policy of the desk the version in force holds as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// What it says, with the rules that were added for this agent.
    #[schemars(with = "Map<String, Value>")]
    pub policy: Policy,
    /// Its version on the desk; 0 for a template.
    #[serde(default)]
    pub version: i64,
    /// Where it came from.
    pub source: Source,
    /// Why it is there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The names of the rules that were added for this agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<String>,
}

/// Something that an agent needs before it can be deployed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// What is missing, and how to give it.
    pub what: String,
    /// The parameter that it is, if giving that is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// The words that ask for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// What an agent is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What it is for, in the words of whoever asked for it.
    pub task: String,
    /// What it does when it runs.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
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
    /// The system that it was brought in from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
    /// Values that its steps can use as `params.NAME`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// Whether its runs may start other agents.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_start: bool,
    /// What becomes of a run that is left in the middle, because its server ended or was lost: `resume` if not given, of programs `end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_interrupted: Option<IfInterrupted>,
    /// Policies that hold for what it does, beside those that are mapped. They only take away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<Attachment>,
    /// What it needs before it can be deployed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
}

impl Definition {
    /// The same as agents see it: of policies of the desk only the names. Where their bounds are is for people.
    #[must_use]
    pub fn for_agents(&self) -> Self {
        let policies = self.policies.iter().map(|held| match held.source {
            Source::Template => held.clone(),
            Source::Desk => Attachment { policy: Policy { rules: Vec::new(), ..held.policy.clone() }, ..held.clone() },
        });
        Self { policies: policies.collect(), ..self.clone() }
    }

    /// What becomes of a run that is left in the middle.
    pub fn when_interrupted(&self) -> IfInterrupted {
        let (given, default) = match &self.runner {
            Runner::Steps { .. } => (None, IfInterrupted::Resume),
            Runner::Command { given, .. } | Runner::Cli { given, .. } => (given.if_interrupted, IfInterrupted::End),
        };
        self.if_interrupted.or(given).unwrap_or(default)
    }

    /// What it still needs: a parameter that was given is needed no more.
    pub fn open_needs(&self) -> impl Iterator<Item = &Need> {
        let given = |name: &String| self.params.get(name).is_some_and(|value| !value.is_null() && value.as_str() != Some(""));
        self.needs.iter().filter(move |need| !need.param.as_ref().is_some_and(given))
    }
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
    /// It was due and was left out; `error` says why.
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
    /// Its own test was tried out.
    Test,
    /// Somebody tries it for real.
    Trial,
}

impl Cause {
    /// The stable name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Started => "started",
            Self::Deployed => "deployed",
            Self::Test => "test",
            Self::Trial => "trial",
        }
    }

    pub(super) fn from_name(name: &str) -> Result<Self> {
        let all = [Self::Schedule, Self::Started, Self::Deployed, Self::Test, Self::Trial];
        all.into_iter().find(|cause| cause.name() == name).ok_or_else(|| unknown("run with the cause", name))
    }
}
