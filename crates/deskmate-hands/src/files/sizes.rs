//! How much lies in each folder.

use std::cmp::Reverse;
use std::collections::HashMap;
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
/// Folders that are counted one by one; what lies in more is only in the total.
const FOLDERS_MAX: usize = 100_000;

/// What to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SizesSpec {
    /// The folder; empty for the root.
    pub path: String,
    /// Levels of folders that are told one by one; what lies deeper counts for the folder above.
    pub depth: usize,
    /// Folders in the answer, the largest first.
    pub limit: usize,
}

impl Default for SizesSpec {
    fn default() -> Self {
        Self { path: String::new(), depth: 1, limit: 100 }
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
    /// The largest first.
    pub folders: Vec<FolderSize>,
    /// The largest files, the largest first.
    pub largest: Vec<Entry>,
    /// All together.
    pub total: Summary,
    /// Set if there are more folders than are told here.
    pub truncated: bool,
}

/// Measures the folders beneath a folder.
pub fn sizes(root: &Root, spec: &SizesSpec, watch: &Watch<'_>) -> Result<Sizes, Fault> {
    let (_, place) = root.look_into(root.path(&spec.path)?)?;
    let base = if place.is_root() { 0 } else { place.as_str().len() + 1 };
    let depth = spec.depth.clamp(1, DEPTH_MAX);
    let mut folders: HashMap<String, (u64, u64)> = HashMap::new();
    let mut largest = Top::new(LARGEST);
    let mut truncated = false;
    let total = scan(root, &ScanSpec { path: spec.path.clone(), ..ScanSpec::default() }, watch, &mut |entry| {
        let within = entry.path.get(base..).unwrap_or_default();
        let counts = match entry.identity.kind {
            Kind::File => {
                let size = entry.identity.size;
                largest.offer((size, Reverse(entry.path.to_owned())), Entry { path: entry.path.to_owned(), identity: entry.identity });
                (size, 1)
            }
            Kind::Folder => (0, 0),
            Kind::Link | Kind::Other => return ControlFlow::Continue(()),
        };
        let ends = within.match_indices('/').map(|(at, _)| at).chain((entry.identity.kind == Kind::Folder).then_some(within.len()));
        for end in ends.take(depth) {
            let folder = entry.path.get(..base + end).unwrap_or_default();
            if let Some(sum) = folders.get_mut(folder) {
                *sum = (sum.0 + counts.0, sum.1 + counts.1);
            } else if folders.len() < FOLDERS_MAX {
                folders.insert(folder.to_owned(), counts);
            } else {
                truncated = true;
            }
        }
        ControlFlow::Continue(())
    })?;
    let mut folders: Vec<_> = folders.into_iter().map(|(path, (bytes, files))| FolderSize { path, bytes, files }).collect();
    folders.sort_unstable_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    let limit = spec.limit.clamp(1, FOLDERS_MAX);
    truncated |= folders.len() > limit;
    folders.truncate(limit);
    Ok(Sizes { folders, largest: largest.into_vec(), total, truncated })
}
