//! The backup file: a tar of known names, which ends in the digest of everything before it. So one changed or missing
//! byte shows, wherever it is, before anything of the backup is used.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use deskmate_core::{Error, Result, hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tar::{Archive, EntryType, Header};

use super::{BRIDGE, KEY, MANIFEST, SECRET_KEY, STORE, at};
use crate::config;

/// The format's name, in the manifest.
pub(super) const FORMAT: &str = "deskmate-backup-1";
const DIGEST: &str = "sha256";
const BLOCK: usize = 512;
/// The last entry's header and content, and the two empty blocks that end a tar.
const TRAILER: usize = 4 * BLOCK;
/// The largest of the small files; the store, the bridge file and the other files of the data directory may have any size.
const SMALL_MAX: u64 = 1 << 20;

/// What a backup says about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(super) format: String,
    /// The version that wrote it.
    pub(super) deskmate: String,
    pub(super) created_at: String,
    /// The engine that the store was copied from. In the backup it is always SQLite.
    pub(super) engine: String,
    /// The name of the desk's record.
    pub(super) origin: String,
    pub(super) events: u64,
    pub(super) root: String,
    pub(super) checkpoint: Option<String>,
    /// The name of the bridge file in the data directory, if it lives there.
    pub(super) bridge_file: Option<String>,
    /// The other files of the data directory: those that the configuration names, templates and frameworks, in the order of their entries.
    #[serde(default)]
    pub(super) files: Vec<String>,
}

/// The entry of one of those.
pub(super) fn file_entry(place: usize) -> String {
    format!("file-{place}")
}

/// Whether a name stays inside the data directory, and is none of the desk's own.
pub(super) fn is_inside(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_))) && !name.starts_with(STORE) && ![KEY, SECRET_KEY, config::FILE].contains(&name)
}

fn is_file_entry(name: &str) -> bool {
    name.strip_prefix("file-").is_some_and(|place| place.parse::<u32>().is_ok_and(|number| number.to_string() == place))
}

/// Writes through and hashes what passes.
pub(super) struct Hashing<W> {
    inner: W,
    hash: Sha256,
    bytes: u64,
}

