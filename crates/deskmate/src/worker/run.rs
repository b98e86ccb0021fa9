//! Doing a run of an agent, step by step. Every step that reaches beyond the run is an operation, called as the agent and decided
//! like any other call. Where it was is kept after every step; a step that was under way when a server went away is asked for
//! again under the same key, so that it happens once.

use std::time::{Duration, Instant};

use deskmate_core::agents::step::{self, OnError, Step};
use deskmate_core::agents::value::{self, Scope};
use deskmate_core::agents::{self, Begun, INTERRUPTED, IfInterrupted, RunState, Runner};
use deskmate_core::call::{Call, Credential, Cx, Outcome as Answered, Surface};
use deskmate_core::job::{Outcome, Progress};
use deskmate_core::limits::AGENT_ITEMS_MAX;
use deskmate_core::{Code, Error, Result, redact};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Running, process};

/// How often it is looked whether a run has to stop.
const LOOK: Duration = Duration::from_millis(200);

/// How often it is looked whether a person has decided about a call, or whether a store that was away is back.
const HELD: Duration = Duration::from_secs(1);

/// How often a loop tells how far it is.
const KEPT: Duration = Duration::from_secs(1);

/// Which step it is, of how many.
#[derive(Clone, Copy)]
struct Part {
    number: usize,
    of: usize,
}

impl Part {
    /// How far a run is once so many items of this step are behind it.
    fn percent(self, items: usize, of: usize) -> u8 {
        u8::try_from((self.number * of + items) * 100 / (self.of * of).max(1)).unwrap_or(100)
    }
}

/// Where a run is.
#[derive(Clone, Default, Serialize, Deserialize)]
struct At {
    /// How many steps are behind it.
    steps: usize,
    /// How many items of a loop are behind it, and what came of them.
    items: Vec<Value>,
    /// How often the step that is under way has failed.
    #[serde(default)]
    tries: u32,
    /// What came of the steps.
    values: Map<String, Value>,
    /// Calls of operations.
    calls: u32,
    /// Milliseconds of work, without waiting for people.
    worked: u64,
    /// Bytes that were logged.
    logged: u64,
    /// The attempt with which it began, of a run that began anew: what it asks for then is asked for anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    anew: Option<i64>,
}

impl At {
    /// Where a run goes on, or begins.
    fn of(running: &Running, begun: &Begun) -> Self {
        let claimed = &running.claimed;
        if begun.again && begun.definition.when_interrupted() == IfInterrupted::Again {
            return Self { anew: Some(claimed.attempt), calls: u32::try_from(begun.calls).unwrap_or(u32::MAX), ..Self::default() };
        }
        claimed.step.clone().and_then(|step| serde_json::from_value(step).ok()).unwrap_or_default()
    }
}

/// Why a run ends before its last step.
enum Stop {
    /// Somebody asked for it.
    Asked,
    /// A step failed.
    Failed(String),
    /// A budget is used up, so no other step is done either.
    UsedUp(String),
    /// A worker before this one left it in the middle, and it is not to go on.
    Interrupted,
}

struct Run<'r> {
    running: &'r Running,
    begun: &'r Begun,
    at: At,
    lines: Vec<(String, String)>,
    /// When it was written down last where the run is.
    kept: Instant,
}

