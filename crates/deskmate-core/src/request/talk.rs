//! Before deciding: asking back, giving it to somebody else, putting it off.

use serde_json::json;

use super::access::{check_decider, find_person};
use super::decide::{check_seen, undecided};
use super::events::{ANSWERED, ASKED, DELEGATED, RETURNED, SNOOZED, UNASKED};
use super::model::{Request, State};
use super::rows;
use super::stand_in;
use super::submit::asks;
use crate::call::Cx;
use crate::limits::NOTE_BYTES_MAX;
use crate::record::Event;
use crate::{Error, Result, check_text};

/// Questions and answers that one request may gather.
const NOTES_MAX: i64 = 100;

fn check_note(cx: &mut Cx<'_, '_>, request: &str, field: &str, text: &str) -> Result<()> {
    check_text(field, text, NOTE_BYTES_MAX)?;
    if text.trim().is_empty() {
        return Err(Error::invalid(field, "must not be empty"));
    }
    let full = cx
        .tx
        .optional("select id from request_note where request = $1 order by created_at, id limit 1 offset $2", deskmate_db::args![request, NOTES_MAX - 1])?;
    if full.is_some() { Err(Error::conflict(format!("this request has {NOTES_MAX} notes already")).hint("decide it")) } else { Ok(()) }
}

/// A person asks the requester something; the request leaves the inbox until the answer. `expected_digest` is that of what
/// the person saw.
pub fn ask(cx: &mut Cx<'_, '_>, id: &str, expected_digest: Option<&str>, question: String) -> Result<Request> {
    let mut known = undecided(cx, id)?;
    check_decider(cx, &known.request)?;
    check_seen(&known.request, expected_digest)?;
    if !known.request.requester.can_answer() {
        return Err(Error::conflict("the desk itself asks for this, and nobody would answer").hint("approve it, reject it, or put it off"));
    }
    check_note(cx, id, "question", &question)?;
    let note = rows::insert_note(cx, id, "question", &question)?;
    known.request.asked_at = Some(cx.now());
    known.request.snoozed_until = None;
    known.step(cx, ASKED, State::Pending, |event| event.fact("note", note.as_str()).payload(json!({ "note": question })))?;
    Ok(known.request)
}

/// A person takes a question back: the request waits for people again, without an answer.
pub fn unask(cx: &mut Cx<'_, '_>, id: &str, expected_digest: Option<&str>) -> Result<Request> {
    let mut known = undecided(cx, id)?;
    check_decider(cx, &known.request)?;
    check_seen(&known.request, expected_digest)?;
    if known.request.asked_at.take().is_none() {
        return Err(Error::conflict("no question about this request waits for an answer").hint("say with `question` what you want to know"));
    }
    known.step(cx, UNASKED, State::Pending, |event| event)?;
    Ok(known.request)
}

/// Whoever asks for it answers; the request returns to the inbox.
pub fn answer(cx: &mut Cx<'_, '_>, id: &str, answer: String) -> Result<Request> {
    let mut known = undecided(cx, id)?;
    if !asks(cx, &known.request) {
        return Err(Error::forbidden("only the requester answers"));
    }
    if known.request.asked_at.is_none() {
        return Err(Error::conflict("nobody has asked anything about this request").hint("wait for the decision"));
    }
    check_note(cx, id, "answer", &answer)?;
    let note = rows::insert_note(cx, id, "answer", &answer)?;
    known.request.asked_at = None;
    known.step(cx, ANSWERED, State::Pending, |event| event.fact("note", note.as_str()).payload(json!({ "note": answer })))?;
    Ok(known.request)
}

/// A person gives the decision to another one, who must be able to take it. `expected_digest` is that of what the person saw.
pub fn delegate(cx: &mut Cx<'_, '_>, id: &str, expected_digest: Option<&str>, to: &str, note: Option<String>) -> Result<Request> {
    let mut known = undecided(cx, id)?;
    check_decider(cx, &known.request)?;
    check_seen(&known.request, expected_digest)?;
    let person = find_person(cx, to)?.filter(|person| person.decides_in(&known.request.domain));
    let person = person.ok_or_else(|| Error::invalid("to", format!("nobody of this name decides in {}", known.request.domain)))?;
    if known.request.is_asked_by(&person.id) {
        return Err(Error::invalid("to", "asked for it, so somebody else decides"));
    }
    if let Some(note) = &note {
        check_note(cx, id, "note", note)?;
        rows::insert_note(cx, id, "delegation", note)?;
    }
    let stand_in = stand_in::of(cx, &person.id)?;
    known.request.assignee = Some(person.id);
    let told = |event: Event| if let Some(stand_in) = stand_in { event.fact("told", [stand_in].as_slice()) } else { event };
    known.step(cx, DELEGATED, State::Pending, |event| told(event).payload(json!({ "note": note })))?;
    Ok(known.request)
}

/// A person takes a request back from whom it was given to: whoever may decide it sees it as theirs again.
pub fn take_back(cx: &mut Cx<'_, '_>, id: &str, expected_digest: Option<&str>) -> Result<Request> {
    let mut known = undecided(cx, id)?;
    check_decider(cx, &known.request)?;
    check_seen(&known.request, expected_digest)?;
    if known.request.assignee.take().is_none() {
        return Err(Error::conflict("this request was given to nobody").hint("say with `to` whom it is for"));
    }
    known.step(cx, RETURNED, State::Pending, |event| event)?;
    Ok(known.request)
}

/// A person puts a request off until a moment, or takes it up again.
pub fn snooze(cx: &mut Cx<'_, '_>, id: &str, until: Option<i64>) -> Result<Request> {
    let mut known = undecided(cx, id)?;
    check_decider(cx, &known.request)?;
    if let Some(until) = until {
        if until <= cx.now() {
            return Err(Error::invalid("until", "must be in the future; leave it out to take the request up again"));
        }
        if until >= known.request.expires_at {
            let end = crate::format_time(known.request.expires_at);
            return Err(Error::invalid("until", format!("must be before the request expires, at {end}")));
        }
    }
    known.request.snoozed_until = until;
    known.step(cx, SNOOZED, State::Pending, |event| event)?;
    Ok(known.request)
}
