//! A rule drafted from an approval: what it would say, and which earlier acts it would have matched.

use std::collections::{BTreeMap, BTreeSet};

use deskmate_db::args;
use schemars::JsonSchema;
use serde::Serialize;

use super::model::{Request, State};
use super::view::BEFORE;
use crate::call::Cx;
use crate::limits::DRAFT_LOOKED_MAX;
use crate::policy::{self, Act, Counters, Document, GLOBAL_POLICY, Policy, Rulebook, Standing};
use crate::trust::Points;
use crate::{Error, Result, format_time};

/// A drafted rule.
#[derive(Serialize, JsonSchema)]
pub(super) struct Draft {
    /// The rule, to be added to the `rules` of the policy file. Nothing is in force before an owner applies it.
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

/// Drafts a rule for acts like this one, and tries it on what the agent asked for before.
pub(super) fn draft(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Draft> {
    let (name, now) = (name_of(request), cx.now());
    let act = request.act()?;
    let changed = policy::changed_paths(&act).ok_or_else(unclear)?;
    let yaml = text(request, &name, &act, &changed);
    let rulebook = with_rule(cx, &yaml)?;
    let rows = cx.tx.query(BEFORE, args![request.requester.id, i64::MAX, DRAFT_LOOKED_MAX])?;
    let mut would_have_matched = Vec::new();
    for row in &rows {
        let other = Request::read(row)?.opened(cx);
        let fires = other.id != request.id && other.bound.is_some() && fires(&rulebook, &name, &other, now)?;
        if fires {
            let (state, created_at) = (other.state_at(now), format_time(other.created_at));
            would_have_matched.push(Matched { request: other.id, title: other.title, state, created_at });
        }
    }
    Ok(Draft { yaml, would_have_matched, looked_at: rows.len() })
}

/// Nobody can say which acts are like one whose change is not written field by field.
pub(super) fn unclear() -> Error {
    Error::invalid("remember", "what this would change cannot be seen field by field, so no other act can be known to be like it")
        .hint("approve it without remembering it")
}

fn name_of(request: &Request) -> String {
    let short: Vec<char> = request.id.chars().rev().take(8).collect();
    format!("allow-{}", short.into_iter().rev().collect::<String>())
}

/// What is in force, with the drafted rule among the rules for everybody.
fn with_rule(cx: &mut Cx<'_, '_>, yaml: &str) -> Result<Rulebook> {
    let refused = |problems: Vec<policy::Problem>| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Error::invalid("remember", format!("no rule can be drafted for such an act: {}", all.join("; ")))
    };
    let mut parts = policy::current(cx)?.parts().clone();
    let drafted = Document::parse(yaml).map_err(refused)?.over(&policy::Parts::default());
    let rules = drafted.policies.get(GLOBAL_POLICY).map(|policy| policy.rules.clone()).unwrap_or_default();
    let global = parts.policies.entry(GLOBAL_POLICY.to_owned()).or_insert_with(|| Policy { id: GLOBAL_POLICY.to_owned(), ..Policy::default() });
    global.rules.extend(rules);
    Rulebook::compile(parts, BTreeMap::new()).map_err(refused)
}

/// Whether the drafted rule fires on an earlier act.
fn fires(rulebook: &Rulebook, name: &str, request: &Request, now: i64) -> Result<bool> {
    let standing = Standing {
        agent: request.requester.id.clone(),
        verified: request.requester.verified,
        paused: false,
        score: Points::ZERO,
        decided: 0,
        over_a_persons_edit: false,
        waived_by: None,
        attached: None,
    };
    let decision = policy::decide(rulebook, &request.act()?, &standing, &Counters::default(), now);
    Ok(decision.hits.iter().any(|hit| hit.policy == GLOBAL_POLICY && hit.rule_id == name && !hit.failed))
}

/// A JSON text is also a text of YAML and of CEL, so whatever somebody wrote cannot break out of its place.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn text(request: &Request, name: &str, act: &Act, changed: &BTreeSet<String>) -> String {
    let paths: Vec<String> = changed.iter().map(|path| quoted(path)).collect();
    let mut when = format!("act.action == {} && size(act.taint) == 0 && changed.all(path, path in [{}])", quoted(&act.action), paths.join(", "));
    if changed.iter().all(String::is_empty) {
        // An act that says in words what it changes has no path either.
        when.push_str(" && size(texts) == 0");
    }
    let lists = [("kind", &act.kind), ("tool", &act.tool), ("domain", &act.domain), ("agent", &request.requester.id), ("environment", &act.environment)];
    let lists = lists.into_iter().filter(|(_, value)| !value.is_empty());
    let matches: Vec<String> = lists.map(|(key, value)| format!("      {key}: [{}]\n", quoted(value))).collect();
    format!(
        "rules:\n  - name: {}\n    match:\n{}    when: {}\n    effect: allow\n    waive_trust: true\n    message: {}\n",
        quoted(name),
        matches.concat(),
        quoted(&when),
        quoted(&format!("drafted from request {}", request.id))
    )
}
