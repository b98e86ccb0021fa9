//! Doing a run of an agent that is a program: a command, or a client of a model. It has a folder of its own, a token of its own that
//! ends with it, and the bounds of its definition; what it says becomes the run's log, line by line.
//!
//! - [`place`]: its folder; [`confine`]: what it is given of the machine; [`client`]: how clients of models are started.
//! - [`lines`]: from what it writes to lines of a log.

mod client;
mod confine;
mod lines;
mod place;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deskmate_core::agents::value::{self, Scope};
use deskmate_core::agents::{self, Begun, Given, INTERRUPTED, IfInterrupted, Language, Reach, RunState, Runner};
use deskmate_core::call::{Actor, Cx, Surface};
use deskmate_core::job::{Outcome, Progress};
use deskmate_core::redact::{Known, Redactor};
use deskmate_core::{Code, Error, Result, secret};
use deskmate_hands::sandbox::{self, Ended, Spec, Stop};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Running;
use lines::Lines;
use place::Place;

/// How often what it said is written down, and it is looked whether it has to stop.
const LOOK: Duration = Duration::from_millis(200);
/// How often it is asked whether somebody wants it to stop.
const ASK: Duration = Duration::from_secs(1);

/// What the program of a run needs to be started.
struct Start {
    spec: Spec,
    input: Vec<u8>,
}

/// How a run of a program ended, before it is written down.
struct Ending {
    state: RunState,
    came: std::result::Result<Value, String>,
}

impl Ending {
    fn failed(why: impl Into<String>) -> Self {
        Self { state: RunState::Failed, came: Err(why.into()) }
    }

    /// The same without what the run was given and nobody else may read. What a program wrote last is its result, or why it failed.
    fn cleaned(self, redactor: &Redactor) -> Self {
        let came = match self.came {
            Ok(value) => Ok(redactor.own_value(value).value),
            Err(why) => Err(redactor.text(&why).text),
        };
        Self { came, ..self }
    }

    /// The kill switch ends a program: held where it is, it would go on holding what it has open elsewhere.
    fn paused() -> Self {
        Self { state: RunState::Stopped, came: Err("its agent was paused, and a program cannot wait".to_owned()) }
    }
}

pub(super) async fn run(running: &Running, begun: &Begun) -> Result<Outcome> {
    let (given, calls) = (given(&begun.definition.runner), begun.calls);
    if begun.again && begun.definition.when_interrupted() != IfInterrupted::Again {
        let ending = Ending { state: RunState::Ambiguous, came: Err(INTERRUPTED.to_owned()) };
        return finish(running, begun, Vec::new(), calls, ending).await;
    }
    let slot = loop {
        if let Some(place) = running.app.runs.place() {
            break place;
        }
        if running.is_cancelled() {
            let ending = Ending { state: RunState::Stopped, came: Err("somebody stopped it before it had begun".to_owned()) };
            return finish(running, begun, Vec::new(), calls, ending).await;
        }
        tokio::time::sleep(LOOK).await;
    };
    if running.is_paused(&begun.agent).await? {
        return finish(running, begun, Vec::new(), calls, Ending::paused()).await;
    }
    let (values, hidden) = match environment(running, given.filter(|_| !begun.test)).await {
        Ok(found) => found,
        Err(error) => return finish(running, begun, Vec::new(), calls, Ending::failed(error.to_string())).await,
    };
    let token = if begun.test {
        None
    } else {
        let (run, seconds, own) = (begun.run.clone(), begun.definition.budget.seconds, running.clone());
        let issue = move |cx: &mut Cx<'_, '_>| {
            own.held(cx)?;
            agents::credential(cx, &run, seconds)
        };
        Some(running.app.desk.act(Surface::System, issue).await?)
    };
    let known = Known::new(hidden.iter().map(String::as_str).chain(token.as_deref()))?;
    let redactor = Redactor::all().knowing(Arc::new(known));
    let counted = token.as_deref().map(|token| running.app.runs.begin(token, calls, begun.definition.budget.calls));
    let place = Place::make(running.app.hands.home(), &begun.run, running.app.desk.world.now());
    let started = match &place {
        Ok(place) => start(running, begun, place, values, token.as_deref()),
        Err(why) => Err(why.clone()),
    };
    let (lines, ending) = match (started, &place) {
        (Ok(start), Ok(place)) => follow(running, begun, start, place, counted.as_ref().map(|counted| &*counted.meter), redactor.clone()).await?,
        (Err(why), _) => (Vec::new(), Ending::failed(why)),
        (_, Err(why)) => (Vec::new(), Ending::failed(why.as_str())),
    };
    let calls = counted.as_ref().map_or(calls, |counted| counted.meter.calls());
    // Whoever learns that it has ended finds its folder as it stays.
    if let Ok(place) = place {
        drop(tokio::task::spawn_blocking(move || place.leave()).await);
    }
    let done = finish(running, begun, lines, calls, ending.cleaned(&redactor)).await;
    drop((counted, slot));
    done
}

