//! The data directory: who holds it, and the files in it that are not the store.

use std::fs::{File, OpenOptions};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use deskmate_core::record::SigningKey;
use serde::{Deserialize, Serialize};

/// How long to wait before a lock or a file is looked at again.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(10);

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
    /// The lock file of the directory, and that of a store in a file.
    files: Vec<File>,
    holder: Holder,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HomeError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
    #[error("{path} is held by another server (process {pid}{at}): stop it with `deskmate stop`, or give this one its own --home")]
    Held { path: PathBuf, pid: u32, at: String },
    #[error("there is no signing key at {path}: restore it from a backup, or give another --home; `deskmate up` makes one for a new desk")]
    NoKey { path: PathBuf },
    #[error(
        "there is a signing key at {path}, but the store that it signed for is gone or empty, and a second record under the same key is never begun \
         (nothing was changed): put the store back, or move that file away; then `deskmate restore` brings back a backup, or `deskmate up` begins a new desk"
    )]
    NoStore { path: PathBuf },
    #[error("the store {path} is held by a server of another data directory (process {pid}{at}): stop that one, or give this one its own --database-url")]
    StoreHeld { path: PathBuf, pid: u32, at: String },
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

    /// Where the desk's own templates of agents and of policies are, a YAML file each.
    pub(crate) fn templates(&self) -> PathBuf {
        self.path.join("templates")
    }

    /// Where the desk's own frameworks are, a YAML file each.
    pub(crate) fn frameworks(&self) -> PathBuf {
        self.path.join("compliance")
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
        builder.create(&self.path).map_err(io(&self.path))?;
        #[cfg(unix)]
        self.close_to_others()?;
        Ok(())
    }

    /// A directory that was there before may be open to others: from now on nobody else writes in it, and what an
    /// older start left readable is closed. New files are made under a mask that keeps them for their owner.
    #[cfg(unix)]
    fn close_to_others(&self) -> Result<(), HomeError> {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&self.path).map_err(io(&self.path))?.permissions().mode();
        if mode & 0o022 != 0 {
            std::fs::set_permissions(&self.path, std::fs::Permissions::from_mode(mode & 0o7755)).map_err(io(&self.path))?;
        }
        for name in ["desk.db", "desk.db-wal", "desk.db-shm", "messages.db", "messages.db-wal", "messages.db-shm"] {
            let file = self.path.join(name);
            match std::fs::metadata(&file) {
                Ok(found) if found.permissions().mode() & 0o077 != 0 => {
                    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).map_err(io(&file))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Holds the directory, or says who does.
    pub(crate) fn lock(&self, background: bool) -> Result<Lock, HomeError> {
        let path = self.lock_file();
        let file = hold(&path)?.ok_or_else(|| {
            let (pid, at) = told(&path);
            HomeError::Held { path: self.path.clone(), pid, at }
        })?;
        let holder = Holder { pid: std::process::id(), version: env!("CARGO_PKG_VERSION").to_owned(), url: None, background };
        let mut lock = Lock { files: vec![file], holder };
        lock.write().map_err(io(&path))?;
        Ok(lock)
    }

    /// Who holds the directory now, if anybody does.
    pub(crate) fn running(&self) -> Option<Holder> {
        let file = File::open(self.lock_file()).ok()?;
        match file.try_lock_shared() {
            Err(std::fs::TryLockError::WouldBlock) => holder(&self.lock_file()),
            _ => None,
        }
    }

    /// Why a key without its store does not start a desk.
    pub(crate) fn without_store(&self) -> HomeError {
        HomeError::NoStore { path: self.key_file() }
    }

    /// The key that signs checkpoints.
    pub(crate) fn signing_key(&self) -> Result<SigningKey, HomeError> {
        let path = self.key_file();
        let text = std::fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => HomeError::NoKey { path: path.clone() },
            _ => HomeError::Io { path: path.clone(), error },
        })?;
        SigningKey::parse(&text).map_err(|error| HomeError::Key { path, error: Box::new(error) })
    }

    /// The key, or a new one where there is none yet. A new one counts only when [`Home::keep_key`] has written it,
    /// which is for a desk that has signed nothing so far.
    pub(crate) fn key_or_new(&self) -> Result<(SigningKey, Option<String>), HomeError> {
        match self.signing_key() {
            Err(HomeError::NoKey { path }) => {
                let (mut seed, mut id) = ([0_u8; 32], [0_u8; 16]);
                let drawn = getrandom::fill(&mut seed).and_then(|()| getrandom::fill(&mut id));
                drawn.map_err(|error| HomeError::Io { path: path.clone(), error: error.into() })?;
                let text = SigningKey::generate(&format!("deskmate/{}", uuid::Builder::from_random_bytes(id).into_uuid()), &seed);
                let key = SigningKey::parse(&text).map_err(|error| HomeError::Key { path, error: Box::new(error) })?;
                Ok((key, Some(text)))
            }
            known => Ok((known?, None)),
        }
    }

    /// Writes a new key, readable by its owner only.
    pub(crate) fn keep_key(&self, fresh: Option<&str>) -> Result<(), HomeError> {
        let path = self.key_file();
        fresh.map_or(Ok(()), |text| write_private(&path, text.as_bytes()).map_err(io(&path)))
    }
}

