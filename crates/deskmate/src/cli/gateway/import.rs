//! Servers from the configuration of a client. What looks like a password or a key goes into the secret store, and the
//! mount only names it.

use std::path::{Path, PathBuf};

use clap::Args;
use deskmate_core::call::RESERVED;
use deskmate_core::{Code, gateway, redact};
use serde_json::{Map, Value, json};

use super::super::client::Client;
use super::super::output::print;
use super::super::{Failure, Global};
use crate::config;
use crate::connect::Written;

/// The largest file that is read.
const BYTES_MAX: u64 = 1024 * 1024;

#[derive(Args)]
pub(in crate::cli) struct ImportArgs {
    /// The file: .mcp.json, claude_desktop_config.json, .vscode/mcp.json, or a NAME.service.json
    file: PathBuf,
    /// Only these servers, as the file or the desk calls them; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Change those that are there already, too: how they are reached, and their secrets; what was set at the desk stays
    #[arg(long)]
    replace: bool,
}

/// A server as it would be added.
#[derive(Debug, Default, PartialEq)]
struct Found {
    mount: Map<String, Value>,
    /// Secrets that it needs, with the values that stood in the file.
    secrets: Vec<(String, String)>,
    /// What could not be brought in as it was.
    notes: Vec<String>,
    /// Variables that it refers to and that are not set here: it is not brought in without them.
    missing: Vec<String>,
}

pub(super) fn run(global: &Global, args: ImportArgs) -> Result<(), Failure> {
    let text = read(&args.file)?;
    let Servers { mut found, mut left_out } =
        servers(&text, &args.only, &|name| config::env(name)).map_err(|why| Failure::Other(format!("{}: {why}", args.file.display())))?;
    starts_in(&mut found, &args.file, config::user_home().as_deref()).map_err(|error| Failure::Other(format!("{}: {error}", args.file.display())))?;
    if found.is_empty() {
        let why = if left_out.is_empty() { String::new() } else { format!(": {}", left_out.join("; ")) };
        return Err(Failure::Other(format!("{} names no server that could be brought in{why}", args.file.display())));
    }
    let client = if args.dry_run && Client::new(global)?.home().running().is_none() { None } else { Some(Client::present(global)?) };
    let there = client.as_ref().map(There::of).transpose()?.unwrap_or_default();
    there.compare(&mut found, &mut left_out, args.replace);
    let missing: Vec<String> = found.iter().flat_map(|found| found.missing.iter().cloned()).collect();
    if !missing.is_empty() && !args.dry_run {
        let why = format!("{} refers to variables that are not set here: {}", args.file.display(), missing.join(", "));
        return Err(Failure::Other(format!("{why}; set them, or choose other servers with --only. Nothing was brought in")));
    }
    let shown = |found: &Found| {
        let secrets: Vec<&str> = found.secrets.iter().map(|(name, _)| name.as_str()).collect();
        json!({ "mount": found.mount, "secrets": secrets, "notes": found.notes, "missing": found.missing })
    };
    if args.dry_run {
        let all: Vec<Value> = found.iter().map(shown).collect();
        let next = client.is_none().then_some("the desk does not run, so it is not known which are there already");
        return print(&json!({ "would_add": all, "left_out": left_out, "note": next }), global.json);
    }
    let Some(client) = client else { return Ok(()) };
    let mut added = Vec::new();
    for found in &found {
        for (name, value) in &found.secrets {
            there.put(&client, name, value)?;
        }
        client.call("desk_mount_add", &json!({ "mount": found.mount, "replace": args.replace }))?;
        let mut report = shown(found);
        let is_off = found.mount.get("enabled") == Some(&json!(false));
        let tested = (!is_off).then(|| client.call("desk_mount_test", &json!({ "name": found.mount.get("name") })));
        if let (Some(fields), Some(tested)) = (report.as_object_mut(), tested) {
            match tested {
                Ok(tested) => fields.insert("tools".to_owned(), tested.get("tools").cloned().unwrap_or_default()),
                Err(failure) => fields.insert("not_reached".to_owned(), json!(failure.text())),
            };
        }
        added.push(report);
    }
    print(
        &json!({ "added": added, "left_out": left_out, "next": "take the same servers out of the client's own configuration, so that their calls go through the desk" }),
        global.json,
    )
}

