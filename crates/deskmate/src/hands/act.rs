//! Steps of plans: doing them, finding out after a crash whether they were done, and taking them back.

use deskmate_core::workspace::plan::{Action, Step, StepOutcome, StepState};
use deskmate_hands::files::{self, Code, Done, Fault, Probe};
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
            Ok(Probe::NotDone) => return StepOutcome::new(StepState::Done, None),
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

/// The step that takes another one back, if that was done and can be.
pub(super) fn reverse(step: &Step, outcome: &StepOutcome) -> Option<Step> {
    let done: Done = serde_json::from_value(outcome.undo.clone()?).ok()?;
    // The undoing of an undoing is made anew from what is there.
    let exact: files::Step = serde_json::from_value(step.exact.clone()).ok()?;
    if matches!(done, Done::Purged { .. }) {
        return None;
    }
    let exact: Value = serde_json::to_value(Undoing { step: exact, done }).ok()?;
    Some(Step { action: Action::Undo, from: step.to.clone(), to: step.from.clone(), exact, diff: None, irreversible: None, bytes: step.bytes })
}
