//! The forms in which clients speak of the same few events.

use deskmate_core::hook::{Decided, HookOut};
use serde_json::{Map, Value, json};

/// The clients that have hooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Client {
    /// Claude Code
    #[default]
    ClaudeCode,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// Cursor
    Cursor,
}

/// What a person at the client is shown where nothing is enforced.
const OBSERVES: &str = "Deskmate only observes: NOTHING IS ENFORCED.";

impl Client {
    /// The name by which it is chosen, and by which its agent goes if nobody names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
        }
    }

    /// What it calls the event before a tool is used.
    pub(crate) fn asks(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::Codex => "PreToolUse",
            Self::Gemini => "BeforeTool",
            Self::Cursor => "preToolUse",
        }
    }

    /// The client of a name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        [Self::ClaudeCode, Self::Codex, Self::Gemini, Self::Cursor].into_iter().find(|client| client.name() == name)
    }

    /// Whether a call waits for the answer to this: then a failure must stop it. What cannot be read does.
    pub(crate) fn is_asked(payload: &Value) -> bool {
        let name = payload.get("hook_event_name").and_then(Value::as_str).unwrap_or_default();
        !matches!(
            name,
            "PostToolUse"
                | "PostToolUseFailure"
                | "UserPromptSubmit"
                | "SessionStart"
                | "Stop"
                | "SubagentStop"
                | "AfterTool"
                | "BeforeAgent"
                | "AfterAgent"
                | "postToolUse"
                | "postToolUseFailure"
                | "sessionStart"
                | "stop"
                | "beforeSubmitPrompt"
                | "afterShellExecution"
                | "afterFileEdit"
                | "afterMCPExecution"
                | "SessionEnd"
                | "sessionEnd"
        )
    }

    /// What a client says, as the operation takes it: the events by one name, and without what nobody needs.
    pub(crate) fn incoming(self, payload: &Value) -> Value {
        let mut input = payload.as_object().cloned().unwrap_or_default();
        let event = payload.get("hook_event_name").and_then(Value::as_str).unwrap_or_default();
        let (name, tool) = canonical(event);
        if let Some(response) = input.remove("tool_response").or_else(|| input.remove("tool_output")) {
            input.insert("tool_response".to_owned(), outcome(&response));
        }
        if self == Self::Cursor {
            of_cursor(&mut input, tool);
        }
        input.insert("hook_event_name".to_owned(), json!(name));
        // Only the client's own word says where a server comes from; what a payload says in our words is not it.
        input.remove("mcp_source");
        if let Some(source) = payload.pointer("/mcp_server/source") {
            input.insert("mcp_source".to_owned(), source.clone());
        }
        let kept = [
            "hook_event_name",
            "tool_name",
            "tool_input",
            "tool_response",
            "tool_use_id",
            "session_id",
            "cwd",
            "mcp_source",
            "stop_hook_active",
            "timeout_seconds",
        ];
        taken(input, &kept)
    }

    /// What a client is answered.
    pub(crate) fn outgoing(self, payload: &Value, out: &HookOut) -> Value {
        let event = payload.get("hook_event_name").and_then(Value::as_str).unwrap_or_default();
        let mut answer = match self {
            Self::ClaudeCode | Self::Codex => self.of_claude(event, out),
            Self::Gemini => of_gemini(event, out),
            Self::Cursor => return to_cursor(event, out),
        };
        if out.observe
            && let Some(fields) = answer.as_object_mut()
        {
            let message = out.reason.as_deref().filter(|_| out.state == "observed").unwrap_or(OBSERVES);
            fields.insert("systemMessage".to_owned(), json!(message));
        }
        answer
    }

    fn of_claude(self, event: &str, out: &HookOut) -> Value {
        let specific = |mut fields: Map<String, Value>| {
            fields.insert("hookEventName".to_owned(), json!(event));
            json!({ "hookSpecificOutput": fields })
        };
        let mut fields = Map::new();
        match (canonical(event).0, out.decision) {
            ("PreToolUse", Decided::Deny) => {
                fields.insert("permissionDecision".to_owned(), json!("deny"));
                fields.insert("permissionDecisionReason".to_owned(), json!(out.reason));
            }
            // Codex takes no such word: what is not denied goes on to its own approval.
            ("PreToolUse", Decided::Allow) if self == Self::ClaudeCode => {
                fields.insert("permissionDecision".to_owned(), json!("allow"));
                fields.insert("permissionDecisionReason".to_owned(), json!(out.reason.as_deref().unwrap_or("allowed by Deskmate")));
            }
            ("PermissionRequest", Decided::Deny) => drop(fields.insert("decision".to_owned(), json!({ "behavior": "deny", "message": out.reason }))),
            ("PermissionRequest", Decided::Allow) => drop(fields.insert("decision".to_owned(), json!({ "behavior": "allow" }))),
            ("Stop", _) if out.wakes => return json!({ "decision": "block", "reason": out.reason }),
            ("UserPromptSubmit" | "SessionStart" | "PostToolUse" | "PostToolUseFailure", _) => {
                if let Some(context) = &out.context {
                    fields.insert("additionalContext".to_owned(), json!(context));
                }
            }
            _ => {}
        }
        if fields.is_empty() { json!({}) } else { specific(fields) }
    }
}

