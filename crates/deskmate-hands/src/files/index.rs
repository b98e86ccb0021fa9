//! What a whole tree holds, in a few words: counts, sizes by extension, the first files, the largest and the newest. Memory
//! does not grow with the tree.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::identity::{Entry, Kind};
use super::organize::extension;
use super::path;
use super::root::Root;
use super::scan::{ScanSpec, Summary, scan};
use super::top::Top;
use super::watch::Watch;

/// Extensions that are told apart.
const EXTENSIONS_MAX: usize = 10_000;

/// What to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IndexSpec {
    /// The folder; empty for the root.
    pub path: String,
    /// Also names that begin with a dot.
    pub hidden: bool,
    /// Takes the SHA-256 of every file, all of it.
    pub digest: bool,
    /// How many files are told one by one, in the order of their paths.
    pub first: usize,
    /// How many of the largest and of the newest files, and of the extensions, are told.
    pub top: usize,
}

impl Default for IndexSpec {
    fn default() -> Self {
        Self { path: String::new(), hidden: true, digest: false, first: 200, top: 20 }
    }
}

/// How much there is with one extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionSize {
    /// In small letters without the dot; empty for files that have none.
    pub extension: String,
    /// How many files.
    pub files: u64,
    /// Their length together.
    pub bytes: u64,
}

/// What a tree holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// All together.
    pub total: Summary,
    /// Files that have a digest.
    pub hashed: u64,
    /// The first files by their paths.
    pub first: Vec<Entry>,
    /// The largest files, the largest first.
    pub largest: Vec<Entry>,
    /// The files that were changed last, the newest first.
    pub newest: Vec<Entry>,
    /// What takes most first.
    pub extensions: Vec<ExtensionSize>,
}

/// Looks at a whole tree.
pub fn index(root: &Root, spec: &IndexSpec, watch: &Watch<'_>) -> Result<Index, Fault> {
    let all = ScanSpec { path: spec.path.clone(), hidden: spec.hidden, digest: spec.digest, ..ScanSpec::default() };
    let (mut first, mut largest, mut newest) = (Top::new(spec.first), Top::new(spec.top), Top::new(spec.top));
    let mut extensions: HashMap<String, (u64, u64)> = HashMap::new();
    let mut hashed = 0;
    let total = scan(root, &all, watch, &mut |found| {
        let identity = found.identity;
        if identity.kind != Kind::File {
            return ControlFlow::Continue(());
        }
        hashed += u64::from(identity.sha256.is_some());
        let entry = || Entry { path: found.path.to_owned(), identity };
        first.offer(Reverse(found.path.to_owned()), entry());
        largest.offer((identity.size, Reverse(found.path.to_owned())), entry());
        newest.offer((identity.mtime_ns, Reverse(found.path.to_owned())), entry());
        let name = path::split(found.path).and_then(|(_, name)| extension(name)).unwrap_or_default();
        // Beyond the bound what is new is counted with those that have none.
        let name = if extensions.len() < EXTENSIONS_MAX || extensions.contains_key(&name) { name } else { String::new() };
        let sum = extensions.entry(name).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(identity.size));
        ControlFlow::Continue(())
    })?;
    let mut by_size = Top::new(spec.top);
    for (extension, (files, bytes)) in extensions {
        by_size.offer((bytes, files, Reverse(extension.clone())), ExtensionSize { extension, files, bytes });
    }
    Ok(Index { total, hashed, first: first.into_vec(), largest: largest.into_vec(), newest: newest.into_vec(), extensions: by_size.into_vec() })
}
