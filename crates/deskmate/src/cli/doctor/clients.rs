//! Every entry that a client of this machine has for a desk, tried as that client would.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::connect::plugin_folder;
use super::super::{Failure, Global};
use super::{Check, Checks};
use crate::config;
use crate::connect::{Configured, Hooked, Host, Places, Scope, TOKEN_VARIABLE, Written, configured, hooked, probe, probe_hook, quote};
use crate::home::Home;

pub(super) fn checks(global: &Global, trust_project: bool, checks: &mut Checks) -> Result<(), Failure> {
    let home = Home::new(config::home(global.home.clone())?);
    let places = Places::here(Path::new("."))?;
    let plugin = plugin_folder(None, home.path())?;
    let (found, broken) = configured(&places, &plugin);
    for (host, error) in broken {
        checks.add([Check { fix: error.hint.clone(), ..Check::problem(host.title(), error.message) }])?;
    }
    for entry in &found {
        checks.add(secrets(&places, entry))?;
        checks.look(|| tried(&places, &home, entry, trust_project))?;
    }
    if found.is_empty() {
        checks.add([Check::warning("clients", "none is connected on this machine").fix("`deskmate connect claude-code`, or another client")])?;
    }
    for host in Host::ALL {
        let hooks = hooked(&places, host, &plugin);
        if home.running().is_some() {
            hooks.iter().try_for_each(|hooks| checks.look(|| tried_hooks(&places, &home, hooks, trust_project)))?;
        } else if !hooks.is_empty() {
            let said = "its hooks ask this desk before every use of a tool, and no server runs";
            checks.add([Check::warning(host.title(), said).fix("keep one running: `deskmate up`, or `deskmate service install`")])?;
        }
    }
    Ok(())
}

fn tried_hooks(places: &Places, home: &Home, hooks: &Hooked, trust_project: bool) -> Check {
    let (title, at) = (hooks.host.title(), format!("the hooks in {} ({})", places.shown(&hooks.file), hooks.scope.word()));
    if hooks.scope == Scope::Project && !trust_project && !is_harmless_hook(home, hooks) {
        let said = format!("{at} were not tried: a project's file can name any program or data directory");
        return Check::warning(title, said).fix("look at them; `deskmate doctor --trust-project` tries them");
    }
    match probe_hook(hooks, places.project()) {
        Ok(()) => Check::ok(title, format!("{at} answer")),
        Err(problem) => Check { fix: problem.fix, ..Check::problem(title, format!("{at}: {}", problem.message)) },
    }
}

fn is_harmless_hook(home: &Home, hooks: &Hooked) -> bool {
    let Some((command, args)) = hooks.command.split_first() else { return true };
    is_harmless(home, &Written::Stdio { command: command.clone(), args: args.to_vec(), env: BTreeMap::new(), passed: Vec::new() })
}

/// Where an entry is, in words.
fn place(places: &Places, entry: &Configured) -> String {
    format!("{:?} in {} ({})", entry.name, places.shown(&entry.file), entry.scope)
}

/// A token belongs into no file that others read or that gets committed.
fn secrets(places: &Places, entry: &Configured) -> Option<Check> {
    let values: &BTreeMap<String, String> = match &entry.entry {
        Written::Stdio { env, .. } => env,
        Written::Http { headers, .. } => headers,
    };
    if !values.values().any(|value| value.contains("dma_")) {
        return None;
    }
    if matches!(entry.scope, "project" | "plugin") {
        let said = format!("{} holds a token, in a file that others get", place(places, entry));
        return Some(Check::problem(entry.host.title(), said).fix("`deskmate agent rotate NAME`, then connect again: the new one is not written there"));
    }
    let open = std::fs::metadata(&entry.file).is_ok_and(|found| found.mode() & 0o077 != 0);
    let said = format!("{} holds a token, and others can read the file", place(places, entry));
    open.then(|| Check::problem(entry.host.title(), said).fix(format!("chmod 600 {}", quote(&entry.file.display().to_string()))))
}

