//! What people are told about, and which events say it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::Item;
use crate::format_time;
use crate::record::EventRow;

/// What a channel can tell about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Proposals and approvals that wait, were answered, went to the owners or expired.
    Requests,
    /// Work that an agent handed to people.
    Handoffs,
    /// An agent's change over what a person set.
    Edits,
    /// A change of policy that waits.
    Policies,
    /// An agent was promoted or demoted, or a promotion waits.
    Trust,
    /// Something that was approved failed, or nobody knows whether it worked.
    Outcomes,
    /// Signing in was locked, somebody changed rows behind the desk's back, or somebody decided alone what needs several people.
    Security,
    /// An agent was paused, or may go on.
    Pauses,
    /// A message that somebody sent to see whether it arrives.
    Test,
}

/// The kinds of events that may be worth a message. The others are passed over without reading them.
pub const RINGING: &[&str] = &[
    "request.created",
    "request.answered",
    "request.delegated",
    "request.escalated",
    "request.undone",
    "request.stopped",
    "request.expired",
    "request.finished",
    "trust.changed",
    "pause.set",
    "pause.lifted",
    "person.locked",
    "grant.refused",
    "break_glass.used",
    "notification.reminded",
];

/// Something worth telling.
#[derive(Clone, Debug)]
pub(super) struct News {
    /// Whether it is urgent.
    pub(super) urgent: bool,
    /// What is told.
    pub(super) item: Item,
    /// To whom a request was given.
    pub(super) assignee: Option<String>,
    /// The person who asks, if a person does, also in an agent's name.
    pub(super) requester: Option<String>,
    /// People who are told by name: those to whom it goes now, or who were passed over.
    pub(super) told: Vec<String>,
}

impl News {
    /// Whether somebody decided alone: then everybody who was passed over is told, whatever else they want to hear of.
    pub(super) fn is_alarm_for(&self, person: &str) -> bool {
        self.item.event == "break_glass.used" && self.told.iter().any(|told| told == person)
    }
}

/// What an event is worth telling, if anything.
pub(super) fn classify(event: &EventRow) -> Option<News> {
    let fact = |name: &str| event.facts.get(name).and_then(Value::as_str);
    let mut state = fact("state");
    let (topic, urgent) = match event.kind.as_str() {
        "trust.changed" => {
            state = Some(trust_step(event)?);
            (Topic::Trust, false)
        }
        "pause.set" | "pause.lifted" => (Topic::Pauses, false),
        "person.locked" | "grant.refused" | "break_glass.used" => (Topic::Security, true),
        kind if kind.starts_with("request.") || kind == "notification.reminded" => of_request(event)?,
        _ => return None,
    };
    let expires_at = event.facts.get("expires_at").and_then(Value::as_i64).filter(|_| state == Some("pending"));
    let item = Item {
        seq: event.seq,
        event: event.kind.clone(),
        at: event.at.clone(),
        subject: event.subject.clone(),
        topic,
        domain: fact("domain").map(str::to_owned),
        request_kind: fact("request_kind").map(str::to_owned),
        agent: fact("requester").or_else(|| fact("agent")).map(str::to_owned),
        risk: fact("risk").map(str::to_owned),
        state: state.map(str::to_owned),
        expires_at: expires_at.map(format_time),
        title: None,
        link: None,
    };
    let requester = fact("asked_by").or_else(|| fact("requester").filter(|_| fact("requester_kind") == Some("person"))).map(str::to_owned);
    let named = ["told", "passed_over"].into_iter().filter_map(|name| event.facts.get(name)?.as_array()).flatten();
    let told = named.filter_map(Value::as_str).map(str::to_owned).collect();
    Some(News { urgent, item, assignee: fact("assignee").map(str::to_owned), requester, told })
}

/// Whether an agent's trust went up or down by a step; every answer moves it a little, and that is no news.
fn trust_step(event: &EventRow) -> Option<&'static str> {
    if event.facts.get("demoted") == Some(&Value::Bool(true)) {
        return Some("demoted");
    }
    (event.facts.get("cause").and_then(Value::as_str) == Some("promoted")).then_some("promoted")
}

fn of_request(event: &EventRow) -> Option<(Topic, bool)> {
    let fact = |name: &str| event.facts.get(name).and_then(Value::as_str).unwrap_or_default();
    let urgent = event.facts.get("rank").and_then(Value::as_i64) == Some(0);
    let topic = match fact("request_kind") {
        "handoff" => Topic::Handoffs,
        "edit" => Topic::Edits,
        "policy" => Topic::Policies,
        "promotion" => Topic::Trust,
        _ => Topic::Requests,
    };
    match (event.kind.as_str(), fact("state")) {
        ("request.finished", "failed" | "ambiguous") => Some((Topic::Outcomes, urgent)),
        // Whatever brought it back, a request that is pending waits for people.
        ("request.expired", _)
        | (
            "request.created" | "request.answered" | "request.delegated" | "request.escalated" | "request.undone" | "request.stopped" | "notification.reminded",
            "pending",
        ) => Some((topic, urgent)),
        _ => None,
    }
}
