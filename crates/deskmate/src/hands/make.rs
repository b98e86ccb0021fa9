//! What is asked for becomes steps: here the files are looked at, and what they are is written down with each step.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use deskmate_core::limits::{PLAN_PART_BYTES, PLAN_PART_STEPS, PLAN_STEPS_MAX};
use deskmate_core::workspace::plan::{Action, Ask, Step, StepOutcome, TextEdit, Wanted};
use deskmate_core::{Error, Result};
use deskmate_hands::files::{self, Back, Blob, Entries, How, Mounts, OrganizeSpec, Organizer, Part, ScanSpec, Watch};
use serde_json::Value;
use similar::TextDiff;

use super::act::reverse;
use super::document::Document;
use super::fault;

/// About what a step takes besides its paths and texts.
const STEP_BYTES: usize = 450;
/// Problems that are told of one plan.
const PROBLEMS_MAX: usize = 20;

/// Where steps go, some hundred at a time.
pub(crate) struct Parts<'p> {
    steps: Vec<Step>,
    bytes: usize,
    give: &'p mut dyn FnMut(Vec<Step>) -> Result<()>,
}

impl<'p> Parts<'p> {
    pub(crate) fn new(give: &'p mut dyn FnMut(Vec<Step>) -> Result<()>) -> Self {
        Self { steps: Vec::new(), bytes: 0, give }
    }

    pub(crate) fn push(&mut self, step: Step) -> Result<()> {
        let texts = step.diff.as_ref().map_or(0, String::len) + contents(&step.exact);
        // Both paths stand in the step and in what is done exactly.
        let paths = step.from.as_ref().map_or(0, String::len) + step.to.as_ref().map_or(0, String::len);
        let bytes = STEP_BYTES + 2 * paths + texts;
        if self.steps.len() >= PLAN_PART_STEPS || (self.bytes + bytes > PLAN_PART_BYTES && !self.steps.is_empty()) {
            self.give()?;
        }
        self.bytes += bytes;
        self.steps.push(step);
        Ok(())
    }

    fn give(&mut self) -> Result<()> {
        self.bytes = 0;
        (self.give)(std::mem::take(&mut self.steps))
    }

    /// Hands over what is left.
    pub(crate) fn end(mut self) -> Result<()> {
        if self.steps.is_empty() { Ok(()) } else { self.give() }
    }
}

/// About how many bytes of content stand in what is done, or in what an undoing takes back.
fn contents(exact: &Value) -> usize {
    let one = |value: Option<&Value>| value.map_or(0, |content| content.to_string().len());
    one(exact.get("content")) + one(exact.pointer("/step/content"))
}

/// A moment, a way to stop, and who is told how far it has come.
pub(crate) struct Now<'n> {
    pub(crate) at_us: i64,
    pub(crate) stop: &'n AtomicBool,
    pub(crate) tell: &'n (dyn Fn(files::Progress) + Sync),
}

/// Makes the steps of everything but undoings and programs. Blocks.
pub(crate) fn make(root: &files::Root, ask: &Ask, now: &Now<'_>, parts: &mut Parts<'_>) -> Result<()> {
    match ask {
        Ask::Organize { path, policy, rules, recursive } => {
            let how = match policy.as_str() {
                "by_date" => How::Date,
                "by_size" => How::Size,
                "rules" => How::Rules(rules.iter().map(|rule| files::Rule { glob: rule.glob.clone(), folder: rule.folder.clone() }).collect()),
                _ => How::Extension,
            };
            organize(root, &OrganizeSpec { path: path.clone(), how, deep: *recursive, keep_folders: false }, now, parts)
        }
        Ask::Steps { steps } => single(root, steps, now, parts),
        Ask::Document { path, format, content } => document(root, path, format, content, parts),
        Ask::Undo { .. } | Ask::Python { .. } => Err(Error::conflict("this is not made of files")),
    }
}

