//! Agents and approvals that another system kept. An agent becomes a draft: whatever it was there, here it runs nothing before it is
//! deployed. An approval that was open waits for people here.

use serde_json::{Map, json};

use super::approval::{self, Approver};
use super::create::{CreateAgent, build};
use super::define::{free_name, name_of, timing};
use super::model::{IfMissed, Need};
use super::rows::{self, by_id};
use super::{MADE, attach};
use crate::call::{ActorKind, Cx};
use crate::limits::{NAME_CHARS_MAX, TITLE_CHARS_MAX};
use crate::policy::Act;
use crate::request::{self, New, Packet, RequestKind, Requester};
use crate::{Code, Result, identity};

/// An agent as the other system kept it, without secrets and personal data.
pub(crate) struct ForeignAgent {
    /// Its id there.
    pub(crate) id: String,
    /// Its name there.
    pub(crate) name: Option<String>,
    /// What it is for.
    pub(crate) task: String,
    /// The policies that were attached to it.
    pub(crate) policies: Vec<String>,
    /// When it ran by itself, as it was written.
    pub(crate) schedule: Option<String>,
    /// Whether deploying it waited for people.
    pub(crate) approval_required: bool,
    /// Whether it was deployed there.
    pub(crate) was_deployed: bool,
    /// The other system.
    pub(crate) source: &'static str,
}

/// What became of it.
pub(crate) struct Done {
    /// Its id here.
    pub(crate) id: String,
    /// What is different here, and what it needs.
    pub(crate) changed: Vec<String>,
}

/// An id that stays as it was: a UUID.
fn kept_id(id: &str) -> Option<String> {
    uuid::Uuid::try_parse(id).ok().filter(|_| id.len() == 36).map(|id| id.to_string())
}

/// Makes a draft of it, with what is read out of its task as for any other. `Err`: why it was not taken.
pub(crate) fn bring_in(cx: &mut Cx<'_, '_>, foreign: ForeignAgent, dry: bool) -> Result<Result<Done, String>> {
    let mut changed = Vec::new();
    let id = kept_id(&foreign.id);
    if let Some(id) = &id
        && by_id(cx.tx, id)?.is_some()
    {
        return Ok(Err("there is an agent with this id already".to_owned()));
    }
    let built = match build(cx, CreateAgent::described(foreign.task.clone(), false)) {
        Err(error) if error.code == Code::Invalid => {
            changed.push(format!("nothing was read out of its task ({}), so it has no steps", error.message));
            build(cx, CreateAgent::described(foreign.task.clone(), true))
        }
        built => built,
    };
    let mut row = match built {
        Ok(built) => built,
        Err(error) if matches!(error.code, Code::Invalid | Code::Limited | Code::Conflict) => return Ok(Err(error.message)),
        Err(error) => return Err(error),
    };
    row.id = id.unwrap_or_else(|| cx.new_id());
    let wanted = foreign.name.filter(|name| identity::check_name("name", name).is_ok()).unwrap_or_else(|| name_of(&foreign.task));
    row.agent = free_name(cx, &wanted)?;
    if row.agent != wanted {
        changed.push(format!("its name is {}, because {wanted} is somebody's already", row.agent));
    }
    let definition = &mut row.definition;
    definition.imported = Some(foreign.source.to_owned());
    definition.approval_required |= foreign.approval_required;
    definition.schedule = match foreign.schedule.filter(|schedule| !schedule.trim().is_empty()) {
        None => None,
        Some(cron) => timing(Some(cron), None, 0, IfMissed::Skip, false).unwrap_or_else(|error| {
            changed.push(format!("it has no schedule here: {}", error.message));
            None
        }),
    };
    for policy in &foreign.policies {
        let found = attach::find(cx, "policies", policy, &Map::new(), &format!("it was attached in {}", foreign.source));
        let put = found.and_then(|found| attach::put(&mut row.definition, found));
        if let Err(error) = put {
            // What would have held it must not be missing silently.
            let policy: String = policy.chars().take(NAME_CHARS_MAX).collect();
            changed.push(format!("the policy {policy} does not hold here: {}", error.message));
            row.definition.needs.push(Need {
                what: format!("a policy in the place of {policy}, which this desk could not attach; attach one, then give its steps with agents_update_agent"),
                param: None,
                words: String::new(),
            });
        }
    }
    if foreign.was_deployed {
        changed.push("it was deployed there and is a draft here: nothing runs until it is deployed".to_owned());
    }
    let needs: Vec<String> = row.definition.open_needs().map(|need| need.what.clone()).collect();
    if !needs.is_empty() {
        changed.push(format!("before it can be deployed it needs {}", needs.join("; ")));
    }
    let text = match rows::sealed(&row.definition) {
        Ok((text, digest)) => {
            row.digest = digest;
            text
        }
        Err(error) => return Ok(Err(error.message)),
    };
    if !dry {
        rows::insert(cx, &row, &text)?;
        rows::tell(cx, &row, MADE, json!({ "definition": row.definition.for_agents() }))?;
    }
    Ok(Ok(Done { id: row.id, changed }))
}

