//! Which toolsets an endpoint mounts, and what follows from that. It is worked out once per choice and then shared.

use std::sync::{Arc, Mutex, PoisonError};

use deskmate_core::call::{Actor, Surface, Toolset};
use deskmate_core::{Error, Result, gateway};

use super::handler::Endpoint;
use crate::app::App;

/// The toolsets that agents use, in the order in which they are offered.
pub(crate) const MOUNTABLE: &[Toolset] = &[Toolset::Bridge, Toolset::Cowork, Toolset::Workspace, Toolset::Gateway, Toolset::Agents];

/// Toolsets that are mounted only where somebody names them: these are for clients' hooks, and no model needs them.
const NAMED_ONLY: &[Toolset] = &[Toolset::Hook];

/// Toolsets that are announced and not there yet. Naming one is no mistake, so it only gets a note.
const PLANNED: &[&str] = &["board", "calendar", "guard", "vault", "transcripts", "whatsapp"];

/// The servers behind the desk that an endpoint serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Servers {
    /// None.
    #[default]
    None,
    /// Every one that is served, each tool with its server's name before it.
    All,
    /// These, in the same way.
    Named(Vec<String>),
    /// One alone, with the plain names of its tools, and everything else that it offers.
    One(String),
}

/// A choice of toolsets, and of servers behind the desk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mount {
    /// The toolsets, each once, in the order of [`MOUNTABLE`].
    pub(crate) toolsets: Vec<Toolset>,
    /// The servers.
    pub(crate) servers: Servers,
    /// Whether everything that changes something is left out. What tools of other servers change is not known, so none is there.
    pub(crate) read_only: bool,
}

impl Mount {
    /// Every toolset that agents use, and every server.
    pub(crate) fn all(read_only: bool) -> Self {
        Self { toolsets: MOUNTABLE.to_vec(), servers: if read_only { Servers::None } else { Servers::All }, read_only }
    }

    /// The named toolsets and servers, of those that are served, and notes about those that are not there yet. No name at all
    /// means everything.
    pub(crate) fn named<'n>(names: impl IntoIterator<Item = &'n str>, read_only: bool, served: &[String]) -> Result<(Self, Vec<String>)> {
        let names: Vec<&str> = names.into_iter().map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Ok((Self::all(read_only), Vec::new()));
        }
        let all = || MOUNTABLE.iter().chain(NAMED_ONLY);
        let known = |name: &str| all().any(|toolset| toolset.name() == name);
        let behind: Vec<String> = served.iter().filter(|server| names.contains(&server.as_str())).cloned().collect();
        let is_behind = |name: &str| behind.iter().any(|server| server == name);
        if let Some(unknown) = names.iter().find(|name| !known(name) && !PLANNED.contains(name) && !is_behind(name)) {
            return Err(Error::not_found(format!("there is no toolset {unknown:?}")).hint(format!("known: {}", known_names(served))));
        }
        let toolsets: Vec<Toolset> = all().copied().filter(|toolset| names.contains(&toolset.name())).collect();
        if toolsets.is_empty() && behind.is_empty() {
            return Err(Error::not_found(format!("none of these toolsets is there yet: {}", names.join(", "))).hint(format!("known: {}", known_names(served))));
        }
        let servers = match (toolsets.as_slice(), behind.as_slice()) {
            _ if read_only => Servers::None,
            (all, _) if all.contains(&Toolset::Gateway) => Servers::All,
            (_, []) => Servers::None,
            ([], [one]) => Servers::One(one.clone()),
            _ => Servers::Named(behind.clone()),
        };
        let missing = names.iter().filter(|name| !known(name) && !is_behind(name));
        let notes = missing.map(|name| format!("the toolset {name} is planned and not there yet; going on without it"));
        Ok((Self { toolsets, servers, read_only }, notes.collect()))
    }

    /// Whether a name can only be that of a server behind the desk.
    pub(crate) fn is_server(name: &str) -> bool {
        !name.is_empty() && !PLANNED.contains(&name) && !MOUNTABLE.iter().chain(NAMED_ONLY).any(|toolset| toolset.name() == name)
    }
}

fn known_names(served: &[String]) -> String {
    let names: Vec<&str> = MOUNTABLE.iter().chain(NAMED_ONLY).map(|toolset| toolset.name()).chain(served.iter().map(String::as_str)).collect();
    names.join(", ")
}
/// How many choices are kept ready. Whoever names servers one by one makes a new choice with each set of them.
const KEPT_MAX: usize = 64;

/// What was made for the choices that were asked for last, each made once while it is kept. Cheap to clone.
pub(crate) struct Kept<T>(Arc<Mutex<Vec<(Mount, T)>>>);

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> Kept<T> {
    /// What there is for a choice, or what is made for it now, in the place of what nobody asked for the longest.
    pub(crate) fn get(&self, mount: &Mount, make: impl FnOnce() -> T) -> T {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().position(|(own, _)| own == mount).map(|at| kept.remove(at).1);
        let value = found.unwrap_or_else(make);
        if kept.len() >= KEPT_MAX {
            kept.remove(0);
        }
        kept.push((mount.clone(), value.clone()));
        value
    }
}

