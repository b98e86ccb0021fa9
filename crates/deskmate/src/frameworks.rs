//! The desk's own frameworks: YAML files in the folder `compliance` of its data directory.

use std::path::Path;

use deskmate_core::compliance::{Framework, Library};
use deskmate_core::limits::{COMPLIANCE_FILES_MAX, COMPLIANCE_TEXT_BYTES_MAX};

use crate::data_files::{self, Bounds};
use crate::home::Home;

const BOUNDS: Bounds = Bounds { files: COMPLIANCE_FILES_MAX, bytes: COMPLIANCE_TEXT_BYTES_MAX };

/// What is built in, and what the desk has of its own. A file that cannot be taken in is named with what is wrong with it.
pub(crate) fn library(home: &Home) -> Library {
    let found = data_files::folder(&home.frameworks(), &BOUNDS, Framework::read);
    Library::default().with(found.read.into_iter().map(|(_, framework)| framework)).without(found.problems)
}

/// Reads one file.
pub(crate) fn read(file: &Path) -> Result<Framework, String> {
    data_files::file(file, &BOUNDS, Framework::read)
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

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// A file that somebody broke is refused or understood; it never keeps the desk from starting.
        #[test]
        fn any_text_is_refused_or_understood(text in "(?s).{0,120}", name in "(id|title|edition|cannot|controls)", value in r"[&*!|>%@{}\[\],:'\x22#a-c0-9 \n-]{0,40}") {
            drop(Framework::read(&text));
            drop(Framework::read(&format!("{name}: {value}\n")));
        }
    }
}
