//! Doing a plan: its grant is used up once, and then a job does part after part. What is about to be done is on the record
//! before it is done, and what came of it afterwards, so that after a crash it is known what may have happened.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::super::root::{Root, RootAccess};
use super::super::{judge, place};
use super::make::{self, approved_parts};
use super::model::{PlanState, Step, StepOutcome, StepState};
use super::reach;
use super::rows::{self, Plan, unreadable};
use super::show::{PlanOut, shown, visible};
use super::{BEGUN, ENDED, EXECUTE_JOB, INTENDED, OUTCOMES, PLAN_JOB};
use crate::call::Cx;
use crate::job::{self, Hold, IfLost, NewJob};
use crate::limits::PAGE_MAX;
use crate::policy::Mode;
use crate::record::{self, Event, EventRow, Search};
use crate::request::{self, Begun, Request, State};
use crate::{Error, Result, meter, policy};

/// Do a plan that was approved, exactly as it was approved, once. While it still waits for a person, the answer says so.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct ExecutePlan {
    /// The plan; or give `plan_job_id`.
    plan_id: Option<String>,
    /// The job that made it.
    plan_job_id: Option<String>,
    /// The root that it is for: its name, or a path beneath it. It need not be given.
    workspace_root: Option<String>,
    /// How long to wait until it is done, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(in crate::workspace) fn execute_plan(cx: &mut Cx<'_, '_>, input: ExecutePlan) -> Result<PlanOut> {
    let mut plan = match (&input.plan_id, &input.plan_job_id) {
        (Some(id), job) => {
            let plan = visible(cx, id)?;
            if job.as_ref().is_some_and(|job| *job != plan.plan_job) {
                return Err(Error::invalid("plan_job_id", "is not the job that made this plan"));
            }
            plan
        }
        (None, Some(job)) => {
            let plan = rows::of_job(cx.tx, job)?.map(|plan| plan.id).unwrap_or_default();
            visible(cx, &plan)?
        }
        (None, None) => return Err(Error::invalid("plan_id", "is needed")),
    };
    if let Some(named) = &input.workspace_root
        && place::find(cx, "workspace_root", Some(named))?.root.name != plan.root
    {
        return Err(Error::invalid("workspace_root", "is not the root of this plan"));
    }
    if plan.state != PlanState::Ready {
        return shown(cx, &plan);
    }
    reach::check_steps(cx, &plan)?;
    let Some(request) = plan.request.clone() else { return Err(Error::conflict("this plan has no request")) };
    let now = cx.now();
    let Some(approved) = request::find_whole(cx, &request)?.filter(|request| request.state_at(now) == State::Approved) else {
        return shown(cx, &plan);
    };
    // What a rule let pass, and no person saw, needs that rule still.
    if approved.decided_by.as_deref() == Some("desk") && judge::may_change(cx, &approved.act()?, &plan.owner)?.mode != Mode::Act {
        plan.note = Some("the rule that let this pass is not in force any more; make the plan again".to_owned());
        rows::save(cx, &plan)?;
        return shown(cx, &plan);
    }
    let permit = match request::begin_seen(cx, &request)? {
        Begun::Go(permit) => permit,
        Begun::Stopped(stop) => {
            plan.note = Some(stop.message);
            rows::save(cx, &plan)?;
            return shown(cx, &plan);
        }
    };
    approved_parts(cx, &plan, &permit.act)?;
    // A step may have reached the disk when a worker is lost. The next one looks, and so it may go on.
    let new = NewJob { priority: job::Priority::Urgent, if_lost: IfLost::Again, ..NewJob::new(EXECUTE_JOB, json!({ "plan": plan.id })) };
    plan.job = Some(job::enqueue(cx, new)?.job);
    plan.state = PlanState::Running;
    plan.begun_at = Some(cx.now());
    rows::save(cx, &plan)?;
    let event = Event::new(BEGUN, plan.subject()).fact("root", plan.root.as_str()).fact("request", request).fact("job", plan.job.as_deref());
    cx.emit(event.audience([plan.owner.id.as_str()]))?;
    shown(cx, &plan)
}

/// Answers that changed nothing: what still waits.
pub(in crate::workspace) fn is_untold(answer: &serde_json::Value) -> bool {
    answer.get("begun") != Some(&json!(true))
}

/// A plan that is to be done.
#[derive(Clone, Debug)]
pub struct Executing {
    /// Which.
    pub plan: String,
    /// Beneath which root; `None` for a program that is given no folder.
    pub root: Option<Root>,
    /// How many steps it has.
    pub steps: i64,
    /// How many of them have ended already: an earlier attempt may have done some.
    pub ended: i64,
    /// When it was begun.
    pub begun_at: i64,
    /// Its parts: number, digest of the text that was approved, and whether it is `waiting`, `begun` or `ended`.
    pub parts: Vec<(i64, [u8; 32], String)>,
}

