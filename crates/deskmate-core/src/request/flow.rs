//! The steps in a request's life, as other capabilities call them.

use serde_json::Value;

use super::model::{Begun, New, Outcome, Request, Requester, State};
use crate::call::{Cx, Page, PageIn};
use crate::policy::{Act, Decision};
use crate::{Code, Error, Result};

fn soon() -> Error {
    Error::new(Code::Unavailable, "requests are not there yet")
}

/// What the desk answers to an intended act: gathers trust, counters, pauses and standing approvals, and decides. Every
/// capability asks through this. `over_a_persons_edit` says whether the act would overwrite what a person set.
pub fn judge(_cx: &mut Cx<'_, '_>, _act: &Act, _who: &Requester, _over_a_persons_edit: bool) -> Result<Decision> {
    Err(soon())
}

/// A decision that sends something to people whatever policy says: handoffs, promotions, changes of policy, edits over a
/// person's edit. `risk` is `low`, `medium`, `high` or `critical`.
pub fn for_people(_cx: &mut Cx<'_, '_>, _domain: &str, _risk: &str, _why: &str) -> Result<Decision> {
    Err(soon())
}

/// Makes a request. With the mode `act` it is approved at once, with a grant; otherwise it waits for people. The
/// requester's flood cap and the deny of a decision are errors.
pub fn submit(_cx: &mut Cx<'_, '_>, _new: New) -> Result<Request> {
    Err(soon())
}

/// Tells the record of an act that was denied, and counts it.
pub fn denied(_cx: &mut Cx<'_, '_>, _who: &Requester, _act: &Act, _decision: &Decision) -> Result<()> {
    Err(soon())
}

/// A request by its id, if the caller may see it: people see all, an agent its own.
pub fn find(_cx: &mut Cx<'_, '_>, _id: &str) -> Result<Option<Request>> {
    Err(soon())
}

/// The requests of one requester, newest first.
pub fn of_requester(_cx: &mut Cx<'_, '_>, _requester: &str, _state: Option<State>, _page: &PageIn) -> Result<Page<Request>> {
    Err(soon())
}

/// A person approves. Checks who decides; with `edits` (new arguments) a new digest and a new round.
pub fn approve(_cx: &mut Cx<'_, '_>, _id: &str, _edits: Option<Value>, _expected_digest: Option<&str>, _reason: Option<String>) -> Result<Request> {
    Err(soon())
}

/// A person rejects. `kind` and `severity` are those of an override.
pub fn reject(_cx: &mut Cx<'_, '_>, _id: &str, _reason: Option<String>, _kind: Option<&str>, _severity: Option<&str>) -> Result<Request> {
    Err(soon())
}

/// A person asks the requester something; the request leaves the inbox until the answer.
pub fn ask(_cx: &mut Cx<'_, '_>, _id: &str, _question: String) -> Result<Request> {
    Err(soon())
}

/// The requester answers; the request returns to the inbox.
pub fn answer(_cx: &mut Cx<'_, '_>, _id: &str, _answer: String) -> Result<Request> {
    Err(soon())
}

/// Uses up the grant of an approved request, after judging again. `target` is what is there now, where the desk can
/// read it.
pub fn begin(_cx: &mut Cx<'_, '_>, _id: &str, _target: Option<&Value>) -> Result<Begun> {
    Err(soon())
}

/// Says what came of an act that was begun. What was ambiguous may become known later.
pub fn finish(_cx: &mut Cx<'_, '_>, _id: &str, _outcome: Outcome) -> Result<Request> {
    Err(soon())
}

/// The requester takes its request back.
pub fn cancel(_cx: &mut Cx<'_, '_>, _id: &str, _reason: Option<String>) -> Result<Request> {
    Err(soon())
}

/// The desk takes a request back, whoever asked, because its cause is gone.
pub fn withdraw(_cx: &mut Cx<'_, '_>, _id: &str, _why: &str) -> Result<Request> {
    Err(soon())
}

/// A newer request of the same requester stands in the place of this one. [`New::supersedes`] does the same.
pub fn supersede(_cx: &mut Cx<'_, '_>, _id: &str, _by: &str) -> Result<Request> {
    Err(soon())
}

/// Expires what nobody decided in time, a slice at a time; answers how many.
pub fn expire_due(_cx: &mut Cx<'_, '_>, _limit: u32) -> Result<u32> {
    Err(soon())
}

/// Sends what waited too long to the owners, a slice at a time; answers how many.
pub fn escalate_due(_cx: &mut Cx<'_, '_>, _limit: u32) -> Result<u32> {
    Err(soon())
}