/// What is at the desk already.
#[derive(Default)]
struct There {
    mounts: Vec<Value>,
    secrets: Vec<String>,
}

impl There {
    fn of(client: &Client) -> Result<Self, Failure> {
        let mounts = client.call("desk_mount_list", &json!({}))?.get_mut("mounts").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        let (mut secrets, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let page = client.call("desk_secret_list", &json!({ "cursor": cursor }))?;
            let listed = page.get("secrets").and_then(Value::as_array).into_iter().flatten();
            secrets.extend(listed.filter_map(|secret| secret.get("name")?.as_str()).map(str::to_owned));
            cursor = page.get("next_cursor").cloned().unwrap_or_default();
            if cursor.is_null() {
                return Ok(Self { mounts, secrets });
            }
        }
    }

    /// Leaves out what is there already, or lets it keep what was set at the desk.
    fn compare(&self, found: &mut Vec<Found>, left_out: &mut Vec<String>, replace: bool) {
        found.retain_mut(|found| {
            let name = found.mount.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let before = self.mounts.iter().find(|one| one.get("name") == found.mount.get("name"));
            let secret = found.secrets.iter().map(|(name, _)| name).find(|name| self.secrets.contains(name));
            let there = match (before, secret) {
                (Some(_), _) => format!("{name} is there already"),
                (None, Some(secret)) => format!("{name} needs the secret {secret}, which is there already"),
                (None, None) => return true,
            };
            if !replace {
                left_out.push(format!("{there}: --replace takes it from the file"));
                return false;
            }
            if let Some(before) = before {
                gateway::keep_what_was_set(&mut found.mount, before);
            }
            found.notes.push(format!("{there}, and is changed to what the file says; what else was set at the desk stays"));
            true
        });
    }

    /// Puts a secret into the store. One that is there gets this value.
    fn put(&self, client: &Client, name: &str, value: &str) -> Result<(), Failure> {
        let input = json!({ "name": name, "value": value });
        if !self.secrets.iter().any(|known| known == name) {
            return client.call("desk_secret_set", &input).map(drop);
        }
        match client.call("desk_secret_rotate", &input) {
            // It has this value already.
            Err(Failure::Desk(error)) if error.code == Code::Invalid && error.message.contains("has already") => Ok(()),
            done => done.map(drop),
        }
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let size = std::fs::metadata(file).map_err(|error| Failure::Other(format!("{}: {error}", file.display())))?.len();
    if size > BYTES_MAX {
        return Err(Failure::Other(format!("{} is larger than {BYTES_MAX} bytes", file.display())));
    }
    std::fs::read_to_string(file).map_err(|error| Failure::Other(format!("{}: {error}", file.display())))
}

/// The servers of a file.
#[derive(Debug, Default)]
struct Servers {
    found: Vec<Found>,
    /// Those that are not brought in, with why.
    left_out: Vec<String>,
}

/// The servers of a file, or only those that are named, as the file or the desk calls them. `environment` is asked for variables that
/// it refers to.
fn servers(text: &str, only: &[String], environment: &dyn Fn(&str) -> Option<String>) -> Result<Servers, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    if file.get("schemaVersion").is_some() && file.get("name").is_some() {
        return Ok(Servers { found: vec![descriptor(&file, environment)?], left_out: Vec::new() });
    }
    let listed = ["mcpServers", "servers"].into_iter().find_map(|key| file.get(key)).and_then(Value::as_object);
    let listed = listed.ok_or("has no mcpServers: it is no configuration of an MCP client that is known here")?;
    let is_named = |name: &str| only.is_empty() || only.iter().any(|only| only == name || *only == mount_name(name));
    let mut servers = Servers::default();
    for (name, server) in listed.iter().filter(|(name, _)| is_named(name)) {
        if Written::read(server).is_some_and(|entry| entry.is_ours()) {
            servers.left_out.push(format!("{name} is a desk itself"));
            continue;
        }
        let found = one(name, server, environment)?;
        if servers.found.iter().any(|other| other.mount.get("name") == found.mount.get("name")) {
            return Err(format!("{name} and another one would both be called {}: bring them in one by one with --only", mount_name(name)));
        }
        servers.found.push(found);
    }
    Ok(servers)
}

