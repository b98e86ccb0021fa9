//! Writing a backup: everything that a desk needs, in one file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deskmate_core::record::{self, Keyring, Report, SigningKey};
use deskmate_core::{Code, Error, MIGRATIONS, Result, World, format_time, secret};
use deskmate_db::{Db, Engine, Options, copy_sqlite, seal_file};
use serde::Serialize;
use tempfile::NamedTempFile;

use super::archive::{FORMAT, Hashing, Manifest, Writer, file_entry, is_inside};
use super::staging::Staging;
use super::{BRIDGE, KEY, Key, MANIFEST, SECRET_KEY, STORE, at, engine_name, progress, tables, verify};
use crate::config::{self, BridgeFile, Settings};
use crate::data_files;
use crate::home::Home;
use crate::world::Machine;

/// How often, and how long apart, a snapshot is asked for in which no event waits for its place (PostgreSQL).
const SNAPSHOTS_MAX: u32 = 500;
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(20);
/// After so many of them there may be no server that would seal.
const SEAL_AFTER: u32 = 25;

/// What was written.
#[derive(Serialize)]
pub(crate) struct Saved {
    pub(crate) file: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) encrypted: &'static str,
    pub(crate) events: u64,
    pub(crate) root: String,
    pub(crate) notes: Vec<String>,
}

/// Writes a backup of the desk to a new file and verifies it.
pub(crate) fn backup(settings: &Settings, file: &Path, lock: Key) -> Result<Saved> {
    if file.exists() {
        return Err(exists(file));
    }
    let home = Home::new(settings.home.clone());
    let key_text = std::fs::read_to_string(home.key_file()).map_err(at(&home.key_file()))?;
    let key = Arc::new(SigningKey::parse(&key_text)?);
    let staging = Staging::new(home.path())?;
    let engine = copy_store(settings, &key, &staging.file(STORE))?;
    let (report, has_secrets) = check_copy(&staging.file(STORE), &key)?;
    let mut notes = Vec::new();
    let bridge_file = copy_bridge(settings, &staging.file(BRIDGE), &mut notes)?;
    let files = own_files(settings, &home, &mut notes)?;
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        deskmate: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: format_time(Machine::new(0).now()),
        engine: engine_name(engine).to_owned(),
        origin: key.origin().to_owned(),
        events: report.events,
        root: report.root.clone(),
        checkpoint: report.checkpoint,
        bridge_file,
        files,
    };
    let encrypted = lock.name();
    if matches!(lock, Key::Open) {
        notes.push("this file holds the desk's signing key and everything that was written: keep it where only you can read it".to_owned());
        if has_secrets {
            notes.push(format!(
                "the secrets, and requests that are not over, are in it encrypted, and their key is not: keep a copy of {SECRET_KEY} elsewhere, or encrypt the backup, and the key is in it"
            ));
        }
    }
    let bytes = write(&home, &staging, &manifest, &key_text, file, lock)?;
    Ok(Saved { file: file.to_owned(), bytes, encrypted, events: report.events, root: report.root, notes })
}

fn exists(file: &Path) -> Error {
    Error::conflict(format!("{} exists already", file.display())).hint("give another name; a backup never overwrites anything")
}

/// Puts one consistent state of the store into a SQLite file.
fn copy_store(settings: &Settings, key: &Arc<SigningKey>, to: &Path) -> Result<Engine> {
    let bar = progress(0, "copying");
    if let Some(path) = settings.database_url.strip_prefix("sqlite:") {
        if !Path::new(path).is_file() {
            return Err(Error::not_found(format!("there is no store at {path}")).hint("start the desk once, or name its data directory with --home"));
        }
        copy_sqlite(Path::new(path), to, |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        })?;
        bar.finish_and_clear();
        return Ok(Engine::Sqlite);
    }
    let source = Db::open_reader(&Options::new(&settings.database_url, MIGRATIONS))?;
    let target = tables::open(&format!("sqlite:{}", to.display()))?;
    let mut turn = 0;
    while tables::copy(&source, &target, &bar)?.is_none() {
        turn += 1;
        if turn == SEAL_AFTER {
            seal(&settings.database_url, key)?;
        }
        if turn > SNAPSHOTS_MAX {
            return Err(Error::limited("events wait for their place in the record all the time", 1_000).hint("try again when the desk is less busy"));
        }
        std::thread::sleep(SNAPSHOT_PAUSE);
    }
    bar.finish_and_clear();
    source.close();
    target.close();
    seal_file(to)?;
    Ok(Engine::Postgres)
}

/// Seals what a server left behind (PostgreSQL). A server that runs does the same, and one of both at a time.
pub(super) fn seal(url: &str, key: &Arc<SigningKey>) -> Result<()> {
    let db = tables::open(url)?;
    loop {
        let key = Arc::clone(key);
        let sealed = db.write_blocking(move |tx| record::seal_staged(tx, &key))?;
        if !matches!(sealed, record::Sealing::Grown(_)) {
            db.close();
            return Ok(());
        }
    }
}

/// Verifies the copy, and tells whether it has secrets.
fn check_copy(path: &Path, key: &SigningKey) -> Result<(Report, bool)> {
    let db = Db::open_reader(&Options::new(format!("sqlite:{}", path.display()), MIGRATIONS))?;
    let report = verify(&db, &Keyring::new(vec![key.public().to_owned()]), &[])?;
    let has_secrets = db.read_blocking(secret::is_kept)?;
    db.close();
    verify::sound(&report, "store")?;
    Ok((report, has_secrets))
}