/// The endpoints that were asked for last.
#[derive(Clone)]
pub(crate) struct Shelf {
    app: App,
    made: Kept<Arc<Endpoint>>,
    served: Arc<Mutex<Served>>,
}

/// The servers behind the desk as they were last looked up, and which state of the settings that was. A server that was taken away
/// since is refused by the call itself.
#[derive(Default)]
struct Served {
    state: u64,
    names: Vec<String>,
}

impl Shelf {
    pub(crate) fn new(app: App) -> Self {
        Self { app, made: Kept::default(), served: Arc::default() }
    }

    /// The choice that some names make. The settings in force are looked at only where a name may be that of a server that was not
    /// there when they were last looked at.
    pub(crate) async fn choose(&self, names: Vec<String>, read_only: bool) -> Result<(Mount, Vec<String>)> {
        let servers: Vec<&str> = names.iter().map(|name| name.trim()).filter(|name| Mount::is_server(name)).collect();
        let served = if servers.is_empty() { Vec::new() } else { self.served(&servers).await? };
        Mount::named(names.iter().map(String::as_str), read_only, &served)
    }

    /// The servers behind the desk: these, where they are known already, or all.
    async fn served(&self, wanted: &[&str]) -> Result<Vec<String>> {
        let state = self.app.gateway.state();
        {
            let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
            if served.state == state && wanted.iter().all(|name| served.names.iter().any(|known| known == name)) {
                return Ok(served.names.clone());
            }
        }
        let desk = self.app.desk.clone();
        let all = self.app.desk.db.read(move |tx| gateway::served(&mut desk.cx(tx, Actor::system(), Surface::System)));
        let names: Vec<String> = all.await?.into_iter().map(|mount| mount.name).collect();
        *self.served.lock().unwrap_or_else(PoisonError::into_inner) = Served { state, names: names.clone() };
        Ok(names)
    }

    /// The endpoint of a choice of toolsets.
    pub(crate) fn endpoint(&self, mount: &Mount) -> Arc<Endpoint> {
        self.made.get(mount, || Arc::new(Endpoint::new(self.app.clone(), mount.clone())))
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
        let (mount, notes) = Mount::named(["board", "cowork", "bridge"], false, &[]).unwrap();
        assert_eq!(mount.toolsets, [Toolset::Bridge, Toolset::Cowork]);
        assert_eq!(notes.len(), 1);
        assert_eq!(Mount::named([""], true, &[]).unwrap().0, Mount::all(true));
        assert!(Mount::named(["bridge", "brigde"], false, &[]).unwrap_err().to_string().contains("brigde"));
        assert!(Mount::named(["board"], false, &[]).is_err());
        assert_eq!(Mount::named(["hook"], false, &[]).unwrap().0.toolsets, [Toolset::Hook]);
        assert!(!Mount::all(false).toolsets.contains(&Toolset::Hook), "no model is offered what hooks ask");
        // The desk's own operations are for people and their programs.
        assert!(Mount::named(["desk"], false, &[]).is_err());
    }

    #[test]
    fn only_the_choices_that_were_asked_for_last_are_kept() {
        let kept = Kept::default();
        let mount = |name: usize| Mount { toolsets: Vec::new(), servers: Servers::One(name.to_string()), read_only: false };
        let made = std::cell::Cell::new(0);
        let get = |name: usize| {
            kept.get(&mount(name), || {
                made.set(made.get() + 1);
                name
            })
        };
        for name in 0..KEPT_MAX {
            assert_eq!(get(name), name);
        }
        assert_eq!((get(0), made.get()), (0, KEPT_MAX), "what is kept is not made again");
        for name in KEPT_MAX..10 * KEPT_MAX {
            assert_eq!((get(name), get(0)), (name, 0));
        }
        assert_eq!(made.get(), 10 * KEPT_MAX, "and what is asked for stays");
        assert_eq!(kept.0.lock().unwrap().len(), KEPT_MAX);
        get(1);
        assert_eq!(made.get(), 10 * KEPT_MAX + 1, "what nobody asked for is made anew");
    }

    #[test]
    fn a_server_alone_keeps_its_names() {
        let served = ["mail".to_owned(), "files".to_owned()];
        let servers = |names: &[&str]| Mount::named(names.iter().copied(), false, &served).map(|(mount, _)| mount.servers);
        assert_eq!(servers(&["mail"]).unwrap(), Servers::One("mail".into()));
        assert_eq!(servers(&["mail", "files"]).unwrap(), Servers::Named(served.to_vec()));
        assert_eq!(servers(&["cowork", "mail"]).unwrap(), Servers::Named(vec!["mail".into()]));
        assert_eq!(servers(&["gateway"]).unwrap(), Servers::All);
        assert_eq!(servers(&["cowork"]).unwrap(), Servers::None);
        assert!(servers(&["crm"]).is_err());
        assert_eq!(Mount::named(["mail"], true, &served).unwrap().0.servers, Servers::None, "nobody knows what its tools change");
    }
}
