//! What people can do with requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::access::check_fresh;
use super::decide::Correction;
use super::model::{Request, State};
use super::remember::{self, Draft};
use super::standing::{self, StandingRow};
use super::submit::{find, missing};
use super::view::{Details, RequestOut, WaitsFor, details};
use super::{decide, talk};
use crate::call::{Cx, Page, PageIn, Wait};
use crate::trust::Severity;
use crate::{Error, Result, format_time, parse_time};

/// Read one request with everything that a person needs to decide it: who asks, exactly what would be done with a
/// difference field by field, why, how sure, which rules fired, trust, risk, similar ones, votes and notes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Get {
    /// The request's id.
    request: String,
}

pub(super) fn get(cx: &mut Cx<'_, '_>, input: Get) -> Result<Details> {
    let request = find(cx, &input.request)?.ok_or_else(|| missing(&input.request))?;
    details(cx, &request)
}

/// How an approval is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Remember {
    /// Acts like it (the same verb, tool, action and environment, no other changed paths, nothing from outside) pass for `hours` without a person. It stands in for trust only: rules, limits and high-risk fields hold.
    Session,
    /// A rule is drafted that would let acts like it pass, with the earlier acts that it would have matched. It is not put in force.
    Rule,
}

/// Approve a request: the requester may then do exactly that, once, for a while. Give the digest of what you saw.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Approve {
    /// The request's id.
    request: String,
    /// The `digest` of what you saw; if the request was changed meanwhile, the answer is a conflict.
    expected_digest: Option<String>,
    /// Other arguments in place of all those that were proposed. Earlier votes are void, and the requester gets the act as you edited it.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    edits: Option<Value>,
    /// A word to the requester; for a handoff, what you decided and what the agent is to do.
    reason: Option<String>,
    /// Remember it for acts like it.
    remember: Option<Remember>,
    /// How long `remember: session` holds, in hours; 8 if not given, at most 24.
    hours: Option<u32>,
}

/// What an approval came to.
#[derive(Serialize, JsonSchema)]
pub(super) struct Approved {
    #[serde(flatten)]
    request: RequestOut,
    /// Whether it is approved now; otherwise it waits for more people.
    approved: bool,
    /// What lets acts like it pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing_approval: Option<StandingOut>,
    /// The rule that would let acts like it pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<Draft>,
}

pub(super) fn approve(cx: &mut Cx<'_, '_>, input: Approve) -> Result<Approved> {
    if input.hours.is_some() && input.remember != Some(Remember::Session) {
        return Err(Error::invalid("hours", "is for `remember: session`"));
    }
    let request = decide::approve(cx, &input.request, input.edits, input.expected_digest.as_deref(), input.reason)?;
    let approved = request.state == State::Approved;
    let (mut standing_approval, mut rule) = (None, None);
    match input.remember {
        Some(_) if !request.kind.is_act() || !request.requester.is_agent() => {
            return Err(Error::invalid("remember", "is for acts of agents"));
        }
        Some(Remember::Session) if approved => {
            check_fresh(cx, "remembering an approval, which loosens a limit,")?;
            standing_approval = Some(StandingOut::new(standing::give(cx, &request, input.hours.unwrap_or(8))?));
        }
        Some(Remember::Session) => return Err(Error::invalid("remember", "is for whoever settles it; it needs more people still")),
        Some(Remember::Rule) => rule = Some(remember::draft(cx, &request)?),
        None => {}
    }
    Ok(Approved { request: RequestOut::new(&request, cx.now()), approved, standing_approval, rule })
}

/// What became of a request.
#[derive(Serialize, JsonSchema)]
pub(super) struct Changed {
    #[serde(flatten)]
    request: RequestOut,
}

fn changed(cx: &Cx<'_, '_>, request: &Request) -> Changed {
    Changed { request: RequestOut::new(request, cx.now()) }
}

/// Reject a request, with a reason that the requester learns from. It is final, and lowers the agent's trust by type and
/// severity.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Reject {
    /// The request's id.
    request: String,
    /// The `digest` of what you saw; if the request was changed meanwhile, the answer is a conflict.
    expected_digest: Option<String>,
    /// Why, for the requester.
    reason: Option<String>,
    /// What was wrong: `agent_wrong`, `human_preference`, `missing_context`, `policy_change` or `edge_case`, or what the domain knows in
    /// their place: the request's `reason_types`. Its `usual_reason_type` if not given.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// How bad it was; `medium` if not given.
    severity: Option<Severity>,
}

pub(super) fn reject(cx: &mut Cx<'_, '_>, input: Reject) -> Result<Changed> {
    let correction = Correction { reason: input.reason, kind: input.kind, severity: input.severity, action: None };
    let request = decide::reject(cx, &input.request, input.expected_digest.as_deref(), correction)?;
    Ok(changed(cx, &request))
}

/// Ask the requester something before you decide, or take your question back. The request leaves the inbox until the answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    /// The request's id.
    request: String,
    /// The `digest` of what you saw; if the request was changed meanwhile, the answer is a conflict.
    expected_digest: Option<String>,
    /// What you want to know; without it, what was asked waits for no answer any more and the request is back in the inbox.
    question: Option<String>,
}

