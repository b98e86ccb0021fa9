//! Trust as people and agents see it: with the size of its sample, an interval, and how well the agent knows itself.

use deskmate_db::{Row, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::subject;
use super::rows::{Trust, look, rates, read_state, shown};
use super::{CHANGED, Points};
use crate::call::{Cx, Page, PageIn};
use crate::limits::{NAME_CHARS_MAX, PAGE_MAX};
use crate::policy::Mode;
use crate::record::{self, EventRow, Search};
use crate::{Error, Result, check_text, format_time};

/// How much an agent is trusted in a domain.
#[derive(Serialize, JsonSchema)]
pub(super) struct TrustRow {
    /// The agent.
    agent: String,
    /// The domain.
    domain: String,
    /// Whether the agent proved who it is; what was earned without that stays apart and never allows more than `suggest`.
    verified: bool,
    /// The score now, after fading.
    score: f64,
    /// What trust alone allows.
    mode: Mode,
    /// The share of decided proposals that was approved.
    accuracy: f64,
    /// The lower end of the share that this sample stands for, with 95 % certainty ...
    accuracy_low: f64,
    /// ... and the upper end.
    accuracy_high: f64,
    /// How many proposals and acts people decided.
    sample_size: i64,
    /// Proposals made, decided or not.
    proposals: i64,
    /// Approved ones.
    approved: i64,
    /// Overridden ones.
    overridden: i64,
    /// Overrides in a row.
    streak: i64,
    /// Whether a promotion waits for a person.
    promotion_pending: bool,
    /// How sure the agent was on average of what was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_confidence: Option<f64>,
    /// How far off it was: 0 is always right, 0.25 is guessing (Brier score).
    #[serde(skip_serializing_if = "Option::is_none")]
    brier: Option<f64>,
    /// The score before fading.
    score_before_decay: f64,
    /// When anything last happened.
    updated_at: String,
}

impl TrustRow {
    fn of(trust: &Trust) -> Self {
        let state = trust.state();
        let (accuracy_low, accuracy_high) = trust.interval();
        let mean = |sum: i64| (state.confidence_count > 0).then(|| Points(sum / state.confidence_count.max(1)).to_f64());
        let mode = if trust.verified { trust.mode() } else { trust.mode().min(Mode::Suggest) };
        Self {
            agent: trust.agent.clone(),
            domain: trust.domain.clone(),
            verified: trust.verified,
            score: trust.score.to_f64(),
            mode,
            accuracy: trust.accuracy(),
            accuracy_low,
            accuracy_high,
            sample_size: trust.decided(),
            proposals: state.proposals,
            approved: state.approved,
            overridden: state.overridden,
            streak: state.streak,
            promotion_pending: state.promoting,
            mean_confidence: mean(state.confidence_sum),
            brier: mean(state.brier_sum),
            score_before_decay: state.score.to_f64(),
            updated_at: format_time(state.updated_at),
        }
    }
}

/// Whose rows a caller may see: an agent its own, people all. `None` is everybody.
fn whose(cx: &Cx<'_, '_>, asked: Option<String>) -> Result<Option<String>> {
    match asked {
        Some(asked) if cx.actor.is_agent() && asked != cx.actor.id => Err(Error::forbidden("an agent sees only its own trust")),
        None if cx.actor.is_agent() => Ok(Some(cx.actor.id.clone())),
        asked => Ok(asked),
    }
}

/// List how much agents are trusted, by agent and domain, as of now. An agent sees its own rows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// Only this agent.
    agent: Option<String>,
    /// How many rows; at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

const LIST_ALL: &str = "select agent, domain, verified, score, proposals, approved, overridden, streak, demoted, changes, decided_since, approved_since, \
     promoting, confidence_sum, confidence_count, brier_sum, updated_at from trust where (agent, domain, verified) > ($1, $2, $3) \
     order by agent, domain, verified limit $4";
const LIST_AGENT: &str = "select agent, domain, verified, score, proposals, approved, overridden, streak, demoted, changes, decided_since, approved_since, \
     promoting, confidence_sum, confidence_count, brier_sum, updated_at from trust where (agent, domain, verified) > ($1, $2, $3) and agent = $5 \
     order by agent, domain, verified limit $4";

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<Page<TrustRow>> {
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let agent = whose(cx, input.agent)?;
    // An agent's name holds no slash; before the first page is before every row.
    let after = page.after.as_ref().map(|(verified, key)| (key.split_once('/').unwrap_or((key, "")), *verified != 0));
    let ((from_agent, from_domain), from_verified) = after.unwrap_or((("", ""), false));
    let rows = match &agent {
        None => cx.tx.query(LIST_ALL, args![from_agent, from_domain, from_verified, page.look_ahead()])?,
        Some(agent) => cx.tx.query(LIST_AGENT, args![from_agent, from_domain, from_verified, page.look_ahead(), agent])?,
    };
    let items = rows.iter().map(|row| read(cx, row)).collect::<Result<Vec<_>>>()?;
    Ok(Page::cut(items, &page, |row| (i64::from(row.verified), format!("{}/{}", row.agent, row.domain))))
}

fn read(cx: &mut Cx<'_, '_>, row: &Row) -> Result<TrustRow> {
    let (agent, domain): (String, String) = (row.get(0)?, row.get(1)?);
    let rates = rates(cx, &domain)?;
    Ok(TrustRow::of(&shown(&agent, &domain, row.get(2)?, Some(read_state(row, 3)?), rates, cx.now())))
}

/// Show how much an agent is trusted in a domain, how well it knows itself, and every change with its numbers, newest
/// first. An agent sees its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Get {
    /// The agent.
    agent: String,
    /// The domain.
    domain: String,
    /// How many changes; at most 200.
    limit: Option<u32>,
    /// Where the previous page of changes ended.
    cursor: Option<String>,
}