/// What a client says that asks instead of prompting its person, without what nobody needs.
pub(crate) fn question(payload: &Value) -> Value {
    taken(payload.as_object().cloned().unwrap_or_default(), &["tool_name", "input", "tool_use_id", "cwd", "timeout_seconds"])
}

/// These fields; clients add others as they grow.
fn taken(mut input: Map<String, Value>, fields: &[&str]) -> Value {
    input.retain(|name, value| fields.contains(&name.as_str()) && !value.is_null());
    Value::Object(input)
}

/// The event by its one name, and the tool that it is about where its own name says so.
fn canonical(event: &str) -> (&str, Option<&'static str>) {
    match event {
        "BeforeTool" | "preToolUse" => ("PreToolUse", None),
        "beforeShellExecution" => ("PreToolUse", Some("Shell")),
        "beforeReadFile" => ("PreToolUse", Some("Read")),
        "beforeMCPExecution" => ("PreToolUse", Some("MCP")),
        "AfterTool" | "postToolUse" | "afterMCPExecution" => ("PostToolUse", None),
        "afterShellExecution" => ("PostToolUse", Some("Shell")),
        "afterFileEdit" => ("PostToolUse", Some("Write")),
        "postToolUseFailure" => ("PostToolUseFailure", None),
        "BeforeAgent" | "beforeSubmitPrompt" => ("UserPromptSubmit", None),
        "AfterAgent" | "stop" | "SubagentStop" => ("Stop", None),
        "sessionStart" => ("SessionStart", None),
        other => (other, None),
    }
}

/// What is kept of a tool's answer: whether it worked.
fn outcome(response: &Value) -> Value {
    let says = |name: &str| response.get(name).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)));
    json!({ "is_error": says("error") || says("is_error") || says("isError") || says("interrupted") })
}

/// Cursor has a word of its own for most things.
fn of_cursor(input: &mut Map<String, Value>, tool: Option<&'static str>) {
    if let Some(id) = input.remove("conversation_id") {
        input.entry("session_id").or_insert(id);
    }
    if let Some(tool) = tool {
        let named = input.get("tool_name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if tool == "MCP" {
            input.insert("tool_name".to_owned(), json!(format!("mcp__cursor__{named}")));
        } else {
            input.insert("tool_name".to_owned(), json!(tool));
            let part = |name: &str| input.get(name).cloned();
            let own = json!({ "command": part("command"), "file_path": part("file_path") });
            input.insert("tool_input".to_owned(), own);
        }
    }
    if let Some(Value::String(text)) = input.get("tool_input")
        && let Ok(parsed) = serde_json::from_str::<Value>(text)
    {
        input.insert("tool_input".to_owned(), parsed);
    }
    // The project is what is open; where the shell stands is a matter of the call.
    let root = input.get("workspace_roots").and_then(|roots| roots.get(0)).cloned();
    if let Some(root) = root.filter(Value::is_string) {
        let stood = input.insert("cwd".to_owned(), root.clone()).filter(|stood| *stood != root);
        if let (Some(stood), Some(fields)) = (stood, input.get_mut("tool_input").and_then(Value::as_object_mut)) {
            fields.entry("working_directory").or_insert(stood);
        }
    }
}

