//! Opening and closing roots: a short way for owners to what the settings in force say of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::root::{Root, RootAccess};
use crate::call::Cx;
use crate::policy::{self, Document, draft};
use crate::{Error, Result};

/// Open a folder to agents, or change how far it is open. It is a setting like any other and stays until it is changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenRoot {
    /// The name that agents use; they never see the path. Small letters, digits, - and _.
    name: String,
    /// The folder, as a whole path on the machine that the desk runs on. For a root that is open already it may be left out.
    path: Option<String>,
    /// `read`: looking only. `write`: plans that a person approved may change it. `read` if not given.
    access: Option<RootAccess>,
    /// Globs, relative to the folder, of what is not there for anybody, such as `**/.env`; all of them, in place of those before. For a
    /// root that is open already they stay if not given.
    deny: Option<Vec<String>>,
    /// Refuse a name that is open already, rather than change it.
    #[serde(default)]
    new: bool,
}

/// The roots as they are now.
#[derive(Serialize, JsonSchema)]
pub(super) struct OpenRoots {
    /// By name.
    roots: Vec<Root>,
}

pub(super) fn open_root(cx: &mut Cx<'_, '_>, input: OpenRoot) -> Result<OpenRoots> {
    put(cx, |roots| {
        let known = roots.iter().position(|root| root.name == input.name);
        let was = known.and_then(|at| roots.get(at)).cloned();
        if input.new && was.is_some() {
            return Err(Error::conflict(format!("there is a root {} already", input.name)).hint("change that one, or take another name"));
        }
        let path = input.path.or_else(|| was.as_ref().map(|root| root.path.clone()));
        let root = Root {
            name: input.name,
            path: path.ok_or_else(|| Error::invalid("path", "is needed for a folder that is not open yet"))?,
            access: input.access.or_else(|| was.as_ref().map(|root| root.access)).unwrap_or_default(),
            deny: input.deny.or_else(|| was.map(|root| root.deny)).unwrap_or_default(),
        };
        match known.and_then(|at| roots.get_mut(at)) {
            Some(place) => *place = root,
            None => roots.push(root),
        }
        Ok(())
    })
}

/// Close a folder to agents. Nothing in it is touched; plans that wait for it can no longer be done.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CloseRoot {
    /// The root.
    name: String,
}

pub(super) fn close_root(cx: &mut Cx<'_, '_>, input: CloseRoot) -> Result<OpenRoots> {
    put(cx, |roots| {
        let before = roots.len();
        roots.retain(|root| root.name != input.name);
        if roots.len() == before { Err(Error::not_found(format!("there is no root {}", input.name))) } else { Ok(()) }
    })
}

/// Puts other roots in force, and leaves the rest of the settings as they are.
fn put(cx: &mut Cx<'_, '_>, change: impl FnOnce(&mut Vec<Root>) -> Result<()>) -> Result<OpenRoots> {
    let mut settings = policy::current(cx)?.settings("").workspace.clone();
    change(&mut settings.roots)?;
    let document = json!({ "workspace": settings }).to_string();
    let document = Document::parse_within(&document, policy::FILE_KEYS).map_err(|problems| draft::refused(&problems))?;
    draft::apply(cx, &document, false)?;
    Ok(OpenRoots { roots: settings.roots })
}
