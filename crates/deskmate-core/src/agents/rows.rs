//! The rows of agents and their runs.

use deskmate_db::{Row, Tx, args};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::model::{Cause, Definition, RunState, Status};
use super::place::Place;
use crate::call::{Actor, ActorKind, Cx};
use crate::edit::EDITED;
use crate::limits::AGENT_BYTES_MAX;
use crate::record::{Event, Kind};
use crate::{Code, Error, Result, canonical, hex};

/// An agent as it is stored.
#[derive(Clone, Debug)]
pub(super) struct AgentRow {
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) status: Status,
    pub(super) version: i64,
    pub(super) digest: Vec<u8>,
    pub(super) definition: Definition,
    pub(super) creator_kind: ActorKind,
    pub(super) creator: String,
    pub(super) due_at: Option<i64>,
    pub(super) place: Place,
    pub(super) request: Option<String>,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    pub(super) deployed_at: Option<i64>,
    pub(super) deleted_at: Option<i64>,
}

macro_rules! select_agent {
    ($rest:literal) => {
        concat!(
            "select id, agent, status, version, digest, definition, creator_kind, creator, due_at, request, created_at, updated_at, deployed_at, deleted_at, \
             place from agent_definition ",
            $rest
        )
    };
}

const BY_ID: &str = select_agent!("where id = $1");
const BY_AGENT: &str = select_agent!("where agent = $1");
pub(super) const PAGE: &str = select_agent!("where deleted_at is null and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");
pub(super) const DUE: &str = select_agent!("where due_at is not null and due_at <= $1 order by due_at, id limit $2");
pub(super) const NEXT_DUE: &str = "select due_at from agent_definition where due_at is not null order by due_at, id limit 1";

impl AgentRow {
    pub(super) fn read(row: &Row) -> Result<Self> {
        let text: String = row.get(5)?;
        let definition = serde_json::from_str(&text).map_err(unreadable)?;
        Ok(Self {
            id: row.get(0)?,
            agent: row.get(1)?,
            status: Status::from_name(&row.get::<String>(2)?)?,
            version: row.get(3)?,
            digest: row.get(4)?,
            definition,
            creator_kind: ActorKind::from_name(&row.get::<String>(6)?),
            creator: row.get(7)?,
            due_at: row.get(8)?,
            request: row.get(9)?,
            created_at: row.get(10)?,
            updated_at: row.get(11)?,
            deployed_at: row.get(12)?,
            deleted_at: row.get(13)?,
            place: Place::read(&row.get::<String>(14)?),
        })
    }

    pub(super) fn subject(&self) -> String {
        format!("agent:{}", self.agent)
    }

    /// Whether somebody may see it: people all of them, an agent what it made and itself.
    pub(super) fn is_for(&self, actor: &Actor) -> bool {
        may_see(actor, &self.agent, self.creator_kind, &self.creator)
    }
}

fn may_see(actor: &Actor, agent: &str, creator_kind: ActorKind, creator: &str) -> bool {
    !actor.is_agent() || actor.id == agent || (creator_kind == ActorKind::Agent && creator == actor.id)
}

#[expect(clippy::needless_pass_by_value, reason = "it takes the place of an error")]
fn unreadable(error: serde_json::Error) -> Error {
    Error::new(Code::Internal, format!("an agent cannot be read: {error}"))
}

/// The text of a definition and its digest, which is what people approve.
pub(super) fn sealed(definition: &Definition) -> Result<(String, Vec<u8>)> {
    let text = canonical("definition", definition)?;
    if text.len() > AGENT_BYTES_MAX {
        return Err(Error::invalid("definition", format!("must be at most {AGENT_BYTES_MAX} bytes")));
    }
    let digest = Sha256::digest(&text).to_vec();
    Ok((text, digest))
}

pub(super) fn by_id(tx: &mut Tx<'_>, id: &str) -> Result<Option<AgentRow>> {
    tx.optional(BY_ID, args![id])?.map(|row| AgentRow::read(&row)).transpose()
}

/// The digest of what an agent is, by its name.
pub(super) fn digest_of(tx: &mut Tx<'_>, agent: &str) -> Result<Option<Vec<u8>>> {
    Ok(tx.optional("select digest from agent_definition where agent = $1", args![agent])?.map(|row| row.get(0)).transpose()?)
}

/// An agent by its name.
pub(super) fn by_agent(tx: &mut Tx<'_>, agent: &str) -> Result<Option<AgentRow>> {
    tx.optional(BY_AGENT, args![agent])?.map(|row| AgentRow::read(&row)).transpose()
}

