//! People's answers: approve, with edits or without, reject, and taking an approval back.

use serde_json::{Value, json};

use super::access::{self, check_decider, check_fresh, check_named};
use super::digest::Bound;
use super::events::{APPROVED, EDITED, Known, REJECTED, SUPERSEDED, UNDONE, VOTED};
use super::hidden::{hide, hide_in_packet, restore, shown_proposed};
use super::judge::{Use, forbids, weigh_as};
use super::model::{Request, RequestKind, State, grade};
use super::rows;
use super::stand_in::Seats;
use super::submit::known;
use super::{grant, outcome, standing};
use crate::call::Cx;
use crate::limits::CONTENT_BYTES_MAX;
use crate::policy::{self, Decision, Mode};
use crate::record::{self, Event};
use crate::{Error, Result, check_text, edit, hex};

/// The votes that a request's record tells, as a person's id and a round.
type Told = Vec<(String, i64)>;

/// A person approves. Checks who decides; with `edits` (new arguments) a new digest and a new round. `expected_digest`
/// is that of what the person saw. The request comes back approved, or still pending when it needs more people.
pub fn approve(cx: &mut Cx<'_, '_>, id: &str, edits: Option<Value>, expected_digest: Option<&str>, reason: Option<String>) -> Result<Request> {
    approve_with(cx, id, edits, expected_digest, reason, &Further::default())
}

/// What goes along with an answer.
#[derive(Clone, Debug, Default)]
pub struct Further {
    /// The batch in which it was given.
    pub batch: Option<String>,
    /// What the agent is to do, as the answer to a handoff; the reason itself if not given.
    pub instructions: Option<String>,
    /// Whether the work goes back to the agent; for handoffs, yes if not given.
    pub hand_back: Option<bool>,
}

/// Like [`approve`], with what goes along with it.
pub fn approve_with(
    cx: &mut Cx<'_, '_>,
    id: &str,
    edits: Option<Value>,
    expected_digest: Option<&str>,
    reason: Option<String>,
    further: &Further,
) -> Result<Request> {
    let mut known = undecided(cx, id)?;
    check_decider(cx, &known.request)?;
    if let Some(reason) = &reason {
        check_text("reason", reason, CONTENT_BYTES_MAX)?;
    }
    check_seen(&known.request, expected_digest)?;
    if known.request.bound.is_none() {
        return Err(super::digest::unknown(&known.request));
    }
    if known.request.kind == RequestKind::Edit
        && let Some(why) = edit::stale(cx, &known.request)?
    {
        known.request.reason = Some(why.clone());
        known.step(cx, SUPERSEDED, State::Superseded, |event| event.payload(json!({ "reason": why })))?;
        return Ok(known.request);
    }
    if known.request.kind == RequestKind::Handoff && reason.as_ref().is_none_or(|reason| reason.trim().is_empty()) {
        return Err(Error::invalid("reason", "a handoff is answered with what was decided, or what to do"));
    }
    let bound = edits.map(|edits| edited(cx, &mut known.request, edits)).transpose()?;
    let decision = again(cx, &mut known.request)?;
    check_named(cx, &known.request, Some(&decision))?;
    if access::is_grave(&known.request) {
        check_fresh(cx, "approving this, which is of high risk or loosens a limit,")?;
    }
    if let Some(mut arguments) = bound {
        hide(&mut arguments, &decision.redact);
        known.step(cx, EDITED, State::Pending, |event| event.payload(json!({ "arguments": arguments })))?;
    }
    known.request.batch = further.batch.clone().or(known.request.batch);
    rows::insert_vote(cx, &known.request, "approve")?;
    let so_far = approvals(cx, &known.request, &decision)?;
    let (person, round, at) = (cx.actor.id.clone(), known.request.round, cx.now());
    let vote = move |event: Event| event.fact("vote", json!({ "person": person, "round": round, "vote": "approve", "at": at }));
    if so_far < known.request.quorum {
        known.step(cx, VOTED, State::Pending, |event| vote(event).fact("approvals", so_far).payload(json!({ "reason": reason })))?;
        return Ok(known.request);
    }
    settle(cx, &mut known, reason.clone());
    known.step(cx, APPROVED, State::Approved, |event| vote(event).fact("approvals", so_far).payload(json!({ "reason": reason })))?;
    outcome::approved(cx, &known.request, reason.as_deref(), further)?;
    Ok(known.request.into_kept())
}