/// Makes the steps that take back others, the last one first. `back` holds what was found out about those before.
pub(crate) fn undo(root: &files::Root, back: &mut Back, steps: &[Step], outcomes: &[StepOutcome], parts: &mut Parts<'_>) -> Result<()> {
    for (step, outcome) in steps.iter().zip(outcomes).rev() {
        if let Some(step) = reverse(root, back, step, outcome) {
            parts.push(step)?;
        }
    }
    Ok(())
}

fn organize(root: &files::Root, wanted: &OrganizeSpec, now: &Now<'_>, parts: &mut Parts<'_>) -> Result<()> {
    let watch = Watch { cancel: Some(now.stop), progress: Some(now.tell) };
    let mut entries = Entries::default();
    // With what is hidden: a name that is taken is taken, seen or not.
    let spec = ScanSpec { path: wanted.path.clone(), hidden: true, ..ScanSpec::default() };
    let most = usize::try_from(PLAN_STEPS_MAX).unwrap_or(usize::MAX);
    let mut each = |found: files::Scanned<'_>| {
        entries.push(found.path, &found.identity);
        if entries.len() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    files::scan(root, &spec, &watch, &mut each).map_err(fault)?;
    if entries.len() > most {
        return Err(Error::invalid("root", format!("holds more than {most} files: take a smaller folder")));
    }
    let mut mounts = Mounts::default();
    // Moves come one at a time: of a long plan only its entries and some hundred steps are held.
    for planned in Organizer::new(entries, wanted).map_err(|why| Error::invalid("rules", why))?.moves() {
        let bytes = planned.identity.size;
        let mut exact = files::Step::Move { from: planned.from.clone(), to: planned.to.clone(), identity: planned.identity };
        let warning = parted(root, &mut mounts, &mut exact);
        parts.push(Step { warning, ..step(Action::Move, Some(planned.from), Some(planned.to), &exact, None, bytes)? })?;
    }
    Ok(())
}

fn step(action: Action, from: Option<String>, to: Option<String>, exact: &files::Step, diff: Option<String>, bytes: u64) -> Result<Step> {
    let exact = serde_json::to_value(exact).map_err(|error| Error::conflict(format!("the step cannot be written: {error}")))?;
    let irreversible = (action == Action::Purge).then(|| "what leaves the trash is gone".to_owned());
    Ok(Step { action, from, to, exact, diff, irreversible, undoes: None, was: None, warning: None, blocked: None, bytes })
}

/// What is lost of a thing that goes to another file system; what it holds is written down then, too.
fn parted(root: &files::Root, mounts: &mut Mounts, exact: &mut files::Step) -> Option<String> {
    let lost = "goes to another file system as a copy: extended attributes, access lists and further names of the same file (hard links) are lost";
    mounts.take_digest(root, exact).then(|| lost.to_owned())
}

/// Every step as the caller named it; all problems are told at once.
fn single(root: &files::Root, wanted: &[Wanted], now: &Now<'_>, parts: &mut Parts<'_>) -> Result<()> {
    let mut problems = Vec::new();
    let mut before = Before::default();
    for (number, one) in (1..).zip(wanted) {
        (now.tell)(files::Progress { entries: number, bytes: 0 });
        let made = exact(root, one, now).and_then(|(exact, diff)| {
            before.fits(root, number, &exact)?;
            shown_as(root, one, exact, diff)
        });
        match made {
            Ok(step) => parts.push(step)?,
            Err(error) => problems.push(format!("step {number}: {}", error.message)),
        }
        if problems.len() >= PROBLEMS_MAX {
            break;
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::invalid("steps", problems.join("\n"))) }
}

/// A target that is there already is told while the plan is made.
fn free(root: &files::Root, to: &str, before: &Before) -> Result<()> {
    match root.stat(to) {
        Ok(_) => Err(Error::conflict(format!("{to} is there already"))),
        Err(missing) if missing.code == files::Code::NotFound => Ok(()),
        // What is in the way may be taken away by then.
        Err(missing) if missing.code == files::Code::NotAFolder && before.gone.keys().any(|gone| lies_in(to, gone)) => Ok(()),
        Err(other) => Err(fault(other)),
    }
}

