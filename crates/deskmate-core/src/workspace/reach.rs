//! What a client's own roots leave of the folders that are open. They are compared as whole paths, part by part; what is opened
//! is found by handle beneath the desk's root, and must lie in what is left, links or not.

use std::collections::BTreeSet;

use super::place::{join, lies_in};
use super::root::{self, Root};
use crate::call::Cx;
use crate::{Result, policy};

/// How much of a root a caller reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All of it.
    Whole,
    /// What lies in these folders, relative to it; nothing if there is none.
    Parts(Vec<String>),
}

impl Reach {
    /// What the caller's client leaves of a root.
    pub(super) fn of(cx: &Cx<'_, '_>, root: &Root) -> Self {
        let Some(folders) = &cx.within else { return Self::Whole };
        let own = root.path.trim_end_matches('/');
        if folders.iter().any(|folder| lies_in(own, folder.trim_end_matches('/'))) {
            return Self::Whole;
        }
        let mut parts: Vec<String> =
            folders.iter().filter_map(|folder| folder.trim_end_matches('/').strip_prefix(own)?.strip_prefix('/').map(str::to_owned)).collect();
        parts.sort();
        parts.dedup();
        Self::Parts(parts)
    }
}

/// Whether the roots that clients name narrow their tools.
pub fn heeds_client_roots(cx: &mut Cx<'_, '_>) -> Result<bool> {
    Ok(policy::current(cx)?.settings("").workspace.client_roots)
}

/// What a caller reaches, as callers name it.
pub(super) fn names(cx: &mut Cx<'_, '_>) -> Result<Vec<String>> {
    let roots = root::all(cx)?;
    let named = |root: Root| match Reach::of(cx, &root) {
        Reach::Whole => vec![root.name],
        Reach::Parts(parts) => parts.iter().map(|part| join(&root.name, part)).collect(),
    };
    Ok(roots.into_iter().flat_map(named).collect())
}

/// The roots of which a caller reaches anything, or `None` if nothing narrows it. A folder lies in the innermost root around it.
pub(super) fn roots(cx: &mut Cx<'_, '_>) -> Result<Option<BTreeSet<String>>> {
    let Some(folders) = cx.within.clone() else { return Ok(None) };
    let (roots, mut reached) = (root::all(cx)?, BTreeSet::new());
    for folder in folders.iter().map(|folder| folder.trim_end_matches('/')) {
        let own = |root: &&Root| root.path.trim_end_matches('/').len();
        let around = roots.iter().filter(|root| lies_in(folder, root.path.trim_end_matches('/'))).max_by_key(own);
        let beneath = roots.iter().filter(|root| lies_in(root.path.trim_end_matches('/'), folder));
        reached.extend(beneath.chain(around).map(|root| root.name.clone()));
    }
    Ok(Some(reached))
}
