//! An agent's write over what a person set waits for a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::fields::Change;
use crate::Result;
use crate::call::Cx;
use crate::policy::Act;

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

/// Where an act keeps the values that were shown to the person who decides.
pub(super) const SHOWN: &str = "shown";

/// The act of a held write: the fields with their new values, and what they were when it was asked for.
pub(super) fn act_of(target: &Target, held: &[Change]) -> Act {
    let mut arguments: Map<String, Value> = held.iter().map(|change| (change.field.clone(), change.to.clone())).collect();
    let shown: Map<String, Value> = held.iter().map(|change| (change.field.clone(), change.from.clone())).collect();
    arguments.insert(SHOWN.to_owned(), Value::Object(shown));
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

/// The changes of an act that [`act_of`] made, also after a person edited its values.
pub(super) fn changes_of(act: &Act) -> Vec<Change> {
    let shown = act.arguments.get(SHOWN).and_then(Value::as_object).cloned().unwrap_or_default();
    let fields = act.arguments.as_object().into_iter().flatten().filter(|(field, _)| *field != SHOWN);
    fields.map(|(field, to)| Change { field: field.clone(), from: shown.get(field).cloned().unwrap_or_default(), to: to.clone() }).collect()
}

/// Asks people about a write over what they set. Asking again for the same while it waits answers the same request.
pub fn hold(cx: &mut Cx<'_, '_>, target: &Target, held: Vec<Change>) -> Result<Option<Held>> {
    if held.is_empty() {
        return Ok(None);
    }
    let act = act_of(target, &held);
    let fields: Vec<String> = held.into_iter().map(|change| change.field).collect();
    let request_id = submit(cx, &act)?;
    let message = format!("a person set {}: your change waits for a person's decision", fields.join(", "));
    Ok(Some(Held { outcome: "held".to_owned(), request_id: Some(request_id), fields, message }))
}

fn submit(cx: &mut Cx<'_, '_>, act: &Act) -> Result<String> {
    let id = cx.new_id();
    let event = crate::record::Event::new(HELD, format!("request:{id}")).fact("request", id.as_str()).fact("target", act.target.as_str());
    cx.emit(event.payload(json!({ "act": act })))?;
    Ok(id)
}

const HELD: crate::record::Kind = crate::record::Kind { name: "edit.held", says: "" };
