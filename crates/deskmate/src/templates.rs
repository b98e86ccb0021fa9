//! The desk's own templates of agents: YAML files in the folder `templates` of its data directory.

use std::path::{Path, PathBuf};

use deskmate_core::agents::template::{AgentTemplate, Library};
use deskmate_core::limits::{AGENT_TEMPLATE_BYTES_MAX, AGENT_TEMPLATE_FILES_MAX};

use crate::home::Home;

/// What is built in, and what the desk has of its own. A file that cannot be taken in is named with what is wrong with it.
pub(crate) fn library(home: &Home) -> Library {
    let folder = home.templates();
    let (mut own, mut problems) = (Vec::new(), Vec::new());
    let files = match files(&folder) {
        Ok(files) => files,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Library::default(),
        Err(error) => {
            problems.push(format!("{}: {error}", folder.display()));
            Vec::new()
        }
    };
    if files.len() > AGENT_TEMPLATE_FILES_MAX {
        problems.push(format!("{}: only the first {AGENT_TEMPLATE_FILES_MAX} files are read", folder.display()));
    }
    for file in files.iter().take(AGENT_TEMPLATE_FILES_MAX) {
        match read(file) {
            Ok(template) => own.push((file.display().to_string(), template)),
            Err(problem) => problems.push(problem),
        }
    }
    Library::of(own, problems)
}

fn read(file: &Path) -> Result<AgentTemplate, String> {
    let named = |why: String| format!("{}: {why}", file.display());
    let size = std::fs::metadata(file).map_err(|error| named(error.to_string()))?.len();
    if size > AGENT_TEMPLATE_BYTES_MAX as u64 {
        return Err(named(format!("is longer than {AGENT_TEMPLATE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
    AgentTemplate::read(&text).map_err(|error| named(error.message))
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
