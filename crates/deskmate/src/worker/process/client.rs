//! How clients of models are started: with the desk as their only server, their tools asking it first, and nothing of anybody's own
//! settings. Their home is the run's, so there are none.

use std::path::{Path, PathBuf};

use deskmate_core::agents::{Cli, Given};
use deskmate_hands::sandbox::{Argument, Spec};
use serde_json::{Value, json};

use super::confine;
use super::place::Place;
use crate::config;
use crate::hook::settings;

/// The name of the desk among a client's servers.
const SERVER: &str = "deskmate";

/// What is asked of a client.
pub(super) struct Asked<'a> {
    pub(super) prompt: String,
    pub(super) program: &'a Option<String>,
    pub(super) model: &'a Option<String>,
    pub(super) given: &'a Given,
    /// Where the desk's own data lies.
    pub(super) own: &'a [PathBuf],
    pub(super) url: &'a str,
    pub(super) token: &'a str,
    pub(super) cost: Option<f64>,
}

/// How the client is started, and what it reads from its standard input.
pub(super) fn start(client: Cli, place: &Place, asked: &Asked<'_>) -> Result<(Spec, Vec<u8>), String> {
    let mut read = confine::readable(asked.given, asked.own)?;
    let program = find(client, asked.program.as_deref(), &read)?;
    // Programs that are scripts bring what they need beside them.
    let resolved = std::fs::canonicalize(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    let binary = std::env::current_exe().map_err(|error| format!("the desk's own program: {error}"))?;
    read.push(binary.clone());
    read.push(package(&resolved));
    if program != resolved {
        read.push(program.clone());
    }
    let mut spec = confine::base(place, &program, read);
    let set = |spec: &mut Spec, name: &str, value: &str| spec.environment.insert(name.to_owned(), value.to_owned());
    set(&mut spec, "HOME", &place.home.to_string_lossy());
    set(&mut spec, "TERM", "dumb");
    set(&mut spec, "NO_COLOR", "1");
    let command = format!("{} hook --client", binary.display());
    let mut args: Vec<String> = Vec::new();
    match client {
        Cli::ClaudeCode => {
            let servers = json!({ "mcpServers": { SERVER: server(asked, "http") } });
            let servers = place.own("mcp.json", &servers.to_string())?;
            let settings = place.own("settings.json", &claude_settings(asked).to_string())?;
            args.extend(["-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config", "--setting-sources", ""].map(str::to_owned));
            args.extend(["--mcp-config".to_owned(), path(&servers), "--settings".to_owned(), path(&settings)]);
            args.extend(["--permission-prompt-tool".to_owned(), format!("mcp__{SERVER}__hook_permission")]);
            if let Some(cost) = asked.cost {
                args.extend(["--max-budget-usd".to_owned(), cost.to_string()]);
            }
            for (name, value) in [("DISABLE_TELEMETRY", "1"), ("DISABLE_AUTOUPDATER", "1"), ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")] {
                set(&mut spec, name, value);
            }
        }
        Cli::Codex => {
            let home = place.home.join(".codex");
            let hooks = settings::codex(&format!("{command} codex"));
            let config = format!(
                "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\n\n[features]\nhooks = true\n\n[mcp_servers.{SERVER}]\nurl = {}\nbearer_token_env_var = \"DESKMATE_TOKEN\"\n",
                Value::from(format!("{}/mcp", asked.url))
            );
            write(&home, "config.toml", &config)?;
            write(&home, "hooks.json", &hooks.to_string())?;
            args.extend(["exec", "--skip-git-repo-check", "--json"].map(str::to_owned));
        }
        Cli::Gemini => {
            let mut own = settings::gemini(&format!("{command} gemini"));
            let mut server = server(asked, "http");
            if let Some(fields) = server.as_object_mut() {
                let url = fields.remove("url").unwrap_or_default();
                fields.remove("type");
                fields.insert("httpUrl".to_owned(), url);
                fields.insert("trust".to_owned(), json!(true));
            }
            if let Some(fields) = own.as_object_mut() {
                fields.insert("mcpServers".to_owned(), json!({ SERVER: server }));
                fields.insert("hooksConfig".to_owned(), json!({ "enabled": true }));
                fields.insert("privacy".to_owned(), json!({ "usageStatisticsEnabled": false }));
                if asked.given.environment.contains_key("GEMINI_API_KEY") {
                    // It would guess otherwise where an address is given too.
                    fields.insert("security".to_owned(), json!({ "auth": { "selectedType": "gemini-api-key" } }));
                }
            }
            // Settings of the machine would have to be root's; its home is new for each run, and read when it starts.
            write(&place.home.join(".gemini"), "settings.json", &own.to_string())?;
            args.extend(["--output-format", "stream-json", "--approval-mode", "yolo", "--allowed-mcp-server-names", SERVER].map(str::to_owned));
            set(&mut spec, "GEMINI_CLI_TRUST_WORKSPACE", "true");
        }
    }
    if let Some(model) = asked.model {
        args.extend(["--model".to_owned(), model.clone()]);
    }
    if client == Cli::Codex {
        args.push("-".to_owned());
    }
    spec.args = args.into_iter().map(Argument::from).collect();
    Ok((spec, asked.prompt.clone().into_bytes()))
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The desk as a server over HTTP: programs of runs open no sockets of the machine.
fn server(asked: &Asked<'_>, kind: &str) -> Value {
    json!({ "type": kind, "url": format!("{}/mcp", asked.url), "headers": { "Authorization": format!("Bearer {}", asked.token) } })
}

/// Hooks over HTTP for whatever runs a tool; where the desk cannot be asked, it does not run.
fn claude_settings(asked: &Asked<'_>) -> Value {
    let mut own = settings::claude_code("");
    let hook =
        json!({ "type": "http", "url": format!("{}/hook?client=claude-code", asked.url), "headers": { "Authorization": format!("Bearer {}", asked.token) } });
    for groups in own.get_mut("hooks").and_then(Value::as_object_mut).into_iter().flat_map(|events| events.values_mut()) {
        for entry in groups.as_array_mut().into_iter().flatten() {
            for one in entry.get_mut("hooks").and_then(Value::as_array_mut).into_iter().flatten() {
                let (Some(fields), Some(hook)) = (one.as_object_mut(), hook.as_object()) else { continue };
                fields.remove("command");
                fields.extend(hook.clone());
            }
        }
    }
    own
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(folder.join(name), text)).map_err(|error| format!("{name} cannot be written: {error}"))
}

/// Where a client is: where the definition says, or on the server's own search path.
fn find(client: Cli, program: Option<&str>, read: &[PathBuf]) -> Result<PathBuf, String> {
    if let Some(program) = program {
        return Some(PathBuf::from(program)).filter(|path| path.is_file()).ok_or_else(|| format!("{program} is not there"));
    }
    let name = client.program();
    let paths = config::env_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&paths).chain(read.iter().flat_map(|path| [path.clone(), path.join("bin")]));
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_absolute() && path.is_file());
    found.ok_or_else(|| format!("{name} is not on this server's PATH: install it, or say in `program` where it is"))
}

/// The folder of a package that a script belongs to, or the program alone.
fn package(real: &Path) -> PathBuf {
    let modules = real.ancestors().find(|folder| folder.join("package.json").is_file() && folder.parent().is_some_and(|above| above.parent().is_some()));
    modules.map_or_else(|| real.to_path_buf(), Path::to_path_buf)
}
