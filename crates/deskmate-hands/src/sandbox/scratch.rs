//! The private directory of a run: made before, removed afterwards, whatever was left in it.

use super::{Error, GivenFile};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The private directory, and beside it an empty one where the view of the file system is built.
pub(super) struct Scratch {
    directory: Option<TempDir>,
    pub(super) private: PathBuf,
    pub(super) view: PathBuf,
}

impl Scratch {
    pub(super) fn make(within: &Path, files: &[GivenFile]) -> Result<Self, Error> {
        let directory = tempfile::Builder::new().prefix("deskmate-run-").tempdir_in(within)?;
        // Landlock and the view go by the real path.
        let path = fs::canonicalize(directory.path())?;
        let (private, view) = (path.join("private"), path.join("view"));
        fs::create_dir(&private)?;
        fs::create_dir(&view)?;
        for file in files {
            fs::write(private.join(&file.name), &file.content)?;
        }
        Ok(Self { directory: Some(directory), private, view })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let Some(directory) = self.directory.take() else { return };
        let path = directory.path().to_path_buf();
        // From here on it is removed by hand, because a program may have made that hard.
        drop(directory.keep());
        remove(&path);
    }
}

/// Removes everything, also directories that a program closed against everybody. Symbolic links are not followed.
pub fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_err() && open_up(path).is_ok() {
        drop(fs::remove_dir_all(path));
    }
}

/// Makes every directory beneath one's own again. Symbolic links are not followed.
fn open_up(path: &Path) -> io::Result<()> {
    let mut waiting = vec![path.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        let mut permissions = fs::symlink_metadata(&directory)?.permissions();
        own(&mut permissions);
        fs::set_permissions(&directory, permissions)?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(unix)]
fn own(permissions: &mut fs::Permissions) {
    use std::os::unix::fs::PermissionsExt;
    permissions.set_mode(0o700);
}

#[cfg(not(unix))]
fn own(_: &mut fs::Permissions) {}
