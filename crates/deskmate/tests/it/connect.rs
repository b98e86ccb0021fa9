//! `deskmate connect`, `disconnect` and `doctor`, as somebody at a terminal uses them.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use super::desk::Desk;

const CLIENTS: [&str; 6] = ["claude-code", "claude-desktop", "codex", "cursor", "gemini", "vscode"];

/// Runs the binary in a project's folder, with a token in the environment or without one.
fn run(desk: &Desk, token: Option<&str>, args: &[&str]) -> Output {
    let project = project(desk);
    let mut command = desk.command(args);
    command.current_dir(project);
    for name in ["XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"] {
        command.env_remove(name);
    }
    if let Some(token) = token {
        command.env("DESKMATE_TOKEN", token);
    }
    command.output().expect("runs")
}

fn project(desk: &Desk) -> PathBuf {
    let project = desk.path().join("project");
    std::fs::create_dir_all(&project).unwrap();
    project
}

fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// How a refused command ended, and what it said.
fn refused(output: &Output) -> (Option<i32>, String) {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    (output.status.code(), String::from_utf8(output.stderr.clone()).unwrap())
}

fn read(desk: &Desk, path: &str) -> String {
    std::fs::read_to_string(desk.path().join(path)).unwrap()
}

/// What doctor says about the clients, and whether all is well.
fn doctor(desk: &Desk, token: Option<&str>, more: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = run(desk, token, &[&["doctor", "--json"], more].concat());
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(told["ok"].as_bool(), Some(output.status.success()), "{told}");
    (output.status.code(), told["clients"].as_array().unwrap().clone())
}

#[test]
fn every_client_is_connected_in_both_ways_and_doctor_tries_them_all() {
    let desk = Desk::new();
    let url = desk.up();
    for client in CLIENTS {
        assert!(good(&run(&desk, None, &["connect", client])).contains("is connected"), "{client}");
        assert!(good(&run(&desk, None, &["connect", client])).contains("already connected"), "{client}");
        if client != "claude-desktop" {
            good(&run(&desk, None, &["connect", client, "--url", "--name", "web", "--toolset", "bridge"]));
            good(&run(&desk, None, &["connect", client, "--scope", "project", "--url", &url]));
        }
    }
    let (code, clients) = doctor(&desk, None, &[]);
    assert_eq!(code, Some(0), "{clients:#?}");
    assert_eq!(clients.len(), 16, "{clients:#?}");
    assert!(clients.iter().all(|client| client["state"] == "ok" && client["said"].as_str().unwrap().contains(" tools")), "{clients:#?}");
    let text = good(&run(&desk, None, &["doctor"]));
    for part in ["data directory", "server", "both answer", "open: agents", "nobody has claimed", "Claude Code", "Programs of agents", "works."] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    for client in CLIENTS {
        let said = good(&run(&desk, None, &["disconnect", client]));
        assert!(said.contains("is disconnected"), "{client}");
        assert_eq!(said.matches("it has another entry for a desk").count(), if client == "claude-desktop" { 0 } else { 2 }, "{said}");
        assert!(good(&run(&desk, None, &["disconnect", client])).contains("not connected"), "{client}");
    }
    assert_eq!(doctor(&desk, None, &[]).1.len(), 10);
}

#[test]
fn claude_desktop_gets_plain_stdio_that_stays() {
    let desk = Desk::new();
    desk.up();
    good(&run(&desk, None, &["connect", "claude-desktop"]));
    let file = ".config/Claude/claude_desktop_config.json";
    let written: Value = serde_json::from_str(&read(&desk, file)).unwrap();
    let home = desk.path().to_str().unwrap();
    assert_eq!(written["mcpServers"]["desk"], json!({ "command": env!("CARGO_BIN_EXE_deskmate"), "args": ["mcp", "--agent", "cowork", "--home", home] }));
    assert!(refused(&run(&desk, None, &["connect", "claude-desktop", "--url"])).1.contains("only programs"));
    let idle = read(&desk, file).replace("\"mcp\"", "\"mcp\", \"--idle-exit\", \"5m\"");
    std::fs::write(desk.path().join(file), idle).unwrap();
    let (code, clients) = doctor(&desk, None, &[]);
    assert_eq!(code, Some(1));
    assert!(
        clients[0]["said"].as_str().unwrap().contains("never starts it again") && clients[0]["fix"] == "deskmate connect claude-desktop --name desk",
        "{clients:?}"
    );
    good(&run(&desk, None, &["connect", "claude-desktop"]));
    assert_eq!(doctor(&desk, None, &[]).0, Some(0), "connecting again mends it");
}

