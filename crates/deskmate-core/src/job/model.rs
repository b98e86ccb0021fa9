//! The words of the queue: states, priorities, and what goes in and comes out of each step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{Actor, ActorKind};
use crate::limits::JOB_ATTEMPTS_MAX;
use crate::{Code, Error, Result};

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits for its time or for a worker.
    Waiting,
    /// A worker runs it under a lease.
    Running,
    /// It did what it was for.
    Done,
    /// It did not, and is not tried again by itself.
    Failed,
    /// Nobody knows whether it did: somebody has to look.
    Ambiguous,
    /// It was stopped before it was done.
    Cancelled,
}

impl State {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Ambiguous => "ambiguous",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more happens by itself.
    pub fn is_end(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }

    pub(super) fn from_name(name: &str) -> Result<Self> {
        let all = [Self::Waiting, Self::Running, Self::Done, Self::Failed, Self::Ambiguous, Self::Cancelled];
        all.into_iter().find(|state| state.name() == name).ok_or_else(|| unknown("state", name))
    }
}

/// What runs first. There are few, because a claim looks at each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Somebody waits for it.
    Urgent,
    /// The usual.
    #[default]
    Normal,
    /// Whenever there is nothing else to do.
    Background,
}

impl Priority {
    /// All, in the order in which they run.
    pub const ALL: [Self; 3] = [Self::Urgent, Self::Normal, Self::Background];

    /// The stored number; a lower one runs first.
    pub(super) fn rank(self) -> i64 {
        match self {
            Self::Urgent => 0,
            Self::Normal => 1,
            Self::Background => 2,
        }
    }

    pub(super) fn from_rank(rank: i64) -> Result<Self> {
        Self::ALL.into_iter().find(|priority| priority.rank() == rank).ok_or_else(|| unknown("priority", &rank.to_string()))
    }
}

/// What happens to a job whose worker gave no sign of life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfLost {
    /// It is tried again: its work can be done twice without harm.
    #[default]
    Again,
    /// It ends as ambiguous: it may have reached the world, and doing it twice would be worse than asking.
    Ambiguous,
}

impl IfLost {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Again => "again",
            Self::Ambiguous => "ambiguous",
        }
    }

    /// What is not known is not done twice.
    pub(super) fn from_name(name: &str) -> Self {
        if name == "again" { Self::Again } else { Self::Ambiguous }
    }
}

fn unknown(what: &str, value: &str) -> Error {
    Error::new(Code::Internal, format!("a job has the {what} {value}, which this version does not know"))
}

/// For whom a job runs, and who may see it besides people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The kind of actor.
    pub kind: ActorKind,
    /// Its id.
    pub id: String,
}

impl Owner {
    /// Whether the desk works for itself.
    pub fn is_desk(&self) -> bool {
        self.kind == ActorKind::System
    }

    /// Whether this is the actor's own. An agent and a person of the same name are two.
    pub(super) fn is(&self, actor: &Actor) -> bool {
        self.kind == actor.kind && self.id == actor.id
    }
}

impl From<&Actor> for Owner {
    fn from(actor: &Actor) -> Self {
        Self { kind: actor.kind, id: actor.id.clone() }
    }
}

/// That a worker holds a job: with this it writes down what it does besides its reports.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Which job.
    pub job: String,
    /// Who works on it.
    pub worker: String,
    /// Under which lease.
    pub fence: i64,
}

/// A job to be enqueued.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// What kind of work, for example `notification.deliver`: the worker that knows this name runs it.
    pub kind: String,
    /// What the worker is given.
    pub input: Value,
    /// What runs first.
    pub priority: Priority,
    /// Not before this moment; now if not given.
    pub run_at: Option<i64>,
    /// While a job of this kind with this key waits or runs, there is no second one.
    pub unique_key: Option<String>,
    /// How often it is tried.
    pub attempts_max: i64,
    /// For whom it runs; the actor of the call if not given.
    pub owner: Option<Owner>,
    /// What happens when its worker is lost.
    pub if_lost: IfLost,
    /// Where it may be done; empty for anywhere. Only who asks for this place is given it.
    pub place: String,
}

impl NewJob {
    /// A job that runs as soon as it can, as often as jobs are tried, for whoever acts.
    pub fn new(kind: impl Into<String>, input: Value) -> Self {
        Self {
            kind: kind.into(),
            input,
            priority: Priority::default(),
            run_at: None,
            unique_key: None,
            attempts_max: JOB_ATTEMPTS_MAX,
            owner: None,
            if_lost: IfLost::default(),
            place: String::new(),
        }
    }
}

/// A job in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// Its id.
    pub job: String,
    /// Whether it is new; if not, it was there under the same unique key.
    pub created: bool,
}

/// A job that a worker has taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// Its id.
    pub job: String,
    /// What kind of work.
    pub kind: String,
    /// What to do.
    pub input: Value,
    /// Where an earlier attempt got to.
    pub step: Option<Value>,
    /// Which attempt this is, counted from 1.
    pub attempt: i64,
    /// How often it is tried.
    pub attempts_max: i64,
    /// The fence of the lease; every report shows it.
    pub fence: i64,
    /// When the lease ends without a sign of life.
    pub expires_at: i64,
    /// Whether somebody wants it to stop.
    pub cancel_requested: bool,
}

/// The answer to a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Whether somebody wants the job to stop.
    pub cancel_requested: bool,
    /// When the lease ends without a further sign of life.
    pub expires_at: i64,
}

/// How far a job has come, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// How much of it is done, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// What it does right now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With a result.
    Done(Value),
    /// With an error.
    Failed {
        /// What went wrong.
        error: String,
        /// Whether trying again can help.
        retry: bool,
    },
    /// With an error, and somebody outside asked not to be tried again too soon.
    PutOff {
        /// What went wrong.
        error: String,
        /// How long to wait at least. Of a longer time only the bound is kept.
        by: std::time::Duration,
    },
    /// It stopped because somebody asked for it.
    Cancelled,
    /// It is not known whether the work was done.
    Ambiguous {
        /// What is not known, and where to look.
        what: String,
    },
}

/// A job that was taken from a lost worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// Its id.
    pub job: String,
    /// The attempt that was lost.
    pub attempt: i64,
    /// The state that it is in now.
    pub state: State,
}

/// What one slice of retention deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// How many jobs.
    pub jobs: u64,
    /// Whether there may be more.
    pub more: bool,
}
