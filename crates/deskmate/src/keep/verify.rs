//! Running the record's verification over an open store, step by step.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deskmate_core::record::{self, Keyring, Report, Verifier};
use deskmate_core::{Code, Error, Result};
use deskmate_db::Db;
use serde::Serialize;
use serde_json::{Value, json};

/// How often the clock beside a bar goes on while a single step is under way.
const TICK: Duration = Duration::from_millis(100);

/// Derives the whole record again. `kept` are checkpoints that were kept elsewhere. Each step is a transaction of its
/// own, so that a running server is not held up.
pub(crate) fn verify(db: &Db, keys: &Keyring, kept: &[String]) -> Result<Report> {
    let size = db.read_blocking(record::size)?;
    let bar = super::progress(size, "verifying");
    let verifier = Verifier::of_store(size, keys, kept);
    let shared = Arc::new(Mutex::new(Some(verifier)));
    loop {
        let step = Arc::clone(&shared);
        let (more, done) = db.read_blocking(move |tx| {
            let mut verifier = step.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(verifier) = verifier.as_mut() else { return Ok::<_, Error>((false, 0)) };
            Ok((verifier.step(tx)?, verifier.done()))
        })?;
        bar.set_position(done);
        if !more {
            break;
        }
    }
    // What follows is one step, however long it takes: the clock goes on meanwhile.
    bar.set_message("comparing");
    bar.enable_steady_tick(TICK);
    let keys = keys.clone();
    let report = db.read_blocking(move |tx| {
        let verifier = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
        verifier.map(|verifier| verifier.finish(tx, &keys)).transpose()
    })?;
    bar.finish_and_clear();
    report.ok_or_else(|| Error::new(Code::Internal, "verification did not finish"))
}

/// The first thing that does not fit, as an error about `what`.
pub(super) fn sound(report: &Report, what: &str) -> Result<()> {
    let Some(first) = report.findings.first() else { return Ok(()) };
    let seq = first.seq.map_or(String::new(), |seq| format!("event {seq}: "));
    Err(Error::invalid(what, format!("its record is not sound: {seq}{}", first.what)).hint("`deskmate audit verify` on the desk tells more"))
}

/// Whether checkpoints that were kept elsewhere were there to compare with. Without them a record that was cut, or that is an older
/// copy, is sound in itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Elsewhere {
    /// The settings name no file.
    NotKept,
    /// The file is not there, holds none, or cannot be read.
    NotFound,
    /// They were compared with.
    Compared,
}

impl Elsewhere {
    /// A report with this in it.
    pub(crate) fn beside(self, report: &Report) -> Value {
        let mut told = json!(report);
        if let Some(fields) = told.as_object_mut() {
            fields.insert("checkpoints_elsewhere".to_owned(), json!(self));
        }
        told
    }
}

/// The checkpoints of the file to which the settings copy them, if they name one.
pub(crate) fn copied_checkpoints(file: Option<&Path>) -> std::io::Result<(Vec<String>, Elsewhere)> {
    let Some(file) = file else { return Ok((Vec::new(), Elsewhere::NotKept)) };
    let kept = match kept_checkpoints(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    let elsewhere = if kept.is_empty() { Elsewhere::NotFound } else { Elsewhere::Compared };
    Ok((kept, elsewhere))
}

/// The checkpoints of a file to which they were appended, one JSON line each, or of a file that is one.
pub(crate) fn kept_checkpoints(path: &Path) -> std::io::Result<Vec<String>> {
    std::fs::read_to_string(path).map(checkpoints_in)
}

fn checkpoints_in(text: String) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    if !text.starts_with('"') {
        return vec![text];
    }
    // A line that is no longer a checkpoint is handed on as it is, and verification says so: leaving it out would turn
    // the check off unseen. Only a last line that was never finished is no sign of that.
    let torn = (!text.ends_with('\n')).then(|| text.lines().count());
    let lines = text.lines().enumerate().filter_map(|(at, line)| match serde_json::from_str::<String>(line) {
        Ok(note) => Some(note),
        Err(_) if torn == Some(at + 1) => None,
        Err(_) => Some(line.to_owned()),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full disk leaves such files, and nothing was compared with them.
    #[test]
    fn a_copy_without_a_whole_checkpoint_is_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, elsewhere) in [("", Elsewhere::NotFound), ("\"deskm", Elsewhere::NotFound), ("\"note\"\n\"deskm", Elsewhere::Compared)] {
            std::fs::write(file.path(), text).unwrap();
            assert_eq!(copied_checkpoints(Some(file.path())).unwrap().1, elsewhere, "{text}");
        }
        assert_eq!(copied_checkpoints(Some(Path::new("/nowhere/kept.jsonl"))).unwrap().1, Elsewhere::NotFound);
        assert_eq!(copied_checkpoints(None).unwrap().1, Elsewhere::NotKept);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Whatever a file holds, no whole line of it is left out: what is no checkpoint is told by the verification.
        #[test]
        fn any_bytes_are_read_as_checkpoints_and_none_is_left_out(text in "(?s)\"?.{0,120}", lines in proptest::collection::vec("\"?[a-z\\\\\"]{0,8}\"?", 0..6)) {
            assert!(text.is_empty() == checkpoints_in(text.clone()).is_empty() || text.starts_with('"'));
            let all: Vec<String> = std::iter::once("\"first\"".to_owned()).chain(lines).collect();
            assert_eq!(checkpoints_in(all.join("\n") + "\n").len(), all.len());
        }
    }
}
