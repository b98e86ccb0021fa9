//! The words of requests: kinds, states, what a new one is made of, and a stored one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::keep::Kept;
use crate::call::{Actor, ActorKind};
use crate::policy::{Act, Decision};
use crate::trust::Trust;
use crate::{Code, Error, Result, hex};

/// What waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// An agent says what it intends.
    Proposal,
    /// An approval that was asked for by name.
    Approval,
    /// Work that is handed to people; the answer is instructions.
    Handoff,
    /// A write over what a person set.
    Edit,
    /// More trust for an agent.
    Promotion,
    /// A change of policy that loosens something.
    Policy,
    /// A plan that changes files.
    Plan,
    /// A tool call that is held until people have seen it.
    ToolCall,
    /// An agent that shall be run by the desk from now on.
    Deploy,
}

impl RequestKind {
    pub(crate) const ALL: [Self; 9] =
        [Self::Proposal, Self::Approval, Self::Handoff, Self::Edit, Self::Promotion, Self::Policy, Self::Plan, Self::ToolCall, Self::Deploy];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proposal => "proposal",
            Self::Approval => "approval",
            Self::Handoff => "handoff",
            Self::Edit => "edit",
            Self::Promotion => "promotion",
            Self::Policy => "policy",
            Self::Plan => "plan",
            Self::ToolCall => "tool_call",
            Self::Deploy => "deploy",
        }
    }

    /// The kind of a stored name.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| unreadable("kind", name))
    }

    /// Whether people may change it before they approve it. The steps of a plan stand elsewhere, bound by a digest.
    pub fn is_editable(self) -> bool {
        matches!(self, Self::Proposal | Self::Approval)
    }

    /// Whether the requester does it and says what came of it; the desk itself does a plan, and sees what comes of a call.
    pub fn is_reported(self) -> bool {
        self.is_act() && !matches!(self, Self::Plan | Self::ToolCall)
    }

    /// Whether only a report tells that exactly what was approved was done. The rest the desk does itself or
    /// sees the end of, or it is an approval in words, with which nothing can be compared.
    pub(crate) fn needs_report(self) -> bool {
        matches!(self, Self::Proposal)
    }

    /// Whether people's answers to it move an agent's trust.
    pub fn moves_trust(self) -> bool {
        matches!(self, Self::Proposal | Self::ToolCall)
    }

    /// Whether an approval gives a grant, which is used up when the act is done. The others happen when they are approved.
    pub fn is_act(self) -> bool {
        matches!(self, Self::Proposal | Self::Approval | Self::Plan | Self::ToolCall)
    }
}

/// How a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits for people. Put off and asked back are views of this.
    Pending,
    /// It may be done.
    Approved,
    /// It must not be done.
    Rejected,
    /// Nobody decided in time.
    Expired,
    /// The requester took it back.
    Cancelled,
    /// A newer request stands in its place.
    Superseded,
    /// It is being done.
    Executing,
    /// It was done.
    Done,
    /// It was tried and did not work.
    Failed,
    /// It was tried, and nobody knows whether it worked.
    Ambiguous,
}

impl State {
    /// All states, in the order of a request's life.
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::Approved,
        Self::Rejected,
        Self::Expired,
        Self::Cancelled,
        Self::Superseded,
        Self::Executing,
        Self::Done,
        Self::Failed,
        Self::Ambiguous,
    ];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
            Self::Executing => "executing",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Ambiguous => "ambiguous",
        }
    }

    /// The state of a stored name.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name).ok_or_else(|| unreadable("state", name))
    }

    /// Whether a request may go from this state to another. Back to pending leads only an approval that was taken back
    /// or stopped before its grant was used, and an outcome that was not known may become known.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Pending => matches!(next, Self::Approved | Self::Rejected | Self::Expired | Self::Cancelled | Self::Superseded),
            Self::Approved => matches!(next, Self::Executing | Self::Pending | Self::Rejected | Self::Cancelled | Self::Superseded),
            Self::Executing => matches!(next, Self::Done | Self::Failed | Self::Ambiguous),
            Self::Ambiguous => matches!(next, Self::Done | Self::Failed),
            Self::Rejected | Self::Expired | Self::Cancelled | Self::Superseded | Self::Done | Self::Failed => false,
        }
    }
}

