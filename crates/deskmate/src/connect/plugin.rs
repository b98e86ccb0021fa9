//! Claude Code's plugin for this desk, in a marketplace of its own: files that are made from what they should say, and that
//! Claude Code copies when somebody installs them.

use std::path::{Path, PathBuf};

use deskmate_core::{Error, Result};
use serde_json::{Value, json};

use super::entry::Entry;
use super::hooks::hook_settings;
use super::hosts::Host;
use super::{Edit, files};

/// The name of the marketplace, and of the one plugin in it.
pub(crate) const NAME: &str = "deskmate";
const MARKETPLACE: &str = ".claude-plugin/marketplace.json";
const DESCRIPTION: &str = "The desk that people and their AI agents share: propose, message, plan and work, and let people decide.";

/// What stands in the plugin's folder, by its path there.
fn contents(name: &str, entry: &Entry, hooks: Option<&str>) -> Vec<(&'static str, Option<Value>)> {
    let version = env!("CARGO_PKG_VERSION");
    let mut server = json!({});
    for (path, field) in entry.fields(Host::ClaudeCode, &Value::Null) {
        if let Some(value) = field
            && let Some(place) = place(&mut server, &path)
        {
            *place = value;
        }
    }
    let plugin = json!({ "name": NAME, "version": version, "description": DESCRIPTION });
    let listed = json!({ "name": NAME, "source": "./deskmate", "description": DESCRIPTION, "version": version });
    vec![
        (MARKETPLACE, Some(json!({ "name": NAME, "owner": { "name": "Deskmate" }, "description": "A desk on this machine", "plugins": [listed] }))),
        ("deskmate/.claude-plugin/plugin.json", Some(plugin)),
        ("deskmate/.mcp.json", Some(json!({ "mcpServers": { name: server } }))),
        ("deskmate/hooks/hooks.json", hooks.map(hook_settings)),
    ]
}

/// The place of a field, and what leads there.
fn place<'v>(value: &'v mut Value, path: &[&str]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |at, key| {
        if at.is_null() {
            *at = json!({});
        }
        Some(at.as_object_mut()?.entry((*key).to_owned()).or_insert(Value::Null))
    })
}

/// What has to be changed for the plugin to be there.
pub(super) fn plan(folder: &Path, name: &str, entry: &Entry, hooks: Option<&str>) -> Result<Vec<Edit>> {
    refuse_foreign(folder)?;
    let mut edits = Vec::new();
    for (path, value) in contents(name, entry, hooks) {
        let after = value.map(|value| serde_json::to_string_pretty(&value).unwrap_or_default() + "\n");
        edits.push(Edit { found: files::read(&folder.join(path), None)?, after, holds_token: false, shared: true });
    }
    Ok(edits)
}

/// What has to be changed for it to be gone.
pub(super) fn plan_removal(folder: &Path) -> Result<Vec<Edit>> {
    refuse_foreign(folder)?;
    let paths = [MARKETPLACE, "deskmate/.claude-plugin/plugin.json", "deskmate/.mcp.json", "deskmate/hooks/hooks.json"];
    let edit = |path| Ok(Edit { found: files::read(&folder.join(path), None)?, after: None, holds_token: false, shared: true });
    paths.into_iter().map(edit).collect()
}

/// The folders that are left empty.
pub(super) fn folders(folder: &Path) -> Vec<PathBuf> {
    let inner = ["deskmate/.claude-plugin", "deskmate/hooks", "deskmate", ".claude-plugin"];
    inner.iter().map(|path| folder.join(path)).chain([folder.to_owned()]).collect()
}

/// A folder that holds another marketplace is somebody else's.
fn refuse_foreign(folder: &Path) -> Result<()> {
    let Some(text) = files::read(&folder.join(MARKETPLACE), None)?.text else { return Ok(()) };
    let name = serde_json::from_str::<Value>(&text).ok().and_then(|value| Some(value.get("name")?.as_str()? == NAME));
    if name == Some(true) {
        return Ok(());
    }
    Err(Error::conflict(format!("{} holds another marketplace", folder.display())).hint("name another folder with --dir"))
}
