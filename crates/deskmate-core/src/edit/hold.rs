//! An agent's write over what a person set waits for a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fields::Change;
use crate::Result;
use crate::call::{Cx, PageIn};
use crate::gateway::taint;
use crate::policy::{Act, Decision, Mode};
use crate::record::{Event, Kind};
use crate::request::{self, Bound, New, Packet, Request, RequestKind, Requester, State};

/// An agent asked again for what waits.
pub(super) const ASKED_AGAIN: Kind = Kind { name: "edit.asked_again", says: "An agent asked again for a change that already waits for a person." };

/// How many of an agent's newest pending requests are looked at for one about the same.
const LOOKED_MAX: u32 = 20;

/// What a held write is about.
#[derive(Clone, Debug)]
pub struct Target {
    /// The record, for example `task:ID`.
    pub subject: String,
    /// The scope of work that it belongs to.
    pub domain: &'static str,
    /// The operation that would have written it.
    pub tool: &'static str,
    /// What kind of record it is, for people: `task`, `group`.
    pub noun: &'static str,
}

/// What became of the part of a write that concerns fields which a person set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// `held`: a person decides. `denied`: it must not be done.
    pub outcome: String,
    /// The request; wait for its decision or go on with something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The fields that were not written.
    pub fields: Vec<String>,
    /// What this means.
    pub message: String,
}

/// The act of a held write: the fields with their new values.
fn act_of(target: &Target, held: &[Change]) -> Act {
    let arguments: Map<String, Value> = held.iter().map(|change| (change.field.clone(), change.to.clone())).collect();
    let fields = held.iter().map(|change| change.field.as_str()).collect::<Vec<_>>();
    Act {
        kind: "edit".to_owned(),
        tool: target.tool.to_owned(),
        domain: target.domain.to_owned(),
        action: format!("change {} of the {}", fields.join(", "), target.noun),
        target: target.subject.clone(),
        field: held.first().map(|change| change.field.clone()),
        arguments: Value::Object(arguments),
        ..Act::default()
    }
}

/// The changes of a held write, also after a person edited its values: what it was asked over is bound to it.
pub(super) fn changes_of(bound: &Bound) -> Vec<Change> {
    let shown = bound.target.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    let fields = bound.act.arguments.as_object().into_iter().flatten();
    fields.map(|(field, to)| Change { field: field.clone(), from: shown.get(field).cloned().unwrap_or_default(), to: to.clone() }).collect()
}

/// Asks people about a write over what they set. Asking again for the same while it waits answers the same request; asking
/// for something else puts the new request in the place of the old one.
pub fn hold(cx: &mut Cx<'_, '_>, target: &Target, held: Vec<Change>) -> Result<Option<Held>> {
    if held.is_empty() {
        return Ok(None);
    }
    let act = Act { taint: taint::of_asking(cx)?, ..act_of(target, &held) };
    let shown = Value::Object(held.iter().map(|change| (change.field.clone(), change.from.clone())).collect());
    let fields: Vec<String> = held.into_iter().map(|change| change.field).collect();
    let named = fields.join(", ");
    let who = Requester::of(&cx.actor);
    let before = same_subject(cx, &who, &act)?;
    if let Some((request, bound)) = &before
        && bound.act == act
        && bound.target.as_ref() == Some(&shown)
    {
        cx.emit(Event::new(ASKED_AGAIN, request.subject()).fact("request", request.id.as_str()))?;
        return Ok(Some(waits(request, fields)));
    }
    let decision = request::judge(cx, &act, &who, true)?;
    if decision.mode == Mode::Deny {
        request::denied(cx, &who, &act, &decision)?;
        let mut why: Vec<&str> = decision.hard_stops().map(|hit| hit.reason.as_str()).collect();
        if decision.reasons.iter().any(|reason| reason.source == "pause") {
            why.push("you are paused");
        }
        let why = if why.is_empty() { "a limit is reached".to_owned() } else { why.join("; ") };
        let message = format!("a person set {named}, and your change is denied: {why}");
        return Ok(Some(Held { outcome: "denied".to_owned(), request_id: None, fields, message }));
    }
    // Nothing that an agent earned lets it write over a person.
    let decision = Decision { mode: decision.mode.min(Mode::Suggest), ..decision };
    let title = format!("{} wants to change {named} of {}, which a person set", who.id, target.subject);
    let packet = Packet { old: Some(shown.clone()), reversibility: Some("the values that are there now can be set again".to_owned()), ..Packet::default() };
    let new = New { packet, target: Some(shown), supersedes: before.map(|(request, _)| request.id), ..New::new(RequestKind::Edit, title, act, decision) };
    let request = request::submit(cx, new)?;
    Ok(Some(waits(&request, fields)))
}

fn waits(request: &Request, fields: Vec<String>) -> Held {
    let message = format!("a person set {}: your change waits for a person's decision", fields.join(", "));
    Held { outcome: "held".to_owned(), request_id: Some(request.id.clone()), fields, message }
}

/// The request of the same agent that waits to change the same fields of the same record.
fn same_subject(cx: &mut Cx<'_, '_>, who: &Requester, act: &Act) -> Result<Option<(Request, Bound)>> {
    let page = PageIn { limit: LOOKED_MAX, after: None };
    for request in request::of_requester(cx, &who.id, Some(State::Pending), &page)?.items {
        if request.kind != RequestKind::Edit || request.bound.is_none() {
            continue;
        }
        let bound = Bound::read(&request)?;
        let covered = bound.act.arguments.as_object().is_some_and(|fields| fields.keys().all(|field| act.arguments.get(field).is_some()));
        if bound.act.target == act.target && covered {
            return Ok(Some((request, bound)));
        }
    }
    Ok(None)
}
