//! Reading and changing files of other programs: links are followed, what was there is kept, and a file is changed whole or
//! not at all.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use deskmate_core::{Code, Error, Result, format_time};

/// No client has a file of settings that is larger.
const BYTES_MAX: u64 = 32 << 20;
/// For its owner alone.
const PRIVATE: u32 = 0o600;
/// As others in a project expect it.
const COMMON: u32 = 0o644;

/// A file as it was found.
pub(super) struct Found {
    /// As its client names it.
    pub(super) path: PathBuf,
    /// Where it lies, all links followed.
    pub(super) real: PathBuf,
    /// What is in it; nothing where there is no such file.
    pub(super) text: Option<String>,
    mode: Option<u32>,
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::Unavailable, format!("{}: {error}", path.display()))
}

/// Reads a file, or notes that there is none. Beneath `within` nothing may lead out of it: a project's links are made by
/// whoever made the project.
pub(super) fn read(path: &Path, within: Option<&Path>) -> Result<Found> {
    let real = resolve(path)?;
    if let Some(folder) = within {
        let folder = folder.canonicalize().map_err(|error| failed(folder, &error))?;
        if !real.starts_with(&folder) {
            let message = format!("{} leads out of the project, to {}", path.display(), real.display());
            return Err(Error::forbidden(message).hint("put a file or folder of the project in the place of the link"));
        }
    }
    let found = match std::fs::metadata(&real) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found { path: path.to_owned(), real, text: None, mode: None }),
        Err(error) => return Err(failed(&real, &error)),
    };
    check(&real, &found)?;
    let mut bytes = Vec::new();
    File::open(&real).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes)).map_err(|error| failed(&real, &error))?;
    let text = String::from_utf8(bytes).map_err(|_| Error::new(Code::Invalid, format!("{} is no text", real.display())).hint("nothing was changed"))?;
    Ok(Found { path: path.to_owned(), real, text: Some(text), mode: Some(found.mode() & 0o7777) })
}

fn check(path: &Path, found: &Metadata) -> Result<()> {
    if !found.is_file() {
        return Err(Error::new(Code::Invalid, format!("{} is no file", path.display())));
    }
    if found.len() > BYTES_MAX {
        return Err(Error::new(Code::Invalid, format!("{} is larger than {} MiB, which no client's settings are", path.display(), BYTES_MAX >> 20)));
    }
    Ok(())
}

/// Where a path leads. What does not exist yet is made beneath the last folder that does; a link to nothing is a mistake.
fn resolve(path: &Path) -> Result<PathBuf> {
    match path.canonicalize() {
        Ok(real) => return Ok(real),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(path, &error)),
    }
    if path.is_symlink() {
        return Err(Error::new(Code::Invalid, format!("{} is a link to nothing", path.display())).hint("mend or remove the link"));
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if parent != Path::new("") => Ok(resolve(parent)?.join(name)),
        _ => Err(Error::new(Code::Invalid, format!("{} names no file", path.display()))),
    }
}

impl Found {
    /// Copies what is there into a folder, so that nothing of it can be lost.
    pub(super) fn keep(&self, folder: &Path, now: i64) -> Result<Option<PathBuf>> {
        let Some(text) = &self.text else { return Ok(None) };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| failed(folder, &error))?;
        let name = self.path.file_name().map_or_else(|| "file".into(), |name| name.to_string_lossy());
        let kept = folder.join(format!("{}-{}", format_time(now).replace(':', ""), name.trim_start_matches('.')));
        let written = File::options().write(true).create_new(true).mode(PRIVATE).open(&kept).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(|error| {
            // Half a copy would look like a whole one.
            drop(std::fs::remove_file(&kept));
            failed(&kept, &error)
        })?;
        Ok(Some(kept))
    }

    /// Puts a new text in the place of what was read, unless that has changed meanwhile. With a token in it the file is its
    /// owner's alone; otherwise its mode stays.
    pub(super) fn write(&self, text: &str, holds_token: bool, shared: bool) -> Result<()> {
        if self.mode.is_some() && !self.is_own()? {
            let message = format!("{} belongs to another account", self.real.display());
            return Err(Error::forbidden(message).hint("run this as the account that uses the client"));
        }
        let folder = self.real.parent().unwrap_or(Path::new("/"));
        make_folder(folder, shared)?;
        let fallback = if shared { COMMON } else { PRIVATE };
        let mode = if holds_token { PRIVATE } else { self.mode.unwrap_or(fallback) };
        let mut fresh = tempfile::Builder::new().prefix(".deskmate-").tempfile_in(folder).map_err(|error| failed(folder, &error))?;
        let filled = fresh.write_all(text.as_bytes()).and_then(|()| fresh.as_file().set_permissions(Permissions::from_mode(mode)));
        filled.and_then(|()| fresh.as_file().sync_all()).map_err(|error| failed(&self.real, &error))?;
        if read(&self.path, None)?.text != self.text {
            return Err(Error::conflict(format!("{} was changed by another program at this very moment", self.real.display())).hint("run this again"));
        }
        fresh.persist(&self.real).map_err(|error| failed(&self.real, &error.error))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| failed(folder, &error))
    }

    /// Deletes what was read, unless it has changed meanwhile.
    pub(super) fn delete(&self) -> Result<()> {
        if read(&self.path, None)?.text != self.text {
            return Err(Error::conflict(format!("{} was changed by another program at this very moment", self.real.display())).hint("run this again"));
        }
        std::fs::remove_file(&self.real).map_err(|error| failed(&self.real, &error))
    }

    /// Whether others than its owner can read it.
    pub(super) fn is_open(&self) -> bool {
        self.mode.is_some_and(|mode| mode & 0o077 != 0)
    }

    /// A file that is put in the place of somebody else's would not be theirs any more.
    fn is_own(&self) -> Result<bool> {
        let found = std::fs::metadata(&self.real).map_err(|error| failed(&self.real, &error))?;
        Ok(found.uid() == rustix::process::geteuid().as_raw())
    }

    /// Whether the file lies where it gets committed, beneath a folder that git watches.
    pub(super) fn is_committed(&self) -> bool {
        self.real.ancestors().skip(1).any(|folder| folder.join(".git").exists())
    }
}