/// Lets servers start where the client would start them: what is relative is so to the folder of the file, and those of a project
/// start in the project if nothing else is said. A client's folder in the home directory is of no project.
fn starts_in(found: &mut [Found], file: &Path, home: Option<&Path>) -> std::io::Result<()> {
    let file = std::path::absolute(file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let is_of_client = folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| [".vscode", ".cursor", ".gemini"].contains(&name));
    let project = match folder.parent() {
        Some(project) if is_of_client => Some(project).filter(|project| home != Some(project)),
        _ if file.file_name().is_some_and(|name| name == ".mcp.json") => Some(folder),
        _ => None,
    };
    for Found { mount, .. } in found.iter_mut().filter(|found| found.mount.contains_key("command")) {
        let written = mount.get("cwd").and_then(Value::as_str).map(|cwd| project.unwrap_or(folder).join(cwd));
        let cwd = written.as_deref().or(project);
        if let (None, Some(command)) = (cwd, mount.get("command").and_then(Value::as_str).filter(|command| command.contains('/'))) {
            let command = folder.join(command);
            mount.insert("command".to_owned(), json!(command));
        }
        if let Some(cwd) = cwd {
            mount.insert("cwd".to_owned(), json!(cwd));
        }
    }
    Ok(())
}

fn looks_secret(text: &str) -> bool {
    !redact::Redactor::secrets().text(text).found.is_empty()
}

/// A name as mounts have them.
fn mount_name(name: &str) -> String {
    let plain: String = name.to_ascii_lowercase().chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let plain: String = plain.trim_matches('-').chars().take(32).collect();
    // The desk's own toolsets keep their names, those to come included.
    if RESERVED.contains(&plain.as_str()) { format!("{plain}-server") } else { plain }
}

fn one(name: &str, server: &Value, environment: &dyn Fn(&str) -> Option<String>) -> Result<Found, String> {
    let mut found = Found::default();
    let own = mount_name(name);
    found.mount.insert("name".to_owned(), json!(own));
    if own.strip_suffix("-server") == Some(&name.to_ascii_lowercase()) {
        found.notes.push(format!("{name} is the name of a toolset, so it is called {own} here"));
    }
    let text = |field: &str| server.get(field).and_then(Value::as_str);
    match (text("command"), text("url").or_else(|| text("httpUrl"))) {
        (Some(command), _) => {
            found.mount.insert("command".to_owned(), json!(expand(command, environment, &mut found.missing)));
            let words = server.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            let words: Vec<String> = words.map(|word| expand(word, environment, &mut found.missing)).collect();
            if gateway::holds_a_secret(&words) {
                let why = "an argument is a secret: arguments are seen by every program of the machine and are on the record, so give it as a variable instead";
                return Err(format!("{name}: {why}"));
            }
            if !words.is_empty() {
                found.mount.insert("args".to_owned(), json!(words));
            }
            if let Some(cwd) = text("cwd") {
                found.mount.insert("cwd".to_owned(), json!(expand(cwd, environment, &mut found.missing)));
            }
            values("env", &own, server.get("env"), environment, &mut found);
        }
        (None, Some(url)) => {
            let url = expand(url, environment, &mut found.missing);
            if looks_secret(&url) {
                return Err(format!("{name}: its address holds a secret, and would be on the record: give it as a header instead"));
            }
            found.mount.insert("url".to_owned(), json!(url));
            values("headers", &own, server.get("headers"), environment, &mut found);
            if text("type") == Some("sse") {
                found.notes.push("it speaks HTTP with SSE of 2024, which is not spoken here; try its address for Streamable HTTP".to_owned());
            }
        }
        (None, None) => return Err(format!("{name} has neither a command nor an address")),
    }
    if server.get("disabled") == Some(&json!(true)) {
        found.mount.insert("enabled".to_owned(), json!(false));
        found.notes.push("it is switched off there, and so it is here: `deskmate gateway enable` serves it".to_owned());
    }
    Ok(found)
}

