//! Steps of plans: doing them, finding out after a crash whether they were done, and taking them back.

use deskmate_core::workspace::plan::{Action, Step, StepOutcome, StepState};
use deskmate_hands::files::{self, Back, Code, Done, Fault, Probe};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a step that takes another one back holds: that one, and what came of it.
#[derive(Serialize, Deserialize)]
pub(super) struct Undoing {
    pub(super) step: files::Step,
    pub(super) done: Done,
}

/// Does a step. After a crash (`again`: since when, in microseconds) it is first looked whether it was done already.
pub(crate) fn act(root: &files::Root, step: &Step, again: Option<i64>) -> StepOutcome {
    // Nobody approved it as something that is done.
    if let Some(why) = &step.blocked {
        return StepOutcome::new(StepState::Skipped, Some(why.clone()));
    }
    if step.action == Action::Undo {
        return match serde_json::from_value::<Undoing>(step.exact.clone()) {
            Ok(undoing) => take_back(root, &undoing, again.is_some()),
            Err(_) => failed("the step is unreadable".to_owned()),
        };
    }
    let Ok(exact) = serde_json::from_value::<files::Step>(step.exact.clone()) else { return failed("the step is unreadable".to_owned()) };
    if let Some(since_us) = again {
        match files::probe(root, &exact, Some(since_us.saturating_mul(1_000))) {
            Ok(Probe::NotDone) => {}
            Ok(Probe::Done(done)) => return done_with(&done),
            Ok(Probe::Unclear(why)) => return unclear(why),
            Err(fault) => return unclear(fault.message),
        }
    }
    match files::apply(root, &exact) {
        Ok(done) => done_with(&done),
        Err(fault) => stopped(fault),
    }
}

/// Takes a step back. It is undone when it looks as if it had never been done. Where that is not clear it is tried: what is
/// undone is known by what it is, and left alone if it is something else.
fn take_back(root: &files::Root, undoing: &Undoing, again: bool) -> StepOutcome {
    let mut unclear_why = None;
    if again {
        match files::probe(root, &undoing.step, None) {
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
    let (exact, blocked) = match (outcome.state, exact, done) {
        (StepState::Done, Some(step), Some(done)) => {
            let blocked = back.check(root, &done).err();
            (serde_json::to_value(Undoing { step, done }).ok()?, blocked)
        }
        (StepState::Done, ..) => (Value::Null, Some("what taking it back needs was not kept".to_owned())),
        (StepState::Unclear, ..) => (Value::Null, Some("nobody knows whether it was done".to_owned())),
        (StepState::Skipped | StepState::Failed, ..) => return None,
    };
    let (from, to) = (step.to.clone(), step.from.clone());
    Some(Step { action: Action::Undo, from, to, exact, diff: None, irreversible: None, warning: step.warning.clone(), blocked, bytes: step.bytes })
}
