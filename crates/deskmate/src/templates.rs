//! The desk's own templates of agents and of policies: YAML files in the folder `templates` of its data directory.

use deskmate_core::agents::template::{File, Library};
use deskmate_core::limits::{AGENT_TEMPLATE_BYTES_MAX, AGENT_TEMPLATE_FILES_MAX};

use crate::data_files::{self, Bounds};
use crate::home::Home;

const BOUNDS: Bounds = Bounds { files: AGENT_TEMPLATE_FILES_MAX, bytes: AGENT_TEMPLATE_BYTES_MAX };

/// What is built in, and what the desk has of its own. A file that cannot be taken in is named with what is wrong with it.
pub(crate) fn library(home: &Home) -> Library {
    let found = data_files::folder(&home.templates(), &BOUNDS, File::read);
    Library::of(found.read, found.problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW_CALLS: &str = "template: { id: few-calls, title: Few calls, description: Not too many., category: operational }
rules:
  - { name: enough, when: \"does('call') && counters.calls_minute >= 20\", effect: deny, message: enough }
";

    #[test]
    fn files_of_policies_and_of_agents_are_told_apart() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::new(place.path().to_owned());
        std::fs::create_dir(home.templates()).unwrap();
        let greeter = "id: greeter\ntitle: Greeter\ndescription: Says hello.\ncategory: custom\npolicies: [few-calls]\ntask: Say hello.\nsteps: [{ id: say, do: log, with: { text: hello } }]\n";
        for (name, text) in [("greeter.yaml", greeter), ("policy.yaml", FEW_CALLS), ("wrong.yaml", &FEW_CALLS.replace("effect: deny", "effect: forbid"))] {
            std::fs::write(home.templates().join(name), text).unwrap();
        }
        let library = library(&home);
        assert!(library.find("greeter").is_ok() && library.policy("few-calls").is_some(), "{:?}", library.problems());
        assert!(library.problems().len() == 1 && library.problems()[0].contains("wrong.yaml"), "{:?}", library.problems());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// A file that somebody broke is refused or understood; it never keeps the desk from starting.
        #[test]
        fn any_text_is_refused_or_understood(text in "(?s).{0,120}", at in proptest::prelude::any::<proptest::sample::Index>(), piece in r"[&*!|>%@{}\[\],:'\x22#a-c0-9 \n-]{0,20}") {
            drop(File::read(&text));
            let mut broken = FEW_CALLS.to_owned();
            broken.insert_str(at.index(broken.len()), &piece);
            drop(File::read(&broken));
        }
    }
}
