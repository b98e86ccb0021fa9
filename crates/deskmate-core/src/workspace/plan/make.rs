//! Making a plan: the job reads what was asked for, hands in the steps some hundred at a time, and says that it has all of
//! them. Then they are bound by a digest, policy is asked, and a request waits for people.

use deskmate_db::args;
use serde_json::{Value, json};

use super::super::judge;
use super::super::root::{self, Root};
use super::model::{Ask, PlanState, Step, StepOutcome};
use super::rows::{self, Part, Plan, Sum};
use super::{FAILED, MADE};
use crate::call::Cx;
use crate::limits::{PLAN_PATHS_SHOWN, PLAN_STEPS_MAX};
use crate::meter::{self, Taken};
use crate::policy::{Act, Mode};
use crate::record::Event;
use crate::request::{self, New, Packet, RequestKind};
use crate::{Error, Result, hex};

/// The verb of plans.
const CHANGE: &str = "file.change";

/// A plan that is to be made.
#[derive(Clone, Debug)]
pub struct Making {
    /// Which.
    pub plan: String,
    /// Beneath which root.
    pub root: Root,
    /// What is wanted.
    pub ask: Ask,
}

/// What a job has to make a plan of; `None` if there is nothing to make any more. Steps of an earlier attempt go.
pub fn making(cx: &mut Cx<'_, '_>, job: &str) -> Result<Option<Making>> {
    let Some(plan) = rows::of_job(cx.tx, job)?.filter(|plan| plan.state == PlanState::Planning) else { return Ok(None) };
    cx.tx.execute("delete from plan_part where plan = $1", args![plan.id])?;
    let root = root::find(cx, Some(&plan.root))?;
    Ok(Some(Making { ask: plan.asked()?, plan: plan.id, root }))
}

/// Takes some steps of a plan that is being made.
pub fn add_part(cx: &mut Cx<'_, '_>, plan: &str, number: i64, part: &Part) -> Result<()> {
    rows::insert_part(cx.tx, plan, number, part)
}

/// The steps of a plan that ran, with what came of them, by the number of a part; `None` behind the last one.
pub fn executed(cx: &mut Cx<'_, '_>, plan: &str, number: i64) -> Result<Option<(Vec<Step>, Vec<StepOutcome>)>> {
    let Some(part) = rows::part(cx.tx, plan, number)? else { return Ok(None) };
    Ok(Some((part.steps(plan)?, part.outcomes(plan)?)))
}

/// How many parts a plan has.
pub fn parts(cx: &mut Cx<'_, '_>, plan: &str) -> Result<i64> {
    let row = cx.tx.optional("select count(*) from plan_part where plan = $1", args![plan])?;
    Ok(row.map(|row| row.get(0)).transpose()?.unwrap_or(0))
}

/// What the steps of a plan come to.
#[derive(Default)]
struct Total {
    steps: i64,
    sum: Sum,
    paths: Vec<String>,
    digests: Vec<String>,
}

fn total(cx: &mut Cx<'_, '_>, plan: &Plan) -> Result<Total> {
    let mut total = Total::default();
    for (steps, digest, sum) in rows::sums(cx.tx, &plan.id)? {
        total.steps += steps;
        total.digests.push(hex(&digest));
        total.sum.bytes = total.sum.bytes.saturating_add(sum.bytes);
        total.sum.irreversible += sum.irreversible;
        for (action, count) in sum.actions {
            *total.sum.actions.entry(action).or_default() += count;
        }
    }
    let mut number = 0;
    while total.paths.len() < PLAN_PATHS_SHOWN
        && let Some(part) = rows::part(cx.tx, &plan.id, number)?
    {
        total.paths.extend(part.steps(&plan.id)?.into_iter().flat_map(|step| step.from.into_iter().chain(step.to)));
        number += 1;
    }
    total.paths.truncate(PLAN_PATHS_SHOWN);
    Ok(total)
}

/// The digest of a plan: over its root as it is in force, its kind, and the digests of its parts.
pub(super) fn digest(root: &Root, kind: &str, parts: &[String]) -> Result<[u8; 32]> {
    crate::digest(&json!({ "root": root.name, "path": root.path, "kind": kind, "parts": parts }))
}

