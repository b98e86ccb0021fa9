//! Whether a tool call may run. What policy lets pass runs at once; what a person must see becomes a request, and once it is
//! approved the same call, made again within the time of its grant, uses that grant up.

use serde_json::{Value, json};

use super::event::{Decided, HookOut};
use super::rows::{self, CallRow};
use super::shell::Verb;
use super::tool::{CLIENT_OWN, DESK_CALL, Server, TOOL_CALL, ToolCall, cut};
use super::{OBSERVED, PASSED, tool, veil};
use crate::call::Cx;
use crate::gateway::{self, taint};
use crate::policy::settings::HookMode;
use crate::policy::{self, Act, Decision, Effect, Mode, Reason};
use crate::record::Event;
use crate::request::{self, Begun, Bound, Judged, New, Packet, Request, RequestKind, Requester, State};
use crate::{Result, digest, format_time, hex};

/// How long after a rejection the same call is refused without asking again, in microseconds.
const REJECTED_FOR: i64 = 15 * 60 * 1_000_000;
/// How long a call that may run is the same call when its client asks a second time, in microseconds.
const SAME_CALL: i64 = 5 * 60 * 1_000_000;

/// What a client asks about.
pub(super) struct Asked<'a> {
    pub(super) tool: &'a str,
    pub(super) input: &'a Value,
    pub(super) folder: Option<&'a str>,
    pub(super) server: Server<'a>,
    pub(super) session: &'a str,
    pub(super) call: Option<&'a str>,
    /// Whether the client asks for a person's permission, after its own rules did not decide.
    pub(super) is_question: bool,
}

pub(super) fn decide(cx: &mut Cx<'_, '_>, asked: &Asked<'_>) -> Result<HookOut> {
    let who = Requester::of(&cx.actor);
    let call = ToolCall { tool: asked.tool, input: asked.input, folder: asked.folder, server: asked.server };
    let mut act = call.act();
    let key = digest(&json!([who.kind.name(), who.id, act]))?;
    act.taint = taint::of_caller(cx, Some(asked.session).filter(|session| !session.is_empty()).map(taint::of_hooks).as_deref())?;
    if asked.is_question
        && let Some(row) = asked.call.map(|id| rows::call(cx.tx, &who.id, id)).transpose()?.flatten()
        && row.key == key
        && row.ended_at.is_none()
        && cx.now() - row.begun_at < SAME_CALL
    {
        // The hook before this question has answered it.
        return Ok(HookOut { request_id: row.request, ..HookOut::new(Decided::Allow, "passed") });
    }
    let mut judged = request::weigh(cx, &act, &who, false)?;
    lift(&act, &mut judged.decision);
    if policy::current(cx)?.settings("").hooks.mode == HookMode::Observe {
        count(cx, &act, &mut judged)?;
        return observed(cx, asked, &act, &judged.decision);
    }
    match judged.decision.mode {
        Mode::Act => {
            count(cx, &act, &mut judged)?;
            tell(cx, PASSED, asked, &act, &judged.decision)?;
            begin(cx, asked, &act, &key, None)?;
            cx.decided(Mode::Act);
            Ok(HookOut::new(Decided::Allow, "passed"))
        }
        Mode::Deny => {
            request::denied(cx, &who, &act, &judged.decision)?;
            let why = judged.stopped().map_or_else(|| forbidden(&judged.decision), |why| format!("Deskmate: {why}. Nothing was run."));
            Ok(HookOut::new(Decided::Deny, "denied").reason(why))
        }
        Mode::Suggest | Mode::Escalate => {
            if let Some(out) = known(cx, asked, &call, &act, &key)? {
                if out.decision == Decided::Allow {
                    count(cx, &act, &mut judged)?;
                }
                return Ok(out);
            }
            held(cx, asked, &call, act, judged, &key)
        }
    }
}

/// Counts a call that runs, where a rule looks at how many there were. What is asked of the desk is counted there.
fn count(cx: &mut Cx<'_, '_>, act: &Act, judged: &mut Judged) -> Result<()> {
    if act.kind == DESK_CALL { Ok(()) } else { judged.count(cx, act.cost) }
}