fn given(runner: &Runner) -> Option<&Given> {
    match runner {
        Runner::Steps { .. } => None,
        Runner::Command { given, .. } | Runner::Cli { given, .. } => Some(given),
    }
}

/// The variables that it is given, with the values of secrets, and those values.
async fn environment(running: &Running, given: Option<&Given>) -> Result<(BTreeMap<String, String>, Vec<String>)> {
    let (desk, given) = (running.app.desk.clone(), given.map(|given| given.environment.clone()).unwrap_or_default());
    running
        .app
        .desk
        .db
        .read(move |tx| {
            let mut cx = desk.cx(tx, Actor::system(), Surface::System);
            let (mut values, mut hidden) = (BTreeMap::new(), Vec::new());
            for (name, text) in &given {
                let value = match secret::reference(text) {
                    Some(named) => {
                        let found = secret::resolve(&mut cx, named)?;
                        hidden.push(found.to_string());
                        found.to_string()
                    }
                    None => text.clone(),
                };
                values.insert(name.clone(), value);
            }
            Ok((values, hidden))
        })
        .await
}

/// Fills the folder, and says what is started there.
fn start(running: &Running, begun: &Begun, place: &Place, values: BTreeMap<String, String>, token: Option<&str>) -> std::result::Result<Start, String> {
    let url = running.app.own_url().ok_or("this server does not listen yet")?;
    let own = running.app.hands.own();
    let budget = &begun.definition.budget;
    let input = if begun.test { Value::Null } else { begun.input.clone() };
    let mut confined = match &begun.definition.runner {
        Runner::Steps { .. } => return Err("it has no program".to_owned()),
        Runner::Command { command, test, files, given, .. } => {
            place.fill(files, &input)?;
            let reach = if begun.test { Reach::None } else { given.network.unwrap_or(Reach::Desk) };
            let words = if begun.test { test } else { command };
            confine::Confined { spec: confine::command(place, words, given, own)?, reach, input: Vec::new(), client: false }
        }
        Runner::Cli { client, prompt, program, model, files, given } => {
            place.fill(files, &input)?;
            let token = token.ok_or("it has no token")?;
            let prompt = text(prompt, begun)?;
            let (spec, input) = client::start(*client, place, &client::Asked { prompt, program, model, given, own, url, token, cost: budget.cost })?;
            confine::Confined { spec, reach: given.network.unwrap_or(Reach::All), input, client: true }
        }
    };
    confined.bound(budget, url)?;
    let environment = &mut confined.spec.environment;
    environment.extend(values);
    if let Some(token) = token {
        for (name, value) in [("DESKMATE_URL", url), ("DESKMATE_TOKEN", token), ("DESKMATE_RUN", &begun.run)] {
            environment.insert(name.to_owned(), value.to_owned());
        }
    }
    Ok(Start { spec: confined.spec, input: confined.input })
}