/// Variables or headers: what looks like a secret is moved into the secret store.
fn values(field: &str, mount: &str, listed: Option<&Value>, environment: &dyn Fn(&str) -> Option<String>, found: &mut Found) {
    let Some(listed) = listed.and_then(Value::as_object) else { return };
    let mut kept = Map::new();
    for (name, value) in listed {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => {
                found.notes.push(format!("{name} in {field} is no text, number or yes or no, and is left out"));
                continue;
            }
        };
        if name.starts_with("DESKMATE_") {
            found.notes.push(format!("{name} is the desk's own and is left out"));
            continue;
        }
        let refers = value.contains("${");
        let value = expand(&value, environment, &mut found.missing);
        let as_field = json!({ name: value });
        let secret = refers || !redact::Redactor::secrets().value(&as_field).found.is_empty();
        if !secret || value.is_empty() {
            kept.insert(name.clone(), json!(value));
            continue;
        }
        let own = format!("{mount}-{}", mount_name(name));
        let (before, value) = match value.split_once(' ') {
            Some((scheme, rest)) if field == "headers" && matches!(scheme.to_ascii_lowercase().as_str(), "bearer" | "basic") => {
                (format!("{scheme} "), rest.to_owned())
            }
            _ => (String::new(), value),
        };
        kept.insert(name.clone(), json!(format!("{before}secret:{own}")));
        found.secrets.push((own, value));
    }
    if !kept.is_empty() {
        found.mount.insert(field.to_owned(), Value::Object(kept));
    }
}

/// Puts variables of the environment in, written as `${NAME}` or `${NAME:-otherwise}`.
fn expand(text: &str, environment: &dyn Fn(&str) -> Option<String>, missing: &mut Vec<String>) -> String {
    let (mut done, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        done.push_str(before);
        let Some((inner, tail)) = after.split_once('}') else {
            done.push_str("${");
            rest = after;
            continue;
        };
        let (name, otherwise) = inner.split_once(":-").map_or((inner, None), |(name, otherwise)| (name, Some(otherwise)));
        let name = name.strip_prefix("env:").unwrap_or(name);
        match environment(name).or_else(|| otherwise.map(str::to_owned)) {
            Some(value) => done.push_str(&value),
            None => missing.push(name.to_owned()),
        }
        rest = tail;
    }
    done.push_str(rest);
    done
}

