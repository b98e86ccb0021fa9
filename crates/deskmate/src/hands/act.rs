//! Steps of plans: doing them, finding out after a crash whether they were done, and taking them back.

use deskmate_core::workspace::plan::{Action, Step, StepOutcome, StepState};
use deskmate_hands::files::{self, Back, Code, Done, Fault, Probe};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What came of doing a step on the disk.
type Did = Result<Done, Fault>;

/// What a step that takes another one back holds: that one, and what came of it.
#[derive(Serialize, Deserialize)]
pub(super) struct Undoing {
    pub(super) step: files::Step,
    pub(super) done: Done,
}

/// Does a step. After a crash (`again`: since when, in microseconds) it is first looked whether it was done already.
pub(crate) fn act(root: &files::Root, step: &Step, again: Option<i64>) -> StepOutcome {
    act_by(root, step, again, files::apply)
}

fn act_by(root: &files::Root, step: &Step, again: Option<i64>, apply: impl FnOnce(&files::Root, &files::Step) -> Did) -> StepOutcome {
    // Nobody approved it as something that is done.
    if let Some(why) = &step.blocked {
        return StepOutcome::new(StepState::Skipped, Some(why.clone()));
    }
    if step.action == Action::Undo {
        return match serde_json::from_value::<Undoing>(step.exact.clone()) {
            Ok(undoing) => take_back(root, &undoing, again),
            Err(_) => failed("the step is unreadable".to_owned()),
        };
    }
    let Ok(exact) = serde_json::from_value::<files::Step>(step.exact.clone()) else { return failed("the step is unreadable".to_owned()) };
    // What the first attempt left half done is ended, or taken back.
    if let Some(known) = again.and_then(|since_us| known(root, files::resume(root, &exact, Some(nanoseconds(since_us))))) {
        return known;
    }
    match apply(root, &exact) {
        Ok(done) => match again {
            Some(since_us) => found_done(root, &files::with_folders_since(root, done, nanoseconds(since_us))),
            None => done_with(&done),
        },
        // A worker that was held up, and does not know yet that this is not its own any more, may have done it since that look.
        Err(fault) if matches!(fault.code, Code::NotFound | Code::Exists) => {
            let done = again.and_then(|since_us| known(root, files::probe(root, &exact, Some(nanoseconds(since_us)))));
            done.unwrap_or_else(|| stopped(fault))
        }
        Err(fault) => stopped(fault),
    }
}

/// What came of a step that may have been done before; `None` if it was not.
fn known(root: &files::Root, found: Result<Probe, Fault>) -> Option<StepOutcome> {
    match found {
        Ok(Probe::NotDone) => None,
        Ok(Probe::Done(done)) => Some(found_done(root, &done)),
        Ok(Probe::Unclear(why)) => Some(unclear(why)),
        Err(fault) => Some(unclear(fault.message)),
    }
}

fn nanoseconds(microseconds: i64) -> i64 {
    microseconds.saturating_mul(1_000)
}

/// What came of a step that was begun before a crash.
fn found_done(root: &files::Root, done: &Done) -> StepOutcome {
    StepOutcome { note: not_known(root, done), ..done_with(done) }
}

/// What is not known any more of a step that was begun before a crash: which folders were made for it, where the file system does not keep how
/// old they are.
fn not_known(root: &files::Root, done: &Done) -> Option<String> {
    let (Done::Moved { to, .. } | Done::Copied { to, .. } | Done::Written { to, .. } | Done::Restored { to, .. }) = done else { return None };
    let ageless = root.identify("", false).is_ok_and(|folder| folder.born_ns.is_none());
    (ageless && to.contains('/')).then(|| "folders that were made for it are not known, and stay when it is taken back".to_owned())
}

/// Takes a step back. It is undone when it looks as if it had never been done. Where that is not clear it is tried: what is
/// undone is known by what it is, and left alone if it is something else.
fn take_back(root: &files::Root, undoing: &Undoing, again: Option<i64>) -> StepOutcome {
    let mut unclear_why = None;
    if let Some(since_us) = again {
        let resumed = files::resume_undo(root, &undoing.done);
        // What came back from another device is new where it had been.
        let found = resumed.and_then(|back| if back { Ok(Probe::NotDone) } else { files::probe(root, &undoing.step, Some(nanoseconds(since_us))) });
        match found {
            Ok(Probe::NotDone) => {
                let left = files::settle(root, &undoing.done).err();
                return StepOutcome::new(StepState::Done, left.map(|fault| format!("something of it may be left beside it: {}", fault.message)));
            }
            Ok(Probe::Done(_)) => {}
            Ok(Probe::Unclear(why)) => unclear_why = Some(why),
            Err(fault) => unclear_why = Some(fault.message),
        }
    }
    match (files::undo(root, &undoing.done), unclear_why) {
        (Ok(()), _) => StepOutcome::new(StepState::Done, None),
        (Err(_), Some(why)) => unclear(why),
        (Err(fault), None) => stopped(fault),
    }
}

