//! The desk's own frameworks: YAML files in the folder `compliance` of its data directory.

use std::path::{Path, PathBuf};

use deskmate_core::compliance::{Framework, Library};
use deskmate_core::limits::{COMPLIANCE_FILES_MAX, COMPLIANCE_TEXT_BYTES_MAX};

use crate::home::Home;

/// What is built in, and what the desk has of its own. A file that cannot be taken in is named with what is wrong with it.
pub(crate) fn library(home: &Home) -> Library {
    let (mut own, mut problems) = (Vec::new(), Vec::new());
    let files = match files(&home.frameworks()) {
        Ok(files) => files,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Library::default(),
        Err(error) => {
            problems.push(format!("{}: {error}", home.frameworks().display()));
            Vec::new()
        }
    };
    if files.len() > COMPLIANCE_FILES_MAX {
        problems.push(format!("{}: only the first {COMPLIANCE_FILES_MAX} files are read", home.frameworks().display()));
    }
    for file in files.iter().take(COMPLIANCE_FILES_MAX) {
        match read(file) {
            Ok(framework) => own.push(framework),
            Err(problem) => problems.push(problem),
        }
    }
    Library::default().with(own).without(problems)
}

/// Reads one file.
pub(crate) fn read(file: &Path) -> Result<Framework, String> {
    let named = |why: String| format!("{}: {why}", file.display());
    let size = std::fs::metadata(file).map_err(|error| named(error.to_string()))?.len();
    if size > COMPLIANCE_TEXT_BYTES_MAX as u64 {
        return Err(named(format!("is longer than {COMPLIANCE_TEXT_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
    Framework::read(&text).map_err(|error| named(error.message))
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
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
    use super::*;

    #[test]
    fn good_files_are_taken_in_and_bad_ones_named() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().to_owned());
        assert_eq!(library(&home).all().count(), 8);
        std::fs::create_dir(home.frameworks()).unwrap();
        let good = "id: HOUSE\ntitle: House rules\nedition: '1'\ncannot: []\ncontrols:\n  - { id: H1, title: t, asks: a, cannot: All of it. }\n";
        std::fs::write(home.frameworks().join("house.yaml"), good).unwrap();
        std::fs::write(home.frameworks().join("broken.yml"), good.replace("cannot: All of it.", "checks: [{ shows: x, sql: y }]")).unwrap();
        std::fs::write(home.frameworks().join("notes.txt"), "not one").unwrap();
        let library = library(&home);
        assert!(library.find("house").is_ok());
        assert!(
            library.problems().len() == 1 && library.problems()[0].contains("broken.yml") && library.problems()[0].contains("sql"),
            "{:?}",
            library.problems()
        );
        assert!(library.find("other").unwrap_err().hint.unwrap().contains("broken.yml"));
    }
}
