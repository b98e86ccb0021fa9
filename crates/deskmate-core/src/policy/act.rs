//! What goes into a decision and what comes out of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Criterion;
use crate::trust::Points;

/// An intended act, exactly as it would be done. Its canonical JSON is what a request's digest covers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// The verb that rules match: `propose`, later `file.write`, `tool.call`, `agent.run`, `board.write`.
    pub kind: String,
    /// The operation or tool that would do it.
    pub tool: String,
    /// The scope of work, such as `crm.deals`.
    pub domain: String,
    /// Where it would happen, such as `production`; empty if nobody said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub environment: String,
    /// What would be done, in a word or two.
    pub action: String,
    /// To what.
    pub target: String,
    /// The field that the agent says it changes. Rules look at every changed path, not only at this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The whole change, or the arguments of the call.
    pub arguments: Value,
    /// What it would cost, in millionths of a unit.
    #[serde(default)]
    pub cost: i64,
    /// Where its inputs came from that nobody vouches for, such as `web` or `mail`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taint: Vec<String>,
    /// Whether a tool is called: agents call tools far more often than they propose, so other caps hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub call: bool,
    /// What it is based on. `None` where nobody is asked for it: only proposals are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criteria: Option<Vec<Criterion>>,
}

/// What the desk answers to an intended act. Earlier ones are more restrictive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It must not be done.
    Deny,
    /// A person takes it over or decides.
    Escalate,
    /// A person decides.
    Suggest,
    /// It may be done alone.
    Act,
}

impl Mode {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Escalate => "escalate",
            Self::Suggest => "suggest",
            Self::Act => "act",
        }
    }
}

/// Who would act, as far as a decision cares.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The agent.
    pub agent: String,
    /// Whether its credential proved it.
    pub verified: bool,
    /// Whether it, or everybody, is paused.
    pub paused: bool,
    /// Its score in the domain after decay.
    pub score: Points,
    /// How many of its proposals in the domain people decided.
    pub decided: i64,
    /// Whether a person set what the act would overwrite.
    pub over_a_persons_edit: bool,
    /// The person's word, given before, that stands in for trust here: a request's id or a rule. It lifts only what trust
    /// alone would hold, never a rule, a limit or a high-risk field.
    pub waived_by: Option<String>,
    /// Policies that hold for this agent alone, beside those that are mapped.
    pub attached: Option<std::sync::Arc<super::Attached>>,
}

/// What the variables of conditions begin with that are [`Counters`]; the counter's name follows.
pub(crate) const COUNTERS: &str = "counters.";
/// The argument that has the paths that an act is about, and the one that says whether there are more.
pub(crate) const PATHS: &str = "paths";
pub(crate) const PATHS_CUT: &str = "paths_cut";

/// What an agent used up and has waiting; only what the rulebook asks for is filled in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Counters {
    /// Acts in this domain in the last minute, hour and on this day (UTC).
    pub calls_minute: i64,
    /// See `calls_minute`.
    pub calls_hour: i64,
    /// See `calls_minute`.
    pub calls_day: i64,
    /// Acts in all domains in the last hour.
    pub calls_hour_all: i64,
    /// Acts in all domains on this day (UTC).
    pub calls_day_all: i64,
    /// How many of the acts in this domain in the last hour were calls of tools: these have a cap of their own.
    pub called_hour: i64,
    /// The same in all domains.
    pub called_hour_all: i64,
    /// Cost on this day in all domains, in millionths of a unit.
    pub cost_day: i64,
    /// Acts denied on this day in all domains.
    pub denied_day: i64,
    /// Requests of this agent that are pending.
    pub pending: i64,
}

/// Which counters the use of an act is still in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StillIn {
    /// Those of the last minute.
    pub minute: bool,
    /// Those of the last hour.
    pub hour: bool,
    /// Those of this day.
    pub day: bool,
}

impl Counters {
    /// As the record tells of them, by their names: those of the last minute only where they were counted.
    pub(crate) fn told(&self, minute: bool) -> Value {
        let mut told = json!(self);
        if let Some(told) = told.as_object_mut().filter(|_| !minute) {
            told.remove("calls_minute");
        }
        told
    }

