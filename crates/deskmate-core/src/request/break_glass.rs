//! Breaking the glass: in an emergency one person decides alone what needs several, or others. Policy turns it on; it takes a reason, a
//! passphrase given just now, and is told loudly to everybody who was passed over. No agent, token, link or batch does it.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::access::{check_decider, check_fresh, counts, deciders, find_person};
use super::decide::{Further, again, approvals, check_seen, has_voted, settle, undecided};
use super::events::{APPROVED, ToldTexts, about};
use super::model::{Request, RequestKind, State};
use super::stand_in::Seats;
use super::view::RequestOut;
use super::{WAYS, outcome, rows};
use crate::call::{Cx, Presence, Role, Surface};
use crate::limits::{CONTENT_BYTES_MAX, PEOPLE_TOLD_MAX};
use crate::policy::settings::BreakGlass;
use crate::policy::{self, Decision};
use crate::record::{self, Event, Kind};
use crate::{Error, Result, check_text};

/// Somebody broke the glass.
pub(super) const USED: Kind =
    Kind { name: "break_glass.used", says: "A person decided alone what needs several people, or others, and said why. Those who were passed over are told." };

/// Decide alone, in an emergency, what needs several people or others. Policy has to turn it on (`authority.break_glass`). Everybody
/// who is passed over is told, with your reason, and the request and the governance report say so for ever.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Break {
    /// The request's id.
    request: String,
    /// The `digest` of what you saw.
    expected_digest: String,
    /// Why nobody could be waited for.
    reason: String,
}

/// What was decided alone.
#[derive(Serialize, JsonSchema)]
pub(super) struct Broken {
    #[serde(flatten)]
    request: RequestOut,
    /// Those who were not waited for, by id; they are told.
    passed_over: Vec<String>,
}

/// Kinds that people decide and somebody does; what loosens a limit is not among them.
fn is_for(kind: RequestKind) -> bool {
    matches!(kind, RequestKind::Proposal | RequestKind::Approval | RequestKind::Plan | RequestKind::ToolCall | RequestKind::Deploy)
}

/// Why policy does not let the caller, if it does not.
fn forbidden(cx: &mut Cx<'_, '_>, domain: &str) -> Result<Option<&'static str>> {
    Ok(match policy::current(cx)?.settings(domain).authority.break_glass {
        BreakGlass::Off => Some("policy lets nobody break the glass here"),
        BreakGlass::Owner if cx.actor.role != Some(Role::Owner) => Some("policy lets only owners break the glass here"),
        BreakGlass::Owner | BreakGlass::Approver => None,
    })
}

/// Whether the caller could, once they show that they are there: for the page of a request.
pub(super) fn is_possible(cx: &mut Cx<'_, '_>, request: &Request) -> Result<bool> {
    let waits = cx.actor.is_person() && is_for(request.kind) && request.state_at(cx.now()) == State::Pending;
    let Some(decision) = request.decided()?.filter(|_| waits) else { return Ok(false) };
    let (me, domain) = (cx.actor.id.clone(), &request.domain);
    Ok(needs_others(cx, request, &decision)? && forbidden(cx, domain)?.is_none() && counts(cx, &me, request)?)
}

fn needs_others(cx: &mut Cx<'_, '_>, request: &Request, decision: &Decision) -> Result<bool> {
    let seats = Seats::of(cx, request, decision)?;
    Ok(request.quorum > 1 || seats.is_some_and(|seats| !seats.admits(&cx.actor.id)))
}

