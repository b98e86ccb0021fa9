//! What a run may call. Operations that have a decision of their own ask it themselves, with the policies of the agent; what has none
//! (messages, tasks) is asked here, by the rules that hold for the agent. A rule that forbids it fails the step, one that asks for a
//! person makes the run wait, as a pause does, and what was approved is what is called.

use deskmate_db::args;
use serde_json::{Value, json};

use crate::call::{Cx, Effect, Op, Toolset};
use crate::gateway::taint;
use crate::policy::{Act, Decision, HIGH_RISK_LIST, Mode};
use crate::request::{self, Begun, New, Outcome, Packet, RequestKind, Requester, State};
use crate::{Result, digest, meter};

/// What becomes of a call.
pub(crate) enum Passage {
    /// It is made; afterwards this request is done, if there is one.
    Free(Option<String>),
    /// It is not made, or not yet: this is the answer.
    Refused(Value),
    /// It waits for people.
    Waits(Value),
}

/// The verb of calls that have no other.
const STEP: &str = "step";
/// The domain of what concerns agents as such.
pub(super) const DOMAIN: &str = "desk.agents";

/// Whether an operation asks nobody else.
pub(super) fn is_asked(toolset: Toolset, name: &str, effect: Effect) -> bool {
    let own = matches!(toolset, Toolset::Cowork | Toolset::Gateway | Toolset::Workspace | Toolset::Hook | Toolset::Desk | Toolset::Conformance);
    // What an agent does with its own mail and its own runs is its own affair.
    let quiet = matches!(name, "read_messages" | "acknowledge_messages" | "heartbeat_task" | "stop_run");
    effect == Effect::Write && !own && !quiet
}

/// The act that a call of a desk's own operation is.
pub(super) fn act_of(toolset: Toolset, name: &str, input: &Value) -> Act {
    let full = if name.starts_with(toolset.name()) { name.to_owned() } else { format!("{}_{name}", toolset.name()) };
    let target = input.get("to").or_else(|| input.get("assignee")).or_else(|| input.get("agentId")).and_then(Value::as_str);
    Act {
        kind: STEP.to_owned(),
        tool: full,
        domain: format!("desk.{}", toolset.name()),
        action: name.to_owned(),
        target: target.unwrap_or_default().chars().take(200).collect(),
        arguments: input.clone(),
        call: true,
        ..Act::default()
    }
}

/// What the rules say to it, whatever the trust: nothing, a person, or no.
pub(super) fn by_rules(decision: &Decision) -> Mode {
    if request::forbids(decision).is_some() {
        return Mode::Deny;
    }
    let asks = |hit: &crate::policy::Hit| hit.effect == crate::policy::Effect::RequireApproval && hit.policy != HIGH_RISK_LIST;
    if decision.hits.iter().any(asks) { Mode::Suggest } else { Mode::Act }
}

fn refused(why: &str) -> Passage {
    Passage::Refused(json!({ "state": "denied", "refused_by_policy": true, "message": why }))
}

/// Asks about a call of a run. `key` is what makes it a call of its own among equal ones.
pub(crate) fn pass(cx: &mut Cx<'_, '_>, op: &Op, input: &Value, key: Option<&str>) -> Result<Passage> {
    let Some(run) = cx.actor.run.clone() else { return Ok(Passage::Free(None)) };
    if !is_asked(op.toolset, op.name, op.effect_of(input)) {
        return Ok(Passage::Free(None));
    }
    let act = Act { taint: taint::of_asking(cx)?, ..act_of(op.toolset, op.name, input) };
    let who = Requester::of(&cx.actor);
    let own = digest(&json!({ "tool": act.tool, "input": input, "key": key }))?.to_vec();
    let held = cx.tx.optional("select request from agent_hold where run = $1 and digest = $2", args![run, own])?;
    let held: Option<String> = held.map(|row| row.get(0)).transpose()?;
    if let Some(id) = &held
        && let Some(found) = request::find(cx, id)?
    {
        match found.state_at(cx.now()) {
            State::Pending => return Ok(waits(id)),
            // Its grant stays unused, for when somebody lets the agent go on.
            State::Approved if meter::paused(cx, &who.id)? => return Ok(paused()),
            State::Approved => {
                return Ok(match request::begin(cx, id, None)? {
                    Begun::Go(_) => {
                        request::weigh(cx, &act, &who, false)?.count(cx, act.cost)?;
                        Passage::Free(Some(id.clone()))
                    }
                    Begun::Stopped(stop) => refused(&stop.message),
                });
            }
            State::Executing | State::Done | State::Failed | State::Ambiguous | State::Superseded => {}
            State::Rejected | State::Expired | State::Cancelled => return Ok(refused(&format!("request {id} was not approved"))),
        }
    }
    let mut judged = request::weigh(cx, &act, &who, false)?;
    if judged.gauge.as_ref().is_some_and(|gauge| gauge.paused) {
        return Ok(paused());
    }
    if let Some(held) = judged.gauge.as_ref().and_then(|gauge| gauge.held.as_ref()) {
        return Err(held.error());
    }
    match by_rules(&judged.decision) {
        Mode::Act => {
            judged.count(cx, act.cost)?;
            Ok(Passage::Free(None))
        }
        Mode::Deny => {
            let why = request::forbids(&judged.decision).unwrap_or_default();
            request::denied(cx, &who, &act, &judged.decision)?;
            Ok(refused(&why))
        }
        _ => {
            let mut decision = judged.decision;
            if matches!(decision.mode, Mode::Deny | Mode::Act) {
                decision.mode = Mode::Suggest;
            }
            let why: Vec<String> = decision.hits.iter().map(|hit| hit.reason.clone()).collect();
            let packet = Packet { reasoning: Some(why.join("; ")), more: json!({ "run": run }), ..Packet::default() };
            let title = format!("{} wants to call {}", who.id, act.tool);
            let made = request::submit(cx, New { packet, ..New::new(RequestKind::Approval, title, act, decision) })?;
            let sql = "insert into agent_hold (run, digest, request) values ($1, $2, $3) on conflict (run, digest) do update set request = excluded.request";
            cx.tx.execute(sql, args![run, own, made.id])?;
            Ok(waits(&made.id))
        }
    }
}

fn waits(request: &str) -> Passage {
    Passage::Waits(json!({ "state": "held_for_person", "request_id": request, "message": "a rule asks for a person, and the run waits" }))
}

/// The kill switch holds a run where it is. It ends only what is decided otherwise meanwhile.
fn paused() -> Passage {
    Passage::Waits(json!({ "state": "paused", "message": "its agent is paused, and the run waits until a person lets it go on" }))
}

/// Takes back the calls of a run that has ended for which people are asked, or that they approved and that were not made: nobody makes them any
/// more.
pub(super) fn run_ended(cx: &mut Cx<'_, '_>, run: &str) -> Result<()> {
    for row in cx.tx.query("select request from agent_hold where run = $1 order by request", args![run])? {
        request::withdraw_if_open(cx, &row.get::<String>(0)?, "the run that asked for it has ended")?;
    }
    Ok(())
}

/// Notes that an approved call was made.
pub(crate) fn passed(cx: &mut Cx<'_, '_>, request: &str) -> Result<()> {
    request::finish(cx, request, Outcome::Done).map(drop)
}