/// A request that waits, as the record tells it.
pub(super) fn undecided(cx: &mut Cx<'_, '_>, id: &str) -> Result<Known> {
    let known = known(cx, id)?;
    let request = &known.request;
    match request.state_at(cx.now()) {
        State::Pending => Ok(known),
        State::Expired => Err(Error::conflict("this request has expired").hint("the agent can ask again")),
        state => {
            let by = request.decided_by.as_deref().map_or_else(String::new, |by| format!(", by {by}"));
            Err(Error::conflict(format!("this request is {} already{by}", state.name())).hint("desk_request_get shows what became of it"))
        }
    }
}

/// Checks that what somebody decides is what they saw.
pub(crate) fn check_seen(request: &Request, expected: Option<&str>) -> Result<()> {
    match expected {
        Some(expected) if !expected.eq_ignore_ascii_case(&request.digest_hex()) => {
            Err(Error::conflict("this is not what you saw: the request was changed meanwhile").hint("look at it again, and decide with its new digest"))
        }
        _ => Ok(()),
    }
}

/// Puts other arguments in the place of those that were proposed. Whatever was said before was said of something else.
fn edited(cx: &Cx<'_, '_>, request: &mut Request, mut arguments: Value) -> Result<Value> {
    if !request.kind.is_editable() {
        return Err(Error::invalid("edits", format!("a {} is approved or rejected as it is", request.kind.name())));
    }
    let mut bound = Bound::read(request)?;
    let decision = request.decided()?;
    if let Some(decision) = &decision {
        restore(&mut arguments, &bound.act.arguments, &decision.redact)?;
    }
    if arguments.is_object() != bound.act.arguments.is_object() {
        return Err(Error::invalid("edits", "must be all arguments of the act, in the form of those that were proposed"));
    }
    if arguments == bound.act.arguments {
        return Err(Error::invalid("edits", "are the same as what was proposed; approve without them"));
    }
    let mut packet = request.told()?;
    packet.proposed.get_or_insert_with(|| shown_proposed(&bound.act, decision.as_ref()));
    bound.act.arguments = arguments.clone();
    bound.nonce = hex(&cx.secret());
    let (text, digest) = bound.seal()?;
    check_text("edits", &text, 2 * CONTENT_BYTES_MAX)?;
    request.bound = Some(text);
    request.digest = digest.to_vec();
    request.packet = Some(rows::text("packet", &packet)?);
    request.edited_by = Some(cx.actor.id.clone());
    request.round += 1;
    Ok(arguments)
}

/// Judges again under the policy of today, and keeps the stricter of what each asks for.
pub(super) fn again(cx: &mut Cx<'_, '_>, request: &mut Request) -> Result<Decision> {
    let before = request.decided()?.ok_or_else(|| Error::conflict("what policy said of this request was erased").hint("reject it, or let it expire"))?;
    if !request.kind.is_act() {
        return Ok(before);
    }
    let act = request.act()?;
    let uses = Use::of(request, &act);
    let mut today = weigh_as(cx, &act, &request.requester, false, uses)?.decision;
    if let Some(why) = forbids(&today) {
        return Err(Error::conflict(format!("policy forbids it: {why}")).hint("reject it, edit it, or change the policy first"));
    }
    // What was hidden stays so: an edit may have taken away why, and the values are still there.
    if !before.hides.is_empty() {
        today.hide(&act, &before.hides);
    }
    today.needs.quorum = today.needs.quorum.max(before.needs.quorum);
    if today.needs.approvers.is_empty() {
        today.needs.approvers.clone_from(&before.needs.approvers);
    }
    // A pause or a limit denies for now, and says nothing of the act itself.
    if today.mode == Mode::Deny || grade(&before.risk) > grade(&today.risk) {
        today.risk.clone_from(&before.risk);
    }
    request.quorum = request.quorum.max(i64::from(today.needs.quorum));
    request.risk.clone_from(&today.risk);
    request.rulebook.clone_from(&today.rulebook);
    request.decision = Some(rows::text("decision", &today)?);
    hide_in_packet(request, &today)?;
    Ok(today)
}

