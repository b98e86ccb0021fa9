//! Approvals that an agent asks for by name: requests like any other, with the people who are named.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::guard;
use super::subject::subject;
use crate::call::{ActorKind, Cx, PageIn};
use crate::limits::{APPROVAL_HOURS_MAX, APPROVERS_MAX, CONTENT_BYTES_MAX, NAME_CHARS_MAX, TITLE_CHARS_MAX};
use crate::policy::{self, Act, Decision, Mode};
use crate::request::{self, New, Packet, Request, RequestKind, Requester, State};
use crate::{Error, Result, check_text, cowork, format_time};

/// The domain of an approval that names none.
pub(super) const DOMAIN: &str = "desk.agents";
/// The verb of what is asked for; the same as that of proposals.
pub(super) const VERB: &str = "propose";

/// Ask named people to approve something before an agent does it. The answer says how many of them have to; wait with
/// cowork_wait_for_decision, and begin with cowork_begin once it is approved. Only people decide.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RequestApproval {
    /// The agent that would do it, by its id or name: you, or one that you made.
    agent_id: String,
    /// What would be done, in a word or two, such as `delete_customer`.
    action: String,
    /// What exactly, and why, for the people who decide.
    description: String,
    /// Who decides: people of this desk, by the e-mail address at which they are told, by name or by id.
    approvers: Vec<String>,
    /// After how many hours it expires; 24 if not given.
    expires_in_hours: Option<f64>,
    /// The scope of work; `desk.agents` if not given. The approvers' roles have to cover it.
    domain: Option<String>,
    /// Where it would happen, such as `production` or `staging`; rules see it, and production is of critical risk.
    environment: Option<String>,
}

/// What became of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    /// The approval's id; absent where policy forbids it.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<String>,
    /// In words.
    message: String,
    /// Said loudly where fewer people decide than such a risk wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// The approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalOut>,
}

/// An approval.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApprovalOut {
    /// Its id.
    approval_id: String,
    /// The agent.
    agent: String,
    /// What would be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    /// What exactly, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// `low`, `medium`, `high` or `critical`.
    risk_level: String,
    /// How it stands.
    status: State,
    /// How many of the approvers have to approve.
    required_approvals: i64,
    /// The names of those who may.
    approvers: Vec<String>,
    /// When it was asked for.
    requested_at: String,
    /// When it expires.
    expires_at: String,
    /// Who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A person who is asked.
pub(super) struct Approver {
    pub(super) id: String,
    pub(super) name: String,
    /// Whether their role covers the domain.
    pub(super) decides: bool,
}

const BY_ID: &str = "select id, name, role, domains, state from person where id = $1";
const BY_NAME: &str = "select id, name, role, domains, state from person where name = $1";
const BY_ADDRESS: &str = "select distinct p.id, p.name, p.role, p.domains, p.state from subscription s join person p on p.id = s.person where lower(s.address) = lower($1) order by p.id limit 2";

