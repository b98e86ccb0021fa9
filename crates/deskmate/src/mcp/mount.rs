//! Which toolsets an endpoint mounts, and what follows from that. It is worked out once per choice and then shared.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use deskmate_core::call::Toolset;
use deskmate_core::{Error, Result};

use super::handler::Endpoint;
use crate::app::App;

/// The toolsets that agents use, in the order in which they are offered.
pub(crate) const MOUNTABLE: &[Toolset] = &[Toolset::Bridge, Toolset::Cowork, Toolset::Workspace];

/// Toolsets that are mounted only where somebody names them: these are for clients' hooks, and no model needs them.
const NAMED_ONLY: &[Toolset] = &[Toolset::Hook];

/// Toolsets that are announced and not there yet. Naming one is no mistake, so it only gets a note.
const PLANNED: &[&str] = &["agents", "board", "calendar", "guard", "vault", "transcripts", "whatsapp", "gateway"];

/// A choice of toolsets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mount {
    /// The toolsets, each once, in the order of [`MOUNTABLE`].
    pub(crate) toolsets: Vec<Toolset>,
    /// Whether everything that changes something is left out.
    pub(crate) read_only: bool,
}

impl Mount {
    /// Every toolset that agents use.
    pub(crate) fn all(read_only: bool) -> Self {
        Self { toolsets: MOUNTABLE.to_vec(), read_only }
    }

    /// The named toolsets, and notes about those that are not there yet. No name at all means every toolset.
    pub(crate) fn named<'n>(names: impl IntoIterator<Item = &'n str>, read_only: bool) -> Result<(Self, Vec<String>)> {
        let names: Vec<&str> = names.into_iter().map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Ok((Self::all(read_only), Vec::new()));
        }
        let all = || MOUNTABLE.iter().chain(NAMED_ONLY);
        let known = |name: &str| all().any(|toolset| toolset.name() == name);
        if let Some(unknown) = names.iter().find(|name| !known(name) && !PLANNED.contains(name)) {
            return Err(Error::not_found(format!("there is no toolset {unknown:?}")).hint(format!("known: {}", known_names())));
        }
        let toolsets: Vec<Toolset> = all().copied().filter(|toolset| names.contains(&toolset.name())).collect();
        if toolsets.is_empty() {
            return Err(Error::not_found(format!("none of these toolsets is there yet: {}", names.join(", "))).hint(format!("known: {}", known_names())));
        }
        let notes = names.iter().filter(|name| !known(name)).map(|name| format!("the toolset {name} is planned and not there yet; going on without it"));
        Ok((Self { toolsets, read_only }, notes.collect()))
    }
}

fn known_names() -> String {
    let names: Vec<&str> = MOUNTABLE.iter().chain(NAMED_ONLY).map(|toolset| toolset.name()).collect();
    names.join(", ")
}

/// The endpoints that were asked for so far, each made once.
#[derive(Clone)]
pub(crate) struct Shelf {
    app: App,
    made: Arc<Mutex<HashMap<Mount, Arc<Endpoint>>>>,
}

impl Shelf {
    pub(crate) fn new(app: App) -> Self {
        Self { app, made: Arc::default() }
    }

    /// The endpoint of a choice of toolsets. There are few choices, so none is ever dropped.
    pub(crate) fn endpoint(&self, mount: &Mount) -> Arc<Endpoint> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = made.get(mount) {
            return Arc::clone(endpoint);
        }
        let endpoint = Arc::new(Endpoint::new(self.app.clone(), mount.clone()));
        made.insert(mount.clone(), Arc::clone(&endpoint));
        endpoint
    }

    /// The running desk.
    pub(crate) fn app(&self) -> &App {
        &self.app
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_toolsets_get_a_note_and_unknown_ones_are_refused() {
        let (mount, notes) = Mount::named(["agents", "cowork", "bridge"], false).unwrap();
        assert_eq!(mount.toolsets, [Toolset::Bridge, Toolset::Cowork]);
        assert_eq!(notes.len(), 1);
        assert_eq!(Mount::named([""], true).unwrap().0, Mount::all(true));
        assert!(Mount::named(["bridge", "brigde"], false).unwrap_err().to_string().contains("brigde"));
        assert!(Mount::named(["agents"], false).is_err());
        assert_eq!(Mount::named(["hook"], false).unwrap().0.toolsets, [Toolset::Hook]);
        assert!(!Mount::all(false).toolsets.contains(&Toolset::Hook), "no model is offered what hooks ask");
        // The desk's own operations are for people and their programs.
        assert!(Mount::named(["desk"], false).is_err());
    }
}
