//! Runners that are programs: what a command or a client of a model is given, and what of it is refused.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::{Budget, Runner};
use crate::limits::{AGENT_FILE_BYTES_MAX, AGENT_FILES_MAX, CONTENT_BYTES_MAX, NAME_CHARS_MAX};
use crate::{Error, Result, check_text, secret};

/// What a program is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Given {
    /// Variables of its environment, besides those that every run has: plain values, or `secret:NAME` for a secret of the desk.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Whom it may reach over the network; nobody but the desk if not given, for clients of models everybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Reach>,
    /// Folders and files of the machine that it may read besides those of the system, as absolute paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// What becomes of a run that was left in the middle, where it is not said beside the runner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_interrupted: Option<IfInterrupted>,
}

/// Whom a program may reach over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Nobody, the desk included.
    None,
    /// The desk, by its port.
    Desk,
    /// Everybody whom the desk's machine reaches.
    All,
}

/// What becomes of a run that was left in the middle, because its server ended or was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfInterrupted {
    /// It goes on after the last step that was done, and no step happens twice. For steps only: nobody knows where a program was.
    Resume,
    /// It begins anew, a program with an empty folder. For what does no harm when it is done twice.
    Again,
    /// It has ended, and is told as `ambiguous`: nobody knows how far it came.
    End,
}

/// The language of a project that is made for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python 3.
    Python,
    /// TypeScript, which Node.js runs by leaving out its types.
    Typescript,
    /// JavaScript for Node.js.
    Javascript,
    /// Go.
    Go,
}

/// A client of a model that works without a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cli {
    /// `claude -p`.
    ClaudeCode,
    /// `codex exec`.
    Codex,
    /// `gemini -p`.
    Gemini,
}

impl Cli {
    /// The name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }
}

/// Names of variables that every run has, and of those that would change which program runs.
const OWN: &[&str] = &["HOME", "PATH", "TMPDIR", "LANG", "TZ", "PWD"];

/// Where clients keep settings of a project, which could loosen the desk's.
const SETTINGS: &[&str] = &[".claude", ".codex", ".gemini", ".mcp.json"];

/// Checks a runner that is a program.
pub(super) fn check(runner: &Runner, budget: &Budget) -> Result<()> {
    if budget.cost.is_some_and(|cost| !(cost > 0.0 && cost <= 10_000.0)) {
        return Err(Error::invalid("budget", "cost must be more than 0 and at most 10000"));
    }
    match runner {
        Runner::Steps { .. } => {
            if budget.disk_bytes.is_some() || budget.memory_bytes.is_some() || budget.processes.is_some() {
                return Err(Error::invalid("budget", "disk_bytes, memory_bytes and processes are for runners that are programs"));
            }
            return Ok(());
        }
        Runner::Command { command, test, files, given, .. } => {
            let Some(program) = command.first() else { return Err(Error::invalid("runner", "command must name a program")) };
            if program.is_empty() || command.len() > 100 || test.len() > 100 || test.first().is_some_and(String::is_empty) {
                return Err(Error::invalid("runner", "command and test must name a program, with at most 99 arguments"));
            }
            for word in command.iter().chain(test) {
                check_text("runner", word, CONTENT_BYTES_MAX)?;
            }
            check_files(files)?;
            check_given(given)?;
        }
        Runner::Cli { prompt, program, model, files, given, .. } => {
            check_text("runner", prompt, CONTENT_BYTES_MAX)?;
            if prompt.trim().is_empty() {
                return Err(Error::invalid("runner", "prompt must say what to do"));
            }
            if program.as_deref().is_some_and(|program| !program.starts_with('/')) {
                return Err(Error::invalid("runner", "program must be an absolute path"));
            }
            for text in [program, model].into_iter().flatten() {
                check_text("runner", text, 4_096)?;
            }
            if model.as_deref().is_some_and(|model| model.is_empty() || model.starts_with('-') || model.chars().count() > NAME_CHARS_MAX) {
                return Err(Error::invalid("runner", "model must be the name of a model"));
            }
            check_files(files)?;
            check_given(given)?;
            if let Some(path) = files.keys().find(|path| SETTINGS.iter().any(|own| path.split('/').any(|part| part.eq_ignore_ascii_case(own)))) {
                return Err(Error::invalid("runner", format!("{path:?} is where clients keep settings, and those are the desk's")));
            }
            if given.network == Some(Reach::None) {
                return Err(Error::invalid("runner", "a client of a model needs the desk, so its network cannot be none"));
            }
        }
    }
    let most: [(&str, Option<u64>, u64); 3] =
        [("disk_bytes", budget.disk_bytes, 100 << 30), ("memory_bytes", budget.memory_bytes, 256 << 30), ("processes", budget.processes.map(u64::from), 4_096)];
    for (field, value, most) in most {
        if value.is_some_and(|value| value == 0 || value > most) {
            return Err(Error::invalid("budget", format!("{field} must be between 1 and {most}")));
        }
    }
    Ok(())
}

fn check_files(files: &BTreeMap<String, String>) -> Result<()> {
    if files.len() > AGENT_FILES_MAX {
        return Err(Error::invalid("runner", format!("there can be at most {AGENT_FILES_MAX} files")));
    }
    for (path, text) in files {
        let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && part.len() <= 100;
        let fits = path.len() <= 400 && path.split('/').count() <= 8 && path.split('/').all(plain) && !path.contains(['\\', '\0']);
        let ours = ["input.json", "result.json"].contains(&path.as_str());
        if !fits || ours || path.chars().any(char::is_control) {
            return Err(Error::invalid("runner", format!("{path:?} is not the path of a file within the working folder")));
        }
        if files.keys().any(|other| other.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'))) {
            return Err(Error::invalid("runner", format!("{path:?} cannot be a file and a folder")));
        }
        check_text("runner", text, AGENT_FILE_BYTES_MAX)?;
    }
    Ok(())
}

fn check_given(given: &Given) -> Result<()> {
    for (name, value) in &given.environment {
        let plain = !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() || name.len() > 100 || !plain {
            return Err(Error::invalid("runner", format!("{name:?} is not the name of a variable")));
        }
        if OWN.contains(&name.as_str()) || name.starts_with("DESKMATE_") || name.starts_with("LD_") {
            return Err(Error::invalid("runner", format!("the variable {name} is set by the desk")));
        }
        check_text("runner", value, 64 * 1024)?;
    }
    secret::named(given.environment.values().map(String::as_str))?;
    for path in &given.read {
        let parts = path.strip_prefix('/').map(|rest| rest.split('/').all(|part| !part.is_empty() && part != "." && part != ".."));
        if parts != Some(true) || path.len() > 4_096 {
            return Err(Error::invalid("runner", format!("{path:?} is not an absolute path of a folder or file")));
        }
    }
    if given.read.len() > 50 || given.environment.len() > 100 {
        return Err(Error::invalid("runner", "at most 50 folders and 100 variables can be given"));
    }
    Ok(())
}
