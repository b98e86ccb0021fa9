//! What callers and people see: the tools that are there for somebody, and the calls that were made.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::{INTENT_CHARS_MIN, METADATA, act, may_pass_on, shown_at};
use super::mount::{self, Intent, Mount};
use super::rows::{self, CallRow, CallState, select_call};
use super::tool::{self, ToolState};
use crate::call::{ActorKind, Cx, Page, PageIn};
use crate::limits::NAME_CHARS_MAX;
use crate::policy::{self, Effect, Rule};
use crate::request::{self, Requester};
use crate::{Result, check_text, format_time};

/// The tools of the servers behind this desk that are there for you. Call one with gateway_call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTools {
    /// Only of this mount.
    mount: Option<String>,
}

/// Tools that may be called.
#[derive(Serialize, JsonSchema)]
pub(super) struct ToolsOut {
    /// By mount and name.
    tools: Vec<ToolOut>,
}

/// A tool that may be called.
#[derive(Serialize, JsonSchema)]
pub(super) struct ToolOut {
    /// The mount.
    mount: String,
    /// Its name.
    name: String,
    /// Its name beside the tools of other servers. Absent where that is another tool's, or too long: then it is there at `/mcp/NAME` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    full_name: Option<String>,
    /// As its server defines it. It is data of that server.
    definition: Value,
}

pub(super) fn list_tools(cx: &mut Cx<'_, '_>, input: ListTools) -> Result<ToolsOut> {
    let mounts = match &input.mount {
        Some(name) => vec![mount::find(cx, name)?],
        None => super::done::served(cx)?,
    };
    let all = super::done::served(cx)?;
    let who = Requester::of(&cx.actor);
    let mut tools = Vec::new();
    // Names, descriptions and schemas come from the server as well.
    for mount in mounts.into_iter().filter(|mount| may_pass_on(mount).is_ok()) {
        for tool in tool::of_mount(cx.tx, &mount.name)? {
            if tool.state == ToolState::Known && !mount.hides(&tool.name) && !never(cx, &mount, &tool.name, &who)? {
                let full_name = full_name(cx, &all, &mount, &tool.name)?.ok();
                tools.push(ToolOut { mount: mount.name.clone(), name: tool.name, full_name, definition: asking_why(&mount, tool.definition) });
            }
        }
    }
    Ok(ToolsOut { tools })
}

/// A tool as callers see it whose mount asks why it is called: the place for the answer is among its arguments.
fn asking_why(mount: &Mount, mut definition: Value) -> Value {
    let Some(schema) = definition.get_mut("inputSchema").and_then(Value::as_object_mut).filter(|_| mount.intent != Intent::Off) else { return definition };
    let asked = json!({
        "type": "object", "description": "For the desk, which takes it out again: why you call, in a sentence, and a proposal that was approved for it.",
        "properties": { "intent": { "type": "string", "minLength": INTENT_CHARS_MIN }, "proposal_id": { "type": "string" } },
    });
    if let Some(properties) = schema.entry("properties").or_insert_with(|| json!({})).as_object_mut() {
        properties.insert(METADATA.to_owned(), asked);
    }
    if mount.intent == Intent::Strict
        && let Some(required) = schema.entry("required").or_insert_with(|| json!([])).as_array_mut()
    {
        required.push(json!(METADATA));
    }
    definition
}

/// The mount and the tool that a name of the combined endpoint means. Two may be called the same there: then the first mount has the
/// name, whatever becomes of its tool, so that a name never comes to mean something else by itself. Only who hides a tool gives its name away.
pub fn named(cx: &mut Cx<'_, '_>, full: &str) -> Result<Option<(String, String)>> {
    let mounts = super::done::served(cx)?;
    let known = known_as(cx, &mounts, full)?;
    let shown = known.iter().find(|(mount, tool)| !mount.hides(tool)).or(known.first());
    Ok(shown.map(|(mount, tool)| (mount.name.clone(), (*tool).to_owned())))
}

/// The tools that are known and whose name, with their mount's before it, is this one.
fn known_as<'m, 'f>(cx: &mut Cx<'_, '_>, mounts: &'m [Mount], full: &'f str) -> Result<Vec<(&'m Mount, &'f str)>> {
    let mut known = Vec::new();
    for mount in mounts.iter().filter(|mount| mount.enabled) {
        if let Some(tool) = full.strip_prefix(mount.name.as_str()).and_then(|rest| rest.strip_prefix('_'))
            && tool::load(cx.tx, &mount.name, tool)?.is_some()
        {
            known.push((mount, tool));
        }
    }
    Ok(known)
}