#[test]
fn a_dry_run_changes_nothing_and_starts_nothing() {
    let desk = Desk::new();
    std::fs::write(desk.path().join(".claude.json"), "{\n  \"mine\": 1\n}\n").unwrap();
    let said = good(&run(&desk, None, &["connect", "claude-code", "--dry-run", "--hooks"]));
    for part in [
        "Nothing was changed",
        "--- ~/.claude.json",
        "+  \"mcpServers\": {",
        "--- /dev/null",
        "+++ ~/.claude/settings.json",
        "\"onFailure\": \"block\"",
        "no desk runs",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let told: Value = serde_json::from_str(&good(&run(&desk, None, &["connect", "claude-code", "--dry-run", "--json"]))).unwrap();
    assert_eq!((&told["changed"], &told["dry_run"], told["files"].as_array().map(Vec::len)), (&json!(false), &json!(true), Some(1)));
    let left: Vec<String> = std::fs::read_dir(desk.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(left.len(), 2, "the file and the project: {left:?}");
    assert_eq!(read(&desk, ".claude.json"), "{\n  \"mine\": 1\n}\n");
}

#[test]
fn what_was_there_is_kept_and_the_answer_says_where() {
    let desk = Desk::new();
    desk.up();
    let before = json!({ "mine": 1, "projects": { "/src": { "mcpServers": { "desk": { "command": "deskmate", "args": ["mcp"] } } } } }).to_string();
    std::fs::write(desk.path().join(".claude.json"), &before).unwrap();
    let told: Value = serde_json::from_str(&good(&run(&desk, None, &["connect", "claude-code", "--json"]))).unwrap();
    assert_eq!((&told["client"], &told["scope"], &told["changed"]), (&json!("claude-code"), &json!("user"), &json!(true)));
    let backup = told["files"][0]["backup"].as_str().unwrap();
    assert!(backup.starts_with(desk.path().join("client-backups").to_str().unwrap()), "{backup}");
    assert_eq!(std::fs::read_to_string(backup).unwrap(), before);
    assert!(told["notes"].to_string().contains("in /src an older entry of that name wins"), "{told}");
    assert_eq!(std::fs::metadata(backup).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_closed_desk_wants_a_token_and_no_token_is_published() {
    let desk = Desk::new();
    let token = desk.register("code");
    for client in CLIENTS {
        let (code, said) = refused(&run(&desk, None, &["connect", client]));
        assert!(code == Some(3) && said.contains("closed") && said.contains("deskmate agent add") && said.contains("--token-file"), "{said}");
    }
    assert!(!desk.path().join(".claude.json").exists());
    let wrong = format!("{}x", token.get(..token.len() - 1).unwrap());
    assert_eq!(refused(&run(&desk, Some(&wrong), &["connect", "claude-code"])).0, Some(3), "a token that the desk does not know is not written");
    assert!(refused(&run(&desk, Some(&token), &["connect", "claude-code", "--agent", "other"])).1.contains("belongs to the agent code"));

    let kept = desk.path().join("code.token");
    std::fs::write(&kept, format!("{token}\n")).unwrap();
    std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o600)).unwrap();
    let kept = kept.to_str().unwrap();
    for client in CLIENTS {
        let dry = good(&run(&desk, Some(&token), &["connect", client, "--dry-run"]));
        assert!(!dry.contains(&token), "{dry}");
        good(&run(&desk, Some(&token), &["connect", client]));
        good(&run(&desk, None, &["connect", client, "--name", "filed", "--token-file", kept]));
        if client != "claude-desktop" {
            good(&run(&desk, Some(&token), &["connect", client, "--scope", "project"]));
            good(&run(&desk, Some(&token), &["connect", client, "--scope", "project", "--name", "web", "--url"]));
        }
    }
    for (file, holds) in [
        (".claude.json", true),
        (".config/Claude/claude_desktop_config.json", true),
        (".codex/config.toml", true),
        (".cursor/mcp.json", true),
        (".gemini/settings.json", true),
        (".config/Code/User/mcp.json", false),
        ("project/.mcp.json", false),
        ("project/.codex/config.toml", false),
        ("project/.cursor/mcp.json", false),
        ("project/.gemini/settings.json", false),
        ("project/.vscode/mcp.json", false),
    ] {
        assert_eq!(read(&desk, file).contains(&token), holds, "{file}");
        assert!(!holds || std::fs::metadata(desk.path().join(file)).unwrap().mode() & 0o777 == 0o600, "{file}");
    }
    let (code, clients) = doctor(&desk, Some(&token), &[]);
    assert_eq!((code, clients.len()), (Some(0), 22), "{clients:#?}");
    let (code, clients) = doctor(&desk, None, &[]);
    assert_eq!(code, Some(1));
    let missing = clients.iter().filter(|client| client["said"].as_str().unwrap().contains("DESKMATE_TOKEN from the environment")).count();
    let untried = clients.iter().filter(|client| client["said"].as_str().unwrap().contains("VS Code asks for the token")).count();
    assert_eq!((missing, untried), (8, 3), "{clients:#?}");

    let (_, clients) = doctor(&desk, Some(&wrong), &[]);
    let unknown = clients.iter().filter(|client| client["state"] == "problem" && client["fix"].to_string().contains("deskmate agent rotate")).count();
    assert_eq!(unknown, 12, "by address too, where anybody may list the tools: {clients:#?}");

    let inside = project(&desk).join("code.token");
    std::fs::copy(kept, &inside).unwrap();
    let said = refused(&run(&desk, None, &["connect", "claude-code", "--scope", "project", "--token-file", inside.to_str().unwrap()])).1;
    assert!(said.contains("could be committed"), "{said}");
    std::fs::create_dir(desk.path().join(".git")).unwrap();
    let (code, said) = refused(&run(&desk, Some(&token), &["connect", "cursor", "--name", "again"]));
    assert!(code == Some(3) && said.contains("git repository") && said.contains("--token-file"), "{said}");
    std::fs::set_permissions(desk.path().join(".cursor/mcp.json"), PermissionsExt::from_mode(0o644)).unwrap();
    let (_, clients) = doctor(&desk, Some(&token), &[]);
    assert!(
        clients.iter().any(|client| client["state"] == "problem" && client["fix"].as_str().is_some_and(|fix| fix.starts_with("chmod 600"))),
        "{clients:#?}"
    );
}

#[test]
fn hooks_go_with_a_token_in_a_file() {
    let desk = Desk::new();
    let token = desk.register("code");
    assert!(refused(&run(&desk, Some(&token), &["connect", "claude-code", "--hooks"])).1.contains("--token-file"));
    assert!(refused(&run(&desk, Some(&token), &["connect", "vscode", "--hooks"])).1.contains("no hooks that a program can answer"));
    let kept = desk.path().join("code.token");
    std::fs::write(&kept, &token).unwrap();
    std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o644)).unwrap();
    let said = good(&run(&desk, None, &["connect", "claude-code", "--hooks", "--token-file", kept.to_str().unwrap()]));
    assert!(said.contains("others can read the token: chmod 600"), "{said}");
    let settings: Value = serde_json::from_str(&read(&desk, ".claude/settings.json")).unwrap();
    let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    assert!(command.contains(" hook --token-file ") && !command.contains(&token), "{command}");
    good(&run(&desk, None, &["disconnect", "claude-code"]));
    assert_eq!(serde_json::from_str::<Value>(&read(&desk, ".claude/settings.json")).unwrap(), json!({}));
}

