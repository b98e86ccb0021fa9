//! What comes after the decision: held calls that were approved are begun once, and what came of every call is told.

use deskmate_db::args;
use serde_json::{Value, json};

use super::call::{act, may_pass_on, origin, served as served_tool};
use super::mount::{self, Mount};
use super::rows::{self, CallRow, CallState, select_call};
use super::{CALL_JOB, DENIED, ENDED, PASSED, taint};
use crate::call::{Actor, ActorKind, Cx};
use crate::job::{self, NewJob, Owner, Priority};
use crate::limits::CALL_RESULT_BYTES_MAX;
use crate::policy::Effect;
use crate::record::Event;
use crate::request::{self, Begun, Bound, Outcome, Request, Requester, State};
use crate::{Code, Error, Result, cowork, hex};

/// A person approved a held call: it is queued, to be done whether its caller is still there or not.
pub(crate) fn approved(cx: &mut Cx<'_, '_>, request: &Request) -> Result<()> {
    let Some(row) = rows::of_request(cx.tx, &request.id)? else { return Ok(()) };
    // A job whose worker is lost is taken again: it begins the call if nobody has, and else ends it as one of which nobody knows
    // what came.
    let new = NewJob {
        priority: Priority::Urgent,
        unique_key: Some(row.id.clone()),
        owner: Some(Owner { kind: row.who.kind, id: row.who.id.clone() }),
        ..NewJob::new(CALL_JOB, json!({ "call": row.id }))
    };
    job::enqueue(cx, new).map(drop)
}

/// The request of a held call ended without an approval: nothing was done, and nothing will be.
pub(crate) fn not_approved(cx: &mut Cx<'_, '_>, request: &Request) -> Result<()> {
    let Some(mut row) = rows::of_request(cx.tx, &request.id)?.filter(|row| row.state == CallState::Held) else { return Ok(()) };
    (row.state, row.ended_at) = (CallState::Denied, Some(cx.now()));
    rows::save(cx.tx, &row)?;
    let event = Event::new(DENIED, row.subject())
        .fact("mount", row.mount.as_str())
        .fact("tool", row.tool.as_str())
        .fact("request", request.id.as_str())
        .fact("was", request.state.name());
    cx.emit(event.audience([row.who.id.as_str()]))
}

pub(super) const HELD_OF: &str = select_call!(
    "where actor_kind = 'agent' and actor = $1 and state = 'held' and request is not null and delivered_at is null order by digest, created_at, id"
);

/// Takes back the calls of an agent that were held since a moment and are not begun: nobody is left who asks for them.
pub(crate) fn withdraw(cx: &mut Cx<'_, '_>, agent: &str, since: i64, why: &str) -> Result<()> {
    let rows = cx.tx.query(HELD_OF, args![agent])?.iter().map(CallRow::read).collect::<Result<Vec<_>>>()?;
    for request in rows.into_iter().filter(|row| row.created_at >= since).filter_map(|row| row.request) {
        request::withdraw_if_open(cx, &request, why)?;
    }
    Ok(())
}

/// A call that may be handed on now.
#[derive(Clone, Debug)]
pub struct Handed {
    /// The call.
    pub call: String,
    /// To which server.
    pub mount: Mount,
    /// The tool.
    pub tool: String,
    /// With which arguments: exactly those that were decided on.
    pub arguments: Value,
    /// For whom.
    pub agent: String,
}

