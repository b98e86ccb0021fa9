//! Making a plan: the job reads what was asked for, hands in the steps some hundred at a time, and says that it has all of
//! them. Then they are bound by a digest, policy is asked, and a request waits for people.

use std::collections::{BTreeMap, BTreeSet};

use deskmate_db::args;
use serde_json::{Value, json};

use super::super::judge;
use super::super::root::Root;
use super::model::{Action, Ask, PlanState, Program, Step, StepOutcome};
use super::python;
use super::rows::{self, Part, Plan, Sum};
use super::{FAILED, MADE, PURGE, UNDO};
use crate::call::Cx;
use crate::gateway::taint;
use crate::job::{self, Hold};
use crate::limits::{PLAN_PATHS_SHOWN, PLAN_STEPS_MAX};
use crate::meter::{self, Taken};
use crate::policy::{Act, Mode, PATHS_CUT};
use crate::record::Event;
use crate::request::{self, New, Packet, RequestKind};
use crate::{Error, Result, hex};

/// The verb of plans that change files.
pub(crate) const CHANGE: &str = "file.change";
/// The verb of programs, and the domain in which they are judged.
pub(crate) const RUN: &str = "code.run";
const CODE: &str = "code";

/// A plan that is to be made.
#[derive(Clone, Debug)]
pub struct Making {
    /// Which.
    pub plan: String,
    /// Beneath which root; `None` for a program that is given no folder.
    pub root: Option<Root>,
    /// What is wanted.
    pub ask: Ask,
}

/// What a job has to make a plan of; `None` if there is nothing to make any more. Steps of an earlier attempt go. Here and below,
/// who lost the job writes nothing: another worker may be at it.
pub fn making(cx: &mut Cx<'_, '_>, hold: &Hold) -> Result<Option<Making>> {
    job::held(cx, hold)?;
    let Some(plan) = rows::of_job(cx.tx, &hold.job)?.filter(|plan| plan.state == PlanState::Planning) else { return Ok(None) };
    cx.tx.execute("delete from plan_part where plan = $1", args![plan.id])?;
    let root = plan.root_in_force(cx)?;
    Ok(Some(Making { ask: plan.asked()?, plan: plan.id, root }))
}

/// Takes some steps of a plan that is being made.
pub fn add_part(cx: &mut Cx<'_, '_>, hold: &Hold, plan: &str, number: i64, part: &Part) -> Result<()> {
    job::held(cx, hold)?;
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
pub(super) struct Total {
    pub(super) steps: i64,
    pub(super) sum: Sum,
    pub(super) paths: Vec<String>,
    /// Whether there are more paths than these.
    pub(super) cut: bool,
    pub(super) digests: Vec<String>,
    /// What a step that runs a program holds.
    pub(super) program: Option<Program>,
}

fn total(cx: &mut Cx<'_, '_>, plan: &Plan) -> Result<Total> {
    let mut total = Total::default();
    let mut parts = 0;
    for (steps, digest, sum) in rows::sums(cx.tx, &plan.id)? {
        parts += 1;
        total.steps += steps;
        total.digests.push(hex(&digest));
        total.sum.bytes = total.sum.bytes.saturating_add(sum.bytes);
        total.sum.irreversible += sum.irreversible;
        total.sum.warnings += sum.warnings;
        total.sum.blocked += sum.blocked;
        for (verb, count) in sum.verbs {
            *total.sum.verbs.entry(verb).or_default() += count;
        }
        total.sum.holds.extend(sum.holds);
        for (action, count) in sum.actions {
            *total.sum.actions.entry(action).or_default() += count;
        }
    }
    let mut number = 0;
    while total.paths.len() < PLAN_PATHS_SHOWN
        && let Some(part) = rows::part(cx.tx, &plan.id, number)?
    {
        for step in part.steps(&plan.id)? {
            if step.action == Action::Run {
                total.program = Some(serde_json::from_value(step.exact).map_err(|_| rows::unreadable("program", &plan.id))?);
            }
            total.paths.extend(step.was.or(step.from).into_iter().chain(step.to));
        }
        number += 1;
    }
    total.cut = number < parts || total.paths.len() > PLAN_PATHS_SHOWN;
    total.paths.truncate(PLAN_PATHS_SHOWN);
    Ok(total)
}

/// The digest of a plan: over its root as it is in force, its kind, and the digests of its parts.
pub(super) fn digest(root: Option<&Root>, kind: &str, parts: &[String]) -> Result<[u8; 32]> {
    crate::digest(&json!({ "root": root.map(|root| &root.name), "path": root.map(|root| &root.path), "kind": kind, "parts": parts }))
}

/// What is done to files, in the form in which rules look for the verbs of an act.
fn acts(verbs: &BTreeMap<String, i64>) -> Value {
    verbs.iter().map(|(verb, count)| json!({ "verb": verb, "count": count })).collect()
}

/// What the contents hold, as marks for what is left out: rules see it without anybody reading the contents in the act.
fn held(kinds: &BTreeSet<String>) -> Value {
    kinds.iter().map(|kind| Value::from(format!("[redacted:{kind}]"))).collect()
}

/// The operation whose doing a plan is; that of a document goes by its format. Only a program is executed: rules about running one are
/// not about files.
pub(super) fn operation(kind: &str, format: &str) -> &'static str {
    match kind {
        python::KIND => "execute_plan",
        "organize" => "organize_plan",
        "trash" => "soft_delete",
        "restore" => "restore",
        "document" if format == "excel" => "create_excel",
        "document" if format == "word" => "create_word",
        "document" => "create_pdf",
        PURGE => "purge_trash",
        UNDO => "undo_plan",
        _ => "change_plan",
    }
}