/// How urgent a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// When there is time.
    Low,
    /// As it comes.
    #[default]
    Normal,
    /// Before normal ones.
    High,
    /// Before everything else.
    Urgent,
}

impl Priority {
    /// The place in the order; the most urgent is 0.
    pub fn rank(self) -> i64 {
        match self {
            Self::Urgent => 0,
            Self::High => 1,
            Self::Normal => 2,
            Self::Low => 3,
        }
    }

    /// The priority of a stored place.
    pub fn from_rank(rank: i64) -> Self {
        match rank {
            0 => Self::Urgent,
            1 => Self::High,
            3 => Self::Low,
            _ => Self::Normal,
        }
    }

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Urgent => "urgent",
        }
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The kind of actor.
    pub kind: ActorKind,
    /// Its id.
    pub id: String,
    /// Whether a credential proved it; of a person, whether they asked themselves, and not a program with a token of theirs.
    pub verified: bool,
}

impl Requester {
    /// The actor of a call.
    pub fn of(actor: &Actor) -> Self {
        Self { kind: actor.kind, id: actor.id.clone(), verified: actor.verified && actor.scopes.is_none() }
    }

    /// An agent by its name.
    pub fn agent(id: impl Into<String>, verified: bool) -> Self {
        Self { kind: ActorKind::Agent, id: id.into(), verified }
    }

    /// Whether this is an agent.
    pub fn is_agent(&self) -> bool {
        self.kind == ActorKind::Agent
    }

    /// Whether there is somebody who can answer a question: the desk itself cannot.
    pub fn can_answer(&self) -> bool {
        self.kind != ActorKind::System
    }

    /// Whether this is a program with a person's token.
    pub fn is_token(&self) -> bool {
        self.kind == ActorKind::Person && !self.verified
    }
}

/// What the requester says for the person who decides. All of it is what somebody wrote, and can be erased.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packet {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// What is there now, where it is known: the fields that the act would change, with their present values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// Whether and how it could be undone, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reversibility: Option<String>,
    /// What the agent had proposed, once a person edited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Value>,
    /// Whatever else a kind of request shows: a handoff's context, a policy's difference, an edit's two values.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub more: Value,
}

/// A request to be made.
#[derive(Clone, Debug)]
pub struct New {
    /// Its id; a new one if not given. Only what is brought in from elsewhere has one.
    pub id: Option<String>,
    /// Its kind.
    pub kind: RequestKind,
    /// Who asks; whoever calls, if not given. Only the desk's own code names another: a promotion is the agent's.
    pub requester: Option<Requester>,
    /// The id of the person who asks for it in the requester's name.
    pub asked_by: Option<String>,
    /// The exact act.
    pub act: Act,
    /// What policy answered. `act` is approved at once, `deny` cannot become a request.
    pub decision: Decision,
    /// A line for the inbox.
    pub title: String,
    /// What the person who decides is told.
    pub packet: Packet,
    /// How sure the requester is, between 0 and 1.
    pub confidence: Option<f64>,
    /// How urgent it is.
    pub priority: Priority,
    /// The id of the person who is asked first.
    pub assignee: Option<String>,
    /// The digest of the schema of the tool that would do it, where there is one.
    pub schema: Option<String>,
    /// The state of what it would change, where the desk can read it: approved is the act on that state.
    pub target: Option<Value>,
    /// After this many seconds without a decision its priority rises and it goes to the owners.
    pub escalate_seconds: Option<i64>,
    /// The request of the same requester in whose place this one stands.
    pub supersedes: Option<String>,
    /// The batch that it belongs to.
    pub batch: Option<String>,
    /// The agent's trust as it was weighed; looked up if not given.
    pub trust: Option<Trust>,
}

