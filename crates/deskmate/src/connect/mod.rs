//! Connecting clients: the entry of this desk in the file that a client reads, and taking it out again.
//!
//! A change is planned first, as texts before and after, so that nothing is written when anything is wrong, and a dry run
//! shows exactly what would be. Entries of others, their order and their comments stay; what was there is kept.

mod document;
mod entry;
mod files;
mod find;
mod hooks;
mod hosts;
mod json;
mod known;
mod plugin;
mod probe;
#[cfg(test)]
mod tests;
mod toml;

use std::path::{Path, PathBuf};

use deskmate_core::{Code, Error, Result};
use serde_json::{Value, json};
use similar::TextDiff;

use document::Document;
use entry::INPUT;
use files::Found;
use hosts::Format;

use crate::hook::settings;

pub(crate) use entry::{Entry, TOKEN_VARIABLE, Token, Way, Written, without_secrets};
pub(crate) use find::{Configured, configured};
pub(crate) use hosts::{Host, Places, Scope};
pub(crate) use plugin::NAME as PLUGIN;
pub(crate) use probe::{probe, probe_hook};

/// What a client should have.
pub(crate) struct Wanted {
    pub(crate) host: Host,
    pub(crate) scope: Scope,
    /// The entry's name there.
    pub(crate) name: String,
    pub(crate) entry: Entry,
    /// The command that answers hooks, where they are wanted.
    pub(crate) hooks: Option<String>,
    /// Where a plugin is put.
    pub(crate) plugin: PathBuf,
}

impl Wanted {
    /// The client's settings with the hooks, where they are wanted.
    fn hook_settings(&self) -> Option<Value> {
        Some(settings::of(self.host.hooks()?, self.hooks.as_deref()?))
    }

    /// The same with the file where they belong, where that is another one than that with the servers.
    fn hooks_elsewhere(&self, places: &Places) -> Option<(PathBuf, Value)> {
        let path = places.hooks(self.host, self.scope).filter(|path| places.servers(self.host, self.scope).is_ok_and(|servers| servers != *path))?;
        Some((path, self.hook_settings()?))
    }
}

/// One file, before and after.
pub(crate) struct Edit {
    found: Found,
    /// What it should say; nothing where it should not be.
    after: Option<String>,
    holds_token: bool,
    shared: bool,
}

/// A file that was changed.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) path: PathBuf,
    /// Where what was there is kept.
    pub(crate) backup: Option<PathBuf>,
}

impl Edit {
    pub(crate) fn path(&self) -> &Path {
        &self.found.path
    }

    pub(crate) fn changes(&self) -> bool {
        self.found.text != self.after || (self.holds_token && self.found.is_open())
    }

    /// The change for people to read, without any agent's token.
    pub(crate) fn diff(&self, places: &Places) -> String {
        let shown = |text: &Option<String>| text.as_deref().map(without_secrets).unwrap_or_default();
        let (before, after, name) = (shown(&self.found.text), shown(&self.after), places.shown(&self.found.path));
        let header = |text: &Option<String>| text.as_ref().map_or_else(|| "/dev/null".to_owned(), |_| name.clone());
        let diff = TextDiff::from_lines(&before, &after);
        let lines = diff.unified_diff().context_radius(3).header(&header(&self.found.text), &header(&self.after)).to_string();
        if lines.is_empty() && self.found.text != self.after { format!("--- {name}\n+++ {name}\n(another token)\n") } else { lines }
    }

    /// A token that is written where git watches is as good as published.
    fn refuse_published(&self) -> Result<()> {
        if !self.holds_token || !self.found.is_committed() {
            return Ok(());
        }
        let message = format!("{} lies in a git repository, and a token does not belong into what gets committed", self.found.real.display());
        Err(Error::forbidden(message).hint("keep the token in a file elsewhere and give --token-file FILE"))
    }
}

/// What has to be changed for a client to be connected.
pub(crate) fn plan(places: &Places, wanted: &Wanted) -> Result<Vec<Edit>> {
    if wanted.scope == Scope::Plugin {
        return plugin::plan(&wanted.plugin, &wanted.name, &wanted.entry, wanted.hooks.as_deref());
    }
    let mut edits = vec![servers(places, wanted)?];
    if let Some((path, settings)) = wanted.hooks_elsewhere(places) {
        edits.push(edited(path, wanted.host.hooks_format(), places, wanted.scope, |document| hooks::add(document, &settings))?);
    }
    for edit in &edits {
        edit.refuse_published()?;
    }
    Ok(edits)
}

