//! What an agent would do: its real steps, with effects replaced by what was intended, and mock data in the place of what would have
//! come back. Every intended act is decided like a real one; nothing is counted, and no trust moves.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::model::{Cause, RunState, Runner, Status};
use super::rows::{self, AgentRow, RunRow};
use super::step::{self, OnError, Step};
use super::value::{self, Scope};
use super::{TESTED, gate, guard, run, sentence, work};
use crate::call::{Cx, Effect as OpEffect, Registry, Toolset, bytes_of};
use crate::limits::{AGENT_ITEMS_MAX, CONTENT_BYTES_MAX};
use crate::policy::{Act, Decision, Effect, Mode, Severity};
use crate::record::Event;
use crate::request::{self, Requester};
use crate::{Code, Error, Result, check_text, cowork, format_time, gateway, hex, meter, redact, workspace};

/// How many of the intended acts are listed; all of them are decided.
const ACTS_LISTED: usize = 200;
/// How many acts a test decides; an agent that intends more does not pass. It has one transaction, for which others wait.
const ACTS_MAX: i64 = 2_000;
/// How much mock data may stand in for answers, each time that it does.
const ANSWERS_BYTES_MAX: usize = 16 << 20;
/// How many past runs an estimate is made of.
const RUNS_LOOKED_AT: i64 = 50;

static OPERATIONS: LazyLock<BTreeMap<String, (Toolset, &'static str, OpEffect)>> =
    LazyLock::new(|| Registry::new().all().map(|op| (op.full_name(), (op.toolset, op.name, op.effect))).collect());

/// Try an agent without effects: its real steps run, mock data stands in for what operations would answer, and every act that it
/// intends is decided by what is in force, without counting it. The result is kept for what the agent is now; a policy can ask for a
/// passed one before it is deployed. Of a program its own test is run, without the network and without a token; agents_wait_for_run tells
/// what came of it. With `dryRun: false` a deployed agent runs once for real, as a run that is marked as a trial.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TestAgent {
    /// The agent's id or name.
    agent_id: String,
    /// What is tried, in words; steps see it as `{{input.scenario}}`.
    scenario: String,
    /// What steps give, by the id of the step or the name of its operation; `input` is what the run would be started with, `last` what
    /// came of the run before it.
    #[serde(default)]
    mock_data: Map<String, Value>,
    /// Whether nothing has an effect; yes if not given.
    #[serde(default = "yes")]
    dry_run: bool,
    /// Whether any act that a rule forbids fails the test; yes if not given. If not, only critical rules do.
    #[serde(default = "yes")]
    strict: bool,
}

fn yes() -> bool {
    true
}

/// What an agent intends.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Intended {
    /// The step.
    step: String,
    /// What it would call.
    operation: String,
    /// The verb under which rules see it.
    kind: String,
    /// In which domain.
    domain: String,
    /// With what, without secrets.
    with: Value,
    /// What the desk would answer: `act`, `suggest`, `escalate` or `deny`.
    answer: Mode,
    /// The rules that fire: policy and rule, with the reason.
    rules: Vec<String>,
}

/// What a step would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Tried {
    /// The step.
    step: String,
    /// What it does.
    does: String,
    /// `done`, `left_out` or `failed`.
    state: &'static str,
    /// How often it would be called.
    times: usize,
    /// Whether mock data stood in for what it gives.
    mocked: bool,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What a run would use up.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Estimate {
    /// How many past runs it is made of; 0 if there are none, and then nothing is estimated.
    past_runs: usize,
    /// Seconds of a run, in the middle.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    /// Calls of operations: of past runs in the middle, else what this test intended.
    calls: i64,
    /// What it costs is known only where acts say so: what this test intended, in units.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    /// Where these come from.
    from: String,
}

