//! Every score recomputed from the record alone, and compared with the rows.

use std::collections::BTreeMap;

use deskmate_db::{Engine, Row, Tx, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::facts::{self, Cause, Changed, Key, Numbers, Proposed};
use super::rows::read_state;
use super::rules::{POLICY_CHANGE, Rates, State, Step, Verdict, override_impact};
use super::{CHANGED, Points};
use crate::Result;
use crate::call::Cx;
use crate::record::{Body, Finding, Projection, differences};

/// Trust as the record says it is.
#[derive(Default)]
pub struct TrustProjection {
    rows: BTreeMap<Key, State>,
    verdicts: BTreeMap<String, (Key, Verdict, i64)>,
    misfits: Vec<(Key, u64)>,
}

/// More misfits than this only repeat each other.
const MISFITS_MAX: usize = 100;

impl Projection for TrustProjection {
    fn apply(&mut self, seq: u64, body: &Body) {
        if body.kind == CHANGED.name {
            match facts::read::<Changed>(body.facts.clone()) {
                Some(told) => self.change(seq, body.at, &told),
                None => self.misfit(&unknown(), seq),
            }
        } else if let Some(Value::Object(told)) = body.facts.get("trust") {
            match facts::read::<Proposed>(told.clone()) {
                Some(told) => self.propose(seq, body.at, &told),
                None => self.misfit(&unknown(), seq),
            }
        }
    }

    fn compare(&self, tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
        let mut findings: Vec<Finding> = self.misfits.iter().map(|(key, seq)| Finding { seq: Some(*seq), what: misfit(key) }).collect();
        let stored = stored_rows(tx)?;
        differences(&self.rows, &stored, |key| format!("trust {}", key.subject()), &mut findings);
        let stored = stored_verdicts(tx)?;
        differences(&self.verdicts, &stored, |request| format!("verdict on request {request}"), &mut findings);
        Ok(findings)
    }
}

/// Whose trust an event means that cannot be read.
fn unknown() -> Key {
    Key { agent: "?".to_owned(), domain: "?".to_owned(), verified: false }
}

fn misfit(key: &Key) -> String {
    format!("{}: the numbers of this change do not follow from what was before", key.subject())
}

impl TrustProjection {
    fn state(&self, key: &Key, rates: &Rates, at: i64) -> State {
        self.rows.get(key).copied().unwrap_or_else(|| State::fresh(rates, at))
    }

    fn propose(&mut self, seq: u64, at: i64, told: &Proposed) {
        let rates = told.rates();
        let moved = self.state(&told.key, &rates, at).after(&Step::Proposed, &rates, at);
        if !told.fits(&moved.state) {
            self.misfit(&told.key, seq);
        }
        self.rows.insert(told.key.clone(), moved.state);
    }

    fn change(&mut self, seq: u64, at: i64, told: &Changed) {
        let rates = told.rates.rates();
        let Some(step) = self.step(told, &rates) else { return self.misfit(&told.key, seq) };
        let before = self.state(&told.key, &rates, at);
        let moved = before.after(&step, &rates, at);
        if Numbers::of(&moved) != told.numbers {
            self.misfit(&told.key, seq);
        }
        self.rows.insert(told.key.clone(), moved.state);
        let approved = matches!(step, Step::Approved { .. });
        if let (true, Some(request)) = (approved || matches!(step, Step::Overridden { .. }), &told.request) {
            let verdict = Verdict {
                approved,
                applied: Points(moved.state.score.0 - moved.previous.0),
                change: moved.state.changes,
                streak_before: before.streak,
                demoted_before: before.demoted,
                confidence: told.confidence,
            };
            self.verdicts.insert(request.clone(), (told.key.clone(), verdict, at));
        }
    }

    /// What happened, with numbers that come from the rules and not from the event.
    fn step(&mut self, told: &Changed, rates: &Rates) -> Option<Step> {
        let confidence = told.confidence;
        Some(match &told.cause {
            Cause::Approved => Step::Approved { confidence },
            Cause::Overridden { kind, severity } => {
                Step::Overridden { impact: override_impact(kind, *severity, rates), feeds_streak: kind != POLICY_CHANGE, confidence }
            }
            Cause::TakenBack => Step::TakenBack(self.verdicts.remove(told.request.as_deref()?).filter(|(key, ..)| *key == told.key)?.1),
            Cause::Promoted { target } => Step::Promoted { target: *target },
            Cause::NotPromoted => Step::NotPromoted,
            Cause::Imported => Step::Imported(told.numbers.known()),
        })
    }

    fn misfit(&mut self, key: &Key, seq: u64) {
        if self.misfits.len() < MISFITS_MAX {
            self.misfits.push((key.clone(), seq));
        }
    }
}

fn read_key(row: &Row, from: usize) -> Result<Key> {
    Ok(Key { agent: row.get(from)?, domain: row.get(from + 1)?, verified: row.get(from + 2)? })
}

fn stored_rows(tx: &mut Tx<'_>) -> Result<BTreeMap<Key, State>> {
    let rows = tx.query(
        "select agent, domain, verified, score, proposals, approved, overridden, streak, demoted, changes, decided_since, approved_since, promoting, \
         confidence_sum, confidence_count, brier_sum, updated_at from trust order by agent, domain, verified",
        &[],
    )?;
    rows.iter().map(|row| Ok((read_key(row, 0)?, read_state(row, 3)?))).collect()
}

fn stored_verdicts(tx: &mut Tx<'_>) -> Result<BTreeMap<String, (Key, Verdict, i64)>> {
    let rows = tx.query(
        "select request, agent, domain, verified, approved, applied, change, streak_before, demoted_before, confidence, at from trust_verdict order by request",
        &[],
    )?;
    let read = |row: &Row| -> Result<_> {
        let verdict = Verdict {
            approved: row.get(4)?,
            applied: Points(row.get(5)?),
            change: row.get(6)?,
            streak_before: row.get(7)?,
            demoted_before: row.get(8)?,
            confidence: row.get::<Option<i64>>(9)?.map(Points),
        };
        Ok((row.get(0)?, (read_key(row, 1)?, verdict, row.get(10)?)))
    };
    rows.iter().map(read).collect()
}

/// How many events one step of a replay reads, and how many one call of an agent reads at most.
const STEP: i64 = 2_000;
const EVENTS_MAX: u64 = 1_000_000;
/// How many rows the answer names.
const ROWS_MAX: usize = 200;

/// Recompute every score of trust from the record alone and compare it with the stored one. An agent sees its own rows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Replay {
    /// Only this agent.
    agent: Option<String>,
    /// Only this domain.
    domain: Option<String>,
}

