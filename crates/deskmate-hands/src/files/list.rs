//! Listing a folder, or a tree to some depth, in pages.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::fault::{Code, Fault};
use super::identity::Entry;
use super::path::DEPTH_MAX;
use super::root::Root;
use super::walk::{Choice, Gaps, walk};
use super::watch::Watch;
use super::withheld;

/// The most entries on one page.
const PAGE_MAX: usize = 10_000;
/// How many globs may be asked for at once.
const GLOBS_MAX: usize = 100;

/// What to list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListSpec {
    /// The folder; empty for the root.
    pub path: String,
    /// Levels of folders: 1 for the folder's own entries.
    pub depth: usize,
    /// Also names that begin with a dot.
    pub hidden: bool,
    /// Also what `.gitignore` and `.ignore` leave out, and folders of version control.
    pub ignored: bool,
    /// Only entries that match one of these globs.
    pub include: Vec<String>,
    /// Where the last page ended (`next` of its answer).
    pub after: Option<String>,
    /// Entries on this page, at most 10,000.
    pub limit: usize,
}

impl Default for ListSpec {
    fn default() -> Self {
        Self { path: String::new(), depth: 1, hidden: false, ignored: false, include: Vec::new(), after: None, limit: 1_000 }
    }
}

/// A page of a listing: depth first, names in the order of their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The entries; beneath a folder that was reached through a link, where they really lie.
    pub entries: Vec<Entry>,
    /// Set if more follow: the `after` of the next page.
    pub next: Option<String>,
    /// Names on the way that are not UTF-8.
    pub unnamed: u64,
    /// Folders on the way that could not be read.
    pub unreadable: u64,
    /// Folders that lie too deep to be walked into.
    pub too_deep: u64,
}

/// Lists.
pub fn list(root: &Root, spec: &ListSpec, watch: &Watch<'_>) -> Result<Listing, Fault> {
    let limit = spec.limit.clamp(1, PAGE_MAX);
    let choice = choice(root, spec.depth, spec.hidden, spec.ignored, &spec.include)?;
    let mut listing = Listing::default();
    let mut before = Gaps::default();
    let mut gaps = walk(root, &spec.path, spec.after.as_deref(), &choice, watch, &mut |visit| {
        if listing.entries.len() == limit {
            listing.next = listing.entries.last().map(|entry| entry.path.clone());
            return ControlFlow::Break(());
        }
        listing.entries.push(Entry { path: visit.path.to_owned(), identity: visit.identity });
        before = visit.gaps;
        ControlFlow::Continue(())
    })?;
    // What could not be shown behind the last entry is counted by the next page.
    if listing.next.is_some() {
        gaps = before;
    }
    listing.unnamed = gaps.unnamed;
    listing.unreadable = gaps.unreadable;
    listing.too_deep = gaps.too_deep;
    Ok(listing)
}

/// What a walk visits, from what a caller asks for.
pub(super) fn choice(root: &Root, depth: usize, hidden: bool, ignored: bool, include: &[String]) -> Result<Choice, Fault> {
    let wrong = |why: &str| root.fault(Code::Invalid, "", why);
    if include.len() > GLOBS_MAX {
        return Err(wrong("more than 100 globs"));
    }
    let include = if include.is_empty() { None } else { Some(withheld::set(include, false).map_err(|why| wrong(&why))?) };
    Ok(Choice { depth: depth.clamp(1, DEPTH_MAX), hidden, ignored, include })
}
