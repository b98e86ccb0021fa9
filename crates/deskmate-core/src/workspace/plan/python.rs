//! Running a program. It is a plan of one step, because it needs what plans have: a digest over all of it, a person who
//! saw it, a grant that works once, and a record of what was intended and what came of it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::place::{self, Place, join, relative};
use super::ask;
use super::model::{Ask, Program};
use super::show::PlanOut;
use crate::call::Cx;
use crate::limits::{PROGRAM_BYTES_MAX, PROGRAM_FOLDERS_MAX, PROGRAM_SECONDS_MAX, PROGRAM_SECONDS_USUAL};
use crate::{Error, Result, check_text};

/// The kind of a plan that runs a program.
pub(super) const KIND: &str = "python";

/// Plan to run a Python program. A person sees the whole code and approves it; then execute_plan runs it once, in a sandbox:
/// without network, without packages, with nothing of this machine but the folders that you name. What it printed and which
/// files it wrote is in the plan afterwards; its working folder is its own and is removed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct ExecutePython {
    /// The program, for the Python 3 of the desk's machine and its standard library.
    code: String,
    /// The folder that `read` and `write` are relative to: the name of a root, or a path beneath it. The program finds it in
    /// the environment as `WORKSPACE`.
    root: Option<String>,
    /// Folders that it may read.
    #[serde(default)]
    read: Vec<String>,
    /// Folders that it may read and change.
    #[serde(default)]
    write: Vec<String>,
    /// How long it may take; 30 if not given, at most 300.
    timeout_seconds: Option<u32>,
    /// Why, for the person who decides.
    reasoning: Option<String>,
}

pub(in crate::workspace) fn execute_python(cx: &mut Cx<'_, '_>, input: ExecutePython) -> Result<PlanOut> {
    check_text("code", &input.code, PROGRAM_BYTES_MAX)?;
    if input.code.trim().is_empty() {
        return Err(Error::invalid("code", "is empty"));
    }
    let timeout_seconds = input.timeout_seconds.unwrap_or(PROGRAM_SECONDS_USUAL);
    if !(1..=PROGRAM_SECONDS_MAX).contains(&timeout_seconds) {
        return Err(Error::invalid("timeout_seconds", format!("must be between 1 and {PROGRAM_SECONDS_MAX}")));
    }
    let mut program = Program { code: input.code, folder: String::new(), read: Vec::new(), write: Vec::new(), timeout_seconds };
    let why = input.reasoning.as_deref();
    if input.read.is_empty() && input.write.is_empty() {
        if input.root.is_some() {
            return Err(Error::invalid("root", "opens nothing by itself: name folders in it with `read` and `write`"));
        }
        return ask::queue(cx, "", KIND, &Ask::Python { program }, why, None);
    }
    let place = place::find(cx, "root", input.root.as_deref())?;
    program.read = folders("read", &place, &input.read)?;
    program.write = folders("write", &place, &input.write)?;
    if let Some(both) = program.read.iter().find(|read| program.write.iter().any(|write| within(read, write))) {
        return Err(Error::invalid("read", format!("{both} lies in a folder that may be changed: name it in one of the two")));
    }
    if !program.write.is_empty() {
        ask::writable(&place.root)?;
    }
    program.folder.clone_from(&place.path);
    ask::queue(cx, &place.root.name, KIND, &Ask::Python { program }, why, None)
}

fn within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Folders beneath a root, never the root itself: the trash lies in it.
fn folders(field: &str, place: &Place, named: &[String]) -> Result<Vec<String>> {
    if named.len() > PROGRAM_FOLDERS_MAX {
        return Err(Error::invalid(field, format!("are too many: at most {PROGRAM_FOLDERS_MAX}")));
    }
    let full = |path: &String| match join(&place.path, &relative(field, path)?) {
        path if path.is_empty() => Err(Error::invalid(field, "names the root itself: name a folder in it")),
        path => Ok(path),
    };
    named.iter().map(full).collect()
}
