//! Bringing a backup back, into a data directory that has no desk.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use deskmate_core::record::{Keyring, SigningKey};
use deskmate_core::{Error, MIGRATIONS, Result, secret};
use deskmate_db::{Db, Options};
use serde::Serialize;

use super::archive::{self, FORMAT, Manifest, file_entry, is_inside};
use super::staging::Staging;
use super::{BRIDGE, KEY, MANIFEST, SECRET_KEY, STORE, Secret, at, crypt, progress, verify, yaml};
use crate::config;
use crate::home::Home;

/// What was brought back.
#[derive(Serialize)]
pub(crate) struct Restored {
    pub(crate) home: PathBuf,
    pub(crate) origin: String,
    pub(crate) written_at: String,
    pub(crate) events: u64,
    pub(crate) root: String,
    /// How many events the newest checkpoint that was kept elsewhere knows and this desk does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) behind: Option<u64>,
    pub(crate) notes: Vec<String>,
}

/// Restores a backup. `kept` are checkpoints that were kept elsewhere; `ask` asks for the passphrase where one is needed.
pub(crate) fn restore(home: &Home, file: &Path, identity: Option<&Path>, kept: &[String], ask: &mut dyn FnMut() -> Result<Secret>) -> Result<Restored> {
    refuse_occupied(home, &[])?;
    let base = home.path().ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
    let staging = Staging::new(base)?;
    let plain = crypt::open(file, identity, ask)?;
    let bar = progress(std::fs::metadata(file).map_or(0, |found| found.len()), "unpacking");
    archive::unpack(bar.wrap_read(plain), &|name| staging.file(name))?;
    bar.finish_and_clear();
    let manifest = read_manifest(&staging)?;
    let brings_key = staging.file(SECRET_KEY).is_file();
    let others = manifest.bridge_file.iter().chain(&manifest.files).map(String::as_str);
    let others: Vec<&str> = others.chain(brings_key.then_some(SECRET_KEY)).collect();
    refuse_occupied(home, &others)?;
    let key = std::fs::read_to_string(staging.file(KEY)).map_err(|_| incomplete(KEY))?;
    let key = SigningKey::parse(&key)?;
    let keys = Keyring::new(vec![key.public().to_owned()]);
    let (newest, earlier) = split_kept(kept, &keys, manifest.events)?;
    let has_secrets = check(&staging, &manifest, &keys, earlier)?;
    let mut notes = Vec::new();
    if has_secrets && !brings_key && !home.path().join(SECRET_KEY).exists() {
        notes.push(format!(
            "the secrets of this desk, and requests that are not over, need their key: put {SECRET_KEY} into the data directory before you start it, or remove and set secrets anew, and reject what waits"
        ));
    }
    let behind = newest.map(|size| size - manifest.events);
    if let Some(behind) = behind {
        notes.push(format!(
            "this desk is {behind} events behind a checkpoint that was kept elsewhere: they are lost, and `deskmate audit verify` with that checkpoint will say so from now on"
        ));
    }
    place(home, &staging, &manifest, &mut notes)?;
    Ok(Restored {
        home: home.path().to_owned(),
        origin: manifest.origin,
        written_at: manifest.created_at,
        events: manifest.events,
        root: manifest.root,
        behind,
        notes,
    })
}

/// Refuses a directory in which anything would be overwritten.
fn refuse_occupied(home: &Home, others: &[&str]) -> Result<()> {
    if let Some(holder) = home.running() {
        return Err(Error::conflict(format!("a desk runs in {} (process {})", home.path().display(), holder.pid)));
    }
    let names = [STORE, "desk.db-wal", KEY, config::FILE].into_iter().chain(others.iter().copied());
    let there: Vec<&str> = names.filter(|name| home.path().join(name).exists()).collect();
    if there.is_empty() {
        return Ok(());
    }
    let message = format!("{} is not empty: it has {}", home.path().display(), there.join(", "));
    Err(Error::conflict(message).hint("restore into another directory with --home, or move what is there away first"))
}

fn incomplete(name: &str) -> Error {
    Error::invalid("backup", format!("holds no readable {name}; nothing was restored"))
}