/// An agent by its id or by its name, that the caller may see and that was not deleted.
pub(super) fn find(cx: &mut Cx<'_, '_>, named: &str) -> Result<AgentRow> {
    let row = match by_id(cx.tx, named)? {
        Some(row) => Some(row),
        None => by_agent(cx.tx, named)?,
    };
    let row = row.filter(|row| row.deleted_at.is_none() && row.is_for(&cx.actor));
    row.ok_or_else(|| Error::not_found(format!("there is no agent {named} that was made here")).hint("agents_list_agents shows those that are there"))
}

/// The name and the task of an agent as [`find`] finds it, without the rest of what it is.
pub(super) fn name_and_task(cx: &mut Cx<'_, '_>, named: &str) -> Result<Option<(String, String)>> {
    #[derive(Deserialize)]
    struct Tasked {
        task: String,
    }
    const BY_ID: &str = "select agent, creator_kind, creator, definition from agent_definition where id = $1 and deleted_at is null";
    const BY_AGENT: &str = "select agent, creator_kind, creator, definition from agent_definition where agent = $1 and deleted_at is null";
    let row = match cx.tx.optional(BY_ID, args![named])? {
        Some(row) => Some(row),
        None => cx.tx.optional(BY_AGENT, args![named])?,
    };
    let Some(row) = row else { return Ok(None) };
    let (agent, kind, creator, text): (String, String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    if !may_see(&cx.actor, &agent, ActorKind::from_name(&kind), &creator) {
        return Ok(None);
    }
    let tasked: Tasked = serde_json::from_str(&text).map_err(unreadable)?;
    Ok(Some((agent, tasked.task)))
}

/// Whether a name is an agent's that was made here: nobody else may call itself so.
pub(crate) fn is_taken(tx: &mut Tx<'_>, name: &str) -> Result<bool> {
    Ok(tx.optional("select id from agent_definition where agent = $1", args![name])?.is_some())
}

/// Whether an agent was made here and is not deleted.
pub(crate) fn is_made(tx: &mut Tx<'_>, name: &str) -> Result<bool> {
    Ok(tx.optional("select id from agent_definition where agent = $1 and deleted_at is null", args![name])?.is_some())
}

/// Writes down a new agent, with the text of its definition as [`sealed`] makes it.
pub(super) fn insert(cx: &mut Cx<'_, '_>, row: &AgentRow, text: &str) -> Result<()> {
    cx.tx.execute(
        "insert into agent_definition (id, agent, status, version, digest, definition, creator_kind, creator, created_at, updated_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
        args![row.id, row.agent, row.status.name(), row.version, row.digest, text, row.creator_kind.name(), row.creator, row.created_at],
    )?;
    Ok(())
}

/// Writes down what changed about an agent, and tells the record: its status, its version, and the digest of what it is.
pub(super) fn save(cx: &mut Cx<'_, '_>, row: &mut AgentRow, kind: Kind, payload: Value) -> Result<()> {
    save_edited(cx, row, kind, payload, &[])
}

/// The same with the fields that the caller set.
pub(super) fn save_edited(cx: &mut Cx<'_, '_>, row: &mut AgentRow, kind: Kind, payload: Value, edited: &[&str]) -> Result<()> {
    let (text, digest) = sealed(&row.definition)?;
    row.digest = digest;
    row.updated_at = cx.now();
    cx.tx.execute(
        "update agent_definition set status = $2, version = $3, digest = $4, definition = $5, due_at = $6, request = $7, updated_at = $8, deployed_at = $9, \
         deleted_at = $10, place = $11 where id = $1",
        args![
            row.id,
            row.status.name(),
            row.version,
            row.digest,
            text,
            row.due_at,
            row.request,
            row.updated_at,
            row.deployed_at,
            row.deleted_at,
            row.place.text()
        ],
    )?;
    tell_edited(cx, row, kind, payload, edited)
}

pub(super) fn tell(cx: &mut Cx<'_, '_>, row: &AgentRow, kind: Kind, payload: Value) -> Result<()> {
    tell_edited(cx, row, kind, payload, &[])
}

fn tell_edited(cx: &mut Cx<'_, '_>, row: &AgentRow, kind: Kind, payload: Value, edited: &[&str]) -> Result<()> {
    let mut event = Event::new(kind, row.subject())
        .fact("id", row.id.as_str())
        .fact("agent", row.agent.as_str())
        .fact("status", row.status.name())
        .fact("version", row.version)
        .fact("digest", hex(&row.digest))
        .fact("place", row.place.text());
    if !edited.is_empty() {
        event = event.fact(EDITED, edited.to_vec());
    }
    let audience: Vec<&str> = if row.creator_kind == ActorKind::Agent { vec![row.agent.as_str(), row.creator.as_str()] } else { vec![row.agent.as_str()] };
    cx.emit(event.payload(payload).audience(audience))
}

/// A run as it is stored.
#[derive(Clone, Debug)]
pub(super) struct RunRow {
    pub(super) id: String,
    pub(super) definition: String,
    pub(super) agent: String,
    pub(super) cause: Cause,
    pub(super) moment: Option<i64>,
    pub(super) state: RunState,
    pub(super) parent: Option<String>,
    pub(super) depth: i64,
    pub(super) job: Option<String>,
    pub(super) node: Option<String>,
    pub(super) input: Option<String>,
    pub(super) calls: i64,
    /// In millionths of a unit.
    pub(super) cost: i64,
    pub(super) created_at: i64,
    pub(super) started_at: Option<i64>,
    pub(super) finished_at: Option<i64>,
    pub(super) expires_at: Option<i64>,
    pub(super) result: Option<String>,
    pub(super) error: Option<String>,
}

macro_rules! select_run {
    ($rest:literal) => {
        concat!(
            "select id, definition, agent, cause, moment, state, parent, depth, job, input, calls, created_at, started_at, finished_at, expires_at, result, error, \
             node, cost from agent_run ",
            $rest
        )
    };
}

const RUN: &str = select_run!("where id = $1");
pub(super) const RUNS: &str = select_run!("where definition = $4 and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");
pub(super) const OPEN_RUNS: &str = select_run!("where definition = $1 and finished_at is null order by created_at, id limit $2");

impl RunRow {
    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            definition: row.get(1)?,
            agent: row.get(2)?,
            cause: Cause::from_name(&row.get::<String>(3)?)?,
            moment: row.get(4)?,
            state: RunState::from_name(&row.get::<String>(5)?)?,
            parent: row.get(6)?,
            depth: row.get(7)?,
            job: row.get(8)?,
            input: row.get(9)?,
            calls: row.get(10)?,
            created_at: row.get(11)?,
            started_at: row.get(12)?,
            finished_at: row.get(13)?,
            expires_at: row.get(14)?,
            result: row.get(15)?,
            error: row.get(16)?,
            node: row.get(17)?,
            cost: row.get(18)?,
        })
    }

    pub(super) fn subject(&self) -> String {
        format!("run:{}", self.id)
    }
}