/// What a replay came to.
#[derive(Serialize, JsonSchema)]
pub(super) struct Replayed {
    /// Whether every score, counter and kept answer agrees.
    agrees: bool,
    /// Whether the whole record was read. For a person it always is; for an agent it ends at a million events.
    complete: bool,
    /// How many events were read.
    events: u64,
    /// How many rows were compared.
    compared: usize,
    /// Each row, those that differ first; at most 200.
    rows: Vec<ReplayedRow>,
    /// Whether rows were left out of the list.
    cut: bool,
}

/// One row of a replay.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReplayedRow {
    /// The agent.
    agent: String,
    /// The domain.
    domain: String,
    /// Whether the agent proved who it was.
    verified: bool,
    /// The stored score, before fading; absent if the row is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<f64>,
    /// The score that the record gives; absent if the record does not know the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    recomputed: Option<f64>,
    /// Whether score and counters agree.
    agrees: bool,
    /// The first event whose numbers do not follow from what was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    misfit: Option<u64>,
}

pub(super) fn replay(cx: &mut Cx<'_, '_>, input: Replay) -> Result<Replayed> {
    let mut told = TrustProjection::default();
    let (events, complete) = read_record(cx, &mut told)?;
    let stored = stored_rows(cx.tx)?;
    let own = cx.actor.is_agent().then(|| cx.actor.id.clone());
    let wanted = |key: &Key| {
        own.as_ref().is_none_or(|own| *own == key.agent)
            && input.agent.as_ref().is_none_or(|agent| *agent == key.agent)
            && input.domain.as_ref().is_none_or(|domain| *domain == key.domain)
    };
    let misfit = |key: &Key| told.misfits.iter().find(|(of, _)| of == key).map(|(_, seq)| *seq);
    let keys: std::collections::BTreeSet<&Key> = stored.keys().chain(told.rows.keys()).filter(|key| wanted(key)).collect();
    let mut rows: Vec<ReplayedRow> = Vec::with_capacity(keys.len());
    for key in keys {
        let (row, recomputed, misfit) = (stored.get(key), told.rows.get(key), misfit(key));
        rows.push(ReplayedRow {
            agent: key.agent.clone(),
            domain: key.domain.clone(),
            verified: key.verified,
            stored: row.map(|state| state.score.to_f64()),
            recomputed: recomputed.map(|state| state.score.to_f64()),
            agrees: row == recomputed && misfit.is_none(),
            misfit,
        });
    }
    let verdicts_agree = told.verdicts.iter().filter(|(_, (key, ..))| wanted(key)).eq(stored_verdicts(cx.tx)?.iter().filter(|(_, (key, ..))| wanted(key)));
    let readable = misfit(&unknown()).is_none();
    let agrees = complete && readable && verdicts_agree && rows.iter().all(|row| row.agrees);
    let compared = rows.len();
    rows.sort_by_key(|row| row.agrees);
    rows.truncate(ROWS_MAX);
    Ok(Replayed { agrees, complete, events, compared, cut: rows.len() < compared, rows })
}

/// Reads the record from its beginning, and what waits to be sealed after it.
fn read_record(cx: &mut Cx<'_, '_>, told: &mut TrustProjection) -> Result<(u64, bool)> {
    let mut next = 0_u64;
    loop {
        let from = i64::try_from(next).unwrap_or(i64::MAX);
        let rows = cx.tx.query("select body from event where seq >= $1 order by seq limit $2", args![from, STEP])?;
        for row in &rows {
            take(told, next, &row.get::<String>(0)?);
            next += 1;
        }
        if rows.len() < usize::try_from(STEP).unwrap_or(usize::MAX) {
            break;
        }
        if next >= EVENTS_MAX && cx.actor.is_agent() {
            return Ok((next, false));
        }
    }
    if cx.tx.engine() == Engine::Postgres {
        // Sealing happens a moment after the commit there; what waits for it has happened all the same.
        for row in cx.tx.query("select body from event_staged order by position", &[])? {
            take(told, next, &row.get::<String>(0)?);
            next += 1;
        }
    }
    Ok((next, true))
}

/// Most events say nothing of trust, and are not worth reading in full.
fn take(told: &mut TrustProjection, seq: u64, body: &str) {
    if (body.contains(CHANGED.name) || body.contains("\"trust\":"))
        && let Ok(body) = serde_json::from_str::<Body>(body)
    {
        told.apply(seq, &body);
    }
}