/// The name of a tool beside those of other servers, or why it has none there.
pub(super) fn full_name(cx: &mut Cx<'_, '_>, mounts: &[Mount], mount: &Mount, tool: &str) -> Result<std::result::Result<String, String>> {
    let full = format!("{}_{tool}", mount.name);
    if full.chars().count() > NAME_CHARS_MAX {
        return Ok(Err(format!("its name would have more than {NAME_CHARS_MAX} characters there")));
    }
    let before = mounts.iter().position(|other| other.name == mount.name).and_then(|at| mounts.get(..at)).unwrap_or_default();
    let known = known_as(cx, before, &full)?;
    let why = known.iter().find(|(other, tool)| !other.hides(tool)).map(|(other, tool)| format!("{tool} of {} has the same name there", other.name));
    Ok(why.map_or(Ok(full), Err))
}

/// Whether a rule forbids somebody a tool whatever it is called with. A pause or a limit passes, so it hides nothing.
pub(super) fn never(cx: &mut Cx<'_, '_>, mount: &Mount, tool: &str, who: &Requester) -> Result<bool> {
    let act = act(mount, tool, Value::Object(serde_json::Map::new()), Vec::new());
    let decision = request::judge(cx, &act, who, false)?;
    let rulebook = policy::current(cx)?;
    let always = |hit: &policy::Hit| {
        let rules = rulebook.policy(&hit.policy).map_or(&[][..], |(policy, _)| policy.rules.as_slice());
        let unconditional = |rule: &Rule| matches!(rule, Rule::General(rule) if rule.name == hit.rule_id && rule.when.is_none());
        hit.effect == Effect::Deny && !hit.failed && rules.iter().any(unconditional)
    };
    Ok(decision.hits.iter().any(always))
}

/// The calls that were made of tools behind this desk, newest first: people see all, an agent its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListCalls {
    /// Only of this mount.
    mount: Option<String>,
    /// Only of this agent.
    agent: Option<String>,
    /// Only those in this state.
    state: Option<String>,
    /// Only the one that waits or waited under this request.
    request: Option<String>,
    /// How many; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// A call as people see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct TracedCall {
    /// Its id.
    call_id: String,
    /// Who called.
    actor: String,
    /// Whether a credential proved that.
    verified: bool,
    /// The mount.
    mount: String,
    /// The tool.
    tool: String,
    /// What it does, for rules.
    kind: String,
    /// Where it was judged.
    domain: String,
    /// What the desk answered.
    mode: String,
    /// How it stands.
    state: String,
    /// In words.
    message: String,
    /// What the desk's answer came from, for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    why: Vec<String>,
    /// The request under which it waits or waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// The proposal whose grant it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal_id: Option<String>,
    /// Why, as the caller said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    intent: Option<String>,
    /// What it was called with, redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// How long the server took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    milliseconds: Option<f64>,
    /// How much came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<i64>,
    /// When it was made.
    created_at: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    #[serde(skip)]
    at: i64,
}

#[expect(clippy::cast_precision_loss, reason = "times of answers are short")]
fn traced(cx: &mut Cx<'_, '_>, row: &CallRow) -> Result<TracedCall> {
    let request = match (row.state, &row.request) {
        (CallState::Held | CallState::Denied, Some(id)) => request::find(cx, id)?,
        _ => None,
    };
    let out = shown_at(row, request.as_ref(), cx.now());
    Ok(TracedCall {
        call_id: row.id.clone(),
        actor: row.who.id.clone(),
        verified: row.who.verified,
        mount: row.mount.clone(),
        tool: row.tool.clone(),
        kind: row.kind.clone(),
        domain: row.domain.clone(),
        mode: row.mode.clone(),
        state: out.state,
        message: out.message,
        // Where the bounds are is not for agents.
        why: row.why.as_deref().filter(|_| !cx.actor.is_agent()).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        request_id: row.request.clone(),
        proposal_id: row.proposal.clone(),
        intent: row.intent.clone(),
        arguments: row.arguments.as_deref().and_then(|text| serde_json::from_str(text).ok()),
        milliseconds: row.micros.map(|micros| micros as f64 / 1e3),
        bytes: row.bytes,
        created_at: format_time(row.created_at),
        ended_at: row.ended_at.map(format_time),
        at: row.created_at,
    })
}

pub(super) const ALL: &str =
    select_call!("where (created_at < $1 or (created_at = $1 and id < $2)) and ($3 = '' or state = $3) order by created_at desc, id desc limit $4");
