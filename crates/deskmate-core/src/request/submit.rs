//! Making requests, and taking them back.

use deskmate_db::Tx;
use serde_json::{Value, json};

use super::access::may_decide_in;
use super::decide::Further;
use super::digest::Bound;
use super::events::{CANCELLED, CREATED, DENIED, Known, QUESTIONED, SUPERSEDED, ToldTexts, about};
use super::hidden::{shown_act, shown_packet};
use super::keep::{Kept, keep};
use super::model::{New, Request, RequestKind, Requester, State};
use super::rows;
use super::{grant, outcome};
use crate::call::{Actor, ActorKind, Cx, Desk, Surface};
use crate::limits::{CONTENT_BYTES_MAX, NAME_CHARS_MAX, TITLE_CHARS_MAX};
use crate::policy::{self, Act, Decision, Mode};
use crate::record::{Event, Kind};
use crate::redact::Found;
use crate::trust::{self, Points};
use crate::{Code, Error, Result, check_text, hex, meter};

/// Makes a request. With the mode `act` it is approved at once, with a grant; otherwise it waits for people. The
/// requester's flood cap and the deny of a decision are errors.
pub fn submit(cx: &mut Cx<'_, '_>, new: New) -> Result<Request> {
    if new.decision.mode == Mode::Deny {
        return Err(Error::forbidden("what is denied cannot become a request"));
    }
    check(&new)?;
    let requester = new.requester.clone().unwrap_or_else(|| Requester::of(&cx.actor));
    let passes = new.decision.mode == Mode::Act;
    if let Some(old) = &new.supersedes {
        check_own(cx, old, &requester)?;
    }
    let mut request = build(cx, &new, requester, passes)?;
    if let Some(old) = &new.supersedes {
        supersede(cx, old, &request.id)?;
    }
    if !passes {
        // The desk's own requests are not a flood.
        let cap = if new.kind == RequestKind::Promotion { i64::MAX } else { pending_max(cx, &request.requester, &request.domain)? };
        if !rows::count_in(cx.tx, &request.requester.id, cap)? {
            return Err(full(&request.requester, rows::pending_of(cx.tx, &request.requester.id)?, cap));
        }
    }
    let taken_out = keep(cx, &mut request)?;
    rows::insert(cx.tx, &request)?;
    tell_created(cx, &new, &request, &taken_out)?;
    if passes && request.kind.is_act() {
        grant::issue(cx, &request, new.decision.needs.grant_seconds)?;
    } else if passes {
        outcome::approved(cx, &request, None, &Further::default())?;
    }
    cx.decided(new.decision.mode);
    Ok(request)
}

/// Whether one more request of somebody may wait for people, beside those that wait and `more` of them.
pub(crate) fn check_room(cx: &mut Cx<'_, '_>, who: &Requester, domain: &str, more: i64) -> Result<()> {
    let cap = pending_max(cx, who, domain)?;
    let waiting = rows::pending_of(cx.tx, &who.id)?.saturating_add(more);
    if waiting < cap { Ok(()) } else { Err(full(who, waiting, cap)) }
}

/// How many requests of somebody may wait for people; those of people are not a flood.
fn pending_max(cx: &mut Cx<'_, '_>, who: &Requester, domain: &str) -> Result<i64> {
    let cap = policy::current(cx)?.settings(domain).authority.pending_max;
    Ok(if who.kind == ActorKind::Agent { i64::from(cap) } else { i64::MAX })
}

fn full(who: &Requester, waiting: i64, cap: i64) -> Error {
    let full = format!("{waiting} requests of {} wait for people already; at most {cap} may", who.id);
    Error::limited(full, 60_000).hint("cancel what is no longer needed, or wait until people decide")
}

