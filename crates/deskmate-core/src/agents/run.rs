//! Runs as those who ask for them see them: started, followed and stopped.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::model::{Budget, Cause, RunState, Runner, Status};
use super::rows::{self, AgentRow, RunRow};
use super::test::OwnTest;
use super::work::end;
use super::{QUEUED, RUN_JOB, SKIPPED, guard, node};
use crate::call::{Actor, Cx, Page, PageIn, Presence, Wait};
use crate::job::{self, NewJob};
use crate::limits::{AGENT_DEPTH_MAX, AGENT_OPEN_RUNS_MAX, CONTENT_BYTES_MAX, WAIT_MAX};
use crate::{Error, Result, check_text, format_time, meter, redact, request};

/// A run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunOut {
    /// Its id.
    run_id: String,
    /// The agent's name.
    agent: String,
    /// How it stands.
    state: RunState,
    /// Why it was made.
    cause: Cause,
    /// The run that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    /// The node that does it, or did; absent on a server without a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// What it waits for, where there is no server now that could do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<String>,
    /// How many operations it has called.
    calls: i64,
    /// When it was made.
    created_at: String,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
    /// What came of it: what its last step gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// Why it did not do what it was for.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<RunRow> for RunOut {
    fn from(row: RunRow) -> Self {
        Self {
            run_id: row.id,
            agent: row.agent,
            state: row.state,
            cause: row.cause,
            parent: row.parent,
            node: row.node,
            waits_for: None,
            calls: row.calls,
            created_at: format_time(row.created_at),
            started_at: row.started_at.map(format_time),
            finished_at: row.finished_at.map(format_time),
            result: row.result.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text))),
            error: row.error,
        }
    }
}

impl RunOut {
    /// The same, with what it waits for.
    pub(super) fn of(cx: &mut Cx<'_, '_>, row: RunRow, agent: &AgentRow) -> Result<Self> {
        let waits = match (&row.job, row.state.is_end()) {
            (Some(job), false) => job::how(cx, job)?.is_some_and(|work| work.state == job::State::Waiting),
            _ => false,
        };
        let waits_for = if waits { node::missing(cx, &agent.place)? } else { None };
        Ok(Self { waits_for, ..row.into() })
    }

    /// The same for several.
    pub(super) fn all(cx: &mut Cx<'_, '_>, rows: Vec<RunRow>, agent: &AgentRow) -> Result<Vec<Self>> {
        rows.into_iter().map(|row| Self::of(cx, row, agent)).collect()
    }
}

/// Makes a run and puts it into the queue.
pub(super) fn make(cx: &mut Cx<'_, '_>, row: &AgentRow, cause: Cause, moment: Option<i64>, parent: Option<(String, i64)>, input: Value) -> Result<RunRow> {
    let open = rows::open_runs(cx.tx, &row.id, AGENT_OPEN_RUNS_MAX)?;
    if i64::try_from(open.len()).unwrap_or(i64::MAX) >= AGENT_OPEN_RUNS_MAX {
        return Err(Error::limited(format!("{AGENT_OPEN_RUNS_MAX} runs of {} have not ended yet", row.agent), 10_000));
    }
    let depth = parent.as_ref().map_or(0, |(_, depth)| depth + 1);
    if depth > AGENT_DEPTH_MAX {
        return Err(Error::forbidden(format!("runs start runs at most {AGENT_DEPTH_MAX} deep")));
    }
    let id = cx.new_id();
    let owner = job::Owner::from(&Actor::agent(row.agent.clone(), true));
    let job = NewJob { unique_key: Some(id.clone()), owner: Some(owner), place: row.place.text(), ..NewJob::new(RUN_JOB, json!({ "run": id })) };
    let mut run = blank(cx, row, id, cause, moment);
    run.parent = parent.map(|(parent, _)| parent);
    run.depth = depth;
    run.input = if input.is_null() { None } else { Some(input.to_string()) };
    if !rows::insert_run(cx.tx, &run)? {
        // Somebody else found the same moment due.
        return Ok(run);
    }
    run.job = Some(job::enqueue(cx, job)?.job);
    rows::save_run(cx, &run, QUEUED, Value::Null)?;
    Ok(run)
}

