//! Files with the same content: first by length, then by the digest of all of it. Two names of one file are not two files.
//!
//! Memory: 16 bytes for every length that occurs, and the paths of the files whose length occurs more than once, up to a
//! bound; beyond it the longest files are looked at, since that is where space is to be had, and the answer says so.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use super::digest::{Stopped, digest_name};
use super::fault::{Code, Fault};
use super::identity::{Digest, Kind};
use super::path;
use super::root::Root;
use super::scan::{ScanSpec, scan};
use super::watch::{Progress, Watch};

/// Files whose digests are compared.
const FILES_MAX: usize = 500_000;
/// Lengths that are told apart.
const LENGTHS_MAX: usize = 4_000_000;

/// Where to look for files with the same content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DuplicatesSpec {
    /// The folder; empty for the root.
    pub path: String,
    /// Also names that begin with a dot.
    pub hidden: bool,
    /// Shorter files are passed over.
    pub size_min: u64,
    /// Groups in the answer, those that waste most first.
    pub limit: usize,
}

impl Default for DuplicatesSpec {
    fn default() -> Self {
        Self { path: String::new(), hidden: false, size_min: 1, limit: 200 }
    }
}

/// Files with one content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Same {
    /// Length of each.
    pub size: u64,
    /// Digest of each.
    pub sha256: Digest,
    /// Where they are, by name.
    pub paths: Vec<String>,
}

/// Groups of files with the same content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicates {
    /// Those that waste most first.
    pub groups: Vec<Same>,
    /// Bytes that all copies but one of each take, over all groups.
    pub wasted: u64,
    /// Set if there are more groups, or files that were not compared.
    pub truncated: bool,
}

/// Finds files with the same content.
pub fn duplicates(root: &Root, spec: &DuplicatesSpec, watch: &Watch<'_>) -> Result<Duplicates, Fault> {
    let mut answer = Duplicates::default();
    let by_length = candidates(root, spec, watch, &mut answer.truncated)?;
    let mut progress = Progress::default();
    let mut block = Vec::new();
    // The longest first.
    for (size, paths) in by_length.into_iter().rev().filter(|(_, paths)| paths.len() > 1) {
        let mut groups: BTreeMap<Digest, Vec<String>> = BTreeMap::new();
        for path in paths {
            let Some((folder, name)) = path::split(&path) else { continue };
            let Ok(folder) = root.open_folder(folder) else { continue };
            match digest_name(folder.as_fd(), name, &mut block, watch) {
                Ok(found) if found.size == size => groups.entry(found.sha256.unwrap_or(Digest([0; 32]))).or_default().push(path),
                Err(Stopped::Cancelled) => return Err(root.fault(Code::Cancelled, &path, "cancelled")),
                // Changed, gone or not readable: it is no copy of anything that can be told.
                Ok(_) | Err(_) => {}
            }
            progress = Progress { entries: progress.entries + 1, bytes: progress.bytes + size };
            watch.tell(progress);
        }
        for (sha256, mut paths) in groups.into_iter().filter(|(_, paths)| paths.len() > 1) {
            paths.sort_unstable();
            answer.wasted = answer.wasted.saturating_add(size.saturating_mul(paths.len() as u64 - 1));
            answer.groups.push(Same { size, sha256, paths });
        }
    }
    answer.groups.sort_by_cached_key(|group| (std::cmp::Reverse(group.size.saturating_mul(group.paths.len() as u64 - 1)), group.paths.first().cloned()));
    let limit = spec.limit.clamp(1, FILES_MAX);
    answer.truncated |= answer.groups.len() > limit;
    answer.groups.truncate(limit);
    Ok(answer)
}

/// The paths of files whose length is not theirs alone.
fn candidates(root: &Root, spec: &DuplicatesSpec, watch: &Watch<'_>, truncated: &mut bool) -> Result<BTreeMap<u64, Vec<String>>, Fault> {
    let all = ScanSpec { path: spec.path.clone(), hidden: spec.hidden, ..ScanSpec::default() };
    let mut lengths: HashMap<u64, bool> = HashMap::new();
    let mut cut = false;
    scan(root, &all, watch, &mut |entry| {
        if entry.identity.kind == Kind::File && entry.identity.size >= spec.size_min {
            let full = lengths.len() >= LENGTHS_MAX;
            match lengths.get_mut(&entry.identity.size) {
                Some(twice) => *twice = true,
                None if full => cut = true,
                None => drop(lengths.insert(entry.identity.size, false)),
            }
        }
        ControlFlow::Continue(())
    })?;
    let mut by_length: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut inodes: HashSet<(u64, u64)> = HashSet::new();
    let mut count = 0_usize;
    scan(root, &all, watch, &mut |entry| {
        let identity = entry.identity;
        if identity.kind != Kind::File || lengths.get(&identity.size) != Some(&true) || !inodes.insert((identity.dev, identity.ino)) {
            return ControlFlow::Continue(());
        }
        by_length.entry(identity.size).or_default().push(entry.path.to_owned());
        count += 1;
        while count > FILES_MAX {
            let Some((_, paths)) = by_length.pop_first() else { break };
            count -= paths.len();
            cut = true;
        }
        ControlFlow::Continue(())
    })?;
    *truncated = cut;
    Ok(by_length)
}