/// What changes nothing, and what a rule names and allows, passes also for an agent that nothing proved: it could look
/// around without the desk as well. A score that was earned without proof still gives nothing more.
fn lift(act: &Act, decision: &mut Decision) {
    let harmless = act.kind == Verb::FileRead.name() || act.kind == Verb::VcsRead.name() || act.kind == CLIENT_OWN || act.kind == DESK_CALL;
    let allowed = decision.hits.iter().any(|hit| hit.effect == Effect::Allow && !hit.failed);
    let only_unproved = |reason: &Reason| reason.mode == Mode::Act || reason.source == "unverified";
    if harmless && allowed && decision.mode == Mode::Suggest && decision.reasons.iter().all(only_unproved) {
        decision.mode = Mode::Act;
    }
}

/// What forbids a call, in words for the agent.
fn forbidden(decision: &Decision) -> String {
    let stops: Vec<String> = decision.hard_stops().map(|hit| hit.reason.clone()).collect();
    let others = || decision.reasons.iter().filter(|reason| reason.mode == Mode::Deny).map(|reason| reason.text.clone()).collect::<Vec<_>>();
    let why = if stops.is_empty() { others() } else { stops };
    let instead = decision.hits.iter().filter(|hit| hit.effect == Effect::Deny).find_map(|hit| hit.alternative.as_deref());
    let instead = instead.map_or_else(String::new, |instead| format!(" Instead: {instead}."));
    format!("Deskmate: this must not be done: {}.{instead} The attempt is on the record.", why.join("; "))
}

