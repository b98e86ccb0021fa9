//! Looks at trees of any size, with results that stay within bounds.

use deskmate_core::workspace::scan::{
    DuplicatesFound, IndexFound, SameFiles, ScannedExtension, ScannedFile, ScannedFolder, ScannedTotal, SizesFound, Survey, Surveyed, TreeFound,
};
use deskmate_core::workspace::{What, page};
use deskmate_core::{Result, format_time};
use deskmate_hands::files::{self, DuplicatesSpec, Entry, IndexSpec, Kind, ListSpec, Node, SizesSpec, Summary, Watch};
use serde_json::Value;

use super::fault;
use super::look::{self, value};

/// How many bytes of paths and names a result holds: a job keeps at most a mebibyte.
const ROOM: usize = 400 * 1024;
/// Files, and folders, that are told one by one.
const FILES: usize = 200;
/// Files in each list of the largest and the newest, and extensions.
const TOP: usize = 20;
/// Groups of files with the same content, and paths of one.
const GROUPS: usize = 100;
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
        Surveyed::Tree { depth, hidden, ignored, limit } => {
            let spec = ListSpec { path, depth: depth as usize, hidden, ignored, limit: limit as usize, ..ListSpec::default() };
            let found = files::tree(root, &spec, watch).map_err(fault)?;
            let mut text = String::new();
            let whole = draw(&found.children, 0, &mut text);
            value(&TreeFound { tree: text, truncated: found.truncated || !whole, left_out: found.left_out })
        }
        Surveyed::Sizes { depth } => {
            let spec = SizesSpec { path, depth: depth as usize, limit: FILES };
            let found = files::sizes(root, &spec, watch).map_err(fault)?;
            let largest = told.files(found.largest);
            let count = found.folders.len();
            let folders = found.folders.into_iter().map_while(|one| Some(ScannedFolder { path: told.path(&one.path)?, bytes: one.bytes, count: one.files }));
            let folders: Vec<_> = folders.collect();
            value(&SizesFound { total: total(&found.total), truncated: found.truncated || folders.len() < count, folders, largest })
        }
        Surveyed::Duplicates { min_bytes } => {
            let spec = DuplicatesSpec { path, hidden: true, size_min: min_bytes.max(1), limit: GROUPS };
            let found = files::duplicates(root, &spec, watch).map_err(fault)?;
            let count = found.groups.len();
            let groups = found.groups.into_iter().map_while(|one| {
                let paths: Option<Vec<String>> = one.paths.iter().take(PATHS).map(|path| told.path(path)).collect();
                Some(SameFiles { size: one.size, sha256: one.sha256.to_string(), count: one.paths.len() as u64, paths: paths? })
            });
            let groups: Vec<_> = groups.collect();
            value(&DuplicatesFound { wasted: found.wasted, truncated: found.truncated || groups.len() < count, groups })
        }
    }
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
    fn path(&mut self, path: &str) -> Option<String> {
        let path = format!("{}/{path}", self.root);
        self.room = self.room.checked_sub(path.len() + 200)?;
        Some(path)
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

fn total(seen: &Summary) -> ScannedTotal {
    ScannedTotal { files: seen.files, folders: seen.folders, bytes: seen.bytes, left_out: seen.unnamed + seen.unreadable + seen.too_deep + seen.unsettled }
}

/// Writes names below each other; says whether all had room. A name with signs that steer a terminal is written with those
/// in words, so that none looks like another line.
fn draw(nodes: &[Node], depth: usize, text: &mut String) -> bool {
    nodes.iter().all(|node| {
        if text.len() > ROOM {
            return false;
        }
        let name: String = node.name.chars().flat_map(|one| if one.is_control() { one.escape_default().collect() } else { vec![one] }).collect();
        let end = match node.kind {
            Kind::Folder => "/".to_owned(),
            Kind::Link => "@".to_owned(),
            Kind::File => format!("  {}", node.size),
            Kind::Other => "?".to_owned(),
        };
        text.push_str(&format!("{}{name}{end}\n", "  ".repeat(depth)));
        draw(&node.children, depth + 1, text)
    })
}
