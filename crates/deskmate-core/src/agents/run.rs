//! Runs: made, begun, followed, stopped and ended. Who has hands does the steps; here is what is known of them.

use deskmate_db::{Tx, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::model::{Budget, Cause, Definition, RunState, Runner, Status};
use super::rows::{self, AgentRow, RunRow};
use super::{BEGUN, ENDED, QUEUED, RUN_JOB, SKIPPED, guard};
use crate::call::{Actor, Cx, Page, PageIn, Presence, Wait};
use crate::job::{self, NewJob};
use crate::limits::{AGENT_DEPTH_MAX, AGENT_OPEN_RUNS_MAX, AGENT_RESULT_BYTES_MAX, CONTENT_BYTES_MAX, NOTE_BYTES_MAX, WAIT_MAX};
use crate::{Code, Error, Result, check_text, format_time, hex, identity, meter, redact, request};

/// Seconds for which a run's token outlives the run's own time, while the run is being ended.
const TOKEN_GRACE: i64 = 60;
/// How many runs are looked through for the newest that was done: pages, and runs on each.
const LAST_PAGES_MAX: usize = 10;
const LAST_PAGE: i64 = 50;

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
            calls: row.calls,
            created_at: format_time(row.created_at),
            started_at: row.started_at.map(format_time),
            finished_at: row.finished_at.map(format_time),
            result: row.result.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text))),
            error: row.error,
        }
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
    let job = NewJob { unique_key: Some(id.clone()), owner: Some(owner), ..NewJob::new(RUN_JOB, json!({ "run": id })) };
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
        input: None,
        calls: 0,
        created_at: cx.now(),
        started_at: None,
        finished_at: None,
        expires_at: None,
        result: None,
        error: None,
    }
}

/// Notes a moment that was left out, because the run before is still under way.
pub(super) fn skip(cx: &mut Cx<'_, '_>, row: &AgentRow, moment: i64) -> Result<()> {
    let mut run = blank(cx, row, cx.new_id(), Cause::Schedule, Some(moment));
    run.state = RunState::Skipped;
    run.finished_at = Some(cx.now());
    if rows::insert_run(cx.tx, &run)? { rows::tell_run(cx, &run, SKIPPED, Value::Null) } else { Ok(()) }
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
        return test(cx, &row, given.input.is_some());
    }
    if row.status != Status::Deployed {
        return Err(
            Error::conflict(format!("{} is {}, and only what is deployed runs", row.agent, row.status.name())).hint("deploy it with agents_deploy_agent")
        );
    }
    let input = given.input.map_or(Value::Null, Value::Object);
    check_text("input", &input.to_string(), CONTENT_BYTES_MAX)?;
    Ok(make(cx, &row, Cause::Started, None, parent, input)?.into())
}

