//! A request as the tools show it: everything that is needed to decide, or to know what was decided.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::instruction;
use super::propose::{GrantOut, Violation, grant_of};
use super::words;
use crate::call::Cx;
use crate::policy::Reason;
use crate::request::{self, Request, RequestKind, State};
use crate::trust::Points;
use crate::{Error, Result, format_time};

/// What a person told the agent to do.
#[derive(Serialize, JsonSchema)]
pub(super) struct ToldOut {
    /// The instruction's id, for cowork_acknowledge_instructions.
    instruction_id: String,
    /// Which of those about this request it is, counted from 1; the highest is what holds.
    number: i64,
    /// What was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: Option<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    /// Whether the work goes back to the agent.
    hand_back: bool,
    /// When.
    at: String,
    /// Whether the agent has acknowledged it.
    acknowledged: bool,
}

/// A request.
#[derive(Serialize, JsonSchema)]
pub(super) struct RequestOut {
    /// Its id.
    pub(super) request_id: String,
    /// What waits: `proposal`, `handoff` and others.
    pub(super) kind: RequestKind,
    /// How it stands.
    pub(super) state: State,
    /// Who asks.
    pub(super) requester: String,
    /// Whether a credential proved who asks.
    pub(super) verified: bool,
    /// The scope of work.
    pub(super) domain: String,
    /// How urgent it is: `urgent`, `high`, `normal` or `low`.
    pub(super) priority: String,
    /// What policy answered when it was made.
    pub(super) mode: String,
    /// `low`, `medium`, `high` or `critical`.
    pub(super) risk: String,
    /// A line about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// Who is asked first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) assignee: Option<String>,
    /// What would be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) action: Option<String>,
    /// To what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    /// The field that the agent named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<String>,
    /// The whole change, as it would be done: with a person's edits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proposed_change: Option<Value>,
    /// What the agent had proposed, where a person edited it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before_edit: Option<Value>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<String>,
    /// A handoff's context, or what the proposal was based on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<Value>,
    /// How sure the agent was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confidence: Option<f64>,
    /// The rules that fired.
    pub(super) policy_hits: Vec<Violation>,
    /// What the answer of policy came from; what would change it is for people only.
    pub(super) reasons: Vec<Reason>,
    /// What exactly is meant, as a digest.
    pub(super) digest: String,
    /// The permission, while it is unused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) grant: Option<GrantOut>,
    /// Who decided: a person's id, or `desk` when policy let it pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decided_by: Option<String>,
    /// When it was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decided_at: Option<String>,
    /// Why it was decided so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Questions and answers, oldest first.
    pub(super) notes: Vec<request::NoteOut>,
    /// Whether a question waits for the agent's answer.
    pub(super) asked_back: bool,
    /// What people told the agent about it, oldest first.
    pub(super) instructions: Vec<ToldOut>,
    /// The batch that it was decided in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) batch_id: Option<String>,
    /// The request in whose place it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) supersedes: Option<String>,
    /// When it was made.
    pub(super) created_at: String,
    /// When anything about it changed last.
    pub(super) updated_at: String,
    /// When it expires if nobody decides.
    pub(super) expires_at: String,
    /// What to do now, for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

/// A request that the caller may see.
pub(super) fn find(cx: &mut Cx<'_, '_>, field: &str, given: &str) -> Result<Request> {
    let id = words::id(field, given)?;
    let found = request::find(cx, &id)?;
    found.ok_or_else(|| Error { field: Some(field.to_owned()), ..Error::not_found(format!("there is no request {id} for you")) })
}

/// Everything about a request.
pub(super) fn show(cx: &mut Cx<'_, '_>, request: &Request) -> Result<RequestOut> {
    let now = cx.now();
    let act = request.act().ok();
    let mut packet = request.told()?;
    let decision = request.decided()?;
    let mut change = act.as_ref().map(|act| act.arguments.clone()).filter(|_| request.kind != RequestKind::Handoff);
    if let Some(decision) = &decision {
        packet = request::shown_packet(&packet, act.as_ref().and_then(|act| act.field.as_deref()), decision);
        if let Some(change) = &mut change {
            request::hide(change, &decision.redact);
        }
    }
    let state = request.state_at(now);
    let hits: Vec<Violation> = decision.iter().flat_map(|decision| decision.hits.iter().map(Violation::of)).collect();
    let reasons = words::reasons_for(cx, decision.map(|decision| decision.reasons).unwrap_or_default());
    let grant = if state == State::Approved { grant_of(cx, &request.id)? } else { None };
    let told = instruction::of_request(cx.tx, &request.id)?;
    Ok(RequestOut {
        request_id: request.id.clone(),
        kind: request.kind,
        state,
        requester: request.requester.id.clone(),
        verified: request.requester.verified,
        domain: request.domain.clone(),
        priority: request.priority.name().to_owned(),
        mode: request.mode.clone(),
        risk: request.risk.clone(),
        title: request.title.clone(),
        assignee: request.assignee.clone(),
        action: act.as_ref().map(|act| act.action.clone()),
        target: act.as_ref().map(|act| act.target.clone()),
        field: act.as_ref().and_then(|act| act.field.clone()),
        proposed_change: change,
        before_edit: packet.proposed,
        reasoning: packet.reasoning,
        context: Some(packet.more).filter(|more| !more.is_null()),
        confidence: request.confidence.map(|confidence| Points(confidence).to_f64()),
        policy_hits: hits,
        reasons,
        digest: request.digest_hex(),
        next: next_step(request, state, grant.is_some()),
        grant,
        decided_by: request.decided_by.clone(),
        decided_at: request.decided_at.map(format_time),
        reason: request.reason.clone(),
        notes: request::notes_of(cx, request)?,
        asked_back: state == State::Pending && request.asked_at.is_some(),
        instructions: told.into_iter().map(told_out).collect(),
        batch_id: request.batch.clone(),
        supersedes: request.supersedes.clone(),
        created_at: format_time(request.created_at),
        updated_at: format_time(request.updated_at),
        expires_at: format_time(request.expires_at),
    })
}

fn told_out(row: instruction::InstructionRow) -> ToldOut {
    ToldOut {
        instruction_id: row.id,
        number: row.number,
        resolution: row.resolution,
        instructions: row.instructions,
        hand_back: row.hand_back,
        at: format_time(row.created_at),
        acknowledged: row.acknowledged_at.is_some(),
    }
}

/// What the agent should do now.
fn next_step(request: &Request, state: State, granted: bool) -> Option<String> {
    let id = &request.id;
    let step = match (state, request.kind) {
        (State::Pending, _) if request.asked_at.is_some() => format!("a person asks you something: answer with cowork_answer_question and request_id {id}"),
        (State::Pending, _) => format!("wait: call cowork_wait_for_decision with request_id {id} again"),
        (State::Approved, RequestKind::Handoff) => "read the instructions, then acknowledge them with cowork_acknowledge_instructions".to_owned(),
        (State::Approved, RequestKind::Plan) if granted => "do it with workspace_execute_plan".to_owned(),
        (State::Approved, RequestKind::ToolCall) if granted => "make exactly this tool call again: it runs once".to_owned(),
        (State::Executing | State::Ambiguous, RequestKind::ToolCall) => return None,
        (State::Executing | State::Ambiguous, RequestKind::Plan) => "look at it with workspace_get_plan".to_owned(),
        (State::Approved, _) if granted => format!("do exactly this, then call cowork_log with proposal_id {id} and its outcome"),
        (State::Approved, _) if request.kind.is_act() => "the grant ran out before it was used: propose it again".to_owned(),
        (State::Executing, _) => format!("report the outcome with cowork_log and proposal_id {id}"),
        (State::Ambiguous, _) => format!("find out what happened, then report it with cowork_log and proposal_id {id}"),
        (State::Rejected, _) => "do not do it; the reason says why".to_owned(),
        (State::Expired, _) => "nobody decided in time: propose it again if it still makes sense".to_owned(),
        _ => return None,
    };
    Some(step)
}
