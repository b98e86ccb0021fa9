//! Claude Code's plugin for this desk, in a marketplace of its own: files that are made from what they should say, and that
//! Claude Code copies when somebody installs them.

use std::path::{Path, PathBuf};

use deskmate_core::{Error, Result};
use serde_json::{Value, json};

use super::entry::Entry;
use super::hosts::Host;
use super::{Edit, files};
use crate::hook::settings;

/// The name of the marketplace, and of the one plugin in it.
pub(crate) const NAME: &str = "deskmate";
const MARKETPLACE: &str = ".claude-plugin/marketplace.json";
const DESCRIPTION: &str = "The desk that people and their AI agents share: propose, message, plan and work, and let people decide.";

const PATHS: [&str; 5] = [MARKETPLACE, "deskmate/.claude-plugin/plugin.json", "deskmate/.mcp.json", "deskmate/hooks/hooks.json", "deskmate/README.md"];
const README: &str = "# Deskmate\n\n\
    This plugin connects Claude Code to the desk that people and their AI agents share. With it an agent proposes what it intends, sends and reads\n\
    messages, and takes over tasks; people decide in one inbox, and everything that happened can be proved.\n\n\
    It was made by `deskmate connect claude-code --scope plugin` for the desk of one person on one machine, whose program and data directory it\n\
    names. If that desk is closed, the agent's token is taken from `DESKMATE_TOKEN`, or from the file that the entry names. If it has hooks,\n\
    the desk is asked before a tool is used, and a tool is not used when the desk cannot be asked.\n";

/// What stands in the plugin's folder, in the order of [`PATHS`].
fn contents(name: &str, entry: &Entry, hooks: Option<&str>) -> [Option<String>; 5] {
    let version = env!("CARGO_PKG_VERSION");
    let mut server = json!({});
    for (path, field) in entry.fields(Host::ClaudeCode, &Value::Null) {
        if let Some(value) = field
            && let Some(place) = place(&mut server, &path)
        {
            *place = value;
        }
    }
    let author = json!({ "name": "The Deskmate authors" });
    let plugin = json!({ "name": NAME, "version": version, "description": DESCRIPTION, "author": author, "license": "Apache-2.0 OR MIT" });
    let listed = json!({ "name": NAME, "source": "./deskmate", "description": DESCRIPTION, "version": version });
    let marketplace = json!({ "name": NAME, "owner": author, "description": "A desk on this machine", "plugins": [listed] });
    let text = |value: Value| serde_json::to_string_pretty(&value).unwrap_or_default() + "\n";
    [
        Some(text(marketplace)),
        Some(text(plugin)),
        Some(text(json!({ "mcpServers": { name: server } }))),
        hooks.map(|command| text(settings::claude_code(command))),
        Some(README.to_owned()),
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

/// The file with the hooks of a plugin.
pub(super) fn hooks(folder: &Path) -> PathBuf {
    folder.join("deskmate/hooks/hooks.json")
}

/// What has to be changed for the plugin to be there.
pub(super) fn plan(folder: &Path, name: &str, entry: &Entry, hooks: Option<&str>) -> Result<Vec<Edit>> {
    refuse_foreign(folder)?;
    edits(folder, contents(name, entry, hooks))
}

/// What has to be changed for it to be gone.
pub(super) fn plan_removal(folder: &Path) -> Result<Vec<Edit>> {
    refuse_foreign(folder)?;
    edits(folder, Default::default())
}

fn edits(folder: &Path, contents: [Option<String>; 5]) -> Result<Vec<Edit>> {
    let files = PATHS.iter().zip(contents);
    files.map(|(path, after)| Ok(Edit { found: files::read(&folder.join(path), None)?, after, holds_token: false, shared: true })).collect()
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
