//! What a client's hook starts: one question to the running server, and its answer. It fails closed.

use std::io::{Read, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use deskmate_core::hook::STARTER;
use serde_json::{Value, json};

use super::client::{As, Client};
use super::output::say;
use super::{Failure, Global};
use crate::hook::{self, settings};

/// The longest thing that a hook is told.
const PAYLOAD_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The exit code with which clients refuse a call.
const REFUSED: u8 = 2;

/// How long a call waits for a person at most, in seconds.
pub(super) const HOLD: u64 = 25;

#[derive(Args, Debug)]
pub(super) struct HookArgs {
    /// The client that asks
    #[arg(long, value_enum, default_value_t, global = true)]
    pub(super) client: hook::Client,
    /// The agent that works there, while no agent is registered; the client's name if not given
    #[arg(long, value_name = "NAME", global = true)]
    pub(super) agent: Option<String>,
    /// How many seconds a call waits for a person before it is put off, at most 25
    #[arg(long, value_name = "SECONDS", default_value_t = HOLD, global = true, value_parser = clap::value_parser!(u64).range(0..=HOLD))]
    pub(super) hold: u64,
    #[command(subcommand)]
    pub(super) command: Option<HookCommand>,
}

#[derive(Subcommand, Debug)]
pub(super) enum HookCommand {
    /// Print the settings with which the client asks this desk
    PrintConfig,
    /// Print the starter policy, to be changed in deskmate.yaml
    PrintPolicy,
}

/// Does it, and answers the exit code: 2 stops the call that the client asks about.
pub(super) fn run(global: &Global, args: &HookArgs) -> ExitCode {
    let done = match &args.command {
        Some(HookCommand::PrintConfig) => print_config(global, args),
        Some(HookCommand::PrintPolicy) => say(STARTER.trim_end()),
        None => return ask(global, args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(global.json),
    }
}

fn print_config(global: &Global, args: &HookArgs) -> Result<(), Failure> {
    let program = std::env::current_exe()?;
    let mut command = format!("{} hook", quoted(&program.display().to_string()));
    if args.client != hook::Client::default() {
        command.push_str(&format!(" --client {}", args.client.name()));
    }
    if let Some(agent) = &args.agent {
        command.push_str(&format!(" --agent {}", quoted(agent)));
    }
    for (flag, path) in [("--home", &global.home), ("--token-file", &global.token_file)] {
        if let Some(path) = path {
            command.push_str(&format!(" {flag} {}", quoted(&path.display().to_string())));
        }
    }
    say(&serde_json::to_string_pretty(&settings::of(args.client, &command)).unwrap_or_default())
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|char| char.is_ascii_alphanumeric() || "/._-+:@".contains(char));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn ask(global: &Global, args: &HookArgs) -> ExitCode {
    let mut text = Vec::new();
    let read = std::io::stdin().lock().take(PAYLOAD_BYTES_MAX + 1).read_to_end(&mut text);
    let payload: Value = match read {
        Ok(_) if text.len() as u64 <= PAYLOAD_BYTES_MAX => serde_json::from_slice(&text).unwrap_or_default(),
        _ => Value::Null,
    };
    let answered = if payload.is_object() {
        answer(global, args, &payload)
    } else {
        Err(Failure::Other("what the hook was given is no JSON object, or too long".to_owned()))
    };
    let printed = answered.and_then(|answer| Ok(writeln!(std::io::stdout(), "{answer}")?));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let is_asked = hook::Client::is_asked(&payload);
            let why = if is_asked { "so this does not run" } else { "and nothing was told to the agent" };
            // Where even this cannot be written there is nobody left to tell.
            drop(writeln!(std::io::stderr(), "Deskmate could not be asked, {why}: {}", failure.text()));
            ExitCode::from(if is_asked { REFUSED } else { 1 })
        }
    }
}

fn answer(global: &Global, args: &HookArgs, payload: &Value) -> Result<Value, Failure> {
    let client = Client::new(global)?;
    let agent = args.agent.clone().unwrap_or_else(|| args.client.name().to_owned());
    // The local socket alone would be the desk's own account: a hook is always somebody.
    let client = if client.has_token() { client } else { client.with(As::Agent(agent)) };
    let mut input = args.client.incoming(payload);
    if let Some(fields) = input.as_object_mut() {
        fields.insert("timeout_seconds".to_owned(), json!(args.hold));
    }
    let out = client.ask("hook_event", &input)?;
    let out = serde_json::from_value(out).map_err(|error| Failure::Other(format!("the server's answer is unreadable: {error}")))?;
    Ok(args.client.outgoing(payload, &out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell_stay_one_word() {
        assert_eq!(quoted("/usr/bin/deskmate"), "/usr/bin/deskmate");
        assert_eq!(quoted("/a b/it's"), "'/a b/it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