/// What the steps before one take away, change and make. Each step is made of things as they are now, so one that would find them
/// otherwise by then cannot be done, and nobody has to approve it.
#[derive(Default)]
struct Before {
    /// What is not there any more, or not any more what it is, and by which step.
    gone: BTreeMap<String, u64>,
    /// The same of what lies in the trash.
    out: BTreeMap<String, u64>,
    /// What is made: by which step, and whether something can lie in it.
    made: BTreeMap<String, (u64, bool)>,
    /// Folders that come with what lies in them: where that lies now.
    brought: BTreeMap<String, String>,
}

impl Before {
    /// Takes a step in, unless those before it are in its way.
    fn fits(&mut self, root: &files::Root, number: u64, step: &files::Step) -> Result<()> {
        let (from, out, to, is_folder, goes) = match step {
            files::Step::Move { from, to, identity } => (Some(from), None, Some(to), identity.kind == files::Kind::Folder, true),
            files::Step::Copy { from, to, .. } => (Some(from), None, Some(to), false, false),
            files::Step::Write { to, .. } => (None, None, Some(to), false, false),
            files::Step::Replace { path, .. } => (Some(path), None, None, false, true),
            files::Step::MakeFolder { path } => (None, None, Some(path), true, false),
            files::Step::Trash { from, .. } | files::Step::RemoveEmptyFolder { path: from, .. } => (Some(from), None, None, false, true),
            files::Step::Restore { id, to, identity } => (None, Some(id), Some(to), identity.kind == files::Kind::Folder, true),
            files::Step::Purge { id, .. } => (None, Some(id), None, false, true),
        };
        if let Some((gone, by)) = from.and_then(|from| self.gone.iter().find(|(gone, _)| *gone == from || lies_in(from, gone))) {
            let from = from.map_or("", String::as_str);
            let which = if gone == from { from.to_owned() } else { format!("{from} lies in {gone}, which") };
            return Err(Error::conflict(format!("{which} is moved, changed or deleted by step {by} already")));
        }
        if let Some(by) = out.and_then(|id| self.out.get(id)) {
            return Err(Error::conflict(format!("this leaves the trash with step {by} already")));
        }
        if let Some(to) = to {
            if self.made.contains_key(to) {
                return Err(Error::conflict(format!("{to} is the target of another step already")));
            }
            if let Some((file, (by, _))) = self.made.iter().find(|(made, (_, is_folder))| !is_folder && lies_in(to, made)) {
                return Err(Error::conflict(format!("{to} cannot lie in {file}, which is a file after step {by}")));
            }
            if let Some((inside, (by, _))) = self.made.iter().find(|(made, _)| lies_in(made, to)) {
                return Err(Error::conflict(format!("{to} is a folder by then: step {by} makes {inside}")));
            }
            free(root, to, self)?;
            self.comes_along(root, to)?;
            self.made.insert(to.clone(), (number, is_folder));
            self.brought.extend(from.filter(|_| is_folder).map(|from| (to.clone(), from.clone())));
        }
        if goes {
            self.gone.extend(from.map(|from| (from.clone(), number)));
            self.out.extend(out.map(|id| (id.clone(), number)));
        }
        Ok(())
    }
}

impl Before {
    /// A target in a folder that is brought by a step before may come along with that.
    fn comes_along(&self, root: &files::Root, to: &str) -> Result<()> {
        let Some((folder, from)) = self.brought.iter().find(|(folder, _)| lies_in(to, folder)) else { return Ok(()) };
        let now = format!("{from}{}", to.strip_prefix(folder.as_str()).unwrap_or_default());
        let leaves = self.gone.keys().any(|gone| *gone == now || (lies_in(&now, gone) && gone != from));
        let comes = !leaves && (self.made.contains_key(&now) || root.stat(&now).is_ok());
        if comes { Err(Error::conflict(format!("{to} is there by then: it comes with {folder}"))) } else { Ok(()) }
    }
}