    /// Without the use of an act that was already taken, so that its execution does not count it twice. What it has left
    /// since is not taken off: that would be another act's use.
    #[must_use]
    pub fn without(mut self, still: StillIn, cost: i64) -> Self {
        let take = |count: &mut i64, is_in: bool| *count = (*count - i64::from(is_in)).max(0);
        take(&mut self.calls_minute, still.minute);
        for count in [&mut self.calls_hour, &mut self.calls_hour_all] {
            take(count, still.hour);
        }
        for count in [&mut self.calls_day, &mut self.calls_day_all] {
            take(count, still.day);
        }
        if still.day {
            self.cost_day = self.cost_day.saturating_sub(cost).max(0);
        }
        self
    }
}

/// What a rule does when it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing is in its way.
    Allow,
    /// It must not be done.
    Deny,
    /// People decide first.
    RequireApproval,
    /// It is noted.
    Log,
    /// Named paths are hidden from what is shown and kept.
    Redact,
}

/// A policy at a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRef {
    /// Its name.
    pub policy: String,
    /// Its version; 0 for what is built in.
    pub version: i64,
}

/// A rule that fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The rule's id: `CONSTRAINT_FIELD` for a field constraint, its name for a general rule.
    pub rule_id: String,
    /// The policy it is in.
    pub policy: String,
    /// That policy's version; 0 for what is built in.
    pub version: i64,
    /// The changed path or field that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What it does.
    pub effect: Effect,
    /// `info`, `warning`, `hard_stop`, `high` or `critical`.
    pub severity: String,
    /// Why, for people and agents alike.
    pub reason: String,
    /// What the agent could do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternative: Option<String>,
    /// Whether it fired because it could not be evaluated.
    #[serde(default)]
    pub failed: bool,
}

/// One of the things over which the minimum was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// `trust`, `policy`, `mapping`, `high_risk`, `unverified`, `pause`, `limit`, `edit`, `criteria` or `default_mode`.
    pub source: String,
    /// The best that this alone would allow.
    pub mode: Mode,
    /// In words.
    pub text: String,
    /// What would change it; for people only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_change: Option<String>,
}

/// What a request made from this decision needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Needs {
    /// How many people have to approve.
    pub quorum: u32,
    /// Who may: names or ids of people; empty is everybody whose role covers the domain.
    pub approvers: Vec<String>,
    /// How long a grant is good, in seconds.
    pub grant_seconds: i64,
    /// How long the request waits, in seconds.
    pub expires_seconds: i64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The answer in a word.
    pub mode: Mode,
    /// Whether a mapping names this agent and domain.
    pub mapping_found: bool,
    /// The policies that were applied.
    pub policies: Vec<PolicyRef>,
    /// The digest of everything that was in force.
    pub rulebook: String,
    /// How many rules were looked at.
    pub rules_checked: u32,
    /// The rules that fired.
    pub hits: Vec<Hit>,
    /// Whether a changed path or the declared field is high-risk by the desk's own list, or the change is a text that may hold one.
    pub high_risk_field: bool,
    /// `low`, `medium`, `high` or `critical`.
    pub risk: String,
    /// What the minimum was taken over, the most restrictive first.
    pub reasons: Vec<Reason>,
    /// What a request needs.
    pub needs: Needs,
    /// Places in the arguments that are hidden, as JSON pointers.
    pub redact: Vec<String>,
    /// The fields that are hidden wherever they are shown or told, as patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hides: Vec<String>,
    /// The person's word that stands in for trust, if there is one: the request with which it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waived_by: Option<String>,
    /// What the agent had used up, where a rule may ask for it: for the record, which tells of it beside the answer.
    #[serde(skip)]
    pub counters: Option<Value>,
}

impl Decision {
    /// Rules that forbid it.
    pub fn hard_stops(&self) -> impl Iterator<Item = &Hit> {
        self.hits.iter().filter(|hit| hit.effect == Effect::Deny)
    }

    /// Rules that fired without forbidding it.
    pub fn warnings(&self) -> impl Iterator<Item = &Hit> {
        self.hits.iter().filter(|hit| matches!(hit.effect, Effect::RequireApproval | Effect::Log))
    }
}