/// What came of a test.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentTested {
    /// All of this in words, for people.
    message: String,
    /// Its id.
    test_id: String,
    /// The agent's id.
    agent_id: String,
    /// The digest of what was tested.
    digest: String,
    /// Whether it passed. Of a run this is not known yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<bool>,
    /// The run, if it is for real or of a program's own test.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    /// Each step.
    steps: Vec<Tried>,
    /// What it intends, the first of them.
    acts: Vec<Intended>,
    /// Acts beyond those that are listed; they were decided as well.
    more_acts: usize,
    /// Rules that forbid something that it intends.
    violations: Vec<String>,
    /// Acts that would wait for a person.
    held: usize,
    /// Things that the scenario speaks of and no step does.
    not_done: Vec<String>,
    /// What a run would use up.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Estimate>,
    /// When.
    at: String,
}

/// Whether the newest strict test of exactly what the agent is now passed.
pub(super) fn passed(cx: &mut Cx<'_, '_>, row: &AgentRow) -> Result<bool> {
    let sql = "select passed from agent_test where definition = $1 and digest = $2 and strict = 1 order by at desc, id desc limit 1";
    let found = cx.tx.optional(sql, args![row.id, row.digest])?;
    Ok(found.map(|row| row.get::<i64>(0)).transpose()? == Some(1))
}

/// A test that was kept.
#[derive(Serialize, JsonSchema)]
pub(super) struct LastTest {
    /// Whether it passed.
    passed: bool,
    /// Whether any act that a rule forbids would have failed it.
    strict: bool,
    /// Whether it was of exactly what the agent is now.
    current: bool,
    /// When.
    at: String,
}

/// The newest test of what the agent is now; if there is none, the newest of what it was before.
pub(super) fn newest(cx: &mut Cx<'_, '_>, row: &AgentRow) -> Result<Option<LastTest>> {
    let now = "select passed, strict, at from agent_test where definition = $1 and digest = $2 order by at desc, id desc limit 1";
    let before = "select passed, strict, at from agent_test where definition = $1 order by at desc, id desc limit 1";
    let (found, current) = match cx.tx.optional(now, args![row.id, row.digest])? {
        Some(found) => (Some(found), true),
        None => (cx.tx.optional(before, args![row.id])?, false),
    };
    let shown = |found: &deskmate_db::Row| -> Result<LastTest> {
        Ok(LastTest { passed: found.get::<i64>(0)? == 1, strict: found.get::<i64>(1)? == 1, current, at: format_time(found.get(2)?) })
    };
    found.as_ref().map(shown).transpose()
}

pub(super) fn test(cx: &mut Cx<'_, '_>, input: TestAgent) -> Result<AgentTested> {
    guard::not_from_a_run(cx)?;
    let row = rows::find(cx, &input.agent_id)?;
    guard::maker_or_person(cx, &row)?;
    check_text("scenario", &input.scenario, sentence::DESCRIPTION_BYTES_MAX)?;
    if input.scenario.trim().is_empty() {
        return Err(Error::invalid("scenario", "must say what is tried"));
    }
    check_text("mockData", &Value::Object(input.mock_data.clone()).to_string(), CONTENT_BYTES_MAX)?;
    let given = started_with(&input)?;
    if !input.dry_run {
        return for_real(cx, &row, &input, given);
    }
    if cx.actor.is_agent()
        && let Some(held) = meter::gauge(cx, &cx.actor.id.clone(), gate::DOMAIN)?.held
    {
        return Err(held.error());
    }
    let Runner::Steps { steps } = &row.definition.runner else { return of_program(cx, &row, &input) };
    check_mocks(steps, &input.mock_data)?;
    let mut trial = Trial::new(&row, &input.mock_data, given, cx.now());
    for step in steps {
        if !trial.step(cx, step)? {
            break;
        }
    }
    let violations: Vec<String> = trial.violations.iter().map(|(said, _)| said.clone()).collect();
    let worst = trial.violations.iter().any(|(_, severity)| *severity == Severity::Critical.name());
    let failed = trial.used_up || trial.steps.iter().any(|tried| tried.state == "failed" && tried.error.is_some() && !tried.is_let_go(steps));
    let passed = !failed && !steps.is_empty() && if input.strict { violations.is_empty() } else { !worst };
    // An agent that tries what is forbidden asks where the bounds are, like with any other question.
    if let Some((act, decision)) = trial.denied.take().filter(|_| cx.actor.is_agent()) {
        request::questioned(cx, &Requester::of(&cx.actor), &act, &decision)?;
    }
    let estimate = estimate(cx, &row, &trial)?;
    let not_done = not_done(&input.scenario, &trial)?;
    let id = cx.new_id();
    let mut out = AgentTested {
        message: String::new(),
        test_id: id.clone(),
        agent_id: row.id.clone(),
        digest: hex(&row.digest),
        passed: Some(passed),
        run_id: None,
        steps: trial.steps,
        more_acts: trial.more,
        held: trial.held,
        acts: trial.acts,
        violations,
        not_done,
        estimate: Some(estimate),
        at: format_time(cx.now()),
    };
    out.message = told(&row.agent, &out, input.strict);
    let result = json!({ "violations": out.violations, "steps": out.steps, "held": out.held });
    let by = (cx.actor.kind.name().to_owned(), cx.actor.id.clone());
    keep(cx, &row, Came { id, by, scenario: &input.scenario, strict: input.strict, passed, violations: out.violations.len(), result })?;
    Ok(out)
}