fn blank(cx: &Cx<'_, '_>, row: &AgentRow, id: String, cause: Cause, moment: Option<i64>) -> RunRow {
    RunRow {
        id,
        definition: row.id.clone(),
        agent: row.agent.clone(),
        cause,
        moment,
        state: RunState::Queued,
        parent: None,
        depth: 0,
        job: None,
        node: None,
        input: None,
        calls: 0,
        cost: 0,
        created_at: cx.now(),
        started_at: None,
        finished_at: None,
        expires_at: None,
        result: None,
        error: None,
    }
}

/// Why a moment was left out.
pub(super) enum Skip {
    /// The run before is still under way.
    Busy,
    /// It went by, and so did others until now, of which all are counted or so many.
    Away { moments: usize, all: bool },
    /// The kill switch is on.
    Paused,
}

/// Notes a moment that was left out. Of what is left out while the kill switch is on only the first is noted, until something else runs.
pub(super) fn skip(cx: &mut Cx<'_, '_>, row: &AgentRow, moment: i64, skipped: &Skip) -> Result<()> {
    let why = match skipped {
        Skip::Busy => "the run before was still under way".to_owned(),
        Skip::Away { moments: 1, .. } => "the desk was away or too busy when it was due".to_owned(),
        Skip::Away { moments, all } => {
            let at_least = if *all { "" } else { "at least " };
            format!("the desk was away or too busy when it was due: {at_least}{moments} moments were left out, of which this is the first")
        }
        Skip::Paused => "its agent is paused; this moment and those behind it are left out until a person lets it go on".to_owned(),
    };
    if matches!(skipped, Skip::Paused) {
        let newest = cx.tx.optional(rows::RUNS, args![i64::MAX, "", 1_i64, row.id])?.map(|row| RunRow::read(&row)).transpose()?;
        if newest.is_some_and(|run| run.state == RunState::Skipped && run.error.as_ref() == Some(&why)) {
            return Ok(());
        }
    }
    let mut run = blank(cx, row, cx.new_id(), Cause::Schedule, Some(moment));
    run.state = RunState::Skipped;
    run.finished_at = Some(cx.now());
    run.error = Some(why);
    if !rows::insert_run(cx.tx, &run)? {
        return Ok(());
    }
    let payload = json!({ "error": run.error });
    rows::save_run(cx, &run, SKIPPED, payload)
}

/// Start a run of a deployed agent now, or a run of its test.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RunAgent {
    /// The agent's id or name.
    agent_id: String,
    /// Values that its steps use as `{{input.NAME}}`, and that a program finds in `input.json`.
    input: Option<Map<String, Value>>,
    /// Whether to run its test instead: without the network, without secrets and without a token. Of an agent that is not
    /// deployed a person does this.
    #[serde(default)]
    test: bool,
}

pub(super) fn start(cx: &mut Cx<'_, '_>, given: RunAgent) -> Result<RunOut> {
    let parent = guard::parent(cx)?;
    let row = rows::find(cx, &given.agent_id)?;
    if parent.is_none() {
        guard::maker_or_person(cx, &row)?;
    }
    if given.test {
        if given.input.is_some() {
            return Err(Error::invalid("input", "is not for a test"));
        }
        return Ok(start_test(cx, &row, "its own test")?.into());
    }
    if row.status != Status::Deployed {
        return Err(
            Error::conflict(format!("{} is {}, and only what is deployed runs", row.agent, row.status.name())).hint("deploy it with agents_deploy_agent")
        );
    }
    let input = given.input.map_or(Value::Null, Value::Object);
    check_text("input", &input.to_string(), CONTENT_BYTES_MAX)?;
    let run = make(cx, &row, Cause::Started, None, parent, input)?;
    RunOut::of(cx, run, &row)
}

/// Starts a run of a program's own test. What nobody approved yet is started by a person who is there.
pub(super) fn start_test(cx: &mut Cx<'_, '_>, row: &AgentRow, scenario: &str) -> Result<RunRow> {
    guard::not_from_a_run(cx)?;
    match &row.definition.runner {
        Runner::Command { test, .. } if !test.is_empty() => {}
        Runner::Cli { .. } => {
            return Err(Error::conflict(format!("{} asks a model, and what that does shows only when it runs", row.agent))
                .hint("it has no test; a rule that asks for one leaves it out with `args.definition.runner.kind != 'cli'`"));
        }
        _ => {
            return Err(Error::conflict(format!("{} has no test", row.agent)).hint("a command has one if `test` names it, or if it was made with a language"));
        }
    }
    if row.status != Status::Deployed && (cx.actor.is_agent() || (cx.actor.is_person() && cx.actor.presence != Presence::Shown)) {
        return Err(Error::needs_presence("a person who is there tries out what is not deployed").hint(request::WAYS));
    }
    let of = json!(OwnTest::of(cx, row, scenario));
    make(cx, row, Cause::Test, None, None, of)
}

