//! Programs: what a person sees before, and how they run. All bounds are those of the sandbox; here is only what a program
//! is given of the roots.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use deskmate_core::workspace::Root;
use deskmate_core::workspace::plan::{Action, Program, Ran, Step, StepOutcome, StepState};
use deskmate_core::{Code, Error, Result};
use deskmate_hands::files::{self, Identity, Kind, ListSpec, RootSpec, ScanSpec, Watch};
use deskmate_hands::sandbox::{self, Captured, Ended, Meant, Network, Spec, Stop, python_spec};

use super::{Machine, fault};

/// What is kept of each output.
const OUTPUT_BYTES: u64 = 64 * 1024;
/// Files in the folders that a program may change that are compared before and after.
const COMPARED_MAX: usize = 10_000;
/// Of each list of changed files, how many are told.
const TOLD_MAX: usize = 200;

/// Whether programs can be confined on this machine at all. Blocks.
pub(super) fn possible(machine: &Machine) -> Result<()> {
    let cannot = |error: sandbox::Error| Error::new(Code::Unavailable, error.to_string()).hint("`deskmate doctor` tells which bounds this machine keeps");
    python_spec("").map_err(cannot)?;
    match machine.runner.missing(Network::None).map_err(cannot)? {
        missing if missing.is_empty() => Ok(()),
        missing => Err(cannot(sandbox::Error::Refused { missing })),
    }
}

/// The one step of a program.
pub(crate) fn step(machine: &Machine, root: Option<&Root>, program: &Program) -> Result<Step> {
    if let Some(root) = root {
        Granted::find(machine, root, program)?;
    }
    let exact = serde_json::to_value(program).map_err(|error| Error::conflict(format!("the step cannot be written: {error}")))?;
    Ok(Step {
        action: Action::Run,
        undoes: None,
        was: None,
        from: None,
        to: None,
        exact,
        diff: Some(program.code.clone()),
        irreversible: Some("what a program did is not taken back".to_owned()),
        warning: None,
        blocked: None,
        bytes: program.code.len() as u64,
    })
}

/// Runs a program, once. After a crash (`again`) nobody knows how far it came, and it does not run a second time. Blocks.
pub(crate) fn run(machine: &Machine, root: Option<&Root>, step: &Step, again: bool, quit: &Stop) -> StepOutcome {
    if again {
        return StepOutcome::new(StepState::Unclear, Some("the desk ended while it may have run; it is not run again".to_owned()));
    }
    match prepare(machine, root, step) {
        Ok((spec, granted)) => confined(machine, &spec, granted.as_ref(), quit),
        Err(error) => StepOutcome::new(StepState::Failed, Some(error.message)),
    }
}

fn prepare(machine: &Machine, root: Option<&Root>, step: &Step) -> Result<(Spec, Option<Granted>)> {
    let program: Program = serde_json::from_value(step.exact.clone()).map_err(|_| Error::conflict("the step is unreadable"))?;
    let granted = root.map(|root| Granted::find(machine, root, &program)).transpose()?;
    let mut spec = python_spec(&program.code).map_err(|error| Error::conflict(error.to_string()))?;
    spec.limits.wall_ms = u64::from(program.timeout_seconds) * 1_000;
    spec.limits.cpu_seconds = u64::from(program.timeout_seconds);
    spec.limits.output = OUTPUT_BYTES;
    if let Some(granted) = &granted {
        spec.read_only.extend(granted.read.iter().cloned());
        spec.read_write.extend(granted.write.iter().cloned());
        spec.meant.clone_from(&granted.meant);
        spec.environment.insert("WORKSPACE".to_owned(), granted.folder.to_string_lossy().into_owned());
    }
    Ok((spec, granted))
}

