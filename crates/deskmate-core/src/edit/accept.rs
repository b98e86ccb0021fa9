//! Writing what a person approved: exactly that, and only while the record is as it was shown.

use super::fields::Change;
use super::hold::changes_of;
use crate::call::Cx;
use crate::request::{Bound, Request};
use crate::{Code, Error, Result, agents, bridge, identity};

/// Why a held write can no longer be done as it was shown, if so: the record changed, ended or is gone. Only reads.
pub fn stale(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Option<String>> {
    match with_target(cx, request, false) {
        Ok(()) => Ok(None),
        Err(error) if matches!(error.code, Code::Invalid | Code::NotFound | Code::Conflict | Code::Forbidden) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Writes what a person approved. The fields count as set by that person. Whoever calls it has checked that the caller
/// may decide.
pub fn accept(cx: &mut Cx<'_, '_>, request: &Request) -> Result<()> {
    with_target(cx, request, true)
}

fn with_target(cx: &mut Cx<'_, '_>, request: &Request, write: bool) -> Result<()> {
    let bound = Bound::read(request)?;
    let changes = changes_of(&bound);
    let (kind, id) = bound.act.target.split_once(':').unwrap_or((bound.act.target.as_str(), ""));
    match kind {
        "task" => bridge::accept_task_edit(cx, id, &changes, write),
        "group" => bridge::accept_group_edit(cx, id, &changes, write),
        "agent" if bound.act.tool == agents::UPDATE => agents::accept_definition_edit(cx, id, &changes, write),
        "agent" => identity::accept_agent_edit(cx, id, &changes, write),
        other => Err(Error::invalid("target", format!("{other} has no fields that people set"))),
    }
}

/// Refuses a write whose fields no longer have the values that were shown.
pub(crate) fn check_shown(changes: &[Change], now: impl Fn(&str) -> Option<serde_json::Value>) -> Result<()> {
    for change in changes {
        match now(&change.field) {
            None => return Err(Error::invalid("fields", format!("there is no field {}", change.field))),
            Some(value) if value != change.from => {
                return Err(Error::conflict(format!("{} was changed after this was asked for", change.field)));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
