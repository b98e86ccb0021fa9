//! What the record knows of agents: those that only named themselves, and when one was last heard of.

use deskmate_db::{Row, args};

use super::agents::AgentOut;
use crate::call::Cx;
use crate::{Result, format_time};

/// When an agent last did something.
pub(super) fn last_active(cx: &mut Cx<'_, '_>, agent: &str) -> Result<Option<String>> {
    let row = cx.tx.optional("select at from event where actor = $1 order by seq desc limit 1", args![agent])?;
    Ok(row.map(|row| row.get(0)).transpose()?.map(format_time))
}

/// An agent that is not registered, by its name.
pub(super) fn named(cx: &mut Cx<'_, '_>, agent: &str) -> Result<Option<AgentOut>> {
    let row = cx.tx.optional("select actor, actor_kind, at from event where actor = $1 order by seq limit 1", args![agent])?;
    row.map_or(Ok(None), |row| shown(cx, &row))
}

/// Agents behind a name that are not registered, at most so many. Each name is one look at the index of who acted,
/// however much they did.
pub(super) fn unregistered(cx: &mut Cx<'_, '_>, after: &str, most: u32) -> Result<Vec<AgentOut>> {
    let (mut found, mut after) = (Vec::new(), after.to_owned());
    while found.len() < most as usize {
        let Some(row) = cx.tx.optional("select actor, actor_kind, at from event where actor > $1 order by actor, seq limit 1", args![after])? else { break };
        after = row.get(0)?;
        found.extend(shown(cx, &row)?);
    }
    Ok(found)
}

/// Whoever acted first in an event, if that is an agent that is not registered.
fn shown(cx: &mut Cx<'_, '_>, row: &Row) -> Result<Option<AgentOut>> {
    let (agent, kind): (String, String) = (row.get(0)?, row.get(1)?);
    if kind != "agent" || cx.tx.optional("select id from agent where id = $1", args![agent])?.is_some() {
        return Ok(None);
    }
    Ok(Some(AgentOut {
        state: "unregistered".to_owned(),
        note: String::new(),
        created_at: format_time(row.get(2)?),
        last_active_at: last_active(cx, &agent)?,
        token_expires_at: None,
        set_by_people: Vec::new(),
        made_here: false,
        agent,
    }))
}
