//! The data directory: who holds it, and the files in it that are not the store.

use std::fs::{File, OpenOptions};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use deskmate_core::record::SigningKey;
use serde::{Deserialize, Serialize};

/// What the holder of a data directory writes into its lock file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    pub(crate) version: String,
    /// Where it listens, once it does.
    pub(crate) url: Option<String>,
    /// Whether a shim started it in the background.
    pub(crate) background: bool,
}

/// A data directory that this process holds. The lock ends with the process, however it ends.
pub(crate) struct Lock {
    file: File,
    holder: Holder,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HomeError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
    #[error("{path} is held by another server (process {pid}{at}): stop it with `deskmate stop`, or give this one its own --home")]
    Held { path: PathBuf, pid: u32, at: String },
    #[error("{path}: {error}")]
    Key { path: PathBuf, error: Box<deskmate_core::Error> },
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> HomeError {
    let path = path.to_owned();
    move |error| HomeError::Io { path, error }
}

/// The paths in a data directory.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    path: PathBuf,
}

impl Home {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The socket on which shims speak MCP.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("desk.sock")
    }

    /// The socket on which the command line speaks HTTP.
    pub(crate) fn http_socket(&self) -> PathBuf {
        self.path.join("http.sock")
    }

    pub(crate) fn lock_file(&self) -> PathBuf {
        self.path.join("desk.lock")
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.path.join("record.key")
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.path.join("server.log")
    }

    /// Makes the directory, for its owner only.
    pub(crate) fn create(&self) -> Result<(), HomeError> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.path).map_err(io(&self.path))
    }

    /// Holds the directory, or says who does.
    pub(crate) fn lock(&self, background: bool) -> Result<Lock, HomeError> {
        let path = self.lock_file();
        let file = private().read(true).open(&path).map_err(io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                let holder = self.holder();
                let at = holder.as_ref().and_then(|holder| holder.url.as_ref()).map_or(String::new(), |url| format!(", {url}"));
                return Err(HomeError::Held { path: self.path.clone(), pid: holder.map_or(0, |holder| holder.pid), at });
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(HomeError::Io { path, error }),
        }
        let holder = Holder { pid: std::process::id(), version: env!("CARGO_PKG_VERSION").to_owned(), url: None, background };
        let mut lock = Lock { file, holder };
        lock.write().map_err(io(&path))?;
        Ok(lock)
    }

    /// Who holds the directory now, if anybody does.
    pub(crate) fn running(&self) -> Option<Holder> {
        let file = File::open(self.lock_file()).ok()?;
        match file.try_lock_shared() {
            Err(std::fs::TryLockError::WouldBlock) => self.holder(),
            _ => None,
        }
    }

    fn holder(&self) -> Option<Holder> {
        serde_json::from_str(&std::fs::read_to_string(self.lock_file()).ok()?).ok()
    }

    /// The key that signs checkpoints; made at the first start, readable by its owner only.
    pub(crate) fn signing_key(&self) -> Result<SigningKey, HomeError> {
        let path = self.key_file();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut seed = [0_u8; 32];
                let mut id = [0_u8; 16];
                getrandom::fill(&mut seed)
                    .and_then(|()| getrandom::fill(&mut id))
                    .map_err(|error| HomeError::Io { path: path.clone(), error: error.into() })?;
                let text = SigningKey::generate(&format!("deskmate/{}", uuid::Builder::from_random_bytes(id).into_uuid()), &seed);
                write_private(&path, text.as_bytes()).map_err(io(&path))?;
                text
            }
            Err(error) => return Err(HomeError::Io { path, error }),
        };
        SigningKey::parse(&text).map_err(|error| HomeError::Key { path, error: Box::new(error) })
    }
}

/// Writes a file that only its owner can read, and makes sure that it is on disk.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = private().truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

impl Lock {
    /// Tells others where this server listens.
    pub(crate) fn listening(&mut self, url: &str) -> std::io::Result<()> {
        self.holder.url = Some(url.to_owned());
        self.write()
    }

    fn write(&mut self) -> std::io::Result<()> {
        let text = serde_json::to_string(&self.holder)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        let length = u64::try_from(text.len()).unwrap_or(0);
        self.file.set_len(length)?;
        Ok(())
    }
}
