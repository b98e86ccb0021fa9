//! How much lies in each folder, in pages with the largest first.
//!
//! Memory does not grow with the tree: folders are counted in parts, as many at a time as are held, and each part is a scan of
//! its own. A tree with no more told folders than that takes one scan, which is nearly every tree.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::identity::{Entry, Kind};
use super::path::DEPTH_MAX;
use super::root::Root;
use super::scan::{ScanSpec, Summary, scan};
use super::top::Top;
use super::watch::Watch;

/// Files that are told one by one.
const LARGEST: usize = 20;
/// Folders that are counted at a time.
const FOLDERS_HELD: u64 = 100_000;
/// Folders on one page at most.
const PAGE_MAX: usize = 10_000;

/// What to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SizesSpec {
    /// The folder; empty for the root.
    pub path: String,
    /// Levels of folders that are told one by one; what lies deeper counts for the folder above.
    pub depth: usize,
    /// Folders on this page, the largest first.
    pub limit: usize,
    /// Where the last page ended: its last folder, and how much that held.
    pub after: Option<(u64, String)>,
}

impl Default for SizesSpec {
    fn default() -> Self {
        Self { path: String::new(), depth: 1, limit: 100, after: None }
    }
}

/// What lies in a folder, with all that lies deeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderSize {
    /// The folder.
    pub path: String,
    /// Length of all files; one with two names counts twice.
    pub bytes: u64,
    /// How many files.
    pub files: u64,
}

/// Folders by size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// The largest first, and of equal ones the one that is first by its path.
    pub folders: Vec<FolderSize>,
    /// The largest files, the largest first.
    pub largest: Vec<Entry>,
    /// All together.
    pub total: Summary,
    /// Set if more folders follow.
    pub more: bool,
}

/// Measures the folders beneath a folder.
pub fn sizes(root: &Root, spec: &SizesSpec, watch: &Watch<'_>) -> Result<Sizes, Fault> {
    sizes_holding(root, spec, FOLDERS_HELD, watch)
}

/// The same with so many folders counted at a time.
pub(super) fn sizes_holding(root: &Root, spec: &SizesSpec, held: u64, watch: &Watch<'_>) -> Result<Sizes, Fault> {
    let (by, mut parts) = (RandomState::new(), 1);
    loop {
        match in_parts(root, spec, held, &by, parts, watch)? {
            Ok(sizes) => return Ok(sizes),
            Err(more) => parts = more,
        }
    }
}

/// A page, from a scan for each part; or how many parts it takes, if one of these has more folders than are held.
fn in_parts(root: &Root, spec: &SizesSpec, held: u64, by: &RandomState, parts: u64, watch: &Watch<'_>) -> Result<Result<Sizes, u64>, Fault> {
    let limit = spec.limit.clamp(1, PAGE_MAX);
    let (mut page, mut all) = (Top::new(limit + 1), None);
    for part in 0..parts {
        let is_mine = |folder: &str| parts == 1 || by.hash_one(folder) % parts == part;
        let found = measure(root, spec, held, &is_mine, watch)?;
        if found.over {
            return Ok(Err(parts * found.told.div_ceil(held.div_ceil(2)).max(2)));
        }
        for (path, (bytes, files)) in found.folders {
            if spec.after.as_ref().is_none_or(|(most, last)| bytes < *most || (bytes == *most && path > *last)) {
                page.offer((bytes, Reverse(path.clone())), FolderSize { path, bytes, files });
            }
        }
        all = Some((found.total, found.largest));
    }
    let (total, largest) = all.unwrap_or_default();
    let mut folders = page.into_vec();
    let more = folders.len() > limit;
    folders.truncate(limit);
    Ok(Ok(Sizes { folders, largest, total, more }))
}

/// What one scan measured.
struct Measured {
    folders: HashMap<String, (u64, u64)>,
    /// How many folders it was to count, and whether those were more than are held.
    told: u64,
    over: bool,
    largest: Vec<Entry>,
    total: Summary,
}

fn measure(root: &Root, spec: &SizesSpec, held: u64, is_mine: &(dyn Fn(&str) -> bool + Sync), watch: &Watch<'_>) -> Result<Measured, Fault> {
    let (_, place) = root.look_into(root.path(&spec.path)?)?;
    let base = if place.is_root() { 0 } else { place.as_str().len() + 1 };
    let depth = spec.depth.clamp(1, DEPTH_MAX);
    let mut folders: HashMap<String, (u64, u64)> = HashMap::new();
    let mut largest = Top::new(LARGEST);
    let (mut told, mut over) = (0, false);
    let total = scan(root, &ScanSpec { path: spec.path.clone(), ..ScanSpec::default() }, watch, &mut |entry| {
        let within = entry.path.get(base..).unwrap_or_default();
        let is_folder = entry.identity.kind == Kind::Folder;
        let counts = match entry.identity.kind {
            Kind::File => {
                let size = entry.identity.size;
                largest.offer((size, Reverse(entry.path.to_owned())), Entry { path: entry.path.to_owned(), identity: entry.identity });
                (size, 1)
            }
            Kind::Folder => (0, 0),
            Kind::Link | Kind::Other => return ControlFlow::Continue(()),
        };
        let ends = within.match_indices('/').map(|(at, _)| at).chain(is_folder.then_some(within.len()));
        for end in ends.take(depth) {
            let folder = entry.path.get(..base + end).unwrap_or_default();
            if !is_mine(folder) {
                continue;
            }
            told += u64::from(is_folder && end == within.len());
            if let Some(sum) = folders.get_mut(folder) {
                *sum = (sum.0.saturating_add(counts.0), sum.1 + counts.1);
            } else if (folders.len() as u64) < held {
                folders.insert(folder.to_owned(), counts);
            } else {
                over = true;
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(Measured { folders, told, over, largest: largest.into_vec(), total })
}