fn confined(machine: &Machine, spec: &Spec, granted: Option<&Granted>, quit: &Stop) -> StepOutcome {
    let base = granted.map(|granted| &*granted.base);
    let before = granted.and_then(Granted::listing);
    let outcome = match machine.runner.run(spec, b"", quit) {
        Ok(outcome) => outcome,
        // Only here it may have run.
        Err(sandbox::Error::Lost { why }) => return StepOutcome::new(StepState::Unclear, Some(beneath(base, &why))),
        Err(error) => return StepOutcome::new(StepState::Failed, Some(beneath(base, &error.to_string()))),
    };
    let (ended, exit_code, note) = match outcome.ended {
        Ended::Exited { code: 0 } => ("exited", Some(0), None),
        Ended::Exited { code } => ("exited", Some(code), Some(format!("it ended with exit code {code}"))),
        Ended::Signalled { signal } => ("signalled", None, Some(format!("it was ended by signal {signal}"))),
        Ended::TimedOut => ("timed_out", None, Some("it took too long and was ended, with all that it had started".to_owned())),
        Ended::CpuTime => ("cpu_time", None, Some("it used more processor time than allowed and was ended".to_owned())),
        Ended::Memory => ("memory", None, Some("it held more memory than allowed and was ended".to_owned())),
        Ended::Disk => ("disk", None, Some("it wrote more than allowed and was ended".to_owned())),
        Ended::Stopped => ("stopped", None, Some("somebody stopped it".to_owned())),
    };
    let (written, removed, all_listed) = match granted {
        None => (Vec::new(), Vec::new(), true),
        Some(granted) => changed(before, granted.listing()),
    };
    let ran = Ran {
        ended: ended.to_owned(),
        exit_code,
        stdout: text(&outcome.stdout, base),
        stdout_truncated: outcome.stdout.truncated,
        stderr: text(&outcome.stderr, base),
        stderr_truncated: outcome.stderr.truncated,
        written,
        removed,
        all_listed,
        wall_ms: outcome.wall_ms,
        cpu_ms: outcome.cpu_ms,
    };
    let state = if note.is_none() { StepState::Done } else { StepState::Failed };
    StepOutcome { ran: Some(ran), ..StepOutcome::new(state, note) }
}

/// What the sandbox and the program say, which go by paths of the machine: those beneath the root as whoever sees the step knows them.
/// What only looks like the root's path, as a part of another path or name, stays.
fn beneath(base: Option<&Path>, text: &str) -> String {
    let Some(base) = base.map(Path::to_string_lossy).filter(|base| base.len() > 1) else { return text.to_owned() };
    let names = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let (mut told, mut from) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(&*base) {
        let (before, behind) = (text.get(..at).unwrap_or_default(), text.get(at + base.len()..).unwrap_or_default());
        if before.ends_with(|letter| names(letter) || letter == '/') || behind.starts_with(names) {
            continue;
        }
        told.push_str(before.get(from..).unwrap_or_default());
        let is_folder = behind.starts_with('/');
        told.push_str(if is_folder { "" } else { "the root" });
        from = at + base.len() + usize::from(is_folder);
    }
    told.push_str(text.get(from..).unwrap_or_default());
    told
}

/// What was printed, as text that every store takes.
fn text(captured: &Captured, base: Option<&Path>) -> String {
    beneath(base, &String::from_utf8_lossy(&captured.bytes).replace('\0', "\u{fffd}"))
}

/// What a program is given of a root.
struct Granted {
    root: files::Root,
    /// Where the root lies.
    base: PathBuf,
    folder: PathBuf,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    /// What all of these are, so that nothing else is given in their place.
    meant: Vec<Meant>,
    /// The folders that it may change, relative to the root.
    changeable: Vec<String>,
}

impl Granted {
    /// The folders on this machine. The sandbox goes by their paths, so each must lead, without any link, to the very folder
    /// that is found beneath the root, and the sandbox looks again once it has hold of it; and none may hold what the root
    /// withholds, or what is the desk's own.
    fn find(machine: &Machine, root: &Root, program: &Program) -> Result<Self> {
        let open = machine.root(root)?;
        let away = |error: std::io::Error| Error::new(Code::Unavailable, format!("the root {} cannot be looked at: {}", root.name, error.kind()));
        let base = open.real().to_owned();
        let own: Vec<PathBuf> = machine.own().iter().filter_map(|path| std::fs::canonicalize(path).ok()).collect();
        let mut meant = Vec::new();
        let mut find = |path: &String| -> Result<PathBuf> {
            let found = open.identify(path, false).map_err(fault)?;
            let place = base.join(path);
            let meta = std::fs::symlink_metadata(&place).map_err(away)?;
            if found.kind != Kind::Folder || (meta.dev(), meta.ino()) != (found.dev, found.ino) || std::fs::canonicalize(&place).map_err(away)? != place {
                return Err(Error::invalid("path", format!("{path} is not a folder, or lies behind a link")));
            }
            if own.iter().any(|own| own.starts_with(&place) || place.starts_with(own)) {
                return Err(Error::forbidden(format!("{path} holds the desk's own data")));
            }
            withholds_nothing(root, &open, path)?;
            meant.push(Meant { path: place.clone(), dev: found.dev, ino: found.ino });
            Ok(place)
        };
        let read = program.read.iter().map(&mut find).collect::<Result<_>>()?;
        let write = program.write.iter().map(&mut find).collect::<Result<_>>()?;
        let folder = if program.folder.is_empty() { base.clone() } else { base.join(&program.folder) };
        Ok(Self { folder, root: open, base, read, write, meant, changeable: program.write.clone() })
    }

