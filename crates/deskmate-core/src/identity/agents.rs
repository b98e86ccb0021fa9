//! Registering agents and giving them tokens.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::authenticate::check_agent_name;
use super::known;
use super::rows::{self, CredentialRow};
use super::token::SecretKind;
use crate::agents;
use crate::call::{Cx, Page, PageIn};
use crate::edit::{self, EDITED, Held, Target};
use crate::limits::{PAGE_MAX, TITLE_CHARS_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, check_text, format_time};

/// An agent was registered.
pub(super) const REGISTERED: Kind =
    Kind { name: "agent.registered", says: "An agent was registered or registered again; from the first one on the desk is closed." };
/// What an agent is for was described anew.
pub(super) const DESCRIBED: Kind = Kind { name: "agent.described", says: "What an agent is for was described anew, by a person or by itself." };
/// An agent was revoked.
pub(super) const REVOKED: Kind = Kind { name: "agent.revoked", says: "An agent was revoked; its tokens no longer work." };

const DAY: i64 = 86_400_000_000;
const TOKEN_DAYS: u32 = 365;
const TOKEN_DAYS_MAX: u32 = 3_650;

/// Register an agent and get its token. The token is shown once. From the first registered agent on, the desk is
/// closed: every agent needs its token.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Add {
    /// The agent's name, for example `code`.
    agent: String,
    /// What it is for.
    #[serde(default)]
    note: String,
    /// For how many days the token is good; 365 if not given.
    expires_in_days: Option<u32>,
}

/// A new token.
#[derive(Serialize, JsonSchema)]
pub(super) struct AgentToken {
    /// The agent's name.
    agent: String,
    /// The token. It is shown only here.
    token: String,
    /// The id under which it can be revoked.
    credential: String,
    /// Until when it is good.
    expires_at: String,
}

pub(super) fn add(cx: &mut Cx<'_, '_>, input: Add) -> Result<AgentToken> {
    check_agent_name(cx.tx, "agent", &input.agent)?;
    check_text("note", &input.note, TITLE_CHARS_MAX)?;
    let state: Option<String> = cx.tx.optional("select state from agent where id = $1", args![input.agent])?.map(|row| row.get(0)).transpose()?;
    if state.as_deref() == Some("active") {
        return Err(Error::conflict(format!("the agent {} is registered already", input.agent)).hint("`deskmate agent rotate` gives it a new token"));
    }
    enter(cx, &input.agent, &input.note, state.is_some())?;
    new_token(cx, input.agent, input.expires_in_days)
}

/// Writes the agent's row and tells the record.
pub(super) fn enter(cx: &mut Cx<'_, '_>, agent: &str, note: &str, again: bool) -> Result<()> {
    let now = cx.now();
    cx.tx.execute(
        "insert into agent (id, state, note, created_at, updated_at) values ($1, 'active', $2, $3, $3) \
         on conflict (id) do update set state = 'active', note = excluded.note, updated_at = excluded.updated_at",
        args![agent, note, now],
    )?;
    // A person who says what an agent is for has set its note; also who takes it away when it is registered again.
    let set: &[&str] = if note.is_empty() && !again { &[] } else { &["note"] };
    edit::mark(cx, &subject(agent), set)?;
    let event = Event::new(REGISTERED, subject(agent)).fact("agent", agent).fact(EDITED, set.to_vec());
    cx.emit(event.payload(json!({ "note": note })).audience([agent]))
}

fn subject(agent: &str) -> String {
    format!("agent:{agent}")
}

/// The scope of work that agents' settings belong to.
const DOMAIN: &str = "desk.agents";

/// Say what an agent is for. People may for every agent, an agent for itself; a note that a person wrote is not replaced
/// by the agent: its change waits for a person, and the answer says so in `held`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// The agent's name.
    agent: String,
    /// What it is for.
    note: String,
}

/// An agent's settings.
#[derive(Serialize, JsonSchema)]
pub(super) struct Changed {
    /// The agent's name.
    agent: String,
    /// What it is for.
    note: String,
    /// The settings that a person set. The agent's own change of them waits for a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set_by_people: Vec<String>,
    /// Your change, where it waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Held>,
}

