//! Trying an entry as its client would: start what it says, or speak to its address, shake hands, and list the tools.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver as Lines, channel};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::Hooked;
use super::entry::{TOKEN_VARIABLE, Written};
use super::hosts::Host;
use crate::effects::outbound::Receiver;

/// How long all of it may take. A client starts the desk where none runs, which takes a moment.
const WITHIN: Duration = Duration::from_secs(20);
/// How long a hook may take, which may be told to wait for a person.
const HOOK_WITHIN: Duration = Duration::from_secs(35);
/// How long a program may take to end when its input has.
const END_WITHIN: Duration = Duration::from_secs(3);
const LINE_BYTES_MAX: u64 = 8 << 20;
const BODY_BYTES_MAX: usize = 8 << 20;
/// How much of what a program complains about is told.
const COMPLAINT_BYTES_MAX: u64 = 4_096;
const PAGES_MAX: usize = 50;
/// What to do about a token that is good no more.
const NEW_TOKEN: &str = "`deskmate agent add NAME` or `deskmate agent rotate NAME` gives a token; then connect again with it";
/// The version that every server of today still speaks.
const PROTOCOL: &str = "2025-11-25";

/// What an entry leads to.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) server: String,
    pub(crate) version: String,
    pub(crate) tools: usize,
}

/// Why it leads nowhere, and what to do about it.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) fix: Option<String>,
    /// Whether it was not even tried.
    pub(crate) untried: bool,
}

impl Problem {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), fix: None, untried: false }
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// What a server answered in the place of a result.
    fn refused(error: &Value) -> Self {
        let part = |at: &str| error.pointer(at).and_then(Value::as_str).map(str::to_owned);
        let said = Self::new(part("/message").unwrap_or_else(|| "it refused without a reason".to_owned()));
        match part("/data/code").as_deref() {
            Some("unauthenticated" | "forbidden") => said.fix(NEW_TOKEN),
            _ => Self { fix: part("/data/hint"), ..said },
        }
    }
}

/// Tries an entry of a client. `variable` reads the environment in which the client would start.
pub(crate) fn probe(host: Host, entry: &Written, folder: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Tried, Problem> {
    match entry {
        Written::Stdio { command, args, env, passed } => {
            let mut all = expand_all(host, env, variable)?;
            for name in passed {
                all.insert(name.clone(), variable(name).ok_or_else(|| missing(host, name))?);
            }
            let args = args.iter().map(|word| expand(host, word, variable)).collect::<Result<Vec<_>, _>>()?;
            let mut program = Program::start(host, &expand(host, command, variable)?, &args, &all, folder)?;
            let tried = converse(&mut |message| program.exchange(message));
            tried.map_err(|problem| program.explain(problem))
        }
        Written::Http { url, headers, bearer } => {
            let mut all = expand_all(host, headers, variable)?;
            if let Some(name) = bearer {
                all.insert(AUTHORIZATION.to_string(), format!("Bearer {}", variable(name).ok_or_else(|| missing(host, name))?));
            }
            let url = expand(host, url, variable)?;
            let tried = Address::new(&url, &all).and_then(|address| converse(&mut |message| address.exchange(message)))?;
            introduce(&url, &all)?;
            Ok(tried)
        }
    }
}

/// Runs the command of a hook as its client does, asking about something that stays within the client, and says whether it can answer.
pub(crate) fn probe_hook(hooked: &Hooked, folder: &Path) -> Result<(), Problem> {
    let again = || format!("connect again: deskmate connect {} --scope {} --hooks", hooked.host.word(), hooked.scope.word());
    let (Some(client), Some((command, args))) = (hooked.host.hooks(), hooked.command.split_first()) else { return Ok(()) };
    let here = folder.to_string_lossy();
    let asked = json!({
        "hook_event_name": client.asks(), "session_id": "deskmate-doctor", "cwd": here, "workspace_roots": [here],
        "tool_name": "TodoWrite", "tool_input": { "todos": [] },
    });
    let mut program = Program::start(hooked.host, command, args, &BTreeMap::new(), folder).map_err(|problem| problem.fix(again()))?;
    program.deadline = Instant::now() + HOOK_WITHIN;
    let ended = program.hand(&asked);
    ended.map_err(|problem| program.explain(problem).fix(again()))
}

/// Shakes hands and lists the tools.
fn converse(exchange: &mut dyn FnMut(&Value) -> Result<Option<Value>, Problem>) -> Result<Tried, Problem> {
    let mut ask = |id: u32, method: &str, params: Value| {
        let answer = exchange(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?.unwrap_or_default();
        match (answer.get("result"), answer.get("error")) {
            (Some(result), _) => Ok(result.clone()),
            (None, Some(error)) => Err(Problem::refused(error)),
            (None, None) => Err(Problem::new("it answers, and not as an MCP server does")),
        }
    };
    let hello = json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": { "name": "deskmate-doctor", "version": env!("CARGO_PKG_VERSION") } });
    let welcome = ask(1, "initialize", hello)?;
    let (mut tools, mut cursor) = (0, None);
    for id in (2..).take(PAGES_MAX) {
        let params = cursor.take().map_or_else(|| json!({}), |cursor: Value| json!({ "cursor": cursor }));
        let page = ask(id, "tools/list", params)?;
        tools += page.get("tools").and_then(Value::as_array).map_or(0, Vec::len);
        cursor = page.get("nextCursor").filter(|cursor| !cursor.is_null()).cloned();
        if cursor.is_none() {
            break;
        }
    }
    let part = |at: &str| welcome.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Tried { server: part("/serverInfo/name"), version: part("/serverInfo/version"), tools })
}

/// A program that speaks on its standard input and output.
struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<String>,
    complaints: Lines<String>,
    deadline: Instant,
}

