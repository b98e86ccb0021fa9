//! The operations: what a client's hook says, and what it is answered. Surfaces put both into the words of each client.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::decide::{self, Asked};
use super::tool::Server;
use super::{SESSION, after, news};
use crate::call::{Cx, Wait, parse_strict};
use crate::limits::{NAME_CHARS_MAX, PATH_BYTES_MAX, WAIT_MAX};
use crate::policy;
use crate::policy::settings::HookMode;
use crate::record::Event;
use crate::request::{self, State};
use crate::{Error, Result, check_text};

/// What a client's hook says: before and after a tool call, when a person has said something, when a session begins, and
/// when the agent wants to stop. The answer says whether the call may run, or what the agent is told.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HookEvent {
    /// `PreToolUse`, `PermissionRequest`, `PostToolUse`, `PostToolUseFailure`, `UserPromptSubmit`, `SessionStart` or `Stop`.
    hook_event_name: String,
    /// The tool that is about to run, or ran.
    tool_name: Option<String>,
    /// What it is given, as it is or as JSON in a text.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    tool_input: Value,
    /// What it answered.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    tool_response: Value,
    /// The client's id of this one call.
    tool_use_id: Option<String>,
    /// The client's id of the session.
    session_id: Option<String>,
    /// The folder that the agent works in: an absolute path.
    cwd: Option<String>,
    /// Where the client got the MCP server from whose tool it is: `user`, `project`, `local`, `plugin` and so on; empty where it
    /// could say that and did not.
    mcp_source: Option<String>,
    /// The name of the desk's own MCP server at the client; `desk` or `deskmate` if not given.
    desk_server: Option<String>,
    /// Whether the desk's own MCP server is named in a file of the project: one that a project names is else not taken for the desk.
    #[serde(default)]
    desk_in_project: bool,
    /// Whether the agent goes on already because it was not let stop.
    #[serde(default, deserialize_with = "said")]
    stop_hook_active: bool,
    /// How long to wait for a person, at most 25 seconds; what the desk is set to if not given.
    timeout_seconds: Option<u64>,
}

/// Reads a boolean that a client may have filled into a text. Only what says so is true.
fn said<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<bool, D::Error> {
    match Value::deserialize(from)? {
        Value::Bool(said) => Ok(said),
        Value::String(text) => Ok(text == "true"),
        Value::Null => Ok(false),
        _ => Err(serde::de::Error::custom("is neither true nor false")),
    }
}

/// Whether a tool call may run, for a client that asks instead of prompting its person (`--permission-prompt-tool`).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HookPermission {
    /// The tool that is about to run.
    tool_name: String,
    /// What it is given.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    input: Value,
    /// The client's id of this one call.
    tool_use_id: Option<String>,
    /// The folder that the agent works in: an absolute path.
    cwd: Option<String>,
    /// How long to wait for a person, at most 25 seconds; what the desk is set to if not given.
    timeout_seconds: Option<u64>,
}

/// Whether a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    /// It may.
    Allow,
    /// It must not.
    Deny,
    /// Nothing was decided: the client goes on as it would without the desk.
    None,
}

/// What a hook is answered.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HookOut {
    /// Whether the call may run.
    pub decision: Decided,
    /// `passed`, `redeemed`, `held`, `approved`, `denied`, `rejected`, `stopped`, `observed`, `noted` or `told`.
    pub state: String,
    /// Why, for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the agent is told at its next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Whether the agent is asked not to stop yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wakes: bool,
    /// True where the desk only observes and enforces nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe: bool,
    /// The request that waits for a person, or that was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl HookOut {
    pub(super) fn new(decision: Decided, state: &str) -> Self {
        Self { decision, state: state.to_owned(), reason: None, context: None, wakes: false, observe: false, request_id: None }
    }

    #[must_use]
    pub(super) fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

fn check(field: &str, text: Option<&str>, max: usize) -> Result<()> {
    text.map_or(Ok(()), |text| check_text(field, text, max))
}

fn check_wait(seconds: Option<u64>) -> Result<()> {
    match seconds {
        Some(seconds) if seconds > WAIT_MAX.as_secs() => Err(Error::invalid("timeout_seconds", format!("must be at most {}", WAIT_MAX.as_secs()))),
        _ => Ok(()),
    }
}

