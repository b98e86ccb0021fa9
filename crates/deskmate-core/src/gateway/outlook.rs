//! What each tool of a mount would get, before anybody calls it: for people who want to know what their rules do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::{self, ToolAnswer};
use super::call::{VERB, act, why};
use super::{manage, mount, show, tool};
use crate::Result;
use crate::call::{Cx, Mode};
use crate::identity::{self, check_name};
use crate::policy::{Decision, Hit, OpenRule, Outlook, current};
use crate::request::{self, Requester};

/// Say which answer each tool of a mount would get if an agent called it now, and by which rule. Rules that depend on what a tool
/// is called with are named with their conditions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MountPolicy {
    /// The mount.
    name: String,
    /// Who would call.
    agent: String,
}

/// The answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct MountPolicyOut {
    /// Who would call.
    agent: String,
    /// The domain in which calls are judged.
    domain: String,
    /// The digest of everything in force: give it to desk_mount_answer.
    rulebook: String,
    /// By name.
    tools: Vec<ToolPolicy>,
}

/// The answer for a tool.
#[derive(Serialize, JsonSchema)]
pub(super) struct ToolPolicy {
    /// Its name.
    name: String,
    /// What it does, for rules; `tool.call` where nobody said.
    verb: String,
    /// Whether the agent sees it in its list.
    listed: bool,
    /// `act`, `suggest`, `escalate` or `deny`.
    mode: String,
    /// What that answer comes from, in words.
    why: Vec<String>,
    /// The rules that fire.
    hits: Vec<Hit>,
    /// The rules that may fire, depending on what it is called with.
    open: Vec<OpenRule>,
    /// What an owner has set for this tool alone, with desk_mount_answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<ToolAnswer>,
}

pub(super) fn policy(cx: &mut Cx<'_, '_>, input: MountPolicy) -> Result<MountPolicyOut> {
    check_name("agent", &input.agent)?;
    let mounts = mount::all(cx)?;
    let mount = mounts.into_iter().find(|mount| mount.name == input.name).ok_or_else(|| manage::missing(&input.name))?;
    // Where agents need their tokens, nobody calls without having shown who they are.
    let who = Requester::agent(&input.agent, identity::mode(cx.tx)? == Mode::Closed);
    let rulebook = current(cx)?;
    let mut tools = Vec::new();
    for known in tool::of_mount(cx.tx, &mount.name)? {
        let act = act(&mount, &known.name, Value::Object(Map::new()), Vec::new());
        let Outlook { mut decision, open } = request::outlook(cx, &act, &who)?;
        if mount.verb(&known.name).is_none() {
            request::hold_unless_named(cx, &mut decision, &act, &who)?;
        }
        let is_there = mount.enabled && known.state == tool::ToolState::Known && !mount.hides(&known.name);
        let listed = is_there && !show::never(cx, &mount, &known.name, &who)?;
        let Decision { mode, hits, .. } = &decision;
        tools.push(ToolPolicy {
            verb: mount.verb(&known.name).unwrap_or(VERB).to_owned(),
            listed,
            mode: mode.name().to_owned(),
            why: why(&decision),
            hits: hits.clone(),
            open,
            set: answer::set(&rulebook, &mount.name, &known.name)?,
            name: known.name,
        });
    }
    Ok(MountPolicyOut { agent: input.agent, domain: mount.domain(), rulebook: rulebook.digest().to_owned(), tools })
}
