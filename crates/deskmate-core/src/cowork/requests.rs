//! What an agent can do with its requests while people decide: list, read, wait, answer, take back, begin.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::propose::{Violation, violations};
use super::show::{RequestOut, find, show};
use super::words::{self, NOTICE, agent_asked_for, check_said};
use crate::call::{Cx, Page, PageIn, Wait};
use crate::limits::{CHANGE_BYTES_MAX, NAME_CHARS_MAX, PAGE_BYTES_MAX, REASONING_BYTES_MAX, WAIT_MAX};
use crate::request::{self, Begun, Request, RequestKind, State};
use crate::{Error, Result};

/// List your requests, newest first: what waits for a person, and what became of the others. A person sees everybody's.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListRequests {
    /// The agent: you, unless you are a person; then everybody's if not given.
    agent_id: Option<String>,
    /// Only those in this state.
    state: Option<State>,
    /// Only those of this kind.
    kind: Option<RequestKind>,
    /// Only those of this domain.
    domain: Option<String>,
    /// Only those that were decided in this batch.
    batch_id: Option<String>,
    /// How many; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of requests.
#[derive(Serialize, JsonSchema)]
pub(super) struct Requests {
    /// How to treat what follows.
    notice: &'static str,
    /// The requests, newest first. A page can be shorter than asked for while there are more.
    requests: Vec<RequestOut>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

const BY_AGE: &str = "select created_at, id from request where (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3";
const BY_STATE: &str = "select created_at, id from request where state = $4 and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3";
const BY_BATCH: &str = "select created_at, id from request where batch = $4 and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3";

pub(super) fn list(cx: &mut Cx<'_, '_>, input: ListRequests) -> Result<Requests> {
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    words::check_optional("batch_id", input.batch_id.as_deref(), NAME_CHARS_MAX)?;
    let agent = agent_asked_for(cx, "agent_id", input.agent_id)?;
    let found = match (&agent, &input.batch_id) {
        (_, Some(batch)) => ids(cx, BY_BATCH, Some(batch), &page)?,
        (Some(agent), None) => request::of_requester(cx, agent, input.state, &page)?,
        (None, None) => ids(cx, if input.state.is_some() { BY_STATE } else { BY_AGE }, input.state.map(State::name), &page)?,
    };
    let now = cx.now();
    let fits = |request: &Request| {
        input.kind.is_none_or(|kind| kind == request.kind)
            && input.domain.as_ref().is_none_or(|domain| *domain == request.domain)
            && input.state.is_none_or(|state| state == request.state_at(now))
            && agent.as_ref().is_none_or(|agent| *agent == request.requester.id)
    };
    let (mut requests, mut bytes) = (Vec::new(), 0);
    for (place, request) in found.items.iter().enumerate() {
        if !fits(request) {
            continue;
        }
        let shown = show(cx, request)?;
        bytes += serde_json::to_vec(&shown).map_or(0, |text| text.len());
        if bytes > PAGE_BYTES_MAX && !requests.is_empty() {
            // The rest comes with the next page, which begins after the one before this.
            let seen = found.items.iter().take(place + 1).map(|request| (request.created_at, request.id.clone())).collect();
            let limit = u32::try_from(place).unwrap_or(u32::MAX);
            let next_cursor = Page::cut(seen, &PageIn { limit, after: None }, Clone::clone).next_cursor;
            return Ok(Requests { notice: NOTICE, requests, next_cursor });
        }
        requests.push(shown);
    }
    Ok(Requests { notice: NOTICE, requests, next_cursor: found.next_cursor })
}

/// Requests by a query for their ids.
fn ids(cx: &mut Cx<'_, '_>, sql: &'static str, which: Option<&str>, page: &PageIn) -> Result<Page<Request>> {
    let (before, id) = page.after.clone().unwrap_or((i64::MAX, String::new()));
    let rows = match which {
        Some(which) => cx.tx.query(sql, args![before, id, page.look_ahead(), which])?,
        None => cx.tx.query(sql, args![before, id, page.look_ahead()])?,
    };
    let places = rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect::<Result<Vec<(i64, String)>>>()?;
    let places = Page::cut(places, page, Clone::clone);
    let mut items = Vec::new();
    for (_, id) in places.items {
        items.extend(request::find(cx, &id)?);
    }
    Ok(Page { items, next_cursor: places.next_cursor })
}

/// Read one of your requests: how it stands, what was decided and why, questions, instructions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetRequest {
    /// Its id: a proposal_id, a handoff_id or a request_id.
    request_id: String,
}

/// A request.
#[derive(Serialize, JsonSchema)]
pub(super) struct OneRequest {
    /// How to treat what follows.
    notice: &'static str,
    /// The request.
    request: RequestOut,
}

pub(super) fn get(cx: &mut Cx<'_, '_>, input: GetRequest) -> Result<OneRequest> {
    let found = find(cx, "request_id", &input.request_id)?;
    Ok(OneRequest { notice: NOTICE, request: show(cx, &found)? })
}

/// Wait until a person has decided on your proposal, resolved your handoff, or asks you something. It holds up to 25
/// seconds; with `decided: false` and no question, ask again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitForDecision {
    /// The request: a proposal_id, a handoff_id or a request_id.
    request_id: String,
    /// How long to wait; 25 seconds if not given, which is also the longest.
    timeout_seconds: Option<u32>,
    /// True to have your client, where it can, show your person a link to the page on which they decide.
    #[serde(default)]
    #[expect(dead_code, reason = "the MCP surface reads it: only there is a client that can show something")]
    show_link: bool,
}

