//! A folder to try things in, with another beside it that nobody may touch.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::files::{Access, Entries, LeftOut, Move, OrganizeSpec, Organizer, Root, RootSpec};

pub(super) const AT: i64 = 1_700_000_000_000_000;

pub(super) struct Kit {
    whole: tempfile::TempDir,
    pub(super) root: Root,
}

impl Kit {
    pub(super) fn new() -> Self {
        Self::with(Access::Write, &[])
    }

    pub(super) fn with(access: Access, deny: &[&str]) -> Self {
        let whole = tempfile::tempdir().unwrap();
        fs::create_dir(whole.path().join("inside")).unwrap();
        fs::create_dir(whole.path().join("outside")).unwrap();
        fs::write(whole.path().join("outside/secret"), "OUTSIDE").unwrap();
        let root = open(&whole.path().join("inside"), access, deny);
        Self { whole, root }
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.whole.path().join("inside").join(path)
    }

    pub(super) fn outside(&self) -> PathBuf {
        self.whole.path().join("outside")
    }

    pub(super) fn put(&self, path: &str, text: &str) -> &Self {
        let place = self.at(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
        self
    }

    pub(super) fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.at(path)).unwrap();
        self
    }

    pub(super) fn link(&self, path: &str, text: impl AsRef<Path>) -> &Self {
        std::os::unix::fs::symlink(text, self.at(path)).unwrap();
        self
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.at(path)).ok()
    }

    pub(super) fn is_there(&self, path: &str) -> bool {
        fs::symlink_metadata(self.at(path)).is_ok()
    }

    /// Everything but the trash: kind, mode, time (not of folders), content.
    pub(super) fn picture(&self) -> Vec<String> {
        picture(&self.at(""))
    }
}

pub(super) fn open(path: &Path, access: Access, deny: &[&str]) -> Root {
    let deny = deny.iter().map(|glob| (*glob).to_owned()).collect();
    Root::open(&RootSpec { name: "desk".into(), path: path.into(), access, deny, own: Vec::new() }).unwrap()
}

pub(super) fn picture(base: &Path) -> Vec<String> {
    fn walk(base: &Path, folder: &Path, lines: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(base).unwrap().to_string_lossy().into_owned();
            if name == ".trash" {
                continue;
            }
            let found = fs::symlink_metadata(&path).unwrap();
            let mode = found.permissions().mode();
            if found.is_dir() {
                lines.push(format!("{name} folder {mode:o}"));
                walk(base, &path, lines);
            } else if found.is_symlink() {
                lines.push(format!("{name} link {}.{} {:?}", found.mtime(), found.mtime_nsec(), fs::read_link(&path).unwrap()));
            } else if found.is_file() {
                lines.push(format!("{name} file {mode:o} {}.{} {:?}", found.mtime(), found.mtime_nsec(), fs::read(&path).unwrap()));
            } else {
                lines.push(format!("{name} other"));
            }
        }
    }
    let mut lines = Vec::new();
    walk(base, base, &mut lines);
    lines.sort();
    lines
}

/// All moves of a plan at once, and what stays.
pub(super) struct Plan {
    pub(super) moves: Vec<Move>,
    pub(super) left_out: LeftOut,
}

pub(super) fn organize(entries: Entries, spec: &OrganizeSpec) -> Result<Plan, String> {
    let organizer = Organizer::new(entries, spec)?;
    let mut moves = organizer.moves();
    Ok(Plan { moves: moves.by_ref().collect(), left_out: moves.left_out() })
}
