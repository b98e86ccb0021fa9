//! What a tool is answered, as an owner sets it for that tool alone: one rule among those for everybody that names the tool. It is
//! a rule like any other, with its version and its place on the page Policies, and the most restrictive answer still wins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mount::{self, Mount};
use super::{manage, tool};
use crate::call::Cx;
use crate::limits::{NAME_CHARS_MAX, TITLE_CHARS_MAX};
use crate::policy::draft::{self, Applied, Direction};
use crate::policy::{self, Document, Effect, GLOBAL_POLICY, GeneralRule, Match, Parts, Policy, PolicyRef, Rule, Rulebook, Severity, literal};
use crate::request::check_fresh;
use crate::{Error, Result, check_text, digest, hex};

/// What a tool is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolAnswer {
    /// It is handed on whatever the trust, unless another rule forbids it or asks for a person.
    Pass,
    /// A person is asked before every call.
    Ask,
    /// It is never handed on.
    Forbid,
    /// Nothing is set for it: what the other rules and trust say.
    Policies,
}

impl ToolAnswer {
    /// Those that are a rule.
    const RULES: [Self; 3] = [Self::Pass, Self::Ask, Self::Forbid];

    /// What is said where nobody gives a reason.
    fn message(self) -> &'static str {
        match self {
            Self::Pass => "this tool may be called",
            Self::Ask => "a person is asked before this tool is called",
            Self::Forbid => "this tool is not to be called",
            Self::Policies => "",
        }
    }

    /// The rule that says so; `None` where no rule does.
    fn rule(self, mount: &str, tool: &str, message: &str) -> Result<Option<GeneralRule>> {
        let (effect, when) = match self {
            // Two mounts may have tools that are called the same where they stand beside each other. What restricts holds for
            // both; what gives something, for this one alone.
            Self::Pass => (Effect::Allow, Some(format!("act.target == {}", literal(&mount.into())))),
            Self::Ask => (Effect::RequireApproval, None),
            Self::Forbid => (Effect::Deny, None),
            Self::Policies => return Ok(None),
        };
        Ok(Some(GeneralRule {
            name: rule_name(mount, tool)?,
            matches: Match { tool: vec![format!("{mount}_{tool}")], ..Match::default() },
            when,
            effect,
            approvers: Vec::new(),
            quorum: None,
            grant_seconds: None,
            expires_seconds: None,
            paths: Vec::new(),
            severity: Severity::default(),
            message: message.to_owned(),
            alternative: None,
            waive_trust: effect == Effect::Allow,
        }))
    }

    /// What a rule says, if it says nothing else: one that somebody wrote on is that person's own.
    fn of(rule: &GeneralRule, mount: &str, tool: &str) -> Result<Option<Self>> {
        for answer in Self::RULES {
            if answer.rule(mount, tool, &rule.message)?.as_ref() == Some(rule) {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }
}

/// The rule of a tool, by its name. Names of mounts and tools have no colon, so that no two tools share one; a tool whose name is
/// too long for that of a rule goes by its digest.
fn rule_name(mount: &str, tool: &str) -> Result<String> {
    let name = format!("tool:{mount}:{tool}");
    if name.len() <= NAME_CHARS_MAX { Ok(name) } else { Ok(format!("tool:{mount}:{}", hex(&digest(&tool)?))) }
}

fn place(rules: &[Rule], name: &str) -> Option<usize> {
    rules.iter().position(|rule| matches!(rule, Rule::General(rule) if rule.name == name))
}

fn rules(rulebook: &Rulebook) -> &[Rule] {
    rulebook.policy(GLOBAL_POLICY).map_or(&[], |(policy, _)| policy.rules.as_slice())
}

/// What is set for a tool, if anything is.
pub(super) fn set(rulebook: &Rulebook, mount: &str, tool: &str) -> Result<Option<ToolAnswer>> {
    among(rules(rulebook), mount, tool)
}

fn among(rules: &[Rule], mount: &str, tool: &str) -> Result<Option<ToolAnswer>> {
    let name = rule_name(mount, tool)?;
    match place(rules, &name).and_then(|at| rules.get(at)) {
        Some(Rule::General(rule)) => ToolAnswer::of(rule, mount, tool),
        _ => Ok(None),
    }
}

/// Set what agents get when they call one tool of a mount: it passes, a person is asked, it is forbidden, or what the policies say.
/// It is a rule for everybody that names this tool, and a new version of those rules; all other rules stay, and the most
/// restrictive answer wins.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetAnswer {
    /// The mount.
    mount: String,
    /// The tool, by its own name.
    tool: String,
    /// What it is to be answered.
    answer: ToolAnswer,
    /// Why, for people and agents alike.
    reason: Option<String>,
    /// The digest of everything that was in force when you looked; if that has changed meanwhile, the answer is a conflict.
    expected_rulebook: Option<String>,
}

