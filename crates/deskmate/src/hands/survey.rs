//! Looks at trees of any size, with results that stay within bounds.

use deskmate_core::workspace::scan::{
    DuplicatesFound, IndexFound, SameAfter, SameFiles, ScannedExtension, ScannedFile, ScannedFolder, ScannedTotal, SizesAfter, SizesFound, Survey, Surveyed,
    TreeFound,
};
use deskmate_core::workspace::{What, page};
use deskmate_core::{Error, Result, format_time};
use deskmate_hands::files::{self, Digest, DuplicatesSpec, Entry, IndexSpec, Same, SameSpec, SizesSpec, Summary, TreeSpec, Watch};
use serde_json::Value;

use super::fault;
use super::look::{self, value};

/// How many bytes of names a page of a tree holds: a job keeps at most a mebibyte, and JSON may write two bytes for one.
const TREE_ROOM: usize = 400 * 1024;
/// How many bytes of paths any other result holds, as JSON: always more than one path has.
const ROOM: usize = 800 * 1024;
/// Files that are told one by one.
const FILES: usize = 200;
/// Files in each list of the largest and the newest, and extensions.
const TOP: usize = 20;
/// Paths that are told of files with the same content, with their group.
const PATHS: usize = 20;

/// Looks. Blocks for as long as the tree takes, or until the watch says stop.
pub(crate) fn run(root: &files::Root, survey: &Survey, watch: &Watch<'_>) -> Result<Value> {
    let mut told = Told { root: &survey.root, room: ROOM };
    let path = survey.path.clone();
    match survey.what {
        Surveyed::List(ref ask) => late(root, survey, &What::List(ask.clone()), watch),
        Surveyed::Search(ref ask) => late(root, survey, &What::Search(ask.clone()), watch),
        Surveyed::Trash(ref ask) => late(root, survey, &What::Trash(ask.clone()), watch),
        Surveyed::Index { hash_files } => {
            let spec = IndexSpec { path, hidden: true, digest: hash_files, first: FILES, top: TOP };
            let found = files::index(root, &spec, watch).map_err(fault)?;
            let (largest, newest) = (told.files(found.largest), told.files(found.newest));
            let shown = told.files(found.first);
            value(&IndexFound {
                truncated: found.total.files > shown.len() as u64,
                total: total(&found.total),
                hashed: found.hashed,
                files: shown,
                extensions: found.extensions.into_iter().map(|one| ScannedExtension { ext: one.extension, count: one.files, bytes: one.bytes }).collect(),
                largest,
                newest,
            })
        }
        Surveyed::Tree { depth, hidden, ignored, limit, ref after } => {
            let spec = TreeSpec { path, depth: depth as usize, hidden, ignored, after: after.clone(), limit: limit as usize, bytes: TREE_ROOM };
            let found = files::tree(root, &spec, watch).map_err(fault)?;
            let begins_in = found.begins_in.filter(|_| after.is_some()).map(|folder| told.name(&folder));
            value(&TreeFound { tree: found.text, truncated: found.next.is_some(), next_cursor: found.next, begins_in, left_out: found.left_out })
        }
        Surveyed::Sizes { depth, limit, ref after } => {
            let is_first = after.is_none();
            let after = after.as_ref().map(|after| (after.bytes, after.path.clone()));
            let found = files::sizes(root, &SizesSpec { path, depth: depth as usize, limit: limit as usize, after }, watch).map_err(fault)?;
            value(&told.sizes(found, is_first))
        }
        Surveyed::Duplicates { min_bytes, limit, ref after } => {
            let limit = limit as usize;
            if let Some(SameAfter::Path { size, sha256, count, path: after }) = after {
                let spec = SameSpec { path, hidden: true, size: *size, sha256: digest(sha256)?, after: after.clone(), limit };
                let (paths, more) = files::same(root, &spec, watch).map_err(fault)?;
                let group = told.group(Same { size: *size, sha256: spec.sha256, count: *count, paths }, Some(more));
                let (wasted, next_cursor) = (size.saturating_mul(count.saturating_sub(1)), group.next_cursor.clone());
                return value(&DuplicatesFound { truncated: next_cursor.is_some(), next_cursor, wasted, groups: vec![group] });
            }
            let (after, wasted) = match after {
                Some(SameAfter::Group { bytes, sha256, wasted }) => (Some((*bytes, digest(sha256)?)), *wasted),
                _ => (None, 0),
            };
            let spec = DuplicatesSpec { path, hidden: true, size_min: min_bytes.max(1), limit, paths: PATHS, after };
            let found = files::duplicates(root, &spec, watch).map_err(fault)?;
            value(&told.duplicates(found, wasted))
        }
    }
}