pub(super) fn run(tx: &mut Tx<'_>, id: &str) -> Result<Option<RunRow>> {
    tx.optional(RUN, args![id])?.map(|row| RunRow::read(&row)).transpose()
}

/// Runs of an agent that have not ended, the oldest first.
pub(super) fn open_runs(tx: &mut Tx<'_>, definition: &str, limit: i64) -> Result<Vec<RunRow>> {
    tx.query(OPEN_RUNS, args![definition, limit])?.iter().map(RunRow::read).collect()
}

pub(super) fn insert_run(tx: &mut Tx<'_>, run: &RunRow) -> Result<bool> {
    let done = tx.execute(
        "insert into agent_run (id, definition, agent, cause, moment, state, parent, depth, job, input, calls, created_at, finished_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11, $12) on conflict (definition, moment) do nothing",
        args![
            run.id,
            run.definition,
            run.agent,
            run.cause.name(),
            run.moment,
            run.state.name(),
            run.parent,
            run.depth,
            run.job,
            run.input,
            run.created_at,
            run.finished_at
        ],
    )?;
    Ok(done == 1)
}

/// Adds to what the calls of a run have cost.
pub(super) fn add_cost(tx: &mut Tx<'_>, run: &str, cost: i64) -> Result<()> {
    tx.execute("update agent_run set cost = cost + $2 where id = $1", args![run, cost])?;
    Ok(())
}

/// Writes down what changed about a run, and tells the record.
pub(super) fn save_run(cx: &mut Cx<'_, '_>, run: &RunRow, kind: Kind, payload: Value) -> Result<()> {
    cx.tx.execute(
        "update agent_run set state = $2, job = $3, calls = $4, started_at = $5, finished_at = $6, expires_at = $7, result = $8, error = $9, node = $10 \
         where id = $1",
        args![run.id, run.state.name(), run.job, run.calls, run.started_at, run.finished_at, run.expires_at, run.result, run.error, run.node],
    )?;
    tell_run(cx, run, kind, payload)
}

pub(super) fn tell_run(cx: &mut Cx<'_, '_>, run: &RunRow, kind: Kind, payload: Value) -> Result<()> {
    let event = Event::new(kind, run.subject())
        .fact("run", run.id.as_str())
        .fact("agent", run.agent.as_str())
        .fact("state", run.state.name())
        .fact("cause", run.cause.name())
        .fact("calls", run.calls)
        .fact("node", json!(run.node))
        .fact("parent", json!(run.parent));
    cx.emit(event.payload(payload).audience([run.agent.as_str()]))
}
