//! Waiting for mail and for tasks: what hooks and scripts call.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use deskmate_core::Code;
use serde_json::{Value, json};

use super::client::{As, Client};
use super::output::{print, say};
use super::{Failure, Global};
use crate::config;

/// How long one request holds.
const HOLD: Duration = Duration::from_secs(25);
/// How long a server that was there is looked for: one that is started anew is there again by then.
const GONE_MAX: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What ends the waiting.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// A message that waits
    Messages,
    /// A task that is ready to be claimed
    Tasks,
    /// Either
    All,
}

#[derive(Args)]
pub(super) struct WaitArgs {
    /// The agent whose mail and tasks are awaited
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// Give up after this time, for example 10m; waits for ever if not given
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Only what is in this project; any project if not given
    #[arg(long)]
    project: Option<String>,
    /// What ends the waiting
    #[arg(long = "for", value_name = "WHAT", default_value = "all")]
    what: What,
}

pub(super) fn run(global: &Global, args: &WaitArgs) -> Result<(), Failure> {
    let deadline = match &args.timeout {
        None => None,
        Some(text) => {
            let micros =
                config::parse_duration(text).ok_or_else(|| Failure::Other(format!("--timeout: {text:?} is not a time: write for example 30s or 10m")))?;
            Some(Instant::now() + Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
        }
    };
    let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let client = Client::new(global)?;
    let client = if client.has_token() { client } else { client.with(As::Agent(args.agent.clone())) };
    let was_there = client.home().running().is_some();
    let mut gone: Option<Instant> = None;
    loop {
        let left = deadline.map_or(HOLD, |deadline| deadline.saturating_duration_since(Instant::now()));
        // The last request of a wait is held for whole seconds too, and is answered with what there is at its end.
        let seconds = left.as_millis().div_ceil(1_000).min(HOLD.as_millis() / 1_000);
        let answer = match client.call(args.operation(), &args.input(u64::try_from(seconds).unwrap_or(0))) {
            Err(Failure::Desk(error)) if error.code == Code::Unavailable && was_there && !is_over() => {
                if gone.get_or_insert_with(Instant::now).elapsed() > GONE_MAX {
                    return Err(error.into());
                }
                std::thread::sleep(LOOK_AGAIN);
                continue;
            }
            answer => answer?,
        };
        gone = None;
        if let Some(news) = args.news(&answer) {
            return if global.json { print(&answer, true) } else { say(&news) };
        }
        if is_over() {
            if global.json {
                print(&answer, true)?;
            }
            return Err(Failure::TimedOut);
        }
    }
}

impl WaitArgs {
    fn operation(&self) -> &'static str {
        if self.what == What::Tasks { "bridge_wait_for_task" } else { "bridge_wait_for_messages" }
    }

    fn input(&self, seconds: u64) -> Value {
        let mut input = json!({ "timeout_seconds": seconds, "any_project": self.project.is_none() });
        if let Some(fields) = input.as_object_mut() {
            fields.insert("agent_id".to_owned(), json!(self.agent));
            fields.extend(self.project.iter().map(|project| ("project".to_owned(), json!(project))));
            if self.what == What::All {
                fields.insert("or_tasks".to_owned(), json!(true));
            }
        }
        input
    }

    /// What an answer says that there is, if there is something.
    fn news(&self, answer: &Value) -> Option<String> {
        let names = |field: &str| -> Vec<&str> { answer.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect() };
        let agent = &self.agent;
        let elsewhere = if self.project.is_none() { names("elsewhere") } else { Vec::new() };
        let tasks = if self.what == What::Tasks {
            let own = answer.pointer("/task/project").and_then(Value::as_str).filter(|_| answer.get("changed") == Some(&Value::Bool(true)));
            own.into_iter().chain(elsewhere.iter().copied()).collect()
        } else {
            names("tasks_ready_in")
        };
        let messages = answer.get("messages").and_then(Value::as_array).map_or(0, Vec::len);
        if messages > 0 {
            let noun = if messages == 1 { "message waits" } else { "messages wait" };
            return Some(format!("{messages} {noun} for {agent}: read with read_messages"));
        }
        if !tasks.is_empty() {
            return Some(format!("a task is ready for {agent} in {}: take it with claim_task, naming the project", tasks.join(", ")));
        }
        (!elsewhere.is_empty()).then(|| format!("messages wait for {agent} in {}: read with read_messages, naming the project", elsewhere.join(", ")))
    }
}