/// What came of a test.
struct Came<'t> {
    id: String,
    /// Who asked for it: kind and id.
    by: (String, String),
    scenario: &'t str,
    strict: bool,
    passed: bool,
    violations: usize,
    result: Value,
}

/// Keeps what came of a test of what the agent is, and tells the record.
fn keep(cx: &mut Cx<'_, '_>, row: &AgentRow, came: Came<'_>) -> Result<()> {
    cx.tx.execute(
        "insert into agent_test (id, definition, digest, at, tester_kind, tester, scenario, strict, passed, result) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        args![
            came.id,
            row.id,
            row.digest,
            cx.now(),
            came.by.0,
            came.by.1,
            redact::text(came.scenario).text,
            i64::from(came.strict),
            i64::from(came.passed),
            came.result.to_string()
        ],
    )?;
    let event = Event::new(TESTED, row.subject())
        .fact("id", row.id.as_str())
        .fact("digest", hex(&row.digest))
        .fact("passed", came.passed)
        .fact("strict", came.strict)
        .fact("violations", came.violations);
    cx.emit(event.payload(json!({ "scenario": came.scenario })).audience([row.agent.as_str(), came.by.1.as_str()]))
}

/// What a run of a program's own test is started with.
#[derive(Serialize, Deserialize)]
pub(super) struct OwnTest {
    /// The digest of what is tested.
    digest: String,
    scenario: String,
    tester_kind: String,
    tester: String,
}

impl OwnTest {
    pub(super) fn of(cx: &Cx<'_, '_>, row: &AgentRow, scenario: &str) -> Self {
        Self { digest: hex(&row.digest), scenario: redact::text(scenario).text, tester_kind: cx.actor.kind.name().to_owned(), tester: cx.actor.id.clone() }
    }
}

/// Runs the own test of a program: what a program does shows only when it runs.
fn of_program(cx: &mut Cx<'_, '_>, row: &AgentRow, input: &TestAgent) -> Result<AgentTested> {
    if !input.mock_data.is_empty() || !input.strict {
        let what = if input.strict { "mockData" } else { "strict" };
        return Err(Error::invalid(what, "is for steps; a program's own test is run as it is, and passes or fails"));
    }
    let made = run::start_test(cx, row, &input.scenario)?;
    let message = format!(
        "{} is tried by its own test, without the network and without a token, in run {}; agents_wait_for_run tells whether it passed",
        row.agent, made.id
    );
    Ok(AgentTested::begun(cx, row, made.id, message))
}

/// Keeps what came of a program's own test, now that its run has ended. One that was stopped shows nothing, and neither does one of what the
/// agent was before.
pub(super) fn ended(cx: &mut Cx<'_, '_>, run: &RunRow) -> Result<()> {
    let passed = match run.state {
        RunState::Done => true,
        RunState::Failed => false,
        _ => return Ok(()),
    };
    let Some(own) = run.input.as_deref().and_then(|text| serde_json::from_str::<OwnTest>(text).ok()) else { return Ok(()) };
    let Some(row) = rows::by_id(cx.tx, &run.definition)?.filter(|row| hex(&row.digest) == own.digest) else { return Ok(()) };
    let result = json!({ "run": run.id, "error": run.error });
    let came = Came { id: run.id.clone(), by: (own.tester_kind, own.tester), scenario: &own.scenario, strict: true, passed, violations: 0, result };
    keep(cx, &row, came)
}

