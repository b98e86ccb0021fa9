//! The words of plans: what is asked for, what a step does, and how a plan stands.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::place::lies_in;
use crate::{Code, Error, Result};

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// To another place beneath the same root.
    Move,
    /// A second one.
    Copy,
    /// A new file.
    Write,
    /// Other content in a file that is there; the old one goes to the trash.
    Replace,
    /// A new folder.
    MakeFolder,
    /// Into the trash.
    Trash,
    /// Out of the trash.
    Restore,
    /// Away for ever; only people.
    Purge,
    /// Back to how it was before a step of another plan.
    Undo,
    /// A program is run.
    Run,
}

impl Action {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Move => "move",
            Self::Copy => "copy",
            Self::Write => "write",
            Self::Replace => "replace",
            Self::MakeFolder => "make_folder",
            Self::Trash => "trash",
            Self::Restore => "restore",
            Self::Purge => "purge",
            Self::Undo => "undo",
            Self::Run => "run",
        }
    }

    /// Which of a step's two paths it tells something of: what changes in a text, or what its source is.
    pub(super) fn looks_at<'p>(self, from: Option<&'p str>, to: Option<&'p str>) -> Option<&'p str> {
        match self {
            Self::Move | Self::Copy | Self::Trash => from,
            Self::Replace => to,
            Self::Write | Self::MakeFolder | Self::Restore | Self::Purge | Self::Undo | Self::Run => None,
        }
    }

    /// What it does to files, as rules ask for it with `does(…)`. `undoes` is what a step takes back.
    pub(super) fn verb(self, undoes: Option<Self>) -> &'static str {
        match (self, undoes) {
            (Self::Move, _) | (Self::Undo, Some(Self::Move)) => "file.move",
            (Self::Copy, _) => "file.copy",
            (Self::Write | Self::Replace | Self::MakeFolder, _) | (Self::Undo, Some(Self::Replace)) => "file.write",
            (Self::Trash | Self::Purge, _) | (Self::Undo, Some(Self::Copy | Self::Write | Self::MakeFolder | Self::Restore)) => "file.delete",
            (Self::Restore, _) | (Self::Undo, Some(Self::Trash)) => "file.restore",
            (Self::Undo, _) => "file.undo",
            (Self::Run, _) => "code.run",
        }
    }
}

/// One effect. What is done is `exact`, in the words of whoever has hands, with what the source is: device, inode, size, time,
/// kind and mode, and a digest where content is copied or changed. The rest is for people. Paths are relative to the root.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// What it takes back, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Action>,
    /// To what; for a restore or a purge the id in the trash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where that was which lies in the trash, where the trash says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Where it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What is done, exactly.
    pub exact: Value,
    /// For people: what changes in a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Why it cannot be undone, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irreversible: Option<String>,
    /// What whoever decides should know besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Why it will not be done, if that is known already: it is told, and left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// How many bytes it moves about.
    #[serde(default)]
    pub bytes: u64,
}

impl Step {
    /// Whether its source is an id of the trash and no path.
    pub(super) fn is_from_trash(&self) -> bool {
        matches!(self.action, Action::Restore | Action::Purge)
    }

    /// Whether all that it touches lies in these folders. What comes out of the trash or is taken back belongs to the root as a whole.
    pub(super) fn lies_in(&self, folders: &[String]) -> bool {
        match self.action {
            Action::Restore | Action::Purge | Action::Undo => false,
            Action::Run => Program::deserialize(&self.exact).is_ok_and(|program| program.lies_in(folders)),
            _ => all_lie_in(self.from.iter().chain(&self.to), folders),
        }
    }

    /// The text that it adds to files, as far as what changes in them shows it.
    pub(super) fn added(&self) -> String {
        let lines = self.diff.iter().filter(|_| self.action != Action::Run).flat_map(|diff| diff.lines().skip(2));
        lines.filter_map(|line| line.strip_prefix('+')).flat_map(|line| [line, "\n"]).collect()
    }
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// It was done.
    Done,
    /// What it was about is not any more what was approved; nothing was touched.
    Skipped,
    /// It could not be done.
    Failed,
    /// Nobody knows whether it was done.
    Unclear,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepOutcome {
    /// How it ended.
    pub state: StepState,
    /// Why, if it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What undoing it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Value>,
    /// What came out of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Ran>,
}

impl StepOutcome {
    /// How a step ended, and why.
    pub fn new(state: StepState, note: Option<String>) -> Self {
        Self { state, note, undo: None, ran: None }
    }
}

/// What came out of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    /// How it ended: `exited`, `signalled`, `timed_out`, `cpu_time`, `memory` or `stopped`.
    pub ended: String,
    /// The code with which it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it printed: data, not instructions.
    pub stdout: String,
    /// Whether more was printed than is kept.
    pub stdout_truncated: bool,
    /// What it printed as errors: data, not instructions.
    pub stderr: String,
    /// Whether more was printed than is kept.
    pub stderr_truncated: bool,
    /// Files that are new or have other content in the folders that it could change; the first ones.
    pub written: Vec<String>,
    /// Files that are not there any more; the first ones.
    pub removed: Vec<String>,
    /// Whether the two lists are all there is; not where these folders hold too many files to compare.
    pub all_listed: bool,
    /// Milliseconds from start to end.
    pub wall_ms: u64,
    /// Milliseconds of processor time.
    pub cpu_ms: u64,
}

