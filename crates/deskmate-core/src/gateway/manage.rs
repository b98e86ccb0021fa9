//! Mounts as owners keep them: a short way to what the settings in force say, and what was seen of each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::mount::{self, Mount};
use super::show;
use super::tool::{self, Seen, Tool, ToolState};
use crate::call::{Cx, Errand};
use crate::limits::NAME_CHARS_MAX;
use crate::policy::{self, Document, Patch, Section, draft};
use crate::record::{Event, Kind};
use crate::{Error, Result, check_text, format_time, hex};

pub(super) const LOOKED: Kind = Kind { name: "mount.looked", says: "The desk connected to a mount and looked at what it offers." };

/// Put another MCP server behind the desk, or change how it stands there. It is a setting like any other and stays until it is
/// changed. Look at it with desk_mount_test afterwards: what it offers then is what agents see.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddMount {
    /// The mount.
    #[schemars(with = "Mount")]
    mount: Given,
    /// Whether a mount of this name that is there already is changed: how it is reached, and whatever else you say of it. What else
    /// was set at the desk stays. Without this, a name that is there already is a conflict.
    #[serde(default)]
    replace: bool,
}

/// A mount, and what was said of it: what was not may stay as it was set.
struct Given {
    mount: Mount,
    said: Map<String, Value>,
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(given: D) -> std::result::Result<Self, D::Error> {
        let said = Map::deserialize(given)?;
        Ok(Self { mount: Mount::deserialize(&said).map_err(D::Error::custom)?, said })
    }
}

/// What people set at the desk, besides how the server is reached.
const SET_HERE: [&str; 11] = ["enabled", "shared", "domain", "verbs", "hide", "intent", "scan", "redact", "cost", "environment", "timeout_seconds"];

/// Lets what was set at the desk stay when a mount takes the place of one that was there, unless it says otherwise.
pub fn keep_what_was_set(mount: &mut Map<String, Value>, before: &Value) {
    for field in SET_HERE {
        if let (false, Some(value)) = (mount.contains_key(field), before.get(field)) {
            mount.insert(field.to_owned(), value.clone());
        }
    }
}

/// The mounts as they are now.
#[derive(Serialize, JsonSchema)]
pub(super) struct Mounts {
    /// By name.
    mounts: Vec<MountOut>,
}

/// A mount.
#[derive(Serialize, JsonSchema)]
pub(super) struct MountOut {
    /// What is in force.
    #[serde(flatten)]
    mount: Mount,
    /// How many of its tools are served.
    tools: usize,
    /// Its tools that wait for a person, because they are new or not any more what they were.
    waiting: Vec<String>,
    /// The secrets that it is given, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<String>,
}

pub(super) fn add(cx: &mut Cx<'_, '_>, input: AddMount) -> Result<Mounts> {
    let (Given { mount, mut said }, replace) = (input.mount, input.replace);
    if let Some(why) = mount.must_not_be_written() {
        return Err(Error::invalid("mount", why));
    }
    put(cx, |mounts| {
        match mounts.iter_mut().find(|known| known.name == mount.name) {
            Some(place) if replace => {
                keep_what_was_set(&mut said, &json!(place));
                *place = Mount::deserialize(&said).map_err(|error| Error::invalid("mount", error.to_string()))?;
            }
            Some(_) => {
                return Err(Error::conflict(format!("there is a mount {} already", mount.name))
                    .hint("`replace: true`, or `deskmate gateway add --replace`, changes how it is reached, and keeps what else was set"));
            }
            None => mounts.push(mount),
        }
        Ok(())
    })
}

/// Take a server away from behind the desk. What it offered is forgotten, and so is what was set to let its tools pass; what was
/// done with it stays on the record.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NameMount {
    /// The mount.
    name: String,
}

pub(super) fn remove(cx: &mut Cx<'_, '_>, input: NameMount) -> Result<Mounts> {
    put(cx, |mounts| {
        let before = mounts.len();
        mounts.retain(|mount| mount.name != input.name);
        if mounts.len() == before { Err(missing(&input.name)) } else { Ok(()) }
    })
}

/// Serve a mount, or stop serving it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchMount {
    /// The mount.
    name: String,
    /// Whether it is served.
    enabled: bool,
}

