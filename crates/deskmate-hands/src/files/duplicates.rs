//! Files with the same content, in pages with those that waste most first: by length, then by the digest of all of it. Two
//! names of one file are not two files.
//!
//! What files of one length can waste at most is known before any is read. Lengths are taken in that order, so that a page
//! behind the first one reads no more than it has to: nothing that is longer than what is left wastes, and nothing more once
//! the page is full of what wastes more.
//!
//! Memory: 16 bytes for every length that occurs, and the paths of as many files as are held at a time. Where there are more,
//! a further scan gathers the next ones.

use std::cmp::Reverse;
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
use super::top::Top;
use super::watch::{Progress, Watch};

/// Files whose paths are held at a time; of one length no more are compared.
const FILES_HELD: usize = 500_000;
/// Lengths that are told apart.
const LENGTHS_MAX: usize = 4_000_000;
/// Groups, or paths of one, on one page at most.
const PAGE_MAX: usize = 10_000;

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
    /// Groups on this page, those that waste most first.
    pub limit: usize,
    /// Paths that are told of each group.
    pub paths: usize,
    /// Where the last page ended: what its last group wastes, and the digest of that.
    pub after: Option<(u64, Digest)>,
}

impl Default for DuplicatesSpec {
    fn default() -> Self {
        Self { path: String::new(), hidden: false, size_min: 1, limit: 200, paths: 20, after: None }
    }
}

/// Files with one content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Same {
    /// Length of each.
    pub size: u64,
    /// Digest of each.
    pub sha256: Digest,
    /// How many there are.
    pub count: u64,
    /// Where they are, by path: the first ones.
    pub paths: Vec<String>,
}

impl Same {
    /// Bytes that all copies but one take.
    pub fn wasted(&self) -> u64 {
        self.size.saturating_mul(self.count.saturating_sub(1))
    }
}

/// Groups of files with the same content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicates {
    /// Those that waste most first, and of equal ones the one that is first by its digest.
    pub groups: Vec<Same>,
    /// Bytes that all copies but one of each take, over all groups; only with the first page, which reads all of them.
    pub wasted: Option<u64>,
    /// Set if more groups follow.
    pub more: bool,
    /// Set if there are files that were not compared.
    pub cut: bool,
}

/// Whose copies are meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SameSpec {
    /// The folder; empty for the root.
    pub path: String,
    /// Also names that begin with a dot.
    pub hidden: bool,
    /// Length of each.
    pub size: u64,
    /// Digest of each.
    pub sha256: Digest,
    /// Only those behind this path.
    pub after: String,
    /// Paths on this page.
    pub limit: usize,
}

/// Finds files with the same content.
pub fn duplicates(root: &Root, spec: &DuplicatesSpec, watch: &Watch<'_>) -> Result<Duplicates, Fault> {
    duplicates_holding(root, spec, FILES_HELD, watch)
}

/// The same with the paths of so many files at a time.
pub(super) fn duplicates_holding(root: &Root, spec: &DuplicatesSpec, held: usize, watch: &Watch<'_>) -> Result<Duplicates, Fault> {
    let all = ScanSpec { path: spec.path.clone(), hidden: spec.hidden, ..ScanSpec::default() };
    let limit = spec.limit.clamp(1, PAGE_MAX);
    let (lengths, mut cut) = lengths(root, &all, spec, watch)?;
    let (mut page, mut wasted, mut reader) = (Top::new(limit + 1), 0_u64, Reader::new(root, watch));
    'lengths: for part in parts(&lengths, held) {
        let mut files = gather(root, &all, part.iter().map(|length| length.size), held, &mut cut, watch)?;
        for length in part {
            let is_less = |(least, _): &(u64, Reverse<Digest>)| length.wasted_max() < *least;
            if spec.after.is_some() && page.least().is_some_and(is_less) {
                break 'lengths;
            }
            for group in reader.groups(length.size, files.remove(&length.size).unwrap_or_default(), spec.paths)? {
                let waste = group.wasted();
                wasted = wasted.saturating_add(waste);
                if spec.after.is_none_or(|(most, last)| waste < most || (waste == most && group.sha256 > last)) {
                    page.offer((waste, Reverse(group.sha256)), group);
                }
            }
        }
    }
    let mut groups = page.into_vec();
    let more = groups.len() > limit;
    groups.truncate(limit);
    Ok(Duplicates { groups, wasted: spec.after.is_none().then_some(wasted), more, cut })
}

/// The paths of the files with a content that is known, in their order, and whether more follow.
pub fn same(root: &Root, spec: &SameSpec, watch: &Watch<'_>) -> Result<(Vec<String>, bool), Fault> {
    let all = ScanSpec { path: spec.path.clone(), hidden: spec.hidden, ..ScanSpec::default() };
    let limit = spec.limit.clamp(1, PAGE_MAX);
    let files = gather(root, &all, [spec.size].into_iter(), FILES_HELD, &mut false, watch)?.remove(&spec.size).unwrap_or_default();
    let (mut reader, mut found) = (Reader::new(root, watch), Vec::new());
    for path in first_names(files).filter(|path| *path > spec.after) {
        if reader.digest(&path, spec.size)? == Some(spec.sha256) {
            if found.len() == limit {
                return Ok((found, true));
            }
            found.push(path);
        }
    }
    Ok((found, false))
}