impl<W> Hashing<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0 }
    }

    /// What was written, its digest and its length.
    pub(super) fn end(self) -> (W, [u8; 32], u64) {
        (self.inner, self.hash.finalize().into(), self.bytes)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hash.update(buffer.get(..written).unwrap_or_default());
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Writes the entries and the trailer.
pub(super) struct Writer<W> {
    out: Hashing<W>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out: Hashing::new(out) }
    }

    pub(super) fn file(&mut self, name: &str, path: &Path) -> Result<()> {
        let file = File::open(path).map_err(at(path))?;
        let size = file.metadata().map_err(at(path))?.len();
        self.entry(name, size, file).map_err(at(path))
    }

    pub(super) fn text(&mut self, name: &str, text: &[u8]) -> Result<()> {
        self.entry(name, text.len() as u64, text).map_err(at(Path::new(name)))
    }

    fn entry(&mut self, name: &str, size: u64, content: impl Read) -> io::Result<()> {
        self.out.write_all(header(name, size)?.as_bytes())?;
        let copied = io::copy(&mut content.take(size), &mut self.out)?;
        if copied != size {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was read"));
        }
        let rest = usize::try_from(size % BLOCK as u64).unwrap_or(0);
        if rest > 0 {
            self.out.write_all([0; BLOCK].get(rest..).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Ends the file.
    pub(super) fn finish(self) -> io::Result<W> {
        let (mut out, digest, _) = self.out.end();
        out.write_all(&trailer(&digest)?)?;
        Ok(out)
    }
}

fn header(name: &str, size: u64) -> io::Result<Header> {
    let mut header = Header::new_gnu();
    header.set_path(name)?;
    header.set_size(size);
    header.set_mode(0o600);
    header.set_mtime(0);
    header.set_entry_type(EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

/// The last bytes of a backup whose other bytes have this digest.
fn trailer(digest: &[u8]) -> io::Result<Vec<u8>> {
    let text = hex(digest);
    let mut bytes = header(DIGEST, text.len() as u64)?.as_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(TRAILER, 0);
    Ok(bytes)
}

/// Hashes what is read, except for the last bytes, which hold the digest.
struct Checked<R> {
    inner: R,
    hash: Sha256,
    tail: Vec<u8>,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.tail.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let sure = self.tail.len().saturating_sub(TRAILER);
        self.hash.update(self.tail.get(..sure).unwrap_or_default());
        self.tail.drain(..sure);
        Ok(read)
    }
}

/// Unpacks a backup into a directory of our own and checks its digest. Only known names are taken, so no entry can
/// lead anywhere else.
pub(super) fn unpack(from: impl Read, place: &dyn Fn(&str) -> PathBuf) -> Result<()> {
    let mut checked = Checked { inner: from, hash: Sha256::new(), tail: Vec::new() };
    let unpacked = unpack_entries(&mut checked, place);
    // Whatever else is wrong: a damaged file is the first thing to know about.
    let rest = io::copy(&mut checked, &mut io::sink());
    let whole = rest.is_ok() && trailer(&checked.hash.finalize()).is_ok_and(|expected| expected == checked.tail);
    match unpacked {
        Ok(()) if whole => Ok(()),
        // An entry that has no place here is refused by its name, also in a file that is otherwise whole.
        Err(error) if whole => Err(error),
        _ => Err(Error::invalid("backup", "is damaged, cut off, or not a backup of Deskmate; nothing was restored")),
    }
}

fn unpack_entries(from: impl Read, place: &dyn Fn(&str) -> PathBuf) -> Result<()> {
    let bad = |error: io::Error| Error::invalid("backup", error.to_string());
    let mut archive = Archive::new(from);
    for entry in archive.entries().map_err(bad)? {
        let mut entry = entry.map_err(bad)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if name == DIGEST {
            break;
        }
        let large = [STORE, BRIDGE].contains(&name.as_str()) || is_file_entry(&name);
        if !large && ![KEY, SECRET_KEY, MANIFEST, config::FILE].contains(&name.as_str()) || entry.header().entry_type() != EntryType::Regular {
            return Err(Error::invalid("backup", format!("holds an entry that no backup has: {name:?}; nothing was restored")));
        }
        if !large && entry.size() > SMALL_MAX {
            return Err(Error::invalid("backup", format!("holds a {name} of {} bytes", entry.size())));
        }
        let path = place(&name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(at(&path))?;
        io::copy(&mut entry, &mut file).and_then(|_| file.sync_all()).map_err(bad)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        writer.text(MANIFEST, b"{}").unwrap();
        writer.text(KEY, b"a key").unwrap();
        writer.text(STORE, &[7; 1_500]).unwrap();
        writer.finish().unwrap()
    }

    /// What comes out of some bytes, by name; `None` if they are refused.
    fn unpacked(bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        let done = unpack(bytes, &|name| inside.join(name));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is written anywhere else");
        let read = |entry: io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
        };
        let mut files: Vec<_> = std::fs::read_dir(&inside).unwrap().map(read).collect();
        files.sort();
        done.ok().map(|()| files)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..3_000)) {
            prop_assert_eq!(unpacked(&bytes), None);
        }

        #[test]
        fn a_damaged_backup_is_refused(at in any::<prop::sample::Index>(), with in 1_u8.., cut in prop::option::of(any::<prop::sample::Index>())) {
            let mut bytes = whole();
            prop_assert_eq!(unpacked(&bytes).map(|files| files.len()), Some(3));
            let length = bytes.len();
            match cut {
                Some(cut) => bytes.truncate(cut.index(length)),
                None => bytes[at.index(length)] ^= with,
            }
            prop_assert_eq!(unpacked(&bytes), None);
        }

        #[test]
        fn entries_lead_nowhere_else(name in "(\\.\\./|/)?[a-z./]{1,40}") {
            let mut out = Hashing::new(Vec::new());
            let Ok(header) = header(&name, 1) else { return Ok(()) };
            out.write_all(header.as_bytes()).unwrap();
            out.write_all(&[1; BLOCK]).unwrap();
            let (mut bytes, digest, _) = out.end();
            bytes.extend(trailer(&digest).unwrap());
            prop_assert_eq!(unpacked(&bytes), None);
        }
    }
}