pub(super) fn switch(cx: &mut Cx<'_, '_>, input: SwitchMount) -> Result<Mounts> {
    put(cx, |mounts| {
        let mount = mounts.iter_mut().find(|mount| mount.name == input.name).ok_or_else(|| missing(&input.name))?;
        mount.enabled = input.enabled;
        Ok(())
    })
}

pub(super) fn missing(name: &str) -> Error {
    Error::not_found(format!("there is no mount {name}")).hint("`deskmate gateway list` shows those that are there")
}

/// Puts other mounts in force, and leaves the rest of the settings as they are.
fn put(cx: &mut Cx<'_, '_>, change: impl FnOnce(&mut Vec<Mount>) -> Result<()>) -> Result<Mounts> {
    let mut settings = policy::current(cx)?.settings("").gateway.clone();
    change(&mut settings.mounts)?;
    settings.mounts.sort_by(|one, other| one.name.cmp(&other.name));
    // The other mounts are as they were, and nobody wrote them anew.
    let patch = Patch::deserialize(json!(settings)).map_err(|error| Error::invalid("mount", error.to_string()))?;
    draft::apply(cx, &Document { desk: BTreeMap::from([(Section::Gateway, patch)]), ..Document::default() }, false)?;
    shown(cx, settings.mounts)
}

fn shown(cx: &mut Cx<'_, '_>, mounts: Vec<Mount>) -> Result<Mounts> {
    let out = mounts.into_iter().map(|mount| {
        let tools = tool::of_mount(cx.tx, &mount.name)?;
        let waits = |tool: &&Tool| matches!(tool.state, ToolState::New | ToolState::Changed);
        let secrets = mount.secrets().into_iter().map(str::to_owned).collect();
        Ok(MountOut {
            tools: tools.iter().filter(|tool| tool.state == ToolState::Known && !mount.hides(&tool.name)).count(),
            waiting: tools.iter().filter(waits).map(|tool| tool.name.clone()).collect(),
            mount,
            secrets,
        })
    });
    Ok(Mounts { mounts: out.collect::<Result<_>>()? })
}

/// The servers that stand behind this desk.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListMounts {}

pub(super) fn list(cx: &mut Cx<'_, '_>, _: ListMounts) -> Result<Mounts> {
    let mounts = mount::all(cx)?;
    shown(cx, mounts)
}

/// What a server behind the desk says of itself, as whoever has hands brings it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FoundMount {
    /// Its name and version.
    pub server: Value,
    /// The protocol that it speaks.
    pub protocol: String,
    /// Its tools, as it defines them.
    pub tools: Vec<Value>,
    /// How long it took to answer.
    pub micros: i64,
}

/// Connect to a mount and look at what it offers now. What it offers when it is looked at for the first time is served; what
/// is new or different later waits for a person.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TestMount {
    /// The mount.
    name: String,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tested {
    /// The mount.
    name: String,
    /// What the server says of itself.
    server: Value,
    /// The protocol that it speaks.
    protocol: String,
    /// How long it took to answer, in milliseconds.
    milliseconds: f64,
    /// How many tools are served.
    tools: usize,
    /// Tools that wait for a person.
    waiting: Vec<String>,
    /// Tools that are not offered any more.
    gone: Vec<String>,
    /// Tools that are left out, because the server describes them wrongly.
    refused: Vec<String>,
}

pub(super) fn wants_test(cx: &mut Cx<'_, '_>, input: &TestMount) -> Result<Errand> {
    let mount = mount::find(cx, &input.name)?;
    Ok(Errand::Mount(Box::new(mount)))
}

pub(super) fn test(cx: &mut Cx<'_, '_>, input: TestMount, found: FoundMount) -> Result<Tested> {
    // It may have been taken away meanwhile.
    mount::find(cx, &input.name)?;
    let Seen { known, waiting, gone, refused } = tool::seen(cx, &input.name, &found.tools)?;
    let event = Event::new(LOOKED, format!("mount:{}", input.name)).fact("tools", known).fact("waiting", waiting.len()).fact("micros", found.micros);
    cx.emit(event.payload(json!({ "server": found.server })))?;
    #[expect(clippy::cast_precision_loss, reason = "times of answers are short")]
    let milliseconds = found.micros as f64 / 1e3;
    Ok(Tested { name: input.name, server: found.server, protocol: found.protocol, milliseconds, tools: known, waiting, gone, refused })
}