fn check(new: &New) -> Result<()> {
    check_text("title", &new.title, TITLE_CHARS_MAX)?;
    check_text("domain", &new.act.domain, NAME_CHARS_MAX)?;
    if new.act.domain.is_empty() || new.act.domain.chars().any(char::is_control) {
        return Err(Error::invalid("domain", "must not be empty or hold control characters"));
    }
    for (field, text) in [("action", &new.act.action), ("target", &new.act.target), ("tool", &new.act.tool), ("kind", &new.act.kind)] {
        check_text(field, text, CONTENT_BYTES_MAX)?;
    }
    if let Some(reasoning) = &new.packet.reasoning {
        check_text("reasoning", reasoning, CONTENT_BYTES_MAX)?;
    }
    if new.confidence.is_some_and(|confidence| !(0.0..=1.0).contains(&confidence)) {
        return Err(Error::invalid("confidence", "must be between 0 and 1"));
    }
    Ok(())
}

fn build(cx: &mut Cx<'_, '_>, new: &New, requester: Requester, passes: bool) -> Result<Request> {
    let (now, needs) = (cx.now(), &new.decision.needs);
    let bound = Bound::new(new.act.clone(), &requester, hex(&cx.secret()), new.schema.clone(), new.target.clone());
    let (bound, digest) = bound.seal()?;
    let packet = rows::text("packet", &shown_packet(&new.packet, new.act.field.as_deref(), &new.decision))?;
    for (field, text) in [("arguments", &bound), ("packet", &packet)] {
        check_text(field, text, 2 * CONTENT_BYTES_MAX)?;
    }
    let unanswered = policy::current(cx)?.settings(&new.act.domain).authority.escalate_seconds.map(i64::from);
    let after = |seconds: i64| now.saturating_add(seconds.clamp(1, 10 * 366 * 86_400).saturating_mul(1_000_000));
    Ok(Request {
        id: new.id.clone().unwrap_or_else(|| cx.new_id()),
        kind: new.kind,
        state: if passes { State::Approved } else { State::Pending },
        requester,
        asked_by: new.asked_by.clone(),
        domain: new.act.domain.clone(),
        priority: new.priority,
        mode: new.decision.mode.name().to_owned(),
        risk: new.decision.risk.clone(),
        assignee: new.assignee.clone(),
        quorum: i64::from(needs.quorum.max(1)),
        snoozed_until: None,
        asked_at: None,
        expires_at: after(needs.expires_seconds),
        escalate_at: new.escalate_seconds.or(unanswered).filter(|_| !passes).map(after),
        overdue_since: None,
        created_at: now,
        updated_at: now,
        decided_at: passes.then_some(now),
        decided_by: passes.then(|| "desk".to_owned()),
        edited_by: None,
        finished_at: (passes && !new.kind.is_act()).then_some(now),
        version: 1,
        round: 1,
        supersedes: new.supersedes.clone(),
        batch: new.batch.clone(),
        confidence: new.confidence.map(|confidence| Points::of(confidence).0),
        rulebook: new.decision.rulebook.clone(),
        digest: digest.to_vec(),
        title: Some(new.title.clone()),
        bound: Some(bound),
        decision: Some(rows::text("decision", &new.decision)?),
        packet: Some(packet),
        reason: None,
        kept: Kept::Plain,
    })
}

fn tell_created(cx: &mut Cx<'_, '_>, new: &New, request: &Request, taken_out: &Found) -> Result<()> {
    let mut event = about(CREATED, request, &ToldTexts::default())?.taken_out(taken_out);
    if new.kind.moves_trust() && request.requester.is_agent() {
        let trust = match &new.trust {
            Some(trust) => trust.clone(),
            None => trust::look(cx, &request.requester.id, &request.domain, request.requester.verified)?,
        };
        event = trust::proposed(cx, &trust, event)?;
    }
    cx.emit(with_counters(event, &new.decision).payload(json!({
        "title": new.title,
        "act": shown_act(&new.act, &new.decision),
        "packet": shown_packet(&new.packet, new.act.field.as_deref(), &new.decision),
        "hits": new.decision.hits,
        "waived_by": new.decision.waived_by,
    })))
}

/// With what the agent had used up, where the answer may rest on it: a replay needs it.
fn with_counters(event: Event, decision: &Decision) -> Event {
    match &decision.counters {
        Some(counters) => event.fact("counters", counters.clone()),
        None => event,
    }
}