impl Program {
    fn start(host: Host, command: &str, args: &[String], env: &BTreeMap<String, String>, folder: &Path) -> Result<Self, Problem> {
        let mut start = Command::new(command);
        if host != Host::ClaudeCode {
            // The others start without the environment of a terminal, or hand on only what they are told to.
            start.env_remove(TOKEN_VARIABLE).env_remove("DESKMATE_HOME");
        }
        if folder.is_dir() {
            start.current_dir(folder);
        }
        start.args(args).envs(env).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = start.spawn().map_err(|error| {
            let again = format!("connect again: deskmate connect {}", host.word());
            Problem::new(format!("{command} cannot be started: {error}")).fix(again)
        })?;
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stdout);
                loop {
                    let mut line = String::new();
                    let read = (&mut reader).take(LINE_BYTES_MAX).read_line(&mut line);
                    if !matches!(read, Ok(1..)) || sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let (sender, complaints) = channel();
        if let Some(mut stderr) = child.stderr.take() {
            std::thread::spawn(move || {
                let mut said = Vec::new();
                drop((&mut stderr).take(COMPLAINT_BYTES_MAX).read_to_end(&mut said));
                drop(sender.send(String::from_utf8_lossy(&said).trim().to_owned()));
                // A full pipe would hold the program up.
                drop(std::io::copy(&mut stderr, &mut std::io::sink()));
            });
        }
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, lines, complaints, deadline: Instant::now() + WITHIN })
    }

    fn exchange(&mut self, message: &Value) -> Result<Option<Value>, Problem> {
        let gone = || Problem::new("it ended without an answer");
        let stdin = self.stdin.as_mut().ok_or_else(gone)?;
        // One that does not listen may still have said why.
        let mut send = |message: &Value| drop(stdin.write_all(format!("{message}\n").as_bytes()).and_then(|()| stdin.flush()));
        send(message);
        let id = message.get("id");
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).map_err(|error| match error {
                std::sync::mpsc::RecvTimeoutError::Timeout => Problem::new(format!("it does not answer within {} s", WITHIN.as_secs())),
                std::sync::mpsc::RecvTimeoutError::Disconnected => gone(),
            })?;
            let Ok(answer) = serde_json::from_str::<Value>(&line) else {
                let start: String = line.trim().chars().take(80).collect();
                return Err(Problem::new(format!("it prints what is no JSON-RPC: {start:?}")));
            };
            if answer.get("id") == id && answer.get("method").is_none() {
                if message.get("method") == Some(&json!("initialize")) {
                    send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
                }
                return Ok(Some(answer));
            }
        }
    }

    /// Gives the program all that it is to read, and waits until it has ended well.
    fn hand(&mut self, message: &Value) -> Result<(), Problem> {
        if let Some(mut stdin) = self.stdin.take() {
            // One that does not listen shows it by how it ends.
            drop(stdin.write_all(message.to_string().as_bytes()));
        }
        while Instant::now() < self.deadline {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(Problem::new(format!("the hook cannot answer ({status})"))),
                Err(error) => return Err(Problem::new(error.to_string())),
            }
        }
        Err(Problem::new(format!("the hook does not answer within {} s", HOOK_WITHIN.as_secs())))
    }

    /// Adds what the program complained about.
    fn explain(&mut self, mut problem: Problem) -> Problem {
        self.end();
        let said = self.complaints.recv_timeout(END_WITHIN).unwrap_or_default();
        if !said.is_empty() && !said.contains(&problem.message) && problem.fix.is_none() {
            problem.message = format!("{}; it says: {}", problem.message, said.lines().last().unwrap_or_default());
        }
        problem
    }

    /// Lets it end by itself, and ends it and whatever it started if it does not.
    fn end(&mut self) {
        self.stdin = None;
        let deadline = Instant::now() + END_WITHIN;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _killed = kill_process_group(group, Signal::KILL);
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

/// A server at an address.
struct Address {
    receiver: Receiver,
    headers: HeaderMap,
    runtime: tokio::runtime::Runtime,
}

impl Address {
    fn new(url: &str, given: &BTreeMap<String, String>) -> Result<Self, Problem> {
        let url = url.parse().map_err(|_| Problem::new(format!("{url:?} is no address")).fix("connect again with --url"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| Problem::new(error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert("mcp-protocol-version", HeaderValue::from_static(PROTOCOL));
        for (name, value) in given {
            match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                (Ok(name), Ok(value)) => drop(headers.insert(name, value)),
                _ => return Err(Problem::new(format!("the header {name:?} is none")).fix("connect again")),
            }
        }
        Ok(Self { receiver: Receiver::new(url, None), headers, runtime })
    }

    fn exchange(&self, message: &Value) -> Result<Option<Value>, Problem> {
        let sent = self.receiver.ask(self.headers.clone(), Bytes::from(message.to_string()), BODY_BYTES_MAX);
        let away = |error: String| Problem::new(error).fix("start the desk there: `deskmate up`");
        let answer = self.runtime.block_on(sent).map_err(away)?;
        let text = String::from_utf8_lossy(answer.body());
        // An answer that is streamed is one event.
        let body = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim).rfind(|data| data.starts_with('{'));
        let value: Option<Value> = serde_json::from_str(body.unwrap_or(text.as_ref())).ok();
        if !answer.status().is_success() {
            let said = value.as_ref().and_then(|value| value.pointer("/error/message")).and_then(Value::as_str);
            let problem = Problem::new(said.map_or_else(|| format!("it answers with {}", answer.status()), str::to_owned));
            return Err(match answer.status().as_u16() {
                401 | 403 => problem.fix(NEW_TOKEN),
                404 => problem.fix("the address of a desk ends in /mcp or /mcp/TOOLSETS"),
                _ => problem,
            });
        }
        Ok(value)
    }
}

/// Asks a desk who it takes the caller for. An address tells its tools to everybody, and looks at the token with the first call.
fn introduce(url: &str, headers: &BTreeMap<String, String>) -> Result<(), Problem> {
    let Ok(mut whoami) = url::Url::parse(url) else { return Ok(()) };
    whoami.set_path("/api/desk_whoami");
    match Address::new(whoami.as_str(), headers)?.exchange(&json!({})) {
        Err(problem) if problem.fix.as_deref() == Some(NEW_TOKEN) => Err(problem),
        // Behind a proxy there may be nothing but the endpoint.
        _ => Ok(()),
    }
}

fn expand_all(host: Host, given: &BTreeMap<String, String>, variable: &dyn Fn(&str) -> Option<String>) -> Result<BTreeMap<String, String>, Problem> {
    given.iter().map(|(name, value)| Ok((name.clone(), expand(host, value, variable)?))).collect()
}

/// Puts variables in the place of what names them, as the client does.
fn expand(host: Host, text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, Problem> {
    if let Some(name) =
        text.strip_prefix('$').filter(|name| host == Host::Gemini && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    {
        return variable(name).ok_or_else(|| missing(host, name));
    }
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, (inner, after))) = rest.split_once("${").and_then(|(before, after)| Some((before, after.split_once('}')?))) {
        whole.push_str(before);
        let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
        if name.starts_with("input:") {
            let token = variable(TOKEN_VARIABLE).ok_or_else(|| asks(host))?;
            whole.push_str(&token);
        } else {
            let name = name.strip_prefix("env:").unwrap_or(name);
            let value = variable(name).or_else(|| default.map(str::to_owned)).ok_or_else(|| missing(host, name))?;
            whole.push_str(&value);
        }
        rest = after;
    }
    Ok(whole + rest)
}

fn missing(host: Host, name: &str) -> Problem {
    Problem::new(format!("it takes {name} from the environment, where it is not set"))
        .fix(format!("set {name} where {} starts, and here to try it", host.title()))
}

fn asks(host: Host) -> Problem {
    let fix = format!("set {TOKEN_VARIABLE} here to try it with a token");
    Problem { untried: true, ..Problem::new(format!("{} asks for the token itself, so it was not tried", host.title())).fix(fix) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str) -> Option<String> {
        (name == "DESKMATE_TOKEN").then(|| "dma_x".to_owned())
    }

    #[test]
    fn variables_are_put_in_as_the_clients_do() {
        for (host, text, expected) in [
            (Host::ClaudeCode, "Bearer ${DESKMATE_TOKEN}", "Bearer dma_x"),
            (Host::ClaudeCode, "${NOT:-else}${DESKMATE_TOKEN}!", "elsedma_x!"),
            (Host::Cursor, "${env:DESKMATE_TOKEN}", "dma_x"),
            (Host::Vscode, "${input:deskmate-token}", "dma_x"),
            (Host::Gemini, "$DESKMATE_TOKEN", "dma_x"),
            (Host::ClaudeDesktop, "$DESKMATE_TOKEN", "$DESKMATE_TOKEN"),
            (Host::ClaudeCode, "no ${end", "no ${end"),
        ] {
            assert_eq!(expand(host, text, &known).unwrap(), expected, "{text}");
        }
        let missing = expand(Host::ClaudeCode, "${NOT}", &known).unwrap_err();
        assert!(missing.message.contains("NOT") && missing.fix.is_some() && !missing.untried);
        assert!(expand(Host::Vscode, "${input:deskmate-token}", &|_| None).unwrap_err().untried);
    }

    /// What is said about a program of a few lines in `sh`.
    fn said(script: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let entry = Written::Stdio { command: "/bin/sh".into(), args: vec!["-c".into(), script.into()], env: BTreeMap::new(), passed: Vec::new() };
        match probe(Host::Cursor, &entry, folder.path(), &known) {
            Ok(tried) => format!("{} tools", tried.tools),
            Err(problem) => problem.message,
        }
    }

    #[test]
    fn what_is_wrong_with_a_program_is_told() {
        assert_eq!(said("exit 3"), "it ended without an answer");
        assert_eq!(said("echo no config >&2; exit 3"), "it ended without an answer; it says: no config");
        assert!(said("echo hello").starts_with("it prints what is no JSON-RPC"));
        assert_eq!(said(r#"read x; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"not you"}}'; cat >/dev/null"#), "not you");
        assert_eq!(said(r#"read x; echo '{"jsonrpc":"2.0","id":1}'; cat >/dev/null"#), "it answers, and not as an MCP server does");
        let good = r#"read a; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; read b; read c; echo '{"jsonrpc":"2.0","method":"x"}'; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{},{}]}}'; cat >/dev/null"#;
        assert_eq!(said(good), "2 tools");
        let missing = Written::Stdio { command: "/nowhere/deskmate".into(), args: Vec::new(), env: BTreeMap::new(), passed: Vec::new() };
        let problem = probe(Host::Cursor, &missing, Path::new("/"), &known).unwrap_err();
        assert!(problem.message.contains("cannot be started") && problem.fix.as_deref() == Some("connect again: deskmate connect cursor"), "{problem:?}");
    }
}
