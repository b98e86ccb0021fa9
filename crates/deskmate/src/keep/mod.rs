//! Keeping a desk: copying it out (backup), bringing it back (restore), and taking it to another engine (move).
//!
//! Whatever is copied is verified against the record before anything is said to be done. Nothing here changes the desk
//! that is copied, and whatever fails leaves its target as it was.

mod archive;
mod backup;
mod crypt;
mod moving;
mod restore;
mod staging;
mod tables;
mod verify;
mod yaml;

use std::io::IsTerminal;
use std::path::Path;

use deskmate_core::{Code, Error};
use deskmate_db::Engine;
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use backup::backup;
pub(crate) use crypt::{Key, Secret, recipient};
pub(crate) use moving::{move_to, refuse_unfinished};
pub(crate) use restore::restore;
pub(crate) use verify::{Elsewhere, copied_checkpoints, kept_checkpoints, verify};

/// The names of the files in a backup, which are also their names in the data directory (the bridge file has its own).
const STORE: &str = "desk.db";
const KEY: &str = "record.key";
/// Only in a backup that is encrypted: whoever has this file and the store has the secrets.
const SECRET_KEY: &str = crate::secrets::FILE;
const MANIFEST: &str = "manifest.json";
const BRIDGE: &str = "bridge.db";

/// A failure of a file.
fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::new(Code::Unavailable, format!("{}: {error}", path.display()))
}

/// The engine's name in answers.
pub(crate) fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Sqlite => "sqlite",
        Engine::Postgres => "postgres",
    }
}

/// A bar on a terminal, nothing elsewhere.
pub(crate) fn progress(total: u64, what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:10} {bar:40} {human_pos}/{human_len}, {eta} left");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what.to_owned())
}
