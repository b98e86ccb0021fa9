//! Making a backup, checking it, bringing it back. A file is cut into blocks, each kept once under its digest; a manifest names them.

use std::io::Write;
use std::path::Path;

use data_encoding::HEXLOWER;
use deskmate_hands::files::{self, Access, Kind, ListSpec, Part, Root, RootSpec, Watch};
use hyper::body::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{OBJECT_BYTES_MAX, Place, Storage, check_key};

/// How large a block is.
const BLOCK: u64 = 8 * 1024 * 1024;
/// How many files a backup has.
const FILES_MAX: usize = 100_000;
/// How many things that were left out an answer names.
const TOLD: usize = 20;
/// The form of manifests.
const VERSION: u32 = 1;

/// What a backup is made of.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    version: u32,
    name: String,
    files: Vec<Kept>,
    /// What could not be copied, and why.
    left_out: Vec<String>,
}

/// A file in it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    path: String,
    size: u64,
    sha256: String,
    blocks: Vec<String>,
}

fn manifest_key(name: &str) -> Result<String, String> {
    check_key(name)?;
    if name.contains('/') {
        return Err(format!("{name:?} is no name of a backup: it has a / in it"));
    }
    Ok(format!("backups/{name}.json"))
}

/// The name of a backup, from where its manifest is kept.
pub(super) fn name_of(key: &str) -> Option<String> {
    Some(key.strip_prefix("backups/")?.strip_suffix(".json")?.to_owned())
}

fn block_key(digest: &str) -> Result<String, String> {
    let plain = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if !plain {
        return Err("the manifest names a block that is none".to_owned());
    }
    Ok(format!("blocks/{}/{digest}", digest.get(..2).unwrap_or_default()))
}