pub(super) fn ask(cx: &mut Cx<'_, '_>, input: RequestApproval) -> Result<Asked> {
    guard::not_from_a_run_of_another(cx, &input.agent_id)?;
    for (field, text, most) in [("action", &input.action, TITLE_CHARS_MAX), ("description", &input.description, CONTENT_BYTES_MAX)] {
        check_text(field, text, most)?;
        if text.trim().is_empty() {
            return Err(Error::invalid(field, "must not be empty"));
        }
    }
    let hours = input.expires_in_hours.unwrap_or(24.0);
    if !(0.1..=APPROVAL_HOURS_MAX).contains(&hours) {
        return Err(Error::invalid("expiresInHours", format!("must be between 0.1 and {APPROVAL_HOURS_MAX}")));
    }
    let domain = input.domain.unwrap_or_else(|| DOMAIN.to_owned());
    cowork::check_domain("domain", &domain)?;
    let environment = input.environment.unwrap_or_default();
    check_text("environment", &environment, NAME_CHARS_MAX)?;
    let subject = subject(cx, &input.agent_id)?;
    let approvers = approvers(cx, &input.approvers, &domain)?;
    // Also where a program asks with a person's token: whoever asks is none of those who decide.
    let asked_by = cx.actor.is_person().then(|| cx.actor.id.clone());
    if approvers.iter().any(|person| asked_by.as_ref() == Some(&person.id)) {
        return Err(Error::invalid("approvers", "you ask for it: somebody else decides").hint("name others of those who decide here"));
    }
    let verified = cx.actor.verified || subject.task.is_some();
    let who = Requester { kind: ActorKind::Agent, id: subject.agent.clone(), verified };
    let act = Act {
        kind: VERB.to_owned(),
        domain,
        action: input.action.clone(),
        target: subject.agent.clone(),
        environment,
        arguments: json!({ "agent": subject.agent, "action": input.action, "description": input.description }),
        ..Act::default()
    };
    let mut decision = request::weigh(cx, &act, &who, false)?.decision;
    if decision.mode == Mode::Deny {
        let why: Vec<&str> = decision.reasons.iter().filter(|reason| reason.mode == Mode::Deny).map(|reason| reason.text.as_str()).collect();
        let message = format!("Nobody can approve this: policy forbids it. {}", why.join("; "));
        request::denied(cx, &who, &act, &decision)?;
        return Ok(Asked { approval_id: None, message, warning: None, approval: None });
    }
    decision.mode = decision.mode.min(Mode::Suggest);
    let warning = settle(&mut decision, &act, &approvers)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is between six minutes and a month")]
    let seconds = (hours * 3600.0) as i64;
    decision.needs.expires_seconds = seconds;
    let packet = Packet { reasoning: Some(input.description), more: json!({ "warning": warning }), ..Packet::default() };
    let title: String = format!("{}: {}", subject.agent, input.action).chars().take(TITLE_CHARS_MAX / 4).collect();
    let only = match approvers.as_slice() {
        [only] => Some(only.id.clone()),
        _ => None,
    };
    let made = request::submit(cx, New { requester: Some(who), asked_by, packet, assignee: only, ..New::new(RequestKind::Approval, title, act, decision) })?;
    let approval = shown(cx, &made)?;
    let message = format!("{} of {} people have to approve this until {}", made.quorum, approvers.len(), approval.expires_at);
    Ok(Asked { approval_id: Some(made.id), message, warning, approval: Some(approval) })
}

/// Who is asked: people of this desk whose roles cover the domain.
fn approvers(cx: &mut Cx<'_, '_>, named: &[String], domain: &str) -> Result<Vec<Approver>> {
    const HOW: &str = "an owner invites people with `deskmate person invite NAME --role approver`; who is told at an address says so with `deskmate notify`";
    if named.is_empty() || named.len() > APPROVERS_MAX {
        return Err(Error::invalid("approvers", format!("must name between 1 and {APPROVERS_MAX} people")));
    }
    let (mut found, mut unknown): (Vec<Approver>, Vec<&str>) = (Vec::new(), Vec::new());
    for name in named {
        check_text("approvers", name, NAME_CHARS_MAX)?;
        let Some(person) = find_approver(cx, name, domain)? else {
            unknown.push(name);
            continue;
        };
        if found.iter().all(|known| known.id != person.id) {
            found.push(person);
        }
    }
    if !unknown.is_empty() {
        return Err(Error::invalid("approvers", format!("{} is not one of the people of this desk, or is two of them", unknown.join(", "))).hint(HOW));
    }
    let cannot: Vec<&str> = found.iter().filter(|person| !person.decides).map(|person| person.name.as_str()).collect();
    if !cannot.is_empty() {
        return Err(Error::invalid("approvers", format!("{} may not decide in {domain}", cannot.join(", ")))
            .hint("name people whose roles cover it, or another domain"));
    }
    Ok(found)
}