fn digest(text: &str) -> Result<Digest> {
    text.parse().map_err(|why| Error::invalid("cursor", why))
}

/// A page that was too long for the call that wanted it.
fn late(root: &files::Root, survey: &Survey, what: &What, watch: &Watch<'_>) -> Result<Value> {
    page(&survey.root, &survey.what, look::run(root, &survey.path, what, watch)?)
}

/// What is told, as callers name it, as far as there is room.
struct Told<'t> {
    root: &'t str,
    room: usize,
}

impl Told<'_> {
    fn name(&self, path: &str) -> String {
        if path.is_empty() { self.root.to_owned() } else { format!("{}/{path}", self.root) }
    }

    fn path(&mut self, path: &str) -> Option<String> {
        let path = self.name(path);
        self.room = self.room.checked_sub(written(&path) + 200)?;
        Some(path)
    }

    /// A page of folders; the largest files go with the first one.
    fn sizes(&mut self, found: files::Sizes, is_first: bool) -> SizesFound {
        let (count, mut last) = (found.folders.len(), None);
        let folder = |one: files::FolderSize| {
            let told = ScannedFolder { path: self.path(&one.path)?, bytes: one.bytes, count: one.files };
            last = Some(SizesAfter { bytes: one.bytes, path: one.path });
            Some(told)
        };
        let folders: Vec<_> = found.folders.into_iter().map_while(folder).collect();
        let next_cursor = last.filter(|_| found.more || folders.len() < count).map(|last| last.to_string());
        let largest = if is_first { self.files(found.largest) } else { Vec::new() };
        SizesFound { total: total(&found.total), truncated: next_cursor.is_some(), next_cursor, folders, largest }
    }

    /// A page of groups, each with all of its paths unless it is the only one. What all of them waste is counted with the first
    /// page, and repeated with the others.
    fn duplicates(&mut self, found: files::Duplicates, wasted: u64) -> DuplicatesFound {
        let wasted = found.wasted.unwrap_or(wasted);
        let (count, mut last) = (found.groups.len(), None);
        let group = |one: Same| {
            let after = SameAfter::Group { bytes: one.wasted(), sha256: one.sha256.to_string(), wasted };
            let (paths, told) = (one.paths.len(), self.group(one, None));
            (told.paths.len() == paths || last.is_none()).then(|| {
                last = Some(after);
                told
            })
        };
        let groups: Vec<_> = found.groups.into_iter().map_while(group).collect();
        let next_cursor = last.filter(|_| found.more || groups.len() < count).map(|last| last.to_string());
        DuplicatesFound { truncated: found.cut || next_cursor.is_some(), wasted, next_cursor, groups }
    }

    /// Files with one content, and where the rest of their paths begins: there is one if the look says so, or else if there are
    /// more files than paths.
    fn group(&mut self, one: Same, more: Option<bool>) -> SameFiles {
        let (wanted, mut last) = (one.paths.len(), None);
        let (size, sha256, count) = (one.size, one.sha256.to_string(), one.count);
        let path = |path: String| {
            let told = self.path(&path)?;
            last = Some(SameAfter::Path { size, sha256: sha256.clone(), count, path });
            Some(told)
        };
        let paths: Vec<_> = one.paths.into_iter().map_while(path).collect();
        let more = more.unwrap_or(wanted as u64 != count) || paths.len() < wanted;
        let next_cursor = last.filter(|_| more).map(|last| last.to_string());
        self.room = self.room.saturating_sub(next_cursor.as_deref().map_or(0, written));
        SameFiles { size, sha256, count, paths, next_cursor }
    }

    fn files(&mut self, entries: Vec<Entry>) -> Vec<ScannedFile> {
        let file = |entry: Entry| {
            Some(ScannedFile {
                ext: entry.path.rsplit('/').next().and_then(files::extension),
                path: self.path(&entry.path)?,
                size: entry.identity.size,
                mtime: format_time(entry.identity.mtime_ns / 1_000),
                sha256: entry.identity.sha256.map(|digest| digest.to_string()),
            })
        };
        entries.into_iter().map_while(file).collect()
    }
}

/// How many bytes a text takes as JSON, at most.
fn written(text: &str) -> usize {
    let bytes = |one: u8| match one {
        ..b' ' => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    };
    text.bytes().map(bytes).sum()
}

fn total(seen: &Summary) -> ScannedTotal {
    ScannedTotal { files: seen.files, folders: seen.folders, bytes: seen.bytes, left_out: seen.unnamed + seen.unreadable + seen.too_deep + seen.unsettled }
}
