//! What a client's hook starts: one question to the running server, and its answer. It fails closed.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use deskmate_core::hook::STARTER;
use deskmate_core::{Code, Error};
use serde_json::{Value, json};

use super::client::{As, Client};
use super::output::{print, say};
use super::{Failure, Global};
use crate::config;
use crate::hook::{self, settings};

/// The longest thing that a hook is told.
const PAYLOAD_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The exit code with which clients refuse a call.
const REFUSED: u8 = 2;

/// How long a desk on the same machine may take to be reached, and to answer what it holds.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(35);

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
    /// How many seconds a call waits for a person: 25 at most, and if not given
    #[arg(long, value_name = "SECONDS", global = true, value_parser = clap::value_parser!(u64).range(0..=HOLD))]
    pub(super) hold: Option<u64>,
    /// The name of the desk's own MCP server at the client: its calls are decided there
    #[arg(long, value_name = "NAME", global = true)]
    pub(super) server: Option<String>,
    /// The desk's own MCP server is named in the project's file; one that a project names is else not taken for the desk
    #[arg(long, global = true)]
    pub(super) project_server: bool,
    #[command(subcommand)]
    pub(super) command: Option<HookCommand>,
}

#[derive(Subcommand, Debug)]
pub(super) enum HookCommand {
    /// Print the settings with which the client asks this desk
    PrintConfig {
        /// How the client asks
        #[arg(long, value_enum, default_value_t)]
        form: Form,
    },
    /// Print the starter policy, to be changed in deskmate.yaml
    PrintPolicy,
}

/// How a client asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// It starts this program
    #[default]
    Command,
    /// It speaks to the running desk (Claude Code)
    Http,
    /// It calls a tool of its own connection to the desk, which has the toolset `hook` (Claude Code)
    McpTool,
}

/// Does it, and answers the exit code: 2 stops the call that the client asks about.
pub(super) fn run(global: &Global, args: &HookArgs) -> ExitCode {
    let done = match &args.command {
        Some(HookCommand::PrintConfig { form }) => print_config(global, args, *form),
        Some(HookCommand::PrintPolicy) => print_policy(global),
        None => return ask(global, args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(global.json),
    }
}

/// As it stands in a file, with its comments; or, for programs, what it says.
fn print_policy(global: &Global) -> Result<(), Failure> {
    if !global.json {
        return say(STARTER.trim_end());
    }
    let policy: Value = serde_saphyr::from_str(STARTER).map_err(|error| Failure::Other(error.to_string()))?;
    print(&policy, true)
}

fn print_config(global: &Global, args: &HookArgs, form: Form) -> Result<(), Failure> {
    if form != Form::Command && args.client != hook::Client::ClaudeCode {
        return Err(Error::invalid("form", format!("{} starts a program for each hook, and knows no other form", args.client.name())).into());
    }
    if form != Form::Command && global.token_file.is_some() {
        return Err(Error::invalid("token-file", "is for the form `command`: in this one the client says who it is, and not by a file").into());
    }
    match form {
        Form::Command => {}
        Form::Http => {
            let running = Client::new(global)?.home().running().and_then(|holder| holder.url);
            let url = running
                .ok_or_else(|| Error::new(Code::Unavailable, "the desk does not run, so its address is not known").hint("start it with `deskmate up`"))?;
            return say(
                &serde_json::to_string_pretty(&settings::claude_code_http(url.trim_end_matches('/'), args.agent.as_deref(), said(args))).unwrap_or_default()
            );
        }
        Form::McpTool => {
            if args.agent.is_some() {
                let why = "is not for the form `mcp-tool`: who asks is whoever the client's own connection to the desk is";
                return Err(Error::invalid("agent", why).hint("give it there: `deskmate mcp --toolset hook --agent NAME`").into());
            }
            return say(&serde_json::to_string_pretty(&settings::claude_code_mcp_tool(said(args))).unwrap_or_default());
        }
    }
    let program = std::env::current_exe()?;
    let mut command = format!("{} hook", quoted(&program.display().to_string()));
    if args.client != hook::Client::default() {
        command.push_str(&format!(" --client {}", args.client.name()));
    }
    if let Some(agent) = &args.agent {
        command.push_str(&format!(" --agent {}", quoted(agent)));
    }
    if let Some(hold) = args.hold {
        command.push_str(&format!(" --hold {hold}"));
    }
    if let Some(server) = &args.server {
        command.push_str(&format!(" --server {}", quoted(server)));
    }
    if args.project_server {
        command.push_str(" --project-server");
    }
    for (flag, path) in [("--home", &global.home), ("--token-file", &global.token_file)] {
        if let Some(path) = path {
            command.push_str(&format!(" {flag} {}", quoted(&path.display().to_string())));
        }
    }
    say(&serde_json::to_string_pretty(&settings::of(args.client, &command)).unwrap_or_default())
}

/// What the client says with every question.
fn said(args: &HookArgs) -> settings::Said<'_> {
    settings::Said { hold: args.hold, server: args.server.as_deref(), in_project: args.project_server }
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
    // The program of a run reaches the desk over the network only.
    if let (Some(url), Some(token)) = (config::env("DESKMATE_URL"), config::env("DESKMATE_TOKEN")) {
        return over_network(&url, &token, args, payload);
    }
    let client = Client::new(global)?;
    let agent = args.agent.clone().unwrap_or_else(|| args.client.name().to_owned());
    // The local socket alone would be the desk's own account: a hook is always somebody.
    let client = if client.has_token() { client } else { client.with(As::Agent(agent)) };
    let mut input = args.client.incoming(payload);
    if let Some(fields) = input.as_object_mut() {
        fields.insert("timeout_seconds".to_owned(), json!(args.hold.unwrap_or(HOLD)));
        fields.insert("desk_in_project".to_owned(), json!(args.project_server));
        if let Some(name) = &args.server {
            fields.insert("desk_server".to_owned(), json!(name));
        }
    }
    let out = client.ask("hook_event", &input)?;
    let out = serde_json::from_value(out).map_err(|error| Failure::Other(format!("the server's answer is unreadable: {error}")))?;
    Ok(args.client.outgoing(payload, &out))
}

/// Asks the desk that a run belongs to, at the address that the run was given.
fn over_network(url: &str, token: &str, args: &HookArgs, payload: &Value) -> Result<Value, Failure> {
    let wrong = |why: &str| Failure::Other(format!("DESKMATE_URL: {why}"));
    let address = url.strip_prefix("http://").ok_or_else(|| wrong("only http:// can be asked by a hook"))?.trim_end_matches('/').to_owned();
    let to = address.to_socket_addrs()?.next().filter(|to| to.ip().is_loopback()).ok_or_else(|| wrong("it is not on this machine"))?;
    let said = settings::Said { hold: Some(args.hold.unwrap_or(HOLD)), ..said(args) };
    let query = said.query(&[("client", args.client.name())]);
    let body = payload.to_string();
    let mut stream = TcpStream::connect_timeout(&to, CONNECT)?;
    stream.set_read_timeout(Some(ANSWER))?;
    write!(
        stream,
        "POST /hook{query} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    stream.take(PAYLOAD_BYTES_MAX).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, said) = answer.split_once("\r\n\r\n").ok_or_else(|| wrong("the answer is unreadable"))?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(Failure::Other(format!("the desk refused: {}", said.chars().take(500).collect::<String>())));
    }
    serde_json::from_str(said).map_err(|_| wrong("the answer is unreadable"))
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