fn read_manifest(staging: &Staging) -> Result<Manifest> {
    let text = std::fs::read_to_string(staging.file(MANIFEST)).map_err(|_| incomplete(MANIFEST))?;
    let format: serde_json::Value = serde_json::from_str(&text).map_err(|_| incomplete(MANIFEST))?;
    let format = format.get("format").and_then(serde_json::Value::as_str).unwrap_or_default();
    if format != FORMAT {
        return Err(Error::invalid("backup", format!("is of the format {format:?}, and this version knows {FORMAT}")).hint("use a newer deskmate"));
    }
    let manifest: Manifest = serde_json::from_str(&text).map_err(|_| incomplete(MANIFEST))?;
    if let Some(name) = &manifest.bridge_file {
        let mut parts = Path::new(name).components();
        let plain =
            matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) && ![STORE, KEY, SECRET_KEY, config::FILE].contains(&name.as_str());
        if !plain {
            return Err(Error::invalid("backup", format!("names a bridge file that cannot be one: {name:?}")));
        }
    }
    if let Some(name) = manifest.files.iter().find(|name| !is_inside(name)) {
        return Err(Error::invalid("backup", format!("names a file that cannot be one of the data directory: {name:?}")));
    }
    Ok(manifest)
}

/// The size of the newest kept checkpoint if it is beyond this backup, and those that the backup must agree with.
fn split_kept(kept: &[String], keys: &Keyring, events: u64) -> Result<(Option<u64>, Vec<String>)> {
    let mut newest = None;
    let mut earlier = Vec::new();
    for note in kept {
        let size = keys.open(note)?.size();
        if size > events {
            newest = newest.max(Some(size));
        } else {
            earlier.push(note.clone());
        }
    }
    Ok((newest, earlier))
}

/// Verifies the record, and that it is the one of which the manifest speaks; tells whether there are secrets.
fn check(staging: &Staging, manifest: &Manifest, keys: &Keyring, mut kept: Vec<String>) -> Result<bool> {
    kept.extend(manifest.checkpoint.clone());
    let db = Db::open_reader(&Options::new(format!("sqlite:{}", staging.file(STORE).display()), MIGRATIONS))?;
    let report = verify(&db, keys, &kept)?;
    let has_secrets = db.read_blocking(secret::is_kept)?;
    db.close();
    verify::sound(&report, "backup")?;
    if report.events != manifest.events || report.root != manifest.root || report.checkpoint != manifest.checkpoint {
        return Err(Error::invalid("backup", "holds another record than its manifest says; nothing was restored"));
    }
    Ok(has_secrets)
}

/// Puts the files in place, the store last: where there is a store, everything else is there too.
fn place(home: &Home, staging: &Staging, manifest: &Manifest, notes: &mut Vec<String>) -> Result<()> {
    let failed = |error: crate::home::HomeError| Error::conflict(error.to_string());
    home.create().map_err(failed)?;
    let _lock = home.lock(false).map_err(failed)?;
    let settings = staging.file(config::FILE);
    if settings.is_file() {
        let text = std::fs::read_to_string(&settings).map_err(at(&settings))?;
        if let Some(changed) = yaml::without_database_url(&text) {
            std::fs::write(&settings, changed).map_err(at(&settings))?;
            notes.push(format!("the store was restored as SQLite in the data directory; the database_url line of {} is now a comment", config::FILE));
        }
    }
    if config::env("DESKMATE_DATABASE_URL").is_some() {
        notes.push("DESKMATE_DATABASE_URL is set: a desk started with it uses that database, not the restored one".to_owned());
    }
    let mut files: Vec<(String, &str)> = manifest.files.iter().enumerate().map(|(place, name)| (file_entry(place), name.as_str())).collect();
    files.extend(manifest.bridge_file.as_deref().map(|name| (BRIDGE.to_owned(), name)));
    files.extend([config::FILE, KEY, SECRET_KEY, STORE].map(|name| (name.to_owned(), name)));
    for (from, to) in files {
        let (from, to) = (staging.file(&from), home.path().join(to));
        if from.is_file() {
            if let Some(folder) = to.parent() {
                std::fs::create_dir_all(folder).map_err(at(folder))?;
            }
            std::fs::rename(&from, &to).map_err(at(&to))?;
        }
    }
    File::open(home.path()).and_then(|directory| directory.sync_all()).map_err(at(home.path()))
}