/// An approval as the other system kept it, without secrets and personal data.
pub(crate) struct ForeignApproval {
    /// Its id there.
    pub(crate) id: String,
    /// The id of its agent here.
    pub(crate) agent: String,
    /// What would be done.
    pub(crate) action: String,
    /// What exactly, and why.
    pub(crate) description: String,
    /// What the other system thought of it.
    pub(crate) risk: String,
    /// The addresses of those who were asked.
    pub(crate) approvers: Vec<String>,
    /// When it expires, in microseconds.
    pub(crate) expires_at: i64,
    /// The other system.
    pub(crate) source: &'static str,
}

/// Makes a request of it. Of those who were asked there, those decide who are people of this desk and may; if there are none,
/// whoever may. `Err`: why it was not taken.
pub(crate) fn bring_in_approval(cx: &mut Cx<'_, '_>, foreign: ForeignApproval, dry: bool) -> Result<Result<Done, String>> {
    let id = kept_id(&foreign.id);
    if let Some(id) = &id
        && request::load(cx, id)?.is_some()
    {
        return Ok(Err("there is a request with this id already".to_owned()));
    }
    let agent = by_id(cx.tx, &foreign.agent)?.map(|row| row.agent);
    let Some(agent) = agent.or_else(|| dry.then(|| foreign.agent.clone())) else { return Ok(Err("its agent is not here".to_owned())) };
    let mut people: Vec<Approver> = Vec::new();
    for address in &foreign.approvers {
        let found = approval::find_approver(cx, address, approval::DOMAIN)?.filter(|person| person.decides);
        people.extend(found.filter(|person| people.iter().all(|known| known.id != person.id)));
    }
    let act = Act {
        kind: approval::VERB.to_owned(),
        domain: approval::DOMAIN.to_owned(),
        action: foreign.action.clone(),
        target: agent.clone(),
        arguments: json!({ "agent": agent, "action": foreign.action, "description": foreign.description }),
        ..Act::default()
    };
    let risk = if matches!(foreign.risk.as_str(), "low" | "medium" | "high" | "critical") { foreign.risk.as_str() } else { "high" };
    let mut decision = request::for_people(cx, approval::DOMAIN, risk, "it was asked for on another server, where nobody could decide it")?;
    let mut changed = vec!["it was open there, and waits for people here".to_owned()];
    let mut warning = None;
    if people.is_empty() {
        changed.push("none of those who were asked is somebody here who may decide it, so everybody decides who may".to_owned());
    } else {
        warning = match approval::settle(&mut decision, &act, &people) {
            Ok(warning) => warning,
            Err(error) => return Ok(Err(error.message)),
        };
    }
    changed.extend(warning.clone());
    decision.needs.expires_seconds = (foreign.expires_at.saturating_sub(cx.now()) / 1_000_000).max(1);
    if dry {
        return Ok(Ok(Done { id: foreign.id, changed }));
    }
    let title: String = format!("{agent}: {}", foreign.action).chars().take(TITLE_CHARS_MAX / 4).collect();
    let packet = Packet {
        reasoning: Some(foreign.description).filter(|text| !text.is_empty()),
        more: json!({ "warning": warning, "imported": { "source": foreign.source, "approval_id": foreign.id } }),
        ..Packet::default()
    };
    let who = Requester { kind: ActorKind::Agent, id: agent, verified: true };
    match request::submit(cx, New { id, requester: Some(who), packet, ..New::new(RequestKind::Approval, title, act, decision) }) {
        Ok(made) => Ok(Ok(Done { id: made.id, changed })),
        Err(error) if matches!(error.code, Code::Limited | Code::Invalid) => Ok(Err(error.message)),
        Err(error) => Err(error),
    }
}
