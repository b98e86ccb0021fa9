//! The folder of a run, beneath the desk's own data: what it works in, what the desk wrote for it, and what it leaves behind.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use deskmate_core::limits::AGENT_RESULT_BYTES_MAX;
use deskmate_hands::sandbox;
use rustix::fs::OFlags;
use serde_json::Value;

/// Where folders of runs are, in the desk's data directory.
const RUNS: &str = "runs";
/// What a run leaves in this folder is kept.
const RESULT: &str = "result";
/// For so long.
const KEPT: Duration = Duration::from_hours(30 * 24);
/// How much is kept of a run.
const KEPT_BYTES: u64 = 64 << 20;
/// How many files.
const KEPT_FILES: u64 = 1_000;

/// The folder of a run.
pub(super) struct Place {
    whole: PathBuf,
    /// What it works in.
    pub(super) work: PathBuf,
    /// The home of clients, which write there what they like.
    pub(super) home: PathBuf,
    /// For what is thrown away.
    pub(super) scratch: PathBuf,
    /// What the desk wrote for it, and it only reads.
    pub(super) desk: PathBuf,
}

impl Place {
    /// Makes an empty folder. What an attempt before left is thrown away, and so is what is older than anybody wants it.
    pub(super) fn make(own: Option<&Path>, run: &str, now: i64) -> Result<Self, String> {
        let own = own.ok_or("this server has no data directory")?;
        let told = |error: std::io::Error| format!("its folder cannot be made: {error}");
        let runs = own.join(RUNS);
        let make = |path: &Path| fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        make(&runs).map_err(told)?;
        let runs = fs::canonicalize(&runs).map_err(told)?;
        sweep(&runs, now);
        let whole = runs.join(run);
        if whole.exists() {
            sandbox::remove(&whole);
        }
        let place = Self { work: whole.join("work"), home: whole.join("home"), scratch: whole.join("tmp"), desk: whole.join("desk"), whole };
        for path in [&place.work, &place.home, &place.scratch, &place.desk] {
            make(path).map_err(told)?;
        }
        Ok(place)
    }

    /// Puts the files of the definition, and what the run was started with, into the folder.
    pub(super) fn fill(&self, files: &BTreeMap<String, String>, input: &Value) -> Result<(), String> {
        for (path, text) in files {
            // A program of its own begins with the name of what runs it.
            write(&self.work.join(path), text, if text.starts_with("#!") { 0o700 } else { 0o600 })?;
        }
        write(&self.work.join("input.json"), &input.to_string(), 0o600)
    }

    /// Writes something that only the desk changes.
    pub(super) fn own(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.desk.join(name);
        write(&path, text, 0o600)?;
        Ok(path)
    }

    /// What it wrote into `result.json`. A link is not followed, because it could lead to what only the desk may read.
    pub(super) fn result(&self) -> Option<Value> {
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).ok()?;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.work.join("result.json")).ok()?;
        let size = file.metadata().ok().filter(fs::Metadata::is_file)?.len();
        let mut text = String::new();
        file.take(AGENT_RESULT_BYTES_MAX as u64 + 1).read_to_string(&mut text).ok()?;
        if size > AGENT_RESULT_BYTES_MAX as u64 {
            return Some(serde_json::json!({ "cut": true, "bytes": size }));
        }
        serde_json::from_str(&text).ok()
    }

    /// Throws everything away but the folder `result`, if that is small enough.
    pub(super) fn leave(self) {
        let (result, kept) = (self.work.join(RESULT), self.whole.join(RESULT));
        let is_kept = fs::symlink_metadata(&result).is_ok_and(|found| found.is_dir()) && is_small(&result) && fs::rename(&result, &kept).is_ok();
        for path in [&self.work, &self.home, &self.scratch, &self.desk] {
            sandbox::remove(path);
        }
        if !is_kept {
            sandbox::remove(&self.whole);
        }
    }
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(told)?;
    }
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path).map_err(told)?;
    file.write_all(text.as_bytes()).map_err(told)
}

fn is_small(folder: &Path) -> bool {
    let (mut bytes, mut files, mut waiting) = (0_u64, 0_u64, vec![folder.to_path_buf()]);
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { return false };
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { return false };
            files += 1;
            bytes = bytes.saturating_add(found.len());
            if found.is_dir() {
                waiting.push(entry.path());
            }
            if bytes > KEPT_BYTES || files > KEPT_FILES {
                return false;
            }
        }
    }
    true
}

/// Throws away what runs left long ago. The moment is in microseconds, as the desk counts them.
fn sweep(runs: &Path, now: i64) {
    let now = Duration::from_micros(u64::try_from(now).unwrap_or(0));
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let at = entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        if at.is_some_and(|at| now.saturating_sub(at) > KEPT) {
            sandbox::remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_behind_a_link_is_not_read_and_the_folder_result_is_kept() {
        let own = tempfile::tempdir().unwrap();
        fs::write(own.path().join("secret"), "{\"a\": 1}").unwrap();
        let place = Place::make(Some(own.path()), "r", 0).unwrap();
        std::os::unix::fs::symlink(own.path().join("secret"), place.work.join("result.json")).unwrap();
        assert_eq!(place.result(), None);
        fs::remove_file(place.work.join("result.json")).unwrap();
        fs::write(place.work.join("result.json"), "[1]").unwrap();
        assert_eq!(place.result(), Some(serde_json::json!([1])));
        fs::create_dir(place.work.join(RESULT)).unwrap();
        fs::write(place.work.join("result/table.csv"), "a,b").unwrap();
        place.leave();
        let left: Vec<_> = fs::read_dir(own.path().join("runs/r")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [RESULT]);
        assert!(own.path().join("runs/r/result/table.csv").exists());
        let place = Place::make(Some(own.path()), "r", 0).unwrap();
        assert!(!own.path().join("runs/r/result").exists(), "a further attempt begins with nothing");
        place.leave();
        assert!(!own.path().join("runs/r").exists());
        for name in ["old", "new"] {
            fs::create_dir(own.path().join("runs").join(name)).unwrap();
        }
        let day = 86_400;
        let made = fs::metadata(own.path().join("runs/new")).unwrap().modified().unwrap();
        fs::File::open(own.path().join("runs/old")).unwrap().set_modified(made - Duration::from_secs(20 * day)).unwrap();
        let later = made.duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(11 * day);
        drop(Place::make(Some(own.path()), "r", i64::try_from(later.as_micros()).unwrap()).unwrap());
        assert!(!own.path().join("runs/old").exists() && own.path().join("runs/new").exists(), "what is old is thrown away");
    }
}