/// What the run would be started with.
fn started_with(input: &TestAgent) -> Result<Value> {
    let mut given = match input.mock_data.get("input") {
        None => Map::new(),
        Some(Value::Object(given)) => given.clone(),
        Some(_) => return Err(Error::invalid("mockData", "input must be an object")),
    };
    given.entry("scenario").or_insert_with(|| Value::from(input.scenario.clone()));
    Ok(Value::Object(given))
}

/// Runs a deployed agent once, as a trial.
fn for_real(cx: &mut Cx<'_, '_>, row: &AgentRow, input: &TestAgent, given: Value) -> Result<AgentTested> {
    if !input.strict {
        return Err(Error::invalid("strict", "is for dry runs: what runs for real does what the desk lets it do"));
    }
    if input.mock_data.keys().any(|name| name != "input") {
        return Err(Error::invalid("mockData", "stands in for steps only in a dry run; for a real one give `input` alone"));
    }
    if row.status != Status::Deployed {
        return Err(
            Error::conflict(format!("{} is {}, and only what is deployed runs for real", row.agent, row.status.name())).hint("deploy it, or leave dryRun out")
        );
    }
    let made = run::make(cx, row, Cause::Trial, None, None, given)?;
    let message = format!("{} runs for real as a trial, run {}; agents_wait_for_run tells what comes of it", row.agent, made.id);
    Ok(AgentTested::begun(cx, row, made.id, message))
}

impl AgentTested {
    /// A run that has begun, of which nothing is known yet.
    fn begun(cx: &Cx<'_, '_>, row: &AgentRow, run: String, message: String) -> Self {
        Self {
            message,
            test_id: run.clone(),
            agent_id: row.id.clone(),
            digest: hex(&row.digest),
            passed: None,
            run_id: Some(run),
            steps: Vec::new(),
            acts: Vec::new(),
            more_acts: 0,
            violations: Vec::new(),
            held: 0,
            not_done: Vec::new(),
            estimate: None,
            at: format_time(cx.now()),
        }
    }
}

/// Mock data for what is no step would have no effect, so it is refused.
fn check_mocks(steps: &[Step], mocks: &Map<String, Value>) -> Result<()> {
    for name in mocks.keys().filter(|name| !matches!(name.as_str(), "input" | "last")) {
        if !steps.iter().any(|step| step.id == *name || step.does == *name) {
            let known: Vec<&str> = steps.iter().map(|step| step.id.as_str()).collect();
            return Err(Error::invalid("mockData", format!("{name:?} is no step and no operation of it; steps are {}", known.join(", "))));
        }
    }
    Ok(())
}

impl Tried {
    /// Whether the step goes on when it fails.
    fn is_let_go(&self, steps: &[Step]) -> bool {
        steps.iter().any(|step| step.id == self.step && step.on_error == OnError::GoOn)
    }
}

/// A test under way.
struct Trial<'t> {
    who: Requester,
    scope: Scope,
    mocks: &'t Map<String, Value>,
    steps: Vec<Tried>,
    acts: Vec<Intended>,
    more: usize,
    /// Acts that would wait for a person.
    held: usize,
    /// How many calls a run may make.
    most: i64,
    calls: i64,
    cost: i64,
    /// How many bytes of mock data stood in for answers.
    answered: usize,
    /// Whether it would call more often than it may: that ends a run, also where a step may fail.
    used_up: bool,
    /// What is forbidden, with the severity of the rule.
    violations: Vec<(String, String)>,
    /// Operations whose answers nobody gave.
    unmocked: Vec<String>,
    /// The first act that would be denied.
    denied: Option<(Act, Decision)>,
}

