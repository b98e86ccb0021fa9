//! What a scan found, held small: a plan over a million files is made from all of them at once.

use super::identity::{Identity, Kind};
use super::path;

/// Stands for a birth that the file system does not tell.
const UNBORN: i64 = i64::MIN;

/// Entries with their paths in one text. Digests are not kept.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    paths: String,
    all: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: usize,
    dev: u64,
    ino: u64,
    size: u64,
    mtime_ns: i64,
    born_ns: i64,
    mode: u32,
    length: u16,
    kind: Kind,
}

impl Entries {
    /// Adds one. A path that is longer than any file system has is left out.
    pub fn push(&mut self, path: &str, identity: &Identity) {
        let Ok(length) = u16::try_from(path.len()) else { return };
        let Identity { dev, ino, kind, mode, size, mtime_ns, born_ns, .. } = *identity;
        self.all.push(Entry { start: self.paths.len(), dev, ino, size, mtime_ns, born_ns: born_ns.unwrap_or(UNBORN), mode, length, kind });
        self.paths.push_str(path);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Drops what does not lie in a folder, and sorts the rest by path, which is what the look-ups below go by.
    pub(super) fn sort_within(&mut self, folder: &str) {
        let paths = &self.paths;
        self.all.retain(|entry| path::lies_in(text(paths, entry), folder));
        self.all.sort_unstable_by(|a, b| text(paths, a).cmp(text(paths, b)));
    }

    pub(super) fn get(&self, at: usize) -> Option<(&str, Identity)> {
        self.all.get(at).map(|entry| (text(&self.paths, entry), entry.identity()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Kind)> {
        self.all.iter().map(|entry| (text(&self.paths, entry), entry.kind))
    }

    /// What has this path.
    pub(super) fn kind_of(&self, path: &str) -> Option<Kind> {
        let at = self.all.binary_search_by(|entry| text(&self.paths, entry).cmp(path)).ok()?;
        self.all.get(at).map(|entry| entry.kind)
    }

    /// Whether anything lies in a folder.
    pub(super) fn has_beneath(&self, folder: &str) -> bool {
        let within = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let at = self.all.partition_point(|entry| text(&self.paths, entry) < within.as_str());
        self.all.get(at).is_some_and(|entry| text(&self.paths, entry).starts_with(&within))
    }
}

fn text<'p>(paths: &'p str, entry: &Entry) -> &'p str {
    paths.get(entry.start..entry.start + usize::from(entry.length)).unwrap_or_default()
}

impl Entry {
    fn identity(&self) -> Identity {
        let Self { dev, ino, size, mtime_ns, mode, kind, .. } = *self;
        Identity { dev, ino, kind, mode, size, mtime_ns, born_ns: Some(self.born_ns).filter(|at| *at != UNBORN), sha256: None }
    }
}
