//! A folder of this machine, or of a disk that is mounted on it.

use std::io::Write;
use std::path::{Path, PathBuf};

use hyper::body::Bytes;

use super::{OBJECT_BYTES_MAX, check_key};

/// A folder in which things are kept.
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Result<Self, String> {
        if !path.is_absolute() || !path.is_dir() {
            return Err(format!("{} is no folder by its whole path: make it first", path.display()));
        }
        Ok(Self { path: path.to_owned() })
    }

    fn at(&self, key: &str) -> Result<PathBuf, String> {
        check_key(key)?;
        Ok(self.path.join(key))
    }

    /// On the disk before it has its name: a half-written file is never found.
    pub(super) fn put(&self, key: &str, bytes: &[u8]) -> Result<(), String> {
        let (to, told) = (self.at(key)?, |error: std::io::Error| format!("{key}: {error}"));
        let folder = to.parent().ok_or("it has no folder")?;
        std::fs::create_dir_all(folder).map_err(told)?;
        let mut file = tempfile::Builder::new().prefix(".part").tempfile_in(folder).map_err(told)?;
        file.write_all(bytes).map_err(told)?;
        file.as_file().sync_all().map_err(told)?;
        file.persist(&to).map_err(|error| told(error.error))?;
        std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(told)
    }

    pub(super) fn get(&self, key: &str) -> Result<Option<Bytes>, String> {
        match self.head(key)? {
            None => Ok(None),
            Some(size) if size > OBJECT_BYTES_MAX as u64 => Err(format!("{key} is larger than anything that was put there")),
            Some(_) => std::fs::read(self.at(key)?).map(|bytes| Some(bytes.into())).map_err(|error| format!("{key}: {error}")),
        }
    }

    pub(super) fn head(&self, key: &str) -> Result<Option<u64>, String> {
        match std::fs::metadata(self.at(key)?) {
            Ok(found) => Ok(found.is_file().then_some(found.len())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{key}: {error}")),
        }
    }

    pub(super) fn list(&self, prefix: &str) -> Result<Vec<String>, String> {
        let folder = prefix.trim_end_matches('/');
        let entries = match std::fs::read_dir(self.at(folder)?) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("{folder}: {error}")),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| error.to_string())?;
            let key = entry.file_name().to_str().map(|name| format!("{folder}/{name}"));
            names.extend(key.filter(|key| check_key(key).is_ok()));
        }
        names.sort();
        Ok(names)
    }
}