/// Its tool.
pub(super) fn tool(kind: &str, format: &str) -> String {
    format!("workspace_{}", operation(kind, format))
}

fn format_of(ask: Ask) -> String {
    if let Ask::Document { format, .. } = ask { format } else { String::new() }
}

/// What would be done, for policy and for people. Who decides about a program is shown all of its code.
pub(super) fn act(kind: &str, tool: &str, root: Option<&Root>, total: &Total, taint: Vec<String>) -> Act {
    let name = root.map_or("", |root| root.name.as_str());
    let mut arguments = json!({
        "root": name, "steps": total.steps, "bytes": total.sum.bytes,
        "actions": total.sum.actions, "irreversible": total.sum.irreversible, "warnings": total.sum.warnings, "blocked": total.sum.blocked, "paths": total.paths,
        PATHS_CUT: total.cut, "acts": acts(&total.sum.verbs), "holds": held(&total.sum.holds),
    });
    let is_program = total.program.is_some();
    if let (Some(program), Some(fields)) = (&total.program, arguments.as_object_mut()) {
        fields.insert("program".to_owned(), json!(program));
    }
    Act {
        kind: if is_program { RUN } else { CHANGE }.to_owned(),
        tool: tool.to_owned(),
        domain: root.filter(|_| !is_program).map_or_else(|| CODE.to_owned(), Root::domain),
        action: kind.to_owned(),
        target: if is_program { python::KIND } else { name }.to_owned(),
        arguments,
        taint,
        ..Act::default()
    }
}

/// What its owner had read when it was asked for, and has read since.
fn read(cx: &mut Cx<'_, '_>, plan: &Plan) -> Result<Vec<String>> {
    if !plan.owner.is_agent() {
        return Ok(Vec::new());
    }
    let asked = job::input(cx, &plan.plan_job)?;
    let then = asked.get("read").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let all: BTreeSet<String> = taint::of_agent(cx, &plan.owner.id)?.into_iter().chain(then).collect();
    Ok(all.into_iter().collect())
}

