//! The record from the command line: verifying, proving, exporting. These open the store themselves and only read,
//! so they work with and without a running server.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use data_encoding::BASE64;
use deskmate_core::record::{self, BundleHeader, BundleLine, Keyring, Report};
use deskmate_core::{Error, MIGRATIONS, compliance};
use deskmate_db::{Db, Options, Tx, args};
use serde_json::{Value, json};

use super::output::{print, say};
use super::{Failure, Global};
use crate::home::Home;
use crate::keep::Elsewhere;
use crate::{config, keep};

#[derive(Subcommand)]
pub(super) enum AuditCommand {
    /// Derive the whole record again from its stored rows and name the first thing that does not fit
    Verify {
        /// An export, or a bundle of `deskmate compliance report`, to verify offline instead of this desk's store
        bundle: Option<PathBuf>,
        /// A checkpoint that was kept elsewhere; may be repeated
        #[arg(long, value_name = "FILE")]
        checkpoint: Vec<PathBuf>,
        /// A public key to believe instead of the ones that are there; may be repeated
        #[arg(long, value_name = "KEY")]
        key: Vec<String>,
    },
    /// Prove that an event is in the record
    Prove {
        /// The event's sequence number
        seq: u64,
    },
    /// Print the newest signed checkpoint: keep it somewhere else
    Checkpoint,
    /// Write the whole record to a file that can be verified anywhere
    Export {
        /// The file to write
        file: PathBuf,
    },
}

pub(super) fn run(global: &Global, command: AuditCommand) -> Result<(), Failure> {
    match command {
        AuditCommand::Verify { bundle: Some(bundle), checkpoint, key } => verify_bundle(global, &bundle, &checkpoint, key),
        AuditCommand::Verify { bundle: None, checkpoint, key } => verify_store(global, &checkpoint, key),
        AuditCommand::Prove { seq } => prove(global, seq),
        AuditCommand::Checkpoint => checkpoint(global),
        AuditCommand::Export { file } => export(global, &file),
    }
}

/// The store, opened for reading, and the keys that are believed.
struct Store {
    db: Db,
    keys: Keyring,
    /// The file to which the settings copy checkpoints, what it holds, and whether that is any.
    copy: Option<PathBuf>,
    kept: Vec<String>,
    elsewhere: Elsewhere,
}

fn open(global: &Global, keys: Vec<String>) -> Result<Store, Failure> {
    let settings = config::load(&global.given())?;
    let home = Home::new(settings.home.clone());
    let keys = if keys.is_empty() { vec![home.signing_key()?.public().to_owned()] } else { keys };
    let db = Db::open_reader(&Options::new(&settings.database_url, MIGRATIONS))?;
    let copy = settings.checkpoint_copy;
    let unreadable = |error| Failure::Other(format!("{}: {error}", copy.as_deref().unwrap_or(Path::new("")).display()));
    let (kept, elsewhere) = keep::copied_checkpoints(copy.as_deref()).map_err(unreadable)?;
    Ok(Store { db, keys: Keyring::new(keys), copy, kept, elsewhere })
}

/// The checkpoints of a file to which they were appended, one JSON line each, or of a file that is one.
pub(super) fn kept_checkpoints(path: &Path) -> Result<Vec<String>, Failure> {
    keep::kept_checkpoints(path).map_err(|error| Failure::Other(format!("{}: {error}", path.display())))
}

fn verify_store(global: &Global, checkpoints: &[PathBuf], keys: Vec<String>) -> Result<(), Failure> {
    let mut store = open(global, keys)?;
    for file in checkpoints {
        store.kept.extend(kept_checkpoints(file)?);
    }
    let elsewhere = match store.elsewhere {
        Elsewhere::NotKept if !store.kept.is_empty() => Elsewhere::Compared,
        known => known,
    };
    let report = keep::verify(&store.db, &store.keys, &store.kept)?;
    if let Some(file) = store.copy.filter(|_| !global.json && elsewhere == Elsewhere::NotFound) {
        say(&format!(
            "No checkpoint was found at {}, to which {} copies them: without it, what was cut off and an older copy do not show.",
            file.display(),
            config::FILE
        ))?;
    }
    tell(global, &report, elsewhere.beside(&report))
}

fn verify_bundle(global: &Global, bundle: &Path, checkpoints: &[PathBuf], keys: Vec<String>) -> Result<(), Failure> {
    let mut kept = Vec::new();
    for file in checkpoints {
        kept.extend(kept_checkpoints(file)?);
    }
    let open = || File::open(bundle).map_err(|error| Failure::Other(format!("{}: {error}", bundle.display())));
    let mut first = String::new();
    BufReader::new(open()?).take(FIRST_LINE_MAX).read_line(&mut first)?;
    let (file, own) = (open()?, !keys.is_empty());
    if compliance::is_bundle(&first) {
        return verify_evidence(global, file, own.then(|| Keyring::new(keys)), &kept);
    }
    let bar = keep::progress(file.metadata().map_or(0, |file| file.len()), "verifying");
    let report = record::verify_bundle(BufReader::new(bar.wrap_read(file)).lines(), own.then(|| Keyring::new(keys)), &kept)?;
    bar.finish_and_clear();
    if !own && !global.json {
        say("The keys were taken from the bundle itself: this shows that it is consistent, not who made it (give --key for that).")?;
    }
    tell(global, &report, json!(report))
}