fn copy_bridge(settings: &Settings, to: &Path, notes: &mut Vec<String>) -> Result<Option<String>> {
    let BridgeFile::At(path) = &settings.bridge_file else { return Ok(None) };
    if !path.is_file() {
        return Ok(None);
    }
    let name = path.file_name().and_then(|name| name.to_str()).filter(|_| path.parent() == Some(&settings.home));
    let Some(name) = name else {
        notes.push(format!("the bridge file {} lives outside the data directory and is not in the backup", path.display()));
        return Ok(None);
    };
    copy_sqlite(path, to, |_, _| {})?;
    Ok(Some(name.to_owned()))
}

/// The files in the data directory that the configuration names, and the desk's own templates and frameworks. Others are
/// the owner's to keep.
fn own_files(settings: &Settings, home: &Home, notes: &mut Vec<String>) -> Result<Vec<String>> {
    let mut own = BTreeSet::new();
    for path in settings.files() {
        match path.strip_prefix(&settings.home).ok().and_then(Path::to_str).filter(|name| is_inside(name)) {
            Some(name) => drop(own.insert(name.to_owned())),
            None => notes.push(format!("{}, which {} names, lives outside the data directory and is not in the backup", path.display(), config::FILE)),
        }
    }
    for folder in [home.templates(), home.frameworks()] {
        for path in data_files::names(&folder).map_err(at(&folder))? {
            match path.strip_prefix(home.path()).ok().and_then(Path::to_str) {
                Some(name) => drop(own.insert(name.to_owned())),
                None => notes.push(format!("{} has a name that is not UTF-8 and is not in the backup", path.display())),
            }
        }
    }
    Ok(own.into_iter().collect())
}

/// Writes the file under another name, reads it back, and only then gives it its own.
fn write(home: &Home, staging: &Staging, manifest: &Manifest, key: &str, file: &Path, lock: Key) -> Result<u64> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut partial = NamedTempFile::with_prefix_in(".deskmate-backup-", directory).map_err(at(directory))?;
    let bar = progress(size_of(home, staging, manifest), "packing");
    let mut out = Hashing::new(BufWriter::with_capacity(128 * 1024, bar.wrap_write(partial.as_file_mut())));
    match lock.encryptor()? {
        None => fill(&mut out, home, staging, manifest, key, false)?,
        Some(encryptor) => {
            let mut closed = encryptor.wrap_output(&mut out).map_err(at(file))?;
            fill(&mut closed, home, staging, manifest, key, true)?;
            closed.finish().map_err(at(file))?;
        }
    }
    out.flush().map_err(at(file))?;
    let (_, digest, bytes) = out.end();
    bar.finish_and_clear();
    partial.as_file().sync_all().map_err(at(file))?;
    let read_back = hash_file(partial.path(), bytes).map_err(at(file))?;
    if read_back != digest {
        return Err(Error::new(Code::Internal, format!("{} reads back differently from what was written", file.display())).hint("the disk may be failing"));
    }
    partial.persist_noclobber(file).map_err(|error| if file.exists() { exists(file) } else { at(file)(error.error) })?;
    // The name itself must survive a power cut too.
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(at(directory))?;
    Ok(bytes)
}

fn fill(out: &mut impl Write, home: &Home, staging: &Staging, manifest: &Manifest, key: &str, is_closed: bool) -> Result<()> {
    let mut archive = Writer::new(out);
    archive.text(MANIFEST, serde_json::to_string_pretty(manifest).unwrap_or_default().as_bytes())?;
    archive.text(KEY, key.as_bytes())?;
    let secrets = home.path().join(SECRET_KEY);
    if is_closed && secrets.is_file() {
        archive.file(SECRET_KEY, &secrets)?;
    }
    let settings = home.path().join(config::FILE);
    if settings.is_file() {
        archive.file(config::FILE, &settings)?;
    }
    archive.file(STORE, &staging.file(STORE))?;
    if manifest.bridge_file.is_some() {
        archive.file(BRIDGE, &staging.file(BRIDGE))?;
    }
    for (place, name) in manifest.files.iter().enumerate() {
        archive.file(&file_entry(place), &home.path().join(name))?;
    }
    archive.finish().map(drop).map_err(at(Path::new(MANIFEST)))
}

/// How many bytes there are to pack, for whoever watches.
fn size_of(home: &Home, staging: &Staging, manifest: &Manifest) -> u64 {
    let others = manifest.files.iter().map(|name| home.path().join(name));
    let all = [staging.file(STORE), staging.file(BRIDGE)].into_iter().chain(others);
    all.filter_map(|path| std::fs::metadata(path).ok()).map(|found| found.len()).sum()
}

fn hash_file(path: &Path, bytes: u64) -> std::io::Result<[u8; 32]> {
    let mut hashing = Hashing::new(std::io::sink());
    let bar = progress(bytes, "checking");
    std::io::copy(&mut bar.wrap_read(File::open(path)?), &mut hashing)?;
    bar.finish_and_clear();
    Ok(hashing.end().1)
}