pub(super) fn change(cx: &mut Cx<'_, '_>, input: Change) -> Result<Changed> {
    if cx.actor.is_agent() && (cx.actor.id != input.agent || !cx.actor.verified) {
        return Err(Error::forbidden("an agent may describe only itself, and only with its token"));
    }
    check_text("note", &input.note, TITLE_CHARS_MAX)?;
    let before = note_of(cx, &input.agent)?;
    let subject = subject(&input.agent);
    let split = edit::split(cx, &subject, vec![edit::Change::new("note", before.as_str(), input.note.as_str())])?;
    let mut note = before;
    if split.held.is_empty() {
        describe(cx, &input.agent, &input.note, !split.free.is_empty())?;
        note = input.note;
    }
    let target = Target { subject: subject.clone(), domain: DOMAIN, tool: "desk_agent_change", noun: "agent" };
    let held = edit::hold(cx, &target, split.held)?;
    Ok(Changed { set_by_people: edit::set_by_people(cx.tx, &subject)?, agent: input.agent, note, held })
}

fn note_of(cx: &mut Cx<'_, '_>, agent: &str) -> Result<String> {
    need_active(cx, agent)?;
    let row = cx.tx.optional("select note from agent where id = $1", args![agent])?;
    Ok(row.map(|row| row.get(0)).transpose()?.unwrap_or_default())
}

/// Writes what an agent is for, and tells the record.
fn describe(cx: &mut Cx<'_, '_>, agent: &str, note: &str, sets: bool) -> Result<()> {
    let now = cx.now();
    cx.tx.execute("update agent set note = $2, updated_at = $3 where id = $1", args![agent, note, now])?;
    let set: &[&str] = if sets { &["note"] } else { &[] };
    edit::mark(cx, &subject(agent), set)?;
    let event = Event::new(DESCRIBED, subject(agent)).fact("agent", agent).fact(EDITED, set.to_vec());
    cx.emit(event.payload(json!({ "note": note })).audience([agent]))
}

/// Checks that a held change still fits the agent as it was shown, and writes it where a person approved it.
pub(crate) fn accept_agent_edit(cx: &mut Cx<'_, '_>, agent: &str, changes: &[edit::Change], approved: bool) -> Result<()> {
    let before = note_of(cx, agent)?;
    edit::check_shown(changes, |field| (field == "note").then(|| before.clone().into()))?;
    for change in changes {
        let note = change.to.as_str().ok_or_else(|| Error::invalid("note", "must be a text"))?;
        check_text("note", note, TITLE_CHARS_MAX)?;
        if approved {
            describe(cx, agent, note, true)?;
        }
    }
    Ok(())
}

fn new_token(cx: &mut Cx<'_, '_>, agent: String, days: Option<u32>) -> Result<AgentToken> {
    let days = days.unwrap_or(TOKEN_DAYS);
    if days == 0 || days > TOKEN_DAYS_MAX {
        return Err(Error::invalid("expires_in_days", format!("must be between 1 and {TOKEN_DAYS_MAX}")));
    }
    let ttl = i64::from(days) * DAY;
    let (credential, secret) = rows::issue(cx, SecretKind::Agent, &agent, &[], ttl)?;
    Ok(AgentToken { agent, token: secret.reveal().to_owned(), credential, expires_at: format_time(cx.now() + ttl) })
}

/// List the registered agents by name, and with `unregistered` also those that only named themselves.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// How many; 200 if not given, which is also the most.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
    /// Also agents that are not registered, and that the record knows by name.
    #[serde(default)]
    unregistered: bool,
    /// Only this one.
    agent: Option<String>,
}