fn digest(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// Copies everything beneath the source, or beneath a folder of it. The manifest comes last: without it there is no backup.
pub(super) async fn make(storage: &Storage, name: &str, folder: &str) -> Result<Value, String> {
    let source = storage.source.as_ref().ok_or("this connector may read no folder: its mount says --read")?;
    let key = manifest_key(name)?;
    if storage.place.head(&key).await?.is_some() {
        return Err(format!("there is a backup {name} already"));
    }
    let spec = RootSpec { name: "source".to_owned(), path: source.clone(), access: Access::Read, deny: storage.deny.clone(), own: Vec::new() };
    let root = Root::open(&spec).map_err(|fault| fault.to_string())?;
    let (mut manifest, mut new_bytes, mut after) = (Manifest { version: VERSION, name: name.to_owned(), files: Vec::new(), left_out: Vec::new() }, 0, None);
    // What should have been copied and could not be read; the rest of what is left out is never copied.
    let mut unread = Vec::new();
    loop {
        let spec =
            ListSpec { path: folder.to_owned(), depth: files::path::DEPTH_MAX, hidden: true, ignored: true, after, limit: 10_000, ..ListSpec::default() };
        let page = files::list(&root, &spec, &Watch::default()).map_err(|fault| fault.to_string())?;
        for (count, what) in
            [(page.unnamed, "names that are not UTF-8"), (page.unreadable, "folders that cannot be read"), (page.too_deep, "folders that lie too deep")]
        {
            if count > 0 {
                unread.push(format!("{count} {what}"));
            }
        }
        for entry in page.entries {
            match entry.identity.kind {
                Kind::File => {
                    if manifest.files.len() >= FILES_MAX {
                        return Err(format!("there are more than {FILES_MAX} files: make several backups, of a folder each"));
                    }
                    match keep(&storage.place, &root, &entry.path).await {
                        Ok((kept, bytes)) => {
                            new_bytes += bytes;
                            manifest.files.push(kept);
                        }
                        Err(Unkept::Unread(why)) => unread.push(format!("{}: {why}", entry.path)),
                        Err(Unkept::Unstored(why)) => return Err(why),
                    }
                }
                Kind::Folder => {}
                Kind::Link => manifest.left_out.push(format!("{}: a link", entry.path)),
                Kind::Other => manifest.left_out.push(format!("{}: no file", entry.path)),
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let not_read: Vec<String> = unread.iter().take(TOLD).cloned().collect();
    manifest.left_out.splice(0..0, unread);
    let text = serde_json::to_vec(&manifest).map_err(|error| error.to_string())?;
    if text.len() > OBJECT_BYTES_MAX {
        return Err("the manifest is too long: make several backups, of a folder each".to_owned());
    }
    let own = digest(&text);
    storage.place.put(&key, Bytes::from(text)).await?;
    let bytes: u64 = manifest.files.iter().map(|file| file.size).sum();
    let left_out: Vec<&String> = manifest.left_out.iter().take(TOLD).collect();
    Ok(json!({ "name": name, "files": manifest.files.len(), "bytes": bytes, "new_bytes": new_bytes, "manifest_sha256": own,
        "left_out": manifest.left_out.len(), "left_out_first": left_out, "not_read": not_read }))
}

/// Why a file is not in a backup.
#[derive(Debug)]
enum Unkept {
    /// It could not be read, or is not there any more: the other files are copied nevertheless.
    Unread(String),
    /// It could not be stored, and neither could others.
    Unstored(String),
}

impl From<String> for Unkept {
    fn from(why: String) -> Self {
        Self::Unstored(why)
    }
}

/// Keeps one file, and says how much of it was not there yet.
async fn keep(place: &Place, root: &Root, path: &str) -> Result<(Kept, u64), Unkept> {
    let (mut whole, mut blocks, mut offset, mut new_bytes) = (Sha256::new(), Vec::new(), 0_u64, 0_u64);
    loop {
        let content = files::read(root, path, Part::Bytes { offset, length: BLOCK }, BLOCK).map_err(|fault| Unkept::Unread(fault.to_string()))?;
        let length = content.bytes.len() as u64;
        if length == 0 {
            break;
        }
        whole.update(&content.bytes);
        let own = digest(&content.bytes);
        let key = block_key(&own)?;
        if place.head(&key).await? != Some(length) {
            place.put(&key, Bytes::from(content.bytes)).await?;
            new_bytes += length;
        }
        blocks.push(own);
        offset += length;
        if length < BLOCK {
            break;
        }
    }
    Ok((Kept { path: path.to_owned(), size: offset, sha256: HEXLOWER.encode(&whole.finalize()), blocks }, new_bytes))
}

async fn manifest(place: &Place, name: &str) -> Result<Manifest, String> {
    let text = place.get(&manifest_key(name)?).await?.ok_or_else(|| format!("there is no backup {name}"))?;
    let read: Manifest = serde_json::from_slice(&text).map_err(|error| format!("the manifest of {name} cannot be read: {error}"))?;
    if read.version != VERSION || read.name != name {
        return Err(format!("the manifest of {name} is of another version or backup"));
    }
    Ok(read)
}

/// Goes through a file's blocks, each compared with its digest, and compares the whole.
async fn blocks(place: &Place, file: &Kept, mut take: impl FnMut(&[u8]) -> Result<(), String>) -> Result<(), String> {
    let (mut whole, mut size) = (Sha256::new(), 0_u64);
    for block in &file.blocks {
        let bytes = place.get(&block_key(block)?).await?.ok_or_else(|| format!("{}: a block is missing", file.path))?;
        if digest(&bytes) != *block {
            return Err(format!("{}: a block is not any more what was kept", file.path));
        }
        whole.update(&bytes);
        size += bytes.len() as u64;
        take(&bytes)?;
    }
    if size != file.size || HEXLOWER.encode(&whole.finalize()) != file.sha256 {
        return Err(format!("{}: it is not any more what was kept", file.path));
    }
    Ok(())
}

/// Reads everything again. What is damaged fails the check, and is named.
pub(super) async fn verify(place: &Place, name: &str) -> Result<Value, String> {
    let manifest = manifest(place, name).await?;
    let (mut bytes, mut damaged) = (0, Vec::new());
    for file in &manifest.files {
        match blocks(place, file, |_| Ok(())).await {
            Ok(()) => bytes += file.size,
            Err(why) => damaged.push(why),
        }
    }
    if let Some(first) = damaged.first() {
        return Err(format!("{} of {} files are damaged: {first}", damaged.len(), manifest.files.len()));
    }
    Ok(json!({ "name": name, "sound": true, "files": manifest.files.len(), "bytes": bytes }))
}

/// Brings everything back into a folder, and reads from there whether it is what was kept.
pub(super) async fn restore(place: &Place, name: &str, into: &Path) -> Result<Value, String> {
    let manifest = manifest(place, name).await?;
    let mut bytes = 0;
    for file in &manifest.files {
        // A manifest that somebody changed must not write anywhere else.
        let inside = !file.path.is_empty() && file.path.split('/').all(|part| !part.is_empty() && part != "." && part != "..") && !file.path.contains('\0');
        if !inside {
            return Err(format!("the manifest names {:?}, which is no path beneath a folder", file.path));
        }
        let (to, told) = (into.join(&file.path), |error: std::io::Error| format!("{}: {error}", file.path));
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder).map_err(told)?;
        }
        let mut written = std::fs::OpenOptions::new().write(true).create_new(true).open(&to).map_err(told)?;
        blocks(place, file, |block| written.write_all(block).map_err(told)).await?;
        written.sync_all().map_err(told)?;
        drop(written);
        let mut back = Sha256::new();
        std::io::copy(&mut std::fs::File::open(&to).map_err(told)?, &mut Hashing(&mut back)).map_err(told)?;
        if HEXLOWER.encode(&back.finalize()) != file.sha256 {
            return Err(format!("{}: what was brought back is not what was kept", file.path));
        }
        bytes += file.size;
    }
    Ok(json!({ "name": name, "sound": true, "files": manifest.files.len(), "bytes": bytes, "left_out": manifest.left_out.len() }))
}

/// Takes what is written into a digest.
struct Hashing<'h>(&'h mut Sha256);

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Folder;
    use super::*;

    fn storage(source: &Path, to: &Path) -> Storage {
        Storage { place: Place::Folder(Folder::new(to).unwrap()), source: Some(source.to_owned()), deny: vec!["*.env".into()] }
    }

    #[tokio::test]
    async fn what_was_copied_comes_back_and_damage_is_found() {
        let (source, kept, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(source.path().join("sub")).unwrap();
        std::fs::write(source.path().join("sub/a.txt"), "one").unwrap();
        std::fs::write(source.path().join("b.bin"), vec![7; usize::try_from(BLOCK).unwrap() + 5]).unwrap();
        std::fs::write(source.path().join("empty"), "").unwrap();
        std::fs::write(source.path().join("secret.env"), "no").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", source.path().join("out")).unwrap();
        let storage = storage(source.path(), kept.path());
        let made = make(&storage, "first", "").await.unwrap();
        assert_eq!((&made["files"], &made["left_out"]), (&json!(3), &json!(1)), "{made}");
        assert!(make(&storage, "first", "").await.unwrap_err().contains("already"));
        let again = make(&storage, "second", "").await.unwrap();
        assert_eq!(again["new_bytes"], 0, "what is there is not kept twice");
        assert_eq!(verify(&storage.place, "first").await.unwrap()["sound"], true);
        restore(&storage.place, "first", back.path()).await.unwrap();
        assert_eq!(std::fs::read(back.path().join("sub/a.txt")).unwrap(), b"one");
        assert_eq!(std::fs::read(back.path().join("b.bin")).unwrap().len() as u64, BLOCK + 5);
        assert!(!back.path().join("secret.env").exists() && back.path().join("empty").exists());
        let block = kept.path().join(block_key(&digest(b"one")).unwrap());
        std::fs::write(&block, "two").unwrap();
        assert!(verify(&storage.place, "first").await.unwrap_err().contains("sub/a.txt"));
        std::fs::remove_file(&block).unwrap();
        assert!(verify(&storage.place, "first").await.unwrap_err().contains("missing"));
        assert!(verify(&storage.place, "none").await.is_err() && verify(&storage.place, "../x").await.is_err());
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_left_out_and_told_and_ends_nothing() {
        let (source, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(source.path().join("a.txt"), "one").unwrap();
        std::os::unix::fs::symlink("a.txt", source.path().join("link")).unwrap();
        let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff.txt");
        std::fs::write(source.path().join(name), "two").unwrap();
        let storage = storage(source.path(), kept.path());
        let made = make(&storage, "first", "").await.unwrap();
        assert_eq!((&made["files"], &made["left_out"], &made["not_read"]), (&json!(1), &json!(2), &json!(["1 names that are not UTF-8"])), "{made}");
        assert_eq!(made["left_out_first"], json!(["1 names that are not UTF-8", "link: a link"]), "what should have been there comes first");
        let spec = RootSpec { name: "source".to_owned(), path: source.path().to_owned(), access: Access::Read, deny: Vec::new(), own: Vec::new() };
        let root = Root::open(&spec).unwrap();
        let gone = keep(&storage.place, &root, "was-here-when-it-was-listed.lock").await.err().unwrap();
        assert!(matches!(gone, Unkept::Unread(_)), "what goes away meanwhile is no fault of the backup: {gone:?}");
        std::fs::remove_dir_all(kept.path().join("blocks")).unwrap();
        std::fs::write(kept.path().join("blocks"), "").unwrap();
        let full = keep(&storage.place, &root, "a.txt").await.err().unwrap();
        assert!(matches!(full, Unkept::Unstored(_)), "what cannot be stored is: {full:?}");
    }

    #[tokio::test]
    async fn a_manifest_that_was_changed_writes_nowhere_else() {
        let (kept, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = Place::Folder(Folder::new(kept.path()).unwrap());
        for path in ["../out", "/etc/x", "a/../../b", ""] {
            let file = json!({ "path": path, "size": 0, "sha256": digest(b""), "blocks": [] });
            let text = json!({ "version": VERSION, "name": "bad", "files": [file], "left_out": [] }).to_string();
            place.put("backups/bad.json", Bytes::from(text)).await.unwrap();
            assert!(restore(&place, "bad", back.path()).await.is_err(), "{path}");
        }
    }
}
