//! A folder drawn as a tree, to show its shape: in pages that are, put together, the whole of it.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::identity::Kind;
use super::list::choice;
use super::path;
use super::root::Root;
use super::walk::{Gaps, Visit, walk};
use super::watch::Watch;

/// What to draw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeSpec {
    /// The folder; empty for the root.
    pub path: String,
    /// Levels of folders: 1 for the folder's own entries.
    pub depth: usize,
    /// Also names that begin with a dot.
    pub hidden: bool,
    /// Also what ignore files leave out, and folders of version control.
    pub ignored: bool,
    /// Where the last page ended (`next` of its answer): a path beneath the folder.
    pub after: Option<String>,
    /// Lines on this page.
    pub limit: usize,
    /// Bytes on this page; one line there is always.
    pub bytes: usize,
}

impl Default for TreeSpec {
    fn default() -> Self {
        Self { path: String::new(), depth: 3, hidden: false, ignored: false, after: None, limit: 500, bytes: 400 * 1024 }
    }
}

/// A page of a tree: depth first, names in the order of their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// One name in each line, two spaces deeper for each folder.
    pub text: String,
    /// The folder that the first line lies in; none if there is no line.
    pub begins_in: Option<String>,
    /// Set if more follow: the `after` of the next page.
    pub next: Option<String>,
    /// Names on the way that are not UTF-8, folders that could not be read or lie too deep.
    pub left_out: u64,
}

/// Draws a page of a tree.
pub fn tree(root: &Root, spec: &TreeSpec, watch: &Watch<'_>) -> Result<Tree, Fault> {
    let (_, place) = root.look_into(root.path(&spec.path)?)?;
    let after = spec.after.as_deref().map(|after| path::join(place.as_str(), after));
    let choice = choice(root, spec.depth, spec.hidden, spec.ignored, &[])?;
    let (mut tree, mut lines, mut last, mut before) = (Tree::default(), 0, String::new(), Gaps::default());
    let mut gaps = walk(root, &spec.path, after.as_deref(), &choice, watch, &mut |visit| {
        let inner = visit.path.get(place.as_str().len()..).unwrap_or_default().trim_start_matches('/');
        let line = line(&visit, inner.matches('/').count());
        if lines == spec.limit.max(1) || (lines > 0 && tree.text.len() + line.len() > spec.bytes) {
            tree.next = Some(std::mem::take(&mut last));
            return ControlFlow::Break(());
        }
        if lines == 0 {
            tree.begins_in = path::split(visit.path).map(|(folder, _)| folder.to_owned());
        }
        tree.text.push_str(&line);
        inner.clone_into(&mut last);
        (lines, before) = (lines + 1, visit.gaps);
        ControlFlow::Continue(())
    })?;
    // What could not be shown behind the last line is counted by the next page.
    if tree.next.is_some() {
        gaps = before;
    }
    tree.left_out = gaps.count();
    Ok(tree)
}

/// A name with signs that steer a terminal is written with those in words, so that none looks like another line.
fn line(visit: &Visit<'_>, depth: usize) -> String {
    let name = visit.name.to_str().unwrap_or_default();
    let name: String = name.chars().flat_map(|one| if one.is_control() { one.escape_default().collect() } else { vec![one] }).collect();
    let end = match visit.identity.kind {
        Kind::Folder => "/".to_owned(),
        Kind::Link => "@".to_owned(),
        Kind::File => format!("  {}", visit.identity.size),
        Kind::Other => "?".to_owned(),
    };
    format!("{}{name}{end}\n", "  ".repeat(depth))
}