/// The runs of an agent, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ListRuns {
    /// The agent's id or name.
    agent_id: String,
    /// How many; at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of runs.
#[derive(Serialize, JsonSchema)]
pub(super) struct Runs {
    runs: Vec<RunOut>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: ListRuns) -> Result<Runs> {
    let row = rows::find(cx, &input.agent_id)?;
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let (at, id) = page.after.clone().unwrap_or((i64::MAX, String::new()));
    let runs = cx.tx.query(rows::RUNS, args![at, id, page.look_ahead(), row.id])?;
    let runs = runs.iter().map(RunRow::read).collect::<Result<Vec<_>>>()?;
    let page = Page::cut(runs, &page, |run| (run.created_at, run.id.clone()));
    Ok(Runs { runs: RunOut::all(cx, page.items, &row)?, next_cursor: page.next_cursor })
}

fn visible(cx: &mut Cx<'_, '_>, id: &str) -> Result<(RunRow, AgentRow)> {
    let missing = || Error::not_found(format!("there is no run {id} for you"));
    let run = rows::run(cx.tx, id)?.ok_or_else(missing)?;
    let row = rows::by_id(cx.tx, &run.definition)?.filter(|row| row.is_for(&cx.actor)).ok_or_else(missing)?;
    Ok((run, row))
}

/// One run: how it stands, how far it is, what it was started with, and what it has used of its budget.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetRun {
    /// The run's id.
    run_id: String,
}

/// A run, and what it used.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunGot {
    /// Whether it has ended.
    ended: bool,
    #[serde(flatten)]
    run: RunOut,
    /// The moment of the schedule that it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
    /// What it was started with, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<job::Progress>,
    /// Whether it was asked to stop.
    stopping: bool,
    /// What a run of its agent may use up, as the agent is now.
    budget: Budget,
    /// What it has used.
    used: Used,
    /// The number of the newest line that it said; 0 if it said nothing.
    last_line: i64,
}

/// What a run has used.
#[derive(Serialize, JsonSchema)]
struct Used {
    /// Seconds from its begin to its end, or until now. Waiting for people is among them, which steps are not charged for.
    seconds: f64,
    /// Calls of operations.
    calls: i64,
    /// Characters of its log, as it is kept.
    log_characters: i64,
    /// What its calls have cost, in units; what the model of a client costs is not among it.
    cost: f64,
}

pub(super) fn get(cx: &mut Cx<'_, '_>, input: GetRun) -> Result<RunGot> {
    let (run, row) = visible(cx, &input.run_id)?;
    let said = cx.tx.one("select coalesce(max(number), 0), coalesce(sum(length(said)), 0) from agent_log where run = $1", args![run.id])?;
    let work = match &run.job {
        Some(job) => job::how(cx, job)?,
        None => None,
    };
    let (ended, until) = (run.state.is_end(), run.finished_at.unwrap_or_else(|| cx.now()));
    #[expect(clippy::cast_precision_loss, reason = "seconds of a run")]
    let seconds = run.started_at.map_or(0.0, |begun| until.saturating_sub(begun).max(0) as f64 / 1e6);
    let started_with = run.input.as_deref().and_then(|text| serde_json::from_str(text).ok()).map(|value| redact::value(&value).value);
    Ok(RunGot {
        ended,
        due_at: run.moment.map(format_time),
        input: started_with.filter(|_| run.cause != Cause::Test),
        stopping: !ended && work.as_ref().is_some_and(|work| work.stopping),
        progress: work.and_then(|work| work.progress).filter(|_| !ended),
        budget: row.definition.budget.clone(),
        used: Used { seconds, calls: run.calls, log_characters: said.get(1)?, cost: meter::units(run.cost) },
        last_line: said.get(0)?,
        run: RunOut::of(cx, run, &row)?,
    })
}

