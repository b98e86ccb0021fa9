//! Places: how callers name a file or a folder. `notes/2026/plan.md` is the file `2026/plan.md` beneath the root `notes`.
//! The whole path of something beneath a root is understood as well, because clients of earlier servers send those; it is
//! only compared with the roots' paths as text, and what is opened is always found by handle beneath the root.

use super::root::{self, Root};
use crate::call::Cx;
use crate::limits::{PATH_BYTES_MAX, PATH_PARTS_MAX};
use crate::{Error, Result, check_text};

/// A file or a folder beneath a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) root: Root,
    /// Relative to the root with `/` between its parts; empty for the root itself.
    pub(super) path: String,
}

impl Place {
    /// As callers name it.
    pub(super) fn name(&self) -> String {
        join(&self.root.name, &self.path)
    }
}

/// A path behind another one.
pub(super) fn join(before: &str, path: &str) -> String {
    match (before, path) {
        (before, "") => before.to_owned(),
        ("", path) => path.to_owned(),
        (before, path) => format!("{before}/{path}"),
    }
}

/// Finds what a caller named. `None` is the only root there is.
pub(super) fn find(cx: &mut Cx<'_, '_>, field: &str, named: Option<&str>) -> Result<Place> {
    let Some(named) = named else {
        return Ok(Place { root: root::find(cx, None)?, path: String::new() });
    };
    check_text(field, named, PATH_BYTES_MAX)?;
    if named.starts_with('/') || named.get(1..2) == Some(":") {
        return beneath(cx, field, named);
    }
    let named = named.trim_end_matches('/');
    let (name, path) = named.split_once('/').unwrap_or((named, ""));
    let path = relative(field, path)?;
    Ok(Place { root: root::find(cx, Some(name))?, path })
}

/// Whether something lies in a folder or is that folder.
pub(crate) fn within(cx: &mut Cx<'_, '_>, field: &str, folder: &str, named: &str) -> Result<bool> {
    let (folder, place) = (find(cx, "allowed_roots", Some(folder))?, find(cx, field, Some(named))?);
    let inside = place.path.strip_prefix(&folder.path).is_some_and(|rest| folder.path.is_empty() || rest.is_empty() || rest.starts_with('/'));
    Ok(folder.root.name == place.root.name && inside)
}

/// The place of a whole path. The innermost root counts, because it may be the more guarded one.
fn beneath(cx: &mut Cx<'_, '_>, field: &str, named: &str) -> Result<Place> {
    let rest = |root: &Root| {
        let rest = named.strip_prefix(root.path.trim_end_matches('/'))?;
        if rest.is_empty() { Some(String::new()) } else { rest.strip_prefix('/').map(str::to_owned) }
    };
    let found = root::all(cx)?.into_iter().filter_map(|root| rest(&root).map(|rest| (root, rest))).min_by_key(|(_, rest)| rest.len());
    let Some((root, rest)) = found else {
        return Err(Error::not_found("this is not beneath a folder that is open to agents").hint("workspace_list_roots names those that are"));
    };
    Ok(Place { root, path: relative(field, rest.trim_end_matches('/'))? })
}

/// The one spelling of a relative path.
pub(super) fn relative(field: &str, path: &str) -> Result<String> {
    let bad = |why: &str| Error::invalid(field, format!("{why}; write the parts of the path with `/` between them"));
    if path.chars().any(char::is_control) {
        return Err(bad("it holds control characters"));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return Err(bad("`..` leads up"));
    }
    if parts.len() > PATH_PARTS_MAX || parts.iter().any(|part| part.len() > 255) {
        return Err(bad("it is too deep, or a part of it too long"));
    }
    Ok(parts.join("/"))
}
