//! What people tell an agent to do. It is delivered until the agent says that it has it, and again whenever a person
//! says something new.

use deskmate_db::{Row, Tx, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::words;
use crate::call::Cx;
use crate::limits::{INSTRUCTIONS_ACKNOWLEDGED_MAX, PAGE_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, format_time};

/// A person said what is to be done.
pub(super) const INSTRUCTED: Kind =
    Kind { name: "handoff.resolved", says: "What an agent handed over was answered, rejected, or expired; what was said is delivered until acknowledged." };
/// An agent has what it was told.
pub(super) const ACKNOWLEDGED: Kind = Kind { name: "instructions.acknowledged", says: "An agent acknowledged instructions that people gave it." };

/// A stored instruction.
pub(super) struct InstructionRow {
    pub(super) id: String,
    pub(super) request: String,
    pub(super) agent: String,
    pub(super) domain: String,
    pub(super) number: i64,
    pub(super) hand_back: bool,
    pub(super) created_at: i64,
    pub(super) acknowledged_at: Option<i64>,
    pub(super) resolution: Option<String>,
    pub(super) instructions: Option<String>,
    pub(super) person: Option<String>,
}

const WAITING: &str = "select id, request, agent, domain, number, hand_back, created_at, acknowledged_at, resolution, instructions, person \
     from instruction where agent = $1 and acknowledged_at is null order by created_at, id limit $2";
const WAITING_IN: &str = "select id, request, agent, domain, number, hand_back, created_at, acknowledged_at, resolution, instructions, person \
     from instruction where agent = $1 and acknowledged_at is null and domain = $3 order by created_at, id limit $2";
/// How many instructions one answer holds.
pub(super) const INSTRUCTIONS_MAX: usize = PAGE_MAX as usize;
const OF_REQUEST: &str = "select id, request, agent, domain, number, hand_back, created_at, acknowledged_at, resolution, instructions, person \
     from instruction where request = $1 order by number, id limit 200";
const BY_ID: &str = "select id, request, agent, domain, number, hand_back, created_at, acknowledged_at, resolution, instructions, person \
     from instruction where id = $1";

impl InstructionRow {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            request: row.get(1)?,
            agent: row.get(2)?,
            domain: row.get(3)?,
            number: row.get(4)?,
            hand_back: row.get(5)?,
            created_at: row.get(6)?,
            acknowledged_at: row.get(7)?,
            resolution: row.get(8)?,
            instructions: row.get(9)?,
            person: row.get(10)?,
        })
    }
}

/// What an agent has not acknowledged yet, oldest first, and one more than an answer holds where there are more.
pub(super) fn waiting(tx: &mut Tx<'_>, agent: &str, domain: Option<&str>) -> Result<Vec<InstructionRow>> {
    let rows = match domain {
        None => tx.query(WAITING, args![agent, PAGE_MAX + 1])?,
        Some(domain) => tx.query(WAITING_IN, args![agent, PAGE_MAX + 1, domain])?,
    };
    rows.iter().map(InstructionRow::read).collect()
}

/// Everything that was said to a request, oldest first.
pub(super) fn of_request(tx: &mut Tx<'_>, request: &str) -> Result<Vec<InstructionRow>> {
    tx.query(OF_REQUEST, args![request])?.iter().map(InstructionRow::read).collect()
}

/// Whether a person told the agent what to do about a proposal.
pub(super) fn is_about(tx: &mut Tx<'_>, proposal: &str) -> Result<bool> {
    let sql = "select id from instruction where about = $1 and instructions is not null order by id limit 1";
    Ok(tx.optional(sql, args![proposal])?.is_some())
}

/// What is said to a request of an agent, by a person, or by the desk when nobody did.
pub(crate) struct Said<'a> {
    /// The request.
    pub(crate) request: &'a str,
    /// The proposal that the request is about.
    pub(crate) about: Option<&'a str>,
    /// Its kind.
    pub(crate) kind: &'a str,
    /// Who is told.
    pub(crate) agent: &'a str,
    /// The request's domain.
    pub(crate) domain: &'a str,
    /// Whether the work goes back to the agent.
    pub(crate) hand_back: bool,
    /// What was decided.
    pub(crate) resolution: &'a str,
    /// What the agent is to do.
    pub(crate) instructions: Option<&'a str>,
}