fn lies_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// What is done exactly, with what its source is now, and what changes in a text.
fn exact(root: &files::Root, one: &Wanted, now: &Now<'_>) -> Result<(files::Step, Option<String>)> {
    let (from, to) = (one.from.as_deref().unwrap_or_default(), one.to.as_deref().unwrap_or_default());
    let mut diff = None;
    let exact = match one.action {
        Action::Move => files::Step::move_to(root, from, to),
        Action::Copy => files::Step::copy_to(root, from, to),
        Action::MakeFolder => files::Step::make_folder(root, to),
        Action::Trash => files::Step::trash(root, from, now.at_us),
        Action::Restore => files::Step::restore(root, from, one.to.as_deref()),
        Action::Purge => files::Step::purge(root, from),
        Action::Write => {
            let text = one.text.clone().unwrap_or_default();
            diff = Some(shown(to, "", &text));
            files::Step::write_new(root, to, text.into_bytes(), None)
        }
        Action::Replace => {
            let (replaced, old) = replaced(root, to, now)?;
            let old = String::from_utf8(old).ok();
            let new = match (&one.text, &old) {
                (Some(text), _) => text.clone(),
                (None, Some(old)) => edited(to, old, &one.edits)?,
                (None, None) => return Err(Error::invalid("to", format!("{to} is not text"))),
            };
            diff = Some(old.map_or_else(|| format!("--- {to} (not text)\n{}", after(&shown(to, "", &new))), |old| shown(to, &old, &new)));
            replaced.holding(root, new.into_bytes())
        }
        Action::Undo | Action::Run => return Err(Error::invalid("action", "has an operation of its own")),
    };
    Ok((exact.map_err(fault)?, diff))
}

/// The replacement of a file, still by nothing, and what is in that file. It is bound to the file first, which is no link, and then read:
/// nothing is said of another one, and what is said of it is about the very content that it is bound to.
fn replaced(root: &files::Root, path: &str, now: &Now<'_>) -> Result<(files::Step, Vec<u8>)> {
    // What is too large is not worth a digest.
    if root.identify(path, false).is_ok_and(|found| found.kind == files::Kind::File && found.size > files::READ_MAX) {
        return Err(Error::invalid("to", format!("{path} is too large to be changed")));
    }
    let step = files::Step::replace(root, path, Vec::new(), now.at_us).map_err(fault)?;
    let old = files::read(root, path, Part::Whole, files::READ_MAX).map_err(fault)?.bytes;
    match &step {
        files::Step::Replace { identity, .. } if identity.sha256 == Some(files::digest_of(&old)) => Ok((step, old)),
        _ => Err(Error::conflict(format!("{path} was changed while this was planned: ask again"))),
    }
}

/// A step as it is approved.
fn shown_as(root: &files::Root, one: &Wanted, mut exact: files::Step, diff: Option<String>) -> Result<Step> {
    let bytes = match &exact {
        files::Step::Write { content: Blob(content), .. } | files::Step::Replace { content: Blob(content), .. } => content.len() as u64,
        files::Step::Move { identity, .. } | files::Step::Copy { identity, .. } | files::Step::Trash { identity, .. } => identity.size,
        _ => 0,
    };
    let target = match &exact {
        files::Step::Restore { to, .. } => Some(to.clone()),
        _ => one.to.clone(),
    };
    let carried = files::carries_kept(root, &exact).map(|path| format!("takes {path} along, which version control or the system keeps by itself"));
    let warnings: Vec<String> = carried.into_iter().chain(parted(root, &mut Mounts::default(), &mut exact)).collect();
    let warning = (!warnings.is_empty()).then(|| warnings.join("; "));
    let was = match &exact {
        files::Step::Restore { id, .. } | files::Step::Purge { id, .. } => files::was_at(root, id),
        _ => None,
    };
    Ok(Step { warning, was, ..step(one.action, one.from.clone(), target, &exact, diff, bytes)? })
}

/// A text with parts of it changed, each of which must be there exactly once.
fn edited(path: &str, old: &str, edits: &[TextEdit]) -> Result<String> {
    let mut text = old.to_owned();
    for (number, edit) in (1..).zip(edits) {
        match text.matches(&edit.old).count() {
            _ if edit.old.is_empty() => return Err(Error::invalid("edits", format!("edit {number} of {path} names no text"))),
            1 => text = text.replacen(&edit.old, &edit.new, 1),
            count => return Err(Error::invalid("edits", format!("the text of edit {number} is in {path} {count} times, not once"))),
        }
    }
    Ok(text)
}

