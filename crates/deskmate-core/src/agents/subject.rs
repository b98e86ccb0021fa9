//! An agent that something is asked about: one that was made here, one that is registered, or one that acted here.

use deskmate_db::args;

use super::rows;
use crate::call::Cx;
use crate::limits::NAME_CHARS_MAX;
use crate::record::{self, Search};
use crate::{Error, Result, check_text};

/// An agent.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// Its name.
    pub(crate) agent: String,
    /// What it is for, where it was made here.
    pub(crate) task: Option<String>,
    /// Whether it has a token.
    pub(crate) registered: bool,
    /// What it is for, where it is registered.
    pub(crate) note: String,
}

/// An agent by its id or name. An agent finds itself and those that it made, people find all.
pub(crate) fn subject(cx: &mut Cx<'_, '_>, named: &str) -> Result<Subject> {
    check_text("agentId", named, NAME_CHARS_MAX)?;
    let missing = || Error::not_found(format!("there is no agent {named} for you")).hint("agents_list_agents and desk_agent_list show those that are there");
    let made = rows::name_and_task(cx, named)?;
    let agent = made.as_ref().map_or(named, |(agent, _)| agent.as_str()).to_owned();
    if made.is_none() && cx.actor.is_agent() && cx.actor.id != agent {
        return Err(missing());
    }
    let row = cx.tx.optional("select state, note from agent where id = $1", args![agent])?;
    let (registered, note) = match &row {
        None => (false, String::new()),
        Some(row) => (row.get::<String>(0)? == "active", row.get(1)?),
    };
    if made.is_none() && row.is_none() {
        let search = Search { actor: Some(agent.clone()), limit: 1, ..Search::default() };
        let acted = record::search_heads(cx.tx, &search)?.pop().is_some_and(|event| event.actor_kind == "agent");
        if !acted {
            return Err(missing());
        }
    }
    Ok(Subject { agent, task: made.map(|(_, task)| task), registered, note })
}