/// Wait until a run has ended, for at most 25 seconds, and get what came of it. If it has not ended by then, the answer says so: ask
/// again.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WaitForRun {
    /// The run's id.
    run_id: String,
    /// How long to wait, at most 25 seconds; 25 if not given, and 0 only looks.
    timeout_seconds: Option<u64>,
}

/// A run, and what it said last.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunSeen {
    /// Whether it has ended; if not, ask again.
    ended: bool,
    #[serde(flatten)]
    run: RunOut,
    /// What it said last.
    log: Vec<LogLine>,
}

pub(super) fn wait(cx: &mut Cx<'_, '_>, input: WaitForRun) -> Result<Wait<RunSeen>> {
    let longest = WAIT_MAX.as_secs();
    if input.timeout_seconds.is_some_and(|seconds| seconds > longest) {
        return Err(Error::invalid("timeoutSeconds", format!("must be at most {longest}")).hint("ask again for longer waits"));
    }
    let (run, row) = visible(cx, &input.run_id)?;
    let (ended, log) = (run.state.is_end(), last_lines(cx, &run.id, 20)?);
    let seen = RunSeen { ended, run: RunOut::of(cx, run, &row)?, log };
    Ok(if ended || input.timeout_seconds == Some(0) { Wait::Ready(seen) } else { Wait::NotYet(seen) })
}

/// What a run said, oldest first.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RunLog {
    /// The run's id.
    run_id: String,
    /// Only what came after this line.
    #[serde(default)]
    after: i64,
    /// How many lines; at most 200.
    limit: Option<u32>,
}

/// Lines of a log.
#[derive(Serialize, JsonSchema)]
pub(super) struct Lines {
    lines: Vec<LogLine>,
}

/// A line of a log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct LogLine {
    /// Its number; give it as `after` for what comes behind it.
    number: i64,
    /// When it was said.
    at: String,
    /// The step that said it, or `desk`.
    source: String,
    /// What was said, without secrets.
    text: String,
}

pub(super) fn log(cx: &mut Cx<'_, '_>, input: RunLog) -> Result<Lines> {
    let (run, _) = visible(cx, &input.run_id)?;
    let limit = PageIn::new(input.limit, None)?.limit;
    let rows = cx.tx.query(
        "select number, at, source, said from agent_log where run = $1 and number > $2 order by number limit $3",
        args![run.id, input.after, i64::from(limit)],
    )?;
    Ok(Lines { lines: rows.iter().map(line).collect::<Result<_>>()? })
}

fn line(row: &deskmate_db::Row) -> Result<LogLine> {
    Ok(LogLine { number: row.get(0)?, at: format_time(row.get(1)?), source: row.get(2)?, text: row.get(3)? })
}

pub(super) fn last_lines(cx: &mut Cx<'_, '_>, run: &str, count: i64) -> Result<Vec<LogLine>> {
    let rows = cx.tx.query("select number, at, source, said from agent_log where run = $1 order by number desc limit $2", args![run, count])?;
    let mut lines = rows.iter().map(line).collect::<Result<Vec<_>>>()?;
    lines.reverse();
    Ok(lines)
}

/// Stop a run. A step that is under way is finished, and none begins after it; a program is asked to end, and ended with all that
/// it started if it does not.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StopRun {
    /// The run's id.
    run_id: String,
}

pub(super) fn stop(cx: &mut Cx<'_, '_>, input: StopRun) -> Result<RunOut> {
    let (run, row) = visible(cx, &input.run_id)?;
    if cx.actor.run.as_deref() != Some(run.id.as_str()) {
        guard::maker_or_person(cx, &row)?;
    }
    if run.state.is_end() {
        return Err(Error::conflict(format!("this run is {} already", run.state.name())));
    }
    Ok(stop_one(cx, run)?.into())
}

/// Asks a run to stop; one that no worker has now ends here.
pub(super) fn stop_one(cx: &mut Cx<'_, '_>, run: RunRow) -> Result<RunRow> {
    let mut at_work = false;
    if let Some(job) = &run.job {
        job::drop(cx, job)?;
        at_work = job::how(cx, job)?.is_some_and(|work| work.state == job::State::Running);
    }
    if !at_work {
        end(cx, &run.id, RunState::Stopped, Err("somebody stopped it".to_owned()), run.calls)?;
    }
    Ok(rows::run(cx.tx, &run.id)?.unwrap_or(run))
}
