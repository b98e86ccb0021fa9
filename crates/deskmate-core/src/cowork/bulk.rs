//! Deciding many proposals at once: filters that filter, a preview of exactly the set, all or nothing on request, and
//! the batch on the record. Each proposal is decided on its own, so trust moves for its own agent and domain.

use std::collections::BTreeMap;

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::words::{self, check_domain, check_share};
use crate::call::Cx;
use crate::limits::{BULK_MAX, NAME_CHARS_MAX, PAGE_MAX, REASONING_BYTES_MAX};
use crate::record::{self, Event, Kind};
use crate::request::{self, Correction, Further, Request};
use crate::trust::{self, Points, Severity};
use crate::{Code, Error, Result, check_text, digest, format_time, hex};

/// Many requests were decided at once.
pub(super) const DECIDED: Kind = Kind { name: "batch.decided", says: "A person decided several requests at once; each has the batch on its own events." };

/// Whether who decided a batch had seen its list, as the record tells.
pub(super) fn was_seen(cx: &mut Cx<'_, '_>, batch: &str) -> Result<bool> {
    let told = record::told_of(cx.tx, &format!("batch:{batch}"), 1)?;
    Ok(told.first().is_some_and(|told| told.body.kind == DECIDED.name && told.body.facts.get("seen") == Some(&Value::Bool(true))))
}

/// Whether a call decides, and does not only show what it would decide.
pub(super) fn decides(input: &Value) -> bool {
    input.get("preview") != Some(&Value::Bool(true))
}

/// Answers that changed nothing: nothing fitted.
pub(super) fn is_untold(answer: &Value) -> bool {
    answer.get("count") == Some(&json!(0))
}

/// Approve all pending proposals that fit the filters. For people: agents are refused. Look first with `preview: true`,
/// and give its `set_digest` back as `expected_set`, so that exactly those are approved.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BulkApprove {
    /// Only proposals of this agent.
    filter_agent_id: Option<String>,
    /// Only proposals in this domain.
    filter_domain: Option<String>,
    /// Only proposals whose agent was at least this sure.
    filter_min_confidence: Option<f64>,
    /// Only proposals of agents with at least this score in the domain.
    filter_min_trust_score: Option<f64>,
    /// What you want to say to the agents.
    feedback: String,
    /// Only show what would be approved.
    #[serde(default)]
    preview: bool,
    /// The `set_digest` of a preview: if anything changed since, nothing is approved. Without it each counts as an approval of its own.
    expected_set: Option<String>,
    /// If one cannot be approved, none is.
    #[serde(default)]
    all_or_nothing: bool,
}

/// Reject all pending proposals that fit the filters. For people: agents are refused. Look first with `preview: true`,
/// and give its `set_digest` back as `expected_set`, so that exactly those are rejected.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BulkReject {
    /// Only proposals of this agent.
    filter_agent_id: Option<String>,
    /// Only proposals in this domain.
    filter_domain: Option<String>,
    /// Only proposals whose agent was at least this sure.
    filter_min_confidence: Option<f64>,
    /// Only proposals of agents with at least this score in the domain.
    filter_min_trust_score: Option<f64>,
    /// What was wrong: `agent_wrong`: the agent erred; `human_preference`: a person wants it otherwise; `missing_context`: the agent could
    /// not know; `policy_change`: the rules changed, it costs no trust; `edge_case`: it was unusual; or what the domain's setting
    /// `feedback.reason_types` names in their place.
    #[schemars(extend("examples" = ["agent_wrong", "human_preference", "missing_context", "policy_change", "edge_case"]))]
    override_type: String,
    /// How bad it was; `medium` if not given.
    severity: Option<Severity>,
    /// Why, for the agents to learn from. A domain's `feedback.override_requires_reason` says whether it may be left out.
    #[serde(default)]
    description: String,
    /// Only show what would be rejected.
    #[serde(default)]
    preview: bool,
    /// The `set_digest` of a preview: if anything changed since, nothing is rejected.
    expected_set: Option<String>,
    /// If one cannot be rejected, none is.
    #[serde(default)]
    all_or_nothing: bool,
}

/// A proposal in a set.
#[derive(Serialize, JsonSchema)]
pub(super) struct InSet {
    /// Its id.
    proposal_id: String,
    /// Its agent.
    agent_id: String,
    /// Its domain.
    domain: String,
    /// A line about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// How sure the agent was.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    /// The agent's score in the domain.
    trust_score: f64,
    /// `low`, `medium`, `high` or `critical`.
    risk: String,
    /// What exactly was proposed, as a digest.
    digest: String,
    /// Since when it waits.
    created_at: String,
}

/// A proposal that could not be decided.
#[derive(Serialize, JsonSchema)]
pub(super) struct BulkError {
    /// The proposal.
    proposal_id: String,
    /// Why not.
    error: String,
}