/// What a wait answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Waited {
    /// Whether it is decided.
    decided: bool,
    /// Whether you may do it now.
    approved: bool,
    /// In words.
    message: String,
    /// How to treat what follows.
    notice: &'static str,
    /// The request as it stands.
    request: RequestOut,
}

pub(super) fn wait(cx: &mut Cx<'_, '_>, input: WaitForDecision) -> Result<Wait<Waited>> {
    if input.timeout_seconds.is_some_and(|seconds| u64::from(seconds) > WAIT_MAX.as_secs()) {
        return Err(Error::invalid("timeout_seconds", format!("must be at most {}", WAIT_MAX.as_secs())));
    }
    let found = find(cx, "request_id", &input.request_id)?;
    let shown = show(cx, &found)?;
    let decided = shown.state != State::Pending;
    let message = match (shown.state, shown.asked_back) {
        (State::Pending, true) => "A person asks you something first.",
        (State::Pending, false) => "Nobody has decided yet. Nothing is wrong: ask again, or do something else meanwhile.",
        (State::Approved, _) if shown.kind.is_act() && shown.grant.is_none() => "It was approved, and its grant has run out.",
        (State::Approved, _) => "It is approved.",
        (State::Rejected, _) => "It is rejected.",
        (State::Expired, _) => "Nobody decided in time.",
        _ => "It is settled.",
    };
    let ready = decided || shown.asked_back;
    let approved = shown.state == State::Approved && (shown.grant.is_some() || !shown.kind.is_act());
    let answer = Waited { decided, approved, message: message.to_owned(), notice: NOTICE, request: shown };
    Ok(if ready { Wait::Ready(answer) } else { Wait::NotYet(answer) })
}

/// Answer a question that a person asked back about your request. It returns to the inbox with your answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerQuestion {
    /// The request.
    request_id: String,
    /// Your answer.
    answer: String,
}

pub(super) fn answer(cx: &mut Cx<'_, '_>, input: AnswerQuestion) -> Result<OneRequest> {
    check_said("answer", &input.answer, REASONING_BYTES_MAX)?;
    let found = find(cx, "request_id", &input.request_id)?;
    let answered = request::answer(cx, &found.id, input.answer)?;
    Ok(OneRequest { notice: NOTICE, request: show(cx, &answered)? })
}

/// Take back a request of yours that is no longer needed. An unused grant is gone with it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelRequest {
    /// The request.
    request_id: String,
    /// Why.
    reason: Option<String>,
}

pub(super) fn cancel(cx: &mut Cx<'_, '_>, input: CancelRequest) -> Result<OneRequest> {
    words::check_optional("reason", input.reason.as_deref(), REASONING_BYTES_MAX)?;
    let found = find(cx, "request_id", &input.request_id)?;
    let cancelled = request::cancel(cx, &found.id, input.reason)?;
    Ok(OneRequest { notice: NOTICE, request: show(cx, &cancelled)? })
}

/// Begin to do what was approved. This uses up the grant, after policy was asked again; do exactly what the answer says,
/// then report it with cowork_log. cowork_log without this begins and reports in one step.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BeginAct {
    /// The proposal.
    proposal_id: String,
    /// What is there now, as JSON, where you told it when you proposed: if it changed, a person looks again.
    #[schemars(with = "Option<String>")]
    target_state: Option<Value>,
}

/// Whether to go on.
#[derive(Serialize, JsonSchema)]
pub(super) struct BeginOut {
    /// The proposal.
    proposal_id: String,
    /// Whether you may do it now.
    go: bool,
    /// True when you must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<bool>,
    /// How the request stands now.
    state: State,
    /// What exactly to do: the change with a person's edits.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Value>,
    /// What to do it to.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The grant that was used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant_id: Option<String>,
    /// What was approved, as a digest.
    digest: String,
    /// Why not: `forbidden`, `stricter`, `target_changed` or `tampered`.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
    /// The rules that stand against it today.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    violations: Vec<Violation>,
    /// In words.
    message: String,
}

pub(super) fn begin(cx: &mut Cx<'_, '_>, input: BeginAct) -> Result<BeginOut> {
    let found = find(cx, "proposal_id", &input.proposal_id)?;
    if !found.kind.is_reported() {
        let hint = if found.kind == RequestKind::ToolCall { "make the same tool call again" } else { "workspace_execute_plan begins it" };
        return Err(Error::conflict("this is not begun by hand").hint(hint));
    }
    let target_state = input.target_state.map(|state| words::said("target_state", state, CHANGE_BYTES_MAX)).transpose()?;
    let begun = request::begin(cx, &found.id, target_state.as_ref())?;
    Ok(match begun {
        Begun::Go(permit) => BeginOut {
            proposal_id: found.id,
            go: true,
            error: None,
            state: permit.request.state,
            digest: permit.request.digest_hex(),
            change: Some(permit.act.arguments),
            target: Some(permit.act.target),
            grant_id: Some(permit.grant),
            stopped: None,
            violations: Vec::new(),
            message: "Do exactly this now, then report it with cowork_log.".to_owned(),
        },
        Begun::Stopped(stop) => BeginOut {
            proposal_id: found.id,
            go: false,
            error: Some(true),
            state: stop.request.state,
            digest: stop.request.digest_hex(),
            change: None,
            target: None,
            grant_id: None,
            stopped: Some(stop.why.name().to_owned()),
            violations: stop.decision.as_ref().map(violations).unwrap_or_default(),
            message: stop.message,
        },
    })
}