pub(super) fn ask(cx: &mut Cx<'_, '_>, input: Ask) -> Result<Changed> {
    let (request, seen) = (input.request.as_str(), input.expected_digest.as_deref());
    let request = match input.question {
        Some(question) => talk::ask(cx, request, seen, question)?,
        None => talk::unask(cx, request, seen)?,
    };
    Ok(changed(cx, &request))
}

/// Give a request to another person who may decide it, or take it back from whom it was given to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delegate {
    /// The request's id.
    request: String,
    /// The `digest` of what you saw; if the request was changed meanwhile, the answer is a conflict.
    expected_digest: Option<String>,
    /// The person's name or id; without it the request is nobody's in particular any more.
    to: Option<String>,
    /// A word to them.
    note: Option<String>,
}

pub(super) fn delegate(cx: &mut Cx<'_, '_>, input: Delegate) -> Result<Changed> {
    let (request, seen) = (input.request.as_str(), input.expected_digest.as_deref());
    let request = match input.to {
        Some(to) => talk::delegate(cx, request, seen, &to, input.note)?,
        None if input.note.is_some() => return Err(Error::invalid("note", "is for whom a request is given to; say who that is with `to`")),
        None => talk::take_back(cx, request, seen)?,
    };
    Ok(changed(cx, &request))
}

/// Put a request off until a moment, or take it up again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Snooze {
    /// The request's id.
    request: String,
    /// Until when, for example `2026-11-15T09:30:00Z`; without it the request is taken up again.
    until: Option<String>,
}

pub(super) fn snooze(cx: &mut Cx<'_, '_>, input: Snooze) -> Result<Changed> {
    let until = input.until.as_deref().map(|until| parse_time("until", until)).transpose()?;
    let request = talk::snooze(cx, &input.request, until)?;
    Ok(changed(cx, &request))
}

/// Take an approval back while nobody has used it. The request waits for people again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Undo {
    /// The request's id.
    request: String,
    /// Why, for the requester.
    reason: Option<String>,
}

pub(super) fn undo(cx: &mut Cx<'_, '_>, input: Undo) -> Result<Changed> {
    let request = decide::undo(cx, &input.request, input.reason)?;
    Ok(changed(cx, &request))
}

/// Wait until something happens to a request: a vote, an answer, a decision, an outcome. Holds up to 25 seconds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitFor {
    /// The request's id.
    request: String,
    /// The `version` that you know; without it, the call waits until nothing is left to decide.
    version: Option<i64>,
}

/// How a request stands.
#[derive(Serialize, JsonSchema)]
pub(super) struct Waited {
    #[serde(flatten)]
    request: RequestOut,
    /// Whether there is something new; otherwise ask again.
    changed: bool,
}

pub(super) fn wait(cx: &mut Cx<'_, '_>, input: WaitFor) -> Result<Wait<Waited>> {
    let now = cx.now();
    let request = find(cx, &input.request)?.ok_or_else(|| missing(&input.request))?;
    let changed = match input.version {
        Some(version) => request.version > version,
        None => WaitsFor::of(&request, now).is_none(),
    };
    let waited = Waited { request: RequestOut::new(&request, now), changed };
    Ok(if changed { Wait::Ready(waited) } else { Wait::NotYet(waited) })
}

/// A standing approval.
#[derive(Serialize, JsonSchema)]
pub(super) struct StandingOut {
    /// Its id.
    standing_approval: String,
    /// The request that it was given with.
    request: String,
    /// Whose acts pass.
    agent: String,
    /// In which domain.
    domain: String,
    /// What they have to be like.
    pattern: Value,
    /// The person who gave it.
    person: String,
    /// When.
    created_at: String,
    /// Until when it holds.
    expires_at: String,
    /// When it was ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<String>,
}

impl StandingOut {
    fn new(row: StandingRow) -> Self {
        Self {
            standing_approval: row.id,
            request: row.request,
            agent: row.agent,
            domain: row.domain,
            pattern: serde_json::from_str(&row.pattern).unwrap_or(Value::Null),
            person: row.person,
            created_at: format_time(row.created_at),
            expires_at: format_time(row.expires_at),
            revoked_at: row.revoked_at.map(format_time),
        }
    }
}

/// List standing approvals, newest first: what lets acts pass without a person for a while.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListStanding {
    /// How many; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of standing approvals.
#[derive(Serialize, JsonSchema)]
pub(super) struct StandingPage {
    /// The standing approvals, newest first.
    standing_approvals: Vec<StandingOut>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list_standing(cx: &mut Cx<'_, '_>, input: ListStanding) -> Result<StandingPage> {
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let found = Page::cut(standing::page(cx, &page)?, &page, |row| (row.created_at, row.id.clone()));
    Ok(StandingPage { standing_approvals: found.items.into_iter().map(StandingOut::new).collect(), next_cursor: found.next_cursor })
}

/// End a standing approval: acts like it need a person again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RevokeStanding {
    /// Its id.
    standing_approval: String,
}

pub(super) fn revoke_standing(cx: &mut Cx<'_, '_>, input: RevokeStanding) -> Result<StandingOut> {
    standing::revoke(cx, &input.standing_approval).map(StandingOut::new)
}