/// What is not any more what was approved is left as it is; the rest did not work.
fn stopped(fault: Fault) -> StepOutcome {
    let skipped = matches!(fault.code, Code::Changed | Code::NotFound | Code::Exists | Code::NotEmpty | Code::ThroughLink | Code::Escapes);
    StepOutcome::new(if skipped { StepState::Skipped } else { StepState::Failed }, Some(fault.message))
}

fn done_with(done: &Done) -> StepOutcome {
    StepOutcome { undo: serde_json::to_value(done).ok(), ..StepOutcome::new(StepState::Done, None) }
}

fn failed(note: String) -> StepOutcome {
    StepOutcome::new(StepState::Failed, Some(note))
}

fn unclear(note: String) -> StepOutcome {
    StepOutcome::new(StepState::Unclear, Some(note))
}

/// The step that takes another one back, if that was done. Whether it can be taken back as things are now is looked up, and
/// told with it if not.
pub(super) fn reverse(root: &files::Root, back: &mut Back, step: &Step, outcome: &StepOutcome) -> Option<Step> {
    let done: Option<Done> = outcome.undo.clone().and_then(|undo| serde_json::from_value(undo).ok());
    let exact: Option<files::Step> = serde_json::from_value(step.exact.clone()).ok();
    let mut warnings: Vec<String> = step.warning.iter().cloned().collect();
    let (exact, blocked) = match (outcome.state, exact, done) {
        (StepState::Done, Some(step), Some(done)) => {
            let blocked = match back.check(root, &done) {
                Ok(warning) => {
                    warnings.extend(outcome.note.iter().cloned().chain(warning));
                    None
                }
                Err(why) => Some(why),
            };
            (serde_json::to_value(Undoing { step, done }).ok()?, blocked)
        }
        (StepState::Done, ..) => (Value::Null, Some("what taking it back needs was not kept".to_owned())),
        (StepState::Unclear, ..) => (Value::Null, Some("nobody knows whether it was done".to_owned())),
        (StepState::Skipped | StepState::Failed, ..) => return None,
    };
    // What stays where it is has its place as a target; what was copied, written or restored only goes.
    let (from, to) = match step.action {
        Action::Replace => (None, step.to.clone()),
        Action::Copy | Action::Restore => (step.to.clone(), None),
        _ => (step.to.clone(), step.from.clone()),
    };
    let diff = step.diff.as_deref().filter(|_| step.action == Action::Replace).map(reversed);
    let warning = (!warnings.is_empty()).then(|| warnings.join("; "));
    Some(Step { action: Action::Undo, undoes: Some(step.action), from, was: None, to, exact, diff, irreversible: None, warning, blocked, bytes: step.bytes })
}

/// What changes in a text when a change is taken back.
fn reversed(diff: &str) -> String {
    let (mut out, mut taken, mut added) = (String::new(), String::new(), String::new());
    let mut adds = None;
    for (at, line) in diff.split_inclusive('\n').enumerate() {
        let rest = line.get(1..).unwrap_or_default();
        match line.as_bytes().first() {
            Some(b'+') if at > 1 => {
                taken.push('-');
                taken.push_str(rest);
                adds = Some(false);
            }
            Some(b'-') if at > 1 => {
                added.push('+');
                added.push_str(rest);
                adds = Some(true);
            }
            // It says that the line before has no end.
            Some(b'\\') if adds == Some(false) => taken.push_str(line),
            Some(b'\\') if adds == Some(true) => added.push_str(line),
            first => {
                out.push_str(&std::mem::take(&mut taken));
                out.push_str(&std::mem::take(&mut added));
                adds = None;
                match (first, hunk(line)) {
                    (Some(b'@'), Some(turned)) => out.push_str(&turned),
                    _ => out.push_str(line),
                }
            }
        }
    }
    out + &taken + &added
}

/// `@@ -1,3 +1,2 @@` as `@@ -1,2 +1,3 @@`.
fn hunk(line: &str) -> Option<String> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, rest) = rest.split_once(' ')?;
    Some(format!("@@ -{new} +{old} {rest}"))
}

#[cfg(test)]
mod tests {
    use deskmate_hands::files::{Access, RootSpec};

    use super::*;