/// Tells the record of an act that was denied, and counts it. What an agent tries while it is stopped is only counted: that everything is
/// denied to it was told once, and nobody fills the disk with attempts.
pub fn denied(cx: &mut Cx<'_, '_>, who: &Requester, act: &Act, decision: &Decision) -> Result<()> {
    cx.decided(Mode::Deny);
    if who.is_agent() && !meter::denied(cx, &who.id, &act.domain)?.is_news {
        cx.only_counted = true;
        return Ok(());
    }
    cx.emit(against(DENIED, who, act, decision))
}

/// An act that was denied by an error: who would have done it, and what was decided.
#[derive(Clone, Debug)]
pub struct DeniedAct {
    actor: Actor,
    surface: Surface,
    who: Requester,
    act: Act,
    decision: Decision,
}

/// The same as [`denied`] for an operation whose answer cannot say so: the refusal carries what is told once it is undone.
pub(crate) fn refused(cx: &Cx<'_, '_>, who: Requester, act: &Act, decision: Decision, error: Error) -> Error {
    let denied = DeniedAct { actor: cx.actor.clone(), surface: cx.surface, who, act: act.clone(), decision };
    Error { denied: Some(Box::new(denied)), ..error }
}

impl DeniedAct {
    /// Tells the record of it, and counts it.
    pub(crate) fn tell(&self, tx: &mut Tx<'_>, desk: &Desk) -> Result<()> {
        denied(&mut desk.cx(tx, self.actor.clone(), self.surface), &self.who, &self.act, &self.decision)
    }
}

/// Tells the record that an agent asked about an act that policy forbids, and counts it: beyond a rate such a question is
/// an attempt like any other.
pub fn questioned(cx: &mut Cx<'_, '_>, who: &Requester, act: &Act, decision: &Decision) -> Result<()> {
    if meter::asked(cx, &who.id, &act.domain)? {
        return denied(cx, who, act, decision);
    }
    cx.emit(against(QUESTIONED, who, act, decision))
}

/// What stands against an act, as it is told.
fn against(kind: Kind, who: &Requester, act: &Act, decision: &Decision) -> Event {
    let rules: Vec<Value> =
        decision.hard_stops().map(|hit| json!({ "rule": hit.rule_id, "policy": hit.policy, "version": hit.version, "severity": hit.severity })).collect();
    let sources: Vec<&str> = decision.reasons.iter().filter(|reason| reason.mode == Mode::Deny).map(|reason| reason.source.as_str()).collect();
    with_counters(Event::new(kind, format!("agent:{}", who.id)), decision)
        .fact("requester_kind", who.kind.name())
        .fact("requester", who.id.as_str())
        .fact("domain", act.domain.as_str())
        .fact("rulebook", decision.rulebook.as_str())
        .fact("rules", rules)
        .fact("sources", sources)
        .fact("risk", decision.risk.as_str())
        .payload(json!({ "act": shown_act(act, decision), "hits": decision.hits, "waived_by": decision.waived_by }))
        .audience([who.id.as_str()])
}