fn tried(places: &Places, home: &Home, entry: &Configured, trust_project: bool) -> Check {
    let (title, at) = (entry.host.title(), place(places, entry));
    if entry.scope == "project" && !trust_project && !is_harmless(home, &entry.entry) {
        let said = format!("{at} was not tried: a project's file can name any program, address or data directory");
        return Check::warning(title, said).fix("look at it; `deskmate doctor --trust-project` tries it");
    }
    if entry.host == Host::ClaudeDesktop && ends_when_idle(&entry.entry) {
        let said = format!("{at} ends when it is idle, and Claude Desktop never starts it again");
        return Check::problem(title, said).fix(format!("deskmate connect claude-desktop --name {}", entry.name));
    }
    match probe(entry.host, &entry.entry, &entry.folder, &config::env) {
        Ok(tried) if tried.tools == 0 => Check::warning(title, format!("{at} connects and offers no tools")).fix("look at its --toolset"),
        Ok(tried) if tried.version != env!("CARGO_PKG_VERSION") => {
            let said = format!("{at} connects to {} {}; this program is {}", tried.server, tried.version, env!("CARGO_PKG_VERSION"));
            Check::warning(title, said).fix("bring the older one up to date")
        }
        Ok(tried) => Check::ok(title, format!("{at} connects: {} tools", tried.tools)),
        Err(problem) if problem.untried => Check { fix: problem.fix, ..Check::warning(title, format!("{at}: {}", problem.message)) },
        Err(problem) => {
            let fix = problem.fix.unwrap_or_else(|| format!("deskmate connect {} --scope {} --name {}", entry.host.word(), scope(entry.scope), entry.name));
            Check::problem(title, format!("{at}: {}", problem.message)).fix(fix)
        }
    }
}

fn scope(word: &str) -> &str {
    if word == "local" { "user" } else { word }
}

fn ends_when_idle(entry: &Written) -> bool {
    let Written::Stdio { args, env, .. } = entry else { return false };
    args.iter().any(|word| word == "--idle-exit" || word.starts_with("--idle-exit=")) || env.contains_key("COS_MCP_IDLE_EXIT_MS")
}

/// Whether an entry of a project does nothing but what `connect` writes for this desk: this very program, this data directory,
/// this desk's address. Whoever made the project chose the rest.
fn is_harmless(home: &Home, entry: &Written) -> bool {
    match entry {
        Written::Stdio { command, env, passed, .. } => {
            let only_token = env.keys().chain(passed).all(|name| name == TOKEN_VARIABLE);
            let own_home = entry.flag("--home").is_none_or(|given| Path::new(given) == home.path());
            only_token && own_home && is_this_program(command)
        }
        Written::Http { url, .. } => {
            let origin = |text: &str| url::Url::parse(text).ok().map(|url| url.origin());
            home.running().and_then(|holder| origin(&holder.url?)).is_some_and(|own| origin(url) == Some(own))
        }
    }
}

/// A bare name is looked up where the person's own search path leads; a path must lead to this program.
fn is_this_program(command: &str) -> bool {
    if command == "deskmate" {
        return true;
    }
    let own = crate::background::program().and_then(|own| own.canonicalize());
    Path::new(command).is_absolute() && own.is_ok_and(|own| Path::new(command).canonicalize().is_ok_and(|named| named == own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stdio(command: &str, args: &[&str], env: &[(&str, &str)]) -> Written {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Written::Stdio { command: command.to_owned(), args: args.iter().map(|word| (*word).to_owned()).collect(), env, passed: Vec::new() }
    }

    #[test]
    fn what_a_project_chooses_is_not_run_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().to_owned());
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        let here = folder.path().to_str().unwrap();
        for good in [stdio("deskmate", &["mcp"], &[]), stdio(own, &["mcp", "--home", here], &[("DESKMATE_TOKEN", "${DESKMATE_TOKEN}")])] {
            assert!(is_harmless(&home, &good), "{good:?}");
        }
        for bad in [
            stdio("./deskmate", &["mcp"], &[]),
            stdio("/tmp/deskmate", &["mcp"], &[]),
            stdio("deskmate", &["mcp", "--home", "/elsewhere"], &[]),
            stdio("deskmate", &["mcp", "--home=/elsewhere"], &[]),
            stdio("deskmate", &["mcp"], &[("LD_PRELOAD", "./x.so")]),
            stdio("deskmate", &["mcp"], &[("DESKMATE_HOME", "/elsewhere")]),
            Written::Http { url: "http://127.0.0.1:9/mcp".into(), headers: BTreeMap::new(), bearer: None },
        ] {
            assert!(!is_harmless(&home, &bad), "{bad:?}");
        }
    }

    #[test]
    fn an_idle_exit_is_seen() {
        assert!(ends_when_idle(&stdio("deskmate", &["mcp", "--idle-exit", "5m"], &[])));
        assert!(ends_when_idle(&stdio("deskmate", &["mcp", "--idle-exit=5m"], &[])));
        assert!(ends_when_idle(&stdio("deskmate", &["mcp"], &[("COS_MCP_IDLE_EXIT_MS", "1")])));
        assert!(!ends_when_idle(&stdio("deskmate", &["mcp"], &[])));
    }
}