/// Tells an agent what was said. Answers the how manieth it is for this request.
pub(crate) fn instruct(cx: &mut Cx<'_, '_>, said: &Said<'_>) -> Result<i64> {
    let last = cx.tx.optional("select number from instruction where request = $1 order by number desc, id desc limit 1", args![said.request])?;
    let number = last.map(|row| row.get::<i64>(0)).transpose()?.unwrap_or(0) + 1;
    let (id, now) = (cx.new_id(), cx.now());
    let person = cx.actor.is_person().then(|| cx.actor.id.clone());
    cx.tx.execute(
        "insert into instruction (id, request, about, kind, agent, domain, number, hand_back, created_at, acknowledged_at, resolution, instructions, person) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, null, $10, $11, $12)",
        args![id, said.request, said.about, said.kind, said.agent, said.domain, number, said.hand_back, now, said.resolution, said.instructions, person],
    )?;
    let event = Event::new(INSTRUCTED, format!("request:{}", said.request))
        .fact("instruction", id.as_str())
        .fact("request", said.request)
        .fact("about", said.about)
        .fact("kind", said.kind)
        .fact("agent", said.agent)
        .fact("domain", said.domain)
        .fact("number", number)
        .fact("hand_back", said.hand_back)
        .fact("person", person)
        .payload(json!({ "resolution": said.resolution, "instructions": said.instructions }))
        .audience([said.agent]);
    cx.emit(event)?;
    Ok(number)
}

/// Acknowledge instructions that cowork_check_handoff brought, once you have taken them in. Until then they are
/// delivered again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcknowledgeInstructions {
    /// The ids of the instructions, as `instruction_id` names them; at most 200.
    #[serde(default)]
    instruction_ids: Vec<String>,
    /// A handoff of which everything that was said so far is acknowledged.
    handoff_id: Option<String>,
}

/// What was acknowledged.
#[derive(Serialize, JsonSchema)]
pub(super) struct Acknowledged {
    /// The ids that were acknowledged by this call.
    acknowledged: Vec<String>,
    /// Ids that were acknowledged before.
    before: Vec<String>,
    /// When.
    acknowledged_at: String,
    /// How many instructions still wait for you.
    waiting: usize,
}

pub(super) fn acknowledge(cx: &mut Cx<'_, '_>, input: AcknowledgeInstructions) -> Result<Acknowledged> {
    if input.instruction_ids.len() > INSTRUCTIONS_ACKNOWLEDGED_MAX {
        return Err(Error::invalid("instruction_ids", format!("at most {INSTRUCTIONS_ACKNOWLEDGED_MAX} at once")));
    }
    if input.instruction_ids.is_empty() && input.handoff_id.is_none() {
        return Err(Error::invalid("instruction_ids", "name at least one, or a handoff_id"));
    }
    let me = cx.actor.id.clone();
    let mut found = Vec::new();
    for given in &input.instruction_ids {
        let id = words::id("instruction_ids", given)?;
        let row = cx.tx.optional(BY_ID, args![id])?.map(|row| InstructionRow::read(&row)).transpose()?;
        found.push(row.filter(|row| row.agent == me).ok_or_else(|| Error::not_found(format!("there is no instruction {id} for you")))?);
    }
    if let Some(given) = &input.handoff_id {
        let id = words::id("handoff_id", given)?;
        let said: Vec<_> = of_request(cx.tx, &id)?.into_iter().filter(|row| row.agent == me).collect();
        if said.is_empty() {
            return Err(Error::not_found(format!("nothing was said to you about {id}")));
        }
        found.extend(said);
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found.dedup_by(|a, b| a.id == b.id);
    let (now, mut acknowledged, mut before) = (cx.now(), Vec::new(), Vec::new());
    for row in found {
        if row.acknowledged_at.is_some() {
            before.push(row.id);
            continue;
        }
        cx.tx.execute("update instruction set acknowledged_at = $2 where id = $1", args![row.id, now])?;
        let event = Event::new(ACKNOWLEDGED, format!("request:{}", row.request))
            .fact("instruction", row.id.as_str())
            .fact("request", row.request.as_str())
            .fact("agent", row.agent.as_str())
            .fact("number", row.number);
        cx.emit(event)?;
        acknowledged.push(row.id);
    }
    let waiting = cx.tx.one("select count(*) from instruction where agent = $1 and acknowledged_at is null", args![me])?;
    let waiting = usize::try_from(waiting.get::<i64>(0)?).unwrap_or(usize::MAX);
    Ok(Acknowledged { acknowledged, before, acknowledged_at: format_time(now), waiting })
}
