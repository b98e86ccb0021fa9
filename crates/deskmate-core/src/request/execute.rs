//! Doing what was approved: the grant is used up after judging again, and what came of it is told.

use serde_json::{Value, json};

use super::decide::{reopen, stricter};
use super::digest::Bound;
use super::events::{FINISHED, Known, STARTED, STOPPED, differs};
use super::grant::{self, Checked, GrantRow};
use super::hidden::hide_in_packet;
use super::judge::{Use, weigh_as};
use super::model::{Begun, Outcome, Permit, Request, State, Stop, StopReason};
use super::rows;
use super::submit::{is_own, known, missing};
use crate::call::{ActorKind, Cx};
use crate::policy::{Decision, Mode};
use crate::{Error, Result, meter};

/// Uses up the grant of an approved request, after judging again. `target` is what is there now, where the desk can
/// read it.
pub fn begin(cx: &mut Cx<'_, '_>, id: &str, target: Option<&Value>) -> Result<Begun> {
    let request = rows::load(cx, id)?.filter(|request| is_own(cx, request) || cx.actor.is_system()).ok_or_else(|| missing(id))?;
    begin_of(cx, request, target)
}

/// The same for what the desk does itself: whoever may see it may begin it, because what is done is what was approved.
pub(crate) fn begin_seen(cx: &mut Cx<'_, '_>, id: &str) -> Result<Begun> {
    let request = super::find_whole(cx, id)?.ok_or_else(|| missing(id))?;
    begin_of(cx, request, None)
}

fn begin_of(cx: &mut Cx<'_, '_>, request: Request, target: Option<&Value>) -> Result<Begun> {
    let id = &request.id.clone();
    approved_only(&request, cx.now())?;
    let grant = granted(cx, id)?;
    let mut known = match check(cx, request, &grant)? {
        Ok(known) => known,
        Err(stop) => return Ok(Begun::Stopped(stop)),
    };
    unused_only(&grant, cx.now())?;
    let request = &known.request;
    if request.requester.kind == ActorKind::Agent && meter::paused(cx, &request.requester.id)? {
        return Err(Error::forbidden(format!("{} is paused: its grants are suspended until a person lets it go on", request.requester.id)));
    }
    let bound = Bound::read(request)?;
    if bound.target.is_some() && target.is_some() && bound.target.as_ref() != target {
        let message = "what it would change is not any more what it was when it was approved; people look at it again";
        return stop(cx, known, StopReason::TargetChanged, message.to_owned(), None);
    }
    let then = request.decided()?;
    let mut today = weigh_as(cx, &bound.act, &request.requester, false, Use::of(request, &bound.act))?.decision;
    // If it goes back to people, what was hidden from them stays so.
    if let Some(then) = then.as_ref().filter(|then| !then.hides.is_empty()) {
        today.hide(&bound.act, &then.hides);
    }
    let why = then.as_ref().map_or(Some(StopReason::Stricter), |then| stricter(request, then, &today));
    if let Some(why) = why {
        let message = in_words(why, &today);
        return stop(cx, known, why, message, Some(today));
    }
    if !grant::consume(cx, &grant)? {
        return Err(Error::conflict("its grant was used or revoked meanwhile"));
    }
    known.step(cx, STARTED, State::Executing, |event| event.fact("grant", grant.id.as_str()))?;
    Ok(Begun::Go(Box::new(Permit { request: known.request, grant: grant.id, act: bound.act, decision: Some(today) })))
}

/// For how many seconds the grant of an approved request is still good, after making them fewer where `at_most` says so. What a grant
/// says never changes, so one that ends sooner takes its place; nothing makes it last longer than policy said.
pub(crate) fn seconds_left(cx: &mut Cx<'_, '_>, id: &str, at_most: Option<i64>) -> Result<i64> {
    let request = known(cx, id)?.request;
    approved_only(&request, cx.now())?;
    let grant = granted(cx, id)?;
    // A row that somebody changed must not become one that the record tells of.
    if !is_of(&grant, &request) || grant::check(cx, &grant)? != Checked::Fits {
        return Err(differs(id));
    }
    unused_only(&grant, cx.now())?;
    let left = (grant.expires_at - cx.now()) / 1_000_000;
    let Some(fewer) = at_most.filter(|seconds| *seconds < left) else { return Ok(left) };
    grant::revoke(cx, id)?;
    grant::issue(cx, &request, fewer)?;
    Ok(fewer)
}

fn granted(cx: &mut Cx<'_, '_>, id: &str) -> Result<GrantRow> {
    grant::newest(cx, id)?.ok_or_else(|| Error::conflict("this request has no grant").hint("ask again"))
}

fn is_of(grant: &GrantRow, request: &Request) -> bool {
    grant.request == request.id && grant.agent == request.requester.id && grant.digest == request.digest
}

