//! How things stand: trust, what waits, what happened lately. People see everybody's, an agent its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::handoff::reason_of;
use super::standing::mode_of;
use super::timeline::{self, Moment, session_before};
use super::words::{NOTICE, agent_asked_for};
use crate::call::{Cx, Mode as DeskMode};
use crate::limits::{PAGE_BYTES_MAX, PAGE_MAX, TITLE_CHARS_MAX};
use crate::policy::{self, Mode};
use crate::request::{self, Requester};
use crate::trust::Points;
use crate::{Error, Result, format_time, identity, trust};

/// See how things stand: trust, what waits for people, open handoffs with their context, and what happened lately, the
/// newest first. An agent sees its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetStatus {
    /// Only what concerns this agent.
    agent_id: Option<String>,
    /// Whether to show what happened lately; yes if not given.
    include_timeline: Option<bool>,
    /// How many moments of it: 1 to 200, 20 if not given.
    timeline_limit: Option<u32>,
    /// Where the previous page of it ended.
    timeline_cursor: Option<String>,
}

/// Trust in words, as earlier servers showed it.
#[derive(Serialize, JsonSchema)]
pub(super) struct TrustLine {
    /// The agent.
    agent: String,
    /// The domain.
    domain: String,
    /// The score with two digits.
    score: String,
    /// The share of decided proposals that was approved.
    accuracy: String,
    /// How many were decided.
    sample_size: i64,
}

/// Trust in numbers, as of now.
#[derive(Serialize, JsonSchema)]
pub(super) struct TrustRow {
    /// The agent.
    agent_id: String,
    /// The domain.
    domain: String,
    /// The score now, after fading.
    score: f64,
    /// The share of decided proposals that was approved.
    accuracy: f64,
    /// Proposals made.
    total_actions: i64,
    /// Proposals that people approved.
    approved_actions: i64,
    /// Proposals and acts that people overrode.
    overridden_actions: i64,
    /// Overrides in a row.
    consecutive_overrides: i64,
    /// What a proposal with nothing else against it would be answered.
    mode: Mode,
    /// How many were decided.
    sample_size: i64,
    /// Between which shares the accuracy lies with 95 % certainty.
    interval: [f64; 2],
    /// Whether the score was earned by an agent that proved who it is.
    verified: bool,
    /// When anything last happened to it.
    last_updated: String,
}

/// Counts.
#[derive(Serialize, JsonSchema)]
pub(super) struct Stats {
    /// Proposals made.
    total_actions: i64,
    /// Proposals that people approved.
    approved_actions: i64,
    /// Overrides by people.
    overrides: i64,
    /// Their share of the proposals.
    override_rate: String,
    /// Proposals that wait for people.
    pending_proposals: i64,
    /// Handoffs that wait for people.
    open_handoffs: i64,
    /// How many overrides there are of each type.
    override_reasons: BTreeMap<String, i64>,
    /// Trust in words.
    trust_scores: Vec<TrustLine>,
}

/// A handoff that waits.
#[derive(Serialize, JsonSchema)]
pub(super) struct OpenHandoff {
    /// Its id.
    handoff_id: String,
    /// Who handed it over.
    agent_id: String,
    /// The domain.
    domain: String,
    /// How urgent it is.
    priority: String,
    /// Who is asked first.
    #[serde(skip_serializing_if = "Option::is_none")]
    assignee: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How sure the agent was.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    /// The context packet.
    context: Value,
    /// Since when.
    created_at: String,
    /// When it goes to the owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    escalates_at: Option<String>,
}

/// Settings that earlier servers showed.
#[derive(Serialize, JsonSchema)]
pub(super) struct ConfigOut {
    /// The score that an agent starts with.
    default_trust: f64,
    /// The best answer for an agent of whose proposals nobody has decided any yet.
    default_mode: Mode,
    /// Proposals of one agent in one domain within an hour.
    volume_cap: u32,
}

/// How things stand.
#[derive(Serialize, JsonSchema)]
pub(super) struct StatusOut {
    /// In words, for people.
    text: String,
    /// How to treat texts below.
    notice: &'static str,
    /// The present run of the server.
    session_id: String,
    /// Whether agents may just name themselves (`open`) or need their tokens (`closed`).
    auth_mode: DeskMode,
    /// Whether your credential proved who you are.
    verified: bool,
    /// Counts.
    stats: Stats,
    /// Trust in numbers, by agent and domain; at most 200.
    trust_scores: Vec<TrustRow>,
    /// True when there are more than these: ask for one agent.
    trust_scores_cut: bool,
    /// Proposals that wait for people.
    pending_proposals: i64,
    /// Handoffs that wait for people.
    open_handoffs: i64,
    /// Those handoffs with their context, the most urgent first; at most 50, and not more than an answer holds.
    handoffs: Vec<OpenHandoff>,
    /// What happened lately, the newest first.
    timeline: Vec<Moment>,
    /// Give this as `timeline_cursor` for what happened before. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline_next_cursor: Option<String>,
    /// Settings.
    config: ConfigOut,
}