/// How many people approved in this round whose word counts now: those whom the record tells of.
pub(super) fn approvals(cx: &mut Cx<'_, '_>, request: &Request, decision: &Decision) -> Result<i64> {
    let told = votes_told(cx, request)?;
    let mut people = Vec::new();
    for vote in rows::votes(cx.tx, &request.id)? {
        let own = vote.person == cx.actor.id && vote.round == request.round;
        let is_told = own || told.contains(&(vote.person.clone(), vote.round));
        let approves = vote.round == request.round && vote.vote == "approve" && is_told;
        if approves && access::counts(cx, &vote.person, request)? {
            people.push(vote.person);
        }
    }
    let count = Seats::of(cx, request, decision)?.map_or(people.len(), |seats| seats.taken(&people));
    Ok(i64::try_from(count).unwrap_or(i64::MAX))
}

fn votes_told(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Told> {
    if request.quorum <= 1 {
        return Ok(Vec::new());
    }
    let told = record::told_of_request(cx.tx, &request.subject(), 500)?;
    let vote = |body: &record::Body| {
        let vote = body.facts.get("vote").filter(|_| body.kind == VOTED.name && body.actor.kind == "person")?;
        Some((body.actor.id.clone(), vote.get("round")?.as_i64()?))
    };
    Ok(told.iter().filter_map(|told| vote(&told.body)).collect())
}

pub(super) fn settle(cx: &Cx<'_, '_>, known: &mut Known, reason: Option<String>) {
    let request = &mut known.request;
    request.decided_at = Some(cx.now());
    request.decided_by = Some(cx.actor.id.clone());
    request.reason = reason;
    request.snoozed_until = None;
    request.asked_at = None;
    request.escalate_at = None;
    if !request.kind.is_act() {
        request.finished_at = request.decided_at;
    }
}

/// How a person corrects an agent.
#[derive(Clone, Debug, Default)]
pub struct Correction {
    /// Why, in words.
    pub reason: Option<String>,
    /// The type of override; the usual one of the domain if not given.
    pub kind: Option<String>,
    /// How bad it was; `medium` if not given.
    pub severity: Option<crate::trust::Severity>,
    /// What the agent did or wanted to do, in the person's words.
    pub action: Option<String>,
}

/// A person rejects; one rejection is final. `kind` and `severity` are those of an override, `expected_digest` is that of
/// what the person saw.
pub fn reject(cx: &mut Cx<'_, '_>, id: &str, expected_digest: Option<&str>, correction: Correction) -> Result<Request> {
    reject_with(cx, id, expected_digest, correction, &Further::default())
}

/// Like [`reject`], with what goes along with it.
pub fn reject_with(cx: &mut Cx<'_, '_>, id: &str, expected_digest: Option<&str>, correction: Correction, further: &Further) -> Result<Request> {
    let mut known = undecided(cx, id)?;
    check_decider(cx, &known.request)?;
    check_seen(&known.request, expected_digest)?;
    check_named(cx, &known.request, known.request.decided()?.as_ref())?;
    let correction = checked(cx, &known.request, correction)?;
    rows::insert_vote(cx, &known.request, "reject")
        .or_else(|error| if has_voted(cx, &known.request)? { change_vote(cx, &known.request) } else { Err(error) })?;
    known.request.batch = further.batch.clone().or(known.request.batch);
    settle(cx, &mut known, correction.reason.clone());
    let (person, round, at) = (cx.actor.id.clone(), known.request.round, cx.now());
    known.step(cx, REJECTED, State::Rejected, |event| {
        event
            .fact("vote", json!({ "person": person, "round": round, "vote": "reject", "at": at }))
            .fact("type", correction.kind.clone())
            .fact("severity", correction.severity.map(crate::trust::Severity::name))
            .payload(json!({ "reason": correction.reason }))
    })?;
    outcome::rejected(cx, &known.request, &correction)?;
    Ok(known.request.into_kept())
}

pub(super) fn has_voted(cx: &mut Cx<'_, '_>, request: &Request) -> Result<bool> {
    Ok(rows::votes(cx.tx, &request.id)?.iter().any(|vote| vote.person == cx.actor.id && vote.round == request.round))
}

/// Who had approved may still say no before it is settled.
fn change_vote(cx: &mut Cx<'_, '_>, request: &Request) -> Result<()> {
    let now = cx.now();
    cx.tx.execute(
        "update vote set vote = 'reject', at = $4 where request = $1 and round = $2 and person = $3",
        deskmate_db::args![request.id, request.round, cx.actor.id, now],
    )?;
    Ok(())
}

/// A correction as the settings of the domain want it.
fn checked(cx: &mut Cx<'_, '_>, request: &Request, correction: Correction) -> Result<Correction> {
    let rulebook = policy::current(cx)?;
    let feedback = &rulebook.settings(&request.domain).feedback;
    let reason = correction.reason.filter(|reason| !reason.trim().is_empty());
    if reason.is_none() && feedback.override_requires_reason {
        return Err(Error::invalid("reason", "must not be empty: the agent learns from it").hint("the setting feedback.override_requires_reason asks for it"));
    }
    if let Some(reason) = &reason {
        check_text("reason", reason, CONTENT_BYTES_MAX)?;
    }
    let kind = correction.kind.unwrap_or_else(|| feedback.usual_type().to_owned());
    feedback.check_type("type", &kind)?;
    let severity = Some(correction.severity.unwrap_or(crate::trust::Severity::Medium));
    Ok(Correction { reason, kind: Some(kind), severity, action: correction.action })
}

/// A person takes an approval back while its grant is unused; the request waits for people again.
pub fn undo(cx: &mut Cx<'_, '_>, id: &str, reason: Option<String>) -> Result<Request> {
    let mut known = known(cx, id)?;
    check_decider(cx, &known.request)?;
    if let Some(reason) = &reason {
        check_text("reason", reason, CONTENT_BYTES_MAX)?;
    }
    if known.request.state != State::Approved {
        return Err(Error::conflict(format!("this request is {}: only an approval that was not used can be taken back", known.request.state.name())));
    }
    if !known.request.kind.is_act() {
        return Err(Error::conflict(format!("a {} takes effect when it is approved", known.request.kind.name())).hint("undo it where it took effect"));
    }
    if !grant::revoke(cx, &known.request.id)? {
        return Err(Error::conflict("its grant is used or revoked already"));
    }
    standing::end_of_request(cx, &known.request.id)?;
    outcome::undone(cx, &known.request)?;
    reopen(&mut known.request);
    known.step(cx, UNDONE, State::Pending, |event| event.payload(json!({ "reason": reason })))?;
    Ok(known.request)
}

/// Makes a request wait again: what was said so far is void.
pub(super) fn reopen(request: &mut Request) {
    request.round += 1;
    request.decided_at = None;
    request.decided_by = None;
    request.reason = None;
}

/// A rule that asks for people today and did not when people were asked.
pub(crate) fn asks_anew<'a>(then: &Decision, today: &'a Decision) -> Option<&'a policy::Hit> {
    let known = |hit: &policy::Hit| then.hits.iter().any(|old| old.policy == hit.policy && old.rule_id == hit.rule_id && old.field == hit.field);
    today.hits.iter().find(|hit| hit.effect == policy::Effect::RequireApproval && !known(hit))
}

/// Whether today's answer to an approved act is stricter than what was approved. `None` if it may go on.
pub(super) fn stricter(request: &Request, then: &Decision, today: &Decision) -> Option<super::StopReason> {
    use super::StopReason::{Forbidden, Stricter};
    if forbids(today).is_some() {
        return Some(Forbidden);
    }
    let by_people = request.decided_by.as_deref() != Some("desk");
    if !by_people && today.mode != Mode::Act {
        return Some(Stricter);
    }
    let more = asks_anew(then, today).is_some() || i64::from(today.needs.quorum) > request.quorum;
    let others = !today.needs.approvers.is_empty() && today.needs.approvers != then.needs.approvers;
    (more || others).then_some(Stricter)
}
