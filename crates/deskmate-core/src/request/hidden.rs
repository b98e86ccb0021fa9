//! What policy hides: it is neither shown nor told, and it comes back into what people edit as they saw it.

use serde_json::{Value, json};

use super::judge::judge;
use super::model::{Packet, Request, Requester};
use super::rows;
use crate::call::Cx;
use crate::policy::{Act, Decision, hidden_in};
use crate::{Error, Result};

/// What is shown and told in its place.
const HIDDEN: &str = "[hidden by policy]";

/// An act as it is shown and told: what policy hides is hidden.
pub(crate) fn shown_act(act: &Act, decision: &Decision) -> Value {
    let mut shown = json!(act);
    if let Some(arguments) = shown.get_mut("arguments") {
        hide(arguments, &decision.redact);
    }
    if let Some(criteria) = shown.get_mut("criteria") {
        hide_fields(criteria, None, &decision.hides);
    }
    shown
}

/// A packet as it is shown and told: the fields that policy hides are hidden in all of it, and so is what stands where
/// the act has something hidden. `field` is the one that the act names.
pub(crate) fn shown_packet(packet: &Packet, field: Option<&str>, decision: &Decision) -> Packet {
    let mut shown = packet.clone();
    for value in shown.old.iter_mut().chain(shown.proposed.iter_mut()) {
        hide(value, &decision.redact);
        hide_fields(value, field, &decision.hides);
    }
    hide_fields(&mut shown.more, None, &decision.hides);
    shown
}

/// Hides in a request's packet what its decision hides by now. The packet is only ever shown, so hidden values have no
/// business in it; the act itself keeps them, because whoever does it needs them.
pub(super) fn hide_in_packet(request: &mut Request, decision: &Decision) -> Result<()> {
    if decision.hides.is_empty() || request.packet.is_none() {
        return Ok(());
    }
    let (mut packet, field) = (request.told()?, request.act().ok().and_then(|act| act.field));
    for value in packet.old.iter_mut().chain(packet.proposed.iter_mut()) {
        hide_fields(value, field.as_deref(), &decision.hides);
    }
    hide_fields(&mut packet.more, None, &decision.hides);
    request.packet = Some(rows::text("packet", &packet)?);
    Ok(())
}

/// What an agent had proposed before a person edited it, as it is kept beside the edited act.
pub(super) fn shown_proposed(act: &Act, decision: Option<&Decision>) -> Value {
    let mut proposed = act.arguments.clone();
    if let Some(decision) = decision {
        hide(&mut proposed, &decision.redact);
        hide_fields(&mut proposed, act.field.as_deref(), &decision.hides);
    }
    proposed
}

/// A change that was carried out, as it is kept and told. What is not exactly what was approved is looked at as if it had
/// been proposed, because it may hold what the act did not.
pub(crate) fn shown_executed(cx: &mut Cx<'_, '_>, request: Option<&Request>, otherwise: Act, mut executed: Value) -> Result<Value> {
    let decision = request.map(Request::decided).transpose()?.flatten();
    let mut act = request.and_then(|request| request.act().ok()).unwrap_or(otherwise);
    let exact = decision.is_some() && act.arguments == executed;
    if !exact {
        let who = request.map_or_else(|| Requester::of(&cx.actor), |request| request.requester.clone());
        act.arguments = executed.clone();
        let hides = judge(cx, &act, &who, false)?.hides;
        hide_fields(&mut executed, act.field.as_deref(), &hides);
    }
    if let Some(decision) = decision {
        hide(&mut executed, &decision.redact);
        hide_fields(&mut executed, act.field.as_deref(), &decision.hides);
    }
    Ok(executed)
}

fn hide_fields(value: &mut Value, field: Option<&str>, patterns: &[String]) {
    let paths = hidden_in(value, field, patterns);
    hide(value, &paths);
}

/// Hides what stands at some paths.
pub(crate) fn hide(value: &mut Value, paths: &[String]) {
    for path in paths {
        if let Some(hidden) = value.pointer_mut(path) {
            *hidden = Value::from(HIDDEN);
        }
    }
}

/// Puts back what was hidden into arguments that a person edited as they were shown. Refused where a hidden value stands
/// at another place: which one was meant cannot be told, and the words in its place must never be carried out.
pub(super) fn restore(edited: &mut Value, original: &Value, paths: &[String]) -> Result<()> {
    let mut shown = original.clone();
    hide(&mut shown, paths);
    if put_back(edited, &shown, original) {
        return Ok(());
    }
    Err(Error::invalid("edits", format!("hold {HIDDEN} where nothing was hidden, or in a list that is in another order"))
        .hint("leave hidden values where they are, or write new ones"))
}

/// Whether everything that is still hidden is back in its place.
fn put_back(edited: &mut Value, shown: &Value, original: &Value) -> bool {
    if edited == shown {
        edited.clone_from(original);
        return true;
    }
    match (edited, shown, original) {
        (Value::Object(edited), Value::Object(shown), Value::Object(original)) => {
            edited.iter_mut().all(|(key, value)| match (shown.get(key), original.get(key)) {
                (Some(shown), Some(original)) => put_back(value, shown, original),
                _ => !is_hidden(value),
            })
        }
        (Value::Array(edited), Value::Array(shown), Value::Array(original)) => {
            let same_length = edited.len() == shown.len();
            edited.iter_mut().enumerate().all(|(number, value)| match (shown.get(number), original.get(number)) {
                _ if !is_hidden(value) => true,
                // An entry that was shown at another number has come from there.
                (Some(there), Some(original)) if same_length && (there == value || !shown.contains(value)) => put_back(value, there, original),
                _ => false,
            })
        }
        (edited, ..) => !is_hidden(edited),
    }
}

/// Whether something in a value stands in the place of what was hidden.
fn is_hidden(value: &Value) -> bool {
    match value {
        Value::String(text) => text == HIDDEN,
        Value::Array(list) => list.iter().any(is_hidden),
        Value::Object(table) => table.values().any(is_hidden),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
