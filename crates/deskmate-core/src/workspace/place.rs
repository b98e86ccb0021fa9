//! Places: how callers name a file or a folder. `notes/2026/plan.md` is the file `2026/plan.md` beneath the root `notes`.
//! The whole path of something beneath a root is understood as well, because clients of earlier servers send those; it is
//! only compared with the roots' paths as text, and what is opened is always found by handle beneath the root.

use super::reach::Reach;
use super::root::{self, Root};
use crate::call::Cx;
use crate::limits::{PATH_BYTES_MAX, PATH_CURSOR_BYTES_MAX, PATH_PARTS_MAX};
use crate::{Error, Result, check_text};

/// The longest name that file systems have.
const NAME_BYTES_MAX: usize = 255;

/// A file or a folder beneath a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) root: Root,
    /// Relative to the root with `/` between its parts; empty for the root itself.
    pub(super) path: String,
    /// The folders beneath the root that the caller's client narrows itself to; all of it if none is named.
    pub(super) within: Vec<String>,
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

/// Finds what a caller named. `None` is the only root there is, or the only folder that the caller's client reaches.
pub(super) fn find(cx: &mut Cx<'_, '_>, field: &str, named: Option<&str>) -> Result<Place> {
    let Some(named) = named else {
        let root = root::find(cx, None)?;
        let Reach::Parts(within) = Reach::of(cx, &root) else { return Ok(Place { root, path: String::new(), within: Vec::new() }) };
        return match within.as_slice() {
            [only] => Ok(Place { path: only.clone(), root, within }),
            _ => Err(outside(cx)?),
        };
    };
    check_text(field, named, PATH_BYTES_MAX)?;
    let (root, path) = if named.starts_with('/') || named.get(1..2) == Some(":") {
        beneath(cx, field, named)?
    } else {
        let named = named.trim_end_matches('/');
        let (name, path) = named.split_once('/').unwrap_or((named, ""));
        let path = relative(field, path)?;
        (root::find(cx, Some(name))?, path)
    };
    match Reach::of(cx, &root) {
        Reach::Whole => Ok(Place { root, path, within: Vec::new() }),
        Reach::Parts(within) if within.iter().any(|folder| lies_in(&path, folder)) => Ok(Place { root, path, within }),
        Reach::Parts(_) => Err(outside(cx)?),
    }
}

/// Finds a root as a whole, for what belongs to all of it, such as its trash.
pub(super) fn whole(cx: &mut Cx<'_, '_>, field: &str, named: Option<&str>) -> Result<Place> {
    let place = find(cx, field, named)?;
    if !place.within.is_empty() {
        return Err(outside(cx)?);
    }
    if place.path.is_empty() { Ok(place) } else { Err(Error::invalid(field, "names a folder beneath a root, and the trash is of all of it: name the root")) }
}

/// What is not within the folders that the caller's client names.
pub(super) fn outside(cx: &mut Cx<'_, '_>) -> Result<Error> {
    let reached = super::reach::names(cx)?;
    let hint = match reached.as_slice() {
        [] => "none of the folders that are open lies in them: start the client elsewhere, add a folder to its roots, or ask an owner for \
               `client_roots: false` under `workspace`"
            .to_owned(),
        names => format!("they leave: {}", names.join(", ")),
    };
    Ok(Error::forbidden("this is outside of the roots that your client names").hint(hint))
}

/// Whether a path is a folder or lies in it.
pub(super) fn lies_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| folder.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

/// Whether something lies in a folder or is that folder.
pub(crate) fn within(cx: &mut Cx<'_, '_>, field: &str, folder: &str, named: &str) -> Result<bool> {
    let (folder, place) = (find(cx, "allowed_roots", Some(folder))?, find(cx, field, Some(named))?);
    Ok(folder.root.name == place.root.name && lies_in(&place.path, &folder.path))
}

/// Whether something that a caller named is a root itself.
pub(crate) fn is_root(cx: &mut Cx<'_, '_>, field: &str, named: &str) -> Result<bool> {
    Ok(find(cx, field, Some(named))?.path.is_empty())
}

/// Where on the desk's machine something lies that a caller named.
pub(crate) fn whole_path(cx: &mut Cx<'_, '_>, field: &str, named: &str) -> Result<String> {
    let place = find(cx, field, Some(named))?;
    Ok(join(place.root.path.trim_end_matches('/'), &place.path))
}

/// The place of a whole path. The innermost root counts, because it may be the more guarded one.
fn beneath(cx: &mut Cx<'_, '_>, field: &str, named: &str) -> Result<(Root, String)> {
    let rest = |root: &Root| {
        let rest = named.strip_prefix(root.path.trim_end_matches('/'))?;
        if rest.is_empty() { Some(String::new()) } else { rest.strip_prefix('/').map(str::to_owned) }
    };
    let found = root::all(cx)?.into_iter().filter_map(|root| rest(&root).map(|rest| (root, rest))).min_by_key(|(_, rest)| rest.len());
    let Some((root, rest)) = found else {
        return Err(Error::not_found("this is not beneath a folder that is open to agents").hint("workspace_list_roots names those that are"));
    };
    Ok((root, relative(field, rest.trim_end_matches('/'))?))
}

/// The path behind which a page begins. It comes from a page before, so it may hold what no caller would write: a name with control
/// characters, and more folders.
pub(super) fn behind(cursor: &str) -> Result<String> {
    check_text("cursor", cursor, PATH_CURSOR_BYTES_MAX)?;
    let parts = parts(cursor);
    if parts.contains(&"..") || parts.iter().any(|part| part.len() > NAME_BYTES_MAX) { Err(no_cursor()) } else { Ok(parts.join("/")) }
}

/// What is no cursor.
pub(super) fn no_cursor() -> Error {
    Error::invalid("cursor", "is not one that the previous page gave")
}

fn parts(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !matches!(*part, "" | ".")).collect()
}

/// The one spelling of a relative path.
pub(super) fn relative(field: &str, path: &str) -> Result<String> {
    let bad = |why: &str| Error::invalid(field, format!("{why}; write the parts of the path with `/` between them"));
    if path.chars().any(char::is_control) {
        return Err(bad("it holds control characters"));
    }
    let parts = parts(path);
    if parts.contains(&"..") {
        return Err(bad("`..` leads up"));
    }
    if parts.len() > PATH_PARTS_MAX || parts.iter().any(|part| part.len() > NAME_BYTES_MAX) {
        return Err(bad("it is too deep, or a part of it too long"));
    }
    Ok(parts.join("/"))
}