fn make_folder(folder: &Path, shared: bool) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(if shared { 0o755 } else { 0o700 }).create(folder).map_err(|error| failed(folder, &error))?;
    if shared {
        // The desk makes everything for its owner alone; a project's folder is for everybody in it.
        std::fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(|error| failed(folder, &error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_file_is_changed_whole_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, "{}").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        read(&path, None).unwrap().write("{ }", false, false).unwrap();
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("{ }", 0o640));
        read(&path, None).unwrap().write("{\"t\":1}", true, false).unwrap();
        assert_eq!(mode(&path), 0o600, "a file with a token is its owner's alone");
        for (name, shared, expected) in [("new/b.json", false, 0o600), ("other/c.json", true, 0o644)] {
            let path = folder.path().join(name);
            read(&path, None).unwrap().write("{}", false, shared).unwrap();
            assert_eq!(mode(&path), expected, "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside them");
    }

    #[test]
    fn a_change_in_between_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, "1").unwrap();
        let found = read(&path, None).unwrap();
        std::fs::write(&path, "2").unwrap();
        assert_eq!(found.write("3", false, false).unwrap_err().code, Code::Conflict);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "2");
        let none = read(&folder.path().join("b.json"), None).unwrap();
        std::fs::write(folder.path().join("b.json"), "x").unwrap();
        assert_eq!(none.write("3", false, false).unwrap_err().code, Code::Conflict);
    }

    #[test]
    fn links_are_followed_and_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("dotfiles.json"), folder.path().join("link.json"));
        std::fs::write(&real, "{}").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        read(&link, None).unwrap().write("{ }", false, false).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "{ }");
        std::fs::remove_file(&real).unwrap();
        assert!(read(&link, None).err().unwrap().to_string().contains("link to nothing"));
    }

    #[test]
    fn a_project_leads_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let (project, outside) = (folder.path().join("project"), folder.path().join("outside"));
        std::fs::create_dir_all(&project).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("x.json"), "{}").unwrap();
        std::os::unix::fs::symlink(outside.join("x.json"), project.join(".mcp.json")).unwrap();
        std::os::unix::fs::symlink(&outside, project.join(".vscode")).unwrap();
        for path in [".mcp.json", ".vscode/mcp.json"] {
            assert_eq!(read(&project.join(path), Some(&project)).err().unwrap().code, Code::Forbidden, "{path}");
        }
        assert!(read(&project.join(".cursor/mcp.json"), Some(&project)).unwrap().text.is_none());
    }

    #[test]
    fn what_is_no_text_of_settings_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(read(&path, None).err().unwrap().to_string().contains("is no text"));
        std::fs::create_dir(folder.path().join("b.json")).unwrap();
        assert!(read(&folder.path().join("b.json"), None).err().unwrap().to_string().contains("is no file"));
        File::create(&path).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert!(read(&path, None).err().unwrap().to_string().contains("larger"));
    }

    #[test]
    fn what_was_there_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".claude.json");
        let backups = folder.path().join("backups");
        assert!(read(&path, None).unwrap().keep(&backups, 0).unwrap().is_none());
        std::fs::write(&path, "{\"a\":1}").unwrap();
        let kept = read(&path, None).unwrap().keep(&backups, 1_000_000).unwrap().unwrap();
        assert_eq!((std::fs::read_to_string(&kept).unwrap().as_str(), mode(&kept)), ("{\"a\":1}", 0o600));
        assert!(kept.file_name().unwrap().to_str().unwrap().ends_with("-claude.json"), "{}", kept.display());
        assert!(read(&path, None).unwrap().keep(&backups, 1_000_000).is_err(), "a copy is never written over");
    }

    #[test]
    fn where_git_watches_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
        assert!(read(&folder.path().join("repo/x/a.json"), None).unwrap().is_committed());
        assert!(!read(&folder.path().join("else/a.json"), None).unwrap().is_committed());
    }
}