impl<'t> Trial<'t> {
    fn new(row: &AgentRow, mocks: &'t Map<String, Value>, given: Value, now: i64) -> Self {
        let mut scope = Scope::default();
        scope.put("params", Value::Object(row.definition.params.clone()));
        scope.put("input", given);
        scope.put("last", mocks.get("last").cloned().unwrap_or(Value::Null));
        scope.put("run", work::told("test", &row.agent, now, &row.definition));
        Self {
            who: Requester::agent(row.agent.clone(), true),
            scope,
            mocks,
            steps: Vec::new(),
            acts: Vec::new(),
            more: 0,
            held: 0,
            most: i64::from(row.definition.budget.calls),
            calls: 0,
            cost: 0,
            answered: 0,
            used_up: false,
            violations: Vec::new(),
            unmocked: Vec::new(),
            denied: None,
        }
    }

    /// Tries a step, and says whether the next one begins.
    fn step(&mut self, cx: &mut Cx<'_, '_>, step: &Step) -> Result<bool> {
        let mut tried = Tried { step: step.id.clone(), does: step.does.clone(), state: "done", times: 0, mocked: false, error: None };
        let came = self.tried(cx, step, &mut tried)?;
        let goes_on = match came {
            Ok(value) => {
                self.scope.put_step(&step.id, value);
                step.does != step::STOP || tried.state == "left_out"
            }
            Err(why) => {
                let missing =
                    if self.unmocked.is_empty() { String::new() } else { format!("; nothing was given in mockData for {}", self.unmocked.join(", ")) };
                tried.state = "failed";
                tried.error = Some(format!("{why}{missing}"));
                self.scope.put_step(&step.id, json!({ "error": why }));
                step.on_error == OnError::GoOn && !self.used_up
            }
        };
        self.steps.push(tried);
        Ok(goes_on)
    }

    fn tried(&mut self, cx: &mut Cx<'_, '_>, step: &Step, tried: &mut Tried) -> Result<std::result::Result<Value, String>> {
        let scope = self.scope.clone();
        match step.when.as_ref().map(|when| when.holds(&scope)) {
            Some(Ok(false)) => {
                tried.state = "left_out";
                return Ok(Ok(json!({ "left_out": true })));
            }
            Some(Err(why)) => return Ok(Err(why)),
            Some(Ok(true)) | None => {}
        }
        let Some(each) = &step.for_each else { return self.once(cx, step, &scope, tried) };
        let items = match value::render(each, &scope) {
            Ok(Value::Array(items)) if items.len() <= AGENT_ITEMS_MAX => items,
            Ok(Value::Array(_)) => return Ok(Err(format!("for_each has more than {AGENT_ITEMS_MAX} items"))),
            Ok(other) => return Ok(Err(format!("for_each must be a list, and is {other}"))),
            Err(why) => return Ok(Err(why)),
        };
        let mut came = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let own = scope.with_numbered(item, index);
            match self.once(cx, step, &own, tried)? {
                Ok(value) => came.push(value),
                Err(why) if step.on_error == OnError::GoOn && !self.used_up => came.push(json!({ "error": why, "item": item })),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(json!({ "count": came.len(), "items": came })))
    }

    fn once(&mut self, cx: &mut Cx<'_, '_>, step: &Step, scope: &Scope, tried: &mut Tried) -> Result<std::result::Result<Value, String>> {
        let with = match step.given(scope) {
            Ok(with) => with,
            Err(why) => return Ok(Err(why)),
        };
        tried.times += 1;
        if step::is_built_in(&step.does) {
            return Ok(step::compute(&step.does, &with, scope));
        }
        if self.calls >= self.most.min(ACTS_MAX) {
            self.used_up = true;
            let budget = format!("its budget of {} calls is used up", self.most);
            return Ok(Err(if self.most > ACTS_MAX { format!("a test decides {ACTS_MAX} acts, and this would be more") } else { budget }));
        }
        self.calls += 1;
        if let Err(why) = self.intend(cx, step, Value::Object(with))? {
            return Ok(Err(why));
        }
        let mock = self.mocks.get(&step.id).or_else(|| self.mocks.get(&step.does));
        tried.mocked = mock.is_some();
        self.answered = self.answered.saturating_add(mock.map_or(0, bytes_of));
        if self.answered > ANSWERS_BYTES_MAX {
            self.used_up = true;
            return Ok(Err(format!("what mockData gives comes to more than {} MB; let it give less, or to fewer items", ANSWERS_BYTES_MAX >> 20)));
        }
        if mock.is_none() && !self.unmocked.contains(&step.id) {
            self.unmocked.push(step.id.clone());
        }
        Ok(Ok(mock.cloned().unwrap_or(Value::Object(Map::new()))))
    }