/// A person by id, name or the address at which they are told. Nobody, where an address is two people's.
pub(super) fn find_approver(cx: &mut Cx<'_, '_>, named: &str, domain: &str) -> Result<Option<Approver>> {
    let mut rows = Vec::new();
    for sql in [BY_ID, BY_NAME, BY_ADDRESS] {
        if rows.is_empty() {
            rows = cx.tx.query(sql, args![named.trim()])?;
        }
    }
    let [row] = rows.as_slice() else { return Ok(None) };
    let (role, domains, state): (String, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
    let domains: Vec<String> = serde_json::from_str(&domains).unwrap_or_default();
    let decides = state == "active" && request::role_decides(crate::call::Role::from_name(&role), &domains, domain);
    Ok(Some(Approver { id: row.get(0)?, name: row.get(1)?, decides }))
}

/// Puts risk, quorum and approvers into a decision: the stricter of what policy and the risk want, and never more than there are people. What a rule
/// wants is not lowered.
pub(super) fn settle(decision: &mut Decision, act: &Act, approvers: &[Approver]) -> Result<Option<String>> {
    let risk = risk(act);
    if request::grade(risk) > request::grade(&decision.risk) {
        risk.clone_into(&mut decision.risk);
    }
    let by_rules = &decision.needs.approvers;
    let named = |person: &&Approver| by_rules.is_empty() || by_rules.iter().any(|name| *name == person.id || *name == person.name);
    let ids: Vec<String> = approvers.iter().filter(named).map(|person| person.id.clone()).collect();
    if ids.len() < approvers.len() {
        let others = Error::invalid("approvers", format!("policy names who decides this: {}", by_rules.join(", ")));
        return Err(others.hint("name only people of these"));
    }
    let people = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    if decision.needs.quorum > people {
        let more = Error::invalid("approvers", format!("policy asks for {} people, and {people} are named", decision.needs.quorum));
        return Err(more.hint("name more approvers"));
    }
    decision.needs.approvers = ids;
    Ok(settle_quorum(decision, people, "is named"))
}

/// Puts how many people have to approve into a decision: as many as the risk wants, and never more than there are, which is said loudly. What a
/// rule wants is not lowered.
pub(super) fn settle_quorum(decision: &mut Decision, people: u32, who: &str) -> Option<String> {
    let wanted = if request::grade(&decision.risk) >= request::grade("high") { 2 } else { 1 };
    let enough = wanted.min(people.max(1));
    decision.needs.quorum = decision.needs.quorum.max(enough);
    (decision.needs.quorum < wanted).then(|| {
        format!(
            "FEWER PEOPLE THAN THIS RISK WANTS: {wanted} should approve something of {} risk, and only {people} {who}, so {enough} is enough",
            decision.risk
        )
    })
}

/// How many people may decide a request in a domain, besides a person who asks for it themself: those whom rules name, where they name some.
pub(super) fn eligible(cx: &mut Cx<'_, '_>, domain: &str, decision: &Decision, who: &Requester) -> Result<u32> {
    let mut people = 0_u32;
    for row in cx.tx.query("select id, name, role, domains from person where state = 'active' order by id limit 1000", &[])? {
        let (id, name, role, domains): (String, String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let by_rules = &decision.needs.approvers;
        let named = by_rules.is_empty() || by_rules.iter().any(|by| *by == id || *by == name);
        let domains: Vec<String> = serde_json::from_str(&domains).unwrap_or_default();
        let asks = who.kind == ActorKind::Person && !who.is_token() && who.id == id;
        people += u32::from(named && !asks && request::role_decides(crate::call::Role::from_name(&role), &domains, domain));
    }
    Ok(people)
}

/// How much is at stake, by what the act does, in which domain and where; what somebody writes about it changes nothing. What is not told
/// by that is not taken for harmless.
fn risk(act: &Act) -> &'static str {
    let does = policy::doings_of(act);
    let any = |names: &[&str]| names.iter().any(|name| does.contains(name));
    let is_about_much = || policy::doings_of(&Act { kind: act.domain.clone(), ..Act::default() }).iter().any(|about| matches!(*about, "pay" | "grant"));
    if any(&["delete", "pay", "grant", "erase_person"]) || is_production(&act.environment) || is_about_much() {
        "critical"
    } else if any(&["write", "configure", "deploy", "install", "run", "export", "database_write"]) {
        "high"
    } else if any(&["send", "mail", "message", "publish", "collect", "call"]) || does.is_empty() {
        "medium"
    } else {
        "low"
    }
}

/// Whether an environment is one in which people work, as the templates of policies know them.
fn is_production(environment: &str) -> bool {
    let environment = environment.trim().to_lowercase();
    matches!(environment.as_str(), "prod" | "production" | "live") || environment.starts_with("prod-")
}

/// An approval that the caller may see: people see all, an agent its own and those of agents that it made.
fn find(cx: &mut Cx<'_, '_>, id: &str) -> Result<Request> {
    let missing = || Error::not_found(format!("there is no approval {id} for you"));
    let found = request::load(cx, id)?.filter(|request| request.kind == RequestKind::Approval).ok_or_else(missing)?;
    if cx.actor.is_agent() {
        subject(cx, &found.requester.id).map_err(|_| missing())?;
    }
    Ok(found)
}

fn shown(cx: &mut Cx<'_, '_>, request: &Request) -> Result<ApprovalOut> {
    let act = request.act().ok();
    let ids = request.decided()?.map(|decision| decision.needs.approvers).unwrap_or_default();
    let mut approvers = Vec::new();
    for id in ids {
        let name: Option<String> = cx.tx.optional(BY_ID, args![id])?.map(|row| row.get(1)).transpose()?;
        approvers.push(name.unwrap_or(id));
    }
    Ok(ApprovalOut {
        approval_id: request.id.clone(),
        agent: request.requester.id.clone(),
        action: act.map(|act| act.action),
        description: request.told()?.reasoning,
        risk_level: request.risk.clone(),
        status: request.state_at(cx.now()),
        required_approvals: request.quorum,
        approvers,
        requested_at: format_time(request.created_at),
        expires_at: format_time(request.expires_at),
        decided_by: request.decided_by.clone(),
        decided_at: request.decided_at.map(format_time),
        reason: request.reason.clone(),
    })
}

/// List the approvals that were asked for an agent, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ListApprovals {
    /// The agent's id or name.
    agent_id: String,
    /// Only those in this state.
    status: Option<State>,
    /// How many; at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of approvals.
#[derive(Serialize, JsonSchema)]
pub(super) struct Approvals {
    approvals: Vec<ApprovalOut>,
    /// Give this as `cursor` for the next page. Absent at the end. A page may be short, even empty, before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: ListApprovals) -> Result<Approvals> {
    let agent = subject(cx, &input.agent_id)?.agent;
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let found = request::of_requester(cx, &agent, input.status, &page)?;
    let approvals = found.items.iter().filter(|request| request.kind == RequestKind::Approval);
    let approvals = approvals.map(|request| shown(cx, request)).collect::<Result<_>>()?;
    Ok(Approvals { approvals, next_cursor: found.next_cursor })
}

/// See how an approval stands.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetApproval {
    /// Its id.
    approval_id: String,
}

pub(super) fn get(cx: &mut Cx<'_, '_>, input: GetApproval) -> Result<ApprovalOut> {
    let found = find(cx, &input.approval_id)?;
    shown(cx, &found)
}

/// Take back an approval that is no longer needed. An unused grant is gone with it. People reject what they do not want.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CancelApproval {
    /// Its id.
    approval_id: String,
    /// Why.
    reason: Option<String>,
}

pub(super) fn cancel(cx: &mut Cx<'_, '_>, input: CancelApproval) -> Result<ApprovalOut> {
    let found = find(cx, &input.approval_id)?;
    let made_it = cx.actor.is_agent() && cx.actor.id != found.requester.id;
    let done = if made_it {
        request::withdraw(cx, &found.id, input.reason.as_deref().unwrap_or("who made the agent took it back"))?
    } else {
        request::cancel(cx, &found.id, input.reason)?
    };
    shown(cx, &done)
}