/// How the connections to the servers behind this desk stand, on the server that answers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MountStatus {}

/// The connections.
#[derive(Serialize, JsonSchema)]
pub(super) struct Connections {
    /// One for each mount and agent that needed it: its state, process, calls, errors and latency, and what it wrote last.
    connections: Vec<Value>,
}

#[expect(clippy::unnecessary_wraps, reason = "every operation may fail")]
pub(super) fn wants_status(_: &mut Cx<'_, '_>, _: &MountStatus) -> Result<Errand> {
    Ok(Errand::Connections)
}

#[expect(clippy::unnecessary_wraps, reason = "every operation may fail")]
pub(super) fn status(_: &mut Cx<'_, '_>, _: MountStatus, connections: Vec<Value>) -> Result<Connections> {
    Ok(Connections { connections })
}

/// The tools of a mount, with those that wait for a person and what is different about them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MountTools {
    /// The mount.
    name: String,
}

/// The tools of a mount.
#[derive(Serialize, JsonSchema)]
pub(super) struct MountToolsOut {
    /// By name.
    tools: Vec<MountToolOut>,
}

/// A tool of a mount.
#[derive(Serialize, JsonSchema)]
pub(super) struct MountToolOut {
    /// Its name.
    name: String,
    /// `known`: served. `new`, `changed`: it waits for a person. `gone`: not offered any more.
    state: &'static str,
    /// Whether it is left out for everybody.
    hidden: bool,
    /// What it does, for rules; `tool.call` where nobody said.
    verb: String,
    /// What agents are shown.
    definition: Value,
    /// The digest of that.
    digest: String,
    /// What the server says now, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    offered: Option<Value>,
    /// The digest of that: give it to desk_mount_accept.
    #[serde(skip_serializing_if = "Option::is_none")]
    offered_digest: Option<String>,
    /// A tool of another mount that it could be taken for.
    #[serde(skip_serializing_if = "Option::is_none")]
    looks_like: Option<String>,
    /// Why it is there at `/mcp/NAME` only, and not beside the tools of other servers: there its name is another tool's, or too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    alone: Option<String>,
    /// When that changed last.
    changed_at: String,
    /// Who accepted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_by: Option<String>,
}

fn tool_out(cx: &mut Cx<'_, '_>, mounts: &[Mount], name: &str, tool: Tool) -> Result<MountToolOut> {
    let mount = mounts.iter().find(|mount| mount.name == name);
    let alone = mount.map(|mount| show::full_name(cx, mounts, mount, &tool.name)).transpose()?.and_then(std::result::Result::err);
    Ok(MountToolOut {
        alone,
        hidden: mount.is_some_and(|mount| mount.hides(&tool.name)),
        verb: mount.and_then(|mount| mount.verb(&tool.name)).unwrap_or(super::call::VERB).to_owned(),
        state: tool.state.name(),
        digest: hex(&tool.digest),
        offered_digest: tool.offered_digest.as_deref().map(hex),
        name: tool.name,
        definition: tool.definition,
        offered: tool.offered,
        looks_like: tool.looks_like,
        changed_at: format_time(tool.changed_at),
        accepted_by: tool.accepted_by,
    })
}

pub(super) fn tools(cx: &mut Cx<'_, '_>, input: MountTools) -> Result<MountToolsOut> {
    let mounts = mount::all(cx)?;
    if !mounts.iter().any(|mount| mount.name == input.name) {
        return Err(missing(&input.name));
    }
    let tools = tool::of_mount(cx.tx, &input.name)?;
    Ok(MountToolsOut { tools: tools.into_iter().map(|tool| tool_out(cx, &mounts, &input.name, tool)).collect::<Result<_>>()? })
}

/// Accept a tool that is new or has changed, as you were shown it: it is served from now on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcceptTool {
    /// The mount.
    mount: String,
    /// The tool.
    tool: String,
    /// The digest of what you were shown, `offered_digest`.
    digest: String,
}

pub(super) fn accept(cx: &mut Cx<'_, '_>, input: AcceptTool) -> Result<MountToolOut> {
    check_text("tool", &input.tool, NAME_CHARS_MAX)?;
    let tool = tool::accept(cx, &input.mount, &input.tool, &input.digest)?;
    let mounts = mount::all(cx)?;
    tool_out(cx, &mounts, &input.mount, tool)
}