/// What is set now.
#[derive(Serialize, JsonSchema)]
pub(super) struct AnswerOut {
    /// The mount.
    mount: String,
    /// The tool.
    tool: String,
    /// What is set for it.
    answer: ToolAnswer,
    /// The rule that says so, among those for everybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// The digest of everything in force.
    rulebook: String,
    /// Whether anything changed.
    changed: bool,
    /// Whether that loosens, or may loosen, what agents may do.
    loosened: bool,
    /// What changed, in lines for people.
    difference: Vec<String>,
    /// Policies with a new version.
    policies: Vec<PolicyRef>,
}

pub(super) fn answer(cx: &mut Cx<'_, '_>, input: SetAnswer) -> Result<AnswerOut> {
    check_text("tool", &input.tool, NAME_CHARS_MAX)?;
    let reason = input.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    check_text("reason", reason.unwrap_or_default(), TITLE_CHARS_MAX)?;
    let (answer, mount) = (input.answer, named(cx, &input.mount)?.name);
    if tool::load(cx.tx, &mount, &input.tool)?.is_none() {
        return Err(Error::not_found(format!("{mount} has no tool {}", input.tool)).hint("desk_mount_tools shows those that it has"));
    }
    let rulebook = policy::current(cx)?;
    if input.expected_rulebook.as_deref().is_some_and(|expected| expected != rulebook.digest()) {
        return Err(Error::conflict("something else was put in force meanwhile").hint("look at what the tool gets now"));
    }
    let rule = answer.rule(&mount, &input.tool, reason.unwrap_or(answer.message()))?;
    let (name, mut wanted) = (rule_name(&mount, &input.tool)?, rules(&rulebook).to_vec());
    let at = place(&wanted, &name);
    if at.is_some() && set(&rulebook, &mount, &input.tool)?.is_none() {
        return Err(Error::conflict(format!("somebody wrote on the rule {name}, and what it says now would be lost"))
            .hint("change it or take it away where the policies are edited"));
    }
    if let Some(at) = at {
        wanted.remove(at);
    }
    if let Some(rule) = rule.clone() {
        wanted.insert(at.unwrap_or(wanted.len()), Rule::General(Box::new(rule)));
    }
    let Applied { changes, stored } = put_in_force(cx, &rulebook, wanted)?;
    let loosened = changes.iter().any(|one| one.direction == Direction::Loosens);
    if loosened {
        check_fresh(cx, "setting this, which may loosen what agents may do,")?;
    }
    Ok(AnswerOut {
        mount,
        tool: input.tool,
        answer,
        rule: rule.map(|rule| rule.name),
        rulebook: stored.digest,
        changed: !changes.is_empty(),
        loosened,
        difference: draft::lines(&changes),
        policies: stored.policies,
    })
}

fn named(cx: &mut Cx<'_, '_>, name: &str) -> Result<Mount> {
    mount::all(cx)?.into_iter().find(|mount| mount.name == name).ok_or_else(|| manage::missing(name))
}

/// Puts other rules for everybody in force, and leaves their cases and all the rest as they are.
fn put_in_force(cx: &mut Cx<'_, '_>, rulebook: &Rulebook, rules: Vec<Rule>) -> Result<Applied> {
    let held = rulebook.policy(GLOBAL_POLICY).map(|(policy, _)| policy.clone());
    let global = Policy { rules, ..held.unwrap_or_else(|| Policy { id: GLOBAL_POLICY.to_owned(), ..Policy::default() }) };
    draft::apply(cx, &Document { global: Some(global), ..Document::default() }, false)
}

/// What is to be in force, without what lets tools of mounts pass that go with it: another server may come under their names. What
/// restricts stays.
pub(crate) fn without_passing(cx: &mut Cx<'_, '_>, target: &Parts, lost: &[String]) -> Result<Parts> {
    let Some(global) = target.policies.get(GLOBAL_POLICY) else { return Ok(target.clone()) };
    let mut passing = Vec::new();
    for mount in lost {
        for tool in tool::of_mount(cx.tx, mount)? {
            if among(&global.rules, mount, &tool.name)? == Some(ToolAnswer::Pass) {
                passing.push(rule_name(mount, &tool.name)?);
            }
        }
    }
    let is_passing = |rule: &Rule| matches!(rule, Rule::General(rule) if passing.contains(&rule.name));
    let left = Policy { rules: global.rules.iter().filter(|rule| !is_passing(rule)).cloned().collect(), ..global.clone() };
    Ok(Document { global: Some(left), ..Document::default() }.over(target))
}