pub(super) fn event(cx: &mut Cx<'_, '_>, input: HookEvent) -> Result<HookOut> {
    let names = [
        ("session_id", &input.session_id),
        ("tool_use_id", &input.tool_use_id),
        ("tool_name", &input.tool_name),
        ("mcp_source", &input.mcp_source),
        ("desk_server", &input.desk_server),
    ];
    for (field, text) in names {
        check(field, text.as_deref(), NAME_CHARS_MAX)?;
    }
    check("cwd", input.cwd.as_deref(), PATH_BYTES_MAX)?;
    check_wait(input.timeout_seconds)?;
    // A client that fills in a template can only write a text.
    let written = input.tool_input.as_str().and_then(|text| parse_strict(text.as_bytes()).ok()).filter(Value::is_object);
    let tool_input = written.as_ref().unwrap_or(&input.tool_input);
    let session = input.session_id.as_deref().unwrap_or_default();
    let observe = policy::current(cx)?.settings("").hooks.mode == HookMode::Observe;
    let mut out = match input.hook_event_name.as_str() {
        name @ ("PreToolUse" | "PermissionRequest") => {
            let tool = input.tool_name.as_deref().filter(|tool| !tool.is_empty()).ok_or_else(|| Error::invalid("tool_name", "is missing"))?;
            let call = input.tool_use_id.as_deref();
            let server = Server { source: input.mcp_source.as_deref(), desk: input.desk_server.as_deref(), in_project: input.desk_in_project };
            let is_question = name != "PreToolUse";
            decide::decide(cx, &Asked { tool, input: tool_input, folder: input.cwd.as_deref(), server, session, call, is_question })?
        }
        name @ ("PostToolUse" | "PostToolUseFailure") => {
            let failed = name == "PostToolUseFailure" || has_failed(&input.tool_response);
            after::ended(cx, session, input.tool_name.as_deref().unwrap_or_default(), input.tool_use_id.as_deref(), failed)?;
            news::told(cx, session)?
        }
        "SessionStart" => {
            cx.emit(Event::new(SESSION, format!("agent:{}", cx.actor.id)).fact("observe", observe).payload(json!({ "session": session, "cwd": input.cwd })))?;
            news::told(cx, session)?
        }
        "UserPromptSubmit" => news::told(cx, session)?,
        "Stop" | "SubagentStop" => news::waking(cx, input.stop_hook_active)?,
        other => {
            let known = "PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure, UserPromptSubmit, SessionStart, Stop";
            return Err(Error::invalid("hook_event_name", format!("{other:?} is not known here")).hint(format!("known: {known}")));
        }
    };
    out.observe = observe;
    Ok(out)
}

pub(super) fn permission(cx: &mut Cx<'_, '_>, input: HookPermission) -> Result<HookOut> {
    for (field, text) in [("tool_use_id", input.tool_use_id.as_deref()), ("tool_name", Some(input.tool_name.as_str()))] {
        check(field, text, NAME_CHARS_MAX)?;
    }
    check("cwd", input.cwd.as_deref(), PATH_BYTES_MAX)?;
    check_wait(input.timeout_seconds)?;
    if input.tool_name.is_empty() {
        return Err(Error::invalid("tool_name", "is missing"));
    }
    let asked = Asked {
        tool: &input.tool_name,
        input: &input.input,
        folder: input.cwd.as_deref(),
        // Such a client does not say where it got a server from.
        server: Server::UNSAID,
        session: "",
        call: input.tool_use_id.as_deref(),
        is_question: true,
    };
    let mut out = decide::decide(cx, &asked)?;
    out.observe = policy::current(cx)?.settings("").hooks.mode == HookMode::Observe;
    if out.decision == Decided::None {
        // Here is nobody else whom the client could ask.
        out.decision = Decided::Deny;
        out.reason = Some(format!("{} Nobody else can be asked, so it does not run.", out.reason.unwrap_or_default()));
    }
    Ok(out)
}

/// Whether a tool's answer says that it did not work.
fn has_failed(response: &Value) -> bool {
    let says = |name: &str| response.get(name).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)));
    says("error") || says("is_error") || says("isError") || says("interrupted")
}

/// Whether an answer is worth waiting for another one: a person may decide meanwhile.
pub(super) fn waits(answer: &Value) -> bool {
    answer.get("state").and_then(Value::as_str) == Some("held")
}

/// What became of a held call. An approval is not yet the permission: the same call is made once more, and redeems it.
pub(super) fn follow(cx: &mut Cx<'_, '_>, answer: &Value) -> Result<Wait<HookOut>> {
    let out: HookOut = serde_json::from_value(answer.clone()).map_err(|error| Error::invalid("answer", error.to_string()))?;
    let request = out.request_id.as_deref().map(|id| request::find(cx, id)).transpose()?.flatten();
    let state = request.map_or(State::Cancelled, |request| request.state_at(cx.now()));
    Ok(match state {
        State::Pending => Wait::NotYet(out),
        _ => Wait::Ready(HookOut { state: "decided".to_owned(), ..out }),
    })
}