    fn root() -> (tempfile::TempDir, files::Root) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = open(&folder, Access::Write);
        (folder, root)
    }

    fn open(folder: &tempfile::TempDir, access: Access) -> files::Root {
        let spec = RootSpec { name: "notes".to_owned(), path: folder.path().to_owned(), access, deny: Vec::new(), own: Vec::new() };
        files::Root::open(&spec).expect("a root")
    }

    fn step(action: Action, exact: &files::Step) -> Step {
        let exact = serde_json::to_value(exact).expect("a step");
        Step { action, undoes: None, from: None, was: None, to: None, exact, diff: None, irreversible: None, warning: None, blocked: None, bytes: 0 }
    }

    #[test]
    fn what_changes_in_a_text_is_turned_round() {
        let (old, new) = ("a\nb\nc\nd\ne\nf\ng\nh\ni\nend", "a\nB\nb2\nc\nd\ne\nf\ng\nh\ni\nEnd\n");
        let diff = |old: &str, new: &str| similar::TextDiff::from_lines(old, new).unified_diff().context_radius(3).header("x", "x").to_string();
        assert_eq!(reversed(&diff(old, new)), diff(new, old));
        assert_eq!(reversed(&diff("", "- a\n")), diff("- a\n", ""));
    }

    #[test]
    fn folders_of_an_attempt_that_was_cut_short_go_with_what_is_taken_back() {
        let (folder, root) = root();
        if root.identify("", false).expect("a folder").born_ns.is_none() {
            return;
        }
        let at = |path: &str| folder.path().join(path);
        std::fs::write(at("a"), "one").expect("written");
        std::fs::write(at("b"), "two").expect("written");
        let away = files::apply(&root, &files::Step::trash(&root, "b", 0).expect("a way to the trash")).expect("trashed");
        let Done::Trashed { id, .. } = &away else { panic!("{away:?}") };
        let steps = [
            (Action::Move, files::Step::move_to(&root, "a", "x/y/a").expect("a move")),
            (Action::Copy, files::Step::copy_to(&root, "a", "x/y/a").expect("a copy")),
            (Action::Write, files::Step::write_new(&root, "x/y/new", b"new".to_vec(), None).expect("a file")),
            (Action::MakeFolder, files::Step::make_folder(&root, "x/y").expect("a folder")),
            (Action::Restore, files::Step::restore(&root, id, Some("x/y/b")).expect("a way back")),
        ];
        for (action, exact) in steps {
            // The first attempt ended after it had made a folder.
            std::fs::create_dir(at("x")).expect("a folder");
            let outcome = act(&root, &step(action, &exact), Some(0));
            assert_eq!(outcome.state, StepState::Done, "{outcome:?}");
            let done: Done = serde_json::from_value(outcome.undo.expect("what undoing needs")).expect("what was done");
            // Taking it back is cut short too, after the innermost folder went.
            if let Done::FolderMade { path, .. } = &done {
                std::fs::remove_dir(at(path)).expect("removed");
                let undone = take_back(&root, &Undoing { step: exact, done }, Some(0));
                assert_eq!(undone.state, StepState::Done, "{undone:?}");
            } else {
                files::undo(&root, &done).expect("taken back");
            }
            assert!(!at("x").exists(), "{action:?} left a folder");
        }
    }

    #[test]
    fn what_was_done_before_a_root_was_closed_for_changes_was_done() {
        let (folder, root) = root();
        let read_only = open(&folder, Access::Read);
        std::fs::write(folder.path().join("a"), "one").expect("written");
        let exact = files::Step::move_to(&root, "a", "b").expect("a move");
        let moved = step(Action::Move, &exact);
        let refused = act(&read_only, &moved, Some(0));
        assert_eq!(refused.state, StepState::Failed, "it was not done, and is not now: {refused:?}");
        let done = files::apply(&root, &exact).expect("moved");
        let outcome = act(&read_only, &moved, Some(0));
        assert_eq!((outcome.state, &outcome.undo), (StepState::Done, &serde_json::to_value(&done).ok()), "{outcome:?}");
        let undoing = Undoing { step: exact, done };
        assert_eq!(take_back(&read_only, &undoing, Some(0)).state, StepState::Failed);
        files::undo(&root, &undoing.done).expect("taken back");
        let back = take_back(&read_only, &undoing, Some(0));
        assert_eq!(back.state, StepState::Done, "{back:?}");
    }

    #[test]
    fn what_another_worker_does_in_the_last_moment_was_done() {
        let (folder, root) = root();
        std::fs::write(folder.path().join("a"), "one").expect("written");
        let moved = files::Step::move_to(&root, "a", "b").expect("a move");
        let written = files::Step::write_new(&root, "c", b"two".to_vec(), None).expect("a file");
        for (action, exact) in [(Action::Move, moved), (Action::Write, written)] {
            // It is done between the look whether it was and the doing of it.
            let late = |root: &files::Root, exact: &files::Step| {
                files::apply(root, exact).expect("the other one does it");
                files::apply(root, exact)
            };
            let outcome = act_by(&root, &step(action, &exact), Some(0), late);
            assert_eq!(outcome.state, StepState::Done, "{outcome:?}");
            assert!(outcome.undo.is_some(), "it can be taken back: {outcome:?}");
        }
        // Nobody else is at what is done for the first time: then it is somebody else's doing.
        std::fs::write(folder.path().join("d"), "one").expect("written");
        let exact = files::Step::move_to(&root, "d", "e").expect("a move");
        std::fs::remove_file(folder.path().join("d")).expect("removed");
        assert_eq!(act(&root, &step(Action::Move, &exact), None).state, StepState::Skipped);
    }
}
