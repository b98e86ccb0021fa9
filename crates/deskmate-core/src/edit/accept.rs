//! Writing what a person approved: exactly that, and only while the record is as it was shown.

use super::fields::Change;
use super::hold::changes_of;
use crate::call::Cx;
use crate::request::{Bound, Request};
use crate::{Code, Error, Result, bridge, identity};

/// What became of an approved write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is written, and the fields count as set by the person who approved.
    Applied,
    /// The record changed since it was shown, or the write no longer fits it: nothing was written.
    Superseded {
        /// Why.
        why: String,
    },
}

/// Writes what a person approved. Whoever calls it has checked that the caller may decide.
pub fn accept(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Accepted> {
    let bound = Bound::read(request)?;
    let changes = changes_of(&bound);
    let (kind, id) = bound.act.target.split_once(':').unwrap_or((bound.act.target.as_str(), ""));
    let done = match kind {
        "task" => bridge::accept_task_edit(cx, id, &changes),
        "group" => bridge::accept_group_edit(cx, id, &changes),
        "agent" => identity::accept_agent_edit(cx, id, &changes),
        other => Err(Error::invalid("target", format!("{other} has no fields that people set"))),
    };
    match done {
        Ok(()) => Ok(Accepted::Applied),
        // The records check everything before their first write, so that nothing has to be undone here.
        Err(error) if matches!(error.code, Code::Invalid | Code::NotFound | Code::Conflict | Code::Forbidden) => {
            Ok(Accepted::Superseded { why: error.to_string() })
        }
        Err(error) => Err(error),
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
