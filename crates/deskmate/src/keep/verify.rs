//! Running the record's verification over an open store, step by step.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deskmate_core::record::{self, Keyring, Report, Verifier};
use deskmate_core::{Code, Error, Result};
use deskmate_db::Db;

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
