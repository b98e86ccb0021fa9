//! Whether steps can be taken back as things are now, without doing it: for whoever decides about that. Steps are looked at in
//! the order in which they would be taken back, and each as if those before it had been.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::ops::Bound;

use rustix::io::Errno;

use super::super::identity::{Identity, Kind};
use super::super::path::{self, RelPath, TRASH};
use super::super::root::Root;
use super::super::sys;
use super::copy::look_closely;
use super::spot::Spot;
use super::step::Done;

/// What would be elsewhere by now.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Now {
    /// What lies at this path today.
    From(String),
    /// Nothing.
    Gone,
}

/// The way back, as far as it was looked at.
#[derive(Debug, Default)]
pub struct Back {
    moved: BTreeMap<String, Now>,
}

impl Back {
    /// Whether this can be taken back, after all that was looked at before, and what whoever decides should know then; why not, if it
    /// cannot.
    pub fn check(&mut self, root: &Root, done: &Done) -> Result<Option<String>, String> {
        let mut edited = false;
        match done {
            Done::Moved { from, to, identity, made } => {
                self.is_free(root, from)?;
                let real = self.is_still(root, to, identity, &mut edited)?;
                self.goes(to, from, real);
                self.take_back(root, made);
            }
            Done::Trashed { from, id, identity, .. } => {
                self.is_free(root, from)?;
                let kept = in_trash(id);
                let real = self.is_still(root, &kept, identity, &mut edited).map_err(|why| if why == NOT_THERE { NOT_KEPT.to_owned() } else { why })?;
                self.goes(&kept, from, real);
            }
            Done::Restored { id, to, identity, made, .. } => {
                let kept = in_trash(id);
                self.is_free(root, &kept)?;
                let real = self.is_still(root, to, identity, &mut edited)?;
                self.goes(to, &kept, real);
                self.take_back(root, made);
            }
            Done::Copied { to, identity, made } | Done::Written { to, identity, made } => {
                self.is_unchanged(root, to, identity)?;
                self.goes_away(to);
                self.take_back(root, made);
            }
            Done::Replaced { path, kept, old, new } => {
                self.is_unchanged(root, path, new)?;
                let kept = in_trash(kept);
                let real = self.is_still(root, &kept, old, &mut edited).map_err(|why| if why == NOT_THERE { NOT_KEPT.to_owned() } else { why })?;
                self.goes(&kept, path, real);
            }
            Done::FolderMade { path, made } => {
                // One that is gone by now is taken back already.
                if self.look(root, path)?.is_some() {
                    self.is_empty(root, path)?;
                    self.goes_away(path);
                }
                self.take_back(root, made);
            }
            Done::Purged { .. } => return Err("what was deleted for ever is gone".to_owned()),
        }
        Ok(edited.then(|| EDITED.to_owned()))
    }

