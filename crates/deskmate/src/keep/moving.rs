//! Taking a desk to another engine. The source is only read; the target carries a mark until it is complete, and a
//! server refuses a store with that mark.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deskmate_core::record::{self, Keyring, Report, SigningKey};
use deskmate_core::{Error, Result};
use deskmate_db::{Db, Engine, args, seal_file};
use serde::Serialize;

use super::{at, backup, engine_name, progress, tables, verify, yaml};
use crate::config::{self, Settings};
use crate::home::Home;

/// What was moved.
#[derive(Serialize)]
pub(crate) struct Moved {
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    pub(crate) events: u64,
    pub(crate) root: String,
    /// Whether `deskmate.yaml` names the new store now.
    pub(crate) switched: bool,
    /// What to write there.
    pub(crate) setting: String,
    pub(crate) notes: Vec<String>,
}

/// Copies the desk's store into an empty one. No server may run on this data directory.
pub(crate) fn move_to(settings: &Settings, to: &str, switch: bool) -> Result<Moved> {
    let to = absolute(to)?;
    let home = Home::new(settings.home.clone());
    let failed = |error: crate::home::HomeError| Error::conflict(error.to_string());
    let mut lock = home.lock(false).map_err(failed)?;
    lock.hold_store(&settings.database_url).map_err(failed)?;
    let key = Arc::new(home.signing_key().map_err(failed)?);
    let from = settings.database_url.as_str();
    if *from == to {
        return Err(Error::invalid("to", "names the store that the desk uses now"));
    }
    if let Some(path) = from.strip_prefix("sqlite:")
        && !Path::new(path).is_file()
    {
        return Err(Error::not_found(format!("there is no store at {path}")));
    }
    let source = tables::open(from)?;
    refuse_unfinished(&source)?;
    if source.engine() == Engine::Postgres {
        backup::seal(from, &key)?;
    }
    let fresh = to.strip_prefix("sqlite:").map(PathBuf::from).filter(|path| !path.exists());
    let target = tables::open(&to)?;
    let done = begin(&target).and_then(|()| {
        let copied = copy(&source, &target, &key);
        if copied.is_err() {
            // The mark stays if even this fails; then the next attempt empties it.
            drop(tables::empty(&target).and_then(|()| mark(&target, false)));
        }
        copied
    });
    let (from, engine) = (engine_name(source.engine()), engine_name(target.engine()));
    source.close();
    target.close();
    if let (Err(_), Some(path)) = (&done, fresh) {
        remove_store(&path);
    }
    let report = done?;
    if let Some(path) = to.strip_prefix("sqlite:") {
        seal_file(Path::new(path))?;
    }
    let mut notes = Vec::new();
    if switch {
        yaml::set_database_url(&settings.home.join(config::FILE), &to)?;
    }
    if config::env("DESKMATE_DATABASE_URL").is_some() {
        notes.push("DESKMATE_DATABASE_URL is set and wins over deskmate.yaml: change it too".to_owned());
    }
    notes.push("the old store is as it was: remove it when the desk runs well on the new one".to_owned());
    Ok(Moved { from, to: engine, events: report.events, root: report.root, switched: switch, setting: yaml::line(&to), notes })
}

/// A path that holds from wherever the server is started.
fn absolute(url: &str) -> Result<String> {
    match url.strip_prefix("sqlite:") {
        Some(path) => {
            let path = std::path::absolute(path).map_err(at(Path::new(path)))?;
            Ok(format!("sqlite:{}", path.display()))
        }
        None if url.starts_with("postgres://") || url.starts_with("postgresql://") => Ok(url.to_owned()),
        None => Err(Error::invalid("to", "must begin with postgres:// or sqlite:")),
    }
}

/// Marks an empty target. What an earlier attempt left behind is removed; anything else is refused.
fn begin(target: &Db) -> Result<()> {
    if is_marked(target)? {
        tables::empty(target)?;
    }
    let rows = target.read_blocking(|tx| Ok::<_, Error>(tables::count(tx)? + u64::from(tables::waiting(tx)?)))?;
    if rows > 0 {
        return Err(Error::conflict("the target is not empty: another desk lives there").hint("give an empty database or schema, or a new file"));
    }
    mark(target, true)
}

fn copy(source: &Db, target: &Db, key: &SigningKey) -> Result<Report> {
    let bar = progress(0, "copying");
    let busy = || Error::conflict("the source changed while it was copied").hint("stop every server that uses it, then move again");
    let copied = tables::copy(source, target, &bar)?.ok_or_else(busy)?;
    bar.finish_and_clear();
    let keys = Keyring::new(vec![key.public().to_owned()]);
    let before = verify(source, &keys, &[])?;
    verify::sound(&before, "source")?;
    let after = verify(target, &keys, &[])?;
    verify::sound(&after, "target")?;
    // The record's root speaks for the events; the digest for every row of every table.
    if before.root != after.root || before.events != after.events || copied != tables::digest(target)? {
        return Err(busy());
    }
    let size = source.read_blocking(|tx| Ok::<_, Error>((record::size(tx)?, tables::waiting(tx)?)))?;
    if size != (after.events, false) {
        return Err(busy());
    }
    mark(target, false)?;
    Ok(after)
}

fn mark(target: &Db, set: bool) -> Result<()> {
    target.write_blocking(move |tx| {
        tx.execute("delete from desk where key = $1", args![tables::MARK])?;
        if set {
            tx.execute("insert into desk (key, value) values ($1, $2)", args![tables::MARK, "a copy that is not complete"])?;
        }
        Ok(())
    })
}

fn is_marked(db: &Db) -> Result<bool> {
    db.read_blocking(|tx| Ok(tx.optional("select value from desk where key = $1", args![tables::MARK])?.is_some()))
}

/// Refuses a store into which a move began and never ended.
pub(crate) fn refuse_unfinished(db: &Db) -> Result<()> {
    if is_marked(db)? {
        return Err(Error::conflict("this store is a copy that was not finished").hint("run `deskmate move` again, or go back to the store it was made from"));
    }
    Ok(())
}

fn remove_store(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        drop(std::fs::remove_file(PathBuf::from(name)));
    }
}
