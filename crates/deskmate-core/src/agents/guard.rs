//! Who may change agents: people, and the agent that made one. A run changes none, and starts none unless it was given that.

use deskmate_db::args;

use super::define::made_by;
use super::rows::{self, AgentRow};
use crate::call::Cx;
use crate::limits::AGENT_CHILDREN_MAX;
use crate::{Error, Result};

/// Refuses a call from within a run.
pub(super) fn not_from_a_run(cx: &Cx<'_, '_>) -> Result<()> {
    if cx.actor.run.is_some() {
        return Err(Error::forbidden("a run makes, changes and deploys no agents").hint("propose it, so that a person decides"));
    }
    Ok(())
}

/// Refuses a call from within a run that is about another agent.
pub(super) fn not_from_a_run_of_another(cx: &mut Cx<'_, '_>, named: &str) -> Result<()> {
    if cx.actor.run.is_some() && rows::find(cx, named)?.agent != cx.actor.id {
        return Err(Error::forbidden("a run asks for its own agent only"));
    }
    Ok(())
}

/// Refuses whoever neither made it nor is a person.
pub(super) fn maker_or_person(cx: &Cx<'_, '_>, row: &AgentRow) -> Result<()> {
    if cx.actor.is_agent() && !made_by(row, cx.actor.kind, &cx.actor.id) {
        return Err(Error::forbidden(format!("{} was made by somebody else", row.agent)));
    }
    Ok(())
}

/// The run from within which a start is asked for, if it may start others.
pub(super) fn parent(cx: &mut Cx<'_, '_>) -> Result<Option<(String, i64)>> {
    let Some(run) = cx.actor.run.clone() else { return Ok(None) };
    let run = rows::run(cx.tx, &run)?.ok_or_else(|| Error::forbidden("this run is not known"))?;
    let own = rows::by_id(cx.tx, &run.definition)?;
    if !own.is_some_and(|own| own.definition.may_start) {
        return Err(Error::forbidden("this agent's runs start no others").hint("make it with mayStart, and deploy it again"));
    }
    let children = cx.tx.query("select id from agent_run where parent = $1 limit $2", args![run.id, AGENT_CHILDREN_MAX])?;
    if i64::try_from(children.len()).unwrap_or(i64::MAX) >= AGENT_CHILDREN_MAX {
        return Err(Error::forbidden(format!("a run starts at most {AGENT_CHILDREN_MAX} others")));
    }
    Ok(Some((run.id, run.depth)))
}
