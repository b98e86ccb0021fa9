//! The rows of plans and of their steps.

use std::collections::{BTreeMap, BTreeSet};

use deskmate_db::{Row, Tx, args};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::root::{self, Root};
use super::model::{Ask, PlanState, Step, StepOutcome};
use crate::call::{ActorKind, Cx};
use crate::request::Requester;
use crate::{Code, Error, Result, redact};

/// A stored plan.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) id: String,
    pub(super) root: String,
    pub(super) kind: String,
    pub(super) state: PlanState,
    pub(super) owner: Requester,
    pub(super) steps: i64,
    pub(super) bytes: i64,
    pub(super) digest: Option<Vec<u8>>,
    pub(super) done: i64,
    pub(super) skipped: i64,
    pub(super) failed: i64,
    pub(super) unclear: i64,
    pub(super) request: Option<String>,
    pub(super) plan_job: String,
    pub(super) job: Option<String>,
    pub(super) undo_of: Option<String>,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    pub(super) finished_at: Option<i64>,
    pub(super) ask: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) note: Option<String>,
    /// When its grant was used.
    pub(super) begun_at: Option<i64>,
}

/// A query for [`Plan`]s.
macro_rules! select_plan {
    ($rest:literal) => {
        concat!(
            "select id, root, kind, state, owner_kind, owner, verified, steps, bytes, digest, done, skipped, failed, unclear, request, plan_job, job, undo_of, \
             created_at, updated_at, finished_at, ask, summary, note, begun_at from plan ",
            $rest
        )
    };
}
pub(super) use select_plan;

impl Plan {
    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            root: row.get(1)?,
            kind: row.get(2)?,
            state: PlanState::from_name(&row.get::<String>(3)?)?,
            owner: Requester { kind: ActorKind::from_name(&row.get::<String>(4)?), id: row.get(5)?, verified: row.get(6)? },
            steps: row.get(7)?,
            bytes: row.get(8)?,
            digest: row.get(9)?,
            done: row.get(10)?,
            skipped: row.get(11)?,
            failed: row.get(12)?,
            unclear: row.get(13)?,
            request: row.get(14)?,
            plan_job: row.get(15)?,
            job: row.get(16)?,
            undo_of: row.get(17)?,
            created_at: row.get(18)?,
            updated_at: row.get(19)?,
            finished_at: row.get(20)?,
            ask: row.get(21)?,
            summary: row.get(22)?,
            note: row.get(23)?,
            begun_at: row.get(24)?,
        })
    }

    pub(super) fn subject(&self) -> String {
        format!("plan:{}", self.id)
    }

    /// Its root as it is in force; `None` if it needs none.
    pub(super) fn root_in_force(&self, cx: &mut Cx<'_, '_>) -> Result<Option<Root>> {
        if self.root.is_empty() { Ok(None) } else { root::find(cx, Some(&self.root)).map(Some) }
    }

    /// What was asked for, unless it was erased.
    pub(super) fn asked(&self) -> Result<Ask> {
        let text = self.ask.as_deref().ok_or_else(|| Error::conflict("what this plan was asked for was erased"))?;
        serde_json::from_str(text).map_err(|_| unreadable("ask", &self.id))
    }
}

pub(super) fn unreadable(what: &str, id: &str) -> Error {
    Error::new(Code::Internal, format!("the {what} of plan {id} is unreadable"))
}

const BY_ID: &str = select_plan!("where id = $1");
const BY_JOB: &str = select_plan!("where plan_job = $1");

/// A plan by its id.
pub(super) fn load(tx: &mut Tx<'_>, id: &str) -> Result<Option<Plan>> {
    tx.optional(BY_ID, args![id])?.map(|row| Plan::read(&row)).transpose()
}

const BY_DOING: &str = select_plan!("where job = $1");

/// A plan by the job that does it.
pub(super) fn done_by(tx: &mut Tx<'_>, job: &str) -> Result<Option<Plan>> {
    tx.optional(BY_DOING, args![job])?.map(|row| Plan::read(&row)).transpose()
}