pub(super) const OF_MOUNT: &str = select_call!(
    "where mount = $5 and (created_at < $1 or (created_at = $1 and id < $2)) and ($3 = '' or state = $3) order by created_at desc, id desc limit $4"
);
pub(super) const OF_ACTOR: &str = select_call!(
    "where actor_kind = $5 and actor = $6 and (created_at < $1 or (created_at = $1 and id < $2)) and ($3 = '' or state = $3) order by created_at desc, id desc limit $4"
);
pub(super) const OF_ACTOR_AND_MOUNT: &str = select_call!(
    "where actor_kind = $5 and actor = $6 and mount = $7 and (created_at < $1 or (created_at = $1 and id < $2)) and ($3 = '' or state = $3) order by created_at desc, id desc limit $4"
);

pub(super) fn list_calls(cx: &mut Cx<'_, '_>, input: ListCalls) -> Result<Page<TracedCall>> {
    for (field, text) in [("mount", &input.mount), ("agent", &input.agent), ("state", &input.state), ("request", &input.request)] {
        check_text(field, text.as_deref().unwrap_or_default(), NAME_CHARS_MAX)?;
    }
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    if let Some(request) = &input.request {
        let agent = cx.actor.is_agent().then(|| cx.actor.id.clone());
        let found = rows::of_request(cx.tx, request)?.filter(|row| agent.as_ref().is_none_or(|agent| row.who.kind == ActorKind::Agent && row.who.id == *agent));
        let items = found.map(|row| traced(cx, &row)).transpose()?.into_iter().collect();
        return Ok(Page { items, next_cursor: None });
    }
    let (at, id) = page.after.clone().unwrap_or((i64::MAX, String::new()));
    let (state, limit) = (input.state.unwrap_or_default(), i64::from(page.look_ahead()));
    let own = cx.actor.is_agent().then(|| cx.actor.id.clone()).or(input.agent);
    let rows = match (&own, &input.mount) {
        (Some(agent), Some(mount)) => cx.tx.query(OF_ACTOR_AND_MOUNT, args![at, id, state, limit, "agent", agent, mount])?,
        (Some(agent), None) => cx.tx.query(OF_ACTOR, args![at, id, state, limit, "agent", agent])?,
        (None, Some(mount)) => cx.tx.query(OF_MOUNT, args![at, id, state, limit, mount])?,
        (None, None) => cx.tx.query(ALL, args![at, id, state, limit])?,
    };
    let mut items = Vec::new();
    for row in &rows {
        items.push(traced(cx, &CallRow::read(row)?)?);
    }
    Ok(Page::cut(items, &page, |call| (call.at, call.call_id.clone())))
}

/// A tool that is served.
pub(crate) struct Served {
    pub(crate) mount: String,
    pub(crate) tool: String,
    /// What it has to be given.
    pub(crate) required: Vec<String>,
    /// What it can be given.
    pub(crate) takes: Vec<String>,
}

/// The tools that are served whose name has a word of each list.
pub(crate) fn tools_like(cx: &mut Cx<'_, '_>, words: &[&[&str]]) -> Result<Vec<Served>> {
    let mut found = Vec::new();
    for mount in super::done::served(cx)? {
        for tool in tool::of_mount(cx.tx, &mount.name)? {
            if tool.state != ToolState::Known || mount.hides(&tool.name) {
                continue;
            }
            let name = format!("{}_{}", mount.name, tool.name).to_lowercase();
            let parts: Vec<&str> = name.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
            if words.iter().all(|any| any.iter().any(|word| parts.contains(word))) {
                let required = tool.definition.pointer("/inputSchema/required").and_then(Value::as_array);
                let required = required.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
                let takes = tool.definition.pointer("/inputSchema/properties").and_then(Value::as_object);
                let takes = takes.into_iter().flat_map(serde_json::Map::keys).cloned().collect();
                found.push(Served { mount: mount.name.clone(), tool: tool.name, required, takes });
            }
        }
    }
    Ok(found)
}

/// What a call would be answered, without making it.
pub(crate) fn foresee(cx: &mut Cx<'_, '_>, mount: &str, tool: &str, arguments: Value, who: &Requester) -> Result<(policy::Act, policy::Decision)> {
    let mount = mount::find(cx, mount)?;
    if tool::load(cx.tx, &mount.name, tool)?.is_none_or(|tool| tool.state != ToolState::Known) {
        return Err(crate::Error::not_found(format!("{} has no tool {tool} that is served", mount.name)));
    }
    let act = act(&mount, tool, arguments, Vec::new());
    let decision = super::call::judge(cx, &mount, tool, &act, who)?.decision;
    Ok((act, decision))
}
