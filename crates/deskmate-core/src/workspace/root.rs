//! Roots: the folders in which agents may look around, and where plans may change something. Only what is in force names
//! them, so a root that is new, wider or less guarded waits for an owner like any other loosening.

use std::collections::BTreeSet;

use globset::Glob;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reach::Reach;
use crate::call::Cx;
use crate::limits::{NAME_CHARS_MAX, PATH_BYTES_MAX, ROOT_DENY_MAX, ROOTS_MAX};
use crate::{Error, Result, policy};

/// What may be done beneath a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RootAccess {
    /// Looking only.
    #[default]
    Read,
    /// Looking, and changing what a plan says.
    Write,
}

/// A folder that the operator named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// The name that callers use; they never see the path.
    pub name: String,
    /// The folder, as an absolute path on the machine that the desk runs on.
    pub path: String,
    /// What may be done beneath it; `read` if not given.
    #[serde(default)]
    pub access: RootAccess,
    /// Globs, relative to the root, of what is not there for anybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

impl Root {
    /// The domain in which its changes are judged and trust in it is earned.
    pub fn domain(&self) -> String {
        format!("files.{}", self.name)
    }

    /// Whether this gives agents no more than another root of the same name did.
    fn is_within(&self, was: &Self) -> bool {
        self.path == was.path && self.access <= was.access && was.deny.iter().all(|glob| self.deny.contains(glob))
    }

    fn problem(&self) -> Option<String> {
        let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-' || letter == '_';
        if self.name.is_empty() || self.name.len() > NAME_CHARS_MAX || !self.name.chars().all(letters) {
            return Some(format!("`{}` is no name of a root: write small letters, digits, - and _", self.name));
        }
        let windows = self.path.get(1..3).is_some_and(|rest| matches!(rest, ":\\" | ":/"));
        if !(self.path.starts_with('/') || windows) || self.path.len() > PATH_BYTES_MAX || self.path.chars().any(char::is_control) {
            return Some(format!("`{}` is not the whole path of a folder: write one that begins with /", self.path));
        }
        if self.path.trim_end_matches(['/', '\\']).len() < 3 || self.path.split(['/', '\\']).any(|part| part == "..") {
            return Some(format!("`{}` is the whole machine, or goes up: write the path of one folder", self.path));
        }
        if self.deny.len() > ROOT_DENY_MAX {
            return Some(format!("{} globs are too many: write at most {ROOT_DENY_MAX}", self.deny.len()));
        }
        self.deny.iter().find_map(|glob| {
            let wrong = glob.is_empty() || glob.len() > PATH_BYTES_MAX || glob.starts_with('/') || Glob::new(glob).is_err();
            wrong.then(|| format!("`{glob}` is not a glob relative to the root: write for example **/.env"))
        })
    }
}

/// What is wrong with a list of roots, and what to write.
pub(crate) fn problem(value: &Value) -> Option<String> {
    let Some(list) = value.as_array() else {
        return Some(format!("{value} is not a list: write for example [{{ name: notes, path: /home/me/notes, access: read }}]"));
    };
    if list.len() > ROOTS_MAX {
        return Some(format!("{} roots are too many: write at most {ROOTS_MAX}", list.len()));
    }
    let mut names = BTreeSet::new();
    list.iter().find_map(|entry| match Root::deserialize(entry) {
        Err(error) => Some(format!("{entry} is not a root ({error}): write {{ name: notes, path: /home/me/notes, access: read, deny: [] }}")),
        Ok(root) => {
            root.problem().or_else(|| (!names.insert(root.name.clone())).then(|| format!("there are two roots called `{}`: name them apart", root.name)))
        }
    })
}

/// Whether a list of roots gives agents no more than another one.
pub(crate) fn tightens(was: &Value, is: &Value) -> bool {
    let read = |value: &Value| Vec::<Root>::deserialize(value).ok();
    let (Some(was), Some(is)) = (read(was), read(is)) else { return false };
    is.iter().all(|root| was.iter().any(|before| before.name == root.name && root.is_within(before)))
}

/// The roots in force.
pub fn all(cx: &mut Cx<'_, '_>) -> Result<Vec<Root>> {
    Ok(policy::current(cx)?.settings("").workspace.roots.clone())
}

/// The root in force that has this name.
pub(super) fn root_named(cx: &mut Cx<'_, '_>, name: &str) -> Result<Option<Root>> {
    Ok(all(cx)?.into_iter().find(|root| root.name == name))
}

/// A root by its name. A caller that names none means the only one, of those that its client leaves.
pub(super) fn find(cx: &mut Cx<'_, '_>, name: Option<&str>) -> Result<Root> {
    let mut roots = all(cx)?;
    if name.is_none() && roots.len() > 1 {
        let left: Vec<Root> = roots.iter().filter(|root| Reach::of(cx, root) != Reach::Parts(Vec::new())).cloned().collect();
        roots = if left.is_empty() { roots } else { left };
    }
    let names = || roots.iter().map(|root| root.name.as_str()).collect::<Vec<_>>().join(", ");
    match (name, roots.as_slice()) {
        (_, []) => Err(Error::not_found("no folder is open to agents")
            .hint("an owner opens one on the Workspace page, with workspace_open_root, or under `workspace: roots:` in deskmate.yaml")),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(Error::invalid("root", format!("there are several: {}", names()))),
        (Some(name), _) => match roots.iter().find(|root| root.name == name) {
            Some(root) => Ok(root.clone()),
            None => Err(Error::not_found("there is no root of this name").hint(format!("there are: {}", names()))),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bad_roots_are_told_with_what_to_write() {
        assert_eq!(problem(&json!([])), None);
        assert_eq!(
            problem(&json!([{ "name": "notes", "path": "/srv/notes" }, { "name": "b", "path": "/srv/b", "access": "write", "deny": ["**/.env"] }])),
            None
        );
        for (bad, says) in [
            (json!("x"), "not a list"),
            (json!([{ "name": "a b", "path": "/srv/x" }]), "no name"),
            (json!([{ "name": "a", "path": "srv" }]), "begins with /"),
            (json!([{ "name": "a", "path": "" }]), "begins with /"),
            (json!([{ "name": "a", "path": "/" }]), "whole machine"),
            (json!([{ "name": "a", "path": "/srv/../etc" }]), "goes up"),
            (json!([{ "name": "a", "path": "/srv/x", "deny": ["["] }]), "not a glob"),
            (json!([{ "name": "a", "path": "/srv/x", "access": "all" }]), "not a root"),
            (json!([{ "name": "a", "path": "/srv/x", "root": 1 }]), "not a root"),
            (json!([{ "name": "a", "path": "/srv/x" }, { "name": "a", "path": "/srv/y" }]), "two roots"),
        ] {
            assert!(problem(&bad).is_some_and(|text| text.contains(says)), "{bad}: {:?}", problem(&bad));
        }
    }

    #[test]
    fn what_is_new_wider_or_less_guarded_loosens() {
        let root = |access: &str, deny: &[&str]| json!([{ "name": "a", "path": "/srv/a", "access": access, "deny": deny }]);
        assert!(tightens(&root("write", &[]), &root("read", &["**/.env"])));
        assert!(tightens(&root("write", &[]), &json!([])));
        assert!(!tightens(&root("read", &[]), &root("write", &[])));
        assert!(!tightens(&root("read", &["x"]), &root("read", &[])));
        assert!(!tightens(&json!([]), &root("read", &[])));
        assert!(!tightens(&root("read", &[]), &json!([{ "name": "a", "path": "/srv" }])));
    }
}
