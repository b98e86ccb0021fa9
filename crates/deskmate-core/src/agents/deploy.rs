//! Deploying an agent: an act like any other, decided by policy and people. What they approve is the digest of what it is.

use deskmate_db::{Engine, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::attach::Shown;
use super::define::AgentOut;
use super::gate::DOMAIN;
use super::model::{Cause, Definition, IfMissed, Runner, Status};
use super::place::{self, Environment, Place};
use super::rows::{self, AgentRow};
use super::run::{self, Skip};
use super::schedule::Schedule;
use super::{DEPLOYED, PAUSED, RESUMED, STOPPED, WAITS, approval, guard, node, test};
use crate::call::{Cx, Presence};
use crate::gateway::{self, taint};
use crate::limits::{AGENT_OPEN_RUNS_MAX, NOTE_BYTES_MAX};
use crate::policy::{Act, Decision, Hit, Mode};
use crate::request::{self, New, Packet, Request, RequestKind, Requester};
use crate::{Error, Result, check_text, hex, meter};

/// The verb of deployments.
pub(crate) const KIND: &str = "agent.deploy";

/// Deploy an agent: from then on it runs when it is due, and when somebody starts it. Where an agent asks for it, a person decides,
/// unless a rule that names `agent.deploy` lets it pass; the deployment then happens with the approval. The policies that are attached to
/// the agent hold for its deployment, whoever asks for it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeployAgent {
    /// The agent's id or name.
    agent_id: String,
    /// Whether its first run begins at once; no if not given.
    #[serde(default)]
    auto_start: bool,
    /// Where it runs: `local`, on the server that is asked, which is also what holds if nothing is given; or `cloud`, on any node of this
    /// desk that offers itself (PostgreSQL). agents_list_nodes shows them.
    #[serde(default)]
    environment: Environment,
    /// With `cloud`: what a node must have, such as `gpu`; all of it.
    #[serde(default)]
    labels: Vec<String>,
    /// How one gets back from it, for whoever decides and for rules that ask for a way back, such as those of `production-safety`.
    rollback_plan: Option<String>,
}

impl DeployAgent {
    /// Where its runs would be done.
    fn place(&self, cx: &Cx<'_, '_>) -> Result<Place> {
        match self.environment {
            Environment::Local if !self.labels.is_empty() => {
                Err(Error::invalid("labels", "are for environment cloud: what is local runs here").hint("leave them out, or deploy it with environment cloud"))
            }
            Environment::Local => Ok(cx.server.name().map_or(Place::Anywhere, |name| Place::Node(name.to_owned()))),
            Environment::Cloud if cx.tx.engine() == Engine::Sqlite => {
                Err(Error::invalid("environment", "cloud needs PostgreSQL: a desk on SQLite has one server, and no other that could do its runs").hint(
                    "deploy it with environment local; or move the desk to PostgreSQL (`deskmate move`) and start a further server there with `deskmate up --node NAME`",
                ))
            }
            Environment::Cloud => Ok(Place::Cloud(place::check_labels(&self.labels)?)),
        }
    }
}

/// What became of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Deployed {
    /// Whether it is deployed; if not, it waits for people.
    deployed: bool,
    /// What happens next, in words.
    message: String,
    /// Said loudly where fewer people decide than such a risk wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// The request that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// The run that has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    agent: AgentOut,
}

impl Deployed {
    fn not_yet(message: String, agent: AgentOut) -> Self {
        Self { deployed: false, message, warning: None, request_id: None, run_id: None, agent }
    }
}

fn act_of(row: &AgentRow, place: &Place, input: &DeployAgent, tested: bool, taint: Vec<String>) -> Act {
    // Of its policies the names: words in their rules are about other acts than this one. The digest covers all of them.
    let names: Vec<&str> = row.definition.policies.iter().map(|held| held.policy.id.as_str()).collect();
    let definition = Definition { policies: Vec::new(), ..row.definition.clone() };
    let mut arguments = json!({
        "agent": row.id,
        "digest": hex(&row.digest),
        "version": row.version,
        "definition": definition,
        "policies": names,
        "auto_start": input.auto_start,
        "tested": tested,
        "environment": place.environment(),
        "labels": place.labels(),
        "place": place.text(),
    });
    // Only where it is given: nothing under this name would say that there is no way back.
    if let (Some(plan), Some(arguments)) = (&input.rollback_plan, arguments.as_object_mut()) {
        arguments.insert("rollback_plan".to_owned(), Value::from(plan.as_str()));
    }
    Act {
        kind: KIND.to_owned(),
        tool: "agents_deploy_agent".to_owned(),
        domain: DOMAIN.to_owned(),
        action: "deploy".to_owned(),
        target: row.agent.clone(),
        environment: place.environment().name().to_owned(),
        arguments,
        taint,
        ..Act::default()
    }
}