    /// Decides an act that is intended, and keeps what was answered.
    fn intend(&mut self, cx: &mut Cx<'_, '_>, step: &Step, with: Value) -> Result<std::result::Result<(), String>> {
        let (act, decision, answer) = match foreseen(cx, &self.who, &step.does, &with) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Ok(())),
            // What is refused here would be refused then; anything else is the desk's own trouble.
            Err(error) if matches!(error.code, Code::Invalid | Code::NotFound | Code::Forbidden | Code::Conflict) => return Ok(Err(error.to_string())),
            Err(error) => return Err(error),
        };
        self.cost = self.cost.saturating_add(act.cost);
        if answer == Mode::Deny && self.denied.is_none() {
            self.denied = Some((act.clone(), decision.clone()));
        }
        for hit in decision.hits.iter().filter(|hit| hit.effect == Effect::Deny) {
            let said = format!("{}: {} ({}): {}", step.id, hit.rule_id, hit.policy, hit.reason);
            self.violates(said, &hit.severity);
        }
        if answer == Mode::Deny && !decision.hits.iter().any(|hit| hit.effect == Effect::Deny) {
            let why = decision.reasons.first().map(|reason| reason.text.clone()).unwrap_or_default();
            self.violates(format!("{}: {why}", step.id), Severity::High.name());
        }
        self.held += usize::from(matches!(answer, Mode::Suggest | Mode::Escalate));
        if self.acts.len() >= ACTS_LISTED {
            self.more += 1;
            return Ok(Ok(()));
        }
        self.acts.push(Intended {
            step: step.id.clone(),
            operation: step.does.clone(),
            kind: act.kind,
            domain: act.domain,
            with: redact::value(&with).value,
            answer,
            rules: decision.hits.iter().map(|hit| format!("{}/{}: {}", hit.policy, hit.rule_id, hit.reason)).collect(),
        });
        Ok(Ok(()))
    }

    fn violates(&mut self, said: String, severity: &str) {
        if !self.violations.iter().any(|(known, _)| *known == said) {
            self.violations.push((said, severity.to_owned()));
        }
    }
}

/// What a call would be answered; `None` for what only reads the desk itself.
fn foreseen(cx: &mut Cx<'_, '_>, who: &Requester, operation: &str, with: &Value) -> Result<Option<(Act, Decision, Mode)>> {
    let text = |name: &str| with.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some((toolset, name, effect)) = OPERATIONS.get(operation).copied() else {
        return Err(Error::not_found(format!("there is no operation {operation}")));
    };
    match (toolset, name) {
        (Toolset::Gateway, "call") => {
            let arguments = with.get("arguments").cloned().unwrap_or_else(|| json!({}));
            let (act, decision) = gateway::foresee(cx, text("mount"), text("tool"), arguments, who)?;
            let mode = decision.mode;
            Ok(Some((act, decision, mode)))
        }
        (
            Toolset::Workspace,
            "list_roots" | "wait_for_scan" | "search_past_actions" | "execute_plan" | "undo_plan" | "get_plan" | "list_plans" | "wait_for_plan",
        ) => Ok(None),
        (Toolset::Workspace, _) => {
            let (act, decision) = workspace::foresee(cx, name, with, who)?;
            let is_look = workspace::is_look(&act.kind);
            let stops = decision.hits.iter().any(|hit| matches!(hit.effect, Effect::Deny | Effect::RequireApproval)) || decision.mode == Mode::Deny;
            // A look waits for nobody: it is open, or it is refused.
            let mode = match (is_look, stops) {
                (true, true) => Mode::Deny,
                (true, false) => Mode::Act,
                (false, _) => decision.mode,
            };
            Ok(Some((act, decision, mode)))
        }
        (Toolset::Cowork, "cowork_propose") => {
            let (act, decision) = cowork::foresee(cx, with.clone(), who)?;
            let mode = decision.mode;
            Ok(Some((act, decision, mode)))
        }
        _ if gate::is_asked(toolset, name, effect) => {
            let act = gate::act_of(toolset, name, with);
            let decision = request::judge(cx, &act, who, false)?;
            let mode = gate::by_rules(&decision);
            Ok(Some((act, decision, mode)))
        }
        _ => Ok(None),
    }
}