fn approved_only(request: &Request, now: i64) -> Result<()> {
    let refuse = |message: &str, hint: &str| Err(Error::conflict(message).hint(hint));
    match request.state_at(now) {
        State::Approved if request.kind.is_act() => Ok(()),
        State::Approved => refuse("this took effect when it was approved; there is nothing to begin", "go on"),
        State::Pending => refuse("people have not decided this yet", "wait with cowork_wait_for_decision"),
        State::Executing => refuse("this was begun already", "report what came of it with cowork_log and its proposal_id"),
        State::Done | State::Failed | State::Ambiguous => refuse("this was done already: a grant works once", "propose again if it is needed again"),
        State::Rejected => refuse("this was rejected", "cowork_get_request tells why"),
        State::Expired | State::Cancelled | State::Superseded => refuse("this request has ended without an approval", "propose again if it is still needed"),
    }
}

fn unused_only(grant: &GrantRow, now: i64) -> Result<()> {
    if !grant.is_open() {
        return Err(Error::conflict("its grant was used or revoked already").hint("propose again if it is still needed"));
    }
    if grant.expires_at <= now {
        return Err(Error::conflict(format!("its grant expired at {}", crate::format_time(grant.expires_at))).hint("propose again if it is still needed"));
    }
    Ok(())
}

/// Compares request and grant with what the record tells. What differs is told and not done.
fn check(cx: &mut Cx<'_, '_>, request: Request, grant: &GrantRow) -> Result<Result<Known, Box<Stop>>> {
    let same = is_of(grant, &request);
    let verdict = grant::check(cx, grant)?;
    if verdict == Checked::Refused {
        return Err(differs(&request.id));
    }
    let request = match Known::check(cx, request)? {
        Ok(known) if same && verdict == Checked::Fits => return Ok(Ok(known)),
        Ok(known) => known.request,
        Err(request) => request,
    };
    grant::refuse(cx, grant)?;
    let message = "this request or its grant differs from what the record tells; it must not be done, and the people of this desk are told".to_owned();
    Ok(Err(Box::new(Stop { request, why: StopReason::Tampered, message, decision: None })))
}

fn in_words(why: StopReason, today: &Decision) -> String {
    let mut rules: Vec<String> = today.hits.iter().map(|hit| format!("{} ({}): {}", hit.rule_id, hit.policy, hit.reason)).collect();
    rules.extend(today.reasons.iter().filter(|reason| reason.source == "criteria").map(|reason| reason.text.clone()));
    let rules = if rules.is_empty() { String::new() } else { format!(" [{}]", rules.join("; ")) };
    match why {
        StopReason::Forbidden => format!("the policy of today forbids it{rules}"),
        StopReason::Stricter if today.mode == Mode::Deny => "it cannot be done now; people look at it again".to_owned(),
        _ => format!("the policy of today asks for more than was given; people look at it again{rules}"),
    }
}

/// Stops an approved act. What a rule forbids is rejected by the desk, the rest waits for people again.
fn stop(cx: &mut Cx<'_, '_>, mut known: Known, why: StopReason, message: String, decision: Option<Decision>) -> Result<Begun> {
    grant::revoke(cx, &known.request.id)?;
    let next = if why == StopReason::Forbidden {
        known.request.decided_at = Some(cx.now());
        known.request.decided_by = Some("desk".to_owned());
        known.request.reason = Some(message.clone());
        State::Rejected
    } else {
        super::outcome::undone(cx, &known.request)?;
        reopen(&mut known.request);
        State::Pending
    };
    if let Some(today) = decision.as_ref().filter(|_| next == State::Pending) {
        known.request.quorum = known.request.quorum.max(i64::from(today.needs.quorum));
        known.request.decision = Some(rows::text("decision", today)?);
        hide_in_packet(&mut known.request, today)?;
        known.request.risk.clone_from(&today.risk);
        known.request.rulebook.clone_from(&today.rulebook);
    }
    let told = message.clone();
    known.step(cx, STOPPED, next, |event| event.fact("why", why.name()).payload(json!({ "message": told })))?;
    Ok(Begun::Stopped(Box::new(Stop { request: known.request, why, message, decision })))
}

/// Says what came of an act that was begun. What was ambiguous may become known later.
pub fn finish(cx: &mut Cx<'_, '_>, id: &str, outcome: Outcome) -> Result<Request> {
    let mut known = known(cx, id)?;
    if !is_own(cx, &known.request) && cx.actor.is_agent() {
        return Err(missing(id));
    }
    if !matches!(known.request.state, State::Executing | State::Ambiguous) || known.request.state == outcome.state() {
        let state = known.request.state.name();
        return Err(Error::conflict(format!("this request is {state}, so no outcome can be reported")).hint("cowork_begin uses its grant first"));
    }
    known.request.finished_at = Some(cx.now());
    known.step(cx, FINISHED, outcome.state(), |event| event)?;
    Ok(known.request.into_kept())
}