pub(super) async fn run(running: &Running) -> Result<Outcome> {
    let desk = &running.app.desk;
    let id = running.claimed.input.get("run").and_then(Value::as_str).ok_or_else(|| Error::invalid("run", "is not named"))?.to_owned();
    let (asked, own) = (id.clone(), running.clone());
    let first = move |cx: &mut Cx<'_, '_>| {
        own.held(cx)?;
        agents::begin(cx, &asked)
    };
    let Some(begun) = desk.act(Surface::System, first).await? else {
        return Ok(Outcome::Done(json!({ "run": id })));
    };
    if begun.definition.runner.is_program() {
        return process::run(running, &begun).await;
    }
    let mut run = Run { running, begun: &begun, at: At::of(running, &begun), lines: Vec::new(), kept: Instant::now() };
    let came = match begun.definition.when_interrupted() {
        IfInterrupted::End if begun.again => Err(Stop::Interrupted),
        _ => run.steps().await?,
    };
    let (lines, calls) = (std::mem::take(&mut run.lines), i64::from(run.at.calls));
    let (state, came) = match came {
        Ok(value) => (RunState::Done, Ok(value)),
        Err(Stop::Asked) => (RunState::Stopped, Err("somebody stopped it".to_owned())),
        Err(Stop::Interrupted) => (RunState::Ambiguous, Err(INTERRUPTED.to_owned())),
        // The job tells why too: neither keeps what is secret or personal.
        Err(Stop::Failed(why) | Stop::UsedUp(why)) => (RunState::Failed, Err(redact::text(&why).text)),
    };
    let (ended, failed, own) = (id.clone(), came.clone().err(), running.clone());
    desk.act(Surface::System, move |cx| {
        own.held(cx)?;
        agents::said(cx, &ended, &lines, calls)?;
        agents::end(cx, &ended, state, came.clone(), calls)
    })
    .await?;
    Ok(match (state, failed) {
        (RunState::Stopped, _) => Outcome::Cancelled,
        (RunState::Ambiguous, _) => Outcome::Ambiguous { what: INTERRUPTED.to_owned() },
        (_, Some(error)) => Outcome::Failed { error, retry: false },
        _ => Outcome::Done(json!({ "run": id })),
    })
}