/// What changes in a text, as people read it: all of it, since that is what they approve.
fn shown(path: &str, old: &str, new: &str) -> String {
    TextDiff::from_lines(old, new).unified_diff().context_radius(3).header(path, path).to_string()
}

/// A difference without its first line.
fn after(diff: &str) -> &str {
    diff.split_once('\n').map_or("", |(_, rest)| rest)
}

fn document(root: &files::Root, path: &str, format: &str, content: &Value, parts: &mut Parts<'_>) -> Result<()> {
    let Document { bytes, text, warning } = super::document::make(format, content)?;
    free(root, path, &Before::default())?;
    let size = bytes.len() as u64;
    let exact = files::Step::write_new(root, path, bytes, None).map_err(fault)?;
    parts.push(Step { warning, ..step(Action::Write, None, Some(path.to_owned()), &exact, Some(shown(path, "", &text)), size)? })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::Ordering;

    use deskmate_hands::files::{Access, RootSpec};

    use super::*;

    fn root(folder: &Path) -> files::Root {
        let spec = RootSpec { name: "notes".to_owned(), path: folder.to_owned(), access: Access::Write, deny: Vec::new(), own: Vec::new() };
        files::Root::open(&spec).unwrap()
    }

    fn replace(root: &files::Root, to: &str, text: Option<&str>, edits: &[(&str, &str)]) -> Result<(files::Step, Option<String>)> {
        let edits = edits.iter().map(|(old, new)| TextEdit { old: (*old).to_owned(), new: (*new).to_owned() }).collect();
        let wanted = Wanted { action: Action::Replace, from: None, to: Some(to.to_owned()), text: text.map(str::to_owned), edits };
        exact(root, &wanted, &Now { at_us: 0, stop: &AtomicBool::new(false), tell: &|_| {} })
    }

    #[test]
    fn a_change_is_made_of_the_content_that_it_is_bound_to() {
        let folder = tempfile::tempdir().unwrap();
        let root = root(folder.path());
        let (file, new) = (folder.path().join("a"), folder.path().join("new"));
        std::fs::write(&file, "first\n").unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for text in ["second\n", "first\n"].into_iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                    std::fs::write(&new, text).unwrap();
                    std::fs::rename(&new, &file).unwrap();
                    std::thread::yield_now();
                }
            });
            let mut made = 0;
            for _ in 0..20_000 {
                let Ok((files::Step::Replace { identity, .. }, Some(diff))) = replace(&root, "a", Some("third\n"), &[]) else { continue };
                let shown = diff.lines().find_map(|line| line.strip_prefix('-').filter(|line| !line.starts_with('-'))).unwrap().to_owned();
                if identity.sha256 != Some(files::digest_of(format!("{shown}\n").as_bytes())) {
                    stop.store(true, Ordering::Relaxed);
                    panic!("{shown} is shown, and something else would be replaced");
                }
                made += 1;
                if made == 2_000 {
                    break;
                }
            }
            stop.store(true, Ordering::Relaxed);
            assert!(made > 100, "or else nothing was tried: {made}");
        });
    }

    #[test]
    fn nothing_is_said_of_what_a_link_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "word").unwrap();
        std::os::unix::fs::symlink("secret", folder.path().join("link")).unwrap();
        let root = root(folder.path());
        let why = |edit: &str| replace(&root, "link", None, &[(edit, "x")]).unwrap_err().message;
        assert_eq!(why("word"), why("other"));
        assert!(why("word").contains("not a regular file"), "{}", why("word"));
        // What is there is changed as it is, within the bound of one step.
        let (step, diff) = replace(&root, "secret", None, &[("word", "words")]).unwrap();
        assert!(matches!(step, files::Step::Replace { content: Blob(content), .. } if content == b"words") && diff.is_some());
        assert!(replace(&root, "secret", None, &[("word", &"x".repeat(17 << 20))]).unwrap_err().message.contains("16 MiB"));
    }
}
