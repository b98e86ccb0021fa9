//! A folder as a tree, to show its shape in one answer.

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::identity::{Entry, Kind};
use super::list::{ListSpec, list};
use super::path;
use super::root::Root;
use super::watch::Watch;

/// A name in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The name alone.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Length in bytes, of a file.
    pub size: u64,
    /// What lies in a folder, as deep as was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

/// A tree, and whether all of it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// What lies in the folder.
    pub children: Vec<Node>,
    /// Set if the limit was reached; the tree is whole up to here in depth-first order.
    pub truncated: bool,
    /// Names that are not UTF-8, folders that could not be read or lie too deep.
    pub left_out: u64,
}

/// Reads a tree: a listing with depth, nested. `after` of the specification is not used.
pub fn tree(root: &Root, spec: &ListSpec, watch: &Watch<'_>) -> Result<Tree, Fault> {
    let listing = list(root, &ListSpec { after: None, ..spec.clone() }, watch)?;
    let base = listing.entries.first().and_then(|entry| path::split(&entry.path)).map_or(String::new(), |(folder, _)| folder.to_owned());
    // Entries chosen by a glob may lack their folders, so the first one does not tell where the tree begins.
    let base = if spec.include.is_empty() { base } else { root.look_into(root.path(&spec.path)?)?.1.as_str().to_owned() };
    let mut children = Vec::new();
    for entry in &listing.entries {
        let rest = entry.path.get(base.len()..).unwrap_or_default().trim_start_matches('/');
        add(&mut children, rest, entry);
    }
    Ok(Tree { children, truncated: listing.next.is_some(), left_out: listing.unnamed + listing.unreadable + listing.too_deep })
}

/// Entries come depth first, so the folder that a path lies in is always the last one of its level, if it is there.
fn add(level: &mut Vec<Node>, rest: &str, entry: &Entry) {
    let Some((folder, inner)) = rest.split_once('/') else {
        let (kind, size) = (entry.identity.kind, entry.identity.size);
        let size = if kind == Kind::File { size } else { 0 };
        level.push(Node { name: rest.to_owned(), kind, size, children: Vec::new() });
        return;
    };
    if level.last().is_none_or(|last| last.name != folder) {
        level.push(Node { name: folder.to_owned(), kind: Kind::Folder, size: 0, children: Vec::new() });
    }
    if let Some(last) = level.last_mut() {
        add(&mut last.children, inner, entry);
    }
}