/// A prompt with its values.
fn text(prompt: &str, begun: &Begun) -> std::result::Result<String, String> {
    let mut scope = Scope::default();
    scope.put("params", Value::Object(begun.definition.params.clone()));
    scope.put("input", begun.input.clone());
    match value::render(&Value::from(prompt), &scope)? {
        Value::String(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}

/// Ends a program with itself.
struct Ends(Stop);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.now();
    }
}

/// Starts the program on a thread, writes down what it says, and ends it when it has to end.
async fn follow(
    running: &Running,
    begun: &Begun,
    start: Start,
    place: &Place,
    meter: Option<&crate::runs::Meter>,
    redactor: Redactor,
) -> Result<(Vec<(String, String)>, Ending)> {
    let (runner, stop, lines) =
        (running.app.hands.runner(), Stop::new(), Arc::new(Mutex::new(Lines::new(begun.definition.budget.log_bytes, redactor.clone()))));
    // Also where nobody follows it any more, because the lease was lost.
    let _ends = Ends(stop.clone());
    let (ended, mut end) = oneshot::channel();
    let (kept, written) = (stop.clone(), Arc::clone(&lines));
    // A thread of its own, for which nobody waits when the server ends: then the lifeline ends the program.
    std::thread::spawn(move || {
        let said: sandbox::Said = Box::new(move |stream, bytes| written.lock().unwrap_or_else(PoisonError::into_inner).add(stream, bytes));
        ended.send(runner.follow(&start.spec, &start.input, &kept, said))
    });
    let take = |all: bool| lines.lock().unwrap_or_else(PoisonError::into_inner).take(all);
    let (begun_at, mut asked) = (Instant::now(), Instant::now());
    let (mut why, mut said) = (None, Vec::new());
    let outcome = loop {
        tokio::select! {
            outcome = &mut end => break outcome.map_err(|_| Error::new(Code::Internal, "a program was lost sight of"))?,
            () = tokio::time::sleep(LOOK) => {}
        }
        if why.is_none()
            && let Some(used_up) = meter.and_then(crate::runs::Meter::used_up)
        {
            why = Some(Ending::failed(used_up));
            stop.now();
        }
        if why.is_none() && (running.is_cancelled() || running.given_up.load(Ordering::Relaxed)) {
            why = Some(Ending { state: RunState::Stopped, came: Err("somebody stopped it".to_owned()) });
            stop.now();
        }
        said.extend(take(false));
        if !said.is_empty() {
            match write(running, begun, said.clone(), meter).await {
                Ok(()) => said.clear(),
                // A store that cannot be asked for a moment ends no program: the signs of life do, when the lease is over.
                Err(error) if error.code == Code::Unavailable => {}
                Err(error) => return Err(error),
            }
        }
        if asked.elapsed() >= ASK {
            asked = Instant::now();
            let percent = begun_at.elapsed().as_secs().saturating_mul(100) / u64::from(begun.definition.budget.seconds.max(1));
            let text = Some(format!("{} s, {} % of its time", begun_at.elapsed().as_secs(), percent.min(100)));
            match running.beat(Some(Progress { percent: None, text })).await {
                Err(error) if error.code != Code::Unavailable => return Err(error),
                _ => {}
            }
            match running.is_paused(&begun.agent).await {
                Ok(true) if why.is_none() => {
                    why = Some(Ending::paused());
                    stop.now();
                }
                Err(error) if error.code != Code::Unavailable => return Err(error),
                _ => {}
            }
        }
    };
    said.extend(take(true));
    // Also of one that ended by itself after it was told.
    let why = why.or_else(|| meter.and_then(crate::runs::Meter::used_up).map(Ending::failed));
    let ending = match (why, outcome) {
        (Some(why), Ok(_)) => why,
        (_, Err(sandbox::Error::Lost { why })) => Ending { state: RunState::Ambiguous, came: Err(why) },
        (_, Err(error)) => Ending::failed(error.to_string()),
        (None, Ok(outcome)) => ending(begun, &outcome, place, &redactor),
    };
    Ok((said, ending))
}