    /// Where that lies today which would be at a path by then; `None` if nothing would be.
    fn real(&self, path: &str) -> Option<String> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let mut ends: Vec<usize> = ends.collect();
        // The innermost word counts.
        while let Some(end) = ends.pop() {
            let folder = path.get(..end).unwrap_or_default();
            match self.moved.get(folder) {
                None => {}
                Some(Now::Gone) => return None,
                Some(Now::From(real)) => return Some(format!("{real}{}", path.get(end..).unwrap_or_default())),
            }
        }
        Some(path.to_owned())
    }

    fn look(&self, root: &Root, path: &str) -> Result<Option<(String, Spot, Identity)>, String> {
        let Some(real) = self.real(path) else { return Ok(None) };
        let Some(spot) = spot(root, &real)? else { return Ok(None) };
        match spot.look() {
            Ok(found) => Ok(Some((real, spot, found))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(root.errno(path, errno).message),
        }
    }

    fn is_free(&self, root: &Root, path: &str) -> Result<(), String> {
        match self.look(root, path)? {
            None => Ok(()),
            Some(_) => Err(format!("something else is at {} by now", place(path))),
        }
    }

    /// It is the thing that was left there, whatever happened to it since; whether something did is told.
    fn is_still(&self, root: &Root, path: &str, meant: &Identity, edited: &mut bool) -> Result<String, String> {
        let Some((real, spot, found)) = self.look(root, path)? else { return Err(NOT_THERE.to_owned()) };
        let like = (found.kind, found.size, found.mode, found.mtime_ns) == (meant.kind, meant.size, meant.mode, meant.mtime_ns);
        let is_it =
            found.is_same_thing(meant) || (like && meant.sha256.is_some() && look_closely(root, &spot).is_ok_and(|closely| closely.sha256 == meant.sha256));
        *edited = found.is_same_thing(meant) && !meant.is_unchanged(&found);
        if is_it { Ok(real) } else { Err(format!("something else is at {} by now", place(path))) }
    }

    /// It is the thing that was left there, and nobody changed it.
    fn is_unchanged(&self, root: &Root, path: &str, meant: &Identity) -> Result<(), String> {
        match self.look(root, path)? {
            None => Err(NOT_THERE.to_owned()),
            Some((_, _, found)) if meant.is_unchanged(&found) => Ok(()),
            Some(_) => Err("it was changed since".to_owned()),
        }
    }

    /// It is a folder in which nothing would be left.
    fn is_empty(&self, root: &Root, path: &str) -> Result<(), String> {
        let Some((_, spot, found)) = self.look(root, path)? else { return Err(NOT_THERE.to_owned()) };
        if found.kind != Kind::Folder {
            return Err(format!("something else is at {} by now", place(path)));
        }
        let told = |errno| root.errno(path, errno).message;
        let folder = sys::open_beneath(spot.folder(), &spot.name, sys::FOLDER).map_err(told)?;
        let mut left = self.inside(path).any(|(_, now)| matches!(now, Now::From(_)));
        sys::each_name(std::os::fd::AsFd::as_fd(&folder), |name| {
            let inner = path::join(path, &name.to_string_lossy());
            left = left || self.real(&inner).is_some();
            !left
        })
        .map_err(told)?;
        if left { Err("the folder is not empty".to_owned()) } else { Ok(()) }
    }

    /// Folders that were made on the way go, too, as far as nothing would be left in them.
    fn take_back(&mut self, root: &Root, made: &[String]) {
        for folder in made.iter().rev() {
            if self.is_empty(root, folder).is_ok() {
                self.goes_away(folder);
            }
        }
    }

    /// All that was said of what lies in a folder.
    fn inside(&self, folder: &str) -> Range<'_, String, Now> {
        // `0` comes right behind `/`.
        self.moved.range::<str, _>((Bound::Included(format!("{folder}/").as_str()), Bound::Excluded(format!("{folder}0").as_str())))
    }

    fn goes(&mut self, from: &str, to: &str, real: String) {
        let inside: Vec<(String, Now)> = self.inside(from).map(|(path, now)| (path.clone(), now.clone())).collect();
        self.goes_away(from);
        for (path, now) in inside {
            self.moved.insert(format!("{to}{}", path.get(from.len()..).unwrap_or_default()), now);
        }
        self.moved.insert(to.to_owned(), Now::From(real));
    }

    fn goes_away(&mut self, path: &str) {
        let inside: Vec<String> = self.inside(path).map(|(path, _)| path.clone()).collect();
        for path in inside {
            self.moved.remove(&path);
        }
        self.moved.insert(path.to_owned(), Now::Gone);
    }
}

const EDITED: &str = "it was changed since, and goes back as it is now";
const NOT_THERE: &str = "it is not there any more";
const NOT_KEPT: &str = "it is not in the trash any more";

fn in_trash(id: &str) -> String {
    format!("{TRASH}/files/{id}")
}

/// A path as people read it.
fn place(path: &str) -> &str {
    if path::in_trash(path) { "its place in the trash" } else { path }
}

/// The place of something that is there today; `None` if a folder on the way is not.
fn spot(root: &Root, real: &str) -> Result<Option<Spot>, String> {
    let wrong = |why: &str| root.fault(super::super::fault::Code::Invalid, real, why).message;
    let path = RelPath::parse(real).map_err(wrong)?;
    if !path::in_trash(real) {
        root.changeable(real).map_err(|fault| fault.message)?;
    }
    let Some((folder, name)) = path.split() else { return Err(wrong("the root itself can't be changed")) };
    match sys::open_beneath(root.folder(), folder, sys::FOLDER) {
        Ok(handle) => Ok(Some(Spot::new(handle, name, real))),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(root.errno(folder, errno).message),
    }
}
