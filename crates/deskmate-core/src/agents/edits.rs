//! People's edits of what an agent is: each field keeps who set it last, and what a person set the agent that made the draft only
//! asks to change.

use serde_json::{Value, json};

use super::model::{Definition, Runner, Status, Timing};
use super::rows::{self, AgentRow};
use super::schedule::Schedule;
use super::{CHANGED, define, gate};
use crate::call::Cx;
use crate::edit::{self, Change, Held, Target};
use crate::limits::CONTENT_BYTES_MAX;
use crate::{Error, Result, canonical, check_text};

/// Writes what may be written now of a change, and asks people about the rest.
pub(super) fn change(cx: &mut Cx<'_, '_>, row: &mut AgentRow, wanted: &Definition, given: &[&str]) -> Result<Option<Held>> {
    let changes = given.iter().map(|field| Ok(Change::new(*field, value(&row.definition, field)?, value(wanted, field)?))).collect::<Result<_>>()?;
    let split = edit::split(cx, &row.subject(), changes)?;
    if !split.free.is_empty() || split.held.is_empty() {
        write(cx, row, &split.free)?;
    }
    let target = Target { subject: row.subject(), domain: gate::DOMAIN, tool: define::UPDATE, noun: "agent" };
    edit::hold(cx, &target, split.held)
}

/// Checks that a held change still fits the agent as it was shown, and writes it where a person approved it.
pub(crate) fn accept_definition_edit(cx: &mut Cx<'_, '_>, agent: &str, changes: &[Change], approved: bool) -> Result<()> {
    let found = rows::by_agent(cx.tx, agent)?.filter(|row| row.deleted_at.is_none());
    let mut row = found.ok_or_else(|| Error::not_found("the agent is gone"))?;
    define::not_fixed(&row)?;
    edit::check_shown(changes, |field| value(&row.definition, field).ok())?;
    let mut wanted = row.definition.clone();
    for change in changes {
        put(&mut wanted, change)?;
    }
    define::check(&wanted)?;
    if approved { write(cx, &mut row, changes) } else { Ok(()) }
}

/// Writes checked changes and tells the record.
fn write(cx: &mut Cx<'_, '_>, row: &mut AgentRow, changes: &[Change]) -> Result<()> {
    for change in changes {
        put(&mut row.definition, change)?;
    }
    // What of a write waits may be what made the rest of it sound.
    define::check(&row.definition)?;
    row.version += 1;
    row.status = Status::Draft;
    let fields: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
    edit::mark(cx, &row.subject(), &fields)?;
    let payload = json!({ "definition": row.definition.for_agents() });
    rows::save_edited(cx, row, CHANGED, payload, &fields)
}

/// A field as it is compared and shown, in the one form that it keeps wherever it is stored.
fn value(definition: &Definition, field: &str) -> Result<Value> {
    let Definition { task, runner, params, schedule, approval_required, budget, if_interrupted, may_start, .. } = definition;
    let text = match field {
        "description" => canonical(field, task),
        "runner" => canonical(field, runner),
        "params" => canonical(field, params),
        "schedule" => canonical(field, schedule),
        "approvalRequired" => canonical(field, approval_required),
        "budget" => canonical(field, budget),
        "ifInterrupted" => canonical(field, if_interrupted),
        "mayStart" => canonical(field, may_start),
        other => Err(Error::invalid(other, "is no field of an agent that can be changed")),
    };
    serde_json::from_str(&text?).map_err(|error| Error::invalid(field, error.to_string()))
}

/// Puts a value into its field.
fn put(definition: &mut Definition, change: &Change) -> Result<()> {
    fn read<T: serde::de::DeserializeOwned>(change: &Change) -> Result<T> {
        serde_json::from_value(change.to.clone()).map_err(|error| Error::invalid(&change.field, error.to_string()))
    }
    match change.field.as_str() {
        "description" => {
            let task: String = read(change)?;
            check_text("description", &task, CONTENT_BYTES_MAX)?;
            definition.task = task;
        }
        "runner" => {
            definition.runner = read(change)?;
            if let Runner::Steps { steps } = &definition.runner {
                // Whoever writes the steps says what it does; only parameters that were asked for can still be missing.
                let used = serde_json::to_string(steps).unwrap_or_default();
                definition.needs.retain(|need| need.param.as_ref().is_some_and(|param| used.contains(&format!("params.{param}"))));
            } else {
                definition.needs.clear();
            }
        }
        "params" => definition.params = read(change)?,
        "schedule" => {
            let timing: Option<Timing> = read(change)?;
            timing.as_ref().map(|timing| Schedule::read(&timing.cron, &timing.time_zone)).transpose()?;
            definition.schedule = timing;
        }
        "approvalRequired" => definition.approval_required = read(change)?,
        "budget" => definition.budget = read(change)?,
        "ifInterrupted" => definition.if_interrupted = read(change)?,
        "mayStart" => definition.may_start = read(change)?,
        other => return Err(Error::invalid(other, "is no field of an agent that can be changed")),
    }
    Ok(())
}
