//! Paths and globs of reservations: one spelling for each, and whether two of them can mean the same file.
//!
//! Case does not count, because on some machines it does not count for files either.

use std::cell::OnceCell;

use globset::{GlobBuilder, GlobMatcher};

use crate::limits::PATH_BYTES_MAX;
use crate::{Error, Result, check_text};

const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

/// The one spelling of a path or glob: relative to the project, with `/` between its parts. A directory that ends in
/// `/` means all beneath it.
pub(super) fn normalise(field: &str, path: &str) -> Result<String> {
    check_text(field, path, PATH_BYTES_MAX)?;
    let bad = |why: &str| Error::invalid(field, format!("{path:?} {why}"));
    if path.trim().is_empty() {
        return Err(bad("is empty"));
    }
    if path.contains('\\') {
        return Err(bad("holds a backslash; write `/` between the parts"));
    }
    if path.starts_with('/') || path.starts_with('~') || path.get(1..2) == Some(":") {
        return Err(bad("is absolute; write it relative to the project"));
    }
    if path.chars().any(char::is_control) {
        return Err(bad("holds control characters"));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                let above = parts.pop().ok_or_else(|| bad("leads out of the project"))?;
                if above.contains(WILDCARDS) {
                    return Err(bad("goes up from a wildcard"));
                }
            }
            _ => parts.push(part),
        }
    }
    if path.ends_with(['/', '.']) && matches!(path.rsplit('/').next(), Some("" | "." | "..")) {
        parts.push("**");
    }
    let spelled = parts.join("/");
    matcher(&spelled).map_err(|error| bad(&format!("is not a glob: {error}")))?;
    Ok(spelled)
}

fn matcher(glob: &str) -> std::result::Result<GlobMatcher, globset::Error> {
    Ok(GlobBuilder::new(glob).literal_separator(true).case_insensitive(true).backslash_escape(false).build()?.compile_matcher())
}

/// A normalised path or glob, ready to be compared with many others.
pub(super) struct Pattern {
    lower: String,
    /// Where a glob's first wildcard is; `None` for a plain path.
    wildcard: Option<usize>,
    matcher: OnceCell<Option<GlobMatcher>>,
}

impl Pattern {
    pub(super) fn new(normalised: &str) -> Self {
        let lower = normalised.to_lowercase();
        Self { wildcard: lower.find(WILDCARDS), lower, matcher: OnceCell::new() }
    }

    /// Whether both can mean the same file. Where this cannot be told for sure, they do.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        match (self.wildcard, other.wildcard) {
            (None, None) => lies_in(&self.lower, &other.lower) || lies_in(&other.lower, &self.lower),
            (Some(_), None) => self.meets(&other.lower),
            (None, Some(_)) => other.meets(&self.lower),
            (Some(_), Some(_)) => self.start().starts_with(other.start()) || other.start().starts_with(self.start()),
        }
    }

    /// What comes before the first wildcard.
    fn start(&self) -> &str {
        self.wildcard.and_then(|at| self.lower.get(..at)).unwrap_or(&self.lower)
    }

    /// Whether this glob can match a plain path or something beneath it.
    fn meets(&self, path: &str) -> bool {
        // Most pairs differ before the first wildcard, which is cheaper to see than to match.
        lies_in(self.start(), path) || (path.starts_with(self.start()) && self.matches(path)) || (may_be_directory(path) && self.reaches_into(path))
    }

    /// Whether this glob can match something beneath a directory. Where that cannot be told part by part, it can.
    fn reaches_into(&self, directory: &str) -> bool {
        if self.lower.split('{').skip(1).any(|group| group.split('}').next().is_some_and(|group| group.contains('/'))) {
            return true;
        }
        let mut parts = self.lower.split('/');
        for name in directory.split('/') {
            match parts.next() {
                None => return false,
                Some(part) if part.contains("**") => return true,
                Some(part) if !matcher(part).map_or(true, |matcher| matcher.is_match(name)) => return false,
                Some(_) => {}
            }
        }
        parts.next().is_some()
    }

    fn matches(&self, path: &str) -> bool {
        self.matcher.get_or_init(|| matcher(&self.lower).ok()).as_ref().is_none_or(|matcher| matcher.is_match(path))
    }
}

/// Whether a plain path may name a directory: one with a suffix is taken for a file.
fn may_be_directory(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| !name.trim_start_matches('.').contains('.'))
}

/// Whether a path is another one or lies beneath it.
fn lies_in(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::{Pattern, normalise};

    fn overlap(a: &str, b: &str) -> bool {
        Pattern::new(a).overlaps(&Pattern::new(b))
    }

    #[test]
    fn one_spelling() {
        for (given, spelled) in [
            ("src/main.rs", "src/main.rs"),
            ("./src//main.rs", "src/main.rs"),
            ("src/a/../main.rs", "src/main.rs"),
            ("src/", "src/**"),
            (".", "**"),
            ("src/**/*.rs", "src/**/*.rs"),
            ("a.", "a."),
        ] {
            assert_eq!(normalise("paths", given).ok().as_deref(), Some(spelled), "{given}");
        }
    }

    #[test]
    fn tricks_are_refused() {
        for given in ["", "  ", "/etc/passwd", "../x", "a/../../x", "~/x", "C:/x", "a\\b", "a\0b", "a\nb", "*/../x", "a[", "{a"] {
            assert!(normalise("paths", given).is_err(), "{given:?}");
        }
    }

    #[test]
    fn what_can_meet_overlaps() {
        for (a, b) in [
            ("src/main.rs", "src/main.rs"),
            ("src/main.rs", "SRC/Main.rs"),
            ("src", "src/main.rs"),
            ("src/**", "src/main.rs"),
            ("src/**", "src"),
            ("**", "anything"),
            ("src/*.rs", "src/m*"),
            ("src/**", "src/a/**"),
            ("src/*.rs", "src/main.rs"),
            ("**/*.rs", "SRC/a/main.rs"),
            ("{src,docs}/a", "docs/a"),
            ("src", "**/*.rs"),
            ("src", "*/main.rs"),
            ("src/app", "src/*/main.rs"),
            (".github", "**/*.yml"),
            ("src", "{src/a,docs}/*.rs"),
        ] {
            assert!(overlap(a, b) && overlap(b, a), "{a} {b}");
        }
        for (a, b) in [
            ("src/main.rs", "src/main.rs2"),
            ("src/*.rs", "docs/*.rs"),
            ("src/*.rs", "src/readme.md"),
            ("src", "src2"),
            ("src/*", "src/a/b"),
            ("docs", "src/**/*.rs"),
            ("readme.md", "**/*.rs"),
            ("src", "*.rs"),
        ] {
            assert!(!overlap(a, b) && !overlap(b, a), "{a} {b}");
        }
    }
}