impl New {
    /// A request with what every one has; the rest is as usual.
    #[expect(clippy::self_named_constructors, reason = "the type says that it is new, and the constructor that it makes one")]
    pub fn new(kind: RequestKind, title: impl Into<String>, act: Act, decision: Decision) -> Self {
        Self {
            id: None,
            kind,
            requester: None,
            asked_by: None,
            act,
            decision,
            title: title.into(),
            packet: Packet::default(),
            confidence: None,
            priority: Priority::default(),
            assignee: None,
            schema: None,
            target: None,
            escalate_seconds: None,
            supersedes: None,
            batch: None,
            trust: None,
        }
    }

    /// Sends it to the owners after some seconds without a decision. They get as long as anybody had before.
    #[must_use]
    pub fn escalating(mut self, seconds: u32) -> Self {
        let seconds = i64::from(seconds);
        self.escalate_seconds = Some(seconds);
        self.decision.needs.expires_seconds = self.decision.needs.expires_seconds.saturating_add(seconds);
        self
    }
}

/// A stored request. Texts are `None` once they were erased.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: RequestKind,
    /// The stored state; [`Request::state_at`] also knows the time.
    pub state: State,
    /// Who asks.
    pub requester: Requester,
    /// The person who asked for it in the requester's name.
    pub asked_by: Option<String>,
    /// The scope of work.
    pub domain: String,
    /// How urgent it is.
    pub priority: Priority,
    /// What policy answered when it was made: `act`, `suggest` or `escalate`.
    pub mode: String,
    /// `low`, `medium`, `high` or `critical`.
    pub risk: String,
    /// The person who is asked first, or [`OWNERS`].
    pub assignee: Option<String>,
    /// How many people have to approve.
    pub quorum: i64,
    /// Put off until then.
    pub snoozed_until: Option<i64>,
    /// A question to the requester is open since then.
    pub asked_at: Option<i64>,
    /// When it expires.
    pub expires_at: i64,
    /// When it goes to the owners.
    pub escalate_at: Option<i64>,
    /// Since when it has waited too long.
    pub overdue_since: Option<i64>,
    /// When it was made.
    pub created_at: i64,
    /// When anything about it changed last.
    pub updated_at: i64,
    /// When it was decided.
    pub decided_at: Option<i64>,
    /// The person who decided, or `desk` when policy let it pass.
    pub decided_by: Option<String>,
    /// The person who edited it last.
    pub edited_by: Option<String>,
    /// When its outcome was reported.
    pub finished_at: Option<i64>,
    /// Grows with every change.
    pub version: i64,
    /// Grows when earlier votes are void.
    pub round: i64,
    /// The request in whose place it stands.
    pub supersedes: Option<String>,
    /// The batch that it belongs to.
    pub batch: Option<String>,
    /// How sure the requester is, in billionths.
    pub confidence: Option<i64>,
    /// The digest of the policies in force when it was made.
    pub rulebook: String,
    /// SHA-256 over the canonical JSON of `bound`.
    pub digest: Vec<u8>,
    /// A line for the inbox.
    pub title: Option<String>,
    /// The act with its nonce, actor, schema and target, exactly as it was digested.
    pub bound: Option<String>,
    /// What policy answered, as JSON.
    pub decision: Option<String>,
    /// What the person who decides is told, as JSON.
    pub packet: Option<String>,
    /// Why it was decided as it was.
    pub reason: Option<String>,
    /// How the act and the packet lie in the row.
    pub(super) kept: Kept,
}

/// The assignee of what went to the owners.
pub const OWNERS: &str = "role:owner";

/// More than there are microseconds until the year 2255, so that no time reaches into the next group of places.
const PLACES: i64 = 1 << 53;

/// The order of risks; what is not known counts as the highest.
pub(crate) fn grade(risk: &str) -> i64 {
    match risk {
        "low" => 0,
        "medium" => 1,
        "high" => 2,
        _ => 3,
    }
}

impl Request {
    /// The subject of its events.
    pub fn subject(&self) -> String {
        format!("request:{}", self.id)
    }