/// What a run would use up, of past runs; it is said if there are none.
fn estimate(cx: &mut Cx<'_, '_>, row: &AgentRow, trial: &Trial<'_>) -> Result<Estimate> {
    let sql = "select started_at, finished_at, calls from agent_run where definition = $1 and state = $2 and started_at is not null and finished_at is not null \
               order by created_at desc, id desc limit $3";
    let rows = cx.tx.query(sql, args![row.id, RunState::Done.name(), RUNS_LOOKED_AT])?;
    let (mut micros, mut calls) = (Vec::new(), Vec::new());
    for row in &rows {
        micros.push(row.get::<i64>(1)?.saturating_sub(row.get::<i64>(0)?));
        calls.push(row.get::<i64>(2)?);
    }
    let middle = |values: &mut Vec<i64>| {
        values.sort_unstable();
        values.get(values.len() / 2).copied()
    };
    #[expect(clippy::cast_precision_loss, reason = "seconds of a run, and costs of a few acts")]
    let (seconds, cost) = (middle(&mut micros).map(|micros| micros as f64 / 1e6), (trial.cost > 0).then_some(trial.cost as f64 / 1e6));
    Ok(Estimate {
        past_runs: rows.len(),
        seconds,
        calls: middle(&mut calls).unwrap_or(trial.calls),
        cost,
        from: match rows.len() {
            0 => "it has not run yet, so how long it takes is not known; the calls are those of this test".to_owned(),
            count => format!("the middle of its newest {count} runs that were done"),
        },
    })
}

/// Things that the scenario speaks of and that no step of the agent does.
fn not_done(scenario: &str, trial: &Trial<'_>) -> Result<Vec<String>> {
    let sketch = sentence::sketch(scenario, &sentence::Given::default(), "UTC")?;
    let words = |text: &str| text.split(|letter: char| !letter.is_ascii_alphanumeric()).map(str::to_lowercase).collect::<Vec<_>>();
    let does: Vec<String> = trial.steps.iter().flat_map(|tried| [words(&tried.does), words(&tried.step)].concat()).collect();
    let missing = sketch.steps.iter().filter(|step| !words(&step.kind).iter().any(|word| word.len() > 3 && does.contains(word)));
    Ok(missing.map(|step| format!("{} (\"{}\")", step.kind.replace('_', " "), step.words)).collect())
}

fn told(agent: &str, out: &AgentTested, strict: bool) -> String {
    let verdict = if out.passed == Some(true) { "PASSED" } else { "FAILED" };
    let mode = if strict { "strict" } else { "not strict" };
    let mut lines = vec![format!(
        "{agent}: {verdict} ({mode}). {} acts were decided, {} would wait for a person. Nothing had an effect.",
        out.acts.len() + out.more_acts,
        out.held
    )];
    lines.extend(out.steps.iter().map(|tried| match &tried.error {
        Some(why) => format!("{}: failed: {why}", tried.step),
        None => format!("{}: {} ({} times{})", tried.step, tried.state, tried.times, if tried.mocked { ", with mock data" } else { "" }),
    }));
    lines.extend(out.violations.iter().map(|violation| format!("Forbidden: {violation}")));
    if out.more_acts > 0 {
        lines.push(format!("{} of the acts are not listed.", out.more_acts));
    }
    lines.extend(out.not_done.iter().map(|missing| format!("The scenario speaks of it, and no step does it: {missing}")));
    if let Some(estimate) = &out.estimate {
        lines.push(match estimate.seconds {
            Some(seconds) => format!("A run takes about {seconds:.1} s and {} calls: {}.", estimate.calls, estimate.from),
            None => format!("{} calls: {}.", estimate.calls, estimate.from),
        });
    }
    lines.join("\n")
}
