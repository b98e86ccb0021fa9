//! What a worker does with a run: it begins one, tells what the run says and how it ends. Who has hands does the steps; here is what is
//! known of them.

use deskmate_db::{Tx, args};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::model::{Cause, Definition, RunState, Status};
use super::rows::{self, AgentRow, RunRow};
use super::{BEGUN, ENDED, RUN_JOB, TAKEN_UP, gate, schedule, test};
use crate::call::{Actor, Cx};
use crate::limits::{AGENT_RESULT_BYTES_MAX, NOTE_BYTES_MAX};
use crate::{Code, Error, Result, format_time, gateway, hex, identity, job, meter, redact};

/// Seconds for which a run's token outlives the run's own time, while the run is being ended.
const TOKEN_GRACE: i64 = 60;
/// What is said of a run that was left in the middle and does not go on.
pub const INTERRUPTED: &str = "it was interrupted: the server that did it ended while it was under way, and nobody knows how far it came";
/// What is said of one that does not begin because of the kill switch.
const IS_PAUSED: &str = "its agent is paused";
/// How many runs are looked through for the newest that was done: pages, and runs on each.
const LAST_PAGES_MAX: usize = 10;
const LAST_PAGE: i64 = 50;

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

/// What steps find as `{{run}}`: which one it is, whose, and when it began: the day where its schedule is, and the moment in UTC.
pub fn told(id: &str, agent: &str, started_at: i64, definition: &Definition) -> Value {
    let zone = definition.schedule.as_ref().and_then(|timing| schedule::zone(&timing.time_zone).ok()).unwrap_or(TimeZone::UTC);
    let date = Timestamp::from_microsecond(started_at).map_or_else(|_| String::new(), |at| zone.to_datetime(at).date().to_string());
    json!({ "id": id, "agent": agent, "date": date, "time": format_time(started_at) })
}