/// What a request for the same call that was made before answers.
fn known(cx: &mut Cx<'_, '_>, asked: &Asked<'_>, call: &ToolCall<'_>, act: &Act, key: &[u8]) -> Result<Option<HookOut>> {
    let (agent, now) = (cx.actor.id.clone(), cx.now());
    for id in rows::held(cx.tx, &agent, key)? {
        let Some(request) = request::find(cx, &id)? else { continue };
        if !is_exactly(&request, call)? {
            continue;
        }
        let with = |out: HookOut| Some(HookOut { request_id: Some(id.clone()), ..out });
        match request.state_at(now) {
            State::Pending => return Ok(with(waiting(&request))),
            State::Approved => return redeem(cx, asked, act, key, &request).map(|out| out.and_then(with)),
            State::Rejected if request.decided_at.is_some_and(|at| now - at < REJECTED_FOR) => {
                let why = request.reason.as_deref().map_or_else(String::new, |reason| format!(": {}", veil::hidden(reason)));
                return Ok(with(
                    HookOut::new(Decided::Deny, "rejected").reason(format!("Deskmate: a person rejected exactly this{why}. Do not try it again.")),
                ));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Whether a request was made for exactly this call, with what is not kept of it. The record vouches for the request.
fn is_exactly(request: &Request, call: &ToolCall<'_>) -> Result<bool> {
    let Ok(bound) = Bound::read(request) else { return Ok(false) };
    let part = |name: &str| bound.target.as_ref().and_then(|sealed| sealed.get(name)).and_then(Value::as_str).unwrap_or_default();
    Ok(!part("salt").is_empty() && call.seal(part("salt"))? == part("sha256"))
}

/// Uses the grant of an approved call up. `None` where there is none to use any more, and the call is asked about anew.
fn redeem(cx: &mut Cx<'_, '_>, asked: &Asked<'_>, act: &Act, key: &[u8], request: &Request) -> Result<Option<HookOut>> {
    let begun = match request::begin(cx, &request.id, None) {
        Ok(begun) => begun,
        // The grant has run out or was taken back; a pause is told as it is.
        Err(error) if error.code == crate::Code::Conflict => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(match begun {
        Begun::Go(permit) => {
            begin(cx, asked, act, key, Some(permit.request.id))?;
            cx.decided(Mode::Act);
            HookOut::new(Decided::Allow, "redeemed").reason("Deskmate: a person approved exactly this, once.")
        }
        Begun::Stopped(stop) => HookOut::new(Decided::Deny, "stopped").reason(format!("Deskmate: {}.", stop.message)),
    }))
}

/// Notes a call that runs now, so that what comes of it can be told.
fn begin(cx: &mut Cx<'_, '_>, asked: &Asked<'_>, act: &Act, key: &[u8], request: Option<String>) -> Result<()> {
    // What comes from the web and from other servers is nobody's word; what the agent does later carries that.
    let session = taint::of_hooks(asked.session);
    if act.arguments.get("fetches") == Some(&json!(true)) {
        taint::add(cx, Some(&session), "web")?;
    }
    if act.kind == TOOL_CALL {
        taint::add(cx, Some(&session), &act.domain)?;
    }
    if act.kind == DESK_CALL
        && let Some(mount) = mounted(cx, asked)?
    {
        taint::add(cx, Some(&session), &gateway::origin(&mount))?;
    }
    let Some(call) = asked.call.filter(|call| !call.is_empty()) else { return Ok(()) };
    let (agent, begun_at) = (cx.actor.id.clone(), cx.now());
    let row = CallRow {
        session: asked.session.to_owned(),
        tool: asked.tool.to_owned(),
        verb: act.kind.clone(),
        domain: act.domain.clone(),
        key: key.to_vec(),
        request,
        begun_at,
        ended_at: None,
    };
    rows::begin(cx.tx, &agent, call, &row)
}

/// The server behind the desk that a call of the desk's tools reaches. The desk counts what it brings to the connection; here it is
/// counted to the session that reads it.
fn mounted(cx: &mut Cx<'_, '_>, asked: &Asked<'_>) -> Result<Option<String>> {
    let Some((_, tool)) = tool::mcp(asked.tool) else { return Ok(None) };
    if matches!(tool, "gateway_call" | "call") {
        let named = asked.input.get("mount").and_then(Value::as_str);
        return Ok(gateway::served(cx)?.into_iter().map(|mount| mount.name).find(|name| Some(name.as_str()) == named));
    }
    Ok(gateway::named(cx, tool)?.map(|(mount, _)| mount))
}

fn waiting(request: &Request) -> HookOut {
    let reason = format!(
        "Deskmate: this waits for a person in the inbox until {} (request {}). Nothing was run. Do something else, and try exactly this again once it is approved.",
        format_time(request.expires_at),
        request.id
    );
    HookOut { request_id: Some(request.id.clone()), ..HookOut::new(Decided::Deny, "held").reason(reason) }
}

/// Makes a request of a call.
fn held(cx: &mut Cx<'_, '_>, asked: &Asked<'_>, call: &ToolCall<'_>, act: Act, judged: Judged, key: &[u8]) -> Result<HookOut> {
    let Judged { decision, trust, .. } = judged;
    let salt = hex(&cx.secret());
    let sha256 = call.seal(&salt)?;
    let title = cut(&format!("{}: {}", asked.tool, if act.action == asked.tool { &act.target } else { &act.action }), 200);
    let why = asked.input.get("description").and_then(Value::as_str).map(|text| cut(&veil::hidden(text), 2_000));
    let more = json!({ "session": asked.session, "tool_use_id": asked.call });
    let mut new = New { packet: Packet { reasoning: why, more, ..Packet::default() }, trust, ..New::new(RequestKind::ToolCall, title, act, decision) };
    // The digest of the request covers the exact call, with what is not kept of it.
    new.target = Some(json!({ "salt": salt, "sha256": sha256 }));
    let made = request::submit(cx, new)?;
    let (agent, now) = (cx.actor.id.clone(), cx.now());
    rows::hold(cx.tx, &made.id, &agent, key, now)?;
    Ok(waiting(&made))
}

/// Tells what would have been decided, and lets the client do as it would without the desk.
fn observed(cx: &mut Cx<'_, '_>, asked: &Asked<'_>, act: &Act, decision: &Decision) -> Result<HookOut> {
    tell(cx, OBSERVED, asked, act, decision)?;
    begin(cx, asked, act, &[], None)?;
    let would = match decision.mode {
        Mode::Act => "let this pass".to_owned(),
        Mode::Deny => format!("have refused this ({})", forbidden(decision)),
        Mode::Suggest | Mode::Escalate => "have asked a person first".to_owned(),
    };
    Ok(HookOut::new(Decided::None, "observed").reason(format!("Deskmate only observes: NOTHING IS ENFORCED. It would {would}.")))
}

fn tell(cx: &mut Cx<'_, '_>, kind: crate::record::Kind, asked: &Asked<'_>, act: &Act, decision: &Decision) -> Result<()> {
    let rules: Vec<Value> = decision.hits.iter().map(|hit| json!({ "rule": hit.rule_id, "policy": hit.policy, "version": hit.version })).collect();
    let event = Event::new(kind, format!("agent:{}", cx.actor.id))
        .fact("domain", act.domain.as_str())
        .fact("verb", act.kind.as_str())
        .fact("mode", decision.mode.name())
        .fact("risk", decision.risk.as_str())
        .fact("rulebook", decision.rulebook.as_str())
        .fact("rules", rules)
        .payload(json!({ "act": request::shown_act(act, decision), "session": asked.session, "tool_use_id": asked.call }));
    cx.emit(event)
}