/// What came of a program that ended.
fn ending(begun: &Begun, outcome: &sandbox::Outcome, place: &Place, redactor: &Redactor) -> Ending {
    let budget = &begun.definition.budget;
    let code = match outcome.ended {
        Ended::Exited { code: 0 } => return Ending { state: RunState::Done, came: Ok(result(outcome, place)) },
        Ended::Exited { code } => code,
        Ended::Signalled { signal } => return Ending::failed(format!("it was ended by signal {signal}")),
        Ended::TimedOut => return Ending::failed(format!("its budget of {} seconds is used up", budget.seconds)),
        Ended::CpuTime => return Ending::failed("it used more processor time than its seconds allow"),
        Ended::Memory => return Ending::failed("its budget of memory is used up"),
        Ended::Disk => return Ending::failed("its budget of disk is used up"),
        Ended::Stopped => return Ending { state: RunState::Stopped, came: Err("somebody stopped it".to_owned()) },
    };
    // It is cleaned before its last line is taken: by itself that line may be part of what a line before it would tell.
    let errors = redactor.text(&String::from_utf8_lossy(&outcome.stderr.bytes)).text;
    if let Runner::Command { language: Some(Language::Typescript), .. } = &begun.definition.runner
        && errors.contains("bad option")
    {
        return Ending::failed("the Node.js of this machine cannot run TypeScript: 22.6 or newer is needed");
    }
    let last = errors.lines().rev().find(|line| !line.trim().is_empty()).map(|line| format!(": {line}")).unwrap_or_default();
    Ending::failed(format!("it ended with exit code {code}{last}"))
}

/// `result.json`, or the last line of its output that is a JSON object or list, or how it ended.
fn result(outcome: &sandbox::Outcome, place: &Place) -> Value {
    let told = || {
        let output = String::from_utf8_lossy(&outcome.stdout.bytes);
        output.lines().rev().find_map(|line| serde_json::from_str::<Value>(line.trim()).ok().filter(|value| value.is_object() || value.is_array()))
    };
    place.result().or_else(told).unwrap_or_else(|| json!({ "exit_code": 0 }))
}

async fn write(running: &Running, begun: &Begun, lines: Vec<(String, String)>, meter: Option<&crate::runs::Meter>) -> Result<()> {
    let (run, calls) = (begun.run.clone(), meter.map_or(begun.calls, crate::runs::Meter::calls));
    let own = running.clone();
    let say = move |cx: &mut Cx<'_, '_>| {
        own.held(cx)?;
        agents::said(cx, &run, &lines, calls)
    };
    running.app.desk.act(Surface::System, say).await
}

/// Writes down how the run ended. The job keeps why it failed as well, so that is cleaned before either has it.
async fn finish(running: &Running, begun: &Begun, lines: Vec<(String, String)>, calls: i64, ending: Ending) -> Result<Outcome> {
    let (run, Ending { state, came }) = (begun.run.clone(), ending.cleaned(&Redactor::all()));
    let (failed, own) = (came.clone().err(), running.clone());
    if running.given_up.load(Ordering::Relaxed) {
        return Err(Error::conflict("the lease of this run was lost"));
    }
    running
        .app
        .desk
        .act(Surface::System, move |cx| {
            own.held(cx)?;
            agents::said(cx, &run, &lines, calls)?;
            agents::end(cx, &run, state, came.clone(), calls)
        })
        .await?;
    Ok(match (state, failed) {
        (RunState::Stopped, _) => Outcome::Cancelled,
        (RunState::Ambiguous, what) => Outcome::Ambiguous { what: what.unwrap_or_default() },
        (_, Some(error)) => Outcome::Failed { error, retry: false },
        _ => Outcome::Done(json!({ "run": begun.run })),
    })
}