impl Run<'_> {
    /// Does the steps that are left. Outside it is an error of the desk's own, inside one of the run's.
    async fn steps(&mut self) -> Result<std::result::Result<Value, Stop>> {
        let Runner::Steps { steps } = &self.begun.definition.runner else { return Ok(Err(Stop::Failed("it has no steps".to_owned()))) };
        let mut last = Value::Null;
        for (number, step) in steps.iter().enumerate().skip(self.at.steps) {
            if self.running.is_cancelled() {
                return Ok(Err(Stop::Asked));
            }
            let part = Part { number, of: steps.len().max(1) };
            let came = match self.step(step, part).await? {
                Ok(value) => value,
                Err(Stop::Failed(why)) if step.on_error == OnError::GoOn => {
                    self.log(&step.id, &format!("failed: {why}"));
                    json!({ "error": why })
                }
                Err(Stop::Failed(why) | Stop::UsedUp(why)) => return Ok(Err(Stop::Failed(format!("{}: {why}", step.id)))),
                Err(stop) => return Ok(Err(stop)),
            };
            let ends = step.does == step::STOP && came.get("stopped").is_some();
            last = came.clone();
            self.at.values.insert(step.id.clone(), came);
            self.at.steps = number + 1;
            self.at.items.clear();
            let used = step::used_behind(steps, number + 1);
            self.at.values.retain(|id, _| used.contains(id));
            if let Err(stop) = self.keep(Some(Progress { percent: Some(part.percent(1, 1)), text: Some(step.id.clone()) })).await? {
                return Ok(Err(stop));
            }
            if ends {
                self.log(&step.id, &format!("ends here: {}", last.get("text").and_then(Value::as_str).unwrap_or_default()));
                break;
            }
        }
        Ok(Ok(last))
    }

    /// Writes down where the run is, and what it said.
    async fn keep(&mut self, progress: Option<Progress>) -> Result<std::result::Result<(), Stop>> {
        let (id, lines, calls) = (self.begun.run.clone(), std::mem::take(&mut self.lines), i64::from(self.at.calls));
        let own = self.running.clone();
        let say = move |cx: &mut Cx<'_, '_>| {
            own.held(cx)?;
            agents::said(cx, &id, &lines, calls)
        };
        self.running.app.desk.act(Surface::System, say).await?;
        self.kept = Instant::now();
        let at = serde_json::to_value(&self.at).map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        match self.running.beat_at(progress, Some(at)).await {
            Err(error) if error.code == Code::Invalid => Ok(Err(Stop::Failed("what its steps hold grows beyond what can be kept".to_owned()))),
            done => done.map(Ok),
        }
    }

    /// The same within a loop, no more often than once in [`KEPT`]. What a loop holds may be more than can be kept and be needed by no step
    /// behind it: then a further attempt goes on where the loop began.
    async fn keep_in_loop(&mut self, progress: Progress) -> Result<std::result::Result<(), Stop>> {
        if self.kept.elapsed() < KEPT {
            return Ok(Ok(()));
        }
        match self.keep(Some(progress.clone())).await? {
            Err(Stop::Failed(_)) => self.running.beat(Some(progress)).await.map(Ok),
            kept => Ok(kept),
        }
    }

    fn log(&mut self, source: &str, text: &str) {
        let most = u64::from(self.begun.definition.budget.log_bytes);
        let size = text.len() as u64;
        if self.at.logged > most {
            return;
        }
        self.at.logged += size;
        let text = if self.at.logged > most { "what it says from here on is left out: its budget for logs is used up".to_owned() } else { text.to_owned() };
        self.lines.push((source.to_owned(), text));
    }

    fn scope(&self) -> Scope {
        let mut scope = Scope::default();
        scope.put("params", Value::Object(self.begun.definition.params.clone()));
        scope.put("input", self.begun.input.clone());
        scope.put("last", self.begun.last.clone());
        scope.put("run", agents::told(&self.begun.run, &self.begun.agent, self.begun.started_at, &self.begun.definition));
        for (id, value) in &self.at.values {
            scope.put_step(id, value.clone());
        }
        scope
    }

    async fn step(&mut self, step: &Step, part: Part) -> Result<std::result::Result<Value, Stop>> {
        let scope = self.scope();
        if let Some(when) = &step.when {
            match when.holds(&scope) {
                Ok(true) => {}
                Ok(false) => {
                    self.log(&step.id, "left out, because its condition does not hold");
                    return Ok(Ok(json!({ "left_out": true })));
                }
                Err(why) => return Ok(Err(Stop::Failed(why))),
            }
        }
        let Some(each) = &step.for_each else { return self.once(step, &scope, 0).await };
        let items = match value::render(each, &scope) {
            Ok(Value::Array(items)) if items.len() <= AGENT_ITEMS_MAX => items,
            Ok(Value::Array(items)) => return Ok(Err(Stop::Failed(format!("{} items are more than the {AGENT_ITEMS_MAX} that a step takes", items.len())))),
            Ok(other) => return Ok(Err(Stop::Failed(format!("for_each must be a list, and is {other}")))),
            Err(why) => return Ok(Err(Stop::Failed(why))),
        };
        for (index, item) in items.iter().enumerate().skip(self.at.items.len()) {
            if self.running.is_cancelled() {
                return Ok(Err(Stop::Asked));
            }
            let own = scope.with_numbered(item, index);
            match self.once(step, &own, index).await? {
                Ok(value) => self.at.items.push(value),
                Err(Stop::Failed(why)) if step.on_error == OnError::GoOn => self.at.items.push(json!({ "error": why, "item": item })),
                Err(ended) => return Ok(Err(ended)),
            }
            let text = format!("{}: {} of {}", step.id, index + 1, items.len());
            if let Err(stop) = self.keep_in_loop(Progress { percent: Some(part.percent(index + 1, items.len())), text: Some(text) }).await? {
                return Ok(Err(stop));
            }
        }
        Ok(Ok(json!({ "count": self.at.items.len(), "items": self.at.items })))
    }

    /// A step for one item, tried again as it says.
    async fn once(&mut self, step: &Step, scope: &Scope, index: usize) -> Result<std::result::Result<Value, Stop>> {
        let with = match step.given(scope) {
            Ok(with) => with,
            Err(why) => return Ok(Err(Stop::Failed(why))),
        };
        if step::is_built_in(&step.does) {
            let came = step::compute(&step.does, &with, scope);
            if let ("log", Ok(said)) = (step.does.as_str(), &came) {
                self.log(&step.id, said.get("text").and_then(Value::as_str).unwrap_or_default());
            }
            return Ok(came.map_err(Stop::Failed));
        }
        let mut wait = step.retry.map_or(0, |retry| retry.wait_seconds);
        let times = step.retry.map_or(0, |retry| retry.times);
        for _ in self.at.tries..=times {
            match self.operation(step, with.clone(), index).await? {
                Err((Stop::Failed(why), true)) if self.at.tries < times => {
                    self.at.tries += 1;
                    self.log(&step.id, &format!("is tried again in {wait} s: {why}"));
                    if let Err(stop) = self.keep(None).await? {
                        return Ok(Err(stop));
                    }
                    if let Err(stop) = self.wait_to_retry(wait, &why).await {
                        return Ok(Err(stop));
                    }
                    wait = wait.saturating_mul(2).min(3_600);
                }
                done => {
                    self.at.tries = 0;
                    return Ok(done.map_err(|(stop, _)| stop));
                }
            }
        }
        Ok(Err(Stop::Failed("it was tried in vain".to_owned())))
    }

    /// Waits before something is tried again. That is time of the run's own; where less is left, there is nothing to wait for.
    async fn wait_to_retry(&mut self, seconds: u32, why: &str) -> std::result::Result<(), Stop> {
        let (budget, wait) = (self.begun.definition.budget.seconds, u64::from(seconds) * 1_000);
        if self.at.worked.saturating_add(wait) > u64::from(budget) * 1_000 {
            return Err(Stop::UsedUp(format!("its budget of {budget} seconds is used up before it can be tried again: {why}")));
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait)) => {}
            () = self.asked_to_stop() => return Err(Stop::Asked),
        }
        self.at.worked += wait;
        Ok(())
    }

    /// Holds the run while its agent is paused, for as long as that takes: it is neither a call nor work, and others have its place.
    async fn while_paused(&mut self, source: &str) -> Result<std::result::Result<(), Stop>> {
        let mut told = false;
        loop {
            match self.running.is_paused(&self.begun.agent).await {
                Ok(false) => {
                    tokio::select! {
                        () = self.running.slot.take_back() => return Ok(Ok(())),
                        () = self.asked_to_stop() => return Ok(Err(Stop::Asked)),
                    }
                }
                Ok(true) if !told => {
                    told = true;
                    self.running.slot.lend();
                    self.log(source, "its agent is paused; the run waits until a person lets it go on");
                    if let Err(stop) = self.keep(None).await? {
                        return Ok(Err(stop));
                    }
                }
                Ok(true) => {}
                // Who cannot be asked has not said that it may go on.
                Err(error) if error.of_the_store => {}
                Err(error) => return Err(error),
            }
            tokio::select! {
                () = tokio::time::sleep(HELD) => {}
                () = self.asked_to_stop() => return Ok(Err(Stop::Asked)),
            }
        }
    }

    fn worked_since(&mut self, started: Instant) {
        self.at.worked += u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    }

    async fn asked_to_stop(&self) {
        while !self.running.is_cancelled() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Calls an operation as the agent, and waits for what it begins. The error says whether trying again can help.
    async fn operation(&mut self, step: &Step, mut with: Map<String, Value>, index: usize) -> Result<std::result::Result<Value, (Stop, bool)>> {
        // What failed for certain is asked for anew; what was under way is asked for under the key that it had.
        let again = if self.at.tries == 0 { String::new() } else { format!(":{}", self.at.tries) };
        let anew = self.at.anew.map(|attempt| format!("@{attempt}")).unwrap_or_default();
        let key = format!("run:{}{anew}:{}:{index}{again}", self.begun.run, step.id);
        let app = &self.running.app;
        let takes_key = app.desk.registry.get(&step.does).is_some_and(|op| op.input().pointer("/properties/idempotency_key").is_some());
        if takes_key {
            with.insert("idempotency_key".to_owned(), Value::from(key));
        }
        let (mut operation, mut input) = (step.does.clone(), Value::Object(with));
        loop {
            if self.running.is_cancelled() {
                return Ok(Err((Stop::Asked, false)));
            }
            if let Err(stop) = self.while_paused(&step.id).await? {
                return Ok(Err((stop, false)));
            }
            let budget = &self.begun.definition.budget;
            if self.at.calls >= budget.calls {
                return Ok(Err((Stop::UsedUp(format!("its budget of {} calls is used up", budget.calls)), false)));
            }
            if self.at.worked > u64::from(budget.seconds) * 1_000 {
                return Ok(Err((Stop::UsedUp(format!("its budget of {} seconds is used up", budget.seconds)), false)));
            }
            self.at.calls += 1;
            let started = Instant::now();
            let call =
                Call { credential: Credential::Run(self.begun.run.clone()), surface: Surface::System, operation: operation.clone(), input: input.clone() };
            // What only waits may be left in the middle; anything else is finished, so that what came of it is known.
            let only_waits = app.desk.registry.get(&operation).is_some_and(|op| op.waits);
            let answer = tokio::select! {
                answer = app.call(call) => answer,
                () = self.asked_to_stop(), if only_waits => return Ok(Err((Stop::Asked, false))),
            };
            let answer = match answer {
                Ok(answer) => answer.outcome,
                // The desk's own store was busy or away. It is asked for again under the same key, so it happens once.
                Err(error) if error.of_the_store => {
                    self.at.calls = self.at.calls.saturating_sub(1);
                    tokio::select! {
                        () = tokio::time::sleep(HELD) => {}
                        () = self.asked_to_stop() => return Ok(Err((Stop::Asked, false))),
                    }
                    self.worked_since(started);
                    continue;
                }
                Err(error) if error.used_up => return Ok(Err((Stop::UsedUp(error.message), false))),
                Err(error) => {
                    self.worked_since(started);
                    let passing = matches!(error.code, Code::Limited | Code::Unavailable);
                    return Ok(Err((Stop::Failed(error.to_string()), passing)));
                }
            };
            match answer {
                // A rule asks for a person first, or its agent was paused just now: waiting for people is neither a call nor work.
                Answered::NotYet(said) if matches!(state_of(&said), "held_for_person" | "paused") => {
                    self.at.calls = self.at.calls.saturating_sub(1);
                    tokio::select! {
                        () = tokio::time::sleep(HELD) => {}
                        () = self.asked_to_stop() => return Ok(Err((Stop::Asked, false))),
                    }
                }
                // Nor is what only waits: a person may take days.
                Answered::NotYet(said) if only_waits => {
                    self.at.calls = self.at.calls.saturating_sub(1);
                    // A call that was handed on waits for no person.
                    if state_of(&said) == "passed" {
                        self.worked_since(started);
                    }
                }
                Answered::NotYet(_) => {}
                Answered::Done(said) if said.get("refused_by_policy") == Some(&Value::Bool(true)) => {
                    let why = said.get("message").and_then(Value::as_str).unwrap_or_default();
                    return Ok(Err((Stop::Failed(format!("policy forbids it: {why}")), false)));
                }
                Answered::Done(said) if said.get("call_id").is_some() && matches!(state_of(&said), "held" | "passed") => {
                    if state_of(&said) == "passed" {
                        self.worked_since(started);
                    }
                    "gateway_result".clone_into(&mut operation);
                    input = json!({ "call_id": said.get("call_id") });
                }
                Answered::Done(said) => {
                    self.worked_since(started);
                    return Ok(if operation.starts_with("gateway_") { answered(said) } else { Ok(said) });
                }
            }
        }
    }
}

fn state_of(said: &Value) -> &str {
    said.get("state").and_then(Value::as_str).unwrap_or_default()
}

/// What came of a call of a mounted tool: only what was done, and came back, is what the step gives. Trying again can help only where
/// it is known that nothing was done.
fn answered(said: Value) -> std::result::Result<Value, (Stop, bool)> {
    let says = said.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    let text = said.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_default();
    let failed = |why: String, again: bool| Err((Stop::Failed(why), again));
    match state_of(&said) {
        "done" if said.get("result").is_some() => Ok(said),
        "done" => failed("it was done, and what came back was lost with the server that asked for it".to_owned(), false),
        "failed" => failed(if text.is_empty() { says } else { text.to_owned() }, true),
        "ambiguous" => failed(format!("{says}; it is not tried again"), false),
        "denied" | "rejected" => failed(format!("it was not done: {says}"), false),
        _ => Ok(said),
    }
}