    /// What lies in the folders that may be changed; `None` if that is too much.
    fn listing(&self) -> Option<BTreeMap<String, Identity>> {
        let mut all = BTreeMap::new();
        for path in &self.changeable {
            let spec = ListSpec { path: path.clone(), depth: usize::MAX, hidden: true, ignored: true, limit: COMPARED_MAX, ..ListSpec::default() };
            let listing = files::list(&self.root, &spec, &Watch::default()).ok().filter(|listing| listing.next.is_none())?;
            all.extend(listing.entries.into_iter().filter(|entry| entry.identity.kind != Kind::Folder).map(|entry| (entry.path, entry.identity)));
        }
        Some(all)
    }
}

/// Refuses a folder with something in it that is not there for anybody: as many entries are seen with the root's globs as
/// without them, or not.
fn withholds_nothing(root: &Root, open: &files::Root, path: &str) -> Result<()> {
    if root.deny.is_empty() {
        return Ok(());
    }
    let spec = RootSpec { name: root.name.clone(), path: open.real().to_owned(), access: files::Access::Read, deny: Vec::new(), own: Vec::new() };
    let whole = open.reopen(&spec).map_err(fault)?;
    let count = |root: &files::Root| {
        let spec = ScanSpec { path: path.to_owned(), ..ScanSpec::default() };
        let mut each = |_: files::Scanned<'_>| std::ops::ControlFlow::Continue(());
        files::scan(root, &spec, &Watch::default(), &mut each).map(|seen| seen.entries).map_err(fault)
    };
    if count(&whole)? == count(open)? {
        return Ok(());
    }
    Err(Error::forbidden(format!("{path} holds something that this root withholds; name folders that do not")))
}

/// Files that are new or other, files that are gone, and whether these are all.
fn changed(before: Option<BTreeMap<String, Identity>>, after: Option<BTreeMap<String, Identity>>) -> (Vec<String>, Vec<String>, bool) {
    let (Some(before), Some(after)) = (before, after) else { return (Vec::new(), Vec::new(), false) };
    let mut written: Vec<String> = after.iter().filter(|(path, is)| before.get(*path) != Some(*is)).map(|(path, _)| path.clone()).collect();
    let mut removed: Vec<String> = before.into_keys().filter(|path| !after.contains_key(path)).collect();
    let all = written.len() <= TOLD_MAX && removed.len() <= TOLD_MAX;
    written.truncate(TOLD_MAX);
    removed.truncate(TOLD_MAX);
    (written, removed, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_sandbox_says_tells_no_path_of_the_machine() {
        let base = Some(Path::new("/srv/notes"));
        assert_eq!(beneath(base, "granting /srv/notes/in/data: it is not there"), "granting in/data: it is not there");
        assert_eq!(beneath(base, "/srv/notes: it is not there"), "the root: it is not there");
        assert_eq!(beneath(base, "/usr/bin/python3: it is not there"), "/usr/bin/python3: it is not there");
        assert_eq!(beneath(None, "no folder"), "no folder");
        assert_eq!(beneath(base, "cp /srv/notes/a \"/srv/notes/b\" /srv/notes"), "cp a \"b\" the root");
        assert_eq!(beneath(base, "PATH=/srv/notes:/srv/notes/bin"), "PATH=the root:bin");
        for other in [
            "s3://bucket/srv/notes/a.csv",
            "/srv/notes-old/x",
            "/srv/notes.bak",
            "/srv/notes_2/x",
            "/srv/notes2",
            "/srv/notesé",
            "-/srv/notes/x",
            "x/srv/notes",
        ] {
            assert_eq!(beneath(base, other), other);
        }
    }
}