/// What was decided, or would be.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Batch {
    /// The batch's id; absent when nothing was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_id: Option<String>,
    /// True when this only shows what would be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<bool>,
    /// How many proposals fit.
    count: usize,
    /// How many were approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<usize>,
    /// How many were rejected; when approving, how many could not be approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<usize>,
    /// How many were approved and wait for more people.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<usize>,
    /// The first of those that could not be decided; at most 200.
    errors: Vec<BulkError>,
    /// How many could not be decided.
    error_count: usize,
    /// The digest of exactly this set.
    set_digest: String,
    /// The set, oldest first; with `preview`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    proposals: Vec<InSet>,
    /// True when more fit than one call decides: call again for the rest.
    more: bool,
    /// In words.
    message: String,
}

/// Which proposals are meant.
#[derive(Default)]
struct Filter {
    agent: Option<String>,
    domain: Option<String>,
    min_confidence: Option<f64>,
    min_trust: Option<f64>,
}

impl Filter {
    fn check(&self) -> Result<()> {
        if let Some(agent) = &self.agent {
            check_text("filter_agent_id", agent, NAME_CHARS_MAX)?;
        }
        if let Some(domain) = &self.domain {
            check_domain("filter_domain", domain)?;
        }
        self.min_confidence.map_or(Ok(()), |share| check_share("filter_min_confidence", share))?;
        self.min_trust.map_or(Ok(()), |share| check_share("filter_min_trust_score", share))
    }

    fn facts(&self, event: Event) -> Event {
        event
            .fact("agent", self.agent.clone())
            .fact("domain", self.domain.clone())
            .fact("min_confidence", self.min_confidence)
            .fact("min_trust", self.min_trust)
    }
}

const PENDING: &str = "select id from request where state = 'pending' and kind in ('proposal', 'approval') and ($1 = '' or requester = $1) \
     and ($2 = '' or domain = $2) and expires_at > $3 and coalesce(confidence, 0) >= $4 and (created_at, id) > ($5, $6) order by created_at, id limit $7";

struct Set {
    members: Vec<(Request, Points)>,
    digest: String,
    more: bool,
}

/// The proposals that fit and that the caller may decide, oldest first.
fn select(cx: &mut Cx<'_, '_>, filter: &Filter) -> Result<Set> {
    let (agent, domain) = (filter.agent.as_deref().unwrap_or_default(), filter.domain.as_deref().unwrap_or_default());
    let confidence = Points::of(filter.min_confidence.unwrap_or(0.0)).0;
    let (mut covered, mut scores) = (BTreeMap::<String, bool>::new(), BTreeMap::<(String, String, bool), Points>::new());
    let (mut members, mut more, mut refusal, mut place) = (Vec::new(), false, None, (i64::MIN, String::new()));
    'pages: loop {
        let rows = cx.tx.query(PENDING, args![agent, domain, cx.now(), confidence, place.0, place.1, PAGE_MAX])?;
        for row in &rows {
            let id: String = row.get(0)?;
            let Some(found) = request::find(cx, &id)? else { continue };
            place = (found.created_at, found.id.clone());
            let mine = if let Some(mine) = covered.get(&found.domain) {
                *mine
            } else {
                let mine = request::covers_domain(cx, &found.domain)?;
                covered.insert(found.domain.clone(), mine);
                mine
            };
            let key = (found.requester.id.clone(), found.domain.clone(), found.requester.verified);
            let score = if let Some(score) = scores.get(&key) {
                *score
            } else {
                let score = trust::look(cx, &key.0, &key.1, key.2)?.score;
                scores.insert(key, score);
                score
            };
            if !mine || filter.min_trust.is_some_and(|least| score < Points::of(least)) {
                continue;
            }
            // What they asked for themselves, or where their token does not decide, holds up nothing else.
            match request::check_decider(cx, &found) {
                Err(error) if error.code == Code::Forbidden && !error.needs_presence => {
                    refusal.get_or_insert(error);
                    continue;
                }
                checked => checked?,
            }
            if members.len() == BULK_MAX {
                more = true;
                break 'pages;
            }
            members.push((found, score));
        }
        if rows.len() < PAGE_MAX as usize {
            break;
        }
    }
    if let Some(refusal) = refusal.filter(|_| members.is_empty()) {
        return Err(refusal);
    }
    let exactly: Vec<Value> = members.iter().map(|(request, _)| json!([request.id, request.digest_hex()])).collect();
    Ok(Set { digest: hex(&digest(&exactly)?), members, more })
}

fn shown(request: &Request, score: Points) -> InSet {
    InSet {
        proposal_id: request.id.clone(),
        agent_id: request.requester.id.clone(),
        domain: request.domain.clone(),
        title: request.title.clone(),
        confidence: request.confidence.map(|confidence| Points(confidence).to_f64()),
        trust_score: score.to_f64(),
        risk: request.risk.clone(),
        digest: request.digest_hex(),
        created_at: format_time(request.created_at),
    }
}

/// How a set is decided.
struct How<'a> {
    verb: &'static str,
    expected: Option<&'a str>,
    all_or_nothing: bool,
    preview: bool,
}

