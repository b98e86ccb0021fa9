//! Which plans a caller reaches whose client narrows itself to folders: those of which nothing lies beyond them.

use super::super::reach::Reach;
use super::super::{place, root};
use super::make;
use super::rows::{self, Plan};
use crate::Result;
use crate::call::Cx;

/// Refuses a plan that goes beyond the folders that the caller is narrowed to: what it says of files is not for that caller.
pub(super) fn check(cx: &mut Cx<'_, '_>, plan: &Plan) -> Result<()> {
    if reached(cx, plan)? { Ok(()) } else { Err(place::outside(cx)?) }
}

/// Whether nothing of a plan lies beyond the folders that the caller is narrowed to: all that was asked for lies in them, or every step
/// that was made of it does.
pub(super) fn reached(cx: &mut Cx<'_, '_>, plan: &Plan) -> Result<bool> {
    let Some(folders) = narrowed(cx, plan)? else { return Ok(true) };
    Ok(plan.asked().is_ok_and(|ask| ask.lies_in(&folders)) || steps_lie_in(cx, plan, &folders)?)
}

/// Refuses steps that go beyond these folders, though they may be approved: they were asked for without that, or with other folders.
pub(super) fn check_steps(cx: &mut Cx<'_, '_>, plan: &Plan) -> Result<()> {
    match narrowed(cx, plan)? {
        Some(folders) if !steps_lie_in(cx, plan, &folders)? => Err(place::outside(cx)?),
        _ => Ok(()),
    }
}

/// The folders beneath a plan's root that are left to the caller; `None` if it is all of it, or if the plan has no root.
fn narrowed(cx: &mut Cx<'_, '_>, plan: &Plan) -> Result<Option<Vec<String>>> {
    if cx.within.is_none() || plan.root.is_empty() {
        return Ok(None);
    }
    // Of a root that is not in force any more nobody knows where it lay.
    let root = root::root_named(cx, &plan.root)?;
    Ok(match root.map(|root| Reach::of(cx, &root)) {
        Some(Reach::Whole) => None,
        Some(Reach::Parts(folders)) => Some(folders),
        None => Some(Vec::new()),
    })
}

/// Whether a plan has steps, and all of them lie in these folders.
fn steps_lie_in(cx: &mut Cx<'_, '_>, plan: &Plan, folders: &[String]) -> Result<bool> {
    let parts = if folders.is_empty() { 0 } else { make::parts(cx, &plan.id)? };
    for number in 0..parts {
        let part = rows::part(cx.tx, &plan.id, number)?.filter(|part| part.body.is_some());
        let Some(part) = part else { return Ok(false) };
        if !part.steps(&plan.id)?.iter().all(|step| step.lies_in(folders)) {
            return Ok(false);
        }
    }
    Ok(parts > 0)
}
