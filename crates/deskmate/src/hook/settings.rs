//! The settings that make a client ask the desk: pure, for whoever prints or writes them.

use serde_json::{Value, json};

use super::Client;

/// Longer than the desk ever holds a call, in seconds.
const HOLDING: u32 = 40;
/// For what is only told, in seconds.
const TELLING: u32 = 10;

/// The settings of Claude Code: whatever runs a tool asks first, and where the desk cannot be asked it does not run.
pub(crate) fn claude_code(command: &str) -> Value {
    of_claude(&json!({ "type": "command", "command": command }))
}

/// The same over HTTP: no program is started for each step.
pub(crate) fn claude_code_http(url: &str) -> Value {
    let headers = json!({ "Authorization": "Bearer $DESKMATE_TOKEN" });
    of_claude(&json!({ "type": "http", "url": format!("{url}/hook"), "headers": headers, "allowedEnvVars": ["DESKMATE_TOKEN"] }))
}

/// The same as a tool of an MCP server that the client is connected to. Before it is connected nobody can be told anything, so
/// only what is about tools is.
pub(crate) fn claude_code_mcp_tool(server: &str) -> Value {
    let names = ["hook_event_name", "tool_name", "tool_input", "tool_use_id", "session_id", "cwd"];
    let input: serde_json::Map<String, Value> = names.into_iter().map(|name| (name.to_owned(), json!(format!("${{{name}}}")))).collect();
    let mut settings = of_claude(&json!({ "type": "mcp_tool", "server": server, "tool": "hook_event", "input": input }));
    if let Some(hooks) = settings.get_mut("hooks").and_then(Value::as_object_mut) {
        hooks.retain(|event, _| matches!(event.as_str(), "PreToolUse" | "PermissionRequest" | "PostToolUse" | "PostToolUseFailure"));
    }
    settings
}

fn of_claude(hook: &Value) -> Value {
    let with = |more: Value| {
        let mut hook = hook.clone();
        if let (Some(hook), Value::Object(more)) = (hook.as_object_mut(), more) {
            hook.extend(more);
        }
        hook
    };
    let asks = json!({ "matcher": "*", "hooks": [with(json!({ "timeout": HOLDING, "onFailure": "block" }))] });
    let tells = json!({ "matcher": "*", "hooks": [with(json!({ "timeout": TELLING }))] });
    let hears = json!({ "hooks": [with(json!({ "timeout": TELLING }))] });
    json!({ "hooks": {
        "PreToolUse": [asks], "PermissionRequest": [asks], "PostToolUse": [tells], "PostToolUseFailure": [tells],
        "UserPromptSubmit": [hears], "SessionStart": [hears], "Stop": [hears],
    } })
}

/// `hooks.json` of Codex.
pub(crate) fn codex(command: &str) -> Value {
    let on_tools = |seconds: u32| json!([{ "matcher": ".*", "hooks": [{ "type": "command", "command": command, "timeout": seconds }] }]);
    let hears = json!([{ "hooks": [{ "type": "command", "command": command, "timeout": TELLING }] }]);
    json!({ "hooks": {
        "PreToolUse": on_tools(HOLDING), "PermissionRequest": on_tools(HOLDING), "PostToolUse": on_tools(TELLING),
        "UserPromptSubmit": hears, "SessionStart": hears, "Stop": hears,
    } })
}

/// The settings of Gemini CLI, which counts milliseconds.
pub(crate) fn gemini(command: &str) -> Value {
    let hook = |seconds: u32| json!({ "type": "command", "name": "deskmate", "command": command, "timeout": seconds * 1_000 });
    let on_tools = |seconds: u32| json!([{ "matcher": ".*", "hooks": [hook(seconds)] }]);
    let hears = json!([{ "hooks": [hook(TELLING)] }]);
    json!({ "hooks": { "BeforeTool": on_tools(HOLDING), "AfterTool": on_tools(TELLING), "BeforeAgent": hears, "SessionStart": hears, "AfterAgent": hears } })
}

/// `hooks.json` of Cursor.
pub(crate) fn cursor(command: &str) -> Value {
    let asks = json!([{ "command": command, "timeout": HOLDING, "failClosed": true }]);
    let tells = json!([{ "command": command, "timeout": TELLING }]);
    json!({ "version": 1, "hooks": { "preToolUse": asks, "postToolUse": tells, "postToolUseFailure": tells, "sessionStart": tells, "stop": tells } })
}

/// The settings of a client.
pub(crate) fn of(client: Client, command: &str) -> Value {
    match client {
        Client::ClaudeCode => claude_code(command),
        Client::Codex => codex(command),
        Client::Gemini => gemini(command),
        Client::Cursor => cursor(command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_fails_closed_and_what_tells_does_not_block() {
        let settings = claude_code("desk hook");
        for settings in [&settings, &claude_code_http("http://127.0.0.1:1"), &claude_code_mcp_tool("gate")] {
            for event in ["PreToolUse", "PermissionRequest"] {
                assert_eq!(settings["hooks"][event][0]["hooks"][0]["onFailure"], "block", "{event}");
                assert_eq!(settings["hooks"][event][0]["matcher"], "*");
            }
        }
        assert!(claude_code_mcp_tool("gate")["hooks"].get("SessionStart").is_none());
        for event in ["PostToolUse", "UserPromptSubmit", "SessionStart", "Stop"] {
            assert_eq!(settings["hooks"][event][0]["hooks"][0].get("onFailure"), None, "{event}");
        }
        assert_eq!(cursor("x")["hooks"]["preToolUse"][0]["failClosed"], true);
        assert_eq!(gemini("x")["hooks"]["BeforeTool"][0]["hooks"][0]["timeout"], 40_000);
        assert_eq!(codex("x")["hooks"]["PreToolUse"][0]["hooks"][0]["command"], "x");
    }
}