/// A request by its id, if the caller may see it: people see all, an agent its own. What is secret or personal in it is for
/// whoever asked and whoever decides.
pub fn find(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Request>> {
    find_whole(cx, id)?.map(|request| as_seen(cx, request)).transpose()
}

/// The same with all that it would do, for what the desk does with it; it is not for showing.
pub(crate) fn find_whole(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Request>> {
    Ok(rows::load(cx, id)?.filter(|request| !cx.actor.is_agent() || is_own(cx, request)))
}

/// A request as the caller sees it.
pub(super) fn as_seen(cx: &mut Cx<'_, '_>, request: Request) -> Result<Request> {
    if sees_whole(cx, &request)? { Ok(request) } else { request.without_what_is_hidden(cx) }
}

/// Whether the caller sees exactly what a request would do: whoever asked for it, and whoever decides about it.
fn sees_whole(cx: &mut Cx<'_, '_>, request: &Request) -> Result<bool> {
    let me = cx.actor.id.clone();
    Ok(!cx.actor.is_person()
        || is_own(cx, request)
        || request.is_asked_by(&me)
        || request.assignee.as_ref() == Some(&me)
        || may_decide_in(cx, &me, &request.domain)?)
}

/// A request by its id, whoever asks for it: the caller sees to who may.
pub(crate) fn load(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Request>> {
    rows::load(cx, id)
}

pub(super) fn is_own(cx: &Cx<'_, '_>, request: &Request) -> bool {
    request.requester.kind == cx.actor.kind && request.requester.id == cx.actor.id
}

/// Whether the caller asks for it: as its requester, or as the person who asks in an agent's name and does not decide about it either.
pub(super) fn asks(cx: &Cx<'_, '_>, request: &Request) -> bool {
    is_own(cx, request) || (cx.actor.is_person() && request.is_asked_by(&cx.actor.id))
}

/// A request that the caller may see and that is as the record tells.
pub(super) fn known(cx: &mut Cx<'_, '_>, id: &str) -> Result<Known> {
    if find_whole(cx, id)?.is_none() {
        return Err(missing(id));
    }
    Known::load(cx, id)?.ok_or_else(|| missing(id))
}

pub(super) fn missing(id: &str) -> Error {
    Error::not_found(format!("there is no request {id} for you"))
}

/// The requester takes its request back, or the person who asked in its name.
pub fn cancel(cx: &mut Cx<'_, '_>, id: &str, reason: Option<String>) -> Result<Request> {
    let known = known(cx, id)?;
    if !asks(cx, &known.request) {
        return Err(Error::forbidden("only the requester takes a request back").hint("a person rejects it, or takes an approval back with desk_request_undo"));
    }
    take_back(cx, known, reason)
}

/// The desk takes a request back, whoever asked, because its cause is gone.
pub fn withdraw(cx: &mut Cx<'_, '_>, id: &str, why: &str) -> Result<Request> {
    let known = Known::load(cx, id)?.ok_or_else(|| missing(id))?;
    take_back(cx, known, Some(why.to_owned()))
}

/// The same of one that may be decided otherwise or under way by now: then it stays as it is.
pub fn withdraw_if_open(cx: &mut Cx<'_, '_>, id: &str, why: &str) -> Result<()> {
    match withdraw(cx, id, why) {
        Err(error) if matches!(error.code, Code::Conflict | Code::NotFound) => Ok(()),
        done => done.map(drop),
    }
}

fn take_back(cx: &mut Cx<'_, '_>, mut known: Known, reason: Option<String>) -> Result<Request> {
    if let Some(reason) = &reason {
        check_text("reason", reason, CONTENT_BYTES_MAX)?;
    }
    open_only(cx, &mut known, "taken back")?;
    known.request.reason.clone_from(&reason);
    known.step(cx, CANCELLED, State::Cancelled, |event| event.payload(json!({ "reason": reason })))?;
    outcome::ended(cx, &known.request)?;
    Ok(known.request.into_kept())
}

/// A newer request of the same requester stands in the place of this one. [`New::supersedes`] does the same.
pub fn supersede(cx: &mut Cx<'_, '_>, id: &str, by: &str) -> Result<Request> {
    let mut known = Known::load(cx, id)?.ok_or_else(|| missing(id))?;
    open_only(cx, &mut known, "superseded")?;
    known.step(cx, SUPERSEDED, State::Superseded, |event| event.fact("by", by))?;
    outcome::ended(cx, &known.request)?;
    Ok(known.request.into_kept())
}

fn check_own(cx: &mut Cx<'_, '_>, id: &str, requester: &Requester) -> Result<()> {
    let old = rows::load(cx, id)?.filter(|old| old.requester.id == requester.id && old.requester.kind == requester.kind);
    old.map(drop).ok_or_else(|| Error::invalid("supersedes", format!("you have no request {id}")))
}

/// Only what waits, or is approved and not begun, can be taken out of the world. An unused grant goes with it.
fn open_only(cx: &mut Cx<'_, '_>, known: &mut Known, what: &str) -> Result<()> {
    match known.request.state_at(cx.now()) {
        State::Pending => Ok(()),
        State::Approved if known.request.kind.is_act() && grant::revoke(cx, &known.request.id)? => Ok(()),
        state => Err(Error::conflict(format!("this request is {} and cannot be {what} any more", state.name()))),
    }
}