/// All steps are there: binds them, asks policy, and makes the request that waits for people.
pub fn made(cx: &mut Cx<'_, '_>, id: &str) -> Result<()> {
    let Some(mut plan) = rows::load(cx.tx, id)?.filter(|plan| plan.state == PlanState::Planning) else { return Ok(()) };
    let root = root::find(cx, Some(&plan.root))?;
    let total = total(cx, &plan)?;
    if total.steps > PLAN_STEPS_MAX {
        return not_made(cx, id, &format!("{} steps are too many for one plan: at most {PLAN_STEPS_MAX}", total.steps));
    }
    (plan.steps, plan.bytes) = (total.steps, total.sum.bytes);
    if total.steps == 0 {
        plan.state = PlanState::Empty;
        plan.finished_at = Some(cx.now());
        return tell_made(cx, &plan, &total);
    }
    let digest = digest(&root, &plan.kind, &total.digests)?;
    plan.digest = Some(digest.to_vec());
    let act = Act {
        kind: CHANGE.to_owned(),
        tool: "workspace_execute_plan".to_owned(),
        domain: root.domain(),
        action: plan.kind.clone(),
        target: root.name.clone(),
        arguments: json!({
            "plan": plan.id, "root": root.name, "digest": hex(&digest), "steps": total.steps, "bytes": total.sum.bytes,
            "actions": total.sum.actions, "irreversible": total.sum.irreversible, "paths": total.paths,
        }),
        ..Act::default()
    };
    let decision = judge::may_change(cx, &act, &plan.owner)?;
    if decision.mode == Mode::Deny {
        let why = judge::stops(&decision).map_or_else(|| "a limit of today".to_owned(), |(why, _)| why);
        request::denied(cx, &plan.owner, &act, &decision)?;
        return not_made(cx, id, &format!("this must not be done: {why}"));
    }
    if plan.owner.is_agent()
        && let Taken::Full(full) = meter::take(cx, &plan.owner.id, &act.domain, 0)?
    {
        return not_made(cx, id, &format!("a limit is reached ({}); try again later", full.message()));
    }
    let title = title(&plan, &total.sum);
    let undo = if total.sum.irreversible > 0 { format!("{} steps cannot be undone", total.sum.irreversible) } else { "undo_plan takes it back".to_owned() };
    let packet = Packet { reasoning: plan.summary.clone(), reversibility: Some(undo), more: json!({ "plan": plan.id }), ..Packet::default() };
    let mut new = New { requester: Some(plan.owner.clone()), packet, ..New::new(RequestKind::Plan, title, act, decision) };
    if plan.kind == "purge" {
        "high".clone_into(&mut new.decision.risk);
    }
    plan.request = Some(request::submit(cx, new)?.id);
    plan.state = PlanState::Ready;
    tell_made(cx, &plan, &total)
}

/// A line for the inbox.
fn title(plan: &Plan, sum: &Sum) -> String {
    let actions: Vec<String> = sum.actions.iter().map(|(action, count)| format!("{count} × {}", action.replace('_', " "))).collect();
    format!("{} in {}: {}", plan.kind, plan.root, actions.join(", "))
}

fn tell_made(cx: &mut Cx<'_, '_>, plan: &Plan, total: &Total) -> Result<()> {
    rows::save(cx, plan)?;
    let event = Event::new(MADE, plan.subject())
        .fact("root", plan.root.as_str())
        .fact("plan_kind", plan.kind.as_str())
        .fact("state", plan.state.name())
        .fact("steps", plan.steps)
        .fact("bytes", plan.bytes)
        .fact("actions", json!(total.sum.actions))
        .fact("digest", plan.digest.as_deref().map(hex))
        .fact("request", plan.request.as_deref());
    cx.emit(event.payload(json!({ "paths": total.paths })).audience([plan.owner.id.as_str()]))
}

/// A plan could not be made.
pub fn not_made(cx: &mut Cx<'_, '_>, id: &str, why: &str) -> Result<()> {
    let Some(mut plan) = rows::load(cx.tx, id)?.filter(|plan| plan.state == PlanState::Planning) else { return Ok(()) };
    cx.tx.execute("delete from plan_part where plan = $1", args![id])?;
    plan.state = PlanState::Failed;
    plan.finished_at = Some(cx.now());
    plan.note = Some(why.to_owned());
    rows::save(cx, &plan)?;
    let event = Event::new(FAILED, plan.subject()).fact("root", plan.root.as_str());
    cx.emit(event.payload(json!({ "why": why })).audience([plan.owner.id.as_str()]))
}

/// Refuses a plan whose steps are not any more those that were approved.
pub(super) fn approved_parts(cx: &mut Cx<'_, '_>, plan: &Plan, act: &Act) -> Result<Vec<(i64, [u8; 32], String)>> {
    let root = root::find(cx, Some(&plan.root))?;
    let parts = rows::digests(cx.tx, &plan.id)?;
    let hexed: Vec<String> = parts.iter().map(|(_, digest, _)| hex(digest)).collect();
    let is_digest = hex(&digest(&root, &plan.kind, &hexed)?);
    let (approved, of_plan) = (act.arguments.get("digest"), act.arguments.get("plan"));
    if approved != Some(&Value::from(is_digest)) || of_plan != Some(&Value::from(plan.id.as_str())) {
        return Err(Error::conflict("the steps or the root of this plan are not any more what was approved").hint("make the plan again"));
    }
    Ok(parts)
}