/// What a job has to do; `None` if there is nothing to do any more. Here and below, who lost the job writes nothing: another worker
/// may be at it.
pub fn executing(cx: &mut Cx<'_, '_>, hold: &Hold, id: &str) -> Result<Option<Executing>> {
    job::held(cx, hold)?;
    let Some(plan) = rows::load(cx.tx, id)?.filter(|plan| plan.state == PlanState::Running) else { return Ok(None) };
    let root = plan.root_in_force(cx)?;
    let request = plan.request.as_deref().map(|request| request::find_whole(cx, request)).transpose()?.flatten();
    let request = request.ok_or_else(|| Error::conflict("this plan has no request"))?;
    let parts = approved_parts(cx, &plan, &request.act()?)?;
    Ok(Some(Executing {
        plan: plan.id,
        root,
        steps: plan.steps,
        ended: plan.done + plan.skipped + plan.failed + plan.unclear,
        begun_at: plan.begun_at.unwrap_or(i64::MAX),
        parts,
    }))
}

/// The root of a plan that has come to its end, if an audit file belongs there.
pub fn audited(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Root>> {
    let Some(plan) = rows::load(cx.tx, id)?.filter(|plan| plan.state.has_run()) else { return Ok(None) };
    if !policy::current(cx)?.settings("").workspace.audit_file {
        return Ok(None);
    }
    // A root that was closed meanwhile has no file to write to.
    Ok(plan.root_in_force(cx).ok().flatten().filter(|root| root.access == RootAccess::Write))
}

/// What is to be done next.
pub enum NextPart {
    /// These steps; they are on the record as intended.
    Go(Vec<Step>),
    /// Nothing for now: the agent is paused.
    Paused,
}

/// Begins a part: from now on its steps may have been done.
pub fn begin_part(cx: &mut Cx<'_, '_>, hold: &Hold, id: &str, number: i64, digest: &[u8; 32]) -> Result<NextPart> {
    job::held(cx, hold)?;
    let plan = running(cx, id)?;
    if plan.owner.is_agent() && meter::paused(cx, &plan.owner.id)? {
        return Ok(NextPart::Paused);
    }
    let part = rows::part(cx.tx, id, number)?.ok_or_else(|| unreadable("part", id))?;
    if part.body.as_deref().map(rows::body_digest).as_ref() != Some(digest) {
        return Err(Error::conflict("the steps of this plan are not any more what was approved"));
    }
    let steps = part.steps(id)?;
    if part.state == "waiting" {
        cx.tx.execute("update plan_part set state = 'begun' where plan = $1 and number = $2", deskmate_db::args![id, number])?;
        let told: Vec<_> = steps.iter().map(|step| json!({ "action": step.action, "from": step.from, "to": step.to })).collect();
        let event = Event::new(INTENDED, plan.subject()).fact("root", plan.root.as_str()).fact("part", number).fact("steps", steps.len());
        cx.emit(event.payload(json!({ "steps": told })).audience([plan.owner.id.as_str()]))?;
    }
    Ok(NextPart::Go(steps))
}

/// Tells what came of a part.
pub fn end_part(cx: &mut Cx<'_, '_>, hold: &Hold, id: &str, number: i64, outcomes: &[StepOutcome]) -> Result<()> {
    job::held(cx, hold)?;
    let mut plan = running(cx, id)?;
    let text = serde_json::to_string(outcomes).map_err(|_| unreadable("outcomes", id))?;
    let ended = cx.tx.execute(
        "update plan_part set state = 'ended', outcomes = $3 where plan = $1 and number = $2 and state = 'begun'",
        deskmate_db::args![id, number, text],
    )?;
    if ended == 0 {
        return Err(Error::conflict("this part was not begun, or has ended already"));
    }
    let count = |state: StepState| i64::try_from(outcomes.iter().filter(|one| one.state == state).count()).unwrap_or(i64::MAX);
    let (done, skipped, failed, unclear) = (count(StepState::Done), count(StepState::Skipped), count(StepState::Failed), count(StepState::Unclear));
    plan.done += done;
    plan.skipped += skipped;
    plan.failed += failed;
    plan.unclear += unclear;
    rows::save(cx, &plan)?;
    let states: Vec<_> = outcomes.iter().map(told).collect();
    let event = Event::new(OUTCOMES, plan.subject())
        .fact("root", plan.root.as_str())
        .fact("part", number)
        .fact("done", done)
        .fact("skipped", skipped)
        .fact("failed", failed)
        .fact("unclear", unclear)
        .payload(json!({ "outcomes": states }));
    cx.emit(event.audience([plan.owner.id.as_str()]))
}

/// Whether a plan came to its end before a moment.
pub(in crate::workspace) fn ended_before(cx: &mut Cx<'_, '_>, id: &str, moment: i64) -> Result<bool> {
    Ok(rows::load(cx.tx, id)?.is_some_and(|plan| plan.finished_at.is_some_and(|at| at < moment)))
}

/// What the record tells of the end of the plan that a request is about. What was approved names the plan also when its row is gone;
/// where that was erased, the row does.
pub(crate) fn told_end(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Option<EventRow>> {
    let mut plan = request.act().ok().and_then(|act| act.arguments.get("plan")?.as_str().map(str::to_owned));
    if plan.is_none() {
        plan = cx.tx.optional("select id from plan where request = $1", deskmate_db::args![request.id])?.map(|row| row.get(0)).transpose()?;
    }
    let Some(plan) = plan else { return Ok(None) };
    let told = record::search_heads(cx.tx, &Search { subject: Some(format!("plan:{plan}")), limit: PAGE_MAX, ..Search::default() })?;
    Ok(told.into_iter().find(|event| event.kind == ENDED.name))
}

/// The steps of a part that has ended, with what came of each; none if they were erased.
pub(in crate::workspace) fn done(cx: &mut Cx<'_, '_>, id: &str, number: i64) -> Result<Vec<(Step, StepOutcome)>> {
    let Some(part) = rows::part(cx.tx, id, number)?.filter(|part| part.body.is_some()) else { return Ok(Vec::new()) };
    Ok(part.steps(id)?.into_iter().zip(part.outcomes(id)?).collect())
}

/// What the record keeps of an outcome. What a program printed is in the plan.
fn told(outcome: &StepOutcome) -> serde_json::Value {
    let mut told = json!({ "state": outcome.state, "note": outcome.note });
    if let (Some(ran), Some(fields)) = (&outcome.ran, told.as_object_mut()) {
        fields.insert("ran".to_owned(), json!({ "ended": ran.ended, "exit_code": ran.exit_code, "written": ran.written, "removed": ran.removed }));
    }
    told
}

fn running(cx: &mut Cx<'_, '_>, id: &str) -> Result<Plan> {
    rows::load(cx.tx, id)?.filter(|plan| plan.state == PlanState::Running).ok_or_else(|| Error::conflict("this plan does not run any more"))
}

/// Stops a plan that is being done: its job ends it between two parts, and where that job has not begun it ends at once.
pub fn stop(cx: &mut Cx<'_, '_>, id: &str) -> Result<()> {
    let plan = rows::load(cx.tx, id)?.filter(|plan| plan.state == PlanState::Running);
    let Some(job) = plan.and_then(|plan| plan.job) else { return Ok(()) };
    job::cancel(cx, &job).map(drop)
}

/// A job has ended. If it left its plan in the middle, because somebody stopped it or it failed too often, so has the plan.
pub(crate) fn job_ended(cx: &mut Cx<'_, '_>, kind: &str, job: &str) -> Result<()> {
    const WHY: &str = "its job was stopped, or failed";
    if kind == PLAN_JOB
        && let Some(plan) = rows::of_job(cx.tx, job)?
    {
        make::failed(cx, &plan.id, WHY)?;
    }
    if kind == EXECUTE_JOB
        && let Some(plan) = rows::done_by(cx.tx, job)?.filter(|plan| plan.state == PlanState::Running)
    {
        end(cx, &plan.id, Some(WHY))?;
    }
    Ok(())
}

/// The job has ended: says what came of the plan as a whole. `why` is given where it stopped before its end.
pub fn ended(cx: &mut Cx<'_, '_>, hold: &Hold, id: &str, why: Option<&str>) -> Result<PlanState> {
    job::held(cx, hold)?;
    end(cx, id, why)
}

fn end(cx: &mut Cx<'_, '_>, id: &str, why: Option<&str>) -> Result<PlanState> {
    let mut plan = running(cx, id)?;
    let left = plan.steps - plan.done - plan.skipped - plan.failed - plan.unclear;
    let begun = rows::digests(cx.tx, id)?.iter().any(|(_, _, state)| state == "begun");
    let (state, outcome) = match (plan.unclear > 0 || begun, plan.done, left + plan.skipped + plan.failed) {
        (true, ..) => (PlanState::Ambiguous, request::Outcome::Ambiguous),
        (false, _, 0) => (PlanState::Done, request::Outcome::Done),
        (false, 0, _) => (PlanState::Partly, request::Outcome::Failed),
        (false, ..) => (PlanState::Partly, request::Outcome::Done),
    };
    plan.state = state;
    plan.finished_at = Some(cx.now());
    plan.note = why.map(str::to_owned);
    rows::save(cx, &plan)?;
    let event = Event::new(ENDED, plan.subject())
        .fact("root", plan.root.as_str())
        .fact("state", state.name())
        .fact("done", plan.done)
        .fact("skipped", plan.skipped)
        .fact("failed", plan.failed)
        .fact("unclear", plan.unclear)
        .fact("left", left);
    cx.emit(event.payload(json!({ "why": why })).audience([plan.owner.id.as_str()]))?;
    if let Some(request) = &plan.request {
        request::finish(cx, request, outcome)?;
    }
    Ok(state)
}