fn of_gemini(event: &str, out: &HookOut) -> Value {
    match (canonical(event).0, out.decision) {
        ("PreToolUse", Decided::Deny) => json!({ "decision": "deny", "reason": out.reason }),
        ("PreToolUse", Decided::Allow) => json!({ "decision": "allow" }),
        ("Stop", _) if out.wakes => json!({ "decision": "deny", "reason": out.reason }),
        ("UserPromptSubmit" | "SessionStart" | "PostToolUse", _) => {
            out.context.as_ref().map_or_else(|| json!({}), |context| json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": context } }))
        }
        _ => json!({}),
    }
}

fn to_cursor(event: &str, out: &HookOut) -> Value {
    match (canonical(event).0, out.decision) {
        ("PreToolUse", Decided::Deny) => json!({ "permission": "deny", "user_message": out.reason, "agent_message": out.reason }),
        ("PreToolUse", Decided::Allow) => json!({ "permission": "allow" }),
        ("PreToolUse", Decided::None) if out.observe => json!({ "permission": "ask", "user_message": out.reason }),
        ("Stop", _) if out.wakes => json!({ "followup_message": out.reason }),
        ("SessionStart" | "PostToolUse" | "PostToolUseFailure", _) => {
            out.context.as_ref().map_or_else(|| json!({}), |context| json!({ "additional_context": context }))
        }
        ("UserPromptSubmit", _) => json!({ "continue": true }),
        _ => json!({}),
    }
}

/// What Claude Code's `--permission-prompt-tool` is answered: an allowed call runs with exactly the input that was asked about.
pub(crate) fn permission(input: &Value, out: &HookOut) -> Value {
    match out.decision {
        Decided::Allow => json!({ "behavior": "allow", "updatedInput": input }),
        Decided::Deny | Decided::None => json!({ "behavior": "deny", "message": out.reason }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(decision: Decided) -> HookOut {
        HookOut {
            decision,
            state: "passed".to_owned(),
            reason: Some("why".to_owned()),
            context: Some("news".to_owned()),
            wakes: true,
            observe: false,
            request_id: None,
        }
    }

    #[test]
    fn every_client_is_answered_in_its_own_words() {
        let said = |client: Client, event: &str, decision| client.outgoing(&json!({ "hook_event_name": event }), &out(decision));
        let (claude, codex) = (Client::ClaudeCode, Client::Codex);
        assert_eq!(said(claude, "PreToolUse", Decided::Allow)["hookSpecificOutput"]["permissionDecision"], "allow");
        assert_eq!(said(claude, "PreToolUse", Decided::Deny)["hookSpecificOutput"]["permissionDecisionReason"], "why");
        assert_eq!(said(claude, "PermissionRequest", Decided::Allow)["hookSpecificOutput"]["decision"], json!({ "behavior": "allow" }));
        assert_eq!(said(claude, "PermissionRequest", Decided::Deny)["hookSpecificOutput"]["decision"]["behavior"], "deny");
        assert_eq!(said(claude, "UserPromptSubmit", Decided::None)["hookSpecificOutput"]["additionalContext"], "news");
        assert_eq!(said(claude, "Stop", Decided::None), json!({ "decision": "block", "reason": "why" }));
        assert_eq!(said(codex, "PreToolUse", Decided::Allow), json!({}));
        assert_eq!(said(codex, "PreToolUse", Decided::Deny)["hookSpecificOutput"]["permissionDecision"], "deny");
        assert_eq!(said(Client::Gemini, "BeforeTool", Decided::Deny), json!({ "decision": "deny", "reason": "why" }));
        assert_eq!(said(Client::Gemini, "BeforeTool", Decided::Allow), json!({ "decision": "allow" }));
        assert_eq!(said(Client::Gemini, "BeforeAgent", Decided::None)["hookSpecificOutput"]["additionalContext"], "news");
        assert_eq!(said(Client::Gemini, "AfterAgent", Decided::None)["decision"], "deny");
        assert_eq!(said(Client::Cursor, "preToolUse", Decided::Deny)["permission"], "deny");
        assert_eq!(said(Client::Cursor, "beforeShellExecution", Decided::Allow), json!({ "permission": "allow" }));
        assert_eq!(said(Client::Cursor, "stop", Decided::None)["followup_message"], "why");
        assert_eq!(permission(&json!({ "a": 1 }), &out(Decided::Allow)), json!({ "behavior": "allow", "updatedInput": { "a": 1 } }));
        assert_eq!(permission(&json!({}), &out(Decided::None))["behavior"], "deny");
    }

    #[test]
    fn a_desk_that_observes_says_so_and_allows_nothing() {
        let observes = HookOut { observe: true, decision: Decided::None, state: "observed".to_owned(), ..out(Decided::None) };
        let answer = Client::ClaudeCode.outgoing(&json!({ "hook_event_name": "PreToolUse" }), &observes);
        assert_eq!(answer, json!({ "systemMessage": "why" }));
        let told = HookOut { state: "noted".to_owned(), wakes: false, context: None, ..observes };
        assert_eq!(Client::Gemini.outgoing(&json!({ "hook_event_name": "AfterAgent" }), &told), json!({ "systemMessage": OBSERVES }));
    }

    #[test]
    fn what_clients_say_is_taken_in_one_form() {
        let gemini = json!({ "hook_event_name": "AfterTool", "tool_name": "read_file", "tool_input": { "file_path": "a" }, "tool_response": { "llmContent": "x".repeat(100), "error": "no" }, "session_id": "s", "cwd": "/p", "transcript_path": "/t" });
        assert_eq!(
            Client::Gemini.incoming(&gemini),
            json!({ "hook_event_name": "PostToolUse", "tool_name": "read_file", "tool_input": { "file_path": "a" }, "tool_response": { "is_error": true }, "session_id": "s", "cwd": "/p" })
        );
        let cursor = json!({ "hook_event_name": "beforeShellExecution", "conversation_id": "c", "command": "ls", "cwd": "/p/sub", "workspace_roots": ["/p"] });
        let taken = Client::Cursor.incoming(&cursor);
        assert_eq!((&taken["tool_name"], &taken["cwd"], &taken["session_id"]), (&json!("Shell"), &json!("/p"), &json!("c")));
        assert_eq!((&taken["tool_input"]["command"], &taken["tool_input"]["working_directory"]), (&json!("ls"), &json!("/p/sub")));
        let mcp = json!({ "hook_event_name": "beforeMCPExecution", "tool_name": "update", "tool_input": "{\"a\":1}" });
        assert_eq!(
            (&Client::Cursor.incoming(&mcp)["tool_name"], &Client::Cursor.incoming(&mcp)["tool_input"]),
            (&json!("mcp__cursor__update"), &json!({ "a": 1 }))
        );
    }

    #[test]
    fn what_waits_for_an_answer_is_stopped_by_a_failure() {
        for event in ["PreToolUse", "PermissionRequest", "BeforeTool", "preToolUse", "beforeShellExecution", "Something", ""] {
            assert!(Client::is_asked(&json!({ "hook_event_name": event })), "{event}");
        }
        assert!(Client::is_asked(&Value::Null));
        for event in ["PostToolUse", "UserPromptSubmit", "SessionStart", "Stop", "AfterAgent"] {
            assert!(!Client::is_asked(&json!({ "hook_event_name": event })), "{event}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Whatever a client says, it becomes an input with an event by name, and the way back is JSON.
        #[test]
        fn any_bytes_are_taken_in_or_refused(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..100),
            fields in proptest::collection::btree_map(
                "(hook_event_name|tool_name|tool_input|tool_response|tool_output|command|url|edits|session_id|[a-z]{1,3})",
                "(null|[1-9][0-9]{0,2}|true|\\[[0-9]?\\]|\"[a-zA-Z_é:]{0,12}\"|\\{\"[a-z]{0,8}\":\\[\"x\"\\]\\})",
                0..8,
            ),
        ) {
            let fields = fields.into_iter().map(|(name, value)| (name, serde_json::from_str(&value).expect("JSON"))).collect();
            let payloads = [Value::Object(fields), serde_json::from_slice(&bytes).unwrap_or_default()];
            for (payload, client) in payloads.iter().flat_map(|payload| [Client::ClaudeCode, Client::Codex, Client::Gemini, Client::Cursor].map(|client| (payload, client))) {
                assert!(client.incoming(payload)["hook_event_name"].is_string());
                drop(client.outgoing(payload, &out(Decided::Deny)));
            }
        }
    }
}
