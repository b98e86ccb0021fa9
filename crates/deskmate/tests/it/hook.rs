//! Hooks as clients run them: a fresh process that asks, over HTTP, and as MCP tools.

use std::io::Write;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::desk::{Client, Desk, until};
use super::policy::{answer, as_owner, text};

fn before(command: &str) -> Value {
    json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/srv/p", "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": "t1" })
}

/// Runs `deskmate hook` as a client does.
fn hook(desk: &Desk, args: &[&str], token: Option<&str>, said: &str) -> Output {
    let mut command = desk.command(&[&["hook"], args].concat());
    if let Some(token) = token {
        command.env("DESKMATE_TOKEN", token);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("piped").write_all(said.as_bytes()).expect("written");
    child.wait_with_output().expect("it ends")
}

fn decision(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    answer(output)["hookSpecificOutput"]["permissionDecision"].clone()
}

#[test]
fn a_hook_allows_refuses_and_fails_closed() {
    let desk = Desk::new();
    let said = before("ls").to_string();
    let away = hook(&desk, &[], None, &said);
    assert_eq!(away.status.code(), Some(2), "without a server nothing runs");
    assert!(text(&away.stderr).contains("does not run"), "{}", text(&away.stderr));
    let told = hook(&desk, &[], None, &json!({ "hook_event_name": "Stop" }).to_string());
    assert_eq!(told.status.code(), Some(1), "what is only told never blocks the agent");
    desk.up();
    assert_eq!(decision(&hook(&desk, &[], None, &said)), "allow");
    assert_eq!(decision(&hook(&desk, &[], None, &before("rm -rf /").to_string())), "deny");
    for bad in ["", "no json", "[1]", "{}", "{\"hook_event_name\":\"PreToolUse\"}", "{\"hook_event_name\":\"Mystery\"}"] {
        assert_eq!(hook(&desk, &[], None, bad).status.code(), Some(2), "{bad}");
    }
    let gemini = json!({ "hook_event_name": "BeforeTool", "cwd": "/srv/p", "tool_name": "run_shell_command", "tool_input": { "command": "ls" } });
    assert_eq!(answer(&hook(&desk, &["--client", "gemini"], None, &gemini.to_string())), json!({ "decision": "allow" }));
    let cursor = json!({ "hook_event_name": "preToolUse", "workspace_roots": ["/srv/p"], "tool_name": "Shell", "tool_input": { "command": "rm -rf ~" } });
    assert_eq!(answer(&hook(&desk, &["--client", "cursor"], None, &cursor.to_string()))["permission"], "deny");
    assert_eq!(answer(&hook(&desk, &["--client", "codex"], None, &said)), json!({}), "Codex goes on by itself");
    desk.kill_server();
    assert_eq!(hook(&desk, &[], None, &said).status.code(), Some(2), "a server that was killed lets nothing run");
}

#[test]
fn a_held_call_goes_on_when_a_person_approves_it() {
    let desk = Desk::new();
    let token = desk.register("code");
    let said = before("touch a").to_string();
    assert_eq!(hook(&desk, &[], None, &said).status.code(), Some(2), "a name is not enough once an agent is registered");
    let began = Instant::now();
    let put_off = hook(&desk, &["--hold", "1"], Some(&token), &said);
    assert_eq!(decision(&put_off), "deny");
    assert!(text(&put_off.stdout).contains("inbox") && began.elapsed() >= Duration::from_secs(1));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| hook(&desk, &["--hold", "25"], Some(&token), &said));
        let listed = answer(&as_owner(&desk, &["inbox", "list", "--json"]));
        let id = listed["requests"][0]["request"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned();
        let approved = as_owner(&desk, &["inbox", "approve", &id]);
        assert!(approved.status.success(), "{}", text(&approved.stderr));
        let output = waiting.join().expect("it ends");
        assert_eq!(decision(&output), "allow");
        assert!(text(&output.stdout).contains("approved exactly this"), "{}", text(&output.stdout));
    });
    let again = hook(&desk, &["--hold", "0"], Some(&token), &said);
    assert_eq!(decision(&again), "deny", "once");
}

