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

/// What a client says with every question, besides what happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said<'a> {
    /// How many seconds a call waits for a person; what the desk is set to if not given.
    pub(crate) hold: Option<u64>,
    /// The name of the desk's own MCP server at the client.
    pub(crate) server: Option<&'a str>,
    /// Whether a file of the project names it.
    pub(crate) in_project: bool,
}

impl Said<'_> {
    /// As the address of the desk says it.
    pub(crate) fn query(self, more: &[(&str, &str)]) -> String {
        let mut pairs = url::form_urlencoded::Serializer::new(String::new());
        pairs.extend_pairs(more);
        if let Some(hold) = self.hold {
            pairs.append_pair("hold", &hold.to_string());
        }
        if let Some(server) = self.server {
            pairs.append_pair("server", server);
        }
        if self.in_project {
            pairs.append_pair("project_server", "true");
        }
        let query = pairs.finish();
        if query.is_empty() { query } else { format!("?{query}") }
    }
}

/// The same over HTTP: no program is started for each step. Who calls is proved by a token, or, while no agent is registered, named.
pub(crate) fn claude_code_http(url: &str, agent: Option<&str>, said: Said<'_>) -> Value {
    let mut hook = json!({ "type": "http", "url": format!("{url}/hook{}", said.query(&[])) });
    let who = match agent {
        Some(agent) => json!({ "headers": { "X-Deskmate-Agent": agent } }),
        None => json!({ "headers": { "Authorization": "Bearer $DESKMATE_TOKEN" }, "allowedEnvVars": ["DESKMATE_TOKEN"] }),
    };
    if let (Some(hook), Value::Object(who)) = (hook.as_object_mut(), who) {
        hook.extend(who);
    }
    of_claude(&hook)
}

/// The same as a tool of an MCP server that the client is connected to. Before it is connected nobody can be told anything, so
/// nothing is when a session begins.
pub(crate) fn claude_code_mcp_tool(said: Said<'_>) -> Value {
    let names = ["hook_event_name", "tool_name", "tool_input", "tool_use_id", "session_id", "cwd"];
    let mut input: serde_json::Map<String, Value> = names.into_iter().map(|name| (name.to_owned(), json!(format!("${{{name}}}")))).collect();
    // For tools of the client's own, it fills in nothing.
    input.insert("mcp_source".to_owned(), json!("${mcp_server.source}"));
    if let Some(hold) = said.hold {
        input.insert("timeout_seconds".to_owned(), json!(hold));
    }
    if let Some(server) = said.server {
        input.insert("desk_server".to_owned(), json!(server));
    }
    if said.in_project {
        input.insert("desk_in_project".to_owned(), json!(true));
    }
    let mut settings = of_claude(&json!({ "type": "mcp_tool", "server": said.server.unwrap_or("desk"), "tool": "hook_event", "input": input }));
    if let Some(hooks) = settings.get_mut("hooks").and_then(Value::as_object_mut) {
        hooks.remove("SessionStart");
        // Of all events only this one has it.
        if let Some(input) = hooks.get_mut("Stop").and_then(|stop| stop.pointer_mut("/0/hooks/0/input")).and_then(Value::as_object_mut) {
            input.insert("stop_hook_active".to_owned(), json!("${stop_hook_active}"));
        }
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
        for settings in [&settings, &claude_code_http("http://127.0.0.1:1", None, Said::default()), &claude_code_mcp_tool(Said::default())] {
            for event in ["PreToolUse", "PermissionRequest"] {
                assert_eq!(settings["hooks"][event][0]["hooks"][0]["onFailure"], "block", "{event}");
                assert_eq!(settings["hooks"][event][0]["matcher"], "*");
            }
        }
        let asked = claude_code_mcp_tool(Said::default());
        assert!(asked["hooks"].get("SessionStart").is_none());
        let input = |event: &str| asked["hooks"][event][0]["hooks"][0]["input"].clone();
        assert_eq!(
            (&input("UserPromptSubmit")["hook_event_name"], &input("Stop")["hook_event_name"]),
            (&json!("${hook_event_name}"), &json!("${hook_event_name}"))
        );
        assert_eq!((input("Stop")["stop_hook_active"].as_str(), input("UserPromptSubmit").get("stop_hook_active")), (Some("${stop_hook_active}"), None));
        assert_eq!(asked["hooks"]["PreToolUse"][0]["hooks"][0]["input"]["mcp_source"], "${mcp_server.source}");
        for event in ["PostToolUse", "UserPromptSubmit", "SessionStart", "Stop"] {
            assert_eq!(settings["hooks"][event][0]["hooks"][0].get("onFailure"), None, "{event}");
        }
        assert_eq!(cursor("x")["hooks"]["preToolUse"][0]["failClosed"], true);
        assert_eq!(gemini("x")["hooks"]["BeforeTool"][0]["hooks"][0]["timeout"], 40_000);
        assert_eq!(codex("x")["hooks"]["PreToolUse"][0]["hooks"][0]["command"], "x");
    }
}