/// How much an agent is trusted in a domain, and how that came about.
#[derive(Serialize, JsonSchema)]
pub(super) struct Shown {
    /// What it earned with its token, and apart from that what it earned while nobody proved who it was.
    rows: Vec<TrustRow>,
    /// The score from which trust alone lets a person decide on its proposals, instead of taking the work over.
    suggest_from: f64,
    /// The score from which trust alone lets it act.
    act_from: f64,
    /// How often it was right when it was so sure: over the newest decided proposals that came with a confidence.
    calibration: Vec<Bucket>,
    /// Every change, newest first.
    history: Vec<Past>,
    /// Give this as `cursor` for the next page of changes. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Proposals of which the agent was about equally sure.
#[derive(Serialize, JsonSchema)]
pub(super) struct Bucket {
    /// From this confidence on, up to the next tenth.
    from: f64,
    /// How sure it was on average.
    mean_confidence: f64,
    /// The share that was approved.
    approved: f64,
    /// Of how many.
    count: i64,
}

/// A change.
#[derive(Serialize, JsonSchema)]
pub(super) struct Past {
    /// Its place in the record.
    seq: u64,
    /// When.
    at: String,
    /// Who answered.
    by: String,
    /// `approved`, `overridden`, `taken_back`, `promoted`, `not_promoted` or `imported`.
    cause: String,
    /// Whether the agent had proved who it was.
    verified: bool,
    /// The request that was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    /// The score before, after fading.
    previous: f64,
    /// What the answer does on its own, a demotion included.
    impact: f64,
    /// The score after.
    new: f64,
    /// Whether it demoted.
    demoted: bool,
}

impl Past {
    fn of(event: EventRow) -> Self {
        let points = |name: &str| event.facts.get(name).and_then(serde_json::Value::as_i64).map_or(0.0, |number| Points(number).to_f64());
        let flag = |name: &str| event.facts.get(name).and_then(serde_json::Value::as_bool).unwrap_or_default();
        let text = |name: &str| event.facts.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
        Self {
            cause: text("cause").unwrap_or_default(),
            verified: flag("verified"),
            request: text("request"),
            previous: points("previous"),
            impact: points("impact"),
            new: points("new"),
            demoted: flag("demoted"),
            seq: event.seq,
            at: event.at,
            by: event.actor,
        }
    }
}

pub(super) fn get(cx: &mut Cx<'_, '_>, input: Get) -> Result<Shown> {
    check_text("agent", &input.agent, NAME_CHARS_MAX)?;
    check_text("domain", &input.domain, NAME_CHARS_MAX)?;
    whose(cx, Some(input.agent.clone()))?;
    let page = PageIn::new(input.limit, None)?;
    let before = input.cursor.map(|cursor| cursor.parse().map_err(|_| Error::invalid("cursor", "is not a cursor that this operation gave out"))).transpose()?;
    let mut rows = Vec::new();
    for verified in [true, false] {
        let trust = look(cx, &input.agent, &input.domain, verified)?;
        if trust.stored.is_some() {
            rows.push(TrustRow::of(&trust));
        }
    }
    if rows.is_empty() {
        return Err(Error::not_found(format!("nothing is known of agent {} in domain {}", input.agent, input.domain)).hint("desk_trust_list shows what is"));
    }
    let calibration = calibration(cx, &input.agent, &input.domain)?;
    let search = Search { subject: Some(subject(&input.agent, &input.domain)), before, limit: page.look_ahead(), ..Search::default() };
    let mut history: Vec<Past> = record::search(cx.tx, &search)?.into_iter().filter(|event| event.kind == CHANGED.name).map(Past::of).collect();
    let more = history.len() > page.limit as usize;
    history.truncate(page.limit as usize);
    let next_cursor = history.last().filter(|_| more).map(|past| past.seq.to_string());
    let act_from = rates(cx, &input.domain)?.act_from.to_f64();
    Ok(Shown { rows, suggest_from: Points::SUGGEST.to_f64(), act_from, calibration, history, next_cursor })
}

/// How many of the newest answers the calibration looks at.
const SAMPLE_MAX: u32 = 5 * PAGE_MAX;

/// Counts the newest answers by tenths of confidence.
#[expect(clippy::cast_precision_loss, reason = "at most a thousand answers")]
fn calibration(cx: &mut Cx<'_, '_>, agent: &str, domain: &str) -> Result<Vec<Bucket>> {
    let tenth = Points::ONE.0 / 10;
    let mut buckets: std::collections::BTreeMap<i64, (i64, i64, i64)> = std::collections::BTreeMap::new();
    for verified in [true, false] {
        let rows = cx.tx.query(
            "select confidence, approved from trust_verdict where agent = $1 and domain = $2 and verified = $3 order by at desc, request desc limit $4",
            args![agent, domain, verified, SAMPLE_MAX],
        )?;
        for row in &rows {
            if let Some(confidence) = row.get::<Option<i64>>(0)? {
                let bucket = buckets.entry((confidence / tenth).clamp(0, 9)).or_default();
                *bucket = (bucket.0 + 1, bucket.1 + confidence, bucket.2 + i64::from(row.get::<bool>(1)?));
            }
        }
    }
    let shown = |(number, (count, sum, approved)): (i64, (i64, i64, i64))| Bucket {
        from: Points(number * tenth).to_f64(),
        mean_confidence: Points(sum / count.max(1)).to_f64(),
        approved: approved as f64 / count.max(1) as f64,
        count,
    };
    Ok(buckets.into_iter().map(shown).collect())
}