pub(super) fn deploy(cx: &mut Cx<'_, '_>, input: DeployAgent) -> Result<Deployed> {
    guard::not_from_a_run(cx)?;
    let place = input.place(cx)?;
    if let Some(plan) = &input.rollback_plan {
        check_text("rollbackPlan", plan, NOTE_BYTES_MAX)?;
        if plan.trim().is_empty() {
            return Err(Error::invalid("rollbackPlan", "must say how one gets back, or be left out"));
        }
    }
    let mut row = rows::find(cx, &input.agent_id)?;
    guard::maker_or_person(cx, &row)?;
    if row.status.is_fixed() {
        return Err(Error::conflict(format!("{} is {} already", row.agent, row.status.name())).hint("agents_resume_agent lets a paused one go on"));
    }
    if matches!(&row.definition.runner, Runner::Steps { steps } if steps.is_empty()) {
        return Err(Error::conflict(format!("{} has no steps, so there is nothing to run", row.agent)).hint("give it some with agents_update_agent"));
    }
    if row.definition.runner.is_program() && cx.actor.is_person() && cx.actor.presence != Presence::Shown {
        return Err(Error::needs_presence("deploying an agent that runs programs needs you to show that you are there").hint(request::WAYS));
    }
    let needs: Vec<&str> = row.definition.open_needs().map(|need| need.what.as_str()).collect();
    if !needs.is_empty() {
        return Err(Error::conflict(format!("{} cannot be deployed yet; it needs {}", row.agent, needs.join("; "))).hint("fill it in with agents_update_agent"));
    }
    if let Some(id) = &row.request
        && let Some(open) = request::find_whole(cx, id)?.filter(|open| open.state_at(cx.now()) == request::State::Pending)
    {
        return Err(Error::conflict(format!("its deployment waits for people already, as request {}", open.id)));
    }
    let tested = test::passed(cx, &row)?;
    let read = taint::of_asking(cx)?;
    let (act, who) = (act_of(&row, &place, &input, tested, read), Requester::of(&cx.actor));
    let judged = request::weigh(cx, &act, &who, false)?;
    let mut decision = judged.decision;
    request::hold_unless_named(cx, &mut decision, &act, &who)?;
    if row.definition.runner.is_program() && matches!(decision.risk.as_str(), "low" | "medium") {
        // A program of the machine is more than the desk's own steps, whoever asks for it.
        "high".clone_into(&mut decision.risk);
    }
    if decision.mode == Mode::Deny {
        let instead = |hit: &Hit| hit.alternative.as_ref().map_or_else(String::new, |alternative| format!(" (instead: {alternative})"));
        let why: Vec<String> = decision.hard_stops().map(|hit| format!("{}: {}{}", hit.rule_id, hit.reason, instead(hit))).collect();
        let why = if why.is_empty() { decision.reasons.first().map(|reason| reason.text.clone()).unwrap_or_default() } else { why.join("; ") };
        request::denied(cx, &who, &act, &decision)?;
        let message = format!("{} is not deployed: policy forbids it. {why}", row.agent);
        return Ok(Deployed::not_yet(message, AgentOut::of(&row, cx)?));
    }
    if decision.mode == Mode::Act && row.definition.approval_required && !cx.actor.is_person() {
        decision.mode = Mode::Suggest;
    }
    if decision.mode != Mode::Act {
        let people = approval::eligible(cx, DOMAIN, &decision, &who)?;
        let warning = approval::settle_quorum(&mut decision, people, "may decide it");
        let waits = ask(cx, &mut row, act, decision, input.rollback_plan, warning.as_deref())?;
        let by = if waits.quorum > 1 { format!("{} people approve", waits.quorum) } else { "a person approves".to_owned() };
        let message = format!("{} is deployed when {by} request {}", row.agent, waits.id);
        return Ok(Deployed { warning, request_id: Some(waits.id), ..Deployed::not_yet(message, AgentOut::of(&row, cx)?) });
    }
    let run_id = go_live(cx, &mut row, place, input.auto_start)?;
    cx.decided(Mode::Act);
    let mut message = match &row.due_at {
        Some(at) => format!("{} is deployed and runs next at {}", row.agent, crate::format_time(*at)),
        None => format!("{} is deployed and runs when somebody starts it", row.agent),
    };
    if let Some(missing) = node::missing(cx, &row.place)? {
        message = format!("{message}. Its runs wait for {missing}");
    }
    Ok(Deployed { deployed: true, run_id, ..Deployed::not_yet(message, AgentOut::of(&row, cx)?) })
}