/// Selects, and decides each on its own. Refusals are kept apart; faults of the desk undo everything.
fn run(
    cx: &mut Cx<'_, '_>,
    filter: &Filter,
    how: &How<'_>,
    mut decide: impl FnMut(&mut Cx<'_, '_>, &Request, &Further) -> Result<Request>,
) -> Result<(Batch, usize)> {
    filter.check()?;
    let set = select(cx, filter)?;
    let mut batch = Batch { count: set.members.len(), set_digest: set.digest.clone(), more: set.more, ..Batch::default() };
    if how.preview {
        batch.preview = Some(true);
        batch.message = format!("{} proposals would be decided. Give set_digest back as expected_set to decide exactly these.", batch.count);
        batch.proposals = set.members.iter().map(|(request, score)| shown(request, *score)).collect();
        return Ok((batch, 0));
    }
    if how.expected.is_some_and(|expected| !expected.eq_ignore_ascii_case(&set.digest)) {
        return Err(Error::conflict("the set is not the one that you saw: proposals came or went").hint("preview it again, and decide with its new set_digest"));
    }
    if set.members.is_empty() {
        let message = "No pending proposal fits; nothing was decided.".to_owned();
        return Ok((Batch { message, ..batch }, 0));
    }
    let id = format!("batch_{}", cx.new_id());
    let further = Further { batch: Some(id.clone()), ..Further::default() };
    let (mut settled, mut waiting) = (0, 0);
    for (request, _) in &set.members {
        match decide(cx, request, &further) {
            Ok(after) if after.state == request::State::Pending => waiting += 1,
            Ok(_) => settled += 1,
            // The passphrase would do, so none is decided before it is given. A token has none to give.
            Err(error) if error.needs_presence && cx.actor.scopes.is_none() => return Err(error),
            Err(error) if how.all_or_nothing => {
                return Err(Error::conflict(format!("{} cannot be decided, so none was: {error}", request.id)));
            }
            Err(error) if matches!(error.code, Code::Conflict | Code::Forbidden | Code::Invalid) => {
                batch.error_count += 1;
                if batch.errors.len() < PAGE_MAX as usize {
                    batch.errors.push(BulkError { proposal_id: request.id.clone(), error: error.to_string() });
                }
            }
            Err(error) => return Err(error),
        }
    }
    let event = Event::new(DECIDED, format!("batch:{id}"))
        .fact("batch", id.as_str())
        .fact("verb", how.verb)
        .fact("count", batch.count)
        .fact("settled", settled)
        .fact("waiting", waiting)
        .fact("failed", batch.error_count)
        .fact("set", set.digest)
        .fact("seen", how.expected.is_some());
    cx.emit(filter.facts(event))?;
    batch.batch_id = Some(id);
    batch.waiting = (waiting > 0).then_some(waiting);
    batch.message = format!("{settled} of {} decided, {} could not be.", batch.count, batch.error_count);
    Ok((batch, settled))
}

pub(super) fn approve(cx: &mut Cx<'_, '_>, input: BulkApprove) -> Result<Batch> {
    words::check_optional("feedback", Some(&input.feedback), REASONING_BYTES_MAX)?;
    let filter = Filter {
        agent: input.filter_agent_id,
        domain: input.filter_domain,
        min_confidence: input.filter_min_confidence,
        min_trust: input.filter_min_trust_score,
    };
    let how = How { verb: "approve", expected: input.expected_set.as_deref(), all_or_nothing: input.all_or_nothing, preview: input.preview };
    let feedback = Some(input.feedback).filter(|text| !text.trim().is_empty());
    let (batch, settled) = run(cx, &filter, &how, |cx, request, further| {
        let seen = request.digest_hex();
        request::approve_with(cx, &request.id, None, Some(&seen), feedback.clone(), further)
    })?;
    let rejected = batch.error_count;
    Ok(if how.preview { batch } else { Batch { approved: Some(settled), rejected: Some(rejected), ..batch } })
}

pub(super) fn reject(cx: &mut Cx<'_, '_>, input: BulkReject) -> Result<Batch> {
    words::check_optional("description", Some(&input.description), REASONING_BYTES_MAX)?;
    let filter = Filter {
        agent: input.filter_agent_id,
        domain: input.filter_domain,
        min_confidence: input.filter_min_confidence,
        min_trust: input.filter_min_trust_score,
    };
    let how = How { verb: "reject", expected: input.expected_set.as_deref(), all_or_nothing: input.all_or_nothing, preview: input.preview };
    let correction = Correction { reason: Some(input.description), kind: Some(input.override_type), severity: input.severity, action: None };
    let (batch, settled) = run(cx, &filter, &how, |cx, request, further| {
        let seen = request.digest_hex();
        request::reject_with(cx, &request.id, Some(&seen), correction.clone(), further)
    })?;
    Ok(if how.preview { batch } else { Batch { rejected: Some(settled), ..batch } })
}