#[test]
fn the_same_over_http_and_as_mcp_tools() {
    let desk = Desk::new();
    let url = desk.up();
    let post = |path: &str, headers: &[(&str, &str)], body: &Value| {
        let answer = super::http::post(&url, path, headers, &body.to_string());
        (answer.status, serde_json::from_str::<Value>(&answer.body).unwrap_or_default())
    };
    let (status, allowed) = post("/hook", &[("x-deskmate-agent", "code")], &before("ls"));
    assert_eq!((status, &allowed["hookSpecificOutput"]["permissionDecision"]), (200, &json!("allow")), "{allowed}");
    let (status, denied) = post(
        "/hook?agent=code&client=gemini",
        &[],
        &json!({ "hook_event_name": "BeforeTool", "cwd": "/srv/p", "tool_name": "run_shell_command", "tool_input": { "command": "rm -rf /" } }),
    );
    assert_eq!((status, &denied["decision"]), (200, &json!("deny")), "{denied}");
    assert_eq!(post("/hook", &[], &before("ls")).0, 401, "who calls must be known");
    assert_eq!(post("/hook?client=other", &[("x-deskmate-agent", "code")], &before("ls")).0, 400);
    assert_eq!(post("/hook", &[("x-deskmate-agent", "code"), ("origin", "http://evil.example")], &before("ls")).0, 403);
    assert_eq!(post("/hook", &[("x-deskmate-agent", "code")], &json!([1])).0, 400);
    let mut client = Client::start(&desk, &["--toolset", "hook", "--agent", "code"]);
    client.initialize("2025-11-25");
    let listed = client.call("tools/list", json!({}));
    let tools = listed["tools"].as_array().expect("a list");
    assert_eq!(tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default()).collect::<Vec<_>>(), ["hook_event", "hook_permission"]);
    assert!(tools.iter().all(|tool| tool.get("outputSchema").is_none()));
    let said = |result: &Value| {
        assert_eq!((result["content"].as_array().map(Vec::len), result.get("structuredContent")), (Some(1), None), "{result}");
        serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap_or_default()).expect("JSON in a text")
    };
    let allowed = client.tool("hook_permission", json!({ "tool_name": "Bash", "input": { "command": "echo hi" }, "tool_use_id": "x", "cwd": "/srv/p" }));
    assert_eq!(said(&allowed), json!({ "behavior": "allow", "updatedInput": { "command": "echo hi" } }));
    let denied = client.tool("hook_permission", json!({ "tool_name": "Bash", "input": { "command": "rm -rf /" } }));
    assert_eq!(said(&denied)["behavior"], "deny");
    let mut written = before("ls");
    written["tool_input"] = json!("{\"command\":\"ls\"}");
    assert_eq!(said(&client.tool("hook_event", written))["hookSpecificOutput"]["permissionDecision"], "allow");
    // A project can name a server as it likes, so what is filled in says where it comes from, and silence asks.
    let mut of_desk = before("ls");
    of_desk["tool_name"] = json!("mcp__desk__bridge_read_messages");
    for (source, answer) in [(Some("user"), "allow"), (Some("project"), "deny"), (Some(""), "deny"), (None, "deny")] {
        of_desk["mcp_source"] = json!(source);
        of_desk["timeout_seconds"] = json!(0);
        assert_eq!(said(&client.tool("hook_event", of_desk.clone()))["hookSpecificOutput"]["permissionDecision"], answer, "{source:?}");
    }
    // Its settings may know the desk by another name; then no other server is the desk.
    let named = [
        ("work", json!({ "mcp_source": "user", "desk_server": "work" }), "allow"),
        ("desk", json!({ "mcp_source": "user", "desk_server": "work" }), "deny"),
        ("desk", json!({ "mcp_source": "project", "desk_in_project": true }), "allow"),
    ];
    for (server, settled, answer) in named {
        let mut asked = of_desk.clone();
        asked["tool_name"] = json!(format!("mcp__{server}__bridge_read_messages"));
        asked.as_object_mut().unwrap().extend(settled.as_object().unwrap().clone());
        assert_eq!(said(&client.tool("hook_event", asked))["hookSpecificOutput"]["permissionDecision"], answer, "{server} {settled}");
    }
    // What waits keeps it from stopping, unless it goes on already.
    let sent = desk.run(&["call", "bridge_send_message", "--agent", "cowork", "to=code", "content=look at this"]);
    assert!(sent.status.success(), "{sent:?}");
    let mut stop = |active: &str| said(&client.tool("hook_event", json!({ "hook_event_name": "Stop", "session_id": "s", "stop_hook_active": active })));
    assert_eq!(stop("true").get("decision"), None);
    let kept = stop("false");
    assert!(kept["decision"] == "block" && kept["reason"].as_str().unwrap_or_default().contains("look at this"), "{kept}");
    let prompt = json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s" });
    assert!(said(&client.tool("hook_event", prompt))["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().contains("look at this"));
    let mut others = Client::start(&desk, &["--agent", "code"]);
    others.initialize("2025-11-25");
    let all = others.call("tools/list", json!({})).to_string();
    assert!(!all.contains("hook_event"), "no model is offered them");
}

#[test]
fn settings_and_the_starter_policy_can_be_printed() {
    let desk = Desk::new();
    let printed = answer(&desk.run(&["hook", "print-config", "--client", "claude-code", "--agent", "my agent"]));
    let entry = &printed["hooks"]["PreToolUse"][0]["hooks"][0];
    assert_eq!(entry["onFailure"], "block");
    assert!(entry["command"].as_str().is_some_and(|command| command.contains("hook --agent 'my agent'")), "{entry}");
    for client in ["codex", "gemini", "cursor"] {
        let printed = desk.run(&["hook", "print-config", "--client", client]);
        assert!(text(&printed.stdout).contains(&format!("hook --client {client}")), "{client}");
    }
    // Whatever is said to it is in what it prints, in every form, or it is refused.
    let with = ["--hold", "7", "--server", "my work", "--project-server"];
    let printed = |form: &str, more: &[&str]| desk.run(&[&["hook", "print-config", "--form", form][..], &with, more].concat());
    let entry = |output: &Output| answer(output)["hooks"]["PreToolUse"][0]["hooks"][0].clone();
    let command = entry(&printed("command", &[]));
    assert!(command["command"].as_str().is_some_and(|command| command.contains("hook --hold 7 --server 'my work' --project-server")), "{command}");
    let tool = entry(&printed("mcp-tool", &[]));
    assert_eq!((&tool["server"], &tool["input"]["desk_server"]), (&json!("my work"), &json!("my work")));
    assert_eq!((&tool["input"]["timeout_seconds"], &tool["input"]["desk_in_project"]), (&json!(7), &json!(true)));
    for (form, more) in [("mcp-tool", ["--agent", "code"]), ("mcp-tool", ["--token-file", "x"]), ("http", ["--token-file", "x"])] {
        let refused = printed(form, &more);
        assert!(!refused.status.success() && text(&refused.stderr).contains(more[0].trim_start_matches('-')), "{form}: {}", text(&refused.stderr));
    }
    let url = desk.up();
    let proved = entry(&printed("http", &[]));
    assert_eq!(proved["url"].as_str(), Some(format!("{url}/hook?hold=7&server=my+work&project_server=true").as_str()), "{proved}");
    assert_eq!(proved["headers"]["Authorization"], "Bearer $DESKMATE_TOKEN");
    let named = entry(&printed("http", &["--agent", "code"]));
    assert_eq!(named["headers"], json!({ "X-Deskmate-Agent": "code" }));
    // What the address says is heeded: only what is named so is the desk's own.
    let asks = |server: &str| {
        let mut said = before("ls");
        said["tool_name"] = json!(format!("mcp__{server}__bridge_read_messages"));
        said["mcp_server"] = json!({ "source": "project" });
        let path = "/hook?hold=0&server=work&project_server=true";
        let answer = super::http::post(&url, path, &[("x-deskmate-agent", "code")], &said.to_string());
        serde_json::from_str::<Value>(&answer.body).unwrap_or_default()["hookSpecificOutput"]["permissionDecision"].clone()
    };
    assert_eq!((asks("work"), asks("desk")), (json!("allow"), json!("deny")));
    let policy = text(&desk.run(&["hook", "print-policy"]).stdout);
    let path = desk.path().join("starter.yaml");
    std::fs::write(&path, &policy).expect("written");
    let tested = desk.run(&["policy", "test", path.to_str().expect("a path")]);
    assert!(tested.status.success(), "{}", text(&tested.stderr));
}

#[test]
fn a_desk_that_only_observes_says_so_everywhere() {
    let desk = Desk::new();
    std::fs::write(desk.path().join("deskmate.yaml"), "hooks: { mode: observe }\n").expect("written");
    let token = desk.register("code");
    let observed = hook(&desk, &[], Some(&token), &before("rm -rf /").to_string());
    let said = answer(&observed);
    assert!(said.get("hookSpecificOutput").is_none() && said["systemMessage"].as_str().is_some_and(|text| text.contains("NOTHING IS ENFORCED")), "{said}");
    let status = until("the status", || Some(text(&desk.run(&["status"]).stdout)).filter(|status| status.contains("OBSERVE")));
    assert!(status.contains("nothing is enforced"), "{status}");
}
