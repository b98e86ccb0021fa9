//! The entries of desks that the clients of this machine have.

use std::path::{Path, PathBuf};

use deskmate_core::Error;
use serde_json::Value;

use super::document::Document;
use super::entry::Written;
use super::files;
use super::hosts::{Host, Places, Scope};

/// An entry that leads to a desk.
pub(crate) struct Configured {
    pub(crate) host: Host,
    /// `user`, `project`, `plugin`, or with Claude Code `local`: for one folder, in the user's own file.
    pub(crate) scope: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) name: String,
    pub(crate) entry: Written,
    /// Where the client starts it.
    pub(crate) folder: PathBuf,
}

/// Every entry that leads to a desk, and every file that cannot be read.
pub(crate) fn configured(places: &Places, plugin: &Path) -> (Vec<Configured>, Vec<(Host, Error)>) {
    let (mut found, mut broken) = (Vec::new(), Vec::new());
    for host in Host::ALL {
        for scope in [Scope::User, Scope::Project] {
            let Ok(file) = places.servers(host, scope) else { continue };
            // In the home directory the file of the project is the person's own.
            if scope == Scope::Project && places.servers(host, Scope::User).is_ok_and(|own| own == file) {
                continue;
            }
            match entries(places, host, scope, &file) {
                Ok(entries) => found.extend(entries),
                Err(error) => broken.push((host, error)),
            }
        }
    }
    let file = plugin.join("deskmate/.mcp.json");
    if let Ok(text) = std::fs::read_to_string(&file) {
        let servers = serde_json::from_str::<Value>(&text).unwrap_or_default();
        let ours = ours(servers.get("mcpServers"));
        found.extend(ours.map(|(name, entry)| Configured {
            host: Host::ClaudeCode,
            scope: "plugin",
            file: file.clone(),
            name,
            entry,
            folder: places.home.clone(),
        }));
    }
    (found, broken)
}

fn entries(places: &Places, host: Host, scope: Scope, file: &Path) -> Result<Vec<Configured>, Error> {
    let in_project = scope == Scope::Project;
    let Some(text) = files::read(file, in_project.then_some(places.project.as_path()))?.text else { return Ok(Vec::new()) };
    let document = Document::parse(&text, host.format());
    let broken =
        |what: String| Error::new(deskmate_core::Code::Invalid, format!("{} {what}", file.display())).hint("mend it; the client cannot read it either");
    let document = document.map_err(broken)?;
    let at = |scope: &'static str, folder: PathBuf| {
        let file = file.to_owned();
        move |(name, entry)| Configured { host, scope, file: file.clone(), name, entry, folder: folder.clone() }
    };
    let servers = document.get(&[host.section()]).map_err(broken)?;
    let folder = if in_project { &places.project } else { &places.home };
    let mut found: Vec<Configured> = ours(servers.as_ref()).map(at(scope.word(), folder.clone())).collect();
    if host == Host::ClaudeCode && !in_project {
        // What `claude mcp add` writes where nothing else is said.
        let projects = document.get(&["projects"]).map_err(broken)?.unwrap_or_default();
        for (folder, project) in projects.as_object().into_iter().flatten() {
            found.extend(ours(project.get("mcpServers")).map(at("local", PathBuf::from(folder))));
        }
    }
    Ok(found)
}

fn ours(servers: Option<&Value>) -> impl Iterator<Item = (String, Written)> {
    let named = servers.and_then(Value::as_object).into_iter().flatten();
    let read = named.filter_map(|(name, entry)| Some((name.clone(), Written::read(entry)?)));
    read.filter(|(_, entry)| entry.is_ours()).collect::<Vec<_>>().into_iter()
}