/// Begins a run, or goes on with one that a worker before this one left. `None` if there is nothing to do.
pub fn begin(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Begun>> {
    let Some(mut run) = rows::run(cx.tx, id)?.filter(|run| !run.state.is_end()) else { return Ok(None) };
    let row = rows::by_id(cx.tx, &run.definition)?;
    let input = run.input.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
    let test = run.cause == Cause::Test;
    // A test is of what somebody looked at; what it was made into since then is something else.
    let again = run.state != RunState::Queued;
    let fits = |row: &AgentRow| match row.status {
        _ if test => input.get("digest") == Some(&Value::from(hex(&row.digest))),
        // Of a paused agent none begins, and what is under way goes on.
        Status::Paused => again,
        status => status == Status::Deployed,
    };
    let Some(row) = row.filter(|row| fits(row) && row.deleted_at.is_none()) else {
        end(cx, id, RunState::Stopped, Err(if test { "its agent was changed" } else { "its agent is not deployed any more" }.to_owned()), run.calls)?;
        return Ok(None);
    };
    // The kill switch: nothing begins. Steps that were under way are taken up, and wait where they are; a program cannot wait, and of one that
    // was under way nobody knows how far it came.
    if (!again || row.definition.runner.is_program()) && meter::paused(cx, &row.agent)? {
        let (state, why) = if again { (RunState::Ambiguous, INTERRUPTED) } else { (RunState::Stopped, IS_PAUSED) };
        end(cx, id, state, Err(why.to_owned()), run.calls)?;
        return Ok(None);
    }
    run.node = cx.server.name().map(str::to_owned);
    if again {
        rows::save_run(cx, &run, TAKEN_UP, Value::Null)?;
    } else {
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

/// Counts what an act of a run costs. One that would cost more than is left of its budget is refused, and that ends the run; what the
/// model of a client costs, the client keeps itself.
pub(crate) fn spend(cx: &mut Cx<'_, '_>, cost: i64) -> Result<()> {
    let Some(id) = cx.actor.run.clone().filter(|_| cost > 0) else { return Ok(()) };
    let Some(run) = rows::run(cx.tx, &id)? else { return Ok(()) };
    let most = rows::by_id(cx.tx, &run.definition)?.and_then(|row| row.definition.budget.cost);
    if let Some(most) = most.filter(|most| run.cost.saturating_add(cost) > meter::millionths(*most)) {
        let spent = meter::units(run.cost);
        return Err(Error::used_up(format!("its budget of {most} for cost is used up: {spent} were spent, and this costs {}", meter::units(cost))));
    }
    rows::add_cost(cx.tx, &id, cost)
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
        // A program says what it likes, also what PostgreSQL keeps in no text.
        Err(why) => run.error = Some(redact::text(&why).text.replace('\0', "\u{fffd}").chars().take(2_000).collect()),
    }
    let payload = json!({ "error": run.error });
    rows::save_run(cx, &run, ENDED, payload)?;
    if run.cause == Cause::Test {
        test::ended(cx, &run)?;
    }
    gate::run_ended(cx, id)?;
    if state == RunState::Stopped {
        withdraw_calls(cx, &run)?;
    }
    identity::end_run(cx, id)
}

/// Takes back what a run that was stopped asked of mounted servers and people have not decided. Calls do not say of which run they are: as long
/// as another one is under way, they may be that one's. The kill switch only holds them; what an agent asked that is not to run any more is
/// taken back whole.
fn withdraw_calls(cx: &mut Cx<'_, '_>, run: &RunRow) -> Result<()> {
    let row = rows::by_id(cx.tx, &run.definition)?;
    let may_go_on = row.is_some_and(|row| matches!(row.status, Status::Deployed | Status::Paused) && row.deleted_at.is_none());
    if !rows::open_runs(cx.tx, &run.definition, 1)?.is_empty() || (may_go_on && meter::paused(cx, &run.agent)?) {
        return Ok(());
    }
    let since = if may_go_on { run.started_at.unwrap_or_else(|| cx.now()) } else { 0 };
    gateway::withdraw(cx, &run.agent, since, "the run that asked for it was stopped")
}

/// The queue is done with the job of a run. Where no worker ended the run, nobody else will.
pub(crate) fn job_ended(cx: &mut Cx<'_, '_>, kind: &str, run: Option<&str>, state: job::State, error: Option<&str>) -> Result<()> {
    let Some(run) = run.filter(|_| kind == RUN_JOB) else { return Ok(()) };
    let Some(row) = rows::run(cx.tx, run)?.filter(|row| !row.state.is_end()) else { return Ok(()) };
    let state = match state {
        job::State::Cancelled => RunState::Stopped,
        job::State::Ambiguous => RunState::Ambiguous,
        _ => RunState::Failed,
    };
    let why = if state == RunState::Stopped { "somebody stopped it" } else { error.unwrap_or("its work ended, and nobody told how") };
    end(cx, run, state, Err(why.to_owned()), row.calls)
}

/// As whom a run acts, while it is under way.
pub(crate) fn actor(tx: &mut Tx<'_>, id: &str) -> Result<Actor> {
    let refused = || Error::new(Code::Unauthenticated, "this run has ended, or its agent is not deployed any more");
    let run = rows::run(tx, id)?.filter(|run| run.state == RunState::Running).ok_or_else(refused)?;
    let row = rows::by_id(tx, &run.definition)?
        .filter(|row| matches!(row.status, Status::Deployed | Status::Paused) && row.deleted_at.is_none())
        .ok_or_else(refused)?;
    Ok(Actor { run: Some(run.id), ..Actor::agent(row.agent, true) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn today_is_the_day_where_the_schedule_is() {
        let at = crate::parse_time("at", "2026-11-16T22:30:00Z").unwrap();
        let on = |zone: Option<&str>| {
            let schedule = zone.map(|zone| json!({ "cron": "30 9 * * *", "time_zone": zone }));
            let definition: Definition = serde_json::from_value(json!({ "task": "x", "schedule": schedule })).unwrap();
            told("r", "a", at, &definition)
        };
        assert_eq!((&on(Some("Australia/Sydney"))["date"], &on(Some("America/New_York"))["date"]), (&json!("2026-11-17"), &json!("2026-11-16")));
        assert_eq!((&on(None)["date"], &on(Some("Australia/Sydney"))["time"]), (&json!("2026-11-16"), &json!("2026-11-16T22:30:00.000000Z")));
    }
}
