//! The key of the secrets, as a file that only the server's account can read. Without it, or with one that does not fit, the
//! desk runs and its secrets do not.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use deskmate_core::secret::{self, Key, Safe};
use deskmate_core::{Error, Result};
use deskmate_db::Db;
use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use crate::home::Home;

/// The file in the data directory.
pub(crate) const FILE: &str = "secret.key";
/// Far more than a key is long.
const FILE_BYTES_MAX: u64 = 1_024;

/// What a server can do with the secrets of its desk. It makes a key where there is none yet and none is missing.
pub(crate) fn open(home: &Home, db: &Db) -> Result<Safe> {
    let path = home.path().join(FILE);
    let kept = db.read_blocking(secret::is_kept)?;
    let why = match read(&path) {
        Ok(Some(key)) => {
            let own = key.clone();
            if !db.read_blocking(move |tx| secret::key_fits(tx, &own))? {
                tracing::warn!(
                    "{} is not the key of this desk's secrets, so this server cannot use them: give every server of a desk the same file",
                    path.display()
                );
            }
            // Which key is right is looked up at each use: the secrets may be removed and begun anew elsewhere.
            return Ok(Safe::new(key));
        }
        Ok(None) if kept => format!("{} is missing", path.display()),
        Ok(None) => match make(&path) {
            Ok(key) => return Ok(Safe::new(key)),
            Err(error) => format!("{} cannot be made: {error}", path.display()),
        },
        Err(why) => why,
    };
    tracing::warn!("secrets cannot be used: {why}");
    Ok(Safe::closed(why))
}

/// Reads the key. A file that others could read, or that is not this account's, may hold a key that somebody else knows.
fn read(path: &Path) -> Result<Option<Key>, String> {
    let told = |why: String| format!("{}: {why}", path.display());
    // A link could lead to a file of somebody else's.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(told(error.to_string())),
    };
    let found = file.metadata().map_err(|error| told(error.to_string()))?;
    if !found.is_file() {
        return Err(told("is not a file".to_owned()));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(told("belongs to another account: chown it to the one that the server runs under".to_owned()));
    }
    if found.mode() & 0o077 != 0 {
        return Err(told(format!("others can reach it (mode {:o}): chmod 600 it, and rotate the secrets if somebody may have read it", found.mode() & 0o777)));
    }
    let mut text = zeroize::Zeroizing::new(String::new());
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| told(error.to_string()))?;
    Key::parse(&text).map(Some).map_err(|error: Error| told(error.to_string()))
}

/// Writes a new key: the file is whole and closed to others from the moment that it has its name.
fn make(path: &Path) -> std::io::Result<Key> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut seed = zeroize::Zeroizing::new([0_u8; 32]);
    getrandom::fill(&mut *seed)?;
    let text = Key::generate(&seed);
    let mut fresh = NamedTempFile::with_prefix_in(".secret-key-", folder)?;
    writeln!(fresh, "{}", *text)?;
    fresh.as_file().sync_all()?;
    fresh.persist_noclobber(path).map_err(|error| error.error)?;
    std::fs::File::open(folder)?.sync_all()?;
    Key::parse(&text).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_new_key_is_its_owners_alone_and_is_never_replaced() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE);
        assert!(read(&path).unwrap().is_none());
        make(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(read(&path).unwrap().is_some());
        let before = std::fs::read(&path).unwrap();
        assert!(make(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn a_key_that_others_could_know_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE);
        make(&path).unwrap();
        for wide in [0o640, 0o604, 0o660, 0o620, 0o601] {
            mode(&path, wide);
            assert!(read(&path).err().unwrap().contains("others can reach it"), "{wide:o}");
        }
        mode(&path, 0o400);
        assert!(read(&path).unwrap().is_some());
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(read(&link).is_err(), "no link is followed");
        std::fs::create_dir(home.path().join("folder")).unwrap();
        assert!(read(&home.path().join("folder")).is_err());
        mode(&path, 0o600);
        std::fs::write(&path, "something else").unwrap();
        let why = read(&path).err().unwrap();
        assert!(why.contains("malformed") && !why.contains("something"), "{why}");
        if rustix::process::geteuid().is_root() {
            std::fs::remove_file(&path).unwrap();
            make(&path).unwrap();
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            assert!(read(&path).err().unwrap().contains("another account"));
        }
    }
}