/// A descriptor of a service of the chief-of-staff layer.
fn descriptor(file: &Value, environment: &dyn Fn(&str) -> Option<String>) -> Result<Found, String> {
    let name = file.get("name").and_then(Value::as_str).unwrap_or_default();
    let words: Vec<&str> = file.get("stdio").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let Some((command, rest)) = words.split_first() else { return Err(format!("the service {name} speaks MCP over no standard streams")) };
    let server = json!({ "command": command, "args": rest, "env": file.get("env"), "cwd": file.get("dir") });
    let mut found = one(name, &server, environment)?;
    let own = mount_name(name);
    for secret in file.get("secrets").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        let secret_name = format!("{own}-{}", mount_name(secret));
        let env = found.mount.entry("env").or_insert_with(|| json!({}));
        if let Some(env) = env.as_object_mut() {
            env.insert(secret.to_owned(), json!(format!("secret:{secret_name}")));
        }
        match environment(secret) {
            Some(value) if !value.is_empty() => found.secrets.push((secret_name, value)),
            _ => found.notes.push(format!("give it its secret with `deskmate secret set {secret_name}`")),
        }
    }
    if file.get("idleExit").is_some() {
        found.notes.push("idle connections are ended by the desk itself".to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn a_clients_file_becomes_mounts_and_its_keys_become_secrets() {
        let file = json!({ "mcpServers": {
            "GitHub Tools": { "command": "npx", "args": ["-y", "server"], "env": { "GITHUB_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345", "MODE": "fast", "DESKMATE_TOKEN": "x" } },
            "far": { "type": "http", "url": "https://tools.example.org/mcp", "headers": { "Authorization": "Bearer ${FAR_KEY}" } }
        } });
        let environment = |name: &str| (name == "FAR_KEY").then(|| "far-far-far".to_owned());
        let found = servers(&file.to_string(), &[], &environment).unwrap().found;
        let (tools, far) = if found[0].mount["name"] == "far" { (&found[1], &found[0]) } else { (&found[0], &found[1]) };
        assert_eq!(tools.mount["name"], json!("github-tools"));
        assert_eq!(tools.mount["env"], json!({ "GITHUB_TOKEN": "secret:github-tools-github-token", "MODE": "fast" }));
        assert_eq!(tools.secrets[0].1, "ghp_0123456789abcdefghijABCDEFGHIJ012345");
        assert!(tools.notes[0].contains("DESKMATE_TOKEN"));
        assert_eq!(far.mount["headers"], json!({ "Authorization": "Bearer secret:far-authorization" }));
        assert_eq!(far.secrets, [("far-authorization".to_owned(), "far-far-far".to_owned())]);
    }

    #[test]
    fn a_service_descriptor_becomes_a_mount() {
        let file =
            json!({ "schemaVersion": 1, "name": "vault", "kind": "bridge", "stdio": ["node", "vault.js"], "secrets": ["ANTHROPIC_API_KEY"], "idleExit": true });
        let found = servers(&file.to_string(), &[], &none).unwrap().found;
        assert_eq!((&found[0].mount["command"], &found[0].mount["name"]), (&json!("node"), &json!("vault-server")));
        assert_eq!(found[0].mount["env"], json!({ "ANTHROPIC_API_KEY": "secret:vault-server-anthropic-api-key" }));
        assert!(found[0].notes.iter().any(|note| note.contains("secret set vault-server-anthropic-api-key")));
        assert!(found[0].notes.iter().any(|note| note.contains("is the name of a toolset")));
    }

    #[test]
    fn folders_are_filled_in_and_numbers_become_text() {
        let environment = |name: &str| (name == "WORK").then(|| "/srv/work".to_owned());
        let one = |file: Value| servers(&file.to_string(), &[], &environment).unwrap().found.swap_remove(0);
        let found =
            one(json!({ "mcpServers": { "x": { "command": "a", "cwd": "${WORK}/x", "env": { "PORT": 8080, "QUIET": true, "LIST": [1], "NOTHING": null } } } }));
        assert_eq!((&found.mount["cwd"], &found.mount["env"]), (&json!("/srv/work/x"), &json!({ "PORT": "8080", "QUIET": "true" })));
        assert!(
            found.notes.iter().any(|note| note.contains("LIST in env")) && found.notes.iter().any(|note| note.contains("NOTHING in env")),
            "{:?}",
            found.notes
        );
        let service = |dir: &str| one(json!({ "schemaVersion": 1, "name": "notes", "stdio": ["a"], "dir": dir, "env": { "PORT": 1 } }));
        assert_eq!((&service("${WORK}/n").mount["cwd"], &service("${WORK}").mount["env"]), (&json!("/srv/work/n"), &json!({ "PORT": "1" })));
        assert_eq!(service("${NOPE}/n").missing, ["NOPE"], "it is told before anything is brought in");
    }

    #[test]
    fn servers_start_where_their_client_would_start_them() {
        let start = |server: Value, file: &str| {
            let mut found = servers(&json!({ "mcpServers": { "x": server } }).to_string(), &[], &none).unwrap().found;
            starts_in(&mut found, Path::new(file), Some(Path::new("/home/ada"))).unwrap();
            let mount = found.swap_remove(0).mount;
            (mount.get("cwd").cloned().unwrap_or_default(), mount.get("command").cloned().unwrap_or_default())
        };
        let plain = json!({ "command": "python3", "args": ["server.py"] });
        assert_eq!(start(plain.clone(), "/srv/project/.mcp.json"), (json!("/srv/project"), json!("python3")));
        assert_eq!(start(plain.clone(), "/srv/project/.vscode/mcp.json").0, json!("/srv/project"));
        assert_eq!(start(plain.clone(), "/home/ada/claude_desktop_config.json").0, Value::Null, "nobody says where this client starts servers");
        for client in [".cursor/mcp.json", ".gemini/settings.json", ".vscode/mcp.json"] {
            assert_eq!(start(plain.clone(), &format!("/home/ada/{client}")).0, Value::Null, "what holds for a user is of no project");
            assert_eq!(start(plain.clone(), &format!("/home/ada/notes/{client}")).0, json!("/home/ada/notes"));
        }
        assert_eq!(start(json!({ "command": "a", "cwd": "sub" }), "/srv/project/.mcp.json").0, json!("/srv/project/sub"));
        assert_eq!(start(json!({ "command": "a", "cwd": "sub" }), "/srv/notes.service.json").0, json!("/srv/sub"));
        assert_eq!(start(json!({ "command": "a", "cwd": "/else" }), "/srv/project/.mcp.json").0, json!("/else"));
        assert_eq!(start(json!({ "command": "./run" }), "/srv/project/.mcp.json"), (json!("/srv/project"), json!("./run")), "it is taken from where it starts");
        assert_eq!(start(json!({ "command": "./run" }), "/srv/other.json").1, json!("/srv/./run"));
        assert_eq!(start(json!({ "url": "https://x.example.org/mcp" }), "/srv/project/.mcp.json").0, Value::Null);
        let here = start(plain, ".mcp.json").0;
        assert_eq!(here, json!(std::env::current_dir().unwrap()));
    }

    #[test]
    fn what_is_no_configuration_is_said_so() {
        let wrong = |text: &str, environment: &dyn Fn(&str) -> Option<String>| servers(text, &[], environment).unwrap_err();
        assert!(wrong("{", &none).contains("not JSON"));
        assert!(wrong("{}", &none).contains("mcpServers"));
        assert!(wrong(r#"{"mcpServers":{"x":{}}}"#, &none).contains("neither"));
        let missing = servers(r#"{"mcpServers":{"x":{"command":"${NOPE}"}}}"#, &[], &none).unwrap().found;
        assert_eq!(missing[0].missing, ["NOPE"]);
        let key = |_: &str| Some("ghp_0123456789abcdefghijABCDEFGHIJ012345".to_owned());
        assert!(wrong(r#"{"mcpServers":{"x":{"command":"a","args":["--key=${KEY}"]}}}"#, &key).contains("variable instead"));
        assert!(wrong(r#"{"mcpServers":{"x":{"url":"https://x.example.org/?key=${KEY}"}}}"#, &key).contains("header instead"));
        assert!(wrong(r#"{"mcpServers":{"A b":{"command":"a"},"a-b":{"command":"a"}}}"#, &none).contains("both be called a-b"));
    }

    #[test]
    fn a_desk_is_left_out_and_one_that_is_bad_is_passed_over_by_naming_others() {
        let file = json!({ "mcpServers": {
            "desk": { "command": "/opt/deskmate", "args": ["mcp", "--agent", "code"] },
            "Good One": { "command": "a" },
            "bad": {},
            "off": { "command": "b", "disabled": true },
        } })
        .to_string();
        let named = |names: &[&str]| servers(&file, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), &none);
        assert!(named(&[]).is_err());
        for name in ["Good One", "good-one"] {
            let found = named(&[name]).unwrap().found;
            assert_eq!((found.len(), &found[0].mount["name"]), (1, &json!("good-one")));
        }
        let Servers { found, left_out } = named(&["desk", "off"]).unwrap();
        assert_eq!((left_out.len(), found.len(), &found[0].mount["enabled"]), (1, 1, &json!(false)), "a desk behind itself would turn in circles");
        assert!(named(&["desk"]).unwrap().found.is_empty());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// The files of other clients hold anything: they are refused or brought in, each name once.
        #[test]
        fn any_file_is_refused_or_brought_in(text in "(?s).{0,120}", value in "[$a-zA-Z0-9{}:.=/ -]{0,40}", name in ".{0,12}", variable in "[A-Z_]{1,8}") {
            let environment = |asked: &str| (asked == variable).then(|| "found".to_owned());
            drop(servers(&text, &[], &environment));
            let mut missing = Vec::new();
            drop(expand(&value, &environment, &mut missing));
            let known = format!("a${{{variable}}}b${{NOT_{variable}:-c}}");
            proptest::prop_assert_eq!(expand(&known, &environment, &mut Vec::new()), "afoundbc");
            let file = json!({ "mcpServers": { name.as_str(): { "command": value, "args": [value], "env": { (variable.as_str()): value }, "url": value } } });
            if let Ok(found) = servers(&file.to_string(), &[], &environment) {
                proptest::prop_assert!(found.found.len() + found.left_out.len() == 1);
            }
            drop(servers(&json!({ "schemaVersion": 1, "name": name, "stdio": [value, text], "secrets": [value] }).to_string(), &[], &environment));
        }
    }
}