/// Reads a file, lets it be changed, and says what became of it.
fn edited(path: PathBuf, format: Format, places: &Places, scope: Scope, change: impl FnOnce(&mut Document) -> Result<(), String>) -> Result<Edit> {
    let shared = scope.is_shared();
    let found = files::read(&path, shared.then_some(places.project.as_path()))?;
    let before = found.text.clone().unwrap_or_default();
    let broken = |what: String| {
        Error::new(Code::Invalid, format!("{} {what}", path.display())).hint("nothing was changed: mend the file and run this again, or add the entry by hand")
    };
    let mut document = Document::parse(&before, format).map_err(broken)?;
    let untouched = document.text();
    change(&mut document).map_err(broken)?;
    let text = document.text();
    let after = if text == untouched { found.text.clone() } else { Some(text) };
    Ok(Edit { found, after, holds_token: false, shared })
}

/// The file with the servers, with the entry in it.
fn servers(places: &Places, wanted: &Wanted) -> Result<Edit> {
    let (host, name) = (wanted.host, wanted.name.as_str());
    let path = places.servers(host, wanted.scope)?;
    let mut foreign = false;
    let mut edit = edited(path.clone(), host.format(), places, wanted.scope, |document| {
        let at = [host.section(), name];
        let before = document.get(&at)?;
        foreign = before.as_ref().is_some_and(|before| !Written::read(before).is_some_and(|entry| entry.is_ours()));
        if foreign {
            return Ok(());
        }
        let before = before.unwrap_or(Value::Null);
        for (field, value) in wanted.entry.fields(host, &before) {
            let whole: Vec<&str> = at.into_iter().chain(field.iter().copied()).collect();
            match value {
                Some(value) => document.set(&whole, &value)?,
                None => take_out(document, &whole, at.len())?,
            }
        }
        if host == Host::Vscode && wanted.entry.token == Token::Asked {
            ask_for_token(document)?;
        }
        if let Some(settings) = wanted.hook_settings() {
            if places.hooks(host, wanted.scope).as_ref() == Some(&path) {
                hooks::add(document, &settings)?;
            }
            if let Some(switch) = host.hooks_switch() {
                document.set(&switch, &json!(true))?;
            }
        }
        Ok(())
    })?;
    if foreign {
        let message = format!("{} has an entry {name:?} already, and it is not a desk's", path.display());
        return Err(Error::conflict(message).hint("give this one another name with --name"));
    }
    edit.holds_token = matches!(wanted.entry.token, Token::Written(_));
    Ok(edit)
}

/// Removes a key, and then what holds it where that is left empty.
fn take_out(document: &mut Document, path: &[&str], keep: usize) -> Result<(), String> {
    document.remove(path)?;
    if let Some((_, holder)) = path.split_last().filter(|(_, holder)| holder.len() > keep)
        && document.get(holder)?.is_some_and(|left| left.as_object().is_some_and(serde_json::Map::is_empty))
    {
        document.remove(holder)?;
    }
    Ok(())
}

/// VS Code asks for the token when it first needs it, and keeps it where it keeps secrets.
fn ask_for_token(document: &mut Document) -> Result<(), String> {
    if document.list(&["inputs"])?.iter().any(|input| input.get("id") == Some(&json!(INPUT))) {
        return Ok(());
    }
    document.push(&["inputs"], &json!({ "type": "promptString", "id": INPUT, "description": "Token of this agent on the desk (dma_…)", "password": true }))
}