/// A length that several files have.
#[derive(Clone, Copy)]
struct Length {
    size: u64,
    files: u32,
}

impl Length {
    /// What they waste if all of them are the same.
    fn wasted_max(self) -> u64 {
        self.size.saturating_mul(u64::from(self.files).saturating_sub(1))
    }
}

/// The lengths that several files have, those that may waste most first; and whether some were not told apart.
fn lengths(root: &Root, all: &ScanSpec, spec: &DuplicatesSpec, watch: &Watch<'_>) -> Result<(Vec<Length>, bool), Fault> {
    // What two files of this length waste is more than anything that is left.
    let size_max = spec.after.map_or(u64::MAX, |(most, _)| most);
    let (mut lengths, mut cut) = (HashMap::<u64, u32>::new(), false);
    scan(root, all, watch, &mut |entry| {
        if entry.identity.kind == Kind::File && (spec.size_min..=size_max).contains(&entry.identity.size) {
            let full = lengths.len() >= LENGTHS_MAX;
            match lengths.get_mut(&entry.identity.size) {
                Some(files) => *files = files.saturating_add(1),
                None if full => cut = true,
                None => drop(lengths.insert(entry.identity.size, 1)),
            }
        }
        ControlFlow::Continue(())
    })?;
    let several = lengths.into_iter().filter(|(_, files)| *files > 1).map(|(size, files)| Length { size, files });
    let mut several: Vec<Length> = several.collect();
    several.sort_unstable_by_key(|length| (Reverse(length.wasted_max()), Reverse(length.size)));
    Ok((several, cut))
}

/// Lengths that follow each other and have no more files together than are held; one that has more by itself is alone.
fn parts(lengths: &[Length], held: usize) -> impl Iterator<Item = &[Length]> {
    let mut rest = lengths;
    std::iter::from_fn(move || {
        let mut files = 0_usize;
        let fits = |length: &&Length| {
            files = files.saturating_add(length.files as usize);
            files <= held
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (part, behind) = rest.split_at_checked(count)?;
        rest = behind;
        Some(part)
    })
}

/// Paths by their order, each with its device and inode.
type Files = BTreeMap<String, (u64, u64)>;

/// The files of some lengths, as many as are held; of more the first ones by their paths.
fn gather(
    root: &Root,
    all: &ScanSpec,
    lengths: impl Iterator<Item = u64>,
    held: usize,
    cut: &mut bool,
    watch: &Watch<'_>,
) -> Result<HashMap<u64, Files>, Fault> {
    let mut by_length: HashMap<u64, Files> = lengths.map(|length| (length, Files::new())).collect();
    let mut count = 0_usize;
    scan(root, all, watch, &mut |entry| {
        let identity = entry.identity;
        if identity.kind == Kind::File
            && let Some(files) = by_length.get_mut(&identity.size)
        {
            files.insert(entry.path.to_owned(), (identity.dev, identity.ino));
            count += 1;
            if count > held {
                files.pop_last();
                (count, *cut) = (count - 1, true);
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(by_length)
}

/// One path of each file: the first of its names.
fn first_names(files: Files) -> impl Iterator<Item = String> {
    let mut seen = HashSet::new();
    files.into_iter().filter_map(move |(path, inode)| seen.insert(inode).then_some(path))
}

/// Takes digests, and tells how far that has come.
struct Reader<'r> {
    root: &'r Root,
    watch: &'r Watch<'r>,
    block: Vec<u8>,
    progress: Progress,
}

impl<'r> Reader<'r> {
    fn new(root: &'r Root, watch: &'r Watch<'r>) -> Self {
        Self { root, watch, block: Vec::new(), progress: Progress::default() }
    }

    /// The digest of a file that is as long as it was; none if it was changed, is gone or cannot be read: then it is no copy of
    /// anything that can be told.
    fn digest(&mut self, path: &str, size: u64) -> Result<Option<Digest>, Fault> {
        let Some((folder, name)) = path::split(path) else { return Ok(None) };
        let Ok(folder) = self.root.open_folder(folder) else { return Ok(None) };
        let found = match digest_name(folder.as_fd(), name, &mut self.block, self.watch) {
            Ok(found) => found.sha256.filter(|_| found.size == size),
            Err(Stopped::Cancelled) => return Err(self.root.fault(Code::Cancelled, path, "cancelled")),
            Err(_) => None,
        };
        self.progress = Progress { entries: self.progress.entries + 1, bytes: self.progress.bytes.saturating_add(size) };
        self.watch.tell(self.progress);
        Ok(found)
    }

    /// The files of one length that are not the only ones with their content.
    fn groups(&mut self, size: u64, files: Files, paths_told: usize) -> Result<impl Iterator<Item = Same> + use<>, Fault> {
        let mut groups: BTreeMap<Digest, (u64, Vec<String>)> = BTreeMap::new();
        for path in first_names(files) {
            if let Some(sha256) = self.digest(&path, size)? {
                let (count, paths) = groups.entry(sha256).or_default();
                *count += 1;
                if paths.len() < paths_told {
                    paths.push(path);
                }
            }
        }
        Ok(groups.into_iter().filter(|(_, (count, _))| *count > 1).map(move |(sha256, (count, paths))| Same { size, sha256, count, paths }))
    }
}