/// A plan by the job that made it.
pub(super) fn of_job(tx: &mut Tx<'_>, job: &str) -> Result<Option<Plan>> {
    tx.optional(BY_JOB, args![job])?.map(|row| Plan::read(&row)).transpose()
}

pub(super) fn insert(tx: &mut Tx<'_>, plan: &Plan) -> Result<()> {
    tx.execute(
        "insert into plan (id, root, kind, state, owner_kind, owner, verified, steps, bytes, digest, done, skipped, failed, unclear, request, plan_job, job, \
         undo_of, created_at, updated_at, finished_at, ask, summary, note, begun_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
         $18, $19, $20, $21, $22, $23, $24, $25)",
        args![
            plan.id,
            plan.root,
            plan.kind,
            plan.state.name(),
            plan.owner.kind.name(),
            plan.owner.id,
            plan.owner.verified,
            plan.steps,
            plan.bytes,
            plan.digest,
            plan.done,
            plan.skipped,
            plan.failed,
            plan.unclear,
            plan.request,
            plan.plan_job,
            plan.job,
            plan.undo_of,
            plan.created_at,
            plan.updated_at,
            plan.finished_at,
            plan.ask,
            plan.summary,
            plan.note,
            plan.begun_at
        ],
    )?;
    Ok(())
}

/// Writes what may change.
pub(super) fn save(cx: &mut Cx<'_, '_>, plan: &Plan) -> Result<()> {
    let now = cx.now();
    cx.tx.execute(
        "update plan set state = $2, steps = $3, bytes = $4, digest = $5, done = $6, skipped = $7, failed = $8, unclear = $9, request = $10, job = $11, \
         updated_at = $12, finished_at = $13, summary = $14, note = $15, begun_at = $16 where id = $1",
        args![
            plan.id,
            plan.state.name(),
            plan.steps,
            plan.bytes,
            plan.digest,
            plan.done,
            plan.skipped,
            plan.failed,
            plan.unclear,
            plan.request,
            plan.job,
            now,
            plan.finished_at,
            plan.summary,
            plan.note,
            plan.begun_at
        ],
    )?;
    Ok(())
}

/// Some steps of a plan.
pub(super) struct PartRow {
    /// `waiting`, `begun` or `ended`.
    pub(super) state: String,
    pub(super) body: Option<String>,
    pub(super) outcomes: Option<String>,
}

impl PartRow {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self { state: row.get(0)?, body: row.get(1)?, outcomes: row.get(2)? })
    }

    pub(super) fn steps(&self, plan: &str) -> Result<Vec<Step>> {
        let body = self.body.as_deref().ok_or_else(|| Error::conflict("the steps of this plan were erased"))?;
        serde_json::from_str(body).map_err(|_| unreadable("steps", plan))
    }

    pub(super) fn outcomes(&self, plan: &str) -> Result<Vec<StepOutcome>> {
        self.outcomes.as_deref().map_or_else(|| Ok(Vec::new()), |text| serde_json::from_str(text).map_err(|_| unreadable("outcomes", plan)))
    }
}

pub(super) fn body_digest(body: &str) -> [u8; 32] {
    Sha256::digest(body).into()
}

/// What some steps come to.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Sum {
    pub(super) bytes: i64,
    pub(super) actions: BTreeMap<String, i64>,
    pub(super) irreversible: i64,
    #[serde(default)]
    pub(super) warnings: i64,
    #[serde(default)]
    pub(super) blocked: i64,
    /// What they do to files, and how often.
    #[serde(default)]
    pub(super) verbs: BTreeMap<String, i64>,
    /// Kinds of secrets and personal data in the texts that they add to files.
    #[serde(default)]
    pub(super) holds: BTreeSet<String>,
}