pub(super) fn break_glass(cx: &mut Cx<'_, '_>, input: Break) -> Result<Broken> {
    let mut known = undecided(cx, &input.request)?;
    check_decider(cx, &known.request)?;
    let is_there = cx.actor.scopes.is_none() && cx.actor.presence == Presence::Shown && matches!(cx.surface, Surface::Rest | Surface::Cli | Surface::Web);
    if !is_there {
        return Err(Error::forbidden("only a person who is there breaks the glass: no token, no link, no client of a model").hint(WAYS));
    }
    if let Some(why) = forbidden(cx, &known.request.domain)? {
        return Err(Error::forbidden(why).hint(WAYS));
    }
    check_text("reason", &input.reason, CONTENT_BYTES_MAX)?;
    if input.reason.trim().is_empty() {
        return Err(Error::invalid("reason", "must say why nobody could be waited for"));
    }
    check_seen(&known.request, Some(&input.expected_digest))?;
    if !is_for(known.request.kind) || known.request.bound.is_none() {
        return Err(Error::conflict("this is decided in the usual way, or not at all"));
    }
    let decision = again(cx, &mut known.request)?;
    if !needs_others(cx, &known.request, &decision)? {
        return Err(Error::conflict("this needs nobody but you").hint("approve it"));
    }
    check_fresh(cx, "deciding alone what needs others")?;
    let passed_over = passed_over(cx, &known.request, &decision)?;
    let reason = Some(input.reason.clone());
    let (person, round, at) = (cx.actor.id.clone(), known.request.round, cx.now());
    let is_new = !has_voted(cx, &known.request)?;
    if is_new {
        rows::insert_vote(cx, &known.request, "approve")?;
    }
    let so_far = approvals(cx, &known.request, &decision)?;
    settle(cx, &mut known, reason.clone());
    let vote = |event: Event| if is_new { event.fact("vote", json!({ "person": person, "round": round, "vote": "approve", "at": at })) } else { event };
    let marked = |event: Event| event.fact("break_glass", true).fact("passed_over", passed_over.as_slice());
    known.step(cx, APPROVED, State::Approved, |event| marked(vote(event)).fact("approvals", so_far).payload(json!({ "reason": reason })))?;
    // A loud event of its own, beside the approval: messages and reports look for it.
    let told = about(USED, &known.request, &ToldTexts::default())?
        .fact("by", cx.actor.id.as_str())
        .fact("approvals", so_far)
        .fact("passed_over", passed_over.as_slice());
    let everybody: Vec<String> = passed_over.iter().cloned().chain([known.request.requester.id.clone()]).collect();
    cx.emit(told.payload(json!({ "reason": reason })).audience(everybody))?;
    outcome::approved(cx, &known.request, reason.as_deref(), &Further::default())?;
    Ok(Broken { request: RequestOut::new(&known.request, cx.now()), passed_over })
}

/// Everybody who could have decided and was not waited for: those who are named, or else all whose role covers the domain.
fn passed_over(cx: &mut Cx<'_, '_>, request: &Request, decision: &Decision) -> Result<Vec<String>> {
    let everybody: Vec<String> = match Seats::of(cx, request, decision)? {
        Some(seats) => seats.everybody().cloned().collect(),
        None => deciders(cx, request)?,
    };
    let voted: Vec<String> = rows::votes(cx.tx, &request.id)?.into_iter().filter(|vote| vote.round == request.round).map(|vote| vote.person).collect();
    let mut passed: Vec<String> = Vec::new();
    for id in everybody {
        let decides = find_person(cx, &id)?.is_some_and(|person| person.decides_in(&request.domain));
        let is_other = id != cx.actor.id && !request.is_asked_by(&id) && !voted.contains(&id) && !passed.contains(&id);
        if decides && is_other && passed.len() < PEOPLE_TOLD_MAX {
            passed.push(id);
        }
    }
    Ok(passed)
}

/// How a request was decided, if the glass was broken for it in this round.
#[derive(Serialize, JsonSchema)]
pub(super) struct Glass {
    /// Who decided alone, by id.
    by: String,
    /// Who was passed over, by id.
    passed_over: Vec<String>,
}

/// What the record tells of it.
pub(super) fn of(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Option<Glass>> {
    if matches!(request.state, State::Pending | State::Rejected | State::Expired) || request.decided_by.as_deref() == Some("desk") {
        return Ok(None);
    }
    let told = record::told_of_request(cx.tx, &request.subject(), 100)?;
    let body = told.into_iter().map(|told| told.body).find(|body| body.kind == APPROVED.name);
    Ok(body.filter(|body| body.facts.get("break_glass") == Some(&Value::Bool(true))).map(|body| Glass {
        by: body.actor.id.clone(),
        passed_over: body.facts.get("passed_over").and_then(|ids| serde_json::from_value(ids.clone()).ok()).unwrap_or_default(),
    }))
}

/// The requests for which the glass was broken between two places of the record, newest first.
pub(crate) fn broken_between(cx: &mut Cx<'_, '_>, since: i64, until: i64) -> Result<Vec<(String, String, i64)>> {
    let first = i64::try_from(record::place_at(cx.tx, since)?).unwrap_or(i64::MAX);
    let rows = cx.tx.query("select subject, actor, at from event where kind = $1 and seq >= $2 order by seq desc limit 500", args![USED.name, first])?;
    let mut found = Vec::new();
    for row in &rows {
        let (subject, actor, at): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if (since..=until).contains(&at) {
            found.push((subject.trim_start_matches("request:").to_owned(), actor, at));
        }
    }
    Ok(found)
}