/// All steps are there: binds them, asks policy, and makes the request that waits for people.
pub fn made(cx: &mut Cx<'_, '_>, hold: &Hold, id: &str) -> Result<()> {
    job::held(cx, hold)?;
    let Some(mut plan) = rows::load(cx.tx, id)?.filter(|plan| plan.state == PlanState::Planning) else { return Ok(()) };
    let root = plan.root_in_force(cx)?;
    let total = total(cx, &plan)?;
    if total.steps > PLAN_STEPS_MAX {
        return failed(cx, id, &format!("{} steps are too many for one plan: at most {PLAN_STEPS_MAX}", total.steps));
    }
    (plan.steps, plan.bytes) = (total.steps, total.sum.bytes);
    if total.steps == 0 {
        plan.state = PlanState::Empty;
        plan.finished_at = Some(cx.now());
        return tell_made(cx, &plan, &total);
    }
    if total.sum.blocked == total.steps {
        let why = first_blocked(cx, &plan)?.unwrap_or_default();
        return failed(cx, id, &format!("nothing of this can be done as things are: {why}"));
    }
    let digest = digest(root.as_ref(), &plan.kind, &total.digests)?;
    plan.digest = Some(digest.to_vec());
    let read = read(cx, &plan)?;
    let format = if plan.kind == "document" { format_of(plan.asked()?) } else { String::new() };
    let mut act = act(&plan.kind, &tool(&plan.kind, &format), root.as_ref(), &total, read);
    // What is approved is this plan, with exactly these steps.
    if let Some(fields) = act.arguments.as_object_mut() {
        fields.extend([("plan".to_owned(), json!(plan.id)), ("digest".to_owned(), json!(hex(&digest)))]);
    }
    let decision = judge::may_change(cx, &act, &plan.owner)?;
    if decision.mode == Mode::Deny {
        let why = judge::stops(&decision).map_or_else(|| "a limit of today".to_owned(), |(why, _)| why);
        request::denied(cx, &plan.owner, &act, &decision)?;
        return failed(cx, id, &format!("this must not be done: {why}"));
    }
    if plan.owner.is_agent()
        && let Taken::Full(full) = meter::take(cx, &plan.owner.id, &act.domain, 0)?
    {
        return failed(cx, id, &format!("a limit is reached ({}); try again later", full.message()));
    }
    let title = title(&plan, &total);
    let undo = reversibility(&plan, &total);
    let packet = Packet { reasoning: plan.summary.clone(), reversibility: Some(undo), more: json!({ "plan": plan.id }), ..Packet::default() };
    let mut new = New { requester: Some(plan.owner.clone()), packet, ..New::new(RequestKind::Plan, title, act, decision) };
    if plan.kind == PURGE || total.program.is_some() {
        "high".clone_into(&mut new.decision.risk);
    }
    plan.request = Some(request::submit(cx, new)?.id);
    plan.state = PlanState::Ready;
    tell_made(cx, &plan, &total)
}

/// A line for the inbox.
fn title(plan: &Plan, total: &Total) -> String {
    if let Some(program) = &total.program {
        return format!("run a Python program of {} lines", program.code.lines().count());
    }
    let blocked = match total.sum.blocked {
        0 => String::new(),
        count => format!(" ({count} of {} cannot be done)", total.steps),
    };
    let actions: Vec<String> = total.sum.actions.iter().map(|(action, count)| format!("{count} × {}", action.replace('_', " "))).collect();
    format!("{} in {}: {}{blocked}", plan.kind, plan.root, actions.join(", "))
}

/// What whoever decides should know of the way back, and of what is out of the ordinary.
fn reversibility(plan: &Plan, total: &Total) -> String {
    let sum = &total.sum;
    let mut told = vec![match sum.irreversible {
        _ if plan.kind == UNDO => "this is the way back; it is not itself taken back; folders that it changes get the time at which it does".to_owned(),
        0 => "undo_plan takes it back".to_owned(),
        count => format!("{count} of {} steps cannot be undone", total.steps),
    }];
    if sum.blocked > 0 {
        told.push(format!("{} of {} steps cannot be done as things are, and are left out: each says why", sum.blocked, total.steps));
    }
    if sum.warnings > 0 {
        told.push(format!("{} of {} steps carry a warning: each says which", sum.warnings, total.steps));
    }
    told.join("; ")
}

/// Why the first step that cannot be done cannot.
fn first_blocked(cx: &mut Cx<'_, '_>, plan: &Plan) -> Result<Option<String>> {
    let steps = rows::part(cx.tx, &plan.id, 0)?.map(|part| part.steps(&plan.id)).transpose()?.unwrap_or_default();
    Ok(steps.into_iter().find_map(|step| {
        let path = step.to.or(step.from).unwrap_or_default();
        step.blocked.map(|why| if path.is_empty() { why } else { format!("{path}: {why}") })
    }))
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
pub fn not_made(cx: &mut Cx<'_, '_>, hold: &Hold, id: &str, why: &str) -> Result<()> {
    job::held(cx, hold)?;
    failed(cx, id, why)
}

pub(super) fn failed(cx: &mut Cx<'_, '_>, id: &str, why: &str) -> Result<()> {
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
    let root = plan.root_in_force(cx)?;
    let parts = rows::digests(cx.tx, &plan.id)?;
    let hexed: Vec<String> = parts.iter().map(|(_, digest, _)| hex(digest)).collect();
    let is_digest = hex(&digest(root.as_ref(), &plan.kind, &hexed)?);
    let (approved, of_plan) = (act.arguments.get("digest"), act.arguments.get("plan"));
    if approved != Some(&Value::from(is_digest)) || of_plan != Some(&Value::from(plan.id.as_str())) {
        return Err(Error::conflict("the steps or the root of this plan are not any more what was approved").hint("make the plan again"));
    }
    Ok(parts)
}