impl Sum {
    pub(super) fn of(steps: &[Step]) -> Self {
        let mut sum = Sum::default();
        for step in steps {
            sum.bytes = sum.bytes.saturating_add(i64::try_from(step.bytes).unwrap_or(i64::MAX));
            *sum.actions.entry(step.action.name().to_owned()).or_default() += 1;
            sum.irreversible += i64::from(step.irreversible.is_some());
            sum.warnings += i64::from(step.warning.is_some());
            sum.blocked += i64::from(step.blocked.is_some());
            if step.blocked.is_none() {
                *sum.verbs.entry(step.action.verb(step.undoes).to_owned()).or_default() += 1;
                let added = step.added();
                let held = if added.is_empty() { BTreeSet::new() } else { redact::kinds_in(&added.into()) };
                sum.holds.extend(held.into_iter().map(|kind| kind.name().to_owned()));
            }
        }
        sum
    }
}

/// Some steps of a plan as they are kept. Made outside of the transaction that keeps them.
#[derive(Debug)]
pub struct Part {
    steps: i64,
    digest: [u8; 32],
    sum: String,
    body: String,
}

impl Part {
    /// How many there are.
    pub fn steps(&self) -> i64 {
        self.steps
    }

    /// Puts steps together.
    pub fn of(steps: &[Step]) -> Result<Self> {
        let sum = Sum::of(steps);
        let text = |value: serde_json::Result<String>| value.map_err(|error| Error::new(Code::Internal, format!("steps cannot be written: {error}")));
        let body = text(serde_json::to_string(steps))?;
        let count = i64::try_from(steps.len()).unwrap_or(i64::MAX);
        Ok(Self { steps: count, digest: body_digest(&body), sum: text(serde_json::to_string(&sum))?, body })
    }
}

pub(super) fn insert_part(tx: &mut Tx<'_>, plan: &str, number: i64, part: &Part) -> Result<()> {
    tx.execute(
        "insert into plan_part (plan, number, state, steps, digest, sum, body, outcomes) values ($1, $2, 'waiting', $3, $4, $5, $6, null)",
        args![plan, number, part.steps, part.digest.to_vec(), part.sum, part.body],
    )?;
    Ok(())
}

/// What the parts of a plan come to, in their order: how many steps, the digest, and the rest.
pub(super) fn sums(tx: &mut Tx<'_>, plan: &str) -> Result<Vec<(i64, Vec<u8>, Sum)>> {
    let rows = tx.query("select steps, digest, sum from plan_part where plan = $1 order by number", args![plan])?;
    let read = |row: &Row| Ok((row.get(0)?, row.get(1)?, serde_json::from_str(&row.get::<String>(2)?).map_err(|_| unreadable("sum", plan))?));
    rows.iter().map(read).collect()
}

const PART: &str = "select state, body, outcomes from plan_part where plan = $1 and number = $2";

pub(super) fn part(tx: &mut Tx<'_>, plan: &str, number: i64) -> Result<Option<PartRow>> {
    tx.optional(PART, args![plan, number])?.map(|row| PartRow::read(&row)).transpose()
}

/// Bodies of parts that are read together: each may take a mebibyte.
const BODIES_AT_ONCE: u32 = 4;

/// What every part is by its own text: number, digest of the body and state, in their order.
pub(super) fn digests(tx: &mut Tx<'_>, plan: &str) -> Result<Vec<(i64, [u8; 32], String)>> {
    let (mut all, mut after) = (Vec::new(), -1_i64);
    loop {
        let rows =
            tx.query("select number, body, state from plan_part where plan = $1 and number > $2 order by number limit $3", args![plan, after, BODIES_AT_ONCE])?;
        for row in &rows {
            after = row.get(0)?;
            let body: Option<String> = row.get(1)?;
            let body = body.ok_or_else(|| Error::conflict("the steps of this plan were erased"))?;
            all.push((after, body_digest(&body), row.get(2)?));
        }
        if rows.len() < BODIES_AT_ONCE as usize {
            return Ok(all);
        }
    }
}