    /// Where it stands among those that wait, from the lowest up: what is most at stake first, by its risk or, whoever is
    /// waiting for it, by its priority, and of that the newest. A low priority only comes after its equals, so that no
    /// requester hides a risk behind it.
    pub(super) fn place(&self) -> i64 {
        let urgency = match self.priority {
            Priority::Urgent => 3,
            Priority::High => 2,
            Priority::Normal | Priority::Low => 0,
        };
        let behind = 2 * (3 - grade(&self.risk).max(urgency)) + i64::from(self.priority == Priority::Low);
        behind * PLACES - self.created_at
    }

    /// When the request of a place was made, and the place after which those that are less at stake begin.
    pub(super) fn made_at(place: i64) -> (i64, i64) {
        let next = (place.div_euclid(PLACES) + 1) * PLACES;
        (next - place, next)
    }

    /// Whether a person asks for it, for themself or in an agent's name.
    pub(super) fn is_asked_by(&self, person: &str) -> bool {
        self.asked_by.as_deref() == Some(person) || (self.requester.kind == ActorKind::Person && self.requester.id == person)
    }

    /// The digest as it is shown and compared.
    pub fn digest_hex(&self) -> String {
        hex(&self.digest)
    }

    /// How it stands at a moment: what nobody decided in time has expired, also before the desk has told so.
    pub fn state_at(&self, now: i64) -> State {
        if self.state == State::Pending && self.expires_at <= now { State::Expired } else { self.state }
    }

    /// The exact act, unless it was erased.
    pub fn act(&self) -> Result<Act> {
        super::digest::Bound::read(self).map(|bound| bound.act)
    }

    /// What policy answered, unless it was erased.
    pub fn decided(&self) -> Result<Option<Decision>> {
        self.decision.as_deref().map(|text| serde_json::from_str(text).map_err(|_| unreadable("decision", &self.id))).transpose()
    }

    /// What the person who decides is told, unless it was erased.
    pub fn told(&self) -> Result<Packet> {
        self.packet.as_deref().map_or_else(|| Ok(Packet::default()), |text| serde_json::from_str(text).map_err(|_| unreadable("packet", &self.id)))
    }
}

/// How the execution of an act ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Done,
    /// It did not work.
    Failed,
    /// Nobody knows.
    Ambiguous,
}

impl Outcome {
    /// The state that follows.
    pub fn state(self) -> State {
        match self {
            Self::Done => State::Done,
            Self::Failed => State::Failed,
            Self::Ambiguous => State::Ambiguous,
        }
    }
}

/// The answer to whoever wants to do what was approved.
#[derive(Clone, Debug)]
pub enum Begun {
    /// Do exactly this; the grant is used up.
    Go(Box<Permit>),
    /// Do not; the record says why.
    Stopped(Box<Stop>),
}

/// A permission that was just used up.
#[derive(Clone, Debug)]
pub struct Permit {
    /// The request, now executing.
    pub request: Request,
    /// The grant's id.
    pub grant: String,
    /// What to do, with what a person edited.
    pub act: Act,
    /// The decision of today.
    pub decision: Option<Decision>,
}

/// Why an approved act must not be done.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The request as it stands now.
    pub request: Request,
    /// Why.
    pub why: StopReason,
    /// In words, for the agent.
    pub message: String,
    /// The decision of today, where one was taken.
    pub decision: Option<Decision>,
}

/// Why an approved act was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A rule of today forbids it. The request is rejected.
    Forbidden,
    /// A rule of today asks for more than was given. The request waits for people again.
    Stricter,
    /// What it would change is not any more what it was. The request waits for people again.
    TargetChanged,
    /// A row differs from what the record tells. The grant is revoked.
    Tampered,
}

impl StopReason {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Stricter => "stricter",
            Self::TargetChanged => "target_changed",
            Self::Tampered => "tampered",
        }
    }
}

pub(super) fn unreadable(what: &str, value: &str) -> Error {
    Error::new(Code::Internal, format!("a stored {what} of a request is unreadable: {value}"))
}