pub(super) fn status(cx: &mut Cx<'_, '_>, input: GetStatus) -> Result<StatusOut> {
    let agent = agent_asked_for(cx, "agent_id", input.agent_id)?;
    let agent = agent.as_deref();
    let limit = input.timeline_limit.unwrap_or(20);
    if limit == 0 || limit > PAGE_MAX {
        return Err(Error::invalid("timeline_limit", format!("must be between 1 and {PAGE_MAX}")));
    }
    let wrong = || Error::invalid("timeline_cursor", "is not a cursor that this operation gave out");
    let before = input.timeline_cursor.as_deref().map(|cursor| cursor.parse::<u64>().map_err(|_| wrong())).transpose()?;
    let (trust_scores, trust_scores_cut) = trust_rows(cx, agent)?;
    let pending_proposals = count_pending(cx, "proposal", agent)?;
    let open_handoffs = count_pending(cx, "handoff", agent)?;
    let stats = stats(cx, agent, &trust_scores, pending_proposals, open_handoffs)?;
    let page = if input.include_timeline.unwrap_or(true) {
        timeline::page(cx, before, limit as usize, agent)?
    } else {
        timeline::Page { moments: Vec::new(), next: None }
    };
    let auth_mode = identity::mode(cx.tx)?;
    let rulebook = policy::current(cx)?;
    let settings = rulebook.settings("");
    let session_id = session_before(cx.tx, None)?.1;
    let mut out = StatusOut {
        text: String::new(),
        notice: NOTICE,
        session_id,
        auth_mode,
        verified: cx.actor.verified,
        stats,
        trust_scores,
        trust_scores_cut,
        pending_proposals,
        open_handoffs,
        handoffs: handoffs(cx, agent)?,
        timeline: page.moments,
        timeline_next_cursor: page.next,
        config: ConfigOut {
            default_trust: settings.trust.default_level,
            default_mode: settings.authority.default_mode,
            volume_cap: settings.authority.volume_cap,
        },
    };
    out.text = out.in_words();
    Ok(out)
}

/// Trust by agent and domain, and whether there is more.
fn trust_rows(cx: &mut Cx<'_, '_>, agent: Option<&str>) -> Result<(Vec<TrustRow>, bool)> {
    const ALL: &str = "select agent, domain, verified from trust order by agent, domain, verified limit $1";
    const OF: &str = "select agent, domain, verified from trust where agent = $2 order by domain, verified limit $1";
    let mut rows = match agent {
        None => cx.tx.query(ALL, args![PAGE_MAX + 1])?,
        Some(agent) => cx.tx.query(OF, args![PAGE_MAX + 1, agent])?,
    };
    let is_cut = rows.len() > PAGE_MAX as usize;
    rows.truncate(PAGE_MAX as usize);
    let mut found = Vec::new();
    for row in rows {
        let who = Requester::agent(row.get::<String>(0)?, row.get(2)?);
        let domain: String = row.get(1)?;
        let (mode, _) = mode_of(cx, &who, &domain, None)?;
        let trust = trust::look(cx, &who.id, &domain, who.verified)?;
        let (state, (low, high)) = (trust.state(), trust.interval());
        found.push(TrustRow {
            agent_id: who.id,
            domain,
            score: trust.score.to_f64(),
            accuracy: trust.accuracy(),
            total_actions: state.proposals,
            approved_actions: state.approved,
            overridden_actions: state.overridden,
            consecutive_overrides: state.streak,
            mode,
            sample_size: trust.decided(),
            interval: [low, high],
            verified: who.verified,
            last_updated: format_time(state.updated_at),
        });
    }
    Ok((found, is_cut))
}

const PENDING_ALL: &str = "select count(*) from request where state = 'pending' and kind = $1 and expires_at > $2";
const PENDING_OF: &str = "select count(*) from request where state = 'pending' and kind = $1 and expires_at > $2 and requester = $3";

fn count_pending(cx: &mut Cx<'_, '_>, kind: &str, agent: Option<&str>) -> Result<i64> {
    let now = cx.now();
    let row = match agent {
        None => cx.tx.one(PENDING_ALL, args![kind, now])?,
        Some(agent) => cx.tx.one(PENDING_OF, args![kind, now, agent])?,
    };
    Ok(row.get(0)?)
}

