//! What a root withholds: deny globs. A name that one of them matches is not there for anybody who comes through the root,
//! and neither is anything beneath it.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// How many globs a root may have.
const GLOBS_MAX: usize = 1000;

/// The deny globs of a root. They are read like lines of an ignore file: one without a `/` matches a name anywhere, one
/// with a `/` matches from the root on. Upper and lower case are one: the stricter reading where it is in doubt.
#[derive(Debug)]
pub(super) struct Withheld {
    globs: GlobSet,
}

impl Withheld {
    pub(super) fn new(globs: &[String]) -> Result<Self, String> {
        if globs.len() > GLOBS_MAX {
            return Err(format!("more than {GLOBS_MAX} deny globs"));
        }
        Ok(Self { globs: set(globs, true)? })
    }

    /// Whether anything is withheld at all; asked first where every entry counts.
    pub(super) fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Whether this entry is matched itself; for walks that have come through its folders.
    pub(super) fn matches(&self, path: &str) -> bool {
        !self.is_empty() && self.globs.is_match(path)
    }

    /// Whether the path, or a folder that it lies in, is matched.
    pub(super) fn covers(&self, path: &str) -> bool {
        !self.is_empty() && (self.matches(path) || path.match_indices('/').any(|(at, _)| path.get(..at).is_some_and(|folder| self.matches(folder))))
    }
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
        let withheld = Withheld::new(&[".env".into(), "/private/".into(), "a/*/key".into()]).unwrap();
        for path in [".env", "x/.ENV", "private", "private/x/y", "a/b/key", "a/b/key/z"] {
            assert!(withheld.covers(path), "{path}");
        }
        for path in ["env", "x/private", "a/key", "a/b/c/key"] {
            assert!(!withheld.covers(path), "{path}");
        }
        assert!(Withheld::new(&["[".into()]).is_err());
    }
}