fn ask(cx: &mut Cx<'_, '_>, row: &mut AgentRow, act: Act, decision: Decision, plan: Option<String>, warning: Option<&str>) -> Result<Request> {
    let Definition { task, schedule, .. } = &row.definition;
    let words = schedule.as_ref().map(|timing| Schedule::read(&timing.cron, &timing.time_zone)).transpose()?.map(|schedule| schedule.words());
    let policies: Vec<Shown> = row.definition.policies.iter().map(|held| Shown::of(held, false)).collect();
    let plan = plan.map(|plan| format!("{plan}\n"));
    let packet = Packet {
        reasoning: Some(task.clone()),
        reversibility: Some(format!("{}It can be stopped at any time; what its runs have done by then stays done.", plan.unwrap_or_default())),
        more: json!({ "schedule": words, "policies": policies, "warning": warning }),
        ..Packet::default()
    };
    let title = format!("Deploy the agent {}", row.agent);
    let made = request::submit(cx, New { packet, ..New::new(RequestKind::Deploy, title, act, decision) })?;
    row.request = Some(made.id.clone());
    rows::save(cx, row, WAITS, json!({ "request": made.id }))?;
    Ok(made)
}

/// A person approved a deployment: it happens now, if the agent is still what they saw.
pub(crate) fn approved(cx: &mut Cx<'_, '_>, request: &Request) -> Result<()> {
    let act = request.act()?;
    let text = |name: &str| act.arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let row = rows::by_id(cx.tx, &text("agent"))?.filter(|row| row.deleted_at.is_none());
    let mut row = row.ok_or_else(|| Error::conflict("this agent was deleted meanwhile").hint("reject the request"))?;
    if hex(&row.digest) != text("digest") {
        return Err(Error::conflict("this agent was changed after its deployment was asked for").hint("reject this; the newer one can be deployed anew"));
    }
    if row.status.is_fixed() {
        return Err(Error::conflict("this agent is deployed already"));
    }
    let auto_start = act.arguments.get("auto_start") == Some(&Value::Bool(true));
    // Where nothing is said it was asked for before that could be said.
    go_live(cx, &mut row, Place::read(&text("place")), auto_start)?;
    Ok(())
}

fn go_live(cx: &mut Cx<'_, '_>, row: &mut AgentRow, place: Place, auto_start: bool) -> Result<Option<String>> {
    let now = cx.now();
    row.status = Status::Deployed;
    row.place = place;
    row.deployed_at = Some(now);
    row.due_at = due_after(row, now)?;
    rows::save(cx, row, DEPLOYED, Value::Null)?;
    if auto_start { Ok(Some(run::make(cx, row, Cause::Deployed, None, None, Value::Null)?.id)) } else { Ok(None) }
}

/// When it is due after a moment, with its own share of the jitter.
pub(super) fn due_after(row: &AgentRow, after: i64) -> Result<Option<i64>> {
    Ok(due_times(row, after, 1)?.first().copied())
}

/// The same for the next few times.
pub(super) fn due_times(row: &AgentRow, after: i64, count: usize) -> Result<Vec<i64>> {
    let Some(timing) = &row.definition.schedule else { return Ok(Vec::new()) };
    let schedule = Schedule::read(&timing.cron, &timing.time_zone)?;
    let most = i64::from(timing.jitter_seconds) * 1_000_000;
    // A moment that was put off by the jitter may lie ahead though its own time is past.
    let moments = std::iter::successors(schedule.next_after(after.saturating_sub(most)), |at| schedule.next_after(*at));
    Ok(moments.map(|at| at.saturating_add(schedule.jitter(&row.id, most, at))).filter(|due| *due > after).take(count).collect())
}

/// Name an agent.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Named {
    /// The agent's id or name.
    agent_id: String,
}

/// Pause a deployed agent: no run begins until it is let go on. Runs that are under way go on; agents_stop_run stops one.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct PauseAgent(Named);

