//! A rule drafted from an approval: what it would say, and which earlier acts it would have matched.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use deskmate_db::args;
use schemars::JsonSchema;
use serde::Serialize;

use super::model::{Request, State};
use super::standing::Pattern;
use super::view::BEFORE;
use crate::Result;
use crate::call::Cx;
use crate::format_time;
use crate::limits::DRAFT_LOOKED_MAX;
use crate::policy::Act;

/// A drafted rule.
#[derive(Serialize, JsonSchema)]
pub(super) struct Draft {
    /// The rule as it would stand in a policy file. Nothing is in force before a person applies it.
    yaml: String,
    /// The earlier acts of this agent that it would have matched, newest first.
    would_have_matched: Vec<Matched>,
    /// How many earlier acts were looked at.
    looked_at: usize,
}

/// An earlier act.
#[derive(Serialize, JsonSchema)]
struct Matched {
    /// The request's id.
    request: String,
    /// What it was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// How it ended, or stands.
    state: State,
    /// When it was made.
    created_at: String,
}

/// Drafts a rule for acts like this one.
pub(super) fn draft(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Draft> {
    let act = request.act()?;
    let (pattern, now) = (Pattern::of(&act), cx.now());
    let rows = cx.tx.query(BEFORE, args![request.requester.id, i64::MAX, DRAFT_LOOKED_MAX])?;
    let mut would_have_matched = Vec::new();
    for row in &rows {
        let other = Request::read(row)?;
        let like = other.id != request.id && other.domain == request.domain && other.bound.is_some() && other.act().is_ok_and(|other| pattern.covers(&other));
        if like {
            let (state, created_at) = (other.state_at(now), format_time(other.created_at));
            would_have_matched.push(Matched { request: other.id, title: other.title, state, created_at });
        }
    }
    Ok(Draft { yaml: text(request, &act), would_have_matched, looked_at: rows.len() })
}

/// A JSON text is also a YAML text, so whatever somebody wrote cannot break out of its place.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn text(request: &Request, act: &Act) -> String {
    let names: BTreeSet<String> = act.arguments.as_object().into_iter().flat_map(|fields| fields.keys().map(|key| quoted(key))).collect();
    let fields = names.into_iter().collect::<Vec<_>>().join(", ");
    let when = format!("act.action == {} && act.arguments.all(name, name in [{fields}])", quoted(&act.action));
    let mut yaml = String::new();
    let short: String = request.id.chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect();
    // Writing to a String does not fail.
    let _ = write!(
        yaml,
        "rules:\n  - name: \"allow-{short}\"\n    match:\n      kind: [{}]\n      tool: [{}]\n      domain: [{}]\n      agent: [{}]\n",
        quoted(&act.kind),
        quoted(&act.tool),
        quoted(&act.domain),
        quoted(&request.requester.id)
    );
    if !act.environment.is_empty() {
        let _ = writeln!(yaml, "      environment: [{}]", quoted(&act.environment));
    }
    let _ = write!(yaml, "    when: {}\n    effect: allow\n    waive_trust: true\n    message: \"Drafted from request {}.\"\n", quoted(&when), request.id);
    yaml
}