/// Starts a run of a test. What nobody approved yet is started by a person who is there.
fn test(cx: &mut Cx<'_, '_>, row: &AgentRow, has_input: bool) -> Result<RunOut> {
    guard::not_from_a_run(cx)?;
    if has_input {
        return Err(Error::invalid("input", "is not for a test"));
    }
    if !matches!(&row.definition.runner, Runner::Command { test, .. } if !test.is_empty()) {
        return Err(Error::conflict(format!("{} has no test", row.agent)).hint("a command has one if `test` names it, or if it was made with a language"));
    }
    if row.status != Status::Deployed && (cx.actor.is_agent() || (cx.actor.is_person() && cx.actor.presence != Presence::Shown)) {
        return Err(Error::needs_presence("a person who is there tries out what is not deployed").hint(request::WAYS));
    }
    Ok(make(cx, row, Cause::Test, None, None, json!({ "digest": hex(&row.digest) }))?.into())
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
    Ok(Runs { runs: page.items.into_iter().map(RunOut::from).collect(), next_cursor: page.next_cursor })
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
        budget: row.definition.budget,
        used: Used { seconds, calls: run.calls, log_characters: said.get(1)? },
        last_line: said.get(0)?,
        run: run.into(),
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
    let (run, _) = visible(cx, &input.run_id)?;
    let (ended, log) = (run.state.is_end(), last_lines(cx, &run.id, 20)?);
    let seen = RunSeen { ended, run: run.into(), log };
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

/// Asks a run to stop; one that has not begun ends here.
pub(super) fn stop_one(cx: &mut Cx<'_, '_>, mut run: RunRow) -> Result<RunRow> {
    if let Some(job) = &run.job {
        job::cancel(cx, job)?;
    }
    if run.state == RunState::Queued {
        run.state = RunState::Stopped;
        run.finished_at = Some(cx.now());
        rows::save_run(cx, &run, ENDED, Value::Null)?;
    }
    Ok(run)
}

/// What a worker is given to do a run.
pub struct Begun {
    /// The run.
    pub run: String,
    /// The agent as which it acts.
    pub agent: String,
    /// What it is.
    pub definition: Definition,
    /// What it was started with.
    pub input: Value,
    /// Whether it is its test that is run, which has no credential.
    pub test: bool,
    /// Whether a worker before this one left it in the middle.
    pub again: bool,
    /// How many calls it has made by now.
    pub calls: i64,
    /// When it began.
    pub started_at: i64,
    /// What came of the newest run before it that was done.
    pub last: Value,
}

/// What steps find as `{{run}}`: which one it is, whose, and the day and the moment when it began, in UTC.
pub fn told(id: &str, agent: &str, started_at: i64) -> Value {
    let time = format_time(started_at);
    json!({ "id": id, "agent": agent, "date": time.split('T').next(), "time": time })
}

/// Begins a run, or goes on with one that a worker before this one left. `None` if there is nothing to do.
pub fn begin(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Begun>> {
    let Some(mut run) = rows::run(cx.tx, id)?.filter(|run| !run.state.is_end()) else { return Ok(None) };
    let row = rows::by_id(cx.tx, &run.definition)?;
    let input = run.input.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
    let test = run.cause == Cause::Test;
    // A test is of what somebody looked at; what it was made into since then is something else.
    let fits = |row: &AgentRow| if test { input.get("digest") == Some(&Value::from(hex(&row.digest))) } else { row.status == Status::Deployed };
    let Some(row) = row.filter(|row| fits(row) && row.deleted_at.is_none()) else {
        end(cx, id, RunState::Stopped, Err(if test { "its agent was changed" } else { "its agent is not deployed any more" }.to_owned()), run.calls)?;
        return Ok(None);
    };
    if meter::paused(cx, &row.agent)? {
        end(cx, id, RunState::Stopped, Err("its agent is paused".to_owned()), run.calls)?;
        return Ok(None);
    }
    let again = run.state != RunState::Queued;
    if !again {
        run.state = RunState::Running;
        run.started_at = Some(cx.now());
        run.expires_at = Some(cx.now().saturating_add(i64::from(row.definition.budget.seconds) * 1_000_000));
        rows::save_run(cx, &run, BEGUN, Value::Null)?;
    }
    let started_at = run.started_at.unwrap_or_else(|| cx.now());
    let last = last(cx, &run)?;
    Ok(Some(Begun { run: run.id, started_at, last, agent: row.agent, definition: row.definition, input, again, test, calls: run.calls }))
}

/// What came of the newest run that was done before this one was made: what steps remember by.
fn last(cx: &mut Cx<'_, '_>, run: &RunRow) -> Result<Value> {
    let mut after = (run.created_at, run.id.clone());
    // Runs that failed or were left out stand between; a few pages of them are looked through.
    for _ in 0..LAST_PAGES_MAX {
        let rows = cx.tx.query(rows::RUNS, args![after.0, after.1.as_str(), LAST_PAGE, run.definition])?;
        let found = rows.iter().map(RunRow::read).collect::<Result<Vec<_>>>()?;
        if let Some(done) = found.iter().find(|run| run.state == RunState::Done && run.cause != Cause::Test) {
            return Ok(done.result.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null));
        }
        let Some(end) = found.last() else { break };
        after = (end.created_at, end.id.clone());
    }
    Ok(Value::Null)
}

/// The token with which the program of a run speaks to the desk: its own, good until the run ends. One that an attempt before
/// had ends here.
pub fn credential(cx: &mut Cx<'_, '_>, run: &str, seconds: u32) -> Result<String> {
    if !cx.actor.is_system() {
        return Err(Error::forbidden("the desk itself hands out what a run acts with"));
    }
    identity::issue_run(cx, run, i64::from(seconds).saturating_add(TOKEN_GRACE).saturating_mul(1_000_000))
}

/// Writes down lines that a run said, without secrets, and how many calls it has made.
pub fn said(cx: &mut Cx<'_, '_>, run: &str, lines: &[(String, String)], calls: i64) -> Result<()> {
    let next: Option<i64> =
        cx.tx.optional("select number from agent_log where run = $1 order by number desc limit 1", args![run])?.map(|row| row.get(0)).transpose()?;
    let (now, mut number) = (cx.now(), next.unwrap_or(0));
    for (source, text) in lines {
        number += 1;
        let text: String = redact::text(text).text.chars().take(NOTE_BYTES_MAX / 4).collect();
        cx.tx.execute(
            "insert into agent_log (run, number, at, source, said) values ($1, $2, $3, $4, $5)",
            args![run, number, now, source, text.replace('\0', "")],
        )?;
    }
    cx.tx.execute("update agent_run set calls = $2 where id = $1", args![run, calls])?;
    Ok(())
}

/// Ends a run with what came of it.
pub fn end(cx: &mut Cx<'_, '_>, id: &str, state: RunState, came: Result<Value, String>, calls: i64) -> Result<()> {
    let Some(mut run) = rows::run(cx.tx, id)?.filter(|run| !run.state.is_end()) else { return Ok(()) };
    run.state = state;
    run.finished_at = Some(cx.now());
    run.calls = calls;
    match came {
        Ok(value) => {
            let text = redact::value(&value).value.to_string();
            run.result = Some(if text.len() > AGENT_RESULT_BYTES_MAX { json!({ "cut": true, "bytes": text.len() }).to_string() } else { text });
        }
        Err(why) => run.error = Some(redact::text(&why).text.chars().take(2_000).collect()),
    }
    let payload = json!({ "error": run.error });
    rows::save_run(cx, &run, ENDED, payload)?;
    identity::end_run(cx, id)
}

/// As whom a run acts, while it is under way.
pub(crate) fn actor(tx: &mut Tx<'_>, id: &str) -> Result<Actor> {
    let refused = || Error::new(Code::Unauthenticated, "this run has ended, or its agent is not deployed any more");
    let run = rows::run(tx, id)?.filter(|run| run.state == RunState::Running).ok_or_else(refused)?;
    let row = rows::by_id(tx, &run.definition)?.filter(|row| row.status == Status::Deployed && row.deleted_at.is_none()).ok_or_else(refused)?;
    Ok(Actor { run: Some(run.id), ..Actor::agent(row.agent, true) })
}
