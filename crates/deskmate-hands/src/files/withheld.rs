//! What a root withholds: deny globs, and what belongs to whoever opened the root. A name that one of them matches is not
//! there for anybody who comes through the root, and neither is anything beneath it.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// How many globs a root may have.
const GLOBS_MAX: usize = 1000;

/// What a root withholds. Globs are read like lines of an ignore file: one without a `/` matches a name anywhere, one
/// with a `/` matches from the root on. Upper and lower case are one: the stricter reading where it is in doubt.
#[derive(Debug)]
pub(super) struct Withheld {
    globs: GlobSet,
    /// Single paths beneath the root, in lower case.
    own: Vec<String>,
}

impl Withheld {
    pub(super) fn new(globs: &[String], own: Vec<String>) -> Result<Self, String> {
        if globs.len() > GLOBS_MAX {
            return Err(format!("more than {GLOBS_MAX} deny globs"));
        }
        Ok(Self { globs: set(globs, true)?, own: own.into_iter().map(|path| path.to_lowercase()).collect() })
    }

    /// Whether anything is withheld at all; asked first where every entry counts.
    pub(super) fn is_empty(&self) -> bool {
        self.globs.is_empty() && self.own.is_empty()
    }

    /// Whether this entry is matched itself; for walks that have come through its folders.
    pub(super) fn matches(&self, path: &str) -> bool {
        !self.is_empty() && (self.globs.is_match(path) || self.is_own(path))
    }

    fn is_own(&self, path: &str) -> bool {
        !self.own.is_empty() && self.own.contains(&path.to_lowercase())
    }

    /// Whether the path, or a folder that it lies in, is matched.
    pub(super) fn covers(&self, path: &str) -> bool {
        !self.is_empty() && (self.matches(path) || path.match_indices('/').any(|(at, _)| path.get(..at).is_some_and(|folder| self.matches(folder))))
    }
}

/// Those of these paths of the host that lie beneath a folder of the host, given by its real path, relative to it; an error if the folder
/// itself lies in one of them. What is not there now can come to be there later.
pub(super) fn beneath(folder: &Path, own: &[PathBuf]) -> Result<Vec<String>, &'static str> {
    let mut found = Vec::new();
    for path in own {
        let real = std::fs::canonicalize(path).ok();
        // A file that comes and goes is known by the folder that it is in.
        let real = real.or_else(|| Some(std::fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?)));
        let real = real.unwrap_or_else(|| path.clone());
        if folder.starts_with(&real) {
            return Err("it is, or lies in, the folder of the desk's own data");
        }
        if let Ok(within) = real.strip_prefix(folder) {
            found.push(within.to_string_lossy().into_owned());
        }
    }
    Ok(found)
}

/// Globs over paths beneath a root, in the same reading as deny globs.
pub(super) fn set(globs: &[String], any_case: bool) -> Result<GlobSet, String> {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        let text = glob.trim_end_matches('/');
        if text.is_empty() {
            return Err("an empty glob".to_owned());
        }
        let text = match text.strip_prefix('/') {
            Some(anchored) => anchored.to_owned(),
            None if text.contains('/') => text.to_owned(),
            None => format!("**/{text}"),
        };
        let glob = GlobBuilder::new(&text).literal_separator(true).case_insensitive(any_case).build();
        builder.add(glob.map_err(|error| format!("the glob `{}` is wrong: {}", error.glob().unwrap_or_default(), error.kind()))?);
    }
    builder.build().map_err(|error| format!("the globs are wrong: {}", error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_without_a_slash_matches_anywhere_and_covers_what_lies_beneath() {
        let withheld = Withheld::new(&[".env".into(), "/private/".into(), "a/*/key".into()], vec!["Home/.desk".into()]).unwrap();
        for path in [".env", "x/.ENV", "private", "private/x/y", "a/b/key", "a/b/key/z", "home/.desk", "Home/.Desk/store"] {
            assert!(withheld.covers(path), "{path}");
        }
        for path in ["env", "x/private", "a/key", "a/b/c/key", "home", "home/.desk2"] {
            assert!(!withheld.covers(path), "{path}");
        }
        assert!(Withheld::new(&["[".into()], Vec::new()).is_err());
    }
}