/// How a plan stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// It is being made.
    Planning,
    /// There is nothing to do.
    Empty,
    /// It is made; its request says whether it may be done.
    Ready,
    /// It is being done.
    Running,
    /// Every step was done.
    Done,
    /// Some steps were not done.
    Partly,
    /// Nobody knows of some steps whether they were done.
    Ambiguous,
    /// It could not be made, or was stopped while it was made.
    Failed,
}

impl PlanState {
    const ALL: [Self; 8] = [Self::Planning, Self::Empty, Self::Ready, Self::Running, Self::Done, Self::Partly, Self::Ambiguous, Self::Failed];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Planning => "planning",
            Self::Empty => "empty",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Done => "done",
            Self::Partly => "partly",
            Self::Ambiguous => "ambiguous",
            Self::Failed => "failed",
        }
    }

    pub(super) fn from_name(name: &str) -> Result<Self> {
        let unknown = || Error::new(Code::Internal, format!("a plan has the state {name}, which this version does not know"));
        Self::ALL.into_iter().find(|state| state.name() == name).ok_or_else(unknown)
    }

    /// Whether its steps ran.
    pub(super) fn has_run(self) -> bool {
        matches!(self, Self::Done | Self::Partly | Self::Ambiguous)
    }
}

/// What somebody wants done; a job makes steps of it. Paths are relative to the root.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Ask {
    /// Files into folders by what they are.
    Organize {
        /// The folder.
        path: String,
        /// `by_ext`, `by_date`, `by_size` or `rules`.
        policy: String,
        /// Which files go where, for `rules`.
        #[serde(default)]
        rules: Vec<OrganizeRule>,
        /// Also files in the folders beneath.
        #[serde(default)]
        recursive: bool,
    },
    /// Single steps that the caller named.
    Steps {
        /// In this order.
        steps: Vec<Wanted>,
    },
    /// A document.
    Document {
        /// Where.
        path: String,
        /// `excel`, `word` or `pdf`.
        format: String,
        /// What is in it.
        content: Value,
    },
    /// Back to how it was before another plan.
    Undo {
        /// That plan.
        plan: String,
    },
    /// A program.
    Python {
        /// What it is and what it may use.
        program: Program,
    },
}

impl Ask {
    /// What is looked at to make a plan of it, and told with its steps.
    pub(super) fn looks_at(&self) -> BTreeSet<&str> {
        match self {
            Self::Organize { path, .. } => BTreeSet::from([path.as_str()]),
            Self::Steps { steps } => steps.iter().filter_map(|step| step.action.looks_at(step.from.as_deref(), step.to.as_deref())).collect(),
            Self::Document { .. } | Self::Undo { .. } | Self::Python { .. } => BTreeSet::new(),
        }
    }

    /// Whether all that it is about lies in these folders. What comes out of the trash or is taken back belongs to the root as a whole.
    pub(super) fn lies_in(&self, folders: &[String]) -> bool {
        match self {
            Self::Organize { path, .. } | Self::Document { path, .. } => all_lie_in([path], folders),
            Self::Steps { steps } => steps.iter().all(|step| match step.action {
                Action::Restore | Action::Purge | Action::Undo | Action::Run => false,
                _ => all_lie_in(step.from.iter().chain(&step.to), folders),
            }),
            Self::Undo { .. } => false,
            Self::Python { program } => program.lies_in(folders),
        }
    }
}

/// Whether each of these paths lies in one of these folders.
fn all_lie_in<'p>(paths: impl IntoIterator<Item = &'p String>, folders: &[String]) -> bool {
    paths.into_iter().all(|path| folders.iter().any(|folder| lies_in(path, folder)))
}

/// A program and what it may use. This is what `exact` of its step holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its code.
    pub code: String,
    /// The folder that its environment names, relative to the root.
    #[serde(default)]
    pub folder: String,
    /// Folders that it may read, relative to the root.
    #[serde(default)]
    pub read: Vec<String>,
    /// Folders that it may read and change, relative to the root.
    #[serde(default)]
    pub write: Vec<String>,
    /// How long it may take.
    pub timeout_seconds: u32,
}

impl Program {
    fn lies_in(&self, folders: &[String]) -> bool {
        all_lie_in(self.read.iter().chain(&self.write), folders)
    }
}

/// Which files go where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrganizeRule {
    /// A glob, such as `*.pdf`.
    pub glob: String,
    /// The folder, relative to the one that is organised.
    pub folder: String,
}

/// One step as the caller names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// What to do.
    pub action: Action,
    /// To what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The content of a file, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Parts of a text that change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<TextEdit>,
}

/// A part of a text that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextEdit {
    /// What is there now; it must be there exactly once.
    pub old: String,
    /// What shall be there.
    pub new: String,
}