/// The registered agents.
#[derive(Serialize, JsonSchema)]
pub(super) struct Agents {
    agents: Vec<AgentOut>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct AgentOut {
    /// The name.
    pub(super) agent: String,
    /// `active` or `revoked`; `unregistered` for one that is only known by name.
    pub(super) state: String,
    /// What it is for.
    pub(super) note: String,
    /// Since when.
    pub(super) created_at: String,
    /// When it last did something that the record tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_active_at: Option<String>,
    /// Until when its newest good token is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token_expires_at: Option<String>,
    /// The settings that a person set. The agent's own change of them waits for a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) set_by_people: Vec<String>,
    /// Whether it was made here: the desk runs it, and `agents_get_agent_status` tells of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) made_here: bool,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<Agents> {
    let page = PageIn::new(input.limit.or(Some(PAGE_MAX)), input.cursor.as_deref())?;
    let (_, after) = page.after.clone().unwrap_or_default();
    let rows = match &input.agent {
        None => cx.tx.query("select id, state, note, created_at from agent where id > $1 order by id limit $2", args![after, page.look_ahead()])?,
        Some(agent) => cx.tx.query("select id, state, note, created_at from agent where id = $1", args![agent])?,
    };
    let mut agents = Vec::with_capacity(rows.len());
    for row in rows {
        let agent: String = row.get(0)?;
        let good = good_tokens(cx, &agent)?;
        let set_by_people = edit::set_by_people(cx.tx, &subject(&agent))?;
        agents.push(AgentOut {
            state: row.get(1)?,
            note: row.get(2)?,
            created_at: format_time(row.get(3)?),
            last_active_at: known::last_active(cx, &agent)?,
            token_expires_at: good.iter().map(|token| token.expires_at).max().map(format_time),
            set_by_people,
            made_here: false,
            agent,
        });
    }
    if input.unregistered {
        agents.extend(match &input.agent {
            None => known::unregistered(cx, &after, page.look_ahead())?,
            Some(agent) => known::named(cx, agent)?.into_iter().collect(),
        });
        agents.sort_by(|one, other| one.agent.cmp(&other.agent));
    }
    let mut page = Page::cut(agents, &page, |agent| (0, agent.agent.clone()));
    for agent in &mut page.items {
        agent.made_here = agents::is_made(cx.tx, &agent.agent)?;
    }
    Ok(Agents { agents: page.items, next_cursor: page.next_cursor })
}

fn good_tokens(cx: &mut Cx<'_, '_>, agent: &str) -> Result<Vec<CredentialRow>> {
    let mut good = rows::good_of(cx, agent, SecretKind::Agent)?;
    good.extend(rows::good_of(cx, agent, SecretKind::Imported)?);
    Ok(good)
}

/// Give an agent a new token. The old ones stop working now, or after `grace_minutes`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotate {
    /// The agent's name.
    agent: String,
    /// For how many days the new token is good; 365 if not given.
    expires_in_days: Option<u32>,
    /// How long the old tokens still work, at most a day; 0 if not given.
    grace_minutes: Option<u32>,
}

pub(super) fn rotate(cx: &mut Cx<'_, '_>, input: Rotate) -> Result<AgentToken> {
    need_active(cx, &input.agent)?;
    let grace = i64::from(input.grace_minutes.unwrap_or(0));
    if grace > 24 * 60 {
        return Err(Error::invalid("grace_minutes", "must be at most 1440"));
    }
    let at = cx.now() + grace * 60_000_000;
    for token in good_tokens(cx, &input.agent)? {
        rows::end(cx, &token.id, at, "rotated")?;
    }
    new_token(cx, input.agent, input.expires_in_days)
}

fn need_active(cx: &mut Cx<'_, '_>, agent: &str) -> Result<()> {
    let row = cx.tx.optional("select id from agent where id = $1 and state = 'active'", args![agent])?;
    row.map(|_| ()).ok_or_else(|| Error::not_found(format!("no agent {agent} is registered")))
}

/// Revoke an agent: its tokens stop working at once. The desk stays closed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Revoke {
    /// The agent's name.
    agent: String,
    /// Why.
    #[serde(default)]
    reason: String,
}

/// What was revoked.
#[derive(Serialize, JsonSchema)]
pub(super) struct Revoked {
    /// The agent's name.
    agent: String,
    /// How many tokens stopped working.
    tokens: usize,
}

pub(super) fn revoke(cx: &mut Cx<'_, '_>, input: Revoke) -> Result<Revoked> {
    need_active(cx, &input.agent)?;
    check_text("reason", &input.reason, TITLE_CHARS_MAX)?;
    let (now, tokens) = (cx.now(), good_tokens(cx, &input.agent)?);
    for token in &tokens {
        rows::end(cx, &token.id, now, "the agent was revoked")?;
    }
    cx.tx.execute("update agent set state = 'revoked', updated_at = $2 where id = $1", args![input.agent, now])?;
    cx.emit(
        Event::new(REVOKED, format!("agent:{}", input.agent))
            .fact("agent", input.agent.as_str())
            .payload(json!({ "reason": input.reason }))
            .audience([input.agent.as_str()]),
    )?;
    Ok(Revoked { agent: input.agent, tokens: tokens.len() })
}