/// What has to be changed for an entry to be gone, and whether there is one.
pub(crate) fn plan_removal(places: &Places, host: Host, scope: Scope, name: &str, plugin: &Path) -> Result<Vec<Edit>> {
    if scope == Scope::Plugin {
        // Where it says so already.
        places.servers(host, if host == Host::ClaudeCode { Scope::User } else { scope })?;
        return plugin::plan_removal(plugin);
    }
    let path = places.servers(host, scope)?;
    let hooked = places.hooks(host, scope);
    let (mut foreign, mut last) = (false, false);
    let edit = edited(path.clone(), host.format(), places, scope, |document| {
        let at = [host.section(), name];
        let before = document.get(&at)?;
        foreign = before.as_ref().is_some_and(|before| !Written::read(before).is_some_and(|entry| entry.is_ours()));
        if before.is_some() && !foreign {
            document.remove(&at)?;
            if host == Host::Vscode {
                forget_token(document)?;
            }
        }
        let left = document.get(&[host.section()])?.unwrap_or_default();
        last = !left.as_object().into_iter().flatten().any(|(_, entry)| Written::read(entry).is_some_and(|entry| entry.is_ours()));
        if last && !foreign && hooked.as_ref() == Some(&path) {
            hooks::remove(document)?;
        }
        Ok(())
    })?;
    if foreign {
        let message = format!("the entry {name:?} in {} is not a desk's, so it stays", path.display());
        return Err(Error::conflict(message).hint("name the entry with --name"));
    }
    let mut edits = vec![edit];
    if let Some(hooked) = hooked.filter(|hooked| last && *hooked != path) {
        // Without an entry nobody answers the hooks.
        edits.push(edited(hooked, host.hooks_format(), places, scope, hooks::remove)?);
    }
    Ok(edits)
}

/// Takes VS Code's question away when nothing needs the answer any more.
fn forget_token(document: &mut Document) -> Result<(), String> {
    let servers = document.get(&["servers"])?.unwrap_or_default().to_string();
    if servers.contains(&format!("${{input:{INPUT}}}")) {
        return Ok(());
    }
    let inputs = document.list(&["inputs"])?;
    if let Some(index) = inputs.iter().position(|input| input.get("id") == Some(&json!(INPUT))) {
        document.replace_at(&["inputs"], index, None)?;
        if inputs.len() == 1 {
            document.remove(&["inputs"])?;
        }
    }
    Ok(())
}

/// Makes the changes. What was there is kept in a folder first.
pub(crate) fn apply(edits: &[Edit], backups: &Path, now: i64) -> Result<Vec<Applied>> {
    let mut applied = Vec::new();
    for (number, edit) in edits.iter().enumerate().filter(|(_, edit)| edit.changes()) {
        // Two files of one name, changed together, are kept beside each other.
        let backup = edit.found.keep(backups, now.saturating_add(i64::try_from(number).unwrap_or(0)))?;
        match &edit.after {
            Some(text) => edit.found.write(text, edit.holds_token, edit.shared)?,
            None => edit.found.delete()?,
        }
        applied.push(Applied { path: edit.found.path.clone(), backup });
    }
    Ok(applied)
}

/// Removes the folders of a plugin whose files are gone. One that holds something else stays.
pub(crate) fn clear_plugin(folder: &Path) {
    for folder in plugin::folders(folder) {
        drop(std::fs::remove_dir(folder));
    }
}

/// A word for the shell.
pub(crate) fn quote(word: &str) -> String {
    hooks::quote(word)
}

/// A command in a client's settings that asks a desk about each use of a tool.
#[derive(Debug)]
pub(crate) struct Hooked {
    pub(crate) host: Host,
    pub(crate) scope: Scope,
    pub(crate) file: PathBuf,
    /// In words, the program first.
    pub(crate) command: Vec<String>,
}

/// Every such command of a client, with those of the plugin in its folder.
pub(crate) fn hooked(places: &Places, host: Host, plugin: &Path) -> Vec<Hooked> {
    let mut found = Vec::new();
    for scope in [Scope::User, Scope::Project, Scope::Plugin] {
        let file = match scope {
            Scope::Plugin => (host == Host::ClaudeCode).then(|| plugin::hooks(plugin)),
            // In the home directory the file of the project is the person's own.
            Scope::Project => places.hooks(host, scope).filter(|file| places.hooks(host, Scope::User).as_ref() != Some(file)),
            Scope::User => places.hooks(host, scope),
        };
        let Some(file) = file else { continue };
        let within = (scope == Scope::Project).then_some(places.project.as_path());
        let text = files::read(&file, within).ok().and_then(|found| found.text);
        let Some(document) = text.and_then(|text| Document::parse(&text, host.hooks_format()).ok()) else { continue };
        found.extend(hooks::commands(&document).into_iter().map(|command| Hooked { host, scope, file: file.clone(), command }));
    }
    found
}