/// How long the first line of a bundle may be: that of a report holds the report.
const FIRST_LINE_MAX: u64 = 64 * 1024 * 1024;

/// A compliance report with its events and proofs.
fn verify_evidence(global: &Global, file: File, keys: Option<Keyring>, kept: &[String]) -> Result<(), Failure> {
    let own = keys.is_some();
    let bar = keep::progress(file.metadata().map_or(0, |file| file.len()), "verifying");
    let report = compliance::verify_bundle(BufReader::new(bar.wrap_read(file)).lines(), keys, kept)?;
    bar.finish_and_clear();
    if global.json {
        print(&json!(report), true)?;
    } else {
        if !own {
            say("The keys were taken from the bundle itself: this shows that it is consistent, not who made it (give --key for that).")?;
        }
        let about = format!("the report about {} and {}", report.agent, report.framework);
        if report.sound {
            say(&format!(
                "The evidence is sound: each of the {} events that {about} names is in the signed record and is what it says, and the desk signed the report.",
                report.events
            ))?;
            say("What is set at the desk, and what its rules answer, is the desk's own word as of then: it is signed, and no event shows it.")?;
        } else {
            say(&format!("THE EVIDENCE IS NOT SOUND, of {about}."))?;
        }
        for finding in &report.findings {
            let seq = finding.seq.map_or(String::new(), |seq| format!("event {seq}: "));
            say(&format!("  {seq}{}", finding.what))?;
        }
    }
    if report.sound { Ok(()) } else { Err(Failure::NotSound) }
}

fn tell(global: &Global, report: &Report, told: Value) -> Result<(), Failure> {
    if global.json {
        print(&told, true)?;
    } else if report.sound {
        say(&format!("The record is sound: {} events, root {}.", report.events, report.root))?;
    } else {
        say(&format!("THE RECORD IS NOT SOUND. {} events were checked.", report.events))?;
        for finding in &report.findings {
            let seq = finding.seq.map_or(String::new(), |seq| format!("event {seq}: "));
            say(&format!("  {seq}{}", finding.what))?;
        }
    }
    if report.sound { Ok(()) } else { Err(Failure::NotSound) }
}

fn prove(global: &Global, seq: u64) -> Result<(), Failure> {
    let store = open(global, Vec::new())?;
    let keys = store.keys.clone();
    let proof = store.db.read_blocking(move |tx| record::prove(tx, seq, &keys))?;
    record::check_proof(&proof, &store.keys)?;
    say(&serde_json::to_string_pretty(&proof).unwrap_or_default())
}

fn checkpoint(global: &Global) -> Result<(), Failure> {
    let store = open(global, Vec::new())?;
    let note = store.db.read_blocking(record::newest_checkpoint)?.ok_or_else(|| Error::not_found("the record is empty"))?;
    if global.json {
        return print(&json!({ "checkpoint": note, "keys": store.keys.keys() }), true);
    }
    write!(std::io::stdout(), "{note}").map_err(Failure::from)
}

fn export(global: &Global, path: &Path) -> Result<(), Failure> {
    let store = open(global, Vec::new())?;
    let note = store.db.read_blocking(record::newest_checkpoint)?.ok_or_else(|| Error::not_found("the record is empty"))?;
    let size = store.keys.open(&note)?.size();
    let file = File::create_new(path).map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
    let mut out = BufWriter::new(file);
    let header = BundleHeader::new(size, store.keys.keys().to_vec(), note);
    writeln!(out, "{}", json!(header))?;
    let bar = keep::progress(size, "exporting");
    let mut from = 0;
    while from < size {
        let until = size.min(from + 2_000);
        for line in store.db.read_blocking(move |tx| bundle_lines(tx, from, until))? {
            writeln!(out, "{}", json!(line))?;
        }
        from = until;
        bar.set_position(from);
    }
    bar.finish_and_clear();
    let file = out.into_inner().map_err(|error| Failure::Other(error.to_string()))?;
    file.sync_all()?;
    if global.json { print(&json!({ "file": path, "events": size }), true) } else { say(&format!("{size} events were written to {}.", path.display())) }
}

fn bundle_lines(tx: &mut Tx<'_>, from: u64, until: u64) -> Result<Vec<BundleLine>, Error> {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let rows = tx.query(
        "select e.body, p.salt, p.payload from event e left join event_payload p on p.seq = e.seq where e.seq >= $1 and e.seq < $2 order by e.seq",
        args![number(from), number(until)],
    )?;
    let line = |row: &deskmate_db::Row| {
        let salt: Option<Vec<u8>> = row.get(1)?;
        Ok(BundleLine { body: row.get(0)?, salt: salt.map(|salt| BASE64.encode(&salt)), payload: row.get(2)? })
    };
    rows.iter().map(line).collect()
}