#[test]
fn hooks_of_other_clients_are_written_and_answered_as_each_of_them_asks() {
    let desk = Desk::new();
    desk.up();
    let asks = |event: &str, tool: &str| json!({ "hook_event_name": event, "cwd": "/srv/p", "workspace_roots": ["/srv/p"], "session_id": "s", "tool_name": tool, "tool_input": { "command": "rm -rf /" } });
    for (client, file, at, asked, says) in [
        ("codex", ".codex/hooks.json", "/hooks/PreToolUse/0/hooks/0/command", asks("PreToolUse", "Bash"), "\"permissionDecision\":\"deny\""),
        ("cursor", ".cursor/hooks.json", "/hooks/preToolUse/0/command", asks("preToolUse", "Shell"), "\"permission\":\"deny\""),
        ("gemini", ".gemini/settings.json", "/hooks/BeforeTool/0/hooks/0/command", asks("BeforeTool", "run_shell_command"), "\"decision\":\"deny\""),
    ] {
        let said = good(&run(&desk, None, &["connect", client, "--hooks"]));
        assert_eq!(said.contains("goes on when the hook itself cannot be started"), client != "cursor", "{said}");
        let settings: Value = serde_json::from_str(&read(&desk, file)).unwrap();
        let command = settings.pointer(at).and_then(Value::as_str).unwrap_or_else(|| panic!("{settings}")).to_owned();
        // As the client runs it.
        let mut hook = std::process::Command::new("sh")
            .args(["-c", &command])
            .env("HOME", desk.path())
            .env_remove("DESKMATE_HOME")
            .env_remove("DESKMATE_TOKEN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        hook.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
        let answer = String::from_utf8(hook.wait_with_output().unwrap().stdout).unwrap();
        assert!(answer.contains(says), "{client}: {answer}");
        good(&run(&desk, None, &["disconnect", client]));
        assert!(!read(&desk, file).contains(" hook "), "{client}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let desk = Desk::new();
    desk.up();
    for (args, part) in [
        (&["claude-desktop", "--scope", "project"][..], "user only"),
        (&["cursor", "--scope", "plugin"], "user and project"),
        (&["claude-code", "--name", "a b"], "no name for an entry"),
        (&["claude-code", "--toolset", "brigde"], "known: "),
        (&["claude-code", "--agent", "a b"], "letters, digits"),
        (&["claude-code", "--url", "http://desk.example.org"], "https"),
        (&["claude-code", "--url", "https://desk.example.org"], "takes agents by their tokens"),
        (&["claude-code", "--scope", "project", "--dir", "nowhere"], "nowhere"),
    ] {
        let said = refused(&run(&desk, None, &[&["connect"], args].concat())).1;
        assert!(said.contains(part), "{args:?}: {said}");
    }
    assert_eq!(run(&desk, None, &["connect", "emacs"]).status.code(), Some(2));
    std::fs::write(desk.path().join(".claude.json"), "{ broken").unwrap();
    let said = refused(&run(&desk, None, &["connect", "claude-code"])).1;
    assert!(said.contains("not valid JSON") && said.contains("line 1") && said.contains("nothing was changed"), "{said}");
    assert_eq!(read(&desk, ".claude.json"), "{ broken");
    let (code, clients) = doctor(&desk, None, &[]);
    assert!(code == Some(1) && clients[0]["said"].as_str().unwrap().contains("not valid JSON"), "{clients:?}");
}

#[test]
fn a_server_behind_the_desk_is_connected_by_its_name() {
    let (desk, _folder, token) = crate::gateway::desk();
    let said = good(&run(&desk, Some(&token), &["connect", "codex", "--toolset", "cowork,notes"]));
    assert!(said.contains("is connected"), "{said}");
    assert!(read(&desk, ".codex/config.toml").contains("\"--toolset\", \"cowork,notes\""), "{}", read(&desk, ".codex/config.toml"));
    good(&run(&desk, Some(&token), &["connect", "gemini", "--toolset", "notes", "--url"]));
    assert!(read(&desk, ".gemini/settings.json").contains("/mcp/notes\""), "{}", read(&desk, ".gemini/settings.json"));
    let (code, clients) = doctor(&desk, Some(&token), &[]);
    assert_eq!(code, Some(0), "{clients:#?}");
    let (_, said) = refused(&run(&desk, Some(&token), &["connect", "cursor", "--toolset", "cowork,note"]));
    assert!(said.contains("no server behind this desk") && said.contains("gateway list"), "{said}");
    let elsewhere = ["connect", "cursor", "--toolset", "far", "--url", "https://desk.example.org", "--dry-run"];
    assert!(good(&run(&desk, Some(&token), &elsewhere)).contains("was not asked whether the desk has far"), "another desk cannot be asked");
}

#[test]
fn doctor_says_what_is_wrong_and_runs_nothing_that_a_project_chose() {
    let desk = Desk::new();
    desk.up();
    good(&run(&desk, None, &["connect", "gemini"]));
    let moved = read(&desk, ".gemini/settings.json").replace(env!("CARGO_BIN_EXE_deskmate"), "/gone/deskmate");
    std::fs::write(desk.path().join(".gemini/settings.json"), moved).unwrap();
    let (code, clients) = doctor(&desk, None, &[]);
    assert!(code == Some(1) && clients[0]["fix"] == "connect again: deskmate connect gemini", "{clients:?}");
    good(&run(&desk, None, &["connect", "gemini"]));

    let project = project(&desk);
    let program = project.join("deskmate");
    std::fs::write(&program, format!("#!/bin/sh\ntouch '{}'\n", project.join("was-run").display())).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(project.join(".mcp.json"), json!({ "mcpServers": { "desk": { "command": program, "args": ["mcp"] } } }).to_string()).unwrap();
    let (code, clients) = doctor(&desk, None, &[]);
    assert_eq!(code, Some(0));
    assert!(clients.iter().any(|client| client["state"] == "warning" && client["said"].as_str().unwrap().contains("was not tried")), "{clients:?}");
    assert!(!project.join("was-run").exists(), "a project's program was run unasked");
    assert_eq!(doctor(&desk, None, &["--trust-project"]).0, Some(1));
    assert!(project.join("was-run").exists());

    std::fs::write(desk.path().join("deskmate.yaml"), "lisen: 127.0.0.1:7373\n").unwrap();
    let output = run(&desk, None, &["doctor"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("PROBLEM") && text.contains("settings") && text.contains("does not work"), "{text}");
}

#[test]
fn doctor_tries_the_hooks_of_every_client() {
    let desk = Desk::new();
    desk.up();
    for (client, scope) in [("claude-code", "user"), ("claude-code", "plugin"), ("codex", "user"), ("cursor", "user"), ("gemini", "project")] {
        good(&run(&desk, None, &["connect", client, "--scope", scope, "--hooks"]));
    }
    let hooks = |token: Option<&str>, more: &[&str]| {
        let (code, clients) = doctor(&desk, token, more);
        let about = clients.into_iter().filter(|client| client["said"].as_str().unwrap().starts_with("the hooks in "));
        (code, about.collect::<Vec<_>>())
    };
    let (code, found) = hooks(None, &[]);
    assert_eq!((code, found.len()), (Some(0), 5), "{found:#?}");
    assert!(found.iter().all(|hooks| hooks["state"] == "ok" && hooks["said"].as_str().unwrap().ends_with(" answer")), "{found:#?}");
    // A program that is gone.
    let file = desk.path().join(".claude/settings.json");
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, written.replace(env!("CARGO_BIN_EXE_deskmate"), "/gone/deskmate")).unwrap();
    let (code, found) = hooks(None, &[]);
    assert_eq!((code, &found[0]["state"]), (Some(1), &json!("problem")), "{found:#?}");
    assert_eq!(found[0]["fix"], "connect again: deskmate connect claude-code --scope user --hooks");
    std::fs::write(&file, written).unwrap();
    // What a project chose is not run unasked.
    let project = project(&desk);
    let (program, own) = (project.join("deskmate"), project.join(".claude/settings.json"));
    std::fs::write(&program, format!("#!/bin/sh\ntouch '{}'\nexit 3\n", project.join("was-run").display())).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    let command = json!({ "type": "command", "command": format!("{} hook", program.display()) });
    std::fs::write(&own, json!({ "hooks": { "PreToolUse": [{ "matcher": "*", "hooks": [command] }] } }).to_string()).unwrap();
    let (code, found) = hooks(None, &[]);
    let untried = found.iter().find(|hooks| hooks["said"].as_str().unwrap().contains("were not tried")).unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!((code, &untried["state"], project.join("was-run").exists()), (Some(0), &json!("warning"), false));
    assert_eq!(hooks(None, &["--trust-project"]).0, Some(1));
    assert!(project.join("was-run").exists());
    std::fs::remove_file(own).unwrap();
    // A desk that takes agents by their tokens, and hooks that have none.
    good(&run(&desk, None, &["stop"]));
    let token = desk.register("code");
    let (code, found) = hooks(Some(&token), &[]);
    let cursor = found.iter().find(|hooks| hooks["what"] == "Cursor").unwrap();
    assert_eq!((code, &cursor["state"]), (Some(1), &json!("problem")), "{found:#?}");
    assert!(cursor["said"].as_str().unwrap().contains("the hook cannot answer"), "{cursor}");
}

#[test]
fn a_desk_that_does_not_run_is_started_as_a_client_would() {
    let desk = Desk::new();
    good(&run(&desk, None, &["connect", "codex", "--agent", "mine", "--toolset", "bridge"]));
    assert!(read(&desk, ".codex/config.toml").contains("args = [\"mcp\", \"--agent\", \"mine\", \"--toolset\", \"bridge\", \"--home\", "));
    good(&run(&desk, None, &["stop"]));
    let (code, clients) = doctor(&desk, None, &[]);
    assert!(code == Some(0) && clients[0]["said"].as_str().unwrap().ends_with("connects: 23 tools"), "{clients:?}");
}

#[test]
fn a_plugin_is_made_in_the_data_directory() {
    let desk = Desk::new();
    desk.up();
    let said = good(&run(&desk, None, &["connect", "claude-code", "--scope", "plugin"]));
    assert!(said.contains("claude plugin marketplace add") && said.contains("claude plugin install deskmate@deskmate"), "{said}");
    assert_eq!(doctor(&desk, None, &[]).1[0]["state"], "ok");
    good(&run(&desk, None, &["disconnect", "claude-code", "--scope", "plugin"]));
    assert!(!desk.path().join("claude-code-plugin").exists());
}