/// Begins a held call that was approved: its grant is used up. `None` if there is nothing to do any more.
pub fn begin(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Handed>> {
    let Some(mut row) = rows::load(cx.tx, id)?.filter(|row| row.state == CallState::Held) else { return Ok(None) };
    let now = cx.now();
    let approved =
        row.request.as_deref().map(|id| request::find_whole(cx, id)).transpose()?.flatten().filter(|request| request.state_at(now) == State::Approved);
    let Some(request) = approved else { return Ok(None) };
    let mount = match same_tool(cx, &row, &request) {
        Ok(mount) => mount,
        Err(error) => {
            not_handed_on(cx, row, &error.message)?;
            return Ok(None);
        }
    };
    let request = request.id;
    let begun = match request::begin(cx, &request, None) {
        Ok(begun) => begun,
        // Its agent is paused, or the grant was taken back or is too old: that is known now, and nothing was begun.
        Err(error) if matches!(error.code, Code::Forbidden | Code::Conflict) => {
            not_handed_on(cx, row, &error.message)?;
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    match begun {
        Begun::Go(permit) => {
            (row.state, row.passed_at) = (CallState::Passed, Some(cx.now()));
            rows::save(cx.tx, &row)?;
            let event = Event::new(PASSED, row.subject())
                .fact("mount", row.mount.as_str())
                .fact("tool", row.tool.as_str())
                .fact("mode", row.mode.as_str())
                .fact("digest", hex(&row.digest))
                .fact("request", request.as_str())
                .fact("grant", permit.grant.as_str());
            cx.emit(event.audience([row.who.id.as_str()]))?;
            if row.who.kind == ActorKind::Agent {
                let desk = std::mem::replace(&mut cx.actor, Actor::agent(&row.who.id, row.who.verified));
                let added = taint::add(cx, Some(taint::EVERY), &origin(&row.mount));
                cx.actor = desk;
                added?;
            }
            Ok(Some(Handed { call: row.id, mount, tool: row.tool, arguments: permit.act.arguments, agent: row.who.id }))
        }
        // Today's rules forbid it: the desk has said no in the place of people.
        Begun::Stopped(stop) if stop.request.state == State::Rejected => not_approved(cx, &stop.request).map(|()| None),
        // It waits for people again.
        Begun::Stopped(_) => Ok(None),
    }
}

/// Whether a call whose server asked its caller something may go on: not if meanwhile the caller was paused, the tool is not served any
/// more, or a rule forbids it. What the caller has read is left out: this server is among that.
pub fn may_go_on(cx: &mut Cx<'_, '_>, handed: &Handed) -> Result<()> {
    let mount = mount::find(cx, &handed.mount.name)?;
    may_pass_on(&mount)?;
    served_tool(cx, &mount, &handed.tool)?;
    let begun = rows::load(cx.tx, &handed.call)?.map_or_else(|| cx.now(), |row| row.created_at);
    let act = act(&mount, &handed.tool, handed.arguments.clone(), Vec::new());
    let who = Requester::of(&cx.actor);
    let today = request::weigh_begun(cx, &act, &who, begun)?;
    if let Some(why) = today.stopped() {
        return Err(Error::forbidden(why));
    }
    let forbids = today.decision.hits.into_iter().find(|hit| hit.effect == Effect::Deny);
    forbids.map_or(Ok(()), |hit| Err(Error::forbidden(hit.reason)))
}

/// The mount of a call, if the tool is served there, and still is what people saw when they approved the call.
fn same_tool(cx: &mut Cx<'_, '_>, row: &CallRow, request: &Request) -> Result<Mount> {
    let mount = mount::find(cx, &row.mount)?;
    may_pass_on(&mount)?;
    let tool = served_tool(cx, &mount, &row.tool)?;
    if Bound::read(request)?.schema.is_some_and(|then| then != hex(&tool.digest)) {
        return Err(Error::conflict(format!("the tool {} of {} is not any more what it was when this was asked", row.tool, row.mount)));
    }
    Ok(mount)
}

/// A call that was approved and cannot be handed on.
fn not_handed_on(cx: &mut Cx<'_, '_>, row: CallRow, why: &str) -> Result<()> {
    end_one(cx, row, &Ended { call: String::new(), outcome: Outcome::Failed, micros: 0, bytes: 0, note: Some(why.to_owned()), result: None, digest: None })
}

/// A call that waited under a request, for whoever tells its caller how it stands.
pub(crate) struct CallOf {
    /// The call.
    pub(crate) id: String,
    /// How it stands.
    pub(crate) state: &'static str,
    /// Whether its caller has what came of it.
    pub(crate) is_delivered: bool,
}

/// The call of a mounted tool that a request is about.
pub(crate) fn call_of(cx: &mut Cx<'_, '_>, request: &str) -> Result<Option<CallOf>> {
    let sql = "select id, state, delivered_at from gateway_call where request = $1 order by created_at desc, id desc limit 1";
    let row = cx.tx.optional(sql, args![request])?;
    row.map(|row| {
        let state = CallState::from_name(&row.get::<String>(1)?)?.name();
        Ok(CallOf { id: row.get(0)?, state, is_delivered: row.get::<Option<i64>>(2)?.is_some() })
    })
    .transpose()
}

/// What came of a call.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The call.
    pub call: String,
    /// How it ended.
    pub outcome: Outcome,
    /// How long the server took.
    pub micros: i64,
    /// How much came back.
    pub bytes: i64,
    /// What went wrong, in words.
    pub note: Option<String>,
    /// What came back, as it may be shown; kept where the caller may have gone.
    pub result: Option<String>,
    /// The digest of what came back.
    pub digest: Option<[u8; 32]>,
}

/// Tells what came of calls.
pub fn end(cx: &mut Cx<'_, '_>, calls: &[Ended]) -> Result<()> {
    for ended in calls {
        if let Some(row) = rows::load(cx.tx, &ended.call)?.filter(|row| !row.state.is_over() || row.state == CallState::Ambiguous) {
            end_one(cx, row, ended)?;
        }
    }
    Ok(())
}

fn end_one(cx: &mut Cx<'_, '_>, mut row: CallRow, ended: &Ended) -> Result<()> {
    let handed_on = row.passed_at.is_some();
    row.state = match ended.outcome {
        Outcome::Done => CallState::Done,
        Outcome::Failed => CallState::Failed,
        Outcome::Ambiguous => CallState::Ambiguous,
    };
    row.ended_at = Some(cx.now());
    (row.micros, row.bytes, row.note) = (Some(ended.micros), Some(ended.bytes), ended.note.clone());
    if row.request.is_some() && row.delivered_at.is_none() {
        row.result = ended.result.clone().filter(|text| text.len() <= CALL_RESULT_BYTES_MAX);
        if row.result.is_none() && ended.result.is_some() {
            let long = format!("what came back was too long to be kept: more than {CALL_RESULT_BYTES_MAX} bytes");
            row.note = Some(row.note.map_or_else(|| long.clone(), |note| format!("{note}; {long}")));
        }
    }
    rows::save(cx.tx, &row)?;
    let mut event = Event::new(ENDED, row.subject())
        .fact("mount", row.mount.as_str())
        .fact("tool", row.tool.as_str())
        .fact("outcome", row.state.name())
        .fact("micros", ended.micros)
        .fact("bytes", ended.bytes);
    if let Some(digest) = &ended.digest {
        event = event.fact("result", hex(digest));
    }
    if let Some(note) = &row.note {
        event = event.payload(json!({ "note": note }));
    }
    cx.emit(event.audience([row.who.id.as_str()]))?;
    if let Some(request) = row.request.as_deref().filter(|_| handed_on) {
        request::finish(cx, request, ended.outcome)?;
    }
    if let Some(proposal) = &row.proposal {
        request::finish(cx, proposal, ended.outcome)?;
        cowork::observed(cx, proposal, &row.id, ended.outcome)?;
    }
    Ok(())
}

/// The job of a held call has ended. If it left the call in the middle, nobody knows what came of it; if it was stopped before,
/// nothing did.
pub(crate) fn job_ended(cx: &mut Cx<'_, '_>, kind: &str, job: &str) -> Result<()> {
    if kind != CALL_JOB {
        return Ok(());
    }
    let call = cx.tx.optional("select unique_key from job where id = $1", args![job])?.map(|row| row.get::<Option<String>>(0)).transpose()?.flatten();
    let Some(row) = call.map(|call| rows::load(cx.tx, &call)).transpose()?.flatten().filter(|row| !row.state.is_over()) else { return Ok(()) };
    if row.state == CallState::Passed {
        return lost(cx, row);
    }
    // What was stopped by today's rules waits for people again, and so does the call.
    let request = row.request.as_deref().map(|id| request::find_whole(cx, id)).transpose()?.flatten();
    if request.is_some_and(|request| request.state == State::Approved) { not_handed_on(cx, row, "its job was stopped before it began") } else { Ok(()) }
}

fn lost(cx: &mut Cx<'_, '_>, row: CallRow) -> Result<()> {
    let note = Some("the desk stopped while it was under way".to_owned());
    end_one(cx, row, &Ended { call: String::new(), outcome: Outcome::Ambiguous, micros: 0, bytes: 0, note, result: None, digest: None })
}

pub(super) const UNDER_WAY: &str = select_call!("where passed_at is not null and ended_at is null and passed_at < $1 order by passed_at, id limit $2");

/// Ends calls that were handed on before a moment and of which nothing was heard: nobody knows what came of them. Answers how
/// many there were.
pub fn abandon(cx: &mut Cx<'_, '_>, before: i64, limit: u32) -> Result<usize> {
    let rows = cx.tx.query(UNDER_WAY, args![before, i64::from(limit)])?;
    let rows: Vec<CallRow> = rows.iter().map(CallRow::read).collect::<Result<_>>()?;
    let count = rows.len();
    for row in rows {
        lost(cx, row)?;
    }
    Ok(count)
}

/// Calls that are over: their time counts from their end, because nobody could fetch what came of them before. Held ones count from when they
/// were made, and only once nobody will decide about them or do them any more.
pub(super) const OVER: &str = "select id from gateway_call where created_at < $1 and (ended_at < $1 or (state = 'held' and not exists (select 1 from request \
     where request.id = gateway_call.request and request.state in ('pending', 'approved', 'executing')))) order by created_at, id limit $2";

/// Removes calls that ended long ago; the record tells of them for ever. Answers how many went.
pub fn prune(cx: &mut Cx<'_, '_>, before: i64, limit: u32) -> Result<u64> {
    let rows = cx.tx.query(OVER, args![before, i64::from(limit)])?;
    for row in &rows {
        let id: String = row.get(0)?;
        cx.tx.execute("delete from gateway_call where id = $1", args![id])?;
    }
    Ok(rows.len() as u64)
}

/// The mounts that are served, for whoever keeps connections to them.
pub fn served(cx: &mut Cx<'_, '_>) -> Result<Vec<Mount>> {
    Ok(mount::all(cx)?.into_iter().filter(|mount| mount.enabled).collect())
}

/// The served mounts of which no tool is known yet.
pub fn unseen(cx: &mut Cx<'_, '_>) -> Result<Vec<String>> {
    let mut unseen = Vec::new();
    for mount in served(cx)? {
        if cx.tx.optional("select tool from mount_tool where mount = $1 limit 1", args![mount.name])?.is_none() {
            unseen.push(mount.name);
        }
    }
    Ok(unseen)
}

/// A mount by its name, for whoever hands a call on.
pub fn mount_of(cx: &mut Cx<'_, '_>, name: &str) -> Result<Mount> {
    mount::find(cx, name).map_err(|error| Error { hint: None, ..error })
}
