//! A private directory for work under way. It goes with the process that made it; what a killed one left behind is
//! swept away by the next.

use std::fs::File;
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
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base).map_err(at(base))?;
        let path = directory.path().join(LOCK);
        let lock = File::create(&path).map_err(at(&path))?;
        lock.lock().map_err(at(&path))?;
        Ok(Self { directory, _lock: lock })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn sweep(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let left = ours && File::open(entry.path().join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
        if left {
            // One that cannot be removed is in nobody's way; the next run tries again.
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}
