//! A private directory for work under way. It goes with the process that made it; what a killed one left behind is
//! swept away by the next.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use deskmate_core::Result;
use tempfile::TempDir;

use super::at;

const PREFIX: &str = ".deskmate-keep-";
const LOCK: &str = "lock";

/// A directory that only its owner can enter.
pub(super) struct Staging {
    directory: TempDir,
    _lock: File,
}

impl Staging {
    /// Makes one in `base`, after sweeping what nobody holds any more.
    pub(super) fn new(base: &Path) -> Result<Self> {
        sweep(base);
        loop {
            let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base).map_err(at(base))?;
            let path = directory.path().join(LOCK);
            let lock = match File::create(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                lock => lock.map_err(at(&path))?,
            };
            lock.lock().map_err(at(&path))?;
            // Another one that sweeps at this very moment may have taken it for left behind.
            if path.exists() {
                return Ok(Self { directory, _lock: lock });
            }
        }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn sweep(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // What cannot be removed is in nobody's way; the next run tries again.
        match File::open(entry.path().join(LOCK)) {
            Ok(lock) if lock.try_lock().is_ok() => drop(std::fs::remove_dir_all(entry.path())),
            // Whoever made it was killed before it was locked; then it is empty.
            Err(error) if error.kind() == ErrorKind::NotFound => drop(std::fs::remove_dir(entry.path())),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_is_held_is_not() {
        let base = tempfile::tempdir().unwrap();
        let held = Staging::new(base.path()).unwrap();
        let (unlocked, empty) = (base.path().join(".deskmate-keep-a"), base.path().join(".deskmate-keep-b"));
        for left in [&unlocked, &empty] {
            std::fs::create_dir(left).unwrap();
        }
        std::fs::write(unlocked.join(LOCK), "").unwrap();
        std::fs::write(unlocked.join("part"), "x").unwrap();
        let second = Staging::new(base.path()).unwrap();
        assert!(!unlocked.exists() && !empty.exists());
        assert!(held.file(LOCK).exists() && second.file(LOCK).exists());
    }
}