const SUMS_ALL: &str =
    "select cast(coalesce(sum(proposals), 0) as bigint), cast(coalesce(sum(approved), 0) as bigint), cast(coalesce(sum(overridden), 0) as bigint) from trust";
const SUMS_OF: &str = "select cast(coalesce(sum(proposals), 0) as bigint), cast(coalesce(sum(approved), 0) as bigint), cast(coalesce(sum(overridden), 0) as bigint) from trust where agent = $1";

fn stats(cx: &mut Cx<'_, '_>, agent: Option<&str>, rows: &[TrustRow], pending_proposals: i64, open_handoffs: i64) -> Result<Stats> {
    let sums = match agent {
        None => cx.tx.one(SUMS_ALL, &[])?,
        Some(agent) => cx.tx.one(SUMS_OF, args![agent])?,
    };
    let (total_actions, approved_actions, overrides): (i64, i64, i64) = (sums.get(0)?, sums.get(1)?, sums.get(2)?);
    let line = |row: &TrustRow| TrustLine {
        agent: row.agent_id.clone(),
        domain: row.domain.clone(),
        score: format!("{:.2}", row.score),
        accuracy: format!("{:.1}%", row.accuracy * 100.0),
        sample_size: row.sample_size,
    };
    Ok(Stats {
        total_actions,
        approved_actions,
        overrides,
        override_rate: rate(overrides, total_actions),
        pending_proposals,
        open_handoffs,
        override_reasons: timeline::override_reasons(cx, agent)?,
        trust_scores: rows.iter().map(line).collect(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts of proposals are far below 2^52")]
fn rate(part: i64, of: i64) -> String {
    if of == 0 { "0%".to_owned() } else { format!("{:.1}%", part as f64 * 100.0 / of as f64) }
}

const OPEN_ALL: &str = "select id from request where state = 'pending' and kind = 'handoff' and expires_at > $1 order by place, id limit 50";
const OPEN_OF: &str = "select id from request where state = 'pending' and kind = 'handoff' and expires_at > $1 and requester = $2 order by place, id limit 50";

fn handoffs(cx: &mut Cx<'_, '_>, agent: Option<&str>) -> Result<Vec<OpenHandoff>> {
    let now = cx.now();
    let rows = match agent {
        None => cx.tx.query(OPEN_ALL, args![now])?,
        Some(agent) => cx.tx.query(OPEN_OF, args![now, agent])?,
    };
    let (mut found, mut bytes) = (Vec::new(), 0);
    for row in rows {
        let Some(request) = request::find(cx, &row.get::<String>(0)?)? else { continue };
        bytes += request.packet.as_ref().map_or(0, String::len);
        if bytes > PAGE_BYTES_MAX && !found.is_empty() {
            break;
        }
        found.push(OpenHandoff {
            reason: reason_of(&request)?,
            context: request.told()?.more,
            confidence: request.confidence.map(|confidence| Points(confidence).to_f64()),
            handoff_id: request.id,
            agent_id: request.requester.id,
            domain: request.domain,
            priority: request.priority.name().to_owned(),
            assignee: request.assignee,
            created_at: format_time(request.created_at),
            escalates_at: request.escalate_at.map(format_time),
        });
    }
    Ok(found)
}

impl StatusOut {
    /// What a person reads first.
    fn in_words(&self) -> String {
        let mut text = String::new();
        let stats = &self.stats;
        let mode = if self.auth_mode == DeskMode::Open { "open: nobody proves who they are" } else { "closed: agents need their tokens" };
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "{} proposals, {} approved by people, {} overridden ({}).\n{} proposals and {} handoffs wait for people. The desk is {mode}.",
            stats.total_actions, stats.approved_actions, stats.overrides, stats.override_rate, self.pending_proposals, self.open_handoffs
        );
        for row in &self.trust_scores {
            let unverified = if row.verified { "" } else { ", unverified" };
            let _ = writeln!(text, "{} in {}: {:.2}, {}, {} decided{unverified}", row.agent_id, row.domain, row.score, row.mode.name(), row.sample_size);
        }
        for handoff in &self.handoffs {
            let reason = super::words::one_line(handoff.reason.as_deref().unwrap_or_default(), TITLE_CHARS_MAX);
            let _ = writeln!(text, "{} waits for a person in {}: {reason}", handoff.agent_id, handoff.domain);
        }
        for moment in &self.timeline {
            let _ = writeln!(text, "{} {}", moment.created_at, moment.summary);
        }
        text
    }
}
