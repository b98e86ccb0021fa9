//! Folders of the data directory that hold one YAML file for each thing that people add: templates, frameworks.

use std::path::{Path, PathBuf};

use deskmate_core::Result as CoreResult;

/// How many files of a folder are read, and how long each may be.
pub(crate) struct Bounds {
    pub(crate) files: usize,
    pub(crate) bytes: usize,
}

/// What was found in a folder.
pub(crate) struct Found<T> {
    /// Each with the file that it comes from, in the order of the names.
    pub(crate) read: Vec<(String, T)>,
    /// Files that could not be taken in, each with what is wrong with it.
    pub(crate) problems: Vec<String>,
}

/// Reads every YAML file of a folder.
pub(crate) fn folder<T>(folder: &Path, bounds: &Bounds, parse: impl Fn(&str) -> CoreResult<T>) -> Found<T> {
    let mut found = Found { read: Vec::new(), problems: Vec::new() };
    let files = match names(folder) {
        Ok(files) => files,
        Err(error) => {
            found.problems.push(format!("{}: {error}", folder.display()));
            return found;
        }
    };
    if files.len() > bounds.files {
        found.problems.push(format!("{}: only the first {} files are read", folder.display(), bounds.files));
    }
    for path in files.iter().take(bounds.files) {
        match file(path, bounds, &parse) {
            Ok(read) => found.read.push((path.display().to_string(), read)),
            Err(problem) => found.problems.push(problem),
        }
    }
    found
}

/// Reads one file.
pub(crate) fn file<T>(path: &Path, bounds: &Bounds, parse: impl Fn(&str) -> CoreResult<T>) -> Result<T, String> {
    let named = |why: String| format!("{}: {why}", path.display());
    let size = std::fs::metadata(path).map_err(|error| named(error.to_string()))?.len();
    if size > bounds.bytes as u64 {
        return Err(named(format!("is longer than {} bytes", bounds.bytes)));
    }
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    parse(&text).map_err(|error| named(error.message))
}

/// The YAML files of a folder, in the order of their names. One that is not there has none.
pub(crate) fn names(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use deskmate_core::Error;

    use super::*;

    const BOUNDS: Bounds = Bounds { files: 3, bytes: 10 };

    fn parse(text: &str) -> CoreResult<usize> {
        text.trim().parse().map_err(|_| Error::invalid("number", "is none"))
    }

    #[test]
    fn good_files_are_taken_in_and_bad_ones_named() {
        let place = tempfile::tempdir().unwrap();
        let missing = folder(&place.path().join("none"), &BOUNDS, parse);
        assert!(missing.read.is_empty() && missing.problems.is_empty());
        for (name, text) in [("b.yaml", "2"), ("a.yml", "1"), ("c.yaml", "12345678901"), ("d.yaml", "4"), ("notes.txt", "5")] {
            std::fs::write(place.path().join(name), text).unwrap();
        }
        let found = folder(place.path(), &BOUNDS, parse);
        assert_eq!(found.read.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [1, 2]);
        assert!(found.read[0].0.ends_with("a.yml"));
        assert!(
            found.problems.len() == 2 && found.problems[0].contains("first 3 files") && found.problems[1].contains("c.yaml: is longer"),
            "{:?}",
            found.problems
        );
        std::fs::write(place.path().join("b.yaml"), "two").unwrap();
        assert!(folder(place.path(), &BOUNDS, parse).problems.iter().any(|problem| problem.contains("b.yaml") && problem.contains("is none")));
    }
}
