//! Waiting for mail: what hooks and scripts call.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::client::{As, Client};
use super::output::{print, say};
use super::{Failure, Global};
use crate::config;

/// How long one request holds.
const HOLD: Duration = Duration::from_secs(25);

#[derive(Args)]
pub(super) struct WaitArgs {
    /// The agent whose mail is awaited
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// Give up after this time, for example 10m; waits for ever if not given
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Only mail of this project; mail of any project if not given
    #[arg(long)]
    project: Option<String>,
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
    let client = Client::new(global)?;
    let client = if client.has_token() { client } else { client.with(As::Agent(args.agent.clone())) };
    loop {
        let left = deadline.map_or(HOLD, |deadline| deadline.saturating_duration_since(Instant::now()));
        // The last request of a wait is held for whole seconds too, and is answered with what there is at its end.
        let seconds = left.as_millis().div_ceil(1_000).min(HOLD.as_millis() / 1_000);
        let mut input = json!({ "agent_id": args.agent, "timeout_seconds": u64::try_from(seconds).unwrap_or(0), "any_project": args.project.is_none() });
        if let (Some(project), Some(fields)) = (&args.project, input.as_object_mut()) {
            fields.insert("project".to_owned(), json!(project));
        }
        let answer = client.call("bridge_wait_for_messages", &input)?;
        let messages = answer.get("messages").and_then(Value::as_array).map_or(0, Vec::len);
        if messages > 0 {
            if global.json {
                return print(&answer, true);
            }
            let noun = if messages == 1 { "message waits" } else { "messages wait" };
            return say(&format!("{messages} {noun} for {}: read with read_messages", args.agent));
        }
        let elsewhere: Vec<&str> = answer.get("elsewhere").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        if args.project.is_none() && !elsewhere.is_empty() {
            if global.json {
                return print(&answer, true);
            }
            return say(&format!("messages wait for {} in {}: read with read_messages, naming the project", args.agent, elsewhere.join(", ")));
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            if global.json {
                print(&answer, true)?;
            }
            return Err(Failure::TimedOut);
        }
    }
}
