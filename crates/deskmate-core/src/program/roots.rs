//! What a program narrows its own job to. The roots in force hold in any case; what a program names can only be less.

use std::collections::BTreeMap;

use super::kinds::Kind;
use crate::call::Cx;
use crate::limits::PROGRAM_ROOTS_MAX;
use crate::workspace::{in_trash, is_root, within};
use crate::{Error, Result};

/// Parameters that name a place.
const PLACES: [&str; 4] = ["root", "path", "restore_to", "workspace_root"];
/// Kinds that look in a folder, and take the first one that is allowed where none is named.
const IN_FOLDER: [&str; 3] = ["scan_index", "list_files", "organize_plan"];

/// The parameters of a job within the folders that it is narrowed to. Nothing named is no narrowing.
pub(super) fn narrowed(cx: &mut Cx<'_, '_>, kind: &Kind, allowed: &[String], params: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let mut params = params.clone();
    if allowed.len() > PROGRAM_ROOTS_MAX {
        return Err(Error::invalid("allowed_roots", format!("must be at most {PROGRAM_ROOTS_MAX}")));
    }
    for root in allowed {
        within(cx, "allowed_roots", root, root).map_err(|_| {
            Error::forbidden("allowed_roots names a folder that is not open here").hint("the folders are set in Deskmate; a job can only be narrowed to less")
        })?;
    }
    let Some(first) = allowed.first() else { return Ok(params) };
    if kind.name == "search_past_actions" {
        for root in allowed {
            if !is_root(cx, "allowed_roots", root)? {
                let why = "names a folder beneath a root: the record tells of roots, so a search of it is narrowed to whole ones";
                return Err(Error::invalid("allowed_roots", why));
            }
        }
    }
    let folders = params.contains_key("read") || params.contains_key("write");
    if (IN_FOLDER.contains(&kind.name) || folders) && !params.contains_key("root") {
        params.insert("root".to_owned(), first.clone());
    }
    // The path of something in the trash says itself in which root that is, unless it is a name alone.
    let trash = params.get("trash_item_path").and_then(|path| in_trash(path)).map(|(root, _)| root.to_owned()).filter(|root| !root.is_empty());
    if kind.name == "restore" && trash.is_none() && !params.contains_key("root") && !params.contains_key("workspace_root") {
        params.insert("workspace_root".to_owned(), first.clone());
    }
    let places = params.iter().map(|(name, named)| (name.as_str(), named)).filter(|(name, _)| PLACES.contains(name));
    for (name, named) in places.chain(trash.iter().map(|root| ("trash_item_path", root))) {
        let mut inside = false;
        for root in allowed {
            inside |= within(cx, name, root, named)?;
        }
        if !inside {
            return Err(Error::forbidden(format!("{name} is not beneath the folders that this job is narrowed to")).hint("allowed_roots names them"));
        }
    }
    Ok(params)
}