/// Holds a lock file; `None` where somebody else does.
fn hold(path: &Path) -> Result<Option<File>, HomeError> {
    let file = private().read(true).open(path).map_err(io(path))?;
    match patiently(|| file.try_lock()) {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(HomeError::Io { path: path.to_owned(), error }),
    }
}

/// What the holder of a lock file wrote; it may be writing at this moment.
fn holder(path: &Path) -> Option<Holder> {
    let read = || serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok();
    read().or_else(|| {
        std::thread::sleep(LOOK_AGAIN);
        read()
    })
}

/// The process that holds a lock file, and where it listens.
fn told(path: &Path) -> (u32, String) {
    let holder = holder(path);
    let at = holder.as_ref().and_then(|holder| holder.url.as_ref()).map_or(String::new(), |url| format!(", {url}"));
    (holder.map_or(0, |holder| holder.pid), at)
}

/// Whoever asks whether a server runs holds the lock for a moment, shared; that is no server.
fn patiently(mut lock: impl FnMut() -> Result<(), std::fs::TryLockError>) -> Result<(), std::fs::TryLockError> {
    for _ in 0..20 {
        match lock() {
            Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(LOOK_AGAIN),
            done => return done,
        }
    }
    lock()
}

/// Writes a file that only its owner can read, and makes sure that it is on disk, whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let mut file = private().truncate(true).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

impl Lock {
    /// Holds the store too, where it is a file: another data directory may name the same one.
    pub(crate) fn hold_store(&mut self, url: &str) -> Result<(), HomeError> {
        let Some(path) = url.strip_prefix("sqlite:").map(PathBuf::from) else { return Ok(()) };
        // Whichever way somebody names it, it is the same file.
        let path = path.canonicalize().or_else(|_| std::path::absolute(&path)).map_err(io(&path))?;
        let beside = PathBuf::from(format!("{}.lock", path.display()));
        let file = hold(&beside)?.ok_or_else(|| {
            let (pid, at) = told(&beside);
            HomeError::StoreHeld { path, pid, at }
        })?;
        self.files.push(file);
        self.write().map_err(io(&beside))
    }

    /// Tells others where this server listens.
    pub(crate) fn listening(&mut self, url: &str) -> std::io::Result<()> {
        self.holder.url = Some(url.to_owned());
        self.write()
    }

    fn write(&mut self) -> std::io::Result<()> {
        let text = serde_json::to_string(&self.holder)?;
        let length = u64::try_from(text.len()).unwrap_or(0);
        for file in &mut self.files {
            file.rewind()?;
            file.write_all(text.as_bytes())?;
            file.set_len(length)?;
        }
        Ok(())
    }
}