pub(super) fn pause(cx: &mut Cx<'_, '_>, PauseAgent(input): PauseAgent) -> Result<AgentOut> {
    change(cx, &input, &[Status::Deployed], Status::Paused, PAUSED)
}

/// Let a paused agent go on. Of what it missed meanwhile nothing is made up for.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct ResumeAgent(Named);

pub(super) fn resume(cx: &mut Cx<'_, '_>, ResumeAgent(input): ResumeAgent) -> Result<AgentOut> {
    if cx.actor.is_agent() {
        return Err(Error::forbidden("a person lets a paused agent go on"));
    }
    change(cx, &input, &[Status::Paused], Status::Deployed, RESUMED)
}

/// Stop an agent: it is not deployed any more, and its runs under way are stopped.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct StopAgent(Named);

pub(super) fn stop(cx: &mut Cx<'_, '_>, StopAgent(input): StopAgent) -> Result<AgentOut> {
    let out = change(cx, &input, &[Status::Deployed, Status::Paused], Status::Stopped, STOPPED)?;
    for open in rows::open_runs(cx.tx, &out.agent_id, 1_000)? {
        run::stop_one(cx, open)?;
    }
    // What is under way ends by itself, and takes back what it asked for then.
    if rows::open_runs(cx.tx, &out.agent_id, 1)?.is_empty() {
        gateway::withdraw(cx, &out.name, 0, "the agent was stopped")?;
    }
    Ok(out)
}

fn change(cx: &mut Cx<'_, '_>, input: &Named, from: &[Status], to: Status, kind: crate::record::Kind) -> Result<AgentOut> {
    guard::not_from_a_run(cx)?;
    let mut row = rows::find(cx, &input.agent_id)?;
    guard::maker_or_person(cx, &row)?;
    if !from.contains(&row.status) {
        return Err(Error::conflict(format!("{} is {}", row.agent, row.status.name())));
    }
    row.status = to;
    row.due_at = if to == Status::Deployed { due_after(&row, cx.now())? } else { None };
    rows::save(cx, &mut row, kind, Value::Null)?;
    AgentOut::of(&row, cx)
}

/// How many moments that went by are counted, beside the first: after a long absence that is done for every agent at once.
const MISSED_COUNTED: usize = 100;

/// Makes runs of what is due, the longest due first, and says how many agents were looked at. A moment has one run, whoever finds
/// it due.
pub fn start_due(cx: &mut Cx<'_, '_>, limit: u32) -> Result<usize> {
    let now = cx.now();
    let rows = cx.tx.query(rows::DUE, args![now, i64::from(limit)])?;
    let rows = rows.iter().map(AgentRow::read).collect::<Result<Vec<_>>>()?;
    for mut row in rows.iter().cloned() {
        let Some(moment) = row.due_at else { continue };
        row.due_at = due_after(&row, now)?;
        let timing = row.definition.schedule.clone();
        // A minute late is what a busy desk may be; more is a moment that went by.
        let late = now.saturating_sub(moment) > 60_000_000;
        let missed = timing.as_ref().is_some_and(|timing| timing.missed == IfMissed::Skip) && late;
        cx.tx.execute("update agent_definition set due_at = $2 where id = $1", args![row.id, row.due_at])?;
        if row.status != Status::Deployed {
            continue;
        }
        if meter::paused(cx, &row.agent)? {
            run::skip(cx, &row, moment, &Skip::Paused)?;
            continue;
        }
        if missed {
            let by = due_times(&row, moment, MISSED_COUNTED)?.into_iter().take_while(|at| *at <= now).count();
            run::skip(cx, &row, moment, &Skip::Away { moments: 1 + by, all: by < MISSED_COUNTED })?;
            continue;
        }
        // However many may be under way at once: where nobody does them, they do not pile up, and other agents begin theirs.
        let most = if timing.is_some_and(|timing| timing.overlap) { AGENT_OPEN_RUNS_MAX } else { 1 };
        let busy = i64::try_from(rows::open_runs(cx.tx, &row.id, most)?.len()).unwrap_or(i64::MAX) >= most;
        if busy {
            run::skip(cx, &row, moment, &Skip::Busy)?;
        } else {
            run::make(cx, &row, Cause::Schedule, Some(moment), None, Value::Null)?;
        }
    }
    Ok(rows.len())
}

/// When the next agent is due.
pub fn next_due(tx: &mut deskmate_db::Tx<'_>) -> Result<Option<i64>> {
    Ok(tx.optional(rows::NEXT_DUE, &[])?.map(|row| row.get(0)).transpose()?)
}
