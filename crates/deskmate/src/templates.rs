//! The desk's own templates of agents: YAML files in the folder `templates` of its data directory.

use deskmate_core::agents::template::{AgentTemplate, Library};
use deskmate_core::limits::{AGENT_TEMPLATE_BYTES_MAX, AGENT_TEMPLATE_FILES_MAX};

use crate::data_files::{self, Bounds};
use crate::home::Home;

const BOUNDS: Bounds = Bounds { files: AGENT_TEMPLATE_FILES_MAX, bytes: AGENT_TEMPLATE_BYTES_MAX };

/// What is built in, and what the desk has of its own. A file that cannot be taken in is named with what is wrong with it.
pub(crate) fn library(home: &Home) -> Library {
    let found = data_files::folder(&home.templates(), &BOUNDS, AgentTemplate::read);
    Library::of(found.read, found.problems)
}
