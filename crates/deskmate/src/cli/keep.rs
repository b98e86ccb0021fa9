//! Backup, restore and move from the command line.

use std::path::PathBuf;

use clap::Args;
use deskmate_core::Error;
use serde::Serialize;
use serde_json::json;

use super::audit::kept_checkpoints;
use super::client::passphrase;
use super::output::{print, say};
use super::{Failure, Global};
use crate::config;
use crate::home::Home;
use crate::keep::{self, Key, Secret};

#[derive(Args)]
pub(super) struct BackupArgs {
    /// The file to write; it must not exist
    file: PathBuf,
    /// Encrypt it with a passphrase
    #[arg(long)]
    encrypt: bool,
    /// Encrypt it to an age public key
    #[arg(long, value_name = "age1…", conflicts_with = "encrypt")]
    recipient: Option<String>,
}

pub(super) fn backup(global: &Global, args: BackupArgs) -> Result<(), Failure> {
    let settings = config::load(&global.given())?;
    let key = match (&args.recipient, args.encrypt) {
        (Some(recipient), _) => keep::recipient(recipient)?,
        (None, true) => Key::Passphrase(new_passphrase(global)?),
        (None, false) => Key::Open,
    };
    let saved = keep::backup(&settings, &args.file, key)?;
    tell(global, &saved, &format!("Backed up and verified: {} events, root {}.", saved.events, saved.root), &saved.notes)
}

/// A passphrase that is typed blind is typed twice.
fn new_passphrase(global: &Global) -> Result<Secret, Failure> {
    let first = passphrase(global, "Passphrase for this backup: ")?;
    if first.is_empty() {
        return Err(Error::invalid("passphrase", "must not be empty").into());
    }
    if !global.passphrase_stdin && passphrase(global, "Once more: ")? != first {
        return Err(Error::invalid("passphrase", "was not the same both times").into());
    }
    Ok(Secret::from(first))
}

#[derive(Args)]
pub(super) struct RestoreArgs {
    /// The backup
    file: PathBuf,
    /// The file with the AGE-SECRET-KEY-… for a backup that was encrypted to a recipient
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// A checkpoint that was kept elsewhere: tells how far the backup is behind it; may be repeated
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
}

pub(super) fn restore(global: &Global, args: RestoreArgs) -> Result<(), Failure> {
    let home = Home::new(config::home(global.home.clone())?);
    let mut kept = Vec::new();
    for file in &args.checkpoint {
        kept.extend(kept_checkpoints(file)?);
    }
    let mut ask = || match passphrase(global, "Passphrase of this backup: ") {
        Ok(text) => Ok(Secret::from(text)),
        Err(Failure::Desk(error)) => Err(error),
        Err(Failure::Other(message)) => Err(Error::invalid("passphrase", message)),
        Err(Failure::NotSound | Failure::TimedOut | Failure::Told) => Err(Error::invalid("passphrase", "was not given")),
    };
    let restored = keep::restore(&home, &args.file, args.identity.as_deref(), &kept, &mut ask)?;
    let done = format!(
        "Restored to {}: {} as of {}, {} events, root {}.",
        restored.home.display(),
        restored.origin,
        restored.written_at,
        restored.events,
        restored.root
    );
    tell(global, &restored, &done, &restored.notes)
}

#[derive(Args)]
pub(super) struct MoveArgs {
    /// Where to: postgres://… or sqlite:PATH, which must be empty
    #[arg(long, value_name = "URL")]
    to: String,
    /// Write the new place into deskmate.yaml
    #[arg(long)]
    switch: bool,
}

pub(super) fn move_to(global: &Global, args: &MoveArgs) -> Result<(), Failure> {
    let settings = config::load(&global.given())?;
    let moved = keep::move_to(&settings, &args.to, args.switch)?;
    let next = if moved.switched { "deskmate.yaml says so now:" } else { "Write this line into deskmate.yaml:" };
    let done = format!("Moved from {} to {} and verified: {} events, root {}.\n{next}\n  {}", moved.from, moved.to, moved.events, moved.root, moved.setting);
    tell(global, &moved, &done, &moved.notes)
}

fn tell(global: &Global, answer: &impl Serialize, text: &str, notes: &[String]) -> Result<(), Failure> {
    if global.json {
        return print(&json!(answer), true);
    }
    say(text)?;
    notes.iter().try_for_each(|note| say(&format!("  {note}")))
}
